"""The backward pass as a row of pictures: one a step, all of one size, for slides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from gradcli.graphs import value_text
from gradcli.graphs.pictures import Picture
from gradcli.graphs.svg import Frame, picture_to_svg
from gradcli.graphs.traversal import Walk, class_name

FLOW_WIDTH = 24


class StepFrames(Protocol):
    """A graph whose backward pass has been recorded."""

    skeleton: Walk
    recorder: Any


def frames(picture: Picture, graph: StepFrames) -> Iterator[str]:
    """Yield the picture before the pass, and after each of its steps."""
    layout = picture.layout()
    steps = [] if graph.recorder is None else list(graph.recorder.steps)
    steps = [step for step in steps if step.node in graph.skeleton.ids]
    count = len(steps)
    yield picture_to_svg(picture, Frame(caption=f"0 / {count}"), layout)
    done: set[int] = set()
    for number, step in enumerate(steps, 1):
        i = graph.skeleton.ids[step.node]
        flows = {
            k: value_text.brief(grad, picture.options.precision, FLOW_WIDTH)
            for k, grad in enumerate(step.outgoing)
            if grad is not None
        }
        name = picture.describer.label(i)
        words = f"{number} / {count}   {class_name(step.node)}{f' {name}' if name else ''}"
        frame = Frame(set(done), i, flows, words)
        done.add(i)
        yield picture_to_svg(picture, frame, layout)

"""The backward pass as a row of pictures: one a step, all of one size, for slides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from gradcli.graphs import value_text, vjp_text
from gradcli.graphs.layered_layout import Layout
from gradcli.graphs.pictures import Picture
from gradcli.graphs.svg import Frame, caption_width, label_of, picture_to_svg
from gradcli.graphs.traversal import LEAF, Walk, class_name

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
    flows = [_flows(step, picture.options.precision) for step in steps]
    left, right = _room(picture, layout, steps, flows, graph.skeleton)
    count = len(steps)
    captions = [f"0 / {count}"]
    for number, (step, sent) in enumerate(zip(steps, flows, strict=True), 1):
        name = picture.describer.label(graph.skeleton.ids[step.node])
        words = f"{number} / {count}   {class_name(step.node)}{f' {name}' if name else ''}"
        captions.append("   ".join([words, *_rules(step.node, sent)]))
    wide = max(map(caption_width, captions))  # all pictures are as wide as the longest caption
    room = left, max(right, wide - layout.width - left)
    yield picture_to_svg(picture, Frame(caption=captions[0], room=room), layout)
    done: set[int] = set()
    for words, step, sent in zip(captions[1:], steps, flows, strict=True):
        i = graph.skeleton.ids[step.node]
        yield picture_to_svg(picture, Frame(set(done), i, sent, words, room), layout)
        done.add(i)


def _flows(step: Any, precision: int | None) -> dict[int, str]:
    """The gradients that a step sends, by the number of the input."""
    return {
        k: value_text.brief(grad, precision, value_text.room_of(grad, FLOW_WIDTH, precision))
        for k, grad in enumerate(step.outgoing)
        if grad is not None
    }


def _rules(node: Any, sent: dict[int, str]) -> list[str]:
    """The rules of a step's gradients, for its caption; a leaf adds what arrives."""
    if not sent:
        return ["adds what arrives"] if class_name(node) == LEAF else []
    texts = vjp_text.rules_by_edge(node)
    return list(dict.fromkeys(text for k in sent if k < len(texts) and (text := texts[k])))


def _room(
    picture: Picture, layout: Layout, steps: list[Any], flows: list[dict[int, str]], skeleton: Walk
) -> tuple[float, float]:
    """How far labels of any step reach beyond the picture, at the left and at the right."""
    left = right = 0.0
    sent = {skeleton.ids[s.node]: flow for s, flow in zip(steps, flows, strict=True)}
    for made, wire in zip(picture.wires, layout.wires, strict=True):
        text = sent.get(picture.cards[made.source].node or 0, {}).get(made.index)
        if text is not None and picture.cards[made.source].node is not None:
            x, _, width = label_of(picture, layout, wire, text)
            left, right = max(left, width / 2 - x), max(right, x + width / 2 - layout.width)
    return left, right

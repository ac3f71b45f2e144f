"""The backward pass as a table: the gradients that enter and leave each node, and where they go.

`tracing()` records backward passes while they run; `Trace` holds the record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from gradcli.graphs.backward_steps import Pass, SpanOf, StepListener
from gradcli.graphs.step_table import pass_to_json, table
from gradcli.graphs.styles import Line, segments
from gradcli.graphs.traversal import Describer


@contextmanager
def tracing(
    source: str | None = None, *, check: bool = False, span_of: SpanOf | None = None
) -> Iterator[Trace]:
    """Inside, every step of every backward pass is kept, in the order in which the engine runs.

    check: also keep what did it where a gradient first becomes NaN or infinite (`find_anomaly`).
    span_of: the place in the source of a node, which the nodes that its turn makes get as well.
    """
    from gradcli.engine.core.observers import observing

    trace = Trace(StepListener(check=check, span_of=span_of), source)
    with observing(trace.recorder):
        yield trace


class Trace:
    """The steps of the backward passes; `lines()` and rich's `console.print` make the table."""

    def __init__(
        self, recorder: Any, source: str | None = None, describer: Describer | None = None
    ) -> None:
        """recorder: None where there is no graph. describer: of the graph that the passes ran over."""
        self.recorder, self.source, self.describer = recorder, source, describer

    @property
    def passes(self) -> list[Pass]:
        """The passes in the order in which they ran."""
        return [] if self.recorder is None else list(self.recorder.passes)

    def __str__(self) -> str:
        return self.plain()

    def plain(self, *, ascii: bool = False, width: int | None = None) -> str:
        """Return the table as text."""
        lines = table(self.passes, self.source, self.describer, ascii=ascii, width=width)
        return "\n".join("".join(text for text, _ in line).rstrip() for line in lines)

    def fitted(self, width: int, *, ascii: bool, coloured: bool = True) -> Iterable[Line]:
        """Return the lines for a terminal."""
        return table(self.passes, self.source, self.describer, ascii=ascii, width=width)

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        yield from segments(self.fitted(options.max_width, ascii=options.ascii_only))

    def to_json(self) -> list[dict[str, Any]]:
        """Return one list entry a step: pass, step, node, grads in, rule, grads out, events."""
        return [
            step
            for number, one in enumerate(self.passes, 1)
            for step in pass_to_json(one, number, self.source, self.describer)
        ]

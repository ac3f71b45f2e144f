"""The steps of a backward pass, recorded from the events that the engine sends."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from gradcli.graphs import nonfinite, value_text

SpanOf = Callable[[Any], tuple[int, int] | None]


@dataclass(slots=True)
class Note:
    """Something that happened at a step besides its rule."""

    kind: str  # "hook", "prehook", "tensor hook", "accumulate", "retain", "free"
    before: Any = None
    after: Any = None


@dataclass(slots=True)
class Step:
    """One node's turn in a backward pass."""

    number: int
    node: Any
    incoming: tuple[Any, ...]
    outgoing: tuple[Any, ...] = ()
    notes: list[Note] = field(default_factory=list)


@dataclass(slots=True)
class Pass:
    """One backward pass: the node it begins at, the cotangent, its steps."""

    root: Any
    seed: Any
    steps: list[Step] = field(default_factory=list)


def local_slopes(steps: Iterable[Step]) -> dict[tuple[Any, int], float]:
    """The slopes of operations on numbers: (node, number of the edge) -> what is sent over what came.

    Where a gradient of 0 came, or it is no number, nothing is known.
    """
    found: dict[tuple[Any, int], float] = {}
    for step in steps:
        came = [_number(g) for g in step.incoming]
        if len(came) != 1 or not came[0]:
            continue
        for k, sent in enumerate(step.outgoing):
            slope = _number(sent)
            if slope is not None:
                found[step.node, k] = slope / came[0]
    return found


def _number(gradient: Any) -> float | None:
    """A gradient of a real number; None of an array."""
    array = getattr(gradient, "array", gradient)
    if array is None or array.shape != () or array.dtype.kind not in "fiu":
        return None
    return float(array)


class StepListener:
    """What the engine calls with every event; keeps copies, for gradients are reused in place."""

    def __init__(self, *, check: bool = False, span_of: SpanOf | None = None) -> None:
        """span_of: the place in the source of a node, which the nodes that its turn makes get as well."""
        self.check, self.span_of = check, span_of
        self.anomaly: tuple[Step, dict[str, str]] | None = None  # the first, if `check`
        self.passes: list[Pass] = []
        self.reached: dict[Any, Any] = {}
        self._open: dict[Any, Step] = {}
        self._before: Any = None  # a leaf's `.grad`, until the gradient is added to it

    def __call__(self, event: tuple[str, Any, Any]) -> None:
        kind, node, data = event
        handler = getattr(self, f"_{kind}", None)
        if handler is not None:
            handler(node, data)

    @property
    def steps(self) -> list[Step]:
        """The steps of every pass, one after another."""
        return [step for one in self.passes for step in one.steps]

    def _begin(self, node: Any, seed: Any) -> None:
        self.passes.append(Pass(node, _copies(seed) if isinstance(seed, tuple) else _copy(seed)))

    def _start(self, node: Any, grads: tuple[Any, ...]) -> None:
        steps = self.passes[-1].steps
        step = Step(len(steps) + 1, node, _copies(grads))
        self.reached[node] = step.incoming[0] if len(step.incoming) == 1 else _first(step.incoming)
        self._open[node] = step
        steps.append(step)

    def _finish(self, node: Any, grads: tuple[Any, ...]) -> None:
        if node in self._open:
            step = self._open[node]
            step.outgoing = _copies(grads)
            if self.span_of is not None:
                _give_span(grads, self.span_of(node))
            if self.check and self.anomaly is None:
                self._look(step)

    def _look(self, step: Step) -> None:
        """Keep the first step that sends NaN or infinity, and copy what it saved before it is freed."""
        place = nonfinite.first_place(step.outgoing)
        if place is not None:
            self.anomaly = step, nonfinite.saved_inputs(step.node, place)

    def _hook(self, node: Any, data: tuple[str, Any, Any]) -> None:
        kind, before, after = data
        self._note(node, Note(kind, _copies(before), _copies(after)))
        if node in self._open and hasattr(node, "variable") and kind != "hook":
            self.reached[node] = _first(_copies(after))  # what arrives in `.grad`

    def _add(self, node: Any, before: Any) -> None:
        self._before = _copy(before)

    def _accumulate(self, node: Any, after: Any) -> None:
        self._note(node, Note("accumulate", self._before, _copy(after)))

    def _retain(self, node: Any, grad: Any) -> None:
        self._note(node, Note("retain", None, _copy(grad)))

    def _free(self, node: Any, _: Any) -> None:
        self._note(node, Note("free"))

    def _note(self, node: Any, note: Note) -> None:
        if node in self._open:
            self._open[node].notes.append(note)


def _give_span(grads: tuple[Any, ...], span: tuple[int, int] | None) -> None:
    """Nodes that made gradients, and have no place in the source yet, get one: that of their maker."""
    if span is None:
        return
    waiting = [getattr(grad, "grad_fn", None) for grad in grads]
    while waiting:
        node = waiting.pop()
        if node is None or getattr(node, "span", None) is not None or hasattr(node, "variable"):
            continue
        node.span = span
        waiting += [child for child, _ in node.next_functions]


def _copy(value: Any) -> Any:
    if value is None:
        return None
    array = value_text.as_array(value)
    return array.copy() if getattr(array, "ndim", 0) else array


def _copies(value: Any) -> tuple[Any, ...]:
    return tuple(map(_copy, value)) if isinstance(value, tuple | list) else (_copy(value),)


def _first(grads: tuple[Any, ...]) -> Any:
    return next((grad for grad in grads if grad is not None), None)

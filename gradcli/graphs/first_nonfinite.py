"""Where a computation first went wrong: the node whose value or gradient is NaN or infinite."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gradcli.graphs import nonfinite, saved_fields, value_text
from gradcli.graphs.backward_steps import Step, StepListener
from gradcli.graphs.remedies import input_remedy, remedy
from gradcli.graphs.traversal import class_name


@dataclass(slots=True)
class Anomaly:
    """The first anomaly: PyTorch's message, its place in the source, the cause and a remedy."""

    message: str
    name: str
    node: Any
    span: tuple[int, int] | None
    backward: bool
    inputs: dict[str, str] = field(default_factory=dict)
    remedy: str = ""

    @property
    def hint(self) -> str:
        """The values that did it and the remedy, as one text."""
        did = ", ".join(f"{name} = {text}" for name, text in self.inputs.items())
        return f"{did}\n{self.remedy}" if did else self.remedy


def find_anomaly(
    graph: Any,
    *,
    values: Mapping[Any, Any] | None = None,
    recorder: StepListener | None = None,
) -> Anomaly | None:
    """Return the first node that gave NaN or infinity, in the forward pass or else in the backward.

    graph: an inspected result. values: results by node, in order, from `watching()`. recorder: of a
    `tracing()` with `check=True`, whose steps are looked at.
    """
    found = _forward(graph, values or {}) if values else _known(graph)
    if found is None and recorder is not None:
        found = _backward(graph, values or {}, recorder)
    return found


def _forward(graph: Any, watched: Mapping[Any, Any]) -> Anomaly | None:
    for node, tensor in watched.items():
        wrong = nonfinite.wrong(tensor)
        i = graph.describer.id_of(node)
        if wrong and i is not None:
            name = class_name(node)
            at = nonfinite.place_of(tensor)
            given = _given(graph, node, at)
            if given is not None:
                return given
            message = f"Function '{name}' computed {wrong} values in the forward pass."
            inputs = _operands(graph, node, watched, at)
            span = graph.describer.span(i)
            helps = remedy(name, _dtype(tensor))
            return Anomaly(message, name, node, span, False, inputs, helps)
    return None


def _known(graph: Any) -> Anomaly | None:
    """The first node that gave NaN or infinity as far as nodes have saved values: nobody has watched.

    Below the first whose value is known to be bad there may be nodes whose values nobody has saved: the one
    to blame is the lowest of these, all of whose operands are known to be finite.
    """
    values, nodes = graph.forward, graph.skeleton.nodes
    order = sorted(values, key=lambda i: _turn(nodes[i]))
    # An infinity without effect, as in a mask, is meant.
    odd = ("nan", "inf") if any(map(nonfinite.wrong, graph.tensors)) else ("nan",)
    first = next((i for i in order if nonfinite.wrong(values[i]) in odd), None)
    if first is None:
        return None
    seen = first
    while True:
        below = [edge[0] for edge in graph.skeleton.edges[seen] if edge is not None]
        unknown = [i for i in below if i not in values]
        if len(unknown) != 1:
            break
        seen = unknown[0]
    node, wrong = nodes[seen], nonfinite.wrong(values[first])
    name, at = class_name(node), () if seen != first else nonfinite.place_of(values[first])
    if hasattr(node, "variable"):
        what = graph.describer.label(seen) or "a leaf"
        message, helps = f"the input {what} has {wrong} values", input_remedy(str(wrong))
    else:
        message = f"Function '{name}' computed {wrong} values in the forward pass."
        helps = remedy(name, _dtype(values[first]))
    inputs = {} if hasattr(node, "variable") else nonfinite.saved_inputs(node, at)
    return Anomaly(message, name, node, graph.describer.span(seen), False, inputs, helps)


def _turn(node: Any) -> int:
    """When a node was made; leaves were there before."""
    return -1 if hasattr(node, "variable") else int(node._sequence_nr())


def _backward(graph: Any, watched: Mapping[Any, Any], recorder: StepListener) -> Anomaly | None:
    if recorder.anomaly is None:
        return None
    step, saved_before = recorder.anomaly
    name = class_name(step.node)
    output = next(
        k for k, grad in enumerate(step.outgoing) if grad is not None and nonfinite.wrong(grad)
    )
    wrong = nonfinite.wrong(step.outgoing[output])
    message = f"Function '{name}' returned {wrong} values in its {output}th output."
    help_for = "WhereBackward0" if _behind_where(step, output, recorder.steps) else name
    at = nonfinite.place_of(step.outgoing[output])
    inputs = _operands(graph, step.node, watched, at) | saved_before
    i = graph.describer.id_of(step.node)
    span = None if i is None else graph.describer.span(i)
    helps = remedy(help_for, _dtype(step.outgoing[output]))
    return Anomaly(message, name, step.node, span, True, inputs, helps)


def _dtype(value: Any) -> str | None:
    return value_text.dtype_name(getattr(value, "dtype", None))


def _given(graph: Any, node: Any, at: tuple[int, ...]) -> Anomaly | None:
    """The input that has NaN (or infinity) itself, so that the operation is not to blame."""
    found: dict[str, Any] = {}
    for child, _ in node.next_functions:
        tensor = getattr(child, "variable", None)
        if tensor is not None:
            found[saved_fields.name_of(tensor, graph.names) or "an input"] = tensor
    for name, value in saved_fields.fields(node):
        if value_text.is_tensor(value) and getattr(value, "grad_fn", None) is None:
            found.setdefault(
                saved_fields.name_of(value, graph.names) or f"an input ({name})", value
            )
    for name, tensor in found.items():
        wrong = nonfinite.wrong(tensor)
        if wrong:
            place = nonfinite.place_of(tensor)
            message = f"the input {name} has {wrong} values"
            message = message.replace("the input an input", "an input")
            i = graph.describer.id_of(node)
            span = None if i is None else graph.describer.span(i)
            inputs = {name: nonfinite.element(tensor, place)}
            return Anomaly(
                message, class_name(node), node, span, False, inputs, input_remedy(wrong)
            )
    return None


def _operands(
    graph: Any, node: Any, watched: Mapping[Any, Any], at: tuple[int, ...]
) -> dict[str, str]:
    found = nonfinite.saved_inputs(node, at)
    for child, _ in node.next_functions:
        tensor = getattr(child, "variable", None) if child is not None else None
        if tensor is None and child is not None:
            tensor = watched.get(child)
        if tensor is not None:
            i = graph.describer.id_of(child)
            piece = graph.describer.piece(graph.describer.span(i)) if i is not None else None
            name = saved_fields.name_of(tensor, {}) or piece or class_name(child)
            text = nonfinite.element(tensor, at)
            if text not in found.values():
                found.setdefault(name, text)
    return found


def _behind_where(step: Step, output: int, steps: Iterable[Step]) -> bool:
    """Tell whether a gradient of 0 became NaN here, on a branch that a `where` did not take."""
    import numpy as np

    if nonfinite.wrong(step.outgoing[output]) != "nan":
        return False
    at = nonfinite.place_of(step.outgoing[output])
    came = [np.asarray(grad) for grad in step.incoming if grad is not None]
    zero = any(grad[at] == 0 for grad in came if nonfinite.inside(at, grad.shape))
    return zero and any(class_name(other.node).startswith("Where") for other in steps)

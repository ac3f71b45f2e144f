"""What the graph inspector (gradcli.graphs) sees of an evaluation: its graph, its passes, its anomalies."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from gradcli.commands.request_evaluation import Evaluation, evaluate, read_variables, run

if TYPE_CHECKING:
    from gradcli.commands.request import Request
    from gradcli.engine.system.process import AnyContext
    from gradcli.graphs import Graph, Trace

Values = dict[Any, Any]


def evaluate_watched(
    ctx: AnyContext, request: Request, watched: bool
) -> tuple[Evaluation, Values | None]:
    """Evaluate; with `watched` also keep the result of every node."""
    if not watched:
        return evaluate(ctx, request), None
    from gradcli.graphs import watching

    with watching() as values:
        return evaluate(ctx, request), values


def evaluate_along(
    ctx: AnyContext, request: Request, texts: Iterable[str]
) -> tuple[Evaluation, Values, Values]:
    """Evaluate in forward mode: also the result of every node, and its tangent along the vectors."""
    from gradcli.commands.vector_option import vectors_of
    from gradcli.engine.core.tensor import edge
    from gradcli.graphs import watching
    from gradcli.transforms import forward_mode, forward_state

    variables, integers = read_variables(ctx, request)
    wanted = [n for n, t in variables.items() if t.requires_grad]
    vectors = vectors_of(texts, wanted, variables, request, integers)
    with forward_mode.taped_level():
        for name, vector in vectors.items():
            forward_state.carry(variables[name], vector)
        with watching() as values:
            found = run(request, variables, integers)
        made = {node: forward_mode.unpack_dual(t).tangent for node, t in values.items()}
    tangents = {node: t for node, t in made.items() if t is not None}
    return found, values, tangents | {edge(variables[n]): v for n, v in vectors.items()}


def graph_of(evaluation: Evaluation, tensors: Any, values: Values | None = None) -> Graph:
    """The backward graph of tensors of an evaluation, with the names of its tensors."""
    from gradcli.graphs import inspect

    found = {**evaluation.names, **evaluation.variables}
    names = {name: tensor for name, tensor in found.items() if hasattr(tensor, "requires_grad")}
    return inspect(tensors, source=evaluation.request.source, names=names, values=values)


def observed(
    run: Callable[[], None],
    evaluation: Evaluation,
    *,
    trace: bool,
    anomalies: bool,
    values: Values | None,
) -> Trace | None:
    """Run backward passes; give what happened if `trace`, raise the first anomaly if `anomalies`."""
    from gradcli.graphs import tracing

    graph = graph_of(evaluation, evaluation.value, values) if anomalies else None
    if graph is not None:  # before the pass frees what would tell why
        raise_anomaly(evaluation, graph, values)
    with tracing(evaluation.request.source, check=anomalies) as found:
        run()
    if graph is not None:
        raise_anomaly(evaluation, graph, values, found.recorder)
    return found if trace else None


def raise_at_orders(ctx: AnyContext, request: Request, order: int, cotangent: Any = None) -> None:
    """Raise the first anomaly of a run and of backward passes through backward passes, up to an order.

    cotangent: the text of the gradient that the first pass starts from; ones, where there is none.
    """
    from gradcli.commands.request_evaluation import cotangent_of
    from gradcli.engine.core.backward_pass import grad
    from gradcli.engine.registry.table import resolve
    from gradcli.graphs import tracing

    evaluation, values = evaluate_watched(ctx, request, True)
    raise_on_anomalies(evaluation, values)
    leaves = [t for t in evaluation.variables.values() if t.requires_grad]
    given = cotangent_of(evaluation, cotangent) if cotangent is not None else None
    tensors = [evaluation.tensor("derivative")]
    for _ in range(order):
        found: list[Any] = []
        for tensor in tensors:
            if not tensor.requires_grad:
                continue
            start = resolve("ones_like")(tensor.detach()) if given is None else given
            graph = graph_of(evaluation, tensor, values)
            with tracing(request.source, check=True, span_of=_spans(graph)) as passed:
                found += grad(tensor, leaves, start, create_graph=True, allow_unused=True)
            raise_anomaly(evaluation, graph, values, passed.recorder)
        tensors, given = [t for t in found if t is not None], None


def _spans(graph: Graph) -> Callable[[Any], tuple[int, int] | None]:
    """The place in the source of each node of a graph."""

    def of(node: Any) -> tuple[int, int] | None:
        number = graph.describer.id_of(node)
        return getattr(node, "span", None) if number is None else graph.describer.span(number)

    return of


def raise_on_anomalies(evaluation: Evaluation, values: Values | None) -> None:
    """Raise the first anomaly of the forward pass; a value that no variable made is looked at too."""
    from gradcli.graphs import nonfinite

    value = evaluation.value
    tensors = [
        t for t in (value if isinstance(value, tuple) else (value,)) if hasattr(t, "grad_fn")
    ]
    raise_anomaly(evaluation, graph_of(evaluation, tuple(tensors), values), values)
    wrong = next(filter(None, map(nonfinite.wrong, tensors)), None)
    if wrong:
        raise evaluation.error_for(RuntimeError(f"the value has {wrong} elements"))


def _with_form(remedy: str, form: str) -> str:
    """A remedy with a form that was run in the place of what it proposes in general; its cause stays."""
    cause = re.match(r"((?:[^:(]|\([^)]*\))*): ", remedy)
    return "; ".join(filter(None, (cause and cause[1], form))) if form else remedy


def raise_anomaly(
    evaluation: Evaluation, graph: Graph, values: Values | None, recorder: Any = None
) -> None:
    """Raise the first anomaly of the forward pass, or of the backward pass that a recorder has heard."""
    from gradcli.commands.kink_notes import better_form
    from gradcli.graphs import find_anomaly
    from gradcli.language.located_errors import LanguageError

    found = find_anomaly(graph, values=values, recorder=recorder)
    if found is not None:
        raise LanguageError(
            found.message,
            kind="anomaly",
            source=evaluation.request.source,
            span=found.span,
            hint=_with_form(found.remedy, better_form(evaluation)) or None,
            notes=tuple(f"{name} = {text}" for name, text in found.inputs.items()),
            usage=False,
        )

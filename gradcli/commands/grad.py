"""`gradcli grad EXPR`: forward, backward, then the gradients of the leaves and of the retained names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gradcli.commands import completers, output
from gradcli.commands.backward import backward, retained, seed_of
from gradcli.commands.evaluation import Evaluation
from gradcli.commands.inspection import evaluate_watched, observed
from gradcli.commands.options import (
    ExpressionCommand,
    Request,
    Whole,
    array_options,
    drawn_option,
    expression_options,
    name_list,
    uncertainty_options,
)
from gradcli.commands.planned import (
    by_rows_option,
    cluster_options,
    evaluate_planned,
    large_table,
    plan_option,
    write_plan,
)

if TYPE_CHECKING:
    from gradcli.commands.uncertainty import Uncertainties


class GradCommand(ExpressionCommand):
    """Takes values with an uncertainty, too."""

    propagates = True


@click.command(
    "grad",
    cls=GradCommand,
    epilog="""\b
Examples:
  gradcli grad "2*dot(x,x)" --x 0,1,2,3
  gradcli grad "y = a*x; y + b" --x 3 --a 4 --b 5 --retain y --value
  gradcli grad "x*x" --x 1,2 --seed ones
  gradcli grad "sum((a*b)**2)" --a 1,2 --b 2,4 --trace
  gradcli grad "4*pi**2*L/T**2" --L 0.994±0.002 --T "2.003(5)" --budget""",
)
@expression_options
@drawn_option
@array_options
@click.option("--seed", "--gradient", metavar="VALUE", help="Seed gradient; `ones` has any shape.")
@click.option(
    "--retain",
    "retain_names",
    metavar="NAMES|all",
    multiple=True,
    shell_complete=completers.assigned,
    help="Gradients of these names too.",
)
@click.option(
    "--passes",
    metavar="N",
    type=Whole(1),
    default=1,
    help="Backpropagate N times; gradients add up.",
)
@click.option(
    "--order", metavar="N", type=Whole(1), default=1, help="Differentiate N times by each variable."
)
@click.option("--retain-graph", is_flag=True, help="Keep the graph for another pass.")
@click.option("--create-graph", is_flag=True, help="Record the backward pass itself.")
@click.option("--value", "show_value", is_flag=True, help="Print the value too.")
@click.option(
    "--hook",
    "hooks",
    metavar="'NAME: EXPR of grad'",
    multiple=True,
    help="Replace NAME's gradient on its way.",
)
@click.option("--detect-anomaly", is_flag=True, help="Refuse NaN and infinity; say where from.")
@click.option("--trace", "show_trace", is_flag=True, help="One row a step of the backward pass.")
@uncertainty_options
@plan_option
@by_rows_option
@cluster_options
@click.pass_context
def command(
    ctx: click.Context,
    request: Request,
    seed: str | None,
    retain_names: tuple[str, ...],
    passes: int,
    order: int,
    retain_graph: bool,
    create_graph: bool,
    show_value: bool,
    hooks: tuple[str, ...],
    detect_anomaly: bool,
    show_trace: bool,
    uncertainties: tuple[str, ...],
    covariances: tuple[str, ...],
    budget: bool,
    plan: bool | None,
    by_rows: bool | None,
    workers: int | None,
    cluster: str | None,
) -> None:
    """Print the gradient of EXPR with respect to its variables.

    Where values have an uncertainty (0.994±0.002, 0.994+-0.002, 0.994(2)), that of EXPR is printed first.
    """
    by_rows = by_rows or (True if workers or cluster else by_rows)
    if (table := large_table(request, by_rows)) is not None:
        altered = {
            "--passes": passes > 1,
            "--order": order > 1,
            "--hook": bool(hooks),
            "--retain": bool(retain_names),
            "--retain-graph": retain_graph,
            "--create-graph": create_graph,
            "--detect-anomaly": detect_anomaly,
            "--trace": show_trace,
            "an uncertainty": bool(request.uncertainties or uncertainties or covariances or budget),
        }
        given = [option for option, is_given in altered.items() if is_given]
        if by_rows or not given:
            from gradcli.commands.by_rows import grad_by_rows, runner

            with runner(workers, cluster) as runs:
                grad_by_rows(ctx, request, table, runs, seed, show_value, given)
            return
    errors: Uncertainties | None = None
    if request.uncertainties or uncertainties or covariances or budget:
        from gradcli.commands.uncertainty import Uncertainties

        altered = {
            "--seed": seed is not None,
            "--passes": passes > 1,
            "--order": order > 1,
            "--hook": bool(hooks),
        }
        errors = Uncertainties(request, uncertainties, covariances, budget, altered)
    if order > 1:
        from gradcli.commands.higher import write_higher

        other = bool(hooks or retain_names or detect_anomaly or show_trace or passes > 1)
        write_higher(ctx, request, order, seed, show_value, other)
        return
    names, every = _names_to_retain(request, retain_names)
    if hooks:
        from gradcli.commands.hooks import register_hooks, split_hooks

        hook_programs = split_hooks(request, hooks)
    tape = bool(hooks or detect_anomaly or show_trace or retain_graph or create_graph)
    tape = tape or bool(retain_names) or passes > 1
    planned, values = None, None
    if detect_anomaly:
        evaluation, values = evaluate_watched(ctx, request, detect_anomaly)
    else:
        planned = evaluate_planned(ctx, request, plan=plan, gradients=True, seed=seed, tape=tape)
        evaluation = planned.evaluation
    evaluation.tensor("gradient")
    if hooks:
        register_hooks(evaluation, hook_programs)
    intermediates = retained(evaluation, names, every)
    gradient = seed_of(evaluation, seed)
    trace = None
    if planned is None or not planned.differentiated:
        trace = observed(
            lambda: backward(
                evaluation,
                gradient,
                passes=passes,
                retain_graph=retain_graph,
                create_graph=create_graph,
            ),
            evaluation,
            trace=show_trace,
            anomalies=detect_anomaly,
            values=values,
        )
    if errors is not None:
        errors.propagate(evaluation)
    lines = planned.lines if planned is not None and plan else None
    if not detect_anomaly:
        _note_what_is_not_finite(evaluation, intermediates)
    if request.style.form == "json":
        found = to_json(evaluation, intermediates, gradient, passes)
        if errors is not None:
            found = errors.to_json(found)
        if trace is not None:
            found["trace"] = trace.to_json()
        if lines is not None:
            found["plan"] = lines
        output.write_json(found)
        return
    write_plan(lines, request.style)
    if trace is not None and request.style.form == "text":
        output.write_drawing(trace, request.style)
    results: list[tuple[str | None, Any]] = []
    if errors is not None:
        results.extend(errors.results(request.style))
    elif show_value:
        results.append(("value", evaluation.value))
    for name, tensor in [*_reached(evaluation).items(), *intermediates.items()]:
        if errors is None or name not in errors.hidden:
            results.append((f"{name}.grad", tensor.grad))
    output.write_results(results, request.style)


def _note_what_is_not_finite(evaluation: Evaluation, intermediates: dict[str, Any]) -> None:
    """Say once, besides the results, that a gradient is not finite, and what finds out why."""
    found = {**_reached(evaluation), **intermediates}
    wrong = [name for name, t in found.items() if t.grad is not None and not _is_finite(t.grad)]
    if wrong:
        shown = ", ".join(wrong[:3]) + (", …" if len(wrong) > 3 else "")
        what = "gradient is" if len(wrong) == 1 else "gradients are"
        output.note(f"the {what} not finite ({shown}): --detect-anomaly says where it came from")


def _is_finite(grad: Any) -> bool:
    import numpy as np

    array = grad.array
    return array.dtype.kind not in "fc" or bool(np.isfinite(array).all())


def to_json(
    evaluation: Evaluation, intermediates: dict[str, Any], seed: Any, passes: int
) -> dict[str, Any]:
    """The object that --json prints."""
    precision = evaluation.request.style.precision
    value = evaluation.value
    grads = {n: _grad_json(t, precision) for n, t in _reached(evaluation).items()}
    return {
        "expression": evaluation.request.source,
        **output.described(value, precision),
        "grad_fn": None if value.grad_fn is None else value.grad_fn.name(),
        "seed": 1.0 if seed is None else output.to_json(seed, precision),
        "passes": passes,
        "wrt": grads,
        "grads": grads,  # the name of 0.1.0
        "retained": {n: _grad_json(t, precision) for n, t in intermediates.items()},
    }


def _reached(evaluation: Evaluation) -> dict[str, Any]:
    """The leaves; of those that --load brought only the ones that the gradient reaches."""
    loaded = evaluation.request.loaded
    return {n: t for n, t in evaluation.leaves.items() if t.grad is not None or n not in loaded}


def _grad_json(tensor: Any, precision: int | None) -> dict[str, Any]:
    grad = tensor.grad
    found = output.described(tensor if grad is None else grad, precision, "grad")
    return {**found, "grad": None} if grad is None else found


def _names_to_retain(request: Request, texts: tuple[str, ...]) -> tuple[list[str], bool]:
    """The names in --retain, and whether it says `all`."""
    if any(text.strip() == "all" for text in texts):
        return [], True
    from gradcli.language.checks import assigned_names

    known = [*assigned_names(request.program), *request.names]
    what = "a name that the expression assigns"
    return name_list(texts, "--retain", known, what=what) or [], False

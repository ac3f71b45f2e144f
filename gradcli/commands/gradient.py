"""What `gradcli grad` does: forward, backward, then the gradients of the leaves and of the retained names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.commands import output
from gradcli.commands.backward import backward, retained, seed_of
from gradcli.commands.planned import evaluate_planned, large_table, write_plan
from gradcli.commands.request import Request, name_list

if TYPE_CHECKING:
    from gradcli.commands.evaluation import Evaluation
    from gradcli.commands.uncertainty import Uncertainties
    from gradcli.process import AnyContext


def run(
    ctx: AnyContext,
    request: Request,
    *,
    seed: str | None = None,
    retain_names: tuple[str, ...] = (),
    passes: int = 1,
    order: int = 1,
    retain_graph: bool = False,
    create_graph: bool = False,
    show_value: bool = False,
    hooks: tuple[str, ...] = (),
    detect_anomaly: bool = False,
    show_trace: bool = False,
    uncertainties: tuple[str, ...] = (),
    covariances: tuple[str, ...] = (),
    budget: bool = False,
    plan: bool | None = None,
    by_rows: bool | None = None,
    workers: int | None = None,
    cluster: str | None = None,
) -> None:
    """Print the gradient, as the options of `gradcli grad` say."""
    by_rows = by_rows or (True if workers or cluster else by_rows)
    uncertain = bool(request.uncertainties or uncertainties or covariances or budget)
    asked = {  # what only the tape of one evaluation has
        "--passes": passes > 1,
        "--order": order > 1,
        "--hook": bool(hooks),
        "--retain": bool(retain_names),
        "--retain-graph": retain_graph,
        "--create-graph": create_graph,
        "--detect-anomaly": detect_anomaly,
        "--trace": show_trace,
    }
    if (table := large_table(request, by_rows)) is not None:
        given = [option for option, is_given in asked.items() if is_given]
        given += ["an uncertainty"] * uncertain
        if by_rows or not given:
            from gradcli.commands.by_rows import grad_by_rows, runner

            with runner(workers, cluster) as runs:
                grad_by_rows(ctx, request, table, runs, seed, show_value, given)
            return
    errors: Uncertainties | None = None
    if uncertain:
        from gradcli.commands.uncertainty import Uncertainties

        altered = {o: asked[o] for o in ("--passes", "--order", "--hook")}
        altered = {"--seed": seed is not None, **altered}
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
    planned, values = None, None
    if detect_anomaly:
        from gradcli.commands.inspection import evaluate_watched

        evaluation, values = evaluate_watched(ctx, request, detect_anomaly)
    else:
        tape = any(asked.values())
        planned = evaluate_planned(ctx, request, plan=plan, gradients=True, seed=seed, tape=tape)
        evaluation = planned.evaluation
    evaluation.tensor("gradient")
    if hooks:
        register_hooks(evaluation, hook_programs)
    intermediates = retained(evaluation, names, every)
    gradient = seed_of(evaluation, seed)
    trace = None
    if planned is None or not planned.differentiated:

        def propagate() -> None:
            how = {"retain_graph": retain_graph, "create_graph": create_graph}
            backward(evaluation, gradient, passes=passes, **how)

        if show_trace or detect_anomaly:
            from gradcli.commands.inspection import observed

            anomalies = detect_anomaly
            trace = observed(
                propagate, evaluation, trace=show_trace, anomalies=anomalies, values=values
            )
        else:
            propagate()
    if errors is not None:
        errors.propagate(evaluation)
    if not detect_anomaly:
        _note_what_is_not_finite(evaluation, intermediates)
    lines = planned.lines if planned is not None and plan else None
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
    _write(evaluation, intermediates, errors, show_value)


def _write(
    evaluation: Evaluation,
    intermediates: dict[str, Any],
    errors: Uncertainties | None,
    show_value: bool,
) -> None:
    """The results, a line each: the value if asked for, the gradients of the leaves, and of what is kept."""
    style = evaluation.request.style
    results: list[tuple[str | None, Any]] = []
    if errors is not None:
        results.extend(errors.results(style))
    elif show_value:
        results.append(("value", evaluation.value))
    for name, tensor in [*_reached(evaluation).items(), *intermediates.items()]:
        if errors is None or name not in errors.hidden:
            results.append((f"{name}.grad", tensor.grad))
    output.write_results(results, style)


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

"""`gradcli eval EXPR`: the value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.commands import output
from gradcli.commands.command_errors import usage
from gradcli.commands.compiled_evaluation import (
    evaluate_planned,
    large_table,
    rows_wanted,
    write_plan,
)
from gradcli.commands.declarations import (
    ANOMALY,
    ARRAYS,
    DRAWS,
    LARGE,
    UNCERTAINTY,
    Options,
    declare,
)
from gradcli.commands.inspected import evaluate_watched, raise_on_anomalies

if TYPE_CHECKING:
    from gradcli.commands.request import Request
    from gradcli.engine.system.process import AnyContext


@declare(
    "eval",
    *(*ARRAYS, ANOMALY, *UNCERTAINTY, DRAWS, *LARGE),
    examples=(
        'gradcli eval "(x+a).mean()" --x 3 --a 4,2',
        'gradcli eval "linalg.inv(m) @ v" --m "2,1;1,3" --v 1,0',
        'gradcli eval "softmax(x, dim=0)" --x @logits.csv --precision 4',
    ),
    propagates=True,
)
def command(ctx: AnyContext, request: Request, options: Options) -> None:
    """Print the value of EXPR; with its uncertainty if variables have one."""
    by_rows, anomalies = rows_wanted(options), options.detect_anomaly
    said = request.uncertainties or options.uncertainty or options.covariance or options.budget
    said = said or options.monte_carlo
    table = None if said else large_table(request, by_rows)
    if table is not None and (by_rows or not anomalies):
        from gradcli.commands.large_columns import eval_by_rows, runner

        if anomalies:
            raise usage("--detect-anomaly does not go with --by-rows", hint="leave out one of them")
        with runner(options) as runs:
            eval_by_rows(ctx, request, table, runs)
        return
    if any("@" in text for text in request.texts.values()):
        from gradcli.commands.uncertainty import take_from_cells

        take_from_cells(request)
    if said or request.uncertainties:
        from gradcli.commands import grad

        request.no_grad = request.names
        given = Options(**{**vars(grad.command.defaults()), **vars(options)})
        grad.run(ctx, request, given, bare=True)
        return
    lines = None
    if anomalies:
        evaluation, watched = evaluate_watched(ctx, request, True)
        raise_on_anomalies(evaluation, watched)
    else:
        planned = evaluate_planned(ctx, request, plan=options.plan)
        evaluation, lines = planned.evaluation, planned.lines if options.plan else None
    value = evaluation.value
    style = request.style
    if style.form == "json":
        extra = {} if lines is None else {"plan": lines}
        output.write_json({"expression": request.source, **entry(value, style), **extra})
    else:
        write_plan(lines, style)
        output.write_results(results(value), style)


def results(value: Any) -> list[tuple[str | None, Any]]:
    """The lines of a value: one, or one for each field of a named tuple or item of a tuple."""
    if value is None:
        return []
    if isinstance(value, tuple) and any(hasattr(item, "requires_grad") for item in value):
        names = getattr(value, "_fields", None) or getattr(value, "fields", None)
        return list(zip(names or [None] * len(value), value, strict=True))
    return [(None, value)]


def entry(value: Any, style: output.Style) -> dict[str, Any]:
    """The value's keys in the JSON object; a tuple of tensors has a list of such objects as value."""
    found = output.described(value, style.precision)
    if isinstance(value, tuple | list) and any(hasattr(v, "requires_grad") for v in value):
        found["value"] = [entry(item, style) for item in value]
    node = getattr(value, "grad_fn", None)
    found["requires_grad"] = bool(getattr(value, "requires_grad", False))
    found["grad_fn"] = None if node is None else node.name()
    return found

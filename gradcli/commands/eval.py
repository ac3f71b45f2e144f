"""`gradcli eval EXPR`: the value."""

from __future__ import annotations

from typing import Any

import click

from gradcli.commands import output
from gradcli.commands.command_errors import usage
from gradcli.commands.compiled_evaluation import (
    evaluate_planned,
    large_table,
    rows_wanted,
    write_plan,
)
from gradcli.commands.inspected import evaluate_watched, raise_on_anomalies
from gradcli.commands.options import (
    ExpressionCommand,
    array_options,
    by_rows_option,
    cluster_options,
    drawn_option,
    expression_options,
    plan_option,
)
from gradcli.commands.request import Request


@click.command(
    "eval",
    cls=ExpressionCommand,
    epilog="""\b
Examples:
  gradcli eval "(x+a).mean()" --x 3 --a 4,2
  gradcli eval "linalg.inv(m) @ v" --m "2,1;1,3" --v 1,0
  gradcli eval "softmax(x, dim=0)" --x @logits.csv --precision 4""",
)
@expression_options
@drawn_option
@array_options
@click.option("--detect-anomaly", is_flag=True, help="Refuse NaN and infinity; say where from.")
@plan_option
@by_rows_option
@cluster_options
@click.pass_context
def command(
    ctx: click.Context,
    request: Request,
    detect_anomaly: bool,
    plan: bool | None,
    by_rows: bool | None,
    workers: int | None,
    cluster: str | None,
) -> None:
    """Print the value of EXPR."""
    by_rows = rows_wanted(by_rows, workers, cluster)
    if (table := large_table(request, by_rows)) is not None and (by_rows or not detect_anomaly):
        from gradcli.commands.large_columns import eval_by_rows, runner

        if detect_anomaly:
            raise usage("--detect-anomaly does not go with --by-rows", hint="leave out one of them")
        with runner(workers, cluster) as runs:
            eval_by_rows(ctx, request, table, runs)
        return
    lines = None
    if detect_anomaly:
        evaluation, watched = evaluate_watched(ctx, request, detect_anomaly)
        raise_on_anomalies(evaluation, watched)
    else:
        planned = evaluate_planned(ctx, request, plan=plan)
        evaluation, lines = planned.evaluation, planned.lines if plan else None
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

"""`gradcli jvp EXPR`: the derivative along a direction, by forward mode."""

from __future__ import annotations

from typing import Any

import click

from gradcli.commands import matrix, output
from gradcli.commands.compiled_evaluation import large_table
from gradcli.commands.options import (
    ExpressionCommand,
    array_options,
    by_rows_option,
    drawn_option,
    expression_options,
)
from gradcli.commands.request import Request


@click.command(
    "jvp",
    cls=ExpressionCommand,
    epilog="""\b
Examples:
  gradcli jvp "sin(x)" --x 0,1 --vector 1,0
  gradcli jvp "x*y" --x 2 --y 3 --vector x=1
""",
)
@expression_options
@drawn_option
@array_options
@matrix.vector_option("The direction, of the variable's shape, or ones.")
@click.option("--value", "show_value", is_flag=True, help="Print the value too.")
@by_rows_option
@click.pass_context
def command(
    ctx: click.Context,
    request: Request,
    vectors: tuple[str, ...],
    show_value: bool,
    by_rows: bool | None,
) -> None:
    """Print the derivative of EXPR along a direction: its Jacobian times a vector.

    A variable without a vector stays where it is.
    """
    if (table := large_table(request, by_rows)) is not None:
        from gradcli.commands.large_columns import jvp_by_rows
        from gradcli.streaming.passes import Threads

        jvp_by_rows(ctx, request, table, Threads(), vectors, show_value)
        return
    from gradcli.transforms import traced_matrices

    evaluation, start = matrix.evaluated(ctx, request)
    evaluation.tensor("derivative")
    wanted, tensors = matrix.tracked(evaluation)
    if not vectors:
        raise matrix.no_direction(wanted)
    given = matrix.vectors_of(vectors, evaluation, wanted)
    with matrix.again(evaluation, start):
        value, found = traced_matrices.jvp(request.program, tensors, given, request.loaded)
    precision = request.style.precision
    results: list[tuple[str, Any]] = [("value", value)] if show_value else []

    def as_object() -> dict[str, Any]:
        directions = {n: output.to_json(v, precision) for n, v in given.items()}
        return {
            **output.described(value, precision),
            "jvp": output.to_json(found, precision),
            "wrt": {n: {"vector": v} for n, v in directions.items()},
            "vector": directions,  # the name of 0.1.0
        }

    matrix.write(request, [*results, ("jvp", found)], as_object)

"""`gradcli jvp EXPR`: the derivative along a direction, by forward mode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.commands import matrix, output
from gradcli.commands.compiled_evaluation import large_table
from gradcli.commands.declarations import (
    ARRAYS,
    BY_ROWS,
    DRAWN,
    EXPRESSION,
    VALUE,
    Options,
    declare,
)

if TYPE_CHECKING:
    from gradcli.commands.request import Request
    from gradcli.system.process import AnyContext


@declare(
    "jvp",
    *(*EXPRESSION, DRAWN, *ARRAYS),
    matrix.vector_option("The direction, of the variable's shape, or ones."),
    *(VALUE, BY_ROWS),
    examples=(
        'gradcli jvp "sin(x)" --x 0,1 --vector 1,0',
        'gradcli jvp "x*y" --x 2 --y 3 --vector x=1',
    ),
)
def command(ctx: AnyContext, request: Request, options: Options) -> None:
    """Print the derivative of EXPR along a direction: its Jacobian times a vector.

    A variable without a vector stays where it is.
    """
    if (table := large_table(request, options.by_rows)) is not None:
        from gradcli.commands.large_columns import jvp_by_rows
        from gradcli.streaming.passes import Threads

        jvp_by_rows(ctx, request, table, Threads(), options.vectors, options.show_value)
        return
    from gradcli.transforms import traced_matrices

    evaluation, start = matrix.evaluated(ctx, request)
    evaluation.tensor("derivative")
    wanted, tensors = matrix.tracked(evaluation)
    if not options.vectors:
        raise matrix.no_direction(wanted)
    given = matrix.vectors_of(options.vectors, evaluation, wanted)
    with matrix.again(evaluation, start):
        value, found = traced_matrices.jvp(request.program, tensors, given, request.loaded)
    precision = request.style.precision
    results: list[tuple[str, Any]] = [("value", value)] if options.show_value else []

    def as_object() -> dict[str, Any]:
        directions = {n: output.to_json(v, precision) for n, v in given.items()}
        return {
            **output.described(value, precision),
            "jvp": output.to_json(found, precision),
            "wrt": {n: {"vector": v} for n, v in directions.items()},
            "vector": directions,  # the name of 0.1.0
        }

    matrix.write(request, [*results, ("jvp", found)], as_object)

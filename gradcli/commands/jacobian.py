"""`gradcli jacobian EXPR`: the derivative of every element of the value by every element of a variable."""

from __future__ import annotations

from typing import Any

import click

from gradcli.commands import matrix, output
from gradcli.commands.evaluation import ENGINE_ERRORS, evaluate
from gradcli.commands.options import ExpressionCommand, Request, expression_options


@click.command(
    "jacobian", cls=ExpressionCommand, epilog='Example: gradcli jacobian "sin(x)*sum(x)" --x 1,2,3'
)
@expression_options
@matrix.vector_option("The Jacobian times this vector, without the matrix.")
@click.option(
    "--mode",
    metavar="MODE",
    type=click.Choice(["auto", "forward", "reverse"]),
    default="auto",
    help="forward (columns), reverse (rows) or auto (the fewer).",
)
@click.pass_context
def command(ctx: click.Context, request: Request, vectors: tuple[str, ...], mode: str) -> None:
    """Print the Jacobian of EXPR by each variable.

    Its shape is the value's, then the variable's.
    """
    from gradcli.calculus import matrices

    evaluation = evaluate(ctx, request)
    value = evaluation.tensor("Jacobian")
    wanted = matrix.tracked(evaluation)
    tensors = {n: t.detach() for n, t in evaluation.variables.items()}
    precision = request.style.precision
    if vectors:
        given = matrix.vectors_of(vectors, evaluation, wanted)
        try:
            _, found = matrices.jvp(request.program, tensors, given, request.loaded)
        except ENGINE_ERRORS as error:
            raise evaluation.refused(error) from error
        made: dict[str, Any] = {"jvp": output.to_json(found, precision)}
        matrix.write(request, [("jvp", found)], made)
        return
    try:
        found = matrices.jacobian(
            request.program, tensors, wanted, request.loaded, None if mode == "auto" else mode
        )
    except ENGINE_ERRORS as error:
        raise evaluation.refused(error) from error
    matrix.note_slow(found.slow)
    made = {
        "wrt": {n: output.to_json(j, precision) for n, j in found.by.items()},
        "shape": list(value.shape),
        "method": found.method,
    }
    matrix.write(request, [(f"{n}.jacobian", j) for n, j in found.by.items()], made)

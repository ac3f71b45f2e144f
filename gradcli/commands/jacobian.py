"""`gradcli jacobian EXPR`: the derivative of every element of the value by every element of a variable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.commands import matrix, output
from gradcli.commands.command_errors import usage
from gradcli.commands.declarations import ARRAYS, DRAWN, EXPRESSION, Option, Options, declare

if TYPE_CHECKING:
    from gradcli.commands.request import Request
    from gradcli.system.process import AnyContext


@declare(
    "jacobian",
    *(*EXPRESSION, DRAWN, *ARRAYS),
    matrix.vector_option("The Jacobian times this vector, without the matrix."),
    Option(
        "--mode MODE",
        "forward (columns), reverse (rows) or auto (the fewer).",
        choices=("auto", "forward", "reverse"),
        default="auto",
    ),
    matrix.SPARSE,
    examples=(
        'gradcli jacobian "sin(x)*sum(x)" --x 1,2,3',
        'gradcli jacobian "tanh(A@x)" --x 1,2 --A "1,2;3,4" --wrt x',
    ),
)
def command(ctx: AnyContext, request: Request, options: Options) -> None:
    """Print the Jacobian of EXPR by each variable.

    Its shape is the value's, then the variable's.
    """
    from gradcli.transforms import traced_matrices

    if options.sparse:
        matrix.raise_on_sparse(request.style)
    evaluation, start = matrix.evaluated(ctx, request)
    value = evaluation.tensor("Jacobian")
    wanted, tensors = matrix.tracked(evaluation)
    precision = request.style.precision
    if options.sparse and (options.vectors or options.mode == "forward"):
        raise usage(
            f"--sparse does not go with {'--vector' if options.vectors else '--mode forward'}",
            hint="leave one of them out",
        )
    if options.vectors:
        given = matrix.vectors_of(options.vectors, evaluation, wanted)
        with matrix.again(evaluation, start):
            _, found = traced_matrices.jvp(request.program, tensors, given, request.loaded)
        matrix.write(
            request,
            [("jvp", found)],
            lambda: {
                **output.described(value, precision),
                "jvp": output.to_json(found, precision),
                "wrt": {n: {"vector": output.to_json(v, precision)} for n, v in given.items()},
            },
        )
        return
    chosen = None if options.mode == "auto" else options.mode
    with matrix.again(evaluation, start):
        if options.sparse:
            found = traced_matrices.sparse_jacobian(
                request.program, tensors, wanted, request.loaded
            )
        else:
            found = traced_matrices.jacobian(
                request.program, tensors, wanted, request.loaded, chosen
            )
    matrix.note_slow(found.slow)

    def as_object() -> dict[str, Any]:
        return {
            **output.described(value, precision),
            "wrt": {n: {"jacobian": matrix.to_json(j, precision)} for n, j in found.by.items()},
            "method": found.method,
        }

    matrix.write(request, [(f"{n}.jacobian", j) for n, j in found.by.items()], as_object)

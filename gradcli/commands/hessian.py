"""`gradcli hessian EXPR`: the second derivatives of a scalar."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.commands import matrix, output
from gradcli.commands.command_errors import usage
from gradcli.commands.declarations import ARRAYS, DRAWN, EXPRESSION, Options, declare

if TYPE_CHECKING:
    from gradcli.commands.request import Request
    from gradcli.system.process import AnyContext


@declare(
    "hessian",
    *(*EXPRESSION, DRAWN, *ARRAYS),
    matrix.vector_option("The Hessian times this vector, without the matrix."),
    matrix.SPARSE,
    examples=(
        'gradcli hessian "x[0]**2*x[1]" --x 2,3',
        'gradcli hessian "x@B@x" --x 1,2 --B "1,2;3,4" --wrt x',
    ),
)
def command(ctx: AnyContext, request: Request, options: Options) -> None:
    """Print the Hessian of EXPR, whose value is a scalar.

    With several variables there is a line for each pair of them: `x.y.hessian` differentiates by x,
    then by y.
    """
    from gradcli.transforms import traced_matrices

    if options.sparse:
        matrix.raise_on_sparse(request.style)
    evaluation, start = matrix.evaluated(ctx, request)
    value = evaluation.tensor("Hessian")
    if value.numel() != 1:
        raise evaluation.error_for(
            RuntimeError("the Hessian is that of a scalar"),
            f"the value has shape {tuple(value.shape)}: take its sum(), or see gradcli jacobian",
        )
    wanted, tensors = matrix.tracked(evaluation)
    precision = request.style.precision
    if options.sparse and options.vectors:
        raise usage("--sparse does not go with --vector", hint="leave one of them out")
    if options.vectors:
        given = matrix.vectors_of(options.vectors, evaluation, wanted)
        with matrix.again(evaluation, start):
            products = traced_matrices.hvp(request.program, tensors, given, request.loaded)

        def products_as_object() -> dict[str, Any]:
            shown = {n: output.to_json(v, precision) for n, v in products.items()}
            return {
                **output.described(value, precision),
                "wrt": {n: {"hvp": v} for n, v in shown.items()},
                "hvp": shown,  # the name of 0.1.0
            }

        named = [(f"{n}.hvp", v) for n, v in products.items()]
        matrix.write(request, named, products_as_object)
        return
    with matrix.again(evaluation, start):
        found = traced_matrices.hessian(
            request.program, tensors, wanted, request.loaded, options.sparse
        )
    matrix.note_slow([name for row in found.values() for name in row.slow])

    def as_object() -> dict[str, Any]:
        form = matrix.to_json
        blocks = {n: {m: form(b, precision) for m, b in r.by.items()} for n, r in found.items()}
        return {
            **output.described(value, precision),
            "wrt": {n: {"hessian": row} for n, row in blocks.items()},
            "blocks": blocks,  # the name of 0.1.0
        }

    results = [
        (f"{n}.hessian" if len(found) == 1 else f"{n}.{m}.hessian", block)
        for n, row in found.items()
        for m, block in row.by.items()
    ]
    matrix.write(request, results, as_object)

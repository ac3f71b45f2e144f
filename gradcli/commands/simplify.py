"""`gradcli simplify EXPR`: the expression, shorter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradcli.commands.declarations import Options, declare
from gradcli.commands.formula_question import FORMULA, FormulaQuestion, format_of, located, squared
from gradcli.commands.free_points import point
from gradcli.commands.question import write
from gradcli.commands.request import Request

if TYPE_CHECKING:
    from gradcli.engine.system.process import AnyContext


@declare(
    "simplify",
    *FORMULA,
    examples=(
        'gradcli simplify "sin(x)**2 + cos(x)**2"',
        'gradcli simplify "sqrt(x**2)" --assume "x < 0"',
        'gradcli simplify "x**2 + y**2" --let "x=r*cos(t)" --let "y=r*sin(t)"',
    ),
    open_variables=True,
    puts_in="all",
)
def command(ctx: AnyContext, request: Request, options: Options) -> None:
    """Print EXPR in a shorter form, compared with EXPR at random points and sizes.

    The value of a variable may be an expression of other variables: --let "x=r*cos(t)".
    """
    format_of(request, options)
    where = squared(options.assume, request, point(ctx, request))
<<<<<<< HEAD
    try:
        found, made = printed_formula(request, where, [], simplification(), "eval", options)
    except NoExpression as error:
        raise error_at(error, source=request.source, span=error.span) from error
    write_notes(found, made, where)
    (text,) = made.by.values() if made.by else ("",)
    if options.format == "json":
        shapes = {n: list(a.shape) for n, a in where.arrays.items()}
        wrt = {name: {"shape": shape} for name, shape in shapes.items()}
        report = {
            "expression": request.source, "simplified": text, "wrt": wrt, "shapes": shapes,
        }  # fmt: skip
        shared = {"shared": dict(made.shared)} if made.shared else {}
        output.write_json({**report, "general": made.general, **shared})
    else:
        output.write(made.code or "\n".join([*made.lines, text]))
=======
    with located(request):
        answer = FormulaQuestion(request, where, **vars(options)).answered()
    answer.note()
    answer.about = {"simplified": "".join(answer.made.by.values())}
    write(answer)
>>>>>>> main

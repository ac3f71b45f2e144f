"""`gradcli simplify EXPR`: the expression, shorter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradcli.commands.declarations import Options, declare
from gradcli.commands.formula_question import (
    FORMULA,
    FormulaQuestion,
    format_of,
    located,
    squared,
    value_answer,
)
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
    with located(request):
        write(value_answer(FormulaQuestion(request, where, **vars(options))))

"""`gradcli jacobian`, `hessian` and `jvp`: derivatives as matrices, or along a direction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradcli.commands.answers import answer_to
from gradcli.commands.declarations import (
    ANOMALY,
    ARRAYS,
    BY_ROWS,
    LIKE,
    VALUE,
    Option,
    Options,
    declare,
)
from gradcli.commands.question import ALONG, HESSIAN, JACOBIAN, Question, write
from gradcli.language import tree_kinds

if TYPE_CHECKING:
    from gradcli.commands.request import Request
    from gradcli.engine.system.process import AnyContext
    from gradcli.language.program import Program

SPARSE = Option("--sparse", "Print only elements that are not zero, each with its indices.")


def _vector(help: str) -> Option:
    return Option("--vector [NAME=]VALUE", help, many=True)


_LISTS = frozenset(tree_kinds.KIND[name] for name in ("list", "tuple"))


def _ending_in_a_vector(program: Program) -> Program:
    """A program that ends in a list or a tuple, as one that ends in a vector of its items."""
    if len(program) < 3 or program.kinds[len(program) - 3] not in _LISTS:
        return program
    from gradcli.language.parser import parse
    from gradcli.language.rewritten_sources import as_vector

    return parse(as_vector(program.source))


@declare(
    "jacobian",
    *ARRAYS,
    _vector("The Jacobian times this vector, without the matrix."),
    Option(
        "--mode MODE",
        "Compute by columns (forward), by rows (reverse), or by the fewer (auto).",
        choices=("auto", "forward", "reverse"),
        default="auto",
    ),
    *(SPARSE, ANOMALY, LIKE),
    examples=(
        'gradcli jacobian "sin(x)*sum(x)" --x 1,2,3',
        'gradcli jacobian "tanh(A@x)" --x 1,2 --A "1,2;3,4" --wrt x',
    ),
)
def jacobian(ctx: AnyContext, request: Request, options: Options) -> None:
    """Print the Jacobian of EXPR: the derivative of each element by each variable.

    Its shape is the shape of EXPR followed by the shape of the variable. A list or a tuple of numbers,
    `[x*y, sin(x)]`, is a vector: a row for each of them.
    """
    request.program = _ending_in_a_vector(request.program)
    write(answer_to(Question(JACOBIAN, ctx, request, options)))


@declare(
    "hessian",
    *ARRAYS,
    _vector("The Hessian times this vector, without the matrix."),
    *(SPARSE, ANOMALY, LIKE),
    examples=(
        'gradcli hessian "x[0]**2*x[1]" --x 2,3',
        'gradcli hessian "x@B@x" --x 1,2 --B "1,2;3,4" --wrt x',
    ),
)
def hessian(ctx: AnyContext, request: Request, options: Options) -> None:
    """Print the Hessian of EXPR, whose value is a scalar.

    With several variables there is a line for each pair of them: `x.y.hessian` differentiates by x,
    then by y. --csv has one matrix of all, a row and a column for each element.
    """
    write(answer_to(Question(HESSIAN, ctx, request, options)))


@declare(
    "jvp",
    *ARRAYS,
    _vector("The direction, of the variable's shape, or ones."),
    *(VALUE, ANOMALY, LIKE, BY_ROWS),
    examples=(
        'gradcli jvp "sin(x)" --x 0,1 --vector 1,0',
        'gradcli jvp "x*y" --x 2 --y 3 --vector x=1',
    ),
)
def jvp(ctx: AnyContext, request: Request, options: Options) -> None:
    """Print the derivative of EXPR along a direction: its Jacobian times a vector.

    A variable without a vector stays where it is. A list of numbers is a vector, as for `jacobian`.
    """
    request.program = _ending_in_a_vector(request.program)
    write(answer_to(Question(ALONG, ctx, request, options)))

"""`gradcli grad EXPR`: forward, backward, then the gradients of the leaves and of the retained names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradcli.commands.answers import answer_to
from gradcli.commands.declarations import (
    ANOMALY,
    ARRAYS,
    DRAWS,
    LARGE,
    LIKE,
    SEED,
    TYPESET,
    UNCERTAINTY,
    VALUE,
    Option,
    Options,
    declare,
)
from gradcli.commands.question import GRADIENT, Question, write

if TYPE_CHECKING:
    from gradcli.commands.request import Request
    from gradcli.engine.system.process import AnyContext


@declare(
    "grad",
    *ARRAYS,
    TYPESET,
    Option(SEED, "Gradient to start from, in EXPR's shape; `ones`: ones."),
    Option(
        "--retain NAMES|all",
        "Print the gradients of these intermediate names too.",
        many=True,
        complete="assigned",
    ),
    Option("--passes N", "Run the backward pass N times; gradients add up.", least=1, default=1),
    Option("--order N", "Differentiate N times by each variable.", least=1, default=1),
    Option("--retain-graph", "Keep what the nodes saved for another pass."),
    Option("--create-graph", "Record the backward pass, to differentiate it."),
    VALUE,
    Option(
        "--hook 'NAME: EXPR of grad'",
        "Replace the gradient that reaches NAME by EXPR.",
        many=True,
    ),
    ANOMALY,
    Option("--trace", "Print a row for each step of the backward pass."),
    LIKE,
    *(*UNCERTAINTY, DRAWS, *LARGE),
    examples=(
        'gradcli grad "2*dot(x,x)" --x 0,1,2,3',
        'gradcli grad "y = a*x; y + b" --x 3 --a 4 --b 5 --retain y --value',
        'gradcli grad "x*x" --x 1,2 --seed ones',
        'gradcli grad "sum((a*b)**2)" --a 1,2 --b 2,4 --trace',
        'gradcli grad "4*pi**2*L/T**2" --L 0.994±0.002 --T "2.003(5)" --budget',
    ),
    propagates=True,
)
def command(ctx: AnyContext, request: Request, options: Options) -> None:
    """Print the gradient of EXPR with respect to its variables.

    If values have an uncertainty (0.994±0.002, 0.994+-0.002, 0.994(2)), EXPR and its uncertainty are
    printed first.
    """
    write(answer_to(Question(GRADIENT, ctx, request, options)))

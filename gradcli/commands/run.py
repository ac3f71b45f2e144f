"""`gradcli run FILE|-`: a program; it prints what the notebook printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradcli.commands.answers import by_rows
from gradcli.commands.declarations import (
    BY_ROWS,
    CLUSTER,
    COLOUR,
    MAX_STEPS,
    VARIABLES,
    Argument,
    Options,
    declare,
)
from gradcli.commands.question import RUN, Question, displayed, write
from gradcli.commands.request import Request
from gradcli.commands.request_evaluation import machine

if TYPE_CHECKING:
    from gradcli.engine.system.process import AnyContext


@declare(
    "run",
    Argument("FILE", name="path", required=True, complete="files"),
    *(*VARIABLES, COLOUR, MAX_STEPS, BY_ROWS, *CLUSTER),
    examples=(
        "gradcli run notebook.py --dtype float32",
        "gradcli run fit.py --x 0,1,2 --y 1,3,5",
        "echo 'print(arange(3.0))' | gradcli run -",
        "gradcli run descent.py --x @big.parquet:x --y @big.parquet:y --a 1 --b 0 --by-rows",
    ),
    operand="FILE",
)
def command(ctx: AnyContext, request: Request, options: Options) -> None:
    """Run the program in FILE (- for standard input).

    If the last line is an expression, its value is printed as in a notebook. Variables that the program
    reads but does not assign are options: --x 1,2,3.
    """
    question = Question(RUN, ctx, request, options)
    answer = by_rows(question)
    if answer is None:
        found = machine(ctx, request, max_steps=question.max_steps)
        found.run(request.program)
        answer = displayed(request, found.value)
    write(answer)

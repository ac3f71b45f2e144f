"""`gradcli eval EXPR`: the value."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gradcli.commands import output
from gradcli.commands.answers import answer_to
from gradcli.commands.declarations import (
    ANOMALY,
    ARRAYS,
    DRAWS,
    LARGE,
    TYPESET,
    UNCERTAINTY_OF_SEVERAL,
    UNIT,
    Options,
    declare,
)
from gradcli.commands.question import VALUE, Question, write

if TYPE_CHECKING:
    from gradcli.commands.request import Request
    from gradcli.engine.system.process import AnyContext


@declare(
    "eval",
    *(*ARRAYS, TYPESET, UNIT, ANOMALY, *UNCERTAINTY_OF_SEVERAL, DRAWS, *LARGE),
    examples=(
        'gradcli eval "(x+a).mean()" --x 3 --a 4,2',
        'gradcli eval "linalg.inv(m) @ v" --m "2,1;1,3" --v 1,0',
        'gradcli eval "softmax(x, dim=0)" --x @logits.csv --precision 4',
        'gradcli eval "4*pi**2*L/T**2" --L 0.994±0.002 --T 2.003±0.005 --format siunitx',
    ),
    propagates=True,
)
def command(ctx: AnyContext, request: Request, options: Options) -> None:
    """Print the value of EXPR; with its uncertainty if variables have one."""
    if found := re.fullmatch(r"[^,()[\]]*?(\d+),(\d+)[^,()[\]]*", request.source):
        output.note(f"a comma makes two values; for {found[1]}.{found[2]} add --decimal ,")
    answer = answer_to(Question(VALUE, ctx, request, options))
    if options.unit:
        from gradcli.commands.units import units_of

        answer.units = units_of(options.unit)
    write(answer)

"""An expression as it is typed, as LaTeX: for labels of pictures."""

from __future__ import annotations

import numpy as np

from gradcli.formulas.algebra.expressions import name
from gradcli.formulas.derive.differentiate import positions, reading
from gradcli.formulas.lift.lifting import Lifter, NoExpression
from gradcli.formulas.print.printed_text import spelled_out
from gradcli.language import parse
from gradcli.language.located_errors import OPERATION_ERRORS, LanguageError
from gradcli.transforms.traced_run import traced_run

LONGEST = 120  # letters of a label that is typeset


def latex_of(text: str) -> str | None:
    """An expression of numbers in LaTeX, its terms and factors as they stand; None of what is none."""
    if len(text) > LONGEST:
        return None
    try:
        program = parse(text)
        variables = {n: np.float64(0.5 + k / 7) for k, n in enumerate(program.free_variables())}
        with reading(program, variables, None) as (arrays, wanted), np.errstate(all="ignore"):
            result, trace = traced_run(program, arrays, wanted, True, {})
            value, places = trace.value_of(result), positions(program)
            if value.shape:
                return None
            known = [(v, name(n, (), places.get(n, -1))) for n, v in trace.inputs.items()]
            (made,) = Lifter(known).read([value])
            return spelled_out(made, "latex")
    except (LanguageError, NoExpression, *OPERATION_ERRORS):
        return None


__all__ = ["latex_of"]

r"""What SymPy prints in LaTeX, and what it comes to: random formulas in all its styles.

python tests/golden/record_sympys_latex.py writes sympys_latex.json, with SymPy's version. Left out:
`fold_short_frac`, which prints 1/(x*y) as `1 / x y`; and what is a number of the plane.
"""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import sympy as sp

NAMES = "x y z t a b k alpha beta theta omega lambda x_1 T_0 sigma mu phi q n m R C V_max hbar"
VALUES = (0.3, 0.55, 0.7, 1.2, 1.9)
STYLES = [
    {},
    {"mul_symbol": "dot"},
    {"mul_symbol": "times"},
    {"inv_trig_style": "full"},
    {"inv_trig_style": "power"},
    {"ln_notation": True},
    {"root_notation": False},
    {"fold_frac_powers": True},
    {"parenthesize_super": False},
    {"fold_func_brackets": True},
]
FUNCTIONS = [
    *(
        sp.sin,
        sp.cos,
        sp.tan,
        sp.exp,
        sp.log,
        sp.sqrt,
        sp.atan,
        sp.asin,
        sp.acos,
        sp.asinh,
        sp.sinh,
    ),
    *(sp.cosh, sp.tanh, sp.coth, sp.sech, sp.sec, sp.csc, sp.cot, sp.Abs, sp.sign, sp.erf, sp.erfc),
    *(sp.cbrt, sp.gamma),
]
WANTED = 400


def formula(draw: random.Random, depth: int) -> sp.Expr:
    """A formula of symbols and functions."""
    chance = draw.random()
    if depth == 0 or chance < 0.15:
        number = sp.Rational(draw.randint(1, 9), draw.randint(1, 7))
        return sp.Symbol(draw.choice(NAMES.split()), positive=True) if chance < 0.8 else number
    one = formula(draw, depth - 1)
    if chance < 0.7:
        two = formula(draw, depth - 1)
        return draw.choice((one + two, one - two, one * two, one * two, one / two))
    if chance < 0.8:
        powers = (2, 3, -1, sp.Rational(1, 2), sp.Rational(1, 3), -2, sp.Symbol("n", positive=True))
        return one ** draw.choice(powers)
    if chance < 0.84:
        return draw.choice((sp.Max, sp.Min))(one, formula(draw, depth - 1))
    return draw.choice(FUNCTIONS)(one)


def main() -> None:
    draw = random.Random(14)
    rows = []
    while len(rows) < WANTED:
        found = formula(draw, draw.randint(1, 4))
        text = sp.latex(found, **draw.choice(STYLES))
        free = sorted(found.free_symbols, key=str)
        values = {symbol: draw.choice(VALUES) for symbol in free}
        wanted = complex(found.evalf(subs=values)) if free else complex(math.nan)
        plain = not found.has(sp.zoo, sp.EulerGamma, sp.polygamma, sp.loggamma)
        if plain and math.isfinite(abs(wanted)) and not wanted.imag and abs(wanted) < 1e30:
            given = {str(symbol): value for symbol, value in values.items()}
            rows.append([text, given, wanted.real])
    written = {"sympy": sp.__version__, "rows": rows}
    Path(__file__).with_name("sympys_latex.json").write_text(json.dumps(written, indent=0) + "\n")


if __name__ == "__main__":
    main()

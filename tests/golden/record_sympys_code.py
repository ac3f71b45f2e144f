"""What SymPy prints for other systems, and what it comes to: Mathematica, Maple, MATLAB, R, Julia and so on.

python tests/golden/record_sympys_code.py writes sympys_code.json, with SymPy's version: random formulas, and
sums, products, derivatives, integrals and piecewise functions of them. Left out is what a printer cannot
print, which it says in a comment or by an error.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable
from pathlib import Path

import sympy as sp
from record_sympys_latex import VALUES, formula

PRINTERS: dict[str, Callable[[sp.Expr], str]] = {
    "sympy": str,
    "mathematica": sp.mathematica_code,
    "maple": sp.maple_code,
    "octave": sp.octave_code,
    "r": sp.rcode,
    "julia": sp.julia_code,
    "javascript": sp.jscode,
    "c": sp.ccode,
    "fortran": lambda e: sp.fcode(e, source_format="free", standard=95),
}
WANTED = 60  # of each printer
INDEX, PLACE = sp.Symbol("i", integer=True, positive=True), sp.Symbol("s", positive=True)


def structure(draw: random.Random) -> sp.Expr:
    """A sum, a product, a derivative, an integral, a choice, or a formula."""
    one, two = (formula(draw, draw.randint(1, 2)) for _ in range(2))
    name = sp.Symbol(draw.choice("xyz"), positive=True)
    last = draw.randint(2, 4)
    kinds: list[Callable[[], sp.Expr]] = [
        lambda: sp.Sum(one * name**INDEX, (INDEX, 1, last)),
        lambda: sp.Product(one + INDEX, (INDEX, 1, last)),
        lambda: sp.Derivative(one * sp.sin(name) * name, name),
        lambda: sp.Derivative(sp.exp(2 * name) * name, (name, 2)) + one,
        lambda: sp.Integral(one * PLACE**2, (PLACE, 0, name)),
        lambda: sp.Piecewise((one, name > 1), (two, True)),
        lambda: sp.Piecewise((one, name < sp.Rational(1, 2)), (two, name < 1), (one * two, True)),
        lambda: sp.Heaviside(name - sp.Rational(3, 5)) * one,
        lambda: sp.Mod(one, 2) + two,
        lambda: sp.besselj(draw.choice((0, 1)), name) * one,
        lambda: sp.atan2(one, name),
        lambda: sp.floor(3 * name) + sp.ceiling(one),
        lambda: sp.factorial(last) * one + sp.binomial(5, 2),
        lambda: sp.loggamma(name + 1) * one,
    ]
    return draw.choice(kinds)() if draw.random() < 0.5 else formula(draw, draw.randint(1, 3))


def main() -> None:
    rows = []
    for which, printer in PRINTERS.items():
        draw = random.Random(29)
        own: list[list[object]] = []
        while len(own) < WANTED:
            found = structure(draw)
            free = sorted(found.free_symbols, key=str)
            values = {symbol: draw.choice(VALUES) for symbol in free}
            try:
                wanted = complex(found.doit().evalf(subs=values)) if free else complex(math.nan)
                text = printer(found)
            except (NotImplementedError, TypeError, AttributeError, ValueError):
                continue
            if which == "julia" and "//" in text and not re.search(r"\.[*/^]|\?", text):
                continue  # `9 // 7`, which is Python's quotient without its rest
            if any(sign in text for sign in ("\n", "Not supported", "not supported")):
                continue
            plain = not found.has(sp.zoo, sp.EulerGamma, sp.polygamma)
            if plain and math.isfinite(abs(wanted)) and not wanted.imag and abs(wanted) < 1e30:
                given = {str(symbol): value for symbol, value in values.items()}
                own.append([which, text, given, wanted.real])
        rows += own
    written = {"sympy": sp.__version__, "rows": rows}
    Path(__file__).with_name("sympys_code.json").write_text(json.dumps(written, indent=0) + "\n")


if __name__ == "__main__":
    main()

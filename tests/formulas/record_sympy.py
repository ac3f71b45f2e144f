"""Record what SymPy says of the formulas: python tests/formulas/record_sympy.py (needs sympy).

For every scalar formula: each derivative's value at the point, to 17 digits, and the length of its text.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path

import sympy

HERE = Path(__file__).parent


def main() -> None:
    found = {}
    for line in (HERE / "formulas.tsv").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        name, formula, given = line.split("\t")
        values = {k: ast.literal_eval(v) for k, v in (p.split("=") for p in given.split())}
        if any(isinstance(v, list) for v in values.values()):
            continue
        symbols = {k: sympy.Symbol(k, positive=True) for k in values}
        space = {**symbols, "pi": sympy.pi}
        expression = sympy.sympify(formula, locals=space)
        at = {symbols[k]: sympy.Float(repr(v), 30) for k, v in values.items()}
        found[name] = {
            k: [float(expression.diff(s).evalf(17, subs=at)), len(str(expression.diff(s)))]
            for k, s in symbols.items()
        }
    (HERE / "sympy.json").write_text(json.dumps(found, indent=0) + "\n")


if __name__ == "__main__":
    main()

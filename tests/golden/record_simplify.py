"""Record how short SymPy's simplified derivatives are: python -m tests.golden.record_simplify (needs sympy).

Reads simplify.tsv (formula, variable) and writes into its third column the operations of
sympy.simplify(sympy.diff(formula)) with real symbols. The formulas are antiderivatives of Rubi's test suite
(https://rulebasedintegration.org, MIT licence): of Apostol's, Stewart's and Timofeev's books among others.
"""

from __future__ import annotations

from pathlib import Path

from tests.formulas.measure import operations
from tests.formulas.test_scalar_derivatives import rows, variables

TABLE = Path(__file__).parent / "simplify.tsv"


def main() -> None:
    import sympy

    lines = [line for line in TABLE.read_text().splitlines() if line.startswith("#")]
    for formula, by, *_ in rows(TABLE):
        symbols = {n: sympy.Symbol(n, real=True) for n in variables(formula)}
        slope = sympy.diff(sympy.sympify(formula, locals=symbols), symbols[by])
        lines.append(f"{formula}\t{by}\t{operations(str(sympy.simplify(slope)))}")
    TABLE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

"""Hold the derivatives of everyday formulas against SymPy's: python -m tests.formulas.measure_scalars

Needs sympy. Writes scalar_derivatives.tsv (formula, variable, operations of sympy.diff and of its simplify,
what gradcli prints) and high_orders.tsv (formula, characters of SymPy's eighth derivative), and prints the
means and what is longer than the better of the two.
"""

from __future__ import annotations

from tests.formulas.measure import operations
from tests.formulas.test_scalar_derivatives import HIGH, ORDER, SCALARS, printed, rows, variables


def main() -> None:
    import sympy

    head = [line for line in SCALARS.read_text().splitlines() if line.startswith("#")]
    lines, ours, best = [], 0, 0
    for formula in dict.fromkeys(row[0] for row in rows(SCALARS)):
        symbols = {n: sympy.Symbol(n, positive=True) for n in variables(formula)}
        for name, symbol in symbols.items():
            plain = sympy.diff(sympy.sympify(formula, locals=symbols), symbol)
            texts = [str(plain), str(sympy.simplify(plain))]
            own, counts = printed(formula, name), list(map(operations, texts))
            lines.append("\t".join([formula, name, *map(str, counts), own]))
            ours, best = ours + operations(own), best + min(counts)
            if operations(own) > min(counts):
                print(f"{formula} by {name}: {own}   SymPy: {min(texts, key=operations)}")
    SCALARS.write_text("\n".join([*head, *lines]) + "\n")
    print(f"{len(lines)} derivatives: {ours} operations, the better of SymPy's {best}")

    head = [line for line in HIGH.read_text().splitlines() if line.startswith("#")]
    lines = []
    for formula, *_ in rows(HIGH):
        x = sympy.Symbol("x", positive=True)
        size = len(str(sympy.diff(sympy.sympify(formula, locals={"x": x}), x, ORDER)))
        lines.append(f"{formula}\t{size}")
        print(f"order {ORDER} of {formula}: {len(printed(formula, 'x', ORDER))}, SymPy's {size}")
    HIGH.write_text("\n".join([*head, *lines]) + "\n")


if __name__ == "__main__":
    main()

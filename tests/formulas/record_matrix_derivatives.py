"""Write what gradcli prints into the tables: python -m tests.formulas.record_matrix_derivatives

Whoever records reads the difference: what was as short as the textbook's should stay so.
"""

from __future__ import annotations

from tests.formulas.test_matrix_derivatives import LAYERS, MATRICES, printed, rows


def main() -> None:
    for file in (MATRICES, LAYERS):
        head = [line for line in file.read_text().splitlines() if line.startswith("#")]
        lines = ["\t".join([*row[:-1], printed(*row[1:4])]) for row in rows(file)]
        file.write_text("\n".join([*head, *lines]) + "\n")


if __name__ == "__main__":
    main()

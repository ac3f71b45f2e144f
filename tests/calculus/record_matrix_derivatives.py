"""Write what gradcli prints into matrix_derivatives.tsv: python -m tests.calculus.record_matrix_derivatives

Whoever records reads the difference: what was as short as the textbook's should stay so.
"""

from __future__ import annotations

from tests.calculus.test_matrix_derivatives import FILE, ROWS, printed


def main() -> None:
    head = [line for line in FILE.read_text().splitlines() if line.startswith("#")]
    lines = ["\t".join([*row[:5], printed(row[1], row[2], row[3])]) for row in ROWS]
    FILE.write_text("\n".join([*head, *lines]) + "\n")


if __name__ == "__main__":
    main()

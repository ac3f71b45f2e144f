"""The rows of `map` and `root` for LaTeX: a `tabular` whose numbers are those of `typeset_results`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

from gradcli.commands.typeset_results import left_of, number, value_text
from gradcli.engine.system.visible import visible
from gradcli.tables.writing import Column, Sink

_OWN = ".uncertainty"  # of the column before


class TypesetRows(Sink):
    """A line a row; a number and its uncertainty, which are two columns elsewhere, are one cell."""

    def __init__(self, stream: BinaryIO, form: str, precision: int | None) -> None:
        super().__init__(stream, list, exact=False)
        self.form, self.precision, self.begun = form, precision, False

    def write(self, columns: Sequence[Column]) -> None:
        """Add rows."""
        names = [name for name, _ in columns]
        spreads = {k for k, name in enumerate(names) if k and name.endswith(_OWN)}
        kept = [k for k in range(len(names)) if k not in spreads]
        lines = [] if self.begun else [*self._head([names[k] for k in kept])]
        self.begun = True
        cells = [
            [*self._cells(columns[k][1], columns[k + 1][1] if k + 1 in spreads else None)]
            for k in kept
        ]
        lines += [" & ".join(row) + r" \\" for row in zip(*cells, strict=True)]
        self.stream.write((visible("\n".join(lines)) + "\n").encode() if lines else b"")

    def close(self) -> None:
        """End the table."""
        self.stream.write(b"\\hline\n\\end{tabular}\n" if self.begun else b"")
        super().close()

    def _head(self, names: Sequence[str]) -> Iterator[str]:
        yield rf"\begin{{tabular}}{{{'c' * len(names)}}}"
        yield r"\hline"
        yield " & ".join(f"${left_of(name, 'f')}$" for name in names) + r" \\"
        yield r"\hline"

    def _cells(self, data: Any, spread: Any) -> Iterator[str]:
        if hasattr(data, "cells"):
            data = data.cells()
        for k, cell in enumerate(data.tolist() if hasattr(data, "tolist") else data):
            text = self._text(cell, 0.0 if spread is None else float(spread[k]))
            if text.startswith(r"\text{"):
                yield text[6:-1]  # a table is text already
            else:
                yield text if text.startswith((r"\num", r"\complexnum")) else f"${text}$"

    def _text(self, cell: Any, error: float) -> str:
        if isinstance(cell, float):
            return number(cell, error, self.form, self.precision)
        text = "" if cell is None else str(cell)
        both = _apart(text)
        return value_text(text, self.form) if both is None else number(*both, self.form)


def _apart(text: str) -> tuple[float, float] | None:
    """(the value, its uncertainty) of a cell `1.00±0.01` or `1.00(1)`; None where it has none."""
    from gradcli.language.located_errors import LanguageError
    from gradcli.language.uncertain_values import split_uncertainty

    try:
        found = split_uncertainty(text)
        return None if found is None else (float(found[0]), float(found[1]))
    except (LanguageError, ValueError):
        return None


__all__ = ["TypesetRows"]

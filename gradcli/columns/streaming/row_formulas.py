"""Formulas of columns: the condition of `--where`, the `0.03*y` of `--sigma`, what `plot` draws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from gradcli import language
from gradcli.columns.streaming.mapped_program import Rows
from gradcli.language.located_errors import LanguageError


class Share(NamedTuple):
    """An uncertainty that is a part of the absolute value of what it belongs to: 0.05 for 5%."""

    part: float


class RowFormula:
    """An expression whose variables are columns, to be computed in every row.

    source: its text. columns: the variables, each with what the caller knows its column by. loaded: names
    that it may read besides.
    """

    def __init__(
        self,
        source: str,
        columns: Mapping[str, int],
        loaded: Mapping[str, Any] | None = None,
    ) -> None:
        self.source, self.columns, self.loaded = source, dict(columns), dict(loaded or {})

    def moved(self, places: Mapping[int, int]) -> RowFormula:
        """The same where the columns have other places."""
        columns = {name: places[place] for name, place in self.columns.items()}
        return RowFormula(self.source, columns, self.loaded)

    def values(self, columns: Mapping[str, Any], rows: int) -> dict[str, Any]:
        """The parts of the value by suffix ("" of a number, "[0]", … of a vector), each with its rows.

        columns: arrays by variable. Raises LanguageError.
        """
        program, loaded = language.parse(self.source), self.loaded

        def row(**values: Any) -> Any:
            found = language.run(program, {**loaded, **values}, write=lambda text: None).value
            return list(found) if isinstance(found, tuple | list) else found

        # `Rows` counts rows by its columns. A formula without one gets a column that nothing reads.
        if not columns:  # a constant, which is the same in every row
            columns = {"": np.zeros(rows)}
            found = Rows(lambda **_: row(), {}, (), True)(columns, rows)
        else:
            found = Rows(row, {}, (), True)(columns, rows)
        if found.refused:
            error = found.refused[min(found.refused)]
            if isinstance(error, LanguageError):
                raise error
            raise LanguageError(
                str(error), kind="value", usage=False, source=self.source, span=program.value_span
            )
        return {_suffix(name): array for name, array in found.values.items()}

    def truths(self, columns: Mapping[str, Any], rows: int, option: str) -> Any:
        """Whether the condition holds, row by row. option: which says it."""
        found = self.values(columns, rows) if rows else {}
        if found and list(found) != [""]:
            raise LanguageError(
                f"{option}: the condition of a row is true or false", kind="usage", usage=True
            )
        return found[""].astype(bool) if found else np.zeros(rows, bool)


def _suffix(name: str) -> str:
    """`[0]` of the items of a list as of the elements of a vector."""
    return f"[{name[1:]}]" if name[:1] == "_" else name


def whole_numbers(name: str, array: Any) -> Any:
    """A column that is an index, as integers. Raises LanguageError where it is none."""
    wrong = np.flatnonzero(~(array == np.round(array)).reshape(len(array), -1).all(1))
    if len(wrong):
        raise LanguageError(
            f"{name} is an index, and its row {wrong[0] + 1} is {array[wrong[0]]}",
            kind="value",
            usage=False,
            hint="an index is a whole number: 0, 1, 2, …",
        )
    return array.astype(np.int64)

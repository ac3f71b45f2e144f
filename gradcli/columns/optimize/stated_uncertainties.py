"""Standard uncertainties as users state them: a number, a column, a formula of columns, a share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from gradcli.columns.streaming.row_formulas import RowFormula
from gradcli.language.located_errors import LanguageError

Array = Any


class Stated(NamedTuple):
    """One of five. column: its place. share: of the absolute value that it belongs to, as 0.03 for 3%.
    counts: whether it is the square root of that value, which is a Poisson count's standard deviation.

    name: the column that it belongs to, for what an error says.
    """

    number: float | None = None
    column: int | None = None
    formula: RowFormula | None = None
    share: float | None = None
    counts: bool = False
    name: str | None = None

    @property
    def places(self) -> list[int]:
        """The columns that it reads."""
        if self.formula is not None:
            return list(self.formula.columns.values())
        return [] if self.column is None else [self.column]

    def of(
        self,
        read: Mapping[int, Array],
        rows: int,
        value: Callable[[], Array],
        signed: bool = False,
    ) -> Array:
        """The uncertainties of rows, or of their components. read: columns by place. value: what a share
        is of. signed: they are covariances or correlations. Raises LanguageError where one is not above 0."""
        if self.share is not None:
            found = self.share * np.abs(value())
        elif self.counts:
            counted = np.asarray(value(), np.float64)
            found = np.sqrt(np.where(counted < 0, np.nan, counted))
            return checked(
                found, self.name or "y", "gradcli fit has --likelihood poisson for few counts"
            )
        elif self.formula is not None:
            named = {n: read[i] for n, i in self.formula.columns.items()}
            parts = list(self.formula.values(named, rows).values())
            found = parts[0] if len(parts) == 1 else np.stack(parts, 1)
        elif self.column is not None:
            found = read[self.column]
        else:
            found = np.full(rows, self.number)
        return np.asarray(found, np.float64) if signed else checked(found, self.name or "y")


def checked(found: Array, name: str = "y", instead: str = "") -> Array:
    """The uncertainties, all of which are above 0. Raises LanguageError with the first row that is not.

    name: the column that they belong to. instead: another way.
    """
    flat = np.asarray(found).reshape(len(found), -1)
    wrong = np.flatnonzero(~(flat > 0).all(1))
    if len(wrong):
        row = flat[wrong[0]]
        bad = row[~(row > 0)][0]
        raise LanguageError(
            f"an uncertainty is {bad:g} in row {wrong[0] + 1}: a weight would be "
            + ("infinite" if bad == 0 else "none"),
            kind="usage",
            hint=instead
            or f"leave out such rows by --where, or set a floor, as in --sigma 'sqrt({name} + 1)'",
        )
    return found


__all__ = ["Stated", "checked"]

"""What is wrong with a table: in which file, on which line, in which column."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gradcli.engine.system import GradcliError


class TableError(GradcliError):
    """message, and what shows it: a line of the file with the place in it.

    wrong, known: a name that is not there, and those that are. input_missing: a cell is empty, which
    --missing could allow.
    """

    def __init__(
        self,
        message: str,
        *,
        line: str | None = None,
        span: tuple[int, int] | None = None,
        hint: str | None = None,
        wrong: str | None = None,
        known: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.message, self.line, self.span = message, line, span
        self.hint, self.wrong, self.known = hint, wrong, known


TableError.__module__ = "gradcli"  # a traceback names it as it is called


MISSING_HINT = "--missing nan reads it as nan, --missing skip leaves its row out"


_LISTED = 30  # names of columns in a hint


def listed(names: Iterable[str]) -> str:
    """Names of columns for a hint, which ends where nobody reads on."""
    known = [f'"{name}"' if "," in name else name for name in names if name]
    return ", ".join(known[:_LISTED]) + ", …" * (len(known) > _LISTED)


def counted(number: int, what: str = "value") -> str:
    """`1 value`, `2 values`."""
    return f"{number} {what}{'s' * (number != 1)}"


def left_out_words(rows: int) -> str:
    """What is said of rows that --missing skip leaves out."""
    return f"{counted(rows, 'row')} left out for a number that is missing"


def other_columns(name: str, names: Iterable[str], before: Iterable[str]) -> TableError:
    """The error about a file whose columns are not those of the files before it."""
    return TableError(
        f"{name} has other columns than the files before it",
        hint=f"it has {listed(names)}; they have {listed(before)}",
    )


EXTRA = "pip install pyarrow"


def pyarrow(what: str) -> Any:
    """The library; TableError where it is not installed."""
    try:
        import pyarrow as found
    except ImportError:
        raise TableError(f"{what}: this needs pyarrow", hint=EXTRA) from None
    return found

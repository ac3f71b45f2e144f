"""How a user says that a text is to be read, and what was found in it: one object a command line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.tables.table_errors import TableError

if TYPE_CHECKING:
    from gradcli.tables.times import Clock

Tell = Callable[[str], object]
LOOKED_AT = 4096  # bytes that tell what a file is


class How(NamedTuple):
    """What decides where a text alone does not; None or empty: the text decides.

    header, units: the number of a line, or "none". names: of all columns. comment: signs that begin
    remarks. separator: a character, "tab", "blank" or "fixed". footer: lines at the end that are no rows.
    block: of several that two blank lines part. date_order: "dmy", "mdy" or "ymd". time_unit: of times
    as numbers. time_origin: what they are counted from, "first", "epoch" or a time; "none": what looks like
    seconds since 1970 are numbers. sheet: of a workbook.
    """

    skip_lines: int = 0
    header: int | str | None = None
    units: int | str | None = None
    names: Sequence[str] = ()
    comment: str | None = None
    separator: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    missing_markers: Sequence[str] = ()
    footer: int = 0
    block: int | None = None
    date_order: str | None = None
    time_unit: str | None = None
    time_origin: str | None = None
    sheet: str | None = None

    @property
    def cuts_lines(self) -> bool:
        """Whether it says which lines or cells there are, so that the file is taken as it stands."""
        return bool(self.separator or self.comment is not None or self.units is not None) or bool(
            self.skip_lines or self.header is not None
        )

    @property
    def says_lines(self) -> bool:
        """Whether it says what lines are, so that these need not be told by their looks."""
        return bool(
            self.skip_lines
            or self.header is not None
            or self.units is not None
            or self.names
            or self.comment is not None
            or self.separator is not None
            or self.decimal is not None
            or self.thousands is not None
        )


_SEPARATORS = {"tab": "\t", "\\t": "\t", "blank": " ", "blanks": " ", "space": " "}


def separator_of(how: How) -> str | None:
    """The separator that is given, " " for blanks."""
    return None if how.separator is None else _SEPARATORS.get(how.separator, how.separator)


class Reading:
    """How the tables of a command line are read. tell: takes notes, each once. found: by file, for --json."""

    def __init__(self, how: How | None = None, tell: Tell | None = None) -> None:
        self.how, self.tell = how or How(), tell
        self.found: dict[str, dict[str, Any]] = {}
        # By column, and by the unit of dates, what times count from.
        self.origins: dict[str, tuple[int, str]] = {}
        self.units: dict[str, str] = {}  # by column, of its times as numbers
        self.clocks: dict[str, Any] = {}  # by column, how its times are numbers
        self._said: set[str] = set()
        self._remarked: set[str] = set()

    def __getstate__(self) -> Any:
        """What other processes get: they read the same, and say nothing."""
        return self.how, self.origins, self.units

    def __setstate__(self, state: Any) -> None:
        self.how, self.origins, self.units = state
        self.tell, self.found, self._said, self.clocks = None, {}, set(), {}
        self._remarked = set()

    def unit(self, column: str, dates: bool) -> str:
        """The unit of the times of a column, by its first rows. dates: these have no times of a day."""
        return self.units.setdefault(column, self.how.time_unit or ("d" if dates else "s"))

    def origin(self, clock: Clock, first: str, order: str) -> tuple[int, str]:
        """What the times of a column count from, and how it is shown: the first one of the first file.

        Columns of dates count from the same day, so that `expiry - date` is right, and those of instants from
        the same instant: from the first time of the first of them.
        """
        column = clock.column
        if column not in self.origins:
            shared = f"\0{clock.unit}" if clock.is_date else column
            if shared not in self.origins and not self._begin(shared, first, order):
                return 0, "midnight"
            self.origins[column] = self.origins[shared]
        return self.origins[column]

    def _begin(self, shared: str, first: str, order: str) -> bool:
        """Keep what times of a name count from; False where the first is none."""
        from gradcli.tables.times import nanoseconds

        shown = first
        if self.how.time_origin not in (None, "first", "none"):
            shown = "1970-01-01" if self.how.time_origin == "epoch" else str(self.how.time_origin)
            order = "ymd"
        try:
            self.origins[shared] = nanoseconds(shown, order), shown
        except ValueError:
            if shown == first:
                return False
            raise TableError(
                f"--time-origin: {shown!r} is not a time",
                hint="as in --time-origin 2026-01-31T12:00",
            ) from None
        return True

    def __eq__(self, other: object) -> bool:
        """Whether both read alike."""
        return isinstance(other, Reading) and self.how == other.how

    __hash__ = object.__hash__

    def note(self, name: str, words: str) -> None:
        """Say what was decided about a file."""
        text = f"{name}: {words}"
        if text in self._said:
            return
        self._said.add(text)
        self.found.setdefault(name, {}).setdefault("notes", []).append(words)
        if self.tell is not None:
            self.tell(text)

    def remarked(self, name: str, words: str | None = None) -> bool:
        """Whether a remark among the rows of a file was told; with words: tell it."""
        told = name in self._remarked
        if words is not None and not told:
            self._remarked.add(name)
            self.note(name, words)
        return told

    def keep(self, name: str, facts: dict[str, Any]) -> None:
        """Keep what was found in a file."""
        self.found.setdefault(name, {}).update(facts)


def line_or_none(text: str, option: str) -> int | str:
    """The value of --header and --units: the number of a line, or none. Raises TableError."""
    bare = text.strip().lower()
    if bare == "none":
        return bare
    if bare.isdecimal() and int(bare):
        return int(bare)
    raise TableError(
        f"{option} wants the number of a line, or `none`, not {text!r}", hint=f"as in {option} 3"
    )


__all__ = ["How", "Reading", "Tell", "line_or_none", "separator_of"]

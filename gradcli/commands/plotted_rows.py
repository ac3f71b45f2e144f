"""The rows of a table that `plot` draws: columns over a column, beside a curve, or how often values occur."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.commands import output
from gradcli.commands.command_errors import usage
from gradcli.commands.data_rows import SET, DataRows
from gradcli.commands.item_lists import single
from gradcli.commands.map import refuse_headings
from gradcli.commands.measured_side import named_or_not
from gradcli.commands.plots.curves import limits
from gradcli.commands.plots.pictures import Curves, Line

if TYPE_CHECKING:
    from gradcli.columns.optimize.stated_uncertainties import Stated
    from gradcli.commands.declarations import Options
    from gradcli.commands.pictures import View
    from gradcli.commands.plots.axes import Dates
    from gradcli.commands.request import Request

_MOST = 8  # columns that are drawn without being named


class Points:
    """What is drawn: `columns`, each (its label, its numbers), over `x`, whose name is `name`.

    curve: the text of the curve that goes with them; None where they stand alone. read: the variables of
    the formulas. set: the number of each row's data set, or None.
    """

    def __init__(
        self, request: Request, tables: Sequence[str], options: Options, loaded: Mapping[str, Any]
    ) -> None:
        self.data = DataRows(request, tables, options.where, options.by, loaded, options.columns)
        self.request, self.options = request, options
        refuse_headings(request, self.data.table, self.data.own)
        self.curve: str | None = None
        self.name, self.label = "", ""
        self.x: Any = None
        self.set: Any = None
        self.columns: list[tuple[str, Any]] = []
        self.places: dict[str, list[int]] = {}
        self.read: list[str] = []
        self.bars: Any = None
        self.x_bars: Any = None

    def take_equation(self, left: str, right: str) -> str:
        """The points of `left` for a curve; the variable of the curve that is a column."""
        from gradcli.language import parse
        from gradcli.language.scope_checks import free_names

        given, data = self.request.texts, self.data
        names = [
            n for n in free_names(parse(right)) if n not in given and data.column(n) is not None
        ]
        if len(names) != 1:
            known = ", ".join(names) or "none"
            raise usage(
                f"one variable of the curve must be a column of {data.table}, not {known}",
                hint=f"its columns are: {', '.join(data.own)}",
            )
        self.curve, self.label = right, left
        data.note_functions([left])
        self._take([left], names[0])
        return names[0]

    def take_columns(self, source: str, names: Sequence[str]) -> None:
        """The points of expressions of columns, `U, I/2`; of all columns where the text is `...`."""
        from gradcli.language.rewritten_sources import last_items

        data = self.data
        if source.strip() == "...":
            self._take_all()
            return
        if unknown := [n for n in names if data.column(n) is None]:
            from gradcli.language.located_errors import did_you_mean, suggest

            raise usage(
                f"{unknown[0]} is not a column of {data.table}, and has no value",
                hint=did_you_mean(suggest(unknown[0], data.own))
                or f'a curve beside a column is an equation: gradcli plot "COLUMN == {source}" '
                f"{data.table}",
                kind="name",
            )
        texts = last_items(source) or [source]
        if not any(data.column(n) is not None for n in names):
            raise usage(
                f"no column of {data.table} is in the expression",
                hint=f"its columns are: {', '.join(data.own)}",
            )
        data.note_functions(texts)
        self._take(texts, self._over(texts))

    def _over(self, texts: Sequence[str]) -> str | None:
        """The column that others are drawn over; None for the rows themselves."""
        if self.options.hist:
            return None
        if (said := self.options.over) is not None:
            if self.data.column(said) is None:
                raise usage(
                    f"--over: {said!r} is not a column of {self.data.table}",
                    hint=f"its columns are: {', '.join(self.data.own)}",
                    kind="name",
                )
            return str(said)
        first = self.data.own[0]
        if [t.strip() for t in texts] in ([first], [_bare(first)]) or self._is_text(0):
            output.note("drawn over the row numbers; choose a column with --over COLUMN")
            return None
        output.note(f"drawn over {first}, the first column; choose another with --over COLUMN")
        if any(not text.strip().isidentifier() for text in texts):
            output.note("these are points; a curve beside a column is COLUMN == EXPR")
        return first

    def _is_text(self, place: int) -> bool:
        from gradcli.tables import TableError

        try:
            self.data.read([place], tells=False)
        except TableError:
            return True
        return False

    def _take_all(self) -> None:
        """All columns that hold numbers, over the first."""
        data = self.data
        places = [k for k in range(len(data.own)) if not self._is_text(k)]
        if not places:
            raise usage(f"no column of {data.table} holds numbers")
        over = None
        if self.options.over is not None or (len(places) > 1 and not self.options.hist):
            over = self._over([])
            places = [k for k in places if over is None or k != data.column(over)]
        names = [data.own[k] for k in places]
        if len(names) > _MOST:
            raise usage(
                f"{data.table} has {len(names)} columns to draw",
                hint=f"name some, as in gradcli plot '{_bare(names[0])}, {_bare(names[1])}' …",
            )
        cells = data.read([*places, *self._also(over)])
        read = data.numbers(cells)
        self.columns = [(data.heading_of(k), read[k]) for k in places]
        self._finish(read, over)

    def _also(self, over: str | None) -> list[int]:
        """The columns that are read besides those that are drawn."""
        found = [] if over is None else [self._place(over)]
        if self.data.sets or self.data.by is not None or len(self.data.files) > 1:
            found.append(self._place(SET))
        return found

    def _place(self, name: str) -> int:
        place = self.data.column(name)
        assert place is not None
        return place

    def _take(self, texts: Sequence[str], over: str | None) -> None:
        """Read what formulas of columns need, and compute them."""
        data = self.data
        formulas = [data.formula(text, "") for text in texts]
        places = [i for one in formulas for i in one.columns.values()]
        first = texts[0].strip() if texts else ""
        of = first if formulas and first in formulas[0].columns else None
        stated = self._stated(of, over)
        places += [place for one in stated.values() for place in one.places]
        cells = data.read([*places, *self._also(over)])
        read = data.numbers(cells)
        count = len(next(iter(read.values())))
        for text, formula in zip(texts, formulas, strict=True):
            self.read += formula.columns
            values = formula.values({n: read[i] for n, i in formula.columns.items()}, count)
            own = formula.columns.get(text.strip())
            label = (
                text.strip() if own is None else data.heading(text.strip(), {text.strip(): [own]})
            )
            for suffix, column in values.items():
                if column.dtype.kind == "c":
                    raise usage(f"{label} is complex", hint="draw real(…), imag(…) or abs(…)")
                self.columns.append((label + suffix, column.astype(float)))
            if own is not None and (spread := cells[own].spread) is not None:
                self.bars = spread
        if over is not None:
            self.x_bars = cells[self._place(over)].spread
        for is_x, one in stated.items():
            if is_x:
                self.x_bars = one.of(read, count, lambda: read[self._place(over or "")])
            else:
                self.bars = one.of(read, count, lambda: self.columns[0][1])
        self._finish(read, over)

    def _stated(self, of: str | None, over: str | None) -> dict[bool, Stated]:
        """--sigma by whether it is that of the axis. of: the column that is drawn; over: the axis'."""
        found: dict[bool, Stated] = {}
        for item in single(self.options.sigma):
            name, text = named_or_not(item)
            place = None if name is None else self.data.column(name)
            is_x = place is not None and over is not None and place == self._place(over)
            if name is not None and not is_x and name != of:
                known = [one for one in (of, over) if one is not None]
                raise usage(
                    f"--sigma: {name} is not drawn",
                    hint=f"drawn are {', '.join(known)}",
                    kind="name",
                )
            if is_x in found:
                raise usage(f"--sigma is given twice for {name or of or 'the points'}")
            found[is_x] = self.data.stated(text, of=over if is_x else of)
        return found

    def _finish(self, read: Mapping[int, Any], over: str | None) -> None:
        count = len(next(iter(read.values())))
        self.name = "row" if over is None else over
        self.x = np.arange(1.0, count + 1) if over is None else read[self._place(over)]
        if over is not None:
            self.places[over] = [self._place(over)]
        if self.data.sets:
            self.set = read[self._place(SET)]
        if any(bars is not None and np.ndim(bars) > 1 for bars in (self.bars, self.x_bars)):
            raise usage("--sigma: one number a row", hint="as in --sigma 0.1")

    # -- what is drawn ---------------------------------------------------------------------------
    def heading(self, name: str) -> str:
        """The label of the axis that they are drawn over."""
        return self.data.heading(name, self.places)

    def dates(self) -> Dates | None:
        """How the numbers of that axis are times."""
        return self.data.dates(self.name, self.places, self.x)

    def values(self) -> Any:
        """All numbers that are drawn."""
        return np.concatenate([column for _, column in self.columns])

    def lines(self) -> list[Line]:
        """The points of each column, and of each data set."""
        made: list[Line] = []
        for label, column in self.columns:
            for number, name in enumerate(self.data.sets or [""]):
                at = (
                    np.arange(len(column))
                    if self.set is None
                    else np.flatnonzero(self.set == number)
                )
                at = at[np.argsort(self.x[at], kind="stable")]
                x_bars, bars = (None if b is None else b[at] for b in (self.x_bars, self.bars))
                said = ", ".join(
                    t for t in (label * (len(self.columns) > 1 or not name), name) if t
                )
                made.append(
                    Line(
                        self.x[at],
                        column[at],
                        said,
                        points=True,
                        bars=(x_bars, bars),
                        colour=len(made),
                    )
                )
        return made

    def with_residuals(self, curve: Callable[[Any], Any]) -> tuple[list[Line], list[Line]]:
        """The points, and how far they are from a curve, which is said."""
        data = self.lines()
        residuals = [line._replace(y=line.y - curve(line.x), label="residual") for line in data]
        every = np.concatenate([line.y for line in residuals])
        with np.errstate(all="ignore"):
            spread = float(np.sqrt(np.nanmean(every**2)))
        output.note(f"the points are {spread:.4g} from the curve (root of the mean square)")
        return data, residuals

    def picture(self, view: View) -> Curves:
        """The points alone."""
        lines = self.lines()
        view.note_hidden("x", self.x)
        view.note_hidden("y", self.values())
        ends = np.concatenate([line.ends() for line in lines])
        label = lines[0].label if len(lines) == 1 else self.columns[0][0] * (len(self.columns) == 1)
        across = view.axis(
            "x", limits([], self.x, view.log("x")), self.heading(self.name), self.dates()
        )
        up = view.axis("y", limits([], ends, view.log("y")), label)
        return Curves(lines, across, up, title=view.title)

    def blocks(self, log: bool = False) -> tuple[Any, list[tuple[str, Any]]]:
        """(the edges of a histogram, how many numbers of each column lie between them)."""
        lines = [line._replace(y=line.y[np.isfinite(line.y)]) for line in self.lines()]
        every = np.concatenate([line.y for line in lines])
        if log:
            every = np.log10(every[every > 0])
        if not len(every):
            raise usage("--hist: there is no number")
        edges = np.histogram_bin_edges(every, self.options.bins or "auto")
        edges = 10**edges if log else edges
        return edges, [(line.label, np.histogram(line.y, edges)[0]) for line in lines]

    def histogram(self, view: View) -> Curves:
        """How often values occur."""
        view.note_hidden("x", self.values())
        edges, found = self.blocks(view.log("x"))
        if not self.options.bins:
            output.note(f"{len(edges) - 1} blocks; another number: --bins N")
        lines = [Line(edges, counts, label, blocks=True) for label, counts in found]
        most = max(int(counts.max()) for _, counts in found)
        low = 0.5 if view.log("y") else 0.0
        label = found[0][0] if len(found) == 1 else ""
        ends = float(edges[0]), float(edges[-1])
        if not view.log("x"):
            room = (ends[1] - ends[0]) / 40
            ends = ends[0] - room, ends[1] + room
        across = view.axis("x", ends, label)
        up = view.axis("y", (low, 1.05 * most), "count")
        return Curves(lines, across, up, title=view.title)

    def write_blocks(self, request: Request, form: str) -> None:
        """The blocks of a histogram as numbers."""
        edges, found = self.blocks(False)
        precision = request.style.precision
        if form == "json":
            made = {label: output.to_json(counts, precision) for label, counts in found}
            output.write_json(
                {"expression": request.source, "edges": output.to_json(edges), "counts": made}
            )
            return
        mark = "\t" if form == "plain" else ","
        columns = [
            output.numerals(np.asarray(c), precision)
            for c in (edges[:-1], edges[1:], *[counts for _, counts in found])
        ]
        heads = [f'"{t}"' if mark in t else t for t in ("low", "high", *[t for t, _ in found])]
        rows = [mark.join(heads), *map(mark.join, zip(*columns, strict=True))]
        output.write("\n".join(rows))


def _bare(heading: str) -> str:
    """A heading without its unit."""
    return heading.partition(" ")[0].partition("[")[0]


__all__ = ["Points"]

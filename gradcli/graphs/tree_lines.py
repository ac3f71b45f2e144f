"""The lines of a tree: what stands on each, in columns, fitted into a width."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from gradcli.engine.system.visible import columns, fitting
from gradcli.graphs import value_text
from gradcli.graphs.labels import ending, plural, shorten, title_of
from gradcli.graphs.saved_fields import Entry, Freed, SavedTensor
from gradcli.graphs.styles import UNICODE, Line, Signs, crop, fold, length
from gradcli.graphs.traversal import Describer, Record, Totals, class_name, totals
from gradcli.graphs.tree_items import Kind, TreeItem, rows
from gradcli.graphs.view import Fold, Selection, View, fold_text

Item = TypeVar("Item")

SOURCE_WIDTH = 60
WIDEST_HEAD = 64
WIDEST_CELL = 36
ROOMY_LEVELS = 10  # deeper trees have narrower guides
LEAVES_IN_FOLD = 4
NARROWEST_SOURCE = 8
LEAST_NAME = 6  # columns of a dotted name, of which the end is shown
NO_MODULES = (
    "not by module: no module is known to have made these nodes (in Python: with graphs.watching(model) "
    "around the forward pass)"
)
# Where a terminal has not room for all, columns give way in this order, each down to the width said.
GIVING_WAY = (
    *(("source", 24), ("value", 22), ("source", 16), ("value", 14), ("head", 36), ("source", 0)),
    *(("head", 28), ("value", 13), ("head", 20), ("shape", 6), ("value", 6), ("head", 8)),
)


@dataclass(slots=True, eq=False, repr=False)
class TreeOptions:
    """What to show, and how."""

    saved: bool = False
    values: bool = False
    grads: bool = False
    edges: bool = False
    legend: bool = False
    collapse: bool | None = None  # None: where the graph is deep
    depth: int | None = None
    only: str | None = None
    forward: bool = False
    by: str | None = None  # "module"
    open: str | None = None  # modules, separated by commas
    fold: str | None = None
    wide: bool = False  # arrays and sources at length
    width: int | None = None  # None: as wide as it comes (a pipe)
    precision: int | None = 6
    ascii: bool = False
    default_dtype: str = "float32"


@dataclass(slots=True, eq=False, repr=False)
class _Cell:
    """What stands in a column: as written where there is room, and how it is written where not. whole: the
    columns that all numbers of a small array take; 0 of a large one."""

    line: Line
    kind: str  # "shape" or "value"
    within: Callable[[int], Line] | None = None
    whole: int = 0

    def at(self, room: int, ellipsis: str) -> Line:
        line = self.line
        if length(line) > room and self.within is not None:
            line = self.within(room)
        return crop(line, room, ellipsis) if length(line) > room else line


@dataclass(slots=True, eq=False, repr=False)
class _Cells:
    """One line before alignment: what hangs from the guides, and the columns to its right."""

    head: Line
    columns: list[_Cell] = field(default_factory=list)
    source: str = ""

    @property
    def width(self) -> int:
        return length(self.head)


def taken(items: list[Item]) -> Iterator[Item]:
    """Take the items out of a list, in order: of a large graph only what is still needed is kept."""
    items.reverse()
    while items:
        yield items.pop()


class Drawing:
    """One drawing of a graph, into a width (None: as wide as it comes)."""

    def __init__(
        self,
        describer: Describer,
        forward: Mapping[int, Any],
        options: TreeOptions,
        signs: Signs,
        width: int | None,
        *,
        coloured: bool = True,
        modules: Any = None,
    ) -> None:
        self.describer, self.forward, self.options = describer, forward, options
        self.modules: Any = modules if options.by is not None else None
        self.signs, self.skeleton = signs, describer.skeleton
        self.width = None if options.wide else width
        self.coloured = coloured
        self.drawn = 0
        self.normed = False  # whether a norm stands for an array
        self.unknown = 0  # drawn nodes whose value nobody has kept
        self.drawn_guides: dict[tuple[bool, ...], str] = {}
        members = None if modules is None else modules.members
        selection = Selection(options.only, options.depth, options.collapse, options.forward)
        if self.modules is not None:
            selection = Selection()  # the outline has its own
        labels = describer.labels() if options.only is not None else None
        self.view = View(self.skeleton, selection, labels, None, members)
        levels = 20 if width is None else max(4, min(20, (width - 24) // 3))
        nothings = options.edges and not options.forward
        self.rows: Iterable[TreeItem] = rows(self.view, nothings=nothings, levels=levels)

    def lines(self) -> Iterator[Line]:
        """Yield the lines, each a list of (text, role)."""
        found: Iterable[Line] = [[("no graph: nothing requires grad", "note")]]
        if len(self.skeleton):
            found = self.drawing() if self.modules is None else self.outline()
        for line in found:
            yield line if self.width is None else crop(line, self.width, self.signs.ellipsis)

    def drawing(self) -> Iterator[Line]:
        """Yield the lines of the tree, and what stands below it."""
        found = list(self.rows)
        roomy = ROOMY_LEVELS if self.width is None or self.width >= 100 else ROOMY_LEVELS // 3
        if max((len(row.guides) for row in found), default=0) > roomy:
            self.signs = self.signs.compact()
        self.rows = taken(found)
        yield from self.align(list(self.cells()))
        yield []
        below = [self.footer(totals(self.skeleton, self.describer.probe))]
        if self.normed and self.width is not None and not self.options.legend:
            below.append([(self.sign("‖…‖ is a norm; --wide shows the numbers"), "note")])
        if self.options.by == "module" and self.modules is None:
            below.append([(NO_MODULES, "note")])
        for line in below:  # folded, where all else is cut
            yield from (
                [line] if self.width is None else fold(line, max(self.width, NARROWEST_SOURCE))
            )
        if self.options.legend:
            yield []
            yield from self.legend()

    def outline(self) -> list[Line]:
        """Return the lines of `--by module`."""
        from gradcli.graphs.of_torch.module_view import names_of
        from gradcli.graphs.of_torch.outline import outline

        options = self.options
        if options.only is not None and options.only not in self.modules.parts:
            known = ", ".join(list(self.modules.parts)[:12])
            raise ValueError(f"no module is called {options.only!r} (modules: {known} …)")
        return outline(
            self.modules,
            totals(self.skeleton, self.describer.probe),
            self.signs,
            depth=options.depth,
            only=options.only,
            grads=options.grads and self.describer.grads is not None,
            opened=names_of(options.open),
            shut=names_of(options.fold),
            collapse=options.collapse is not False,
            width=self.width,
        )

    # -- what a line says --------------------------------------------------------------------------

    def cells(self) -> Iterator[_Cells]:
        for row in self.rows:
            if row.block:
                yield _Cells([])
            guides = self.guides(row.guides)
            if row.kind is Kind.NODE:
                self.drawn += 1
                record = self.describer.record(row.key, saved=self.options.saved)
                yield self.node(row, record, guides)
                yield from self.below(row, record)
            elif row.fold is not None:
                yield _Cells([*guides, *self.fold(row, row.fold)])
            elif row.kind is Kind.NOTHING:
                yield _Cells([*guides, ("None", "note")])
            else:
                yield _Cells([*guides, *self.elsewhere(row)])

    def guides(self, levels: tuple[bool, ...], *, below: bool = False) -> Line:
        if not levels:
            return []
        signs, above, last = self.signs, levels[:-1], levels[-1]
        text = self.drawn_guides.get(above)
        if text is None:  # as many lines have them as have the same parents
            text = "".join([signs.pipe if more else signs.blank for more in above])
            self.drawn_guides[above] = text
        if below:
            return [(text + (signs.pipe if last else signs.blank), "guide")]
        return [(text + (signs.tee if last else signs.elbow), "guide")]

    def node(self, row: TreeItem, record: Record, guides: Line) -> _Cells:
        title, name = title_of(record, forward=self.options.forward)
        head = [*guides, (title, "leaf" if record.is_input else "function")]
        if name:
            head += [(" ", "guide"), (name, "variable" if record.is_input else "label")]
        head += self.output(row.output)
        if row.number is not None:
            head += [(" ", "guide"), (f"[{row.number}]", "shared")]
        if row.cut:
            head += [(f" {self.signs.ellipsis}", "note")]
        columns = [_Cell(self.shape(row, record), "shape")]
        if self.options.values:
            known = self.forward.get(record.id)
            self.unknown += known is None
            columns.append(self.value("= ", known, "value"))
        if record.has_tangent:
            columns.append(self.value("tangent ", record.tangent, "saved"))
        if self.options.grads and record.has_grad:
            columns.append(self.gradient(record))
        return _Cells(head, columns, self.source(row, record))

    def source(self, row: TreeItem, record: Record) -> str:
        """The piece of the program that made the node, where the line above does not have it."""
        if record.is_input or (record.span is None and record.place is None):
            return ""
        # A node in the middle of a composite repeats its consumer's source; once is enough.
        parent = self.skeleton.parents[record.id]
        shown = parent >= 0 and not row.block and self.view.shown(parent)
        shown = shown and not self.options.forward
        if record.place is not None:
            above = self.where(self.skeleton.nodes[parent]) if shown else None
            if above == (record.place, record.module):
                return ""
            module = f"{record.module}  " if record.module else ""
            return f"{record.place}  {module}{record.source}"
        return "" if shown and self.describer.span(parent) == record.span else record.source or ""

    def where(self, node: Any) -> tuple[Any, Any]:
        """The line and the module that made a node."""
        probe = self.describer.probe
        return probe.place(node), probe.module(node)

    def output(self, number: int) -> Line:
        return [(f" output {number}", "note")] if number else []

    def elsewhere(self, row: TreeItem) -> Line:
        sign = self.signs.up if row.kind is Kind.REFERENCE else self.signs.down
        line: Line = [(f"{sign} [{row.number}]", "shared"), (" ", "guide")]
        line += [(self.called(row.key), "note"), *self.output(row.output)]
        if row.kind is Kind.CONTINUED and not row.again:
            line += [(" goes on below", "note")]
        return line

    def called(self, key: int) -> str:
        """The name of an item where it is only referred to."""
        if key < 0:
            return self.signs.fold
        return self.describer.label(key) or class_name(self.skeleton.nodes[key])

    def fold(self, row: TreeItem, fold: Fold) -> Line:
        text = fold_text(fold.counts, self.signs.times)
        names = [self.describer.label(i) or self.signs.unnamed for i in fold.leaves]
        names = list(dict.fromkeys(names))
        if len(names) > LEAVES_IN_FOLD:
            names = [*names[:LEAVES_IN_FOLD], self.signs.ellipsis]
        leaves = f", with {', '.join(names)}" if names else ""
        line: Line = [(f"{self.signs.fold} {self.sign(text)}{leaves}", "fold")]
        if row.number is not None:
            line += [(" ", "guide"), (f"[{row.number}]", "shared")]
        return line

    def shape(self, row: TreeItem, record: Record) -> Line:
        if not record.outputs:
            return []
        shape, dtype, device = record.outputs[min(row.output, len(record.outputs) - 1)]
        line: Line = [(value_text.shape_text(shape), "shape")]
        if dtype not in (self.options.default_dtype, None):
            line += [(f" {dtype}", "dtype")]
        if device not in ("cpu", None):
            line += [(f" {device}", "dtype")]
        return line

    def value(self, sign: str, value: Any, role: str) -> _Cell:
        if value is None:
            return _Cell([], "value")
        role = role if value_text.is_finite(value) else "bad"

        def within(room: int | None) -> Line:
            room = None if room is None else room - len(sign)
            return [(sign, "note"), (self.array(value, room), role)]

        natural = None
        if not self.options.wide:
            room = WIDEST_CELL - len(sign)
            natural = len(sign) + value_text.room_of(value, room, self.options.precision)
        whole = value_text.whole_room(value)
        return _Cell(within(natural), "value", within, whole and whole + len(sign))

    def array(self, value: Any, room: int | None) -> str:
        if self.options.wide and room is None:
            return self.sign(value_text.text(value_text.as_array(value), self.options.precision))
        return self.sign(value_text.brief(value, self.options.precision, room))

    def gradient(self, record: Record) -> _Cell:
        if record.grad is None:
            return _Cell([("grad ", "note"), ("None", "note")], "value")
        return self.value("grad ", record.grad, "grad")

    def sign(self, text: str) -> str:
        return text if self.signs.dot == UNICODE.dot else text.translate(self.signs.plainly())

    # -- what stands below a node ------------------------------------------------------------------

    def below(self, row: TreeItem, record: Record) -> Iterator[_Cells]:
        if not (self.options.saved or self.options.edges):
            return
        # The guide goes down to the first input, if lines of inputs follow.
        more = self.guides(row.guides, below=True) if row.guides else []
        more = [*more, (self.signs.pipe if row.open else self.signs.blank, "guide")]
        if self.options.edges and record.next:
            yield _Cells([*more, ("next_functions ", "field"), (self.edges(record), "value")])
        if self.options.saved:
            widest = max((len(name) for name in record.saved), default=0)
            for name, entry in record.saved.items():
                head = [*more, (f"{name:<{widest}} ", "field")]
                yield _Cells([*head, *self.saved(record, entry, length(head))])

    def edges(self, record: Record) -> str:
        parts = []
        for edge in record.next:
            if edge is None:
                parts.append("(None, 0)")
                continue
            label = self.describer.label(edge[0])
            name = class_name(self.skeleton.nodes[edge[0]])
            parts.append(f"({name}{f' {label}' if label else ''}, {edge[1]})")
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"

    def saved(self, record: Record, entry: Entry, used: int) -> Line:
        if isinstance(entry, list):
            joined: Line = []
            for i, one in enumerate(entry):
                joined += [("; ", "note")] if i else []
                joined += self.saved(record, one, used + length(joined))
            return joined
        if isinstance(entry, Freed):
            return [("(freed)", "note")]
        if not isinstance(entry, SavedTensor):
            return [(str(entry.value), "note" if entry.value is None else "value")]
        line: Line = []
        if entry.variable:
            known = "variable" if getattr(entry.tensor, "grad_fn", None) is None else "label"
            line += [(entry.variable, known), (" = ", "note")]
        details = [value_text.shape_text(entry.shape)]
        if entry.dtype != self.options.default_dtype:
            details.append(str(entry.dtype))
        details.append(value_text.bytes_text(entry.nbytes))
        detail = "  " + " ".join(details)
        room = None if self.options.wide else WIDEST_CELL
        if self.width is not None:
            room = min(WIDEST_CELL, max(6, self.width - used - length(line) - len(detail)))
        role = "saved" if value_text.is_finite(entry.tensor) else "bad"
        return [*line, (self.array(entry.tensor, room), role), (detail, "note")]

    # -- columns -----------------------------------------------------------------------------------

    def align(self, cells: list[_Cells]) -> Iterator[Line]:
        """Yield lines whose columns stand below one another; the cells are taken."""
        wide = [cell for cell in cells if cell.columns]
        kinds = [cell.kind for cell in max(wide, key=lambda c: len(c.columns)).columns]
        widths = [0] * len(kinds)
        for row in wide:
            for k, cell in enumerate(row.columns):
                widths[k] = max(widths[k], length(cell.line))
        head = max((row.width for row in wide), default=0)
        source = min(SOURCE_WIDTH, max((columns(row.source) for row in cells), default=0))
        if self.width is None:
            head = min(head, WIDEST_HEAD)
        else:
            whole = [max((c.whole for c in cut), default=0) for cut in self.cut(wide, len(kinds))]
            head, widths, source = self.fitted(self.width, head, kinds, widths, source, whole)
        del wide
        for row in taken(cells):
            yield self.aligned(row, head, widths, source)

    def cut(self, rows: list[_Cells], number: int) -> list[list[_Cell]]:
        """The cells of each column."""
        return [[row.columns[k] for row in rows if k < len(row.columns)] for k in range(number)]

    def fitted(
        self,
        width: int,
        head: int,
        kinds: list[str],
        widths: list[int],
        source: int,
        whole: list[int],
    ) -> tuple[int, list[int], int]:
        """Give every column its share of a width.

        whole: what the numbers of small arrays take. They give way last, and only where there is no room for
        them beside the narrowest of the others.
        """
        names = ["head", *kinds, "source"]
        shares = [head, *widths, source]
        kept = [0, *(min(n, m) for n, m in zip(whole, widths, strict=True)), 0]
        least_of = {"head": 28, "source": 0}
        narrowest = [
            min(n, least_of.get(name, n if name == "shape" else 14))
            for n, name in zip(shares, names, strict=True)
        ]
        while (
            any(kept) and sum(max(n, k) + 2 for n, k in zip(narrowest, kept, strict=True)) > width
        ):
            kept[kept.index(max(kept))] = 0
        order: tuple[tuple[str, int], ...] = GIVING_WAY
        if (
            self.describer.probe.of_program
        ):  # names end in what tells them apart: module and line stay
            order = (GIVING_WAY[0], GIVING_WAY[1], ("head", 40), *GIVING_WAY[2:])
        for kind, least in order:
            while sum(n + 2 for n in shares if n) - 2 > width:
                giving = [
                    k for k, n in enumerate(names) if n == kind and shares[k] > max(least, kept[k])
                ]
                if not giving:
                    break
                widest = max(giving, key=lambda k: shares[k])
                shares[widest] -= 1
        return shares[0], shares[1:-1], shares[-1]

    def aligned(self, row: _Cells, head: int, widths: list[int], source: int) -> Line:
        line = list(row.head)
        if self.width is not None and row.columns:
            line = self.headed(line, head)
        end = head + 2
        for width, cell in zip(widths, row.columns, strict=False):
            if width and cell.line:
                text = cell.at(width, self.signs.ellipsis) if self.width is not None else cell.line
                self.normed |= any(one.startswith(self.sign("‖")) for one, _ in text)
                line += [(" " * max(2, end - length(line)), "guide"), *text]
            end += width + 2 if width else 0
        if piece := self.piece(row.source, source):
            line += [(" " * max(2, end - length(line)), "guide"), (piece, "source")]
        return line

    def headed(self, line: Line, width: int) -> Line:
        """Shorten a head: the class of the node gives way, then the beginning of its name; its mark stays."""
        over = length(line) - width
        for k, (text, role) in enumerate(line):
            if over > 0 and role in ("function", "leaf"):
                keep = max(1, len(text) - over - len(self.signs.ellipsis))
                if keep < len(text):
                    line = [*line[:k], (text[:keep] + self.signs.ellipsis, role), *line[k + 1 :]]
        over = length(line) - width
        for k, (text, role) in enumerate(line):
            if over > 0 and role in ("variable", "label") and "." in text:
                short = ending(text, max(LEAST_NAME, len(text) - over), self.signs.ellipsis)
                line = [*line[:k], (short, role), *line[k + 1 :]]
        return crop(line, width, self.signs.ellipsis)

    def piece(self, source: str, room: int) -> str:
        """Shorten the source piece in its middle to the room that is left."""
        if columns(source) <= room or self.options.wide:
            return source
        if room < NARROWEST_SOURCE:
            return ""
        if (
            self.describer.probe.of_program
        ):  # the line comes first, then the end of the module's name
            place, _, more = source.partition("  ")
            module = more.partition("  ")[0]
            left = room - columns(place) - 2
            if module.replace(".", "").isidentifier() and columns(module) > left:
                if left < LEAST_NAME or columns(place) + 2 > room:
                    cut = fitting(place, room - len(self.signs.ellipsis))
                    return place if columns(place) <= room else place[:cut] + self.signs.ellipsis
                return f"{place}  {ending(module, left, self.signs.ellipsis)}"
            return source[: fitting(source, room - len(self.signs.ellipsis))] + self.signs.ellipsis
        return shorten(source, room, self.signs.ellipsis)

    # -- below the tree ----------------------------------------------------------------------------

    def footer(self, found: Totals) -> Line:
        parts = [
            plural(found.nodes, "node"),
            plural(found.edges, "edge"),
            plural(found.leaves, "leaf", "leaves"),
        ]
        held = plural(found.saved, "saved tensor")
        if found.saved:
            held += f", {value_text.bytes_text(found.nbytes)}"
        if found.parameters:
            held += f" ({value_text.bytes_text(found.parameters)} of it parameters)"
        parts.append(held)
        if found.untold:
            parts.append(f"{found.untold:,} not known")
        if found.freed:
            parts.append(f"{plural(found.freed, 'node')} freed")
        if self.unknown:
            parts.append(f"{plural(self.unknown, 'value')} not kept")
        if self.drawn < found.nodes:
            parts.append(f"{self.drawn:,} shown")
        return [(f" {self.signs.dot} ".join(parts), "note")]

    def legend(self) -> Iterator[Line]:
        signs = self.signs
        entries: list[tuple[Line, str]] = [
            ([("MulBackward0", "function")], "a step of the backward pass"),
            (
                [("AccumulateGrad ", "leaf"), ("x", "variable")],
                "a leaf: its gradient goes to x.grad",
            ),
            ([("y", "label")], "the name that the program gave the result"),
            ([("(2, 3)", "shape"), (" float32", "dtype")], "shape, and dtype if not the default"),
            ([("[1]", "shared")], "a shared node where it is first seen"),
            ([(f"{signs.up} [1]", "shared")], "and where it is met again"),
            ([(f"{signs.down} [1]", "shared")], "goes on below, at the left margin"),
            ([(f"{signs.fold} 98 {signs.times} ...", "fold")], "a straight chain, folded"),
            ([(signs.ellipsis, "note")], "more below; --depth shows it"),
            (
                [(self.sign("‖3.2‖"), "value")],
                "the Euclidean norm of an array; --wide shows its numbers",
            ),
        ]
        if self.coloured:
            entries += [
                ([("0.5", "saved")], "a saved tensor"),
                ([("0.5", "grad")], "the gradient that reached the node"),
                ([("nan", "bad")], "not finite"),
            ]
        for sample, meaning in entries:
            yield [*sample, (" " * max(2, 20 - length(sample)), "guide"), (meaning, "note")]

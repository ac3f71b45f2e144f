"""The lines of a tree: what stands on each, in columns, fitted into a width."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gradcli.graphs import values
from gradcli.graphs.records import Describer, Record, Totals, class_name, totals
from gradcli.graphs.saved import Entry, Freed, SavedTensor
from gradcli.graphs.styles import UNICODE, Line, Signs, crop, length
from gradcli.graphs.text import plural
from gradcli.graphs.tree_rows import Kind, Row, Shape, fold_text, matching, rows

SOURCE_WIDTH = 60
WIDEST_HEAD = 64
WIDEST_CELL = 36
ROOMY_LEVELS = 10  # deeper trees have narrower guides
NARROWEST_SOURCE = 8
ENOUGH_SOURCE = 16
LEAVES_IN_FOLD = 4


@dataclass(slots=True)
class Options:
    """What to show, and how."""

    saved: bool = False
    values: bool = False
    grads: bool = False
    edges: bool = False
    legend: bool = False
    collapse: bool | None = None  # None: where the graph is deep
    depth: int | None = None
    only: str | None = None
    width: int | None = None  # None: as wide as it comes (a pipe)
    precision: int | None = 6
    ascii: bool = False
    default_dtype: str = "float32"


@dataclass(slots=True)
class _Cells:
    """One line before alignment: what hangs from the guides, and the columns to its right."""

    head: Line
    columns: list[Line] = field(default_factory=list)
    source: str = ""

    @property
    def width(self) -> int:
        return length(self.head)


class Drawing:
    """One drawing of a graph, into a width (None: as wide as it comes)."""

    def __init__(
        self,
        describer: Describer,
        forward: Mapping[int, Any],
        options: Options,
        signs: Signs,
        width: int | None,
        *,
        coloured: bool = True,
    ) -> None:
        self.describer, self.forward, self.options = describer, forward, options
        self.signs, self.width, self.skeleton = signs, width, describer.skeleton
        self.coloured = coloured
        self.drawn = 0
        roots = self.roots()
        depth = self.options.depth
        if depth is None and self.options.only is not None and len(roots) > 1:
            depth = 1
        levels = 20 if width is None else max(4, min(20, (width - 24) // 3))
        shape = Shape(depth, self.options.collapse, self.options.edges, levels)
        self.rows: Iterable[Row] = rows(self.skeleton, roots, shape)

    def roots(self) -> list[int]:
        wanted = self.options.only
        if wanted is None:
            return self.skeleton.roots
        found = (self.describer.label(i) for i in range(len(self.skeleton)))
        labels = {i: label for i, label in enumerate(found) if label is not None}
        ids = matching(self.skeleton, wanted, labels)
        if not ids:
            known = ", ".join(dict.fromkeys(labels.values())) or "none has a name"
            raise ValueError(f"no node is called {wanted!r} (named nodes: {known})")
        return ids

    def lines(self) -> list[Line]:
        """Return the lines, each a list of (text, role)."""
        if not len(self.skeleton):
            return [[("no graph: nothing requires grad", "note")]]
        self.rows = list(self.rows)
        if max((len(row.guides) for row in self.rows), default=0) > ROOMY_LEVELS:
            self.signs = self.signs.compact()
        cells = list(self.cells())
        aligned = self.align(cells)
        tail: list[Line] = [[], self.footer(totals(self.skeleton))]
        if self.options.legend:
            tail += [[], *self.legend()]
        if self.width is not None:
            aligned = [crop(line, self.width, self.signs.ellipsis) for line in aligned]
            tail = [crop(line, self.width, self.signs.ellipsis) for line in tail]
        return aligned + tail

    # -- what a line says --------------------------------------------------------------------------

    def cells(self) -> Iterator[_Cells]:
        for row in self.rows:
            if row.block:
                yield _Cells([])
            guides = self.guides(row.guides)
            if row.kind is Kind.NODE:
                self.drawn += 1
                record = self.describer.record(row.id)
                yield self.node(row, record, guides)
                yield from self.below(row, record)
            elif row.kind is Kind.FOLD:
                yield _Cells([*guides, *self.fold(row)])
            elif row.kind is Kind.NOTHING:
                yield _Cells([*guides, ("None", "note")])
            else:
                yield _Cells([*guides, *self.elsewhere(row)])

    def guides(self, levels: tuple[bool, ...], *, below: bool = False) -> Line:
        if not levels:
            return []
        signs = self.signs
        text = "".join(signs.pipe if more else signs.blank for more in levels[:-1])
        last = levels[-1]
        if below:
            return [(text + (signs.pipe if last else signs.blank), "guide")]
        return [(text + (signs.tee if last else signs.elbow), "guide")]

    def node(self, row: Row, record: Record, guides: Line) -> _Cells:
        head = [*guides, (record.name, "leaf" if record.is_leaf else "function")]
        name = record.variable or record.label
        if name:
            head += [(" ", "guide"), (name, "variable" if record.variable else "label")]
        head += self.output(row.output)
        if row.number is not None:
            head += [(" ", "guide"), (f"[{row.number}]", "shared")]
        if row.cut:
            head += [(f" {self.signs.ellipsis}", "note")]
        columns = [self.shape(row, record)]
        if self.options.values:
            columns.append(self.value("= ", self.forward.get(record.id), "value"))
        if self.options.grads and record.has_grad:
            columns.append(self.gradient(record))
        # A node in the middle of a composite repeats its consumer's source; once is enough.
        source = "" if record.is_leaf or record.span is None else record.source or ""
        parent = self.skeleton.parents[record.id]
        if parent >= 0 and not row.block and self.describer.span(parent) == record.span:
            source = ""
        return _Cells(head, columns, source)

    def output(self, number: int) -> Line:
        return [(f" output {number}", "note")] if number else []

    def elsewhere(self, row: Row) -> Line:
        label = self.describer.label(row.id) or class_name(self.skeleton.nodes[row.id])
        sign = self.signs.up if row.kind is Kind.REFERENCE else self.signs.down
        line: Line = [(f"{sign} [{row.number}]", "shared")]
        line += [(" ", "guide"), (label, "note"), *self.output(row.output)]
        if row.kind is Kind.CONTINUED and not row.again:
            line += [(" goes on below", "note")]
        return line

    def fold(self, row: Row) -> Line:
        text = fold_text(row.folded, self.signs.times)
        names = [self.describer.label(i) or self.signs.unnamed for i in row.leaves]
        names = list(dict.fromkeys(names))
        if len(names) > LEAVES_IN_FOLD:
            names = [*names[:LEAVES_IN_FOLD], self.signs.ellipsis]
        leaves = f", with {', '.join(names)}" if names else ""
        return [(f"{self.signs.fold} {text}{leaves}", "fold")]

    def shape(self, row: Row, record: Record) -> Line:
        if not record.outputs:
            return []
        shape, dtype = record.outputs[min(row.output, len(record.outputs) - 1)]
        line: Line = [(values.shape_text(shape), "shape")]
        if dtype != self.options.default_dtype:
            line += [(f" {dtype}", "dtype")]
        return line

    def value(self, sign: str, value: Any, role: str) -> Line:
        if value is None:
            return []
        text = values.text(value, self.options.precision)
        return [(sign, "note"), (self.sign(text), role if values.is_finite(value) else "bad")]

    def gradient(self, record: Record) -> Line:
        if record.grad is None:
            return [("grad ", "note"), ("None", "note")]
        return self.value("grad ", record.grad, "grad")

    def sign(self, text: str) -> str:
        return text if self.signs is UNICODE else text.replace("…", self.signs.ellipsis)

    # -- what stands below a node ------------------------------------------------------------------

    def below(self, row: Row, record: Record) -> Iterator[_Cells]:
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
                yield _Cells([*more, (f"{name:<{widest}} ", "field"), *self.saved(record, entry)])

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

    def saved(self, record: Record, entry: Entry) -> Line:
        if isinstance(entry, list):
            joined: Line = []
            for i, one in enumerate(entry):
                joined += [("; ", "note")] if i else []
                joined += self.saved(record, one)
            return joined
        if isinstance(entry, Freed):
            return [("(freed)", "note")]
        if not isinstance(entry, SavedTensor):
            return [(str(entry.value), "note" if entry.value is None else "value")]
        line: Line = []
        if entry.variable:
            known = "variable" if getattr(entry.tensor, "grad_fn", None) is None else "label"
            line += [(entry.variable, known), (" = ", "note")]
        line += self.value("", entry.tensor, "saved")
        details = [values.shape_text(entry.shape)]
        if entry.dtype != self.options.default_dtype:
            details.append(str(entry.dtype))
        details.append(values.bytes_text(entry.nbytes))
        return [*line, ("  " + " ".join(details), "note")]

    # -- columns -----------------------------------------------------------------------------------

    def align(self, cells: list[_Cells]) -> list[Line]:
        wide = [cell for cell in cells if cell.columns]
        widths: list[int] = []
        for k in range(max((len(cell.columns) for cell in wide), default=0)):
            found = (length(c.columns[k]) for c in wide if k < len(c.columns))
            widths.append(min(max(found, default=0), WIDEST_CELL))
        cap = WIDEST_HEAD
        if self.width is not None:
            longest = max((len(cell.source) for cell in cells), default=0)
            taken = sum(width + 2 for width in widths if width) + min(longest + 2, ENOUGH_SOURCE)
            cap = max(16, self.width - taken)
        starts = [min(max((cell.width for cell in wide), default=0), cap), *widths]
        return [self.aligned(cell, starts) for cell in cells]

    def aligned(self, cell: _Cells, widths: list[int]) -> Line:
        line = list(cell.head)
        end = 0
        for width, column in zip(widths, [*cell.columns, None], strict=False):
            if column is None and not cell.source:
                break
            end += width + 2
            if not width:
                end -= 2
            gap = max(2, end - length(line))
            nothing = not column and column is not None
            if not nothing:
                line += [(" " * gap, "guide"), *(column or [])]
        if cell.source:
            line.append((self.piece(cell.source, length(line)), "source"))
        return line

    def piece(self, source: str, used: int) -> str:
        """Shorten the source piece in its middle to the room that is left."""
        room = SOURCE_WIDTH
        if self.width is not None:
            room = min(room, self.width - used)
            if room < NARROWEST_SOURCE:
                return ""
        if len(source) <= room:
            return source
        half = (room - len(self.signs.ellipsis)) // 2
        return f"{source[:half]}{self.signs.ellipsis}{source[len(source) - half :]}"

    # -- below the tree ----------------------------------------------------------------------------

    def footer(self, found: Totals) -> Line:
        parts = [
            plural(found.nodes, "node"),
            plural(found.edges, "edge"),
            plural(found.leaves, "leaf", "leaves"),
        ]
        held = plural(found.saved, "saved tensor")
        if found.saved:
            held += f", {values.bytes_text(found.nbytes)}"
        parts.append(held)
        if found.freed:
            parts.append(f"{plural(found.freed, 'node')} freed")
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
        ]
        if self.coloured:
            entries += [
                ([("0.5", "saved")], "a saved tensor"),
                ([("0.5", "grad")], "the gradient that reached the node"),
                ([("nan", "bad")], "not finite"),
            ]
        for sample, meaning in entries:
            yield [*sample, (" " * max(2, 20 - length(sample)), "guide"), (meaning, "note")]

"""Pictures of a graph before any format: cards with a few lines of bounded width, and wires.

SVG, TikZ, DOT and Mermaid draw the same `Picture`, so an option has the same effect in all of them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gradcli.engine.system.visible import columns
from gradcli.graphs import layered_layout, value_text
from gradcli.graphs.labels import shorten, title_of
from gradcli.graphs.saved_fields import Entry, Freed, SavedTensor
from gradcli.graphs.styles import accent
from gradcli.graphs.traversal import Describer, Record
from gradcli.graphs.view import Fold, Selection, View, fold_text

WIDEST_LINE = 44  # characters; longer texts are shortened, longer arrays told in numbers
WIDEST_NAME = 24
LEAVES_IN_FOLD = 3
KINDS_IN_FOLD = 2
MOST_SAVED = 8  # lines
MOST_NUMBERS = 1_000  # of an array that is written whole
MARGIN, PAD = 24.0, 14.0
TITLE_SIZE, DETAIL_SIZE = 13.0, 11.0
TITLE_HEIGHT, LINE_HEIGHT = 18.0, 15.0
TITLE_EM, NAME_EM, DETAIL_EM = 0.66, 0.72, 0.61  # the widths of characters, generously
NONE_WIDTH = 46.0
SLOPE_DIGITS = 3  # of what is written on a wire, which is short


@dataclass(slots=True)
class PictureOptions:
    """What pictures show, and how they are drawn."""

    default_dtype: str = "float32"
    saved: bool = False
    values: bool = False
    grads: bool = False
    edges: bool = False
    slopes: bool = False
    collapse: bool | None = None
    depth: int | None = None
    only: str | None = None
    by: str | None = None  # "module"
    open: str | None = None  # modules, separated by commas
    fold: str | None = None
    forward: bool = False
    wide: bool = False  # arrays of up to so many numbers as MOST_NUMBERS, and sources, at length
    precision: int | None = 4
    direction: str = "down"  # or "right"
    theme: str = "auto"  # or "light", "dark"
    background: str = "auto"  # or "none", "white"
    title: str | None = None

    @property
    def line(self) -> int:
        """How long a line may be."""
        return sys.maxsize if self.wide else WIDEST_LINE

    @property
    def selection(self) -> Selection:
        """The part of the graph that is asked for."""
        return Selection(self.only, self.depth, self.collapse, self.forward)


@dataclass(slots=True)
class Card:
    """The content of a box: a title, the program's name for it, and lines of (role, text).

    Roles: "detail", "value", "grad", "saved", "note"; "value bad" and "grad bad" are not finite.
    """

    key: int
    kind: str  # "node", "named", "leaf", "fold", "none"
    title: str
    name: str | None = None
    lines: list[tuple[str, str]] = field(default_factory=list)
    node: int | None = None  # the node's id, of cards that stand for one
    hidden: tuple[int, ...] = ()  # the nodes that it stands for otherwise
    accent: str = ""  # of a module's box: the name of its colour

    @property
    def texts(self) -> list[str]:
        """Its lines without their roles, the title with the name first."""
        title = f"{self.title} {self.name}" if self.name else self.title
        return [text for text in (title, *(line for _, line in self.lines)) if text]

    @property
    def members(self) -> tuple[int, ...]:
        """The nodes that the card stands for."""
        return self.hidden if self.node is None else (self.node,)


@dataclass(slots=True)
class Wire:
    """An edge between cards: from the consumer to its input, the way that gradients go."""

    source: int
    target: int
    index: int
    count: int
    output: int = 0
    text: str = ""
    slope: str = ""  # what a gradient is multiplied by on it

    @property
    def words(self) -> str:
        """All that is written on it, where it has one label."""
        return ", ".join(word for word in (self.text, self.slope) if word)


class Picture:
    """The cards and wires of a view, before any format."""

    def __init__(
        self,
        describer: Describer,
        forward: Mapping[int, Any],
        options: PictureOptions,
        groups: Any = None,
        slopes: Mapping[tuple[int, int], float] | None = None,
    ) -> None:
        """slopes: of operations on numbers, by node and edge.

        groups: the modules, for `--by module` (`gradcli.graphs.of_torch.module_view.Modules`).
        """
        self.describer, self.forward, self.options = describer, forward, options
        self.modules, self.slopes = groups, slopes or {}
        labels = describer.labels() if options.only is not None else None
        folded = None if groups is None or options.by is None else groups.folded(options)
        selection = options.selection
        if folded is not None:
            selection.depth = None  # the depth counts modules
        members = None if groups is None else groups.members
        self.view = View(describer.skeleton, selection, labels, folded, members)
        self.cards: list[Card] = []
        self.wires: list[Wire] = []
        self._place: dict[int, int] = {}
        items = self.view.items()
        for item in items:
            card = self._fold(item) if isinstance(item, Fold) else self._node(item)
            self._place[card.key] = len(self.cards)
            self.cards.append(card)
        for item in items:
            self._connect(item)

    def ref(self, k: int) -> str:
        """The identifier of card k in DOT and Mermaid: by its node, if it stands for one."""
        node = self.cards[k].node
        return f"f{k}" if node is None else f"n{node}"

    def arrows(self) -> Iterator[tuple[str, str, Wire]]:
        """The wires with their source and target cards, in the direction of reading."""
        for wire in self.wires:
            ends = self.ref(wire.source), self.ref(wire.target)
            start, end = ends[::-1] if self.options.forward else ends
            yield start, end, wire

    # -- wires -----------------------------------------------------------------------------------
    def _connect(self, item: int | Fold) -> None:
        here = self._place[item if isinstance(item, int) else item.key]
        edges = self.view.edges(item)
        for position, edge in enumerate(edges):
            if edge is None:
                if self.options.edges and not self.options.forward:
                    self._place_none(here, position, len(edges))
                continue
            key, output, index, count = edge
            wire = Wire(here, self._place[key], index, max(count, index + 1), output)
            wire.text = self._number(item, wire)
            if isinstance(item, int) and (item, wire.index) in self.slopes:
                slope = self.slopes[item, wire.index]
                wire.slope = f"×{value_text.number(slope, SLOPE_DIGITS)}"
            self.wires.append(wire)

    def _number(self, item: int | Fold, wire: Wire) -> str:
        words = []
        if self.options.edges and isinstance(item, int) and wire.count > 1:
            words.append(str(wire.index))
        if wire.output:
            words.append(f"output {wire.output}")
        return ", ".join(words)

    def _place_none(self, here: int, position: int, count: int) -> None:
        number = len(self.cards)
        self.cards.append(Card(number, "none", "None"))
        text = str(position) if count > 1 else ""
        self.wires.append(Wire(here, number, position, count, 0, text))

    # -- cards -----------------------------------------------------------------------------------
    def _node(self, i: int) -> Card:
        options = self.options
        record = self.describer.record(i, saved=options.saved)
        title, name = title_of(record, forward=options.forward)
        kind = "leaf" if record.is_input else "named" if name else "node"
        name = None if name is None else shorten(name, WIDEST_NAME)
        card = Card(i, kind, shorten(title, options.line - 8), name, node=i)
        card.lines += [("detail", line) for line in detail_lines(record, options)]
        if options.values and i in self.forward:
            self._array(card, "value", "= ", self.forward[i])
        if record.tangent is not None:
            self._array(card, "saved", "tangent ", record.tangent)
        if options.grads and record.has_grad:
            if record.grad is None:
                card.lines.append(("grad", "grad None"))
            else:
                self._array(card, "grad", "grad ", record.grad)
        if options.saved:
            card.lines += [("saved", line) for line in saved_lines(record, options)]
        if self.view.cut(i):
            card.lines.append(("note", "…"))
        return card

    def _array(self, card: Card, role: str, sign: str, value: Any) -> None:
        known = value_text.stats_of(value)
        precision = self.options.precision
        if self.options.wide and (whole := numbers_of(known, precision)) is not None:
            card.lines.append((f"{role} bad" if known.bad else role, sign + whole))
            return
        room = value_text.room_of(known, WIDEST_LINE - len(sign), precision)
        text = value_text.brief(known, precision, room)
        role = f"{role} bad" if known.bad else role
        if known.size <= value_text.FEW:
            card.lines.append((role, sign + text))
            return
        few = text.partition(" ‖")[0] if text.startswith("[") else ""
        if few:
            card.lines.append((role, sign + few))
        card.lines.append((role, shorten(value_text.range_text(known), WIDEST_LINE)))

    def _fold(self, fold: Fold) -> Card:
        if fold.is_chain:
            card = Card(fold.key, "fold", f"⋮ {fold_text(fold.counts, '×', KINDS_IN_FOLD)}")
            card.title = shorten(card.title, WIDEST_LINE)
            names = [self.describer.label(i) or "unnamed" for i in fold.leaves]
            names = list(dict.fromkeys(names))
            if len(names) > LEAVES_IN_FOLD:
                names = [*names[:LEAVES_IN_FOLD], "…"]
            if names:
                card.lines.append(("detail", shorten(f"with {', '.join(names)}", WIDEST_LINE)))
        else:
            card = Card(fold.key, "fold", *self.modules.title(fold.call))
            card.accent = accent(card.title)
            lines = self.modules.lines(fold, self.options.grads)
            card.lines += [("detail", shorten(line, WIDEST_LINE)) for line in lines]
        card.hidden = tuple(fold.hidden)
        return card

    # -- layout ----------------------------------------------------------------------------------
    def size(self, card: Card) -> tuple[float, float]:
        """Return how wide and high a card is drawn."""
        if card.kind == "none":
            return NONE_WIDTH, layered_layout.REFERENCE_HEIGHT
        title = columns(card.title) * TITLE_SIZE * TITLE_EM
        if card.name:
            title += 10 + columns(card.name) * TITLE_SIZE * NAME_EM
        widest = max([title, *(columns(text) * DETAIL_SIZE * DETAIL_EM for _, text in card.lines)])
        return widest + 2 * PAD, 2 * PAD - 6 + TITLE_HEIGHT + LINE_HEIGHT * len(card.lines)

    def layout(self) -> layered_layout.Layout:
        """Place the cards (box k is card k) and lead the wires, in the direction asked for."""
        sideways = self.options.direction == "right"
        boxes = []
        for k, card in enumerate(self.cards):
            width, height = self.size(card)
            boxes.append(layered_layout.Box(k, *((height, width) if sideways else (width, height))))
        wires = []
        for wire in self.wires:
            made = layered_layout.Wire(
                wire.source, wire.target, wire.index, wire.count, wire.output
            )
            size = (18 + columns(self.far(wire.target)) * DETAIL_SIZE * DETAIL_EM, 24.0)
            made.reference_width, made.reference_height = size[::-1] if sideways else size
            wires.append(made)
        width, height = layered_layout.SLIDE
        window = (height, width) if sideways else (width, height)
        found = layered_layout.layout(boxes, wires, window)
        return layered_layout.turned(found, sideways=sideways, mirrored=self.options.forward)

    def far(self, k: int) -> str:
        """The reference that replaces an edge to a distant card."""
        card = self.cards[k]
        if card.name:
            return f"↑ {shorten(card.name, 12)}"
        if card.node is None:
            return "↑ ⋮"
        return f"↑ {card.title.partition('Backward')[0]} #{card.node}"

    @property
    def heading(self) -> str:
        """The title of the whole."""
        if not self.cards:
            return "no graph: nothing requires grad"
        what = "Forward graph" if self.options.forward else "Backward graph"
        return f"{what} of {shorten(self.options.title, 120)}" if self.options.title else what


def detail_lines(record: Record, options: PictureOptions) -> list[str]:
    """What a node is, in a line or a few: shape, dtype, device, and what made it."""
    parts = [value_text.shape_text(record.shape)]
    if record.dtype not in (None, options.default_dtype):
        parts.append(str(record.dtype))
    if record.device not in (None, "cpu"):
        parts.append(str(record.device))
    lines = []
    if record.place is not None and not record.is_input:
        lines.append("  ".join(part for part in parts if part))
        if record.module:
            lines.append(shorten(record.module, options.line))
        parts = [str(record.place)]
    used = sum(len(part) + 2 for part in parts if part)
    if record.source and not record.is_input:
        room = options.line if options.wide else max(12, min(32, options.line - used))
        parts.append(shorten(record.source, room))
    return [*lines, shorten("  ".join(part for part in parts if part), options.line)]


def numbers_of(known: value_text.Stats, precision: int | None) -> str | None:
    """All numbers of an array on one line; None where they are too many, or were not kept."""
    if known.shape == () or known.size > MOST_NUMBERS:
        return None
    if known.whole is None and known.size > len(known.some):
        return None
    return value_text.text(value_text.elements(known), precision, summarise=None)


def saved_lines(record: Record, options: PictureOptions) -> list[str]:
    """What a node saved: a line a tensor or option, not too many."""
    lines = [
        line for name, entry in record.saved.items() for line in _saved_lines(name, entry, options)
    ]
    if len(lines) > MOST_SAVED and not options.wide:
        more = len(lines) - MOST_SAVED + 1
        lines = [*lines[: MOST_SAVED - 1], f"… and {more} more"]
    return lines


def _saved_lines(name: str, entry: Entry, options: PictureOptions) -> list[str]:
    if isinstance(entry, list):
        found = (_saved_lines(f"{name}[{i}]", one, options) for i, one in enumerate(entry))
        return [line for lines in found for line in lines]
    name = shorten(name, 20)
    if isinstance(entry, Freed):
        return [f"{name}  (freed)"]
    if not isinstance(entry, SavedTensor):
        return [shorten(f"{name}  {entry.value}", options.line)]
    head = f"{name}  {shorten(entry.variable, 16)} = " if entry.variable else f"{name}  "
    tail = f"  {value_text.shape_text(entry.shape)} {value_text.bytes_text(entry.nbytes)}"
    if options.wide:
        whole = numbers_of(value_text.stats_of(entry.tensor), options.precision)
        if whole is not None:
            return [head + whole + tail]
    room = max(8, WIDEST_LINE - len(head) - len(tail))
    return [head + value_text.brief(entry.tensor, options.precision, room) + tail]

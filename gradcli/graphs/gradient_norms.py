"""`--norms`: how large gradients are from the result to the leaves, and where they vanish or explode."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from gradcli.engine.system.visible import columns, fitting
from gradcli.graphs import value_text
from gradcli.graphs.remedies import change_remedy
from gradcli.graphs.styles import (
    ASCII,
    UNICODE,
    Line,
    Signs,
    crop,
    fold,
    padded,
    segments,
    stripped,
)
from gradcli.graphs.traversal import Describer, class_name

JUMP = 1e3  # a change of the norm by more than this, within a node or a module, is marked
BAR = 20
NARROWEST = 8  # what a mark's words are folded to, however narrow the terminal
HEADINGS = ("name", "shape", "|grad|", "|value|", "ratio", "zeros", "")
ROLES = ("variable", "shape", "grad", "value", "value", "note", "grad")


@dataclass(slots=True)
class NodeNorm:
    """A leaf or a named result: the norms of its gradient and its value."""

    id: int
    name: str
    depth: int  # the step at which the gradient has arrived
    shape: str
    grad: float | None
    value: float | None
    zeros: float | None  # the share of zeros in the gradient
    bad: int

    @property
    def ratio(self) -> float | None:
        """|grad| / |value|: how much a step of one would change it."""
        if self.grad is None or not self.value:
            return None
        return self.grad / self.value


@dataclass(slots=True)
class Mark:
    """A place where the norm of the gradient falls or grows at once."""

    id: int
    name: str  # of the node, or of the module
    where: str  # the line and the module, or the piece of the expression
    before: float
    after: float
    remedy: str

    @property
    def vanishes(self) -> bool:
        """Tell whether it falls."""
        return self.after < self.before

    def text(self) -> str:
        """Say it in a line, and the remedy in another."""
        where = f"  {self.where}" if self.where else ""
        return f"{self.name}{where}: {self._change()}"

    def told(self) -> str:
        """Say it where its line is told beside it."""
        return f"{self.name}: {self._change()}"

    def _change(self) -> str:
        change = "falls to 0" if self.after == 0 else f"{self._word()} by {self._factor()}"
        before, after = (value_text.number(n, 3) for n in (self.before, self.after))
        return f"|grad| {change} ({before} → {after})"

    def _word(self) -> str:
        return "falls" if self.vanishes else "grows"

    def _factor(self) -> str:
        ratio = self.before / self.after if self.vanishes else self.after / self.before
        return value_text.number(ratio, 2)


class Norms:
    """The table of a graph whose gradients are known."""

    def __init__(self, graph: Any) -> None:
        """graph: an inspected one, backpropagated (`Graph.backpropagate`)."""
        self.describer: Describer = graph.describer
        self.skeleton = graph.skeleton
        self.modules = graph.modules
        self.steps = [] if graph.recorder is None else list(graph.recorder.steps)
        self.forward = graph.forward
        self.rows = list(self._rows())
        self.marks = list(self._node_marks())
        self.marks += self._module_marks()

    def _rows(self) -> Iterable[NodeNorm]:
        seen: set[int] = set()
        turns = {self.skeleton.ids.get(step.node): step for step in self.steps}
        order = [i for i in turns if i is not None]
        order += [i for i, n in enumerate(self.skeleton.nodes) if hasattr(n, "variable")]
        for depth, i in enumerate(order):
            node = self.skeleton.nodes[i]
            label = self.describer.label(i)
            leaf = getattr(node, "variable", None) is not None
            if i in seen or not (leaf or label):
                continue
            seen.add(i)
            grad = (self.describer.grads or {}).get(node)
            known = None if grad is None else value_text.stats_of(grad)
            value = self.forward.get(i)
            outputs = self.describer.probe.outputs(node)
            yield NodeNorm(
                i,
                label or "unnamed",
                depth if known is not None else len(order),
                value_text.shape_text(outputs[0].shape) if outputs else "",
                None if known is None else known.norm,
                None if value is None else value_text.stats_of(value).norm,
                None if known is None or not known.size else known.zeros / known.size,
                0 if known is None else known.bad,
            )

    # -- marks -----------------------------------------------------------------------------------
    def _node_marks(self) -> Iterable[Mark]:
        for step in self.steps:
            i = self.skeleton.ids.get(step.node)
            came = [value_text.stats_of(g) for g in step.incoming if g is not None]
            if i is None or not came:
                continue
            edges = zip(self.skeleton.edges[i], step.outgoing, strict=False)
            on = [g for e, g in edges if e is not None and not self._is_weight(e[0])]
            sent = [value_text.stats_of(g) for g in on or step.outgoing if g is not None]
            if sent and _jumps(came, sent):
                before, after = _norm(came), _norm(sent)
                name = class_name(step.node)
                remedy = change_remedy(name, vanishes=after < before)
                yield Mark(i, name, self._where(i), before, after, remedy)

    def _is_weight(self, i: int) -> bool:
        """Tell whether a node is a leaf, or a leaf turned: its gradient says how large activations are."""
        edges = self.skeleton.edges[i]
        while len(edges) == 1 and edges[0] is not None:
            if class_name(self.skeleton.nodes[i]) not in ("TBackward0", "TransposeBackward0"):
                return False
            i = edges[0][0]
            edges = self.skeleton.edges[i]
        return not edges

    def _where(self, i: int) -> str:
        node, probe = self.skeleton.nodes[i], self.describer.probe
        place = probe.place(node)
        if place is None:
            return self.describer.piece(self.describer.span(i)) or ""
        module = probe.module(node)
        return f"{place}  {f'{module}  ' if module else ''}{place.code}"

    def _module_marks(self) -> list[Mark]:
        """Modules in which the norm changes gradually: the smallest ones without a marked node."""
        if self.modules is None:
            return []
        marked = {mark.id for mark in self.marks}
        sent = {self.skeleton.ids.get(step.node): step.outgoing for step in self.steps}
        arrived = {self.skeleton.ids.get(step.node): step.incoming for step in self.steps}
        turns = {i: k for k, i in enumerate(arrived) if i is not None and not self._is_weight(i)}
        found: list[Mark] = []
        for part in sorted(self.modules.parts.values(), key=lambda part: len(part.nodes)):
            inside = set(part.nodes)
            if marked & inside:
                continue
            came = self.modules.reached(part)
            leaving = [
                value_text.stats_of(grad)
                for i in part.nodes
                for edge, grad in zip(self.skeleton.edges[i], sent.get(i) or (), strict=False)
                if grad is not None and edge is not None
                if edge[0] not in inside and self.skeleton.edges[edge[0]]
            ]
            if not leaving:  # the input needs no gradient: what has reached the operation on it
                last = max(part.nodes, key=lambda i: turns.get(i, -1))
                leaving = [value_text.stats_of(g) for g in arrived.get(last, ()) if g is not None]
            if came is None or not leaving or not _jumps([value_text.stats_of(came)], leaving):
                continue
            before, after = value_text.stats_of(came).norm, _norm(leaving)
            first = min(part.nodes)
            remedy = change_remedy(part.kind, vanishes=after < before)
            name = f"{part.kind} {part.path}"
            found.append(Mark(first, name, self._where(first), before, after, remedy))
            marked |= inside
        return found

    # -- how it is told --------------------------------------------------------------------------
    def sorted(self, by: str = "depth") -> list[NodeNorm]:
        """The rows by depth from the result, or by gradient or ratio, smallest first."""
        if by == "depth":
            return sorted(self.rows, key=lambda row: row.depth)

        def key(row: NodeNorm) -> tuple[bool, float]:
            found = row.grad if by == "grad" else row.ratio
            return (found is None, math.inf if found is None or math.isnan(found) else found)

        return sorted(self.rows, key=key)

    def lines(self, signs: Signs, by: str = "depth", width: int | None = None) -> list[Line]:
        """The table and the marks, each line a list of (text, role)."""
        rows = self.sorted(by)
        cells = [HEADINGS, *(self._cells(row, signs) for row in rows)]
        widths = [max(map(columns, column)) for column in zip(*cells, strict=True)]
        if width is not None:
            widths[0] = min(widths[0], max(12, width - sum(widths[1:-1]) - 12 - BAR))
        lines: list[Line] = []
        for number, texts in enumerate(cells):
            line: Line = []
            for k, text in enumerate(texts):
                bad = k == 2 and number and rows[number - 1].bad
                role = "field" if not number else "bad" if bad else ROLES[k]
                shown = text if k else _ending(text, widths[0], signs.ellipsis)
                line += [*padded([(shown, role)], widths[k], right=1 < k < 6), ("  ", "guide")]
            line = stripped(line)
            lines.append(line if width is None else crop(line, width, signs.ellipsis))
        for mark in self.marks:
            text = mark.text() if signs.dot == "·" else mark.text().replace("→", signs.to)
            lines.append([])
            for told in ([("! ", "bad"), (text, "value")], [(f"  {mark.remedy}", "note")]):
                lines += [told] if width is None else fold(told, max(width, NARROWEST))
        return lines

    def _cells(self, row: NodeNorm, signs: Signs) -> tuple[str, ...]:
        def short(value: float | None) -> str:
            return "" if value is None else value_text.number(value, 3)

        zeros = "" if not row.zeros else f"{100 * row.zeros:.0f}%"
        grad = "None" if row.grad is None else short(row.grad)
        return (
            *(row.name, row.shape, grad, short(row.value), short(row.ratio), zeros),
            self._bar(row.grad, signs),
        )

    def _bar(self, norm: float | None, signs: Signs) -> str:
        """As long as the norm is large, on a logarithmic scale between the least and the largest."""
        known = [row.grad for row in self.rows if row.grad and math.isfinite(row.grad)]
        if not norm or not math.isfinite(norm) or not known:
            return ""
        low, high = math.log10(min(known)), math.log10(max(known))
        span = max(high - low, 3.0)
        filled = 1 + round((BAR - 1) * (1 - (high - math.log10(norm)) / span))
        return ("█" if signs.dot == "·" else "#") * max(1, filled)

    def __str__(self) -> str:
        return Table(self).plain()

    def to_json(self, by: str = "depth") -> dict[str, Any]:
        """{"norms": one object a row, "marks": one a place}."""

        def number(value: float | None) -> Any:
            return None if value is None else value_text.scalar_to_json(float(value))

        return {
            "norms": [
                {
                    "node": row.id,
                    "name": row.name,
                    "depth": row.depth,
                    "grad": number(row.grad),
                    "value": number(row.value),
                    "ratio": number(row.ratio),
                    "zeros": number(row.zeros),
                    "not_finite": row.bad,
                }
                for row in self.sorted(by)
            ],
            "marks": [
                {
                    "node": mark.id,
                    "name": mark.name,
                    "where": mark.where,
                    "before": number(mark.before),
                    "after": number(mark.after),
                    "kind": "vanishes" if mark.vanishes else "explodes",
                    "remedy": mark.remedy,
                }
                for mark in self.marks
            ],
        }


def _ending(text: str, room: int, ellipsis: str) -> str:
    """A text cut at its beginning to fit the room."""
    if columns(text) <= room:
        return text
    kept = fitting(text[::-1], room - len(ellipsis))
    return ellipsis + text[len(text) - kept :]


def _norm(found: list[value_text.Stats]) -> float:
    return max(one.norm for one in found)


def _jumps(came: list[value_text.Stats], sent: list[value_text.Stats]) -> bool:
    """Tell whether a gradient vanishes or explodes on its way through.

    A mean divides by the number of elements and a sum copies to all of them: what counts must show in
    the norm, in the mean square and in the sum alike, whatever the sizes are.
    """
    before, after = _norm(came), _norm(sent)
    if not (math.isfinite(before) and math.isfinite(after)) or before == 0:
        return False
    sizes = max(one.size for one in sent) / max(1, max(one.size for one in came))
    scales = (1.0, math.sqrt(sizes), 1 / math.sqrt(sizes)) if sizes else (1.0,)
    ratios = [after / before * scale for scale in scales]
    return all(r < 1 / JUMP for r in ratios) or all(r > JUMP for r in ratios)


@dataclass(slots=True)
class Table:
    """The table ready to be written: `plain()` is text, rich's `console.print` colours it."""

    norms: Norms
    by: str = "depth"
    ascii: bool = False

    def plain(self) -> str:
        """Return the table as text."""
        lines = self.norms.lines(ASCII if self.ascii else UNICODE, self.by)
        return "\n".join("".join(text for text, _ in line).rstrip() for line in lines)

    __str__ = plain

    def fitted(self, width: int, *, ascii: bool, coloured: bool = True) -> Iterable[Line]:
        """Return the lines for a terminal."""
        return self.norms.lines(ASCII if self.ascii or ascii else UNICODE, self.by, width)

    def __rich_console__(self, console: Any, options: Any) -> Iterable[Any]:
        yield from segments(self.fitted(options.max_width, ascii=options.ascii_only))

"""`--norms`: how large gradients are from the result to the leaves, and where they vanish or explode."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from gradcli.engine.system.visible import columns, fitting
from gradcli.graphs import flow_findings, missing_gradients, value_text
from gradcli.graphs.gradient_flow import Flow
from gradcli.graphs.of_torch.torch_notes import former_leaf
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
from gradcli.graphs.traversal import Describer

BAR = 20
NARROWEST = 8  # what a mark's words are folded to, however narrow the terminal
BEFORE = "|value| is that which the backward pass found: a step has changed it since"
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
    why: str = ""  # why there is no gradient, or that no step uses it

    @property
    def ratio(self) -> float | None:
        """|grad| / |value|: how much a step of one would change it."""
        if self.grad is None or not self.value:
            return None
        return self.grad / self.value


@dataclass(slots=True)
class Mark:
    """A place where the norm of the gradient falls or grows: at once, or from layer to layer."""

    id: int
    name: str  # of the node, or of the layers
    where: str  # the line and the module, or the piece of the expression
    before: float
    after: float
    words: str
    remedy: str

    @property
    def vanishes(self) -> bool:
        """Tell whether it falls."""
        return self.after < self.before

    def text(self) -> str:
        """Say it in a line, and the remedy in another."""
        where = f"  {self.where}" if self.where else ""
        return f"{self.name}{where}: {self.words}"


class Norms:
    """The table of a graph whose gradients are known."""

    def __init__(self, graph: Any) -> None:
        """graph: an inspected one, backpropagated (`Graph.backpropagate`)."""
        self.graph = graph
        self.describer: Describer = graph.describer
        self.skeleton = graph.skeleton
        self.modules = graph.modules
        self.steps = [] if graph.recorder is None else list(graph.recorder.steps)
        self.forward = graph.forward
        self.rows = list(self._rows())
        self.rows += self._without()
        self.marks = list(self._marks(Flow(graph)))

    @property
    def is_former(self) -> bool:
        """Tell whether leaves are told as the pass found them, and have been written since."""
        leaves = (node for node in self.skeleton.nodes if hasattr(node, "variable"))
        return any(former_leaf(node) is not None for node in leaves)

    def _rows(self) -> Iterable[NodeNorm]:
        seen: set[int] = set()
        order = [self.skeleton.ids[node] for node in self.describer.probe.order(self.skeleton)]
        unstepped = missing_gradients.unstepped(self.graph)
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
                "no optimizer steps it" if leaf and id(node.variable) in unstepped else "",
            )

    def _without(self) -> Iterable[NodeNorm]:
        """The parameters that the result does not reach, and why."""
        for name, parameter, why in missing_gradients.reasons(self.graph):
            known = value_text.stats_of(parameter)
            shape = value_text.shape_text(parameter.shape)
            yield NodeNorm(-1, name, len(self.skeleton), shape, None, known.norm, None, 0, why)

    # -- marks -----------------------------------------------------------------------------------
    def _marks(self, flow: Flow) -> Iterable[Mark]:
        for told in (*flow_findings.single_nodes(flow, proved=False), *flow_findings.chains(flow)):
            yield Mark(
                told.id,
                told.name,
                self._where(told.id),
                told.before,
                told.after,
                told.words,
                told.remedy,
            )

    def _where(self, i: int) -> str:
        node, probe = self.skeleton.nodes[i], self.describer.probe
        place = probe.place(node)
        if place is None:
            return self.describer.piece(self.describer.span(i)) or ""
        module = probe.module(node)
        return f"{place}  {f'{module}  ' if module else ''}{place.code}"

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
            if number and rows[number - 1].grad is None and rows[number - 1].why:
                texts = (*texts[:4], texts[-1])  # in the place of what only a gradient has
            for k, text in enumerate(texts):
                bad = k == 2 and number and rows[number - 1].bad
                role = "field" if not number else "bad" if bad else ROLES[k]
                shown = text if k else _ending(text, widths[0], signs.ellipsis)
                room = widths[k] if len(texts) == len(widths) or k < 4 else 0
                line += [*padded([(shown, role)], room, right=1 < k < 6), ("  ", "guide")]
            line = stripped(line)
            lines.append(line if width is None else crop(line, width, signs.ellipsis))
        if self.is_former:
            told = [(BEFORE, "note")]
            lines += [[], *([told] if width is None else fold(told, max(width, NARROWEST)))]
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
            "  ".join(filter(None, (row.why, self._bar(row.grad, signs)))),
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
        return NormsTable(self).plain()

    def to_json(self, by: str = "depth") -> dict[str, Any]:
        """{"norms": one object a row, "marks": one a place}."""

        def number(value: float | None) -> Any:
            return None if value is None else value_text.scalar_to_json(float(value))

        return {
            "norms": [
                {
                    "node": row.id if row.id >= 0 else None,
                    "name": row.name,
                    "depth": row.depth,
                    "grad": number(row.grad),
                    "value": number(row.value),
                    "ratio": number(row.ratio),
                    "zeros": number(row.zeros),
                    "not_finite": row.bad,
                    "why": row.why,
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


@dataclass(slots=True)
class NormsTable:
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

"""The graph as one self-contained SVG file.

Every colour and size is a presentation attribute, which all renderers read; CSS on top of them makes
the theme `auto` dark where its reader is dark. Its rules name the picture (`svg.g1a2b3c4d .gc-card`): several
pictures may stand in one page. LibreOffice 7.4 applies rules inside of `@media` to every reader, and
reads no rule whose selector begins with an element and a class.
"""

from __future__ import annotations

import html
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from gradcli.engine.system.visible import columns, visible_line
from gradcli.graphs import layered_layout
from gradcli.graphs.pictures import LINE_HEIGHT, MARGIN, PAD, Card, Picture
from gradcli.graphs.styles import ACCENTS, DARK, LIGHT

SANS = "Helvetica, Arial, 'DejaVu Sans', sans-serif"
MONO = "'DejaVu Sans Mono', Menlo, Consolas, monospace"
# What is painted how: class -> attribute -> colour of the palette.
PAINT = {
    "paper": {"fill": "paper"},
    "card": {"fill": "card", "stroke": "rim"},
    "card named": {"fill": "card", "stroke": "name"},
    "card leaf": {"fill": "leaf", "stroke": "leaf-rim"},
    "card fold": {"fill": "none", "stroke": "wire"},
    "card active": {"fill": "mark", "stroke": "grad"},
    "card done": {"fill": "card", "stroke": "mark-rim"},
    "wire": {"fill": "none", "stroke": "wire"},
    "wire flow": {"fill": "none", "stroke": "mark-rim"},
    "wire now": {"fill": "none", "stroke": "grad"},
    "tip": {"fill": "wire"},
    "tip flow": {"fill": "mark-rim"},
    "label": {"fill": "card", "stroke": "mark-rim"},
    "ink": {"fill": "ink"},
    "leaf-ink": {"fill": "leaf-ink"},
    **{name: {"fill": name} for name in ("muted", "name", "grad", "saved", "bad")},
}
ROLES = {
    **{"detail": "muted", "note": "muted", "value": "ink"},
    **{"grad": "grad", "saved": "saved"},
    **{"grad bad": "bad", "value bad": "bad"},
}


@dataclass(slots=True)
class Frame:
    """A moment of the backward pass: what has run, what runs, and what flows over its edges."""

    done: set[int] = field(default_factory=set)
    active: int | None = None
    flows: dict[int, str] = field(default_factory=dict)  # number of the input -> the gradient
    caption: str = ""
    room: tuple[float, float] = (0.0, 0.0)  # at the left and right edges, for labels of any step


def caption_width(text: str) -> float:
    """How wide a caption is, in pixels."""
    return columns(text) * 7.0


KEY = "\0"  # stands for what tells a picture from others until its text is known


def escape(text: str) -> str:
    """Escape a text for XML, which has no place for control characters."""
    return html.escape(visible_line(text))


def picture_to_svg(
    picture: Picture, frame: Frame | None = None, layout: layered_layout.Layout | None = None
) -> str:
    """Return the whole file as text; frame: one moment of the backward pass."""
    return _Svg(picture, frame, layout or picture.layout()).text()


def label_of(
    picture: Picture, layout: layered_layout.Layout, wire: layered_layout.Wire, text: str
) -> tuple[float, float, float]:
    """Where the label of a gradient over a wire stands: its centre, and how wide it is."""
    width = columns(text) * 6.8 + 10
    target = wire.reference or layout.boxes[wire.target]
    sideways = picture.options.direction == "right"
    mirrored = picture.options.forward
    place = layered_layout.label_place(wire, target, width, sideways=sideways, mirrored=mirrored)
    return *place, width


def _class(what: str) -> str:
    """The classes of one thing that is painted, in names that no page has."""
    return " ".join(f"gc-{word}" for word in what.split())


class _Svg:
    def __init__(
        self, picture: Picture, frame: Frame | None, layout: layered_layout.Layout
    ) -> None:
        self.picture, self.frame, self.found = picture, frame, layout
        self.options = picture.options
        dark = self.options.theme == "dark"
        self.palette = DARK if dark else LIGHT
        self.auto = self.options.theme == "auto" and self.options.background != "white"
        self.sideways = self.options.direction == "right"
        self.left = -MARGIN
        self.painted = {what: self._paint(what) for what in PAINT}

    def _paint(self, what: str) -> str:
        attributes = "".join(
            f' {name}="{self.palette.get(colour, colour)}"' for name, colour in PAINT[what].items()
        )
        return f'class="{_class(what)}"{attributes}' if self.auto else attributes.lstrip()

    def paint(self, what: str) -> str:
        """The class and the presentation attributes of one thing that is painted."""
        return self.painted[what]

    def text(self) -> str:
        room = self.frame.room if self.frame else (0.0, 0.0)
        width, height = self.found.width + 2 * MARGIN + sum(room), self.found.height + 2 * MARGIN
        self.left = -MARGIN - room[0]
        caption = self.frame.caption if self.frame else ""
        if caption:
            height += 30
            width = max(width, caption_width(caption) + 2 * MARGIN)
        cards = self.picture.cards
        own = f' class="{KEY}"' if self.auto else ""
        text = "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg"{own} width="{width:.0f}"'
                f' height="{height:.0f}" viewBox="{self.left:.0f} {-MARGIN:.0f} {width:.0f}'
                f' {height:.0f}" role="img" aria-labelledby="{KEY}-title">',
                f'<title id="{KEY}-title">{escape(self.picture.heading)}</title>',
                *self.style(),
                *self.markers(),
                *self.paper(),
                *self.wires(),
                *(self.card(c, b) for c, b in zip(cards, self.found.boxes, strict=True)),
                *(
                    self.chip(wire.reference, self.picture.far(wire.target))
                    for wire in self.found.wires
                    if wire.reference is not None
                ),
                *self.flows(),
                *([self.caption(caption, height)] if caption else []),
                "</svg>",
                "",
            ]
        )
        return text.replace(KEY, f"g{zlib.crc32(text.encode()):08x}")

    def style(self) -> Iterator[str]:
        if not self.auto:
            return
        rules = " ".join(
            f"svg.{KEY} .{_class(what).replace(' ', '.')} {{ "
            + "; ".join(f"{name}: {DARK.get(colour, colour)}" for name, colour in paint.items())
            + " }"
            for what, paint in PAINT.items()
        )
        yield f"<style>@media (prefers-color-scheme: dark) {{ {rules} }}</style>"

    def markers(self) -> Iterator[str]:
        colours = {f"{KEY}-tip": "tip"}
        if self.frame is not None:
            colours |= {f"{KEY}-flow": "tip flow", f"{KEY}-now": "grad"}
        for name, paint in colours.items():
            yield (
                f'<defs><marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7"'
                f' markerHeight="7" markerUnits="userSpaceOnUse" orient="auto">'
                f'<path {self.paint(paint)} d="M0 0L8 4L0 8z"/></marker></defs>'
            )

    def paper(self) -> Iterator[str]:
        at = f'x="{self.left:.0f}" y="{-MARGIN:.0f}" width="100%" height="100%"'
        if self.options.background == "white":
            yield f'<rect fill="#ffffff" {at}/>'
        elif self.options.background != "none":
            yield f"<rect {self.paint('paper')} {at}/>"

    def wires(self) -> Iterator[str]:
        for made, wire in zip(self.picture.wires, self.found.wires, strict=True):
            path = layered_layout.curve(wire, self.sideways)
            kind, tip, width = "wire", "tip", 1.4
            if self.frame is not None:
                members = self.picture.cards[made.source].members
                if self.frame.active in members:
                    kind, tip, width = "wire now", "now", 2.2
                elif self.frame.done.intersection(members):
                    kind, tip = "wire flow", "flow"
            yield (
                f'<path {self.paint(kind)} stroke-width="{width}" d="{path}"'
                f' marker-end="url(#{KEY}-{tip})"/>'
            )
            if made.text:
                ends = wire.points[-1:-3:-1] if self.options.forward else wire.points[:2]
                (x, y), (beyond, below) = ends
                above = 2 * made.index + 1 < made.count if self.sideways else below < y
                x += -13 if self.sideways and beyond < x else 6
                yield self.words("muted", made.text, x, y + (-6 if above else 14), 11, MONO)
            if made.slope:
                x, y = layered_layout.middle(wire, forward=self.options.forward)
                wide = 6.0 * len(made.slope)
                at = f'x="{x - wide / 2:.1f}" y="{y - 7:.1f}" width="{wide:.1f}" height="14"'
                yield f"<rect {self.paint('paper')} {at}/>"
                more = ' text-anchor="middle"'
                yield self.words("ink", made.slope, x, y + 3.5, 10, MONO, more)

    def words(
        self, paint: str, text: str, x: float, y: float, size: int, font: str, more: str = ""
    ) -> str:
        return (
            f'<text {self.paint(paint)} font-family="{font}" font-size="{size}" x="{x:.1f}"'
            f' y="{y:.1f}" xml:space="preserve"{more}>{escape(text)}</text>'
        )

    def card(self, card: Card, box: layered_layout.Box) -> str:
        if card.kind == "none":
            return self.chip(box, "None")
        left, top = box.x - box.width / 2, box.y - box.height / 2
        y = top + PAD + 10
        dashed = ' stroke-dasharray="4 3"' if card.kind == "fold" and not card.accent else ""
        paint, stroke, reached = self.look(card)
        parts = [
            f'<g><rect {self.paint(paint)} stroke-width="{stroke}"{dashed} x="{left:.1f}"'
            f' y="{top:.1f}" rx="9" width="{box.width:.1f}" height="{box.height:.1f}"/>',
            self.title(card, left + PAD, y),
        ]
        if card.accent:
            parts.insert(
                1,
                f'<rect fill="{ACCENTS[card.accent]}" x="{left + 5:.1f}" y="{top + 8:.1f}" rx="1.5"'
                f' width="3" height="{box.height - 16:.1f}"/>',
            )
        for k, (role, line) in enumerate(card.lines):
            y += LINE_HEIGHT + (3 if k == 0 else 0)
            if reached or not role.startswith("grad"):
                parts.append(self.words(ROLES[role], line, left + PAD, y, 11, MONO))
        return "".join([*parts, "</g>"])

    def look(self, card: Card) -> tuple[str, float, bool]:
        """How a card is painted at this moment, and whether its gradient is there."""
        usual = "card" if card.kind == "node" or card.accent else f"card {card.kind}"
        if self.frame is None:
            return usual, 1.2, True
        if self.frame.active in card.members:
            return "card active", 2.2, True
        done = bool(self.frame.done.intersection(card.members))
        return ("card done" if done and card.kind == "node" else usual), 1.2, done

    def title(self, card: Card, x: float, y: float) -> str:
        leaf = card.kind == "leaf"
        quiet = leaf or (card.kind == "fold" and not card.accent)
        ink, weight = ("muted", 400) if quiet else ("ink", 600)
        name = ""
        if card.name:
            paint = self.paint("leaf-ink" if leaf else "name")
            name = f'<tspan {paint} font-weight="bold" dx="8">{escape(card.name)}</tspan>'
        return (
            f'<text {self.paint(ink)} font-family="{SANS}" font-size="13" font-weight="{weight}"'
            f' x="{x:.1f}" y="{y:.1f}">{escape(card.title)}{name}</text>'
        )

    def chip(self, box: layered_layout.Box, text: str) -> str:
        left, top = box.x - box.width / 2, box.y - box.height / 2
        return (
            f'<g><rect {self.paint("card fold")} stroke-dasharray="4 3" x="{left:.1f}"'
            f' y="{top:.1f}" rx="6" width="{box.width:.1f}" height="{box.height:.1f}"/>'
            + self.words("muted", text, box.x, box.y + 4, 11, MONO, ' text-anchor="middle"')
            + "</g>"
        )

    def flows(self) -> Iterator[str]:
        """The gradients that flow over the edges of the step that runs."""
        if self.frame is None:
            return
        for made, wire in zip(self.picture.wires, self.found.wires, strict=True):
            card = self.picture.cards[made.source]
            text = self.frame.flows.get(made.index)
            if text is None or card.node is None or card.node != self.frame.active:
                continue
            x, y, width = label_of(self.picture, self.found, wire, text)
            yield (
                f'<rect {self.paint("label")} x="{x - width / 2:.1f}" y="{y - 9:.1f}" rx="5"'
                f' width="{width:.1f}" height="18"/>'
                + self.words("grad", text, x, y + 4, 11, MONO, ' text-anchor="middle"')
            )

    def caption(self, text: str, height: float) -> str:
        return self.words("ink", text, self.left + MARGIN, height - MARGIN - 12, 13, SANS)

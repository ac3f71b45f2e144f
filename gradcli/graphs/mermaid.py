"""The graph as a Mermaid flowchart, for Markdown that draws them."""

from __future__ import annotations

from collections.abc import Iterator

from gradcli.graphs.pictures import Card, Picture

# Inside a quoted label Mermaid still reads entities, backticks (Markdown) and HTML.
_ENTITIES = {
    **{c: f"#{ord(c)};" for c in '#"<>&`*_~[]{}()|\\;$@%'},
    **dict.fromkeys("\n\r\0", " "),
    "\\": "#92;#8203;",  # or "\\n" would begin a line
}
_ESCAPES = str.maketrans(_ENTITIES)


def picture_to_mermaid(picture: Picture) -> str:
    """Return a flowchart: edges go the way of the gradients (of the values, if forward)."""
    return "\n".join([*_lines(picture), ""])


def _lines(picture: Picture) -> Iterator[str]:
    yield f"flowchart {'LR' if picture.options.direction == 'right' else 'TD'}"
    for k, card in enumerate(picture.cards):
        yield f"  {_name(card, k)}{_box(card)}"
    for made in picture.wires:
        ends = [_name(picture.cards[k], k) for k in (made.source, made.target)]
        if picture.options.forward:
            ends.reverse()
        arrow = "-.->" if picture.cards[made.target].kind == "none" else "-->"
        text = f'|"{escaped(made.text)}"|' if made.text else ""
        yield f"  {ends[0]} {arrow}{text} {ends[1]}"
    yield "  classDef leaf fill:#effaf3,stroke:#7fc49c,color:#14532d"
    yield "  classDef named stroke-width:2px"
    yield "  classDef none stroke-dasharray:3 3,fill:none,color:#8a94a6"


def _name(card: Card, k: int) -> str:
    return f"n{card.node}" if card.node is not None else f"f{k}"


def _box(card: Card) -> str:
    title = f"{card.title} {card.name}" if card.name else card.title
    lines = [title, *(text for _, text in card.lines)]
    label = "<br/>".join(escaped(line) for line in lines if line)
    if card.kind == "leaf":
        return f'(["{label}"]):::leaf'
    kind = {"node": "", "named": ":::named"}.get(card.kind, ":::none")
    return f'["{label}"]{kind}'


def escaped(text: str) -> str:
    """Escape a text for a quoted label of Mermaid."""
    return text.translate(_ESCAPES)

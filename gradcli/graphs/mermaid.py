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
        yield f"  {picture.ref(k)}{_box(card)}"
    for start, end, made in picture.arrows():
        arrow = "-.->" if picture.cards[made.target].kind == "none" else "-->"
        text = f'|"{escaped(made.words)}"|' if made.words else ""
        yield f"  {start} {arrow}{text} {end}"
    yield "  classDef leaf fill:#effaf3,stroke:#7fc49c,color:#14532d"
    yield "  classDef named stroke-width:2px"
    yield "  classDef none stroke-dasharray:3 3,fill:none,color:#8a94a6"


def _box(card: Card) -> str:
    label = "<br/>".join(map(escaped, card.texts))
    if card.kind == "leaf":
        return f'(["{label}"]):::leaf'
    kind = {"node": "", "named": ":::named"}.get(card.kind, ":::none")
    return f'["{label}"]{kind}'


def escaped(text: str) -> str:
    """Escape a text for a quoted label of Mermaid."""
    return text.translate(_ESCAPES)

"""The graph in Graphviz's language."""

from __future__ import annotations

from collections.abc import Iterator

from gradcli.graphs.pictures import Card, Picture
from gradcli.graphs.styles import DARK, LIGHT

# Inside a quoted label Graphviz still reads entities: d["&lt;"] is d["<"].
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "&": "&amp;", "\n": " ", "\r": " ", "\0": " "})


# Bounds on the network simplex method that gives nodes their ranks and places, in steps a node. Without
# them a recurrent net of 60 steps, whose weights are one leaf, took dot 2.43 over a minute.
_STEPS = "nslimit=2, nslimit1=2"


def picture_to_dot(picture: Picture) -> str:
    """Return a digraph: edges go the way of the gradients (of the values, if forward)."""
    return "\n".join([*_lines(picture), ""])


def _lines(picture: Picture) -> Iterator[str]:
    options = picture.options
    colours = DARK if options.theme == "dark" else LIGHT
    paper = {"white": "#ffffff", "none": "transparent"}.get(options.background)
    if paper is None:
        paper = colours["paper"] if options.theme == "dark" else "transparent"
    direction = "LR" if options.direction == "right" else "TB"
    ink, rim, wire = colours["ink"], colours["rim"], colours["wire"]
    yield f"digraph {'forward' if options.forward else 'backward'} {{"
    yield f'  graph [rankdir={direction}, bgcolor="{paper}", nodesep=0.3, ranksep=0.4, {_STEPS}]'
    yield (
        f'  node [shape=box, style="rounded,filled", color="{rim}", fillcolor="{colours["card"]}",'
        f' fontcolor="{ink}", fontname="Helvetica", fontsize=11, margin="0.14,0.08"]'
    )
    yield (
        f'  edge [color="{wire}", fontcolor="{colours["muted"]}", fontname="Helvetica",'
        " fontsize=9, arrowsize=0.7]"
    )
    for k, card in enumerate(picture.cards):
        yield f"  {picture.ref(k)} [{', '.join(_attributes(card, colours))}]"
    for start, end, made in picture.arrows():
        number = f'label="{quoted(made.words)}"' if made.words else ""
        if picture.cards[made.target].kind == "none":
            number += (", " if number else "") + "style=dashed"
        yield f"  {start} -> {end}{f' [{number}]' if number else ''}"
    yield "}"


def _attributes(card: Card, colours: dict[str, str]) -> Iterator[str]:
    label = "\\n".join(map(quoted, card.texts))
    yield f'label="{label}"'
    if card.kind == "leaf":
        yield f'fillcolor="{colours["leaf"]}", color="{colours["leaf-rim"]}"'
    elif card.kind == "named":
        yield f'color="{colours["name"]}", penwidth=1.4'
    elif card.kind in ("none", "fold"):
        yield f'style="rounded,dashed", fontcolor="{colours["muted"]}"'


def quoted(text: str) -> str:
    """Escape a text for a double-quoted string of DOT."""
    return text.translate(_ESCAPES)

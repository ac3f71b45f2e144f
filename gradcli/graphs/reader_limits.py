"""What programs that read a picture take of it, and pictures that fit.

The numbers were measured; docs/limits.md says with which version of each program.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gradcli.graphs.tikz import POINTS

if TYPE_CHECKING:
    from gradcli.graphs.inspection import Graph
    from gradcli.graphs.pictures import Picture

MERMAID_EDGES = 500  # one more is refused
MERMAID_CHARACTERS = 50_000  # one more shows a box that says so
TEX_NODES = 2_000  # pdflatex has memory for these; lualatex asks the system for more
TEX_LENGTH = 16_383.99 / 72.27 * 72 / POINTS  # the longest of TeX, in units of a picture
DOT_NODES = 1_000  # beyond these dot takes minutes
SMALLEST_LETTERS = 6.0  # pixels; smaller ones cannot be read
ALL = "--format svg shows all"


def mermaid(graph: Graph, options: dict[str, Any]) -> tuple[str, str | None]:
    """(a flowchart that Mermaid draws, what had to be left out for that, or why it will be refused).

    What the user chose stays: only where nothing is said of chains they are folded, and only where nothing
    is said of the depth the levels below are left out, as few of them as possible.
    """
    from gradcli.graphs.mermaid import picture_to_mermaid

    text, drawn = _drawn(graph, options, picture_to_mermaid)
    said = _too_much(text, drawn)
    if said is None:
        return text, None
    given = options
    if options.get("collapse") is None and options.get("by") is None:
        given = {**options, "collapse": True}
        text, drawn = _drawn(graph, given, picture_to_mermaid)
        if _too_much(text, drawn) is None:
            return text, f"{said}: chains are folded; {ALL}"
    if options.get("depth") is not None or options.get("collapse") is False:
        narrower = "a smaller --depth" if options.get("depth") is not None else "--depth N"
        return text, f"{said}, and will not draw this one: say {narrower}; {ALL}"
    best, least, most = 0, 0, len(graph.skeleton)
    while least <= most:  # the greatest depth that fits
        depth = (least + most) // 2
        tried, drawn = _drawn(graph, {**given, "depth": depth}, picture_to_mermaid)
        if _too_much(tried, drawn) is None:
            text, best, least = tried, depth, depth + 1
        else:
            most = depth - 1
    return text, f"{said}: the first {best} levels are shown (--depth {best}); {ALL}"


def _drawn(
    graph: Graph, options: dict[str, Any], write: Callable[[Picture], str]
) -> tuple[str, Picture]:
    picture = graph.picture(**options)
    return write(picture), picture


def _too_much(text: str, drawn: Picture) -> str | None:
    """In words, what of a flowchart is more than Mermaid takes; None if it draws it."""
    size = len(text.encode("utf-16-le")) // 2  # as JavaScript counts
    if (edges := len(drawn.wires)) > MERMAID_EDGES:
        return f"Mermaid draws graphs of {MERMAID_EDGES} edges at most, and this one has {edges:,}"
    if size > MERMAID_CHARACTERS:
        return f"Mermaid draws texts of {MERMAID_CHARACTERS:,} characters at most, and this one has {size:,}"
    return None


def dot(drawn: Picture) -> str | None:
    """Whether Graphviz will take long."""
    if len(drawn.cards) <= DOT_NODES:
        return None
    return (
        f"Graphviz takes minutes to draw more than {DOT_NODES:,} nodes, and this picture has "
        f"{len(drawn.cards):,}: say --depth N; {ALL} at once"
    )


def tex(text: str, unknown: str) -> str | None:
    """What will go wrong with a TikZ picture; unknown: letters that TeX has no command for."""
    if unknown:
        letters = ", ".join(unknown[:5])
        return f"pdflatex has no letter {letters}: use lualatex, with a font that has it"
    places = re.findall(r" at \(([\d.]+),([\d.]+)\) ", text)
    if max((float(x) for place in places for x in place), default=0) > TEX_LENGTH:
        return (
            "this picture is larger than TeX's longest length, 5.75 m, where pdflatex and lualatex stop: "
            "say --depth N; -o graph.pdf needs no TeX"
        )
    if (boxes := text.count("\\node[draw=")) > TEX_NODES:
        return (
            f"pdflatex has memory for about {TEX_NODES:,} nodes, and this picture has {boxes:,}: "
            "use lualatex, or say --depth N; -o graph.pdf needs no TeX"
        )
    return None


def letters(scale: float) -> str | None:
    """Whether the letters of a PNG are too small to be read; scale: pixels a unit of the picture."""
    from gradcli.graphs.pictures import DETAIL_SIZE

    height = DETAIL_SIZE * scale
    if height >= SMALLEST_LETTERS:
        return None
    return (
        f"the letters of this PNG are {height:.1f} pixels high, too small to be read: "
        "-o graph.svg or graph.html can be enlarged, --depth N shows less"
    )


__all__ = ["dot", "letters", "mermaid", "tex"]

"""The graph as a TikZ picture, for papers and slides written in LaTeX."""

from __future__ import annotations

from collections.abc import Iterator

from gradcli.engine.system.greek import COMMANDS, LATIN
from gradcli.graphs import layered_layout
from gradcli.graphs.pictures import Card, Picture
from gradcli.graphs.styles import DARK, LIGHT

POINTS = 0.75  # a pixel in TeX's big points
SLIDE = 1.6  # width by height of what a slide has room for
_ESCAPES = {
    **{c: f"\\{c}" for c in "{}#$%&_"},
    **{"\\": "\\textbackslash{}", "^": "\\^{}", "~": "\\~{}", "<": "\\textless{}"},
    **{">": "\\textgreater{}", "|": "\\textbar{}", '"': "\\textquotedbl{}", "`": "\\`{}"},
    **{"…": "\\ldots{}", "⋮": "$\\vdots$", "×": "$\\times$", "‖": "$\\|$", "↑": "$\\uparrow$"},
    **{"→": "$\\to$", "'": "\\textquotesingle{}", "-": "{-}"},
    **dict.fromkeys("\n\r\t\0", " "),
    **{letter: f"$\\{name}$" for letter, name in COMMANDS.items()},
    **LATIN,
    **{digit: f"$^{{{k}}}$" for k, digit in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
    **{digit: f"$_{{{k}}}$" for k, digit in enumerate("₀₁₂₃₄₅₆₇₈₉")},
    **{"≤": "$\\le$", "≥": "$\\ge$", "≠": "$\\ne$", "±": "$\\pm$", "·": "$\\cdot$"},
    **{"−": "$-$", "√": "$\\surd$", "∈": "$\\in$", "≈": "$\\approx$", "⋯": "$\\cdots$"},
}
_TABLE = str.maketrans(_ESCAPES)
# Letters beyond these have no command in pdfTeX's usual fonts.
_LAST_LATIN = "\u017f"
_MARKS = frozenset("–—‘’“”„†‡•‰€™")
_ROLES = {
    **{"detail": "muted", "note": "muted", "value": "ink"},
    **{"value bad": "bad", "grad bad": "bad"},
}
_COLOURS = {"node": "rim", "named": "name", "leaf": "leaf-rim", "fold": "wire", "none": "wire"}


def picture_to_tikz(picture: Picture) -> str:
    r"""Return a `tikzpicture` (for \input; its first lines say which packages it needs)."""
    return "\n".join([*_lines(picture), ""])


def _lines(picture: Picture) -> Iterator[str]:
    options, found = picture.options, picture.layout()
    colours = DARK if options.theme == "dark" else LIGHT
    yield "% \\usepackage{tikz} \\usepackage[T1]{fontenc} \\usepackage{textcomp}"
    wide, high = (size * POINTS / 28.45 for size in (found.width, found.height))
    yield f"% {wide:.1f} cm by {high:.1f} cm; on a slide: " + (
        "\\resizebox{\\textwidth}{!}{\\input{FILE}}"
        if wide / high > SLIDE
        else "\\resizebox{!}{0.8\\textheight}{\\input{FILE}}"
    )
    yield "\\begin{tikzpicture}[x=0.75bp, y=-0.75bp, font=\\footnotesize]"
    for name, colour in colours.items():
        yield f"  \\definecolor{{gc-{name}}}{{HTML}}{{{colour[1:].upper()}}}"
    if options.background == "white" or options.theme == "dark":
        paper = "white" if options.background == "white" else "gc-paper"
        if options.background != "none":
            yield (
                f"  \\fill[{paper}] (-24,-24) rectangle"
                f" ({found.width + 24:.1f},{found.height + 24:.1f});"
            )
    sideways = options.direction == "right"
    for made, wire in zip(picture.wires, found.wires, strict=True):
        x, y = wire.points[0]
        path = f"({x:.1f},{y:.1f})"
        for x1, y1, x2, y2, x, y in layered_layout.bends(wire, sideways):
            path += f" .. controls ({x1:.1f},{y1:.1f}) and ({x2:.1f},{y2:.1f}) .. ({x:.1f},{y:.1f})"
        yield f"  \\draw[gc-wire, ->, >=latex] {path};"
        if made.text:
            x, y = wire.points[-1 if options.forward else 0]
            text = _typed("muted", made.text)
            yield f"  \\node[anchor=north west, inner sep=1pt] at ({x + 2:.1f},{y + 2:.1f}) {{{text}}};"
        if made.slope:
            x, y = layered_layout.middle(wire, forward=options.forward)
            text = f"\\scriptsize {escaped(made.slope)}"
            paper = "gc-paper" if options.theme == "dark" else "white"
            yield f"  \\node[inner sep=1pt, fill={paper}, text=gc-ink] at ({x:.1f},{y:.1f}) {{{text}}};"
    for card, box in zip(picture.cards, found.boxes, strict=True):
        yield _node(card, box)
    for wire in found.wires:
        if wire.reference is not None:
            chip = Card(-1, "none", picture.far(wire.target))
            yield _node(chip, wire.reference)
    yield "\\end{tikzpicture}"


def _node(card: Card, box: layered_layout.Box) -> str:
    fill = {"leaf": "gc-leaf", "node": "gc-card", "named": "gc-card"}.get(card.kind)
    look = f"draw=gc-{_COLOURS[card.kind]}, rounded corners=4pt, align=left"
    look += f", fill={fill}" if fill else ", dashed"
    look += (
        f", minimum width={box.width * POINTS:.1f}bp, minimum height={box.height * POINTS:.1f}bp"
    )
    ink = "muted" if card.kind in ("leaf", "fold", "none") else "ink"
    title = f"\\textcolor{{gc-{ink}}}{{{escaped(card.title)}}}"
    if card.name:
        paint = "leaf-ink" if card.kind == "leaf" else "name"
        title += f"\\enspace\\textcolor{{gc-{paint}}}{{\\textbf{{{escaped(card.name)}}}}}"
    lines = [title, *(_typed(_ROLES.get(role, role), text) for role, text in card.lines if text)]
    text = "\\\\".join(lines)
    return f"  \\node[{look}] at ({box.x:.1f},{box.y:.1f}) {{{text}}};"


def _typed(paint: str, text: str) -> str:
    return f"\\textcolor{{gc-{paint}}}{{\\scriptsize\\ttfamily {escaped(text)}}}"


def escaped(text: str) -> str:
    """Escape a text for LaTeX."""
    return text.translate(_TABLE)


def unknown_letters(picture: str) -> str:
    """The letters of a picture that pdflatex stops at, each once."""
    found = (c for c in picture if c > _LAST_LATIN and c not in _MARKS)
    return "".join(dict.fromkeys(found))

"""The signs and colours of graphs, and their meanings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from gradcli.engine.system.visible import columns, fitting

Piece = tuple[str, str]  # (text, role)
Line = list[Piece]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Signs:
    """The characters that a tree is drawn with."""

    tee: str
    elbow: str
    pipe: str
    blank: str
    ellipsis: str
    up: str
    down: str
    fold: str
    times: str
    dot: str
    to: str
    unnamed: str = "unnamed"

    def plainly(self) -> dict[int, str]:
        """Return how to write the signs that stand inside of texts."""
        return str.maketrans({"…": self.ellipsis, "‖": "|", "×": self.times})

    def compact(self) -> Signs:
        """Return the same signs with guides of two columns a level, for deep trees."""
        narrow = {name: getattr(self, name)[::2] for name in ("tee", "elbow", "pipe", "blank")}
        return replace(self, **narrow)


UNICODE = Signs("├─ ", "└─ ", "│  ", "   ", "…", "↑", "↓", "⋮", "×", "·", "→")
ASCII = Signs("|- ", "`- ", "|  ", "   ", "...", "^", "v", ":", "x", "|", "->")

# Roles of text, as rich writes styles. Ordinary functions keep the terminal's own colour: what is
# coloured is what one looks for.
STYLES = {
    "guide": "dim",
    "function": "none",
    "label": "bold cyan",
    "leaf": "green",
    "variable": "bold green",
    "shape": "dim",
    "dtype": "blue",
    "source": "italic dim",
    "field": "dim",
    "value": "none",
    "saved": "yellow",
    "grad": "magenta",
    "shared": "blue",
    "fold": "dim",
    "note": "dim",
    "bad": "bold red",
}
_CODES = {
    **{"none": "", "bold": "1", "dim": "2", "italic": "3"},
    **{"red": "31", "green": "32", "yellow": "33", "blue": "34", "magenta": "35", "cyan": "36"},
}
# How a terminal is told of a role's style, as rich does it.
ANSI = {
    role: f"\x1b[{';'.join(sorted(_CODES[word] for word in style.split()))}m"
    for role, style in STYLES.items()
    if style != "none"
}


# What pictures are painted with, on light paper and on dark.
LIGHT = {
    **{"paper": "#f7f8fa", "ink": "#1c2430", "muted": "#5d687a", "wire": "#aab4c4"},
    **{"card": "#ffffff", "rim": "#cfd6e1", "leaf": "#effaf3", "leaf-rim": "#7fc49c"},
    **{"leaf-ink": "#176339", "name": "#0b62bd", "grad": "#97209f", "saved": "#8a4b06"},
    **{"bad": "#c2210f", "mark": "#fbeefc", "mark-rim": "#d59ada"},
}
DARK = {
    **{"paper": "#0f141b", "ink": "#e4e9f0", "muted": "#96a3b7", "wire": "#4a5769"},
    **{"card": "#18202b", "rim": "#324052", "leaf": "#12261b", "leaf-rim": "#2f6d4a"},
    **{"leaf-ink": "#7fdca6", "name": "#74b7ff", "grad": "#e79af0", "saved": "#f0b36a"},
    **{"bad": "#ff8377", "mark": "#2b1a33", "mark-rim": "#7d4687"},
}

# What kind of module a box stands for, by words in its class; the first that fits.
MODULES = {
    "norm": ("Norm",),
    "activation": ("ReLU", "ELU", "GELU", "SiLU", "Swish", "Tanh", "Sigmoid", "Softmax", "Mish"),
    "pool": ("Pool", "Upsample", "Dropout", "Flatten", "Pad"),
    "layer": ("Linear", "Conv", "Embedding", "Attention", "LSTM", "GRU", "RNN"),
}
ACCENTS = {
    **{"layer": "#3d84c6", "norm": "#2f9e77", "activation": "#cf7a2c", "pool": "#8f6bbf"},
    "block": "#8592a6",
}


def accent(kind: str) -> str:
    """The name of the colour that marks modules of a class."""
    fits = (name for name, words in MODULES.items() if any(word in kind for word in words))
    return next(fits, "block")


def stripped(line: Line) -> Line:
    """A line without the blanks at its end."""
    while line and not line[-1][0].strip():
        line = line[:-1]
    return [*line[:-1], (line[-1][0].rstrip(), line[-1][1])] if line else line


def length(line: Line) -> int:
    """Return how many columns a line takes."""
    return sum([columns(text) for text, _ in line])


def padded(line: Line, width: int, *, right: bool = False) -> Line:
    """A line with blanks behind it, or before it, so that it takes a width."""
    gap = (" " * (width - length(line)), "guide")
    return [gap, *line] if right else [*line, gap]


def crop(line: Line, width: int, ellipsis: str) -> Line:
    """Cut a line to a width, with an ellipsis where something is lost."""
    text = "".join(text for text, _ in line).rstrip()
    if columns(text) <= width:
        return line
    ellipsis = ellipsis[:width]
    return [*_part(line, 0, fitting(text, width - len(ellipsis))), (ellipsis, "guide")]


def fold(line: Line, width: int) -> list[Line]:
    """Break a line into lines of a width: at blanks, or where there is none anywhere."""
    text = "".join(text for text, _ in line).rstrip()
    lines: list[Line] = []
    start = 0
    while columns(text[start:]) > width:
        room = max(1, fitting(text[start:], width))
        blank = text.rfind(" ", start + 1, start + room + 1)
        stop = blank if blank > 0 else start + room
        lines.append(_part(line, start, stop))
        start = stop + (blank > 0)
    return [*lines, _part(line, start, len(text))]


def _part(line: Line, start: int, stop: int) -> Line:
    part: Line = []
    at = 0
    for text, role in line:
        piece = text[max(start - at, 0) : max(stop - at, 0)]
        part += [(piece, role)] if piece else []
        at += len(text)
    return part


def segments(lines: Iterable[Line]) -> Iterator[Any]:
    """Turn lines into rich's segments: no markup to be read, nothing left to wrap."""
    from rich.segment import Segment
    from rich.style import Style

    styles = {role: Style.parse(style) for role, style in STYLES.items()}
    newline = Segment.line()
    for line in lines:
        for text, role in line:
            yield Segment(text, styles[role])
        yield newline

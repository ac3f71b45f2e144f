r"""Pictures for LaTeX: a tikzpicture of the package pgfplots, to \input into a document or a slide.

It has the numbers of the curves, so that colours, fonts and line widths are the document's to change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from gradcli.commands.plots import labels
from gradcli.commands.plots.axes import Axis
from gradcli.commands.plots.figures import COLOURS, INK
from gradcli.commands.plots.implicit import curve
from gradcli.commands.plots.pictures import Contours, Curves, Line, sampled
from gradcli.graphs.tikz import escaped

CENTIMETRES = 2.54  # of an inch
_STRAIGHT = (
    5e-4  # of the picture's size: what a point may lie beside the line between its neighbours
)
_ARROWS = 14  # along either axis
_STYLES = {(1, 0): "solid", (3, 3): "dashed"}


def curves(picture: Curves, form: str, theme: str, size: tuple[float, float]) -> bytes:
    """Curves over one variable; with residuals, these below."""
    return _document(_curves(picture, theme, size), theme)


def contours(picture: Contours, form: str, theme: str, size: tuple[float, float]) -> bytes:
    """A function of two variables: contours, its gradient as arrows, and the path of a descent."""
    return _document(_contours(picture, theme, size), theme)


def surface(picture: Contours, form: str, theme: str, size: tuple[float, float]) -> bytes:
    """A function of two variables as a surface in space."""
    return _document(_surface(picture, theme, size), theme)


def _document(lines: Iterator[str], theme: str) -> bytes:
    dark = theme == "dark"
    back, ink, grid = INK[theme]
    named = [("paper", back), ("ink", ink), ("grid", grid)]
    named += [(str(k), colour) for k, colour in enumerate(COLOURS[theme])]
    framed = "color=gc-ink, background rectangle/.style={fill=gc-paper}, show background rectangle"
    head = [
        r"% \usepackage[T1]{fontenc} \usepackage{textcomp,amsmath,pgfplots} \pgfplotsset{compat=1.16}",
        *[r"% \usetikzlibrary{backgrounds}"] * dark,
        *(rf"\definecolor{{gc-{n}}}{{HTML}}{{{colour[1:].upper()}}}" for n, colour in named),
        r"\begin{tikzpicture}" + f"[{framed}]" * dark,
    ]
    return "\n".join([*head, *lines, r"\end{tikzpicture}", ""]).encode()


def _axis_options(x: Axis, y: Axis, size: tuple[float, float]) -> Iterator[str]:
    """The ends, scales and labels of two axes, and marks that pgfplots would not find."""
    wide, high = (round(n * CENTIMETRES, 2) for n in size)
    yield f"width={wide}cm, height={high}cm, scale only axis=false"
    yield "axis lines=left, grid=major, grid style={gc-grid}, clip=true"
    yield "every axis/.append style={font=\\footnotesize}, label style={font=\\footnotesize}"
    for which, axis, inches in (("x", x, size[0]), ("y", y, size[1])):
        low, high_end = axis.ends
        yield f"{which}min={low:.10g}, {which}max={high_end:.10g}"
        most = max(int(inches), 3)
        label = axis.full_label(most)
        if label:
            yield f"{which}label={{{typeset(label)}}}"
        if axis.log:
            yield f"{which}mode=log"
        if axis.dates is not None:
            marks = axis.marks(most)
            at = ",".join(f"{n:.12g}" for n, _ in marks)
            texts = ",".join(f"{{{escaped(text)}}}" for _, text in marks)
            yield f"{which}tick={{{at}}}, {which}ticklabels={{{texts}}}"


def _curves(picture: Curves, theme: str, size: tuple[float, float]) -> Iterator[str]:
    many = bool(picture.residuals)
    high = size[1] * (0.72 if many else 1)
    across = picture.x._replace(label="") if many else picture.x
    columns = _legend_columns(picture, size[0])
    legend = "draw=none, fill=none, font=\\footnotesize, at={(0,1.02)}, anchor=south west"
    options = [
        *_axis_options(across, picture.y, (size[0], high)),
        f"legend style={{{legend}, cells={{anchor=west}}, legend columns={columns}}}",
    ]
    if picture.alike:
        options.append("axis equal image")
    if picture.title:  # above the legend
        rows = -(-sum(bool(line.label) for line in picture.lines) // columns)
        style = f"title style={{yshift={12 * rows}pt}}"
        options.append(f"title={{{escaped(picture.title)}}}, {style}")
    yield from _begin("axis", ["name=curves", *options])
    numbers = picture.colours()
    box = picture.x, picture.y
    for number, line in zip(numbers, picture.lines, strict=True):
        yield from _line(line, f"gc-{number % len(COLOURS[theme])}", box)
    if picture.remark:
        yield rf"    \addlegendimage{{empty legend}} \addlegendentry{{{escaped(picture.remark)}}}"
    yield r"  \end{axis}"
    if not many:
        return
    drawn = [line.ends() for line in picture.residuals]
    most = max(float(np.nanmax(np.abs(part), initial=0)) for part in drawn) * 1.15 or 1.0
    below = Axis((-most, most), picture.residuals[0].label)
    options = [*_axis_options(picture.x, below, (size[0], size[1] * 0.28))]
    place = "at={(curves.below south west)}, anchor=north west, yshift=-4pt"
    yield from _begin("axis", [place, *options])
    low, up = picture.x.ends
    yield rf"    \draw[gc-ink] (axis cs:{low:.10g},0) -- (axis cs:{up:.10g},0);"
    own = [numbers[i] for i, line in enumerate(picture.lines) if line.points]
    for line in picture.residuals:
        number = line.colour if line.colour is not None else [*own, 0][0]
        colour = f"gc-{number % len(COLOURS[theme])}"
        yield from _line(line._replace(label=""), colour, (picture.x, below))
    yield r"  \end{axis}"


def _legend_columns(picture: Curves, inches: float) -> int:
    """How many labels have room beside each other."""
    longest = max((len(line.label) for line in picture.lines), default=0)
    return max(1, min(3, int(10 * inches) // (longest + 8)))


def _begin(environment: str, options: Sequence[str]) -> Iterator[str]:
    yield rf"  \begin{{{environment}}}["
    yield from (f"    {option}," for option in options)
    yield "  ]"


def _line(line: Line, colour: str, box: tuple[Axis, Axis]) -> Iterator[str]:
    """A line: joined, with its band, or apart, with its bars, or as blocks."""
    label = [rf"    \addlegendentry{{{typeset(line.label)}}}"] if line.label else []
    common = [] if label else ["forget plot"]
    if line.points:
        x, y = line.bars
        bars = [f"{n} dir=both, {n} explicit" for n, b in (("x", x), ("y", y)) if b is not None]
        look = ["only marks", "mark=*", "mark size=1.3pt", f"mark options={{fill={colour}}}"]
        look += ["error bars/.cd", *bars] if bars else []
        zero = np.zeros(len(line.x))
        rows = zip(line.x, line.y, *(zero if b is None else b for b in (x, y)), strict=True)
        points = (
            f"({a:.6g},{b:.6g})" + (f" +- ({c:.4g},{d:.4g})" if bars else "")
            for a, b, c, d in rows
            if np.isfinite(a + b)
        )
        yield from _plot([colour, *common, *look], points)
    elif line.blocks:
        heights = [*line.y, line.y[-1] if len(line.y) else 0]
        points = (f"({a:.8g},{b:.6g})" for a, b in zip(line.x, heights, strict=True))
        look = [f"fill={colour}", "fill opacity=0.65", "const plot"]
        yield from _plot([colour, *look, *common], points, r" \closedcycle")
    else:
        if line.band is not None:
            low, up = line.band
            ring = [*zip(line.x, low, strict=True), *zip(line.x[::-1], up[::-1], strict=True)]
            points = (f"({a:.6g},{b:.6g})" for a, b in ring if np.isfinite(a + b))
            look = ["draw=none", f"fill={colour}", "fill opacity=0.25", "forget plot"]
            yield from _plot(look, points, r" \closedcycle")
        look = [_STYLES.get(line.dash, "dotted"), "line width=0.9pt", "unbounded coords=jump"]
        thin = _thinned(line.x, line.y, box)
        yield from _plot([colour, *look, *common], (f"({_text(a)},{_text(b)})" for a, b in thin))
    yield from label


def _plot(
    options: Sequence[str], points: Iterable[str], after: str = "", how: str = "addplot"
) -> Iterator[str]:
    """A plot of coordinates."""
    yield rf"    \{how}[{', '.join(options)}] coordinates {{"
    yield from _wrapped(points)
    yield f"    }}{after};"


def _text(number: float) -> str:
    return f"{number:.6g}" if np.isfinite(number) else "nan"


def _wrapped(words: Iterable[str]) -> Iterator[str]:
    """Coordinates in lines of at most a hundred letters."""
    text = ""
    for word in words:
        if text and len(text) + len(word) > 94:
            yield f"      {text}"
            text = ""
        text = f"{text} {word}" if text else word
    if text:
        yield f"      {text}"


def _thinned(x: Any, y: Any, box: tuple[Axis, Axis]) -> list[tuple[float, float]]:
    """The points without those that lie on the line between their neighbours, and far outside none.

    Douglas and Peucker's way: the point that is farthest from the line between two that are kept is kept,
    while one can see that it is not on it.
    """
    x, y = np.asarray(x, float), np.asarray(y, float)
    low, up = box[1].ends
    room = 0 if box[1].log else up - low
    if room:  # TeX's numbers end at 16,383 times a unit
        x, y = _within(x, y, low - 20 * room, up + 20 * room)
    places = np.stack([box[0].share(x), box[1].share(y)], 1)
    finite = np.isfinite(places).all(1)
    kept = ~finite & np.insert(finite[:-1], 0, False)  # one gap for all points without a place
    edges = np.flatnonzero(np.diff(np.concatenate([[0], finite.view(np.int8), [0]])))
    for start, stop in edges.reshape(-1, 2):
        kept[start] = kept[stop - 1] = True
        waiting = [(start, stop - 1)]
        while waiting:
            a, b = waiting.pop()
            if b - a < 2:
                continue
            span = places[b] - places[a]
            inner = places[a + 1 : b] - places[a]
            length = float(np.hypot(*span))
            beside = (
                np.abs(span[0] * inner[:, 1] - span[1] * inner[:, 0]) / length
                if length
                else np.hypot(*inner.T)
            )
            far = int(beside.argmax())
            if beside[far] > _STRAIGHT:
                kept[a + 1 + far] = True
                waiting += [(a, a + 1 + far), (a + 1 + far, b)]
    return [(float(a), float(b)) for a, b in zip(x[kept], y[kept], strict=True)]


def _within(x: Any, y: Any, low: float, up: float) -> tuple[Any, Any]:
    """The line cut off where it leaves a band, with the points there; NaN for what is outside."""
    with np.errstate(all="ignore"):
        beside = np.isfinite(y[1:]) & np.isfinite(y[:-1]) & (np.diff(y) != 0)
        shares = [np.where(beside, (end - y[:-1]) / np.diff(y), np.nan) for end in (low, up)]
    crossed = [((share > 0) & (share < 1)).nonzero()[0] for share in shares]
    at = np.concatenate(crossed)
    share = np.concatenate([s[c] for s, c in zip(shares, crossed, strict=True)])
    heights = np.repeat([low, up], [len(c) for c in crossed])
    order = np.argsort(share)
    order = order[np.argsort(at[order], kind="stable")]
    at, share, heights = at[order], share[order], heights[order]
    places = x[at] + share * (x[at + 1] - x[at])
    inside = np.insert((y >= low) & (y <= up), at + 1, True)
    return np.insert(x, at + 1, places), np.where(inside, np.insert(y, at + 1, heights), np.nan)


def _contours(picture: Contours, theme: str, size: tuple[float, float]) -> Iterator[str]:
    x, y = (
        Axis((float(p[0]), float(p[-1])), n)
        for p, n in zip((picture.x, picture.y), picture.names, strict=True)
    )
    levels = picture.levels()
    marks = ",".join(map(str, range(len(levels))))
    texts = ",".join(f"{{{level:.4g}}}" for level in levels)
    title = picture.title or picture.label
    yield from _begin(
        "axis",
        [
            *_axis_options(x, y, size), "colormap/viridis", "colorbar", "axis on top",
            # a colour for each level, evenly: in a valley most of them lie close together
            f"point meta min=0, point meta max={max(len(levels) - 1, 1)}",
            f"colorbar style={{ytick={{{marks}}}, yticklabels={{{texts}}}}}",
            f"title={{{typeset(title)}}}, title style={{font=\\footnotesize}}",
        ],
    )  # fmt: skip
    for k, level in enumerate(levels):
        across, upward = curve(_over(picture, level), picture.x, picture.y)
        if not len(across):
            continue
        way = _thinned(across, upward, (x, y))
        look = ["mesh", "line width=0.7pt", "unbounded coords=jump", f"point meta={k}"]
        yield from _plot(look, (f"({_text(a)},{_text(b)})" for a, b in way))
    every = max(len(picture.x) // _ARROWS, 1)
    one, other = (s[::every, ::every] for s in picture.slopes)
    steps = [(axis.ends[1] - axis.ends[0]) / _ARROWS * 0.55 for axis in (x, y)]
    length = np.hypot(one, other)
    turned = np.where(length > 0, length, 1)
    yield r"    \addplot[gc-ink!45, -stealth, quiver={u=\thisrow{u}, v=\thisrow{v}}, forget plot] table {"
    yield "      x y u v"
    for i, b in enumerate(picture.y[::every]):
        for j, a in enumerate(picture.x[::every]):
            u, v = (
                s[i, j] / turned[i, j] * step for s, step in zip((one, other), steps, strict=True)
            )
            if np.isfinite(u + v) and length[i, j] > 0:
                yield f"      {a:.5g} {b:.5g} {u:.4g} {v:.4g}"
    yield "    };"
    if picture.path is not None:
        points = [f"({a:.6g},{b:.6g})" for a, b in picture.path if np.isfinite(a + b)]
        yield from _plot(["gc-1", "line width=0.9pt", "mark=*", "mark size=1.1pt"], points)
        end = ["gc-1", "only marks", "mark=x", "mark size=4pt", "line width=1pt"]
        yield from _plot(end, points[-1:])
    yield r"  \end{axis}"


def _over(picture: Contours, level: float) -> Any:
    """How far the function is above a level, between the points of its grid."""
    (left, right), (low, up) = ((float(p[0]), float(p[-1])) for p in (picture.x, picture.y))

    def above(x: Any, y: Any) -> Any:
        return sampled(picture.values, (y - low) / (up - low), (x - left) / (right - left)) - level

    return above


def _surface(picture: Contours, theme: str, size: tuple[float, float]) -> Iterator[str]:
    every = max(len(picture.x) // 40, 1)
    x, y = picture.x[::every], picture.y[::every]
    low, up = picture.ends()
    heights = np.clip(picture.values[::every, ::every], low, up)
    wide, high = (round(n * CENTIMETRES, 2) for n in size)
    named = ", ".join(
        f"{which}label={{{typeset(text)}}}"
        for which, text in zip("xyz", (*picture.names, picture.label), strict=True)
    )
    title = f"title={{{escaped(picture.title)}}}" if picture.title else "title={}"
    yield from _begin(
        "axis",
        [
            f"width={wide}cm, height={high}cm", named, title, "colormap/viridis",
            "label style={font=\\footnotesize}, tick label style={font=\\footnotesize}",
        ],
    )  # fmt: skip
    look = ["surf", "shader=flat", "draw=black!25", "line width=0.1pt", f"mesh/rows={len(y)}"]
    rows = zip(y, heights, strict=True)
    every_point = (
        f"({a:.5g},{b:.5g},{_text(z)})" for b, row in rows for a, z in zip(x, row, strict=True)
    )
    yield from _plot([*look, "unbounded coords=jump"], every_point, how="addplot3")
    yield r"  \end{axis}"


def typeset(label: str) -> str:
    """A label: an expression as mathematics, other words as they are."""
    return labels.typeset(label, escaped)


__all__ = ["contours", "curves", "surface", "typeset"]

"""Pictures as files, by matplotlib: curves, contours, surfaces, matrices. Light or dark."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from gradcli.commands.plots.axes import Axis
from gradcli.commands.plots.pictures import Contours, Curves, Line

# Okabe and Ito's colours, which those who are colour-blind tell apart; yellow only on dark.
COLOURS = {
    "light": ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00"),
    "dark": ("#56B4E9", "#E69F00", "#009E73", "#E8A4CB", "#F0E442", "#FF7F50"),
}
INK = {"light": ("#ffffff", "#1f2933", "#d7dde4"), "dark": ("#14181d", "#d9e0e7", "#37414c")}


@contextmanager
def figure(
    theme: str, size: tuple[float, float], rows: int = 1, layout: Any = "constrained"
) -> Iterator[Any]:
    """A figure in the colours of a theme: (the figure, its axes, its colours). Raises ImportError.

    size: width and height in inches. rows: two for a curve with its residuals below. layout: matplotlib's.
    """
    import matplotlib

    back, ink, grid = INK[theme]
    settings: Any = {
        "figure.facecolor": back, "axes.facecolor": back, "savefig.facecolor": back,
        "text.color": ink, "axes.labelcolor": ink, "axes.edgecolor": ink, "xtick.color": ink,
        "ytick.color": ink, "grid.color": grid, "axes.grid": rows > 0, "grid.linewidth": 0.6,
        "axes.spines.top": False, "axes.spines.right": False, "font.size": 10,
        "legend.frameon": False, "lines.linewidth": 1.8, "svg.hashsalt": "gradcli",
        "axes.axisbelow": True, "pdf.fonttype": 42,
    }  # fmt: skip
    with matplotlib.rc_context(settings):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        found = Figure(figsize=size, layout=layout)
        FigureCanvasAgg(found)
        yield found, COLOURS[theme]


def saved(found: Any, form: str) -> bytes:
    """The figure as the bytes of a file; the same every time."""
    stream = io.BytesIO()
    when = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what matplotlib says is of no use to who drew by us
        found.savefig(stream, format=form, dpi=160, metadata=when)
    return stream.getvalue()


def curves(picture: Curves, form: str, theme: str, size: tuple[float, float]) -> bytes:
    """Curves over one variable; with residuals, these below."""
    # Axes with one scale are narrower than the room they have: "compressed" moves them together.
    layout = "compressed" if picture.alike else "constrained"
    with figure(theme, size, layout=layout) as (found, colours):
        many = bool(picture.residuals)
        axes = found.subplots(2 if many else 1, sharex=True, squeeze=False,
                              gridspec_kw={"height_ratios": [3, 1] if many else [1]})[:, 0]  # fmt: skip
        numbers = picture.colours()
        handles = [
            _line(axes[0], line, colours[number % len(colours)])
            for number, line in zip(numbers, picture.lines, strict=True)
        ]
        _scale(axes[0].yaxis, picture.y, max(int(size[1]), 3))
        _scale(axes[-1].xaxis, picture.x, max(int(size[0]), 3))
        if any(line.blocks for line in picture.lines):
            axes[0].yaxis.get_major_locator().set_params(integer=True)
        if picture.alike:
            axes[0].set_aspect("equal")
        axes[0].set_ylabel(picture.y.label)
        own = [numbers[i] for i, line in enumerate(picture.lines) if line.points]
        for k, line in enumerate(picture.residuals):
            number = line.colour if line.colour is not None else [*own, 0][0]
            _line(axes[1], line, colours[number % len(colours)])
            if not k:
                axes[1].margins(y=0.15)
                axes[1].axhline(0, linewidth=1, color=INK[theme][1], zorder=1)
                axes[1].set_ylabel(line.label)
        found.align_ylabels()
        axes[-1].set_xlabel(picture.x.full_label(max(int(size[0]), 3)))
        if picture.title:
            found.suptitle(picture.title)
        # The last, for it measures the axes.
        _legend(axes[0], handles, [line.label for line in picture.lines], picture.remark)
        return saved(found, form)


_STYLES = {(1, 0): "-", (3, 3): "--"}


def _line(axes: Any, line: Line, colour: str) -> Any:
    """Draw a line: joined, with its band, or apart, with its bars, or as blocks. Give what a legend shows."""
    if line.points:
        x, y = line.bars
        return axes.errorbar(line.x, line.y, y, x, ".", color=colour, elinewidth=0.8, zorder=3)
    if line.blocks:
        return axes.stairs(line.y, line.x, fill=True, color=colour, alpha=0.65)
    if line.band is not None:
        axes.fill_between(line.x, *line.band, color=colour, alpha=0.25, linewidth=0)
    # A curve through data lies above its points, which would hide it where they are many.
    order = 2 if line.colour is None else 4
    return axes.plot(line.x, line.y, _STYLES.get(line.dash, ":"), color=colour, zorder=order)[0]


_TENS = 5  # decades from which on powers are written as such


def _scale(of: Any, axis: Axis, most: int) -> None:
    """Give an axis of matplotlib its ends, scale and marks."""
    from matplotlib.ticker import NullFormatter

    which = of.axis_name
    if axis.log:
        getattr(of.axes, f"set_{which}scale")("log")
    getattr(of.axes, f"set_{which}lim")(*axis.ends)
    few = axis.log and axis.ends[1] / axis.ends[0] < 10**_TENS
    if few or axis.dates is not None:
        marks = axis.marks(2 * most if few else most)
        of.set_ticks([n for n, _ in marks], [text for _, text in marks])
        of.set_minor_formatter(NullFormatter())


def _legend(axes: Any, handles: Sequence[Any], labels: Sequence[str], remark: str) -> None:
    """The legend above the axes, where it hides nothing, in as many columns as have room."""
    from matplotlib.lines import Line2D

    said = [(h, t) for h, t in zip(handles, labels, strict=True) if t]
    handles, labels = [h for h, _ in said], [t for _, t in said]
    if remark:
        handles, labels = [*handles, Line2D([], [], linestyle="none")], [*labels, remark]
    axes.figure.draw_without_rendering()
    room = axes.get_window_extent().width

    def fits(labels: Sequence[str], columns: int) -> bool:
        drawn = axes.legend(
            handles, labels, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2,
            fontsize=9, ncols=columns,
        )  # fmt: skip
        return bool(drawn.get_window_extent().width <= room)

    if any(fits(labels, columns) for columns in range(len(labels), 0, -1)):
        return
    # Of mathematics nothing can be left out; what else is too long for a line of its own is cut.
    letters = int(room / axes.figure.dpi * _LETTERS)
    fits([t if len(t) <= letters or "$" in t else f"{t[: letters - 1]}…" for t in labels], 1)


_LETTERS = 13  # of the legend's size in an inch


def contours(picture: Contours, form: str, theme: str, size: tuple[float, float]) -> bytes:
    """A function of two variables: contours with its gradient as arrows and the path of a descent."""
    import matplotlib

    x, y, path = picture.x, picture.y, picture.path
    with figure(theme, size, rows=0) as (found, colours):
        axes, levels = found.add_subplot(), picture.levels()
        # A colour for each step between levels: where these lie close in a valley, one scale of numbers
        # would paint all of it in one colour.
        shades = matplotlib.colormaps["viridis"](np.linspace(0, 1, len(levels) + 1))
        filled = axes.contourf(x, y, picture.values, levels=levels, extend="both", colors=shades)
        axes.contour(x, y, picture.values, levels=levels, colors=[INK[theme][1]], linewidths=0.4,
                     linestyles="solid")  # fmt: skip
        found.colorbar(filled, label=picture.label, ticks=levels, format="%g")
        every = max(len(x) // 18, 1)
        one, other = (s[::every, ::every] for s in picture.slopes)
        length = np.hypot(one, other)
        length = np.where(length > 0, length, 1)
        axes.quiver(x[::every], y[::every], one / length, other / length, color="white",
                    alpha=0.75, width=0.003, scale=30, angles="xy")  # fmt: skip
        if path is not None:
            axes.plot(path[:, 0], path[:, 1], ".-", color=colours[1], linewidth=1.2)
            axes.plot(*path[-1], "x", color=colours[1], markersize=9)
        axes.set_xlim(x[0], x[-1])
        axes.set_ylim(y[0], y[-1])
        axes.set_xlabel(picture.names[0])
        axes.set_ylabel(picture.names[1])
        if picture.title:
            axes.set_title(picture.title)
        return saved(found, form)


def surface(picture: Contours, form: str, theme: str, size: tuple[float, float]) -> bytes:
    """A function of two variables as a surface in space."""
    with figure(theme, size, rows=0) as (found, _):
        axes = found.add_subplot(projection="3d")
        axes.set_zlabel(picture.label)
        for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
            axis.set_pane_color(INK[theme][0])
        across, up = np.meshgrid(picture.x, picture.y)
        heights = np.clip(picture.values, *picture.ends())
        axes.plot_surface(across, up, heights, rcount=80, ccount=80, cmap="viridis")
        axes.set_xlabel(picture.names[0])
        axes.set_ylabel(picture.names[1])
        if picture.title:
            axes.set_title(picture.title)
        return saved(found, form)


def matrices(found_by_name: Mapping[str, Any], form: str, theme: str = "light") -> bytes:
    """Matrices side by side, as heat maps on a scale that is symmetric about zero.

    Of a sparse one (with `shape` and `indices`), where it is not zero.
    """
    items = list(found_by_name.items())
    with figure(theme, (5.2 * len(items), 4.5), rows=0) as (found, colours):
        all_axes = found.subplots(1, len(items), squeeze=False)[0]
        for axes, (name, array) in zip(all_axes, items, strict=True):
            axes.set_title(name)
            if hasattr(array, "indices"):
                axes.plot(array.indices[:, 1], array.indices[:, 0], "s", color=colours[0],
                          markersize=max(0.7, 150 / max(array.shape)), linewidth=0)  # fmt: skip
                axes.set_xlim(-0.5, array.shape[1] - 0.5)
                axes.set_ylim(array.shape[0] - 0.5, -0.5)
                axes.set_aspect("equal")
                continue
            most = float(np.nanmax(np.abs(array), initial=0.0)) or 1.0
            drawn = axes.imshow(
                array, cmap="RdBu_r", vmin=-most, vmax=most, interpolation="nearest"
            )
            found.colorbar(drawn, ax=axes)
        return saved(found, form)

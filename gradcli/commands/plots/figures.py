"""Pictures as files, by matplotlib: curves, contours, surfaces, matrices. Light or dark."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from gradcli.commands.plots.pictures import Contours, Curves, Line

# Okabe and Ito's colours, which those who are colour-blind tell apart; yellow only on dark.
_COLOURS = {
    "light": ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00"),
    "dark": ("#56B4E9", "#E69F00", "#009E73", "#E8A4CB", "#F0E442", "#FF7F50"),
}
_INK = {"light": ("#ffffff", "#1f2933", "#d7dde4"), "dark": ("#14181d", "#d9e0e7", "#37414c")}


@contextmanager
def figure(theme: str, size: tuple[float, float], rows: int = 1) -> Iterator[Any]:
    """A figure in the colours of a theme: (the figure, its axes, its colours). Raises ImportError.

    size: width and height in inches. rows: two for a curve with its residuals below.
    """
    import matplotlib

    back, ink, grid = _INK[theme]
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

        found = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(found)
        yield found, _COLOURS[theme]


def saved(found: Any, form: str) -> bytes:
    """The figure as the bytes of a file; the same every time."""
    stream = io.BytesIO()
    when = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form)
    found.savefig(stream, format=form, dpi=160, metadata=when)
    return stream.getvalue()


def curves(picture: Curves, form: str, theme: str, size: tuple[float, float]) -> bytes:
    """Curves over one variable; with residuals, these below."""
    with figure(theme, size) as (found, colours):
        many = picture.residuals is not None
        axes = found.subplots(2 if many else 1, sharex=True, squeeze=False,
                              gridspec_kw={"height_ratios": [3, 1] if many else [1]})[:, 0]  # fmt: skip
        styles = {(1, 0): "-", (3, 3): "--"}
        for i, line in enumerate(picture.lines):
            colour = colours[i % len(colours)]
            if line.points:
                _points(axes[0], line, colour)
            else:
                style = styles.get(line.dash, ":")
                axes[0].plot(line.x, line.y, style, color=colour, label=line.label)
        axes[0].set_ylim(*picture.y)
        axes[0].legend()
        if picture.residuals is not None:
            axes[1].axhline(0, linewidth=1, color=colours[0])
            _points(axes[1], picture.residuals, colours[1])
            axes[1].set_ylabel(picture.residuals.label)
        axes[-1].set_xlabel(picture.name)
        return saved(found, form)


def _points(axes: Any, line: Line, colour: str) -> None:
    x, y = line.bars
    axes.errorbar(line.x, line.y, y, x, ".", color=colour, elinewidth=0.8, label=line.label)


def contours(picture: Contours, form: str, theme: str, size: tuple[float, float]) -> bytes:
    """A function of two variables: contours with its gradient as arrows and the path of a descent."""
    x, y, path = picture.x, picture.y, picture.path
    with figure(theme, size, rows=0) as (found, colours):
        axes, levels = found.add_subplot(), picture.levels()
        filled = axes.contourf(x, y, picture.values, levels=levels, extend="both", cmap="viridis")
        axes.contour(x, y, picture.values, levels=levels, colors=[_INK[theme][1]], linewidths=0.4)
        found.colorbar(filled, label=picture.label)
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
        return saved(found, form)


def surface(picture: Contours, form: str, theme: str, size: tuple[float, float]) -> bytes:
    """A function of two variables as a surface in space."""
    with figure(theme, size, rows=0) as (found, _):
        axes = found.add_subplot(projection="3d")
        axes.set_zlabel(picture.label)
        for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
            axis.set_pane_color(_INK[theme][0])
        across, up = np.meshgrid(picture.x, picture.y)
        heights = np.clip(picture.values, *picture.ends())
        axes.plot_surface(across, up, heights, rcount=80, ccount=80, cmap="viridis")
        axes.set_xlabel(picture.names[0])
        axes.set_ylabel(picture.names[1])
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

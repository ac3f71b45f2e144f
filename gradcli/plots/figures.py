"""Pictures as files, by matplotlib: curves, contours, surfaces, matrices. Light or dark."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from gradcli.plots.braille import Line

# Okabe and Ito's colours, which those who are colour-blind tell apart; yellow only on dark.
_COLOURS = {
    "light": ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00"),
    "dark": ("#56B4E9", "#E69F00", "#2CC295", "#E8A4CB", "#F0E442", "#FF7F50"),
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


def curves(
    lines: Sequence[Line],
    name: str,
    y: tuple[float, float],
    form: str,
    theme: str,
    size: tuple[float, float],
    residuals: Line | None = None,
) -> bytes:
    """Curves over one variable; with residuals, these below."""
    with figure(theme, size) as (found, colours):
        many = residuals is not None
        axes = found.subplots(2 if many else 1, sharex=True, squeeze=False,
                              gridspec_kw={"height_ratios": [3, 1] if many else [1]})[:, 0]  # fmt: skip
        styles = {(1, 0): "-", (3, 3): "--"}
        for i, line in enumerate(lines):
            colour = colours[i % len(colours)]
            if line.points:
                axes[0].plot(line.x, line.y, ".", color=colour, label=line.label)
            else:
                style = styles.get(line.dash, ":")
                axes[0].plot(line.x, line.y, style, color=colour, label=line.label)
        axes[0].set_ylim(*y)
        axes[0].legend()
        if residuals is not None:
            axes[1].axhline(0, linewidth=0.8, color=found.get_facecolor())
            axes[1].plot(residuals.x, residuals.y, ".", color=colours[1])
            axes[1].set_ylabel(residuals.label)
        axes[-1].set_xlabel(name)
        return saved(found, form)


def contours(
    grid: tuple[Any, Any, Any],
    slopes: tuple[Any, Any],
    names: tuple[str, str],
    label: str,
    levels: Sequence[float],
    path: Any,
    form: str,
    theme: str,
    size: tuple[float, float],
    surface: bool = False,
) -> bytes:
    """A function of two variables: contours with its gradient as arrows, or a surface.

    grid: the points of both axes, and the values, one row a point of the second. path: of a descent.
    """
    x, y, z = grid
    with figure(theme, size, rows=0) as (found, colours):
        scale = {"cmap": "viridis"}
        if surface:
            axes = found.add_subplot(projection="3d")
            axes.set_zlabel(label)
            across, up = np.meshgrid(x, y)
            axes.plot_surface(across, up, z, rcount=80, ccount=80, **scale)
        else:
            axes = found.add_subplot()
            filled = axes.contourf(x, y, z, levels=levels, extend="both", **scale)
            axes.contour(x, y, z, levels=levels, colors=[_INK[theme][1]], linewidths=0.4)
            found.colorbar(filled, label=label)
            every = max(len(x) // 18, 1)
            one, other = (s[::every, ::every] for s in slopes)
            length = np.hypot(one, other)
            length = np.where(length > 0, length, 1)
            axes.quiver(x[::every], y[::every], one / length, other / length, color="white",
                        alpha=0.75, width=0.003, scale=30, angles="xy")  # fmt: skip
            if path is not None:
                axes.plot(path[:, 0], path[:, 1], ".-", color=colours[1], linewidth=1.2)
                axes.plot(*path[-1], "x", color=colours[1], markersize=9)
            axes.set_xlim(x[0], x[-1])
            axes.set_ylim(y[0], y[-1])
        axes.set_xlabel(names[0])
        axes.set_ylabel(names[1])
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

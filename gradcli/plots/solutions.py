"""Pictures of fits, minima and roots: data with a curve and residuals, marks on a curve, a path."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.plots.figures import figure, saved

_SIZE = (6.4, 4.8)


def fit_picture(
    form: str,
    labels: tuple[str, str],
    x: Any,
    response: Any,
    curve: tuple[Any, Any],
    residual: Any,
    bars: tuple[Any, Any],
) -> bytes:
    """Data with their error bars and the fitted curve; below them the residuals.

    labels: of the axes. x: of the data. curve: (x, y). bars: uncertainties of x and of the response, or None.
    """
    with figure("light", _SIZE) as (found, colours):
        above, below = found.subplots(2, sharex=True, height_ratios=(3, 1))
        dots = {"fmt": ".", "color": colours[0], "elinewidth": 0.8, "zorder": 1}
        above.errorbar(x, response, xerr=bars[0], yerr=bars[1], label="data", **dots)
        above.plot(*curve, color=colours[1], label="fit", zorder=2)
        above.set_ylabel(labels[1])
        above.legend()
        below.errorbar(x, residual, yerr=bars[1], **dots)
        below.axhline(0, color=colours[1], linewidth=1)
        below.set_xlabel(labels[0])
        below.set_ylabel("residual")
        return saved(found, form)


def curve_picture(
    form: str, labels: tuple[str, str], curve: tuple[Any, Any], marks: tuple[Any, Any]
) -> bytes:
    """A curve over one variable, with marks on it."""
    with figure("light", _SIZE) as (found, colours):
        axes = found.subplots()
        axes.plot(*curve, color=colours[0])
        axes.plot(*marks, "o", color=colours[1])
        axes.set_xlabel(labels[0])
        axes.set_ylabel(labels[1])
        return saved(found, form)


def contour_picture(
    form: str, labels: tuple[str, str], x: Any, y: Any, heights: Any, path: Any
) -> bytes:
    """Contours over two variables, and the path of a method to its end."""
    with figure("light", _SIZE, rows=0) as (found, colours):
        axes = found.subplots()
        levels = np.nanquantile(heights, np.linspace(0, 1, 24) ** 2)
        axes.contour(x, y, heights, np.unique(levels), linewidths=0.8)
        axes.plot(path[:, 0], path[:, 1], ".-", color=colours[1], linewidth=1)
        axes.plot(*path[-1], "o", color=colours[1])
        axes.set_xlabel(labels[0])
        axes.set_ylabel(labels[1])
        return saved(found, form)

"""Pictures of fits, minima and roots as SVG, PNG or PDF, by matplotlib (extra `plot`)."""

from __future__ import annotations

from typing import Any

from gradcli.optimize.least_squares import Array

ENDINGS = (".svg", ".png", ".pdf")


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise ImportError('--plot needs matplotlib: pip install "gradcli[plot]"') from None
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "gradcli"  # the same bytes for the same picture
    from matplotlib import pyplot

    return pyplot


def _saved(figure: Any, form: str) -> bytes:
    import io

    stream = io.BytesIO()
    dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form, {})
    figure.savefig(stream, format=form, metadata=dated)
    _pyplot().close(figure)
    return stream.getvalue()


def fit_picture(
    form: str,
    labels: tuple[str, str],
    x: Array,
    response: Array,
    curve: tuple[Array, Array],
    residual: Array,
    bars: tuple[Any, Any],
) -> bytes:
    """Data with their error bars and the fitted curve; below them the residuals.

    labels: of the axes. x: of the data. curve: (x, y). bars: uncertainties of x and of the response, or None.
    """
    figure, (above, below) = _pyplot().subplots(
        2, sharex=True, height_ratios=(3, 1), figsize=(6.4, 5.2), layout="constrained"
    )
    dots = {"fmt": ".", "color": "tab:blue", "elinewidth": 0.8, "zorder": 1}
    above.errorbar(x, response, xerr=bars[0], yerr=bars[1], label="data", **dots)
    above.plot(*curve, color="tab:red", label="fit", zorder=2)
    above.set_ylabel(labels[1])
    above.legend(frameon=False)
    below.errorbar(x, residual, yerr=bars[1], **dots)
    below.axhline(0, color="tab:red", linewidth=1)
    below.set_xlabel(labels[0])
    below.set_ylabel("residual")
    return _saved(figure, form)


def curve_picture(
    form: str, labels: tuple[str, str], curve: tuple[Array, Array], marks: tuple[Array, Array]
) -> bytes:
    """A curve over one variable, with marks on it."""
    figure, axes = _pyplot().subplots(figsize=(6.4, 4.0), layout="constrained")
    axes.plot(*curve, color="tab:blue")
    axes.axhline(0, color="grey", linewidth=0.6)
    axes.plot(*marks, "o", color="tab:red")
    axes.set_xlabel(labels[0])
    axes.set_ylabel(labels[1])
    return _saved(figure, form)


def contour_picture(
    form: str, labels: tuple[str, str], x: Array, y: Array, heights: Array, path: Array
) -> bytes:
    """Contours over two variables, and the path of a method to its end."""
    import numpy as np

    figure, axes = _pyplot().subplots(figsize=(6.4, 4.8), layout="constrained")
    levels = np.nanquantile(heights, np.linspace(0, 1, 24) ** 2)
    axes.contour(x, y, heights, np.unique(levels), linewidths=0.8)
    axes.plot(path[:, 0], path[:, 1], ".-", color="tab:red", linewidth=1)
    axes.plot(*path[-1], "o", color="tab:red")
    axes.set_xlabel(labels[0])
    axes.set_ylabel(labels[1])
    return _saved(figure, form)

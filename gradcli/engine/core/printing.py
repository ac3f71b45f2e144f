"""NumPy arrays as text, in the layout of PyTorch's tensors.

The items that are shown (all, or the edges of a summarised array) are formatted in one pass with one
width, then joined one dimension at a time. A summarised array is cut to its edges first, so that the
time to print depends on what is shown, not on the array's size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]


@dataclass
class PrintOptions:
    """The options of `set_printoptions`."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


OPTIONS = PrintOptions()
_PROFILES: dict[str, tuple[int, float, int, int]] = {
    "default": (4, 1000, 3, 80),
    "short": (2, 1000, 2, 80),
    "full": (4, float("inf"), 3, 80),
}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors print; an option that is not given keeps its value.

    As in PyTorch, `sci_mode` is the exception: if it is not given, each tensor chooses it again. An
    unknown `profile` changes nothing.
    """
    options = OPTIONS
    if profile in _PROFILES:
        (options.precision, options.threshold, options.edgeitems, options.linewidth) = _PROFILES[
            profile
        ]
    if precision is not None:
        options.precision = precision
    if threshold is not None:
        options.threshold = threshold
    if edgeitems is not None:
        options.edgeitems = edgeitems
    if linewidth is not None:
        options.linewidth = linewidth
    options.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """The current options, as keyword arguments of `set_printoptions`."""
    return asdict(OPTIONS)


@contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """A context in which the options are as `set_printoptions` would set them."""
    before = get_printoptions()
    set_printoptions(**options)
    try:
        yield
    finally:
        set_printoptions(**before)


def array_text(array: Array, indent: int = 7) -> str:
    """The items of an array between brackets, as PyTorch lays them out.

    `indent` is the column where the text starts; lines after the first are indented to match.
    """
    array = np.asarray(array)
    if array.size == 0:
        return "[]"
    array, cut = _edges(array)
    if array.size == 0:
        return "[...]"
    items, width = _items(array)
    return _join(items, array.shape, cut, indent, width)


def _edges(array: Array) -> tuple[Array, list[bool]]:
    """What is shown of an array, all or its edges, and which dimensions are cut."""
    if array.size <= OPTIONS.threshold or array.ndim == 0:
        return array, [False] * array.ndim
    edge = int(OPTIONS.edgeitems)
    cut = [size > 2 * edge for size in array.shape]
    for axis, (shortened, size) in enumerate(zip(cut, array.shape, strict=True)):
        if shortened:
            array = array[(slice(None),) * axis + (np.r_[:edge, size - edge : size],)]
    return array, cut


def array_html(array: Array, facts: Sequence[str] = ()) -> str:
    """An array of one dimension or more as HTML: a table a slice, numbers aligned by their points.

    facts: what stands below beside the shape and the dtype. Shortened as `array_text` is.
    """
    from html import escape

    kept, cut = _edges(array)
    items: Array = np.array(_items(kept)[0] if kept.size else [], dtype=object)
    items = items.reshape(kept.shape)
    edge = int(OPTIONS.edgeitems)
    for axis, shortened in enumerate(cut):
        if shortened:
            items = np.insert(items, edge, "…", axis)
    rows = items.reshape(*items.shape[:-2], -1, items.shape[-1])
    parts = []
    for place in np.ndindex(rows.shape[:-2]):
        if place:
            index = _place(place, cut, array.shape)
            parts.append(f"<div>{'…' if '…' in index else f'[{index}, :, :]'}</div>")
            if "…" in index:
                continue
        cells = ["".join(f"<td>{escape(text)}</td>" for text in row) for row in rows[place]]
        parts.append("<table>" + "".join(f"<tr>{row}</tr>" for row in cells) + "</table>")
    said = ", ".join([f"{tuple(array.shape)}", array.dtype.name, *facts])
    body = "".join(parts).replace("<td>", '<td style="text-align:right;white-space:pre">')
    return f'<div style="font-family:monospace">{body}<div>{escape(said)}</div></div>'


def _place(place: Sequence[int], cut: Sequence[bool], shape: Sequence[int]) -> str:
    """The index of a slice; of one behind the gap as it is in the whole array."""
    edge = int(OPTIONS.edgeitems)
    found = []
    for i, shortened, size in zip(place, cut, shape, strict=False):
        behind = shortened and i > edge
        found.append(
            "…" if shortened and i == edge else str(i + size - 2 * edge - 1 if behind else i)
        )
    return ", ".join(found)


def tensor_text(
    array: Array,
    *,
    prefix: str = "tensor",
    default_dtype: np.dtype[Any],
    suffixes: Sequence[str] = (),
) -> str:
    """The text of a whole tensor: `tensor([1., 2.], dtype=torch.float64, requires_grad=True)`.

    `suffixes` come after the size and the dtype, which are added here where PyTorch shows them:
    the size of an empty tensor that is not one-dimensional, and every dtype but those that the
    items tell (the default floating dtype, its complex one, int64 and bool; of an empty tensor
    only the first).
    """
    array = np.asarray(array)
    indent = len(prefix) + 1
    kind: np.dtype[Any] = array.dtype
    if array.size == 0:
        show_size, show_dtype = array.ndim != 1, kind != default_dtype
    else:
        show_size = not OPTIONS.edgeitems
        show_dtype = kind != default_dtype and kind not in (
            np.dtype(np.complex128 if default_dtype == np.float64 else np.complex64),
            np.dtype(np.int64),
            np.dtype(np.bool_),
        )
    parts = [f"size={array.shape}"] if show_size else []
    if show_dtype:
        parts.append(f"dtype=torch.{kind.name}")
    return _add_suffixes(f"{prefix}({array_text(array, indent)}", [*parts, *suffixes], indent)


def _add_suffixes(text: str, suffixes: Sequence[str], indent: int) -> str:
    pieces = [text]
    # PyTorch counts the last line as one or two characters longer than it is.
    used = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if used + len(suffix) + 2 > OPTIONS.linewidth:
            pieces.append(",\n" + " " * indent + suffix)
            used = indent + len(suffix)
        else:
            pieces.append(", " + suffix)
            used += len(suffix) + 2
    pieces.append(")")
    return "".join(pieces)


def _join(
    items: list[str], shape: tuple[int, ...], cut: list[bool], indent: int, width: int
) -> str:
    """Join formatted items, a flat list in row-major order, into nested brackets."""
    if not shape:
        return items[0]
    edge = int(OPTIONS.edgeitems)
    for axis in range(len(shape) - 1, -1, -1):
        size, column = shape[axis], indent + axis
        newline = "\n" + " " * (column + 1)
        innermost = axis == len(shape) - 1
        a_line = max(1, (OPTIONS.linewidth - column) // (width + 2)) if innermost else 1
        joined = []
        for start in range(0, len(items), size):
            primitive = items[start : start + size]
            if cut[axis]:
                primitive[edge:edge] = [" ..." if innermost else "..."]
            if innermost:
                primitive = [
                    ", ".join(primitive[i : i + a_line]) for i in range(0, len(primitive), a_line)
                ]
                joined.append("[" + ("," + newline).join(primitive) + "]")
            else:
                blank = "\n" * (len(shape) - axis - 2)
                joined.append("[" + ("," + blank + newline).join(primitive) + "]")
        items = joined
    return items[0]


def _items(array: Array) -> tuple[list[str], int]:
    """The padded text of every item, and the width of an item for breaking lines."""
    flat = array.reshape(-1)
    if flat.dtype.kind != "c":
        item, width = _formatter(flat)
        return [item(value) for value in flat.tolist()], width
    real, real_width = _formatter(flat.real)
    imag, imag_width = _formatter(flat.imag)
    texts = []
    for value in flat.tolist():
        part = imag(value.imag).lstrip()
        texts.append(f"{real(value.real)}{'' if part[0] in '+-' else '+'}{part}j")
    return texts, real_width + imag_width + 1


def _formatter(flat: Array) -> tuple[Callable[[Any], str], int]:
    """The format of the items, and their width.

    As in PyTorch, zeros and non-finite values do not count for the mode and the width. Texts grow with
    the magnitude (in scientific notation also towards tiny exponents), so the extremes of each sign
    decide the width.
    """
    if flat.dtype.kind == "b":
        width = 4 if flat.all() else 5
        return lambda value: str(value).rjust(width), width
    if flat.dtype.kind in "iu":
        width = max(len(str(flat.min())), len(str(flat.max())))
        return lambda value: str(value).rjust(width), width
    telling = flat[np.isfinite(flat) & (flat != 0)]
    if telling.size == 0:
        return _integral(1), 1
    extremes = [
        float(extreme)
        for side in (telling[telling > 0], telling[telling < 0])
        if side.size
        for extreme in (side.min(), side.max())
    ]
    integral = bool((telling == np.ceil(telling)).all())
    scientific = OPTIONS.sci_mode
    if scientific is None:
        magnitudes = [abs(extreme) for extreme in extremes]
        low, high = min(magnitudes), max(magnitudes)
        # Divide as PyTorch does, with Python floats: multiplying by the inverse would differ in the last
        # digit, and 1/5e-324 overflows to inf.
        scientific = high / low > 1000.0 or high > 1.0e8 or low < 1.0e-4
    if integral and not scientific:
        width = max(len(f"{extreme:.0f}") for extreme in extremes) + 1
        return _integral(width), width
    form = f".{OPTIONS.precision}{'e' if scientific else 'f'}"
    width = max(len(format(extreme, form)) for extreme in extremes)
    padded = f"{width}{form}"
    return lambda value: format(value, padded), width


def _integral(width: int) -> Callable[[Any], str]:
    # inf and nan do not get the "." that marks a float.
    return lambda value: f"{value:.0f}{'.' if isfinite(value) else ''}".rjust(width)

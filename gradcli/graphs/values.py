"""Arrays as one line of text and as JSON, for people and programs that look at a graph."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

EDGE_ITEMS = 3


def as_array(value: Any) -> Any:
    """Return the numpy array behind a tensor, an array or a number."""
    array = getattr(value, "array", None)
    if array is not None:
        return array
    if hasattr(value, "detach"):
        return value.detach().numpy()
    import numpy as np

    return np.asarray(value)


def is_tensor(value: Any) -> bool:
    """Tell whether a saved value is a tensor (or an array) rather than a scalar or an option."""
    return hasattr(value, "shape") and hasattr(value, "dtype")


def dtype_name(dtype: Any) -> str | None:
    """Return "float64" for numpy's, torch's and gradcli's own dtype objects alike."""
    if dtype is None:
        return None
    return getattr(dtype, "name", None) or str(dtype).rpartition(".")[2]


def default_dtype() -> str:
    """Return the name of the dtype that goes without saying."""
    from gradcli.engine.dtypes import get_default_dtype

    return str(get_default_dtype().name)


def is_finite(value: Any) -> bool:
    """Tell whether every element is neither NaN nor infinite."""
    import numpy as np

    array = np.asarray(as_array(value))
    return array.dtype.kind not in "fc" or bool(np.isfinite(array).all())


def number(value: Any, precision: int | None = None) -> str:
    """Write one element: shortest digits that round-trip, integers without a point."""
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    if kind == "c" or isinstance(value, complex):
        return _complex(value, precision)
    if kind == "b" or isinstance(value, bool):
        return str(bool(value))
    if kind in ("i", "u") or isinstance(value, int):
        return str(int(value))
    plain = float(value)
    if math.isnan(plain):
        return "nan"
    if math.isinf(plain):
        return "inf" if plain > 0 else "-inf"
    if precision is not None:
        short = f"{plain:.{precision}g}"
        return "0" if short == "-0" else short
    if plain.is_integer() and abs(plain) < 1e16:
        return str(int(plain))
    # A float16 or float32 knows its own shortest digits; Python's float would print its noise.
    return str(value)


def _complex(value: Any, precision: int | None) -> str:
    real, imaginary = number(value.real, precision), number(value.imag, precision)
    sign = "" if imaginary.startswith("-") else "+"
    return f"{real}{sign}{imaginary}j"


def text(value: Any, precision: int | None = None, summarise: int | None = 6) -> str:
    """Write an array on one line; axes longer than `summarise` keep their two ends."""
    import numpy as np

    array = np.asarray(as_array(value))
    if array.ndim == 0:
        return number(array[()], precision)
    if array.size == 0:
        return "[]" if array.ndim == 1 else f"[] of shape {shape_text(array.shape)}"
    gaps = [summarise is not None and n > summarise for n in array.shape]
    for axis, gap in enumerate(gaps):
        if gap:
            ends = np.r_[0:EDGE_ITEMS, array.shape[axis] - EDGE_ITEMS : array.shape[axis]]
            array = array.take(ends, axis=axis)
    rows = [number(x, precision) for x in array.ravel()]
    # From the last axis to the first: joins a row of texts into one text, again and again.
    for n, gap in zip(reversed(array.shape), reversed(gaps), strict=True):
        rows = [_row(rows[i : i + n], gap) for i in range(0, len(rows), n)]
    return rows[0]


def _row(items: list[str], gap: bool) -> str:
    if gap:
        items = [*items[:EDGE_ITEMS], "…", *items[-EDGE_ITEMS:]]
    return f"[{', '.join(items)}]"


def shape_text(shape: Iterable[int] | None) -> str:
    """Write a shape as Python does: (), (3,), (2, 3)."""
    return "" if shape is None else str(tuple(int(n) for n in shape))


def bytes_text(count: int) -> str:
    """Write a number of bytes for people."""
    if count < 1024:
        return f"{count} B"
    size, units = count / 1024, ("KiB", "MiB", "GiB", "TiB")
    for unit in units[:-1]:
        if size < 1023.95:
            return f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} {units[-1]}"


def to_json(value: Any) -> Any:
    """Turn an array into nested lists: numbers that round-trip, non-finite ones as strings."""
    import numpy as np

    array = np.asarray(as_array(value))
    items = [_json_number(x) for x in array.ravel()]
    if array.ndim == 0:
        return items[0]
    if array.size == 0:
        return array.tolist()
    for n in reversed(array.shape[1:]):
        items = [items[i : i + n] for i in range(0, len(items), n)]
    return items


def _json_number(value: Any) -> Any:
    kind = value.dtype.kind
    if kind == "c":
        return [_json_number(value.real), _json_number(value.imag)]
    if kind == "b":
        return bool(value)
    if kind in "iu":
        return int(value)
    if not math.isfinite(value):
        return number(value)
    # str() has the shortest digits of the element's own dtype, which is what must round-trip.
    return float(value) if value.dtype.itemsize == 8 else float(str(value))


def scalar_to_json(value: Any) -> Any:
    """Turn a saved option (a number, a tuple, a string, None, a dtype) into JSON."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else number(value)
    if isinstance(value, complex):
        return [scalar_to_json(value.real), scalar_to_json(value.imag)]
    if isinstance(value, tuple | list):
        return [scalar_to_json(item) for item in value]
    if hasattr(value, "shape"):
        return to_json(value)
    return str(value)

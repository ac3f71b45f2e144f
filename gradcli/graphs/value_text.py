"""Arrays as one line of text and as JSON, for people and programs that look at a graph."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

EDGE_ITEMS = 3
FEW = 6  # arrays of so many elements are written whole
FEW_ROOM = 56  # columns that these may take where others may not
NARROWEST_PRECISION = 3
STRIDED = "torch.strided"  # sparse tensors have another layout


def as_array(value: Any) -> Any:
    """Return the numpy array behind a tensor, an array or a number; of a batch, all its entries."""
    array = getattr(value, "array", None)
    if array is not None:
        from gradcli.engine.core.batched_arrays import numbers

        return numbers(array)
    if isinstance(value, Stats):
        return as_array(value.whole)
    import numpy as np

    if hasattr(value, "detach"):
        return np.asarray(_torch_array(value))
    return np.asarray(value)


def _torch_array(tensor: Any) -> Any:
    """The NumPy array of a tensor of PyTorch's, on whatever device, in whatever dtype."""
    plain = tensor.detach().cpu()
    if plain._is_zerotensor():  # of forward mode, and without memory
        plain = plain.new_zeros(plain.shape)
    if str(plain.layout) != STRIDED:
        plain = plain.to_dense()
    try:
        return plain.resolve_conj().resolve_neg().numpy()
    except TypeError:  # bfloat16 and the like, which NumPy does not have
        return plain.float().numpy()


def is_tensor(value: Any) -> bool:
    """Tell whether a saved value is a tensor (or an array) rather than a scalar or an option."""
    return hasattr(value, "shape") and hasattr(value, "dtype")


@lru_cache
def dtype_name(dtype: Any) -> str | None:
    """Return "float64" for numpy's, torch's and gradcli's own dtype objects alike."""
    if dtype is None:
        return None
    return getattr(dtype, "name", None) or str(dtype).rpartition(".")[2]


def default_dtype() -> str:
    """Return the name of the dtype that goes without saying."""
    from gradcli.engine.system.dtypes import get_default_dtype

    return str(get_default_dtype().name)


def is_finite(value: Any) -> bool:
    """Tell whether every element is neither NaN nor infinite."""
    if isinstance(value, Stats):
        return not value.bad
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

    if isinstance(value, Stats) and value.whole is None:
        return brief(value, precision)
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


# -- what is told of an array that has no room ----------------------------------------------------
@dataclass(slots=True)
class Stats:
    """An array in a few numbers: enough for a box, a column, a row of a table.

    norm: Euclidean, of all elements (NaN where one is). low, high: of the finite ones, None where there
    is none. zeros, bad: how many elements are 0, and how many NaN or infinite. some: the elements,
    or the first two and the last. whole: the array itself, where it is small or at hand.
    """

    shape: tuple[int, ...]
    dtype: str | None
    size: int
    norm: float
    low: Any
    high: Any
    zeros: int
    bad: int
    some: list[Any]
    whole: Any = None
    place: tuple[
        int, ...
    ] = ()  # of the first NaN, or else the first infinity, where it is not whole


def norm_of(tensor: Any) -> Stats:
    """The norm of a dense tensor of PyTorch's; all else is counted up only where it is not finite."""
    size = int(tensor.numel())
    if size <= EDGE_ITEMS or str(tensor.layout) != STRIDED or not tensor.is_floating_point():
        return _torch_stats(tensor)
    norm = _torch_norm(tensor.detach())
    if not math.isfinite(norm):
        return _torch_stats(tensor)
    shape, dtype = tuple(map(int, tensor.shape)), dtype_name(tensor.dtype)
    return Stats(shape, dtype, size, norm, None, None, 0, 0, [])


def stats_of(value: Any) -> Stats:
    """Count an array up. Of a tensor of PyTorch's only what is told leaves its device."""
    if isinstance(value, Stats):
        return value
    if hasattr(value, "detach") and not hasattr(value, "array"):
        return _torch_stats(value)
    import numpy as np

    array = np.asarray(as_array(value))
    if array.ndim == 0 and array.dtype.kind in "fiub":
        return _number_stats(array[()])
    flat = array.ravel()
    some = list(flat) if flat.size <= FEW else [flat[0], flat[1], flat[-1]]
    shape, dtype = tuple(array.shape), dtype_name(array.dtype)
    if flat.dtype.kind not in "fciub":
        return Stats(shape, dtype, flat.size, math.nan, None, None, 0, 0, some, value)
    size = np.abs(flat) if flat.dtype.kind == "c" else flat
    finite = np.isfinite(size)
    bad = int(flat.size - np.count_nonzero(finite))
    good = size[finite] if bad else size
    low, high = (good.min(), good.max()) if good.size else (None, None)
    zeros = int(flat.size - np.count_nonzero(flat))
    return Stats(shape, dtype, flat.size, _norm(size), low, high, zeros, bad, some, value)


def _number_stats(value: Any) -> Stats:
    plain = float(value)
    bad = not math.isfinite(plain)
    ends = None if bad else value
    dtype = dtype_name(value.dtype)
    return Stats((), dtype, 1, abs(plain), ends, ends, int(plain == 0), int(bad), [value], value)


def _ends(flat: Any) -> list[Any]:
    """The first two elements of a tensor of PyTorch's and the last, as NumPy's."""
    if flat.device.type == "cpu" and not (flat.is_conj() or flat.is_neg()):
        try:
            array = flat.numpy()  # which takes less time than an index does
            return [array[0], array[1], array[-1]]
        except TypeError:  # bfloat16
            pass
    return list(_torch_array(flat[[0, 1, -1]]))


def _norm(array: Any) -> float:
    """The Euclidean norm in double precision, without overflow on the way."""
    import numpy as np

    wide = array.astype(np.float64)
    most = float(np.abs(wide).max()) if wide.size else 0.0
    if most == 0.0 or not math.isfinite(most):
        return most
    if 1e-150 < most < 1e150:
        return math.sqrt(float(wide @ wide))
    return most * math.sqrt(float(((wide / most) ** 2).sum()))


def _torch_norm(tensor: Any) -> float:
    if tensor.is_contiguous() and tensor.dtype.itemsize > 2:  # the product is the faster one
        flat = tensor.view(-1)
        norm = math.sqrt(flat.dot(flat))
        if 1e-15 < norm < 1e15:  # else squares may be no numbers
            return norm
    return float(tensor.norm())


def _torch_stats(tensor: Any) -> Stats:
    import numpy as np

    plain = tensor.detach()
    if str(plain.layout) != STRIDED:
        plain = plain.to_dense()
    shape, dtype = tuple(map(int, plain.shape)), dtype_name(plain.dtype)
    size = int(plain.numel())
    if size <= 4096 and plain.device.type == "cpu":
        # NumPy is quicker on little, and PyTorch's threads stay asleep.
        small = stats_of(_torch_array(plain).copy())
        small.dtype = dtype
        return small
    flat = plain.reshape(-1)
    some = _ends(flat)
    real = flat.abs() if flat.is_complex() else flat
    if not real.is_floating_point():
        real = real.double()
    low, high = (end.item() for end in real.aminmax())
    bad = 0
    place: tuple[int, ...] = ()
    norm = _torch_norm(real)
    if not (math.isfinite(low) and math.isfinite(high)):
        array = _torch_array(real)
        finite = np.isfinite(array)  # NumPy is quicker at this, and at choosing
        bad = size - int(np.count_nonzero(finite))
        low = high = None
        if bad < size:
            low = float(np.where(finite, array, np.inf).min())
            high = float(np.where(finite, array, -np.inf).max())
        odd = np.isnan(array) if math.isnan(norm) else ~finite
        place = tuple(map(int, np.unravel_index(odd.argmax(), shape)))
    elif not math.isfinite(norm):
        norm = real.double().norm().item()
    zeros = 0
    if low is None or high is None or low <= 0 <= high:
        truth = flat.bool()  # which NumPy counts several times as fast as PyTorch does numbers
        on_cpu = truth.device.type == "cpu"
        zeros = size - int(np.count_nonzero(truth.numpy()) if on_cpu else truth.count_nonzero())
    return Stats(shape, dtype, size, norm, low, high, zeros, bad, some, place=place)


def brief(value: Any, precision: int | None = None, room: int | None = None) -> str:
    """Write an array in a few numbers, in at most `room` columns if that can be.

    Up to six elements are written as they are, of more the first two, the last and the norm:
    `[0.5, -1, …, 2] ‖3.2‖`. Where the room is small there are fewer digits, then fewer numbers.
    """
    known = stats_of(value)
    if known.shape == ():
        best = number(known.some[0], precision)
        if room is None or len(best) <= room:
            return best
    best = ""
    for candidate in _briefs(known, precision):
        if room is None or len(candidate) <= room:
            return candidate
        if not best or len(candidate) < len(best):
            best = candidate
    return best


def room_of(value: Any, usual: int, precision: int | None = None) -> int:
    """The columns that an array may take: more than usual where it has few elements, to show them."""
    known = stats_of(value)
    if known.size > FEW or known.shape == ():
        return usual
    written = [text(elements(known), p) for p in (precision, NARROWEST_PRECISION, 2)]
    if len(written[0]) <= usual:
        return usual
    return max(usual, next((len(one) for one in written[1:] if len(one) <= FEW_ROOM), usual))


def whole_room(value: Any) -> int:
    """The columns that all numbers of an array of few elements take, with three digits; 0 of other arrays."""
    known = stats_of(value)
    if known.size > FEW or known.shape == ():
        return 0
    return min(len(text(elements(known), NARROWEST_PRECISION)), FEW_ROOM)


def _briefs(known: Stats, precision: int | None) -> Iterable[str]:
    short = NARROWEST_PRECISION if precision is None else min(precision, NARROWEST_PRECISION)
    digits = dict.fromkeys((precision, short))
    if known.size <= FEW:
        for p in (*digits, 2):
            yield number(known.some[0], p) if known.shape == () else text(elements(known), p)
    else:
        for p in digits:
            first, second, last = (number(x, p) for x in known.some)
            norm = number(known.norm, NARROWEST_PRECISION if p is None else min(p, 4))
            yield f"[{first}, {second}, …, {last}] ‖{norm}‖"
            yield f"[{first}, …, {last}] ‖{norm}‖"
    if known.size:
        for p in range(short, 0, -1):
            yield f"‖{number(known.norm, p)}‖"


def elements(known: Stats) -> Any:
    """The elements of an array that is kept whole, or has so few that all are kept."""
    import numpy as np

    if known.whole is not None:
        return as_array(known.whole)
    return np.asarray(known.some).reshape(known.shape)


def range_text(value: Any, precision: int = 3) -> str:
    """Write what a few numbers do not tell: `norm 3.2 in [-1, 4], 25% zeros, 3 not finite`."""
    known = stats_of(value)
    parts = [f"norm {number(known.norm, precision)}"]
    if known.low is not None:
        parts[0] += f" in [{number(known.low, precision)}, {number(known.high, precision)}]"
    if known.zeros and known.size > 1:
        parts.append(f"{share(known.zeros, known.size)} zeros")
    if known.bad:
        parts.append(f"{known.bad:,} not finite")
    return ", ".join(parts)


def share(count: int, of: int) -> str:
    """Write a part of a whole in per cent; what is not nothing is never written as 0%."""
    part = 100 * count / of if of else 0.0
    if 0 < part < 0.1:
        return "<0.1%"
    if 99.9 < part < 100:
        return ">99.9%"
    return f"{part:.3g}%"


def stats_to_json(value: Any) -> dict[str, Any]:
    """Turn an array into its numbers: norm, min and max of what is finite, zeros, not_finite."""
    known = stats_of(value)
    return {
        "norm": scalar_to_json(float(known.norm)),
        "min": None if known.low is None else scalar_to_json(float(known.low)),
        "max": None if known.high is None else scalar_to_json(float(known.high)),
        "zeros": known.zeros,
        "not_finite": known.bad,
        "size": known.size,
    }


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

"""NaN and infinity: finding them, and saying which inputs they came from."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from gradcli.graphs import saved_fields, value_text

PRECISION = 6


def wrong(value: Any) -> str | None:
    """Say "nan" or "inf" for what is not finite."""
    if isinstance(value, value_text.Stats) and value.whole is None:
        return None if not value.bad else "nan" if math.isnan(value.norm) else "inf"
    import numpy as np

    array = np.asarray(value_text.as_array(value))
    if array.dtype.kind not in "fc" or np.isfinite(array).all():
        return None
    return "nan" if np.isnan(array).any() else "inf"


def place_of(value: Any) -> tuple[int, ...]:
    """Return the index of the first element that is NaN, or else of the first infinite one."""
    if isinstance(value, value_text.Stats) and value.whole is None:
        return value.place
    import numpy as np

    array = np.asarray(value_text.as_array(value))
    bad = np.isnan(array) if np.isnan(array).any() else np.isinf(array)
    return tuple(int(k) for k in np.argwhere(bad)[0]) if array.ndim else ()


def first_place(grads: Iterable[Any]) -> tuple[int, ...] | None:
    """Return the place of the first element that is not finite, in the first gradient with one."""
    return next((place_of(grad) for grad in grads if grad is not None and wrong(grad)), None)


def saved_inputs(node: Any, at: tuple[int, ...]) -> dict[str, str]:
    """Return the saved tensors of a node as texts, by the name that the program knows them by."""
    found: dict[str, str] = {}
    for name, value in saved_fields.fields(node):
        if value_text.is_tensor(value) and getattr(value, "grad_fn", None) is not node:
            found[saved_fields.name_of(value, {}) or name] = element(value, at)
    return found


def inside(at: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Tell whether a shape has an element at a place."""
    return len(at) == len(shape) and all(k < n for k, n in zip(at, shape, strict=True))


def element(value: Any, at: tuple[int, ...]) -> str:
    """Write a tensor, and its element at a place if it has one there."""
    array = value_text.as_array(value)
    text = value_text.text(array, PRECISION)
    if not at or not inside(at, array.shape) or array.size == 1:
        return text
    place = ", ".join(map(str, at))
    return f"{text} (element [{place}] is {value_text.number(array[at], PRECISION)})"

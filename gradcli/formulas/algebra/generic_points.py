"""Generic points: reproducible numbers in no special position, at which identities are tested.

They need no statistical quality, so `numpy.random` is not imported: that takes a sixth of the time of
importing NumPy.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from gradcli.engine.system import dtypes

Arrays = Mapping[str, Any]


class Generic:
    """A stream of numbers: SplitMix64 (Steele, Lea and Flood, 2014) over a counter."""

    def __init__(self, seed: int) -> None:
        """seed: any int."""
        self._state = seed * 0xD1342543DE82EF95 % 2**64

    def uniform(self, low: float, high: float, shape: tuple[int, ...]) -> Any:
        """float64 numbers in [low, high) of a shape."""
        count = math.prod(shape)
        # SplitMix64: the same numbers with every release of NumPy, so that the same command prints the same
        # text.
        bits = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        bits += np.uint64(self._state)
        self._state = (self._state + count * 0x9E3779B97F4A7C15) % 2**64
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        bits ^= bits >> np.uint64(31)
        return (low + (high - low) * ((bits >> np.uint64(11)) * 2.0**-53)).reshape(shape)


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress warnings while programs run at points that the user did not give."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def sample(shape: tuple[int, ...], number: int = 0) -> Any:
    """Generic values of a shape: positive and distinct; square matrices are well conditioned."""
    values = Generic(number + 1).uniform(0.5, 1.5, shape)
    if len(shape) == 2 and shape[0] == shape[1]:
        # Symmetric and with a heavy diagonal: then inv, cholesky and logdet have values without being asked
        # for.
        values = (values + values.T) / 4 + np.eye(shape[0]) * (1 + shape[0] / 2)
    return np.asarray(values)


# Where points lie: around 1, with both signs, and on one side of 0 and of 1 and -1.
RANGES = ((0.5, 1.5), (-1.5, 1.5), (0.1, 0.9), (1.1, 4.0), (-0.9, -0.1), (-4.0, -1.1))


def points(
    arrays: Arrays, seed: int, ranges: Iterable[tuple[float, float]] = RANGES
) -> Iterator[dict[str, Any]]:
    """Points of the same shapes, one in each range."""
    numbers = Generic(seed)
    for low, high in ranges:
        yield _changed(arrays, partial(_drawn, numbers, low, high))


def many_points(arrays: Arrays) -> Iterator[dict[str, Any]]:
    """Points of the same shapes, of eight seeds: where a function is real is among them, if anywhere."""
    for seed in range(8):
        yield from points(arrays, seed)


def _changed(arrays: Arrays, change: Callable[[Any], Any]) -> dict[str, Any]:
    """The point with other values of the variables that are no integers, of the same dtype and layout."""
    made = dict(arrays)
    for n, own in ((n, np.asarray(v)) for n, v in arrays.items()):
        if own.dtype.kind in "fc":
            made[n] = np.empty_like(own)
            made[n][...] = change(own)
    return made


def _drawn(numbers: Generic, low: float, high: float, like: Any) -> Any:
    values = numbers.uniform(low, high, like.shape)
    # abs(x) is x at positive points: a formula without abs would pass.
    if low < 0 < high and not (values < 0).any():
        values = -values  # every variable gets negative elements for certain
    if like.dtype.kind == "c":
        values = values + 1j * numbers.uniform(low, high, like.shape)
    return values


def near(arrays: Arrays, seed: int) -> Iterator[dict[str, Any]]:
    """Points close to the given one, in no special position."""
    numbers = Generic(seed)

    def moved(own: Any) -> Any:
        # Moved by a share and by a step: a share alone leaves 0 where it is.
        larger = own * numbers.uniform(1.01, 1.05, own.shape)
        return larger + numbers.uniform(0.001, 0.01, own.shape)

    for _ in range(3):
        yield _changed(arrays, moved)


def shaken(arrays: Arrays, seed: int) -> dict[str, Any]:
    """The point with its last digits changed."""
    numbers = Generic(seed)

    def moved(own: Any) -> Any:
        eps = float(np.finfo(own.dtype).eps)
        # 64 last digits, for a single one may vanish in the first rounding.
        return own * (1 + 64 * eps * numbers.uniform(-1, 1, own.shape))

    return _changed(arrays, moved)


def labels(arrays: Arrays, wrt: Iterable[str]) -> set[str]:
    """The variables not in `wrt` whose values are labels, such as 1 and -1 for two classes."""
    # A class that is moved to 0.93 is none: the loss of it would be another function.
    return {n for n, v in arrays.items() if n not in wrt and np.isin(v, (-1, 0, 1)).all()}


def labelled(other: Arrays, arrays: Arrays, wrt: Iterable[str]) -> dict[str, Any]:
    """Variables in other sizes, with labels drawn from those of the given ones."""
    kept = labels(arrays, wrt)
    return {n: np.resize(arrays[n], np.shape(v)) if n in kept else v for n, v in other.items()}


@contextmanager
def as_exact_as(arrays: Arrays) -> Iterator[None]:
    """Use double as the default dtype beside doubles, for new tensors in the text such as ones(3)."""
    double = any(np.asarray(v).dtype.char in "dD" for v in arrays.values())
    with dtypes.as_default(dtypes.float64 if double else None):
        yield

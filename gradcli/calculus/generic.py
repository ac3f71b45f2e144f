"""Generic numbers: points in no special position, the same for the same seed.

They need no statistics, only to hit upon nothing by chance; and `numpy.random`, with its generators
and what these import, takes a sixth of the time in which NumPy itself is there.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


class Generic:
    """A stream of numbers: SplitMix64 (Steele, Lea and Flood, 2014) of a counter."""

    def __init__(self, seed: int) -> None:
        """seed: any int."""
        self._state = seed * 0xD1342543DE82EF95 % 2**64

    def uniform(self, low: float, high: float, shape: tuple[int, ...]) -> Any:
        """Numbers of [low, high), float64, of a shape."""
        count = math.prod(shape)
        bits = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        bits += np.uint64(self._state)
        self._state = (self._state + count * 0x9E3779B97F4A7C15) % 2**64
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        bits ^= bits >> np.uint64(31)
        return (low + (high - low) * ((bits >> np.uint64(11)) * 2.0**-53)).reshape(shape)


@contextmanager
def quiet() -> Iterator[None]:
    """Inside, programs run at points that nobody gave, of which nobody wants to be warned."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def sample(shape: tuple[int, ...], number: int = 0) -> Any:
    """Generic values of a shape: positive, different from each other, square matrices well conditioned."""
    values = Generic(number + 1).uniform(0.5, 1.5, shape)
    if len(shape) == 2 and shape[0] == shape[1]:
        values = (values + values.T) / 4 + np.eye(shape[0]) * (1 + shape[0] / 2)
    return np.asarray(values)


__all__ = ["Generic", "quiet", "sample"]

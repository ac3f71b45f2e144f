"""Windows of signal processing: `hann_window`, `kaiser_window`, and so on."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from gradcli.engine.core.declaration import Array, DType
from gradcli.engine.core.tensor import wrap
from gradcli.engine.registry.factory_arguments import OPTIONS, makes
from gradcli.engine.registry.rule_helpers import refuse_if
from gradcli.engine.registry.table import resolve
from gradcli.engine.system import dtypes

FAMILY = "new"  # as `ops` calls it


def _window(
    name: str, size: int, periodic: bool, kind: DType | None, of: Callable[[Array, int], Array]
) -> Array:
    """A window of a size: of the numbers 0, 1, … and how many there are; one more, if periodic, is cut."""
    kind = kind or dtypes.default.real
    if kind.kind != "f":
        raise RuntimeError(
            f"{name} expects floating point dtypes, got: TensorOptions(dtype={dtypes.c_type(kind)}, "
            "device=cpu, layout=Strided (default), requires_grad=false (default), "
            "pinned_memory=false, memory_format=(nullopt))"
        )
    refuse_if(size < 0, "{} requires non-negative window_length, got window_length={}", name, size)
    if size < 2:
        return np.ones(size, kind)
    count = size + periodic
    return of(np.arange(count).astype(kind), count)[:size]


def _cosines(numbers: Array, count: int, terms: tuple[float, ...]) -> Array:
    """The sum of cosines of 0, 1, 2, … periods over the window."""
    kind = numbers.dtype
    angle = numbers * kind.type(2 * math.pi / (count - 1))
    waves = [np.cos(angle * kind.type(k)) * kind.type(term) for k, term in enumerate(terms[1:], 1)]
    total = waves[-1]  # from the shortest wave on, as PyTorch adds them
    for wave in waves[-2::-1]:
        total = total + wave
    return total + kind.type(terms[0])


def _lengths(name: str, *more: str) -> list[str]:
    """PyTorch's signatures: of the length, of it and one argument more, and so on."""
    arguments = ["int window_length", "bool periodic", *more]
    return [
        f"{name}({', '.join(arguments[:k])}, *, {OPTIONS})" for k in range(1, len(arguments) + 1)
    ]


@makes(*_lengths("hann_window"), samples="(5); (4, False)")
def hann_window(*, window_length: int, kind: DType | None, periodic: bool = True) -> Array:
    """0.5 - 0.5 cos(2 pi n/N)."""
    return _window(
        "hann_window", window_length, periodic, kind, lambda n, c: _cosines(n, c, (0.5, -0.5))
    )


@makes(
    *_lengths("hamming_window", "float alpha", "float beta"),
    samples="(5); (4, False)",
)
def hamming_window(
    *,
    window_length: int,
    kind: DType | None,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
) -> Array:
    """alpha - beta cos(2 pi n/N)."""
    return _window(
        "hamming_window", window_length, periodic, kind, lambda n, c: _cosines(n, c, (alpha, -beta))
    )


@makes(*_lengths("blackman_window"), samples="(5); (4, False)")
def blackman_window(*, window_length: int, kind: DType | None, periodic: bool = True) -> Array:
    """0.42 - 0.5 cos(2 pi n/N) + 0.08 cos(4 pi n/N)."""
    return _window(
        "blackman_window",
        window_length,
        periodic,
        kind,
        lambda n, c: _cosines(n, c, (0.42, -0.5, 0.08)),
    )


@makes(*_lengths("bartlett_window"), samples="(5); (4, False)")
def bartlett_window(*, window_length: int, kind: DType | None, periodic: bool = True) -> Array:
    """A triangle: 1 - |2 n/N - 1|."""

    def triangle(numbers: Array, count: int) -> Array:
        rising = numbers * numbers.dtype.type(2 / (count - 1))
        half = (count - 1) // 2 + 1
        return np.concatenate([rising[:half], 2 - rising[half:]])

    return _window("bartlett_window", window_length, periodic, kind, triangle)


@makes(*_lengths("kaiser_window", "float beta"), samples="(5); (4, False, 6.0)")
def kaiser_window(
    *, window_length: int, kind: DType | None, periodic: bool = True, beta: float = 12.0
) -> Array:
    """i0(beta sqrt(1 - (2 n/N - 1)**2)) / i0(beta)."""

    def bessel(numbers: Array, count: int) -> Array:
        i0 = resolve("i0")
        place = numbers.astype(np.float64) * (2 / (count - 1)) - 1
        root = np.sqrt(np.maximum(0, 1 - place**2))
        found: Array = i0(wrap(beta * root)).array / i0(wrap(np.float64(beta))).array
        return found.astype(numbers.dtype)

    return _window("kaiser_window", window_length, periodic, kind, bessel)

"""How far two numbers may be apart, and what is said where they are farther."""

from __future__ import annotations

from typing import Any

import numpy as np

RTOL = 1e-9  # of two exact evaluations


OF_SCALE = 1e-12  # how much of the largest element rounding may take from a small one


def allowed(a: Any, b: Any, rtol: float, atol: float | None, of_scale: float = OF_SCALE) -> Any:
    """How far the elements of two gradients may be apart: an array of their shape.

    rtol: relative to each element. atol: absolute; None: `of_scale` of the largest finite element.
    """
    size = np.maximum(np.abs(a), np.abs(b))
    if atol is None:
        atol = of_scale * float(np.max(size, initial=0.0, where=np.isfinite(size)))
    return atol + rtol * size


def worst(errors: Any) -> tuple[tuple[int, ...], float]:
    """(index, error) of the largest of an array's errors; of none, 0."""
    if not errors.size:
        return (), 0.0
    index = tuple(map(int, np.unravel_index(int(np.argmax(errors)), errors.shape)))
    return index, float(errors[index])


class NotFinite(ArithmeticError):
    """The function's value is infinite or NaN at the point: there is no slope to compare with."""

    def __init__(self, array: Any) -> None:
        bad = np.asarray(array)[~np.isfinite(array)].ravel()[0]
        super().__init__(f"the value is {'nan' if np.isnan(bad) else bad} there")


class Comparison:
    """Both gradients, and the largest relative error; true where they agree.

    doubt: what is allowed for each element besides. wrong: which are farther apart. derivative: the true
    one as an expression. mistake: what is likely to be wrong, in words.
    """

    __slots__ = ("derivative", "error", "given", "index", "mistake", "ok", "true", "wrong")

    def __init__(
        self,
        given: Any,
        true: Any,
        rtol: float,
        atol: float | None,
        of_scale: float = OF_SCALE,
        doubt: Any = 0.0,
    ) -> None:
        self.given, self.true = given, true
        difference, size = np.abs(given - true), np.maximum(np.abs(given), np.abs(true))
        both = (given == true) | (np.isnan(given) & np.isnan(true))
        with np.errstate(all="ignore"):
            relative = np.where(both, 0.0, difference / np.where(size == 0, 1.0, size))
        relative = np.where(np.isnan(relative), np.inf, relative)
        most = allowed(given, true, rtol, atol, of_scale) + doubt
        self.wrong = ~np.asarray(both | (difference <= most))
        self.ok = not self.wrong.any()
        self.index, self.error = worst(relative)
        self.derivative: str | None = None
        self.mistake: str | None = None

    def __bool__(self) -> bool:
        return self.ok

    def __repr__(self) -> str:
        if self.ok:
            return f"ok: max error {self.error:.1e}"
        said = [f"wrong: given {self.given}, true {self.true}"]
        said += [f"  the derivative is {self.derivative}"] if self.derivative else []
        return "\n".join([*said, *([f"  {self.mistake}"] if self.mistake else [])])

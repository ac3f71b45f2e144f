"""Recorders that tell rounding and overflow from mistakes: a program is run again, and each result looked at.

`Rounding` changes the last digits of every result. It is Monte Carlo arithmetic (Parker, 1997): a program
that is run several times with its rounding errors drawn at random shows in the spread of its results which of
their digits mean something. A change of the operands alone does not: tanh(20) is 1 for all operands near 20,
and 1 - tanh(20)**2 is 0 or one last digit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from gradcli.engine.core import modes
from gradcli.engine.core.modes import changed


class Looking:
    """Runs primitives, and looks at what they compute; see `modes.TraceHooks`.

    The rules of backward passes run on tensors, so that each of their operations is seen.
    """

    tensors = True

    def call(self, primitive: Any, values: list[Any]) -> Any:
        """Run a primitive on tensors."""
        return self.seen(primitive, primitive.arrays(values))

    def run(self, primitive: Any, operands: list[Any]) -> Any:
        """Run a primitive on arrays."""
        return self.seen(primitive, operands)

    def seen(self, primitive: Any, operands: list[Any]) -> Any:
        """Run a primitive, and give back its result or one in its place."""
        raise NotImplementedError

    def memory(self, array: Any) -> Any:
        """The array, which is ordinary memory here."""
        return np.asarray(array)

    def draw(self) -> None:
        """Random numbers may be drawn."""

    def arrived(self, had: Any, new: Any, node: Any) -> Any:
        """The sum of the gradients that have arrived at a node."""
        return new if had is None else had + new

    def total(self, arrived: Any) -> Any:
        """The sum that `arrived` has made."""
        return arrived


class Rounding(Looking):
    """Moves what is computed by random last digits; numbers: draws them, `uniform(low, high, shape)`."""

    def __init__(self, numbers: Any) -> None:
        self.numbers = numbers

    def seen(self, primitive: Any, operands: list[Any]) -> Any:
        """The result, rounded; a view stays, as it moves elements and computes none."""
        result = primitive.compute(operands)
        if primitive.view:
            return result
        if primitive.returns_one:
            return self._rounded(result)
        return tuple(map(self._rounded, result))

    def _rounded(self, array: Any) -> Any:
        kind = getattr(array, "dtype", None)
        if kind is None or kind.kind not in "fc":
            return array
        # By one to two last digits up or down, never by nothing.
        own = self.numbers.uniform(-1.0, 1.0, np.shape(array))
        made = array * (1 + float(np.finfo(kind).eps) * (own + np.copysign(1.0, own)))
        return made.astype(kind) if made.dtype != kind else made


class Overflow(Looking):
    """Looks for what becomes infinite, or nan, of numbers: exp(1000), and log(-1).

    infinite: whether finite operands gave an infinite result. undefined: whether they gave nan.
    """

    def __init__(self) -> None:
        self.infinite = self.undefined = False

    def seen(self, primitive: Any, operands: list[Any]) -> Any:
        """The result."""
        result = primitive.compute(operands)
        for array in (result,) if primitive.returns_one else result:
            if np.result_type(array).kind not in "fc" or np.isfinite(array).all():
                continue
            if all(np.isfinite(o).all() for o in _floats(operands)):
                self.infinite |= bool(np.isinf(array).any())
                self.undefined |= bool(np.isnan(array).any())
        return result


def _floats(operands: list[Any]) -> Iterator[Any]:
    for o in operands:
        for own in o if type(o) in (list, tuple) else (o,):
            if (
                isinstance(own, (float, complex))
                or getattr(own, "dtype", np.dtype(int)).kind in "fc"
            ):
                yield own


def rounding(numbers: Any) -> changed:
    """A context in which results are rounded at random; numbers: see `Rounding`."""
    return modes.changed(recorder=Rounding(numbers))


@contextmanager
def overflows() -> Iterator[Overflow]:
    """A context in which it is seen what becomes infinite or nan."""
    found = Overflow()
    with modes.changed(recorder=found):
        yield found


__all__ = ["Overflow", "Rounding", "overflows", "rounding"]

"""The gradients that a compiled function gives."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np


def _alone(sign: Callable[[Any, Any], Any], swapped: bool = False) -> Callable[[Any, Any], Any]:
    """An operation on the one gradient."""

    def operation(self: Gradients, other: Any) -> Any:
        own = self.alone()
        return sign(other, own) if swapped else sign(own, other)

    return operation


class Gradients(dict[str, Any]):
    """Gradients by the names of their variables.

    Where there is one variable, NumPy and SciPy take it for its gradient: `minimize(f.value_and_grad, x0,
    jac=True)`, `x - 0.1*grads`. Of several, that is a TypeError.
    """

    __slots__ = ()

    def alone(self) -> Any:
        """The gradient of the one variable."""
        if len(self) != 1:
            first = next(iter(self), "x")
            raise TypeError(
                f"these are the gradients by {', '.join(self)}: choose one by its name, as in "
                f"grads[{first!r}], or compile(…, wrt={first!r})"
            )
        return next(iter(self.values()))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        found = np.asarray(self.alone(), dtype)
        return found.copy() if copy else found

    __add__, __radd__ = _alone(operator.add), _alone(operator.add, True)
    __sub__, __rsub__ = _alone(operator.sub), _alone(operator.sub, True)
    __mul__, __rmul__ = _alone(operator.mul), _alone(operator.mul, True)
    __matmul__, __rmatmul__ = _alone(operator.matmul), _alone(operator.matmul, True)
    __truediv__, __rtruediv__ = _alone(operator.truediv), _alone(operator.truediv, True)
    __pow__ = _alone(operator.pow)

    def __neg__(self) -> Any:
        return -self.alone()


__all__ = ["Gradients"]

"""A hand-derived gradient against the true one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gradcli.core.backward_pass import grad
from gradcli.core.tensor import Tensor, wrap
from gradcli.language import parse, run
from gradcli.language.located_errors import LanguageError
from gradcli.language.program import Program

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


class NotFinite(ArithmeticError):
    """The function's value is infinite or NaN at the point: there is no slope to compare with."""

    def __init__(self, array: Any) -> None:
        bad = np.asarray(array)[~np.isfinite(array)].ravel()[0]
        super().__init__(f"the value is {'nan' if np.isnan(bad) else bad} there")


class Comparison:
    """Both gradients, and the largest relative error. derivative: the true one as an expression."""

    __slots__ = ("derivative", "error", "given", "index", "ok", "true")

    def __init__(self, given: Any, true: Any, rtol: float, atol: float | None) -> None:
        self.given, self.true = given, true
        difference, size = np.abs(given - true), np.maximum(np.abs(given), np.abs(true))
        both = (given == true) | (np.isnan(given) & np.isnan(true))
        with np.errstate(all="ignore"):
            relative = np.where(both, 0.0, difference / np.where(size == 0, 1.0, size))
        relative = np.where(np.isnan(relative), np.inf, relative)
        self.ok = bool((both | (difference <= allowed(given, true, rtol, atol))).all())
        at = int(np.argmax(relative)) if relative.size else 0
        self.index = (
            tuple(int(i) for i in np.unravel_index(at, relative.shape)) if true.size else ()
        )
        self.error = float(relative[self.index]) if true.size else 0.0
        self.derivative: str | None = None


def compare_formula(
    program: Program,
    text: str,
    arrays: Mapping[str, Any],
    name: str,
    names: Mapping[str, Any] | None = None,
    *,
    rtol: float = RTOL,
    atol: float | None = None,
    says: bool = False,
) -> Comparison:
    """Compare the gradient of a program by a variable with a formula, at a point.

    A value that is no scalar is summed up first, as `gradcli diff` does. says: whether what the program
    prints is printed. Raises NotFinite where the value is not finite.
    """
    formula = parse(text)
    leaf = wrap(np.array(arrays[name]), requires_grad=True)
    rest = {n: wrap(np.array(a)) for n, a in arrays.items() if n != name}
    write = None if says else lambda text: None
    value = run(program, {**(names or {}), **rest, name: leaf}, write=write).value
    if not isinstance(value, Tensor):
        raise TypeError("the value is not a tensor: there is no gradient")
    if not np.isfinite(value.array).all():
        raise NotFinite(value.array)
    found = None
    if value.requires_grad:
        (found,) = grad(value, [leaf], wrap(np.ones_like(value.array)), allow_unused=True)
    true = np.zeros(leaf.shape) if found is None else np.asarray(found.array)
    plain = {n: wrap(np.array(a)) for n, a in arrays.items()}
    given = formula_at(formula, {**(names or {}), **plain})
    if given.shape != true.shape:
        if given.size != 1:
            raise LanguageError(
                f"the formula has shape {given.shape}, and the gradient {true.shape}",
                kind="shape",
                source=text,
                span=(0, len(text)),
                usage=False,
            )
        given = np.broadcast_to(given.reshape(()), true.shape)
    result = Comparison(given, true, rtol, atol)
    if not result.ok:
        result.derivative = _derivative(program, arrays, name, names or {})
    return result


def formula_at(formula: Program, values: Mapping[str, Any]) -> Any:
    """A formula's value as an array."""
    given = run(formula, values).value
    return np.asarray(given.array if isinstance(given, Tensor) else given)


def _derivative(
    program: Program, arrays: Mapping[str, Any], name: str, names: Mapping[str, Any]
) -> str | None:
    from gradcli.symbolic.differentiate import differentiate
    from gradcli.symbolic.lifting import NoExpression
    from gradcli.symbolic.printed_text import spelled_out

    try:
        found = differentiate(program, arrays, [name], follow=True, names=names)
    except (LanguageError, NoExpression):
        return None
    return spelled_out(found.by[name])


__all__ = ["Comparison", "NotFinite", "allowed", "compare_formula", "formula_at"]

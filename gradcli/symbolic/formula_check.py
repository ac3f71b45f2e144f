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
from gradcli.transforms.tolerances import RTOL, Comparison, NotFinite


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

    A value that is not a scalar is summed first, as in `gradcli diff`. says: whether the program's
    `print` writes. Raises NotFinite if the value is not finite.
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


__all__ = ["compare_formula", "formula_at"]

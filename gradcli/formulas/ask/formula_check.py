"""A hand-derived derivative against the true one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.formulas.algebra.generic_points import Generic, points, shaken
from gradcli.formulas.ask.composed_derivatives import AskedDerivative, shape_of_value
from gradcli.formulas.ask.likely_mistakes import likely_mistake
from gradcli.formulas.ask.likely_repairs import repaired
from gradcli.formulas.ask.proof import tape_gradients
from gradcli.language import parse, run
from gradcli.language.located_errors import LanguageError
from gradcli.language.no_derivative import relation, without_derivative
from gradcli.language.program import Program
from gradcli.language.scope_checks import assigned_names, free_names
from gradcli.transforms import traced_matrices
from gradcli.transforms.limits import tree_of
from gradcli.transforms.tolerances import RTOL, Comparison, NotFinite, allowed
from gradcli.transforms.tracing.rounding import rounding

SHAKEN = 8  # points whose last digits are others
_MARGIN = 4  # of what these show: a few points seldom have the worst of it


def compare_formula(
    program: Program,
    text: str,
    arrays: Mapping[str, Any],
    name: str,
    names: Mapping[str, Any] | None = None,
    *,
    order: int = 1,
    jacobian: bool = False,
    rtol: float = RTOL,
    atol: float | None = None,
    says: bool = False,
) -> Comparison:
    """Compare a derivative of a program by a variable with a formula, at a point.

    order: of the derivative; the second of an array is the Hessian. jacobian: the matrix of a value that
    is not a scalar, which otherwise is summed first, as in `gradcli diff`. says: whether the program's
    `print` writes. The formula may read the names that the program assigns, as they are at its end.
    Raises NotFinite if the value is not finite.
    """
    formula, others = parse(text), names or {}

    def true_at(program: Program, arrays: Mapping[str, Any], says: bool = False) -> Any:
        return _true(program, arrays, name, others, order, jacobian, says)

    def given_at(arrays: Mapping[str, Any], formula: Program = formula) -> Any:
        own = {**others, **{n: wrap(np.array(a)) for n, a in arrays.items()}}
        given = formula_at(formula, own, program)
        shape = derivative_shape(program, arrays, name, others, order, jacobian)
        return np.broadcast_to(given.reshape(()), shape) if given.size == 1 else given

    def repair() -> str | None:
        where = [arrays, *islice(points(arrays, 1), 1)]
        right = [true_at(program, a) for a in where]
        return repaired(text, where, right, lambda made, a: given_at(a, parse(made)))

    true = true_at(program, arrays, says)
    try:
        given = given_at(arrays)
    except LanguageError as error:
        if not error.usage:
            error.hint = repair() or error.hint
        raise
    if given.shape != true.shape and not (given.T.shape == true.shape and given.ndim == 2):
        matrix = derivative_shape(program, arrays, name, others, order, True)
        summed = (
            "the value is not a scalar, and its sum is differentiated; --jacobian is the matrix"
        )
        raise LanguageError(
            f"the formula has shape {given.shape}, and the derivative {true.shape}",
            kind="shape",
            source=text,
            span=(0, len(text)),
            hint=summed if not jacobian and given.shape == matrix else repair(),
            usage=False,
        )
    turned = given.shape != true.shape
    result = Comparison(given.T if turned else given, true, rtol, atol)
    # x/x - 1 is rounding noise on both sides, and each has another: what the last digits move is no
    # mistake.
    if not (turned or result.ok) and atol is None:
        noise = _noise(partial(true_at, program), arrays, true)
        nearly = Comparison(given, true, rtol, allowed(given, true, 0.0, None) + _MARGIN * noise)
        if nearly.ok:
            nearly.error = float(np.max(np.abs(given - true)))
            result = nearly
    if turned or not result.ok:
        result.ok, result.given = False, given
        asked = AskedDerivative(order, jacobian)
        result.derivative = spelled(asked, program, arrays, name, others)
        terms = {t: partial(given_at, formula=parse(own)) for t, own in terms_of(formula).items()}
        result.mistake = likely_mistake(program, arrays, name, given_at, true_at, formula, terms)
    return result


def _noise(
    gradient: Callable[[Mapping[str, Any]], Any], arrays: Mapping[str, Any], true: Any
) -> Any:
    """How far the last digits of a point, and of what is computed from it, move each element of a gradient.

    x/x - 1 is 0 but for these, and 1 - sigmoid(20) has few digits, whatever the last one of 20 is.
    """
    apart = []
    with np.errstate(all="ignore"):
        for seed in range(SHAKEN):
            apart.append(np.abs(gradient(shaken(arrays, seed)) - true))
            with rounding(Generic(seed)):
                apart.append(np.abs(gradient(arrays) - true))
    return np.nan_to_num(np.max(apart, axis=0), posinf=0.0)


def derivative_shape(
    program: Program,
    arrays: Mapping[str, Any],
    name: str,
    names: Mapping[str, Any],
    order: int = 1,
    jacobian: bool = False,
) -> tuple[int, ...]:
    """The shape of a derivative: see `compare_formula`."""
    shape = tuple(np.shape(arrays[name]))
    return (shape_of_value(program, arrays, names) if jacobian else ()) + shape * order


def _true(
    program: Program,
    arrays: Mapping[str, Any],
    name: str,
    names: Mapping[str, Any],
    order: int,
    jacobian: bool,
    says: bool,
) -> Any:
    leaves = {n: wrap(np.array(a), requires_grad=n == name) for n, a in arrays.items()}
    value = run(program, {**names, **leaves}, write=None if says else lambda text: None).value
    if type(value) in (int, float) and not program.free_variables():
        return np.zeros(np.shape(arrays[name]) * order)  # of a constant
    if (error := without_derivative(program, value, "gradient")) is not None:
        raise error
    if not isinstance(value, Tensor):
        raise TypeError("the value is not a tensor: there is no gradient")
    if not np.isfinite(value.array).all():
        raise NotFinite(value.array)
    if jacobian:
        return np.asarray(traced_matrices.jacobian(program, leaves, [name], names).by[name])
    if order == 2 and np.ndim(arrays[name]):
        return np.asarray(traced_matrices.hessian(program, leaves, [name], names)[name].by[name])
    return tape_gradients(value, {name: leaves[name]}, order=order)[name]


def formula_at(formula: Program, values: Mapping[str, Any], program: Program) -> Any:
    """A formula's value as an array. It may read what the program assigns, as it is at the program's end."""
    if not values.keys() >= set(free_names(formula)):
        made = run(program, dict(values), write=lambda text: None).names
        values = {**made, **{n: values[n] for n in values.keys() - set(assigned_names(program))}}
    given = run(formula, values).value
    found = relation(formula)
    if given is None or (found is not None and found[0] == "an equation"):
        # `x > 2` may be meant as the number 0 or 1: the derivative of maximum(x, 2)
        raise LanguageError(
            f"--against: the formula {'has no value' if given is None else 'is an equation'}",
            kind="value",
            source=formula.source,
            span=(0, len(formula.source)),
            hint="write the derivative alone, as in --against '2*x'",
        )
    return np.asarray(given.array if isinstance(given, Tensor) else given)


def terms_of(formula: Program) -> dict[str, str]:
    """The terms of a formula that is a sum, by their texts, each as a program that gives it alone."""
    source, pieces = formula.source, tree_of(formula)
    last = next((p for p in reversed(pieces) if p.kind == "expression"), None)
    if last is None:
        return {}
    waiting, found = [(part, 1) for part in last.parts], dict[str, str]()
    while waiting:
        piece, sign = waiting.pop(0)
        if piece.kind in ("add", "sub"):
            left, right = piece.parts
            waiting = [(left, sign), (right, -sign if piece.kind == "sub" else sign), *waiting]
            continue
        text = source[slice(*piece.span)]
        found[text] = f"{source[: last.span[0]]}{text if sign > 0 else f'-({text})'}"
    return found if len(found) > 1 else {}


def spelled(
    asked: AskedDerivative,
    program: Program,
    arrays: Mapping[str, Any],
    name: str,
    names: Mapping[str, Any],
) -> str | None:
    """The derivative that should have been given, as text; None where it has none."""
    from gradcli.formulas.lift.lifting import NoExpression
    from gradcli.formulas.print.printed_text import spelled_out

    try:
        way = asked.way(program, arrays, [name], names)
        found = way["find"](program, arrays, [name], follow=True, names=names)
    except (LanguageError, NoExpression):
        return None
    return spelled_out(next(iter(found.by.values())))


__all__ = ["compare_formula", "derivative_shape", "formula_at", "spelled"]

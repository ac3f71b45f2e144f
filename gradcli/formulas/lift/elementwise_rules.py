"""Symbolic rules of elementwise primitives."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.engine.system.dtypes import dtype as Dtype
from gradcli.formulas.algebra import algebra as alg
from gradcli.formulas.algebra.algebra import function
from gradcli.formulas.algebra.constants import as_exact, stored
from gradcli.formulas.algebra.exact_numbers import MINUS_ONE, ONE, Number
from gradcli.formulas.algebra.expressions import (
    Expression,
    broadcast,
    call,
    is_call,
    is_number,
    number,
    value_of,
)
from gradcli.formulas.algebra.spelling import NoExpression
from gradcli.formulas.lift.rule_interface import Handler, Lifter
from gradcli.transforms.tracing.calls import Call, Value


def _with_alpha(sign: Number) -> Handler:
    def handle(lifter: Lifter, made: Call, args: list[Any]) -> Expression:
        a, b, alpha = args
        return alg.combine([(as_exact(a), ONE), (as_exact(b), sign * Number.of(alpha))])

    return handle


def compare(word: str, a: Any, b: Any) -> Expression:
    """A comparison in its simplest form: 0 < x and relu(x) > 0 are x > 0, 1 - x > 0 is x < 1."""
    left, right = as_exact(a), as_exact(b)
    x, y = value_of(left), value_of(right)
    if x is not None and y is not None:
        return number(COMPARED[word](x.python(), y.python()))
    # The number to the right, always: 0 < x and x > 0 are one condition then, and `where`s of both are
    # merged.
    if x is not None:
        return compare(_MIRRORED[word], right, left)
    # relu(x) > 0 is where x > 0: its rule asks the result, and so the x in two `where`s is the same.
    if is_call(left, "relu") and is_number(right, 0) and word in ("gt", "le"):
        left = left.args[0]
    if is_number(right, 0) and left.op == "sum" and len(left.args) == 1:  # 1 - x > 0 is x < 1
        (coefficient,), constant = left.data
        if coefficient in (ONE, MINUS_ONE) and constant.exact:
            left, right = left.args[0], number(-constant * coefficient)
            word = _MIRRORED[word] if coefficient.negative else word
    coefficient, rest = alg.split(left)
    # -2*x > 0 is x < 0.
    if is_number(right, 0) and coefficient != ONE and coefficient.exact and rest is not alg.one:
        left = rest
        word = _MIRRORED[word] if coefficient.negative else word
    return function(word, left, right)


COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    word: getattr(operator, word) for word in ("eq", "ne", "lt", "le", "gt", "ge")
}
_MIRRORED = {"gt": "lt", "lt": "gt", "ge": "le", "le": "ge", "eq": "eq", "ne": "ne"}


def where(lifter: Lifter, made: Call, condition: Expression, a: Any, b: Any) -> Expression:
    """`where`, without the NaN guards of VJP rules: branches that count at single points only."""
    yes, no = as_exact(a), as_exact(b)
    # The value is NaN on one side, where no derivative is asked for.
    if not lifter.nan_guards and _negative_determinant(condition):
        if is_number(yes, 0):  # the value is nan there
            return no
        if value_of(yes) is not None and is_call(no, "select"):
            return call("logdet", no.args[0].args, no.shape)
    # A rule's `where(x == 0, 0, g)` keeps NaN off a single point. The text is longer with it, and the proof
    # tells if the user's own point is that one: then the guards are kept.
    if not _is_given(lifter, made) and _single_points(condition):
        if is_number(yes, 0):
            return no
        if is_number(no, 0) and is_call(condition, "ne"):
            return yes
        if is_number(yes, 1) and _is_zero(condition, no):  # of a divisor, or under a logarithm
            return no
    return alg.where(condition, yes, no)


def _negative_determinant(condition: Expression) -> bool:
    """Whether this is the condition inside logdet, which is nan where the determinant is negative."""
    if not is_call(condition, "eq") or not is_number(condition.args[1], -1):
        return False
    sign = condition.args[0]
    return is_call(sign, "select") and is_call(sign.args[0], "linalg.slogdet")


def _is_given(lifter: Lifter, made: Call) -> bool:
    """Whether a `where`, or its condition, was written in the program and not by a VJP rule."""
    if lifter.nan_guards:
        return True
    asked = [a.call for a in made.args if isinstance(a, Value) and a.value.dtype.kind == "b"]
    return any(id(c) in lifter.given for c in (made, *asked))


def _single_points(condition: Expression) -> bool:
    """Whether the condition implies an equality, so that it is true at single points only."""
    if is_call(condition, "eq"):
        return True
    if is_call(condition, "bitwise_and", "logical_and"):
        return any(_single_points(a) for a in condition.args)
    if is_call(condition, "bitwise_or", "logical_or"):
        return all(_single_points(a) for a in condition.args)
    return False


def _is_zero(condition: Expression, expression: Expression) -> bool:
    """Whether the condition says that the expression, or a multiple of it, is 0."""
    if not is_call(condition, "eq") or not is_number(condition.args[1], 0):
        return False
    return bool(alg.split(expression)[1] == condition.args[0])


def _where_of(lifter: Lifter, made: Call, args: list[Any]) -> Expression:
    return where(lifter, made, args[0], args[1], args[2])


def _masked_fill(lifter: Lifter, made: Call, args: list[Any]) -> Expression:
    own, mask, given = args
    value = stored(given, made.outputs[0].value.dtype)
    if is_number(own, 0) and not _is_given(lifter, made) and is_call(mask, "eq"):
        # how a rule shares a gradient between equal elements
        return alg.multiply(value, mask)
    return where(lifter, made, mask, value, own)


def _filled(lifter: Lifter, made: Call, args: list[Any]) -> Expression:
    return stored(args[1], made.outputs[0].value.dtype)


def _clamp(low: bool, high: bool) -> Handler:
    def handle(lifter: Lifter, made: Call, args: list[Any]) -> Expression:
        own, *limits = args
        pairs = []
        if low and limits[0] is not None:
            pairs.append(("min", limits[0]))
        if high and limits[-1] is not None:
            pairs.append(("max", limits[-1]))
        operands = [own]
        options: list[tuple[str, Any]] = []
        for key, limit in pairs:
            if isinstance(limit, Expression) and value_of(limit) is None:
                operands.append(limit)
                options.append((key, len(operands) - 1))
            else:
                options.append((key, limit if not isinstance(limit, Expression) else limit.data))
        shape = broadcast(o.shape for o in operands)
        known = [value_of(as_exact(v)) for v in (own, *(limit for _, limit in pairs))]
        if None not in known:  # as Python's, but for an upper limit below the lower one
            n, *bounds = (v.python() for v in known if v is not None)
            for (key, _), bound in zip(pairs, bounds, strict=True):
                n = max(n, bound) if key == "min" else min(n, bound)
            return number(n)
        if len(operands) == 1:
            return call("clamp", operands, shape, options)
        if len(pairs) == 1:
            return function("maximum" if pairs[0][0] == "min" else "minimum", *operands)
        lower, upper = (as_exact(limit) for _, limit in pairs)
        return function("minimum", function("maximum", own, lower), upper)

    return handle


def _log_sigmoid(lifter: Lifter, made: Call, args: list[Any]) -> list[Expression]:
    found = call("nn.functional.logsigmoid", args, args[0].shape)
    return [found, alg.zero]


def _softplus_backward(lifter: Lifter, made: Call, args: list[Any]) -> Expression:
    """The derivative is a sigmoid, and 1 above the threshold; the latter is printed only if it differs."""
    g, u, beta, threshold = args
    scaled = alg.scale(Number.of(beta), u)
    slope = alg.multiply(g, function("sigmoid", scaled))
    # Above 20 PyTorch takes x for softplus(x), whose slope differs by 2e-9 from a sigmoid.
    if threshold >= _ALIKE and not lifter.nan_guards:
        return slope
    return alg.where(compare("gt", scaled, threshold), g, slope)


_ALIKE = 18  # from here on sigmoid is 1 but for 2e-8


def _cast(lifter: Lifter, made: Call, args: list[Any]) -> Expression:
    """A cast: none is printed between real floating dtypes, for derivatives are mathematics."""
    own: Expression = args[0]
    wanted = made.outputs[0].value.dtype
    given = made.args[0].value.dtype if isinstance(made.args[0], Value) else None
    if wanted.kind == "f" or (given is not None and given.kind == wanted.kind):
        return own
    return call("to", [own], own.shape, [("", _dtype(wanted))])


def _dtype(plain: Any) -> Any:
    from gradcli.engine.system import dtypes

    return plain if isinstance(plain, Dtype) else dtypes.of(np.dtype(plain))


def _conj(lifter: Lifter, made: Call, args: list[Any]) -> Expression:
    value = made.args[0]
    if isinstance(value, Value) and value.value.dtype.kind != "c":
        return args[0]  # type: ignore[no-any-return]
    return function("conj", args[0])


def _sgn(lifter: Lifter, made: Call, args: list[Any]) -> Expression:
    complex_ = made.outputs[0].value.dtype.kind == "c"
    return function("sgn" if complex_ else "sign", *args)


def _polygamma(lifter: Lifter, made: Call, args: list[Any]) -> Expression:
    operands = [a for a in args if isinstance(a, Expression)]
    (order,) = (a for a in args if not isinstance(a, Expression))
    if order == 0:
        return function("digamma", *operands)
    return call("polygamma", operands, operands[0].shape, [("", order), ("@", 0)])


def _elu(lifter: Lifter, made: Call, args: list[Any]) -> Expression:
    own, alpha, scale, inner = args
    if inner != 1:
        raise NoExpression(
            "the derivative of an elu with an input scale has no form as an expression"
        )
    options = [] if alpha == 1 else [("alpha", alpha)]
    return alg.scale(Number.of(scale), call("nn.functional.elu", [own], own.shape, options))


ELEMENTWISE_RULES: dict[str, Handler] = {
    "plus": _with_alpha(ONE),
    "minus": _with_alpha(MINUS_ONE),
    "sgn": _sgn,
    "polygamma": _polygamma,
    "clamp": _clamp(True, True),
    "clamp_min": _clamp(True, False),
    "clamp_max": _clamp(False, True),
    "where": _where_of,
    "fill": _filled,
    "masked_fill": _masked_fill,
    "elu": _elu,
    "slope of softplus": _softplus_backward,
    "logsigmoid": _log_sigmoid,
    "to": _cast,
    "conj": _conj,
}

"""Whether printed derivatives keep their digits: random formulas against exact values, over all doubles.

A formula of x is a tree, from which come its text and its derivatives in exact decimals, by jets: nothing of
the symbolic code has a part in them. It is a failure if the printed derivative has lost more than 4 of 16
digits near 0, at 40, at 700 or at 1e8, where the gradient of the program itself has not.
"""

from __future__ import annotations

import decimal
import random
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

import gradcli
from gradcli.engine.system import dtypes
from gradcli.formulas.algebra.exact_check import FUNCTIONS, pi
from gradcli.formulas.algebra.expression_text import to_text
from gradcli.formulas.ask.proof import tape_gradients
from gradcli.formulas.derive.differentiate import differentiate
from gradcli.language import parse
from gradcli.language import run as evaluate
from tests.fuzz import cases

LOST = 1e-12
SIZES = (1e-8, 1e-5, 1e-2, 0.7, 3.0, 40.0, 700.0, 1e8)
NEAR = (0.95, 0.957, 0.971, 0.989, 0.997, 1.009, 1.021, 1.04)  # a few, for two may be lucky
POINTS = np.array([sign * size * near for size in SIZES for sign in (1, -1) for near in NEAR])
GROUP = len(NEAR)  # points of one size and sign
DIGITS = (60, 130, 400)
FAR, FAR_DIGITS = 100, (60, 400, 900)  # 1 + exp(-700) is 1 in 60 digits, and in 130
Jet = tuple[Decimal, Decimal, Decimal]


class Formula(NamedTuple):
    """A formula: its text, and its value with two derivatives at a point."""

    text: str
    jet: Callable[[Decimal], Jet]


# -- jets ---------------------------------------------------------------------------------------------
def _sum(a: Jet, b: Jet) -> Jet:
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


def _product(a: Jet, b: Jet) -> Jet:
    return a[0] * b[0], a[1] * b[0] + a[0] * b[1], a[2] * b[0] + 2 * a[1] * b[1] + a[0] * b[2]


def _composed(f: Decimal, f1: Decimal, f2: Decimal, u: Jet) -> Jet:
    return f, f1 * u[1], f2 * u[1] * u[1] + f1 * u[2]


def _power(u: Jet, n: Decimal) -> Jet:
    v = u[0]
    return _composed(v**n, n * v ** (n - 1), n * (n - 1) * v ** (n - 2), u)


def _exp(u: Jet) -> Jet:
    e = u[0].exp()
    return _composed(e, e, e, u)


def _log(u: Jet) -> Jet:
    return _composed(u[0].ln(), 1 / u[0], -1 / (u[0] * u[0]), u)


def _sigmoid(u: Jet) -> Jet:
    s, t = (1 / (1 + (sign * u[0]).exp()) for sign in (-1, 1))
    return _composed(s, s * t, s * t * (t - s), u)


def _erf(u: Jet) -> Jet:
    slope = 2 / pi().sqrt() * (-u[0] * u[0]).exp()
    return _composed(FUNCTIONS["erf"](u[0]), slope, -2 * u[0] * slope, u)


def _waves(u: Jet) -> tuple[Jet, Jet]:
    s, c = FUNCTIONS["sin"](u[0]), FUNCTIONS["cos"](u[0])
    return _composed(s, c, -s, u), _composed(c, -s, -c, u)


def _number(n: str) -> Jet:
    return Decimal(n), Decimal(0), Decimal(0)


def _tanh(u: Jet) -> Jet:
    up, down = _exp(u), _exp(_product(_number("-1"), u))
    below = _power(_sum(up, down), Decimal(-1))
    return _product(_sum(up, _product(_number("-1"), down)), below)


def _atan(u: Jet) -> Jet:
    below = 1 / (1 + u[0] * u[0])
    return _composed(FUNCTIONS["atan"](u[0]), below, -2 * u[0] * below * below, u)


ONE_OPERAND: dict[str, Callable[[Jet], Jet]] = {
    "exp({})": _exp,
    "exp(-({}))": lambda u: _exp(_product(_number("-1"), u)),
    "log({})": _log,
    "log(1 + {})": lambda u: _log(_sum(_number("1"), u)),
    "sqrt({})": lambda u: _power(u, Decimal("0.5")),
    "({})**2": lambda u: _product(u, u),
    "({})**3": lambda u: _product(u, _product(u, u)),
    "1/({})": lambda u: _power(u, Decimal(-1)),
    "(1 + ({})**2)": lambda u: _sum(_number("1"), _product(u, u)),
    "(1 + exp(-({})))": lambda u: _sum(_number("1"), _exp(_product(_number("-1"), u))),
    "(exp({}) - 1)": lambda u: _sum(_exp(u), _number("-1")),
    "(1 - {})": lambda u: _sum(_number("1"), _product(_number("-1"), u)),
    "(2*({}))": lambda u: _product(_number("2"), u),
    "(({})/3 + 2)": lambda u: _sum(
        _product((1 / Decimal(3), Decimal(0), Decimal(0)), u), _number("2")
    ),
    "sin({})": lambda u: _waves(u)[0],
    "cos({})": lambda u: _waves(u)[1],
    "tanh({})": _tanh,
    "atan({})": _atan,
    "erf({})": _erf,
    "sigmoid({})": _sigmoid,
    "F.silu({})": lambda u: _product(u, _sigmoid(u)),
    "log1p({})": lambda u: _log(_sum(_number("1"), u)),
    "expm1({})": lambda u: _sum(_exp(u), _number("-1")),
    "special.ndtr({})": lambda u: _product(
        _number("0.5"),
        _sum(_number("1"), _erf(_product((1 / Decimal(2).sqrt(), Decimal(0), Decimal(0)), u))),
    ),
}
TWO_OPERANDS: dict[str, Callable[[Jet, Jet], Jet]] = {
    "({} + {})": _sum,
    "({} - {})": lambda a, b: _sum(a, _product(_number("-1"), b)),
    "({})*({})": _product,
    "({})/({})": lambda a, b: _product(a, _power(b, Decimal(-1))),
    "logaddexp({}, {})": lambda a, b: _log(_sum(_exp(a), _exp(b))),
}


def drawn(rng: random.Random, size: int) -> Formula:
    """A random formula of x of this many operations."""
    if size == 0:
        return Formula("x", lambda x: (x, Decimal(1), Decimal(0)))
    if size > 1 and rng.random() < 0.45:
        text, work = rng.choice([*TWO_OPERANDS.items()])
        left = rng.randrange(size)
        a, b = drawn(rng, left), drawn(rng, size - 1 - left)
        return Formula(text.format(a.text, b.text), lambda x: work(a.jet(x), b.jet(x)))
    shape, change = rng.choice([*ONE_OPERAND.items()])
    inner = drawn(rng, size - 1)
    return Formula(shape.format(inner.text), lambda x: change(inner.jet(x)))


# -- digits -------------------------------------------------------------------------------------------
def exact(formula: Formula, order: int, x: float) -> Decimal | None:
    """The derivative of an order, to twenty digits; None where it has no finite value."""
    before: Decimal | None = None
    for digits in FAR_DIGITS if FAR < abs(x) < FAR**3 else DIGITS:
        traps = [decimal.InvalidOperation, decimal.DivisionByZero]
        limits = {"Emax": decimal.MAX_EMAX, "Emin": decimal.MIN_EMIN}
        with decimal.localcontext(decimal.Context(prec=digits, traps=traps, **limits)):
            try:
                own = formula.jet(Decimal(x))[order]
            except decimal.DecimalException:
                return None
            if not own.is_finite():
                return None
            if before is not None and abs(own - before) <= Decimal(10) ** -20 * abs(own):
                return own
            before = own
    return None


def errors(values: Any, true: Sequence[Decimal | None]) -> Any:
    """The relative error of each value; 0 where the true one is none of a double with all digits."""
    found = np.zeros(len(true))
    for k, (own, value) in enumerate(zip(true, values.tolist(), strict=True)):
        if own is None or not own or own.adjusted() > 290:
            continue
        if own.adjusted() < -290 and abs(value) < 1e-280:
            continue
        found[k] = float(abs(Decimal(value) - own) / abs(own)) if np.isfinite(value) else np.inf
    return found


def lost(formula: Formula, order: int) -> str | None:
    """Where the printed derivative has lost digits that the program's gradient has; None if nowhere."""
    program = parse(formula.text)
    x = gradcli.tensor(POINTS, dtype=gradcli.float64, requires_grad=True)
    value = evaluate(program, {"x": x}).value
    if not isinstance(value, gradcli.Tensor) or not value.requires_grad:
        return None
    with np.errstate(all="ignore"):
        tape = tape_gradients(value, {"x": x}, order=order)["x"]
    text = to_text(differentiate(program, {"x": np.float64(0.7)}, order=order).by["x"])
    with np.errstate(all="ignore"):
        made = evaluate(parse(text), {"x": x.detach()}).value
    shown = np.broadcast_to(np.asarray(getattr(made, "array", made), float), POINTS.shape)
    with np.errstate(all="ignore"):
        same = np.abs(tape - shown) <= LOST / 4 * np.abs(tape)
    at = [float(v) for v in POINTS]
    true = [None if s else exact(formula, order, v) for s, v in zip(same, at, strict=True)]
    own, given = (errors(v, true).reshape(-1, GROUP).max(axis=1) for v in (shown, tape))
    worse = np.flatnonzero((own > LOST) & (given <= LOST) & (own > 4 * given))
    if not worse.size:
        return None
    k = int(GROUP * worse[0])
    k += int(errors(shown, true)[k : k + GROUP].argmax())
    return (
        f"order {order} of {formula.text}\n  is {text}\n  at x = {at[k]!r}: {shown[k]!r} for {true[k]:.17g}, "
        f"and the gradient is {tape[k]!r}"
    )


def run(seed: int, seconds: float) -> Iterator[str]:
    """What printed derivatives have lost, of random formulas of one to five operations."""
    for rng in cases(seed, seconds):
        formula = drawn(rng, rng.randint(1, 5))
        with dtypes.as_default(dtypes.float64):
            failure = lost(formula, 1 if rng.random() < 0.7 else 2)
        if failure is not None:
            yield failure


__all__ = ["drawn", "lost", "run"]

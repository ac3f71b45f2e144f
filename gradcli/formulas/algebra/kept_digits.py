"""Whether a form of an expression keeps its digits: doubles against exact decimals, over the whole domain.

Two forms of one function may round differently: 1 - sigmoid(x) has no digits left at 40, sigmoid(-x) all.
Forms are compared with the expression they stand for, near 0, around 1, at 40, at 700 and at 1e8. Where both
agree nothing is lost. Where they do not, decimals say which is right.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from decimal import (
    MAX_EMAX,
    MIN_EMIN,
    Context,
    Decimal,
    DivisionByZero,
    InvalidOperation,
    localcontext,
)
from fractions import Fraction
from functools import cached_property, lru_cache, reduce
from typing import Any

import numpy as np

from gradcli.formulas.algebra.exact_check import FUNCTIONS, evaluated, is_leaf, pi
from gradcli.formulas.algebra.exact_numbers import ONE, ZERO, Number
from gradcli.formulas.algebra.expressions import Expression, order
from gradcli.formulas.algebra.generic_points import Generic

LOST = 1e-12  # relative: 4 of 16 digits
ALIKE = 4.0  # times the error of the expression: what luck at a point makes of it
WORSE = 1e4  # the same, where the expression has lost digits too
LEAST = 1e-290  # what is smaller is 0
SMALLEST, LARGEST = -290, 300  # decimal exponents between which doubles have all digits
MAGNITUDES = (
    1e-8,
    1e-4,
    1e-2,
    0.7,
    3.0,
    12.0,
    40.0,
    693.0,
    1e8,
)  # exp overflows between two at 693
NEARBY = (0.97, 1.06)  # factors: the points of one group
ALONE = 6  # variables that are moved one at a time
DIGITS = (50, 80, 160, 320, 640)  # until two agree, on more than 0
FAR, FAR_DIGITS = 100, (50, 400, 640)  # 1 + exp(-300) is 1 in 50 digits, and in 80
SAME = Decimal(10) ** -20
MOST_GROUPS = 8  # that decimals decide


def _sigmoid(x: Any) -> Any:
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1.0) / (1 + e)


def _each(function: Callable[[float], float]) -> Callable[[Any], Any]:
    return lambda x: np.reshape([function(v) for v in np.ravel(x).tolist()], np.shape(x))


_erfc = _each(math.erfc)
FLOATS: Mapping[str, Callable[..., Any]] = {
    **{
        w: getattr(np, w) for w in "exp log abs sign sin cos tan sinh cosh tanh log1p expm1".split()
    },
    **{"a" + w: getattr(np, "arc" + w) for w in "sin cos tan sinh cosh tanh".split()},
    **{"erf": _each(math.erf), "erfc": _erfc},
    "sigmoid": _sigmoid,
    "special.ndtr": lambda x: _erfc(-x * math.sqrt(0.5)) / 2,
    "logaddexp": np.logaddexp,
    "silu": lambda x: x * _sigmoid(x),
    "sinc": np.sinc,
}


# Functions that do not grow as exp does.
SLOW = frozenset("abs sign log log1p sin cos tan asin acos atan asinh acosh atanh sinc".split())


def _sinc(x: Decimal) -> Decimal:
    angle = pi() * x
    return FUNCTIONS["sin"](angle) / angle if angle else Decimal(1)


# What the exact check takes for a variable, and has a value of its own here.
OPENED: Mapping[str, Callable[..., Decimal]] = {
    "logaddexp": lambda a, b: max(a, b) + (1 + (-abs(a - b)).exp()).ln(),
    "silu": lambda x: x / (1 + (-x).exp()),
    "sinc": _sinc,
}


def free(leaves: Iterable[Expression]) -> list[Expression]:
    """What may have any value: these leaves, and what those are made of whose function is known here."""
    return [n for n in order(leaves, _is_free) if _is_free(n) and not _is_pi(n)]


def _is_free(node: Expression) -> bool:
    opened = node.op == "call" and node.data[0] in OPENED and not node.data[1]
    return node.op in ("name", "array") or (is_leaf(node) and not opened)


def _is_pi(node: Expression) -> bool:
    return node.op == "name" and node.data == "pi" and node.position == -1


def _grows(node: Expression) -> bool:
    """Whether it grows or falls as exp does."""
    if node.op == "call":
        return node.data[0] not in SLOW
    return node.op == "product" and any(isinstance(e, Expression) for e in node.data[1])


# How digits are judged. Every form is run in doubles over a grid: each variable alone, and all together, at
# nine magnitudes and with both signs. Where two forms agree nothing was lost. Where they differ, decimals
# of growing precision say which is right, but only at the worst eight groups of points, for decimals are
# slow. A group is two points close together, so that one lucky rounding does not decide.
class Digits:
    """The values of an expression in doubles at points of all magnitudes, and exact ones where asked.

    leaves: what may have any value. signs: 1 or -1 for those of which a sign is assumed.
    """

    def __init__(
        self, expression: Expression, leaves: Sequence[Expression], signs: Sequence[int]
    ) -> None:
        self.expression, self.leaves, self.signs = expression, leaves, signs
        self.opened = [n for n in order([expression]) if is_leaf(n) and not _is_free(n)]
        self._exact: dict[int, Decimal | None] = {}
        self.grows = any(map(_grows, order([expression])))

    @cached_property
    def known(self) -> dict[Expression, Any]:
        """The values of what was evaluated, beginning with the points."""
        values, self.groups = _points(self.leaves, self.signs)
        return values

    def floats(self, expression: Expression) -> Any:
        """The values of an expression in doubles, as its text has them."""
        known = self.known
        with np.errstate(all="ignore"):
            for node in order([expression], known.__contains__):
                if node not in known:
                    known[node] = _value(node, known)
        found = known[expression]
        return found if np.ndim(found) else np.full(len(self.groups), found)

    def keeps(self, other: Expression) -> bool:
        """Whether a form loses no more than 4 digits wherever the expression does not either."""
        own, new = self.floats(self.expression), self.floats(other)
        new = np.where(
            np.isfinite(own), new, own
        )  # nothing is asked of a form where it has no value
        for group in self.differing(own, new):
            errors = [
                (self.error(own, k), self.error(new, k)) for k in group if np.isfinite(own[k])
            ]
            worst, found = map(max, zip(*errors, strict=True)) if errors else (0.0, 0.0)
            # An expression that has lost digits itself may be replaced by what loses some more, and not by
            # noise.
            if found > (max(LOST / 2, ALIKE * worst) if worst <= LOST else WORSE * worst):
                return False
        return True

    def better(self, best: Expression, others: Iterable[Expression]) -> Iterator[Expression]:
        """The forms that keep digits which `best` loses, and lose none that it keeps."""
        own = self.floats(best)
        for other in others:
            new, gained = self.floats(other), False
            for group in self.differing(own, new):
                errors = [(self.error(own, k), self.error(new, k)) for k in group]
                worst, found = (max(e) for e in zip(*errors, strict=True))
                if found > max(LOST, worst):
                    break
                gained |= worst > max(LOST, WORSE * found)
            else:
                if gained:
                    yield other

    def differing(self, own: Any, new: Any) -> list[list[int]]:
        """The groups of points at which two forms differ by more than the last digits; the worst first."""
        with np.errstate(all="ignore"):
            apart = np.abs(own - new) / np.abs(own)
            same = apart <= LOST / 4
            same |= own == new
            same |= (np.abs(own) < LEAST) & (np.abs(new) < LEAST)
            same |= ~np.isfinite(own) & ~np.isfinite(new)
        if same.all():
            return []
        # A stable sort: the same groups are looked at on every machine.
        order = np.argsort(-np.nan_to_num(apart[~same], nan=np.inf), kind="stable")
        groups = dict.fromkeys(self.groups[~same][order].tolist())
        return [np.flatnonzero(self.groups == g).tolist() for g in list(groups)[:MOST_GROUPS]]

    def error(self, values: Any, k: int) -> float:
        """The relative error at a point; 0 where there is no exact value to compare with."""
        true = self.exact(k)
        if true is None or not true or true.adjusted() > LARGEST:
            return 0.0
        found = float(values[k])
        if not math.isfinite(found):
            return math.inf
        # What is smaller than doubles can say is right as 0, and wrong as anything larger.
        if true.adjusted() < SMALLEST:
            return 0.0 if abs(found) < LEAST * 1e5 else math.inf
        return float(abs(Decimal(found) - true) / abs(true))

    def exact(self, k: int) -> Decimal | None:
        """The exact value of the expression at a point, to twenty digits; None if it is not found."""
        if k not in self._exact:
            self._exact[k] = self._found(k)
        return self._exact[k]

    def _found(self, k: int) -> Decimal | None:
        point = {leaf: Decimal(float(self.known[leaf][k])) for leaf in self.leaves}
        before: Decimal | None = None
        # 1 + exp(-300) needs 131 digits to differ from 1: fifty would agree with eighty on a wrong value.
        far = self.grows and any(FAR < abs(v) < FAR**3 for v in point.values())
        for digits in FAR_DIGITS if far else DIGITS:
            with _context(digits):
                values = dict(point)
                for node in self.opened:
                    args = [evaluated(a, values) for a in node.args]
                    if None in args:
                        return None
                    values[node] = OPENED[node.data[0]](*args)
                own = evaluated(self.expression, values)
                if own is None:
                    return None
                if own and before is not None and abs(own - before) <= SAME * abs(own):
                    return own
                before = own
        return None


def _context(digits: int) -> AbstractContextManager[Context]:
    """Decimals with exponents of any size that matters: exp(1e8) has a value, exp(exp(700)) has none."""
    # Overflow and underflow are no errors here: they are what doubles do, too.
    traps = [InvalidOperation, DivisionByZero]
    return localcontext(Context(prec=digits, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=traps))


def _points(
    leaves: Sequence[Expression], signs: Sequence[int]
) -> tuple[dict[Expression, Any], Any]:
    """(values of the leaves, the group of each point)."""
    points, groups = _grid(len(leaves))
    values: dict[Expression, Any] = {}
    for k, (leaf, sign) in enumerate(zip(leaves, signs, strict=True)):
        values[leaf] = sign * np.abs(points[k]) if sign else points[k]
    return values, groups


@lru_cache(16)
def _grid(count: int) -> tuple[Any, Any]:
    """(a row of values for each variable, the group of each column): each variable and all of them, at each
    magnitude."""
    numbers = Generic(11)
    rows: list[Any] = []
    groups: list[int] = []
    base = numbers.uniform(0.4, 1.7, (count,))
    drawn = numbers.uniform(0, 1, (2 * len(MAGNITUDES) * len(NEARBY), count))
    drawn[:, :1] = 0  # the first variable keeps its sign
    turns = iter(np.where(drawn < 0.5, 1.0, -1.0))
    for size in MAGNITUDES:
        for sign in (1.0, -1.0):
            for place in range(min(count, ALONE) if count > 1 else 0):
                first = len(rows)
                for factor in NEARBY:
                    row = base.copy()
                    row[place] = sign * size * factor
                    rows.append(row)
                    groups.append(first)
            first = len(rows)
            for factor in NEARBY:
                turned = next(turns)
                # The factors differ a little between variables: x - y of equal ones would be 0, where
                # everything is lost.
                rows.append(sign * size * factor * (1 + base / 50) * turned)
                groups.append(first)
    return np.ascontiguousarray(np.array(rows).T), np.array(groups)


def _value(node: Expression, known: Mapping[Expression, Any]) -> Any:
    if node.op == "number":
        return _float(node.data)
    if node.op == "name":
        return math.pi
    if node.op == "sum":
        coefficients, constant = node.data
        total = None if constant == ZERO else _float(constant)
        for term, c in zip(node.args, coefficients, strict=True):
            own = known[term] if c == ONE else _float(c) * known[term]
            total = own if total is None else total + own
        return total
    if node.op == "product":
        return _product(node, known)
    return FLOATS[node.data[0]](*(np.asarray(known[a]) * np.float64(1) for a in node.args))


def _product(node: Expression, known: Mapping[Expression, Any]) -> Any:
    """Numerator by denominator, as a product is printed."""
    coefficient, exponents = node.data
    above, below = [], []
    if coefficient != ONE:
        # A fraction 2/3 is printed as a product and a quotient, and rounds twice; so it does here.
        value = coefficient.value
        if type(value) is Fraction and not coefficient.decimal:
            above.append(float(value.numerator))
            if value.denominator != 1:
                below.append(float(value.denominator))
        else:
            above.append(_float(coefficient))
    for base, e in zip(node.args, exponents, strict=True):
        own = known[base]
        if e is ONE:
            above.append(own)
        elif isinstance(e, Expression):
            above.append(np.power(own, known[e]))
        elif e.negative:
            below.append(_power(own, -e))
        else:
            above.append(_power(own, e))
    top = reduce(operator.mul, above, 1.0) if len(above) != 1 else above[0]
    return np.divide(top, reduce(operator.mul, below)) if below else top


def _power(base: Any, e: Number) -> Any:
    if e == ONE:
        return base
    if e.integer == 2:
        return base * base
    value = _float(e)
    return np.sqrt(base) if value == 0.5 else np.power(np.asarray(base, float), value)


def _float(n: Number) -> float:
    value = n.value
    return value.numerator / value.denominator if type(value) is Fraction else float(value.real)


__all__ = ["Digits", "free"]

"""Assumptions about variables, such as `B symmetric`, which make derivatives shorter.

Elements are still differentiated independently, as if nothing were assumed. Only the result is
simplified: it holds where the assumptions hold, and is proved at such points.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from gradcli.formulas.algebra import algebra as alg
from gradcli.formulas.algebra.array_algebra import (
    chain,
    inverse,
    matrix_product,
    multiplied,
    transposed,
)
from gradcli.formulas.algebra.assuming import BadAssumption, supposing
from gradcli.formulas.algebra.exact_numbers import ONE, ZERO, Number
from gradcli.formulas.algebra.expressions import (
    Expression,
    call,
    is_call,
    is_number,
    number,
    value_of,
)
from gradcli.formulas.algebra.rewriting import rewrite
from gradcli.formulas.algebra.rules import Rules
from gradcli.formulas.derive.differentiate import Derivatives
from gradcli.formulas.simplify.simplify import simplify
from gradcli.operators.primitives import lapack

NEAR = 1e-8  # tolerance for rounding when values are checked against an assumption


class Kind(NamedTuple):
    """An assumption: whether it is one of square matrices; the nearest array of which it holds; what
    says that it does not hold of an array."""

    square: bool
    nearest: Callable[[Any], Any]
    fault: Callable[[Any], str | None]  # with the variable as {name}


# -- the kinds --------------------------------------------------------------------------------------
def _first(wrong: Any) -> tuple[int, ...] | None:
    places = np.argwhere(wrong)
    return tuple(int(i) for i in places[0]) if len(places) else None


def _asymmetry(b: Any) -> str | None:
    at = _first(~np.isclose(b, b.T, rtol=NEAR, atol=NEAR, equal_nan=True))
    if at is None:
        return None
    i, j = at
    return f"[{i}, {j}] is {b[i, j]:g} and [{j}, {i}] is {b[j, i]:g}"


def _off_diagonal(b: Any) -> str | None:
    at = _first((b != 0) & ~np.eye(len(b), dtype=bool))
    return None if at is None else f"[{at[0]}, {at[1]}] is {b[at]:g}"


def _not_orthogonal(q: Any) -> str | None:
    product = q.T @ q
    at = _first(~np.isclose(product, np.eye(len(q)), rtol=NEAR, atol=NEAR))
    return None if at is None else f"[{at[0]}, {at[1]}] of {{name}}.T@{{name}} is {product[at]:g}"


def _element(x: Any, at: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, at))}] is {x[at]:g}" if at else f"it is {x:g}"


def _of_elements(holds: Callable[[Any], Any], otherwise: Callable[[Any], Any]) -> Kind:
    """What holds of every element; otherwise: elements in the place of those of which it does not."""

    def fault(x: Any) -> str | None:
        at = _first(~holds(x))
        return None if at is None else _element(x, at)

    return Kind(False, lambda x: np.where(holds(x), x, otherwise(x)), fault)


def _rotation(q: Any) -> Any:
    left, _, right = lapack.svd(q)
    return left @ right


def _shares(x: Any, axis: int | None = None) -> Any:
    if _no_shares(x, axis) is None:
        return x
    own = np.abs(x) + 0.1
    return own / own.sum(axis, keepdims=axis is not None)


def _no_shares(x: Any, axis: int | None = None) -> str | None:
    at = _first(x < 0)
    if at is not None:
        return _element(x, at)
    totals = np.atleast_1d(x.sum(axis))
    row = _first(np.abs(totals - 1) > NEAR)
    of = "" if axis is None or row is None else f" of row {row[0]}"
    return None if row is None else f"the sum{of} is {totals[row]:g}"


KINDS: dict[str, Kind] = {
    "symmetric": Kind(True, lambda b: (b + b.T) / 2, _asymmetry),
    "diagonal": Kind(True, lambda b: np.diag(np.diag(b)), _off_diagonal),
    "orthogonal": Kind(True, _rotation, _not_orthogonal),
    "positive": _of_elements(lambda x: x > 0, lambda x: np.abs(x) + 0.1),
    "negative": _of_elements(lambda x: x < 0, lambda x: -np.abs(x) - 0.1),
    "integer": _of_elements(lambda x: x == np.round(x), lambda x: np.round(3 * x)),
    "probabilities": Kind(False, _shares, _no_shares),  # not negative, with the sum 1
    # a matrix each of whose rows is such
    "stochastic": Kind(False, lambda x: _shares(x, -1), lambda x: _no_shares(x, -1)),
}
_SIGNS = {"positive": 1, "negative": -1}


# -- reading them -----------------------------------------------------------------------------------
def squares(texts: Iterable[str]) -> list[str]:
    """The variables whose assumption makes them square matrices."""
    found = (_split(part) for whole in texts for part in _parts(whole))
    return [word for word, kind in found if kind in KINDS and KINDS[kind].square]


def _parts(texts: str) -> list[str]:
    """What commas outside of brackets separate."""
    return re.split(r",(?![^()]*\))", texts)


def _split(text: str) -> tuple[str, str]:
    """(variable, kind) of `B symmetric`, `B is symmetric`, `x > 0`, `sum(y) == 1` or `sum(Y, 1) == 1`."""
    if shares := re.fullmatch(r"\s*sum\(\s*(\w+)\s*\)\s*==?\s*1(?:\.0*)?\s*", text):
        return shares[1], "probabilities"
    if rows := re.fullmatch(
        r"\s*sum\(\s*(\w+)\s*,\s*(?:dim=|axis=)?-?1\)\s*==?\s*1(?:\.0*)?\s*", text
    ):
        return rows[1], "stochastic"
    if bound := re.fullmatch(r"\s*(\w+)\s*([<>])\s*0(?:\.0*)?\s*", text):
        return bound[1], "positive" if bound[2] == ">" else "negative"
    match = re.fullmatch(r"\s*(\w+)\s+(?:is\s+)?(\w+)\s*", text)
    return (match[1], match[2]) if match else ("", text.strip())


def read(texts: Iterable[str], arrays: Mapping[str, Any], given: Iterable[str]) -> Assumptions:
    """Parse assumptions: texts such as `B symmetric`, or several separated by commas.

    arrays: values by variable. given: the variables whose values the user gave; these are checked.
    Raises BadAssumption.
    """
    found: dict[str, list[str]] = {}
    for text in (part for whole in texts for part in _parts(whole)):
        word, kind = _split(text)
        if kind not in KINDS:
            raise BadAssumption(
                f"{kind!r} is not an assumption (there are: {', '.join(KINDS)})",
                "as in --assume 'B symmetric', 'x > 0', 'n integer', 'sum(y) == 1', 'sum(Y, 1) == 1'",
            )
        if word not in arrays:
            known = ", ".join(arrays) if arrays else "none"
            raise BadAssumption(f"{word!r} is not a variable (there are: {known})")
        value = np.asarray(arrays[word])
        if value.dtype.kind == "c":
            raise BadAssumption(f"{word} is complex, and assumptions are about real numbers")
        if KINDS[kind].square and (value.ndim != 2 or value.shape[0] != value.shape[1]):
            raise BadAssumption(
                f"{word} has shape {value.shape}, and only a square matrix is {kind}",
                None if word in given else f"say its shape: --shape {word}=3,3",
            )
        if kind == "probabilities" and value.ndim == 2 and not text.lstrip().startswith("sum"):
            raise BadAssumption(
                f"are the rows of {word} probabilities, or all of its elements?",
                f"write '{word} stochastic', each of whose rows has the sum 1, or 'sum({word}) == 1'",
            )
        if kind == "stochastic" and value.ndim < 2:
            raise BadAssumption(f"{word} has no rows", f"write 'sum({word}) == 1'")
        fault = KINDS[kind].fault(value) if word in given else None
        if fault is not None:
            raise BadAssumption(
                f"{word} is not {kind}: {fault.format(name=word)}",
                "give another value, or leave it out",
            )
        found.setdefault(word, []).append(kind)
    return Assumptions(found)


class Assumptions:
    """Assumptions by variable: name -> keys of KINDS."""

    __slots__ = ("by", "signs")

    def __init__(self, by: Mapping[str, Iterable[str]]) -> None:
        self.by = {n: tuple(kinds) for n, kinds in by.items()}
        self.signs = frozenset((n, _SIGNS[k]) for n, own in by.items() for k in own if k in _SIGNS)

    def fit(self, arrays: Mapping[str, Any]) -> bool:
        """Whether variables of these shapes can satisfy them."""
        shapes = [
            np.shape(arrays[n]) for n, k in self.by.items() if any(KINDS[w].square for w in k)
        ]
        return all(s[0] == s[1] for s in shapes)

    def nearest(self, arrays: Mapping[str, Any]) -> dict[str, Any]:
        """A point near this one that satisfies them; one after the other, so not all pairs can hold."""
        made = dict(arrays)
        for n, kinds in self.by.items():
            own = np.asarray(made[n])
            for kind in kinds:
                own = KINDS[kind].nearest(own)
            made[n] = np.asarray(own, np.asarray(made[n]).dtype)[()]
        return made

    def around(self, find: Callable[..., Derivatives]) -> Callable[..., Derivatives]:
        """Wrap a function that finds derivatives so that its results use the assumptions."""

        def found(*args: Any, **options: Any) -> Derivatives:
            made = find(*args, **options)
            made.by = {n: self.applied(e) for n, e in made.by.items()}
            made.assumed = self
            return made

        return found

    def applied(self, expression: Expression) -> Expression:
        """The expression simplified under the assumptions, in its shape."""
        # Twice: rules turn x@B into B@x for a symmetric B, and simplifying may then bring Q.T and Q
        # together.
        with supposing(signs=self.signs):
            made = simplify(rewrite(expression, self._rule))
            made = rewrite(made, self._rule)  # factors may be neighbours only now
        if made.shape == expression.shape:
            return made
        return alg.full(made, expression.shape)

    def _is(self, node: Expression, *kinds: str) -> bool:
        return node.op == "name" and any(k in kinds for k in self.by.get(node.data, ()))

    # -- rules ------------------------------------------------------------------------------------
    def _rule(self, node: Expression) -> Expression:
        if node.op != "call":
            return node
        found: Expression | None = RULES.find(node.data[0], node.args, self, node)
        if found is not None:
            return found
        return self._signed(node) if node.args else node

    def _signed(self, node: Expression) -> Expression:
        """What depends on the sign of its operand alone, where that is known."""
        word, own = node.data[0], node.args[0]
        sign = self.sign(own) if word in _OF_SIGN or word in _TESTS else 0
        if not sign or (len(node.args) == 2 and not is_number(node.args[1], 0)):
            return node
        if word in _TESTS:
            return alg.one if _TESTS[word](sign, 0) else alg.zero
        if word in ("sign", "sgn"):
            return alg.one if sign > 0 else alg.minus_one
        if word == "abs":
            return own if sign > 0 else alg.negate(own)
        return own if sign > 0 else alg.zero

    def _half_turns(self, node: Expression) -> Expression:
        """sin(pi*n) is 0 and cos(pi*n) is (-1)**n for an integer n."""
        own = node.args[0]
        if own.op != "product" or ("pi", ONE) not in [
            (b.data, e) for b, e in zip(own.args, own.data[1], strict=True) if b.position == -1
        ]:
            return node
        rest = [p for p in zip(own.args, own.data[1], strict=True) if p[0].data != "pi"]
        turns = alg.product(rest, own.data[0])
        if not self.integer(turns):
            return node
        if node.data[0] == "sin":
            return alg.zero
        return alg.one if own.data[0].value % 2 == 0 else alg.power(alg.minus_one, turns)

    def _logarithm(self, node: Expression) -> Expression:
        """log(x**2) is 2*log(x) where x is positive."""
        own = node.args[0]
        if own.op != "product" or own.data[0] != ONE or len(own.args) != 1:
            return node
        ((base, e),) = alg.powers_of(own)
        if self.sign(base) < 1:
            return node
        exponent = e if isinstance(e, Expression) else number(e)
        return alg.multiply(exponent, call("log", [base], base.shape))

    def _turned(self, own: Expression) -> Expression:
        """The transpose; a symmetric matrix is unchanged."""
        if self.symmetric(own):
            return own
        if is_call(own, "matmul") and all(len(a.shape) == 2 for a in own.args):
            return multiplied([self._turned(f) for f in chain(own)[::-1]])
        same = own.op == "sum" and all(t.shape == own.shape for t in own.args)
        if same and any(map(self.symmetric, own.args)):
            return alg.mapped(own, self._turned)
        return transposed(own)

    def _dot(self, a: Expression, b: Expression) -> Expression:
        """A dot product: `x@B@y`, not `dot(B@x, y)`; a rotation of both vectors cancels."""
        turns = [is_call(v, "matmul") and len(v.args[0].shape) == 2 for v in (a, b)]
        if all(turns) and a.args[0] is b.args[0] and self._rotates(a.args[0]):
            return self._dot(a.args[1], b.args[1])
        if turns[0] and self.symmetric(a.args[0]):
            a = call("matmul", a.args[::-1], a.shape)
        return call("dot", [a, b], ())

    def _length(self, node: Expression) -> Expression:
        """The norm of a vector is its length, which an orthogonal matrix leaves."""
        (own,) = node.args
        if node.data[1]:
            return self._signed(node)
        if is_call(own, "matmul") and len(own.shape) == 1 and self._rotates(own.args[0]):
            own = own.args[1]
        return call("norm", [own], ())

    def _inverse(self, own: Expression) -> Expression:
        """That of an orthogonal matrix is its transpose."""
        return transposed(own) if self._is(own, "orthogonal") else inverse(own)

    def _rotates(self, matrix: Expression) -> bool:
        own = matrix.args[0] if is_call(matrix, "T") else matrix
        return self._is(own, "orthogonal")

    def _product(self, node: Expression) -> Expression:
        """A matrix product with cancelling neighbours removed; x@B is B@x for a symmetric B."""
        if any(len(a.shape) > 2 for a in node.args):
            return node
        a, b = node.args
        if len(a.shape) == 1 and len(b.shape) == 1:
            return self._dot(a, b)
        # x@B and B@x are one vector for a symmetric B; as one text they are collected.
        if len(a.shape) == 1 and self.symmetric(b):
            a, b = b, a
        made: list[Expression] = []
        factors = chain(call("matmul", [a, b], node.shape))
        for factor in factors:
            # A stack: Q.T@Q vanishes, and what stood on both sides of it meets and may cancel, too.
            if made and self._cancel(made[-1], factor):
                made.pop()
            else:
                made.append(factor)
        if not made:
            return call("eye", [], node.shape)
        if len(made) == len(factors):
            return matrix_product(a, b, node.shape)
        return multiplied(made)

    def _cancel(self, a: Expression, b: Expression) -> bool:
        """Whether two matrices are an orthogonal one and its transpose."""
        for own, other in ((a, b), (b, a)):
            if is_call(own, "T") and own.args[0] is other and self._is(other, "orthogonal"):
                return True
        return a is b and self._is(a, "orthogonal") and self._is(a, "symmetric", "diagonal")

    # -- properties of expressions ----------------------------------------------------------------------
    def symmetric(self, node: Expression) -> bool:
        """Whether a matrix is its own transpose."""
        if self._is(node, "symmetric", "diagonal"):
            return True
        if node.op == "call":
            return bool(SYMMETRIC.find(node.data[0], node.args, self, node))
        if node.op == "sum":
            return all(not t.shape or self.symmetric(t) for t in node.args)
        if node.op == "product":
            powers = [e for e in node.data[1] if isinstance(e, Expression) and e.shape]
            return not powers and all(not b.shape or self.symmetric(b) for b in node.args)
        return False

    def integer(self, node: Expression) -> bool:
        """Whether all elements are integers."""
        n = value_of(node)
        if n is not None:
            return n.integer is not None
        if node.op == "sum":
            own = (*node.data[0], node.data[1])
            return all(c.integer is not None for c in own) and all(map(self.integer, node.args))
        if node.op == "product":
            powers = [
                e for e in node.data[1] if not (isinstance(e, Number) and (e.integer or -1) > 0)
            ]
            whole = node.data[0].integer is not None and not powers
            return whole and all(map(self.integer, node.args))
        return self._is(node, "integer")

    def sign(self, node: Expression) -> int:
        """1 if all elements are positive numbers, -1 if all are negative; 0 if that is not known."""
        n = value_of(node)
        if n is not None:
            if not n.exact or n == ZERO:
                return 0
            return -1 if n.negative else 1
        if node.op == "name":
            return next((_SIGNS[k] for k in self.by.get(node.data, ()) if k in _SIGNS), 0)
        if node.op == "product":
            found = -1 if node.data[0].negative else 1
            for base, e in zip(node.args, node.data[1], strict=True):
                own = self.sign(base)
                whole = e.integer if isinstance(e, Number) else None
                found *= own if whole is None or whole % 2 else own * own
                # A negative number to a power that is no integer is no real number.
                if own < 0 and whole is None:
                    return 0
            return found
        if node.op == "sum":
            signs = [self.sign(t) * (-1 if c.negative else 1) for c, t in alg.terms_of(node)]
            return signs[0] if len(set(signs)) == 1 else 0
        if is_call(node, "sum", "mean", "T", "expand", "reshape", "select", "slice"):
            # The sum of no elements is 0, which has no sign.
            return 0 if 0 in node.args[0].shape else self.sign(node.args[0])
        if is_call(node, "prod"):
            return int(self.sign(node.args[0]) > 0 and 0 not in node.args[0].shape)
        return int(is_call(node, "exp", "cosh", "sigmoid", "softmax"))


# What an assumption makes of a call; of any other, what depends on the sign alone (`_signed`).
RULES = Rules(
    ("a.T", lambda facts, node, a: facts._turned(a)),
    ("a @ b", lambda facts, node, a, b: facts._product(node)),
    ("dot(u, v)", lambda facts, node, u, v: facts._dot(u, v)),
    ("norm(a)", lambda facts, node, a: facts._length(node)),
    (
        "sum(p)",
        lambda facts, node, p: (
            alg.one if facts._is(p, "probabilities") and not node.shape else facts._signed(node)
        ),
    ),
    ("linalg.inv(q)", lambda facts, node, q: facts._inverse(q)),
    (
        "(bitwise_and|bitwise_or|logical_and|logical_or)(a, b)",
        lambda facts, node, a, b: alg.function(node.data[0], a, b),
    ),
    ("where(c, a, b)", lambda facts, node, c, a, b: alg.where(c, a, b)),
    ("(floor|ceil|round|trunc)(n)", lambda facts, node, n: n if facts.integer(n) else None),
    ("(sin|cos)(x)", lambda facts, node, x: facts._half_turns(node)),
    ("log(x)", lambda facts, node, x: facts._logarithm(node)),
)
# Which matrices are their own transposes, whatever their operands are, or if those are.
SYMMETRIC = Rules(
    ("eye()", lambda facts, node: True),
    ("diag(a)", lambda facts, node, a: not node.data[1]),
    ("outer(u, v)", lambda facts, node, u, v: u is v),
    ("(linalg.inv|matrix_exp|exp)(a)", lambda facts, node, a: facts.symmetric(a)),
)
_TESTS: dict[str, Callable[[int, int], bool]] = {
    word: getattr(operator, word) for word in ("gt", "ge", "ne", "lt", "le", "eq")
}
_OF_SIGN = frozenset(("abs", "relu", "sign", "sgn", "maximum"))
__all__ = ["KINDS", "Assumptions", "read", "squares"]

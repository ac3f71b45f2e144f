"""Elements, slices and traces of expressions, taken from their operands: (2*x)[0] is 2*x[0]."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.formulas.algebra import algebra as alg
from gradcli.formulas.algebra.array_algebra import outer, place_of
from gradcli.formulas.algebra.constants import constant
from gradcli.formulas.algebra.exact_numbers import ONE, ZERO
from gradcli.formulas.algebra.expressions import Expression, Shape, broadcast, call, is_call, number
from gradcli.formulas.algebra.rewriting import rewrite
from gradcli.formulas.simplify.index_elimination import Product, written

_UNIFORM = {"zeros": 0, "zeros_like": 0, "ones": 1, "ones_like": 1}


def taken(expression: Expression) -> Expression:
    """The expression with elements, slices and traces taken as far inside as they go."""
    return rewrite(expression, _taken)


def _taken(node: Expression) -> Expression:
    if is_call(node, "select", "slice"):
        (_, dim), *places = node.data[1]
        own = node.args[0]
        if not own.shape:  # one of several results, such as sort(x)[1]
            return node
        return _part(own, own.shape, dim % len(own.shape) - len(own.shape), node.data[0], places)
    return _trace(node.args[0]) if is_call(node, "trace") and not node.data[1] else node


def _part(own: Expression, shape: Shape, dim: int, word: str, places: list[Any]) -> Expression:
    """A part of an expression that is broadcast to a shape; dim: counted from the last."""
    # It has no such dimension, so it is broadcast along it: each part is the whole.
    if len(own.shape) < -dim:
        return own

    def inner(operand: Expression) -> Expression:
        return _part(operand, shape, dim, word, places)

    # All places of a broadcast dimension show its one element.
    if own.shape[dim] == 1 != shape[dim]:
        return own if word == "slice" else _call(own, dim, word, [("", 0)])
    if is_call(own, "expand", "expand_as"):
        return inner(own.args[0])
    if own.op in ("sum", "product") or (own.op == "call" and _is_elementwise(own)):
        return _rebuilt(own, inner)
    if is_call(own, "outer"):
        u, v = own.args
        vector = u if dim == -2 else v
        part = _part(vector, vector.shape, -1, word, places)
        if word == "slice":
            return outer(part, v) if dim == -2 else outer(u, part)
        return alg.multiply(part, v) if dim == -2 else alg.multiply(u, part)
    if own.op == "call" and own.data[0] in _UNIFORM:
        return number(_UNIFORM[own.data[0]])
    if word == "select":
        index: int = places[0][1] % shape[dim]
        if is_call(own, "select_scatter"):
            (_, at), (_, place) = own.data[1]
            if at % len(own.shape) - len(own.shape) == dim:
                return own.args[1] if place % shape[dim] == index else inner(own.args[0])
        if own.op == "array" and len(own.shape) == 1:
            return constant(own.data[index])
        if isinstance(place := place_of(own), int):
            return alg.one if place % shape[dim] == index else alg.zero
        if is_call(own, "stack") and not own.data[1] and -dim == len(own.shape):
            items = own.args[0].args
            return items[index]
    return _call(own, dim, word, places)


def _call(own: Expression, dim: int, word: str, places: list[Any]) -> Expression:
    at = dim + len(own.shape)
    size = len(range(own.shape[dim])[slice(*(v for _, v in places))]) if word == "slice" else 0
    kept = (size,) if word == "slice" else ()
    shape = (*own.shape[:at], *kept, *own.shape[at + 1 :])
    return call(word, [own], shape, [("", at), *places])


def _is_elementwise(node: Expression) -> bool:
    from gradcli.engine.registry import table

    row = table.FUNCTIONS.get(node.data[0])
    primitives = () if row is None else row.primitives or (row.target,)
    by_elements = node.data[0] == "where" or (
        bool(primitives) and all(getattr(p, "batching", None) == "elementwise" for p in primitives)
    )
    return by_elements and node.shape == broadcast(a.shape for a in node.args)


def _rebuilt(node: Expression, inner: Callable[[Expression], Expression]) -> Expression:
    if node.op in ("sum", "product"):
        return alg.mapped(node, inner)
    args = list(map(inner, node.args))
    if node.data[0] == "where":
        return alg.where(*args)
    return call(node.data[0], args, broadcast(a.shape for a in args), node.data[1])


def _trace(own: Expression) -> Expression:
    """The trace of a matrix: of each term, of what is scaled, of what is known of diagonals."""
    flat, own = alg.scalars_out(own)
    if own.op == "sum" and all(t.shape == own.shape for t in own.args) and own.data[1] == ZERO:
        found = alg.mapped(own, _trace)
    else:
        found = written([Product(alg.one, ((own, (0, 0)),))], ())
    return alg.product([*flat, (found, ONE)])


__all__ = ["taken"]

"""A rule applied to every part of an expression."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gradcli.formulas.algebra import algebra as alg
from gradcli.formulas.algebra.array_algebra import matrix_product, outer, permuted, stacked, total
from gradcli.formulas.algebra.expressions import Expression, call, is_call, is_number, order

# Methods that leave a number unchanged; a number's text has no methods.
_SAME_NUMBER = ("detach", "expand", "expand_as", "reshape", "contiguous")
_OF_ZERO = ("matmul", "dot", "sum", "T")  # 0 of 0


def rewrite(
    root: Expression,
    rule: Callable[[Expression], Expression],
    closed: Callable[[Expression], bool] | None = None,
) -> Expression:
    """The expression with a rule applied to every subexpression, from the leaves up.

    closed: what is left as it is, with all that is in it.
    """
    return _rewritten(root, order([root], closed), rule, closed)


def rewrite_by_all(
    root: Expression, rules: Iterable[Callable[[Expression], Expression]]
) -> Expression:
    """The expression with one rule after the other applied to every subexpression."""
    nodes = order([root])
    for rule in rules:
        new = _rewritten(root, nodes, rule)
        if new is not root:
            root, nodes = new, order([new])
    return root


def _rewritten(
    root: Expression,
    nodes: Sequence[Expression],
    rule: Callable[[Expression], Expression],
    closed: Callable[[Expression], bool] | None = None,
) -> Expression:
    made: dict[Expression, Expression] = {}
    changed = False
    for node in nodes:
        if closed is not None and closed(node):
            made[node] = node
            continue
        # As long as no rule has changed anything, every node is what it was, and need not be looked at.
        made[node] = new = rule(_rebuilt(node, made) if changed else node)
        changed = changed or new is not node
    return made[root]


def _rebuilt(node: Expression, made: dict[Expression, Expression]) -> Expression:
    if all(made[p] is p for p in node.parts):
        return node
    if node.op in ("sum", "product"):
        return alg.mapped(node, made.__getitem__)
    return recalled(node, tuple(made[a] for a in node.args))


def recalled(node: Expression, args: tuple[Expression, ...]) -> Expression:
    """A call with new operands, which are expanded if their shape has become smaller."""
    word, options = node.data
    if word in _SAME_NUMBER and alg.is_bare(args[0]):
        return args[0]
    # matmul(0, B) has no shape to multiply with; it is 0, and broadcasts.
    if word in _OF_ZERO and any(is_number(a, 0) for a in args):
        return alg.zero
    early = _OF_ANY_SHAPE.get(word)
    if early is not None and (found := early(node, *args)) is not None:
        return found
    args = tuple(
        new
        if new.shape == old.shape
        else alg.full(new, old.shape, alg.is_truth(old) or alg.is_integral(old))
        for new, old in zip(args, node.args, strict=True)
    )
    maker = _MAKERS.get(word)
    return call(word, args, node.shape, options) if maker is None else maker(node, *args)


def _dims(options: Sequence[tuple[str, Any]]) -> tuple[Any, bool]:
    """(dim, keepdim) of a sum."""
    return (options[0][1] if options else None), len(options) > 1


def _turned(own: Expression) -> Expression:
    """The transpose; a product stays whole, for whether its factors are turned was decided."""
    if is_call(own, "matmul"):
        return call("T", [own], own.shape[::-1])
    return permuted(own, own.shape, [1, 0])


# What takes its operands in any shape.
_OF_ANY_SHAPE: dict[str, Callable[..., Expression | None]] = {
    "where": lambda node, condition, a, b: alg.where(condition, a, b),
    "stack": lambda node, items: None if node.data[1] else stacked([*items.args], node.shape),
    "detach": lambda node, own: call("detach", [own], own.shape, node.data[1]),
}
# What is rebuilt by the algebra that made it: scalar factors of an operand move out, and so on.
_MAKERS: dict[str, Callable[..., Expression]] = {
    "matmul": lambda node, a, b: matrix_product(a, b, node.shape),
    "dot": lambda node, a, b: matrix_product(a, b, ()),
    "outer": lambda node, a, b: outer(a, b),
    "sum": lambda node, own: total(own, own.shape, *_dims(node.data[1])),
    "T": lambda node, own: _turned(own),
    "permute": lambda node, own: permuted(own, own.shape, [*node.data[1][0][1]]),
}


__all__ = ["rewrite"]

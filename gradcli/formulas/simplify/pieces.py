"""Pieces of a line: `where`s that compare one expression with numbers become one chain.

where(x >= 0, where(x < 1, 1, 0), where(x >= 0, 1, 0)) is where(x < 0, 0, where(x < 1, 1, 0)).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from gradcli.formulas.algebra import algebra as alg
from gradcli.formulas.algebra.expressions import (
    Expression,
    broadcast,
    call,
    is_call,
    is_number,
    number,
    order,
    value_of,
)
from gradcli.formulas.algebra.rewriting import rewrite
from gradcli.formulas.lift.elementwise_rules import COMPARED, compare
from gradcli.formulas.simplify.shortest_form import operations

MOST_PIECES = 5  # numbers that one expression is compared with
MOST_OPERATIONS = 60


def in_pieces(expression: Expression) -> Expression:
    """The expression with its choices by comparisons of one expression as one chain, if shorter."""
    # asked of every derivative, and of few of them more than this
    if not any(node.op == "call" and node.data[0] == "where" for node in order([expression])):
        return expression
    return rewrite(expression, _chained)


def _chained(node: Expression) -> Expression:
    if node.op not in ("sum", "product") and not is_call(node, "where"):
        return node
    parts = _elementwise(node)
    if sum(is_call(part, "where") for part in parts) < 2 or operations(node) > MOST_OPERATIONS:
        return _merged(node)
    conditions = [c for part in parts if is_call(part, "where") for c in _compared(part.args[0])]
    best = node
    for subject in dict.fromkeys(c.args[0] for c in conditions):
        own = list(dict.fromkeys(c for c in conditions if c.args[0] is subject))
        made = _chain(best, subject, own) if len(own) > 1 or conditions.count(own[0]) > 1 else None
        if made is not None and made.shape == node.shape and operations(made) < operations(best):
            best = made
    return _merged(best)


def _merged(node: Expression) -> Expression:
    """where(c, where(d, a, b), b) is where(c & d, a, b)."""
    if not is_call(node, "where") or not is_call(node.args[1], "where"):
        return node
    condition, (other, own, rest) = node.args[0], node.args[1].args
    if rest is not node.args[2] or value_of(rest) is not None:
        return node
    both = call("bitwise_and", [condition, other], broadcast([condition.shape, other.shape]))
    return alg.where(both, own, rest)


def _elementwise(root: Expression) -> list[Expression]:
    """What a value is made of element by element: sums, products, and `where`s with their branches."""
    return order([root], lambda n: n.op not in ("sum", "product") and not is_call(n, "where"))


def _compared(condition: Expression) -> list[Expression]:
    """The comparisons with numbers of which a condition is made."""
    if is_call(condition, "bitwise_and", "logical_and"):
        return [c for part in condition.args for c in _compared(part)]
    is_comparison = is_call(condition, *COMPARED) and value_of(condition.args[1]) is not None
    return [condition] if is_comparison else []


def _chain(root: Expression, subject: Expression, own: Sequence[Expression]) -> Expression | None:
    """The choices by `own`, comparisons of a subject with numbers, as one chain; None if there is none."""
    ends = {}
    for condition in own:
        end = value_of(condition.args[1])
        assert end is not None
        ends[end.python()] = condition.args[1]
    at = sorted(ends)
    if not 0 < len(at) <= MOST_PIECES or not all(map(math.isfinite, at)):
        return None
    # The line is cut into what is left of the first number, this number, what is between it and the next,
    # and so on; what is not a number, where no comparison holds, is a piece of its own.
    inner = [(a + b) / 2 for a, b in pairwise(at)]
    places = [at[0] - 1, *(p for pair in zip(at, [*inner, at[-1] + 1], strict=True) for p in pair)]
    pieces = [_piece(root, own, place) for place in places]
    undefined = _piece(root, own, math.nan)
    numbers = [ends[end] for end in at]
    found = _of_two_kinds(pieces, undefined, subject, numbers)
    found += [_choices(pieces, subject, numbers, k) for k, p in enumerate(pieces) if p is undefined]
    return min(found, key=operations, default=None)


def _piece(root: Expression, own: Sequence[Expression], place: Any) -> Expression:
    """The value where the subject is at a place."""
    holds = {c: number(int(COMPARED[c.data[0]](place, _end(c)))) for c in own}

    def decided(node: Expression) -> Expression:
        if not is_call(node, "where"):
            return node
        condition, yes, no = node.args
        found = _decided(condition, holds)
        return node if found is condition else alg.where(found, yes, no)

    return rewrite(root, decided)


def _decided(condition: Expression, holds: Mapping[Expression, Expression]) -> Expression:
    """A condition with what is known of its parts: 0, 1, or what is left of it."""
    if condition in holds:
        return holds[condition]
    if not is_call(condition, "bitwise_and", "logical_and"):
        return condition
    parts = [_decided(part, holds) for part in condition.args]
    if any(is_number(part, 0) for part in parts):
        return alg.zero
    left = [part for part in parts if not is_number(part, 1)]
    if len(left) == len(parts):
        return condition
    return left[0] if left else alg.one


def _end(condition: Expression) -> Any:
    end = value_of(condition.args[1])
    assert end is not None
    return end.python()


def _choices(
    pieces: Sequence[Expression], subject: Expression, ends: Sequence[Expression], rest: int
) -> Expression:
    """`where(x < a, …, where(x > b, …, …))`: from both ends to one piece, which is the rest."""
    text = pieces[rest]
    for k in range(rest + 1, len(pieces)):
        if pieces[k] is not pieces[k - 1]:
            text = alg.where(_above(k, subject, ends), pieces[k], text)
    for k in range(rest - 1, -1, -1):
        if pieces[k] is not pieces[k + 1]:
            text = alg.where(_below(k, subject, ends), pieces[k], text)
    return text


def _below(k: int, subject: Expression, ends: Sequence[Expression]) -> Expression:
    """Where the subject is in a piece or below: an even piece lies below a number, an odd one is it."""
    return compare("le" if k % 2 else "lt", subject, ends[k // 2])


def _above(k: int, subject: Expression, ends: Sequence[Expression]) -> Expression:
    """Where the subject is in a piece or above."""
    return compare("ge" if k % 2 else "gt", subject, ends[(k - 1) // 2])


def _of_two_kinds(
    pieces: Sequence[Expression], rest: Expression, subject: Expression, ends: Sequence[Expression]
) -> list[Expression]:
    """`where((x > a) & (x < b), …, …)`, or | of what is outside, where there are two kinds of pieces."""
    differ = [k for k, piece in enumerate(pieces) if piece is not rest]
    same = [k for k in range(len(pieces)) if k not in differ]
    if len({*pieces}) != 2:
        return []
    last = len(pieces) - 1
    for run, word in ((differ, "bitwise_and"), (same, "bitwise_or")):
        if not run:  # the rest is no piece
            continue
        first, end = run[0], run[-1]
        if first == 0 or end == last or run != list(range(first, end + 1)):
            continue
        if word == "bitwise_and":
            sides = [_above(first, subject, ends), _below(end, subject, ends)]
        else:
            sides = [_below(first - 1, subject, ends), _above(end + 1, subject, ends)]
        condition = call(word, sides, subject.shape)
        if first == end and first % 2 and word == "bitwise_and":
            condition = compare("eq", subject, ends[first // 2])
        return [alg.where(condition, pieces[differ[0]], rest)]
    return []


__all__ = ["in_pieces"]

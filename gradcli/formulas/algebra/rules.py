"""Tables of rewriting rules, in which a reader finds a rule by its left side.

    TRANSPOSES = Rules(
        ("a.T", lambda own, a: a),
        ("A @ B", lambda own, A, B: matrix_product(transposed(B), transposed(A), own.shape[::-1])),
    )

The left side is text: calls within calls, `a @ b` for matmul, `a.T` for T, `(tril|triu)(a)` for either
function. A name stands for any expression; for a vector if it begins with u, v or w, and for a matrix if it
begins with a capital. `(v := ones())` names what matches. The right side is a function of what the table is
asked about and of the named parts in order; it gives None where a condition of the rule does not hold. The
first rule that gives a result decides.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from gradcli.formulas.algebra.expressions import Expression

VECTORS = "uvw"
Parts = list[Expression]


class _Pattern:
    """words: the functions that match. args: the patterns of their arguments. name: of the whole, if any."""

    __slots__ = ("args", "name", "words")

    def __init__(self, words: frozenset[str], args: list[Any], name: str = "") -> None:
        self.words, self.args, self.name = words, args, name

    def matches(self, word: str, args: Sequence[Expression], found: Parts) -> bool:
        """Whether a call of the function matches; the named parts are appended to `found`."""
        return (
            word in self.words
            and len(args) == len(self.args)
            and all(_matches(part, a, found) for part, a in zip(self.args, args, strict=True))
        )


def _matches(pattern: Any, own: Expression, found: Parts) -> bool:
    """Whether an expression matches a pattern, or the name of one."""
    word = pattern if type(pattern) is str else pattern.name
    if word:
        if (word[0] in VECTORS or word[0].isupper()) and len(own.shape) != 1 + word[0].isupper():
            return False
        found.append(own)
    return type(pattern) is str or (
        own.op == "call" and pattern.matches(own.data[0], own.args, found)
    )


def _read(node: ast.expr) -> Any:
    """A pattern of the left side's syntax tree; a name as it is."""
    match node:
        case ast.Name(word):
            return word
        case ast.NamedExpr(ast.Name(word), value):
            made = _read(value)
            return _Pattern(made.words, made.args, word)
        case ast.BinOp(left, ast.MatMult(), right):
            return _Pattern(frozenset(["matmul"]), [_read(left), _read(right)])
        case ast.Attribute(value, "T"):
            return _Pattern(frozenset("T"), [_read(value)])
        case ast.Call(called, args):
            words = ast.unparse(called).split(" | ")
            return _Pattern(frozenset(words), list(map(_read, args)))
    raise ValueError(f"no pattern: {ast.unparse(node)}")


class Rules:
    """A table of (left side, right side). It is read when it is first asked, for most tables never are."""

    def __init__(self, *rules: tuple[str, Callable[..., Any]]) -> None:
        self.rules = rules
        self.by: dict[str, list[tuple[_Pattern, Callable[..., Any]]]] = {}

    def find(self, word: str, args: Sequence[Expression], *about: Any) -> Any:
        """What the first rule gives that holds of a call; None where none does.

        about: what the right sides are given before the parts.
        """
        if not self.by:
            for left, right in self.rules:
                pattern = _read(ast.parse(left, mode="eval").body)
                for each in pattern.words:
                    self.by.setdefault(each, []).append((pattern, right))
        for pattern, right in self.by.get(word, ()):
            parts: Parts = []
            if pattern.matches(word, args, parts):
                result = right(*about, *parts)
                if result is not None:
                    return result
        return None

    def __call__(self, own: Expression) -> Expression:
        """The expression after the first rule that holds of it."""
        if own.op != "call":
            return own
        found = self.find(own.data[0], own.args, own)
        return own if found is None else found


__all__ = ["Rules"]

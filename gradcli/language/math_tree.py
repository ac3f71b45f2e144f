"""Mathematics as a tree: what `--math` reads before it is written in the language.

Kinds of nodes, with their parts:

| kind | parts | text |
|---|---|---|
| number, string, raw | | as the language has it |
| name | subscripts | all of it, "" where the subscript makes no name (`x_{i+1}`); `base`: before it |
| sum | terms | a sign for each term: "+-" |
| product | left, right | the sign: "", "*", "·", "×", "⊙", "⊗", "@", "/", "//", "%" |
| power | base, exponent | "⊙" where it is element by element |
| neg, transpose, bar, factorial, degrees, percent, group, abs, floor, ceil | one | |
| norm | inner, order | |
| inner | left, right | |
| normal | x, mean, variance | the normal density |
| call | arguments | the function, with a dot behind it where it takes each element (`exp.(A)`) |
| apply | callee, arguments | |
| keyword, lambda, assign, define | one | the name, or what stands before the colon |
| series | body | "sum", "prod", "amax", "amin"; `binder` says over what |
| derivative | body | the variables, one for each order; "∇" |
| integral | body, limits | the variable |
| limit | body, point | the variable |
| labelled | one | the indices that it has on the left of `=` |
| elements | one | its indices: the array of these elements; `binder` has them too |
| element | one | the indices of an element of it |
| matrix | cells, row by row | the number of columns |
| list | cells | the number of columns; "1" in `base` where it may be a bracket |
| cases | value, condition, value, condition, … | |
| relation, logical, choice, values, attribute, subscript, prime | as they are read | |
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from gradcli.language.notation import Token


class Binder(NamedTuple):
    """The indices of a sum. relation: between neighbours among them, "" where there is none; low, high:
    the limits, None where it is over all elements."""

    names: tuple[str, ...]
    relation: str = ""
    low: Node | None = None
    high: Node | None = None


class Node(NamedTuple):
    """A piece of mathematics; see the table of this module."""

    kind: str
    token: Token
    text: str = ""
    parts: tuple[Node, ...] = ()
    base: str = ""
    binder: Binder | None = None

    @property
    def only(self) -> Node:
        """The one part."""
        return self.parts[0]


def nodes(root: Node) -> Iterator[Node]:
    """All nodes of a tree, the root first."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(node.parts)
        if node.binder is not None:
            waiting += [limit for limit in (node.binder.low, node.binder.high) if limit is not None]

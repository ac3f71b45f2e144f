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

from collections.abc import Collection, Iterator, Mapping
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


def with_formulas(parts: list[Node | Token]) -> list[Node | Token]:
    """The statements where what a derivative is of stands as a formula: of `L = w^2; dL/dw`, w^2 for L.

    A name that is assigned has a value and no formula: its derivative would be 0.
    """
    known: dict[str, Node] = {}
    made: list[Node | Token] = []
    for part in parts:
        if isinstance(part, Node):
            part = _with_formulas(part, known)
            if part.kind in ("assign", "define"):  # f of df/dx is f(x)
                known[part.text] = part.only
        made.append(part)
    return made


def _with_formulas(node: Node, known: Mapping[str, Node]) -> Node:
    if not known:
        return node
    inner = tuple(_with_formulas(part, known) for part in node.parts)
    by = {"derivative": node.text.replace("^2", "").split(), "nabla": [node.base]}.get(node.kind)
    if by is None:
        return node._replace(parts=inner)
    return node._replace(parts=tuple(_spelled(part, known, by) for part in inner))


def _spelled(node: Node, known: Mapping[str, Node], by: Collection[str]) -> Node:
    """A formula with those of its names as formulas that depend on the variables."""
    formula = known.get(node.text) if node.kind == "name" and node.text not in by else None
    if formula is not None:
        made = _spelled(formula, known, by)
        depends = any(n.kind == "name" and n.text in by for n in nodes(made))
        return Node("group", node.token, "", (made,)) if depends else node
    called = node.parts[:1] if node.kind == "apply" else ()  # f of f(x) stays
    rest = (_spelled(part, known, by) for part in node.parts[len(called) :])
    return node._replace(parts=(*called, *rest))


_POSITIVE = frozenset(("exp", "cosh", "sqrt", "abs"))
_OF_NUMBERS = ("", "*", "·", "×", "/", "frac")


def is_never_negative(node: Node) -> bool:
    """Whether a piece is of no negative number, as one sees: `x^2 + 4`, `e^x`, `3|x|`."""
    first = node.parts[0] if node.parts else None
    match node.kind:
        case "number" | "abs":
            return True
        case "group" | "root":
            return first is not None and is_never_negative(first)
        case "sum":
            return "-" not in node.text and all(map(is_never_negative, node.parts))
        case "product":
            return node.text in _OF_NUMBERS and all(map(is_never_negative, node.parts))
        case "power":
            exponent = node.parts[1].text
            even = node.parts[1].kind == "number" and exponent.isdigit() and int(exponent) % 2 == 0
            return even or (first is not None and first.kind == "name" and first.text == "e")
        case "call":
            return node.text in _POSITIVE
    return False

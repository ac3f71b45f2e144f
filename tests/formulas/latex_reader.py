r"""The LaTeX that gradcli writes, read as a person reads it and evaluated: matrices and elements.

A value is an array with a letter for each index it still depends on. `{A}_{ij}` gives the letters,
`\sum_{i}` and `\left[…\right]_{ij}` take them away. Beside an index everything is a number: an array
whose index is missing is an error there, as two arrays of different shapes are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

TOKEN = re.compile(
    r"\\(?:left|right)\\\||\\(?:begin|end){\w+}|\\text{[^}]*}|\\\\|\\left.|\\right.|\\[a-zA-Z]+|\\[,\\|]|\d+(?:\.\d+)?|\S"
)
BINDS = {r"\sum": np.sum, r"\prod": np.prod}
FUNCTIONS: Mapping[str, Callable[[Any], Any]] = {
    **{rf"\{f}": getattr(np, f) for f in "sin cos tan sinh cosh tanh exp log".split()},
    r"\sigma": lambda x: 1 / (1 + np.exp(-x)),
}

OPERATORS: Mapping[str, Callable[[Any], Any]] = {
    "diag": lambda x: np.diag(np.reshape(x, -1)),
    "sign": np.sign,
}
EXTREMES = {r"\max": np.maximum, r"\min": np.minimum}
ENDS = ("", "+", "-", ")", "}", "]", ",", "&", r"\\", r"\odot", r"\end{cases}")
COMPARED = {
    "=": np.equal,
    r"\ne": np.not_equal,
    "<": np.less,
    r"\le": np.less_equal,
    ">": np.greater,
    r"\ge": np.greater_equal,
}


class Unread(Exception):
    """What the text says has no meaning, or is not known here."""


class Value(NamedTuple):
    """An array; letters: the indices that its first axes stand for; free: whether it may be repeated.

    ones: a number times a "column", a "row" or a "matrix" of ones, whose size is what stands beside it.
    """

    array: Any
    letters: tuple[str, ...] = ()
    free: bool = False
    ones: str = ""

    @property
    def closed(self) -> tuple[int, ...]:
        """The shape of what is no index."""
        return tuple(np.shape(self.array)[len(self.letters) :])


TURNED = {"column": "row", "row": "column", "matrix": "matrix", "": ""}


def evaluated(text: str, values: Mapping[str, Any]) -> Any:
    """The value of a formula; values: the arrays of its names."""
    reader = _Reader(TOKEN.findall(text), values)
    found = reader.total()
    if reader.at != len(reader.tokens) or found.letters:
        raise Unread(f"{reader.tokens[reader.at :]} {found.letters}")
    return found.array


def column(array: Any) -> Any:
    """A vector as a matrix of one column."""
    return np.reshape(array, (-1, 1)) if np.ndim(array) == 1 else np.asarray(array, float)


class _Reader:
    def __init__(self, tokens: Sequence[str], values: Mapping[str, Any]) -> None:
        self.tokens, self.values, self.at = tokens, values, 0

    # -- tokens -----------------------------------------------------------------------------------
    @property
    def next(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, *wanted: str) -> str:
        token = self.next
        if wanted and token not in wanted:
            raise Unread(f"{token!r} for {wanted} in {' '.join(self.tokens[: self.at])}")
        self.at += 1
        return token

    def group(self) -> Value:
        self.take("{")
        found = self.total()
        self.take("}")
        return found

    def raw(self) -> str:
        """The text in braces."""
        self.take("{")
        found = []
        while self.next != "}":
            found.append(self.take())
        self.take("}")
        return "".join(found)

    # -- the grammar ------------------------------------------------------------------------------
    def total(self) -> Value:
        """Terms."""
        negative = self.next == "-" and bool(self.take())
        found = self.term()
        if negative:
            found = found._replace(array=-found.array)
        while self.next in ("+", "-"):
            sign = self.take()
            found = elementwise(np.add if sign == "+" else np.subtract, found, self.term())
        return found

    def term(self) -> Value:
        r"""Factors side by side; between `\odot` they are products of matrices."""
        found = self.side_by_side()
        while self.next == r"\odot":
            self.take()
            found = elementwise(np.multiply, found, self.side_by_side())
        return found

    def side_by_side(self) -> Value:
        """Numbers, which may stand anywhere, and a chain of matrices."""
        found = [self.factor()]
        while self.next not in (*ENDS, *COMPARED) and not self.next.startswith(r"\right"):
            if self.next in (r"\cdot", r"\,"):
                self.take()
            else:
                found.append(self.factor())
        numbers = [one for one in found if not one.closed]
        arrays = [one for one in found if one.closed]
        parts = ([reduce(times, numbers)] if numbers else []) + (
            [shown(reduce(times, arrays))] if arrays else []
        )
        return reduce(times, parts)

    def factor(self) -> Value:
        """A factor with its power, transpose or index."""
        token = self.next
        if token in BINDS:
            return self.bound()
        found = self.atom()
        while self.next in ("^", "_"):
            if self.take() == "_":
                found = indexed(found, self.raw())
            elif self.tokens[self.at : self.at + 3] == ["{", r"\top", "}"]:
                self.at += 3
                found = turned(found)
            else:
                exponent = self.exponent(found)
                found = elementwise(np.power, found, exponent)
        return found

    def exponent(self, base: Value | None = None) -> Value:
        r"""What is raised: with `\circ` before it for each element of a matrix, whose power is another."""
        each = self.tokens[self.at : self.at + 2] == ["{", r"\circ"]
        if each:
            del self.tokens[self.at + 1]
        found = self.group()
        whole = found if base is None else base
        if whole.closed and np.ndim(whole.array) == 2 and not each and 1 not in whole.array.shape:
            raise Unread("a power of a matrix")
        return found

    def bound(self) -> Value:
        function = BINDS[self.take()]
        self.take("_")
        letters = self.raw().split(",")
        found = self.side_by_side()
        for letter in letters:
            if letter not in found.letters:
                raise Unread(f"nothing has the index {letter}")
            axis = found.letters.index(letter)
            rest = tuple(k for k in found.letters if k != letter)
            found = Value(function(found.array, axis=axis), rest)
        return found

    def atom(self) -> Value:
        token = self.take()
        if token == r"\mathbf":
            return ones(float(self.raw()), "column")
        if token == "{":
            self.at -= 1
            return self.group()
        if token in FUNCTIONS:
            return self.applied(FUNCTIONS[token])
        if token == r"\frac":
            above, below = self.group(), self.group()
            return elementwise(np.divide, above, below)
        if token == r"\sqrt":
            return mapped(np.sqrt, self.group())
        if token == "e" and self.next == "^":
            self.take()
            return mapped(np.exp, self.exponent())
        if token == r"\begin{cases}":
            return self.cases()
        if token == r"\left|":
            found = mapped(np.abs, self.total())
            self.take(r"\right|")
            return found
        if token in EXTREMES:
            self.take(r"\left(")
            first = self.total()
            self.take(",")
            found = elementwise(EXTREMES[token], first, self.total())
            self.take(r"\right)")
            return found
        if token == r"\operatorname":
            return self.applied(OPERATORS[self.raw()])
        if token in (r"\left(", r"\left["):
            found = self.total()
            self.take(token.replace("left", "right").translate(str.maketrans("([", ")]")))
            return self.array_of(found) if token.endswith("[") else found
        if token == r"\left\|":
            found = self.total()
            self.take(r"\right\|")
            if self.next == "_":
                self.take("_")
                self.raw()
            return Value(np.linalg.norm(found.array))
        if token[0].isdigit():
            return Value(np.asarray(float(token)))
        if token in self.values:
            return Value(column(self.values[token]))
        raise Unread(f"{token!r} in {' '.join(self.tokens)}")

    def cases(self) -> Value:
        """Values with their conditions, and what holds otherwise."""
        own = self.total()
        self.take("&")
        if self.take(r"\text{if }", r"\text{otherwise}") == r"\text{otherwise}":
            self.take(r"\end{cases}")
            return own
        left = self.total()
        held = elementwise(COMPARED[self.take(*COMPARED)], left, self.total())
        self.take(r"\\")
        rest = self.cases()
        taken = elementwise(lambda a, c: np.where(c, a, 0), own, held)
        other = elementwise(lambda a, c: np.where(c, 0, a), rest, held)
        return elementwise(np.add, taken, other)

    def applied(self, function: Callable[[Any], Any]) -> Value:
        r"""A function of what stands in parentheses, as `\tanh^{2}\left(x\right)`."""
        power = None
        if self.next == "^":
            self.take()
            power = self.group()
        self.take(r"\left(")
        inner = self.total()
        self.take(r"\right)")
        found = mapped(function, inner)
        return found if power is None else elementwise(np.power, found, power)

    def array_of(self, found: Value) -> Value:
        """The array of elements: its axes in the order of the letters behind the bracket."""
        self.take("_")
        letters = self.raw()
        if found.closed:
            raise Unread(f"an array of shape {found.closed} where a number belongs")
        named = [k for k in letters if k != "0"]
        if set(found.letters) - set(named):
            raise Unread(f"{found.letters} of {named}")
        array = found.array
        missing = [k for k in named if k not in found.letters]
        order = (*missing, *found.letters)
        array = np.reshape(array, (1,) * len(missing) + np.shape(array))
        array = np.transpose(array, [order.index(k) for k in named])
        sizes = iter(np.shape(array))
        shape = [1 if k == "0" else next(sizes) for k in letters]
        return Value(column(np.reshape(array, shape)), free=bool(missing))


# -- what stands side by side -----------------------------------------------------------------------
def mapped(function: Callable[[Any], Any], own: Value) -> Value:
    """A function of each element."""
    if own.letters and own.closed:
        raise Unread(f"an array of shape {own.closed} beside the index {own.letters}")
    return own._replace(array=function(own.array))


def elementwise(function: Callable[[Any, Any], Any], a: Value, b: Value) -> Value:
    """A function of numbers, of an array and a number, or of arrays of one shape."""
    if (a.letters or b.letters) and (a.closed or b.closed):
        raise Unread(f"arrays of shapes {a.closed}, {b.closed} beside an index")
    if a.closed and b.closed and a.closed != b.closed and not (a.free or b.free):
        raise Unread(f"{a.closed} beside {b.closed}")
    letters = (*a.letters, *(k for k in b.letters if k not in a.letters))
    x, y = (spread(v, letters) for v in (a, b))
    arrays = [v for v in (a, b) if v.closed]
    kinds = {v.ones for v in arrays}
    kind = kinds.pop() if len(kinds) == 1 else ""
    free = bool(arrays) and all(v.free for v in arrays)
    return Value(function(x, y), letters, free, kind)


def spread(own: Value, letters: Sequence[str]) -> Any:
    """An array with an axis for each letter."""
    if not letters:
        return own.array
    order = [own.letters.index(k) for k in letters if k in own.letters]
    array = np.transpose(own.array, order)
    sizes = iter(np.shape(array))
    return np.reshape(array, [next(sizes) if k in own.letters else 1 for k in letters])


def times(a: Value, b: Value) -> Value:
    """A product: of numbers, of a number and an array, of matrices."""
    if not (a.closed and b.closed) or a.letters or b.letters:
        return elementwise(np.multiply, a, b)
    if (a.ones, b.ones) == ("column", "row"):
        return ones(float(np.prod(a.array * b.array)), "matrix")
    if a.ones in ("row", "matrix") and not b.free:  # the sum of each column; as equal rows
        return Value(a.array * np.sum(b.array, 0, keepdims=True), free=a.ones == "matrix")
    if b.ones in ("column", "matrix") and not a.free:  # the sum of each row; as equal columns
        return Value(b.array * np.sum(a.array, 1, keepdims=True), free=b.ones == "matrix")
    if (a.ones == "column" and len(b.array) == 1) or (b.ones == "row" and a.closed[1] == 1):
        return Value(a.array * b.array, free=True)  # equal rows, equal columns
    if (1, 1) in (a.closed, b.closed) and not (a.ones or b.ones):
        return Value(a.array * b.array)
    if a.free or b.free or len(a.closed) != 2 or len(b.closed) != 2 or a.closed[1] != b.closed[0]:
        return fail(a, b)
    return Value(a.array @ b.array)


def ones(number: float, kind: str) -> Value:
    """A number times ones."""
    return Value(np.full((1, 1), number), (), True, kind)


def fail(a: Value, b: Value) -> Value:
    raise Unread(f"{a.closed} times {b.closed}")


def shown(own: Value) -> Value:
    """A matrix of one element as a number."""
    one = own.closed == (1, 1) and not own.free
    return own._replace(array=np.reshape(own.array, ())) if one else own


def turned(own: Value) -> Value:
    """The transpose."""
    if not own.closed:
        return own
    return own._replace(array=np.swapaxes(own.array, -1, -2), ones=TURNED[own.ones])


def indexed(own: Value, letters: str) -> Value:
    """An element: the letters of its place."""
    letters = letters.replace(",", "")
    array = own.array
    if (
        letters.strip(":").isdigit() and len(own.closed) == 2
    ):  # a row, a column, an element of a vector
        if 1 in own.closed and ":" not in letters and max(own.closed) > int(letters) > 0:
            return Value(np.reshape(array, -1)[int(letters)])
        return Value(column(np.take(array, int(letters.strip(":")), letters.count(":"))))
    if own.letters or own.free:
        raise Unread(f"an index {letters} of what has one")
    if len(letters) == 1 and len(own.closed) == 2:  # of a vector
        if 1 not in own.closed:
            raise Unread(f"one index {letters} of a matrix")
        array = np.reshape(array, -1)
    if np.ndim(array) != len(letters) or not set(letters) <= set("0ijklmnop"):
        raise Unread(f"{letters} of {own.closed}")
    named = []
    for axis, letter in reversed(list(enumerate(letters))):
        if letter == "0":
            if array.shape[axis] != 1:
                raise Unread(f"the first of {array.shape[axis]} alone")
            array = np.take(array, 0, axis)
        elif letter in letters[:axis]:  # a diagonal
            first = letters.index(letter)
            array = np.moveaxis(np.diagonal(array, 0, first, axis), -1, first)
        else:
            named.append(letter)
    return Value(array, tuple(named[::-1]))

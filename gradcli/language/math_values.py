"""Texts of the language with their shapes: how strongly they bind, and what they are besides numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

SUM, PRODUCT, SIGN, POWER, ATOM = range(5)
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Known(NamedTuple):
    """What is known of the value of a name: its shape, and what it is, if it is a whole number. each:
    whether it stands for one of many, as a column of a table does for its row's: there x_i is x."""

    shape: tuple[int | str, ...]
    number: int | None = None
    each: bool = False


class Value(NamedTuple):
    """A text of the language. level: how strongly its last operation binds.

    axes: the indices that it depends on, sorted: its first dimensions. rank: of what is at each of them: 0 is
    a number, or unknown; 1 a vector, which is a column unless it is a row; 2 a matrix. sizes: of these
    dimensions, as texts; () where nobody knows.
    """

    text: str
    level: int = ATOM
    rank: int = 0
    row: bool = False
    axes: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()

    def at(self, level: int) -> str:
        """The text as an operand of an operation of this level."""
        return self.text if self.level >= level else f"({self.text})"

    @property
    def shape(self) -> str:
        """In words."""
        if self.rank == 1:
            return "row" if self.row else "column"
        return "matrix" if self.rank == 2 else "number"

    @property
    def square(self) -> bool | None:
        """Whether a matrix is square; None where nobody knows."""
        if self.rank != 2 or len(self.sizes) != 2:
            return None
        if self.sizes[0] == self.sizes[1]:
            return True
        return False if all(size.isdigit() for size in self.sizes) else None

    def like(self, text: str, level: int) -> Value:
        """Another text of this shape."""
        return self._replace(text=text, level=level)


def weak(text: str) -> Value:
    """A text that binds weaker than a sum."""
    return Value(text, SUM)


def union(values: Iterable[Value]) -> tuple[str, ...]:
    """The indices of any of them, sorted."""
    return tuple(sorted({axis for value in values for axis in value.axes}))


def aligned(values: Sequence[Value]) -> tuple[list[Value], tuple[str, ...], int]:
    """The values as arrays that broadcast against each other, what they then depend on, and the rank."""
    axes, rank = union(values), max((v.rank for v in values), default=0)
    return [spread(value, axes, rank) for value in values], axes, rank


def spread(value: Value, axes: tuple[str, ...], rank: int) -> Value:
    """A value with dimensions of size 1 for the indices that it does not depend on."""
    # A number, or a value that has all dimensions already, broadcasts by itself.
    if not value.axes or (value.axes == axes and value.rank == rank):
        return value
    wanted = [axis in value.axes for axis in axes]
    own = [False] * (rank - value.rank) + [True] * value.rank
    present = [*wanted, *own]
    # Leading dimensions of size 1 are what broadcasting adds, so nobody writes them.
    present = present[present.index(True) :]
    if all(present):
        return value
    while present[-1]:
        present.pop()
    slots = ", ".join(":" if there else "None" for there in present)
    return Value(f"{value.at(ATOM)}[{slots}]", ATOM, value.rank, value.row, value.axes, value.sizes)


def variables_of(text: str) -> set[str]:
    """The names of a text that are no functions, no modules and no constants."""
    from gradcli.language.names import is_namespace

    plain = re.sub(r"\"[^\"]*\"", "", text)
    words = re.findall(r"(?<![\w.])[^\W\d]\w*(?![\w(])", plain)
    return {word for word in words if not is_namespace(word)} - {"inf", "nan", "pi"}


def turned(text: str) -> str:
    """A matrix transposed."""
    return text[:-2] if text.endswith(".T") else f"{text}.T"


def transposed(text: str, order: Sequence[int]) -> str:
    """A text with its dimensions in another order."""
    if list(order) == sorted(order):
        return text
    if len(order) == 2:
        return turned(text)
    return f"{text}.permute({', '.join(map(str, order))})"


def reduced(kind: str, value: Value, over: Iterable[str]) -> Value:
    """The sum, product, largest or smallest along some of the indices of a value."""
    dims = [i for i, axis in enumerate(value.axes) if axis in set(over)]
    if not dims:
        return value
    left = tuple(axis for i, axis in enumerate(value.axes) if i not in dims)
    after = Value("", ATOM, value.rank, value.row, left, value.sizes)
    # The sum of the sums along the last dimension is the sum of all: `sum(sum(x, -1))` is `sum(x)`.
    if not left and not value.rank:
        inner = value.text
        if (
            kind == "sum"
            and inner.startswith("sum(")
            and inner.endswith(", -1)")
            and _is_one_call(inner)
        ):
            inner = inner[4:-5]
        return after.like(f"{kind}({inner})", ATOM)
    # torch's prod takes one dimension. The last ones go first, so that the others keep their places.
    if kind == "prod":
        text = value.text
        for dim in reversed(dims):
            text = f"prod({text}, {dim})"
        return after.like(text, ATOM)
    where = str(dims[0]) if len(dims) == 1 else f"({', '.join(map(str, dims))})"
    return after.like(f"{kind}({value.text}, {where})", ATOM)


def _is_one_call(text: str) -> bool:
    """Whether the first bracket of a text ends with it."""
    depth = 0
    for i, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if character == ")" and not depth:
            return i == len(text) - 1
    return False


# -- sums of products ------------------------------------------------------------------------------
def contracted(factors: list[Value], over: Iterable[str]) -> Value:
    """The sum over some indices of a product of arrays of numbers: with `@` where matrices say it."""
    summed = set(over)
    factors = [f for f in factors if f.axes or f.text != "1"] or factors
    # An index that one factor alone has is summed in it before anything is multiplied: the arrays stay
    # small.
    uses = Counter(a for f in factors for a in set(f.axes))
    alone = [{a for a in f.axes if a in summed and uses[a] == 1} for f in factors]
    if len(factors) > 1 and any(alone):
        done = set().union(*alone)
        small = [reduced("sum", f, own) for f, own in zip(factors, alone, strict=True)]
        return contracted(small, summed - done)
    numbers = [f for f in factors if not f.axes]
    arrays = [f for f in factors if f.axes]
    groups = _connected(arrays, summed)
    found = [*numbers, *(_joined(group, summed) for group in groups)]
    return multiplied(found)


def multiplied(factors: Sequence[Value]) -> Value:
    """The product, element by element."""
    values, axes, rank = aligned(factors)
    if len(values) == 1:
        return values[0]
    text = values[0].at(PRODUCT) + "".join(f"*{v.at(SIGN)}" for v in values[1:])
    return Value(text, PRODUCT, rank, False, axes)


def _connected(arrays: list[Value], summed: set[str]) -> list[list[Value]]:
    """The arrays in groups that share summed indices."""
    groups: list[list[Value]] = []
    for array in arrays:
        mine = set(array.axes) & summed
        touching = [g for g in groups if any(mine & set(v.axes) for v in g)]
        groups = [g for g in groups if g not in touching]
        groups.append([v for g in touching for v in g] + [array])
    return groups


def _joined(group: list[Value], summed: set[str]) -> Value:
    out = tuple(a for a in union(group) if a not in summed)
    if len({v.axes for v in group}) == 1:
        return reduced("sum", multiplied(group), summed)
    return _chain(group, summed, out) or _einsum(group, out)


def _chain(group: list[Value], summed: set[str], out: tuple[str, ...]) -> Value | None:
    """`x@A@y`: a product of matrices whose neighbours share one index each; None where there is none."""
    if any(len(v.axes) > 2 for v in group) or len(out) > 2 or set(out) & summed:
        return None
    found: list[Value] = []
    for start, first in enumerate(group):
        rest = group[:start] + group[start + 1 :]
        for entry in (None,) if len(first.axes) == 1 else first.axes:
            link = next(a for a in first.axes if a != entry)
            if (entry is not None and entry in summed) or link not in summed:
                continue
            ends = _followed(_oriented(first, (entry, link)), link, rest, summed)
            if ends is None:
                continue
            free = tuple(a for a in (entry, ends[1]) if a is not None)
            if free == out:
                found.append(Value(ends[0], PRODUCT, 0, False, out))
    return min(found, key=lambda value: value.text.count(".T"), default=None)


def _followed(
    text: str, link: str, rest: list[Value], summed: set[str]
) -> tuple[str, str | None] | None:
    """The rest of a chain that goes on over an index: (its text, the index that is left at its end)."""
    last: str | None = link
    while rest:
        if last is None or last not in summed:
            return None
        touching = [v for v in rest if last in v.axes]
        if len(touching) != 1:
            return None
        step = touching[0]
        rest = [v for v in rest if v is not step]
        following = next((a for a in step.axes if a != last), None)
        text += f"@{_oriented(step, (last, following))}"
        last = following
    return None if last in summed else (text, last)


def _oriented(value: Value, axes: tuple[str | None, str | None]) -> str:
    present = tuple(a for a in axes if a is not None)
    return value.at(POWER) if present == value.axes else turned(value.at(ATOM))


def _einsum(group: list[Value], out: tuple[str, ...]) -> Value:
    letters = einsum_letters(union(group))
    parts = ",".join("".join(letters[a] for a in v.axes) for v in group)
    result = "".join(letters[a] for a in out)
    operands = ", ".join(v.text for v in group)
    return Value(f'einsum("{parts}->{result}", {operands})', ATOM, 0, False, out)


def einsum_letters(axes: Iterable[str]) -> dict[str, str]:
    """One letter for each index: itself, if it is one."""
    axes = list(axes)
    spare = iter([c for c in LETTERS if c not in axes])
    return {a: a if a in LETTERS and len(a) == 1 else next(spare) for a in axes}

"""How large the parameters of an equation may be, told by the equation and the columns of the data.

Summands are taken to be of one size, and so are both sides; what a function such as exp takes is of size 1.
In `y == A*exp(-(x - mu)**2/(2*s**2)) + B` mu lies where x does, s is as large as x - mu, A and B as y. Each
such statement is linear in the logarithms of the sizes, so that all together are a system of linear
equations, which is solved by least squares.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from gradcli.language import parse
from gradcli.language.equations import sides
from gradcli.operators.primitives import lapack

Array = Any
_KEPT = frozenset(("abs", "real", "imag", "relu"))  # what these give is as large as what they take
_ROOTS = {"sqrt": 0.5, "square": 2.0}
_WHOLE = frozenset(("tuple", "list", "block", "expression"))


class Prior(NamedTuple):
    """Where a parameter may be: evenly from low to high, or evenly in its logarithm, then of either sign."""

    low: float
    high: float
    logarithmic: bool

    def draw(self, random: Any) -> float:
        """A number of it."""
        if not self.logarithmic:
            return float(random.uniform(self.low, self.high))
        size = math.exp(random.uniform(math.log(self.low), math.log(self.high)))
        return float(size if random.uniform() < 0.8 else -size)


@dataclass
class _Size:
    """The logarithm of a size: a number, parameters by their powers, and the powers of columns in it.

    name: the column or parameter that it is. power: (the base, the exponent's text) of `K**n`.
    """

    number: float = 0.0
    parameters: dict[str, float] = field(default_factory=dict)
    columns: float = 0.0
    name: str = ""
    power: tuple[_Size, str] | None = None

    def times(self, factor: float) -> _Size:
        return _Size(
            factor * self.number,
            {n: factor * p for n, p in self.parameters.items()},
            factor * self.columns,
        )

    def plus(self, other: _Size, factor: float = 1.0) -> _Size:
        more = other.times(factor)
        names = dict.fromkeys([*self.parameters, *more.parameters])
        total = {n: self.parameters.get(n, 0.0) + more.parameters.get(n, 0.0) for n in names}
        return _Size(
            self.number + more.number,
            {n: p for n, p in total.items() if p},
            self.columns + more.columns,
        )


class _Reader:
    """The sizes in the tree of an equation's sides. laws: what is of size 1, each as a size."""

    def __init__(
        self, source: str, columns: Mapping[str, Array], parameters: Sequence[str]
    ) -> None:
        self.columns, self.parameters = columns, parameters
        self.laws: list[_Size] = []
        self.places: dict[str, tuple[float, float]] = {}  # parameters that lie where a column does
        self.exponents: set[str] = set()
        program = sides(parse(source))[0]
        assigned: dict[str, _Size | None] = {}
        stack: list[_Size | None] = []
        for kind, meaning, count, (start, end) in program.walk():
            items = stack[len(stack) - count :]
            del stack[len(stack) - count :]
            self.text = source[start:end]
            if kind == "target":
                stack.append(_Size(name=meaning))
            elif kind == "assign":
                *targets, value = items
                for target in targets:
                    if target is not None and target.name:
                        assigned[target.name] = value
                stack.append(value)
            elif kind == "name" and meaning in assigned:
                stack.append(assigned[meaning])
            else:
                stack.append(self._of(kind, meaning, items))

    def _of(self, kind: str, meaning: Any, items: list[_Size | None]) -> _Size | None:
        if kind == "name":
            return self._name(meaning)
        if kind == "constant":
            real = isinstance(meaning, int | float) and meaning
            return _Size(math.log(abs(meaning))) if real else None
        if kind in ("neg", "pos"):
            return items[0]
        if kind in ("mul", "div"):
            one, other = items
            if one is None or other is None:
                return None
            return one.plus(other, 1.0 if kind == "mul" else -1.0)
        if kind in ("add", "sub"):
            return self._sum(*items)
        if kind == "pow":
            return self._power(*items)
        if kind == "call" and len(items) == 2:
            return self._call(self.text.partition("(")[0].strip(), items[1])
        if kind in _WHOLE:
            if kind in ("tuple", "list") and len(items) == 2:
                self._equal(*items)
            return items[-1] if items else None
        return None

    def _name(self, name: str) -> _Size | None:
        if name in self.parameters:
            return _Size(0.0, {name: 1.0}, name=name)
        if name in self.columns:
            finite = np.abs(self.columns[name][np.isfinite(self.columns[name])])
            typical = float(np.median(finite[finite > 0])) if (finite > 0).any() else 1.0
            return _Size(math.log(typical), {}, 1.0, name=name)
        return _Size(math.log(math.pi)) if name == "pi" else None

    def _sum(self, one: _Size | None, other: _Size | None) -> _Size | None:
        for place, column in ((one, other), (other, one)):
            if place is None or column is None or place.name not in self.parameters:
                continue
            if column.name in self.columns:  # `x - mu`
                x = self.columns[column.name]
                low, high = float(np.nanmin(x)), float(np.nanmax(x))
                self.places[place.name] = (low, high)
                return _Size(math.log(high - low), {}, 1.0) if high > low else column
        self._equal(one, other)
        if one is None or other is None:
            return one or other
        return one if len(one.parameters) <= len(other.parameters) else other

    def _equal(self, one: _Size | None, other: _Size | None) -> None:
        if one is None or other is None:
            return
        if one.power and other.power and one.power[1] == other.power[1]:
            one, other = one.power[0], other.power[0]  # `K**n + S**n`
        elif one.power or other.power:
            return
        self.laws.append(one.plus(other, -1.0))

    def _power(self, base: _Size | None, exponent: _Size | None) -> _Size | None:
        text = self.text.rpartition("**")[2].strip().strip("()")
        try:
            return None if base is None else base.times(float(text))
        except ValueError:
            pass
        if exponent is not None:
            self.laws.append(exponent)
            self.exponents.update(exponent.parameters)
        return None if base is None else _Size(power=(base, text))

    def _call(self, function: str, argument: _Size | None) -> _Size | None:
        function = function.rpartition(".")[2]
        if argument is None or function in _KEPT:
            return argument
        if function in _ROOTS:
            return argument.times(_ROOTS[function])
        if not argument.power:
            self.laws.append(argument)
        return _Size()


def priors(
    source: str, columns: Mapping[str, Array], parameters: Sequence[str]
) -> dict[str, Prior]:
    """Where the parameters of an equation may be, by name; columns: the numbers of its columns."""
    read = _Reader(source, columns, parameters)
    laws = [law for law in read.laws if law.parameters]
    matrix = np.array([[law.parameters.get(n, 0.0) for n in parameters] for law in laws])
    right = np.array([[-law.number, -law.columns] for law in laws])
    sizes = np.zeros((len(parameters), 2))
    if laws:
        u, s, vt = lapack.svd(matrix, full_matrices=False)
        there = s > 1e-9 * s[0]
        sizes = vt[there].T @ ((u[:, there].T @ right) / s[there, None])
    rows = max(map(_rows_in_size, columns.values()), default=1.0)
    return {
        name: _prior(name, read, float(size), float(power), rows)
        for name, (size, power) in zip(parameters, sizes, strict=True)
    }


def _rows_in_size(column: Array) -> float:
    """How many rows of a column lie in a stretch as long as its numbers are large."""
    finite = np.abs(column[np.isfinite(column)])
    span = float(np.ptp(column[np.isfinite(column)])) if finite.size else 0.0
    return float(len(finite) * np.median(finite) / span) if span > 0 else 1.0


def _prior(name: str, read: _Reader, size: float, power: float, rows: float) -> Prior:
    """rows: how many there are in a stretch of x that is as long as x itself is large."""
    if name in read.places:
        return Prior(*read.places[name], False)
    if name in read.exponents:
        return Prior(-4.0, 4.0, False)
    size = min(max(size, -600.0), 600.0)
    if abs(power) < 1e-6 and abs(size) < 1e-6:  # a phase, or a number beside 1
        return Prior(-math.pi, math.pi, False)
    below, above = 30.0, 10.0
    if power < 0:  # a rate or frequency: a period is as long as the data, or as two rows
        below, above = 10.0, max(30.0, math.pi * rows)
    return Prior(math.exp(size) / below, math.exp(size) * above, True)


def draws(found: Sequence[Prior], random: Any) -> Iterator[Array]:
    """Points of these parameters, without end."""
    while True:
        yield np.array([prior.draw(random) for prior in found])


__all__ = ["Prior", "draws", "priors"]

"""Functions of numbers of which only the name is known: `f(g(x))*h(x)` is differentiated by the chain rule.

Such a function is a primitive whose VJP rules are its derivatives, `func.grad(f)` and so on, as a user who
has f would write them. Its kernel gives some smooth function's values, which the proof compares.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Any
from zlib import crc32

import numpy as np

from gradcli.engine.core.primitive import Primitive
from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.formulas.algebra.generic_points import sample

_GRAD = re.compile(r"func\.grad\((.*?)(?:, (\d+))?\)", re.S)


class Unknown:
    """An unknown function of this name, for programs to call."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *args: Any) -> Any:
        if any(np.ndim(v.array if isinstance(v, Tensor) else v) for v in args):
            raise TypeError(
                f"{self.name} is not defined, and an unknown function takes no arrays: "
                f"define it first, as in {self.name} = lambda x: 2*x; … (with --math {self.name}(x) = 2x; …)"
            )
        return self.declared(len(args))(*map(_number, args))

    def declared(self, count: int) -> Primitive:
        """The function of so many arguments, which expressions may call from now on by its name."""
        return _primitive(self.name, (), count)


def _number(value: Any) -> Any:
    return value if isinstance(value, Tensor) else wrap(np.asarray(float(value)))


def unknowns(names: Iterable[str]) -> dict[str, Unknown]:
    """The functions by name."""
    return {name: Unknown(name) for name in names}


@cache
def _primitive(name: str, by: tuple[int, ...], count: int) -> Primitive:
    """A function's derivative by its arguments of these numbers, in their order."""
    speeds = sample((3, count), crc32(name.encode()) % 1000)  # the function: a sum of exponentials

    def kernel(*args: Any) -> Any:
        return sum(np.prod(a[list(by)]) * np.exp(sum(k * x for k, x in zip(a, args, strict=True)))
                   for a in speeds)  # fmt: skip

    def slope(i: int) -> Any:
        return lambda *args: _primitive(name, tuple(sorted((*by, i))), count)(*args)

    params = [f"x{i}" for i in range(count)]
    rules = {
        p: eval(
            f"lambda g, {', '.join(params)}: g * slope({', '.join(params)})", {"slope": slope(i)}
        )
        for i, p in enumerate(params)
    }
    word = name
    for i in by:
        word = f"func.grad({word})" if count == 1 else f"func.grad({word}, {i})"
    shown = " ".join(params)
    made = Primitive(
        word,
        kernel,
        "UnknownBackward0",
        rules,
        linearity="elementwise",
        params=shown,
        symbolic=f"{word}:",
    )
    _KNOWN[word, count] = made
    return made


_KNOWN: dict[tuple[str, int], Primitive] = {}


def meaning_of(word: str, count: int) -> Primitive | None:
    """The derivative that has been called by this text, with so many arguments."""
    return _KNOWN.get((word, count))


def is_unknown(word: str) -> bool:
    """Whether a call of this text is one of an unknown function."""
    return any(word == known for known, _ in _KNOWN)


def in_latex(word: str, symbol: Any) -> str:
    r"""`f''`, `f^{(4)}`, `\partial_{1}\partial_{2} f`."""
    by: list[str | None] = []
    while found := _GRAD.fullmatch(word):
        word, index = found[1], found[2]
        by.insert(0, index)
    if by and by[0] is not None:
        return "".join(rf"\partial_{{{int(i or 0) + 1}}}" for i in by) + f" {symbol(word)}"
    return str(symbol(word)) + ("'" * len(by) if len(by) < 4 else f"^{{({len(by)})}}")


__all__ = ["Unknown", "in_latex", "is_unknown", "meaning_of", "unknowns"]

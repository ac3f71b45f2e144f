"""Expressions of vectors and matrices at random: what `diff` prints of them is what the tape gives."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import numpy as np

from gradcli import language
from gradcli.engine.system import dtypes
from gradcli.formulas.algebra.generic_points import sample
from gradcli.formulas.ask.proof import Unproved, proved
from gradcli.language.scope_checks import free_names
from tests import fuzz

VECTORS = ("x", "y", "w")
MATRICES = ("A", "B", "X")
OF_VECTORS = (
    *("({v} + {v})", "({v} - {v})", "({m}@{v})", "({v}@{m})", "({v}*{v})", "exp({v})", "sin({v})"),
    *("relu({v})", "tanh({v})", "sigmoid({v})", "abs({v})", "softmax({v}, 0)", "({s}*{v})"),
    *("sum({m}, 0)", "sum({m}, 1)", "mean({m}, 0)", "linalg.solve({m} + 9*eye(3), {v})"),
)
OF_MATRICES = (
    *("({m} + {m})", "({m} - {m})", "({m}@{m})", "({m}*{m})", "({m}*{v})", "({m}).T"),
    *("linalg.inv({m} + 9*eye(3))", "outer({v}, {v})", "softmax({m}, 1)", "layer_norm({m}, [3])"),
)
NUMBERS = (
    *("sum({v})", "({v}@{v})", "trace({m})", "sum({m})", "norm({v})", "mean({v})", "norm({m})"),
    *("log(abs(det({m} + 9*eye(3))))", "log(sum(exp({v})))", "({s}*{s})"),
)
SHALLOW = {"v": VECTORS, "m": MATRICES, "s": ("sum(x)", "x@y", "norm(w)", "trace(A)", "mean(y)")}
DEEP = {"v": OF_VECTORS, "m": OF_MATRICES, "s": NUMBERS}


def expression(random: Random, kind: str = "s", depth: int = 4) -> str:
    """A number ("s"), a vector or a matrix."""
    text = random.choice(DEEP[kind] if depth else SHALLOW[kind])
    while "{" in text:
        start = text.index("{")
        inner = expression(random, text[start + 1], depth - 1)
        text = text[:start] + inner + text[start + 3 :]
    return text


def failure(text: str) -> str | None:
    """What is wrong with the derivative of an expression, if anything is."""
    program = language.parse(text)
    shapes = {**dict.fromkeys(VECTORS, (3,)), **dict.fromkeys(MATRICES, (3, 3))}
    known = free_names(program)
    arrays = {n: sample(s, k) for k, (n, s) in enumerate(shapes.items()) if n in known}
    for name in MATRICES:  # of no symmetry
        if name in arrays:
            arrays[name] = np.random.default_rng(ord(name)).uniform(0.5, 1.5, (3, 3))
    before = dtypes.get_default_dtype()
    dtypes.set_default_dtype(dtypes.of(np.dtype(np.float64)))  # as on the command line
    try:
        with fuzz.limited():
            proved(program, arrays, list(arrays), given=False)
    except (Unproved, MemoryError, fuzz.TooLong) as error:
        return f"diff {text!r}: {error}"
    finally:
        dtypes.set_default_dtype(before)
    return None


def run(seed: int, seconds: float) -> Iterator[str]:
    """The expressions whose printed derivative is not their gradient."""
    yield from filter(None, (failure(expression(r)) for r in fuzz.cases(seed, seconds)))

"""LaTeX of derivatives read back: every index is there, and what is read has the derivative's value."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from gradcli import language
from gradcli.engine.core.tensor import wrap
from gradcli.formulas.algebra.expression_text import to_text
from gradcli.formulas.derive.differentiate import differentiate
from gradcli.formulas.print.latex_elements import to_latex
from tests.formulas.latex_reader import Unread, column, evaluated

SHAPES = {"A": (1, 3), "B": (2, 1), "X": (2, 3), "T": (2, 3, 4), "x": (3,), "c": (2,), "s": ()}
LEAVES = {
    (2, 3): ["X", "x*X", "c[:, None]*X", "A*X", "B*X", "A + B", "X - x", "outer(c, x)"],
    (1, 3): ["A", "(A@x).reshape(1, 1)*x[None]", "A*x", "sum(X, 0, keepdim=True)"],
    (2, 1): ["B", "c[:, None]", "X@A.T", "sum(X, 1, keepdim=True)"],
    (3,): ["x", "X.T@c", "(A@X.T@X)[0]", "sum(X*x, 0)", "A[0]"],
    (2, 3, 4): ["T", "T*x[:, None]", "c[:, None, None]*T", "T*X[:, :, None]", "T - sum(T, 1, keepdim=True)"],
    (2, 3, 3): ["X[:, :, None]*X[:, None, :]", "T@T.mT", "X[:, None, :]*x[:, None]"],
}  # fmt: skip
WRAPS = (
    *("tanh({})", "exp({})", "sin({})", "({})**2", "({})**3", "sigmoid({})", "1/(1 + ({})**2)"),
    *("log(2 + sin({}))", "sqrt(1 + ({})**2)", "({0})*tanh({0})", "s*({})", "({}) + s"),
    *("where(({0}) > s, ({0}), ({0})**2)", "abs({})", "relu(({}) - 0.8)", "maximum({}, s)"),
)


def drawn(rng: random.Random) -> str:
    """A number: the sum of functions and products of arrays of one shape, and of others beside it."""
    shape = rng.choice(list(LEAVES))

    def part() -> str:
        text = rng.choice(LEAVES[shape])
        for _ in range(rng.randint(0, 2)):
            text = rng.choice(WRAPS).format(text)
        return text

    whole = part()
    for _ in range(rng.randint(0, 2)):
        whole = f"({whole}){rng.choice('*+-')}({part()})"
    return rng.choice(["sum({})", "sum({})*s", "sum(tanh({}))", "tanh(sum({}))*s"]).format(whole)


def failures(source: str) -> list[str]:
    """What is wrong with the LaTeX of the gradients of a program."""
    numbers = np.random.default_rng(len(source))
    arrays = {n: numbers.uniform(0.3, 1.4, size) for n, size in SHAPES.items() if n in source}
    program = language.parse(source)
    arrays = {n: arrays[n] for n in program.free_variables() if n in arrays}
    found, said = differentiate(program, arrays, list(arrays)), []
    for name, expression in found.by.items():
        tensors = {n: wrap(a) for n, a in arrays.items()}
        value = language.run(language.parse(to_text(expression)), tensors).value
        expected = np.asarray(getattr(value, "array", value))
        latex = to_latex(expression)
        try:
            read = evaluated(latex, arrays)
        except Unread as error:
            said.append(f"{source} by {name}: {latex}: {error}")
            continue
        if not alike(read, expected):
            said.append(f"{source} by {name}: {latex} is {read}, not {expected}")
    return said


def alike(read: Any, expected: Any) -> bool:
    """Whether values agree; dimensions of one element are no difference, and a number may stand for all."""
    wanted = np.squeeze(expected if expected.ndim != 1 else column(expected))
    got = np.squeeze(read)
    if np.shape(got) != np.shape(wanted):
        try:
            got = np.broadcast_to(read, column(expected).shape).squeeze()
        except ValueError:
            return False
    return np.allclose(got, wanted, rtol=1e-8)


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(k, marks=pytest.mark.long) for k in range(3, 100))]
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_what_is_read_back_is_the_derivative(seed: int) -> None:
    rng = random.Random(seed)
    assert [said for _ in range(5) for said in failures(drawn(rng))] == []


@pytest.mark.parametrize(
    "latex",
    [
        r"\left[\tanh^{2}\left(x\right)\right]_{i}",  # an index is missing
        r"\sum_{i} {x}_{i} {X}_{ji}",  # one is left
        r"X x^{\top}",  # a row where a column belongs
        r"\left[{X}_{i}\right]_{i}",  # one index of a matrix
        r"\frac{X}{X X}",  # a product of matrices that do not fit
    ],
)
def test_what_lacks_an_index_is_not_read(latex: str) -> None:
    values = {"x": np.ones(3), "X": np.ones((2, 3))}
    with pytest.raises(Unread):
        evaluated(latex, values)

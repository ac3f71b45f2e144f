"""Derivatives of matrix expressions against the textbook's: the numbers agree, and most are as short.

And those of layers of neural networks: formulas, and the right ones.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import language
from gradcli.formulas.algebra.expression_text import to_text
from gradcli.formulas.algebra.generic_points import sample
from gradcli.formulas.algebra.spelling import NoExpression
from gradcli.formulas.ask.matrix_derivatives import way
from gradcli.formulas.ask.proof import proved
from gradcli.formulas.derive.differentiate import differentiate
from gradcli.formulas.print.latex_elements import to_latex
from gradcli.formulas.print.printed_programs import run as run_program
from gradcli.formulas.print.python_code import to_code
from tests.formulas.measure import letters, operations
from tests.sweep import sweep

MATRICES = Path(__file__).parent / "matrix_derivatives.tsv"
LAYERS = Path(__file__).parent / "layer_derivatives.tsv"
AS_SHORT = 162  # of 169 have no more operations and no more letters than the textbook's


def rows(file: Path) -> list[list[str]]:
    """The rows of a table; the last column is what gradcli prints."""
    lines = [line.split("\t") for line in file.read_text().splitlines()]
    size = 6 if file == MATRICES else 5
    return [[*line, ""][:size] for line in lines if not line[0].startswith("#")]


@cache
def values(shapes: str) -> dict[str, Any]:
    """The variables of a row: `x=3 A=3,3 s= k=[0,1]` are a vector, a matrix, a number, classes."""
    found = {}
    for k, pair in enumerate(shapes.split()):
        name, shape = pair.split("=")
        sizes = tuple(int(n) for n in shape.split(",") if n) if "[" not in shape else ()
        found[name] = np.array(ast.literal_eval(shape)) if "[" in shape else sample(sizes, k)
    return found


@cache
def printed(formula: str, by: str, shapes: str) -> str:
    """The derivative as gradcli prints it."""
    return to_text(differentiate(language.parse(formula), values(shapes), [by]).by[by])


BOTH = [(r[0], *r[1:4], r[-1]) for r in (*rows(MATRICES), *rows(LAYERS))]


@sweep(("name", "formula", "by", "shapes", "expected"), BOTH, often=2)
def test_prints(name: str, formula: str, by: str, shapes: str, expected: str) -> None:
    assert printed(formula, by, shapes) == expected


@sweep(
    ("name", "formula", "by", "shapes", "text"),
    [*BOTH, *((f"{r[0]}, the textbook's", *r[1:5]) for r in rows(MATRICES))],
)
def test_is_the_gradient(name: str, formula: str, by: str, shapes: str, text: str) -> None:
    gradcli.set_default_dtype(gradcli.float64)  # as on the command line; a sweep puts it back
    arrays = values(shapes)
    leaf = gradcli.tensor(arrays[by], requires_grad=True)
    plain = {n: gradcli.tensor(a) for n, a in arrays.items()}
    language.run(language.parse(formula), {**plain, by: leaf}).value.backward()
    found = language.run(language.parse(text), plain).value
    found = np.asarray(found.array if hasattr(found, "array") else found)
    assert found.shape == tuple(leaf.shape)
    np.testing.assert_allclose(found, leaf.grad.numpy(), rtol=1e-9, atol=1e-12)


def test_as_short_as_the_textbook() -> None:
    longer = []
    for name, formula, by, shapes, textbook, _ in rows(MATRICES):
        own = printed(formula, by, shapes)
        if operations(own) > operations(textbook) or letters(own) > letters(textbook):
            longer.append(f"{name}: {own} for {textbook}")
    assert len(rows(MATRICES)) == 169
    assert 169 - len(longer) >= AS_SHORT, "\n".join(longer)


@sweep(("name", "formula", "by", "shapes"), [r[:4] for r in rows(MATRICES)], parts=32, often=1)
def test_the_hessian_is_proved(name: str, formula: str, by: str, shapes: str) -> None:
    """By matrices too, as einsum: what is printed is what `gradcli hessian` computes, or it raises."""
    gradcli.set_default_dtype(gradcli.float64)
    ways = way(values(shapes), [by], 2, False) or {"order": 2}
    _, made, _ = proved(language.parse(formula), values(shapes), [by], given=False, **ways)
    assert made.by[by]


# What is Python alone: an array in another shape is LaTeX's `\operatorname{reshape}_{6 \times 2}`.
PYTHON = re.compile(
    r"True|False|None|keepdim|einsum|(?<!\\operatorname\{)reshape|\(\d+,\)|dim=|\]\[|\w\.\w+\("
)
ENVIRONMENT = r"\begin{"  # which mathtext has not


@pytest.mark.long
@pytest.mark.needs("matplotlib")
@sweep(("name", "formula", "by", "shapes"), [r[:4] for r in (*rows(MATRICES), *rows(LAYERS))])
def test_latex_is_typeset(name: str, formula: str, by: str, shapes: str) -> None:
    """The LaTeX of the gradient and of the Hessian has no Python in it, and matplotlib typesets it."""
    from matplotlib.mathtext import MathTextParser

    gradcli.set_default_dtype(gradcli.float64)
    program, arrays = language.parse(formula), values(shapes)
    found = [differentiate(program, arrays, [by])]
    if ways := way(arrays, [by], 2, False):
        found.append(ways["find"](program, arrays, [by]))
    for text in (to_latex(one.by[by]) for one in found):
        assert not PYTHON.search(text), text
        if ENVIRONMENT not in text:
            MathTextParser("path").parse(f"${text}$")


@sweep(("name", "formula", "by", "shapes", "expected"), BOTH, often=2)
def test_numpy_code_keeps_float32(
    name: str, formula: str, by: str, shapes: str, expected: str
) -> None:
    """NumPy makes new arrays, and roots of numbers, in float64, which would carry all else along."""
    arrays = values(shapes)
    try:
        code = to_code(differentiate(language.parse(formula), arrays, [by]), "numpy")
    except NoExpression:
        return
    single = [a.astype(np.float32) if a.dtype.kind == "f" else a for a in arrays.values()]
    if not any(np.ndim(a) and a.dtype == np.float32 for a in single):
        return
    value, slope = run_program(code, "numpy", single)
    double, exact = run_program(code, "numpy", list(arrays.values()))
    for found, other in ((value, double), (slope, exact)):
        assert np.asarray(found).dtype == np.float32 or not np.ndim(found), code
        assert np.asarray(other).dtype == np.float64, code
    np.testing.assert_allclose(slope, exact, rtol=1e-2, atol=1e-3)

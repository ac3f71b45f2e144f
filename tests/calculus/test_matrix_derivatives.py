"""Derivatives of matrix expressions against the textbook's: the numbers agree, and most are as short."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import gradcli
from gradcli import language
from gradcli.calculus.derivative import differentiate
from gradcli.calculus.shapes import sample
from gradcli.calculus.text import to_text
from tests.calculus.measure import letters, operations
from tests.sweep import sweep

FILE = Path(__file__).parent / "matrix_derivatives.tsv"
ROWS = [
    [*line.split("\t"), ""][:6]
    for line in FILE.read_text().splitlines()
    if line and not line.startswith("#")
]
AS_SHORT = 143  # of them have no more operations and no more letters than the textbook's


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


@sweep(("name", "formula", "by", "shapes", "textbook", "expected"), ROWS)
def test_prints(
    name: str, formula: str, by: str, shapes: str, textbook: str, expected: str
) -> None:
    assert printed(formula, by, shapes) == expected


@sweep(("name", "formula", "by", "shapes", "textbook", "expected"), ROWS)
def test_both_are_the_gradient(
    name: str, formula: str, by: str, shapes: str, textbook: str, expected: str
) -> None:
    before = gradcli.get_default_dtype()
    gradcli.set_default_dtype(gradcli.float64)  # as on the command line
    try:
        arrays = values(shapes)
        leaf = gradcli.tensor(arrays[by], requires_grad=True)
        plain = {n: gradcli.tensor(a) for n, a in arrays.items()}
        language.run(language.parse(formula), {**plain, by: leaf}).value.backward()
        for text in (textbook, printed(formula, by, shapes)):
            found = language.run(language.parse(text), plain).value
            found = np.asarray(found.array if hasattr(found, "array") else found)
            assert found.shape == tuple(leaf.shape), text
            np.testing.assert_allclose(found, leaf.grad.numpy(), rtol=1e-9, atol=1e-12)
    finally:
        gradcli.set_default_dtype(before)


def test_as_short_as_the_textbook() -> None:
    longer = []
    for name, formula, by, shapes, textbook, _ in ROWS:
        own = printed(formula, by, shapes)
        if operations(own) > operations(textbook) or letters(own) > letters(textbook):
            longer.append(f"{name}: {own} for {textbook}")
    assert len(ROWS) == 150
    assert len(ROWS) - len(longer) >= AS_SHORT, "\n".join(longer)

"""Derivatives of long formulas: factors that terms share leave them; no longer than SymEngine's."""

from __future__ import annotations

import statistics

import numpy as np
import pytest

import gradcli
from gradcli.formulas.algebra.expression_text import to_text
from gradcli.formulas.algebra.expressions import Expression
from gradcli.formulas.derive.differentiate import composed
from gradcli.formulas.simplify.shared_factors import outside
from gradcli.language import parse
from tests.benchmarks.symbolic import formula

# Characters of SymEngine 0.15's derivatives by x of `formula(operations, seed)`, as
# `python -m tests.benchmarks symbolic` measures them: operations, characters for each seed.
SYMENGINE = {
    50: (1177, 933, 1059, 930, 1462, 663, 1070, 1066),
    100: (1860, 1984, 2220, 2404, 1539, 2110, 1860, 914),
    200: (5198, 6906, 4585, 5931, 6189, 5940, 6522, 8846),
}


def expression(text: str) -> Expression:
    """A text of scalars as an expression."""
    values = {n: np.float64(0.5) for n in "xyz"}
    return composed(parse(text), {}, values, {n: k for k, n in enumerate(values)}, {})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sin(x)*cos(y)*x + sin(x)*cos(y)*y", "sin(x)*(x + y)*cos(y)"),
        ("sin(x)*cos(y)*x + sin(x)*cos(y)*y + sin(x)*z", "sin(x)*((x + y)*cos(y) + z)"),
        ("x/sin(z) + y/sin(z)**2", "(x + y/sin(z))/sin(z)"),
        (
            "exp(x**2*sin(y) + x)*z + exp(x**2*sin(y) + x)*sin(z)",
            "exp(x**2*sin(y) + x)*(z + sin(z))",
        ),
        # what reads better as it is, or shares nothing
        ("3*x**3 + 2*x**2 + x + y", "3*x**3 + 2*x**2 + x + y"),
        ("sin(x) + 1/sin(x)", "sin(x) + 1/sin(x)"),
        ("sin(x)*y", "sin(x)*y"),
    ],
)
def test_shared_factors_leave_their_terms(text: str, expected: str) -> None:
    assert to_text(outside(expression(text))) == expected


@pytest.mark.long
@pytest.mark.parametrize("operations", SYMENGINE)
def test_no_longer_than_symengines(operations: int) -> None:
    found = [
        len(str(gradcli.diff(formula(operations, seed), wrt="x"))) / theirs
        for seed, theirs in enumerate(SYMENGINE[operations])
    ]
    assert statistics.median(found) <= 1

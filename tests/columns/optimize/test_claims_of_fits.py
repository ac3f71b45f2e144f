"""What a fit claims: its ± are those of lmfit, and there are none where it found no minimum."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradcli.columns.optimize.equation_rows import EquationRows
from gradcli.columns.optimize.fits import fit_rows
from gradcli.engine.system import dtypes

PROBLEMS = json.loads((Path(__file__).parents[2] / "golden" / "lmfit.json").read_text())["problems"]


def fitted(equation: str, start: dict[str, float], columns: dict[str, Any], **given: Any) -> Any:
    rows = EquationRows(equation, {}, {n: np.array(v) for n, v in start.items()}, {})
    batch = {n: np.asarray(a, np.float64) for n, a in columns.items()}
    with dtypes.as_default(dtypes.float64):
        return fit_rows(rows, batch, given.pop("sigma", {}), **given)[0]


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p["name"])
def test_uncertainties_are_those_of_lmfit(problem: dict[str, Any]) -> None:
    sigma = {} if problem["sigma"] is None else {"": np.array(problem["sigma"])}
    bounds = {
        n: (-np.inf if low is None else low, np.inf if high is None else high)
        for n, (low, high) in problem["bounds"].items()
    }
    found = fitted(
        problem["equation"],
        problem["start"],
        {n: problem[n] for n in "xy"},
        sigma=sigma,
        bounds=bounds,
    )
    assert found.converged and not found.undetermined
    names = list(problem["start"])
    held = [k for k, n in enumerate(names) if problem["errors"][n] is None]
    assert found.bounded == held
    assert found.values == pytest.approx([problem["values"][n] for n in names], rel=1e-5)
    errors = [problem["errors"][n] or 0.0 for n in names]
    # lmfit's derivatives are differences, which have half of the digits.
    assert found.errors == pytest.approx(errors, rel=2e-4)
    assert found.chi2 == pytest.approx(problem["chi2"], rel=1e-8)


def logistic(a: float, b: float, c: float, high: float) -> dict[str, Any]:
    x = np.linspace(0, high, 40)
    noise = np.modf(np.sin(12.9898 * np.arange(1, 41)) * 43758.5453)[0]
    return {"x": x, "y": a / (1 + np.exp(-b * (x - c))) + 0.01 * a * noise}


@pytest.mark.parametrize(
    "made", [(3, 2, 1, 5), (300, 0.02, 400, 1000), (2e4, 0.3, 50, 100), (1, 8, 0.5, 1)]
)
def test_logistic_data_from_a_start_at_1(made: tuple[float, float, float, float]) -> None:
    """Where exp is infinite the derivative is ∞/∞, and the function flat."""
    found = fitted("y == a/(1 + exp(-b*(x - c)))", {"a": 1, "b": 1, "c": 1}, logistic(*made))
    assert found.converged and not found.undetermined
    assert found.values == pytest.approx(made[:3], rel=0.05)
    assert np.abs(found.values - made[:3]) == pytest.approx(np.zeros(3), abs=5 * found.errors.max())


def test_a_fit_starts_where_only_the_derivative_overflows() -> None:
    """exp(5000) is infinite: its quotient is 0, and the derivative by b is ∞/∞."""
    columns = {"x": [0.1, 0.2, 0.4, 0.8, 1.0], "y": [1.0, 2, 3, 5, 6]}
    far = fitted("y == a/(1 + exp(-b*x))", {"a": 1, "b": -5000}, columns)
    near = fitted("y == a/(1 + exp(-b*x))", {"a": 1, "b": 1}, columns)
    assert far.values == pytest.approx(near.values, rel=1e-5)


@pytest.mark.parametrize(
    ("equation", "start", "given"),
    [
        ("y == a*b*x", {"a": 1, "b": 1}, {}),
        ("y == a*exp(-b*x**2) + 0*c", {"a": 1, "b": 1, "c": 1}, {}),
        ("y == a/(1 + exp(-b*(x - c)))", {"a": 1, "b": 1, "c": 1}, {"limit": 2}),
        ("y == relu(a)*x", {"a": -1}, {"limit": 1}),
    ],
)
def test_what_found_no_minimum_has_no_errors(equation: str, start: Any, given: Any) -> None:
    found = fitted(equation, start, logistic(300, 0.02, 400, 1000), **given)
    assert found.undetermined or not found.converged
    loose = found.undetermined if found.converged and not found.still else range(len(start))
    assert np.isnan(found.errors[list(loose)]).all()

"""Fits against what NIST certifies, and what others published of the same data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradcli.columns.optimize import equation_rows, fits
from gradcli.columns.optimize.equation_rows import EquationRows
from gradcli.columns.optimize.fits import fit_rows
from gradcli.language.located_errors import LanguageError

NIST = json.loads((Path(__file__).parents[2] / "golden" / "nist.json").read_text(encoding="utf-8"))
HARD = {("Lanczos1", 0), ("Lanczos1", 1)}  # their residuals are rounding in double precision
QUICK = {"Misra1a", "DanWood", "Gauss3", "Hahn1", "Nelson", "Thurber"}


def fit(equation: str, start: dict[str, float], columns: dict[str, Any], **given: Any) -> Any:
    data = {name: np.asarray(column, float) for name, column in columns.items()}
    rows = EquationRows(equation, {}, {n: np.asarray(v) for n, v in start.items()}, {})
    return fit_rows(rows, data, **{"sigma": {}, **given})[0]


def in_order(name: str, values: Any) -> Any:
    """The places of the certified parameters: which is which of three like terms is chance."""
    if not name.startswith("Lanczos"):  # b1*exp(-b2*x) + b3*exp(-b4*x) + b5*exp(-b6*x)
        return np.arange(len(values))
    rates = np.argsort(values[1::2])
    return np.stack([2 * rates, 2 * rates + 1], 1).ravel()


def digits(found: Any, certified: dict[str, float]) -> float:
    """How many digits of the worst are right."""
    error = np.max(np.abs(found / np.array([*certified.values()]) - 1))
    return float(-np.log10(max(error, 1e-16)))


@pytest.mark.parametrize(
    ("name", "start"),
    [
        pytest.param(n, k, marks=[] if n in QUICK else [pytest.mark.long], id=f"{n}-{k + 1}")
        for n in NIST
        for k in (0, 1)
        if (n, k) not in HARD
    ],
)
def test_what_nist_certifies(name: str, start: int) -> None:
    """52 of 54: six digits of every parameter, four of every standard deviation."""
    row = NIST[name]
    found = fit(row["equation"], row["starts"][start], row["columns"])
    assert found.converged and not found.undetermined
    order = in_order(name, found.values)
    assert digits(found.values[order], row["parameters"]) >= 6
    assert digits(found.errors[order], row["errors"]) >= 4
    assert found.chi2 == pytest.approx(row["chi2"], rel=1e-6)
    assert found.dof == len(row["columns"]["y"]) - len(row["parameters"])


# Pearson's data with York's weights; York, Evensen, Martinez and Delgado, Am. J. Phys. 72 (2004), 367.
PEARSON = {
    "x": [0.0, 0.9, 1.8, 2.6, 3.3, 4.4, 5.2, 6.1, 6.5, 7.4],
    "y": [5.9, 5.4, 4.4, 4.6, 3.5, 3.7, 2.8, 2.8, 2.4, 1.5],
}
WEIGHTS = {
    "x": [1000, 1000, 500, 800, 200, 80, 60, 20, 1.8, 1],
    "y": [1, 1.8, 4, 8, 20, 20, 70, 70, 100, 500],
}


@pytest.mark.parametrize("turned", [False, True])
def test_uncertainties_of_both_axes(turned: bool) -> None:
    spreads = {n: np.array(w, float) ** -0.5 for n, w in WEIGHTS.items()}
    equation = "a + b*x == y" if turned else "y == a + b*x"
    found = fit(equation, {"a": 5.0, "b": -0.5}, PEARSON, sigma=spreads)
    assert found.values == pytest.approx([5.47991022, -0.480533407], rel=1e-7)
    assert found.errors == pytest.approx([0.29497, 0.057985], rel=2e-2)
    assert found.chi2 == pytest.approx(11.8663532, rel=1e-7)


def test_a_weight_of_the_response_is_that_of_its_side() -> None:
    """`log(y)` has the uncertainty of y divided by y."""
    columns = {"x": [0.0, 1, 2, 3], "y": [8.0, 4.2, 1.9, 1.1]}
    dy = np.array([0.3, 0.2, 0.1, 0.1])
    one = fit("log(y) == a - k*x", {"a": 1, "k": 1}, columns, sigma={"y": dy})
    other = fit("log(y) == a - k*x", {"a": 1, "k": 1}, columns, sigma={"": dy / columns["y"]})
    assert one.values == pytest.approx(other.values, rel=1e-12)
    a = np.stack([np.ones(4), -np.arange(4.0)], 1) / (dy / columns["y"])[:, None]
    assert one.covariance == pytest.approx(np.linalg.inv(a.T @ a), rel=1e-10)  # nothing is scaled


@pytest.mark.parametrize("loss", ["soft_l1", "huber", "arctan"])
def test_an_outlier_is_heeded_less(loss: str) -> None:
    x = np.arange(30.0)
    y = 2 + 3 * x + 0.1 * np.cos(17 * x)
    y[7] += 100
    found = fit("y == a + b*x", {"a": 0, "b": 1}, {"x": x, "y": y}, loss=loss)
    assert found.converged
    assert found.values == pytest.approx([2, 3], abs=0.2)
    assert (found.errors < 0.2).all()
    assert abs(fit("y == a + b*x", {"a": 0, "b": 1}, {"x": x, "y": y}).values[0] - 2) > 3


LINE = {"x": [0.0, 1, 2, 3], "y": [1.0, 3, 5, 7]}
REFUSED: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("y == a*b*x", {"a": 1, "b": 1}, {"bounds": {"a": (2, 3)}}, "a starts at 1.0, outside"),
    ("y == a*x", {"a": 1}, {"bounds": {"a": (3, 2)}}, "3 is not below 2"),
    ("y == a*log(x)", {"a": 1}, {}, "at the start the residual of row 1 is inf"),
    ("y == x", {"a": 1}, {}, "the equation depends on no parameter"),
    ("y == a*x; y == b", {"a": 1, "b": 1}, {}, "fit takes one equation"),
    ("y + a*x", {"a": 1}, {}, "this is not an equation"),
    ("y == a*stack([x, x])", {"a": 1}, {}, "one side of the equation of a row has shape (), the other (2,)"),
    ("y == a + b*x + c*x**2 + d*x**3 + k*x**4", dict.fromkeys("abcdk", 1), {}, "4 rows cannot determine 5"),
    ("y == a*x", {"a": 1}, {"sigma": {"x": np.ones(4)}}, "but the response has none"),
    ("y == a*x", {"a": 1}, {"sigma": {"": np.array([1.0, 0, 1, 1])}}, "uncertainty of the response is 0"),
    ("y == a*sqrt(x*(-1+0j))", {"a": 1}, {}, "the other a complex number"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("equation", "start", "given", "words"), REFUSED, ids=lambda v: str(v)[:30]
)
def test_what_cannot_be_fitted_says_why(equation: str, start: Any, given: Any, words: str) -> None:
    with pytest.raises(LanguageError) as error:
        fit(equation, start, LINE, **given)
    assert words in str(error.value)


@np.errstate(all="ignore")
def test_a_valley_without_end_is_given_up() -> None:
    """The least of a*exp(b*x) through numbers of alternating signs is at b = ∞: 5,000 steps are not there."""
    from gradcli.columns.optimize.least_squares import fit

    x = np.arange(9.0)
    y = 10 * x * (-1) ** x

    def at(p: Any) -> tuple[Any, Any]:
        e = np.exp(p[1] * x)
        return 10 * p[0] * e - y, 10 * np.stack([e, p[0] * x * e], 1)

    edges = np.full(2, np.inf)
    found = fit(at, np.array([1.0, 0.1]), 9, lower=-edges, upper=edges)
    assert found.receding and not found.converged and found.evaluations < 3000
    y = (-1) ** x  # whose best b is -∞: from b = -40 on nothing depends on it
    found = fit(at, np.array([1.0, 1.0]), 9, lower=-edges, upper=edges)
    assert list(found.still) == found.undetermined == [1]


def test_what_the_data_do_not_determine_is_named() -> None:
    found = fit("y == c + a*b*x", {"a": 1, "b": 1, "c": 0}, LINE)
    assert found.undetermined == [0, 1]  # a and b, and not c
    assert np.isnan(found.errors[:2]).all() and np.isfinite(found.errors[2])
    assert fit("y == a + 0*b*x", {"a": 1, "b": 1}, LINE).undetermined == [1]


def test_a_parameter_at_its_bound_is_held_there() -> None:
    found = fit("y == a + b*x", {"a": 1, "b": 1}, LINE, bounds={"b": (0, 1.5)})
    assert found.bounded == [1] and found.values[1] == 1.5 and found.errors[1] == 0
    assert found.values[0] == pytest.approx(4 - 1.5 * 1.5) and found.converged


def test_vectors_are_parameters() -> None:
    row = NIST["Misra1a"]
    columns = {n: np.asarray(c) for n, c in row["columns"].items()}
    rows = EquationRows("y == w[0]*(1 - exp(-w[1]*x))", {}, {"w": np.array([250, 5e-4])}, {})
    found, _ = fit_rows(rows, columns, {})
    assert rows.labels == ["w[0]", "w[1]"]
    assert digits(found.values, row["parameters"]) >= 6


def test_shares_of_the_variance_sum_to_one() -> None:
    spreads = {n: np.array(w, float) ** -0.5 for n, w in WEIGHTS.items()}
    rows = EquationRows("y == a + b*x", {}, {"a": np.array(5.0), "b": np.array(-0.5)}, {})
    _, shares = fit_rows(rows, {n: np.array(c) for n, c in PEARSON.items()}, spreads)
    assert set(shares) == {"x", "y"}
    assert sum(shares.values()) == pytest.approx([1, 1])


@pytest.mark.parametrize(
    ("equation", "start", "response"),
    [
        ("y == a*exp(-b*x) + c", {"a": 1.0, "b": 1.0, "c": 0.0}, 1),
        pytest.param(
            "y == [a*x, b*x**2 + c]", {"a": 1.0, "b": 1.0, "c": 0.0}, 2, marks=pytest.mark.long
        ),
        ("y == a + 0*x", {"a": 1.0}, 1),
    ],
)
@pytest.mark.parametrize("stated", [False, True])
def test_many_rows_are_fitted_in_blocks(equation, start, response, stated, monkeypatch):
    """The same parameters, errors and explained share as of all rows at once."""
    random = np.random.default_rng(0)
    x = np.linspace(0, 3, 211)
    y = 2 * np.exp(-1.3 * x)[:, None] + 0.01 * random.normal(size=(211, response))
    data = {"x": x, "y": y[:, 0] if response == 1 else y}
    sigma = {"": random.uniform(0.01, 0.02, 211)} if stated else {}
    found = []
    for many in (10**9, 10):
        monkeypatch.setattr(fits, "MANY", many)
        monkeypatch.setattr(equation_rows, "_BLOCK", 16)
        asked = []
        rows = EquationRows(equation, {}, {n: np.array(v) for n, v in start.items()}, {})
        fit, shares = fit_rows(rows, data, sigma, told=asked.append)
        found.append((fit, shares))
    (whole, shares), (blocks, same) = found
    assert blocks.converged and 0 < sum(asked) <= whole.evaluations + 2
    np.testing.assert_allclose(blocks.values, whole.values, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(blocks.covariance, whole.covariance, rtol=1e-7, atol=1e-15)
    assert blocks.chi2 == pytest.approx(whole.chi2, rel=1e-9) and blocks.dof == whole.dof
    assert blocks.explained == (whole.explained and pytest.approx(whole.explained, rel=1e-9))
    assert {n: s.tolist() for n, s in same.items()} == {n: s.tolist() for n, s in shares.items()}


@pytest.mark.parametrize(
    ("equation", "loose", "known"),
    [
        ("y == a*exp(-b*x) + c + d", ["c", "d"], {"a": 2.5, "b": 1.0}),
        ("y == a*b*exp(-c*x)", ["a", "b"], {"c": 1.0}),
        # A parabola, for b -> 0: thousands of steps along that valley end where a and d are undetermined.
        pytest.param("y == a*sin(b*x + c) + d", [], {}, marks=pytest.mark.long),
    ],
)
def test_what_many_rows_do_not_determine_takes_few_evaluations_of_them(
    equation: str, loose: list[str], known: dict[str, float], monkeypatch: Any
) -> None:
    """Some of the rows tell where the minimum is; before, all of them were evaluated thousands of times."""
    monkeypatch.setattr(fits, "MANY", 4000)
    rng = np.random.default_rng(0)
    x = 3 * rng.random(6000)
    data = {"x": x, "y": 2.5 * np.exp(-x) + rng.normal(0, 0.01, len(x))}
    names = [n for n in "abcd" if n in equation.replace("exp", "").replace("sin", "")]
    rows = EquationRows(equation, {}, {n: np.ones(()) for n in names}, {})
    asked, of_all = rows.residuals, []

    def counted(x: Any, batch: Any, *more: Any) -> Any:
        of_all.append(len(batch["x"]) == len(data["x"]))
        return asked(x, batch, *more)

    monkeypatch.setattr(rows, "residuals", counted)
    found, _ = fit_rows(rows, data, {})
    assert [names[k] for k in found.undetermined] == loose and found.receding == (not loose)
    assert sum(of_all) < 2 * fits.FEW + 20
    for name, value in known.items():
        k = names.index(name)
        assert abs(found.values[k] - value) < 5 * found.errors[k] < 0.1

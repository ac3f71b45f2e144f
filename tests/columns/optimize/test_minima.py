"""Minima and roots against what is known, and against SciPy with finite differences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy import optimize

from gradcli.columns.optimize.evidence import BY_VALUES, FALLS
from gradcli.columns.optimize.minima import Minimum, minimize
from gradcli.columns.optimize.roots import all_roots, root
from gradcli.columns.optimize.spaces import Compiled, Space
from gradcli.engine.system import dtypes
from gradcli.language import parse
from gradcli.language.located_errors import LanguageError
from tests.columns.optimize.unconstrained_functions import FUNCTIONS
from tests.commands import running


@pytest.fixture(autouse=True)
def double() -> Iterator[None]:
    before = dtypes.get_default_dtype()
    dtypes.set_default_dtype(dtypes.float64)
    with np.errstate(all="ignore"):
        yield
    dtypes.set_default_dtype(before)


def compiled(source: str, start: Any) -> Compiled:
    space = Space({"x": np.asarray(start, float)}, {})
    return Compiled(space.scalar(parse(source)), space.size)


def found(source: str, start: Any, low: float = -np.inf, **given: Any) -> Minimum:
    space = Space({"x": np.asarray(start, float)}, {})
    limits = np.full(space.size, low), np.full(space.size, np.inf)
    constraints = space.relations(given.pop("subject", ()), parse(source))
    return minimize(
        compiled(source, start), space.flat(), bounds=limits, constraints=constraints, **given
    )


@pytest.mark.long
@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_more_garbow_and_hillstrom_know(name: str) -> None:
    """Its six digits, and what is missing to the minimum there is less than 1e-8 of it."""
    source, start, known = FUNCTIONS[name]
    made = found(source, start)
    assert any(made.value == pytest.approx(k, rel=1e-5, abs=1e-8) for k in known)
    assert made.converged and made.kind.startswith(("minimum", "flat"))
    hessian = compiled(source, start).hessian(made.x)
    missing = made.gradient @ np.linalg.pinv(hessian, rcond=1e-13) @ made.gradient / 2
    assert abs(missing) <= 1e-8 * max(made.value, 1.0)


@pytest.mark.long
@pytest.mark.parametrize("name", FUNCTIONS)
def test_fewer_evaluations_than_finite_differences_by_the_number_of_variables(name: str) -> None:
    """Until it is as low as SciPy's quasi-Newton method ends; it goes on from there."""
    source, start, _ = FUNCTIONS[name]
    value, ours = compiled(source, start), compiled(source, start)
    theirs = optimize.minimize(lambda x: value.value_and_gradient(x)[0], start, method="BFGS")
    seen: list[tuple[float, int]] = []
    plain = ours.value_and_gradient

    def noted(x: Any) -> Any:
        made = plain(x)
        seen.append((made[0], ours.evaluations))
        return made

    ours.value_and_gradient = noted  # type: ignore[method-assign]
    free = np.full(len(start), np.inf)
    minimize(ours, np.asarray(start, float), bounds=(-free, free))
    low = theirs.fun + 1e-8 * max(1e-3, abs(theirs.fun))
    assert theirs.nfev >= len(start) * min(count for made, count in seen if made <= low)


KINDS = [
    ("x[0]**2 + 3*x[1]**2", [1, 2], {}, [0, 0], "minimum"),
    ("x[0]**2 - x[1]**2", [0, 0], {}, [0, 0], "saddle point"),
    ("-x[0]**2", [0], {}, [0], "maximum"),
    ("x[0]**4", [1], {}, [0], "minimum"),
    ("(x[0] - 2)**2 + 0*x[1]", [1, 3], {}, [2], "flat: the Hessian is singular"),
    ("x[0]**3", [1], {}, [0], "no minimum: it still falls in some direction"),
    ("x[0]**3 + x[1]**2", [0, 0], {}, [0, 0], "no minimum: it still falls in some direction"),
    ("x[0]*x[1]*(x[0] - x[1])", [0, 0], {}, [0, 0], "no minimum: it still falls in some direction"),
    ("x[0]**3", [0], {"low": -1.0}, [0], "no minimum: it still falls in some direction"),
    ("x[0]**3", [0.5], {"low": 0.0}, [0], "minimum"),
    ("x[0]**4", [0], {}, [0], "flat: the Hessian is singular"),
    ("x[0]**2 - 2*x[0]*x[1] + x[1]**2", [100, 300], {}, [], "flat: the Hessian is singular"),
    ("x[0] + 2*x[1]", [1, 1], {"subject": ["x[0]**2 + x[1]**2 == 5"]}, [-1, -2], "minimum"),
    ("x[0]**2 + x[1]**2", [1, 2], {"subject": ["x[0] + x[1] >= 1"]}, [0.5, 0.5], "minimum"),
    ("x[0]**2 + x[1]**2", [1, 2], {"subject": ["x[0] + x[1] == 1"], "method": "trust-constr"},
     [0.5, 0.5], "minimum"),
    ("x[0] + 2*x[1]", [1, 1], {"subject": ["x[0]**2 + x[1]**2 == 5"], "method": "trust-constr"},
     [-1, -2], "minimum"),
    ("x[0] + 2*x[1]", [1, 1], {"subject": ["5 >= x[0]**2 + x[1]**2"], "method": "trust-constr"},
     [-1, -2], "minimum"),
    ("x[0]**2 + x[1]**2", [1, 2], {"subject": ["1 <= x[0]", "x[1] > 2; x[0] < 9"]}, [1, 2], "minimum"),
    ("x[0]**2 + x[1]**2", [4, 5], {"low": 3.0}, [3, 3], "minimum"),
    ("x[0]**2 + x[1]**2", [4, 5], {"low": 3.0, "method": "SLSQP"}, [3, 3], "minimum"),
    ("sum((x - 1)**2) + 3", [5] * 300, {}, [1] * 300, "not known"),
    # A bound that holds nothing.
    ("cos(x[0])", [0], {"low": 0.0}, [0], "maximum"),
    ("-x[0]**2", [0], {"low": 0.0}, [0], "maximum"),
    ("x[0]**2 - x[1]**2", [0, 0], {"low": 0.0}, [0, 0], "saddle point"),
    ("x[0]*x[1]", [0, 0], {"low": 0.0}, [0, 0], "minimum"),
    ("x[0]**2 - 4*x[0]*x[1] + x[1]**2", [0, 0], {"low": 0.0}, [0, 0], "saddle point"),
    ("x[0]**2", [0], {"subject": ["x[0] >= 0"]}, [0], "minimum"),
    ("-x[0]**2", [0], {"subject": ["x[0] >= 0"]}, [0], "maximum"),
    # A curvature that the values do not bear out.
    ("x[0]**3 + x[1]**2", [100, 100], {}, [0, 0], FALLS),
    ("x[0]**2 - abs(x[0])", [0], {}, [0], FALLS),
    ("-abs(x[0])", [0], {}, [0], FALLS),
    # Where no value is at the bound, and at kinks.
    ("x[0] - log(x[0])", [3], {"low": 0.0}, [1], "minimum"),
    ("(x[0] - 1)**2 - log(x[0])/9", [300], {"low": 0.0}, [1.052770798392567], "minimum"),
    ("abs(x[0])", [3], {}, [0], BY_VALUES),
    ("sqrt(abs(x[0]))", [3], {}, [0], BY_VALUES),
    ("sqrt(abs(x[0]))", [1.7], {}, [0], BY_VALUES),
    ("abs(x[0] - 1) + 2*abs(x[1]) + x[0]**2/9", [5, 7], {}, [1, 0], BY_VALUES),
    ("abs(x*sin(x) + 0.1*x).sum()", [2.5, -2], {}, [3.2417600747, -0.1001674211], BY_VALUES),
    ("abs(x[0] - 1)", [3], {"low": 2.0}, [2], "minimum"),
]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(("source", "start", "given", "at", "kind"), KINDS)
def test_what_was_found(source: str, start: Any, given: Any, at: Any, kind: str) -> None:
    made = found(source, start, **given)
    wanted = np.array(at, float)
    assert made.x[: len(wanted)] == pytest.approx(wanted, abs=2e-3 if "**4" in source else 1e-5)
    assert made.kind == kind
    assert made.converged is kind.startswith(("minimum", "flat", "not"))


@pytest.mark.parametrize("source", ["x[0]", "-x[0]**2", "exp(x[0])", "sqrt(x[0])"])
def test_what_has_no_minimum_says_so(source: str) -> None:
    made = found(source, [1], limit=200)
    assert not made.converged or made.value < 1e-8


@pytest.mark.parametrize(
    ("source", "subject"),
    [("exp(x[0])", "x[0] <= 2"), ("x[0]**3", "x[0] <= 200"), ("1/x[0]", "x[0] >= 1"), ("-x[0]", "x[0] >= 0")],
)  # fmt: skip
def test_what_has_none_under_constraints_says_so(source: str, subject: str) -> None:
    made = found(source, [1.5], subject=[subject])
    assert not made.converged and made.kind.startswith("no minimum")


def test_a_ridge_that_falls_is_no_minimum() -> None:
    """Bukin's sixth function: along a parabola of kinks it falls to (-10, 1)."""
    made = found("100*sqrt(abs(x[1] - 0.01*x[0]**2)) + 0.01*abs(x[0] + 10)", [-8.0, 3.0])
    assert made.value < 1e-6 or not made.converged


def system(source: str, start: Any) -> tuple[Compiled, Any]:
    space = Space({"x": np.asarray(start, float)}, {})
    return Compiled(space.differences(parse(source)), space.size), space.flat()


ROOTS = [
    ("cos(x) == x", 1.0, [0.7390851332151607]),
    ("x[0] + x[1] == 3; x[0]*x[1] == 2", [0, 5], [1, 2]),
    ("[x[0] + x[1], x[0]*x[1]] == [3, 2]", [0, 5], [1, 2]),
    ("f = [x[0] - 1, x[1] - 2]; f == 0", [0, 0], [1, 2]),
    ("x**2 == 0", 1.0, [0]),
    ("x**3 == tensor([8., 27.])", [1, 1], [2, 3]),
    ("exp(x) == 5", 1.0, [np.log(5)]),
    ("x**3 - 8", 2.0, [2]),
    ("x**2 - 2", 2**0.5, [2**0.5]),
    ("sqrt(x)", 1.0, [0]),
    ("x[0] - 1; x[1] - 2", [0, 0], [1, 2]),
    ("x[0] - 1; x[1] == 2", [0, 0], [1, 2]),
    ("a = 3; x[0] == a; x[1] - 2", [0, 0], [3, 2]),
]  # fmt: skip


@pytest.mark.parametrize(("source", "start", "at"), ROOTS)
def test_roots(source: str, start: Any, at: list[float]) -> None:
    made = root(*system(source, start))
    assert made.converged
    assert made.x == pytest.approx(np.array(at), rel=1e-12, abs=1e-6)


@pytest.mark.parametrize(
    "source",
    ["x**2 == -1", "exp(x) == 0", "abs(x) == -1", "x == x + 1", "asin(x/2) == 2", "sqrt(x/9) == -1",
     "acosh(1 + x) == -1", "asin(x/2) + 1e6 == 1e6 + 2", "1e-12*(x**2 + 1)"],
)  # fmt: skip
def test_what_has_no_root_says_so(source: str) -> None:
    for start in (0.0, 0.5, 1.0):
        assert not root(*system(source, start)).converged


def test_as_many_equations_as_numbers() -> None:
    with pytest.raises(LanguageError, match="1 equation for 2 unknown numbers"):
        root(*system("x[0] == x[1]", [1, 2]))


@pytest.mark.parametrize(
    ("source", "low", "high", "roots"),
    [
        ("tan(x) == x", 0, 10, [0, 4.493409457909064, 7.725251836937707]),
        ("(x - 1)**2*(x - 2) == 0", 0.1, 3, [1, 2]),
        ("sin(1/x) == 0", 0.05, 1, [1 / (k * np.pi) for k in range(6, 0, -1)]),
        ("1/x == 0", -1, 1, []),
        ("1/(x - 0.3)", 0, 1, []),
        ("1/(x - 0.31)**3", 0, 1, []),
        ("floor(x) - 0.5", 0.1, 3, []),
        ("sign(x - pi/10)", 0, 1, []),
        ("(x - 0.5)*sign(x - pi/10)", 0, 1, [0.5]),
        ("tanh(1e12*(x - 0.31))", 0, 1, [0.31]),
        ("x**2 + 1 == 0", -1, 1, []),
        ("x == 0", 0, 1, [0]),
        ("relu(x - 2)*relu(3 - x)", 0, 5, [0, 2, 3, 5]),
        ("floor(x)", -3, 3, [0, np.nextafter(1, 0)]),
    ],
)
def test_all_roots(source: str, low: float, high: float, roots: list[float]) -> None:
    made = all_roots(system(source, 1.0)[0], low, high).roots
    assert made == pytest.approx(roots, rel=1e-8, abs=1e-15)


@pytest.mark.parametrize("start", [2.0, pytest.param(0.0, marks=pytest.mark.long)])
def test_many_variables_end_at_the_last_digit_in_few_steps(start: float) -> None:
    """From 2 a trust region alone takes thousands of steps at the last digits; gradients stop before."""
    chain = "sum(100*(x[1:] - x[:-1]**2)**2 + (1 - x[:-1])**2)"
    answer = found(chain, np.full(300, start))
    assert answer.converged and answer.value < 1e-25
    np.testing.assert_allclose(answer.x, 1, atol=1e-12)
    assert answer.evaluations < (200 if start else 5000)


@pytest.mark.parametrize(
    ("source", "start", "kind"),
    [
        ("sum((x**2 - 1)**2)", 0.0, "maximum"),
        ("sum(x[:200]**2) - x[200:]@x[200:]", 0.0, "saddle point"),
        ("sum((x**2 - 1)**2)", 0.1, "not known"),
        ("sum(abs(x) - x**2/2)", 0.0, "not known"),
    ],
)
def test_many_variables_are_no_minimum_where_the_hessian_turns_down(
    source: str, start: float, kind: str
) -> None:
    answer = found(source, np.full(250, start))
    assert (answer.kind, answer.converged) == (kind, kind == "not known")


def test_an_error_at_every_point_is_told_and_no_interval_is_searched() -> None:
    result = running.run("root", "diff(x**3 - 3*x, x) == 0", "--x=-5:5", "--all")
    assert "argument 'n' (position 2) must be int" in result.stderr
    assert "hint: SymPy's diff(f, x) is func.grad(lambda x: f)(x), or d/dx f" in result.stderr
    assert running.run("root", "sqrt(x) - 2", "--x=-5:5", "--all").stdout.startswith("x = 4\n")

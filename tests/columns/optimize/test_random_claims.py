"""300 random minima, roots and fits: no claim is false beside SciPy from many starts.

A "minimum" has no lower value where SciPy's own search from points close by ends close by; a "root" has sides
that are equal to 1e-7 of their size; a fit that converged has no lower sum of squares close by.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy import optimize

from gradcli.columns.optimize.equation_rows import EquationRows
from gradcli.columns.optimize.fits import fit_rows
from gradcli.columns.optimize.minima import minimize
from gradcli.columns.optimize.roots import all_roots, root
from gradcli.columns.optimize.spaces import Compiled, Space
from gradcli.engine.system import dtypes
from gradcli.language import parse
from tests.sweep import some

pytestmark = pytest.mark.long


@pytest.fixture(autouse=True)
def double() -> Iterator[None]:
    with dtypes.as_default(dtypes.float64), np.errstate(all="ignore"):
        yield


# Pieces of one variable, as text and for NumPy alike.
PIECES = [
    "{a}*{x}**2", "{x}**4 - {a}*{x}**2", "-{a}*{x}**2", "{a}*cos({x})", "exp({b}*{x})", "{a}*{x}", "{x}**3",
    "abs({x} - {b})", "{a}*abs({x})", "log(1 + exp({b}*{x}))", "sqrt(1 + {x}**2)", "-{a}*exp(-{x}**2)",
    "sqrt(abs({x} - {b}))", "{x} - {a}*log(abs({x}) + 1e-3)", "1/(1 + {x}**2)", "maximum({x}, {b}*{x})",
    "atan({x})", "{a}*{x}**4", "0*{x}", "{x}**2*({x} - {b})**2",
]  # fmt: skip
PAIRS = [
    "{a}*x[0]*x[1]",
    "(x[0] - x[1])**2",
    "{a}*(x[1] - x[0]**2)**2",
    "abs(x[0] - x[1])",
    "0",
    "0",
    "0",
]
NUMPY = {
    n: getattr(np, n) for n in "exp cos sin tan abs log sqrt maximum sign floor tanh arctan".split()
}
NUMPY |= {"atan": np.arctan, "asin": np.arcsin, "acosh": np.arccosh}


def function(source: str) -> Any:
    code = compile(source, "generated", "eval")
    return lambda x: float(eval(code, NUMPY, {"x": np.asarray(x)}))


def drawn(random: np.random.Generator, text: str, x: str = "") -> str:
    a, b = (f"{v:.3g}" for v in (random.uniform(0.2, 3), random.uniform(-2, 2)))
    return text.format(a=a, b=f"({b})", x=x)


def objective(random: np.random.Generator) -> tuple[str, int]:
    size = int(random.integers(1, 3))
    parts = [
        drawn(random, PIECES[random.integers(len(PIECES))], f"x[{k}]")
        for k in range(size)
        for _ in range(int(random.integers(1, 3)))
    ]
    if size == 2:
        parts.append(drawn(random, PAIRS[random.integers(len(PAIRS))]))
    return " + ".join(f"({p})" for p in parts), size


@pytest.mark.parametrize("seed", some(range(150), 3))
def test_no_false_minimum(seed: int) -> None:
    random = np.random.default_rng(seed)
    source, size = objective(random)
    start = np.round(random.uniform(-3, 3, size), 2)
    low, high = np.full(size, -np.inf), np.full(size, np.inf)
    subject: list[str] = []
    if seed % 3 == 1:
        start = np.where(random.random(size) < 0.3, 0.0, start)
        low, high = start - random.choice([0.0, 1, 2], size), start + random.choice([1.0, 2], size)
    elif seed % 3 == 2 and size == 2:
        subject = [
            str(random.choice(["x[0] + x[1] <= 9", "x[0] >= -4", "x[0]**2 + x[1]**2 <= 25"]))
        ]
    space = Space({"x": start}, {})
    made = minimize(
        space.objective(parse(source)),
        start,
        bounds=(low, high),
        constraints=space.relations(subject, parse(source)),
    )
    if not made.kind.startswith("minimum"):
        return
    value = function(source)
    holds = [function(s.replace("<=", "-").replace(">=", "-")) for s in subject]
    sides = [-1.0 if "<=" in s else 1.0 for s in subject]
    assert made.value == pytest.approx(value(made.x), rel=1e-12, abs=1e-12)

    def allowed(x: Any) -> float:
        inside = ((low <= x) & (x <= high)).all()
        inside &= all(side * hold(x) >= -1e-9 for side, hold in zip(sides, holds, strict=True))
        return value(x) if inside else np.inf

    reach = 1e-3 * (1 + np.abs(made.x).max())
    least = 1e-9 * (1 + abs(made.value))
    for _ in range(40):
        near = made.x + reach * random.normal(size=size) * random.choice([1, 1e-2])
        near = np.clip(near, low, high)
        there = optimize.minimize(
            allowed, near, method="Nelder-Mead",
            options={"xatol": 1e-12, "fatol": 1e-15, "maxfev": 300},
        )  # fmt: skip
        if np.abs(there.x - made.x).max() <= 20 * reach:
            assert not there.fun < made.value - least, (
                source,
                start,
                made.kind,
                there.x,
                there.fun,
            )


SIDES = [
    "{a}*x", "x**2", "cos(x)", "exp({b}*x)", "asin(x/{a})", "sqrt(x)", "acosh(1 + x)", "tan(x)",
    "1/(x - {b})", "sign(x - {b})", "floor(x)", "tanh(1e3*(x - {b}))", "log(abs(x))", "x**3",
    "abs(x)", "atan(x)",
]  # fmt: skip


@pytest.mark.parametrize("seed", range(90))
def test_no_false_root(seed: int) -> None:
    random = np.random.default_rng(1000 + seed)
    left = drawn(random, SIDES[random.integers(len(SIDES))])
    right = drawn(random, str(random.choice(["{a}", "{b}", "{b}*x", "0", "2"])))
    space = Space({"x": np.array(0.0)}, {})
    system = Compiled(space.differences(parse(f"{left} == {right}")), 1)
    found: list[float] = []
    if seed % 2:
        found = all_roots(system, -5.0, 5.0)[0]
    else:
        for start in np.round(random.uniform(-4, 4, 4), 2):
            made = root(system, np.array([start]))
            found += [float(made.x[0])] if made.converged else []
    value = function(f"({left}) - ({right})")
    for x in found:
        # The difference is 0, or has both signs, and no jump, within rounding.
        around = np.array([value(x + k * max(abs(x), 1e-9) * 1e-9) for k in (-1, 1)])
        jump = np.abs(np.diff(around))[0]
        size = 1 + abs(function(left)(x))
        assert abs(value(x)) <= 1e-7 * size, (left, right, x)
        assert value(x) == 0 or not jump > 1e-3 or "tanh" in left or not np.isfinite(jump), (
            left,
            right,
            x,
        )


MODELS = [
    ("a*x + b", "a b", lambda x, a, b: a * x + b),
    ("a*exp(b*x)", "a b", lambda x, a, b: a * np.exp(b * x)),
    ("a*exp(-x/b) + c", "a b c", lambda x, a, b, c: a * np.exp(-x / b) + c),
    ("a/(1 + exp(-b*(x - c)))", "a b c", lambda x, a, b, c: a / (1 + np.exp(-b * (x - c)))),
    ("a*sin(b*x + c)", "a b c", lambda x, a, b, c: a * np.sin(b * x + c)),
    ("a*x/(b + x)", "a b", lambda x, a, b: a * x / (b + x)),
    ("a*exp(-(x - b)**2/(2*c**2))", "a b c", lambda x, a, b, c: a * np.exp(-((x - b) ** 2) / (2 * c**2))),
    ("a*abs(x - b) + c", "a b c", lambda x, a, b, c: a * np.abs(x - b) + c),
]  # fmt: skip


@pytest.mark.parametrize("seed", some(range(60), 3))
def test_no_false_fit(seed: int) -> None:
    random = np.random.default_rng(2000 + seed)
    text, names, model = MODELS[seed % len(MODELS)]
    truth = random.uniform(0.3, 3, len(names.split()))
    x = np.linspace(0.1, random.choice([3, 10, 100]), 25)
    y = model(x, *truth) * (1 + 0.02 * random.normal(size=25)) + 0.01 * random.normal(size=25)
    start = {
        n: np.array(1.0 if seed % 2 else v * 1.2) for n, v in zip(names.split(), truth, strict=True)
    }
    found, _ = fit_rows(EquationRows(f"y == {text}", {}, start, {}), {"x": x, "y": y}, {})
    if found.undetermined or not found.converged:
        assert np.isnan(found.errors[found.undetermined]).all()
        return

    def residuals(p: Any) -> Any:
        return np.nan_to_num(y - model(x, *p), nan=1e9, posinf=1e9, neginf=-1e9)

    for _ in range(30):
        near = found.values + found.errors * random.normal(size=len(truth)) * random.choice(
            [1, 0.1]
        )
        there = optimize.least_squares(
            residuals, near, x_scale="jac", xtol=1e-14, ftol=1e-14, gtol=1e-14
        )
        if (np.abs(there.x - found.values) <= 3 * found.errors).all():
            assert 2 * there.cost >= found.chi2 * (1 - 1e-6), (text, found.values, there.x)

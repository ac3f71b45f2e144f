"""`gradcli.fit`, `minimize` and `root`: what the commands do, for Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.engine.system import dtypes
from gradcli.language import LanguageError
from tests.columns.optimize.test_least_squares import NIST
from tests.commands.running import outcome

ROW = NIST["Misra1a"]
MODEL = ROW["equation"]


def test_a_fit_has_what_nist_certifies() -> None:
    found = gradcli.fit(MODEL, ROW["columns"], b1=500, b2=1e-4)
    assert found.converged and found.names == ["b1", "b2"]
    assert found.values == pytest.approx([*ROW["parameters"].values()], rel=1e-6)
    assert found.parameters["b2"][1] == pytest.approx(ROW["errors"]["b2"], rel=1e-4)
    assert found.fitted + found.residual == pytest.approx(ROW["columns"]["y"])
    assert repr(found).startswith("b1 = 238.9 ± 2.7\nb2 = 0.0005502 ± 0.0000073\n")
    assert dtypes.get_default_dtype().name == "float32"  # as it was


@pytest.mark.needs("pandas")
def test_tables_of_others_are_read() -> None:
    import pandas

    frame = pandas.DataFrame(ROW["columns"])
    found = gradcli.fit(MODEL, frame, {"b1": 500}, fix={"b2": 5.5e-4}, sigma=0.1)
    assert found.names == ["b1"] and found.dof == 13
    both = gradcli.fit(MODEL, frame, b1=500, b2=1e-4, sigma={"x": np.ones(14), "y": np.ones(14)})
    assert both.converged
    frame["dy"] = 0.1
    named = gradcli.fit(MODEL, frame, {"b1": 500}, fix={"b2": 5.5e-4}, sigma="dy")
    assert named.errors == pytest.approx(found.errors)


SITES = {"site": ["A", "B", "A", "A", "B"], "t": [0.0, 1, 2, 3, 4], "y": [1.0, 5, 3, 4.1, 9]}


def test_rows_that_count_and_data_sets(tmp_path: Path) -> None:
    """The same numbers as from the command, for each kind of table."""
    file = tmp_path / "sites.csv"
    rows = zip(*SITES.values(), strict=True)
    file.write_text("site,t,y\n" + "".join(f"{s},{t},{y}\n" for s, t, y in rows))
    arrays = {name: np.array(cells) for name, cells in SITES.items()}
    is_a = arrays["site"] == "A"
    for table in (SITES, arrays, str(file)):
        for where in ("site == 'A'", "not site != 'A'", is_a):
            found = gradcli.fit("y == a + b*t", table, where=where, sigma=np.full(5, 0.1))
            np.testing.assert_allclose(found.values, [0.9857142857, 1.0285714286])
            assert len(found.residual) == 3
        found = gradcli.fit("y == a[set] + b*t", table, by="site")
        assert found.names == ["a[0]", "a[1]", "b"]
        assert found.sets == ["site = A", "site = B"]
        np.testing.assert_allclose(found.values, [0.7363636364, 4.0545454545, 1.1781818182])


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"where": "site == 'C'"}, "no row of 5 is left"),
        ({"where": "x > 1"}, "where: x is not a column of the table"),
        ({"where": [1, 0]}, "truth values"),
        ({"where": [True, False]}, "where has 2 rows, and y 5"),
        ({"by": "x"}, "'x' is no column"),
        ({"sigma": "dy"}, "sigma: 'dy' is no column"),
        ({"sigma": "2*dy"}, "sigma: 'dy' is no column"),
        ({"sigma": "sqrt("}, r"sigma: 'sqrt\(' is no column"),
        ({"a": "about 3"}, "'about 3' is no number with an uncertainty"),
        ({"a": "3±1"}, "the scale of the residuals is not known"),
        ({"likelihood": "gauss"}, "and there is 'poisson'"),
        ({"likelihood": "poisson", "sigma": 1}, "counts have their own uncertainty"),
        ({"sigma": [0.1, 0.1]}, "an uncertainty has 2 rows, and the equation 5"),
        ({"sigma": [0.1, np.nan, 0.1, 0.1, 0.1]}, "an uncertainty of the response is nan"),
        ({"sigma": -0.5}, "an uncertainty of the response is -0.5"),
    ],
)
def test_rows_that_cannot_be_chosen(wrong: Any, words: str) -> None:
    with pytest.raises(LanguageError, match=words):
        gradcli.fit("y == a + b*t", SITES, **wrong)


LINE = {"x": [0, 1, 2, 3.0], "y": [1.1, 2.9, 5.2, 6.8], "s": [0.2] * 4}


@pytest.mark.parametrize(
    ("asked", "options"),
    [
        ({"sigma": "s"}, "--sigma s"),
        ({"sigma": "s", "relative_sigma": True}, "--sigma s --relative-sigma"),
        ({"sigma": "3%"}, "--sigma 3%"),
        ({"sigma": "1%+0.02"}, "--sigma 1%+0.02"),
        ({"sigma": "poisson", "where": "x > 0.5"}, "--sigma poisson --where x>0.5"),
        ({"sigma": {"y": "0.1+0.02*y", "x": "0.05"}}, "--sigma y=0.1+0.02*y --sigma x=0.05"),
        ({"sigma": "s", "b": "1.5±0.1"}, "--sigma s --b 1.5±0.1"),
        ({"sigma": "s", "starts": 3}, "--sigma s --starts 3"),
        ({"likelihood": "poisson", "a": "2"}, "--likelihood poisson --a 2"),
    ],
)  # fmt: skip
def test_a_fit_is_told_in_the_words_of_the_command(
    asked: dict[str, Any], options: str, tmp_path: Path
) -> None:
    rows = zip(*LINE.values(), strict=True)
    (tmp_path / "line.csv").write_text("x,y,s\n" + "".join(f"{x},{y},{s}\n" for x, y, s in rows))
    line = ("y == a*x + b", str(tmp_path / "line.csv"), *options.split(), "--json")
    told = json.loads(outcome("fit", *line)[1])
    found = gradcli.fit("y == a*x + b", LINE, **asked)
    for name, one in told["parameters"].items():
        assert found.parameters[name] == pytest.approx((one["value"], one["error"]), rel=1e-9)
    assert found.aic == pytest.approx(told["aic"])
    p = told["p_value"]
    assert found.p_value == pytest.approx(p) if p is not None else np.isnan(found.p_value)


def test_what_is_wrong_says_so() -> None:
    for words, table, start in [
        ("no variable of", {"q": [1.0]}, {}),
        ("c is not a parameter", ROW["columns"], {"c": 1}),
        ("at the start the residual", ROW["columns"], {"b1": np.nan}),
        ("in row 2, x is nan", {"x": [1.0, np.nan, 3.0], "y": [1.0, 2.0, 3.0]}, {}),
    ]:
        with pytest.raises(LanguageError, match=words):
            gradcli.fit(MODEL, table, **start)
    assert gradcli.fit("y == a*b*x", ROW["columns"], a=1, b=1).undetermined == ["a", "b"]


def test_minima_and_roots() -> None:
    found = gradcli.minimize("x*y", x=1, y=2, subject="x + y == 1", bounds={"x": (0, 1)})
    assert found and found.kind == "minimum"
    assert [float(v) for v in found.point.values()] == pytest.approx([0, 1], abs=1e-12)
    assert not gradcli.minimize("x**3", x=1)
    found = gradcli.minimize("x**2", x=1, a=3, wrt="x", subject="x >= a")
    assert float(found.point["x"]) == pytest.approx(3)
    assert float(gradcli.root("cos(x) == x", {"x": 1}).point["x"]) == pytest.approx(
        0.7390851332151607
    )
    assert not gradcli.root("x**2 == -1", x=1)
    for words, call in [
        ("no value for y", lambda: gradcli.minimize("x*y", x=1)),
        ("no value for q", lambda: gradcli.minimize("x**2", x=1, subject="q > 0")),
        ("this is not an equation", lambda: gradcli.root("x < 2", x=1)),
        (
            "cannot use bounds",
            lambda: gradcli.minimize("x", x=1, bounds={"x": (0, 2)}, method="BFGS"),
        ),
    ]:
        with pytest.raises(LanguageError, match=words):
            call()

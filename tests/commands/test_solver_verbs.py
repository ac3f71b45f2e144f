"""`gradcli.fit`, `minimize` and `root`: what the commands do, for Python."""

from __future__ import annotations

import numpy as np
import pytest

import gradcli
from gradcli.engine.system import dtypes
from gradcli.language import LanguageError
from tests.columns.optimize.test_least_squares import NIST

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


def test_what_is_wrong_says_so() -> None:
    for words, table, start in [
        ("no variable of", {"q": [1.0]}, {}),
        ("c is not a parameter", ROW["columns"], {"c": 1}),
        ("at the start the residual", ROW["columns"], {"b1": np.nan}),
    ]:
        with pytest.raises(LanguageError, match=words):
            gradcli.fit(MODEL, table, **start)
    assert gradcli.fit("y == a*b*x", ROW["columns"], a=1, b=1).undetermined == ["a", "b"]


def test_minima_and_roots() -> None:
    found = gradcli.minimize("x*y", x=1, y=2, subject="x + y == 1", bounds={"x": (0, 1)})
    assert found and found.kind == "minimum"
    assert [float(v) for v in found.point.values()] == pytest.approx([0, 1], abs=1e-12)
    assert not gradcli.minimize("x**3", x=1)
    assert float(gradcli.root("cos(x) == x", {"x": 1}).point["x"]) == pytest.approx(
        0.7390851332151607
    )
    assert not gradcli.root("x**2 == -1", x=1)
    for words, call in [
        ("no value for y", lambda: gradcli.minimize("x*y", x=1)),
        ("q is not a variable", lambda: gradcli.minimize("x**2", x=1, subject="q > 0")),
        ("this is not an equation", lambda: gradcli.root("x < 2", x=1)),
        (
            "cannot use bounds",
            lambda: gradcli.minimize("x", x=1, bounds={"x": (0, 2)}, method="BFGS"),
        ),
    ]:
        with pytest.raises(LanguageError, match=words):
            call()

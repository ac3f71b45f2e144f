"""`map`, `plot` and `jvp` as functions of Python, and the precision of what they are given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.language.located_errors import LanguageError
from tests.commands.test_verbs import plain

TABLE = {"x": [1, 2, 3], "y": [0.5, 0.25, 1]}
MAPPED: list[tuple[str, dict[str, Any], dict[str, list[float]]]] = [
    ("a*x**2", {"a": 3}, {"value": [3, 12, 27], "x.grad": [6, 12, 18]}),
    ("a*x**2", {"a": 3.0, "wrt": "a"}, {"value": [3, 12, 27], "a.grad": [1, 4, 9]}),
    ("x*y", {"wrt": ()}, {"value": [0.5, 0.5, 3]}),
    (
        "a = 2*x; a, 3",
        {},
        {"a": [2, 4, 6], "value_1": [3, 3, 3], "a.x.grad": [2, 2, 2], "value_1.x.grad": [0, 0, 0]},
    ),
    ("(x, 2*x)", {"wrt": ()}, {"value_0": [1, 2, 3], "value_1": [2, 4, 6]}),
    (
        "w@stack([x, y])",
        {"w": [1, 2]},
        {"value": [2, 2.5, 5], "x.grad": [1] * 3, "y.grad": [2] * 3},
    ),
]


@pytest.mark.parametrize(("source", "given", "answer"), MAPPED)
def test_map(source: str, given: dict[str, Any], answer: dict[str, list[float]]) -> None:
    found = gradcli.map(source, TABLE, **given)
    assert {n: a.tolist() for n, a in found.items()} == answer
    assert all(a.dtype == np.float64 for a in found.values())


def test_map_of_a_file_and_of_no_rows(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("t,x\n1,2\n2,3\n")
    assert gradcli.map("x**2", tmp_path / "t.csv")["x.grad"].tolist() == [4, 6]
    assert gradcli.map("x**2", {"x": []})["value"].shape == (0,)


def test_rows_that_are_refused() -> None:
    table = {"x": [1, 0, 2]}
    with pytest.raises(LanguageError, match=r"row 2: linalg.inv: .*singular"):
        gradcli.map("linalg.inv(x*eye(2))[0,0]", table)
    found = gradcli.map("linalg.inv(x*eye(2))[0,0]", table, bad_rows="nan")
    assert np.isnan(found["value"]).tolist() == [False, True, False]


def test_jvp() -> None:
    value, slope = gradcli.jvp("x**2*y", x=[1, 2], y=3, vector={"x": [1, 0]})
    assert value.tolist() == [3, 12] and slope.tolist() == [6, 0]


def test_plot(tmp_path: Path) -> None:
    drawing = gradcli.plot("a*sin(x)", x=(-5, 5), a=2.0)
    assert "d/dx a*sin(x)" in repr(drawing) and "┤" in repr(drawing)
    pytest.importorskip("matplotlib")
    drawing.save(tmp_path / "curve.svg")
    assert "<svg" in (tmp_path / "curve.svg").read_text()


def test_an_open_variable_of_a_plot_has_a_range_that_is_said() -> None:
    with pytest.warns(UserWarning, match=r"x goes from -10 to 10; another range: x=\(FROM, TO\)"):
        gradcli.plot("x**2")


WRONG = [
    ("map", ("a*x", TABLE), {}, "a is not a column of the table, and has no value"),
    ("map", ("a*b", TABLE), {}, "no variable of 'a*b' is a column"),
    ("map", ("x*y", {"x": [1], "y": [1, 2]}), {}, "different numbers of rows"),
    ("plot", ("x",), {"x": 3.0}, "0 variables have a range"),
    ("plot", ("x",), {"x": (1, 0)}, "the range from 1 to 0 is empty"),
    ("plot", ("x",), {"x": (0, 1), "q": 2}, "q is not a variable of 'x' (variables: x)"),
    ("jvp", ("x*y",), {"x": 1, "y": 2, "vector": 1}, "along which direction of x, y"),
    ("jvp", ("x*2",), {"x": [1, 2], "vector": [1, 2, 3]}, "the direction (3,)"),
    ("grad", ("f(x)*y",), {"x": 1, "f": abs, "z": 1}, "(variables: x, y)"),
]


@pytest.mark.parametrize(("verb", "args", "given", "words"), WRONG)
def test_what_is_wrong(verb: str, args: Any, given: dict[str, Any], words: str) -> None:
    with pytest.raises(LanguageError) as caught:
        getattr(gradcli, verb)(*args, **given)
    assert words in str(caught.value) and "--" not in str(caught.value)


def test_double_precision_is_kept() -> None:
    """And numbers beside it have all digits."""
    found = gradcli.grad("sum(a*x)", x=np.array([1.0, 2.0]), a=0.1)
    assert found["x"].dtype is gradcli.float64 and found["x"].tolist() == [0.1, 0.1]
    assert gradcli.hessian("x**3", x=np.float64(0.1)).item() == 0.6000000000000001
    assert gradcli.grad("x**2", x=np.float32(3)).dtype is gradcli.float32
    assert plain(gradcli.grad("sum(x)", x=np.array([1, 2]))) == [1, 1]

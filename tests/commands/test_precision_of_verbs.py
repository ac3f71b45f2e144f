"""Verbs compute as the command line does, in double precision; single values make them single."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradcli

SINGLE = np.float32(0.1)

# (the values, the precision)
CASES: list[tuple[dict[str, Any], str]] = [
    ({"x": 0.1, "a": 3}, "float64"),
    ({"x": [0.1], "a": 3}, "float64"),
    ({"x": np.array([0.1]), "a": 3}, "float64"),
    ({"x": SINGLE, "a": 3.0}, "float32"),
    ({"x": 0.1, "a": gradcli.tensor(3.0)}, "float32"),
    ({"x": SINGLE, "a": np.array(3.0)}, "float64"),
    ({"x": 0.1, "a": gradcli.tensor(3)}, "float64"),
]


@pytest.mark.parametrize(("values", "dtype"), CASES)
def test_the_precision_is_one_for_all(values: dict[str, Any], dtype: str) -> None:
    found = gradcli.grad("sum(a*x**2*ones(2))", values, wrt="x")
    assert found.dtype.name == ("float32" if values["x"] is SINGLE else dtype)  # as its variable
    assert gradcli.evaluate("a*x*ones(2)", values).dtype.name == dtype
    wanted = np.float64(12) * np.float64(0.1)
    if dtype == "float64" and values["x"] is not SINGLE:
        assert found.sum().item() == pytest.approx(wanted, rel=1e-15)
    assert gradcli.get_default_dtype() == gradcli.float32


def test_verbs_print_what_the_command_line_does() -> None:
    assert gradcli.evaluate("0.1 + 0.2").item() == 0.1 + 0.2
    assert gradcli.evaluate("x**3", x=0.1).item() == 0.1**3
    assert gradcli.jvp("x**3", x=0.1, vector=1.0)[1].item() == pytest.approx(0.03, rel=1e-15)
    assert gradcli.tensor(0.1).dtype == gradcli.float32

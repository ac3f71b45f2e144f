"""`--math` on formulas that others wrote: their values are those of NumPy, SciPy and SymPy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.commands.running import run
from tests.sweep import sweep

pytestmark = pytest.mark.long

GOLDEN = Path(__file__).parents[1] / "golden"
PAPERS, LECTURES, SYMPYS, CODE = (
    json.loads((GOLDEN / name).read_text("utf-8"))["rows"]
    for name in ("papers.json", "lectures.json", "sympys_latex.json", "sympys_code.json")
)


@sweep(("text", "values", "wanted"), PAPERS + LECTURES, parts=4)
def test_values(text: str, values: dict[str, str], wanted: Any) -> None:
    options = [f"--{name}={value}" for name, value in values.items()]
    found = np.array(json.loads(run("eval", "--math", "--json", text, *options).stdout)["value"])
    assert found.shape == np.shape(wanted)
    assert np.allclose(found.astype(float), wanted, rtol=2e-6, atol=1e-7)


@sweep(("text", "values", "wanted"), SYMPYS, parts=4)
def test_what_sympy_prints(text: str, values: dict[str, float], wanted: float) -> None:
    _holds(text, values, wanted)


@sweep(("system", "text", "values", "wanted"), CODE, parts=4)
def test_what_sympy_prints_for_other_systems(
    system: str, text: str, values: dict[str, float], wanted: float
) -> None:
    _holds(text, values, wanted)


def _holds(text: str, values: dict[str, float], wanted: float) -> None:
    options = [f"--{name}={value}" for name, value in values.items()]
    result = run("eval", "--math", "--json", "--dtype=float64", text, *options)
    found = json.loads(result.stdout)["value"]
    assert found == pytest.approx(wanted, rel=1e-9, abs=1e-12)

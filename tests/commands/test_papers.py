"""`--math` on the formulas of papers and textbooks: their values are NumPy's and SciPy's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.commands.running import run
from tests.sweep import sweep

pytestmark = pytest.mark.long

ROWS = json.loads((Path(__file__).parents[1] / "golden" / "papers.json").read_text("utf-8"))["rows"]


@sweep(("text", "values", "wanted"), ROWS, parts=4)
def test_values(text: str, values: dict[str, str], wanted: Any) -> None:
    options = [f"--{name}={value}" for name, value in values.items()]
    found = np.array(json.loads(run("eval", "--math", "--json", text, *options).stdout)["value"])
    assert found.shape == np.shape(wanted)
    assert np.allclose(found.astype(float), wanted, rtol=2e-6, atol=1e-7)

"""The normal distribution function has its digits in the left tail, where PyTorch's has lost them."""

from __future__ import annotations

import json

import numpy as np
import pytest

import gradcli
from tests.commands.running import outcome

# By mpmath 1.3 with 40 digits: ncdf(x).
EXACT = {
    -37.0: 5.7255712225245767e-300,
    -20.0: 2.753624118606233695e-89,
    -10.0: 7.6198530241605260660e-24,
    -8.0: 6.220960574271784e-16,
    -5.0: 2.8665157187919391e-7,
    -1.0: 0.15865525393145705142,
    0.0: 0.5,
    2.0: 0.97724986805182079280,
}
X = np.array([*EXACT])
# x/sqrt(2) is rounded, which moves the value by x**2 times that
DIGITS = 2e-16 * (2 + X**2)


def _close(found: object) -> bool:
    relative = np.abs(np.asarray(found) / np.array([*EXACT.values()]) - 1)
    return bool((relative <= DIGITS).all())


def test_every_way_has_the_digits() -> None:
    given = ["--x", ",".join(map(str, X)), "--json"]
    assert _close(json.loads(outcome("eval", "special.ndtr(x)", *given)[1])["value"])
    grad = outcome("grad", "sum(special.ndtr(x))", *given)[1]
    density = np.exp(-(X**2) / 2) / np.sqrt(2 * np.pi)
    assert np.allclose(json.loads(grad)["wrt"]["x"]["grad"], density, rtol=1e-12, atol=0)
    assert _close(gradcli.map("special.ndtr(x)", {"x": X}, wrt=())["value"])
    assert _close(gradcli.compile("special.ndtr(x)")(x=X))


@pytest.mark.long
def test_native_code_has_the_digits() -> None:
    assert _close(gradcli.compile("special.ndtr(x)", native=True)(x=X))


def test_printed_programs_have_them() -> None:
    assert "special.ndtr(x)" in outcome("diff", "special.ndtr(x)", "--format", "numpy")[1]
    assert "erfc(-x/sqrt(2.0))" in outcome("diff", "special.ndtr(x)", "--format", "c")[1]


def test_the_graph_is_pytorchs() -> None:
    nodes = json.loads(outcome("graph", "special.ndtr(x)", "--x", "1", "--json")[1])["nodes"]
    names = [node["name"] for node in nodes]
    assert [name.rstrip("01") for name in names] == [
        *("MulBackward", "AddBackward", "ErfBackward", "MulBackward", "AccumulateGrad")
    ]
    assert nodes[0]["next"] == [{"node": 1, "output": 0}]


def test_taylor_knows_its_value_at_0() -> None:
    assert outcome("taylor", "special.ndtr(x)", "--order", "1")[1].startswith("1/2 + x/sqrt(2*pi)")

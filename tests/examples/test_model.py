"""examples/model.py: the architecture in small gives gradcli's own answers, and stays small."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradcli
from tests.examples.running import FOLDER

PATH = FOLDER / "model.py"
LONGEST = 300  # lines


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("model", PATH)
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


model = load()

NUMBERS = st.integers(1, 3).map(str)
SCALARS = st.recursive(
    st.sampled_from(["a", "b", "sum(x)", "dot(x, x)", "sum(exp(x))"]) | NUMBERS,
    lambda inner: (
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/"]), inner).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        )
        | st.tuples(inner, NUMBERS).map(lambda t: f"({t[0]})**{t[1]}")
        | inner.map(lambda t: f"-{t}")
        | inner.map(lambda t: f"sum(x*{t})")
        | inner.map(lambda t: f"log(({t})**2 + 1)")
    ),
    max_leaves=6,
)
VALUES = {"a": np.array(0.75), "b": np.array(1.5), "x": np.array([0.5, 1.25, 2.0])}


def by_gradcli(source: str) -> dict[str, Any]:
    names = [n for n in VALUES if n in gradcli.parse(source).free_variables()]
    given = {n: gradcli.tensor(VALUES[n]) for n in names}
    gradcli.set_default_dtype(gradcli.float64)  # of numbers, as on the command line
    try:
        return {n: g.numpy() for n, g in gradcli.grad(source, wrt=names, **given).items()}
    finally:
        gradcli.set_default_dtype(gradcli.float32)


@given(SCALARS)
def test_gradients_are_gradclis(source: str) -> None:
    variables = {n: model.leaf(v, n) for n, v in VALUES.items()}
    if model.evaluate("0*a + " + source, variables).node is None:
        return
    found = model.gradients("0*a + " + source, variables, np.float64(1))
    for name, true in by_gradcli("0*a + " + source).items():
        np.testing.assert_allclose(found[name], true, rtol=1e-12, atol=1e-12)


@given(SCALARS)
def test_its_formulas_are_proved(source: str) -> None:
    """`derivatives` raises where a text is not what the tape gives."""
    model.derivatives("0*a + " + source, VALUES)


@pytest.mark.parametrize(
    ("argv", "shown"),
    [
        (["grad", "2*dot(x,x)", "--x", "0,1,2,3"], "x.grad = [0.0, 4.0, 8.0, 12.0]\n"),
        (["diff", "2*dot(x,x)", "--x", "1,2"], "4*x\n"),
        (["hessian", "sum(x**3)", "--x", "1,2"], "x.hessian = [[6.0, 0.0], [0.0, 12.0]]\n"),
        (
            ["graph", "2*dot(x,x)", "--x", "1,2"],
            "MulBackward0  ()  2*dot(x,x)\n"
            "└─ DotBackward0  ()  dot(x,x)\n"
            "   ├─ AccumulateGrad x  (2,)\n"
            "   └─ AccumulateGrad x  (2,)\n",
        ),
    ],
)
def test_it_runs_alone(argv: list[str], shown: str) -> None:
    """In a process that cannot import gradcli."""
    code = f"import runpy, sys; sys.modules['gradcli'] = None; sys.argv = {[str(PATH), *argv]!r}"
    code += "; runpy.run_path(sys.argv[0], run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == shown


def test_the_nodes_are_gradclis() -> None:
    source = "2*dot(x,x) + sum(exp(x))/a"
    variables = {n: model.leaf(v, n) for n, v in VALUES.items()}
    seen: dict[str, str] = {}
    stack = [model.evaluate(source, variables).node]
    while stack:
        node = stack.pop()
        if node.edges:
            seen[node.source] = node.name
        stack += node.edges.values()
    arrays = {n: json.dumps(v.tolist()) for n, v in VALUES.items() if n != "b"}
    argv = ["graph", source, "--format", "json"]
    argv += [word for n, text in arrays.items() for word in (f"--{n}", text)]
    command = [sys.executable, "-m", "gradcli", *argv]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    named = {n["source"]: n["name"] for n in found["nodes"] if n["name"] != "AccumulateGrad"}
    assert seen == named


def test_a_level_takes_what_is_older_for_a_constant() -> None:
    """The inner derivative is 1, whatever x is; by confusing the two it would be 2."""
    two = model.Tensor(np.float64(2))
    outer = model.grad(lambda x: x * model.grad(lambda y: x + y)(two))
    assert outer(model.Tensor(np.float64(1))).array == 1
    twice = model.grad(lambda x: model.grad(lambda y: x * y * y)(x))
    assert twice(model.Tensor(np.float64(3))).array == 12


def test_it_is_small() -> None:
    assert len(PATH.read_text(encoding="utf-8").splitlines()) <= LONGEST

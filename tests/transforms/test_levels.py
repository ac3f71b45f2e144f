"""Transforms that close over variables of other levels: every combination gives what PyTorch recorded."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import gradcli
from gradcli import language
from gradcli.cli import main
from tests.sweep import sweep
from tests.transforms.level_programs import ANSWERS, combinations, plain, programs, value

RECORDED = json.loads(ANSWERS.read_text())


def same(found: Any, expected: Any) -> None:
    """The same numbers, flags and structure, or a refusal in the same words."""
    if isinstance(expected, list):
        assert isinstance(found, list) and len(found) == len(expected)
        for f, e in zip(found, expected, strict=True):
            same(f, e)
    elif isinstance(expected, float):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)
    else:
        assert found == expected


def check(text: str, expected: Any) -> None:
    try:
        found = plain(language.run(language.parse(text), {}).value)
    except Exception as error:
        assert isinstance(expected, str) and expected.partition(": ")[2] in str(error)
        return
    same(found, expected)


@pytest.mark.filterwarnings("ignore")
@sweep("name", lambda: programs(), parts=4, often=2)
def test_programs(name: str) -> None:
    gradcli.set_default_dtype(gradcli.float64)
    check(programs()[name], RECORDED[name])


@pytest.mark.filterwarnings("ignore")
@sweep(("name", "text"), lambda: combinations().items(), parts=32, often=1)
def test_combinations(name: str, text: str) -> None:
    gradcli.set_default_dtype(gradcli.float64)
    check(text, RECORDED[name])


ENERGY = "func.grad(lambda t: sin(w*t))(tensor(0.5)) + w"
SPRING = "func.grad(lambda q: k*q**2/2)(tensor(1.5))"
HELD = "def h(x):\n with no_grad():\n  v = func.grad(lambda z: z**3)(x)\n return x*v\n"


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        (["grad", ENERGY, "--w", "2"], "w.grad = 0.6988313210602433\n"),
        (["diff", ENERGY], "cos(0.5*w) - 0.5*w*sin(0.5*w) + 1\n"),
        (["hessian", ENERGY, "--w", "2"], "w.hessian = -1.1116221377419664\n"),
        (["jvp", ENERGY, "--w", "2", "--vector", "1"], "jvp = 0.6988313210602433\n"),
        (["grad", SPRING, "--k", "2"], "k.grad = 1.5\n"),
        (["diff", SPRING], "1.5\n"),
        (["hessian", SPRING, "--k", "2"], "k.hessian = 0\n"),
        (["jvp", SPRING, "--k", "2", "--vector", "1"], "jvp = 1.5\n"),
        (["eval", HELD + "func.grad(h)(tensor(2.))"], "12\n"),
        (["grad", HELD + "h(x)", "--x", "2"], "x.grad = 12\n"),
        (["diff", HELD + "h(x)"], "3*x**2\n"),
        (["jvp", HELD + "h(x)", "--x", "2", "--vector", "1"], "jvp = 12\n"),
    ],
)
def test_commands(command: list[str], answer: str) -> None:
    assert CliRunner().invoke(main, command).output == answer


def test_map(tmp_path: Path) -> None:
    table = tmp_path / "w.csv"
    table.write_text("w\n1\n2\n")
    found = CliRunner().invoke(main, ["map", ENERGY, str(table)]).output.split()
    assert found[1:] == [
        "1,1.8775825618903728,1.6378697925882713",
        "2,3.0806046117362795,0.6988313210602433",
    ]


@pytest.mark.long
@pytest.mark.needs("torch")
@pytest.mark.filterwarnings("ignore")
@sweep(("name", "text"), lambda: (programs() | combinations()).items(), parts=2)
def test_records_are_what_torch_says(name: str, text: str) -> None:
    torch = importlib.import_module("torch")
    torch.set_default_dtype(torch.float64)
    same(value(text, torch), RECORDED[name])


def test_the_ways_into_a_batch_and_out_of_it_are_recorded_under_no_grad() -> None:
    """As PyTorch has it (each line as it answers): to it they are no operations."""
    w = gradcli.tensor(0.7, requires_grad=True)
    x = gradcli.tensor([1.0, 2.0], requires_grad=True)
    with gradcli.no_grad():
        scaled = gradcli.func.vmap(gradcli.enable_grad()(lambda v: w * v))(
            gradcli.tensor([1.0, 2.0])
        )
        squared = gradcli.func.vmap(gradcli.enable_grad()(lambda v: v * v))(x)
        assert gradcli.func.vmap(lambda v: v)(x).requires_grad
        assert not gradcli.func.vmap(lambda v: w * v)(x).requires_grad
    assert gradcli.autograd.grad(scaled.sum(), w)[0].item() == 3
    assert gradcli.autograd.grad(squared.sum(), x)[0].tolist() == [2, 4]

"""Random programs against torch: a planted fault is found and shrunk, and fixed seeds find nothing."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import pytest

import gradcli
from tests import fuzz
from tests.fuzz import torch_programs

pytestmark = pytest.mark.needs("torch")


class _Planted:
    """gradcli with a wrong sine."""

    Tensor = gradcli.Tensor

    def __getattr__(self, name: str) -> Any:
        return gradcli.cos if name == "sin" else getattr(gradcli, name)


def test_a_planted_fault_is_found_and_shrunk() -> None:
    torch = importlib.import_module("torch")
    lines = [
        "v0 = torch.tensor([1.5, 2.5], requires_grad=True)",
        "v1 = v0 * 2",
        "v2 = torch.sin(v0)",
        "v3 = v2 + v1",
    ]

    def retry(program: list[str]) -> Any:
        return torch_programs.attempt(program, torch, _Planted())

    failure = retry(lines)
    assert failure is not None and failure.key == ("sin", "graph")
    assert torch_programs._shrunk(lines, failure, retry)[0] == [lines[0], lines[2]]
    assert torch_programs.attempt(lines, torch, gradcli) is None


SHAPES = "() (0,) (3,) (0,3) (2,3) (3,0) (2,2) (1,2,2) (2,0,3)".split()
DTYPES = "float16 float64 int64 int32 uint8 bool complex64".split()
SINGULAR = (
    *("inverse", "pinverse"),  # torch's complex inverse has parts of either zero
    "linalg.cond",
    "linalg.cholesky_ex",
)  # of matrices of one number, rounding is all
INEXACT = ("special.airy_ai",)  # torch's loses up to ten digits between -2.6 and -2, near a zero


@pytest.mark.long
@pytest.mark.parametrize(
    ("operand", "variants"),
    [("({0}).to(torch.{1})", DTYPES), ("torch.ones({1})*1.5", SHAPES)],
)
def test_every_sample_in_every_dtype_and_shape(operand: str, variants: list[str]) -> None:
    torch = importlib.import_module("torch")
    found: dict[tuple[str, str], str] = {}
    for lines in torch_programs.every_sample(torch, operand, variants):
        failure = torch_programs.attempt(lines, torch, gradcli)
        if failure is not None and not torch_programs._is_meant(lines, failure):
            found.setdefault(failure.key, f"{lines[0]}\n  {failure.details}")
    refusals = [key for key in found if key[1] in ("words", "taken", "refused")]
    wrong = {
        key: found[key]
        for key in found
        if key not in refusals and key[0] not in (*SINGULAR, *INEXACT)
    }
    assert wrong == {}
    assert len(refusals) <= 30, refusals  # in other words, or in another order


@pytest.mark.long
def test_fixed_seeds_find_no_wrong_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "count", 400)
    found = torch_programs.run(3, 60)
    wrong = ("values", "dtype", "shape", "nan", "inf", "gradient")
    assert [f for f in found if f.split("\n")[0].split(": ", 1)[1].startswith(wrong)] == []

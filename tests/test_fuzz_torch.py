"""Random programs against torch: a planted fault is found and shrunk, and fixed seeds find nothing."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import pytest

import gradcli
from tests import fuzz
from tests.fuzz import torch_programs

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="torch is not installed"
)


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


@pytest.mark.long
def test_fixed_seeds_find_no_wrong_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "count", 400)
    found = torch_programs.run(3, 60)
    wrong = ("values", "dtype", "shape", "nan", "inf", "gradient")
    assert [f for f in found if f.split("\n")[0].split(": ", 1)[1].startswith(wrong)] == []

"""Derivatives where PyTorch's formula loses its digits: the exact ones are mpmath's (accuracy.json)."""

from __future__ import annotations

import json
import sys
from math import inf

import numpy as np
import pytest

import gradcli
from gradcli import language
from tests.golden.record_accuracy import CASES, PATH, by_torch
from tests.sweep import sweep

ENTRIES = json.loads(PATH.read_text(encoding="utf-8"))
ULP = float(np.finfo(np.float64).eps)


def derivative(source: str, x: float) -> float:
    before = gradcli.get_default_dtype()
    gradcli.set_default_dtype(gradcli.float64)
    try:
        leaf = gradcli.tensor(x, requires_grad=True)
        language.run(language.parse(source), {"x": leaf}).value.backward()
        return float(leaf.grad.item())
    finally:
        gradcli.set_default_dtype(before)


@sweep("source", [case[0] for case in CASES], parts=1)
def test_digits(source: str) -> None:
    entries = [e for e in ENTRIES if e["source"] == source]
    assert [e["x"] for e in entries] == next(case[2] for case in CASES if case[0] == source)
    for entry in entries:
        found = derivative(source, entry["x"])
        assert found == pytest.approx(entry["exact"], rel=4 * ULP, abs=0), entry
        lost = abs(entry["torch"] - entry["exact"]) / abs(entry["exact"])
        assert not lost < 50 * ULP, f"torch is as good there: {entry}"


@pytest.mark.parametrize("dtype", [gradcli.float32, gradcli.float16])
@sweep("source", [case[0] for case in CASES if "1e-200" not in case[0]], parts=1)
def test_narrow_dtypes_stay_narrow(source: str, dtype: gradcli.dtype) -> None:
    if dtype is gradcli.float16 and "special." in source:
        return  # PyTorch has no half there
    leaf = gradcli.tensor([0.3, 0.4], dtype=dtype, requires_grad=True)
    names = {"x": leaf + (1 if "acosh" in source else 0)}
    text = source.replace("tensor(1e200)", "x + 1")
    language.run(language.parse(text), names).value.sum().backward()
    assert leaf.grad.dtype is dtype and bool(gradcli.isfinite(leaf.grad).all())


@pytest.mark.needs("torch")
def test_torch_still_answers_so() -> None:
    for entry in ENTRIES:
        found = by_torch(entry["source"], entry["x"])
        assert found == pytest.approx(entry["torch"], rel=1e-12, abs=0, nan_ok=True), entry


def test_without_scipy_pythons_own_functions_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    x = gradcli.tensor([0.5, 0.0, -1.0, inf, 1e308], dtype=gradcli.float64)
    wanted = [gradcli.erf(x), gradcli.erfc(x), gradcli.lgamma(x)]
    monkeypatch.setitem(sys.modules, "scipy", None)
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    for found, said in zip(
        (gradcli.erf(x), gradcli.erfc(x), gradcli.lgamma(x)), wanted, strict=True
    ):
        assert found.tolist() == pytest.approx(said.tolist(), rel=1e-14)
    with pytest.raises(RuntimeError, match=r"^special.ndtri\(\) needs SciPy: pip install"):
        gradcli.special.ndtri(x)

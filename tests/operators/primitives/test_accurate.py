"""Derivatives where PyTorch's formula loses its digits: the exact ones are mpmath's (accuracy.json)."""

from __future__ import annotations

import json
import sys
from math import inf

import numpy as np
import pytest

import gradcli
from gradcli import language
from gradcli.operators.primitives.accurate_slopes import pytorchs
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


@sweep("source", [case[0] for case in CASES], parts=1)
def test_digits_of_pytorch_where_they_are_asked_for(source: str) -> None:
    """`--like torch` has the digits that PyTorch has, to what its functions of the C library differ by."""
    for entry in (e for e in ENTRIES if e["source"] == source):
        with pytorchs():
            found = derivative(source, entry["x"])
        lost = abs(entry["torch"] - entry["exact"])
        assert found == entry["torch"] or abs(found - entry["torch"]) <= 0.25 * lost, entry


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


# The derivatives of sinc of the second order to the fourth, by mpmath; torch's cancel, and are nan at 0.
SINC: dict[float, list[float]] = {
    0.0: [-3.289868133696453, 0.0, 19.481818206800487],
    1e-160: [-3.289868133696453, 1.9481818206800487e-159, 19.481818206800487],
    -1e-8: [-3.289868133696452, -1.9481818206800485e-07, 19.48181820680048],
    1e-3: [-3.289858392793072, 0.01948179531659038, 19.48174953618773],
    0.3: [-2.4584852862661744, 5.24749315292437, 13.648773849855683],
}


@sweep("x", list(SINC), parts=1)
def test_sinc_is_smooth_at_0(x: float) -> None:
    found = leaf = gradcli.tensor(x, dtype=gradcli.float64, requires_grad=True)
    found = gradcli.sinc(leaf)
    slopes = []
    for _ in range(4):
        (found,) = gradcli.autograd.grad(found, leaf, create_graph=True)
        slopes.append(found.item())
    assert slopes[1:] == pytest.approx(SINC[x], rel=1e-13, abs=1e-300), x
    both = gradcli.func.jacfwd(gradcli.func.jacfwd(gradcli.sinc))(leaf.detach())
    batch = gradcli.func.vmap(gradcli.func.hessian(gradcli.sinc))(gradcli.stack([leaf, leaf + 2]))
    assert [both.item(), batch[0].item()] == pytest.approx([SINC[x][0]] * 2, rel=1e-13)


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

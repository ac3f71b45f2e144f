"""Sums of many numbers are as exact as those of a few: along every axis, in every dtype, however made."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import compile as plan_of
from gradcli.engine.system.cascaded_sums import NARROW, add_reduce
from tests.golden.record_sums import PATH, entries
from tests.sweep import sweep

RANDOM = np.random.default_rng(0)
# What is added, and along which axes: rows, narrow and wide, columns, those in the middle, and in strides.
ARRAYS: dict[str, tuple[Any, Any]] = {
    "narrow rows": (RANDOM.random((40_003, 2)), 0),
    "a few more than are added one by one": (RANDOM.random((257, 3)), 0),
    "wide rows": (RANDOM.random((2_049, NARROW)), 0),
    "rows of one number": (RANDOM.random((3, 9_000, 1)), 1),
    "columns": (RANDOM.random((2, 40_003)), 1),
    "in the middle": (RANDOM.random((3, 5_003, 2)), 1),
    "the first and the last": (RANDOM.random((400, 3, 300)), (0, 2)),
    "the last two": (RANDOM.random((3, 400, 30)), (-1, -2)),
    "rows in other order": (RANDOM.random((2, 9_000)).T, 0),
    "every second of rows": (RANDOM.random((9_000, 4))[:, ::2], 0),
    "all of every second": (RANDOM.random((9_000, 4))[:, ::2], None),
    "backwards": (RANDOM.random((9_000, 3))[::-1], 0),
    "repeated rows": (np.broadcast_to(RANDOM.random(3), (9_000, 3)), 0),
    "repeated numbers": (np.broadcast_to(RANDOM.random((9_000, 1)), (9_000, 3)), (0, 1)),
    "dims in another order": (RANDOM.random((4, 3_000, 5)).transpose(2, 0, 1), 2),
    "rows before dims in another order": (RANDOM.random((4, 5, 3_000)).transpose(2, 1, 0), (0, 1)),
}
EXACT = {"float16": "float64", "float32": "float64", "complex64": "complex128", "float64": "g"}


@pytest.mark.parametrize("dtype", EXACT)
@sweep("name", list(ARRAYS), parts=1)
def test_digits(name: str, dtype: str) -> None:
    given, axis = ARRAYS[name]
    array = (given * 0.01).astype(dtype) if given.flags.c_contiguous else given.astype(dtype)
    exact = array.astype(EXACT[dtype]).sum(axis=axis, dtype=EXACT[dtype])
    single = dtype == "float16" and np.abs(exact).max() > 60_000
    options: dict[str, Any] = {"dtype": np.float32} if single else {}
    eps = float(np.finfo(np.float32 if single else dtype).eps)
    for keepdims in (False, True):
        found = add_reduce(array, axis, keepdims=keepdims, **options)
        assert found.shape == given.sum(axis, keepdims=keepdims).shape
        off = np.abs(found.reshape(exact.shape) - exact) / np.abs(exact)
        assert float(np.max(off)) < 3 * eps, (name, keepdims)
    out = np.empty(found.shape, found.dtype)
    assert add_reduce(array, axis, keepdims=True, out=out, **options) is out
    np.testing.assert_array_equal(out, found)


def test_each_row_has_the_bits_that_it_has_alone() -> None:
    """So that a plan, which works out some rows at a time, has those of all."""
    for shape in ((7, 300, 1), (7, 3_000, 3), (3, 40_000, 2), (5, 3_000, NARROW)):
        array = RANDOM.random(shape, dtype=np.float32)
        alone = [add_reduce(array[k : k + 1], 1) for k in range(len(array))]
        np.testing.assert_array_equal(add_reduce(array, 1), np.concatenate(alone))


def test_equal_columns_have_the_bits_of_a_few() -> None:
    array = np.full((5_003, 3 * NARROW), 0.1, np.float32)
    np.testing.assert_array_equal(add_reduce(array, 0)[:NARROW], add_reduce(array[:, :NARROW], 0))


REDUCTIONS = {
    "sum": lambda x: gradcli.sum(x, 0),
    "mean": lambda x: gradcli.mean(x, 0),
    "var": lambda x: gradcli.var(x, 0),
    "std": lambda x: gradcli.std(x, 0),
    "nansum": lambda x: gradcli.nansum(x, 0),
    "nanmean": lambda x: gradcli.nanmean(x, 0),
    "norm": lambda x: gradcli.norm(x, 2, 0),
    "norm of order 3": lambda x: gradcli.norm(x, 3, 0),
    "logsumexp": lambda x: gradcli.logsumexp(x, 0),
    "cumsum": lambda x: gradcli.cumsum(x, 0)[-1],
    "count of a product": lambda x: gradcli.einsum("ij->j", x),
    "gradient of what is broadcast": lambda x: _gradient(x),
    "in a batch": lambda x: gradcli.func.vmap(lambda v: v.sum(0), 1)(x),
    "softmax's backward": lambda x: gradcli.softmax(x, 0).sum(0) + x.sum(0),
}


def _gradient(x: Any) -> Any:
    row = gradcli.zeros(x.shape[1], dtype=x.dtype, requires_grad=True)
    (grad,) = gradcli.autograd.grad(row + x, row, x)
    return grad


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@sweep("name", list(REDUCTIONS), parts=2)
def test_reductions_of_many_rows(name: str, dtype: str) -> None:
    array = (RANDOM.random((30_000, 3)) + 0.5).astype(dtype)
    found, exact = (REDUCTIONS[name](gradcli.tensor(a)) for a in (array, array.astype(np.float64)))
    eps = float(np.finfo(dtype).eps)
    np.testing.assert_allclose(found.numpy(), exact.numpy(), rtol=4 * eps)


def test_a_mean_of_many_in_half_precision_and_the_gradients_of_what_is_repeated() -> None:
    b = gradcli.zeros(2, dtype=gradcli.float16, requires_grad=True)
    (gradcli.ones(5000, 2, dtype=gradcli.float16) + b).sum().backward()
    assert b.grad.tolist() == [5000.0, 5000.0]  # one by one there would be 2048
    assert gradcli.full((70_000,), 2.0, dtype=gradcli.float16).mean().item() == 2.0
    wide = gradcli.ones(70_000, dtype=gradcli.float16)
    assert gradcli.sum(wide, dtype=gradcli.float32).item() == 70_000.0


def test_variances_far_from_zero() -> None:
    for count in (100, 30_000):
        x = (RANDOM.standard_normal((count, 2)) + 1e6).astype(np.float32)
        found = gradcli.var(gradcli.tensor(x), 0).numpy()
        np.testing.assert_allclose(found, x.astype(np.float64).var(0, ddof=1), rtol=1e-6)


PROGRAMS = [
    "sum(mean(x, 0)**2)",
    "sum(x + b)",
    "sum(var(x, 0))",
    "sum(sum(x*x, 0)*b)",
    "sum(std(x))",
]


@sweep("source", PROGRAMS, parts=5)
def test_plans_have_the_bits_of_the_tape(source: str) -> None:
    for columns in (2, 300):
        values = {"x": RANDOM.random((5_003, columns)), "b": RANDOM.random(columns)}
        given = {n: v for n, v in values.items() if re.search(rf"\b{n}\b", source)}
        value, grads = plan_of(source).value_and_grad(**given)
        leaves = {n: gradcli.tensor(v, requires_grad=True) for n, v in given.items()}
        space = {n: getattr(gradcli, n) for n in ("sum", "mean", "var", "std")}
        result = eval(source, {**space, **leaves})
        result.backward()
        assert result.item() == value
        for name, leaf in leaves.items():
            np.testing.assert_array_equal(leaf.grad.numpy(), grads[name], err_msg=name)


@pytest.mark.long
def test_ten_million_rows() -> None:
    ones = gradcli.ones(40_000_000, 2, dtype=gradcli.float32)
    assert ones.mean(0).tolist() == [1.0, 1.0]
    x = RANDOM.random((10_000_000, 2), dtype=np.float32)
    found = gradcli.var(gradcli.tensor(x), 0).numpy()
    np.testing.assert_allclose(found, x.astype(np.float64).var(0, ddof=1), rtol=1e-6)


def test_no_recorded_error_is_beyond_a_few_roundings() -> None:
    for entry in json.loads(PATH.read_text(encoding="utf-8")):
        dtype = "float32" if entry["what"] in ("sum", "norm") else entry["dtype"]
        assert entry["gradcli"] < 2 * np.finfo(dtype).eps, entry


@pytest.mark.long
@pytest.mark.needs("torch")
def test_errors_are_as_recorded() -> None:
    recorded = {(e["dtype"], e["rows"], e["what"]): e for e in json.loads(PATH.read_text())}
    for entry in entries(10**5):
        known = recorded[entry["dtype"], entry["rows"], entry["what"]]
        assert entry["gradcli"] == pytest.approx(known["gradcli"], rel=0.1), entry

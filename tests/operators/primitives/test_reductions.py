"""Sums, means, products, extrema, variances and norms where they are special: ties, zeros, nothing, NaN."""

from __future__ import annotations

import warnings
from math import inf, nan
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import language
from gradcli.engine.registry.dimensions import maximum_reduce, sum_over_few
from tests.engine.registry.both import ask, gradient, same, torch, tree
from tests.sweep import sweep

__all__ = ["torch"]
F = "dtype=torch.float64"


# -- subgradients, by name ------------------------------------------------------------------------
SUBGRADIENTS = {
    "amax shares among equal elements": ("x.amax()", [1.0, 3.0, 3.0], [0.0, 0.5, 0.5]),
    "amin shares among equal elements": ("x.amin(0)", [1.0, 1.0, 3.0], [0.5, 0.5, 0.0]),
    "amax along dims shares": ("x.amax(1)", [[2.0, 2.0], [1.0, 3.0]], [[0.5, 0.5], [0.0, 1.0]]),
    "max of all shares": ("x.max()", [1.0, 3.0, 3.0], [0.0, 0.5, 0.5]),
    "min of all shares": ("x.min()", [1.0, 1.0, 3.0], [0.5, 0.5, 0.0]),
    "max along a dim goes to the first": ("x.max(0)[0]", [1.0, 3.0, 3.0], [0.0, 1.0, 0.0]),
    "min along a dim goes to the first": ("x.min(0)[0]", [1.0, 1.0, 3.0], [1.0, 0.0, 0.0]),
    "aminmax of equal elements": ("sum(x.aminmax())", [2.0, 2.0], [1.0, 1.0]),
    "max of NaN goes to the NaN": ("x.max()", [1.0, nan, 3.0], [0.0, 1.0, 0.0]),
    "prod with one zero": ("x.prod()", [2.0, 0.0, 3.0], [0.0, 6.0, 0.0]),
    "prod with two zeros": ("x.prod()", [0.0, 5.0, 0.0], [0.0, 0.0, 0.0]),
    "prod along a dim with zeros": (
        "x.prod(1)",
        [[2.0, 0.0, 3.0], [0.0, 0.0, 4.0], [1.0, 2.0, 3.0]],
        [[0.0, 6.0, 0.0], [0.0, 0.0, 0.0], [6.0, 3.0, 2.0]],
    ),
    "norm at zero": ("x.norm()", [0.0, 0.0], [0.0, 0.0]),
    "1-norm at zero": ("x.norm(1)", [0.0, -2.0], [0.0, -1.0]),
    "3-norm at zero": ("x.norm(3)", [0.0, 0.0], [0.0, 0.0]),
    "half-norm at zero": ("x.norm(0.5)", [0.0, 0.0], [0.0, 0.0]),
    "inf-norm shares": ("x.norm(inf)", [3.0, -3.0, 1.0], [0.5, -0.5, 0.0]),
    "-inf-norm shares": ("x.norm(-inf)", [3.0, -1.0, 1.0], [0.0, -0.5, 0.5]),
    "std at zero": ("x.std()", [2.0, 2.0], [0.0, 0.0]),
    "std of one element": ("x.std(correction=0)", [2.0], [0.0]),
    "logsumexp of infinities": ("x.logsumexp(0)", [0.0, -inf], [1.0, 0.0]),
    "nansum skips NaN": ("x.nansum()", [1.0, nan, 3.0], [1.0, 0.0, 1.0]),
    "cumprod before and after a zero": ("x.cumprod(0)", [2.0, 0.0, 3.0], [1.0, 8.0, 0.0]),
    "cumprod with two zeros": ("x.cumprod(0)", [2.0, 0.0, 3.0, 0.0], [1.0, 8.0, 0.0, 0.0]),
    "cummax goes to the last": ("x.cummax(0)[0]", [2.0, 2.0, 1.0], [1.0, 2.0, 0.0]),
    "cummin goes to the last": ("x.cummin(0)[0]", [2.0, 2.0, 3.0], [1.0, 2.0, 0.0]),
}


@sweep("name", SUBGRADIENTS, parts=1)
def test_subgradient(name: str, torch: Any) -> None:
    expression, x, expected = SUBGRADIENTS[name]
    same(gradient(torch, expression, x), expected)


def test_zero_norm_has_no_gradient(torch: Any) -> None:
    x = torch.tensor([1.0, 0.0], requires_grad=True)
    x.norm(0).backward()
    assert x.grad is None


def test_variance_without_degrees_of_freedom(torch: Any) -> None:
    for name in ("var", "std"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            value = getattr(torch.tensor([3.0]), name)()
        assert str(value.item()) == "nan"
        assert str(caught[0].message).startswith(
            f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the "
            "reduction factor (input numel divided by output numel)."
        )
    same(gradient(torch, "x.var(correction=2)", [1.0, 1.0]), [nan, nan])
    same(gradient(torch, "x.var(correction=5)", [1.0, 2.0]), [inf, inf])


def test_second_derivative_of_prod_at_zeros(torch: Any) -> None:
    x = torch.tensor([2.0, 0.0, 3.0], requires_grad=True)
    (g,) = torch.autograd.grad(x.prod(), x, create_graph=True)
    (h,) = torch.autograd.grad(g[0], x)
    assert h.tolist() == [0.0, 3.0, 0.0]


def test_second_derivative_of_cumprod_at_zeros(torch: Any) -> None:
    x = torch.tensor([2.0, 0.0, 3.0], requires_grad=True)
    (g,) = torch.autograd.grad(x.cumprod(0).sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    assert h.tolist() == [4.0, 6.0, 2.0]


# -- values ---------------------------------------------------------------------------------------
VALUES = {
    # nothing to reduce
    f"torch.zeros(0, {F}).sum()": 0.0,
    f"torch.zeros(0, {F}).prod()": 1.0,
    f"torch.zeros(0, {F}).mean()": nan,
    f"torch.zeros(0, 3, {F}).sum(0)": [0.0, 0.0, 0.0],
    f"torch.zeros(0, 3, {F}).sum(1)": [],
    f"torch.zeros(0, 3, {F}).mean(0)": [nan, nan, nan],
    f"torch.zeros(0, 3, {F}).max(1)[1]": [],
    f"torch.zeros(0, 3, {F}).amax(1)": [],
    f"torch.zeros(0, {F}).logsumexp(0)": -inf,
    f"torch.zeros(0, {F}).softmax(0)": [],
    f"torch.zeros(0, {F}).cumsum(0)": [],
    "torch.zeros(0).all()": True,
    "torch.zeros(0).any()": False,
    f"torch.linalg.vector_norm(torch.zeros(0, {F}))": 0.0,
    f"torch.zeros(0, {F}).nansum()": 0.0,
    # all dims, no dims, 0-d
    "x.sum(())": 10.0,
    "x.sum(dim=None)": 10.0,
    "x.sum((0, -1), keepdim=True)": [[10.0]],
    "x.amax(())": 4.0,
    "x.all(())": [[True, True], [True, True]],
    "x.sum(axis=1, keepdims=True)": [[3.0], [7.0]],
    "torch.tensor(3.0).sum(0)": 3.0,
    "torch.tensor(3.0).sum((-1,))": 3.0,
    "torch.tensor(3.0).max(0)[1]": 0,
    "torch.tensor(3.0).cumsum(0)": 3.0,
    "torch.tensor(3.0).softmax(-1)": 1.0,
    # NaN
    "torch.tensor([1.0, nan, 3.0]).max()": nan,
    "torch.tensor([1.0, nan, 3.0]).argmax()": 1,
    "torch.tensor([1.0, nan, 3.0]).argmin()": 1,
    "torch.tensor([1.0, nan, 3.0]).min(0)[1]": 1,
    "torch.tensor([nan, 1.0]).amin()": nan,
    "torch.tensor([nan, 1.0]).nansum()": 1.0,
    "torch.tensor([nan, nan]).nanmean()": nan,
    "torch.tensor([2.0, 2.0, 1.0, 1.0]).argmax()": 0,
    "torch.tensor([2.0, 2.0, 1.0, 1.0]).argmin()": 2,
    # infinities
    "torch.tensor([-inf, -inf]).logsumexp(0)": -inf,
    "torch.tensor([inf, 1.0]).logsumexp(0)": inf,
    "torch.tensor([1000.0, 1000.0]).softmax(0)": [0.5, 0.5],
    "torch.tensor([-inf, -inf]).softmax(0)": [nan, nan],
    "torch.tensor([-inf, 0.0]).log_softmax(0)": [-inf, 0.0],
    # the overloads of var
    "x.var(False)": 1.25,
    "x.var(1, False)": [0.25, 0.25],
    "x.var(1, True, True)": [[0.5], [0.5]],
    "x.var(correction=0)": 1.25,
    "x.var(dim=0, correction=0.5)": [4 / 3, 4 / 3],
    "torch.var_mean(x, 1)[1]": [1.5, 3.5],
    "torch.std_mean(x, correction=0)[0] ** 2": 1.25,
    # orders of norms
    "x.norm(0)": 4.0,
    "x.norm(-1)": 1 / (1 + 1 / 2 + 1 / 3 + 1 / 4),
    "x.norm(1, 1)": [3.0, 7.0],
    "x.norm('fro', dim=0, keepdim=True)": [[10**0.5, 20**0.5]],
    "torch.linalg.vector_norm(x, inf, (0, 1))": 4.0,
    "torch.dist(x, x + 1, 1)": 4.0,
}


@sweep("expression", VALUES, parts=1)
def test_value(expression: str, torch: Any) -> None:
    found = ask(torch, expression, x=[[1.0, 2.0], [3.0, 4.0]])
    same(found.tolist(), VALUES[expression])


DTYPES = {
    "i.sum()": "int64",
    "b.sum()": "int64",
    "b.prod()": "int64",
    "u.sum()": "int64",
    "u.cumsum(0)": "int64",
    "i.sum(dtype=torch.float32)": "float32",
    "i.mean(dtype=torch.float64)": "float64",
    "u.all()": "uint8",
    "u.any(0)": "uint8",
    "i.all()": "bool",
    "i.logsumexp(0)": "float32",
    "h.sum()": "float16",
    "h.mean()": "float16",
    "h.softmax(0)": "float16",
    "h.var()": "float16",
    "h.norm()": "float16",
    "h.cumsum(0)": "float16",
    "h.softmax(0, dtype=torch.float64)": "float64",
    "i.argmax()": "int64",
    "i.max()": "int64",
    "b.max()": "bool",
    "c.norm()": "float32",
    "c.var()": "float32",
    "c.sum()": "complex64",
}


@sweep("expression", DTYPES, parts=1)
def test_dtype(expression: str, torch: Any) -> None:
    inputs = {
        "i": torch.tensor([1, 2, 3], dtype=torch.int32).long(),
        "b": torch.tensor([True, False]),
        "u": torch.tensor([1, 2], dtype=torch.uint8),
        "h": torch.tensor([1.0, 2.0], dtype=torch.float16),
        "c": torch.tensor([1 + 2j, 3.0], dtype=torch.complex64),
    }
    assert str(ask(torch, expression, **inputs).dtype) == f"torch.{DTYPES[expression]}"


# -- the graph ------------------------------------------------------------------------------------
TREES = {
    "x.sum()": "Sum0(x)",
    "x.sum(dim=None)": "Sum1(x)",
    "x.mean(0)": "Mean1(x)",
    "x.prod(0)": "Prod1(x)",
    "x.max()": "Max1(x)",
    "x.max(0)[0]": "Max0(x)",
    "x.amax()": "Amax0(x)",
    "torch.max(x, x)": "Maximum0(x, x)",
    "x.var()": "Var0(x)",
    "torch.std_mean(x)[1]": "StdMean0(x)",
    "x.norm()": "LinalgVectorNorm0(x)",
    "x.logsumexp(0)": "Logsumexp0(x)",
    "x.softmax(0)": "Softmax0(x)",
    "x.softmax(0, dtype=torch.float32)": "Softmax0(ToCopy0(x))",
    "torch.nn.functional.softmin(x, 0)": "Softmax0(Neg0(x))",
    "x.nanmean()": "Div0(Nansum0(x), -)",
}


@sweep("expression", TREES, parts=1)
def test_graph(expression: str, torch: Any) -> None:
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    assert tree(ask(torch, expression, x=x).grad_fn) == TREES[expression]


def test_saved_fields(torch: Any) -> None:
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    assert x.sum(-1).grad_fn._saved_dim == (2**64 - 1,)
    assert x.max(1)[0].grad_fn._saved_indices.tolist() == [1, 1]
    assert x.var().grad_fn._saved_correction is None
    assert x.var(0).grad_fn._saved_correction == 1
    assert x.norm(-1).grad_fn._saved_ord == -1
    assert x.amax().grad_fn._saved_dim == ()


def test_return_types(torch: Any) -> None:
    found = torch.tensor([1.0, 3.0]).max(0)
    assert found.values.item() == found[0].item() == 3.0
    assert found.indices.item() == 1
    assert isinstance(found, tuple)
    assert repr(found) == "torch.return_types.max(\nvalues=tensor(3.),\nindices=tensor(1))"
    low, high = torch.tensor([1.0, 3.0]).aminmax()
    assert (low.item(), high.item()) == (1.0, 3.0)


# -- refusals -------------------------------------------------------------------------------------
ERRORS = {
    "x.sum(2)": (
        IndexError,
        "Dimension out of range (expected to be in range of [-2, 1], but got 2)",
    ),
    "torch.tensor(1.0).sum(1)": (
        IndexError,
        "Dimension out of range (expected to be in range of [-1, 0], but got 1)",
    ),
    "x.sum((0, 0))": (RuntimeError, "dim 0 appears multiple times in the list of dims"),
    "i.mean()": (
        RuntimeError,
        "mean(): could not infer output dtype. Input dtype must be either a floating point or "
        "complex dtype. Got: Long",
    ),
    "torch.tensor([]).max()": (
        RuntimeError,
        "max(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
        "reduction dim with the 'dim' argument.",
    ),
    "torch.tensor([]).amin()": (
        RuntimeError,
        "amin(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
        "reduction dim with the 'dim' argument.",
    ),
    "torch.tensor([]).argmax()": (
        IndexError,
        "argmax(): Expected reduction dim to be specified for input.numel() == 0.",
    ),
    "torch.ones(0, 3).max(0)": (
        IndexError,
        "max(): Expected reduction dim 0 to have non-zero size.",
    ),
    "torch.ones(0, 3).amax(0)": (
        IndexError,
        "amax(): Expected reduction dim 0 to have non-zero size.",
    ),
    "c.max()": (NotImplementedError, "\"max_all\" not implemented for 'ComplexFloat'"),
    "c.max(0)": (RuntimeError, "max(): does not support complex input"),
    "c.amax()": (NotImplementedError, "\"max_values_cpu\" not implemented for 'ComplexFloat'"),
    "c.argmax()": (RuntimeError, "argmax(): does not support complex input"),
    "i.var()": (RuntimeError, "std and var only support floating point and complex dtypes"),
    "torch.var_mean(i)": (
        RuntimeError,
        "var_mean only support floating point and complex dtypes",
    ),
    "i.norm()": (
        RuntimeError,
        "linalg.vector_norm: Expected a floating point or complex tensor as input. Got Long",
    ),
    "x.norm(dtype=torch.float32)": (
        RuntimeError,
        "linalg.vector_norm: the dtype of the input (Double) should be convertible without "
        "narrowing to the specified dtype (Float)",
    ),
    "torch.linalg.vector_norm(torch.zeros(0), inf)": (
        RuntimeError,
        "linalg.vector_norm cannot compute the inf norm on an empty tensor because the operation "
        "does not have an identity",
    ),
    "i.softmax(0)": (
        NotImplementedError,
        "\"softmax_lastdim_kernel_impl\" not implemented for 'Long'",
    ),
    "x.softmax(2)": (
        IndexError,
        "Dimension out of range (expected to be in range of [-2, 1], but got 2)",
    ),
    "i.logcumsumexp(0)": (
        NotImplementedError,
        "\"logcumsumexp_out_cpu\" not implemented for 'Long'",
    ),
    "c.nansum()": (RuntimeError, "nansum on CPU does not support complex inputs"),
    "torch.max(x, 2.0)": (TypeError, "max() received an invalid combination of arguments - got "),
    "torch.sum(x, keepdim=True)": (
        TypeError,
        "sum() received an invalid combination of arguments - got (Tensor, keepdim=bool), but ",
    ),
    "torch.prod(x, (0, 1))": (TypeError, "prod() received an invalid combination of arguments"),
}


@sweep("expression", ERRORS, parts=1)
def test_refusal(expression: str, torch: Any) -> None:
    kind, message = ERRORS[expression]
    inputs = {"i": torch.tensor([1, 2]), "c": torch.tensor([1 + 1j])}
    with pytest.raises(kind) as caught:
        ask(torch, expression, x=[[1.0, 2.0], [3.0, 4.0]], **inputs)
    assert str(caught.value).startswith(message)


def test_implicit_dimension_of_softmax_is_deprecated(torch: Any) -> None:
    with pytest.warns(UserWarning, match="Implicit dimension choice for softmax has been"):
        torch.nn.functional.softmax(torch.ones(2, 3))


def test_gradient_of_a_cast_reduction_has_the_dtype_of_its_input(torch: Any) -> None:
    for name in ("sum", "mean", "prod"):
        x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
        getattr(x, name)(dtype=torch.float32).backward()
        assert x.grad.dtype == torch.float64


def test_large_gradients_of_sums_are_the_leafs_own(torch: Any) -> None:
    """A broadcast gradient must not be shared with the leaf: it can be written."""
    x = torch.zeros(100, 100, requires_grad=True)
    x.sum().backward()
    x.grad[0, 0] = 5
    assert x.grad.sum().item() == 10_004


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@sweep("columns", range(2, 19), parts=1)
def test_sums_of_few_columns_have_the_bits_of_numpy(columns: int, dtype: type) -> None:
    x = np.random.default_rng(columns).standard_normal((3001, columns)).astype(dtype)
    x[5, 1], x[6, 0] = np.inf, np.nan
    for ufunc, ours in ((np.add, sum_over_few), (np.maximum, maximum_reduce)):
        for keepdims in (False, True):
            wanted = ufunc.reduce(x, axis=1, keepdims=keepdims)
            found = ours(x, axis=(1,), keepdims=keepdims)
            assert found.shape == wanted.shape
            np.testing.assert_array_equal(found, wanted)


# Of a number, along its one dim: the value, its slope, and the slope of that.
OF_A_NUMBER = [
    *[(f"norm(x, {p}, 0)", 2.5, -1.0, 0.0) for p in ("1", "2", "3", "inf", "-inf")],
    *[(f"linalg.vector_norm(x, {p}, -1, True)", 2.5, -1.0, 0.0) for p in ("inf", "-inf")],
    *[(f"nn.functional.normalize(x, {p}, 0)", -1.0, 0.0, 0.0) for p in ("2", "inf")],
    *[(f"{name}(x, 0)", -2.5, 1.0, 0.0) for name in ("sum", "mean", "prod", "amax", "amin")],
    *[(f"{name}(x, -1, True)", -2.5, 1.0, 0.0) for name in ("nansum", "nanmean", "logsumexp")],
    ("var(x, dim=0, correction=0)", 0.0, 0.0, 0.0),
]


@sweep(("source", "value", "slope", "bend"), OF_A_NUMBER, parts=1)
def test_a_number_has_one_dim(source: str, value: float, slope: float, bend: float) -> None:
    x = gradcli.tensor(-2.5, dtype=gradcli.float64, requires_grad=True)
    found = language.run(language.parse(source), {"x": x}).value
    (plain,) = gradcli.autograd.grad(found, x, retain_graph=True)
    (kept,) = gradcli.autograd.grad(found, x, create_graph=True)
    again = gradcli.autograd.grad(kept, x)[0].item() if kept.requires_grad else 0.0
    answers = [found.item(), plain.item(), kept.item(), again]
    assert answers == pytest.approx([value, slope, slope, bend], abs=1e-15), source

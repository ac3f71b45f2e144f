"""Covariances, differences, distances, counts: where they are special, and what they refuse."""

from __future__ import annotations

import warnings
from math import inf, nan
from typing import Any

import pytest

import gradcli
from tests.engine.registry.both import ask, gradient, same, torch, tree
from tests.sweep import sweep

__all__ = ["torch"]
X = [[1.0, 2.0, 4.0], [3.0, 1.0, 0.0]]

VALUES = {
    "x.diff()": [[1.0, 2.0], [-2.0, -1.0]],
    "x.diff(2)": [[1.0], [1.0]],
    "x.diff(5)": [[], []],
    "x.diff(n=0)": X,
    "x.diff(dim=0)": [[2.0, -1.0, -4.0]],
    "x.diff(prepend=x[:, :1])": [[0.0, 1.0, 2.0], [0.0, -2.0, -1.0]],
    "torch.tensor([True, False, False]).diff()": [True, False],
    "torch.trapezoid(x)": [4.5, 2.5],
    "torch.trapezoid(x, dx=2)": [9.0, 5.0],
    "torch.trapezoid(x, torch.tensor([0.0, 1.0, 3.0]))": [7.5, 3.0],
    "torch.trapz(x, dim=0)": [2.0, 1.5, 2.0],
    "torch.cumulative_trapezoid(x)": [[1.5, 4.5], [2.0, 2.5]],
    "torch.gradient(x[0])[0]": [1.0, 1.5, 2.0],
    "torch.gradient(x[0], edge_order=2)[0]": [0.5, 1.5, 2.5],
    "torch.gradient(x[0], spacing=(torch.tensor([0.0, 1.0, 3.0]),))[0]": [1.0, 1.0, 1.0],
    "x.cov(correction=0)": [[14 / 9, -13 / 9], [-13 / 9, 14 / 9]],
    "x[0].cov()": 7 / 3,
    "x[0].corrcoef()": 1.0,
    "x.nanmean()": 11 / 6,
    "x.count_nonzero(1)": [3, 2],
    "x.histc(2, min=0, max=4)": [3.0, 3.0],
    "torch.tensor([2.0, 2.0]).histc(2)": [0.0, 2.0],
    "torch.bincount(torch.tensor([1, 3, 1]), minlength=5)": [0, 2, 0, 1, 0],
    "torch.bincount(torch.tensor([1, 0]), torch.tensor([0.5, 2.0]))": [2.0, 0.5],
    "torch.unique(x)": [0.0, 1.0, 2.0, 3.0, 4.0],
    "torch.unique(torch.tensor([3, 1, 3]), return_counts=True)[1]": [1, 2],
    "torch.unique(torch.tensor([3, 1, 3]), return_inverse=True)[1]": [1, 0, 1],
    "torch.unique_consecutive(torch.tensor([3, 3, 1, 3]))": [3, 1, 3],
    "torch.searchsorted(torch.tensor([1.0, 3.0]), torch.tensor([0.0, 3.0, 9.0]))": [0, 1, 2],
    "torch.searchsorted(torch.tensor([1.0, 3.0]), 3.0, right=True)": 2,
    "torch.bucketize(torch.tensor([0.0, 3.0]), torch.tensor([1.0, 3.0]), right=True)": [0, 2],
    "torch.dist(x[0], x[1], inf)": 4.0,
    "torch.cdist(x, x, 1.0)": [[0.0, 7.0], [7.0, 0.0]],
    "torch.cdist(x, x, 0.0)": [[0.0, 3.0], [3.0, 0.0]],
    "torch.pdist(x)": [21**0.5],
    "torch.cosine_similarity(x[0], x[0], 0)": 1.0,
    "torch.cosine_similarity(torch.zeros(3), x[0].float(), 0)": 0.0,
    "x.renorm(1, 0, 3.5)": [[0.5, 1.0, 2.0], [2.625, 0.875, 0.0]],
}


@sweep("expression", VALUES, parts=1)
def test_value(expression: str, torch: Any) -> None:
    same(ask(torch, expression, x=X).tolist(), VALUES[expression], 1e-6)


SUBGRADIENTS = {
    "cdist of equal points": ("torch.cdist(x, x)", [[1.0, 2.0], [1.0, 2.0]], [[0.0, 0.0]] * 2),
    "cdist with p=1": ("torch.cdist(x, x[:1], 1.0)[1]", [[1.0], [1.0]], [[0.0], [0.0]]),
    "cdist with p=inf": (
        "torch.cdist(x[:1], x[1:], inf)",
        [[1.0, 5.0], [2.0, 2.0]],
        [[0.0, 1.0], [0.0, -1.0]],
    ),
    "cdist with p=0": ("torch.cdist(x[:1], x[1:], 0.0)", [[1.0], [2.0]], [[0.0], [0.0]]),
    "cdist with p=3 at zero": ("torch.cdist(x, x, 3.0)", [[1.0], [1.0]], [[0.0], [0.0]]),
    "pdist of equal points": ("torch.pdist(x)", [[1.0], [1.0]], [[0.0], [0.0]]),
    "dist at zero": ("torch.dist(x, x.detach())", [1.0, 2.0], [0.0, 0.0]),
    "renorm below the limit": ("x.renorm(2, 0, 9.0)", [[1.0], [2.0]], [[1.0], [1.0]]),
    "renorm at zero": ("x.renorm(2, 0, 9.0)", [[0.0], [0.0]], [[1.0], [1.0]]),
    "corrcoef clips": ("x.corrcoef()[0, 0]", [[1.0, 2.0], [2.0, 4.0]], [[0.0, 0.0]] * 2),
    "diff of nothing": ("x.diff(n=0)", [1.0, 2.0], [1.0, 1.0]),
    "nanmean": ("x.nanmean()", [nan, 2.0, 4.0], [0.0, 0.5, 0.5]),
    "trapezoid in its abscissas": ("torch.trapezoid(x * 0 + 2, x)", [0.0, 1.0], [-2.0, 2.0]),
}


@sweep("name", SUBGRADIENTS, parts=1)
def test_subgradient(name: str, torch: Any) -> None:
    expression, x, expected = SUBGRADIENTS[name]
    same(gradient(torch, expression, x), expected)


TREES = {
    "x.diff()": "Sub0(Slice0(x), Slice0(x))",
    "torch.trapezoid(x)": "MulBackward1(Sub0(Sum1(x), MulBackward1(Add0(Select0(x), Select0(x)))))",
    "torch.dist(x, x)": "Dist0(x, x)",
    "torch.cdist(x, x)": "Cdist0(x, x)",
    "torch.cdist(x, x, compute_mode='use_mm_for_euclid_dist')": "View0(EuclideanDist0(x, x))",
    "torch.pdist(x)": "Pdist0(x)",
    "torch.nn.functional.pairwise_distance(x, x)": "Norm1(AddBackward1(Sub0(x, x)))",
    "x.cov()": (
        "Squeeze0(Div0(Mm0(Sub0(x, Unsqueeze0(Div0(Sum1(x), -))), "
        "T0(Sub0(x, Unsqueeze0(Div0(Sum1(x), -))))), -))"
    ),
    "torch.unique(x)": "Unique20(x)",
}


@sweep("expression", TREES, parts=1)
def test_graph(expression: str, torch: Any) -> None:
    x = torch.tensor(X, dtype=torch.float64, requires_grad=True)
    found = tree(ask(torch, expression, x=x).grad_fn)
    assert found == TREES[expression].replace("Backward1", "1")


def test_what_has_no_derivative_says_so(torch: Any) -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(NotImplementedError, match="the derivative for '_unique2' is not implem"):
        torch.unique(x).sum().backward()
    y = torch.tensor([[1.0], [2.0]], requires_grad=True)
    (g,) = torch.autograd.grad(torch.pdist(y).sum(), y, create_graph=True)
    with pytest.raises(NotImplementedError, match="the derivative for '_pdist_backward' is not"):
        g.sum().backward()


def test_covariance_without_degrees_of_freedom_warns(torch: Any) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = torch.tensor([[1.0, 2.0]]).cov(correction=2)
    assert found.item() == inf
    assert str(caught[0].message).startswith("cov(): degrees of freedom is <= 0. Correction should")


ERRORS = {
    "torch.tensor(1.0).diff()": (RuntimeError, "diff expects input to be at least one-dimensi"),
    "x.diff(-1)": (RuntimeError, "order must be non-negative but got -1"),
    "x.diff(prepend=x[0])": (RuntimeError, "diff expects prepend or append to be the same dime"),
    "torch.gradient(x, edge_order=3)": (RuntimeError, "torch.gradient only supports edge_order=1"),
    "torch.gradient(x[0, :1])": (RuntimeError, "torch.gradient expected each dimension size to be"),
    "torch.zeros(1, 1, 1).cov()": (RuntimeError, "cov(): expected input to have two or fewer dim"),
    "torch.bincount(torch.tensor([-1]))": (RuntimeError, "bincount only supports 1-d non-negat"),
    "torch.bincount(x)": (NotImplementedError, "\"bincount_cpu\" not implemented for 'Double'"),
    "torch.tensor([1]).nanmean()": (RuntimeError, "nanmean(): expected input to have floating"),
    "torch.cdist(x, x[:, :2])": (RuntimeError, "X1 and X2 must have the same number of columns."),
    "torch.cdist(x[0], x)": (RuntimeError, "cdist only supports at least 2D tensors, X1 got: 1D"),
    "torch.pdist(x[0])": (RuntimeError, "pdist only supports 2D tensors, got: 1D"),
    "x.renorm(-1, 0, 1)": (RuntimeError, "renorm: non-positive-norm not supported"),
    "x[0].renorm(2, 0, 1)": (RuntimeError, "renorm: input needs at least 2 dimensions, got 1 dim"),
    "x.aminmax(dim=2)": (IndexError, "Dimension out of range (expected to be in range of [-2, 1]"),
}


@sweep("expression", ERRORS, parts=1)
def test_refusal(expression: str, torch: Any) -> None:
    kind, message = ERRORS[expression]
    with pytest.raises(kind) as caught:
        ask(torch, expression, x=torch.tensor(X, dtype=torch.float64))
    assert str(caught.value).startswith(message)


def test_histogram_edges_are_rounded_in_the_inputs_dtype() -> None:
    """A value on an edge belongs to the bin that the edge begins, as PyTorch has it."""
    found = gradcli.histogram(gradcli.tensor([0.7, 0.1, 0.3], dtype=gradcli.float32), 10)
    assert found.hist.tolist() == [1, 0, 0, 1, 0, 0, 0, 0, 0, 1]
    one = gradcli.histogram(gradcli.tensor([0.3], dtype=gradcli.float32), 10)
    assert one.hist.tolist() == [0, 0, 0, 0, 0, 1, 0, 0, 0, 0]

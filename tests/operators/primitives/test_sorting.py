"""Order statistics: which of several equal elements is selected, NaN, nothing to select, refusals."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.engine.system import selection
from tests.engine.registry.both import ask, gradient, same, torch, tree
from tests.sweep import sweep

__all__ = ["torch"]

# -- ties -----------------------------------------------------------------------------------------
TIES = [2.0, 1.0, 2.0, 0.0, 1.0, 2.0, 0.0, 1.0]
LONG = [float(k * 7 % 5) for k in range(40)]  # beyond 16 elements the default sort is not stable

# The indices that each function gives for TIES.
SELECTED = {
    "x.sort()[1]": [3, 6, 1, 4, 7, 0, 2, 5],
    "x.sort(descending=True)[1]": [0, 2, 5, 1, 4, 7, 3, 6],
    "x.median(0)[1]": 4,
    "x.nanmedian(0)[1]": 4,
    "x.kthvalue(2)[1]": 6,
    "x.kthvalue(5)[1]": 1,
    "x.mode()[1]": 7,
    "x.topk(3)[1]": [2, 0, 5],
    "x.topk(4, largest=False)[1]": [6, 3, 4, 7],
    "x.topk(4, sorted=False)[1]": [2, 0, 5, 4],
    "x.cummax(0)[1]": [0, 0, 2, 2, 2, 5, 5, 5],
    "x.cummin(0)[1]": [0, 1, 1, 3, 3, 3, 6, 6],
}


@sweep("expression", SELECTED, parts=1)
def test_ties(expression: str, torch: Any) -> None:
    assert ask(torch, expression, x=TIES).tolist() == SELECTED[expression]


def test_long_ties(torch: Any) -> None:
    x = torch.tensor(LONG)
    assert x.sort(stable=True)[1].tolist() == np.argsort(LONG, kind="stable").tolist()
    assert x.sort()[1].tolist()[:8] == [10, 20, 25, 15, 30, 35, 5, 0]
    assert x.argsort().tolist() == x.sort()[1].tolist()
    assert x.topk(3)[1].tolist() == [27, 7, 32]


def test_ties_in_a_matrix(torch: Any) -> None:
    x = torch.tensor([[1.0, 1.0], [3.0, 2.0], [1.0, 2.0]])
    assert x.kthvalue(2, 0)[1].tolist() == [0, 1]
    assert x.mode(0)[1].tolist() == [2, 2]
    assert x.topk(2, 0)[1].tolist() == [[1, 1], [0, 2]]
    assert [found.stride() for found in x.topk(2, 0)] == [(2, 1), (2, 1)]


# -- gradients ------------------------------------------------------------------------------------
SUBGRADIENTS = {
    "median of all shares": ("x.median()", [1.0, 2.0, 2.0, 5.0], [0.0, 0.5, 0.5, 0.0]),
    "median along a dim": ("x.median(0)[0]", [3.0, 1.0, 2.0, 4.0], [0.0, 0.0, 1.0, 0.0]),
    "nanmedian": ("x.nanmedian()", [nan, 1.0, 3.0], [0.0, 1.0, 0.0]),
    "median of NaN": ("x.median()", [1.0, nan, nan], [0.0, 0.5, 0.5]),
    "kthvalue": ("x.kthvalue(2)[0]", [3.0, 1.0, 2.0], [0.0, 0.0, 1.0]),
    "mode": ("x.mode()[0]", [3.0, 1.0, 3.0, 1.0], [0.0, 0.0, 0.0, 1.0]),
    "topk": ("x.topk(2)[0]", [3.0, 1.0, 2.0], [1.0, 0.0, 1.0]),
    "sort": ("x.sort()[0][0]", [3.0, 1.0, 2.0], [0.0, 1.0, 0.0]),
    "quantile between two": ("x.quantile(0.25)", [4.0, 0.0, 1.0], [0.0, 0.5, 0.5]),
    "quantile at one": ("x.quantile(0.5)", [4.0, 0.0, 1.0], [0.0, 0.0, 1.0]),
    "quantile of 0-d": ("x.quantile(0.3)", 4.0, 1.0),
    "nanquantile": ("x.nanquantile(0.5)", [nan, 1.0, 3.0], [0.0, 0.5, 0.5]),
}


@sweep("name", SUBGRADIENTS, parts=1)
def test_subgradient(name: str, torch: Any) -> None:
    expression, x, expected = SUBGRADIENTS[name]
    same(gradient(torch, expression, x), expected)


def test_gradient_of_the_quantiles_points(torch: Any) -> None:
    x = torch.tensor([0.0, 1.0, 4.0])
    q = torch.tensor([0.25, 0.75], requires_grad=True)
    x.quantile(q).sum().backward()
    assert q.grad.tolist() == [2.0, 6.0]


# -- values ---------------------------------------------------------------------------------------
VALUES = {
    "x.median()": 2.0,  # the lower of two in the middle
    "x.median(1)[0]": [1.0, 3.0],
    "torch.tensor([]).median()": nan,
    "torch.tensor([1, 2, 3, 4]).median()": 2,
    "torch.zeros(0, 3).median(1)[0]": [],
    "torch.tensor([1.0, nan, 3.0]).median()": nan,
    "torch.tensor([[1.0, nan], [nan, nan]]).nanmedian(1)[0]": [1.0, nan],
    "torch.tensor([nan, 1.0, 2.0]).sort()[0]": [1.0, 2.0, nan],
    "torch.tensor([nan, 1.0, 2.0]).sort(descending=True)[0]": [nan, 2.0, 1.0],
    "torch.tensor([nan, 1.0, 2.0]).topk(2)[0]": [nan, 2.0],
    "torch.tensor([nan, 1.0, 2.0]).kthvalue(3)[0]": nan,
    "torch.tensor([True, False]).sort()[1]": [1, 0],
    "torch.tensor(3.0).sort()[1]": 0,
    "torch.tensor(3.0).topk(1)[0]": 3.0,
    "x.topk(0)[0]": [[], []],
    "torch.msort(x)": [[1.0, 2.0], [3.0, 4.0]],
    "x.argsort(0, True)": [[1, 1], [0, 0]],
    "x.quantile(0.5)": 2.5,
    "x.quantile(0.5, 1)": [1.5, 3.5],
    "x.quantile(0.5, dim=0, keepdim=True)": [[2.0, 3.0]],
    "x.quantile(torch.tensor([0.0, 1.0], dtype=torch.float64), 1)": [[1.0, 3.0], [2.0, 4.0]],
    "x.quantile(0.4, interpolation='lower')": 2.0,
    "x.quantile(0.4, interpolation='higher')": 3.0,
    "x.quantile(0.5, interpolation='nearest')": 3.0,
    "x.quantile(0.4, interpolation='midpoint')": 2.5,
    "torch.tensor([nan, 1.0]).quantile(0.0)": nan,
    "torch.tensor([nan, 1.0, 2.0]).nanquantile(1.0)": 2.0,
    "torch.tensor([1.0, nan, 3.0]).cummax(0)[0]": [1.0, nan, nan],
    "torch.tensor([1.0, nan, 3.0]).cummax(0)[1]": [0, 1, 1],
    "torch.tensor([-inf, 0.0, 0.0]).logcumsumexp(0)": [-inf, 0.0, 0.6931471824645996],
}


@sweep("expression", VALUES, parts=1)
def test_value(expression: str, torch: Any) -> None:
    same(ask(torch, expression, x=[[1.0, 2.0], [3.0, 4.0]]).tolist(), VALUES[expression], 1e-6)


def test_graph(torch: Any) -> None:
    x = torch.tensor([1.0, 3.0, 2.0], requires_grad=True)
    assert tree(x.sort()[0].grad_fn) == "Sort0(x)"
    assert tree(x.sort(stable=True)[0].grad_fn) == "Sort1(x)"
    assert tree(x.median().grad_fn) == "Median0(x)"
    assert tree(x.median(0)[0].grad_fn) == "Median1(x)"
    gathered = "Gather0(View0(Sort0(View0(x))))"
    flat = torch.ones(2, 2, requires_grad=True)
    assert tree(flat.quantile(0.5).grad_fn) == f"Squeeze4(Lerp1({gathered}, {gathered}, -))"


# -- refusals -------------------------------------------------------------------------------------
ERRORS = {
    "x.kthvalue(3)": (
        RuntimeError,
        "kthvalue(): selected number k out of range for dimension 1",
    ),
    "x.topk(3)": (RuntimeError, "selected index k out of range"),
    "c.sort()": (RuntimeError, " Sort does not support complex dtypes on CPU"),
    "c.median()": (NotImplementedError, "\"median_cpu\" not implemented for 'ComplexFloat'"),
    "torch.zeros(0).mode()": (
        IndexError,
        "mode(): Expected reduction dim 0 to have non-zero size.",
    ),
    "torch.zeros(0).median(0)": (
        IndexError,
        "median(): Expected reduction dim 0 to have non-zero size.",
    ),
    "x.quantile(1.5)": (
        RuntimeError,
        "quantile() q must be in the range [0, 1] but got 1.5",
    ),
    "x.quantile(torch.tensor(0.5))": (
        RuntimeError,
        "quantile() q tensor must be same dtype as the input tensor",
    ),
    "x.quantile(0.5, interpolation='cubic')": (
        RuntimeError,
        "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but "
        "got cubic",
    ),
    "torch.zeros(0).quantile(0.5)": (RuntimeError, "quantile() input tensor must be non-empty"),
    "torch.tensor([1]).quantile(0.5)": (
        RuntimeError,
        "quantile() input tensor must be either float or double dtype",
    ),
    "c.cummax(0)": (NotImplementedError, "\"cummax_cpu\" not implemented for 'ComplexFloat'"),
}


@sweep("expression", ERRORS, parts=1)
def test_refusal(expression: str, torch: Any) -> None:
    kind, message = ERRORS[expression]
    with pytest.raises(kind) as caught:
        ask(torch, expression, x=[[1.0, 2.0], [3.0, 4.0]], c=torch.tensor([1 + 1j]))
    assert str(caught.value).startswith(message)


# -- the algorithms -------------------------------------------------------------------------------
@sweep("size", [1, 2, 3, 4, 7, 16, 17, 40, 200], parts=1)
def test_selection_orders_what_it_should(size: int) -> None:
    rng = np.random.default_rng(size)
    values = rng.integers(0, max(size // 2, 2), size).tolist()
    ordered = sorted(values)

    def less(i: int, j: int) -> bool:
        return bool(values[i] < values[j])

    for k in {0, size // 2, size - 1}:
        a = list(range(size))
        selection.nth_element(a, k, less)
        assert values[a[k]] == ordered[k]
        assert all(values[i] <= ordered[k] for i in a[:k])
        a = list(range(size))
        selection.quick_select(a, k, lambda i, j: less(j, i))
        assert values[a[k]] == ordered[k]
        a = list(range(size))
        selection.partial_sort(a, 0, k, size, less)
        assert [values[i] for i in a[:k]] == ordered[:k]
        assert sorted(a) == list(range(size))
    a = list(range(size))
    selection.sort(a, size, less)
    assert [values[i] for i in a] == ordered


def test_selection_survives_adversaries() -> None:
    """An input that defeats the median of three: the heaps take over."""
    size = 2000
    a = list(range(size))
    rank: dict[int, int] = {}

    def less(i: int, j: int) -> bool:
        """McIlroy's antiquicksort: elements get their values when they are compared."""
        if i not in rank and j not in rank:
            rank[i] = len(rank)
        return rank.get(i, inf) < rank.get(j, inf)

    selection.sort(a, size, less)
    fixed = {i: rank.get(i, size) for i in range(size)}
    assert sorted(a) == list(range(size))
    again = list(range(size))
    selection.sort(again, size, lambda i, j: fixed[i] < fixed[j])
    assert [fixed[i] for i in again] == sorted(fixed.values())
    middle = list(range(size))
    selection.nth_element(middle, size // 2, lambda i, j: fixed[i] < fixed[j])
    assert fixed[middle[size // 2]] == sorted(fixed.values())[size // 2]


def test_the_classes_of_several_results_have_names_as_in_torch() -> None:
    x = gradcli.tensor([[1.0, 2.0]])
    kinds = gradcli.return_types
    assert type(gradcli.max(x, 0)) is kinds.max and isinstance(gradcli.sort(x), kinds.sort)
    assert type(gradcli.linalg.qr(x)) is kinds.linalg_qr and "linalg_qr" in dir(kinds)
    assert kinds.max((1, 2)).indices == 2
    with pytest.raises(
        TypeError, match=r"torch.return_types.max\(\) takes a 2-sequence \(3-sequence"
    ):
        kinds.max((1, 2, 3))
    with pytest.raises(TypeError, match="constructor requires a sequence"):
        kinds.max(1)
    with pytest.raises(AttributeError, match="has no attribute 'nope'"):
        _ = kinds.nope

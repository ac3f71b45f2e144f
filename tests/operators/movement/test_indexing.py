"""Subscripts and functions that take an index: graphs, gradients, refusals.

The tables are what torch 2.13.0 answers; where torch is installed, it is asked again.
"""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from tests.engine.registry.both import torch, tree
from tests.sweep import sweep

__all__ = ["torch"]  # the fixture


def names(torch: Any) -> dict[str, Any]:
    """The tensors that the expressions name."""

    def leaf(*shape: int) -> Any:
        count = int(torch.Size(shape).numel())
        return torch.arange(float(count), dtype=torch.float64).reshape(shape).requires_grad_()

    return {
        "torch": torch,
        "x": leaf(2, 3),
        "b": leaf(2, 2, 3),
        "d": leaf(2, 3, 4, 5),
        "v": torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True),
        "s": torch.tensor(2.0, dtype=torch.float64, requires_grad=True),
        "o": torch.ones(1, 3, 1, dtype=torch.float64, requires_grad=True),
        "c": torch.tensor([[1 + 2j, 3 - 1j]], dtype=torch.complex128, requires_grad=True),
        "m": torch.tensor([[True, False, True], [False, True, True]]),
        "i": torch.tensor([0, 1]),
        "j": torch.tensor([[0, 2, 1], [1, 1, 0]]),
        "k": torch.tensor([2, 0]),
    }


SUBSCRIPTS = [
    # text, shape, stride, offset, is a view, graph
    ("x[0]", (3,), (1,), 0, True, "Select0(x)"),
    ("x[-1]", (3,), (1,), 3, True, "Select0(x)"),
    ("x[0, 1]", (), (), 1, True, "Select0(Select0(x))"),
    ("x[:, 1]", (2,), (3,), 1, True, "Select0(x)"),
    ("x[0:2]", (2, 3), (3, 1), 0, True, "Slice0(x)"),
    ("x[:, 0:3]", (2, 3), (3, 1), 0, True, "Alias0(x)"),
    ("x[0:5, 1]", (2,), (3,), 1, True, "Select0(x)"),
    ("x[1:, ::2]", (1, 2), (3, 2), 3, True, "Slice0(Slice0(x))"),
    ("x[-2:]", (2, 3), (3, 1), 0, True, "Slice0(x)"),
    ("x[5:7]", (0, 3), (3, 1), 6, True, "Slice0(x)"),
    ("x[...]", (2, 3), (3, 1), 0, True, "Alias0(x)"),
    ("x[()]", (2, 3), (3, 1), 0, True, "Alias0(x)"),
    ("x[None]", (1, 2, 3), (6, 3, 1), 0, True, "Unsqueeze0(x)"),
    ("x[..., None]", (2, 3, 1), (3, 1, 1), 0, True, "Unsqueeze0(x)"),
    ("x[None, 0]", (1, 3), (6, 1), 0, True, "Select0(Unsqueeze0(x))"),
    ("b[0, ..., 1]", (2,), (3,), 1, True, "Select0(Select0(x))"),
    ("x[True]", (1, 2, 3), (6, 3, 1), 0, False, "Index0(Unsqueeze0(x))"),
    ("x[False]", (0, 2, 3), (6, 3, 1), 0, False, "Index0(Unsqueeze0(x))"),
    ("x[..., True]", (2, 3, 1), (3, 1, 1), 0, False, "Index0(Unsqueeze0(x))"),
    ("x[torch.tensor(1)]", (3,), (1,), 3, True, "Select0(x)"),
    ("x[torch.tensor(True)]", (1, 2, 3), (6, 3, 1), 0, False, "Index0(Unsqueeze0(x))"),
    ("x[[0, 1]]", (2, 3), (3, 1), 0, False, "Index0(x)"),
    ("x[[True, False]]", (1, 3), (3, 1), 0, False, "Index0(x)"),
    ("x[:, [0, 2]]", (2, 2), (2, 1), 0, False, "Index0(x)"),
    ("x[m]", (4,), (1,), 0, False, "Index0(x)"),
    ("x[i, i]", (2,), (1,), 0, False, "Index0(x)"),
    ("x[0, [1, 2]]", (2,), (1,), 0, False, "Index0(Select0(x))"),
    ("x[[0], 1:]", (1, 2), (2, 1), 0, False, "Index0(Slice0(x))"),
    ("x[m, None]", (4, 1), (1, 1), 0, False, "Index0(Unsqueeze0(x))"),
    ("b[i, :, k]", (2, 2), (2, 1), 0, False, "Index0(x)"),
    ("b[0, [0, 1], None, 1]", (2, 1), (1, 1), 0, False, "Index0(Select0(Unsqueeze0(Select0(x))))"),
    (
        "b[torch.tensor([[True, False], [True, True]]), 0]",
        (3,),
        (1,),
        0,
        False,
        "Index0(Select0(x))",
    ),
    ("d[m, :, k[:1]]", (4, 4), (4, 1), 0, False, "Index0(x)"),
    ("d[:, i, k]", (2, 2, 5), (10, 5, 1), 0, False, "Index0(x)"),
    ("d[:, i[:, None], :, k]", (2, 2, 2, 4), (16, 8, 4, 1), 0, False, "Index0(x)"),
    (
        "d.permute(3, 1, 0, 2)[:, [0, 1]]",
        (5, 2, 2, 4),
        (1, 20, 40, 5),
        0,
        False,
        "Index0(Permute0(x))",
    ),
    (
        "d.permute(3, 1, 0, 2)[:, [[0, 1], [1, 2]]]",
        (5, 2, 2, 2, 4),
        (1, 40, 20, 80, 5),
        0,
        False,
        "Index0(Permute0(x))",
    ),
    ("x.T[[0, 1]]", (2, 2), (2, 1), 0, False, "Index0(Permute0(x))"),
    ("b.permute(1, 0, 2)[:, :, [0, 1]]", (2, 2, 2), (2, 4, 1), 0, False, "Index0(Permute0(x))"),
    ("s[None]", (1,), (1,), 0, True, "Unsqueeze0(x)"),
    ("s[...]", (), (), 0, True, "Alias0(x)"),
    ("s[True]", (1,), (1,), 0, False, "Index0(Unsqueeze0(x))"),
    ("x[torch.tensor([], dtype=torch.int64)]", (0, 3), (3, 1), 0, False, "Index0(x)"),
    ("x[[]]", (0, 3), (3, 1), 0, False, "Index0(x)"),
]

REFUSED = [
    ("x[5]", "IndexError", "index 5 is out of bounds for dimension 0 with size 2"),
    ("x[0, 3]", "IndexError", "index 3 is out of bounds for dimension 1 with size 3"),
    ("x[0, 0, 0]", "IndexError", "too many indices for tensor of dimension 2"),
    ("x[:, :, 0]", "IndexError", "too many indices for tensor of dimension 2"),
    ("x[1:0:-1]", "ValueError", "step must be greater than zero"),
    ("x[0:2:0]", "ValueError", "slice step cannot be zero"),
    (
        "x[0.5]",
        "IndexError",
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are "
        "valid indices (got float)",
    ),
    ("x['a']", "TypeError", "new(): invalid data type 'str'"),
    (
        "x[torch.tensor(1.)]",
        "IndexError",
        "tensors used as indices must be long, int, byte or bool tensors",
    ),
    ("x[[0, 5]]", "IndexError", "index 5 is out of bounds for dimension 0 with size 2"),
    (
        "x[[0, 1, 0], [0, 1]]",
        "IndexError",
        "shape mismatch: indexing tensors could not be broadcast together with shapes [3], [2]",
    ),
    (
        "x[torch.tensor([True])]",
        "IndexError",
        "The shape of the mask [1] at index 0 does not match the shape of the indexed tensor [2, "
        "3] at index 0",
    ),
    ("x[[0], [0], [0]]", "IndexError", "too many indices for tensor of dimension 2"),
    (
        "s[0]",
        "IndexError",
        "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in "
        "C++ to convert a 0-dim tensor to a number",
    ),
    ("s[:]", "IndexError", "slice() cannot be applied to a 0-dim tensor."),
    (
        "x.gather(1, torch.tensor([[5]]))",
        "RuntimeError",
        "index 5 is out of bounds for dimension 1 with size 3",
    ),
    (
        "x.gather(1, torch.tensor([[-1]]))",
        "RuntimeError",
        "index -1 is out of bounds for dimension 1 with size 3",
    ),
    (
        "x.gather(1, k)",
        "RuntimeError",
        "Index tensor must have the same number of dimensions as input tensor",
    ),
    ("x.gather(1, j.double())", "RuntimeError", "gather(): Expected dtype int32/int64 for index"),
    (
        "x.gather(0, j.clamp(max=1)[:, :1].expand(2, 4))",
        "RuntimeError",
        "Size does not match at dimension 1 expected index [2, 4] to be no larger than self [2, "
        "3] apart from dimension 0",
    ),
    (
        "x.scatter(1, j, x[:, :1])",
        "RuntimeError",
        "Expected index [2, 3] to be no larger than self [2, 3] apart from dimension 1 and to be "
        "no larger size than src [2, 1]",
    ),
    (
        "x.scatter(1, j, x.float())",
        "RuntimeError",
        "scatter(): Expected self.dtype to be equal to src.dtype",
    ),
    (
        "x.scatter(1, torch.tensor([[5]]), x)",
        "RuntimeError",
        "index 5 is out of bounds for dimension 1 with size 3",
    ),
    (
        "x.scatter_reduce(1, j, x, 'foo')",
        "RuntimeError",
        "reduce argument must be either sum, prod, mean, amax or amin, got foo",
    ),
    ("x.index_select(0, torch.tensor([5]))", "IndexError", "index out of range in self"),
    ("x.index_select(1, j)", "IndexError", "index_select(): Index is supposed to be a vector"),
    (
        "x.index_add(1, k, x.float()[:, :2])",
        "RuntimeError",
        "index_add_(): self (Double) and source (Float) must have the same scalar type",
    ),
    (
        "x.index_add(1, k, x)",
        "RuntimeError",
        "index_add_(): Number of indices (2) should be equal to source.size(dim): (3), for dim: 1",
    ),
    (
        "x.index_add(1, torch.tensor([5]), x[:, :1])",
        "RuntimeError",
        "index 5 is out of bounds for dimension 1 with size 3",
    ),
    (
        "x.index_copy(1, k, x)",
        "IndexError",
        "index_copy_(): Number of indices (2) should be equal to source.size(dim) (3)",
    ),
    (
        "x.index_copy(1, torch.tensor([5]), x[:, :1])",
        "IndexError",
        "index_copy_(): index 5 is out of bounds for dimension 1 with size 3",
    ),
    (
        "x.index_fill(1, torch.tensor([5]), 0)",
        "IndexError",
        "index 5 is out of bounds for dimension 1 with size 3",
    ),
    (
        "x.index_fill(1, k, v)",
        "RuntimeError",
        "index_fill_ only supports a 0-dimensional value tensor, but got tensor with 1 "
        "dimension(s).",
    ),
    (
        "x.index_put((i,), x.float())",
        "RuntimeError",
        "Index put requires the source and destination dtypes match, got Double for the "
        "destination and Float for the source.",
    ),
    (
        "x[0].index_put((i,), x[:1, :1])",
        "RuntimeError",
        "shape mismatch: value tensor of shape [1, 1] cannot be broadcast to indexing result of "
        "shape [2]",
    ),
    (
        "x.masked_fill(m, v)",
        "RuntimeError",
        "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with 1 "
        "dimension(s).",
    ),
    (
        "x.masked_fill(j, 2.)",
        "RuntimeError",
        "masked_fill_ only supports boolean masks, but got mask with dtype long int",
    ),
    (
        "x.masked_fill(m, 1j)",
        "RuntimeError",
        "value cannot be converted to type double without overflow",
    ),
    ("x.masked_select(j)", "RuntimeError", "masked_select: expected BoolTensor for mask"),
    (
        "x.masked_scatter(m, v)",
        "RuntimeError",
        "Number of elements of source < number of ones in mask",
    ),
    (
        "x.masked_scatter(m, x.float())",
        "RuntimeError",
        "masked_scatter: expected self and source to have same dtypes but gotDouble and Float",
    ),
    (
        "x.take(torch.tensor([9]))",
        "IndexError",
        "out of range: tried to access index 9 on a tensor of 6 elements.",
    ),
    (
        "x.put(k, v)",
        "IndexError",
        "put_(): Expected source and index to have the same number of elements, but got "
        "source.numel() = 3, index.numel() = 2",
    ),
    (
        "x.select_scatter(v[:2], 0, 1)",
        "RuntimeError",
        "expected src to have a size equal to the slice of self. src size = [2], slice size = [3]",
    ),
    (
        "x.diagonal_scatter(v)",
        "RuntimeError",
        "expected src to have a size equal to the slice of self. src size = [3], slice size = [2]",
    ),
]


@sweep(("text", "shape", "stride", "offset", "is_view", "graph"), SUBSCRIPTS, parts=1)
def test_subscripts(
    torch: Any,
    text: str,
    shape: tuple[int, ...],
    stride: tuple[int, ...],
    offset: int,
    is_view: bool,
    graph: str,
) -> None:
    """A subscript is taken apart as torch takes it apart."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = eval(text, names(torch))
    assert result.shape == shape
    if result.numel():
        assert result.stride() == stride
        assert result.storage_offset() == offset
    assert result._is_view() == is_view
    assert tree(result.grad_fn) == graph


@sweep(("text", "kind", "message"), REFUSED, parts=1)
def test_refused(torch: Any, text: str, kind: str, message: str) -> None:
    """The same refusal in the same words."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(Exception) as caught:
            eval(text, names(torch))
    assert type(caught.value).__name__ == kind
    assert str(caught.value).split("\n")[0] == message


SAVED = [
    # text, field, what is saved
    ("x[-1]", "_saved_index", 2**64 - 1),
    ("x[1:]", "_saved_end", 2**63 - 1),
    ("x[-2:]", "_saved_start", 2**64 - 2),
    ("x[0:2]", "_saved_end", 2),
    ("x[:, ::2]", "_saved_step", 2),
    ("x.select(-1, 1)", "_saved_dim", 2**64 - 1),
    ("x[..., None]", "_saved_dim", 2),
    ("x[[0, 1]]", "_saved_self_sym_sizes", (2, 3)),
]


@sweep(("text", "field", "value"), SAVED, parts=1)
def test_saved_fields(torch: Any, text: str, field: str, value: Any) -> None:
    assert getattr(eval(text, names(torch)).grad_fn, field) == value


def test_saved_indices(torch: Any) -> None:
    given = names(torch)
    saved = given["x"][:, given["k"]].grad_fn._saved_indices
    assert saved[0] is None
    assert saved[1] is given["k"]


def test_repeated_positions_add_up(torch: Any) -> None:
    x = names(torch)["x"]
    x[[0, 0, 1]].sum().backward()
    assert x.grad.tolist() == [[2, 2, 2], [1, 1, 1]]


def test_where_keeps_nan_of_the_branch_not_taken_out_of_values(torch: Any) -> None:
    x = torch.tensor([0.0, 4.0], dtype=torch.float64, requires_grad=True)
    y = torch.where(x > 0, x.sqrt(), 0.0)
    y.sum().backward()
    assert y.tolist() == [0, 2]
    assert x.grad[1] == 0.25
    assert x.grad[0].isnan()  # 0 * inf, as in torch


@pytest.mark.parametrize(
    "key", ["2**70", "-2**63-1", "2**63", "(0, 2**70)", "[2**70]", "..., 2**64"]
)
def test_an_index_of_more_than_64_bits(torch: Any, key: str) -> None:
    """PyTorch unpacks an integer before it looks at any size."""
    x = torch.zeros(3, 2)
    for statement in ("x[{}]", "x[{}] = 1"):
        with pytest.raises(ValueError, match="Overflow when unpacking long long"):
            exec(statement.format(key), {"x": x})

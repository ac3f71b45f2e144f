"""Views and joined tensors: shape, strides, memory, graph, refusals.

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


LAYOUTS = [
    # text, shape, stride, offset, is a view, graph
    ("x.view(3, 2)", (3, 2), (2, 1), 0, True, "View0(x)"),
    ("x.view(-1)", (6,), (1,), 0, True, "View0(x)"),
    ("s.view(1, 1)", (1, 1), (1, 1), 0, True, "View0(x)"),
    ("x.reshape(3, 2)", (3, 2), (2, 1), 0, True, "View0(x)"),
    ("x.T.reshape(6)", (6,), (1,), 0, False, "UnsafeView0(Clone0(Permute0(x)))"),
    ("x.T.reshape(3, 2, 1)", (3, 2, 1), (1, 3, 3), 0, True, "ReshapeAlias0(Permute0(x))"),
    ("x.T.reshape(1, 3, 2)", (1, 3, 2), (3, 1, 3), 0, True, "ReshapeAlias0(Permute0(x))"),
    ("b[:, :, :2].reshape(4, 2)", (4, 2), (3, 1), 0, True, "ReshapeAlias0(Slice0(x))"),
    ("b[..., 0].view(4)", (4,), (3,), 0, True, "View0(Select0(x))"),
    ("b.permute(2, 0, 1).flatten(1)", (3, 4), (1, 3), 0, True, "ReshapeAlias0(Permute0(x))"),
    (
        "b.permute(2, 0, 1).flatten(0, 1)",
        (6, 2),
        (2, 1),
        0,
        False,
        "UnsafeView0(Clone0(Permute0(x)))",
    ),
    ("x.flatten()", (6,), (1,), 0, True, "View0(x)"),
    ("s.flatten()", (1,), (1,), 0, True, "View0(x)"),
    ("x.T.ravel()", (6,), (1,), 0, True, "View0(Clone0(Permute0(x)))"),
    ("x.unflatten(1, (3, 1))", (2, 3, 1), (3, 1, 1), 0, True, "View0(x)"),
    ("x.unsqueeze(0)", (1, 2, 3), (6, 3, 1), 0, True, "Unsqueeze0(x)"),
    ("x.unsqueeze(-1)", (2, 3, 1), (3, 1, 1), 0, True, "Unsqueeze0(x)"),
    ("x.T.unsqueeze(1)", (3, 1, 2), (1, 6, 3), 0, True, "Unsqueeze0(Permute0(x))"),
    ("x.T.unsqueeze(-1)", (3, 2, 1), (1, 3, 1), 0, True, "Unsqueeze0(Permute0(x))"),
    ("s.unsqueeze(0)", (1,), (1,), 0, True, "Unsqueeze0(x)"),
    ("o.squeeze()", (3,), (1,), 0, True, "Squeeze0(x)"),
    ("o.squeeze(0)", (3, 1), (1, 1), 0, True, "Squeeze1(x)"),
    ("o.squeeze((0, 2))", (3,), (1,), 0, True, "Squeeze2(x)"),
    ("x.squeeze(0)", (2, 3), (3, 1), 0, True, "Squeeze1(x)"),
    ("x.transpose(0, -1)", (3, 2), (1, 3), 0, True, "Transpose0(x)"),
    ("x.t()", (3, 2), (1, 3), 0, True, "T0(x)"),
    ("v.t()", (3,), (1,), 0, True, "T0(x)"),
    ("x.T", (3, 2), (1, 3), 0, True, "Permute0(x)"),
    ("b.mT", (2, 3, 2), (6, 1, 3), 0, True, "Transpose0(x)"),
    ("x.H", (3, 2), (1, 3), 0, True, "Transpose0(x)"),
    ("b.permute(2, 0, 1)", (3, 2, 2), (1, 6, 3), 0, True, "Permute0(x)"),
    ("b.movedim(0, -1)", (2, 3, 2), (3, 1, 6), 0, True, "Permute0(x)"),
    ("b.movedim((0, 1), (-1, 0))", (2, 3, 2), (3, 1, 6), 0, True, "Permute0(x)"),
    ("v.expand(2, 3)", (2, 3), (0, 1), 0, True, "Expand0(x)"),
    ("x.expand(2, -1, -1)", (2, 2, 3), (0, 3, 1), 0, True, "Expand0(x)"),
    ("o.expand(2, 3, 4)", (2, 3, 4), (0, 1, 0), 0, True, "Expand0(x)"),
    ("s.expand(2)", (2,), (0,), 0, True, "Expand0(x)"),
    ("v.broadcast_to(2, 3)", (2, 3), (0, 1), 0, True, "Expand0(x)"),
    ("x.select(1, -1)", (2,), (3,), 2, True, "Select0(x)"),
    ("v.select(0, 0)", (), (), 0, True, "Select0(x)"),
    ("x.narrow(1, 1, 2)", (2, 2), (3, 1), 1, True, "Slice0(x)"),
    ("x.diagonal()", (2,), (4,), 0, True, "Diagonal0(x)"),
    ("x.diagonal(1)", (2,), (4,), 1, True, "Diagonal0(x)"),
    ("b.diagonal(0, -2, -1)", (2, 2), (6, 4), 0, True, "Diagonal0(x)"),
    ("b.unfold(2, 2, 1)", (2, 2, 2, 2), (6, 3, 1, 1), 0, True, "Unfold0(x)"),
    ("x.unbind(1)[2]", (2,), (3,), 2, True, "Unbind0(x)"),
    ("x.split(1)[1]", (1, 3), (3, 1), 3, True, "Split0(x)"),
    ("x.split([1, 2], 1)[1]", (2, 2), (3, 1), 1, True, "SplitWithSizes0(x)"),
    ("x.chunk(2, 1)[1]", (2, 1), (3, 1), 2, True, "Split0(x)"),
    ("x.tensor_split(2, 1)[1]", (2, 1), (3, 1), 2, True, "Slice0(x)"),
    ("x.as_strided((2, 2), (1, 2), 1)", (2, 2), (1, 2), 1, True, "AsStrided0(x)"),
    ("c.real", (1, 2), (4, 2), 0, True, "Select0(ViewAsReal0(x))"),
    ("c.imag", (1, 2), (4, 2), 1, True, "Select0(ViewAsReal0(x))"),
    ("torch.view_as_real(c)", (1, 2, 2), (4, 2, 1), 0, True, "ViewAsReal0(x)"),
    ("torch.view_as_complex(b.view(2, 3, 2))", (2, 3), (3, 1), 0, True, "ViewAsComplex0(View0(x))"),
    ("x.clone()", (2, 3), (3, 1), 0, False, "Clone0(x)"),
    ("x.T.clone()", (3, 2), (1, 3), 0, False, "Clone0(Permute0(x))"),
    ("x.T.contiguous()", (3, 2), (2, 1), 0, False, "Clone0(Permute0(x))"),
    ("v.expand(2, 3).clone()", (2, 3), (3, 1), 0, False, "Clone0(Expand0(x))"),
    ("x.T.expand(4, 3, 2).clone()", (4, 3, 2), (6, 1, 3), 0, False, "Clone0(Expand0(Permute0(x)))"),
    ("b.permute(2, 0, 1).float()", (3, 2, 2), (1, 6, 3), 0, False, "ToCopy0(Permute0(x))"),
    ("torch.cat([x.T, x.T])", (6, 2), (2, 1), 0, False, "Cat0(Permute0(x), Permute0(x))"),
    ("torch.cat([x, x], -1)", (2, 6), (6, 1), 0, False, "Cat0(x, x)"),
    ("torch.stack([x, x], -1)", (2, 3, 2), (6, 2, 1), 0, False, "Stack0(x, x)"),
    ("torch.hstack([s, s])", (2,), (1,), 0, False, "Cat0(View0(x), View0(x))"),
    ("torch.vstack([v, x])", (3, 3), (3, 1), 0, False, "Cat0(Unsqueeze0(x), x)"),
    (
        "torch.dstack([v, v])",
        (1, 3, 2),
        (6, 2, 1),
        0,
        False,
        "Cat0(Unsqueeze0(Unsqueeze0(x)), Unsqueeze0(Unsqueeze0(x)))",
    ),
    ("torch.column_stack([v, x.T])", (3, 3), (3, 1), 0, False, "Cat0(View0(x), Permute0(x))"),
    ("torch.atleast_3d(v)", (1, 3, 1), (3, 1, 1), 0, True, "Unsqueeze0(Unsqueeze0(x))"),
    ("torch.block_diag(x, v, s)", (4, 7), (7, 1), 0, False, "BlockDiag0(x, x, x)"),
    ("torch.meshgrid(v, v, indexing='xy')[0]", (3, 3), (0, 1), 0, True, "Expand0(View0(x))"),
    (
        "torch.cartesian_prod(v, v)",
        (9, 2),
        (2, 1),
        0,
        False,
        "Stack0(UnsafeView0(Clone0(Expand0(View0(x)))), UnsafeView0(Clone0(Expand0(View0(x)))))",
    ),
    ("x.repeat(2, 1)", (4, 3), (3, 1), 0, False, "Repeat0(x)"),
    ("x.tile(2)", (2, 6), (6, 1), 0, False, "Repeat0(x)"),
    ("x.repeat_interleave(2, 1)", (2, 6), (6, 1), 0, True, "View0(Clone0(Expand0(Unsqueeze0(x))))"),
    ("x.T.flip(0)", (3, 2), (1, 3), 0, False, "Flip0(Permute0(x))"),
    ("x.roll(1)", (2, 3), (3, 1), 0, False, "Roll0(x)"),
    ("b.rot90(1, (1, 2))", (2, 3, 2), (6, 1, 3), 0, False, "Rot900(x)"),
    ("x.T.tril()", (3, 2), (2, 1), 0, False, "Tril0(Permute0(x))"),
    ("torch.diag_embed(x, 1)", (2, 4, 4), (16, 4, 1), 0, False, "DiagEmbed0(x)"),
    ("torch.diag(x)", (2,), (1,), 0, False, "Diagonal0_copy(x)"),
    ("torch.diag(v, -1)", (4, 4), (4, 1), 0, False, "DiagEmbed0(x)"),
    ("torch.view_copy(x, (3, 2))", (3, 2), (2, 1), 0, False, "View0_copy(x)"),
]

REFUSED = [
    ("x.view(5)", "RuntimeError", "shape '[5]' is invalid for input of size 6"),
    ("x.view(-1, -1)", "RuntimeError", "only one dimension can be inferred"),
    ("x.view(-1, 4)", "RuntimeError", "shape '[-1, 4]' is invalid for input of size 6"),
    ("x.view(2, -2)", "RuntimeError", "invalid shape dimension -2 at index 1 of shape [2, -2]"),
    (
        "x.T.view(6)",
        "RuntimeError",
        "view size is not compatible with input tensor's size and stride (at least one dimension "
        "spans across two contiguous subspaces). Use .reshape(...) instead.",
    ),
    ("x.reshape(7)", "RuntimeError", "shape '[7]' is invalid for input of size 6"),
    (
        "x.flatten(1, 0)",
        "RuntimeError",
        "flatten() has invalid args: start_dim cannot come after end_dim",
    ),
    (
        "x.unflatten(1, (2, 2))",
        "RuntimeError",
        "unflatten: Provided sizes [2, 2] don't multiply up to the size of dim 1 (3) in the "
        "input tensor",
    ),
    (
        "x.unsqueeze(3)",
        "IndexError",
        "Dimension out of range (expected to be in range of [-3, 2], but got 3)",
    ),
    (
        "x.squeeze(2)",
        "IndexError",
        "Dimension out of range (expected to be in range of [-2, 1], but got 2)",
    ),
    ("x.squeeze((0, 0))", "RuntimeError", "dim 0 appears multiple times in the list of dims"),
    (
        "x.transpose(0, 2)",
        "IndexError",
        "Dimension out of range (expected to be in range of [-2, 1], but got 2)",
    ),
    ("b.t()", "RuntimeError", "t() expects a tensor with <= 2 dimensions, but self is 3D"),
    (
        "v.mT",
        "RuntimeError",
        "tensor.mT is only supported on matrices or batches of matrices. Got 1-D tensor.",
    ),
    (
        "b.H",
        "RuntimeError",
        "tensor.H is only supported on matrices (2-D tensors). Got 3-D tensor. For batches of "
        "matrices, consider using tensor.mH",
    ),
    (
        "x.permute(0)",
        "RuntimeError",
        "permute(sparse_coo): number of dimensions in the tensor input does not match the length "
        "of the desired ordering of dimensions i.e. input.dim() = 2 is not equal to len(dims) = 1",
    ),
    ("x.permute(0, 0)", "RuntimeError", "permute(): duplicate dims are not allowed."),
    (
        "x.permute(0, 2)",
        "IndexError",
        "Dimension out of range (expected to be in range of [-2, 1], but got 2)",
    ),
    (
        "b.movedim((0, 1), (0,))",
        "RuntimeError",
        "movedim: Invalid source or destination dims: source ([0, 1] dims) should contain the "
        "same number of dims as destination ([0] dims)",
    ),
    (
        "x.expand(3)",
        "RuntimeError",
        "expand(torch.DoubleTensor{[2, 3]}, size=[3]): the number of sizes provided (1) must be "
        "greater or equal to the number of dimensions in the tensor (2)",
    ),
    (
        "x.expand(2, 4)",
        "RuntimeError",
        "The expanded size of the tensor (4) must match the existing size (3) at non-singleton "
        "dimension 1.  Target sizes: [2, 4].  Tensor sizes: [2, 3]",
    ),
    (
        "x.expand(-1, 2, 3)",
        "RuntimeError",
        "The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension 0",
    ),
    (
        "x.select(0, 5)",
        "IndexError",
        "select(): index 5 out of range for tensor of size [2, 3] at dimension 0",
    ),
    ("s.select(0, 0)", "IndexError", "select() cannot be applied to a 0-dim tensor."),
    ("x.narrow(1, 2, 2)", "RuntimeError", "start (2) + length (2) exceeds dimension size (3)."),
    (
        "x.narrow(1, 4, 1)",
        "IndexError",
        "start out of range (expected to be in range of [-3, 3], but got 4)",
    ),
    ("x.narrow(1, 0, -1)", "RuntimeError", "narrow(): length must be non-negative."),
    ("x.diagonal(0, 0, 0)", "RuntimeError", "diagonal dimensions cannot be identical 0, 0"),
    (
        "x.unfold(1, 5, 1)",
        "RuntimeError",
        "maximum size for tensor at dimension 1 is 3 but size is 5",
    ),
    ("x.unfold(1, 2, 0)", "RuntimeError", "step is 0 but must be > 0"),
    (
        "x.split(-1)",
        "RuntimeError",
        "split expects split_size be non-negative, but got split_size=-1",
    ),
    (
        "x.split(0)",
        "RuntimeError",
        "split_size can only be 0 if dimension size is 0, but got dimension size of 2",
    ),
    (
        "x.split([1, 2, 3])",
        "RuntimeError",
        "split_with_sizes expects split_sizes to sum exactly to 2 (input tensor's size at "
        "dimension 0), but got split_sizes=[1, 2, 3]",
    ),
    ("x.chunk(0)", "RuntimeError", "chunk expects `chunks` to be greater than 0, got: 0"),
    ("x.tensor_split(0)", "RuntimeError", "number of sections must be larger than 0, got 0"),
    ("s.unbind()", "IndexError", "Dimension specified as 0 but tensor has no dimensions"),
    (
        "x.dsplit(1)",
        "RuntimeError",
        "torch.dsplit requires a tensor with at least 3 dimension, but got a tensor with 2 "
        "dimensions!",
    ),
    (
        "x.hsplit(2)",
        "RuntimeError",
        "torch.hsplit attempted to split along dimension 1, but the size of the dimension 3 is "
        "not divisible by the split_size 2!",
    ),
    (
        "x.as_strided((5, 5), (1, 2))",
        "RuntimeError",
        "setStorage: sizes [5, 5], strides [1, 2], storage offset 0, and itemsize 8 requiring a "
        "storage size of 104 are out of bounds for storage of size 48",
    ),
    ("x.imag", "RuntimeError", "imag is not implemented for tensors with non-complex dtypes."),
    ("torch.view_as_real(x)", "RuntimeError", "view_as_real is only supported for complex tensors"),
    ("torch.view_as_complex(x)", "RuntimeError", "Tensor must have a last dimension of size 2"),
    ("torch.cat([])", "ValueError", "torch.cat(): expected a non-empty list of Tensors"),
    (
        "torch.cat([x, x], 2)",
        "IndexError",
        "Dimension out of range (expected to be in range of [-2, 1], but got 2)",
    ),
    (
        "torch.cat([x, v])",
        "RuntimeError",
        "Tensors must have same number of dimensions: got 2 and 1",
    ),
    (
        "torch.cat([x, x.T])",
        "RuntimeError",
        "Sizes of tensors must match except in dimension 0. Expected size 3 but got size 2 for "
        "tensor number 1 in the list.",
    ),
    (
        "torch.cat([s, s])",
        "RuntimeError",
        "zero-dimensional tensor (at position 0) cannot be concatenated",
    ),
    (
        "torch.cat(x)",
        "TypeError",
        "cat(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor",
    ),
    ("torch.stack([])", "RuntimeError", "stack expects a non-empty TensorList"),
    (
        "torch.stack([x, v])",
        "RuntimeError",
        "stack expects each tensor to be equal size, but got [2, 3] at entry 0 and [3] at entry 1",
    ),
    (
        "torch.stack([x, x], 3)",
        "IndexError",
        "Dimension out of range (expected to be in range of [-3, 2], but got 3)",
    ),
    (
        "torch.vstack([s, v])",
        "RuntimeError",
        "Sizes of tensors must match except in dimension 0. Expected size 1 but got size 3 for "
        "tensor number 1 in the list.",
    ),
    (
        "torch.meshgrid(v, v, indexing='a')",
        "RuntimeError",
        'torch.meshgrid: indexing must be one of "xy" or "ij", but received: a',
    ),
    (
        "torch.broadcast_tensors(x, b.mT)",
        "RuntimeError",
        "The size of tensor a (3) must match the size of tensor b (2) at non-singleton dimension 2",
    ),
    (
        "x.repeat(2)",
        "RuntimeError",
        "Number of dimensions of repeat dims can not be smaller than number of dimensions of "
        "tensor",
    ),
    ("x.repeat_interleave(-1)", "RuntimeError", "Repeats must be non-negative"),
    ("x.flip(0, 0)", "RuntimeError", "dim 0 appears multiple times in the list of dims"),
    (
        "x.flip(5)",
        "IndexError",
        "Dimension out of range (expected to be in range of [-2, 1], but got 5)",
    ),
    ("x.roll((1, 2), 0)", "RuntimeError", "shifts and dimensions must align. shifts: 2, dims:1"),
    (
        "x.rot90(1, (0, 0))",
        "RuntimeError",
        "expected rotation dims to be different, but got dim0 = 0 and dim1 = 0",
    ),
    ("v.tril()", "RuntimeError", "tril: input tensor must have at least 2 dimensions"),
    ("b.diag()", "RuntimeError", "diag(): Supports 1D or 2D tensors. Got 3D"),
    (
        "torch.where(x, x, x)",
        "RuntimeError",
        "where expected condition to be a boolean tensor, but got a tensor with dtype Double",
    ),
]


@sweep(("text", "shape", "stride", "offset", "is_view", "graph"), LAYOUTS)
def test_layout_and_graph(
    torch: Any,
    text: str,
    shape: tuple[int, ...],
    stride: tuple[int, ...],
    offset: int,
    is_view: bool,
    graph: str,
) -> None:
    """Where the result lies, whether it is a view, and the nodes that made it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = eval(text, names(torch))
    assert result.shape == shape
    if result.numel():
        assert result.stride() == stride
        assert result.storage_offset() == offset
    assert result._is_view() == is_view
    assert tree(result.grad_fn) == graph


@sweep(("text", "kind", "message"), REFUSED)
def test_refused(torch: Any, text: str, kind: str, message: str) -> None:
    """The same refusal in the same words."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(Exception) as caught:
            eval(text, names(torch))
    assert type(caught.value).__name__ == kind
    assert str(caught.value).split("\n")[0] == message


def test_views_share_memory_and_counter(torch: Any) -> None:
    base = torch.zeros(2, 3)
    views = [
        base.view(6),
        base.t(),
        base[0],
        base.unsqueeze(0),
        base.diagonal(),
        base.unfold(1, 2, 1),
    ]
    views += [base.expand(1, 2, 3), base[0, 0], base.unbind()[1], base.split(1)[0]]
    base[0, 0] = 5
    assert base.view(6)[0] == 5
    for view in views:
        assert view._base is base
        assert view._version == base._version == 1
        assert view.data_ptr() in (base.data_ptr(), base[1].data_ptr())


def test_views_of_views_have_one_base(torch: Any) -> None:
    base = torch.zeros(2, 3)
    assert base.view(6)[1:].unsqueeze(0)._base is base
    assert base.detach()._base is None
    assert base.clone()._base is None


def test_an_input_may_be_returned_as_it_is(torch: Any) -> None:
    given = names(torch)
    x, v = given["x"], given["v"]
    same = [x.contiguous(), x.to(torch.float64), x.real, x.conj(), torch.atleast_1d(x)]
    assert all(result is x for result in same)
    assert v.flatten() is v
    assert torch.broadcast_tensors(x, v)[0] is x


def test_empty_parts_get_zeros(torch: Any) -> None:
    x = names(torch)["x"]
    parts = x.unbind(1)
    (parts[0] * 2 + parts[2]).sum().backward()
    assert x.grad.tolist() == [[2, 0, 1], [2, 0, 1]]
    x.grad = None
    x.split((1, 2), 1)[1].sum().backward()
    assert x.grad.tolist() == [[0, 1, 1], [0, 1, 1]]


# Of operands whose dims lie in another order: which results keep it, and which are laid out anew.
ORDERS: list[tuple[str, tuple[int, ...]]] = [
    ("torch.softmax(x, 0)", (3, 1)),
    ("torch.log_softmax(x, 1)", (3, 1)),
    ("x.cumsum(1)", (3, 1)),
    ("x.cumprod(0)", (3, 1)),
    ("x.cummax(1).indices", (3, 1)),
    ("x.logcumsumexp(0)", (3, 1)),
    ("w.sum(1)", (2, 1)),
    ("w.mean(1)", (2, 1)),
    ("w.prod(1)", (2, 1)),
    ("w.amax(1)", (2, 1)),
    ("w.logsumexp(1)", (2, 1)),
    ("w.sum(1, keepdim=True)", (2, 2, 1)),
    ("torch.nn.functional.pad(x, (1, 1))", (5, 1)),
    ("torch.nn.functional.layer_norm(x, (3,))", (3, 1)),
    ("torch.nn.functional.logsigmoid(x)", (3, 1)),
    ("x.index_add(0, ix, x)", (3, 1)),
    ("x.scatter(1, ix.reshape(1, 2), 9.0)", (3, 1)),
    ("x.renorm(2, 0, 1.0)", (3, 1)),
    ("torch.nn.functional.avg_pool1d(w, 2)", (3, 1, 1)),
    ("torch.nn.functional.batch_norm(w, None, None, training=True)", (6, 2, 1)),
    ("torch.nn.functional.avg_pool2d(last, 2)", (8, 1, 4, 2)),
    ("torch.nn.functional.batch_norm(last, None, None, training=True)", (32, 1, 8, 2)),
    ("x.index_fill(0, ix, 1.0)", (1, 2)),
    ("x.exp()", (1, 2)),
    ("x + x", (1, 2)),
    ("x * 2", (1, 2)),
    ("x.clone()", (1, 2)),
    ("torch.nn.functional.dropout(x)", (1, 2)),
]


@sweep(("text", "stride"), ORDERS)
def test_results_lie_in_memory_as_torchs(torch: Any, text: str, stride: tuple[int, ...]) -> None:
    scope = {
        "torch": torch,
        "x": torch.arange(6.0).reshape(3, 2).T,
        "w": torch.arange(24.0).reshape(2, 3, 4).permute(2, 1, 0),
        "ix": torch.tensor([0, 1]),
        "last": torch.arange(32.0).reshape(1, 4, 4, 2).permute(0, 3, 1, 2),
    }
    assert eval(text, scope).stride() == stride


def test_dropout_draws_in_the_order_of_memory(torch: Any) -> None:
    torch.manual_seed(0)
    dropped = torch.nn.functional.dropout(torch.arange(6.0).reshape(3, 2).T + 1)
    assert dropped.tolist() == [[0, 6, 0], [0, 0, 0]]


@sweep(
    ("text", "dim"),
    [(text, dim) for text in ("s.size({})", "s.stride({})") for dim in (-1, 0, 1)]
    + [("s.unbind({})", 0), ("s.roll(1, {})", 0), ("torch.group_norm(s, 1)", 0)],
)
def test_nothing_is_a_dimension_of_a_number(torch: Any, text: str, dim: int) -> None:
    words = f"^Dimension specified as {dim} but tensor has no dimensions$"
    with pytest.raises(IndexError, match=words):
        eval(text.format(dim), {"torch": torch, "s": torch.tensor(1.0)})

"""Writing in place: graphs and gradients afterwards, through bases and views.

The tables are what torch 2.13.0 answers; where torch is installed, it is asked again.
"""

from __future__ import annotations

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


PROGRAMS = [
    # program, graph of its value, gradients of the leaves for the seed 1, 2, 3, ...
    ("y = x * 1; y.zero_(); y", "Zero0(Mul0(x, -))", {"x": [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]}),
    ("y = x * 1; y.fill_(2); y", "Fill2(Mul0(x, -))", {"x": [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]}),
    (
        "y = x * 1; y.fill_(s); y",
        "Fill3(Mul0(x, -), x)",
        {"x": [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], "s": 21.0},
    ),
    (
        "y = x * 1; y.copy_(v); y",
        "torch::autograd::Copys(Mul0(x, -), x)",
        {"x": [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], "v": [5.0, 7.0, 9.0]},
    ),
    (
        "y = torch.zeros(2, 3, dtype=torch.float64); y.copy_(x); y",
        "torch::autograd::Copys(-, x)",
        {"x": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]},
    ),
    (
        "y = torch.zeros(2, 3, dtype=torch.float64); y[0] = v; y",
        "torch::autograd::CopySlices(-, x)",
        {"v": [1.0, 2.0, 3.0]},
    ),
    (
        "y = x * 1; y[0] = v; y",
        "torch::autograd::CopySlices(Mul0(x, -), x)",
        {"x": [[0.0, 0.0, 0.0], [4.0, 5.0, 6.0]], "v": [1.0, 2.0, 3.0]},
    ),
    (
        "y = x * 1; y[0, 1] = s; y",
        "torch::autograd::CopySlices(Mul0(x, -), x)",
        {"x": [[1.0, 0.0, 3.0], [4.0, 5.0, 6.0]], "s": 2.0},
    ),
    (
        "y = x * 1; y[0, 1] = 3; y",
        "torch::autograd::CopySlices(Mul0(x, -), -)",
        {"x": [[1.0, 0.0, 3.0], [4.0, 5.0, 6.0]]},
    ),
    (
        "y = x * 1; y[:, 1] = v[:2]; y",
        "torch::autograd::CopySlices(Mul0(x, -), Slice0(x))",
        {"x": [[1.0, 0.0, 3.0], [4.0, 0.0, 6.0]], "v": [2.0, 5.0, 0.0]},
    ),
    (
        "y = x * 1; y[:] = v; y",
        "torch::autograd::Copys(Mul0(x, -), Expand0(View0(x)))",
        {"x": [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], "v": [5.0, 7.0, 9.0]},
    ),
    (
        "y = x * 1; y[...] = v; y",
        "torch::autograd::Copys(Mul0(x, -), Expand0(View0(x)))",
        {"x": [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], "v": [5.0, 7.0, 9.0]},
    ),
    (
        "y = x * 1; y[None] = v[None, None]; y",
        "torch::autograd::CopySlices(Mul0(x, -), Expand0(View0(Unsqueeze0(Unsqueeze0(x)))))",
        {"x": [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], "v": [5.0, 7.0, 9.0]},
    ),
    (
        "y = x * 1; y[m] = 0; y",
        "IndexPut0(Mul0(x, -), -)",
        {"x": [[0.0, 2.0, 0.0], [4.0, 0.0, 0.0]]},
    ),
    (
        "y = x * 1; y[m] = s; y",
        "IndexPut0(Mul0(x, -), x)",
        {"x": [[0.0, 2.0, 0.0], [4.0, 0.0, 0.0]], "s": 15.0},
    ),
    (
        "y = x * 1; y[[0, 1], [1, 2]] = v[:2]; y",
        "IndexPut0(Mul0(x, -), Slice0(x))",
        {"x": [[1.0, 0.0, 3.0], [4.0, 5.0, 0.0]], "v": [2.0, 6.0, 0.0]},
    ),
    (
        "y = x * 1; y[0, [0, 2]] = v[:2]; y",
        "torch::autograd::CopySlices(Mul0(x, -), Slice0(x))",
        {"x": [[0.0, 2.0, 0.0], [4.0, 5.0, 6.0]], "v": [1.0, 3.0, 0.0]},
    ),
    (
        "y = x * 1; y[True] = v; y",
        "torch::autograd::CopySlices(Mul0(x, -), Expand0(View0(x)))",
        {"x": [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], "v": [5.0, 7.0, 9.0]},
    ),
    ("y = x * 1; y[False] = v; y", "Mul0(x, -)", {"x": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]}),
    (
        "y = x * 1; y[0].mul_(v); y",
        "torch::autograd::CopySlices(Mul0(x, -), x)",
        {"x": [[1.0, 4.0, 9.0], [4.0, 5.0, 6.0]], "v": [0.0, 2.0, 6.0]},
    ),
    (
        "y = x * 1; y[0][1:].mul_(2); y",
        "torch::autograd::CopySlices(Mul0(x, -), -)",
        {"x": [[1.0, 4.0, 6.0], [4.0, 5.0, 6.0]]},
    ),
    (
        "y = x * 1; y.t().mul_(2); y",
        "torch::autograd::CopySlices(Mul0(x, -), -)",
        {"x": [[2.0, 4.0, 6.0], [8.0, 10.0, 12.0]]},
    ),
    (
        "y = x * 1; y.view(6)[2:4].copy_(v[:2]); y",
        "torch::autograd::CopySlices(Mul0(x, -), Slice0(x))",
        {"x": [[1.0, 2.0, 0.0], [0.0, 5.0, 6.0]], "v": [3.0, 4.0, 0.0]},
    ),
    (
        "y = x * 1; z = y.view(6)[2:4]; z.copy_(v[:2]); z",
        "AsStrided0(torch::autograd::CopySlices(Mul0(x, -), Slice0(x)))",
        {"x": [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], "v": [1.0, 2.0, 0.0]},
    ),
    (
        "y = x * 1; y.diagonal().exp_(); y",
        "torch::autograd::CopySlices(Mul0(x, -))",
        {"x": [[1.0, 2.0, 3.0], [4.0, 272.9907501657212, 6.0]]},
    ),
    (
        "y = x * 1; y[:, ::2] *= v[:2]; y",
        "torch::autograd::CopySlices(torch::autograd::CopySlices(Mul0(x, -), Slice0(x)), "
        "AsStrided0(torch::autograd::CopySlices(Mul0(x, -), Slice0(x))))",
        {"x": [[1.0, 2.0, 6.0], [4.0, 5.0, 12.0]], "v": [12.0, 36.0, 0.0]},
    ),
    (
        "y = x * 1; y[0] += 1; y",
        "torch::autograd::CopySlices(torch::autograd::CopySlices(Mul0(x, -), -), "
        "AsStrided0(torch::autograd::CopySlices(Mul0(x, -), -)))",
        {"x": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]},
    ),
    (
        "y = x * 1; y[0] = y[1]; y",
        "torch::autograd::CopySlices(Mul0(x, -), Select0(Mul0(x, -)))",
        {"x": [[0.0, 0.0, 0.0], [5.0, 7.0, 9.0]]},
    ),
    (
        "y = x * 1; y[0] = y[1] * 2; y[1] = y[0] * 3; y",
        "torch::autograd::CopySlices(torch::autograd::CopySlices(Mul0(x, -), "
        "Mul0(Select0(Mul0(x, -)), -)), Mul0(Select0(torch::autograd::CopySlices(Mul0(x, -), "
        "Mul0(Select0(Mul0(x, -)), -))), -))",
        {"x": [[0.0, 0.0, 0.0], [26.0, 34.0, 42.0]]},
    ),
    (
        "y = x * 1; r = y[0]; y.mul_(2); r",
        "AsStrided0(Mul0(Mul0(x, -), -))",
        {"x": [[2.0, 4.0, 6.0], [0.0, 0.0, 0.0]]},
    ),
    (
        "y = x * 1; r = y[0]; y[1] = v; r * 2",
        "Mul0(AsStrided0(torch::autograd::CopySlices(Mul0(x, -), x)), -)",
        {"x": [[2.0, 4.0, 6.0], [0.0, 0.0, 0.0]], "v": [0.0, 0.0, 0.0]},
    ),
    (
        "y = x * 1; y.unsqueeze_(0); y",
        "Unsqueeze1(Mul0(x, -))",
        {"x": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]},
    ),
    ("y = x * 1; y.t_(); y", "T1(Mul0(x, -))", {"x": [[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]]}),
    (
        "y = x * 1; y.transpose_(0, -1); y",
        "Transpose1(Mul0(x, -))",
        {"x": [[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]]},
    ),
    (
        "y = b[:, :1] * 1; y.squeeze_(); y",
        "Squeeze3(Mul0(Slice0(x), -))",
        {"b": [[[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]], [[4.0, 5.0, 6.0], [0.0, 0.0, 0.0]]]},
    ),
    (
        "y = b[:, :1] * 1; y.squeeze_(1); y",
        "Squeeze4(Mul0(Slice0(x), -))",
        {"b": [[[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]], [[4.0, 5.0, 6.0], [0.0, 0.0, 0.0]]]},
    ),
    (
        "y = b[:, :1] * 1; y.squeeze_((1,)); y",
        "Squeeze5(Mul0(Slice0(x), -))",
        {"b": [[[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]], [[4.0, 5.0, 6.0], [0.0, 0.0, 0.0]]]},
    ),
    (
        "y = x * 1; y.masked_fill_(m, 0); y",
        "MaskedFill0(Mul0(x, -))",
        {"x": [[0.0, 2.0, 0.0], [4.0, 0.0, 0.0]]},
    ),
    (
        "y = x * 1; y.masked_fill_(m, s); y",
        "MaskedFill1(Mul0(x, -), x)",
        {"x": [[0.0, 2.0, 0.0], [4.0, 0.0, 0.0]], "s": 15.0},
    ),
    (
        "y = x * 1; y.index_put_((i, i), v[:2], accumulate=True); y",
        "IndexPut0(Mul0(x, -), Slice0(x))",
        {"x": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], "v": [1.0, 5.0, 0.0]},
    ),
    (
        "y = x * 1; y.index_add_(1, k, x[:, :2], alpha=3); y",
        "IndexAdd0(Mul0(x, -), Slice0(x))",
        {"x": [[10.0, 5.0, 3.0], [22.0, 17.0, 6.0]]},
    ),
    (
        "y = x * 1; y.scatter_(1, j, 2.); y",
        "Scatter1(Mul0(x, -))",
        {"x": [[0.0, 0.0, 0.0], [0.0, 0.0, 6.0]]},
    ),
    ("y = x * 1; y.tril_(); y", "Tril0(Mul0(x, -))", {"x": [[1.0, 0.0, 0.0], [4.0, 5.0, 0.0]]}),
    (
        "y = b * 1; z = y[0]; z[1] = v; y[1].zero_(); y",
        "torch::autograd::CopySlices(torch::autograd::CopySlices(Mul0(x, -), x))",
        {
            "b": [[[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]],
            "v": [4.0, 5.0, 6.0],
        },
    ),
    (
        "y = b * 1; y.permute(2, 0, 1)[0] = x[:, :2]; y",
        "torch::autograd::CopySlices(Mul0(x, -), Slice0(x))",
        {
            "x": [[1.0, 4.0, 0.0], [7.0, 10.0, 0.0]],
            "b": [[[0.0, 2.0, 3.0], [0.0, 5.0, 6.0]], [[0.0, 8.0, 9.0], [0.0, 11.0, 12.0]]],
        },
    ),
    (
        "y = x * 1; y.as_strided((2,), (2,)).mul_(v[:2]); y",
        "torch::autograd::CopySlices(Mul0(x, -), Slice0(x))",
        {"x": [[1.0, 2.0, 6.0], [4.0, 5.0, 6.0]], "v": [0.0, 6.0, 0.0]},
    ),
    (
        "y = x * 1; y.narrow(1, 1, 1).fill_(s); y",
        "torch::autograd::CopySlices(Mul0(x, -), x)",
        {"x": [[1.0, 0.0, 3.0], [4.0, 0.0, 6.0]], "s": 7.0},
    ),
    ("y = x * 1; y.T.flatten()[0] = 1; y", "Mul0(x, -)", {"x": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]}),
    (
        "y = c * 1; y.real.mul_(3); y",
        "torch::autograd::CopySlices(Mul0(x, -), -)",
        {"c": [[(3 + 0j), (3 + 0j)]]},
    ),
    (
        "y = c * 1; y.imag.copy_(v[:2]); y",
        "torch::autograd::CopySlices(Mul0(x, -), Slice0(x))",
        {"v": [0.0, 0.0, 0.0], "c": [[(1 + 0j), (1 + 0j)]]},
    ),
    (
        "y = s * 1; y[()] = v[0]; y",
        "torch::autograd::Copys(Mul0(x, -), Select0(x))",
        {"v": [1.0, 0.0, 0.0], "s": 0.0},
    ),
    (
        "y = s * 1; y[None] = v[:1]; y",
        "torch::autograd::CopySlices(Mul0(x, -), Slice0(x))",
        {"v": [1.0, 0.0, 0.0], "s": 0.0},
    ),
]


@sweep(("program", "graph", "gradients"), PROGRAMS, parts=1)
def test_history_and_gradients(
    torch: Any, program: str, graph: str, gradients: dict[str, Any]
) -> None:
    given = names(torch)
    *statements, last = program.split("; ")
    exec("; ".join(statements), given)
    result = eval(last, given)
    assert tree(result.grad_fn) == graph
    if result.is_complex():
        seed = torch.ones_like(result)
    else:
        seed = torch.arange(1.0, result.numel() + 1, dtype=result.dtype).reshape(result.shape)
    result.backward(seed)
    for name, expected in gradients.items():
        assert given[name].grad.tolist() == expected, name


def test_versions_are_shared(torch: Any) -> None:
    base = torch.zeros(2, 3)
    view, copy = base[0], base.clone()
    base.add_(1)
    view.mul_(2)
    base[1] = 4
    base.view(6)[0] = 1
    assert (base._version, view._version, copy._version) == (4, 4, 0)
    assert base.tolist() == [[1, 2, 2], [4, 4, 4]]
    base.t_()
    assert (base._version, base.shape) == (5, (3, 2))


def test_a_chain_of_writes_is_a_chain_of_nodes(torch: Any) -> None:
    x = names(torch)["x"]
    y = x * 1
    for k in range(50):
        y[k % 2] *= 1.0 if k > 1 else 3.0
    y.sum().backward()
    assert x.grad.tolist() == [[3, 3, 3], [3, 3, 3]]


def test_views_are_forgotten_when_they_go(torch: Any) -> None:
    base = torch.zeros(4)
    for _ in range(1000):
        base[0] += 1
    assert base.tolist() == [1000, 0, 0, 0]
    assert base._version == 2000


REFUSED = [
    # program, message
    (
        "x[0] = 1",
        "a view of a leaf Variable that requires grad is being used in an in-place operation.",
    ),
    (
        "v[torch.tensor([True, False, True])] = 1",
        "a leaf Variable that requires grad is being used in an in-place operation.",
    ),
    ("v.t_()", "a leaf Variable that requires grad is being used in an in-place operation."),
    (
        "x.detach()[0] = torch.ones(2)",
        "The expanded size of the tensor (3) must match the existing size (2) at non-singleton "
        "dimension 0.  Target sizes: [3].  Tensor sizes: [2]",
    ),
    (
        "x.detach()[[0, 1]] = torch.ones(2, dtype=torch.float64)",
        "shape mismatch: value tensor of shape [2] cannot be broadcast to indexing result of "
        "shape [2, 3]",
    ),
    (
        "x.detach()[[0, 1]] = torch.ones(3, dtype=torch.float32)",
        "Index put requires the source and destination dtypes match, got Double for the "
        "destination and "
        "Float for the source.",
    ),
    ("x.detach()[0] = 1j", "value cannot be converted to type double without overflow"),
    (
        "x.detach().fill_(torch.ones(1))",
        "fill_ only supports 0-dimension value tensor but got tensor with 1 dimensions.",
    ),
    (
        "y = x.detach(); y[:, 1:] = y[:, :-1]; y.add_(1); y.view(6)[1:].add_(y.view(6)[:-1])",
        "unsupported operation: some elements of the input tensor and the written-to tensor "
        "refer to a "
        "single memory location. Please clone() the tensor before performing the operation.",
    ),
    (
        "torch.zeros(3).expand(2, 3).add_(1)",
        "unsupported operation: more than one element of the written-to tensor refers to a "
        "single memory "
        "location. Please clone() the tensor before performing the operation.",
    ),
    ("x.resize_(3)", "cannot resize variables that require grad"),
]


@sweep(("program", "message"), REFUSED, parts=1)
def test_refused(torch: Any, program: str, message: str) -> None:
    with pytest.raises(RuntimeError) as caught:
        exec(program, names(torch))
    assert str(caught.value).split("\n")[0] == message


def test_one_value_may_be_written_to_shared_memory(torch: Any) -> None:
    wide = torch.zeros(3).expand(2, 3)
    wide.fill_(2)
    assert wide.tolist() == [[2, 2, 2], [2, 2, 2]]


def test_second_derivatives_through_a_written_view(torch: Any) -> None:
    x = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
    y = x * 1
    y[0].pow_(3)
    y[1:].exp_()
    (first,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    expected = [30.0, *(4 * torch.exp(2 * x.detach()[1:])).tolist()]
    assert second.tolist() == pytest.approx(expected)


@pytest.mark.parametrize("size", [2, 3])
def test_memory_that_becomes_anothers_has_no_derivative(torch: Any, size: int) -> None:
    x = torch.ones(2, requires_grad=True)
    taken = (x * 1).set_(torch.ones(size))
    assert taken.tolist() == [1.0] * size
    with pytest.raises(RuntimeError, match=r"^derivative for set_ is"):
        taken.sum().backward()

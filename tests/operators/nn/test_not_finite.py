"""Infinities and NaN: PyTorch's answers, operand by operand and place by place."""

from __future__ import annotations

import re
from math import inf, nan

import numpy as np
import pytest

import gradcli
from tests.fuzz import nn_against_torch, not_finite
from tests.sweep import some

F = gradcli.nn.functional
IMAGE = gradcli.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
# The slopes of some at NaN depend on the place in a vector, or are of two kinds.
UNSTEADY = r"shrink|hard|relu6|elu\(|swish|m\.dist|conv"

# Answers of PyTorch 2.13.
ANSWERS = [
    ("an infinite score", lambda: _attended(inf), [nan, nan]),
    ("a score of minus infinity", lambda: _attended(-inf), [3.0, 4.0]),
    ("NaN is neither near nor far", lambda: gradcli.cdist(_row(nan, 1), _row(0, 0), 0.0), [[nan]]),
    ("the largest passes NaN over", lambda: gradcli.cdist(_row(nan, 1), _row(0, 0), inf), [[1.0]]),
    ("pdist does not", lambda: F.pdist(gradcli.tensor([[nan, 1.0], [0.0, 0.0]]), inf), [nan]),
    ("NaN of a grid, zeros around", lambda: _sampled("bilinear", "zeros"), nan),
    ("NaN of a grid, border", lambda: _sampled("bilinear", "border"), 1.0),
    ("NaN of a grid, reflection", lambda: _sampled("nearest", "reflection"), 1.0),
    ("NaN of a grid, nearest", lambda: _sampled("nearest", "zeros"), 0.0),
    (
        "the norm of infinity",
        lambda: F.lp_pool1d(gradcli.tensor([[1.0, -3.0, 2.0, -inf]]), inf, 2),
        [[3.0, inf]],
    ),
    ("the least", lambda: F.lp_pool2d(IMAGE - 3, -inf, 2), [[[[0.0]]]]),
]


def _row(*numbers: float) -> gradcli.Tensor:
    return gradcli.tensor([[float(n) for n in numbers]])


def _attended(score: float) -> gradcli.Tensor:
    keys, values = gradcli.tensor([[score], [1.0]]), gradcli.tensor([[1.0, 2.0], [3.0, 4.0]])
    return F.scaled_dot_product_attention(gradcli.ones(1, 1), keys, values)[0]


def _sampled(mode: str, padding: str) -> gradcli.Tensor:
    grid = gradcli.tensor([[[[nan, -1.0]]]])
    return F.grid_sample(IMAGE, grid, mode, padding, True)[0, 0, 0, 0]


@pytest.mark.parametrize(("what", "found", "wanted"), ANSWERS, ids=[a[0] for a in ANSWERS])
def test_answers(what, found, wanted) -> None:
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found().numpy(), np.array(wanted, np.float32))


def test_an_infinite_gradient_stays_where_it_belongs() -> None:
    x = gradcli.tensor([[1.0, 2.0]], requires_grad=True)
    w = gradcli.tensor([[[1.0, -1.0]]])
    y = F.bilinear(gradcli.ones(1, 1), x, w)
    y.backward(gradcli.tensor([[inf]]))
    assert x.grad.tolist() == [[inf, -inf]]
    image = IMAGE.clone().requires_grad_()
    with np.errstate(all="ignore"):
        out = F.grid_sample(image, gradcli.tensor([[[[1.5, 0.0]]]]), align_corners=True)
        out.backward(gradcli.full((1, 1, 1, 1), inf))
    assert image.grad.tolist() == [[[[0.0, inf], [0.0, inf]]]]


def test_running_statistics_are_no_variables() -> None:
    x, mean = gradcli.ones(1, 2, 3), gradcli.zeros(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="not differentiable with respect to argument 'running_"):
        F.instance_norm(x, mean, gradcli.ones(2), use_input_stats=False)


@pytest.mark.parametrize("name", ["softplus", "smooth_l1_loss", "huber_loss"])
def test_second_slopes_keep_what_is_not_finite_where_they_are_flat(name: str) -> None:
    """PyTorch multiplies by the mask: NaN that comes in goes out, and infinity times 0 is NaN."""
    more = () if name == "softplus" else (gradcli.zeros(2),)
    options = {} if name == "softplus" else {"reduction": "none"}
    for given in (inf, nan):
        x = gradcli.tensor([0.25, 30.0], requires_grad=True)
        y = getattr(F, name)(x, *more, **options)
        seed = gradcli.full((2,), given)
        (slope,) = gradcli.autograd.grad(y, x, seed, create_graph=True)
        (found,) = gradcli.autograd.grad(slope, x, gradcli.ones(2))
        near, far = found.tolist()
        assert far != far and (near != near if given != inf else near == inf)


@pytest.mark.long
@pytest.mark.needs("torch")
@pytest.mark.parametrize("part", some(range(8), 4))
def test_second_gradients_at_each_place_as_pytorch(part: int) -> None:
    nn_against_torch.load()
    calls = list(dict.fromkeys([*nn_against_torch.CALLS, *not_finite.MORE, *not_finite.PLAIN]))
    calls = [c for c in calls if not re.search(UNSTEADY, c[0])]
    found = [w for c in calls[part::8] for w in not_finite.differences(*c, "f8", second=True)]
    assert found == []


@pytest.mark.long
@pytest.mark.needs("torch")
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("part", some(range(8), 2))
def test_each_place_as_pytorch(part: int, dtype: str) -> None:
    nn_against_torch.load()
    calls = list(dict.fromkeys([*nn_against_torch.CALLS, *not_finite.MORE]))
    calls = [c for c in calls if not re.search(UNSTEADY, c[0])]
    found = [w for c in calls[part::8] for w in not_finite.differences(*c, dtype)]
    assert found == []

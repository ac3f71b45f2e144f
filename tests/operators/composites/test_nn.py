"""nn.functional: kinks, random numbers, running statistics, second derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradcli
from tests.engine.registry.both import ask, gradient, same, torch
from tests.sweep import sweep

_ = torch  # the fixture

# Subgradients at the kinks, as torch takes them.
KINKS = [
    ("relu(x)", [-1.0, 0.0, 1.0], [0.0, 0.0, 1.0]),
    ("relu6(x)", [0.0, 3.0, 6.0], [0.0, 1.0, 0.0]),
    ("hardtanh(x)", [-1.0, 0.0, 1.0], [0.0, 1.0, 0.0]),
    ("leaky_relu(x, 0.1)", [-1.0, 0.0, 1.0], [0.1, 0.1, 1.0]),
    ("threshold(x, 0.5, 9.)", [0.4, 0.5, 0.6], [0.0, 0.0, 1.0]),
    ("hardshrink(x)", [-0.5, 0.5, 0.6], [0.0, 0.0, 1.0]),
    ("softshrink(x)", [-0.5, 0.5, 0.6], [0.0, 0.0, 1.0]),
    ("elu(x)", [0.0, 1.0, -50.0], [1.0, 1.0, 0.0]),
    ("hardswish(x)", [-3.0, 3.0, 4.0], [0.0, 1.0, 1.0]),
    ("prelu(x, torch.tensor([0.25], dtype=torch.float64))", [-1.0, 0.0, 1.0], [0.25, 0.25, 1.0]),
    ("logsigmoid(x)", [-800.0, 0.0, 800.0], [1.0, 0.5, 0.0]),
    ("softplus(x)", [-800.0, 0.0, 800.0], [0.0, 0.5, 1.0]),
    ("l1_loss(x, x.detach(), reduction='sum')", [1.0, -2.0, 0.0], [0.0, 0.0, 0.0]),
    ("smooth_l1_loss(x, 0 * x, reduction='sum')", [-1.0, 0.5, 2.0], [-1.0, 0.5, 1.0]),
    ("huber_loss(x, 0 * x, reduction='sum', delta=0.5)", [-0.5, 0.2, 2.0], [-0.5, 0.2, 0.5]),
    ("normalize(x, dim=0)", [0.0, 0.0, 0.0], [1e12, 1e12, 1e12]),
    ("max_pool1d(x[None], 2)", [1.0, 1.0, 0.0, 2.0], [1.0, 0.0, 0.0, 1.0]),
    ("margin_ranking_loss(x, 0 * x, torch.ones(3))", [1.0, 0.0, -1.0], [0.0, -1 / 3, -1 / 3]),
]


@sweep(("expression", "x", "expected"), KINKS, parts=1)
def test_kinks(torch: Any, expression: str, x: Any, expected: Any) -> None:
    same(gradient(torch, f"torch.nn.functional.{expression}", x), expected, 1e-6)


# As many sizes as there are dimensions, or one for all; the words are torch's.
SIZES = [
    ("max_pool1d(x, (2, 2))", "max_pool1d() kernel_size must be an int, list of ints or tuple of ints of"
     " size 1 but got size 2"),
    ("max_pool1d(x, 2, (2, 2))", "max_pool1d() stride must be None, an int, list of ints, or tuple of ints"
     " of size 1 but got size 2"),
    ("max_pool1d(x, 2, padding=())", "max_pool1d() padding must be an int, list of ints, or tuple of ints"
     " of size 1 but got size 0"),
    ("max_pool2d(x, (2, 2, 2))",
     "max_pool2d: kernel_size must either be a single int, or a tuple of two ints"),
    ("max_pool3d(x, 2, dilation=(1, 1))",
     "max_pool3d: dilation must be either a single int, or a tuple of three ints"),
    ("avg_pool1d(x, (2, 2))", "avg_pool1d() argument 'kernel_size' should contain one int (got 2)"),
    ("lp_pool1d(x, 2, 2, (1, 1))", "avg_pool1d() argument 'stride' should contain one int (got 2)"),
    ("avg_pool2d(x, 2, stride=(1, 1, 1))",
     "avg_pool2d: stride must either be omitted, a single int, or a tuple of two ints"),
    ("avg_pool3d(x, 2, stride=(1, 1))",
     "avg_pool3d: stride must be omitted, a single int, or a tuple of three ints"),
    ("adaptive_avg_pool1d(x, (2, 2))",
     "adaptive_avg_pool1d() argument 'output_size' should contain one int (got 2)"),
    ("adaptive_max_pool2d(x, (2,))",
     "adaptive_max_pool2d(): internal error: output_size.size() must be 2"),
    ("adaptive_avg_pool3d(x, (2, 2))", "adaptive_avg_pool3d: output_size must be 3"),
    ("adaptive_avg_pool2d(x, (2, 2, 2))", "Input dimension should be at least 4"),
    ("conv1d(x, x, stride=(1, 1))", "expected stride to be a single integer value or a list of 1 values to"
     " match the convolution dimensions, but got stride=[1, 1]"),
    ("conv_transpose2d(x, x.unsqueeze(1), output_padding=())", "expected output_padding to be a single"
     " integer value or a list of 2 values to match the convolution dimensions, but got output_padding=[]"),
]  # fmt: skip


# Operands that do not fit one another.
OPERANDS = [
    ("instance_norm(x, weight=x[0, 0, :1])", "weight should contain 4 elements not 2"),
    ("batch_norm(x[0, 0], None, None, x[0, 0], None, True)", "weight should contain 0 elements not 2"),
    ("nll_loss(x[0, 0], x[0].long())", "0D or 1D target tensor expected, multi-target not supported"),
    ("nll_loss(x[0, 0], x[0, 0].long())", "For 1D input, 1D target must have size 1"),
    ("triplet_margin_with_distance_loss(x, x[0], x)",
     "The anchor, positive, and negative tensors are expected to have the same number of dimensions"),
    ("multilabel_margin_loss(x, x.long())",
     "Expected non-empty vector or matrix with optional 0-dim batch size, but got: [2, 2, 2]"),
    ("multilabel_margin_loss(x[0], x.long())",
     "inconsistent target size: [2, 2, 2] for input of size: [2, 2]"),
    ("embedding_bag(5 * x[0].long(), x[0])",
     "Index 0 of input takes value 5 which is not in the valid range [0, 2)"),
    ("embedding_bag(x[0].long(), x)", "weight has to be a 2D Tensor, but got Tensor of dimension 3"),
    ("max_pool1d(x, 3)", "max_pool1d() Invalid computed output size: 0"),
    ("conv1d(x, x, groups=0)", "non-positive groups is not supported"),
    ("conv_transpose1d(x, x, groups=0)", "non-positive groups is not supported"),
    ("conv1d(x, x[0])", "weight should have at least three dimensions"),
    ("conv1d(x, x[None])", "Expected 4-dimensional input for 4-dimensional weight [1, 2, 2, 2], but got"
     " 3-dimensional input of size [2, 2, 2] instead"),
    ("conv2d(x, x)", "expected stride to be a single integer value or a list of 1 values to match the"
     " convolution dimensions, but got stride=[1, 1]"),
    ("conv1d(x, x[:0])", "Given groups=1, expected weight to be at least 1 at dimension 0, but got weight"
     " of size [0, 2, 2] instead"),
    ("conv_transpose1d(x, torch.ones(3, 2, 2), groups=2)", "Given groups=2, expected weight to be divisible"
     " by 2 at dimension 0, but got weight of size [[3, 2, 2]] instead"),
    ("mse_loss(x, x, reduction=[])", "[] is not a valid value for reduction"),
    ("unfold(x, ())", "It is expected kernel_size equals to 2, but got size 0"),
    ("fold(x, (4, 4, 4), 2)", "It is expected output_size equals to 2, but got size 3"),
    ("interpolate(x, scale_factor=(1, 2))", "Input and scale_factor must have the same number of spatial"
     " dimensions, but got input with spatial dimensions of [2] and scale_factor of shape (1, 2). Please"
     " provide input tensor in (N, C, d1, d2, ...,dK) format and scale_factor in (s1, s2, ...,sK) format."),
    ("interpolate(x, size=(1, 2))", "Input and output must have the same number of spatial dimensions, but"
     " got input with spatial dimensions of [2] and output size of (1, 2). Please provide input tensor in"
     " (N, C, d1, d2, ...,dK) format and output size in (o1, o2, ...,oK) format."),
    ("interpolate(x, size=2, mode='bilinear')", "Got 3D input, but bilinear mode needs 4D input"),
    ("interpolate(x[0], size=2)",
     "Input Error: Only 3D, 4D and 5D input Tensors supported (got 2D) for the modes: nearest"),
    ("grid_sample(x[:1, None], x[:, None])",
     "grid_sampler(): expected grid and input to have same batch size"),
]  # fmt: skip


@sweep(("call", "words"), [*SIZES, *OPERANDS], parts=1)
def test_refusals(torch: Any, call: str, words: str) -> None:
    x = torch.ones(2, 2, 2)
    with pytest.raises((RuntimeError, ValueError, NotImplementedError)) as refusal:
        ask(torch, f"torch.nn.functional.{call}", x=x)
    assert str(refusal.value).startswith(words)


# Random numbers are torch's to the bit: the same mask from the same seed.
DROPPED = [
    ("dropout(x, 0.5)", [0.0, 0.0, 2.0, 0.0, 0.0, 0.0]),
    ("alpha_dropout(x, 0.5, True)", None),
    ("rrelu(-x, 0.1, 0.4, True)", None),
]


@pytest.mark.parametrize(("expression", "expected"), DROPPED)
def test_seeded(torch: Any, expression: str, expected: Any) -> None:
    torch.manual_seed(0)
    x = torch.ones(6, dtype=torch.float64)
    first = ask(torch, f"torch.nn.functional.{expression}", x=x).tolist()
    torch.manual_seed(0)
    assert ask(torch, f"torch.nn.functional.{expression}", x=x).tolist() == first
    if expected is not None:
        assert first == expected


def test_running_statistics_move(torch: Any) -> None:
    x = torch.tensor([[1.0, 2.0], [3.0, 6.0]])
    mean, var = torch.zeros(2), torch.ones(2)
    torch.nn.functional.batch_norm(x, mean, var, training=True, momentum=0.5)
    assert mean.tolist() == [1.0, 2.0]
    assert var.tolist() == [1.5, 4.5]


def test_embedding_leaves_padding_alone(torch: Any) -> None:
    weight = torch.ones(3, 2, requires_grad=True)
    index = torch.tensor([0, 1, 1, 2])
    torch.nn.functional.embedding(index, weight, padding_idx=1).sum().backward()
    assert weight.grad.tolist() == [[1.0, 1.0], [0.0, 0.0], [1.0, 1.0]]


def test_attention_of_a_masked_row_is_zero(torch: Any) -> None:
    q = torch.ones(1, 2, 3)
    mask = torch.tensor([[True, True], [False, False]])
    out = torch.nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=mask)
    assert out[0, 1].tolist() == [0.0, 0.0, 0.0]


CALLS = [
    *("linear(x, x, x[0])", "layer_norm(x, (3,), x[0], x[1])", "rms_norm(x, (3,))"),
    *("group_norm(x[None], 1)", "batch_norm(x, None, None, x[0], x[1], training=True)"),
    *("gelu(x)", "gelu(x, approximate='tanh')", "silu(x)", "mish(x)", "elu(x)", "celu(x, 0.5)"),
    *("celu_(x*1, 0.5)", "elu_(x*1, 0.7)", "celu(x, 3.0)"),
    *("logsigmoid(x)", "glu(x.reshape(9)[:8])", "prelu(x, x[0, :1])", "softplus(x)"),
    *("mse_loss(x, x.T)", "huber_loss(x, x.T)", "smooth_l1_loss(x, x.T, beta=0.3)"),
    *("cross_entropy(x, arange(3))", "kl_div(x, softmax(x, 1), reduction='sum')"),
    *("binary_cross_entropy(sigmoid(x), sigmoid(x.T))", "soft_margin_loss(x, sign(x).detach())"),
    *("binary_cross_entropy_with_logits(x, sigmoid(x.T))", "cosine_similarity(x, x.T)"),
    *("conv1d(x[None], x[None, :, :2], x[0, :1])", "conv_transpose1d(x[None], x[:, None])"),
    *(
        "conv2d(x[None, None], x[None, None, :2, :2], padding=1, stride=2)",
        "bilinear(x, x, x[None])",
    ),
    *("avg_pool1d(x, 2)", "max_pool1d(x, 2)", "adaptive_avg_pool1d(x, 2)", "pad(x, (1, 1))"),
    *("pad(x, (1, 1), mode='reflect')", "interpolate(x[None], size=5, mode='linear')"),
    *("interpolate(x[None, None], size=(4, 5), mode='bicubic')", "unfold(x[None, None], 2)"),
    *("scaled_dot_product_attention(x[None], x.T[None], x[None])", "normalize(x)"),
]


@sweep("call", CALLS, parts=1)
def test_second_derivative(call: str) -> None:
    """The double-backward graph gives what differences of gradients give."""
    rng = np.random.default_rng(5)
    start, direction, step = rng.standard_normal((3, 3)), rng.standard_normal((3, 3)), 1e-6
    space = {n: getattr(gradcli, n) for n in ("arange", "softmax", "sigmoid", "sign")}

    def slope(value: Any, create: bool = False) -> Any:
        x = gradcli.tensor(value, dtype=gradcli.float64).requires_grad_()
        y = eval(f"F.{call}", {**space, "F": gradcli.nn.functional, "x": x})
        return x, gradcli.autograd.grad((y**2).sum(), x, create_graph=create)[0]

    x, g = slope(start, create=True)
    product = (g * gradcli.tensor(direction, dtype=gradcli.float64)).sum()
    analytic = gradcli.autograd.grad(product, x)[0].numpy()
    up, down = (slope(start + s * step * direction)[1].numpy() for s in (1, -1))
    np.testing.assert_allclose(analytic, (up - down) / (2 * step), rtol=2e-4, atol=2e-4)


FOURIER = [
    *("fft(x)", "ifft(x)", "rfft(x)", "hfft(x)", "ihfft(x)", "fft2(x)", "ifft2(x)", "rfft2(x)"),
    *("fftn(x)", "irfft(x + 0j)", "irfft2(x + 0j)"),
    *("fft(x, n=5)", "fft(x, n=2, dim=0)", "rfft(x, norm='ortho')", "irfft(x + 0j, n=5)"),
]


@sweep("call", FOURIER, parts=1)
def test_fourier_transforms_are_numpys(call: str) -> None:
    x = np.random.default_rng(2).standard_normal((3, 4))
    mine = eval(f"fft.{call}", {"fft": gradcli.fft, "x": gradcli.tensor(x, dtype=gradcli.float64)})
    name = call.replace("dim=", "axis=")
    found = mine.resolve_conj().numpy()
    np.testing.assert_allclose(found, eval(f"np.fft.{name}", {"np": np, "x": x}), atol=1e-12)


@pytest.mark.parametrize("mean", [None, gradcli.zeros(2)])
def test_evaluation_needs_statistics(mean: Any) -> None:
    """torch's own process ends here."""
    with pytest.raises(RuntimeError, match="must be defined in evaluation mode"):
        gradcli.native_batch_norm(gradcli.ones(2, 2), None, None, mean, None, False, 0.1, 1e-5)


def test_antialiasing_beyond_the_input_is_nothing() -> None:
    x = gradcli.arange(16.0).reshape(1, 1, 4, 4)
    found = gradcli._upsample_bilinear2d_aa(x, (2, 2), False, 0.001, 0.001)
    assert found[0, 0].tolist() == [[pytest.approx(7.5124507), 0.0], [0.0, 0.0]]  # as torch's


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("size", "kernel", "how"),
    [
        ((9,), (3,), {}),
        ((12,), (4,), {"padding": 2, "dilation": 2}),
        ((7, 10), (3, 3), {"padding": 1}),
        ((8, 9), (3, 2), {"padding": (1, 0), "dilation": (2, 1)}),
        ((5, 6), (5, 6), {}),
        ((4, 5, 6), (2, 3, 2), {"padding": 1}),
    ],
)
def test_convolutions_by_long_runs_are_sums_over_windows(
    size: Any, kernel: Any, how: Any, dtype: Any, monkeypatch: Any
) -> None:
    """Steps of one: images in one row, whose windows are read at fixed distances, block by block."""
    from gradcli.operators.nn import convolution

    g = np.random.default_rng(len(size))
    x, w = g.standard_normal((3, 2, *size)), g.standard_normal((4, 2, *kernel))
    convolve = getattr(gradcli.nn.functional, f"conv{len(size)}d")

    def found() -> list[Any]:
        leaves = [gradcli.tensor(a.astype(dtype), requires_grad=True) for a in (x, w)]
        out = convolve(*leaves, **how)
        (out * out).sum().backward()
        return [out.detach().numpy(), *[t.grad.numpy() for t in leaves]]

    with monkeypatch.context() as other:
        other.setattr(convolution._Flat, "of", classmethod(lambda *args: None))
        wanted = found()
    monkeypatch.setattr(convolution, "_BLOCK", 1)
    monkeypatch.setattr(convolution, "_BORDER", 100)
    for a, b in zip(wanted, found(), strict=True):
        assert b.flags.c_contiguous == a.flags.c_contiguous
        np.testing.assert_allclose(b, a, rtol=1e-4 if dtype == np.float32 else 1e-12, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_choice_against_zero_has_numpys_bits(dtype: Any) -> None:
    from gradcli.engine.registry.rule_helpers import where

    g = np.random.default_rng(0)
    x, a = g.standard_normal((2, 70, 64)).astype(dtype)
    a[:3], a[3:6], a[6:9] = np.nan, -0.0, np.inf
    for zero in (0, 0.0, -0.0, dtype(0), np.float64(0), np.float32(0), np.zeros((), dtype)):
        for condition in (x > 0, x[:1] > 0, np.asfortranarray(x > 0)):
            for both in ((a, zero), (zero, a)):
                wanted, found = np.where(condition, *both), where(condition, *both)
                assert (found.dtype, found.strides) == (wanted.dtype, wanted.strides)
                assert found.tobytes() == wanted.tobytes()

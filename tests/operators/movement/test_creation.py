"""Creation functions against torch's, recorded in golden/creation.json."""

import hashlib
import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import gradcli as torch
from gradcli.engine.system import dtypes
from tests.sweep import sweep

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "creation.json").read_text())


@pytest.fixture(autouse=True)
def float32():
    before = dtypes.get_default_dtype()
    dtypes.set_default_dtype(dtypes.float32)
    yield
    dtypes.set_default_dtype(before)


def shown(value):
    """A result as the recorder writes it."""
    dtype = f" {value.dtype}" if isinstance(value, torch.Tensor) else ""
    return repr(value) + dtype


@sweep("case", GOLDEN["cases"], name=lambda case: case["call"])
def test_calls_answer_as_torch(case):
    torch.manual_seed(7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = {"result": shown(eval(case["call"], {"torch": torch, "np": np}))}
        except Exception as error:
            found = {"error": [type(error).__name__, str(error)]}
    assert {"call": case["call"]} | found == case


def test_ranges_are_torchs_bit_for_bit():
    for call, digest in GOLDEN["ranges"]:
        data = np.asarray(eval(call, {"torch": torch}).array).tobytes()
        assert hashlib.blake2b(data, digest_size=8).hexdigest() == digest, call


def node(tensor):
    """The name of a result's node and of what comes before it."""
    fn = tensor.grad_fn
    return (fn.name(), [n.name() if n else None for n, _ in fn.next_functions])


LEAF = "torch::autograd::AccumulateGrad"


@sweep(
    ("call", "expected"),
    [
        (lambda x: torch.normal(x, x), ("NormalBackward3", [LEAF, LEAF])),
        (lambda x: torch.normal(x, 1.0), ("NormalBackward1", [LEAF])),
        (lambda x: torch.normal(1.0, x), ("NormalBackward2", [LEAF])),
        (lambda x: torch.bernoulli(x / 2), ("BernoulliBackward0", ["DivBackward0"])),
        (lambda x: torch.complex(x, x), ("ComplexBackward0", [LEAF, LEAF])),
        (lambda x: torch.polar(x, x), ("PolarBackward0", [LEAF, LEAF])),
        (lambda x: (x * 1).uniform_(), ("UniformBackward0", ["MulBackward0"])),
        (lambda x: (x * 1).normal_(), ("NormalBackward0", ["MulBackward0"])),
        (lambda x: (x * 1).random_(), ("RandomBackward0", ["MulBackward0"])),
        (lambda x: (x * 1).random_(3), ("RandomBackward1", ["MulBackward0"])),
        (lambda x: (x * 1).random_(3, 5), ("RandomBackward2", ["MulBackward0"])),
        (lambda x: (x * 1).bernoulli_(0.5), ("BernoulliBackward2", ["MulBackward0"])),
        (
            lambda x: (x * 1).bernoulli_(x / 3),
            ("BernoulliBackward1", ["MulBackward0", "DivBackward0"]),
        ),
        (lambda x: (x * 1).exponential_(), ("ExponentialBackward0", ["MulBackward0"])),
        (lambda x: (x * 1).cauchy_(), ("CauchyBackward0", ["MulBackward0"])),
        (lambda x: (x * 1).geometric_(0.5), ("GeometricBackward0", ["MulBackward0"])),
        (lambda x: (x * 1).log_normal_(), ("LogNormalBackward0", ["MulBackward0"])),
    ],
    parts=1,
)
def test_random_results_have_torchs_nodes(call, expected):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    out = call(x)
    assert node(out) == expected
    if not out.is_complex():
        out.sum().backward()
        assert x.grad.tolist() == [0, 0]


def test_filling_in_place_draws_as_torch():
    torch.manual_seed(7)
    x = torch.zeros(2, 3)
    assert x.normal_() is x
    torch.manual_seed(7)
    assert x.tolist() == torch.randn(2, 3).tolist()
    torch.manual_seed(7)
    across = torch.zeros(3, 2).t().uniform_()
    torch.manual_seed(7)
    assert across.t().flatten().tolist() == torch.rand(6).tolist()
    with pytest.raises(RuntimeError, match="a leaf Variable that requires"):
        torch.zeros(2, requires_grad=True).normal_()


def test_gradients_reach_the_parts_of_complex_numbers():
    a = torch.tensor([1.0, 2.0], requires_grad=True)
    b = torch.tensor([0.5, -1.0], requires_grad=True)
    torch.complex(a, b).backward(torch.tensor([1 + 2j, 3 - 1j]))
    assert a.grad.tolist() == [1, 3] and b.grad.tolist() == [2, -1]
    a.grad = b.grad = None
    torch.polar(a, b).backward(torch.tensor([1 + 2j, 3 - 1j]))
    assert np.allclose(a.grad.numpy(), [1.8364338, 2.4623780])
    assert np.allclose(b.grad.numpy(), [1.2757397, 3.9682212])


def test_nested_data_of_any_depth_and_size():
    data = [0.5] * 200_000
    assert torch.tensor(data).shape == (200_000,)
    deep = 1.0
    for _ in range(32):
        deep = [deep]
    assert torch.tensor(deep).ndim == 32
    endless = []
    endless.append(endless)
    with pytest.raises(ValueError, match="too many dimensions 'list'"):
        torch.tensor(endless)


def test_memory_is_shared_or_copied():
    array = np.arange(3.0)
    assert torch.from_numpy(array).numpy() is array
    shared, copied = torch.as_tensor(array), torch.tensor(array)
    array[0] = 9
    assert shared.tolist() == [9, 1, 2] and copied.tolist() == [0, 1, 2]
    x = torch.tensor([1.0])
    assert torch.as_tensor(x) is x and torch.asarray(x, copy=True) is not x
    y = torch.FloatTensor(x)
    y.uniform_()
    assert x.item() == y.item() < 1


def test_asarray_shares_copies_and_detaches():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    assert torch.asarray(x) is x
    assert torch.asarray(x * 1).grad_fn is not None
    assert torch.asarray(x * 1, requires_grad=False).is_leaf
    assert torch.asarray([1.0], requires_grad=True).requires_grad
    with pytest.raises(ValueError, match="alias tensor with dtype 'Double' into dtype 'Float'"):
        torch.asarray(np.ones(2), dtype=torch.float32, copy=False)
    with pytest.raises(ValueError, match="can't alias arbitrary sequence"):
        torch.asarray([1], copy=False)


def test_signatures_are_readable():
    from gradcli.engine.registry.table import resolve

    for name in ("zeros", "tensor", "FloatTensor", "new_zeros", "arange", "uniform_"):
        assert resolve(name).signature.startswith(f"{name}(")
    assert "named" not in resolve("zeros").signature
    assert resolve("arange").signature.startswith("arange(end, *, dtype=None")


def test_new_tensors_keep_the_layout_of_the_old():
    x = torch.ones(2, 3).t()
    assert torch.zeros_like(x).stride() == torch.randn_like(x).stride() == (1, 3)
    assert torch.empty_strided((2, 3), (1, 2)).stride() == (1, 2)


def test_other_devices_and_layouts_are_refused():
    for wrong in ({"device": "cuda"}, {"pin_memory": True}):
        with pytest.raises((RuntimeError, AssertionError)):
            torch.zeros(2, **wrong)
    assert torch.zeros(2, device="cpu", pin_memory=False).tolist() == [0, 0]
    with pytest.raises(TypeError, match=r"must be torch\.layout, not str"):
        torch.zeros(2, layout="torch.sparse_coo")
    with pytest.raises(TypeError, match=r"randperm\(\) received an invalid combination"):
        torch.randperm(3, generator=3)


def test_generators_give_their_own_sequences():
    generator = torch.Generator().manual_seed(7)
    torch.manual_seed(7)
    for draw in (
        lambda g: torch.rand(3, generator=g),
        lambda g: torch.randn(20, generator=g),
        lambda g: torch.randint(9, (4,), generator=g),
        lambda g: torch.randperm(6, generator=g),
        lambda g: torch.rand_like(torch.zeros(2), generator=g),
        lambda g: torch.zeros(3).normal_(generator=g),
        lambda g: torch.bernoulli(torch.full((5,), 0.5), generator=g),
    ):
        assert draw(None).tolist() == draw(generator).tolist()
    state = torch.get_rng_state()
    first = torch.rand(2).tolist()
    torch.set_rng_state(state)
    assert torch.rand(2).tolist() == first
    assert torch.initial_seed() == 7

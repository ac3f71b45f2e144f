"""Random numbers against torch's, recorded in golden/random.json."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from gradcli.engine.core import random
from gradcli.engine.core.tensor import wrap
from tests.sweep import sweep

GOLDEN = Path(__file__).parents[2] / "golden" / "random.json"
CASES = json.loads(GOLDEN.read_text())["cases"]
F8 = np.dtype(np.float64)


def digest(array):
    """The hash that the recorder writes."""
    return hashlib.blake2b(np.asarray(array).tobytes(), digest_size=8).hexdigest()


def draw(name, shape, kind, *args):
    """One recorded draw."""
    dtype = np.dtype(kind)
    if name == "randperm":
        return random.randperm(shape[0], dtype)
    draw = {"rand": "uniform", "randn": "normal"}.get(name, name)
    return getattr(random, draw)(tuple(shape), dtype, *args)


@pytest.mark.filterwarnings("ignore:.*out of bounds")
@sweep("case", CASES, name=lambda case: str(case["seed"]), parts=1)
def test_draws_are_torchs_bit_for_bit(case):
    random.manual_seed(case["seed"])
    for recorded in case["draws"]:
        found = draw(*recorded["draw"])
        assert (recorded["draw"], digest(found)) == (recorded["draw"], recorded["digest"])
        assert list(np.shape(found)) == recorded["draw"][1] or recorded["draw"][0] == "randperm"
    assert digest(random.get_rng_state().array) == case["state"]


def test_a_generator_has_its_own_state():
    generator = random.Generator()
    assert generator.initial_seed() == 67280421310721
    assert generator.manual_seed(3) is generator
    first = random.uniform((5,), F8, generator=generator)
    random.manual_seed(3)
    assert (random.uniform((5,), F8) == first).all()
    state = generator.get_state()
    later = random.normal((7,), F8, generator=generator)
    copy = generator.clone_state()
    generator.set_state(state)
    assert (random.normal((7,), F8, generator=generator) == later).all()
    assert (
        random.normal((8,), F8, generator=generator) == random.normal((8,), F8, generator=copy)
    ).all()
    assert 0 <= generator.seed() == generator.initial_seed()
    assert generator.device.type == "cpu"


def test_bad_states_and_seeds_are_refused():
    generator = random.Generator()
    with pytest.raises(
        RuntimeError, match="of size 5056 but found the input RNG state size to be 3"
    ):
        generator.set_state(wrap(np.zeros(3, np.uint8)))
    state = generator.get_state().array
    with pytest.raises(TypeError, match=r"RNG state must be a torch.ByteTensor"):
        generator.set_state(wrap(state.astype(np.float32)))
    with pytest.raises(RuntimeError, match="RNG state must be contiguous"):
        generator.set_state(wrap(np.repeat(state, 2)[::2]))
    with pytest.raises(TypeError, match=r"expected a torch.ByteTensor"):
        generator.set_state(3)
    for seed in (2**64, -(2**63) - 1):
        with pytest.raises(ValueError, match="Overflow when unpacking long long"):
            random.manual_seed(seed)
    with pytest.raises(AssertionError, match="CPU only"):
        random.Generator("cuda")


@sweep(
    ("at", "value"),
    [(8, 0), (8, 625), (8, 2**32 - 1), (8, 500), (12, 0), (16, 625), (16, 700), (16, 3)],
    parts=1,
)
def test_a_state_that_reads_past_its_words_is_refused(at, value):
    """The count of words that are left, the index of the next, and whether it was seeded."""
    generator = random.Generator().manual_seed(3)
    generator.words(5)
    state = generator.get_state().array
    state[at : at + 4] = np.frombuffer(np.uint32(value).tobytes(), np.uint8)
    with pytest.raises(RuntimeError, match="Invalid mt19937 state"):
        generator.set_state(wrap(state))
    with pytest.raises(RuntimeError, match="Invalid mt19937 state"):
        generator.set_state(wrap(np.full_like(state, 7)))


@sweep(
    ("call", "error", "words"),
    [
        (lambda: random.uniform((2,), F8, 2, 1), RuntimeError, "but found from=2 > to=1"),
        (lambda: random.normal((2,), F8, 0, -1), RuntimeError, "normal expects std >= 0.0, but fo"),
        (lambda: random.bernoulli((2,), F8, 2), RuntimeError, r"in \[0, 1\], but got p=2"),
        (lambda: random.bernoulli((1,), F8, np.full(1, 2.0)), RuntimeError, "Expected p_in >= 0"),
        (lambda: random.randint((2,), np.dtype("i8"), 5, 5), RuntimeError, "got from=5 >= to=5"),
        (lambda: random.randint((2,), np.dtype("u1"), 0, 257), RuntimeError, "for unsigned char"),
        (lambda: random.randint((2,), np.dtype("u1"), -1, 5), RuntimeError, "from is out of bound"),
        (lambda: random.randint((2,), np.dtype("c8"), 0, 5), RuntimeError, "handles only integral"),
        (lambda: random.uniform((2,), np.dtype("i8")), NotImplementedError, "for 'Long'"),
        (lambda: random.normal((2,), np.dtype("?")), NotImplementedError, "for 'Bool'"),
        (lambda: random.random((2,), np.dtype("c8")), NotImplementedError, "ComplexFloat"),
        (lambda: random.randperm(-1, np.dtype("i8")), RuntimeError, "negative dimension -1"),
        (lambda: random.randperm(3000, np.dtype("f2")), RuntimeError, "2049 for Half type"),
        (lambda: random.randperm(300, np.dtype("u1")), RuntimeError, "uint8_t without overflow"),
        (lambda: random.exponential((2,), F8, 0), RuntimeError, "lambda > 0.0"),
        (lambda: random.cauchy((2,), np.dtype("i8")), RuntimeError, "you specified Long"),
        (lambda: random.cauchy((2,), F8, 0, 0), RuntimeError, "sigma > 0.0"),
        (lambda: random.geometric((2,), F8, 2), RuntimeError, r"p to be in \(0, 1\)"),
        (lambda: random.log_normal((2,), F8, 0, 0), RuntimeError, "std > 0.0"),
        (lambda: random.exponential((2,), np.dtype("i8")), RuntimeError, "continuous probability"),
    ],
    parts=1,
)
def test_refusals_have_torchs_words(call, error, words):
    with pytest.raises(error, match=words):
        call()

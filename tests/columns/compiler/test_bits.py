"""Blocks, straight lines and the tape give the same bits."""

from __future__ import annotations

import json
import random
import re
import warnings
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import language
from gradcli.columns.compiler.block_sizes import BlockBounds, row_blocks, tree_blocks
from gradcli.engine.core.tensor import wrap
from gradcli.transforms.tracing.numpy_tracer import Untraceable, trace_numpy
from tests.columns.compiler import programs
from tests.columns.compiler.same import assert_same, by_plan, by_tape
from tests.engine.registry.samples import is_declared
from tests.golden.record_samples import HERE, texts
from tests.sampling import cotangent, take_apart, tensors
from tests.sweep import sweep

RECORDED = json.loads((HERE / "samples.json").read_text())
WAYS: list[dict[str, int]] = [
    {},
    {"block": 128, "threads": 2},
    {"block": 1000},
    {"block": 777, "threads": 3, "smallest": 200},
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@sweep("n", [1, 7, 127, 129, 1000, 4097, 100_003, (1 << 17) + 8], parts=1)
def test_sums_of_blocks(n: int, dtype: str) -> None:
    a = (np.random.default_rng(n).standard_normal(n) * 1e3).astype(dtype)
    rnd = random.Random(n)
    for limit in (128, 1000, 65536):
        blocks = tree_blocks(n, limit)
        assert max(e - s for s, e in blocks) <= max(limit, 128)
        starts = [s for s, _ in blocks]
        for cut in (starts, sorted({0, *(rnd.randrange(n) for _ in range(20))})):
            assert _summed(a, cut) == a.sum()


def _summed(a: Any, starts: list[int]) -> Any:
    cuts = BlockBounds(a.size, starts)
    partial = np.empty(cuts.slots, a.dtype)
    across = [np.empty(m, a.dtype) for m, _ in cuts.buffers]
    for start, inside, pieces in zip(starts, cuts.inside, cuts.pieces, strict=True):
        for i, j, slot in inside:
            partial[slot] = a[start + i : start + j].sum()
        for i, j, k, at in pieces:
            across[k][at : at + j - i] = a[start + i : start + j]
    for buffer, (_, slot) in zip(across, cuts.buffers, strict=True):
        partial[slot] = buffer.sum()
    return cuts.total(partial)


def test_rows_are_shared_out() -> None:
    assert row_blocks(10, 3) == [(0, 2), (2, 5), (5, 7), (7, 10)]
    assert row_blocks(2, 0) == [(0, 1), (1, 2)]
    assert row_blocks(5, 100) == [(0, 5)]


# 4268: repeated rows that a product of whole arrays reads, beside an array in Fortran's order.
@sweep("seed", [4268, *range(48)], often=2)
def test_random_programs(seed: int) -> None:
    _check_program(seed)


@pytest.mark.long
def test_many_random_programs() -> None:
    for seed in range(1000, 1500):
        _check_program(seed)


def _check_program(seed: int) -> None:
    rnd = random.Random(seed)
    todo = programs.steps(rnd)
    arrays = programs.arrays(rnd, seed)

    def function(**given: Any) -> Any:
        return programs.run(todo, list(given.values()))

    wanted = by_tape(function, arrays)
    if wanted is None:
        return
    found = trace_numpy(function, arrays, wrt=frozenset(arrays))
    for way in WAYS:
        assert_same(by_plan(found, arrays, **way), wanted)


LARGE: list[tuple[str, dict[str, tuple[int, ...]]]] = [
    ("sum(exp(-x**2)*sin(3*x))", {"x": (100_003,)}),
    ("2*dot(x,x)", {"x": (70_001,)}),
    ("mean(x + b)", {"x": (300, 401), "b": (401,)}),
    ("mean(x + b)/3", {"x": (1000, 17), "b": (17,)}),
    ("(x + b + c).mean() + (x + b).sum()/7", {"x": (70, 90), "b": (90,), "c": (5, 1, 1)}),
    ("((x + c)*b).tanh().mean()", {"x": (300, 401), "b": (401,), "c": (300, 1)}),
    ("sum(x/sum(x**2))", {"x": (90_000,)}),
    ("sum(x*b + b/x)", {"x": (1, 20_001, 2), "b": (20_001, 2)}),
    ("(x*b).tanh().mean()", {"x": (20_001, 1), "b": (1, 1, 20_001, 1)}),
    ("s = softmax(x, 1); (s*s.log()).sum()", {"x": (500, 100)}),
    ("-(log_softmax(x,1)*t).sum()/100", {"x": (500, 100), "t": (500, 100)}),
    ("y = tanh(x@w + b); (y*y).mean()", {"x": (500, 64), "w": (64, 80), "b": (80,)}),
    (
        "y = tanh(x@w + b); z = tanh(y@v); u = z.T@y; y = where(z@v > 0.1, z, y@v); (y*y).mean() + u.sum()",
        {"x": (500, 64), "w": (64, 64), "v": (64, 64), "b": (64,)},
    ),
    ("logsumexp(x, 1).sum() + x.std(1).mean()", {"x": (500, 100)}),
    ("var(x)*y.amax() + amin(x*y)", {"x": (70_000,), "y": (70_000,)}),
    ("where(x > y, x, y*x).abs().sqrt().sum()", {"x": (250, 300), "y": (300,)}),
    ("y = x\nfor i in range(10): y = tanh(y*0.9 + 0.1)*x - 0.2\nsum(y)", {"x": (66_000,)}),
    ("x[0].sum()*x.reshape(-1).sum() + (x.T*2).sum()", {"x": (300, 300)}),
]


@sweep(("source", "shapes"), LARGE, parts=4, often=1)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_large_arrays(source: str, shapes: dict[str, tuple[int, ...]], dtype: str) -> None:
    g = np.random.default_rng(1)
    arrays = {n: (g.random(s) + 0.5).astype(dtype) for n, s in shapes.items()}
    parsed = language.parse(source)

    def function(**given: Any) -> Any:
        return language.run(parsed, given).value

    wanted = by_tape(function, arrays)
    assert wanted is not None
    found = trace_numpy(function, arrays, wrt=frozenset(arrays))
    for block, threads in ((4096, 1), (4096, 2), (4096, 2), (10_000, 3), (65536, 2)):
        assert_same(by_plan(found, arrays, block=block, threads=threads, smallest=5000), wanted)


functional: Any = gradcli.nn.functional
CLASSES: dict[str, Any] = {
    "mean": functional.cross_entropy,
    "negative": lambda x, t: -functional.cross_entropy(x, t),
    "times zero": lambda x, t: functional.cross_entropy(x, t) * 0,
    "sum": lambda x, t: functional.cross_entropy(x, t, reduction="sum"),
    "some ignored": lambda x, t: functional.cross_entropy(x, t, ignore_index=3),
    "smoothed": lambda x, t: functional.cross_entropy(x, t, label_smoothing=0.1),
    "squares": lambda x, t: (functional.cross_entropy(x, t, reduction="none") ** 2).sum(),
    "and more": lambda x, t: functional.cross_entropy(x, t) + (x * x).sum(),
    "gathered": lambda x, t: (x.gather(1, t[:, None]) ** 2).sum(),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(5, 1), (5, 2), (300, 200), (4000, 20), (3, 70_000)])
@sweep("name", CLASSES, parts=2, often=1)
def test_losses_of_classes(name: str, shape: tuple[int, int], dtype: str) -> None:
    """What is read off the one number of a row of zeros has the bits of the sums, and their signs."""
    x = (np.random.default_rng(2).standard_normal(shape) * 3).astype(dtype)
    x[0], x[2] = 0, x[2] * 300
    t = gradcli.tensor(np.arange(shape[0]) * 7919 % shape[1])
    leaf = wrap(x, True)
    value = CLASSES[name](leaf, t)
    value.backward()
    for threads in (1, 2):
        f = gradcli.compile(lambda x: CLASSES[name](x, t), threads=threads)
        found, grads = f.value_and_grad(x=x)
        np.testing.assert_array_equal(found, value.item())
        np.testing.assert_array_equal(grads["x"], leaf.grad.numpy())
        np.testing.assert_array_equal(np.signbit(grads["x"]), np.signbit(leaf.grad.numpy()))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("factor", ["1", "2", "-64", "0.5", "3", "2**exponent", "-2**exponent"])
def test_sums_of_a_multiple_and_itself(factor: str, dtype: str) -> None:
    """Of numbers that are halved to nothing or doubled beyond the largest, too."""
    facts = np.finfo(dtype)
    exponent = facts.maxexp - 1
    odd = [0, facts.smallest_subnormal, facts.tiny * 1.5, 1 / 3, facts.max, facts.max / 3, np.inf]
    x = np.array([*odd, *[-v for v in odd], np.nan], dtype).repeat(3000)
    source = f"x*tensor({factor.replace('exponent', str(float(exponent)))}, dtype={dtype})"
    f = gradcli.compile(f"y = {source}; y + y")
    with np.errstate(all="ignore"):
        y = gradcli.evaluate(source, x=gradcli.from_numpy(x)).numpy()
        wanted = y + y
    found = f(x=x)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))
    (last,) = next(iter(f.plans.values())).trace.outputs
    assert (last.function is np.multiply) == (factor in ("2", "-64"))


def test_arrays_at_odd_addresses() -> None:
    """NumPy copies them piece by piece, and a sum is one of sums of pieces."""
    memory = np.empty(300 * 1001 * 8 + 1, np.uint8)
    x = memory[1:].view(np.float64).reshape(300, 1001)
    x[...] = np.random.default_rng(1).standard_normal(x.shape)
    assert not x.flags.aligned
    f = gradcli.compile("(sum(x, 1)**2).sum()")
    leaf = wrap(x, True)
    value = (leaf.sum(1) ** 2).sum()
    value.backward()
    found, grads = f.value_and_grad(x=x)
    assert found == value.item() and np.array_equal(grads["x"], leaf.grad.numpy())


def test_again_and_again() -> None:
    """The same plan gives the same bits in every run, whatever the threads do first."""
    arrays = {"x": np.random.default_rng(1).standard_normal((4000, 100))}
    f = gradcli.compile("sum(softmax(exp(x)*sin(x), 1)**2) + mean(tanh(x))", threads=3)
    value, grads = f.value_and_grad(**arrays)
    for _ in range(8):
        again, slopes = f.value_and_grad(**arrays)
        assert again == value and np.array_equal(grads["x"], slopes["x"])


# Rows whose kernels need the numbers, or write in ways that are not recorded; all others must plan.
BY_THE_TAPE = re.compile(
    r"^(linalg\.)?(svd|slogdet|det|inv|inverse|logdet|lu|lu_factor|lu_factor_ex|solve|solve_ex|eigh"
    r"|eigvals|cholesky|lstsq|matrix_power|tensorinv|tensorsolve|cond|vander)\("
    r"|^(cummax|cummin|cumprod|prod|max|min|median|nanmedian|mode|sort|msort|topk|kthvalue)\("
    r"|^(nan)?quantile|^as_strided|^combinations|^index_reduce|^masked_select|^mvlgamma|^bernoulli|^poisson"
    r"|^nn\.functional\.(cosine_embedding|gaussian_nll|hinge_embedding|margin_ranking)_loss"
    r"|circular|_\("
)


def differentiable() -> list[str]:
    """The samples to which torch has a gradient (that of eig is complex, and has no sum here)."""
    return [t for t in texts() if _has_gradient(t) and not t.startswith(("empty", "linalg.eig("))]


def _has_gradient(text: str) -> bool:
    if text not in RECORDED:
        return is_declared(text)
    return any(g is not None for g in RECORDED[text].get("grads", []))


@sweep("text", differentiable, parts=16, often=1)
def test_samples_of_the_table(text: str) -> None:
    """Every sample: both ways give the tape's bits."""
    gradcli.set_default_dtype(gradcli.float64)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            _check_sample(text)
    finally:
        gradcli.set_default_dtype(gradcli.float32)


def _check_sample(text: str) -> None:
    sample = take_apart(text, gradcli)
    arrays = {f"x{i}": leaf.array for i, leaf in enumerate(sample.leaves)}

    def total(**given: Any) -> Any:
        found = tensors(sample.function(*given.values()), gradcli.Tensor)
        parts = []
        for o in found:
            if o.is_floating_point() or o.is_complex():
                part = (o * cotangent(gradcli, o.shape, o.dtype)).sum()
                parts.append(part.real * 2 + part.imag if part.is_complex() else part)
        value = parts[0]
        for part in parts[1:]:
            value = value + part
        return value

    arrays = {n: a if a.ndim else a[()] for n, a in arrays.items()}
    gradcli.manual_seed(5)
    wanted = by_tape(total, arrays)
    assert wanted is not None
    gradcli.manual_seed(5)
    try:
        found = trace_numpy(total, arrays, wrt=frozenset(arrays), fixed=True)
    except Untraceable:
        assert BY_THE_TAPE.search(text)
        return
    assert_same(by_plan(found, arrays), wanted)
    assert_same(by_plan(found, arrays, block=1, threads=2), wanted)


def test_most_of_the_table_can_be_planned() -> None:
    simple = (
        *("exp(x)", "x.sum()", "x @ x.T", "x.mean(0)", "softmax(x, 0)", "x.std()", "x**2.5"),
        *("x.amax(1)", "logsumexp(x, 0)", "nn.functional.gelu(x)", "where(x > 0, x, 2*x)"),
        *("x.reshape(-1)", "x.T*x", "cat([x, x])", "einsum('ij,kj->ik', x, x)"),
        *("nn.functional.mse_loss(x, x*2)", "nn.functional.layer_norm(x, (3,))", "x.norm()"),
        *("clamp(x, 0, 1)", "x.cumsum(0)", "tril(x)", "outer(x[0], x[1])", "x.unsqueeze(0)*x"),
    )
    for source in simple:
        f = gradcli.compile(f"({source}).sum()")
        assert "no plan" not in f.plan(x=np.eye(3) + 0.5), source

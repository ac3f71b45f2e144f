"""Products of many rows, and outer products: the same bits, whoever works out which of their blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradcli as g
from gradcli import language
from gradcli.engine.core.tensor import wrap
from gradcli.engine.system import short_lines
from gradcli.engine.system import threads as shared
from gradcli.engine.system.blocked_products import (
    FOLDED,
    PART,
    Fold,
    block_of,
    parts_of,
    rows_dot,
    rows_product,
    rows_sum,
    vector_dot,
)
from tests.sweep import sweep

COUNT = 3 * block_of(8, 1) + 77
func: Any = g.func


def _network(w: Any, b: Any, v: Any, x: Any) -> Any:
    return g.dot(v, g.tanh(w @ x + b)) ** 2


def _mapped(wrt: tuple[int, ...]) -> Any:
    return func.vmap(func.grad(_network, wrt), in_dims=(None, None, None, 0))


PROGRAMS: dict[str, Any] = {
    "slopes of weights": lambda w, b, v, x: _mapped((0, 1, 2))(w, b, v, x),
    "slopes of rows": lambda w, b, v, x: _mapped((3,))(w, b, v, x),
    "values and their sum": lambda w, b, v, x: (
        (y := func.vmap(lambda a: g.dot(v, g.tanh(w @ a + b)))(x)),
        y.sum(),
    ),
    "a product twice": lambda w, b, v, x: func.vmap(lambda a: w.T @ (w @ a) - (w @ a).sum())(x),
}


def _inputs(dtype: Any) -> dict[str, Any]:
    random = np.random.default_rng(15)
    shapes = {"w": (32, 8), "b": (32,), "v": (32,), "x": (COUNT, 8)}
    return {n: random.standard_normal(s).astype(dtype) / 3 for n, s in shapes.items()}


@pytest.mark.long
def test_products_wider_than_a_block() -> None:
    rows, other = np.ones((FOLDED + 1, 3)), np.ones((3, 20_000))
    for found in (g.tensor(rows) @ g.tensor(other), g.compile(lambda a, b: a @ b)(rows, other)):
        assert found.shape == (FOLDED + 1, 20_000) and bool((found == 3).all())
    assert bool(((g.tensor(other.T) @ g.tensor(other)[:, :2]) == 3).all())


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@sweep("name", PROGRAMS, parts=1)
def test_a_plan_has_the_bits_of_the_tape(name: str, dtype: Any) -> None:
    given = _inputs(dtype)
    given["x"][7] = 0
    wanted = PROGRAMS[name](*map(wrap, given.values()))
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    for threads in (1, 3):
        compiled = g.compile(PROGRAMS[name], threads=threads)
        found = compiled(**given)
        for f, w in zip(found if isinstance(found, tuple) else (found,), wanted, strict=True):
            np.testing.assert_array_equal(f, w.numpy())
            np.testing.assert_array_equal(np.signbit(f), np.signbit(w.numpy()))
        (plan,) = compiled.plans.values()
        regions = plan.executor.regions
        assert any(o.function is rows_dot for s in regions for o in s.region.body), name
        assert all(
            a % block_of(8, 32) == 0 for s in regions for a, _ in s.blocks if len(s.blocks) > 1
        )


LAYERS: dict[str, str] = {
    "two layers": "y = tanh(x@w + b); mean((y@v)**2)",
    "the value in its slope": "y = tanh(x@w + b); sqrt(mean((y@v)**2))",
    "a sum over both": "y = x@w; sum(y*y) + sum(tanh(y@v + b[:40]))",
    "a constant slope": "sum(x@w + b)",
    "narrow": "sum((x@w[:,:3] + b[:3])**3)",
    "a narrow last layer": "mean((tanh(x@w + b)@v[:,:10] + b[:10])**2)",
    "odd dimensions": "sum(tanh(x.T@x)) + sum((x@w)[7]*b)",
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("rows", [FOLDED, 4 * FOLDED + 77])
@sweep("name", LAYERS, parts=1)
def test_layers_have_the_bits_of_the_tape(name: str, rows: int, dtype: Any) -> None:
    random = np.random.default_rng(19)
    shapes = {"x": (rows, 72), "w": (72, 64), "b": (64,), "v": (64, 40)}
    given = {n: random.standard_normal(s).astype(dtype) / 8 for n, s in shapes.items()}
    leaves = {n: wrap(a, True) for n, a in given.items()}
    value = language.run(g.parse(LAYERS[name]), leaves).value
    value.backward()
    for threads in (1, 3):
        compiled = g.compile(LAYERS[name], threads=threads)
        for _ in range(2):
            found, slopes = compiled.value_and_grad(**{n: given[n] for n in compiled.names})
            assert found == value.item()
            for n, slope in slopes.items():
                np.testing.assert_array_equal(slope, leaves[n].grad.numpy(), n)


def test_what_rows_give_together() -> None:
    random = np.random.default_rng(0)
    a, b = random.standard_normal((1000, 40)), random.standard_normal((1000, 30))
    np.testing.assert_allclose(rows_product(a, b), a.T @ b, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(rows_sum(a), a.sum(0, keepdims=True), rtol=1e-12, atol=1e-12)
    fold = Fold(rows_product, (40, 30), a.dtype, {})
    for start in (2 * FOLDED, 3 * FOLDED, 0, FOLDED):  # as threads might
        fold(start, a[start : start + FOLDED], b[start : start + FOLDED])
    np.testing.assert_array_equal(fold.total(), rows_product(a, b))


def test_products_have_their_threads_again() -> None:
    before = shared.products()
    with pytest.raises(ZeroDivisionError), shared.multiplying_alone():
        with shared.multiplying_alone():
            assert shared.products() == 1
        assert shared.products() == 1
        1 / 0  # noqa: B018
    assert shared.products() == before


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads, whatever the environment says, and small arrays are large ones."""
    monkeypatch.setattr(shared, "products", lambda: 2)
    monkeypatch.setattr(shared, "LARGE", 1 << 8)


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int64])
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((100, 8), (100, 8)),
        ((100, 8), (100, 1)),
        ((100, 1), (8,)),
        ((3, 100), (1, 100)),
        ((1000,), ()),
        ((1, 1000), (1,)),
    ],
)
def test_a_shared_ufunc_is_the_ufunc(a: Any, b: Any, dtype: Any) -> None:
    random = np.random.default_rng(1)
    x, y = (np.asarray(9 * random.standard_normal(s)).astype(dtype) for s in (a, b))
    for one, other in (
        (x, y),
        (y, x),
        (x, 2),
        (x, 2.5),
        (x.T, x.T),
        (x[::-1], y),
        (x, np.broadcast_to(y[:1], x.shape) if x.ndim == y.ndim else y),
    ):
        wanted = np.multiply(one, other)
        found = shared.applied(np.multiply, one, other)
        np.testing.assert_array_equal(found, wanted)
        assert found.dtype == wanted.dtype
        assert found.strides == wanted.strides
    own = np.ones(x.shape, dtype)
    assert shared.applied(np.subtract, x, own, out=own) is own
    np.testing.assert_array_equal(own, x - np.ones(x.shape, dtype))


@pytest.mark.usefixtures("two")
def test_rows_mapped_on_threads_have_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    given = [wrap(a) for a in _inputs(np.float64).values()]
    lse = func.vmap(func.grad(lambda a: g.logsumexp(a, 0)))
    found = [*_mapped((0, 1, 2, 3))(*given), lse(given[-1])]
    monkeypatch.undo()
    for f, w in zip(found, [*_mapped((0, 1, 2, 3))(*given), lse(given[-1])], strict=True):
        np.testing.assert_array_equal(f.numpy(), w.numpy())


def test_what_a_thread_raises_is_raised() -> None:
    def run(take: Any) -> None:
        while (k := take()) < 100:
            if k == 50:
                raise ValueError(k)

    for threads in (1, 3):
        with pytest.raises(ValueError, match="50"):
            shared.share(run, 100, threads)


def test_rows_from_a_block_on() -> None:
    given = _inputs(np.float64)
    for other in (given["w"].T, np.ascontiguousarray(given["w"].T), given["w"][0]):
        every = rows_dot(given["x"], other)
        np.testing.assert_allclose(every, given["x"] @ other, rtol=1e-12, atol=1e-14)
        step = block_of(8, every.size // COUNT)
        for start in range(step, COUNT, step):
            np.testing.assert_array_equal(rows_dot(given["x"][start:], other), every[start:])


# Shapes of operands that are worked on in another way than NumPy's loop, and of those that are not.
SHORT_ROWS: dict[str, tuple[Any, Any, list[Any]]] = {
    "outer products": ((1500, 7, 1), (1500, 1, 5), [np.multiply]),
    "multiples of a vector": ((6000, 1), (32,), [np.multiply]),
    "multiples of a row": ((6000, 1), (1, 8), [np.multiply]),
}
AS_NUMPY: dict[str, tuple[Any, Any, Any]] = {
    "stacks": ((1500, 7, 1), (1500, 7, 5), np.multiply),
    "one row of a stack": ((1500, 7, 1), (1, 1, 5), np.multiply),
    "few": ((10, 7, 1), (10, 1, 5), np.multiply),
    "equal shapes": ((9000, 7), (9000, 7), np.multiply),
    "long rows": ((1500, 7, 1), (1500, 1, 65), np.multiply),
    "longer rows": ((9000, 1), (9000, 9), np.subtract),
    "sums of outer products": ((1500, 7, 1), (1500, 1, 5), np.add),
    "a vector": ((40000,), (1,), np.add),
    "a number for each row": ((9000, 1), (9000, 4), np.multiply),
    "a row for all": ((9000, 5), (5,), np.multiply),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("odd", [None, 0.0, -0.0, np.nan, np.inf, -np.inf, "smallest"])
@sweep("name", SHORT_ROWS, parts=1)
def test_short_rows_have_the_bits_of_numpy(name: str, odd: Any, dtype: Any) -> None:
    random = np.random.default_rng(3)
    *shapes, ufuncs = SHORT_ROWS[name]
    a, b = (random.standard_normal(s).astype(dtype) for s in shapes)
    if odd is not None:
        tiny = np.finfo(dtype).smallest_subnormal
        for array, value in ((a, -tiny if odd == "smallest" else odd), (b, odd)):
            array.reshape(-1)[3] = tiny if value == "smallest" else value
            array.reshape(-1)[-2:] *= -0.3
    for ufunc in ufuncs:
        for x, y in ((a, b), (b, a), (a[::-1], b)):
            with np.errstate(all="ignore"):
                wanted = ufunc(x, y)
                found = np.empty_like(wanted)
                assert short_lines.way(ufunc, x.shape, y.shape) is not None
                assert short_lines.into(ufunc, x, y, found) is found
            np.testing.assert_array_equal(found, wanted)
            np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))
            for own in (x, y):  # written over an operand
                if own.shape == wanted.shape:
                    over, other = own.copy(), y if own is x else x
                    given = (over, other) if own is x else (other, over)
                    with np.errstate(all="ignore"):
                        short_lines.into(ufunc, *given, over)
                    np.testing.assert_array_equal(over, wanted)


@sweep("name", AS_NUMPY, parts=1)
def test_what_numpy_does_as_well(name: str) -> None:
    a, b, ufunc = AS_NUMPY[name]
    assert short_lines.way(ufunc, a, b) is None
    assert short_lines.way(ufunc, b, a) is None


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@sweep("size", [PART, PART + 1, 3 * PART, 25 * PART + 77], parts=1)
def test_a_product_of_long_vectors_is_that_of_its_parts(size: int, dtype: Any) -> None:
    a, b = np.random.default_rng(size).standard_normal((2, size)).astype(dtype)
    exact = float(np.dot(a.astype(np.longdouble), b.astype(np.longdouble)))
    bound = np.finfo(dtype).eps * float(np.abs(a) @ np.abs(b))
    assert abs(float(vector_dot(a, b)) - exact) <= bound
    assert vector_dot(a[::-1], b[::-1]).dtype == dtype
    parts = [a[k : k + PART].dot(b[k : k + PART]) for k in range(0, size, PART)]
    assert len(parts) == parts_of(size)
    assert vector_dot(a, b) == (np.add.reduce(np.array(parts)) if len(parts) > 1 else parts[0])


DOTS = {
    "2*dot(x,x)": ["vector_dot multiply"],
    "3*dot(x,x)": ["vector_dot multiply add"],
    "dot(x,x)/4": ["vector_dot multiply add"],
    "dot(x,y)**2": ["vector_dot", "multiply multiply"],
    "dot(x,sin(y)) + sum(x*y)": ["sin vector_dot multiply sum add cos multiply add"],
    "dot(tanh(x),y)": ["tanh vector_dot multiply subtract multiply"],
    "x@y": ["vector_dot"],
    "dot(x[::2],y[::2])": [],
    "dot(sin(x), ones_like(x))": [],
    "z = x.reshape(-1,10); (z/z.sum(1, keepdim=True)).sum() + dot(x,y)": ["vector_dot"],
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@sweep("source", DOTS, parts=1)
def test_dots_are_worked_out_with_what_is_around_them(source: str, dtype: Any) -> None:
    given = {n: np.random.default_rng(ord(n)).standard_normal(70_030).astype(dtype) for n in "xy"}
    given = {
        n: a for n, a in given.items() if n in source.replace("expand", "").replace("dtype", "")
    }
    leaves = {n: wrap(a, True) for n, a in given.items()}
    value = language.run(g.parse(source), leaves).value
    value.backward()
    for threads in (1, 2, 3):
        compiled = g.compile(source, threads=threads)
        found, grads = compiled.value_and_grad(**given)
        assert found == value.item()
        for n, leaf in leaves.items():
            np.testing.assert_array_equal(grads[n], leaf.grad.numpy())
        (plan,) = compiled.plans.values()
        assert {line.strip() for line in plan.lines()} >= set(DOTS[source])

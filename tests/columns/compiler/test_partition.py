"""Programs cut by rows: passes over batches give what the tape gives, and what cannot be cut says where."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gradcli import language
from gradcli.columns.compiler.partition import Partition, product
from gradcli.columns.streaming.running_sums import Column, NoPasses, Work, expression, totals
from gradcli.engine.core.tensor import wrap
from gradcli.engine.registry import table
from gradcli.engine.system import dtypes
from gradcli.engine.system.cascaded_sums import Tree
from gradcli.tables.parts import Parts
from gradcli.transforms.tracing.abstract_evaluation import unread
from tests.sweep import sweep

ROWS, BATCH = 500, 137
SHAPES: dict[str, tuple[int, ...]] = {"x": (ROWS,), "y": (ROWS,), "X": (ROWS, 3)}
SHARED = {"a": (), "b": (), "w": (3,), "M": (3, 4), "z": (4,), "Q": (2, 2)}
SHARED |= {
    "V": (3, 90),
    "c": (90,),
}  # wide enough for what rows give together to be added by blocks


def arrays(names: list[str]) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    made = {n: rng.standard_normal(s)[()] for n, s in {**SHAPES, **SHARED}.items()}
    return {n: made[n] for n in names}


@pytest.mark.parametrize(
    ("source", "partition"),
    [
        ("topk(x, 2, 1)[0]", True),
        ("x.median(1)[0]", True),
        ("topk(x, 2, 0)[0]", False),
        ("x.median(0)[0]", False),
    ],
)
def test_kernels_of_large_arrays_are_tried_on_a_few_rows(source: str, partition: bool) -> None:
    rows = 10**8
    columns = {"x": Column([0, 1, 2], True)}
    work = Work((expression, (f"sum({source})", {})), Given(), columns, {}, rows, wrt=["x"])  # type: ignore[arg-type]
    if partition:
        assert len(work.partition.passes) == 1
        return
    with pytest.raises(NoPasses) as error:
        work.partition  # noqa: B018
    assert error.value.span == (4, 4 + len(source) - 3)


@pytest.fixture(autouse=True)
def double() -> Iterator[None]:
    before = dtypes.get_default_dtype()
    dtypes.set_default_dtype(dtypes.float64)
    yield
    dtypes.set_default_dtype(before)


class Given:
    """A table in memory, of which a work reads nothing."""

    names: tuple[str, ...] = ()


def work_of(source: str, wrt: bool = True) -> tuple[Work, dict[str, Any]]:
    names = list(language.parse(source).free_variables())
    given = arrays(names)
    columns = {
        n: Column([0] * (SHAPES[n] + (1,))[1], len(SHAPES[n]) > 1) for n in names if n in SHAPES
    }
    shared = {n: given[n] for n in names if n not in SHAPES}
    work = Work(
        (expression, (source, {})),
        Given(),  # type: ignore[arg-type]
        columns,
        shared,
        ROWS,
        wrt=names if wrt else None,
    )
    return work, given


def run(work: Work, given: dict[str, Any], batch: int = BATCH) -> dict[str, Any]:
    partition, inputs = work.partition, work.trace.inputs
    values = work.start()
    rows: list[list[Any]] = [[] for _ in partition.written]
    for number in range(len(partition.passes)):
        partition.between(values, number)
        sums = Tree(work.combine(number))
        for start in range(0, ROWS, batch):
            m = min(batch, ROWS - start)
            some = {inputs[n].index: given[n][start : start + m] for n in work.columns}
            found, made = partition.run(number, values, some, start, m)
            sums.add(found)
            for k, array in enumerate(made):
                rows[k].append(array)
        work.take(number, values, sums.result())
    value, grads = work.results(values)
    found = {n: None if g is None else g.array for n, g in grads.items()}
    if value is not None:
        found["value"] = value.array
    for name, k in work.written().items():
        found[name.removesuffix(".grad")] = np.concatenate(rows[k], axis=partition.written[k][1][0])
    return found


# Each with its passes: of these the last gives the gradients of the columns.
PASSES = {
    "mean((a*x + b - y)**2)": 1,
    "mean((X@w - y)**2)": 1,
    "mean(tanh(X@V + c)**2)": 1,
    "sqrt(mean(tanh(V.T@X.T)**2)) + sum(X@V + c)": 2,
    "logsumexp(x, 0)": 3,
    "var(x)": 2,
    "std(x)": 3,
    "norm(x)": 2,
    "max(x)": 3,
    "x.max() - x.min()": 3,
    "amax(x)": 3,
    "mean(sin(x)).exp()": 2,
    "softmax(x, 0).max()": 6,
    "sum((x - x.mean())**4)/x.numel()/x.var()**2": 4,
    "sum(x*arange(x.numel()))": 1,
    "sum(where(x>0, x, 0*x))": 1,
    "linalg.norm(x, 3)": 2,
    "count_nonzero(x>0)*x.sum()": 2,
    "dot(x, y)": 1,
    "vdot(x, y)": 1,
    "einsum('i,i->', x, y)": 1,
    "sum(stack([x, y], 1)@Q)": 1,
    "nn.functional.mse_loss(x, y)": 1,
    "cov(stack([x, y])).sum()": 3,
    "sum(cat([x.unsqueeze(1), y.unsqueeze(1)], 1)**2)": 1,
    "sum(x*y)/norm(x)/norm(y)": 2,
    "nn.functional.binary_cross_entropy_with_logits(x, sigmoid(y))": 1,
    "sum(X.T@X)": 1,
    "sum(X[:, 0]*X[:, 1])": 1,
    "sum(X[..., 1])": 1,
    "sum(X.T[0])": 1,
    "linalg.norm(X)": 2,
    "sum(logsumexp(X, 1))": 1,
    "sum(X.flatten()**2)": 1,
    "sum(X.mean(1)*X.std(1))": 1,
    "sum(var(X, 0))": 2,
    "sum(cumsum(X, 1))": 1,
    "sum(X.sum(1, keepdim=True)*X)": 1,
    "sum(bmm(X.unsqueeze(1), X.unsqueeze(2)))": 1,
    "sum(einsum('ij,ik->jk', X, X))": 1,
    "sum(X.unbind(1)[0]*X.unbind(1)[1])": 1,
    "sum(M.T@X.T)": 1,
    "sum(softmax(relu(X@M)@M.T + w, 1)[:, 0]*y)": 1,
    "sum(nn.functional.linear(X, M.T, z))": 1,
    "mean(log(1 + exp(-y*(X@w))))": 1,
    "sum(x)*w.sum()": 1,
    "sum(x + w.unsqueeze(1))": 1,
    "sum(zeros_like(x) + a)": 1,
    "x.numel()*a": 0,
}


@sweep("source", PASSES, parts=1)
def test_passes_give_what_the_tape_gives(source: str) -> None:
    work, given = work_of(source)
    assert len(work.partition.passes) == PASSES[source]
    found = run(work, given)
    table.base()
    tensors = {n: wrap(a, True) for n, a in given.items()}
    value = language.run(language.parse(source), tensors).value
    value.backward()
    assert np.allclose(found["value"], value.array, rtol=1e-11)
    for name, tensor in tensors.items():
        if tensor.grad is None:
            assert found[name] is None
        else:
            assert found[name].shape == tensor.grad.shape, name
            assert np.allclose(found[name], tensor.grad.array, rtol=1e-9, atol=1e-12), name


REFUSED = {
    "sum(sort(x)[0])": "sort(x)",
    "cumsum(x, 0).sum()": "cumsum(x, 0)",
    "x[0]*a": "x[0]",
    "sum(x[1:]*y[:-1])": "x[1:]",
    "sum(x[x>0])": "x[x>0]",
    "sum(X@X.T)": "X@X.T",
    "sum(outer(x, y))": "outer(x, y)",
    "sum(flip(x, [0])*x)": "flip(x, [0])",
    "median(x)": "median(x)",
    "cat([x, y]).sum()": "cat([x, y])",
    "sum((X.unsqueeze(1) - X.unsqueeze(0))**2)": "X.unsqueeze(1) - X.unsqueeze(0)",
    "x.sum().item()*x.sum()": "x.sum().item()",
    "x.sum() if x.sum() > 0 else -x.sum()": "x.sum() > 0",
}


@sweep("source", REFUSED, parts=1)
def test_what_cannot_be_cut_says_where(source: str) -> None:
    work, _ = work_of(source)
    with pytest.raises(NoPasses) as error:
        work.partition  # noqa: B018
    assert error.value.span is not None
    assert source[slice(*error.value.span)] == REFUSED[source]


def test_a_refusal_cannot_be_caught() -> None:
    source = "try:\n    y = x.sum().item()*x\nexcept Exception:\n    y = 2*x\ny.sum()"
    with pytest.raises(NoPasses, match="it looks at the numbers"):
        work_of(source)[0].partition  # noqa: B018


def test_a_value_with_rows_is_given_row_by_row() -> None:
    work, given = work_of("a*x + 1", wrt=False)
    assert work.written() == {"value": 0}
    assert np.array_equal(run(work, given)["value"], given["a"] * given["x"] + 1)


def test_large_arrays_take_no_memory_to_record() -> None:
    array = unread((1 << 40,), np.float64)  # eight terabytes
    assert array.shape == (1 << 40,) and array[12345] == 0


@sweep("count", range(1, 40), parts=1)
def test_the_tree_is_that_of_neighbours(count: int) -> None:
    """As one makes it level by level: whoever adds pairs of neighbours gets the same."""
    level: list[Any] = [str(k) for k in range(count)]
    while len(level) > 1:
        pairs = [level[i : i + 2] for i in range(0, len(level), 2)]
        level = [f"({p[0]}+{p[1]})" if len(p) == 2 else p[0] for p in pairs]
    assert totals((str(k) for k in range(count)), lambda a, b: f"({a}+{b})") == level[0]


@sweep(("a", "b"), [((1000,), (1000,)), ((3, 1000), (1000,)), ((1000,), (1000, 2)), ((3, 1000), (1000, 2)),
     ((1, 3, 100), (1, 100, 2)), ((2, 3, 100), (2, 100, 2))], parts=1)  # fmt: skip
def test_products_along_rows(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    left, right = rng.standard_normal(a), rng.standard_normal(b)
    assert np.allclose(product(left, right), left @ right)
    assert product(left, right).shape == (left @ right).shape


def test_cut_is_of_batches_of_any_size() -> None:
    work, given = work_of("mean((X@w - y)**2)")
    assert isinstance(work.partition, Partition)
    whole, single = run(work, given, ROWS), run(work, given, 1)
    for name in whole:
        assert np.allclose(whole[name], single[name], rtol=1e-10)


def test_parts_of_nothing_are_refused(tmp_path: Any) -> None:
    with pytest.raises(OSError, match="No such file"):
        Parts(str(tmp_path / "none.csv"))

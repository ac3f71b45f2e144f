"""Every sample of the operator table under `vmap`: values and gradients as of one entry after the other."""

from __future__ import annotations

import re
import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import language
from gradcli.torch import func
from tests.engine.registry import samples
from tests.sweep import sweep

# Random numbers, other memory than an entry's, shapes that depend on the numbers; `inf` as a variable.
LEFT_OUT = (
    *("dropout", "bernoulli", "normal", "uniform", "exponential", "cauchy", "geometric", "rrelu"),
    *("gumbel", "multinomial", "poisson", "rand_like", "randn_like", "randint", "empty", "random"),
    *("as_strided(", "argwhere", "nonzero", "inf)", "inf,", "logical_", "'fro'", "unique", "dist("),
    *("*linalg", "complex(", "is_", "numel"),  # starred, or of numbers alone; no tensor
)
# Functions of the numbers, that have no rows: refused.
REFUSED = ("histogram", "matrix_rank", "allclose", "equal(", "cond(")
# Operators that run entry by entry, and say so.
BY_ENTRY = frozenset(
    [
        *("as_strided_scatter", "as_strided_", "as_strided_copy", "histc", "renorm"),
        *("nn.functional.ctc_loss", "_ctc_loss_backward"),
        *("nn.functional.embedding_bag", "_embedding_bag_backward"),
    ]
)


IN_PLACE = re.compile(r"^(?!mul\().*_\(")  # on a leaf, which may not be written


@cache
def chosen() -> list[str]:
    """The samples that are programs of floating variables."""
    left = (*LEFT_OUT, *REFUSED)
    texts = [t for t in samples.texts() if not any(word in t for word in left)]
    return [t for t in texts if samples.floating(samples.program(t)[1])]


def functions(text: str) -> tuple[list[Any], list[Any]]:
    """(the sample's value, and its gradient where it has one, as functions; batches of three)."""
    source, tensors = samples.program(text)
    floating = samples.floating(tensors)
    assert samples.outputs(source, tensors)
    program = language.parse(source)

    def value(*given: Any) -> Any:
        found = language.run(program, {**tensors, **dict(zip(floating, given, strict=True))}).value
        found = found if isinstance(found, (tuple, list)) else (found,)
        return tuple(v for v in found if isinstance(v, gradcli.Tensor))

    def weighted(*given: Any) -> Any:
        total: Any = None
        for v in value(*given):
            if v.is_floating_point():
                part = (v * gradcli.arange(1.0, v.numel() + 1).reshape(v.shape)).sum()
                total = part if total is None else total + part
        return total

    every = tuple(range(len(floating)))
    batches = [gradcli.stack([t * (1 + 0.01 * k) for k in range(3)]) for t in floating.values()]
    wanted = [value]
    if samples.has_real_gradient(text) and not IN_PLACE.search(text):
        wanted.append(func.grad(weighted, argnums=every))
    return wanted, batches


# Written in place, or statistics that are: what is written must have the batches of what is read.
WRITES = re.compile(r"_\(|_legit\(")


def dims(text: str, count: int) -> list[tuple[int | None, ...]]:
    """Which of some arguments are mapped over: all of them, and each alone."""
    alone = [tuple(0 if i == k else None for i in range(count)) for k in range(count)]
    return [(0,) * count, *(alone if count > 1 and not WRITES.search(text) else [])]


def check(text: str, nested: bool = False) -> None:
    made, batches = functions(text)
    for function in made:
        for mapped in dims(text, len(batches)):
            given = [b if d == 0 else b[0] for b, d in zip(batches, mapped, strict=True)]
            check_mapped(function, given, mapped, nested)


def check_mapped(function: Any, given: list[Any], mapped: Any, nested: bool) -> None:
    def entry(k: int) -> list[Any]:
        return [(b[k] if d == 0 else b).clone() for b, d in zip(given, mapped, strict=True)]

    rows = [function(*entry(k)) for k in range(3)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if nested:
            both = [
                gradcli.stack([b, b.flip(0)], 1) if d == 0 else b.clone()
                for b, d in zip(given, mapped, strict=True)
            ]
            found = [f[0] for f in func.vmap(func.vmap(function, mapped), mapped, 1)(*both)]
        else:
            found = func.vmap(function, mapped)(*(b.clone() for b in given))
    words = [str(w.message) for w in caught if "batching rule" in str(w.message)]
    assert {w.split("aten::")[1].split(". ")[0] for w in words} <= BY_ENTRY
    for i, column in enumerate(zip(*rows, strict=True)):
        assert found[i].dtype == column[0].dtype
        assert found[i].shape[1:] == column[0].shape
        for k, row in enumerate(column):
            one, other = (t.resolve_conj().numpy() for t in (found[i][k], row))
            np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@sweep("text", lambda: chosen()[::72], parts=3, often=1)
def test_some_samples(text: str) -> None:
    check(text)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@sweep("text", chosen)
def test_all_samples(text: str) -> None:
    check(text)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@sweep("text", chosen)
def test_batches_of_batches(text: str) -> None:
    check(text, nested=True)


_F = gradcli.nn.functional
_LABELS, _LISTED = [0, 2, 1, 2], [[1, 2, -1], [2, -1, 0], [0, -1, 1], [-1, 0, 1]]


def _order(keys: Any) -> Any:
    """Integers that differ from entry to entry."""
    return keys.detach().argsort()


# Losses of items, and matrices side by side: (function, the shape of an entry of each argument).
IN_ONE: dict[str, tuple[Any, tuple[tuple[int, ...], ...]]] = {
    "weights of classes": (
        lambda x, w: _F.nll_loss(x, gradcli.tensor(_LABELS), weight=w.detach().abs()),
        ((4, 3), (3,)),
    ),
    "weights, some ignored": (
        lambda x, w: _F.nll_loss(
            x, gradcli.tensor(_LABELS), weight=w.detach(), ignore_index=2, reduction="none"
        ),
        ((4, 3), (3,)),
    ),
    "weights of one item": (
        lambda x, w: _F.nll_loss(x, gradcli.tensor(1), weight=w.detach(), reduction="sum"),
        ((3,), (3,)),
    ),
    "weights of images": (
        lambda x, w: _F.nll_loss(
            x, gradcli.tensor([[[0, 2], [1, 1]]]), weight=w.detach(), reduction="sum"
        ),
        ((1, 3, 2, 2), (3,)),
    ),
    **{
        f"margins {reduction} {p} {shape}": (
            lambda x, reduction=reduction, p=p, labels=labels: _F.multi_margin_loss(
                x,
                gradcli.tensor(labels),
                p=p,
                weight=gradcli.tensor([0.5, 2.0, 1.0], dtype=x.dtype),
                reduction=reduction,
            ),
            (shape,),
        )
        for reduction in ("none", "sum", "mean")
        for p in (1, 2)
        for shape, labels in (((4, 3), _LABELS), ((3,), 2))
    },
    **{
        f"margins of labels {reduction} {shape}": (
            lambda x, reduction=reduction, labels=labels: _F.multilabel_margin_loss(
                x, gradcli.tensor(labels), reduction=reduction
            ),
            (shape,),
        )
        for reduction in ("none", "sum", "mean")
        for shape, labels in (((4, 3), _LISTED), ((3,), _LISTED[0]))
    },
    "least squares": (lambda a, b: gradcli.linalg.lstsq(a, b).solution, ((5, 3), (5, 2))),
    "least squares of a vector": (lambda a, b: gradcli.linalg.lstsq(a, b)[0], ((2, 5, 3), (2, 5))),
    "least squares, one right side for all": (
        lambda a, b: gradcli.linalg.lstsq(a, b)[0],
        ((2, 5, 3), (5, 2)),
    ),
    "pseudo-inverses with one limit": (
        lambda a: gradcli.linalg.pinv(a, rtol=0.3),
        ((2, 3, 2),),
    ),
    "pseudo-inverses with limits of their own": (
        lambda a, t: gradcli.linalg.pinv(a, atol=t.detach().abs() * 0.1),
        ((2, 3, 2), ()),
    ),
    **{
        f"pseudo-inverses with limits {limits} of matrices {matrices} in front": (
            lambda a, t: gradcli.linalg.pinv(a, rtol=t.detach().abs() * 0.1),
            ((*matrices, 3, 2), limits),
        )
        for matrices, limits in [((), (1,)), ((), (4,)), ((4,), (3, 4)), ((2, 1), (3,))]
    },
    "strides given in place, from an offset on": (
        lambda x: (x * x).as_strided_((2, 2), (1, 2), storage_offset=2),
        ((2, 3),),
    ),
    **{
        f"the memory behind what became {name}": (
            lambda x, become=become: become(x * x).as_strided((3,), (1,), 1),
            ((2, 3),),
        )
        for name, become in (
            ("other strides", lambda x: x.as_strided_((2, 2), (1, 2))),
            ("its transpose", lambda x: x.t_()),
            ("itself without a dimension", lambda x: x[None].squeeze_(0)),
        )
    },
    **{
        f"the elements of {name} in order": (lambda *a, made=made: made(*a).view(-1), shapes)
        for name, made, shapes in (
            ("a product", lambda a, b: gradcli.mm(a[0], b), ((1, 2, 3), (3, 2))),
            ("an outer product", gradcli.addr, ((2, 3), (2,), (3,))),
            ("columns", lambda a: a.index_select(1, gradcli.tensor([2, 0])), ((2, 3),)),
            ("a transpose", lambda a: gradcli.t_copy(a), ((2, 3),)),
            ("a bilinear map", _F.bilinear, ((2, 3), (2, 2), (4, 3, 2))),
            (
                "a normalisation",
                lambda a, w: _F.batch_norm(a, None, None, w, training=True),
                ((2, 3, 2), (3,)),
            ),
            ("a convolution", _F.conv1d, ((2, 3, 5), (4, 3, 2))),
        )
    },
    **{
        f"positions of every entry's own: {name}": (one, ((2, 4), (2, 4), (4,)))
        for name, one in (
            ("index_add", lambda x, y, k: x.index_add(1, _order(k), y, alpha=2)),
            ("index_copy", lambda x, y, k: x.index_copy(-1, _order(k), y)),
            (
                "index_copy of a number",
                lambda x, y, k: x[0].index_copy(0, gradcli.tensor([2]), y[0, 0]),
            ),
            ("index_fill", lambda x, y, k: x.index_fill(1, _order(k)[:2], 0.5) * y),
            ("index_reduce", lambda x, y, k: x.index_reduce(1, _order(k) // 2, y, "amax")),
            ("take", lambda x, y, k: x.take(_order(k) - 4) + y),
            ("gather of a number", lambda x, y, k: x[0].gather(0, _order(k)[0]) * y),
            ("scatter of a number", lambda x, y, k: x[0].scatter(0, _order(k)[1], y[0, 0])),
            (
                "scatter_add of numbers",
                lambda x, y, k: x[0, 0].scatter_add(0, _order(k) * 0, y[0]),
            ),
            (
                "scatter_reduce of a number",
                lambda x, y, k: x[0].scatter_reduce(0, _order(k)[2], y[1], "amax"),
            ),
            ("of what is the same", lambda x, y, k: gradcli.ones(5).take(_order(k)) * x * y),
        )
    },
    "a vector of nothing beside a matrix": (
        lambda x, y: gradcli.cat([x[:0], y, gradcli.ones(2)[:0]], -1) * x.sum(),
        ((3,), (2, 3)),
    ),
    "the first none of a number": (lambda x: x * gradcli.topk(x, 0, 0)[0], ((),)),
    "blocks": (lambda a, b, c: gradcli.block_diag(a, b, c, gradcli.ones(2)), ((2, 3), (2,), ())),
}


@pytest.mark.parametrize(
    ("write", "says"),
    [
        (lambda y, x, i: y.index_put_((i,), x[:2]), "doesn't match the broadcast shape"),
        (lambda y, x, i: y.index_put_((i,), gradcli.tensor(1.0)), "doesn't match the broadcast"),
        (lambda y, x, i: y.__setitem__(i, 2.0), "doesn't match the broadcast shape"),
        (lambda y, x, i: gradcli.bincount(i), "vmap: We do not support batching"),
        (lambda y, x, i: _F.one_hot(i), "please provide an explicit positive num_classes"),
        (lambda y, x, i: x[:0].reshape(-1, 0), "cannot reshape tensor of 0 elements into shape"),
    ],
)
def test_what_differs_is_not_written_to_what_does_not(write: Any, says: str) -> None:
    x, i = gradcli.rand(4, 3), gradcli.tensor([[0, 1], [1, 2], [0, 2], [2, 1]])
    with pytest.raises(RuntimeError, match=says):
        func.vmap(lambda x, i: write(gradcli.ones(3), x, i))(x, i)


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # as in PyTorch
def test_batches_of_nothing_and_of_values() -> None:
    x = gradcli.rand(3, 2, 2)
    made = func.vmap(gradcli.fill)(x, x[:, 0, 0])
    assert (made == x[:, :1, :1].expand(3, 2, 2)).all()
    none = gradcli.zeros(3, 0, 2)
    assert func.vmap(lambda x: x.median())(none).isnan().all()
    assert func.vmap(lambda v: v @ none)(gradcli.rand(4, 0)).shape == (4, 3, 2)
    empty = gradcli.zeros(0, 12, 9)
    folded = func.jacfwd(lambda x: _F.fold(x, (4, 4), (2, 2)))(empty)
    assert folded.shape == (0, 3, 4, 4, 0, 12, 9)
    same = func.jacfwd(lambda x: (x * 1).sin_().as_strided((0, 2), (1, 1)))(gradcli.zeros(0))
    assert same.shape == (0, 2, 0)


def test_integers_in_batches() -> None:
    i = gradcli.tensor([[0, 1], [1, 2], [0, 2], [2, 1]])
    for one in (
        lambda i: _F.one_hot(i, 3),
        func.vmap(lambda i: _F.one_hot(i, 3)),
        lambda i: gradcli.bincount(i, minlength=4),
        lambda i: (i * 1).resize_((1,)),
        lambda i: i.sort(descending=True)[0].as_strided((2,), (1,)),
    ):
        found = func.vmap(one)(i)
        assert (found == gradcli.stack([one(k) for k in i])).all()


@sweep("name", IN_ONE, parts=1)
def test_in_one_as_entry_by_entry(name: str) -> None:
    function, shapes = IN_ONE[name]
    random = np.random.default_rng(7)
    given = [gradcli.tensor(random.standard_normal((5, *shape))) for shape in shapes]
    every = tuple(k for k, s in enumerate(shapes) if k == 0 or "weights" not in name)

    def weighted(*a: Any) -> Any:
        found = function(*a)
        return (found * gradcli.arange(1.0, found.numel() + 1).reshape(found.shape)).sum()

    for one in (function, func.grad(weighted, every)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = func.vmap(one)(*given)
        rows = [one(*(g[k] for g in given)) for k in range(5)]
        columns = zip(*rows, strict=True) if isinstance(found, tuple) else [rows]
        parts = found if isinstance(found, tuple) else (found,)
        for part, column in zip(parts, columns, strict=True):
            wanted = np.stack([c.numpy() for c in column])
            np.testing.assert_allclose(part.numpy(), wanted, rtol=1e-9, atol=1e-12)

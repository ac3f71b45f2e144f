"""The plain pass: expressions written out for it are the rows' rules, and gradients keep their form.

A row's `real` expressions have to be its rules to the bit; where the pass does not look at the shape
and dtype of a gradient (`compiled_rules.keeps`), the rule has to give its input's.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.engine.core.generated_rules import gradients, keeps
from gradcli.engine.core.primitive import Primitive
from gradcli.engine.registry import table
from tests.sweep import sweep

table.load()
WRITTEN_OUT = [row for row in table.PRIMITIVES if row.real]
# Rows whose gradients the pass takes as they come.
UNSEEN = [
    row
    for row in table.PRIMITIVES
    if row.node
    and row.flat
    and (made := gradients(row)) is not None
    and any(keeps(row, text) for text in made[1].values())
    and all(row.kinds[i] == "tensor" for i in row.tensors)
    and len(row.tensors) == len(row.names)
]


def _node(row: Primitive, dtype: Any, **options: Any) -> Any:
    g = np.random.default_rng(0)
    arrays = [(g.random(5) * 0.5 + 0.25).astype(dtype) for _ in row.tensors]
    return row.call(*(gradcli.tensor(a, requires_grad=True) for a in arrays), **options).grad_fn


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("alpha", [1, 2.5])
@sweep("row", WRITTEN_OUT, name=lambda row: row.name, parts=1)
def test_written_out_to_the_bit(row: Primitive, alpha: float, dtype: Any) -> None:
    options = {"alpha": alpha} if "alpha" in row.names else {}
    node = _node(row, dtype, **options)
    seed = np.random.default_rng(1).random(5).astype(dtype)
    wanted = row.backward(node, seed)
    node.push(seed, False)
    for edge, expected in zip(node._edges, wanted, strict=True):
        assert np.array_equal(edge._grad, expected)
        assert edge._grad.dtype == expected.dtype


@sweep("row", UNSEEN, name=lambda row: row.name)
def test_a_gradient_has_its_inputs_form(row: Primitive) -> None:
    seen = 0
    for dtype in (np.float16, np.float32, np.float64):
        for shape in ((), (5,)):
            seen += _keeps_its_form(row, dtype, shape)
    assert seen


def _keeps_its_form(row: Primitive, dtype: Any, shape: Any) -> bool:
    """Whether the pass leaves the row's gradients as they come; then they have their inputs' form."""
    g = np.random.default_rng(0)
    arrays = [np.asarray(g.random(shape) * 0.5 + 0.25, dtype) for _ in row.tensors]
    leaves = [gradcli.tensor(a, requires_grad=True) for a in arrays]
    with np.errstate(all="ignore"):
        try:
            node = row.call(*leaves).grad_fn
            if node is None or any(e is None or e._meta is not node._meta for e in node._edges):
                return False
            found = row.backward(node, np.ones(shape, dtype)[()])
        except (RuntimeError, NotImplementedError, IndexError) as error:
            assert dtype is np.float16 or not shape, error
            return False
    assert all(d.shape == shape and d.dtype == dtype for d in found)
    return True


def test_mixed_dtypes_are_looked_at() -> None:
    x = gradcli.tensor([1.0, 2.0], dtype=gradcli.float32, requires_grad=True)
    half = gradcli.tensor(0.5, dtype=gradcli.float64, requires_grad=True)
    (x * half).sum().backward()
    assert x.grad.dtype == gradcli.float32
    assert half.grad.dtype == gradcli.float64


def test_threads_share_a_graph() -> None:
    x = gradcli.ones(3, requires_grad=True)
    y = x
    for _ in range(2000):
        y = (y * 1.0 + x) * 0.5
    y = y.sum()
    y.backward(retain_graph=True)
    once, x.grad = x.grad.tolist(), None
    runs = [threading.Thread(target=y.backward, kwargs={"retain_graph": True}) for _ in range(6)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert x.grad.tolist() == pytest.approx([6 * v for v in once])


PORTS = {  # of a matrix of three rows
    "split": lambda x: sum((part * part).sum() for part in (x * 2).split(2)),
    "one of several": lambda x: x.unbind()[1].sum() + x.max(1)[0].prod(),
    "a leaf": lambda x: (gradcli.stack(list(x.unbind(1))) * x.T).sum(),
    "normalised": lambda x: gradcli.native_layer_norm(x, (2,), x[0], x[1], 1e-5)[0].sin().sum(),
    "solved": lambda x: gradcli.linalg.solve(x.T @ x + gradcli.eye(2), x[:2]).sin().sum(),
    "a determinant": lambda x: gradcli.linalg.slogdet(x.T @ x)[1],
    "leading": lambda x: x.flatten().topk(3)[0].prod(),
    "picked": lambda x: x[gradcli.tensor([0, 2, 0])].sin().sum(),
    "joined": lambda x: gradcli.cat([x, x * 2]).sin().sum(),
    "used twice": lambda x: (lambda a, *_: (a * a).sum() + a.exp().sum())(*x.chunk(3)),
}


@pytest.mark.parametrize("name", PORTS)
def test_outputs_are_told_apart(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the bit as in the watched pass, which anomaly mode asks for; and again, over a kept graph."""
    found = []
    for watched in (True, False):
        x = gradcli.linspace(0.1, 0.9, 6).reshape(3, 2).detach().requires_grad_()
        with gradcli.autograd.set_detect_anomaly(watched):
            y = PORTS[name](x)
            y.backward(retain_graph=True)
            once = x.grad.clone()
            if not watched:
                monkeypatch.setattr("gradcli.engine.core.watched_pass.run", None)
                assert gradcli.equal(gradcli.autograd.grad(y, x, retain_graph=True)[0], once)
            y.backward()
        assert gradcli.equal(x.grad, once + once)
        found.append(once)
    assert gradcli.equal(*found)


def test_an_error_leaves_nothing_behind() -> None:
    x = gradcli.ones(3, requires_grad=True)
    y = x * 2
    z = y.exp()
    y.mul_(3)
    loss = (z * y).sum()
    y.add_(1)
    for run in (loss.backward, lambda **how: gradcli.autograd.grad(loss, x, **how)):
        with pytest.raises(RuntimeError, match="modified by an inplace"):
            run(retain_graph=True)
    w = x * 2
    w.sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


def test_gradients_by_leaves_reach_no_other() -> None:
    x, other = gradcli.ones(3, requires_grad=True), gradcli.ones(3, requires_grad=True)
    y = x * 2
    loss = (y.exp() * other).sum() + (other * 3).sum()
    freed = (other.exp() * 1.0).sum()
    found = gradcli.autograd.grad(loss + freed, (x, x))
    assert found[0].tolist() == found[1].tolist() == (2 * y.exp()).tolist()
    assert x.grad is other.grad is None
    freed.backward()  # what does not lead to x has not run
    assert other.grad.tolist() == other.exp().tolist()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: gradcli.sin(), "missing 1 required positional arguments"),
        (lambda x: gradcli.sin(x, x), "takes 1 positional argument but 2 were given"),
        (lambda x: gradcli.sin(x, dim=1), "unexpected keyword argument 'dim'"),
        (lambda x: gradcli.sin(3), "must be Tensor, not int"),
    ],
)
def test_wrong_calls_of_one_operand(call: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        call(gradcli.ones(2))


def test_operand_by_keyword() -> None:
    x = gradcli.ones(2, requires_grad=True)
    assert gradcli.sin(input=x).grad_fn.name() == "SinBackward0"

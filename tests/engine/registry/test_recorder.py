"""The recorder's two renderings, source for the ordinary case and the call in full, mean the same."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import gradcli
from gradcli.engine.core import modes
from gradcli.engine.core.node import Node, Port
from gradcli.engine.core.tensor import LAZY, Tensor
from tests.golden.record_samples import texts
from tests.sampling import take_apart
from tests.sweep import sweep

DTYPES = (None, gradcli.float32, gradcli.float16, gradcli.int64, gradcli.bool)
WANTED: tuple[Callable[[int], bool], ...] = (lambda i: True, lambda i: i == 0, lambda i: i == 1)
DEEP = 4  # nodes from the result


def seen(value: Any, depth: int = 0) -> Any:
    """What a value is, to the bit, with the graph above it."""
    if isinstance(value, Tensor):
        array = np.asarray(value.array)
        kinds = type(value.array), array.dtype, array.shape, array.strides, array.tobytes()
        view = value.base is not None, value.creation, value.inference
        return *kinds, *view, value.requires_grad, history(value.node, depth)
    if isinstance(value, (tuple, list)):
        return [seen(v, depth) for v in value]
    return repr(value)


def history(node: Any, depth: int) -> Any:
    """A node: its class, what it saved, its edges."""
    if isinstance(node, Port):
        return node.nr, node._meta.shape, node._meta.dtype, history(node.node, depth)
    if not isinstance(node, Node) or depth > DEEP:
        return node is LAZY or type(node).__name__
    kept = [(name, seen(saved, depth + 2)) for name, saved in node.saved_items()]
    edges = [history(e, depth + 1) for e in node._edges]
    return type(node).__name__, node._meta.shape, node._meta.dtype, node._outputs, kept, edges


def answer(text: str, dtype: Any, wanted: Callable[[int], bool]) -> Any:
    """The results and gradients of a sample; the words of its error."""
    sample = take_apart(text, gradcli)
    leaves = [x if dtype is None or x.is_complex() else x.to(dtype) for x in sample.leaves]
    for i, leaf in enumerate(leaves):
        if wanted(i) and (leaf.is_floating_point() or leaf.is_complex()):
            leaf.requires_grad_()
    gradcli.manual_seed(3)
    try:
        found = sample.function(*leaves)
        outputs = found if isinstance(found, (tuple, list)) else [found]
        results = seen(found)
        roots = [y for y in outputs if isinstance(y, Tensor) and y.requires_grad]
        gradcli.autograd.backward(roots, [gradcli.ones_like(y) for y in roots])
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError) as error:
        return type(error), str(error)
    return results, [seen(leaf.grad) for leaf in leaves]


def written() -> list[str]:
    """The samples that leave no memory as it was."""
    return [t for t in texts() if "empty" not in t and "rrelu" not in t]


@sweep("text", written, parts=32, often=1)
def test_renderings_agree(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dtype in DTYPES:
            for wanted in WANTED if dtype is None else WANTED[:1]:
                ordinary = answer(text, dtype, wanted)
                before = modes.local.state
                state = modes.State()
                state.ordinary = False  # it says so, and nothing is unusual
                modes.restore(state)
                try:
                    in_full = answer(text, dtype, wanted)
                finally:
                    modes.restore(before)
                assert in_full == ordinary, dtype

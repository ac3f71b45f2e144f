"""Ask gradcli a question, and torch too where it is installed: the expected answers are torch's."""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from math import inf, nan
from typing import Any

import pytest

# The expected answers stand in the tests; torch is asked by the long ones, where it is installed.
_LONG = [pytest.param("torch", marks=pytest.mark.long)]
ANSWERING = ["gradcli", *(_LONG if importlib.util.find_spec("torch") else [])]


@pytest.fixture(params=ANSWERING)
def torch(request: Any) -> Any:
    """The module that answers."""
    return importlib.import_module(request.param)


def ask(torch: Any, expression: str, **values: Any) -> Any:
    """The value of an expression in torch's words; `values` are bound as float64 tensors."""
    names = {n: _tensor(torch, v) for n, v in values.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(expression, {"torch": torch, "inf": inf, "nan": nan} | names)


def _tensor(torch: Any, value: Any) -> Any:
    return torch.tensor(value, dtype=torch.float64) if isinstance(value, (list, float)) else value


def gradient(torch: Any, expression: str, x: Any, seed: Any = None) -> Any:
    """The gradient of an expression with respect to `x`, as nested lists."""
    leaf = torch.tensor(x, dtype=torch.float64).requires_grad_()
    result = ask(torch, expression, x=leaf)
    if seed is None:
        result = result.sum()
    else:
        seed = torch.tensor(seed, dtype=result.dtype)
    result.backward(seed)
    return None if leaf.grad is None else leaf.grad.tolist()


def tree(node: Any) -> str:
    """A graph as `Mul(Exp(x), -)`: nodes without Backward, leaves as `x`."""
    if node is None:
        return "-"
    if type(node).__name__ == "AccumulateGrad":
        return "x"
    inner = ", ".join(tree(n) for n, _ in node.next_functions)
    return f"{node.name().replace('Backward', '')}({inner})"


def same(found: Any, expected: Any, least: float = 1e-9) -> None:
    """Assert that nested lists agree to rounding; NaN equals NaN."""
    if isinstance(expected, (list, tuple)):
        assert len(found) == len(expected), (found, expected)
        for f, e in zip(found, expected, strict=True):
            same(f, e, least)
    else:
        assert found == pytest.approx(expected, rel=least, abs=least, nan_ok=True)

"""The samples of the operator table as programs of variables: `sum(x0, dim=1)` with x0's value.

Which of them a sweep runs is settled when tests are collected, by what torch answered to them: a sample
that torch differentiates must differentiate here. Nothing is left out because our own product refused it.
"""

from __future__ import annotations

import ast
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import gradcli
from gradcli import language
from gradcli.engine.registry import table

RECORDED = json.loads((Path(__file__).parents[2] / "golden" / "samples.json").read_text())
# Another result at every call, single precision, in place, or a list of tensors.
UNSUITED = re.compile(
    r"dropout|bernoulli|random|normal|uniform|exponential|cauchy|geometric|rrelu|gumbel|multinomial"
    r"|poisson|rand_like|randn_like|float\(\)|half\(\)|float32|empty|_\(|^gradient"
    # A target or a first output without a gradient; elements that are not finite; two calls.
    r"|soft_margin_loss|slogdet|linalg\.lu\(|\b(inf|nan)\b|\*linalg|dtype=complex|^fft\.i?h?r?fft[2n]?\(fft\."
)
# What torch refuses to differentiate, or has no derivative for, and gradcli differentiates.
OURS_ALONE = re.compile(r"^(flip|unfold|vander|linalg\.cond)\(")


@cache
def texts() -> list[str]:
    """Every sample of the table, once."""
    table.load()
    return sorted({s for o in (*table.FUNCTIONS.values(), *table.PRIMITIVES) for s in o.samples})


@cache
def differentiable() -> list[str]:
    """The samples with a finite real first output and a gradient, as torch has it."""
    return [t for t in texts() if not UNSUITED.search(t) and _has_gradient(t)]


def _has_gradient(text: str) -> bool:
    answer = RECORDED.get(text)
    if answer is None or OURS_ALONE.search(text):
        return is_declared(text)
    if all(g is None for g in answer.get("grads", [])):
        return False
    first = answer["values"][0]
    return first["dtype"] == "float64" and bool(np.isfinite(first["data"]).all())


def has_real_gradient(text: str) -> bool:
    """Whether torch differentiates a sample, and one of its outputs is real."""
    if (answer := RECORDED.get(text)) is None:
        return is_declared(text)
    real = [v["dtype"].startswith("float") for v in answer.get("values", [])]
    return any(real) and any(g is not None for g in answer.get("grads", []))


def is_declared(text: str) -> bool:
    """Whether a row of this sample says that it has a derivative: for what was not recorded yet."""
    owners = [*table.FUNCTIONS.values(), *table.PRIMITIVES]
    rows = [r for o in owners if text in o.samples for r in getattr(o, "primitives", (o,))]
    return any(r.vjps for r in rows)


def _is_namespace(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in (
        *("linalg", "special", "nn", "fft", "F", "torch"),
    )


class _Variables(ast.NodeTransformer):
    """Puts a variable in the place of every argument that is a floating tensor."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def replaced(self, node: ast.expr) -> ast.expr:
        if isinstance(node, (ast.List, ast.Tuple)):
            node.elts = [self.replaced(n) for n in node.elts]
            return node
        if isinstance(node, (ast.Constant, ast.Starred, ast.Slice)):
            return node
        try:
            ast.literal_eval(node)
            return node
        except ValueError:
            pass
        try:
            found = language.evaluate(ast.unparse(node))
        except Exception:
            return node
        if isinstance(found, gradcli.Tensor):
            name = f"x{len(self.values)}"
            self.values[name] = found.detach()
            return ast.Name(name)
        return node


def program(text: str) -> tuple[str, dict[str, Any]]:
    """(source, variables) of a sample in the default dtype; its random numbers are the same every time."""
    return _program(text, gradcli.get_default_dtype())


@cache
def _program(text: str, default: Any) -> tuple[str, dict[str, Any]]:
    gradcli.manual_seed(2026)
    body = ast.parse(text, mode="eval").body
    made = _Variables()
    if isinstance(body, ast.BinOp):
        body.left, body.right = made.replaced(body.left), made.replaced(body.right)
    elif isinstance(body, ast.Subscript):
        body.value = made.replaced(body.value)
    elif isinstance(body, ast.Call):
        if isinstance(body.func, ast.Attribute) and not _is_namespace(body.func.value):
            body.func.value = made.replaced(body.func.value)
        body.args = [made.replaced(a) for a in body.args]
        for k in body.keywords:
            k.value = made.replaced(k.value)
    return ast.unparse(body), made.values


def floating(values: dict[str, Any]) -> dict[str, Any]:
    """The variables that may require grad."""
    return {n: v for n, v in values.items() if v.is_floating_point()}


def outputs(source: str, values: dict[str, Any]) -> list[Any]:
    """The tensors that the program gives."""
    value = language.run(language.parse(source), values).value
    found = list(value) if isinstance(value, (tuple, list)) else [value]
    return [v for v in found if isinstance(v, gradcli.Tensor)]


def weights(shape: Any) -> Any:
    """A cotangent that is not all ones."""
    count = int(np.prod(shape))
    return gradcli.tensor((np.arange(1, count + 1) / 4 - 0.7).reshape(tuple(shape)))

"""The samples of the operator table as programs of variables: `sum(x0, dim=1)` with x0's value."""

from __future__ import annotations

import ast
from functools import cache
from typing import Any

import numpy as np

import gradcli
from gradcli import language
from gradcli.operators import table


@cache
def texts() -> list[str]:
    """Every sample of the table, once."""
    table.load()
    entries = [*table.FUNCTIONS.values(), *table.ROWS]
    return sorted({s for entry in entries for s in getattr(entry, "samples", ())})


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


@cache
def program(text: str) -> tuple[str, dict[str, Any]]:
    """(source, variables) of a sample; the seed makes its random numbers the same every time."""
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

"""The samples of the operator table, taken apart: a function of its floating leaves.

The same text runs with gradcli and with torch (`module`), on the same numbers: both generators agree to
the bit.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

SEED = 20_26
_OPERATORS = {
    **{ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul},
    **{ast.Div: operator.truediv, ast.Pow: operator.pow, ast.MatMult: operator.matmul},
    **{ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod},
}


class _Names(dict[str, Any]):
    """The names of an expression: the module's own."""

    def __init__(self, module: Any) -> None:
        super().__init__()
        self.module = module

    def __missing__(self, name: str) -> Any:
        if name in ("True", "False", "None"):
            raise KeyError(name)
        if name == "F":
            return self.module.nn.functional
        if name in ("pi", "inf", "nan"):
            return float(getattr(self.module, name))
        found = getattr(self.module, name, None)
        if found is None:
            found = getattr(self.module.nn.functional, name, None)
        if found is None:
            found = getattr(self.module.Tensor, name, None)
        if found is None:
            raise KeyError(name)
        return found


@dataclass
class Sample:
    """One call: `function(*leaves)`."""

    text: str
    function: Callable[..., Any]
    leaves: list[Any]


def take_apart(text: str, module: Any) -> Sample:
    """Evaluate the arguments of the outermost call of `text`; floating tensors become leaves."""
    module.manual_seed(SEED)
    names = _Names(module)
    body = ast.parse(text, mode="eval").body
    leaves: list[Any] = []

    def value(node: ast.expr) -> Any:
        return eval(compile(ast.Expression(node), "<sample>", "eval"), {}, names)

    def argument(node: ast.expr) -> Callable[[list[Any]], Any]:
        if isinstance(node, (ast.List, ast.Tuple)):
            parts = [argument(n) for n in node.elts]
            kind = list if isinstance(node, ast.List) else tuple
            return lambda given: kind(p(given) for p in parts)
        found = value(node)
        if isinstance(found, module.Tensor) and (found.is_floating_point() or found.is_complex()):
            at = len(leaves)
            leaves.append(found.detach().clone())
            return lambda given: given[at]
        return lambda given: found

    if isinstance(body, ast.BinOp):
        left, right = argument(body.left), argument(body.right)
        apply = _OPERATORS[type(body.op)]
        return Sample(text, lambda *given: apply(left(list(given)), right(list(given))), leaves)
    if isinstance(body, ast.Subscript):
        target = argument(body.value)
        index = _index(body.slice, value)
        return Sample(text, lambda *given: target(list(given))[index], leaves)
    assert isinstance(body, ast.Call), text
    receiver = None
    if isinstance(body.func, ast.Attribute) and not _is_namespace(body.func.value):
        receiver = argument(body.func.value)
        name = body.func.attr
        # A leaf may not be written in place: in-place forms get a copy of it.
        copy = name.endswith("_")
    else:
        function = value(body.func)
    args: list[Callable[[list[Any]], Any]] = []
    for a in body.args:
        if isinstance(a, ast.Starred):
            args += [lambda given, v=v: v for v in value(a.value)]
        else:
            args.append(argument(a))
    keywords = {k.arg: argument(k.value) for k in body.keywords if k.arg}

    def call(*given: Any) -> Any:
        given_list = list(given)
        target = function if receiver is None else receiver(given_list)
        if receiver is not None:
            target = getattr(target.clone() if copy else target, name)
        return target(
            *(a(given_list) for a in args), **{k: a(given_list) for k, a in keywords.items()}
        )

    return Sample(text, call, leaves)


def _is_namespace(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in (
        "linalg",
        "special",
        "nn",
        "fft",
        "F",
        "torch",
    )


def _index(node: ast.expr, value: Callable[[ast.expr], Any]) -> Any:
    if isinstance(node, ast.Slice):
        return slice(
            *(None if n is None else value(n) for n in (node.lower, node.upper, node.step))
        )
    if isinstance(node, ast.Tuple):
        return tuple(_index(n, value) for n in node.elts)
    return value(node)


def tensors(output: Any, kind: type) -> list[Any]:
    """The tensors of an output, in order."""
    if isinstance(output, kind):
        return [output]
    if isinstance(output, (list, tuple)):
        return [t for part in output for t in tensors(part, kind)]
    return []


def cotangent(module: Any, shape: Any, dtype: Any) -> Any:
    """A seed gradient that is not all ones."""
    count = 1
    for n in shape:
        count *= n
    line = module.arange(1, count + 1, dtype=module.float64) / 4 - 0.7
    return line.reshape(tuple(shape)).to(dtype)

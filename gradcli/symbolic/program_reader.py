"""Runs printed programs: an interpreter of the small part of Python that `to_code` writes.

It does not use `exec`: the text is parsed, and calls reach only the modules that are passed in.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.MatMult: operator.matmul,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
    ast.Not: operator.not_,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_BUILTINS: dict[str, Any] = {
    **{"abs": abs, "max": max, "min": min, "float": float, "int": int, "slice": slice},
    **{"bool": bool, "round": round},
}


def run_code(code: str, values: Sequence[Any], modules: Mapping[str, Any]) -> Any:
    """Call the last function of a printed program with these arguments.

    modules: other names that it may use: `np`, `math`, and the functions printed before it.
    """
    functions = [s for s in ast.parse(code).body if isinstance(s, ast.FunctionDef)]
    function = functions[-1]
    names = dict(zip((a.arg for a in function.args.args), values, strict=True))
    space = {**_BUILTINS, **modules, **names}
    for statement in function.body:
        if isinstance(statement, ast.Assign):
            (target,) = statement.targets
            assert isinstance(target, ast.Name)
            space[target.id] = _value(statement.value, space)
        elif isinstance(statement, ast.Return):
            assert statement.value is not None
            return _value(statement.value, space)
    return None


def _value(node: ast.expr, space: Mapping[str, Any]) -> Any:
    return _READ[type(node)](node, space)


def _call(node: Any, space: Mapping[str, Any]) -> Any:
    args = [_value(a, space) for a in node.args]
    return _value(node.func, space)(*args, **{k.arg: _value(k.value, space) for k in node.keywords})


def _compare(node: Any, space: Mapping[str, Any]) -> Any:
    (right,), (kind,) = node.comparators, node.ops
    return _COMPARE[type(kind)](_value(node.left, space), _value(right, space))


def _if(node: Any, space: Mapping[str, Any]) -> Any:
    return _value(node.body if _value(node.test, space) else node.orelse, space)


def _both(node: Any, space: Mapping[str, Any]) -> Any:
    found: Any = None
    for part in node.values:
        found = _value(part, space)
        if bool(found) != isinstance(node.op, ast.And):
            return found
    return found


def _slice(node: Any, space: Mapping[str, Any]) -> Any:
    parts = (node.lower, node.upper, node.step)
    return slice(*(None if p is None else _value(p, space) for p in parts))


_READ: dict[type[ast.expr], Callable[[Any, Mapping[str, Any]], Any]] = {
    ast.Constant: lambda node, space: node.value,
    ast.Name: lambda node, space: space[node.id],
    ast.Attribute: lambda node, space: getattr(_value(node.value, space), node.attr),
    ast.BinOp: lambda node, space: _BINARY[type(node.op)](
        _value(node.left, space), _value(node.right, space)
    ),
    ast.UnaryOp: lambda node, space: _UNARY[type(node.op)](_value(node.operand, space)),
    ast.Compare: _compare,
    ast.BoolOp: _both,
    ast.IfExp: _if,
    ast.Call: _call,
    ast.Subscript: lambda node, space: _value(node.value, space)[_value(node.slice, space)],
    ast.Slice: _slice,
    ast.Tuple: lambda node, space: tuple(_value(e, space) for e in node.elts),
    ast.List: lambda node, space: [_value(e, space) for e in node.elts],
}
__all__ = ["run_code"]

"""Python's own parser: its tree, and ours, brought to one form."""

from __future__ import annotations

import ast
from typing import Any

from gradcli.language.program import Program

_BINARY = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv",
    ast.Mod: "mod", ast.Pow: "pow", ast.MatMult: "matmul", ast.BitOr: "bitor", ast.BitAnd: "bitand",
}  # fmt: skip
_UNARY = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert", ast.Not: "not"}
_COMPARE = {
    ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne",
    ast.Is: "is", ast.IsNot: "is_not", ast.In: "in", ast.NotIn: "not_in",
}  # fmt: skip
_COMPARISONS = frozenset(_COMPARE.values())


def python_tree(source: str) -> Any:
    """Python's tree of a program, in the form of `our_tree`."""
    return ("block", *(_node(statement) for statement in ast.parse(source).body))


def _block(body: list[Any]) -> Any:
    return ("block", *(_node(statement) for statement in body))


def _node(n: Any) -> Any:
    match n:
        case ast.Expr():
            return ("expression", _node(n.value))
        case ast.Constant():
            return ("constant", type(n.value).__name__, repr(n.value))
        case ast.Name(ctx=ast.Store()):
            return ("target", n.id)
        case ast.Name():
            return ("name", n.id)
        case ast.BinOp():
            return (_BINARY[type(n.op)], _node(n.left), _node(n.right))
        case ast.UnaryOp():
            return (_UNARY[type(n.op)], _node(n.operand))
        case ast.BoolOp():
            return ("and" if isinstance(n.op, ast.And) else "or", *map(_node, n.values))
        case ast.Compare():
            pairs = zip(n.ops, n.comparators, strict=True)
            return ("compare", _node(n.left), *((_COMPARE[type(o)], _node(c)) for o, c in pairs))
        case ast.IfExp():
            return ("conditional", _node(n.body), _node(n.test), _node(n.orelse))
        case ast.Call():
            keywords = [
                ("keyword", k.arg, _node(k.value)) if k.arg else ("double_starred", _node(k.value))
                for k in n.keywords
            ]
            return ("call", _node(n.func), *map(_node, n.args), *keywords)
        case ast.Attribute():
            kind = "target_attribute" if isinstance(n.ctx, ast.Store) else "attribute"
            return (kind, n.attr, _node(n.value))
        case ast.Subscript():
            kind = "target_subscript" if isinstance(n.ctx, ast.Store) else "subscript"
            return (kind, _node(n.value), _node(n.slice))
        case ast.Slice():
            return ("slice", *(p and _node(p) for p in (n.lower, n.upper, n.step)))
        case ast.Tuple() | ast.List():
            kind = "list" if isinstance(n, ast.List) else "tuple"
            kind = "target_tuple" if isinstance(n.ctx, ast.Store) else kind
            return (kind, *map(_node, n.elts))
        case ast.Starred():
            return ("starred", _node(n.value))
        case ast.Dict():
            pairs = zip(n.keys, n.values, strict=True)
            return ("dict", *(_pair(k, _node(v)) for k, v in pairs))
        case ast.ListComp() | ast.GeneratorExp():
            kind = "list_comprehension" if isinstance(n, ast.ListComp) else "generator"
            return (kind, _node(n.elt), *map(_clause, n.generators))
        case ast.DictComp():
            element = _pair(n.key, _node(n.value))
            return ("dict_comprehension", element, *map(_clause, n.generators))
        case ast.Assign():
            return ("assign", *map(_node, n.targets), _node(n.value))
        case ast.AugAssign():
            return ("augmented", _BINARY[type(n.op)], _stored(_node(n.target)), _node(n.value))
        case ast.Lambda():
            return ("lambda", _parameters(n.args), _node(n.body))
        case ast.NamedExpr():
            return ("walrus", _node(n.target), _node(n.value))
        case ast.FunctionDef():
            notes = tuple(_node(a.annotation) for a in n.args.args if a.annotation)
            returns = n.returns and _node(n.returns)
            return ("function", n.name, _parameters(n.args), notes, returns, _block(n.body))
        case ast.Return():
            return ("return", n.value and _node(n.value))
        case ast.If():
            nested = len(n.orelse) == 1 and isinstance(n.orelse[0], ast.If)
            other = _node(n.orelse[0]) if nested else n.orelse and _block(n.orelse)
            return ("if", _node(n.test), _block(n.body), other or None)
        case ast.While():
            return ("while", _node(n.test), _block(n.body))
        case ast.For():
            return ("for", _node(n.target), _node(n.iter), _block(n.body))
        case ast.With():
            items = (
                (_node(i.context_expr), i.optional_vars and _node(i.optional_vars)) for i in n.items
            )
            return ("with", *items, _block(n.body))
        case ast.Try():
            handlers = ((h.type and _node(h.type), h.name, _block(h.body)) for h in n.handlers)
            return ("try", _block(n.body), *handlers)
        case ast.Assert():
            return ("assert", _node(n.test), n.msg and _node(n.msg))
        case ast.Import():
            return ("import", *((a.name, a.asname) for a in n.names))
        case ast.ImportFrom():
            return ("import_from", n.module, *((a.name, a.asname) for a in n.names))
        case ast.JoinedStr():
            return _text(n)
        case _:
            return (type(n).__name__.lower(),)


def _pair(key: Any, value: Any) -> Any:
    return ("double_starred", value) if key is None else ("pair", _node(key), value)


def _clause(c: ast.comprehension) -> Any:
    return ("clause", _node(c.target), _node(c.iter), *map(_node, c.ifs))


def _stored(target: Any) -> Any:
    """An augmented target as we write it: read, then written."""
    kinds = {"target": "name", "target_attribute": "attribute", "target_subscript": "subscript"}
    return (kinds[target[0]], *target[1:])


def _parameters(arguments: ast.arguments) -> Any:
    names = [a.arg for a in arguments.args]
    return (tuple(names), tuple(map(_node, arguments.defaults)))


def _text(n: Any) -> Any:
    parts = []
    for value in n.values:
        if isinstance(value, ast.Constant):
            parts.append(("text", value.value))
        else:
            conversion = chr(value.conversion) if value.conversion > 0 else None
            parts.append(
                (
                    "field",
                    _node(value.value),
                    conversion,
                    value.format_spec and _text(value.format_spec),
                )
            )
    return ("joined", *_merged(parts))


def _merged(parts: list[Any]) -> list[Any]:
    """Neighbouring pieces of text as one, empty ones gone."""
    out: list[Any] = []
    for part in parts:
        if part[0] == "text" and out and out[-1][0] == "text":
            out[-1] = ("text", out[-1][1] + part[1])
        elif part != ("text", ""):
            out.append(part)
    return out


def our_tree(program: Program) -> Any:
    """Our tree, in the same form."""
    stack: list[Any] = []
    for kind, meaning, count, _ in program.walk():
        children = stack[len(stack) - count :] if count else []
        if count:
            del stack[len(stack) - count :]
        stack.append(_ours(kind, meaning, children))
    return stack[0]


def _ours(kind: str, meaning: Any, c: list[Any]) -> Any:
    if kind == "constant":
        return ("constant", type(meaning).__name__, repr(meaning))
    if kind in ("name", "target", "module", "parameter", "keyword_name"):
        return (kind, meaning)
    if kind in ("attribute", "target_attribute"):
        return ("module", f"{c[0][1]}.{meaning}") if c[0][0] == "module" else (kind, meaning, *c)
    if kind in _COMPARISONS:
        return ("compare", c[0], (kind, c[1]))
    if kind.startswith("chain_"):
        return (*c[0], (kind[6:], c[1]))
    if kind == "call_keywords":
        return ("call", *c)
    if kind == "keyword":
        return ("keyword", c[0][1], c[1])
    if kind == "slice":
        given = iter(c)
        return ("slice", *(next(given) if meaning & bit else None for bit in (1, 2, 4)))
    if kind.endswith("_assign"):
        return ("augmented", kind[:-7], *c)
    if kind == "parameter_default":
        return (kind, c[0][1], c[1])
    if kind == "lambda":
        return ("lambda", _our_parameters(c[:-1]), c[-1])
    if kind in ("annotated", "annotated_default"):
        note = ("name", c[1][1]) if c[1][0] == "target" else c[1]
        return ("parameter", c[0][1], c[2] if len(c) > 2 else None, note)
    if kind in ("function", "function_annotated"):
        returns = c.pop(-2) if kind == "function_annotated" else None
        notes = tuple(p[3] for p in c[1:-1] if len(p) > 3)
        return ("function", c[0][1], _our_parameters(c[1:-1]), notes, returns, c[-1])
    if kind in ("return", "return_nothing"):
        return ("return", c[0] if c else None)
    if kind in ("if", "if_else"):
        return ("if", c[0], c[1], c[2] if len(c) > 2 else None)
    if kind in ("with_item", "with_item_as"):
        return (c[0], c[1] if len(c) > 1 else None)
    if kind == "except_all":
        return (None, None, c[0])
    if kind == "except":
        return (c[0], None, c[1])
    if kind == "except_as":
        return (c[0], c[1][1], c[2])
    if kind in ("assert", "assert_message"):
        return ("assert", c[0], c[1] if len(c) > 1 else None)
    if kind in ("import_module", "import_module_as"):
        return (c[0][1], c[1][1] if len(c) > 1 else None)
    if kind == "import_from":
        return ("import_from", c[0][1], *c[1:])
    if kind == "convert":
        return ("converted", c[0], meaning)
    if kind in ("format", "format_spec"):
        value, conversion = (c[0][1], c[0][2]) if c[0][0] == "converted" else (c[0], None)
        return ("field", value, conversion, c[1] if len(c) > 1 else None)
    if kind == "joined":
        return ("joined", *_merged([_as_text(part) for part in c]))
    if kind == "concatenate":
        parts = [part for side in c for part in _pieces(side)]
        if all(side[0] == "constant" for side in c):
            joined = "".join(part[1] for part in parts)
            return ("constant", "str", repr(joined))
        return ("joined", *_merged(parts))
    return (kind, *c)


def _as_text(part: Any) -> Any:
    import ast as python

    return ("text", python.literal_eval(part[2])) if part[0] == "constant" else part


def _pieces(side: Any) -> list[Any]:
    return [_as_text(side)] if side[0] == "constant" else list(side[1:])


def _our_parameters(c: list[Any]) -> Any:
    return (
        tuple(p[1] for p in c),
        tuple(p[2] for p in c if len(p) > 2 and p[2] is not None),
    )

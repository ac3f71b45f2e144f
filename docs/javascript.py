"""Write gradcli/graphs/page/layout.js from layered_layout.py: python docs/javascript.py

One layout for pictures and for the page. This knows as much of Python as that file uses, and refuses
the rest: functions, dataclasses, lists and tuples (both become arrays), numbers; truth is of booleans
alone, and `+` is of numbers alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

GRAPHS = Path(__file__).resolve().parents[1] / "gradcli" / "graphs"
SOURCE, TARGET = GRAPHS / "layered_layout.py", GRAPHS / "page" / "layout.js"
PUBLIC = "Box, Wire, layout, turned, curve, label_place"
HEAD = """\
// Written by docs/javascript.py from layered_layout.py; do not edit.
const Layered = (() => {
  const count = (length) => Array.from({ length: Math.max(0, length) }, (_, k) => k);
  const range = (a, b) => (b === undefined ? count(a) : count(b - a).map((k) => a + k));
  const enumerate = (list) => list.map((one, k) => [k, one]);
  const pairwise = (list) => list.slice(1).map((one, k) => [list[k], one]);
  const reversed = (list) => [...list].reverse();
  const sum = (list) => list.reduce((a, b) => a + b, 0);
  const all = (list) => list.every(Boolean);
  const list = (from) => [...from];
  const float = (number) => number;
  const abs = Math.abs;
  const max = (...found) => found.flat().reduce((a, b) => (b > a ? b : a));
  const min = (...found) => found.flat().reduce((a, b) => (b < a ? b : a));
  const bisect_right = (sorted, value) => {
    let low = 0, high = sorted.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (value < sorted[middle]) high = middle;
      else low = middle + 1;
    }
    return low;
  };
  const insort = (sorted, value) => sorted.splice(bisect_right(sorted, value), 0, value);
"""
OPERATORS = {
    **{ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Mod: "%", ast.USub: "-"},
    **{ast.Eq: "===", ast.NotEq: "!==", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="},
    **{ast.Is: "===", ast.IsNot: "!==", ast.And: "&&", ast.Or: "||", ast.Not: "!"},
}
METHODS = {
    "append": "{0}.push({1})",
    "extend": "for (const one of {1}) {0}.push(one)",
    "pop": "{0}.pop()",
    "sort": "{0}.sort((a, b) => ({1})(a) - ({1})(b))",
    "join": "{1}.join({0})",
}


def operator(node: ast.AST) -> str:
    return OPERATORS[type(node)]


def expression(node: ast.expr) -> str:
    """An expression in JavaScript. Raises NotImplementedError for what this does not know."""
    match node:
        case ast.Constant(value=bool() | None):
            return {True: "true", False: "false", None: "null"}[node.value]
        case ast.Constant(value=int() | float() as number):
            return repr(number)
        case ast.Constant(value=str() as text):
            return '"' + text + '"'
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            return f"{expression(value)}.{name}"
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return f"[{', '.join(map(expression, items))}]"
        case ast.Starred(value=value):
            return f"...{expression(value)}"
        case ast.BinOp(left=left, op=op, right=right):
            return f"({expression(left)} {operator(op)} {expression(right)})"
        case ast.UnaryOp(op=op, operand=value):
            return f"{operator(op)}{expression(value)}"
        case ast.BoolOp(op=op, values=values):
            return "(" + f" {operator(op)} ".join(map(expression, values)) + ")"
        case ast.Compare(left=left, ops=[ast.In() | ast.NotIn() as op], comparators=[right]):
            sign = "!" if isinstance(op, ast.NotIn) else ""
            return f"{sign}{expression(right)}.includes({expression(left)})"
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return f"({expression(left)} {operator(op)} {expression(right)})"
        case ast.IfExp(test=test, body=body, orelse=other):
            return f"({expression(test)} ? {expression(body)} : {expression(other)})"
        case ast.Lambda(args=args, body=body):
            return f"({', '.join(one.arg for one in args.args)}) => {expression(body)}"
        case (
            ast.ListComp(elt=item, generators=parts) | ast.GeneratorExp(elt=item, generators=parts)
        ):
            return comprehension(item, parts)
        case ast.Subscript(value=value, slice=ast.Slice(lower=low, upper=high)):
            ends = [expression(end) for end in (low or ast.Constant(0), high) if end is not None]
            return f"{expression(value)}.slice({', '.join(ends)})"
        case ast.Subscript(value=value, slice=ast.UnaryOp() as at):
            return f"{expression(value)}.at({expression(at)})"
        case ast.Subscript(value=value, slice=at):
            return f"{expression(value)}[{expression(at)}]"
        case ast.JoinedStr(values=values):
            return f"`{''.join(map(piece, values))}`"
        case ast.Call():
            return call(node)
    raise NotImplementedError(f"line {node.lineno}: {ast.unparse(node)}")


def comprehension(item: ast.expr, parts: list[ast.comprehension]) -> str:
    part, *inner = parts
    given, source = f"({expression(part.target)})", expression(part.iter)
    for test in part.ifs:
        source += f".filter({given} => {expression(test)})"
    if inner:
        return f"{source}.flatMap({given} => {comprehension(item, inner)})"
    return f"{source}.map({given} => {expression(item)})"


def piece(node: ast.expr) -> str:
    if isinstance(node, ast.FormattedValue):
        text = expression(node.value)
        return "${" + (f"{text}.toFixed(1)" if node.format_spec else text) + "}"
    assert isinstance(node, ast.Constant)
    return str(node.value)


def call(node: ast.Call) -> str:
    given = [expression(one) for one in (*node.args, *(word.value for word in node.keywords))]
    match node.func:
        case ast.Name(id="len"):
            return f"{given[0]}.length"
        case ast.Name(id=name):
            return f"{'new ' if name[0].isupper() else ''}{name}({', '.join(given)})"
        case ast.Attribute(value=value, attr=name):
            return METHODS[name].format(expression(value), *given)
    raise NotImplementedError(ast.unparse(node))


def body(nodes: list[ast.stmt], indent: str) -> Iterator[str]:
    for node in nodes:
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            yield from statement(node, indent)


def block(head: str, nodes: list[ast.stmt], indent: str) -> Iterator[str]:
    yield f"{indent}{head} {{"
    yield from body(nodes, f"{indent}  ")
    yield f"{indent}}}"


def statement(node: ast.stmt, indent: str) -> Iterator[str]:
    match node:
        case (
            ast.Import() | ast.ImportFrom() | ast.Assign(value=ast.Subscript(value=ast.Name()))
        ) if not indent.strip() and len(indent) == 2:
            return  # types among them
        case ast.ClassDef():
            yield from dataclass(node, indent)
        case ast.FunctionDef():
            yield from function(node, indent)
        case ast.Return(value=value):
            yield f"{indent}return{'' if value is None else ' ' + expression(value)};"
        case ast.Assign(targets=targets, value=value):
            const = "const " if len(indent) == 2 else ""
            ends = " = ".join(map(expression, targets))
            yield f"{indent}{const}{ends} = {expression(value)};"
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield f"{indent}{expression(target)} = {expression(value)};"
        case ast.AugAssign(target=target, op=op, value=value):
            yield f"{indent}{expression(target)} {operator(op)}= {expression(value)};"
        case ast.Expr(value=value):
            yield f"{indent}{expression(value)};"
        case ast.Break() | ast.Continue():
            yield f"{indent}{ast.unparse(node)};"
        case ast.For(target=target, iter=source):
            head = f"for (let {expression(target)} of {expression(source)})"
            yield from block(head, node.body, indent)
        case ast.While(test=test):
            yield from block(f"while ({expression(test)})", node.body, indent)
        case ast.If(test=test, orelse=other):
            yield from block(f"if ({expression(test)})", node.body, indent)
            if other:
                yield from block("else", other, indent)
        case _:
            raise NotImplementedError(f"line {node.lineno}: {ast.unparse(node)}")


def function(node: ast.FunctionDef, indent: str) -> Iterator[str]:
    known = [*node.args.args, *node.args.kwonlyargs]
    usual = [None] * (len(node.args.args) - len(node.args.defaults)) + node.args.defaults
    usual += node.args.kw_defaults
    words = [
        one.arg if given is None else f"{one.arg} = {expression(given)}"
        for one, given in zip(known, usual, strict=True)
    ]
    names = dict.fromkeys(
        one.id
        for part in ast.walk(node)
        if isinstance(part, ast.Assign | ast.AnnAssign)
        for target in (part.targets if isinstance(part, ast.Assign) else [part.target])
        for one in ast.walk(target)
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    )
    own = [name for name in names if name not in {one.arg for one in known}]
    yield f"\n{indent}function {node.name}({', '.join(words)}) {{"
    if own:
        yield f"{indent}  let {', '.join(own)};"
    yield from body(node.body, f"{indent}  ")
    yield f"{indent}}}"


def dataclass(node: ast.ClassDef, indent: str) -> Iterator[str]:
    fields = [one for one in node.body if isinstance(one, ast.AnnAssign)]
    words = []
    for one in fields:
        name = expression(one.target)
        if one.value is None:
            words.append(name)
        else:  # field(default_factory=list)
            words.append(
                f"{name} = {'[]' if isinstance(one.value, ast.Call) else expression(one.value)}"
            )
    yield f"\n{indent}class {node.name} {{"
    yield f"{indent}  constructor({', '.join(words)}) {{"
    for one in fields:
        yield f"{indent}    this.{expression(one.target)} = {expression(one.target)};"
    yield f"{indent}  }}\n{indent}}}"


def translated() -> str:
    """The text of layout.js."""
    lines = body(ast.parse(SOURCE.read_text(encoding="utf-8")).body, "  ")
    return "\n".join([HEAD, *lines, f"\n  return {{ {PUBLIC} }};", "})();", ""])


if __name__ == "__main__":
    TARGET.write_text(translated(), encoding="utf-8")

"""A node's derivative rules as text, read from the row of the operator table that made it."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from types import FunctionType
from typing import Any

from gradcli.engine.core.primitive import Primitive
from gradcli.graphs import saved_fields


def rules_of(primitive: Primitive) -> dict[str, str]:
    """Return {argument: rule} of a row, "grad" being what comes in."""
    return {
        target.replace("__", ", "): rule_text(rule, primitive.node)
        for target, rule in primitive.vjps.items()
    }


def rules_by_edge(node: Any) -> list[str]:
    """Return the rule behind each edge of `next_functions`, "" where unknown."""
    edges = node.next_functions
    primitive = getattr(node, "_primitive", None)
    if primitive is None:
        return [""] * len(edges)
    texts: dict[int, str] = {}
    for targets, rule in zip(primitive.targets, primitive.vjps.values(), strict=True):
        for position in targets:
            texts[position] = rule_text(rule, primitive.node)
    if any(" if " in text for text in texts.values()):
        told = _Decided(dict(_options_of(node)))
        texts = {k: told.of(text) if " if " in text else text for k, text in texts.items()}
    ordered = [texts.get(position, "") for position in primitive.differentiated]
    if len(ordered) == len(edges):
        return ordered
    # An argument that is a list of tensors has one rule for many edges.
    return ordered * len(edges) if len(ordered) == 1 else [""] * len(edges)


def _options_of(node: Any) -> Iterator[tuple[str, Any]]:
    """What a node has saved besides tensors: numbers, words, None."""
    for name, value in saved_fields.fields(node):
        if value is None or isinstance(value, int | float | str):
            yield name, value


class _Decided(ast.NodeTransformer):
    """Leaves of a rule what applies to one node: conditions on its options are known."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options

    def of(self, text: str) -> str:
        """A rule's text."""
        return ast.unparse(self.visit(ast.parse(text, mode="eval").body))

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        truth = self._truth(node.test)
        return node if truth is None else node.body if truth else node.orelse

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        ones = [isinstance(one, ast.Constant) and one.value == 1 for one in (node.left, node.right)]
        if isinstance(node.op, ast.Mult) and any(ones):
            return node.right if ones[0] else node.left
        return node.left if isinstance(node.op, ast.Div) and ones[1] else node

    def _truth(self, test: ast.expr) -> bool | None:
        if isinstance(test, ast.Name):
            found = self.options.get(test.id)
            return found if isinstance(found, bool) else None
        if not (isinstance(test, ast.Compare) and isinstance(test.left, ast.Name)):
            return None
        name, other = test.left.id, test.comparators[0]
        if name not in self.options or len(test.ops) > 1 or not isinstance(other, ast.Constant):
            return None
        if isinstance(test.ops[0], ast.Is):
            return self.options[name] is other.value
        return self.options[name] == other.value if isinstance(test.ops[0], ast.Eq) else None


@lru_cache(1024)
def rule_text(rule: Any, node: str | None) -> str:
    """Return the text of a rule: a lambda's body, or a helper's only expression, or a function's call.

    node: of the operator, after which a function in its class is called: `pow_backward(grad, …)`.
    """
    if isinstance(rule, Primitive):
        call = f"{rule.name.removeprefix('_')}({', '.join(['grad', *rule.names[1:]])})"
        return _opened(call, {rule.name.removeprefix("_"): rule})
    if not isinstance(rule, FunctionType):
        return ""
    if said := _formula(rule):
        names = rule.__code__.co_varnames[: rule.__code__.co_argcount]
        return _called(said, [ast.Name(name) for name in ("grad", *names[1:])], rule) or ""
    code = rule.__code__
    first, *rest = code.co_varnames[: code.co_argcount] or ("",)
    found, name = None, code.co_name.removeprefix("_")
    owner = code.co_qualname.rpartition(".")[0].rpartition(".")[2]
    if owner.isidentifier():  # a rule that is a function in the operator's class
        stem = (node or owner).partition("Backward")[0]
        name = re.sub(r"(?<=[a-z\d])(?=[A-Z])", "_", stem).lower() + "_backward"
    if owner.isidentifier() or code.co_name.startswith(("_", "<")):
        found = _bodies(code.co_filename).get((code.co_firstlineno, code.co_name))
    if found is None:
        return "" if name == "<lambda>" else f"{name}({', '.join(['grad', *rest])})"
    if first:
        found = re.sub(rf"(?<![\w.]){re.escape(first)}(?!\w)", "grad", found)
    return _opened(found, rule.__globals__)


def _formula(callee: Any) -> str:
    """What a derivative's primitive or function computes, as an expression of its parameters, if it says so.

    A primitive by its symbolic fact, or as functions do: the docstring ends in the expression in backticks.
    """
    if isinstance(callee, Primitive):
        symbolic = callee.symbolic if isinstance(callee.symbolic, str) else ""
        if re.search(r"[*/()]", symbolic) and ":" not in symbolic:
            return symbolic
        said = callee.doc
    else:
        said = callee.__doc__
    found = re.search(r"`([^`]+)`\.$", " ".join((said or "").split()))
    return found[1] if found else ""


def _called(formula: str, given: list[ast.expr], callee: Any) -> str | None:
    """A formula with the arguments of a call in the place of its parameters; None where they do not fit."""
    if isinstance(callee, Primitive):
        names, defaults = list(callee.names), {}
    else:
        code = callee.__code__
        names = list(code.co_varnames[: code.co_argcount])
        last = callee.__defaults__ or ()
        defaults = dict(zip(names[len(names) - len(last) :], map(ast.Constant, last), strict=True))
    if len(given) > len(names):
        return None
    arguments = {**defaults, **dict(zip(names, given, strict=False))}
    tree = _Swap(arguments).visit(ast.parse(formula, mode="eval").body)
    return ast.unparse(tree).replace("1 * (grad @", "(grad @").removeprefix("1 * ")


def _opened(text: str, known: dict[str, Any]) -> str:
    """A rule with the calls of derivatives' own primitives and functions spelled out."""
    return ast.unparse(_Open(known).visit(ast.parse(text, mode="eval").body)) if text else text


class _Open(ast.NodeTransformer):
    """Puts formulas in the place of calls of what is known by name."""

    def __init__(self, known: dict[str, Any]) -> None:
        self.known = known

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        callee = self.known.get(name, self.known.get(f"_{name}"))
        if not isinstance(callee, (Primitive, FunctionType)) or node.keywords:
            return node
        if not ("backward" in name or name.startswith("mm_mat")):
            return node
        formula = _formula(callee)
        found = _called(formula, node.args, callee) if formula else None
        return node if found is None else ast.parse(found, mode="eval").body


Found = dict[tuple[int, str], str]


@lru_cache
def _bodies(filename: str) -> Found:
    """Return the text of every lambda and one-expression function of a file, by line and name."""
    try:
        module = ast.parse(Path(filename).read_text(encoding="utf-8"))
    except OSError:
        return {}
    helpers = {
        item.name: ([argument.arg for argument in item.args.args], expression)
        for item in module.body
        if isinstance(item, ast.FunctionDef) and (expression := _only_expression(item))
    }
    found: Found = {}
    for item in ast.walk(module):
        if isinstance(item, ast.Lambda):
            found[item.lineno, "<lambda>"] = _text(item.body, helpers)
        elif isinstance(item, ast.FunctionDef) and (expression := _only_expression(item)):
            line = item.decorator_list[0].lineno if item.decorator_list else item.lineno
            found[line, item.name] = _text(expression, helpers)
    return found


def _only_expression(function: ast.FunctionDef) -> ast.expr | None:
    documented = isinstance(function.body[0], ast.Expr)
    last = function.body[-1]
    if isinstance(last, ast.Return) and len(function.body) == 1 + documented:
        return last.value
    return None


# Cases that a rule treats apart, and a reader need not: complex numbers, arrays against tensors.
_ASIDE = re.compile(
    r"is_complex|is_array\(|unrecorded\(|is_real\(|, ARRAYS\)|alpha == 1$|dtype\.kind == 'c'$"
)


# Helpers of rules (`registry.rule_helpers`) that say nothing to a reader, and those that are methods.
_SILENT = frozenset(("conj", "constant", "data"))
_METHODS = {"total": "sum", "contiguous": "contiguous", "transposed": "transpose"}


class _Plain(ast.NodeTransformer):
    """Rewrites a rule as a reader would: helpers opened, special cases left out."""

    def __init__(self, helpers: dict[str, tuple[list[str], ast.expr]]) -> None:
        self.helpers, self.depth = helpers, 0

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        test = ast.unparse(node.test)
        nothing = isinstance(node.body, ast.Constant) and node.body.value is None
        if _ASIDE.search(test) or (nothing and test.endswith(" is None")):
            return self.visit(node.orelse)  # type: ignore[no-any-return]
        if test.endswith("dtype.kind != 'c'"):
            return self.visit(node.body)  # type: ignore[no-any-return]
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if isinstance(node.value, ast.Name) and node.value.id == "np":
            return ast.Name(node.attr)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        called = node.func
        if isinstance(called, ast.Attribute) and called.attr == "conj" and not node.args:
            return self.visit(called.value)  # type: ignore[no-any-return]
        given = called.args[:1] if isinstance(called, ast.Call) else []
        if (
            given
            and ast.unparse(called).startswith("resolve(")
            and isinstance(given[0], ast.Constant)
        ):
            node.func = ast.Name(str(given[0].value))
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        known = self.helpers.get(name) if name.startswith("_") and self.depth < 3 else None
        self.generic_visit(node)
        if name in _SILENT:
            return node.args[0]
        if name == "shared":
            return ast.BinOp(node.args[0], ast.Div(), node.args[1])
        if name in _METHODS:
            return ast.Call(ast.Attribute(node.args[0], _METHODS[name]), node.args[1:], [])
        if known is None or node.keywords or len(known[0]) != len(node.args):
            return node
        swap = _Swap(dict(zip(known[0], node.args, strict=True)))
        self.depth += 1
        opened = self.visit(swap.visit(copy.deepcopy(known[1])))
        self.depth -= 1
        return opened  # type: ignore[no-any-return]


class _Swap(ast.NodeTransformer):
    """Puts arguments in the place of parameters."""

    def __init__(self, arguments: dict[str, ast.expr]) -> None:
        self.arguments = arguments

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self.arguments.get(node.id, node)


def _text(expression: ast.expr, helpers: dict[str, tuple[list[str], ast.expr]]) -> str:
    plain = ast.unparse(_Plain(helpers).visit(copy.deepcopy(expression)))
    return re.sub(r"(?<![\w.])_(?=[a-z])", "", plain)

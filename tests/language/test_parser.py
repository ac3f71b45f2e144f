# ruff: noqa: E501 (tables of cases)
"""The driver builds the tree that Python's parser builds, and what lark builds from the same grammar."""

from __future__ import annotations

import ast
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from gradcli.language import LanguageError, Program, parse
from gradcli.language import parser as driver
from gradcli.language.compile_grammar import build, render
from tests.language import ast_oracle, lark_oracle, strategies
from tests.sweep import sweep

WALRUS = [
    "(y := x + 1)", "f(y:=1)", "if (n := f()) > 3: n", "while x := y: x", "f'{x:=5}'", "f'{(x:=5)}'",
    "def f(a: b, c: d.e = 1, g: h=2) -> i:\n  return a", "def f(x: torch.Tensor): pass",
]  # fmt: skip
ACCEPTED = [
    *WALRUS,
    "-x**2", "2**-1", "2**3**2", "a if b else c if d else e", "not a == b", "a < b < c", "(a < b) < c",
    "a or b and not c", "(a or b) or c", "x[1:, ::2, ..., None]", "x[:]", "x[::]", "x[1:2:3]", "x[:,]",
    "f(a, b, c=1, d=2,)", "f(x,)", "f()", "a.b.c(d)[e].f", "(1,)", "()", "1,",
    "1, 2", "[1, 2,]", "[(1)]", "lambda: 0", "lambda x, y=2: x + y", "a @ b @ c", "~-+x", "a is not b",
    "a not in b", "x is (not y)", "'a' \"b\" 'c'", "f'a{x}b' 'c'", "r'\\n' '\\x41\\u00e9\\N{BULLET}'",
    "f'{x!r:>{w}.{p}}'", "f'{{}}'", "f'{f\"{y}\"}'", "f'''a\n{x}'''",
    "x = y = 1", "a, b = b, a", "(a, b), c = d", "[a, b] = c", "x.grad = None", "x[0], y.data = 1, 2",
    "x += 1", "x.y //= 2", "x[1] **= 3", "pass", "x;", "x; y = 2; z", "\n\nx\n\n", "x # comment", "# c\nx",
    "(1 +\n 2)", "f(\n  a,\n  # c\n  b\n)", "x = 1 + \\\n  2", "if a: b", "if a:\n b\nelse:\n c",
    "if a:\n  b\nelif c:\n  d\nelif e: f\nelse:\n  g\nh", "while a:\n  b\n  if c: break\n  continue",
    "for i in x: y", "for a, (b, c) in d, e:\n  f", "def f(): return", "def f(a, b=1,):\n  return a, b\n",
    "def f(x):\n  def g(y):\n    return x + y\n  return g", "with a: b", "with a, b as c:\n  d",
    "try:\n  a\nexcept: b", "try: a\nexcept E: b\nexcept (F, G) as e:\n  c", "assert a, b", "import torch",
    "import torch.nn as nn, numpy as np", "from torch import nn, linalg as la", "0xff + 0b11 + 0o17 + 1_0.0_1e1_0",
    "θ + ﬁ", "x\r\ny\rz", "if a:\n\tb\n\tc", "True, False, None, ...", "00", "1.e5", "2J", "x = lambda: (yy)",
    "x if y else lambda: z", "print(x, end='')", "not_a + andy", "if a:\n  b\n# c\n  d", "1 .real", "a . b",
    "\"\"\"a\nb\"\"\"", "x[a:b, c]", "x[lambda: 1]", "f(lambda x: x, y)", "f(a)(b)(c)", "-1 ** -x", "f(x if y else z)",
    "x[(a, b)]", "f'{(lambda x: x)(1)}'", "f'{x,}'", "rf'\\d{x}'", "f'\\{x}'", "f'\\N{BULLET}'", "x == -y", "x=-y",
]  # fmt: skip


def nested_rows(program: Program) -> list[tuple[Any, ...]]:
    """Rows without spans, in lark_oracle's form (before targets are told from other expressions)."""
    same = {
        "target_tuple": "tuple",
        "target_attribute": "attribute",
        "target_subscript": "subscript",
    }
    out = []
    for (kind, meaning, _, _), operand in zip(program.walk(), program.operands, strict=True):
        plain = meaning is None and kind != "constant"
        out.append((same.get(kind, kind), operand if plain else meaning))
    return out


def lark_rows(source: str) -> list[tuple[Any, ...]]:
    same = {"target_tuple": "tuple"}
    return [(same.get(kind, kind), operand) for kind, operand in lark_oracle.rows(source)]


def unbound(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """What is assigned to is a target to us, and an expression to the grammar."""
    same = {"target": "name", "list": "tuple"}
    return [(same.get(kind, kind), repr(operand)) for kind, operand in rows]


def python_accepts(source: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(source)
        except (SyntaxError, ValueError):
            return False
    return True


def hold_to_python(source: str, program: Program) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert ast_oracle.our_tree(program) == ast_oracle.python_tree(source)


def accepted(source: str) -> Program | None:
    try:
        return parse(source)
    except LanguageError:
        return None


@sweep("source", ACCEPTED)
def test_same_tree_as_python_and_lark(source: str) -> None:
    program = parse(source)
    hold_to_python(source, program)
    assert unbound(nested_rows(program)) == unbound(lark_rows(source))


@given(strategies.expressions)
def test_every_expression_has_pythons_tree(source: str) -> None:
    source = source.strip()
    program = accepted(source)
    if program is None:
        # Only what a token refuses: 3.5.x and the like.
        assert not python_accepts(source) or "is not a number" in refusal(source)
    else:
        hold_to_python(source, program)


@given(strategies.programs)
def test_every_program_has_pythons_tree(source: str) -> None:
    source = source.lstrip()  # blanks before the first line are ours to allow
    program = accepted(source)
    if program is not None:
        hold_to_python(source, program)
        assert unbound(nested_rows(program)) == unbound(lark_rows(source))


@given(strategies.soup)
def test_lark_and_python_accept_what_the_driver_accepts(source: str) -> None:
    try:
        expected: Any = lark_rows(source)
    except (lark_oracle.Refused, LanguageError):
        expected = None
    try:
        program = parse(source)
    except LanguageError as error:
        # What checks.py and the targets refuse, the grammar lets pass.
        beyond = (
            "cannot assign",
            "outside",
            "two parameters",
            "must be the last",
            "a backslash may only end a line",
            "only its first line",
        )
        assert expected is None or any(text in error.message for text in beyond), error.message
        error.render()
        return
    if source.strip():
        assert expected is not None, "lark refuses it"
        assert unbound(nested_rows(program)) == unbound(expected)
    # Leading blanks are ours to allow; what a backslash continues must not be stripped away.
    plain = source.strip() if python_accepts(source.strip()) else source.lstrip()
    assert python_accepts(plain), "Python refuses it"
    hold_to_python(plain, program)


def refusal(source: str) -> str:
    with pytest.raises(LanguageError) as caught:
        parse(source)
    return caught.value.message


def spans(source: str) -> dict[str, str]:
    program = parse(source)
    return {kind: source[start:end] for kind, _, _, (start, end) in program.walk()}


def test_spans() -> None:
    source = "y  =  -( a+b )  * sin( c )[ 0 ].T  # note"
    found = spans(source)
    assert found["add"] == "a+b"
    assert found["neg"] == "-( a+b )"
    assert found["call"] == "sin( c )"
    assert found["subscript"] == "sin( c )[ 0 ]"
    assert found["attribute"] == "sin( c )[ 0 ].T"
    assert found["mul"] == "-( a+b )  * sin( c )[ 0 ].T"
    assert found["target"] == "y"


@given(strategies.expressions)
def test_spans_are_pythons(source: str) -> None:
    source = source.strip()
    program = accepted(source)
    if program is None or not source.isascii() or "f'" in source:
        return
    ours = {
        span
        for kind, _, _, span in program.walk()
        if kind
        in ("add", "mul", "pow", "call", "neg", "subscript", "attribute", "conditional", "name")
    }
    theirs = {
        (n.col_offset, n.end_col_offset)
        for n in ast.walk(ast.parse(source))
        if isinstance(n, ast.expr)
    }
    assert ours <= theirs


N = 5_000  # five times as deep as Python recurses
DEEP = {
    "parentheses": ("(" * N + "x" + ")" * N, 3),
    "lists": ("[" * N + "]" * N, N + 2),
    "calls": ("f(" * N + "x" + ")" * N, 2 * N + 3),
    "minus": ("-" * N + "x", N + 3),
    "powers": ("x" + "**x" * N, 2 * N + 3),
    "sums": ("x" + "+x" * N, 2 * N + 3),
    "conditions": ("a if b else " * N + "c", 3 * N + 3),
    "comparisons": ("x" + "<x" * N, 2 * N + 3),
    "attributes": ("x" + ".T" * N, N + 3),
    "statements": ("y = x\n" * N, 3 * N + 1),
    "elif": ("if a: b\n" + "elif a: b\n" * N, 5 * N + 6),
}


@sweep("name", DEEP, parts=1)
def test_depth_and_length(name: str) -> None:
    source, rows = DEEP[name]
    assert len(parse(source)) == rows


def test_deep_trees_are_walked_without_recursion() -> None:
    program = parse("f(" * N + "x" + ")" * N)
    assert program.children(len(program) - 1)
    nested = program.nested()
    depth = 0
    while isinstance(nested[-1], tuple):
        nested, depth = nested[-1], depth + 1
    assert depth == N + 2


def test_long_texts_are_cut_between_tokens() -> None:
    piece = "alpha * 2.5e-3 + beta[1:2, ...] - sin(x_1) ** 2 + "
    for shift in (0, 40):
        source = " " * 0 + "y" * shift + " + " + piece * 3000 + "1"
        source = source.lstrip(" +")
        program = parse(source)
        assert program.source[slice(*program.span(len(program) - 3))] != ""
        whole = parse(source + " # with a comment, the text is cut whole")
        assert list(program.rows[:-8]) == list(whole.rows[:-8])


built = cache(build)


def test_tables_are_fresh() -> None:
    stored = Path(driver.__file__).with_name("parser_tables.py")
    assert stored.read_text(encoding="utf-8") == render(built())


def test_tables_are_built_in_memory_where_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    import gradcli.language as package

    monkeypatch.setattr(driver, "_tables", None)
    monkeypatch.setattr("gradcli.language.compile_grammar.build", built)
    monkeypatch.setitem(sys.modules, "gradcli.language.parser_tables", None)
    monkeypatch.delattr(package, "tables", raising=False)
    assert parse("2*x").nested() == (
        "block",
        ("expression", ("mul", ("constant", 2), ("name", "x"))),
    )


def test_free_variables_in_order() -> None:
    assert parse("y = a*x; sum(y + b) + pi + y").free_variables() == ["a", "x", "b"]
    assert parse("t(x) + e + i").free_variables() == ["x", "e", "i"]


@pytest.mark.parametrize(
    ("source", "free"),
    [
        ("[a*x for x in xs]", "a xs"),
        ("[x for x in x]", "x"),
        ("[a for x in xs]; a = 3", "a xs"),
        ("(a for x in xs); a = 3", "a xs"),
        ("f = lambda: [a for x in xs]; a = 3; f()", "xs"),
        ("{k: v*c for k, v in {'p': q}.items()}", "c q"),
        ("[x*y for x in xs for y in x if y > c]", "xs c"),
        ("def f(u):\n  return [u*i*b for i in range(3)]\nf(w)", "b w"),
        ("def f(u):\n  [u for u in u]\n  v = [i for i in u]\n  return i\nf(w)", "i w"),
        ("sum(t for t in ts) + t", "ts t"),
        ("[[i + j for j in i] for i in m] + [j]", "m j"),
        ("f(*a, **b)", "a b"),
    ],
)
def test_names_of_a_comprehension_are_its_own(source: str, free: str) -> None:
    assert " ".join(n for n in parse(source).free_variables() if n != "f") == free
    assert parse("t*2").free_variables() == ["t"]
    assert parse("T*mT + x.T + x.mH").free_variables() == ["T", "mT", "x"]
    assert parse("def f(u, v=w):\n  z = u*c\n  return z\nf(x) + g0").free_variables() == [
        "w",
        "c",
        "x",
        "g0",
    ]
    assert parse("f = lambda u: u*q; f(1)").free_variables() == ["q"]
    assert parse("for i in range(n): s = i\ns").free_variables() == ["n"]
    assert parse("x = x + 1").free_variables() == ["x"]
    assert parse("sum(x, dim=0)").free_variables() == ["x"]


def test_dump_shows_the_tree() -> None:
    assert parse("a*(b + 1)").dump().splitlines() == [
        "block [0:9]",
        "  expression [0:9]",
        "    mul [0:9]",
        "      name 'a' [0:1]",
        "      add [3:8]",
        "        name 'b' [3:4]",
        "        constant 1 [7:8]",
    ]

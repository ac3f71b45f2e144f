# ruff: noqa: E501 (tables of cases)
"""What refused texts are told: golden text, one block a case in refused.txt.

`REWRITE=1 pytest tests/language/test_errors.py` writes the file anew; read the difference.
"""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from gradcli.language import LanguageError, parse
from gradcli.language.located_errors import edit_distance, suggest, underline
from tests.sweep import sweep

GOLDEN = Path(__file__).with_name("refused.txt")
SEPARATOR = "\n" + "-" * 40 + "\n"

REFUSED = [
    "2*/3", "2*", "sin(2", "sin(2]", "[1, 2", "x)", "x^2", "1,,2", "f(1,,2)", "2 x", "2x", "2 3", "x y", "sin x",
    "print 'a'", "(1)(2) 3", "f(a=1, b)", "x if y", "x if y else", "f(x) = 3", "x + y = 3", "1 = x", "f(x) += 1",
    "a, b += 1", "x = (y = 3)", "if x = 3: y", "a = b =", "'abc", '"abc', "f'{x'", "f'}'", "f'{}'", "f'{x!z}'",
    "f'{x y}'", "f'{x:{y:{z}}}'", "f'{x\\n}'", "b'a'", "u8'a'", "'\\x4'", "'\\N{nothing}'", "class A: pass",
    "del x", "raise x", "import os as", "import 3", "from torch import", "x.class", "x.3", "a..b", "lambda if: 1",
    "def f(x, x): pass", "def f(x=1, y): pass", "def f: pass", "def (x): pass", "return 3", "break", "continue",
    "while x: pass\nelse: y", "if x\n  y", "if x:\ny", "if x:", "x\n  y", "  x\ny", "if x:\n    y\n  z",
    "if x:\n\ty\n        z", "for x: pass", "for f(x) in y: z", "try: x", "try:\n  x\n", "try: x\nexcept: y\nexcept E: z",
    "else: x", "if x: y\nelse if z: w", "x not y", "not", "x and", "x is is y", "a && b", "a || b", "!x", "x ? y : z",
    "{1, 2}", "{x for x in y}", "{1: 2", "{1: 2]", "{1: 2}}", "[y := 1 for x in z]", "[(y := x) for x in z]", "$x", "`x`", "x @@ y", "1__0", "012", "1.2.3", "0xg", "1e+", "x\\y", "5 × 3", "x ≤ 3", "x²",
    "3 − 2", "“a”", "a\0b", "a\u00a0b", "x[1:2:3:4]", "x[", "x[]", "x:y", "x;;y", ";", "*x", "[*x]", "f(a=1, *x)", "f(**x, a)", "f(x for x in y, 1)",
    "x := 3", "x: int = 3", "x -> y", "[x for x in y if a else b]", "[x for x.a in y]", "@f\nx = 1", "@f", "@f def g(): pass", "def f(x, *): pass", "def f(*, a, *, b): pass", "yield x", "await x", "global x",
    "日本 = 'é' ^ 2", "x\t^ 2", "y = 1\nx = 3 4\nz = 2", "a = [1,\n  2,\n  3", "9" * 5000, "if x: if y: z",
    "x = 1 +\ny", "y" * 200 + " ^ " + "z" * 200, "assert", "with x", "x.", "x.y.", "lambda x 3", "f(x=)", "f(=3)",
    "()()=3", "None = 3", "x == = y", "x = y z", "def f(x):\nreturn x", "else", "x else y",
    "if 1:\nx=2", "for i in (1,\n  2):\n# why\nf(i)", "if x:\n    y\nelse:\nz := 1", "try:\n-x",
    "lambda*x", "lambda", "2*lambda", "lambda + 1", "sin(lambda)", "[lambda, 1]", "lambda = 3", "f(lambda=3)", "x\nlambda/2",
    "in*x", "2*in", "sin(in)", "in", "is + 1", "x*is", "not*x", "x*not", "if*x", "x*if", "for*x", "x*for", "2*for + 1",
    "is = 1", "lambda *a: 0", "lambda (a): 0", "x + not y", "x is not * y", "not)", "x if * y",
    "1<<3", "x >> 2", "x <<= 1", "x < < 3", "1 <\n< 3",
]  # fmt: skip


def told(source: str) -> str:
    with pytest.raises(LanguageError) as caught:
        parse(source)
    assert caught.value.usage
    return caught.value.render(80)


def shown(source: str) -> str:
    text = repr(source)
    return text if len(text) < 120 else f"{text[:50]}...{text[-50:]}"


def test_refusals_are_explained() -> None:
    blocks = [f"{shown(source)}\n{told(source)}" for source in REFUSED]
    text = SEPARATOR.join(blocks) + "\n"
    if os.environ.get("REWRITE"):
        GOLDEN.write_text(text, encoding="utf-8")
    expected = GOLDEN.read_text(encoding="utf-8")
    for block, wanted in zip(blocks, expected[:-1].split(SEPARATOR), strict=True):
        assert block == wanted


@sweep("source", REFUSED)
def test_no_internal_names_reach_the_user(source: str) -> None:
    text = told(source)
    for word in (
        "NAME_EQ",
        "NEWLINE",
        "INDENT",
        "DEDENT",
        "FORMAT_",
        "$END",
        "__ANON",
        "LALR",
        "\0",
        "Token",
    ):
        assert word not in text.replace(source, "")


def test_carets_stand_under_wide_characters() -> None:
    assert underline("日本 ^ 2", (3, 4)) == ["    日本 ^ 2", "         ^"]
    assert underline("e\u0301 ^", (3, 4)) == ["    e\u0301 ^", "      ^"]
    assert underline("a\tb", (2, 3)) == ["    a    b", "         ^"]


def test_long_lines_are_windowed() -> None:
    for position in (0, 10, 500, 990, 999):
        source = "".join(chr(97 + i % 26) for i in range(1000))
        line, carets = underline(source, (position, position + 3), 60)
        assert len(line) <= 60
        column = carets.index("^")
        assert line[column] == source[position]


def test_carets_at_the_end_of_the_text() -> None:
    assert underline("2*", (2, 3)) == ["    2*", "      ^"]
    assert underline("", (0, 1)) == ["    ", "    ^"]
    assert underline("a\nbc\n", (2, 4)) == ["    bc", "    ^^"]
    assert underline("a\r\nbc\r\nd", (3, 9)) == ["    bc", "    ^^"]


def test_suggestions() -> None:
    known = ["sin", "sinh", "asin", "sign", "softmax", "log_softmax", "sum", "cumsum", "tanh"]
    assert suggest("sni", known) == ["sin"]
    assert suggest("softmx", known) == ["softmax"]
    assert suggest("SUM", known) == ["sum"]
    assert suggest("x", known) == []
    assert suggest("zzzzzz", known) == []
    assert edit_distance("cumsum", "cumsm", 2) == 1


def test_errors_survive_pickling() -> None:
    with pytest.raises(LanguageError) as caught:
        parse("2*/3")
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.render() == caught.value.render()
    assert str(again) == again.render()

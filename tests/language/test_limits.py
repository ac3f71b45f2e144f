"""What docs/limits.md promises of the language, and that its tests exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gradcli.engine.registry.table import Function
from gradcli.language import LanguageError, parse, run
from tests.sweep import sweep

ROOT = Path(__file__).resolve().parents[2]


def test_every_promise_names_a_test_that_there_is() -> None:
    text = (ROOT / "docs" / "limits.md").read_text(encoding="utf-8")
    lines = re.split(r"(?m)^- ", text)[1:]
    assert len(lines) > 10
    for line in lines:
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", line)
        assert named, line
        for file, name in named:
            assert re.search(rf"(?m)^def {name}\(", (ROOT / file).read_text()), f"{file}::{name}"


@pytest.mark.parametrize("digits", ["9" * 4301, "1" + "_1" * 4300, "0x" + "f" * 262_145])
def test_digits(digits: str) -> None:
    with pytest.raises(LanguageError, match="digits is too long"):
        parse(digits)


def test_depths() -> None:
    count = "def f(n):\n  if n == 0:\n    return 0\n  return 1 + f(n - 1)\n"
    assert run(parse(f"{count}f(990)")).value == 990
    with pytest.raises(LanguageError, match="maximum recursion depth exceeded"):
        run(parse(f"{count}f(1000)"))
    parse("lambda: " * 100 + "1")
    with pytest.raises(LanguageError, match="nested more than 100 deep"):
        parse("lambda: " * 101 + "1")


@sweep(
    "text",
    [
        "a = [1]\nfor i in a: a.append(i)",
        "a = [1]\nfor i in a: a.insert(0, i)",
        "a = [1]\nfor i in a: a += [i]",
        "a = [1]\nfor i in a: a.extend([i])",
        "a = [1]\nfor i in a: a[0:0] = [i]",
        "a = [1]; [a.append(i) for i in a]",
        "ones(1).as_strided((10**6, 10**6), (0, 0))",
        "ones(2*10**6).unfold(0, 10**6, 1)",
        "ones(1).expand(10**6, 10**6)",
        "empty_strided((10**6, 10**6), (0, 0))",
        "list(i for i in range(10**9))",
        "a = []; a += (i for i in range(10**9))",
        "a = [1]; a[0:0] = (i for i in range(10**9))",
        "','.join('a' for i in range(10**9))",
        "d = {i: i for i in range(10**9)}",
        "dict(zip(range(10**9), range(10**9)))",
        "print(*range(10**9))",
        "t = (1,)\nfor i in range(60): t = (t, t)\n{t: 1}",
        "t = (1,)\nfor i in range(200): t = (t,)\n{}.get(t)",
        "a = [1]\nfor i in a: a.append(i)",
        "a = [1]\nfor i in a: a.insert(0, i)",
        "d = {}\nfor i in range(10**9): d[i] = i",
        "d = {}\nfor i in range(10**9): d.setdefault(i)",
        "d = {}\nfor i in range(60): d = {'a': d, 'b': d}\nprint(d)",
        "[" * 101 + "1" + " for x in y]" * 101,
    ],
    parts=5,
    often=2,
)
def test_what_grows_is_bounded(text: str) -> None:
    with (
        pytest.MonkeyPatch.context() as patch,
        pytest.raises(LanguageError, match=r"too long|deep"),
    ):
        patch.setattr("gradcli.engine.system.budget.MAX_ITEMS", 10_000)
        patch.setattr("gradcli.engine.system.budget.MAX_GROWN", 10_000)
        run(parse(text))


@pytest.mark.parametrize("args", ["2, x", "[1, 2], x", "x, [3]", "x, x"])
def test_a_call_is_run_once(args: str) -> None:
    calls = []

    def refusing(input: Array, other: Array) -> None:  # noqa: F821
        calls.append(input)
        raise TypeError("no")

    x = run(parse("ones(2)")).value
    with pytest.raises(LanguageError, match="no"):
        run(
            parse(f"refusing({args})"),
            {"refusing": Function("refusing", refusing, family="x"), "x": x},
        )
    assert len(calls) == 1


@sweep(
    "text",
    [
        "x.__class__",
        "(lambda: 1).__globals__",
        "print.function",
        "print.__self__",
        "import os",
        "from sys import path",
        "open('a')",
        "eval('1')",
        "exec('1')",
        "'{0.__class__}'.format(x)",
        "f'{x.__class__}'",
        "str.mro()",
        "x.array",
        "type(x).kind",
        "ValueError.__base__",
        "sin.target",
        "[].__class__",
        "x.grad_fn.__class__",
        "(x for x in [1]).gi_frame",
        "{}.fromkeys",
        "{'a': 1}.items().mapping",
        "sin(**{'__class__': 1})",
        "'{a.__class__}'.format(**{'a': x})",
        "dict.mro()",
    ],
    parts=1,
)
def test_there_is_no_way_out(text: str) -> None:
    with pytest.raises(LanguageError):
        run(parse(f"x = ones(2); {text}"))

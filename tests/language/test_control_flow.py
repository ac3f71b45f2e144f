# ruff: noqa: E501 (tables of cases)
"""Random programs with control flow print what Python prints."""

from __future__ import annotations

import io
import warnings
from contextlib import redirect_stdout

from hypothesis import given
from hypothesis import strategies as st

from gradcli.language import LanguageError, parse, run

NAMES = st.sampled_from("abc")
VALUES = st.sampled_from(
    ("1", "2", "0", "-3", "a", "b", "c", "a + b", "c % 3", "a*2 - c", "b // 2", "len('ab')")
)
TESTS = st.sampled_from(
    ("a > b", "not c", "a", "b == 2 or c", "a < b < 3", "c and a", "1 < a != b", "a is b", "b in [1, 2]", "1/c > 0")
)  # fmt: skip


def _indent(lines: list[str]) -> list[str]:
    return ["  " + line for line in lines]


@st.composite
def _statement(draw: st.DrawFn, depth: int, loop: bool, function: bool) -> list[str]:
    simple = 12 + 2 * loop + 2 * function
    kind = draw(st.integers(0, simple if depth == 0 else simple + 9))
    name, value = draw(NAMES), draw(VALUES)
    if kind <= 2:
        return [f"{name} = {value}"]
    if kind == 3:
        return [f"{name} {draw(st.sampled_from(('+=', '-=', '*=')))} {value}"]
    if kind == 4:
        return [f"print('{name}', {value})"]
    if kind == 5:
        return [f"{name}, {draw(NAMES)} = {value}, {draw(VALUES)}"]
    if kind == 6:
        return [f"{name} = {value} if {draw(TESTS)} else {draw(VALUES)}"]
    if kind == 7:
        return [f"{name} = (lambda {draw(NAMES)}, q={value}: {draw(VALUES)} + q)({draw(VALUES)})"]
    if kind == 8:
        return [f"assert {draw(TESTS)}, {value}"]
    if kind == 9:
        return [f"{name} = 10 // {draw(NAMES)}"]
    if kind <= 12:
        return draw(_collection(name, value))
    if kind in (13, 14) and loop:
        return [f"if {draw(TESTS)}: {draw(st.sampled_from(('break', 'continue')))}"]
    if kind <= simple and function:
        return [f"if {draw(TESTS)}: return {value}"]
    body = _indent(draw(_block(depth - 1, loop, function)))
    if kind <= simple + 2:
        out = [f"if {draw(TESTS)}:", *body]
        if draw(st.booleans()):
            out += [f"elif {draw(TESTS)}:", *_indent(draw(_block(depth - 1, loop, function)))]
        if draw(st.booleans()):
            out += ["else:", *_indent(draw(_block(depth - 1, loop, function)))]
        return out
    if kind <= simple + 4:
        inner = _indent(draw(_block(depth - 1, True, function)))
        return [f"for {name} in range({draw(st.integers(0, 3))}):", *inner]
    if kind == simple + 5:
        counter = f"n{depth}"
        inner = _indent(draw(_block(depth - 1, True, function)))
        return [f"{counter} = 0", f"while {counter} < 3:", f"  {counter} += 1", *inner]
    if kind <= simple + 7:
        handler = draw(
            st.sampled_from(
                ("except ZeroDivisionError as e:", "except (AssertionError, NameError):", "except:")
            )
        )
        show = ["  print(type(e) == ZeroDivisionError, e)"] if " as e" in handler else []
        return ["try:", *body, handler, *show, *_indent(draw(_block(0, loop, function)))]
    inner = _indent(draw(_block(depth - 1, False, True)))
    defined = f"f{depth}"
    return [f"def {defined}({name}, d={value}):", *inner, f"print({defined}({draw(VALUES)}))"]


@st.composite
def _collection(draw: st.DrawFn, name: str, value: str) -> list[str]:
    """Comprehensions, generators and dicts: what they close over, their order, when they are run."""
    inner, test = draw(NAMES), draw(TESTS)
    clauses = f"for {inner} in range(({draw(VALUES)})**2 % 4) if {test}"
    if draw(st.booleans()):
        clauses += f" for {draw(NAMES)}, c in zip([1, {inner}], [{value}, 2])"
    return draw(
        st.sampled_from(
            (
                [f"{name} = len([{value} {clauses}])"],
                [f"print([({inner}, {value}) {clauses}], {{{inner}: {value} {clauses}}})"],
                [f"{name} = sum({value} {clauses})"],
                [f"g = ({value} {clauses})", f"{inner} = 5", f"{name} = sum(g)"],
                [f"{name} = any(print({inner}) {clauses})"],
                [f"{name} = [f() for f in [lambda: {value} + {inner} {clauses}]][-1]"],
                [f"{name} = [[{value} {clauses}] for {name} in [{draw(VALUES)}]][0][0]"],
                [
                    f"d = {{'a': {value}, **{{{inner}: 1}}}}",
                    f"d['a'] -= {inner}",
                    "print(d, 'a' in d)",
                ],
                [f"{name} = {{1: {value}, 2: 3}}.get({inner}, {draw(VALUES)})"],
                [f"{name} = (lambda a, b=1, c=2: a - b*c)(*[{value}], **{{'c': {inner}}})"],
                [f"for k, v in dict(p={inner}, q={value}).items():", "  print(k, v)"],
            )
        )
    )


@st.composite
def _block(draw: st.DrawFn, depth: int, loop: bool, function: bool) -> list[str]:
    parts = [draw(_statement(depth, loop, function)) for _ in range(draw(st.integers(1, 3)))]
    return [line for part in parts for line in part]


programs = st.integers(1, 3).flatmap(lambda depth: _block(depth, False, False))


def python_prints(source: str) -> tuple[str, type[Exception] | None]:
    out = io.StringIO()
    failed = None
    with redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(source, "program", "exec"), {"a": 1, "b": 2, "c": 3})
        except Exception as error:
            failed = type(error)
    return out.getvalue(), failed


def we_print(source: str) -> tuple[str, type[BaseException] | None]:
    out: list[str] = []
    failed = None
    try:
        run(parse(source), {"a": 1, "b": 2, "c": 3}, write=out.append)
    except LanguageError as error:
        failed = type(error.__cause__)
    return "".join(out), failed


@given(programs)
def test_programs_print_what_python_prints(lines: list[str]) -> None:
    source = "\n".join(lines)
    printed, failed = we_print(source)
    expected, wanted = python_prints(source)
    assert printed == expected
    if failed is not wanted:
        # Python tells a local name that is not bound yet from one that is nowhere.
        assert failed is not None and wanted is not None
        assert issubclass(wanted, NameError) and issubclass(failed, NameError)

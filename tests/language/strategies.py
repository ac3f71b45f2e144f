# ruff: noqa: E501 (tables of cases)
"""Random programs of the language, for hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

NAMES = ("x", "y", "a1", "_b", "theta", "nott", "iffy", "θ", "t")
NUMBERS = ("0", "1", "2", "3.5", "1e-3", "1_000", ".5", "2.", "1E5", "2j", "0xff", "0b11", "0.5e+2")
BINARY = ("+", "-", "*", "/", "//", "%", "**", "@", "|", "&")
COMPARE = ("<", "<=", ">", ">=", "==", "!=", " is ", " is not ", " in ", " not in ")
BLANK = st.sampled_from(("", "", "", " ", "  ", "\t"))

names = st.sampled_from(NAMES)
atoms = st.one_of(
    names,
    st.sampled_from(NUMBERS),
    st.sampled_from(("True", "False", "None", "...", "()", "[]", "'ab'", '"c\\n"', "r'\\d'", "''")),
)


def _spaced(*parts: str) -> st.SearchStrategy[str]:
    return st.tuples(*(BLANK for _ in parts)).map(
        lambda blanks: "".join(b + p for b, p in zip(blanks, parts, strict=True))
    )


@st.composite
def _binary(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    return draw(_spaced(draw(inner), draw(st.sampled_from(BINARY + COMPARE)), draw(inner)))


@st.composite
def _call(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    positional = draw(st.lists(inner, max_size=3))
    keywords = draw(st.lists(st.tuples(names, inner), max_size=2, unique_by=lambda pair: pair[0]))
    if positional and draw(st.booleans()):
        positional.insert(draw(st.integers(0, len(positional))), f"*{draw(names)}")
    items = positional + [f"{name}{draw(BLANK)}={value}" for name, value in keywords]
    if draw(st.integers(0, 3)) == 0:
        items.append(f"**{draw(names)}")
    elif len(items) == 1 and not keywords and items[0][0] != "*" and draw(st.booleans()):
        return f"{draw(names)}({items[0]}{draw(_clauses(inner))})"
    trailing = "," if items and draw(st.booleans()) else ""
    return f"{draw(names)}({','.join(items)}{trailing})"


@st.composite
def _subscript(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    def item() -> str:
        if draw(st.booleans()):
            return draw(inner)
        parts = [draw(st.one_of(st.just(""), inner)) for _ in range(draw(st.integers(2, 3)))]
        return ":".join(parts)

    items = [item() for _ in range(draw(st.integers(1, 3)))]
    return f"{draw(names)}[{','.join(items)}{draw(st.sampled_from(('', '', ',')))}]"


@st.composite
def _lambda(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    plain = draw(st.lists(names, max_size=2, unique=True))
    rest = [n for n in NAMES if n not in plain]
    default = draw(st.lists(st.sampled_from(rest), max_size=1))
    parameters = ", ".join([*plain, *(f"{n}={draw(inner)}" for n in default)])
    return f"(lambda {parameters}: {draw(inner)})"


@st.composite
def _clauses(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    text = ""
    for _ in range(draw(st.integers(1, 2))):
        target = draw(st.sampled_from(("x", "y, z", "(a, b), c", "_b,")))
        text += f" for {target} in ({draw(inner)})"
        text += "".join(f" if ({draw(inner)})" for _ in range(draw(st.integers(0, 2))))
    return text


@st.composite
def _comprehension(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    element, clauses = draw(inner), draw(_clauses(inner))
    pair = f"{draw(inner)}{draw(BLANK)}: {element}"
    kinds = (f"[{element}{clauses}]", f"({element}{clauses})", f"{{{pair}{clauses}}}")
    return draw(st.sampled_from(kinds))


@st.composite
def _dict(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    items = [
        f"**{draw(names)}" if draw(st.integers(0, 4)) == 0 else f"{draw(inner)}: {draw(inner)}"
        for _ in range(draw(st.integers(0, 3)))
    ]
    trailing = "," if items and draw(st.booleans()) else ""
    return f"{{{', '.join(items)}{trailing}}}"


@st.composite
def _f_string(draw: st.DrawFn) -> str:
    parts = draw(
        st.lists(
            st.sampled_from(
                (
                    "a",
                    " ",
                    "{{",
                    "}}",
                    "{x}",
                    "{x + 1}",
                    "{y!r}",
                    "{x:.3f}",
                    "{f(x)!s:>{w}}",
                    "\\n",
                    "{x[0]}",
                )
            ),
            max_size=5,
        )
    )
    return f"f'{''.join(parts)}'"


def _extend(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        _binary(inner),
        _binary(inner),
        st.tuples(st.sampled_from(("-", "+", "~", "not ", "- -")), inner).map("".join),
        inner.map(lambda s: f"({s})"),
        st.tuples(inner, inner, inner).map(lambda p: f"({p[0]}) if {p[1]} else {p[2]}"),
        st.tuples(inner, st.sampled_from((" and ", " or ")), inner).map("".join),
        _call(inner),
        _subscript(inner),
        st.tuples(names, names).map(lambda p: f"{p[0]}.{p[1]}"),
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        st.lists(inner, min_size=1, max_size=3).map(lambda items: f"({', '.join(items)},)"),
        _lambda(inner),
        _comprehension(inner),
        _dict(inner),
        _f_string(),
    )


expressions = st.recursive(atoms, _extend, max_leaves=12)

simple = st.one_of(
    expressions,
    st.tuples(names, expressions).map(lambda p: f"{p[0]} = {p[1]}"),
    st.tuples(names, names, expressions).map(lambda p: f"{p[0]}, {p[1]} = {p[2]}"),
    st.tuples(names, names, expressions).map(lambda p: f"{p[0]} = {p[1]}.grad = {p[2]}"),
    st.tuples(names, expressions, expressions).map(lambda p: f"{p[0]}[{p[1]}] = {p[2]}"),
    st.tuples(names, st.sampled_from(("+=", "-=", "*=", "**=", "@=", "//=")), expressions).map(
        " ".join
    ),
    st.sampled_from(
        (
            "pass",
            "import torch",
            "import torch as t, numpy as np",
            "import torch.nn.functional as F",
        )
    ),
    expressions.map(lambda e: f"assert {e}"),
    st.tuples(expressions, expressions).map(lambda p: f"{p[0]}, {p[1]}"),
)


def _indented(lines: list[str]) -> list[str]:
    return ["  " + line for line in lines]


@st.composite
def _blocks(draw: st.DrawFn, inner: st.SearchStrategy[list[str]]) -> list[str]:
    e = draw(expressions)
    body = _indented(draw(inner))
    kind = draw(st.integers(0, 8))
    if kind == 0:
        return [f"if {e}:", *body]
    if kind == 1:
        return [
            f"if {e}:",
            *body,
            f"elif {draw(expressions)}:",
            *_indented(draw(inner)),
            "else: pass",
        ]
    if kind == 2:
        return [f"while {e}:", *body, "  break"]
    if kind == 3:
        return [f"for {draw(names)} in {e}:", *body, "", "  continue # c"]
    if kind == 4:
        return [f"def {draw(names)}(x, y=1):", *body, f"  return {e}"]
    if kind == 5:
        return [f"with {e} as {draw(names)}:", *body]
    if kind == 6:
        return ["try:", *body, "except:", "  pass"]
    if kind == 7:
        return ["try:", *body, f"except {draw(names)} as {draw(names)}:", "    pass"]
    return [f"for {draw(names)}, (a, b) in {e}: {draw(simple)}"]


_lines = st.lists(simple, min_size=1, max_size=3)
_nested = st.recursive(
    _lines,
    lambda inner: st.one_of(_blocks(inner), st.tuples(inner, inner).map(lambda p: p[0] + p[1])),
    max_leaves=4,
)
programs = _nested.map("\n".join)

soup = st.lists(
    st.sampled_from(
        (*NAMES, *NUMBERS, *BINARY, *COMPARE, "(", ")", "[", "]", "{", "}", ",", ":", ";", "=", " ", "\n", "\n  ", "if ",
         "else ", "lambda ", "not ", "and ", ".T", "def f(x):", "return ", "'s'", "f'{x}'", "#c\n", "^", "+=",
         "x=", "\\\n", "for ", " in ", "with ", "try:", "except:", "pass"),
    ),
    max_size=12,
).map("".join)  # fmt: skip

"""The rules of differentiation as they are commonly mistaken: `u'*v'` for the slope of a product, `f'(u')`
for that of `f(u)`. Each is tried in the place of each operation of a program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from gradcli.formulas.algebra.generic_points import Arrays
from gradcli.language import parse
from gradcli.language.located_errors import LanguageError
from gradcli.language.program import Program
from gradcli.language.scope_checks import free_names

MOST_PIECES = 60  # of a program that are looked at one by one
RTOL = 1e-7
REFUSED = (LanguageError, RuntimeError, TypeError, ValueError, ArithmeticError)
Slope = Callable[[Program, Arrays], Any]


class Piece(NamedTuple):
    """An operation at a point. u, v: the values of its operands, du, dv: their slopes. first, second: what
    each of them gives of the slope. Of a call v is its operand, f its function, df that one's derivative.
    x: the variable."""

    u: Any
    v: Any
    du: Any
    dv: Any
    first: Any
    second: Any
    x: Any
    f: Callable[[Any], Any]
    df: Callable[[Any], Any]


class Rule(NamedTuple):
    """A rule of differentiation. letters: what its operands are called. wrong: what is taken for it."""

    name: str
    right: str
    letters: tuple[str, ...]
    wrong: tuple[tuple[str, Callable[[Piece], Any]], ...]


_RULES = {
    "chain": Rule(
        "chain rule",
        "f'(u)*u'",
        ("u",),
        (
            ("f'(u')", lambda p: p.df(p.dv)),
            ("f'(u')*u'", lambda p: p.df(p.dv) * p.dv),
            ("f'(x)*u'", lambda p: p.df(p.x) * p.dv),
            ("f(u)*u'", lambda p: p.f(p.v) * p.dv),
            ("f(u')", lambda p: p.f(p.dv)),
            ("f'(u) + u'", lambda p: p.df(p.v) + p.dv),
        ),
    ),
    "cos": Rule(
        "rule of cos",
        "-sin(u)*u'",
        ("u",),
        (
            ("sin(u)*u'", lambda p: np.sin(p.v) * p.dv),
            ("sin(u)", lambda p: np.sin(p.v)),
        ),
    ),
    "log2": Rule("rule of log2", "u'/(u*log(2))", ("u",), (("u'/u", lambda p: p.dv / p.v),)),
    "log10": Rule("rule of log10", "u'/(u*log(10))", ("u",), (("u'/u", lambda p: p.dv / p.v),)),
    "sqrt": Rule(
        "rule of sqrt",
        "u'/(2*sqrt(u))",
        ("u",),
        (("sqrt(u)*u'/2", lambda p: np.sqrt(p.v) * p.dv / 2),),
    ),
    "mul": Rule(
        "product rule",
        "u'*v + u*v'",
        ("u", "v"),
        (
            ("u'*v'", lambda p: p.du * p.dv),
            ("u'*v - u*v'", lambda p: p.first - p.second),
            ("u*v' - u'*v", lambda p: p.second - p.first),
            ("u' + v'", lambda p: p.du + p.dv),
            ("u'*v + v'", lambda p: p.first + p.dv),
            ("u' + u*v'", lambda p: p.du + p.second),
        ),
    ),
    "div": Rule(
        "quotient rule",
        "(u'*v - u*v')/v**2",
        ("u", "v"),
        (
            ("u'/v'", lambda p: p.du / p.dv),
            ("(u'*v + u*v')/v**2", lambda p: p.first - p.second),
            ("(u*v' - u'*v)/v**2", lambda p: -p.first - p.second),
            ("u'*v - u*v'", lambda p: (p.first + p.second) * p.v**2),
            ("(u'*v - u*v')/v", lambda p: (p.first + p.second) * p.v),
            ("(u'*v - u*v')/(v')**2", lambda p: (p.first + p.second) * (p.v / p.dv) ** 2),
            ("(u' - v')/v**2", lambda p: (p.du - p.dv) / p.v**2),
            ("u' - v'", lambda p: p.du - p.dv),
        ),
    ),
    "reciprocal": Rule(
        "quotient rule",
        "-u*v'/v**2",
        ("u", "v"),
        (
            ("u/v'", lambda p: p.u / p.dv),
            ("-u/v'", lambda p: -p.u / p.dv),
            ("-u/v**2", lambda p: -p.u / p.v**2),
            ("u*v'/v**2", lambda p: -p.second),
            ("-u*v'/v", lambda p: p.second * p.v),
            ("-u*v'", lambda p: p.second * p.v**2),
            ("u*log(v)", lambda p: p.u * np.log(p.v)),
            ("u/v**2", lambda p: p.u / p.v**2),
        ),
    ),
    "pow": Rule(
        "power rule",
        "n*u**(n - 1)*u'",
        ("u", "n"),
        (
            ("n*u**n*u'", lambda p: p.first * p.u),
            ("n*u**(n + 1)*u'", lambda p: p.first * p.u**2),
            ("n*u**(1 - n)*u'", lambda p: p.v * p.u ** (1.0 - p.v) * p.du),
            ("n*(u')**(n - 1)", lambda p: p.v * p.du ** (p.v - 1.0)),
            ("n*(u')**(n - 1)*u'", lambda p: p.v * p.du**p.v),
            ("(u')**n", lambda p: p.du**p.v),
            ("n*u*u'", lambda p: p.v * p.u * p.du),
            ("u**(n + 1)/(n + 1)", lambda p: p.u ** (p.v + 1.0) / (p.v + 1)),
        ),
    ),
    "exp": Rule(
        "rule of an exponential",
        "u**v*log(u)*v'",
        ("u", "v"),
        (
            ("v*u**(v - 1)", lambda p: p.v * p.u ** (p.v - 1)),
            ("v*u**(v - 1)*v'", lambda p: p.v * p.u ** (p.v - 1) * p.dv),
            ("u**v*v'", lambda p: p.u**p.v * p.dv),
            ("u**v", lambda p: p.u**p.v),
            ("u**v'", lambda p: p.u**p.dv),
            ("u**v'*v'", lambda p: p.u**p.dv * p.dv),
            ("v*u**v", lambda p: p.v * p.u**p.v),
        ),
    ),
}


def wrong_rule(
    program: Program, where: list[Arrays], name: str, claimed: list[Any], true: Slope
) -> str | None:
    """An operation whose slope is by no rule, but by what is mistaken for one; None where none is.

    claimed: the slopes of the program that somebody gives, at the points `where`. The true one is a sum of
    what other pieces give and of what this piece gives, r + o*s; s is made of its operands' values and
    slopes.
    """
    for kinds, function, span, spans, texts in _operations(program, name):
        try:
            at = [_at(program, name, function, span, spans, texts, w, true) for w in where]
        except REFUSED:
            continue
        for kind in kinds:
            rule = _RULES[kind]
            for said, slip in rule.wrong:
                if texts[-len(rule.letters)] == name and "u')" in said:
                    continue  # nobody takes the 1 that is the slope of x for x
                try:
                    made = [rest + outer * slip(piece) for rest, outer, piece in at]
                except REFUSED:
                    continue
                if all(same(c, m) for c, m in zip(claimed, made, strict=True)):
                    return (
                        f"this is {said} in the place of {rule.right}, the {rule.name}, with "
                        + (_names(rule, function, texts))
                    )
    return None


def _names(rule: Rule, function: str, texts: list[str]) -> str:
    """`f = sin, u = 2*x`."""
    operands = zip(rule.letters, texts[-len(rule.letters) :], strict=True)
    named = [f"{a} = {'e' if text == function else text}" for a, text in operands]
    return ", ".join([*[f"f = {function}"] * ("f" in rule.right.split("'")[0]), *named])


_Span = tuple[int, int]


def _operations(
    program: Program, name: str
) -> Iterator[tuple[tuple[str, ...], str, _Span, list[_Span], list[str]]]:
    """(the rules to try, the function that is called, its span, those of its operands, their texts)."""
    tried = 0
    for row, (kind, _, _, span) in enumerate(program.walk()):
        if kind not in ("mul", "div", "pow", "call") or tried >= MOST_PIECES:
            continue
        spans = [program.span(child) for child in program.children(row)]
        texts = [program.source[start:end] for start, end in spans]
        function = texts[0] if kind == "call" else ""
        if len(texts) != 2:
            continue
        try:
            moving = [name in free_names(parse(text)) for text in texts]
        except REFUSED:
            continue
        kinds = _kinds(kind, function, moving)
        if kinds:
            tried += 1
            yield kinds, function, span, spans, texts


def _kinds(kind: str, function: str, moving: list[bool]) -> tuple[str, ...]:
    """The rules by which an operation may be differentiated, by which of its operands have the variable."""
    match kind, moving:
        case "call", [False, True]:
            return ("chain", function) if function in _RULES else ("chain",)
        case "mul" | "div", [True, True]:
            return (kind,)
        case "div", [False, True]:
            return ("reciprocal",)
        case "pow", [True, False]:
            return ("pow",)
        case "pow", [False, True]:
            return ("exp",)
    return ()


def _at(
    program: Program,
    name: str,
    function: str,
    span: _Span,
    spans: list[_Span],
    texts: list[str],
    at: Arrays,
    true: Slope,
) -> tuple[Any, Any, Piece]:
    """(what the rest of a program gives, the slope by a piece's value, the piece) at a point."""

    def slope(start: int, end: int, text: str) -> Any:
        return true(parse(program.source[:start] + text + program.source[end:]), at)

    piece = program.source[slice(*span)]
    rest = slope(*span, f"({piece}).detach()")
    outer = slope(*span, f"(({piece}).detach() + {name} - {name}.detach())") - rest
    whole = true(program, at)
    moving = [name in free_names(parse(text)) for text in texts]
    held = [
        slope(*where, f"({text}).detach()") if moves else whole
        for where, text, moves in zip(spans, texts, moving, strict=True)
    ]
    first, second = (held[1] - rest) / outer, (held[0] - rest) / outer
    slopes = [true(parse(t), at) if m else 0.0 for t, m in zip(texts, moving, strict=True)]
    u, v, du, dv = *[np.e if t == function else value_at(t, at) for t in texts], *slopes
    called = f"{function}({name})"
    return (
        rest,
        outer,
        Piece(
            u, v, du, dv, first, second, at[name],
            lambda x: value_at(called, {**at, name: x}),
            lambda x: true(parse(called), {**at, name: np.asarray(x, np.float64)}),
        ),
    )  # fmt: skip


def value_at(text: str, at: Arrays) -> Any:
    """The value of an expression at a point."""
    from gradcli.engine.core.tensor import wrap
    from gradcli.language import run

    value = run(parse(text), {n: wrap(np.asarray(a)) for n, a in at.items()}).value
    return np.asarray(getattr(value, "array", value))


def same(a: Any, b: Any) -> bool:
    """Whether two arrays are equal up to rounding."""
    return np.shape(a) == np.shape(b) and bool(np.allclose(a, b, rtol=RTOL, atol=1e-12))


__all__ = ["MOST_PIECES", "REFUSED", "RTOL", "Slope", "same", "value_at", "wrong_rule"]

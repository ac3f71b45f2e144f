"""What a wrong derivative most likely got wrong: hypotheses, each tried at several points."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from fractions import Fraction
from functools import partial
from itertools import islice
from types import MappingProxyType
from typing import Any

import numpy as np

from gradcli.formulas.algebra.generic_points import Arrays, points, quiet
from gradcli.formulas.ask.wrong_rules import (
    MOST_PIECES,
    REFUSED,
    RTOL,
    Slope,
    same,
    value_at,
    wrong_rule,
)
from gradcli.formulas.derive.assumptions import KINDS
from gradcli.language import parse
from gradcli.language.located_errors import LanguageError
from gradcli.language.program import Program
from gradcli.language.scope_checks import free_names

POINTS = 3  # at which a hypothesis has to hold; one would prove a factor of any two numbers


# A wrong derivative is seldom a multiple of the true one: cos(x**2) for sin(x**2). So it is compared with the
# true derivatives of wrong programs: sin(x**2) with an operand held constant, or with its inner derivative
# left out. The first program that agrees at all points names the mistake.
def likely_mistake(
    program: Program,
    arrays: Arrays,
    name: str,
    given: Callable[[Arrays], Any],
    true: Slope,
    formula: Program | None,
    terms: Mapping[str, Callable[[Arrays], Any]] = MappingProxyType({}),
) -> str | None:
    """What turns the true derivative into the given one, in words; None if nothing that is known does.

    arrays: a point where they differ. name: the variable to differentiate by. given: the formula's value
    at a point. true: the derivative of a program at a point. formula: the given one, where its own derivative
    can tell. terms: the values of its terms.
    """
    with quiet():
        try:
            others = [*islice(points(arrays, 1), 6 * POINTS)]  # positive ones first, as of log(u')
            others.sort(key=lambda a: bool(np.any(a[name] < 0)))
            where = [arrays, *_usable(others, given, partial(true, program))][:POINTS]
            claimed = [given(a) for a in where]
            right = [true(program, a) for a in where]
        except REFUSED:
            return None
        factor = _factor(claimed, right)
        if factor is not None and not same(factor, -1.0):
            lost = _lost_piece(program, where, name, claimed, true)
            lost = lost or wrong_rule(program, where, name, claimed, true)
            return f"given / true = {_said(factor)}" + (lost or _as_factor(factor))
        if factor is not None:
            return "given / true = -1: the sign"
        turned = "it is the transpose" if _turned(claimed, right) else None
        special = turned or _symmetric(program, where, given, true)
        special = special or _one_sign(program, where, name, given, true)
        special = special or _antiderivative(program, where, name, formula, true)
        lost = special or _lost_piece(program, where, name, claimed, true)
        # A rule that was broken says more than the term which it made.
        lost = lost or wrong_rule(program, where, name, claimed, true)
        lost = lost or _kept_constant(program, claimed, right)
        return lost or _wrong_term(terms, where, claimed, right)


def _said(factor: float) -> str:
    near = Fraction(factor).limit_denominator(100)
    return f"{near if abs(near - factor) < RTOL * abs(factor) else f'{factor:.6g}'}: "


def _as_factor(factor: float) -> str:
    """`a factor 2 is missing` of 1/2."""
    larger = abs(factor) > 1
    shown = _said(factor if larger else 1 / factor).rstrip(": ")
    return f"a factor {shown} " + ("too much" if larger else "is missing")


def _usable(
    where: Iterable[Arrays], given: Callable[[Arrays], Any], right: Callable[[Arrays], Any]
) -> Iterator[Arrays]:
    """The points where both derivatives are numbers: log(3*x) has none below 0, 1/(3*x) has."""
    for at in where:
        with suppress(*REFUSED):
            if np.isfinite(given(at)).all() and np.isfinite(right(at)).all():
                yield at


def _factor(claimed: list[Any], right: list[Any]) -> float | None:
    """The number by which all of it is wrong."""
    given, true = (np.concatenate([np.ravel(v) for v in values]) for values in (claimed, right))
    known = np.abs(true) > 1e-9
    if given.shape != true.shape or known.sum() < 2:
        return None
    ratios = given[known] / true[known]
    alike = same(ratios, np.full_like(ratios, ratios[0])) and same(given[~known], true[~known])
    return float(ratios[0]) if alike and ratios[0] else None


def _wrong_term(
    terms: Mapping[str, Callable[[Arrays], Any]],
    where: list[Arrays],
    claimed: list[Any],
    right: list[Any],
) -> str | None:
    """The one term of a formula that has another factor in the true derivative: 2*w for the w of `x + w`."""
    for text, value in terms.items():
        try:
            own = [
                np.broadcast_to(value(a), np.shape(c)) for a, c in zip(where, claimed, strict=True)
            ]
        except REFUSED:
            continue
        rest = [t - (c - o) for t, c, o in zip(right, claimed, own, strict=True)]
        factor = _factor(own, rest)
        if factor is not None and not same(factor, 1.0):
            if same(factor, -1.0):
                return f"the sign of the term `{text}`"
            return f"in the term `{text}`: {_as_factor(factor)}"
        if all(same(r, np.zeros_like(r)) for r in rest):
            return f"the term `{text}` is too much"
    return None


def _turned(claimed: list[Any], right: list[Any]) -> bool:
    return all(np.ndim(r) == 2 and same(c, r.T) for c, r in zip(claimed, right, strict=True))


def _symmetric(
    program: Program, where: list[Arrays], given: Callable[[Arrays], Any], true: Slope
) -> str | None:
    """A matrix that was taken to be symmetric, or diagonal."""
    for n, a in where[0].items():
        if np.ndim(a) != 2 or a.shape[0] != a.shape[1] or len(a) < 2:
            continue
        for kind in ("symmetric", "diagonal"):
            # x.T@A@x has the derivative (A + A.T)@x; books say 2*A@x, which is right where A is
            # symmetric.
            special = [{**w, n: KINDS[kind].nearest(w[n])} for w in where]
            if all(same(given(w), true(program, w)) for w in special):
                return f"right for {kind} {n} only"
    return None


def _one_sign(
    program: Program, where: list[Arrays], name: str, given: Callable[[Arrays], Any], true: Slope
) -> str | None:
    """`right for x > 0 only` of 1 for the derivative of |x|."""
    right: list[int] = []  # 1 where all agree, -1 where none does
    for sign in (1, -1):
        at = [{**w, name: sign * abs(w[name])} for w in where]
        with suppress(*REFUSED):
            agree = [same(given(w), true(program, w)) for w in at]
            right.append(all(agree) - (not any(agree)))
    if right not in ([1, -1], [-1, 1]):
        return None
    return f"right for {name} {'>' if right[0] > 0 else '<'} 0 only"


def _antiderivative(
    program: Program, where: list[Arrays], name: str, formula: Program | None, true: Slope
) -> str | None:
    """The formula integrated what was to be differentiated: x**5/5 of x**4."""
    if formula is None:
        return None
    with suppress(*REFUSED):
        if all(same(true(formula, w), value_at(program.source, w)) for w in where):
            return "this is an antiderivative"
    return None


def _lost_piece(
    program: Program, where: list[Arrays], name: str, claimed: list[Any], true: Slope
) -> str | None:
    """An inner derivative that is missing, or a factor or term that is held constant."""
    for start, end, whole, is_inner in islice(_pieces(program, name), MOST_PIECES):
        piece = program.source[start:end]
        slips = {
            f"({piece}).detach()": f"`{piece}` of `{whole}` is held constant",
        }
        # The value stays that of the piece, which the outer derivative needs; its slope becomes 1, which
        # is what a forgotten inner derivative is: sin(x**2) has the derivative cos(x**2) then.
        if is_inner and piece != name:
            one = f"(({piece}).detach() + {name} - {name}.detach())"
            slips = {one: f"the inner derivative of `{whole}` is missing", **slips}
        for slip, said in slips.items():
            text = program.source[:start] + slip + program.source[end:]
            try:
                wrong = parse(text)
                if all(same(c, true(wrong, w)) for c, w in zip(claimed, where, strict=True)):
                    return said
            except REFUSED:
                continue
    return None


def _kept_constant(program: Program, claimed: list[Any], right: list[Any]) -> str | None:
    """A constant term that is in the derivative as well: 6*x + 5 of 3*x**2 + 5."""
    apart = [np.asarray(c) - np.asarray(r) for c, r in zip(claimed, right, strict=True)]
    if any(np.ndim(a) for a in apart) or not same(apart, [apart[0]] * len(apart)):
        return None
    rows = program.walk()
    for row, (kind, _, _, _) in enumerate(rows):
        if kind not in ("add", "sub"):
            continue
        for child in program.children(row):
            text = program.source[slice(*program.span(child))]
            with suppress(ValueError):
                if same(abs(float(apart[0])), abs(float(text))):
                    return f"the derivative of the constant {text} is 0"
    return None


def _pieces(program: Program, name: str) -> Iterator[tuple[int, int, str, bool]]:
    """(start, end, what it is a piece of, whether that is a function of it) of operands that read a
    variable: the innermost first.
    """
    rows = program.walk()
    for row, (kind, _, count, span) in enumerate(rows):
        if kind not in ("call", "pow", "mul", "div", "add", "sub", "neg", "matmul"):
            continue
        for child in program.children(row)[kind == "call" : count]:
            start, end = program.span(child)
            text = program.source[start:end]
            try:
                reads = name in free_names(parse(text))
            except LanguageError:
                continue
            if reads:
                yield start, end, program.source[slice(*span)], kind in ("call", "pow")


__all__ = ["REFUSED", "likely_mistake", "same"]

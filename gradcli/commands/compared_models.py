"""`gradcli fit EQUATION TABLE --compare EQUATION`: two models of the same rows, and which is better."""

from __future__ import annotations

import re
from collections.abc import Iterable
from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.commands.command_errors import usage
from gradcli.commands.item_lists import single
from gradcli.commands.output import note
from gradcli.commands.request import variables

if TYPE_CHECKING:
    from gradcli.columns.optimize.least_squares import Fit
    from gradcli.commands.declarations import Options
    from gradcli.commands.request import Request

_CLEAR = 0.05  # a probability below which the larger model is better


class Compared(NamedTuple):
    """The other model: its text, its fit, and how likely the larger of both is better by chance alone.

    kind: "F", or "delta_chi2" where the uncertainties are given. statistic, p_value: nan where the models
    have as many parameters, or the larger one is no better. larger: whether the other is the larger one.
    """

    text: str
    found: Fit
    kind: str
    statistic: float
    p_value: float
    larger: bool


def request_of(request: Request, text: str) -> Request:
    """What the command line asks for, of another equation. Raises LanguageError."""
    if request.style.typeset is not None:
        raise usage(
            "--compare prints text, and --format LaTeX",
            hint="leave out one of them; --aic prints AIC and BIC",
        )
    if request.math:
        raise usage("--compare cannot be used with --math", hint="write both equations without it")
    from gradcli.commands.options import as_equation

    program, names = variables(as_equation(text, ends=True))
    assert program is not None
    made = copy(request)
    made.program = program
    made.texts = {n: t for n, t in request.texts.items() if n in names}
    made.names = list(made.texts)
    made.uncertainties = {n: u for n, u in request.uncertainties.items() if n in names}
    made.no_grad = [n for n in request.no_grad if n in names]
    made.wrt = None if request.wrt is None else [n for n in request.wrt if n in names]
    free = program.free_variables()
    made.open_variables = [n for n in free if n not in made.texts and n not in made.loaded]
    return made


def options_of(options: Options, request: Request) -> Options:
    """The options that say something of another equation's parameters."""
    made = copy(options)
    known = {*request.names, *request.open_variables}
    made.fix, made.bounds = _of(options.fix, known), _of(options.bounds, known)
    return made


def _of(items: Iterable[str], known: set[str]) -> list[str]:
    return [one for one in single(items) if known & {*re.findall(r"[^\W\d]\w*", one)}]


def compared(text: str, first: Fit, other: Fit) -> Compared:
    """What both fits say. Raises LanguageError where they are not of the same rows."""
    from gradcli.columns.optimize.least_squares import scipy

    free = [len(one.values) - len(one.bounded) for one in (first, other)]
    rows = [one.dof + k for one, k in zip((first, other), free, strict=True)]
    if rows[0] != rows[1]:
        raise usage(
            f"--compare: the models have {rows[0]} and {rows[1]} residuals",
            hint="they are to be of the same rows: --where leaves out others",
        )
    if not other.converged or other.undetermined:
        note("--compare: the second model ended at no minimum, or is not determined by the data")
    larger = free[1] > free[0]
    small, large = (first, other) if larger else (other, first)
    more, gain = abs(free[1] - free[0]), small.chi2 - large.chi2
    kind = "delta_chi2" if first.absolute else "F"
    statistic = p_value = float("nan")
    if more and gain >= 0 and large.dof > 0 and large.chi2 > 0:
        special = scipy("special")
        if first.absolute:
            statistic, p_value = gain, float(special.chdtrc(more, gain))
        else:
            statistic = gain / more / (large.chi2 / large.dof)
            p_value = float(special.fdtrc(more, large.dof, statistic))
    return Compared(text, other, kind, statistic, p_value, larger)


def lines(made: Compared, first: Fit, plain: bool) -> list[tuple[str, Any]]:
    """The lines of text, behind those of the first fit."""
    other = made.found

    def text(number: float) -> str:
        return repr(number) if plain else f"{number:.6g}"

    named = "cash" if other.likelihood else "chi2"
    numbers = {named: other.chi2, "aic": other.aic, "bic": other.bic}
    found: list[tuple[str, Any]] = [("compared", made.text), ("compared.dof", other.dof)]
    found += [(f"compared.{name}", text(number)) for name, number in numbers.items()]
    if made.p_value == made.p_value:
        which = "the second model" if made.larger else "the first model"
        words = f"{which}, which has more parameters, is better if it contains the other"
        if made.p_value >= _CLEAR:
            words = "the parameters that one model has more are not needed"
        found.append((f"compared.{made.kind}", text(made.statistic)))
        said = f"{made.p_value:.4g} ({words})"
        found.append(("compared.p_value", repr(made.p_value) if plain else said))
    elif not plain:
        lower = "the second" if other.aic < first.aic else "the first"
        found.append(("better", f"{lower} model has the lower AIC"))
    return found


def to_json(made: Compared) -> dict[str, Any]:
    """The same as an object."""
    import numpy as np

    def number(value: float) -> float | None:
        return float(value) if np.isfinite(value) else None

    other = made.found
    named = "cash" if other.likelihood else "chi2"
    return {
        "expression": made.text,
        named: number(other.chi2),
        "dof": other.dof,
        "aic": number(other.aic),
        "bic": number(other.bic),
        "converged": other.converged and not other.undetermined,
        made.kind: number(made.statistic),
        "p_value": number(made.p_value),
    }


__all__ = ["Compared", "compared", "lines", "options_of", "request_of", "to_json"]

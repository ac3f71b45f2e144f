"""`gradcli diff EXPR --uncertainty`: the standard uncertainty of EXPR as a formula.

u(f)² = Σ (∂f/∂x)² u(x)² + 2 Σ ∂f/∂x ∂f/∂y r(x, y) u(x) u(y): the law of propagation of uncertainty of the
Guide to the Expression of Uncertainty in Measurement (JCGM 100:2008, 5.1.2 and 5.2.2), to the first order.
The derivatives are diff's, each proved; the text is run beside gradients of the tape, as all that is printed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

from gradcli.commands import output
from gradcli.commands.command_errors import quoted, usage
from gradcli.commands.declarations import Options
from gradcli.commands.formula_question import CODE, FormulaAnswer, FormulaQuestion
from gradcli.commands.question import called
from gradcli.commands.request import Request, name_list
from gradcli.engine.system.visible import visible

if TYPE_CHECKING:
    from gradcli.engine.system.process import AnyContext

Pairs = list[tuple[str, str]]
_ATOM = re.compile(r"[^\W\d][\w.]*(?:\([^()]*\))?|\d+(?:\.\d+)?")
_LATEX_ATOM = re.compile(r"[A-Za-z]|\d+(?:\.\d+)?|\\[A-Za-z]+(?:\{[^{}]*\})?|[A-Za-z]_\{[^{}]*\}")
_CLOSE = 1e-9  # relative, between the text and the tape's gradients


class Notation:
    """How a format writes the parts of an error formula."""

    def __init__(self, latex: bool, letter: str, names: Iterable[str]) -> None:
        self.latex = latex
        self.sigma = {name: self._of(letter, name) for name in names}
        self.letter = letter

    def _of(self, letter: str, *names: str) -> str:
        if not self.latex:
            return "_".join((letter, *names))
        from gradcli.formulas.print.latex import symbol

        sign = {"sigma": r"\sigma", "rho": r"\rho"}.get(letter, letter)
        return f"{sign}_{{{' '.join(map(symbol, names))}}}"

    def correlation(self, pair: tuple[str, str]) -> str:
        """The correlation coefficient of two variables."""
        return self._of("rho" if self.letter == "sigma" else "r", *pair)

    def square(self, text: str) -> str:
        """The square of a factor."""
        return f"{text}^{{2}}" if self.latex else f"{text}**2"

    def enclosed(self, text: str) -> str:
        """A factor, in brackets unless it is one sign."""
        atom = _LATEX_ATOM if self.latex else _ATOM
        if atom.fullmatch(text):
            return text
        return rf"\left({text}\right)" if self.latex else f"({text})"

    def product(self, factors: Sequence[str]) -> str:
        """A product without factors of 1."""
        kept = [factor for factor in factors if factor != "1"] or ["1"]
        return (" " if self.latex else "*").join(kept)

    def root(self, text: str) -> str:
        """The square root."""
        return rf"\sqrt{{{text}}}" if self.latex else f"sqrt({text})"

    def magnitude(self, text: str) -> str:
        """The absolute value; of a positive number itself."""
        if re.fullmatch(r"\d+(\.\d+)?", text):
            return text
        return rf"\left| {text} \right|" if self.latex else f"abs({text})"


def written(slopes: Mapping[str, str], pairs: Pairs, how: Notation) -> str:
    """The formula of the uncertainty. slopes: the text of each derivative that is not 0."""
    unsigned = {n: _unsigned(text) for n, text in slopes.items()}
    if not slopes:
        return "0"
    if len(slopes) == 1:
        ((name, (_, text)),) = unsigned.items()
        return how.product([how.magnitude(text), how.sigma[name]])
    terms = []
    for name, (_, text) in unsigned.items():
        slope = "1" if text == "1" else how.square(how.enclosed(text))
        terms.append(how.product([slope, how.square(how.sigma[name])]))
    total = " + ".join(terms)
    for one, other in pairs:
        (minus, first), (minus2, second) = unsigned[one], unsigned[other]
        factors = ["2", *(t if t == "1" else how.enclosed(t) for t in (first, second))]
        factors += [how.correlation((one, other)), how.sigma[one], how.sigma[other]]
        total += (" - " if minus != minus2 else " + ") + how.product(factors)
    return how.root(total)


def _unsigned(text: str) -> tuple[bool, str]:
    """Whether a derivative has a minus in front of all of it, and the rest: `-x*y`, but not `-x + y`."""
    text = text.strip()
    if text.startswith("-") and not _has_terms(text[1:]):
        return True, text[1:].strip()
    return False, text


def _has_terms(text: str) -> bool:
    """Whether there is a sum, which is written with spaces, or a floor or rest, outside of all brackets."""
    depth = 0
    for k, sign in enumerate(text):
        depth += (sign in "([{") - (sign in ")]}")
        if not depth and (
            sign == "%" or text[k : k + 3] in (" + ", " - ") or text[k : k + 2] == "//"
        ):
            return True
    return not depth and r"\bmod" in text


def answer(ctx: AnyContext, question: FormulaQuestion, options: Options) -> FormulaAnswer:
    """The error formula of a program of numbers, as lines of the format that is asked for.

    Where the uncertainties have values, its value follows, and what each variable contributes to it.
    """
    request = question.request
    assert isinstance(request, Request)
    said, values = _said(options.uncertainty)
    uncertain = [*request.uncertainties, *values]
    names = _names(request, question, said, uncertain)
    pairs, related = _pairs(options.correlation, names)
    text = _asked(question, names, "text")
    made = _asked(question, names, "latex") if question.format == "latex" else text
    letter = "u" if any(n.startswith("sigma") for n in question.where.arrays) else "sigma"
    slopes = {n: t for n, t in text.made.by.items() if t != "0"}
    pairs = [pair for pair in pairs if {*pair} <= {*slopes}]
    plain = written(slopes, pairs, Notation(False, letter, slopes))
    if question.verify:
        _check(text, slopes, pairs, letter, plain)
    shown = plain
    if made is not text:
        how = Notation(True, letter, slopes)
        whole = written({n: made.made.by[n] for n in slopes}, pairs, how)
        shown = f"{how._of(letter, called(request))} = {whole}"
    made.note()
    held = [n for n in question.where.arrays if n not in names]
    said = "to the first order"
    if len(slopes) > 1 and not pairs:
        said += ", for independent variables; --correlation x,y adds the term of two that are not"
    if held:
        said += f"; without an uncertainty: {', '.join(held)}"
    output.note(said)
    made.lines = [*map(visible, made.made.lines), visible(shown)]
    made.more = {
        "uncertainty": plain,
        "uncertainties": {n: f"{letter}_{n}" for n in slopes},
    }
    if uncertain and _has_values(request, names, uncertain, pairs, related):
        lines, keys = _value(ctx, request, values, related, question.format)
        made.lines += lines
        made.more |= keys
    return made


def _said(items: Iterable[str]) -> tuple[str, dict[str, str]]:
    """What --uncertainty says: (names, or "" for all; the values of `x=0.1`)."""
    names: list[str] = []
    values: dict[str, str] = {}
    for part in (part for item in items for part in re.split(r",(?=\s*[^\W\d])", item)):
        name, equals, text = part.partition("=")
        if equals:
            values[name.strip()] = text.strip()
        elif part.strip() not in ("", "-", "all"):
            names.append(part.strip())
    return ",".join(names), values


def _has_values(
    request: Request,
    names: list[str],
    uncertain: list[str],
    pairs: Pairs,
    related: Mapping[tuple[str, str], str],
) -> bool:
    """Whether all that the formula reads has a value; a note says what has none."""
    if request.open_variables:
        name = request.open_variables[0]
        output.note(f"the uncertainty has no value, as {name} has none: add --{name} VALUE")
        return False
    if missing := [name for name in names if name not in uncertain]:
        name = missing[0]
        output.note(
            f"the uncertainty has no value, as that of {name} has none: add --uncertainty {name}=VALUE"
        )
        return False
    if unknown := [pair for pair in pairs if pair not in related]:
        said = ",".join(unknown[0])
        output.note(
            f"the uncertainty has no value, as the correlation of {said.replace(',', ' and ')} has none: "
            f"write --correlation {said}=VALUE"
        )
        return False
    return True


def _value(
    ctx: AnyContext,
    request: Request,
    values: Mapping[str, str],
    related: Mapping[tuple[str, str], str],
    form: str,
) -> tuple[list[str], dict[str, Any]]:
    """(the lines of the value with its uncertainty and of the contributions, what JSON says of them)."""
    from copy import copy

    from gradcli.commands.answers import answer_to
    from gradcli.commands.question import VALUE, Question

    asked = copy(request)
    asked.wrt, asked.no_grad, asked.style = None, [], copy(request.style)
    options = Options(
        uncertainty=[f"{name}={text}" for name, text in values.items()],
        correlation=[f"{one},{other}={text}" for (one, other), text in related.items()],
        budget=True,
    )
    found = answer_to(Question(VALUE, ctx, asked, options))
    keys = found.keys(request.style.precision)
    made = {
        "value": output.to_json(found.value, request.style.precision),
        "standard_uncertainty": keys["uncertainty"],
        "budget": keys["budget"],
    }
    results = [(name or "value", value) for name, value in found.results]
    if form == "latex":
        from gradcli.commands.typeset_results import equations

        lines = equations(results, form, request.style.precision, called(request))
        return [*map(visible, lines)], made
    return [output.labelled(name, text, request.style) for name, text in results], made


def _names(
    request: Request, question: FormulaQuestion, said: str, uncertain: Sequence[str]
) -> list[str]:
    """The variables that have an uncertainty: those that the line says, or all."""
    if question.format in CODE:
        text = quoted(request.source) if len(request.source) < 60 else "EXPR"
        raise usage(
            f"--uncertainty has no --format {question.format}",
            hint=f"gradcli diff {text} --uncertainty prints a text, which gradcli simplify TEXT "
            f"--format {question.format} writes so",
        )
    wide = [n for n, array in question.where.arrays.items() if array.ndim]
    if wide:
        raise usage(
            f"--uncertainty: {wide[0]} is an array, and an error formula is one of numbers",
            hint=f"gradcli grad propagates its numbers: --{wide[0]} 1±0.1,2±0.1",
        )
    known = list(question.where.arrays)
    if not said and not uncertain:
        return [n for n in question.wanted if n in known]
    chosen = name_list([",".join([said, *uncertain])], "--uncertainty", known) or known
    return [name for name in known if name in chosen]


def _pairs(texts: Iterable[str], names: list[str]) -> tuple[Pairs, dict[tuple[str, str], str]]:
    """(the pairs of variables that --correlation names, each once; the values that it gives)."""
    found: Pairs = []
    values: dict[tuple[str, str], str] = {}
    for text in texts:
        if text.strip() == "all":
            found += combinations(names, 2)
            continue
        left, equals, value = text.partition("=")
        words = tuple(word.strip() for word in left.split(","))
        if len(words) != 2 or words[0] == words[1] or not {*words} <= {*names}:
            example = ",".join(names[:2]) if len(names) > 1 else "x,y"
            known = ", ".join(names)
            raise usage(
                f"--correlation wants two of the variables ({known}), not {text!r}",
                hint=f"as in --correlation {example}",
            )
        found.append((words[0], words[1]))
        if equals:
            values[words[0], words[1]] = value.strip()
    kept: dict[frozenset[str], tuple[str, str]] = {}
    for one, other in found:
        kept.setdefault(frozenset((one, other)), (one, other))
    given = {kept[frozenset(pair)]: value for pair, value in values.items()}
    return list(kept.values()), given


def _asked(question: FormulaQuestion, names: list[str], form: str) -> FormulaAnswer:
    """The derivatives by these variables in a format."""
    given = {"assume": question.assume, "cse": question.cse, "verify": question.verify}
    own = FormulaQuestion(question.request, question.where, question.asked, names, **given)
    own.format = form
    return own.answered()


def _check(
    text: FormulaAnswer, slopes: Mapping[str, str], pairs: Pairs, letter: str, plain: str
) -> None:
    """Run the text beside the law on gradients of the tape, at the point and at others. Raises a fault."""
    import numpy as np

    from gradcli import language
    from gradcli.columns.streaming.uncertainty_law import squares, total
    from gradcli.engine.core.tensor import wrap
    from gradcli.language.located_errors import OPERATION_ERRORS, LanguageError

    random, request = np.random.default_rng(0), text.question.request
    how = Notation(False, letter, slopes)
    for stretch in (1.0, 1.1, 0.7, 1.3):
        arrays = {n: np.asarray(a * stretch) for n, a in text.where.arrays.items()}
        leaves = {n: wrap(a.astype(float)).requires_grad_(True) for n, a in arrays.items()}
        errors = {
            n: float(e) for n, e in zip(slopes, random.uniform(0.5, 1.5, len(slopes)), strict=True)
        }
        related = {
            p: float(r) for p, r in zip(pairs, random.uniform(-0.3, 0.3, len(pairs)), strict=True)
        }
        try:
            value = language.run(request.program, {**request.loaded, **leaves}).value
            value.backward()
            space = {**request.loaded, **{n: t.detach() for n, t in leaves.items()}}
            space |= {how.sigma[n]: wrap(np.float64(e)) for n, e in errors.items()}
            space |= {how.correlation(p): wrap(np.float64(r)) for p, r in related.items()}
            program = language.parse("\n".join([*text.made.lines, plain]))
            found = float(language.run(program, space).value)
        except (LanguageError, *OPERATION_ERRORS):
            continue  # outside of the domain
        gradients = {n: None if t.grad is None else t.grad.array[None] for n, t in leaves.items()}
        shares = {(a, b): r * errors[a] * errors[b] for (a, b), r in related.items()}
        law = squares(
            gradients,
            {n: np.array([e]) for n, e in errors.items()},
            {pair: np.array([c]) for pair, c in shares.items()},
        )
        expected = float(total(law)[0])
        if np.isfinite([found, expected]).all() and abs(found - expected) > _CLOSE * abs(expected):
            raise text.question.fault(RuntimeError(f"{plain} gives {found}, the law {expected}"))

"""`gradcli diff EXPR`: the derivative as an expression of the same language."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from gradcli.commands import output
from gradcli.commands.command_errors import usage
from gradcli.commands.declarations import Option, Options, declare
from gradcli.commands.formula_question import (
    CODE,
    FORMULA,
    FormulaAnswer,
    FormulaQuestion,
    format_of,
    located,
    squared,
    value_answer,
)
from gradcli.commands.free_points import Point, point, wanted_names
from gradcli.commands.question import called, write
from gradcli.commands.request import Request
from gradcli.commands.terminal import is_terminal
from gradcli.engine.system.visible import visible
from gradcli.language.rewritten_sources import check_no_equation
from gradcli.language.scope_checks import free_names

if TYPE_CHECKING:
    from gradcli.commands.shown_steps import ShownSteps
    from gradcli.engine.system.process import AnyContext
    from gradcli.formulas.ask.composed_derivatives import AskedDerivative
    from gradcli.formulas.derive.differentiate import Derivatives

OPERATORS = ("grad", "div", "curl", "laplacian")


@declare(
    "diff",
    *FORMULA,
    Option(
        "--order N",
        "Differentiate N times; a letter for a formula in it.",
        least=1,
        most=20,
        type=str,
        default=1,
    ),
    Option("--jacobian", "Print the Jacobian of a vector, as a matrix."),
    Option("--of NAME", "EXPR is an equation; differentiate this variable in it."),
    Option("--along V", "Derivative along a direction: a name for each variable's."),
    Option(
        "--operator OPERATOR",
        "grad, div, curl or laplacian of a field of numbers x, y, z or of a vector.",
        choices=OPERATORS,
    ),
    Option(
        "--euler-lagrange NAME",
        "EXPR is a Lagrangian of NAME(t) and func.grad(NAME)(t): print what is 0 along a motion.",
    ),
    Option("--at", "Print the derivative's value at the given point too: --at x=2.", binds=True),
    Option(
        "--show-steps", "Print the steps with their rules first: of one number u', of others du."
    ),
    Option(
        "--uncertainty [NAMES]",
        "Print the formula of EXPR's standard uncertainty: of these variables, or of all. With "
        "--x 2±0.1 or --uncertainty x=0.1 also its value, and the contributions.",
        many=True,
    ),
    Option(
        "--correlation x,y|all",
        "With --uncertainty: add the term of two correlated variables; x,y=0.5 is its value.",
        many=True,
    ),
    Option(
        "--latex-style STYLE",
        "Vectors and matrices in LaTeX: plain, or bold.",
        choices=("plain", "bold"),
        default="plain",
    ),
    examples=(
        'gradcli diff "sin(x)*y" --wrt x',
        'gradcli diff "tanh(A@x)" --jacobian --wrt x --format numpy',
        'gradcli diff "x**2 + y**2 == 1" --of y --wrt x',
        'gradcli diff "g = 4*pi**2*L/T**2; g" --uncertainty --L 0.994±0.002 --T 2.003±0.005',
    ),
    open_variables=True,
    propagates=True,
    puts_in="all",
)
def command(ctx: AnyContext, request: Request, options: Options) -> None:
    """Print the derivative of EXPR as an expression of the same language.

    gradcli infers the shapes of variables: a number, unless EXPR needs an array. A note names the shapes
    that it inferred. You can give them by --x VALUE, by --shape x=3,4 or in letters by --shape A=m,n.

    Several variables get a line each, `x.grad = …`. With --order 2, several variables or a vector get
    the Hessian: a line for each pair of variables.

    -f FILE with a formula on each line answers each of them, in order.

    The formula is right for arrays of any size. Where it is right for some sizes only, a note says so;
    in --json "general" is then false.
    """
    from gradcli.formulas.algebra.assuming import supposing
    from gradcli.formulas.algebra.unknown_functions import Unknown
    from gradcli.formulas.ask.composed_derivatives import AskedDerivative, coordinates

    form, reading = format_of(request, options), request.reading
    assert reading is not None
    if request.uncertainties and not options.uncertainty:
        name, text = next(iter(request.uncertainties.items()))
        raise usage(
            f"{request.options[name].rstrip('=')}: {request.texts[name]}±{text} has an uncertainty",
            hint="--uncertainty prints the formula of EXPR's, with its value; gradcli grad the gradient",
        )
    check_no_equation(request.program)
    where = squared(options.assume, request, point(ctx, request, *_suits(request, options.of)))
    if options.euler_lagrange:
        _check_motion(options)
        with located(request):
            write(value_answer(FormulaQuestion(request, where, **vars(options))))
        return
    wanted = wanted_names(request, where)
    if not {*wanted} & {*free_names(request.program)}:
        output.note(f"nothing in the expression depends on {', '.join(wanted)}")
    if options.operator and request.wrt is None and len(wanted) > 1:
        held = set(wanted)
        wanted = coordinates(wanted)
        held -= set(wanted)
        said = f"{options.operator} by {', '.join(wanted)}, in this order"
        if held:
            said += f", with {', '.join(sorted(held))} held constant"
        output.note(f"{said}; choose others with --wrt")
    asked = AskedDerivative(
        *(options.order, options.jacobian, options.of),
        *(reading.along, reading.elements, options.operator),
    )
    _check_options(options, asked, form)
    unknown = [n for n in reading.functions if isinstance(request.loaded.get(n), Unknown)]
    if options.at and unknown:
        raise usage(f"--at: {unknown[0]} is not known, and has no value", hint="see --load FILE.py")
    if options.at and (missing := [n for n in where.arrays if n not in where.given]):
        raise usage(f"--at: no value for {missing[0]}", hint=f"add --{missing[0]} VALUE")
    question = FormulaQuestion(request, where, asked, wanted, **vars(options))
    shown = None if form in CODE or asked.composed else asked.command
    hint = shown and f"gradcli {shown} computes its value without a formula"
    wide = [n for n, v in where.arrays.items() if v.ndim and options.latex_style == "bold"]
    if options.uncertainty or options.correlation:
        _check_uncertainty(options, asked)
        from gradcli.commands.error_formula import answer as error_formula

        with located(request, hint):
            found = error_formula(ctx, question, options)
        found.about = _by_variables(found)
        write(found)
        return
    value = called(request) if form == "latex" else "f"
    with located(request, hint), supposing(bold=frozenset(wide), value=value):
        answer = question.answered()
        taken = None
        if options.show_steps:
            from gradcli.commands.shown_steps import ShownSteps

            taken = ShownSteps(question, options.order)
            wide += taken.arrays() if options.latex_style == "bold" else []
        answer.note()
        with supposing(bold=frozenset(wide)):
            _finish(request, answer, options, taken, bool(unknown))
    write(answer)


def _finish(
    request: Request,
    answer: FormulaAnswer,
    options: Options,
    taken: ShownSteps | None,
    unknown: bool,
) -> None:
    """Give the answer its values, its lines, and what JSON says of each variable."""
    made, form = answer.made, options.format
    if made.shared and not (options.cse or made.named):
        output.note("the formula is long, so what occurs more than once has a name, as with --cse")
    if options.at and form in ("text", "json"):
        answer.values = _values(answer)
        if options.of and not any(a.ndim for a in answer.where.arrays.values()):
            _note_off_curve(request, answer)
        finite = (output.is_finite(getattr(v, "array", v)) for v in answer.values.values())
        if answer.singular is None and not all(finite):
            output.note("at this point the formula is not finite")
    if form == "text" and not (options.at or unknown) and _has_a_value_to_show(answer.where):
        _note_values(request, answer)
    if matrix := _as_one_matrix(request, answer.question, options):
        answer.lines = [visible(matrix)]
    elif not made.code:
        answer.lines = [*map(visible, made.lines), *_lines(request, answer)]
    answer.about = _by_variables(answer)
    if taken is not None:
        lines = map(visible, taken.lines(form))
        if shown := list(lines):
            more = taken.by_elements(answer) if form == "latex" else []
            answer.lines = [*shown, *more, *taken.last(answer.lines, form)]
        answer.more = {"steps": taken.to_json()} if form == "json" else {}


def _check_options(options: Options, asked: AskedDerivative, form: str) -> None:
    """Refuse options that exclude each other."""
    if options.latex_style == "bold" and form != "latex":
        raise usage("--latex-style is for --format latex", hint="add --format latex")
    names = ("", "--order", *["--of"] * (asked.order == 1))
    if options.show_steps and (form in CODE or asked.name not in names):
        what = f"--format {form}" if form in CODE else asked.name
        what += " and --order" * (asked.name == "--of")
        raise usage(f"--show-steps cannot be used with {what}", hint="leave one of them out")
    if isinstance(options.order, str) and (options.at or options.show_steps):
        raise usage(f"--order {options.order} has no value and no steps", hint="say a number")


def _check_uncertainty(options: Options, asked: AskedDerivative) -> None:
    """Refuse what an error formula cannot be of."""
    if not options.uncertainty:
        raise usage("--correlation is for --uncertainty", hint="add --uncertainty")
    if options.at:
        hint = "with --x 2±0.1 its value is printed, too: leave out --at"
        raise usage("--at cannot be used with --uncertainty", hint=hint)
    if options.show_steps or asked.name:
        other = asked.name or "--show-steps"
        raise usage(f"{other} cannot be used with --uncertainty", hint="leave one of them out")


def _check_motion(options: Options) -> None:
    """Refuse what a Lagrangian has no answer for."""
    others = {
        **{"--order": options.order != 1, "--jacobian": options.jacobian, "--of": options.of},
        **{"--along": options.along, "--operator": options.operator, "--at": options.at},
        **{"--show-steps": options.show_steps, "--uncertainty": options.uncertainty},
    }
    if other := next((o for o, given in others.items() if given), None):
        raise usage(f"{other} cannot be used with --euler-lagrange", hint="leave one of them out")


def _suits(request: Request, of: str | None) -> list[Callable[[Mapping[str, Any]], bool]]:
    """What the shapes of an equation's variables must be: as many equations as unknowns."""
    if of is None:
        return []
    from gradcli.formulas.ask.composed_derivatives import shape_of_value

    def suits(arrays: Mapping[str, Any]) -> bool:
        size = getattr(arrays.get(of), "shape", None)
        return size is None or size == shape_of_value(request.program, arrays, request.loaded)

    return [suits]


def _values(answer: FormulaAnswer) -> dict[str, Any]:
    """The derivatives at the given point, by running what is printed; limits where they are known."""
    import numpy as np

    from gradcli import language
    from gradcli.engine.core.tensor import wrap
    from gradcli.language.located_errors import LanguageError

    names = {**answer.question.request.loaded, **answer.where.tensors}
    made, found = answer.made, {}
    for n, text in made.by.items():
        known = answer.found.limits.get(n)
        if known is not None and np.isfinite(known).all():
            found[n] = wrap(known)
            continue
        try:
            found[n] = language.run(language.parse("\n".join([*made.lines, text])), names).value
        except LanguageError:
            if known is None:
                raise
            found[n] = wrap(known)
    return found


def _note_off_curve(request: Request, answer: FormulaAnswer) -> None:
    """Say where the equation does not hold at the point: the function that it gives is not there."""
    from gradcli.formulas.ask.implicit_check import HOLDS, Curve
    from gradcli.language import parse
    from gradcli.language.equations import sides

    asked = answer.question.asked
    if request.reading is None or asked is None or asked.of is None or request.reading.put_in:
        return
    both = sides(parse(request.reading.typed))[0]
    apart = Curve(request.program, both, asked.of, request.loaded).apart(answer.where.arrays)
    if apart > HOLDS:
        output.note("the equation does not hold at this point; gradcli root finds where it holds")


def _has_a_value_to_show(where: Point) -> bool:
    """Whether each variable is given a number, and output goes to a terminal (a script asks with --at)."""
    numbers = (n in where.given and not v.ndim for n, v in where.arrays.items())
    return bool(where.arrays) and all(numbers) and is_terminal(sys.stdout)


def _note_values(request: Request, answer: FormulaAnswer) -> None:
    """Say the value at the given numbers, which the formula does not have: a variable stays a letter."""
    from gradcli.language.located_errors import OPERATION_ERRORS, LanguageError

    try:
        values = _values(answer)
    except (LanguageError, *OPERATION_ERRORS):
        return
    if not all(output.is_finite(getattr(value, "array", value)) for value in values.values()):
        return
    point = ", ".join(
        f"{n} = {request.texts[n]}" for n in answer.where.arrays if n in request.texts
    )
    found = [output.to_text(value, request.style) for value in values.values()]
    if len(found) > 1:
        found = [f"{n}.grad = {text}" for n, text in zip(values, found, strict=True)]
    output.note(f"at {point}: {', '.join(found)}; --at prints it beside the formula")


def _lines(request: Request, answer: FormulaAnswer) -> Iterator[str]:
    """A line a variable, or a pair of them; without a name where there is only one."""
    style, found, values, texts = request.style, answer.found, answer.values, answer.made.by
    word = "grad" if found.kind in ("gradient", "derivative") else found.kind.lower()
    many = len(texts) > 1 or any("." in label for label in texts)
    for name, text in texts.items():
        if style.form == "plain":
            fields = [name, text] if many and style.names else [text]
            if name in values:
                fields.append(output.to_plain(values[name], style.precision))
            yield visible("\t".join(fields))
            continue
        if name in values:
            text += f" = {output.to_text(values[name], style)}{_place(request, answer.where)}"
        if answer.made.form == "latex":
            alone = [len(a.shape) for a in answer.where.arrays.values()] == [0]
            text = getattr(found, "with_factorials", str)(text)
            yield visible(f"{_left(name, found, alone and not found.shape)} = {text}")
        else:
            yield output.labelled(f"{name}.{word}" if many else None, text, style)


def _place(request: Request, where: Point) -> str:
    """` at x = 2`, for `3*x**2 - 3 = 9` alone reads like an equation; nothing where values are no numbers."""
    texts = {n: request.texts.get(n, "") for n in where.arrays}
    if (
        not texts
        or any(a.ndim for a in where.arrays.values())
        or max(map(len, texts.values())) > 20
    ):
        return ""
    return " at " + ", ".join(f"{n} = {text}" for n, text in texts.items())


def _items_of_numbers(request: Request, where: Point) -> list[str]:
    """The programs of the items of a list of numbers, each a function of numbers alone; else none."""
    from gradcli.formulas.ask.composed_derivatives import shape_of_value
    from gradcli.language import parse
    from gradcli.language.rewritten_sources import last_items

    reading = request.reading
    if reading is None or reading.put_in or reading.elements or reading.along:
        return []
    items = last_items(reading.typed)
    shape = shape_of_value(request.program, where.arrays, request.loaded)
    if not items or any(a.ndim for a in where.arrays.values()) or shape != (len(items),):
        return []
    program = parse(reading.typed)
    start, end = program.span(len(program) - 3)
    return [f"{reading.typed[:start]}{item}{reading.typed[end:]}" for item in items]


def _as_one_matrix(request: Request, question: FormulaQuestion, options: Options) -> str:
    """The Jacobian of a list of functions of numbers as one matrix of LaTeX: a row each, a column a variable.

    Empty where it is none, or needs names for what occurs more than once.
    """
    if options.format != "latex" or not options.jacobian or options.assume:
        return ""
    from copy import copy

    from gradcli.formulas.ask.composed_derivatives import AskedDerivative
    from gradcli.formulas.print.latex import symbol
    from gradcli.language import parse

    lines = []
    where, wanted = question.where, question.wanted
    for row in _items_of_numbers(request, where):
        asker = copy(request)
        asker.program = parse(row)
        known = {n: a for n, a in where.arrays.items() if n in free_names(asker.program)}
        given = {n: t for n, t in where.tensors.items() if n in known}
        own = [n for n in wanted if n in known]
        texts: dict[str, str] = {}
        if own:
            at = Point(known, given, {})
            made = (
                FormulaQuestion(asker, at, AskedDerivative(), own, **vars(options)).answered().made
            )
            if made.shared:
                return ""
            texts = made.by
        lines.append(" & ".join(texts.get(name, "0") for name in wanted))
    if not lines:
        return ""
    by = ", ".join(map(symbol, wanted))
    by = by if len(wanted) == 1 else f"({by})"
    matrix = r" \\ ".join(lines)
    value = symbol(called(request))
    return rf"\frac{{\partial {value}}}{{\partial {by}}} = \begin{{pmatrix}}{matrix}\end{{pmatrix}}"


def _left(label: str, found: Derivatives, alone: bool) -> str:
    """What a derivative is called in LaTeX. alone: whether it is that of a number by the one number."""
    from gradcli.formulas.print.latex import derivative_of

    if left := getattr(found, "left", None):  # formulas have names of their own
        return str(left[label])
    words = label.split(".")
    order = 2 if found.kind == "Hessian" else len(found.lower) + 1
    return derivative_of(words * order if len(words) == 1 else words, alone=alone)


def _by_variables(answer: FormulaAnswer) -> dict[str, Any]:
    """What JSON says of each variable; and, under the name of 0.1.0, of each pair of them."""
    kind, shapes, by = answer.found.kind, answer.shapes, answer.made.by
    wrt: dict[str, dict[str, Any]] = {}
    for label, text in by.items():
        first, _, second = label.partition(".")
        own = wrt.setdefault(first, {"shape": shapes[first]} if first in shapes else {})
        if kind == "partial":
            own.setdefault("partials", {})[label] = text
        if kind == "Hessian":
            own.setdefault("hessian", {})[second or first] = text
        if second in ("", first):
            own["derivative"] = text
            if label in answer.values:
                own["value"] = output.to_json(answer.values[label], answer.request.style.precision)
    return {"wrt": wrt, "derivatives": by}

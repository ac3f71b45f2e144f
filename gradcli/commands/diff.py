"""`gradcli diff EXPR`: the derivative as an expression of the same language."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from gradcli.commands import output
from gradcli.commands.command_errors import usage
from gradcli.commands.declarations import OPEN, Option, Options, declare
from gradcli.commands.free_points import Point, note_guesses, point, wanted_names
from gradcli.commands.request import Request, where_read
from gradcli.commands.terminal import is_terminal
from gradcli.language.located_errors import error_at
from gradcli.language.rewritten_sources import check_no_equation
from gradcli.language.scope_checks import free_names

if TYPE_CHECKING:
    from gradcli.engine.system.process import AnyContext
    from gradcli.formulas.ask.differential_steps import Step
    from gradcli.formulas.ask.proof import Difference
    from gradcli.formulas.derive.assumptions import Assumptions
    from gradcli.formulas.derive.differentiate import Derivatives
    from gradcli.formulas.print.printed_text import Printed

FORMATS = ("text", "latex", "python", "numpy", "torch", "jax", "c", "json")
CODE = ("python", "numpy", "torch", "jax", "c")  # formats that are programs

OPERATORS = ("grad", "div", "curl", "laplacian")
# Options of all commands that print formulas.
FORMULA = (
    *OPEN,
    Option(
        "--assume FACT",
        "A fact about a variable: 'B symmetric', 'x > 0', 'n integer'.",
        many=True,
    ),
    Option("--cse", "Name expressions that occur several times, and use the names."),
    Option(
        "--format FORMAT",
        f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]}.",
        choices=FORMATS,
        default="text",
    ),
    Option(
        "--verify/--no-verify",
        "Compare the formula with computed gradients (default), or not.",
        default=True,
    ),
)


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
    Option("--at", "Print the derivative's value at the given point too: --at x=2.", binds=True),
    Option("--show-steps", "Print the steps, as differentials, first."),
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
    ),
    open_variables=True,
    puts_in="all",
)
def command(ctx: AnyContext, request: Request, options: Options) -> None:
    """Print the derivative of EXPR as an expression of the same language.

    gradcli infers the shapes of variables: a number, unless EXPR needs an array. A note names the shapes
    that it inferred. You can give them by --x VALUE, by --shape x=3,4 or in letters by --shape A=m,n.

    Several variables get a line each, `x.grad = …`. With --order 2, several variables or a vector get
    the Hessian: a line for each pair of variables.

    The formula is right for arrays of any size. Where it is right for some sizes only, a note says so;
    in --json "general" is then false.
    """
    from gradcli.formulas.algebra.unknown_functions import Unknown
    from gradcli.formulas.ask.composed_derivatives import AskedDerivative
    from gradcli.formulas.lift.lifting import NoExpression

    if request.style.form == "json":
        options.format = "json"
    form, reading = options.format, request.reading
    assert reading is not None
    check_no_equation(request.program)
    where = squared(options.assume, request, point(ctx, request, *_suits(request, options.of)))
    wanted = wanted_names(request, where)
    if not {*wanted} & {*free_names(request.program)}:
        output.note(f"nothing in the expression depends on {', '.join(wanted)}")
    if options.operator and request.wrt is None and len(wanted) > 1:
        wanted.sort()
        said = f"{options.operator} by {', '.join(wanted)}, in this order"
        output.note(f"{said}; choose another with --wrt")
    asked = AskedDerivative(
        *(options.order, options.jacobian, options.of),
        *(reading.along, reading.elements, options.operator),
    )
    if options.latex_style == "bold" and form != "latex":
        raise usage("--latex-style is for --format latex", hint="add --format latex")
    if form == "latex":
        from gradcli.formulas.print.latex import bold

        wide = options.latex_style == "bold"
        bold.set(frozenset(n for n, v in where.arrays.items() if wide and v.ndim))
    if options.show_steps and (form in CODE or asked.name not in ("", "--order")):
        what = f"--format {form}" if form in CODE else asked.name
        raise usage(f"--show-steps cannot be used with {what}", hint="leave one of them out")
    if isinstance(options.order, str) and (options.at or options.show_steps):
        raise usage(f"--order {options.order} has no value and no steps", hint="say a number")
    unknown = [n for n in reading.functions if isinstance(request.loaded.get(n), Unknown)]
    if options.at and unknown:
        raise usage(f"--at: {unknown[0]} is not known, and has no value", hint="see --load FILE.py")
    if options.at and (missing := [n for n in where.arrays if n not in where.given]):
        raise usage(f"--at: no value for {missing[0]}", hint=f"add --{missing[0]} VALUE")
    try:
        way = asked.way(request.program, where.arrays, wanted, request.loaded)
        exact = asked.command if "claim" in way else "grad"
        found, made = printed_formula(request, where, wanted, way, exact, options)
        taken = _steps(request, where, wanted, options.order) if options.show_steps else []
    except NoExpression as error:
        hint = f"gradcli {asked.command} computes its value without a formula"
        shown = None if form in CODE or asked.composed else hint
        raise error_at(error, source=request.source, span=error.span, hint=shown) from error
    write_notes(found, made, where)
    if made.shared and not (options.cse or made.named):
        output.note("the formula is long, so what occurs more than once has a name, as with --cse")
    values = (
        _values(request, where, made, found.limits)
        if options.at and form in ("text", "json")
        else {}
    )
    if form == "text" and not (options.at or unknown) and _has_a_value_to_show(where):
        _note_values(request, where, made, found.limits)
    if taken and form != "json":
        output.write("\n".join(_step_lines(taken, form)) + "\n")
    if form == "json":
        _write_json(request, found, made, where, values, taken)
    elif made.code:
        output.write(made.code)
    elif matrix := _as_one_matrix(request, where, wanted, options):
        output.write(matrix)
    else:
        _write_text(request, found, made, values)


def printed_formula(
    request: Request,
    where: Point,
    wanted: list[str],
    way: dict[str, Any],
    exact: str,
    options: Options,
) -> tuple[Derivatives, Printed]:
    """The derivatives, and what is printed of them; proved, unless the user wants no proof.

    way: what finds and proves them, as `proof.proved` names it. exact: the command that has the value.
    options: those of FORMULA.
    """
    from gradcli.formulas.ask.proof import Unproved, proved

    find = assumed(options.assume, where).around(way["find"]) if options.assume else way["find"]
    prove = partial(
        proved,
        request.program,
        where.arrays,
        wanted,
        given=not set(where.arrays) - set(where.given),
        lettered=bool(where.guessed),
        form=options.format,
        cse=options.cse or None,
        names=request.loaded,
        **{"verify": options.verify, **way, "find": find},
    )
    try:
        found, made, singular = prove()
    except Unproved as error:
        _check_names(request, prove(verify=False)[1], where)
        raise error_at(
            RuntimeError(f"the derivative that was found is not what {exact} gives ({error})"),
            source=request.source,
            hint=f"this is a fault in gradcli: please report this expression; gradcli {exact} has the "
            "derivative's value, and --no-verify prints what was found",
        ) from error
    if singular is not None:
        _note_apart(singular, exact, len(found.lower) + 1)
        found.limits = singular.limits
    if not options.verify:
        _check_names(request, made, where)
    return found, made


def _note_apart(singular: Difference, exact: str, order: int) -> None:
    """Say what a formula does not give at the user's point."""
    import numpy as np

    if not singular.limits:
        if exact != "grad" and not np.isfinite(singular.expected).all():
            return  # the command has this formula's number there
        shown = f"{_shown(singular.found)} instead of {_shown(singular.expected)}"
        output.note(f"at this point the expression does not give what {exact} gives: {shown}")
        return
    if exact == "grad":
        exact = f"grad --order {order}" if order > 1 else "jacobian"
    says = (
        "is not a number" if np.isnan(singular.found).any() else f"gives {_shown(singular.found)}"
    )
    output.note(f"at this point the formula {says}: {exact} gives {_shown(singular.expected)}")


def _suits(request: Request, of: str | None) -> list[Callable[[Mapping[str, Any]], bool]]:
    """What the shapes of an equation's variables must be: as many equations as unknowns."""
    if of is None:
        return []
    from gradcli.formulas.ask.composed_derivatives import shape_of_value

    def suits(arrays: Mapping[str, Any]) -> bool:
        size = getattr(arrays.get(of), "shape", None)
        return size is None or size == shape_of_value(request.program, arrays, request.loaded)

    return [suits]


def squared(texts: tuple[str, ...], request: Request, where: Point) -> Point:
    """The point with square matrices where they are assumed and nobody gave a shape."""
    from gradcli.formulas.derive.assumptions import squares
    from gradcli.formulas.derive.shape_inference import SIZE, made_up

    if not texts:
        return where
    shapes = {n: a.shape for n, a in where.arrays.items() if n not in where.given}
    guesses = {n: where.guessed.get(n, shapes[n]) for n in squares(texts) if n in shapes}
    wanted = {n: (*s, SIZE)[:1] * 2 for n, s in guesses.items() if n in where.guessed or not s}
    if all(shapes[n] == s for n, s in wanted.items()):
        return where
    known = {n: s for n, s in shapes.items() if n not in where.guessed}
    given = {n: where.arrays[n] for n in where.given}
    declared = {**known, **wanted}
    arrays, guessed = made_up(request.program, given, declared, list(shapes), request.loaded)
    return Point(arrays, where.tensors, {n: s for n, s in {**wanted, **guessed}.items() if s})


def assumed(texts: tuple[str, ...], where: Point) -> Assumptions:
    from gradcli.formulas.derive.assumptions import BadAssumption, read

    try:
        return read(texts, where.arrays, where.given)
    except BadAssumption as error:
        raise usage(f"--assume: {error}", hint=error.hint) from error


def _check_names(request: Request, made: Printed, where: Point) -> None:
    """Refuse a derivative that calls a function whose name is a variable's."""
    text = "\n".join([*made.lines, *made.by.values(), made.code or ""])
    for name in where.arrays:
        if re.search(rf"(?<![\w.]){name}\(", text):
            raise usage(
                f"the derivative calls the function `{name}`, and here {name} is a variable",
                source=request.source,
                span=where_read(request.program, name),
                hint="give the variable another name; a function is not a value to differentiate",
                kind="name",
            )


def _shown(value: Any) -> str:
    import numpy as np

    return np.array2string(np.asarray(value), separator=", ", threshold=6).replace("\n", "")


def write_notes(found: Derivatives, made: Printed, where: Point) -> None:
    from gradcli.formulas.ask.proof import is_elementwise

    note_guesses(where)
    if made.general is False:
        output.note(made.alone(where.arrays))
    if found.branched:
        output.note(
            "the program branches on a value: this is the formula of the branch taken with these values"
        )
    if skipped := getattr(found, "skipped", ()):
        several = "have" if len(skipped) > 1 else "has"
        output.note(f"{', '.join(skipped)} {several} no formula: gradcli hessian has the numbers")
    if found.shape and found.kind == "Hessian":
        output.note("the value is not a scalar: this is the Hessian of its sum")
    if found.shape and found.kind == "gradient" and not is_elementwise(found):
        output.note(
            "the value is not a scalar: this is the derivative of its sum; --jacobian prints the matrix"
        )


def _values(
    request: Request, where: Point, made: Printed, limits: Mapping[str, Any]
) -> dict[str, Any]:
    """The derivatives at the given point, by running what is printed; limits where they are known."""
    import numpy as np

    from gradcli import language
    from gradcli.engine.core.tensor import wrap
    from gradcli.language.located_errors import LanguageError

    names = {**request.loaded, **where.tensors}
    found: dict[str, Any] = {}
    for n, text in made.by.items():
        known = limits.get(n)
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


def _has_a_value_to_show(where: Point) -> bool:
    """Whether each variable is given a number, and somebody reads: a program asks for a value by --at."""
    numbers = (n in where.given and not v.ndim for n, v in where.arrays.items())
    return bool(where.arrays) and all(numbers) and is_terminal(sys.stdout)


def _note_values(request: Request, where: Point, made: Printed, limits: Mapping[str, Any]) -> None:
    """Say the value at the given numbers, which the formula does not have: a variable stays a letter."""
    from gradcli.language.located_errors import OPERATION_ERRORS, LanguageError

    try:
        values = _values(request, where, made, limits)
    except (LanguageError, *OPERATION_ERRORS):
        return
    if not all(output.is_finite(getattr(value, "array", value)) for value in values.values()):
        return
    point = ", ".join(f"{n} = {request.texts[n]}" for n in where.arrays if n in request.texts)
    found = [output.to_text(value, request.style) for value in values.values()]
    if len(found) > 1:
        found = [f"{n}.grad = {text}" for n, text in zip(values, found, strict=True)]
    output.note(f"at {point}: {', '.join(found)}; --at prints it beside the formula")


def _write_text(
    request: Request, found: Derivatives, made: Printed, values: dict[str, Any]
) -> None:
    """A line a variable, or a pair of them; without a name where there is only one."""
    if made.lines:
        output.write("\n".join(made.lines))
    style, texts = request.style, made.by
    word = "grad" if found.kind in ("gradient", "derivative") else found.kind.lower()
    many = len(texts) > 1 or any("." in label for label in texts)
    lines = []
    for name, text in texts.items():
        if style.form == "plain":
            fields = [name, text] if many and style.names else [text]
            if name in values:
                fields.append(output.to_plain(values[name], style.precision))
            lines.append("\t".join(fields))
            continue
        if name in values:
            text += f" = {output.to_text(values[name], style)}"
        if made.form == "latex":
            lines.append(f"{_left(name, found)} = {text}")
            continue
        lines.append(output.labelled(f"{name}.{word}" if many else None, text, style))
    output.write("\n".join(lines), styled=style.form != "plain")


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


def _as_one_matrix(request: Request, where: Point, wanted: list[str], options: Options) -> str:
    """The Jacobian of a list of functions of numbers as one matrix of LaTeX: a row each, a column a variable.

    Empty where it is none, or needs names for what occurs more than once.
    """
    if options.format != "latex" or not options.jacobian:
        return ""
    from copy import copy

    from gradcli.formulas.ask.composed_derivatives import AskedDerivative
    from gradcli.formulas.print.latex import symbol
    from gradcli.language import parse

    asked = AskedDerivative()
    lines = []
    for row in _items_of_numbers(request, where):
        part = copy(request)
        part.program = parse(row)
        known = {n: a for n, a in where.arrays.items() if n in free_names(part.program)}
        own = [n for n in wanted if n in known]
        texts: dict[str, str] = {}
        if own:
            at = Point(known, where.tensors, {})
            way = asked.way(part.program, known, own, request.loaded)
            made = printed_formula(part, at, own, way, "grad", options)[1]
            if made.shared:
                return ""
            texts = made.by
        lines.append(" & ".join(texts.get(name, "0") for name in wanted))
    if not lines:
        return ""
    by = ", ".join(map(symbol, wanted))
    by = by if len(wanted) == 1 else f"({by})"
    matrix = r" \\ ".join(lines)
    return rf"\frac{{\partial f}}{{\partial {by}}} = \begin{{pmatrix}}{matrix}\end{{pmatrix}}"


def _left(label: str, found: Derivatives) -> str:
    """What a derivative is called in LaTeX."""
    from gradcli.formulas.print.latex import derivative_of

    if left := getattr(found, "left", None):  # formulas have names of their own
        return str(left[label])
    words = label.split(".")
    order = 2 if found.kind == "Hessian" else len(found.lower) + 1
    return derivative_of(words * order if len(words) == 1 else words)


def _write_json(
    request: Request,
    found: Derivatives,
    made: Printed,
    where: Point,
    values: dict[str, Any],
    taken: list[Step],
) -> None:
    shapes = {n: list(a.shape) for n, a in where.arrays.items()}
    shown = {n: output.to_json(v, request.style.precision) for n, v in values.items()}
    wrt: dict[str, dict[str, Any]] = {}
    for label, text in made.by.items():
        first, _, second = label.partition(".")
        own = wrt.setdefault(first, {"shape": shapes[first]} if first in shapes else {})
        if found.kind == "partial":
            own.setdefault("partials", {})[label] = text
        if found.kind == "Hessian":
            own.setdefault("hessian", {})[second or first] = text
        if second in ("", first):
            own["derivative"] = text
            if label in shown:
                own["value"] = shown[label]
    old = {"derivatives": made.by, "shapes": shapes, **({"values": shown} if shown else {})}
    report: dict[str, Any] = {"expression": request.source, "wrt": wrt, **old}
    report["general"] = made.general
    if made.shared:
        report["shared"] = dict(made.shared)
    if taken:
        report["steps"] = [
            dict(
                zip(
                    ("name", "expression", "differential"),
                    (s.name or None, *s.texts()),
                    strict=True,
                )
            )
            for s in taken
        ]
    output.write_json(report)


# -- step by step ---------------------------------------------------------------------------------
def _steps(request: Request, where: Point, wanted: list[str], order: int) -> list[Step]:
    from gradcli.formulas.ask.differential_steps import steps

    given = not set(where.arrays) - set(where.given)
    how: dict[str, Any] = {"order": order, "follow": given, "names": request.loaded}
    return steps(request.program, where.arrays, wanted, **how)


def _step_lines(taken: list[Step], form: str) -> list[str]:
    lines = [step.line(form) for step in taken]
    return [r"\begin{aligned}", *lines, r"\end{aligned}"] if form == "latex" else lines

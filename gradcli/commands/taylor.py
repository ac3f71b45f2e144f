"""`gradcli taylor EXPR`: the Taylor polynomial at a point."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from copy import copy
from typing import TYPE_CHECKING, Any

from gradcli.commands import output
from gradcli.commands.command_errors import usage
from gradcli.commands.declarations import OPEN, Option, Options, declare
from gradcli.commands.formula_question import CODE, FORMAT, format_of, located
from gradcli.commands.free_points import Point, point
from gradcli.commands.pictures import AXES, PLOT, PLOTTED, Canvas
from gradcli.commands.question import Answer, write
from gradcli.commands.request import Request
from gradcli.engine.system.visible import visible
from gradcli.language.located_errors import LanguageError

if TYPE_CHECKING:
    from gradcli.commands.formula_question import Asker
    from gradcli.engine.system.process import AnyContext
    from gradcli.formulas.ask.taylor_series import Polynomial

MOST = 30  # the highest degree
BY_NUMBERS = "the program has no formula here: the coefficients are numbers, by power series"


def expanded(
    request: Asker,
    arrays: dict[str, Any],
    texts: Mapping[str, str],
    degree: int,
    form: str,
    held: Collection[str] = (),
) -> tuple[str, Polynomial | None]:
    """(the polynomial in a format, as a formula); None where its coefficients are numbers, by power series.

    arrays: all variables. texts: the values that are given, of which those in `held` are constants, the
    others the point. Raises NoExpression and LanguageError.
    """
    from gradcli.formulas.algebra.expression_evaluation import value_at
    from gradcli.formulas.algebra.expressions import begin
    from gradcli.formulas.algebra.generic_points import quiet
    from gradcli.formulas.ask.taylor_series import HasArrays, taylor
    from gradcli.formulas.lift.lifting import NoExpression
    from gradcli.formulas.print.printed_text import printed
    from gradcli.language.no_derivative import without_derivative
    from gradcli.transforms.jets.polynomials import NotSmooth

    with quiet():
        value = value_at(request.program, request.loaded, arrays)
    if (error := without_derivative(request.program, value, "polynomial")) is not None:
        raise error
    begin((request.program.source, *texts.items(), degree, form))
    try:
        found = taylor(request.program, arrays, texts, degree, request.loaded, held)
        if form in ("text", "latex", "json"):
            return found.text(form.replace("json", "text")), found
        return printed(found, form).code, found
    except (NoExpression, LanguageError) as error:
        text = None
        if form in ("text", "json") and len(arrays) == len(held) + 1:
            try:
                text = _by_series(request, arrays, texts, degree, held)
            except NotSmooth as why:
                if isinstance(error, HasArrays):
                    raise NoExpression(str(why)) from None
        if text is None:
            raise
        return text, None


def _by_series(
    request: Asker,
    arrays: Mapping[str, Any],
    texts: Mapping[str, str],
    degree: int,
    held: Collection[str],
) -> str | None:
    """The polynomial in one real number, with all else held; None of another. Raises NotSmooth."""
    from gradcli.commands.request_evaluation import read_value
    from gradcli.engine.core.tensor import wrap
    from gradcli.transforms.jets.polynomials import polynomial

    moving = [name for name in texts if name not in held]
    if len(moving) != 1:
        return None
    (name,) = moving
    value = read_value(texts[name], f"--{name}")
    if value.shape or value.is_complex():
        return None
    names = {**request.loaded, **{n: wrap(arrays[n]) for n in held}}
    return polynomial(request.program, name, float(value.item()), degree, names)


def held_by(wrt: Collection[str] | None, texts: Collection[str]) -> list[str]:
    """The variables with a value that --wrt does not name, which are constants."""
    return [] if wrt is None else [name for name in texts if name not in wrt]


def at_zero(names: Iterable[str], hint: str) -> dict[str, str]:
    """The point that nobody said: 0, where there is one variable."""
    known = list(names)
    if len(known) != 1:
        raise usage(f"at which point? (variables: {', '.join(known) or 'none'})", hint=hint)
    return {known[0]: "0"}


@declare(
    "taylor",
    *OPEN,
    Option(
        "--order N",
        "The degree of the polynomial (6); 1:5 or 1,3,5 for several.",
        type=str,
        default="6",
    ),
    FORMAT,
    Option("--remainder", "Print what is left of EXPR, too, in Lagrange's form."),
    Option(PLOT, f"Draw EXPR and the polynomials around the point {PLOTTED}"),
    *AXES,
    examples=(
        'gradcli taylor "sin(x)/x" --x 0 --order 6',
        'gradcli taylor "log(x)" --x 1 --order 3 --format latex',
        'gradcli taylor "exp(x*y)" --x 0 --y 0 --order 4',
        'gradcli taylor "sin(x)" --x 0 --order 1,3,5 --plot --xlim=-6:6',
    ),
    open_variables=True,
    puts_in="lets",
)
def command(ctx: AnyContext, request: Request, options: Options) -> None:
    """Print the Taylor polynomial of EXPR around the values of its variables.

    EXPR is a number. With --order 1 the polynomial is the tangent. Variables without values stay letters;
    those with a value that --wrt does not name are constants. Coefficients are exact: --x pi/4 stays a
    fraction of pi. The polynomial is compared with EXPR near the point before it is printed.
    """
    if request.reading and request.reading.functions:
        raise usage(f"{request.reading.functions[0]} is not known, and has no Taylor polynomial")
    where = point(ctx, request)
    if not request.shapes:  # its variables are numbers, also where a sum would rather have a vector
        where.arrays |= {n: where.arrays[n].dtype.type(0.5) for n in where.guessed}
    names = request.wrt or list(where.arrays)
    held = held_by(request.wrt, request.texts)
    moving = {n: text for n, text in request.texts.items() if n not in held}
    if not moving:
        moving = at_zero(names, f"as in --{[*names, 'x'][0]} 0")
        output.note(f"this is at {min(moving)} = 0; choose another point with --{min(moving)}")
    texts = {**request.texts, **moving}
    if request.wrt is None and len(moving) > 1:
        _say_what_to_hold(where.arrays, moving)
    orders = _orders(options.order)
    canvas = None
    if options.plot is not None:
        if len(moving) != 1 or len(where.arrays) != len(held) + 1:
            raise usage("--plot draws functions of one variable", hint="leave it out")
        canvas = Canvas(
            options.plot, request.style, "--plot",
            theme=options.theme, wide=options.width, high=options.height, written=request,
        )  # fmt: skip
    form = format_of(request, options)
    if len(orders) > 1 and form in CODE:
        raise usage(f"--format {form} is of one order", hint=f"write --order {orders[-1]}")
    if options.remainder:
        _check_remainder(texts, where.arrays, orders, form)
    made: dict[int, str] = {}
    numbers = False
    with located(request):
        for order in orders:
            made[order], found = expanded(request, where.arrays, texts, order, form, held)
            numbers = numbers or found is None
    if numbers:
        output.note(BY_NUMBERS)
    keys: dict[str, Any] = {"at": moving, "order": orders[-1], "taylor": made[orders[-1]]}
    if len(orders) > 1:
        keys["orders"] = {str(order): text for order, text in made.items()}
    answer = Answer(request, [], lambda _: keys)
    answer.lines = [visible(text) for text in _lines(made, form, request.style.form)]
    if options.remainder:
        with located(request):
            left = _remainder(request, where, texts, orders[-1], form.replace("json", "text"))
        keys["remainder"] = left
        answer.lines.append(visible(left if form == "latex" else f"remainder = {left}"))
    write(answer)
    if canvas is not None:
        from gradcli.commands.taylor_picture import number_of, picture

        ((name, text),) = moving.items()
        shared = {n: where.arrays[n] for n in held}
        plain = made
        if form not in ("text", "json"):
            with located(request):
                plain = {
                    n: expanded(request, where.arrays, texts, n, "text", held)[0] for n in orders
                }
        canvas.draw(picture(request, options, name, number_of(text), plain, shared))


def _say_what_to_hold(arrays: Mapping[str, Any], texts: Mapping[str, str]) -> None:
    """Refuse an array among the variables to expand in, with those that can be."""
    shaped = next((n for n in texts if arrays[n].shape), None)
    numbers = [n for n in texts if not arrays[n].shape]
    if shaped is not None and numbers:
        raise usage(
            f"taylor expands in numbers: {shaped} is an array",
            hint=f"--wrt {','.join(numbers)} expands in {', '.join(numbers)}, and holds the others",
        )


def _remainder(
    request: Request, where: Point, texts: Mapping[str, str], degree: int, form: str
) -> str:
    """What the polynomial leaves, with a note where that holds on one side of a kink alone."""
    import numpy as np

    from gradcli.commands.formula_question import FormulaQuestion
    from gradcli.formulas.ask.composed_derivatives import AskedDerivative
    from gradcli.formulas.ask.taylor_remainders import antiderivative, has_kinks, written
    from gradcli.language import parse

    ((name, at),), program = texts.items(), request.program
    if program.rows[-3] != 1 or not program.ends_in_expression:
        hint = "write it as one expression"
        raise usage("--remainder is of one expression, and this is a program", hint=hint)
    source, letter = antiderivative(program.source, name, at, degree)
    asker = copy(request)
    asker.program = parse(source)
    near = Point({letter: np.float64(0.6), name: np.float64(0.7)}, {}, {})
    asked = AskedDerivative(degree + 1)
    found = FormulaQuestion(asker, near, asked, [letter], format=form).answered().made.by[letter]
    if has_kinks(program, request.loaded, where.arrays):
        output.note(f"the remainder holds where no kink lies between {at} and {name}")
    return written(found, letter, name, at, degree, form == "latex")


def _check_remainder(
    texts: Mapping[str, str], arrays: Mapping[str, Any], orders: list[int], form: str
) -> None:
    """Refuse --remainder where it has no one form."""
    if len(texts) != 1 or len(arrays) != 1:
        raise usage("--remainder is of functions of one variable", hint="leave it out")
    if len(orders) > 1:
        raise usage("--remainder is of one order", hint=f"write --order {orders[-1]}")
    if form in CODE:
        raise usage(f"--remainder is for text and LaTeX, not for {form}", hint="leave it out")


def _lines(made: Mapping[int, str], form: str, style: str) -> Iterable[str]:
    """A polynomial, or a line for each order."""
    if len(made) == 1:
        return made.values()
    if style == "plain":
        return [f"{order}\t{text}" for order, text in made.items()]
    if form == "latex":
        return [f"T_{{{order}}} = {text}" for order, text in made.items()]
    wide = max(len(str(order)) for order in made)
    return [f"order {order:<{wide}}  {text}" for order, text in made.items()]


def _orders(text: str) -> list[int]:
    """The degrees that --order says: 4, 1:5, 1,3,5."""
    found: list[int] = []
    for part in text.split(","):
        ends = [end.strip() for end in part.split(":")]
        if len(ends) > 2 or not all(end.isdecimal() and int(end) <= MOST for end in ends):
            raise usage(
                f"--order wants numbers from 0 to {MOST}, not {text!r}",
                hint="as in --order 4, --order 1:5, or --order 1,3,5",
            )
        found += range(int(ends[0]), int(ends[-1]) + 1)
    if not found:
        raise usage(f"--order {text} is empty", hint="from the smaller: --order 1:5")
    return sorted(set(found))

"""`gradcli root EQUATION`: where the sides of equations are equal."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

from gradcli.commands import output
from gradcli.commands.command_errors import usage
from gradcli.commands.declarations import (
    DRAWS,
    EXPRESSION,
    UNCERTAINTY_OF_SEVERAL,
    Argument,
    Option,
    Options,
    declare,
    reworded,
)
from gradcli.commands.item_lists import bounds_of
from gradcli.commands.map import (
    AS,
    COLUMNS,
    HEAD,
    KEEP_COLUMNS,
    ROWS_WHERE,
    TABLE_FILE,
    TABLE_FORMAT,
)
from gradcli.commands.minimize import inputs_of, space_of
from gradcli.commands.pictures import PLOT, PLOTTED, Canvas
from gradcli.commands.question import Answer, write
from gradcli.commands.request import Request
from gradcli.language.located_errors import LanguageError

if TYPE_CHECKING:
    from gradcli.columns.optimize.newton_steps import NewtonStep
    from gradcli.columns.optimize.spaces import Compiled, Space
    from gradcli.commands.plots.pictures import Curves
    from gradcli.engine.system.process import AnyContext

NOT_ALONE = "this root is not the only one: up to rounding the sides are equal all around it"
_SHOWN = 4  # variables whose last values are said


@declare(
    "root",
    *reworded(EXPRESSION, "--wrt NAMES", "Solve for these variables only; the others are held."),
    Argument("[TABLE]", name="table", complete="files"),
    Option("--all", "Find all roots in an interval, as in --x 0:10."),
    Option("--trace", "Print the steps of Newton's method: the point, the value, the slope."),
    COLUMNS,
    KEEP_COLUMNS,
    AS,
    Option(
        "--bad-rows stop|skip|nan",
        "A row of TABLE without a root: nan (default), leave it out, or stop.",
        choices=("stop", "skip", "nan"),
    ),
    ROWS_WHERE,
    HEAD,
    TABLE_FORMAT,
    TABLE_FILE,
    Option(PLOT, f"Draw left minus right over one variable {PLOTTED}"),
    *(*UNCERTAINTY_OF_SEVERAL, DRAWS),
    examples=(
        'gradcli root "cos(x) == x" --x 1',
        'gradcli root "x + y == 3; x*y == 2" --x 0 --y 5',
        'gradcli root "tan(x) == x" --x 0:10 --all',
        'gradcli root "x**3 - a*x == b" --a 1±0.1 --b 2±0.2 --x 1',
        'gradcli root "g*t**2/2 == h" falls.csv --t 1 --g 9.81',
    ),
    operands=2,
    open_variables=True,
    propagates=True,
    puts_in="let",
)
def command(ctx: AnyContext, request: Request, options: Options) -> None:
    """Solve equations: find values of the variables with which EXPR holds.

    An expression that is not an equation is to be 0: `x**2 - 2`. Give as many equations as there are unknown
    numbers, separated by `;`. An equation of vectors counts once for each element. --let "f=[…]" gives an
    expression a name. What has an uncertainty (--a 2±0.1) stays, and gives the root one. What a file has
    (--A @A.csv) is data and stays, too; --wrt says otherwise. With a TABLE the
    equation is solved for one number in every row: --x 0.2 is where all rows start, --x 0:5 where they look.
    """
    if options.table is not None:
        from gradcli.commands.root_by_rows import solve

        solve(ctx, request, options)
        return
    if options.format in ("latex", "siunitx") and request.style.form == "text":
        request.style.typeset, options.format = options.format, None
    _refuse_options_of_tables(ctx, request, options)
    import numpy as np

    from gradcli.columns.optimize import spaces
    from gradcli.columns.optimize.roots import all_roots, root

    canvas = None
    if options.plot is not None:
        canvas = Canvas(options.plot, request.style, "--plot", written=request)
    interval = _interval(request) if options.all else None
    inputs = inputs_of(request, options)
    space = space_of(ctx, request)
    system = spaces.Compiled(space.differences(request.program), space.size)
    if canvas is not None and space.size > 1:
        raise usage("--plot draws equations of one number", hint="leave it out")
    traced = _newton(request, space, system, interval) if options.trace else None
    roots: list[Any]
    plateaus: list[tuple[float, float]] = []
    if interval is None:
        for name in space.start:
            if ":" in request.texts.get(name, ""):
                output.note(f"--{name} is a vector of starts; --all finds the roots in an interval")
        try:
            found = root(system, space.flat())
        except LanguageError as error:
            read = [n for n in request.program.free_variables() if n in space.start]
            if len(system.value(space.flat())) == 1 < space.size:
                read.sort(key=lambda name: space.start[name].size)  # one equation, one number
                _say_what_to_hold(request, read, error)
            raise
        roots, residual, converged = [found.x], found.residual, found.converged
        alone = found.alone
        if not found.alone:
            output.note(NOT_ALONE)
    else:
        every = all_roots(system, *interval)
        roots = [np.array([number]) for number in every.roots]
        plateaus = every.plateaus
        residual = max((abs(float(system.value(x)[0])) for x in roots), default=0.0)
        converged = alone = True
        output.note(f"roots closer together than {every.width:.1g} may be missing")
        for low, high in plateaus:
            output.note(
                f"from {low:.15g} to {high:.15g} the sides are equal all along: both ends are printed"
            )
    points = [space.shaped(x) for x in roots]
    lines: list[tuple[str | None, Any]] = [pair for point in points for pair in point.items()]
    keys: dict[str, Any] = {
        "roots": [{n: output.to_json(a) for n, a in point.items()} for point in points],
        "residual": output.to_json(residual),
        "evaluations": system.evaluations,
        "converged": converged and alone,
    }
    if traced is not None:
        steps, ends = traced
        keys["trace"] = [step._asdict() for step in steps]
        if converged and not np.isclose(steps[-1].x, roots[0][0]):
            output.note("Newton's method does not end at this root: it was found by another way")
        elif converged and not ends:
            output.note(
                f"Newton's method is slow here: it has not ended after {steps[-1].number} steps"
            )
    if plateaus:
        keys["plateaus"] = [list(ends) for ends in plateaus]
    if inputs is not None and plateaus:
        raise usage("roots that fill an interval have no uncertainty", hint="leave out the ±")
    if inputs is not None and roots and converged:
        spreads = [inputs.of_root(space, x) for x in roots]
        lines = [line for one in spreads for line in inputs.lines(one, request.style)]
        each = [inputs.to_json(one) for one in spreads]
        keys |= {key: [one[key] for one in each] for key in each[0]}
    if converged and roots:
        # a bare answer, and one for a paper, is the root alone
        if request.style.names and request.style.typeset is None:
            lines.append(("residual", residual))
        write(Answer(request, lines, lambda _: keys))
    if canvas is not None:
        canvas.draw(_picture(space, system, roots, interval))
    if not converged or not roots:
        hint = "draw it with --plot, or start elsewhere"
        raise LanguageError(
            f"no root was found{_last(request, points, residual)}",
            kind="value",
            usage=False,
            hint=hint,
        )


def _say_what_to_hold(request: Request, names: list[str], error: LanguageError) -> None:
    """Say of one equation of several unknown numbers by which it may be solved."""
    if len(names) > 1 and request.wrt is None:
        error.hint = (
            f"--wrt {names[0]} solves for {names[0]}, and holds {', '.join(names[1:])}; or give as "
            "many equations, separated by `;`"
        )


def _last(request: Request, points: list[dict[str, Any]], residual: float) -> str:
    """Where a search ended that found none."""
    from gradcli.language.equations import all_sides

    if not points:
        return " in this interval"
    words = all_sides(request.program)[1]
    what = "the sides differ by" if any(words) else "the value is" if len(words) == 1 else "it is"
    at = ", ".join(f"{n} = {float(a):.6g}" for n, a in points[0].items() if not a.shape)
    whole = at and all(not a.shape for a in points[0].values()) and len(points[0]) <= _SHOWN
    return f": {what} {residual:.3g} at {at if whole else 'the last point'}"


def _refuse_options_of_tables(ctx: AnyContext, request: Request, options: Options) -> None:
    """Raise LanguageError for what only rows have, and for a variable without a value."""
    if request.open_variables:
        from gradcli.commands.options import unbound

        declared = cast(Any, ctx).command.declared
        searched = any(":" in text for text in request.texts.values())
        value = "FROM:TO" if options.all and not searched else "VALUE"
        first, bound = request.open_variables[0], set(request.names)
        raise unbound(request.program, first, declared, bound, value)
    others = {"path": "-o", "called": "--as"}
    for name in ("columns", "keep_columns", "bad_rows", "where", "head", "format", *others):
        if getattr(options, name) not in (None, (), []):
            option = others.get(name, f"--{name.replace('_', '-')}")
            hint = "gradcli root EQUATION TABLE solves it in every row"
            if name == "path":
                hint += "; > FILE writes what is printed"
            raise usage(f"{option} needs a table", hint=hint)


def _interval(request: Request) -> tuple[float, float]:
    """The interval that --all searches, in place of the variable's value."""
    wanted = [n for n in request.names if request.wrt is None or n in request.wrt]
    wanted = [n for n in wanted if n not in request.no_grad and ":" in request.texts.get(n, "")]
    if len(wanted) != 1 or request.texts[wanted[0]].count(":") != 1:
        raise usage("--all wants an interval of one variable", hint=_how_to_search(request))
    name = wanted[0]
    low, high = bounds_of(name, request.texts[name])
    if not -float("inf") < low < high < float("inf"):
        raise usage(
            f"--{name} {request.texts[name]} is not an interval", hint=f"as in --{name} 0:10"
        )
    request.texts[name] = repr(low)
    request.wrt = [name]  # all others are held
    return low, high


def _newton(
    request: Request, space: Space, system: Compiled, interval: tuple[float, float] | None
) -> tuple[list[NewtonStep], bool]:
    """Newton's steps from the start, printed as a table; whether they end at a root."""
    import numpy as np

    from gradcli.columns.optimize.newton_steps import newton_steps
    from gradcli.language.equations import all_sides

    if interval is not None:
        raise usage("--trace begins at a point, and --all searches an interval",
                    hint="give a number, without --all")  # fmt: skip
    if space.size != 1 or len(system.value(space.flat())) != 1:
        raise usage("--trace is of one equation for one number", hint="leave it out")
    steps, ends = newton_steps(system, space.flat())
    if request.style.form == "text":
        (name,) = space.start
        if any(all_sides(request.program)[1]) and not re.search(r"== 0\s*$", request.source):
            output.note("f is the left side minus the right one")
        rows = [["n", name, f"f({name})", f"f'({name})"]]
        for step in steps:
            numbers = np.array([step.x, step.value, step.slope])
            rows.append([str(step.number), *output.numerals(numbers, request.style.precision)])
        wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ("  ".join(f"{t:<{w}}" for t, w in zip(row, wide, strict=True)) for row in rows)
        output.write("\n".join(line.rstrip() for line in lines))
    return steps, ends


def _how_to_search(request: Request) -> str:
    """How --all is written for the unknown number of the equation; of several, what to do instead."""
    unknown = [n for n in request.names if request.wrt is None or n in request.wrt]
    unknown = [n for n in unknown if n not in request.no_grad]
    if len(unknown) > 1:
        near = " ".join(f"--{n} VALUE" for n in unknown)
        return f"of {', '.join(unknown)} one root is found near a point, without --all: {near}"
    (name,) = unknown or ["x"]
    try:
        near_by = float(request.texts[name])
    except (KeyError, ValueError):
        near_by = 5.0
    return f"as in --{name} {near_by - 5:g}:{near_by + 5:g} --all"


def _picture(space: Any, system: Any, roots: list[Any], interval: Any) -> Curves:
    import numpy as np

    from gradcli.commands.plots.axes import Axis
    from gradcli.commands.plots.curves import limits, sample
    from gradcli.commands.plots.pictures import Curves, Line

    places = np.array([x[0] for x in roots])
    low, high = interval or (places.min() - 1, places.max() + 1)
    x, (y,) = sample(lambda at: [np.array([system.value(a)[0] for a in at[:, None]])], low, high)
    lines = [Line(x, y, "left - right"), Line(places, 0 * places, "root", points=True)]
    return Curves(
        lines,
        Axis((low, high), next(iter(space.start))),
        Axis(limits([(x, y)], 0 * places), "left - right"),
    )

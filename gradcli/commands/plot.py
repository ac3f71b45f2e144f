"""`gradcli plot EXPR`: a function and its derivative as curves, contours, a surface; a table with a curve."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gradcli.commands import output
from gradcli.commands.command_errors import quoted, reading_table, usage
from gradcli.commands.data_rows import BY, MORE, WHERE, several
from gradcli.commands.declarations import (
    EXPRESSION,
    OUTPUTS,
    Argument,
    Option,
    Options,
    declare,
)
from gradcli.commands.left_sides import definition
from gradcli.commands.pictures import AXES, Canvas, View
from gradcli.commands.plotted_equations import (
    TANGENT,
    Equations,
    equations_of,
    line_text,
    right_side,
)
from gradcli.commands.step_table import Step, to_json, to_text
from gradcli.language.located_errors import LanguageError

if TYPE_CHECKING:
    from gradcli.commands.plots.pictures import Line
    from gradcli.commands.plotted_rows import Points
    from gradcli.commands.request import Request
    from gradcli.engine.system.process import AnyContext

    Interval = tuple[float, float]

_EVEN = 3000  # points of a curve over a logarithmic axis
_UNSAID_LOG = (0.1, 10.0)  # the same of a logarithmic axis
_UNSAID = (-10.0, 10.0)  # where a variable runs that nobody said anything of
# Those of `columns.optimize.descents` that need no Hessian.
_METHODS = ("gradient-descent", "momentum", "nesterov", "adagrad", "rmsprop", "adam")
_PRIMES = 3  # of a derivative at most
_DASHES = ((1, 0), (3, 3), (1, 3), (5, 2))


@declare(
    "plot",
    *EXPRESSION,
    Argument("[TABLE]", name="table", complete="files"),
    MORE,
    Option(
        "--order N",
        "Highest derivative drawn: 1; 0 (none) of several curves and with --descend.",
        least=0,
        most=6,
    ),
    Option("--at VALUES", "Draw tangents: --at 1,2; where --descend starts: x=1,y=2."),
    Option("--surface", "Draw two variables as a surface."),
    Option("--descend RATE", "Draw the path of gradient descent with this step size.", type=float),
    Option(
        "--method NAME",
        f"The method of --descend: {', '.join(_METHODS)}.",
        choices=_METHODS,
        default="gradient-descent",
    ),
    Option("--steps N", "Steps of --descend.", least=1, most=100_000, default=50),
    Option("--over COLUMN", "The column that those of a table are drawn over; else the first."),
    Option("--columns 'x=COLUMN'", "Rename columns of a table, as in fit.", many=True),
    WHERE,
    BY,
    Option(
        "--sigma [x=]EXPR",
        "Error bars of a table's points, or of x: a column, 0.1, 3%, sqrt(y), poisson.",
        many=True,
    ),
    Option("--hist", "Draw how often values of a table's columns occur."),
    Option("--bins N", "Blocks of --hist.", least=1, most=10_000),
    Option("--csv", "Print the points, or the steps of --descend, as a table.", section=OUTPUTS),
    Option(
        "-o FILE",
        "Draw into FILE.svg, .png or .pdf; .tex is for LaTeX (pgfplots).",
        name="path",
        complete="files",
    ),
    *AXES,
    examples=(
        'gradcli plot "x*sin(x)" --x -10:10',
        'gradcli plot "x**2 + y**2 == 1, y == x**2"',
        'gradcli plot "(1-x)**2 + 100*(y-x**2)**2" --x -2:2 --y -1:3 --descend 0.001 --at x=-1,y=2',
        'gradcli plot "y == a*exp(-t/2)" data.csv --a 3 -o fit.svg',
        "gradcli plot U data.csv --log y",
    ),
    open_variables=True,
    operands=2,
    table_alone="...",
)
def command(ctx: AnyContext, request: Request, options: Options) -> None:
    """Draw EXPR and its derivative over an interval: --x FROM:TO.

    Two variables give a contour plot with arrows along the gradient; an equation of two variables gives its
    curve. With a TABLE, `y == EXPR` draws the column y and the curve, `U, I` columns alone, and no EXPR all
    of them.
    """
    from gradcli.commands.request_evaluation import set_up

    set_up(ctx, request)
    Plot(request, options).draw()


def _column(line: Line) -> str:
    """What a line is called in a table, or in JSON."""
    tangent = TANGENT.fullmatch(line.label)
    return tangent[1] if tangent else line.label


def _upward(name: str) -> tuple[bool, bool, str]:
    """By what two variables are sorted whose ranges nobody gave: x goes across, and y up."""
    return name != "x", name == "y", name


class Plot:
    """What is drawn. runs: the variables that run, and from where to where. shared: the other values."""

    def __init__(self, request: Request, options: Options) -> None:
        from gradcli.commands.request_evaluation import files_of, read_variable

        self.request, self.options, self.view = request, options, View(options)
        self.canvas = Canvas(
            options.path, request.style, "-o",
            theme=options.theme, wide=options.width, high=options.height, written=request,
        )  # fmt: skip
        self.named, self.source = definition(request.source)
        self.named = self.named or request.named
        self.runs = self._intervals()
        files = files_of(request)
        tensors = {n: read_variable(request, n, files) for n in request.names if n not in self.runs}
        self.shared = {name: tensor.detach().array for name, tensor in tensors.items()}
        self.points: Points | None = None
        self.path: list[Step] = []  # of --descend
        for name in ("over", "where", "by", "sigma", "hist", "bins"):
            if options.table is None and getattr(options, name):
                raise usage(f"--{name} needs a table", hint='as in gradcli plot "y" data.csv')
        if options.table is not None:
            with reading_table(options.table):
                self._read(several(options.table, options.more))
        if self.points is not None and self.points.curve is None:
            return
        unsaid = [n for n in request.open_variables if n not in (*self.runs, *request.loaded)]
        self.equations: Equations | None = None
        if self.points is None:
            self.source, named = right_side(self.source, unsaid, [*self.runs, *unsaid])
            unsaid = [name for name in unsaid if name != named]
            self.equations = equations_of(self.source)
        self.unsaid = unsaid
        two = self.equations is not None and len(self.runs) + len(unsaid) == 2
        for name in unsaid:
            self.runs[name] = _UNSAID if not self.view.log("x") else _UNSAID_LOG
            if not two:
                low, high = self.runs[name]
                output.note(
                    f"{name} goes from {low:g} to {high:g}; for another range write --{name} FROM:TO"
                )
        if unsaid and len(self.runs) == 2:
            self.runs = {name: self.runs[name] for name in sorted(self.runs, key=_upward)}
        if not self.runs:
            name = [*request.names, "x"][0]
            ends = request.texts.get(name, "").strip("[]() ").split(",")
            ends = [end.strip() for end in ends] if len(ends) == 2 else ["-10", "10"]
            hint = f"as in --{name} {':'.join(ends)}"
            raise usage("no variable has a range to draw over", hint=hint)
        if len(self.runs) > 2:
            raise usage(
                f"{len(self.runs)} variables have ranges ({', '.join(self.runs)}): draw over two at most",
                hint=f"give one a value, as in --{next(iter(self.runs))} 1",
            )

    def draw(self) -> None:
        """Draw it, where it is wanted."""
        if self.points is not None and self.points.curve is None:
            self._table()
        elif len(self.runs) == 1:
            self._curves()
        elif self.points is not None:
            raise usage("a table is drawn over one variable", hint="give the others a value")
        elif self.equations is not None:
            self._implicit(self.equations)
        else:
            self._contours()

    # -- what is asked -------------------------------------------------------------------------------
    def _intervals(self) -> dict[str, Interval]:
        """The variables whose value is FROM:TO."""
        from gradcli.commands.request_evaluation import read_value

        found = {}
        for name, text in self.request.texts.items():
            ends = text.split(":")
            if len(ends) != 2 or text.lstrip()[:1] == "@" or text.startswith("-:"):
                continue
            low, high = (float(read_value(end, self.request.options[name])) for end in ends)
            if not low < high:
                raise usage(
                    f"--{name}: {text} is empty",
                    hint=f"from the smaller: --{name} {ends[1]}:{ends[0]}",
                )
            found[name] = (low, high)
        return found

    def _read(self, tables: list[str]) -> None:
        """Take in a table: what of it is drawn, and the curve that goes with it."""
        from gradcli.commands.plotted_rows import Points
        from gradcli.language.parser import parses
        from gradcli.language.rewritten_sources import split_equation

        table, request = tables[0], self.request
        if not os.path.exists(table.removeprefix("@")) and table != "-" and parses(table):
            several = f"{request.source}, {table}"
            raise usage(
                f"there is no table {table}",
                hint=f'several curves are one expression: gradcli plot "{several}"',
            )
        loaded = {**request.loaded, **self.shared}
        self.points = Points(request, tables, self.options, loaded)
        try:
            before, left, right, after = split_equation(request.source)
        except LanguageError:
            self.points.take_columns(self.source, list(request.open_variables))
            return
        if self.options.hist:
            raise usage(
                "--hist takes columns, not an equation", hint=f"as in gradcli plot '{left}' …"
            )
        self.source = f"{before}{right}{after}"
        name = self.points.take_equation(left, self.source)
        where = self.points.x
        self.runs.setdefault(name, (float(where.min()), float(where.max())))
        own = {name, *self.points.read}
        request.open_variables = [n for n in request.open_variables if n not in own]

    def _table(self) -> None:
        """Draw columns of a table alone."""
        points = self.points
        assert points is not None
        form = self.request.style.form
        if form in ("json", "csv", "plain"):
            if self.options.hist:
                points.write_blocks(self.request, form)
            else:
                self._write(points.name, points.lines(), form)
            return
        self.canvas.draw(
            points.histogram(self.view) if self.options.hist else points.picture(self.view)
        )

    def _functions(self) -> list[tuple[str, Callable[..., Any]]]:
        """The functions to draw, with their names: several where the value is a tuple or a short vector."""
        import numpy as np

        from gradcli.engine.core.tensor import wrap
        from gradcli.language import parse
        from gradcli.language.rewritten_sources import last_items
        from gradcli.transforms.verdicts import function_of

        if self.equations is not None:
            return self.equations.both_sides(self.request.loaded)
        program = parse(self.source)
        whole = function_of(program, self.request.loaded)
        point = {n: wrap(a) for n, a in self.shared.items()}
        point |= {
            n: wrap(np.float64(0.3 * low + 0.7 * high)) for n, (low, high) in self.runs.items()
        }
        value = whole(**point)
        start, end = program.value_span or (0, None)
        label = program.source[start:end]
        if isinstance(value, tuple | list):
            texts = last_items(self.source) or []
            if len(texts) != len(value):
                texts = [f"[{i}]" for i in range(len(value))]
            return [(text, lambda i=i, **t: whole(**t)[i]) for i, text in enumerate(texts)]
        shape = tuple(getattr(value, "shape", ()))
        if not shape:
            return [(self._called() or label, whole)]
        if len(shape) == 1 and shape[0] <= 8:
            return [(f"[{i}]", lambda i=i, **t: whole(**t)[i]) for i in range(shape[0])]
        raise usage(
            f"the value has shape {shape}: a curve needs a number",
            hint="sum(…), mean(…), or an element, (…)[0]",
        )

    def _called(self) -> str:
        """What the formula calls its value, `V(x)` with the variables that run; empty without a name."""
        return f"{self.named}({', '.join(self.runs)})" if self.named else ""

    # -- one variable --------------------------------------------------------------------------------
    def _curves(self) -> None:
        import numpy as np

        from gradcli.commands.plots import curves
        from gradcli.commands.plots.pictures import Curves, Line

        name, (low, high) = next(iter(self.runs.items()))
        points, view = self.points, self.view
        if self.options.surface:
            raise usage("--surface is of two variables", hint=f"as in --{name} 0:1 --y 0:1")
        order = self.options.order
        if self.equations is not None:
            given = {n: text for n, text in self.request.texts.items() if n != name}
            self.equations.say_sides({name: (low, high)}, given)
        lines: list[Line] = []
        functions = self._functions()
        if order is None:
            others = points is not None or self.equations is not None
            order = int(not others and len(functions) == 1 and self.options.descend is None)
        for label, function in functions:
            columns = curves.columns_of(function, name, self.shared, max(order, 1))
            if view.log("x"):
                view.axis("x", (low, high), name)  # which refuses what is not above 0
                x = np.geomspace(low, high, _EVEN)
                found = columns(x)
            else:
                x, found = curves.sample(columns, low, high)
            for k, y in enumerate(found[: order + 1]):
                said = _derivative(label, name, k, self.named, self.request.math)
                lines.append(Line(x, y, said, _DASHES[min(k, 3)]))
            if self.options.descend is not None:
                if len(functions) > 1 and self.request.style.form in ("json", "csv", "plain"):
                    raise usage(
                        f"--descend is of one function, and there are {len(functions)}",
                        hint=f"choose one: gradcli plot {quoted(label)} …",
                    )
                path = self._descent(_at_first(columns), [name])
                y = columns(path[:, 0])[0]
                method = self.options.method.replace("-", " ")
                own = len(lines)
                lines.append(Line(path[:, 0], y, method, points=True, colour=own))
                lines.append(Line(path[:, 0], y, "", colour=own))
            elif self.options.at is not None:
                for at in self._places(name):
                    lines += self._tangent(columns, name, at, (low, high), len(lines))
        if not any(np.isfinite(line.y).any() for line in lines):
            raise LanguageError(
                f"there is no number to draw for {name} from {low:g} to {high:g}",
                kind="value", usage=False, hint=f"--{name} FROM:TO says where",
            )  # fmt: skip
        form = self.request.style.form
        if form in ("json", "csv", "plain"):
            self._write(name, lines, form)
            return
        shown = [
            view.inside(line.x, line.y)
            for line in lines
            if len(line.x) > 2 and line.label
            if not line.points
        ]
        label = lines[0].label if len(lines) == 1 or self.named else ""
        if points is None:
            ends = curves.limits(shown, log=view.log("y"))
            across, up = view.axis("x", (low, high), name), view.axis("y", ends, label)
            self.canvas.draw(Curves(lines, across, up, title=view.title))
            return
        first = curves.columns_of(functions[0][1], name, self.shared, 0)
        data, residuals = points.with_residuals(lambda x: first(x)[0])
        colour = len(data)
        lines = [
            *data, *[line._replace(colour=colour + k) for k, line in enumerate(lines)]
        ]  # fmt: skip
        drawn = np.concatenate([line.ends() for line in data])
        ends = curves.limits(shown, drawn, view.log("y"))
        view.note_hidden("y", points.values())
        if (
            name not in self.request.texts
        ):  # its ends are those of the data, which are to be seen whole
            low, high = curves.limits([], points.x, view.log("x"))
        across = view.axis("x", (low, high), points.heading(name), points.dates())
        up = view.axis("y", ends, data[0].label if len(data) == 1 else points.label)
        self.canvas.draw(Curves(lines, across, up, residuals, view.title))

    def _places(self, name: str) -> list[float]:
        """The points of --at: `1,1.5`, or `x=1,x=1.5`."""
        from gradcli.commands.request_evaluation import read_value

        found = []
        for item in self.options.at.split(","):
            said, equals, text = item.rpartition("=")
            if equals and said.strip() != name:
                raise usage(f"--at wants a value of {name}", hint=f"--at {name}=1")
            found.append(float(read_value(text, "--at")))
        return found

    def _tangent(
        self, columns: Any, name: str, at: float, ends: Interval, colour: int
    ) -> list[Line]:
        """The line through a point of --at with the slope that the function has there, and the point."""
        import numpy as np

        from gradcli.commands.plots.pictures import Line

        value, slope = (float(column[0]) for column in columns(np.array([at]))[:2])
        if not np.isfinite(value + slope):
            raise usage(f"--at: there is no slope at {name} = {at:g}")
        x = np.array(ends)
        equation = f"y = {line_text(name, slope, value - slope * at)}"
        said = f"tangent at {at:g}: slope {slope:.6g}, {equation}"
        point = Line(np.array([at]), np.array([value]), "", points=True, colour=colour)
        return [Line(x, value + slope * (x - at), said, (5, 2), colour=colour), point]

    def _write(self, name: str, lines: list[Line], form: str) -> None:
        """The points as numbers: a table of x and of the lines over the same x."""
        import numpy as np

        if self.path and form != "json":
            output.write(to_text([name], self.path, form, self.request.style.precision))
            return
        lines = [line for line in lines if len(line.x) == len(lines[0].x)]
        precision = self.request.style.precision
        if form == "json":
            points = {name: lines[0].x} | {_column(line): line.y for line in lines}
            found = {label: output.to_json(array, precision) for label, array in points.items()}
            descent = {"descent": to_json([name], self.path, precision)} if self.path else {}
            output.write_json({"expression": self.source, "points": found, **descent})
            return
        separator = "\t" if form == "plain" else ","
        quoted = [f'"{t}"' if separator in t else t for t in (name, *map(_column, lines))]
        rows = [
            output.numerals(np.asarray(c), precision)
            for c in (lines[0].x, *[line.y for line in lines])
        ]
        output.write(
            "\n".join([separator.join(quoted), *map(separator.join, zip(*rows, strict=True))])
        )

    # -- two variables -------------------------------------------------------------------------------
    def _implicit(self, equations: Equations) -> None:
        """Draw the curves of equations of two variables."""
        from gradcli.commands.plotted_equations import ImplicitCurves

        for option in ("surface", "descend"):
            if getattr(self.options, option):
                raise usage(
                    f"--{option} is of an expression, not of an equation",
                    hint="write left - right, whose curve is where it is 0",
                )
        said = {name: ends for name, ends in self.runs.items() if name not in self.unsaid}
        found = ImplicitCurves(
            equations, list(self.runs), said, self.shared, self.request.loaded, self.view
        )
        if self.request.style.form in ("json", "csv", "plain"):
            found.write(self.request.style)
            return
        at = None if self.options.at is None else self._point(list(self.runs))
        self.canvas.draw(found.picture(at))

    def _contours(self) -> None:
        import numpy as np

        from gradcli.commands.plots.pictures import GRID, Contours

        (first, x), (second, y) = self.runs.items()
        functions = self._functions()
        if len(functions) != 1:
            raise usage("contours need one function", hint="choose one: (…)[0]")
        label, function = functions[0]
        form, descends = self.request.style.form, self.options.descend is not None
        if form in ("json", "csv", "plain") and not descends:
            raise usage(
                f"--{form} is of curves: over one variable",
                hint="gradcli map writes a grid's values; of --descend it is the table of the steps",
            )

        def at(points: Any) -> list[Any]:
            return self._grid(function, (first, second), points[:, 0], points[:, 1])

        path = self._descent(at, [first, second]) if descends else None
        if form in ("json", "csv", "plain"):
            precision = self.request.style.precision
            if form == "json":
                steps = to_json([first, second], self.path, precision)
                output.write_json({"expression": self.source, "descent": steps})
            else:
                output.write(to_text([first, second], self.path, form, precision))
            return
        across, up = np.linspace(*x, GRID), np.linspace(*y, GRID)
        points = (part.ravel() for part in np.meshgrid(across, up))
        grid = self._grid(function, (first, second), *points)
        values, *slopes = (part.reshape(GRID, GRID) for part in grid)
        if not np.isfinite(values).any():
            raise usage("there is no number to draw", hint=f"--{first} FROM:TO says where")
        self.canvas.draw(
            Contours(
                across,
                up,
                values,
                tuple(slopes),
                (first, second),
                label,
                path,
                self.options.surface,
                self.view.title,
            )
        )

    def _grid(self, function: Any, names: tuple[str, str], across: Any, up: Any) -> list[Any]:
        """The value and both derivatives at points."""
        import numpy as np

        from gradcli.columns.streaming.mapped_program import Rows

        x, y = (np.array(part) for part in (across, up))
        with np.errstate(all="ignore"):
            result = Rows(function, self.shared, names)(
                dict(zip(names, (x, y), strict=True)), len(x)
            )
        nothing = np.full(len(x), np.nan)
        value = next(iter(result.values.values()), nothing)
        parts = [value, *[result.gradients.get(name, nothing) for name in names]]
        found = [np.array(part, float) for part in parts]
        for part in found:
            part[list(result.refused)] = np.nan
        return found

    def _descent(self, slopes: Callable[[Any], list[Any]], names: list[str]) -> Any:
        """The points of gradient descent, a row each. slopes: the value and the slopes at points."""
        import numpy as np

        from gradcli.columns.optimize.descents import descend, falling_rate

        def at(x: Any) -> tuple[float, Any]:
            value, *parts = slopes(x[None])[: len(names) + 1]
            return float(value[0]), np.concatenate(parts)

        rate, steps = self.options.descend, self.options.steps
        if not rate > 0:
            raise usage(
                f"--descend {rate:g}: a rate is above 0",
                hint=f"to climb, descend from the negative: gradcli plot {quoted(f'-({self.source})')} …",
            )
        start = np.array(self._point(names))
        method = self.options.method
        made = descend(method, at, start, rate, steps)
        path, point = made.points, made.points[-1]
        if not made.away:
            ends = ", ".join(f"{n} = {p:.6g}" for n, p in zip(names, point, strict=True))
            taken = len(path) - 1
            count = f"{taken} step{'s' * (taken != 1)}"
            table = "; --csv prints the steps" if self.request.style.form == "text" else ""
            output.note(f"after {count} of {rate:g}: {ends}{table}")
        found = np.array(path)
        value, *parts = slopes(found)[: len(names) + 1]
        norms = np.sqrt(sum(np.square(part) for part in parts))
        if made.rises:
            what = f"climbs, from {value[0]:.6g} to {value[-1]:.6g}: its steps are too long"
            if made.away:
                what = f"leaves all bounds after {len(path)} steps"
            lower = falling_rate(method, at, start, rate, steps)
            hint = "start elsewhere" if lower is None else f"--descend {lower:g} falls"
            output.note(f"the descent {what}; {hint}")
        self.path = [Step(k, *row) for k, row in enumerate(zip(found, value, norms, strict=True))]
        return found

    # -- how it looks --------------------------------------------------------------------------------
    def _whole_line(self, names: list[str]) -> str:
        """The line to type for a descent that begins inside of what is drawn."""
        ends = {n: self.runs[n] for n in names}
        given = "".join(f" --{n}={quoted(t)}" for n, t in self.request.texts.items())
        start = ",".join(f"{n}={low + 0.75 * (high - low):.3g}" for n, (low, high) in ends.items())
        rate = f"--descend {self.options.descend:g}"
        return f"as in gradcli plot {quoted(self.source)}{given} {rate} --at {start}"

    def _point(self, names: list[str]) -> list[float]:
        """What --at says: VALUE, or x=VALUE,y=VALUE."""
        from gradcli.commands.request_evaluation import read_value

        if self.options.at is None:
            raise usage("--descend needs a point to start from", hint=self._whole_line(names))
        found = {}
        for item in self.options.at.split(","):
            name, equals, text = item.rpartition("=")
            found[name.strip() if equals else names[0]] = float(read_value(text, "--at"))
        if sorted(found) != sorted(names):
            raise usage(
                f"--at wants a value of {' and of '.join(names)}",
                hint=f"--at {','.join(f'{n}=1' for n in names)}",
            )
        return [found[n] for n in names]


def _derivative(label: str, name: str, order: int, named: str = "", math: bool = False) -> str:
    """What a derivative is called: dV/dx where the function has a name, in mathematics V'(x); else d/dx and
    its text."""
    if not order:
        return label
    power = "" if order == 1 else str(order).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    if named and math and order <= _PRIMES:
        primes = "'" * order
        return f"{named}{primes}({name})"
    if named:
        return f"d{power}{named}/d{name}{power}"
    if _is_long(label):
        label = f"({label})"
    return f"d{power}/d{name}{power} {label}" if len(label) < 30 else f"d{power}/d{name}{power}"


def _is_long(label: str) -> bool:
    """Whether a formula is a sum or a quotient, of which d/dx in front would seem to take the first part."""
    while (outer := re.sub(r"\([^()]*\)", "o", label)) != label:
        label = outer
    return re.search(r"[^\s(,][ ]*[-+/]", label) is not None


def _at_first(columns: Callable[[Any], list[Any]]) -> Callable[[Any], list[Any]]:
    """A function of points with one coordinate, a row each."""
    return lambda points: columns(points[:, 0])

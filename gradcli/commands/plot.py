"""`gradcli plot EXPR`: a function and its derivative as curves, contours, a surface; a table with a curve."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gradcli.commands import output
from gradcli.commands.command_errors import reading_table, usage
from gradcli.commands.declarations import (
    EXPRESSION,
    OUTPUTS,
    Argument,
    Option,
    Options,
    declare,
)
from gradcli.commands.pictures import Canvas
from gradcli.language.located_errors import LanguageError

if TYPE_CHECKING:
    from gradcli.commands.plots.pictures import Line
    from gradcli.commands.request import Request
    from gradcli.engine.system.process import AnyContext

    Interval = tuple[float, float]

_UNSAID = (-10.0, 10.0)  # where a variable runs that nobody said anything of
_DASHES = ((1, 0), (3, 3), (1, 3), (5, 2))


@declare(
    "plot",
    *EXPRESSION,
    Argument("[TABLE]", name="table", complete="files"),
    Option(
        "--order N",
        "Highest derivative drawn: 1 (default); 0 for none.",
        least=0,
        most=6,
        default=1,
    ),
    Option("--at VALUES", "Draw the tangent at a point; where --descend starts: x=1,y=2."),
    Option("--surface", "Draw two variables as a surface."),
    Option("--descend RATE", "Draw the path of gradient descent with this step size.", type=float),
    Option("--steps N", "Steps of --descend.", least=1, most=100_000, default=50),
    Option("--csv", "Print the points as a table.", section=OUTPUTS),
    Option("-o FILE", "Draw into FILE.svg, .png or .pdf.", name="path", complete="files"),
    Option(
        "--theme light|dark",
        "Colours of the picture in a file.",
        choices=("light", "dark"),
        default="light",
    ),
    Option("--width N", "Width in characters; in a file, in tenths of inches.", least=20, most=500),
    Option("--height N", "Height in lines; in a file, in tenths of inches.", least=5, most=500),
    examples=(
        'gradcli plot "x*sin(x)" --x -10:10',
        'gradcli plot "(1-x)**2 + 100*(y-x**2)**2" --x -2:2 --y -1:3 --descend 0.001 --at x=-1,y=2',
        'gradcli plot "y == a*exp(-t/2)" data.csv --a 3 -o fit.svg',
    ),
    open_variables=True,
    operands=2,
)
def command(ctx: AnyContext, request: Request, options: Options) -> None:
    """Draw EXPR and its derivative over an interval: --x FROM:TO.

    Two variables with intervals give a contour plot with arrows along the gradient. With a TABLE,
    `y == EXPR` draws the column y and the curve.
    """
    from gradcli.commands.request_evaluation import set_up

    set_up(ctx, request)
    Plot(request, options).draw()


class Plot:
    """What is drawn. runs: the variables that run, and from where to where. shared: the other values."""

    def __init__(self, request: Request, options: Options) -> None:
        from gradcli.commands.request_evaluation import files_of, read_variable

        self.request, self.options = request, options
        self.canvas = Canvas(
            options.path, request.style, "-o",
            theme=options.theme, wide=options.width, high=options.height,
        )  # fmt: skip
        self.data: tuple[str, Any, Any] | None = None  # the column's name, where, its values
        self.source, self.runs = request.source, self._intervals()
        if options.table is not None:
            with reading_table(options.table):
                self._read(options.table)
        files = files_of(request)
        tensors = {n: read_variable(request, n, files) for n in request.names if n not in self.runs}
        self.shared = {name: tensor.detach().array for name, tensor in tensors.items()}
        for name in request.open_variables:
            if name not in self.runs and name not in request.loaded:
                self.runs[name] = _UNSAID
                output.note(f"{name} goes from -10 to 10; another range: --{name} FROM:TO")
        if not self.runs:
            hint = f"as in --{[*request.names, 'x'][0]} -10:10"
            raise usage("no variable has a range to draw over", hint=hint)
        if len(self.runs) > 2:
            raise usage(
                f"{len(self.runs)} variables have ranges ({', '.join(self.runs)}): draw over two at most",
                hint=f"give one a value, as in --{next(iter(self.runs))} 1",
            )

    def draw(self) -> None:
        """Draw it, where it is wanted."""
        if len(self.runs) == 1:
            self._curves()
        elif self.data is not None:
            raise usage("a table is drawn over one variable", hint="give the others a value")
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

    def _read(self, table: str) -> None:
        """Take in a table: the column of the equation's left side, over that of the variable that runs."""
        import numpy as np

        from gradcli.language.rewritten_sources import split_equation
        from gradcli.tables import Reader
        from gradcli.tables.column_reading import split
        from gradcli.tables.source import STANDARD_INPUT

        request = self.request
        try:
            before, left, right, after = split_equation(request.source)
        except LanguageError:
            raise usage(
                "which column of the table belongs to the curve?",
                hint=f'say it by an equation: gradcli plot "COLUMN == {request.source}" {table}',
            ) from None
        self.source = f"{before}{right}{after}"
        stdin = sys.stdin if table in STANDARD_INPUT else None
        reader = Reader(stdin, request.missing, tell=output.note, reading=request.tables)
        names = reader.tables(table)[0].names
        from gradcli.language import parse
        from gradcli.language.scope_checks import free_names

        open_names = [
            n for n in free_names(parse(self.source)) if n not in request.texts and n in names
        ]
        if len(open_names) != 1:
            known = ", ".join(open_names) or "none"
            raise usage(f"one variable of the curve must be a column of {table}, not {known}",
                        hint=f"its columns are: {', '.join(names)}")  # fmt: skip
        name = open_names[0]
        reader.references = [split(f"{table}:{n}") for n in (name, left)]
        where, values = (np.asarray(reader.value(f"{table}:{n}"), float) for n in (name, left))
        order = np.argsort(where, kind="stable")
        self.data = (left, where[order], values[order])
        self.runs[name] = (float(where.min()), float(where.max()))
        request.open_variables = [n for n in request.open_variables if n not in (name, left)]

    def _functions(self) -> list[tuple[str, Callable[..., Any]]]:
        """The functions to draw, with their names: several where the value is a tuple or a short vector."""
        import numpy as np

        from gradcli.engine.core.tensor import wrap
        from gradcli.language import parse
        from gradcli.language.rewritten_sources import last_items
        from gradcli.transforms.verdicts import function_of

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
            return [(label, whole)]
        if len(shape) == 1 and shape[0] <= 8:
            return [(f"[{i}]", lambda i=i, **t: whole(**t)[i]) for i in range(shape[0])]
        raise usage(
            f"the value has shape {shape}: a curve needs a number",
            hint="sum(…), mean(…), or an element, (…)[0]",
        )

    # -- one variable --------------------------------------------------------------------------------
    def _curves(self) -> None:
        import numpy as np

        from gradcli.commands.plots import curves
        from gradcli.commands.plots.pictures import Curves, Line

        name, (low, high) = next(iter(self.runs.items()))
        order = 0 if self.data is not None and self.options.order == 1 else self.options.order
        lines: list[Line] = []
        functions = self._functions()
        for label, function in functions:
            columns = curves.columns_of(function, name, self.shared, max(order, 1))
            x, found = curves.sample(columns, low, high)
            for k, y in enumerate(found[: order + 1]):
                lines.append(Line(x, y, _derivative(label, name, k), _DASHES[min(k, 3)]))
            if self.options.at is not None:
                lines.append(self._tangent(columns, name, (low, high), label))
        if not any(np.isfinite(line.y).any() for line in lines):
            raise LanguageError(
                f"there is no number to draw for {name} from {low:g} to {high:g}",
                kind="value", usage=False, hint=f"--{name} FROM:TO says where",
            )  # fmt: skip
        form = self.request.style.form
        if form in ("json", "csv", "plain"):
            self._write(name, lines, form)
            return
        shown = [(line.x, line.y) for line in lines if len(line.x) > 2]
        residuals, points = None, ()
        if self.data is not None:
            left, where, values = self.data
            lines.append(Line(where, values, left, points=True))
            points = values
            curve = curves.columns_of(functions[0][1], name, self.shared, 0)(where)[0]
            residuals = Line(where, values - curve, "residual", points=True)
            spread = float(np.sqrt(np.nanmean(residuals.y**2)))
            output.note(f"the points are {spread:.4g} from the curve (root of the mean square)")
        y = curves.limits(shown, points)
        self.canvas.draw(Curves(lines, (low, high), y, name, residuals))

    def _tangent(self, columns: Any, name: str, ends: Interval, label: str) -> Line:
        """The line through the point of --at with the slope that the function has there."""
        import numpy as np

        from gradcli.commands.plots.pictures import Line

        at = self._point([name])[0]
        value, slope = (float(column[0]) for column in columns(np.array([at]))[:2])
        if not np.isfinite(value + slope):
            raise usage(f"--at: there is no slope at {name} = {at:g}")
        x = np.array(ends)
        return Line(x, value + slope * (x - at), f"tangent at {at:g}: slope {slope:.6g}", (5, 2))

    def _write(self, name: str, lines: list[Line], form: str) -> None:
        """The points as numbers: a table of x and of the lines over the same x."""
        import numpy as np

        lines = [line for line in lines if len(line.x) == len(lines[0].x)]
        precision = self.request.style.precision
        if form == "json":
            points = {name: lines[0].x} | {line.label: line.y for line in lines}
            found = {label: output.to_json(array, precision) for label, array in points.items()}
            output.write_json({"expression": self.source, "points": found})
            return
        separator = "\t" if form == "plain" else ","
        quoted = [
            f'"{t}"' if separator in t else t for t in (name, *[line.label for line in lines])
        ]
        rows = [
            output.numerals(np.asarray(c), precision)
            for c in (lines[0].x, *[line.y for line in lines])
        ]
        output.write(
            "\n".join([separator.join(quoted), *map(separator.join, zip(*rows, strict=True))])
        )

    # -- two variables -------------------------------------------------------------------------------
    def _contours(self) -> None:
        import numpy as np

        from gradcli.commands.plots.pictures import GRID, Contours

        (first, x), (second, y) = self.runs.items()
        functions = self._functions()
        if len(functions) != 1:
            raise usage("contours are drawn of one function", hint="choose one: (…)[0]")
        label, function = functions[0]
        if self.request.style.form in ("json", "csv", "plain"):
            raise usage(
                f"--{self.request.style.form} is of curves: over one variable",
                hint="gradcli map writes a grid's values",
            )
        across, up = np.linspace(*x, GRID), np.linspace(*y, GRID)
        grid = self._grid(function, (first, second), across, up)
        values, *slopes = (part.reshape(GRID, GRID) for part in grid)
        if not np.isfinite(values).any():
            raise usage("there is no number to draw", hint=f"--{first} FROM:TO says where")
        descends = self.options.descend is not None
        path = self._descent(function, (first, second)) if descends else None
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
            )
        )

    def _grid(self, function: Any, names: tuple[str, str], across: Any, up: Any) -> list[Any]:
        """The value and both derivatives at all points of a grid, row by row."""
        import numpy as np

        from gradcli.columns.streaming.mapped_program import Rows

        x, y = (part.ravel() for part in np.meshgrid(across, up))
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

    def _descent(self, function: Any, names: tuple[str, str]) -> Any:
        import numpy as np

        point = np.array(self._point(list(names)))
        path = [point]
        for _ in range(self.options.steps):
            _, *slope = self._grid(function, names, point[:1], point[1:])
            point = point - self.options.descend * np.concatenate(slope)
            if not np.isfinite(point).all() or np.abs(point).max() > 1e150:
                output.note(
                    f"the descent leaves all bounds after {len(path)} steps: a smaller --descend?"
                )
                break
            path.append(point)
        else:
            ends = ", ".join(f"{n} = {p:.6g}" for n, p in zip(names, point, strict=True))
            output.note(f"after {self.options.steps} steps of {self.options.descend:g}: {ends}")
        return np.array(path)

    # -- how it looks --------------------------------------------------------------------------------
    def _point(self, names: list[str]) -> list[float]:
        """What --at says: VALUE, or x=VALUE,y=VALUE."""
        from gradcli.commands.request_evaluation import read_value

        if self.options.at is None:
            raise usage(
                "--descend: from where?", hint=f"--at {','.join(f'{n}=VALUE' for n in names)}"
            )
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


def _derivative(label: str, name: str, order: int) -> str:
    if not order:
        return label
    power = "" if order == 1 else str(order).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"d{power}/d{name}{power} {label}" if len(label) < 30 else f"d{power}/d{name}{power}"

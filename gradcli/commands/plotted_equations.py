"""What `plot` draws of equations: the curve of one of two variables, both sides of one of one variable."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gradcli.commands import output
from gradcli.commands.command_errors import quoted, usage
from gradcli.language.located_errors import LanguageError

if TYPE_CHECKING:
    from gradcli.commands.pictures import View
    from gradcli.commands.plots.pictures import Curves, Line
    from gradcli.language.program import Program

    Interval = tuple[float, float]

TANGENT = re.compile(
    r"(tangent at .*), (\w+ = .*)"
)  # its label; its equation stands in the legend alone
_FINE, _COARSE = 241, 121  # lines of a grid, and of one on which a curve is sought
_TURNS = 0.618034, 0.414214  # which make the lines across and up uneven in different ways
_ALIKE = 2  # how much longer one axis may be than the other where both have one scale


def line_text(name: str, slope: float, height: float) -> str:
    """The right side of a line's equation, `9*x - 15`."""
    if abs(height) < 1e-12 * abs(slope):
        height = 0.0
    if not slope:
        return f"{height:.6g}"
    head = {1.0: "", -1.0: "-"}.get(slope, f"{slope:.6g}*") + name
    return head if not height else f"{head} {'-' if height < 0 else '+'} {abs(height):.6g}"


class Equations:
    """The equations that a program ends in. program: gives all sides, left before right."""

    def __init__(self, program: Program, relations: Sequence[str]) -> None:
        self.program, self.relations = program, relations
        spans = [program.span(row) for row in program.children(len(program) - 3)]
        self.sides = [program.source[slice(*span)] for span in spans]
        before = program.source[: spans[0][0]]  # the definitions of what the equations call
        self.before = before[: max(map(before.rfind, ";\n")) + 1] + " " * (";" in before)
        pairs = zip(spans[::2], spans[1::2], strict=True)
        self.labels = [program.source[one[0] : other[1]] for one, other in pairs]

    def both_sides(self, loaded: Mapping[str, Any]) -> list[tuple[str, Callable[..., Any]]]:
        """Each side with its text, as a function of the variables."""
        from gradcli.transforms.verdicts import function_of

        whole = function_of(self.program, loaded)
        return [(text, lambda i=i, **t: whole(**t)[i]) for i, text in enumerate(self.sides)]

    def differences(self, loaded: Mapping[str, Any]) -> list[tuple[str, Callable[..., Any]]]:
        """Each equation with its text, and left minus right as a function of the variables."""
        from gradcli.transforms.verdicts import function_of

        whole = function_of(self.program, loaded)

        def difference(i: int, **tensors: Any) -> Any:
            sides = whole(**tensors)
            return sides[2 * i] - sides[2 * i + 1]

        return [(text, lambda i=i, **t: difference(i, **t)) for i, text in enumerate(self.labels)]

    def say_sides(self, runs: Mapping[str, Interval], given: Mapping[str, str]) -> None:
        """Say what the curves of an equation of one variable are. given: the values of others."""
        ((name, (low, high)),) = runs.items()
        root = ""
        if len(self.labels) == 1 and self.relations == ["eq"]:
            others = "".join(f" --{n} {quoted(text)}" for n, text in given.items())
            line = quoted(f"{self.before}{self.labels[0]}")
            root = f": gradcli root {line} --{name} {low:g}:{high:g}{others} --all"
        output.note(f"both sides are drawn; they are equal where the curves cross{root}")


def equations_of(source: str) -> Equations | None:
    """The equations and inequalities that a program ends in; None where it ends in a value."""
    from gradcli.language import parse
    from gradcli.language.equations import RELATIONS, sides
    from gradcli.language.rewritten_sources import are_relations

    found = are_relations(source)
    if not any(found):
        return None
    if not all(found):
        raise usage(
            "an equation stands beside a value: draw equations, or values",
            hint="the curve of a value is an equation, too: y == VALUE",
        )
    program, words = sides(parse(source), RELATIONS)
    for text, word in zip(Equations(program, words).labels, words, strict=True):
        if word != "eq":
            output.note(f"of {text} the edge is drawn, where both sides are equal")
    return Equations(program, words)


def right_side(source: str, unsaid: Sequence[str], running: Sequence[str]) -> tuple[str, str]:
    """`y == sin(x)` as (`sin(x)`, y): the program whose value a name is, and that name, or "".

    unsaid: the variables without a value or a range; running: those with a range, and these. `x` stays a
    variable: in `x == y**2` it is what goes across, not the name of a value.
    """
    from gradcli.language import parse
    from gradcli.language.equations import sides
    from gradcli.language.rewritten_sources import split_equation
    from gradcli.language.scope_checks import free_names

    try:
        words = sides(parse(source))[1] if len(running) > 1 else []
    except LanguageError:
        words = []
    if len(words) != 1:
        return source, ""
    before, left, right, after = split_equation(source)
    for name, other in ((left, right), (right, left)):
        if name in unsaid and name != "x" and name not in free_names(parse(f"{before}{other}")):
            return f"{before}{other}{after}", name
    return source, ""


class ImplicitCurves:
    """The curves of equations of two variables. names: what goes across, and what up.

    said: the ranges that were given; the others are found, and noted.
    """

    def __init__(
        self,
        equations: Equations,
        names: Sequence[str],
        said: Mapping[str, Interval],
        shared: Mapping[str, Any],
        loaded: Mapping[str, Any],
        view: View,
    ) -> None:
        from gradcli.commands.plots import implicit

        self.names, self.view, self.source = names, view, equations.program.source
        self.functions = [
            (text, self._of_arrays(function, shared))
            for text, function in equations.differences(loaded)
        ]
        x, y = (
            said.get(name) or self._of_logarithm(k) for k, name in zip("xy", names, strict=True)
        )
        self.ends = implicit.place(
            lambda *ends: [self._curve(f, ends, _COARSE) for _, f in self.functions], x, y
        )
        unsaid = [
            f"{name} goes from {low:g} to {high:g}"
            for name, (low, high) in zip(names, self.ends, strict=True)
            if name not in said
        ]
        if unsaid:
            write = " ".join(f"--{name} FROM:TO" for name in names if name not in said)
            output.note(f"{' and '.join(unsaid)}; for another range write {write}")
        self.curves = [(text, *self._curve(f, self.ends, _FINE)) for text, f in self.functions]
        where = " and ".join(
            f"{name} from {low:g} to {high:g}"
            for name, (low, high) in zip(names, self.ends, strict=True)
        )
        for text, x_, _ in self.curves:
            if not len(x_) and len(self.curves) > 1:
                output.note(f"no point of {text} was found for {where}")
        if not any(len(found) for _, found, _ in self.curves):
            texts = ", ".join(text for text, _ in self.functions)
            raise LanguageError(
                f"no point of {texts} was found for {where}",
                kind="value", usage=False,
                hint=f"{' '.join(f'--{name} FROM:TO' for name in names)} says where; "
                "a single point is not seen",
            )  # fmt: skip

    def _of_logarithm(self, which: str) -> Interval | None:
        return (0.1, 10.0) if self.view.log(which) else None

    def _of_arrays(self, function: Callable[..., Any], shared: Mapping[str, Any]) -> Any:
        """A function of arrays: NaN where the program is refused."""
        import numpy as np

        from gradcli.columns.streaming.mapped_program import Rows

        rows = Rows(function, shared, ())

        def of_arrays(x: Any, y: Any) -> Any:
            x, y = np.broadcast_arrays(np.asarray(x, float), np.asarray(y, float))
            result = rows(dict(zip(self.names, (x.copy(), y.copy()), strict=True)), len(x))
            part = next(iter(result.values.values()), np.full(len(x), np.nan))
            found = np.array(np.broadcast_to(part, np.shape(part)))
            if found.ndim != 1 or found.dtype.kind == "c":
                raise usage(
                    "the sides of an equation that is drawn are numbers",
                    hint="sum(…), mean(…), abs(…), or an element, (…)[0]",
                )
            found = found.astype(float)
            found[list(result.refused)] = np.nan
            return found

        return of_arrays

    def _curve(self, function: Any, ends: Sequence[Interval], points: int) -> tuple[Any, Any]:
        import numpy as np

        from gradcli.commands.plots import implicit

        lines = [
            implicit.grid(e, self.view.log(which), points, turn)
            for which, e, turn in zip("xy", ends, _TURNS, strict=True)
        ]
        with np.errstate(all="ignore"):
            return implicit.curve(function, *lines)

    def picture(self, at: Sequence[float] | None) -> Curves:
        """The curves; at: where a tangent is drawn, or None."""
        from gradcli.commands.plots.pictures import Curves, Line

        lines = [Line(x, y, text) for text, x, y in self.curves if len(x)]
        if at is not None:
            lines += self._tangent(at, len(lines))
        across, up = (
            self.view.axis(which, ends, name)
            for which, ends, name in zip("xy", self.ends, self.names, strict=True)
        )
        spans = [axis.ends[1] - axis.ends[0] for axis in (across, up)]
        alike = not (across.log or up.log) and max(spans) <= _ALIKE * min(spans)
        return Curves(lines, across, up, title=self.view.title, alike=alike)

    def _tangent(self, at: Sequence[float], colour: int) -> list[Line]:
        """The line through a point of the first curve, along it, and the point."""
        import numpy as np

        from gradcli.commands.plots.pictures import Line

        _, x, y = self.curves[0]
        spans = [high - low for low, high in self.ends]
        away = np.hypot((x - at[0]) / spans[0], (y - at[1]) / spans[1])
        nearest = int(np.nanargmin(away)) if len(x) else 0
        step = 1e-6 * np.array(spans)
        function = self.functions[0][1]
        points = np.array(at)[:, None] + step[:, None] * [[0, 1, -1, 0, 0], [0, 0, 0, 1, -1]]
        value, *around = function(*points)
        slope = np.array([around[0] - around[1], around[2] - around[3]]) / (2 * step)
        reach = np.abs(value) / max(float(np.abs(slope * spans).sum()), 1e-300)
        if not reach <= 1e-6:
            place = ",".join(
                f"{n}={p[nearest]:.8g}" for n, p in zip(self.names, (x, y), strict=True)
            )
            raise usage(
                "--at: the curve does not go through this point", hint=f"near it: --at {place}"
            )
        along = np.array([-slope[1], slope[0]])
        if not np.isfinite(along).all() or not along.any():
            raise usage("--at: the curve has no tangent there")
        along = along / np.max(np.abs(along) / spans)
        steep = float(along[1] / along[0]) if along[0] else 0.0
        across, up = self.names
        said = f"slope {steep:.6g}, {up} = {line_text(across, steep, at[1] - steep * at[0])}"
        if not along[0]:
            said = f"vertical, {across} = {at[0]:.6g}"
        place = ", ".join(f"{n} = {p:g}" for n, p in zip(self.names, at, strict=True))
        t = np.array([-1.0, 1.0])
        x, y = (p + t * a for p, a in zip(at, along, strict=True))
        point = Line(np.array(at[:1]), np.array(at[1:]), "", points=True, colour=colour)
        return [Line(x, y, f"tangent at {place}: {said}", (5, 2), colour=colour), point]

    def write(self, style: output.Style) -> None:
        """The points as numbers: pieces of curves."""
        import numpy as np

        if style.form == "json":
            curves = []
            for text, x, y in self.curves:
                points = dict(zip(self.names, (x, y), strict=True))
                points = {n: output.to_json(p, style.precision) for n, p in points.items()}
                curves.append({"equation": text, "points": points})
            output.write_json({"expression": self.source, "curves": curves})
            return
        separator = "\t" if style.form == "plain" else ","
        many = len(self.curves) > 1
        rows = [separator.join([*["equation"] * many, "piece", *self.names])]
        for number, (_, x, y) in enumerate(self.curves):
            piece = np.cumsum(np.isnan(x)) + 1
            there = ~np.isnan(x)
            numbers = [output.numerals(p[there], style.precision) for p in (x, y)]
            for k, *point in zip(piece[there].tolist(), *numbers, strict=True):
                rows.append(separator.join([*[str(number + 1)] * many, str(k), *point]))
        output.write("\n".join(rows))

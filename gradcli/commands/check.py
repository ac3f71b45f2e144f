"""`gradcli check EXPR`: the gradients of an expression against numerical ones, or against a formula."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from gradcli.commands import output
from gradcli.commands.command_errors import usage
from gradcli.commands.compiled_evaluation import large_table
from gradcli.commands.declarations import BY_ROWS, OPEN, Option, Options, declare
from gradcli.commands.free_points import Point, note_guesses, point, wanted_names
from gradcli.commands.request import Request
from gradcli.commands.request_evaluation import ENGINE_ERRORS, apart
from gradcli.language.located_errors import LanguageError, error_at

if TYPE_CHECKING:
    import click

    from gradcli.transforms.finite_differences import Checked
    from gradcli.transforms.tolerances import Comparison
    from gradcli.transforms.verdicts import Verdict

TRIES = 20  # random points until one has finite values
# Where values are made up: how far from 0 the points lie. One point hides what holds there alone.
SPREAD = (1.0, 1.0, 1.0, 4.0, 4.0, 0.1)
LIMITS = "-1,1"  # between which they lie, if --range does not say
SHAPES = ((5,), (2, 5))  # that scalars take at other points
OTHER_SIZE = (7,)
KEEP_OUT = {"detach", "detach_", "data", "item", "tolist", "numpy", "round"} | {
    *("no_grad", "inference_mode", "set_grad_enabled")
}


@declare(
    "check",
    *OPEN,
    Option("--second-order", "Check the second derivatives too."),
    Option("--samples N", "Check at N random points instead.", least=1),
    Option("--range A,B", "Where they lie."),
    Option("--against EXPR2", "A gradient by --wrt, to be compared with the true one."),
    Option("--rtol FLOAT", "Relative tolerance (1e-6; 1e-9 with --against).", type=float),
    Option("--atol FLOAT", "Absolute tolerance (at most 1e-8 of the largest element).", type=float),
    BY_ROWS,
    examples=(
        'gradcli check "sum(sin(x)*exp(x))" --x 1,2,3',
        'gradcli check "x**3" --against "3*x**2" --wrt x --samples 5',
    ),
    open_variables=True,
)
def command(ctx: click.Context, request: Request, options: Options) -> None:
    """Check the gradients of EXPR against numerical ones, in float64; exit 1 where they differ.

    Variables without values get random ones.
    """
    against, samples = options.against, options.samples
    rtol, atol = options.rtol, options.atol
    if (table := large_table(request, options.by_rows)) is not None:
        others = {"--shape": request.shapes, "--samples": options.samples, "--against": against}
        for option, given in {
            **others,
            "--second-order": options.second_order,
            "--atol": atol,
        }.items():
            if given:
                raise usage(f"{option} does not go with --by-rows", hint="leave out one of them")
        from gradcli.commands.large_columns import check_by_rows
        from gradcli.streaming.passes import Threads

        _report(ctx, request, [check_by_rows(ctx, request, table, Threads(), rtol)])
        return
    points, wanted = _asked(ctx, request, samples, options.range, against)
    if against is not None:
        _compare(ctx, request, points, wanted[0], against, rtol, atol)
        return
    from gradcli.transforms.verdicts import verdicts

    reports: list[Verdict] = []
    for number, arrays in enumerate(points):
        # Second derivatives cost much more; the first points have all the sizes that there are.
        second = options.second_order and (number < len(SHAPES) + 1 or samples is not None)
        how: dict[str, Any] = {"rtol": rtol, "atol": atol, "second_order": second}
        with _checked(request, arrays):
            reports += verdicts(
                request.program, arrays, wanted, request.loaded, number=number, **how
            )
        if not reports[-1].ok:
            break  # one point is enough to be wrong at
    _report(ctx, request, reports, len(points))


def _asked(
    ctx: click.Context,
    request: Request,
    samples: int | None,
    interval: str | None,
    against: str | None,
) -> tuple[list[dict[str, Any]], list[str]]:
    """The points to check at, and the variables to differentiate by."""
    import numpy as np

    from gradcli.language import parse
    from gradcli.system import dtypes
    from gradcli.transforms.switches import intervals

    shape_at = None if against is None else _formula_shape(request, against)
    suits = None if shape_at is None else _suits(request, shape_at)
    exact = None if shape_at is None else _suits(request, shape_at, exact=True)
    where = point(ctx, request, *(s for s in (exact, suits) if s))
    dtypes.set_default_dtype(dtypes.float64)
    where.arrays = {n: _double(a) for n, a in where.arrays.items()}
    wanted = wanted_names(request, where)
    note_guesses(where)
    if against is not None and len(wanted) != 1:
        known = ", ".join(wanted)
        raise usage(
            f"--against is a gradient by one variable (there are: {known})", hint="add --wrt"
        )
    random = [n for n in where.arrays if n not in where.given or (samples and n in wanted)]
    spread = SPREAD if random and not samples else (1.0,) * (samples or 1)
    limits, anywhere = _limits(interval or LIMITS), interval is None
    if not anywhere:
        spread = (1.0,) * len(spread)
    readings = [[] if request.shapes else [n for n in random if n not in where.given]]
    if against is not None and shape_at is not None and readings[0]:
        readings = _readings(request, where, wanted[0], readings[0], against, shape_at)
    rng = np.random.default_rng((request.manual_seed or 0) % 2**64)
    around = intervals(map(parse, filter(None, [request.source, against]))) if anywhere else []
    drawn = partial(_drawn, where, random, rng=rng, around=around)
    points = list(_points(request, where, random, readings, spread, limits, suits, drawn))
    if random and around and not samples:
        points += _on_other_sides(request, where, against, points, around, suits, drawn)
    return points, wanted


@contextmanager
def _checked(request: Request, arrays: dict[str, Any]) -> Iterator[None]:
    """Where gradients are checked at a point: what is refused there is an error of the expression's."""
    import numpy as np

    from gradcli.transforms.finite_differences import NotFinite

    try:
        with np.errstate(all="ignore"), apart(request):
            yield
    except NotFinite as error:
        raise _outside(error, arrays, request) from None
    except ENGINE_ERRORS as error:
        raise error_at(error, source=request.source) from error


def _outside(error: ArithmeticError, arrays: dict[str, Any], request: Request) -> Exception:
    """The refusal to check a gradient where the value itself is not finite."""
    return error_at(
        RuntimeError(f"{error}: no gradient can be checked at {_values(arrays, request)}"),
        source=request.source,
        hint="take a point inside the domain",
    )


def _limits(text: str) -> tuple[float, float]:
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise usage(f"--range wants A,B, not {text!r}", hint="as in --range 0.5,2") from None
    if not low < high:
        raise usage(f"--range: {low:g} is not less than {high:g}")
    return low, high


def _double(array: Any) -> Any:
    import numpy as np

    kind = array.dtype.kind
    if kind in "fc":
        return np.asarray(array, np.complex128 if kind == "c" else np.float64)
    return array


def _formula_shape(
    request: Request, text: str
) -> Callable[[Mapping[str, Any]], tuple[int, ...] | None]:
    """The shape of a formula's value at a point; None where it has no value."""
    from gradcli.core.promotion import OPERATION_ERRORS
    from gradcli.core.tensor import wrap
    from gradcli.language import parse
    from gradcli.symbolic.formula_check import formula_at
    from gradcli.symbolic.generic_points import quiet

    formula = parse(text)
    free = frozenset(formula.free_variables())

    def shape_at(arrays: Mapping[str, Any]) -> tuple[int, ...] | None:
        values = {n: wrap(a) for n, a in arrays.items() if n in free}
        try:
            with quiet():
                return tuple(formula_at(formula, {**request.loaded, **values}).shape)
        except (*OPERATION_ERRORS, LanguageError):
            return None

    return shape_at


def _suits(
    request: Request,
    shape_at: Callable[[Mapping[str, Any]], tuple[int, ...] | None],
    exact: bool = False,
) -> Callable[[Mapping[str, Any]], bool]:
    """Whether a formula can be the gradient at a point: it has a value there, and the variable's shape.

    exact: not even a single number does for an array.
    """

    def suits(arrays: Mapping[str, Any]) -> bool:
        names = [n for n in request.wrt or arrays if n in arrays and n not in request.no_grad]
        found = shape_at(arrays)
        return found is not None and (
            (not exact and set(found) <= {1}) or any(found == arrays[n].shape for n in names)
        )

    return suits


def _readings(
    request: Request,
    where: Point,
    name: str,
    scalars: list[str],
    text: str,
    shape_at: Callable[[Mapping[str, Any]], tuple[int, ...] | None],
) -> list[list[str]]:
    """Which scalars are arrays at other points, where a formula is to be the gradient by a variable.

    It may be meant for a number among arrays (`-2*sum(x - m)` for `sum((x - m)**2)` by m), for an
    array among numbers, or for arrays of one size (`2*(x - y)/x.numel()` for a loss).
    """
    from gradcli.symbolic.formula_check import compare_formula
    from gradcli.symbolic.generic_points import sample
    from gradcli.transforms.verdicts import function_of

    if name in where.given:
        return [[]]
    function = function_of(request.program, request.loaded)
    others = [n for n in scalars if n != name]

    def at(sizes: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
        return where.arrays | {n: sample(of, k) for k, (n, of) in enumerate(sizes.items())}

    def shapes(names: list[str], size: tuple[int, ...] = SHAPES[0]) -> tuple[Any, Any]:
        """The shapes of the program's value, and of the formula's."""
        arrays = at(dict.fromkeys(names, size))
        value = _value_shape(function, arrays)
        return value, None if value is None else shape_at(arrays)

    same = others and shapes(scalars) == ((), SHAPES[0])
    if same:
        arrays = at(dict.fromkeys(scalars, SHAPES[0]))
        try:
            if compare_formula(request.program, text, arrays, name, request.loaded).ok:
                return [scalars]
        except (*ENGINE_ERRORS, LanguageError, ArithmeticError):
            pass
    value, given = shapes(others)
    if value == () and given is not None and set(given) <= {1}:
        sizes = {**dict.fromkeys(others, SHAPES[0]), name: OTHER_SIZE}
        if _value_shape(function, at(sizes)) is None:
            # Its size is that of the others, or it is a number.
            return [others] if shapes(others, SHAPES[1])[0] == () else [[]]
    if same:
        return [scalars] if shapes([name])[1] == () else [[name], scalars]
    return [[name]]


def _points(
    request: Request,
    where: Point,
    random: list[str],
    readings: Sequence[Collection[str]],
    spread: Sequence[float],
    limits: tuple[float, float],
    suits: Callable[[Mapping[str, Any]], bool] | None,
    drawn: Callable[..., Iterator[dict[str, Any]]],
) -> Iterator[dict[str, Any]]:
    """The points: the given one, or random ones where the value is finite, some of them of other sizes.

    readings: the scalars that may be arrays then, in turn. spread: for each point, how far apart.
    suits: what else must hold at points of other sizes. drawn: random points of some shapes and ends.
    """
    from gradcli.symbolic.shape_inference import larger
    from gradcli.transforms.verdicts import function_of

    function = function_of(request.program, request.loaded)
    shapes = {n: a.shape for n, a in where.arrays.items()}
    guessed = [larger(shapes, where.guessed)] * 2
    for number, factor in enumerate(spread):
        vectors = readings[number // 3 % len(readings)]
        others = (
            guessed
            if where.guessed
            else [
                {n: of if n in vectors and not s else s for n, s in shapes.items()} for of in SHAPES
            ]
        )
        if not random:
            yield dict(where.arrays)
            continue
        ends = (limits[0] * factor, limits[1] * factor)
        tries = [shapes]
        if number % 3:
            tries = [
                sizes for sizes in others[: number % 3][::-1] if sizes not in ({}, shapes)
            ] + tries
        yield next(
            (
                arrays
                for sizes in tries
                for arrays in drawn(sizes, ends)
                if _is_finite(function, arrays)
                and (sizes is shapes or suits is None or suits(arrays))
            ),
            dict(where.arrays),
        )


def _on_other_sides(
    request: Request,
    where: Point,
    against: str | None,
    points: Sequence[dict[str, Any]],
    around: Sequence[tuple[float, float]],
    suits: Callable[[Mapping[str, Any]], bool] | None,
    drawn: Callable[..., Iterator[dict[str, Any]]],
) -> Iterator[dict[str, Any]]:
    """Points at which the program, or the formula, takes other branches than at the given ones."""
    from gradcli.language import parse
    from gradcli.transforms.switches import FAR, MOST, Sides
    from gradcli.transforms.verdicts import function_of

    programs = [request.program, *([parse(against)] if against else [])]
    functions = [function_of(p, request.loaded) for p in programs]
    known = Sides(functions)
    for arrays in points:
        known.is_new(arrays)
    if not known.seen:
        return
    shapes = {n: a.shape for n, a in where.arrays.items()}
    count = 0
    for ends in around:
        for arrays in islice(drawn(shapes, ends), 3):
            far = ends[1] in FAR
            if (
                _is_finite(functions[0], arrays)
                and (suits is None or suits(arrays))
                and known.is_new(arrays, far)
            ):
                yield arrays
                count += 1
            if count == MOST:
                return


def _drawn(
    where: Point,
    random: list[str],
    shapes: dict[str, tuple[int, ...]],
    limits: tuple[float, float],
    rng: Any,
    around: Sequence[tuple[float, float]],
) -> Iterator[dict[str, Any]]:
    """Random arrays: of both signs, then positive, with well-conditioned square matrices, and farther off."""
    import numpy as np

    from gradcli.symbolic.generic_points import sample

    for tried, (low, high) in enumerate([*[limits] * TRIES, *(e for e in around for _ in "12")]):
        arrays = dict(where.arrays)
        for k, n in enumerate(random):
            if arrays[n].dtype.kind not in "fc":
                continue
            drawn = rng.uniform(low, high, shapes[n])
            if TRIES // 3 <= tried < TRIES:  # a domain like that of log or sqrt
                drawn = np.abs(drawn) + 0.1
            if 2 * TRIES // 3 <= tried < TRIES:  # a domain like that of cholesky
                drawn = sample(shapes[n], k + tried)
            if arrays[n].dtype.kind == "c":
                drawn = drawn + 1j * rng.uniform(low, high, shapes[n])
            arrays[n] = np.asarray(drawn)
        yield arrays


def _is_finite(function: Any, arrays: dict[str, Any]) -> bool:
    """Whether the program runs there, and its value is finite."""
    import numpy as np

    values = _outputs(function, arrays)
    return values is not None and all(np.isfinite(v.array).all() for v in values)


def _value_shape(function: Any, arrays: dict[str, Any]) -> tuple[int, ...] | None:
    """The shape of the program's value at a point; None if it does not run, or has several values."""
    values = _outputs(function, arrays)
    return tuple(values[0].shape) if values and len(values) == 1 else None


def _outputs(function: Any, arrays: dict[str, Any]) -> list[Any] | None:
    """The program's values at a point; None if it does not run."""
    import numpy as np

    from gradcli.core.tensor import wrap
    from gradcli.transforms.finite_differences import outputs_of

    with np.errstate(all="ignore"):
        try:
            return outputs_of(function(**{n: wrap(a) for n, a in arrays.items()}))
        except (LanguageError, RuntimeError):
            return None


# -- what it says ---------------------------------------------------------------------------------
def _report(ctx: click.Context, request: Request, reports: list[Verdict], points: int = 1) -> None:
    ok = all(r.ok for r in reports)
    if request.style.form == "json":
        output.write_json(_to_json(request, reports, ok))
    else:
        output.write("\n".join(_lines(request, reports, points)))
    if not ok:
        ctx.exit(1)


def _at(index: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, index))}]" if index else ""


def _values(arrays: Mapping[str, Any], request: Request) -> str:
    return ", ".join(f"{n} = {output.to_text(a, request.style)}" for n, a in arrays.items())


def _number(value: Any, request: Request) -> str:
    import numpy as np

    return output.to_text(np.asarray(value)[()], request.style)


def _lines(request: Request, reports: list[Verdict], points: int) -> Iterator[str]:
    many = points > 1
    for report in reports:
        what = "second derivative" if report.second else "gradient"
        for name, checked in report.by.items():
            if checked.ok and many and not checked.kinks:
                continue
            yield from _variable_lines(request, name, checked, what, report)
        if not report.ok and many:
            yield f"  at {_values(report.arrays, request)}"
        if not report.ok and report.part is not None:
            yield from _blame_lines(request, report.part)
        elif not (report.ok or report.second or report.at_edge):
            yield from _detached_lines(request)
    if many and all(r.ok for r in reports):
        worst = max((c.error for r in reports for c in r.by.values()), default=0.0)
        yield f"ok: {points} points, max error {worst:.1e}"


def _variable_lines(
    request: Request, name: str, checked: Checked, what: str, report: Verdict
) -> Iterator[str]:
    for kink in checked.kinks:
        taken = _number(kink.analytical, request)
        place = "jump" if kink.jump else "kink"
        yield (
            f"{name}{_at(kink.index)} stands on a {place}: slope {kink.left:.6g} to the left, "
            f"{kink.right:.6g} to the right; the gradient takes {taken}"
        )
    shown = what if what != "gradient" else ""
    if checked.ok:
        if checked.triangular:
            yield f"{name}: one triangle of it is read; the gradient is that of symmetric changes"
        suffix = f" {shown}" if shown else ""
        size = checked.analytical.size
        sample = (
            "" if checked.seen == size else f"; {checked.seen} of {size} elements, and all together"
        )
        yield f"ok: {name}{suffix} (max error {checked.error:.1e}, {checked.method}{sample})"
        return
    i = checked.index
    verdict = "no slope to check" if checked.at_edge else f"wrong {what}"
    yield (
        f"{verdict}: {name}{_at(i)}: analytical {_number(checked.analytical[i], request)}, "
        f"numerical {_number(checked.numerical[i], request)} (relative error {checked.error:.1e})"
    )
    if checked.at_edge:
        yield "  at the edge of its domain a gradient cannot be checked; take a point inside"
    if checked.analytical.size > 1:
        yield f"  analytical {output.to_text(checked.analytical, request.style)}"
        yield f"  numerical  {output.to_text(checked.numerical, request.style)}"


def _blame_lines(request: Request, part: Any) -> Iterator[str]:
    where = ""
    if part.span is not None:
        start, end = part.span
        where = f" in `{request.source[start:end]}`"
    yield (
        f"  to blame: {part.name}{where}: its own gradient is {part.analytical:.6g}, "
        f"by differences {part.numerical:.6g}"
    )


def _detached_lines(request: Request) -> Iterator[str]:
    words = {w for _, w, _, _ in request.program.walk() if isinstance(w, str)}
    found = sorted(words & KEEP_OUT)
    if found:
        yield f"  every operation is right by itself; {', '.join(found)} keeps gradients out"
    elif words & {"grad", "backward"} and "create_graph" not in request.source:
        yield "  every operation is right by itself; without create_graph=True slopes are constants"
    else:
        yield "  every operation is right by itself"


def _to_json(request: Request, reports: list[Verdict], ok: bool) -> dict[str, Any]:
    firsts = [r for r in reports if not r.second]
    shown = next((r for r in firsts if not r.ok), firsts[0])
    inputs = {n: _input_json(c) for n, c in shown.by.items()}
    made: dict[str, Any] = {"expression": request.source, "ok": ok, "wrt": inputs}
    made |= {"inputs": inputs, "points": len(firsts)}  # inputs: the name of 0.1.0
    seconds = [r for r in reports if r.second]
    if seconds:
        worst = next((r for r in seconds if not r.ok), seconds[0])
        made["second_order"] = {n: _input_json(c) for n, c in worst.by.items()}
    if shown.part is not None:
        span = shown.part.span
        made["blame"] = {"operator": shown.part.name, "span": None if span is None else list(span)}
    return made


def _input_json(checked: Checked) -> dict[str, Any]:
    return {
        "ok": checked.ok,
        "max_error": output.to_json(checked.error),
        "analytical": output.to_json(checked.analytical),
        "numerical": output.to_json(checked.numerical),
        "method": checked.method,
        "kinks": [
            {
                "index": list(k.index),
                "left": output.to_json(k.left),
                "right": output.to_json(k.right),
                "jump": k.jump,
            }
            for k in checked.kinks
        ],
    }


# -- a formula of the user's ----------------------------------------------------------------------
def _compare(
    ctx: click.Context,
    request: Request,
    points: list[dict[str, Any]],
    name: str,
    text: str,
    rtol: float | None,
    atol: float | None,
) -> None:
    """Compare the gradient with a formula at the points, up to one where they differ."""
    from gradcli.symbolic.formula_check import compare_formula
    from gradcli.transforms.tolerances import RTOL

    how: dict[str, Any] = {"rtol": RTOL if rtol is None else rtol, "atol": atol}
    agreed: list[dict[str, Any]] = []
    for number, arrays in enumerate(points):
        with _checked(request, arrays):
            found = compare_formula(
                request.program, text, arrays, name, request.loaded, says=number == 0, **how
            )
        if not found.ok:
            break
        agreed.append(arrays)
    if request.style.form == "json":
        by = {
            name: {
                "max_error": output.to_json(found.error),
                "analytical": output.to_json(found.true),
                "given": output.to_json(found.given),
            }
        }
        made = {"expression": request.source, "against": text, "ok": found.ok, "wrt": by}
        output.write_json({**made, "inputs": by, "derivative": found.derivative})
    elif found.ok:
        suffix = f", {len(points)} points" if len(points) > 1 else ""
        output.write(f"ok: {name} (max error {found.error:.1e}{suffix})")
    else:
        output.write("\n".join(_formula_lines(request, name, found, arrays)))
        from gradcli.symbolic.shape_inference import shapes_said

        if agreed and all(_shapes(a) != _shapes(arrays) for a in agreed):
            yes, no = (shapes_said(_shapes(a)) for a in (agreed[-1], arrays))
            output.note(f"right for {yes}; wrong for {no}; say which is meant with --shape")
    if not found.ok:
        ctx.exit(1)


def _shapes(arrays: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    return {n: a.shape for n, a in arrays.items()}


def _formula_lines(
    request: Request, name: str, found: Comparison, arrays: dict[str, Any]
) -> Iterator[str]:
    yield (
        f"wrong gradient: {name}{_at(found.index)}: given "
        f"{_number(found.given[found.index], request)}, true "
        f"{_number(found.true[found.index], request)} (relative error {found.error:.1e})"
    )
    if found.true.size > 1:
        yield f"  given {output.to_text(found.given, request.style)}"
        yield f"  true  {output.to_text(found.true, request.style)}"
    yield f"  at {_values(arrays, request)}"
    if found.derivative is not None:
        yield f"  the derivative is {found.derivative}"

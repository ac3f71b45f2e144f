"""`gradcli check EXPR`: the gradients of an expression against numerical ones, or against a formula."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gradcli.commands import output
from gradcli.commands.answers import large_table, others_of, rows_wanted
from gradcli.commands.check_points import SHAPES, chosen
from gradcli.commands.command_errors import quoted, usage
from gradcli.commands.declarations import BY_ROWS, LIKE, OPEN, OUTPUTS, Option, Options, declare
from gradcli.commands.formula_question import ASSUME
from gradcli.commands.progress import Bar
from gradcli.commands.question import CHECKED, Answer, Question, write
from gradcli.commands.request import Request
from gradcli.commands.request_evaluation import apart
from gradcli.engine.system.visible import visible
from gradcli.language.located_errors import OPERATION_ERRORS, error_at

if TYPE_CHECKING:
    import click

    from gradcli.commands.kink_notes import Note, Others
    from gradcli.commands.large_columns import RowsTable
    from gradcli.transforms.finite_differences import Checked
    from gradcli.transforms.tolerances import Comparison
    from gradcli.transforms.verdicts import Verdict

KEEP_OUT = {"detach", "detach_", "data", "item", "tolist", "numpy", "round"} | {
    *("no_grad", "inference_mode", "set_grad_enabled")
}


@declare(
    "check",
    *OPEN,
    Option("--second-order", "Check the second derivatives too."),
    Option("--samples N", "Check at N random points.", least=1),
    Option("--range A,B", "Range of the random points."),
    Option("--against EXPR2", "Compare your formula for the gradient by --wrt with the true one."),
    Option("--order N", "Order of the derivative in --against.", least=1, most=10, default=1),
    Option("--jacobian", "--against is the Jacobian."),
    Option("--of NAME", "EXPR is an equation; --against is the derivative of this variable in it."),
    ASSUME,
    Option("--rtol FLOAT", "Relative tolerance (1e-6; 1e-9 with --against).", type=float),
    Option(
        "--atol FLOAT", "Absolute tolerance (default: 1e-12 of the largest element).", type=float
    ),
    *(LIKE, BY_ROWS),
    Option("--csv", "Of a table of answers: print it with a verdict in each row.", section=OUTPUTS),
    examples=(
        'gradcli check "sum(sin(x)*exp(x))" --x 1,2,3',
        'gradcli check "x**3" --against "3*x**2" --wrt x --samples 5',
        'gradcli check "x**2 + y**2 == 1" --of y --wrt x --against "-x/y"',
        "gradcli check @answers.csv:task --against @answers.csv:answer --math",
    ),
    open_variables=True,
)
def command(ctx: click.Context, request: Request, options: Options) -> None:
    """Compare the gradients of EXPR with numerical ones, or with your formula (--against).

    Numerical are complex steps where all is analytic, and finite differences elsewhere.

    The exit code is 1 if they differ. Variables without values get random values.

    @FILE:COLUMN in the place of EXPR, of the formula or of both checks each row of a table, such as the
    answers of a class.
    """
    question = Question(CHECKED, ctx, request, options)
    table = large_table(request, rows_wanted(question))
    _check_no_relation(question)
    if table is not None:
        answer = _of_rows(question, table)
    elif question.of is not None:
        answer = _against_implicit(question)
    elif options.against is not None:
        answer = _against_formula(question)
    else:
        answer = _against_numbers(question)
    write(answer)
    if not answer.ok:
        ctx.exit(1)


def _check_no_relation(question: Question) -> None:
    """Refuse an equation or inequality, whose truth has the slope 0 wherever it has one."""
    from gradcli.language.no_derivative import COMPARED, relation

    request = question.request
    found = relation(request.program)
    if question.of is not None:
        if found is None or found[0] != "an equation":
            raise usage("--of is for an equation", hint='as in "x**2 + y**2 == 1" --of y --wrt x')
        return
    if found is None:
        return
    what, left, right = found
    names = request.program.free_variables()
    hint = COMPARED
    if what == "an equation":
        whole = quoted(request.program.source)
        hint = (
            f"compare a derivative with a formula by gradcli check {quoted(left)} --against "
            f"{quoted(right)}; gradcli root {whole} --{names[0] if names else 'x'} 1 solves the equation"
        )
        if len(names) > 1:
            x, y = names[:2]
            against = question.against or "FORMULA"
            hint = (
                f"is {y} a function of {x}? write gradcli check {whole} --of {y} --wrt {x} --against "
                f"{quoted(against)}"
            )
    raise usage(
        f"this is {what}, which is true or false: there is no gradient",
        source=request.source,
        span=request.program.value_span,
        hint=hint,
    )


def _of_rows(question: Question, table: RowsTable) -> Answer:
    given = {"shape": question.request.shapes, **vars(question)}
    for option in ("shape", "samples", "against", "second_order", "atol"):
        if given[option]:
            words = f"--{option.replace('_', '-')} cannot be used with --by-rows"
            raise usage(words, hint="leave out one of them")
    from gradcli.commands.large_columns import verdict_by_rows

    return _answer(question.request, [verdict_by_rows(question, table)])


def _against_numbers(question: Question) -> Answer:
    """The gradients at the points beside finite differences, up to one where they differ."""
    request = question.request
    if question.order > 1 or question.jacobian:
        raise usage(
            "--order and --jacobian need a formula to compare with: --against EXPR2",
            hint="--second-order checks second derivatives against numerical ones",
        )
    like = others_of(question)
    points, wanted = chosen(question)
    from gradcli.transforms.verdicts import verdicts

    reports: list[Verdict] = []
    how: dict[str, Any] = {"rtol": question.rtol, "atol": question.atol, "watch": bool(like)}
    with Bar(len(points), "points") as bar:
        for number, arrays in enumerate(points):
            # Second derivatives cost much more; the first points have all the sizes that there are.
            every = number < len(SHAPES) + 1 or question.samples is not None
            how["second_order"] = question.second_order and every
            with _checked(request, arrays):
                reports += verdicts(
                    request.program, arrays, wanted, request.loaded, number=number, **how
                )
            bar.advance(1)
            if not reports[-1].ok:
                break  # one point is enough to be wrong at
    if like:
        last = reports[0]
        whole = all(o.array.size == 1 for o in last.watched.outputs) if last.watched else False
        like.ask(request.program, last.arrays if whole else None, wanted, last.watched)
    return _answer(request, reports, len(points), like)


@contextmanager
def _checked(request: Request, arrays: dict[str, Any]) -> Iterator[None]:
    """Where gradients are checked at a point: what is refused there is an error of the expression's."""
    import numpy as np

    from gradcli.transforms.tolerances import NotFinite

    try:
        with np.errstate(all="ignore"), apart(request):
            yield
    except NotFinite as error:
        where = _values(arrays, request)
        raise error_at(
            RuntimeError(f"{error}: no gradient can be checked at {where}"),
            source=request.source,
            hint="take a point inside the domain",
        ) from None
    except OPERATION_ERRORS as error:
        raise error_at(error, source=request.source) from error


# -- what it says ---------------------------------------------------------------------------------
def _answer(
    request: Request, reports: list[Verdict], points: int = 1, like: Others | None = None
) -> Answer:
    """What is said of the verdicts at the points."""
    ok = all(r.ok for r in reports)

    def keys(_: int | None) -> dict[str, Any]:
        notes = [note.json for r in reports for note in _notes(request, r)]
        return _to_json(reports, ok) | ({"kinks": notes} if notes else {})

    own = {n: c.analytical for n, c in reports[0].by.items()}
    answer = Answer(request, [(f"{n}.grad", g) for n, g in own.items()] if like else [], keys)
    if request.style.form != "json":
        answer.prose = list(_lines(request, reports, points))
    answer.others, answer.grads, answer.ok = like, own, ok
    return answer


def _at(index: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, index))}]" if index else ""


def _values(arrays: Mapping[str, Any], request: Request) -> str:
    if sum(getattr(a, "size", 1) for a in arrays.values()) <= _WRITTEN:
        return ", ".join(f"{n} = {output.to_text(a, request.style)}" for n, a in arrays.items())
    texts = [f"{n} = {_short(a)}" for n, a in arrays.items()]
    return "\n     ".join(texts) + "\n  --json has all digits"


_WRITTEN = 4  # numbers of a point that are written with all of their digits
_WIDTH = 68  # of what is shown of an array


def _short(array: Any) -> str:
    """An array with four digits, whose end is left out where the line would be long."""
    import numpy as np

    array = np.asarray(array)
    text = str(output.to_text(array, output.Style(precision=4)))
    if len(text) <= _WIDTH:
        return text
    end = text.rfind(", ", 0, _WIDTH - 12)
    shape = "×".join(map(str, array.shape))
    return f"{text[:end]}, …] ({shape})".replace("\n", " ")


def _number(value: Any, request: Request) -> str:
    import numpy as np

    return output.to_text(np.asarray(value)[()], request.style)


def _notes(request: Request, report: Verdict) -> list[Note]:
    """What grad would say of the point."""
    if report.watched is None:
        return []
    from gradcli.commands.kink_notes import explanations, notes

    wrong = any(not c.ok for c in report.by.values())
    found = notes(report.watched, request.source)
    return found + (explanations(report.watched, request, found, wrong) if wrong else [])


def _lines(request: Request, reports: list[Verdict], points: int) -> Iterator[str]:
    many = points > 1
    for report in reports:
        what = "second derivative" if report.second else "gradient"
        told = _notes(request, report)
        yield from (note.text for note in told if note.json["kind"] != "limit")
        kinked = {(n, *e["index"]) for t in told for n, e in _elements(t)}
        for name, checked in report.by.items():
            if checked.ok and many and not checked.kinks:
                continue
            yield from _variable_lines(request, name, checked, what, report, kinked)
        yield from (f"  {note.text}" for note in told if note.json["kind"] == "limit")
        if not report.ok and many:
            yield f"  at {_values(report.arrays, request)}"
        if not report.ok and report.part is not None:
            yield from _blame_lines(request, report.part)
        elif not (report.ok or report.second or report.at_edge):
            yield from _detached_lines(request)
    if many and all(r.ok for r in reports):
        worst = max((c.error for r in reports for c in r.by.values()), default=0.0)
        yield f"ok: {points} points, max error {worst:.1e}"


def _elements(note: Note) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, one in note.json["wrt"].items():
        yield from ((name, element) for element in one.get("elements", ()))


def _variable_lines(
    request: Request,
    name: str,
    checked: Checked,
    what: str,
    report: Verdict,
    kinked: Container[tuple[Any, ...]],
) -> Iterator[str]:
    """kinked: the elements, (name, *index), that a note on kinks has explained already."""
    for kink in checked.kinks:
        if (name, *kink.index) in kinked:
            continue
        taken = _number(kink.analytical, request)
        place = "jump" if kink.jump else "kink"
        yield (
            f"{name}{_at(kink.index)} is at a {place}: slope {kink.left:.6g} to the left, "
            f"{kink.right:.6g} to the right; the gradient takes {taken}"
        )
    if checked.by_series:
        how = "by power series along lines: rule by rule it is not a number here"
        yield f"ok: {name} {what} ({how})"
        return
    if checked.ok:
        if checked.triangular:
            yield f"only one triangle of {name} is read: the gradient is for symmetric changes of it"
        suffix = f" {what}" if report.second else ""
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
    if checked.at_edge and (name, *i) not in kinked:
        where = "where it is not finite" if report.second else "at the edge of its domain"
        yield f"  {where} a {what} cannot be checked; take a point inside"
    if checked.analytical.size > 1:
        yield f"  analytical {output.to_text(checked.analytical, request.style)}"
        yield f"  numerical  {output.to_text(checked.numerical, request.style)}"


def _blame_lines(request: Request, part: Any) -> Iterator[str]:
    where = "" if part.span is None else f" in `{request.source[slice(*part.span)]}`"
    what = " (of a sum of its elements with random weights)" if part.weighted else ""
    yield (
        f"  to blame: {part.name}{where}: its own gradient by {part.at} is {part.analytical:.6g}, "
        f"by differences {part.numerical:.6g}{what}"
    )


def _detached_lines(request: Request) -> Iterator[str]:
    words = {w for _, w, _, _ in request.program.walk() if isinstance(w, str)}
    found = sorted(words & KEEP_OUT)
    if found:
        yield f"  each operation alone is right; {', '.join(found)} stops gradients"
    elif words & {"grad", "backward"} and "create_graph" not in request.source:
        yield "  each operation alone is right; without create_graph=True gradients are constants"
    else:
        yield "  each operation alone is right"


def _to_json(reports: list[Verdict], ok: bool) -> dict[str, Any]:
    firsts = [r for r in reports if not r.second]
    shown = next((r for r in firsts if not r.ok), firsts[0])
    inputs = {n: _input_json(c) for n, c in shown.by.items()}
    # inputs: the name of 0.1.0
    made: dict[str, Any] = {"ok": ok, "wrt": inputs, "inputs": inputs, "points": len(firsts)}
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
def _against_formula(question: Question) -> Answer:
    """The gradient at the points beside a formula, up to one where they differ."""
    from gradcli.formulas.ask.formula_check import compare_formula, derivative_shape
    from gradcli.transforms.tolerances import RTOL

    request, text, order = question.request, str(question.against), question.order
    if question.like is not None:
        others_of(question)
        raise usage("--like cannot be used with --against", hint="leave out one of them")
    points, (name, *_) = chosen(question)
    how: dict[str, Any] = {"order": order, "jacobian": question.jacobian, "atol": question.atol}
    how["rtol"] = RTOL if question.rtol is None else question.rtol
    agreed: list[dict[str, Any]] = []
    with Bar(len(points), "points") as bar:
        for number, arrays in enumerate(points):
            with _checked(request, arrays):
                found = compare_formula(
                    request.program, text, arrays, name, request.loaded, says=number == 0, **how
                )
            bar.advance(1)
            if not found.ok:
                break
            agreed.append(arrays)
    answer = _compared(question, name, found, arrays, len(points))
    if not found.ok and request.style.form != "json":
        whole = derivative_shape(request.program, arrays, name, request.loaded or {}, 1, True)
        if not question.jacobian and order == 1 and len(whole) > arrays[name].ndim:
            output.note(
                "the value is not a scalar: its sum is differentiated; --jacobian compares the matrix"
            )
        sums = re.findall(r"\bsum\((\w+)(, -?1)?(?:, True)?\)", found.derivative or "")
        for normed, by_rows in dict.fromkeys(sums):
            array = arrays.get(normed)
            if array is None or array.ndim != 1 + bool(by_rows) or normed == name:
                continue
            shares = abs(array) + 0.1
            point = arrays | {normed: shares / shares.sum(-1, keepdims=True)}
            if compare_formula(request.program, text, point, name, request.loaded, **how).ok:
                total = f"sum({normed}{', 1' * bool(by_rows)})"
                output.note(
                    f"it is right where {total} is 1, as of probabilities and of one class: "
                    f"add --assume '{total} == 1'"
                )
        for square, array in arrays.items():
            if array.ndim != 2 or array.shape[0] != array.shape[1] or square == name:
                continue
            point = arrays | {square: (array + array.T) / 2}
            if compare_formula(request.program, text, point, name, request.loaded, **how).ok:
                output.note(
                    f"it is right where {square} is symmetric: add --assume '{square} symmetric'"
                )
    known = found.ok or found.mistake is not None
    unlike = not known and agreed and all(_shapes(a) != _shapes(arrays) for a in agreed)
    if unlike and request.style.form != "json":
        from gradcli.formulas.derive.shape_inference import shapes_said

        yes, no = (shapes_said(_shapes(a)) for a in (agreed[-1], arrays))
        output.note(f"right for {yes}; wrong for {no}; say which is meant with --shape")
    return answer


def _against_implicit(question: Question) -> Answer:
    """The derivative of the function that an equation gives, beside a formula, at points of the curve."""
    from gradcli.commands.check_curves import chosen_on_curve
    from gradcli.formulas.ask.implicit_check import compare_implicit

    request, text = question.request, question.against
    if text is None:
        raise usage("--of needs a formula to compare with: --against EXPR2")
    curve, points, name = chosen_on_curve(question)
    every: list[tuple[Comparison, dict[str, Any]]] = []
    for arrays in points:
        with _checked(request, arrays):
            every.append((compare_implicit(curve, text, name, question.order, arrays), arrays))
    found, arrays = min(every, key=lambda pair: pair[0].ok)
    agreed = [at for one, at in every if one.ok]
    if agreed and not found.ok and request.style.form != "json":
        output.note(f"right at {_values(agreed[0], request)}: the equation gives several functions")
    return _compared(question, name, found, arrays, len(points))


def _compared(
    question: Question, name: str, found: Comparison, arrays: dict[str, Any], points: int
) -> Answer:
    """What is said of a derivative beside a formula. arrays: the last point, of so many."""
    request, text, order = question.request, question.against, question.order
    both = {"analytical": output.to_json(found.true), "given": output.to_json(found.given)}
    by = {name: {"max_error": output.to_json(found.error), **both}}
    keys: dict[str, Any] = {"against": text, "ok": found.ok, "wrt": by, "inputs": by}
    keys |= {"derivative": found.derivative, "mistake": found.mistake}
    answer = Answer(request, [], lambda _: keys)
    answer.ok = found.ok
    if found.ok:
        suffix = f", {points} points" if points > 1 else ""
        answer.lines = [visible(f"ok: {name} (max error {found.error:.1e}{suffix})")]
        return answer
    what = f"derivative of order {order}" if order > 1 else "gradient"
    what = "Jacobian" if question.jacobian else what
    answer.prose = list(_formula_lines(request, name, found, arrays, what))
    return answer


def _shapes(arrays: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    return {n: a.shape for n, a in arrays.items()}


def _formula_lines(
    request: Request, name: str, found: Comparison, arrays: dict[str, Any], what: str
) -> Iterator[str]:
    wrong = f"wrong {what}: {name}"
    if found.given.shape != found.true.shape:
        yield f"{wrong}: given of shape {found.given.shape}, true of {found.true.shape}"
    else:
        yield (
            f"{wrong}{_at(found.index)}: given {_number(found.given[found.index], request)}, true "
            f"{_number(found.true[found.index], request)} (relative error {found.error:.1e})"
        )
    if found.true.size > 1:
        yield f"  given {_short(found.given)}"
        yield f"  true  {_short(found.true)}"
    yield f"  at {_values(arrays, request)}"
    if found.mistake is not None:
        yield f"  {found.mistake}"
    if found.derivative is not None:
        yield f"  the derivative is {found.derivative}"

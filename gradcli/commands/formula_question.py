"""What is asked of a program as a formula, by a command or from Python, and the proved text that answers.

    FormulaQuestion ──► `answered` ──► FormulaAnswer ──► `question.write`

`asked` says what: the gradient, a matrix, a direction, … (`AskedDerivative`), or None for the program itself
in a shorter form. The Taylor polynomial at a point is found by `taylor.expanded`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from gradcli.commands import output
from gradcli.commands.command_errors import usage
from gradcli.commands.declarations import OPEN, Option
from gradcli.commands.free_points import Point, made_up_point, note_guesses, with_sizes
from gradcli.commands.question import Answer
from gradcli.commands.request import Request, where_read
from gradcli.engine.system.visible import visible
from gradcli.language.located_errors import LanguageError, error_at

if TYPE_CHECKING:
    from gradcli.commands.verbs import VerbRequest
    from gradcli.formulas.ask.composed_derivatives import AskedDerivative
    from gradcli.formulas.ask.proof import Difference
    from gradcli.formulas.derive.differentiate import Derivatives
    from gradcli.formulas.print.printed_text import Printed

    Asker: TypeAlias = Request | VerbRequest

FORMATS = ("text", "latex", "python", "numpy", "torch", "jax", "c", "json")
CODE = ("python", "numpy", "torch", "jax", "c")  # formats that are programs
FORMAT = Option(
    "--format FORMAT",
    "text; latex: for a paper; python, numpy, torch, jax or c: a function to paste; json.",
    choices=FORMATS,
    default="text",
)
ASSUME = Option(
    "--assume FACT", "A fact about a variable: 'B symmetric', 'x > 0', 'n integer'.", many=True
)
SMALL = 64  # elements of an array whose numbers tell questions apart
# Options of all commands that print formulas.
FORMULA = (
    *OPEN,
    ASSUME,
    Option("--cse", "Name expressions that occur several times, and use the names."),
    FORMAT,
    Option(
        "--verify/--no-verify",
        "Compare the formula with computed gradients (default), or not.",
        default=True,
    ),
)


class FormulaQuestion:
    """What is asked of a program as a formula.

    request: the program, and what else it may read. where: its variables, with values or shapes. asked: which
    derivative; None for the program itself. wanted: the variables to differentiate by. assume: what holds of
    variables. format, cse, verify: as the options of that name. exact: the command that has the numbers.
    """

    assume: Sequence[str] = ()
    cse = False
    format = "text"
    verify = True
    exact = "eval"

    def __init__(
        self,
        request: Asker,
        where: Point,
        asked: AskedDerivative | None = None,
        wanted: Sequence[str] = (),
        **options: Any,
    ) -> None:
        self.request, self.where, self.asked, self.wanted = request, where, asked, wanted
        vars(self).update(options)

    def _way(self) -> dict[str, Any]:
        """What finds the formula, and what is claimed of it: see `proof.proved`."""
        if self.asked is None:
            from gradcli.formulas.ask.composed_derivatives import simplification

            return simplification()
        request = self.request
        way = self.asked.way(request.program, self.where.arrays, self.wanted, request.loaded)
        self.exact = self.asked.command if "claim" in way else "grad"
        return way

    def answered(self) -> FormulaAnswer:
        """The formula, proved if that is asked. Raises NoExpression, BadAssumption and LanguageError."""
        from gradcli.formulas.algebra.expressions import begin
        from gradcli.formulas.ask.proof import Unproved, proved

        begin(self._key())
        where, way = self.where, self._way()
        if self.assume:
            from gradcli.formulas.derive.assumptions import read

            way["find"] = read(self.assume, where.arrays, where.given).around(way["find"])
        how = {"verify": self.verify, **way, "form": self.format, "cse": self.cse or None}
        how |= {"given": where.is_given, "lettered": bool(where.guessed)}

        def prove(**how: Any) -> tuple[Derivatives, Printed, Difference | None]:
            request = self.request
            return proved(request.program, where.arrays, self.wanted, names=request.loaded, **how)

        try:
            found, made, singular = prove(**how)
        # A derivative of exp by a variable called exp fails by its name, which is better said than a fault.
        except Unproved as error:
            self._check_names(prove(**{**how, "verify": False})[1])
            raise self.fault(error) from error
        if not self.verify:
            self._check_names(made)
        if singular is not None:
            found.limits = singular.limits
        return FormulaAnswer(self, found, made, singular)

    def _key(self) -> tuple[Any, ...]:
        """The question as a key to the answers that are kept; a large array counts by its shape alone."""
        how = (self.asked, *self.wanted, *self.assume, self.format, self.cse, self.verify)
        point = [
            (name, array.shape, array.tobytes() if array.size <= SMALL else b"")
            for name, array in self.where.arrays.items()
        ]
        return (self.request.program.source, *point, *map(repr, how))

    def _check_names(self, made: Printed) -> None:
        """Refuse a derivative that calls a function whose name is a variable's."""
        text = "\n".join([*made.lines, *made.by.values(), made.code or ""])
        for name in self.where.arrays:
            if re.search(rf"(?<![\w.]){name}\(", text):
                raise usage(
                    f"the derivative calls the function `{name}`, and here {name} is a variable",
                    source=self.request.program.source,
                    span=where_read(self.request.program, name),
                    hint="give the variable another name; a function is not a value to differentiate",
                    kind="name",
                )

    def fault(self, error: Exception) -> LanguageError:
        """The error where every text that was found disagrees with the numbers."""
        typed = isinstance(self.request, Request)
        command = f"gradcli{' ' if typed else '.'}{self.exact}"
        unproved = "--no-verify prints" if typed else "verify=False returns"
        return error_at(
            RuntimeError(f"the derivative that was found is not what {self.exact} gives ({error})"),
            source=self.request.program.source,
            hint=f"this is a fault in gradcli: please report this expression; {command} has the "
            f"derivative's value, and {unproved} what was found",
        )


class FormulaAnswer(Answer):
    """The formulas of a question.

    found: the derivatives. made: what is printed of them. singular: how they differ from the tape's numbers
    at the user's point. values: theirs at that point, if they are wanted.
    """

    def __init__(
        self,
        question: FormulaQuestion,
        found: Derivatives,
        made: Printed,
        singular: Difference | None,
    ) -> None:
        super().__init__(question.request, [], self.to_json)
        self.question, self.where = question, question.where
        self.found, self.made, self.singular = found, made, singular
        self.values: Mapping[str, Any] = {}
        self.about: Mapping[str, Any] = {}
        self.more: Mapping[str, Any] = {}
        if made.code:
            self.lines = [visible(made.code)]

    def to_json(self, precision: int | None) -> dict[str, Any]:
        """What JSON says of every formula, between what it is `about`, and what is `more`."""
        made: dict[str, Any] = {**self.about, "shapes": self.shapes}
        if self.values:
            made["values"] = {n: output.to_json(v, precision) for n, v in self.values.items()}
        made["general"] = self.made.general
        if self.made.shared:
            made["shared"] = dict(self.made.shared)
        return {**made, **self.more}

    @property
    def shapes(self) -> dict[str, list[int]]:
        """The shapes of the variables."""
        return {n: list(a.shape) for n, a in self.where.arrays.items()}

    def note(self) -> None:
        """Say what there is to know beside the formulas."""
        from gradcli.formulas.ask.proof import is_elementwise

        found, made = self.found, self.made
        if self.singular is not None:
            of = " of the sum" if found.shape and found.kind == "Hessian" else ""
            _note_apart(self.singular, self.question.exact + of, len(found.lower) + 1)
        self._note_kinks()
        note_guesses(self.where)
        if made.general is False:
            output.note(made.alone(self.where.arrays))
        if found.branched:
            output.note(
                "the program branches on a value: this is the formula of the branch taken with these values"
            )
        if skipped := getattr(found, "skipped", ()):
            several = "have" if len(skipped) > 1 else "has"
            names = ", ".join(skipped)
            output.note(f"{names} {several} no formula: gradcli hessian has the numbers")
        if found.shape and found.kind == "Hessian":
            output.note("the value is not a scalar: this is the Hessian of its sum")
        if found.shape and found.kind == "gradient" and not is_elementwise(found):
            output.note(
                "the value is not a scalar: this is the derivative of its sum; --jacobian prints the matrix"
            )

    def _note_kinks(self) -> None:
        """Say where the user's own point has no derivative, as the commands that compute it do."""
        question, asked = self.question, self.question.asked
        if not self.where.is_given or asked is None or asked.composed:
            return
        from gradcli.commands.request_evaluation import Look
        from gradcli.formulas.algebra.expression_evaluation import value_at
        from gradcli.language.located_errors import OPERATION_ERRORS

        program, names = question.request.program, question.request.loaded
        with Look() as look, suppress(LanguageError, *OPERATION_ERRORS):
            value_at(program, names, self.where.arrays)
        if look.met:
            from gradcli.commands.kink_notes import tell_at

            order = 2 if self.found.kind == "Hessian" else len(self.found.lower) + 1
            tell_at(program, names, self.where.arrays, question.wanted, order)


def value_answer(question: FormulaQuestion) -> FormulaAnswer:
    """The answer to a question about a program's value, with its lines; what there is to note is said."""
    answer = question.answered()
    answer.note()
    (text,) = answer.made.by.values() or [""]  # of a program there is code alone
    answer.about = {"simplified": text}
    answer.lines = answer.lines or [*map(visible, answer.made.lines), visible(text)]
    return answer


def _note_apart(singular: Difference, exact: str, order: int) -> None:
    """Say what a formula does not give at the user's point."""
    import numpy as np

    found, expected = (
        np.array2string(np.asarray(v), separator=", ", threshold=6).replace("\n", "")
        for v in (singular.found, singular.expected)
    )
    if not singular.limits:
        # A command that is not finite there, as hessian, has this formula's number in its place.
        if exact == "grad" or np.isfinite(singular.expected).all():
            words = f"the expression does not give what {exact} gives"
            output.note(f"at this point {words}: {found} instead of {expected}")
        return
    if exact == "grad":
        exact = f"grad --order {order}" if order > 1 else "jacobian"
    says = "is not a number" if np.isnan(singular.found).any() else f"gives {found}"
    output.note(f"at this point the formula {says}: {exact} gives {expected}")


def format_of(request: Request, options: Any) -> str:
    """The format that is asked for; JSON has two options."""
    if "json" in (request.style.form, options.format):
        request.style.form = options.format = "json"
    return str(options.format)


@contextmanager
def located(request: Request, hint: str | None = None) -> Iterator[None]:
    """Where a formula is looked for: errors get their place in the text; hint: what to do without one."""
    from gradcli.formulas.algebra.assuming import BadAssumption
    from gradcli.formulas.lift.lifting import NoExpression

    try:
        yield
    except NoExpression as error:
        raise error_at(error, source=request.source, span=error.span, hint=hint) from error
    except BadAssumption as error:
        raise usage(f"--assume: {error}", hint=error.hint) from error


def squared(texts: Sequence[str], request: Asker, where: Point) -> Point:
    """The point with square matrices where they are assumed and nobody gave a shape."""
    if not texts:
        return where
    from gradcli.formulas.derive.assumptions import squares
    from gradcli.formulas.derive.shape_inference import SIZE

    shapes = {n: a.shape for n, a in where.arrays.items() if n not in where.given}
    guesses = {n: where.guessed.get(n, shapes[n]) for n in squares(texts) if n in shapes}
    wanted = {n: (*s, SIZE)[:1] * 2 for n, s in guesses.items() if n in where.guessed or not s}
    if all(shapes[n] == s for n, s in wanted.items()):
        return where
    known = {n: s for n, s in shapes.items() if n not in where.guessed}
    made = made_up_point(request, where.tensors, {**known, **wanted}, list(shapes))
    made.guessed = {n: s for n, s in {**wanted, **made.guessed}.items() if s}
    return with_sizes(request, made)

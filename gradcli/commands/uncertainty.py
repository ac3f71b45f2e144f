"""The uncertainty of a value from those of its variables, by its gradient.

u² = Σ (∂f/∂x · u(x))² + 2 Σ ∂f/∂x · ∂f/∂y · cov(x, y): the law of propagation of uncertainty of the Guide to
the Expression of Uncertainty in Measurement (JCGM 100:2008, 5.1.2 and 5.2.2), to the first order.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from gradcli.commands import output
from gradcli.commands.command_errors import usage
from gradcli.commands.correlations import Relation, asked_alone, related, relations, without_error
from gradcli.commands.item_lists import named

if TYPE_CHECKING:
    from gradcli.columns.streaming.nonlinear_spread import Spreads
    from gradcli.commands.output import Style
    from gradcli.commands.request import Request
    from gradcli.commands.request_evaluation import Evaluation

Budget = dict[str, tuple[float, float]]  # by input: its contribution, and its share
DIGITS = 2  # of an uncertainty that are shown
_EXACT = 17  # digits that a double has at most
_LARGEST, _SMALLEST = 15, -5  # powers of ten between which numbers are written out


def take_from_cells(request: Request) -> None:
    """Uncertainties that the cells of a table have, as if they stood behind the values."""
    from gradcli.commands.request_evaluation import files_of
    from gradcli.language.located_errors import LanguageError
    from gradcli.language.option_values import file_reference
    from gradcli.tables import TableError

    for name, text in request.texts.items():
        reference = file_reference(text)
        files = None if reference is None else files_of(request)
        if files is None or reference is None or reference == "-":
            continue
        try:
            found = files.spread(reference)
        except (TableError, OSError, LanguageError):  # said better where the value is read
            continue
        if found is not None:
            request.uncertainties[name] = found


def take_from_fit(
    path: str,
    text: str,
    names: Iterable[str],
    texts: dict[str, str],
    options: dict[str, str],
    uncertainties: dict[str, str],
) -> dict[tuple[str, str], Any]:
    """Bind variables to the parameters of a fit, with their uncertainties; return the covariances.

    A covariance is a matrix of the elements of two parameters. What the fit has for no variable is left out.
    """
    import json

    import numpy as np

    try:
        found = json.loads(text)
        given = {n: (p["value"], p["error"]) for n, p in found["parameters"].items()}
        related = found["covariance"]
    except (ValueError, TypeError, KeyError, AttributeError):
        raise usage(
            f"--params: {path} is not a fit", hint="write one: gradcli fit … --json > fit.json"
        ) from None
    taken: dict[str, list[str]] = {}
    for name in sorted(names):
        labels = [label for label in given if label.partition("[")[0] == name]
        if not labels:
            continue
        if any(given[label][1] is None for label in labels):
            raise usage(
                f"--params: {path} has no error for {name}", hint=f"give --{name} VALUE±ERROR"
            )
        last = labels[-1].removeprefix(name).strip("[]")
        shape = [int(place) + 1 for place in last.split(",") if place]
        texts[name], uncertainties[name] = (
            repr(np.reshape([given[label][k] for label in labels], shape).tolist()) for k in (0, 1)
        )
        options[name] = f"--params {name}="
        taken[name] = labels
    found = {}
    for one, rows in taken.items():
        for other, columns in taken.items():
            if one <= other:
                matrix = np.array([[related[r][c] for c in columns] for r in rows], float)
                found[one, other] = np.triu(matrix, 1) if one == other else matrix
    return {pair: matrix for pair, matrix in found.items() if matrix.any()}


def all_uncertainties(
    request: Request, items: Iterable[str], known: Iterable[str], cells: Iterable[str] = ()
) -> dict[str, Any]:
    """The uncertainties: those behind ±, which are texts or arrays, and the texts of --uncertainty.

    cells: the variables whose cells have some.
    """
    given = named(items, "--uncertainty", 1, known)
    if twice := given.keys() & {*request.uncertainties, *cells}:
        raise usage(f"--uncertainty: {min(twice)} has one already, after its value")
    return {**request.uncertainties, **given}


class Texts:
    """What a command line says of uncertainties, by name, not read yet.

    errors: texts or arrays; None where a matrix of covariances tells it. covariances: those of a fit.
    relations: what else is said of two variables or more.
    """

    def __init__(self, request: Request, options: Any) -> None:
        self.errors = all_uncertainties(request, options.uncertainty, request.names)
        self.covariances = request.covariances
        self.relations = relations(options, request.names)
        self.arrays: dict[Relation, Any] = {}
        for one in self.relations:
            self._take(one)
        if not self.errors:
            kinds = [*(one.kind for one in self.relations), *asked_alone(options)]
            what = f"--{kinds[0]}" if kinds else "--budget"
            what = what if options.monte_carlo is None else "--monte-carlo"
            raise usage(
                f"{what}: no variable has an uncertainty",
                hint="write one after a value, as in --x 0.994±0.002"
                + "; of a negative log-likelihood: --errors" * hasattr(options, "errors"),
            )

    def _take(self, one: Relation) -> None:
        """Read a relation. A matrix of covariances tells the uncertainties; all else needs them."""
        for a, b in self.covariances:
            if {a, b} <= {*one.names}:
                raise usage(f"{one.option}: {a},{b} has one already, of --params")
        array = self.arrays[one] = _read(one.text, one.option)
        tells = one.kind == "covariance" and array.ndim == 2
        for name in one.names:
            if name in self.errors:
                continue
            if not tells:
                raise without_error(one, name)
            self.errors[name] = None

    def read(self, values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[Any, Any]]:
        """The arrays of both, with a leading 1, as `uncertainty_law` has them. values: the variables."""
        from gradcli.columns.streaming.uncertainty_law import check_possible

        shapes = {name: tuple(tensor.shape) for name, tensor in values.items()}
        errors: dict[str, Any] = {}
        for name, text in self.errors.items():
            if text is not None:
                option = f"--uncertainty {name}"
                share = share_of(text) if isinstance(text, str) else None
                both = share_and_more(text) if isinstance(text, str) else None
                part = share if share is not None else both[0] if both is not None else 0.0
                errors[name] = part * abs(values[name].detach().array)[None]
                if share is None:
                    rest = text if both is None else both[1]
                    errors[name] = errors[name] + fitted(_read(rest, option), shapes[name], option)
        covariances = {pair: array[None] for pair, array in self.covariances.items()}
        for one, array in self.arrays.items():
            covariances |= related(one, array, shapes, errors)
        if covariances:
            check_possible(shapes, errors, covariances)
        return {n: errors[n] for n in self.errors if n in errors}, covariances


class Uncertainties:
    """The uncertainties of a command line, and what comes of them.

    altered: the options that were given and change what the gradient is.
    hidden: the variables whose gradients are needed for it and were not asked for.
    """

    def __init__(self, request: Request, options: Any, altered: Iterable[str]) -> None:
        self.request, self.budget = request, options.budget
        self.draws: int | None = options.monte_carlo
        self.texts = Texts(request, options)
        self.asked = asked_alone(options)
        for option in altered:
            raise usage(
                f"{option} and uncertainties cannot be used together", hint=f"leave out {option}"
            )
        wanted = list(request.names) if request.wrt is None else request.wrt
        wanted = [name for name in wanted if name not in request.no_grad]
        self.hidden = [name for name in self.texts.errors if name not in wanted]
        request.no_grad = [name for name in request.no_grad if name not in self.hidden]
        if request.wrt is not None:
            request.wrt = [*request.wrt, *self.hidden]
        self.squares: dict[str, float] = {}
        self.value = self.error = 0.0
        self.spread: Spreads | None = None

    def refuse_relations_of_one(self) -> None:
        """Raise LanguageError where the matrix of the results is asked for, and there is one."""
        for kind in self.asked:
            raise usage(
                f"--{kind}: there is one result, which is related to no other",
                hint="end the expression with several, as in a*b, a/b; of inputs it is "
                f"--{kind} x,y=VALUE",
            )

    def propagate(self, evaluation: Evaluation) -> None:
        """Work the uncertainty out, once the gradients are there."""
        from gradcli.commands.request_evaluation import cannot_require_grad

        value = evaluation.value
        if value.is_complex():
            raise evaluation.error_for(
                TypeError("the uncertainty of a complex number is not a number")
            )
        from gradcli.columns.streaming.uncertainty_law import impossible, squares, too_strong, total

        for name in self.texts.errors:
            if name in evaluation.integers:
                raise cannot_require_grad(self.request, name, evaluation.variables[name])
        errors, covariances = self.texts.read(evaluation.variables)
        gradients = {
            name: None if tensor.grad is None else tensor.grad.array[None]
            for name, tensor in evaluation.variables.items()
        }
        parts = squares(gradients, errors, covariances)
        if impossible(errors, covariances, parts).any():
            raise too_strong()
        self.squares = {name: float(square[0]) for name, square in parts.items()}
        self.value, self.error = float(value.item()), float(total(parts)[0])
        self._beyond(evaluation, errors, covariances)

    def _beyond(
        self, evaluation: Evaluation, errors: dict[str, Any], covariances: dict[Any, Any]
    ) -> None:
        """Take another uncertainty where the first order does not tell it, or a sample is asked for."""
        import numpy as np

        from gradcli.columns.streaming.uncertainty_law import with_second_order
        from gradcli.commands.spread_of_programs import spread_of

        variables = {n: evaluation.variables[n] for n in errors}
        fixed = {n: t for n, t in evaluation.variables.items() if n not in errors}
        found = spread_of(
            self.request,
            self.value,
            (variables, fixed),
            errors,
            covariances,
            self.error,
            self.draws,
        )
        if found is None:
            return
        self.spread = found
        output.note(spread_note(found, self.error))
        shapes = {n: tuple(t.shape) for n, t in variables.items()}
        parts = with_second_order(
            {n: np.array([s]) for n, s in self.squares.items()}, shapes, found
        )
        self.squares = {n: float(s[0]) for n, s in parts.items()}
        self.error = float(found.errors[0])

    def results(self, style: Style) -> list[tuple[str | None, Any]]:
        """The lines: the value, then what each input contributes."""
        plain = style.form == "plain"
        written = to_plain if plain else partial(with_uncertainty, precision=style.precision)
        found: list[tuple[str | None, Any]] = [("value", written(self.value, self.error))]
        return found + budget_lines(self._budget(), style)

    def _budget(self) -> Budget:
        return budget_of(self.squares, self.error) if self.budget else {}

    def to_json(self) -> dict[str, Any]:
        """The keys of the uncertainty, and of the budget if it is asked for."""
        made: dict[str, Any] = {"uncertainty": output.to_json(self.error)}
        if self.spread is not None:
            made["uncertainty_by"] = self.spread.by(0)
            made["mean"] = output.to_json(float(self.spread.means[0]))
        if self.budget:
            made["budget"] = budget_to_json(self._budget())
        return made


def budget_of(squares: Mapping[str, float], error: float) -> Budget:
    """(contribution, share) by name; negative where a correlation takes away. Shares are of `error`²."""
    whole = sum(squares.values())
    scale = error**2 / whole if whole > 0 and math.isfinite(error**2 / whole) else 1.0
    return {
        name: (
            math.copysign(math.sqrt(abs(square * scale)), square),
            square * scale / error**2 if error else 0.0,
        )
        for name, square in squares.items()
    }


def budget_lines(budget: Budget, style: Style, of: str = "") -> list[tuple[str | None, Any]]:
    """The lines of a budget; of: what its names begin with."""
    return [
        (
            f"{of}{name}.contribution",
            root if style.form == "plain" else f"{two_digits(root)} ({share:.1%})",
        )
        for name, (root, share) in budget.items()
    ]


def budget_to_json(budget: Budget) -> dict[str, Any]:
    """A budget as JSON has it."""
    return {
        name: {"contribution": output.to_json(root), "share": output.to_json(share)}
        for name, (root, share) in budget.items()
    }


def spread_note(found: Spreads, first: float, name: str = "") -> str:
    """Where an uncertainty comes from that is not the first order's."""
    of = f" of {name}" if name else ""
    part = found.lost[0]
    lost = f"; {part:.2%} of them have no value" if part else ""
    drawn = " of normal distributions" if found.sampled[0] else ""
    plain = f"to the first order it is {_bare(float(f'{first:.2g}'))}"
    if first != first:
        plain = "the first order does not tell it"
    return f"the uncertainty{of} is by {found.by(0)}{drawn}, the mean {found.means[0]:.6g}{lost}; {plain}"


_SHARE = re.compile(r"\s*(\d+\.?\d*|\.\d+)\s*%\s*")


def share_of(text: str) -> float | None:
    """The part of a value that `5%` says; None where the text says something else."""
    found = _SHARE.fullmatch(text)
    return None if found is None else float(found[1]) / 100


_SUM = re.compile(r"\s*(\d+\.?\d*|\.\d+)\s*%\s*(\+.+)")


def share_and_more(text: str) -> tuple[float, str] | None:
    """(0.01, "+0.02") of `1% + 0.02`, as data sheets of meters say it; None where a text says something else.

    As an expression it would be a remainder.
    """
    found = _SUM.fullmatch(text)
    return None if found is None else (float(found[1]) / 100, found[2].strip())


def _read(text: Any, option: str) -> Any:
    """The array of an uncertainty, in double precision: of a text, or one itself."""
    if not isinstance(text, str):
        return text
    from gradcli.commands.request_evaluation import read_value
    from gradcli.engine.system import dtypes

    with dtypes.as_default(dtypes.float64):
        return read_value(text, f"{option}=").detach().array


def fitted(array: Any, shape: tuple[int, ...], option: str, signed: bool = False) -> Any:
    """An uncertainty, or if `signed` a covariance, for a variable of that shape; usage error else."""
    import numpy as np

    from gradcli.columns.streaming.uncertainty_law import flaws

    for where, words in flaws(array, signed):
        if where.any():
            raise usage(f"{option}: {words}")
    if array.shape not in ((), shape):
        raise usage(
            f"{option}: it has shape {array.shape}, and its variable {shape}",
            hint="give one number, or one for each element",
        )
    return np.asarray(array, np.float64)


def with_uncertainty(value: float, error: float, precision: int | None = None) -> str:
    """`9.781 ± 0.053`: two digits of the uncertainty, and the value to the same place.

    precision: how many digits of the uncertainty instead. Digits beyond a double's are not made up.
    """
    if not (math.isfinite(value) and math.isfinite(error)) or error == 0:
        shown = (value, error)
        if precision is not None:
            shown = (float(f"{value:.{precision}g}"), float(f"{error:.{precision}g}"))
        return " ± ".join(map(_bare, shown))
    place = _place(error, precision or DIGITS)
    leading = _place(error, DIGITS) + DIGITS - 1
    largest = math.floor(math.log10(abs(value))) if value else leading
    if (precision or 0) > DIGITS:  # `--precision 17` of 1234.5 ± 0.1: the double ends at 1e-13
        place = min(max(place, largest - _EXACT + 1), leading - DIGITS + 1)
    top = max(leading, largest)
    if _SMALLEST <= top <= _LARGEST:
        return f"{_to_place(value, place)} ± {_to_place(error, place)}"
    left, right = (_to_place(v, place, top) for v in (value, error))
    return f"({left} ± {right})e{top}"


def two_digits(number: float) -> str:
    """An uncertainty with two significant digits."""
    if not math.isfinite(number) or number == 0:
        return _bare(number)
    place = _place(number, DIGITS)
    top = place + DIGITS - 1
    return _to_place(number, place) if _SMALLEST <= top <= _LARGEST else f"{number:.{DIGITS - 1}e}"


def _place(error: float, digits: int) -> int:
    """The power of ten of the last of that many digits of an uncertainty."""
    return int(f"{error:.{digits - 1}e}".partition("e")[2]) - digits + 1


def _to_place(number: float, place: int, power: int = 0) -> str:
    """A number rounded to a power of ten, in units of another."""
    from decimal import ROUND_HALF_EVEN, Context, Decimal

    room = Context(prec=800)  # more than any float has places
    unit = Decimal((0, (1,), place))
    rounded = Decimal(repr(float(number))).quantize(unit, ROUND_HALF_EVEN, room)
    text = f"{rounded.scaleb(-power, room):f}"
    return text.removeprefix("-") if not rounded else text


def _bare(number: float) -> str:
    return repr(float(number)).removesuffix(".0")


def to_plain(value: float, error: float) -> str:
    """The same with all digits, as `--x` reads it."""
    return f"{_bare(value)}±{_bare(error)}"

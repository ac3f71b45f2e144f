"""The uncertainty of a value from those of its variables, by its gradient.

u² = Σ (∂f/∂x · u(x))² + 2 Σ ∂f/∂x · ∂f/∂y · cov(x, y): the law of propagation of uncertainty of the Guide to
the Expression of Uncertainty in Measurement (JCGM 100:2008, 5.1.2 and 5.2.2), to the first order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from gradcli.commands.errors import usage

if TYPE_CHECKING:
    from gradcli.commands.evaluation import Evaluation
    from gradcli.commands.options import Request
    from gradcli.commands.output import Style

DIGITS = 2  # of an uncertainty that are shown
_LARGEST, _SMALLEST = 15, -5  # powers of ten between which numbers are written out


class Share:
    """What one input, or a pair that is correlated, adds to the square of the uncertainty."""

    __slots__ = ("name", "square")

    def __init__(self, name: str, square: float) -> None:
        self.name, self.square = name, square

    @property
    def contribution(self) -> float:
        """Its root; negative where a correlation takes away."""
        return math.copysign(math.sqrt(abs(self.square)), self.square)


def named(items: Iterable[str], option: str, count: int, known: Iterable[str]) -> dict[Any, str]:
    """`x=VALUE` or `x,y=VALUE` as names to text."""
    from gradcli.language.errors import did_you_mean, suggest

    names = list(known)
    found: dict[Any, str] = {}
    for item in items:
        left, equals, text = item.partition("=")
        words = tuple(word.strip() for word in left.split(","))
        if not equals or len(words) != count or not text.strip():
            shape = "x" if count == 1 else "x,y"
            raise usage(
                f"{option} wants {shape}=VALUE, not {item!r}", hint=f"as in {option} {shape}=0.1"
            )
        for word in words:
            if word not in names:
                raise usage(
                    f"{option}: {word!r} is no variable (there are: {', '.join(names) or 'none'})",
                    hint=did_you_mean(suggest(word, names)),
                    kind="name",
                )
        key: Any = words[0] if count == 1 else tuple(sorted(words))
        if key in found:
            raise usage(f"{option}: {left} is given twice")
        if count == 2 and words[0] == words[1]:
            raise usage(
                f"{option}: {left} is one variable", hint="its variance is its uncertainty squared"
            )
        found[key] = text
    return found


def all_uncertainties(request: Request, items: Iterable[str]) -> dict[str, str]:
    """The texts of the uncertainties: those behind ±, and those of --uncertainty."""
    found = dict(request.uncertainties)
    for name, text in named(items, "--uncertainty", 1, request.names).items():
        if name in found:
            raise usage(f"--uncertainty: {name} has one already, behind its value")
        found[name] = text
    return found


class Uncertainties:
    """The uncertainties of a command line, and what comes of them.

    hidden: the variables whose gradients are needed for it and were not asked for.
    """

    __slots__ = ("budget", "covariances", "error", "hidden", "parts", "request", "texts", "value")

    def __init__(
        self,
        request: Request,
        uncertainties: Iterable[str],
        covariances: Iterable[str],
        budget: bool,
        altered: Mapping[str, bool],
    ) -> None:
        self.request, self.budget = request, budget
        self.texts = all_uncertainties(request, uncertainties)
        self.covariances = named(covariances, "--covariance", 2, request.names)
        if not self.texts:
            what = "--covariance" if self.covariances else "--budget"
            raise usage(
                f"{what}: no variable has an uncertainty",
                hint="write one behind a value, as in --x 0.994±0.002",
            )
        for pair in self.covariances:
            for name in pair:
                if name not in self.texts:
                    raise usage(
                        f"--covariance: {name} has no uncertainty",
                        hint=f"add --uncertainty {name}=VALUE",
                    )
        for option, given in altered.items():
            if given:
                raise usage(
                    f"{option} and uncertainties exclude each other", hint=f"leave out {option}"
                )
        wanted = list(request.names) if request.wrt is None else request.wrt
        wanted = [name for name in wanted if name not in request.no_grad]
        self.hidden = [name for name in self.texts if name not in wanted]
        request.no_grad = [name for name in request.no_grad if name not in self.hidden]
        if request.wrt is not None:
            request.wrt = [*request.wrt, *self.hidden]
        self.parts: list[Share] = []
        self.value = self.error = 0.0

    def propagate(self, evaluation: Evaluation) -> None:
        """Work the uncertainty out, once the gradients are there."""
        from gradcli.commands.evaluation import cannot_require_grad, read_value

        value = evaluation.value
        if value.is_complex():
            raise evaluation.refused(TypeError("the uncertainty of a complex number is no number"))
        errors = {}
        for name, text in self.texts.items():
            tensor = evaluation.variables[name]
            if name in evaluation.integers:
                raise cannot_require_grad(self.request, name, tensor)
            found = read_value(text, f"--uncertainty {name}=").detach().array
            errors[name] = _fitted(found, tensor, f"--uncertainty {name}")
        covariances = {}
        for (one, other), text in self.covariances.items():
            shapes = [evaluation.variables[name].shape for name in (one, other)]
            if shapes[0] != shapes[1]:
                raise usage(
                    f"--covariance: {one} and {other} have shapes {tuple(shapes[0])} and {tuple(shapes[1])}"
                )
            found = read_value(text, f"--covariance {one},{other}=").detach().array
            covariances[one, other] = _fitted(
                found, evaluation.variables[one], f"--covariance {one},{other}", signed=True
            )
        gradients = {
            name: None if tensor.grad is None else tensor.grad.array
            for name, tensor in evaluation.variables.items()
        }
        self.parts = shares(gradients, errors, covariances)
        self.value, self.error = float(value.item()), total(self.parts)

    def results(self, style: Style) -> list[tuple[str | None, Any]]:
        """The lines: the value, then what each input contributes."""
        if style.form == "plain":
            found: list[tuple[str | None, Any]] = [("value", to_plain(self.value, self.error))]
            if self.budget:
                found += [(f"{part.name}.contribution", part.contribution) for part in self.parts]
            return found
        found = [("value", with_uncertainty(self.value, self.error))]
        if self.budget:
            found += [
                (
                    f"{part.name}.contribution",
                    f"{two_digits(part.contribution)} ({self._share(part):.1%})",
                )
                for part in self.parts
            ]
        return found

    def _share(self, part: Share) -> float:
        return part.square / self.error**2 if self.error else 0.0

    def to_json(self, found: dict[str, Any]) -> dict[str, Any]:
        """The object of `grad` with the uncertainty, and with the budget if it is asked for."""
        from gradcli.commands import output

        grads = {name: grad for name, grad in found["grads"].items() if name not in self.hidden}
        made = {**found, "grads": grads, "uncertainty": output.to_json(self.error)}
        if self.budget:
            made["budget"] = {
                part.name: {
                    "contribution": output.to_json(part.contribution),
                    "share": output.to_json(self._share(part)),
                }
                for part in self.parts
            }
        return made


def _fitted(array: Any, tensor: Any, option: str, signed: bool = False) -> Any:
    """An uncertainty as an array of its variable's shape."""
    import numpy as np

    if array.dtype.kind not in "fiu" or not np.isfinite(array).all():
        raise usage(f"{option}: an uncertainty is a finite real number")
    if not signed and (array < 0).any():
        raise usage(f"{option}: an uncertainty is not negative")
    if array.shape not in ((), tuple(tensor.shape)):
        raise usage(
            f"{option}: it has shape {array.shape}, and its variable {tuple(tensor.shape)}",
            hint="give one number, or one for each element",
        )
    return np.asarray(array, np.float64)


def shares(
    gradients: Mapping[str, Any],
    errors: Mapping[str, Any],
    covariances: Mapping[tuple[str, str], Any],
) -> list[Share]:
    """What each input adds; a name without a gradient adds nothing."""
    import numpy as np

    found = []
    for name, error in errors.items():
        gradient = gradients.get(name)
        product = 0.0 if gradient is None else np.asarray(gradient, np.float64) * error
        found.append(Share(name, float(np.sum(np.square(product)))))
    for (one, other), covariance in covariances.items():
        a, b = gradients.get(one), gradients.get(other)
        if a is None or b is None:
            continue
        product = 2 * np.asarray(a, np.float64) * np.asarray(b, np.float64) * covariance
        found.append(Share(f"{one},{other}", float(np.sum(product))))
    return found


def total(parts: Iterable[Share]) -> float:
    """The uncertainty; usage error where covariances leave less than nothing."""
    squares = [part.square for part in parts]
    square = math.fsum(squares) if all(map(math.isfinite, squares)) else sum(squares)
    if square < 0:
        if -square > 1e-9 * max(map(abs, squares)):
            raise usage(
                "--covariance: no inputs with these uncertainties are correlated so strongly",
                hint="a covariance is at most the product of the two uncertainties",
            )
        square = 0.0
    return math.sqrt(square) if square == square else square


def with_uncertainty(value: float, error: float) -> str:
    """`9.781 ± 0.053`: two digits of the uncertainty, and the value to the same place."""
    if not (math.isfinite(value) and math.isfinite(error)) or error == 0:
        return f"{_bare(value)} ± {_bare(error)}"
    place = _place(error)
    top = max(place + DIGITS - 1, math.floor(math.log10(abs(value))) if value else place)
    if _SMALLEST <= top <= _LARGEST:
        return f"{_to_place(value, place)} ± {_to_place(error, place)}"
    left, right = (_to_place(v, place, top) for v in (value, error))
    return f"({left} ± {right})e{top}"


def two_digits(number: float) -> str:
    """An uncertainty alone, in as many digits."""
    if not math.isfinite(number) or number == 0:
        return _bare(number)
    place = _place(number)
    top = place + DIGITS - 1
    return _to_place(number, place) if _SMALLEST <= top <= _LARGEST else f"{number:.{DIGITS - 1}e}"


def _place(error: float) -> int:
    """The power of ten of the last digit that is shown of an uncertainty."""
    return int(f"{error:.{DIGITS - 1}e}".partition("e")[2]) - DIGITS + 1


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

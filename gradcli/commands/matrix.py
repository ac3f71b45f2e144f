"""What `jacobian`, `hessian` and `jvp` share: the vectors to multiply with, and how results are written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gradcli.commands import output
from gradcli.commands.command_errors import usage
from gradcli.commands.declarations import Option
from gradcli.commands.request import Request
from gradcli.commands.request_evaluation import (
    ENGINE_ERRORS,
    Evaluation,
    cannot_require_grad,
    read_value,
    read_variables,
    run,
)

if TYPE_CHECKING:
    from gradcli.language.located_errors import LanguageError
    from gradcli.system.process import AnyContext
    from gradcli.transforms.traced_matrices import Start


def evaluated(ctx: AnyContext, request: Request) -> tuple[Evaluation, Start]:
    """The evaluation, and what the program started from: the derivative is that of this run."""
    from gradcli.transforms.traced_matrices import Start

    variables, integers = read_variables(ctx, request)
    start = Start()
    return run(request, variables, integers), start


@contextmanager
def again(evaluation: Evaluation, start: Start) -> Iterator[None]:
    """Where the program runs once more, for a derivative of that run; an error is one of the expression's."""
    start.again()
    try:
        yield
    except ENGINE_ERRORS as error:
        raise evaluation.error_for(error) from error


def vector_option(help: str) -> Option:
    """--vector, which `vectors_of` reads."""
    return Option("--vector [NAME=]VALUE", help, name="vectors", many=True)


def no_direction(wanted: Sequence[str]) -> LanguageError:
    """The error where there is no --vector."""
    return usage("no direction", hint=f"add --vector VALUE, of the shape of {wanted[0]}")


def vector_texts(texts: Iterable[str], wanted: Sequence[str]) -> dict[str, str]:
    """What --vector says, by variable: a bare VALUE where there is one variable, else NAME=VALUE."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name.isidentifier():
            if len(wanted) != 1:
                raise usage(
                    f"--vector: of which variable? (there are: {', '.join(wanted)})",
                    hint=f"write --vector {wanted[0]}=VALUE, or choose one with --wrt",
                )
            name, value = wanted[0], text
        if name in found:
            raise usage(f"--vector: {name} has two vectors", hint="leave out one")
        found[name] = value
    return found


def vectors_of(
    texts: Iterable[str], evaluation: Evaluation, wanted: Sequence[str]
) -> dict[str, Any]:
    """The vectors of --vector, of their variables' shapes and dtypes."""
    found: dict[str, Any] = {}
    for name, text in vector_texts(texts, wanted).items():
        if name not in wanted:
            if name in evaluation.integers:
                raise cannot_require_grad(evaluation.request, name, evaluation.variables[name])
            raise no_variable(name, wanted)
        tensor = evaluation.variables[name].detach()
        shape = tuple(tensor.shape)
        if text.strip() == "ones":
            from gradcli.registry.table import resolve

            vector = resolve("ones_like")(tensor)
        else:
            vector = read_value(text, "--vector").to(tensor.dtype).detach()
        if tuple(vector.shape) != shape:
            raise usage(
                f"--vector: {name} has shape {shape}, and its vector {tuple(vector.shape)}",
                kind="shape",
            )
        found[name] = vector
    return found


def no_variable(name: str, wanted: Iterable[str]) -> LanguageError:
    """The error for a --vector of what is no variable to differentiate by."""
    known = ", ".join(wanted)
    return usage(f"--vector: {name!r} is no variable (there are: {known})", kind="name")


def tracked(evaluation: Evaluation) -> tuple[list[str], dict[str, Any]]:
    """The names of the variables that require grad, and all variables, which are to be run again."""
    found = [n for n, t in evaluation.variables.items() if t.requires_grad]
    for name in evaluation.integers if not found else ():
        raise cannot_require_grad(evaluation.request, name, evaluation.variables[name])
    if not found:
        raise nothing_to_differentiate_by()
    return found, {n: t.detach() for n, t in evaluation.variables.items()}


def nothing_to_differentiate_by() -> LanguageError:
    """The error where no variable requires grad."""
    return usage("nothing to differentiate with respect to", hint="see --wrt and --no-grad")


SPARSE = Option("--sparse", "Only the elements that are not zero, each with its place.")


def raise_on_sparse(style: output.Style) -> None:
    """Raise where the elements of a sparse matrix have no form: in arrays, which have all elements."""
    if style.form not in ("text", "plain", "json"):
        option = f"-o {style.path}" if style.path is not None else f"--{style.form}"
        raise usage(f"--sparse does not go with {option}", hint="--plain or --json have the places")


def _elements(name: str, found: Any) -> list[tuple[str, Any]]:
    """The elements of a sparse matrix as results of their own: `x.jacobian[0, 1]`; others as they are."""
    if not hasattr(found, "indices"):
        return [(name, found)]
    if not len(found.values):
        output.note(f"{name}: every element is zero")
    return [
        (f"{name}[{', '.join(map(str, place))}]" if place else name, value)
        for place, value in zip(found.indices.tolist(), found.values, strict=True)
    ]


def to_json(found: Any, precision: int | None) -> Any:
    """A matrix in JSON; of a sparse one its shape, the places of its elements, and they."""
    if not hasattr(found, "indices"):
        return output.to_json(found, precision)
    return {
        "shape": list(found.shape),
        "indices": found.indices.tolist(),
        "values": output.to_json(found.values, precision),
    }


def note_slow(names: list[str]) -> None:
    """Say which operators ran entry by entry, where all could have been done at once."""
    for name in dict.fromkeys(names):
        output.note(f"{name} has no form for many seeds at once: it ran once for each")


def write(
    request: Request, results: list[tuple[str, Any]], made: Callable[[], dict[str, Any]]
) -> None:
    """The results as text or plain lines, or as the object, which is made only then."""
    if request.style.form == "json":
        output.write_json({"expression": request.source, **made()})
    else:
        every = [one for name, found in results for one in _elements(name, found)]
        output.write_results(every, request.style)

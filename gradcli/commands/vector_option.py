"""--vector: the directions of derivatives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gradcli.commands.command_errors import usage

if TYPE_CHECKING:
    from gradcli.commands.request import Request
    from gradcli.language.located_errors import LanguageError


def vector_texts(texts: Iterable[str], wanted: Sequence[str]) -> dict[str, str]:
    """What --vector says, by variable: a bare VALUE where there is one variable, else NAME=VALUE."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name.isidentifier():
            if len(wanted) != 1:
                hint = f"write --vector {wanted[0]}=VALUE, or choose one with --wrt"
                numbers = [number.strip() for number in text.strip("[]() ").split(",")]
                if len(numbers) == len(wanted):
                    pairs = zip(wanted, numbers, strict=True)
                    hint = "write " + " ".join(f"--vector {n}={number}" for n, number in pairs)
                said = f"--vector: of which variable? (there are: {', '.join(wanted)})"
                raise usage(said, hint=hint)
            name, value = wanted[0], text
        if name in found:
            raise usage(f"--vector: {name} has two vectors", hint="leave out one")
        found[name] = value
    return found


def vectors_of(
    texts: Iterable[str],
    wanted: Sequence[str],
    tensors: Mapping[str, Any],
    request: Request,
    integers: Iterable[str],
) -> dict[str, Any]:
    """The vectors of --vector, of their variables' shapes and dtypes."""
    from gradcli.commands.request_evaluation import cannot_require_grad, read_value

    vectors: dict[str, Any] = {}
    for name, text in vector_texts(texts, wanted).items():
        if name not in wanted:
            if name in integers:
                raise cannot_require_grad(request, name, tensors[name])
            raise no_variable(name, wanted)
        tensor = tensors[name]
        if text.strip() == "ones":
            from gradcli.engine.registry.table import resolve

            vector = resolve("ones_like")(tensor)
        else:
            vector = read_value(text, "--vector").to(tensor.dtype).detach()
        if vector.shape != tensor.shape:
            shapes = f"has shape {tuple(tensor.shape)}, and its vector {tuple(vector.shape)}"
            raise usage(f"--vector: {name} {shapes}", kind="shape")
        vectors[name] = vector
    return vectors


def no_direction(wanted: Sequence[str]) -> LanguageError:
    """The error where there is no --vector."""
    return usage("no direction", hint=f"add --vector VALUE, of the shape of {wanted[0]}")


def no_variable(name: str, wanted: Iterable[str]) -> LanguageError:
    """The error for a --vector of what is not a variable to differentiate by."""
    known = ", ".join(wanted)
    return usage(f"--vector: {name!r} is not a variable (there are: {known})", kind="name")


def nothing_to_differentiate_by() -> LanguageError:
    """The error where no variable requires grad."""
    return usage("nothing to differentiate with respect to", hint="see --wrt and --no-grad")

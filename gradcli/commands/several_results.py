"""The uncertainties of the results of a program that has several: `a*b, a/b`, a vector, a named tuple."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.columns.optimize.spaces import Space, tensor_of
from gradcli.columns.streaming.mapped_program import Rows
from gradcli.commands.input_uncertainties import InputUncertainties
from gradcli.commands.question import Answer, Question, called, value_keys
from gradcli.commands.request_evaluation import cannot_require_grad
from gradcli.engine.core.backward_pass import grad
from gradcli.engine.core.tensor import Tensor
from gradcli.engine.registry.table import resolve
from gradcli.engine.system import dtypes
from gradcli.language import run
from gradcli.language.rewritten_sources import last_items

if TYPE_CHECKING:
    from gradcli.commands.request_evaluation import Evaluation

Array = Any


def is_several(value: Any) -> bool:
    """Whether a value has several numbers, or none."""
    return value.numel() != 1 if isinstance(value, Tensor) else isinstance(value, tuple | list)


def several(question: Question, evaluation: Evaluation) -> Answer:
    """Each number of the value with its uncertainty, and how these are related."""
    request, variables = question.request, evaluation.variables
    inputs = InputUncertainties(request, question)
    try:
        numbers = _numbers(evaluation.value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise evaluation.error_for(error) from error
    if numbers.is_complex():
        raise evaluation.error_for(TypeError("the uncertainty of a complex number is not a number"))
    names = [*inputs.texts.errors]
    for name in names:
        if name in evaluation.integers:
            raise cannot_require_grad(request, name, variables[name])
    # The tape of the one run has the slopes, so that what is drawn at random is drawn once.
    slopes = [_slopes(numbers[k], [variables[n] for n in names]) for k in range(numbers.numel())]
    inputs.read({n: variables[n].detach() for n in names})
    with dtypes.as_default(dtypes.float64):
        moved = _moved(evaluation, inputs)
        values = np.asarray(numbers.detach().array, np.float64)
        found = inputs.of_elements([*_labels(request, evaluation.value)], values, slopes, moved)
    return Answer(
        request,
        inputs.lines(found, request.style),
        lambda p: {**value_keys(evaluation.value, p), **inputs.to_json(found)},
        evaluation.value,
    )


def _numbers(value: Any) -> Any:
    """The numbers of a value, one after the other."""
    parts = [value] if isinstance(value, Tensor) else list(value)
    found = resolve("cat")([tensor_of(part).reshape((-1,)) for part in parts])
    return found if found.is_complex() else found.double()


def _slopes(number: Any, inputs: list[Any]) -> Array:
    """The gradient of a number by tensors, one after the other."""
    found: list[Any] = [None] * len(inputs)
    if number.requires_grad:
        found = list(grad([number], inputs, retain_graph=True, allow_unused=True))
    pieces = [
        np.zeros(tensor.numel()) if one is None else np.ravel(one.array)
        for one, tensor in zip(found, inputs, strict=True)
    ]
    return np.concatenate(pieces).astype(np.float64)


def _moved(evaluation: Evaluation, inputs: InputUncertainties) -> Callable[[Array], Array]:
    """The numbers of the program's value where inputs are moved, a row for each of theirs."""
    request, held = evaluation.request, evaluation.tensors()
    fixed = {n: t.double() if t.is_floating_point() else t for n, t in held.items()}
    space = Space({n: fixed.pop(n).array for n in inputs.inputs}, {**request.loaded, **fixed})

    def flat(z: Any) -> Any:
        given = {**space.fixed, **space.shaped(z)}
        return _numbers(run(request.program, given, write=_silent).value)

    rows = Rows(flat, {}, [])

    def moved(points: Array) -> Array:
        found = rows({"z": points}, len(points))
        if found.refused:
            raise found.refused[min(found.refused)]
        return np.stack([np.asarray(one, np.float64) for one in found.values.values()], 1)

    return moved


def _labels(request: Any, value: Any) -> Iterator[str]:
    """What each number is called: `p` of `p, q`, `value[1]` of an expression, `v[0]` of the vector v."""
    name = "value" if (own := called(request)) == "f" else own
    if isinstance(value, Tensor):
        yield from (f"{name}[{','.join(map(str, at))}]" for at in np.ndindex(*value.shape))
        return
    texts = getattr(value, "_fields", None) or getattr(value, "fields", None)
    texts = texts or last_items(request.source) or []
    for k, item in enumerate(value):
        own_name = len(texts) == len(value) and [*texts].count(texts[k]) == 1
        text = texts[k] if own_name and texts[k].isidentifier() else f"{name}[{k}]"
        for at in np.ndindex(*np.shape(tensor_of(item).detach().array)):
            yield f"{text}[{','.join(map(str, at))}]" if at else text


def _silent(text: str) -> None:
    """What a program prints is printed once, when it runs for its value."""


__all__ = ["is_several", "several"]

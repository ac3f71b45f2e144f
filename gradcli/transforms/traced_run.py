"""A program run once on traced arrays, and what its errors say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.engine.system import dtypes
from gradcli.language import run
from gradcli.language.interpreter import say
from gradcli.language.located_errors import LanguageError
from gradcli.language.program import Program
from gradcli.language.scope_checks import free_names
from gradcli.transforms.tracing.tracer import Tracer, trace_program

CONSTANTS = {"pi": np.pi}  # kept by name in what is printed


def traced_run(
    program: Program,
    arrays: Mapping[str, Any],
    wrt: Sequence[str],
    follow: bool,
    names: Mapping[str, Any],
    again: bool = False,
    said: bool = False,
    path: Sequence[bool] | None = None,
    numbers: Mapping[str, Any] | None = None,
) -> tuple[Tensor, Tracer]:
    """A program's value and the trace of how it came about: see `gradcli.transforms.tracing`.

    wrt: the variables that require grad. follow: whether conditions may go by the values. again:
    whether the gradients are to be differentiated again. said: whether what the program prints is
    printed. path: the branches to take, whatever the values. numbers: other constants that keep their
    names. Raises LanguageError where the value is not a tensor.
    """
    own = {n: v for n, v in names.items() if n not in arrays}
    numbers = {n: v for n, v in CONSTANTS.items() if n not in arrays} | dict(numbers or {})
    printed: list[str] = []  # by the first run, so that a second one does not print it again

    def recorded(numbers: Mapping[str, Any]) -> tuple[Any, Tracer]:
        before = iter([*printed])

        def write(text: str) -> None:
            if said and next(before, None) is None:
                say(text)
                printed.append(text)

        held: dict[str, Any] = {}

        def traced(**space: Tensor) -> Any:
            made = run(program, {**space, **own}, write=write)
            held.update((n, v) for n, v in made.names.items() if n not in {**space, **own})
            return made.value

        value, trace = trace_program(traced, arrays, wrt, follow, numbers, again, path)
        trace.assigned = held
        return value, trace

    with _worded(program):
        try:
            value, trace = recorded(numbers)
        except (RuntimeError, LanguageError) as error:
            named = not numbers.keys().isdisjoint(free_names(program))
            if isinstance(error, LanguageError) and not named:
                raise
            # what PyTorch refuses for its own reasons is refused in its words, and in its place
            leaves = {n: wrap(np.array(v), requires_grad=n in wrt) for n, v in arrays.items()}
            run(program, {**leaves, **own}, write=lambda text: None)
            if not named:
                raise
            value, trace = recorded({})  # with pi as a number, where no tensor fits
    if wrt and (isinstance(value, bool) or getattr(value, "dtype", None) is dtypes.boolean):
        from gradcli.language.no_derivative import without_derivative

        refused = without_derivative(program, value, "derivative")
        assert refused is not None
        raise refused
    if isinstance(value, (int, float, complex)):
        value = wrap(np.asarray(value, np.float64)[()])
    if not isinstance(value, Tensor):
        from gradcli.language.runtime_errors import no_tensor

        raise no_tensor(program, value, "derivative")
    return value, trace


@contextmanager
def _worded(program: Program) -> Iterator[None]:
    """Refusals that stand nowhere in the program, as errors of the program."""
    try:
        yield
    except RuntimeError as error:
        raise LanguageError(
            str(error),
            kind="value",
            source=program.source,
            span=getattr(error, "span", None),
            usage=False,
        ) from error

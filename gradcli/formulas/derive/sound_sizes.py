"""What operators require of sizes beyond what they refuse: square matrices, and matrices of full rank.

The rank at a generic point is a property of the sizes: X.T@X of a wide X is singular wherever it is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from gradcli.formulas.algebra.generic_points import Generic, quiet, sample
from gradcli.language.located_errors import LanguageError
from gradcli.language.program import Program
from gradcli.operators.primitives.lapack import svdvals
from gradcli.transforms.traced_run import traced_run
from gradcli.transforms.tracing.calls import Call, Value, calls, operands_of

_NEGLIGIBLE = 1e-11  # a singular value, relative to the largest


def are_square(made: Iterable[Call]) -> bool:
    """Whether dimensions with one letter in an operator's `index` are equal, as those of a trace."""
    for call in made:
        for v, letters in zip(operands_of(call), call.primitive.index.split(","), strict=False):
            sizes: dict[str, int] = {}
            for n, letter in zip(v.shape, letters, strict=False):
                if sizes.setdefault(letter, n) != n:
                    return False
    return True


def is_sound(
    program: Program, arrays: Mapping[str, Any], names: Mapping[str, Any], square: bool
) -> bool:
    """Whether what must have full rank has it in these shapes; and with `square`, squares are squares."""
    try:
        with quiet():
            value, trace = traced_run(program, arrays, (), True, names)
    except (LanguageError, RuntimeError):
        return False
    made = calls([trace.value_of(value)])
    return (are_square(made) or not square) and not (
        asks_for_rank(made) and singular(program, arrays, names)
    )


def asks_for_rank(made: Iterable[Call]) -> bool:
    """Whether one of these calls has a derivative for matrices of full rank alone."""
    return any(call.primitive.full_rank for call in made)


def singular(program: Program, arrays: Mapping[str, Any], names: Mapping[str, Any]) -> Value | None:
    """The first matrix that must have full rank and has it at no point of these shapes.

    arrays: the variables; by their values only integers count. names: other names that the program reads.
    """
    found = None
    real = [n for n, v in arrays.items() if np.asarray(v).dtype.kind in "fc"]
    # Two draws, since either alone may be singular for another reason: A - A.T is 0 of symmetric
    # matrices, and cholesky(A) refuses others.
    for symmetric in (True, False):
        drawn = {n: _drawn(np.shape(arrays[n]), k, symmetric) for k, n in enumerate(real)}
        try:
            with quiet():  # of leaves, so that nodes know where they come from
                result, trace = traced_run(program, {**arrays, **drawn}, real, True, names)
            found = _without_rank(calls([trace.value_of(result)]))
        except (LanguageError, RuntimeError):  # such as a matrix with NaN
            continue
        if found is None:
            return None
    return found


def _drawn(shape: tuple[int, ...], number: int, symmetric: bool) -> Any:
    return sample(shape, number) if symmetric else Generic(number + 1).uniform(-1.5, 1.5, shape)


def _without_rank(made: Iterable[Call]) -> Value | None:
    for call in made:
        if call.primitive.full_rank:
            operand = operands_of(call)[0]
            sizes = svdvals(np.asarray(operand.value))
            if sizes.size and (sizes[..., -1] <= _NEGLIGIBLE * sizes[..., 0]).all():
                return operand
    return None


def singular_said(operand: Value, program: Program, arrays: Mapping[str, Any]) -> str:
    """`X.T@X is singular for every X of shape (3, 5)`."""
    read = {operand.name, *(v.name for c in calls([operand]) for v in operands_of(c))}
    shapes = ", ".join(f"{n} of shape {np.shape(v)}" for n, v in arrays.items() if n in read)
    span = operand.call.span if operand.call is not None else None
    text = "the matrix" if span is None else program.source[span[0] : span[1]]
    return f"{operand.name or text} is singular for every {shapes}"

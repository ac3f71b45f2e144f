"""Whether a program's gradients are right at a point: what `gradcli check` says of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.engine.core.tensor import wrap
from gradcli.language import run
from gradcli.language.located_errors import OPERATION_ERRORS
from gradcli.language.no_derivative import without_derivative
from gradcli.language.program import Program
from gradcli.transforms.fault_search import CheckedPart, blame
from gradcli.transforms.finite_differences import (
    RTOL,
    Checked,
    check_point,
    gradient_function,
    is_analytic,
    outputs_of,
    random_cotangents,
)
from gradcli.transforms.kinks import ERRORS, Watched
from gradcli.transforms.traced_matrices import Start


class Verdict:
    """A check at one point: of gradients or, with `second`, of second derivatives.

    arrays: the point. by: name -> both gradients. part: the operation to blame, if one is known. watched: a
    run that tells more, where slopes differ from side to side or the gradient is not the slope.
    """

    __slots__ = ("arrays", "by", "part", "second", "watched")

    def __init__(
        self, arrays: dict[str, Any], by: dict[str, Checked], second: bool, part: CheckedPart | None
    ) -> None:
        self.arrays, self.by, self.second, self.part = arrays, by, second, part
        self.watched: Watched | None = None

    @property
    def ok(self) -> bool:
        """Whether all gradients are right."""
        return all(c.ok for c in self.by.values())

    @property
    def at_edge(self) -> bool:
        """Whether a gradient is wrong only for having no finite value to be compared with."""
        return any(c.at_edge for c in self.by.values() if not c.ok)


def function_of(
    program: Program, names: Mapping[str, Any], says: bool = False
) -> Callable[..., Any]:
    """The program as a function of its variables; a random one draws the same at every point.

    says: whether what the program prints is printed, the first time.
    """
    start = Start()

    def function(**tensors: Any) -> Any:
        nonlocal says
        start.again()
        write, says = None if says else _silent, False
        return run(program, {**names, **tensors}, write=write).value

    return function


def _close(
    second: dict[str, Checked],
    program: Program,
    arrays: dict[str, Any],
    wanted: Sequence[str],
    names: Mapping[str, Any],
) -> None:
    """Take second derivatives that the rules give no numbers for from power series, where these have them."""
    lost = [n for n, c in second.items() if not c.ok and not np.isfinite(c.analytical).all()]
    if not lost or any(np.asarray(arrays[n]).dtype.kind != "f" for n in wanted):
        return
    from gradcli.transforms import removable

    tensors = {n: wrap(np.array(a)) for n, a in arrays.items()}
    try:
        found, _ = removable.hessian(program, tensors, wanted, names)
    except OPERATION_ERRORS:
        return
    for name in lost:
        if all(np.isfinite(block).all() for block in found[name].by.values()):
            second[name].ok = second[name].by_series = True


def _silent(text: str) -> None:
    """Nothing: it has been printed."""


def _watched(
    function: Callable[..., Any], arrays: Mapping[str, Any], wanted: Sequence[str], number: int
) -> Watched | None:
    """The run, with the cotangents that it is checked with; None where it cannot be watched."""
    try:
        first = Watched(function, arrays, wanted)
        starts = random_cotangents(first.outputs, number)
        return Watched(function, arrays, wanted, starts[0]) if starts else None
    except ERRORS:
        return None


def verdicts(
    program: Program,
    arrays: dict[str, Any],
    wanted: Sequence[str],
    names: Mapping[str, Any],
    *,
    number: int = 0,
    rtol: float | None = None,
    atol: float | None = None,
    second_order: bool = False,
    watch: bool = False,
) -> list[Verdict]:
    """The verdict on the gradients at a point; then, if they are right, on the second derivatives.

    wanted: the variables. names: what else the program may read. number: which point it is, so that
    each has cotangents of its own. watch: whether a run is watched in any case.
    rtol, atol: see `compare.allowed`. Raises NotFinite where the value
    has no finite value, what the program raises, and LanguageError where the value has no derivative.
    """
    function = function_of(program, names, says=number == 0)
    values: list[Any] = []

    def kept(**tensors: Any) -> Any:
        value = function(**tensors)
        if not values:
            values.append(value)
        return value

    rtol = RTOL if rtol is None else rtol
    analytic = is_analytic(program, arrays, names)
    by = check_point(kept, arrays, wanted, number=number, rtol=rtol, atol=atol, analytic=analytic)
    if not outputs_of(values[0]):  # no gradient was compared with no slope
        from gradcli.language.runtime_errors import no_tensor

        error = without_derivative(program, values[0], "gradient")
        raise no_tensor(program, values[0], "gradient") if error is None else error
    found = [Verdict(arrays, by, False, None)]
    if watch or not found[0].ok or any(c.kinks for c in by.values()):
        found[0].watched = _watched(function, arrays, wanted, number)
    if not found[0].ok:
        found[0].part = None if found[0].at_edge else blame(function, arrays, wanted, analytic)
    elif second_order:
        slopes = gradient_function(function, list(wanted), number)
        second = check_point(slopes, arrays, wanted, number=number + 1, rtol=rtol, atol=atol)
        _close(second, program, arrays, wanted, names)
        found.append(Verdict(arrays, second, True, None))
    return found

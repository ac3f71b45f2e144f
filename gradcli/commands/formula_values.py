"""Numbers of the formula that `diff` proves, where the tape and power series have none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.engine.core.tensor import Tensor
from gradcli.language import parse, run
from gradcli.language.located_errors import OPERATION_ERRORS
from gradcli.language.program import Program
from gradcli.transforms.removable import Remarks

FAILURES = (*OPERATION_ERRORS, ValueError, TypeError)


def fill(
    results: Mapping[str, Any],
    remarks: Remarks,
    program: Program,
    tensors: Mapping[str, Tensor],
    wanted: Sequence[str],
    names: Mapping[str, Any],
    order: int,
) -> dict[str, Any]:
    """What of the results is not finite, and undecided, from the proved formula, where that is finite.

    results: arrays by what they are called, `x.hessian`, `x.y.hessian` or `x.jacobian`. Notes go to the
    remarks. order: 2 for Hessians, 1 for Jacobians.
    """
    open_ = [
        n
        for n, a in results.items()
        if (n in remarks.open or n in remarks.undecided) and not np.isfinite(np.asarray(a)).all()
    ]
    if not open_:
        return {}
    formulas = _formulas(program, tensors, wanted, names, order)
    made = {}
    for name in open_:
        key = name.rpartition(".")[0]
        text = formulas.get(key, formulas.get(f"{key}.{key}"))
        if text is None:
            continue
        try:
            with np.errstate(all="ignore"):
                value = run(parse(text), {**names, **tensors}, write=lambda _: None).value
        except FAILURES:
            continue
        old = np.asarray(results[name])
        new = np.asarray(value.detach().array if isinstance(value, Tensor) else value)
        if new.shape != old.shape or new.dtype.kind not in "fi":
            continue
        better = ~np.isfinite(old) & np.isfinite(new)
        if not better.any():
            continue
        made[name] = np.where(better, new, old).astype(old.dtype)[()]
        remarks.proved[name] = int(better.sum())
        if np.isfinite(made[name]).all():
            remarks.open.pop(name, None)
            remarks.undecided.pop(name, None)
    return made


def _formulas(
    program: Program,
    tensors: Mapping[str, Tensor],
    wanted: Sequence[str],
    names: Mapping[str, Any],
    order: int,
) -> dict[str, str]:
    """The texts that `diff` proves, by the variables; none where it has none."""
    from gradcli.commands.verbs import diff

    given = {n: np.array(t.array) for n, t in tensors.items()}
    try:
        found = diff(
            program.source, {**names, **given}, wrt=list(wanted), order=order, jacobian=order == 1
        )
    except FAILURES:
        return {}
    return {wanted[0]: found} if isinstance(found, str) else dict(found)

"""Formats that are programs (C, JAX, NumPy, torch, plain Python): writes them, and runs their text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from gradcli.engine.core.tensor import wrap
from gradcli.formulas.algebra.expressions import order
from gradcli.formulas.algebra.spelling import NoExpression
from gradcli.formulas.algebra.unknown_functions import is_unknown
from gradcli.formulas.derive.differentiate import Derivatives


def write(found: Derivatives, form: str) -> str:
    """A function of the variables that returns the value and the gradients: c, jax, or one of `to_code`."""
    for node in order([found.value, *found.by.values()]):
        if node.op == "call" and is_unknown(node.data[0]):
            raise NoExpression(f"{node.data[0]} is not known: a program cannot call it")
    if form == "c":
        from gradcli.formulas.print.c_loops import to_c

        return to_c(found)
    if form == "jax":
        from gradcli.formulas.print.jax_code import to_jax

        return to_jax(found)
    from gradcli.formulas.print.python_code import to_code

    return to_code(found, form)


def run(code: str, form: str, arrays: Iterable[Any]) -> Any:
    """(value, gradients) of a program for the arrays of its variables."""
    values: list[Any]
    if form == "torch":
        values = [wrap(np.asarray(v)) for v in arrays]
    else:
        values = [np.asarray(v)[()] if np.ndim(v) else np.asarray(v).item() for v in arrays]
    if form == "c":
        from gradcli.formulas.print.c_loops import run_c

        return run_c(code, values)
    if form == "jax":
        from gradcli.formulas.print.jax_code import run_jax

        return run_jax(code, values)
    from gradcli.formulas.print.program_reader import run_code
    from gradcli.formulas.print.python_code import modules

    return run_code(code, values, modules(form, code))


__all__ = ["run", "write"]

"""The way from a call of a compiled function to its program and back, as generated Python.

For small arrays this takes as long as the numbers do. So it is written out for the function's variables: no
list is made, and a plan that is there is found by one lookup. What is not usual (a first call, another
kind of argument, a mistake) goes to the function that knows every case.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.columns.compiler.gradients import Gradients
from gradcli.engine.core import pytrees
from gradcli.engine.core.generated_calls import generated
from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.engine.system import dtypes
from gradcli.language.located_errors import OPERATION_ERRORS

if TYPE_CHECKING:
    from gradcli.columns.compiler.compiled_function import CompiledProgram

_NUMBER = ((), "d", True)  # a double's part of the key of a plan
# A step for each variable: its array, and its part of the key of a plan.
_ARGUMENT = """
c = {a}.__class__
if c is Tensor:
 if {a}.node is not None or {a}.tangents: return other(*args, **named)
 tensors = True
 {a} = {a}.array
 c = {a}.__class__
if c is ndarray and {a}.dtype.isnative:
 {k} = {a}.shape, {a}.dtype.char, {a}.flags.c_contiguous
 if not {k}[0]: {a} = {a}[()]
elif c is float64: {k} = NUMBER
elif c is float:
 python = True
 {a} = float64({a})
 {k} = NUMBER
else: return other(*args, **named)
"""


def quick_call(
    names: Sequence[str],
    plans: dict[Any, Any],
    plan_class: type[CompiledProgram],
    other: Callable[..., Any],
    gradients: bool,
    takes_tensors: bool,
) -> Callable[..., Any]:
    """A function of the variables, by position or by name: the value, or (value, gradients by name).

    plans: those made so far, by `CompiledFunction._signature`. other: takes every call that no plan is for.
    """
    count = len(names)
    many = ", ".join(f"a{k}" for k in range(count))
    keys = ", ".join(f"k{k}" for k in range(count))
    body = ["if named:", f" if args or named.__len__() != {count}: return other(*args, **named)"]
    body += [" try:", *(f"  a{k} = named[{name!r}]" for k, name in enumerate(names))]
    body += [" except KeyError: return other(**named)"]
    body += [f"elif args.__len__() == {count}: ({many},) = args", "else: return other(*args)"]
    body += ["tensors = python = False"]
    for k in range(count):
        body += _ARGUMENT.format(a=f"a{k}", k=f"k{k}").strip().splitlines()
    if not takes_tensors:
        body += ["if tensors: return other(*args, **named)"]
    # A Python float beside single precision has the default dtype.
    singles = " or ".join(f"k{k}[1] == 'f'" for k in range(count))
    body += [f"if python and ({singles}): return other(*args, **named)"]
    body += [f"plan = known(({gradients}, default.real, {keys}))"]
    body += ["if plan.__class__ is not Plan: return other(*args, **named)"]
    body += [f"try: found = plan.run({many})"]
    body += ["except errors: return other(*args, **named)"]
    if gradients:
        body += ["if tensors: found = map(wrapped, found)", "value, *slopes = found"]
        body += ["return value, Gradients(zip(plan.names, slopes))"]
    else:
        body += ["if tensors: found = [*map(wrapped, found)]", "spec = plan.trace.spec"]
        body += ["return found[0] if spec is None else unflatten(found, spec)"]
    values = {
        "Gradients": Gradients,
        "NUMBER": _NUMBER,
        "Plan": plan_class,
        "Tensor": Tensor,
        "default": dtypes.default,
        "errors": OPERATION_ERRORS,
        "float64": np.float64,
        "known": plans.get,
        "ndarray": np.ndarray,
        "other": other,
        "unflatten": pytrees.unflatten,
        "wrapped": _wrapped,
    }
    return generated("call", "*args, **named", body, values)  # type: ignore[no-any-return]


def _wrapped(value: Any) -> Any:
    return wrap(value) if isinstance(value, (np.ndarray, np.generic)) else value


__all__ = ["quick_call"]

"""Straight-line Python for small arrays: one assignment an operation, constants passed as values."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcli.engine.registry.dimensions import OVER_FEW, is_short
from gradcli.engine.system.cascaded_sums import FEW, add_reduce
from gradcli.engine.system.generated_builtins import NO_BUILTINS
from gradcli.transforms.tracing.numpy_program import INFIX, Operation, cast, live, operands

_CHUNK = 4000  # assignments in one generated function; Python compiles longer ones slowly


def program(outputs: Sequence[Operation], inputs: Sequence[Operation]) -> Callable[..., Any]:
    """A function of the inputs' arrays that returns a tuple of the outputs' values.

    The text that is compiled has generated names only.
    """
    order = [o for o in live(outputs) if o.function is not None]
    if len(order) <= _CHUNK:
        source, space = source_of(order, outputs, inputs)
        exec(compile(source, "<gradcli plan>", "exec"), space)
        return space["run"]  # type: ignore[no-any-return]
    return _interpreted(order, outputs, inputs)


def source_of(
    order: Sequence[Operation], outputs: Sequence[Operation], inputs: Sequence[Operation]
) -> tuple[str, dict[str, Any]]:
    """(the program's text, the values of its names)."""
    # By that name NumPy's warnings count as ours, and are not shown, as on the tape.
    space: dict[str, Any] = {"__builtins__": NO_BUILTINS, "__name__": __name__}
    known: dict[int, str] = {}
    names: dict[int, str] = {}
    # `v3 = v1 * x0; v1 = v3 + v2`: a local name is taken again once its value has been read for the last
    # time. Python then frees the old array at once, which NumPy's allocator hands out again while it is
    # in the cache.
    last = {o.index: len(order) for o in outputs}
    for at, o in enumerate(order):
        for a in operands(o.args):
            last.setdefault(a.index, at)
            last[a.index] = max(last[a.index], at)
    for k, o in enumerate(inputs):
        names[o.index] = f"x{k}"
    free: list[str] = []
    made = 0

    def value(v: Any) -> str:
        name = known.get(id(v))
        if name is None:
            name = known[id(v)] = f"k{len(known)}"
            space[name] = v
        return name

    def text(v: Any, flat: bool) -> str:
        if type(v) is not Operation:
            if type(v) in (list, tuple) and any(True for _ in operands(v)):
                inner = ", ".join(text(x, flat) for x in v)
                return f"[{inner}]" if type(v) is list else f"({inner},)"
            return value(v)
        if v.index not in names:
            # A 0-d array meets arrays faster than a NumPy scalar does.
            constant = v.args[0]
            if not flat and not v.shape:
                constant = np.asarray(constant)
            return value(_kept(space, v.index, flat, constant))
        return names[v.index]

    lines = [f"def run({', '.join(names[o.index] for o in inputs)}):"]
    for at, o in enumerate(order):
        # Operands that are read for the last time give their names to the result already: Python computes
        # the right side before it assigns.
        dying = [
            names[a.index]
            for a in dict.fromkeys(operands(o.args))
            if last[a.index] == at and names.get(a.index, "x")[0] == "v"
        ]
        arguments = [text(a, not o.shape) for a in o.args]
        free += dying
        if free:
            name = free.pop()
        else:
            name, made = f"v{made}", made + 1
        lines.append(f" {name} = {_call(o, arguments, value)}")
        names[o.index] = name
    returned = [text(o, True) for o in outputs]
    lines.append(f" return ({', '.join(returned)}{',' if returned else ''})")
    return "\n".join(lines), space


def _kept(space: dict[str, Any], index: int, flat: bool, constant: Any) -> Any:
    """The one object for a constant, so that it gets one name."""
    keep = space.setdefault("__constants__", {})
    return keep.setdefault((index, flat), constant)


def _call(o: Operation, arguments: list[str], value: Callable[[Any], str]) -> str:
    f = o.function
    sign = INFIX.get(f)
    if sign is not None and not o.options:
        return f"{arguments[0]} {sign} {arguments[1]}"
    if f is np.negative:
        return f"-{arguments[0]}"
    if f is operator.pow:
        return f"{arguments[0]} ** {arguments[1]}"
    if f is cast:
        return f"{arguments[0]}.astype({arguments[1]})"
    options = "".join([f", {k}={value(v)}" for k, v in o.options])
    if o.kind == "reduce" and is_short(o.args[0].shape, dict(o.options).get("axis")):
        f = OVER_FEW.get(f, f)
    elif f is add_reduce and _adds_well(o):
        f = np.add.reduce  # which it would call, without asking at every run
    return f"{value(f)}({', '.join(arguments)}{options})"


def _adds_well(o: Operation) -> bool:
    """Whether a sum is of few numbers, or of all that lie in order: NumPy adds these as `add_reduce` does."""
    (a, *more), options = o.args, dict(o.options)
    if more or a.dtype.itemsize == 2:
        return False
    whole = options.get("axis") is None and options.get("dtype") is None
    return a.size <= FEW or (whole and a.contiguous)


def _interpreted(
    order: Sequence[Operation], outputs: Sequence[Operation], inputs: Sequence[Operation]
) -> Callable[..., Any]:
    """The same for very long programs: a list of generated functions over one list of values."""
    # Python's compiler takes time that grows faster than a function's length. Functions of 4,000 lines
    # pass their values on in a list; within one, names are local and fast.
    steps: list[Callable[[list[Any]], None]] = []
    for start in range(0, len(order), _CHUNK):
        part = order[start : start + _CHUNK]
        inside = {o.index for o in part}
        needed = {
            a.index: a
            for o in part
            for a in operands(o.args)
            if a.index not in inside and a.kind != "constant"
        }
        given = list(needed.values())
        source, space = source_of(part, part, given)
        exec(compile(source, "<gradcli plan>", "exec"), space)
        steps.append(_step(space["run"], [g.index for g in given], [o.index for o in part]))
    constants = {o.index: o.args[0] for o in outputs if o.kind == "constant"}
    size = max([o.index for o in (*order, *inputs, *outputs)], default=0) + 1

    def run(*arrays: Any) -> tuple[Any, ...]:
        values: list[Any] = [None] * size
        for o, array in zip(inputs, arrays, strict=True):
            values[o.index] = array
        for index, constant in constants.items():
            values[index] = constant
        for step in steps:
            step(values)
        return tuple(values[o.index] for o in outputs)

    return run


def _step(run: Any, given: list[int], made: list[int]) -> Callable[[list[Any]], None]:
    def step(values: list[Any]) -> None:
        for index, found in zip(made, run(*[values[i] for i in given]), strict=True):
            values[index] = found

    return step


__all__ = ["program", "source_of"]

"""A shorter form of what has been recorded, where the layout of results in memory need not be kept.

Derivatives along many directions hold what is the same for all of them. Repeating that is left to the calls
that need it, constants are laid out by rows, and what constants alone give is computed once.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from gradcli.engine.system.array_memory import as_operands
from gradcli.transforms.tracing import abstract_evaluation
from gradcli.transforms.tracing.numpy_program import (
    NumpyProgram,
    Operation,
    fill,
    is_one,
    live,
    operands,
    pieced,
    replaced,
)


def shortened(graph: NumpyProgram, result: Operation) -> Operation:
    """An operation with the same numbers, zeros of either sign aside."""
    known: dict[int, Operation] = {}
    for o in live([result]):
        known[o.index] = _shorter(graph, o, known)
    return known[result.index]


def _shorter(graph: NumpyProgram, o: Operation, known: dict[int, Operation]) -> Operation:
    if o.function is None:
        if o.kind == "constant" and o.ndim and not o.contiguous:
            return graph.constant(np.ascontiguousarray(o.args[0]))
        return o
    args = replaced(o.args, lambda q: known[q.index])
    if o.function is as_operands:
        return args[0]  # type: ignore[no-any-return]
    given = list(operands(args))
    if o.kind in ("view", "elementwise") and given and all(a.kind == "constant" for a in given):
        plain = [replaced(v, lambda q: q.args[0]) for v in args]
        with np.errstate(all="ignore"):
            made = np.ascontiguousarray(o.function(*plain, **dict(o.options)))
        return graph.constant(made if o.shape else made.reshape(())[()])
    if o.kind == "elementwise":
        return _elementwise(graph, o, args)
    if o.function is operator.getitem:
        return abstract_evaluation.indexed(graph, *args) or o
    if o.kind == "view" and all(a.contiguous for a in given) and _name(o) in ("reshape", "ravel"):
        return graph.put("view", o.function, args, dict(o.options), o.shape, o.dtype)
    if o.function is np.add.reduce or o.kind == "fill" or args == o.args:
        return o if args == o.args else _again(graph, o, args)
    return _again(graph, o, args)


def _name(o: Operation) -> str:
    return str(getattr(o.function, "name", getattr(o.function, "__name__", "")))


def _again(graph: NumpyProgram, o: Operation, args: tuple[Any, ...]) -> Operation:
    """The same call of other operands."""
    how: dict[str, Any] = {"axes": o.axes, "keepdims": o.keepdims, "strides": o.strides}
    return graph.put(
        *(o.kind, o.function, args, dict(o.options), o.shape, o.dtype, o.contiguous), **how
    )


def _elementwise(graph: NumpyProgram, o: Operation, args: tuple[Any, ...]) -> Operation:
    """Without operands that are repeated only to be met, and without factors and powers of one."""
    args = tuple(_met(a, args, o.shape) for a in args)
    if o.function is np.power and type(args[1]) is Operation and args[1].kind == "constant":
        if not args[1].shape and args[1].args[0] == 0:
            one = graph.constant(o.dtype.type(1))
            return graph.put("fill", fill, (one, o.shape))
        if not args[1].shape and args[1].args[0] == 1 and _is_like(args[0], o):
            return args[0]  # type: ignore[no-any-return]
    if o.function is np.multiply:
        for a, b in (args, args[::-1]):
            if _is_ones(a) and _is_like(b, o):
                return b  # type: ignore[no-any-return]
    pieces = [*_pieces(args[0], o), *_pieces(args[1], o)] if o.function is np.add else [None]
    if all(pieces):
        return graph.put("whole", pieced, (o.shape, o.dtype, *pieces), None, o.shape, o.dtype)
    contiguous = all(a.ordered for a in operands(args) if a.shape)
    return graph.put("elementwise", o.function, args, dict(o.options), o.shape, o.dtype, contiguous)


def _pieces(a: Any, o: Operation) -> list[Any]:
    """What an operand consists of, besides zeros: (index, values) of slices; [None] if that is not known."""
    if type(a) is Operation and (a.shape, a.dtype) == (o.shape, o.dtype):
        if a.function is pieced:
            return list(a.args[2:])
        if a.function is abstract_evaluation.written and _is_zeros(a.args[0]):
            index = a.args[1] if type(a.args[1]) is tuple else (a.args[1],)
            if all(type(part) is slice or part is Ellipsis for part in index):
                return [(index, a.args[2])]
    return [None]


def _is_zeros(a: Any) -> bool:
    return bool(a.kind == "fill" and a.args[0].kind == "constant" and a.args[0].args[0] == 0)


def _met(a: Any, args: tuple[Any, ...], shape: tuple[int, ...]) -> Any:
    """An operand as it was before it was repeated, where the others give the shape."""
    if type(a) is not Operation or a.function is not np.broadcast_to:
        return a
    source = a.args[0]
    shapes = [b.shape for b in operands(args) if b is not a]
    return source if np.broadcast_shapes(source.shape, *shapes) == shape else a


def _is_like(a: Any, o: Operation) -> bool:
    return type(a) is Operation and (a.shape, a.dtype) == (o.shape, o.dtype)


def _is_ones(a: Any) -> bool:
    if type(a) is Operation and a.kind == "constant" and a.ndim:
        return bool((a.args[0] == 1).all())
    return is_one(a)


__all__ = ["shortened"]

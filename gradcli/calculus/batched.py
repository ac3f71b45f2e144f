"""Many cotangents or tangents at once: arrays with a leading dimension that the rules do not see.

A rule that runs on a `Batched` operand calls rows on it; every row knows here how to take one more
dimension in front. A row that does not is run once for each entry, which is slower and as right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from gradcli.calculus.spelling import ELEMENTWISE
from gradcli.calculus.trace import (
    Call,
    Traced,
    _first_tensor,
    _operand,
    calls,
    operands_of,
    plain_field,
    pullback,
)
from gradcli.engine.operator import Row
from gradcli.engine.tensor import Tensor, scalar, wrap


class Batched(Traced):
    """One value for each entry of a batch: `every` has the batch in front, `value` is one entry's."""

    __slots__ = ("every",)

    def __init__(self, every: Any) -> None:
        self.every = np.asarray(every)
        super().__init__(self.every[0])

    priority = 1

    def called(self, row: Row, values: Sequence[Any]) -> Any:
        """Call a row on operands of which some are batched."""
        return apply(row, list(values))

    def zeros_like(self) -> Any:
        """Zeros of the same shape, equal for every entry."""
        return np.zeros_like(self.value)

    def new_zeros(self, *shape: Any) -> Any:
        """Zeros of a shape, equal for every entry."""
        sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        return np.zeros(tuple(sizes), self.value.dtype)


def _flat(values: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for v in values:
        found += list(v) if isinstance(v, (list, tuple)) else [v]
    return found


def _ndim(value: Any) -> int:
    return int(
        np.ndim(value.value if isinstance(value, Traced) else getattr(value, "array", value))
    )


def apply(row: Row, values: list[Any]) -> Any:
    """Call a row on operands of which some are batched."""
    if row.name.startswith("as_strided"):
        raise NotImplementedError(f"{row.name} depends on the layout of its operand's memory")
    size = next(len(v.every) for v in _flat(values) if isinstance(v, Batched))
    ready: list[Any] | None = None
    if row.kind == "elementwise" or row.name in _ELEMENTWISE:
        ready = _aligned(row, values)
    elif row.name in RULES:
        ready = RULES[row.name](row, values, size)
    elif row.name in DIRECT:
        return Batched(DIRECT[row.name](row, values, size))
    if ready is None:
        return _each(row, values, size)
    results = _run(row, ready)
    made = [Batched(r) if np.ndim(r) and len(r) == size else _same(r, size) for r in results]
    return made[0] if row.single else made


def _same(result: Any, size: int) -> Any:
    return Batched(np.broadcast_to(result, (size, *np.shape(result))))


def _run(row: Row, values: list[Any]) -> tuple[Any, ...]:
    operands = [_operand(v) for v in values]
    for i in row.tensors:
        if row.kinds[i] == "list":
            operands[i] = [
                wrap(v) if isinstance(v, (np.ndarray, np.generic)) else v for v in operands[i]
            ]
        elif isinstance(operands[i], (int, float, complex)):
            operands[i] = scalar(operands[i], _first_tensor(operands))
        elif isinstance(operands[i], (np.ndarray, np.generic)):
            operands[i] = wrap(operands[i])
    with np.errstate(all="ignore"):
        result = row.run(row._arrays(operands))
    return (result,) if row.single else tuple(result)


def _each(row: Row, values: list[Any], size: int) -> Any:
    """The row on every entry by itself."""

    def entry(value: Any, k: int) -> Any:
        if isinstance(value, Batched):
            return value.every[k]
        if isinstance(value, (list, tuple)):
            return type(value)(entry(v, k) for v in value)
        return value

    rows = [_run(row, [entry(v, k) for v in values]) for k in range(size)]
    made = [Batched(np.stack([np.asarray(r[i]) for r in rows])) for i in range(len(rows[0]))]
    return made[0] if row.single else made


# -- how rows take one more dimension -------------------------------------------------------------
def _aligned(row: Row, values: list[Any]) -> list[Any]:
    """Elementwise: batched operands get ones behind the batch, so that the others broadcast."""
    rank = max(_ndim(values[i]) for i in row.tensors if values[i] is not None)
    found = list(values)
    for i in row.tensors:
        if isinstance(values[i], Batched):
            every = values[i].every
            found[i] = every.reshape(len(every), *(1,) * (rank - every.ndim + 1), *every.shape[1:])
    return found


def _full(value: Any, size: int) -> Any:
    """An operand with the batch in front, whether it had it or not."""
    if isinstance(value, Batched):
        return value.every
    array = np.asarray(getattr(value, "array", value))
    return np.broadcast_to(array, (size, *array.shape))


def _dims(value: Any, ndim: int) -> Any:
    if isinstance(value, (tuple, list)):
        return tuple(d % max(ndim, 1) + 1 for d in value)
    return value % max(ndim, 1) + 1


def _shifted(*names: str, all_if_none: bool = False, extra: int = 0) -> Callable[..., Any]:
    """The first operand batched, and these options, which are dimensions, moved by one."""

    def rule(row: Row, values: list[Any], size: int) -> list[Any] | None:
        ndim = _ndim(values[0]) + extra
        if not ndim:
            return None
        found = list(values)
        for i in row.tensors:
            if values[i] is not None and row.kinds[i] == "tensor":
                found[i] = _full(values[i], size)
        for n in names:
            i = row.position[n]
            if values[i] is None or (all_if_none and values[i] in ((), [])):
                found[i] = tuple(range(1, ndim + 1))
            else:
                found[i] = _dims(values[i], ndim)
        return found

    return rule


def _sized(name: str) -> Callable[..., list[Any]]:
    """A reshape: the batch comes before the sizes."""

    def rule(row: Row, values: list[Any], size: int) -> list[Any]:
        found = [_full(values[0], size), *values[1:]]
        i = row.position[name]
        found[i] = (size, *_resolved(values[i], values[0].value.size))
        return found

    return rule


def _resolved(sizes: Sequence[int], count: int) -> tuple[int, ...]:
    known = prod(n for n in sizes if n != -1)
    return tuple(count // max(known, 1) if n == -1 else n for n in sizes)


def _expanded(row: Row, values: list[Any], size: int) -> list[Any]:
    every = _full(values[0], size)
    sizes = tuple(values[1])
    every = every.reshape(size, *(1,) * (len(sizes) - every.ndim + 1), *every.shape[1:])
    return [every, (size, *sizes), *values[2:]]


def _permuted(row: Row, values: list[Any], size: int) -> list[Any]:
    ndim = _ndim(values[0])
    return [_full(values[0], size), (0, *(d % ndim + 1 for d in values[1]))]


def _scattered(row: Row, values: list[Any], size: int) -> list[Any]:
    """The gradient of a selection: sizes get the batch in front, dimensions move by one."""
    found = [_full(values[0], size), *values[1:]]
    sizes = tuple(values[1])
    found[1] = (size, *sizes)
    for n in ("dim", "dim1", "dim2"):
        if n in row.position:
            found[row.position[n]] = _dims(values[row.position[n]], len(sizes))
    return found


def _joined(row: Row, values: list[Any], size: int) -> list[Any]:
    ndim = _ndim(values[0][0]) + (row.name == "stack")
    return [[_full(v, size) for v in values[0]], _dims(values[1], ndim)]


RULES: dict[str, Callable[..., list[Any] | None]] = {
    "sum_dim": _shifted("dim", all_if_none=True),
    "mean_dim": _shifted("dim", all_if_none=True),
    "cumsum_row": _shifted("dim"),
    "flip_dims": _shifted("dims"),
    "select": _shifted("dim"),
    "slice": _shifted("dim"),
    "index_select": lambda row, values, size: (
        None
        if isinstance(values[2], Batched)
        else [_full(values[0], size), _dims(values[1], _ndim(values[0])), values[2]]
    ),
    "unsqueeze": _shifted("dim", extra=1),
    "squeeze_dim": _shifted("dim"),
    "squeeze_dims": _shifted("dim"),
    "transpose": _shifted("dim0", "dim1"),
    "softmax_backward_data": _shifted("dim"),
    "log_softmax_backward_data": _shifted("dim"),
    "permute_dims": _permuted,
    "expand_size": _expanded,
    "view_size": _sized("size"),
    "unsafe_view": _sized("size"),
    "reshape_alias": _sized("size"),
    "select_backward": _scattered,
    "slice_backward": _scattered,
    "tril": lambda row, values, size: [_full(values[0], size), *values[1:]],
    "triu": lambda row, values, size: [_full(values[0], size), *values[1:]],
    "cat": _joined,
    "stack": _joined,
    "clone_as": lambda row, values, size: [_full(values[0], size), *values[1:]],
    "to_copy": lambda row, values, size: [_full(values[0], size), *values[1:]],
    "alias": lambda row, values, size: [_full(values[0], size), *values[1:]],
    "conj_of": lambda row, values, size: [_full(values[0], size)],
}


def _plain(value: Any) -> Any:
    return value.every if isinstance(value, Batched) else getattr(value, "array", value)


def _matmul(row: Row, values: list[Any], size: int) -> Any:
    a, b = (_plain(v) for v in values[:2])
    return np.matmul(a, b)


def _mv(row: Row, values: list[Any], size: int) -> Any:
    a, b = (_plain(v) for v in values[:2])
    return np.matmul(a, b[..., None])[..., 0]


def _dot(row: Row, values: list[Any], size: int) -> Any:
    a, b = (_plain(v) for v in values[:2])
    return (a * b).sum(-1)


def _sum_all(row: Row, values: list[Any], size: int) -> Any:
    every = values[0].every
    return every.reshape(size, -1).sum(1)


def _t(row: Row, values: list[Any], size: int) -> Any:
    every = values[0].every
    return every if every.ndim < 3 else np.swapaxes(every, 1, 2)


DIRECT: dict[str, Callable[..., Any]] = {
    "mm": _matmul,
    "mv": _mv,
    "dot": _dot,
    "sum_all": _sum_all,
    "t": _t,
}

_ELEMENTWISE = ELEMENTWISE | frozenset(
    [
        *("add", "sub", "mul", "div_true", "neg", "add_scalar", "sub_scalar", "rsub_scalar"),
        *("rsub_tensor", "mul_scalar", "div_scalar", "where_of", "masked_fill_number"),
        *("sigmoid_backward", "tanh_backward", "threshold_backward", "softplus_backward"),
        *("hardtanh_backward", "leaky_relu_backward", "hardshrink_backward", "elu_backward"),
        *("softshrink_backward", "gelu_backward", "hardsigmoid_backward", "hardswish_backward"),
        *("masked_fill_tensor", "lerp_number", "lerp_tensor", "addcmul", "addcdiv", "clamp_min"),
        *("clamp_max", "clamp_tensors", "remainder_tensors", "remainder_number", "pow_tensors"),
    ]
)


# -- Jacobians ------------------------------------------------------------------------------------
def reverse(output: Traced, wrt: Sequence[Traced]) -> list[Any]:
    """The Jacobians of a traced value, all rows in one backward pass: output.shape + input.shape."""
    shape, count = output.value.shape, int(output.value.size)
    if count == 0:
        return [np.zeros((*shape, *w.value.shape)) for w in wrt]
    seed = Batched(np.eye(count, dtype=output.value.dtype).reshape(count, *shape))
    found = pullback(output, seed, wrt, values=True)
    return [
        np.zeros((*shape, *w.value.shape), w.value.dtype)
        if g is None
        else _block(g, count).reshape((*shape, *w.value.shape))
        for g, w in zip(found, wrt, strict=True)
    ]


def _block(grad: Any, count: int) -> Any:
    if isinstance(grad, Batched):
        return grad.every
    array = np.asarray(grad.value if isinstance(grad, Traced) else grad)
    return np.broadcast_to(array, (count, *array.shape))


def can_push(output: Traced) -> bool:
    """Whether forward mode has a rule for every call that the value is made of."""
    return all(
        not c.row.rules
        or c.row.kind in ("linear", "bilinear")
        or (
            c.row.kind == "elementwise"
            and all(len(t) == 1 for t in c.row.targets)
            and not any(c.row.masked)
        )
        for c in calls([output])
    )


def forward(output: Traced, wrt: Sequence[Traced]) -> list[Any]:
    """The Jacobians of a traced value, all columns in one forward pass."""
    sizes = [int(w.value.size) for w in wrt]
    total = sum(sizes)
    shape = output.value.shape
    if total == 0:
        return [np.zeros((*shape, *w.value.shape)) for w in wrt]
    tangents: dict[int, Any] = {}
    at = 0
    for w, n in zip(wrt, sizes, strict=True):
        unit = np.zeros((total, n), w.value.dtype)
        unit[at : at + n] = np.eye(n)
        tangents[id(w)] = Batched(unit.reshape((total, *w.value.shape)))
        at += n
    for call in calls([output]):
        if call.row.rules and any(id(t) in tangents for t in operands_of(call)):
            tangents[id(call.outputs[0])] = _pushed(call, tangents, total)
    pushed = tangents.get(id(output))
    every = (
        np.zeros((total, *shape), output.value.dtype) if pushed is None else _block(pushed, total)
    )
    blocks, at = [], 0
    for w, n in zip(wrt, sizes, strict=True):
        block = np.moveaxis(every[at : at + n], 0, -1)
        blocks.append(block.reshape((*shape, *w.value.shape)))
        at += n
    return blocks


def _pushed(call: Call, tangents: dict[int, Any], size: int) -> Any:
    """The tangents of a call's result."""
    found = _push(call, tangents)
    if isinstance(found, Batched):
        return found
    return _same(found.value if isinstance(found, Traced) else np.asarray(found), size)


def _push(call: Call, tangents: dict[int, Any]) -> Any:
    row = call.row
    if row.kind == "linear":
        args = list(map(_value, call.args))
        for i in row.differentiated:
            if row.kinds[i] == "list":
                args[i] = [_tangent(v, tangents) for v in call.args[i]]
            else:
                args[i] = _tangent(call.args[i], tangents)
        return apply(row, args)
    if row.kind == "bilinear":
        parts = []
        for i in row.differentiated:
            own = call.args[i]
            if isinstance(own, Traced) and id(own) in tangents:
                args = list(map(_value, call.args))
                args[i] = tangents[id(own)]
                parts.append(apply(row, args))
        return _total(parts)
    parts = []
    for targets, rule, needs in zip(row.targets, row.rules.values(), row.needs, strict=True):
        own = call.args[targets[0]]
        if isinstance(own, Traced) and id(own) in tangents:
            given = tangents[id(own)]
            if isinstance(given, Batched):
                given = _grown(given, call.outputs[0].value.ndim)
            parts.append(rule(given, *(plain_field(call, n) for n in needs)))
    return _total(parts)


def _grown(tangent: Batched, ndim: int) -> Batched:
    every = tangent.every
    return Batched(every.reshape(len(every), *(1,) * (ndim - every.ndim + 1), *every.shape[1:]))


def _total(parts: list[Any]) -> Any:
    total = parts[0]
    for p in parts[1:]:
        total = total + p
    return total


def _value(value: Any) -> Any:
    if isinstance(value, Traced):
        return value.value
    if isinstance(value, (list, tuple)):
        return type(value)(map(_value, value))
    return value


def _tangent(value: Any, tangents: dict[int, Any]) -> Any:
    if isinstance(value, Traced) and id(value) in tangents:
        return tangents[id(value)]
    plain = _value(value)
    return np.zeros_like(getattr(plain, "array", plain)) if plain is not None else None


__all__ = ["Batched", "Tensor", "can_push", "forward", "reverse"]

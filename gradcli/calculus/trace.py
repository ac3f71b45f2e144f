"""Traced values: arrays that remember how they were made, and their derivatives by the table's rules.

A program run on traced values gives a graph of calls of rows. Running the rules of those rows on traced
values, in reverse, gives the derivative as the same kind of graph: what `gradcli diff` prints and
`gradcli.plan` compiles. Every traced value carries a concrete one, so shapes and dtypes are always known.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from gradcli.engine import dtypes
from gradcli.engine.node import Node, Port, blank
from gradcli.engine.operator import Row
from gradcli.engine.tensor import Scalar, Tensor, scalar, wrap
from gradcli.operators import table
from gradcli.operators.table import find_method, meaning


class Call:
    """One application of a row: its operands in the order of the row's parameters."""

    __slots__ = ("args", "outputs", "row", "span")

    def __init__(self, row: Row, args: tuple[Any, ...]) -> None:
        self.row, self.args = row, args
        self.outputs: tuple[Traced, ...] = ()
        self.span: tuple[int, int] | None = None


_NUMPY_OPTIONS = {"axis": "dim", "keepdims": "keepdim"}
_REDUCE: dict[Any, str] = {
    **{np.add: "sum", np.multiply: "prod", np.maximum: "amax", np.minimum: "amin"},
    **{np.logical_and: "all", np.logical_or: "any"},
}


class Traced:
    """A value and the call that made it; a variable or a constant where there is none."""

    __slots__ = ("call", "index", "name", "value")

    def __init__(
        self, value: Any, name: str | None = None, call: Call | None = None, index: int = 0
    ) -> None:
        self.value, self.name, self.call, self.index = value, name, call, index

    # What rules and composite functions ask of an operand.
    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each dimension."""
        return self.value.shape  # type: ignore[no-any-return]

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return int(self.value.ndim)

    @property
    def array(self) -> Any:
        """The concrete value."""
        return self.value

    @property
    def dtype(self) -> dtypes.dtype:
        """The type of the elements."""
        return dtypes.of(self.value.dtype)

    requires_grad = True
    inference = wrapped = False
    node = None

    priority = 0  # among operands of several kinds, the highest takes the call

    def __operator__(self, row: Row, values: Sequence[Any]) -> Any:
        found = max(_traced_in(values), key=lambda t: t.priority, default=self)
        return found.called(row, values)

    def called(self, row: Row, values: Sequence[Any]) -> Any:
        """Call a row on operands of which some are traced."""
        return apply(row, values)

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        if method == "reduce":
            options = {_NUMPY_OPTIONS[k]: v for k, v in kwargs.items() if k in _NUMPY_OPTIONS}
            return table.resolve(_REDUCE[ufunc])(*args, **options)
        return meaning(ufunc)(*args, **kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return meaning(function)(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = find_method(name)
        if isinstance(found, property):
            assert found.fget is not None
            return found.fget(self)
        if found is not None:
            return lambda *args, **kwargs: found(self, *args, **kwargs)
        if name.startswith("new_"):
            return lambda *args, **kwargs: Traced(
                getattr(wrap(self.value), name)(*args, **kwargs).array
            )
        plain = getattr(Tensor, name, None)  # size(), dim(), numel() and the like
        if callable(plain):
            return lambda *args, **kwargs: plain(wrap(self.value), *args, **kwargs)
        raise AttributeError(f"traced values have no attribute {name!r}")

    def zeros_like(self) -> Traced:
        """Zeros of the same shape, as a constant."""
        return Traced(np.zeros_like(self.value))

    def new_zeros(self, *shape: Any) -> Traced:
        """Zeros of a shape, as a constant."""
        sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        return Traced(np.zeros(tuple(sizes), self.value.dtype))

    def detach(self) -> Traced:
        """The value as a constant of the derivative."""
        return Traced(self.value, call=Call(_DETACH, (self,)))

    def __len__(self) -> int:
        return int(self.value.shape[0])

    def __bool__(self) -> bool:
        if sys._getframe(1).f_globals.get("__name__", "").startswith("gradcli.operators"):
            return bool(self.value)  # an operator's own check, of a status say
        if _followed is None:
            raise RuntimeError(
                "which way the program goes depends on the variables' values: give each of them one, "
                "or write where(condition, a, b)"
            )
        _followed.append(self)
        return bool(self.value)

    def __hash__(self) -> int:
        return id(self)


class Arraylike(Traced):
    """A traced value with the attributes of an array, on which kernels can be traced."""

    __slots__ = ()

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(self.value.size)

    @property
    def T(self) -> Any:
        """The transpose."""
        return self if self.ndim < 2 else table.resolve("t")(self)

    def astype(self, dtype: Any, **_: Any) -> Any:
        """The value in another type of elements."""
        return self.to(dtypes.of(np.dtype(dtype)))

    def copy(self) -> Any:
        """The value itself: nothing is written in place."""
        return self


_followed: list[Traced] | None = None


@contextmanager
def following() -> Iterator[list[Traced]]:
    """Inside, programs branch by the concrete values; yields the conditions that were asked."""
    global _followed
    before, _followed = _followed, []
    try:
        yield _followed
    finally:
        _followed = before


def _detached(self: Any) -> Any:
    return self


_DETACH = Row("detach", _detached, None, {})


def _install_operators() -> None:
    """Python's operators, as tensors have them."""
    for name in (
        *("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "pow", "rpow"),
        *("mod", "rmod", "floordiv", "matmul", "rmatmul", "neg", "pos", "abs", "invert"),
        *("and", "or", "xor", "eq", "ne", "lt", "le", "gt", "ge", "getitem"),
    ):
        dunder = f"__{name}__"

        def method(self: Any, *args: Any, dunder: str = dunder) -> Any:
            table.base()  # which gives tensors their operators
            return getattr(Tensor, dunder)(self, *args)

        setattr(Traced, dunder, method)


_install_operators()


def apply(row: Row, values: Sequence[Any]) -> Any:
    """Call a row on operands of which some are traced; the result is traced."""
    if _guarded:
        _refuse_options(row, values)
    operands = [_operand(v) for v in values]
    for i in row.tensors:
        if row.kinds[i] != "list" and isinstance(operands[i], (int, float, complex)):
            operands[i] = scalar(operands[i], _first_tensor(operands))
        elif row.kinds[i] != "list" and isinstance(operands[i], (np.ndarray, np.generic)):
            operands[i] = wrap(operands[i])
    arrays = row._arrays(operands)
    with np.errstate(all="ignore"):
        result = row.run(arrays)
    call = Call(row, tuple(values))
    results = tuple(map(_contiguous, (result,) if row.single else result))
    kind = Arraylike if any(isinstance(v, Arraylike) for v in values) else Traced
    call.outputs = tuple(kind(r, call=call, index=i) for i, r in enumerate(results))
    return call.outputs[0] if row.single else call.outputs


_guarded = False


@contextmanager
def guarded() -> Iterator[None]:
    """Inside, a variable may not stand where an operator wants a number: nothing would flow to it."""
    global _guarded
    before, _guarded = _guarded, True
    try:
        yield
    finally:
        _guarded = before


def _refuse_options(row: Row, values: Sequence[Any]) -> None:
    for word, kind, value in zip(row.names, row.kinds, values, strict=True):
        if kind == "option" and _traced_in([value]):
            raise NotImplementedError(
                f"{row.name}: `{word}` is taken as a number here, so that there is no derivative by it"
            )


def _contiguous(result: Any) -> Any:
    """The result in the layout that traced values are taken to have."""
    if type(result) is np.ndarray and result.ndim and not result.flags.c_contiguous:
        return np.ascontiguousarray(result)
    return result


def _operand(value: Any) -> Any:
    if isinstance(value, Traced):
        return wrap(value.value)
    if isinstance(value, (list, tuple)) and any(isinstance(v, (Traced, Tensor)) for v in value):
        return [wrap(v.value) if isinstance(v, Traced) else v for v in value]
    return value


def _first_tensor(operands: Iterable[Any]) -> Tensor | None:
    return next((o for o in operands if isinstance(o, Tensor)), None)


def calls(outputs: Iterable[Traced]) -> list[Call]:
    """Every call that the outputs depend on, operands before their uses."""
    order: list[Call] = []
    seen: set[int] = set()
    stack: list[tuple[Call, bool]] = [(o.call, False) for o in outputs if o.call is not None]
    while stack:
        call, ready = stack.pop()
        if ready:
            order.append(call)
            continue
        if id(call) in seen:
            continue
        seen.add(id(call))
        stack.append((call, True))
        stack += [
            (t.call, False)
            for t in operands_of(call)
            if t.call is not None and id(t.call) not in seen
        ]
    return order


def operands_of(call: Call) -> list[Traced]:
    """The traced operands of a call, in order."""
    return _traced_in(call.args)


def _traced_in(values: Iterable[Any]) -> list[Traced]:
    found: list[Traced] = []
    for a in values:
        if isinstance(a, Traced):
            found.append(a)
        elif isinstance(a, (list, tuple)):
            found += [v for v in a if isinstance(v, Traced)]
    return found


def pullback(
    output: Traced, seed: Any, wrt: Sequence[Traced], *, values: bool = False
) -> list[Traced | None]:
    """The vector-Jacobian product, as traced values: None for what the output does not depend on.

    seed: the cotangent, a Traced or an array of the output's shape. values: whether the rules get what
    was saved as plain arrays, which leaves no trace of how the result depends on it.
    """
    order = calls([output])
    needed = _dependent(order, wrt)
    grads: dict[int, Any] = {id(output): seed if isinstance(seed, Traced) else Traced(seed)}
    for call in reversed(order):
        given = [grads.get(id(o)) for o in call.outputs]
        if all(g is None for g in given) or not call.row.rules:
            continue
        for operand, g in _backward(call, given, needed, values):
            had = grads.get(id(operand))
            grads[id(operand)] = g if had is None else had + g
    return [grads.get(id(w)) for w in wrt]


def _dependent(order: Sequence[Call], wrt: Sequence[Traced]) -> set[int]:
    found = {id(w) for w in wrt}
    for call in order:
        if call.row is not _DETACH and any(id(t) in found for t in operands_of(call)):
            found.update(id(o) for o in call.outputs)
    return found


def _backward(
    call: Call, given: list[Any], needed: set[int], values: bool = False
) -> list[tuple[Traced, Any]]:
    row = call.row
    node = blank(row.node_type)
    edges: list[Any] = []
    operands: list[Any] = []
    for i in row.differentiated:
        value = call.args[i]
        for v in value if row.kinds[i] == "list" else [value]:
            wanted = isinstance(v, Traced) and id(v) in needed
            edges.append(Port(node, 0, v.value.shape, v.value.dtype) if wanted else None)
            operands.append(v)
    if not any(e is not None for e in edges):
        return []
    node._edges = tuple(edges)
    count = row.differentiable
    g = given[0] if count == 1 and not row.many else given[: len(given) if row.many else count]
    read = plain_field if values else _read
    pulled = row.backward_on(node, g, lambda field: read(call, field))
    return [
        (v, fit_traced(p, e, node))
        for v, e, p in zip(operands, edges, pulled, strict=True)
        if e is not None and p is not None
    ]


def fit_traced(grad: Any, edge: Port, node: Node) -> Any:
    """A traced gradient summed to its input's shape and cast to its dtype."""
    if not isinstance(grad, Traced):
        grad = Traced(np.asarray(grad))
    shape = tuple(edge._meta.shape)
    lead = grad.ndim - len(shape)
    axes = tuple(range(lead)) + tuple(
        lead + i for i, n in enumerate(shape) if n == 1 != grad.shape[lead + i]
    )
    if axes:
        grad = table.resolve("sum")(grad, axes, True)
    if grad.shape != shape:
        grad = table.resolve("reshape")(grad, shape)
    return grad


def _strides(shape: Sequence[int]) -> tuple[int, ...]:
    found: list[int] = []
    step = 1
    for n in reversed(shape):
        found.append(step)
        step *= max(n, 1)
    return tuple(reversed(found))


def _read(call: Call, field: str) -> Any:
    row = call.row
    if field in row.outputs:
        return call.outputs[row.outputs.index(field)]
    i = row.position.get(field)
    if i is None and field.endswith("_sym_strides"):
        # A layout is a matter of speed: what is traced is taken to be contiguous.
        return _strides(call.args[row.position[field.removesuffix("_sym_strides")]].shape)
    if i is None:
        return row._option(field, list(call.args), tuple(o.value for o in call.outputs))
    value = call.args[i]
    if isinstance(value, (int, float, complex)) and row.kinds[i] == "tensor":
        like = next((a for a in call.args if isinstance(a, Traced)), None)
        return Traced(scalar(value, wrap(like.value) if like is not None else None).array)
    if isinstance(value, Tensor):
        return Traced(value.array)
    if type(value) is Scalar:
        return Traced(value.array)
    return value


def plain_field(call: Call, field: str) -> Any:
    """What a rule needs, as arrays."""
    found = _read(call, field)
    if isinstance(found, (list, tuple)):
        return type(found)(v.value if isinstance(v, Traced) else v for v in found)
    return found.value if isinstance(found, Traced) else found


def run(function: Callable[..., Any], values: dict[str, Any]) -> tuple[Any, dict[str, Traced]]:
    """Call a function on traced variables of these values; returns (result, variables)."""
    variables = {name: Traced(value, name=name) for name, value in values.items()}
    return function(**variables), variables


__all__ = [
    "Arraylike",
    "Call",
    "Traced",
    "apply",
    "calls",
    "following",
    "guarded",
    "operands_of",
    "pullback",
    "run",
]

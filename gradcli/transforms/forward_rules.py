"""How each call carries tangents from its operands to its results."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np

from gradcli.engine.core import batched_arrays, generated_calls, modes
from gradcli.engine.core.backward_pass import gradients as grad
from gradcli.engine.core.batch_levels import lift_to_batch, remove_batch_dim
from gradcli.engine.core.batched_arrays import BatchedArray, BatchLevel, opened
from gradcli.engine.core.custom_function import BackwardCFunction
from gradcli.engine.core.declaration import parameters_of
from gradcli.engine.core.device import contiguous_format
from gradcli.engine.core.gradients import fit
from gradcli.engine.core.node import Port, Wide, blank, edge_of
from gradcli.engine.core.plain_pass import discover
from gradcli.engine.core.primitive import NotImplementedNode, Primitive
from gradcli.engine.core.tensor import Scalar, Tensor, edge, wrap
from gradcli.engine.core.views import laid_as, set_own, set_tangent
from gradcli.engine.system import dtypes
from gradcli.transforms.forward_state import Forward, _here

# Elements of a Jacobian, for elements whose product is lost: of all its rows, and of those at once.
MOST, AT_ONCE = 1 << 27, 1 << 20


def _tangent(value: Any) -> Tensor | None:
    found = value.tangents if isinstance(value, Tensor) else None
    return found.get(_here.level) if found else None


def _push(primitive: Any, values: Any, outputs: Any, level: Forward) -> None:
    """Give the outputs their tangents of a level."""
    custom = isinstance(primitive, BackwardCFunction)
    tangents = (_custom if custom else _by_rule)(primitive, list(values), list(outputs))
    for out, tangent in zip(outputs, tangents, strict=False):
        if tangent is None or not isinstance(out, Tensor):
            continue
        if any(out is v for v in values):  # a custom operation has written it
            set_tangent(out, level, tangent)
        elif not level.taped or out.requires_grad:
            set_own(out, level, tangent if custom or primitive.view else _own(tangent, values))
    _remember(outputs)


def _own(tangent: Tensor, values: Any) -> Tensor:
    """A tangent in memory of its own, as its result is: either may be written.

    A rule may give the tangent that it was given, or a view of it, or the same number everywhere.
    """
    given = [t.array for v in _flat(values) if (t := _tangent(v)) is not None]
    array = tangent.array
    if type(array) is np.ndarray and array.flags.owndata and all(array is not t for t in given):
        return tangent
    own, memories = _memory(array), map(_memory, given)
    same = any(not step and n > 1 for step, n in zip(array.strides, array.shape, strict=True))
    if same or any(own is memory or _may_share(own, memory) for memory in memories):
        kept: Tensor = tangent.clone(memory_format=contiguous_format)
        return kept
    return tangent


def _remember(outputs: Any) -> None:
    """Keep the tangents of results with the node that may have saved them."""
    for out in outputs:
        if not isinstance(out, Tensor) or not out.tangents or not out.requires_grad:
            continue
        node, nr = edge_of(edge(out))
        if node is not None and not out.is_leaf:
            node._tangents = {**(node._tangents or {}), nr: out.tangents}


def _flat(values: Any) -> list[Any]:
    found = []
    for v in values:
        found += list(v) if isinstance(v, (list, tuple)) else [v]
    return found


def _custom(ctx: BackwardCFunction, args: Any, outputs: Any) -> list[Any]:
    """What a custom operation's `jvp` says, checked against what its forward did."""
    tangents = [_tangent(a) for a in args]
    written = [None if t is None else t.version_number() for t in tangents]
    given = [
        _zeros(a)
        if t is None and ctx._materialize and isinstance(a, Tensor) and _is_differentiable(a)
        else t
        for a, t in zip(args, tangents, strict=True)
    ]
    kept, ctx._saved = ctx._saved, tuple(ctx.saved_for_forward or ())
    try:
        result = ctx._function.jvp(ctx, *given)
    finally:
        ctx._saved = kept
    made = list(result) if isinstance(result, tuple) else [result]
    if len(made) != len(outputs):
        raise RuntimeError(
            "Function's jvp returned an invalid number of forward gradients (expected "
            f"{len(outputs)} but got {len(made)})"
        )
    for nr, (out, tangent) in enumerate(zip(outputs, made, strict=True)):
        if not isinstance(out, Tensor) or nr in ctx._fixed or not _is_differentiable(out):
            if tangent is not None:
                raise RuntimeError(
                    f"Function's jvp returned a gradient at position {nr}, but  the corresponding "
                    "forward output is not a differentiable Tensor.You should return None at that "
                    "position instead."
                )
        elif tangent is not None:
            _check_jvp(out, tangent, args, tangents, written)
    return made


def _is_differentiable(tensor: Tensor) -> bool:
    return tensor.array.dtype in dtypes.DIFFERENTIABLE


def _check_jvp(
    out: Tensor, tangent: Tensor, args: Any, tangents: list[Any], written: list[Any]
) -> None:
    """Raise where a tangent is not written, or not a view, as the output is."""
    for arg, own, version in zip(args, tangents, written, strict=True):
        if arg is out and own is not None:
            if tangent.version_number() == version:
                raise RuntimeError(
                    "An inplace custom Function is not modifying the forward mode gradients "
                    "inplace. If the forward is modifying an input inplace, then the jvp function "
                    "must modify the corresponding gradient inplace."
                )
            if tangent is not own:
                raise RuntimeError(
                    "An inplace custom Function is not returning the forward mode gradients as-is. "
                    "If the forward is modifying an input inplace, then the jvp function must "
                    "modify the gradient inplace and return it as-is."
                )
        if arg is out or own is None or not _is_view_of(out, arg):
            continue
        if tangent.base is None:
            raise RuntimeError(
                "A custom Function's forward is returning a view (or an input as-is) but the jvp "
                "is not returning a view."
            )
        if own.base is not None and own.base is not tangent.base:
            raise RuntimeError(
                "A custom Function is returning a view but the jvp is not returning a view of the "
                "same base as the given grad input."
            )
        if own.base is None and tangent.base is not own:
            raise RuntimeError(
                "A custom Function is returning a view but the jvp is not returning a view of the "
                "given grad input."
            )


def _is_view_of(out: Tensor, arg: Any) -> bool:
    if not isinstance(arg, Tensor) or out.base is None:
        return False
    return out.base is arg or out.base is arg.base


def _memory(array: Any) -> Any:
    """The array of all entries, or what those that are kept without their zeros are made of."""
    while isinstance(array, BatchedArray):
        array = array.inner
    return array


def _may_share(a: Any, b: Any) -> bool:
    return type(a) is np.ndarray and type(b) is np.ndarray and np.may_share_memory(a, b)


def _by_rule(primitive: Primitive, values: list[Any], outputs: list[Tensor]) -> list[Any]:
    if not primitive.vjps:
        return [None] * len(outputs)
    if not any(o.array.dtype in dtypes.DIFFERENTIABLE for o in outputs):
        return [None] * len(outputs)
    if issubclass(primitive.node_type, NotImplementedNode):  # its rules stand for none
        raise NotImplementedError(
            f"Trying to use forward AD with aten::{primitive.public_name} that does not support it."
        )
    if primitive.tangent is None and any(
        _tangent(values[i]) is not None
        for i in primitive.tensors
        if i not in primitive.differentiated
    ):
        # PyTorch takes some of these for constants, whose derivatives are not 0: weights of losses.
        raise _refusal(primitive.public_name)
    if primitive.view:
        _lay(values)
    if primitive.tangent is not None:
        own = _tangent(values[primitive.differentiated[0]])
        _, *needs = parameters_of(primitive.tangent)
        made = primitive.tangent(own, *[_field(primitive, n, values, outputs) for n in needs])
        if made is not None:
            return [made]
    if primitive.linearity == "linear" and not _has_infinite_factor(primitive, values):
        found = _linear(primitive, values)
        return [found] if primitive.returns_one else list(found)
    if primitive.linearity == "bilinear":
        return [_bilinear(primitive, values)]
    if primitive.linearity in ("elementwise", "linear"):
        return [_elementwise(primitive, values, outputs)]
    if primitive.linearity == "loss":
        return [_loss(primitive, values, outputs)]
    try:
        return _transposed(primitive, values, outputs)
    except NotImplementedError:
        raise _refusal(primitive.public_name) from None


def _refusal(name: str) -> NotImplementedError:
    return NotImplementedError(
        f"Trying to use forward AD with {name} that does not support it because it has not "
        "been implemented yet.\nPlease file an issue to PyTorch at "
        "https://github.com/pytorch/pytorch/issues/new?template=feature-request.yml so that we "
        "can prioritize its implementation or submit a PR adding the implementation to "
        "derivatives.yaml"
    )


def _lay(values: list[Any]) -> None:
    """Let the tangents of what is viewed for the first time lie in memory as that does."""
    for v in values:
        own = _tangent(v)
        if own is None or v.base is not None or own.array.strides == v.array.strides:
            continue
        every = zip(v.array.strides, own.array.strides, v.array.shape, strict=True)
        steps = [(step, other) for step, other, n in every if n > 1]
        # What is the same along a dimension has no other layout, and is not written.
        if all(step for step, _ in steps) and any(step != other for step, other in steps):
            set_own(v, _here.level, laid_as(v, own))


def _zeros(value: Any) -> Tensor:
    return wrap(np.zeros_like(value.array))


def _has_infinite_factor(primitive: Primitive, values: list[Any]) -> bool:
    """Whether zeros in the place of a tangent that is missing would become NaN: add(alpha=inf)."""
    return primitive.batching == "elementwise" and any(
        type(v) is float and not isfinite(v)
        for i, v in enumerate(values)
        if i not in primitive.differentiated
    )


def _linear(primitive: Primitive, values: list[Any]) -> Any:
    if primitive is lift_to_batch and values[1] in batched_arrays.batch_of(
        own := _tangent(values[0])
    ):
        return own  # the tangent of what is the same for all entries, in the batch already
    args = list(values)
    for i in primitive.differentiated:
        if primitive.kinds[i] == "list":
            args[i] = [_tangent(v) if _tangent(v) is not None else _zeros(v) for v in values[i]]
        elif values[i] is not None:
            own = _tangent(values[i])
            args[i] = own if own is not None else _zeros(values[i])
    return primitive.call_in_order(args)


def _bilinear(primitive: Primitive, values: list[Any]) -> Any:
    total: Any = None
    factors = [v.tensor() if type(v) is Scalar else v for v in values]
    recorded = modes.is_grad_enabled() and any(
        values[i].node is not None for i in primitive.differentiated
    )
    for i in primitive.differentiated:
        own = _tangent(values[i])
        if own is None and not (recorded and any(f.node for f in factors if f is not factors[i])):
            continue
        args = list(factors)
        args[i] = own if own is not None else _zeros(factors[i])
        part = primitive.call_in_order(args)
        if own is None:  # PyTorch records the product with a zero, whose value is never NaN
            part.array = np.zeros_like(part.array)
        total = part if total is None else total + part
    return total


def _field(primitive: Primitive, field: str, values: list[Any], outputs: list[Tensor]) -> Any:
    if field in primitive.outputs:
        return outputs[primitive.outputs.index(field)]
    i = primitive.position.get(field)
    if i is None and field.endswith("_sym_strides"):
        return values[primitive.position[field.removesuffix("_sym_strides")]].stride()
    if i is None:
        return generated_calls.option(primitive, field)(values, tuple(o.array for o in outputs))
    value = values[i]
    return value.tensor() if type(value) is Scalar else value


def _loss(primitive: Primitive, values: list[Any], outputs: list[Tensor]) -> Any:
    """The slopes of the elements by their tangents, reduced as the loss is, as PyTorch has them.

    The slope of the gradient by what it is multiplied by is not always the gradient: PyTorch's of
    `binary_cross_entropy` adds 1e-12 to probabilities.
    """
    from gradcli.operators.nn.losses import NONE, reduced  # loaded: the row is theirs

    at = primitive.position["reduction"]
    if not values[at] or outputs[0].is_complex():
        return _elementwise(primitive, values, outputs)
    apart = [*values[:at], NONE, *values[at + 1 :]]
    found = _elementwise(primitive, apart, [primitive.call_in_order(apart)])
    return None if found is None else reduced(found, values[at])


def _elementwise(primitive: Primitive, values: list[Any], outputs: list[Tensor]) -> Any:
    total: Any = None
    for targets, rule, needs, masked in zip(
        primitive.targets, primitive.vjps.values(), primitive.needs, primitive.masked, strict=True
    ):
        if masked or len(targets) > 1:
            return _transposed(primitive, values, outputs)[0]
        own = _tangent(values[targets[0]])
        if own is None:
            continue
        if own.is_complex() or outputs[0].is_complex():  # it may not be holomorphic
            return _transposed(primitive, values, outputs)[0]
        fields = [_field(primitive, n, values, outputs) for n in needs]
        part = rule(own, *fields)
        total = part if total is None else total + part
    if total is not None and total.shape != outputs[0].shape:
        total = total.expand(outputs[0].shape)
    return total


def _transposed(primitive: Primitive, values: list[Any], outputs: list[Tensor]) -> list[Any]:
    """The product as the derivative of the rule by its gradient."""
    count = len(outputs) if primitive.returns_list else primitive.differentiable
    diff = [k for k in range(count) if outputs[k].array.dtype in dtypes.DIFFERENTIABLE]
    node = blank(Wide)
    edges: list[Any] = []
    operands: list[Any] = []
    for i in primitive.differentiated:
        for v in values[i] if primitive.kinds[i] == "list" else [values[i]]:
            has = _tangent(v) is not None
            edges.append(Port(node, 0, v.array.shape, v.array.dtype) if has else None)
            operands.append(v)
    node._edges = tuple(edges)
    # The rule is linear in its gradient, so the point does not matter; at ones it is smooth. But where
    # complex vectors are known up to a phase, rules refuse gradients that depend on it.
    recorded = modes.is_grad_enabled() and any(
        t.requires_grad
        for v in _flat(values)
        if isinstance(v, Tensor)
        for t in (v, _tangent(v))
        if t is not None
    )

    def read(field: str) -> Any:
        value = _field(primitive, field, values, outputs)
        if recorded or not isinstance(value, Tensor):
            return value
        return _untaped(value)

    followed = recorded or modes.current().intercept is not None  # by what numbers do not tell
    phased = len(diff) > 1 and any(outputs[k].is_complex() for k in diff)
    start = np.zeros_like if phased else np.ones_like
    with modes.enable_grad():
        dummies = [
            wrap(start(outputs[k].array), requires_grad=True) if k in diff else None
            for k in range(count)
        ]
        given: Any = dummies[0] if count == 1 and not primitive.returns_list else list(dummies)
        with np.errstate(all="ignore"):  # as in a backward pass
            pulled = primitive.backward_on(node, given, read)
        products, tangents = [], []
        for e, v, p in zip(edges, operands, pulled, strict=True):
            if e is None or p is None:
                continue
            p = fit(p, e, _Named(primitive.node_type))
            if p.requires_grad:
                products.append(p)
                tangents.append(_tangent(v))
        if not products:
            return [wrap(np.zeros_like(o.array)) for o in outputs[:count]]
        wanted = [d for d in dummies if d is not None]
        if any(isinstance(n, NotImplementedNode) for n in discover(map(edge, products))[0]):
            raise NotImplementedError("only once")
        found = grad(products, wanted, tangents, create_graph=recorded, materialize_grads=True)
    results: list[Any] = [None] * len(outputs)
    for k, f in zip(diff, found, strict=True):
        results[k] = f
        if (
            f is None or followed or phased
        ):  # a rule that asks for its gradient's phase is not mapped
            continue
        inner = _memory(f.array)
        if hasattr(inner, "guard"):  # a trace, whose program gives up where it would be mended
            inner.guard(_refuse_nan, inner)
            continue
        if not (lost := np.isnan(batched_arrays.numbers(f.array))).any():
            continue

        def pull(cotangent: Tensor, at: int = k) -> Any:
            cotangents = [cotangent if i == at else None for i in range(count)]
            return primitive.backward_on(
                node,
                cotangents[0] if count == 1 and not primitive.returns_list else cotangents,
                read,
            )

        given = list(zip(edges, operands, strict=True))
        results[k] = _mended(f, lost, pull, given, _Named(primitive.node_type))
    return results


def _refuse_nan(array: Any) -> None:
    """Raise where a number is lost, so that the tape takes the call."""
    if np.isnan(array).any():
        raise ArithmeticError("a product with a tangent is not a number")


def _untaped(tensor: Tensor) -> Tensor:
    """The same values off the tape, with the tangents of the levels below, which may be on it."""
    out = tensor.detach()
    out.tangents = tensor.tangents
    return out


def _mended(
    found: Tensor, lost: Any, pull: Any, operands: list[tuple[Any, Any]], name: Any
) -> Tensor:
    """A product with its lost elements by rows of the Jacobian: the rule masks what it divides by 0."""
    reached = [t for e, v in operands if e is not None for t in (v, _tangent(v))]
    whole = found.array
    for own in batched_arrays.batch_of(reached) - batched_arrays.batch_of(whole):
        whole = batched_arrays.lifted(whole, own)
    plain = batched_arrays.numbers(whole)
    made = np.array(plain).reshape((-1, found.numel()))  # one row for every entry
    places = np.flatnonzero(lost.reshape((-1, found.numel())).any(0))
    size = max([found.numel(), *(v.array.size for e, v in operands if e is not None)])
    step = max(AT_ONCE // size, 1)
    for start in range(0, min(len(places), MOST // size), step):
        at = places[start : start + step]
        level = BatchLevel(len(at), linear=True)
        units = np.zeros((level.size, found.numel()), made.dtype)
        units[np.arange(level.size), at] = 1
        with opened(level), np.errstate(all="ignore"):
            cotangent = wrap(BatchedArray(units.reshape((level.size, *found.shape)), level))
            total = wrap(BatchedArray(np.zeros(level.size, units.dtype), level))
            for (e, v), p in zip(operands, pull(cotangent), strict=True):
                if e is not None and p is not None:
                    total = total + (fit(p, e, name) * _tangent(v)).sum()
            value = remove_batch_dim(total, 0, level).array
        for own in batched_arrays.batch_of(whole) - batched_arrays.batch_of(value):
            value = batched_arrays.lifted(value, own)
        made[:, at] = batched_arrays.numbers(value).reshape((-1, level.size))
    array = made.reshape(plain.shape)
    return wrap(batched_arrays.batched_as(array if array.ndim else array[()], whole))


class _Named(Wide):
    """A stand-in whose name messages carry."""

    __slots__ = ("_kind",)

    def __init__(self, kind: type) -> None:
        self._kind = kind

    def name(self) -> str:
        return self._kind.__name__

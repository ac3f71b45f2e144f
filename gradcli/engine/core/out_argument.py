"""`out=`: write the result of a function into the caller's tensors."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from gradcli.engine.core import modes
from gradcli.engine.core.tensor import Tensor
from gradcli.engine.core.views import check_writable, raise_on_overlap, store
from gradcli.engine.system.array_memory import resized

_RESIZED = (
    "An output with one or more elements was resized since it had shape {}, which does not match the "
    "required output shape {}. This behavior is deprecated, and in a future PyTorch release outputs "
    "will not be resized unless they have zero elements. You can explicitly reuse an out tensor t by "
    "resizing it, inplace, to zero elements with t.resize_(0)."
)


def into(
    name: str,
    out: Any,
    call: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    overlap: str = "any any",
) -> Any:
    """Call a function and write its result, or results, into `out`; returns `out`.

    overlap: how the first operand, and the others, may share memory with `out`: "any" way, "whole" (all
    of it or nothing) or "none". Raises RuntimeError for other overlaps, if autograd would have to record
    the call, and if the result's dtype cannot be cast.
    """
    if out is None:
        return call(*args, **kwargs)
    targets = tuple(out) if isinstance(out, (tuple, list)) else (out,)
    for target in targets:
        if not isinstance(target, Tensor):
            kind = type(target).__name__
            raise TypeError(f"{name}(): argument 'out' must be Tensor, not {kind}")
    given = (*args, *kwargs.values(), *targets)
    if modes.is_grad_enabled() and any(isinstance(t, Tensor) and t.requires_grad for t in given):
        raise RuntimeError(
            f"{name.replace('.', '_')}(): functions with out=... arguments don't support automatic "
            "differentiation, but one of the arguments requires grad."
        )
    if modes.current().intercept is not None and any(
        isinstance(t, Tensor) and t.tangents for t in given
    ):
        raise NotImplementedError(
            f"Trying to use forward AD with {name.replace('.', '_')}_out that does not support it "
            "because it is an out= function"
        )
    with modes.no_grad():
        found = call(*args, **kwargs)
    results = found if isinstance(found, tuple) else (found,)
    if len(results) != len(targets):
        raise TypeError(f"{name}() has {len(results)} results, but out= has {len(targets)} tensors")
    operands = [*args, *kwargs.values()]
    for way, some in zip(overlap.split(), (operands[:1], operands[1:]), strict=True):
        for target, result in zip(targets, results, strict=True):
            if way != "any" and target.array.shape == result.array.shape:  # else resized
                raise_on_overlap(target, some, apart=way == "none")
    for target, result in zip(targets, results, strict=True):
        _write(target, result.array)
    return out if not isinstance(found, tuple) else type(found)(targets)


def _write(target: Tensor, values: Any) -> None:
    check_writable(target, recorded=False)
    if target.array.shape != values.shape:
        if target.array.size:
            shapes = (list(target.array.shape), list(values.shape))
            warnings.warn(_RESIZED.format(*shapes), UserWarning, stacklevel=4)
        target.array = resized(target.memory(), values.shape)
    store(target, values)

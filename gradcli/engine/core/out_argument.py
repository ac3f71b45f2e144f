"""`out=`: write the result of a function into the caller's tensors."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from gradcli.engine.core import modes
from gradcli.engine.core.tensor import Tensor
from gradcli.engine.core.views import check_writable, raise_on_overlap, store
from gradcli.engine.system import dtypes
from gradcli.engine.system.array_memory import resized
from gradcli.engine.system.dtypes import c_type, scalar_name

_RESIZED = (
    "An output with one or more elements was resized since it had shape {}, which does not match the "
    "required output shape {}. This behavior is deprecated, and in a future PyTorch release outputs "
    "will not be resized unless they have zero elements. You can explicitly reuse an out tensor t by "
    "resizing it, inplace, to zero elements with t.resize_(0)."
)

# The functions that write their own dtype alone, with PyTorch's words: what they have, what `out` has.
_OWN = "Expected out tensor to have dtype {0.c}, but got {1.c} instead"
_PAIRS = ("max", "min")  # along a dim; max(x, y) casts
_SAME = "{2}(): self and result must have the same scalar type"
_EXACT = {
    **dict.fromkeys((*_PAIRS, "argmax", "argmin", "gather", "isin", "mm"), _OWN),
    **dict.fromkeys(("sort", "topk", "tril", "triu"), _OWN),
    **dict.fromkeys(("index_select", "masked_select"), _SAME),
    "nonzero": "nonzero: Expected out tensor to have scalar type {0.scalar} but got scalar type{1.scalar}",
}


class _Said:
    """The names of a dtype in messages."""

    def __init__(self, kind: Any) -> None:
        self.c, self.scalar = c_type(kind), scalar_name(kind)


def dtype_for(out: Tensor, dtype: Any) -> Any:
    """The dtype in which a factory function makes what it writes into `out`; RuntimeError for another."""
    own = out.array.dtype
    if dtype is not None and (given := dtypes.given(dtype)) is not None and given.dtype != own:
        raise RuntimeError(
            f"dtype {scalar_name(given.dtype)} does not match dtype of out parameter "
            f"({scalar_name(own)})"
        )
    return dtypes.of(own)


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
        if type(found) is tuple:
            raise RuntimeError(
                f"{name}() expected an out= argument of size {len(results)}, got size {len(targets)}"
            )
        raise TypeError(f"{name}() has {len(results)} results, but out= has {len(targets)} tensors")
    if name in _EXACT and (len(targets) > 1 or name not in _PAIRS):
        for target, result in zip(targets, results, strict=True):
            wanted, got = result.array.dtype, target.array.dtype
            if wanted != got:
                raise RuntimeError(_EXACT[name].format(_Said(wanted), _Said(got), name))
    operands = [*args, *kwargs.values()]
    for way, some in zip(overlap.split(), (operands[:1], operands[1:]), strict=True):
        for target, result in zip(targets, results, strict=True):
            if way != "any" and target.array.shape == result.array.shape:  # else resized
                raise_on_overlap(target, some, apart=way == "none")
    for target, result in zip(targets, results, strict=True):
        _write(target, result.array)
    if type(found) is tuple:
        return None  # PyTorch returns nothing where it writes into a list
    return type(found)(targets) if isinstance(found, tuple) else out


def _write(target: Tensor, values: Any) -> None:
    check_writable(target, recorded=False)
    if target.array.shape != values.shape:
        if target.array.size:
            shapes = (list(target.array.shape), list(values.shape))
            warnings.warn(_RESIZED.format(*shapes), UserWarning, stacklevel=4)
        target.array = resized(target.memory(), values.shape)
    store(target, values)

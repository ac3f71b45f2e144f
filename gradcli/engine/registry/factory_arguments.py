"""The arguments that PyTorch's factory functions share: sizes, dtypes, devices, numbers."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, TypeVar

import numpy as np

from gradcli.engine.core import modes
from gradcli.engine.core.declaration import Array, Number
from gradcli.engine.core.device import used
from gradcli.engine.core.tensor import ONLY_FLOATING, Tensor, wrap
from gradcli.engine.registry.argument_errors import type_name
from gradcli.engine.registry.table import function
from gradcli.engine.system import dtypes

FAMILY = "arguments"  # the name in `gradcli ops`

Kind = np.dtype[Any]
F = TypeVar("F", bound=Callable[..., Any])

_TOO_MANY = 2**60  # numbers, of eight bytes each
# The options of every function that makes a tensor.
OPTIONS = (
    "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, "
    "bool? requires_grad=False"
)


def makes(*signatures: str, method: bool = False, **facts: Any) -> Callable[[F], Any]:
    """Decorate the body of a factory function, which returns the new tensor's array.

    The signatures end in OPTIONS. The body gets the values before them, and the NumPy dtype that was
    asked for (or None); all by keyword if there are several signatures. facts: as for `function`.
    """

    def decorate(body: F) -> Any:
        public = signatures[0].partition("(")[0]

        def make(*values: Any) -> Tensor:
            *own, dtype, layout, device, pin_memory, requires_grad = values
            if own[0].__class__ is np.ndarray:
                tensor_argument(public, own[0])
            array = body(*own, kind_of(public, dtype))
            return finish(public, array, requires_grad, device, layout, pin_memory)

        def make_by_name(
            *,
            dtype: dtypes.dtype | None,
            layout: Any,
            device: Any,
            pin_memory: bool,
            requires_grad: bool,
            **own: Any,
        ) -> Tensor:
            if "input" in own:
                tensor_argument(public, own["input"])
            array = body(**own, kind=kind_of(public, dtype))
            return finish(public, array, requires_grad, device, layout, pin_memory)

        entered = make if len(signatures) == 1 else make_by_name
        entered.__doc__, entered.__module__ = body.__doc__, body.__module__
        return function(*signatures, method=method, **{"name": public, **facts})(entered)

    return decorate


def kind_of(name: str, dtype: dtypes.dtype | None, default: Kind | None = None) -> Any:
    """The NumPy dtype for a `dtype` argument; `default` for None."""
    if dtype is None:
        return default
    found = dtypes.given(dtype)
    if found is None:
        raise TypeError(f"{name}(): argument 'dtype' must be torch.dtype, not {type_name(dtype)}")
    return found.dtype


def finish(
    name: str,
    array: Array,
    requires_grad: bool = False,
    device: Any = None,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """The tensor over a new array, after checks of the options that all factory functions have."""
    if device is not None:
        used(device)
    if layout is not None and str(layout) != "torch.strided":
        raise RuntimeError(f"gradcli's tensors are dense: {name}() takes no layout {layout}")
    if pin_memory:
        raise RuntimeError("Need to provide pin_memory allocator to use pin memory.")
    if requires_grad and array.dtype not in dtypes.DIFFERENTIABLE:
        from gradcli.engine.core.errors import NotDifferentiableDtypeError

        # The message begins with a capital here.
        raise NotDifferentiableDtypeError("O" + ONLY_FLOATING[1:])
    out = wrap(array if array.ndim else array[()], requires_grad)
    state = modes.local.state
    if state is not None and state.inference:
        out.inference = 1 + modes.depth()
    return out


def nonnegative(name: str, size: tuple[int, ...]) -> tuple[int, ...]:
    """The size; RuntimeError, in PyTorch's words, if it is negative or far too large."""
    if size and min(size) < 0:
        if name == "zeros":
            raise RuntimeError("zeros: Dimension size must be non-negative.")
        raise RuntimeError(
            f"Trying to create tensor with negative dimension {next(n for n in size if n < 0)}: {list(size)}"
        )
    if prod(size) >= _TOO_MANY:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(size)}")
    return size


def tensor_argument(name: str, value: Any, argument: str = "input", position: int = 1) -> Tensor:
    """The argument; TypeError, in PyTorch's words, unless it is a tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{name}(): argument '{argument}' (position {position}) must be Tensor, not {type_name(value)}"
        )
    return value


def number(name: str, value: Tensor | Number, argument: str, position: int) -> Any:
    """A Python number from a number, a NumPy scalar or a 0-d tensor without a graph."""
    if isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic):
        return value
    if isinstance(value, np.generic) and value.dtype.kind in "biufc":
        return value.item()
    if isinstance(value, Tensor) and value.array.ndim == 0 and not value.requires_grad:
        return value.array.item()
    raise TypeError(
        f"{name}(): argument '{argument}' (position {position}) must be Number, not {type_name(value)}"
    )


def real(name: str, value: float, argument: str, position: int | None = None) -> float:
    """A Python float from what `number` accepts; TypeError for complex numbers."""
    if isinstance(value, Tensor) and value.array.ndim == 0 and not value.requires_grad:
        value = value.array.item()
    if isinstance(value, (int, float, np.integer, np.floating)):
        return float(value)
    where = "" if position is None else f" (position {position})"
    raise TypeError(f"{name}(): argument '{argument}'{where} must be float, not {type_name(value)}")

"""The arguments that PyTorch's creation functions share: sizes, dtypes, devices, numbers."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from gradcli.engine import dtypes, modes
from gradcli.engine.device import device as Device
from gradcli.engine.tensor import ONLY_FLOATING, Tensor, wrap

Kind = np.dtype[Any]
F = TypeVar("F", bound=Callable[..., Any])

_PYTHON = {
    float: dtypes.float64,
    int: dtypes.int64,
    bool: dtypes.boolean,
    complex: dtypes.complex128,
}
# The tails of the forms that the errors about bad calls list.
OUT = "Tensor out = None"
OPTIONS = (
    "torch.dtype dtype = None, torch.layout layout = None, torch.device device = None, bool "
    "pin_memory = False, bool requires_grad = False"
)


def listed(*names: str) -> Callable[[F], F]:
    """Show a function that takes its arguments apart itself with readable parameters.

    names: what to show for `*args`; `**named` is left out.
    """

    def decorate(body: F) -> F:
        given = inspect.signature(body)
        kept = [p for p in given.parameters.values() if p.kind is not p.VAR_KEYWORD]
        if names:
            shown = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in names]
            kept = [*shown, *(p for p in kept if p.kind is not p.VAR_POSITIONAL)]
        body.__signature__ = given.replace(parameters=kept)
        return body

    return decorate


def type_name(value: Any) -> str:
    """What messages call the type of an argument."""
    return "torch.dtype" if isinstance(value, dtypes.dtype) else type(value).__name__


def kind_of(name: str, dtype: Any, default: Kind | None = None) -> Any:
    """The NumPy dtype that the argument `dtype` of a function means; `default` where it is None."""
    if dtype is None:
        return default
    found = _PYTHON.get(dtype) if isinstance(dtype, type) else dtype
    if not isinstance(found, dtypes.dtype):
        raise TypeError(f"{name}(): argument 'dtype' must be torch.dtype, not {type_name(dtype)}")
    return found.dtype


def finish(
    name: str,
    array: Any,
    requires_grad: Any = False,
    device: Any = None,
    layout: Any = None,
    pin_memory: Any = False,
) -> Tensor:
    """The tensor over a new array, after a look at the arguments that every function has."""
    if device is not None:
        Device(device)
    if layout is not None and str(layout) != "torch.strided":
        raise RuntimeError(f"gradcli's tensors are dense: {name}() takes no layout {layout}")
    for option, value in (("requires_grad", requires_grad), ("pin_memory", pin_memory)):
        if not isinstance(value, bool):
            raise TypeError(f"{name}(): argument '{option}' must be bool, not {type_name(value)}")
    if pin_memory:
        raise RuntimeError("Need to provide pin_memory allocator to use pin memory.")
    if requires_grad and array.dtype not in dtypes.DIFFERENTIABLE:
        raise RuntimeError("O" + ONLY_FLOATING[1:])  # constructors begin with a capital
    out = wrap(array if array.ndim else array[()], requires_grad)
    state = modes.local.state
    if state is not None and state.inference:
        out.inference = True
    return out


def is_integer(value: Any) -> bool:
    """True for what counts as an int: Python's and NumPy's integers, integer tensors of one element."""
    if isinstance(value, Tensor):
        return value.array.size == 1 and value.array.dtype.kind in "iu"
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def sizes(name: str, given: tuple[Any, ...], named: dict[str, Any]) -> tuple[int, ...]:
    """The shape that a function was called with: ints, one sequence of ints, or `size=`."""
    if "size" in named:
        if given:
            raise TypeError(f"{name}() got multiple values for argument 'size'")
        given = (named.pop("size"),)
    for key in named:
        raise TypeError(f"{name}() got an unexpected keyword argument '{key}'")
    if not given:
        raise TypeError(f'{name}() missing 1 required positional arguments: "size"')
    first = given[0]
    if isinstance(first, (tuple, list)):
        if len(given) > 1:
            raise TypeError(f"{name}() takes 1 positional argument but {len(given)} were given")
        return shape_of(name, first)
    if not is_integer(first):
        raise size_error(name, 1, first)
    return shape_of(name, given)


def size_error(name: str, position: int, value: Any) -> TypeError:
    """The error for an argument that is no size."""
    return TypeError(
        f"{name}(): argument 'size' (position {position}) must be tuple of ints, not "
        f"{type_name(value)}"
    )


def shape_of(name: str, items: Any) -> tuple[int, ...]:
    """The shape from a sequence of ints."""
    for i, item in enumerate(items):
        if not is_integer(item) and not (i and isinstance(item, bool)):  # as PyTorch, not the first
            raise TypeError(
                f"{name}(): argument 'size' failed to unpack the object at pos {i + 1} with error "
                f'"type must be tuple of ints,but got {type_name(item)}"'
            )
    shape = tuple(int(item) for item in items)
    for n in shape:
        if n < 0:
            if name == "zeros":
                raise RuntimeError("zeros: Dimension size must be non-negative.")
            raise RuntimeError(
                f"Trying to create tensor with negative dimension {n}: {list(shape)}"
            )
    return shape


def tensor_argument(name: str, value: Any, argument: str = "input", position: int = 1) -> Tensor:
    """The argument itself; TypeError in PyTorch's words unless it is a tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{name}(): argument '{argument}' (position {position}) must be Tensor, not "
            f"{type_name(value)}"
        )
    return value


def number(name: str, value: Any, argument: str, position: int) -> Any:
    """A Python number from a number, a NumPy scalar or a 0-d tensor outside every graph."""
    if isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic):
        return value
    if isinstance(value, np.generic) and value.dtype.kind in "biufc":
        return value.item()
    if isinstance(value, Tensor) and value.array.ndim == 0 and not value.requires_grad:
        return value.array.item()
    raise TypeError(
        f"{name}(): argument '{argument}' (position {position}) must be Number, not "
        f"{type_name(value)}"
    )


def real(name: str, value: Any, argument: str, position: int | None = None) -> float:
    """A Python float from what `number` takes; TypeError for complex numbers too."""
    if isinstance(value, Tensor) and value.array.ndim == 0 and not value.requires_grad:
        value = value.array.item()
    if isinstance(value, (int, float, np.integer, np.floating)):
        return float(value)
    where = "" if position is None else f" (position {position})"
    raise TypeError(f"{name}(): argument '{argument}'{where} must be float, not {type_name(value)}")


def integer(name: str, value: Any, argument: str, position: int) -> int:
    """A Python int from an integer."""
    if not is_integer(value):
        raise TypeError(
            f"{name}(): argument '{argument}' (position {position}) must be int, not "
            f"{type_name(value)}"
        )
    return int(value)


def invalid(name: str, args: tuple[Any, ...], named: dict[str, Any], *forms: str) -> TypeError:
    """The error for a call that fits none of the forms of a function."""
    shown = [type_name(a) for a in args]
    shown += [f"{key}={type_name(value)}" for key, value in named.items()]
    lines = "".join(f" * ({form})\n" for form in forms)
    return TypeError(
        f"{name}() received an invalid combination of arguments - got ({', '.join(shown)}), but "
        f"expected one of:\n{lines}"
    )

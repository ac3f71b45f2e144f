"""Settings that programs make and ask for, which change nothing here, and the names of types."""

from __future__ import annotations

import warnings
from typing import Any

from gradcli.engine.core.modes import users_level
from gradcli.engine.registry.table import resolve

_float32_products = "highest"
_deterministic = False


def set_float32_matmul_precision(precision: str) -> None:
    """Remembered; products of float32 are computed in float32 whatever is set."""
    global _float32_products
    if precision in ("highest", "high", "medium"):
        _float32_products = precision
    else:
        warnings.warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the current"
            "setFloat32MatmulPrecision call has no effect.",
            stacklevel=users_level(),
        )


def get_float32_matmul_precision() -> str:
    """What was set."""
    return _float32_products


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Remembered; the same input gives the same bits whatever is set."""
    global _deterministic
    _deterministic = mode


def are_deterministic_algorithms_enabled() -> bool:
    """What was set."""
    return _deterministic


def typename(obj: Any) -> str:
    """The name of an object's type, `torch.FloatTensor` of a tensor of float32."""
    tensor = resolve("is_tensor")
    if tensor(obj):
        return str(obj.type())
    kind = obj if isinstance(obj, type) else type(obj)
    module = kind.__module__
    return kind.__qualname__ if module in ("", "builtins") else f"{module}.{kind.__qualname__}"

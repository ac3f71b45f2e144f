"""Hessians of functions: tangents of gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.transforms.arguments import (
    Argnums,
)
from gradcli.transforms.jacobian import jacfwd, jacrev


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """A function that returns the Hessian of `func`, by forward mode over the backward pass."""
    return jacfwd(jacrev(func, argnums), argnums)

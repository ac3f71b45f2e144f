"""Hessians of functions: tangents of gradients."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from gradcli.transforms.arguments import Argnums
from gradcli.transforms.array_arguments import chosen, takes_arrays
from gradcli.transforms.jacobian import in_trace, jacfwd, jacrev


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """A function that returns the Hessian of `func`, by forward mode over the backward pass."""
    gradient = jacrev(func, argnums)
    forward = jacfwd(gradient, argnums)

    @functools.wraps(func)
    def wrapper(*args: Any) -> Any:
        made = in_trace(gradient, args, argnums, symmetric=True)
        return forward(*args) if made is None else made

    return takes_arrays(wrapper, chosen(argnums))

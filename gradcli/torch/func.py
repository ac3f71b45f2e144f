"""torch.func: derivatives of functions, as functions, and functions mapped over a dimension.

They nest with each other. Gradients run on the engine's tape, tangents in forward mode; all rows or
columns of a Jacobian, and all entries of `vmap`, run at once on batched arrays
(`engine/core/batched_arrays.py`).
"""

from __future__ import annotations

from typing import Any

from gradcli.transforms.grad import grad, grad_and_value, value_and_grad
from gradcli.transforms.hessian import hessian
from gradcli.transforms.jacobian import jacfwd, jacrev
from gradcli.transforms.jvp import jvp, linearize
from gradcli.transforms.vjp import vjp
from gradcli.transforms.vmap import vmap


def __getattr__(name: str) -> Any:
    if name not in ("functional_call", "stack_module_state"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Networks are loaded by who asks for them.
    from gradcli.torch.nn.modules import functional_calls

    return getattr(functional_calls, name)


__all__ = [
    "functional_call",  # noqa: F822 (see __getattr__)
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "stack_module_state",  # noqa: F822
    "value_and_grad",
    "vjp",
    "vmap",
]

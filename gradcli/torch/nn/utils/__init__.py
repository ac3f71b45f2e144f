"""torch.nn.utils: gradients clipped, parameters as one vector, sequences of unequal length."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

from gradcli.engine.core.modes import no_grad
from gradcli.engine.core.tensor import Tensor
from gradcli.engine.registry.table import resolve
from gradcli.engine.registry.torch_namespaces import absent
from gradcli.torch.nn.utils import rnn as rnn
from gradcli.torch.nn.utils.rnn import pad_sequence as pad_sequence


def _with_grads(parameters: Any) -> list[Any]:
    every = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [p for p in every if p.grad is not None]


@no_grad()
def get_total_norm(
    tensors: Iterable[Tensor], norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> Any:
    """The norm of all elements of some tensors, the norm of their norms, without a graph."""
    norm = resolve("linalg.vector_norm")
    norms = [norm(t, norm_type) for t in tensors]
    if not norms:
        return resolve("tensor")(0.0)
    total = norm(resolve("stack")(norms), norm_type)
    if error_if_nonfinite and not total.isfinite():
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it "
            "cannot be clipped. To disable this error and scale the gradients by the non-finite norm "
            "anyway, set `error_if_nonfinite=False`"
        )
    return total


def clip_grads_with_norm_(
    parameters: Any, max_norm: float, total_norm: Any, foreach: bool | None = None
) -> None:
    """Scale the gradients down as if their norm was this."""
    share = (max_norm / (total_norm + 1e-6)).clamp(max=1.0)
    with no_grad():
        for parameter in _with_grads(parameters):
            parameter.grad.mul_(share)


def clip_grad_norm_(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Any:
    """Scale the gradients down so that their norm is at most max_norm; returns the norm before."""
    some = _with_grads(parameters)
    total = get_total_norm([p.grad for p in some], float(norm_type), error_if_nonfinite)
    clip_grads_with_norm_(some, float(max_norm), total)
    return total


def clip_grad_value_(parameters: Any, clip_value: float, foreach: bool | None = None) -> None:
    """Bound each element of the gradients."""
    clip_value = float(clip_value)
    with no_grad():
        for parameter in _with_grads(parameters):
            parameter.grad.clamp_(min=-clip_value, max=clip_value)


def parameters_to_vector(parameters: Iterable[Tensor]) -> Any:
    """All elements of parameters as one vector."""
    return resolve("cat")([p.view(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Give parameters the elements of a vector, in their order."""
    at = 0
    for parameter in parameters:
        size = parameter.numel()
        parameter.data = vec[at : at + size].view_as(parameter).data
        at += size


_HOOKED = ("weight_norm", "remove_weight_norm", "spectral_norm", "remove_spectral_norm")


def __getattr__(name: str) -> Any:
    if name in ("parametrize", "parametrizations"):
        return import_module(f"{__name__}.{name}")
    if name in _HOOKED:
        return getattr(import_module(f"{__name__}.hooked_norms"), name)
    raise AttributeError(
        f"module {__name__!r} has no attribute {name!r}{absent(f'nn.utils.{name}')}"
    )

"""Gradients of functions, as functions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcli.engine.core import errors, levels, pytrees
from gradcli.engine.core.backward_pass import gradients as pull
from gradcli.engine.core.tensor import LAZY, Tensor, wrap
from gradcli.transforms.arguments import (
    Argnums,
    _chosen,
    _closed,
    _mapped,
    _split_aux,
    _tensors,
)
from gradcli.transforms.array_arguments import at_arrays, chosen, takes_arrays, users


def _gradients(
    outputs: Sequence[Tensor], chosen: Any, cotangents: Any, keep: bool, retain: Any
) -> Any:
    """The gradients of outputs, in the structure of what they were chosen by; zeros where none come."""
    parts, spec = pytrees.flatten(chosen)
    leaves = [v for v in parts if isinstance(v, Tensor)]
    pairs = [(o, s) for o, s in zip(outputs, cotangents, strict=True) if _is_recorded(o)]
    found: Sequence[Any] = [None] * len(leaves)
    if pairs:
        found = pull(
            [o for o, _ in pairs],
            leaves,
            [s for _, s in pairs],
            retain_graph=retain,
            create_graph=keep,
            allow_unused=True,
        )
    made = iter(
        [
            wrap(np.zeros_like(v.array)) if g is None else g
            for g, v in zip(found, leaves, strict=True)
        ]
    )
    return pytrees.unflatten([next(made) if isinstance(v, Tensor) else v for v in parts], spec)


def _is_recorded(output: Tensor) -> bool:
    """Whether the level records an output: a view that follows what is below it requires grad there alone."""
    if output.node is LAZY and output.is_lazy_view and output.base is not None:
        return output.base.level is not None
    return output.requires_grad


def grad_and_value(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that returns the gradient of `func`, a scalar, and its value."""
    function = users(func)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        call = "grad_and_value(f)(*args)"
        with levels.Reverse() as level:
            given, chosen = _chosen(args, argnums, level.variable, level.passed, at_arrays())
            result, aux = _split_aux(
                function(*given, **_mapped(level.passed, kwargs)), has_aux, call
            )
            if not isinstance(result, Tensor):
                raise errors.ReturnedTypeError(
                    f"{call}: Expected f(*args) to return a Tensor, got {type(result)}"
                )
            if result.ndim:
                raise errors.NotScalarResultError(call, result.ndim)
            keep = level.needs([result, *_tensors(aux)])
            grads = _gradients([result], chosen, [None], keep, keep)
            grads, result, aux = _closed(level, grads, result, aux)
        return (grads, (result, aux)) if has_aux else (grads, result)

    return takes_arrays(wrapper, chosen(argnums))


def value_and_grad(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that returns the value of `func`, a scalar, and its gradient (JAX's order)."""
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        grads, value = both(*args, **kwargs)
        return value, grads

    return wrapper


def grad(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that returns the gradient of `func`, a scalar."""
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        grads, value = both(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads

    return wrapper

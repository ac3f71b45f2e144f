"""Products of a vector with a Jacobian: one pass back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.engine.core import levels, pytrees
from gradcli.transforms.arguments import (
    _brief,
    _chosen,
    _closed,
    _outputs,
    _split_aux,
    _tensors,
)
from gradcli.transforms.array_arguments import every, takes_arrays, users
from gradcli.transforms.grad import _gradients


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The value, and a function from a cotangent (a gradient to start from) to a tuple of gradients."""
    call = "vjp(f, *primals)"
    with levels.Reverse() as level:
        given = tuple(_chosen(primals, tuple(range(len(primals))), level.variable)[0])
        result, aux = _split_aux(users(func)(*given), has_aux, call)
        outputs = _outputs(result, call)
        for out in outputs:
            if not (out.is_floating_point() or out.is_complex()):
                raise RuntimeError(
                    "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got "
                    f"Tensor with dtype {out.dtype}"
                )
        level.forget_below([*outputs, *_tensors(aux)])
        shown, aux = _closed(level, result, aux, again=True)

    def pullback(
        cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None
    ) -> Any:
        leaves, spec = pytrees.flatten(cotangents)
        own = pytrees.flatten(result)[1]
        if str(spec) != str(own):
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of "
                f"outputs to the function. cotangents: {_brief(spec)}, primal output: {_brief(own)}"
            )
        with levels.Reverse() as again:
            # What was captured where nothing was recorded is a variable all the same where it is.
            keep = again.needs([*outputs, *_tensors(cotangents)], captured=not level.recorded)
            keep = keep if create_graph is None else create_graph
            grads = _gradients(outputs, given, leaves, keep, retain_graph)
            return _closed(again, grads, again=True)

    return (shown, pullback, aux) if has_aux else (shown, pullback)


vjp = takes_arrays(vjp, every)

"""Products of a Jacobian with a vector: tangents beside the tape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.engine.core import errors, levels, pytrees
from gradcli.engine.core.backward_pass import gradients as pull
from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.transforms import batched_passes
from gradcli.transforms.arguments import (
    _check_directions,
    _checked,
    _closed,
    _split_aux,
    _unpacked,
)
from gradcli.transforms.array_arguments import every, takes_arrays, users


def jvp(
    func: Callable[..., Any],
    primals: Any,
    tangents: Any,
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> tuple[Any, ...]:
    """The value and its derivative along the tangents, in forward mode; both arguments are tuples."""
    call = "jvp(f, primals, tangents)"
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"{call}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals)."
        )
    points, spec = pytrees.flatten(primals)
    directions, other = pytrees.flatten(tangents)
    if str(spec) != str(other):
        raise RuntimeError(
            f"{call}: Expected primals and tangents to have the same python structure. For example, "
            "if primals is a tuple of 3 tensors, tangents also must be. Got primals with structure "
            f"{spec} and tangents with structure {other}"
        )
    from gradcli.transforms import forward_mode

    for what, parts in (("primals", points), ("tangents", directions)):
        for part in parts:
            if not isinstance(part, Tensor):
                raise errors.TransformVectorError(
                    f"{call}: Expected {what} to only contain Tensors, got {type(part)}"
                )
    with levels.Level(), forward_mode.nested_level():
        duals = [forward_mode.make_dual(p, t) for p, t in zip(points, directions, strict=True)]
        result, aux = _split_aux(users(func)(*pytrees.unflatten(duals, spec)), has_aux, call)
        result, pushed, aux = _unpacked(result, aux, call)
        leaves, out_spec = pytrees.flatten(result)
        if strict and any(t is None for t in pushed):
            raise RuntimeError(
                "jvp(f, primals, tangents, strict=True): The output of f is independent of the "
                "inputs. This is not allowed with strict=True."
            )
        filled = [
            wrap(np.zeros_like(o.array)) if t is None else t
            for o, t in zip(leaves, pushed, strict=True)
        ]
        found = pytrees.unflatten(filled, out_spec)
    return (result, found, aux) if has_aux else (result, found)


jvp = takes_arrays(jvp, every)


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """The value, and a function that maps tangents to the derivative along them; `func` runs once."""
    points, spec = pytrees.flatten(primals)
    for point in map(_checked, points):
        if not (point.is_floating_point() or point.is_complex()):
            raise ValueError(
                f"Expected primal to be floating point or complex, but got: {point.dtype}"
            )
    with levels.Reverse() as level:
        given = [level.variable(p) for p in points]
        leaves, out_spec = pytrees.flatten(users(func)(*pytrees.unflatten(given, spec)))
        level.forget_below([o for o in leaves if isinstance(o, Tensor)])
        backs = [
            batched_passes.Transposed(o, given)
            if isinstance(o, Tensor) and o.requires_grad
            else None
            for o in leaves
        ]
        for back in filter(None, backs):
            back.cotangent.level = level
        shown = _closed(level, pytrees.unflatten(leaves, out_spec), again=True)

    def along(out: Any, back: batched_passes.Transposed | None, directions: list[Any]) -> Any:
        if not isinstance(out, Tensor):
            return out
        used = back.used(directions) if back is not None else []
        if back is None or not used:
            return wrap(np.zeros_like(out.array))
        slopes, own = zip(*used, strict=True)
        return pull(slopes, back.cotangent, own, retain_graph=True, create_graph=True)[0]

    def jvp_fn(*tangents: Any) -> Any:
        directions, other = pytrees.flatten(tangents)
        if str(spec) != str(other):
            raise RuntimeError(
                f"Expected the tangents {other} to have the same argspec as the primals {spec}"
            )
        _check_directions(points, directions)
        with levels.Reverse() as again:
            made = [along(o, b, directions) for o, b in zip(leaves, backs, strict=True)]
            again.needs(v for v in made if isinstance(v, Tensor))
            return _closed(again, pytrees.unflatten(made, out_spec), again=True)

    return shown, jvp_fn


linearize = takes_arrays(linearize, every)

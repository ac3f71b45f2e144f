"""torch.func: derivatives of functions, as functions, and functions mapped over a dimension.

They nest with each other. Gradients run on the engine's tape, tangents in forward mode; all rows or
columns of a Jacobian, and all entries of `vmap`, run at once on batched arrays (gradcli.core.batched_arrays).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcli.core import levels
from gradcli.core import pytrees as trees
from gradcli.core.backward_pass import gradients as pull
from gradcli.core.backward_pass import tell
from gradcli.core.batch_levels import remove_batch_dim
from gradcli.core.batched_arrays import Level, opened
from gradcli.core.tensor import Tensor, wrap
from gradcli.transforms import batched_passes as batched
from gradcli.transforms.vmap import vmap

Argnums = int | tuple[int, ...]


def _tensors(value: Any) -> list[Tensor]:
    """Every tensor of nested tuples, lists and dicts."""
    return [v for v in trees.flatten(value)[0] if isinstance(v, Tensor)]


def _mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """The function on every tensor of nested tuples, lists and dicts."""
    leaves, spec = trees.flatten(value)
    return trees.unflatten([function(v) if isinstance(v, Tensor) else v for v in leaves], spec)


def _closed(level: levels.Reverse, *values: Any, again: bool = False) -> Any:
    """What a level returns, as the level below gets it; again: its graph is needed again."""
    leaves, spec = trees.flatten(values)
    found = iter(level.close([v for v in leaves if isinstance(v, Tensor)], again))
    made = trees.unflatten([next(found) if isinstance(v, Tensor) else v for v in leaves], spec)
    return made if len(values) > 1 else made[0]


def _checked(tensor: Any) -> Tensor:
    """A tensor to differentiate by; ValueError for anything else."""
    if not isinstance(tensor, Tensor):
        raise ValueError(f"Thing passed to transform API must be Tensor, got {type(tensor)}")
    return tensor


def _wanted(argnums: Any, count: int) -> tuple[int, ...]:
    """The positions of the arguments to differentiate by; RuntimeError in PyTorch's words."""
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    if isinstance(argnums, tuple) and not argnums:
        raise RuntimeError("argnums must be non-empty")
    if isinstance(argnums, tuple) and len(set(argnums)) != len(argnums):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    found = []
    for i in argnums if isinstance(argnums, tuple) else (argnums,):
        if not isinstance(i, int):
            raise RuntimeError(f"argnum must be int, got: {type(i)}")
        if not -count <= i < count:
            raise RuntimeError(f"Got argnum={i}, but only {count} positional inputs")
        found.append(i % count)
    return tuple(found)


def _chosen(
    args: tuple[Any, ...], argnums: Argnums, make: Callable[[Any], Any]
) -> tuple[list[Any], Any]:
    """(arguments with the chosen ones made variables or points, the chosen: one or a tuple)."""
    given = list(args)
    for i in (wanted := _wanted(argnums, len(args))):
        leaves, spec = trees.flatten(args[i])
        given[i] = trees.unflatten([make(_checked(v)) for v in leaves], spec)
    chosen = tuple(given[i] for i in wanted)
    return given, chosen if isinstance(argnums, tuple) else chosen[0]


def _split_aux(result: Any, has_aux: bool, call: str) -> tuple[Any, Any]:
    if not has_aux:
        return result, None
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(
            f"{call}: output of function f should be a tuple: (output, aux) if has_aux is True"
        )
    return result


def _outputs(result: Any, call: str) -> list[Tensor]:
    """The tensors of a function's result; RuntimeError in PyTorch's words for anything else."""
    leaves, _ = trees.flatten(result)
    if result is None or not leaves:
        raise RuntimeError(
            f"{call}: Expected f to be a function that has non-empty output (got output = {leaves})"
        )
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(
                f"{call}: expected f(*primals) to return only tensors, got unsupported type "
                f"{type(leaf)}"
            )
    return leaves


def _gradients(outputs: Sequence[Tensor], chosen: Any, seeds: Any, keep: bool, retain: Any) -> Any:
    """The gradients of outputs, in the structure of what they were chosen by; zeros where none come."""
    leaves, spec = trees.flatten(chosen)
    pairs = [(o, s) for o, s in zip(outputs, seeds, strict=True) if o.requires_grad]
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
    made = [
        wrap(np.zeros_like(v.array)) if g is None else g for g, v in zip(found, leaves, strict=True)
    ]
    return trees.unflatten(made, spec)


def grad_and_value(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that returns the gradient of `func`, a scalar, and its value."""

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        call = "grad_and_value(f)(*args)"
        with levels.Reverse() as level:
            given, chosen = _chosen(args, argnums, level.variable)
            result, aux = _split_aux(func(*given, **kwargs), has_aux, call)
            if not isinstance(result, Tensor):
                raise RuntimeError(
                    f"{call}: Expected f(*args) to return a Tensor, got {type(result)}"
                )
            if result.ndim:
                raise RuntimeError(
                    f"{call}: Expected f(*args) to return a scalar Tensor, got tensor with "
                    f"{result.ndim} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
                )
            keep = level.needs([result, *_tensors(aux)])
            grads = _gradients([result], chosen, [None], keep, keep)
            grads, result, aux = _closed(level, grads, result, aux)
        return (grads, (result, aux)) if has_aux else (grads, result)

    return wrapper


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


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """(value, function of a cotangent that gives a tuple of gradients)."""
    call = "vjp(f, *primals)"
    with levels.Reverse() as level:
        given = tuple(_chosen(primals, tuple(range(len(primals))), level.variable)[0])
        result, aux = _split_aux(func(*given), has_aux, call)
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
        leaves, spec = trees.flatten(cotangents)
        own = trees.flatten(result)[1]
        if str(spec) != str(own):
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of "
                f"outputs to the function. cotangents: {_brief(spec)}, primal output: {_brief(own)}"
            )
        with levels.Reverse() as again:
            keep = again.needs([*outputs, *_tensors(cotangents)])
            keep = keep if create_graph is None else create_graph
            grads = _gradients(outputs, given, leaves, keep, retain_graph)
            return _closed(again, grads, again=True)

    return (shown, pullback, aux) if has_aux else (shown, pullback)


def _brief(spec: trees.Spec) -> str:
    """A structure as a message shows it: `(*, *)`."""
    if spec.kind is None:
        return "*"
    return str(trees.unflatten(["*"] * spec.leaves, spec)).replace("'*'", "*")


def jvp(
    func: Callable[..., Any],
    primals: Any,
    tangents: Any,
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> tuple[Any, ...]:
    """(value, its derivative along the tangents), in forward mode; primals and tangents are tuples."""
    call = "jvp(f, primals, tangents)"
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"{call}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals)."
        )
    points, spec = trees.flatten(primals)
    directions, other = trees.flatten(tangents)
    if str(spec) != str(other):
        raise RuntimeError(
            f"{call}: Expected primals and tangents to have the same python structure. For example, "
            "if primals is a tuple of 3 tensors, tangents also must be. Got primals with structure "
            f"{spec} and tangents with structure {other}"
        )
    from gradcli.transforms import forward_mode as forward_ad

    with levels.Level(), forward_ad.nested_level():
        duals = [
            forward_ad.make_dual(_checked(p), t) for p, t in zip(points, directions, strict=True)
        ]
        result, aux = _split_aux(func(*trees.unflatten(duals, spec)), has_aux, call)
        result, pushed, aux = _unpacked(result, aux, call)
        leaves, out_spec = trees.flatten(result)
        if strict and any(t is None for t in pushed):
            raise RuntimeError(
                "jvp(f, primals, tangents, strict=True): The output of f is independent of the "
                "inputs. This is not allowed with strict=True."
            )
        filled = [
            wrap(np.zeros_like(o.array)) if t is None else t
            for o, t in zip(leaves, pushed, strict=True)
        ]
        found = trees.unflatten(filled, out_spec)
    return (result, found, aux) if has_aux else (result, found)


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """(value, function of tangents that gives the derivative along them), both of one run of `func`."""
    points, spec = trees.flatten(primals)
    for point in map(_checked, points):
        if not (point.is_floating_point() or point.is_complex()):
            raise ValueError(
                f"Expected primal to be floating point or complex, but got: {point.dtype}"
            )
    with levels.Reverse() as level:
        given = [level.variable(p) for p in points]
        leaves, out_spec = trees.flatten(func(*trees.unflatten(given, spec)))
        level.forget_below([o for o in leaves if isinstance(o, Tensor)])
        backs = [
            batched.Transposed(o, given) if isinstance(o, Tensor) and o.requires_grad else None
            for o in leaves
        ]
        for back in filter(None, backs):
            back.seed.level = level
        shown = _closed(level, trees.unflatten(leaves, out_spec), again=True)

    def along(out: Any, back: batched.Transposed | None, directions: list[Any]) -> Any:
        if not isinstance(out, Tensor):
            return out
        used = back.used(directions) if back is not None else []
        if back is None or not used:
            return wrap(np.zeros_like(out.array))
        slopes, own = zip(*used, strict=True)
        return pull(slopes, back.seed, own, retain_graph=True, create_graph=True)[0]

    def jvp_fn(*tangents: Any) -> Any:
        directions, other = trees.flatten(tangents)
        if str(spec) != str(other):
            raise RuntimeError(
                f"Expected the tangents {other} to have the same argspec as the primals {spec}"
            )
        _check_directions(points, directions)
        with levels.Reverse() as again:
            made = [along(o, b, directions) for o, b in zip(leaves, backs, strict=True)]
            again.needs(v for v in made if isinstance(v, Tensor))
            return _closed(again, trees.unflatten(made, out_spec), again=True)

    return shown, jvp_fn


def _check_directions(points: list[Any], directions: list[Any]) -> None:
    """Raise where tangents are unlike what they are tangents of."""
    for i, (point, direction) in enumerate(zip(points, map(_checked, directions), strict=True)):
        for what in ("shape", "dtype"):
            own, wanted = getattr(direction, what), getattr(point, what)
            if own != wanted:
                raise RuntimeError(
                    f"tangent:{i} with {what} {own} in flattened pytree doesn't match the {what} "
                    f"{wanted} of the corresponding primal."
                )


def _unpacked(result: Any, aux: Any, call: str) -> tuple[Any, list[Any], Any]:
    """What a function of dual numbers returns, without tangents; the tangent of each, or None; aux."""
    from gradcli.transforms import forward_mode as forward_ad

    pairs = [forward_ad.unpack_dual(o) for o in _outputs(result, call)]
    primal = trees.unflatten([p.primal for p in pairs], trees.flatten(result)[1])
    aux = _mapped(lambda t: forward_ad.unpack_dual(t).primal, aux)
    return primal, [p.tangent for p in pairs], aux


def _refuse_complex(name: str, values: Any) -> None:
    for i, value in enumerate(trees.flatten(values)[0]):
        if isinstance(value, Tensor) and value.is_complex():
            raise RuntimeError(
                f"{name}: Expected all inputs to be real but received complex tensor at flattened "
                f"input idx: {i}"
            )


def jacrev(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """A function that returns the Jacobian of `func`: all rows in one backward pass.

    chunk_size: how many rows at once.
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def wrapper(*args: Any) -> Any:
        _refuse_complex("jacrev", args)
        with levels.Reverse() as level:
            given, chosen = _chosen(args, argnums, level.variable)
            result, aux = _split_aux(func(*given), has_aux, "vjp(f, *primals)")
            outputs = _outputs(result, "vjp(f, *primals)")
            leaves, spec = trees.flatten(chosen)
            keep = level.needs([*outputs, *_tensors(aux)])
            rows = []
            for out in outputs:
                batch = Level(out.numel(), linear=True)
                found = batched.reverse(out, leaves, batch, keep, chunk_size)
                tell(batch)
                rows.append(trees.unflatten(found, spec))
            made = trees.unflatten(rows, trees.flatten(result)[1])
            made, aux = _closed(level, made, aux)
        return (made, aux) if has_aux else made

    return wrapper


def jacfwd(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    *,
    chunk_size: int | None = None,
    randomness: str = "error",
) -> Callable[..., Any]:
    """A function that returns the Jacobian of `func`: all columns in one run of forward mode."""
    from gradcli.transforms import forward_mode as forward_ad

    @functools.wraps(func)
    def wrapper(*args: Any) -> Any:
        _refuse_complex("jacfwd", args)
        call = "jvp(f, primals, tangents)"
        with levels.Level(), forward_ad.nested_level():
            points, spec = trees.flatten(_chosen(args, argnums, lambda v: v)[1])
            batch = Level(sum(p.numel() for p in points), randomness, linear=True)
            with opened(batch):
                units = batched.units(points, batch)
                duals = iter(list(map(forward_ad.make_dual, points, units)))
                given, _ = _chosen(args, argnums, lambda _: next(duals))
                result, aux = _split_aux(func(*given), has_aux, call)
                result, tangents, aux = _unpacked(result, aux, call)
                columns = []
                for out, pushed in zip(_tensors(result), tangents, strict=True):
                    pushed = wrap(np.zeros_like(out.array)) if pushed is None else pushed
                    every = remove_batch_dim(pushed, out.ndim, batch)
                    columns.append(_blocks(every, out, points, spec))
            tell(batch)
            made = trees.unflatten(columns, trees.flatten(result)[1])
        return (made, aux) if has_aux else made

    return wrapper


def _blocks(every: Tensor, out: Tensor, points: list[Any], spec: trees.Spec) -> Any:
    """The columns of each variable, in its shape."""
    if len(points) == 1:
        return trees.unflatten([every.reshape((*out.shape, *points[0].shape))], spec)
    parts = every.split([p.numel() for p in points], -1)
    shaped = [part.reshape((*out.shape, *p.shape)) for part, p in zip(parts, points, strict=True)]
    return trees.unflatten(shaped, spec)


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """A function that returns the Hessian of `func`: the backward pass in forward mode."""
    return jacfwd(jacrev(func, argnums), argnums)


__all__ = [
    *("grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize"),
    *("value_and_grad", "vjp"),
    "vmap",
]

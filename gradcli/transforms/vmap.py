"""A function of tensors mapped over a dimension of its arguments: it runs once, on batched arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from gradcli.engine.core import batched_arrays, errors, modes, pytrees, versions
from gradcli.engine.core.backward_pass import tell
from gradcli.engine.core.batch_levels import add_batch_dim, remove_batch_dim
from gradcli.engine.core.batched_arrays import BatchLevel
from gradcli.engine.core.tensor import Shown, Tensor, views_of, wrap
from gradcli.operators.movement.inplace_writes import copy_p
from gradcli.transforms.array_arguments import none, takes_arrays, users

# What JAX calls the same.
_OF_JAX = {"in_axes": "in_dims", "out_axes": "out_dims"}
RANDOMNESS = ("error", "different", "same")


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
    **unknown: Any,
) -> Callable[..., Any]:
    """A function that maps `func` over a dimension of its arguments (`torch.vmap`).

    in_dims: the dimension of each argument, None for one that is the same for all entries; nested as the
    arguments are, where they are nested. out_dims: where the dimension appears in each result.
    randomness: whether random numbers inside are refused ("error"), the "same" for all entries, or
    "different". chunk_size: how many entries run at once. Operators run once for all entries; one that
    does not know how runs entry by entry, with a warning.
    Raises ValueError for dimensions that do not fit, RuntimeError for control flow and shapes that would
    differ between the entries, in PyTorch's words.
    """
    for name in unknown:
        hint = f"; it is {_OF_JAX[name]} here, as in PyTorch" if name in _OF_JAX else ""
        raise TypeError(f"vmap() got an unexpected keyword argument {name!r}{hint}")
    if randomness not in RANDOMNESS:
        raise RuntimeError(
            "Only allowed values for randomness are 'error', 'different', or 'same'. Got "
            f"{randomness}"
        )
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        values, dims, spec, size = _inputs(func, in_dims, args)
        run = functools.partial(_run, func, spec, dims, out_dims, randomness, kwargs)
        if chunk_size is None or size <= chunk_size:
            flat, out_spec, _ = run(values, size)
            return pytrees.unflatten(flat, out_spec)
        return _in_chunks(run, values, dims, size, chunk_size)

    return takes_arrays(wrapper, none)


def _name(func: Any) -> str:
    if hasattr(func, "__name__"):
        return str(func.__name__)
    if isinstance(func, functools.partial):
        return f"functools.partial({_name(func.func)}, ...)"
    return repr(func)


def _inputs(
    func: Any, in_dims: Any, args: tuple[Any, ...]
) -> tuple[list[Any], list[Any], pytrees.Spec, int]:
    """(the arguments' leaves, the dimension of each, their structure, how many entries there are)."""
    call = f"vmap({_name(func)}, in_dims={in_dims}, ...)(<inputs>): "
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"{call}expected `in_dims` to be int or a (potentially nested) tuple matching the "
            f"structure of inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({_name(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you "
            "are trying to vmap over a function with no inputs. The latter is unsupported."
        )
    values, spec = pytrees.flatten(args)
    dims = pytrees.broadcast(in_dims, spec)
    if dims is None:
        raise ValueError(
            f"{call}in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{pytrees.flatten(in_dims)[1]} but inputs has structure {spec}."
        )
    sizes = []
    for i, (value, dim) in enumerate(zip(values, dims, strict=True)):
        if dim is None:
            continue
        if not isinstance(dim, int):
            raise ValueError(
                f"{call}Got in_dim={dim} for an input but in_dim must be either an integer dimension "
                "or None."
            )
        if not isinstance(value, Tensor):
            raise errors.TransformInputError(
                f"{call}Got in_dim={dim} for an input but the input is of type {type(value)}. We "
                "cannot vmap over non-Tensor arguments, please use None as the respective in_dim"
            )
        n = value.ndim
        if not -n <= dim < n:
            raise ValueError(
                f"{call}Got in_dim={dim} for some input, but that input is a Tensor of "
                f"dimensionality {n} so expected in_dim to satisfy -{n} <= in_dim < {n}."
            )
        dims[i] = dim % n
        sizes.append(value.shape[dim % n])
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if len(set(sizes)) > 1:
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    return values, dims, spec, sizes[0]


def _run(
    func: Any,
    spec: pytrees.Spec,
    dims: list[Any],
    out_dims: Any,
    randomness: str,
    kwargs: dict[str, Any],
    values: list[Any],
    size: int,
) -> tuple[list[Any], pytrees.Spec, list[Any]]:
    """(the leaves of the result, its structure, where the batch is in each)."""
    level = BatchLevel(size, randomness)
    outer = modes.transforms.set(modes.transforms.get() + 1)
    try:
        made, out_spec, places = _inside(func, spec, dims, out_dims, kwargs, values, level)
    finally:
        modes.transforms.reset(outer)
    tell(level)
    return made, out_spec, places


def _inside(
    func: Any,
    spec: pytrees.Spec,
    dims: list[Any],
    out_dims: Any,
    kwargs: dict[str, Any],
    values: list[Any],
    level: BatchLevel,
) -> tuple[list[Any], pytrees.Spec, list[Any]]:
    with modes.changed(levels=(*batched_arrays.levels(), level)):
        inside = [
            v if d is None else _entered(v, d, level) for v, d in zip(values, dims, strict=True)
        ]
        result = users(func)(*pytrees.unflatten(inside, spec), **kwargs)
        found, out_spec = pytrees.flatten(result)
        places = _places(func, out_dims, found, out_spec)
        made = [_outside(func, r, d, level) for r, d in zip(found, places, strict=True)]
    return made, out_spec, places


def _places(func: Any, out_dims: Any, found: list[Any], spec: pytrees.Spec) -> list[Any]:
    if spec.kind is None and isinstance(out_dims, tuple) and len(out_dims) == 1:
        out_dims = out_dims[0]
    dims = pytrees.broadcast(out_dims, spec)
    if dims is not None and not all(d is None or isinstance(d, int) for d in dims):
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a "
            "python collection of ints representing where in the outputs the vmapped dimension "
            "should appear."
        )
    if dims is None:
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible "
            f"with the structure of `outputs`. out_dims has structure {pytrees.flatten(out_dims)[1]} "
            f"but outputs has structure {spec}."
        )
    return dims


def _outside(func: Any, result: Any, dim: Any, level: BatchLevel) -> Any:
    name = _name(func)
    if dim is None:
        if isinstance(result, Tensor) and level in batched_arrays.batch_of(result):
            raise ValueError(
                f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None"
            )
        return result
    if not isinstance(result, Tensor):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(result)}. Did you "
            "mean to set out_dims= to None for output?"
        )
    n = result.ndim + 1
    if not -n <= dim < n:
        from gradcli.engine.core.errors import DimensionRangeError

        raise DimensionRangeError(dim, n)
    return _recorded(remove_batch_dim, result, dim % n, level)


def _entered(tensor: Tensor, dim: int, level: BatchLevel) -> Tensor:
    """A tensor in a batch over the same memory: what is written into it is written into the tensor."""
    out: Tensor = _recorded(add_batch_dim, tensor, dim, level)
    out.versions = tensor.shared_versions()
    out.shows = Shown(
        tensor,
        versions.tick(),
        enter=lambda: add_batch_dim(tensor, dim, level),
        leave=lambda t: copy_p(tensor.detach(), remove_batch_dim(t, dim, level)),
    )
    whole = tensor if tensor.base is None else tensor.base
    whole.views = views_of(tensor)
    whole.views.add(out)
    return out


def _recorded(way: Any, tensor: Any, dim: int, level: BatchLevel) -> Any:
    """A way into a batch or out of it, in any mode the same: to PyTorch it is no operation."""
    state = modes.current()
    if tensor.node is None and (state.ordinary or state.silent or state.mapped):
        return wrap(_KERNELS[way](tensor.array, dim, level))
    inference = state.inference
    with modes.changed(enabled=modes.is_grad_enabled() or not inference):
        out = way(tensor, dim, level)
    if inference:
        out.inference = tensor.inference
    return out


_KERNELS: dict[Any, Callable[[Any, int, BatchLevel], Any]] = {
    add_batch_dim: batched_arrays.added,
    remove_batch_dim: batched_arrays.removed,
}


def _in_chunks(
    run: Callable[..., Any], values: list[Any], dims: list[Any], size: int, chunk: int
) -> Any:
    """The function on some entries at a time."""
    from gradcli.engine.registry.table import resolve

    columns: list[list[Any]] = []
    out_spec, places = None, None
    for start in range(0, size, chunk):
        count = min(chunk, size - start)
        part = [
            v if d is None else v.narrow(d, start, count) for v, d in zip(values, dims, strict=True)
        ]
        found, out_spec, places = run(part, count)
        columns.append(found)
    assert out_spec is not None and places is not None
    joined = [
        parts[0] if d is None else resolve("cat")(list(parts), d)
        for d, parts in zip(places, zip(*columns, strict=True), strict=True)
    ]
    return pytrees.unflatten(joined, out_spec)

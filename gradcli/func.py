"""torch.func: derivatives of functions, as functions. Thin wrappers over `autograd`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradcli.engine import modes
from gradcli.engine.backward import grad as pull
from gradcli.engine.tensor import Tensor
from gradcli.operators.table import resolve

Argnums = int | tuple[int, ...]

_depth = 0  # how many transformed functions are running: all but the outermost keep their graphs

_nested = 0  # how many transformed functions have run inside others


def _stack(tensors: Sequence[Any], dim: int = 0) -> Any:
    return resolve("stack")(list(tensors), dim)


def _mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """The function on every tensor of nested tuples, lists and dicts."""
    if isinstance(value, dict):
        return {k: _mapped(function, v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        made = [_mapped(function, v) for v in value]
        return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
    return function(value) if isinstance(value, Tensor) else value


def _tensors(value: Any) -> list[Tensor]:
    found: list[Tensor] = []
    _mapped(lambda t: found.append(t), value)
    return found


class _Level:
    """One transformed function at work."""

    def __enter__(self) -> int:
        global _depth, _nested
        _depth += 1
        _nested += _depth > 1
        self.mode = modes.enable_grad()
        self.mode.__enter__()
        return _depth

    def __exit__(self, *error: object) -> None:
        global _depth
        self.mode.__exit__(*error)
        _depth -= 1


def _variable(tensor: Tensor) -> Tensor:
    return tensor.view_as(tensor) if tensor.requires_grad else tensor.detach().requires_grad_()


def _chosen(args: tuple[Any, ...], argnums: Argnums) -> tuple[list[Any], tuple[int, ...]]:
    """(arguments with the chosen ones as variables, which those are)."""
    wanted = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    for i in wanted:
        if not -len(args) <= i < len(args):
            raise RuntimeError(
                f"Got argnum={i}, but only {len(args)} positional inputs were received"
            )
    given = list(args)
    for i in wanted:
        given[i] = _mapped(_variable, args[i])
    return given, wanted


def _settled(value: Any, *inputs: Any) -> Any:
    """The result: part of a graph only where an outer function or the caller asked for one."""
    if _depth > 1 or any(t.requires_grad for t in _tensors(inputs)):
        return value
    return _mapped(lambda t: t.detach(), value)


def _gradients(output: Any, given: Sequence[Any], keep: bool) -> Any:
    leaves = _tensors(list(given))
    if not output.requires_grad:
        found = [resolve("zeros_like")(t) for t in leaves]
    else:
        found = list(
            pull(output, leaves, create_graph=keep, allow_unused=True, materialize_grads=True)
        )
    each = iter(found)
    return _mapped(lambda _: next(each), list(given))


def grad_and_value(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that returns the gradient of `func`, a scalar, and its value."""

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with _Level():
            given, wanted = _chosen(args, argnums)
            result = func(*given, **kwargs)
            aux = None
            if has_aux:
                if not (isinstance(result, tuple) and len(result) == 2):
                    raise RuntimeError(
                        "grad_and_value(f)(*args): output of function f should be a tuple: "
                        "(output, aux) if has_aux is True"
                    )
                result, aux = result
            if not isinstance(result, Tensor):
                raise RuntimeError(
                    "grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got "
                    f"{type(result)}"
                )
            if result.ndim:
                raise RuntimeError(
                    "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got "
                    f"tensor with {result.ndim} dims. Maybe you wanted to use the vjp or jacrev APIs "
                    "instead?"
                )
            keep = _depth > 1 or any(t.requires_grad for t in _tensors(args))
            found = _gradients(result, [given[i] for i in wanted], keep)
            grads = found[0] if isinstance(argnums, int) else tuple(found)
            grads, result, aux = (_settled(v, args) for v in (grads, result, aux))
        return (grads, (result, aux)) if has_aux else (grads, result)

    return wrapper


def value_and_grad(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that returns the value of `func`, a scalar, and its gradient (JAX's order)."""
    both = grad_and_value(func, argnums, has_aux)

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        grads, value = both(*args, **kwargs)
        return value, grads

    return wrapper


def grad(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that returns the gradient of `func`, a scalar."""
    both = grad_and_value(func, argnums, has_aux)

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        grads, value = both(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads

    return wrapper


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """(value, function of a cotangent that gives a tuple of gradients)."""
    with _Level():
        given, _ = _chosen(primals, tuple(range(len(primals))))
        result = func(*given)
        result, aux = result if has_aux else (result, None)

    def pullback(
        cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None
    ) -> Any:
        with _Level():
            outputs, seeds = _tensors(result), _tensors(cotangents)
            pairs = [(o, s) for o, s in zip(outputs, seeds, strict=True) if o.requires_grad]
            leaves = _tensors(given)
            keep = _depth > 1 or any(t.requires_grad for t in [*_tensors(primals), *seeds])
            found = iter(
                pull(
                    [o for o, _ in pairs],
                    leaves,
                    [s for _, s in pairs],
                    retain_graph=retain_graph,
                    create_graph=keep if create_graph is None else create_graph,
                    allow_unused=True,
                    materialize_grads=True,
                )
            )
            grads = tuple(_mapped(lambda _: next(found), g) for g in given)
            return _settled(grads, primals, seeds)

    shown = _settled(result, primals) if _depth else _mapped(_outside(primals), result)
    return (shown, pullback, aux) if has_aux else (shown, pullback)


def _outside(primals: Any) -> Callable[[Tensor], Tensor]:
    keep = any(t.requires_grad for t in _tensors(primals))
    return lambda t: t if keep else t.detach()


def jvp(
    func: Callable[..., Any], primals: Any, tangents: Any, *, has_aux: bool = False
) -> tuple[Any, ...]:
    """(value, its derivative along the tangents)."""
    from gradcli.calculus import functional

    aux: list[Any] = []

    def plain(*args: Any) -> Any:
        result = func(*args)
        if has_aux:
            result, extra = result
            aux.append(extra)
        return result

    with _Level():
        keep = _depth > 1 or any(t.requires_grad for t in [*_tensors(primals), *_tensors(tangents)])
        value, pushed = functional.jvp(plain, tuple(primals), tuple(tangents), create_graph=keep)
    return (value, pushed, aux[0]) if has_aux else (value, pushed)


def _jacobian(func: Callable[..., Any], argnums: Argnums, has_aux: bool, strategy: str) -> Any:
    from gradcli.calculus import functional

    def wrapper(*args: Any) -> Any:
        wanted = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        aux: list[Any] = []

        def plain(*given: Any) -> Any:
            full = list(args)
            for i, value in zip(wanted, given, strict=True):
                full[i] = value
            result = func(*full)
            if has_aux:
                result, extra = result
                aux.append(extra)
            return result

        inputs = tuple(args[i] for i in wanted)
        with _Level():
            keep = _depth > 1 or any(t.requires_grad for t in inputs)
            before = _nested
            found = None
            if strategy == "forward-mode" and not keep:
                found = functional.jacobian(plain, inputs, vectorize=True, strategy=strategy)
            if (
                found is None or _nested != before
            ):  # tangents do not reach into a transformed function
                aux.clear()
                found = functional.jacobian(plain, inputs, create_graph=keep)
        if isinstance(argnums, int):
            many = isinstance(found[0], tuple)
            found = tuple(f[0] for f in found) if many else found[0]
        return (found, aux[0]) if has_aux else found

    return wrapper


def jacrev(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """A function that returns the Jacobian of `func`, by reverse mode."""
    return _jacobian(func, argnums, has_aux, "reverse-mode")  # type: ignore[no-any-return]


def jacfwd(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Callable[..., Any]:
    """A function that returns the Jacobian of `func`, by forward mode."""
    return _jacobian(func, argnums, has_aux, "forward-mode")  # type: ignore[no-any-return]


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """A function that returns the Hessian of `func`."""
    return jacrev(jacrev(func, argnums), argnums)


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """A function that maps `func` over a dimension of its arguments: entry by entry."""

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        dims = in_dims if isinstance(in_dims, (tuple, list)) else (in_dims,) * len(args)
        sizes = {a.shape[d] for a, d in zip(args, dims, strict=True) if d is not None}
        if len(sizes) != 1:
            raise ValueError(
                "vmap: Expected all tensors to have the same size in the mapped dimension, got "
                f"sizes {sorted(sizes)} for the mapped dimension"
            )
        results = [
            func(
                *(a if d is None else a.select(d, k) for a, d in zip(args, dims, strict=True)),
                **kwargs,
            )
            for k in range(sizes.pop())
        ]
        if isinstance(results[0], tuple):
            out = out_dims if isinstance(out_dims, (tuple, list)) else (out_dims,) * len(results[0])
            return tuple(
                _stack(column, d) for column, d in zip(zip(*results, strict=True), out, strict=True)
            )
        return _stack(results, out_dims)

    return wrapper


__all__ = [
    *("grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "value_and_grad", "vjp"),
    "vmap",
]

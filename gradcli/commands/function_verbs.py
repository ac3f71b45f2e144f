"""`gradcli.grad(f)` and the others of a Python function: derivatives as functions, or at values by name.

They are those of `gradcli.func`, for tensors, NumPy's arrays and numbers alike.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from gradcli.commands.named_results import ByName
from gradcli.torch import func

__tracebackhide__ = True
TRANSFORMS: dict[str, Callable[..., Any]] = {
    "grad": func.grad,
    "value_and_grad": func.value_and_grad,
    "jacobian": func.jacrev,
    "hessian": func.hessian,
}
_OPTIONS = ("argnums", "has_aux", "wrt", "mode")


def derived(
    name: str, function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]
) -> Any:
    """What a verb of that name gives for a function: a function, or, at values by name, its result.

    Raises TypeError for options that a function does not take.
    """
    if name == "jvp":
        return func.jvp(function, *args, **named)
    signature = inspect.signature(function)
    own = signature.parameters
    matrix = name in ("jacobian", "hessian") and "sparse" not in own
    if matrix and named.pop("sparse", False):
        return _sparse(name, function, list(own), args, named)
    options = {n: named[n] for n in _OPTIONS if n in named and n not in own}
    values = {n: v for n, v in named.items() if n not in options}
    first = args[0] if args else None
    if isinstance(first, Mapping):
        values = {**first, **values}
    elif isinstance(first, (int, tuple)) and "argnums" not in options:
        options["argnums"] = first
    elif args:
        raise TypeError(
            f"gradcli.{name}(f) is a function: {name}(f)(x), or {name}(f, x=…) at a point by name"
        )
    transform = _transform(name, options.pop("mode", None))
    wrt = options.pop("wrt", None)
    if wrt is not None and "argnums" in options:
        raise TypeError(f"{name}(): wrt and argnums are two names of one option: pass one of them")
    if values:
        return _at(name, transform, function, signature, values, wrt, options)
    if wrt is not None:
        names = [wrt] if isinstance(wrt, str) else list(wrt)
        places = tuple(_place(n, list(own)) for n in names)
        options["argnums"] = places[0] if isinstance(wrt, str) else places
    return transform(function, **options)


def _sparse(
    name: str, function: Callable[..., Any], own: list[str], args: Any, named: dict[str, Any]
) -> Any:
    """The matrix without its zeros: as a function, or at values by name. It is compiled."""
    from gradcli.columns.compiler.compiled_function import compile

    values = {n: v for n, v in named.items() if n not in ("argnums", "wrt", "mode")}
    wrt = named.get("wrt", None if values else own[named.get("argnums", 0)])
    if args:
        first = args[0]
        if isinstance(first, int):
            wrt = own[first]
        elif isinstance(first, Mapping):
            values = {**first, **values}
        else:
            raise TypeError(
                f"gradcli.{name}(f, sparse=True) is a function: {name}(f, sparse=True)(x)"
            )
    compiled = compile(function, wrt=wrt)
    matrix = compiled.sparse_hessian if name == "hessian" else compiled.sparse_jacobian
    return matrix(**values) if values else matrix


def vjp(function: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """(the value, a function from a cotangent to a tuple of gradients), as of `gradcli.func.vjp`."""
    if isinstance(function, str):
        raise TypeError(
            "vjp takes a function; of an expression whose value is no number gradcli.grad(source, "
            "seed=…, x=…) is the gradient that starts from seed"
        )
    found: tuple[Any, ...] = func.vjp(function, *primals, has_aux=has_aux)
    return found


def hvp(function: Callable[..., Any]) -> Callable[..., Any]:
    """The product of a function's second derivatives with a direction, as a function.

    `hvp(f)(x, v)` is `hessian(f)(x) @ v` without the matrix; further arguments of f follow behind v.
    """
    if isinstance(function, str):
        raise TypeError("hvp takes a function; of an expression gradcli.compile(source).hvp(x, v)")
    slope = func.grad(function)

    def product(x: Any, v: Any, *args: Any) -> Any:
        return func.jvp(lambda point: slope(point, *args), (x,), (v,))[1]

    return product


def _transform(name: str, mode: str | None) -> Callable[..., Any]:
    if mode is None or name != "jacobian":
        return TRANSFORMS[name]
    if mode not in ("forward", "reverse"):
        raise ValueError(f'mode must be "forward" or "reverse", not {mode!r}')
    return func.jacfwd if mode == "forward" else func.jacrev


def _place(name: str, names: list[str]) -> int:
    if name not in names:
        raise TypeError(f"the function has no parameter {name!r} (it has {', '.join(names)})")
    return names.index(name)


def _at(
    name: str,
    transform: Callable[..., Any],
    function: Callable[..., Any],
    signature: inspect.Signature,
    values: Mapping[str, Any],
    wrt: Any,
    options: dict[str, Any],
) -> Any:
    """The derivative at values by name: of one variable its result, of several a dict by name."""
    for n in values:
        if n not in signature.parameters and not any(
            p.kind is p.VAR_KEYWORD for p in signature.parameters.values()
        ):
            _place(n, list(signature.parameters))
    try:
        bound = signature.bind(**values)
    except TypeError as error:
        raise TypeError(f"{getattr(function, '__name__', 'the function')}: {error}") from None
    given = list(bound.arguments)
    if "argnums" in options:
        places = options.pop("argnums")
        wanted: Any = given[places] if isinstance(places, int) else [given[k] for k in places]
    else:
        numeric = [n for n in given if not isinstance(bound.arguments[n], (str, bool, type(None)))]
        wanted = wrt if wrt is not None else numeric[0] if len(numeric) == 1 else numeric
    names = [wanted] if isinstance(wanted, str) else list(wanted)
    places = tuple(_place(n, given) for n in names)

    def by_position(*args: Any) -> Any:
        filled = inspect.BoundArguments(
            signature, type(bound.arguments)(zip(given, args, strict=True))
        )
        return function(*filled.args, **filled.kwargs)

    found = transform(by_position, argnums=places, **options)(*bound.arguments.values())
    if name == "value_and_grad":
        return found[0], _named(found[1], names, wanted)
    if options.get("has_aux"):
        return _named(found[0], names, wanted), found[1]
    if name == "hessian":
        rows = {n: dict(zip(names, row, strict=True)) for n, row in zip(names, found, strict=True)}
        if isinstance(wanted, str):
            return rows[wanted][wanted]
        return ByName({n: ByName(row) for n, row in rows.items()})
    return _named(found, names, wanted)


def _named(found: tuple[Any, ...], names: list[str], wanted: Any) -> Any:
    return found[0] if isinstance(wanted, str) else ByName(zip(names, found, strict=True))


__all__ = ["derived", "hvp", "vjp"]

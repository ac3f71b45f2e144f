"""What the transforms of torch.func share: which arguments, which results, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.engine.core import levels, pytrees
from gradcli.engine.core.errors import ReturnedTypeError
from gradcli.engine.core.tensor import Tensor

_CONSTANTS = (str, bool, type(None))
Argnums = int | tuple[int, ...]


def _tensors(value: Any) -> list[Tensor]:
    """Every tensor of nested tuples, lists and dicts."""
    return [v for v in pytrees.flatten(value)[0] if isinstance(v, Tensor)]


def _mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """The function on every tensor of nested tuples, lists and dicts."""
    leaves, spec = pytrees.flatten(value)
    return pytrees.unflatten([function(v) if isinstance(v, Tensor) else v for v in leaves], spec)


def _closed(level: levels.Reverse, *values: Any, again: bool = False) -> Any:
    """What a level returns, as the level below gets it; again: its graph is needed again."""
    leaves, spec = pytrees.flatten(values)
    found = iter(level.close([v for v in leaves if isinstance(v, Tensor)], again))
    made = pytrees.unflatten([next(found) if isinstance(v, Tensor) else v for v in leaves], spec)
    return made if len(values) > 1 else made[0]


def _checked(tensor: Any) -> Tensor:
    """A tensor to differentiate by; ValueError for anything else."""
    if not isinstance(tensor, Tensor):
        from gradcli.engine.core.errors import TransformInputError

        raise TransformInputError(
            f"Thing passed to transform API must be Tensor, got {type(tensor)}"
        )
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
    args: tuple[Any, ...],
    argnums: Argnums,
    make: Callable[[Any], Any],
    other: Callable[[Any], Any] = lambda value: value,
    constants: bool = False,
) -> tuple[list[Any], Any]:
    """(arguments with the chosen ones made variables or points, the chosen: one or a tuple).

    other: what is made of the leaves of the others. constants: in what is nested, a text or a switch beside
    the variables is no variable.
    """
    given = []
    wanted = _wanted(argnums, len(args))
    for i, arg in enumerate(args):
        leaves, spec = pytrees.flatten(arg)
        fixed = _CONSTANTS if constants and spec.kind is not None else ()
        made = [
            v if isinstance(v, fixed) else make(_checked(v)) if i in wanted else other(v)
            for v in leaves
        ]
        given.append(pytrees.unflatten(made, spec))
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
    leaves, _ = pytrees.flatten(result)
    if result is None or not leaves:
        raise RuntimeError(
            f"{call}: Expected f to be a function that has non-empty output (got output = {leaves})"
        )
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise ReturnedTypeError(
                f"{call}: expected f(*primals) to return only tensors, got unsupported type "
                f"{type(leaf)}"
            )
    return leaves


def _brief(spec: pytrees.Spec) -> str:
    """A structure as a message shows it: `(*, *)`."""
    if spec.kind is None:
        return "*"
    return str(pytrees.unflatten(["*"] * spec.leaves, spec)).replace("'*'", "*")


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
    from gradcli.transforms import forward_mode

    pairs = [forward_mode.unpack_dual(o) for o in _outputs(result, call)]
    primal = pytrees.unflatten([p.primal for p in pairs], pytrees.flatten(result)[1])
    aux = _mapped(lambda t: forward_mode.unpack_dual(t).primal, aux)
    return primal, [p.tangent for p in pairs], aux


def _refuse_complex(name: str, values: Any) -> None:
    for i, value in enumerate(pytrees.flatten(values)[0]):
        if isinstance(value, Tensor) and value.is_complex():
            raise RuntimeError(
                f"{name}: Expected all inputs to be real but received complex tensor at flattened "
                f"input idx: {i}"
            )

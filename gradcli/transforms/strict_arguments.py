"""What the functions of torch.autograd.functional share: tuples, vectors, and what `strict` refuses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcli.engine.core.tensor import Tensor, wrap

Tensors = tuple[Tensor, ...]


_STRICT = "This is not allowed in strict mode."


def _as_tuple(value: Any, what: str, function: str) -> tuple[bool, Tensors]:
    many = isinstance(value, tuple)
    values = value if many else (value,)
    for i, item in enumerate(values):
        if not isinstance(item, Tensor):
            which = f"value at index {i}" if many else f"given {what}"
            raise TypeError(
                f"The {what} given to {function} must be either a Tensor or a tuple of Tensors but "
                f"the {which} has type {type(item)}."
            )
    return many, values


def _fresh(inputs: Tensors, create_graph: bool) -> Tensors:
    """The inputs as variables of their own; connected to the given ones where asked."""
    if create_graph:
        return tuple(t.view_as(t) if t.requires_grad else _leaf(t) for t in inputs)
    return tuple(_leaf(t) for t in inputs)


def _leaf(tensor: Tensor) -> Tensor:
    return tensor.detach().requires_grad_()


def _validated(v: Tensors, other: Tensors, is_tuple: bool) -> None:
    if len(v) != len(other):
        if is_tuple:
            raise RuntimeError(
                f"v is a tuple of invalid length: should be {len(other)} but got {len(v)}."
            )
        raise RuntimeError("The given v should contain a single Tensor.")
    for i, (mine, wanted) in enumerate(zip(v, other, strict=True)):
        if mine.shape != wanted.shape:
            where = f"Entry {i} in " if is_tuple else ""
            raise RuntimeError(
                f"{where}v has invalid size: should be {wanted.shape} but got {mine.shape}."
            )


def _check_slopes(
    grads: Sequence[Any], strict: bool, create_graph: bool, message: str, constant: str = "jacobian"
) -> None:
    """In strict mode, refuse gradients that are missing or, to be differentiated again, constant."""
    for i, g in enumerate(grads if strict else ()):
        if g is None:
            raise RuntimeError(message.format(i))
        if create_graph and not g.requires_grad:
            raise RuntimeError(
                f"The {constant} of the user-provided function is independent of input {i}. This is "
                "not allowed in strict mode when create_graph=True."
            )


_INDEPENDENT = "The output of the user-provided function is independent of input {}. " + _STRICT


_HESSIAN_INDEPENDENT = (
    "The jacobian of the user-provided function is independent of input {}. " + _STRICT
)


_CONSTANT = {
    "outputs": (
        "Output {} of the user-provided function does not require gradients. The outputs must be "
        "computed in a differentiable manner from the input when running in strict mode."
    ),
    "jacobian": (
        "While computing the hessian, found that the jacobian of the user-provided function with "
        f"respect to input {{}} is independent of the input. {_STRICT} You should ensure that your "
        "function is twice differentiable and that the jacobian depends on the inputs (this would be "
        "violated by a linear function for example)."
    ),
    "grad_inputs": (
        "The gradient with respect to input {} is independent of the inputs of the user-provided "
        f"function. {_STRICT}"
    ),
}


def _check_tracked(values: Any, what: str, strict: bool) -> None:
    """In strict mode, refuse what does not depend on the inputs."""
    for i, value in enumerate(values if strict else ()):
        if value is None:
            raise RuntimeError(_INDEPENDENT.format(i))
        if not value.requires_grad:
            raise RuntimeError(_CONSTANT[what].format(i))


def _unwrapped(values: Tensors, is_tuple: bool) -> Any:
    return values if is_tuple else values[0]


def _released(values: Any, create_graph: bool) -> Any:
    if create_graph:
        return values
    if isinstance(values, tuple):
        return tuple(_released(v, False) for v in values)
    return values.detach()


def _vectors(
    v: Any, beside: Tensors, many: bool, create_graph: bool, name: str, say: str
) -> Tensors:
    """v, which is as `beside` is; one where it is None, and that a single number, or else refused."""
    if v is None:
        if len(beside) != 1 or beside[0].numel() != 1:
            raise RuntimeError(
                f"The vector v can only be None if the {say} a single Tensor with a single element."
            )
        return (wrap(np.ones(beside[0].shape, beside[0].array.dtype)),)
    _, vectors = _as_tuple(v, "v", name)
    vectors = vectors if create_graph else tuple(t.detach() for t in vectors)
    _validated(vectors, beside, many)
    return vectors


def _beside_vectors(
    inputs: Any, v: Any, create_graph: bool, name: str
) -> tuple[bool, Tensors, Tensors]:
    """(whether there are many inputs, the variables, what their derivatives are multiplied by)."""
    many, given = _as_tuple(inputs, "inputs", name)
    variables = _fresh(given, create_graph)
    say = "input to the user-provided function is"
    return many, variables, _vectors(v, variables, many, create_graph, name, say)


def _outputs(func: Callable[..., Any], variables: Sequence[Any], name: str) -> tuple[bool, Tensors]:
    return _as_tuple(func(*variables), "outputs of the user-provided function", name)


def _single_output(result: Any, function: str, strict: bool) -> tuple[bool, Tensors]:
    many, outputs = _as_tuple(result, "outputs of the user-provided function", function)
    _check_tracked(outputs, "outputs", strict)
    if many or len(outputs) != 1:
        raise RuntimeError(f"The function given to {function} should return a single Tensor")
    if outputs[0].numel() != 1:
        raise RuntimeError(
            f"The Tensor returned by the function given to {function} should contain a single "
            "element"
        )
    return many, outputs

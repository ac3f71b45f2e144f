"""`torch.autograd.functional`: products with Jacobians and Hessians, and the matrices themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcli.core import modes
from gradcli.core.backward_pass import grad, tell
from gradcli.core.batch_levels import remove_batch_dim
from gradcli.core.batched_arrays import Level, opened
from gradcli.core.tensor import Tensor, wrap
from gradcli.transforms import batched_passes as batched

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


def _pulled(
    outputs: Any,
    inputs: Tensors,
    seeds: Any,
    create_graph: bool,
    strict: bool,
    message: str,
    constant: str = "jacobian",
) -> Tensors:
    """Gradients with zeros where there is no dependence; in strict mode that is an error.

    message: what it says of a missing gradient. constant: what a gradient is that does not depend on
    the inputs, where it was to be differentiated again.
    """
    pairs = [
        (o, s) for o, s in zip(outputs, seeds, strict=True) if o is not None and o.requires_grad
    ]
    if not pairs:
        grads: tuple[Tensor | None, ...] = (None,) * len(inputs)
    else:
        grads = grad(
            [o for o, _ in pairs],
            inputs,
            [s for _, s in pairs],
            create_graph=create_graph,
            retain_graph=True,
            allow_unused=True,
        )
    _check_slopes(grads, strict, create_graph, message, constant)
    return tuple(
        wrap(np.zeros(t.shape, t.array.dtype)) if g is None else g
        for g, t in zip(grads, inputs, strict=True)
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


def _slopes(outputs: Any, inputs: Tensors, seeds: Any) -> tuple[Any, ...]:
    """Recorded gradients; None where there is no dependence."""
    if not any(o.requires_grad for o in outputs):
        return (None,) * len(inputs)
    pairs = [(o, s) for o, s in zip(outputs, seeds, strict=True) if o.requires_grad]
    return grad(
        [o for o, _ in pairs],
        inputs,
        [s for _, s in pairs],
        create_graph=True,
        allow_unused=True,
    )


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


def vjp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """(outputs, v-transposed times Jacobian)."""
    with modes.enable_grad():
        many, given = _as_tuple(inputs, "inputs", "vjp")
        variables = _fresh(given, create_graph)
        many_out, outputs = _outputs(func, variables, "vjp")
        _check_tracked(outputs, "outputs", strict)
        say = "user-provided function returns"
        seeds = _vectors(v, outputs, many_out, create_graph, "vjp", say)
    pulled = _pulled(outputs, variables, seeds, create_graph, strict, _INDEPENDENT)
    return (
        _released(_unwrapped(outputs, many_out), create_graph),
        _released(_unwrapped(pulled, many), create_graph),
    )


def jvp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """(outputs, Jacobian times v), by differentiating the vector-Jacobian product."""
    with modes.enable_grad():
        _, variables, vectors = _beside_vectors(inputs, v, create_graph, "jvp")
        many_out, outputs = _outputs(func, variables, "jvp")
        _check_tracked(outputs, "outputs", strict)
        seeds = tuple(wrap(np.zeros(o.shape, o.array.dtype), True) for o in outputs)
        pulled = _slopes(outputs, variables, seeds)
        _check_tracked(pulled, "grad_inputs", strict)
        pushed = _pulled(
            pulled,
            seeds,
            vectors,
            create_graph,
            strict,
            "The gradient with respect to the input is independent of entry {} in the grad_outputs "
            "when using the double backward trick to compute forward mode gradients. " + _STRICT,
        )
    return (
        _released(_unwrapped(outputs, many_out), create_graph),
        _released(_unwrapped(pushed, many_out), create_graph),
    )


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian of every output by every input: shape output.shape + input.shape.

    strategy: "reverse-mode" (all rows of an output in one backward pass) or "forward-mode" (all columns
    in one run; only with vectorize=True, as in PyTorch). Otherwise vectorize changes nothing.
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your '
            'function has more outputs than inputs, "forward-mode" tends to be more performant. '
            'Otherwise, prefer to use "reverse-mode".'
        )
    if strategy == "forward-mode":
        if create_graph:
            raise NotImplementedError(
                "torch.autograd.functional.jacobian: `create_graph=True` and "
                '`strategy="forward-mode"` are not supported together (yet). Please either set '
                '`create_graph=False` or `strategy="reverse-mode"`.'
            )
        return _forward_jacobian(func, inputs, strict, vectorize)
    with modes.enable_grad():
        many, given = _as_tuple(inputs, "inputs", "jacobian")
        variables = _fresh(given, create_graph)
        many_out, outputs = _outputs(func, variables, "jacobian")
        _check_tracked(outputs, "outputs", strict)
        if vectorize and strict:
            raise RuntimeError(
                "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not "
                "supported together. Please either set `strict=False` or `vectorize=False`."
            )
        blocks = [
            _rows(i, output, variables, create_graph, strict) for i, output in enumerate(outputs)
        ]
    result = tuple(_unwrapped(block, many) for block in blocks)
    return _released(_unwrapped(result, many_out), create_graph)


def _rows(i: int, output: Tensor, variables: Tensors, create_graph: bool, strict: bool) -> Tensors:
    """The Jacobians of one output, all rows in one backward pass."""
    level = Level(output.numel(), linear=True)
    found = batched.rows(output, variables, level, create_graph)
    tell(level)
    message = f"Output {i} of the user-provided function is independent of input {{}}. " + _STRICT
    _check_slopes(found if level.size else (), strict, create_graph, message)
    return tuple(
        batched.zeros(output, v) if g is None else g for g, v in zip(found, variables, strict=True)
    )


def _forward_jacobian(func: Callable[..., Any], inputs: Any, strict: bool, vectorize: bool) -> Any:
    from gradcli.transforms import forward_mode as forward_ad

    if strict:
        raise RuntimeError(
            'torch.autograd.functional.jacobian: `strict=True` and `strategy="forward-mode"` are '
            "not supported together (yet). Please either set `strict=False` or "
            '`strategy="reverse-mode"`.'
        )
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly implemented "
            "for `vectorize=True`."
        )
    many, given = _as_tuple(inputs, "inputs", "jacobian")
    level = Level(sum(v.numel() for v in given), linear=True)
    with forward_ad.dual_level(), opened(level):
        duals = [
            forward_ad.make_dual(v, u)
            for v, u in zip(given, batched.units(given, level), strict=True)
        ]
        many_out, outputs = _outputs(func, duals, "jacobian")
        tangents = [forward_ad.unpack_dual(o).tangent for o in outputs]
        every = [None if t is None else remove_batch_dim(t, t.ndim, level).array for t in tangents]
    tell(level)
    result: Any = []
    for output, columns in zip(outputs, every, strict=True):
        row, at = [], 0
        for v in given:
            shape = (*output.shape, *v.shape)
            part = np.zeros(shape, output.array.dtype)
            if columns is not None:
                part = columns[..., at : at + v.numel()].reshape(shape)
            row.append(wrap(np.asarray(part, order="C")))
            at += v.numel()
        result.append(row)
    if not many:
        result = tuple(row[0] for row in result)
    return result if many_out else result[0]


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The second derivatives of a function of one element: the Jacobian of its gradient."""
    many, given = _as_tuple(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def single(*variables: Tensor) -> Any:
        return _single_output(func(*variables), "hessian", strict)[1][0].squeeze()

    def gradient(*variables: Tensor) -> Any:
        if outer_jacobian_strategy == "forward-mode":
            variables = tuple(v.requires_grad_(True) for v in variables)
        slopes = jacobian(single, variables, create_graph=True)
        _check_tracked(slopes, "jacobian", strict)
        return slopes

    found = jacobian(
        gradient,
        given,
        create_graph=create_graph,
        strict=strict,
        vectorize=vectorize,
        strategy=outer_jacobian_strategy,
    )
    return found if many else found[0][0]


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


def _second(
    func: Callable[..., Any],
    inputs: Any,
    v: Any,
    create_graph: bool,
    strict: bool,
    name: str,
) -> tuple[bool, Tensors, Tensors, Tensors, tuple[Any, ...]]:
    many, variables, vectors = _beside_vectors(inputs, v, create_graph, name)
    _, outputs = _single_output(func(*variables), name, strict)
    slopes = _slopes(outputs, variables, (None,))
    _check_tracked(slopes, "jacobian", strict)
    return many, variables, vectors, outputs, slopes


def vhp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """(output, v-transposed times Hessian)."""
    with modes.enable_grad():
        many, variables, vectors, outputs, slopes = _second(
            func, inputs, v, create_graph, strict, "vhp"
        )
        pulled = _pulled(
            slopes, variables, vectors, create_graph, strict, _HESSIAN_INDEPENDENT, "hessian"
        )
    return (
        _released(outputs[0], create_graph),
        _released(_unwrapped(pulled, many), create_graph),
    )


def hvp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """(output, Hessian times v), by differentiating the product with its transpose."""
    with modes.enable_grad():
        many, variables, vectors, outputs, slopes = _second(
            func, inputs, v, create_graph, strict, "hvp"
        )
        seeds = tuple(wrap(np.zeros(t.shape, t.array.dtype), True) for t in variables)
        pulled = _pulled(slopes, variables, seeds, True, False, _HESSIAN_INDEPENDENT)
        pushed = _pulled(
            pulled,
            seeds,
            vectors,
            create_graph,
            strict,
            "The hessian of the user-provided function is independent of entry {} in the "
            "grad_jacobian. This is not allowed in strict mode as it prevents from using the double "
            "backward trick to replace forward mode AD.",
            "hessian",
        )
    return (
        _released(outputs[0], create_graph),
        _released(_unwrapped(pushed, many), create_graph),
    )


__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

"""`torch.autograd.functional`: products with Jacobians and Hessians, and the matrices themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.engine.core import modes
from gradcli.engine.core.backward_pass import of_recorded, tell
from gradcli.engine.core.batch_levels import remove_batch_dim
from gradcli.engine.core.batched_arrays import BatchLevel, opened
from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.transforms import batched_passes
from gradcli.transforms.strict_arguments import (
    _HESSIAN_INDEPENDENT,
    _INDEPENDENT,
    _STRICT,
    Tensors,
    _as_tuple,
    _beside_vectors,
    _check_slopes,
    _check_tracked,
    _fresh,
    _outputs,
    _released,
    _single_output,
    _unwrapped,
    _vectors,
)


def _pulled(
    outputs: Any,
    inputs: Tensors,
    cotangents: Any,
    create_graph: bool,
    strict: bool,
    message: str,
    constant: str = "jacobian",
) -> Tensors:
    """Gradients with zeros where there is no dependence; in strict mode that is an error.

    message: what it says of a missing gradient. constant: what a gradient is that does not depend on
    the inputs, where it was to be differentiated again.
    """
    grads = of_recorded(outputs, inputs, cotangents, create_graph=create_graph, retain_graph=True)
    _check_slopes(grads, strict, create_graph, message, constant)
    return tuple(
        wrap(np.zeros(t.shape, t.array.dtype)) if g is None else g
        for g, t in zip(grads, inputs, strict=True)
    )


def _returned(create_graph: bool, *found: tuple[Tensors, bool]) -> tuple[Any, Any]:
    """(values, whether they are many) of outputs and of a product, as the caller gets them."""
    outputs, product = (_released(_unwrapped(v, many), create_graph) for v, many in found)
    return outputs, product


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
        cotangents = _vectors(v, outputs, many_out, create_graph, "vjp", say)
    pulled = _pulled(outputs, variables, cotangents, create_graph, strict, _INDEPENDENT)
    return _returned(create_graph, (outputs, many_out), (pulled, many))


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
        cotangents = tuple(wrap(np.zeros(o.shape, o.array.dtype), True) for o in outputs)
        pulled = of_recorded(outputs, variables, cotangents, create_graph=True)
        _check_tracked(pulled, "grad_inputs", strict)
        pushed = _pulled(
            pulled,
            cotangents,
            vectors,
            create_graph,
            strict,
            "The gradient with respect to the input is independent of entry {} in the grad_outputs "
            "when using the double backward trick to compute forward mode gradients. " + _STRICT,
        )
    return _returned(create_graph, (outputs, many_out), (pushed, many_out))


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
    level = BatchLevel(output.numel(), linear=True)
    found = batched_passes.rows(output, variables, level, create_graph)
    tell(level)
    message = f"Output {i} of the user-provided function is independent of input {{}}. " + _STRICT
    _check_slopes(found if level.size else (), strict, create_graph, message)
    return tuple(
        batched_passes.zeros(output, v) if g is None else g
        for g, v in zip(found, variables, strict=True)
    )


def _forward_jacobian(func: Callable[..., Any], inputs: Any, strict: bool, vectorize: bool) -> Any:
    from gradcli.transforms import forward_mode

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
    level = BatchLevel(sum(v.numel() for v in given), linear=True)
    with forward_mode.dual_level(), opened(level):
        duals = [
            forward_mode.make_dual(v, u)
            for v, u in zip(given, batched_passes.units(given, level), strict=True)
        ]
        many_out, outputs = _outputs(func, duals, "jacobian")
        tangents = [forward_mode.unpack_dual(o).tangent for o in outputs]
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
    slopes = of_recorded(outputs, variables, (None,), create_graph=True)
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
    return _returned(create_graph, (outputs, False), (pulled, many))


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
        cotangents = tuple(wrap(np.zeros(t.shape, t.array.dtype), True) for t in variables)
        pulled = _pulled(slopes, variables, cotangents, True, False, _HESSIAN_INDEPENDENT)
        pushed = _pulled(
            pulled,
            cotangents,
            vectors,
            create_graph,
            strict,
            "The hessian of the user-provided function is independent of entry {} in the "
            "grad_jacobian. This is not allowed in strict mode as it prevents from using the double "
            "backward trick to replace forward mode AD.",
            "hessian",
        )
    return _returned(create_graph, (outputs, False), (pushed, many))

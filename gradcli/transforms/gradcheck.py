"""`gradcheck` and `gradgradcheck`: analytic against numerical gradients, with PyTorch's words.

Numerical Jacobians come from central differences; complex outputs are checked by their real and
imaginary parts, complex inputs are perturbed along both axes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gradcli.engine.core import modes
from gradcli.engine.core.backward_pass import grad
from gradcli.engine.core.custom_function import Function
from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.engine.system import dtypes
from gradcli.transforms import forward_mode

Outputs = tuple[Any, ...]


class GradcheckError(RuntimeError):  # as PyTorch's, which has no other base
    """A gradient that is not what its function's differences say."""


class _UndefinedGrad(Function):
    """The identity, whose gradient never arrives."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, g: Any) -> None:
        return None


def _as_tuple(value: Any) -> Outputs:
    if isinstance(value, (tuple, list)):
        return tuple(value)
    return (value,)


def _differentiable(value: Any) -> Outputs:
    return tuple(o for o in _as_tuple(value) if isinstance(o, Tensor) and o.requires_grad)


def _checked(inputs: Sequence[Any]) -> list[Tensor]:
    return [t for t in inputs if isinstance(t, Tensor) and t.requires_grad]


# -- Jacobians ------------------------------------------------------------------------------------
def numerical_jacobians(
    function: Callable[..., Any], inputs: Sequence[Any], eps: float
) -> list[list[Any]]:
    """Central differences: for each differentiable input and output, an array (inputs, outputs).

    For complex inputs of holomorphic or other functions, what PyTorch compares with: the derivative
    combined from both axes as its vector-Jacobian products combine them.
    """
    found: list[list[Any]] = []
    for tensor in _checked(inputs):
        array = tensor.memory()
        rows: list[list[Any]] = []  # for each element, the slopes of the outputs
        for index in np.ndindex(array.shape):
            slopes = [
                _central_differences(function, inputs, array, index, step, eps)
                for step in ((eps, eps * 1j) if tensor.is_complex() else (eps,))
            ]
            # The conjugate Wirtinger derivative that a real cotangent pulls back.
            joined = zip(*slopes, strict=True)
            rows.append([p[0] if len(p) == 1 else p[0] + 1j * p[1] for p in joined])
        found.append([np.stack(column) for column in zip(*rows, strict=True)])
    return found


def _central_differences(
    function: Callable[..., Any],
    inputs: Sequence[Any],
    array: Any,
    index: tuple[int, ...],
    step: complex,
    eps: float,
) -> list[Any]:
    """The slopes of the outputs by an element of an input's array, which is perturbed by `step`."""
    results = []
    for sign in (1, -1):
        kept = array[index].copy()
        array[index] = kept + sign * step
        with modes.enable_grad():
            outputs = _as_tuple(function(*inputs))
        # Copies: an output may be the input itself, which is perturbed further.
        results.append([wrap(np.array(o.array)) for o in outputs])
        array[index] = kept
    for above, below in zip(*results, strict=True):
        _check_alike(below, above, f"on index {index} by {eps}")
    return [
        (_flat(a).astype(np.result_type(a.array, np.float64)) - _flat(b)) / (2 * eps)
        for a, b in zip(*results, strict=True)
    ]


def _flat(tensor: Tensor) -> Any:
    return np.array(tensor.array).reshape(-1)


def _check_alike(first: Tensor, second: Tensor, where: str) -> None:
    """Raise AssertionError where what a function returns depends on its input's values."""
    for what, one, other in (
        ("shape", first.shape, second.shape),
        ("dtype", first.dtype, second.dtype),
    ):
        if one != other:
            raise AssertionError(
                f"Expected `func` to return outputs with the same {what} when inputs are perturbed "
                f"{where}, but got: {what}s {one} and {other}."
            )


def analytical_jacobian(inputs: Sequence[Any], output: Tensor) -> list[Any]:
    """Vector-Jacobian products with unit cotangents: for each input an array (inputs, outputs)."""
    wanted = _checked(inputs)
    columns: list[list[Any]] = [[] for _ in wanted]
    for i in range(output.numel()):
        cotangent = np.zeros(output.numel(), output.array.dtype)
        cotangent[i] = 1
        pulled = grad(
            output,
            wanted,
            wrap(cotangent.reshape(output.shape)),
            retain_graph=True,
            allow_unused=True,
        )
        for column, tensor, g in zip(columns, wanted, pulled, strict=True):
            if g is not None and g.shape != tensor.shape:
                raise GradcheckError("Analytical gradient has incorrect size")
            zeros = np.zeros(tensor.numel(), tensor.array.dtype)
            column.append(zeros if g is None else np.array(g.array).reshape(-1))
    return [
        np.stack(c, -1) if c else np.zeros((t.numel(), 0))
        for c, t in zip(columns, wanted, strict=True)
    ]


# -- the checks -----------------------------------------------------------------------------------
def _check_inputs(inputs: Sequence[Any]) -> None:
    for i, tensor in enumerate(inputs):
        if not (isinstance(tensor, Tensor) and tensor.requires_grad):
            continue
        if tensor.dtype not in (dtypes.float64, dtypes.complex128):
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or "
                "complex. This check will likely fail if all the inputs are not of double "
                "precision floating point or complex. ",
                stacklevel=4,
            )
        if not all(st > 0 or n <= 1 for st, n in zip(tensor.stride(), tensor.shape, strict=True)):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs "
                "that are non-overlapping to be able to compute the numerical gradients "
                "correctly. You should call .contiguous on the input before passing it to "
                "gradcheck."
            )
    if not _checked(inputs):
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them "
            "have requires_grad=True."
        )


def _mismatch(prefix: str, i: int, j: int, numerical: Any, analytical: Any) -> GradcheckError:
    return GradcheckError(
        f"{prefix}Jacobian mismatch for output {i} with respect to input {j},\n"
        f"numerical:{wrap(numerical)}\nanalytical:{wrap(analytical)}\n"
    )


def _worst(
    analytical: Any, numerical: Any, shapes: tuple[Any, Any], atol: float, rtol: float
) -> str:
    """Where two Jacobians, of shape (inputs, outputs), differ most. shapes: of the output, of the input."""
    excess = np.abs(analytical - numerical) - atol - rtol * np.abs(numerical)
    excess = np.where(np.isnan(excess), np.inf, excess)
    both_nan = np.isnan(analytical) & np.isnan(numerical)
    excess[both_nan] = -1
    at = np.unravel_index(int(excess.argmax()), excess.shape)
    places = [
        f"{name}{[int(k) for k in np.unravel_index(int(flat), shape)] if shape else ''}"
        for name, flat, shape in (("output", at[1], shapes[0]), ("input", at[0], shapes[1]))
    ]
    a, b = analytical[at], numerical[at]
    return (
        f"worst: d {places[0]} / d {places[1]} is {a:.6g} by backward and {b:.6g} by differences\n"
        f"{int((excess > 0).sum())} of {excess.size} elements differ by more than {atol:g} + {rtol:g} "
        "times the second"
    )


def _parts(function: Callable[..., Any], outputs: Outputs) -> Iterator[tuple[str, Any, set[int]]]:
    """(prefix of messages, function, indices of complex outputs): whole, or by parts."""
    indices = {i for i, o in enumerate(outputs) if o.is_complex()}
    if not indices:
        yield "", function, indices
        return
    for name, take in (("imaginary", "imag"), ("real", "real")):

        def part(*inputs: Any, take: str = take) -> Outputs:
            made = _as_tuple(function(*inputs))
            return tuple(getattr(o, take) if o.is_complex() else o for o in made)

        yield f"While considering the {name} part of complex outputs only, ", part, indices


def _compare(
    function: Callable[..., Any],
    inputs: Sequence[Any],
    eps: float,
    atol: float,
    rtol: float,
    nondet_tol: float,
) -> None:
    outputs = tuple(o for o in _as_tuple(function(*inputs)) if isinstance(o, Tensor))
    for prefix, part, indices in _parts(function, outputs):
        made = tuple(o for o in _as_tuple(part(*inputs)) if isinstance(o, Tensor))
        numerical = numerical_jacobians(part, inputs, eps)
        if not _differentiable(made):
            if any(np.any(n != 0) for row in numerical for n in row):
                raise GradcheckError("Numerical gradient for function expected to be zero")
            continue
        tracked = [(k, o) for k, o in enumerate(made) if o.requires_grad]
        for i, (k, output) in enumerate(tracked):
            first = analytical_jacobian(inputs, output)
            again = analytical_jacobian(inputs, output)
            if any(
                a.size and np.abs(a - b).max() > nondet_tol
                for a, b in zip(first, again, strict=True)
            ):
                raise GradcheckError(
                    "Backward is not reentrant, i.e., running backward with same input and "
                    "grad_output multiple times gives different values, although analytical "
                    "gradient matches numerical gradient.The tolerance for nondeterminism was "
                    f"{nondet_tol}.{_NONDETERMINISM}"
                )
            for j, analytical in enumerate(first):
                difference = numerical[j][k] if numerical[j] else analytical
                if not np.allclose(analytical, difference, rtol, atol, equal_nan=True):
                    shown = prefix if k in indices else ""
                    error = _mismatch(shown, i, j, _like(difference, analytical), analytical)
                    shapes = output.shape, _checked(inputs)[j].shape
                    error.add_note(_worst(analytical, difference, shapes, atol, rtol))
                    raise error


def _like(numerical: Any, analytical: Any) -> Any:
    return numerical.astype(analytical.dtype) if analytical.dtype.kind != "c" else numerical


_NONDETERMINISM = (
    "\n\nNOTE: If your op relies on non-deterministic operations i.e., it is listed here:\n"
    "https://pytorch.org/docs/stable/generated/torch.use_deterministic_algorithms.html\n"
    "this failure might be expected.\n\nIf you are adding a new operator, please file an issue and "
    "then use one of the\nworkarounds. The workaround depends on how your test invokes "
    "gradcheck/gradgradcheck.\nIf the test\n- manually invokes gradcheck/gradgradcheck, then call "
    "gradcheck/gradgradcheck\n  with `nondet_tol=<tol>` as a keyword argument.\n- is OpInfo-based "
    "(e.g., in test_ops_gradients.py), then modify the OpInfo for the test\n  to have "
    "`gradcheck_nondet_tol=<tol>`.\n- is a Module test (e.g., in common_nn.py), then modify the "
    "corresponding\n  module_test entry to have `gradcheck_nondet_tol=<tol>`\n"
)


def _check_scaling(outputs: Outputs, inputs: Sequence[Any]) -> None:
    zeros = [wrap(np.zeros(o.shape, o.array.dtype)) for o in outputs]
    wanted = _checked(inputs)
    for g, t in zip(
        grad(outputs, wanted, zeros, retain_graph=True, allow_unused=True), wanted, strict=True
    ):
        if g is None:
            continue
        if np.any(g.array != 0):
            raise GradcheckError("backward not multiplied by grad_output")
        if g.dtype != t.dtype:
            raise GradcheckError("grad is incorrect type")
        if g.shape != t.shape:
            raise GradcheckError("grad is incorrect size")


_BATCHED = "gradcheck or gradgradcheck failed while testing batched gradient computation."


def _check_batched(outputs: Outputs, inputs: Sequence[Any]) -> None:
    """All cotangents in one pass must give what a pass for each gives."""
    wanted, rng = _checked(inputs), np.random.default_rng(0)
    for i, output in enumerate(outputs):
        cotangents = [_random_seed(output, rng).detach() for _ in range(2)]
        rows = [grad(output, wanted, s, retain_graph=True, allow_unused=True) for s in cotangents]
        both = wrap(np.stack([s.array for s in cotangents]))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="There is a performance drop")
            try:
                found = grad(output, wanted, both, True, allow_unused=True, is_grads_batched=True)
            except RuntimeError as error:
                raise GradcheckError(
                    f"While computing batched gradients, got: {error}\n\n{_BATCHED}"
                ) from error
        for j, (got, *own) in enumerate(zip(found, *rows, strict=True)):
            if got is None:
                continue
            expected = wrap(np.stack([np.asarray(g.array) for g in own]))
            if not np.allclose(got.array, expected.array, rtol=1e-5, atol=1e-8):
                raise GradcheckError(
                    f"For output {i} and input {j}:\n\n{_BATCHED}\n\nGot:\n{got}\n\nExpected:\n"
                    f"{expected}"
                )


_UNDEFINED = (
    'Please look at "Notes about undefined output gradients" in "tools/autograd/derivatives.yaml"'
)


def _check_undefined(function: Callable[..., Any], inputs: Sequence[Any]) -> None:
    cases: list[list[Tensor]] = []
    outputs = _differentiable(function(*inputs))
    cases.append([_UndefinedGrad.apply(o) for o in outputs])
    if len(outputs) > 1:
        for k in range(len(outputs)):
            fresh = _differentiable(function(*inputs))
            cases.append([_UndefinedGrad.apply(o) if i == k else o for i, o in enumerate(fresh)])
    wanted = _checked(inputs)
    for made in cases:
        zeros = [wrap(np.zeros(o.shape, o.array.dtype)) for o in made]
        try:
            grads = grad(made, wanted, zeros, allow_unused=True)
        except RuntimeError as error:
            _warn_undefined()
            raise GradcheckError(
                f"Expected backward function to handle undefined output grads. {_UNDEFINED}"
            ) from error
        if any(g is not None and np.any(g.array != 0) for g in grads):
            _warn_undefined()
            raise GradcheckError(
                "Expected all input grads to be undefined or zero when all output grads are "
                f"undefined or zero. {_UNDEFINED}"
            )


def _warn_undefined() -> None:
    warnings.warn(
        "Backwards compatibility: New undefined gradient support checking feature is enabled by "
        "default, but it may break existing callers of this function. If this is true for you, you "
        'can call this function with "check_undefined_grad=False" to disable the feature',
        stacklevel=4,
    )


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compare the gradients of `func` with central differences (`torch.autograd.gradcheck`).

    inputs: a tensor or a tuple; those that require grad are checked, best in float64. Raises
    GradcheckError with both Jacobians where they differ, or returns False if raise_exception is False.
    check_batched_grad: whether a pass with many cotangents at once gives what a pass for each gives.
    fast_mode is taken and means the same check.
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError(
            "Expected at least one of check_forward_ad or check_backward_ad to be True"
        )
    if check_batched_grad and not check_backward_ad:
        raise AssertionError(
            "Setting check_batched_grad=True requires check_backward_ad to be True"
        )
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError(
            "Setting check_batched_forward_grad=True requires check_forward_ad to be True"
        )
    given = _as_tuple(inputs)
    try:
        _check_inputs(given)
        outputs = _differentiable(func(*given))
        if check_backward_ad:
            _compare(func, given, eps, atol, rtol, nondet_tol)
        if check_forward_ad:
            for prefix, part, seen in _input_parts(func, given):
                _compare_forward(prefix, part, seen, eps, atol, rtol)
                if check_undefined_grad:
                    _check_undefined_forward(part, seen)
        if check_backward_ad:
            if outputs:
                _check_scaling(outputs, given)
            if check_batched_grad and outputs:
                _check_batched(outputs, given)
            if check_undefined_grad and outputs:
                _check_undefined(func, given)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


InputPart = tuple[dict[int, str], Callable[..., Any], Outputs]


def _input_parts(function: Callable[..., Any], inputs: Outputs) -> Iterator[InputPart]:
    """(prefixes of messages by input, function, inputs): whole, or by parts of complex inputs."""
    complex_ = {i for i, t in enumerate(inputs) if isinstance(t, Tensor) and t.is_complex()}
    if not complex_:
        yield {}, function, inputs
        return
    for name, take in (("imaginary", "imag"), ("real", "real")):

        def part(*given: Any, take: str = take) -> Any:
            joined = [
                _joined(value, inputs[i], take) if i in complex_ else value
                for i, value in enumerate(given)
            ]
            return function(*joined)

        prefix = f"While considering the {name} part of complex inputs only, "
        seen = tuple(getattr(t, take) if i in complex_ else t for i, t in enumerate(inputs))
        yield dict.fromkeys(complex_, prefix), part, seen


def _joined(value: Any, whole: Any, take: str) -> Any:
    """The complex tensor whose one part is `value`, and the other as it was."""
    return whole.real + value * 1j if take == "imag" else value + whole.imag * 1j


def _duals(inputs: Outputs, tangents: Sequence[Any]) -> list[Any]:
    """The checked inputs with tangents (None: without), the others as they are."""
    given = iter(tangents)
    duals = []
    for value in inputs:
        if isinstance(value, Tensor) and value.requires_grad:
            plain, tangent = value.detach(), next(given)
            value = plain if tangent is None else forward_mode.make_dual(plain, tangent)
        duals.append(value)
    return duals


def _pushed(function: Callable[..., Any], inputs: Outputs, tangents: Sequence[Any]) -> list[Any]:
    """The tangents of the floating point outputs; None where there is none."""
    with forward_mode.dual_level():
        outputs = _as_tuple(function(*_duals(inputs, tangents)))
        return [forward_mode.unpack_dual(o).tangent for o in outputs if _is_checked(o)]


def _is_checked(output: Any) -> bool:
    return isinstance(output, Tensor) and output.array.dtype in dtypes.DIFFERENTIABLE


def _compare_forward(
    prefixes: dict[int, str],
    function: Callable[..., Any],
    inputs: Outputs,
    eps: float,
    atol: float,
    rtol: float,
) -> None:
    """Compare forward mode's Jacobian, made column by column, with central differences."""
    numerical = numerical_jacobians(function, inputs, eps)
    outputs = [o for o in _as_tuple(function(*inputs)) if _is_checked(o)]
    wanted = _checked(inputs)
    places = [i for i, t in enumerate(inputs) if isinstance(t, Tensor) and t.requires_grad]
    found: list[list[Any]] = []
    for j, tensor in enumerate(wanted):
        columns: list[list[Any]] = [[] for _ in outputs]
        for i in range(tensor.numel()):
            tangents = [wrap(np.zeros(t.shape, t.array.dtype)) for t in wanted]
            tangents[j].memory().reshape(-1)[i] = 1
            for column, output, tangent in zip(
                columns, outputs, _pushed(function, inputs, tangents), strict=True
            ):
                zeros = np.zeros(output.numel(), output.array.dtype)
                column.append(zeros if tangent is None else _flat(tangent))
        found.append(
            [
                np.stack(c) if c else np.zeros((0, o.numel()), o.array.dtype)
                for c, o in zip(columns, outputs, strict=True)
            ]
        )
    for k, output in enumerate(outputs):
        for j, made in enumerate(found):
            analytical = made[k]
            difference = numerical[j][k] if numerical[j] else analytical
            if output.requires_grad and not np.allclose(
                analytical, difference, rtol, atol, equal_nan=True
            ):
                raise GradcheckError(
                    f"{prefixes.get(places[j], '')}Jacobian computed with forward mode mismatch "
                    f"for output {k} with respect to input {j},\nnumerical:{wrap(difference)}\n"
                    f"analytical:{wrap(analytical)}\n"
                )


def _check_undefined_forward(function: Callable[..., Any], inputs: Outputs) -> None:
    """Compare a tangent of zeros with no tangent, for each checked input in turn."""
    wanted = _checked(inputs)
    for j, tensor in enumerate(wanted):
        tangents: list[Any] = [wrap(np.ones(t.shape, t.array.dtype)) for t in wanted]
        tangents[j] = wrap(np.zeros(tensor.shape, tensor.array.dtype))
        zeros = _pushed(function, inputs, tangents)
        tangents[j] = None
        for k, (a, b) in enumerate(zip(zeros, _pushed(function, inputs, tangents), strict=True)):
            if a is not None and b is not None and not np.allclose(a.array, b.array):
                raise GradcheckError(
                    "Mismatch in tangent values for output with index: ",
                    k,
                    " when input: ",
                    tensor,
                    " has an undefined tangent value. ",
                    " Got: ",
                    a,
                    " but expected: ",
                    b,
                )


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Compare second derivatives with central differences of the first.

    grad_outputs: seeds for the outputs; random where not given. Otherwise as `gradcheck`.
    """
    given = _as_tuple(inputs)
    if grad_outputs is None:
        rng = np.random.default_rng(0)
        cotangents = tuple(_random_seed(o, rng) for o in _differentiable(func(*given)))
    else:
        cotangents = _as_tuple(grad_outputs)
    count = len(cotangents)

    def first_order(*args: Any) -> Outputs:
        values, pulled = args[: len(args) - count], args[len(args) - count :]
        outputs = _differentiable(func(*values))
        wanted = _checked(values)
        grads = grad(outputs, wanted, pulled, create_graph=True, allow_unused=True)
        return tuple(g for g in grads if g is not None)

    def tracked(*args: Any) -> Outputs:
        with modes.enable_grad():
            return first_order(*args)

    return gradcheck(
        tracked,
        given + cotangents,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
    )


def _random_seed(output: Tensor, rng: np.random.Generator) -> Tensor:
    values = rng.uniform(-1, 1, output.shape)
    if output.is_complex():
        values = values + 1j * rng.uniform(-1, 1, output.shape)
    return wrap(np.asarray(values, output.array.dtype), requires_grad=True)


# -- what once was public --------------------------------------------------------------------------
def get_numerical_jacobian(
    fn: Callable[..., Any],
    inputs: Any,
    target: Any = None,
    eps: float = 1e-3,
    grad_out: float = 1.0,
) -> tuple[Tensor, ...]:
    """The Jacobian of `fn(inputs)`'s first output by central differences; deprecated."""
    _warn_private("get_numerical_jacobian")
    _check_grad_out("get_numerical_jacobian", grad_out)
    given = _as_tuple(inputs)
    found = numerical_jacobians(lambda *values: fn(values), given, eps)
    wanted = _checked(given if target is None else _as_tuple(target))
    order = _checked(given)
    return tuple(wrap(found[_place(order, t)][0]) for t in wanted)


def _place(tensors: list[Tensor], tensor: Tensor) -> int:
    return next(i for i, t in enumerate(tensors) if t is tensor)


def get_analytical_jacobian(
    inputs: Any, output: Tensor, nondet_tol: float = 0.0, grad_out: float = 1.0
) -> tuple[tuple[Tensor, ...], bool, bool, bool]:
    """(Jacobians, reentrant, sizes right, dtypes right) by reverse mode; deprecated."""
    _warn_private("get_analytical_jacobian")
    _check_grad_out("get_analytical_jacobian", grad_out)
    if output.is_complex():
        raise ValueError(
            "Expected output to be non-complex. get_analytical_jacobian no longer supports "
            "functions that return complex outputs."
        )
    given = _as_tuple(inputs)
    first, again = analytical_jacobian(given, output), analytical_jacobian(given, output)
    reentrant = all(
        not a.size or bool(np.abs(a - b).max() <= nondet_tol)
        for a, b in zip(first, again, strict=True)
    )
    return tuple(wrap(a) for a in first), reentrant, True, True


def _check_grad_out(name: str, grad_out: float) -> None:
    if grad_out != 1.0:
        raise ValueError(
            f"Expected grad_out to be 1.0. {name} no longer supports values of grad_out != 1.0."
        )


def _warn_private(name: str) -> None:
    warnings.warn(
        f"`{name}` was part of PyTorch's private API and not meant to be exposed. We are deprecating "
        "it and it will be removed in a future version of PyTorch. If you have a specific use for "
        "this or feature request for this to be a stable API, please file us an issue at "
        "https://github.com/pytorch/pytorch/issues/new",
        FutureWarning,
        stacklevel=3,
    )

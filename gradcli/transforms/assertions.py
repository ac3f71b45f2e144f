"""Assertions about gradients, for tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from gradcli.transforms.tolerances import Comparison, allowed

_SHOWN_WHOLE = 20  # elements; of longer arrays those that differ are told

# pytest shows the line of the test, not the frames of this file.
__tracebackhide__ = True


class GradientMismatch(AssertionError):
    """A gradient that is not what it should be: `name`, `actual` and `expected` say which."""

    def __init__(self, message: str, name: str, actual: Any, expected: Any) -> None:
        super().__init__(message)
        self.name, self.actual, self.expected = name, actual, expected


def assert_gradients(
    source_or_function: str | Callable[..., Any],
    /,
    expected: Any = None,
    *,
    wrt: str | Iterable[str] | None = None,
    rtol: float = 1e-6,
    atol: float | None = None,
    second_order: bool = False,
    **variables: Any,
) -> None:
    """Assert that gradients are right.

    source_or_function: an expression of gradcli's language, or a function of tensors by keyword.
    variables: their values, in float64. wrt: the variables to differentiate by; all floating ones if
    None. expected: name -> the gradient, as an array or as an expression of the variables (without the
    name where there is one variable); where nothing is expected, gradients are compared with
    numerical differences. second_order: the second derivatives too. A value that is not a scalar is summed
    up for `expected`. rtol, atol: relative to each element, and absolute (None: relative to the
    largest element).
    """
    from gradcli.language.located_errors import LanguageError
    from gradcli.language.option_values import in_python

    try:
        arrays = {n: _array(v) for n, v in variables.items()}
        function = _function(source_or_function)
        names = _names(wrt, arrays, expected)
        with np.errstate(all="ignore"):
            if expected is None:
                _against_differences(function, arrays, names, rtol, atol, second_order)
            else:
                _against_expected(function, arrays, names, expected, rtol, atol)
    except LanguageError as error:
        if callable(source_or_function):  # its own frames say where
            raise
        # The place in the expression says it; what led there within gradcli does not.
        raise in_python(error, "assert_gradients").with_traceback(None) from None


def _array(value: Any) -> Any:
    """The value in double precision; integers stay integers only where an array says so."""
    array = np.array(getattr(value, "array", value))
    told = hasattr(value, "dtype")
    return array.astype(np.float64) if array.dtype.kind == "f" or not told else array


def _names(wrt: Any, arrays: Mapping[str, Any], expected: Any) -> list[str]:
    if isinstance(expected, Mapping) and wrt is None:
        wrt = list(expected)
    if wrt is None:
        found = [n for n, a in arrays.items() if a.dtype.kind in "fc"]
    else:
        found = [n.strip() for n in wrt.split(",")] if isinstance(wrt, str) else list(wrt)
    for n in found:
        if n not in arrays:
            raise TypeError(f"assert_gradients: no value for the variable {n!r}")
    if not found:
        raise TypeError("assert_gradients: no variables to differentiate with respect to")
    return found


def _function(source: str | Callable[..., Any]) -> Callable[..., Any]:
    if not isinstance(source, str):
        return source
    from gradcli.language import parse, run

    program = parse(source)
    return lambda **tensors: run(program, tensors).value


def _shown(array: Any) -> str:
    return np.array2string(np.asarray(array), precision=8, threshold=50, separator=", ")


def _message(
    what: str, name: str, found: Any, rows: Mapping[str, Any], rtol: float, atol: float | None
) -> str:
    """What is wrong, and where: both arrays, or of long ones the elements that differ most."""
    place = f"[{', '.join(map(str, found.index))}]" if found.index else ""
    lines = [f"{what} by {name} is wrong at {name}{place} (relative error {found.error:.1e})"]
    width = max(map(len, rows))
    first, second = rows.values()
    if first.size > _SHOWN_WHOLE:
        return "\n".join([*lines, *_worst(name, rows, allowed(first, second, rtol, atol))])
    for label, array in rows.items():
        text = _shown(array).replace("\n", "\n" + " " * (width + 4))
        lines.append(f"  {label:<{width}}: {text}")
    return "\n".join(lines)


def _worst(name: str, rows: Mapping[str, Any], tolerance: Any) -> list[str]:
    """How many elements differ by more than the tolerance, and those that do most, a line each."""
    (label, a), (other, b) = rows.items()
    excess = np.abs(a - b) / np.where(tolerance > 0, tolerance, 1)
    excess = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, excess)
    excess = np.where(np.isnan(excess), np.inf, excess)
    worst = np.argsort(-excess, axis=None, kind="stable")[: min(5, int((excess > 1).sum()))]
    places = [np.unravel_index(i, a.shape) for i in worst]
    lines = [f"  {int((excess > 1).sum()):,} of {a.size:,} elements differ; those that do most:"]
    lines += [
        f"  {name}[{', '.join(map(str, i))}]  {label} {a[i]:.8g}  {other} {b[i]:.8g}"
        for i in places
    ]
    return lines


def _against_differences(
    function: Callable[..., Any],
    arrays: Mapping[str, Any],
    names: list[str],
    rtol: float,
    atol: float | None,
    second_order: bool,
) -> None:
    from gradcli.transforms.fault_search import blame
    from gradcli.transforms.finite_differences import check_point, gradient_function

    checks = [("gradient", function)]
    if second_order:
        checks.append(("second derivative", gradient_function(function, names)))
    for what, checked in checks:
        for name, found in check_point(checked, arrays, names, rtol=rtol, atol=atol).items():
            if found.ok:
                continue
            rows = {"analytical": found.analytical, "numerical": found.numerical}
            message = _message(what, name, found, rows, rtol, atol)
            part = blame(function, arrays, names) if what == "gradient" else None
            if part is not None:
                message += f"\n  to blame  : {part.name}"
            raise GradientMismatch(message, name, found.analytical, found.numerical)


def _against_expected(
    function: Callable[..., Any],
    arrays: Mapping[str, Any],
    names: list[str],
    expected: Any,
    rtol: float,
    atol: float | None,
) -> None:
    from gradcli.engine.core.backward_pass import grad
    from gradcli.engine.core.tensor import Tensor, wrap

    if not isinstance(expected, Mapping):
        if len(names) != 1:
            raise TypeError(
                f"assert_gradients: expected is of which variable? ({', '.join(names)})"
            )
        expected = {names[0]: expected}
    tensors = {n: wrap(np.array(a), requires_grad=n in names) for n, a in arrays.items()}
    value = function(**tensors)
    if not isinstance(value, Tensor):
        raise TypeError(f"assert_gradients: the value is a {type(value).__name__}, not a tensor")
    leaves = [tensors[n] for n in names]
    found: Any = [None] * len(names)
    if value.requires_grad:
        found = grad(value, leaves, wrap(np.ones_like(value.array)), allow_unused=True)
    for name, g in zip(names, found, strict=True):
        if name not in expected:
            continue
        actual = np.zeros(tensors[name].shape) if g is None else np.asarray(g.array)
        wanted = _expected(expected[name], arrays)
        if wanted.shape != actual.shape:
            if wanted.size != 1:
                raise GradientMismatch(
                    f"gradient by {name} has shape {actual.shape}, expected {wanted.shape}",
                    name,
                    actual,
                    wanted,
                )
            wanted = np.broadcast_to(wanted, actual.shape)
        compared = Comparison(wanted, actual, rtol, atol)
        if not compared.ok:
            rows = {"actual": actual, "expected": wanted}
            message = _message("gradient", name, compared, rows, rtol, atol)
            raise GradientMismatch(message, name, actual, wanted)


def _expected(value: Any, arrays: Mapping[str, Any]) -> Any:
    if not isinstance(value, str):
        return np.asarray(getattr(value, "array", value))
    from gradcli.engine.core.tensor import Tensor, wrap
    from gradcli.language import parse, run

    found = run(parse(value), {n: wrap(np.array(a)) for n, a in arrays.items()}).value
    return np.asarray(found.array if isinstance(found, Tensor) else found)


class GradientTrouble(AssertionError):
    """Gradients that vanish, explode or are not finite: `places` says where, in backward order."""

    def __init__(self, message: str, places: list[str]) -> None:
        super().__init__(message)
        self.places = places


def assert_no_vanishing(loss: Any, model: Any = None, *, least: float = 1e-10) -> None:
    """Assert that gradients reach the leaves of a loss, gradcli's or PyTorch's.

    loss: a tensor whose graph is still there; nothing is added to any `.grad`. model: PyTorch's module,
    whose parameters have names. Raises GradientTrouble where a leaf's gradient is None or its norm below
    `least`, or where the norm falls by more than 1000 within one node or one module.
    """
    norms = _norms(loss, model)
    places = [mark.text() for mark in norms.marks if mark.vanishes]
    for row in norms.rows:
        if row.grad is None or row.grad < least:
            how = "None" if row.grad is None else f"{row.grad:.3g}"
            places.append(f"{row.name}: |grad| is {how}")
    _no_trouble("gradients vanish", places, norms)


def assert_no_exploding(loss: Any, model: Any = None, *, most: float = 1e6) -> None:
    """Assert that no gradient of a loss has a norm above `most`, nor grows by 1000 at one place.

    For the arguments see assert_no_vanishing. Raises GradientTrouble.
    """
    norms = _norms(loss, model)
    places = [mark.text() for mark in norms.marks if not mark.vanishes]
    large = (row for row in norms.rows if row.grad is not None and not row.grad <= most)
    places += [f"{row.name}: |grad| is {row.grad:.3g}" for row in large]
    _no_trouble("gradients explode", places, norms)


def assert_finite_gradients(loss: Any, model: Any = None) -> None:
    """Assert that neither the loss nor any of its gradients has NaN or infinity.

    For the arguments see assert_no_vanishing. Raises GradientTrouble.
    """
    norms = _norms(loss, model)
    bad = [f"{row.name}: {row.bad:,} elements of the gradient" for row in norms.rows if row.bad]
    _no_trouble("gradients are not finite", bad, norms)


def _norms(loss: Any, model: Any) -> Any:
    from gradcli.graphs import inspect

    if not getattr(loss, "requires_grad", False):
        raise TypeError("a loss is wanted that requires grad: nothing leads to a parameter")
    return inspect(loss, model=model).norms()


def _no_trouble(what: str, places: list[str], norms: Any) -> None:
    if not places:
        return
    remedies = dict.fromkeys(mark.remedy for mark in norms.marks)
    lines = [what, *(f"  {place}" for place in places[:12])]
    if len(places) > 12:
        lines.append(f"  and {len(places) - 12} more")
    lines += [f"hint: {remedy}" for remedy in remedies]
    raise GradientTrouble("\n".join(lines), places)

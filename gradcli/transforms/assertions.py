"""Assertions about gradients, for tests."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

from gradcli.engine.system import GradcliError

# pytest shows the line of the test, not the frames of this file.
__tracebackhide__ = True


class GradientMismatch(GradcliError, AssertionError):
    """A gradient that is not what it should be.

    name: the variable's. given: the gradient in question: what was expected, or, where nothing was, the
    function's own. right: the exact gradient, or the numerical one.
    """

    def __init__(self, message: str, name: str, given: Any, right: Any) -> None:
        super().__init__(message)
        self.name, self.given, self.right = name, given, right

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.name, self.given, self.right)


def assert_gradients(
    source_or_function: str | Callable[..., Any],
    /,
    expected: Any = None,
    *values: Any,
    against: Any = None,
    wrt: str | Iterable[str] | None = None,
    rtol: float = 1e-6,
    atol: float | None = None,
    second_order: bool = False,
    **variables: Any,
) -> None:
    """Assert that gradients are right.

    source_or_function: an expression of gradcli's language, or a function of arrays: gradcli's, PyTorch's,
    JAX's or NumPy's, or of Python's numbers; or a module. It is called as its variables are; where they
    are plain lists and NumPy arrays, by what its code mentions, and else by trying. variables: their
    values, in float64; a dict or a list of arrays has each of them as a variable, `params.W`, a module its
    parameters, `model.weight`. values: the same by position, after `expected`, in the order of the
    function's parameters. wrt: the variables to differentiate by; all floating ones if None.

    expected: name -> the gradient, as an array, an expression of the variables, or a function of them, such
    as `jax.grad(f)` (without the name where there is one variable). It is compared with the exact gradient
    where there is one, and else with numerical differences. Where nothing is expected, the function's own
    gradient is compared with numerical differences. On a kink each slope between those of the two sides is
    right. second_order: the second derivatives too. Of a value that is not a scalar, `expected` is the
    Jacobian, if it has the value's dimensions before the variable's, and else the gradient of its sum.
    against: `expected` by the name that it has on the command line.

    rtol, atol: relative to each element, and absolute (None: 1e-12 of the largest element). Differences
    add to it, for each element, ten times what they lose to the rounding of the function's values. An
    element that is smaller than this loss is not checked, and a UserWarning says so, as it says to how
    many percent an element was compared where that is more than 0.01 %. A function of NumPy's that runs on
    tensors too has the exact gradient.

    Raises GradientMismatch, and TypeError where there is no gradient to check.
    """
    from gradcli.language.located_errors import LanguageError
    from gradcli.language.option_values import in_python
    from gradcli.transforms.any_function import by_position, one_of
    from gradcli.transforms.gradient_checks import checked_gradients, coarse, unseen, words_of

    words = {"expected": expected, "against": against}
    try:
        variables = by_position(source_or_function, values, variables)
        expected, variables = one_of(source_or_function, variables, **words)
        for row in checked_gradients(
            source_or_function,
            variables,
            expected,
            wrt=wrt,
            rtol=rtol,
            atol=atol,
            second_order=second_order,
        ):
            if not row.ok:
                raise GradientMismatch(words_of(row), row.name, row.given, row.right)
            if row.unseen:
                warnings.warn(unseen(row), stacklevel=2)
            if said := coarse(row):
                warnings.warn(said, stacklevel=2)
    except LanguageError as error:
        if callable(source_or_function):  # its own frames say where
            raise
        # The place in the expression says it; what led there within gradcli does not.
        raise in_python(error, "assert_gradients").with_traceback(None) from None


class GradientTrouble(GradcliError, AssertionError):
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


# A test report names them as they are called.
GradientMismatch.__module__ = GradientTrouble.__module__ = "gradcli"

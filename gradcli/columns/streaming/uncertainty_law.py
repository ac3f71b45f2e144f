"""The law of propagation of uncertainty for many rows at once: JCGM 100:2008, 5.1.2 and 5.2.2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gradcli.language.located_errors import LanguageError

_ROUNDING = 1e-9  # of what a covariance may be too large by
_MOST = 500  # numbers whose matrix is looked at as a whole


def flaws(array: Any, signed: bool) -> list[tuple[Any, str]]:
    """(where, in words): entries that are no valid uncertainties, or covariances if `signed`."""
    what = "a covariance" if signed else "an uncertainty"
    if array.dtype.kind not in "fiu":
        return [(np.ones(array.shape, bool), f"{what} is a finite real number")]
    found = [(~np.isfinite(array), f"{what} is a finite real number")]
    return found if signed else [*found, (array < 0, f"{what} is not negative")]


def squares(
    gradients: Mapping[str, Any],
    errors: Mapping[str, Any],
    covariances: Mapping[tuple[str, str], Any],
    rows: int = 1,
) -> dict[str, Any]:
    """The contribution of each input, and of each correlated pair, to the squared uncertainty of each row.

    All arrays have the rows in their first dimension (1: the same for all); a name whose gradient is None
    adds nothing. A covariance is of elements at the same place, or a matrix of all elements of the one by all
    of the other; that of a variable with itself has what is above the diagonal.
    """

    def summed(product: Any) -> Any:
        product = np.asarray(product)
        wide = np.broadcast_to(product, (rows, *product.shape[1:]))
        return wide.reshape(rows, -1).sum(axis=1)

    zero = np.zeros(rows)
    found = {}
    for name, error in errors.items():
        gradient = gradients.get(name)
        found[name] = zero if gradient is None else summed(np.square(gradient * error))
    for (one, other), covariance in covariances.items():
        a, b = gradients.get(one), gradients.get(other)
        if a is None or b is None:
            found[f"{one},{other}"] = zero
        else:
            # Every pair stands once in `covariances`, and twice in the sum of the law: for i, j and for
            # j, i.
            a, b = facing(a, b, covariance)
            found[f"{one},{other}"] = summed(2 * a * b * covariance)
    return found


def facing(one: Any, other: Any, covariance: Any) -> tuple[Any, Any]:
    """Two arrays such that their product has what a covariance belongs to at every place."""
    one, other = np.asarray(one), np.asarray(other)
    # A covariance of vectors of 3 and 3 elements may be (3,), of elements at the same place, or (3, 3),
    # of all pairs. For the latter the arrays stand as a column and a row, so that their product is a
    # matrix as well.
    columns, rows = one.reshape(len(one), -1, 1), other.reshape(len(other), 1, -1)
    if covariance.shape[1:] == (columns.shape[1], rows.shape[2]):
        return columns, rows
    return one, other


def total(parts: Mapping[str, Any]) -> Any:
    """The uncertainty of each row, from these contributions."""
    square = sum(parts.values())
    return np.sqrt(np.where(square < 0, 0.0, square))


def matrices(
    shapes: Mapping[str, tuple[int, ...]], covariances: Mapping[tuple[str, str], Any]
) -> Any:
    """The covariances, as `squares` has them, in matrices of all numbers: (rows or 1, k, k); None of none."""
    if not covariances:
        return None
    sizes = {n: int(np.prod(shape)) for n, shape in shapes.items()}
    ends = np.cumsum([0, *sizes.values()])
    places = {n: slice(ends[i], ends[i + 1]) for i, n in enumerate(sizes)}
    count = max(len(np.asarray(c)) for c in covariances.values())
    made = np.zeros((count, ends[-1], ends[-1]))
    for (one, other), covariance in covariances.items():
        block = np.asarray(covariance)
        if block.shape[1:] != (sizes[one], sizes[other]):  # of elements at the same place
            flat = np.broadcast_to(block, (len(block), *shapes[one])).reshape(len(block), -1)
            block = flat[:, :, None] * np.eye(sizes[one])
        made[:, places[one], places[other]] += block
        made[:, places[other], places[one]] += block.swapaxes(1, 2)
    return made


def with_second_order(
    parts: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]], beyond: Any
) -> dict[str, Any]:
    """Contributions to the squared uncertainty, with those to the second order where these count.

    beyond: what `nonlinear_spread.spreads` found, or None.
    """
    found, start = dict(parts), 0
    if beyond is None:
        return found
    # Where a gradient is infinite (sqrt at 0), shares would be ∞/∞. The infinite inputs share everything.
    infinite = np.any([~np.isfinite(s) for s in parts.values()], axis=0)
    for name, square in parts.items():  # what is infinite is all of it
        found[name] = np.where(infinite, np.where(np.isfinite(square), 0.0, 1.0), square)
    for name, shape in shapes.items():
        size = int(np.prod(shape))
        found[name] = found[name] + beyond.squares[:, start : start + size].sum(1)
        start += size
    return found


def impossible(
    errors: Mapping[str, Any], covariances: Mapping[tuple[str, str], Any], parts: Mapping[str, Any]
) -> Any:
    """The rows with impossible covariances: above the product of the two uncertainties, or such that the
    squared uncertainty is negative.
    """
    square = np.asarray(sum(parts.values()))
    largest = np.max([np.abs(p) for p in parts.values()], axis=0)
    found = -square > _ROUNDING * largest
    for (one, other), covariance in covariances.items():
        a, b = facing(errors[one], errors[other], covariance)
        excess = np.abs(covariance) > a * b * (1 + _ROUNDING)
        found = found | excess.reshape(len(excess), -1).any(axis=1)
    return found


def check_possible(
    shapes: Mapping[str, tuple[int, ...]],
    errors: Mapping[str, Any],
    covariances: Mapping[tuple[str, str], Any],
) -> None:
    """Raise LanguageError where the matrix of one row's covariances has a negative eigenvalue.

    Correlations of 0.9, 0.9 and -0.9 between three numbers are each possible, and together are not.
    """
    shapes = {n: s for n, s in shapes.items() if n in errors}
    flat = np.concatenate([np.broadcast_to(errors[n][0], s).ravel() for n, s in shapes.items()])
    if len(flat) > _MOST:
        return
    spread = np.where(flat > 0, flat, 1.0)
    matrix = matrices(shapes, covariances)[0]
    from gradcli.operators.primitives import lapack

    lowest = lapack.eigh(matrix / np.outer(spread, spread) + np.diag(flat > 0))[0].min()
    if lowest < -_ROUNDING * len(flat):
        largest = np.abs(matrix / np.outer(spread, spread)).max()
        if len(flat) < 3 or largest > 1 + _ROUNDING:
            raise too_strong()
        raise LanguageError(
            "these correlations are not possible together: their matrix has the eigenvalue "
            f"{lowest:.3g}, and none of a correlation matrix is below 0",
            kind="usage",
            hint="three numbers cannot have correlations of 0.9, 0.9 and -0.9: make one smaller",
        )


def too_strong() -> LanguageError:
    """The error about a row whose covariances are impossible."""
    return LanguageError(
        "--covariance: a covariance is larger than these uncertainties allow",
        kind="usage",
        hint="it is at most the product of the two uncertainties: a correlation r is r times that product",
    )


__all__ = ["flaws", "impossible", "matrices", "squares", "too_strong", "total", "with_second_order"]

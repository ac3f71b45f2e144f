"""Strategies of hypothesis for points at which a function has a derivative."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.transforms.any_function import Subject

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

_STEPS = 1 << 16  # a variable is one of as many numbers
_LINES = 24  # along which a point is looked at
_GRID = np.linspace(-1, 1, 9)
_DEGREE = 4  # of the polynomials that a line is taken for
_APART = 1e-9  # of a line's range: what such a polynomial leaves of it where there is a kink
_ROUNDING = 1e-13


def points(
    source_or_function: str | Callable[..., Any],
    /,
    values: Mapping[str, Any] | None = None,
    *,
    low: float = -2.0,
    high: float = 2.0,
    distance: float = 1e-3,
    **shapes: Any,
) -> SearchStrategy[dict[str, Any]]:
    """A strategy for points of a function, as a dict of float64 arrays by name, away from its kinks.

        @given(point=points("sum(relu(x))*y", x=3, y=()))
        def test_mine(assert_gradients, point):
            assert_gradients("sum(relu(x))*y", **point)

    source_or_function: as of `assert_gradients`. shapes: of each variable a shape, a length, or a strategy of
    its own. values: what stays the same, by name. low, high: between which each element lies. distance: how
    far, relative to an element or to 1, no kink, jump or end of the domain is near. A point is looked at
    along each element, and of many elements along random directions.

    Raises ImportError where hypothesis is not installed.
    """
    try:
        from hypothesis import strategies as st
        from hypothesis.extra.numpy import arrays
    except ImportError:
        raise ImportError("points wants hypothesis: pip install hypothesis") from None
    if not low < high:
        raise ValueError(f"points: low must be less than high, not {low} and {high}")
    elements = st.integers(0, _STEPS - 1).map(lambda k: low + (high - low) * (k + 0.5) / _STEPS)
    each = {
        n: s
        if isinstance(s, st.SearchStrategy)
        else arrays(np.float64, s, elements=elements, fill=st.nothing())
        for n, s in shapes.items()
    }
    fixed = dict(values or {})

    def is_away(point: dict[str, Any]) -> bool:
        return is_smooth(source_or_function, {**fixed, **point}, list(point), distance)

    return st.fixed_dictionaries(each).filter(is_away)


def is_smooth(
    function: str | Callable[..., Any],
    variables: Mapping[str, Any],
    wrt: list[str],
    distance: float,
) -> bool:
    """Whether the function is smooth near a point: a polynomial along each line through it."""
    subject = Subject(function, variables, wrt, own_gradient=False)
    value = subject.total(subject.reads)
    point = [subject.arrays[n] for n in subject.names]
    sizes = [a.size for a in point]
    flat = np.concatenate([a.ravel() for a in point])
    steps = distance * np.maximum(1.0, np.abs(flat))

    def at(moved: Any) -> float:
        parts = np.split(moved, np.cumsum(sizes)[:-1])
        found = value(*[p.reshape(a.shape) for p, a in zip(parts, point, strict=True)])
        return float(np.real(found))

    smooth = _polynomials()
    with np.errstate(all="ignore"):
        for direction in _directions(flat.size):
            line = np.array([at(flat + t * steps * direction) for t in _GRID])
            if not np.isfinite(line).all():
                return False
            rest = np.abs(line - smooth @ (smooth.T @ line)).max()
            if rest > _APART * np.ptp(line) + _ROUNDING * np.abs(line).max():
                return False
    return True


def _polynomials() -> Any:
    """Orthonormal columns that are the polynomials on the grid (by Gram and Schmidt)."""
    found: list[Any] = []
    for k in range(_DEGREE + 1):
        column = _GRID**k
        for other in found:
            column = column - (other @ column) * other
        found.append(column / np.sqrt(column @ column))
    return np.stack(found, 1)


def _directions(size: int) -> Any:
    if size <= _LINES:
        return np.eye(size)
    return np.random.default_rng(2026).uniform(-1, 1, (_LINES, size))


__all__ = ["points"]

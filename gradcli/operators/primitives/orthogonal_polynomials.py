"""Orthogonal polynomials and Airy's function: torch.special's, which have no derivatives there either.

A polynomial of degree n is computed as PyTorch does it: from its values where the variable is at an end of
the interval, by angles inside of it where n is large, and else from the two polynomials below it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

import gradcli.engine.system.budget as budget
from gradcli.engine.core.declaration import Array
from gradcli.engine.core.tensor import Tensor
from gradcli.engine.registry.table import function, primitive
from gradcli.operators.primitives.special_functions import scipy_function

FAMILY = "polynomials"  # as `ops` calls it


class _Family(NamedTuple):
    """A family of polynomials: of degree one, the step to degree k + 1, and what holds before that.

    step: from x, k, the polynomials of degree k and k - 1. ends: where the variable is an end, and the
    values there at an even and at an odd degree. angle: from which degree on, and from the angle and n.
    limit: above which degree PyTorch gives NaN, by the bytes of the dtype.
    """

    first: Callable[[Any], Any]
    step: Callable[[Any, int, Any, Any], Any]
    ends: tuple[tuple[float, Callable[[int], int]], ...] = ()
    angle: tuple[int, Callable[[Any, int], Any]] | None = None
    shifted: bool = False
    limit: Mapping[int, int] = MappingProxyType({})


def _kernel(family: _Family) -> Callable[..., Any]:
    def kernel(x: Array, n: Array) -> Array:
        x, n = np.broadcast_arrays(x, n)
        out = np.empty(x.shape, x.dtype)
        degrees = np.trunc(n)
        for degree in np.unique(degrees):
            at = degrees == degree
            whole = int(degree) if np.isfinite(degree) else -1
            out[at] = _of_degree(family, x[at], whole)
        return out[()]

    return kernel


def _of_degree(family: _Family, x: Array, n: int) -> Any:
    if n < 0:
        return np.zeros_like(x)
    with np.errstate(all="ignore"):
        out = _by_steps(family, x, n)
        if family.angle is not None and n > family.angle[0]:
            inner = 2 * x - 1 if family.shifted else x
            inside = np.abs(inner) < 1
            out[inside] = family.angle[1](np.arccos(inner[inside]), n)
    for end, value in family.ends:
        out[x == end] = value(n)
    return out


def _by_steps(family: _Family, x: Array, n: int) -> Any:
    budget.items(n, "a recurrence")
    if n == 0:
        return np.ones_like(x)
    if n > family.limit.get(x.itemsize, n):
        return np.full_like(x, np.nan)
    below, own = np.ones_like(x), family.first(x)
    for k in range(1, n):
        below, own = own, family.step(x, k, own, below)
        if k % 64 == 0 and np.isnan(own).all():
            break
    return np.asarray(own)


def _double(x: Array, k: int, own: Array, below: Array) -> Any:
    return (x + x) * own - below


def _double_shifted(x: Any, k: int, own: Any, below: Any) -> Any:
    inner = x + x - 1
    return (inner + inner) * own - below


def _even(n: int, value: int, odd: int) -> int:
    return value if n % 2 == 0 else odd


# By the kind of Chebyshev's polynomials: degree one, the values at 1 and at the other end, the angle.
_KINDS: dict[str, tuple[Any, Any, Any, int, int, Any]] = {
    "t": (
        lambda x: x, lambda n: 1, lambda n: _even(n, 1, -1), 6, 6,
        lambda angle, n: np.cos(n * angle),
    ),
    "u": (
        lambda x: x + x, lambda n: n + 1, lambda n: _even(n, n + 1, -n - 1), 8, 6,
        lambda angle, n: np.sin((n + 1) * angle) / np.sin(angle),
    ),
    "v": (
        lambda x: x + x - 1, lambda n: 1, lambda n: _even(n, 2 * n + 1, -2 * n - 1), 8, 6,
        lambda angle, n: np.cos((n + 0.5) * angle) / np.cos(angle / 2),
    ),
    "w": (
        lambda x: x + x + 1, lambda n: 2 * n + 1, lambda n: _even(n, 1, -1), 8, 4,
        lambda angle, n: np.sin((n + 0.5) * angle) / np.sin(angle / 2),
    ),
}  # fmt: skip


def _chebyshev(kind: str, *, shifted: bool) -> _Family:
    first, high, low, large, shifted_large, angle = _KINDS[kind]
    if shifted:
        ends = ((1.0, high), (0.0, low))
        return _Family(
            lambda x: first(x + x - 1), _double_shifted, ends, (shifted_large, angle), shifted=True
        )
    return _Family(first, _double, ((1.0, high), (-1.0, low)), (large, angle))


_HERMITE_LIMIT = {4: 128, 8: 512}
FAMILIES: dict[str, tuple[_Family, str]] = {
    **{
        f"{'shifted_' * shifted}chebyshev_polynomial_{kind}": (
            _chebyshev(kind, shifted=shifted),
            f"Chebyshev's polynomial of the {word} kind{', shifted to [0, 1],' * shifted}",
        )
        for shifted in (False, True)
        for kind, word in {"t": "first", "u": "second", "v": "third", "w": "fourth"}.items()
    },
    "hermite_polynomial_h": (
        _Family(
            lambda x: x + x, lambda x, k, own, below: (x + x) * own - 2 * k * below,
            limit=_HERMITE_LIMIT,
        ),
        "Hermite's polynomial, as physicists have it,",
    ),
    "hermite_polynomial_he": (
        _Family(
            lambda x: x, lambda x, k, own, below: x * own - k * below, limit=_HERMITE_LIMIT
        ),
        "Hermite's polynomial, as statisticians have it,",
    ),
    "laguerre_polynomial_l": (
        _Family(
            lambda x: 1 - x,
            lambda x, k, own, below: ((2 * k + (1 - x)) * own - k * below) / (k + 1),
            ((0.0, lambda n: 1),),
        ),
        "Laguerre's polynomial",
    ),
    "legendre_polynomial_p": (
        _Family(
            lambda x: x,
            lambda x, k, own, below: ((2 * k + 1) * x * own - k * below) / (k + 1),
            ((1.0, lambda n: 1), (-1.0, lambda n: _even(n, 1, -1))),
        ),
        "Legendre's polynomial",
    ),
}  # fmt: skip


def _enter(name: str, family: _Family, what: str) -> None:
    made: Any = primitive(
        kernel=_kernel(family),
        params="x n",
        types="float",
        numbers=True,
        refuses={"ec": f"{name}_cpu"},
        batching="elementwise",
    )(type(name, (), {"__module__": __name__}))

    def call(*, x: Tensor, n: Tensor | int) -> Any:
        return made(x, n)

    call.__doc__, call.__module__ = f"{what} of degree n.", __name__
    function(
        f"special.{name}(Tensor x, Tensor n, *, Tensor out=None)",
        f"special.{name}(Scalar x, Tensor n, *, Tensor out=None)",
        f"special.{name}(Tensor x, Scalar n, *, Tensor out=None)",
        name=f"special.{name}",
        method=False,
        primitives=(made,),
        samples=(f"special.{name}(randn(3), 4)", f"special.{name}(randn(3), tensor([0, 1, 9]))"),
    )(call)


for _name, (_family, _what) in FAMILIES.items():
    _enter(_name, _family, _what)


@primitive("float pointwise", refuses={"ec": "airy_ai_cpu"})
class airy_row:
    def forward(x: Array) -> Any:
        return scipy_function("airy", "special.airy_ai")(x)


AIRY: tuple[Any, ...] = (airy_row,)


@function(
    "special.airy_ai(Tensor x, *, Tensor out=None)|function", primitives=AIRY, samples="(randn(3))"
)
def airy_ai(x: Tensor) -> Any:
    """Airy's function Ai."""
    return AIRY[0](x)

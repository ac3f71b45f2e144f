"""LAPACK's gate, and what NumPy's linear algebra lacks: LU with its pivots, reflectors, exponentials.

Plain functions on (batches of) arrays, in LAPACK's conventions. Matrices that LAPACK returns lie column
by column in memory, as PyTorch's do.

Nothing else calls LAPACK: given infinities or NaN it may not return, or write on standard output. Here
such matrices get PyTorch's answer (or refusal) without a call.
"""

from __future__ import annotations

import functools
from contextlib import suppress
from math import prod
from typing import Any

import numpy as np

from gradcli.engine.core.batched_arrays import numbers
from gradcli.engine.core.declaration import Array
from gradcli.engine.registry.rule_helpers import refuse_if
from gradcli.engine.system.array_memory import laid_out
from gradcli.engine.system.cascaded_sums import add_reduce
from gradcli.operators.movement.reshaping import broadcast_shape

_BLOCK = 48
_FEW = 64  # numbers up to which calls of NumPy cost more than elimination in Python


class _LinAlgError(RuntimeError):
    """A factorisation or a solve that the input does not allow (`torch.linalg.LinAlgError`)."""


LinAlgError = _LinAlgError
LinAlgError.__module__ = "torch._C"


def by_columns(a: Array) -> Array:
    """The same matrices with columns contiguous in memory."""
    return np.ascontiguousarray(a.mT).mT


def adjoint(a: Array) -> Array:
    """The matrices transposed and conjugated."""
    return a.mT.conj() if a.dtype.kind == "c" else a.mT


def raise_on_failure(
    name: str,
    info: Array | np.bool,
    reason: str,
    kind: type[RuntimeError] = LinAlgError,
    *,
    made: Array | None = None,
) -> None:
    """Raises an error where LAPACK reports a failure; `{}` in the reason is its number.

    made: what the failure spoils, an array; in a plan, where nobody knows yet, it is what raises the error.
    """
    if made is not None and hasattr(made, "guard"):
        made.guard(functools.partial(raise_on_failure, name, reason=reason, kind=kind), info)
        return
    info = laid_out(numbers(info))
    flat = np.ravel(info)
    if not flat.any():
        return
    at = int(flat.nonzero()[0][0])
    place = f"(Batch element {at}): " if np.ndim(info) else ""
    raise kind(f"{name}: {place}{reason.format(int(flat[at]))}")


# -- what is not finite ---------------------------------------------------------------------------
def is_finite(*arrays: Array) -> bool:
    """Whether LAPACK may see the arrays."""
    return all(bool(np.isfinite(a).all()) for a in arrays)


def _stray(a: Array) -> Any:
    """Which matrices of a batch have an element that is not finite."""
    return ~np.isfinite(a).all((-2, -1))


def _spoilt(found: Array, stray: Array) -> Array:
    """The results of a batch, NaN where the matrix was not finite."""
    by = stray.reshape(stray.shape + (1,) * (found.ndim - stray.ndim))
    return np.where(by, np.asarray(np.nan, found.dtype), found)


def svd(a: Array, full_matrices: bool = True) -> tuple[Array, Array, Array]:
    """(U, S, Vh); NaN for infinite matrices, LinAlgError for those with NaN."""
    if is_finite(a):
        return np.linalg.svd(a, full_matrices=full_matrices)
    raise_on_failure("linalg.svd", np.isnan(a).any((-2, -1)), _SVD_FAILED)
    stray = _stray(a)
    u, s, vh = np.linalg.svd(np.where(stray[..., None, None], 0, a), full_matrices=full_matrices)
    return _spoilt(u, stray), _spoilt(s, stray), _spoilt(vh, stray)


def svdvals(a: Array) -> Array:
    """The singular values, as `svd`."""
    return np.linalg.svd(a, compute_uv=False) if is_finite(a) else svd(a, False)[1]


_SVD_FAILED = (
    "The algorithm failed to converge because the input matrix contained non-finite values."
)


def eigh(a: Array, uplo: Any = "L") -> tuple[Array, Array]:
    """(eigenvalues, eigenvectors) of symmetric matrices; LinAlgError where they are not finite."""
    triangle = np.tril(a) if uplo == "L" else np.triu(a)
    if is_finite(triangle):
        found = np.linalg.eigh(a if is_finite(a) else triangle, uplo)
        return found[0], found[1]
    if a.shape[-1] == 1:
        return a[..., 0].real, np.ones_like(a)
    raise_on_failure("linalg.eigh", _stray(triangle), _EIGH_FAILED)
    raise AssertionError("a matrix that is not finite")


_EIGH_FAILED = (
    "The algorithm failed to converge because the input matrix is ill-conditioned or has too many "
    "repeated eigenvalues (error code: {})."
)


def eig(a: Array) -> tuple[Array, Array]:
    """(eigenvalues, eigenvectors) of square matrices; RuntimeError where they are not finite."""
    refuse_if(not is_finite(a), "torch.linalg.eig: input tensor should not contain infs or NaNs.")
    found = np.linalg.eig(a)
    return found[0], found[1]


def qr(a: Array, mode: Any) -> tuple[Array, Array]:
    """(Q, R), or (nothing, R) for mode "r"."""
    q: Array
    r: Any
    if not is_finite(a):
        q, r = _qr_by_reflectors(a, mode)
    elif mode == "r":
        q, r = np.zeros(0, a.dtype), np.linalg.qr(a + 0, "r")
    else:  # of -0, PyTorch's LAPACK takes the sign to be positive
        q, r = np.linalg.qr(a + 0, mode)
    return (q if mode == "r" else by_columns(q)), by_columns(r)


def _qr_by_reflectors(a: Array, mode: str) -> tuple[Array, Array]:
    """As LAPACK's GEQRF and ORGQR, column by column."""
    m, n = a.shape[-2:]
    k = min(m, n)
    r = a.reshape(-1, m, n).copy()
    tau = np.zeros((r.shape[0], k), a.dtype)
    with np.errstate(all="ignore"):
        for j in range(k):
            head, tail = r[:, j, j].copy(), r[:, j + 1 :, j]
            rest = np.sqrt((np.abs(tail) ** 2).sum(-1))
            size = np.sqrt(np.abs(head) ** 2 + rest**2)
            beta = np.where(head.real >= 0, -size, size)
            beta = np.where(np.isinf(head), np.nan, beta)
            still = (rest == 0) & (head.imag == 0)
            tau[:, j] = np.where(still, 0, (beta - head) / beta)
            v = np.where(still[:, None], tail, tail / (head - beta)[:, None])
            r[:, j, j] = np.where(still, head, beta)
            r[:, j + 1 :, j] = v
            column = np.concatenate([np.ones((len(r), 1), a.dtype), v], 1)[..., None]
            right = r[:, j:, j + 1 :]
            right -= np.conj(tau[:, j, None, None]) * column @ (adjoint(column) @ right)
    shape = a.shape[:-2]
    width = m if mode == "complete" else k
    upper = np.triu(r[:, :width]).reshape(*shape, width, n)
    if mode == "r":
        return np.zeros(0, a.dtype), upper
    packed = np.zeros((len(r), m, width), a.dtype)
    packed[..., :k] = r[..., :k]
    q = householder_product(packed.reshape(*shape, m, width), tau.reshape(*shape, k))
    return q, upper


def inverse(a: Array) -> tuple[Array, Array]:
    """(inverse, info): info is the first pivot that is zero, counted from 1, or 0."""
    if is_finite(a):
        try:
            return by_columns(np.linalg.inv(a)), np.zeros(a.shape[:-2], np.int32)
        except np.linalg.LinAlgError:
            pass  # which matrix it was, elimination finds
    lu, pivots = lu_factor(a)
    eye = np.eye(a.shape[-1], dtype=a.dtype)
    return by_columns(solve_lu(lu, pivots, eye)), first_zero(lu)


# -- LU -------------------------------------------------------------------------------------------
def _size(a: Array) -> Array:
    """LAPACK's cheap measure of a number's size."""
    return np.abs(a) if a.dtype.kind != "c" else np.abs(a.real) + np.abs(a.imag)


def _panel(lu: Array, pivots: Array, start: int, stop: int) -> None:
    """Eliminate the columns start..stop of a matrix or a batch, rows swapped over the whole width."""
    batch = (np.arange(lu.shape[0]),) if lu.ndim > 2 else ()
    some, every = (np.any, np.all) if batch else (bool, bool)
    for j in range(start, stop):
        size = _size(lu[..., j:, j])
        p = size.argmax(-1)
        largest = size[(*batch, p)]
        if some(largest != largest):  # NaN is chosen only where it is the first
            p = np.where(np.isnan(size) & ~np.isnan(size[..., :1]), -1, size).argmax(-1)
        p = p + j
        pivots[..., j] = p + 1
        top = lu[..., j, :].copy()
        lu[..., j, :] = lu[(*batch, p)]
        lu[(*batch, p)] = top
        d = lu[..., j, j, None]
        below = lu[..., j + 1 :, j]
        below /= d if every(largest) else np.where(d == 0, 1, d)
        right = lu[..., j + 1 :, j + 1 : stop]
        right -= below[..., None] * lu[..., None, j, j + 1 : stop]


def _lu_of_numbers(a: Array) -> tuple[Array, Array]:
    """`lu_factor` of a small matrix of doubles in Python's numbers: the same steps at a tenth of the cost."""
    rows: list[list[float]] = a.tolist()
    pivots = []
    for j in range(a.shape[1]):
        sizes = [abs(row[j]) for row in rows[j:]]
        p = j + sizes.index(max(sizes))  # `max` keeps NaN only where it is the first
        pivots.append(p + 1)
        top, rows[p] = rows[p], rows[j]
        rows[j] = top
        d = top[j] or 1.0
        for row in rows[j + 1 :]:
            f = row[j] = row[j] / d
            for k in range(j + 1, len(row)):
                row[k] -= f * top[k]
    return by_columns(np.array(rows)), np.array(pivots, np.int32)


def lu_factor(a: Array) -> tuple[Array, Array]:
    """(LU, pivots): both factors in one matrix, pivots counted from 1 as LAPACK's."""
    *batch, m, n = a.shape
    k = min(m, n)
    if (
        type(a) is np.ndarray
        and a.dtype.char == "d"
        and not batch
        and 0 < a.size <= _FEW
        and k == n
    ):
        return _lu_of_numbers(a)
    many = (prod(batch),) if prod(batch) != 1 or not k else ()
    lu = a.reshape(*many, m, n).copy()
    pivots = np.empty((*lu.shape[:-2], k), np.int32)
    with np.errstate(all="ignore"):
        for start in range(0, k, _BLOCK):
            stop = min(start + _BLOCK, k)
            _panel(lu, pivots, start, stop)
            if stop < n:
                right = lu[..., start:stop, stop:]
                lower = np.tril(lu[..., start:stop, start:stop], -1)
                right[...] = solve_triangular(lower, right, upper=False, unit=True)
                if stop < m:
                    lu[..., stop:, stop:] -= lu[..., stop:, start:stop] @ right
    return by_columns(lu.reshape(a.shape)), pivots.reshape(*batch, k)


def permutation(pivots: Array, m: int) -> Array:
    """The order of rows that a sequence of swaps makes."""
    *batch, k = pivots.shape
    if not batch:
        order = list(range(m))
        for j, p in enumerate(pivots.tolist()):
            order[j], order[p - 1] = order[p - 1], order[j]
        return np.array(order, int)
    flat = pivots.reshape(prod(batch), k) - 1
    orders = np.tile(np.arange(m), (flat.shape[0], 1))
    rows = np.arange(flat.shape[0])
    for j in range(k):
        p = flat[:, j]
        top = orders[:, j].copy()
        orders[:, j] = orders[rows, p]
        orders[rows, p] = top
    return orders.reshape(*batch, m)


def unpack(lu: Array, pivots: Array) -> tuple[Array, Array, Array]:
    """(P, L, U) with A = P @ L @ U."""
    *batch, m, n = lu.shape
    k = min(m, n)
    lower = np.tril(lu[..., :k], -1)
    lower[..., np.arange(k), np.arange(k)] = 1
    upper = np.triu(lu[..., :k, :])
    order = permutation(pivots, m)
    p = np.zeros((*batch, m, m), lu.dtype)
    np.put_along_axis(p, order[..., None, :], 1, -2)
    return p, lower, upper


def first_zero(lu: Array) -> Array:
    """LAPACK's info: the first diagonal element of U that is zero, counted from 1; 0 if none is."""
    zero = lu.diagonal(0, -2, -1) == 0
    found = zero.argmax(-1) + 1 if zero.shape[-1] else np.zeros(zero.shape[:-1], int)
    return np.where(zero.any(-1), found, 0).astype(np.int32)


def is_turned(a: Array) -> bool:
    """Whether PyTorch factors the transpose: what LAPACK reads without a copy."""
    return bool(a.dtype.kind == "f" and a.flags.c_contiguous)


def solve_adjoint(a: Array, lu: Array, pivots: Array, b: Array) -> Array:
    """Solve A^H X = B from the factors of A or, where `is_turned`, of its transpose.

    How A lies a plan knows when it runs, and not always when it is made.
    """
    told = next((v for v in (a, lu, b) if hasattr(v, "guard")), None)
    if told is not None:
        return told.__array_function__(solve_adjoint, (), (a, lu, pivots, b), {})
    return solve_lu(lu, pivots, b, adjoint_=not is_turned(a))


def solve_lu(
    lu: Array, pivots: Array, b: Array, *, left: bool = True, adjoint_: bool = False
) -> Array:
    """Solve A X = B (or X A = B, or with A's adjoint) from A's factors.

    A plan's arrays are told of it as of one of NumPy's functions.
    """
    told = next((a for a in (lu, b) if hasattr(a, "guard")), None)
    if told is not None:
        options = {"left": left, "adjoint_": adjoint_}
        return told.__array_function__(solve_lu, (), (lu, pivots, b), options)
    if not left:
        turned = solve_lu(lu, pivots, adjoint(b), left=True, adjoint_=not adjoint_)
        return adjoint(turned)
    n = lu.shape[-1]
    order = permutation(pivots, n)
    batch = broadcast_shape((b.shape[:-2], lu.shape[:-2]))
    b = np.broadcast_to(b, (*batch, *b.shape[-2:]))
    order = np.broadcast_to(order, (*batch, n))[..., None]
    if not adjoint_:
        x = np.take_along_axis(b, order, -2)
        x = solve_triangular(lu, x, upper=False, unit=True)
        return by_columns(solve_triangular(lu, x, upper=True))
    turned_lu = adjoint(lu)
    x = solve_triangular(turned_lu, b, upper=False)
    x = solve_triangular(turned_lu, x, upper=True, unit=True)
    out = np.empty_like(x)
    np.put_along_axis(out, np.broadcast_to(order, x.shape), x, -2)
    return by_columns(out)


# -- triangles ------------------------------------------------------------------------------------
def solve_triangular(
    a: Array, b: Array, *, upper: bool, left: bool = True, unit: bool = False
) -> Array:
    """Solve A X = B (left) or X A = B, reading one triangle of A; division by zero gives infinities."""
    if not left:
        return solve_triangular(a.mT, b.mT, upper=not upper, unit=unit).mT
    batch = broadcast_shape((b.shape[:-2], a.shape[:-2]))
    triangle = np.triu(a, int(unit)) if upper else np.tril(a, -int(unit))
    if unit:
        triangle = triangle + np.eye(a.shape[-1], dtype=a.dtype)
    if 0 in a.shape or 0 in b.shape:
        return np.zeros((*batch, *b.shape[-2:]), b.dtype)
    if is_finite(triangle, b):
        try:
            return by_columns(np.linalg.solve(triangle, b))
        except np.linalg.LinAlgError:
            pass  # a zero on the diagonal, which gives infinities
    return _substitute(triangle, b, upper)


def _substitute(a: Array, b: Array, upper: bool) -> Array:
    n = a.shape[-1]
    batch = broadcast_shape((b.shape[:-2], a.shape[:-2]))
    x = np.broadcast_to(b, (*batch, *b.shape[-2:])).copy()
    with np.errstate(all="ignore"):
        for i in reversed(range(n)) if upper else range(n):
            x[..., i, :] /= a[..., i, i, None]
            rows = slice(0, i) if upper else slice(i + 1, n)
            x[..., rows, :] -= a[..., rows, i, None] * x[..., None, i, :]
    return by_columns(x)


def solve(a: Array, b: Array) -> Array:
    """Solve A X = B; infinities where A is singular."""
    if is_finite(a, b):
        try:
            return np.linalg.solve(a, b)
        except np.linalg.LinAlgError:
            pass
    return solve_lu(*lu_factor(a), b)


# -- Cholesky -------------------------------------------------------------------------------------
def cholesky(a: Array, upper: bool) -> tuple[Array, Array]:
    """(factor, info): info is the order of the first leading minor that is not positive, or 0."""
    lower_of = adjoint(a) if upper else a
    factor, info = None, np.zeros(a.shape[:-2], np.int32)
    if is_finite(a):
        with suppress(np.linalg.LinAlgError):
            factor = np.linalg.cholesky(lower_of)
    if factor is None:
        factor, info = _cholesky_by_columns(lower_of)
    factor = adjoint(factor) if upper else factor
    return by_columns(factor), info


def _cholesky_by_columns(a: Array) -> tuple[Array, Array]:
    n = a.shape[-1]
    flat = np.tril(a).reshape(-1, n, n).copy()
    info = np.zeros(flat.shape[0], np.int32)
    for k, matrix in enumerate(flat):
        for j in range(n):
            row = matrix[j, :j]
            d = (matrix[j, j] - (row * row.conj()).sum()).real
            if not d > 0:
                info[k], matrix[j, j] = j + 1, d
                break
            matrix[j, j] = np.sqrt(d)
            rest = matrix[j + 1 :, j] - matrix[j + 1 :, :j] @ row.conj()
            matrix[j + 1 :, j] = rest / matrix[j, j]
    return flat.reshape(a.shape), info.reshape(a.shape[:-2])


# -- reflectors -----------------------------------------------------------------------------------
def reflectors(a: Array) -> Array:
    """The vectors of Householder reflectors that QR leaves below the diagonal, with their ones."""
    m, n = a.shape[-2:]
    return np.tril(a, -1) + np.eye(m, n, dtype=a.dtype)


def householder_product(a: Array, tau: Array) -> Array:
    """The first columns of H_1 H_2 ... H_k, where H_i = I - tau_i v_i v_i^H."""
    m, n = a.shape[-2:]
    v = reflectors(a)
    q = np.broadcast_to(np.eye(m, n, dtype=a.dtype), (*a.shape[:-2], m, n)).copy()
    for i in reversed(range(tau.shape[-1])):
        column, part = v[..., i:, i, None], q[..., i:, i:]
        part -= tau[..., i, None, None] * column @ (adjoint(column) @ part)
    return by_columns(q)


# -- the exponential ------------------------------------------------------------------------------
_PADE = (
    *(64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0),
    *(129060195264000.0, 10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0),
    *(40840800.0, 960960.0, 16380.0, 182.0, 1.0),
)
_LIMIT = 5.371920351148152  # up to this 1-norm the approximant is exact to rounding


def expm(a: Array) -> Array:
    """The exponential of square matrices: scaling, a Pade approximant of degree 13, squaring."""
    n = a.shape[-1]
    if a.size == 0:
        return a.copy()
    if n == 1:
        return np.exp(a)
    if not is_finite(a):
        stray = _stray(a)
        return _spoilt(expm(np.where(stray[..., None, None], 0, a)), stray)
    norm = add_reduce(np.abs(a), -2).max(-1)
    with np.errstate(all="ignore"):
        steps = np.ceil(np.log2(np.maximum(norm, 1e-300) / _LIMIT))
    steps = np.where(np.isfinite(norm), np.maximum(steps, 0), 0).astype(int)
    x = a / (2.0**steps)[..., None, None].astype(a.real.dtype)
    one = np.eye(n, dtype=a.dtype)
    x2 = x @ x
    x4 = x2 @ x2
    x6 = x4 @ x2
    b = _PADE
    odd = x @ (
        x6 @ (b[13] * x6 + b[11] * x4 + b[9] * x2)
        + (b[7] * x6 + b[5] * x4 + b[3] * x2 + b[1] * one)
    )
    even = x6 @ (b[12] * x6 + b[10] * x4 + b[8] * x2) + (
        b[6] * x6 + b[4] * x4 + b[2] * x2 + b[0] * one
    )
    out = solve(even - odd, even + odd).astype(a.dtype, copy=False)
    for step in range(int(steps.max(initial=0))):
        out = np.where((steps > step)[..., None, None], out @ out, out)
    return out

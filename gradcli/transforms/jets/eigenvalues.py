"""Eigenvalues and singular values of symmetric matrices of power series, also where they coincide.

The eigenvalues of A0 + A1*t + ... are analytic along a line (Rellich), also where those of A0 coincide: each
group of equal ones is split by what follows in t, after a transformation to blocks (Kato, Perturbation Theory
for Linear Operators, chapter II, the reduction process).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.operators.primitives import lapack
from gradcli.transforms.jets.series import EPS, EXACT, Series

Array = Any

EQUAL, NEAR = 64 * EPS, 1e-7  # gaps beside the size of the matrix: none; too small to divide by


def eigh(a: Series, upper: bool = False) -> tuple[Series, Series]:
    """(eigenvalues in ascending order for small t > 0, eigenvectors), of the symmetric part, as PyTorch's."""
    d, dr, cut = a.dense()
    d = np.swapaxes(d, -1, -2) / 2 + d / 2
    size = a.run.terms * a.q
    return _decomposed(a, d, dr, cut, size)


def svd(a: Series) -> tuple[Series, Series, Series]:
    """(U, S, Vh) of full rank, by the eigenvectors of [[0, A], [A.T, 0]]."""
    d, dr, cut = a.dense()
    m, n = a.shape[-2:]
    k = min(m, n)
    whole = np.zeros((*d.shape[:-2], m + n, m + n))
    whole[..., :m, m:] = d
    whole[..., m:, :m] = np.swapaxes(d, -1, -2)
    noise = np.broadcast_to(dr.max((-1, -2), keepdims=True), whole.shape)
    ends = np.broadcast_to(cut.min((-1, -2), keepdims=True), whole.shape[1:])
    values, vectors = _decomposed(a, whole, noise, ends, a.run.terms * a.q)
    s = _taken(values, (..., slice(None, -k - 1, -1)))
    chosen = _taken(vectors, (..., slice(None), slice(None, -k - 1, -1)))
    root = np.sqrt(2.0)
    u = _taken(chosen, (..., slice(0, m), slice(None))) * root
    v = _taken(chosen, (..., slice(m, None), slice(None))) * root
    vh = Series(
        a.run,
        np.swapaxes(v.c, -1, -2),
        np.swapaxes(v.r, -1, -2),
        v.low,
        np.swapaxes(v.cut, -1, -2),
        v.q,
    )
    return u, s, vh


def _taken(s: Series, index: Any) -> Series:
    return Series(s.run, s.c[(slice(None), *index)] if index[0] is not Ellipsis else s.c[index],
                  s.r[index], s.low, s.cut[index], s.q)  # fmt: skip


def _decomposed(a: Series, d: Array, dr: Array, cut: Array, size: int) -> tuple[Series, Series]:
    n = d.shape[-1]
    lead = d.shape[1:-2]
    flat = d.reshape(len(d), -1, n, n)
    bad = ~np.isfinite(flat).all((0, 2, 3))
    moving = len(d) > 1
    terms = size if moving else 1
    series = np.zeros((terms, flat.shape[1], n, n))
    series[: min(len(flat), terms)] = flat[:terms]
    values = np.full((terms, flat.shape[1], n), np.nan)
    vectors = np.full((terms, flat.shape[1], n, n), np.nan)
    unsure = np.zeros(flat.shape[1], bool)
    lost = np.full(flat.shape[1], terms)
    for k in np.flatnonzero(~bad):
        part = series[:, k]
        scale = np.abs(part[0]).max()
        scale = 1.0 if 1e-100 < scale < 1e100 or scale == 0 else 2.0 ** np.floor(np.log2(scale))
        found = split(part / scale, terms)
        if found is None:
            unsure[k] = True
            continue
        w, v, known = found
        values[:, k], vectors[:, k], lost[k] = w * scale, v, known
    a.run.doubt(np.broadcast_to(unsure.reshape(*lead, *[1] * 0), lead).reshape(lead[0], -1))
    noise = dr.reshape(len(dr), -1, n, n).max((0, 2, 3)) if dr.size else np.zeros(flat.shape[1])
    most = np.abs(np.nan_to_num(values)).max(-1, keepdims=True)
    r = 64 * n * EPS * np.maximum.accumulate(most) + noise[None, :, None] + 0 * values
    rv = (
        64 * n * EPS * np.abs(np.nan_to_num(vectors)).max((-1, -2), keepdims=True)
        + noise[None, :, None, None]
    )
    ends = np.broadcast_to(cut.min((-1, -2)) if n else cut, lead).reshape(-1)
    ends = np.minimum(ends, terms) if moving else ends
    ends_v = np.minimum(ends, lost) if moving else ends
    shape_w, shape_v = (*lead, n), (*lead, n, n)
    w_ = Series(
        a.run, values.reshape(terms, *shape_w), r.reshape(terms, *shape_w), 0,
        np.broadcast_to(ends[:, None], (len(ends), n)).reshape(shape_w), a.q,
    )  # fmt: skip
    rv = np.broadcast_to(rv, vectors.shape).reshape(terms, *shape_v)
    v_ = Series(
        a.run, vectors.reshape(terms, *shape_v), rv, 0,
        np.broadcast_to(ends_v[:, None, None], (len(ends), n, n)).reshape(shape_v), a.q,
    )  # fmt: skip
    return w_, v_


def split(a: Array, terms: int) -> tuple[Array, Array, int] | None:
    """(eigenvalues, eigenvectors, how many terms of these are known) of one matrix of series a[k].

    None where two eigenvalues are too near each other to say whether they coincide.
    """
    n = a.shape[-1]
    start, q = lapack.eigh(a[0], "L")
    start, q = np.array(start), np.array(q)
    b = q.T @ a @ q
    size = np.abs(a[0]).max()
    groups: list[list[int]] = []
    for i in range(n):
        gap = start[i] - start[i - 1] if i else np.inf
        if i and gap <= EQUAL * n * size:
            groups[-1].append(i)
        elif i and gap <= NEAR * size:
            return None
        else:
            groups.append([i])
    label = np.empty(n, int)
    for g, members in enumerate(groups):
        label[members] = g
        start[members] = start[members].mean()
    inside = label[:, None] == label[None, :]
    gaps = np.where(inside, 1.0, start[None, :] - start[:, None])
    u = np.zeros_like(b)
    u[0] = np.eye(n)
    d = np.zeros_like(b)
    d[0] = np.diag(start)
    for k in range(1, terms):
        rest = sum(b[j] @ u[k - j] for j in range(1, k + 1)) - sum(
            (u[j] @ d[k - j] for j in range(1, k)), 0.0
        )
        u[k] = np.where(inside, 0.0, rest / gaps)
        d[k] = np.where(inside, rest, 0.0)
    # U.T @ U has the same blocks: with its inverse root the transformation is orthogonal
    transposed = np.swapaxes(u, -1, -2)
    w = _inverse_root(_product(transposed, u, terms), terms)
    u = _product(u, w, terms)
    d = _product(_product(np.swapaxes(u, -1, -2), b, terms), u, terms)
    values, vectors = np.zeros((terms, n)), np.zeros((terms, n, n))
    known = terms
    for members in groups:
        at = np.ix_(members, members)
        block = d[(slice(None), *at)]
        if (
            len(members) == 1
            or terms == 1
            or not np.abs(block[1:]).max() > EQUAL * n * np.abs(a).max()
        ):
            values[:, members] = block[:, range(len(members)), range(len(members))]
            vectors[0][at] = np.eye(len(members))
            continue
        inner = block[1:]
        found = split((inner + np.swapaxes(inner, -1, -2)) / 2, terms - 1)
        if found is None:
            return None
        own, turned, less = found
        values[0, members] = start[members[0]]
        values[1:, members] = own
        for k in range(terms - 1):
            vectors[k][at] = turned[k]
        known = min(known, less)
    return values, q @ _product(u, vectors, terms), known


def _product(a: Array, b: Array, terms: int) -> Array:
    made = np.zeros((terms, *np.matmul(a[0], b[0]).shape))
    for i in range(terms):
        for j in range(terms - i):
            made[i + j] += a[i] @ b[j]
    return made


def _inverse_root(m: Array, terms: int) -> Array:
    """m**-0.5 for m[0] the identity."""
    z = np.zeros_like(m)
    z[0] = np.eye(m.shape[-1])
    for k in range(1, terms):
        z[k] = -sum(m[j] @ z[k - j] for j in range(1, k + 1))
    w = np.zeros_like(m)
    w[0] = z[0]
    for k in range(1, terms):
        w[k] = (z[k] - sum((w[j] @ w[k - j] for j in range(1, k)), 0.0)) / 2
    return w


__all__ = ["EXACT", "eigh", "svd"]

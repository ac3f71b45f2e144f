"""NumPy's and SciPy's functions in a function that is differentiated: NumPy's values, and exact slopes."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest

import gradcli
from tests.sweep import sweep

V, W = np.array([0.3, 0.7, 1.1]), np.array([1.0, 2.0, 0.5])
A = np.array([[2.0, 0.5], [0.3, 1.0]])
# Each is a function of x, a vector of three.
SOURCES = """
np.dot(x, W) | np.dot(A, x[:2]).sum() | np.dot(x, 2.0).sum()
np.dot(np.outer(x, W), np.outer(W, x)).sum() | np.inner(x, W) | np.vdot(x, W) | np.outer(x, W).sum()
np.tensordot(x, W, 1) | (np.cross(x, W)*W).sum() | (np.convolve(x, W)*np.arange(5)).sum()
(np.convolve(x, W, 'same')*W).sum() | np.convolve(x, W[:2], 'valid')[0]
np.linalg.multi_dot([x, np.outer(W, W), x]) | np.kron(x, W)[4]
np.linalg.matrix_power(np.outer(x, W), 3).sum() | np.linalg.norm(x) | np.linalg.norm(x, 1)
np.linalg.norm(x, np.inf) | np.linalg.norm(np.outer(x, W), axis=1).sum() | np.linalg.norm(A*x[0], 'nuc')
np.linalg.norm(A*x[0]) | np.linalg.det(A*x[0]) | np.linalg.inv(A*x[0]).sum()
np.linalg.solve(A, x[:2]).sum() | np.linalg.slogdet(A*x[0])[1] | np.linalg.cholesky(A@A.T*x[0]).sum()
np.linalg.eigvalsh(A@A.T*x[0]).sum() | np.linalg.eigh(A@A.T*x[0]).eigenvalues[1]
np.linalg.qr(A*x[0])[1][0, 1] | np.linalg.svd(A*x[0], compute_uv=False)[0]
np.linalg.svd(np.outer(x, W), full_matrices=False)[1][0] | (np.sort(np.flip(x))*W).sum()
(np.sort(np.outer(x, -W), axis=0)[0]*W).sum() | np.sort(np.outer(x, W), axis=None)[5]
(x[np.argsort(-V)]*W).sum() | np.median(x) | np.median(np.outer(x, W))
np.median(np.outer(x, W), axis=0)[1] | np.quantile(x, 0.3) | np.percentile(x, 30)
np.quantile(np.outer(x, W), [0.1, 0.5], axis=1).sum() | np.ptp(x) | (np.cumsum(x)*W).sum()
np.cumsum(np.outer(x, W))[4] | np.cumsum(np.outer(x, W), axis=1)[1, 1] | np.cumprod(x)[2] | np.var(x)
np.std(x) | np.std(x, ddof=1) | np.var(np.outer(x, W), axis=0).sum() | np.mean(x) | np.prod(x)
np.average(x) | np.average(x, weights=W) | np.average(np.outer(x, W), axis=1, weights=W).sum()
np.average(W, weights=x) | np.nansum(x) | np.nanmean(x) | np.trapezoid(x) | np.trapezoid(x, dx=0.5)
np.trapezoid(x, W.cumsum()) | (np.gradient(x)*W).sum() | (np.gradient(x, 0.5)*W).sum()
(np.gradient(x, W.cumsum())*W).sum() | sum(g.sum() for g in np.gradient(np.outer(x, W)*np.outer(x, W)))
(np.diff(x)*W[:2]).sum() | np.transpose(np.outer(x, W))[0, 1]
np.transpose(np.ones((2, 3, 3))*x, (2, 0, 1))[1].sum() | (np.flip(x)*W).sum()
np.flipud(np.outer(x, W))[0, 1] | np.fliplr(np.outer(x, W))[1, 0] | (np.tile(x, 2)*np.arange(6)).sum()
np.tile(x, (2, 1))[1, 2] | (np.repeat(x, 2)*np.arange(6)).sum() | (np.append(x, 1.0)*np.arange(4)).sum()
np.append(np.outer(x, W), np.ones((1, 3)), axis=0)[1, 1] | np.column_stack([x, W])[1, 0]
np.stack([x, W])[0, 1] | np.hstack([x, W])[1] | np.vstack([x, W])[0, 2] | np.concatenate([x, W])[0]
np.take(x, [0, 2]).sum() | np.take(np.outer(x, W), [1], axis=1).sum()
(np.meshgrid(x, W)[0]*np.outer(W, W)).sum() | np.meshgrid(x, W, indexing='ij')[0][1, 0]
(np.linspace(0, x[0], 5)*np.arange(5)).sum() | np.linspace(x[0], x[1], 4, endpoint=False)[2]
np.trace(A*x[0]) | np.select([x > 1, x > 0.5], [x*2, x**2], 0).sum()
np.piecewise(x, [V > 0.5], [lambda t: t*t, 2.0]).sum() | np.where(x > 0.5, x, 0).sum()
np.interp(x, [0, 1, 2], [0, 1, 4]).sum() | np.interp(0.5, [0, 1], x[:2]) | np.clip(x, 0.5, 1).sum()
np.polyval([1.0, 2, 3], x).sum() | np.polyval(x, 2.0) | np.logaddexp(x, W).sum()
np.logaddexp2(x, 1.0).sum() | (np.heaviside(x - 0.5, 0.5)*x).sum() | np.cbrt(x).sum() | np.sinc(x).sum()
(np.full_like(x, 2.0)*x).sum() | np.hypot(x, W).sum() | np.fmax(x, W).sum() | np.fmin(x, 0.6).sum()
np.einsum('ij,j->i', A, x[:2]) @ W[:2] | np.einsum('...i,i->...', A, x[:2])[0]**2
np.einsum('ij,jk,ik->', A, np.outer(x, W)[:2, :2], A) | np.inner(np.outer(W, W), x) @ W
np.tensordot(A, np.outer(x, W)[:2, :2])**2 | np.clip(x, W/2, 1)[2]**2 | np.clip(W, 0.4, x)[1]**2
np.diff(x, prepend=W[:2]) @ np.arange(4) | np.diff(x, append=0) @ W | np.cov(x, W)[0, 1]
np.cov(W, x)[1, 1] | np.corrcoef(W, x)[0, 1] | np.bincount([2, 0, 2], weights=x) @ W
np.bincount([2, 0], x[:2], 4) @ np.arange(4) | np.unique(x)[1]**2
np.histogram([1, 2, 4], 2, weights=x)[0][1]**2 | np.histogram(x, 2)[1] @ W
np.histogram([1, 2, 4], [0, 1.5, 4], density=True, weights=x)[0][1]**2
np.nanvar(np.append(x, np.nan)) | np.nanstd(np.outer(x, W), axis=0)[1] | np.vander(x)[1, 0]
np.linalg.lstsq(np.stack([W, W**2], 1), x, rcond=None)[0][0] | np.polyfit(W, x, 1)[0]
np.linalg.lstsq(np.stack([W, x], 1), W**3, rcond=None)[1][0] | np.linalg.cond(A + np.diag(x[:2]))
np.vecdot(x, W) | np.matvec(np.outer(W, x), W)[1] | np.vecmat(W, np.outer(x, x))[0] | np.linalg.trace(A*x[0])
np.angle(x + 2j).sum() | np.abs(np.fft.rfft(x)).sum() | np.fft.ifft(np.fft.fft(x)*np.fft.fft(W)).real[1]
np.fft.fft2(np.outer(x, W)).imag[1, 2] | np.fft.irfft(np.fft.rfft(x), 3)[1] | np.fft.fftshift(x)[0]**2
np.interp([0.5, 3.0], [0, 1], x[:2], right=x[2]).sum() | divmod(x, 0.5)[1] @ W | np.divmod(x, 0.5)[1] @ W
(np.empty_like(x)*0 + x*x).sum() | x[::-1] @ W
np.einsum('i,ij,j', x, np.outer(W, W), x) | np.diag(x).sum() | x.sum()/np.size(x)
""".replace("\n", " | ").split(" | ")
SPECIAL = """erf erfc erfcx expit gammaln psi digamma ndtr log_ndtr i0 i0e i1 i1e j0 j1 entr expm1 log1p exp2
log_expit""".split()


def agrees(function: Any) -> None:
    """Values as NumPy's, gradients as central differences, and nothing left for the tape but branches."""
    compiled = gradcli.compile(function)
    value, grads = compiled.value_and_grad(V)
    np.testing.assert_allclose(value, function(V), rtol=1e-12)
    step = 1e-6
    slopes = [(function(V + e) - function(V - e)) / (2 * step) for e in step * np.eye(3)]
    np.testing.assert_allclose(np.asarray(grads), slopes, rtol=1e-5, atol=1e-7)


@pytest.mark.long
@sweep("source", [s.strip() for s in SOURCES if s.strip()], parts=4)
def test_numpy(source: str) -> None:
    agrees(eval(f"lambda x: {source}", {"np": np, "A": A, "W": W, "V": V}))


@pytest.mark.long
@pytest.mark.parametrize("name", SPECIAL)
def test_scipy(name: str) -> None:
    special = pytest.importorskip("scipy.special")
    agrees(lambda x: getattr(special, name)(x).sum())


def test_some() -> None:
    agrees(lambda x: np.dot(np.sort(x), W) + np.linalg.norm(x) * np.std(x))


# SciPy's functions that take numbers alone, and what stands in their place: a remedy is a line that was run.
REFUSED = """
special.logsumexp(x) | gradcli.logsumexp(x, 0)
special.log_softmax(x)[0] | gradcli.log_softmax(x, 0)[0]
special.polygamma(1, x).sum() | gradcli.special.polygamma(1, x).sum()
stats.norm.logpdf(x).sum() | (-x**2/2 - np.log(2*np.pi)/2).sum()
stats.norm.pdf(x).sum() | (np.exp(-x**2/2)/np.sqrt(2*np.pi)).sum()
stats.norm.cdf(x).sum() | scipy.special.ndtr(x).sum()
stats.poisson.logpmf(3, x).sum() | (3*np.log(x) - x - scipy.special.gammaln(3 + 1)).sum()
linalg.solve(A, x[:2]).sum() | np.linalg.solve(A, x[:2]).sum()
linalg.cho_solve(linalg.cho_factor(S), x[:2]).sum() | np.linalg.solve(S, x[:2]).sum()
linalg.inv(A*x[0]).sum() | np.linalg.inv(A*x[0]).sum()
linalg.det(A*x[0]) | np.linalg.det(A*x[0])
linalg.expm(np.outer(x, x)).sum() | gradcli.linalg.matrix_exp(np.outer(x, x)).sum()
fft.fft(x).real[1] | np.fft.fft(x).real[1]
signal.fftconvolve(x, W)[1] | np.convolve(x, W)[1]
spatial.distance.cdist(x[:, None], W[:, None]).sum() | gradcli.cdist(x[:, None], W[:, None]).sum()
sparse.csr_array(A)[:1] @ x[:2] | A[:1] @ x[:2]
""".strip().splitlines()


@pytest.mark.parametrize("line", REFUSED)
def test_what_to_write_in_place_of_scipys(line: str) -> None:
    scipy = pytest.importorskip("scipy")
    for name in "special stats linalg fft signal sparse spatial.distance".split():
        pytest.importorskip(f"scipy.{name}")
    theirs, ours = line.split(" | ")
    names = {
        "np": np,
        "gradcli": gradcli,
        "scipy": scipy,
        "A": A,
        "W": W,
        "S": A @ A.T,
    }
    names |= {
        n: getattr(scipy, n) for n in "special stats linalg fft signal sparse spatial".split()
    }
    source = f"lambda x: np.sum({theirs})"
    linecache.cache[theirs] = len(source), None, [source], theirs  # as of a file
    function = eval(compile(source, theirs, "eval"), names)
    with pytest.raises(Exception, match=r".") as caught:
        gradcli.grad(function)(V)
    name = theirs.partition("(")[0].rpartition(".")[2]
    assert ("A.toarray() @ x" if "sparse" in theirs else name) in "".join(caught.value.__notes__)
    agrees(eval(f"lambda x: np.sum({ours})", names))

"""`torch.linalg`: functions that pick and compose the primitives of products and decompositions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, prod
from typing import Any

import numpy as np

from gradcli.engine.core import modes
from gradcli.engine.core.declaration import Ints, Number
from gradcli.engine.core.tensor import Tensor, wrap, wrap_dim
from gradcli.engine.registry.named_results import results, return_type
from gradcli.engine.registry.rule_helpers import raise_on_grad, refuse_if
from gradcli.engine.registry.table import CONSTANTS, function, resolve
from gradcli.engine.system import dtypes
from gradcli.engine.system.dtypes import scalar_name
from gradcli.operators.primitives import factorisations, lapack
from gradcli.operators.primitives.matrix_products import matmul, mm

FAMILY = "linalg"  # as `ops` calls it

CONSTANTS["linalg.LinAlgError"] = lapack.LinAlgError

_REGULAR = "randn(3,3) + 3*eye(3)"
_POSITIVE = "eye(3)*3 + randn(3,3)*0 + ones(3,3)"
_SYMMETRIC = "randn(3,3) + diag(tensor([1., 5., 9.]))"

_SOLVE_EX = return_type("linalg_solve_ex", "result info")
_SLOGDET = return_type("linalg_slogdet", "sign logabsdet")
_SLOGDET_OLD = return_type("slogdet", "sign logabsdet")
_QR_OLD = return_type("qr", "Q R")
_SVD = return_type("linalg_svd", "U S Vh")
_SVD_OLD = return_type("svd", "U S V")
_LU = return_type("linalg_lu", "P L U")
_LU_UNPACK = return_type("lu_unpack", "P L U")
_LU_FACTOR = return_type("linalg_lu_factor", "LU pivots")


def _values(x: Tensor) -> Any:
    """The array of a tensor, for decisions."""
    return x.array if isinstance(x, Tensor) else x


# -- determinants ---------------------------------------------------------------------------------
@function(
    "linalg.det(Tensor A, *, Tensor? out=None)",
    samples=f"({_REGULAR}); (randn(2,3,3)); (randn(0,0))",
    out="exact",
)
def linalg_det(A: Tensor) -> Any:
    """The determinants of square matrices."""
    return factorisations.det_p(A)[0]


@function("det(Tensor input)", samples=f"({_REGULAR})", numpy=np.linalg.det)
def det(input: Tensor) -> Any:
    """The determinants of square matrices."""
    return factorisations.det_p(input)[0]


@function(
    "linalg.slogdet(Tensor A, *, Tensor[]? out=None)",
    samples=f"({_REGULAR})",
    out="exact",
)
def linalg_slogdet(A: Tensor) -> Any:
    """(sign, logabsdet): the determinants' signs and logarithms of absolute values."""
    return _SLOGDET(factorisations.slogdet_p(A)[:2])


@function(
    "slogdet(Tensor input, *, Tensor[]? out=None)",
    samples=f"({_REGULAR})",
    out="exact",
)
def slogdet(input: Tensor) -> Any:
    """(sign, logabsdet), see linalg.slogdet."""
    return _SLOGDET_OLD(factorisations.slogdet_p(input)[:2])


@function("logdet(Tensor input)", samples="(eye(3)*3 + randn(3,3)*0.1)")
def logdet(input: Tensor) -> Any:
    """The logarithm of the determinant; NaN where it is negative."""
    factorisations.check_inputs("logdet", _values(input))
    sign, logabsdet = factorisations.slogdet_p(input)[:2]
    if _values(input).dtype.kind == "c":
        return sign.log() + logabsdet
    return resolve("where")(sign == -1.0, float("nan"), logabsdet)


# -- inverses and solves --------------------------------------------------------------------------
def _inverse(A: Tensor, name: str) -> Any:
    inverse, info = factorisations.inv_ex(A)
    lapack.raise_on_failure(
        name, _values(info), factorisations.INVERSE_FAILED, made=_values(inverse)
    )
    return inverse


@function(
    "linalg.inv(Tensor A, *, Tensor? out=None)|numpy",
    primitives=[factorisations.inv_ex],
    samples=f"({_REGULAR}); (eye(2) + rand(4,2,2))",
    out="exact",
)
def linalg_inv(A: Tensor) -> Any:
    """The inverses of square matrices."""
    return _inverse(A, "linalg.inv")


@function(
    "inverse(Tensor input, *, Tensor? out=None)",
    aliases="linalg.inverse",
    primitives=[factorisations.inv_ex],
    samples=f"({_REGULAR})",
    out="exact",
)
def inverse(input: Tensor) -> Any:
    """The inverses of square matrices, see linalg.inv."""
    return _inverse(input, "linalg.inv")


linalg_inv_ex = results(
    "linalg.inv_ex(Tensor A, *, bool check_errors=False, Tensor[]? out=None)",
    factorisations.inv_ex,
    doc="(inverse, info): as linalg.inv, reporting failures instead of raising.",
    samples=f"({_REGULAR})",
    out="exact",
)


@function(
    "linalg.solve(Tensor A, Tensor B, *, bool left=True, Tensor? out=None)|numpy",
    samples=f"({_REGULAR}, randn(3)); ({_REGULAR}, randn(3,2)); ({_REGULAR}, randn(2,3), left=False)",
    out="exact",
)
def linalg_solve(A: Tensor, B: Tensor, left: bool) -> Any:
    """X with A X = B (or X A = B)."""
    result, _, _, info = factorisations.solve_ex(A, B, left, False)
    failed = factorisations.SOLVE_FAILED
    lapack.raise_on_failure("torch.linalg.solve", _values(info), failed, made=_values(result))
    return result


@function(
    "linalg.solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False, Tensor[]? out=None)",
    samples=f"({_REGULAR}, randn(3))",
    out="exact",
)
def linalg_solve_ex(A: Tensor, B: Tensor, left: bool, check_errors: bool) -> Any:
    """(result, info): as linalg.solve, reporting failures instead of raising."""
    result, _, _, info = factorisations.solve_ex(A, B, left, check_errors)
    return _SOLVE_EX((result, info))


triangular_solve = results(
    "triangular_solve(Tensor input, Tensor A, bool upper=True, bool transpose=False, "
    "bool unitriangular=False, *, Tensor[]? out=None)",
    factorisations.triangular_solve_p,
    doc="(solution, cloned_coefficient): X with A X = input for a triangular A.",
    samples="(randn(3,2), randn(3,3) + 3*eye(3))",
    out="exact",
)


@function(
    "linalg.tensorinv(Tensor input, int ind=2, *, Tensor? out=None)",
    samples="(eye(4).reshape(2,2,4), ind=2)",
    out=(
        "cast: tensorinv: Expected result to be safely castable from {0} dtype, but "
        "got result with dtype {1}"
    ),
)
def linalg_tensorinv(A: Tensor, ind: int) -> Any:
    """The inverse of a tensor as a map between its first `ind` dimensions and the rest."""
    refuse_if(ind <= 0, "Expected a strictly positive integer for 'ind'")
    if ind > A.ndim:
        raise RuntimeError(f"ArrayRef: invalid slice, N = {ind}; size = {A.ndim}")
    first, rest = tuple(A.shape[:ind]), tuple(A.shape[ind:])
    rows_count, columns = prod(first), prod(rest)
    if rows_count != columns:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == "
            f"prod(self.shape[:ind]), but got {columns} != {rows_count}"
        )
    inverse, info = factorisations.inv_ex(A.reshape(rows_count, columns))
    failed = factorisations.INVERSE_FAILED
    lapack.raise_on_failure("linalg.inv", _values(info), failed, made=_values(inverse))
    return inverse.reshape(*rest, *first)


@function(
    "linalg.tensorsolve(Tensor input, Tensor other, int[]? dims=None, *, Tensor? out=None)",
    primitives=[factorisations.solve_ex],
    samples="(eye(4).reshape(2,2,4), randn(2,2))",
    out=(
        "cast: tensorsolve: Expected result to be safely castable from {0} dtype, but"
        " got result with dtype {1}"
    ),
)
def linalg_tensorsolve(A: Tensor, B: Tensor, dims: Sequence[int] | None) -> Any:
    """X with tensordot(A, X, X.ndim) = B."""
    if dims is not None:
        moved = sorted(wrap_dim(d, A.ndim) for d in dims)
        A = A.movedim(tuple(dims), tuple(range(A.ndim - len(moved), A.ndim)))
    shape = tuple(A.shape[B.ndim :])
    columns, total = prod(shape), prod(B.shape)
    if columns != total:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
            f"prod(self.shape[:other.ndim]), but got {columns} != {total}"
        )
    out = linalg_solve(A.reshape(total, columns), B.reshape(total))
    return out.reshape(*shape) if shape else out.reshape(())


# -- Cholesky -------------------------------------------------------------------------------------
@function(
    "linalg.cholesky(Tensor input, *, bool upper=False, Tensor? out=None)",
    samples=f"({_POSITIVE}); ({_POSITIVE}, upper=True)",
    out="exact",
)
def linalg_cholesky(A: Tensor, upper: bool) -> Any:
    """L with A = L @ L.mH, or its adjoint."""
    factor, info = factorisations.cholesky_ex_p(A, upper, False)
    failed = factorisations.CHOLESKY_FAILED
    lapack.raise_on_failure("linalg.cholesky", _values(info), failed, made=_values(factor))
    return factor


linalg_cholesky_ex = results(
    "linalg.cholesky_ex(Tensor input, *, bool upper=False, bool check_errors=False, Tensor[]? out=None)",
    factorisations.cholesky_ex_p,
    doc="(L, info): as linalg.cholesky, reporting failures instead of raising.",
    samples=f"({_POSITIVE})",
    out="exact",
)


# -- QR, eigenvalues, singular values -------------------------------------------------------------
linalg_qr = results(
    "linalg.qr(Tensor A, str mode='reduced', *, Tensor[]? out=None)",
    factorisations.qr_p,
    doc="(Q, R) with A = Q @ R.",
    samples="(randn(3,2)); (randn(2,3)); (randn(2,3), mode='complete')",
    out="exact",
)


@function(
    "qr(Tensor input, bool some=True, *, Tensor[]? out=None)",
    samples="(randn(3,2))",
    out="exact",
)
def qr(input: Tensor, some: bool) -> Any:
    """(Q, R), see linalg.qr."""
    return _QR_OLD(factorisations.qr_p(input, "reduced" if some else "complete"))


linalg_eigh = results(
    "linalg.eigh(Tensor input, str UPLO='L', *, Tensor[]? out=None)",
    factorisations.eigh_p,
    doc="(eigenvalues, eigenvectors) of symmetric matrices, in ascending order; one triangle is read.",
    samples=f"({_SYMMETRIC})",
    out="exact",
)


@function(
    "linalg.eigvalsh(Tensor input, str UPLO='L', *, Tensor? out=None)",
    samples=f"({_SYMMETRIC})",
    out="exact",
)
def linalg_eigvalsh(A: Tensor, UPLO: str) -> Any:
    """The eigenvalues of symmetric matrices, ascending."""
    return factorisations.eigh_p(A, UPLO)[0]


linalg_eig = results(
    "linalg.eig(Tensor input, *, Tensor[]? out=None)",
    factorisations.eig_p,
    doc="(eigenvalues, eigenvectors), complex.",
    samples=f"({_REGULAR})",
    out=(
        "cast: torch.linalg.eig: Expected eigenvalues to be safely castable from {0} "
        "dtype, but got eigenvalues with dtype {1} | cast: torch.linalg.eig: Expected"
        " eigenvectors to be safely castable from {0} dtype, but got eigenvectors "
        "with dtype {1}"
    ),
)


@function(
    "linalg.eigvals(Tensor input, *, Tensor? out=None)",
    samples=f"({_REGULAR})",
    out=(
        "cast: torch.linalg.eigvals: Expected eigenvalues to be safely castable from "
        "{0} dtype, but got eigenvalues with dtype {1}"
    ),
)
def linalg_eigvals(A: Tensor) -> Any:
    """The eigenvalues, complex."""
    recorded = A.requires_grad and modes.is_grad_enabled()  # by linalg.eig
    factorisations.check_square("linalg.eig" if recorded else "linalg.eigvals", _values(A))
    return factorisations.eig_p(A)[0]


@function(
    "linalg.svd(Tensor A, bool full_matrices=True, *, str? driver=None, Tensor[]? out=None)",
    samples="(randn(3,2), full_matrices=False)",
    out="exact",
)
def linalg_svd(A: Tensor, full_matrices: bool, driver: str | None) -> Any:
    """(U, S, Vh) with A = U @ diag(S) @ Vh."""
    if driver is not None:
        raise RuntimeError(
            "linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        )
    return _SVD(factorisations.svd_p(A, full_matrices))


@function(
    "linalg.svdvals(Tensor A, *, str? driver=None, Tensor? out=None)",
    samples="(randn(3,2))",
    out="exact",
)
def linalg_svdvals(A: Tensor, driver: str | None) -> Any:
    """The singular values, descending."""
    return factorisations.svd_p(A, False)[1]


@function(
    "svd(Tensor input, bool some=True, bool compute_uv=True, *, Tensor[]? out=None)",
    samples="(randn(3,2))",
    out="exact",
)
def svd(input: Tensor, some: bool, compute_uv: bool) -> Any:
    """(U, S, V), see linalg.svd; V is not transposed."""
    if input.ndim < 2:
        raise RuntimeError(
            f"linalg.svd: input should have at least 2 dimensions, but has {input.ndim} dimensions instead"
        )
    if compute_uv:
        u, s, vh = factorisations.svd_p(input, not some)
        return _SVD_OLD((u, s, vh.mH))
    m, n = input.shape[-2:]
    batch = tuple(input.shape[:-2])
    kind = _values(input).dtype
    s = factorisations.svd_p(input, False)[1]
    return _SVD_OLD((wrap(np.zeros((*batch, m, m), kind)), s, wrap(np.zeros((*batch, n, n), kind))))


# -- pseudo-inverses, ranks, least squares --------------------------------------------------------
def _as_tensor(limit: float | None) -> Any:
    if limit is None:
        return None
    return limit.detach() if isinstance(limit, Tensor) else wrap(np.asarray(float(limit)))


@function(
    "linalg.pinv(Tensor input, *, Tensor? atol=None, Tensor? rtol=None, bool "
    "hermitian=False, Tensor out=None)",
    "linalg.pinv(Tensor input, *, float? atol=None, float? rtol=None, bool hermitian=False, Tensor out=None)",
    "linalg.pinv(Tensor input, Tensor rcond, bool hermitian=False, *, Tensor out=None)",
    "linalg.pinv(Tensor input, float rcond, bool hermitian=False, *, Tensor out=None)",
    samples="(randn(3,2)); (randn(2,3))",
    out="cast: castable",
)
def linalg_pinv(
    input: Tensor,
    rcond: Any = None,
    hermitian: bool = False,
    *,
    atol: float | None = None,
    rtol: float | None = None,
) -> Any:
    """The Moore-Penrose inverses."""
    rtol = rcond if rtol is None else rtol
    raise_on_grad("linalg_pinv", atol=atol, rtol=rtol)
    return factorisations.pinv_p(
        input, atol=_as_tensor(atol), rtol=_as_tensor(rtol), hermitian=hermitian
    )


@function("pinverse(Tensor input, float rcond=1e-15)", samples="(randn(3,2))")
def pinverse(input: Tensor, rcond: float) -> Any:
    """The Moore-Penrose inverses, see linalg.pinv."""
    return factorisations.pinv_p(input, rtol=_as_tensor(rcond))


@function(
    "linalg.matrix_rank(Tensor input, *, Tensor? atol=None, Tensor? rtol=None, bool "
    "hermitian=False, Tensor out=None)",
    "linalg.matrix_rank(Tensor input, *, float? atol=None, float? rtol=None, bool "
    "hermitian=False, Tensor out=None)",
    "linalg.matrix_rank(Tensor input, Tensor tol, bool hermitian=False, *, Tensor out=None)",
    "linalg.matrix_rank(Tensor input, float tol, bool hermitian=False, *, Tensor out=None)",
    samples="(randn(3,2))",
    out="cast: torch.castable",
)
def linalg_matrix_rank(
    input: Tensor,
    tol: float | None = None,
    hermitian: bool = False,
    *,
    atol: Any = None,
    rtol: Any = None,
) -> Any:
    """The number of singular values that are not negligible."""
    a = _values(input)
    factorisations.check_matrix("torch.linalg.matrix_rank", a, "input")
    atol = tol if atol is None else atol
    if atol is None and rtol is None and a.dtype.char not in "fdFD":
        raise RuntimeError("This function doesn't handle types other than float and double")
    factorisations.check_floating("linalg.eigh" if hermitian else "linalg.svd", a)
    if not a.size:
        return wrap(np.zeros(a.shape[:-2], np.int64))
    if hermitian:
        factorisations.check_square("linalg.eigh", a)
    limits = [x.array if isinstance(x, Tensor) else x for x in (atol, rtol)]
    s = np.abs(lapack.eigh(a)[0]) if hermitian else lapack.svdvals(a)
    cutoff = factorisations._cutoff(s, a.shape[-2], a.shape[-1], *limits)
    return wrap(np.asarray((s > cutoff).sum(-1), np.int64))


linalg_lstsq = results(
    "linalg.lstsq(Tensor input, Tensor b, float? rcond=None, *, str? driver=None, Tensor[]? out=None)",
    factorisations.lstsq_p,
    doc="(solution, residuals, rank, singular_values) of the least-squares problem A X = B.",
    samples="(randn(4,2), randn(4,3)); (randn(4,2), randn(4))",
    out=(
        "cast: torch.linalg.lstsq: Expected solution to be safely castable from {0} "
        "dtype, but got solution with dtype {1} | cast: torch.linalg.lstsq: Expected "
        "solution to be safely castable from {0} dtype, but got solution with dtype"
        " {1} | cast: torch.linalg.lstsq: Expected rank to be safely castable from "
        "{0} dtype, but got rank with dtype {1} | cast: torch.linalg.lstsq: Expected "
        "singular_values to be safely castable from {0} dtype, but got "
        "singular_values with dtype {1}"
    ),
)


# -- powers and exponentials ----------------------------------------------------------------------
_CASTABLE = (
    "matrix_power: Expected result to be safely castable from {0} dtype, "
    "but got result with dtype {1}"
)


@function(
    "linalg.matrix_power(Tensor input, int n, *, Tensor out=None)",
    method=True,
    aliases="matrix_power",
    primitives=[mm, factorisations.inv_ex],
    samples=f"(randn(3,3), 3); ({_REGULAR}, -2); matrix_power(randn(3,3), 5)",
    out=lambda input, n: f"cast: {_CASTABLE}" + ("" if n in (0, 1) else " & exact"),
)
def linalg_matrix_power(input: Tensor, n: int) -> Any:
    """Repeated products of square matrices; negative n inverts."""
    factorisations.check_square("linalg.matrix_power", _values(input))
    if n == 0:
        eye = np.broadcast_to(
            np.eye(input.shape[-1], dtype=_values(input).dtype), tuple(input.shape)
        )
        return input.clone().copy_(wrap(eye))
    if n == 1:
        return input.clone()
    if n == -1:
        return _inverse(input, "linalg.inv")
    base = _inverse(input, "linalg.inv") if n < 0 else input
    n = abs(n)
    if n == 2:
        return matmul(base, base)
    if n == 3:
        return matmul(matmul(base, base), base)
    out, square = None, None
    while n:
        square = base if square is None else matmul(square, square)
        if n & 1:
            out = square if out is None else matmul(out, square)
        n >>= 1
    return out


# -- norms ----------------------------------------------------------------------------------------
def _pair(dim: Ints, ndim: int, name: str = "linalg.matrix_norm") -> tuple[int, int]:
    if isinstance(dim, int) or len(dim) != 2:
        raise RuntimeError(
            f"{name}: dim must be a 2-tuple. Got {'' if isinstance(dim, int) else ' '.join(map(str, dim))}"
        )
    a, b = wrap_dim(dim[0], ndim), wrap_dim(dim[1], ndim)
    if a == b:
        raise RuntimeError(f"{name}: dims must be different. Got ({dim[0]}, {dim[1]})")
    return a, b


def _singular_norm(
    a: Tensor, reduce: Callable[..., Any], pair: tuple[int, int], keepdim: bool
) -> Any:
    """A norm of singular values; the two dimensions are moved to the end first."""
    others = [d for d in range(a.ndim) if d not in pair]
    order = [*others, *pair]
    out = reduce(factorisations.svd_p(a.permute(*order), False)[1], keepdim)
    if not keepdim:
        return out
    return out.unsqueeze(-1).permute(*np.argsort(order).tolist())


def _matrix_norm(A: Tensor, ord: Any, dim: Ints, keepdim: bool) -> Any:
    factorisations.check_matrix("linalg.matrix_norm", _values(A))
    pair = _pair(dim, A.ndim)
    rows_check = _values(A)
    if rows_check.dtype.kind not in "fc":
        kind = scalar_name(rows_check)
        raise RuntimeError(
            f"linalg.matrix_norm: Expected a floating point or complex tensor as input. Got {kind}"
        )
    vector_norm = resolve("linalg.vector_norm")
    if isinstance(ord, complex):
        raise RuntimeError(
            "linalg.matrix_norm: Expected a non-complex scalar as the order of norm."
        )
    if ord == "fro":
        return vector_norm(A, 2, dim=pair, keepdim=keepdim)
    if ord in ("nuc", 2, -2) and rows_check.dtype == np.float16:
        raise RuntimeError("linalg.matrix_norm: Low precision dtypes not supported. Got Half")
    if ord == "nuc":
        return _singular_norm(A, lambda s, keep: s.sum(-1, keep), pair, keepdim)
    refuse_if(isinstance(ord, str), "linalg.matrix_norm: Order {} not supported.", ord)
    size = abs(ord)
    refuse_if(size not in (1, 2, inf), "linalg.matrix_norm: Order {} not supported.", ord)
    extreme = "amax" if ord > 0 else "amin"
    if size == 2:
        if extreme == "amax" and 0 in (A.shape[pair[0]], A.shape[pair[1]]):
            A, extreme = A.detach(), "sum"  # of nothing, 0
        return _singular_norm(A, lambda s, keep: getattr(s, extreme)(-1, keep), pair, keepdim)
    first, second = pair if size == 1 else pair[::-1]
    if second > first and not keepdim:
        second -= 1
    sums = vector_norm(A, 1.0, dim=(first,), keepdim=keepdim)
    if extreme == "amax" and not sums.shape[second]:
        extreme = "sum"  # of nothing, 0
    return getattr(sums, extreme)(second, keepdim)


@function(
    "linalg.matrix_norm(Tensor input, Scalar ord, int[] dim={-2,-1}, bool keepdim=False, "
    "*, ScalarType? dtype=None, Tensor out=None)",
    "linalg.matrix_norm(Tensor input, str ord='fro', int[] dim={-2,-1}, bool "
    "keepdim=False, *, ScalarType? dtype=None, Tensor out=None)",
    primitives=[factorisations.svd_p],
    samples="(randn(3,2)); (randn(3,2), 'nuc'); (randn(3,2), 2); (randn(3,2), inf)",
    out="exact: {name} expected out tensor dtype {0} but got: {1}",
)
def linalg_matrix_norm(
    input: Tensor,
    ord: Number | str = "fro",
    dim: Ints = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> Any:
    """Norms of matrices: 'fro', 'nuc', 1, -1, 2, -2, inf, -inf."""
    return _matrix_norm(input if dtype is None else input.to(dtype), ord, dim, keepdim)


@function(
    "linalg.norm(Tensor input, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, "
    "ScalarType? dtype=None, Tensor out=None)",
    "linalg.norm(Tensor input, str ord, int[1]? dim=None, bool keepdim=False, *, "
    "ScalarType? dtype=None, Tensor out=None)",
    primitives=[factorisations.svd_p],
    samples="(randn(3)); (randn(3,2), 2); (randn(3,2), 1, dim=0)",
    out="exact: {name} expected out tensor dtype {0} but got: {1}",
)
def linalg_norm(
    input: Tensor,
    ord: float | str | None = None,
    dim: Ints | None = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> Any:
    """The norm of vectors or of matrices, by the number of dimensions."""
    input = input if dtype is None else input.to(dtype)
    dims = dim
    if isinstance(dim, int):
        dims = (dim,)
    if dims is not None and len(dims) not in (1, 2) and ord is not None:
        raise RuntimeError(
            f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dims)}"
        )
    if ord is not None and dims is None and input.ndim not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {input.ndim}D."
        )
    if isinstance(ord, str):
        if dims is not None and len(dims) != 2:
            raise RuntimeError(
                f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, dims))}"
            )
        return _matrix_norm(input, ord, dims or (-2, -1), keepdim)
    matrix = len(dims) == 2 if dims is not None else input.ndim == 2
    if ord is not None and matrix:
        return _matrix_norm(input, ord, dims or (-2, -1), keepdim)
    return resolve("linalg.vector_norm")(
        input, 2.0 if ord is None else ord, dim=dims, keepdim=keepdim
    )


def _squeezed(x: Tensor) -> Any:
    return x.squeeze(-1)


def _singular_condition(A: Tensor, p: Any) -> Any:
    s = factorisations.svd_p(A, False)[1]
    largest, smallest = s[..., :1], s[..., -1:]
    if s.shape[-1]:
        largest, smallest = s.narrow(-1, 0, 1), s.narrow(-1, s.shape[-1] - 1, 1)
    return _squeezed(smallest / largest if p == -2 else largest / smallest)


@function(
    "linalg.cond(Tensor input, Scalar? p=None, *, Tensor out=None)",
    "linalg.cond(Tensor input, str p, *, Tensor out=None)",
    samples=f"({_REGULAR}); ({_REGULAR}, 'fro'); ({_REGULAR}, 1)",
    out="cast: castable",
)
def linalg_cond(input: Tensor, p: float | str | None = None) -> Any:
    """The condition number of matrices with respect to a norm."""
    if isinstance(p, str) and 0 in input.shape:
        factorisations.check_square(f"linalg.cond(ord={p})", _values(input))
    if isinstance(p, str):
        factorisations.check_matrix(f"linalg.cond(ord={p})", _values(input))
    refuse_if(input.ndim < 2, "linalg.cond: The input tensor must have at least 2 dimensions.")
    if input.array.size == 0 if isinstance(input, Tensor) else False:
        return wrap(np.zeros(tuple(input.shape[:-2]), _values(input).real.dtype))
    if p in (None, 2, -2) and not isinstance(p, str):
        return _singular_condition(input, p)
    if p == "nuc":
        s = factorisations.svd_p(input, False)[1]
        return s.sum(-1) * s.reciprocal().sum(-1)
    factorisations.check_square("linalg.cond", _values(input))
    inverse, info = factorisations.inv_ex(input)
    failed = wrap(_values(info) != 0)
    inverse = inverse.masked_fill(failed[..., None, None], inf)
    first = _matrix_norm(input, p, (-2, -1), False)
    out = first * _matrix_norm(inverse, p, (-2, -1), False)
    return out.nan_to_num(inf, inf, -inf)


# -- LU -------------------------------------------------------------------------------------------
@function(
    "linalg.lu(Tensor A, *, bool pivot=True, Tensor[]? out=None)",
    samples=f"({_REGULAR})",
    out="exact",
)
def linalg_lu(A: Tensor, pivot: bool) -> Any:
    """(P, L, U) with A = P @ L @ U."""
    lower, upper, p = factorisations.lu_p(A, pivot=pivot)
    return _LU((p, lower, upper))


@function(
    "linalg.lu_factor(Tensor A, *, bool pivot=True, Tensor[]? out=None)",
    samples=f"({_REGULAR})",
    out="exact",
)
def linalg_lu_factor(A: Tensor, pivot: bool) -> Any:
    """(LU, pivots): both factors in one matrix."""
    lu, pivots, info = factorisations.lu_factor_ex_p(A, pivot=pivot)
    lapack.raise_on_failure(
        "torch.linalg.lu_factor", _values(info), factorisations.LU_FAILED, RuntimeError
    )
    return _LU_FACTOR((lu, pivots))


linalg_lu_factor_ex = results(
    "linalg.lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False, Tensor[]? out=None)",
    factorisations.lu_factor_ex_p,
    doc="(LU, pivots, info): as linalg.lu_factor, reporting failures instead of raising.",
    samples=f"({_REGULAR})",
    out="exact",
)


@function(
    "_lu_no_infos(Tensor A, bool pivot=True, Any get_infos=False, Any out=None)|function "
    "-> _lu_with_info(A=input)",
    "lu(Tensor input, bool pivot=True, Any get_infos=False)|method -> _lu_with_info(input)",
    python=True,
    samples=f"({_REGULAR})",
)
def lu(A: Tensor, pivot: bool, get_infos: bool, out: Any = None) -> Any:
    """(LU, pivots[, info]), see linalg.lu_factor."""
    packed, pivots, info = factorisations.lu_factor_ex_p(A, pivot=pivot)
    return (packed, pivots, info) if get_infos else (packed, pivots)


@function(
    "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, "
    "bool unpack_pivots=True, *, Tensor[]? out=None)|function",
    samples=f"(*linalg.lu_factor({_REGULAR}))",
    out="exact",
)
def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool, unpack_pivots: bool) -> Any:
    """(P, L, U) from packed factors."""
    lower, upper, p = factorisations.lu_unpack_p(LU_data, LU_pivots, unpack_data, unpack_pivots)
    return _LU_UNPACK((p, lower, upper))


@function(
    "lu_solve(Tensor input, Tensor LU_data, Tensor LU_pivots, *, Tensor? out=None)",
    samples=f"(randn(3,2), *linalg.lu_factor({_REGULAR}))",
    out="exact",
)
def lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Any:
    """X with A X = input, see linalg.lu_solve."""
    return factorisations.lu_solve(LU_data, LU_pivots, input)


# -- Vandermonde matrices -------------------------------------------------------------------------
@function("linalg.vander(Tensor x, *, int? N=None)", samples="(randn(3)); (randn(3), N=4)")
def linalg_vander(x: Tensor, N: int | None) -> Any:
    """The matrix of powers of x, ascending."""
    kind = _values(x).dtype
    if kind.char in "e?":
        raise RuntimeError(
            "linalg.vander supports floating point, complex, and integer tensors, but got "
            f"{scalar_name(kind)}"
        )
    if x.ndim == 0:
        x = x.unsqueeze(-1)
    n = x.shape[-1] if N is None else N
    refuse_if(n <= 1, "N must be greater than 1.")
    powers = x.unsqueeze(-1).expand(*x.shape, n - 1).cumprod(-1)
    return resolve("cat")((x.new_ones((*x.shape, 1)), powers), dim=-1)


@function(
    "vander(Tensor x, int? N=None, bool increasing=False)|function",
    samples="(randn(3)); (randn(3), N=2, increasing=True)",
)
def vander(x: Tensor, N: int | None, increasing: bool) -> Any:
    """The matrix of powers of x, descending unless told otherwise."""
    refuse_if(x.ndim != 1, "x must be a one-dimensional tensor.")
    n = x.shape[-1] if N is None else N
    refuse_if(n < 0, "N must be non-negative.")
    # PyTorch writes over what its cumprod has saved, so that its backward refuses; not so here.
    kind = dtypes.int64 if _values(x).dtype.kind in "biu" else None
    ones = x.new_ones((x.shape[0], 1), dtype=kind)
    if n <= 1:
        return ones.narrow(1, 0, n)
    powers = x.unsqueeze(-1).expand(x.shape[0], n - 1).cumprod(1)
    out = resolve("cat")((ones, powers), dim=1)
    return out if increasing else out.flip((1,))

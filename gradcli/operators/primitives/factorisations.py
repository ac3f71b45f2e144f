"""Inverses, solves and factorisations of matrices: primitives, with PyTorch's VJP rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.engine.core.batched_arrays import anywhere
from gradcli.engine.core.declaration import Array, Number, Value
from gradcli.engine.core.switch import MISSED, Draw, Point, Theirs, WatchedCall
from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.engine.registry.rule_helpers import (
    cast,
    cat,
    conj,
    constant,
    diag_embed,
    dtype_of,
    expand,
    implemented,
    is_complex,
    is_traced,
    matmul,
    narrow,
    new_zeros,
    numbers,
    refuse_if,
    total,
    tril,
    triu,
    unrecorded,
    unsqueeze,
    where,
)
from gradcli.engine.registry.table import function, operator, primitive
from gradcli.engine.system import dtypes
from gradcli.engine.system.cascaded_sums import add_reduce
from gradcli.engine.system.dtypes import scalar_name
from gradcli.operators.movement.reshaping import broadcast_shape
from gradcli.operators.primitives import lapack
from gradcli.operators.primitives.lapack import raise_on_failure

FAMILY = "linalg"


def mH(x: Value) -> Any:
    """The matrices transposed and conjugated."""
    if x.ndim < 2:
        raise RuntimeError(
            f"tensor.mH is only supported on matrices or batches of matrices. Got {x.ndim}-D tensor."
        )
    return conj(x.mT)


def _column(x: Any) -> Any:
    return unsqueeze(x, -1)


def _row(x: Any) -> Any:
    return unsqueeze(x, -2)


# -- checks, in PyTorch's words -------------------------------------------------------------------
# The kernels by whose names PyTorch refuses half precision.
_KERNELS = {
    **dict.fromkeys(("linalg.lu", "linalg.lu_factor", "linalg.solve", "linalg.det"), "lu_cpu"),
    **dict.fromkeys(("cholesky", "linalg.cholesky"), "cholesky_cpu"),
    "linalg.svd": "linalg_svd_cpu",
    "linalg.eig": "linalg_eig_out_cpu",
    "linalg.eigh": "linalg_eigh_cpu",
    "linalg.qr": "geqrf_cpu",
}


_NO_KERNEL = ("cholesky", "linalg.eigh", "linalg.lu", "linalg.lu_factor")  # of integers either


def check_floating(name: str, a: Array, what: str = "Expected") -> None:
    """Refuses integers and half precision."""
    kind = scalar_name(a)
    if a.dtype.kind not in "fc" and name == "linalg.eig":
        raise RuntimeError(f"Unknown Complex ScalarType for {kind}")
    if a.dtype.kind not in "fc" and name not in _NO_KERNEL:
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got {kind}"
        )
    if a.dtype.kind not in "fc" or a.dtype == np.float16:
        if name in _KERNELS:
            raise NotImplementedError(f"\"{_KERNELS[name]}\" not implemented for '{kind}'")
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {kind}")


def check_matrix(name: str, a: Array, arg: str = "A") -> None:
    """Refuses what has less than two dimensions."""
    refuse_if(a.ndim < 2, "{}: The input tensor {} must have at least 2 dimensions.", name, arg)


def check_square(name: str, a: Array, arg: str = "A") -> None:
    """Refuses what is not a batch of square matrices."""
    check_matrix(name, a, arg)
    if a.shape[-1] != a.shape[-2]:
        raise RuntimeError(
            f"{name}: {arg} must be batches of square matrices, but they are {a.shape[-2]} by "
            f"{a.shape[-1]} matrices"
        )


def _check_sides(name: str, a: Array, b: Array, left: bool) -> None:
    """Refuses sides of an equation whose sizes do not meet."""
    if a.shape[-1] != b.shape[-2 if left else -1]:
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {equation} "
            f"({a.shape[-2]}x{a.shape[-1]} and {b.shape[-2]}x{b.shape[-1]})"
        )


def check_inputs(name: str, a: Array) -> None:
    """Refuses what is not a batch of square matrices of floating or complex numbers."""
    check_square(name, a)
    check_floating(name, a)


def _real(a: Value) -> Any:
    return a.real.dtype


# -- inverses and solves --------------------------------------------------------------------------
INVERSE_FAILED = (
    "The diagonal element {} is zero, the inversion could not be completed because the input matrix "
    "is singular."
)
SOLVE_FAILED = "The solver failed because the input matrix is singular."
CHOLESKY_FAILED = (
    "The factorization could not be completed because the input is not positive-definite (the leading "
    "minor of order {} is not positive-definite)."
)


@primitive(
    "leading",
    node="LinalgInvExBackward0",
    outputs="inverse | info",
    full_rank=True,
    jet=lambda s, A: s.inverse(A),
)
class inv_ex:
    def forward(A: Array, *, check_errors: bool = False) -> tuple[Array, Array]:
        name = "linalg.inv_ex" if check_errors else "linalg.inv"
        check_inputs(name, A)
        inverse, info = lapack.inverse(A)
        if check_errors:
            raise_on_failure(name, info, INVERSE_FAILED)
        return inverse, info

    def A(g: Value, inverse: Value) -> Any:
        """`-inverse.mT @ g @ inverse.mT`."""
        h = mH(inverse)
        return -matmul(h, matmul(g, h))


def _factored(A: Array) -> tuple[Any, Any]:
    return lapack.lu_factor(A.mT if lapack.is_turned(A) else A)


def is_vector(A: Value, B: Value) -> bool:
    """True where PyTorch takes B for (a batch of) vectors."""
    return B.ndim == 1 or (A.ndim - 1 == B.ndim and tuple(B.shape) == tuple(A.shape[:-1]))


@primitive(
    node="LinalgSolveExBackward0",
    outputs="result | LU pivots info",
    batching="solved",
    full_rank=True,
    jet=lambda s, A, B, left: s.solved(A, B, left),
)
class solve_ex:
    def forward(
        A: Array, B: Array, *, left: bool = True, check_errors: bool = False
    ) -> tuple[Array, Array, Array, Array]:
        name = "linalg.solve"
        check_floating(name, A)
        if A.dtype != B.dtype:
            raise RuntimeError(
                f"{name}: Expected A and B to have the same dtype, but found A of type {scalar_name(A)} and "
                f"B of type {scalar_name(B)} instead"
            )
        check_square(name, A)
        vector = is_vector(A, B)
        rhs = B[..., None] if vector else B
        refuse_if(rhs.ndim < 2, "{}: The input tensor B must have at least 2 dimensions.", name)
        _check_sides(name, A, rhs, left)
        lu, pivots = lapack.lu_factor(A)
        info = lapack.first_zero(lu)
        if info.any():
            result = lapack.solve_lu(lu, pivots, rhs, left=left)
        elif left:
            result = lapack.by_columns(lapack.solve(A, rhs))
        else:
            result = lapack.by_columns(lapack.solve(A.mT, rhs.mT)).mT
        if check_errors:
            raise_on_failure("linalg.solve_ex", info, SOLVE_FAILED)
        return (result[..., 0] if vector else result), lu, pivots, info

    def A__B(
        g: Value, A: Value, LU: Any, pivots: Any, result: Value, left: bool, mask: tuple[bool, ...]
    ) -> tuple[Any, Any]:
        """g_B solves with the adjoint; g_A is minus g_B times the result."""
        vector = is_vector(A, result)
        column = _column if vector else (lambda x: x)
        if unrecorded(g):
            g_b = lapack.solve_lu(LU, pivots, column(g), left=left, adjoint_=True)
        else:
            g_b = solve_ex(mH(A), column(g), left=left)[0]
        g_a = None
        if mask[0]:
            h = mH(column(result))
            g_a = -(matmul(g_b, h) if left else matmul(h, g_b))
        if not mask[1]:
            return g_a, None
        return g_a, (g_b.squeeze(-1) if vector else g_b)


@operator(
    node="LinalgSolveTriangularBackward0",
    samples="(randn(3,3) + 3*eye(3), randn(3,2), upper=True); "
    "(randn(3,3) + 3*eye(3), randn(2,3), upper=False, left=False)",
    batching="last 2 2",
    signature="linalg.solve_triangular(Tensor input, Tensor B, *, bool upper, bool "
    "left=True, bool unitriangular=False, Tensor out=None)",
    out="exact: expected scalar type {0} but found {1}",
)
class solve_triangular:
    """X with A X = B (left) or X A = B, reading one triangle of A."""

    def forward(
        self: Array, B: Array, *, upper: bool, left: bool = True, unitriangular: bool = False
    ) -> Array:
        name = "linalg.solve_triangular"
        check_square(name, self)
        check_matrix(name, B, "B")
        _check_sides(name, self, B, left)
        implemented("triangular_solve_cpu", self, "fdFD")
        if self.dtype != B.dtype:  # PyTorch copies B into a result of A's dtype
            B = np.real(B) if self.dtype.kind == "f" else B
            B = B.astype(self.dtype)
        return lapack.by_columns(
            lapack.solve_triangular(self, B, upper=upper, left=left, unit=unitriangular)
        )

    def self__B(
        g: Value,
        self: Value,
        result: Value,
        upper: bool,
        left: bool,
        unitriangular: bool,
        mask: tuple[bool, ...],
    ) -> tuple[Any, Any]:
        g_b = solve_triangular(mH(self), g, upper=not upper, left=left, unitriangular=unitriangular)
        g_a = None
        if mask[0]:
            h = mH(result)
            g_a = -(matmul(g_b, h) if left else matmul(h, g_b))
            g_a = triu(g_a, int(unitriangular)) if upper else tril(g_a, -int(unitriangular))
        return g_a, (g_b if mask[1] else None)


def _check_solved(name: str, b: Array, a: Array) -> None:
    """RuntimeError, in the words of PyTorch's older solvers, unless A X = B makes sense."""
    if b.dtype != a.dtype:
        kinds = [scalar_name(x) for x in (b, a)]
        raise RuntimeError(
            "Expected b and A to have the same dtype, but found b of type "
            f"{kinds[0]} and A of type {kinds[1]} instead."
        )
    if a.shape[-1] != a.shape[-2]:
        raise RuntimeError(
            f"A must be batches of square matrices, but they are {a.shape[-2]} by {a.shape[-1]} matrices"
        )
    if a.shape[-1] != b.shape[-2]:
        raise RuntimeError(
            f"Incompatible matrix sizes for {name}: each A matrix is {a.shape[-1]} by "
            f"{a.shape[-1]} but each b matrix is {b.shape[-2]} by {b.shape[-1]}"
        )


@primitive(
    node="TriangularSolveBackward0", outputs="solution cloned_coefficient", batching="last 2 2"
)
class triangular_solve_p:
    def forward(
        self: Array,
        A: Array,
        upper: bool = True,
        transpose: bool = False,
        unitriangular: bool = False,
    ) -> tuple[Array, Array]:
        for name, value in (("b", self), ("A", A)):
            if value.ndim < 2:
                raise RuntimeError(
                    f"torch.triangular_solve: Expected {name} to have at least 2 dimensions, but it has "
                    f"{value.ndim} dimensions instead"
                )
        _check_solved("triangular_solve", self, A)
        implemented("triangular_solve_cpu", A, "fdFD")
        a = A.mT if transpose else A
        solution = lapack.solve_triangular(a, self, upper=upper != transpose, unit=unitriangular)
        batch = broadcast_shape((A.shape[:-2], self.shape[:-2]))
        clone = np.broadcast_to(A, (*batch, *A.shape[-2:])).copy()
        return lapack.by_columns(solution), lapack.by_columns(clone)

    def self__A(
        grads: Sequence[Value],
        self: Value,
        A: Value,
        solution: Value,
        upper: bool,
        transpose: bool,
        unitriangular: bool,
        mask: tuple[bool, ...],
    ) -> tuple[Any, Any]:
        g, g_clone = grads
        g_b = g_a = None
        if g is None and g_clone is not None:
            g_b = new_zeros(solution, tuple(solution.shape))
            g_a = new_zeros(A, tuple(A.shape))
        if g is not None:
            g_b = triangular_solve_p(g, conj(A), upper, not transpose, unitriangular)[0]
            if mask[1]:
                if transpose:
                    g_a = -matmul(conj(solution), g_b.mT)
                else:
                    g_a = -matmul(g_b, mH(solution))
                k = int(unitriangular)
                g_a = triu(g_a, k) if upper else tril(g_a, -k)
        if g_clone is not None and mask[1]:
            g_a = g_clone if g_a is None else g_a + g_clone
        return (g_b if mask[0] else None), g_a


# -- determinants ---------------------------------------------------------------------------------
def _sign_of(pivots: Array) -> Any:
    swaps = (pivots != np.arange(1, pivots.shape[-1] + 1)).sum(-1)
    return 1 - 2 * (swaps % 2)


def _scaled_identity(scale: Value | None, pivots: Value) -> Any:
    return diag_embed(expand(_column(scale), pivots.shape)).mT


def _det_backward_singular(g: Any, A: Value) -> Any:
    """The adjugate by the singular value decomposition."""
    u, s, vh = svd_p(A, False)
    alpha = conj(det_p(u)[0] * det_p(vh)[0]) * g
    n = s.shape[-1]
    parts = [_without(s, i) for i in range(n)]
    gamma = cat([_column(p) for p in parts], -1) if n else s
    return matmul(u * _row(_column(alpha) * gamma), vh)


def _without(s: Tensor, i: int) -> Any:
    """The product of all but one element of the last dimension."""
    out: Any = 1
    for k in range(s.shape[-1]):
        if k != i:
            out = s[..., k] * out
    return out if s.shape[-1] > 1 else s[..., 0] * 0 + 1


class Singular(Point):
    """Where a determinant is 0: its gradient is the cofactors, which rules that divide by it miss."""

    __slots__ = ()

    def __init__(self, asked: str = "") -> None:
        super().__init__(None, asked=asked, kind=MISSED)

    def count(self, call: WatchedCall) -> Any:
        return np.count_nonzero(call.results[0] == 0)

    def mask(self, call: WatchedCall) -> Any:
        return np.equal(call.results[0], 0)

    def touched(self, call: WatchedCall) -> dict[str, Any]:
        shape = np.shape(call["A"])
        return {"A": np.broadcast_to(self.mask(call)[..., None, None], shape)}

    def spread(self, call: WatchedCall, g: Any, name: str, own: Any, draw: Draw) -> Any:
        return own

    truth = "cofactors"

    def true(self, call: WatchedCall, g: Array, own: Array) -> Any:
        """The gradient of the matrix, whatever its rank."""
        scale = np.asarray(g)[..., None, None]
        return np.where(self.touched(call)["A"], scale * _cofactors(np.asarray(call["A"])), own)

    def pulled(self, call: WatchedCall, g: Array, name: str, own: Array, theirs: Theirs) -> Any:
        return self.true(call, g, own)


def _cofactors(matrix: Array) -> Any:
    """The cofactors of square matrices, whatever their rank: of each element the signed minor."""
    n = matrix.shape[-1]
    found = np.empty(matrix.shape, matrix.dtype)
    for i in range(n):
        rows = np.delete(matrix, i, -2)
        for j in range(n):
            minor = np.delete(rows, j, -1)
            found[..., i, j] = (-1) ** (i + j) * (_determinant(minor) if n > 1 else 1.0)
    return found


def _determinant(matrix: Array) -> Any:
    return det_p.kernel(matrix)[0]


@primitive(
    "leading",
    node="LinalgDetBackward0",
    outputs="result | LU pivots",
    symbolic="det[0]:",
    switch=Singular("Q26"),
    full_rank=True,
    jet=lambda s, A: s.determinant(A),
    critical=lambda result: result == 0,
)
class det_p:
    def forward(A: Array) -> tuple[Array, Array, Array]:
        check_inputs("linalg.det", A)
        lu, pivots = _factored(A)
        result = lu.diagonal(0, -2, -1).prod(-1) * _sign_of(pivots).astype(A.dtype)
        return result, lu, pivots

    def A(g: Any, A: Any, LU: Any, pivots: Any, result: Value) -> Any:
        """`g * result * inv(A).mT`."""
        if unrecorded(g):
            scale = g * conj(result)
            scale = np.asarray(scale) if isinstance(scale, np.generic) else scale
            d = _scaled_identity(scale, pivots)
            diagonal = LU.diagonal(0, -2, -1)
            zero = diagonal == 0
            if hasattr(zero, "guard") or zero.any():  # a plan's array tells nobody
                eps = np.finfo(_real(LU)).eps
                LU = LU + diag_embed(np.where(zero, eps, 0).astype(LU.dtype))
            return lapack.solve_adjoint(A, LU, pivots, d)
        d = _scaled_identity(g * conj(result), pivots)
        small = np.abs(numbers(result)) < 100 * np.finfo(_real(numbers(A))).eps
        # A traced array lies in a cell, and the formula of a trace is that of regular matrices.
        if not anywhere(small) or is_traced(A):
            return solve_ex(mH(A), d)[0]
        singular = _det_backward_singular(g, A)
        if not anywhere(~small):
            return singular
        mask = wrap(small[..., None, None])
        eye = wrap(np.eye(A.shape[-1], dtype=A.array.dtype))
        regular = solve_ex(mH(where(mask, eye, A)), d)[0]
        return where(mask, singular, regular)


def _units(values: Array, size: Array) -> Any:
    """The numbers' signs; of NaN, as PyTorch, 0."""
    if values.dtype.kind == "c":
        return np.where(size == 0, 0, values / np.where(size == 0, 1, size))
    return np.where(np.isnan(values), values.dtype.type(0), np.sign(values))


@primitive(
    "leading",
    node="LinalgSlogdetBackward0",
    outputs="sign logabsdet | LU pivots",
    symbolic="linalg.slogdet:",
    full_rank=True,
)
class slogdet_p:
    def forward(A: Array) -> tuple[Array, Array, Array, Array]:
        check_inputs("linalg.slogdet", A)
        lu, pivots = _factored(A)
        diagonal = lu.diagonal(0, -2, -1)
        size = np.abs(diagonal)
        with np.errstate(all="ignore"):
            logabsdet = np.log(size).sum(-1)
            unit = _units(diagonal, size)
        sign = (unit.prod(-1) * _sign_of(pivots)).astype(A.dtype)
        return sign[()], logabsdet, lu, pivots

    def A(grads: Any, A: Any, LU: Any, pivots: Any, sign: Value) -> Any:
        g_sign, g = grads[:2]
        if is_complex(A):
            if g_sign is not None:
                # In this order: a Python complex times a NumPy scalar would be Python's again.
                turn = (conj(g_sign) * sign).imag * 1j
                g = -turn if g is None else g - turn
        elif g is None:
            return None
        d = _scaled_identity(g, pivots)
        if is_complex(A) and not is_complex(d):
            d = cast(d, dtype_of(A))
        if unrecorded(g):
            return lapack.solve_adjoint(A, LU, pivots, d)
        return solve_ex(mH(A), d)[0]


# -- Cholesky -------------------------------------------------------------------------------------
def _cholesky_backward(g: Value, L: Value, upper: bool) -> Any:
    lower = mH(L) if upper else L
    h = mH(lower)
    phi = tril(matmul(h, mH(g) if upper else g))
    phi = 0.5 * (phi + mH(tril(phi, -1)))
    phi = solve_triangular(h, phi, upper=True)
    return solve_triangular(lower, phi, upper=False, left=False)


@primitive("leading", node="LinalgCholeskyExBackward0", outputs="L | info", full_rank=True)
class cholesky_ex_p:
    def forward(
        A: Array, *, upper: bool = False, check_errors: bool = False
    ) -> tuple[Array, Array]:
        name = "linalg.cholesky_ex" if check_errors else "linalg.cholesky"
        check_inputs(name, A)
        factor, info = lapack.cholesky(A, upper)
        if check_errors:
            raise_on_failure(name, info, CHOLESKY_FAILED)
        return factor, info

    A = _cholesky_backward


@operator(
    "leading",
    node="CholeskyBackward0",
    full_rank=True,
    samples="(randn(3,3) * 0.1 + eye(3) * 2); (2*eye(3), upper=True)",
    signature="cholesky(Tensor input, bool upper=False, *, Tensor out=None)",
    out="cast: castable",
)
class cholesky:
    """L with input = L @ L.mH (an older name of linalg.cholesky)."""

    def forward(self: Array, upper: bool = False) -> Array:
        if not self.size:
            return self.copy()
        check_square("cholesky", self)
        check_floating("cholesky", self)
        factor, info = lapack.cholesky(self, upper)
        raise_on_failure("cholesky", info, CHOLESKY_FAILED)
        return factor

    self = lambda g, result, upper: _cholesky_backward(g, result, upper)


@operator(
    node="CholeskySolveBackward0",
    samples="(randn(3,2), tril(randn(3,3)) + 3*eye(3))",
    batching="last 2 2",
    signature="cholesky_solve(Tensor input, Tensor input2, bool upper=False, *, Tensor out=None)",
    out="cast: castable",
)
class cholesky_solve:
    """X with A X = input, from the Cholesky factor of A."""

    def forward(self: Array, input2: Array, upper: bool = False) -> Array:
        for value in (self, input2):
            if value.ndim < 2:
                which = "b" if value is self else "u"
                raise RuntimeError(
                    f"{which} should have at least 2 dimensions, but has {value.ndim} dimensions instead"
                )
        _check_solved("cholesky_solve", self, input2)
        implemented("cholesky_solve_cpu", self, "fdFD")
        h = lapack.adjoint(input2)
        first, second = (h, input2) if upper else (input2, h)
        x = lapack.solve_triangular(first, self, upper=False)
        return lapack.by_columns(lapack.solve_triangular(second, x, upper=True))

    def self__input2(
        g: Value, self: Value, input2: Value, result: Value, upper: bool, mask: tuple[bool, ...]
    ) -> tuple[Any, Any]:
        g_b = cholesky_solve(g, input2, upper)
        g_l = None
        if mask[1]:
            common = matmul(g_b, mH(result))
            common = common + mH(common)
            g_l = -(matmul(input2, common) if upper else matmul(common, input2))
        return (g_b if mask[0] else None), g_l


@operator(
    "leading",
    node="CholeskyInverseBackward0",
    samples="(tril(randn(3,3)) + 3*eye(3))",
    signature="cholesky_inverse(Tensor input, bool upper=False, *, Tensor out=None)",
    out="cast: castable",
)
class cholesky_inverse:
    """The inverse of A from its Cholesky factor."""

    def forward(self: Array, upper: bool = False) -> Array:
        check_square("cholesky_inverse", self)
        implemented("cholesky_inverse_out_cpu", self, "fdFD")
        raise_on_failure("cholesky_inverse", lapack.first_zero(self), INVERSE_FAILED)
        return cholesky_solve.kernel(np.eye(self.shape[-1], dtype=self.dtype), self, upper)

    def self(g: Value, self: Value, upper: bool, result: Value) -> Any:
        common = g + mH(g)
        common = matmul(result, matmul(common, result))
        return -(matmul(self, common) if upper else matmul(common, self))


# -- QR -------------------------------------------------------------------------------------------
def _halve_diagonal(x: Value) -> Any:
    """The matrices with half their diagonals; written in place where there is a place."""
    if isinstance(x, Tensor):
        x.diagonal(0, -2, -1).mul_(0.5)
        return x
    weights = 1 - 0.5 * np.eye(x.shape[-1])
    return x * weights.astype(_real(numbers(x)))


@primitive("leading", node="LinalgQrBackward0", outputs="Q R", symbolic="linalg.qr: mode")
class qr_p:
    def forward(A: Array, mode: str = "reduced") -> tuple[Array, Array]:
        if mode not in ("reduced", "complete", "r"):
            raise RuntimeError(
                f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or "
                "'complete'"
            )
        check_matrix("linalg.qr", A)
        check_floating("linalg.qr", A)
        return lapack.qr(A, mode)

    def A(grads: Any, Q: Value, R: Value, mode: str) -> Any:
        g_q, g_r = grads
        if mode == "r":
            raise RuntimeError(
                "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please "
                "use linalg.qr(A, mode='reduced') if you are going to differentiate through linalg.qr."
            )
        m, n = Q.shape[-2], R.shape[-1]
        if mode == "complete" and m > n:
            raise RuntimeError(
                "The QR decomposition is not differentiable when mode='complete' and nrows > ncols."
            )
        g: Any = None
        if g_r is not None:
            g = matmul(g_r, mH(R))
        if g_q is not None:
            inner = matmul(mH(Q), g_q)
            g = -inner if g is None else g - inner
        if m >= n:
            upper = triu(g)
            out = matmul(Q, _halve_diagonal(upper + mH(upper)))
            if g_q is not None:
                out = out + g_q
            return solve_triangular(mH(R), out, upper=False, left=False)
        skew = -g
        skew = tril(skew - mH(skew))
        if is_complex(skew):
            skew = _halve_diagonal(skew)
        out = solve_triangular(mH(narrow(R, -1, 0, m)), matmul(Q, skew), upper=False, left=False)
        out = cat([out, new_zeros(out, (*out.shape[:-1], n - m))], -1)
        return out if g_r is None else out + matmul(Q, g_r)


# -- eigenvalues ----------------------------------------------------------------------------------
def _phase_matters(name: str, diagonal: Tensor) -> None:
    imag = numbers(diagonal).imag
    if not np.allclose(imag, 0, rtol=1e-2, atol=1e-2):
        raise RuntimeError(
            f"{name}: The eigenvectors in the complex case are specified up to multiplication by "
            "e^{i phi}. The specified loss function depends on this quantity, so it is ill-defined."
        )


def _with_diagonal(x: Value, diagonal: Value | None) -> Any:
    """The matrices with another diagonal (zeros where it is None)."""
    off = _off_diagonal(x)
    return off if diagonal is None else off + diag_embed(diagonal)


def _off_diagonal(x: Any) -> Any:
    mask = ~np.eye(x.shape[-1], dtype=bool)
    if unrecorded(x):
        return np.where(mask, x, x.dtype.type(0))
    return x * wrap(mask.astype(_real(x.array)))


def _gaps(values: Value) -> Any:
    """Differences of all pairs, with ones on the diagonal."""
    gaps = _row(values) - _column(values)
    return gaps + constant(np.eye(values.shape[-1], dtype=_real(numbers(values))), values)


def _eig_backward(grads: Any, values: Value, vectors: Value, hermitian: bool) -> Any:
    g_l, g_v = grads
    h = mH(vectors)
    if g_v is None:
        if hermitian:
            return matmul(vectors * _row(g_l), h)
        return solve_ex(h, _column(g_l) * h)[0]
    inner = matmul(h, g_v)
    diagonal = inner.diagonal(0, -2, -1)
    if is_complex(vectors):
        _phase_matters("linalg_eigh_backward" if hermitian else "linalg_eig_backward", diagonal)
    if hermitian:
        inner = 0.5 * (inner - mH(inner))
    else:
        inner = inner - matmul(h, vectors * _row(diagonal.real))
    inner = _with_diagonal(inner / conj(_gaps(values)), g_l)
    if hermitian:
        return matmul(vectors, matmul(inner, h))
    return solve_ex(h, matmul(inner, h))[0]


class Repeated(Point):
    """Where eigenvalues are equal. Towards a change of the matrix they part as those of its block do."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None)

    def count(self, call: WatchedCall) -> Any:
        values = call.results[0]
        return np.count_nonzero(values[..., 1:] == values[..., :-1])

    def mask(self, call: WatchedCall) -> Any:
        values = np.asarray(call.results[0])
        same = values[..., 1:] == values[..., :-1]
        found = np.zeros(values.shape, bool)
        found[..., 1:] |= same
        found[..., :-1] |= same
        return found

    def touched(self, call: WatchedCall) -> dict[str, Any]:
        some = self.mask(call).any(-1)[..., None, None]
        return {"A": np.broadcast_to(some, np.shape(call["A"]))}

    def towards(self, call: WatchedCall, tangents: Mapping[str, Any]) -> Any:
        values, change = np.asarray(call.results[0]), np.asarray(tangents["A"])
        read = np.tril(change) if call["UPLO"].upper() == "L" else mH(np.triu(change))
        change = read + mH(np.tril(read, -1))
        vectors = lapack.eigh(np.asarray(call["A"]), call["UPLO"].upper())[1]
        found = np.zeros(values.shape)
        for at in np.ndindex(values.shape[:-1]):
            inner = mH(vectors[at]) @ change[at] @ vectors[at]
            for value in np.unique(values[at]):
                same = np.flatnonzero(values[at] == value)
                found[(*at, same)] = lapack.eigh(inner[np.ix_(same, same)], "L")[0]
        return found

    def spread(self, call: WatchedCall, g: Array, name: str, own: Array, draw: Draw) -> Any:
        size = np.abs(np.asarray(g)).max(initial=0.0)
        return np.where(self.touched(call)["A"], size * draw(np.shape(own)), own)


@primitive(
    "leading",
    node="LinalgEighBackward0",
    outputs="eigenvalues eigenvectors",
    symbolic="linalg.eigh: UPLO -",
    switch=Repeated(),
    jet=lambda s, A: s.eigh(A),
)
class eigh_p:
    def forward(A: Array, UPLO: str = "L", compute_v: bool = True) -> tuple[Array, Array]:
        check_inputs("linalg.eigh", A)
        if UPLO.upper() not in ("L", "U"):
            raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
        if not compute_v:
            return lapack.eigh(A, UPLO.upper())[0], np.zeros(0, A.dtype)
        values, vectors = lapack.eigh(A, UPLO.upper())
        return values, lapack.by_columns(vectors)

    A = lambda grads, eigenvalues, eigenvectors: _eig_backward(
        grads, eigenvalues, eigenvectors, True
    )


def _to_real(g: Value, complex_input: bool) -> Any:
    return g if complex_input or not is_complex(g) else g.real


@primitive(
    "leading", node="LinalgEigBackward0", outputs="eigenvalues eigenvectors", symbolic="linalg.eig:"
)
class eig_p:
    def forward(self: Array) -> tuple[Array, Array]:
        check_square("linalg.eig", self)
        check_floating("linalg.eig", self)
        kind = np.result_type(self.dtype, np.complex64)
        values, vectors = lapack.eig(self)
        return values.astype(kind), lapack.by_columns(vectors.astype(kind))

    self = lambda grads, eigenvalues, eigenvectors, self_dtype: _to_real(
        _eig_backward(grads, eigenvalues, eigenvectors, False), self_dtype.kind == "c"
    )


# -- singular values ------------------------------------------------------------------------------
def _skew(x: Value) -> Any:
    return x - mH(x)


def _check_phases(uu: Any, vv: Any) -> None:
    """Refuses a loss that depends on the free phase of singular vectors."""
    total = 0
    for part in (uu, vv):
        if part is not None:
            total = total + numbers(part).diagonal(0, -2, -1).imag
    if not np.allclose(total, 0, rtol=1e-2, atol=1e-2):
        raise RuntimeError(
            "svd_backward: The singular vectors in the complex case are specified up to multiplication by "
            "e^{i phi}. The specified loss function depends on this phase term, making it ill-defined."
        )


@primitive(
    "leading",
    node="LinalgSvdBackward0",
    outputs="U S Vh",
    symbolic="linalg.svd: full_matrices -",
    jet=lambda s, A: s.svd(A),
)
class svd_p:
    def forward(
        A: Array, full_matrices: bool = True, compute_uv: bool = True
    ) -> tuple[Array, Array, Array]:
        check_matrix("linalg.svd", A)
        check_floating("linalg.svd", A)
        if not compute_uv:
            empty = np.zeros(0, A.dtype)
            return empty, lapack.svdvals(A), empty
        u, s, vh = lapack.svd(A, full_matrices)
        return lapack.by_columns(u), s, lapack.by_columns(vh)

    def A(
        grads: Any, U: Value, S: Value, Vh: Value, full_matrices: bool, S_sym_argsize_minus_1: int
    ) -> Any:
        g_u, g_s, g_vh = grads
        if full_matrices:
            size = S_sym_argsize_minus_1
            U, Vh = narrow(U, -1, 0, size), narrow(Vh, -2, 0, size)
            g_u = None if g_u is None else narrow(g_u, -1, 0, size)
            g_vh = None if g_vh is None else narrow(g_vh, -2, 0, size)
        m, n = U.shape[-2], Vh.shape[-1]
        if g_u is None and g_vh is None:
            if m >= n:
                return matmul(U, _column(g_s) * Vh)
            return matmul(U * _row(g_s), Vh)
        uu = None if g_u is None else _skew(matmul(mH(U), g_u))
        vv = None if g_vh is None else _skew(matmul(Vh, mH(g_vh)))
        if is_complex(U):
            _check_phases(uu, vv)
        squares = _gaps(S * S)
        if uu is None:
            inner = _column(S) * (vv / squares)
        elif vv is None:
            inner = (uu / squares) * _row(S)
        else:
            inner = (uu * _row(S) + _column(S) * vv) / squares
        if g_s is not None:
            inner = inner + diag_embed(g_s)
        if is_complex(U) and uu is not None and vv is not None:
            inner = inner + diag_embed(uu.diagonal(0, -2, -1) / (2.0 * S))
        if m > n and g_u is not None:
            out = matmul(U, inner)
            over = g_u / _row(S)
            out = out + over - matmul(U, matmul(mH(U), over))
            return matmul(out, Vh)
        if m < n and g_vh is not None:
            out = matmul(inner, Vh)
            over = g_vh / _column(S)
            out = out + over - matmul(matmul(over, mH(Vh)), Vh)
            return matmul(U, out)
        return matmul(U, matmul(inner, Vh)) if m >= n else matmul(matmul(U, inner), Vh)


# -- pseudo-inverses and least squares ------------------------------------------------------------
def _cutoff(s: Array, m: int, n: int, atol: Array | Number | None, rtol: Any) -> Any:
    if rtol is None:
        rtol = np.finfo(s.dtype).eps * max(m, n) if atol is None else 0.0
    largest = s.max(-1, keepdims=True, initial=0)
    relative = np.asarray(rtol)[..., None] * largest
    return np.maximum(np.asarray(0.0 if atol is None else atol)[..., None], relative)


def pseudo_inverse(
    a: Array, atol: Array | None = None, rtol: Array | None = None, hermitian: bool = False
) -> Any:
    """The Moore-Penrose inverses of arrays."""
    m, n = a.shape[-2:]
    if a.size == 0:
        return np.zeros((*a.shape[:-2], n, m), a.dtype)
    if hermitian:
        check_square("linalg.eigh", a)
        values, vectors = lapack.eigh(a)
        size = np.abs(values)
        keep = size > _cutoff(size, m, n, atol, rtol)
        inverse = np.where(keep, 1 / np.where(keep, values, 1), 0).astype(values.dtype)
        return (vectors * inverse[..., None, :]) @ lapack.adjoint(vectors)
    u, s, vh = lapack.svd(a, False)
    keep = s > _cutoff(s, m, n, atol, rtol)
    inverse = np.where(keep, 1 / np.where(keep, s, 1), 0).astype(s.dtype)
    return lapack.adjoint(vh) @ (inverse[..., None] * lapack.adjoint(u))


def _pinv_backward(g: Value, result: Value, self: Value) -> Any:
    pinv, A = result, self
    m, n = A.shape[-2], A.shape[-1]
    p_h, g_h = mH(pinv), mH(g)
    if m <= n:
        k = matmul(g_h, pinv)
        kp = matmul(k, p_h)
        return (
            -mH(matmul(pinv, k))
            + kp
            - matmul(matmul(A, pinv), kp)
            + matmul(matmul(p_h, pinv), g_h - matmul(k, A))
        )
    k = matmul(pinv, g_h)
    pk = matmul(p_h, k)
    return (
        -mH(matmul(k, pinv))
        + matmul(matmul(g_h - matmul(A, k), pinv), p_h)
        + pk
        - matmul(matmul(pk, pinv), A)
    )


@primitive(node="LinalgPinvBackward0", numpy=np.linalg.pinv, batching="pseudo_inverses")
class pinv_p:
    def forward(
        self: Array,
        *,
        atol: Array | None = None,
        rtol: Array | None = None,
        hermitian: bool = False,
    ) -> Array:
        if self.ndim < 2 or self.dtype.char not in "fdFD":
            kind = scalar_name(self)
            raise RuntimeError(
                f"linalg.pinv({kind}{{{list(self.shape)}}}): expected a tensor with 2 or more dimensions of "
                "float, double, cfloat or cdouble types"
            )
        return pseudo_inverse(self, atol, rtol, hermitian)

    self = _pinv_backward


@primitive(
    node="LinalgLstsqBackward0",
    outputs="solution residuals | rank singular_values",
    batching="least_squares",
)
class lstsq_p:
    def forward(
        self: Array, b: Array, rcond: float | None = None, *, driver: str | None = None
    ) -> tuple[Array, Array, Array, Array]:
        name = "torch.linalg.lstsq"
        refuse_if(self.ndim < 2, "{}: input must have at least 2 dimensions.", name)
        refuse_if(b.ndim < 1, "{}: other must have at least 1 dimension.", name)
        if self.dtype != b.dtype:
            raise RuntimeError(
                f"{name}: Expected input and other to have the same dtype, but got input's dtype "
                f"{scalar_name(self)} and other's dtype {scalar_name(b)}"
            )
        if driver not in (None, "gels", "gelsd", "gelss", "gelsy"):
            raise RuntimeError(
                f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)"
            )
        if not 0 <= self.ndim - b.ndim <= 1:
            raise RuntimeError(
                f"{name}: input.dim() must be greater or equal to other.dim() and (input.dim() - "
                "other.dim()) <= 1"
            )
        if self.dtype.char not in "fdFD":
            raise RuntimeError("This function doesn't handle types other than float and double")
        m, n = self.shape[-2:]
        vector = is_vector(self, b)
        rhs = b[..., None] if vector else b
        if rhs.shape[-2] != m:
            raise RuntimeError(
                f"{name}: input.size(-2) should match other.size(-{1 if vector else 2})"
            )
        driver = driver or "gelsy"
        rtol = np.finfo(self.dtype).eps * max(m, n) if rcond is None else rcond
        if np.isnan(self).any() or np.isnan(b).any():
            raise lapack.LinAlgError(
                f"{name}: The input or other contains NaN, which has no solution."
            )
        u, s, vh = lapack.svd(self, False)
        limit = 0.0 if driver == "gels" else rtol * s.max(-1, keepdims=True, initial=0)
        keep = s > limit
        inverse = np.where(keep, 1 / np.where(keep, s, 1), 0).astype(s.dtype)
        x = lapack.adjoint(vh) @ (inverse[..., None] * (lapack.adjoint(u) @ rhs))
        if not lapack.is_finite(rhs):
            x = np.full_like(x, np.nan)
        empty = np.zeros(0, s.dtype)
        rank = keep.sum(-1)
        residuals = empty
        if driver != "gelsy" and m > n and (rank == n).all():
            residuals = add_reduce(np.abs(self @ x - rhs) ** 2, -2)
        # PyTorch's is a part of the memory that held the right-hand sides.
        held = np.zeros((*x.shape[:-2], x.shape[-1], max(m, n)), x.dtype).swapaxes(-1, -2)
        held[..., :n, :] = x
        solution = held[..., :n, :]
        return (
            solution[..., 0] if vector else solution,
            residuals,
            np.zeros(0, np.int64) if driver == "gels" else np.asarray(rank, np.int64),
            s if driver in ("gelsd", "gelss") else empty,
        )

    def self__b(
        grads: Sequence[Value | None],
        self: Value,
        b: Value,
        solution: Value,
        mask: tuple[bool, ...],
    ) -> tuple[Any, Any]:
        g_x, g_r = grads[0], grads[1]
        vector = is_vector(self, b)
        column = _column if vector else (lambda x: x)
        g_a = g_b = None
        if g_x is not None:
            pinv = pinv_p(self)
            if mask[0]:
                g_pinv = matmul(column(g_x), mH(column(b)))
                g_a = _pinv_backward(g_pinv, pinv, self)
            if mask[1]:
                g_b = matmul(mH(pinv), column(g_x))
                g_b = g_b.squeeze(-1) if vector else g_b
        if g_r is not None and 0 not in g_r.shape:
            difference = matmul(self, column(solution)) - column(b)
            if mask[0]:
                extra = 2 * matmul(_row(g_r) * difference, mH(column(solution)))
                g_a = extra if g_a is None else g_a + extra
            if mask[1]:
                extra = -2 * _row(g_r) * difference
                extra = extra.squeeze(-1) if vector else extra
                g_b = extra if g_b is None else g_b + extra
        return g_a, g_b


# -- LU -------------------------------------------------------------------------------------------
def _lu_inputs(name: str, A: Array, pivot: bool) -> None:
    if A.ndim < 2:
        raise RuntimeError(
            f"{name.replace('linalg.lu_f', 'torch.lu_f')}: Expected tensor with 2 or more dimensions. "
            f"Got size: {list(A.shape)} instead"
        )
    check_floating(name, A)
    refuse_if(not pivot, "{}: LU without pivoting is not implemented on the CPU", name)


LU_FAILED = (
    "U[{0},{0}] is zero and using it on lu_solve would result in a division by zero. If you still want "
    "to perform the factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
)


def _lu_backward(g_l: Value | None, g_u: Value | None, P: Value, L: Value, U: Value) -> Any:
    """The gradient of A = P L U for square, wide and tall matrices."""
    m, n = L.shape[-2], U.shape[-1]
    k = min(m, n)
    if m == n:
        return _lu_square(g_l, g_u, P, L, U)
    if m < n:
        u1 = narrow(U, -1, 0, k)
        inner = None if g_l is None else matmul(mH(L), g_l)
        right = None
        if g_u is not None:
            g_u1, g_u2 = narrow(g_u, -1, 0, k), narrow(g_u, -1, k, n - k)
            cross = matmul(g_u2, mH(narrow(U, -1, k, n - k)))
            inner = -cross if inner is None else inner - cross
            inner = tril(inner, -1) + triu(matmul(triu(g_u1), mH(u1)))
            right = solve_triangular(mH(L), g_u2, upper=True, unitriangular=True)
        else:
            inner = tril(inner, -1)
        left = solve_triangular(mH(u1), inner, upper=False, left=False)
        left = solve_triangular(mH(L), left, upper=True, unitriangular=True)
        if right is None:
            right = new_zeros(left, (*left.shape[:-1], n - k))
        return matmul(P, cat([left, right], -1))
    l1 = narrow(L, -2, 0, k)
    inner = None if g_u is None else matmul(g_u, mH(U))
    lower = None
    if g_l is not None:
        g_l1, g_l2 = narrow(g_l, -2, 0, k), narrow(g_l, -2, k, m - k)
        cross = matmul(mH(narrow(L, -2, k, m - k)), g_l2)
        inner = -cross if inner is None else inner - cross
        inner = triu(inner) + tril(matmul(mH(l1), g_l1), -1)
        lower = solve_triangular(mH(U), g_l2, upper=False, left=False)
    else:
        inner = triu(inner)
    top = solve_triangular(mH(l1), inner, upper=True, unitriangular=True)
    top = solve_triangular(mH(U), top, upper=False, left=False)
    if lower is None:
        lower = new_zeros(top, (*top.shape[:-2], m - k, n))
    return matmul(P, cat([top, lower], -2))


def _lu_square(g_l: Value | None, g_u: Value | None, P: Value, L: Value, U: Value) -> Any:
    inner = None
    if g_l is not None:
        inner = tril(matmul(mH(L), g_l), -1)
    if g_u is not None:
        upper = triu(matmul(g_u, mH(U)))
        inner = upper if inner is None else inner + upper
    out = solve_triangular(mH(U), inner, upper=False, left=False)
    return matmul(P, solve_triangular(mH(L), out, upper=True, unitriangular=True))


@primitive("leading", node="LinalgLuFactorExBackward0", outputs="LU | pivots info")
class lu_factor_ex_p:
    def forward(
        A: Array, *, pivot: bool = True, check_errors: bool = False
    ) -> tuple[Array, Array, Array]:
        _lu_inputs("linalg.lu_factor", A, pivot)
        lu, pivots = lapack.lu_factor(A)
        info = lapack.first_zero(lu)
        if check_errors:
            raise_on_failure("torch.linalg.lu_factor_ex", info, LU_FAILED, RuntimeError)
        return lu, pivots, info

    def A(g: Value, LU: Value, pivots: Value, pivot: bool) -> Any:
        lower, upper, p = lu_unpack_p(LU, pivots)
        k = min(LU.shape[-2:])
        g_l = tril(narrow(g, -1, 0, k), -1)
        g_u = triu(narrow(g, -2, 0, k))
        return _lu_backward(g_l, g_u, p, lower, upper)


@primitive("leading", node="LinalgLuBackward0", outputs="L U | P")
class lu_p:
    """(L, U, P): PyTorch numbers only the outputs that have gradients."""

    def forward(A: Array, *, pivot: bool = True) -> tuple[Array, Array, Array]:
        _lu_inputs("linalg.lu", A, pivot)
        p, lower, upper = lapack.unpack(*lapack.lu_factor(A))
        return lower, upper, p

    A = lambda grads, P, L, U, pivot: _lu_backward(grads[0], grads[1], P, L, U)


def _lu_unpack_backward(grads: Sequence[Array], m: int, n: int) -> Any:
    g_l, g_u = grads
    k = min(m, n)
    parts = []
    if g_l is not None:
        lower = tril(g_l, -1)
        wide = (*lower.shape[:-1], n - k)
        parts.append(lower if n == k else cat([lower, new_zeros(lower, wide)], -1))
    if g_u is not None:
        upper = triu(g_u)
        tall = (*upper.shape[:-2], m - k, n)
        parts.append(upper if m == k else cat([upper, new_zeros(upper, tall)], -2))
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


@primitive("leading", node="LuUnpackBackward0", outputs="L U | P")
class lu_unpack_p:
    def forward(
        LU_data: Array, LU_pivots: Array, unpack_data: bool = True, unpack_pivots: bool = True
    ) -> tuple[Array, Array, Array]:
        if unpack_pivots and ((LU_pivots < 1) | (LU_pivots > LU_data.shape[-2])).any():
            raise RuntimeError(
                "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive.Did you properly "
                "pass the result of lu_factor?"
            )
        p, lower, upper = lapack.unpack(LU_data, LU_pivots)
        empty = np.zeros(0, LU_data.dtype)
        factors = (lower, upper) if unpack_data else (empty, empty)
        return *factors, (p if unpack_pivots else empty)

    LU_data = lambda grads, LU_data_sym_argsize_minus_2, LU_data_sym_argsize_minus_1: (
        _lu_unpack_backward(grads[:2], LU_data_sym_argsize_minus_2, LU_data_sym_argsize_minus_1)
    )


@operator(
    node="LinalgLuSolveBackward0",
    batching="last 2 1 2",
    samples="(*linalg.lu_factor(randn(3,3) + 3*eye(3)), randn(3,2))",
    signature="linalg.lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, "
    "bool adjoint=False, Tensor? out=None)",
    out="exact",
)
class lu_solve:
    """X with A X = B from the packed factors of A."""

    def forward(
        LU: Array, pivots: Array, B: Array, *, left: bool = True, adjoint: bool = False
    ) -> Array:
        name = "linalg.lu_solve"
        check_floating(name, LU)
        if LU.dtype != B.dtype:
            raise RuntimeError(
                f"{name}: Expected LU and B to have the same dtype, but found LU of type "
                f"{scalar_name(LU)} and B of type {scalar_name(B)} instead"
            )
        if pivots.dtype != np.int32:
            raise RuntimeError(
                f"{name}: Expected pivots to be a Tensor of torch.int32 but got {dtypes.of(pivots.dtype)}"
            )
        check_square(name, LU, "LU")
        check_matrix(name, B, "B")
        _check_sides(name, LU, B, left)
        if pivots.shape[-1:] != LU.shape[-1:]:
            raise RuntimeError(
                f"{name}: Number of pivots per batch should be same as the dimension of the matrix"
            )
        if pivots.shape[:-1] != LU.shape[:-2]:
            raise RuntimeError(
                f"{name}: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with "
                f"shape {list(pivots.shape)} instead"
            )
        if (pivots < 1).any():
            raise RuntimeError(
                "Pivots given to lu_solve must all be greater or equal to 1. Did you properly pass the "
                "result of lu_factor?"
            )
        if (pivots > LU.shape[-1]).any():
            raise RuntimeError(
                "Pivots given to lu_solve must all be smaller or equal to LU.size(-2). Did you properly "
                "pass the result of lu_factor?"
            )
        return lapack.solve_lu(LU, pivots, B, left=left, adjoint_=adjoint)

    def LU(g: Value, LU: Value, pivots: Value, result: Value, left: bool, adjoint: bool) -> Any:
        lower, upper, p = lu_unpack_p(LU, pivots)
        x = result if left else mH(result)
        if left != adjoint:
            r = matmul(-(g if left else mH(g)), mH(x))
            r = solve_triangular(mH(upper), r, upper=False)
            g_l = solve_triangular(mH(lower), matmul(r, mH(upper)), upper=True, unitriangular=True)
            return tril(g_l, -1) + triu(r)
        r = -matmul(matmul(matmul(p.mT, x), mH(g) if left else g), p)
        r = solve_triangular(mH(lower), r, upper=True, left=False, unitriangular=True)
        g_u = solve_triangular(mH(upper), matmul(mH(lower), r), upper=False, left=False)
        return tril(r, -1) + triu(g_u)

    B = lambda g, LU, pivots, left, adjoint: lu_solve(LU, pivots, g, left=left, adjoint=not adjoint)


# -- the exponential ------------------------------------------------------------------------------
@operator(
    "leading",
    node="LinalgMatrixExpBackward0",
    symbolic="matrix_exp:",
    method=True,
    aliases="matrix_exp",
    samples="(randn(3,3)); matrix_exp(randn(2,2,2))",
    signature="linalg.matrix_exp(Tensor input)",
    jet=lambda s, self: s.matrix_exp(self),
)
class matrix_exp:
    """The exponentials of square matrices."""

    def forward(self: Array) -> Array:
        check_square("linalg.matrix_exp", self)
        check_floating("linalg.matrix_exp", self)
        return lapack.expm(self)

    def self(g: Value, self: Value) -> Any:
        """The differential at the adjoint: a corner of the exponential of a block matrix."""
        a = mH(self)
        n = a.shape[-1]
        top = cat([a, g], -1)
        bottom = cat([new_zeros(a, tuple(a.shape)), a], -1)
        return matrix_exp(cat([top, bottom], -2))[..., :n, n:]


# -- Householder reflectors -----------------------------------------------------------------------
def _reflected(v: Value, tau: Value, x: Value) -> Any:
    """(I - tau v v^H) x, for one reflector of each matrix."""
    return x - _column(_column(tau)) * matmul(_column(v), matmul(mH(_column(v)), x))


def _reflector(input: Value, i: int) -> Any:
    """Reflector i with its leading one and the zeros above."""
    m = input.shape[-2]
    rest = narrow(input, -2, i + 1, m - i - 1)[..., i]
    head = np.zeros((*input.shape[:-2], i + 1), numbers(input).dtype)
    head[..., i] = 1
    return cat([constant(head, input), rest], -1)


def _pull_back(
    g: Value, starts: list[Any], input: Value, tau: Value
) -> tuple[list[Any], list[Any], Any]:
    """Gradients of each reflector and factor of x -> H_0 H_1 ... H_k x, and of x itself.

    starts[i] is what H_i was applied to.
    """
    count = tau.shape[-1]
    g_v: list[Any] = []
    g_tau: list[Any] = []
    for i in range(count):
        v, t, x = _column(_reflector(input, i)), tau[..., i], starts[i]
        scale = _column(_column(t))
        row = matmul(mH(v), x)
        g_row = matmul(mH(v), g)
        inner = total(conj(row) * g_row, -1)[..., 0]
        g_tau.append(-inner)
        part = conj(scale) * matmul(g, mH(row)) + scale * matmul(x, mH(g_row))
        g_v.append(-part)
        g = g - conj(scale) * matmul(v, g_row)
    return g_v, g_tau, g


def _assembled(g_v: list[Any], input: Value) -> Any:
    """The gradients of reflectors where the input holds them: below the diagonal."""
    n = input.shape[-1]
    columns = list(g_v)
    if len(columns) < n:
        columns.append(new_zeros(input, (*input.shape[:-1], n - len(columns))))
    return tril(cat(columns, -1), -1) if columns else new_zeros(input, tuple(input.shape))


def _orthogonal_backward(g: Value, x: Value, input: Value, tau: Value) -> tuple[Any, Any, Any]:
    starts: list[Any] = []
    for i in reversed(range(tau.shape[-1])):
        starts.append(x)
        x = _reflected(_reflector(input, i), tau[..., i], x)
    starts.reverse()
    g_v, g_tau, g_x = _pull_back(g, starts, input, tau)
    stacked = cat([_column(t) for t in g_tau], -1) if g_tau else new_zeros(tau, tuple(tau.shape))
    return _assembled(g_v, input), stacked, g_x


@operator(
    "leading",
    node="LinalgHouseholderProductBackward0",
    name="linalg.householder_product",
    samples="(randn(3,2), rand(2))",
    out="cast: torch.castable",
)
class householder_product:
    """The first columns of a product of Householder reflectors."""

    def forward(input: Array, tau: Array) -> Array:
        name = "torch.linalg.householder_product"
        refuse_if(input.ndim < 2, "{}: input must have at least 2 dimensions.", name)
        if input.shape[-2] < input.shape[-1]:
            raise RuntimeError(
                f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]"
            )
        if not tau.ndim:
            raise IndexError("Dimension specified as -1 but tensor has no dimensions")
        if input.shape[-1] < tau.shape[-1]:
            raise RuntimeError(
                f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]"
            )
        if tau.ndim != input.ndim - 1:
            raise RuntimeError(
                f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal to "
                f"{tau.ndim} and input.ndim is equal to {input.ndim}"
            )
        if tau.shape[:-1] != input.shape[:-2]:
            raise RuntimeError(
                f"{name}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got "
                f"{list(tau.shape[:-1])}"
            )
        if input.dtype != tau.dtype:
            raise RuntimeError(
                f"{name}: tau dtype {scalar_name(tau)} does not match input dtype {scalar_name(input)}"
            )
        implemented("orgqr_cpu", input, "fdFD")
        return lapack.householder_product(input, tau)

    def input__tau(
        g: Value, input: Value, result: Value, tau: Value, mask: tuple[bool, ...]
    ) -> tuple[Any, Any]:
        if 0 in input.shape or 0 in tau.shape:
            return None, None
        m, n = input.shape[-2:]
        eye = constant(np.eye(m, n, dtype=dtype_of(input)), input)
        x = expand(eye, (*input.shape[:-2], m, n))
        return _orthogonal_backward(g, x, input, tau)[:2]


@function(
    "orgqr(Tensor input, Tensor input2, *, Tensor out=None)",
    samples="(randn(3,2), rand(2))",
    out=(
        "cast: torch.linalg.householder_product: Expected result to be safely "
        "castable from {0} dtype, but got result with dtype {1}"
    ),
)
def orgqr(input: Tensor, input2: Tensor) -> Any:
    """`linalg.householder_product` under LAPACK's name."""
    return householder_product(input, input2)


def _check_ormqr(input: Array, tau: Array, other: Array, left: bool) -> None:
    """RuntimeError, in PyTorch's words, for operands of ormqr that do not fit together."""
    name = "torch.ormqr"
    for what, value in (("input", input), ("other", other)):
        refuse_if(value.ndim < 2, "{}: {} must have at least 2 dimensions.", name, what)
    if tau.ndim == 0:
        raise IndexError("Dimension specified as -1 but tensor has no dimensions")
    side = -2 if left else -1
    if other.shape[side] != input.shape[-2]:
        raise RuntimeError(f"{name}: other.shape[{side}] must be equal to input.shape[-2]")
    if tau.shape[-1] != min(other.shape[side], input.shape[-1]):
        raise RuntimeError(
            f"{name}: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1])"
        )
    if tau.ndim != input.ndim - 1:
        raise RuntimeError(
            f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal to "
            f"{tau.ndim} and input.ndim is equal to {input.ndim}"
        )
    if other.ndim != input.ndim:
        raise RuntimeError(
            f"{name}: Expected other to have the same number of dimensions as input, but got "
            f"other.ndim equal to {other.ndim} and input.ndim is equal to {input.ndim}"
        )
    for what, batch in (("tau", tau.shape[:-1]), ("other", other.shape[:-2])):
        if batch != input.shape[:-2]:
            raise RuntimeError(
                f"{name}: Expected batch dimensions of {what} to be equal to input.shape[:-2], but "
                f"got {list(batch)}"
            )
    for what, value in (("tau", tau), ("other", other)):
        if value.dtype != input.dtype:
            kinds = [scalar_name(x) for x in (input, value)]
            raise RuntimeError(
                f"{name}: Expected input and {what} to have the same dtype, but input has dtype"
                f"{kinds[0]} and {what} has dtype {kinds[1]}"
            )


@operator(
    "leading",
    node="OrmqrBackward0",
    samples="(randn(3,2), rand(2), randn(3,4))",
    signature="ormqr(Tensor input, Tensor input2, Tensor input3, bool left=True, bool "
    "transpose=False, *, Tensor out=None)",
    out=(
        "exact: torch.ormqr: Expected input and result to have the same dtype, but "
        "input has dtype{0} and result has dtype {1}"
    ),
)
class ormqr:
    """A matrix times the orthogonal matrix of Householder reflectors."""

    def forward(
        self: Array, input2: Array, input3: Array, left: bool = True, transpose: bool = False
    ) -> Array:
        _check_ormqr(self, input2, input3, left)
        if 0 in self.shape or 0 in input3.shape:
            return input3.copy()
        implemented("ormqr_cpu", self, "fdFD")
        m = self.shape[-2]
        full = np.zeros((*self.shape[:-1], m), self.dtype)
        full[..., : self.shape[-1]] = self[..., :m]
        q = lapack.householder_product(full, input2)
        q = lapack.adjoint(q) if transpose else q
        return lapack.by_columns(q @ input3 if left else input3 @ q)

    def self__input2__input3(
        g: Value,
        self: Value,
        input2: Value,
        input3: Value,
        result: Value,
        left: bool,
        transpose: bool,
        mask: tuple[bool, ...],
    ) -> tuple[Any, Any, Any]:
        """Every case as Q times something: <g, Q^H C> is <C, Q g>, and C Q is the adjoint of Q^H C^H."""
        g_other = ormqr(self, input2, g, left, not transpose)
        if 0 in self.shape or 0 in input3.shape:
            return None, None, g_other
        if left:
            pair = (g, input3) if not transpose else (input3, g)
        else:
            pair = (mH(input3), mH(g)) if not transpose else (mH(g), mH(input3))
        g_v, g_tau, _ = _orthogonal_backward(pair[0], pair[1], self, input2)
        return g_v, g_tau, g_other

"""Products of vectors and matrices, composed by the operands' ranks as in PyTorch."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import cache
from math import prod
from typing import Any

import numpy as np

from gradcli.engine.core import modes
from gradcli.engine.core.declaration import Array, DType, Ints, Shape, Value
from gradcli.engine.core.modes import users_level
from gradcli.engine.core.promotion import mismatch
from gradcli.engine.core.tensor import Tensor, sized_dim, wrap_dim
from gradcli.engine.registry.binder import Parser
from gradcli.engine.registry.rule_helpers import (
    conj,
    constant,
    dtype_of,
    expand,
    expect_alike,
    new_zeros,
    refuse_if,
    transposed,
    unsqueeze,
)
from gradcli.engine.registry.table import function, operator, primitive, resolve
from gradcli.engine.system import dtypes
from gradcli.engine.system.array_memory import ARRAYS, as_operands
from gradcli.engine.system.blocked_products import (
    matrices_dot,
    rows_product,
    suits_product,
    vector_dot,
)
from gradcli.engine.system.cascaded_sums import add_reduce
from gradcli.engine.system.dtypes import c_type, scalar_name

FAMILY = "linalg"


def _by(rule: Callable[[Any], Callable[..., Any]]) -> Callable[..., Any]:
    """A batching rule of `batching_helpers`, which is imported when it is first needed."""

    @cache
    def found() -> Any:
        from gradcli.engine.registry import batching_helpers

        return rule(batching_helpers)

    return lambda *args: found()(*args)


def _products() -> tuple[Any, ...]:
    return mm, mv, bmm


# -- refusals, in PyTorch's words -----------------------------------------------------------------
def _times(a: Array, b: Array) -> str:
    return f"({a.shape[0]}x{a.shape[1]} and {b.shape[0]}x{b.shape[1]})"


def _no_bool(name: str, *operands: Any) -> None:
    alone = len(operands) == 1  # otherwise a dimension may have size 0
    if operands[0].dtype.kind == "b" and (alone or all(value.size for value in operands)):
        raise NotImplementedError(f"\"{name}\" not implemented for 'Bool'")


# Where the dtype of `out` is another.
_BY_DOT = "exact: result dtype {1} does not match input dtype {0}"
_BY_MV = "exact: addmv input tensors must have the same dtype, but got {1}, {0}, and {0}"


def _refuse_dot(a: Array, b: Array) -> None:
    if a.ndim != 1 or b.ndim != 1:
        from gradcli.engine.core.errors import VectorsExpectedError

        raise VectorsExpectedError((a.ndim, b.ndim))
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"dot : expected both vectors to have same dtype, but found {scalar_name(a)} and {scalar_name(b)}"
        )
    if a.shape != b.shape:
        from gradcli.engine.core.errors import VectorLengthsError

        raise VectorLengthsError((a.size, b.size))
    _no_bool("dot", a)


def _refuse_mv(mat: Array, vec: Array, like: Array) -> None:
    if mat.ndim != 2 or vec.ndim != 1:
        raise RuntimeError(
            f"vector + matrix @ vector expected, got {like.ndim}, {mat.ndim}, {vec.ndim}"
        )
    if mat.shape[1] != vec.size or like.size not in (1, mat.shape[0]):
        from gradcli.engine.core.errors import ProductShapesError

        raise ProductShapesError(
            f"size mismatch, got input ({like.size if like.ndim else 1}), mat "
            f"({mat.shape[0]}x{mat.shape[1]}), vec ({vec.size})"
        )
    if not mat.dtype == vec.dtype == like.dtype:
        raise RuntimeError(
            "addmv input tensors must have the same dtype, but got "
            f"{scalar_name(like)}, {scalar_name(mat)}, and {scalar_name(vec)}"
        )
    _no_bool("addmv_impl_cpu", mat, vec)


def _refuse_mm(self: Array, mat2: Array) -> None:
    refuse_if(self.ndim != 2, "self must be a matrix")
    refuse_if(mat2.ndim != 2, "mat2 must be a matrix")
    if self.shape[1] != mat2.shape[0]:
        from gradcli.engine.core.errors import ProductShapesError

        raise ProductShapesError(f"mat1 and mat2 shapes cannot be multiplied {_times(self, mat2)}")
    if self.dtype != mat2.dtype:
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {c_type(self)} != {c_type(mat2)}"
        )
    _no_bool("addmm_impl_cpu_", self, mat2)


def _check_sizes(*asked: tuple[Any, int]) -> None:
    """IndexError, in PyTorch's words, for operands without a dimension whose size is asked for first."""
    for value, dim in asked:
        sized_dim(dim, value.ndim)


def _check_batches(batch1: Array, batch2: Array) -> None:
    for i, batch in enumerate((batch1, batch2), 1):
        refuse_if(batch.ndim != 3, "batch{} must be a 3D tensor", i)


def _refuse_bmm(batch1: Array, batch2: Array) -> None:
    _check_batches(batch1, batch2)
    wanted = [batch1.shape[0], batch1.shape[2]]
    if list(batch2.shape[:2]) != wanted:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: {wanted} but got: "
            f"{list(batch2.shape[:2])}."
        )
    if not batch1.size or not batch2.size:
        return
    expect_alike(batch1, batch2)
    _no_bool("bmm", batch1)


def expanded(value: Array, shape: Shape) -> Any:
    """An array broadcast to a shape; RuntimeError, in PyTorch's words, if it does not fit."""
    if value.shape == shape:
        return value
    refusal = mismatch([shape, value.shape])
    if refusal is None and value.ndim <= len(shape):
        offset = len(shape) - value.ndim
        if all(n in (1, shape[offset + i]) for i, n in enumerate(value.shape)):
            return np.broadcast_to(value, shape)
    if value.ndim > len(shape):
        raise RuntimeError(
            f"expand(torch.{scalar_name(value)}Tensor{{{list(value.shape)}}}, size={list(shape)}): the "
            f"number of sizes provided ({len(shape)}) must be greater or equal to the number of "
            f"dimensions in the tensor ({value.ndim})"
        )
    offset = len(shape) - value.ndim
    at = next(
        i for i in reversed(range(value.ndim)) if value.shape[i] not in (1, shape[offset + i])
    )
    raise RuntimeError(
        f"The expanded size of the tensor ({shape[offset + at]}) must match the existing size "
        f"({value.shape[at]}) at non-singleton dimension {offset + at}.  Target sizes: "
        f"{list(shape)}.  Tensor sizes: {list(value.shape)}"
    )


# -- what rules say on arrays and tensors alike ---------------------------------------------------
def _t(matrix: Any) -> Any:
    """A matrix transposed, as `t()`."""
    return matrix.T if isinstance(matrix, ARRAYS) else matrix.t()


def _batch_t(batch: Value) -> Any:
    """The matrices of a batch transposed."""
    return transposed(batch, 1, 2)


def _dotted(a: Array, b: Array) -> Array:
    """`a.dot(b)`; a constant's own method would want the numbers of a place that has none."""
    return a.dot(b) if type(b) is np.ndarray or type(a) is not np.ndarray else np.dot(a, b)


def _scaled(g: Value, beta: int) -> Any:
    """`g` times the conjugate of a number; `g` itself for 1."""
    return g if beta == 1 else g * conj(beta)


def _column_major(sizes: Shape, strides: Ints) -> bool:
    return strides[0] == 1 and strides[1] == sizes[0]


def _mm_mat1(g: Value, mat2: Value, sizes: Shape, strides: Ints, alpha: int = 1) -> Any:
    """`alpha * (g @ mat2.T)`."""
    if isinstance(g, ARRAYS):
        return _scaled(matrices_dot(g, _t(conj(mat2))), alpha)
    if _column_major(sizes, strides):
        return _scaled(mm(conj(mat2), _t(g)).t(), alpha)
    return _scaled(mm(g, conj(_t(mat2))), alpha)


def _mm_mat2(g: Value, mat1: Value, sizes: Shape, strides: Ints, alpha: int = 1) -> Any:
    """`alpha * (mat1.T @ g)`."""
    if isinstance(g, ARRAYS):
        if suits_product(mat1, g):
            return _scaled(rows_product(mat1, g), alpha)
        if _column_major(sizes, strides):  # of a weight: its gradient then lies as the weight does
            return _scaled(_t(_t(g).dot(conj(mat1))), alpha)
        return _scaled(_dotted(_t(conj(mat1)), g), alpha)
    if _column_major(sizes, strides):
        return _scaled(mm(_t(g), conj(mat1)).t(), alpha)
    return _scaled(mm(conj(_t(mat1)), g), alpha)


def _ger(g: Value, vec: Value) -> Any:
    return g.reshape(g.shape[0], 1) * vec


def _outer(vectors: list[Any]) -> Any:
    a, b = vectors
    return a[:, None] * b[None, :]


# -- vectors and matrices -------------------------------------------------------------------------
def _dot(self: Array, tensor: Array) -> Array:
    if (
        self.ndim != 1
        or self.shape != tensor.shape
        or self.dtype is not tensor.dtype
        or self.dtype.kind == "b"
    ):
        _refuse_dot(self, tensor)
    return vector_dot(self, tensor)


@operator(
    "bilinear own",
    kernel=_dot,
    node="DotBackward0",
    samples="(randn(3), randn(3)); (randn(1), randn(1)); (randn(0), randn(0))",
    batching=_by(lambda rules: rules.product((1, 1), _products)),
    out=_BY_DOT,
)
class dot:
    """The sum of the products of two vectors' elements."""

    self = lambda g, tensor: g * conj(tensor)
    tensor = lambda g, self: g * conj(self)


@operator(
    "own",
    node="VdotBackward0",
    batching=_by(lambda rules: rules.conjugated(rules.product((1, 1), _products))),
    aliases="",
    samples="(randn(3), randn(3)); (tensor([1+2j, 3]), tensor([1j, 2]))",
    out=_BY_DOT,
)
class vdot:
    """As `dot`, with the first vector conjugated."""

    def forward(self: Array, other: Array) -> Any:
        _refuse_dot(self, other)
        return np.vdot(self, other)

    self = lambda g, other: conj(g) * other
    other = lambda g, self: g * self


@operator(
    "bilinear own",
    node="MvBackward0",
    samples="(randn(2,3), randn(3)); (randn(0,3), randn(3)); (randn(1,1), randn(1))",
    batching=_by(lambda rules: rules.product((2, 1), _products)),
    symbolic="matmul",
    out=_BY_MV,
)
class mv:
    """The product of a matrix and a vector."""

    def forward(self: Array, vec: Array) -> Array:
        if (
            self.ndim != 2
            or vec.ndim != 1
            or self.shape[1] != vec.shape[0]
            or self.dtype is not vec.dtype
            or self.dtype.kind == "b"
        ):
            _refuse_mv(self, vec, np.empty(self.shape[:1], vec.dtype))
        return self.dot(vec)

    self = lambda g, vec: _ger(g, conj(vec))
    vec = lambda g, self: (
        _dotted(_t(conj(self)), g) if isinstance(g, ARRAYS) else mv(_t(conj(self)), g)
    )


def _matrices(name: str) -> tuple[str, ...]:
    plain = f"{name}(Tensor input, Tensor mat2"
    return (
        f"{plain}, *, Tensor out=None)",
        f"{plain}, ScalarType out_dtype, *, Tensor out=None)|function",
    )


@operator(
    "bilinear own",
    node="MmBackward0",
    samples="(randn(2,3), randn(3,4)); (randn(2,0), randn(0,3)); (randn(1,1), randn(1,1))",
    batching=_by(lambda rules: rules.product((2, 2), _products)),
    symbolic="matmul",
    signature=_matrices("mm"),
    out="exact",
)
class mm:
    """The product of two matrices."""

    def forward(self: Array, mat2: Array) -> Array:
        if (
            self.ndim != 2
            or mat2.ndim != 2
            or self.shape[1] != mat2.shape[0]
            or self.dtype is not mat2.dtype
            or self.dtype.kind == "b"
        ):
            _refuse_mm(self, mat2)
        return matrices_dot(self, mat2)

    self = lambda g, mat2, self_sym_sizes, self_sym_strides: _mm_mat1(
        g, mat2, self_sym_sizes, self_sym_strides
    )
    mat2 = lambda g, self, mat2_sym_sizes, mat2_sym_strides: _mm_mat2(
        g, self, mat2_sym_sizes, mat2_sym_strides
    )


@operator(
    "bilinear own",
    node="BmmBackward0",
    samples="(randn(2,3,4), randn(2,4,5)); (randn(0,3,4), randn(0,4,5))",
    batching=_by(lambda rules: rules.bmm),
    symbolic="matmul",
    signature=_matrices("bmm"),
    out="exact",
)
class bmm:
    """The products of two batches of matrices."""

    def forward(self: Array, mat2: Array) -> Array:
        odd = (
            self.dtype is not mat2.dtype
            or self.dtype.kind == "b"
            or not self.ndim == mat2.ndim == 3
        )
        if odd or self.shape[0] != mat2.shape[0] or self.shape[2] != mat2.shape[1]:
            _refuse_bmm(self, mat2)
            return (self @ mat2).astype(mat2.dtype)  # empty, so the dtypes do not matter
        return self @ mat2

    self = lambda g, mat2: bmm(g, conj(_batch_t(mat2)))
    mat2 = lambda g, self: bmm(conj(_batch_t(self)), g)


# -- a product added to something -----------------------------------------------------------------
def _added(name: str, a: str, b: str, out_dtype: bool = False) -> tuple[str, ...]:
    """The signatures of `beta * input + alpha * (a @ b)`, with the deprecated ones."""
    pair, options = f"Tensor {a}, Tensor {b}", "*, Scalar beta=1, Scalar alpha=1, Tensor out=None)"
    beside = f"{name}(Tensor input, {pair}, ScalarType out_dtype, {options}|function"
    return (
        f"{name}(Scalar beta, Tensor input, Scalar alpha, {pair}, *, Tensor out=None)|deprecated",
        f"{name}(Scalar beta, Tensor input, {pair}, *, Tensor out=None)|deprecated",
        f"{name}(Tensor input, {pair}, {options}",
        *([beside] if out_dtype else []),
    )


def _mix(self: Array, product: Array, beta: float, alpha: float) -> Any:
    """`beta * self + alpha * product`, where beta or alpha 0 ignores even NaN."""
    beta, alpha = _number(beta, product.dtype), _number(alpha, product.dtype)
    scaled = product if alpha == 1 else product * alpha if alpha else np.zeros_like(product)
    if self.shape != product.shape[1:]:  # of one row, NumPy's own way is the shortest
        self = expanded(self, product.shape)
    if beta == 0:
        return scaled
    return scaled + (self if beta == 1 else self * beta)


def _number(value: float, dtype: DType) -> Any:
    """A coefficient in the result's dtype; RuntimeError if it does not fit."""
    return value if value.__class__ is int and value in (0, 1) else dtypes.checked(value, dtype)


def _refuse_mixed(self: Array, mat1: Array, mat2: Array) -> None:
    for name, value in (("self", self), ("mat1", mat1)):
        if value.dtype != mat2.dtype:
            raise RuntimeError(
                f"{name} and mat2 must have the same dtype, but got {scalar_name(value)} and "
                f"{scalar_name(mat2)}"
            )


@operator(
    "inplace own analytic",
    node="AddmmBackward0",
    samples="(randn(2,2), randn(2,3), randn(3,2)); (randn(2), randn(2,3), randn(3,2), beta=0.5, alpha=2)",
    batching=_by(lambda rules: rules.added_product(mm.in_batch)),
    signature=_added("addmm", "mat1", "mat2", out_dtype=True),
    out="exact",
)
class addmm:
    """`beta * input + alpha * (mat1 @ mat2)`."""

    def forward(
        self: Array, mat1: Array, mat2: Array, *, beta: float = 1, alpha: float = 1
    ) -> Array:
        for i, mat in enumerate((mat1, mat2), 1):
            if mat.ndim != 2:
                raise RuntimeError(f"mat{i} must be a matrix, got {mat.ndim}-D tensor")
        if mat1.shape[1] != mat2.shape[0]:
            from gradcli.engine.core.errors import ProductShapesError

            raise ProductShapesError(
                f"mat1 and mat2 shapes cannot be multiplied {_times(mat1, mat2)}"
            )
        _refuse_mixed(self, mat1, mat2)
        _no_bool("addmm_impl_cpu_", mat1)
        return _mix(self, matrices_dot(mat1, mat2), beta, alpha)

    self = _scaled
    mat1 = lambda g, mat2, mat1_sym_sizes, mat1_sym_strides, alpha: _mm_mat1(
        g, mat2, mat1_sym_sizes, mat1_sym_strides, alpha
    )
    mat2 = lambda g, mat1, mat2_sym_sizes, mat2_sym_strides, alpha: _mm_mat2(
        g, mat1, mat2_sym_sizes, mat2_sym_strides, alpha
    )


@operator(
    "inplace own analytic",
    node="AddmvBackward0",
    samples="(randn(2), randn(2,3), randn(3)); (randn(2), randn(2,3), randn(3), beta=0.5, alpha=2)",
    batching=_by(lambda rules: rules.added_product(mv.in_batch)),
    symbolic="addmm",
    signature=_added("addmv", "mat", "vec"),
    out="exact",
)
class addmv:
    """`beta * input + alpha * (mat @ vec)`."""

    def forward(self: Array, mat: Array, vec: Array, *, beta: float = 1, alpha: Any = 1) -> Array:
        _refuse_mv(mat, vec, self)
        if self.dtype.kind == "c" and beta == 1:
            self = self * self.dtype.type(1)  # as BLAS does, which turns infinity times 0 into NaN
        return _mix(self, mat.dot(vec), beta, alpha)

    self = _scaled
    mat = lambda g, vec, alpha: _scaled(_ger(g, conj(vec)), alpha)
    vec = lambda g, mat, alpha: _scaled(mv(conj(_t(mat)), g), alpha)


def _whole(number: Any, name: str) -> Any:
    """A coefficient of integers; RuntimeError in PyTorch's words for others."""
    if isinstance(number, (float, complex)):
        raise RuntimeError(
            f"For integral input tensors, argument {name} must not be a floating point number."
        )
    return number


@operator(
    "inplace common",
    node="AddrBackward0",
    samples="(randn(2,3), randn(2), randn(3)); (randn(3), randn(2), randn(3), beta=0.5, alpha=2)",
    batching=_by(lambda rules: rules.added_product(_outer)),
    signature=_added("addr", "vec1", "vec2"),
)
class addr:
    """`beta * input + alpha * outer(vec1, vec2)`."""

    def forward(self: Array, vec1: Array, vec2: Array, *, beta: float = 1, alpha: Any = 1) -> Array:
        for i, vec in enumerate((vec1, vec2), 1):
            if vec.ndim != 1:
                raise RuntimeError(f"addr: Expected 1-D argument vec{i}, but got {vec.ndim}-D")
        if self.dtype.kind in "biu":
            beta, alpha = _whole(beta, "beta"), _whole(alpha, "alpha")
        if isinstance(alpha, bool) and self.dtype.kind != "b":
            raise RuntimeError("Boolean alpha only supported for Boolean results.")
        if isinstance(beta, bool) and self.dtype.kind != "b":
            raise RuntimeError("Boolean beta only supported for Boolean results.")
        if self.dtype.kind == "b":
            product = (vec1[:, None] & vec2) & bool(alpha)
            return (expanded(self, product.shape) & True) | product if beta else product
        beta, alpha = (dtypes.checked(number, self.dtype) for number in (beta, alpha))
        product = (alpha * vec1)[:, None] * vec2
        self = expanded(self, product.shape)
        return product if beta == 0 else as_operands(beta * self + product, self)

    self = _scaled
    vec1 = lambda g, vec2, alpha: _scaled(mv(g, conj(vec2)), alpha)
    vec2 = lambda g, vec1, alpha: _scaled(mv(_t(g), conj(vec1)), alpha)


@operator(
    "inplace own",
    node="AddbmmBackward0",
    batching=_by(lambda rules: rules.added_product(bmm.in_batch, (0,))),
    samples="(randn(3,5), randn(2,3,4), randn(2,4,5)); "
    "(randn(5), randn(2,3,4), randn(2,4,5), beta=0.5, alpha=2)",
    signature=_added("addbmm", "batch1", "batch2"),
    out="exact: self and mat2 must have the same dtype, but got {1} and {0}",
)
class addbmm:
    """`beta * input + alpha * sum(batch1[i] @ batch2[i])`."""

    def forward(
        self: Array, batch1: Array, batch2: Array, *, beta: float = 1, alpha: Any = 1
    ) -> Array:
        _check_sizes((batch1, 1), (batch2, 2))
        _check_batches(batch1, batch2)
        if batch1.shape[0] != batch2.shape[0]:
            raise RuntimeError(
                "batch1 and batch2 must have same number of batches, got "
                f"{batch1.shape[0]} and {batch2.shape[0]}"
            )
        if batch1.shape[2] != batch2.shape[1]:
            raise RuntimeError(
                f"Incompatible matrix sizes for bmm ({batch1.shape[1]}x{batch1.shape[2]} and "
                f"{batch2.shape[1]}x{batch2.shape[2]})"
            )
        if batch1.shape[0]:
            _refuse_mixed(self, batch1, batch2)
            _no_bool("addmm_impl_cpu_", batch1)
        return _mix(self, add_reduce(batch1 @ batch2, 0, batch1.dtype), beta, alpha)

    self = _scaled

    def batch1(
        g: Value,
        batch2: Value,
        batch1_sym_argsize_0: int,
        batch1_sym_argsize_1: int,
        batch2_sym_argsize_2: int,
        alpha: int,
    ) -> Any:
        sizes = batch1_sym_argsize_0, batch1_sym_argsize_1, batch2_sym_argsize_2
        return _scaled(bmm(expand(unsqueeze(g, 0), sizes), conj(_batch_t(batch2))), alpha)

    def batch2(
        g: Value,
        batch1: Value,
        batch1_sym_argsize_0: int,
        batch1_sym_argsize_1: int,
        batch2_sym_argsize_2: int,
        alpha: int,
    ) -> Any:
        sizes = batch1_sym_argsize_0, batch1_sym_argsize_1, batch2_sym_argsize_2
        return _scaled(bmm(conj(_batch_t(batch1)), expand(unsqueeze(g, 0), sizes)), alpha)


@operator(
    "inplace own",
    node="BaddbmmBackward0",
    samples="(randn(2,3,5), randn(2,3,4), randn(2,4,5)); "
    "(randn(5), randn(2,3,4), randn(2,4,5), beta=0.5, alpha=2)",
    batching=_by(lambda rules: rules.added_product(bmm.in_batch)),
    symbolic="addmm",
    signature=_added("baddbmm", "batch1", "batch2", out_dtype=True),
    out="exact",
)
class baddbmm:
    """`beta * input + alpha * bmm(batch1, batch2)`."""

    def forward(
        self: Array, batch1: Array, batch2: Array, *, beta: float = 1, alpha: Any = 1
    ) -> Array:
        _check_sizes((batch1, 0), (batch1, 1), (batch2, 2))
        _no_bool("baddbmm", batch1, batch2)
        _refuse_bmm(batch1, batch2)
        if self.dtype != batch1.dtype:
            raise RuntimeError(
                f"Input dtypes must be the same, got: input {c_type(self)}, batch1: {c_type(batch1)}, "
                f"batch2: {c_type(batch2)}"
            )
        return _mix(self, batch1 @ batch2, beta, alpha)

    self = _scaled
    batch1 = lambda g, batch2, alpha: _scaled(bmm(g, conj(_batch_t(batch2))), alpha)
    batch2 = lambda g, batch1, alpha: _scaled(bmm(conj(_batch_t(batch1)), g), alpha)


# -- shapes that only products make ---------------------------------------------------------------
@primitive("linear", node="UnsafeViewBackward0", sizes="size", symbolic="reshape")
class unsafe_view:
    """A fresh result in another shape."""

    forward = lambda self, size: self.reshape(size)
    self = lambda g, self_sym_sizes: g.reshape(self_sym_sizes)


@primitive("linear", node="SqueezeBackward4", symbolic="reshape")
class squeeze_own:
    """A fresh result without one dimension of size 1 (PyTorch's in-place `squeeze_`)."""

    def forward(self: Array, dim: int) -> Array:
        return self.reshape(self.shape[:dim] + self.shape[dim + 1 :])

    self = lambda g, dim, self_sym_sizes: unsqueeze(g, dim)


# -- matmul ---------------------------------------------------------------------------------------
def _row_major_batches(a: Array) -> bool:
    """True if all dimensions but the last can be merged without a copy."""
    strides = a.strides
    return all(strides[i] == strides[i + 1] * a.shape[i + 1] for i in range(a.ndim - 2))


def _should_fold(a: Tensor, b: Tensor) -> bool:
    """PyTorch's choice whether matmul folds a batch into one matrix product."""
    larger, smaller = (a, b) if a.ndim >= b.ndim else (b, a)
    if larger.ndim < 3 or smaller.ndim > 2:
        return False
    if getattr(smaller, "requires_grad", False):
        return True
    if a.ndim == 2:
        return False
    array = larger.array if isinstance(larger, Tensor) else larger
    if larger is b:
        array = array.mT
    return array.size == 0 or (hasattr(array, "strides") and _row_major_batches(array))


def _folded(a: Tensor, b: Tensor) -> Any:
    """A batch times a matrix or vector, as one product."""
    turned = b.ndim > a.ndim
    batch = b.mT if turned else a
    other = b if not turned else a.t() if a.ndim == 2 else a
    shape = tuple(batch.shape[:-1])
    rows = batch.reshape(prod(shape), batch.shape[-1])
    if other.ndim == 1:
        return unsafe_view(mv(rows, other), shape)
    out = unsafe_view(mm(rows, other), (*shape, other.shape[1]))
    return out.mT.contiguous() if turned else out


def _broadcast_shapes(a: Ints, b: Ints) -> tuple[int, ...]:
    if a == b:
        return a
    refusal = mismatch([a, b])
    if refusal is not None:
        raise refusal
    return np.broadcast_shapes(a, b)


def _merged(x: Tensor, batch: Ints, tail: Ints) -> Any:
    """An operand expanded to a batch of all shapes, whose dims become one."""
    from gradcli.engine.core.views import is_plain  # which a gradient of vectors need not import

    size, own = (prod(batch), *tail), tuple(x.shape)
    if own == (*batch, *tail) and is_plain(x):  # nobody sees a view, but as what a node has saved
        state = modes.local.state if own == size else None
        return x if state is not None and state.silent else x.reshape(size)
    return x.expand((*batch, *tail)).reshape(size)


def _batched(a: Tensor, b: Tensor) -> Any:
    """Broadcast batches of matrices, as one `bmm`."""
    from gradcli.engine.core.views import is_plain

    n = a.shape[-2] if a.ndim > 1 else 1
    batch_a, batch_b = tuple(a.shape[:-2]), tuple(b.shape[:-2])
    if a.ndim == b.ndim == 3 and batch_a != batch_b:
        if batch_a == (1,) and getattr(a, "requires_grad", False):
            return matmul(a.squeeze(0), b)
        if batch_b == (1,) and getattr(b, "requires_grad", False):
            return matmul(a, b.squeeze(0))
    elif a.ndim == b.ndim == 3 and is_plain(a) and is_plain(b):
        return bmm(a, b)  # nothing is saved that would show a view
    shape = _broadcast_shapes(batch_a, batch_b)
    left = _merged(a, shape, (n, a.shape[-1]))
    right = _merged(b, shape, tuple(b.shape[-2:]))
    out = bmm(left, right.unsqueeze(2)).squeeze(-1) if b.ndim == 1 else bmm(left, right)
    shape += (n,) if a.ndim > 1 else ()
    return unsafe_view(out, shape + ((b.shape[-1],) if b.ndim > 1 else ()))


def _taken_by_rank(input: Tensor, other: Tensor) -> str:
    """The dtype of `out`, in the words of the product that matrices or vectors of such ranks have."""
    if other.ndim != 1:
        return "exact"
    return _BY_DOT if input.ndim == 1 else _BY_MV


@function(
    "matmul(Tensor input, Tensor other, *, Tensor out=None)|numpy",
    aliases="linalg.matmul",
    primitives=[dot, mv, mm, bmm],
    samples="(randn(3), randn(3)); (randn(2,3), randn(3)); (randn(3), randn(3,2)); (randn(2,3), randn(3,2)); "
    "(randn(4,2,3), randn(3,2)); (randn(4,2,3), randn(4,3,2)); (randn(4,2,3), randn(3))",
    out=_taken_by_rank,
)
def matmul(input: Tensor, other: Tensor) -> Any:
    """The product of vectors, matrices, or broadcast batches of matrices."""
    return by_rank(input, other)


def by_rank(input: Tensor, other: Tensor) -> Any:
    """`input @ other` of two tensors."""
    m, n = input.ndim, other.ndim
    if m == 2:
        if n == 2:
            return mm.call(input, other)
        if n == 1:
            return mv.call(input, other)
    elif m == 1:
        if n == 1:
            return dot.call(input, other)
        if n == 2:
            return squeeze_own(mm(input.unsqueeze(0), other), 0)
    if not m or not n:
        raise RuntimeError(
            f"both arguments to matmul need to be at least 1D, but they are {m}D and {n}D"
        )
    if _should_fold(input, other):
        return _folded(input, other)
    return _batched(input, other)


# -- outer, inner, Kronecker and cross products ---------------------------------------------------
@function(
    "outer(Tensor input, Tensor vec2, *, Tensor? out=None)|numpy",
    aliases="ger",
    overlap="whole whole",
    samples="(randn(2), randn(3)); (randn(0), randn(3))",
)
def outer(input: Tensor, vec2: Tensor) -> Any:
    """The matrix of all products of two vectors' elements."""
    for name, value in (("self", input), ("vec2", vec2)):
        if value.ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {value.ndim}-D")
    return input.reshape(input.shape[0], 1) * vec2


_BY_TENSORDOT = (
    "exact: tensordot: Expected the output tensor to have dtype {0}, but got an output tensor with dtype "
    "{1}"
)


@function(
    "inner(Tensor input, Tensor other, *, Tensor? out=None)|numpy",
    samples="(randn(3), randn(3)); (randn(2,3), randn(4,3)); (randn(()), randn(3))",
    out=lambda input, other: _BY_TENSORDOT if input.ndim and other.ndim else "",
)
def inner(input: Tensor, other: Tensor) -> Any:
    """The product summed over the last dimension of both."""
    if input.ndim == 0 or other.ndim == 0:
        return input * other
    if input.shape[-1] != other.shape[-1]:
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{list(input.shape)} and {list(other.shape)}"
        )
    return tensordot(input, other, dims=([-1], [-1]))


@function(
    "tensordot(Any a, Any b, Any dims=2, Any out=None)|python|function|numpy",
    primitives=[mm],
    samples="(randn(2,3), randn(3,4), 1); (randn(2,3), randn(2,3), 2); "
    "(randn(2,3,4), randn(4,3,5), dims=([1,2],[1,0]))",
)
def tensordot(a: Tensor, b: Tensor, dims: Any, out: Any) -> Any:
    """The product summed over pairs of dimensions."""
    if not isinstance(dims, (tuple, list, Tensor, int)):
        raise RuntimeError(
            "tensordot expects dims to be int or tuple[list[int], list[int]] or list[list[int]] "
            f"containing two lists, but got dims={dims}"
        )
    if isinstance(dims, Tensor):
        dims = dims.tolist() if dims.numel() > 1 else int(dims.item())
    if isinstance(dims, int):
        refuse_if(dims < 0, "tensordot expects dims >= 0, but got dims={}", dims)
        if dims > min(a.ndim, b.ndim):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        dims = range(-dims, 0), range(dims)
    first, second = (tuple(d) if isinstance(d, (list, range)) else d for d in dims)
    given = {} if out is None else {"out": out}
    return _tensordot(a, b, first, second, **given)


def _contracted(a: Tensor, b: Tensor, dims_a: Ints, dims_b: Ints) -> Any:
    refuse_if(dtype_of(a) != dtype_of(b), "both inputs should have same dtype")
    refuse_if(len(dims_a) != len(dims_b), "both dimension lists should have same length")
    left, right, size = a, b, 1
    for i, j in zip(dims_a, dims_b, strict=True):
        m, n = a.shape[wrap_dim(i, a.ndim)], b.shape[wrap_dim(j, b.ndim)]
        if n == 1:
            left = left.sum(i, True, dtype=a.dtype)
        elif m == 1:
            right = right.sum(j, True, dtype=b.dtype)
        elif m != n:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {m} in dim {i} and "
                f"second has size {n} in dim {j}"
            )
        else:
            size *= m
    summed_a = [wrap_dim(i, a.ndim) for i in dims_a]
    summed_b = [wrap_dim(j, b.ndim) for j in dims_b]
    kept_a = [i for i in range(a.ndim) if i not in summed_a]
    kept_b = [j for j in range(b.ndim) if j not in summed_b]
    shape_a, shape_b = [left.shape[i] for i in kept_a], [right.shape[j] for j in kept_b]
    first, second = left.permute(*kept_a, *dims_a), right.permute(*dims_b, *kept_b)
    if prod(shape_a) == prod(shape_b) == 1:
        return _all_contracted(first, second).reshape(tuple(shape_a + shape_b))
    product = mm(first.reshape(prod(shape_a), size), second.reshape(size, prod(shape_b)))
    return product.reshape(*shape_a, *shape_b)


_parser = Parser(
    (
        "tensordot(Tensor input, Tensor other, int[] dims_self, int[] dims_other, *, Tensor? out=None)",
    ),
    _contracted,
)
_parser.out = _BY_TENSORDOT
_tensordot = _parser.function()


def _all_contracted(a: Tensor, b: Tensor) -> Any:
    """The sum of all products, as PyTorch takes it by how the operands lie in memory."""
    if a.is_contiguous() and b.is_contiguous():
        return dot(*(x if x.ndim == 1 else x.reshape(-1) for x in (a, b)))
    return (a.squeeze() * b.squeeze()).sum(dtype=a.dtype)


@function(
    "kron(Tensor input, Tensor other, *, Tensor? out=None)|numpy",
    overlap="whole whole",
    samples="(randn(2,2), randn(3,2)); (randn(2), randn(2,3)); (randn(()), randn(3))",
    primitives=(),
)
def kron(input: Tensor, other: Tensor) -> Any:
    """The Kronecker product: every element of input times the whole of other."""
    ndim = max(input.ndim, other.ndim)
    a = [1] * (ndim - input.ndim) + list(input.shape)
    b = [1] * (ndim - other.ndim) + list(other.shape)
    left = unsafe_view(input, tuple(n for m in a for n in (m, 1)))
    right = unsafe_view(other, tuple(n for m in b for n in (1, m)))
    return unsafe_view(left * right, tuple(m * n for m, n in zip(a, b, strict=True)))


@operator(
    "bilinear own apart",
    node="LinalgCrossBackward0",
    samples="(randn(3), randn(3)); (randn(2,3), randn(1,3)); (randn(3,2), randn(3,2), dim=0)",
    signature="linalg.cross(Tensor input, Tensor other, *, int dim=-1, Tensor out=None)",
    out="exact",
)
class linalg_cross:
    """The cross product of vectors of three elements."""

    def forward(self: Array, other: Array, *, dim: int = -1) -> Array:
        if self.ndim != other.ndim:
            raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
        at = sized_dim(dim, self.ndim)
        if self.shape[at] != 3 or other.shape[at] != 3:
            raise RuntimeError(
                f"linalg.cross: inputs dimension {dim} must have length 3. Got {self.shape[at]} and "
                f"{other.shape[at]}"
            )
        refusal = mismatch([self.shape, other.shape])
        if refusal is not None:
            raise refusal
        _no_bool("cross", self)
        expect_alike(self, other)
        a = [self.take(i, at) for i in range(3)]
        b = [other.take(i, at) for i in range(3)]
        parts = [
            a[(i + 1) % 3] * b[(i + 2) % 3] - a[(i + 2) % 3] * b[(i + 1) % 3] for i in range(3)
        ]
        return np.stack(parts, at)

    self = lambda g, other, dim: linalg_cross(conj(other), g, dim=dim)
    other = lambda g, self, dim: linalg_cross(g, conj(self), dim=dim)


_CROSS_WITHOUT_DIM = (
    "Using torch.cross without specifying the dim arg is deprecated.\nPlease either pass the dim "
    "explicitly or simply use torch.linalg.cross.\nThe default value of dim will change to agree "
    "with that of linalg.cross in a future release."
)


@function(
    "cross(Tensor input, Tensor other, int? dim=None, *, Tensor? out=None)",
    samples="(randn(3), randn(3), dim=0)",
    out="exact",
)
def cross(input: Tensor, other: Tensor, dim: int | None) -> Any:
    """The cross product along a dimension of size 3 (by default the first such)."""
    if dim is None:
        warnings.warn(_CROSS_WITHOUT_DIM, UserWarning, stacklevel=users_level())
        dim = next((i for i, n in enumerate(input.shape) if n == 3), None)
        refuse_if(dim is None, "no dimension of size 3 in input")
    return linalg_cross(input, other, dim=dim)


# -- the trace ------------------------------------------------------------------------------------
def _diagonal() -> Any:
    from gradcli.operators.movement.reshaping import diagonal

    return diagonal


@operator(
    "linear numpy",
    node="TraceBackward0",
    samples="(randn(3,3)); (randn(2,3)); (randn(0,0))",
    index="ii",
    batching=_by(lambda rules: rules.of(rules.traced, _diagonal)),
    signature="trace(Tensor input)",
)
class trace:
    """The sum of the main diagonal."""

    def forward(self: Array) -> Array:
        if self.ndim != 2:
            raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {self.ndim}")
        _no_bool("trace", self)
        return self.trace(dtype=np.int64 if self.dtype.kind in "biu" else self.dtype)

    def self(g: Value, self_sym_sizes: Shape) -> Any:
        """`g * eye(*self_sym_sizes)`."""
        n, m = self_sym_sizes
        diagonal = constant(np.arange(min(n, m)) * (m + 1), g)
        return resolve("index_fill")(new_zeros(g, (n * m,)), 0, diagonal, g).reshape((n, m))


# -- chains of products ---------------------------------------------------------------------------
def _chain_order(sizes: list[int]) -> list[list[int]]:
    """The splits of a chain of matrices for the least cost (dynamic programming, O(n^3))."""
    n = len(sizes) - 1
    cost = [[0] * n for _ in range(n)]
    split = [[0] * n for _ in range(n)]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i][j], split[i][j] = min(
                (cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            )
    return split


def _chain_product(matrices: Sequence[Any], split: list[list[int]]) -> Any:
    """The product of a chain in the given order; an explicit stack, no recursion."""
    values: list[Any] = []
    todo: list[tuple[int, int, bool]] = [(0, len(matrices) - 1, False)]
    while todo:
        i, j, ready = todo.pop()
        if i == j:
            values.append(matrices[i])
        elif ready:
            right = values.pop()
            values.append(mm(values.pop(), right))
        else:
            k = split[i][j]
            todo += [(i, j, True), (k + 1, j, False), (i, k, False)]
    return values[0]


def _multi_dot(tensors: Sequence[Any]) -> Any:
    n = len(tensors)
    refuse_if(n < 2, "multi_dot(): expected at least 2 tensors but got {}", n)
    matrices = list(tensors)
    first, last = matrices[0], matrices[-1]
    shape: list[int] = []
    for which, value in (("first", first), ("last", last)):
        if value.ndim not in (1, 2):
            raise RuntimeError(
                f"multi_dot(): the {which} tensor must be 1D or 2D but got {value.ndim}D"
            )
    if first.ndim == 1:
        matrices[0] = first.unsqueeze(0)
    else:
        shape.append(first.shape[0])
    if last.ndim == 1:
        matrices[-1] = last.unsqueeze(-1)
    else:
        shape.append(last.shape[1])
    given = [list(t.shape) for t in tensors]
    for i, value in enumerate(matrices):
        if value.ndim != 2:
            raise RuntimeError(f"multi_dot(): tensor {i} must be 2D but got {value.ndim}D")
        if value.dtype != first.dtype:
            raise RuntimeError(
                f"multi_dot(): all tensors must have be the same dtype but tensor 0 is "
                f"{c_type(first)} and tensor {i} {c_type(value)}"
            )
        if i and matrices[i - 1].shape[1] != value.shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {i - 1} and {i} with shapes "
                f"{given[i - 1]} and {given[i]} cannot be multiplied"
            )
    if n == 3:  # PyTorch decides between the two orders by itself
        a, b, c = matrices
        left = a.shape[0] * b.shape[1] * (a.shape[1] + c.shape[1])
        right = a.shape[1] * c.shape[1] * (a.shape[0] + b.shape[1])
        out = mm(mm(a, b), c) if left <= right else mm(a, mm(b, c))
    else:
        sizes = [matrices[0].shape[0], *(m.shape[1] for m in matrices)]
        out = _chain_product(matrices, _chain_order(sizes))
    return out.view(*shape) if shape else out.view(())


@function(
    "linalg.multi_dot(Tensor[] tensors, *, Tensor? out=None)",
    primitives=[mm],
    samples="([randn(2,3), randn(3,4)]); ([randn(3), randn(3,2), randn(2,4), randn(4)])",
    out=("exact: multi_dot(): expected out tensor to have dtype {0.c} but got {1.c}"),
)
def multi_dot(tensors: Sequence[Tensor]) -> Any:
    """The product of a chain of matrices, in the cheapest order."""
    return _multi_dot(tensors)


@function(
    "chain_matmul(Tensor[] matrices, *, Tensor? out=None)|function",
    many=tuple,
    primitives=[mm],
    samples="(randn(2,3), randn(3,4), randn(4,2))",
    out=("exact: multi_dot(): expected out tensor to have dtype {0.c} but got {1.c}"),
)
def chain_matmul(matrices: Sequence[Tensor]) -> Any:
    """The product of a chain of matrices, in the cheapest order."""
    refuse_if(not matrices, "chain_matmul(): Expected one or more matrices")
    for m in matrices:
        if m.ndim != 2:
            raise RuntimeError(f"Tensor dimension is {m.ndim}, expected 2 instead.")
    if len(matrices) == 1:
        return matrices[0].clone()
    return _multi_dot(matrices)


@function(
    "linalg.vecdot(Tensor x, Tensor y, *, int dim=-1, Tensor? out=None)",
    aliases="vecdot",
    samples="(randn(2,3), randn(2,3)); (randn(3,2), randn(3,2), dim=0)",
    primitives=(),
    out="exact: linalg.vecdot: Expected out of dtype{0} but found {1}",
)
def vecdot(x: Tensor, y: Tensor, dim: int) -> Any:
    """The dot products along a dimension; complex ones conjugate the first."""
    first, second = dtype_of(x), dtype_of(y)
    if first.kind not in "fc":
        raise RuntimeError(
            f"linalg.vecdot: Expected a floating point or complex tensor as input. Got {scalar_name(first)}"
        )
    if first != second:
        a, b = (scalar_name(kind) for kind in (first, second))
        raise RuntimeError(
            "linalg.vecdot: Expected x and y to have the same dtype, but found x of type "
            f"{a} and y of type {b} instead"
        )
    if x.ndim == y.ndim == 1:
        return vdot(x, y)
    return (conj(x) * y).sum(dim)

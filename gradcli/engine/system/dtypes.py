"""PyTorch's dtypes over NumPy's, the default dtype, and type promotion.

A `dtype` has its NumPy dtype in `.dtype`, so that NumPy accepts it wherever it takes a dtype. Promotion
follows PyTorch's three ranks of operands (tensors with dimensions, 0-d tensors, Python numbers): an
operand of lower rank matters only if its category is higher (bool < integer < floating < complex). See
`at::native::result_type`.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

NumPyType = np.dtype[Any]
# -- what signatures call arrays, and what belongs to them ----------------------------------------
# NumPy's, or what stands in its place: a scalar of NumPy's, a batch, an array that is recorded or that has a
# shape alone (`array_memory.ARRAYS`). A type checker takes all of them for NumPy's.
Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
Arrays: TypeAlias = "Sequence[Array]"
DType: TypeAlias = "np.dtype[Any]"
Shape: TypeAlias = "tuple[int, ...]"
# A number of Python's; PyTorch's `Scalar`.
Number: TypeAlias = "bool | int | float | complex"


class dtype:
    """One of PyTorch's dtypes: unique objects, compared by identity."""

    __slots__ = ("_dtype", "name")

    def __init__(self, name: str, kind: Any) -> None:
        self.name = name
        self._dtype: NumPyType = np.dtype(kind)

    @property
    def dtype(self) -> NumPyType:
        """The NumPy dtype."""
        return self._dtype

    @property
    def kind(self) -> str:
        """NumPy's letter for the category: one of "b", "i", "u", "f", "c"."""
        return self._dtype.kind

    @property
    def is_floating_point(self) -> bool:
        """True for the real floating dtypes."""
        return self._dtype.kind == "f"

    @property
    def is_complex(self) -> bool:
        """True for the complex dtypes."""
        return self._dtype.kind == "c"

    @property
    def is_signed(self) -> bool:
        """True if the dtype has negative numbers."""
        return self._dtype.kind in "ifc"

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return self._dtype.itemsize

    def to_complex(self) -> Any:
        """The complex dtype of this floating dtype's precision."""
        return of(np.result_type(self._dtype, np.complex64))

    def to_real(self) -> Any:
        """The real dtype of this complex dtype's parts."""
        return of(np.zeros((), self._dtype).real.dtype)

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name


float16 = dtype("float16", np.float16)
float32 = dtype("float32", np.float32)
float64 = dtype("float64", np.float64)
complex64 = dtype("complex64", np.complex64)
complex128 = dtype("complex128", np.complex128)
uint8 = dtype("uint8", np.uint8)
int8 = dtype("int8", np.int8)
int16 = dtype("int16", np.int16)
int32 = dtype("int32", np.int32)
int64 = dtype("int64", np.int64)
boolean = dtype("bool", np.bool_)


class _Absent(dtype):
    """A dtype of PyTorch's that NumPy has not: it can be named, and no tensor has it."""

    __slots__ = ()

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def _dtype(self) -> NumPyType:  # type: ignore[override]
        raise TypeError(
            f"gradcli has no tensors of torch.{self.name}, as NumPy has none: use torch.float32"
        )

    kind = "f"
    is_floating_point = is_signed = True
    is_complex = False
    itemsize = 2


# `torch.autocast(dtype=torch.bfloat16, enabled=False)` names it. It is no name of the language.
bfloat16 = _Absent("bfloat16")

ALL = (
    *(float16, float32, float64, complex64, complex128),
    *(uint8, int8, int16, int32, int64, boolean),
)
# Every public name, aliases included.
NAMES: dict[str, dtype] = {d.name: d for d in ALL} | {
    "half": float16,
    "float": float32,
    "double": float64,
    "cfloat": complex64,
    "cdouble": complex128,
    "short": int16,
    "int": int32,
    "long": int64,
}
_OF = {d.dtype: d for d in ALL}
# NumPy's own object for each dtype, by any that is equal to it.
OWN = {d.dtype: d.dtype for d in ALL}
DIFFERENTIABLE = frozenset(d.dtype for d in ALL if d.dtype.kind in "fc")

# What `Tensor.type()` and the version error call a tensor of each dtype.
TYPE_NAMES = {
    "float16": "HalfTensor",
    "float32": "FloatTensor",
    "float64": "DoubleTensor",
    "complex64": "ComplexFloatTensor",
    "complex128": "ComplexDoubleTensor",
    "uint8": "ByteTensor",
    "int8": "CharTensor",
    "int16": "ShortTensor",
    "int32": "IntTensor",
    "int64": "LongTensor",
    "bool": "BoolTensor",
}
# What C++ messages call each dtype ("result type Float can't be cast to ...").
SCALAR_NAMES = {name: text.removesuffix("Tensor") for name, text in TYPE_NAMES.items()}

# The C++ types in messages about numbers that do not fit.
C_NAMES = {
    **{"float16": "c10::Half", "float32": "float", "float64": "double", "bool": "bool"},
    **{"complex64": "c10::complex<float>", "complex128": "c10::complex<double>"},
    **{"uint8": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int32": "int"},
    "int64": "int64_t",
}
# The names in other messages, which C++'s compiler makes.
C_TYPES = {
    **C_NAMES,
    **{"uint8": "unsigned char", "int8": "signed char", "int16": "short int", "int64": "long int"},
}


_OF_PYTHON: dict[type, dtype] = {
    bool: boolean,
    int: int64,
    float: float64,
    complex: complex128,
}
NO_COMPLEX_HALF = (
    "gradcli has no dtype complex32, which PyTorch makes of two float16: use x.float() first"
)


def given(value: object) -> dtype | None:
    """The dtype that an argument means, a dtype or a type of Python's; None for what is neither."""
    found = _OF_PYTHON.get(value) if isinstance(value, type) else value
    return found if isinstance(found, dtype) else None


def of(numpy_dtype: Any) -> dtype:
    """PyTorch's dtype for a NumPy dtype.

    Raises TypeError, in PyTorch's words, for a NumPy dtype that PyTorch has no counterpart for.
    """
    found = _OF.get(np.dtype(numpy_dtype))
    if found is None:
        raise TypeError(
            f"can't convert np.ndarray of type numpy.{np.dtype(numpy_dtype).type.__name__}. The only "
            "supported types are: float64, float32, float16, complex64, complex128, int64, int32, "
            "int16, int8, uint64, uint32, uint16, uint8, and bool."
        )
    return found


def own(array: Array) -> Array:
    """An array, whose dtype is NumPy's own object for it.

    Arrays that were pickled, or say `dtype.metadata`, have another object, which is equal. The engine
    compares by `is`, as that is twice as fast.
    """
    kind = array.dtype
    found = OWN.get(kind, kind)
    return array if found is kind else array.view(found)


def native(array: Array) -> Array:
    """An array in the machine's order of bytes, with NumPy's own object for its dtype."""
    kind = array.dtype
    return own(array if kind.isnative else array.astype(kind.newbyteorder("=")))


def _name(of_what: Any) -> str:
    kind = of_what if isinstance(of_what, (dtype, np.dtype, type)) else of_what.dtype
    return kind.name if isinstance(kind, dtype) else of(kind).name


def scalar_name(of_what: DTypeLike) -> str:
    """The name of a dtype (or of an array's or tensor's) in messages: `Float`."""
    return SCALAR_NAMES[_name(of_what)]


def not_implemented(kernel: str, value: DTypeLike) -> NotImplementedError:
    """PyTorch's error for a value of a dtype that one of its kernels has not."""
    return NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_name(value)}'")


def tensor_name(of_what: DTypeLike) -> str:
    """The name of its tensors in other messages: `FloatTensor`."""
    return TYPE_NAMES[_name(of_what)]


def c_type(of_what: DTypeLike) -> str:
    """The name of its C++ type in other messages: `float`."""
    return C_TYPES[_name(of_what)]


class _Default(threading.local):
    """The default floating dtype, with its NumPy dtypes at hand.

    The class holds those of the process, as PyTorch has them; an object those of a thread in `as_default`.
    """

    torch: dtype
    real: np.dtype[Any]
    complex: np.dtype[Any]


def _facts(d: dtype) -> dict[str, Any]:
    return {"torch": d, "real": d.dtype, "complex": np.result_type(d.dtype, np.complex64)}


for _name_of_fact, _fact in _facts(float32).items():
    setattr(_Default, _name_of_fact, _fact)
default = _Default()


def get_default_dtype() -> dtype:
    """The default floating dtype: that of `tensor(1.0)`."""
    return default.torch


def set_default_dtype(d: dtype) -> None:
    """Set the default floating dtype of the process; TypeError unless `d` is floating.

    Within `as_default` it is that of the thread, until that ends.
    """
    if not isinstance(d, (dtype, type)):
        raise TypeError("invalid dtype object")
    if not isinstance(d, dtype) or not d.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    for name, fact in _facts(d).items():
        setattr(default if default.__dict__ else _Default, name, fact)


@contextmanager
def as_default(d: dtype | None) -> Iterator[None]:
    """A context in which the default floating dtype of this thread is another one; None: the same."""
    before = dict(default.__dict__)
    default.__dict__.update(_facts(default.torch))
    try:
        if d is not None:
            set_default_dtype(d)
        yield
    finally:
        default.__dict__.clear()
        default.__dict__.update(before)


def adopt(d: dtype) -> None:
    """Give this thread, a worker of another one, that one's default floating dtype until it ends."""
    default.__dict__.update(_facts(d))


_CATEGORY = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}


def promote_types(a: np.dtype[Any], b: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of a result of two operands of equal rank (`torch.promote_types`)."""
    if a == b:
        return a
    x, y = _CATEGORY[a.kind], _CATEGORY[b.kind]
    if x == y:
        return np.promote_types(a, b)
    if x < y:
        a, b, x, y = b, a, y, x
    if x == 3 and y == 2:
        return np.dtype(np.complex128) if b.itemsize == 8 else a
    return a


def number_dtype(value: object) -> np.dtype[Any]:
    """The dtype of a tensor made of a Python number."""
    if isinstance(value, np.generic):
        return value.dtype
    if isinstance(value, bool):
        return boolean.dtype
    if isinstance(value, int):
        return int64.dtype
    return default.real if isinstance(value, float) else default.complex


def constant(value: object, dtype: np.dtype[Any]) -> Any:
    """A Python number in a dtype, as a NumPy scalar; integers wrap around, as in C.

    Raises OverflowError, in PyTorch's words, for integers of more than 64 bits.
    """
    _fits_64_bits(value)
    with np.errstate(all="ignore"):
        return np.asarray(value).astype(dtype)[()]


def checked(value: Any, dtype: np.dtype[Any]) -> Any:
    """A Python number in a dtype, as a NumPy scalar; RuntimeError if the dtype cannot hold it.

    As C++'s `Scalar::to`: negative numbers wrap around in unsigned dtypes, floats are truncated in
    integer dtypes, and bool takes any number.
    """
    if dtype.kind == "f" and value.__class__ in (float, int) and -60000 < value < 60000:
        return dtype.type(value)  # any of them holds it
    if dtype.kind == "b":
        return np.bool_(value)
    if isinstance(value, complex) and dtype.kind != "c":
        if value.imag != 0:
            raise _does_not_fit(dtype)
        value = value.real
    if dtype.kind in "iu":
        if isinstance(value, float) and not math.isfinite(value):
            raise _does_not_fit(dtype)
        whole, limits = int(value), np.iinfo(dtype)
        _fits_64_bits(value)
        wraps = dtype.kind == "u" and isinstance(value, int)
        lowest = -int(limits.max) if wraps else int(limits.min)
        if not lowest <= whole <= limits.max:
            raise _does_not_fit(dtype)
        return np.int64(whole).astype(dtype)
    with np.errstate(over="ignore"):
        found = dtype.type(value)
    real = np.real(value)
    if math.isfinite(real) and not np.isfinite(found):
        raise _does_not_fit(dtype)
    return found


def _fits_64_bits(value: object) -> None:
    if isinstance(value, int) and value < -(2**63):
        raise OverflowError("can't convert negative int to unsigned")
    if isinstance(value, int) and value >= 2**64:
        raise OverflowError("int too big to convert")


def _does_not_fit(dtype: np.dtype[Any]) -> RuntimeError:
    return RuntimeError(f"value cannot be converted to type {C_NAMES[dtype.name]} without overflow")


def _combine(higher: Any, lower: Any) -> Any:
    if higher is None:
        return lower
    if lower is None or higher.kind == "c":
        return higher
    if higher.kind == "f":
        return np.result_type(higher, np.complex64) if lower.kind == "c" else higher
    if higher.kind == "b" or lower.kind in "fc":
        return promote_types(higher, lower)
    return higher


def result_type(operands: Iterable[tuple[NumPyType, int]]) -> Any:
    """The common dtype of operands given as (dtype, rank).

    Rank 2 is a tensor with dimensions, 1 a 0-d tensor, 0 a Python number.
    """
    best: list[Any] = [None, None, None]
    for d, rank in operands:
        best[rank] = d if best[rank] is None else promote_types(best[rank], d)
    found = _combine(best[2], _combine(best[1], best[0]))
    return OWN.get(found, found)

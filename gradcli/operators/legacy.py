"""The constructors with a dtype in their names: FloatTensor, DoubleTensor, LongTensor ..."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.engine import dtypes
from gradcli.engine.size import Size
from gradcli.engine.tensor import Tensor, wrap
from gradcli.operators import nested
from gradcli.operators.arguments import finish, is_integer, shape_of
from gradcli.operators.table import FUNCTIONS, Function

_OPTIONS = (
    "TensorOptions(dtype={}, device=cpu, layout=Strided, requires_grad=false (default), "
    "pinned_memory=false (default), memory_format=(nullopt))"
)
_C_NAMES = {
    **{"float16": "c10::Half", "float32": "float", "float64": "double", "bool": "bool"},
    **{"complex64": "c10::complex<float>", "complex128": "c10::complex<double>"},
    **{"uint8": "unsigned char", "int8": "signed char", "int16": "short", "int32": "int"},
    "int64": "long int",
}


def construct(kind: np.dtype[Any], data: tuple[Any, ...], device: Any = None) -> Tensor:
    """A tensor of the dtype from sizes (ints or a Size), a sequence, or a tensor of that dtype."""
    if not data:
        return finish("new", np.zeros(0, kind), False, device)
    first = data[0]
    if len(data) == 1 and isinstance(first, Tensor):
        if first.array.dtype != kind:
            wanted, got = (_OPTIONS.format(_C_NAMES[k.name]) for k in (kind, first.array.dtype))
            raise TypeError(f"expected {wanted} (got {got})")
        return wrap(first.memory())
    if len(data) == 1 and isinstance(first, Size):
        return finish("new", np.zeros(first, kind), False, device)
    if all(is_integer(n) for n in data):
        return finish("new", np.zeros(shape_of("new", data), kind), False, device)
    if len(data) > 1:
        raise TypeError(
            "new() received an invalid combination of arguments - got "
            f"({', '.join(type(d).__name__ for d in data)}), but expected sizes or one sequence"
        )
    if isinstance(first, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(first).__name__}'")
    if not hasattr(first, "__len__") or not hasattr(first, "__getitem__"):
        raise TypeError(f"new(): data must be a sequence (got {type(first).__name__})")
    return finish("new", nested.array_of(first, kind), False, device)


class _Legacy(type):
    """The type of these constructors: an instance of one is a tensor of its dtype."""

    dtype: dtypes.dtype

    def __call__(cls, *data: Any, device: Any = None) -> Tensor:
        return construct(cls.dtype.dtype, data, device)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.array.dtype == cls.dtype.dtype

    def __repr__(cls) -> str:
        return f"<class 'torch.{cls.__name__}'>"


def _make(name: str, dtype: dtypes.dtype) -> Function:
    body = {"dtype": dtype, "__module__": "torch", "__doc__": f"A tensor of dtype {dtype!r}."}
    return Function(
        name,
        _Legacy(name, (), body),
        family="creation",
        doc=f"A tensor of dtype {dtype!r} from sizes or a sequence.",
        method=False,
        samples=(f"{name}([1, 0])",),
    )


for _name, _text in dtypes.TYPE_NAMES.items():
    if not _text.startswith("Complex"):
        FUNCTIONS[_text] = _make(_text, dtypes.NAMES[_name])

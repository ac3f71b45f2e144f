"""The constructors with a dtype in their names: FloatTensor, DoubleTensor, LongTensor ..."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from gradcli.engine.core.declaration import DType, Shape
from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.engine.registry.binder import Parser
from gradcli.engine.registry.factory_arguments import finish, nonnegative
from gradcli.engine.registry.table import FUNCTIONS, Function
from gradcli.engine.system import dtypes
from gradcli.operators.movement import nested_data

FAMILY = "legacy"  # as `ops` calls it

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


_DEVICE = "*, Device? device=None)"


@cache
def constructor(kind: DType) -> Callable[..., Tensor]:
    """What makes a tensor of the dtype: of sizes (ints or a Size), a sequence, a tensor of that dtype."""

    def make(
        *,
        device: str | None = None,
        other: Tensor | None = None,
        size: Shape = (0,),
        data: Any = _NOTHING,
    ) -> Tensor:
        if other is not None:
            if other.array.dtype != kind:
                wanted, got = (_OPTIONS.format(_C_NAMES[k.name]) for k in (kind, other.array.dtype))
                raise TypeError(f"expected {wanted} (got {got})")
            return wrap(other.memory())
        if data is _NOTHING:
            return finish("new", np.zeros(nonnegative("new", size), kind), False, device)
        if isinstance(data, (str, bytes)):
            raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
        if not hasattr(data, "__len__") or not hasattr(data, "__getitem__"):
            raise TypeError(f"new(): data must be a sequence (got {type(data).__name__})")
        return finish("new", nested_data.array_of(data, kind), False, device)

    texts = (
        f"new({_DEVICE}",
        "new(Storage storage)",
        "new(Tensor other)",
        f"new(int[] size, {_DEVICE}",
        f"new(Any data, {_DEVICE}",
    )
    bound: Callable[..., Tensor] = Parser(texts, make).function()

    def construct(*args: Any, **kwargs: Any) -> Tensor:
        args = tuple(a.item() if isinstance(a, np.generic) else a for a in args)
        if len(args) == 1 and type(args[0]) in (tuple, list, np.ndarray) and not kwargs:
            return bound(data=args[0])  # a sequence is no size, unless it is a Size
        return bound(*args, **kwargs)

    return construct


_NOTHING: Any = object()


class _Legacy(type):
    """The type of these constructors: an instance of one is a tensor of its dtype."""

    dtype: dtypes.dtype

    def __call__(cls, *args: Any, **kwargs: Any) -> Tensor:
        return constructor(cls.dtype.dtype)(*args, **kwargs)

    def __instancecheck__(cls, instance: Tensor) -> bool:
        return isinstance(instance, Tensor) and instance.array.dtype == cls.dtype.dtype

    def __repr__(cls) -> str:
        return f"<class 'torch.{cls.__name__}'>"


def _make(name: str, dtype: dtypes.dtype) -> Function:
    body = {"dtype": dtype, "__module__": "torch", "__doc__": f"A tensor of dtype {dtype!r}."}
    return Function(
        name,
        _Legacy(name, (), body),
        module=__name__,
        family="creation",
        doc=f"A tensor of dtype {dtype!r} from sizes or a sequence.",
        method=False,
        samples=[f"{name}([1, 0])"],
    )


for _name, _text in dtypes.TYPE_NAMES.items():
    if not _text.startswith("Complex"):
        FUNCTIONS[_text] = _make(_text, dtypes.NAMES[_name])

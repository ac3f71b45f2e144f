"""torch.nn.parameter: leaves that are meant to be learned."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.engine.core.tensor import SUBCLASSES, Tensor, wrap
from gradcli.engine.system import dtypes


class Parameter(Tensor):
    """A leaf over the memory of `data` that requires grad (unless told otherwise)."""

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        out = super().__new__(cls)
        if data is None:
            data = wrap(np.zeros(0, dtypes.default.real))
        source = data.detach()
        if requires_grad and source.array.dtype not in dtypes.DIFFERENTIABLE:
            raise RuntimeError(
                "Only Tensors of floating point and complex dtype can require gradients"
            )
        out.array, out.versions = source.memory(), source.shared_versions()
        out.requires_grad = requires_grad
        return out

    def __init__(self, data: Any = None, requires_grad: bool = True) -> None:
        pass  # all is done: a tensor's own constructor would make another array

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        plain = wrap(self.array, self.requires_grad)
        return f"Parameter containing:\n{plain!r}"

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        if id(self) not in memo:
            copy = wrap(np.array(self.array, copy=True))
            memo[id(self)] = Parameter(copy, self.requires_grad)
        return memo[id(self)]  # type: ignore[no-any-return]

    def __reduce__(self) -> Any:
        return _rebuild, (np.asarray(self.array), self.requires_grad)


Parameter.__module__ = "torch.nn.parameter"
SUBCLASSES.add(Parameter)


class UninitializedParameter(Parameter):
    """A parameter of a lazy layer, whose shape the first input tells."""

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Become a parameter of this shape, with whatever numbers its memory has."""
        kind = self.array.dtype if dtype is None else dtype.numpy
        self.array = np.empty(tuple(shape), kind)
        self.__class__ = Parameter  # type: ignore[assignment]


UninitializedParameter.__module__ = "torch.nn.parameter"


class _Buffers(type):
    """Makes `isinstance(t, Buffer)` a question of the tensor's mark, as a Buffer is a plain tensor."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)


class Buffer(metaclass=_Buffers):
    """A tensor that becomes a module's buffer where it is assigned to one."""

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        data = wrap(np.zeros(0, dtypes.default.real)) if data is None else data
        made = data.detach().requires_grad_(data.requires_grad)
        made.persistent, made._is_buffer = persistent, True
        return made


Buffer.__module__ = "torch.nn.parameter"


def _rebuild(array: Any, requires_grad: bool) -> Parameter:
    return Parameter(wrap(array), requires_grad)


__all__ = ["Buffer", "Parameter", "UninitializedParameter"]

"""torch.nn.utils.parametrize: a parameter that modules work out of others whenever it is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

from gradcli.engine.core.modes import no_grad
from gradcli.engine.core.tensor import Tensor
from gradcli.torch.nn.modules.containers import ModuleDict, ModuleList
from gradcli.torch.nn.modules.module import Module
from gradcli.torch.nn.parameter import Parameter

_kept: list[dict[tuple[int, str], Any]] = []  # what `cached` remembers, while it is open


@contextmanager
def cached() -> Iterator[None]:
    """Inside, a parametrized tensor is worked out once, however often it is read."""
    _kept.append(_kept[-1] if _kept else {})
    try:
        yield
    finally:
        _kept.pop()


class ParametrizationList(ModuleList):
    """The modules that work out one tensor, in turn, and the tensor or tensors that they begin with."""

    def __init__(self, modules: Sequence[Module], original: Any, unsafe: bool = False) -> None:
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        new: Any = self._back(original, missing=False)
        self.is_tensor = isinstance(new, Tensor)
        if not (self.is_tensor or isinstance(new, Sequence)):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(new).__name__}"
            )
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            if original.dtype != new.dtype:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                    f"original.dtype: {original.dtype}\nright_inverse(original).dtype: {new.dtype}"
                )
            original.data = new.data
            _register(self, "original", original)
        else:
            for k, one in enumerate(new):
                kept = Parameter(one.data) if isinstance(original, Parameter) else one.detach()
                kept.requires_grad_(original.requires_grad)
                _register(self, f"original{k}", kept)
        if not unsafe:
            _refuse_other(self(), original, "tensor")

    def _originals(self) -> list[Any]:
        if self.is_tensor:
            return [self.original]
        return [getattr(self, f"original{k}") for k in range(self.ntensors)]

    def _back(self, value: Any, missing: bool) -> Any:
        """What the modules would make a value of. missing: whether a module must be able to say so."""
        with no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    try:
                        value = module.right_inverse(value)
                    except NotImplementedError:
                        if missing:
                            raise
                elif missing:
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse."
                    )
        return value

    def right_inverse(self, value: Any) -> None:
        """Set the tensors that the modules begin with, so that they give a value."""
        found = self._back(value, missing=True)
        many = [found] if isinstance(found, Tensor) else list(found)
        if len(many) != self.ntensors:
            raise ValueError(
                f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. Got a "
                f"sequence of length {len(many)}."
            )
        for own, new in zip(self._originals(), many, strict=True):
            own.data = new.data

    def forward(self) -> Any:
        first, *others = self
        value = first(*self._originals())
        for module in others:
            value = module(value)
        return value


def _register(module: Module, name: str, value: Any) -> None:
    if isinstance(value, Parameter):
        module.register_parameter(name, value)
    else:
        module.register_buffer(name, value)


def _refuse_other(found: Any, wanted: Any, name: str) -> None:
    if not isinstance(found, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(found).__name__}.")
    for what in ("dtype", "shape"):
        before, now = getattr(wanted, what), getattr(found, what)
        if before != now:
            raise ValueError(
                f"Registering a parametrization may not change the {what} of the {name}, unless "
                f"`unsafe` flag is enabled.\nunparametrized {what}: {before}\nparametrized {what}: {now}"
            )


def _no_state(self: Any) -> Any:
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict(). See:\n"
        "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
        "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
    )


def _copied(self: Any, memo: dict[int, Any]) -> Any:
    kind: Any = type(self)
    made = memo[id(self)] = kind.__new__(kind)
    made.__dict__.update(deepcopy(self.__dict__, memo))
    return made


def _worked_out(name: str) -> property:
    """The attribute of a class that is worked out of the module's parametrizations."""

    def get(module: Any) -> Any:
        if not _kept:
            return module.parametrizations[name]()
        key = (id(module), name)
        if key not in _kept[-1]:
            _kept[-1][key] = module.parametrizations[name]()
        return _kept[-1][key]

    return property(get, lambda module, value: module.parametrizations[name].right_inverse(value))


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Have a parameter or buffer worked out by a module's `forward` whenever it is read; returns the module.

    unsafe: whether shape and dtype may change. Raises ValueError in PyTorch's words.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        parts = module.parametrizations[tensor_name]
        if not unsafe:
            now = getattr(module, tensor_name)
            _refuse_other(parametrization(now), now, "tensor")
        parts.append(parametrization)
        parts.unsafe |= unsafe
        return module
    if tensor_name not in module._parameters and tensor_name not in module._buffers:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    parts = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        kind = type(module)
        body = {"__getstate__": _no_state, "__deepcopy__": _copied, "__module__": kind.__module__}
        object.__setattr__(module, "__class__", type(f"Parametrized{kind.__name__}", (kind,), body))
        module.parametrizations = ModuleDict()
    setattr(type(module), tensor_name, _worked_out(tensor_name))
    module.parametrizations[tensor_name] = parts
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a module has parametrizations, or one of this tensor."""
    found = module._modules.get("parametrizations")
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Have a plain parameter again: as it was worked out at last, or as the modules began with it."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parts = module.parametrizations[tensor_name]
    if parts.is_tensor:
        original = parts.original
        if leave_parametrized:
            with no_grad():
                original.data = getattr(module, tensor_name).data
    elif leave_parametrized:
        found = getattr(module, tensor_name)
        original = Parameter(found.detach()) if found.requires_grad else found
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in "
            "terms of a sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        object.__setattr__(module, "__class__", type(module).__bases__[0])
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class that a module had before it was parametrized."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "type_before_parametrizations",
]

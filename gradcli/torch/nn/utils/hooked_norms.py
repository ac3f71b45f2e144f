"""torch.nn.utils.weight_norm and spectral_norm, the older ones: a hook sets a weight before each call."""

from __future__ import annotations

from typing import Any

from gradcli.engine.core.modes import no_grad
from gradcli.torch.nn.modules.module import Module
from gradcli.torch.nn.parameter import Parameter
from gradcli.torch.nn.utils.parametrizations import (
    PowerMethod,
    norm_except_dim,
    refuse_iterations,
    rows_of,
)


class _Hook:
    """Sets a module's weight from parameters that have its name and a suffix."""

    what = ""

    def __init__(self, name: str) -> None:
        self.name = name

    def of(self, module: Module, suffix: str) -> Any:
        """The tensor of a suffix."""
        return getattr(module, f"{self.name}_{suffix}")

    def weight(self, module: Module) -> Any:
        """The weight now."""
        raise NotImplementedError

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.weight(module))

    def begins(self, module: Module) -> None:
        """Refuse a second hook of this kind."""
        for hook in module._forward_pre_hooks.values():
            if type(hook) is type(self) and hook.name == self.name:
                raise RuntimeError(
                    f"Cannot register two {self.what} hooks on the same parameter {self.name}"
                )

    def ends(self, module: Module, *suffixes: str) -> None:
        """Leave the weight as a plain parameter."""
        with no_grad():
            weight = self.weight(module)
        delattr(module, self.name)
        for suffix in suffixes:
            delattr(module, f"{self.name}_{suffix}")
        module.register_parameter(self.name, Parameter(weight.detach()))


class WeightNorm(_Hook):
    """`g * v / |v|`; dim: which keeps a norm of its own."""

    what = "weight_norm"

    def __init__(self, name: str, dim: int | None) -> None:
        super().__init__(name)
        self.dim = -1 if dim is None else dim

    def weight(self, module: Module) -> Any:
        v = self.of(module, "v")
        return v * (self.of(module, "g") / norm_except_dim(v, self.dim))


class SpectralNorm(_Hook):
    """The weight by its largest singular value."""

    what = "spectral_norm"

    def __init__(self, name: str, n_power_iterations: int, dim: int, eps: float) -> None:
        super().__init__(name)
        refuse_iterations(n_power_iterations)
        self.n_power_iterations, self.method = n_power_iterations, PowerMethod(dim, eps)

    def weight(self, module: Module) -> Any:
        weight, u, v = (self.of(module, suffix) for suffix in ("orig", "u", "v"))
        return weight / self.method.value(weight, u, v)

    def __call__(self, module: Module, inputs: Any) -> None:
        if module.training:
            with no_grad():
                matrix = self.method.matrix(self.of(module, "orig"))
                u, v = self.of(module, "u"), self.of(module, "v")
                for _ in range(self.n_power_iterations):
                    v.copy_(self.method.unit(matrix.t().mv(u)))
                    u.copy_(self.method.unit(matrix.mv(v)))
        super().__call__(module, inputs)


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Have a weight worked out of its length NAME_g and its direction NAME_v before each call."""
    hook = WeightNorm(name, dim)
    hook.begins(module)
    weight = getattr(module, name)
    del module._parameters[name]
    module.register_parameter(f"{name}_g", Parameter(norm_except_dim(weight.detach(), hook.dim)))
    module.register_parameter(f"{name}_v", Parameter(weight.data))
    setattr(module, name, hook.weight(module))
    module.register_forward_pre_hook(hook)
    return module


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Have a weight NAME_orig divided by its largest singular value before each call."""
    hook = SpectralNorm(name, n_power_iterations, rows_of(module, dim), eps)
    hook.begins(module)
    weight = module._parameters[name]
    if weight is None:
        raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
    u, v = hook.method.drawn(weight)
    delattr(module, name)
    module.register_parameter(f"{name}_orig", weight)
    setattr(module, name, weight.data)
    module.register_buffer(f"{name}_u", u)
    module.register_buffer(f"{name}_v", v)
    module.register_forward_pre_hook(hook)
    return module


def _removed(kind: type[_Hook], module: Module, name: str, *suffixes: str) -> Module:
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, kind) and hook.name == name:
            hook.ends(module, *suffixes)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"{kind.what} of '{name}' not found in {module}")


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Have a plain weight again."""
    return _removed(WeightNorm, module, name, "g", "v")


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Have a plain weight again."""
    return _removed(SpectralNorm, module, name, "u", "v", "orig")


__all__ = ["remove_spectral_norm", "remove_weight_norm", "spectral_norm", "weight_norm"]

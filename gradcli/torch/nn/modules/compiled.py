"""What torch.compile makes of a module: a module that runs it as it is."""

from __future__ import annotations

from typing import Any

from gradcli.torch.nn.modules.module import Module


class OptimizedModule(Module):
    """A module around another, whose parameters, state and attributes it has."""

    def __init__(self, mod: Module) -> None:
        super().__init__()
        self._orig_mod = mod
        object.__setattr__(self, "training", mod.training)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes."""
        return self._orig_mod(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__.get("_modules", {})
        return (
            own[name] if name in own or "_orig_mod" not in own else getattr(own["_orig_mod"], name)
        )

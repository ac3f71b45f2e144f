"""torch.amp: what training loops ask of mixed precision, where there is the CPU alone."""

from __future__ import annotations

import warnings
from contextlib import ContextDecorator
from typing import Any

import numpy as np

from gradcli.engine.core.modes import no_grad, users_level


class autocast(ContextDecorator):
    """Does nothing, as PyTorch where there is no such device; it says so in a warning unless disabled.

    On the CPU PyTorch would compute products in bfloat16 or float16. Here all is computed in the dtypes that
    the tensors have, which is more exact.
    """

    def __init__(
        self,
        device_type: str,
        dtype: Any = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        if device_type == "cpu" and enabled:
            name = "torch.bfloat16" if dtype is None else str(dtype)
            warnings.warn(
                f"In CPU autocast, but gradcli does not compute in {name}: it computes in the tensors' "
                "own dtypes. Disabling autocast.",
                stacklevel=users_level(),
            )
            return
        if enabled:
            warnings.warn(
                "CUDA is not available or torch_xla is imported. Disabling autocast.",
                stacklevel=users_level(),
            )

    def __enter__(self) -> autocast:
        return self

    def __exit__(self, *error: object) -> None:
        pass


def is_autocast_available(device_type: str) -> bool:
    """Whether `autocast` would change anything: never."""
    return False


class GradScaler:
    """Scales a loss, so that gradients of half precision do not vanish, and the gradients back.

    Without device="cpu" it is disabled, as in PyTorch where there is no such device: `scale` gives the loss,
    `step` steps the optimizer.
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        if enabled and device != "cpu":
            warnings.warn(
                "torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.",
                stacklevel=users_level(),
            )
            enabled = False
        self._enabled = enabled
        self._scale, self._growth, self._backoff = init_scale, growth_factor, backoff_factor
        self._interval, self._good = growth_interval, 0
        self._finite: dict[int, bool] = {}  # of the optimizers whose gradients were unscaled

    def is_enabled(self) -> bool:
        return self._enabled

    def get_scale(self) -> float:
        return float(self._scale) if self._enabled else 1.0

    def scale(self, outputs: Any) -> Any:
        """A tensor, or each of several, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, list | tuple):
            return type(outputs)(self.scale(each) for each in outputs)
        return outputs * self._scale

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, once a step."""
        if not self._enabled:
            return
        if id(optimizer) in self._finite:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        grads = [p.grad for g in optimizer.param_groups for p in g["params"] if p.grad is not None]
        with no_grad():
            for grad in grads:
                grad.mul_(1 / self._scale)
        self._finite[id(optimizer)] = all(bool(np.isfinite(g.array).all()) for g in grads)

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Step an optimizer, unless a gradient is infinite or no number."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if id(optimizer) not in self._finite:
            self.unscale_(optimizer)
        return optimizer.step(*args, **kwargs) if self._finite[id(optimizer)] else None

    def update(self, new_scale: float | None = None) -> None:
        """Halve the scale after a step that was left out; double it after many that were not."""
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        elif not all(self._finite.values()):
            self._scale, self._good = self._scale * self._backoff, 0
        else:
            self._good += 1
            if self._good == self._interval:
                self._scale, self._good = self._scale * self._growth, 0
        self._finite.clear()

    def state_dict(self) -> dict[str, Any]:
        if not self._enabled:
            return {}
        return {
            "scale": self._scale, "growth_factor": self._growth, "backoff_factor": self._backoff,
            "growth_interval": self._interval, "_growth_tracker": self._good,
        }  # fmt: skip

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        if self._enabled:
            self._scale, self._growth = state_dict["scale"], state_dict["growth_factor"]
            self._backoff, self._interval = (
                state_dict["backoff_factor"],
                state_dict["growth_interval"],
            )
            self._good = state_dict["_growth_tracker"]


__all__ = ["GradScaler", "autocast", "is_autocast_available"]

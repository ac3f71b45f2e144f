"""torch.cuda.amp: `torch.amp` for CUDA, whose names PyTorch has deprecated."""

from __future__ import annotations

from typing import Any

from gradcli.torch import amp


def autocast(enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> amp.autocast:
    """`torch.amp.autocast("cuda", …)`."""
    return amp.autocast("cuda", dtype, enabled, cache_enabled)


def GradScaler(*args: Any, **kwargs: Any) -> amp.GradScaler:
    """`torch.amp.GradScaler("cuda", …)`."""
    return amp.GradScaler("cuda", *args, **kwargs)

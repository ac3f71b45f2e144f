"""torch.nn's modules: `module` is their base, `layers` and its like hold the layers.

Every name of `nn` is also found here, for programs that import from PyTorch's `nn.modules.container`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from itertools import repeat
from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("gradcli.torch.nn"), name)


def _ntuple(n: int) -> Callable[[Any], tuple[Any, ...]]:
    """What makes n of one number, and a tuple of several."""
    return lambda x: tuple(x) if isinstance(x, list | tuple) else tuple(repeat(x, n))


_single, _pair, _triple = (_ntuple(n) for n in (1, 2, 3))

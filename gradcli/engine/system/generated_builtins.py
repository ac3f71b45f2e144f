"""The builtins of generated code: none, but for the one that Python itself looks up there."""

from __future__ import annotations

from types import ModuleType
from typing import Any


def _import(name: str, *rest: object) -> ModuleType:
    if name != "warnings":
        raise ImportError(f"generated code imports nothing: {name}")
    import warnings

    return warnings


# Where C code warns (NumPy of an overflow), Python 3.13 imports `warnings` as the running code would.
NO_BUILTINS: dict[str, Any] = {"__import__": _import}

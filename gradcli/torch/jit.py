"""torch.jit: programs that compile themselves run as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.torch.nn.modules.module import Module as ScriptModule


def script(obj: Any = None, *args: Any, **kwargs: Any) -> Any:
    """The function, class or module itself."""
    return obj


def trace(func: Any, example_inputs: Any = None, *args: Any, **kwargs: Any) -> Any:
    """The function or module itself."""
    return func


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """The function itself, or a decorator that gives it."""
    return drop if callable(drop) else _same


def unused(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself."""
    return fn


export = script_method = unused


def _same(fn: Any) -> Any:
    return fn


def is_scripting() -> bool:
    """False: nothing is compiled."""
    return False


__all__ = [
    "ScriptModule",
    "export",
    "ignore",
    "is_scripting",
    "script",
    "script_method",
    "trace",
    "unused",
]

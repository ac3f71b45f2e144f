"""The language: text to tree to value, with places in every error. Everything is imported when used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradcli.language.errors import LanguageError as LanguageError
    from gradcli.language.interpreter import Machine as Machine
    from gradcli.language.interpreter import Result as Result
    from gradcli.language.interpreter import run as run
    from gradcli.language.parser import parse as parse
    from gradcli.language.program import Program as Program
    from gradcli.language.values import as_tensor as as_tensor
    from gradcli.language.values import evaluate as evaluate
    from gradcli.language.values import read_value as read_value

_HOMES = {
    "LanguageError": "errors",
    "Machine": "interpreter",
    "Program": "program",
    "Result": "interpreter",
    "as_tensor": "values",
    "evaluate": "values",
    "parse": "parser",
    "read_value": "values",
    "run": "interpreter",
}
__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        from importlib import import_module

        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""The language: text to tree to value, with places in every error. Everything is imported when used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradcli.language.interpreter import Machine as Machine
    from gradcli.language.interpreter import Result as Result
    from gradcli.language.interpreter import run as run
    from gradcli.language.located_errors import LanguageError as LanguageError
    from gradcli.language.option_values import as_tensor as as_tensor
    from gradcli.language.option_values import evaluate as evaluate
    from gradcli.language.option_values import read_value as read_value
    from gradcli.language.parser import parse as parse
    from gradcli.language.program import Program as Program

_HOMES = {
    "LanguageError": "gradcli.language.located_errors",
    "Machine": "gradcli.language.interpreter",
    "Program": "gradcli.language.program",
    "Result": "gradcli.language.interpreter",
    "as_tensor": "gradcli.language.option_values",
    "evaluate": "gradcli.language.option_values",
    "parse": "gradcli.language.parser",
    "read_value": "gradcli.language.option_values",
    "run": "gradcli.language.interpreter",
}
__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        from importlib import import_module

        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

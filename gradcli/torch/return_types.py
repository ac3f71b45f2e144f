"""torch.return_types: the named tuples that functions with several results return."""

from __future__ import annotations

from typing import Any

__all__: list[str] = []  # not by name: the families that make them are imported when asked for


def _made() -> dict[str, type[Any]]:
    from gradcli.engine.registry import table
    from gradcli.engine.registry.named_results import NAMES

    table.load()
    return NAMES


def __getattr__(name: str) -> Any:
    found = None if name.startswith("__") else _made().get(name)
    if found is None:
        raise AttributeError(f"module 'gradcli.torch.return_types' has no attribute {name!r}")
    return found


def __dir__() -> list[str]:
    return sorted(_made())

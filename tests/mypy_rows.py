"""For mypy (`plugins` in pyproject.toml): a class of rules is the row that its decorator makes of it.

mypy takes no notice of what a class decorator returns, and would take a row's calls for instances of
the class. So these classes have whatever one asks of them, and nothing else goes unchecked.
"""

from __future__ import annotations

from collections.abc import Callable

from mypy.plugin import ClassDefContext, Plugin

ROOMS = ("engine.core.primitive", "engine.registry", "operators")
DECORATORS = tuple(f"gradcli.{room}." for room in ROOMS)


def is_row(context: ClassDefContext) -> None:
    """Let a class be called, and be asked, for anything."""
    context.cls.info.fallback_to_any = True


class Rows(Plugin):
    """The plugin."""

    def get_class_decorator_hook(self, fullname: str) -> Callable[[ClassDefContext], None] | None:
        """What is done about a class that a decorator of this name makes another thing of."""
        return is_row if fullname.startswith(DECORATORS) else None


def plugin(version: str) -> type[Plugin]:
    """What mypy asks for."""
    return Rows

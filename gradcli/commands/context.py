"""What a command's work needs of click's context, without click."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import TypeAlias

    import click

    AnyContext: TypeAlias = "click.Context | Context"


class Context(ExitStack):
    """What is remembered while a command runs, and undone when it ends; with click's names for it."""

    obj = None  # there is no session around it

    def __init__(self) -> None:
        super().__init__()
        self.meta: dict[str, Any] = {}

    def with_resource(self, manager: AbstractContextManager[Any]) -> Any:
        """Enter a context manager, to be left at the end."""
        return self.enter_context(manager)

    def call_on_close(self, function: Callable[[], Any]) -> Any:
        """Call a function at the end."""
        return self.callback(function)

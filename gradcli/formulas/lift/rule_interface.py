"""The part of `lifting.Lifter` that symbolic rules use, as a protocol."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Protocol

from gradcli.formulas.algebra.expressions import Expression
from gradcli.transforms.tracing.calls import Call


class Lifter(Protocol):
    """See `symbolic.lifting.Lifter`."""

    nan_guards: bool
    again: bool
    given: Collection[int]

    def operand(self, value: Any) -> Any:
        """An operand as an expression; options are returned unchanged."""

    def general(self, word: str, made: Call, args: list[Any], names: str | None = None) -> Any:
        """A call of a public function: operands in full shape, and the options that are not defaults."""

    def whole(self, value: Any, given: Any) -> Expression:
        """An operand in its full shape; integers and booleans keep their dtype."""


Handler = Callable[[Lifter, Call, list[Any]], Any]

"""What a rule that reads a traced call as an expression may ask of the lifter of the whole program."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Protocol

from gradcli.symbolic.expressions import Expression
from gradcli.tracing.calls import Call


class Lifter(Protocol):
    """The lifter of a trace, as its rules know it (`symbolic.lifting`)."""

    nan_guards: bool
    again: bool
    given: Collection[int]

    def operand(self, value: Any) -> Any:
        """An operand as an expression; options stay what they are."""

    def general(self, word: str, made: Call, args: list[Any], names: str | None = None) -> Any:
        """A call of a public function: operands in full shape, options that are not the defaults."""

    def whole(self, value: Any, given: Any) -> Expression:
        """An operand in its full shape; integers and truth values as they are."""


Handler = Callable[[Lifter, Call, list[Any]], Any]

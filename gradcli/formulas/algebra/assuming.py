"""What holds of the program whose formula is made: the one thing that rules know beside their operands.

Expressions say what is computed, and not of which numbers. `abs(u)**2` is `u**2` of real numbers alone, and
`x + y` is a sum of numbers only if x is no condition. So whoever reads a program says what holds of it,

    with supposing(real=True, kinds={"x": "f"}):
        ...

and a rule that needs a fact asks `current.get().real`. It is one object, for facts that were set apart
could be those of two programs. It is not handed from function to function: rules are called by operators
(`u*v`), in tables and by lambdas, which have no place for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from gradcli.formulas.algebra.expressions import Expression


class BadAssumption(ValueError):
    """An unknown assumption, or one that a value contradicts; `hint` says what to do about it."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class Assuming(NamedTuple):
    """The facts, and how formulas are wanted.

    Of the program: real: all values are real. kinds: the `dtype.kind` of variables, "b" for conditions, "i"
    and "u" for integers. one_dtype: all values have one floating dtype, as `matmul` requires of its operands.
    averages: it uses `mean`, so that sum(x)/n is written as mean(x). exact: it has no decimals, so that 1.5
    is 3/2. integers: calls whose traced result is integers where their name does not tell, such as the
    indices of sort(x). whole: the call that is being lifted has an integer result, so that its operands may
    be integers.
    Of the user: signs: those of variables, 1 and -1. bold: names that LaTeX writes in bold. value: what it
    calls what is differentiated.
    Of the search: searching: whether shortest forms are searched; formulas that are found in several sizes
    are compared without.
    """

    real: bool = True
    kinds: Mapping[str, str] = MappingProxyType({})
    one_dtype: bool = False
    averages: bool = False
    exact: bool = False
    integers: set[Expression] | None = None
    whole: bool = False
    signs: frozenset[tuple[str, int]] = frozenset()
    bold: frozenset[str] = frozenset()
    value: str = "f"
    searching: bool = True


current: ContextVar[Assuming] = ContextVar("assuming", default=Assuming())  # noqa: B039 (immutable)


@contextmanager
def supposing(**facts: Any) -> Iterator[None]:
    """Make formulas under these facts, beside those that hold already."""
    token = current.set(current.get()._replace(**facts))
    try:
        yield
    finally:
        current.reset(token)


__all__ = ["Assuming", "BadAssumption", "current", "supposing"]

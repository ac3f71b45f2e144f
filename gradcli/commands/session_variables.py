"""What an expression of a session depends on: the lines that made its names, and its variables.

After `x = tensor([1., 2.])` and `loss = sum(x**2)` the variable of `grad loss` is x: the command runs
`loss = sum(x**2)` again with the x of the session. Where a session has numbers and no tensors, as in
`x = 3`, `y = x**2 + sin(x)`, the numbers are the variables of `grad y`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from gradcli.language import definitions
from gradcli.language.interpreter import UserFunction
from gradcli.language.located_errors import OPERATION_ERRORS, LanguageError


class GivenText(NamedTuple):
    """What a command is given: a text, and the names of the session, some of them as variables now.

    note: what is to be said of it; "" if nothing.
    """

    text: str
    names: Mapping[str, Any]
    note: str = ""


def asked(given: str, options: str, kept: Sequence[str], names: Mapping[str, Any]) -> GivenText:
    """The expression after the lines that made its names of others, and what are its variables.

    kept: the inputs that ran, in order. It is the text alone where these lines do not give again what the
    session has: they were random, or what they read has changed. A name in --wrt, or with a value of its
    own among the options, is a variable itself.
    """
    try:
        text = (
            shlex.split(given)[0] if given[0] in "\"'" else given
        )  # as it was pasted from a shell
        own = Dependencies(text, kept, names, _named_in(options))
        return own.by_numbers() or own.by_tensors() or GivenText(given, names)
    except (LanguageError, ValueError):
        return GivenText(given, names)


def _named_in(options: str) -> set[str]:
    """The names that --wrt lists, and those of the options that may be variables."""
    listed = " ".join(re.findall(r"--wrt[= ]\s*(\S+)", options))
    return set(re.findall(r"\w+", listed)) | set(re.findall(r"--(\w+)", options))


class Dependencies:
    """What a session knows of the names of an expression. chosen: those that are variables for certain."""

    def __init__(
        self, text: str, kept: Sequence[str], names: Mapping[str, Any], chosen: set[str]
    ) -> None:
        self.text, self.kept, self.names, self.chosen = text, kept, names, chosen
        self.tensors = {n for n, v in names.items() if _is_tensor(v)}
        self.numbers = {n for n, v in names.items() if _is_number(v)}
        self.before: dict[str, Any] | None = None
        self.changed: set[str] = set()  # that the lines behind them do not give again
        self.functions = {n for n, v in names.items() if isinstance(v, UserFunction)}

    def by_tensors(self) -> GivenText | None:
        """The variables are tensors; None where no line made the names of the text of others."""
        tensors, names = self.tensors, self.names
        lines = definitions.behind(self.text, self.kept, tensors | self.functions, self.chosen)
        if not lines:
            return GivenText(self.text, names, _stale(self.changed)) if self.changed else None
        whole = "\n".join(lines)
        own = {n: v.detach().clone() if n in tensors else v for n, v in names.items()}
        again, drawn = _run_again(whole, own)
        made = definitions.names_of(self.text) & tensors
        same = all(_is_same(again[n], names[n]) for n in made) and all(
            _is_same(own[n], names[n]) for n in tensors
        )
        if same and not drawn:
            return GivenText(f"{whole}\n{self.text}", names)
        return GivenText(self.text, names, _stale(made))

    def by_numbers(self) -> GivenText | None:
        """The variables are numbers; None where a tensor is one, or where numbers cannot be.

        It is tried: with tensors in their place, which require grad, the lines have to run, to give the
        values of the session, and to depend on them. Whole numbers that must stay numbers, like the 3 of
        `ones(3)`, are left as they are when the first try fails.
        """
        leaves = {n for n in self.tensors if self.names[n].requires_grad and self.names[n].is_leaf}
        may_be = self.tensors | self.numbers | self.functions
        lines = definitions.behind(self.text, self.kept, may_be, self.chosen | leaves)
        read = definitions.names_of("\n".join([*lines, self.text]))
        if read & self.tensors:
            return None
        if (found := self._tried(lines, read & self.numbers)) is not None or not lines:
            return found
        made = definitions.names_of(self.text) & self.numbers
        changed = self.changed
        if (found := self._tried([], made)) is not None:
            return found._replace(note=_stale(made))
        self.changed = changed
        return None

    def _tried(self, lines: Sequence[str], variables: set[str]) -> GivenText | None:
        floats = {n for n in variables if isinstance(self.names[n], float)}
        for tried in (variables, floats):
            if tried and self._holds(lines, own := self._with_leaves(tried)):
                return GivenText("\n".join([*lines, self.text]), own, self._said(lines, tried))
        return None

    def _with_leaves(self, variables: set[str]) -> dict[str, Any]:
        return {n: _leaf(v) if n in variables else v for n, v in self.names.items()}

    def _holds(self, lines: Sequence[str], own: Mapping[str, Any]) -> bool:
        """Whether the lines give what the session has, and depend on the leaves."""
        try:
            again, drawn = _run_again("\n".join([*lines, self.text]), dict(own))
            before = self._before()
        except (LanguageError, *OPERATION_ERRORS):
            return False
        made = {"_", *(definitions.names_of(self.text) & (self.tensors | self.numbers))}
        depends = any(getattr(again[n], "requires_grad", False) for n in made)
        self.changed = {n for n in made if not _is_near(again[n], before[n])} - {"_"}
        return depends and not drawn and not self.changed

    def _before(self) -> dict[str, Any]:
        """The names after the text alone, and its value, as the session has them; it runs once."""
        if self.before is None:
            self.before, _ = _run_again(self.text, dict(self.names))
        return self.before

    def _said(self, lines: Sequence[str], variables: set[str]) -> str:
        listed = ", ".join(f"{n} = {v}" for n, v in self.names.items() if n in variables)
        what = "is the variable" if len(variables) == 1 else "are the variables"
        return f"note: {listed} {what}" + f", through {'; '.join(lines)}" * bool(lines)


def _stale(made: Iterable[str]) -> str:
    listed = ", ".join(sorted(made))
    return f"note: {listed} keeps its value; the lines that made it would give another now"


def _run_again(whole: str, names: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """The names after a text, and its value as `_`; whether it drew random numbers."""
    from gradcli.engine.core import random
    from gradcli.language import parse, run

    state = random.snapshot()
    try:
        result = run(parse(whole), names, write=lambda text: None)
        return {**result.names, "_": result.value}, random.rewind(state)
    except BaseException:
        random.rewind(state)
        raise


def _leaf(number: Any) -> Any:
    """A leaf of the number."""
    from gradcli.engine.registry.table import resolve

    kind = complex if isinstance(number, complex) else float
    return resolve("tensor")(kind(number), requires_grad=True)


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "requires_grad")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | complex) and not isinstance(value, bool)


def _is_same(one: Any, two: Any) -> bool:
    import numpy as np

    return one.dtype is two.dtype and np.array_equal(one.array, two.array, equal_nan=True)


def _is_near(one: Any, two: Any) -> bool:
    """Equal but for rounding: numbers are doubles, tensors may be single."""
    import numpy as np

    one, two = (v.detach().array if _is_tensor(v) else v for v in (one, two))
    return bool(np.shape(one) == np.shape(two) and np.allclose(one, two, rtol=1e-4, equal_nan=True))

"""The text of derivatives: what is printed is what is proved."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gradcli.symbolic.differentiate import Derivatives
from gradcli.symbolic.expression_text import Printer
from gradcli.symbolic.expressions import Expression
from gradcli.symbolic.shape_inference import sizes_said
from gradcli.symbolic.sharing import shared_parts, size_of

LONGEST = 20_000  # characters up to which a derivative is printed without shared names


class Printed:
    """The text of derivatives in one format.

    shared: (name, text) of subexpressions that occur more than once. by: the text of the derivative by
    each variable. code: the program, if the format is one; then `shared` and `by` are empty. general:
    whether it is proved for other sizes too, so that it holds for any; None: not tried. wrong: variables
    of other sizes for which it is known to be wrong. alike: whether it holds in other sizes as long as
    equal sizes stay equal.
    """

    __slots__ = ("alike", "by", "code", "form", "general", "shared", "wrong")

    def __init__(
        self,
        form: str,
        by: dict[str, str],
        shared: list[tuple[str, str]] | None = None,
        code: str = "",
    ) -> None:
        self.form, self.by, self.shared, self.code = form, by, shared or [], code
        self.general: bool | None = None
        self.alike = False
        self.wrong: Mapping[str, Any] | None = None

    @property
    def lines(self) -> list[str]:
        """The assignments of shared subexpressions."""
        return [f"{word} = {text}" for word, text in self.shared]

    def where(self, arrays: Mapping[str, Any]) -> str:
        """The sizes for which it holds, in words, if it is not general; arrays: the variables."""
        own = sizes_said(arrays)
        return f"for shapes like {own}" if self.alike else f"for {own} alone"

    def alone(self, arrays: Mapping[str, Any]) -> str:
        """A sentence that says that it is not general."""
        if self.wrong is None:
            return f"this is for {sizes_said(arrays)}: in other sizes it is not proved"
        return f"this is {self.where(arrays)}: for {sizes_said(self.wrong)} it is wrong"


def printed(found: Derivatives, form: str = "text", cse: bool | None = None) -> Printed:
    """The derivatives in a format: text (and json), latex, or a program (`printed_programs.write`).

    cse: whether repeated subexpressions get a name; None: only if the text is long without.
    """
    if form not in ("text", "json", "latex"):
        from gradcli.symbolic import printed_programs

        return Printed(form, {}, code=printed_programs.write(found, form))
    printer, called = _notation(form)
    roots = list(found.by.values())
    if cse is None:
        cse = max(map(size_of, roots), default=0) > LONGEST
    names: dict[int, str] = {}
    shared = []
    if cse:
        for word, part in shared_parts(roots, taken=found.variables):
            shared.append((called(word), printer(names).text(part)))
            names[id(part)] = called(word)
    last = printer(names)
    return Printed(form, {n: names.get(id(e)) or last.text(e) for n, e in found.by.items()}, shared)


def _notation(form: str) -> tuple[type[Printer], Callable[[str], str]]:
    """The printer of a format, and the function that prints a name."""
    if form == "latex":
        from gradcli.symbolic.latex import LatexPrinter, symbol

        return LatexPrinter, symbol
    return Printer, str


def spelled_out(expression: Expression, form: str = "text") -> str | None:
    """The text of an expression without shared names; None if that would be too long."""
    if size_of(expression) > LONGEST:
        return None
    return _notation(form)[0]().text(expression)


__all__ = ["Printed", "printed", "spelled_out"]

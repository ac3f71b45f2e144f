"""The text of derivatives: what is printed is what is proved."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from gradcli.formulas.algebra.expression_text import Piece, Printer
from gradcli.formulas.algebra.expressions import Expression, order
from gradcli.formulas.derive.differentiate import Derivatives
from gradcli.formulas.derive.shape_inference import sizes_said
from gradcli.formulas.print.sharing import shared_parts, size_of

SHORTER = 0.8  # how much shorter the program's own names must make a text to stay in it
LONGEST = 20_000  # characters up to which a derivative is printed without shared names


class Printed:
    """The text of derivatives in one format.

    shared: (name, text) of subexpressions that occur more than once. by: the text of the derivative by
    each variable. code: the program, if the format is one; then `shared` and `by` are empty. general:
    whether it is proved for other sizes too, so that it holds for any; None: not tried. wrong: variables
    of other sizes for which it is known to be wrong. alike: whether it holds in other sizes as long as
    equal sizes stay equal. named: whether `shared` has the program's own names.
    """

    __slots__ = ("alike", "by", "code", "form", "general", "named", "shared", "wrong")

    def __init__(
        self,
        form: str,
        by: dict[str, str],
        shared: list[tuple[str, str]] | None = None,
        code: str = "",
    ) -> None:
        self.form, self.by, self.shared, self.code = form, by, shared or [], code
        self.general: bool | None = None
        self.alike = self.named = False
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
            return f"this is checked for {sizes_said(arrays)} only"
        return f"this is {self.where(arrays)}: for {sizes_said(self.wrong)} it is wrong"


class Formula(str):
    """A text of the language, an ordinary str, that a notebook shows as a formula."""

    __slots__ = ("_latex",)
    _latex: Callable[[], list[str]]

    @classmethod
    def of(cls, text: str, latex: Callable[[], list[str]]) -> Formula:
        """latex: gives the lines of it in LaTeX, once they are wanted."""
        made = cls(text)
        made._latex = latex
        return made

    def _repr_latex_(self) -> str:
        lines = self._latex()
        if len(lines) > 1:
            lines = [r"\begin{array}{l}", r" \\ ".join(lines), r"\end{array}"]
        return rf"$\displaystyle {' '.join(lines)}$"

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)


def printed(found: Derivatives, form: str = "text", cse: bool | None = None) -> Printed:
    """The derivatives in a format: text (and json), latex, or a program (`printed_programs.write`).

    cse: whether repeated subexpressions get a name; None: only if the text is long without. The names
    that the program itself gave stay where they make it shorter.
    """
    if form not in ("text", "json", "latex"):
        from gradcli.formulas.print import printed_programs

        return Printed(form, {}, code=printed_programs.write(found, form))
    # Both are printed, with the program's own names and without: which is shorter, only the texts tell.
    plain = _shown(found.by, {}, form, cse, found.variables)
    if found.named is None:
        return plain
    definitions, by = found.named
    over = _shown(by, definitions, form, cse, {**found.variables, **definitions})
    sizes = [sum(map(len, [*p.lines, *p.by.values()])) for p in (plain, over)]
    return over if over.named and (cse or sizes[1] < SHORTER * sizes[0]) else plain


def _shown(
    by: Mapping[str, Expression],
    definitions: Mapping[str, Expression],
    form: str,
    cse: bool | None,
    taken: Collection[str],
) -> Printed:
    """Derivatives over names that the program defines; those that they use are printed before."""
    kind, called = _notation(form)
    printer = kind()
    own: dict[str, Expression] = {}
    waiting = list(by.values())
    # A name's definition may use other names: all that are reached have to be printed before.
    while waiting:
        used = {node.data for node in order(waiting) if node.op == "name"}
        new = {n: definitions[n] for n in used if n in definitions and n not in own}
        own |= new
        waiting = list(new.values())
    roots = [*(e for n, e in definitions.items() if n in own), *by.values()]
    if cse is None:
        cse = max(map(size_of, roots), default=0) > LONGEST
    words = {part: word for word, part in shared_parts(roots, taken)} if cse else {}
    shared: list[tuple[str, str]] = []
    labels = [*(n for n in definitions if n in own), *[""] * len(by)]
    for label, root in zip(labels, roots, strict=True):
        # Operands first, so that a shared part is named before the part that contains it.
        for node in order([root]):
            if node in words and id(node) not in printer.names:
                shared.append((called(words[node]), printer.text(node)))
                printer.names[id(node)] = called(words[node])
        if label:
            shared.append((called(label), printer.text(root)))
    made = Printed(form, {n: printer.text(e) for n, e in by.items()}, shared)
    made.named = bool(own)
    return made


def _notation(form: str) -> tuple[type[Printer], Callable[[str], str]]:
    """The printer of a format, and the function that prints a name."""
    if form == "latex":
        from gradcli.formulas.print.latex import symbol
        from gradcli.formulas.print.latex_elements import ArrayPrinter

        return ArrayPrinter, symbol
    return Printer, str


def spelled_out(expression: Expression, form: str = "text") -> str | None:
    """The text of an expression without shared names; None if that would be too long."""
    if size_of(expression) > LONGEST:
        return None
    return _notation(form)[0]().text(expression)


def piece_over(expression: Expression, form: str, known: Mapping[Expression, Piece]) -> Piece:
    """The piece of an expression in which these parts are written so, in parentheses where needed."""
    printer = _notation(form)[0]()
    printer.pieces.update(known)
    return printer.piece(expression)


__all__ = ["Formula", "Printed", "piece_over", "printed", "spelled_out"]

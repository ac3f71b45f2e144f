"""The characters of a derivative, as they are printed and as they are proved."""

from __future__ import annotations

from gradcli.calculus.derivative import Derivatives
from gradcli.calculus.sharing import shared_parts, size_of
from gradcli.calculus.text import Printer

LONGEST = 20_000  # characters of a derivative that is printed without names for its shared parts


class Printed:
    """What is printed of derivatives.

    shared: (name, text) of parts that occur more than once. by: the text of each variable's derivative.
    code: the whole of a format that is a program, in which case there is nothing else. form: the format.
    general: whether it holds in other sizes of what nobody gave a shape; None: not known.
    """

    __slots__ = ("by", "code", "form", "general", "shared")

    def __init__(
        self,
        form: str,
        by: dict[str, str],
        shared: list[tuple[str, str]] | None = None,
        code: str = "",
    ) -> None:
        self.form, self.by, self.shared, self.code = form, by, shared or [], code
        self.general: bool | None = None

    @property
    def lines(self) -> list[str]:
        """The lines that name what is shared."""
        return [f"{word} = {text}" for word, text in self.shared]


def printed(found: Derivatives, form: str = "text", cse: bool | None = None) -> Printed:
    """The derivatives in a format: text (and json), latex, or a program's (`programs.write`).

    cse: whether what occurs more than once has a name; None: where it is long without.
    """
    if form == "latex":
        from gradcli.calculus.latex import to_latex

        return Printed(form, {n: to_latex(e) for n, e in found.by.items()})
    if form not in ("text", "json"):
        from gradcli.calculus import programs

        return Printed(form, {}, code=programs.write(found, form))
    roots = list(found.by.values())
    if cse is None or form == "json":
        cse = form == "text" and max(map(size_of, roots), default=0) > LONGEST
    names: dict[int, str] = {}
    shared = []
    if cse:
        for word, part in shared_parts(roots, taken=found.variables):
            shared.append((word, Printer(names).text(part)))
            names[id(part)] = word
    printer = Printer(names)
    return Printed(
        form, {n: names.get(id(e)) or printer.text(e) for n, e in found.by.items()}, shared
    )


__all__ = ["Printed", "printed"]

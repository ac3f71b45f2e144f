"""The note on statements whose value is not used: `x**2` in `diff "x**2; x**3"`."""

from __future__ import annotations

from collections.abc import Container

from gradcli.commands.output import note
from gradcli.language.program import Program
from gradcli.language.unused_statements import unused, words

# Commands that answer a file of formulas line by line: see `formula_lists`.
BY_LINE = frozenset(("diff", "simplify", "eval", "grad", "jacobian", "hessian", "taylor", "check"))
# Commands that read several last statements together: the equations of a system, the curves of a picture.
READ = {"root": ("any",), "plot": ("eq", "lt", "le", "gt", "ge"), "fit": ("eq",)}


def note_unused(program: Program, command: str, from_file: bool) -> None:
    """Say which statements of a command's program have no effect, once for all of them."""
    if (said := about_unused(program, command)) is None:
        return
    if command in BY_LINE and not from_file:
        said += (
            f"; a file of formulas, one a line, is answered line by line: gradcli {command} -f FILE"
        )
    if command == "plot":
        found = [program.source[a:b] for a, b in unused(program, READ[command])]
        curves = ", ".join([*found, program.source[slice(*program.value_span or (0, 0))]])
        said += f"; several curves are one expression: {curves}"
    note(said)


def about_unused(program: Program, command: str, known: Container[str] = ()) -> str | None:
    """The note's words, for a command, a verb of Python or the session ("run"); None where all is used.

    known: names that were made before. A program of `run` is a list of steps: what it assigns is not
    unused.
    """
    used = READ.get(command, ())
    return words(program, unused(program, used, known=known, steps=command == "run"))

"""The note on statements whose value is not used: `x**2` in `diff "x**2; x**3"`."""

from __future__ import annotations

from gradcli.commands.output import note
from gradcli.language.program import Program
from gradcli.language.unused_statements import unused

# Commands that answer a file of formulas line by line: see `formula_lists`.
BY_LINE = frozenset(("diff", "simplify", "eval", "grad", "jacobian", "hessian", "taylor", "check"))
# Commands that read several last statements together: the equations of a system, the curves of a picture.
_READ = {"root": ("any",), "plot": ("eq", "lt", "le", "gt", "ge"), "fit": ("eq",)}


def note_unused(program: Program, command: str, from_file: bool) -> None:
    """Say which statements of a command's program have no effect, once for all of them.

    Not for `run`, whose program is Python, which has no such note.
    """
    if command == "run":
        return
    found = [program.source[start:end] for start, end in unused(program, _READ.get(command, ()))]
    if not found:
        return
    first = " ".join(found[0].split())
    said = f"`{first}` has no effect, and its value is not used"
    if len(found) > 1:
        said = f"{len(found)} statements have no effect, and their values are not used: first `{first}`"
    if command in BY_LINE and not from_file:
        said += (
            f"; a file of formulas, one a line, is answered line by line: gradcli {command} -f FILE"
        )
    if command == "plot":
        curves = ", ".join([*found, program.source[slice(*program.value_span or (0, 0))]])
        said += f"; several curves are one expression: {curves}"
    note(said)

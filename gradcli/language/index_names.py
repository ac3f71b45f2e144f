"""Which names stand in the brackets of an index: in `b[k - 1]`, k, which picks an element of b."""

from __future__ import annotations

from gradcli.language.program import Program
from gradcli.language.tree_kinds import KINDS

# What whole numbers stay whole in; a call, as in `b[floor(x).long()]`, may make them of others.
_WHOLE = frozenset("name constant add sub mul neg mod floordiv tuple index".split())


def index_names(program: Program) -> dict[str, set[str]]:
    """The names whose numbers must be whole, each with what it alone picks an element of, as b of `b[k]`."""
    found: dict[str, set[str]] = {}
    for row in range(len(program)):
        if KINDS[program.kinds[row]] != "subscript":
            continue
        whole, index = program.children(row)
        rows = range(program.subtree(index), index + 1)
        if not all(KINDS[program.kinds[at]] in _WHOLE for at in rows):
            continue
        for at in rows:
            if name := _name(program, at):
                picked = found.setdefault(name, set())
                if at == index and (of := _name(program, whole)):
                    picked.add(of)
    return found


def _name(program: Program, row: int) -> str | None:
    """The name that a row of the tree is."""
    if KINDS[program.kinds[row]] != "name":
        return None
    return program.source[slice(*program.span(row))]


__all__ = ["index_names"]

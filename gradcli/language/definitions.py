"""Which statements of a session made the names that an expression reads."""

from __future__ import annotations

from collections.abc import Sequence, Set

from gradcli.language import tree_kinds
from gradcli.language.parser import parse
from gradcli.language.program import Program
from gradcli.language.scope_checks import assigned_names, free_names

_AUGMENTED = frozenset(tree_kinds.KIND[f"{name}_assign"] for name in tree_kinds.BINARY)


def names_of(text: str) -> set[str]:
    """The names that a text reads."""
    return set(free_names(parse(text)))


def behind(
    text: str, texts: Sequence[str], variables: Set[str], fixed: Set[str] = frozenset()
) -> list[str]:
    """The statements, in order, that define names of the text in terms of other variables.

    texts: the inputs of the session, in order. variables: the names that may be variables. A name that is
    `fixed`, or depends on no other, remains a variable: its statement is left out unless a later one
    changes its value.
    """
    # Backwards through the session: the last statement that makes a needed name is kept, and what it
    # reads is needed from then on. With x = 2; y = x**2; z = y + 1 the text `z` needs y, then x, and x =
    # 2 depends on nothing: x stays a variable, and `y = x**2; z = y + 1` are what is found.
    needed = (names_of(text) & variables) - fixed
    found: list[str] = []
    later: set[str] = set()
    for statement in (s for t in reversed(texts) for s in reversed(_statements(parse(t)))):
        if not needed:
            break
        program = parse(statement)
        made = needed & _made(program)
        reads = names_of(statement) & variables
        if made and (reads or made & later):
            found.append(statement)
            later |= made
            needed = (needed - made) | (reads - fixed)
        else:
            needed -= made
    return found[::-1]


def _made(program: Program) -> set[str]:
    """The names that a statement assigns, including `y += 1`."""
    changed = [program.children(row)[0] for row, k in enumerate(program.kinds) if k in _AUGMENTED]
    rows = [4 * row for row in changed if program.kinds[row] == tree_kinds.NAME]
    return {*assigned_names(program), *(program.words[program.rows[row + 1]] for row in rows)}


def _statements(program: Program) -> list[str]:
    """The texts of a program's statements."""
    root = len(program) - 1
    rows = program.children(root) if program.kinds[root] == tree_kinds.KIND["block"] else [root]
    return [program.source[slice(*program.span(row))] for row in rows]

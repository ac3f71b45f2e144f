"""Statements of a program whose value nobody uses, and that do nothing else: `x**2` in `x**2; x**3`."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Container, Sequence
from types import EllipsisType, FrameType

from gradcli.language import names, tree_kinds
from gradcli.language.program import Program
from gradcli.language.scope_checks import assigned_names

_PACKAGE = __name__.partition(".")[0]
_K = tree_kinds.KIND
_CALLS = frozenset(_K[name] for name in ("call", "call_keywords"))
_NAMED = (_K["name"], _K["attribute"])
_EFFECTS = ("out", "inplace")  # arguments that are written to
# Functions of the table that change the process.
_SET_UP = frozenset(
    ("manual_seed", "save", "seed", "set_default_dtype", "set_grad_enabled", "set_rng_state")
)
# Methods by which lists, sets and dicts change, some of which are functions of the table, too.
_CHANGING = frozenset(
    "add append clear discard extend insert pop popitem remove reverse setdefault sort update".split()
)


def unused(
    program: Program, used: tuple[str, ...] = (), *, known: Container[str] = (), steps: bool = False
) -> list[tuple[int, int]]:
    """The spans of the statements at the top that are expressions without an effect, but for the last.

    So are definitions of functions that nothing calls, and, where the last statement is an assignment, whose
    name is the value, assignments to other names that nothing reads.

    used: the kinds of expressions of which the last ones, without a statement between them, are read, as the
    equations of a system are; "any" for all kinds. known: names that were made before, whose calls may do
    anything. steps: the program is a list of steps, whose assignments are its results.
    """
    statements = program.children(len(program) - 1)
    value = len(statements) - 1
    while value >= 0 and used and _is_used(program, statements[value], used):
        value -= 1
    last = statements[min(value, len(statements) - 2) + 1 :] if used else statements[-1:]
    ends = program.kinds[statements[-1]] == _K["assign"]
    return [
        program.span(row)
        for row in statements
        if row not in last and is_pure(program, row, known)
        if program.kinds[row] == _K["expression"] or (not steps and _is_unread(program, row, ends))
    ]


def words(program: Program, found: Sequence[tuple[int, int]]) -> str | None:
    """What is said of unused statements, once for all of them; None where there are none."""
    if not found:
        return None
    start, end = found[0]
    first = " ".join(program.source[start:end].split())
    if len(found) > 1:
        return f"{len(found)} statements have no effect, and their values are not used: first `{first}`"
    return f"`{first}` has no effect, and its value is not used"


def warn(program: Program, used: tuple[str, ...] = ()) -> None:
    """Warn a caller in Python, at the line that called gradcli, of unused statements."""
    if program.rows[-3] < 2 or (said := words(program, unused(program, used))) is None:
        return
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
        frame, level = frame.f_back, level + 1
    warnings.warn(said, stacklevel=level)


def _is_unread(program: Program, row: int, ends: bool) -> bool:
    """Whether a statement gives a function, or at all a value, to one name that nothing reads.

    ends: whether the program ends in an assignment too; beside an expression a value may be a step.
    """
    if program.kinds[row] != _K["assign"]:
        return False
    target, value, *_ = program.children(row)
    if program.kinds[target] != _K["target"] or not (ends or program.kinds[value] == _K["lambda"]):
        return False
    return not program.uses.get(_word(program, target), (0,))[0]


def _is_used(program: Program, row: int, used: tuple[str, ...]) -> bool:
    kind = tree_kinds.KINDS[program.kinds[row - 1]]
    return program.kinds[row] == _K["expression"] and (used == ("any",) or kind in used)


def is_pure(program: Program, statement: int, known: Container[str] = ()) -> bool:
    """Whether all that an expression calls are functions that change nothing, or that nobody knows."""
    rows = range(program.subtree(statement), statement)
    if len(rows) == 1 and program.kinds[rows[0]] == _K["constant"]:
        constant = program.constants[program.operands[rows[0]]]
        return not isinstance(constant, (str, EllipsisType))  # a docstring, an empty body
    for row in rows:
        kind = program.kinds[row]
        if kind == _K["walrus"] or (kind == _K["keyword_name"] and _word(program, row) in _EFFECTS):
            return False
        if kind in _CALLS and not _changes_nothing(program, program.children(row)[0], known):
            return False
    return True


def _changes_nothing(program: Program, callee: int, known: Container[str]) -> bool:
    """Whether what is called is a function of the table or of Python, or one of an unknown name.

    What the program defines, or --load brought, may do anything.
    """
    kind = program.kinds[callee]
    if kind in _CALLS:  # func.grad(f)(x), which is looked at itself
        return True
    if kind not in _NAMED:
        return False
    word = _word(program, callee)
    if word.endswith("_") or word in _SET_UP:
        return False
    if kind == _K["attribute"]:
        if word in _CHANGING:
            return False
        called = program.source[slice(*program.span(callee))]
        known_here = names.is_function(word) or names.is_function(called)  # special.ndtr
        return known_here or called.startswith(("func.", "torch.func."))
    if word in ("print", "display") or word in known or word in assigned_names(program):
        return False
    return names.is_function(word) or word in names.builtins() or not names.is_known(word)


def _word(program: Program, row: int) -> str:
    return program.words[program.operands[row]]

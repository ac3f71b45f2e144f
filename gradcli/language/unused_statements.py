"""Statements of a program whose value nobody uses, and that do nothing else: `x**2` in `x**2; x**3`."""

from __future__ import annotations

from gradcli.language import names, tree_kinds
from gradcli.language.program import Program
from gradcli.language.scope_checks import assigned_names

_K = tree_kinds.KIND
_CALLS = frozenset(_K[name] for name in ("call", "call_keywords"))
_NAMED = (_K["name"], _K["attribute"])
_EFFECTS = ("out", "inplace")  # arguments that are written to
# Functions of the table that change the process.
_SET_UP = frozenset(
    ("manual_seed", "save", "seed", "set_default_dtype", "set_grad_enabled", "set_rng_state")
)


def unused(program: Program, used: tuple[str, ...] = ()) -> list[tuple[int, int]]:
    """The spans of the statements at the top that are expressions without an effect, but for the last.

    So are definitions of functions that nothing calls, and, where the last statement is an assignment, whose
    name is the value, assignments to other names that nothing reads.

    used: the kinds of expressions of which the last ones, without a statement between them, are read, as the
    equations of a system are; "any" for all kinds.
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
        if row not in last and is_pure(program, row)
        if program.kinds[row] == _K["expression"] or _is_unread(program, row, ends)
    ]


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


def is_pure(program: Program, statement: int) -> bool:
    """Whether all that an expression calls are functions that change nothing, or that nobody knows."""
    rows = range(program.subtree(statement), statement)
    if len(rows) == 1 and program.kinds[rows[0]] == _K["constant"]:
        return not isinstance(program.constants[program.operands[rows[0]]], str)  # a docstring
    for row in rows:
        kind = program.kinds[row]
        if kind == _K["walrus"] or (kind == _K["keyword_name"] and _word(program, row) in _EFFECTS):
            return False
        if kind in _CALLS and not _changes_nothing(program, program.children(row)[0]):
            return False
    return True


def _changes_nothing(program: Program, callee: int) -> bool:
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
        called = program.source[slice(*program.span(callee))]
        return names.is_function(word) or called.startswith(("func.", "torch.func."))
    if word in ("print", "display") or word in assigned_names(program):
        return False
    return names.is_function(word) or word in names.builtins() or not names.is_known(word)


def _word(program: Program, row: int) -> str:
    return program.words[program.operands[row]]

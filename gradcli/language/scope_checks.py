"""What a tree must satisfy beyond the grammar, and which names it reads before it binds them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from gradcli.language import tree_kinds
from gradcli.language.located_errors import CannotAssign, LanguageError

if TYPE_CHECKING:
    from gradcli.language.program import Program

MAX_NESTED_FUNCTIONS = 100

_K = tree_kinds.KIND
_AUGMENTED = frozenset(_K[f"{name}_assign"] for name in tree_kinds.BINARY)
_WRITABLE = frozenset(_K[name] for name in ("name", "attribute", "subscript"))
_PLACED = frozenset(_K[name] for name in ("return", "return_nothing", "break", "continue"))
_LOOPS = frozenset(_K[name] for name in ("while", "for"))
_CALLS = frozenset(_K[name] for name in ("call", "call_keywords"))
_ATTRIBUTES = frozenset(_K[name] for name in ("attribute", "target_attribute"))
_FUNCTIONS = frozenset(_K[name] for name in ("function", "function_annotated", "lambda"))
_COMPREHENSIONS = frozenset(
    _K[name] for name in ("list_comprehension", "dict_comprehension", "generator")
)
_SCOPES = _FUNCTIONS | _COMPREHENSIONS  # rows whose names are their own
_SILENT = frozenset(_K[name] for name in ("annotated", "annotated_default", "function_annotated"))


def check(program: Program) -> None:
    """Refuse `return` outside a function, `break` outside a loop, and what cannot be written to."""
    kinds = program.kinds
    placed = False
    _check_nesting(program)
    for row, kind in enumerate(kinds):
        if kind < tree_kinds.CONTROL:
            continue
        if kind in _AUGMENTED:
            target = program.children(row)[0]
            if kinds[target] not in _WRITABLE:
                raise CannotAssign(
                    program.source, tree_kinds.KINDS[kinds[target]], program.span(target)
                )
        elif kind in _FUNCTIONS:
            _parameters(program, row)
        elif kind in _COMPREHENSIONS:
            _no_walrus(program, row)
        elif kind == _K["try"]:
            handlers = program.children(row)[1:]
            for handler in handlers[:-1]:
                if kinds[handler] == _K["except_all"]:
                    raise LanguageError(
                        "an `except` without a class must be the last one",
                        source=program.source,
                        span=(program.span(handler)[0], program.span(handler)[0] + len("except")),
                    )
        elif kind in _PLACED:
            placed = True
    if placed:
        _check_places(program)


def _check_nesting(program: Program) -> None:
    """Functions and comprehensions inside each other: so deep at most that scopes stay cheap."""
    # From the back: a parent stands behind its children, so going backwards it is met first. `enclosing`
    # has the first rows of the scopes around; one that begins behind the current row is over.
    enclosing: list[int] = []
    for row in range(len(program) - 1, -1, -1):
        while enclosing and enclosing[-1] > row:
            enclosing.pop()
        if program.kinds[row] in _SCOPES:
            enclosing.append(program.subtree(row))
            if len(enclosing) > MAX_NESTED_FUNCTIONS:
                what = "functions" if program.kinds[row] in _FUNCTIONS else "comprehensions"
                message = f"{what} are nested more than {MAX_NESTED_FUNCTIONS} deep"
                raise program.refused(message, row)


class Parameter(NamedTuple):
    """A parameter of a function: its word, the row of its default, whether it is given by name only."""

    word: int
    default: int | None
    by_name: bool


def parameters(program: Program, row: int) -> list[Parameter]:
    """The parameters of a function, in order."""
    found: list[Parameter] = []
    by_name = False
    for child in program.children(row):
        parts = program.children(child)
        kind = program.kinds[child]
        by_name = by_name or kind == _K["keyword_mark"]
        if kind == _K["parameter"]:
            found.append(Parameter(program.rows[4 * child + 1], None, by_name))
        elif kind == _K["annotated"]:
            found.append(Parameter(program.rows[4 * parts[0] + 1], None, by_name))
        elif kind in (_K["parameter_default"], _K["annotated_default"]):
            found.append(Parameter(program.rows[4 * parts[0] + 1], parts[-1], by_name))
    return found


def _no_walrus(program: Program, row: int) -> None:
    """In Python `:=` binds outside of the comprehension that it stands in; here it is refused."""
    walrus = program.kinds.find(_K["walrus"], program.subtree(row), row)
    if walrus >= 0:
        message = "`:=` in a comprehension is not part of this language"
        raise program.refused(message, walrus, "write a loop")


def _parameters(program: Program, row: int) -> None:
    seen: set[int] = set()
    for word, _, _ in parameters(program, row):
        if word in seen:
            body = program.subtree(program.children(row)[-1])
            where = max(
                i for i in range(program.subtree(row), body) if program.rows[4 * i + 1] == word
            )
            raise program.refused(f"two parameters are called `{program.words[word]}`", where)
        seen.add(word)


def _check_places(program: Program) -> None:
    """Walk down from the root, knowing what encloses each row."""
    kinds = program.kinds
    waiting = [(len(program) - 1, False, False)]
    while waiting:
        row, in_function, in_loop = waiting.pop()
        kind = kinds[row]
        if kind in _PLACED:
            if kind in (_K["return"], _K["return_nothing"]) and not in_function:
                hint = "a program's value is its last expression"
                raise program.refused("`return` outside a function", row, hint)
            if kind in (_K["break"], _K["continue"]) and not in_loop:
                raise program.refused(f"`{tree_kinds.KINDS[kind]}` outside a loop", row)
        elif kind in _FUNCTIONS:
            in_function, in_loop = True, False
        elif kind in _LOOPS:
            in_loop = True
        if kind >= tree_kinds.CONTROL or kind == _K["block"]:
            waiting.extend((child, in_function, in_loop) for child in program.children(row))


def free_names(program: Program) -> list[str]:
    """The names that are read before the program binds them, in order of first appearance."""
    words, rows = program.words, program.rows
    kinds = bytes(rows[0::4].tolist())
    # Most expressions bind nothing: all their names are free, and one look at the kinds tells it.
    if any(kind in kinds for kind in (*_BINDERS, *_SCOPES)):
        return list(free_reads(program))
    pairs = zip(kinds, rows[1::4], strict=True)
    reads = (operand for kind, operand in pairs if kind == tree_kinds.NAME)
    return [words[word] for word in dict.fromkeys(reads)]


def free_reads(program: Program) -> dict[str, int]:
    """For each name that is read before the program binds it, the first row that does."""
    words, rows, kinds = program.words, program.rows, program.kinds
    # On an example: in `y = x; f = lambda t: t + z; z = 1` x is free. t is the function's own, and z is
    # not free, since the body runs later than its assignment.
    name = tree_kinds.NAME
    local, later = ({}, set()) if program.straight else scopes(program)
    binds, silent = _bindings(program, local)
    everywhere = {word for found in binds.values() for word in found}
    bound: set[int] = set()
    free: dict[int, int] = {}
    for row, kind in enumerate(kinds):
        if kind == name and row not in silent:
            word = rows[4 * row + 1]
            # A function's body runs when it is called, by then everything that the program binds may be
            # bound.
            known = everywhere if row in later else bound
            if word not in known and not any(word in scope for scope in local.get(row, ())):
                free.setdefault(word, row)
        bound.update(binds.get(row, ()))
    return {words[word]: row for word, row in free.items()}


_TARGETS = frozenset(_K[name] for name in ("target", "module"))
# Rows that bind names: (which children are the targets, which child's end is when they are bound).
_BINDERS: dict[int, tuple[slice, int | None]] = {
    _K["assign"]: (slice(0, -1), None),
    _K["walrus"]: (slice(0, 1), None),
    _K["for"]: (slice(0, 1), 1),
    _K["with_item_as"]: (slice(1, 2), None),
    _K["except_as"]: (slice(1, 2), 1),
    _K["import_module"]: (slice(0, 1), None),
    _K["import_module_as"]: (slice(1, 2), None),
    _K["function"]: (slice(0, 1), None),
    _K["function_annotated"]: (slice(0, 1), None),
}


def _bindings(
    program: Program, local: Mapping[int, object]
) -> tuple[dict[int, list[int]], frozenset[int]]:
    """(row: words bound at the program's own level when it ends, rows that are never run)."""
    rows, kinds = program.rows, program.kinds
    binds: dict[int, list[int]] = {}
    silent: set[int] = set()
    for row, kind in enumerate(kinds):
        if kind in _SILENT:
            children = program.children(row)
            part = children[-2] if kind == _K["function_annotated"] else children[1]
            silent.update(range(program.subtree(part), part + 1))
        if kind not in _BINDERS or row in local:
            continue
        which, when = _BINDERS[kind]
        children = program.children(row)
        at = row if when is None else children[when]
        for child in children[which]:
            binds.setdefault(at, []).extend(
                rows[4 * i + 1]
                for i in range(program.subtree(child), child + 1)
                if kinds[i] in _TARGETS
            )
    return binds, frozenset(silent)


def scopes(program: Program) -> tuple[dict[int, tuple[frozenset[int], ...]], set[int]]:
    """(names of its own and of what encloses it, for every row inside a scope; rows run when called).

    A scope is a function's or a comprehension's.
    """
    kinds = program.kinds
    inside: dict[int, tuple[frozenset[int], ...]] = {}
    later: set[int] = set()
    # Backwards for the same reason: the scope around is known before the one inside, whose names come
    # first.
    for row in range(len(kinds) - 1, -1, -1):
        if kinds[row] not in _SCOPES:
            continue
        own = (local_names(program, row), *inside.get(row, ()))
        for part in _own_rows(program, row):
            inside.update(dict.fromkeys(part, own))
            if kinds[row] in _FUNCTIONS:
                later.update(part)
    return inside, later


def _own_rows(program: Program, row: int) -> tuple[range, ...]:
    """The rows that run in a scope: a function's body; of a comprehension all but what it begins from."""
    children = program.children(row)
    if program.kinds[row] in _FUNCTIONS:
        return (range(program.subtree(children[-1]), children[-1] + 1),)
    # What the first loop of a comprehension iterates over is computed outside of it, as in Python.
    values = program.children(children[1])[1]
    return range(program.subtree(row), program.subtree(values)), range(values + 1, row)


def local_names(program: Program, row: int) -> frozenset[int]:
    """The names that a scope binds: a function's parameters and what its body assigns to; targets."""
    kinds, rows = program.kinds, program.rows
    if kinds[row] in _COMPREHENSIONS:
        targets = (program.children(clause)[0] for clause in program.children(row)[1:])
        return frozenset(
            rows[4 * i + 1]
            for target in targets
            for i in range(program.subtree(target), target + 1)
            if kinds[i] == _K["target"]
        )
    names: set[int] = {parameter.word for parameter in parameters(program, row)}
    children = program.children(row)
    body = children[-1]
    inner = program.subtree(body)
    skip: set[int] = set()
    for i in range(body, inner - 1, -1):
        # What an inner scope binds is its own, but for the name of a function.
        if kinds[i] in _COMPREHENSIONS and i not in skip:
            for part in _own_rows(program, i):
                skip.update(part)
        elif kinds[i] in _FUNCTIONS and i not in skip:
            found = program.children(i)
            if kinds[i] != _K["lambda"]:
                names.add(rows[4 * found[0] + 1])
            skip.update(range(program.subtree(i), i))
        elif kinds[i] == _K["target"] and i not in skip:
            names.add(rows[4 * i + 1])
        elif kinds[i] == _K["import_module"] and i not in skip:
            names.add(rows[4 * program.subtree(i) + 1])
        elif kinds[i] in _AUGMENTED and i not in skip:
            target = program.children(i)[0]
            if kinds[target] == tree_kinds.NAME:
                names.add(rows[4 * target + 1])
    return frozenset(names)


def is_only_called(program: Program, name: str) -> bool:
    """True if every use of a name is `name(...)`."""
    reads, called, _ = program.uses[name]
    return reads == called


def is_variable(program: Program, name: str) -> bool:
    """Whether a name that is read before it is bound stands for a value that somebody must give.

    It does if it has no meaning; if it is a letter, or a function of nn.functional's (`pad`, `linear`),
    that is not only called; and if it is a namespace (`F`, `nn`, `special`) that is never called and of
    which no attribute is taken.
    """
    from gradcli.language import names

    if not names.is_known(name):
        return True
    # People call their variables e and t, and write `pad` for a padding: only a call tells the function.
    if name in names.LETTERS or names.functional(name) is not None:
        return not is_only_called(program, name)
    return names.is_namespace(name) and is_bare(program, name)


def read_besides(program: Program, others: Iterable[Program]) -> dict[str, Program]:
    """The variables that other programs read, each with the first: those that this has not and makes not."""
    own = {*free_names(program), *assigned_names(program)}
    found: dict[str, Program] = {}
    for other in others:
        for name in free_names(other):
            if name not in own and is_variable(other, name):
                found.setdefault(name, other)
    return found


def may_be_variable(program: Program, name: str) -> bool:
    """The same where nobody gives values: a function's name that is not only called stands for one."""
    from gradcli.language import names

    if is_only_called(program, name):
        return False
    return names.is_plain_function(name) or names.meaning(name) is None


def is_bare(program: Program, name: str) -> bool:
    """True if a name is never called and no attribute of it is taken."""
    _, called, held = program.uses[name]
    return not called and not held


def uses(program: Program) -> dict[str, tuple[int, int, int]]:
    """How often each name is read, is called, has an attribute taken."""
    found = {word: [0, 0, 0] for word in program.words}
    rows, words = program.rows, program.words
    for row, kind in enumerate(program.kinds):
        if kind == tree_kinds.NAME:
            found[words[rows[4 * row + 1]]][0] += 1
        elif kind in _CALLS or kind in _ATTRIBUTES:
            first = program.children(row)[0]
            if program.kinds[first] == tree_kinds.NAME:
                found[words[rows[4 * first + 1]]][1 if kind in _CALLS else 2] += 1
    return {word: (reads, called, held) for word, (reads, called, held) in found.items()}


def assigned_names(program: Program) -> list[str]:
    """The names that the program assigns, in order."""
    return list(dict.fromkeys(word for kind, word, _, _ in program.walk() if kind == "target"))

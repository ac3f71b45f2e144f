"""What a tree must satisfy beyond the grammar, and which names it reads before it binds them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradcli.language import tree
from gradcli.language.errors import LanguageError

if TYPE_CHECKING:
    from gradcli.language.program import Program

MAX_NESTED_FUNCTIONS = 100

_K = tree.KIND
_AUGMENTED = frozenset(_K[f"{name}_assign"] for name in tree.BINARY)
_WRITABLE = frozenset(_K[name] for name in ("name", "attribute", "subscript"))
_PLACED = frozenset(_K[name] for name in ("return", "return_nothing", "break", "continue"))
_LOOPS = frozenset(_K[name] for name in ("while", "for"))
_CALLS = frozenset(_K[name] for name in ("call", "call_keywords"))
_FUNCTIONS = frozenset(_K[name] for name in ("function", "lambda"))


def check(program: Program) -> None:
    """Refuse `return` outside a function, `break` outside a loop, and what cannot be written to."""
    kinds = program.kinds
    placed = False
    _check_nesting(program)
    for row, kind in enumerate(kinds):
        if kind < tree.CONTROL:
            continue
        if kind in _AUGMENTED:
            target = program.children(row)[0]
            if kinds[target] not in _WRITABLE:
                from gradcli.language.complaints import target_error

                raise target_error(program.source, tree.KINDS[kinds[target]], program.span(target))
        elif kind in _FUNCTIONS:
            _parameters(program, row)
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
    """Functions inside functions: a hundred deep at most, so that scopes stay cheap."""
    enclosing: list[int] = []
    for row in range(len(program) - 1, -1, -1):
        while enclosing and enclosing[-1] > row:
            enclosing.pop()
        if program.kinds[row] in _FUNCTIONS:
            enclosing.append(program.subtree(row))
            if len(enclosing) > MAX_NESTED_FUNCTIONS:
                raise LanguageError(
                    f"functions are nested more than {MAX_NESTED_FUNCTIONS} deep",
                    source=program.source,
                    span=program.span(row),
                )


def _parameters(program: Program, row: int) -> None:
    seen: set[str] = set()
    for child in program.children(row):
        kind = program.kinds[child]
        if kind == _K["parameter_default"]:
            child = program.children(child)[0]
        elif kind != _K["parameter"]:
            continue
        name = program.words[program.rows[4 * child + 1]]
        if name in seen:
            raise LanguageError(
                f"two parameters are called `{name}`",
                source=program.source,
                span=program.span(child),
            )
        seen.add(name)


def _check_places(program: Program) -> None:
    """Walk down from the root, knowing what encloses each row."""
    kinds = program.kinds
    waiting = [(len(program) - 1, False, False)]
    while waiting:
        row, in_function, in_loop = waiting.pop()
        kind = kinds[row]
        if kind in _PLACED:
            if kind in (_K["return"], _K["return_nothing"]) and not in_function:
                raise LanguageError(
                    "`return` outside a function",
                    source=program.source,
                    span=program.span(row),
                    hint="a program's value is its last expression",
                )
            if kind in (_K["break"], _K["continue"]) and not in_loop:
                word = tree.KINDS[kind]
                raise LanguageError(
                    f"`{word}` outside a loop", source=program.source, span=program.span(row)
                )
        elif kind in _FUNCTIONS:
            in_function, in_loop = True, False
        elif kind in _LOOPS:
            in_loop = True
        if kind >= tree.CONTROL or kind == _K["block"]:
            waiting.extend((child, in_function, in_loop) for child in program.children(row))


def free_names(program: Program) -> list[str]:
    """The names that are read before the program binds them, in order of first appearance."""
    words, rows = program.words, program.rows
    target, name = _K["target"], tree.NAME
    if program.straight:
        return _free_in_order(program)
    local = scopes(program)
    bound: set[int] = set()
    everywhere = {
        rows[4 * row + 1]
        for row, kind in enumerate(program.kinds)
        if kind == target and row not in local
    }
    found: dict[int, None] = {}
    for row, kind in enumerate(program.kinds):
        word = rows[4 * row + 1]
        own = local.get(row)
        if kind == name:
            if own is not None:
                if not any(word in names for names in own) and word not in everywhere:
                    found.setdefault(word)
            elif word not in bound:
                found.setdefault(word)
        elif kind == target and own is None:
            bound.add(word)
    return [words[word] for word in found]


def _free_in_order(program: Program) -> list[str]:
    """For a program without functions: a name is bound when its assignment ends."""
    kinds, operands, words = program.kinds, program.operands, program.words
    target, name = _K["target"], tree.NAME
    ends = (_K["assign"], _K["import"], _K["import_from"])
    if target not in kinds:
        pairs = zip(kinds, operands, strict=True)
        return [words[word] for word in dict.fromkeys(word for kind, word in pairs if kind == name)]
    bound: set[int] = set()
    waiting: list[int] = []
    found: dict[int, None] = {}
    for kind, operand in zip(kinds, operands, strict=True):
        if kind == name:
            if operand not in bound:
                found.setdefault(operand)
        elif kind == target:
            waiting.append(operand)
        elif kind in ends:
            bound.update(waiting)
            waiting.clear()
    return [words[word] for word in found]


def scopes(program: Program) -> dict[int, tuple[frozenset[int], ...]]:
    """For every row inside a function: the names that are local to it and to what encloses it."""
    kinds = program.kinds
    inside: dict[int, tuple[frozenset[int], ...]] = {}
    for row in range(len(kinds) - 1, -1, -1):
        if kinds[row] not in _FUNCTIONS:
            continue
        names = local_names(program, row)
        outer = inside.get(row, ())
        own = (names, *outer)
        for child in body_rows(program, row):
            inside[child] = own
    return inside


def body_rows(program: Program, row: int) -> range:
    """The rows of a function's body."""
    body = program.children(row)[-1]
    return range(program.subtree(body), body + 1)


def local_names(program: Program, row: int) -> frozenset[int]:
    """The names that a function binds: its parameters and what its body assigns to."""
    kinds, rows = program.kinds, program.rows
    names: set[int] = set()
    children = program.children(row)
    parameters = children[:-1] if kinds[row] == _K["lambda"] else children[1:-1]
    for child in parameters:
        if kinds[child] == _K["parameter_default"]:
            child = program.children(child)[0]
        names.add(rows[4 * child + 1])
    body = children[-1]
    inner = program.subtree(body)
    skip: set[int] = set()
    for i in range(body, inner - 1, -1):
        if kinds[i] in _FUNCTIONS and i not in skip:
            found = program.children(i)
            if kinds[i] == _K["function"]:
                names.add(rows[4 * found[0] + 1])
            skip.update(range(program.subtree(i), i))
        elif kinds[i] == _K["target"] and i not in skip:
            names.add(rows[4 * i + 1])
    return frozenset(names)


def is_only_called(program: Program, name: str) -> bool:
    """True if every use of a name is `name(...)`."""
    word = program.words.index(name)
    rows = program.rows
    uses = {
        row
        for row, kind in enumerate(program.kinds)
        if kind == tree.NAME and rows[4 * row + 1] == word
    }
    for row, kind in enumerate(program.kinds):
        if kind in _CALLS:
            uses.discard(program.children(row)[0])
    return not uses

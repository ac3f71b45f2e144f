"""The tree of a parsed program."""

from __future__ import annotations

from array import array
from typing import Any

from gradcli.language import tree_kinds
from gradcli.language.located_errors import CannotAssign, LanguageError

Nested = tuple[Any, ...]

_NAMED = (
    *("name", "attribute", "target", "target_attribute"),
    *("module", "parameter", "keyword_name"),
)
_WORD_KINDS = frozenset(tree_kinds.KIND[name] for name in _NAMED)
_CONSTANT_KINDS = frozenset(tree_kinds.KIND[name] for name in ("constant", "convert"))


class Program:
    """A parsed program: rows (kind, operand, start, end) in post-order, and what they refer to.

    `rows` holds four integers a row. A name's or attribute's operand is an index into `words`, a
    constant's into `constants`; any other operand is a count or a mask. `straight` says that the rows
    need no jumps, so that they can be run from front to back.
    """

    __slots__ = (
        *("_firsts", "_kinds", "_uses"),
        *("constants", "rows", "source", "straight", "words"),
    )

    def __init__(
        self,
        source: str,
        rows: array[int],
        words: list[str],
        constants: list[Any],
        targets: list[int],
    ) -> None:
        self.source = source
        self.rows = rows
        self.words = words
        self.constants = constants
        self._firsts: array[int] | None = None
        self._uses: dict[str, tuple[int, int, int]] | None = None
        # The grammar reads `x, y[0] = …` as expressions, since only the `=` behind them tells that they
        # are targets. So their rows are renamed when the tree is whole.
        for row in targets:
            self._bind(row)
        self._kinds = bytes(rows[0::4].tolist())
        self.straight = max(self._kinds) < tree_kinds.CONTROL
        if not self.straight:
            from gradcli.language.scope_checks import check

            check(self)

    def __len__(self) -> int:
        return len(self.rows) // 4

    def __repr__(self) -> str:
        return f"<Program of {len(self)} rows>"

    @property
    def kinds(self) -> bytes:
        """The kind of every row."""
        return self._kinds

    @property
    def operands(self) -> array[int]:
        """The operand of every row."""
        return self.rows[1::4]

    def code(self) -> Code:
        """The instructions of a program that needs no jumps: (kind, operand, row) of every row."""
        rows = zip(self._kinds, self.rows[1::4], range(len(self._kinds)), strict=True)
        return Code(self, "", [rows])

    @property
    def spans(self) -> list[tuple[int, int]]:
        """Where in the source every row stands."""
        return list(zip(self.rows[2::4], self.rows[3::4], strict=True))

    def span(self, row: int) -> tuple[int, int]:
        """Where in the source a row stands."""
        return self.rows[4 * row + 2], self.rows[4 * row + 3]

    def refused(self, message: str, row: int, hint: str | None = None) -> LanguageError:
        """The error of a row, which points at its place in the source."""
        return LanguageError(message, source=self.source, span=self.span(row), hint=hint)

    def subtree(self, row: int) -> int:
        """The first row of the subtree that ends with this row."""
        if self._firsts is None:
            # In postfix order the children of a row end just before it. Walking from the front, with the
            # first rows of the subtrees that have no parent yet, a row with n children takes the last n
            # of these. For `a + b*c` (rows a, b, c, mul, add) the firsts are 0, 1, 2, 1, 0.
            firsts = array("i")
            open_subtrees: list[int] = []
            for i in range(len(self)):
                count = _children_count(self.rows[4 * i], self.rows[4 * i + 1])
                first = i
                if count:
                    first = open_subtrees[-count]
                    del open_subtrees[-count:]
                open_subtrees.append(first)
                firsts.append(first)
            self._firsts = firsts
        return self._firsts[row]

    def children(self, row: int) -> list[int]:
        """The last rows of the subtrees that a row consists of, first to last."""
        found = []
        # The last child ends just before the row; the one before it ends where that subtree begins, and
        # so on.
        child = row - 1
        for left in range(_children_count(self.rows[4 * row], self.rows[4 * row + 1]) - 1, -1, -1):
            found.append(child)
            if left:
                child = self.subtree(child) - 1
        found.reverse()
        return found

    @property
    def ends_in_expression(self) -> bool:
        """Whether the last statement is an expression, which a notebook would display."""
        return len(self) > 1 and self.rows[-8] == tree_kinds.KIND["expression"]

    @property
    def value_span(self) -> tuple[int, int] | None:
        """Where the source has the expression whose value is the program's; None where it has none."""
        return self.span(len(self) - 2) if self.ends_in_expression else None

    @property
    def uses(self) -> dict[str, tuple[int, int, int]]:
        """How often each name is read, is called, has an attribute taken."""
        if self._uses is None:
            from gradcli.language.scope_checks import uses

            self._uses = uses(self)
        return self._uses

    def free_variables(self) -> list[str]:
        """Names that are read before they are assigned and that stand for values."""
        from gradcli.language.scope_checks import free_names, is_variable

        return [name for name in free_names(self) if is_variable(self, name)]

    def nested(self) -> Nested:
        """The tree as nested tuples: (kind, operand's meaning, *children). For reading and for tests."""
        stack: list[Any] = []
        for name, meaning, count, _ in self.walk():
            children = stack[len(stack) - count :]
            del stack[len(stack) - count :]
            bare = meaning is None and name != "constant"
            stack.append((name, *(() if bare else (meaning,)), *children))
        return stack[0]  # type: ignore[no-any-return]

    def walk(self) -> list[tuple[str, Any, int, tuple[int, int]]]:
        """(kind, what the operand means or None, number of children, span) of every row, in post-order."""
        rows, found = self.rows, []
        for i in range(0, len(rows), 4):
            kind, operand = rows[i], rows[i + 1]
            meaning: Any = None
            if kind in _WORD_KINDS:
                meaning = self.words[operand]
            elif kind in _CONSTANT_KINDS:
                meaning = self.constants[operand]
            elif kind == tree_kinds.KIND["slice"]:
                meaning = operand
            span = rows[i + 2], rows[i + 3]
            found.append((tree_kinds.KINDS[kind], meaning, _children_count(kind, operand), span))
        return found

    def dump(self) -> str:
        """The tree as text, one row a line, children indented under their parents."""
        lines: list[str] = []
        waiting = [(len(self) - 1, 0)]
        entries = self.walk()
        while waiting:
            row, depth = waiting.pop()
            name, meaning, _, (start, end) = entries[row]
            value = "" if meaning is None and name != "constant" else f" {meaning!r}"
            lines.append(f"{'  ' * depth}{name}{value} [{start}:{end}]")
            waiting.extend((child, depth + 1) for child in reversed(self.children(row)))
        return "\n".join(lines)

    def _bind(self, root: int) -> None:
        """Turn the expression that ends at this row into what an assignment writes to."""
        rows = self.rows
        waiting = [root]
        while waiting:
            row = waiting.pop()
            kind = rows[4 * row]
            if kind == tree_kinds.NAME:
                rows[4 * row] = tree_kinds.KIND["target"]
            elif kind == tree_kinds.KIND["attribute"]:
                rows[4 * row] = tree_kinds.KIND["target_attribute"]
            elif kind == tree_kinds.KIND["subscript"]:
                rows[4 * row] = tree_kinds.KIND["target_subscript"]
            elif kind in (
                tree_kinds.KIND["tuple"],
                tree_kinds.KIND["list"],
                tree_kinds.KIND["target_tuple"],
            ):
                rows[4 * row] = tree_kinds.KIND["target_tuple"]
                waiting.extend(self.children(row))
            elif kind != tree_kinds.KIND["target"]:
                raise CannotAssign(self.source, tree_kinds.KINDS[kind], self.span(row))


def _children_count(kind: int, operand: int) -> int:
    """How many subtrees stand before a row of this kind."""
    arity = tree_kinds.ARITY[kind]
    if arity >= 0:
        return arity
    if arity == tree_kinds.BITS:
        return operand.bit_count()
    return operand - 1 - arity


class Code:
    """The instructions of a program or of one of its functions: (operation, argument, row), in blocks."""

    __slots__ = ("blocks", "defaulted", "name", "parameters", "positional", "program")

    def __init__(self, program: Program, name: str, blocks: list[Any]) -> None:
        self.program = program
        self.name = name
        self.blocks = blocks
        self.parameters: list[str] = []
        self.defaulted: list[str] = []  # those with a default
        self.positional = 0  # how many of them may be given by position: the first

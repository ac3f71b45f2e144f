"""Steps with their rules, as a teacher writes them: columns of text, or LaTeX to paste into a document."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.formulas.algebra.expression_text import ATOM, SUM, Piece
from gradcli.formulas.algebra.expressions import Expression, order
from gradcli.formulas.print.latex import symbol
from gradcli.formulas.print.printed_text import piece_over

if TYPE_CHECKING:
    from gradcli.formulas.ask.board_steps import Node

GAP = 3  # blanks between columns
INDENT = 2  # blanks before a part
SHORT = 60  # characters that stand in one line though they are two forms of a change
LONGEST = 400  # characters of a line that is put together; a longer one is left out


# A factor 1 that was put in: `1 y` reads as a number with a name.
ONE = re.compile(
    r"(?<![\w.^{}])1 (?=[A-Za-z(]|\\left|\\(?:sin|cos|tan|log|frac|sqrt|operatorname|mathrm)\b)"
)


class Line(NamedTuple):
    """A line of a board. own: `u = x**2`, or nothing; change: `u' = 2*x`; rule: its name, or nothing."""

    depth: int
    own: tuple[str, str] | None
    change: tuple[str, str]
    rule: str


class Writer:
    """Writes steps in a form: text or latex. differentials: whether changes are dx and du, or primes."""

    def __init__(self, nodes: Sequence[Node], form: str, differentials: bool) -> None:
        self.form, self.differentials = form, differentials
        self.said: dict[str, str] = {}  # the change of a name or of a term without one
        for node in (n for whole in nodes for n in whole.walk()):
            self.said[node.name] = self.change_of(node)

    def word(self, name: str) -> str:
        """A step's name, with its primes."""
        if self.form != "latex":
            return name
        base = name.rstrip("'")
        return symbol(base) + name[len(base) :]

    def change_of(self, node: Node) -> str:
        """What is written for the change of a step: u', du, or (x**2)' of a term without a name."""
        own = self.word(node.name)
        if not node.called:
            own = self.text(node.own)
            own = rf"\left({own}\right)" if self.form == "latex" else f"({own})"
        if not self.differentials:
            return f"{own}'"
        return rf"\mathrm{{d}}{own}" if self.form == "latex" else f"d{own}"

    def piece(self, expression: Expression, put_in: dict[str, Piece] | None = None) -> Piece:
        """An expression, with the names that are put in written as their pieces."""
        known: dict[Expression, Piece] = {}
        for node in order([expression]):
            if node.op == "name":
                base = self.base(node)
                if put_in and node.data in put_in:
                    known[node] = put_in[node.data]
                elif base in self.said:
                    known[node] = self.said[base], ATOM
                elif node.data.endswith("'"):
                    known[node] = f"{self.word(node.data[:-1])}'", ATOM
        return piece_over(expression, self.form, known)

    def base(self, node: Expression) -> str:
        """The step whose change a name is; nothing for other names."""
        word = str(node.data)
        if self.differentials:
            return word[1:] if word.startswith("d") else ""
        return word[:-1] if word.endswith("'") else ""

    def text(self, expression: Expression) -> str:
        return self.piece(expression)[0]

    def together(self, node: Node) -> Iterator[str]:
        """The change with its parts put in, and its shortest form, where they are something new."""
        if not node.put_in:
            return
        put_in = {n: _signed(self.piece(e)) for n, e in node.put_in.items()}
        had = self.text(node.change)
        made = self.piece(node.change, put_in)[0]
        if self.form == "latex":
            made = ONE.sub(r"1 \\cdot ", made)
        for text in (made, self.text(node.derivative)):
            if text != had and len(text) <= LONGEST:
                yield text
            had = text

    def lines(self, node: Node) -> Iterator[Line]:
        """The lines of a step, those of its parts, and what they are together."""
        own = (self.word(node.name), self.text(node.own)) if node.called else None
        if own and self.form == "latex" and not node.depth:  # a document has not said what f is
            whole = self.text(node.whole)
            own = own if whole == own[1] else (own[0], f"{whole} = {own[1]}")
        change = self.text(node.change)
        rule = ", ".join(node.rules)
        left = self.change_of(node)
        yield Line(node.depth, own, (left, change), rule)
        for part in node.parts:
            yield from self.lines(part)
        made = list(self.together(node))
        if node.depth and len(made) > 1 and sum(map(len, made)) <= SHORT:
            made = [" = ".join(made)]
        for text in made:
            yield Line(node.depth, None, (left, text), "")
            left = ""


def _signed(piece: Piece) -> Piece:
    """A piece that has parentheses in a product if it begins with a sign: 2*(-x), not 2*-x."""
    return (piece[0], SUM) if piece[0].startswith("-") else piece


def to_text(nodes: Sequence[Node], differentials: bool, columns: int) -> list[str]:
    """The steps in columns, indented by depth; where a line has no room, its rule stands above it."""
    writer = Writer(nodes, "text", differentials)
    rows: list[tuple[str, str, str]] = []
    for whole in nodes:
        for line in writer.lines(whole):
            blank = " " * (INDENT * line.depth)
            change = f"{line.change[0] or ' ' * len(writer.change_of(whole))} = {line.change[1]}"
            if line.own is None:
                rows.append((f"{blank}{change}", "", line.rule))
            else:
                rows.append((f"{blank}{line.own[0]} = {line.own[1]}", change, line.rule))
    return list(in_columns(rows, columns))


def in_columns(rows: Sequence[tuple[str, str, str]], columns: int) -> Iterator[str]:
    """Lines of (definition, change, rule) in columns; under each other where the terminal is narrower.

    A line without a change stands across both columns; a rule that has no room, below its line.
    """
    first = max((len(own) for own, change, _ in rows if change), default=-GAP) + GAP
    second = max((len(change) for _, change, _ in rows), default=0) + GAP
    alone = [(len(own) + GAP, len(rule)) for own, change, rule in rows if rule and not change]
    left = max([first + second, *(own for own, rule in alone if own + rule <= columns)])
    for own, change, rule in rows:
        indent = " " * (len(own) - len(own.lstrip()))
        lines = [f"{own:<{first}}{change}" if change else own]
        if first + second - GAP > columns and change:
            lines = [own, f"{indent}{change}"]
        beside = len(lines) == 1 and len(lines[0]) + GAP <= left and left + len(rule) <= columns
        if rule and beside:
            yield f"{lines[0]:<{left}}{rule}"
            continue
        yield from lines
        yield from [f"{indent}    ({rule})"] * bool(rule)


def latex_blocks(nodes: Sequence[Node], differentials: bool) -> list[list[str]]:
    r"""The rows of amsmath's align*, in blocks: names with their changes, and what they are together.

    The rule is a row's tag, which amsmath moves below a row that leaves it no room.
    """
    writer = Writer(nodes, "latex", differentials)
    found: list[list[str]] = []
    for whole in nodes:
        names: list[str] = []
        together: list[str] = []
        for line in writer.lines(whole):
            change = f"{line.change[0]} &= {line.change[1]}".lstrip()
            if line.own is None and not line.rule and not line.depth:
                together.append(change)
                continue
            left = f"{line.own[0]} &= {line.own[1]} &" if line.own else "&&"
            names.append(f"{left} {change}{tag(line.rule)}")
        found += [names, *[together] * bool(together)]
    return found


def tag(rule: str) -> str:
    r"""A rule at the end of a row."""
    return rf" \tag*{{{rule}}}" if rule else ""


def to_json(
    nodes: Sequence[Node], more: Sequence[Node], differentials: bool
) -> list[dict[str, Any]]:
    """An object a step, the inner ones first; at last the whole with its names written out.

    more: the same steps with differentials. differentials: whether nodes are such, too.
    """
    primes, other = Writer(nodes, "text", differentials), Writer(more, "text", True)
    found: list[dict[str, Any]] = []
    for whole, also in zip(nodes, more, strict=True):
        for node, same in zip(whole.inner_first(), also.inner_first(), strict=True):
            made: dict[str, Any] = {
                "name": node.name if node.called and node is not whole else None,
                "expression": other.text(same.own),
                "differential": other.text(same.change),
                "rules": list(node.rules),
            }
            if not differentials:
                made["derivative"] = primes.text(node.derivative)
            found.append(made)
        if also.put_in:
            own, change = other.text(also.whole), other.text(also.derivative)
            found.append({"name": None, "expression": own, "differential": change, "rules": []})
    return found


__all__ = ["Writer", "in_columns", "latex_blocks", "tag", "to_json", "to_text"]

"""Compile grammars/gradcli.lark into the tables that the parser's driver runs.

    python -m gradcli.language.compile_grammar           writes gradcli/language/parser_tables.py
    python -m gradcli.language.compile_grammar --check   exit code 1 if that file is not what the grammar says

lark reads the grammar and computes the LALR(1) automaton. Here its states are renumbered (breadth first, so
that the output does not depend on hashing), chains of unit reductions are collapsed into the goto table, and
everything is written as short strings of numbers.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gradcli.language import tree_kinds

# Terminals whose numbers the driver knows by heart; the others are numbered after them.
FIRST_TERMINALS = (
    "$END",
    "NAME",
    "NUMBER",
    "NAME_EQ",
    "NAME_WALRUS",
    "ATTRIBUTE",
    "STRING",
    "NEWLINE",
    "INDENT",
    "DEDENT",
    "FORMAT_OPEN",
    "FORMAT_TEXT",
    "FORMAT_FIELD",
    "FORMAT_CONVERSION",
    "FORMAT_SPEC",
    "FORMAT_END",
    "FORMAT_CLOSE",
)

FIRST_CHARACTER = 35  # parser_tables.py writes token 0 as "#", token 1 as "$" and so on


def grammar_path() -> Path:
    """Where the grammar is: in a wheel inside the package, in a checkout or editable install beside it."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "grammars", package.parent / "grammars"):
        if (folder / "gradcli.lark").is_file():
            return folder / "gradcli.lark"
    raise FileNotFoundError(f"grammars/gradcli.lark is neither in {package} nor beside it")


def load_lark(**options: Any) -> Any:
    """The grammar as a lark parser (the oracle in tests, and the source of the tables)."""
    import lark

    text = grammar_path().read_text(encoding="utf-8")
    return lark.Lark(
        text, parser="lalr", lexer="basic", start="program", maybe_placeholders=False, **options
    )


def build() -> dict[str, Any]:
    """Everything in parser_tables.py, by name."""
    from lark.lexer import PatternStr

    parser = load_lark(debug=True, strict=False)
    automaton = parser.parser.parser._parse_table
    values = {terminal.name: terminal.pattern for terminal in parser.terminals}
    fixed = {name: p.value for name, p in values.items() if isinstance(p, PatternStr)}
    patterns = {name: p.value for name, p in values.items() if name not in fixed}
    words = sorted(fixed.values())
    terminals = [*FIRST_TERMINALS, *words]
    number = {name: i for i, name in enumerate(FIRST_TERMINALS)}
    number.update((name, terminals.index(word)) for name, word in fixed.items())

    rules = sorted(parser.rules, key=lambda r: (r.origin.name, r.order))
    nonterminals = sorted({rule.origin.name for rule in rules})
    position, prefix = _positions(automaton, number)
    action, goto = _actions(automaton, position, number, rules)
    rows, index = _goto_rows(action, goto, rules, nonterminals)
    return {
        "TERMINALS": terminals,
        "PLAIN": token_pattern(patterns, words, plain=True),
        "FULL": token_pattern(patterns, words, plain=False),
        "START": position[automaton.start_states["program"]],
        "END": position[automaton.end_states["program"]],
        "PREFIX": prefix,
        "ATOM": nonterminals.index("atom"),
        "RULES": [_what_is_done(rule, nonterminals) for rule in rules],
        "ACTION": [" ".join(_grouped(row, 0)) for row in action],
        "GOTO_ROWS": rows,
        "GOTO": index,
    }


def _positions(automaton: Any, number: dict[str, int]) -> tuple[dict[Any, int], int]:
    """(the numbers of the states, breadth first, the first number of those that begin a rule).

    States that are entered by a token that begins its rule come last.
    """
    from lark.parsers.lalr_analysis import Shift

    # lark numbers states by sets, whose order changes from run to run. Breadth first from the start, with
    # sorted tokens, gives the same numbers every time, so that the tables can be compared with a fresh
    # build.
    order = [automaton.start_states["program"]]
    seen = set(order)
    for state in order:
        row = automaton.states[state]
        for name in sorted(row, key=lambda n: (n not in number, number.get(n, 0), n)):
            action, argument = row[name]
            if action is Shift and argument not in seen:
                seen.add(argument)
                order.append(argument)
    begins = {state for state in order if _begins_rule(state)}
    order = [s for s in order if s not in begins] + [s for s in order if s in begins]
    position = {state: i + 1 for i, state in enumerate(order)}
    return position, len(order) - len(begins) + 1


def _actions(
    automaton: Any, position: dict[Any, int], number: dict[str, int], rules: list[Any]
) -> tuple[list[list[int]], list[dict[str, int]]]:
    """By state: (what each terminal does, the state after each nonterminal).

    A terminal is shifted to the state given, or reduces the rule whose number, from 1, is negative.
    """
    from lark.parsers.lalr_analysis import Shift

    rule_number = {rule: i for i, rule in enumerate(rules, 1)}
    width = max(number.values()) + 1
    action = [[0] * width for _ in range(len(position) + 1)]
    goto: list[dict[str, int]] = [{} for _ in range(len(position) + 1)]
    for state, row in automaton.states.items():
        here = position[state]
        for name, (kind, argument) in row.items():
            if kind is not Shift:
                action[here][number[name]] = -rule_number[argument]
            elif name in number:
                action[here][number[name]] = position[argument]
            else:
                goto[here][name] = position[argument]
    return action, goto


def _goto_rows(
    action: list[list[int]], goto: list[dict[str, int]], rules: list[Any], nonterminals: list[str]
) -> tuple[list[str], list[str]]:
    """(the different rows of states by the token that follows a nonterminal, which of them a state has)."""

    def collapse(state: int, name: str, token: int) -> int:
        """The state after `name` at `state` when `token` follows: unit reductions are done on the way."""
        # `x` alone goes through atom, power, term, sum, comparison … by rules of one symbol each that do
        # nothing. These reductions are done here, once for each state and token, so that the driver makes
        # none of them.
        there = goto[state][name]
        while (reduction := action[there][token]) < 0:
            rule = rules[-reduction - 1]
            if len(rule.expansion) != 1 or rule.alias or rule.origin.name not in goto[state]:
                break
            there = goto[state][rule.origin.name]
        return there

    rows: dict[str, int] = {}
    index = [""]
    for state in range(1, len(goto)):
        entry = []
        for name in sorted(goto[state]):
            row = [collapse(state, name, token) for token in range(len(action[0]))]
            # A token that is an error after the collapse may lead anywhere it stays an error: where most do.
            common = max(sorted(set(row)), key=row.count)
            usual = [
                common if not action[there][token] and not action[common][token] else there
                for token, there in enumerate(row)
            ]
            text = " ".join([str(common), *_grouped(usual, common)])
            entry.append(f"{nonterminals.index(name)} {rows.setdefault(text, len(rows))}")
        index.append(" ".join(entry))
    return list(rows), index


def _what_is_done(rule: Any, nonterminals: list[str]) -> tuple[int, int, int, int, int, int]:
    """(what a rule does, kind of the row, a number, its length, its values, its nonterminal)."""
    alias = rule.alias
    if alias is None:
        if len(rule.expansion) != 1:
            raise ValueError(f"{rule} wants an alias")
        alias = "keep"
    values = sum(
        not symbol.is_term or (i == 0 and symbol.name not in ("INDENT", "DEDENT"))
        for i, symbol in enumerate(rule.expansion)
    )
    nonterminal = nonterminals.index(rule.origin.name)
    return (*tree_kinds.aliases()[alias], len(rule.expansion), values, nonterminal)


def _begins_rule(state: Iterable[Any]) -> bool:
    """True if the state is entered by a token that is the first of its rule."""
    kernel = [item for item in state if item.index > 0]
    positions = {item.index == 1 and item.rule.expansion[0].is_term for item in kernel}
    if len(positions) > 1:
        raise ValueError(f"a token both begins and continues a rule: {kernel}")
    return positions == {True}


def _grouped(row: list[int], common: int) -> list[str]:
    """A row without its most common value: for each other value, it and its tokens as characters."""
    # A row of the table has one entry for each of about 80 tokens, nearly all alike. Written as "value
    # tokens value tokens", all rows are a module that loads in a few milliseconds.
    groups: dict[int, str] = {}
    for token, value in enumerate(row):
        if value != common:
            groups[value] = groups.get(value, "") + chr(FIRST_CHARACTER + token)
    return [f"{value} {tokens}" for value, tokens in groups.items()]


def token_pattern(patterns: dict[str, str], words: list[str], *, plain: bool) -> str:
    """One expression that findall cuts a text with: blanks before a token belong to it.

    The plain one is for a text without quotes, comments and backslashes. Whatever the text, there is a
    match where the last one ended, and none is looked for twice: blanks with nothing behind them are
    one, and so is a string that is never closed, with all that it swallows.
    """
    name, name_eq = patterns["NAME"], patterns["NAME_EQ"]
    walrus = patterns["NAME_WALRUS"]
    if not (name_eq.startswith(name) and walrus.startswith(name)):
        raise ValueError("NAME_EQ and NAME_WALRUS must begin as NAME does")
    number = patterns["NUMBER"].split("|")[0]  # the others are words and the ellipsis
    # Operators by their first character: `<`, `<=` become `<(?:=)?`, so that the longest is found without
    # trying one alternative for each operator at every place.
    tails: dict[str, list[str]] = {}
    for word in [*words, "..."]:
        if len(word) > 1 and not word[0].isalpha():
            tails.setdefault(word[0], []).append(word[1:])
    starts: dict[tuple[str, ...], list[str]] = {}
    for first, rest in tails.items():
        starts.setdefault(tuple(sorted(rest, key=lambda w: (-len(w), w))), []).append(first)
    operators = []
    for following, firsts in starts.items():
        first = re.escape(firsts[0]) if len(firsts) == 1 else f"[{re.escape(''.join(firsts))}]"
        tail = "|".join(re.escape(w) for w in following)
        operators.append(f"{first}{tail}" if first == r"\." else f"{first}(?:{tail})?")
    alone = "".join(word for word in words if len(word) == 1 and word not in tails)
    choices = [
        f"[{re.escape(alone)}]",  # brackets first: they are frequent, and quickly told
        f"{name}(?:{name_eq[len(name) :]}|{walrus[len(name) :]})?",
        number,
        *operators,
        patterns["ATTRIBUTE"],
        patterns["NEWLINE"],
        r"[^ \t\f\r\n]",
    ]
    blanks, behind = r"[ \t\f]*+", r"[ \t\f]++"
    if not plain:
        # No quantifier of a group is possessive: before 3.11.5 Python moves on where its last turn fails.
        continued = r"(?:\\\r?\n[ \t\f]*+)"
        blanks += rf"{continued}*(?!\\\r?\n)"
        behind = rf"{behind}{continued}*|{continued}+"
        string = re.sub(r"""\)\*('+|"+)""", r")*(?:\1)?", patterns["STRING"])
        choices = [string, *choices[:-1], r"#[^\r\n]*", choices[-1]]
    pattern = f"{blanks}(?:{'|'.join(choices)})|{behind}"
    return pattern.replace("\t", r"\t").replace("\f", r"\f")


# What parser_tables.py says above each table.
ABOUT = {
    "TERMINALS": """
The kinds of tokens by number. Those in capitals are known to the driver by their numbers; the others are
their own text. In the rows below a token is one character, chr(number + 35): the first is "#".""",
    "PLAIN": """
Cuts a text without quotes, comments and backslashes into tokens, blanks before each with it: "2 * x" into
"2", " *" and " x".""",
    "FULL": """
The same for any text: strings, comments and continued lines are tokens or blanks, too.""",
    "START": """
The states in which a program begins and has ended.""",
    "PREFIX": """
States from this one on are entered by a token that is the first of its rule, as a unary minus: the driver
remembers where such a token starts, which is where the rule will start.""",
    "ATOM": """
The nonterminal of a name or a number alone.""",
    "RULES": """
By rule, from 1: (what is done, the kind of the row that it adds to the program, a number for it, how many
symbols are taken from the stack, of how many of these the start is remembered, the nonterminal that takes
their place).""",
    "ACTION": """
By state, from 1: what it does at the next token. "84 U -4 *01" shifts the token U and goes to state 84, and
reduces by rule 4 before each of the tokens *, 0 and 1. Any other token is an error.""",
    "GOTO_ROWS": """
The state after a nonterminal, by the token that follows it: "13 14 *01 20 ^" is state 14 before *, 0 and 1,
state 20 before ^, and 13 before any other. That `x` alone is a term, a sum and a comparison is in here: the
driver makes no reductions that change nothing.""",
    "GOTO": """
By state, from 1: pairs of a nonterminal and which of these rows it has there.""",
}
WIDTH = 106  # of a line with several entries of a table


def render(tables: dict[str, Any]) -> str:
    """The text of parser_tables.py."""
    lines = [
        '"""LALR tables of grammars/gradcli.lark, by compile_grammar.py: do not edit."""',
        "",
        "# ruff: noqa: E501",
        "# fmt: off",
    ]
    for name, value in tables.items():
        lines.extend(f"# {line}" for line in ABOUT.get(name, "").strip().splitlines())
        if isinstance(value, list):
            lines += [f"{name} = (", *_filled(map(repr, value)), ")"]
        else:
            lines.append(f"{name} = {value!r}")
    return "\n".join(lines) + "\n"


def _filled(entries: Iterable[str]) -> list[str]:
    """Entries in lines, as many in each as there is room for."""
    lines = ["   "]
    for entry in entries:
        if len(lines[-1]) + len(entry) + 2 > WIDTH and lines[-1].strip():
            lines.append("   ")
        lines[-1] += f" {entry},"
    return lines


def main(arguments: list[str]) -> int:
    """Write parser_tables.py, or with --check compare it."""
    path = Path(__file__).with_name("parser_tables.py")
    text = render(build())
    if "--check" in arguments:
        fresh = path.is_file() and path.read_text(encoding="utf-8") == text
        print(
            "parser_tables.py is fresh" if fresh else "parser_tables.py is stale", file=sys.stderr
        )
        return 0 if fresh else 1
    path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

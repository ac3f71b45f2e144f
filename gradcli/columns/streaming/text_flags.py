"""Comparisons of a column with a text inside of a formula, `where(type == 'call', K, -K)`, as variables."""

from __future__ import annotations

import re
from collections.abc import Callable

from gradcli.columns.streaming.conditions import is_name, relation_of, texts_of
from gradcli.language.parser import parse, parses
from gradcli.language.scope_checks import free_names


def without_texts(source: str, is_column: Callable[[str], bool]) -> tuple[str, dict[str, str]]:
    """(the text with a name for each comparison of a column with a text, what they stand for).

    A name is as long as its comparison, so that places in the text stay what they are. It is true or false in
    a row, as `conditions.Condition` tells it.
    """
    if ("'" not in source and '"' not in source) or not parses(source):
        return source, {}
    program = parse(source)
    free = {name for name in free_names(program) if is_column(name)}
    found: dict[str, str] = {}
    for row in range(len(program)):
        relation = relation_of(program, row)
        if relation is None:
            continue
        left, right = program.children(row)
        sides = [(left, right)] if relation in ("in", "not_in") else [(left, right), (right, left)]
        for side, other in sides:
            is_free = is_name(program, side) and program.words[program.operands[side]] in free
            if is_free and texts_of(program, other, relation in ("in", "not_in")) is not None:
                begin, end = program.span(left)[0], program.span(right)[1]
                typed = source[begin:end]
                name = _name(typed, found, program.words)
                found[name] = typed
                source = source[:begin] + name + source[end:]
                break
    return source, found


def _name(typed: str, found: dict[str, str], words: list[str]) -> str:
    """A name of the length of a text, by its letters; another one for another text."""
    name, number = re.sub(r"\W", "_", typed), 0
    if name[0].isdigit():
        name = "_" + name[1:]
    while name in words or found.get(name, typed) != typed:
        number += 1
        name = name[: -len(str(number))] + str(number)
    return name


__all__ = ["without_texts"]

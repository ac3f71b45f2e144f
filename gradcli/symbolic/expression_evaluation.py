"""Evaluates expressions on tensors, or on anything else that the functions of the language take.

An expression means what its text means: the text is run, a line for each part of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gradcli.language import parse, run
from gradcli.symbolic.expression_text import Printer
from gradcli.symbolic.expressions import Expression, is_call, order


def evaluate(roots: Iterable[Expression], known: Mapping[Expression, Any]) -> list[Any]:
    """The values of expressions; known: values of variables and of any other subexpressions."""
    wanted = list(roots)
    words = {node: f"_{k}" for k, node in enumerate(known)}
    space = {word: known[node] for node, word in words.items()}
    printer = Printer({id(node): word for node, word in words.items()})
    lines = []
    for node in order(wanted):
        if node.parts and node not in words and not is_call(node, *_WITHIN):
            words[node] = f"_{len(words)}"
            lines.append(f"{words[node]} = {printer.make(node)[0]}")
            printer.names[id(node)] = words[node]
    lines.append(f"({''.join(f'{printer.of(root)[0]}, ' for root in wanted)})")
    return list(run(parse("\n".join(lines)), space).value)


_WITHIN = ("[]", "()", ":", "float")  # what means something inside of a call alone


def constants(roots: Iterable[Expression]) -> list[Expression]:
    """The largest constant subexpressions that are not plain numbers, such as sqrt(3) or log(5)."""
    fixed: set[Expression] = set()
    found: dict[Expression, None] = {}
    nodes = order(roots)
    for node in nodes:
        parts = node.parts
        if node.shape or is_call(node, "[]", "()", ":", "float"):
            continue
        if node.op == "name" and node.position != -1:
            continue
        if node.op == "name" or (parts and all(p in fixed or p.op == "number" for p in parts)):
            fixed.add(node)
    for node in nodes:
        if node not in fixed:
            found.update(dict.fromkeys(p for p in node.parts if p in fixed))
    return list(found)


__all__ = ["constants", "evaluate"]

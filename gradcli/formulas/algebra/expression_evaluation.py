"""Evaluates expressions on tensors, or on anything else that the functions of the language take.

An expression means what its text means: the text is run, a line for each part of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from gradcli.engine.core.tensor import wrap
from gradcli.formulas.algebra.array_algebra import place_of
from gradcli.formulas.algebra.expression_text import SUM, Piece, Printer
from gradcli.formulas.algebra.expressions import Expression, is_call, is_size, order
from gradcli.formulas.algebra.unknown_functions import meaning_of
from gradcli.language import parse, run
from gradcli.language.program import Program


def value_at(program: Program, names: Mapping[str, Any], arrays: Mapping[str, Any]) -> Any:
    """A program's value, of which nothing is printed; arrays: variables, names: what else it reads."""
    tensors = {n: wrap(np.asarray(v)) for n, v in arrays.items()}
    return run(program, {**names, **tensors}, write=lambda text: None).value


def evaluate(roots: Iterable[Expression], known: Mapping[Expression, Any]) -> list[Any]:
    """The values of expressions; known: values of variables and of any other subexpressions."""
    wanted = list(roots)
    words = {node: f"_{k}" for k, node in enumerate(known)}
    space = {word: known[node] for node, word in words.items()}
    if any(map(is_size, known)):  # which shapes are written with
        space |= {node.data: value for node, value in known.items() if node.op == "name"}
    printer = _Lines({id(node): word for node, word in words.items()})
    printer.space = space
    lines = []
    for node in order(wanted):
        if node.parts and node not in words and not is_call(node, *_WITHIN):
            words[node] = f"_{len(words)}"
            lines.append(f"{words[node]} = {printer.make(node)[0]}")
            printer.names[id(node)] = words[node]
    lines.append(f"({''.join(f'{printer.of(root)[0]}, ' for root in wanted)})")
    return list(run(parse("\n".join(lines)), space).value)


_WITHIN = ("[]", "()", ":", "float")  # what means something inside of a call alone


class _Lines(Printer):
    """Prints what can be differentiated again: `//` has no derivative, `tensor` and `full_like` copy.

    space: what the lines read.
    """

    space: dict[str, Any]

    def make_call(self, node: Expression) -> Piece:
        word, args = node.data[0], [self.of(a) for a in node.args]
        if (unknown := meaning_of(word, len(args))) is not None:
            self.space[f"_f{len(self.space)}"] = unknown
            return self.call(list(self.space)[-1], args)
        if word == "floor_divide":
            return self.call("div", args, [("rounding_mode", "floor")])
        if word == "full_like":
            return f"zeros({node.shape}) + {args[1][0]}", SUM
        if word == "tensor" and not is_call(node.args[0], "[]", "float"):
            return f"zeros(()) + {args[0][0]}", SUM
        return super().make_call(node)


def constants(roots: Iterable[Expression]) -> list[Expression]:
    """The largest constant subexpressions that are not plain numbers: sqrt(3), log(5), unit vectors."""
    fixed: set[Expression] = set()
    found: dict[Expression, None] = {}
    nodes = order(roots)
    for node in nodes:
        parts = node.parts
        if node.position == -1 and place_of(node) is not None:
            fixed.add(node)
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


__all__ = ["constants", "evaluate", "value_at"]

"""How long a formula is: what is counted when derivatives are held against other people's."""

from __future__ import annotations

import ast


def operations(text: str) -> int:
    """How many operators, calls, comparisons, indices and transposes a formula has."""
    found = 0
    for node in ast.walk(ast.parse(text, mode="eval")):
        if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Call, ast.Subscript)):
            found += 1
        elif isinstance(node, ast.Compare):
            found += len(node.ops)
        elif isinstance(node, ast.Attribute) and node.attr == "T":
            found += 1
    return found


def letters(text: str) -> int:
    """How many characters it has besides blanks."""
    return len(text.replace(" ", ""))

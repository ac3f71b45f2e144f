"""Common subexpressions of derivatives (`--cse`)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gradcli.formulas.algebra.expressions import Expression, order


def shared_parts(
    roots: Sequence[Expression], taken: Collection[str] = (), word: str = "v"
) -> list[tuple[str, Expression]]:
    """(name, expression) of every repeated subexpression, operands first; taken: names in use."""
    # Equal expressions are one object, so its uses are the operands that it is: three of u in
    # sin(u)*cos(u) + u.
    uses: dict[Expression, int] = {}
    nodes = order(roots)
    for node in nodes:
        for part in node.parts:
            uses[part] = uses.get(part, 0) + 1
    for root in roots:
        uses[root] = uses.get(root, 0) + 1
    found: list[tuple[str, Expression]] = []
    number = 0
    for node in nodes:
        if uses[node] < 2 or _is_short(node):
            continue
        number += 1
        while f"{word}{number}" in taken:
            number += 1
        found.append((f"{word}{number}", node))
    return found


def unlike(name: str, taken: Collection[str]) -> str:
    """This name, or the first with underscores behind it that is not taken."""
    while name in taken:
        name += "_"
    return name


def _is_short(node: Expression) -> bool:
    """Whether a name would be as long as the text."""
    if node.op in ("name", "number", "array") or node.weight <= 1:
        return True
    if node.op == "call":
        return node.data[0] in "[] () : T select slice zeros ones tensor float".split()
    if node.op == "product":  # 2*x, x**2
        return node.weight <= 2
    return False


def size_of(root: Expression) -> int:
    """The approximate number of characters of the text without shared names."""
    sizes: dict[Expression, int] = {}
    for node in order([root]):
        sizes[node] = 3 + sum(sizes[p] for p in node.parts)
    return sizes[root]


__all__ = ["shared_parts", "size_of", "unlike"]

"""The few words that stand for a node, wherever graphs are drawn."""

from __future__ import annotations

import re

from gradcli.engine.system.visible import columns, fitting
from gradcli.graphs.traversal import Record

SOURCE_WIDTH = 32


def title_of(record: Record, *, forward: bool = False) -> tuple[str, str | None]:
    """Say what a node is, and what the program calls it; forward: as the operation, not its gradient."""
    name = record.variable or record.label
    if not forward:
        return f"{record.name} ({record.kink})" if record.kink else record.name, name
    if record.is_input:
        return "constant" if record.is_constant else "input", name
    return re.sub(r"Backward\d*$", "", record.name).lower() or record.name, name


def shorten(text: str, width: int = SOURCE_WIDTH, ellipsis: str = "…") -> str:
    """Shorten a text in its middle."""
    if columns(text) <= width:
        return text
    half = (width - len(ellipsis)) // 2
    tail = len(text) - fitting(text[::-1], half)
    return f"{text[: fitting(text, half)]}{ellipsis}{text[tail:]}"


def ending(text: str, width: int, ellipsis: str = "…") -> str:
    """Shorten a dotted name in front: `…norm.2.weight` tells layers apart, as `encoder.layers…` does not."""
    if columns(text) <= width:
        return text
    room = max(1, width - len(ellipsis))
    return ellipsis + text[len(text) - fitting(text[::-1], room) :]


def plural(count: int, one: str, many: str | None = None) -> str:
    """Write a count with its noun."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"

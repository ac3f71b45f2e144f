"""The few words that stand on a node wherever graphs are drawn as pictures."""

from __future__ import annotations

from dataclasses import dataclass

from gradcli.graphs import values
from gradcli.graphs.records import Record

SOURCE_WIDTH = 32


@dataclass(slots=True)
class Caption:
    """What a drawn node says: a title, what the program calls it, and a line of detail."""

    title: str
    name: str | None
    detail: str
    grad: str | None


def caption(record: Record, default_dtype: str, precision: int = 4) -> Caption:
    """Say what stands on a node of a picture."""
    parts = [values.shape_text(record.shape)]
    if record.dtype and record.dtype != default_dtype:
        parts.append(record.dtype)
    if record.source and not record.is_leaf:
        parts.append(shorten(record.source))
    grad = None
    if record.has_grad:
        grad = "None" if record.grad is None else values.text(record.grad, precision, 4)
    detail = "  ".join(part for part in parts if part)
    return Caption(record.name, record.variable or record.label, detail, grad)


def shorten(text: str, width: int = SOURCE_WIDTH, ellipsis: str = "…") -> str:
    """Shorten a text in its middle."""
    if len(text) <= width:
        return text
    half = (width - len(ellipsis)) // 2
    return f"{text[:half]}{ellipsis}{text[len(text) - half :]}"


def plural(count: int, one: str, many: str | None = None) -> str:
    """Write a count with its noun."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"

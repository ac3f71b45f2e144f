"""The backward graph as JSON, to the letter of the schema that the README gives."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gradcli.graphs import saved, values
from gradcli.graphs.records import Record


def graph_to_json(records: Iterable[Record], roots: list[int] | None = None) -> dict[str, Any]:
    """Return {"root", "nodes"}; "roots" besides where there are several."""
    nodes = [node_to_json(record) for record in records]
    result: dict[str, Any] = {"root": roots[0] if roots else (0 if nodes else None)}
    if roots and len(roots) > 1:
        result["roots"] = roots
    return {**result, "nodes": nodes}


def node_to_json(record: Record) -> dict[str, Any]:
    """Return one entry of "nodes"."""
    node: dict[str, Any] = {
        "id": record.id,
        "name": record.name,
        "variable": record.variable,
        "label": record.label,
        "source": record.source,
        "span": None if record.span is None else list(record.span),
        "shape": None if record.shape is None else list(record.shape),
        "dtype": record.dtype,
        "sequence_nr": record.sequence_nr,
        "saved": {name: saved.to_json(entry) for name, entry in record.saved.items()},
    }
    if record.has_grad:
        node["grad"] = None if record.grad is None else values.to_json(record.grad)
    if len(record.outputs) > 1:
        node["outputs"] = [{"shape": list(shape), "dtype": dt} for shape, dt in record.outputs]
    node["next"] = [
        None if edge is None else {"node": edge[0], "output": edge[1]} for edge in record.next
    ]
    return node

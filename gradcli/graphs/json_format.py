"""The backward graph as JSON, to the letter of the schema that the README gives."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from gradcli.engine.system.garbage import uncollected
from gradcli.graphs import saved_fields, value_text
from gradcli.graphs.traversal import Describer, Record
from gradcli.graphs.view import View


@uncollected()
def view_to_json(
    view: View, describer: Describer, forward: Mapping[int, Any] | None = None
) -> dict[str, Any]:
    """Return {"root", "nodes"}; "roots" besides where there are several.

    Of a part ("only", "depth") the nodes have their ids in the whole, and "next" may name nodes that are
    not listed: such nodes have "cut": true. Read forward there are "inputs", and "users" of each node.
    forward: the values of results, by node, for "value".
    """
    roots = view.roots
    result: dict[str, Any] = {}
    if view.selection.forward:
        result["inputs"] = roots
        roots = view.skeleton.roots
    result["root"] = roots[0] if roots else None
    if len(roots) > 1:
        result["roots"] = roots
    nodes = []
    ids = view.ids()
    for i in reversed(ids) if view.selection.forward else ids:
        node = node_to_json(describer.record(i))
        if forward is not None:
            node |= _array("value", forward.get(i))
        if view.cut(i):
            node["cut"] = True
        if view.selection.forward:
            node["users"] = [{"node": user, "input": k} for user, k in view.users[i]]
        nodes.append(node)
    return {**result, "nodes": nodes}


def node_to_json(record: Record) -> dict[str, Any]:
    """Return one entry of "nodes"."""
    node: dict[str, Any] = {
        "id": record.id,
        "name": record.name,
        "variable": record.variable or (record.label if record.is_constant else None),
        "label": None if record.is_constant else record.label,
        "source": record.source,
        "span": None if record.span is None else list(record.span),
        "shape": None if record.shape is None else list(record.shape),
        "dtype": record.dtype,
        "sequence_nr": record.sequence_nr,
        "saved": {name: saved_fields.to_json(entry) for name, entry in record.saved.items()},
    }
    if record.module is not None:
        node["module"] = record.module
    if record.place is not None:
        node["file"], node["line"] = record.place.file, record.place.line
    if record.kink is not None:
        node["kink"] = record.kink
    if record.device not in (None, "cpu"):
        node["device"] = record.device
    if record.has_tangent:
        node |= _array("tangent", record.tangent)
    if record.has_grad:
        node |= _array("grad", record.grad)
    if len(record.outputs) > 1:
        node["outputs"] = [
            {"shape": None if out.shape is None else list(out.shape), "dtype": out.dtype}
            for out in record.outputs
        ]
    node["next"] = [
        None if edge is None else {"node": edge[0], "output": edge[1]} for edge in record.next
    ]
    return node


def _array(key: str, value: Any) -> dict[str, Any]:
    """An array; of a tensor of PyTorch's that is not small only what was counted up."""
    if value is None:
        return {key: None}
    counted = isinstance(value, value_text.Stats)
    whole = value.whole if counted else value
    foreign = counted or hasattr(whole, "untyped_storage")
    if foreign and math.prod(value.shape) > saved_fields.MOST_IN_JSON:
        counted, whole = True, None
    found: dict[str, Any] = {key: None if whole is None else value_text.to_json(whole)}
    if counted:
        found[f"{key}_stats"] = value_text.stats_to_json(value)
    return found

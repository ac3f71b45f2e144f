"""The backward graph as a page: one self-contained file that needs no network."""

from __future__ import annotations

import json
from html import escape
from importlib.resources import files
from typing import Any, Protocol

from gradcli.graphs import rules, saved, values
from gradcli.graphs.records import Describer, Record, Totals, Walk
from gradcli.graphs.text import plural, shorten

PRECISION = 6
SCRIPTS = (
    *("layout.js", "state.js", "graph.js", "unfold.js", "draw.js", "steps.js"),
    *("panel.js", "select.js", "view.js", "events.js", "start.js"),
)
FRAME_HEIGHT = 620
WHOLE_TREE = 2_000  # nodes; larger graphs show their text with chains folded


class Graph(Protocol):
    """What the page shows: the graph that `inspect` makes."""

    source: str | None
    tensors: tuple[Any, ...]
    skeleton: Walk
    describer: Describer
    recorder: Any

    @property
    def records(self) -> list[Record]: ...
    @property
    def totals(self) -> Totals: ...
    @property
    def forward(self) -> dict[int, Any]: ...
    def backpropagate(self, seed: Any = None) -> Any: ...
    def tree(self, **options: Any) -> Any: ...


def graph_to_html(graph: Graph, *, title: str | None = None, **options: Any) -> str:
    """Return the page; backpropagates first where that has no side effect and needs no seed."""
    _try_gradients(graph)
    data = page_data(graph, values.default_dtype())
    name = title or (shorten(graph.source, 80) if graph.source else "Backward graph")
    parts = {
        "title": escape(f"{name} · gradcli"),
        "style": _asset("page.css"),
        "script": '"use strict";\n{\n' + "".join(map(_asset, SCRIPTS)) + "}\n",
        "tree": escape(data["text"]),
        # "<" could end the script element; JSON may write it as an escape.
        "data": json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c"),
    }
    page = _asset("page.html")
    pieces = page.split("{{")
    filled = [pieces[0]]
    for piece in pieces[1:]:
        key, _, rest = piece.partition("}}")
        filled += [parts[key], rest]
    return "".join(filled)


def notebook_frame(page: str) -> str:
    """Return the page in a frame of its own, for a notebook."""
    return (
        f'<iframe srcdoc="{escape(page)}" sandbox="allow-scripts" title="Backward graph"'
        f' style="width:100%;height:{FRAME_HEIGHT}px;border:1px solid #8888;border-radius:8px">'
        "</iframe>"
    )


def _asset(name: str) -> str:
    return (files("gradcli.graphs") / "page" / name).read_text(encoding="utf-8")


def _try_gradients(graph: Graph) -> None:
    if graph.describer.grads is not None or len(graph.tensors) != 1 or graph.totals.freed:
        return
    hooked = any(getattr(node, "_hooks", None) is not None for node in graph.skeleton.nodes)
    hooked |= any(getattr(leaf, "hooks", None) for leaf in _leaves(graph))
    if hooked or not len(graph.skeleton):
        return
    try:
        graph.backpropagate()
    except RuntimeError:
        return  # no implicit seed, or a node that refuses: the page shows the order alone


def _leaves(graph: Graph) -> list[Any]:
    return [node.variable for node in graph.skeleton.nodes if hasattr(node, "variable")]


def page_data(graph: Graph, default_dtype: str) -> dict[str, Any]:
    """Return what the page knows: everything as texts, ready to be shown."""
    forward = graph.forward
    folded = None if len(graph.skeleton) > WHOLE_TREE else False
    return {
        "source": graph.source,
        "roots": graph.skeleton.roots,
        "grads": graph.describer.grads is not None,
        "totals": _totals(graph.totals),
        "text": str(graph.tree(collapse=folded, values=True)),
        "nodes": [_node(record, forward.get(record.id), default_dtype) for record in graph.records],
        "steps": _steps(graph),
    }


def _text(value: Any) -> str | None:
    return None if value is None else values.text(value, PRECISION)


def _node(record: Record, value: Any, default_dtype: str) -> dict[str, Any]:
    finite = record.grad is None or values.is_finite(record.grad)
    return {
        "name": record.name,
        "variable": record.variable,
        "label": record.label,
        "leaf": record.is_leaf,
        "source": record.source,
        "span": record.span,
        "shape": values.shape_text(record.shape),
        "dtype": record.dtype,
        "plain_dtype": record.dtype in (None, default_dtype),
        "sequence": record.sequence_nr,
        "value": _text(value),
        "grad": _text(record.grad),
        "bad": not finite,
        "saved": [item for name, entry in record.saved.items() for item in _saved(name, entry)],
        "next": record.next,
        "rules": rules.rules_by_edge(record.node),
    }


def _saved(name: str, entry: saved.Entry) -> list[dict[str, Any]]:
    if isinstance(entry, list):
        return [item for i, one in enumerate(entry) for item in _saved(f"{name}[{i}]", one)]
    item: dict[str, Any] = {"field": name, "variable": None, "text": "(freed)", "detail": ""}
    if isinstance(entry, saved.SavedTensor):
        item["text"] = _text(entry.tensor)
        item["variable"] = entry.variable
        shape, size = values.shape_text(entry.shape), values.bytes_text(entry.nbytes)
        item["detail"] = f"{shape} {entry.dtype}, {size}"
    elif isinstance(entry, saved.SavedScalar):
        item["text"] = str(entry.value)
    return [item]


def _totals(found: Totals) -> str:
    parts = [plural(found.nodes, "node"), plural(found.edges, "edge")]
    parts.append(plural(found.leaves, "leaf", "leaves"))
    if found.saved:
        parts.append(f"{plural(found.saved, 'saved tensor')} ({values.bytes_text(found.nbytes)})")
    if found.freed:
        parts.append(f"{plural(found.freed, 'node')} freed")
    return ", ".join(parts)


def _steps(graph: Graph) -> list[dict[str, Any]]:
    ids = graph.skeleton.ids
    recorder = graph.recorder
    if recorder is None:
        from gradcli.engine.order import exact_order

        order = exact_order([graph.skeleton.nodes[i] for i in graph.skeleton.roots])
        return [{"node": ids[node], "in": None, "out": None} for node in order]
    return [
        {
            "node": ids[step.node],
            "in": ", ".join(_text(grad) or "None" for grad in step.incoming),
            "out": [_text(grad) for grad in step.outgoing],
        }
        for step in recorder.steps
        if step.node in ids
    ]

"""The backward graph as a page: one self-contained file that needs no network."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from typing import Any, Protocol

from gradcli.graphs import saved_fields, value_text, vjp_text
from gradcli.graphs.labels import plural, shorten, title_of
from gradcli.graphs.of_torch.module_view import Modules
from gradcli.graphs.pictures import PictureOptions, detail_lines, numbers_of, saved_lines
from gradcli.graphs.styles import ACCENTS, accent
from gradcli.graphs.traversal import Describer, Edge, Record, Totals, Walk
from gradcli.graphs.value_text import Stats
from gradcli.graphs.view import Fold, Selection, View

PRECISION = 6
WIDEST = 38  # what fits a card
FLOW_WIDTH = 24
MOST_TEXT = 4_000_000  # characters of such arrays in a page
FEW_NODES = 300  # a graph of PyTorch's with so many plays with numbers unasked
BY_MODULE = 100  # nodes: from so many on the page opens by module
SCRIPTS = (
    *("layout.js", "state.js", "graph.js", "unfold.js", "draw.js", "steps.js"),
    *("panel.js", "select.js", "view.js", "export.js", "events.js", "start.js"),
)
FRAME_HEIGHT = 620
WHOLE_TREE = 2_000  # nodes; larger graphs show their text with chains folded


class Graph(Protocol):
    """What the page shows: the graph that `inspect` makes."""

    source: str | None
    program: str | None
    tensors: tuple[Any, ...]
    skeleton: Walk
    describer: Describer
    recorder: Any

    @property
    def modules(self) -> Modules | None: ...
    @property
    def records(self) -> list[Record]: ...
    @property
    def totals(self) -> Totals: ...

    default_dtype: str

    def describer_of(self, *, forward: bool) -> Describer: ...
    def modules_of(self, describer: Describer) -> Modules | None: ...
    def values_of(self, describer: Describer) -> dict[int, Any]: ...
    def backpropagate(self, seed: Any = None) -> Any: ...
    def tree(self, **options: Any) -> Any: ...
    def diagnosis(self) -> Any: ...


def graph_to_html(graph: Graph, *, title: str | None = None, **options: Any) -> str:
    """Return the page; backpropagates first where that has no side effect and needs no seed."""
    _try_gradients(graph)
    data = page_data(graph, PictureOptions(**{"default_dtype": graph.default_dtype, **options}))
    of = graph.source or graph.program
    name = title or (shorten(of, 80) if of else "Backward graph")
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
        f'<iframe srcdoc="{escape(page)}" sandbox="allow-scripts allow-downloads" title="Backward graph"'
        f' style="width:100%;height:{FRAME_HEIGHT}px;border:1px solid #8888;border-radius:8px">'
        "</iframe>"
    )


def _asset(name: str) -> str:
    return (files("gradcli.graphs") / "page" / name).read_text(encoding="utf-8")


def _try_gradients(graph: Graph) -> None:
    if graph.describer.probe.foreign and len(graph.skeleton) > FEW_NODES:
        return  # a pass may take long
    if graph.describer.grads is not None or len(graph.tensors) != 1 or graph.totals.freed:
        return
    hooked = any(getattr(node, "_hooks", None) is not None for node in graph.skeleton.nodes)
    names = ("hooks", "_backward_hooks", "_post_accumulate_grad_hooks")
    hooked |= any(getattr(leaf, name, None) for leaf in _leaves(graph) for name in names)
    if hooked or not len(graph.skeleton):
        return
    try:
        graph.backpropagate()
    except RuntimeError:
        return  # no implicit seed, or a node that refuses: the page shows the order alone


def _leaves(graph: Graph) -> list[Any]:
    return [node.variable for node in graph.skeleton.nodes if hasattr(node, "variable")]


def page_data(graph: Graph, options: PictureOptions) -> dict[str, Any]:
    """Return what the page knows: everything as texts, ready to be shown."""
    describer = graph.describer_of(forward=options.forward)
    forward = graph.values_of(describer)
    folded = options.collapse if options.collapse is not None else _folded(graph)
    asked = {"only": options.only, "depth": options.depth, "forward": options.forward}
    labels = describer.labels() if options.only is not None else None
    view = View(describer.skeleton, Selection(options.only, None, False, options.forward), labels)
    ids = {i: k for k, i in enumerate(view.ids())}
    chosen = [describer.record(i) for i in ids]
    numbers = _Numbers()
    return {
        "source": graph.source,
        "program": graph.program,
        "roots": [ids[i] for i in describer.skeleton.roots if i in ids]
        if view.whole
        else _tops(view, ids),
        "grads": graph.describer.grads is not None,
        "show_grads": options.grads,
        "forward": options.forward,
        "edges": options.edges,
        "depth": view.depth,
        "collapse": options.collapse,
        "theme": None if options.theme == "auto" else options.theme,
        "totals": _totals(graph.totals),
        "diagnosis": [
            one.to_json() | {"place": str(one.place or "")} for one in graph.diagnosis().findings
        ],
        "text": str(graph.tree(collapse=folded, values=True, **asked)),
        "nodes": [
            _node(record, forward.get(record.id), options, ids, numbers) for record in chosen
        ],
        "steps": _steps(graph, describer, ids),
        **_groups(graph.modules_of(describer), describer.skeleton, options, ids),
    }


def _groups(
    modules: Modules | None, skeleton: Walk, options: PictureOptions, ids: Mapping[int, int]
) -> dict[str, Any]:
    """The calls of modules, to fold the nodes into: outermost first, those open that show others."""
    if modules is None or not modules.parts or (options.collapse and options.by is None):
        return {}
    whole = options.only is None and options.depth is None
    by_module = options.by == "module" or (
        options.by is None and whole and len(skeleton) >= BY_MODULE
    )
    folded = set(modules.folded(options).values())
    chains = modules.chains()
    members: dict[int, list[int]] = {}
    for i in ids:
        for call in chains.get(i, ()):
            members.setdefault(call, []).append(i)
    numbers = {call: k for k, call in enumerate(sorted(members))}
    open_calls = {box for chain in chains.values() for box in _before(chain, folded)}
    groups = []
    for call in numbers:
        kind, path = modules.title(call)
        inner = [i for i in members[call] if skeleton.edges[i]]
        leaves = [i for i in members[call] if not skeleton.edges[i]]
        lines = modules.lines(Fold(0, inner, leaves, call=call), False)
        groups.append(
            {
                **{"kind": kind, "path": path, "lines": lines, "open": call in open_calls},
                "accent": ACCENTS[accent(kind)],
                "members": [ids[i] for i in members[call]],
            }
        )
    grouped = [[numbers[c] for c in chains.get(i, ())] for i in ids]
    return {"groups": groups, "grouped": grouped, "by_module": by_module}


def _before(chain: list[int], folded: set[int]) -> list[int]:
    """The boxes that are open: those before the one that is folded."""
    at = next((k for k, box in enumerate(chain) if box in folded), len(chain))
    return chain[:at]


def _tops(view: View, ids: Mapping[int, int]) -> list[int]:
    """The nodes of a part that no other node of the part consumes."""
    fed = {edge[0] for i in ids for edge in view.inputs(i) if edge is not None}
    return [k for i, k in ids.items() if i not in fed]


def _folded(graph: Graph) -> bool | None:
    return None if len(graph.skeleton) > WHOLE_TREE else False


class _Numbers:
    """All numbers of arrays, for the panel, as long as there is room in the page."""

    def __init__(self) -> None:
        self.left = MOST_TEXT

    def of(self, known: Stats | None, shown: str | None) -> str | None:
        """All of an array, a row a line; None where the short text has them, or there are too many."""
        whole = None if known is None else numbers_of(known, PRECISION)
        text = (whole or "").replace("], [", "],\n [")
        if not text or text == shown or len(text) > self.left:
            return None
        self.left -= len(text)
        return text


def _node(
    record: Record, value: Any, options: PictureOptions, ids: Mapping[int, int], numbers: _Numbers
) -> dict[str, Any]:
    known = None if value is None else value_text.stats_of(value)
    grad = None if record.grad is None else value_text.stats_of(record.grad)
    found = {
        "title": title_of(record, forward=options.forward)[0],
        "name": record.name,
        "variable": record.variable,
        "label": record.label,
        "leaf": record.is_input,
        "lines": detail_lines(record, options),
        "source": record.source,
        "span": record.span,
        "shape": value_text.shape_text(record.shape),
        "dtype": record.dtype,
        "device": None if record.device == "cpu" else record.device,
        "module": record.module,
        "place": None if record.place is None else str(record.place),
        "sequence": record.sequence_nr,
        "value": _text(known, options),
        "value_all": numbers.of(known, _text(known, options)),
        "value_range": _range(known),
        "odd": bool(known and known.bad),
        "grad": _text(grad, options),
        "grad_all": numbers.of(grad, _text(grad, options)),
        "grad_range": _range(grad),
        "bad": bool(grad and grad.bad),
        "saved": [item for name, entry in record.saved.items() for item in _saved(name, entry)],
        "next": [_edge(edge, ids) for edge in record.next],
        "rules": vjp_text.rules_by_edge(record.node),
    }
    if options.saved:
        found["kept"] = saved_lines(record, options)
    return found


def _edge(edge: Edge | None, ids: Mapping[int, int]) -> Edge | None:
    return None if edge is None or edge[0] not in ids else (ids[edge[0]], edge[1])


def _text(value: Any, options: PictureOptions) -> str | None:
    if value is None:
        return None
    if options.wide and (whole := numbers_of(value, PRECISION)) is not None:
        return whole
    return value_text.brief(value, PRECISION, value_text.room_of(value, WIDEST, PRECISION))


def _range(known: Stats | None) -> str | None:
    return (
        None if known is None or known.size <= value_text.FEW else value_text.range_text(known, 4)
    )


def _saved(name: str, entry: saved_fields.Entry) -> list[dict[str, Any]]:
    if isinstance(entry, list):
        return [item for i, one in enumerate(entry) for item in _saved(f"{name}[{i}]", one)]
    item: dict[str, Any] = {"field": name, "variable": None, "text": "(freed)", "detail": ""}
    if isinstance(entry, saved_fields.SavedTensor):
        item["text"] = value_text.brief(entry.tensor, PRECISION, WIDEST)
        item["variable"] = entry.variable
        shape, size = value_text.shape_text(entry.shape), value_text.bytes_text(entry.nbytes)
        item["detail"] = f"{shape} {entry.dtype}, {size}"
    elif isinstance(entry, saved_fields.SavedScalar):
        item["text"] = str(entry.value)
    return [item]


def _totals(found: Totals) -> str:
    parts = [plural(found.nodes, "node"), plural(found.edges, "edge")]
    parts.append(plural(found.leaves, "leaf", "leaves"))
    if found.saved:
        parts.append(
            f"{plural(found.saved, 'saved tensor')} ({value_text.bytes_text(found.nbytes)})"
        )
    if found.untold:
        parts.append(f"{found.untold:,} not known")
    if found.freed:
        parts.append(f"{plural(found.freed, 'node')} freed")
    return ", ".join(parts)


def _steps(graph: Graph, describer: Describer, numbers: Mapping[int, int]) -> list[dict[str, Any]]:
    ids = {node: numbers[i] for node, i in describer.skeleton.ids.items() if i in numbers}
    recorder = graph.recorder
    if recorder is None:
        order = graph.describer.probe.order(graph.skeleton)
        return [{"node": ids[node], "in": None, "out": None} for node in order if node in ids]
    return [
        {
            "node": ids[step.node],
            "in": ", ".join(_flow(grad) or "None" for grad in step.incoming),
            "out": [_flow(grad) for grad in step.outgoing],
        }
        for step in recorder.steps
        if step.node in ids
    ]


def _flow(grad: Any) -> str | None:
    if grad is None:
        return None
    return value_text.brief(grad, PRECISION, value_text.room_of(grad, FLOW_WIDTH, PRECISION))

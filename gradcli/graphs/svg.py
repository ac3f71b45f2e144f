"""The backward graph as a picture: one self-contained SVG file, dark or light as its reader is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from gradcli.graphs import layers
from gradcli.graphs.records import Record
from gradcli.graphs.text import Caption, caption, shorten

MARGIN, PAD = 24.0, 14.0
TITLE_SIZE, DETAIL_SIZE = 13.0, 11.0
TITLE_HEIGHT, LINE_HEIGHT = 18.0, 15.0
NONE_WIDTH = 46.0

STYLE = """
svg { --ink:#1c2430; --muted:#616c7e; --wire:#aab4c4; --card:#ffffff; --rim:#cfd6e1;
  --leaf:#effaf3; --leaf-rim:#7fc49c; --leaf-ink:#176339; --name:#0b62bd; --grad:#97209f;
  --paper:#f7f8fa; }
@media (prefers-color-scheme: dark) {
  svg { --ink:#e4e9f0; --muted:#93a0b4; --wire:#4a5769; --card:#18202b; --rim:#324052;
    --leaf:#12261b; --leaf-rim:#2f6d4a; --leaf-ink:#7fdca6; --name:#74b7ff; --grad:#e79af0;
    --paper:#0f141b; } }
.paper { fill:var(--paper) }
.card { fill:var(--card); stroke:var(--rim) }
.named .card { stroke:var(--name) }
.leaf .card { fill:var(--leaf); stroke:var(--leaf-rim) }
.none .card, .far .card { fill:none; stroke:var(--wire); stroke-dasharray:3 3 }
.wire { fill:none; stroke:var(--wire); stroke-width:1.4 }
.tip { fill:var(--wire) }
text { font-family:ui-sans-serif,system-ui,"Segoe UI",Helvetica,Arial,sans-serif; fill:var(--ink) }
.title { font-size:13px; font-weight:550 }
.leaf .title { fill:var(--muted); font-weight:400 }
.name { fill:var(--name); font-weight:650 }
.leaf .name { fill:var(--leaf-ink) }
.detail, .grad, .small { font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;
  font-size:11px }
.detail, .small { fill:var(--muted) }
.grad { fill:var(--grad) }
""".strip()


def graph_to_svg(records: Iterable[Record], default_dtype: str, title: str | None = None) -> str:
    """Return the whole file as text."""
    nodes = list(records)
    captions = [caption(record, default_dtype) for record in nodes]
    boxes = [layers.Box(i, *_size(words)) for i, words in enumerate(captions)]
    wires: list[layers.Wire] = []
    for record in nodes:
        for i, edge in enumerate(record.next):
            if edge is None:
                boxes.append(layers.Box(len(boxes), NONE_WIDTH, layers.REFERENCE_HEIGHT))
                edge = (len(boxes) - 1, 0)
            wire = layers.Wire(record.id, edge[0], i, len(record.next), edge[1])
            if edge[0] < len(nodes):
                wire.reference_width = 18 + len(_far(nodes[edge[0]])) * DETAIL_SIZE * 0.605
            wires.append(wire)
    found = layers.layout(boxes, wires)
    width, height = found.width + 2 * MARGIN, found.height + 2 * MARGIN
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}"'
            f' viewBox="{-MARGIN:.0f} {-MARGIN:.0f} {width:.0f} {height:.0f}" role="img"'
            ' aria-labelledby="title">',
            f'<title id="title">{escape(_title(nodes, title))}</title>',
            f"<style>{STYLE}</style>",
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7"'
            ' markerHeight="7" orient="auto"><path class="tip" d="M0 0L8 4L0 8z"/></marker></defs>',
            f'<rect class="paper" x="{-MARGIN:.0f}" y="{-MARGIN:.0f}" width="100%" height="100%"/>',
            *_wires(found.wires),
            *(_card(r, w, b) for r, w, b in zip(nodes, captions, boxes, strict=False)),
            *(_chip(box, "none", "None") for box in boxes[len(nodes) :]),
            *(
                _chip(wire.reference, "far", _far(nodes[wire.target]))
                for wire in found.wires
                if wire.reference is not None
            ),
            "</svg>",
            "",
        ]
    )


def _title(nodes: list[Record], title: str | None) -> str:
    if not nodes:
        return "no graph: nothing requires grad"
    return f"Backward graph of {shorten(title, 120)}" if title else "Backward graph"


def _size(words: Caption) -> tuple[float, float]:
    title = len(words.title) * TITLE_SIZE * 0.66
    if words.name:
        title += 10 + len(words.name) * TITLE_SIZE * 0.72
    lines = [line for line in (words.detail, _grad(words)) if line]
    widest = max([title, *(len(line) * DETAIL_SIZE * 0.605 for line in lines)])
    return widest + 2 * PAD, 2 * PAD - 6 + TITLE_HEIGHT + LINE_HEIGHT * len(lines)


def _grad(words: Caption) -> str:
    return "" if words.grad is None else f"grad {words.grad}"


def _wires(wires: Iterable[layers.Wire]) -> Iterator[str]:
    for wire in wires:
        path = layers.curve(wire.points)
        yield f'<path class="wire" d="{path}" marker-end="url(#tip)"/>'
        if wire.output:
            x, y = wire.points[0]
            at = f'x="{x + 6:.1f}" y="{y + 14:.1f}"'
            yield f'<text class="small" {at}>output {wire.output}</text>'


def _card(record: Record, words: Caption, box: layers.Box) -> str:
    kind = "leaf" if record.is_leaf else "named" if words.name else "node"
    left, top = box.x - box.width / 2, box.y - box.height / 2
    name = f' <tspan class="name" dx="5">{escape(words.name)}</tspan>' if words.name else ""
    y = top + PAD + 10
    parts = [
        f'<g class="{kind}"><rect class="card" x="{left:.1f}" y="{top:.1f}" rx="9"'
        f' width="{box.width:.1f}" height="{box.height:.1f}"/>',
        f'<text class="title" x="{left + PAD:.1f}" y="{y:.1f}">{escape(words.title)}{name}</text>',
    ]
    for role, line in (("detail", words.detail), ("grad", _grad(words))):
        if line:
            y += LINE_HEIGHT + (3 if role == "detail" else 0)
            parts.append(
                f'<text class="{role}" xml:space="preserve" x="{left + PAD:.1f}" y="{y:.1f}">'
                f"{escape(line)}</text>"
            )
    return "".join([*parts, "</g>"])


def _far(record: Record) -> str:
    name = record.variable or record.label
    return (
        f"↑ {shorten(name, 12)}"
        if name
        else f"↑ {record.name.partition('Backward')[0]} #{record.id}"
    )


def _chip(box: layers.Box, kind: str, text: str) -> str:
    left, top = box.x - box.width / 2, box.y - box.height / 2
    return (
        f'<g class="{kind}"><rect class="card" x="{left:.1f}" y="{top:.1f}" rx="6"'
        f' width="{box.width:.1f}" height="{box.height:.1f}"/><text class="small"'
        f' text-anchor="middle" x="{box.x:.1f}" y="{box.y + 4:.1f}">{escape(text)}</text></g>'
    )

"""The backward graph in Graphviz's language."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gradcli.graphs.records import Record
from gradcli.graphs.text import caption

_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": " ", "\r": " ", "\0": " "})


def graph_to_dot(records: Iterable[Record], default_dtype: str) -> str:
    """Return a digraph: edges go the way of the gradients, dashed nodes are constants."""
    return "\n".join([*_lines(records, default_dtype), ""])


def _lines(records: Iterable[Record], default_dtype: str) -> Iterator[str]:
    yield "digraph backward {"
    yield '  graph [rankdir=TB, bgcolor="transparent", nodesep=0.3, ranksep=0.4]'
    yield (
        '  node [shape=box, style="rounded,filled", color="#8a94a6", fillcolor="#f4f6fa",'
        ' fontname="Helvetica", fontsize=11, margin="0.14,0.08"]'
    )
    yield '  edge [color="#8a94a6", fontname="Helvetica", fontsize=9, arrowsize=0.7]'
    for record in records:
        words = caption(record, default_dtype)
        title = f"{words.title} {words.name}" if words.name else words.title
        lines = [title, words.detail]
        if words.grad is not None:
            lines.append(f"grad {words.grad}")
        label = "\\n".join(quoted(line) for line in lines if line)
        colour = ', fillcolor="#e3f4ea", color="#3f9463"' if record.is_leaf else ""
        bold = ", penwidth=1.8" if words.name and not record.is_leaf else ""
        yield f'  n{record.id} [label="{label}"{colour}{bold}]'
        for i, edge in enumerate(record.next):
            if edge is None:
                yield f'  n{record.id}_{i} [label="None", style="dashed", fontcolor="#8a94a6"]'
                yield f"  n{record.id} -> n{record.id}_{i} [style=dashed]"
                continue
            number = f' [label="output {edge[1]}"]' if edge[1] else ""
            yield f"  n{record.id} -> n{edge[0]}{number}"
    yield "}"


def quoted(text: str) -> str:
    """Escape a text for a double-quoted string of DOT."""
    return text.translate(_ESCAPES)

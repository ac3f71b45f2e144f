"""The backward graph as a Mermaid flowchart, for Markdown that draws them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gradcli.graphs.records import Record
from gradcli.graphs.text import caption

# Inside a quoted label Mermaid still reads entities, backticks (Markdown) and HTML.
_ENTITIES = {
    **{c: f"#{ord(c)};" for c in '#"<>&`*_~[]{}()|\\;$@%'},
    **dict.fromkeys("\n\r\0", " "),
    "\\": "#92;#8203;",  # or "\\n" would begin a line
}
_ESCAPES = str.maketrans(_ENTITIES)


def graph_to_mermaid(records: Iterable[Record], default_dtype: str) -> str:
    """Return a flowchart: edges go the way of the gradients, rounded nodes are leaves."""
    return "\n".join([*_lines(records, default_dtype), ""])


def _lines(records: Iterable[Record], default_dtype: str) -> Iterator[str]:
    yield "flowchart TD"
    for record in records:
        words = caption(record, default_dtype)
        title = f"{words.title} {words.name}" if words.name else words.title
        grad = [f"grad {words.grad}"] if words.grad is not None else []
        lines = [title, words.detail, *grad]
        text = "<br/>".join(escaped(line) for line in lines if line)
        box = f'(["{text}"]):::leaf' if record.is_leaf else f'["{text}"]'
        if words.name and not record.is_leaf:
            box += ":::named"
        yield f"  n{record.id}{box}"
        for i, edge in enumerate(record.next):
            if edge is None:
                yield f"  n{record.id} -.-> n{record.id}x{i}[None]:::none"
                continue
            number = f"|output {edge[1]}|" if edge[1] else ""
            yield f"  n{record.id} -->{number} n{edge[0]}"
    yield "  classDef leaf fill:#e3f4ea,stroke:#3f9463,color:#123020"
    yield "  classDef named stroke-width:2px"
    yield "  classDef none stroke-dasharray:3 3,fill:none,color:#8a94a6"


def escaped(text: str) -> str:
    """Escape a text for a quoted label of Mermaid."""
    return text.translate(_ESCAPES)

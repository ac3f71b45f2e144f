"""The table of a traced backward pass: one row a step, with its rules and gradients.

If the table is wider than the terminal, every step becomes a block of lines, and nothing is cut.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gradcli.engine.core.node import FREED
from gradcli.graphs import saved_fields, value_text, vjp_text
from gradcli.graphs.backward_steps import Note, Pass, Step
from gradcli.graphs.labels import shorten
from gradcli.graphs.styles import ASCII, UNICODE, Line, Signs, fold, length, padded, stripped
from gradcli.graphs.traversal import LEAF, Describer, class_name, walk

WIDEST_SOURCE = 28  # in the table; a block has the whole
WIDEST_RULE = 96
PRECISION = 6
HEADINGS = ("step", "node", "source", "grad in", "rule", "grad out")
WIDEST = 400  # a table in a pipe; wider ones are blocks there, too
NARROWEST = 8  # what a block's values are folded to, however narrow the terminal


class _Sent(NamedTuple):
    """A gradient that a step sent over an edge, with its VJP rule; or an event of the step."""

    event: str | None
    rule: str
    grad: Line


class _Entry(NamedTuple):
    """What is told of a step."""

    number: str
    title: Line
    source: str
    incoming: list[Line]
    sent: list[_Sent]


def table(
    passes: list[Pass],
    source: str | None,
    known: Describer | None = None,
    *,
    ascii: bool = False,
    width: int | None = None,
) -> list[Line]:
    """Return the lines of the table, or of the blocks where it does not fit into the width."""
    signs = ASCII if ascii else UNICODE
    told = [
        [_entry(step, describer, signs) for step in one.steps]
        for one, describer in ((one, known or describer_of_pass(one, source)) for one in passes)
    ]
    rows = [[row for entry in entries for row in _rows(entry, signs)] for entries in told]
    if not any(rows):
        return []
    widths = _widths([row for part in rows for row in part])
    whole = sum(widths) + 2 * (len(list(filter(None, widths))) - 1)
    room = WIDEST if width is None else width
    if whole <= room:
        heading = _aligned([[(text, "field")] for text in HEADINGS], widths)
        return [heading, *_titled([[_aligned(row, widths) for row in part] for part in rows])]
    return _titled(_blocks(told, room))


def describer_of_pass(one: Pass, source: str | None) -> Describer:
    """Who describes the nodes of a pass."""
    return Describer(walk([one.root]), source)


def _titled(parts: list[list[Line]]) -> list[Line]:
    """The lines of all passes, under titles where there are several."""
    if len(parts) == 1:
        return parts[0]
    lines: list[Line] = []
    for number, part in enumerate(parts, 1):
        lines += [[]] if lines else []
        lines += [[(f"pass {number}", "label")], *part]
    return lines


# -- as a table -----------------------------------------------------------------------------------
def _rows(entry: _Entry, signs: Signs) -> list[list[Line]]:
    source = shorten(entry.source, WIDEST_SOURCE, signs.ellipsis)
    left: list[Line] = [[(entry.number, "note")], entry.title, [(source, "source")]]
    right: list[list[Line]] = [
        [
            [(sent.event, "note")]
            if sent.event
            else [(shorten(sent.rule, WIDEST_RULE, signs.ellipsis), "value")],
            sent.grad,
        ]
        for sent in entry.sent
    ]
    height = max(len(entry.incoming), len(right), 1)
    return [
        [
            *(left if k == 0 else [[], [], []]),
            entry.incoming[k] if k < len(entry.incoming) else [],
            *(right[k] if k < len(right) else [[], []]),
        ]
        for k in range(height)
    ]


def _widths(rows: list[list[Line]]) -> list[int]:
    found = [max(map(length, column)) for column in zip(*rows, strict=True)]
    # A column in which nothing stands has no heading either.
    return [max(n, len(text)) if n else 0 for n, text in zip(found, HEADINGS, strict=False)]


def _aligned(row: list[Line], widths: list[int]) -> Line:
    line: Line = []
    for width, cell in zip(widths, row, strict=True):
        if width:
            line += padded(cell, width + 2)
    return stripped(line)


# -- as blocks ------------------------------------------------------------------------------------
def _blocks(told: list[list[_Entry]], width: int) -> list[list[Line]]:
    every = [entry for entries in told for entry in entries]
    indent = max(len(entry.number) for entry in every) + 2
    column = max(len(name) for entry in every for (name, _), _ in _pairs(entry)) + 2
    return [
        [line for entry in entries for line in _block(entry, indent, column, width)]
        for entries in told
    ]


def _pairs(entry: _Entry) -> list[tuple[tuple[str, str], Line]]:
    """What a block has below its title: (name, role) and value."""
    pairs: list[tuple[tuple[str, str], Line]] = [
        (("grad in", "field"), grad) for grad in entry.incoming
    ]
    for sent in entry.sent:
        if sent.event:
            pairs.append(((sent.event, "note"), sent.grad))
            continue
        if sent.rule:
            pairs.append((("rule", "field"), [(sent.rule, "value")]))
        pairs.append((("grad out", "field"), sent.grad))
    return pairs


def _block(entry: _Entry, indent: int, column: int, width: int) -> list[Line]:
    title = [*entry.title, *([("  ", "guide"), (entry.source, "source")] if entry.source else [])]
    lines = _hanging((entry.number, "note"), indent, title, width)
    for name, value in _pairs(entry):
        inner = _hanging(name, column, value, width - indent)
        lines += [[(" " * indent, "guide"), *line] for line in inner]
    return lines


def _hanging(name: tuple[str, str], column: int, value: Line, width: int) -> list[Line]:
    """A name and, in its own column, a value of as many lines as it needs."""
    first, *rest = fold(value, max(width - column, NARROWEST))
    head: Line = [name, (" " * (column - len(name[0])), "guide"), *first]
    return [head, *([(" " * column, "guide"), *line] for line in rest)]


# -- what there is to tell ------------------------------------------------------------------------
def _entry(step: Step, describer: Describer, signs: Signs) -> _Entry:
    node = step.node
    name = class_name(node)
    label = label_of(node, describer)
    title: Line = [(name, "leaf" if name == LEAF else "function")]
    if label:
        title += [(" ", "guide"), (label, "variable" if name == LEAF else "label")]

    def events(*kinds: str) -> list[_Sent]:
        return [
            _Sent(note.kind.removeprefix("post "), "", _note(note, label, signs))
            for note in step.notes
            if note.kind in kinds
        ]

    sent = events("prehook", "tensor hook", "retain")
    texts = vjp_text.rules_by_edge(node)
    for k, (edge, grad) in enumerate(zip(node.next_functions, step.outgoing, strict=False)):
        if edge[0] is not None:
            text = texts[k] if k < len(texts) else ""
            sent.append(_Sent(None, text, [*_grad(grad, signs), *_where(edge, signs, describer)]))
    sent += events("hook", "post accumulate", "accumulate")
    if any(note.kind == "free" for note in step.notes):
        sent.append(_Sent("free", "", [(_freed(node), "note")]))
    incoming = [_grad(grad, signs) for grad in step.incoming]
    return _Entry(str(step.number), title, source_of(step, describer), incoming, sent)


def label_of(node: Any, describer: Describer) -> str | None:
    """The program's name for a node."""
    i = describer.id_of(node)
    return getattr(node, "label", None) if i is None else describer.label(i)


def source_of(step: Step, describer: Describer) -> str:
    """The piece of the program that made a step's node."""
    i = describer.id_of(step.node)
    if i is None or class_name(step.node) == LEAF:
        return ""
    place = describer.probe.place(step.node)
    if place is not None:
        return f"{place}  {place.code}"
    return describer.piece(describer.span(i)) or ""


def _grad(grad: Any, signs: Signs) -> Line:
    if grad is None:
        return [("None", "note")]
    text = value_text.text(grad, PRECISION)
    if signs is ASCII:
        text = text.replace("…", signs.ellipsis)
    return [(text, "grad" if value_text.is_finite(grad) else "bad")]


def _where(edge: tuple[Any, int], signs: Signs, describer: Describer) -> Line:
    node, number = edge
    name = class_name(node)
    label = label_of(node, describer)
    line: Line = [(f" {signs.to} ", "guide")]
    if label:
        line.append((label, "variable" if name == LEAF else "label"))
    else:
        line.append((name, "leaf" if name == LEAF else "function"))
    return [*line, (f" output {number}", "note")] if number else line


def _note(note: Note, label: str | None, signs: Signs) -> Line:
    if note.kind in ("accumulate", "post accumulate"):
        name = f"{label}.grad = " if label else "grad = "
        return [(name, "variable" if label else "note"), *_grad(note.after, signs)]
    if note.kind == "retain":
        return [(f"{label or 'result'}.grad = ", "label"), *_grad(note.after, signs)]
    before, after = _grads(note.before, signs), _grads(note.after, signs)
    return [*before, (f" {signs.to} ", "guide"), *after]


def _grads(grads: Any, signs: Signs) -> Line:
    line: Line = []
    for i, grad in enumerate(grads):
        line += ([(", ", "note")] if i else []) + _grad(grad, signs)
    return line


def _freed(node: Any) -> str:
    names = [name for name, value in saved_fields.fields(node) if value is FREED]
    return ", ".join(names)


def pass_to_json(
    one: Pass, number: int, source: str | None, known: Describer | None = None
) -> list[dict[str, Any]]:
    """Return the steps of a pass as JSON objects."""
    describer = known or describer_of_pass(one, source)
    return [_step_to_json(step, number, describer) for step in one.steps]


def _step_to_json(step: Step, number: int, describer: Describer) -> dict[str, Any]:
    node = step.node
    here = describer.id_of(node)
    texts = vjp_text.rules_by_edge(step.node)
    out = []
    for k, (edge, grad) in enumerate(zip(node.next_functions, step.outgoing, strict=False)):
        target = edge[0]
        out.append(
            None
            if target is None
            else {
                "node": describer.id_of(target),
                "name": class_name(target),
                "output": edge[1],
                "rule": texts[k] if k < len(texts) else "",
                "grad": None if grad is None else value_text.to_json(grad),
            }
        )
    return {
        "pass": number,
        "step": step.number,
        "node": here,
        "name": class_name(node),
        "label": None if here is None else describer.label(here),
        "grads": [None if grad is None else value_text.to_json(grad) for grad in step.incoming],
        "out": out,
        "events": [_note_to_json(note) for note in step.notes],
    }


def _note_to_json(note: Note) -> dict[str, Any]:
    def convert(value: Any) -> Any:
        if isinstance(value, tuple):
            return [convert(one) for one in value]
        return None if value is None else value_text.to_json(value)

    found = {"kind": note.kind, "before": convert(note.before), "after": convert(note.after)}
    if note.kind == "accumulate":
        return found  # nothing was there before the first
    return {key: value for key, value in found.items() if value is not None}

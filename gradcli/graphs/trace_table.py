"""The table of a traced backward pass: a row a step, its rules and gradients below one another."""

from __future__ import annotations

from typing import Any

from gradcli.engine.node import FREED
from gradcli.graphs import rules, saved, values
from gradcli.graphs.recorder import Note, Pass, Step
from gradcli.graphs.records import LEAF, Describer, class_name, walk
from gradcli.graphs.styles import ASCII, UNICODE, Line, Signs, crop, length
from gradcli.graphs.text import shorten

WIDEST_SOURCE = 28
WIDEST_RULE = 44
PRECISION = 6
HEADINGS = ("step", "node", "source", "grad in", "rule", "grad out")


def table(
    passes: list[Pass], source: str | None, *, ascii: bool = False, width: int | None = None
) -> list[Line]:
    """Return the lines of the table, fitted into the width."""
    signs = ASCII if ascii else UNICODE
    rows: list[list[Line]] = []
    titles: dict[int, Line] = {}
    for number, one in enumerate(passes, 1):
        describer = _describer(one, source)
        if len(passes) > 1:
            titles[len(rows)] = [(f"pass {number}", "label")]
        for step in one.steps:
            rows += _step(step, describer, signs)
    lines = _aligned(rows, titles, width, signs)
    return lines if width is None else [crop(line, width, signs.ellipsis) for line in lines]


def _describer(one: Pass, source: str | None) -> Describer:
    return Describer(walk([one.root]), source)


def _aligned(
    rows: list[list[Line]], titles: dict[int, Line], room: int | None, signs: Signs
) -> list[Line]:
    heading: list[Line] = [[(text, "field")] for text in HEADINGS]
    widths = [
        max((length(cell) for cell in column), default=0) for column in zip(*rows, strict=True)
    ]
    # A column in which nothing stands has no heading either.
    widths = [
        max(width, len(text)) if width else 0 for width, text in zip(widths, HEADINGS, strict=True)
    ]
    if room is not None:
        _shrink(widths, room)
    lines: list[Line] = []
    for i, row in enumerate([heading, *rows]):
        if i - 1 in titles:
            lines += [[], titles[i - 1]] if i > 1 else [titles[i - 1]]
        line: Line = []
        for width, cell in zip(widths, row, strict=True):
            if width:
                cell = crop(cell, width, signs.ellipsis)
                line += [*cell, (" " * (width - length(cell) + 2), "guide")]
        lines.append(line)
    return lines


def _shrink(widths: list[int], room: int) -> None:
    """Take what is too wide from the rules, then the source, then the gradients that came in."""
    for column, least in ((4, 16), (2, 8), (3, 10), (4, 10)):
        excess = sum(widths) + 2 * len(widths) - 2 - room
        if excess > 0:
            widths[column] = min(widths[column], max(least, widths[column] - excess))


def _step(step: Step, describer: Describer, signs: Signs) -> list[list[Line]]:
    node = step.node
    name = class_name(node)
    label = describer.variable(node) if name == LEAF else getattr(node, "label", None)
    title: Line = [(name, "leaf" if name == LEAF else "function")]
    if label:
        title += [(" ", "guide"), (label, "variable" if name == LEAF else "label")]
    incoming = [_grad(grad, signs) for grad in step.incoming]
    right: list[tuple[Line, Line]] = [
        (_note_kind(note), _note(note, label, signs))
        for note in step.notes
        if note.kind in ("prehook", "tensor hook", "retain")
    ]
    texts = rules.rules_by_edge(step.node)
    for k, (edge, grad) in enumerate(zip(node.next_functions, step.outgoing, strict=False)):
        if edge[0] is None:
            continue
        text = texts[k] if k < len(texts) else ""
        rule: Line = [(shorten(text, WIDEST_RULE), "value")] if text else []
        right.append((rule, [*_grad(grad, signs), *_where(edge, signs, describer)]))
    right += [
        (_note_kind(note), _note(note, label, signs))
        for note in step.notes
        if note.kind in ("hook", "post accumulate", "accumulate")
    ]
    if any(note.kind == "free" for note in step.notes):
        right.append(([("free", "note")], [(_freed(node), "note")]))
    left: list[list[Line]] = [[[(str(step.number), "note")], title, _source(step, describer)]]
    height = max(len(incoming), len(right), 1)
    return [
        [
            *(left[0] if k == 0 else [[], [], []]),
            incoming[k] if k < len(incoming) else [],
            *(right[k] if k < len(right) else ([], [])),
        ]
        for k in range(height)
    ]


def _source(step: Step, describer: Describer) -> Line:
    i = describer.id_of(step.node)
    if i is None or class_name(step.node) == LEAF:
        return []
    piece = describer.piece(describer.span(i))
    return [(shorten(piece, WIDEST_SOURCE), "source")] if piece else []


def _grad(grad: Any, signs: Signs) -> Line:
    if grad is None:
        return [("None", "note")]
    text = values.text(grad, PRECISION)
    if signs is ASCII:
        text = text.replace("…", signs.ellipsis)
    return [(text, "grad" if values.is_finite(grad) else "bad")]


def _where(edge: tuple[Any, int], signs: Signs, describer: Describer) -> Line:
    node, number = edge
    name = class_name(node)
    label = describer.variable(node) if name == LEAF else getattr(node, "label", None)
    line: Line = [(f" {signs.to} ", "guide")]
    if label:
        line.append((label, "variable" if name == LEAF else "label"))
    else:
        line.append((name, "leaf" if name == LEAF else "function"))
    return [*line, (f" output {number}", "note")] if number else line


def _note_kind(note: Note) -> Line:
    return [("accumulate" if note.kind == "post accumulate" else note.kind, "note")]


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
    names = [name for name, value in saved.fields(node) if value is FREED]
    return ", ".join(names)


def pass_to_json(one: Pass, number: int, source: str | None) -> list[dict[str, Any]]:
    """Return the steps of a pass as JSON objects."""
    describer = _describer(one, source)
    return [_step_to_json(step, number, describer) for step in one.steps]


def _step_to_json(step: Step, number: int, describer: Describer) -> dict[str, Any]:
    node = step.node
    here = describer.id_of(node)
    texts = rules.rules_by_edge(step.node)
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
                "grad": None if grad is None else values.to_json(grad),
            }
        )
    return {
        "pass": number,
        "step": step.number,
        "node": here,
        "name": class_name(node),
        "label": None if here is None else describer.label(here),
        "grads": [None if grad is None else values.to_json(grad) for grad in step.incoming],
        "out": out,
        "events": [_note_to_json(note) for note in step.notes],
    }


def _note_to_json(note: Note) -> dict[str, Any]:
    def convert(value: Any) -> Any:
        if isinstance(value, tuple):
            return [convert(one) for one in value]
        return None if value is None else values.to_json(value)

    found = {"kind": note.kind, "before": convert(note.before), "after": convert(note.after)}
    return {key: value for key, value in found.items() if value is not None}

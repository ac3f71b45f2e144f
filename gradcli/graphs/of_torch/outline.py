"""`--by module` as text: one line a module, nested as the calls were."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from gradcli.graphs import value_text
from gradcli.graphs.labels import ending, plural
from gradcli.graphs.of_torch.module_view import ModulePart, Modules
from gradcli.graphs.styles import Line, Signs, crop, fold, length, padded, stripped
from gradcli.graphs.traversal import Totals

OutlineEntry = tuple[Line, list[Line]]
HEADINGS = ("module", "class", "nodes", "parameters", "keeps", "grad in", "grad of parameters")
_SHORTER = {"parameters": "params", "grad of parameters": "of params"}
_CLASS, _NAME = 6, 16  # columns that classes and names keep in any terminal
TIMED = ("forward", "backward")  # of the whole run, with --time


def outline(
    modules: Modules,
    found: Totals,
    signs: Signs,
    *,
    depth: int | None = None,
    only: str | None = None,
    grads: bool = False,
    opened: Iterable[str] = (),
    shut: Collection[str] = (),
    collapse: bool = True,
    width: int | None = None,
) -> list[Line]:
    """Return the lines: modules to a depth (1: the outermost), then nodes outside of all modules.

    opened, shut, collapse: as for `Modules.folded`. width: what the lines have to fit into; numbers stay,
    guides, headings, classes and the beginnings of names give way.
    """
    parts = modules.rows(opened) if collapse else list(modules.parts.values())
    seconds = modules.calls.seconds
    headings = [*HEADINGS[:5], *(TIMED if seconds else ()), *(HEADINGS[5:] if grads else ())]
    columns = len(headings) - 1

    def made(signs: Signs, headings: list[str]) -> tuple[list[OutlineEntry], int, list[int]]:
        rows = _rows(modules, parts, signs, depth, only, grads, shut)
        titles: OutlineEntry = ([(headings[0], "field")], [[(h, "field")] for h in headings[1:]])
        table = [titles, *rows]
        widths = [max(length(row[1][k]) for row in table) for k in range(columns)]
        return table, max(length(row[0]) for row in table), widths

    table, head, widths = made(signs, headings)
    if width is not None and _total(head, widths) > width:
        headings = [_SHORTER.get(title, title) for title in headings]
        table, head, widths = made(signs.compact(), headings)
        while _total(head, widths) > width and (widths[0] > _CLASS or head > _NAME):
            if widths[0] > _CLASS:
                widths[0] -= 1
            else:
                head -= 1
    lines = []
    for first, cells in table:
        line = padded(_tail(first, head, signs), head)
        cells[0] = crop(cells[0], widths[0], signs.ellipsis)
        for k, (cell, room) in enumerate(zip(cells, widths, strict=True)):
            line += [("  ", "guide"), *padded(cell, room, right=0 < k < 4 + 2 * bool(seconds))]
        lines.append(stripped(line))
    outside = found.nodes - found.leaves - len(modules.of)
    words = [plural(found.nodes, "node"), plural(len(modules.parts), "module")]
    if outside:
        words.append(f"{plural(outside, 'node')} outside of modules")
    words.append(
        f"{value_text.bytes_text(found.nbytes - found.parameters)} kept besides parameters"
    )
    lost, size = modules.unreached()
    if lost:
        words.append(f"{lost:,} of {size:,} parameters are not reached")
    if seconds:
        forward, backward = seconds.get(-1, (0.0, 0.0))
        words.append(f"{_time(forward)} and {_time(backward)} outside of modules")
    below: Line = [(f" {signs.dot} ".join(words), "note")]
    return [*lines, [], *([below] if width is None else fold(below, max(width, _NAME)))]


def _total(head: int, widths: list[int]) -> int:
    return head + sum(width + 2 for width in widths)


def _tail(line: Line, width: int, signs: Signs) -> Line:
    """The name of a module in so many columns: its end stays, which tells it from its neighbours."""
    over = length(line) - width
    return [(ending(t, len(t) - over, signs.ellipsis) if r == "label" and over > 0 else t, r)
            for t, r in line]  # fmt: skip


def _rows(
    modules: Modules,
    parts: list[ModulePart],
    signs: Signs,
    depth: int | None,
    only: str | None,
    grads: bool,
    shut: Collection[str],
) -> Iterator[OutlineEntry]:
    below: dict[str | None, list[ModulePart]] = {}
    for part in parts:
        below.setdefault(part.parent, []).append(part)
    starts = below.get(None, []) if only is None else [modules.parts[only]]
    stack: list[tuple[ModulePart, tuple[bool, ...]]] = [(part, ()) for part in reversed(starts)]
    base = starts[0].depth if starts else 0
    while stack:
        part, guides = stack.pop()
        inner = below.get(part.path, [])
        closed = any(f".{part.path}".endswith(f".{name}") for name in shut)
        cut = bool(inner) and (closed or (depth is not None and part.depth - base + 1 >= depth))
        yield _row(modules, part, guides, signs, cut, grads)
        if not cut:
            last = len(inner) - 1
            stack += [(one, (*guides, k < last)) for k, one in reversed(list(enumerate(inner)))]


def _row(
    modules: Modules,
    part: ModulePart,
    guides: tuple[bool, ...],
    signs: Signs,
    cut: bool,
    grads: bool,
) -> OutlineEntry:
    text = "".join(signs.pipe if more else signs.blank for more in guides[:-1])
    if guides:
        text += signs.tee if guides[-1] else signs.elbow
    above = part.parent or ""
    name = part.path.replace(f"{above}.", "") if guides and above else part.path
    head: Line = [(text, "guide"), (name.replace("…", signs.ellipsis), "label")]
    if len(part.calls) > 1:
        head.append((f" {signs.times}{len(part.calls)}", "shared"))
    if cut:
        head.append((f" {signs.ellipsis}", "note"))
    size, kept = modules.size(part), modules.kept(part.nodes)
    cells: list[Line] = [
        [(part.kind.replace("×", signs.times), "function")],
        [(f"{len(part.nodes):,}", "value")],
        [(f"{size:,}" if size else "", "variable")],
        [(value_text.bytes_text(kept) if kept else "", "saved")],
    ]
    if modules.calls.seconds:
        cells += [[(_time(spent), "value")] for spent in modules.spent(part)]
    if grads:
        cells += [_grad(modules.reached(part), signs), _norm(modules.leaf_norm(part))]
    return head, cells


def _grad(grad: Any, signs: Signs) -> Line:
    if grad is None:
        return [("None", "note")]
    known = value_text.stats_of(grad)
    return [(value_text.range_text(known), "bad" if known.bad else "grad")]


def _time(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def _norm(norm: float | None) -> Line:
    if norm is None:
        return []
    return [(f"norm {value_text.number(norm, 3)}", "grad" if norm - norm == 0 else "bad")]


def to_json(modules: Modules, *, grads: bool = False) -> list[dict[str, Any]]:
    """Return one object a module."""
    found = []
    for part in modules.parts.values():
        entry: dict[str, Any] = {
            "path": part.path,
            "class": part.kind,
            "parent": part.parent,
            "calls": len(part.calls),
            "nodes": part.nodes,
            "parameters": modules.size(part),
            "kept_bytes": modules.kept(part.nodes),
        }
        if modules.calls.seconds:
            entry["forward_seconds"], entry["backward_seconds"] = modules.spent(part)
        if grads:
            came = modules.reached(part)
            entry["grad_stats"] = None if came is None else value_text.stats_to_json(came)
            norm = modules.leaf_norm(part)
            entry["parameter_grad_norm"] = None if norm is None else value_text.scalar_to_json(norm)
        found.append(entry)
    return found

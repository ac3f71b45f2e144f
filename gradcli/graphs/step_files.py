"""The backward pass as a table for other programs: CSV, tab-separated lines, LaTeX, HTML.

A row is a gradient that a step sends, or what a leaf does with its own.
"""

from __future__ import annotations

import csv
import html
import io
from typing import Any

from gradcli.graphs import tikz, value_text, vjp_text
from gradcli.graphs.backward_steps import Step
from gradcli.graphs.step_table import describer_of_pass, label_of, source_of
from gradcli.graphs.traversal import Describer, class_name

HEADINGS = ("pass", "step", "node", "label", "source", "grad in", "rule", "to", "grad out")
FORMATS = ("csv", "tex", "html")
PRECISION = 6  # of what is to be read, not computed with
_HTML_HEAD = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Backward pass</title>
<style>
body { color-scheme: light dark; font: 14px/1.45 ui-sans-serif, system-ui, sans-serif; margin: 1.5rem; }
table { border-collapse: collapse; }
th, td { padding: .3em .9em; border-bottom: 1px solid #8886; text-align: left; vertical-align: top; }
td:nth-child(n+4) { font-family: ui-monospace, Menlo, Consolas, monospace; font-size: .92em; }
</style>
"""


def rows(trace: Any, precision: int | None = None) -> list[list[str]]:
    """The rows of all passes, under HEADINGS."""
    found = []
    for number, one in enumerate(trace.passes, 1):
        describer = trace.describer or describer_of_pass(one, trace.source)
        for step in one.steps:
            found += [[str(number), *row] for row in _rows(step, describer, precision)]
    return found


def _rows(step: Step, describer: Describer, precision: int | None) -> list[list[str]]:
    def written(grad: Any) -> str:
        return "None" if grad is None else value_text.text(grad, precision, summarise=None)

    node = step.node
    came = "; ".join(map(written, step.incoming))
    label = label_of(node, describer) or ""
    head = [str(step.number), class_name(node), label, source_of(step, describer), came]
    texts = vjp_text.rules_by_edge(node)
    sent = []
    for k, (edge, grad) in enumerate(zip(node.next_functions, step.outgoing, strict=False)):
        if edge[0] is not None:
            to = label_of(edge[0], describer) or class_name(edge[0])
            to += f" output {edge[1]}" if edge[1] else ""
            sent.append([*head, texts[k] if k < len(texts) else "", to, written(grad)])
    for note in step.notes:
        if note.kind in ("accumulate", "retain"):
            to = f"{label}.grad" if label else "grad"
            sent.append([*head, note.kind, to, written(note.after)])
    return sent or [[*head, "", "", ""]]


def to_csv(trace: Any) -> str:
    """Return the rows as CSV, numbers to their last digit."""
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows([HEADINGS, *rows(trace)])
    return stream.getvalue()


def to_plain(trace: Any, precision: int | None = None) -> str:
    """Return the rows, tabs between their cells."""
    lines = ["\t".join(map(_one_line, row)) for row in rows(trace, precision)]
    return "\n".join(lines)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def to_tex(trace: Any) -> str:
    r"""Return the rows as LaTeX's `longtable`, what is said twice left out."""
    used, told = _told(trace)
    lines = [
        "% \\usepackage{longtable} \\usepackage[T1]{fontenc} \\usepackage{textcomp}",
        f"\\begin{{longtable}}{{{'l' * len(used)}}}",
        f"{' & '.join(used)} \\\\ \\hline",
        *(f"{' & '.join(map(tikz.escaped, row))} \\\\" for row in told),
        "\\end{longtable}",
    ]
    return "\n".join([*lines, ""])


def to_html(trace: Any) -> str:
    """Return the rows as a page with one table, what is said twice left out."""
    used, told = _told(trace)

    def line(cells: list[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    body = "\n".join(line(row, "td") for row in told)
    return f"{_HTML_HEAD}<table>\n{line(used, 'th')}\n{body}\n</table>\n</html>\n"


def _told(trace: Any) -> tuple[list[str], list[list[str]]]:
    """The headings and rows to be read: no column without content, a step's own cells once."""
    every = [list(map(_one_line, row)) for row in rows(trace, PRECISION)]
    columns = [
        k
        for k in range(len(HEADINGS))
        if any(row[k] for row in every) and (k or len(trace.passes) > 1)
    ]
    told = []
    before: list[str] = []
    for row in every:
        same = before[:6] == row[:6]
        told.append(["" if same and k < 6 else row[k] for k in columns])
        before = row
    return [HEADINGS[k] for k in columns], told

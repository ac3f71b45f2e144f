"""The table of pairs: each format by each of its readers, for four sizes of graphs and 31 kinds of formulas.

    python -m tests.readers [FORMAT …]      NODE_PATH names a folder with katex and mermaid

Each pair is "right"; or "said": the reader refuses, and gradcli had said so, or what it cannot print; or
"WRONG", which ends with exit code 1. A reader that is not installed is named at the end.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.commands.running import run
from tests.readers.cases import FORMULAS, GRAPHS
from tests.readers.readers import READERS, Reader

PICTURES = ("dot", "mermaid", "svg", "html", "tikz")


def written(form: str) -> Iterator[tuple[str, str, str]]:
    """(the case, the text in a format, what gradcli said beside it)."""
    if form in PICTURES:
        for size, line in GRAPHS.items():
            made = run("graph", *line, "--format", form)
            yield f"{size:,} nodes", made.stdout, made.stderr
        return
    for kind, line in FORMULAS.items():
        options = ("--wrt", "x") if form == "c" and "A@x" in line[0] else ()
        made = run("diff", *line, *options, "--format", form)
        yield kind, made.stdout, made.stderr


def told(reader: Reader, case: str, text: str, said: str, folder: Path) -> str:
    """ "right", "said" or "WRONG" for one pair."""
    note = " ".join(one for one in said.splitlines() if "shapes:" not in one)
    if not text:
        return "said" if "error: " in said and "fault in gradcli" not in said else f"WRONG: {note}"
    wrong = reader.read(text, folder)
    if wrong is None:
        return "right"
    return f"said: {wrong}" if reader.name.split()[0].lower() in note.lower() else f"WRONG: {wrong}"


def main(wanted: list[str]) -> int:
    """Ask every reader that is installed; returns how many pairs are wrong."""
    faults = pairs = 0
    forms = dict.fromkeys(r.reads for r in READERS if not wanted or r.reads in wanted)
    for form in forms:
        cases = list(written(form))
        for reader in (r for r in READERS if r.reads == form and r.installed):
            counts = {"right": 0, "said": 0, "WRONG": 0}
            for case, text, said in cases:
                with tempfile.TemporaryDirectory() as folder:
                    answer = told(reader, case, text, said, Path(folder))
                counts[answer.partition(":")[0]] += 1
                if not answer.startswith("right"):
                    print(f"{form}, {reader.name}, {case}: {answer}", flush=True)
            shown = ", ".join(f"{n} {word}" for word, n in counts.items() if n)
            print(f"{form}, {reader.name}: {shown}", flush=True)
            faults, pairs = faults + counts["WRONG"], pairs + sum(counts.values())
    absent = [f"{r.name} ({r.reads})" for r in READERS if not r.installed]
    print(
        f"{pairs} pairs, {faults} wrong" + (f"; not installed: {', '.join(absent)}" * bool(absent))
    )
    return faults


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:])))

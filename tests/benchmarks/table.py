"""The results as tables: every measure on a terminal, one row a kind of work in docs/speed.md."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.benchmarks.records import Measure, Record, Results
from tests.benchmarks.rows import COMPILED, FORMULAS

PAGE = Path(__file__).parents[2] / "docs" / "speed.md"
START, END = "<!-- benchmarks -->\n", "<!-- end of benchmarks -->\n"
SPELLED = {
    "jax": "JAX",
    "numpy": "`import numpy`",
    "ast": "`ast`",
    "commands": "gradcli with the commands’ collector",
    "sympy": "SymPy",
    "1 MB": "1 MB’s time a byte",
}
UNITS = ("MB/s", "bytes a byte")


def number(value: float) -> str:
    """Two or three digits."""
    return f"{value:.0f}" if value >= 10 else f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def size_text(record: Record) -> str:
    """How large it is."""
    if record.group == "cold":
        return "process"
    digits = str(record.size)
    zeros = len(digits) - len(digits.rstrip("0"))
    power = "10" + str(zeros).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    head = digits.rstrip("0")
    text = digits if zeros < 4 else power if head == "1" else f"{head}·{power}"
    return f"{text} {record.dtype}"


def machine_text(machine: dict[str, Any]) -> str:
    """Where it was measured, in a line."""
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    return (
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gb']} GB, one thread "
        f"copies {machine['copy_gb_per_s']} GB/s; {versions}"
    )


# -- on a terminal ---------------------------------------------------------------------------------
def show(results: Results) -> None:
    """Every measure, its mark and whether it is reached."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(title=machine_text(results.machine), title_justify="left", box=box.SIMPLE_HEAD)
    for column in ("work", "size", "against", "ratio", "spread", "mark", ""):
        justify = "right" if column == "ratio" else "left"
        table.add_column(column, justify=justify, no_wrap=column != "spread")
    for record in results.records:
        first = [f"{record.group} {record.name}", size_text(record)]
        for against, m in record.measures.items():
            table.add_row(*first, against, number(m.value), *_judged(results, record, against))
            first = ["", ""]
        if not record.measures:
            table.add_row(*first, "not measured")
        table.add_section()
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(table)
    for line in skipped_lines(results):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    console.print(summary(results), highlight=False, markup=False)


def _judged(results: Results, record: Record, against: str) -> list[str]:
    """Spread (or what else is to be said), mark, verdict."""
    m = record.measures[against]
    spread = "" if m.low == m.high else f"{number(m.low)} to {number(m.high)}"
    if against == "peak memory":
        spread = ", ".join(f"{peer} {number(value)}" for peer, value in record.peaks.items())
    elif against == "GB/s":
        spread = f"{spread} ({m.value / results.machine['copy_gb_per_s']:.2f} of copying)".strip()
    mark = "" if m.mark is None else f"{'≥' if m.at_least else '≤'} {m.mark:g}"
    verdict = {None: "", True: "reached", False: "[bold red]missed[/]"}[m.met]
    return [spread + (" noisy" if m.noisy else ""), mark, verdict]


def skipped_lines(results: Results) -> list[str]:
    """What was not measured, by name."""
    lines = [f"skipped {peer}: not installed" for peer in results.machine["missing"]]
    for record in results.records:
        for peer, why in record.skipped.items():
            lines.append(f"skipped {peer} for {record.name} {size_text(record)}: {why[:100]}")
    return lines


def summary(results: Results) -> str:
    """How many marks are reached."""
    judged = [
        (f"{r.name} {size_text(r)} {against}", m.met)
        for r in results.records
        for against, m in r.measures.items()
        if m.met is not None
    ]
    missed = [what for what, met in judged if not met]
    text = f"{len(judged) - len(missed)} of {len(judged)} marks are reached"
    return f"{text}; missed: {', '.join(missed)}" if missed else text


# -- in docs/speed.md ------------------------------------------------------------------------------
@dataclass
class Row:
    """A line of the page's table: the records of a group, name and dtype ("": any)."""

    title: str
    group: str
    name: str = ""
    dtype: str = ""
    each: bool = True  # a number for each record, else from the least to the greatest

    def records(self, results: Results) -> list[Record]:
        """Those that it shows."""
        return [
            r
            for r in results.records
            if r.group == self.group and self.name in ("", r.name) and self.dtype in ("", r.dtype)
        ]


ROWS = [
    Row(
        "start to end: `grad` · `--help` · `--version` · `completion` · `graph` on a terminal",
        "cold",
    ),
    Row("parsing an expression of 1 MB · 10 MB", "parse"),
    Row("tape: chain and DAG of 30 to 10⁶ operations on 4 numbers", "tape", each=False),
    Row("the same, recorded and run again (10 to 1000 operations)", "replay", each=False),
    Row("`sum(exp(-x**2)*sin(3*x))`, float64, {sizes}", "large", "exp_sin", "float64"),
    Row("the same in float32, {sizes}", "large", "exp_sin", "float32"),
    Row("a chain of 30 elementwise operations, 10⁷, {dtypes}", "large", "chain30"),
    Row("softmax cross-entropy, 10⁴ × 10³", "large", "softmax_cross_entropy"),
    Row("`2*dot(x,x)`, {sizes}", "large", "2*dot"),
    Row("broadcasting add and mean, (1000,1000) + (1000,)", "large", "broadcast_mean"),
    Row("three-layer MLP, 10,000 × 256, {dtypes}", "large", "mlp"),
    *(
        Row(f"gradients of 10⁵ rows, `vmap(grad(f))`: {name}{how}", "rows", name + how)
        for name in FORMULAS
        for how in ("", COMPILED)
    ),
]
COLUMNS = ("work", "mark", "torch", "JAX", "others", "peak memory")


def page_block(results: Results) -> str:
    """The page's table, and where it was measured."""
    lines = ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
    for row in ROWS:
        records = row.records(results)
        if any(r.measures for r in records):
            lines.append("| " + " | ".join(_cells(row, records)) + " |")
    large = [r for r in results.records if r.group == "large" and r.measures]
    if large:
        judged = [r for r in large if r.measures["peak memory"].met is not None]
        lines.append("| " + " | ".join(_memory(judged)) + " |")
        lines.append("| " + " | ".join(_bits(large)) + " |")
    missing = results.machine["missing"]
    skipped = f"Not installed: {', '.join(missing)}. " if missing else ""
    return "\n".join([*lines, "", f"{skipped}{machine_text(results.machine)}.", ""])


def _cells(row: Row, records: list[Record]) -> list[str]:
    sizes = " · ".join(size_text(r).removesuffix(f" {r.dtype}") for r in records)
    dtypes = " · ".join(r.dtype for r in records)
    others = [against for r in records for against in r.measures if _other(against)]
    others.sort(key=lambda against: against not in UNITS)
    return [
        row.title.format(sizes=sizes, dtypes=dtypes),
        ", ".join(_marks(records)),
        _values(row, records, "torch"),
        _values(row, records, "jax"),
        ", ".join(_labelled(a, _values(row, records, a)) for a in dict.fromkeys(others)),
        _values(row, records, "peak memory"),
    ]


def _other(against: str) -> bool:
    own = ("torch", "jax", "tape", "peak memory", "GB/s", "first call", "same bits")
    return against not in own


def _labelled(against: str, values: str) -> str:
    if against in UNITS:
        return f"{values} {against}"
    return f"{SPELLED.get(against, against)} {values}"


def _marks(records: list[Record]) -> list[str]:
    found = []
    marked = [a for r in records for a, m in r.measures.items() if m.mark is not None]
    for against in dict.fromkeys(marked):
        if against in ("peak memory", "same bits"):
            continue  # rows of their own
        measures = [r.measures.get(against) for r in records]
        least = any(m is not None and m.at_least for m in measures)
        marks = ["–" if m is None or m.mark is None else f"{m.mark:g}" for m in measures]
        text = marks[0] if len(set(marks)) == 1 else " · ".join(marks)
        found.append(f"{'≥' if least else '≤'} {text} {SPELLED.get(against, against)}")
    return found


def _values(row: Row, records: list[Record], against: str) -> str:
    measures = [r.measures.get(against) for r in records]
    if row.each:
        return _each(measures)
    return _range([m for m in measures if m is not None])


def _each(measures: Sequence[Measure | None]) -> str:
    texts = [_bold(number(m.value), m.met) if m is not None else "–" for m in measures]
    while texts and texts[-1] == "–":
        texts.pop()
    return " · ".join(texts)


def _range(measures: list[Measure]) -> str:
    if not measures:
        return ""
    return _bold(_from_to([m.value for m in measures]), all(m.met is not False for m in measures))


def _from_to(values: list[float]) -> str:
    low, high = number(min(values)), number(max(values))
    return low if low == high else f"{low} to {high}"


def _bold(text: str, met: bool | None) -> str:
    return f"**{text}**" if met is False else text


def _memory(large: list[Record]) -> list[str]:
    peers = list(dict.fromkeys(peer for r in large for peer in r.peaks if peer != "tape"))
    texts = {p: _from_to([r.peaks[p] for r in large if p in r.peaks]) for p in peers}
    own = [r.measures["peak memory"] for r in large]
    return [
        "peak memory of the large cases, × (inputs + gradients)",
        f"≤ {own[0].mark:g}",
        texts.pop("torch", ""),
        texts.pop("jax", ""),
        ", ".join(f"{SPELLED.get(p, p)} {text}" for p, text in texts.items()),
        _range(own),
    ]


def _bits(large: list[Record]) -> list[str]:
    same = [r.measures["same bits"] for r in large]
    good = sum(bool(m.met) for m in same)
    verdict = _bold(f"{good} of {len(same)}", good == len(same))
    title = "blocks equal the tape to the bit, on 1, 2 and 3 threads, run after run"
    return [title, "all", "", "", verdict, ""]


def between_markers(text: str, block: str) -> str:
    """The page with another table."""
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not start or not end:
        raise ValueError(f"docs/speed.md has no {START.strip()} … {END.strip()}")
    return f"{before}{START}{block}{END}{after}"


def write_page(results: Results, path: Path = PAGE) -> None:
    """The table of the page."""
    path.write_text(between_markers(path.read_text(), page_block(results)))

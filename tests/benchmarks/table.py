"""The results as tables: every measure on a terminal, one row a kind of work in docs/speed.md."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.benchmarks.machine import short_name
from tests.benchmarks.native import ALONE, WORKS
from tests.benchmarks.records import Measure, Record, Results, Worse, worse
from tests.benchmarks.rows import COMPILED, FORMULAS
from tests.benchmarks.small_c import WORKS as SMALL_C

ROOT = Path(__file__).parents[2]
PAGE, README = ROOT / "docs" / "speed.md", ROOT / "README.md"
START_ROW = "time of a command, as a multiple of that of `import numpy`"
NOT_EVERYWHERE = "†"
START, END = "<!-- benchmarks -->\n", "<!-- end of benchmarks -->\n"
SPELLED = {
    "jax": "JAX",
    "numpy": "`import numpy`",
    "ast": "`ast`",
    "commands": "gradcli with the commands’ collector",
    "sympy": "SymPy",
    "inductor": "torch.compile",
    "blocks": "blocks of NumPy",
    "first inductor": "the first call of torch.compile",
    "first blocks": "the first call of blocks",
    "1 MB": "1 MB’s time a byte",
}
UNITS = ("MB/s", "bytes a byte")


def number(value: float) -> str:
    """Two or three digits."""
    return f"{value:.0f}" if value >= 10 else f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def size_text(record: Record) -> str:
    """How large it is."""
    if record.group == "cold" or (record.dtype == "process" and record.size == 1):
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
        f"{short_name(machine['processor'])}, {machine['cores']} cores, {machine['memory_gb']} GB, "
        f"one thread copies {machine['copy_gb_per_s']} GB/s; {versions}; {machine['date']}, commit "
        f"{machine['commit']}"
    )


# -- on a terminal ---------------------------------------------------------------------------------
def show(machines: Sequence[Results]) -> None:
    """Every measure, its mark and whether it is reached; of several machines the worse."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    title = "\n".join(machine_text(one.machine) for one in machines)
    records = worse(machines)
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for column in ("work", "size", "against", "ratio", "spread", "mark", ""):
        justify = "right" if column == "ratio" else "left"
        table.add_column(column, justify=justify, no_wrap=column != "spread")
    for record in records:
        first = [f"{record.group} {record.name}", size_text(record)]
        for against, m in record.measures.items():
            table.add_row(*first, against, number(m.value), *_judged(machines, record, against))
            first = ["", ""]
        if not record.measures:
            table.add_row(*first, "not measured")
        table.add_section()
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(table)
    for line in skipped_lines(machines):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    console.print(summary(machines), highlight=False, markup=False)


def _judged(machines: Sequence[Results], record: Record, against: str) -> list[str]:
    """Spread (or what else is to be said), mark, verdict."""
    m = record.measures[against]
    spread = "" if m.low == m.high else f"{number(m.low)} to {number(m.high)}"
    if isinstance(m, Worse):
        spread = ", ".join(
            f"{short_name(one.machine['processor'])} {number(found.value) if found else '–'}"
            for one, found in zip(machines, m.by, strict=True)
        )
    elif against == "peak memory":
        spread = ", ".join(f"{peer} {number(value)}" for peer, value in record.peaks.items())
    elif against == "GB/s":
        copied = machines[0].machine["copy_gb_per_s"]
        spread = f"{spread} ({m.value / copied:.2f} of copying)".strip()
    mark = "" if m.mark is None else f"{'≥' if m.at_least else '≤'} {m.mark:g}"
    verdict = {None: "", True: "reached", False: "[bold red]missed[/]"}[m.met]
    return [spread + (" noisy" if m.noisy else ""), mark, verdict]


def skipped_lines(machines: Sequence[Results]) -> list[str]:
    """What was not measured, by name."""
    missing = dict.fromkeys(peer for one in machines for peer in one.machine["missing"])
    lines = [f"skipped {peer}: not installed" for peer in missing]
    for record in worse(machines):
        for peer, why in record.skipped.items():
            lines.append(f"skipped {peer} for {record.name} {size_text(record)}: {why[:100]}")
    return lines


def summary(machines: Sequence[Results]) -> str:
    """How many marks are reached: on every machine."""
    judged = [
        (f"{r.name} {size_text(r)} {against}", m.met)
        for r in worse(machines)
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

    def records(self, records: Sequence[Record]) -> list[Record]:
        """Those that it shows."""
        return [
            r
            for r in records
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
ROWS += [
    Row(f"as C: {name}{how}, {{sizes}}", "native", name + how)
    for name in WORKS
    for how in ("", ALONE)
]
ROWS += [Row(f"one C function: {name}, {{sizes}}", "formulas", name) for name in SMALL_C]
COLUMNS = ("work", "mark", "torch", "JAX", "others", "peak memory")


def page_block(machines: Sequence[Results]) -> str:
    """The page's table, and where it was measured."""
    everything = worse(machines)
    lines = ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
    for row in ROWS:
        records = row.records(everything)
        if any(r.measures for r in records):
            lines.append("| " + " | ".join(_cells(row, records)) + " |")
    large = [r for r in everything if r.group == "large" and r.measures]
    if large:
        judged = [r for r in large if r.measures["peak memory"].met is not None]
        lines.append("| " + " | ".join(_memory(judged)) + " |")
        lines.append("| " + " | ".join(_bits(large)) + " |")
    if any(NOT_EVERYWHERE in line for line in lines):
        lines += [
            "",
            f"{NOT_EVERYWHERE} not measured on all of the processors: not counted as reached.",
        ]
    return "\n".join([*lines, "", *map(_machine_line, machines), "", f"{_reached(machines)}.", ""])


def _machine_line(one: Results) -> str:
    missing = one.machine["missing"]
    skipped = f" Not installed: {', '.join(missing)}." if missing else ""
    return f"- {machine_text(one.machine)}.{skipped}"


def _reached(machines: Sequence[Results]) -> str:
    """The summary, without what is missed: the table has that."""
    words = summary(machines).partition(";")[0]
    return words if len(machines) == 1 else f"{words} on all {len(machines)} processors"


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
    texts = [_marked(number(m.value), [m]) if m is not None else "–" for m in measures]
    while texts and texts[-1] == "–":
        texts.pop()
    return " · ".join(texts)


def _range(measures: list[Measure]) -> str:
    if not measures:
        return ""
    return _marked(_from_to([m.value for m in measures]), measures)


def _from_to(values: list[float]) -> str:
    low, high = number(min(values)), number(max(values))
    return low if low == high else f"{low} to {high}"


def _marked(text: str, measures: Sequence[Measure]) -> str:
    """Bold where a mark is missed; with a sign where it has not been measured on every machine."""
    if any(m.missed if isinstance(m, Worse) else m.met is False for m in measures):
        return f"**{text}**"
    absent = any(isinstance(m, Worse) and m.mark is not None and None in m.by for m in measures)
    return f"{text}{NOT_EVERYWHERE}" if absent else text


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
    good = sum(bool(m.value) for m in same)
    verdict = _marked(f"{good} of {len(same)}", same)
    title = "blocks equal the tape to the bit, on 1, 2 and 3 threads, run after run"
    return [title, "all", "", "", verdict, ""]


def between_markers(text: str, block: str) -> str:
    """The page with another table."""
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not start or not end:
        raise ValueError(f"docs/speed.md has no {START.strip()} … {END.strip()}")
    return f"{before}{START}{block}{END}{after}"


def readme_text(text: str, machines: Sequence[Results]) -> str:
    """The README with other numbers in its row of start-up times."""
    records = worse(machines)
    own = [r.measures["numpy"].value for r in records if r.name in ("grad", "graph")]
    starts = [r.measures for one in machines for r in one.records if r.key[:2] == ("cold", "grad")]
    times = [
        number(min(m["numpy"].value / m[peer].value for m in starts))
        for peer in ("torch", "jax", "autograd", "sympy")
    ]
    row = f"| {START_ROW} | {_from_to(own)} | {' | '.join(times)} |"
    text, count = re.subn(rf"(?m)^\| {re.escape(START_ROW)} \|.*", row, text)
    if count != 1:
        raise ValueError(f"README.md has {count} places for {row!r}")
    return text


def write_page(machines: Sequence[Results]) -> None:
    """The table of the page, and the numbers of the README."""
    PAGE.write_text(between_markers(PAGE.read_text(), page_block(machines)))
    README.write_text(readme_text(README.read_text(), machines))

"""Cost against size: times as multiples of torch's, from the same records as the table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.benchmarks.machine import short_name
from tests.benchmarks.records import Record, Results

# Okabe and Ito's colours, told apart with every kind of sight; and a marker each.
STYLES = {
    "gradcli": ("#0072B2", "o"),
    "gradcli, recorded": ("#56B4E9", "D"),
    "jax": ("#E69F00", "s"),
    "autograd": ("#009E73", "^"),
    "mygrad": ("#CC79A7", "v"),
    "numexpr": ("#D55E00", "P"),
    "sympy": ("#999999", "X"),
}
LABELS = {
    "torch": "torch, eager",
    "gradcli, recorded": "gradcli, recorded and run again",
    "jax": "JAX, jitted",
    "sympy": "SymPy, as NumPy code",
    "numexpr": "numexpr, derived by hand",
}
Line = dict[int, float]  # by size: the time in times of torch's


def lines(records: list[Record], own: str = "gradcli") -> dict[str, Line]:
    """A line a library, gradcli's under the name `own`; the first record of a size counts."""
    found: dict[str, Line] = {}
    for record in records:
        torch = record.measures.get("torch")
        if torch is None:
            continue
        found.setdefault(own, {}).setdefault(record.size, torch.value)
        for peer in STYLES.keys() & record.measures.keys():
            times = torch.value / record.measures[peer].value
            found.setdefault(peer, {}).setdefault(record.size, times)
    return {name: found[name] for name in STYLES if name in found}


def panels(results: Results) -> list[tuple[str, str, dict[str, Line]]]:
    """(title, label of the sizes, lines) of the two drawings."""
    kinds: dict[str, list[Record]] = {"exp_sin": [], "tape": [], "replay": []}
    for record in sorted(results.records, key=lambda r: r.group != "sizes"):
        if record.name == "exp_sin" and record.dtype == "float64":
            kinds["exp_sin"].append(record)
        elif record.name == "chain":
            kinds["replay" if record.group == "replay" else "tape"].append(record)
    again = lines(kinds["replay"], "gradcli, recorded")
    compiled = {name: again[name] for name in ("gradcli, recorded", "jax") if name in again}
    return [
        ("sum(exp(-x**2)*sin(3*x)), value and gradient, 2 threads", "elements of x, float64",
         lines(kinds["exp_sin"])),
        ("a chain on 4 numbers, forward and backward, 1 thread", "operations",
         lines(kinds["tape"]) | compiled),
    ]  # fmt: skip


def draw(machines: Sequence[Results], path: Path) -> None:
    """A picture of a format that matplotlib knows by the file's ending: a row a machine."""
    drawings = [(short_name(one.machine["processor"]), panels(one)) for one in machines]
    drawings = [(name, found) for name, found in drawings if any(drawn for _, _, drawn in found)]
    if not drawings:
        raise ValueError("nothing to draw: the results have no times of torch")
    rows = len(drawings)
    with figure(path, rows) as (whole, grid):
        handles: dict[str, Any] = {}
        for k, (row, (name, found)) in enumerate(zip(grid, drawings, strict=True)):
            for axis, (title, sizes, drawn) in zip(row, found, strict=True):
                handles |= _panel(axis, drawn)
                axis.set_title(title if k == 0 else "", fontsize=10)
                axis.set_xlabel(sizes if k == rows - 1 else "")
            row[0].set_ylabel(f"{name}: time, in times of torch’s\n(below 1× is faster)")
        order = [name for name in ("torch", *STYLES) if name in handles]
        labels = [LABELS.get(name, name) for name in order]
        shown = [handles[name] for name in order]
        whole.legend(shown, labels, ncols=4, loc="lower center", frameon=False)


@contextmanager
def figure(path: Path, rows: int) -> Iterator[tuple[Any, Any]]:
    """(a figure, its axes: rows of two); written to the file at the end, a legend's room below."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    pyplot.rcParams.update({"svg.hashsalt": "gradcli", "font.size": 10})
    whole, grid = pyplot.subplots(
        rows, 2, figsize=(11, 1 + 4 * rows), facecolor="white", squeeze=False, sharex="col"
    )
    yield whole, grid
    whole.tight_layout(rect=(0, 0.5 / (1 + 4 * rows), 1, 1), w_pad=2.5)
    whole.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(whole)


def prepared(axis: Any) -> None:
    """Two logarithmic scales, with a grid."""
    axis.set(xscale="log", yscale="log", facecolor="white")
    axis.grid(True, which="major", color="#e4e4e4", linewidth=0.7)
    axis.spines[["top", "right"]].set_visible(False)


def _panel(axis: Any, drawn: dict[str, Line]) -> dict[str, Any]:
    """Its lines, and torch's, by name."""
    from matplotlib.ticker import LogLocator, NullFormatter

    prepared(axis)
    axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:g}×")
    axis.yaxis.set_minor_formatter(NullFormatter())
    handles = {"torch": axis.axhline(1, color="black", linewidth=1.3, linestyle=(0, (4, 2)))}
    for name, line in drawn.items():
        colour, marker = STYLES[name]
        own = name.startswith("gradcli")
        sizes = sorted(line)
        (handles[name],) = axis.plot(
            sizes, [line[n] for n in sizes], color=colour, marker=marker, markersize=5,
            linewidth=2.4 if own else 1.3, zorder=3 if own else 2,
        )  # fmt: skip
    return handles

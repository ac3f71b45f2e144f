"""The benchmarks' arithmetic and tables; nothing is timed here."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests.benchmarks import (
    growth,
    libraries,
    limit,
    plot,
    small,
    symbolic,
    table,
    text,
    worker,
)
from tests.benchmarks.cold import COMMANDS
from tests.benchmarks.interleave import interleaved
from tests.benchmarks.jobs import GROUPS, Job, Wanted, jobs, measure, record
from tests.benchmarks.machine import STORED, file_name, find_peers, short_name
from tests.benchmarks.problems import PROBLEMS
from tests.benchmarks.records import Measure, Record, Results, ratio, spread, stored, worse
from tests.sweep import sweep

ROOT = Path(__file__).parents[2]


def measured(value: float, mark: float | None = None, at_least: bool = False) -> Measure:
    return Measure(value, value * 0.9, value * 1.1, False, mark, at_least)


def results() -> Results:
    """A bit of everything."""
    large = {
        "torch": measured(0.47, 0.6),
        "jax": measured(1.2, 1.0),
        "numexpr": measured(0.3),
        "peak memory": measured(1.04, 1.25),
        "GB/s": measured(5.0),
        "same bits": measured(1, 1, True),
    }
    return Results(
        {
            **{"processor": "Abacus", "cores": 2, "memory_gb": 1, "copy_gb_per_s": 10.0},
            **{"versions": {"Python": "3.11.7", "torch": "2.13.0"}, "missing": ["mygrad"]},
            **{"date": "2026-11-22", "commit": "abc1234"},
        },
        [
            Record(
                "cold", "grad", 1, "process", {"numpy": measured(1.1, 1.2), "torch": measured(0.06)}
            ),
            Record("cold", "--help", 1, "process", {"numpy": measured(0.7, 0.6)}),
            Record("parse", "text", 10**6, "text", {"MB/s": measured(2.5, 1.5, True)}),
            Record("tape", "chain", 30, "float64", {"torch": measured(0.4, 0.45)}),
            Record("tape", "dag", 30_000, "float64", {"torch": measured(0.5, 0.45)}),
            Record("large", "exp_sin", 10**5, "float64", {}, skipped={"gradcli": "it fell over"}),
            Record("large", "exp_sin", 10**7, "float64", large, {"torch": 7.0, "jax": 2.5}),
        ],
    )


def test_ratios_are_of_neighbours_in_time() -> None:
    found = ratio([1, 2, 30], [2, 4, 10], 0.4)
    assert (found.value, found.low, found.high, found.met) == (0.5, 0.5, 3, False)
    assert ratio([1, 2], [2, 4], 0.5).met is True
    assert ratio([1], [2]).met is None
    assert spread([1.6], 1.5, at_least=True).met is True


def test_noise_is_between_the_quartiles() -> None:
    assert not spread([1, 1, 1, 1, 9]).noisy
    assert spread([1, 1.2, 2, 3, 9]).noisy


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    results().write(tmp_path / "results.json")
    assert Results.read(tmp_path / "results.json") == results()


def test_sizes_in_words() -> None:
    sizes = {1000: "1000", 10**7: "10⁷", 30_000: "3·10⁴", 30: "30", 10**10: "10¹⁰"}
    for size, words in sizes.items():
        assert table.size_text(Record("tape", "chain", size, "float64")) == f"{words} float64"
    assert [table.number(v) for v in (0.0123, 0.456, 1.234, 12.3)] == [
        "0.012",
        "0.46",
        "1.23",
        "12",
    ]


def test_the_table_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    table.show([results()])
    said = capsys.readouterr().out
    lines = {" ".join(line.split()) for line in said.splitlines()}
    assert "large exp_sin 10⁷ float64 torch 0.47 0.42 to 0.52 ≤ 0.6 reached" in lines
    assert "peak memory 1.04 torch 7.00, jax 2.50 ≤ 1.25 reached" in lines
    assert "GB/s 5.00 4.50 to 5.50 (0.50 of copying)" in lines
    assert "parse text 10⁶ text MB/s 2.50 2.25 to 2.75 ≥ 1.5 reached" in lines
    assert "skipped mygrad: not installed" in lines
    assert "skipped gradcli for exp_sin 10⁵ float64: it fell over" in lines
    assert "6 of 9 marks are reached; missed: --help process numpy," in said.replace("\n", " ")


def test_the_table_of_the_page() -> None:
    assert table.page_block([results()]).splitlines()[2:] == [
        "| start to end: `grad` · `--help` · `--version` · `completion` · `graph` on a terminal | "
        "≤ 1.2 · 0.6 `import numpy` | 0.060 |  | `import numpy` 1.10 · **0.70** |  |",
        "| parsing an expression of 1 MB · 10 MB | ≥ 1.5 MB/s |  |  | 2.50 MB/s |  |",
        "| tape: chain and DAG of 30 to 10⁶ operations on 4 numbers | ≤ 0.45 torch | "
        "**0.40 to 0.50** |  |  |  |",
        "| `sum(exp(-x**2)*sin(3*x))`, float64, 10⁵ · 10⁷ | ≤ – · 0.6 torch, ≤ – · 1 JAX | – · 0.47 | "
        "– · **1.20** | numexpr – · 0.30 | – · 1.04 |",
        "| peak memory of the large cases, × (inputs + gradients) | ≤ 1.25 | 7.00 | 2.50 |  | 1.04 |",
        "| blocks equal the tape to the bit, on 1, 2 and 3 threads, run after run | all |  |  | 1 of 1 |  |",
        "",
        "- Abacus, 2 cores, 1 GB, one thread copies 10.0 GB/s; Python 3.11.7, torch 2.13.0; "
        "2026-11-22, commit abc1234. Not installed: mygrad.",
        "",
        "6 of 9 marks are reached.",
    ]


def other() -> Results:
    """Another machine: slower at one thing, without the start of `--help`."""
    found = results()
    found.machine |= {"processor": "Babbage(R) Engine(TM) CPU @ 1 Hz"}
    found.records = [r for r in found.records if r.name != "--help"]
    found.records[-1].measures |= {"torch": measured(0.7, 0.6), "jax": measured(0.9, 1.0)}
    found.records[-1].peaks = {"torch": 6.0, "jax": 3.0}
    return found


def test_the_worse_of_two_machines() -> None:
    found = {r.name + str(r.size): r for r in worse([results(), other()])}
    large = found["exp_sin10000000"]
    assert {n: (m.value, m.met) for n, m in large.measures.items() if n in ("torch", "jax")} == {
        "torch": (0.7, False),
        "jax": (1.2, False),
    }
    assert large.peaks == {"torch": 7.0, "jax": 3.0}
    assert found["text1000000"].measures["MB/s"].met
    # What one machine has not measured is not reached.
    assert found["--help1"].measures["numpy"].met is False


def test_the_table_of_two_machines(capsys: pytest.CaptureFixture[str]) -> None:
    first, second = results(), other()
    first.records[1].measures["numpy"] = measured(0.5, 0.6)
    said = table.page_block([first, second])
    assert "`import numpy` 1.10 · 0.50† |" in said
    assert "| – · **0.70** | – · **1.20** |" in said
    assert "\n- Babbage Engine, 2 cores" in said
    assert "\n5 of 9 marks are reached on all 2 processors.\n" in said
    table.show([first, second])
    lines = {" ".join(line.split()) for line in capsys.readouterr().out.splitlines()}
    assert (
        "large exp_sin 10⁷ float64 torch 0.70 Abacus 0.47, Babbage Engine 0.70 ≤ 0.6 missed"
        in lines
    )


def test_processors_in_short() -> None:
    names = {
        "Intel(R) Xeon(R) Processor": "Intel Xeon",
        "Intel(R) Core(TM) i7-9750H CPU @ 2.60GHz": "Intel Core i7-9750H",
        "AMD EPYC": "AMD EPYC",
        "": "unknown",
    }
    assert {name: short_name(name) for name in names} == names
    assert file_name("Intel(R) Core(TM) i7-9750H CPU @ 2.60GHz") == "intel-core-i7-9750h.json"


def test_files_are_named_for_the_processors_in_them() -> None:
    files = sorted(STORED.glob("*.json"))
    assert [f.name for f in files] == [file_name(r.machine["processor"]) for r in stored(STORED)]
    for one in stored(STORED):
        assert one.machine["date"] and one.machine["commit"]
        assert len({r.key for r in one.records}) == len(one.records)
        assert all(r.commit for r in one.records)


def test_the_pages_show_what_was_measured() -> None:
    """`python -m tests.benchmarks --page` makes it so."""
    machines = stored(STORED)
    page, readme = table.PAGE.read_text(), table.README.read_text()
    assert page == table.between_markers(page, table.page_block(machines))
    assert readme == table.readme_text(readme, machines)


def test_what_is_there_is_not_measured_again() -> None:
    key = ("large", "mlp", 10_000, "float32")
    wanted = Wanted(("large",), ("mlp", "dot"), 10**7, done={key})
    chosen = [(j.name, j.dtype) for j in jobs() if wanted.has(j.group, j.name, j.size, j.dtype)]
    assert chosen == [("2*dot", "float64"), ("mlp", "float64")]
    found = results()
    again = Record("parse", "text", 10**6, "text", {"MB/s": measured(9.0)})
    found.add(again)
    assert found.records[2] is again and len(found.records) == len(results().records)
    assert not list(measure(Wanted(minutes=0, only=("mlp",)), {}))


def test_every_mark_has_a_row_in_the_page() -> None:
    everything = [Record(j.group, j.name, j.size, j.dtype) for j in jobs() if j.marks]
    everything += [Record("cold", name, 1, "process") for name in COMMANDS]
    shown = [r for row in table.ROWS for r in row.records(everything)]
    assert shown and sorted(map(repr, shown)) == sorted(map(repr, everything))


def test_lines_of_the_plot_are_multiples_of_torch() -> None:
    found = plot.lines(results().records[-1:])
    assert found["gradcli"] == {10**7: 0.47}
    assert found["jax"][10**7] == pytest.approx(0.47 / 1.2)


@pytest.mark.long
@pytest.mark.needs("matplotlib")
def test_plots_are_drawn(tmp_path: Path) -> None:
    plot.draw([results()], tmp_path / "plot.svg")
    assert "<svg" in (tmp_path / "plot.svg").read_text()


def test_without_times_of_torch_there_is_no_plot() -> None:
    assert plot.panels(Results({}, []))[0][2] == {}


def test_peers_that_are_not_installed() -> None:
    pythons, versions, missing = find_peers(f"numpy,nothing,torch=/no/python,rich={sys.executable}")
    assert missing == ["nothing", "torch"]
    assert pythons == {"numpy": sys.executable, "rich": sys.executable}
    assert versions["numpy"] == np.__version__


@sweep("name", PROBLEMS, parts=1)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_problems(name: str, dtype: str) -> None:
    """Each is checked against the gradients by hand."""
    work = worker.large("gradcli", name, PROBLEMS[name].small, dtype)
    assert work.least == 2 * work.inputs


def test_the_tape_computes_the_problems() -> None:
    for problem in PROBLEMS.values():
        arrays = problem.inputs(31, "float64")
        value, grads = libraries.tape(problem, arrays)()
        wanted, slopes = problem.by_hand(**arrays)
        assert value == pytest.approx(wanted)
        for n, slope in slopes.items():
            np.testing.assert_allclose(grads[n], slope, atol=1e-12)


def test_what_must_run_is_counted_once() -> None:
    x = np.linspace(0.1, 1, 1000)
    notes, found = limit.noted(
        lambda x: np.exp(x * 2) + np.exp(x * 2.0) + (x * 2).sum() - x.T * x, {"x": x}
    )
    calls = "multiply, exp, multiply, exp, add, add reduce, add, multiply, subtract"
    assert ", ".join(name for name, _, _ in notes.calls) == calls
    wanted = 2 * np.exp(2 * x) + (2 * x).sum() - x * x
    np.testing.assert_array_equal(np.asarray(found), wanted)


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limit, "best", lambda call, **how: 1e-6)
    found = limit.limit("large", "exp_sin", 100_000, "float64")
    assert found.bytes == 1_600_000 and min(found.moving, found.kernels) > 0 == found.products
    kernels = {"square": 1, "negative": 1, "exp": 1, "sin": 1, "cos": 1, "multiply": 6}
    assert found.work == kernels | {"add reduce": 1, "subtract": 1}
    network = limit.limit("large", "mlp", 100, "float32")
    assert network.products > 0 and network.work is not None
    # Forward x@w0, a@w1 and c@w2; back twice as many.
    assert network.work["@"] == pytest.approx(3 * (256 + 256 + 10))
    each = limit.limit("rows", "mlp", 1000, "float64")
    assert each.bytes == 1000 * 8 * (8 + 32 * 8 + 32 + 32) + 8 * (32 * 8 + 32 + 32)
    own = limit.Limit(
        kernels=2.0,
        moving=1.0,
        parts={"loops": 2.5, "memory": 0.6, "calls": 0.02, "threads": 0.0, "fresh": 0.4},
    )
    assert limit.rest_text(own) == "memory 0.30, loops 0.25 (a fresh result: 0.20 more)"
    moved = limit.Limit(moving=2.0, parts={"loops": 0.5, "memory": 2.1, "threads": 0.2})
    assert limit.rest_text(moved) == "loops 0.25, threads 0.10, memory 0.050"
    assert limit.rest_text(limit.Limit(moving=2)) == ""
    assert limit.Limit(moving=2, kernels=1).by == "memory"
    assert limit.Limit(moving=2, kernels=1, products=1.5).seconds == 2.5


@pytest.mark.parametrize(
    "name", [pytest.param("exp_sin", marks=pytest.mark.long), "softmax_cross_entropy"]
)
def test_what_a_row_takes_is_taken_apart(name: str) -> None:
    problem = PROBLEMS[name]
    call = libraries.gradcli(problem, problem.inputs(problem.middle, "float64"))
    found = limit.parts(call)
    assert found.keys() == {"loops", "memory", "calls", "threads", "fresh"}
    assert found["loops"] > found["calls"] > 0


TABLE_WORKS = [name for name, work in growth.WORKS.items() if work.picture == growth.TABLES]


@sweep("name", [name for name in growth.WORKS if name not in TABLE_WORKS], parts=1)
def test_works_of_any_size(name: str) -> None:
    assert growth.WORKS[name].make(300)() is not None


@pytest.mark.needs("pyarrow")
@sweep("name", TABLE_WORKS, parts=1)
def test_tables_of_any_size(name: str) -> None:
    assert "\n" in growth.WORKS[name].make(30)()


@sweep("name", growth.WORKS, parts=1)
def test_what_grows_grows_in_proportion(name: str) -> None:
    """From 10⁴ on no line of docs/growth.svg is steeper than 1, nor flatter than what it measures.

    A table is read in blocks: its memory need not grow with its rows, nor, while the start
    outweighs the rows, its time.
    """
    work = growth.WORKS[name]
    found = [p for p in growth.stored() if p.work == name and p.size >= 1000]
    first, last = found[0 if name in TABLE_WORKS else 1], found[-1]
    assert last.size >= min(work.largest, 1_000_000)
    least = -0.1 if name in TABLE_WORKS else 0.7
    for a, b in ((first.seconds, last.seconds), (first.bytes, last.bytes)):
        assert least < math.log(b / a) / math.log(last.size / first.size) < 1.15


@pytest.mark.long
@pytest.mark.needs("matplotlib")
def test_growth_is_drawn(tmp_path: Path) -> None:
    growth.draw(growth.stored(), tmp_path / "growth.svg")
    assert "<svg" in (tmp_path / "growth.svg").read_text()


@pytest.mark.long
def test_a_point_of_growth() -> None:
    (found,) = growth.points(["parse"], 1000)
    assert (found.work, found.size) == ("parse", 1000) and found.seconds > 0 <= found.bytes


@pytest.mark.parametrize("work", [f"{g}.{s}" for g in ("tape", "replay") for s in small.SHAPES])
def test_small_graphs(work: str) -> None:
    assert small.make("gradcli", work, 30)()[0] == pytest.approx(small.reference(work, 30))


@pytest.mark.parametrize("peer", ["gradcli", pytest.param("lark", marks=pytest.mark.long), "ast"])
def test_parsers_take_the_text(peer: str) -> None:
    call, length = text.make(peer, 2000)
    assert 1900 < length < 2100
    call()


@pytest.mark.long
def test_a_worker() -> None:
    """gradcli and a peer that is not there, from the process to the record."""
    pythons = {"gradcli": sys.executable, "nobody": sys.executable}
    job = Job("large", "exp_sin", 1000, marks={"nobody": 1})
    found = record(job, *interleaved(pythons, ("large", "exp_sin", "1000", "float64"), 1, 1))
    assert "nobody" in found.skipped and "nobody" not in found.measures
    assert found.measures["same bits"].met
    assert found.measures["peak memory"].value > 0


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nonsense"], f"unknown group nonsense: choose from {', '.join(GROUPS)}"),
        (["--from", "/no/file"], "No such file"),
    ],
)
def test_mistakes_are_told_in_a_line(arguments: list[str], said: str) -> None:
    line = [sys.executable, "-m", "tests.benchmarks", *arguments]
    done = subprocess.run(line, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode and said in done.stderr.splitlines()[-1]


def test_formulas_are_told_as_they_come_and_end_with_their_minutes(monkeypatch, capsys) -> None:
    asked: list[tuple[str, str]] = []
    given = SimpleNamespace(stdin=SimpleNamespace(close=lambda: None), wait=lambda: None)
    monkeypatch.setattr(symbolic.subprocess, "Popen", lambda line, **_: given)
    monkeypatch.setattr(
        symbolic, "_asked", lambda process, name: asked.append(name) or [2.0 + len(asked), 7]
    )
    pythons = dict.fromkeys(("gradcli", "sympy", "symengine"), "python")
    found = symbolic.measure(pythons, ["long 50 0", "first 5 0"], 3, minutes=0)
    assert found["symengine"] == {"long 50 0": (4.0, 7)} and "long 50 0" not in found["sympy"]
    assert len(asked) == 4  # one round
    said = capsys.readouterr().err
    assert said.splitlines()[1] == "1/3 first 5 0: gradcli 5.0 ms, sympy 6.0 ms"
    symbolic.measure(pythons, ["long 50 0"], 3, minutes=1)
    assert len(asked) == 4 + 3 * 2

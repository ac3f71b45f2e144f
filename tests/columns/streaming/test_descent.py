"""`run --by-rows`: programs with gradients in them over columns that stay on disk."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from gradcli.cli import main
from gradcli.columns.streaming.lazy_passes import _LazyWork
from gradcli.columns.streaming.passes import Threads
from gradcli.commands.large_columns import Passes
from gradcli.tables.parts import Part

pyarrow = pytest.importorskip("pyarrow")
parquet: Any = pytest.importorskip("pyarrow.parquet")
ROWS = 1000
VALUES = {"a": "1.5", "b": "0.5", "x": "@t.parquet:x", "y": "@t.parquet:y"}

BACKWARD = """
for k in range(STEPS):
    loss = mean((a*x + b - y)**2)
    loss.backward()
    with no_grad():
        a -= 0.1*a.grad
        b -= 0.1*b.grad
    a.grad = None
    b.grad = None
    print(k, f"{loss.item():.9f} {a:.9f} {b:.9f}")
"""
FUNCTIONAL = """
v = 0
for k in range(STEPS):
    loss = mean((a*x + b - y)**2)
    g, = autograd.grad(loss, a)
    v = 0.5*v + g
    a = (a - 0.1*v).detach().requires_grad_()
round(a, decimals=9)
"""
SOFTMAX = """
w = zeros(2, 2, requires_grad=True)
X = stack((x, x**2), 1)
steps = 0
while True:
    loss = nn.functional.cross_entropy(X @ w, where(y > 0, 1, 0)) + 0.01*(w*w).sum()
    g, = autograd.grad(loss, w)
    if g.norm() < 0.2 or steps == STEPS:
        break
    with no_grad():
        w -= 0.5*g
    steps += 1
print(steps, round(w.detach(), decimals=6), f"{loss:.9f}")
"""
TWO_PASSES = """
for k in range(STEPS):
    z = (x - mean(x))/std(x)*a
    loss = logsumexp(z, 0) + b*b
    loss.backward()
print(f"{a.grad:.9f} {b.grad:.9f} {loss:.9f}")
"""
# A program, how many steps it makes, how many passes over the rows those are, and their plans.
PROGRAMS = [
    ("print(x.shape, len(y), f'{mean(x):.9f}'); std(y)", 0, 3, 3),
    ("h = zeros(2); h[1] = x.sum(); print(h); h + rand(2)*0", 0, 1, 1),
    (BACKWARD, 9, 9, 2),
    (FUNCTIONAL, 9, 9, 3),
    (SOFTMAX, 4, None, None),
    (TWO_PASSES, 3, None, None),
]


def run(*argv: str) -> tuple[int, str, str]:
    found = CliRunner().invoke(main, list(argv), prog_name="gradcli")
    assert "fault in gradcli" not in found.stderr, found.stderr
    return found.exit_code, found.stdout, found.stderr


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x = rng.standard_normal(ROWS)
    y = 3 * x + 1 + 0.1 * rng.standard_normal(ROWS)
    parquet.write_table(pyarrow.table({"x": x, "y": y}), "t.parquet", row_group_size=300)
    yield tmp_path


def program(text: str, steps: int) -> list[str]:
    """The command line of a program."""
    Path("p.py").write_text(text.replace("STEPS", str(steps)))
    read = [name for name in "abxy" if re.search(rf"\b{name}\b", text)]
    columns = ",".join(name for name in read if name in "xy")
    return ["run", "p.py", *[f"--{n}={VALUES[n]}" for n in read], "--no-grad", columns]


@pytest.mark.long
@pytest.mark.parametrize(("text", "steps", "passes", "plans"), PROGRAMS)
def test_a_program_prints_what_it_prints_of_columns_in_memory(
    text: str, steps: int, passes: Any, plans: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    argv = program(text, steps)
    expected = run(*argv, "--whole")
    assert expected[0] == 0
    made: list[Any] = []
    as_ever = Passes.run

    def watched(self: Any, work: Any) -> Any:
        made.append(work)
        return as_ever(self, work)

    monkeypatch.setattr(Passes, "run", watched)
    assert run(*argv, "--by-rows") == expected
    if passes is not None:  # nothing that has the rows is a number that is kept, or sent to workers
        assert all(np.asarray(v).size < ROWS for work in made for v in work.given.values())
        counted = [work for work in made if any(work.partition.passes)]
        assert (len(counted), len({id(w) for w in counted})) == (passes, plans)


@pytest.mark.parametrize(
    ("text", "words", "place"),
    [
        ("m = mean(x)\nsort(x)[0].sum()*m", "over the rows: it needs all rows at once", "sort(x)"),
        ("print(mean(x))\nprint(x)", "it needs the numbers of all rows at once", "print(x)"),
        ("x", "it needs the numbers of all rows at once", "x"),
        ("for v in x:\n    print(v)", "it needs all rows at once", "for v in x:"),
        ("x[0]", "it needs all rows at once", "x[0]"),
        ("x += 1\nx.sum()", "writes into memory that has other names", "x += 1"),
        ("l = (a*x).sum()\nl.backward()\nl.backward()", "Trying to backward through the graph", ""),
        ("linalg.inv(stack((x, x), 1).T @ stack((x, x), 1))", "singular", "linalg.inv"),
    ],
)
def test_what_cannot_be_cut_is_refused_where_it_stands(text: str, words: str, place: str) -> None:
    code, _, err = run(*program(text, 0), "--by-rows")
    assert code and words in err and place in err, err


def test_a_table_that_changes_gives_no_number() -> None:
    argv = program("print(mean(x))\nprint(mean(y))", 0)
    changed = pyarrow.table({"x": [1.0], "y": [2.0]})
    as_ever = Passes.run

    def run_and_change(self: Any, work: Any) -> Any:
        found = as_ever(self, work)
        parquet.write_table(changed, "t.parquet")
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Passes, "run", run_and_change)
        code, out, err = run(*argv, "--by-rows")
    assert code == 2 and out.count("\n") == 1 and "t.parquet changed while it was read" in err


@pytest.mark.long
@pytest.mark.needs("distributed")
def test_steps_on_a_running_cluster(scheduler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bits of one process; the plan goes to the workers once."""
    sent: list[Any] = []
    as_ever = _LazyWork.__getstate__

    def watched(self: Any) -> Any:
        sent.append(self)
        return as_ever(self)

    monkeypatch.setattr(_LazyWork, "__getstate__", watched)
    for text, steps, _, plans in PROGRAMS[2:]:
        argv = program(text, steps)
        sent.clear()
        assert run(*argv, "--cluster", scheduler) == run(*argv, "--by-rows")
        if plans is not None:
            assert len({id(work) for work in sent}) <= 2 * plans  # Dask may pickle twice
    argv = ["fit", "y == a*x + b", "t.parquet", "--json"]
    assert run(*argv, "--cluster", scheduler) == run(*argv, "--by-rows")


@pytest.mark.long
@pytest.mark.parametrize(
    "program", ["mean((a*x + b - y)**2) + 0.01*a**4", "var(y - a*x) + (a*b - 1)**2"]
)
def test_minimize_by_rows(program: str) -> None:
    free = [f"--{name}={VALUES[name]}" for name in "abxy"]
    argv = ["minimize", program, *free, "--wrt", "a,b", "--json"]
    whole, rows = (json.loads(run(*argv, how)[1]) for how in ("--whole", "--by-rows"))
    for name in "ab":
        assert np.isclose(whole["point"][name], rows["point"][name], rtol=1e-9)
    assert np.allclose(whole["eigenvalues"], rows["eigenvalues"], rtol=1e-9)
    assert (whole["kind"], whole["iterations"]) == (rows["kind"], rows["iterations"])
    code, _, err = run("minimize", program, *free, "--wrt", "x", "--by-rows")
    assert code == 2 and "x is a column of the table: data is not varied" in err


@pytest.mark.parametrize("seconds", [1.7, 1.9])
def test_threads_are_left_alone_where_they_do_not_help(seconds: float) -> None:
    """Two parts alone take a second, four on two threads so many: less than 1.8 is a help."""
    together = threading.Barrier(
        2, timeout=60
    )  # passed where two parts run at once, and only there
    alone: set[int] = set()

    class Made:
        def combine(self, number: int) -> Any:
            return lambda one, other: one + other

        def run_part(self, number: int, values: Any, part: Any) -> Any:
            if threading.current_thread() is threading.main_thread():
                alone.add(part.number)
            elif part.number < 7:
                together.wait()
            return [part.number]

    runner = Threads(clock=iter([5.0, 6.0, 6.0 + seconds]).__next__)
    runner.threads = 2
    parts: Any = [Part("made", "made", k, 0, 1) for k in range(24)]
    told: list[int] = []
    made: Any = Made()
    assert runner.sums(made, 0, {}, parts, told.append) == list(range(24))
    helps = seconds < 1.8
    assert (runner.threads, sum(told)) == (2 if helps else 1, 24)
    assert alone == {0, 1, 2, *(() if helps else range(7, 24))}

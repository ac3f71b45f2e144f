"""Workers: real ones of Dask's, some of which die. They take seconds to start, so these tests are long."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradcli.columns.streaming import cluster
from gradcli.columns.streaming.row_job import RowJob, Tally
from gradcli.operators.movement import indexing
from gradcli.tables.parts import Parts
from tests.columns.streaming.test_large_columns import append, meanwhile
from tests.commands.running import outcome as run

pytest.importorskip("distributed")
parquet: Any = pytest.importorskip("pyarrow.parquet")
GRADCLI = [sys.executable, "-m", "gradcli"]
LOSS = "mean(sin(a*x + b - y)**2)*norm(x)"
ROWS, GROUP = 60_000, 7_000


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    import pandas as pd

    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.standard_normal(ROWS), "y": rng.standard_normal(ROWS)})
    frame.to_parquet("t.parquet", row_group_size=GROUP)
    frame[:100].to_csv("t.csv", index=False)
    return tmp_path


# -- what needs no workers --------------------------------------------------------------------------
def test_differences_name_what_is_older() -> None:
    ours = cluster.versions()
    assert set(ours) == {"python", "gradcli", "numpy", "pyarrow", "dask", "distributed"}
    assert cluster.differences(ours, dict(ours), "worker w") is None
    theirs = {**ours, "numpy": "1.0", "gradcli": "0.0.1"}
    words = f"worker w has gradcli 0.0.1 instead of {ours['gradcli']}, numpy 1.0 instead of {ours['numpy']}"
    assert cluster.differences(ours, theirs, "worker w") == words


def test_a_job_goes_to_another_process_without_what_it_runs_with() -> None:
    job = RowJob("a*x", {}, ["x", "y"], {"x": [0]}, set(), {"a": np.float64(2)}, ["x"], [1])
    job.counted.bad = 3
    found = pickle.loads(pickle.dumps(job))
    assert found.source == "a*x" and found.tally().bad == 0
    assert found.narrow() == ["x", "y"]
    job.keep = []
    assert job.narrow() == ["x"] and job.columns == {"x": [0]}


def test_tallies_add_up_in_order() -> None:
    total, one, other = Tally(), Tally(), Tally()
    one.bad, one.first_bad, other.bad, other.first_bad = 1, "one", 2, "other"
    for tally in (one, other):
        total.add(tally)
    assert (total.bad, total.first_bad) == (3, "one")


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["map", "x", "t.csv", "--workers", "1"], "none is named"),
        (["map", "x", "t.csv", "--workers", "1", "-o", "o.csv"], "none is named"),
        (["map", "x", "-", "--workers", "1", "-o", "o.parquet"], "can be read only once"),
        (["map", "x", "t.csv", "--workers", "1", "--cluster", "c", "-o", "o.parquet"], "used together"),
        (["eval", "sum(x)", "--x", "1,2", "--workers", "1"], "no variable is a column of a file"),
        (["eval", "sum(x)", "--x", "@t.csv:x", "--cluster", "tcp://127.0.0.1:1"],
         "no scheduler answers at tcp://127.0.0.1:1: Connection refused\nhint: `dask scheduler` starts one"),
        (["eval", "sum(x)", "--x", "@t.csv:x", "--cluster", "127.0.0.1:8786"], "an address begins with tcp://"),
        (["grad", "sum(x)", "--x", "@t.csv:x", "--cluster", ""], "no scheduler answers at"),
        (["map", "x", "t.csv", "--cluster", "tcp://h", "-o", "o.parquet"], "missing port number"),
        (["eval", "sum(x)", "--x", "@t.csv:x", "--cluster", "tcp://h:1", "--whole"], "--whole cannot be"),
    ],
)  # fmt: skip
def test_refusals(argv: list[str], words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_WAIT", 1)
    code, out, err = run(*argv)
    assert code and not out and words in err, err
    assert not Path("o.parquet").exists() and not list(Path().glob(".gradcli-*"))


@pytest.mark.parametrize("primitive", [indexing.gather, indexing.where_of])
def test_a_primitive_goes_to_another_process_by_its_name(primitive: Any) -> None:
    assert pickle.loads(pickle.dumps(primitive)) is primitive
    assert pickle.loads(pickle.dumps(primitive.kernel)) is primitive.kernel


# -- real workers -----------------------------------------------------------------------------------
@pytest.mark.long
def test_the_bits_are_the_same_for_any_number_of_workers() -> None:
    given = ["grad", LOSS, "--x", "@t.parquet:x", "--y", "@t.parquet:y", "--a", "1", "--b", "0.5"]
    given += ["--wrt", "a,b", "--value"]
    alone = run(*given, "--by-rows")
    assert alone[0] == 0 and alone[1].count("\n") == 3
    for count in (1, 2, 3):
        assert run(*given, "--workers", str(count)) == alone


@pytest.mark.long
def test_a_program_of_steps_with_kernels_of_our_own(folder: Path) -> None:
    total = "s = (gather(stack([x, y], 1), 1, (x > 0).long()[:, None])*a).sum()\n"
    (folder / "p.py").write_text(f"{total}s.backward()\nprint(s, a.grad)\n")
    given = ["run", "p.py", "--x", "@t.parquet:x", "--y", "@t.parquet:y", "--a", "2"]
    given += ["--no-grad", "x,y", "--by-rows"]
    alone = run(*given)
    assert alone[0] == 0 and run(*given, "--workers", "1") == alone


@pytest.mark.long
def test_a_running_scheduler(scheduler: str, folder: Path) -> None:
    given = ["--x", "@t.parquet:x", "--y", "@t.parquet:y", "--a", "1", "--b", "0.5"]
    there, here = ["--cluster", scheduler], ["--by-rows"]
    assert run("eval", LOSS, *given, *there) == run("eval", LOSS, *given, *here)
    for how, path in ((there, "there.parquet"), (here, "here.parquet")):
        code, _, err = run("grad", LOSS, *given, *how, "-o", path)
        assert (code, err) == (0, "")
    assert len(list((folder / "there.parquet").iterdir())) == -(-ROWS // GROUP)
    found, expected = (parquet.read_table(p) for p in ("there.parquet", "here.parquet"))
    assert found.equals(expected)
    # float32 and float64 at the same workers
    for dtype in ("float32", "float64"):
        argv = ["eval", "mean(a*x)", "--x", "@t.parquet:x", "--a", "3", "--dtype", dtype]
        assert run(*argv, *there) == run(*argv, *here)


@pytest.mark.long
def test_map_into_a_folder(scheduler: str, folder: Path) -> None:
    there = ["--cluster", scheduler]
    for how, path in ((there, "there.parquet"), ([], "here.parquet")):
        code, _, err = run(
            "map", "a*x**2 + y", "t.parquet", "--a", "2", "--wrt", "x,a", "-o", path, *how
        )
        assert (code, err) == (0, "")
    assert sorted(p.name for p in (folder / "there.parquet").iterdir())[:2] == [
        "part-00000.parquet",
        "part-00001.parquet",
    ]
    assert parquet.read_table("there.parquet").equals(parquet.read_table("here.parquet"))
    assert (
        run("map", "x", "t.parquet", "-o", "there.parquet", *there)[0] == 2
    )  # it is there already

    (folder / "bad.csv").write_text("x,y\n1,2\nq,3\n4,5\n")
    code, out, err = run("map", "x*y", "bad.csv", "-o", "bad.parquet", *there)
    assert (code, out) == (1, "") and "line 3, column x" in err
    assert not (folder / "bad.parquet").exists() and not list(folder.glob(".gradcli-*"))
    code, out, err = run("map", "x*y", "bad.csv", "-o", "bad.parquet", "--bad-rows", "skip", *there)
    assert (
        code == 0
        and "1 bad row left out" in err
        and parquet.read_table("bad.parquet").num_rows == 2
    )
    code, out, err = run("map", "x*rand(1)", "t.csv", "-o", "r.parquet", "--no-grad", "all", *there)
    assert code == 1 and "draws random numbers" in err


def partitioned(folder: Path) -> None:
    """`parted`, a table in folders called KEY=VALUE, as pandas writes it."""
    import pandas as pd

    frame = pd.read_parquet(folder / "t.parquet")[:600]
    frame["site"] = [f"{n // 300} a" for n in range(600)]
    frame["k"] = np.where(np.arange(600) % 300 < 100, 7, 8)
    frame.to_parquet(folder / "parted", partition_cols=["site", "k"])


@pytest.mark.parametrize(
    ("keys", "places"),
    [
        (["site", "k"], [["site=0%20a", "k=7"], ["site=0%20a", "k=8"], ["site=1%20a", "k=7"]]),
        (["k"], [["k=7"], ["k=8"], ["k=7"]]),
        ([], [[], [], []]),
    ],
)
def test_the_folders_of_a_part_are_those_that_tell_a_key(
    folder: Path, keys: list[str], places: list[list[str]]
) -> None:
    partitioned(folder)
    (folder / "site=outside").mkdir()
    (folder / "parted").rename(folder / "site=outside" / "parted")
    found = Parts(str(folder / "site=outside" / "parted")).parts
    assert [part.folders(keys) for part in found[:3]] == places


@pytest.mark.long
def test_map_partitions_as_the_table_is(scheduler: str, folder: Path) -> None:
    import pandas as pd

    partitioned(folder)
    there = ["--cluster", scheduler]
    for keep, how, path in (
        ("all", there, "there"), ("k,x", there, "half"), ("none", there, "flat"), ("all", [], "here.parquet"),
    ):  # fmt: skip
        given = ["--keep-columns", keep, "-o", path, "--format", "parquet"]
        code, _, err = run("map", "x*k - y", "parted", *given, *how)
        assert (code, err) == (0, "")
    names = {
        path: sorted(str(p.relative_to(path)) for p in Path(path).rglob("*.parquet"))
        for path in ("there", "half", "flat")
    }
    assert names == {
        "there": [f"site={a}%20a/k={k}/part-0000{2 * a + k - 7}.parquet" for a in (0, 1) for k in (7, 8)],
        "half": [f"k={k}/part-0000{2 * a + k - 7}.parquet" for k in (7, 8) for a in (0, 1)],
        "flat": [f"part-0000{n}.parquet" for n in range(4)],
    }  # fmt: skip
    one = names["there"][0]
    assert parquet.ParquetFile(Path("there") / one).schema_arrow.names == [
        "x", "y", "value", "x.grad", "k.grad", "y.grad",
    ]  # fmt: skip
    found, expected = pd.read_parquet("there"), pd.read_parquet("here.parquet")
    found = found.astype({"site": str, "k": "int64"})[list(expected)]
    pd.testing.assert_frame_equal(found, expected)


@pytest.mark.long
def test_versions_that_differ_are_refused(scheduler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = cluster.versions()
    monkeypatch.setattr(cluster, "versions", lambda: {**real, "gradcli": "99.0"})

    given = ["eval", "sum(x)", "--x", "@t.parquet:x", "--cluster", scheduler]
    code, out, err = run(*given)
    assert code == 1 and not out
    assert f"has gradcli {real['gradcli']} instead of 99.0" in err


@pytest.mark.long
def test_a_worker_that_is_killed_costs_time_and_no_rows(folder: Path) -> None:
    import pandas as pd
    import psutil

    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"x": rng.standard_normal(1_200_000), "n": np.arange(1_200_000)})
    frame.to_parquet("long.parquet", row_group_size=20_000)
    source = "+".join(f"sin(x*{k})**2" for k in range(40))
    argv = ["map", source, "long.parquet", "--keep-columns", "n"]
    process = subprocess.Popen(
        [*GRADCLI, *argv, "-o", "out.parquet", "--workers", "2"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline and process.poll() is None:
        if len(list(folder.glob(".gradcli-*/*.parquet"))) >= 3:
            break
        time.sleep(0.02)
    assert process.poll() is None and not (folder / "out.parquet").exists()
    children = psutil.Process(process.pid).children(recursive=True)
    workers = [c for c in children if any("spawn_main" in word for word in c.cmdline())]
    assert len(workers) == 2
    os.kill(workers[0].pid, signal.SIGKILL)
    out, err = process.communicate(timeout=300)
    assert (process.returncode, out, err) == (0, "", "")
    assert len(list((folder / "out.parquet").iterdir())) == 60
    found = parquet.read_table("out.parquet")
    assert found["n"].to_pylist() == list(range(1_200_000))
    assert run(*argv, "-o", "one.parquet")[0] == 0
    assert found.equals(parquet.read_table("one.parquet"))
    assert not list(folder.glob(".gradcli-*"))


LOST = [  # (what ends while the parts are done, what is said)
    ("workers", "no worker is left"),
    ("scheduler", "the connection to the scheduler is lost"),
]


@pytest.mark.long
@pytest.mark.parametrize(("ends", "words"), LOST)
def test_a_cluster_that_is_lost_is_said_in_a_line(folder: Path, ends: str, words: str) -> None:
    import pandas as pd

    pd.DataFrame({"x": np.ones(2_000_000)}).to_parquet("long.parquet", row_group_size=20_000)
    source = "+".join(f"sin(x*{k})**2" for k in range(40))
    start = "from distributed.cli.dask_{0} import main; main()"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    argv = {
        "scheduler": ["--host", "127.0.0.1", "--port", str(port), "--no-dashboard"],
        "worker": [address, "--nthreads", "1", "--no-nanny", "--no-dashboard"],
    }
    began = [
        subprocess.Popen(
            [sys.executable, "-c", start.format(name), *given],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for name, given in argv.items()
    ]
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline:  # until the scheduler listens
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            break
        time.sleep(0.1)
    wait = (
        "import gradcli.columns.streaming.cluster as c; c._WAIT = 10; "
        "from gradcli.__main__ import main; main()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", wait, "map", source, "long.parquet", "-o", "out.parquet",
         "--cluster", address],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 100
        while time.monotonic() < deadline and not list(folder.glob(".gradcli-*/*.parquet")):
            time.sleep(0.02)
        began[0 if ends == "scheduler" else 1].kill()
        out, err = process.communicate(timeout=100)
    finally:
        for other in began:
            other.kill()
            other.wait()
    assert (process.returncode, out) == (1, "")
    assert err.startswith(f"gradcli: error: {words}\n") and err.count("\n") == 2, err
    assert not (folder / "out.parquet").exists() and not list(folder.glob(".gradcli-*"))


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_nothing_behind(folder: Path, number: signal.Signals) -> None:
    import pandas as pd

    temporary = folder / "temporary"
    temporary.mkdir()
    pd.DataFrame({"x": np.ones(600_000)}).to_parquet("long.parquet", row_group_size=20_000)
    source = "+".join(f"sin(x*{k})**2" for k in range(40))
    process = subprocess.Popen(
        [*GRADCLI, "map", source, "long.parquet", "-o", "out.parquet", "--workers", "2"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, "TMPDIR": str(temporary)},
    )  # fmt: skip
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline and not list(folder.glob(".gradcli-*/*.parquet")):
        time.sleep(0.02)
    if number == signal.SIGINT:  # a terminal sends it to all of its processes
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    said = "".join(process.communicate(timeout=60))
    assert process.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143}[number]
    assert not said and not list(temporary.iterdir())
    assert not (folder / "out.parquet").exists() and not list(folder.glob(".gradcli-*"))


@pytest.mark.long
@pytest.mark.parametrize("command", ["eval", "map"])
def test_a_file_that_changes_gives_no_number(folder: Path, command: str, scheduler: str) -> None:
    Path("g.csv").write_text("L\n" + "1\n" * 100_000)
    line = ["eval", "mean(L*0+1)", "--L", "@g.csv:L", "--by-rows"]
    if command == "map":
        line = ["map", "L", "g.csv", "-o", "o.parquet"]
    with (
        open("g.csv", "a") as stream,
        meanwhile(lambda: append(stream)),
    ):
        code, out, err = run(*line, "--cluster", scheduler)
    assert code and not out and "g.csv changed while it was read" in err
    assert not Path("o.parquet").exists()

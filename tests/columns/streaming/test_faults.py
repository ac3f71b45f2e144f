"""What goes wrong around a table: memory, disks, files and workers that go away while it is read."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from gradcli.cli import main
from gradcli.commands import output
from gradcli.language.located_errors import LanguageError
from gradcli.tables import TableError
from gradcli.tables.parts import Part, Parts

pyarrow = pytest.importorskip("pyarrow")
parquet: Any = pytest.importorskip("pyarrow.parquet")
GRADCLI = [sys.executable, "-m", "gradcli"]
DASK = pytest.mark.needs("distributed")


def run(*argv: str) -> tuple[int, str, str]:
    found = CliRunner().invoke(main, list(argv), prog_name="gradcli")
    assert "fault in gradcli" not in found.stderr, found.stderr
    return found.exit_code, found.stdout, found.stderr


def spawned(*argv: str, memory: int | None = None) -> tuple[int, str, str]:
    """The same in a process of its own, which gets so many bytes of addresses."""

    def limit() -> None:
        if memory is not None:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

    done = subprocess.run([*GRADCLI, *argv], capture_output=True, text=True, preexec_fn=limit)
    assert "fault in gradcli" not in done.stderr and "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(0).standard_normal(40_000)
    parquet.write_table(pyarrow.table({"x": x}), "t.parquet", row_group_size=10_000)
    return tmp_path


# -- memory -----------------------------------------------------------------------------------------
@pytest.mark.long
def test_a_limit_of_addresses_is_none_of_the_rows() -> None:
    """2 GB of columns in a process of 3 GB of addresses, 1.5 of which Python and its libraries take."""
    group = pyarrow.table({f"x{k}": np.full(1 << 20, float(k)) for k in range(5)})
    with parquet.ParquetWriter("wide.parquet", group.schema) as writer:
        for _ in range(48):
            writer.write_table(group)
    given = ["--X", "@wide.parquet:x*", "--w", "1,2,3,4,5"]
    code, out, err = spawned(
        "eval", "sum(X@w) + (X.T[4]*X[:,1]).sum()", *given, "--by-rows", memory=3 * 10**9
    )
    assert (code, out, err) == (0, f"{(48 << 20) * (40 + 4)}\n", "")
    code, out, err = spawned("eval", "sum(X@w)", *given, "--whole", memory=3 * 10**9)
    assert code and not out and "out of memory" in err and "Parquet file" not in err, err


# -- files ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "argv",
    [
        ["eval", "sum(x)", "--x", "@t.parquet:x", "--by-rows"],
        ["eval", "sum(x)", "--x", "@t.parquet:x", "--whole"],
        ["map", "x", "t.parquet", "-o", "o.csv"],
    ],
)
def test_a_damaged_row_group_is_named_by_its_number(argv: list[str]) -> None:
    at = parquet.read_metadata("t.parquet").row_group(2).column(0).data_page_offset
    data = bytearray(Path("t.parquet").read_bytes())
    data[at + 2 : at + 60] = b"\xff" * 58
    Path("t.parquet").write_bytes(data)
    code, out, err = run(*argv)
    assert code and not out and "t.parquet: row group 3 cannot be read" in err
    assert not Path("o.csv").exists()


def test_a_file_that_is_deleted_is_said_to_be_gone() -> None:
    parts = Parts("t.parquet")
    first = parts.parts[0].batches(["x"])
    next(first)
    os.unlink("t.parquet")
    for part in (first, parts.parts[1].batches(["x"])):
        with pytest.raises(TableError, match=r"t.parquet was deleted while it was read"):
            list(part)


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("a*sort(x)[0].sum()", "it needs all rows at once"),
        ("a*x[3]", "it takes rows by their number"),
        ("outer(x, x).sum()*a", "outer(x, x) cannot be computed"),
        ("2*a if x.sum() > 0 else a", "it looks at the numbers"),
    ],
)
def test_a_refusal_comes_before_anything_is_read(
    program: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*given: Any) -> Any:
        raise AssertionError("it was read")

    monkeypatch.setattr(Part, "batches", never)
    parquet.write_table(pyarrow.table({"x": np.ones(400)}), "few.parquet", row_group_size=100)
    for command in ("eval", "grad"):
        code, out, err = run(command, program, "--x", "@few.parquet:x", "--a", "2", "--by-rows")
        assert code and not out and words in err, err


@pytest.mark.parametrize(
    "program",
    [
        "sum(lgamma(x.abs()+.1))*a",
        "vdot(x, a*x)",
        "nn.functional.kl_div(x, a*x.abs(), reduction='sum')",
    ],
)
def test_what_was_refused_without_a_reason_is_computed(program: str) -> None:
    given = ["grad", program, "--x", "@t.parquet:x", "--a", "2", "--wrt", "a"]
    found = [float(run(*given, how)[1].split(" = ")[1]) for how in ("--by-rows", "--whole")]
    assert np.isclose(*found, rtol=1e-12)


# -- disks ------------------------------------------------------------------------------------------
@contextlib.contextmanager
def small_disk() -> Iterator[Path]:
    """A file system of 256 kB."""
    place = Path("disk").absolute()
    place.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", place], capture_output=True
    ).returncode:
        pytest.skip("only root may mount a file system")
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


@pytest.mark.parametrize("form", ["csv", "parquet", "jsonl", "npy"])
def test_a_full_device_is_named(form: str) -> None:
    code, _, err = run("map", "x", "t.parquet", "-o", "/dev/full", "--format", form)
    assert code == 1 and "cannot write /dev/full: No space left on device" in err


@pytest.mark.long
@pytest.mark.parametrize(
    "argv",
    [
        ["map", "x", "t.parquet", "-o", "disk/o.parquet"],
        [
            "grad",
            "sum(x**2)",
            "--x",
            "@t.parquet:x",
            "--wrt",
            "x",
            "--by-rows",
            "-o",
            "disk/o.parquet",
        ],
        pytest.param(
            ["map", "x", "t.parquet", "-o", "disk/o.parquet", "--workers", "1"], marks=DASK
        ),
        pytest.param(
            "grad sum(x**2) --x @t.parquet:x --wrt x --workers 1 -o disk/o.parquet".split(),
            marks=DASK,
        ),
    ],
)
def test_a_full_disk_keeps_nothing(argv: list[str]) -> None:
    with small_disk() as place:
        code, _, err = spawned(*argv)
        assert code == 1 and "cannot write disk/o.parquet: No space left on device" in err
        assert not list(place.iterdir())


def test_the_slower_of_two_writers_to_a_folder_says_so(folder: Path) -> None:
    with (
        pytest.raises(LanguageError, match=r"folder o: there is something of that name"),
        output.Folder("o"),
    ):
        (folder / "o").mkdir()
        (folder / "o" / "theirs").touch()
    assert sorted(p.name for p in folder.iterdir()) == ["o", "t.parquet"]


# -- workers ----------------------------------------------------------------------------------------
def children(of: int) -> list[int]:
    """The processes below a process."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(path.read_text().rpartition(")")[2].split()[1]) == of:
                found += [int(path.parent.name), *children(int(path.parent.name))]
    return found


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="who started whom is in /proc")
def test_workers_that_are_killed_while_they_start(folder: Path) -> None:
    pytest.importorskip("distributed")
    (folder / "tmp").mkdir()
    process = subprocess.Popen(
        [*GRADCLI, "eval", "sum(x)", "--x", "@t.parquet:x", "--workers", "2"],
        env={**os.environ, "TMPDIR": str(folder / "tmp")},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    killed: set[int] = set()
    end = time.monotonic() + 60
    while len(killed) < 2 and process.poll() is None and time.monotonic() < end:
        for child in children(process.pid):
            with contextlib.suppress(OSError):
                if (
                    child not in killed
                    and b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()
                ):
                    os.kill(child, signal.SIGKILL)
                    killed.add(child)
        time.sleep(0.01)
    out, err = process.communicate(timeout=90)
    assert killed and process.returncode == 1 and not out
    assert "a worker did not start" in err and "fault in gradcli" not in err
    assert not list((folder / "tmp").iterdir())

"""Tables in files of other programs: made by these programs' own writers, read, or refused by name."""

from __future__ import annotations

import gzip
import sqlite3
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.commands.running import outcome as run


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def workbook(path: str) -> None:
    """Two sheets, the first with a title, units and dates, as a spreadsheet program stores them."""
    import datetime

    from openpyxl import Workbook

    book = Workbook()
    sheet = book.active
    sheet.title = "Run 1"
    times = [datetime.datetime(2024, 3, 5, 10, m) for m in (0, 1, 3)]
    for row in ([None, "My run"], [], [None, "t", "U", "when"], [None, "s", "V", None]):
        sheet.append(row)
    for k, time in enumerate(times):
        sheet.append([None, k, 1.5 + 0.1 * k, time])
    other = book.create_sheet("Other")
    for row in (["a", "b"], [1, 2.5], [2, None], [3, 4.5]):
        other.append(row)
    book.create_sheet("Empty")
    book.save(path)


def database(path: str) -> None:
    found = sqlite3.connect(path)
    found.execute("CREATE TABLE runs (t REAL, U REAL, name TEXT)")
    rows = [(0, 1.5, "a"), (1, None, "b"), (2, 0.1 + 0.2, "tab\there")]
    found.executemany("INSERT INTO runs VALUES (?, ?, ?)", rows)
    found.execute('CREATE VIEW "late ones" AS SELECT * FROM runs WHERE t > 0.5')
    found.commit()
    found.close()


def hdf5(path: str) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        group = file.create_group("run1")
        group["t"], group["U"] = np.arange(4.0), np.arange(4.0) ** 2
        file["table"] = np.array([(1, 2.5), (2, 3.5)], dtype=[("n", "i4"), ("x", "f8")])
        file["m"] = np.arange(6.0).reshape(3, 2)


def matlab(path: str) -> None:
    from scipy.io import savemat

    savemat(path, {"t": np.arange(3.0), "U": np.array([[1.5, 2.5, 3.5]]), "name": "abc"})


def matlab_73(path: str) -> None:
    """As MATLAB writes it: HDF5 behind 512 bytes that say so, vectors as rows."""
    import h5py

    with h5py.File(path, "w", userblock_size=512) as file:
        file["t"], file["U"] = np.arange(3.0).reshape(1, 3), np.array([[1.5, 2.5, 3.5]])
    data = bytearray(Path(path).read_bytes())
    data[:128] = b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\0\2IM"
    Path(path).write_bytes(data)


def tdms(path: str) -> None:
    from nptdms import ChannelObject, TdmsWriter

    step = {"wf_increment": 0.5, "wf_start_offset": 0.0}
    with TdmsWriter(path) as file:
        channels = [
            ChannelObject("Run", "U", np.array([1.5, 2.5, 3.5]), properties=step),
            ChannelObject("Run", "I", np.array([1.0, 2.0, 4.0])),
        ]
        file.write_segment(channels)


def ltspice(path: str) -> None:
    from spicelib import RawWrite, Trace

    file = RawWrite(fastacces=False)
    file.add_trace(Trace("time", np.array([0, 0.5, 1.0])))
    file.add_trace(Trace("V(out)", np.array([1.0, 2.0, 4.0])))
    file.save(path)


def netcdf(path: str) -> None:
    from scipy.io import netcdf_file

    with netcdf_file(path, "w") as file:
        file.createDimension("time", 3)
        for name, values in (("time", [0.0, 1, 2]), ("level", [1.5, 2.5, 3.5])):
            file.createVariable(name, "d", ("time",))[:] = values


def fits(path: str) -> None:
    from astropy.table import Table

    Table({"t": [0.0, 1, 2], "flux": [1.5, 2.5, 3.5]}).write(path, format="fits")


def touchstone(path: str) -> None:
    import skrf

    steps = np.array([[[0.5 + 0.25j, 0.1], [0.75j, -0.5]]] * 3) * np.arange(1, 4)[:, None, None]
    frequency = skrf.Frequency(1, 3, 3, "ghz")
    skrf.Network(frequency=frequency, s=steps, z0=50).write_touchstone(path.removesuffix(".s2p"))


def touchstone_of_an_analyser(path: str) -> None:
    """Of four ports, as an Agilent E5071B saves it: decibels and degrees, four lines for a frequency."""
    lines = [
        "!Agilent Technologies,E5071B",
        "!Freq\tS11:SOLT4(ON)\tS12:SOLT4(ON)",
        "# Hz S dB R 75",
    ]
    for k, f in enumerate((500000000, 515000000)):
        for row in range(1, 5):
            cells = "\t".join(f"{-20.0 * (row + k):e}\t{90.0 * port:e}" for port in range(4))
            lines.append(("" if row > 1 else str(f)) + "\t" + cells)
    Path(path).write_text("\n".join([*lines, ""]))


_LVM_HEAD = """LabVIEW Measurement\t
Writer_Version\t2
Reader_Version\t2
Separator\tTab
Decimal_Separator\t,
Multi_Headings\tYes
X_Columns\tNo
Time_Pref\tAbsolute
Date\t2013/02/19
***End_of_Header***\t
"""
_LVM_SEGMENT = """\t
Channels\t2\t\t
Samples\t3\t3\t
X_Dimension\tTime\tTime\t
X0\t0,5000000000000000E+0\t0,5000000000000000E+0\t
Delta_X\t2,500000E-1\t2,500000E-1\t
***End_of_Header***\t\t\t
X_Value\tForce (Trigger)\tResponse\tComment
\t0,914018\t1,2
\t0,537321\t1,5
\t0,616905\t
"""


def labview(path: str) -> None:
    """One segment without X values, with decimal commas, as LabVIEW writes what a trigger started."""
    Path(path).write_text(_LVM_HEAD + _LVM_SEGMENT)


def labview_of_two_segments(path: str) -> None:
    second = _LVM_SEGMENT.replace("0,914018", "7,25")
    Path(path).write_text(_LVM_HEAD + _LVM_SEGMENT + second)


def zipped(path: str) -> None:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("data/scope.csv", "Model,X1\n\nt,U\ns,V\n0,1.5\n1,2.5\n")


def needs(name: str, *modules: str) -> Any:
    return pytest.param(name, marks=[pytest.mark.needs(*modules)] if modules else [])


WRITERS: dict[str, tuple[Callable[[str], None], str, tuple[str, ...]]] = {
    "workbook": (workbook, "f.xlsx", ("openpyxl", "python_calamine")),
    "database": (database, "f.db", ()),
    "hdf5": (hdf5, "f.h5", ("h5py",)),
    "matlab": (matlab, "f.mat", ("scipy",)),
    "matlab_73": (matlab_73, "f73.mat", ("h5py",)),
    "tdms": (tdms, "f.tdms", ("nptdms",)),
    "ltspice": (ltspice, "f.raw", ("spicelib",)),
    "netcdf": (netcdf, "f.nc", ("scipy",)),
    "fits": (fits, "f.fits", ("astropy",)),
    "zip": (zipped, "f.zip", ()),
    "touchstone": (touchstone, "f.s2p", ("skrf",)),
    "analyser": (touchstone_of_an_analyser, "f.S4P", ("skrf",)),
    "lvm": (labview, "f.lvm", ("lvm_read",)),
    "lvm_two": (labview_of_two_segments, "f2.lvm", ("lvm_read",)),
}
# (the file, what follows its name, the numbers)
READ = [
    ("workbook", "Run 1:U", [1.5, 1.6, 1.7]),
    ("workbook", "Run 1:when", [0, 60, 180]),
    ("workbook", "Other:a", [1, 2, 3]),
    ("database", "runs:t", [0, 1, 2]),
    ("database", "late ones:t", [1, 2]),
    ("hdf5", "run1:U", [0, 1, 4, 9]),
    ("hdf5", "table:x", [2.5, 3.5]),
    ("matlab", "U", [1.5, 2.5, 3.5]),
    ("matlab_73", "U", [1.5, 2.5, 3.5]),
    ("tdms", "U", [1.5, 2.5, 3.5]),
    ("tdms", "time", [0, 0.5, 1]),
    ("ltspice", "V(out)", [1, 2, 4]),
    ("netcdf", "level", [1.5, 2.5, 3.5]),
    ("fits", "flux", [1.5, 2.5, 3.5]),
    ("zip", "U", [1.5, 2.5]),
    ("touchstone", "f", [1e9, 2e9, 3e9]),
    ("analyser", "f", [5e8, 5.15e8]),
    ("lvm", "X_Value", [0.5, 0.75, 1]),
    ("lvm", "Force (Trigger)", [0.914018, 0.537321, 0.616905]),
    ("lvm_two", "2:Force (Trigger)", [7.25, 0.537321, 0.616905]),
]


@pytest.mark.parametrize(
    "key, columns, expected",
    [pytest.param(*r, marks=[pytest.mark.needs(m) for m in WRITERS[r[0]][2]]) for r in READ],
)
def test_read_in_memory_by_rows_and_by_map(key: str, columns: str, expected: list[float]) -> None:
    make, name, _ = WRITERS[key]
    make(name)
    code, out, err = run("eval", "1*x", "--x", f"@{name}:{columns}")
    assert code == 0, err
    assert [float(cell) for cell in out.strip("[]\n").split(", ")] == expected
    code, out, err = run("eval", "sum(x)", "--x", f"@{name}:{columns}", "--by-rows")
    assert code == 0 and float(out) == pytest.approx(sum(expected)), err
    table, _, column = columns.rpartition(":")
    path = f"{name}:{table}" if table else name
    code, out, err = run("map", "1*x", path, "--columns", f"x={column}", "--keep-columns", "none")
    assert code == 0, err
    assert [float(line.split(",")[0]) for line in out.split()[1:]] == expected


def test_cells_of_a_database() -> None:
    database("f.db")
    assert run("eval", "x", "--x", "@f.db:runs:U")[0] == 2  # NULL is a missing number
    code, out, _ = run("eval", "x", "--x", "@f.db:runs:U", "--missing", "skip")
    assert (code, out) == (0, "[1.5, 0.30000000000000004]\n")
    code, out, _ = run("map", "t*2", "f.db:runs", "--no-grad", "all", "--keep-columns", "name")
    assert (code, out) == (0, "name,value\na,0\nb,2\ntab here,4\n")
    Path("f.db.gz").write_bytes(gzip.compress(Path("f.db").read_bytes()))
    assert run("eval", "sum(x)", "--x", "@f.db.gz:runs:t")[:2] == (0, "3\n")


def test_one_of_several_tables_is_asked_for() -> None:
    database("f.db")
    for words in ("@f.db:t", "@f.db"):
        code, _, err = run("eval", "x", "--x", words)
        assert code == 2 and "f.db has 2 tables" in err and "late ones, runs" in err, err
    code, _, err = run("eval", "x", "--x", "@f.db:run:t")
    assert code == 2 and "did you mean `runs`?" in err
    code, _, err = run("map", "t", "f.db:runs", "--columns", "t=x")
    assert code == 2 and "there is no column 'x'" in err
    Path("t.csv").write_text("x\n1\n")
    code, _, err = run("map", "x", "t.csv:a")
    assert code == 2 and "this is one table" in err


@pytest.mark.needs("h5py")
def test_a_dataset_by_its_path() -> None:
    hdf5("f.h5")
    for words, expected in (
        ("@f.h5:m", "[[0, 1], [2, 3], [4, 5]]"),
        ("@f.h5:run1/U", "[0, 1, 4, 9]"),
    ):
        assert run("eval", "x", "--x", words)[:2] == (0, expected + "\n")


PARAMETERS = {
    "S": [0.5, 0.25, 0.125, 0.75],
    "Z": [25.0, 12.5, 6.25, 37.5],
    "Y": [0.01, 0.005, 0.0025, 0.015],
    "H": [25.0, 0.25, 0.125, 0.015],
    "G": [0.01, 0.25, 0.125, 37.5],
}


@pytest.mark.needs("skrf")
@pytest.mark.parametrize("letter", PARAMETERS)
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_parameters_of_a_network_are_in_ohm_and_siemens(letter: str, version: str) -> None:
    """Version 1 of the format has them relative to the resistance R, version 2 as they are."""
    row = "1.0  0.5 0  0.25 0  0.125 0  0.75 0\n"
    keywords = f"""[Version] 2.0
# GHZ {letter} RI R 50
[Number of Ports] 2
[Two-Port Data Order] 21_12
[Number of Frequencies] 1
[Reference] 50 50
[Network Data]
{row}[End]
"""
    name, text = {
        "1.0": ("f.s2p", f"! Z of a filter\n# ghz {letter.lower()} ri r 50\n{row}"),
        "2.0": ("f.ts", keywords),
    }[version]
    Path(name).write_text(text)
    expected = PARAMETERS[letter if version == "1.0" else "S"]
    for place, value in zip(("11", "21", "12", "22"), expected, strict=True):
        code, out, err = run("eval", "real(x)", "--x", f"@{name}:{letter}{place}")
        assert (code, out) == (0, f"[{value:g}]\n"), err


@pytest.mark.needs("skrf")
def test_parameters_of_a_network_are_complex() -> None:
    touchstone("f.s2p")
    touchstone_of_an_analyser("f.s4p")
    parts = run("eval", "stack([real(s), imag(s)])", "--s", "@f.s2p:S21")
    assert parts[:2] == (0, "[[0, 0, 0], [0.75, 1.5, 2.25]]\n")
    code, out, err = run("map", "20*log10(abs(S31))", "f.s4p", "--no-grad", "all")
    assert code == 0 and [float(row.split(",")[-1]) for row in out.split()[1:]] == pytest.approx(
        [-60, -80], rel=1e-12
    ), err
    code, out, err = run("fit", "S11 == a*f", "f.s2p", "--missing", "error", "--json")
    assert code == 0, err


def test_a_text_is_read_as_one_where_that_is_asked_for() -> None:
    """Numbers of a Touchstone file by their places, without the library that knows what they mean."""
    lines = "! an analyser\n# GHz S RI R 50\n1.0 0.5 0.25 0 0 0 0 1 0\n1.1 0.75 0 0 0 0 0 1 0\n"
    Path("f.s2p").write_text(lines)
    assert run("eval", "1*x", "--x", "@f.s2p:2", "--comment", "!#")[:2] == (0, "[0.5, 0.75]\n")
    Path("f.ts").write_text("a,b\n1,2\n3,4\n")  # what is called so is not always Touchstone
    assert run("eval", "1*b", "--b", "@f.ts:b")[:2] == (0, "[2, 4]\n")


def test_segments_of_labview_are_not_taken_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    labview("f.lvm")
    labview_of_two_segments("f2.lvm")
    monkeypatch.setitem(sys.modules, "lvm_read", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    code, out, err = run("eval", "1*x", "--x", "@f.lvm:Force (Trigger)")  # as the text that it is
    assert (code, out) == (0, "[0.914018, 0.537321, 0.616905]\n"), err
    code, _, err = run("eval", "1*x", "--x", "@f2.lvm:Force (Trigger)")
    assert code == 2 and "a LabVIEW file of several segments, which needs lvm-read" in err, err


@pytest.mark.needs("lvm_read")
def test_a_segment_is_asked_for_and_an_empty_cell_is_missing() -> None:
    labview_of_two_segments("f2.lvm")
    code, _, err = run("eval", "1*x", "--x", "@f2.lvm:Response")
    assert code == 2 and "f2.lvm has 2 tables" in err, err
    assert run("eval", "1*x", "--x", "@f2.lvm:1:Response")[0] == 2
    line = ["eval", "1*x", "--x", "@f2.lvm:1:Response", "--missing", "skip"]
    assert run(*line)[:2] == (0, "[1.2, 1.5]\n")


REFUSED = [
    (b"%PDF-1.7\n", "a PDF"),
    (b"<?xml version='1.0'?><VOTABLE/>", "XML"),
    (b"\xef\xbb\xbf<?xml version='1.0'?>", "XML"),
    (b"<!DOCTYPE HTML><html>", "a web page"),
    (b"<HTML><body>", "a web page"),
    (b"version https://git-lfs.github.com/spec/v1\n", "a pointer of Git LFS"),
    (b"##TITLE= spectrum\n", "a JCAMP-DX file"),
    (b"RDX3\nX\n", "an R workspace"),
    (b"\x89PNG\r\n\x1a\n", "a picture"),
    (b"CPYA 4.3318\n", "an Origin project"),
    (b"SQLite format 3\x00" + bytes(100), "an SQLite database that cannot be read"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "a workbook"),
    (b"\x89HDF\r\n\x1a\n" + bytes(100), "an HDF5 file"),
    (b"MATLAB 5.0 MAT-file" + bytes(120), "a MATLAB file"),
    (b"TDSm" + bytes(100), "a LabVIEW TDMS file"),
]


@pytest.mark.parametrize("data, what", REFUSED, ids=[what for _, what in REFUSED])
def test_refused_by_what_it_is(data: bytes, what: str) -> None:
    Path("f.csv").write_bytes(data)
    for line in (
        ["eval", "x", "--x", "@f.csv:x"],
        ["map", "x", "f.csv"],
        ["fit", "y == a*x", "f.csv"],
    ):
        code, _, err = run(*line)
        assert code in (1, 2) and what in err and "UTF-8" not in err, err


LIBRARIES = [
    (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600),
        "python_calamine",
        "pip install python-calamine",
    ),
    (b"\x89HDF\r\n\x1a\n" + bytes(100), "h5py", "an HDF5 file, which needs h5py"),
    (b"MATLAB 7.3 MAT-file" + bytes(120), "h5py", "a MATLAB 7.3 file, which needs h5py"),
    (b"MATLAB 5.0 MAT-file" + bytes(120), "scipy", "pip install scipy"),
    (b"TDSm" + bytes(100), "nptdms", "pip install nptdms"),
    ("Title: * a.asc\n".encode("utf-16-le"), "spicelib", "pip install spicelib"),
    (b"SIMPLE  =                    T", "astropy", "a FITS file, which needs astropy"),
    (b"# GHz S RI R 50\n1.0 0.5 0.25\n", "skrf", "a Touchstone file, which needs scikit-rf"),
]


@pytest.mark.parametrize("data, module, words", LIBRARIES, ids=[row[2] for row in LIBRARIES])
def test_the_library_that_is_missing_is_named(
    data: bytes, module: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [n for n in sys.modules if n.partition(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    file = "f.s1p" if module == "skrf" else "f.dat"
    Path(file).write_bytes(data)
    code, _, err = run("eval", "x", "--x", f"@{file}:x")
    assert code == 2 and words in err, err

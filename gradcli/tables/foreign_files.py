"""Tables in files of other programs, each by its own library: workbooks, databases, HDF5, MATLAB, LabVIEW.

What such a file holds is unpacked into a form that is read anyway: cells of a sheet or of a database into
lines of text with tabs, whose layout is told as that of any text; arrays into NumPy's format. A file with
several tables is asked for one, as `FILE:TABLE`. The first bytes tell what a file is; the ending does where
the format is a text without a mark of its own (Touchstone).
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from gradcli.tables import counted_texts, framed_texts, marked_texts
from gradcli.tables.even_numbers import Even
from gradcli.tables.marked_texts import Cells, Marked
from gradcli.tables.reading_options import LOOKED_AT
from gradcli.tables.table_errors import TableError, counted, listed

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

Unpacked = tuple[BinaryIO, str]  # a stream, and the kind of what it holds


class Found(NamedTuple):
    """The tables of a file. read: unpacks the one of that name. told: what is worth saying of it."""

    names: Sequence[str]
    read: Callable[[str], Unpacked]
    told: Callable[[str], str] = lambda _: ""


class Format(NamedTuple):
    """what: the file is, in words. package: what reads it; "" where Python does. open: finds its tables.

    instead: what can be done without the package.
    """

    what: str
    package: str
    open: Callable[[Any, str], Found]
    instead: str = ""


# -- what they are unpacked into ------------------------------------------------------------------
class _Pieces(io.RawIOBase):
    """A stream of pieces of bytes that are made as they are read."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        super().__init__()
        self.pieces, self.rest = pieces, b""

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer."""
        while not self.rest:
            piece = next(self.pieces, None)
            if piece is None:
                return 0
            self.rest = piece
        taken, self.rest = self.rest[: len(buffer)], self.rest[len(buffer) :]
        buffer[: len(taken)] = taken
        return len(taken)


def _as_text(rows: Iterable[Sequence[Any]]) -> Unpacked:
    """Rows of cells as lines with tabs between the cells."""

    def lines() -> Iterator[bytes]:
        waiting: list[str] = []
        for row in rows:
            waiting.append("\t".join(map(_cell, row)) + "\n")
            if len(waiting) == 1000:
                yield "".join(waiting).encode()
                waiting = []
        yield "".join(waiting).encode()

    return io.BufferedReader(_Pieces(lines())), "tsv"


def _cell(value: Any) -> str:
    """A cell as text that is read as what it is: a number with all its digits, a time as ISO 8601 has it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    if hasattr(value, "isoformat"):
        text: str = value.isoformat()
        return text.removesuffix("T00:00:00")
    if hasattr(value, "total_seconds"):
        return repr(value.total_seconds())
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    words = " ".join(str(value).split())
    return f'"{words}"' if words[:1] == '"' else words


def _as_arrays(columns: dict[str, Any], name: str) -> Unpacked:
    """Columns of equal length as a structured array, another array as it is, in NumPy's format."""
    import numpy as np

    arrays = {n: np.asarray(a) for n, a in columns.items()}
    if set(arrays) == {""}:
        made = arrays[""]
    else:
        lengths = {n: len(a) for n, a in arrays.items()}
        if len(set(lengths.values())) > 1:
            shown = ", ".join(f"{n}: {count}" for n, count in lengths.items())
            raise TableError(f"{name}: its columns are not of equal length", hint=shown)
        made = np.empty(len(next(iter(arrays.values()))), [(n, a.dtype) for n, a in arrays.items()])
        for n, array in arrays.items():
            made[n] = array
    if made.dtype.hasobject:
        raise TableError(f"{name}: holds objects, not numbers")
    stream = io.BytesIO()
    np.save(stream, made, allow_pickle=False)
    stream.seek(0)
    return io.BufferedReader(stream), "npy"


def _is_column(array: Any) -> bool:
    return array.ndim == 1 and array.dtype.kind in "biufc"


# -- one format after the other -------------------------------------------------------------------
def _workbook(source: Any, name: str) -> Found:
    import python_calamine as calamine

    book = calamine.CalamineWorkbook.from_object(source)

    def rows(sheet: str) -> list[list[Any]]:
        cells: list[list[Any]] = book.get_sheet_by_name(sheet).to_python(skip_empty_area=False)
        before = min((_empty(row) for row in cells if any(c != "" for c in row)), default=0)
        return [row[before:] for row in cells]

    def _empty(row: list[Any]) -> int:
        return next(k for k, cell in enumerate(row) if cell != "")

    names = [n for n in book.sheet_names if rows(n)]
    return Found(names, lambda sheet: _as_text(rows(sheet)))


def _sqlite(source: Any, name: str) -> Found:
    import sqlite3
    from urllib.parse import quote

    if isinstance(source, str):
        opened = sqlite3.connect(f"file:{quote(source)}?mode=ro", uri=True)
    else:
        opened = sqlite3.connect(":memory:")
        opened.deserialize(source.read())
    found = opened.execute(
        "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"
    )
    names = [row[0] for row in found if not row[0].startswith("sqlite_")]

    def rows(table: str) -> Iterator[Sequence[Any]]:
        quoted = '"' + table.replace('"', '""') + '"'
        asked = opened.execute(f"SELECT * FROM {quoted}")
        yield [column[0] for column in asked.description]
        yield from asked

    return Found(names, lambda table: _as_text(rows(table)))


def _hdf5(source: Any, name: str) -> Found:
    import h5py

    file = h5py.File(source, "r")
    tables: list[str] = []

    def look(path: str, item: Any) -> None:
        if isinstance(item, h5py.Group):
            if any(
                isinstance(v, h5py.Dataset) and v.ndim == 1 and not v.dtype.names
                for v in item.values()
            ):
                tables.append(path)
        elif item.dtype.names or item.ndim > 1:
            tables.append(path)

    look("", file)
    file.visititems(look)

    def read(path: str) -> Unpacked:
        item = file[path] if path else file
        if isinstance(item, h5py.Dataset):
            return _as_arrays({"": item[()]}, name)
        columns = {n: v for n, v in item.items() if isinstance(v, h5py.Dataset)}
        arrays = {n: v[()] for n, v in columns.items() if v.ndim == 1}
        return _as_arrays({n: a for n, a in arrays.items() if _is_column(a)}, name)

    class Paths(list[str]):
        def __contains__(self, path: object) -> bool:
            return isinstance(path, str) and (path in ("", "/") or path in file)

    return Found(Paths(tables), read)


def _matlab(source: Any, name: str) -> Found:
    from scipy import io as scipy_io

    found = scipy_io.loadmat(source, squeeze_me=True)
    return _variables({n: v for n, v in found.items() if n[:2] != "__"}, name)


def _matlab_73(source: Any, name: str) -> Found:
    """Of version 7.3, which is HDF5."""
    import h5py

    file = h5py.File(source, "r")
    found = {n: v[()].T.squeeze() for n, v in file.items() if isinstance(v, h5py.Dataset)}
    return _variables(found, name)


def _variables(found: dict[str, Any], name: str) -> Found:
    """Variables of a workspace: vectors of equal length are a table, a matrix is one by itself."""
    import numpy as np

    arrays = {n: np.asarray(v) for n, v in found.items()}
    vectors = {n: a for n, a in arrays.items() if _is_column(a) and a.size > 1}
    others = [n for n, a in arrays.items() if a.ndim == 2 and a.dtype.kind in "biufc" and a.size]
    lengths = {len(a) for a in vectors.values()}
    names = [*([""] if len(lengths) == 1 else vectors), *others]

    def read(wanted: str) -> Unpacked:
        return _as_arrays(vectors if not wanted else {"": arrays[wanted]}, name)

    return Found(names, read)


def _tdms(source: Any, name: str) -> Found:
    from nptdms import TdmsFile

    file = TdmsFile.read(source)

    def read(group: str) -> Unpacked:
        channels = file[group].channels()
        columns = {c.name: c[:] for c in channels if c.dtype is not None and len(c)}
        first = next(iter(channels), None)
        if first is not None and first.properties.get("wf_increment") and "time" not in columns:
            columns = {"time": first.time_track(), **columns}
        return _as_arrays({n: a for n, a in columns.items() if _is_column(a)}, name)

    return Found([group.name for group in file.groups()], read)


def _lvm(source: Any, name: str) -> Found:
    """LabVIEW's text file of several segments, or without a column of times.

    Cells that have no number are left empty. A segment without X values gets them from X0 and Delta_X.
    """
    import lvm_read
    import numpy as np

    text = _lvm_text(source)
    file = lvm_read.read_str(text)

    def rows(segment: dict[str, Any]) -> Iterator[list[Any]]:
        names, data = list(segment["Channel names"]), segment["data"]
        if names[-1:] == ["Comment"]:
            names, data = names[:-1], data[:, : len(names) - 1]
        if len(data) and np.isnan(data).all(axis=0).any() and not _has_empty(segment):
            raise TableError(
                f"{name}: has cells that are not numbers by its Decimal_Separator",
                hint="--separator tab reads it as text",
            )
        times: list[Any] = []
        if "X_Value" not in names:
            names = ["X_Value", *names]
            at = Even(segment["X0"][0], segment["Delta_X"][0])
            times = [at(k) for k in range(len(data))]
        yield _told_apart(names)
        for k, row in enumerate(data.tolist()):
            cells = [None if cell != cell else cell for cell in row]
            yield [*times[k : k + 1], *cells]

    segments = [file[k] for k in range(file["Segments"])]
    names = [str(k) for k in range(1, len(segments) + 1)]
    return Found(names, lambda number: _as_text(rows(segments[int(number) - 1])))


def _has_empty(segment: dict[str, Any]) -> bool:
    return not all(segment.get("Samples") or [0])


def _told_apart(names: Sequence[str]) -> list[str]:
    """Names of which none stands twice: the second X_Value is `X_Value 2`."""
    found: list[str] = []
    for name in names:
        count = sum(1 for other in names[: len(found)] if other == name)
        found.append(f"{name} {count + 1}" if count else name)
    return found


def _lvm_text(source: Any) -> str:
    if isinstance(source, str):
        with open(source, "rb") as stream:
            data = stream.read()
    else:
        data = source.read()
    try:
        return str(data, "utf-8-sig")
    except UnicodeDecodeError:
        return str(data, "latin-1")


_TOUCHSTONE_OPTION = re.compile(r"(?im)^([ \t]*#[^!\n]*?)\b([SYZGH])\b")


def _ohms(letter: str, i: int, j: int) -> tuple[bool, bool]:
    """Whether a parameter is in ohm, and whether in siemens: the ratios h21 and g12 are in neither."""
    if letter in "HG":
        return i == j == "HG".index(letter), i == j == "GH".index(letter)
    return letter == "Z", letter == "Y"


def _touchstone(source: Any, name: str) -> Found:
    """A network: the frequency f in Hz, and S11, S21, … as complex numbers; its noise if the file has it.

    Z is in ohm and Y in siemens, also where the file has them relative to its resistance.
    """
    import warnings

    import numpy as np
    from skrf.io.touchstone import Touchstone

    with open(source, "rb") if isinstance(source, str) else source as stream:
        written = str(stream.read(), "latin-1")
    # scikit-rf 2.2 makes S of other parameters, and takes all as divided by the resistance, which holds for Z
    # alone: it is told S, so that the numbers are those of the file, and the resistance is put in here.
    option = _TOUCHSTONE_OPTION.search(written)
    letter = option[2].upper() if option else "S"
    if option:
        written = f"{written[: option.start(2)]}S{written[option.end(2) :]}"
    text = io.StringIO(written)
    # its ending tells how many ports there are
    text.name = re.sub(r"(?i)(\.s\d{1,3}p|\.ts)\.\w+$", r"\1", name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        file = Touchstone(text)
    ports = file.s.shape[1]
    relative = letter != "S" and file.version == "1.0"
    resistances = np.unique(np.real(file.resistance)) if relative else np.ones(1)
    if len(resistances) > 1:
        raise TableError(f"{name}: {letter} of ports with several resistances is not read")
    resistance = float(resistances[0])
    mark = "" if ports < 10 else "_"
    order = [(i, j) for i in range(ports) for j in range(ports)]
    if ports == 2:
        order = [(0, 0), (1, 0), (0, 1), (1, 1)]  # as the file has them
    network = {"f": file.f}
    for i, j in order:
        times, over = _ohms(letter, i, j)
        values = file.s[:, i, j]
        values = values * resistance if times else values / resistance if over else values
        network[f"{letter}{i + 1}{mark}{j + 1}"] = values
    tables = {"network": network}
    if file.noise is not None:
        f, least, size, angle, resistance = file.noise.T
        best = size * np.exp(1j * np.deg2rad(angle))
        tables["noise"] = {"f": f, "NFmin_dB": least, "Gopt": best, "Rn": resistance}
    return Found(list(tables), lambda table: _as_arrays(tables[table], name))


def _ltspice(source: Any, name: str) -> Found:
    from spicelib import RawRead

    file = RawRead(source, verbose=False)
    steps = [str(k + 1) for k in range(len(file.get_steps()))]

    def read(step: str) -> Unpacked:
        names = file.get_trace_names()
        return _as_arrays({n: file.get_wave(n, int(step) - 1) for n in names}, name)

    return Found(steps, read)


def _fits(source: Any, name: str) -> Found:
    from astropy.io import fits

    file = fits.open(source)
    tables = {
        h.name or str(k): h
        for k, h in enumerate(file)
        if isinstance(h, fits.BinTableHDU | fits.TableHDU)
    }

    def read(table: str) -> Unpacked:
        data = tables[table].data
        columns = {n: data[n] for n in data.names}
        native = {n: a.astype(a.dtype.newbyteorder("=")) for n, a in columns.items()}
        return _as_arrays({n: a for n, a in native.items() if _is_column(a)}, name)

    return Found(list(tables), read)


def _netcdf(source: Any, name: str) -> Found:
    from scipy.io import netcdf_file

    with netcdf_file(source, mmap=False) as file:
        found = {n: v[:].copy() for n, v in file.variables.items() if v.dimensions}
    return _variables({n: a.astype(a.dtype.newbyteorder("=")) for n, a in found.items()}, name)


_NO_TABLES = frozenset(
    (
        *(".xml", ".rels", ".html", ".htm", ".pdf", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".md"),
        *(".py", ".r", ".m", ".ipynb", ".docx", ".pptx", ".exe", ".dll", ".so"),
    )
)
_EXPORT = "export it as CSV or text where it was made"


def _zip(source: Any, name: str) -> Found:
    import zipfile

    file = zipfile.ZipFile(source)
    there = [i.filename for i in file.infolist() if not i.is_dir() and "__MACOSX" not in i.filename]
    endings = {os.path.splitext(n.lower())[1] for n in there}
    names = [n for n in there if os.path.splitext(n.lower())[1] not in _NO_TABLES]
    told = any(n.lower().endswith((".csv", ".tsv")) for n in names)
    if there and (not names or (len(names) < len(there) and ".xml" in endings and not told)):
        raise TableError(f"{name}: a zip archive without a table: {listed(there)}", hint=_EXPORT)

    def read(member: str) -> Unpacked:
        ending = os.path.splitext(member.lower())[1]
        return file.open(member), {".csv": "csv", ".tsv": "tsv"}.get(ending, "")  # type: ignore[return-value]

    return Found(names, read)


def _marked(read_text: Callable[[str, str], dict[str, Marked]]) -> Callable[[Any, str], Found]:
    """What opens a text whose marks say what its tables are."""

    def opened(source: Any, name: str) -> Found:
        tables = read_text(_lvm_text(source).replace("\r\n", "\n"), name)

        def rows(table: str) -> Iterator[Cells]:
            names = tables[table].names
            if names is not None:
                yield _told_apart(names)
            if tables[table].units:
                yield tables[table].units
            yield from tables[table].rows()

        return Found(
            list(tables), lambda table: _as_text(rows(table)), lambda table: tables[table].told
        )

    return opened


def _framed(source: Any, name: str) -> Found:
    """A table in a frame, whose lines keep their numbers."""
    lines = _lvm_text(source).splitlines()
    return Found([""], lambda _: _as_text(framed_texts.unframed(lines)))


FORMATS = {
    "spec": Format("a file of SPEC", "", _marked(marked_texts.spec)),
    "seabird": Format("a file of Sea-Bird", "", _marked(marked_texts.seabird)),
    "jcamp": Format("a JCAMP-DX file", "", _marked(marked_texts.jcamp)),
    "rigol": Format("a file of Rigol's", "", _marked(counted_texts.rigol)),
    "ortec": Format("a spectrum of ORTEC's", "", _marked(counted_texts.ortec)),
    "amptek": Format("a spectrum of Amptek's", "", _marked(counted_texts.amptek)),
    "xrdml": Format("an XRDML file", "", _marked(counted_texts.xrdml)),
    "framed": Format("a table in a frame", "", _framed),
    "workbook": Format("a workbook", "python-calamine", _workbook),
    "sqlite": Format("an SQLite database", "", _sqlite),
    "hdf5": Format("an HDF5 file", "h5py", _hdf5),
    "matlab": Format("a MATLAB file", "scipy", _matlab),
    "matlab 7.3": Format("a MATLAB 7.3 file", "h5py", _matlab_73),
    "tdms": Format("a LabVIEW TDMS file", "nptdms", _tdms),
    "ltspice": Format("a raw file of LTspice", "spicelib", _ltspice),
    "fits": Format("a FITS file", "astropy", _fits),
    "netcdf": Format("a netCDF file", "scipy", _netcdf),
    "zip": Format("a zip archive", "", _zip),
    "lvm": Format("a LabVIEW file of several segments", "lvm-read", _lvm),
    "touchstone": Format(
        "a Touchstone file", "scikit-rf", _touchstone, "--comment '!#' reads its lines as text"
    ),
}
# Files of which no library is taken, by their first bytes: what they are, and the way on.
_REFUSED: tuple[tuple[bytes, str, str], ...] = (
    (b"%PDF", "a PDF", "copy its table into a text file"),
    (b"<?xml", "XML", _EXPORT),
    (b"<!doctype", "a web page", "the file may stand behind a link or a login of that page"),
    (b"<html", "a web page", "the file may stand behind a link or a login of that page"),
    (b"version https://git-lfs", "a pointer of Git LFS", "git lfs pull fetches the file"),
    (b"RDX", "an R workspace", _EXPORT),
    (b"X\n\x00\x00", "an RDS file of R", _EXPORT),
    (b"<stata_dta>", "a Stata file", _EXPORT),
    (b"$FL2", "an SPSS file", _EXPORT),
    (b"CPYA", "an Origin project", _EXPORT),
    (b"\x89PNG", "a picture", "gradcli needs a table"),
    (b"\xff\xd8\xff", "a picture", "gradcli needs a table"),
    (b"Obj\x01", "an Avro file", "convert it to Parquet"),
    (b"ORC", "an ORC file", "convert it to Parquet"),
    (b"7z\xbc\xaf", "a 7z archive", "unpack it"),
    (b"Rar!", "a rar archive", "unpack it"),
)
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def kind_of(head: bytes) -> str:
    """The key of FORMATS for what begins so; "" for what is none of them."""
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return "zip"
    if head.startswith(_OLE):
        return "workbook"
    if head.startswith((b"#F ", b"#S ")) and re.search(rb"^#[SEDC] ", head[3:], re.M):
        return "spec"
    if head.startswith(b"* Sea-Bird "):
        return "seabird"
    if head.startswith(b"$") and re.match(rb"\$[A-Z_]+:\s", head):
        return "ortec"
    if head.startswith(b"<<PMCA SPECTRUM>>"):
        return "amptek"
    if re.search(rb"<xrdMeasurements\b", head):
        return "xrdml"
    text = str(head, "utf-8", "ignore").replace("\r\n", "\n")
    if counted_texts.RIGOL.match(text) or counted_texts.RIGOL_NEW.match(text):
        return "rigol"
    if framed_texts.separator_of(text):
        return "framed"
    if re.match(rb"\s*##TITLE\s*=", head):
        return "jcamp"
    if head.startswith(b"SQLite format 3\x00"):
        return "sqlite"
    if head.startswith(b"MATLAB "):
        return "matlab 7.3" if head.startswith(b"MATLAB 7.3") else "matlab"
    if head.startswith(b"\x89HDF\r\n\x1a\n"):
        return "hdf5"
    if head.startswith(b"TDSm"):
        return "tdms"
    if head.startswith(b"SIMPLE  ="):
        return "fits"
    if head.startswith((b"CDF\x01", b"CDF\x02")):
        return "netcdf"
    if head.startswith("Title:".encode("utf-16-le")) or head.startswith(b"Title: * "):
        return "ltspice"
    if head.startswith((b"LabVIEW Measurement", b"\xef\xbb\xbfLabVIEW Measurement")):
        # One segment with a column of X values is a text as others are.
        return "lvm" if re.search(rb"Multi_Headings\W+Yes|X_Columns\W+No", head) else ""
    return ""


def refuse(head: bytes, name: str) -> None:
    """Raise TableError for what begins as a file that nobody reads here."""
    bare = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    for magic, what, hint in _REFUSED:
        if bare.startswith(magic) or (magic[:1] == b"<" and bare.lower().startswith(magic)):
            raise TableError(f"{name}: {what}", hint=hint)


def settled(kind: str, source: Any, name: str) -> str:
    """A kind that the first bytes leave open; "" for a text that needs no library."""
    if kind == "zip":
        return _in_zip(source, name)
    return _in_lvm(source) if kind == "lvm" else kind


def _in_lvm(source: Any) -> str:
    from importlib.util import find_spec

    text = _lvm_text(source)
    if not isinstance(source, str):
        source.seek(0)
    several = len(re.findall(r"^X_Value\b", text, re.MULTILINE)) > 1
    if not several and (
        find_spec("lvm_read") is None or not re.search(r"^X_Columns\W+No", text, re.M)
    ):
        return ""
    return "lvm"


def _in_zip(source: Any, name: str) -> str:
    """What a zip archive is: a workbook, NumPy's archive ("npz"), or an archive of files ("zip")."""
    import zipfile

    try:
        names = zipfile.ZipFile(source).namelist()
    except Exception:  # of whatever class: who reads it says what is wrong with it
        ending = os.path.splitext(name.lower())[1]
        return {".zip": "zip", ".xlsx": "workbook", ".xlsm": "workbook", ".ods": "workbook"}.get(
            ending, "npz"
        )
    finally:
        if not isinstance(source, str):
            source.seek(0)
    if "[Content_Types].xml" in names or "mimetype" in names or "Index/Document.iwa" in names:
        return "workbook"
    return "npz" if all(n.endswith(".npy") for n in names) else "zip"


def unpacked(
    kind: str, source: Any, name: str, wanted: str | None, tell: Callable[[str], Any] = str
) -> Unpacked:
    """A table of a file. source: its path, or a stream of all its bytes. wanted: the table's name.

    tell: takes what is worth saying.

    Raises TableError where a library is missing, the file is broken, or one of several tables must be named.
    """
    found = _found(kind, source, name)
    if wanted is None:
        if len(found.names) != 1:
            hint = "no sheet, group or variable of it has numbers in columns"
            if found.names:
                where = (
                    f"`{name}"
                    if isinstance(source, str)
                    else "it can be written into a file: `FILE"
                )
                hint = f"{where}:TABLE:COLUMN`, with TABLE one of {listed(found.names)}"
            raise TableError(f"{name} has {counted(len(found.names), 'table')}", hint=hint)
        wanted = found.names[0]
    elif wanted not in found.names:
        raise TableError(
            f"{name}: there is no table {wanted!r}",
            hint=f"there is {listed(found.names)}",
            wrong=wanted,
            known=tuple(found.names),
        )
    one = wanted
    if words := found.told(one):
        tell(words)
    read: Unpacked = _guarded(kind, name, lambda: found.read(one))
    return read


def _found(kind: str, source: Any, name: str) -> Found:
    found: Found = _guarded(kind, name, lambda: FORMATS[kind].open(source, name))
    return found


def _guarded(kind: str, name: str, run: Callable[[], Any]) -> Any:
    """What a library does, with its errors as ours."""
    form = FORMATS[kind]
    try:
        return run()
    except ImportError as error:
        if form.package and (error.name or "").partition(".")[0] in _MODULES[kind]:
            words = f"{name}: {form.what}, which needs {form.package}"
            hint = f"pip install {form.package}" + (f"; {form.instead}" if form.instead else "")
            raise TableError(words, hint=hint) from None
        raise
    except (TableError, MemoryError, KeyboardInterrupt):
        raise
    except Exception as error:  # a library's own, of whatever class
        words = " ".join(str(error).split())[:100]
        raise TableError(f"{name}: {form.what} that cannot be read ({words})") from None


_MODULES = {
    "workbook": ("python_calamine",),
    "hdf5": ("h5py",),
    "matlab": ("scipy",),
    "matlab 7.3": ("h5py",),
    "tdms": ("nptdms",),
    "ltspice": ("spicelib",),
    "fits": ("astropy",),
    "netcdf": ("scipy",),
    "lvm": ("lvm_read",),
    "touchstone": ("skrf", "scipy", "pandas"),
}


def divide(path: str, rest: str, by_ending: Callable[[str, bytes], str]) -> tuple[str, str | None]:
    """`TABLE:COLUMNS` behind a file's name: the file with its table, and the columns.

    Without a colon it is a table if the file has one of that name, else columns of its only one. by_ending:
    the kind of a text that has no mark of its own.
    """
    table, colon, columns = rest.partition(":")
    if colon:
        return f"{path}:{table}", columns or None
    full = os.path.expanduser(path)
    if os.path.isfile(full):
        with open(full, "rb") as stream:
            head = stream.read(LOOKED_AT)
        kind = kind_of(head)
        kind = settled(kind, full, path) if kind else by_ending(full, head)
        if kind not in FORMATS:
            return path, rest
        try:
            if rest in _found(kind, full, path).names:
                return f"{path}:{rest}", None
        except TableError:  # said when it is read
            pass
    return path, rest


__all__ = [
    "FORMATS",
    "divide",
    "kind_of",
    "refuse",
    "settled",
    "unpacked",
]

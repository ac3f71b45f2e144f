"""NumPy's files: arrays, structured arrays, archives of them. Nothing in them is ever unpickled."""

from __future__ import annotations

import io
import os
import re
import zipfile
import zlib
from collections.abc import Iterator
from tokenize import TokenError
from typing import TYPE_CHECKING, Any

from gradcli.tables.named_columns import ArrayTable
from gradcli.tables.source import Opened
from gradcli.tables.table_errors import TableError

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

_HEADER = 1 << 16  # no array of numbers has a longer one
_WORDS = re.compile(
    "EOF: |the magic string|version|we only|descr is|shape is|fortran_order is|Header"
)
# A header is text that NumPy has Python's parser read: it may be refused in many ways.
_UNREADABLE = (
    *(ArithmeticError, AttributeError, EOFError, LookupError, RuntimeError, SyntaxError),
    *(TypeError, ValueError, TokenError, zipfile.BadZipFile, zlib.error),
)


def read_array(file: Opened) -> Array:
    """The array of a `.npy` file, which is read as far as its header promises."""
    return array_in(file.stream, file.name, file.size)


def _head(stream: Any, name: str, size: int | None) -> tuple[tuple[int, ...], bool, Any, int]:
    """(shape, whether in Fortran's order, dtype, bytes of the numbers) of an array in NumPy's format."""
    from math import prod

    from numpy.lib import format as numpy_format

    try:
        version = numpy_format.read_magic(stream)
        read = {
            (1, 0): numpy_format.read_array_header_1_0,
            (2, 0): numpy_format.read_array_header_2_0,
        }.get(version)
        if read is None and version == (3, 0):  # the same with names in UTF-8
            shape, fortran, dtype = numpy_format._read_array_header(  # type: ignore[attr-defined]
                stream, version=version, max_header_size=_HEADER
            )
        elif read is None:
            raise ValueError(f"version {version[0]}.{version[1]} of the format")
        else:
            shape, fortran, dtype = read(stream, max_header_size=_HEADER)
    except _UNREADABLE as error:
        words = _short(error)
        if not _WORDS.match(words):  # the words of Python's parser
            words = "its header cannot be read"
        raise TableError(f"{name}: not a NumPy file of numbers ({words})") from None
    if dtype.hasobject:
        raise TableError(f"{name}: not a NumPy file of numbers (it holds Python objects)")
    if any(type(n) is not int or not 0 <= n < 1 << 63 for n in shape) or len(shape) > 64:
        raise TableError(f"{name}: not a NumPy file of numbers (shape {shape})")
    wanted = prod(shape) * dtype.itemsize
    if size is not None and wanted > size:
        raise TableError(f"{name} is cut off: it should hold {wanted:,} bytes, and has less")
    return shape, fortran, dtype, wanted


def array_in(stream: Any, name: str, size: int | None = None) -> Array:
    """An array in NumPy's format. Raises TableError where it is none, is cut off, or holds objects."""
    from math import prod

    import numpy as np

    shape, fortran, dtype, wanted = _head(stream, name, size)
    data = _exactly(stream, wanted, name)
    try:
        array = (
            np.frombuffer(data, dtype=dtype, count=prod(shape)) if wanted else np.empty(0, dtype)
        )
        array = array.reshape(shape, order="F" if fortran else "C")
    except (ValueError, OverflowError) as error:
        raise TableError(f"{name}: not a NumPy file of numbers ({_short(error)})") from None
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _exactly(stream: Any, wanted: int, name: str) -> bytearray:
    """So many bytes, in pieces: a header may promise more than there is."""
    found = bytearray()
    while len(found) < wanted:
        piece = stream.read(min(wanted - len(found), 1 << 24))
        if not piece:
            raise TableError(
                f"{name} is cut off: it should hold {wanted:,} bytes, and has {len(found):,}"
            )
        found += piece
    return found


def npy_header(path: str) -> tuple[tuple[int, ...], Any, int, bool]:
    """The shape and dtype of a `.npy` file, where its numbers begin, and whether rows lie in order."""
    full = os.path.expanduser(path)
    with open(full, "rb") as stream:
        shape, fortran, dtype, _ = _head(stream, path, os.path.getsize(full))
        return shape, dtype, stream.tell(), not fortran or len(shape) < 2


def field_names(dtype: Any) -> list[str]:
    """The columns of a structured array: a field, or `NAME[j]` for the elements of one that is an array."""
    return [heading for heading, _, _ in _fields(dtype)]


def field_columns(array: Array) -> list[Array]:
    """The arrays of those columns."""
    rows: tuple[Any, ...] = (slice(None),) * array.ndim
    return [array[name][rows + index] for _, name, index in _fields(array.dtype)]


def _fields(dtype: Any) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    """(heading, the field's name, which of its elements) of each column."""
    import numpy as np

    for name in dtype.names or ():
        for index in np.ndindex(dtype[name].shape):
            yield (f"{name}[{','.join(map(str, index))}]" if index else name), name, index


def npy_rows(path: str, first: int, rows: int, batch: int) -> Iterator[ArrayTable]:
    """Rows of a `.npy` file, in batches; names where it is a structured array."""
    import numpy as np

    shape, dtype, offset, in_order = npy_header(path)
    full = os.path.expanduser(path)
    wide = shape[1] if len(shape) > 1 else 1
    names = field_names(dtype)
    for start in range(first, max(first + rows, first + 1), batch):
        m = min(batch, first + rows - start)
        if in_order:
            begin = offset + start * wide * dtype.itemsize
            data = np.fromfile(full, dtype, m * wide, offset=begin)
            arrays = field_columns(data) or list(data.reshape(m, wide).T)
        else:
            begins = [offset + (k * shape[0] + start) * dtype.itemsize for k in range(wide)]
            arrays = [np.fromfile(full, dtype, m, offset=begin) for begin in begins]
        native = [a if a.dtype.isnative else a.astype(a.dtype.newbyteorder("=")) for a in arrays]
        yield ArrayTable(path, names, native, start)


class Archive:
    """A `.npz` file: its members by name."""

    __slots__ = ("file", "name", "names", "zip")

    def __init__(self, file: Opened) -> None:
        self.name = file.name
        stream: Any = file.stream
        if not (hasattr(stream, "seekable") and stream.seekable()):
            stream = io.BytesIO(file.read())
        self.file = stream
        try:
            self.zip = zipfile.ZipFile(stream)
            found = [info.filename for info in self.zip.infolist()]
        except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
            raise TableError(
                f"{self.name}: not a NumPy file of numbers ({_short(error)})"
            ) from None
        self.names = [name.removesuffix(".npy") for name in found]

    def member(self, name: str) -> Array:
        """One of its arrays."""
        file = f"{name}.npy" if f"{name}.npy" in self.zip.namelist() else name
        where = f"{self.name}:{name}"
        try:
            with self.zip.open(file) as stream:
                return array_in(stream, where, self.zip.getinfo(file).file_size)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError) as error:
            raise TableError(f"{where}: cannot be read ({_short(error)})") from None
        except (RuntimeError, ValueError) as error:  # encrypted, or a header that lies
            raise TableError(f"{where}: cannot be read ({_short(error)})") from None


def _short(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 100 else text[:99] + "…"

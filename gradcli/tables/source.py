"""Where a table comes from: a file, standard input or a pipe; what it is, by its first bytes and its name."""

from __future__ import annotations

import functools
import io
import itertools
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator
from typing import IO, TYPE_CHECKING, Any, BinaryIO, NamedTuple

import gradcli.engine.system.budget as budget
from gradcli.tables.reading_options import LOOKED_AT, Reading
from gradcli.tables.table_errors import TableError

if TYPE_CHECKING:
    import codecs

STANDARD_INPUT = ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
ENDINGS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".txt": "text",
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".npy": "npy",
    ".npz": "npz",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "feather",
    ".arrow": "feather",
    ".ipc": "feather",
    ".arrows": "arrows",
}
PACKED = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".xz": "xz"}
_MAGIC = (
    (b"\x93NUMPY", "npy"),
    (b"PAR1", "parquet"),
    (b"ARROW1", "feather"),
    (b"\xff\xff\xff\xff", "arrows"),
)
_PACKED_MAGIC = (
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"BZh", "bz2"),
    (b"\xfd7zXZ\x00", "xz"),
)
# What a text may begin with; other files are told by their first bytes.
_TEXT_BEGINS = frozenset(range(32, 127)) | frozenset(b"\t\n\r\xef\xfe\xff")
# With what files of other programs begin that do begin as a text may: see `foreign_files`.
_FOREIGN = (
    *(
        b"PK",
        b"#F ",
        b"#S ",
        b"* Sea-B",
        b"##TITLE",
        b"SQLite",
        b"MATLAB ",
        b"TDSm",
        b"LabVIEW",
        b"\xef\xbb\xbfLabVIEW",
        b"T\x00i\x00",
        b"Title: *",
        b"SIMPLE",
        b"CDF",
        b"%PDF",
    ),
    *(
        b"<",
        b"\xef\xbb\xbf<",
        b"version ",
        b"##TITLE",
        b"RDX",
        b"X\n",
        b"$FL2",
        b"CPYA",
        b"$",
        b"\xff\xd8",
    ),
    *(b"Obj\x01", b"ORC", b"7z\xbc", b"Rar!"),
)
# What texts of other programs without a mark of their own are called.
# What stands within the first lines of oscilloscopes' files, and of frames about tables.
_WITHIN = (
    *(b"*****", b"#####", b"+--", b"+==", b"tInc", b"X,CH"),
    *(mark.encode() for mark in ("┌─", "╭─", "╔═", "┏━")),
)
_NAMED = re.compile(r"\.(?:s\d{1,3}p|(?P<marked>ts))(?:\.gz|\.zst|\.bz2|\.xz)?$", re.IGNORECASE)
_CONTROL = re.compile("[\x01-\x08\x0e-\x19\x1c-\x1f\x7f]")  # no text has them
_BLOCK = 1 << 20
_SHARE = 4  # of the memory that is free, what one text may take
_AT_LEAST, _AT_MOST = 1 << 26, 1 << 30


class Stamp(NamedTuple):
    """What changes when a file does."""

    size: int
    time: int


def stamp(path: str) -> Stamp | None:
    """The stamp of a regular file; None of anything else."""
    try:
        found = os.stat(os.path.expanduser(whole_file(path)))
    except (OSError, ValueError):
        return None
    return Stamp(found.st_size, found.st_mtime_ns) if stat.S_ISREG(found.st_mode) else None


def whole_file(path: str) -> str:
    """The file of a path behind whose colon a table of it may stand: `f.xlsx` of `f.xlsx:Sheet1`."""
    if ":" not in path or _exists(path):
        return path
    cuts = [i for i, letter in enumerate(path) if letter == ":" and i]
    return next((path[:i] for i in cuts if _exists(path[:i])), path)


def _exists(path: str) -> bool:
    try:
        return os.path.exists(os.path.expanduser(path))
    except ValueError:
        return False


def check(path: str, before: Stamp | None) -> None:
    """Raise TableError if a regular file is no longer what it was: numbers of both would be mixed."""
    if before is not None and stamp(path) != before:
        raise changed(path)


def changed(path: str) -> TableError:
    """The error about a file that somebody writes or deletes meanwhile."""
    if not _exists(whole_file(path)):
        return TableError(f"{path} was deleted while it was read")
    return TableError(f"{path} changed while it was read", hint="read it once it is complete")


class Opened:
    """A stream of bytes that has been looked at.

    name: as the user wrote it. kind: csv, tsv, text, json, jsonl, npy, npz, parquet, feather, arrows, or ""
    where neither the first bytes nor the ending say. path: None where it can be read but once. own: the
    file that is to be closed; None for standard input. stamp: see `stamp`. is_unpacked: whether another
    program's file was unpacked into this kind.
    """

    __slots__ = (
        *("is_unpacked", "kind", "name", "own", "path", "reading", "size", "stamp", "stream"),
    )

    def __init__(
        self,
        name: str,
        stream: BinaryIO,
        kind: str,
        path: str | None,
        size: int | None,
        own: BinaryIO | None = None,
        stamp: Stamp | None = None,
        reading: Reading | None = None,
    ) -> None:
        self.stamp, self.reading = stamp, reading or Reading()
        self.name, self.stream, self.kind, self.path, self.size = name, stream, kind, path, size
        self.own = own
        self.is_unpacked = False

    def check(self) -> None:
        """See that the file is as it was when it was opened."""
        check(self.name, self.stamp)

    def close(self) -> None:
        """Close the file, and whatever unpacks it."""
        if self.own is not None:
            self.own.close()

    def blocks(self) -> Iterator[bytes]:
        """All that is left in pieces, but no more than memory has room for."""
        most, total = room(), 0
        while piece := self.stream.read(_BLOCK):
            total += len(piece)
            if total > most:
                raise TableError(
                    f"{self.name} is too long: it has more than {most >> 20:,} MB, "
                    "which is all the room there is",
                    hint="take a part of it, as head -n does",
                )
            yield piece

    def read(self) -> bytes:
        """All that is left."""
        return b"".join(self.blocks())

    def text(self) -> str:
        """All of it as text: UTF-8 with or without a mark, or UTF-16 with one; newlines as they should be."""
        text = "".join(self.texts(self.blocks()))
        return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text

    def texts(self, blocks: Iterable[bytes]) -> Iterator[str]:
        """The text of blocks of bytes, in UTF-8 or as a mark at its start or --encoding says; Latin-1, and it
        is said, where all before the first byte that is not UTF-8 is ASCII. What is no text is refused where
        it begins."""
        told = self.reading.how.encoding
        decoder: codecs.IncrementalDecoder | None = None
        before, is_ascii = 0, True
        for block in itertools.chain(blocks, [b""]):
            if decoder is None:
                wide = block[:2] in (b"\xff\xfe", b"\xfe\xff")
                decoder = _decoder(told or ("utf-16" if wide else "utf-8-sig"), self.name)
            try:
                text = decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                if told is not None or not is_ascii or not block[: error.start].isascii():
                    raise TableError(
                        f"{self.name}: not text in {told or 'UTF-8'} (at byte {before + error.start})",
                        hint="--encoding NAME says what it is in, as in --encoding cp1252",
                    ) from None
                decoder = _decoder("latin-1", self.name)
                text = decoder.decode(block)
                if found := _CONTROL.search(text):
                    at = before + found.start()
                    raise TableError(
                        f"{self.name}: not a text file (byte {at} is not a character)",
                        hint=_EXPORT,
                    ) from None
                self.reading.note(self.name, "not UTF-8: read as Latin-1")
            is_ascii = is_ascii and block.isascii()
            if "\0" in text:
                text = self._unpadded(text)
            before += len(block)
            yield text

    def _unpadded(self, text: str) -> str:
        """A text without the zero bytes that fill lines up, as instruments write names of fixed length."""
        bare = _PADDING.sub("", text)
        if "\0" in bare:
            hint = "--encoding utf-16-le" if text[1:4:2] == "\0\0" else _EXPORT
            raise TableError(f"{self.name}: not a text file (it contains a zero byte)", hint=hint)
        self.reading.note(self.name, "zero bytes at the ends of lines left out")
        return bare


_EXPORT = "export it as CSV or text where it was made"
# Zero bytes up to the end of a line, or of a block, whose next begins with the rest of them.
_PADDING = re.compile(r"(?<!\0)\0{2,1024}(?=[\r\n]|\Z)|\A\0{1,1024}(?=[\r\n])")


def _decoder(encoding: str, name: str) -> codecs.IncrementalDecoder:
    import codecs

    try:
        return codecs.getincrementaldecoder(encoding)()
    except LookupError:
        raise TableError(
            f"{name}: there is no encoding {encoding!r}",
            hint="as in --encoding latin-1, cp1252, utf-16",
        ) from None


def kind_of(path: str) -> tuple[str, bool]:
    """The kind that a file's ending tells, and whether it tells of compression."""
    stem, ending = os.path.splitext(path.lower())
    if ending in PACKED:
        return ENDINGS.get(os.path.splitext(stem)[1], ""), True
    return ENDINGS.get(ending, ""), False


def kind_by_ending(path: str, head: bytes | None = None) -> str:
    """The kind of a text of another program without a mark of its own, by its name; "" for what is none.

    head: its first bytes, without which it is asked what it may be.
    """
    told = _NAMED.search(path)
    if told is None or (told["marked"] and head is not None and b"[Version]" not in head):
        return ""
    return "touchstone"


def opened(path: str, stdin: IO[Any] | None = None, reading: Reading | None = None) -> Opened:
    """Open a file or standard input, unpack it, and look what it is. Raises TableError and OSError."""
    begin = None if path in STANDARD_INPUT else stamp(path)
    table: str | None = None  # of several in the file
    if path in STANDARD_INPUT:
        name = "standard input"
        raw, size, again = _standard_input(stdin), None, None
    else:
        name = path
        one = whole_file(path)
        table = path[len(one) + 1 :] if one != path else None
        full = os.path.expanduser(one)
        try:
            raw = open(full, "rb")  # noqa: SIM115 (who reads it closes it)
        except ValueError as error:  # a name with a null in it
            raise TableError(f"{path}: {error}") from None
        size, again = (None, None) if begin is None else (begin.size, full)
    own = None if path in STANDARD_INPUT else raw
    try:
        return _looked_at(path, name, raw, table, size, again, own, begin, reading)
    except BaseException:
        if own is not None:
            own.close()
        raise


def _looked_at(
    path: str,
    name: str,
    raw: Any,
    table: str | None,
    size: int | None,
    again: str | None,
    own: Any,
    begin: Stamp | None,
    reading: Reading | None,
) -> Opened:
    """What an open file is. table: that is wanted. again: the path where it can be opened once more."""
    stream: Any = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(raw)
    head = _peek(stream)
    for magic, packing in _PACKED_MAGIC:
        if head.startswith(magic):
            stream = io.BufferedReader(_unpacked(stream, packing, name))
            size, again = None, None
            head = _peek(stream)
            break
    if head.startswith(b"FEA1"):  # no reader of it looks whether it is whole
        raise TableError(
            f"{name}: a Feather file of version 1", hint="save it again, as version 2 or Parquet"
        )
    kind = next((kind for magic, kind in _MAGIC if head.startswith(magic)), "")
    as_text = reading is not None and reading.how.says_lines  # asked for by an option
    named = not as_text and bool(kind_by_ending(whole_file(path)))
    first = stream.peek(LOOKED_AT)[:LOOKED_AT] if head and not kind else b""
    if first and (
        head[0] not in _TEXT_BEGINS
        or head.startswith(_FOREIGN)
        or named
        or any(mark in first for mark in _WITHIN)
    ):
        from gradcli.tables import foreign_files

        head = first
        foreign = foreign_files.kind_of(head)
        if not foreign:
            foreign_files.refuse(head, name)
        if not foreign and named:
            foreign = kind_by_ending(whole_file(path), head)
        if foreign in ("lvm", "spec", "seabird", "jcamp") and as_text:
            foreign = ""
        if foreign in ("rigol", "ortec", "amptek") and reading and reading.how.cuts_lines:
            foreign = ""
        if foreign == "framed" and reading and reading.how.separator is not None:
            foreign = ""
        if foreign:
            whole = again if again is not None else _whole(stream, name)
            foreign = foreign_files.settled(foreign, whole, whole_file(path))
            if foreign not in ("npz", ""):
                stream, kind = foreign_files.unpacked(
                    foreign, whole, name, table,
                    str if reading is None else functools.partial(reading.note, name),
                )  # fmt: skip
                made = Opened(name, stream, kind, None, None, own, begin, reading)
                made.is_unpacked = True
                return made
            kind = foreign
            if again is None:
                stream = io.BufferedReader(whole)
    if table is not None:
        raise TableError(f"{whole_file(path)}: this is one table: no name can follow it")
    told = kind_of(path)[0]
    if not kind and told in ("npy", "npz", "parquet", "feather", "arrows"):
        if not head:
            raise TableError(f"{name} is empty")
        what = {"npy": "a NumPy file", "npz": "a NumPy file", "arrows": "a stream of Arrow's"}.get(
            told, f"a {told} file"
        )
        raise TableError(f"{name}: not {what} (it does not begin as one)")
    return Opened(name, stream, kind or told, again, size, own, begin, reading)


def _standard_input(stdin: IO[Any] | None) -> BinaryIO:
    stream = stdin if stdin is not None else sys.stdin
    if stream is None:
        raise TableError("there is no standard input")
    buffer = getattr(stream, "buffer", None)
    if buffer is not None:
        return buffer  # type: ignore[no-any-return]
    return io.BytesIO(stream.read().encode("utf-8", "surrogateescape"))


def _whole(stream: Any, name: str) -> Any:
    """All of a stream in memory, as far as there is room."""
    return io.BytesIO(Opened(name, stream, "", None, None).read())


def _peek(stream: Any) -> bytes:
    head: bytes = stream.peek(8)[:8]
    return head


def _unpacked(stream: BinaryIO, packing: str, name: str) -> Any:
    """A stream of what a compressed one holds."""
    if packing == "gzip":
        import gzip

        return _Worded(gzip.GzipFile(fileobj=stream), name)
    if packing == "bz2":
        import bz2

        return _Worded(bz2.BZ2File(stream), name)
    if packing == "xz":
        import lzma

        return _Worded(lzma.LZMAFile(stream), name)
    from gradcli.tables.table_errors import pyarrow

    arrow = pyarrow(f"{name} is packed with zstd")
    return _Worded(arrow.CompressedInputStream(arrow.PythonFile(stream, "r"), "zstd"), name)


def _damages() -> tuple[type[Exception], ...]:
    """The errors of unpacking, by the modules that are imported where they are used."""
    import zlib

    lzma: Any = sys.modules.get("lzma")
    return (OSError, EOFError, ValueError, zlib.error, *([] if lzma is None else [lzma.LZMAError]))


class _Worded(io.RawIOBase):
    """A stream whose errors are ours."""

    def __init__(self, stream: Any, name: str) -> None:
        super().__init__()
        self.packed, self.name = stream, name

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer."""
        try:
            data = self.packed.read(len(buffer))
        except _damages() as error:
            raise TableError(f"{self.name}: cannot unpack it: {error}") from None
        buffer[: len(data)] = data
        return len(data)


def room() -> int:
    """How many bytes of text may be read into memory: a share of what is free."""
    free = budget.free_memory()
    return min(max((free or 1 << 32) // _SHARE, _AT_LEAST), _AT_MOST)

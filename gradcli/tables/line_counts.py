"""How many lines there are, without reading what they hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.tables.sniffing import FOOTER, footer_begins

if TYPE_CHECKING:
    from gradcli.tables.delimited import Dialect
    from gradcli.tables.reading_options import How
    from gradcli.tables.source import Opened

_BLOCK = 1 << 18  # bytes that are looked at at once, in the cache
_TAIL = 1 << 14  # bytes at the end in which a footer is looked for
_END = b">*="  # what a line begins with that says that the table ends


def newlines(text: str) -> int:
    """How many lines a text ends. `str.count` looks at one letter after the other."""
    if len(text) < 1 << 12:
        return text.count("\n")
    import numpy as np

    return int(np.count_nonzero(np.frombuffer(text.encode(), np.uint8) == 10))


def plain_rows(file: Opened, dialect: Dialect, how: How) -> int | None:
    """How many rows a text has of which each line is one; None where lines do not tell.

    They do where no line below the header is blank, a remark, or says that the table ends, and no cell in
    quotes has several lines.
    """
    if how.block is not None or how.footer or dialect.cuts:
        return None
    import numpy as np

    signs = [bytes([sign]) for sign in {*_END, *dialect.remarks.encode()}]
    room, kept, lines, above = bytearray(2 * _BLOCK), 0, 0, dialect.first_row - 1
    whole, last = memoryview(room), b""
    masks = np.empty(
        (2, len(room)), bool
    )  # fresh memory for each block would cost more than the look
    while count := file.stream.readinto(whole[kept : kept + _BLOCK]):  # type: ignore[attr-defined]
        filled = kept + count
        end = room.rfind(b"\n", 0, filled) + 1
        if not end and filled > _BLOCK:
            return None
        begin = 0
        while lines < above and begin < end:
            begin, lines = room.index(b"\n", begin) + 1, lines + 1
        if begin < end:
            found = _lines(room, begin, end, signs, masks)
            if found is None:
                return None
            lines += found
            last = (last + bytes(whole[max(begin, end - _TAIL) : end]))[-_TAIL:]
        kept = filled - end
        room[:kept] = room[end:filled]
    rest = bytes(room[:kept])
    if rest and (rest[0] <= 32 or rest[:1] in signs):
        return None
    below = (last + rest).decode("latin-1").split("\n")[-(FOOTER + 2) :]
    if len(below) < FOOTER or footer_begins(below, dialect, how) < len(below):
        return None
    return lines - above + bool(rest)


def _lines(room: bytearray, begin: int, end: int, signs: list[bytes], masks: Any) -> int | None:
    """How many lines there are between two places; None where one is blank, begins with a sign, or may not
    end at its newline: in quotes, or with a return where others have none. masks: room for two."""
    import numpy as np

    data = np.frombuffer(room, np.uint8, end - begin, begin)
    ends = np.equal(data, 10, out=masks[0, : end - begin])
    blank = np.less_equal(data, 32, out=masks[1, : end - begin])
    if blank[0] or np.logical_and(ends[:-1], blank[1:], out=blank[1:]).any():
        return None
    if room.find(0, begin, end) >= 0:
        return None
    if any(room.startswith(sign, begin) for sign in signs):
        return None
    for sign in signs:
        if room.find(sign, begin, end) >= 0 and room.find(b"\n" + sign, begin, end) >= 0:
            return None
    count = int(np.count_nonzero(ends))
    if room.find(b"\r", begin, end) >= 0:
        returns = data == 13
        if (returns[:-1] & ends[1:]).sum() != count or np.count_nonzero(returns) != count:
            return None
    if room.find(b'"', begin, end) >= 0:
        inside = np.bitwise_xor.accumulate(data == 34)
        if (inside & ends).any():
            return None
    return count


__all__ = ["newlines", "plain_rows"]

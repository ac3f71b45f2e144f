"""Tables in frames, as programs print them: ROOT's TTree::Scan, MySQL, reStructuredText, polars, DuckDB.

    ***********************
    *  Row *    mass *  pt *
    ***********************
    *    0 *   92.57 * 5.6 *

A ruler stands above the names, and one below them; lines begin and end with a bar.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple


class Frame(NamedTuple):
    """How frames are drawn. ruler: a line without cells. bars: what stands around a cell. types: whether a
    type may stand below a name."""

    ruler: re.Pattern[str]
    bars: str
    types: bool


_FRAMES = (
    Frame(re.compile(r"\*{5,}"), "*", False),
    Frame(re.compile(r"#{5,}"), "#", False),
    Frame(re.compile(r"\+(?:[-=]{2,}\+)+"), "|", False),
    Frame(re.compile("[┌├└╞╭╰╔╠╚┏┡┢┗┣╟][─═━╌┬┼┴╪┐┤┘╡╮╯╦╬╩╗╣╝┳╇╈┻┓┩┪┛┫╫╢╤╧]+"), "│┆║┃", True),
)
_BEGIN = re.compile(
    r"(?m)^[ \t]*(?:\*{5,}|#{5,}|\+[-=]{2,}[-=+]*\+|[┌╭╔┏][─═━┬╦╤┳]+[┐╮╗┓])[ \t]*\r?$"
)
_PAUSE = re.compile("Type <CR> to continue or q to quit ==>")
_HEAD = 6  # lines between the two rulers


def separator_of(text: str) -> str | None:
    """The bar between cells if a table in a frame begins in a text; None where none does."""
    for begin in _BEGIN.finditer(text):
        lines = text[begin.start() : begin.start() + 20_000].splitlines()
        frame = _frame(lines[0])
        second = next((k for k, x in enumerate(lines[1:], 1) if _is_ruler(x, frame)), 0)
        if not 2 <= second <= _HEAD or second + 1 >= len(lines):
            continue
        counts = {len(_cells(line, frame) or ()) for line in lines[1:second]}
        row = _cells(lines[second + 1], frame)
        named = re.search(r"[^\W\d]", lines[1]) is not None
        if (
            row
            and counts == {len(row)}
            and len(row) > 1
            and named
            and re.search(r"\d", "".join(row))
        ):
            return frame.bars[0]
    return None


def unframed(lines: Sequence[str]) -> Iterator[list[str]]:
    """The cells of each line within bars; none of a ruler and of what stands between (`Type <CR> to
    continue`), so that lines keep their numbers. Lines above and below are as they are."""
    drawn = [next((f for f in _FRAMES if _is_ruler(line, f)), None) for line in lines]
    rulers = [k for k, frame in enumerate(drawn) if frame is not None]
    frame: Frame | None = None
    count = names = 0  # rulers so far, lines below the first of them
    for k, line in enumerate(lines):
        if (found := drawn[k]) is not None:
            count = count + 1 if found is frame else 1
            frame, names = found, 0
            yield []
            continue
        cells = None if frame is None else _cells(line, frame)
        names += count == 1
        if k < rulers[0] or (cells is None and k > rulers[-1]):
            yield [" ".join(line.split())]
        elif cells is None or (frame is not None and frame.types and count == 1 and names > 1):
            yield []
        else:
            yield cells


def _frame(line: str) -> Frame:
    return next(frame for frame in _FRAMES if _is_ruler(line, frame))


def _is_ruler(line: str, frame: Frame) -> bool:
    return frame.ruler.fullmatch(line.strip()) is not None


def _cells(line: str, frame: Frame) -> list[str] | None:
    """The cells within the bars of a line; None where no bars stand around it."""
    bare = _PAUSE.sub("", line).strip()
    if len(bare) < 2 or bare[0] not in frame.bars or bare[-1] not in frame.bars:
        return None
    return [cell.strip() for cell in re.split(f"[{re.escape(frame.bars)}]", bare[1:-1])]


__all__ = ["separator_of", "unframed"]

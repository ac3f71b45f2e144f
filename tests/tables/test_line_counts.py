"""Rows that are counted by newlines are those that are read."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradcli.tables import line_counts
from gradcli.tables.parts import Parts
from gradcli.tables.record_batches import Stream

ROWS = [f"{k},{k / 4},w{k}" for k in range(40)]
# Each: lines put in behind the tenth row, and whether newlines may tell how many rows there are.
MIDDLES: list[tuple[str, list[str], bool]] = [
    ("plain", [], True),
    ("a cell in quotes", ['7,8,"w, x"'], True),
    ("a cell of two lines", ['7,8,"w', 'x"'], False),
    ("a quote within a cell", ['7,8,5"', "8,9,w"], False),
    ("a blank line", [""], False),
    ("blanks alone", ["  \t"], False),
    ("a remark", ["# so far"], False),
    ("a remark behind a row", ["7,8,w # so far"], True),
    ("a minus first", ["-7,8,w"], True),
    ("letters", ["7,8,äöü"], True),
    ("stars", ["*** end ***"], False),
    ("a star in a row", ["7,8,*"], True),
]
ENDS = ["\n", "\r\n"]
TAILS = ["", "\n", "\n\n", "\nsum,of,all\n"]


@pytest.mark.parametrize(("name", "lines", "told"), MIDDLES, ids=[m[0] for m in MIDDLES])
@pytest.mark.parametrize("newline", ENDS, ids=["newline", "return"])
def test_counted_as_read(
    name: str, lines: list[str], told: bool, newline: str, tmp_path: Path
) -> None:
    counted = []
    for tail in TAILS:
        text = newline.join(["k,x,name", *ROWS[:10], *lines, *ROWS[10:]])
        path = tmp_path / "t.csv"
        path.write_bytes((text + tail.replace("\n", newline)).encode())
        (part,) = Parts(str(path)).parts
        found = part.counted()
        counted.append(found is not None)
        if found is not None:
            assert found == sum(table.rows for table in Stream(str(path)))
    assert counted[:2] == [told, told]


@pytest.mark.parametrize("block", [64, 97, 1 << 10])
def test_blocks_do_not_matter(block: int, tmp_path: Path, monkeypatch: Any) -> None:
    """A line may lie across the end of what is looked at at once; below a preamble as well."""
    monkeypatch.setattr(line_counts, "_BLOCK", block)
    path = tmp_path / "t.csv"
    for above, below in itertools.product(("", "# made by\n# us\n"), ("", "\n")):
        path.write_text(above + "k,x,name\n" + "\n".join(ROWS) + below)
        assert Parts(str(path)).count([0], "error") == len(ROWS)
        assert Parts(str(path)).parts[0].counted() == len(ROWS)


@pytest.mark.long
def test_random_texts(tmp_path: Path) -> None:
    """Texts of random pieces: where newlines tell how many rows there are, the reader finds as many."""
    rng = np.random.default_rng(3)
    odd = ["\n", '"a",2\n', '"a\n', "#x\n", " 1,2\n", "1,2\r\n", "1,2,3\n", ">>>\n", "7"]
    told = 0
    for _ in range(400):
        lines = ["1,2\n"] * int(rng.integers(25, 60))
        for _ in range(rng.integers(3)):
            lines[rng.integers(len(lines))] = str(rng.choice(odd))
        text = "a,b\n" + "".join(lines)
        path = tmp_path / "t.csv"
        path.write_text(text, newline="")
        try:
            (part,) = Parts(str(path)).parts
            found = part.counted()
            if found is None:
                continue
            rows = sum(table.rows for table in Stream(str(path)))
        except Exception as error:
            assert type(error).__name__ == "TableError"
            continue
        told += 1
        assert found == rows, text
    assert told > 100

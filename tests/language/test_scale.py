"""Time and memory grow with the text, and no faster."""

from __future__ import annotations

import gc
import subprocess
import sys
import time

import pytest

from gradcli.language import parse

pytestmark = pytest.mark.long

PIECE = "x0*3.5 + sin(y)*2 - (a+b)/c1**2 + exp(-x*0.125)*w1 - 2.5e-3/b + "
LINES = "y1 = y2*2 + 1\n# a comment\nif y1 > 3: y2 = f(y1, dim=0)\n"

MEMORY = """
import resource, sys
from gradcli.language import parse
piece, size = sys.argv[1], int(sys.argv[2])
parse(piece + "1")
text = piece * (size // len(piece)) + "1"
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
program = parse(text)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / len(text))
"""


def seconds(text: str) -> float:
    gc.collect()
    begun = time.process_time()
    parse(text)
    return time.process_time() - begun


@pytest.mark.parametrize("piece", [PIECE, LINES.replace("# a comment\n", "")])
def test_memory_of_the_tree(piece: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, piece, "3000000"], capture_output=True, text=True, check=True
    )
    assert float(done.stdout) <= 50


@pytest.mark.parametrize("piece", [PIECE, LINES, "(x, " * 3 + ")" * 3 + " + ", "not x or "])
def test_time_is_linear(piece: str) -> None:
    small, large = piece * (100_000 // len(piece)) + "1", piece * (800_000 // len(piece)) + "1"
    seconds(small)
    ratios = [seconds(large) / (8 * seconds(small)) for _ in range(3)]
    assert min(ratios) < 2


def test_ten_megabytes() -> None:
    rows = len(parse(PIECE + "1"))
    count = 10_000_000 // len(PIECE)
    assert len(parse(PIECE * count + "1")) == (rows - 3) * count + 3

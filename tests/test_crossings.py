"""How often a command goes from one file to another: what a reader who follows it has to leaf.

Counted are the calls of a first run whose caller is in another file of the package. What modules declare
while they are imported belongs to no command's way.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

COUNT = """
import os, sys
import gradcli
from gradcli import __main__

home = os.path.dirname(gradcli.__file__) + os.sep
count = loading = 0


def watch(frame, event, arg):
    global count, loading
    file, caller = frame.f_code.co_filename, frame.f_back
    if not file.startswith(home) or event not in ("call", "return"):
        return
    if frame.f_code.co_name == "<module>":
        loading += 1 if event == "call" else -1
    elif event == "call" and not loading and caller is not None:
        there = caller.f_code.co_filename
        count += there != file and there.startswith(home)


sys.argv = ["gradcli", *sys.argv[1:]]
sys.setprofile(watch)
try:
    __main__._command()
except SystemExit as leaving:
    assert not leaving.code, leaving.code
sys.setprofile(None)
print(count)
"""
# Before commands put one question and wrote one answer: 159 and 1952.
MARKS = [
    (("grad", "x**2", "--x", "3"), "x.grad = 6", 90),
    (("diff", "exp(-x**2)"), "-2*x*exp(-x**2)", 1200),
]


@pytest.mark.parametrize(("words", "result", "most"), MARKS, ids=lambda v: str(v)[:20])
def test_a_command_stays_on_its_way(words: tuple[str, ...], result: str, most: int) -> None:
    argv = [sys.executable, "-c", COUNT, *words]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    done = subprocess.run(argv, capture_output=True, text=True, check=True, env=environment)
    first, count = done.stdout.splitlines()
    print(f"gradcli {' '.join(words)}: {count} calls from file to file")
    assert first == result
    assert int(count) <= most

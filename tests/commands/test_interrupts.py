"""Ctrl-C at any moment: exit code 130, and nothing on standard error."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time

import pytest

from tests.commands.terminal import environment
from tests.fuzz.interrupts import started

START = started(sys.path, "stdout")
LONG = "y = 0\nfor i in range(10**9): y = y + 1"
PRODUCT = "x = rand(3000, 3000)\nfor i in range(1000): x = x @ x"


def interrupted(delay: float, *argv: str) -> tuple[int, str]:
    """Exit code and standard error of a run that gets the signal so many seconds after its start."""
    process = subprocess.Popen(
        [sys.executable, "-c", START, *argv],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # a shell ignores the signal in what it starts in the background
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert process.stdout is not None and process.stdout.readline() == "begun\n"
    time.sleep(delay)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    return process.returncode, err


def sweep(count: int, longest: float) -> None:
    """So many runs, each interrupted at a moment of its own."""
    moments = random.Random(12)
    for number in range(count):
        delay = moments.random() * longest
        command = ("eval", LONG) if number % 2 else ("grad", f"y = x*2\n{LONG}", "--x", "3")
        assert interrupted(delay, *command) == (130, ""), f"after {delay:.4f} s"


def test_at_the_start() -> None:
    sweep(2, 0.3)


@pytest.mark.long
def test_at_any_moment() -> None:
    sweep(100, 0.4)


@pytest.mark.long
def test_where_python_has_no_turn() -> None:
    assert interrupted(0.5, "eval", PRODUCT) == (130, "")  # which takes a quarter of an hour whole

"""Ctrl-C at any moment of any command line: exit code 130 and no word of its own, or what the line answers.

Notes that the line had written before the signal came stay on standard error.

Each line runs in a process of its own, which gets the signal once or several times after its first line
has run (what comes before is the interpreter's). A failure is a word on standard error, another exit
code, a process that goes on, or a file left half written.
"""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from gradcli.engine.registry import table
from tests import fuzz
from tests.fuzz import command_lines, files

PATIENCE = 20


def started(path: list[str], stream: str) -> str:
    """A program that is gradcli's command, and writes `begun` to a stream when our first line has run.

    path: where Python finds it. The interpreter's own start is not ours.
    """
    return f"""
import sys
sys.path[:0] = {path!r}
sys.argv[0] = "gradcli"
from gradcli.engine.system import interrupts
first = interrupts.at_once
def at_once():
    first()
    sys.{stream}.write("begun\\n")
    sys.{stream}.flush()
interrupts.at_once = at_once
from gradcli.__main__ import main
main()
"""


START = started([str(Path(__file__).parents[2])], "stderr")
FOREVER = "y = 0\nfor i in range(10**9): y = y + 1\n"


def answer(line: command_lines.Line, folder: Path, moments: list[float]) -> tuple[int, str]:
    """Exit code and standard error of a line that gets the signal at these moments after its start."""
    process = subprocess.Popen(
        [sys.executable, "-X", "utf8", "-c", START, *line.argv],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        # a shell ignores the signal in what it starts in the background
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert process.stderr is not None and process.stdin is not None
    assert process.stderr.readline() == b"begun\n"
    try:
        process.stdin.write(line.stdin.encode(errors="surrogatepass"))
        if "repl" not in line.argv:  # a session waits for more
            process.stdin.close()
        else:
            process.stdin.flush()
    except BrokenPipeError:  # it has ended without reading
        pass
    begun = time.monotonic()
    for moment in moments:
        time.sleep(max(begun + moment - time.monotonic(), 0))
        process.send_signal(signal.SIGINT)
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        return -1, "goes on"
    finally:
        err = process.stderr.read().decode(errors="replace")
        for stream in (process.stdin, process.stderr):
            try:
                stream.close()
            except BrokenPipeError:
                continue
    return process.returncode, err


def only_notes(err: str) -> bool:
    """Whether standard error holds whole notes and nothing else: a line of a note goes on indented."""
    starts = ("gradcli: note: ", "gradcli: warning: ", " ")
    return not err or (
        err.endswith("\n") and all(line.startswith(starts) for line in err.splitlines())
    )


def attempt(random: random.Random, folder: Path) -> tuple[str, command_lines.Line, list[float]]:
    """What is wrong with the answer to an interrupted line ("" if nothing is), and which it was."""
    line = command_lines.fitting(random) if random.random() < 0.8 else command_lines.session(random)
    if random.random() < 0.5:  # so that it is still at work when the signal comes
        if line.argv[:2] == ["run", "-"] or line.argv[0] == "repl":
            line.stdin = FOREVER + "\n" + line.stdin
        elif line.argv[0] in command_lines.EXPRESSIONS:
            line.argv[1] = FOREVER + line.argv[1]
    longest = random.choice((0.05, 0.5, 2))
    moments = sorted(random.random() * longest for _ in range(random.choice((1, 1, 2, 5))))
    code, err = answer(line, folder, moments)
    said = "\n".join([*line.argv, line.stdin])
    stray = ""
    for path in folder.iterdir():
        if path.name not in files.contents():
            stray = path.name if path.name not in said else stray
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    if stray:
        return f"left a file behind: {stray!r}", line, moments
    quiet = "Traceback" not in err and "KeyboardInterrupt" not in err and "fault" not in err
    # ended by the signal; done before; or a session's answers until then
    if quiet and (code in (0, 1, 2) or (code == 130 and ("repl" in line.argv or only_notes(err)))):
        return "", line, moments
    return f"exit code {code}, and {err[-200:]!r}", line, moments


def run(seed: int, seconds: float) -> Iterator[str]:
    """The interrupted lines that do more than end."""
    table.base()
    failures: set[str] = set()
    reached: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path, data in files.contents().items():
            (folder / path).write_bytes(data)
        for random in fuzz.cases(seed, seconds):
            problem, line, moments = attempt(random, folder)
            reached["failed" if problem else "fine"] += 1
            if problem and problem[:40] not in failures:
                at = ", ".join(f"{moment:.4f}" for moment in moments)
                failures.add(problem[:40])
                yield f"{problem}\n  after {at} s: {line.told()}"
    print("interrupts:", dict(reached))

"""Running gradcli as a process of its own: in a pipe, and in a terminal that is really one.

The process is forked from a warm one, unless its environment says something to Python (see `warm`).
"""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import threading

from tests.commands import warm

GRADCLI = [sys.executable, "-m", "gradcli"]
CLEAN = {
    key: value
    for key, value in os.environ.items()
    if key not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "GRADCLI_DTYPE", "GRADCLI_DEBUG")
}


def environment(**env: str) -> dict[str, str]:
    """The tests' environment without what changes how gradcli prints."""
    return {**CLEAN, "TERM": "xterm-256color", "PYTHONUTF8": "1", **env}


def started(env: dict[str, str]) -> list[str]:
    """What starts gradcli in this environment: Python reads some settings only then."""
    return (
        GRADCLI if any(n.startswith(("PYTHON", "LC_", "LANG")) for n in env) else [*warm.command()]
    )


def piped(*argv: str, input: str | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    """Run gradcli with its streams in pipes."""
    return subprocess.run(
        [*started(env), *argv],
        env=environment(**env),
        input=input,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def in_terminal(*argv: str, columns: int = 80, **env: str) -> tuple[int, str]:
    """Run gradcli in a terminal; the exit code and everything that appears on the screen."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*started(env), *argv],
        env=environment(COLUMNS=str(columns), **env),
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    pieces: list[bytes] = []

    def read() -> None:
        while True:
            try:
                data = os.read(ours, 65536)
            except OSError:  # Linux says so when the other side is closed
                return
            if not data:
                return
            pieces.append(data)

    reader = threading.Thread(target=read)
    reader.start()
    code = process.wait(timeout=60)
    reader.join()
    os.close(ours)
    return code, b"".join(pieces).decode().replace("\r\n", "\n")

"""Running gradcli as a process of its own: in a pipe, and in a terminal that is really one.

The process is forked from a warm one, unless its environment says something to Python (see `warm`).
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import threading
import time

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


class Screens:
    """A session in a terminal of that width, drawn by an emulator of one, `pyte`."""

    LINES = 30

    def __init__(self, width: int, folder: str) -> None:
        import pyte

        self.screen = pyte.Screen(width, self.LINES)
        self.stream = pyte.ByteStream(self.screen)
        self.ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", self.LINES, width, 0, 0))
        # The prompt asks where its cursor is, to know how much room there is below.
        self.screen.write_process_input = lambda data: os.write(self.ours, data.encode())
        env = environment(GRADCLI_HISTORY=f"{folder}/history", PYTHONHASHSEED="0")
        self.process = subprocess.Popen(
            [*GRADCLI, "repl"], env=env, stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder,
            start_new_session=True,
        )  # fmt: skip
        os.close(theirs)

    def __enter__(self) -> Screens:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.ours)

    def until(self, text: str, seconds: float = 30.0) -> None:
        """Read until a text is on the screen and nothing more appears."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if select.select([self.ours], [], [], 0.4)[0]:
                self.stream.feed(os.read(self.ours, 65536))
            elif any(text in line for line in self.screen.display):
                return
        raise AssertionError("\n".join([f"{text!r} did not appear:", *self.screen.display]))

    def type(self, text: str) -> None:
        """Type it."""
        os.write(self.ours, text.encode())

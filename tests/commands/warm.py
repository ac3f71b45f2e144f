"""gradcli in a process of its own that need not start: forked from one that has imported everything.

A start is most of what a short command costs. `command()` stands for `python -m gradcli` where a test is
about what is printed, not about the start: the same arguments, environment, folder and streams. What a
start imports, reads or catches is tested with `tests.commands.terminal.GRADCLI`.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import pkgutil
import select
import shutil
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Runs without site-packages; passes on what a process is given, and leaves with its exit code.
CLIENT = """
import _socket, os, sys
path, *argv = sys.argv[1:]
server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
server.connect(path)
settings = [f"{name}={value}" for name, value in os.environ.items()]
text = "\\0".join([os.getcwd(), str(len(settings)), *settings, *argv]).encode(errors="surrogateescape")
streams = b"".join(n.to_bytes(4, sys.byteorder) for n in (0, 1, 2))
server.sendmsg([len(text).to_bytes(4, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
while text:
    text = text[server.send(text):]
sys.exit((server.recv(1) or b"\\x8b")[0])
"""


@cache
def command() -> tuple[str, ...]:
    """What is run in the place of `python -m gradcli`; starts the warm process when first asked for."""
    folder, owner = Path(tempfile.mkdtemp(prefix="gradcli-warm-")), os.getpid()
    path, client = folder / "socket", folder / "client.py"
    client.write_text(CLIENT)
    env = {**os.environ, "PYTHONUTF8": "1", "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.commands.warm", str(path)],
        env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT,
    )  # fmt: skip
    assert server.stdin is not None and server.stdout is not None
    assert server.stdout.read(1) == b"."  # it listens

    def end() -> None:
        if (
            os.getpid() == owner
        ):  # a command that forks ends as a process of its own, exit functions too
            server.stdin.close()
            server.wait()
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    return sys.executable, "-IS", str(client), str(path)


def script(folder: Path) -> None:
    """Put a `gradcli` for shells into a folder."""
    file = folder / "gradcli"
    file.write_text(f'#!/bin/sh\nexec {" ".join(command())} "$@"\n')
    file.chmod(0o755)


def serve(path: str) -> None:
    """Answer until standard input is closed."""
    rooms = "commands language formulas transforms graphs engine operators columns.compiler".split()
    for room in rooms:
        package = importlib.import_module(f"gradcli.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith(("__main__", "pytest_plugin", "make_index", "tables")):
                importlib.import_module(module.name)
    importlib.import_module("gradcli.engine.registry.table").load()
    gc.collect()
    gc.freeze()  # a collection in a child would make every page its own
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen(64)
        os.write(1, b".")
        while 0 not in (ready := select.select([0, listening.fileno()], [], [])[0]):
            assert ready
            asking, _ = listening.accept()
            if not os.fork():
                answer(asking)
            asking.close()
            reap(os.WNOHANG)
    reap(0)


def reap(options: int) -> None:
    """Take leave of the children that are done (0: of all), so that their times are ours."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, options)[0]:
            pass


def answer(asking: socket.socket) -> None:
    """Run gradcli with the streams that were sent, and send its exit code; never returns."""
    size, streams, _, _ = socket.recv_fds(asking, 4, 3)
    text = b""
    while len(text) < int.from_bytes(size, "big"):
        text += asking.recv(1 << 16)
    if not (child := os.fork()):
        asking.close()
        folder, count, *rest = text.decode(errors="surrogateescape").split("\0")
        be_gradcli(folder, rest[: int(count)], rest[int(count) :], streams)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    asking.send(bytes([code if code >= 0 else 128 - code]))
    os._exit(0)


def be_gradcli(folder: str, settings: list[str], argv: list[str], streams: list[int]) -> None:
    """What `python -m gradcli` does once it has imported all; never returns."""
    code = 70
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(setting.split("=", 1) for setting in settings)
        sys.argv = ["gradcli", *argv]
        sys.stdin = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
        sys.stdout = open(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
        try:
            importlib.import_module("gradcli.cli").main()
        except SystemExit as leaving:
            code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


if __name__ == "__main__":
    serve(sys.argv[1])

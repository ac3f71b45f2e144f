"""gradcli run in this process, and the console blocks of the documentation run in a shell."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from gradcli.cli import main
from tests.commands import warm
from tests.commands.terminal import environment

ROOT = Path(__file__).resolve().parents[2]


def run(*argv: str, **given: Any) -> Any:
    """What click's runner gives of a command line."""
    return CliRunner().invoke(main, list(argv), prog_name="gradcli", **given)


def outcome(*argv: str, stdin: bytes | str | None = None) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command line that meets no fault of ours."""
    found = run(*argv, input=stdin)
    assert "fault in gradcli" not in found.stderr, found.stderr
    return found.exit_code, found.stdout, found.stderr


def typed(block: str) -> Iterator[tuple[str, str]]:
    """The commands of a console block, each with what is shown below it."""
    for piece in re.split(r"^\$ ", block, flags=re.M)[1:]:
        command, _, shown = piece.partition("\n")
        yield command, shown


def in_a_shell(command: str, folder: Path, scripts: Path) -> str:
    """What a command prints, both streams; `scripts` is a folder that gets the `gradcli` of this checkout."""
    scripts.mkdir(exist_ok=True)
    warm.script(scripts)
    path = os.pathsep.join([str(scripts), str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-c", command],
        env=environment(PATH=path, PYTHONPATH=str(ROOT)),
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=60,
    )
    return done.stdout

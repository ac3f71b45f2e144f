"""Running the examples as a person does: in a shell, in their folder, with gradcli on the PATH."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from tests.commands import warm
from tests.commands.terminal import environment

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples"
SCRIPTS = sorted(FOLDER.glob("*.sh"))
PROGRAMS = sorted((FOLDER / "programs").glob("*.py"))


def stored(path: Path) -> Path:
    """Where the output of an example is kept."""
    return FOLDER / "output" / f"{path.stem}.txt"


def output(path: Path) -> str:
    """Everything that appears on the screen of somebody who runs the example."""
    command = ["bash", path.name] if path.suffix == ".sh" else ["gradcli", "run", path.name]
    with tempfile.TemporaryDirectory() as folder:
        warm.script(Path(folder))
        env = environment(
            PATH=f"{folder}{os.pathsep}{os.environ['PATH']}", PYTHONPATH=str(ROOT), LC_ALL="C.UTF-8"
        )
        done = subprocess.run(
            command,
            cwd=path.parent,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=120,
            encoding="utf-8",
        )
    return done.stdout

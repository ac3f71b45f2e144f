"""Every example of the README and of the guide is run, and what it prints compared."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import warm
from tests.commands.terminal import environment

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDE = "\n".join(
    page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs" / "guide").glob("*.md"))
)


def examples(text: str) -> list[tuple[str, str]]:
    """(command, what it prints) of every console block."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```$", text, re.M | re.S):
        for piece in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, output = piece.partition("\n")
            found.append((command, output))
    return found


TABLES = (ROOT / "docs" / "tables.md").read_text(encoding="utf-8")
OTHERS = dict.fromkeys(examples(GUIDE) + examples(TABLES))
# All of the README run always, of the guide and of the page of tables every third.
EXAMPLES = [
    pytest.param(*pair, id=pair[0], marks=[pytest.mark.long] * (place % 3 > 0))
    for place, pair in [
        *((0, pair) for pair in dict.fromkeys(examples(README))),
        *enumerate(pair for pair in OTHERS if pair not in examples(README)),
    ]
]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A PATH where gradcli is the one under test."""
    folder = tmp_path_factory.mktemp("bin")
    warm.script(folder)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


@pytest.mark.parametrize(("command", "output"), EXAMPLES)
def test_example(command, output, path, tmp_path):
    done = subprocess.run(
        ["bash", "-c", command],
        env=environment(PATH=path, PYTHONPATH=str(ROOT)),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout == output


def test_python_examples():
    for block in re.findall(r"^```python\n(.*?)^```$", README, re.M | re.S):
        wanted = re.findall(r"print\(.*\)  # (.*)$", block, re.M)
        done = subprocess.run(
            [sys.executable, "-c", block],
            env=environment(PYTHONPATH=str(ROOT)),
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.splitlines() == wanted


def test_the_readme_begins_with_two_commands():
    first = re.search(r"^```sh\n(.*?)^```$", README, re.M | re.S)
    assert first is not None
    assert README.index("```") == first.start()
    lines = first[1].splitlines()
    assert len(lines) == 2
    assert 'gradcli grad "2*dot(x,x)" --x 0,1,2,3' in lines[0]
    assert "pytest" in lines[1]


def test_every_command_is_in_the_readme_and_in_the_guide():
    from gradcli.commands import COMMANDS

    for command in COMMANDS:
        assert re.search(rf"^\| [^|]*`{command}[ `]", README, re.M), command
        assert re.search(rf"`(gradcli )?{command}[ `]", GUIDE) or f"## `{command}`" in TABLES, (
            command
        )


def test_the_readme_is_read_in_one_sitting():
    assert len(README.splitlines()) <= 120

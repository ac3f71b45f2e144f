"""Every example of the README and of the guide is run, and what it prints compared."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.running import ROOT, in_a_shell, typed
from tests.commands.terminal import environment

README = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDE = "\n".join(
    page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs" / "guide").glob("*.md"))
)


def examples(text: str) -> list[tuple[str, str]]:
    """(command, what it prints) of every console block."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```$", text, re.M | re.S):
        silent = ""  # commands that print nothing, as those that write a file: run with the next
        for command, shown in typed(block):
            silent += command
            if shown:
                found.append((silent, shown))
            silent = "" if shown else f"{silent}\n"
    return found


TABLES = "\n".join(
    (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8") for page in ("tables", "files")
)
OTHERS = dict.fromkeys(examples(GUIDE) + examples(TABLES))
# All of the README run always, of the guide and of the pages of tables every third.
EXAMPLES = [
    pytest.param(*pair, id=pair[0], marks=[pytest.mark.long] * (place % 3 > 0))
    for place, pair in [
        *((0, pair) for pair in dict.fromkeys(examples(README))),
        *enumerate(pair for pair in OTHERS if pair not in examples(README)),
    ]
]


@pytest.mark.parametrize(("command", "output"), EXAMPLES)
def test_example(command: str, output: str, tmp_path: Path, tmp_path_factory) -> None:
    assert in_a_shell(command, tmp_path, tmp_path_factory.getbasetemp() / "bin") == output


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

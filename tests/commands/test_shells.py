"""What shells make of values without quotes: each row of docs/guide/values.md, in each shell there is."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.commands.running import run
from tests.sweep import sweep

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "values.md"
COLUMNS = {"bash": 0, "dash": 0, "ksh": 0, "zsh": 1, "fish": 2}


def rows() -> list[tuple[list[str], str, list[str]]]:
    """(the texts, what stands behind them, what each shell makes of them) of the page's table."""
    _, _, table = PAGE.read_text(encoding="utf-8").partition("| text | bash")
    found = []
    for line in table.splitlines()[2:]:
        if not line.startswith("|"):
            break
        text, *made = [cell.strip() for cell in line.strip("|").split("|")]
        texts = re.findall(r"`([^`]+)`", text)
        if " with " in text:
            texts = texts[:1]
        found.append((texts, text.rpartition("`")[2], made))
    return found


@pytest.mark.parametrize("shell", COLUMNS)
def test_the_page_says_what_the_shell_does(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    assert len(rows()) >= 11
    for texts, condition, made in rows():
        for text in texts:
            wanted = made[COLUMNS[shell]].partition(", unless")[0]
            folder = tmp_path / f"{shell}-{len(list(tmp_path.iterdir()))}"
            folder.mkdir()
            if "there" in condition:
                (folder / "x0").touch()
            done = subprocess.run(
                [shell, "-c", f"printf '<%s>' {text}"],
                cwd=folder, capture_output=True, text=True, timeout=20,
            )  # fmt: skip
            assert fits(wanted, text, done, folder), (shell, text, wanted, done)


def fits(wanted: str, text: str, done: subprocess.CompletedProcess[str], folder: Path) -> bool:
    """Whether a shell has done what the page says."""
    if wanted == "as it is":
        return done.stdout == f"<{text}>" and done.returncode == 0
    if wanted == "the file's name":
        return done.stdout == "<x0>"
    if wanted.startswith("writes a file"):
        return (folder / "2").exists() and not done.stdout
    if wanted.startswith("reads a file"):
        return done.returncode != 0 and "1" in done.stderr
    if wanted == "two commands":
        return done.returncode != 0 and text[-3:].strip(";|") in done.stderr
    if wanted == "empty":
        return done.stdout == "<>"
    assert wanted == "an error", wanted
    return bool(done.stderr) and f"<{text}>" not in done.stdout


@sweep(
    ("line", "hint"),
    [
        ("2*dot(x,x) --x 0 1 2 3", "--x '0,1,2,3'"),
        ("--x 0 1 2 3 2*dot(x,x)", "--x '0,1,2,3'"),
        ("sum(a*x) --a 2 --x -1.5 1e3", "--x '-1.5,1e3'"),
    ],
    parts=1,
)
def test_numbers_in_several_words_are_one_value(line: str, hint: str) -> None:
    """As PowerShell passes 0,1,2,3."""
    done = run("grad", *line.split(" "))
    assert done.exit_code == 2
    assert f"one word, which PowerShell takes in quotes: {hint}" in done.stderr
    shown = done.stderr.rpartition(": ")[2].strip().replace("'", "").split(" ")
    source = next(word for word in line.split(" ") if "*" in word)
    again = run("grad", source, *shown, *(["--a", "2"] if "a*" in source else []))
    assert again.exit_code == 0

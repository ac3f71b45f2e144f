"""The session as it looks: screens of a real terminal at three widths, with their colours.

`python -m tests.commands.test_repl_screens` writes the golden file.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.commands.terminal import Screens

GOLDEN = Path(__file__).parents[1] / "golden" / "repl_screens.txt"
WIDTHS = (60, 80, 200)
# What is typed, and what appears in answer to it; a screen is kept where there is a title.
STEPS = [
    ("def twice(x):\r", "...", ""),
    ("return 2*x.sin()  # of 'x'", "# of 'x'", "colours while typing"),
    ("\r\r", ">>> ", ""),
    ("x = tensor([1., 2.], requires_grad=True)\r", ">>> ", ""),
    ("loss = (twice(x)**2).sum()\r", ">>> ", ""),
    ("vars\rgrad loss\r", "x.grad", "vars, grad loss"),
    ("\x0clogs\t", "logsumexp", "completion"),
    ("\x15softmax(x, ", "dim", "a signature while typing"),
    ("\x15?softmax\r", "node", "?softmax"),
    ("\x0cgraph loss\r", "AccumulateGrad", "graph"),
    ("\x0closs.backwards()\r", "hint", "an error"),
]
_LETTERS = {
    "default": " ", "magenta": "m", "green": "g", "cyan": "c", "red": "r", "blue": "b",
    "brown": "y", "yellow": "y", "brightblack": "d", "black": "k",
}  # fmt: skip


def shown(screen: Any) -> Iterator[str]:
    """The lines of a screen, each with one of colours below it where it has some."""
    for number, line in enumerate(screen.display):
        row: Any = screen.buffer[number]
        if line.strip():
            yield f"|{line.rstrip()}"
            marks = [_mark(row[column]) for column in range(len(line))]
            if colours := "".join(marks).rstrip():
                yield f":{colours}"


def _mark(char: Any) -> str:
    """A letter for the looks of a character: a colour, B for bold, R for reversed."""
    if char.data == " " and not char.reverse and char.bg == "default":
        return " "
    letter = _LETTERS.get(char.fg, "?")
    if char.reverse or char.bg != "default":
        return "R"
    return "B" if char.bold and letter == " " else letter


def screens(width: int) -> str:
    """Every screen that is kept, at that width."""
    found = []
    with tempfile.TemporaryDirectory() as folder, Screens(width, folder) as session:
        session.until(">>> ")
        for typed, answer, title in STEPS:
            session.type(typed)
            session.until(answer)
            if title:
                found.append(
                    "\n".join([f"== {title}, {width} columns", *shown(session.screen), ""])
                )
    return "\n".join(found)


@pytest.mark.long
@pytest.mark.needs("prompt_toolkit", "pyte")
@pytest.mark.parametrize("width", WIDTHS)
def test_screens_are_as_they_were(width: int) -> None:
    assert screens(width) in GOLDEN.read_text(encoding="utf-8")


def test_no_screen_is_wider_than_its_terminal() -> None:
    """And each has what it is about: of the golden file, wherever the tests run."""
    text = GOLDEN.read_text(encoding="utf-8")
    for part in text.split("== ")[1:]:
        title, *lines = part.splitlines()
        assert max(map(len, lines)) - 1 <= int(title.split()[-2])
    assert text.count("softmax") > 6 and "x.grad = " in text


if __name__ == "__main__":
    GOLDEN.write_text("\n".join(map(screens, WIDTHS)), encoding="utf-8")

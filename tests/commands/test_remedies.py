"""A remedy that is printed names options of the command at hand, or the command that has them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradcli.commands import COMMANDS
from gradcli.commands.declarations import declaration
from gradcli.commands.options import ELSEWHERE, MEANT
from tests.commands.running import outcome

DECLARED = {
    name: set(declaration(name).declared())
    for name in COMMANDS
    if name not in ("completion", "help")
}
TYPED = sorted({*MEANT, *ELSEWHERE}.union(*DECLARED.values()))
_OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")


def strangers(command: str, said: str, arguments: list[str]) -> Iterator[str]:
    """The options of hints that neither the command has, nor the one that stands before them."""
    text = " ".join(arguments)
    for line in said.splitlines():
        if not line.startswith("hint: "):
            continue
        for option in _OPTION.finditer(line):
            named = re.findall(r"gradcli (\w+)", line[: option.start()])
            of = next((name for name in reversed(named) if name in DECLARED), command)
            variable = re.search(rf"(?<!\w){re.escape(option[0][2:])}(?!\w)", text)
            if option[0] not in DECLARED[of] and not variable:
                yield f"{option[0]} is no option of gradcli {of}: {line}"


def line_of(command: str) -> list[str]:
    """A command line that is right but for what follows it."""
    return ["x**2", "q.csv"] if command in ("map", "fit") else ["x**2", "--x", "3"]


@pytest.mark.long
@pytest.mark.parametrize("command", [c for c in DECLARED if declaration(c).operand == "EXPR"])
def test_remedies_for_options_that_a_command_lacks(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.csv").write_text("x,y\n1,2\n3,4\n")
    found = []
    for option in TYPED:
        if option not in DECLARED[command]:
            arguments = [*line_of(command), option, "3"]
            found += strangers(command, outcome(command, *arguments)[2], arguments)
    assert found == []

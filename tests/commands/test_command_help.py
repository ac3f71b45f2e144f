"""The short help of a command fits a screen and shows the options that README and the docs use."""

import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from click.testing import CliRunner

from gradcli.cli import main
from gradcli.commands import COMMANDS
from gradcli.commands.click_commands import loaded
from gradcli.commands.common_options import clause, common

HOME = Path(__file__).parents[2]
DOCS = [HOME / "README.md", *sorted((HOME / "docs").glob("guide/*.md")),
        *sorted((HOME / "docs").glob("tutorials/*.md"))]  # fmt: skip
_LINE = re.compile(r"gradcli (\w+) ([^`|\n]*)")
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")


def first_names(command: str) -> dict[str, str]:
    """The first name of each option, by all of its names."""
    options = loaded(command).declaration.options
    return {word: o.names[0].split("/")[0] for o in options
            for name in o.names for word in name.split("/")}  # fmt: skip


def used() -> dict[str, Counter[str]]:
    """How often the docs use the options of each command."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for path in DOCS:
        for name, rest in _LINE.findall(path.read_text(encoding="utf-8")):
            if name in COMMANDS:
                names = first_names(name)
                words = re.findall(r"(?<!\S)(--?[A-Za-z][\w-]*)", _QUOTED.sub("Q", rest))
                counts[name].update(names[word] for word in words if word in names)
    return counts


USED = used()
SHOWN = {
    name: [n for group in common(name) for n in group] for name in COMMANDS if any(common(name))
}


def short_help(name: str, columns: int = 80) -> list[str]:
    result = CliRunner().invoke(main, [name, "--help"], prog_name="gradcli", terminal_width=columns)
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


@pytest.mark.parametrize("name", SHOWN)
def test_what_the_docs_use_most_is_shown(name):
    often = [option for option, count in USED[name].most_common(8) if count > 1]
    assert set(often) <= set(SHOWN[name])


@pytest.mark.parametrize("name", SHOWN)
def test_it_fits_a_screen_and_its_last_line_names_the_rest(name):
    lines = short_help(name)
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 100  # an example may be longer than the screen is wide
    assert re.fullmatch(rf"gradcli {name} --help-all lists all options \(\d+ more\)\.", lines[-1])
    text = "\n".join(lines)
    assert all(re.search(rf"^  {option}\b", text, re.MULTILINE) for option in SHOWN[name])
    assert len(SHOWN[name]) <= 10
    options = lines[lines.index("Options:") :]
    assert all(line.startswith("  -") for line in options if line[:2] == "  ")


@pytest.mark.parametrize("columns", [60, 100, 200])
@pytest.mark.parametrize("name", SHOWN)
def test_nothing_is_wider_than_the_terminal_but_examples(name, columns):
    lines = [line for line in short_help(name, columns) if "gradcli" not in line]
    assert max(map(len, lines)) <= columns


@pytest.mark.parametrize(
    "text, room, shown",
    [
        ("A node.", 40, "A node."),
        ("Read a table piece by piece; or at once.", 30, "Read a table piece by piece."),
        ("Write the table to a file, as CSV or as Parquet.", 40, "Write the table to a file."),
        ("Differentiate by these variables only.", 20, "Differentiate by these variables only."),
    ],
)
def test_a_text_is_cut_where_a_clause_ends(text, room, shown):
    assert clause(text, room) == shown

"""What a newcomer types about a table that means something else here: it is said, with what to write."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from gradcli.commands.heading_words import heading_error, of_one_row
from tests.commands.running import outcome

UNITS = "energy/keV,t [s],Voltage (V),counts\n10,0,1.0,100\n20,1,2.1,81\n30,2,2.9,66\n40,3,4.2,54\n"
PLAIN = "sigma,x,y\n0.1,1,2.1\n0.2,2,3.9\n0.1,3,6.1\n0.1,4,8.2\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "u.csv").write_text(UNITS)
    (tmp_path / "s.csv").write_text(PLAIN)
    return tmp_path


# (a text, the headings, what to write; None where it is an expression)
HEADINGS = [
    ("2*energy/keV", "energy/keV,counts", "2*energy"),
    ("2*energy / keV", "energy/keV,counts", "2*energy"),
    ("energy/keV", "energy/keV,keV", None),
    ("energy/keVs", "energy/keV,counts", None),
    ("Voltage (V)*2", "Voltage (V),counts", "Voltage*2"),
    ("Voltage/V*2", "Voltage (V),counts", "Voltage*2"),
    ("t [s] + 1", "t [s],counts", "t + 1"),
    ("t[s] + 1", "t [s],counts", "t + 1"),
    ("t + 1", "t [s],counts", None),
    ("x*y/z", "x,y,z", None),
]


@pytest.mark.parametrize(("text", "names", "written"), HEADINGS)
def test_headings_with_units(text: str, names: str, written: str | None) -> None:
    found = heading_error(text, "f.csv", names.split(","))
    if written is None:
        assert found is None
    else:
        assert found is not None and f'as in "{written}"' in str(found.hint)
    assert heading_error(text, "f.csv", names.split(","), ("keV", "V", "s")) is None


# (a text, columns of numbers, other variables, the command that it names; None where it is of one row)
CALLS = [
    ("x/max(x)", "x", "", "gradcli eval 'max(x)' --x @f.csv:x"),
    ("torch.mean(x*y) + 1", "x y", "", "gradcli eval 'mean(x*y)' --x @f.csv:x --y @f.csv:y"),
    ("gradient(y, x)", "x y", "", "'gradient(y, spacing=(x,))' --x @f.csv:x --y @f.csv:y"),
    ("max(x, 0) - 1", "x", "", "gradcli eval 'max(x, 0)'"),
    ("max(x, y)", "x y", "", None),
    ("sum(w*x)", "x", "w", None),
    ("sum(w)", "x", "w", None),
    ("maximum(x, y) + x.sum()", "x y", "", None),
    ("exp(x)", "x", "", None),
]


@pytest.mark.parametrize(("text", "columns", "others", "command"), CALLS)
def test_functions_of_all_rows(text: str, columns: str, others: str, command: str | None) -> None:
    found = of_one_row(text, "f.csv", {n: [n] for n in columns.split()}, others.split())
    assert found is None if command is None else command in str(found)


LINES = [
    ('fit "counts == A*exp(-b*energy/keV)" u.csv', 2, 'as in "counts == A*exp(-b*energy)"'),
    ('fit "counts == a*Voltage (V)" u.csv', 2, 'as in "counts == a*Voltage"'),
    ('map "Voltage (V)*2" u.csv', 2, 'as in "Voltage*2"'),
    ('plot "energy/keV" u.csv', 2, "its numbers are energy here"),
    ('root "x == 2*t [s]" u.csv --x 2', 2, 'as in "x == 2*t"'),
    ('map "2*energy/keV" u.csv --keV 2', 0, "energy is the column 'energy/keV'"),
    ('map "counts/max(counts)" u.csv', 0, "gradcli eval 'max(counts)' --counts @u.csv:counts"),
    ('map "counts" u.csv --where "t > mean(t)"', 0, "--t '@u.csv:t [s]'"),
    ('plot "counts/max(counts)" u.csv', 0, "max(…) is of the number of one row"),
    ('fit "counts/max(counts) == a*t" u.csv', 0, "max(…) is of the number of one row"),
    ('fit "counts == 3" u.csv', 2, "as in counts == 3 + a"),
    ('fit "counts == a" u.csv', 0, "counts is the only column in the equation"),
    ('fit "y == a + x" s.csv --x 2', 1, "x is a parameter, as it is given a start"),
    ('fit "y == sigma*x + b" s.csv --let sigma=2', 0, "sigma is a parameter"),
    ('fit "y == sigma*x + b" s.csv --sigma 0.1', 0, "sigma in the expression is the column"),
    ('eval "gradient(y, 0.5)" --y 1,2,3', 1, "gradient(y, spacing=0.5)"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [LINES[0], *(pytest.param(*line, marks=pytest.mark.long) for line in LINES[1:])],
)
def test_it_is_said(line: str, code: int, said: str) -> None:
    found = outcome(*shlex.split(line))
    assert (found[0], said in found[2]) == (code, True), found


@pytest.mark.long
def test_the_command_that_is_named_is_of_all_rows() -> None:
    err = outcome("map", "gradient(counts, t)", "u.csv", "--bad-rows", "nan")[2]
    command = err.partition("of all rows: ")[2].partition("gradcli: ")[0]
    code, out, _ = outcome(*shlex.split(command.replace("\n", " "))[1:])
    assert (code, out) == (0, "[-19, -17, -13.5, -12]\n")

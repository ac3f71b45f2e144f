"""`gradcli plot`: what is drawn on a terminal, into files, and as numbers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.commands.running import run
from tests.sweep import sweep

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "plots.txt"
SHOWN = [
    "plot x*sin(x) --x -10:10 --width 60",
    "plot x*sin(x) --x -10:10 --width 100",
    "plot 1/x,tan(x) --x -4:4 --order 0 --width 60",
    "plot floor(x) --x 0:4 --width 60 --height 8",
    "plot log(x) --x -1:3 --at 1 --width 60",
    "plot x**2+y**2 --x -1:1 --y -1:1 --descend 0.1 --at x=0.8,y=0.6 --steps 9 --width 50",
    "plot sin(x) --x 0:3 --width 40 --height 6 --color always",
    "plot sin(x)*cos(y) --x -3:3 --y -3:3 --surface --width 60",
    "fit T==2*pi*sqrt(L/g) examples/data/pendulum.csv --g 10 --plot",
    "minimize x**2-x --x 2 --plot -",
    "root tan(x)==x --x 0:5 --all --plot --precision 6",
]


def drawn() -> str:
    """Every picture under its command line; `python -m tests.commands.test_command_plot` writes it."""
    return "".join(f"$ gradcli {line}\n{run(*line.split()).stdout}\n" for line in SHOWN)


def test_pictures_on_a_terminal_are_as_they_were() -> None:
    assert drawn() == GOLDEN.read_text(encoding="utf-8")


def test_poles_do_not_flatten_a_surface() -> None:
    shown = run(
        "plot", "1/(x*y)", "--x", "-1:1", "--y", "-1:1", "--surface", "--width", "60"
    ).stdout
    assert "inf" not in shown and len(shown.splitlines()) > 9


def test_points_as_numbers() -> None:
    found = json.loads(run("plot", "x**2", "--x", "0:2", "--json").stdout)["points"]
    x = np.array(found["x"])
    assert x[0] == 0 and x[-1] == 2
    assert np.allclose(found["x**2"], x**2) and np.allclose(found["d/dx x**2"], 2 * x)
    first, second, *_ = run("plot", "x**2", "--x", "0:2", "--csv").stdout.splitlines()
    assert (first, second) == ("x,x**2,d/dx x**2", "0,0,0")


@pytest.mark.needs("matplotlib")
@pytest.mark.parametrize(
    "form", ["svg", *(pytest.param(f, marks=pytest.mark.long) for f in ("png", "pdf"))]
)
def test_files(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"p.{form}"
    wanted = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}
    argv = ["plot", "x*sin(x)", "--x", "-3:3", "-o", str(path), "--theme", "dark"]
    assert run(*argv).stdout == ""
    first = path.read_bytes()
    assert first.startswith(wanted[form])
    run(*argv)
    assert path.read_bytes() == first  # the same every time


@pytest.mark.long
@pytest.mark.needs("matplotlib")
def test_tables_surfaces_and_matrices(tmp_path: Path) -> None:
    table = tmp_path / "d.csv"
    table.write_text("t,y\n1,2\n2,1.1\n3,0.6\n", encoding="utf-8")
    lines = [
        ["plot", "y == a*exp(-t/2)", str(table), "--a", "3"],
        ["plot", "sin(x)*y", "--x", "-1:1", "--y", "-1:1", "--surface"],
        ["plot", "sin(x)*y", "--x", "-1:1", "--y", "-1:1"],
        ["jacobian", "sin(x)*sum(x)", "--x", "1,2,3"],
        ["hessian", "sum((x[1:] - x[:-1]**2)**2)", "--x", "1,2,3", "--sparse"],
    ]
    for i, line in enumerate(lines):
        path = tmp_path / f"{i}.png"
        found = run(*line, "-o", str(path))
        assert found.exit_code == 0 and path.read_bytes().startswith(b"\x89PNG"), found.stderr
        if i == 0:
            assert "from the curve" in found.stderr


REFUSED = {
    "plot x --x 3": "no variable has a range",
    "plot x*y*z": "3 variables have ranges (x, y, z)",
    "plot x --x 2:1": "--x 1:2",
    "plot x -o p.gif": "there are .svg, .png, .pdf",
    "plot log(-x**2) --x 1:2": "there is no number to draw",
    "plot z==a*t {table} --a 1": "there is no column 'z'",
    "plot word==a*t {table} --a 1": "`zz` is not a number",
    "plot t*a {table} --a 1": 'plot "COLUMN == t*a"',
    "plot y==a*t {table}.csv --a 1": "No such file",
    "plot outer(x*ones(2),x*ones(2)) --x 1:2": "a curve needs a number",
    "plot x+y --x 0:1 --y 0:1 --descend 0.1": "--at x=VALUE,y=VALUE",
    "plot x+y --x 0:1 --y 0:1 --json": "over one variable",
    "plot x --x 0:1 --at y=1": "--at x=1",
    "plot x+": "a value is missing",
    "fit y==a*t {table} --a 1 --plot --json": "name a file: --plot FILE.svg",
    "minimize x**2 --x 1 --plot p.gif": "there are .svg, .png, .pdf",
    "jacobian x*ones(2,2,2) --x 1,2 -o j.svg": "a picture is of a matrix",
}


def test_the_equation_may_follow_other_lines(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("t,y\n0,1\n1,0.5\n", encoding="utf-8")
    found = run("plot", "u = a*t\ny == exp(-u)", str(table), "--a", "1", "--json", "--order", "0")
    points = json.loads(found.stdout)["points"]
    assert np.allclose(points["exp(-u)"], np.exp(-np.array(points["t"])))


@sweep("line", REFUSED, parts=1)
def test_refused(line: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("t,y,word\n1,2,3\n2,1.1,zz\n", encoding="utf-8")
    found = run(*line.format(table=tmp_path / "t.csv").split())
    assert found.exit_code in (1, 2) and REFUSED[line] in found.stderr, found.stderr


if __name__ == "__main__":
    GOLDEN.write_text(drawn(), encoding="utf-8")


def test_a_row_without_a_number_is_left_out_where_that_is_asked(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text("x,y\n0,0\n1,nan\n2,2\n3,\n")
    found = run("plot", "y == x", str(path), "--missing", "skip", "--json")
    assert found.exit_code == 0, found.stderr
    assert "a number is missing" in run("plot", "y == x", str(path)).stderr

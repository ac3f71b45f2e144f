"""`gradcli plot`: what is drawn on a terminal, into files, and as numbers."""

from __future__ import annotations

import json
import re
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


@pytest.mark.long
def test_pictures_on_a_terminal_are_as_they_were(monkeypatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)  # which xdist sets in its processes
    assert drawn() == GOLDEN.read_text(encoding="utf-8")


def test_several_tangents_and_several_curves() -> None:
    said = run("plot", "x**2", "--x", "0:3", "--at", "1,2", "--order", "0").stdout
    assert "tangent at 1: slope 2" in said and "tangent at 2: slope 4" in said
    assert "d/dx" not in run("plot", "x, x**2", "--x", "0:3").stdout
    assert "d/dx" in run("plot", "x, x**2", "--x", "0:3", "--order", "1").stdout


def test_gradient_descent_of_one_variable() -> None:
    argv = ("plot", "x**2", "--x", "-2:2", "--descend", "0.5", "--at", "1", "--width", "40")
    found = run(*argv)
    assert "•• gradient descent" in found.stdout
    assert found.stderr == "gradcli: note: after 1 step of 0.5: x = 0; --csv prints the steps\n"


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
    "plot z==a*t {table} --a 1": "z is not a column of",
    "plot word==a*t {table} --a 1": "`zz` is not a number",
    "plot t*q {table}": 'plot "COLUMN == t*q"',
    "plot yy {table}": "did you mean `y`",
    "plot 3 {table}": "no column of",
    "plot t {table} --over q": "--over: 'q' is not a column",
    "plot t,t*1j {table}": "is complex",
    "plot y==a*t {table} --a 1 --hist": "--hist takes columns",
    "plot sin(x) --hist": "--hist needs a table",
    "plot sin(x) --where x>1": "--where needs a table",
    "plot x --log x --x -1:1": "a logarithmic one above 0",
    "plot x --x 0:1 --xlim 3": "--xlim wants LOW:HIGH",
    "plot x --x 0:1 --ylim 3:2": "there is nothing between 3 and 2",
    "plot x --x 1:2 --log y --ylim -1:": "a logarithmic axis begins above 0, not at -1",
    "fit y==a*t {table} --a 1 --plot x.svg --band 2": "--band: 2 is not a confidence level",
    "plot y==a*t {table}.csv --a 1": "No such file",
    "plot outer(x*ones(2),x*ones(2)) --x 1:2": "a curve needs a number",
    "plot x+y --x 0:1 --y 0:1 --descend 0.1": "as in gradcli plot x+y --x=0:1 --y=0:1 --descend 0.1 --at x=0.75,y=0.75",  # noqa: E501
    "plot x+y --x 0:1 --y 0:1 --json": "over one variable",
    "plot x --x 0:1 --at y=1": "--at x=1",
    "plot x+": "a value is missing",
    "fit y==a*t {table} --a 1 --plot --json": "name a file: --plot FILE.svg",
    "minimize x**2 --x 1 --plot p.gif": "there are .svg, .png, .pdf",
    "jacobian x*ones(2,2,2) --x 1,2 -o j.svg": "a picture needs a matrix",
}


def test_the_equation_may_follow_other_lines(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("t,y\n0,1\n1,0.5\n", encoding="utf-8")
    found = run("plot", "u = a*t\ny == exp(-u)", str(table), "--a", "1", "--json", "--order", "0")
    points = json.loads(found.stdout)["points"]
    assert np.allclose(points["exp(-u)"], np.exp(-np.array(points["t"])))


DECAY = "t [s],U [V],dU,kind\n0,5.1,0.1,A\n1,3.2,0.1,A\n2,1.8,0.1,B\n3,1.2,0.1,B\n"


@pytest.fixture
def decay(tmp_path: Path) -> str:
    path = tmp_path / "decay.csv"
    path.write_text(DECAY, encoding="utf-8")
    return str(path)


# -- (arguments behind the table, what --csv prints) -----------------------------------------------------
T, U = "0 1 2 3".split(), "5.1 3.2 1.8 1.2".split()
COLUMNS = {
    "U": {"t [s]": T, "U [V]": U},
    "U, dU": {"t [s]": T, "U [V]": U, "dU": ["0.1"] * 4},
    "": {"t [s]": T, "U [V]": U, "dU": ["0.1"] * 4},
    "U/2": {"t [s]": T, "U/2": "2.55 1.6 0.9 0.6".split()},
    "k*U --k 2": {"t [s]": T, "k*U": "10.2 6.4 3.6 2.4".split()},
    "U --where t>0": {"t [s]": T[1:], "U [V]": U[1:]},
    "t": {"row": "1 2 3 4".split(), "t [s]": T},
    "dU --over U": {"U": U[::-1], "dU": ["0.1"] * 4},
}


@sweep("argv", COLUMNS, parts=1)
def test_columns_are_drawn_over_the_first(argv: str, decay: str) -> None:
    text, *options = argv.split(" --")
    words = [
        *([text] if text else []),
        decay,
        *f" --{' --'.join(options)}".split()[: 2 * len(options)],
    ]
    found = run("plot", *words, "--csv")
    assert found.exit_code == 0, found.stderr
    head, *rows = found.stdout.splitlines()
    columns = zip(*[row.split(",") for row in rows], strict=True)
    assert dict(zip(head.split(","), map(list, columns), strict=True)) == COLUMNS[argv]


def test_a_histogram_counts(decay: str) -> None:
    found = run("plot", "U", decay, "--hist", "--bins", "2", "--json")
    assert json.loads(found.stdout)["counts"] == {"U [V]": [2, 2]}
    drawn = run("plot", "U", decay, "--hist", "--width", "40", "--height", "6").stdout
    assert "count" in drawn and "U [V]" in drawn


def test_an_equation_may_have_a_formula_of_columns_on_its_left(decay: str) -> None:
    found = run("plot", "log10(U) == c - t/4", decay, "--c", "0.7")
    assert "the points are 0.0" in found.stderr and "log10(U)" in found.stdout


LABELLED = {
    "plot U {table}": ["U [V]", "t [s]"],
    "plot U {table} --by kind": ["kind = A", "kind = B"],
    "plot U {table} --title Decay --xlabel time --ylabel volts": ["Decay", "time", "volts"],
    "plot U==5*exp(-t/2) {table}": ["U [V]", "t [s]", "residual", "5*exp(-t/2)"],
    "fit U==a*exp(-t/b) {table} --sigma dU --plot": [
        "U [V]",
        "t [s]",
        "±1σ band",
        "χ²/dof = ",
        "p = ",
    ],
    "fit U==a*exp(-t/b) {table} --plot --band 0.95": ["95% band"],
    "fit U==a*exp(-t/b) {table} --plot --band 0": ["── fit\n"],
    "fit U==a[set]*exp(-t/b) {table} --plot --by kind": ["kind = A", "kind = B"],
    "plot f(x)=x^3 --math --x 0:1 --order 2": ["── f(x)", "f'(x)", "f''(x)"],
    "plot (x**2+1)/(x-2) --x 0:1": ["d/dx ((x**2+1)/(x-2))"],
    "plot x**2+x*y+y**2==7 --at x=1,y=2": ["tangent at x = 1, y = 2: slope -0.8, y = -0.8*x + 2.8"],
    "plot x**2+y**2==4 --at x=2,y=0": ["vertical, x = 2"],
}


@sweep("line", LABELLED, parts=1)
def test_axes_and_legends_say_what_is_drawn(line: str, decay: str) -> None:
    found = run(*line.format(table=decay).split())
    assert found.exit_code == 0, found.stderr
    shown = found.stdout.partition("\nb = ")[0]
    assert [piece for piece in LABELLED[line] if piece not in shown] == [], found.stdout


DATES = {
    "time,y\n2026-01-31 12:00,1\n2026-01-31 18:00,2\n": ["12:00", "14:00", "(2026-01-31)"],
    "day,y\n2025-12-20,1\n2026-06-01,2\n": ["2026-01", "2026-05"],
    "day,y\n2026-01-02,1\n2026-01-09,2\n": ["01-04", "(2026)"],
    "day,y\n1990-01-02,1\n2026-01-09,2\n": ["2000", "2020"],
    "clock,y\n12:30:01.5,1\n12:30:09,2\n": ["12:30:02", "12:30:08"],
    "timestamp,y\n1709632800,1\n1709654400,2\n": ["12:00", "timestamp (2024-03-05)"],
    "time [ms],y\n1709632800000,1\n1709654400000,2\n": ["12:00", "(2024-03-05)"],
    "unix_time_ns,y\n1709632800000000000,1\n1709654400000000000,2\n": ["(2024-03-05)"],
    "counts,y\n1709632800,1\n1709654400,2\n": ["1.7096"],
    "time_ns,y\n1709632800,1\n1709654400,2\n": ["1.7096"],
    "time,y\n1709632800,1\n0,2\n": ["1e+09"],
}


@sweep("text", DATES, parts=1)
def test_times_have_dates_on_their_axis(text: str, tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text(text, encoding="utf-8")
    shown = run("plot", "y", str(tmp_path / "d.csv"), "--width", "80").stdout
    assert [piece for piece in DATES[text] if piece not in shown] == [], shown


@pytest.mark.long
@pytest.mark.parametrize("width", [37, 60, 80, 200])
@pytest.mark.parametrize(
    "line",
    [
        "plot x*sin(x) --x -10:10",
        "plot x*sin(x) --x 1e9:2e9",
        "plot x --x 1:1000 --log x,y",
        "plot x*y --x 0:1 --y 0:1",
        "plot x*y --x 0:1 --y 0:1 --surface",
        "plot U {table}",
        "plot U==5*exp(-t/2) {table}",
        "plot {table} --hist",
    ],
)
def test_nothing_is_wider_than_is_asked(line: str, width: int, decay: str) -> None:
    found = run(*line.format(table=decay).split(), "--width", str(width), "--height", "10")
    assert found.exit_code == 0, found.stderr
    # A legend has an item a line at least, and a sentence its words.
    legend = re.compile(r"\s*(──|╌╌|••|▄▄) ")
    lines = [text for text in found.stdout.splitlines() if not legend.match(text)]
    assert max(map(len, lines)) <= width, found.stdout


@pytest.mark.parametrize("height", [5, 6, 8, 10, 14, 30])
@pytest.mark.parametrize("ends", [(-9.9, 9.9), (0.2, 0.9), (3.1, 3.9), (1, 999), (1e6, 1e6 + 3)])
def test_an_axis_has_two_marks_at_least(ends: tuple[float, float], height: int) -> None:
    from gradcli.commands.plots.axes import Axis

    for log in (False, True):
        if ends[0] > 0 or not log:
            marks = Axis(ends, log=log).marks(max(height // 4, 2))
            assert 2 <= len(marks) <= height and len({text for _, text in marks}) == len(marks)
            assert all(ends[0] * (1 - 1e-9) <= n <= ends[1] * (1 + 1e-9) for n, _ in marks if n > 0)


@pytest.mark.needs("matplotlib")
def test_pictures_have_labels_and_colours(tmp_path: Path, decay: str) -> None:
    """Of an SVG: its texts, and that data and residuals have one colour."""
    path = tmp_path / "fit.svg"
    found = run("fit", "U == a*exp(-t/b)", decay, "--sigma", "dU", "--plot", str(path))
    assert found.exit_code == 0, found.stderr
    text = path.read_text(encoding="utf-8")
    words = re.findall(r"<!-- (.*?) -->", text)
    for piece in ("U [V]", "t [s]", "residual", "fit, ±1σ band"):
        assert piece in words, words
    assert any(word.startswith("χ²/dof") for word in words)
    residuals = text[text.index('id="axes_2"') :]
    assert "#0072b2" in residuals and "#d55e00" not in residuals
    assert "#d55e00" in text


@pytest.mark.needs("matplotlib")
@pytest.mark.parametrize(
    ("argv", "labels"),
    [
        (["x^3 - 3x + 1", "--at", "1.5"], ["x^{3} - 3 x + 1", "y = 3.75 x - 5.75", "$x$"]),
        (["f(x) = x ln x"], ["$f(x)$", "$f'(x)$"]),
        (["x ln x"], [r"$x\,\ln(x)$", r"\dfrac{\mathrm{d}}{\mathrm{d}x}(x\,\ln(x))"]),
        (
            ["where(x > 0, x, 1)", "--order", "0"],  # matplotlib has no cases
            ["where(x &gt; 0, x, 1)"],
        ),
    ],
)
def test_labels_of_mathematics(argv: list[str], labels: list[str], tmp_path: Path) -> None:
    path = tmp_path / "a.svg"
    assert run("plot", *argv, "--math", "--x", "1:3", "-o", str(path)).exit_code == 0
    words = " ".join(re.findall(r"<!-- (.*?) -->", path.read_text(encoding="utf-8")))
    assert [label for label in labels if label not in words] == [], words


@pytest.mark.needs("matplotlib")
def test_a_legend_is_no_wider_than_its_axes(monkeypatch, tmp_path: Path) -> None:
    from gradcli.commands.plots import figures

    made = []
    monkeypatch.setattr(figures, "saved", lambda found, form: made.append(found) or b"")
    run("plot", "x**3 - 3*x + 1", "--x", "-3:3", "--at", "1.5", "-o", str(tmp_path / "a.png"))
    (axes,) = made[0].axes
    made[0].draw_without_rendering()
    assert axes.get_window_extent().width > 0.9 * made[0].bbox.width
    assert axes.get_legend().get_window_extent().width <= axes.get_window_extent().width


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


DESCENT = ["--descend", "0.25", "--at"]


@sweep(("argv", "expected"), [
        (["x**2", "--x=-2:2", *DESCENT, "1", "--steps", "2", "--csv"],
         "step,x,value,gradient_norm\n0,1,1,2\n1,0.5,0.25,1\n2,0.25,0.0625,0.5\n"),
        (["x**2 + y**2", "--x=-2:2", "--y=-2:2", *DESCENT, "x=1,y=0", "--steps", "1", "--plain"],
         "step\tx\ty\tvalue\tgradient_norm\n0\t1\t0\t1\t2\n1\t0.5\t0\t0.25\t1\n"),
    ], parts=1)  # fmt: skip
def test_the_steps_of_a_descent_are_a_table(argv, expected):
    assert run("plot", *argv).stdout == expected


def test_the_steps_of_a_descent_are_data():
    argv = ["x**2", "--x=-2:2", *DESCENT, "1", "--steps", "1", "--json"]
    steps = json.loads(run("plot", *argv).stdout)["descent"]
    assert [step["point"]["x"] for step in steps] == [1, 0.5]
    refused = run("plot", "x**2, x**3", "--x=-2:2", *DESCENT, "1", "--csv")
    assert "hint: choose one: gradcli plot 'x**2' …" in refused.stderr


def test_a_plot_in_a_pipe_is_as_wide_as_columns_says(monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    for argv in (["x**2", "--x=-2:2"], ["x**2 + y**2", "--x=-2:2", "--y=-1:1"]):
        lines = run("plot", *argv).stdout.splitlines()
        assert max(map(len, lines)) == 50

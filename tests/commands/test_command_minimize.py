# ruff: noqa: E501 (tables of cases)
"""`gradcli minimize EXPR` and `gradcli root EQUATION`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.test_command_fit import run

GD = ["--method", "gradient-descent"]
ROSENBROCK = ["(1-x)**2 + 100*(y-x**2)**2", "--x", "-1", "--y", "2"]

# -- (arguments, exit code, a piece of standard output, a piece of standard error) -------------------
SAID = [
    (["minimize", *ROSENBROCK], 0, "x = 1\ny = 1\nvalue = 0\ngradient_norm = 0\nkind = minimum\nsmallest_eigenvalue = 0.399", ""),
    (["minimize", "x**2", "--x", "3", "--trace"], 0, " step  x               value                   gradient_norm\n    0  3               9                       6\n", ""),
    (["minimize", "x**2 + y**2", "--x", "3", "--y", "0", "--trace", "--csv"], 0, "step,x,y,value,gradient_norm\n0,3,0,9,6\n1,", ""),
    (["minimize", "sum(x**2)", "--x", "3,0", "--trace", "--csv", "--precision", "3"], 0, "step,x[0],x[1],value,gradient_norm\n0,3,0,9,6\n1,", ""),
    (["minimize", "x**2", "--x", "3", "--csv"], 2, "", "hint: add --trace; --json writes the minimum"),
    (["minimize", "x**2", "--x", "3", "--plain"], 0, "kind\tminimum\n", ""),
    (["minimize", "sum((A@x - b)**2)", "--A", "2,0;0,4", "--b", "2,4", "--x", "0,0", "--wrt", "x", "--precision", "6"], 0, "x = [1, 1]\n", ""),
    (["minimize", "x + y", "--x", "1", "--y", "1", "--subject", "x*y == 4", "--bounds", "x=0:", "--bounds", "y=0:"], 0, "kind = minimum", ""),
    (["minimize", "x**2 - y**2", "--x", "0", "--y", "0"], 1, "kind = saddle point", "this is not a minimum (saddle point)"),
    (["minimize", "x", "--x", "1", "--max-iterations", "9"], 1, "kind = no minimum", "no minimum after 9 iterations"),
    (["minimize", "x**3", "--x", "1"], 1, "still falls in some direction", "this is not a minimum (it still falls in some direction)"),
    (["minimize", "cos(x)", "--x", "0", "--bounds", "x=0:3"], 1, "kind = maximum", "this is not a minimum (maximum)"),
    (["minimize", "log(x)", "--x", "3", "--json"], 1, '"value": "-inf"', "no minimum"),
    (["minimize", "abs(x)", "--x", "3"], 0, "kind = minimum by values alone: none around it is lower", ""),
    (["minimize", "log(x)", "--x", "-1"], 1, "", "the value is nan where it starts"),
    (["minimize", "x", "--x", "1,2"], 1, "", "the value must be one real number, but has shape (2,)"),
    (["minimize", "x*z", "--x", "1"], 2, "", "no value for z"),
    (["minimize", "x**2", "--x", "1", "--subject", "q >= 0"], 2, "", "no value for q"),
    (["minimize", "x**2", "--x", "1", "--subject", "x"], 2, "", "this is not an equation or inequality"),
    (["minimize", "x**2", "--x", "1", "--bounds", "x=2:3"], 2, "", "x starts at 1.0, outside of its bounds 2:3"),
    (["minimize", "x**2", "--x", "1", "--bounds", "x=0:3", "--method", "BFGS"], 2, "", "--method BFGS cannot use bounds"),
    (["minimize", "x**2", "--x", "1", "--subject", "x > 0", "--method", "TNC"], 2, "", "cannot use constraints"),
    (["minimize", "x**2", "--x", "1", "--method", "magic"], 2, "", "invalid value for '--method'"),
    (["minimize", "x**2", "--x", "1", "--no-grad", "x"], 2, "", "there is no variable to vary"),
    (["minimize", "x**2", "--x", "2j"], 2, "", "x is complex"),
    (["root", "cos(x) == x", "--x", "1"], 0, "x = 0.73908513321516", ""),
    (["root", "x + y == 3; x*y == 2", "--x", "0", "--y", "5"], 0, "x = 1\ny = 2\n", ""),
    (["root", "x + y == 3, x*y == 2", "--x", "0", "--y", "5"], 0, "x = 1\ny = 2\n", ""),
    (["root", "f == 0", "--let", "f=[x+y-3, x*y-2]", "--x", "0", "--y", "5"], 0, "x = 1\ny = 2\n", ""),
    (["root", "A@x == b", "--A", "2,0;0,4", "--b", "2,4", "--x", "0,0", "--wrt", "x"], 0, "x = [1, 1]\n", ""),
    (["root", "f(x) = x^3 - 3x^2 + 2; g(x) = x; f(x) = g(x)", "--math", "--x", "3"], 0, "x = 3.11490754147675", ""),
    (["root", "tan(x) == x", "--x", "1:10", "--all"], 0, "x = 4.49340945790906", "roots closer together than 0.0004 may be missing"),
    (["root", "x**2 == -1", "--x", "1"], 1, "", "no root was found: the sides differ by 1 at x = 0"),
    (["root", "x**2 + 1", "--x", "1"], 1, "", "no root was found: the value is 1 at x = 0"),
    (["root", "x == 1", "--x", "3", "-o", "a.csv"], 2, "", "-o needs a table"),
    (["root", "x*y == [1, 2, 3]", "--x", "0.5", "--y", "1,2,3", "--wrt", "x"], 1, "", 'hint: --x "0.5*ones(3)" has a number for each'),
    (["root", "x*y == [1, 2, 3]", "--x", "0.5*ones(3)", "--y", "1,2,3", "--wrt", "x"], 0, "x = [1, 1, 1]\n", ""),
    (["root", "1/x == 0", "--x", "-1:1", "--all"], 1, "", "no root was found in this interval"),
    (["root", "x == 1", "--x", "3", "--all"], 2, "", "--all wants an interval of one variable hint: as in --x -2:8 --all"),
    (["root", "x**2 == a + 2", "--x", "0:5", "--a", "2", "--all"], 0, "x = 2\n", ""),
    (["root", "x**2 == 4", "--x", "3", "--trace", "--precision", "4"], 0, "n  x      f(x)       f'(x)\n0  3      5          6\n1  2.167  0.6944     4.333\n", "note: f is the left side minus the right one"),
    (["root", "x**3 - 2*x + 2", "--x", "0", "--trace"], 0, "n   x  f(x)  f'(x)\n0   0  2     -2\n1   1  1     1\n2   0  2     -2\n", "it was found by another way"),
    (["root", "x**2", "--x", "1", "--trace"], 0, "n   x", "it has not ended after 50 steps"),
    (["root", "x + y, x - y", "--x", "1", "--y", "1", "--trace"], 2, "", "--trace is of one equation for one number"),
    (["root", "x**2 - 1", "--x", "0:2", "--all", "--trace"], 2, "", "--trace begins at a point"),
    (["root", "x**2 - 1", "--x", "2", "--show-steps"], 2, "", "hint: write --trace"),
    (["root", "x == 1", "--all"], 2, "", "hint: add --x FROM:TO"),
    (["root", "x == y", "--all", "--x", "0:1"], 2, "", "hint: add --y VALUE"),
    (["root", "x*y - 1, x - y", "--all", "--x", "0:1", "--y", "0:1"], 2, "", "near a point, without --all: --x VALUE --y VALUE"),
    (["root", "x == 1", "--x", "3", "--order", "2"], 2, "", "--order is neither an option nor a variable"),
    (["root", "x == 1", "--x", "3", "--full-matrix"], 2, "", "no such option --full-matrix"),
    (["root", "--full-matrix", "x == 1", "--x", "3"], 2, "", "no such option --full-matrix"),
    (["root", "x == 1", "--x", "3:1", "--all"], 2, "", "is not an interval"),
    (["root", "cos(x)", "--x", "1"], 0, "x = 1.57079632679489", ""),
    (["root", "x+y-3, x*y-2", "--x", "0", "--y", "5"], 0, "x = 1\ny = 2\n", ""),
    (["root", "x**2 - 2", "--x", "1:3"], 0, "x = [1.414213562373", "--all finds the roots in an interval"),
    (["root", "x < 1", "--x", "3"], 2, "", "this is not an equation"),
    (["root", "y = cos(x)", "--x", "1"], 2, "", "hint: write y == cos(x)"),
    (["root", "x@x == 1", "--x", "1,2"], 1, "", "1 equation for 2 unknown numbers"),
    (["root", "x == z", "--x", "1"], 2, "", "no value for z"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("argv", "code", "out", "err"), SAID, ids=lambda v: " ".join(v) if isinstance(v, list) else ""
)
def test_what_is_said(argv: list[str], code: int, out: str, err: str) -> None:
    found = run(*argv)
    assert found[0] == code, found
    assert out in found[1]
    assert err in " ".join(found[2].split())


# -- the methods that lessons show ------------------------------------------------------------------
DESCENTS = [
    (["minimize", "x**2", "--x", "4", *GD, "--rate", "0.25", "--steps", "2"], 0, "x = 1\nvalue = 1\ngradient_norm = 2\nkind = not reached\nsmallest_eigenvalue = 2\nmethod = gradient-descent\niterations = 2\nevaluations = 3\n", "note: after 2 steps of rate 0.25 the gradient is 2 long, not 0; --trace prints the steps"),
    (["minimize", "x**2", "--x", "4", *GD], 0, "x = 0\n", "note: --rate 0.5, as none is given"),
    (["minimize", "x**2", "--x", "4", *GD, "--rate", "0.25", "--steps", "1", "--trace", "--csv"], 0, "step,x,value,gradient_norm\n0,4,16,8\n1,2,4,4\n", ""),
    (["minimize", "x**2", "--x", "1", *GD, "--rate", "1.1", "--steps", "5"], 1, "", "after 5 steps of rate 1.1 the value is above where it began hint: a smaller rate falls: --rate 0.5"),
    (["minimize", "x**2", "--x", "1", *GD, "--rate", "0.5", "--steps", "5"], 0, "kind = minimum", ""),
    (["minimize", *ROSENBROCK, *GD, "--rate", "0.1"], 1, "", "the numbers leave all bounds hint: a smaller rate falls: --rate 0.00"),
    (["minimize", "x**3 - 3*x", "--x", "-0.5", "--method", "newton"], 1, "kind = maximum", "this is not a minimum (maximum)"),
    (["minimize", "x**2", "--x", "1", *GD, "--bounds", "x=0:3"], 2, "", "knows no bounds"),
    (["minimize", "x**2", "--x", "1", "--rate", "0.1"], 2, "", "hint: add --method gradient-descent"),
    (["minimize", "x**2", "--x", "1", *GD, "--momentum", "0.5"], 2, "", "hint: write --method momentum"),
    (["minimize", "x**2", "--x", "1", "--lr", "0.1"], 2, "", "hint: write --rate R, beside --method gradient-descent"),
]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(
    ("argv", "code", "out", "err"),
    DESCENTS,
    ids=lambda v: " ".join(v) if isinstance(v, list) else "",
)
def test_descents(argv: list[str], code: int, out: str, err: str) -> None:
    found = run(*argv)
    assert found[0] == code, found
    assert out in found[1]
    assert err in " ".join(found[2].split())


@pytest.mark.long
def test_a_step_that_is_not_taken_has_no_row() -> None:
    code, out, err = run("minimize", *ROSENBROCK, "--trace")
    points = [line.split()[1:3] for line in out.splitlines()[1:] if line[:5].strip().isdigit()]
    assert code == 0 and len({tuple(p) for p in points}) >= len(points) - 1  # 1, 1 to eight digits
    assert "note: steps that were tried and not taken are left out" in err


@pytest.mark.needs("matplotlib")
def test_pictures_are_of_one_or_two_variables() -> None:
    code, out, err = run("minimize", "x@x", "--x", "1,2,3", "--plot", "c.png")
    assert (code, out) == (2, "") and "draws one or two variables" in err


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    assert run("root", "cos(x) == x", "--x", "1")[0] == 0  # which needs none
    code, out, err = run("minimize", "(x - 1)**2", "--x", "3", "--method", "BFGS")
    assert (code, out) == (2, "") and "hint: pip install scipy" in err


def test_json() -> None:
    found = json.loads(run("minimize", *ROSENBROCK, "--json", "--trace")[1])
    assert found["point"] == {"x": 1.0, "y": 1.0} and found["kind"] == "minimum"
    assert len(found["trace"]) == found["iterations"] and len(found["eigenvalues"]) == 2
    found = json.loads(run("root", "x**2 == 4", "--x", "-5:5", "--all", "--json")[1])
    assert [point["x"] for point in found["roots"]] == [-2, 2] and found["converged"]


@pytest.mark.needs("matplotlib")
@pytest.mark.long
@pytest.mark.parametrize(
    "argv",
    [["minimize", *ROSENBROCK], ["minimize", "x**2", "--x", "1"], ["root", "cos(x) == x", "--x", "1"],
     ["root", "tan(x) == x", "--x", "0:10", "--all"]],
    ids=" ".join,
)  # fmt: skip
def test_pictures(argv: list[str], tmp_path: Path) -> None:
    picture = tmp_path / "a.svg"
    assert run(*argv, "--plot", str(picture))[0] == 0
    assert picture.read_bytes().startswith(b"<?xml")


WITHOUT_SCIPY = [
    ["root", "x**2 == 2", "--x", "1"],
    ["root", "cos(x) == x", "--x", "0:3"],
    ["root", "sin(x) == x/10", "--x", "-20:20", "--all"],
    ["root", "x + y == 3; x*y == 2", "--x", "0", "--y", "5"],
    ["minimize", "(x-1)**2 + x**4", "--x", "0"],
    ["fit", "y == a*exp(-b*x)", "DATA"],
]


@pytest.mark.long
@pytest.mark.parametrize("argv", WITHOUT_SCIPY, ids=" ".join)
def test_what_is_usual_starts_without_scipy(argv: list[str], tmp_path: Path) -> None:
    """The import of scipy.optimize takes four times as long as NumPy's."""
    data = tmp_path / "decay.csv"
    rows = (f"{k},{2.5 * 0.74**k + 0.01 * (k % 3):.4f}" for k in range(10))
    data.write_text("\n".join(["x,y", *rows]) + "\n")
    code = (
        "import sys\nfrom gradcli.cli import main\n"
        "try:\n    main.main()\nexcept SystemExit as left:\n    assert not left.code, left.code\n"
        "print(sorted(m for m in sys.modules if m.startswith('scipy')))\n"
    )
    argv = [sys.executable, "-c", code, *(str(data) if word == "DATA" else word for word in argv)]
    found = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(found) > 1 and found[-1] == "[]"

"""`gradcli root EQUATION TABLE`: one number in every row; and equations that share no number."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gradcli.columns.optimize.root_rows import RootRows
from gradcli.language import parse
from tests.commands.running import outcome

CALL = (
    "d1 = (log(S/K) + (r + sigma**2/2)*T)/(sigma*sqrt(T)); "
    "S*0.5*erfc(-d1/sqrt(2)) - K*exp(-r*T)*0.5*erfc(-(d1 - sigma*sqrt(T))/sqrt(2)) == price"
)
# The second price is below S - K, which no call costs.
QUOTES = "K,price,type\n80,21.170166,call\n90,4,call\n100,6.120654,put\n120,1.077943,call\n"
GIVEN = ["--S", "100", "--T", "0.5", "--r", "0.02", "--wrt", "sigma"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "quotes.csv").write_text(QUOTES)
    (tmp_path / "call.txt").write_text(CALL)
    return tmp_path


NO_ROOT = "gradcli: note: 1 bad row nan; the first: quotes.csv, line 3: no root was found"
# (the line behind EXPR and TABLE, what is printed, what begins standard error)
LINES = [
    (["--sigma", "0.2", "--precision", "5"],
     "K,price,type,sigma\n80,21.170166,call,0.216\n90,4,call,nan\n100,6.120654,put,0.2\n120,1.077943,call,0.216\n",
     NO_ROOT + ": the sides differ by"),
    (["--sigma", "0.001:3", "--precision", "5", "--keep-columns", "K"],
     "K,sigma\n80,0.216\n90,nan\n100,0.2\n120,0.216\n", NO_ROOT + " in 0.001 to 3"),
    (["--sigma", "0.2", "--precision", "5", "--where", "type == 'put'", "--keep-columns", "none"],
     "sigma\n0.2\n", ""),
    (["--sigma", "0.2", "--precision", "5", "--bad-rows", "skip", "--keep-columns", "none"],
     "sigma\n0.216\n0.2\n0.216\n", "gradcli: note: 1 bad row left out"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "out", "err"), LINES, ids=lambda v: " ".join(v)[:40])
def test_implied_volatilities(line: list[str], out: str, err: str) -> None:
    found = outcome("root", "-f", "call.txt", "quotes.csv", *line, *GIVEN)
    assert found[:2] == (0, out) and found[2].startswith(err), found


def test_where_the_roots_go(folder: Path) -> None:
    line = ["root", "-f", "call.txt", "quotes.csv", "--sigma", "0.2", *GIVEN]
    assert outcome(*line, "-o", "iv.csv")[:2] == (0, "")
    assert (folder / "iv.csv").read_text().startswith("K,price,type,sigma\n80,21.170166,call,0.21")
    first = json.loads(outcome(*line, "--json", "--head", "1")[1])
    assert first["sigma"] == pytest.approx(0.216, abs=1e-6) and first["type"] == "call"
    code, out, err = outcome(*line, "--bad-rows", "stop")
    assert (code, out) == (1, "K,price,type,sigma\n"[:0]) and "quotes.csv, line 3" in err
    with open("quotes.csv", encoding="utf-8") as stdin:
        words = [*line[:3], "-", *line[4:]]
        assert outcome(*words, "--head", "1", stdin=stdin.read())[0] == 0


REFUSED = {
    "K*x == price; x == 1 --x 1": "these are 2 equations, and a row has one unknown number",
    "K*x == price*y --x 1 --y 2": "--wrt x or --wrt y",
    "K*x == price --x 1 --uncertainty x=0.1": "x is looked for: its uncertainty is found",
    "K*x == price --x 1 --budget": "--budget: no variable has an uncertainty",
    "K*x == price": "x is not a column of quotes.csv, and has no value",
    "K*2 == price": "no variable is unknown: all are columns of the table, or held",
    "K*x == price --x 1,2": "a row has one unknown number, and this has shape (2,)",
    "K*x == price --x 1±0.1": "x is looked for: its uncertainty is found",
    "K*x == price --x 1 --all": "--all cannot be used with a table",
    "K*x == price --x 3:1": "is not an interval",
    "K*K == price --wrt K": "two columns would be called 'K'",
    "K*x < price --x 1": "this is not an equation",
    "K*x == [1, 2] --x 1": "the equation of a row must be one of real numbers",
}


@pytest.mark.parametrize("line", REFUSED)
def test_what_is_refused(line: str) -> None:
    expression, *options = line.split(" --")
    words = [word for option in options for word in f"--{option}".split(" ", 1)]
    code, out, err = outcome("root", expression, "quotes.csv", *words)
    assert code in (1, 2) and out == "" and REFUSED[line] in err, (code, err)


# (equation, what its root is, the options that give uncertainties); where the start is known, it is 1
SPREAD = [
    ("x**2 == a*K", "sqrt(a*K)", ["--a", "2±0.1"]),
    ("x**2 == a*K", "sqrt(a*K)", ["--a", "2±0.1", "--uncertainty", "K=price", "--budget"]),
    ("x**2*a == K", "sqrt(K/a)", ["--a", "2±0.1", "--uncertainty", "K=3", "--covariance", "a,K=0.1"]),
    ("x**2 == dot(a, a)*K", "sqrt(dot(a, a)*K)", ["--a", "1,2", "--uncertainty", "a=0.1"]),
    ("exp(x) == 2*price", "log(2*price)", ["--uncertainty", "price=2"]),
    ("x == a*K", "a*K", ["--a", "2", "--uncertainty", "K=0", "--uncertainty", "a=0"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("equation", "root", "options"),
    [SPREAD[1], *(pytest.param(*s, marks=pytest.mark.long) for s in SPREAD if s is not SPREAD[1])],
    ids=str,
)
def test_a_root_has_the_uncertainty_of_its_formula(
    equation: str, root: str, options: list[str]
) -> None:
    line = ["quotes.csv", *options, "--keep-columns", "none"]
    found = outcome("root", equation, *line, "--x", "1")[1].splitlines()
    wanted = outcome("map", root, *line, "--no-grad", "all")[1].splitlines()
    assert found[0].split(",")[:2] == ["x", "x.uncertainty"] and len(found) == 5
    numbers = [[list(map(float, r.split(","))) for r in rows[1:]] for rows in (found, wanted)]
    assert np.allclose(*numbers, rtol=1e-9)


@pytest.mark.long
def test_uncertainties_in_cells_and_where_a_root_bends(folder: Path) -> None:
    (folder / "pm.csv").write_text("a\n1±0.1\n4±0.2\n0±0.1\n-1±0.1\n")
    code, out, err = outcome("root", "x**2 == a", "pm.csv", "--x", "0.5")
    rows = [line.split(",") for line in out.splitlines()]
    assert code == 0 and [row[2] for row in rows[:3]] == ["x.uncertainty", "0.05", "0.05"]
    bent = outcome("map", "sqrt(a)", "pm.csv", "--no-grad", "a")[1].splitlines()[3].split(",")
    assert float(rows[3][2]) == pytest.approx(float(bent[2]), rel=1e-6)
    assert rows[4][1:] == ["nan", "nan"] and "1 row whose uncertainty is by 100000 draws" in err
    assert outcome("root", "x**2 == a", "pm.csv", "--x", "0:9")[1].splitlines()[2].endswith("0.05")


A = np.array([0.3, 2.0, -1.0, 1e6, 0.0])
# (equation of x and a, start, the roots; nan where there is none)
SOLVED = [
    ("x**3 == a", 1.0, np.cbrt(A)),
    ("x == a", -3.0, A),
    ("exp(x) == a", 0.0, np.log(np.where(A > 0, A, np.nan))),
    ("log(x) == a", 5.0, np.where(A < 1e5, np.exp(np.minimum(A, 9)), np.nan)),
    ("atan(x) == a", 50.0, np.where(np.abs(A) < 1.5, np.tan(A), np.nan)),
    ("1/(x - 2) == abs(a)", 3.0, np.where(A == 0, np.nan, 2 + 1 / np.where(A == 0, 1, abs(A)))),
    ("(x - a)**2", 7.0, A),
    ("x**2 + 1 == 0*a", 1.0, A * np.nan),
    ("sign(x - 1) + 0.5 == 0*a", 3.0, A * np.nan),
    ("asin(x) == 2 + 0*a", 0.5, A * np.nan),
]


@pytest.mark.parametrize(("equation", "start", "roots"), SOLVED, ids=[s[0] for s in SOLVED])
def test_every_row_has_its_root(equation: str, start: float, roots: np.ndarray) -> None:
    rows = RootRows(parse(equation), {}, {}, "x", start)
    found = rows({"a": A}, len(A))
    wrong = np.flatnonzero(np.isnan(roots))
    assert sorted(found.refused) == wrong.tolist()
    assert np.allclose(found.values[""], roots, rtol=1e-7, atol=1e-7, equal_nan=True)


def test_a_start_of_each_row() -> None:
    start = np.array([1.0, -1.0, 3.0])
    found = RootRows(parse("x**2 == a"), {}, {}, "x", None)({"a": np.full(3, 4.0), "x": start}, 3)
    assert found.values[""].tolist() == [2.0, -2.0, 2.0]


def test_equations_that_share_no_number_need_no_matrix() -> None:
    code, out, _ = outcome(
        "root", "exp(x) + x == y", "--x", "zeros(3000)", "--y", "linspace(0, 5, 3000)", "--wrt", "x", "--json"
    )  # fmt: skip
    x, y = np.array(json.loads(out)["roots"][0]["x"]), np.linspace(0, 5, 3000)
    assert code == 0 and np.abs(np.exp(x) + x - y).max() < 1e-12


def test_a_bare_answer_is_the_root_alone() -> None:
    assert outcome("root", "x**2 == 4", "--x", "1", "--bare")[1] == "2\n"
    assert outcome("minimize", "(x - 2)**2", "--x", "1", "--bare")[1] == "2\n"


@pytest.mark.parametrize(
    "form", ["--json", *(pytest.param(f, marks=pytest.mark.long) for f in ("--bare", "--plain"))]
)
def test_without_a_root_nothing_is_printed(form: str) -> None:
    code, out, err = outcome("root", "x**2 == -1", "--x", "1", form)
    assert (code, out) == (1, "") and "no root was found" in err

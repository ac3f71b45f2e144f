# ruff: noqa: E501 (tables of cases)
"""Uncertainties through gradients, beside what the `uncertainties` package answers (golden/uncertainties.json)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gradcli.commands.uncertainty import with_uncertainty
from gradcli.language import LanguageError
from gradcli.language.uncertain_values import split_uncertainty
from tests.commands.running import outcome as run
from tests.sweep import sweep

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "uncertainties.json").read_text(encoding="utf-8")
)


@sweep("row", GOLDEN["expressions"], name=lambda row: row["expression"], parts=3, often=1)
def test_what_the_package_answers(row):
    given = [word for name, text in row["given"].items() for word in (f"--{name}", text)]
    code, out, err = run("grad", row["expression"], *given, "--json", "--budget")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["value"] == pytest.approx(row["value"], rel=1e-12, abs=1e-300)
    assert found["uncertainty"] == pytest.approx(row["uncertainty"], rel=1e-9, abs=1e-15)
    for name, part in row["contributions"].items():
        assert found["budget"][name]["contribution"] == pytest.approx(part, rel=1e-9, abs=1e-15)
    if row["text"] is not None:
        first = run("grad", row["expression"], *given)[1].split("\n")[0]
        assert _same_text(first.removeprefix("value = "), row["text"])


def _same_text(ours: str, theirs: str) -> bool:
    """Apart from the sign between them, and where a factor of ten is taken out."""
    if "e" in theirs and "e" not in ours:
        return True
    power = ours.partition(")e")[2]
    ours = ours.replace(" ± ", "+/-").partition(")e")[0].strip("()")
    theirs, _, other = theirs.partition(")e")
    return (ours, int(power or 0)) == (theirs.strip("()"), int(other or 0))


@pytest.mark.parametrize("row", GOLDEN["correlated"], ids=lambda row: row["expression"])
def test_correlated_inputs(row):
    argv = ["grad", row["expression"]]
    names = list(row["nominal"])
    for i, name in enumerate(names):
        argv += [f"--{name}", repr(row["nominal"][name])]
        argv += ["--uncertainty", f"{name}={row['covariance'][i][i] ** 0.5!r}"]
        for j in range(i):
            argv += ["--covariance", f"{name},{names[j]}={row['covariance'][i][j]!r}"]
    found = json.loads(run(*argv, "--json")[1])
    assert found["value"] == pytest.approx(row["value"])
    assert found["uncertainty"] == pytest.approx(row["uncertainty"], rel=1e-9)


@sweep("text", GOLDEN["readings"], parts=1)
def test_how_an_uncertain_number_is_written(text):
    value, error = GOLDEN["readings"][text]
    pair = split_uncertainty(text)
    assert pair is not None
    assert [float(part) for part in pair] == pytest.approx([value, error])


NO_UNCERTAINTY = [
    "1",
    "1,2",
    "1+2j",
    "ones(2)",
    "(1)",
    "(1,2),(3,4)",
    "1 + -x",
    "2*(3)",
    "-(3)",
    "1e3",
    "[1, (2)]",
]


@sweep("text", NO_UNCERTAINTY, parts=1)
def test_what_has_none(text):
    assert split_uncertainty(text) is None


LISTS = [("1±0.1,2±0.2", ("1,2", "0.1,0.2")), ("1(1),", ("1,", "1,")), ("1 +- 2", ("1", "2"))]


@pytest.mark.parametrize("text, pair", LISTS)
def test_lists(text, pair):
    assert split_uncertainty(text) == pair


@sweep("text", ["1±0.1,2", "1±-1", "1±", "±1", "1±x", "1±2±3"], parts=1)
def test_refused_in_words(text):
    with pytest.raises(LanguageError, match=r"uncertainty|stands between"):
        split_uncertainty(text)


SHOWN = [
    (9.781021, 0.052648, "9.781 ± 0.053"), (12345.678, 1234, "12300 ± 1200"), (0.5, 0.0996, "0.50 ± 0.10"),
    (1e22, 3e20, "(1.000 ± 0.030)e22"), (0.0, 0.5, "0.00 ± 0.50"), (-0.001, 0.5, "0.00 ± 0.50"), (1.5, 0.0, "1.5 ± 0"),
    (2.0, float("nan"), "2 ± nan"), (float("inf"), 1.0, "inf ± 1"), (1e30, 1e-3, f"(1.{'0' * 34} ± 0.{'0' * 32}10)e30"),
    (1.2e-9, 3.4e-11, "(1.200 ± 0.034)e-9"), (5.0, 12.0, "5 ± 12"), (5.0, 120.0, "0 ± 120"),
]  # fmt: skip


@sweep(("value", "error", "text"), SHOWN, parts=1)
def test_two_digits_of_the_uncertainty(value, error, text):
    assert with_uncertainty(value, error) == text
    if error == error and value != float("inf"):
        assert split_uncertainty(text) is not None  # what comes out goes back in


@sweep(
    ("value", "error", "precision", "text"),
    [
        (10.1312, 1.8994, 4, "10.131 ± 1.899"), (9.99, 0.96, 1, "10 ± 1"), (3.689, 0.0316, 1, "3.69 ± 0.03"),
        (1e-9, 1e-11, 3, "(1.0000 ± 0.0100)e-9"), (2.0, 0.0, 4, "2 ± 0"), (1 / 3, 0.0, 3, "0.333 ± 0"),
        (1234.5, 0.1, 17, "1234.5000000000000 ± 0.1000000000000"),
    ],
    parts=1,
)  # fmt: skip
def test_digits_that_are_asked_for_are_those_of_the_uncertainty(value, error, precision, text):
    assert with_uncertainty(value, error, precision) == text


ABC = "--a 1±1 --b 2±2 --c 3±1".split()
V = ["--v", "1,2,3"]
RELATED = [  # (arguments, the squared uncertainty, by the law of propagation)
    (["a + b", *ABC[:4], "--correlation", "a,b=0.5"], 1 + 4 + 2 * 0.5 * 2),
    (["a + b", *ABC[:4], "--correlation", "b,a=[[1,0.5],[0.5,1]]"], 1 + 4 + 2 * 0.5 * 2),
    (["a - b", "--a", "1", "--b", "2", "--covariance", "a,b=[[1,1],[1,4]]"], 1 + 4 - 2),
    (["a + b - c", *ABC, "--correlation", "c,a,b=1,.1,.2;.1,1,.3;.2,.3,1"], 6 + 2 * (0.6 - 0.1 - 0.4)),
    (["sum(v)", *V, "--covariance", "v=eye(3)*4 + ones(3,3)"], 3 * 5 + 6),
    (["sum(v)", "--v", "1±1,2±2,3±0.5", "--correlation", "v=0.5*eye(3) + 0.5"], 5.25 + 2 + 0.5 + 1),
    (["v[0]*w", *V, "--w", "2±1", "--uncertainty", "v=1", "--correlation", "v,w=eye(4)"], 4 + 1),
]  # fmt: skip


@sweep(("argv", "square"), RELATED, parts=1)
def test_correlations_and_matrices(argv, square):
    code, out, err = run("eval", *argv, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["uncertainty"] == pytest.approx(square**0.5, rel=1e-12)


def test_a_table_has_correlations_row_by_row(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("a,b,r\n1,2,0.5\n1,2,-0.5\n")
    shown = ["--no-grad", "all", "--keep-columns", "none", "--precision", "6"]
    given = ["--uncertainty", "a=1", "--uncertainty", "b=2"]
    for item, spread in (("a,b=r", [7, 3]), ("a,b=0.5", [7, 7]), ("a,b=[[1,0.5],[0.5,1]]", [7, 7])):
        out = run("map", "a + b", "t.csv", *given, "--correlation", item, *shown)[1]
        cells = [float(line.split(",")[1]) ** 2 for line in out.split("\n")[1:-1]]
        assert cells == pytest.approx(spread, rel=1e-5)


@sweep(
    ("text", "shown"),
    [("1+2-3", "0"), ("10+2-3", "9"), ("0.25+0.5-0.75", "0"), ("1,2-1.5+1.5", "[1, 2]")],
    parts=1,
)
def test_a_sum_that_is_no_measurement(text, shown):
    code, out, err = run("eval", "x", "--x", text)
    assert (code, out) == (0, f"{shown}\n")
    assert f"--x {text} is a sum" in err


PENDULUM = ["4*pi**2*L/T**2", "--L", "0.994±0.002", "--T", "2.003±0.005"]
L_GRAD, T_GRAD = "L.grad = 9.84006207472551", "T.grad = -9.766372144061064"
LINES = [
    ([], ["value = 9.781 ± 0.053", L_GRAD, T_GRAD]),
    (["--wrt", "L"], ["value = 9.781 ± 0.053", L_GRAD]),
    (["--no-grad", "all"], ["value = 9.781 ± 0.053"]),
    (["--budget", "--no-grad", "L", "--no-grad", "T"],
     ["value = 9.781 ± 0.053", "L.contribution = 0.020 (14.0%)", "T.contribution = 0.049 (86.0%)"]),
    (["--plain", "--wrt", "L"], ["value\t9.781021702277158±0.05264843689935251", "L.grad\t9.84006207472551"]),
]  # fmt: skip


@pytest.mark.parametrize("options, lines", LINES)
def test_lines(options, lines):
    assert run("grad", *PENDULUM, *options) == (0, "".join(f"{line}\n" for line in lines), "")


REFUSED = [
    (["jacobian", "x", "--x", "1±2"], "has an uncertainty"),
    (["eval", "x", "--x", "1.2+0.2-0.1"], "two uncertainties"),
    (["grad", "x", "--x", "1.2 -0.2 +0.1,1+2-3"], "two uncertainties"),
    (["grad", "x", "--x", "99.4cm"], "write --x 99.4; units are not computed"),
    (["grad", "x", "--x", "99.4±0.1 cm"], "write --x '99.4 ± 0.1'; units are"),
    (["grad", "sin(x)", "--x", "60.0±0.5 deg"], "write --x '60.0 ± 0.5' and deg2rad(x) in place of x"),
    (["grad", "sin(x)", "--x", "60°"], "write --x 60 and deg2rad(x) in place of x, as angles are in radians"),
    (["grad", "sin(x)", "--x", "3 arcmin"], "deg2rad(x/60) in place of x"),
    (["grad", "x", "--x", "20 °C"], "write --x 20; units are not computed"),
    (["grad", "x", "--x", "9.81 m/s**2"], "write --x 9.81; units are not computed"),
    (["grad", *PENDULUM, "--seed", "2"], "--seed and uncertainties cannot be used together"),
    (["grad", *PENDULUM, "--passes", "2", "--retain-graph"], "--passes and uncertainties"),
    (["grad", *PENDULUM, "--order", "2"], "--order and uncertainties"),
    (["grad", *PENDULUM, "--hook", "L: 2*grad"], "--hook and uncertainties"),
    (["grad", *PENDULUM, "--uncertainty", "L=1"], "L has one already"),
    (["grad", *PENDULUM, "--uncertainty", "Q=1"], "'Q' is not a variable"),
    (["grad", *PENDULUM, "--covariance", "L,T=1"], "larger than these uncertainties allow"),
    (["grad", *PENDULUM, "--covariance", "L=1"], "--covariance wants L,T=VALUE"),
    (["grad", *PENDULUM, "--correlation", "L,T=1.5"], "a correlation is between -1 and 1, not 1.5"),
    (["grad", *PENDULUM, "--correlation", "L,T=0.1", "--covariance", "T,L=0"], "L and T are related twice"),
    (["grad", *PENDULUM, "--covariance", "L,T=eye(3)"], "give a matrix of 2 rows and 2 columns, or one number"),
    (["grad", *PENDULUM, "--correlation", "L,T=2,0;0,1"], "a correlation of a number with itself is 1"),
    (["grad", *PENDULUM, "--correlation", "L,T=1,2;2,1"], "the matrix is not positive semidefinite"),
    (["grad", *PENDULUM, "--correlation", "L,T=1,0.1;0.2,1"], "the matrix is not symmetric"),
    (["grad", *PENDULUM, "--covariance", "L,T=1,0;0,1"], "L has another uncertainty already"),
    (["eval", "x+y+z", "--x", "1±1", "--y", "2±1", "--z", "3±1", "--correlation", "x,y=0.9", "--correlation", "y,z=0.9",
      "--correlation", "x,z=-0.9"], "these correlations are not possible together"),
    (["eval", "x*y", "--x", "1±1", "--y", "2±1", "--correlation"], "there is one result"),
    (["eval", "x, 1j*x", "--x", "1±1"], "the uncertainty of a complex number is not a number"),
    (["eval", "x, 'm'", "--x", "1±1"], "this is text"),
    (["eval", "x*y", "--x", "1", "--y", "2", "--correlation", "x,y=0.9"], "x has no uncertainty"),
    (["eval", "x*y", "--x", "1±1", "--y", "2±1", "--corr", "0.9"], "write --correlation x,y=VALUE"),
    (["eval", "x*y", "--x", "1±1", "--y", "2±1", "--cov", "0.9"], "write --covariance x,y=VALUE"),
    (["grad", "x*x", "--x", "1", "--budget"], "--budget: no variable has an uncertainty"),
    (["grad", "x*x", "--x", "1", "--uncertainty", "x=-1"], "an uncertainty is not negative"),
    (["grad", "sum(x)", "--x", "1,2", "--uncertainty", "x=1,2,3"], "has shape (3,), and its variable (2,)"),
    (["grad", "x*x", "--x", "1±0.1,2±0.1"], "grad can be implicitly created only for scalar outputs"),
    (["grad", "x*x", "--x", "1+2j", "--uncertainty", "x=1"], "complex"),
]  # fmt: skip


@sweep(("argv", "words"), REFUSED, parts=1)
def test_what_is_refused(argv, words):
    code, out, err = run(*argv)
    assert code in (1, 2) and out == ""
    assert words in err


def test_vectors():
    out = run("grad", "sum(w*x)", "--x", "1(1),2(2)", "--w", "3,4", "--wrt", "x")[1]
    assert out == "value = 11.0 ± 8.5\nx.grad = [3, 4]\n"
    out = run("grad", "sum(w*x)", "--x", "1,2", "--w", "3,4", "--uncertainty", "x=1", "--wrt", "x")[
        1
    ]
    assert out == "value = 11.0 ± 5.0\nx.grad = [3, 4]\n"


# -- where the gradient does not tell the spread: expression, values, the spread, its mean, by what ----
BEYOND = [
    ("x**2", ["--x", "0±10"], 2**0.5 * 100, 100, "second order"),
    ("cos(x)", ["--x", "0±0.1"], 2**0.5 * 0.005, 0.995, "second order"),
    ("x*y", ["--x", "0±0.1", "--y", "0±0.2"], 0.02, 0, "second order"),
    ("x*y", ["--x", "1e-5±0.1", "--y", "0±0.2"], 0.02, 0, "second order"),
    ("mean(x**2)", ["--x", "0±1,0±1"], 1, 1, "second order"),
    ("abs(x)", ["--x", "0±0.1"], 0.1 * (1 - 2 / 3.14159265) ** 0.5, 0.1 * (2 / 3.14159265) ** 0.5, "100000 draws"),
    ("relu(x)", ["--x", "0±1"], (0.5 - 0.5 / 3.14159265) ** 0.5, 0.5 * (2 / 3.14159265) ** 0.5, "100000 draws"),
    ("maximum(x, y)", ["--x", "1±1", "--y", "1±1"], (1 - 1 / 3.14159265) ** 0.5, 1 + 1 / 3.14159265**0.5, "100000 draws"),
    ("sqrt(x)", ["--x", "0±0.1"], 0.110412, 0.259996, "100000 draws"),
    ("x*y", ["--x", "0±1", "--y", "0±2", "--covariance", "x,y=1.9"], 7.61**0.5, 1.9, "second order"),
    ("x**2", ["--x", "0±1", "--monte-carlo", "200000"], 2**0.5, 1, "200000 draws"),
    ("x - y", ["--x", "1±1", "--y", "2±1", "--covariance", "x,y=0.5", "--monte-carlo", "100000"], 1, -1, "100000 draws"),
    ("sum(x)", ["--x", "1,2", "--uncertainty", "x=1", "--monte-carlo", "100000"], 2**0.5, 3, "100000 draws"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "given", "error", "mean", "by"), BEYOND)
def test_where_the_first_order_tells_nothing(source, given, error, mean, by):
    code, out, _ = run("eval", source, *given, "--json")
    found = json.loads(out)
    assert (code, found["uncertainty_by"]) == (0, by)
    assert found["uncertainty"] == pytest.approx(error, rel=0.01)
    assert found["mean"] == pytest.approx(mean, rel=0.01, abs=0.01 * error)
    assert f"note: the uncertainty is by {by}" in run("grad", source, *given)[2]


@pytest.mark.parametrize(
    ("source", "given"),
    [("x**2", ["--x", "1±0.1"]), ("sin(x)", ["--x", "0±0.1"]), ("x - x", ["--x", "0±1"]),
     ("abs(x)", ["--x", "5±0.1"]), ("x*y", ["--x", "1±0.1", "--y", "0±0.2"]), ("x**0", ["--x", "0±1"])],
)  # fmt: skip
def test_where_the_first_order_tells_it_nothing_is_said(source, given):
    code, out, err = run("eval", source, *given, "--json")
    assert (code, err) == (0, "") and "uncertainty_by" not in json.loads(out)


def test_draws_without_a_value_are_counted():
    _, out, err = run("eval", "sqrt(x)", "--x", "1±0.9", "--monte-carlo", "20000")
    assert out == "1.00 ± 0.36\n" and "% of them have no value" in err
    assert run("eval", "x", "--x", "1", "--monte-carlo", "9")[2].startswith(
        "gradcli: error: --monte-carlo: no variable has an uncertainty"
    )


TYPESET = [
    ("eval 4*pi**2*L/T**2 --L 0.994±0.002 --T 2.003±0.005 --format siunitx", "\\num{9.781(53)}\n"),
    ("eval x --x 1,2.5 --format latex", "\\begin{pmatrix}1 \\\\ 2.5\\end{pmatrix}\n"),
    ("grad x*y --x 3 --y 2±0.1 --format latex", "\\frac{\\partial f}{\\partial x} &= 2"),
    ("eval 1+2j --format siunitx", "\\complexnum{1+2i}\n"),
]


@pytest.mark.parametrize(("line", "expected"), TYPESET)
def test_results_for_latex(line: str, expected: str) -> None:
    assert expected in run(*line.split())[1]


def test_a_percentage_is_one_of_the_value() -> None:
    assert (
        run("eval", "x*y", "--x", "3", "--y", "4", "--uncertainty", "y=5%")[1] == "12.00 ± 0.60\n"
    )


def test_a_percentage_and_a_number_are_no_remainder() -> None:
    """As data sheets of meters have it: 1 % of the value and 0.05."""
    assert run("eval", "2*x", "--x", "10", "--uncertainty", "x=1%+0.05")[1] == "20.00 ± 0.30\n"


AB = ["--a", "3±0.1", "--b", "2±0.1"]
P = "p = 6.00 ± 0.36"
MATRIX = "correlation:\n           p        q\n  p        1  -0.3846\n  q  -0.3846        1"
# (the program, options, the lines): u²(ab) = 0.13, u²(a/b) = 0.008125, and their covariance is -0.0125.
SEVERAL = [
    ("a*b, a/b", AB, "value[0] = 6.00 ± 0.36\nvalue[1] = 1.500 ± 0.090"),
    ("p = a*b; q = a/b; p, q", AB, f"{P}\nq = 1.500 ± 0.090"),
    ("p = a*b; q = a/b; [p, q]", [*AB, "--correlation"], f"{P}\nq = 1.500 ± 0.090\n{MATRIX}"),
    ("v = stack([a*b, a/b]); v", AB, "v[0] = 6.00 ± 0.36\nv[1] = 1.500 ± 0.090"),
    ("p = a*b; p, 2", AB, f"{P}\nvalue[1] = 2 ± 0"),
    ("p = a*b; p, p", AB, "value[0] = 6.00 ± 0.36\nvalue[1] = 6.00 ± 0.36"),
    ("p = a*b; q = a/b; p, q", [*AB, "--correlation", "a,b=1"], "p = 6.00 ± 0.50\nq = 1.500 ± 0.025"),
    ("p = a*b; p, [a]", [*AB, "--plain"], "p\t6±0.36055512754639896\nvalue[1][0]\t3±0.1"),
    ("p = a*b; p, a", [*AB, "--budget"],
     f"{P}\np.a.contribution = 0.20 (30.8%)\np.b.contribution = 0.30 (69.2%)\n"
     "a = 3.00 ± 0.10\na.a.contribution = 0.10 (100.0%)\na.b.contribution = 0 (0.0%)"),
    ("2*x", ["--x", "1±0.1,2±0.2"], "value[0] = 2.00 ± 0.20\nvalue[1] = 4.00 ± 0.40"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "options", "lines"), SEVERAL)
def test_several_results_are_related(source, options, lines):
    assert run("eval", source, *options) == (0, f"{lines}\n", "")


def test_several_results_are_drawn_once():
    _, out, _ = run("eval", "r = rand(())*a; r, 2*r", "--a", "3±0.3", "--json")
    found = json.loads(out)
    first, second = (one["value"] for one in found["value"])
    assert found["uncertainties"]["r"] == pytest.approx(0.1 * first) and second == 2 * first
    assert found["correlation"]["r"]["value[1]"] == pytest.approx(1)

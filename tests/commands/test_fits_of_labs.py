"""Fits as laboratories ask for them: both uncertainties, counts, priors, numbers of rows, new names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.commands.running import outcome as run

# Pearson's data with York's weights (Can. J. Phys. 44, 1966); a, b and chi2 are those of York et al.,
# Am. J. Phys. 72, 2004, Table II.
YORK = """# X wX Y wY
0.0 1000 5.9 1.0
0.9 1000 5.4 1.8
1.8 500 4.4 4.0
2.6 800 4.6 8.0
3.3 200 3.5 20.0
4.4 80 3.7 20.0
5.2 60 2.8 70.0
6.1 20 2.8 70.0
6.5 1.8 2.4 100.0
7.4 1 1.5 500.0
"""
BOTH = ("--sigma", "X=1/sqrt(wX)", "--sigma", "Y=1/sqrt(wY)")
COUNTS = [7, 4, 3, 5, 1, 2, 3, 1, 0, 1, 0, 0, 2, 0, 0, 1]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("york.dat").write_text(YORK)
    rows = "".join(f"{k / 2},{n}\n" for k, n in enumerate(COUNTS))
    Path("counts.csv").write_text(f"t,n\n{rows}")
    line = "".join(f"{x},{y},0.2\n" for x, y in ((0, 1.1), (1, 2.9), (2, 5.2), (3, 6.8)))
    Path("line.csv").write_text(f"x,y,s\n{line}")
    return tmp_path


def fit(*words: str) -> tuple[dict[str, Any], str]:
    code, out, err = run("fit", *words, "--json")
    assert code == 0, err
    found = json.loads(out)
    return found, err


def value(found: dict[str, Any], name: str) -> tuple[float, float]:
    one = found["parameters"][name]
    return one["value"], one["error"]


@pytest.mark.parametrize("more", [(), ("--a", "1", "--b", "1"), ("--b", "3")])
def test_a_line_with_both_uncertainties_ends_at_its_least_sum(more: tuple[str, ...]) -> None:
    found, _ = fit("Y == a + b*X", "york.dat", *BOTH, *more)
    assert value(found, "a")[0] == pytest.approx(5.47991022, rel=1e-7)
    assert value(found, "b")[0] == pytest.approx(-0.480533407, rel=1e-7)
    assert found["chi2"] == pytest.approx(11.8663531941, rel=1e-8)


def test_a_very_bad_fit_names_the_search() -> None:
    Path("bad.csv").write_text("x,y\n" + "".join(f"{k},{k * k}\n" for k in range(9)))
    _, _, err = run("fit", "y == a*exp(b*x)", "bad.csv", "--sigma", "0.1", "--a", "1", "--b", "0.1")
    assert "p = 0" in err and "--starts 50 looks for another minimum" in err
    _, _, err = run("fit", "y == a + b*x", "bad.csv", "--sigma", "0.1")
    assert "p = 0" in err and "--starts" not in err, "a line has one minimum"


def test_relative_uncertainties_scale_the_errors() -> None:
    absolute, _ = fit("y == a*x + b", "line.csv", "--sigma", "s")
    relative, _ = fit("y == a*x + b", "line.csv", "--sigma", "s", "--relative-sigma")
    free, _ = fit("y == a*x + b", "line.csv")
    scale = (absolute["chi2"] / absolute["dof"]) ** 0.5
    assert value(relative, "a")[1] == pytest.approx(value(absolute, "a")[1] * scale, rel=1e-12)
    assert value(relative, "a")[1] == pytest.approx(value(free, "a")[1], rel=1e-9)
    assert relative["p_value"] is None


@pytest.mark.parametrize(
    "option, words",
    [
        ("--absolute-sigma", "--relative-sigma"),
        ("--scale-covar", "--relative-sigma"),
        ("--weights", "--sigma '1/sqrt(w)'"),
        ("--poisson", "--likelihood poisson"),
        ("--prior", "--NAME VALUE±ERROR"),
    ],
)
def test_names_of_others_are_told(option: str, words: str) -> None:
    _, _, err = run("fit", "y == a*x + b", "line.csv", option, "s")
    assert words in err


@pytest.mark.long
@pytest.mark.long
def test_counts_by_their_likelihood() -> None:
    """The least of Cash's statistic and the inverse of half its Hessian, by SciPy and by differences."""
    from scipy.optimize import minimize

    t, n = np.arange(len(COUNTS)) / 2, np.array(COUNTS, float)

    def cash(p: Any) -> float:
        m = p[0] * np.exp(-t / p[1])
        if (m <= 0).any():
            return 1e30
        return float(2 * np.sum(m - n + np.where(n > 0, n * np.log(np.maximum(n, 1) / m), 0)))

    x = minimize(cash, [6, 3], method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-13}).x
    steps = np.diag(1e-4 * x)
    hessian = np.array([
        [
            (cash(x + a + b) - cash(x + a - b) - cash(x - a + b) + cash(x - a - b)) / (4 * a.sum() * b.sum())
            for b in steps
        ]
        for a in steps
    ])  # fmt: skip
    errors = np.sqrt(np.diag(np.linalg.inv(hessian / 2)))
    found, _ = fit("n == A*exp(-t/tau)", "counts.csv", "--likelihood", "poisson")
    assert [value(found, k)[0] for k in ("A", "tau")] == pytest.approx(x, rel=1e-6)
    assert [value(found, k)[1] for k in ("A", "tau")] == pytest.approx(errors, rel=1e-4)
    assert found["cash"] == pytest.approx(cash(x), rel=1e-10) and found["chi2"] is None
    assert found["aic"] == pytest.approx(found["cash"] + 4)
    _, out, _ = run("fit", "n == A*exp(-t/tau)", "counts.csv", "--likelihood", "poisson")
    assert "cash = 13.8296\ncash_expected = 14.7 ± 4.7\np_value" in out and "(a good fit: " in out


def test_what_is_expected_of_few_counts() -> None:
    """The mean and the variance of a count's part of C, by sums over Poisson's distribution."""
    from scipy.stats import poisson

    from gradcli.columns.optimize.counts import _of_deviances

    n = np.arange(2000)
    for m in (1e-3, 0.05, 0.7, 3.3, 41.0, 700.0, 1200.0):
        part, share = 2 * (m - n + n * np.log(np.maximum(n, 1) / m)), poisson.pmf(n, m)
        mean = share @ part
        found = [float(one[0]) for one in _of_deviances(np.array([m]))]
        assert found == pytest.approx([mean, share @ (part - mean) ** 2], rel=0.02), m


PEAK = "".join(
    f"{640 + k},{int(40 + 900 * np.exp(-((k - 21.7) ** 2) / 18)) + k * 7 % 5}\n" for k in range(60)
)
MODEL = "N == A*exp(-(E-mu)**2/(2*s**2)) + B"


@pytest.mark.parametrize("how", [("--likelihood", "poisson"), ("--sigma", "sqrt(N),E=0.01"), ()])
def test_the_start_that_was_taken_is_one_to_type(how: tuple[str, ...]) -> None:
    Path("peak.csv").write_text(f"E,N\n{PEAK}")
    code, out, err = run("fit", MODEL, "peak.csv", *how)
    assert code == 0 and "mu = 661.7" in out
    words = err.partition("this one was found from ")[2].split()
    assert words[::2][:4] == ["--A", "--mu", "--s", "--B"]
    code, again, _ = run("fit", MODEL, "peak.csv", *how, *words[:8])
    assert code == 0
    assert again.splitlines()[:4] == out.splitlines()[:4]


def test_a_bad_fit_of_counts_is_said() -> None:
    Path("peak.csv").write_text(f"E,N\n{PEAK}")
    ones = [word for name in ("A", "mu", "s", "B") for word in (f"--{name}", "1")]
    _, out, err = run("fit", MODEL, "peak.csv", "--likelihood", "poisson", *ones)
    assert "p_value = 0 (a bad fit" in out
    assert "the parameters come from the counts alone; --starts 50 looks for" in err


def test_many_counts_agree_with_least_squares() -> None:
    rng = np.random.default_rng(1)
    n = rng.poisson(1e6 * np.exp(-np.arange(30) / 20))
    Path("many.csv").write_text("n\n" + "".join(f"{k}\n" for k in n))
    model = "n == A*exp(-index/tau)"
    cash, _ = fit(model, "many.csv", "--likelihood", "poisson")
    squares, _ = fit(model, "many.csv", "--sigma", "poisson")
    for name in ("A", "tau"):
        (one, spread), (other, error) = value(cash, name), value(squares, name)
        assert abs(one - other) < 0.1 * error and spread == pytest.approx(error, rel=1e-3)


def test_counts_are_no_less_than_none() -> None:
    Path("minus.csv").write_text("n\n1\n-2\n")
    code, _, err = run("fit", "n == a*index + b", "minus.csv", "--likelihood", "poisson")
    assert code == 2 and "-2 in row 2 is no count" in err
    code, _, err = run("fit", "n == a*t", "counts.csv", "--sigma", "poisson")
    assert code == 2 and "gradcli fit has --likelihood poisson" in err


def test_what_is_known_of_a_parameter_is_one_more_row() -> None:
    """The same as a row of data that measures b."""
    found, err = fit("y == a*x + b", "line.csv", "--sigma", "s", "--b", "1.5±0.1")
    assert "b = 1.5±0.1: known beforehand" in err
    text = Path("line.csv").read_text()
    Path("more.csv").write_text(text + "0,1.5,0.1\n")
    other, _ = fit("y == a*x + b", "more.csv", "--sigma", "s")
    assert (found["dof"], found["chi2"]) == (other["dof"], pytest.approx(other["chi2"]))
    for name in "ab":
        assert value(found, name) == pytest.approx(value(other, name), rel=1e-9)
    code, _, err = run("fit", "y == a*x + b", "line.csv", "--b", "1.5±0.1")
    assert code == 2 and "as in --sigma dy" in err, "the scale of the residuals is not known"


def test_information_criteria() -> None:
    found, _ = fit("y == a*x + b", "line.csv", "--sigma", "s")
    assert found["aic"] == pytest.approx(found["chi2"] + 4)
    assert found["bic"] == pytest.approx(found["chi2"] + 2 * np.log(4))
    found, _ = fit("y == a*x + b", "line.csv")  # as lmfit has them
    assert found["aic"] == pytest.approx(4 * np.log(found["chi2"] / 4) + 4)
    _, out, _ = run("fit", "y == a*x + b", "line.csv", "--aic")
    assert f"\naic = {found['aic']:.6g}\nbic = {found['bic']:.6g}\niterations" in out


def test_rows_are_counted() -> None:
    Path("one.txt").write_text("5\n7\n9\n")
    found, err = fit("y == a*row + b", "one.txt", "--columns", "y=1")
    assert "row counts the rows of one.txt from 1" in err
    assert [value(found, k)[0] for k in "ab"] == pytest.approx([2, 3])
    found, _ = fit("y == a*index + b", "one.txt", "--columns", "y=1", "--where", "index > 0")
    assert [value(found, k)[0] for k in "ab"] == pytest.approx([2, 5]) and found["dof"] == 0
    assert run("plot", "y", "one.txt", "--columns", "y=1", "--over", "index", "--csv")[
        1
    ].splitlines()[1:] == ["0,5", "1,7", "2,9"]


@pytest.mark.long
@pytest.mark.parametrize(
    "columns", [("--columns", "t=x,u=y"), ("--columns", "t=x", "--columns", "u=y")]
)
def test_a_renamed_column_is_known_everywhere(columns: tuple[str, ...]) -> None:
    line = ("u == a*t + b", "line.csv", *columns, "--where", "t < 3", "--sigma", "0.1*u")
    found, _ = fit(*line)
    assert found["dof"] == 1
    assert run("map", "t*u", "line.csv", *columns, "--no-grad", "all")[0] == 0
    out = run("plot", "u", "line.csv", *columns, "--over", "t", "--csv")[1]
    assert out.splitlines()[1] == "0,1.1"


def test_a_robust_fit_is_not_judged_by_its_outliers() -> None:
    Path("out.csv").write_text(
        "x,y\n" + "".join(f"{k},{2 * k + 100 * (k == 4)}\n" for k in range(9))
    )
    line = ("fit", "y == a*x + b", "out.csv", "--sigma", "0.1", "--robust", "huber")
    code, out, err = run(*line)
    assert code == 0 and "p_value" not in out and "p = " not in err


def test_a_typeset_fit_has_its_matrix() -> None:
    _, out, _ = run("fit", "y == a*x + b", "line.csv", "--format", "siunitx", "--correlation")
    assert r"\mathrm{correlation} &= \begin{pmatrix}\num{1}" in out


def test_a_typeset_value_keeps_its_name() -> None:
    line = ("--L", "0.995±0.002", "--T", "2.001±0.004", "--format", "siunitx")
    assert run("eval", "g = 4*pi**2*L/T**2", *line)[1] == "g = \\num{9.810(44)}\n"
    assert run("eval", "4*pi**2*L/T**2", *line)[1] == "\\num{9.810(44)}\n"


def test_ways_on_are_named() -> None:
    _, _, err = run("plot", "--", "-y", "line.csv", "--over", "x")
    assert "options stand before --: gradcli plot --over" in err
    _, _, err = run("eval", "abs(fft(y))", "--y", "1,2")
    assert "as in fft.fft(y)" in err


TABLED = r"""\begin{tabular}{ccc}
\hline
$\mathrm{name}$ & $L$ & $g$ \\
\hline
A \& B & \num{0.2500(20)} & \num{9.71(12)} \\
 & \num{0.4000(20)} & \num{9.87(11)} \\
\hline
\end{tabular}
"""


def test_rows_for_a_paper() -> None:
    Path("pend.csv").write_text("name,L,T\nA & B,0.25±0.002,1.008±0.005\n,0.4±0.002,1.265±0.006\n")
    line = ("pend.csv", "--keep-columns", "name,L", "--format", "siunitx")
    assert run("map", "4*pi**2*L/T**2", *line, "--no-grad", "all", "--as", "g=value")[1] == TABLED
    assert run("root", "4*pi**2*L == g*T**2", *line, "--g", "10")[1] == TABLED
    line = ("x**3 - a*x == b", "--a", "1±0.1", "--b", "2±0.2", "--x", "1")
    _, out, _ = run("root", *line, "--format", "siunitx")
    assert out == "\\begin{aligned}\n  x &= \\num{1.521(42)}\n\\end{aligned}\n"
    _, out, _ = run("root", *line, "--format", "latex", "--budget")
    assert r"u_{a}(x) &= 0.026 \quad (36.7\,\%)" in out


G = ("g = 4*pi**2*L/T**2; g", "--L", "1.000(1)", "--T", "2.007(5)", "--no-grad", "all")
TWO = ("p = L*T; L, p", "--L", "1.000(1)", "--T", "2.007(5)")


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (("eval", *G, "--unit", "m/s^2"), "(9.801 ± 0.050) m/s^2\n"),
        (("eval", *G, "--unit", r"\m\per\s", "--format", "siunitx"), "g = \\qty{9.801(50)}{\\m\\per\\s}\n"),
        (("eval", *G, "--unit", "m", "--format", "latex"), "g = (9.801 \\pm 0.050)\\,\\mathrm{m}\n"),
        (("eval", *G, "--unit", "m", "--plain"), "9.80087819298063±0.0498"),
        (("eval", *G, "--unit", "m", "--json"), '"units": {"value": "m"}'),
        (("eval", "2*x", "--x", "3", "--unit", "m"), "6 m\n"),
        (("eval", *TWO, "--unit", "L=m,p=m*s"), "L = (1.0000 ± 0.0010) m\np = (2.0070 ± 0.0054) m*s\n"),
        (("eval", *TWO, "--unit", "m"), "of which result?\nhint: name it: --unit L=m"),
        (("eval", *TWO, "--unit", "q=m"), "no result is called q\nhint: there are L, p"),
        (("eval", *G, "--unit", "m{"), "--unit wants a unit, not 'm{'"),
        (("fit", "y == a*x + b", "line.csv", "--unit", "a=m/s"), "a = (1.940 ± 0.091) m/s\nb = 1.09 ±"),
        (("fit", "y == a*x", "line.csv", "--unit", "m", "--format", "siunitx"), "a &= \\qty{2.41(21)}{m}"),
        (("fit", "y == a*x", "line.csv", "--unit", "b=m"), "no result is called b\nhint: there are a"),
    ],
)  # fmt: skip
def test_units_stand_behind_results(line: tuple[str, ...], text: str) -> None:
    _, out, err = run(*line)
    assert text in (out or err)


def test_shares_of_counts_are_those_of_least_squares_where_there_are_many() -> None:
    rng = np.random.default_rng(1)
    n = rng.poisson(1e5 * np.exp(-np.arange(30) / 9) + 900)
    Path("many.csv").write_text("x,n\n" + "".join(f"{k},{c}\n" for k, c in enumerate(n)))
    line = (
        "n == A*exp(-x/tau) + B",
        "many.csv",
        "--B",
        "900±10",
        "--budget",
        "--tau",
        "9",
        "--A",
        "1e5",
    )
    cash, squares = (fit(*line, *how, "poisson")[0] for how in (("--likelihood",), ("--sigma",)))
    for name in ("A", "tau", "B"):
        shares = [f["budget"][name]["prior"] for f in (cash, squares)]
        assert shares[0] == pytest.approx(shares[1], rel=0.05), name


CURVE = "x,y,s\n" + "".join(
    f"{x},{1 + 2 * x + 0.1 * x * x + 0.2 * (-1) ** x},0.2\n" for x in range(9)
)
LINE, SQUARE = "y == a + b*x", "y == a + b*x + c*x**2"


@pytest.mark.parametrize(
    ("first", "options", "texts"),
    [
        (SQUARE, ["--compare", LINE], ["compared = y == a + b*x", "compared.dof = 7", "compared.F = 65.6",
         "(the first model, which has more parameters, is better if it contains the other)"]),
        (LINE, ["--compare", SQUARE, "--sigma", "s"], ["delta_chi2 = 90.9", "the second model, which"]),
        (LINE, ["--compare", "y = a + b*x"], ["better = the first model has the lower AIC"]),
        (f"{SQUARE} + d*x**3", ["--compare", SQUARE, "--fix", "a=1", "--bounds", "d=0:9"],
         ["the parameters that one model has more are not needed"]),
        (LINE, ["--compare", "y"], ["this is not an equation"]),
        (LINE, ["--compare", LINE, "--by-rows"], ["--compare cannot be used with --by-rows"]),
        (LINE, ["--compare", LINE, "--format", "latex"], ["--compare prints text, and --format LaTeX"]),
    ],
)  # fmt: skip
def test_two_models_of_the_same_rows(first: str, options: list[str], texts: list[str]) -> None:
    Path("curve.csv").write_text(CURVE)
    _, out, err = run("fit", first, "curve.csv", *options)
    for text in texts:
        assert text in out + err


def test_two_models_as_json() -> None:
    from scipy.stats import f

    Path("curve.csv").write_text(CURVE)
    found, _ = fit(SQUARE, "curve.csv", "--compare", LINE)
    other, _ = fit(LINE, "curve.csv")
    told = found["compared"]
    assert (told["chi2"], told["dof"]) == (pytest.approx(other["chi2"]), 7)
    assert told["F"] == pytest.approx((other["chi2"] / found["chi2"] - 1) * 6)
    assert told["p_value"] == pytest.approx(f.sf(told["F"], 1, 6))


@pytest.mark.parametrize(
    ("sigma", "bars"),
    [
        ("s", (None, 0.2)),
        ("y=s", (None, 0.2)),
        ("x=0.1", (0.1, None)),
        ("x=s,y=0.3", (0.2, 0.3)),
        ("q=s", "q is not drawn"),
        ("s,y=0.1", "--sigma is given twice for y"),
        ("[s, s]", "--sigma: one number a row"),
    ],
)
def test_bars_of_a_plot_are_those_of_both_axes(
    sigma: str, bars: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gradcli.commands import plotted_rows

    drawn: list[Any] = []
    line = plotted_rows.Line
    monkeypatch.setattr(
        plotted_rows, "Line", lambda *a, **k: drawn.append(k["bars"]) or line(*a, **k)
    )
    _, _, err = run("plot", "y", "line.csv", "--over", "x", "--sigma", sigma)
    if isinstance(bars, str):
        assert bars in err
    else:
        assert tuple(None if b is None else b.tolist() for b in drawn[0]) == tuple(
            None if b is None else [b] * 4 for b in bars
        )

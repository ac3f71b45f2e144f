# ruff: noqa: E501 (tables of cases)
"""`gradcli fit EQUATION TABLE`: the parameters of an equation."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from tests.columns.optimize.test_least_squares import NIST
from tests.commands.running import outcome as run

PENDULUM = (
    "L,T,sT\n0.3,1.102,0.01\n0.5,1.415,0.01\n0.7,1.684,0.012\n0.9,1.901,0.01\n1.1,2.112,0.01\n"
)
CELLS = "L,T\n0.300±0.002,1.102±0.01\n0.5±0.002,1.415±0.01\n0.7±0.002,1.684(10)\n0.9±0.002,1.901±0.01\n1.1±0.002,2.112±0.01\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.csv").write_text(PENDULUM)
    (tmp_path / "cells.csv").write_text(CELLS)
    columns = NIST["Misra1a"]["columns"]
    lines = [",".join(map(repr, row)) for row in zip(*columns.values(), strict=True)]
    (tmp_path / "misra.csv").write_text("\n".join(["y,x", *lines]))
    return tmp_path


MISRA = ["fit", "y == b1*(1 - exp(-b2*x))", "misra.csv", "--b1", "500", "--b2", "0.0001"]


def test_the_main_job() -> None:
    code, out, err = run(*MISRA)
    assert (code, err) == (0, "")
    assert out.startswith(
        "b1 = 238.9 ± 2.7\nb2 = 0.0005502 ± 0.0000073\ndof = 12\nchi2 = 0.124551\n"
        "residual_deviation = 0.101879\ncorrelation.b1.b2 = -0.9988\niterations = "
    )


@pytest.mark.parametrize("how", [[], ["--by-rows"]])
def test_json_has_full_precision(how: list[str]) -> None:
    code, out, err = run(*MISRA, "--json", *how)
    found, row = json.loads(out), NIST["Misra1a"]
    assert (code, err) == (0, "")
    for name, parameter in found["parameters"].items():
        assert parameter["value"] == pytest.approx(row["parameters"][name], rel=1e-6)
        assert parameter["error"] == pytest.approx(row["errors"][name], rel=1e-4)
    assert found["covariance"]["b1"]["b1"] == pytest.approx(row["errors"]["b1"] ** 2, rel=1e-4)
    assert found["residual_deviation"] == pytest.approx(row["deviation"], rel=1e-6)
    assert (found["dof"], found["converged"], found["undetermined"]) == (12, True, [])


# -- (arguments, exit code, what standard output begins with, a piece of standard error) -------------
G = "T == 2*pi*sqrt(L/g)"
SAID = [
    ([G, "p.csv"], 0, "g = 9.781 ± 0.025\n", "note: g starts at 1; to start elsewhere, add --g VALUE"),
    ([G, "p.csv", "--g", "10", "--sigma", "sT"], 0, "g = 9.783 ± 0.054\n", ""),
    (["T**2 == 4*pi**2*L/g", "p.csv", "--g", "10", "--sigma", "T=sT"], 0, "g = 9.784 ± 0.054\n", ""),
    (["T**2 == 4*pi**2*L/g", "p.csv", "--g", "10", "--sigma", "T=0.01"], 0, "g = 9.781 ± 0.052\n", ""),
    ([G, "p.csv", "--g", "10", "--sigma", "sT", "--sigma", "L=0.002", "--budget"], 0,
     "g = 9.783 ± 0.055\ng.share.response = 94.9%\ng.share.L = 5.1%\n", ""),
    ([G, "cells.csv", "--g", "10"], 0, "g = 9.781 ± 0.054\n", ""),
    ([G, "p.csv", "--fix", "g=9.81"], 2, "", "there is no parameter to fit"),
    (["T == a*sqrt(L) + c", "p.csv", "--no-grad", "c"], 2, "", "no value for c, which is held constant"),
    (["T == a*sqrt(L) + c", "p.csv", "--fix", "c=0"], 0, "a = 2.0090 ± 0.0026\n", ""),
    (["T == a*sqrt(L) + c", "p.csv", "--c", "0", "--wrt", "a", "--a", "1"], 0, "a = 2.0090 ± 0.0026\n", ""),
    (["T == a*sqrt(L)", "p.csv", "--bounds", "a=:1.5"], 0, "a = 1.5 (at its bound)\n", "at a bound"),
    (["T == a*sqrt(L)", "p.csv", "--bounds", "a=2:3", "--a", "1"], 2, "", "a starts at 1.0, outside of its bounds 2:3"),
    (["T == a*sqrt(L)", "p.csv", "--bounds", "a=2:3"], 0, "a = 2.00", "within its bounds starts a at 2.5; to start elsewhere"),
    (["T == a*sqrt(L)", "p.csv", "--bounds", "a>2"], 0, "a = 2.00", "starts a at 3; to start"),
    (["T == c - a*sqrt(L)", "p.csv", "--bounds", "a<-1"], 0, "c = ", "note: within its bounds starts a at -2; to start"),
    (["T == a*sqrt(L)", "p.csv", "--bounds", "a<0.1"], 0, "a = 0.1 (at its bound)", "starts a at -0.9; to start"),
    (["T == a*sqrt(L) + c", "p.csv", "--bounds", "a=3:2"], 2, "", "3 is not below 2"),
    (["T == a*sqrt(L)", "p.csv", "--bounds", "b=2:3"], 2, "", "'b' is not a variable (there are: a)"),
    (["T == a*sqrt(L)", "p.csv", "--bounds", "a=2"], 2, "", "a=2: is 2 or more, a=:2 is 2 or less"),
    (["T == a*sqrt(L)", "p.csv", "--bounds", "a=0,1.5"], 2, "", "write --bounds a=0:1.5"),
    (["T == a*sqrt(L)", "p.csv", "--bounds", "a=[0..1.5]"], 2, "", "write --bounds a=0:1.5"),
    (["T == a*sqrt(L)", "p.csv", "--bounds", "0<a>1.5"], 2, "", "--bounds wants a=LOW:HIGH, not '0<a>1.5'"),
    (["T == a*sqrt(L)", "p.csv", "--bounds", "a>0,a<2"], 2, "", "both ends in one: a=LOW:HIGH"),
    (["T == a*sqrt(L)", "p.csv", "--bounds", "0<a<=1.5"], 0, "a = 1.5 (at its bound)\n", ""),
    (["T == a*sqrt(L)", "p.csv", "--bounds", "1.5>=a"], 0, "a = 1.5 (at its bound)\n", ""),
    (["T == a*sqrt(L) + c", "p.csv", "--bounds", "a<1.5,c>=0"], 0, "a = 1.5 (at its bound)\n", ""),
    (["T == a*sqrt(L) + c", "p.csv", "--bounds", "a=1:1.5,c=0:maximum(1,2)"], 0, "a = 1.5 (at its bound)\n", ""),
    (["T == a*sqrt(L) + b + c", "p.csv", "--fix", "b=1,c=-1"], 0, "a = 2.0090 ± 0.0026\n", ""),
    (["T == a*sqrt(L) + b", "p.csv", "--fix", "b==1"], 2, "", "as in --fix b=1"),
    (["T == a*sqrt(L) + c", "p.csv", "--let", "a=1,c=0"], 0, "a = ", ""),
    ([G, "p.csv", "--g", "10", "--sigma", "T=sT, L=0.002"], 0, "g = 9.783 ± 0.055\n", ""),
    ([G, "p.csv", "--g", "10", "--sigma", "sT,L=0.002", "--precision", "1"], 0,
     "g = 9.78 ± 0.06\ndof = 4\nchi2 = 0.842324\nresidual_deviation = 0.458891\nchi2_per_dof = 0.2106\n", ""),
    (["T == a*sqrt(L)", "p.csv", "--robust", "huber"], 0, "a = 2.00", ""),
    (["T == a*b*sqrt(L)", "p.csv"], 1, "a = ", "the data do not determine a, b: other values"),
    (["T == a*sqrt(LL)", "p.csv"], 1, "a = ", "LL (or is it the column L?) start at 1"),
    (["T == a*sqrt(L)", "p.csv", "--max-iterations", "1"], 0, "a = 2.009", ""),
    (["log(T) == a + b*log(L)", "p.csv", "--a", "0", "--plain"], 0, "a\t0.697", ""),
    (["T == dot(w, v)", "p.csv", "--columns", "v=L,sT", "--w", "1,1"], 0, "w[0] = 1.", ""),
    (["T - a*sqrt(L)", "p.csv"], 2, "", "this is not an equation"),
    (["T = a*sqrt(L)", "p.csv"], 0, "a = ", "note: read as T == a*sqrt(L); an equation has =="),
    (["T == a*sqrt(L)", "nope.csv"], 2, "", "cannot read nope.csv"),
    (["T == a*sqrt(L)"], 2, "", "no table"),
    (["Q == a*sqrt(R)", "p.csv"], 2, "", "no variable of the equation is a column of p.csv"),
    (["T == a*L", "p.csv", "--sigma", "nn"], 2, "", "'nn' is neither a column of p.csv nor a number"),
    (["T == a*L", "p.csv", "--sigma", "q=1"], 2, "", "'q' is not a column of the equation"),
    (["T == sigma*L", "p.csv", "--sigma", "1"], 2, "", "starts the parameter; the uncertainty of the data is --sigma T=1"),
    (["T == a*L", "p.csv", "--plot", "x.bmp"], 2, "", "the ending of x.bmp names no format of pictures"),
    (["T == a*L", "p.csv", "-o", "-"], 2, "", "the parameters go to standard output already"),
    (["T == a*L", "p.csv", "--by-rows", "--robust", "huber"], 2, "", "--robust cannot be used with --by-rows: by rows only sums"),
    (["T == a/(1 + exp(-b*L))", "p.csv", "--by-rows", "--b", "-5000"], 1, "a = 1", "this is a plateau, not a fit"),
    (["T == a*L", "p.csv", "--by-rows", "--starts", "9"], 2, "", "start there: --a VALUE"),
    (["T == a*L", "p.csv", "--by-rows", "--where", "L > 9"], 2, "", "--where L > 9: no row is left"),
    (["T == a*L", "p.csv", "--by-rows", "--sigma", "L=1"], 2, "", "--sigma L=… cannot be used with --by-rows"),
    (["T == a*log(L-1)", "p.csv"], 1, "", "at the start the residual of row 1 is nan"),
    (["T == foo(L)*a", "p.csv"], 2, "", "no function is called `foo`"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("argv", "code", "begins", "piece"),
    SAID,
    ids=lambda v: " ".join(v) if isinstance(v, list) else "",
)
def test_what_is_said(argv: list[str], code: int, begins: str, piece: str) -> None:
    found = run("fit", *argv)
    assert found[0] == code, found
    assert found[1].startswith(begins)
    assert piece in " ".join(found[2].split())


COUNTS = "t,counts\n0,1050\n1,905\n2,824\n3,741\n4,670\n5,606\n6,549\n7,497\n8,449\n9,407\n"
N = "N == N_0*exp(-t/tau) + B"
STARTS = "--N_0 1000 --B 10 --tau 5"
# (the equation, options, what standard output begins with, a piece of standard error)
OF_COUNTS = [
    ("N == N_0*exp(-t/tau)", "", "", "did you mean --columns N=counts? A parameter gets a start: --N 1"),
    ("log(N) == a - t/tau", "", "", "did you mean --columns N=counts?"),
    ("sigma == a - t/tau", "", "", "a start: --let sigma=1"),
    ("count == a - t/tau", "", "", "did you mean counts, as in --columns count=counts?"),
    ("N == N_0*exp(-t/tau)", "--N 5 --bounds N_0=1:2", "N = ", ""),
    ("a == t*counts", "", "a = ", ""),
    ("counts == a", "", "a = ", "the column `t` is not used"),
    (N, f"--columns N=counts {STARTS} --sigma poisson", "N_0 = 910 ± 120\n", ""),
    (N, f"--columns N=counts {STARTS} --sigma poisson --by-rows", "N_0 = 910 ± 120\n", ""),
    (N, f"--columns N=counts {STARTS} --sigma sqrt(N)", "N_0 = 910 ± 120\n", ""),
    (N, f"--columns N=counts {STARTS} --sigma sqrt(N) --by-rows", "N_0 = 910 ± 120\n", ""),
    (N, f"--columns N=counts {STARTS} --sigma √counts --math", "N_0 = 910 ± 120\n", ""),
    (N, f"--columns N=counts {STARTS} --sigma √counts", "", "here it is written sqrt(counts)"),
    (N, f"--columns N=counts {STARTS} --sigma sqrt", "", "'sqrt(N)', or for counts --sigma poisson"),
    (N, f"--columns N=counts {STARTS} --poisson", "", "write --sigma poisson"),
    (N, f"--columns N=counts {STARTS} --sigma 1 --sigma 2", "", "--sigma is given twice: 1 and 2"),
    (N, f"--columns N=counts {STARTS} --sigma N=1 --sigma N=2", "", "--sigma N= is given twice: 1 and 2"),
    ("log(counts) == a - t/tau", "--sigma poisson", "", "--sigma counts=poisson"),
    ("log(counts) == a - t/tau", "--sigma counts=poisson --tau 5", "a = 6.930 ± 0.020\n", ""),
    ("counts == a*t", "--sigma counts-407", "", "set a floor, as in --sigma 'sqrt(counts + 1)'"),
    ("counts == a - t*sigma", "--sigma sqrt(counts) --sigma 0.3", "", "write --let sigma=0.3 --sigma 'counts=sqrt(counts)'"),
    ("counts == a - t*sigma", "--sigma sqrt(counts) --let sigma=3", "a = ", ""),
    ("counts == sigma*t", "--sigma counts=sqrt(counts)", "sigma = ", "add --let sigma=VALUE"),
    ("counts == a - t*sigma", "--sigma sqrt(counts)", "", "--let sigma=START --sigma 'counts=sqrt(counts)'"),
]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(("equation", "options", "begins", "piece"), OF_COUNTS)
def test_what_is_counted(
    equation: str, options: str, begins: str, piece: str, folder: Path
) -> None:
    (folder / "decay.csv").write_text(COUNTS)
    found = run("fit", equation, "decay.csv", *options.split())
    assert found[1].startswith(begins) if begins else "chi2" not in found[1], found
    assert piece in " ".join(found[2].split())


SITES = "site,t,y\nA,0,1\nB,1,5\nA,2,3\nA,3,4.1\nB,4,9\n"
# (the condition, how many rows it takes, what is said)
TEXTS = [
    ("site == 'A'", 3, ""),
    ('"A" == site and t < 3', 2, ""),
    ("not site != 'A' or t == 4", 4, ""),
    ("site != 'A'", 2, ""),
    ("site == A", 0, "a text stands in quotes, as in site == 'A'"),
    ("site == 'C'", 0, "no row"),
    ("site == 'A' or 'B'", 0, "a text is compared with a column by == or !="),
    ("site in ['A', 'B']", 5, ""),
    ("site not in ('A', 'B') or t > 3", 1, ""),
    ("site == 'A' & t < 3", 0, "write `and`: site == 'A' and t < 3"),
    ("site < 'B'", 0, "a text is compared with a column by == or !="),
    ("site < '2025-01-01'", 0, "column site: holds no dates"),
    ("sight == 'A'", 0, "sight is not a column of sites.csv"),
]


@pytest.mark.parametrize(("condition", "count", "words"), TEXTS)
def test_rows_by_their_texts(folder: Path, condition: str, count: int, words: str) -> None:
    (folder / "sites.csv").write_text(SITES)
    for how in ([], ["--by-rows"]):
        line = ["y == a + b*t", "sites.csv", "--where", condition, "--fix", "b=1", *how]
        code, out, err = run("fit", *line, "-o", "out.csv")
        assert (code == 0) == bool(count) and words in err, err
        if count:
            assert len((folder / "out.csv").read_text().splitlines()) == 1 + count
            assert f"dof = {count - 1}\n" in out


def test_the_table_with_what_was_fitted(folder: Path) -> None:
    for how in ([], ["--by-rows"]):
        assert run("fit", "T == a*L + b", "p.csv", "-o", "out.csv", *how)[0] == 0
        header, *rows = (folder / "out.csv").read_text().splitlines()
        assert header == "L,T,sT,fitted,residual"
        for row in rows:
            _, t, _, fitted, residual = map(float, row.split(","))
            assert fitted + residual == pytest.approx(t)


# (the table, who has uncertainties)
UNCERTAIN = [
    ("p.csv", ["--sigma", "L=0.002", "--sigma", "T=sT"]),
    ("p.csv", ["--sigma", "T=0.01"]),
    ("p.csv", ["--sigma", "3%", "--sigma", "L=1%"]),
    ("cells.csv", []),
    ("cells.csv", ["--where", "L > 0.4"]),
]


@pytest.mark.parametrize(("table", "options"), UNCERTAIN)
def test_residuals_are_written_whoever_told_the_uncertainties(
    table: str, options: list[str], folder: Path
) -> None:
    code, _, err = run("fit", G, table, "--g", "10", *options, "-o", "out.csv")
    assert code == 0, err
    rows = (folder / "out.csv").read_text().splitlines()
    assert rows[0].endswith(",fitted,residual") and len(rows) == 5 + ("--where" not in options)


def test_workers_give_the_bits_of_one_process(folder: Path) -> None:
    """Parts are combined in a fixed order, so that it does not matter who sums them."""
    from gradcli.columns.optimize.equation_rows import ByPasses, EquationRows, PassSums
    from gradcli.columns.streaming.passes import Threads
    from gradcli.tables.parts import Parts

    for k in range(5):
        (folder / f"part{k}.csv").write_text(PENDULUM.replace("1.1", f"{1.2 + k / 7}"))
    parts = Parts("part*.csv")
    parts.count([0, 1], "error")
    found = []
    for threads in (1, 2, 3):
        rows = EquationRows("T == a*sqrt(L) + b", {}, {"a": 2.0, "b": 0.0}, {})
        rows.look({"L": 1.0, "T": 2.0})
        sums = PassSums(rows, parts.names, {"L": [0], "T": [1]}, set(), None, "error")
        at = ByPasses(sums, parts.parts, Threads(threads), lambda n: None)
        found.append([a.tobytes() for a in at(rows.flat())])
    assert found[0] == found[1] == found[2]


@pytest.mark.needs("matplotlib")
@pytest.mark.long
def test_a_picture_is_the_same_each_time(folder: Path) -> None:
    for form, first in (("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")):
        made = []
        for name in (f"a.{form}", f"b.{form}"):
            assert run("fit", G, "cells.csv", "--g", "10", "--plot", name)[0] == 0
            made.append((folder / name).read_bytes())
        assert made[0] == made[1] and made[0].startswith(first)


def test_a_model_of_vectors_is_drawn_over_the_rows(folder: Path) -> None:
    options = ["--columns", "v=L,sT", "--b", "1,1", "--plot"]
    code, out, err = run("fit", "T == dot(b, v)", "p.csv", *options)
    assert code == 0 and out.partition("b[0]")[0].rstrip().endswith("row"), err


def test_parameters_go_on_into_other_commands(folder: Path) -> None:
    """A value that is predicted has the uncertainty of the fitted line there: JCGM 100, H.3."""
    _, out, _ = run("fit", "T == a + b*L", "p.csv", "--json")
    (folder / "fit.json").write_text(out)
    c = json.loads(out)["covariance"]
    x = 0.95
    variance = c["a"]["a"] + 2 * x * c["a"]["b"] + x * x * c["b"]["b"]
    found = json.loads(run("grad", "a + b*L", "--L", "0.95", "--params", "fit.json", "--json")[1])
    assert found["uncertainty"] == pytest.approx(variance**0.5, rel=1e-12)
    assert run("eval", "a + b*L", "--L", "0.95", "--params", "fit.json")[:2] == (
        0,
        "1.956 ± 0.024\n",
    )
    header, *rows = run("map", "a + b*L", "p.csv", "--params", "fit.json", "--no-grad", "all")[
        1
    ].splitlines()
    assert header == "L,T,sT,value,value.uncertainty" and len(rows) == 5
    assert run("eval", "a", "--params", "fit.json", "--a", "3")[1] == "3\n"
    assert "p.csv is not a fit" in run("eval", "a", "--params", "p.csv")[2]
    assert "no value for q" in run("eval", "a + q", "--params", "fit.json")[2]


def test_parameters_that_are_a_vector_have_covariances_among_each_other(folder: Path) -> None:
    fits = {"v": ("dot(b, stack([L**0, L]))", ["--b", "1,1"]), "n": ("b0 + b1*L", [])}
    for name, (model, start) in fits.items():
        found = run("fit", f"T == c*L**2 + {model}", "p.csv", *start, "--json")[1]
        (folder / f"{name}.json").write_text(found)
    made = [
        json.loads(run("grad", f"c + {m}", "--L", "0.95", "--params", f"{n}.json", "--json")[1])
        for n, (m, _) in fits.items()
    ]
    assert made[0]["uncertainty"] == pytest.approx(made[1]["uncertainty"], rel=1e-6)
    rows = [
        run("map", m, "p.csv", "--params", f"{n}.json", "--no-grad", "all", "--json")[
            1
        ].splitlines()
        for n, (m, _) in fits.items()
    ]
    one, two = ([json.loads(r)["value.uncertainty"] for r in part] for part in rows)
    assert one == pytest.approx(two, rel=1e-6)


# -- data as it is ---------------------------------------------------------------------------------
LINE = "x,y\n0,1.1\n1,2.9\n2,5.2\n3,7.1\n"
ABOVE = "x,y\n0,3.1\n1,5.0\n2,7.2\n3,8.9\n"
FILES = {
    "line.csv": LINE,
    "above.csv": ABOVE,
    "sets.csv": "s,x,y\nA,0,1.1\nA,1,2.9\nA,2,5.2\nA,3,7.1\nB,0,3.1\nB,1,5\nB,2,7.2\nB,3,8.9\n",
    "k.csv": "k,x,y\n0,0,1.1\n0,1,2.9\n0,2,5.2\n0,3,7.1\n1,0,3.1\n1,1,5\n1,2,7.2\n1,3,8.9\n",
    "from_1.csv": "k,x,y\n1,0,1.1\n1,1,2.9\n2,2,5.2\n2,3,7.1\n",
    "half.csv": "k,x,y\n0,0,1.1\n0.5,1,2.9\n1,2,5.2\n1,3,7.1\n",
    "z.csv": "f,Z\n1,1.2-0.9j\n2,1.05-0.52j\n4,0.98-0.24j\n8,1.01-0.13j\n",
    "parts.csv": "f,re,im\n1,1.2,-0.9\n2,1.05,-0.52\n4,0.98,-0.24\n8,1.01,-0.13\n",
    "set.csv": "set,x,y\n0,0,1\n0,1,2\n",
}


@pytest.fixture
def data(folder: Path) -> Path:
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return folder


def numbers(*argv: str) -> dict[str, tuple[float, float]]:
    code, out, err = run("fit", *argv, "--json")
    assert code == 0, err
    found = json.loads(out)["parameters"]
    return {name: (p["value"], p["error"]) for name, p in found.items()}


TWO = "y == a*x + b[set]"


@pytest.mark.parametrize(
    "argv",
    [
        [TWO, "line.csv", "above.csv"],
        [TWO, "sets.csv", "--by", "s"],
        [TWO, "k.csv", "--by", "k"],
        ["y == a*x + b[k]", "k.csv"],
        ["y == a*x + b[k]", "k.csv", "--by-rows"],
        ["y == a*x + b[k]", "k.csv", "--b", "1,2"],
        ["y == a*x + b[0]*(k == 0) + b[1]*(k == 1)", "k.csv", "--b", "1,1"],
    ],
    ids=lambda argv: " ".join(argv),
)
def test_data_sets_share_parameters(argv: list[str], data: Path) -> None:
    """By NumPy: the normal equations of a slope and two offsets."""
    import numpy as np

    x = np.array([0.0, 1, 2, 3] * 2)
    y = np.array([1.1, 2.9, 5.2, 7.1, 3.1, 5, 7.2, 8.9])
    A = np.stack([x, np.arange(8) < 4, np.arange(8) >= 4], 1).astype(float)
    best, rest, *_ = np.linalg.lstsq(A, y, rcond=None)
    errors = np.sqrt(np.diagonal(np.linalg.inv(A.T @ A)) * rest[0] / 5)
    found = numbers(*argv)
    assert list(found) == ["a", "b[0]", "b[1]"]
    assert [v for v, _ in found.values()] == pytest.approx(best.tolist(), rel=1e-6)
    assert [e for _, e in found.values()] == pytest.approx(errors.tolist(), rel=1e-6)


@pytest.mark.parametrize("how", [[], ["--by-rows"]])
@pytest.mark.parametrize(
    ("sigma", "of"),
    [
        ("3%", "0.03*y"),
        ("0.03*y", "0.03*y"),
        ("sqrt(y)", "y**0.5"),
        ("y=3%", "0.03*y"),
        ("0.1", "0.1"),
    ],
)
def test_uncertainties_are_formulas_of_columns(
    sigma: str, of: str, how: list[str], data: Path
) -> None:
    if "=" in sigma and how:
        assert (
            "--sigma y=… cannot be used"
            in run("fit", LINEAR, "line.csv", "--sigma", sigma, *how)[2]
        )
        return
    lines = ["x,y,s", *(f"{x},{y},{eval(of, {'y': y})!r}" for x, y in DATA)]
    (data / "s.csv").write_text("\n".join(lines))
    found = numbers(LINEAR, "line.csv", "--sigma", sigma, *how)
    for name, pair in numbers(LINEAR, "s.csv", "--sigma", "s", *how).items():
        assert found[name] == pytest.approx(pair, rel=1e-9)


LINEAR = "y == a*x + b"
DATA = [(0, 1.1), (1, 2.9), (2, 5.2), (3, 7.1)]


@pytest.mark.parametrize("how", [[], ["--by-rows"]])
def test_rows_are_chosen_by_a_condition(how: list[str], data: Path) -> None:
    (data / "rest.csv").write_text("x,y\n1,2.9\n2,5.2\n3,7.1\n")
    line = "y == a*x + b"
    given = ["--where", "(x > 0) & (y < 9)", "--sigma", "0.1", *how]
    whole = numbers(line, "line.csv", *given, "-o", "out.csv")
    rest = numbers(line, "rest.csv", "--sigma", "0.1", *how)
    assert whole.keys() == rest.keys()
    for name, pair in whole.items():
        assert pair == pytest.approx(rest[name], rel=1e-9)
    assert len((data / "out.csv").read_text().splitlines()) == 4


@pytest.mark.long
def test_a_row_may_have_several_residuals(data: Path) -> None:
    complex_one = numbers("Z == R + 1/(1j*C*f)", "z.csv")
    parts = "[re, im] == [R, -1/(C*f)]"
    for how in ([], ["--by-rows"]):
        found = numbers(parts, "parts.csv", *how)
        for name, pair in complex_one.items():
            assert found[name] == pytest.approx(pair, rel=1e-6)
    assert numbers("re + 1j*im == R + 1/(1j*C*f)", "parts.csv")["C"] == pytest.approx(
        complex_one["C"], rel=1e-6
    )
    by_columns = numbers(parts, "parts.csv", "--sigma", "re=0.1", "--sigma", "im=0.02")
    by_residuals = numbers(parts, "parts.csv", "--sigma", "[0.1, 0.02]")
    assert by_columns["C"] == pytest.approx(by_residuals["C"]) and by_columns["C"][1] < 0.03
    assert run("fit", parts, "parts.csv", "-o", "out.csv")[0] == 0
    header = (data / "out.csv").read_text().splitlines()[0]
    assert header == "f,re,im,fitted[0],fitted[1],residual[0],residual[1]"


# -- (arguments, a piece of standard error) ------------------------------------------------------------
REFUSED = [
    ([TWO, "line.csv", "line.csv"], "the table line.csv is given twice"),
    ([TWO, "line.csv", "none.csv"], "unexpected argument 'none.csv'"),
    ([TWO, "line.csv", "p.csv"], "p.csv has no column 'y', which line.csv has"),
    ([TWO, "line.csv", "above.csv", "--by", "x"], "--by cannot be used with several tables"),
    ([TWO, "line.csv", "above.csv", "--by-rows"], "several data sets are read at once"),
    ([TWO, "sets.csv", "--by", "q"], "--by: 'q' is not a column of sets.csv"),
    (["y == a*x", "set.csv", "--by", "set"], "`set` is a column of set.csv"),
    (["y == a*x + b[k]", "from_1.csv"], "write b[k - 1], and --b VALUE,VALUE"),
    (["y == a*x + b[k]", "half.csv", "--b", "1,1"], "k is an index, and its row 2 is 0.5"),
    (["y == a*x", "line.csv", "--where", "q > 1"], "--where: q is not a column of line.csv"),
    (["y == a*x", "line.csv", "--where", "x > 7"], "--where x > 7: no row of 4 is left"),
    (["y == a*x", "line.csv", "--where", "2 > 1"], "--where: the condition uses no column"),
    (["y == a*x", "line.csv", "--sigma", "x"], "an uncertainty is 0 in row 1"),
    (["y == a*x", "line.csv", "--sigma", "y - 2"], "an uncertainty is -0.9 in row 1"),
    (["y == a*x", "line.csv", "--sigma", "0.1*q"], "--sigma: q is not a column of line.csv"),
    (["a*y == b*x", "line.csv", "--sigma", "3%"], "a percentage of which value?"),
    (["[re, im] == [a, a, f]", "parts.csv"], "has shape (2,), the other (3,)"),
    (["re == R + 1/(1j*f)", "parts.csv"], "the measured side is real, and the other a complex"),
    (["[re, re*im] == [a, b]", "parts.csv", "--sigma", "re=0.1", "--sigma", "im=0.1"],
     "the uncertainty of re goes into several residuals of a row"),
    (["[re, im] == [a, b*f]", "parts.csv", "--sigma", "[0.1, 0.2]", "--sigma", "f=0.1"],
     "f has an uncertainty, and a row has 2 residuals"),
]  # fmt: skip


@pytest.mark.parametrize(("argv", "piece"), REFUSED, ids=lambda v: " ".join(v)[:60])
def test_what_is_refused_of_data(argv: list[str], piece: str, data: Path) -> None:
    code, _, err = run("fit", *argv)
    assert code in (1, 2) and piece in " ".join(err.split()), err


# -- how good it is ----------------------------------------------------------------------------------
@pytest.fixture
def waves(folder: Path) -> Path:
    """300 points of sin(1.759*x), whose sum of squares has many minima."""
    import numpy as np

    x = np.linspace(0, 30, 300)
    y = np.sin(1.759 * x) + 0.1 * np.random.default_rng(0).normal(size=300)
    rows = [f"{a!r},{b!r}" for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    (folder / "waves.csv").write_text("\n".join(["x,y", *rows]))
    return folder


WAVE = ["y == sin(a*x)", "waves.csv", "--a", "1.5"]


@pytest.mark.long
def test_a_fit_that_explains_nothing_says_so_and_looks_elsewhere(waves: Path) -> None:
    code, _, err = run("fit", *WAVE)
    assert code == 0 and "the model explains 0% of its variance; --starts 50 looks" in " ".join(
        err.split()
    )
    code, out, err = run("fit", *WAVE, "--starts", "12", "--json")
    found = json.loads(out)
    assert code == 0 and found["parameters"]["a"]["value"] == pytest.approx(1.759, abs=0.003)
    assert found["explained"] > 0.95 and found["search"]["starts"] == 13
    assert 1 <= found["search"]["ended_here"] < 13 and found["search"]["next_chi2"] > 50
    assert "of 13 starts end at this minimum; the next minimum has chi2" in " ".join(err.split())
    again = run("fit", *WAVE, "--starts", "12", "--json")[1]
    assert again == out
    robust = json.loads(run("fit", *WAVE, "--starts", "12", "--robust", "huber", "--json")[1])
    assert robust["parameters"]["a"]["value"] == pytest.approx(1.759, abs=0.003)
    assert (
        "--starts cannot be used with --by-rows"
        in run("fit", *WAVE, "--starts", "3", "--by-rows")[2]
    )


def test_starts_stay_within_bounds(waves: Path) -> None:
    code, out, _ = run("fit", *WAVE, "--starts", "8", "--bounds", "a=1.4:1.6", "--json")
    assert code == 0 and 1.4 <= json.loads(out)["parameters"]["a"]["value"] <= 1.6


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["y == a*x + b", "--sigma", "0.1"], False),
        (["y == a", "--sigma", "3"], False),  # a mean explains nothing, and nobody asked it to
        (["y == a*x + b", "--sigma", "0.001"], "p = 1e-"),
        (["y == a*(x - 1.5)**2 + b"], "the model explains 0% of its variance"),
    ],
)
def test_what_is_said_of_the_residuals(argv: list[str], says: str | bool, data: Path) -> None:
    code, _, err = run("fit", argv[0], "line.csv", *argv[1:])
    said = " ".join(err.split())
    assert code == 0
    if says is False:
        assert "p = " not in said and "explains" not in said
    elif str(says).startswith("p"):
        assert "the residuals are larger than the uncertainties allow" in said
    else:
        assert says in said


def test_chi2_and_its_probability(data: Path) -> None:
    """By SciPy: the survival function of chi2."""
    from scipy.stats import chi2

    found = json.loads(run("fit", LINEAR, "line.csv", "--sigma", "0.1", "--json")[1])
    assert found["p_value"] == pytest.approx(chi2.sf(found["chi2"], 2), rel=1e-12)
    assert found["chi2_per_dof"] == pytest.approx(found["chi2"] / 2)
    out = run("fit", LINEAR, "line.csv", "--sigma", "0.1")[1]
    assert f"p_value = {found['p_value']:.4g} (a good fit" in out
    without = json.loads(run("fit", LINEAR, "line.csv", "--json")[1])
    assert without["p_value"] is None and "p_value" not in run("fit", LINEAR, "line.csv")[1]


def test_parameters_for_latex(data: Path) -> None:
    line = ["fit", "y == alpha*x + b_0", "line.csv", "--sigma", "0.1"]
    assert run(*line, "--format", "latex")[1] == (
        "\\begin{aligned}\n  \\alpha &= 2.030 \\pm 0.045 \\\\\n  b_{0} &= 1.030 \\pm 0.084 \\\\\n"
        "  \\chi^2/\\mathrm{dof} &= 4.3/2,\\quad p = 0.12\n\\end{aligned}\n"
    )
    assert "\\alpha &= \\num{2.030(45)}" in run(*line, "--format", "siunitx")[1]
    assert "--format latex and --json cannot" in run(*line, "--format", "latex", "--json")[2]


NUMBERS = [
    ((9.7812, 0.0531), r"9.781 \pm 0.053", r"\num{9.781(53)}"),
    ((1.234e-9, 3e-11), r"(1.234 \pm 0.030) \times 10^{-9}", r"\num{1.234(30)e-9}"),
    ((958, 50), r"958 \pm 50", r"\num{958(50)}"),
    ((22.8, 2.7), r"22.8 \pm 2.7", r"\num{22.8(27)}"),
    ((-0.00123, 1e-5), r"-0.001230 \pm 0.000010", r"\num{-0.001230(10)}"),
    ((0.5, 0), "0.5", r"\num{0.5}"),
    ((1e-30, 0), r"1 \times 10^{-30}", r"\num{1e-30}"),
]


@pytest.mark.parametrize(("pair", "latex", "siunitx"), NUMBERS)
def test_numbers_for_latex(pair: tuple[float, float], latex: str, siunitx: str) -> None:
    from gradcli.commands.typeset_results import number

    assert (number(*pair, "latex"), number(*pair, "siunitx")) == (latex, siunitx)


def test_a_percentage_and_a_number_are_added(data: Path) -> None:
    found = [
        json.loads(run("fit", "y == a*x + b", "line.csv", "--sigma", sigma, "--json")[1])
        for sigma in ("1% + 0.05", "0.01*y + 0.05")
    ]
    assert found[0]["parameters"] == found[1]["parameters"]


def test_an_assignment_is_the_equation(data: Path) -> None:
    code, out, err = run("fit", "k = 2*a; y = k*x + b", "line.csv")
    assert code == 0 and "read as k = 2*a; y == k*x + b" in err
    assert out.startswith("a = 1.015 ±")


# -- correlated uncertainties ----------------------------------------------------------------------
YORK = "x,y,sx,sy,r,c\n" + "".join(
    f"{x},{y},{a},{b},{r},{r * a * b}\n"
    for x, y, a, b, r in [
        (0, 5.9, 0.1, 0.3, 0.5), (0.9, 5.4, 0.1, 0.3, 0.2), (1.8, 4.4, 0.2, 0.2, -0.4),
        (2.6, 4.6, 0.2, 0.2, 0.3), (3.3, 3.5, 0.2, 0.2, 0), (4.4, 3.7, 0.3, 0.1, 0.6),
    ]
)  # fmt: skip
SIGMAS = ["--sigma", "x=sx", "--sigma", "y=sy", "--a", "-1", "--b", "5"]


@pytest.mark.parametrize(
    "argv",
    [
        ["y == a*x + b", "--correlation", "x,y=r"],
        pytest.param(["a*x + b == y", "--covariance", "y,x=c"], marks=pytest.mark.long),
        pytest.param(["-y == -a*x - b", "--covariance", "x,y=r*sx*sy"], marks=pytest.mark.long),
    ],
    ids=" ".join,
)
def test_columns_of_a_row_are_correlated(folder: Path, argv: list[str]) -> None:
    """The line's chi2 has a closed form: (y - a*x - b)² / (sy² + a²*sx² - 2*a*r*sx*sy)."""
    from scipy.optimize import minimize

    (folder / "york.csv").write_text(YORK)
    rows = [list(map(float, line.split(","))) for line in YORK.split("\n")[1:-1]]

    def chi2(p: Any) -> float:
        a, b = p
        return sum(
            (y - a * x - b) ** 2 / (sy**2 + a**2 * sx**2 - 2 * a * c) for x, y, sx, sy, _, c in rows
        )

    code, out, err = run("fit", argv[0], "york.csv", *argv[1:], *SIGMAS, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    best = minimize(chi2, [-0.5, 5.5], tol=1e-12)
    values = [found["parameters"][n]["value"] for n in "ab"]
    assert values == pytest.approx(best.x, rel=1e-6)
    assert found["chi2"] == pytest.approx(best.fun, rel=1e-9)
    cov, errors = found["covariance"], {n: found["parameters"][n]["error"] for n in "ab"}
    assert found["correlation"]["a"]["b"] == pytest.approx(
        cov["a"]["b"] / errors["a"] / errors["b"]
    )


@pytest.mark.parametrize(
    "given",
    [
        ["--covariance", "y=@C.csv"],
        pytest.param(["--correlation", "y=@R.csv", "--sigma", "d"], marks=pytest.mark.long),
    ],
    ids=" ".join,
)
def test_rows_are_correlated(folder: Path, given: list[str]) -> None:
    """A line of generalized least squares: inv(X.T @ inv(C) @ X) is the parameters' covariance."""
    import numpy as np

    x = np.arange(6.0)
    y = 2 * x + 1 + np.array([0.3, 0.1, -0.2, 0.4, 0.0, -0.3])
    c = 0.2 * np.exp(-np.abs(np.subtract.outer(x, x))) + 0.1 * np.diag(1 + x)
    d = np.sqrt(np.diagonal(c))
    np.savetxt(folder / "C.csv", c, delimiter=",")
    np.savetxt(folder / "R.csv", c / np.outer(d, d), delimiter=",")
    np.savetxt(
        folder / "line.csv", np.c_[x, y, d], delimiter=",", header="x,y,d", comments="", fmt="%.17g"
    )
    wide = np.c_[x, np.ones(6)]
    spread = np.linalg.inv(wide.T @ np.linalg.solve(c, wide))
    best = spread @ wide.T @ np.linalg.solve(c, y)
    code, out, err = run(
        "fit", "y == a*x + b", "line.csv", *given, "--a", "1", "--b", "0", "--json"
    )
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert [found["parameters"][n]["value"] for n in "ab"] == pytest.approx(best, rel=1e-10)
    assert [[found["covariance"][i][j] for j in "ab"] for i in "ab"] == [
        pytest.approx(row, rel=1e-9) for row in spread
    ]


def test_matrices_of_the_result_are_printed() -> None:
    out = run(*MISRA, "--correlation", "--covariance", "--precision", "4")[1]
    assert out.startswith("b1 = 238.942 ± 2.707\nb2 = 0.000550156 ± 0.000007267\n")
    assert out.endswith(
        "correlation:\n           b1       b2\n  b1        1  -0.9988\n  b2  -0.9988        1\n"
    )
    assert "covariance\t7.3" in run(*MISRA, "--covariance", "--plain")[1]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (
            ["--correlation", "x,y=r", "--budget"],
            "--budget and --correlation cannot be used together",
        ),
        (["--correlation", "x,y=r", "--robust", "huber"], "without --robust"),
        (["--correlation", "x,y=2"], "a correlation is between -1 and 1, not 2"),
        (["--covariance", "x=eye(6)"], "x has an uncertainty already"),
        (["--correlation", "y=eye(3)"], "give a matrix of 6 rows and columns"),
        (["--correlation", "0.5"], "--correlation wants y,x=VALUE"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else "",
)
def test_which_correlations_are_refused(folder: Path, argv: list[str], words: str) -> None:
    (folder / "york.csv").write_text(YORK)
    code, out, err = run("fit", "y == a*x + b", "york.csv", *SIGMAS, *argv)
    assert (code, out) == (2, "")
    assert words in err


def test_of_equally_deep_minima_the_nearest_is_taken(folder: Path) -> None:
    """At times 0, 0.125, … the frequency w + 16*pi is an alias of w."""
    rows = [f"{k / 8},{2 * math.exp(-k / 32) * math.cos(4 * k / 8)}" for k in range(40)]
    (folder / "osc.csv").write_text("\n".join(["t,z", *rows]))
    start = ["--A", "1", "--k", "0.1", "--w", "4.5", "--starts", "40"]
    found = json.loads(run("fit", "z == A*exp(-k*t)*cos(w*t)", "osc.csv", *start, "--json")[1])
    assert found["parameters"]["w"]["value"] == pytest.approx(4, rel=1e-9)


def test_parameters_that_the_data_hardly_tell_apart_are_named(folder: Path) -> None:
    rates = [
        (0.5, 0.018),
        (1, 0.021),
        (2, 0.025),
        (3, 0.0272),
        (5, 0.0301),
        (7, 0.0315),
        (10, 0.0325),
    ]
    (folder / "nodes.csv").write_text("T,r\n" + "\n".join(f"{t},{r}" for t, r in rates))
    curve = "r == b0 + (b1+b2)*(1-exp(-T/tau))/(T/tau) - b2*exp(-T/tau)"
    start = ["--b0", "0.03", "--b1", "-0.01", "--b2", "0"]
    code, _, err = run("fit", curve, "nodes.csv", *start, "--tau", "2")
    assert code == 1
    assert "hint: the data hardly tell b2, tau apart: hold one fixed, as in --fix tau=1.2" in err
    assert run("fit", curve, "nodes.csv", *start, "--fix", "tau=1.21")[0] == 0

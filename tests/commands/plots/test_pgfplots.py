"""Pictures for LaTeX: their numbers are those of the curves, and what TeX reads is well formed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from gradcli.commands.plots.axes import Axis
from gradcli.commands.plots.pgfplots import curves, typeset
from gradcli.commands.plots.pictures import Curves, Line
from tests.commands.running import run

PREAMBLE = r"""\documentclass{standalone}
\usepackage[T1]{fontenc} \usepackage{textcomp,amsmath,pgfplots} \pgfplotsset{compat=1.16}
\usetikzlibrary{backgrounds}
\begin{document}
"""


def coordinates(text: str) -> np.ndarray:
    """The points of the first plot of a picture."""
    body = text.partition("coordinates {")[2].partition("}")[0]
    return np.array([pair.split(",") for pair in re.findall(r"\(([^)]*)\)", body)], float)


def test_a_curve_keeps_its_shape_and_its_gaps_in_few_points() -> None:
    x = np.linspace(-3, 3, 4001)
    y = np.where(np.abs(x) < 1e-9, np.nan, np.sin(3 * x))
    picture = Curves([Line(x, y, "sin(3*x)")], Axis((-3, 3), "x"), Axis((-1, 1), ""))
    text = curves(picture, "tex", "light", (7.2, 4.5)).decode()
    points = coordinates(text)
    assert len(points) < 200 and np.isnan(points[:, 1]).sum() == 1
    kept = points[~np.isnan(points[:, 1])]
    between = np.interp(x, kept[:, 0], kept[:, 1])
    np.testing.assert_allclose(
        between[y == y], y[y == y], atol=8e-3
    )  # they are as near as one sees, and steep here
    assert r"\addlegendentry{$\sin\left(3 x\right)$}" in text
    assert text.count("{") == text.count("}")


@pytest.mark.parametrize(
    ("source", "ends", "poles"),
    [
        ("1/x", "-3:3", [0]),  # a sample lies on the pole
        ("1/x**2", "-3:3", [0]),
        ("(x**2+1)/(x-1)", "-4:6", [1]),
        ("1/(x**2-1)", "-2:2", [-1, 1]),
        ("tan(x)", "0:6", [np.pi / 2, 3 * np.pi / 2]),
    ],
)
def test_branches_end_at_a_pole(source: str, ends: str, poles: list[float], tmp_path: Path) -> None:
    run("plot", source, "--x", ends, "--order", "0", "-o", str(tmp_path / "pole.tex"))
    points = coordinates((tmp_path / "pole.tex").read_text())
    gaps = points[np.isnan(points[:, 1]), 0]
    np.testing.assert_allclose(gaps, poles, atol=0.05)
    x, y = points[~np.isnan(points[:, 1])].T
    true = eval(source, {"x": x, "tan": np.tan})
    np.testing.assert_allclose(y, true, rtol=0.02)  # of a chord's points, too


def test_a_line_is_cut_off_far_outside_of_the_picture() -> None:
    x = np.array([-10.0, 0, 10])
    picture = Curves([Line(x, 1e6 * x, "")], Axis((-10, 10), "x"), Axis((0, 1), ""))
    points = coordinates(curves(picture, "tex", "light", (7.2, 4.5)).decode())
    inside = points[~np.isnan(points[:, 1])]
    np.testing.assert_allclose(inside, [[-2e-5, -20], [2.1e-5, 21]])


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("x**2/3", r"$\frac{x^{2}}{3}$"),
        ("d/dx x**3", r"$\frac{\mathrm{d}}{\mathrm{d}x}\left(x^{3}\right)$"),
        ("d²/dx² x", r"$\frac{\mathrm{d}^{2}}{\mathrm{d}x^{2}}\left(x\right)$"),
        ("tangent at 1: slope 2, y = 2*x - 1", "tangent at 1: slope 2, $y = 2 x - 1$"),
        ("tangent at x = 1, y = 2: vertical, x = 1", "tangent at x = 1, y = 2: vertical, $x = 1$"),
        ("x**2 + y**2 == 1", "$x^{2} + y^{2} = 1$"),
        ("y == x**2", "$y = x^{2}$"),
        ("f(x)", r"$f\left(x\right)$"),
        ("f''(x)", r"$f''\left(x\right)$"),
        ("func.grad(func.grad(f))(x)", r"$f''\left(x\right)$"),
        ("d²V/dx²", r"$\frac{\mathrm{d}^{2}V}{\mathrm{d}x^{2}}$"),
        ("d/dx", r"$\frac{\mathrm{d}}{\mathrm{d}x}$"),
        ("momentum", "momentum"),
        ("fit & 5 %", r"fit \& 5 \%"),
        ("gradient descent", "gradient descent"),
    ],
)
def test_an_expression_is_typeset_and_other_words_are_escaped(label: str, expected: str) -> None:
    assert typeset(label) == expected


PICTURES = [
    ["plot", "sin(x)/x", "--x", "-10:10", "--at", "2", "--title", "50 % & more", "-o"],
    ["plot", "tan(x)", "--x", "-5:5", "--theme", "dark", "-o"],
    ["plot", "exp(x)", "--x", "0.1:100", "--log", "x,y", "-o"],
    ["plot", "x**2 + y**2 == 1, y == x**2", "-o"],
    ["plot", "x**2+5*y**2", "--x=-2:2", "--y=-1:1", "--descend", "0.1", "--at", "x=1,y=1", "-o"],
    ["plot", "sin(x)*cos(y)", "--x", "0:6", "--y", "0:6", "--surface", "-o"],
    ["minimize", "x**2 + 5*y**2", "--x", "3", "--y", "1", "--method", "momentum", "--plot"],
    ["taylor", "sin(x)", "--x", "0", "--order", "1,3,5", "--plot"],
    ["fit", "N == a*exp(-b*t)", "DATA", "--a", "3", "--b", "1", "--sigma", "s", "--plot"],
    ["plot", "N", "DATA", "--hist", "-o"],
]


@pytest.mark.long
@pytest.mark.parametrize("argv", PICTURES, ids=" ".join)
def test_latex_reads_a_picture(argv: list[str], tmp_path: Path) -> None:
    """By pdflatex, where there is one; what can be seen without it is looked at everywhere."""
    data = tmp_path / "d.csv"
    rows = (f"{t},{3 * 0.7**t + 0.05 * (t % 3 - 1):.4f},0.1" for t in range(12))
    data.write_text("\n".join(["t,N,s", *rows]) + "\n")
    argv = [str(data) if word == "DATA" else word for word in argv]
    result = run(*argv, str(tmp_path / "a.tex"))
    assert result.exit_code == 0, result.stderr
    text = (tmp_path / "a.tex").read_text()
    assert text.count("{") == text.count("}") and r"\begin{axis}" in text
    assert "inf" not in text.partition(r"\begin{axis}")[2]
    if shutil.which("pdflatex") is None:
        return
    (tmp_path / "b.tex").write_text(PREAMBLE + "\\input{a.tex}\n\\end{document}\n")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "b.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[-2000:]

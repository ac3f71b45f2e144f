"""Names, remainders and wide matrices in LaTeX, as TeX, KaTeX and MathJax read them."""

from __future__ import annotations

import pytest

from gradcli.formulas.print.latex import matrix_text, symbol
from tests.commands.running import run
from tests.sweep import sweep


@pytest.mark.parametrize(
    ("name", "latex"),
    [
        ("x", "x"),
        ("x1", "x_{1}"),
        ("theta_1", r"\theta_{1}"),
        ("θ_1", r"\theta_{1}"),
        ("α", r"\alpha"),
        ("x_ω", r"x_{\omega}"),
        ("αβ", r"\mathrm{\alpha \beta}"),
        ("Σ_xx", r"\Sigma_{xx}"),
        ("Α", "A"),  # a Greek capital that TeX has as a Latin letter
        ("é", r"\text{é}"),
        ("变", r"\text{变}"),
        ("velocity", r"\mathrm{velocity}"),
        ("v_max", r"v_{\mathrm{max}}"),
        ("µ_0", r"\mu_{0}"),
    ],
)
def test_a_name(name: str, latex: str) -> None:
    assert symbol(name) == latex


@sweep(
    ("line", "latex"),
    [
        (("simplify", "x % y"), r"x \bmod y"),
        (("diff", "(x % y)*x", "--wrt", "x"), r"\left(x \bmod y\right) + x"),
        (("diff", "x % y", "--wrt", "y"), r"-\left\lfloor \frac{x}{y} \right\rfloor"),
        (("simplify", "2*(x % 3)"), r"2 \left(x \bmod 3\right)"),
        (("diff", "θ_1*α**β", "--wrt", "α"), r"\theta_{1} \beta \alpha^{\beta - 1}"),
    ],
    parts=1,
)
def test_a_formula(line: tuple[str, ...], latex: str) -> None:
    assert run(*line, "--format", "latex", "--plain").stdout.strip() == latex


def test_a_matrix_of_more_than_ten_columns_is_an_array() -> None:
    """Amsmath's matrices have ten columns, unless a document counts more of them."""
    assert matrix_text([["1"] * 10]).startswith(r"\begin{pmatrix}1 & 1")
    wide = matrix_text([["0"] * 11, ["1"] * 11])
    assert wide.startswith(r"\left(\begin{array}{ccccccccccc}0 & ") and wide.count("&") == 20

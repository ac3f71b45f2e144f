"""What somebody in a lab course types, and what is said of it."""

from __future__ import annotations

import shlex

import pytest

from gradcli.commands.typed_equations import with_double_signs
from tests.commands.running import outcome

# (the line, the exit code, a piece of standard error)
LINES = [
    ('eval "a*2" --a "(0.995 ± 0.002) m"', 2, "write --a '0.995 ± 0.002'; units are not computed"),
    ('eval "a*2" --a "0.995 m ± 0.002 m"', 2, "write --a '0.995 ± 0.002'; units are"),
    ('eval "a*2" --a "9.81 m s^-2"', 2, "write --a 9.81; units are"),
    ('eval "a*2" --let "a=(1.0 ± 0.1)e-3 m"', 2, "write --let a='(1.0 ± 0.1)e-3'; units are"),
    ('eval "a*2" --a "1 m, 2 m"', 2, "write the numbers alone; units are"),
    ('eval "x" --x 3 --digits 4', 2, "write --precision 4"),
    ('check "x**2" --x 3 --digits 4', 2, "write --precision 4"),
    ('eval "x*y" --x 1±1 --y 2±1 --correlation 0.5', 2, "as in --correlation x,y=0.5"),
    ('diff "-sum(y*log(softmax(z)))"', 1, "of a vector it is softmax(z, 0); its signature is"),
    ("hessian -- '-sum(z**2)' --z 1,2", 2, "gradcli hessian --z VALUE -- '-sum(z**2)'"),
    ('root "cos(x) = a*x" --a 1 --wrt x --x 1', 0, "read as cos(x) == a*x; an equation has =="),
    ('root "cos(x) == a*x" --a 1 --x 1', 1, "--wrt x solves for x, and holds a"),
    ('root "cos(x) == a*x" --a 1 --x 1 --sigma a=0.1', 2, "write --uncertainty a=0.1"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "code", "piece"),
    [LINES[0], *(pytest.param(*line, marks=pytest.mark.long) for line in LINES[1:])],
)
def test_it_is_said(line: str, code: int, piece: str) -> None:
    found = outcome(*shlex.split(line))
    assert (found[0], piece in found[2]) == (code, True), found


@pytest.mark.long
def test_one_statement_needs_no_word_about_the_last() -> None:
    assert outcome("eval", "y = x**2", "--x", "3") == (0, "9\n", "")
    assert "y, which is assigned last" in outcome("eval", "a = 2; y = a*x", "--x", "3")[2]


@pytest.mark.long
def test_a_failing_check_has_short_lines() -> None:
    out = outcome("check", "sum((A@x)**2)", "--against", "A.T@A@x", "--wrt", "x")[1]
    assert "(4×5)" in out and "--json has all digits" in out
    assert all(len(line) <= 80 for line in out.splitlines()[1:])


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("cos(x) = a*x", "cos(x) == a*x"),
        ("x+y = 3; x*y = 2", "x+y == 3; x*y == 2"),
        ("k = 2; cos(x) = k*x", "k = 2; cos(x) == k*x"),
        ("y = 2*x", "y = 2*x"),
        ("x[0] = 1", "x[0] = 1"),
        ("a, b = x", "a, b = x"),
        ("sum(x, dim=0) == 1", "sum(x, dim=0) == 1"),
        ("x**2 <= 1", "x**2 <= 1"),
        ("x += 1", "x += 1"),
    ],
)
def test_one_sign_between_expressions(text: str, read: str) -> None:
    assert with_double_signs(text) == read

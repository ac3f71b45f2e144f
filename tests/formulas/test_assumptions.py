"""--assume: derivatives that are shorter for what is known of variables, and hold where it does."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import language
from gradcli.formulas.algebra.assuming import BadAssumption
from gradcli.formulas.algebra.generic_points import sample
from gradcli.formulas.ask.proof import Unproved, proved
from gradcli.formulas.derive.assumptions import KINDS, read
from gradcli.formulas.derive.differentiate import differentiate
from tests.commands import running
from tests.sweep import sweep

run = partial(running.run, "diff")
B, Q = {"x": (3,), "B": (3, 3)}, {"x": (3,), "Q": (3, 3)}

# (program, shapes, assumptions, variable, derivative)
TABLE: list[tuple[str, dict[str, tuple[int, ...]], str, str, str]] = [
    ("x@B@x", B, "B symmetric", "x", "2*B@x"),
    ("x@B@x", B, "B is symmetric", "x", "2*B@x"),
    ("x@B@x", B, "B diagonal", "x", "2*B@x"),
    ("x@B@x", B, "B symmetric", "B", "outer(x, x)"),
    ("x@B@y", {**B, "y": (3,)}, "B symmetric", "y", "B@x"),
    ("x@linalg.inv(B)@x", B, "B symmetric", "x", "2*linalg.inv(B)@x"),
    ("x@(B + 2*C)@x", {**B, "C": (3, 3)}, "B symmetric, C symmetric", "x", "2*(B + 2*C)@x"),
    ("x@(B + C)@x", {**B, "C": (3, 3)}, "B symmetric", "x", "(2*B + C + C.T)@x"),
    ("x@B@x/(x@x)", B, "B symmetric", "x", "2*(B@x - x*(x@B@x)/(x@x))/(x@x)"),
    ("log(1 + exp(x@B@x))", B, "B symmetric", "x", "2*B@x*sigmoid(x@B@x)"),
    ("log(det(B))", {"B": (3, 3)}, "B symmetric", "B", "linalg.inv(B)"),
    ("trace(B@X@B)", {"B": (3, 3), "X": (3, 3)}, "B symmetric", "X", "B@B"),
    ("dot(Q@x, Q@x)", Q, "Q orthogonal", "x", "2*x"),
    ("norm(Q@x)", Q, "Q orthogonal", "x", "x/norm(x)"),
    ("dot(Q@x, y)", {**Q, "y": (3,)}, "Q orthogonal", "x", "Q.T@y"),
    ("dot(linalg.inv(Q)@x, y)", {**Q, "y": (3,)}, "Q orthogonal", "x", "Q@y"),
    ("trace(Q.T@X@Q)", {"Q": (3, 3), "X": (3, 3)}, "Q orthogonal", "X", "eye(3)"),
    ("sqrt(x**2)", {"x": ()}, "x positive", "x", "1"),
    ("sqrt(x**2*y)", {"x": (), "y": ()}, "x positive, y positive", "x", "sqrt(y)"),
    ("abs(x)*y", {"x": (), "y": ()}, "x positive", "y", "x"),
    ("sum(relu(w*x))", {"w": (3,), "x": (3,)}, "w positive, x positive", "w", "x"),
    ("sum(abs(x)**3)", {"x": (3,)}, "x positive", "x", "3*x**2"),
    ("where(x > 0, x**2, 0)", {"x": ()}, "x positive", "x", "2*x"),
    ("abs(x - y)", {"x": (), "y": ()}, "x positive, y positive", "x", "sign(x - y)"),
]


def found(source: str, shapes: Any, texts: str, wrt: str) -> str:
    arrays = {n: np.asarray(sample(s, k))[()] for k, (n, s) in enumerate(shapes.items())}
    assumed = read([texts], arrays, [])
    find = assumed.around(partial(differentiate, order=1))
    _, made, singular = proved(language.parse(source), arrays, [wrt], given=False, find=find)
    assert singular is None
    return made.by[wrt].replace(f"{wrt}.shape[0]", "3")


@sweep(("source", "shapes", "texts", "wrt", "expected"), TABLE, parts=1)
def test_derivative(source: str, shapes: Any, texts: str, wrt: str, expected: str) -> None:
    assert found(source, shapes, texts, wrt) == expected


def test_without_its_assumption_it_would_not_be_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "symmetric", KINDS["symmetric"]._replace(nearest=lambda b: b))
    with pytest.raises(Unproved):
        found("x@B@x", B, "B symmetric", "x")


@pytest.mark.parametrize("kind", KINDS)
def test_the_nearest_point_is_one_of_them(kind: str) -> None:
    value = np.random.default_rng(0).normal(size=(4, 4))
    assert KINDS[kind].fault(value) is not None
    near = KINDS[kind].nearest(value)
    assert KINDS[kind].fault(near) is None
    np.testing.assert_allclose(KINDS[kind].nearest(near), near, rtol=1e-12, atol=1e-12)


@sweep(
    ("text", "message"),
    [
        (
            "B symetric",
            "'symetric' is not an assumption (there are: symmetric, diagonal, orthogonal, positive, "
            "negative, integer, probabilities, stochastic)",
        ),
        ("symmetric", "'' is not a variable"),
        ("B > 1", "'B > 1' is not an assumption"),
        ("C symmetric", "'C' is not a variable (there are: B, v, z)"),
        ("v symmetric", "v has shape (2,), and only a square matrix is symmetric"),
        ("B symmetric", "B is not symmetric: [0, 1] is 2 and [1, 0] is 3"),
        ("B diagonal", "B is not diagonal: [0, 1] is 2"),
        ("B orthogonal", "B is not orthogonal: [0, 0] of B.T@B is 10"),
        ("v positive", "v is not positive: [1] is 0"),
        ("z positive", "z is complex"),
    ],
    parts=1,
)
def test_refused(text: str, message: str) -> None:
    arrays = {"B": np.array([[1.0, 2], [3, 4]]), "v": np.array([1.0, 0]), "z": np.array(1j)}
    with pytest.raises(BadAssumption) as error:
        read([text], arrays, arrays)
    assert message in str(error.value)


@sweep(
    ("argv", "expected"),
    [
        (["x@B@x", "--wrt=x", "--assume=B symmetric"], "2*B@x\n"),
        (["x@B@x", "--wrt=x", "--assume=B symmetric", "--order=2"], "2*B\n"),
        (["x@B@y", "--wrt=x", "--assume=B symmetric"], "B@y\n"),  # made square for it
        (["x@B", "--wrt=x", "--assume=B symmetric", "--jacobian"], "B\n"),
        (["x@B@x", "--wrt=x", "--assume=B symmetric", "--format=latex", "--plain"], "2 B x\n"),
        (
            ["x@B@x", "--x=1,2", "--B=1,2;2,4", "--wrt=x", "--assume=B symmetric", "--at"],
            "2*B@x = [10, 20]\n",
        ),
        (["sqrt(x**2)", "--assume", "x positive"], "1\n"),
        (
            ["sqrt(x**2)*abs(y)", "--assume", "x positive", "--assume", "y positive", "--wrt=x"],
            "y\n",
        ),
        (["x@B@x", "--wrt=x", "--assume=B symmetric", "--no-verify"], "2*B@x\n"),
    ],
    parts=1,
)
def test_command(argv: list[str], expected: str) -> None:
    result = run(*argv)
    assert (result.exit_code, result.stdout) == (0, expected), result.stderr


def test_values_that_break_it_are_refused() -> None:
    result = run("x@B@x", "--wrt=x", "--x=1,2", "--B=1,2;3,4", "--assume=B symmetric")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--assume: B is not symmetric: [0, 1] is 2 and [1, 0] is 3" in result.stderr


def test_python() -> None:
    assert (
        gradcli.diff("x@B@x", wrt="x", shapes={"x": (3,), "B": (3, 3)}, assume="B symmetric")
        == "2*B@x"
    )
    with pytest.raises(ValueError, match="is not an assumption"):
        gradcli.diff("x**2", assume="x nice")

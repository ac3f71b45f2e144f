"""Second derivatives at points where rules divide 0 by 0, from the shell, in Python and in both routes."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.engine.core.tensor import wrap
from gradcli.language import parse
from gradcli.transforms.jets.derivatives import (
    FOUND,
    Traced,
    along,
    hessian,
    hessian_of_gradient,
    hessian_of_value,
    jacobian,
    nth,
)
from tests.commands.running import outcome
from tests.sweep import sweep

X = None  # there is no finite derivative
Q = "?"  # undecided
N3 = [[1.0, 2, 3], [2, 4, 6], [3, 6, 9]]
P = 4.47628622567513e-309

# (program, its point, the Hessian by all elements of all variables, in order)
POINTS: list[tuple[str, dict[str, Any], Any]] = [
    ("norm(v)**2", {"v": [0, 0]}, [[2, 0], [0, 2]]),
    ("hypot(x, y)**2", {"x": 0, "y": 0}, [[2, 0], [0, 2]]),
    (
        "exp(-norm(a - b)**2)",
        {"a": [1, 2], "b": [1, 2]},
        [[-2, 0, 2, 0], [0, -2, 0, 2], [2, 0, -2, 0], [0, 2, 0, -2]],
    ),
    ("norm(v)**3", {"v": [0, 0]}, [[0, 0], [0, 0]]),
    ("norm(v)", {"v": [0, 0]}, [[X, X], [X, X]]),
    ("x/norm(stack([x, y]))", {"x": 0, "y": 0}, [[X, X], [X, X]]),
    ("x**y", {"x": 0, "y": 2}, [[2, 0], [0, 0]]),
    ("x**y", {"x": 0, "y": 3}, [[0, 0], [0, 0]]),
    ("x**1.5", {"x": 0}, [[X]]),
    ("x**2.5", {"x": 0}, [[0]]),
    ("sqrt(x)", {"x": 0}, [[X]]),
    ("sqrt(x)**2", {"x": 0}, [[0]]),
    ("sqrt(x**4 + x**6)", {"x": 0}, [[2]]),
    ("cos(sqrt(x))", {"x": 0}, [[1 / 12]]),
    ("sinc(x)", {"x": 0}, [[-3.289868133696453]]),
    ("where(x != 0, sin(x)/x, 1)", {"x": 0}, [[-1 / 3]]),
    ("where(x != 0, sin(x)/x, 2)", {"x": 0}, [[X]]),
    ("(exp(x) - 1)/x", {"x": 0}, [[1 / 3]]),
    ("(1 - cos(x))/x**2", {"x": 0}, [[-1 / 12]]),
    ("(atan(x) - x)/x**3", {"x": 0}, [[2 / 5]]),
    ("exp(-1/x**2)", {"x": 0}, [[0]]),
    ("x*log(x)", {"x": 0}, [[X]]),
    ("x**2*log(x)", {"x": 0}, [[X]]),
    ("x**3*log(x)", {"x": 0}, [[0]]),
    ("logaddexp(x, y)", {"x": 0, "y": 710}, [[P, -P], [-P, P]]),
    ("logaddexp(x, y)", {"x": 1, "y": 1}, [[0.25, -0.25], [-0.25, 0.25]]),
    ("det(A)", {"A": [[0, 0], [0, 0]]}, [[0, 0, 0, 1], [0, 0, -1, 0], [0, -1, 0, 0], [1, 0, 0, 0]]),
    ("det(A)[None].sum()*1.", {"A": [[1.0]]}, [[0]]),
    ("sum(linalg.eigvalsh(A))", {"A": [[2, 0], [0, 2]]}, np.zeros((4, 4)).tolist()),
    (
        "sum(linalg.eigvalsh(A)**2)",
        {"A": [[2, 0], [0, 2]]},
        [[2, 0, 0, 0], [0, 1, 1, 0], [0, 1, 1, 0], [0, 0, 0, 2]],
    ),
    ("linalg.eigvalsh(A)[1]", {"A": [[2, 0], [0, 2]]}, [[X] * 4] * 4),
    ("abs(x)", {"x": 0}, [[X]]),
    ("abs(x)**3", {"x": 0}, [[0]]),
    ("relu(x)**2", {"x": 0}, [[X]]),
    ("maximum(x, y)", {"x": 1, "y": 1}, [[X, X], [X, X]]),
    ("maximum(x, y) + minimum(x, y)", {"x": 1, "y": 1}, [[0, 0], [0, 0]]),
    ("x*y*(x**2 - y**2)/(x**2 + y**2)", {"x": 0, "y": 0}, [[Q, X], [X, Q]]),
    ("x*y/norm(stack([x, y]))", {"x": 0, "y": 0}, [[X, X], [X, X]]),
    (
        "std(x)**2",
        {"x": [1, 1, 1]},
        [[2 / 3, -1 / 3, -1 / 3], [-1 / 3, 2 / 3, -1 / 3], [-1 / 3, -1 / 3, 2 / 3]],
    ),
    ("abs(x)*x", {"x": 0}, [[X]]),
    ("sin(x)/x + y**2", {"x": 0, "y": 1}, [[-1 / 3, 0], [0, 2]]),
    ("y*sin(x)/x", {"x": 0, "y": 1}, [[-1 / 3, 0], [0, 0]]),
    ("sin(x - y)/(x - y)", {"x": 1, "y": 1}, [[-1 / 3, 1 / 3], [1 / 3, -1 / 3]]),
    ("special.i0(x)", {"x": 713}, [[6.69573075377031e307]]),
    # what lines cannot tell, and what is lost in rounding
    ("x**4*y/(x**8 + y**2)", {"x": 0, "y": 0}, [[Q, Q], [Q, Q]]),
    ("x**5/y", {"x": 0, "y": 0}, [[Q, Q], [Q, Q]]),
    ("x**4/(y - x**2)", {"x": 0, "y": 0}, [[Q, Q], [Q, Q]]),
    ("sin(x)/x", {"x": 1e-9}, [[Q]]),
    ("(0.1 + 0.2 + x - 0.3)/x", {"x": 0}, [[Q]]),
    ("sin(pi*x)/(x - 1)", {"x": 1}, [[Q]]),
]


def traced(source: str, point: dict[str, Any]) -> Traced:
    tensors = {n: wrap(np.array(a, np.float64)) for n, a in point.items()}
    return Traced(parse(source), tensors, list(tensors))


def claims(found: Any) -> Any:
    """Numbers; None where there is none, ? where it is undecided."""
    return [
        [v if s == FOUND else X if s == 1 else Q for v, s in zip(row, kinds, strict=True)]
        for row, kinds in zip(found.values, found.status, strict=True)
    ]


@sweep(("source", "point", "right"), POINTS, parts=4, often=1)
def test_hessian_at_removable_points(source: str, point: dict[str, Any], right: Any) -> None:
    got = claims(hessian(traced(source, point)))
    for row, wanted in zip(got, right, strict=True):
        for one, want in zip(row, wanted, strict=True):
            if want is X or want == Q:  # none may be undecided, and what is undecided none
                assert one is X or one == Q, got
            else:
                assert one == pytest.approx(
                    want, rel=1e-9, abs=1e-13 if abs(want) > 1e-200 else 0
                ), got


@sweep(
    ("source", "point"),
    [(s, p) for s, p, r in POINTS if all(isinstance(v, (int, float)) for row in r for v in row)],
    parts=1,
)
def test_routes_do_not_contradict_each_other(source: str, point: dict[str, Any]) -> None:
    a, b = (route(traced(source, point)) for route in (hessian_of_value, hessian_of_gradient))
    both = (a.status == FOUND) & (b.status == FOUND)
    assert np.allclose(a.values[both], b.values[both], rtol=1e-8, atol=1e-9)


SMOOTH = [
    ("exp(-x**2)*sin(x)", 0.7),
    ("log(x)/sqrt(x) + tanh(x)", 1.3),
    ("atan(x)*asinh(x)/cosh(x)", -0.4),
    ("x**2.5 - 1/x + erf(x)", 0.9),
    ("logsumexp(stack([x, 2*x, x**2]), 0)", 0.5),
    ("det(stack([stack([x, x**2]), stack([sin(x), 1 + x])]))", 0.3),
    ("lgamma(x) + digamma(x)", 2.5),
    ("special.bessel_j0(x)*special.modified_bessel_k1(x)", 3.5),
    ("gelu(x) + elu(x) + mish(x)", 0.6),
    ("prod(stack([x, x + 1, x - 2]))/norm(stack([x, 3*x]))", 0.8),
]


@sweep(("source", "x"), SMOOTH, parts=1)
def test_orders_at_smooth_points_are_those_of_the_tape(source: str, x: float) -> None:
    """Nested backward passes say the same, to what they lose."""
    found = along(traced(source, {"x": x}), np.ones((1, 1)), 4)
    t = gradcli.tensor(x, dtype=gradcli.float64, requires_grad=True)
    program = parse(source)
    from gradcli.language import run

    value = run(program, {"x": t}).value
    for k in range(5):
        assert found.status[k].item() == FOUND
        assert found.values[k].item() == pytest.approx(value.item(), rel=1e-8, abs=1e-9)
        if k < 4:
            (value,) = gradcli.autograd.grad(value, t, create_graph=True)


def test_series_know_how_much_they_lose() -> None:
    """The bound of an error covers it, and is not a thousand times too large."""
    found = along(traced("exp(-x**2)*sin(x)", {"x": 0.7}), np.ones((1, 1)), 8)
    right = -462.3529211735  # by 50 digits
    assert abs(found.values[8].item() - right) < 1e-9
    assert found.bounds[8].item() < 1e-9


def test_higher_orders_at_removable_points() -> None:
    source, wanted = "sin(x)/x", [1, 0, -1 / 3, 0, 1 / 5, 0, -1 / 7, 0, 1 / 9]
    found = along(traced(source, {"x": 0.0}), np.ones((1, 1)), 8)
    assert found.values[:, 0] == pytest.approx(wanted, rel=1e-12, abs=1e-12)
    (third,) = nth(parse("special.i1(x)"), {"x": wrap(np.array(0.0))}, ["x"], 3)
    assert third.values == pytest.approx(3 / 8)


def test_a_jacobian_steps_aside_of_a_line_within_what_is_singular() -> None:
    found = jacobian(traced("stack([x*sin(y)/y, x + y])", {"x": 1.0, "y": 0.0}))
    assert (found.status == FOUND).all()
    assert found.values == pytest.approx(np.array([[1, 0], [1, 1]]))


@sweep(
    ("argv", "out", "err"),
    [
        (
            ["hessian", "norm(v)**2", "--v", "0,0"],
            "v.hessian = [[2, 0], [0, 2]]\n",
            "by power series",
        ),
        (
            ["hessian", "norm(v)", "--v", "0,0"],
            "v.hessian = [[nan, nan], [nan, nan]]\n",
            "not finite",
        ),
        (["hessian", "sin(x)/x", "--x", "1e-9"], "x.hessian = -128\n", "undecided"),
        (
            ["hessian", "norm(v)**2", "--v", "0,0", "--vector", "1,2"],
            "v.hvp = [2, 4]\n",
            "by power",
        ),
        (["hessian", "x**y", "--x", "0", "--y", "2", "--wrt", "y"], "y.hessian = 0\n", "by power"),
        (
            ["hessian", "4000*prod(x)", "--x", "0.03,1,1", "--dtype", "float16"],
            "x.hessian = [[0, 4000, 4000], [4000, 0, 120], [4000, 120, 0]]\n",
            "by power series",
        ),
        (["jvp", "x*sin(y)/y", "--x", "1", "--y", "0", "--vector", "x=1"], "jvp = 1\n", "by power"),
        (["jacobian", "sin(x)/x", "--x", "0"], "x.jacobian = 0\n", "by power series"),
        (["hessian", "norm(v)**2", "--v", "3,4"], "v.hessian = [[2, 0], [0, 2]]\n", ""),
    ],
    parts=1,
)
def test_commands_say_how_they_know(argv: list[str], out: str, err: str) -> None:
    code, stdout, stderr = outcome(*argv)
    assert (code, stdout) == (0, out)
    assert err in stderr
    assert bool(err) == bool(stderr)


def test_json_has_the_note() -> None:
    _, stdout, _ = outcome("hessian", "norm(v)**2", "--v", "0,0", "--json")
    found = json.loads(stdout)
    assert found["wrt"]["v"]["hessian"] in ([[2, 0], [0, 2]], {"v": [[2, 0], [0, 2]]})
    assert any("power series" in note for note in found["notes"])


def numbers(text: str) -> Any:
    """The numbers behind the last sign of equality in a line of output."""
    return np.array(json.loads(text.rsplit(" = ", 1)[1]))


@sweep(
    ("argv", "exact", "note"),
    [
        (["norm(v)**2", "--v", "0,0", "--order", "2"], "hessian", ""),
        (["norm(v)**3", "--v", "0,0", "--order", "2"], "hessian", ""),
        (["std(x)**2", "--x", "1,1,1", "--order", "2"], "hessian", ""),
        (["exp(-norm(v)**2)", "--v", "0,0", "--order", "2"], "hessian", ""),
        (["sum(linalg.eigvalsh(A))", "--A", "2,0;0,2", "--order", "2"], "hessian", ""),
        (["det(A)", "--A", "1,2;2,4"], "jacobian", "is not a number: jacobian gives"),
        (["det(A)", "--A", "1,2;2,4"], "grad", "is not a number: jacobian gives"),
        (["det(A)", "--A", "1,2;2,4", "--order", "2"], "hessian", "is not a number: hessian"),
        (["det(A)", "--A", "zeros(3,3)", "--order", "2"], "hessian", "is not a number: hessian"),
        (["sin(x)/x", "--x", "0"], "jacobian", "is not a number: jacobian gives"),
        (["sin(x)/x", "--x", "0", "--order", "2"], "hessian", "is not a number: grad --order 2"),
        (["sum(sin(x)/x)", "--x", "0,1", "--order", "2"], "hessian", "is not a number: hessian"),
        (["special.i1(x)", "--x", "0", "--order", "3"], "grad", "gives 0.: grad --order 3 gives"),
        (["tanh(x)", "--x", "30"], "grad", "gives 0.: jacobian gives"),
    ],
    parts=5,
    often=1,
)
def test_diff_and_the_commands_have_one_answer(argv: list[str], exact: str, note: str) -> None:
    """The formula's value is the command's; a note says where the formula itself has another one."""
    code, said, notes = outcome("diff", *argv, "--at")
    said = re.sub(r" at \w+ = .*", "", said)
    assert code == 0
    given = argv if exact == "grad" else argv[:3]
    code, wanted, _ = outcome(exact, *given)
    assert code == 0
    assert numbers(said) == pytest.approx(numbers(wanted), rel=1e-12, abs=1e-300)
    assert note in notes
    assert bool(note) == ("at this point" in notes)


@sweep(
    ("argv", "out"),
    [
        (["hessian", "sin(x)/x", "--x", "0"], "x.hessian = nan"),
        (["hessian", "sin(x)/x", "--x", "0", "--vector", "1"], "x.hvp = nan"),
        (["jacobian", "sin(x)/x", "--x", "0"], "x.jacobian = nan"),
        (["jvp", "sin(x)/x", "--x", "0", "--vector", "1"], "jvp = nan"),
        (["hessian", "nn.functional.softplus(x)", "--x", "40"], "x.hessian = 0"),
        (["grad", "sigmoid(x)", "--x", "40"], "x.grad = 0   (the same in PyTorch"),
        (["grad", "special.i1(x)", "--x", "0", "--order", "3"], "x.grad3 = 0"),
        (["grad", "sinc(x)", "--x", "1e-8"], "x.grad = -2.1063981330815398e-08   (the same"),
    ],
    parts=1,
)
def test_pytorchs_numbers_are_there_to_ask_for(argv: list[str], out: str) -> None:
    code, stdout, stderr = outcome(*argv, "--like", "torch")
    assert code == 0 and stdout.startswith(out)
    assert "by power series" not in stderr


def test_matrices_of_other_systems_are_not_known() -> None:
    code, _, stderr = outcome("hessian", "x**2", "--x", "1", "--like", "jax")
    assert code == 2 and "gradcli grad --like jax" in stderr

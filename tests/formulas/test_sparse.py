"""Jacobians and Hessians without their zeros: the same numbers, in as much memory as there are of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import gradcli
from gradcli import language
from gradcli.cli import main
from gradcli.engine.core.sparse_batches import Scattered
from gradcli.transforms import traced_matrices
from tests.sweep import sweep

X = np.random.default_rng(0).random(240)
# An expression of x, 240 numbers, and how many elements of its Jacobian are not zero.
BANDS = [
    ("sin(x)*x", 240),
    ("x[1:] - x[:-1]", 478),
    ("x[2:] - 2*x[1:-1] + x[:-2]", 714),
    ("x[1:]*x[:-1]**2", 478),
    ("flip(x, (0,))*x", 480),
    ("roll(x, 1) + x", 480),
    ("sin(x).reshape(-1, 10).T", 240),
    ("x.view(-1, 10)[:, 3]", 24),
    ("diff(x)", 478),
    ("cat([x[:5], x[7:]])", 238),
    ("x[::2]*2", 120),
    ("where(x > 0.5, x, 0)", int((X > 0.5).sum())),
    ("stack([x, x*2], 1)", 480),
    ("nn.functional.pad(x, (1, 2))", 240),
    ("exp(x)[1:]/x[:-1]", 478),
    ("x.view(-1, 10).sum(1)", 240),
    ("sort(x).values", 240),
    ("x[1:].clone().mul_(x[:-1])", 478),
    ("tril(x[:225].view(15, 15))", 120),
]
# What is no band, or only in part: found all the same, through the zeros.
OTHERS = [
    ("softmax(x.view(-1, 10), 1)", 2400),
    ("x.unfold(0, 3, 1).sum(1)", 714),
    ("x.view(-1, 10)*x.view(-1, 10).sum(1, True)", 2400),
    ("x/x[0]", 478),
    ("x.repeat(2)*2", 480),
    ("x.sum()*x", 240 * 240),
    ("(x + 1j*x).real", 240),
    ("log(x*0)*x", 240 * 240),  # 0 times infinity is no zero
    ("x.expand(2, 240)", 480),
]
CURVED = [
    ("sum(x**3)", 240),
    ("sum(100*(x[1:] - x[:-1]**2)**2 + (1 - x[:-1])**2)", 718),
    ("sum(x[1:]*x[:-1])", 478),
    ("sum(sin(x.view(-1, 10)).prod(1))", 2400),
    ("sum(x)**2", 240 * 240),
    ("sum((x*x)[240:]*x[240:]) + sum(x**2)", 240),
]


def both(source: str, hessian: bool) -> tuple[Any, Any]:
    """(the matrix without its zeros, the matrix)."""
    program, x = language.parse(source), {"x": gradcli.tensor(X)}
    if hessian:
        found = [
            traced_matrices.hessian(program, x, ["x"], sparse=s)["x"].by["x"] for s in (True, False)
        ]
        return found[0], found[1]
    sparse = traced_matrices.sparse_jacobian(program, x, ["x"]).by["x"]
    return sparse, np.asarray(traced_matrices.jacobian(program, x, ["x"], mode="reverse").by["x"])


@pytest.mark.filterwarnings("ignore")
@sweep(
    ("source", "count", "hessian"),
    [*((*r, False) for r in BANDS + OTHERS), *((*r, True) for r in CURVED)],
    parts=1,
)
def test_what_is_not_zero(source: str, count: int, hessian: bool) -> None:
    sparse, dense = both(source, hessian)
    made = np.zeros(sparse.shape, dense.dtype)
    made[tuple(sparse.indices.T)] = sparse.values
    np.testing.assert_allclose(made, dense, rtol=1e-12)
    in_order = np.lexsort(sparse.indices.T[::-1])
    assert (in_order == np.arange(len(sparse.values))).all()
    assert len(np.unique(sparse.indices, axis=0)) == len(sparse.values) == count


@sweep("source", [source for source, _ in BANDS], parts=1)
def test_dense_jacobians_are_those_of_the_other_direction(source: str) -> None:
    program, x = language.parse(source), {"x": gradcli.tensor(X)}
    found = [
        traced_matrices.jacobian(program, x, ["x"], mode=m).by["x"] for m in ("reverse", "forward")
    ]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)


@pytest.mark.parametrize("source", [source for source, _ in BANDS])
def test_bands_never_see_their_zeros(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def seen(self: Scattered) -> Any:
        raise AssertionError("the zeros were made")

    monkeypatch.setattr(Scattered, "every", property(seen))
    traced_matrices.sparse_jacobian(language.parse(source), {"x": gradcli.tensor(X)}, ["x"])


@sweep(
    ("command", "source", "printed"),
    [
        ("jacobian", "s*s", "s.jacobian = 4"),
        ("jacobian", "h = sum(s*X, 1)[1]; h.mul_(2); h", "s.jacobian = 14"),
        ("hessian", "s**3", "s.hessian = 12"),
        ("jacobian", "s*s*0", ""),
        ("jacobian", "s", "s.jacobian = 1"),
        ("jacobian", "sin(s) + cos(s*s)*0 + s[None][0]*0", "s.jacobian = -0.4161468365471424"),
        ("hessian", "s", ""),
    ],
    parts=1,
)
def test_one_number(command: str, source: str, printed: str) -> None:
    values = ["--s", "2", *(["--X", "1,2;3,4"] if "X" in source else [])]
    done = CliRunner().invoke(main, [command, source, *values, "--wrt", "s", "--sparse"])
    assert done.stdout == printed + "\n" * bool(printed), done.stderr

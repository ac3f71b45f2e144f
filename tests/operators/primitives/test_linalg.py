"""Products and decompositions: what the sweep over the samples does not ask."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import language
from tests.engine.registry.both import ask, gradient, same, torch, tree
from tests.sweep import sweep

_ = torch  # the fixture

MATRIX = [[2.0, 1.0], [1.0, 3.0]]

# The nodes of a product by the ranks of its operands, and by which of them need a gradient.
TREES = [
    ("x[0] @ x[0]", "Dot(Select(x), Select(x))"),
    ("x @ x[0]", "Mv(x, Select(x))"),
    ("x[0] @ x", "Squeeze4(Mm(Unsqueeze(Select(x)), x))"),
    ("x @ x.t()", "Mm(x, T(x))"),
    (
        "x.expand(3,2,2) @ torch.ones(2,dtype=torch.float64)",
        "UnsafeView(Squeeze1(Bmm(ReshapeAlias(Expand(Expand(x))), -)))",
    ),
    ("torch.ones(3,2,2,dtype=torch.float64) @ x", "UnsafeView(Mm(-, x))"),
    ("torch.outer(x[0], x[1])", "Mul(View(Select(x)), Select(x))"),
    ("torch.linalg.matrix_power(x, 3)", "Mm(Mm(x, x), x)"),
    ("torch.linalg.matrix_power(x, -2)", "Mm(LinalgInvEx(x), LinalgInvEx(x))"),
    ("torch.linalg.multi_dot([x, x, x[0]])", "View(Mm(x, Mm(x, Unsqueeze(Select(x)))))"),
    ("torch.linalg.norm(x, 2)", "Amax(LinalgSvd(Permute(x)))"),
    ("torch.linalg.norm(x, 'fro')", "LinalgVectorNorm(x)"),
    ("torch.linalg.norm(x, 'nuc')", "Sum1(LinalgSvd(Permute(x)))"),
    ("torch.linalg.solve(x, x[0])", "LinalgSolveEx(x, Select(x))"),
]


@sweep(("expression", "expected"), TREES, parts=1)
def test_nodes(torch: Any, expression: str, expected: str) -> None:
    x = torch.tensor(MATRIX, dtype=torch.float64).requires_grad_()
    found = tree(ask(torch, expression, x=x).grad_fn)
    for k in "0":
        found = found.replace(f"{k}(", "(")
    assert found == expected


# Gradients where a formula is easily wrong: singular matrices, repeated values, empty sizes.
GRADIENTS = [
    ("torch.det(x)", [[1.0, 2.0], [2.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]]),
    ("torch.det(x)", MATRIX, [[3.0, -1.0], [-1.0, 2.0]]),
    ("torch.logdet(x)", MATRIX, [[0.6, -0.2], [-0.2, 0.4]]),
    ("torch.linalg.inv(x)", MATRIX, [[-0.16, -0.08], [-0.08, -0.04]]),
    ("torch.linalg.cholesky(x)", MATRIX, [[0.2558336, 0.1954395], [0.1954395, 0.3162278]]),
    ("torch.trace(x)", MATRIX, [[1.0, 0.0], [0.0, 1.0]]),
    ("torch.linalg.svdvals(x)", [[3.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]),
    ("torch.linalg.matrix_rank(x) * x.sum()", MATRIX, [[2.0, 2.0], [2.0, 2.0]]),
    ("torch.linalg.matrix_norm(x)", [[0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]),
    ("torch.einsum('ii->i', x)", MATRIX, [[1.0, 0.0], [0.0, 1.0]]),
    ("torch.addmm(x, x, x, beta=0)", MATRIX, [[6.0, 7.0], [7.0, 8.0]]),
]


@sweep(("expression", "x", "expected"), GRADIENTS, parts=1)
def test_gradient(torch: Any, expression: str, x: Any, expected: Any) -> None:
    same(gradient(torch, expression, x), expected, 1e-6)


def test_a_singular_determinant_with_its_own_graph(torch: Any) -> None:
    x = torch.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(torch.linalg.det(x), x, create_graph=True)
    same(slope.tolist(), [[4.0, -2.0], [-2.0, 1.0]], 1e-12)
    same(torch.autograd.grad(slope.sum(), x)[0].tolist(), [[1.0, -1.0], [-1.0, 1.0]], 1e-12)
    both = torch.stack([x.detach(), torch.eye(2, dtype=torch.float64)])
    slopes = torch.func.vmap(torch.func.grad(torch.linalg.det))(both)
    same(slopes.tolist(), [[[4.0, -2.0], [-2.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]], 1e-12)


def test_beta_zero_ignores_nan(torch: Any) -> None:
    nothing = torch.full((2, 2), float("nan"), dtype=torch.float64)
    x = torch.tensor(MATRIX, dtype=torch.float64)
    same(torch.addmm(nothing, x, x, beta=0).tolist(), [[5.0, 5.0], [5.0, 10.0]])


def test_failures_are_linalg_errors(torch: Any) -> None:
    for call in ("torch.linalg.inv(x)", "torch.linalg.solve(x, x)", "torch.linalg.cholesky(x)"):
        with pytest.raises(RuntimeError) as caught:
            ask(torch, call, x=[[0.0, 0.0], [0.0, 0.0]])
        assert type(caught.value).__name__ == "_LinAlgError"


def test_info_instead_of_failure(torch: Any) -> None:
    zeros = torch.zeros(2, 2, dtype=torch.float64)
    assert torch.linalg.inv_ex(zeros).info.item() == 1
    assert torch.linalg.cholesky_ex(zeros).info.item() == 1
    assert torch.linalg.lu_factor_ex(zeros).info.item() == 1


@sweep("size", [1, 5, 48, 49, 130], parts=1)
@pytest.mark.parametrize("kind", [np.float64, np.complex128])
def test_lu_of_any_size(size: int, kind: Any) -> None:
    """The blocked elimination gives back the matrix, with pivots as large as they come."""
    rng = np.random.default_rng(size)
    a = rng.standard_normal((2, size, size)) + (0j if kind is np.complex128 else 0)
    p, lower, upper = (x.numpy() for x in gradcli.linalg.lu(gradcli.tensor(a)))
    np.testing.assert_allclose(p @ lower @ upper, a, atol=1e-12)
    assert np.abs(lower).max() <= 1 + 1e-12 if kind is np.float64 else True


@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0])
def test_matrix_exponential(scale: float) -> None:
    """exp(A) exp(-A) is the identity, small or large."""
    a = np.random.default_rng(1).standard_normal((3, 4, 4)) * scale / 4
    a = a - a.swapaxes(1, 2)  # the exponential of a skew matrix is orthogonal
    e = gradcli.linalg.matrix_exp(gradcli.tensor(a)).numpy()
    np.testing.assert_allclose(
        e @ e.swapaxes(1, 2), np.broadcast_to(np.eye(4), e.shape), atol=1e-10
    )


_CALLS = [
    *("linalg.qr(x)[0]", "linalg.qr(x)[1]", "linalg.svd(x)[1]", "linalg.eigh(x)[0]", "det(x)"),
    *("linalg.solve(x, x)", "linalg.inv(x)", "linalg.pinv(x)", "linalg.lstsq(x, x)[0]"),
    *("linalg.cholesky(x @ x.mT)", "linalg.matrix_exp(x)", "linalg.lu(x)[1]", "linalg.cond(x)"),
    *("linalg.slogdet(x)[1]", "linalg.matrix_norm(x, 'nuc')", "linalg.eigvals(x).abs()"),
    *("linalg.householder_product(x, x[0])", "linalg.lu_factor(x)[0]", "x @ x", "x @ x[0]"),
]


@pytest.mark.parametrize("kind", ["float32", "float64"])
@sweep("call", _CALLS, parts=1)
def test_precision_is_kept(call: str, kind: str) -> None:
    """Results and gradients have the precision of the input."""
    dtype = getattr(gradcli, kind)
    x = gradcli.tensor([[3.0, 1.0], [1.0, 2.0]], dtype=dtype).requires_grad_()
    y = eval(call, {"linalg": gradcli.linalg, "det": gradcli.det, "x": x})
    assert y.dtype == dtype
    y.sum().backward()
    assert x.grad.dtype == dtype


@sweep(
    "call",
    [
        *("det(x)", "linalg.slogdet(x)[1]", "linalg.inv(x)", "linalg.solve(x, x[0])"),
        *("linalg.svdvals(x)", "linalg.pinv(x[:, :2])", "linalg.matrix_exp(x)"),
        *("linalg.qr(x)[1]", "linalg.lu(x)[1]", "linalg.eigvalsh(x + x.T)"),
        *("linalg.lstsq(x[:, :2], x)[0]", "linalg.householder_product(x, x[0])"),
        *("linalg.solve_triangular(x, x, upper=True)", "linalg.lu_factor(x)[0]"),
    ],
    parts=1,
)
def test_second_derivative(call: str) -> None:
    """The double-backward graph gives what differences of gradients give."""
    rng = np.random.default_rng(3)
    start = rng.standard_normal((3, 3)) + 3 * np.eye(3)
    direction, step = rng.standard_normal((3, 3)), 1e-6

    def slope(value: Any, create: bool = False) -> Any:
        x = gradcli.tensor(value, dtype=gradcli.float64).requires_grad_()
        names = {"linalg": gradcli.linalg, "det": gradcli.det, "x": x}
        y = (eval(call, names) ** 2).sum()
        return x, gradcli.autograd.grad(y, x, create_graph=create)[0]

    x, g = slope(start, create=True)
    analytic = gradcli.autograd.grad((g * gradcli.tensor(direction)).sum(), x)[0].numpy()
    up, down = (slope(start + s * step * direction)[1].numpy() for s in (1, -1))
    np.testing.assert_allclose(analytic, (up - down) / (2 * step), rtol=2e-4, atol=2e-4)


def test_the_gradient_of_a_trace_is_the_diagonal_alone(torch: Any) -> None:
    x = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    torch.trace(x).backward(torch.tensor(float("inf"), dtype=torch.float64))
    assert x.grad.tolist() == [[np.inf, 0, 0], [0, np.inf, 0]]


# m: square and well-conditioned; p: positive definite; t: tall; v: a vector.
STACKED = """
    det(m); logdet(p); slogdet(m); inverse(m); linalg.inv_ex(m); linalg.solve(m, t); linalg.solve_ex(m, t)
    linalg.solve(m, t.mT, left=False); linalg.solve(m, v[..., None]); linalg.matrix_power(m, 3)
    linalg.matrix_power(m, -2); linalg.matrix_exp(m); m @ t
    cholesky(p); linalg.cholesky(p, upper=True); linalg.cholesky_ex(p); cholesky_inverse(linalg.cholesky(p))
    cholesky_solve(t, linalg.cholesky(p)); linalg.eigh(p); linalg.eigvalsh(p); linalg.eigvals(p).real
    linalg.qr(t); linalg.qr(t.mT); linalg.qr(m); qr(t); linalg.svd(t, full_matrices=False); linalg.svdvals(t)
    svd(t); linalg.pinv(t); linalg.pinv(t.mT); linalg.pinv(p, hermitian=True); linalg.pinv(t, rtol=0.9)
    linalg.pinv(t, atol=0.9); pinverse(t); linalg.lstsq(t, m); linalg.lstsq(t, v[..., None]); linalg.lu(m)
    linalg.lu_factor(m); linalg.lu_factor_ex(m); lu(m); triangular_solve(t, m)
    lu_unpack(linalg.lu_factor(m)[0], linalg.lu_factor(m)[1])
    linalg.lu_solve(linalg.lu_factor(m)[0], linalg.lu_factor(m)[1], t)
    lu_solve(t, linalg.lu_factor(m)[0], linalg.lu_factor(m)[1])
    linalg.solve_triangular(m, t, upper=True); linalg.solve_triangular(m, t.mT, upper=False, left=False)
    linalg.householder_product(t, v[..., :2]); ormqr(t, v[..., :2], m); linalg.vecdot(v, v); linalg.vander(v)
    linalg.cross(v, t[..., 0]); linalg.diagonal(t); linalg.matrix_norm(t); linalg.matrix_norm(t, 'nuc')
    linalg.matrix_norm(t, 2); linalg.matrix_norm(t, -2); linalg.matrix_norm(t, 1); linalg.matrix_norm(t, inf)
    linalg.cond(m); linalg.cond(m, 'fro'); linalg.cond(m, 1); linalg.cond(t); linalg.matrix_rank(t)
    linalg.matrix_rank(t, tol=0.9); linalg.vector_norm(v, 3, -1); cdist(t, m[..., :2])
"""


@sweep("call", re.findall(r"[^;\s][^;\n]*", STACKED))
def test_a_stack_is_each_of_its_matrices(call: str) -> None:
    """Values and gradients; there are other numbers of matrices than of rows and columns."""
    rng = np.random.default_rng(3)
    square = rng.normal(size=(4, 3, 3))
    arrays = {
        "m": square + 3 * np.eye(3),
        "p": square @ square.swapaxes(-1, -2) + np.diag([1.0, 3.0, 6.0]),
        "t": rng.normal(size=(4, 3, 2)),
        "v": rng.normal(size=(4, 3)),
    }

    def found(at: Any) -> tuple[list[Any], list[Any]]:
        given = {n: gradcli.tensor(a[at], requires_grad=True) for n, a in arrays.items()}
        out = language.run(language.parse(call), given).value
        outs = [o for o in (out if isinstance(out, tuple) else (out,)) if o.numel()]
        smooth = [o for o in outs if o.requires_grad]
        if smooth:
            sum((o * o.detach().cos()).sum() for o in smooth).backward()
        grads = [x.grad for x in given.values() if x.grad is not None]
        return [o.detach().numpy() for o in outs], [g.numpy() for g in grads]

    together, alone = found(slice(None)), [found(k) for k in range(4)]
    for stage, whole in enumerate(together):
        for number, one in enumerate(whole):
            each = np.stack([parts[stage][number] for parts in alone])
            np.testing.assert_allclose(one, each, rtol=1e-9, atol=1e-11, err_msg=call)

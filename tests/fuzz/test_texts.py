"""What random programs found in the texts of `diff`: each class of programs, and its like.

Every text is compared with the tape: as it is, with names for what is shared, of the second and third
order, as matrices, and as a program in every format.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.formulas.algebra.spelling import NoExpression
from gradcli.formulas.ask.matrix_derivatives import jacobian
from gradcli.transforms.traced_run import traced_run
from tests.fuzz import pairs
from tests.sweep import some

TEXTS = [name for name in pairs.PAIRS if name.startswith("--") or name == "text"]
QUICK = ("text", "--order 2", "--format torch")

# program, values: a shape, or the value itself. By what is right about the text now.
FOUND: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "gelu by tanh has a slope that is written": [
        ("sum(F.gelu(A@x, approximate='tanh'))", {"A": (2, 3), "x": (3,)}),
        ("F.gelu(x*s, approximate='tanh')", {"x": [-2.0, -0.1, 0, 0.7, 30], "s": 0.5}),
    ],
    "conditions and bounds of what turns out to be a number are known": [
        ("F.softshrink(F.huber_loss(x, x, reduction='none'))", {"x": [-0.5, -1, 0.5]}),
        ("clamp(x - x + 2, max=1)*y + ~(x - x < 1)*y + ~(x - x > 1)*y", {"x": (2,), "y": (2,)}),
        ("clamp(x - x + 2, 3, 1)*y + (x - x > 0).logical_xor(x - x < 1)*y", {"x": (2,), "y": (2,)}),
    ],
    "what has no dimensions is chosen from and written into as a tensor": [
        ("(A*1)[A > 0]*s", {"A": 0.7, "s": 0.5}),
        ("(A*y)[y > 1]*s", {"A": 0.7, "y": 0.5, "s": 0.5}),
        ("sum((x*s)[x > 0.1])*s", {"x": [0.5, -2, 1], "s": 0.5}),
        ("dist(x, y*1)[dist(x, y) > 0]", {"x": (3,), "y": (3,)}),
    ],
    "a kink is none of the faults of a path": [
        (
            "h = F.huber_loss(x, y, reduction='none')\nh if h.sum() > 0 else 2*h",
            {"x": [0.0, 1, -2], "y": [0.0, 0, 0]},
        ),
    ],
    "a sum that a rule of no elements reads is no part of another sum": [
        ("logaddexp(x + 2, 1)", {"x": (0,)}),
    ],
    "convolutions of five dimensions are not tried in sizes that grow with each dimension": [
        (
            "F.conv_transpose3d(x, y, z, stride=2, padding=1)",
            {"x": (2, 3, 3, 3, 3), "y": (3, 4, 2, 2, 2), "z": (4,)},
        ),
    ],
    "a product of three dimensions is no product of matrices": [
        (
            "minimum(einsum('i,j,k->ijk', x, y, z)[2:], 0.1)",
            {"x": (4,), "y": (3,), "z": (2,)},
        ),
        (
            "F.threshold(einsum('i,j,k->ijk', diag(x)@Y@z, v, w), 0.1, 2)",
            {"x": (2,), "Y": (2, 1), "z": (1,), "v": (4,), "w": (3,)},
        ),
    ],
    "what turns out to be a number has no methods, and 0 times a matrix is 0": [
        ("special.i1e(corrcoef(x))", {"x": [1.0, 2, 4]}),
        ("exp(corrcoef(x))*s", {"x": [1.0, 2, 4], "s": 0.5}),
        ("sum((s*corrcoef(x)).reshape(1, 1)@(x*s)[None, :])", {"x": [1.0, 2, 4], "s": 0.5}),
    ],
    "what was made floats of integers or truth values is written as floats where no others are taken": [
        ("F.logsigmoid((x > 0).double())*x", {"x": (3,)}),
        ("F.celu((x > 0).sum()*1.0)*x", {"x": (3,)}),
        ("F.elu((x > 0).sum(dtype=float64))*x", {"x": (3,)}),
        ("F.leaky_relu(x.argmax()*1.0)*x", {"x": (3,)}),
        ("igamma(2, count_nonzero(x)*1.0)*x", {"x": (3,)}),
        ("frac(x.max(0).indices*1.0)*x", {"x": (3,)}),
        ("F.gelu((x > 0).amax()*1.0)*x", {"x": (3,)}),
        ("F.gelu(((x > 0)*2)[tensor([0, 0, 2])]*1.0)*x", {"x": (3,)}),
        ("F.glu((x > 0).sum()*ones(2))*x", {"x": (3,)}),
        ("F.gelu(n*1.0)*F.leaky_relu(2.0*n + 1)*x", {"n": np.array([2, 0, 3]), "x": (3,)}),
        ("x*var(n*1.0)*softmax(n.double(), 0)", {"n": np.array([2, 0, 3]), "x": (3,)}),
        ("(n*1.0)@x*(n//2).sum()", {"n": np.array([2, 0, 3]), "x": (3,)}),
        ("(argmax(x) & 1)*bitwise_not(argmax(x))*x", {"x": (3,)}),
    ],
    "what a mask selects is counted nowhere": [
        ("b = x + s; b[b > 0.1] = s; sum(b*b)", {"x": [-0.99, 0.2, -0.74], "s": 0.02}),
        ("b = x + s; b[b > 0.1] = s; sum(b*b)", {"x": [-0.99, -0.2, -0.74], "s": 0.02}),
        ("b = X*s; b[b[:, 0] > 0.1] = X[0]; sum(b*b)", {"X": [[-0.5, 0.2], [0.5, 1]], "s": 0.8}),
        ("b = X*s; b[b > 0.1] = sum(X); sum(b*b)", {"X": [[-0.5, 0.2], [-0.5, -1]], "s": 0.8}),
    ],
    "constants are spread as numbers are": [
        (
            "sum(F.scaled_dot_product_attention(X0 - X0 + 1, X0, X1))",
            {"X0": [[0.76, 0], [-0.84, -0.58], [0.11, -1.22]], "X1": (3, 1)},
        ),
        ("s*2**(1/4)*sum(outer(x - x + 2**0.25, x))", {"s": 0.5, "x": (2,)}),
    ],
    "a sum that is there already is no new part of a polynomial": [
        ("F.softsign((1 - s)**3)", {"s": 0.98}),
        ("F.softsign(sin(s))", {"s": 0.98}),
    ],
    "what is written by strides lies row by row": [
        (
            "sum(as_strided_scatter(X.T.contiguous(), Y, (2, 2), (1, 2))**2)",
            {"X": (2, 3), "Y": (2, 2)},
        ),
    ],
    "where a matrix is singular nothing is proved": [
        (
            "slogdet(vstack([tril(X0), X1.detach() // 0.3]) + 3 * eye(3))[1]",
            {"X0": [[0.22, -0.42, 0.86]], "X1": [[-0.19, -0.43, 0.48], [-1.21, 0.05, -0.59]]},
        ),
    ],
    "the Jacobian of a scalar is its gradient": [
        ("mean(cdist(X, X))", {"X": [[1.27], [-0.76], [0.82], [-0.05]]}),
    ],
    "the largest difference is found in what it was taken of": [
        ("dist(x**2 + 0.5, y + x, -inf)", {"x": [-0.99, 1.27], "y": [-0.54]}),
        ("dist(x*s, y + x, inf)", {"x": [-0.99, 1.27], "y": [-0.54], "s": 0.5}),
        ("dist(x*s, y + x, 3)", {"x": [-0.99, 1.27], "y": [-0.54], "s": 0.5}),
    ],
    "what linalg.cholesky refuses is factored by cholesky_ex": [
        ("sum(linalg.cholesky_ex(A)[0])", {"A": [[4, 1, 1], [5, 0.5, 1], [3, 4, 0.9]]}),
        ("linalg.cholesky_ex(A, upper=True)[0]", {"A": [[4.0, 1], [1, -3]]}),
        ("linalg.cholesky_ex(A)[0]", {"A": [[4.0, 1], [1, 3]]}),
    ],
    "conditions of constants are decided": [
        ("s*(pi > 0.1)", {"s": 0.75}),
        ("s**2*(sqrt(3) <= pi) + s*(pi == 3)", {"s": 0.75}),
        ("(x if pi > 3 else x**2)*s", {"x": (3,), "s": 0.5}),
        ("where(log(5) < 1, x, x**2)*s", {"x": (3,), "s": 0.5}),
    ],
    "equal branches are one value of the shape of all": [
        ("where(X > Y, Y, Y)", {"X": (2, 3), "Y": (2, 3)}),
        ("where(x > Y, Y, Y)*x", {"x": (3,), "Y": (2, 3)}),
        ("where(X > Y, Y, Y**2)", {"X": (2, 3), "Y": (2, 1)}),
        ("sum(where(X > Y, Y, Y), 0)*X[0]", {"X": (2, 3), "Y": (2, 3)}),
        ("maximum(X, X)*s", {"X": (2, 3), "s": 0.5}),
    ],
    "functions of torch get tensors, sums of constants too": [
        ("atan2(s, sinh(pi) + 0.4)", {"s": 0.3}),
        ("maximum(s, log(2) + 1)*s", {"s": 0.3}),
        ("s*sqrt(log(2) + 1)", {"s": 0.3}),
        ("s*sinh(sqrt(2))*sigmoid(sqrt(2) + pi)", {"s": 0.3}),
        ("hypot(x, sqrt(pi) + 1)*erf(log(3))", {"x": (3,)}),
        ("quantile(x, 0.5, dim=1)*s", {"x": (2, 3), "s": 0.3}),
    ],
    "a sign stands before a closed remainder": [
        ("dot(-x, x % (y + 0.9))", {"x": [0.43, 1.3], "y": [0, 1.25]}),
        ("-(x % s)*x - x", {"x": [0.43, 1.3], "s": 0.9}),
        ("sum(remainder(x, s)*(-3))*s", {"x": [0.43, 1.3], "s": 0.9}),
    ],
    "complex operands are complex, and lie side by side": [
        ("view_as_complex(x*s).abs()", {"x": (3, 2), "s": 1.1}),
        ("view_as_complex((x.T*1).contiguous()).real*s", {"x": (2, 3), "s": 1.1}),
    ],
    "views that are made without grad mode are constants": [
        ("set_grad_enabled(False); c = x[1:]; set_grad_enabled(True); c*y", {"x": (3,), "y": (2,)}),
        ("set_grad_enabled(False); c = X.T; set_grad_enabled(True); sum(c@X)", {"X": (2, 2)}),
    ],
    "a value of shape is not a number of Python's": [("s.expand(2, 3)", {"s": 0.36})],
    "ones of one element have a row": [
        ("h = X.T @ x % y; h.mul_(y); h", {"X": (2, 1), "x": (2,), "y": [0.35, -0.27, -0.15]}),
    ],
    "what has no dimension has none to say": [
        ("var_mean(s, unbiased=False, dim=0)[0] + s**2", {"s": 0.36}),
        ("std_mean(s, correction=0, dim=0)[1]*s", {"s": 0.36}),
        ("flip(s, [0])*s", {"s": 0.36}),
    ],
    "conditions that are moved stay conditions": [
        ("sum(nanmean(X, 1))", {"X": (2, 1)}),
        ("sum(where((X > 0).reshape(6)[1:5], x, x**2))", {"X": (2, 3), "x": (4,)}),
        ("where((X > 0)[:, 1], x, x**3)", {"X": (2, 3), "x": (2,)}),
    ],
    "one row of one element is not a column": [
        ("x*(sigmoid(x - Y).T @ b)", {"x": (1,), "Y": (2, 1), "b": (2,)}),
    ],
    "a number seen as a pair is both of its parts": [
        ("view_as_complex(x).abs()", {"x": [0.5, 0.3]}),
        ("view_as_real(view_as_complex(x)*s).sum()", {"x": [0.5, 0.3], "s": 2.0}),
    ],
    "Python's math refuses where nothing is finite": [
        ("acos(s)", {"s": 0.99}),
        ("acosh(s) + 2*t", {"s": 1.01, "t": 0.5}),
        ("log(s)*sqrt(t)", {"s": 0.01, "t": 0.001}),
    ],
    "options of functions that NumPy has without": [
        ("special.logit(x, eps=0.3)*s", {"x": [0.25, 0.4, 0.82], "s": 2.0}),
        ("F.softplus(x, 3)*F.elu(x, 0.5)*F.celu(x, 2)*F.hardtanh(x, -0.5, 0.4)", {"x": (4,)}),
        ("F.leaky_relu(x, 0.3)*F.threshold(x, 0.1, 2)*F.softshrink(x, 0.2)", {"x": (4,)}),
        ("hardshrink(x, 0.3)*nan_to_num(x, 1.0)*round(x, decimals=1)*x", {"x": (4,)}),
    ],
    "a program's value has its shape": [
        ("1 + 0*x", {"x": (3,)}),
        ("where(x > 0, s, s) + 0*x", {"x": (3,), "s": 0.5}),
        ("sum(x)*ones(3)", {"x": (2,)}),
    ],
    "singular values are cut where the program says": [
        ("pinverse(X, rcond=0.7)", {"X": (2, 2)}),
        ("linalg.pinv(X, atol=0.7)*s", {"X": (2, 2), "s": 0.5}),
    ],
    "the Jacobian of a number has its variable's shape": [
        ("sum(X)", {"X": (2, 3)}),
        ("F.mse_loss(X, Y)", {"X": (2, 1), "Y": (1, 2)}),
        ("dot(x, A@y)", {"x": (2,), "y": (3,), "A": (2, 3)}),
        ("trace(X*s)", {"X": (2, 3), "s": 0.5}),
    ],
    "no index is one of integers": [
        ("trace(X)", {"X": (0, 3)}),
        ("trace(X*s)*s", {"X": (0, 0), "s": 0.5}),
        ("sum(index_fill(x, 0, tensor([], dtype=int64), s))", {"x": (3,), "s": 0.5}),
    ],
    "a norm that is raised has the slope that it had": [
        ("cosine_similarity(x, y, 0, eps=1.7)", {"x": [0.4, 0.9, 0.2], "y": [0.3, 0.2, 0.3]}),
        ("where(x < 0.5, 0.5, x)*y", {"x": [0.4, 0.5, 0.6], "y": [0.3, 0.2, 0.3]}),
    ],
    "a band is of a square matrix": [
        ("var(cat([(A.T@x)[:1], y]))*s", {"A": (1, 2), "x": (1,), "y": (3,), "s": 0.5}),
    ],
    "the proof measures to the accuracy of the arithmetic": [
        ("sin(x*1e8)*s", {"x": [1.234, -0.7], "s": 0.5}),
        ("sin(exp(x*20))", {"x": 1.234}),
    ],
    "a mean is of floating numbers, an element of what has one is that": [
        ("mean(x*(y > 0.1))", {"x": (1,), "y": (2,)}),
        ("xlogy(x, y)[2]*s", {"x": (3,), "y": [0.37], "s": 0.5}),
    ],
    "a diagonal matrix in an elementwise function": [
        ("tanh(diag(x)@A).sum()", {"x": (2,), "A": (2, 3)}),
        ("exp(A@diag(x)*s).sum()", {"x": (2,), "A": (3, 2), "s": 0.5}),
        ("((x[:, None]*A)**3).sum()", {"x": (2,), "A": (2, 3)}),
        ("sum(sin(diag(x)@A)@b)", {"x": (2,), "A": (2, 3), "b": (3,)}),
    ],
    "what many terms share is looked for in a bounded number of ways": [
        ("linalg.pinv(X)*s", {"X": [[1, 2], [3, 7]], "s": 0.5}),
        ("linalg.pinv(X).sum()", {"X": [[1, 2], [3, 7]]}),
    ],
    "a vector in an outer product has its elements, equal ones too": [
        (
            "einsum('ij,j->i', F.linear(X, Y, x), log(x**2 + 1))",
            {"X": (3, 1), "Y": (3, 1), "x": (3,)},
        ),
        ("(v@ones(2, 1))*b@D*s", {"v": (2,), "b": (1, 3), "D": (3, 2), "s": 0.5}),
    ],
    "products that cancel keep their shape": [
        (
            "(A@C)@(linalg.inv(C)@D)",
            {"A": (2, 2), "C": [[2, 0.3], [0.2, 1.5]], "D": (2, 3)},
        ),
    ],
    "a gradient of ones and zeros is one of floats without its factors, too": [
        ("amax(linalg.solve(C, x))*s", {"C": [[2, 0.3], [0.2, 1.5]], "x": (2,), "s": 0.5}),
        ("amax(F.conv2d(X, X[:, :, :2, :2]))*s", {"X": (1, 1, 3, 3), "s": 0.5}),
        ("amax(F.conv_transpose1d(X, X))*s", {"X": (1, 1, 3), "s": 0.5}),
        ("amax(F.avg_pool2d(X, 2, 1))*s", {"X": (1, 1, 3, 3), "s": 0.5}),
        ("linalg.inv((X > 9)*s + eye(2)*s).sum()", {"X": (2, 2), "s": 0.5}),
        ("x*var(stack([s, s]))", {"x": (2,), "s": -0.72}),
        ("norm(x[:, None], dim=1)", {"x": (0,)}),
    ],
    "of two numbers the first is a tensor where a function wants one": [
        ("prod(stack([s, xlogy(s**2, t - t + 0.5)]))", {"s": 0.7, "t": 0.3}),
        ("prod(stack([s, special.xlog1py(s**2, t - t + 0.5)]))", {"s": 0.7, "t": 0.3}),
    ],
    "a vector's last dimension is its matrix's first": [
        ("slice_scatter(x**2, x[1:]**2, -1, 1)", {"x": (4,)}),
        ("diff(x, 2)**2", {"x": (5,)}),
        ("narrow(x, -1, 1, 2)**2", {"x": (4,)}),
        ("stack([x[0], x[1]], -1)**2*select(x, -1, 0)", {"x": (4,)}),
        ("flip(roll(x**3, 1, -1), [-1])", {"x": (4,)}),
    ],
    "a matrix of one element is a number where more are wanted": [
        ("sum(tanh((A@y).reshape(1, 1)*y[None]))*s", {"A": (1, 3), "y": (3,), "s": 0.5}),
        ("sum(exp((x[:, None]*B).T@y))", {"x": (1,), "B": (1, 3), "y": (1,)}),
    ],
    "truth values and numbers where tensors of floats were are floats": [
        ("minimum(s > 0.1, X - X)@x", {"s": 0.55, "X": (2, 3), "x": (3,)}),
        ("special.xlog1py(s - s + 2, s - s + 0.5)*x", {"s": 0.55, "x": (3,)}),
        ("addmm(Y, maximum(X > 0.1, s - s), X.T)", {"Y": (2, 2), "s": 0.55, "X": (2, 3)}),
    ],
    "the transpose of a column is a matrix, too": [
        ("(X**2@stack([x, x]).T)**2", {"X": (2, 1), "x": (1,)}),
        ("((X**2).T@Y)**2", {"X": (2, 1), "Y": (2, 3)}),
    ],
    "constants of the language are elements as numbers are": [
        ("stack([pi*x[0] + x[1]/3, x[1]])", {"x": (2,)}),
        ("x[0]*x[1]*pi + s*x[1]**2", {"x": (2,), "s": 0.5}),
        ("pi*x[0] + 3*x[19]", {"x": (20,)}),
        ("pi*sum(x[0]*x[1])*s", {"x": (2, 2), "s": 0.5}),
    ],
    "rows of a matrix are those of the identity times it": [
        ("select_scatter(A*s, x, 0, 1)**2", {"A": (2, 3), "x": (3,), "s": 0.5}),
        ("sum(outer(x, x)[1:]**3)", {"x": (3,)}),
        ("(x[:, None]*A)[:, 1]**3", {"A": (2, 3), "x": (2,)}),
        ("select_scatter(outer(x, x), x, 1, 1)**2", {"x": (2,)}),
        ("slice_scatter(outer(x, x), A*s, 0, 1, 2)**3", {"x": (3,), "A": (1, 3), "s": 0.5}),
        ("slice_scatter(outer(x, x), A*s, -1, 1, 3)**3", {"x": (3,), "A": (3, 2), "s": 0.5}),
        ("prod(stack([x, x**2]), 0)", {"x": (3,)}),
        ("stack([x, y, x*y])[-1]**2", {"x": (3,), "y": (3,)}),
        ("sum(stack([x, y], 1)[:, -1]**2*x)", {"x": (3,), "y": (3,)}),
    ],
    "a part that does not depend on the variable has a matrix of zeros": [
        ("logsumexp(select_scatter(X, x, 1, 1)[:, 0], 0)", {"X": (2, 3), "x": (2,)}),
        ("log(select_scatter(X**2, x, 0, 1)[0].sum())*s", {"X": (2, 3), "x": (3,), "s": 0.5}),
        ("sum(select_scatter(x, x[1], 0, 0)[:1]**2)", {"x": (3,)}),
    ],
    "a branch that is not taken stays out of a matrix": [
        ("sinc(relu(x))", {"x": [-0.07, -0.96, 0.3]}),
        ("sinc(relu(x))*x", {"x": [-0.07, -0.96, 0.3]}),
        ("relu(x)**1.5*s", {"x": [-0.07, -0.96, 0.3], "s": 0.5}),
        ("sinc(clamp(x, 0, 1))*s", {"x": [-0.07, -0.96, 0.3], "s": 0.5}),
        ("sinc(where(x > 0, 0, x))*s", {"x": [-0.07, -0.96, 0.3], "s": 0.5}),
    ],
    "what is laid out anew is a formula as before": [
        ("layer_norm(A.T, [3])@x", {"A": (3, 2), "x": (3,)}),
        ("sum(softmax(A.T, 0), 1)*x", {"A": (2, 3), "x": (3,)}),
        ("cumsum(A.T, 1)[0]*x", {"A": (2, 3), "x": (2,)}),
    ],
    "a convolution of nothing has slopes of zeros": [
        ("F.conv_transpose1d(X, w, b, stride=2)", {"X": (0, 3, 4), "w": (3, 4, 2), "b": (4,)}),
        ("F.conv1d(X, w, b)", {"X": (0, 3, 4), "w": (2, 3, 2), "b": (2,)}),
    ],
    "a slope of softplus that is 1 beyond the threshold": [
        ("F.softplus(x, 2, 3)*s", {"x": [0.3, 1.4, 1.6, 25], "s": 0.5}),
        ("F.softplus(x, beta=0.5, threshold=1)", {"x": [0.3, 1.4, 3, 25]}),
        ("F.softplus(s, 2, 3)", {"s": 2.0}),
        ("F.softplus(x*s)", {"x": [0.3, 19, 21, 25], "s": 1.5}),
    ],
    "arrays of integers and of truth values are floats where those are wanted": [
        ("sum(tensor([1, 6, 1])*w)*s", {"w": (3,), "s": 0.5}),
        ("sum((arange(6).reshape(2, 3)*1.0)@w)*s", {"w": (3,), "s": 0.5}),
        ("(arange(6).reshape(2, 3)@arange(3))*s", {"s": 0.5}),
        ("sum(tensor([True, False, True])*w)*s", {"w": (3,), "s": 0.5}),
        ("sum(diff(tensor([1, 6, 1, 1]))*w)*s", {"w": (3,), "s": 0.5}),
        ("sum(clamp_min(x.flip(0), 0.5)**2)*s", {"x": [0.3, 1.9, 0.2], "s": 0.5}),
        ("logsumexp(x > 0.4, 0)*s", {"x": (3,), "s": 0.5}),
    ],
    "torch's functions of tensors get no numbers, by their signatures": [
        ("polar(x, 0.5).abs()*s", {"x": (3,), "s": 0.5}),
        ("(polar(2, x).abs()*s)", {"x": (3,), "s": 0.5}),
        ("zeros(3).index_put_((tensor([0, 2]),), sqrt(2))*s", {"s": 0.5}),
    ],
    "what has a shape is not Python's alone": [
        ("tensor([1.0, 2.0])*s", {"s": 0.5}),
        ("cholesky_inverse(tensor([[3.0, 0.0], [0.3, 2.0]]))*s", {"s": 0.5}),
    ],
    "integers beside tensors of floats are floats": [
        ("index_put(x, (tensor([0, 2]),), -1)**2", {"x": (3,)}),
        ("index_put(x, (tensor([0, 2]),), 2)**2", {"x": (3,)}),
        ("addbmm(0, X, Y, beta=0.5)**2*s", {"X": (2, 3, 4), "Y": (2, 4, 5), "s": 0.5}),
    ],
    "pi is a number where no tensor fits": [
        ("scatter(X, 1, tensor([[0], [2]]), pi)*s", {"X": (2, 3), "s": 0.5}),
        ("F.gaussian_nll_loss(x, y, pi)*s", {"x": (3,), "y": (3,), "s": 0.5}),
    ],
    "numbers that are cast are tensors": [
        ("fft.fftn(pi).abs()*s", {"s": 0.5}),
        ("quantile(s.reshape(1), 0.3)*s", {"s": 0.5}),
        ("nanquantile(sqrt(2), tensor([0.3, 0.6]))*s", {"s": 0.5}),
    ],
    "what is one over infinity is 0": [
        ("igamma(0, x)*s", {"x": [0.4, 1.2], "s": 0.5}),
        ("special.gammaincc(0, x)*s", {"x": [0.4, 1.2], "s": 0.5}),
    ],
    "what is written into truth values and integers is one of them": [
        ("fill(x > 0.4, 2.0)*s", {"x": (3,), "s": 0.5}),
        ("(x > 0.4).fill_(2.0)*s", {"x": (3,), "s": 0.5}),
        ("masked_fill(x > 0.4, x > 0.8, 2.0)*s", {"x": [0.3, 0.7, 0.9], "s": 0.5}),
        ("masked_fill(tensor([1, 2, 3]), x > 0.8, 2.7)*s", {"x": [0.3, 0.7, 0.9], "s": 0.5}),
        ("(X > 0.4).fill_diagonal_(2)*s", {"X": (2, 2), "s": 0.5}),
        ("index_fill(x > 0.4, 0, tensor([1]), 2.0)*s", {"x": (3,), "s": 0.5}),
        ("index_fill((x*3).to(int64), 0, tensor([1]), 2.7)*s", {"x": (3,), "s": 0.5}),
        ("index_put(x > 0.4, (tensor([1]),), tensor(True))*s", {"x": (3,), "s": 0.5}),
        ("select_scatter(x > 0.4, tensor(2.5), 0, 1)*s", {"x": (3,), "s": 0.5}),
        ("b = x > 0.4; b[0] = 2.5; b*s", {"x": (3,), "s": 0.5}),
        ("sum(tensor(3).fill_(s.detach())*x)", {"x": (3,), "s": 1.7}),
        ("tensor([3, 4, 5]).masked_fill(x > 0.4, s.detach())*x", {"x": [0.3, 0.7, 0.9], "s": 1.7}),
        ("F.pad(x > 0.4, (1, 1), value=2)*s", {"x": (3,), "s": 0.5}),
    ],
    "truth values are multiplied and negated as 1 and 0, wherever they come from": [
        ("sum((1 - w)*m)", {"w": (2,), "m": [True, False]}),
        ("sum(-w*m[:2])*m[2]", {"w": (2,), "m": [True, False, True]}),
        ("sum(narrow_copy(x > 0.4, 0, 1, 2)*w)*s", {"x": (4,), "w": (2,), "s": 0.5}),
        ("sum(-w*m.cummax(0)[0])", {"w": (2,), "m": [True, False]}),
        ("sum(-w*stack([m, w > 0.6])[1])", {"w": (2,), "m": [True, False]}),
        ("sum(w*amax(A > 0.4, 0))", {"w": (3,), "A": (2, 3)}),
        ("sum(-w*(w*m).bool())", {"w": (2,), "m": [True, False]}),
        ("sum(-w*m.any())", {"w": (2,), "m": [True, False]}),
        ("sum(-w*where(w > 0.6, m, w > 1))", {"w": (2,), "m": [True, False]}),
        ("sort(x > 0.4, descending=True)[0]*s", {"x": (4,), "s": 0.5}),
        ("where(chunk(A > 0.4, 2, dim=1)[0], A[:, :2], s)", {"A": (2, 4), "s": 0.5}),
        ("where(masked_fill(x > 0.4, x > 0.6, 0.0), x, s)", {"x": (4,), "s": 0.5}),
        ("where(maximum(m, w > 0.6), w, 2*w)", {"w": (2,), "m": [True, False]}),
    ],
    "sums and products of truth values are truth values": [
        ("sum(where((w > 0.6)*(w < 1), w, 1))", {"w": [0.5, 0.7, 1.2]}),
        ("sum(w*((w > 0.6) + (w < 1)))", {"w": [0.5, 0.7, 1.2]}),
        ("sum(-w*~((w > 0.6)*(w < 1)))", {"w": [0.5, 0.7, 1.2]}),
        ("w*(m + m + (w > 0))", {"w": (2,), "m": [True, False]}),
        ("F.gelu(((x > 0) + (x < 1)).double())*x", {"x": (3,)}),
    ],
    "the bits of integers are no truth values": [
        ("sum(((x*4).to(int64) & 1)*w)", {"x": [0.5, 0.75, 1], "w": (3,)}),
        ("sum(((x*4).to(int64) | 2)*w)", {"x": [0.5, 0.75, 1], "w": (3,)}),
        ("sum(~(x*4).to(int64)*w)", {"x": [0.5, 0.75, 1], "w": (3,)}),
        ("sum(logical_or((x*4).to(int64), 0)*w)", {"x": [0.5, 0.75, 1], "w": (3,)}),
        ("sum(((w > 0) & 2)*w)", {"w": (3,)}),
        ("x*bitwise_left_shift((x > 0).long(), x.argmax())", {"x": (3,)}),
    ],
    "averages of integers are integers": [
        ("F.avg_pool2d((X > 0.4)*3, 2, 2)*s", {"X": (1, 2, 2), "s": 0.5}),
        ("F.lp_pool2d(X > 0.4, 2, 2)*s", {"X": (1, 4, 4), "s": 0.5}),
    ],
    "numbers in rules stay what they are beside integers and truth values": [
        ("addcdiv(x, y, y > -9, value=2)", {"x": (2,), "y": (2,)}),
        ("addcdiv(x, y, True, value=2)", {"x": (2,), "y": (2,)}),
        ("addcdiv(x, y, tensor([3, 4]), value=0.5)*s", {"x": (2,), "y": (2,), "s": 0.5}),
        ("ldexp(x, -1)", {"x": (2,)}),
    ],
    "a mask that lost its factor is of floating numbers": [
        ("(3*relu(x[t])).clip(max=0.5).mean()", {"x": [0.1, 0.9, -1], "t": np.array([2, 0, 1])}),
        ("(3*relu(gather(x, 0, t))).clip(max=0.5).mean()", {"x": (3,), "t": np.array([2, 0, 1])}),
        ("(3*relu(linalg.solve(X, x))).clip(max=0.5).mean()", {"X": (3, 3), "x": (3,)}),
        ("(3*relu(linalg.cross(x, y))).clip(max=0.5).mean()", {"x": (3,), "y": (3,)}),
        ("(2*relu(F.conv1d(X, Y))).clip(max=0.5).mean()", {"X": (1, 1, 3), "Y": (1, 1, 2)}),
    ],
    "classes are ones among zeros": [
        (
            "-(F.one_hot(t, 3)*log_softmax(z, 1)).sum(1).mean()",
            {"z": (2, 3), "t": np.array([0, 2])},
        ),
        ("F.one_hot(t, 3).double()@w", {"w": (3,), "t": np.array([[0, 2], [1, 1]])}),
        ("sum(F.one_hot(t, 3)[:, None]*w@X)", {"w": (2, 3), "X": (3, 2), "t": np.array([0, 2])}),
        (
            "F.cross_entropy(maximum(X, x)@Y.T, t)**2",
            {"X": (3, 1), "x": (4,), "Y": (5, 4), "t": np.array([0, 2, 4])},
        ),
        ("sum(F.one_hot((x > 0.2).long(), 2).double()@w*x)", {"x": (3,), "w": (2,)}),
    ],
    "NumPy's functions go where the language's go": [
        ("mvlgamma(-x, 2)*s", {"x": [2.2, 1.3], "s": 0.5}),
        ("F.gelu(x.detach(), approximate='tanh')*s", {"x": (3,), "s": 0.5}),
    ],
}


@pytest.fixture(autouse=True)
def doubles() -> Iterator[None]:
    before = gradcli.get_default_dtype()
    gradcli.set_default_dtype(gradcli.float64)
    yield
    gradcli.set_default_dtype(before)


def case(source: str, given: dict[str, Any]) -> pairs.Case:
    """A program with its variables; a tuple is the shape of one."""
    numbers = np.random.default_rng(13)
    values = {
        n: np.round(numbers.uniform(-1.4, 1.4, v), 2)
        if isinstance(v, tuple)
        else np.asarray(
            v, None if isinstance(v, np.ndarray) or np.asarray(v).dtype.kind == "b" else float
        )
        for n, v in given.items()
    }
    return pairs.Case(source, values)


# One of every fifth class runs always and in one way, the others and other ways with what takes long.
ROWS = pytest.mark.parametrize(
    ("source", "given"),
    [
        pytest.param(
            source, given, id=source, marks=[pytest.mark.long] * (place > 0 or number % 5 > 0)
        )
        for number, rows in enumerate(FOUND.values())
        for place, (source, given) in enumerate(rows)
    ],
)


@pytest.mark.long
@ROWS
def test_what_was_found_is_what_the_tape_gives(source: str, given: dict[str, Any]) -> None:
    made = case(source, given)
    slopes = pairs.tape(made)
    assert all(np.isfinite(g).all() for g in slopes.values())
    assert pairs.failures(made, QUICK[len(source) % len(QUICK)]) == {}


@pytest.mark.parametrize(
    ("source", "given"), some([row for rows in FOUND.values() for row in rows], 6)
)
@pytest.mark.long
def test_what_was_found_is_so_in_all_ways(source: str, given: dict[str, Any]) -> None:
    assert pairs.failures(case(source, given), *TEXTS) == {}


# Second derivatives that forward mode over reverse gave otherwise, or not at all.
CURVED = [
    ("grid_sampler_2d(sin(X), Y, 0, 0, False)", {"X": (1, 1, 4, 4), "Y": (1, 3, 1, 2)}),
    ("sum((x[5:5]*y)**2)*s", {"x": (200,), "y": (0,), "s": 0.5}),
    ("h = zeros(3); h[1] = sum(x); h*h", {"x": (0,)}),
]


@pytest.mark.parametrize(("source", "given"), CURVED)
def test_second_derivatives_agree(source: str, given: dict[str, Any]) -> None:
    assert pairs.failures(case(source, given), "hessian", "func twice") == {}


def test_a_plan_leaves_a_norm_that_is_out_of_range_to_the_tape() -> None:
    made = case("cosine_similarity(x, y, 0)", {"x": [1, 1e308], "y": [0.5, 2]})
    compiled = gradcli.compile(made.source, wrt=made.wrt)
    value, grads = compiled.value_and_grad(**made.tensors())
    assert value.item() == made.run(made.tensors()).item()
    assert value.item() == pytest.approx(2 / np.hypot(0.5, 2))
    own = pairs.tape(made)
    for name, found in grads.items():
        assert np.array_equal(found, own[name])


# Of memory outside of a view PyTorch's slope is none, so that no formula of the value has it.
BEYOND = ["as_strided(x[1:], (2,), (1,), 0)*s", "as_strided(x[:2], (3,), (1,))*s"]


@pytest.mark.long
@pytest.mark.parametrize("source", BEYOND)
def test_matrices_of_memory_outside_of_a_view_are_refused_in_words(source: str) -> None:
    made = case(source, {"x": (3,), "s": 0.5})
    assert pairs.failures(made, *TEXTS) == {}
    with pytest.raises(NoExpression, match="reads outside of its operand"):
        jacobian(made.program, made.values)


def test_a_program_that_is_run_again_with_pi_as_a_number_prints_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    source = "print('a'); Y = scatter(X*1, 1, tensor([[0], [2]]), pi)*s; print('b'); Y"
    made = case(source, {"X": (2, 3), "s": 0.5})
    traced_run(made.program, made.values, ["s"], False, {}, said=True)
    assert capsys.readouterr().out == "a\nb\n"

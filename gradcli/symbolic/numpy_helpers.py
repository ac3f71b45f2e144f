"""Functions of the language that NumPy lacks, as texts that `diff --format numpy` prints first."""

from __future__ import annotations

HELPERS = {
    "sigmoid": (
        "def sigmoid(x):\n"
        "    e = np.exp(-np.abs(x))  # so that nothing overflows\n"
        "    return np.where(x >= 0, 1, e) / (1 + e)"
    ),
    "sech2": (
        "def sech2(x):\n"
        "    e = np.exp(-2 * np.abs(x))  # 1 - tanh(x)**2 with all its digits\n"
        "    return 4 * e / (1 + e) ** 2"
    ),
    "relu": "def relu(x):\n    return np.maximum(x, 0)",
    "rsqrt": "def rsqrt(x):\n    return 1 / np.sqrt(x)",
    "layer_norm": (
        "def layer_norm(x, shape, eps=1e-05):\n"
        "    dims = tuple(range(-len(shape), 0))\n"
        "    mean = np.mean(x, axis=dims, keepdims=True)\n"
        "    return (x - mean) / np.sqrt(np.var(x, axis=dims, keepdims=True) + eps)"
    ),
    "erf": "erf = np.vectorize(math.erf, otypes=[float])",
    "erfc": "erfc = np.vectorize(math.erfc, otypes=[float])",
    "lgamma": "lgamma = np.vectorize(math.lgamma, otypes=[float])",
    "mvlgamma": (
        "def mvlgamma(x, p):  # below (p - 1)/2 too, which SciPy's refuses\n"
        "    terms = sum(special.gammaln(x - k / 2) for k in range(p))\n"
        "    return terms + p * (p - 1) / 4 * np.log(np.pi)"
    ),
    "softmax": (
        "def softmax(x, dim):\n"
        "    e = np.exp(x - np.max(x, axis=dim, keepdims=True, initial=-np.inf))\n"
        "    return e / np.sum(e, axis=dim, keepdims=True)"
    ),
    "logsumexp": (
        "def logsumexp(x, dim, keepdim=False):\n"
        "    x = 1.0 * x\n"
        "    top = np.max(x, axis=dim, keepdims=True, initial=-np.inf)\n"
        "    found = top + np.log(np.sum(np.exp(x - top), axis=dim, keepdims=True))\n"
        "    return found if keepdim else np.squeeze(found, dim)"
    ),
    "log_softmax": (
        "def log_softmax(x, dim):\n"
        "    x = x - np.max(x, axis=dim, keepdims=True, initial=-np.inf)\n"
        "    return x - np.log(np.sum(np.exp(x), axis=dim, keepdims=True))"
    ),
    "softplus": (
        "def softplus(x, beta=1, threshold=20):\n"
        "    return np.where(beta * x > threshold, x, np.logaddexp(beta * x, 0) / beta)"
    ),
    "nn.functional.logsigmoid": "def logsigmoid(x):\n    return -np.logaddexp(-x, 0)",
    "silu": (
        "def silu(x):\n"
        "    e = np.exp(-np.abs(x))  # so that nothing overflows\n"
        "    return x * np.where(x >= 0, 1, e) / (1 + e)"
    ),
    "frac": "def frac(x):\n    return x - np.trunc(x)",
    "one_hot": "def one_hot(x, n):\n    return np.eye(n)[x]",
    "nn.functional.nll_loss": (
        "def nll_loss(x, y, weight=None, ignore_index=-100, reduction='mean'):\n"
        "    axis = min(np.ndim(x) - 1, 1)\n"
        "    kept = np.not_equal(y, ignore_index)\n"
        "    y = np.where(kept, y, 0)\n"
        "    w = kept * (1.0 if weight is None else np.asarray(weight)[y])\n"
        "    of_y = np.take_along_axis(x, np.expand_dims(y, axis), axis)\n"
        "    found = -w * np.squeeze(of_y, axis)\n"
        "    total = np.sum(found)\n"
        "    return {'none': found, 'mean': total / np.sum(w), 'sum': total}[reduction]"
    ),
    "nn.functional.binary_cross_entropy": (
        "def binary_cross_entropy(x, y, weight=1, reduction='mean'):\n"
        "    with np.errstate(divide='ignore'):\n"
        "        found = -y * np.maximum(np.log(x), -100)\n"
        "        found = weight * (found - (1 - y) * np.maximum(np.log1p(-x), -100))\n"
        "    return {'none': found, 'mean': np.mean(found), 'sum': np.sum(found)}[reduction]"
    ),
    "select_scatter": (
        "def select_scatter(x, src, dim, index):\n"
        "    x = np.array(x, float)\n"
        "    np.moveaxis(x, dim, 0)[index] = src\n"
        "    return x"
    ),
    "slice_scatter": (
        "def slice_scatter(x, src, dim=0, start=None, end=None, step=1):\n"
        "    x = np.array(x, float)\n"
        "    np.moveaxis(x, dim, 0)[start:end:step] = np.moveaxis(src, dim, 0)\n"
        "    return x"
    ),
    "xlogy": "def xlogy(x, y):\n    return np.where(x == 0, 0, x * np.log(np.where(x == 0, 1, y)))",
    "sort": (
        "def sort(x, dim=-1, descending=False, stable=False):\n"
        "    x = np.asarray(x)\n"
        "    if not x.ndim:\n"
        "        return x, np.zeros((), int)\n"
        "    order = np.argsort(-1 * x if descending else x, axis=dim, stable=True)\n"
        "    return np.take_along_axis(x, order, dim), order"
    ),
    "topk": (
        "def topk(x, k, dim=-1, largest=True, sorted=True):\n"
        "    x = np.asarray(x)\n"
        "    if not x.ndim:\n"
        "        return x, np.zeros((), int)\n"
        "    order = np.argsort(-1 * x if largest else x, axis=dim, stable=True)\n"
        "    order = np.take(order, np.arange(k), axis=dim)\n"
        "    return np.take_along_axis(x, order, dim), order"
    ),
    "gather": (
        "def gather(x, dim, index, sparse_grad=False):\n"
        "    if not np.ndim(x):\n"
        "        return np.broadcast_to(x, np.shape(index))\n"
        "    inside = tuple(np.indices(np.shape(index)))\n"
        "    dim %= np.ndim(x)\n"
        "    return np.asarray(x)[(*inside[:dim], index, *inside[dim + 1 :])]"
    ),
    "scatter": (
        "def scatter(x, dim, index, src=None, value=None):\n"
        "    src = value if src is None else src\n"
        "    x = np.array(x, float)\n"
        "    if not x.ndim:\n"
        "        return x + (src - x)\n"
        "    index = np.atleast_1d(index)\n"
        "    inside = list(np.indices(np.shape(index)))\n"
        "    src = np.broadcast_to(src, np.broadcast_shapes(np.shape(src), np.shape(index)))\n"
        "    part = src[tuple(slice(n) for n in np.shape(index))]\n"
        "    inside[dim] = index\n"
        "    x[tuple(inside)] = part\n"
        "    return x"
    ),
    "scatter_add": (
        "def scatter_add(x, dim, index, src):\n"
        "    x = np.array(x, float)\n"
        "    if not x.ndim:\n"
        "        return x + src\n"
        "    index, src = np.atleast_1d(index), np.atleast_1d(src)\n"
        "    inside = list(np.indices(np.shape(index)))\n"
        "    inside[dim] = index\n"
        "    np.add.at(x, tuple(inside), src[tuple(slice(n) for n in np.shape(index))])\n"
        "    return x"
    ),
    "index_put": (
        "def index_put(x, indices, values, accumulate=False):\n"
        "    x = np.array(x, float)\n"
        "    if accumulate:\n"
        "        np.add.at(x, indices, values)\n"
        "    else:\n"
        "        x[indices] = values\n"
        "    return x"
    ),
    "index_add": (
        "def index_add(x, dim, index, source, alpha=1):\n"
        "    x = np.array(x, float)\n"
        "    if not x.ndim:\n"
        "        return x + alpha * np.sum(source)\n"
        "    index, source = np.atleast_1d(index), np.atleast_1d(source)\n"
        "    np.add.at(np.moveaxis(x, dim, 0), index, alpha * np.moveaxis(source, dim, 0))\n"
        "    return x"
    ),
    "index_fill": (
        "def index_fill(x, dim, index, value=1):\n"
        "    x = np.array(x, float)\n"
        "    if not x.ndim:\n"
        "        return np.full_like(x, value)\n"
        "    np.moveaxis(x, dim, 0)[index] = value\n"
        "    return x"
    ),
    "diagonal": (
        "def diagonal(x, offset=0, dim1=0, dim2=1):\n    return np.diagonal(x, offset, dim1, dim2)"
    ),
    "diag_embed": (
        "def diag_embed(x, offset=0, dim1=-2, dim2=-1):\n"
        "    x = np.asarray(x)\n"
        "    n = x.shape[-1] + abs(offset)\n"
        "    made = np.zeros((*x.shape[:-1], n, n))\n"
        "    rows = np.arange(x.shape[-1])\n"
        "    made[..., rows + max(-offset, 0), rows + max(offset, 0)] = x\n"
        "    return np.moveaxis(made, (-2, -1), (dim1, dim2))"
    ),
    "diagonal_scatter": (
        "def diagonal_scatter(x, src, offset=0, dim1=0, dim2=1):\n"
        "    x = np.array(x, float)\n"
        "    view = np.moveaxis(x, (dim1, dim2), (-2, -1))\n"
        "    rows = np.arange(np.shape(src)[-1])\n"
        "    view[..., rows + max(-offset, 0), rows + max(offset, 0)] = src\n"
        "    return x"
    ),
    "var_mean": (
        "def var_mean(x, dim=None, correction=1, keepdim=False):\n"
        "    found = np.var(x, axis=dim, ddof=correction, keepdims=keepdim)\n"
        "    return found, np.mean(x, axis=dim, keepdims=keepdim)"
    ),
    "std_mean": (
        "def std_mean(x, dim=None, correction=1, keepdim=False):\n"
        "    found = np.std(x, axis=dim, ddof=correction, keepdims=keepdim)\n"
        "    return found, np.mean(x, axis=dim, keepdims=keepdim)"
    ),
    "logcumsumexp": (
        "def logcumsumexp(x, dim):\n"
        "    return np.logaddexp.accumulate(np.asarray(x), axis=dim) if np.ndim(x) else x"
    ),
    "cummax": (
        "def cummax(x, dim):\n"
        "    x = np.asarray(x)\n"
        "    if not x.ndim:\n"
        "        return x, np.zeros((), int)\n"
        "    found = np.maximum.accumulate(x, axis=dim)\n"
        "    shape = [-1 if i == dim % x.ndim else 1 for i in range(x.ndim)]\n"
        "    places = np.where(x == found, np.arange(x.shape[dim]).reshape(shape), 0)\n"
        "    return found, np.maximum.accumulate(places, axis=dim)"
    ),
    "cummin": (
        "def cummin(x, dim):\n"
        "    x = np.asarray(x)\n"
        "    if not x.ndim:\n"
        "        return x, np.zeros((), int)\n"
        "    found = np.minimum.accumulate(x, axis=dim)\n"
        "    shape = [-1 if i == dim % x.ndim else 1 for i in range(x.ndim)]\n"
        "    places = np.where(x == found, np.arange(x.shape[dim]).reshape(shape), 0)\n"
        "    return found, np.maximum.accumulate(places, axis=dim)"
    ),
    "roll": ("def roll(x, shifts, dims=None):\n    return np.roll(x, shifts, dims)"),
    "rot90": ("def rot90(x, k=1, dims=(0, 1)):\n    return np.rot90(x, k, dims)"),
    "nansum": (
        "def nansum(x, dim=None, keepdim=False):\n"
        "    return np.nansum(x, axis=dim, keepdims=keepdim)"
    ),
    "linalg.slogdet": ("def slogdet(x):\n    return tuple(np.linalg.slogdet(x))"),
    "logdet": (
        "def logdet(x):\n"
        "    sign, found = np.linalg.slogdet(x)\n"
        "    return np.where(sign < 0, np.nan, found)"
    ),
    "linalg.eigh": ("def eigh(x, UPLO='L'):\n    return tuple(np.linalg.eigh(x, UPLO))"),
    "linalg.qr": ("def qr(x, mode='reduced'):\n    return tuple(np.linalg.qr(x, mode))"),
    "linalg.svd": (
        "def svd(x, full_matrices=True):\n    return tuple(np.linalg.svd(x, full_matrices))"
    ),
    "linalg.solve": (
        "def solve(a, b, left=True):\n"
        "    if not left:\n"
        "        return np.swapaxes(solve(np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2)), -1, -2)\n"
        "    if np.ndim(b) == 1 or np.shape(b) == np.shape(a)[:-1]:\n"
        "        return np.linalg.solve(a, np.asarray(b)[..., None])[..., 0]\n"
        "    return np.linalg.solve(a, b)"
    ),
    "linalg.solve_triangular": (
        "def solve_triangular(a, b, upper=False, left=True, unitriangular=False):\n"
        "    a = np.triu(a) if upper else np.tril(a)\n"
        "    if unitriangular:\n"
        "        a = a - a * np.eye(np.shape(a)[-1]) + np.eye(np.shape(a)[-1])\n"
        "    return np.linalg.solve(a, b) if left else np.swapaxes(\n"
        "        np.linalg.solve(np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2)), -1, -2\n"
        "    )"
    ),
    "linalg.vector_norm": (
        "def vector_norm(x, ord=2, dim=None, keepdim=False):\n"
        "    x = np.abs(x)\n"
        "    if ord == np.inf:\n"
        "        return np.max(x, axis=dim, keepdims=keepdim)\n"
        "    if ord == -np.inf:\n"
        "        return np.min(x, axis=dim, keepdims=keepdim)\n"
        "    if ord == 0:\n"
        "        return 1.0 * np.sum(x != 0, axis=dim, keepdims=keepdim)\n"
        "    return np.sum(x**ord, axis=dim, keepdims=keepdim) ** (1 / ord)"
    ),
    "linalg.cross": ("def cross(a, b, dim=-1):\n    return np.cross(a, b, axis=dim)"),
    "median": (
        "def median(x, dim=None, keepdim=False):\n"
        "    if dim is not None and not np.ndim(x):\n"
        "        return x, np.zeros((), int)\n"
        "    if dim is None:\n"
        "        return np.sort(np.ravel(x))[(np.size(x) - 1) // 2]\n"
        "    k = (np.shape(x)[dim] - 1) // 2\n"
        "    order = np.take(np.argsort(x, axis=dim, stable=True), [k], axis=dim)\n"
        "    found = np.take_along_axis(np.asarray(x), order, dim)\n"
        "    return (found, order) if keepdim else (np.squeeze(found, dim), np.squeeze(order, dim))"
    ),
    "max_with_index": (
        "def max_with_index(x, dim, keepdim=False):\n"
        "    if not np.ndim(x):\n"
        "        return x, np.zeros((), int)\n"
        "    order = np.expand_dims(np.argmax(x, axis=dim), dim)\n"
        "    found = np.take_along_axis(np.asarray(x), order, dim)\n"
        "    return (found, order) if keepdim else (np.squeeze(found, dim), np.squeeze(order, dim))"
    ),
    "min_with_index": (
        "def min_with_index(x, dim, keepdim=False):\n"
        "    if not np.ndim(x):\n"
        "        return x, np.zeros((), int)\n"
        "    order = np.expand_dims(np.argmin(x, axis=dim), dim)\n"
        "    found = np.take_along_axis(np.asarray(x), order, dim)\n"
        "    return (found, order) if keepdim else (np.squeeze(found, dim), np.squeeze(order, dim))"
    ),
    "matrix_exp": (
        "def matrix_exp(x):\n"
        "    squarings = max(0, int(np.ceil(np.log2(max(np.abs(x).sum(-1).max(initial=0), 1e-300)))) + 3)\n"
        "    x = x / 2**squarings\n"
        "    term = found = np.broadcast_to(np.eye(x.shape[-1]), x.shape)\n"
        "    for k in range(1, 14):\n"
        "        term = term @ x / k\n"
        "        found = found + term\n"
        "    for _ in range(squarings):\n"
        "        found = found @ found\n"
        "    return found"
    ),
    "nn.functional.leaky_relu": (
        "def leaky_relu(x, negative_slope=0.01):\n    return np.where(x > 0, x, negative_slope * x)"
    ),
    "nn.functional.hardtanh": (
        "def hardtanh(x, min_val=-1, max_val=1):\n    return np.clip(x, min_val, max_val)"
    ),
    "nn.functional.elu": (
        "def elu(x, alpha=1.0):\n    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))"
    ),
    "nn.functional.celu": (
        "def celu(x, alpha=1.0):\n"
        "    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) / alpha))"
    ),
    "nn.functional.gelu": (
        "def gelu(x, approximate='none'):\n"
        "    if approximate == 'tanh':\n"
        "        return x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2\n"
        "    return x * np.vectorize(math.erfc, otypes=[float])(-x / math.sqrt(2)) / 2"
    ),
    "nn.functional.mish": ("def mish(x):\n    return x * np.tanh(np.logaddexp(x, 0))"),
    "nn.functional.hardswish": ("def hardswish(x):\n    return x * np.clip(x + 3, 0, 6) / 6"),
    "nn.functional.hardsigmoid": ("def hardsigmoid(x):\n    return np.clip(x + 3, 0, 6) / 6"),
    "nn.functional.threshold": (
        "def threshold(x, threshold, value):\n    return np.where(x > threshold, x, value)"
    ),
    "nn.functional.softshrink": (
        "def softshrink(x, lambd=0.5):\n    return np.sign(x) * np.maximum(np.abs(x) - lambd, 0)"
    ),
    "hardshrink": ("def hardshrink(x, lambd=0.5):\n    return np.where(np.abs(x) > lambd, x, 0)"),
    "nn.functional.glu": (
        "def glu(x, dim=-1):\n"
        "    a, b = np.split(x, 2, dim)\n"
        "    e = np.exp(-np.abs(b))  # so that nothing overflows\n"
        "    return a * np.where(b >= 0, 1, e) / (1 + e)"
    ),
    "ldexp": "def ldexp(x, y):\n    return x * 2.0**y",
    "index_select": (
        "def index_select(x, dim, index):\n"
        "    return np.take(x, np.atleast_1d(index), dim) if np.ndim(x) else np.asarray(x)"
    ),
    "take": "def take(x, index):\n    return np.take(x, index)",
    "kthvalue": (
        "def kthvalue(x, k, dim=-1, keepdim=False):\n"
        "    if not np.ndim(x):\n"
        "        return x, 0\n"
        "    places = np.take(np.argsort(x, dim, stable=True), np.array([k - 1]), dim)\n"
        "    found = np.take_along_axis(x, places, dim), places\n"
        "    return found if keepdim else tuple(np.squeeze(f, dim) for f in found)"
    ),
    "renorm": (
        "def renorm(x, p, dim, maxnorm):\n"
        "    dims = tuple(d for d in range(x.ndim) if d != dim % x.ndim)\n"
        "    norm = np.sum(np.abs(x) ** p, axis=dims, keepdims=True) ** (1 / p)\n"
        "    return x * np.where(norm > maxnorm, maxnorm / (norm + 1e-7), 1)"
    ),
    "tile": ("def tile(x, dims):\n    return np.tile(x, dims)"),
    "linalg.pinv": (
        "def pinv(x, rtol=None, hermitian=False):\n    return np.linalg.pinv(x, rtol, hermitian)"
    ),
    "cholesky": (
        "def cholesky(x, upper=False):\n"
        "    return np.linalg.cholesky(np.swapaxes(x, -1, -2)).swapaxes(-1, -2) if upper else (\n"
        "        np.linalg.cholesky(x)\n"
        "    )"
    ),
    "cholesky_inverse": (
        "def cholesky_inverse(x, upper=False):\n"
        "    x = np.swapaxes(np.triu(x), -1, -2) if upper else np.tril(x)\n"
        "    return np.linalg.inv(x @ np.swapaxes(x, -1, -2))"
    ),
    "cholesky_solve": (
        "def cholesky_solve(b, x, upper=False):\n"
        "    x = np.swapaxes(np.triu(x), -1, -2) if upper else np.tril(x)\n"
        "    return np.linalg.solve(np.swapaxes(x, -1, -2), np.linalg.solve(x, b))"
    ),
    "dist": "def dist(x, y, p=2):\n    return np.linalg.norm(np.ravel(np.subtract(x, y)), p)",
    "addr": ("def addr(x, a, b, beta=1, alpha=1):\n    return beta * x + alpha * np.outer(a, b)"),
    "addbmm": (
        "def addbmm(x, a, b, beta=1, alpha=1):\n    return beta * x + alpha * np.sum(a @ b, 0)"
    ),
    "narrow_copy": (
        "def narrow_copy(x, dim, start, length):\n"
        "    return np.take(x, np.arange(start, start + length), dim)"
    ),
    "put": (
        "def put(x, index, source, accumulate=False):\n"
        "    flat = np.array(np.ravel(x), float)\n"
        "    if accumulate:\n"
        "        np.add.at(flat, index, np.reshape(source, np.shape(index)))\n"
        "    else:\n"
        "        flat[index] = np.reshape(source, np.shape(index))\n"
        "    return flat.reshape(np.shape(x))"
    ),
    "index_copy": (
        "def index_copy(x, dim, index, source):\n"
        "    if not np.ndim(x):\n"
        "        return np.reshape(source, ())\n"
        "    x, index, source = np.array(x, float), np.atleast_1d(index), np.atleast_1d(source)\n"
        "    np.moveaxis(x, dim, 0)[index] = np.moveaxis(source, dim, 0)\n"
        "    return x"
    ),
    "index_reduce": (
        "def index_reduce(x, dim, index, source, reduce, include_self=True):\n"
        "    if not np.ndim(x):\n"
        "        return index_reduce(np.atleast_1d(x), 0, index, source, reduce, include_self)[0]\n"
        "    x, index, source = np.array(x, float), np.atleast_1d(index), np.atleast_1d(source)\n"
        "    rows = np.moveaxis(x, dim, 0)\n"
        "    count = np.zeros(len(rows))\n"
        "    np.add.at(count, index, 1)\n"
        "    if not include_self:\n"
        "        first = {'prod': 1, 'amax': -np.inf, 'amin': np.inf, 'mean': 0}[reduce]\n"
        "        rows[index] = first\n"
        "    to = {'prod': np.multiply, 'amax': np.maximum, 'amin': np.minimum, 'mean': np.add}\n"
        "    to[reduce].at(rows, index, np.moveaxis(source, dim, 0))\n"
        "    if reduce == 'mean':\n"
        "        count = np.maximum(count + include_self, 1)\n"
        "        rows /= count.reshape(-1, *(1,) * (rows.ndim - 1))\n"
        "    return x"
    ),
    "scatter_reduce": (
        "def scatter_reduce(x, dim, index, src, reduce, include_self=True):\n"
        "    if not np.ndim(x):\n"
        "        return scatter_reduce(np.atleast_1d(x), 0, index, src, reduce, include_self)[0]\n"
        "    x, index, src = np.array(x, float), np.atleast_1d(index), np.atleast_1d(src)\n"
        "    inside = list(np.indices(np.shape(index)))\n"
        "    inside[dim] = index\n"
        "    inside = tuple(inside)\n"
        "    src = src[tuple(slice(n) for n in np.shape(index))]\n"
        "    count = np.zeros_like(x)\n"
        "    np.add.at(count, inside, 1)\n"
        "    if not include_self:\n"
        "        x[inside] = {'prod': 1, 'amax': -np.inf, 'amin': np.inf}.get(reduce, 0)\n"
        "    to = {'prod': np.multiply, 'amax': np.maximum, 'amin': np.minimum}.get(reduce, np.add)\n"
        "    to.at(x, inside, src)\n"
        "    return x / np.maximum(count + include_self, 1) if reduce == 'mean' else x"
    ),
    "constant_pad_nd": (
        "def constant_pad_nd(x, pad, value=0):\n"
        "    edges = [(0, 0)] * (np.ndim(x) - len(pad) // 2)\n"
        "    edges += list(zip(pad[-2::-2], pad[::-2]))\n"
        "    x = np.asarray(x)[tuple(\n"
        "        slice(max(-a, 0), n - max(-b, 0)) for n, (a, b) in zip(np.shape(x), edges)\n"
        "    )]\n"
        "    return np.pad(x, [(max(a, 0), max(b, 0)) for a, b in edges], constant_values=value)"
    ),
    "as_strided": (
        "def as_strided(x, size, stride, storage_offset=0):\n"
        "    places = sum(i * s for i, s in zip(np.indices(size), stride))\n"
        "    return np.ravel(x)[storage_offset + places]"
    ),
    "as_strided_scatter": (
        "def as_strided_scatter(x, src, size, stride, storage_offset=0):\n"
        "    flat = np.array(np.ravel(x), float)\n"
        "    flat[storage_offset + sum(i * s for i, s in zip(np.indices(size), stride))] = src\n"
        "    return flat.reshape(np.shape(x))"
    ),
    "pixel_shuffle": (
        "def pixel_shuffle(x, upscale_factor):\n"
        "    *lead, c, h, w = np.shape(x)\n"
        "    r = upscale_factor\n"
        "    x = np.reshape(x, (int(np.prod(lead)), c // r**2, r, r, h, w)).transpose(0, 1, 4, 2, 5, 3)\n"
        "    return x.reshape(*lead, c // r**2, h * r, w * r)"
    ),
    "pixel_unshuffle": (
        "def pixel_unshuffle(x, downscale_factor):\n"
        "    *lead, c, h, w = np.shape(x)\n"
        "    r = downscale_factor\n"
        "    x = np.reshape(x, (int(np.prod(lead)), c, h // r, r, w // r, r)).transpose(0, 1, 3, 5, 2, 4)\n"
        "    return x.reshape(*lead, c * r**2, h // r, w // r)"
    ),
    "channel_shuffle": (
        "def channel_shuffle(x, groups):\n"
        "    n, c, *sizes = np.shape(x)\n"
        "    x = np.swapaxes(np.reshape(x, (n, groups, c // groups, *sizes)), 1, 2)\n"
        "    return x.reshape(n, c, *sizes)"
    ),
    "unfold": (
        "def unfold(x, dimension, size, step):\n"
        "    dimension %= np.ndim(x)\n"
        "    starts = np.arange(0, np.shape(x)[dimension] - size + 1, step)\n"
        "    windows = np.take(x, starts[:, None] + np.arange(size), axis=dimension)\n"
        "    return np.moveaxis(windows, dimension + 1, -1)"
    ),
    "masked_select": (
        "def masked_select(x, mask):\n"
        "    x, mask = np.broadcast_arrays(x, mask)\n"
        "    return x[mask]"
    ),
    "masked_scatter": (
        "def masked_scatter(x, mask, source):\n"
        "    x, mask = np.broadcast_arrays(x, mask)\n"
        "    x = np.array(x, float)\n"
        "    x[mask] = np.ravel(source)[: np.sum(mask)]\n"
        "    return x"
    ),
}
_WINDOWS = (  # of {d} dimensions, the last ones, `steps` apart; what is in a window comes last
    "    windows = np.lib.stride_tricks.sliding_window_view(x, {span}, tuple(range(-{d}, 0)))\n"
    "    windows = windows[(..., *(slice(None, None, n) for n in ({steps})))]\n"
)
_MIXED = (  # channels by weights, group by group
    "    parts = [\n"
    "        np.tensordot(a, b, (({at}, *range(-{d}, 0)), {within}))\n"
    "        for a, b in zip(np.split(windows, groups, {at}), np.split(w, groups))\n"
    "    ]\n"
    "    found = np.moveaxis(np.concatenate(parts, -1), -1, {channel})\n"
)
_BIASED = "    return found if b is None else found + np.reshape(b, (-1, *(1,) * {d}))"
for _d in (1, 2, 3):
    _in = {"d": _d, "at": -1 - 2 * _d, "channel": -1 - _d}
    HELPERS[f"conv{_d}d"] = (
        f"def conv{_d}d(x, w, b=None, stride=1, padding=0, dilation=1, groups=1):\n"
        f"    stride, padding, dilation = (np.broadcast_to(n, {_d}) for n in (stride, padding, dilation))\n"
        f"    x = np.pad(x, [(0, 0)] * (np.ndim(x) - {_d}) + [(n, n) for n in padding])\n"
        f"    span = dilation * (np.array(np.shape(w)[-{_d}:]) - 1) + 1\n"
        + _WINDOWS.format(**_in, span="span", steps="*stride, *dilation")
        + _MIXED.format(**_in, within=tuple(range(1, _d + 2)))
        + _BIASED.format(**_in)
    )
    HELPERS[f"conv_transpose{_d}d"] = (
        f"def conv_transpose{_d}d(\n"
        "    x, w, b=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1\n"
        "):\n"
        "    stride, padding, further, dilation = (\n"
        f"        np.broadcast_to(n, {_d}) for n in (stride, padding, output_padding, dilation)\n"
        "    )\n"
        f"    sizes = (np.array(np.shape(x)[-{_d}:]) - 1) * stride + 1\n"
        f"    wide = np.zeros((*np.shape(x)[:-{_d}], *sizes))  # with zeros in between\n"
        "    wide[(..., *(slice(None, None, n) for n in stride))] = x\n"
        f"    edge = dilation * (np.array(np.shape(w)[-{_d}:]) - 1)\n"
        "    edges = [(n, n + m) for n, m in zip(edge, further)]\n"
        f"    x = np.pad(wide, [(0, 0)] * (np.ndim(x) - {_d}) + edges)\n"
        + _WINDOWS.format(**_in, span="edge + 1", steps=f"*(1,) * {_d}, *dilation")
        + f"    w = np.flip(w, tuple(range(-{_d}, 0)))\n"
        + _MIXED.format(**_in, within=(0, *range(2, _d + 2)))
        + f"    cut = (slice(p, n - p) for n, p in zip(np.shape(found)[-{_d}:], padding))\n"
        + "    found = found[(..., *cut)]\n"
        + _BIASED.format(**_in)
    )
    HELPERS[f"nn.functional.avg_pool{_d}d"] = (
        f"def avg_pool{_d}d(x, kernel_size, stride=None, padding=0):\n"
        f"    size, padding = (np.broadcast_to(n, {_d}) for n in (kernel_size, padding))\n"
        f"    stride = np.broadcast_to(size if stride in (None, ()) else stride, {_d})\n"
        f"    x = np.pad(x, [(0, 0)] * (np.ndim(x) - {_d}) + [(n, n) for n in padding])\n"
        + _WINDOWS.format(**_in, span="size", steps=f"*stride, *(1,) * {_d}")
        + f"    return np.mean(windows, tuple(range(-{_d}, 0)))"
    )
# The same for scalars, with the module math alone.
SCALAR = {
    "sigmoid": (
        "def sigmoid(x):\n"
        "    e = math.exp(-abs(x))  # so that nothing overflows\n"
        "    return (1 if x >= 0 else e) / (1 + e)"
    ),
    "sech2": (
        "def sech2(x):\n"
        "    e = math.exp(-2 * abs(x))  # 1 - tanh(x)**2 with all its digits\n"
        "    return 4 * e / (1 + e) ** 2"
    ),
    "silu": (
        "def silu(x):\n"
        "    e = math.exp(-abs(x))  # so that nothing overflows\n"
        "    return x * (1 if x >= 0 else e) / (1 + e)"
    ),
    "softplus": "def softplus(x):\n    return max(x, 0) + math.log1p(math.exp(-abs(x)))",
    "nn.functional.logsigmoid": (
        "def logsigmoid(x):\n    return min(x, 0) - math.log1p(math.exp(-abs(x)))"
    ),
    "logaddexp": ("def logaddexp(x, y):\n    return max(x, y) + math.log1p(math.exp(-abs(x - y)))"),
    "rsqrt": "def rsqrt(x):\n    return 1 / math.sqrt(x)",
    "square": "def square(x):\n    return x * x",
    "sinc": "def sinc(x):\n    return math.sin(math.pi * x) / (math.pi * x) if x else 1.0",
    "frac": "def frac(x):\n    return x - math.trunc(x)",
}
# Functions that NumPy lacks and SciPy has, in scipy.special, by its own names.
SPECIAL = {
    **{w: w for w in "digamma erfinv polygamma i0 logit igamma igammac".split()},
    **{f"special.{w}": w for w in "i0e i1 i1e erfcx log_ndtr ndtri ndtr xlog1py zeta entr".split()},
    **{"igamma": "gammainc", "igammac": "gammaincc", "special.gammaln": "gammaln"},
    **{f"special.bessel_{w}": w for w in "j0 j1 y0 y1".split()},
    **{f"special.modified_bessel_{w}": w for w in "i0 i1 k0 k1".split()},
}
__all__ = ["HELPERS", "SCALAR", "SPECIAL"]

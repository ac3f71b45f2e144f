"""Functions of the language that NumPy, math or C lack, as texts that a printed program starts with.

What is elementwise and no well-known function of its own is `written_out` instead.
"""

from __future__ import annotations

import math
import re


def by_name(texts: str) -> dict[str, str]:
    """Functions by their full name, of a text of one after the other: `def nn.functional.mish(x):`."""
    found = {}
    for text in re.split(r"\n(?=def |\w+ = )", texts.strip()):
        _, full, module, _ = re.split(r"^(?:def )?(([\w.]*\.)?\w+)", text, maxsplit=1)
        found[full] = text.replace(module or "", "", 1)
    return found


# Each text is printed above a program that calls it, so it stands alone: np and math are all that it
# reads, or another of these. Two things are not obvious. A 0-d array is met first in many of them,
# because torch takes dim 0 of a number and NumPy does not. And what is written into is copied as at least
# float32, since a write of 0.5 into integers would be cut off.
HELPERS = by_name("""
def layer_norm(x, shape, eps=1e-05):
    dims = tuple(range(-len(shape), 0))
    mean = np.mean(x, axis=dims, keepdims=True)
    return (x - mean) / np.sqrt(np.var(x, axis=dims, keepdims=True) + eps)
erf = np.vectorize(math.erf, otypes=[float])
erfc = np.vectorize(math.erfc, otypes=[float])
lgamma = np.vectorize(math.lgamma, otypes=[float])
def mvlgamma(x, p):  # below (p - 1)/2 too, which SciPy's refuses
    terms = sum(special.gammaln(x - k / 2) for k in range(p))
    return terms + p * (p - 1) / 4 * np.log(np.pi)
def softmax(x, dim):
    e = np.exp(x - np.max(x, axis=dim, keepdims=True, initial=-np.inf))
    return e / np.sum(e, axis=dim, keepdims=True)
def logsumexp(x, dim, keepdim=False):
    x = 1.0 * x
    top = np.max(x, axis=dim, keepdims=True, initial=-np.inf)
    found = top + np.log(np.sum(np.exp(x - top), axis=dim, keepdims=True))
    return found if keepdim else np.squeeze(found, dim)
def log_softmax(x, dim):
    x = x - np.max(x, axis=dim, keepdims=True, initial=-np.inf)
    return x - np.log(np.sum(np.exp(x), axis=dim, keepdims=True))
def softplus(x, beta=1, threshold=20):
    return np.where(beta * x > threshold, x, np.logaddexp(beta * x, 0) / beta)
def nn.functional.logsigmoid(x):
    return -np.logaddexp(-x, 0)
def one_hot(x, n):
    return 1.0 * (np.expand_dims(x, -1) == np.arange(n))
def nn.functional.nll_loss(x, y, weight=None, ignore_index=-100, reduction='mean'):
    axis = min(np.ndim(x) - 1, 1)
    kept = np.not_equal(y, ignore_index)
    y = np.where(kept, y, 0)
    w = kept * (np.ones((), x.dtype) if weight is None else np.asarray(weight)[y])
    of_y = np.take_along_axis(x, np.expand_dims(y, axis), axis)
    found = -w * np.squeeze(of_y, axis)
    total = np.sum(found)
    return {'none': found, 'mean': total / np.sum(w), 'sum': total}[reduction]
def nn.functional.binary_cross_entropy(x, y, weight=1, reduction='mean'):
    with np.errstate(divide='ignore'):
        found = -y * np.maximum(np.log(x), -100)
        found = weight * (found - (1 - y) * np.maximum(np.log1p(-x), -100))
    return {'none': found, 'mean': np.mean(found), 'sum': np.sum(found)}[reduction]
def select_scatter(x, src, dim, index):
    rows = np.moveaxis(np.array(x, np.result_type(x, np.float32)), dim, 0)
    rows[index] = src
    return np.moveaxis(rows, 0, dim)
def slice_scatter(x, src, dim=0, start=None, end=None, step=1):
    rows = np.moveaxis(np.array(x, np.result_type(x, np.float32)), dim, 0)
    rows[start:end:step] = np.moveaxis(src, dim, 0)
    return np.moveaxis(rows, 0, dim)
def xlogy(x, y):
    return np.where(x == 0, 0, x * np.log(np.where(x == 0, 1, y)))
def sort(x, dim=-1, descending=False, stable=False):
    x = np.asarray(x)
    if not x.ndim:
        return x, np.zeros((), int)
    order = np.argsort(-1 * x if descending else x, axis=dim, stable=True)
    return np.take_along_axis(x, order, dim), order
def topk(x, k, dim=-1, largest=True, sorted=True):
    x = np.asarray(x)
    if not x.ndim:
        return x, np.zeros((), int)
    order = np.argsort(-1 * x if largest else x, axis=dim, stable=True)
    order = np.take(order, np.arange(k), axis=dim)
    return np.take_along_axis(x, order, dim), order
def gather(x, dim, index, sparse_grad=False):
    if not np.ndim(x):
        return np.broadcast_to(x, np.shape(index))
    inside = tuple(np.indices(np.shape(index)))
    dim %= np.ndim(x)
    return np.asarray(x)[(*inside[:dim], index, *inside[dim + 1 :])]
def scatter(x, dim, index, src=None, value=None):
    src = value if src is None else src
    x = np.array(x, np.result_type(x, np.float32))
    if not x.ndim:
        return x + (src - x)
    index = np.atleast_1d(index)
    inside = list(np.indices(np.shape(index)))
    src = np.broadcast_to(src, np.broadcast_shapes(np.shape(src), np.shape(index)))
    part = src[tuple(slice(n) for n in np.shape(index))]
    inside[dim] = index
    x[tuple(inside)] = part
    return x
def scatter_add(x, dim, index, src):
    x = np.array(x, np.result_type(x, np.float32))
    if not x.ndim:
        return x + src
    index, src = np.atleast_1d(index), np.atleast_1d(src)
    inside = list(np.indices(np.shape(index)))
    inside[dim] = index
    np.add.at(x, tuple(inside), src[tuple(slice(n) for n in np.shape(index))])
    return x
def index_put(x, indices, values, accumulate=False):
    x = np.array(x, np.result_type(x, np.float32))
    if accumulate:
        np.add.at(x, indices, values)
    else:
        x[indices] = values
    return x
def index_add(x, dim, index, source, alpha=1):
    x = np.array(x, np.result_type(x, np.float32))
    if not x.ndim:
        return x + alpha * np.sum(source)
    index, source = np.atleast_1d(index), np.atleast_1d(source)
    rows = np.moveaxis(x, dim, 0)
    np.add.at(rows, index, alpha * np.moveaxis(source, dim, 0))
    return np.moveaxis(rows, 0, dim)
def index_fill(x, dim, index, value=1):
    x = np.array(x, np.result_type(x, np.float32))
    if not x.ndim:
        return np.full_like(x, value)
    rows = np.moveaxis(x, dim, 0)
    rows[index] = value
    return np.moveaxis(rows, 0, dim)
def diag_embed(x, offset=0, dim1=-2, dim2=-1):
    x = np.asarray(x)
    n = x.shape[-1] + abs(offset)
    made = np.zeros((*x.shape[:-1], n, n), x.dtype)
    rows = np.arange(x.shape[-1])
    made[..., rows + max(-offset, 0), rows + max(offset, 0)] = x
    return np.moveaxis(made, (-2, -1), (dim1, dim2))
def diagonal_scatter(x, src, offset=0, dim1=0, dim2=1):
    view = np.moveaxis(np.array(x, np.result_type(x, np.float32)), (dim1, dim2), (-2, -1))
    rows = np.arange(np.shape(src)[-1])
    view[..., rows + max(-offset, 0), rows + max(offset, 0)] = src
    return np.moveaxis(view, (-2, -1), (dim1, dim2))
def var_mean(x, dim=None, correction=1, keepdim=False):
    found = np.var(x, axis=dim, ddof=correction, keepdims=keepdim)
    return found, np.mean(x, axis=dim, keepdims=keepdim)
def logcumsumexp(x, dim):
    return np.logaddexp.accumulate(np.asarray(x), axis=dim) if np.ndim(x) else x
def cummax(x, dim):
    x = np.asarray(x)
    if not x.ndim:
        return x, np.zeros((), int)
    found = np.maximum.accumulate(x, axis=dim)
    shape = [-1 if i == dim % x.ndim else 1 for i in range(x.ndim)]
    places = np.where(x == found, np.arange(x.shape[dim]).reshape(shape), 0)
    return found, np.maximum.accumulate(places, axis=dim)
def logdet(x):
    sign, found = np.linalg.slogdet(x)
    return np.where(sign < 0, np.nan, found)
def rot90(x, k=1, dims=(0, 1)):
    return np.rot90(x, k, dims)
def linalg.solve(a, b, left=True):
    if not left:
        return np.swapaxes(solve(np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2)), -1, -2)
    if np.ndim(b) == 1 or np.shape(b) == np.shape(a)[:-1]:
        return np.linalg.solve(a, np.asarray(b)[..., None])[..., 0]
    return np.linalg.solve(a, b)
def linalg.solve_triangular(a, b, upper=False, left=True, unitriangular=False):
    a = np.triu(a) if upper else np.tril(a)
    if unitriangular:
        one = np.eye(np.shape(a)[-1], dtype=np.asarray(a).dtype)
        a = a - a * one + one
    return np.linalg.solve(a, b) if left else np.swapaxes(
        np.linalg.solve(np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2)), -1, -2
    )
def median(x, dim=None, keepdim=False):
    if dim is not None and not np.ndim(x):
        return x, np.zeros((), int)
    if dim is None:
        return np.sort(np.ravel(x))[(np.size(x) - 1) // 2]
    k = (np.shape(x)[dim] - 1) // 2
    order = np.take(np.argsort(x, axis=dim, stable=True), [k], axis=dim)
    found = np.take_along_axis(np.asarray(x), order, dim)
    return (found, order) if keepdim else (np.squeeze(found, dim), np.squeeze(order, dim))
def max_with_index(x, dim, keepdim=False):
    if not np.ndim(x):
        return x, np.zeros((), int)
    order = np.expand_dims(np.argmax(x, axis=dim), dim)
    found = np.take_along_axis(np.asarray(x), order, dim)
    return (found, order) if keepdim else (np.squeeze(found, dim), np.squeeze(order, dim))
def matrix_exp(x):
    squarings = max(0, int(np.ceil(np.log2(max(np.abs(x).sum(-1).max(initial=0), 1e-300)))) + 3)
    x = x / 2**squarings
    term = found = np.broadcast_to(np.eye(x.shape[-1], dtype=np.result_type(x, np.float32)), x.shape)
    for k in range(1, 14):
        term = term @ x / k
        found = found + term
    for _ in range(squarings):
        found = found @ found
    return found
def nn.functional.glu(x, dim=-1):
    a, b = np.split(x, 2, dim)
    e = np.exp(-np.abs(b))  # so that nothing overflows
    return a * np.where(b >= 0, 1, e) / (1 + e)
def index_select(x, dim, index):
    return np.take(x, np.atleast_1d(index), dim) if np.ndim(x) else np.asarray(x)
def kthvalue(x, k, dim=-1, keepdim=False):
    if not np.ndim(x):
        return x, 0
    places = np.take(np.argsort(x, dim, stable=True), np.array([k - 1]), dim)
    found = np.take_along_axis(x, places, dim), places
    return found if keepdim else tuple(np.squeeze(f, dim) for f in found)
def linalg.pinv(x, rtol=None, hermitian=False):
    return np.linalg.pinv(x, rtol, hermitian)
def cholesky(x, upper=False):
    return np.linalg.cholesky(np.swapaxes(x, -1, -2)).swapaxes(-1, -2) if upper else (
        np.linalg.cholesky(x)
    )
def cholesky_inverse(x, upper=False):
    x = np.swapaxes(np.triu(x), -1, -2) if upper else np.tril(x)
    return np.linalg.inv(x @ np.swapaxes(x, -1, -2))
def cholesky_solve(b, x, upper=False):
    x = np.swapaxes(np.triu(x), -1, -2) if upper else np.tril(x)
    return np.linalg.solve(np.swapaxes(x, -1, -2), np.linalg.solve(x, b))
def put(x, index, source, accumulate=False):
    flat = np.array(np.ravel(x), float)
    if accumulate:
        np.add.at(flat, index, np.reshape(source, np.shape(index)))
    else:
        flat[index] = np.reshape(source, np.shape(index))
    return flat.reshape(np.shape(x))
def index_copy(x, dim, index, source):
    if not np.ndim(x):
        return np.reshape(source, ())
    x, index, source = np.array(x, np.result_type(x, np.float32)), np.atleast_1d(index), np.atleast_1d(source)
    rows = np.moveaxis(x, dim, 0)
    rows[index] = np.moveaxis(source, dim, 0)
    return np.moveaxis(rows, 0, dim)
def index_reduce(x, dim, index, source, reduce, include_self=True):
    if not np.ndim(x):
        return index_reduce(np.atleast_1d(x), 0, index, source, reduce, include_self)[0]
    x, index, source = np.array(x, np.result_type(x, np.float32)), np.atleast_1d(index), np.atleast_1d(source)
    rows = np.moveaxis(x, dim, 0)
    count = np.zeros(len(rows))
    np.add.at(count, index, 1)
    if not include_self:
        first = {'prod': 1, 'amax': -np.inf, 'amin': np.inf, 'mean': 0}[reduce]
        rows[index] = first
    to = {'prod': np.multiply, 'amax': np.maximum, 'amin': np.minimum, 'mean': np.add}
    to[reduce].at(rows, index, np.moveaxis(source, dim, 0))
    if reduce == 'mean':
        count = np.maximum(count + include_self, 1)
        rows /= count.reshape(-1, *(1,) * (rows.ndim - 1))
    return x
def scatter_reduce(x, dim, index, src, reduce, include_self=True):
    if not np.ndim(x):
        return scatter_reduce(np.atleast_1d(x), 0, index, src, reduce, include_self)[0]
    x, index, src = np.array(x, np.result_type(x, np.float32)), np.atleast_1d(index), np.atleast_1d(src)
    inside = list(np.indices(np.shape(index)))
    inside[dim] = index
    inside = tuple(inside)
    src = src[tuple(slice(n) for n in np.shape(index))]
    count = np.zeros_like(x)
    np.add.at(count, inside, 1)
    if not include_self:
        x[inside] = {'prod': 1, 'amax': -np.inf, 'amin': np.inf}.get(reduce, 0)
    to = {'prod': np.multiply, 'amax': np.maximum, 'amin': np.minimum}.get(reduce, np.add)
    to.at(x, inside, src)
    return x / np.maximum(count + include_self, 1) if reduce == 'mean' else x
def constant_pad_nd(x, pad, value=0):
    edges = [(0, 0)] * (np.ndim(x) - len(pad) // 2)
    edges += list(zip(pad[-2::-2], pad[::-2]))
    x = np.asarray(x)[tuple(
        slice(max(-a, 0), n - max(-b, 0)) for n, (a, b) in zip(np.shape(x), edges)
    )]
    return np.pad(x, [(max(a, 0), max(b, 0)) for a, b in edges], constant_values=value)
def as_strided(x, size, stride, storage_offset=0):
    places = sum(i * s for i, s in zip(np.indices(size), stride))
    return np.ravel(x)[storage_offset + places]
def as_strided_scatter(x, src, size, stride, storage_offset=0):
    flat = np.array(np.ravel(x), float)
    flat[storage_offset + sum(i * s for i, s in zip(np.indices(size), stride))] = src
    return flat.reshape(np.shape(x))
def pixel_shuffle(x, upscale_factor):
    *lead, c, h, w = np.shape(x)
    r = upscale_factor
    x = np.reshape(x, (math.prod(lead), c // r**2, r, r, h, w)).transpose(0, 1, 4, 2, 5, 3)
    return x.reshape(*lead, c // r**2, h * r, w * r)
def pixel_unshuffle(x, downscale_factor):
    *lead, c, h, w = np.shape(x)
    r = downscale_factor
    x = np.reshape(x, (math.prod(lead), c, h // r, r, w // r, r)).transpose(0, 1, 3, 5, 2, 4)
    return x.reshape(*lead, c * r**2, h // r, w // r)
def channel_shuffle(x, groups):
    n, c, *sizes = np.shape(x)
    x = np.swapaxes(np.reshape(x, (n, groups, c // groups, *sizes)), 1, 2)
    return x.reshape(n, c, *sizes)
def unfold(x, dimension, size, step):
    dimension %= np.ndim(x)
    starts = np.arange(0, np.shape(x)[dimension] - size + 1, step)
    windows = np.take(x, starts[:, None] + np.arange(size), axis=dimension)
    return np.moveaxis(windows, dimension + 1, -1)
def masked_select(x, mask):
    x, mask = np.broadcast_arrays(x, mask)
    return x[mask]
def masked_scatter(x, mask, source):
    x, mask = np.broadcast_arrays(x, mask)
    x = np.array(x, np.result_type(x, np.float32))
    x[mask] = np.ravel(source)[: np.sum(mask)]
    return x
""")
# The same where SciPy's functions are imported anyway.
UFUNCS = {
    HELPERS["erf"]: "erf = special.erf",
    HELPERS["erfc"]: "erfc = special.erfc",
    HELPERS["lgamma"]: "lgamma = special.gammaln",
}

for _one, _two, _own, _other in (
    ("cummax", "cummin", "max", "min"),
    ("max_with_index", "min_with_index", "max", "min"),
    ("var_mean", "std_mean", "var", "std"),
):
    HELPERS[_two] = HELPERS[_one].replace(_own, _other, 2)
_WINDOWS = """
def conv<d>d(x, w, b=None, stride=1, padding=0, dilation=1, groups=1):
    stride, padding, dilation = (np.broadcast_to(n, <d>) for n in (stride, padding, dilation))
    x = np.pad(x, [(0, 0)] * (np.ndim(x) - <d>) + [(n, n) for n in padding])
    span = dilation * (np.array(np.shape(w)[-<d>:]) - 1) + 1
    windows = np.lib.stride_tricks.sliding_window_view(x, span, tuple(range(-<d>, 0)))
    windows = windows[(..., *(slice(None, None, n) for n in (*stride, *dilation)))]
    parts = [
        np.tensordot(a, b, ((-<2d+1>, *range(-<d>, 0)), range(1, <d+2>)))
        for a, b in zip(np.split(windows, groups, -<2d+1>), np.split(w, groups))
    ]
    found = np.moveaxis(np.concatenate(parts, -1), -1, -<d+1>)
    return found if b is None else found + np.reshape(b, (-1, *(1,) * <d>))
def conv_transpose<d>d(x, w, b=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    given = (stride, padding, output_padding, dilation)
    stride, padding, further, dilation = (np.broadcast_to(n, <d>) for n in given)
    sizes = (np.array(np.shape(x)[-<d>:]) - 1) * stride + 1
    wide = np.zeros((*np.shape(x)[:-<d>], *sizes), np.asarray(x).dtype)  # with zeros in between
    wide[(..., *(slice(None, None, n) for n in stride))] = x
    edge = dilation * (np.array(np.shape(w)[-<d>:]) - 1)
    edges = [(n, n + m) for n, m in zip(edge, further)]
    x = np.pad(wide, [(0, 0)] * (np.ndim(x) - <d>) + edges)
    windows = np.lib.stride_tricks.sliding_window_view(x, edge + 1, tuple(range(-<d>, 0)))
    windows = windows[(..., *(slice(None, None, n) for n in (*(1,) * <d>, *dilation)))]
    w = np.flip(w, tuple(range(-<d>, 0)))
    parts = [
        np.tensordot(a, b, ((-<2d+1>, *range(-<d>, 0)), (0, *range(2, <d+2>))))
        for a, b in zip(np.split(windows, groups, -<2d+1>), np.split(w, groups))
    ]
    found = np.moveaxis(np.concatenate(parts, -1), -1, -<d+1>)
    cut = (slice(p, n - p) for n, p in zip(np.shape(found)[-<d>:], padding))
    found = found[(..., *cut)]
    return found if b is None else found + np.reshape(b, (-1, *(1,) * <d>))
def nn.functional.avg_pool<d>d(x, kernel_size, stride=None, padding=0):
    size, padding = (np.broadcast_to(n, <d>) for n in (kernel_size, padding))
    stride = np.broadcast_to(size if stride in (None, ()) else stride, <d>)
    x = np.pad(x, [(0, 0)] * (np.ndim(x) - <d>) + [(n, n) for n in padding])
    windows = np.lib.stride_tricks.sliding_window_view(x, size, tuple(range(-<d>, 0)))
    windows = windows[(..., *(slice(None, None, n) for n in (*stride, *(1,) * <d>)))]
    return np.mean(windows, tuple(range(-<d>, 0)))
"""
for _d in (1, 2, 3):
    _sizes = {"<d>": _d, "<d+1>": _d + 1, "<d+2>": _d + 2, "<2d+1>": 2 * _d + 1}
    _text = _WINDOWS
    for _place, _size in _sizes.items():
        _text = _text.replace(_place, str(_size))
    HELPERS |= by_name(_text)
# Functions of numbers, with the module math alone. A maximum is nan where one of its operands is.
# One text serves three languages: as it is for math; with np.where in place of a choice for arrays
# (`_of_arrays`); and by a few substitutions in C (`in_c`). So every choice is written `(a if c else b)`.
SCALAR = by_name("""
def sigmoid(x):
    e = math.exp(-abs(x))  # so that nothing overflows
    return (1 if x >= 0 else e) / (1 + e)
def sech2(x):
    e = math.exp(-2 * abs(x))  # 1 - tanh(x)**2 with all its digits
    return 4 * e / (1 + e) ** 2
def silu(x):
    e = math.exp(-abs(x))  # so that nothing overflows
    return x * (1 if x >= 0 else e) / (1 + e)
def softplus(x):
    return max(x, 0) + math.log1p(math.exp(-abs(x)))
def nn.functional.logsigmoid(x):
    return min(x, 0) - math.log1p(math.exp(-abs(x)))
def logaddexp(x, y):
    return max(x, y) + math.log1p(math.exp(-abs(x - y)))
def sign(x):
    return (x > 0) - (x < 0)
def sinc(x):
    return (math.sin(math.pi * x) / (math.pi * x) if x else 1.0)
def maximum(x, y):
    return (x if (x > y) | (x != x) else y)
def minimum(x, y):
    return (x if (x < y) | (x != x) else y)
""")
_CHOICE = r"\((.*) if (.*?) else (.*?)\)"


def _of_arrays(text: str) -> str:
    """A function of numbers as one of arrays."""
    text = re.sub(_CHOICE, r"np.where(\2, \1, \3)", text.replace("math.", "np."))
    return re.sub(r"\babs\(", "np.abs(", text)


HELPERS |= {word: _of_arrays(SCALAR[word]) for word in ("sigmoid", "sech2", "silu")}


def _chosen_in_c(found: re.Match[str]) -> str:
    """A choice; clang wants a condition that has an operator of its own in parentheses."""
    condition = found[2]
    if "|" in condition:
        condition = f"({condition.replace('|', '||')})"
    return f"({condition} ? {found[1]} : {found[3]})"


def in_c(text: str) -> str:
    """A function of numbers in C."""
    text = re.sub(_CHOICE, _chosen_in_c, text.replace("math.pi", repr(math.pi)))
    text = re.sub(r"(\(.*\)) \*\* 2", r"(\1 * \1)", text.replace("math.", ""))
    text = re.sub(r"\b(max|min|abs)(?=\()", r"f\1", text)
    head, *lines = re.sub(r"  # (.*)", r"  /* \1 */", text).splitlines()
    word, *names = re.findall(r"\w+", head.removeprefix("def "))
    head = f"double {word}({', '.join(f'double {name}' for name in names)})"
    lines = [re.sub(r"(?=  /\*|$)", ";", line, count=1) for line in lines]
    lines = [re.sub(r"^( +)(?=\w+ = )", r"\1double ", line) for line in lines]
    if len(lines) == 1:
        return f"{head} {{ {lines[0].strip()} }}"
    return "\n".join([head, "{", *lines, "}"])


# Functions that NumPy lacks and SciPy has, in scipy.special, by its own names.
SPECIAL = {
    **{w: w for w in "digamma erfinv polygamma i0 logit igamma igammac".split()},
    **{f"special.{w}": w for w in "i0e i1 i1e erfcx log_ndtr ndtri ndtr xlog1py zeta entr".split()},
    **{"igamma": "gammainc", "igammac": "gammaincc", "special.gammaln": "gammaln"},
    **{f"special.bessel_{w}": w for w in "j0 j1 y0 y1".split()},
    **{f"special.modified_bessel_{w}": w for w in "i0 i1 k0 k1".split()},
}
__all__ = ["HELPERS", "SCALAR", "SPECIAL", "by_name", "in_c"]

"""Infinities and NaN at each place of each operand, and of the gradient that comes in, against PyTorch.

`differences(text, specs, dtype)` calls a function of `nn_against_torch` in both libraries and tells where
values or gradients (also second ones, where asked) are finite, infinite or NaN in one alone. `EXPLAINED` says
which of these are meant.
"""

from __future__ import annotations

import random
import re
import warnings
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np

import gradcli
from tests.fuzz import nn_against_torch

SPECIAL = (np.inf, -np.inf, np.nan)
MOST = 24  # places of an operand at most
# What is swept by the values of its other operands only.
FINITE = ((r"grid_sample", 1),)

_PADDING = ("zeros", "border", "reflection")
MORE: tuple[tuple[str, str], ...] = (
    *((f"m.cdist(a, b, {p})", "2,3 4,3") for p in ("0.0", "0.5", "1.5", "3.0")),
    *((f"F.pdist(a, {p})", "3,2") for p in ("0.0", "1.5", "3.0", "float('inf')")),
    ("m.cdist(a, b, 2.0, 'use_mm_for_euclid_dist')", "2,3 4,3"),
    *(
        (f"F.grid_sample(a, b, {mode!r}, {padding!r}, {align})", shapes)
        for padding in _PADDING
        for align in (True, False)
        for mode, shapes in (
            *((mode, "2,2,3,4 g:2,2,3,2") for mode in ("bilinear", "nearest", "bicubic")),
            *((mode, "1,2,3,2,2 g:1,2,1,2,3") for mode in ("bilinear", "nearest")),
        )
    ),
    ("F.bilinear(a, b, c, d)", "2,3 2,2 4,3,2 4"),
    ("F.scaled_dot_product_attention(a, b, c)", "1,2,3,4 1,2,5,4 1,2,5,4"),
    ("F.scaled_dot_product_attention(a, b, c)", "1,1,3,8 1,1,17,8 1,1,17,8"),
    ("F.scaled_dot_product_attention(a, b, c, is_causal=True)", "1,1,3,4 1,1,3,4 1,1,3,4"),
    ("F.scaled_dot_product_attention(a, b, c, d)", "1,1,3,4 1,1,5,4 1,1,5,4 3,5"),
    ("F.scaled_dot_product_attention(a, b, c, d > 0)", "1,1,3,4 1,1,5,4 1,1,5,4 3,5"),
    *(
        (f"F.embedding_bag(a, b, mode={mode!r}{more})", f"i4:2,2 4,3{operand}")
        for mode, more, operand in (
            *(("mean", "", ""), ("max", "", ""), ("sum", ", per_sample_weights=c", " 2,2")),
            ("mean", ", padding_idx=1", ""),
        )
    ),
    ("F.max_pool2d(a, 3, 2, 1, 1)", "1,2,6,5"),
    ("F.max_pool2d(a, 2, 1, 0, 2)", "1,1,5,4"),
    ("F.avg_pool2d(a, 3, 2, 1, divisor_override=2)", "1,2,6,5"),
    ("F.lp_pool1d(a, float('inf'), 2)", "2,3,4"),
    ("F.lp_pool2d(a, -float('inf'), 2)", "1,2,4,4"),
    ("F.lp_pool3d(a, 2.0, 2)", "1,1,2,2,2"),
    ("F.layer_norm(a, (3,), b, c)", "2,3 3 3"),
    ("F.batch_norm(a, None, None, b, c, True)", "2,3,2,2 3 3"),
    ("F.instance_norm(a, weight=b, bias=c)", "2,3,4 3 3"),
    ("F.normalize(a, p=float('inf'))", "2,3"),
    *(
        (f"F.interpolate(a, size={size}, mode={mode!r}, antialias=True)", "1,1,5,4")
        for size in (3, 7)
        for mode in ("bilinear", "bicubic")
    ),
)

_ONE = (
    "exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh sqrt "
    "rsqrt square reciprocal sigmoid abs sign floor erf erfc erfinv lgamma digamma logit sinc special.entr "
    "special.i0 special.i1 special.i0e special.i1e special.log_ndtr special.ndtr special.ndtri nan_to_num"
)
_TWO = (
    "mul div add sub pow atan2 hypot logaddexp logaddexp2 xlogy maximum minimum fmax fmin fmod remainder "
    "copysign special.xlog1py"
)
_ROWS = "sum mean prod cumsum cumprod logcumsumexp amax amin std var logsumexp"
# Functions of numbers and rows; their values and first gradients are recorded elsewhere.
PLAIN: tuple[tuple[str, str], ...] = (
    *((f"m.{name}(a)", "x") for name in _ONE.split()),
    *((f"m.{name}(a, b)", "x x") for name in _TWO.split()),
    *((f"m.pow(a, {p})", "x") for p in (0, 0.5, 1, 2, 3, -1, 2.5)),
    *((f"m.{name}(a, -1)", "2,3") for name in _ROWS.split()),
    *((f"m.norm(a, {p})", "2,3") for p in (0.5, 1.0, 2.0, 3.0, "float('inf')")),
    *(("a @ b", "2,3 3,2"), ("m.dot(a, b)", "3 3"), ("m.cross(a, b, dim=-1)", "2,3 2,3")),
    *(
        ("m.where(a > 0, a * a, b)", "x x"),
        ("m.clamp(a, -1, 1)", "x"),
        ("m.lerp(a, b, c)", "x x x"),
    ),
    *(("m.addcdiv(a, b, c)", "x x x"), ("m.addcmul(a, b, c)", "x x x"), ("m.det(a)", "2,2")),
    *(("m.polygamma(1, a)", "x"), ("2**a", "x"), ("a**b", "x p"), ("m.nanmean(a)", "5")),
)

# What differs, as `call dtype operand answer: kinds`, and why.
EXPLAINED: tuple[tuple[str, str], ...] = (
    (r"gelu\(a\) f4", "PyTorch's float32 has NaN at infinity, its float64 infinity"),
    (
        r"use_mm_for_euclid_dist'\) \S+ [ab] ",
        "PyTorch takes inf - inf of squares there, and the distance itself in the other mode",
    ),
    (
        r"attention\(a, b, c(, is_causal=True)?\) f[48] [ab] .*: finite\|nan",
        "PyTorch's rows of NaN are zeros where there are fewer keys than a vector has elements; in float32, "
        "it forgets an infinity of a whole vector of keys in what it saves",
    ),
    (
        r"size=3.*antialias.* [ag] (value|gradient): (nan\|-?inf|-?inf\|nan)",
        "a weight that is 0 is a rounding error there, or 0 where ours is one",
    ),
    (
        r"(layer|group)_norm.* [bg] (value|gradient): nan\|-?inf",
        "PyTorch multiplies by the weight, and adds sums, before it subtracts",
    ),
    (
        r"group_norm.* b gradient: -?inf\|nan",
        "the mean over a group of channels is ours of the weighted gradient",
    ),
    (
        r"(batch|instance)_norm.* b value: nan\|-?inf",
        "PyTorch multiplies by the weight before it subtracts the mean",
    ),
    (
        r"bilinear\(a.* b gradient: nan\|-?inf",
        "PyTorch sums over the outputs after it has multiplied by the second operand",
    ),
    (
        r"(bilinear\(a|grid_sample).* [abg] second gradient: (nan\|-?inf|-?inf\|nan)",
        "infinities of both signs are summed, in another order",
    ),
    (
        r"(layer|group|batch|instance)_norm.* [bg] second gradient: (nan\|-?inf|-?inf\|nan)",
        "the weight is multiplied in before or after sums and differences, as in the gradient",
    ),
)


def _kind(value: float) -> str:
    return "nan" if value != value else str(value) if abs(value) == np.inf else "finite"


Found = list[tuple[str, Any]]  # (value, gradient or second gradient, array or None)


def _answers(module: Any, text: str, arrays: list[Any], seed: Any, second: bool = False) -> Found:
    """What a call gives; nothing where it is refused: what a loss is for, say, is in 0..1.

    second: also the gradients of the gradients, times numbers, by the operands and by the seed.
    """
    with suppress(Exception):
        return [
            (word, None if t is None else nn_against_torch._array(t.detach()))
            for word, t in _differentiated(module, text, arrays, seed, second)
        ]
    return []


def _differentiated(module: Any, text: str, arrays: list[Any], seed: Any, second: bool) -> Found:
    torch = nn_against_torch.torch
    made = torch.from_numpy if module is torch else gradcli.tensor
    tensors = [made(a.copy()) for a in arrays]
    leaves = [
        t.requires_grad_() for t, a in zip(tensors, arrays, strict=True) if a.dtype.kind == "f"
    ]
    space = {"F": module.nn.functional, "m": module, **dict(zip("abcd", tensors, strict=False))}
    out = eval(text, space)
    if not leaves:
        return [("value", out)]
    if seed is None:
        seed = np.random.default_rng(5).normal(size=tuple(out.shape)).round(2)
    cotangent = made(np.array(seed, nn_against_torch._array(out.detach()).dtype))
    cotangent.requires_grad_(second)
    grads = module.autograd.grad(out, leaves, cotangent, create_graph=second, allow_unused=True)
    found = [("value", out), *(("gradient", g) for g in grads)]
    again = [g for g in grads if g is not None and g.requires_grad]
    if second and again:
        draw = np.random.default_rng(6)
        weights = [draw.normal(size=tuple(g.shape)).round(2) for g in again]
        given = [
            made(np.array(w, g.detach().numpy().dtype)) for w, g in zip(weights, again, strict=True)
        ]
        more = [*leaves, cotangent]
        twice = module.autograd.grad(again, more, given, allow_unused=True)
        found += [("second gradient", g) for g in twice]
    return found


def _compared(theirs: Found, ours: Found) -> Iterator[tuple[str, str]]:
    """(value or gradient, kinds of elements that differ: PyTorch's|ours)."""
    if [word for word, _ in theirs] != [word for word, _ in ours]:
        yield "value", "refused by one"
        return
    for (word, a), (_, b) in zip(theirs, ours, strict=True):
        if a is None or b is None:
            if a is not b and np.any(b if a is None else a):
                yield word, "missing"
            continue
        limit = 1e-3 if a.dtype == np.float32 else 1e-7
        for x, y in zip(a.ravel().tolist(), b.ravel().tolist(), strict=True):
            if _kind(x) != _kind(y):
                yield word, f"{_kind(x)}|{_kind(y)}"
            elif abs(x) < np.inf and abs(x - y) > limit * (1 + abs(x)):
                yield word, "number"


def operands(text: str, specs: str, dtype: str) -> list[Any]:
    """Finite operands of a call, the same every time."""
    draw = random.Random(zlib.crc32(text.encode()))
    kind = {"f4": "float32", "f8": "float64"}[dtype]
    shared = {"shape": (2, 3), "rows": 2, "dtype": kind, "special": 0.0}
    drawn = [nn_against_torch._numbers(draw, spec, shared)[0] for spec in specs.split()]
    return [
        np.real(a).astype(np.int64 if spec[0] in "it" else kind)
        for a, spec in zip(drawn, specs.split(), strict=True)
    ]


def _cases(text: str, arrays: list[Any]) -> Iterator[tuple[str, list[Any], Any]]:
    """(operand, operands, gradient that comes in or None) with one element that is not finite, or all."""
    for k, a in enumerate(arrays):
        kept = any(re.search(pattern, text) and k == at for pattern, at in FINITE)
        if a.dtype.kind != "f" or kept:
            continue
        for special in SPECIAL:
            for i in [*range(min(a.size, MOST)), None]:
                placed = a.copy()
                placed.reshape(-1)[slice(None) if i is None else i] = special
                yield "abcd"[k], [*arrays[:k], placed, *arrays[k + 1 :]], None
    for _, value in _answers(gradcli, text, arrays, None)[:1]:
        yield from _seeds(arrays, value.shape)


def _seeds(arrays: list[Any], shape: Any) -> Iterator[tuple[str, list[Any], Any]]:
    seed = np.random.default_rng(5).normal(size=shape).round(2)
    for special in SPECIAL:
        for i in range(min(seed.size, MOST)):
            placed = np.array(seed)
            placed.reshape(-1)[i] = special
            yield "g", arrays, placed


def differences(text: str, specs: str, dtype: str, second: bool = False) -> list[str]:
    """What differs and is not explained, as `EXPLAINED` has it, each once."""
    found: dict[str, None] = {}
    arrays = operands(text, specs, dtype)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for operand, given, seed in _cases(text, arrays):
            both = [
                _answers(module, text, given, seed, second)
                for module in (nn_against_torch.torch, gradcli)
            ]
            for word, kinds in _compared(*both):
                found[f"{text} {dtype} {operand} {word}: {kinds}"] = None
    return [what for what in found if not any(re.search(known, what) for known, _ in EXPLAINED)]


__all__ = ["EXPLAINED", "MORE", "differences"]

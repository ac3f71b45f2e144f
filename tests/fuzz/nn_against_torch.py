"""Neural networks' functions against PyTorch: every dtype, odd shapes, nan and infinities.

`run(seed, seconds)` calls random functions of `CALLS` on random operands in both, and compares
results, dtypes, first and second gradients, and refusals with their words. What differs comes back as
short reproducers, one of each kind. Without torch there is nothing to compare with: `run` says so.
"""

from __future__ import annotations

import math
import random
import re
import warnings
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np

import gradcli
from tests import fuzz

torch: Any = None  # imported by `load`


def load() -> Any:
    """torch; None where it cannot be imported."""
    global torch
    try:
        torch = import_module("torch")
    except ImportError:
        return None
    return torch


# A call and its operands: `x` any shape, all x alike; `y` as x without nan (PyTorch's kernels differ
# among themselves there); `m`, `t`: rows of classes and targets; `p` in 0..1; `s` signs; `g` finite
# (PyTorch itself crashes where a grid has nan); `2,3,4` that shape; `i5` integers below 5.
CALLS: list[tuple[str, str]] = [
    *(
        (f"F.{name}(a)", "x")
        for name in (
            "relu elu selu celu leaky_relu silu mish softplus logsigmoid hardsigmoid "
            "hardswish softsign tanhshrink sigmoid tanh"
        ).split()
    ),
    ("F.elu(a, 0.5)", "x"),
    ("F.elu(a, -1.0)", "x"),
    ("F.celu(a, 0.5)", "x"),
    ("F.leaky_relu(a, 0.2)", "x"),
    ("F.leaky_relu(a, -0.2)", "x"),
    ("F.gelu(a, approximate='tanh')", "g"),
    ("F.softplus(a, 2.0, 1.0)", "x"),
    ("F.hardtanh(a, -0.5, 0.7)", "y"),
    ("F.hardtanh(a, 0, 2)", "y"),
    ("F.threshold(a, 0.5, 2.0)", "x"),
    ("F.threshold(a, 1, 2)", "x"),
    ("F.relu6(a)", "y"),
    ("F.hardtanh(a)", "y"),
    ("F.gelu(a)", "g"),
    ("F.hardshrink(a)", "y"),
    ("F.softshrink(a)", "y"),
    ("F.hardshrink(a, 0.3)", "y"),
    ("F.hardshrink(a, 0.0)", "y"),
    ("F.softshrink(a, 0.2)", "y"),
    ("F.softshrink(a, 0.0)", "y"),
    ("F.rrelu(a)", "x"),
    ("F.glu(a)", "2,4"),
    ("F.glu(a, 0)", "4,3"),
    ("F.glu(a)", "x"),
    ("F.prelu(a, b)", "x 1"),
    ("F.prelu(a, b)", "2,3,2 3"),
    ("F.softmax(a, 0)", "x"),
    ("F.softmax(a, -1)", "x"),
    ("F.log_softmax(a, -1)", "x"),
    ("F.softmin(a, -1)", "x"),
    ("F.softmax(a, -1, dtype=m.float64)", "x"),
    ("F.log_softmax(a, 0, dtype=m.float32)", "x"),
    ("m.logsumexp(a, -1)", "x"),
    ("m.logsumexp(a, 0, True)", "x"),
    *(
        (f"F.{name}(a, b, reduction={reduction!r})", "x x")
        for name in "mse_loss l1_loss smooth_l1_loss huber_loss soft_margin_loss".split()
        for reduction in ("none", "mean", "sum")
    ),
    ("F.smooth_l1_loss(a, b, beta=0.5)", "x x"),
    ("F.smooth_l1_loss(a, b, beta=0.0)", "x x"),
    ("F.huber_loss(a, b, delta=0.5)", "x x"),
    *(
        (f"F.{name}(a, b, reduction={reduction!r})", operands)
        for name, operands in (
            ("binary_cross_entropy", "p p"),
            ("binary_cross_entropy_with_logits", "x p"),
            ("kl_div", "x p"),
            ("poisson_nll_loss", "x p"),
            ("hinge_embedding_loss", "x s"),
            ("nll_loss", "m t"),
            ("cross_entropy", "m t"),
            ("multi_margin_loss", "2,3 i3:2"),
            ("multilabel_soft_margin_loss", "2,3 2,3"),
        )
        for reduction in ("none", "mean", "sum")
    ),
    ("F.kl_div(a, b, log_target=True)", "x x"),
    ("F.kl_div(a, b, reduction='batchmean')", "x p"),
    ("F.poisson_nll_loss(a, b, log_input=False)", "p p"),
    ("F.poisson_nll_loss(a, b, full=True)", "x p"),
    ("F.gaussian_nll_loss(a, b, c)", "x x p"),
    ("F.binary_cross_entropy_with_logits(a, b, pos_weight=c)", "2,3 2,3 3"),
    ("F.binary_cross_entropy_with_logits(a, b, c)", "2,3 2,3 3"),
    ("F.binary_cross_entropy(a, b, c)", "p p p"),
    ("F.nll_loss(a, b, c)", "2,3 i3:2 3"),
    ("F.nll_loss(a, b, ignore_index=1)", "m t"),
    ("F.cross_entropy(a, b, c)", "2,3 i3:2 3"),
    ("F.cross_entropy(a, b, ignore_index=1)", "m t"),
    ("F.cross_entropy(a, b, ignore_index=1, reduction='none')", "m t"),
    ("F.cross_entropy(a, b, label_smoothing=0.1)", "m t"),
    ("F.cross_entropy(a, b, ignore_index=1, label_smoothing=0.1)", "m t"),
    ("F.cross_entropy(a, b)", "2,3 2,3"),
    ("F.cross_entropy(a, b)", "2,3,2 i3:2,2"),
    ("F.cross_entropy(a, b)", "3 i3:"),
    ("F.multilabel_margin_loss(a, b)", "2,3 i3:2,3"),
    ("F.margin_ranking_loss(a, b, c)", "x x s"),
    ("F.margin_ranking_loss(a, b, c, 0.5, reduction='none')", "x x s"),
    ("F.cosine_embedding_loss(a, b, c)", "2,3 2,3 s:2"),
    ("F.triplet_margin_loss(a, b, c)", "2,3 2,3 2,3"),
    ("F.triplet_margin_loss(a, b, c, swap=True)", "2,3 2,3 2,3"),
    ("F.cosine_similarity(a, b)", "2,3 2,3"),
    ("F.cosine_similarity(a, b, 0)", "x x"),
    ("F.pairwise_distance(a, b)", "2,3 2,3"),
    ("F.pairwise_distance(a, b, 1.0)", "2,3 2,3"),
    ("F.pairwise_distance(a, b, keepdim=True)", "x x"),
    ("F.pdist(a)", "3,2"),
    ("F.pdist(a, 1.0)", "3,2"),
    ("m.cdist(a, b)", "2,3 4,3"),
    ("m.cdist(a, b, 1.0)", "2,3 4,3"),
    ("m.cdist(a, b, float('inf'))", "2,3 4,3"),
    ("m.dist(a, b)", "x x"),
    ("m.dist(a, b, 1.0)", "x x"),
    ("m.renorm(a, 2, 0, 1.0)", "2,3"),
    ("m.renorm(a, 1, 1, 0.5)", "2,3"),
    ("F.normalize(a)", "2,3"),
    ("F.normalize(a, p=1.0, dim=0)", "x"),
    ("F.layer_norm(a, (3,))", "2,3"),
    ("F.layer_norm(a, (3,), b, c)", "2,3 g:3 g:3"),
    ("F.rms_norm(a, (3,))", "2,3"),
    ("F.rms_norm(a, (3,), b)", "2,3 3"),
    ("F.group_norm(a, 2)", "2,4,3"),
    ("F.group_norm(a, 2, b, c)", "2,4,3 g:4 g:4"),
    ("F.batch_norm(a, None, None, training=True)", "3,2"),
    ("F.batch_norm(a, b, c)", "3,2 2 p:2"),
    ("F.batch_norm(a, None, None, b, c, True)", "2,3,2 g:3 g:3"),
    ("F.instance_norm(a)", "2,3,4"),
    ("F.local_response_norm(a, 2)", "2,3,4"),
    ("F.max_pool1d(a, 2)", "2,3,4"),
    ("F.max_pool1d(a, 2, 1, 1)", "2,3,4"),
    ("F.max_pool2d(a, 2)", "1,2,4,4"),
    ("F.max_pool2d(a, 2, 1, 1, ceil_mode=True)", "2,3,3"),
    ("F.max_pool3d(a, 2)", "1,2,2,2,2"),
    ("F.avg_pool1d(a, 2)", "2,3,4"),
    ("F.avg_pool2d(a, 2)", "2,4,4"),
    ("F.avg_pool2d(a, 2, 1, 1, count_include_pad=False)", "1,2,3,3"),
    ("F.avg_pool3d(a, 2)", "1,2,2,2"),
    ("F.adaptive_avg_pool1d(a, 2)", "2,3,4"),
    ("F.adaptive_avg_pool2d(a, 2)", "2,3,3"),
    ("F.adaptive_avg_pool2d(a, 1)", "2,3,3"),
    ("F.adaptive_max_pool1d(a, 2)", "2,3,4"),
    ("F.adaptive_max_pool2d(a, 2)", "2,3,3"),
    ("F.lp_pool1d(a, 2.0, 2)", "2,3,4"),
    ("F.lp_pool2d(a, 3.0, 2)", "1,2,4,4"),
    ("F.conv1d(a, b)", "1,2,4 3,2,2"),
    ("F.conv1d(a, b, c, padding=1)", "1,2,4 3,2,2 3"),
    ("F.conv2d(a, b, stride=2)", "1,2,4,4 3,2,2,2"),
    ("F.conv_transpose1d(a, b)", "1,2,3 2,3,2"),
    ("F.conv_transpose2d(a, b, stride=2)", "1,2,2,2 2,1,2,2"),
    ("F.unfold(a, 2)", "1,2,3,3"),
    ("F.fold(a, (3,3), 2)", "1,4,4"),
    ("F.pad(a, (1, 2))", "2,3"),
    ("F.pad(a, (1, 1), value=2.5)", "x"),
    ("F.pad(a, (-1, 1))", "2,3"),
    ("F.pad(a, (1, 1), mode='reflect')", "2,3"),
    ("F.pad(a, (1, 1), mode='replicate')", "2,3"),
    ("F.pad(a, (1, 1), mode='circular')", "2,3"),
    ("F.pixel_shuffle(a, 2)", "1,4,2,2"),
    ("F.pixel_unshuffle(a, 2)", "1,1,4,2"),
    ("F.channel_shuffle(a, 2)", "1,4,2"),
    *(
        (f"F.interpolate(a, {size}, mode={mode!r})", shape)
        for mode, shape in (
            *(("nearest", "1,2,3"), ("nearest-exact", "1,2,3"), ("linear", "1,2,3")),
            *(("bilinear", "1,1,3,3"), ("bicubic", "1,1,4,3"), ("area", "1,2,4")),
            *(("nearest", "1,1,2,3"), ("trilinear", "1,1,2,2,2")),
        )
        for size in ("size=2", "size=5", "scale_factor=2.0", "scale_factor=0.6")
    ),
    ("F.interpolate(a, size=5, mode='linear', align_corners=True)", "1,2,3"),
    ("F.interpolate(a, size=4, mode='bilinear', align_corners=True)", "1,1,3,2"),
    ("F.interpolate(a, size=2, mode='bilinear', antialias=True)", "1,1,4,4"),
    ("F.grid_sample(a, b, align_corners=False)", "1,1,3,3 g:1,2,2,2"),
    ("F.grid_sample(a, b, mode='nearest', align_corners=True)", "1,1,3,3 g:1,2,2,2"),
    (
        "F.grid_sample(a, b, padding_mode='border', align_corners=True)",
        "1,1,3,3 g:1,2,2,2",
    ),
    (
        "F.grid_sample(a, b, padding_mode='reflection', align_corners=False)",
        "1,1,3,3 g:1,2,2,2",
    ),
    ("F.affine_grid(a, (1, 1, 2, 3), align_corners=False)", "1,2,3"),
    ("F.linear(a, b)", "2,3 4,3"),
    ("F.linear(a, b, c)", "2,3 4,3 4"),
    ("F.linear(a, b)", "3 3"),
    ("F.bilinear(a, b, c)", "g:2,3 g:2,2 g:4,3,2"),
    ("F.embedding(a, b)", "i4:2 4,3"),
    ("F.embedding(a, b, padding_idx=1)", "i4:3 4,3"),
    ("F.one_hot(a, 4)", "i4"),
    ("F.embedding_bag(a, b)", "i4:2,2 4,3"),
    ("F.embedding_bag(a, b, mode='max')", "i4:2,2 4,3"),
    ("F.scaled_dot_product_attention(a, b, c)", "g:2,3,4 g:2,5,4 g:2,5,4"),
    ("F.scaled_dot_product_attention(a, b, c, is_causal=True)", "g:1,3,4 g:1,3,4 g:1,3,2"),
    ("F.dropout(a, 0.5, False)", "x"),
    ("F.dropout(a, 0.0)", "x"),
    ("F.dropout(a, 1.0)", "x"),
    ("F.alpha_dropout(a, 0.0, True)", "x"),
    ("F.feature_alpha_dropout(a, 0.0, True)", "2,3"),
    ("F.dropout1d(a, 0.0)", "2,3,4"),
]

# Where gradcli is meant to differ: what call, dtypes and difference match, and why.
MEANT: tuple[tuple[str, str], ...] = (
    (
        r"pos_weight.*uint8.*: value",
        "torch takes 1 from pos_weight in its own dtype, where 0 - 1 is 255: true is -1",
    ),
    (
        r"interpolate.*uint8.*: value",
        "torch repeats the first row of more than four channels where one column comes out: true is "
        "each row's own (gradcli's are those of fewer channels, which agree)",
    ),
)
# Both refuse, in other words: of rows that are not of nn.
WORDS = ("desired output type", "two bool tensors", "lt_cpu", "expected m1 and m2", "arange_cpu")
# Linear functions that PyTorch has for real numbers only; `check` takes complex steps through ours.
STEPPED = ("interpolate", "avg_pool", "adaptive_avg_pool", "local_response_norm", "lp_pool")
FLOATS = ("float64", "float32")
DTYPES = ("float16", "bool", "uint8", "int8", "int32", "int64", "complex64", "complex128")
SHAPES = ((), (0,), (1,), (3,), (2, 3), (0, 3), (2, 0), (2, 3, 2))
SPECIAL = (math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 40.0, 1e-8, 3.0, -3.0, 20.5)
TOLERANCES = (("float16", 3e-2), ("float32", 1e-4), ("complex64", 1e-4))
REACH = {"float16": 5e4, "bool": 1, "uint8": 255, "int8": 127, "int32": 2**31 - 1}


def _numbers(draw: random.Random, spec: str, shared: dict[str, Any]) -> tuple[np.ndarray, str]:
    """(numbers, dtype) of an operand."""
    letter, _, rest = spec.partition(":")
    shape: tuple[int, ...]
    if letter in ("x", "y", "g", "p", "s", "m", "t") and not rest and spec[-1] != ":":
        shape = shared["shape"] if letter in "xygps" else (shared["rows"], 3)
        if letter == "t":
            shape = (shared["rows"],)
    elif letter[0] == "i":
        own = rest if ":" in spec else None
        shape = shared["shape"] if own is None else tuple(int(n) for n in own.split(",") if n)
    else:
        shape = tuple(int(n) for n in (rest or letter).split(",") if n)
    count = math.prod(shape)
    if letter[0] in "ti" and letter != "x":
        classes = 3 if letter == "t" else int(letter[1:])
        found = [draw.randrange(classes) for _ in range(count)]
        if letter == "t" and found and draw.random() < 0.2:
            found[draw.randrange(count)] = -100
        kind = "int64" if draw.random() < 0.9 else draw.choice(DTYPES + FLOATS)
    else:
        if letter[0] == "p":
            numbers = [draw.choice((0.0, 1.0, draw.random(), draw.random())) for _ in range(count)]
        elif letter[0] == "s":
            numbers = [draw.choice((-1.0, 1.0)) for _ in range(count)]
        else:
            numbers = [round(draw.gauss(0, 2), 3) for _ in range(count)]
        for i in range(count):
            if letter[0] not in "sg" and draw.random() < shared["special"]:
                numbers[i] = draw.choice(
                    SPECIAL[letter == "y" :] if letter != "p" else (0.0, 1.0, math.nan)
                )
        found = numbers
        kind = shared["dtype"] if draw.random() < 0.93 else draw.choice(DTYPES + FLOATS)
    array = np.array(found, np.float64).reshape(shape)
    if kind not in FLOATS:
        finite = np.nan_to_num(array, nan=0.0, posinf=7.0, neginf=-7.0)
        if kind[0] in "biu":
            low = 0 if kind[0] in "bu" else -REACH.get(kind, 2**62)
            array = np.clip(np.abs(finite) if kind[0] == "u" else finite, low, 100)
        elif kind[0] == "c":  # libraries differ in products of infinities
            array = np.nan_to_num(array, nan=0.0, posinf=7.0, neginf=-7.0)
        elif kind == "float16":
            array = np.where(np.abs(array) < 5e4, array, 7.0)
    return np.asarray(array.astype(kind)), kind


def _text(array: np.ndarray, grad: bool) -> str:
    shown = str(array.tolist()).replace("nan", "nan").replace("j", "j")
    more = ", requires_grad=True" if grad else ""
    return f"tensor({shown}, dtype={array.dtype.name}{more})"


def _plain(value: Any) -> list[tuple[str, np.ndarray]]:
    """(dtype, numbers) of each tensor of a result."""
    values = value if isinstance(value, (tuple, list)) else [value]
    out = []
    for v in values:
        if v is None:
            out.append(("None", np.zeros(())))
        elif isinstance(v, (bool, int, float)):
            out.append((type(v).__name__, np.asarray(v)))
        else:
            kind = str(v.dtype).rpartition(".")[2]
            out.append((kind, _array(v.detach())))
    return out


def _array(value: Any) -> np.ndarray:
    """The numbers of a tensor; PyTorch's may be conjugated or negated lazily, or all zeros."""
    if torch is not None and isinstance(value, torch.Tensor):
        try:
            return value.resolve_conj().resolve_neg().numpy()
        except RuntimeError:  # a tensor of zeros without memory
            return np.zeros(tuple(value.shape), str(value.dtype).rpartition(".")[2])
    return np.asarray(value.numpy())


def answer(
    module: Any, text: str, arrays: list[np.ndarray], grads: list[bool], seed: int = 0
) -> Any:
    """What a call comes to in one library: by stage, results or (error, message)."""
    found: dict[str, Any] = {}
    tensors = [
        (torch.from_numpy(np.array(a)) if module is torch else gradcli.tensor(np.array(a)))
        for a in arrays
    ]
    for t, g in zip(tensors, grads, strict=True):
        if g:
            t.requires_grad_()
    names = dict(zip("abcd", tensors, strict=False))
    space = {"F": module.nn.functional, "m": module, **names}
    try:
        out = eval(text, space)
        found["result"] = _plain(out)
    except Exception as error:
        found["result"] = (type(error).__name__, str(error))
        return found
    leaves = [t for t, g in zip(tensors, grads, strict=True) if g]
    if not leaves or not getattr(out, "requires_grad", False):
        found["result"].append(
            (f"requires_grad={getattr(out, 'requires_grad', None)}", np.zeros(()))
        )
        return found
    weights = np.random.default_rng(seed)

    def against(like: Any) -> Any:
        values = np.round(weights.normal(size=tuple(like.shape)), 2)
        values = values.astype(str(like.dtype).rpartition(".")[2])
        if module is torch:
            return torch.from_numpy(np.asarray(values))
        return gradcli.tensor(values)

    grad = module.autograd.grad
    try:
        first = grad(out, leaves, against(out), create_graph=True, allow_unused=True)
        found["gradient"] = _plain(first)
        again = [g for g in first if g is not None and g.requires_grad]
        if again:
            second = grad(again, leaves, [against(g) for g in again], allow_unused=True)
            found["second"] = _plain(second)
    except Exception as error:
        found["gradient" if "gradient" not in found else "second"] = (
            type(error).__name__,
            str(error),
        )
    return found


def _differs(theirs: Any, ours: Any, tolerance: float) -> str:
    """What differs between two stages: "" for nothing."""
    if isinstance(theirs, tuple) or isinstance(ours, tuple):
        if theirs == ours:
            return ""
        if not isinstance(ours, tuple):
            if theirs[1].startswith(("Found dtype", "scatter(): Expected self.dtype")):
                return ""  # PyTorch's backward wants one dtype of operands that its forward mixed
            return f"torch refuses ({theirs[0]}: {theirs[1].splitlines()[0]})"
        if isinstance(theirs, tuple) and any(word in theirs[1] for word in WORDS):
            return ""
        if not isinstance(theirs, tuple):
            return f"refused ({ours[0]}: {ours[1].splitlines()[0] if ours[1] else ''})"
        return f"torch says {theirs[0]}: {theirs[1]!r}, not {ours[0]}: {ours[1]!r}"
    if theirs is None and ours is None:
        return ""
    if theirs is None or ours is None:
        there = [a for kind, a in theirs or ours if kind != "None"]
        if not any(a.any() for a in there):
            return ""  # zeros, or not recorded at all
        return "torch has none" if theirs is None else "only torch has one"
    pairs = list(zip(theirs, ours, strict=True))
    missing = [(t, o) for t, o in pairs if "None" in (t[0], o[0])]
    if any(v.any() for pair in missing for _, v in pair):
        return "torch has none" if missing[0][0][0] == "None" else "only torch has one"
    theirs, ours = ([pair[i] for pair in pairs if pair not in missing] for i in (0, 1))
    if [t[0] for t in theirs] != [o[0] for o in ours]:
        return f"dtype {[t[0] for t in theirs]} not {[o[0] for o in ours]}"
    for (_, a), (_, b) in zip(theirs, ours, strict=True):
        if a.shape != b.shape:
            return f"shape {a.shape} not {b.shape}"
        with np.errstate(all="ignore"):
            if a.dtype.kind in "fc":
                same = np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)
            else:
                same = bool((a == b).all())
        if not same:
            return f"value {a.tolist()} not {b.tolist()}"
    return ""


def compare(text: str, arrays: list[np.ndarray], grads: list[bool], seed: int = 0) -> list[str]:
    """What differs between PyTorch's answer to a call and ours, by stage; not in double precision only."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        theirs = answer(torch, text, arrays, grads, seed)
        ours = answer(gradcli, text, arrays, grads, seed)
        found = differences(text, arrays, theirs, ours)
        if any(": value" in what for what in found):
            wide = [a.astype(_WIDE.get(a.dtype.name, a.dtype)) for a in arrays]
            if any(a is not b and a.dtype != b.dtype for a, b in zip(arrays, wide, strict=True)):
                return found and compare(text, wide, grads, seed) and found
    meant = f"{text} {[a.dtype.name for a in arrays]} {found}"
    return [] if any(re.search(pattern, meant) for pattern, _ in MEANT) else found


_WIDE = {"float16": np.float64, "float32": np.float64, "complex64": np.complex128}


def differences(text: str, arrays: list[np.ndarray], theirs: Any, ours: Any) -> list[str]:
    """What differs between two answers to a call, by stage."""
    names = {a.dtype.name for a in arrays}
    kinds = f"{text} {names} {theirs.get('result')}"
    tolerance = next((t for name, t in TOLERANCES if name in kinds), 1e-8)
    if any(a.dtype.kind in "biu" for a in arrays):
        tolerance = max(tolerance, 1e-5)  # integers are computed with in the default dtype
    mixed = len({a.dtype for a in arrays if a.dtype.name != "int64"}) > 1
    if any(a.dtype.kind == "c" for a in arrays) and text[2:].startswith(STEPPED):
        return []
    for stage in ("result",) if mixed else ("result", "gradient", "second"):
        what = _differs(theirs.get(stage), ours.get(stage), tolerance)
        if (stage in theirs or stage in ours) and what:
            return [f"{stage}: {what}"]
        if isinstance(theirs.get(stage), tuple):
            return []  # it ended here
    return []


def case(draw: random.Random) -> tuple[str, list[np.ndarray], list[bool]]:
    """A random call: (text, operands, which of them are leaves)."""
    text, specs = draw.choice(CALLS)
    return (text, *operands(draw, specs))


def operands(draw: random.Random, specs: str) -> tuple[list[np.ndarray], list[bool]]:
    """Random operands of a call, and which of them are leaves."""
    shared = {
        "shape": draw.choice(SHAPES),
        "rows": draw.choice((2, 2, 2, 4, 0)),
        "dtype": draw.choice(FLOATS) if draw.random() < 0.6 else draw.choice(DTYPES),
        "special": draw.choice((0.0, 0.0, 0.2, 0.5)),
    }
    drawn = [_numbers(draw, spec, shared) for spec in specs.split()]
    arrays = [a for a, _ in drawn]
    grads = [k[0] in "fc" and draw.random() < 0.75 for _, k in drawn]
    return arrays, grads


def run(seed: int, seconds: float) -> Iterator[str]:
    """Short reproducers of what differs from PyTorch, one of each kind."""
    if load() is None:
        yield "skipped: torch is not importable"
        return
    found: set[tuple[str, ...]] = set()
    for draw in fuzz.cases(seed, seconds):
        text, arrays, grads = case(draw)
        for what in compare(text, arrays, grads):
            kind = (text.partition("(")[0], *what.split()[:2])
            shown = ", ".join(
                f"{n}={_text(a, g)}" for n, a, g in zip("abcd", arrays, grads, strict=False)
            )
            if kind not in found:
                found.add(kind)
                yield f"{text} with {shown}: {what}"


if __name__ == "__main__":
    import sys

    for line in run(int(sys.argv[1]), float(sys.argv[2])):
        print(line)

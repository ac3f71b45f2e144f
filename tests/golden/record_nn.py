"""Record nn.json: `python -m tests.golden.record_nn` (needs torch).

Calls of neural networks' functions with PyTorch's results, gradients, second gradients and refusals:
ROWS, and one random case of `tests.fuzz.nn_against_torch` for each call there and seed below.
"""

from __future__ import annotations

import json
import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz import nn_against_torch as fuzz

SEEDS = (1, 2)
PATH = Path(__file__).with_name("nn.json")
nan, inf = np.nan, np.inf


def some(*shape: int) -> np.ndarray:
    """Numbers between -1 and 1."""
    return np.sin(np.arange(1.0, 1.0 + np.prod(shape)) * 7).reshape(shape).round(3)


# What is said to attention with several heads besides its query a and its weights b and c: options that
# may name an operand d, of these shapes and dtypes.
_CAUSAL = "is_causal=True, need_weights=False"
HEADS: dict[str, list[tuple[tuple[int, ...], str]]] = {
    **{
        f"attn_mask=d, need_weights={weights}": [
            *(((3, 3), "bool"), ((3, 3), "float64"), ((4, 3, 3), "bool"), ((4, 3, 3), "float64")),
            *(((3, 3), "int64"), ((3, 2), "float64"), ((2, 3, 3), "float64"), ((3,), "float64")),
        ]
        for weights in (False, True)
    },
    "attn_mask=d, average_attn_weights=False": [((3, 3), "bool")],
    "attn_mask=d, is_causal=True": [((3, 3), "bool")],
    f"attn_mask=d, {_CAUSAL}": [((3, 3), "bool")],
    _CAUSAL: [((), "float64")],
    "key_padding_mask=d": [
        *(((2, 3), "bool"), ((2, 3), "int64"), ((3, 2), "bool"), ((2, 2), "bool"), ((3,), "bool"))
    ],
    "key_padding_mask=d, need_weights=False": [((2, 3), "float64")],
    "key_padding_mask=d[:2], attn_mask=d": [((3, 3), "bool")],
    f"key_padding_mask=d[:2], attn_mask=d, {_CAUSAL}": [((3, 3), "bool")],
    "add_zero_attn=True": [((), "float64")],
    "add_zero_attn=True, attn_mask=d, key_padding_mask=d[:2]": [((3, 3), "bool")],
    "bias_k=d, bias_v=2*d": [((1, 1, 4), "float64")],
    "bias_k=d, bias_v=2*d, attn_mask=m.eye(3) > 0": [((1, 1, 4), "float64")],
    "in_proj_bias=d, need_weights=False": [((12,), "float64")],
    "key=d, value=d": [((5, 2, 4), "float64")],
    "key=d, value=a": [((3, 2, 4), "float64"), ((5, 2, 4), "float64"), ((3, 4), "float64")],
    "static_k=d, static_v=d": [((4, 3, 2), "float64"), ((2, 3, 2), "float64")],
    "static_v=d": [((4, 3, 3), "float64")],
    "bias_k=d, bias_v=d, static_v=d": [((1, 1, 4), "float64")],
    "bias_k=d": [((1, 1, 4), "float64")],
    "bias_v=d": [((1, 1, 4), "float64")],
    "in_proj_weight=None": [((), "float64")],
    "use_separate_proj_weight=True": [((), "float64")],
    "use_separate_proj_weight=True, q_proj_weight=d": [((4, 4), "float64")],
    "use_separate_proj_weight=True, q_proj_weight=b[:4], k_proj_weight=b[4:8], v_proj_weight=d": [
        ((4, 4), "float64")
    ],
    "embed_dim_to_check=5": [((), "float64")],
    "num_heads=3": [((), "float64")],
}


def heads(query: np.ndarray, options: str, shape: tuple[int, ...], kind: str) -> Any:
    """The row of a call of multi_head_attention_forward, whose results stand one behind the other."""
    given = {
        **dict.fromkeys(("query", "key", "value"), "a"),
        **{"embed_dim_to_check": "4", "num_heads": "2", "in_proj_weight": "b"},
        **dict.fromkeys(("in_proj_bias", "bias_k", "bias_v", "out_proj_bias"), "None"),
        **{"add_zero_attn": "False", "dropout_p": "0.0", "out_proj_weight": "c"},
        **dict(option.split("=", 1) for option in options.split(", ") if option),
    }
    call = f"F.multi_head_attention_forward({', '.join(f'{k}={v}' for k, v in given.items())})"
    d = some(*shape) > 0.3 if kind == "bool" else some(*shape)
    operands = [(query, "float64"), (some(12, 4), "float64"), (some(4, 4), "float64"), (d, kind)]
    return f"m.cat([r.flatten() for r in {call} if r is not None])", operands


# (call, operands as (numbers, dtype)): floating ones are leaves.
ROWS: list[tuple[str, list[tuple[Any, str]]]] = [
    *(
        (f"F.{name}(a)", [([0.0, -0.0, nan, -1.0, 2.0], "float64")])
        for name in ("elu", "selu", "celu")
    ),
    ("F.interpolate(a, size=5, mode='linear')", [([[[1.0, inf, 2.0]]], "float64")]),
    ("F.interpolate(a, size=3, mode='linear')", [([[[inf, 1.0, 2.0]]], "float64")]),
    ("F.interpolate(a, size=5, mode='nearest')", [([[[1.0, inf, 2.0]]], "float64")]),
    *(
        (
            f"F.cross_entropy(a, b, {more})",
            [([[1.0, nan], [2.0, 3.0]], "float64"), ([-100, 0], "int64")],
        )
        for more in ("reduction='mean'", "reduction='none'", "label_smoothing=0.1")
    ),
    ("F.nll_loss(a, b)", [([[1.0, nan], [2.0, 3.0]], "float64"), ([-100, 0], "int64")]),
    ("F.cross_entropy(a, b)", [(np.zeros((0, 3)), "float64"), ([], "int64")]),
    ("F.cross_entropy(a, b, reduction='sum')", [(np.zeros((0, 3)), "float64"), ([], "int64")]),
    ("F.cross_entropy(a, b)", [([[1.0, 2.0]], "float64"), ([1], "uint8")]),
    ("F.mse_loss(a, b)", [([], "float64"), ([], "float64")]),
    ("F.gelu(a)", [([], "float16")]),
    ("F.gelu(a)", [([0.5, -1.0], "float16")]),
    ("F.pairwise_distance(a, b)", [([[1, 2]], "int64"), ([[3, 5]], "int64")]),
    ("F.softmax(a, 0)", [([], "int64")]),
    ("F.log_softmax(a, 0)", [([], "bool")]),
    ("F.softmax(a, 0)", [(2, "int32")]),
    ("F.adaptive_avg_pool1d(a, 2)", [([[1.0, inf, 2.0, 3.0]], "float64")]),
    ("F.max_pool1d(a, 3, 1, 1)", [([[-inf, -inf, nan, nan, 1.0]], "float64")]),
    ("F.binary_cross_entropy(a, b)", [([0.0, 1.0, 0.3], "float64"), ([1.0, 1.0, 0.2], "float64")]),
    *(
        (f"F.binary_cross_entropy_with_logits({more})", [([0.5, -1.0], kind), ([1, 0], target)])
        for more in ("a, b", "a, b, reduction='none'", "a, b, pos_weight=b.abs()")
        for kind, target in (
            *(
                ("float64", "int64"),
                ("float32", "bool"),
                ("float64", "uint8"),
                ("float32", "float16"),
            ),
            *(("float16", "complex64"), ("complex64", "float32"), ("int64", "float64")),
        )
    ),
    ("F.binary_cross_entropy_with_logits(a, b)", [([], "bool"), ([], "float64")]),
    (
        "F.binary_cross_entropy_with_logits(a.detach(), b.detach(), reduction='sum')",
        [([0.5, -1.0], "float64"), ([1j, 0.5], "complex128")],
    ),
    ("F.soft_margin_loss(a, b)", [([-1000.0, 2.0], "float64"), ([1.0, 1.0], "float64")]),
    ("F.multilabel_margin_loss(a, b)", [([[nan, 1.0, 2.0]], "float64"), ([[1, -1, 0]], "int64")]),
    *(heads(some(3, 2, 4), options, *d) for options, masks in HEADS.items() for d in masks),
    heads(some(3, 4), "attn_mask=d", (3, 3), "bool"),
    heads(some(3, 4), "key_padding_mask=d, need_weights=False", (3,), "bool"),
    heads(some(3, 4), "attn_mask=d", (3, 3, 3), "bool"),
    heads(some(4), "", (), "float64"),
    *(
        (
            f"F.scaled_dot_product_attention(a, a, a, {more})",
            [(some(2, 3, 4), "float64"), (b, kind)],
        )
        for more, b, kind in (
            ("b", some(3, 3), "float64"),
            ("b", some(3, 3) > 0, "bool"),
            ("b", some(3, 3), "int64"),
            ("b, is_causal=True", some(3, 3), "float64"),
            ("b, scale=0.3", some(2, 3, 3), "float64"),
            ("b", some(3, 3), "float32"),
            ("b", some(3, 3), "float16"),
        )
    ),
]


def cases() -> list[tuple[str, list[np.ndarray], list[bool]]]:
    """(call, operands, which are leaves) of every row."""
    found = []
    for text, operands in ROWS:
        arrays = [np.asarray(numbers, kind) for numbers, kind in operands]
        found.append((text, arrays, [a.dtype.kind in "fc" for a in arrays]))
    for seed in SEEDS:
        for text, specs in fuzz.CALLS:
            found.append((text, *fuzz.operands(random.Random(f"{seed} {text}"), specs)))
    return found


def written(array: np.ndarray) -> list[Any]:
    """[dtype, shape, numbers]; a complex number is two."""
    flat = np.ascontiguousarray(array).reshape(-1)
    flat = flat.view(flat.real.dtype) if array.dtype.kind == "c" else flat
    return [array.dtype.name, list(array.shape), flat.tolist()]


def read(stored: list[Any]) -> np.ndarray:
    """The array that `written` wrote."""
    kind, shape, numbers = np.dtype(stored[0]), stored[1], stored[2]
    flat = np.array(numbers, kind.type(0).real.dtype)
    return (flat.view(kind) if kind.kind == "c" else flat).reshape(shape)


def main() -> None:
    """Write nn.json."""
    torch, rows = fuzz.load(), []
    for text, arrays, grads in cases():
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            answer = fuzz.answer(torch, text, arrays, grads)
        stages = {
            stage: list(found)
            if isinstance(found, tuple)
            else [[kind, written(values)] for kind, values in found]
            for stage, found in answer.items()
        }
        operands = [written(a) for a in arrays]
        rows.append({"call": text, "operands": operands, "leaves": grads, "torch": stages})
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    PATH.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()

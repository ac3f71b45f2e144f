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

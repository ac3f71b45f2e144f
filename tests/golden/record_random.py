"""Record torch's random numbers into random.json (run with a Python that has torch).

    python tests/golden/record_random.py

A case is a seed and a list of draws; of every draw, a digest of the bytes.
"""

import hashlib
import json
from pathlib import Path

import torch

SEEDS = [0, 1, 42, 2147483647, -1, 2**64 - 1, 2**33 + 7]
SHAPES = [[], [1], [3], [15], [16], [17], [4, 5], [100], [0], [1000]]
FLOATS = ["float16", "float32", "float64"]
DRAWS = [
    *(["rand", shape, kind] for shape in SHAPES for kind in [*FLOATS, "complex64", "complex128"]),
    *(["randn", shape, kind] for shape in SHAPES for kind in [*FLOATS, "complex64", "complex128"]),
    *(["uniform", [50], kind, a, b] for kind in FLOATS for a, b in [(-1.3, 2.7), (0.3, 0.301)]),
    *(["normal", [n], kind, 0.5, 2.5] for kind in FLOATS for n in [5, 50, 16]),
    *(["normal", [20], kind, 0.0, 0.0] for kind in FLOATS),
    *(["bernoulli", [40], kind, 0.3] for kind in [*FLOATS, "bool", "int64"]),
    *(["dropout_mask", [40], kind, p] for kind in FLOATS for p in [0.0, 0.25, 1.0]),
    ["randint", [30], "int64", 0, 10],
    ["randint", [30], "int64", -5, 2**28],
    ["randint", [30], "int64", -(2**63), 2**63 - 1],
    ["randint", [30], "uint8", 0, 256],
    ["randint", [30], "float32", -(2**60), 2**60],
    ["randint", [30], "float16", 0, 5],
    ["randint", [30], "bool", 0, 2],
    *(["random", [20], k] for k in [*FLOATS, "bool", "uint8", "int8", "int16", "int32", "int64"]),
    *(["randperm", [n], "int64"] for n in [0, 1, 2, 10, 333]),
    ["exponential", [30], "float32", 1.5],
    ["exponential", [30], "float64", 0.3],
    ["cauchy", [30], "float64", 0.3, 1.7],
    ["geometric", [30], "float32", 0.3],
    ["log_normal", [31], "float64", 0.2, 0.7],
]


def draw(name, shape, kind, *args):
    """The same draw with torch."""
    dtype = getattr(torch, kind)
    if name in ("rand", "randn"):
        return getattr(torch, name)(shape, dtype=dtype)
    if name == "randint":
        return torch.randint(*args, shape, dtype=dtype)
    if name == "randperm":
        return torch.randperm(*shape, dtype=dtype)
    if name == "dropout_mask":
        return torch.nn.functional.dropout(torch.ones(shape, dtype=dtype), *args)
    return getattr(torch.empty(shape, dtype=dtype), name + "_")(*args)


def digest(tensor):
    """A short hash of the bytes."""
    return hashlib.blake2b(tensor.numpy().tobytes(), digest_size=8).hexdigest()


def main():
    """Write random.json next to this file."""
    cases = []
    for number, seed in enumerate(SEEDS):
        torch.manual_seed(seed)
        draws = [
            {"draw": d, "digest": digest(draw(*d))}
            for d in (DRAWS if number % 2 == 0 else DRAWS[::-1])
        ]
        state = hashlib.blake2b(torch.get_rng_state().numpy().tobytes(), digest_size=8).hexdigest()
        cases.append({"seed": seed, "draws": draws, "state": state})
    text = ",\n".join(json.dumps(case) for case in cases).replace('{"draw"', '\n {"draw"')
    path = Path(__file__).with_name("random.json")
    path.write_text(f'{{"torch": "{torch.__version__}", "cases": [\n{text}\n]}}\n')


if __name__ == "__main__":
    main()

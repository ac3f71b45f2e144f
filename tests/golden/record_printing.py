"""Record how torch prints tensors, into printing.json (run with a Python that has torch).

    python tests/golden/record_printing.py

A case is the array's bytes, the print options, the default dtype and PyTorch's text.
"""

import base64
import json
import zlib
from pathlib import Path

import numpy as np
import torch

SPECIAL = [0.0, -0.0, float("inf"), float("-inf"), float("nan")]
FLOATS = ["float16", "float32", "float64"]
SHAPES = [(), (1,), (3,), (7,), (20,), (2, 3), (3, 1), (1, 1), (2, 2, 3), (2, 1, 2, 2), (5, 9)]


def scales(rng, shape):
    """Arrays of one shape in every regime of the formatter."""
    yield rng.standard_normal(shape)
    yield rng.standard_normal(shape) * 1e-3
    yield rng.standard_normal(shape) * 1e5
    yield rng.integers(-9, 9, shape).astype(float)
    yield rng.integers(-900, 90000, shape) / 4
    yield np.exp(rng.standard_normal(shape) * 10)
    yield -np.abs(rng.standard_normal(shape)) * 300
    with np.errstate(all="ignore"):
        yield np.where(rng.random(shape) < 0.4, rng.choice(SPECIAL, shape), rng.random(shape) * 4)
        yield np.where(rng.random(shape) < 0.5, rng.choice(SPECIAL, shape), np.full(shape, 12.0))


def arrays():
    """All arrays of the record."""
    rng = np.random.default_rng(20)
    with np.errstate(all="ignore"):
        for number, shape in enumerate(SHAPES):
            for which, array in enumerate(scales(rng, shape)):
                yield array.astype(FLOATS[(number + which) % 3])
                if (number + which) % 3 == 0:
                    yield array.astype("float64")
            part = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
            yield part.astype("complex64")
            yield np.round(part * 3).astype("complex128")
            yield (part * 1e6).astype("complex128")
            yield rng.integers(-5, 120, shape).astype("int8")
            yield rng.integers(0, 250, shape).astype("uint8")
            yield rng.integers(-(10**9), 10**9, shape)
            yield rng.integers(-300, 300, shape).astype("int16")
            yield rng.integers(-3, 3, shape).astype("int32")
            yield np.asarray(rng.random(shape) < 0.5)
    for value in [
        *SPECIAL,
        1.0,
        -1.0,
        0.5,
        3.14159265,
        1e8,
        1.00000001e8,
        1e-4,
        9.9999e-5,
        1e-300,
        5e-324,
        1.7e308,
        12345.6789,
        0.99999,
        -0.00001,
        1e10,
        123456789.0,
        100000000.0,
        2.0**53,
        99999.99996,
    ]:
        yield np.array(value)
        yield np.array([value, 1.0])
        yield np.array([value])
        yield np.array([value + 0j, complex(0, value)])
    for row in [
        [1.0, 1000.0],
        [1.0, 1001.0],
        [0.5, 500.0],
        [0.5, 501.0],
        [0.1, 100.0],
        [1e-4, 0.05],
        [0.0, 0.0],
        [0.0, 1e-5],
        [-1e-5, 0.1],
        [1e99, 1.0],
        [9.99996e99, -1.0],
        [1e-100, -2.0],
        [1.0, float("nan")],
        [1.5, float("nan"), float("-inf")],
        [1e9, float("inf")],
        [-0.0, 1.0],
    ]:
        yield np.array(row)
        with np.errstate(all="ignore"):
            yield np.array(row).astype("float32")
    for shape in [(0,), (0, 3), (2, 0), (1, 0, 3), (0, 0)]:
        for kind in ["float32", "float64", "int64", "bool", "complex64", "uint8"]:
            yield np.zeros(shape, kind)
    for shape in [(1000,), (1001,), (1200,), (2, 501), (501, 2), (40, 30), (3, 5, 80), (7, 2, 80)]:
        yield np.arange(np.prod(shape)).reshape(shape)
        yield (np.arange(np.prod(shape)) / 8).reshape(shape)
        yield (np.arange(np.prod(shape)) % 3 == 0).reshape(shape)
    yield (np.arange(1200) * (1 - 2j)).reshape(6, 200)
    yield np.arange(2100.0).reshape(7, 1, 10, 30).astype("float32")
    yield np.zeros((11, 11, 11), "float32")


OPTIONS = [
    {"precision": 2},
    {"precision": 10},
    {"sci_mode": True},
    {"sci_mode": False},
    {"linewidth": 30},
    {"threshold": 5},
    {"threshold": 5, "edgeitems": 1},
    {"threshold": 5, "edgeitems": 0},
    {"edgeitems": 0},
    {"threshold": 0},
    {"profile": "short"},
    {"profile": "full"},
    {"profile": "nonesuch", "linewidth": 200},
]


def main():
    """Write printing.json next to this file."""
    cases = []

    def record(array, options, default, requires_grad=False):
        array = np.ascontiguousarray(array).reshape(np.shape(array))
        torch.set_default_dtype(getattr(torch, default))
        torch.set_printoptions(profile="default")
        torch.set_printoptions(**options)
        tensor = torch.from_numpy(array.copy()).requires_grad_(requires_grad)
        cases.append(
            {
                "dtype": str(array.dtype),
                "shape": list(array.shape),
                "bytes": base64.b64encode(zlib.compress(array.tobytes(), 9)).decode(),
                "options": options,
                "default": default,
                "requires_grad": requires_grad,
                "text": repr(tensor),
            }
        )

    everything = list(arrays())
    for number, array in enumerate(everything):
        record(
            array,
            {},
            "float32" if number % 2 else "float64",
            array.dtype.kind in "fc" and number % 3 == 0,
        )
    for number, array in enumerate(everything[:: len(everything) // 60]):
        for which in range(3):
            record(array, OPTIONS[(number + 5 * which) % len(OPTIONS)], "float32")
    for options in OPTIONS:
        record(np.arange(24.0).reshape(2, 3, 4) / 7, options, "float64", True)
        record(np.arange(1200), options, "float64")
    path = Path(__file__).with_name("printing.json")
    lines = ",\n".join(json.dumps(case) for case in cases)
    path.write_text(f'{{"torch": "{torch.__version__}", "cases": [\n{lines}\n]}}\n')
    print(len(cases), "cases")


if __name__ == "__main__":
    main()

"""Write sums.json: the errors of sums of many rows, ours beside torch's, against float64.

python -m tests.golden.record_sums [most rows: 100_000_000]   needs torch 2.13.0, and 6 GiB for the most

Each entry: the dtype, the rows (of two columns, numbers between 0 and 1, added along the rows), what
is worked out, and the largest relative error of gradcli and of torch.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

PATH = Path(__file__).parent / "sums.json"
ROWS = [10**k for k in range(3, 9)]
# Of the module of torch's names and a matrix. In half precision sums have many times its largest number.
WHAT: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda m, x: m.sum(x, 0, dtype=m.float32),
    "mean": lambda m, x: m.mean(x, 0),
    "var": lambda m, x: m.var(x, 0),
    "norm": lambda m, x: m.linalg.vector_norm(x, 2, 0, dtype=m.float32),
    "gradient": lambda m, x: gradient(m, x),
}
MOST_OF_ALL = 10**7  # rows up to which more than the sum and the mean are worked out


def gradient(module: Any, x: Any) -> Any:
    """The gradient of a row that is added to all rows, where x is the gradient of what that gives."""
    row = module.zeros(2, dtype=x.dtype, requires_grad=True)
    return module.autograd.grad(row + x, row, x)[0]


def exact(what: str, x: Any) -> Any:
    """The same in float64."""
    columns = [x[:, k].astype(np.float64) for k in range(2)]  # pairwise, one after the other
    found = {
        "mean": lambda c: c.mean(),
        "var": lambda c: c.var(ddof=1),
        "norm": lambda c: np.sqrt(np.sum(c * c)),
    }.get(what, np.sum)
    return np.array([found(c) for c in columns])


def entries(most: int) -> list[dict[str, Any]]:
    """Every dtype, number of rows and function."""
    import torch

    import gradcli

    found = []
    for dtype in ("float32", "float16"):
        for rows in [n for n in ROWS if n <= most]:
            x = np.random.default_rng(rows).random((rows, 2), dtype=np.float32).astype(dtype)
            for what in WHAT:
                # A gradient of 60,000 and more is infinite in half precision.
                if rows > MOST_OF_ALL and what not in ("sum", "mean"):
                    continue
                if what == "gradient" and dtype == "float16" and rows > 10**5:
                    continue
                wanted = exact(what, x)
                errors = {}
                for name, module in (("gradcli", gradcli), ("torch", torch)):
                    given = module.from_numpy(x)
                    value = WHAT[what](module, given).numpy().astype(np.float64)
                    errors[name] = float(f"{np.max(np.abs(value / wanted - 1)):.1e}")
                found.append({"dtype": dtype, "rows": rows, "what": what, **errors})
    return found


if __name__ == "__main__":
    chosen = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS[-1]
    lines = ",\n".join(json.dumps(entry) for entry in entries(chosen))
    PATH.write_text(f"[\n{lines}\n]\n", encoding="utf-8")

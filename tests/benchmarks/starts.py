"""Commands from start to end by the processor's time: beside `import numpy`, and beside SciPy's scripts.

Whole processes in turns, as of `tables`. What is short is a start and little else; the searches and fits are
of a size at which the work counts.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.cold import entry
from tests.benchmarks.records import Record, ratio
from tests.benchmarks.tables import processor

# name: (words, mark against `python -c "import numpy"`)
COMMANDS: dict[str, tuple[list[str], float]] = {
    "grad": (["grad", "2*dot(x,x)", "--x", "0,1,2,3"], 1.1),
    "graph": (["graph", "2*dot(x,x)", "--x", "0,1,2,3"], 1.2),
    "--help": (["--help"], 0.5),
    "ops": (["ops"], 0.7),
    "diff": (["diff", "sin(x)*x**2"], 1.45),
    "diff to NumPy": (["diff", "tanh(A@x)", "--format", "numpy"], 2.0),
    "simplify": (["simplify", "sin(x)**2 + cos(x)**2"], 1.45),
    "map": (["map", "sin(x)*y", "ten.csv"], 1.45),
    "taylor": (["taylor", "exp(x)", "--x", "0"], 1.6),
    "jacobian": (["jacobian", "sin(x)", "--x", "0,1,2"], 1.4),
    "root": (["root", "x**2 - 2", "--x", "1"], 2.2),
    "minimize": (["minimize", "(x - 1)**2", "--x", "0"], 2.2),
    "fit": (["fit", "y == a*x + b", "ten.csv"], 2.2),
}
LINES = 1000
_CHAIN = "sum(100*(x[1:] - x[:-1]**2)**2 + (1 - x[:-1])**2)"
_BY_HAND = """
import numpy as np
from scipy.optimize import minimize
def f(x):
    u, v = x[1:] - x[:-1]**2, 1 - x[:-1]
    g = np.zeros_like(x)
    g[1:] += 200*u
    g[:-1] -= 400*x[:-1]*u + 2*v
    return (100*u**2 + v**2).sum(), g
print(minimize(f, START, jac=True, method="L-BFGS-B", options={"maxiter": 10**5, "maxfun": 10**6}))
"""
_CURVE = """
import numpy as np
from scipy.optimize import curve_fit
t = np.load("points.npy")
x, y = t["x"].copy(), t["y"].copy()
print(curve_fit(lambda x, a, b, c: a*np.exp(-b*x) + c, x, y, (1, 1, 1)))
"""


def works(folder: Path, rows: int) -> Iterator[tuple[str, int, dict[str, tuple[list[str], float]]]]:
    """A name, a size, and each peer's command line with the mark against it; gradcli's has none."""
    numpy = [sys.executable, "-c", "import numpy"]
    for name, (words, mark) in COMMANDS.items():
        yield name, 1, {"gradcli": ([*entry(), *words], 0.0), "numpy": (numpy, mark)}
    loop = f'for k in $(seq {LINES // 10}); do "$@" grad "x**2" --x $k; done'
    one = ["/bin/sh", "-c", loop, "sh", *entry()]
    batch = [*entry(), "batch", "lines.txt"]
    yield (
        f"batch, {LINES} lines",
        1,
        {"gradcli": (batch, 0.0), f"{LINES // 10} processes": (one, 1.0)},
    )
    for text, start, by_hand in (
        ("from 2", "full((1000,), 2.0)", "np.full(1000, 2.0)"),
        ("from -1.2, 1", "tensor([-1.2, 1.0]).repeat(500)", "np.tile([-1.2, 1.0], 500)"),
    ):
        script = [sys.executable, "-c", _BY_HAND.replace("START", by_hand)]
        own = [*entry(), "minimize", _CHAIN, "--x", start]
        yield f"Rosenbrock {text}", 1000, {"gradcli": (own, 0.0), "scipy": (script, 1.2)}
    np.save(folder / "points.npy", _points(rows))
    own = [*entry(), "fit", "y == a*exp(-b*x) + c", "points.npy"]
    script = [sys.executable, "-c", _CURVE]
    yield "fit, three parameters", rows, {"gradcli": (own, 0.0), "scipy": (script, 0.8)}


def _points(rows: int) -> Any:
    random = np.random.default_rng(0)
    x = 3 * random.random(rows)
    made = np.empty(rows, [("x", float), ("y", float)])
    made["x"], made["y"] = x, 2.5 * np.exp(-1.3 * x) + 0.5 + random.normal(0, 0.01, rows)
    return made


def starts(wanted: Any, rows: int) -> Iterator[Record]:
    """The group's records."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "ten.csv").write_text(
            "x,y\n" + "".join(f"{k},{2 * k + k % 3}\n" for k in range(10))
        )
        lines = (f'grad "x**2" --x {k}\n' for k in range(LINES))
        (folder / "lines.txt").write_text("".join(lines))
        for name, size, peers in works(folder, rows):
            if not wanted.has("starts", name, size, "process"):
                continue
            seconds: dict[str, list[float]] = {p: [] for p in peers}
            turns = wanted.rounds * 3 if size == 1 and "batch" not in name else wanted.rounds
            for turn in range(-1, turns):  # the first compiles, and warms the disk's cache
                for peer, found in seconds.items():
                    taken = processor(peers[peer][0], folder)
                    found += [taken] if turn >= 0 else []
            mine = seconds.pop("gradcli")
            measures = {p: ratio(mine, s, peers[p][1]) for p, s in seconds.items()}
            yield Record("starts", name, size, "process", measures)

"""The engine without the operator table: it adds, multiplies, sums what was broadcast, and differentiates."""

from __future__ import annotations

import subprocess
import sys

ALONE = """
import sys
import numpy as np
import gradcli.engine.core
from gradcli.engine.core.backward_pass import grad
from gradcli.engine.core.tensor import wrap

x = wrap(np.array([[1.0, 2.0], [3.0, 5.0]]), True)
w = wrap(np.array([2.0, -1.0]), True)
assert (x + x).array.tolist() == [[2, 4], [6, 10]] and (2 * x).array.tolist() == [[2, 4], [6, 10]]
y = (x * x * w + x).sum()
dx, dw = grad([y], [x, w], create_graph=True)
assert np.allclose(dx.array, 2 * x.array * w.array + 1)
assert np.allclose(dw.array, (x.array**2).sum(0))
ddx, ddw = grad([(dx * dx).sum() + dw.sum()], [x, w])
assert np.allclose(ddx.array, 2 * (2 * x.array * w.array + 1) * 2 * w.array + 2 * x.array)
assert np.allclose(ddw.array, (2 * (2 * x.array * w.array + 1) * 2 * x.array).sum(0))
(x * x).sum().backward()
assert np.allclose(x.grad.array, 2 * x.array)
print(*sorted({".".join(m.split(".")[1:3]) for m in sys.modules if m.startswith("gradcli.")}))
"""


def test_it_differentiates_twice() -> None:
    run = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=False)
    found = run.stdout.strip()
    assert (found, run.stderr) == (
        "engine engine.core engine.registry engine.system version",
        "",
    )

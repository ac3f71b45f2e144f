"""Write accuracy.json: derivatives where PyTorch's formula loses its digits, exactly and as torch has them.

python -m tests.golden.record_accuracy   needs torch 2.13.0 and mpmath

Each entry: the expression of x, the point, the exact derivative at that double (mpmath, 60 digits and more,
as the nearest double), torch's, and how gradcli computes it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PATH = Path(__file__).parent / "accuracy.json"
# (expression, exact derivative in mpmath's words, points, how)
CASES: list[tuple[str, str, list[float], str]] = [
    ("sinc(x)", "(cos(pi*x)*pi*x - sin(pi*x))/(pi*x*x)", [1e-8, 1e-5, 1e-3, 0.01],
     "the Taylor series within 1/pi of 0"),
    ("nn.functional.gelu(x)", "ncdf(x) + x*npdf(x)", [-30.0, -12.0, -8.0, -5.0], "erfc for 1 + erf"),
    ("asinh(x)", "1/sqrt(x*x + 1)", [1e160, 1e200, -1e300], "hypot for the root of squares"),
    ("acosh(x)", "1/sqrt(x*x - 1)", [1 + 1e-10, 1 + 1e-5, 1e160, 1e200],
     "two roots for that of a difference of squares"),
    ("asin(x)", "1/sqrt(1 - x*x)", [1 - 1e-12, 1 - 1e-5], "(1 - x)(1 + x) for 1 - x**2"),
    ("acos(x)", "-1/sqrt(1 - x*x)", [1 - 1e-12, 1e-5 - 1], "(1 - x)(1 + x) for 1 - x**2"),
    ("atanh(x)", "1/(1 - x*x)", [1 - 1e-12, 1 - 1e-5], "(1 - x)(1 + x) for 1 - x**2"),
    ("atan2(x, tensor(1e200))", "mpf(1e200)/(x*x + mpf(1e200)**2)", [1.0, 1e200],
     "hypot for a sum of squares"),
    ("atan2(x, tensor(1e-200))", "mpf(1e-200)/(x*x + mpf(1e-200)**2)", [1e-200, 1e-190],
     "hypot for a sum of squares"),
    ("i0(x)", "besseli(1, x)", [710.0, -713.0], "exp(x/2) twice for exp(x)"),
    ("special.erfcx(x)", "2*x*exp(x*x)*erfc(x) - 2/sqrt(pi)", [30.0, 1e3, 1e5, 1e8],
     "the asymptotic series from 10 on"),
    ("special.log_ndtr(x)", "npdf(x)/ncdf(x)", [-1e3, -100.0, -50.0], "erfcx for exp of a difference"),
    ("lgamma(x)", "digamma(x)", [-0.9999999, -2.9999999], "the distance to the pole"),
    ("digamma(x)", "polygamma(1, x)", [-0.9999999, -2.000001, -100.00001],
     "the distance to the pole"),
]  # fmt: skip


def exact(text: str, x: float) -> float:
    """The derivative at a double, rounded once."""
    import mpmath

    mpmath.mp.dps = 700 if abs(x) > 200 else 120
    space: dict[str, Any] = {name: getattr(mpmath, name) for name in dir(mpmath)}
    if "erfc" in text and x > 200:  # as good as exact there, and mpmath's own takes no such numbers
        series = [
            mpmath.fac2(2 * k - 1) * (-1 / (2 * mpmath.mpf(x) ** 2)) ** k for k in range(1, 30)
        ]
        return float(2 / mpmath.sqrt(mpmath.pi) * mpmath.fsum(series))
    return float(eval(text, {**space, "x": mpmath.mpf(x)}))


def by_torch(source: str, x: float) -> float:
    """What torch's autograd gives."""
    import torch

    leaf = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    space = {"nn": torch.nn, "special": torch.special, "tensor": torch.tensor}
    torch.set_default_dtype(torch.float64)
    try:
        eval(
            source, {name: getattr(torch, name) for name in dir(torch)} | space | {"x": leaf}
        ).backward()
    finally:
        torch.set_default_dtype(torch.float32)
    assert leaf.grad is not None
    return leaf.grad.item()


def entries() -> list[dict[str, Any]]:
    """Every case at every point."""
    return [
        {
            "source": source,
            "x": x,
            "exact": exact(text, x),
            "torch": by_torch(source, x),
            "how": how,
        }
        for source, text, points, how in CASES
        for x in points
    ]


if __name__ == "__main__":
    lines = ",\n".join(json.dumps(entry) for entry in entries())
    PATH.write_text(f"[\n{lines}\n]\n", encoding="utf-8")

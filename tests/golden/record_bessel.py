"""Record the derivatives of Bessel functions, which torch lacks: `python record_bessel.py`, by mpmath."""

from __future__ import annotations

import json
from pathlib import Path

RECORDED = Path(__file__).with_name("bessel.json")
POINTS = (1e-3, 0.7, 1.0, 5.5, 20.0)
EVEN_OR_ODD = (0.0, -2.5)  # where the functions of the first kind are defined, too

if __name__ == "__main__":
    import mpmath

    kinds = {"bessel_j": "besselj", "bessel_y": "bessely"}
    kinds |= {"modified_bessel_i": "besseli", "modified_bessel_k": "besselk"}
    found = []
    for ours, theirs in kinds.items():
        for order in (0, 1):
            for x in (*POINTS, *(EVEN_OR_ODD if ours.endswith(("j", "i")) else ())):
                function = getattr(mpmath, theirs)
                slopes = [
                    float(mpmath.diff(lambda t, f=function, n=order: f(n, t), x, times))
                    for times in (1, 2)
                ]
                found.append([f"{ours}{order}", x, *slopes])
    lines = ",\n".join(json.dumps(row) for row in found)
    RECORDED.write_text(f"[\n{lines}\n]\n", encoding="utf-8")

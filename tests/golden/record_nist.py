"""Record NIST's reference datasets for nonlinear regression: python tests/golden/record_nist.py FOLDER

FOLDER holds the 27 files of https://www.itl.nist.gov/div898/strd/nls/nls_main.shtml as NIST publishes them;
the source distribution of lmfit 1.3.4 on PyPI has them too, in NIST_STRD. Nothing is computed here: the
model, both starts, what NIST certifies, and the data are copied into nist.json.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def read(path: Path) -> dict[str, Any]:
    """What a file says."""
    text = path.read_text(encoding="ascii")
    model = re.search(r"Parameters \(.*?\)\s*(.*?)\+\s*e\b", text, re.S)
    assert model is not None
    equation = " ".join(line for line in model[1].split("\n") if "pi =" not in line)
    equation = " ".join(equation.replace("[", "(").replace("]", ")").split()).replace("=", "==", 1)
    number = r"\s+([-+.\dE]+)"
    rows = re.findall(rf"^\s*(b\d) =\s*{number[3:]}{number * 3}\s*$", text, re.M)
    head, *lines = text[text.rindex("\nData:") + 6 :].strip().split("\n")
    deviation, dof = (
        re.search(rf"{words}:{number}", text)
        for words in ("Residual Standard Deviation", "Degrees of Freedom")
    )
    square = re.search(rf"Residual Sum of Squares:{number}", text)
    assert deviation and dof and square
    cells = [list(map(float, line.split())) for line in lines if line.strip()]
    return {
        "equation": equation,
        "starts": [{b: float(row[k]) for b, *row in rows} for k in (0, 1)],
        "parameters": {b: float(row[2]) for b, *row in rows},
        "errors": {b: float(row[3]) for b, *row in rows},
        "chi2": float(square[1]),
        "deviation": float(deviation[1]),
        "dof": int(dof[1]),
        "columns": {
            n: list(c) for n, c in zip(head.split(), zip(*cells, strict=True), strict=True)
        },
    }


if __name__ == "__main__":
    found = {path.stem: read(path) for path in sorted(Path(sys.argv[1]).glob("*.dat"))}
    assert len(found) == 27
    sets = ",\n".join(f"{json.dumps(name)}: {json.dumps(one)}" for name, one in found.items())
    (HERE / "nist.json").write_text(f"{{\n{sets}\n}}\n", encoding="utf-8")

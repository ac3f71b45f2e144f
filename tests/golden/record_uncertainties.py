# ruff: noqa: E501 (tables of cases)
"""Ask the `uncertainties` package for its own examples: python tests/golden/record_uncertainties.py

tests/golden/uncertainties.json then holds, for every expression, what its values are (nominal value and
uncertainty, and covariances), and what it answers: the nominal value, the standard deviation, each input's
contribution, and the text with two digits of the uncertainty.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path

import uncertainties
from uncertainties import correlated_values, ufloat, ufloat_fromstr, umath

# From the package's user guide and README, and what every book on errors has.
VALUES = {
    "x": "0.20+/-0.01", "y": "3.2+/-0.3", "z": "5.0+/-0.1", "L": "0.994(2)", "T": "2.003+/-0.005", "u": "1+/-0.1",
    "v": "10.0(1.5)", "w": "(3.141+/-0.012)e3", "q": "-2.5(4)", "h": "6.62607(15)e-34",
}  # fmt: skip
EXPRESSIONS = [
    "x**2", "sin(2*x)", "x - x", "x + x", "(x + y)**2", "2*x + 1000", "x*y", "x/y", "sin(1 + x**2)", "x**y", "exp(y)",
    "log(z)", "sqrt(z)", "atan(u)", "4*pi**2*L/T**2", "u - u/u", "v*w", "v/w + q", "q**2", "q*q", "h*v", "1000000*w",
    "x*y*z*u", "cos(0*x)", "hypot(y, z)", "atan2(y, z)", "tanh(u)", "log10(v)", "(x + y)*(x - y)", "w - w + u",
]  # fmt: skip
CORRELATED = [
    ("x*y", {"x": 1.0, "y": 2.0}, [[0.01, 0.005], [0.005, 0.04]]),
    ("x + y", {"x": 1.0, "y": 2.0}, [[0.01, -0.02], [-0.02, 0.04]]),
    ("x - y", {"x": 1.0, "y": 2.0}, [[0.01, 0.0199], [0.0199, 0.04]]),
    ("x/y + z", {"x": 1.0, "y": 2.0, "z": 3.0}, [[0.04, 0.01, 0.0], [0.01, 0.09, -0.02], [0.0, -0.02, 0.01]]),
]  # fmt: skip
NAMES = {
    name: getattr(umath, name)
    for name in "sin cos tanh exp log log10 sqrt atan atan2 hypot".split()
} | {"pi": 3.141592653589793}


def answer(expression: str, values: dict) -> dict:
    """What the package makes of it."""
    found = eval(expression, dict(NAMES), values)
    if not hasattr(found, "std_dev"):
        found = ufloat(found, 0)
    parts = dict.fromkeys(values, 0.0)
    for variable, part in found.error_components().items():
        for name, value in values.items():
            if value is variable:
                parts[name] = part
    return {
        "value": found.nominal_value,
        "uncertainty": found.std_dev,
        "contributions": parts,
        "text": f"{found:.2u}" if found.std_dev else None,
    }


def main() -> None:
    """Write the file."""
    values = {name: ufloat_fromstr(text) for name, text in VALUES.items()}
    rows = []
    for expression in EXPRESSIONS:
        words = {node.id for node in ast.walk(ast.parse(expression)) if isinstance(node, ast.Name)}
        names = [name for name in values if name in words]
        rows.append({
            "expression": expression,
            "given": {name: VALUES[name] for name in names},
            **answer(expression, {name: values[name] for name in names}),
        })  # fmt: skip
    correlated = []
    for expression, nominal, matrix in CORRELATED:
        made = dict(zip(nominal, correlated_values(list(nominal.values()), matrix), strict=True))
        found = answer(expression, made)
        correlated.append({
            "expression": expression, "nominal": nominal, "covariance": matrix,
            "value": found["value"], "uncertainty": found["uncertainty"],
        })  # fmt: skip
    readings = {
        text: [ufloat_fromstr(text).nominal_value, ufloat_fromstr(text).std_dev]
        for text in ["12.58+/-0.23", "12.58±0.23", "3.85e5+/-2.3e4", "(38.5+/-2.3)e4", "72.1(2.2)", "0.15(2)", "1.2(3)",
                     "6.022(4)e23", ".12(3)", "12(2)", "169.1(15)", "-3(1)", "1e5+/-1e2", "5.2(.3)"]
    }  # fmt: skip
    folder = Path(__file__).parent
    found = {"uncertainties": uncertainties.__version__, "expressions": rows, "correlated": correlated, "readings": readings}  # fmt: skip
    (folder / "uncertainties.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()

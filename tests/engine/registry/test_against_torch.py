"""Every recorded call gives torch's value, gradients, nodes, edges and saved fields."""

from __future__ import annotations

import importlib
import importlib.util
import json
import math
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "golden"))
from graph_cases import CALLS, observe

from tests.golden import by_version
from tests.sweep import sweep

RECORDED: dict[str, dict[str, Any]] = {
    seen["call"]: seen
    for seen in json.loads(CALLS.with_name("graphs.json").read_text(encoding="utf-8"))
}

# Where gradcli is meant to differ: the call, and why.
KNOWN_DIFFERENCES: dict[str, str] = {
    "torch.vander(v)": "torch's own vander writes over what it saved, and cannot be differentiated",
    "torch.div(x, y, rounding_mode=None)": "None means the plain quotient here, as when left out",
    "torch.where(m, xc, x)": "torch stops at an internal check of its own",
    "torch.sinc(z)": "torch's second derivative at 0 is nan, and loses its digits around",
    "torch.nn.functional.layer_norm(x, (3,), v, w)": "torch records gradients that have none",
    "2 % x": "torch has no rule where the number comes first",
    **dict.fromkeys(
        [
            "x.scatter(1, torch.tensor([[0], [1]]), y)",
            "x.scatter_add(1, torch.tensor([[0, 0], [1, 1]]), y)",
        ],
        "torch's backward refuses a source that is larger than the index",
    ),
}

# A call that passes through single precision anywhere rounds there, whatever dtype it ends in;
# the logarithm of an integer tensor is one such place.
TOLERANCE = {"float16": 2e-3, "float32": 3e-6, "complex64": 3e-6}
# Singular and eigenvectors are determined up to their signs, which LAPACK chooses.
UP_TO_SIGN = ("U", "Vh", "eigenvectors")
SINGLE = ("x32", "v32", "s32", "float32", "float()", "i **", "half()", "x16")


@pytest.fixture(scope="module")
def gradcli() -> Any:
    return importlib.import_module("gradcli")


@sweep("call", [call for call in RECORDED if call not in KNOWN_DIFFERENCES], often=2)
def test_call_is_torchs(call: str, gradcli: Any) -> None:
    assert not (found := compare(call, gradcli)), "\n".join(found)


@pytest.mark.long
@pytest.mark.needs("torch")
def test_torch_still_says_so() -> None:
    torch = importlib.import_module("torch")
    by_version.settle("graphs.json", [call for call in RECORDED if compare(call, torch)])


def compare(call: str, torch: Any) -> list[str]:
    """Where an implementation differs from the recording of one call."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seen = observe(call, torch)
    expected = {k: v for k, v in RECORDED[call].items() if k != "family"}
    least = 3e-6 if any(part in call for part in SINGLE) else 1e-9
    return differences(seen, expected, "", least)


def differences(seen: Any, expected: Any, at: str, least: float = 1e-9) -> list[str]:
    """Where two observations differ; numbers may differ by rounding."""
    if is_tensor(seen) and is_tensor(expected):
        for key in ("shape", "dtype", "grad_fn"):
            if seen.get(key) != expected.get(key):
                return [f"{at}.{key}: {seen.get(key)!r}, torch {expected.get(key)!r}"]
        tolerance = TOLERANCE.get(expected["dtype"], least)
        numbers = list(zip(flat(seen), flat(expected), strict=True))
        if at.endswith(UP_TO_SIGN):
            numbers = [(abs(one), abs(other)) for one, other in numbers]
        if all(close(*pair, tolerance) for pair in numbers):
            return []
        return [f"{at}: {seen['values']}, torch {expected['values']}"]
    if isinstance(seen, dict) and isinstance(expected, dict):
        found = []
        for key in dict.fromkeys([*expected, *seen]):
            if key not in seen or key not in expected:
                which = "missing" if key in expected else "unexpected"
                found.append(f"{at}.{key}: {which} ({expected.get(key, seen.get(key))!r:.200})")
            else:
                found += differences(seen[key], expected[key], f"{at}.{key}", least)
        return found
    if isinstance(seen, list | tuple) and isinstance(expected, list):
        if len(seen) != len(expected):
            return [f"{at}: {len(seen)} items, torch {len(expected)}"]
        return [
            line
            for k, (s, e) in enumerate(zip(seen, expected, strict=True))
            for line in differences(s, e, f"{at}[{k}]", least)
        ]
    same = type(seen) is type(expected) and (
        close(seen, expected, 1e-12) if isinstance(seen, float) else seen == expected
    )
    return [] if same else [f"{at}: {seen!r:.300}, torch {expected!r:.300}"]


def is_tensor(value: Any) -> bool:
    return isinstance(value, dict) and "values" in value


def flat(tensor: dict[str, Any]) -> list[Any]:
    if tensor["dtype"].startswith("complex"):
        return [part for value in tensor["values"] for part in value]
    return list(tensor["values"])


def close(seen: float, expected: float, tolerance: float) -> bool:
    if math.isnan(seen) or math.isnan(expected):
        return math.isnan(seen) and math.isnan(expected)
    return math.isclose(seen, expected, rel_tol=tolerance, abs_tol=tolerance)

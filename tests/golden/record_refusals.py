"""Record torch's refusals of the calls in refusals.txt: `python record_refusals.py` where torch is."""

from __future__ import annotations

import json
import warnings
from math import inf
from pathlib import Path
from typing import Any

CALLS = Path(__file__).with_name("refusals.txt")
RECORDED = CALLS.with_suffix(".json")


def calls() -> list[str]:
    """The calls, one a line; lines with a hash are titles."""
    lines = CALLS.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def refusal(call: str, torch: Any) -> list[str]:
    """[type, message] of what a call raises; empty where it does not raise."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            eval(call, {"torch": torch, "inf": inf})
    except Exception as error:
        return [type(error).__name__, str(error)]
    return []


if __name__ == "__main__":
    import torch

    found = {call: refusal(call, torch) for call in calls()}
    RECORDED.write_text(json.dumps(found, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")

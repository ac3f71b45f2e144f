"""Wrong calls are refused in torch's words, and what torch takes is taken.

LEFT says of which functions so many calls are answered otherwise: most of them are written in Python, and
fail somewhere in their bodies.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import gradcli
from tests.golden.calls import ACCEPTED, Called, answer, recorded

LEFT: dict[str, int] = json.loads(
    Path(__file__).with_name("calls_left.json").read_text(encoding="utf-8")
)
FUNCTIONS = recorded()


def differing(called: Called, said: list[str | None]) -> list[str]:
    """The calls that gradcli answers otherwise than torch."""
    found = []
    for call, expected in zip(called.calls(), said, strict=True):
        if expected is not None:
            got = answer(call, gradcli)
            # What torch takes may still be refused for its values.
            if got != expected and not (expected == ACCEPTED and got is None):
                found.append(f"{call}\n  torch:   {expected}\n  gradcli: {got}")
    return found


def check(functions: list[tuple[Called, list[str | None]]]) -> None:
    worse: dict[str, Any] = {}
    for called, said in functions:
        found = differing(called, said)
        if len(found) > LEFT.get(called.path, 0):
            worse[called.path] = found
    assert not worse, "\n".join(line for found in worse.values() for line in found)


@pytest.mark.parametrize("part", range(4))
def test_some_functions_are_called_as_torchs(part: int) -> None:
    check(FUNCTIONS[part::28])


@pytest.mark.long
@pytest.mark.parametrize("part", range(28))
def test_functions_are_called_as_torchs(part: int) -> None:
    check(FUNCTIONS[part::28])


if __name__ == "__main__":  # writes LEFT anew
    left = {c.path: n for c, said in FUNCTIONS if (n := len(differing(c, said)))}
    lines = ",\n".join(f" {json.dumps(path)}: {n}" for path, n in sorted(left.items()))
    Path(__file__).with_name("calls_left.json").write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
    every = sum(s is not None for _, said in FUNCTIONS for s in said)
    print(f"{every - sum(left.values())} of {every} calls are answered as torch's")

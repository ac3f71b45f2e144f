"""Random programs of views, in-place writes, hooks and passes show what they showed in torch."""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent / "golden"))
import programs

from tests.golden import by_version
from tests.sweep import sweep

RECORDED: list[dict[str, list[str]]] = json.loads(
    Path(programs.__file__).with_name("programs.json").read_text(encoding="utf-8")
)

# Where gradcli is meant to differ: the program's number, and why.
KNOWN_DIFFERENCES: dict[int, str] = {}


@pytest.fixture(scope="module")
def gradcli() -> Any:
    return importlib.import_module("gradcli")


@sweep("number", [number for number in range(len(RECORDED)) if number not in KNOWN_DIFFERENCES])
def test_program_shows_what_torch_shows(number: int, gradcli: Any) -> None:
    code, shown = RECORDED[number]["code"], RECORDED[number]["shown"]
    assert "\n".join(programs.show(code, gradcli)) == "\n".join(shown), "\n".join(code)


@pytest.mark.long
@pytest.mark.needs("torch")
def test_torch_still_shows_so() -> None:
    torch = importlib.import_module("torch")
    known = by_version.load(by_version.HERE / "programs.json")
    changed = [q for q, one in known.items() if programs.show(one["code"], torch) != one["shown"]]
    by_version.settle("programs.json", changed)

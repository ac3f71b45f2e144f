"""What torch said when it was asked, and what gradcli says (`golden/snippets/*.md` asks).

The answers are recorded by `golden/record.py`; where torch can be imported, it is asked again.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent / "golden"))
import asking

from tests.golden import by_version
from tests.sweep import sweep

QUESTIONS = asking.snippets()
ANSWERS: dict[str, list[str]] = json.loads(asking.ANSWERS.read_text(encoding="utf-8"))

# Where gradcli is meant to differ: the snippet, and why.
KNOWN_DIFFERENCES: dict[str, str] = {
    "modes/inference tensors outside inference mode": (
        "torch writes before it refuses to; held by tests/engine/core/test_modes.py instead"
    ),
    "nodes/nodes take no attributes and are not made by hand": (
        "nodes are Python objects, which take attributes"
    ),
}
# The longest of them: half of the time of all.
LONG = {
    "views/gradients through writes to views, checked numerically",
    "checkpoint/nested checkpoint",
    "function/deep graphs of custom nodes",
    "engine_more/deep reentrant",
    "function_transforms/every rule in every transform",
}
ASKED = [identity for identity in QUESTIONS if identity not in KNOWN_DIFFERENCES]


@pytest.fixture(scope="module")
def gradcli() -> Any:
    return importlib.import_module("gradcli")


@sweep("identity", [identity for identity in ASKED if identity not in LONG], often=2)
def test_gradcli_says_what_torch_says(identity: str, gradcli: Any) -> None:
    said = asking.ask(QUESTIONS[identity], gradcli)
    assert "\n".join(said) == "\n".join(ANSWERS[identity])


@pytest.mark.long
@pytest.mark.parametrize("identity", sorted(LONG))
def test_gradcli_says_at_length_what_torch_says(identity: str, gradcli: Any) -> None:
    assert "\n".join(asking.ask(QUESTIONS[identity], gradcli)) == "\n".join(ANSWERS[identity])


def test_every_question_has_an_answer() -> None:
    assert list(QUESTIONS) == list(ANSWERS)
    assert set(KNOWN_DIFFERENCES) <= set(QUESTIONS)


@pytest.mark.long
@pytest.mark.needs("torch")
def test_torch_still_says_so() -> None:
    import record

    torch = importlib.import_module("torch")
    changed = [i for i, code in QUESTIONS.items() if record.settled(code, torch) != ANSWERS[i]]
    by_version.settle("torch_says.json", changed)

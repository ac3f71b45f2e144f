"""Programs of one line answer what torch answers: each row of `golden/answers.txt` was a fault once found."""

from __future__ import annotations

import importlib
import importlib.util
import json

import pytest

import gradcli
from tests.golden import by_version
from tests.golden.record_answers import RECORDED, answer, programs
from tests.sweep import sweep

EXPECTED: dict[str, str] = json.loads(RECORDED.read_text(encoding="utf-8"))


@sweep("program", programs)
def test_answers_as_torch(program: str) -> None:
    assert answer(program, gradcli) == EXPECTED[program]


def test_every_program_is_recorded_once() -> None:
    assert list(EXPECTED) == programs()


@pytest.mark.long
@pytest.mark.needs("torch")
def test_torch_still_answers_so() -> None:
    torch = importlib.import_module("torch")
    changed = [program for program in programs() if answer(program, torch) != EXPECTED[program]]
    by_version.settle("answers.json", changed)

"""Transforms that close over variables of other levels: every combination gives what PyTorch recorded."""

from __future__ import annotations

import importlib
import json
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import language
from tests.calculus.level_programs import ANSWERS, combinations, plain, programs, value
from tests.sweep import sweep

RECORDED = json.loads(ANSWERS.read_text())


def same(found: Any, expected: Any) -> None:
    """The same numbers, flags and structure, or a refusal in the same words."""
    if isinstance(expected, list):
        assert isinstance(found, list) and len(found) == len(expected)
        for f, e in zip(found, expected, strict=True):
            same(f, e)
    elif isinstance(expected, float):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)
    else:
        assert found == expected


def check(text: str, expected: Any) -> None:
    try:
        found = plain(language.run(language.parse(text), {}).value)
    except Exception as error:
        assert isinstance(expected, str) and expected.partition(": ")[2] in str(error)
        return
    same(found, expected)


@pytest.mark.filterwarnings("ignore")
@sweep("name", lambda: programs(), parts=1)
def test_programs(name: str) -> None:
    gradcli.set_default_dtype(gradcli.float64)
    check(programs()[name], RECORDED[name])


@pytest.mark.filterwarnings("ignore")
@sweep(("name", "text"), lambda: combinations().items(), parts=32, often=1)
def test_combinations(name: str, text: str) -> None:
    gradcli.set_default_dtype(gradcli.float64)
    check(text, RECORDED[name])


@pytest.mark.long
@pytest.mark.needs("torch")
@pytest.mark.filterwarnings("ignore")
@sweep(("name", "text"), lambda: (programs() | combinations()).items(), parts=2)
def test_records_are_what_torch_says(name: str, text: str) -> None:
    torch = importlib.import_module("torch")
    torch.set_default_dtype(torch.float64)
    same(value(text, torch), RECORDED[name])

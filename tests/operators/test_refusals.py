"""Calls that torch refuses are refused with its error and its words."""

from __future__ import annotations

import json

import pytest

import gradcli
from tests.golden.record_refusals import RECORDED, calls, refusal

EXPECTED = json.loads(RECORDED.read_text(encoding="utf-8"))


@pytest.mark.parametrize("call", calls())
def test_refused_as_by_torch(call: str) -> None:
    assert refusal(call, gradcli) == EXPECTED[call]

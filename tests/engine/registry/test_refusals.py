"""Calls that torch refuses are refused with its error and its words."""

from __future__ import annotations

import json

import gradcli
from tests.golden.record_refusals import RECORDED, calls, refusal
from tests.sweep import sweep

EXPECTED = json.loads(RECORDED.read_text(encoding="utf-8"))


@sweep("call", calls)
def test_refused_as_by_torch(call: str) -> None:
    assert refusal(call, gradcli) == EXPECTED[call]

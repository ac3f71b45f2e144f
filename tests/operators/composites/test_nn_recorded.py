"""Neural networks' functions answer as PyTorch did: tests/golden/nn.json, by record_nn.py."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np

import gradcli
from tests.fuzz import nn_against_torch as fuzz
from tests.golden import record_nn
from tests.sweep import sweep

RECORDED = json.loads(record_nn.PATH.read_text())


def named(row: dict[str, Any]) -> str:
    """The call, and what it takes: the same call stands there with many operands."""
    shapes = (
        f"{name}: {kind}{shape}"
        for name, (kind, shape, _) in zip("abcd", row["operands"], strict=False)
    )
    return f"{row['call']} of {', '.join(shapes)}"


@sweep("row", RECORDED, name=named)
def test_as_torch(row: dict[str, Any]) -> None:
    arrays = [record_nn.read(stored) for stored in row["operands"]]
    theirs = {
        stage: tuple(found)
        if found and isinstance(found[0], str)
        else [(kind, record_nn.read(values)) for kind, values in found]
        for stage, found in row["torch"].items()
    }
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        ours = fuzz.answer(gradcli, row["call"], arrays, row["leaves"])
    assert fuzz.differences(row["call"], arrays, theirs, ours) == []


def test_every_call_is_recorded() -> None:
    assert {row["call"] for row in RECORDED} >= {text for text, _ in fuzz.CALLS}

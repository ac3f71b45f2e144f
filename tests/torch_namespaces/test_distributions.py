"""torch.distributions: values, draws, gradients and refusals are PyTorch's."""

from __future__ import annotations

import json
from typing import Any

import pytest

import gradcli as torch
from gradcli import distributions
from tests.golden import record_distributions

RECORDED = json.loads(record_distributions.PATH.read_text())


def close(own: Any, said: Any) -> bool:
    if isinstance(said, list):
        return len(own) == len(said) and all(map(close, own, said))
    return own == said or (
        isinstance(said, float) and own == pytest.approx(said, rel=1e-12, abs=1e-15, nan_ok=True)
    )


@pytest.mark.parametrize("text", record_distributions.CASES)
def test_answers_are_pytorchs(text: str) -> None:
    own = record_distributions.answer(text, torch, distributions)
    assert close(own, RECORDED[text]), (own, RECORDED[text])


def test_what_is_not_here_is_said() -> None:
    with pytest.raises(AttributeError, match=r"gradcli does not have torch\.distributions\.Beta"):
        distributions.Beta  # noqa: B018
    one = distributions.Bernoulli(0.5)
    with pytest.raises(NotImplementedError, match=r"No KL\(p \|\| q\) .* has that of two Normal"):
        distributions.kl_divergence(one, one)

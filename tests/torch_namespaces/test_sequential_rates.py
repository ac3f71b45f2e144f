"""Schedulers after one another: each begins from the first rates, whatever the one before left."""

from __future__ import annotations

from typing import Any

import pytest

import gradcli as torch

S = torch.optim.lr_scheduler

# (the two, what the rate is from step 2 on, the next beginning at 3): PyTorch 2.13.0's.
PAIRS: list[tuple[Any, Any, list[float]]] = [
    (
        lambda o: S.LinearLR(o, 0.1, total_iters=3),
        lambda o: S.CosineAnnealingLR(o, 5),
        [0.07, 0.1, 0.09045084971874738, 0.06545084971874737],
    ),
    (
        lambda o: S.LinearLR(o, 0.1, total_iters=3),
        lambda o: S.ExponentialLR(o, 0.5),
        [0.07, 0.1, 0.05, 0.025],
    ),
    (
        lambda o: S.ConstantLR(o, 0.5, 9),
        lambda o: S.MultiplicativeLR(o, lambda k: 0.5),
        [0.05, 0.025, 0.0125, 0.00625],
    ),
    (
        lambda o: S.CosineAnnealingWarmRestarts(o, 4),
        lambda o: S.StepLR(o, 1, 0.5),
        [0.05, 0.1, 0.05, 0.025],
    ),
]


@pytest.mark.parametrize(("first", "second", "rates"), PAIRS)
def test_rates(first: Any, second: Any, rates: list[float]) -> None:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
    scheduler = S.SequentialLR(optimizer, [first(optimizer), second(optimizer)], [3])
    found = []
    for _ in range(5):
        optimizer.step()
        scheduler.step()
        found.append(optimizer.param_groups[0]["lr"])
    assert found[1:] == pytest.approx(rates, rel=1e-12)

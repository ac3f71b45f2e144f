"""Results lie in memory as torch's do: what `view` takes, and what a graph looks like, depends on it."""

from __future__ import annotations

import json
from typing import Any

import pytest

import gradcli
from tests.golden.record_strides import LAYOUTS, RECORDED, answer
from tests.sweep import sweep

EXPECTED: dict[str, dict[str, str]] = json.loads(RECORDED.read_text(encoding="utf-8"))
# By function and layout, what is laid out otherwise, and why.
LEFT = {
    ("diagonal_scatter", "sliced"): "torch copies the gaps of its operand, too",
    ("select_scatter", "sliced"): "torch copies the gaps of its operand, too",
    (
        "nn.functional.rms_norm",
        "reversed",
    ): "torch has a kernel of its own where nothing is recorded",
    ("nn.functional.rms_norm", "turned"): "torch has a kernel of its own where nothing is recorded",
    ("native_batch_norm", "by row"): "torch takes a weight of more dimensions",
    ("mm", "expanded"): "NumPy's empty arrays have no strides, and none change",
    ("mm", "first expanded"): "NumPy's empty arrays have no strides, and none change",
}


def calls() -> list[tuple[str, str]]:
    """Every recorded call with its layout."""
    known = [(text, layout) for text, found in EXPECTED.items() for layout in found]
    return [
        (text, layout) for text, layout in known if (text.partition("(")[0], layout) not in LEFT
    ]


@sweep(("text", "layout"), calls, name=lambda text, layout: f"{text} | {layout}", parts=30, often=1)
def test_strides_are_torchs(text: str, layout: str) -> None:
    assert answer(text, layout, gradcli) == EXPECTED[text][layout]


def test_every_layout_is_recorded() -> None:
    assert set(LAYOUTS) == {layout for found in EXPECTED.values() for layout in found}


T = gradcli.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1)
ROWS = T.contiguous()


@pytest.mark.parametrize(
    ("result", "strides"),
    [
        (T * ROWS, (1, 12, 4)),
        (ROWS * T, (6, 3, 1)),
        (T + 1, (1, 12, 4)),
        (2 - T, (1, 12, 4)),
        (T * ROWS[:1], (1, 12, 4)),
        (T < ROWS, (1, 12, 4)),
        (gradcli.where(T > 1, T, ROWS), (1, 12, 4)),
        (T.norm(dim=1), (3, 1)),
        (T.masked_fill(T > 1, 0.0), (6, 3, 1)),
        (gradcli.ones(2, 3, 4, 5)[:, :, :, 1][:, 1:1, :], (60, 20, 5)),
    ],
)
def test_the_first_operand_decides(result: Any, strides: tuple[int, ...]) -> None:
    assert result.stride() == strides


@pytest.mark.parametrize("first", [T, T.requires_grad_(False).clone().requires_grad_()])
def test_recorded_or_not(first: Any) -> None:
    other = ROWS.clone().requires_grad_(first.requires_grad)
    assert (first * other).stride() == (1, 12, 4)
    assert (other / first).stride() == (6, 3, 1)


def test_an_output_is_resized_where_it_lies() -> None:
    base = gradcli.zeros(2, 3)
    view = base[:, 1]
    gradcli.linspace(0, 1, 2, out=view)
    assert base.tolist() == [[0, 0, 0], [0, 1, 0]]
    with pytest.warns(UserWarning, match="was resized"):
        gradcli.linspace(1, 3, 3, out=view)
    assert view.tolist() == [1, 2, 3] and base.tolist() == [[0, 1, 2], [3, 1, 0]]
    turned = gradcli.arange(6.0).reshape(2, 3).t()
    assert turned.resize_(2, 2).tolist() == [[0, 1], [2, 3]]
    assert gradcli.arange(6.0)[1:3].resize_(8)[:5].tolist() == [1, 2, 3, 4, 5]

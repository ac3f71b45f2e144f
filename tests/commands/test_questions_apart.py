"""A question is answered alike, whatever was asked before it in the same process."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import gradcli


@pytest.mark.parametrize(
    ("before", "question", "answer"),
    [
        ("2*x*(x + y)", lambda: gradcli.diff("x**2*y", along="1,2"), "2*x*(y + x)"),
        ("2*x*(y + x)", lambda: gradcli.simplify("2*x*(x + y)*1"), "2*x*(x + y)"),
    ],
)
def test_what_was_asked_before_changes_no_answer(
    before: str, question: Callable[[], object], answer: str
) -> None:
    gradcli.simplify(before)
    assert str(question()) == answer

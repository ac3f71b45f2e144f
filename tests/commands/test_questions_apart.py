"""A question is answered alike, whatever was asked before it in the same process."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import gradcli
from gradcli.language.located_errors import LanguageError


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


def test_a_name_that_no_text_has_is_refused() -> None:
    with pytest.raises(LanguageError, match="fmt is not a variable"):
        gradcli.diff("x**2", fmt="numpy")


def test_an_array_in_double_precision_is_evaluated_so() -> None:
    assert gradcli.evaluate("x - 16777216", x=np.array([16777217.0])).tolist() == [1.0]

"""What is written otherwise by those who price options: dates as values, N(d1), orders of derivatives."""

from __future__ import annotations

import json

import pytest

from tests.commands.running import outcome

# (arguments, the exit code, a piece of what is said)
SAID = [
    ("eval T --T 2024-12-31", 2, "2024-12-31 looks like a date, and a value is a number"),
    ("eval T --T 1,2024-12-31", 2, "a difference has blanks: 2024 - 12 - 31"),
    ("grad T --T 2024-01-05", 2, "a difference has blanks: 2024 - 1 - 5"),
    ("eval T --T 2024-12", 0, "2012"),
    ("eval T --T 2024-13-31", 0, "1980"),
    ("eval N(d1) --d1 1", 2, "the normal distribution function is special.ndtr, here: special.ndtr(d1)"),
    ("eval S*N(d)-K*N(-d) --d 1 --S 1 --K 1", 2, "here: S*special.ndtr(d)-K*special.ndtr(-d)"),
    ("eval S*N(d)-K*N(-d) --d 1 --S 1 --K 1 --math", 2, "here: S*special.ndtr(d) - K*special.ndtr(-d)"),
    ("eval 2*N(-d) --d 1 --math", 2, "here: 2*special.ndtr(-d)"),
    ("eval N(2) --N 3 --math", 0, "6"),
    ("eval Phi(x) --x 0", 2, "here: special.ndtr(x)"),
    ("eval Phi(x) --x 0 --math", 0, "0.5"),
    ("eval cdf(x) --x 0", 2, "here: special.ndtr(x)"),
    ("eval cuberoot(x) --x 8", 2, "here it is written sign(x)*abs(x)**(1/3)"),
    ("eval cuberoot(x) --x 8 --math", 0, "2"),
    ("grad S**3*K --S 2 --K 1 --order 2", 0, "S.grad2 = 12\nK.grad2 = 0"),
    ("grad S**3*K --S 2 --K 1 --order 3 --plain", 0, "S.grad\t6\nK.grad\t0"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "code", "piece"), SAID, ids=[line for line, *_ in SAID])
def test_what_is_said(line: str, code: int, piece: str) -> None:
    found = outcome(*line.split())
    assert found[0] == code and piece in found[1] + found[2], found


def test_a_date_with_blanks_is_arithmetic() -> None:
    assert outcome("eval", "T", "--T", "2024 - 12 - 31")[1] == "1981\n"


def test_json_has_the_order() -> None:
    found = json.loads(outcome("grad", "S**3", "--S", "2", "--order", "2", "--json")[1])
    assert found["wrt"]["S"]["grad2"] == found["wrt"]["S"]["grad"] == 12

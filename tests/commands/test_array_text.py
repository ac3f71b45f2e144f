"""Arrays on a terminal: aligned, rounded to six digits, shortened within the width. A pipe has them whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradcli.commands.array_text import DIGITS, lines_of
from gradcli.commands.output import numerals

GOLDEN = Path(__file__).parents[1] / "golden" / "arrays.txt"
ARRAYS: dict[str, Any] = {
    "short": np.array([0.0, 4, 8, 12]),
    "vector": np.sin(np.arange(50.0)) * np.arange(50.0),
    "long": np.arange(2000.0) ** 3,
    "matrix": np.tanh(np.sin(np.arange(25.0)).reshape(5, 5)),
    "large": np.cos(np.arange(3600.0)).reshape(60, 60),
    "slices": np.arange(24.0).reshape(2, 3, 4) / 8,
    "special": np.array([[np.nan, 1e-17], [-np.inf, 2.5], [123456789.0, 0]]),
    "complex": np.array([[1 + 1j, 2 - 22.5j], [3, 4j]]),
    "truth": np.array([[True, False]]),
    "nothing": np.zeros((0, 3)),
}


def spell(array: Any) -> list[str]:
    return numerals(array, DIGITS)


WIDTHS = (60, 80, 200)


def drawn() -> str:
    """Every array at every width; `python -m tests.commands.test_array_text` writes it."""
    parts = []
    for width in WIDTHS:
        for name, array in ARRAYS.items():
            lines = lines_of(name, array, spell, width, False)
            parts += [f"-- {name}, {width} columns", *lines]
    return "\n".join(parts) + "\n"


def test_as_it_was() -> None:
    assert drawn() == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_wider_than_the_terminal(width: int) -> None:
    for name, array in ARRAYS.items():
        assert max(map(len, lines_of(name, array, spell, width, False))) <= width


def test_points_stand_below_each_other() -> None:
    _, *rows = lines_of("m", ARRAYS["matrix"], spell, 80, False)
    places = [[i for i, letter in enumerate(row) if letter == "."] for row in rows]
    assert len({tuple(p) for p in places[1:]}) == 1


def test_what_is_not_finite_is_red() -> None:
    text = "\n".join(lines_of("m", ARRAYS["special"], spell, 80, True))
    assert "\033[31mnan\033[0m" in text and "\033[31m-inf\033[0m" in text


if __name__ == "__main__":
    GOLDEN.write_text(drawn(), encoding="utf-8")

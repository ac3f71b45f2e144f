"""Arrays as text and as JSON."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from gradcli.graphs import value_text
from tests.sweep import sweep


@sweep(
    ("array", "text"),
    [
        (np.float64(28), "28"),
        (np.float64(0.1), "0.1"),
        (np.float32(0.1), "0.1"),
        (np.float16(0.1), "0.1"),
        (np.float64(-0.0), "0"),
        (np.float64("nan"), "nan"),
        (np.array([np.inf, -np.inf]), "[inf, -inf]"),
        (np.int64(-3), "-3"),
        (np.array([True, False]), "[True, False]"),
        (np.complex128(1 - 2j), "1-2j"),
        (np.complex64(1.5 + 0j), "1.5+0j"),
        (np.arange(10.0), "[0, 1, 2, …, 7, 8, 9]"),
        (np.arange(6.0).reshape(2, 3), "[[0, 1, 2], [3, 4, 5]]"),
        (np.zeros((0,)), "[]"),
        (np.zeros((2, 0)), "[] of shape (2, 0)"),
        (np.zeros((1, 1, 1)), "[[[0]]]"),
        (np.arange(64.0).reshape(8, 8)[:, :1], "[[0], [8], [16], …, [40], [48], [56]]"),
        (np.float64(1e16), "1e+16"),
        (np.float64(1 / 3), "0.3333333333333333"),
    ],
    parts=1,
)
def test_text(array: Any, text: str) -> None:
    assert value_text.text(array) == text


@pytest.mark.parametrize(
    ("value", "precision", "text"),
    [(1 / 3, 4, "0.3333"), (-1e-30, 3, "-1e-30"), (-0.0, 3, "0"), (1234567.0, 6, "1.23457e+06")],
)
def test_precision(value: float, precision: int, text: str) -> None:
    assert value_text.text(np.float64(value), precision) == text


@sweep(
    ("array", "wanted"),
    [
        (np.float32(0.1), 0.1),
        (np.array([[1.0, np.nan], [np.inf, -np.inf]]), [[1.0, "nan"], ["inf", "-inf"]]),
        (np.array([1 + 2j]), [[1.0, 2.0]]),
        (np.array([True]), [True]),
        (np.array(3), 3),
        (np.zeros((0, 3)), []),
        (np.zeros((2, 0)), [[], []]),
    ],
    parts=1,
)
def test_json(array: Any, wanted: Any) -> None:
    assert value_text.to_json(array) == wanted
    json.dumps(value_text.to_json(array), allow_nan=False)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_json_round_trips_in_the_dtype(dtype: str) -> None:
    rng = np.random.default_rng(0)
    array = (rng.standard_normal((5, 7)) * 10.0 ** rng.integers(-4, 4, (5, 7))).astype(dtype)
    again = np.array(json.loads(json.dumps(value_text.to_json(array))), dtype=dtype)
    assert np.array_equal(again, array)


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1_500_000, "1.4 MiB"), (2**40, "1.0 TiB")],
)
def test_bytes(count: int, text: str) -> None:
    assert value_text.bytes_text(count) == text


@pytest.mark.parametrize(
    ("value", "wanted"),
    [(None, None), ((0, -1), [0, -1]), (float("inf"), "inf"), (1 + 2j, [1.0, 2.0]), ("sum", "sum")],
)
def test_scalars(value: Any, wanted: Any) -> None:
    assert value_text.scalar_to_json(value) == wanted


@pytest.mark.parametrize(
    ("array", "shown"),
    [
        (
            [[0.35581234, -0.16081234], [0.55111234, 0.28451234]],
            "[[0.356, -0.161], [0.551, 0.285]]",
        ),
        ([[1e-5 / 3, 0.1], [-2e-7 / 3, 2 / 3]], "[[3.33e-06, 0.1], [-6.67e-08, 0.667]]"),
        ([1.0, 2.0], "[1, 2]"),
        (list(range(7)), "[0, 1, …, 6] ‖9.54‖"),
    ],
)
def test_few_numbers_are_shown_where_there_is_room(array: list[Any], shown: str) -> None:
    values = np.array(array)
    assert value_text.brief(values, room=value_text.room_of(values, 30)) == shown

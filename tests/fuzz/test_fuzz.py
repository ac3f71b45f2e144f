"""A little of every generator in the default run, with a seed that stays; what a fresh one finds becomes
a row of a table."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gradcli.commands import COMMANDS
from gradcli.engine.registry import table
from tests import fuzz
from tests.fuzz import (
    command_lines,
    inplace,
    interrupts,
    mathematics,
    matrices,
    pairs,
    tables,
    text_growth,
    texts_sweep,
)
from tests.fuzz import sweep as forms
from tests.sweep import sweep

TOP = Path(__file__).parents[2]


def test_every_generator_can_be_run() -> None:
    assert "text_growth" in fuzz.generators()
    assert all(callable(module.run) for module in fuzz.generators().values())


def test_the_same_seed_tries_the_same_cases() -> None:
    def drawn() -> list[float]:
        return [r.random() for r, _ in zip(fuzz.cases(5, 60), range(4), strict=False)]

    assert drawn() == drawn()


def test_a_round_goes_on_where_it_has_stopped(monkeypatch, capsys) -> None:
    whole = list(fuzz.once_round("abcdef", 5, 60))
    monkeypatch.setattr(fuzz, "count", 4)
    first = list(fuzz.once_round("abcdef", 5, 0))
    monkeypatch.setattr(fuzz, "start", 4)
    assert first + list(fuzz.once_round("abcdef", 5, 0)) == whole != list("abcdef")
    assert capsys.readouterr().out == "6 of 6\n4 of 6: --start 4\n6 of 6\n"


@pytest.mark.long
def test_programs_of_all_ways_reach_every_row_with_a_rule() -> None:
    """A few hundred: all of `pairs.turns`, of which there is one in three cases of five."""
    table.load()
    rows = {r.name for r in table.PRIMITIVES if r.vjps}
    reached = set().union(*(pairs.rows_reached(turn) for turn in pairs.turns()))
    assert rows - reached == set(pairs.UNREACHED)
    assert len(pairs.turns()) < 350 and all(pairs.UNREACHED.values())


def test_a_program_that_takes_too_long_is_stopped() -> None:
    with pytest.raises(fuzz.TooLong, match=r"is not done in 0\.05 s"), fuzz.limited(0.05):
        while True:
            try:
                sum(range(1000))
            except Exception:
                pytest.fail("taken for a refusal")


def test_a_program_that_takes_the_memory_is_a_failure() -> None:
    case = pairs.Case("sum(x)*ones(40000, 40000)", {"x": np.ones(2)})
    assert "out of memory" in pairs.failures(case)["tape"]
    assert np.empty(2**28, np.uint8).size == 2**28  # the bound is gone again


@pytest.mark.long
def test_a_few_command_lines(monkeypatch) -> None:
    monkeypatch.setattr(fuzz, "count", 6)
    assert list(command_lines.run(12, 0)) == []


@pytest.mark.long
def test_command_lines_reach_every_command() -> None:
    missing = set(COMMANDS)
    for n in range(400):
        missing -= set(command_lines.command_line(random.Random(f"reach {n}")).argv)
        if not missing:
            return
    assert not missing


def test_a_few_interrupts(monkeypatch) -> None:
    monkeypatch.setattr(fuzz, "count", 2)
    assert list(interrupts.run(2, 0)) == []


@pytest.mark.long
def test_a_few_programs_of_views_and_writes(monkeypatch) -> None:
    monkeypatch.setattr(fuzz, "count", 10)
    assert list(inplace.run(3, 0)) == []


@sweep("first", [" ", "\t", "\\\n", "\n", "#", "'\\", '"""', "1_", "f'{x}'", "x ="], parts=1)
@pytest.mark.parametrize("read", [text_growth.program, text_growth.value])
def test_reading_is_linear(read, first) -> None:
    assert text_growth.growth(read, first, "") is None


@pytest.mark.long
@sweep("text", lambda: forms.texts()[::80], parts=2)
def test_every_form_of_some_samples(text) -> None:
    assert list(forms.failures(text)) == []


@pytest.mark.long
@sweep("name", ["reshape(randn(2,3), (-1,))", "sin"], parts=1)
def test_texts_of_some_calls(name) -> None:
    assert list(texts_sweep.failures(name)) == []


@pytest.mark.long
def test_a_few_texts() -> None:
    """In a process of its own, as they run by themselves: the default dtype is the process's."""
    argv = [sys.executable, "-m", "tests.fuzz", "--cases", "40", "--seed", "3", "texts"]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=TOP, check=False)
    assert done.returncode == 0 and "texts: 0 failures" in done.stdout, done.stdout + done.stderr


def test_a_wrong_batching_rule_is_found(monkeypatch) -> None:
    table.load()
    flip = next(row for row in table.PRIMITIVES if row.name == "flip")
    monkeypatch.setattr(flip, "batching", "elementwise")
    found = next(forms.failures("flip(randn(2,3), (0,))"))
    assert "vmap of it over x0 by 0, entry 0" in found


def test_a_refusal_in_numpys_words_is_found(monkeypatch) -> None:
    table.load()
    flip = next(row for row in table.PRIMITIVES if row.name == "flip")
    monkeypatch.setattr(
        flip, "batching", lambda row, operands, level: np.add(np.ones(2), np.ones(3))
    )
    said = forms.refused(pairs.Case("flip(x, (0,))", {"x": np.ones(2)}))
    assert "mapped, in words of Python's: ValueError in test_fuzz.<lambda>: operands could" in said


def test_a_refusal_in_words_of_ours_is_none() -> None:
    case = pairs.Case("dot(x, y)", {"x": np.ones(2), "y": np.ones(3)})
    assert forms.wrong(case, None) == ""


@pytest.mark.long
def test_a_few_expressions_of_matrices(monkeypatch) -> None:
    monkeypatch.setattr(fuzz, "count", 10)
    assert list(matrices.run(4, 0)) == []


@pytest.mark.long
def test_a_few_tables(monkeypatch) -> None:
    monkeypatch.setattr(fuzz, "count", 40)
    assert list(tables.run(1, 0)) == []


def test_a_number_that_is_read_wrong_is_found(tmp_path: Path) -> None:
    table = tables.Text(b"x,y\n1,2\n3,5\n4,5\n", {"x": [1, 3, 4], "y": [2, 4, 5]}, ",", frozenset())
    (tmp_path / "t.csv").write_bytes(table.content)
    assert tables.reading(tmp_path / "t.csv", table) == "y: row 1 is np.float64(5.0), not 4; said: "
    assert tables.streaming(tmp_path / "t.csv", table) == ""


@sweep(("number",), [(k,) for k in range(500)], parts=10, often=1)
def test_formulas_of_matrices_and_indices_have_the_values_of_numpy(number: int) -> None:
    found = mathematics.case(random.Random(f"einsum {number}"))
    assert found is None, found

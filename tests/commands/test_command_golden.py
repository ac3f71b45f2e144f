"""What the commands print, byte for byte, on a terminal and in a pipe (tests/golden/cli)."""

from __future__ import annotations

import pytest

from tests.commands.cli_cases import CASES, FOLDER, FORMS
from tests.sweep import sweep


@pytest.mark.parametrize("form", FORMS)
@sweep("name", CASES, parts=6, often=1)
def test_golden(name, form):
    path = FOLDER / f"{name}.{form}.txt"
    assert FORMS[form](CASES[name]) == path.read_text(encoding="utf-8")


def test_no_file_is_left_over():
    wanted = {f"{name}.{form}.txt" for name in CASES for form in FORMS}
    assert {path.name for path in FOLDER.iterdir()} == wanted

"""Readers that can be installed in a minute, on all formulas and on the smaller graphs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.readers.__main__ import told, written
from tests.readers.cases import FORMULAS
from tests.readers.readers import READERS, Reader


def named(name: str, form: str) -> Reader:
    return next(r for r in READERS if (r.name, r.reads) == (name, form))


QUICK = [("Graphviz", "dot"), ("rsvg-convert", "svg"), ("CairoSVG", "svg"), ("KaTeX", "latex"),
         ("gcc", "c"), ("tcc", "c"), ("g++", "c"), ("Python", "numpy")]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(("name", "form"), QUICK)
def test_a_reader_shows_what_is_meant(name: str, form: str, tmp_path: Path) -> None:
    reader = named(name, form)
    if not reader.installed:
        pytest.skip(f"{name} is not installed")
    for number, (case, text, said) in enumerate(written(form)):
        if case == "3,000 nodes":  # minutes, for some
            continue
        folder = tmp_path / str(number)
        folder.mkdir()
        answer = told(reader, case, text, said, folder)
        assert not answer.startswith("WRONG"), (case, answer, text)


@pytest.mark.long
def test_katex_typesets_every_formula(tmp_path: Path) -> None:
    """In its strict mode, where an unknown letter or command is an error."""
    reader = named("KaTeX", "latex")
    if not reader.installed:
        pytest.skip("KaTeX is not in NODE_PATH")
    found = {
        case: told(reader, case, text, said, tmp_path) for case, text, said in written("latex")
    }
    assert found == dict.fromkeys(FORMULAS, "right")


def test_what_a_reader_refuses_is_wrong_unless_it_was_said() -> None:
    def refuses(text: str, folder: Path) -> str:
        return "no"

    reader, here = Reader("Mermaid in Chromium", "mermaid", refuses, ()), Path()
    note = "gradcli: note: Mermaid draws graphs of 500 edges at most, and this one has 745"
    assert told(reader, "", "graph", note, here) == "said: no"
    assert told(reader, "", "graph", "", here) == "WRONG: no"
    assert told(reader, "", "", "gradcli: error: C has no function for digamma", here) == "said"
    assert told(reader, "", "", "", here).startswith("WRONG")

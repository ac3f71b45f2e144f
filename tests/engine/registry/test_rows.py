"""The table's rows: each has a name of its own, and says how a derivative spells it."""

from __future__ import annotations

import re
from collections import Counter

from gradcli.engine.registry import table
from gradcli.formulas.algebra.algebra import number
from gradcli.formulas.lift import formulas
from gradcli.formulas.lift.symbolic_rules import RULES
from tests.sweep import sweep

table.load()
SPELLED = [row for row in table.PRIMITIVES if row.symbolic]


def test_names_are_unique() -> None:
    counts = Counter(row.name for row in table.PRIMITIVES)
    assert [name for name, count in counts.items() if count > 1] == []


def test_outputs_have_names_of_their_own() -> None:
    """A rule asks for an operand or an output by its name."""
    rows = [r for r in table.PRIMITIVES if {r.names[i] for i in r.tensors} & {*r.outputs}]
    assert [r.name for r in rows] == []


@sweep("row", SPELLED, name=lambda row: row.name)
def test_spelling_can_be_read(row: table.Row) -> None:
    """By a form, by a function of the language and its options, or by a formula of the row's parameters."""
    if row.symbolic in RULES:
        return
    word, is_call, options = row.symbolic.partition(":")
    if is_call:
        assert word.removeprefix("torch.").removesuffix("[0]") in table.FUNCTIONS
        assert len(options.split()) in (0, row.kinds.count("option"))
        return
    names = set(re.findall(r"[A-Za-z_][\w.]*", re.sub(r"'\w*'", "", row.symbolic)))
    assert names - {"if", "else", "pi"} <= {*row.names, *table.FUNCTIONS}
    args = [1.5 if kind == "option" else number(2) for kind in row.kinds]
    assert formulas.read(row.symbolic, row.names, args).shape == ()


def test_every_form_spells_a_row() -> None:
    assert set(RULES) <= {row.symbolic or row.public_name for row in table.PRIMITIVES}


def test_a_row_is_a_rule() -> None:
    """Of what it is called with: `itself` for a map that is its own transpose, another's row for others."""
    rules = {row.name: row.vjps for row in table.PRIMITIVES}
    rows = {row.name: row for row in table.PRIMITIVES}
    assert rules["tril"]["self"] is rows["tril"]
    assert rules["hardswish_p"]["self"] is rows["hardswish_backward"]
    assert rows["hardswish_p"].saves == ("self",) and rows["tril"].saves == ("diagonal",)

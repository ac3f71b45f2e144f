"""`gradcli help TERM`: the terms of automatic differentiation."""

from __future__ import annotations

import shlex

import pytest

from gradcli.commands import COMMANDS, glossary
from tests.commands.running import run
from tests.sweep import sweep


@pytest.mark.long
@sweep("term", glossary.TERMS, parts=1)
def test_each_example_is_a_line_that_runs(term: glossary.Term) -> None:
    result = run(*shlex.split(term.example)[1:])
    assert result.exit_code == (term.name == "anomaly"), result.output
    assert "fault" not in result.output


def test_every_name_means_one_term_and_every_reference_is_one() -> None:
    owner: dict[str, str] = {}
    for term in glossary.TERMS:
        for name in glossary.names_of(term):
            assert owner.setdefault(glossary.key(name), term.name) == term.name, name
            assert name not in COMMANDS or name == name.lower()
        for name in term.see:
            found = glossary.find(name)
            assert found is not None and found is not term, (term.name, name)


@sweep(("words", "first"), [
        (["leaf"], "leaf  (also: leaf tensor, is_leaf, leaves, non-leaf)"),
        (["aic"], "AIC  (also: BIC"),
        (["is_leaf"], "leaf  (also: leaf tensor, is_leaf, leaves, non-leaf)"),
        (["retain_grad"], "retained gradient  (also: retain_grad"),
        (["seed", "gradient"], "seed gradient  (also: seed, cotangent"),
        (["Vector-Jacobian products"], "VJP  (also: vector-Jacobian product"),
        (["in-place", "version"], "version  (also: version counter"),
        (["saved_tensors"], "saved tensor  (also: saved variable"),
        (["jvp"], "Usage: gradcli jvp"),  # commands first
        (["softmax"], "softmax(input, dim, dtype=None)"),
        (["terms"], "AccumulateGrad "),
        ([], "Usage: gradcli"),
    ], parts=1)  # fmt: skip
def test_help_explains(words: list[str], first: str) -> None:
    result = run("help", *words)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(first)


def test_a_term_that_is_a_function_shows_both() -> None:
    shown = run("help", "detach").stdout
    assert "no gradient goes through it" in shown and "\ndetach(input)\n" in shown


@sweep(("argv", "hint"), [
        (["help", "laef"], "did you mean `leaf`?"),
        (["help", "quaternion"], "gradcli help terms lists the terms, gradcli help the commands"),
        (["leaf"], "gradcli help leaf explains the term"),
        (["ops", "requires-grad"], "gradcli help requires-grad explains the term"),
    ], parts=1)  # fmt: skip
def test_where_a_term_is_explained_is_said(argv: list[str], hint: str) -> None:
    result = run(*argv)
    assert result.exit_code == 2
    assert result.stderr.endswith(f"hint: {hint}\n")

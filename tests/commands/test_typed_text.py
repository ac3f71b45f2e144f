"""An error about a text that a command has rewritten shows what was typed."""

import json

import pytest
from click.testing import CliRunner

import gradcli
from gradcli.cli import main
from gradcli.language.located_errors import LanguageError


@pytest.mark.parametrize(
    ("argv", "source", "wrong", "hint"),
    [
        ("inv(x)|--along|V", "inv(x)", "inv", "here it is written linalg.inv(x)"),
        ("linalg.inv(x)|--along|inv(V)", "inv(V)", "inv", "here it is written linalg.inv(V)"),
        ("[x, inv(x)]|--wrt|x", "[x, inv(x)]", "inv", "here it is written [x, linalg.inv(x)]"),
        ("y = x**2; inv(y)*3|--wrt|y", None, "inv", "here it is written y = x**2; linalg.inv(y)*3"),
        ("exp(y)|--wrt|x|--y|inv(x)", "inv(x)", "inv", "here it is written linalg.inv(x)"),
        ("x@x == inv(y)|--of|y", "x@x == inv(y)", "inv", "here it is written x@x == linalg.inv(y)"),
        ("[y, tensro([x])]|--wrt|x", None, "tensro", "did you mean `tensor` or `Tensor`?"),
    ],
)
def test_the_caret_stands_under_what_was_typed(argv, source, wrong, hint):
    words = argv.split("|")
    found = CliRunner().invoke(main, ["diff", *words, "--json"])
    error = json.loads(found.stderr.splitlines()[-1])["error"]
    assert error["source"] == (source or words[0])
    assert error["source"][slice(*error["span"])] == wrong
    assert error["hint"] == hint


@pytest.mark.long
@pytest.mark.parametrize(
    ("source", "given", "wrong"),
    [
        ("inv(x)", {"along": "V"}, "inv"),
        ("[inv(x), 2]", {}, "inv"),
        ("linalg.inv(x)", {"along": "inv(V)"}, "inv"),
    ],
)
def test_functions_show_what_was_given(source, given, wrong):
    with pytest.raises(LanguageError) as found:
        gradcli.diff(source, **given)
    error = found.value
    assert error.source in (source, given.get("along"))
    assert error.source[slice(*error.span)] == wrong
    assert "stack" not in str(error)

"""What the session offers at the cursor."""

from __future__ import annotations

import pytest

from gradcli.commands.cursor_completion import complete, hint, signature


@pytest.fixture
def names():
    from gradcli import language

    source = "xylem = ones(2, requires_grad=True)\nz = 3\ndef fun(a, b):\n    return a\n"
    return language.run(language.parse(source)).names


def texts(before, names):
    return [candidate.text for candidate in complete(before, names)[1]]


def test_names_of_the_session_come_first(names):
    assert texts("1 + xy", names) == ["xylem"]
    assert texts("fu", names)[0] == "fun("
    assert complete("1 + xy", names)[0] == 4


def test_functions_and_keywords(names):
    assert "softmax(" in texts("soft", names)
    assert "while" in texts("whi", names)
    assert "linalg." in texts("lin", names)
    assert "pi" in texts("p", names)


def test_attributes_by_the_value(names):
    assert {"grad", "grad_fn"} <= set(texts("xylem.gr", names))
    assert texts("xylem.requires_g", names) == ["requires_grad", "requires_grad_("]
    assert "sum(" in texts("xylem.", names)
    assert {"conjugate(", "imag", "real"} <= set(texts("z.", names))
    assert "next_functions" in texts("y.grad_fn.ne", {"y": names["xylem"] * 2})


def test_attributes_of_namespaces_and_results(names):
    assert "inv(" in texts("torch.linalg.in", names)
    assert "sin(" in texts("torch.si", names)
    assert "sum(" in texts("(xylem*2).su", names)
    assert texts("nothing.at.al", names) == []


def test_private_names_when_asked_for(names):
    assert not any(text.startswith("_") for text in texts("xylem.", names))
    assert "_version" in texts("xylem._v", names)


def test_arguments_of_the_function_around(names):
    assert texts("sum(xylem, ", names)[:2] == ["dim=", "keepdim="]
    assert "dim=" in texts("softmax(xylem, di", names)
    assert hint("sum(xylem, ", names).startswith("sum(input, *, dtype=None) or (input, dim")
    assert hint("fun(1, ", names) == "fun(a, b)"
    assert hint("xylem.mean(", names).startswith("mean(")
    assert hint("1 + 2", names) == ""


def test_every_candidate_says_how_it_is_called(names):
    by_text = {c.text: c.meta for c in complete("sof", names)[1]}
    assert by_text["softmax("].startswith("softmax(input, dim")
    methods = {c.text: c.meta for c in complete("xylem.me", names)[1]}
    assert methods["mean("].startswith("mean(*, dtype=None) or (dim, keepdim=False")


def test_nothing_in_strings_and_comments(names):
    assert texts("print('so", names) == []
    assert texts("x = 1  # so", names) == []
    assert "softmax(" in texts("print('a'), so", names)


def test_commands_and_files(names, tmp_path):
    assert texts(":lo", names) == [":load "]
    assert texts(":na", names) == [":names"]
    (tmp_path / "one.py").write_text("")
    (tmp_path / "two").mkdir()
    before = f":load {tmp_path}/"
    start, found = complete(before, names)
    assert [c.text for c in found] == ["one.py", "two/"]
    assert start == len(before)
    assert "softmax" in texts("help soft", names)


def test_signature_of_what_has_none():
    assert signature(3) == ""

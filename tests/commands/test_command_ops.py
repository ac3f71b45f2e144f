"""`gradcli ops` and `gradcli completion`."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess

import pytest

from gradcli.commands.function_facts import FILE, example, facts
from gradcli.engine.registry import table
from tests.commands.running import run
from tests.sweep import sweep

FUNCTIONS = sorted(table.entries(), key=lambda entry: entry.name)


def test_every_function_is_listed_once():
    names = [entry.name for entry in FUNCTIONS if not entry.name.startswith("_")]
    lines = run("ops", "--plain").stdout.splitlines()
    assert sorted(line.split("\t")[0] for line in lines) == sorted(names)
    found = json.loads(run("ops", "--json").stdout)["functions"]
    assert sorted(item["name"] for item in found) == sorted(names)
    text = run("ops").stdout
    assert sorted(line.split()[0] for line in text.splitlines()) == sorted(names)


def test_the_file_of_facts_is_as_fresh_as_the_table():
    told = "run: python -m gradcli.commands.function_facts"
    found = json.loads(FILE.read_text(encoding="utf-8"))
    stored = [{**row, "example": None} for row in found["functions"]]
    assert stored == [json.loads(json.dumps(facts(e, run=False))) for e in FUNCTIONS], told
    constants = {n: v for n in table.names() if isinstance(v := table.resolve(n), float)}
    assert {n: repr(float(text)) for n, text in found["constants"].items()} == {
        n: repr(value) for n, value in constants.items()
    }, told


@sweep("entry", FUNCTIONS, name=lambda entry: entry.name, parts=16, often=1)
def test_the_examples_run(entry):
    result = run("ops", entry.name, "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["signature"].startswith(f"{entry.name}(")
    command = example(entry)
    assert found["example"] == command
    if command is not None:
        done = run(*shlex.split(command)[1:])
        assert done.exit_code == 0, f"{command}: {done.stderr}"


def test_one_function():
    found = json.loads(run("ops", "mul", "--json").stdout)
    assert found["aliases"] == ["multiply"]
    assert found["rows"][0]["node"] == "MulBackward0"
    assert found["rows"][0]["saves"] == ["other", "self"]
    assert set(found["rows"][0]["derivatives"]) == {"self", "other"}
    assert run("ops", "multiply").stdout == run("ops", "mul").stdout
    assert run("ops", "torch.mul").stdout == run("ops", "mul").stdout


@sweep(
    ("word", "wanted", "absent"),
    [
        ("losses", "nn.functional.mse_loss", "sin"),  # a family
        ("loss", "nn.functional.mse_loss", "sin"),
        ("log*", "log10", "nn.functional.logsigmoid_"),  # a pattern
        ("gauss", "nn.functional.gaussian_nll_loss", "sin"),  # a part of a name, and a subject
        ("gauss", "randn", "sin"),
        ("ln", "log", "log10"),  # another language's name
        ("tg", "tan", "tanh"),
        ("running", "cumsum", "sum"),  # a word of a description
    ],
    parts=1,
)
def test_a_word_is_looked_for(word, wanted, absent):
    result = run("ops", word)
    assert result.exit_code == 0
    names = [line.split()[0] for line in result.stdout.splitlines()]
    assert wanted in names and absent not in names
    found = json.loads(run("ops", word, "--json").stdout)["functions"]
    assert [item["name"] for item in found] == names
    plain = run("ops", word, "--plain").stdout.splitlines()
    assert [line.split("\t")[0] for line in plain] == names


def test_a_function_that_works_bare_has_its_page():
    assert run("ops", "gelu").stdout == run("ops", "nn.functional.gelu").stdout


def test_every_translation_names_functions_that_there_are():
    from gradcli.language import foreign_names, names

    for told in foreign_names.FUNCTIONS.values():
        for name in re.findall(r"\b[a-z][\w.]*(?=\()", told):
            assert names.is_known(name), told
    for told in foreign_names.SUBJECTS.values():
        assert all(map(table.knows, told.split()))
    for name in foreign_names.FUNCTIONS:
        assert not names.is_known(name), name


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script(shell):
    result = run("completion", shell)
    assert result.exit_code == 0
    assert "_GRADCLI_COMPLETE" in result.stdout
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=result.stdout, text=True, check=True)


@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("register_hook", ["grad", "y = x**2; y", "--x", "3", "--hook", "y: grad*2"]),
        ("retain_grad", ["grad", "b = x**2; 2*b", "--x", "3", "--retain", "b"]),
        ("create_graph", ["grad", "x**2", "--x", "3", "--create-graph"]),
        ("retain_graph", ["grad", "x**2", "--x", "3", "--retain-graph"]),
        ("no_grad", ["grad", "x*y", "--x", "3", "--y", "2", "--no-grad", "x"]),
    ],
)
def test_what_is_no_function_is_said_where_it_is(name: str, way: list[str]) -> None:
    done = run("ops", name)
    option = next(word for word in way if len(word) > 3 and word.startswith("--"))
    assert done.exit_code == 2 and option in done.stderr
    assert run(*way).exit_code == 0

"""`gradcli ops` and `gradcli completion`."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess

import pytest
from click.testing import CliRunner

from gradcli.cli import main
from gradcli.commands.ops import example
from gradcli.operators import table


def run(*argv):
    return CliRunner().invoke(main, list(argv), prog_name="gradcli")


table.load()
FUNCTIONS = sorted(set(table.FUNCTIONS.values()), key=lambda entry: entry.name)


def test_every_function_is_listed_once():
    names = [entry.name for entry in FUNCTIONS if not entry.name.startswith("_")]
    lines = run("ops", "--plain").stdout.splitlines()
    assert sorted(line.split("\t")[0] for line in lines) == sorted(names)
    found = json.loads(run("ops", "--json").stdout)["functions"]
    assert sorted(item["name"] for item in found) == sorted(names)
    text = run("ops").stdout
    assert all(line.partition(": ")[2] for line in text.splitlines())
    assert sum(len(line.split()) - 1 for line in text.splitlines()) == len(names)


@pytest.mark.parametrize("entry", FUNCTIONS, ids=lambda entry: entry.name)
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


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script(shell):
    result = run("completion", shell)
    assert result.exit_code == 0
    assert "_GRADCLI_COMPLETE" in result.stdout
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=result.stdout, text=True, check=True)

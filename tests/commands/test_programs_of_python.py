"""A program of Python's given to gradcli: what runs it, and what each command says that cannot."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from gradcli.cli import main
from gradcli.commands import python_program
from gradcli.commands.command_errors import python_program as is_python

MODEL = """import torch
class Net(torch.nn.Module):
    def forward(self, x):
        return torch.sqrt(x)
"""
NAN = """import torch, sys
w = torch.zeros(2, requires_grad=True)
for step in range(2):
    loss = torch.sqrt(w).sum()
    loss.backward()
    w.data -= w.grad - w.grad
print(len(sys.argv))
"""
BOTH = "gradcli net.py runs it, gradcli graph --torch net.py --diagnose looks into it"


def invoke(words: list[str]) -> str:
    return CliRunner().invoke(main, words).stderr


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(MODEL)
    Path("nan.py").write_text(NAN)
    Path("plain.py").write_text("print(x**2)\n")


@pytest.mark.parametrize(
    "words",
    [
        "grad net.py",
        "run net.py",
        "check net.py",
        "check -f net.py",
        "graph net.py",
        "batch net.py",
    ],
)
def test_every_command_says_what_takes_it(words: str) -> None:
    assert BOTH in " ".join(invoke(words.split()).split())


def test_an_option_of_graph_names_graph() -> None:
    shown = invoke(["--detect-anomaly", "net.py"])
    assert "write gradcli graph --torch net.py --detect-anomaly" in shown


def test_a_program_of_this_language_is_none() -> None:
    assert not is_python("plain.py") and not is_python("none.py") and is_python("net.py")


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "shown", "code"),
    [
        (["told", "a", "--b"], "gradcli ['a', '--b'] __main__\n", 3),
        (["nowhere"], "-m: no module named 'nowhere'", 2),
        ([], "-m wants the name of a module", 2),
    ],
)
def test_a_module_runs_as_a_program(words: list[str], shown: str, code: int) -> None:
    Path("told.py").write_text(
        "import sys, torch\nprint(torch.__name__, sys.argv[1:], __name__)\nsys.exit(3)\n"
    )
    kept = {name: sys.modules[name] for name in sys.modules if name.partition(".")[0] == "torch"}
    try:
        done = CliRunner().invoke(main, ["-m", *words])
    finally:
        sys.modules.update(kept)
    assert done.exit_code == code and shown in done.output


def test_what_a_program_is_given_and_where_it_met_nan(capsys: pytest.CaptureFixture[str]) -> None:
    kept = {name: sys.modules[name] for name in sys.modules if name.partition(".")[0] == "torch"}
    try:
        assert python_program.run("nan.py", ["--detect-anomaly"]) == 0
    finally:
        sys.modules.update(kept)
    shown = capsys.readouterr()
    assert shown.out == "2\n"
    assert "--detect-anomaly is given to the program" in shown.err
    command = "gradcli graph --torch nan.py --detect-anomaly finds the cause"
    assert f"backward pass 2 began at a loss that is nan; {command}" in " ".join(shown.err.split())


@pytest.mark.long
def test_a_program_of_gradcli_s_is_watched_by_its_own_tensors() -> None:
    """Also where PyTorch is installed."""
    Path("own.py").write_text(
        "import gradcli as torch\nw, v = (torch.ones(2, requires_grad=True) for _ in range(2))\n"
        "loss = ((w*2).detach()*v).sum()\nloss.backward()\n"
    )
    found = CliRunner().invoke(main, ["graph", "--torch", "own.py", "--diagnose"])
    assert found.stdout.startswith(
        "! own.py:3  1 leaf without a gradient (w): detach() ends the graph"
    )
    assert "PyTorch" not in found.stderr

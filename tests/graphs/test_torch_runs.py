"""How far a program of PyTorch's runs: to its end, for some steps, to a line, or a module alone."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gradcli.cli import main

if find_spec("torch") is None:
    pytest.skip("PyTorch is not installed", allow_module_level=True)
pytestmark = pytest.mark.needs("torch")

ENDLESS = """\
import torch

w = torch.ones(3, requires_grad=True)
count = 0
while True:
    h = w * 2
    loss = h.sum() + count
    loss.backward()
    count += 1
    print(count)
"""
NET = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.table = nn.Embedding(10, 4)
        self.a, self.b = nn.Linear(7, width), nn.Linear(width, 2)

    def forward(self, x, words):
        return self.b(torch.relu(self.a(torch.cat([x, self.table(words)], 1))))


class Sized(nn.Linear):
    pass


net = Sized(3, 2)
"""


def gradcli(*argv: str) -> Any:
    done = CliRunner().invoke(main, ["graph", "--torch", *argv], prog_name="gradcli")
    assert done.exception is None or isinstance(done.exception, SystemExit)
    return done


@pytest.fixture
def endless(tmp_path: Path) -> str:
    path = tmp_path / "endless.py"
    path.write_text(ENDLESS)
    return str(path)


@pytest.fixture
def net(tmp_path: Path) -> str:
    path = tmp_path / "net.py"
    path.write_text(NET)
    return str(path)


@pytest.mark.parametrize("steps", [1, 3])
def test_a_program_stops_after_steps(endless: str, steps: int) -> None:
    done = gradcli(endless, "--steps", str(steps))
    assert done.exit_code == 0 and "AccumulateGrad w" in done.stdout
    printed = [line for line in done.stderr.splitlines() if line.isdecimal()]
    assert printed == [str(n + 1) for n in range(steps)]


def test_a_program_stops_at_a_line(endless: str) -> None:
    done = gradcli(endless, "--at", "endless.py:6", "--json")
    nodes = json.loads(done.stdout)["nodes"]
    assert [one["name"] for one in nodes] == ["MulBackward0", "AccumulateGrad"]
    assert "1" not in done.stderr.splitlines()


def test_a_line_that_makes_nothing_is_said(tmp_path: Path) -> None:
    path = tmp_path / "short.py"
    path.write_text("import torch\nw = torch.ones(3, requires_grad=True)\nloss = w.sum()\n")
    done = gradcli(str(path), "--at", "short.py:2")
    assert done.exit_code == 1 and "short.py:2 made no tensor with a graph" in done.stderr
    assert "FILE:LINE" in gradcli(str(path), "--at", "short.py").stderr


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_what_there_is_is_drawn_on_an_interrupt(endless: str) -> None:
    argv = [sys.executable, "-m", "gradcli", "graph", "--torch", endless]

    def listening() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)

    process = subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=listening
    )
    assert process.stderr is not None
    # Older versions begin with a note; the program's second line says that a pass has ended.
    assert "2\n" in iter(process.stderr.readline, "")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0 and "AccumulateGrad w" in out
    assert "note: interrupted after" in err


def test_a_module_alone_is_called_on_shapes(net: str) -> None:
    argv = ("--shape", "x=5,3", "--shape=words=5", "--dtype", "words=int64")
    done = gradcli(f"{net}:Net", *argv, "--json")
    nodes = json.loads(done.stdout)["nodes"]
    assert done.exit_code == 0 and nodes[0]["shape"] == [5, 2]
    assert {one["variable"] for one in nodes if one["variable"]} == {
        *("a.bias", "a.weight", "b.bias", "b.weight", "table.weight")
    }
    assert "Net is called once on random numbers (x (5, 3), words (5,))" in done.stderr
    assert "nothing wrong was found" in gradcli(f"{net}:Net", *argv, "--diagnose").stdout
    assert "(4, 2)" in gradcli(f"{net}:net", "--shape", "input=4,3").stdout


@pytest.mark.parametrize(
    ("name", "argv", "words"),
    [
        ("Net", ["--shape", "x=5,3"], "called with x, words: of what shape?"),
        ("Net", [], "say --shape x=5,3 --shape words=5,3"),
        ("Net", ["--shape", "x=5,a", "--shape", "words=5"], "x=5,a is no shape"),
        ("Net", ["--shape", "x=5,3,words=5", "--dtype", "words=int"], "(x (5, 3), words (5,))"),
        (
            "Net",
            ["--shape", "x=5,3,words=5", "--dtype", "words=whole"],
            "torch has no dtype 'whole'",
        ),
        ("Sized", ["--shape", "input=5"], "made with in_features, out_features, which have no"),
        ("Net", ["--shape", "5,3"], "--shape wants NAME=…"),
    ],
)
def test_what_a_module_lacks_is_said(net: str, name: str, argv: list[str], words: str) -> None:
    assert words in gradcli(f"{net}:{name}", *argv).stderr


FAILING = """\
import sys

import torch

w = torch.ones(3, requires_grad=True)
loss = w.sum()
loss.backward()
{end}
"""


@pytest.mark.parametrize(
    ("end", "code", "words"),
    [
        ("sys.exit(7)", 7, "ended with exit code 7"),
        ("sys.exit('no data')", 1, "no data"),
        ("sys.exit(0)", 0, ""),
        ("torch.ones(2) @ torch.ones(3)", 1, "Traceback (most recent call last):"),
        ("{}['rows']", 1, "KeyError: 'rows'"),
    ],
)
def test_a_program_keeps_its_exit_code_and_its_traceback(
    end: str, code: int, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "failing.py"
    path.write_text(FAILING.format(end=end))
    done = gradcli(str(path))
    assert done.exit_code == code and "AccumulateGrad w" in done.stdout
    assert words in done.stderr and "torch_watch.py" not in done.stderr
    if "Error" in words or "Traceback" in words:
        assert f'File "{path}", line 8, in <module>' in done.stderr


@pytest.mark.parametrize("loss", ["(w * 0 / x).sum()", "(w - w).pow(2).sum().sqrt()"])
def test_a_program_stops_at_its_first_nan(tmp_path: Path, loss: str) -> None:
    """Forward, before the pass over the loss that has it; backward, after that pass."""
    path = tmp_path / "nan.py"
    path.write_text(
        "import torch\nw = torch.ones(3, requires_grad=True)\nx = torch.ones(3)\n"
        f"for k in range(50):\n    x[0] = 2 - k\n    loss = {loss}\n    print('step', k)\n"
        "    loss.backward()\n"
    )
    done = gradcli(str(path), "--detect-anomaly")
    assert done.exit_code == 1 and " values in" in done.stderr
    assert done.stderr.count("step ") == (3 if "x" in loss else 1)


def test_what_checkpointing_keeps_is_what_pytorch_keeps(tmp_path: Path) -> None:
    import torch

    from tests.graphs.test_own_program import CHECKPOINTED

    path = tmp_path / "checkpointed.py"
    path.write_text(CHECKPOINTED)
    kept: dict[int, int] = {}

    def pack(tensor: Any) -> Any:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    names: dict[str, Any] = {}
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        exec(CHECKPOINTED.replace("loss.backward()", ""), names)
    weights = {p.untyped_storage().data_ptr() for p in names["net"].parameters()}
    nbytes = sum(size for place, size in kept.items() if place not in weights)
    assert f" {nbytes} B kept besides parameters" in gradcli(str(path), "--by", "module").stdout

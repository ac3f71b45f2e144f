"""What reaches the nodes is measured in the last pass, once more, with the weights as they were in it."""

from __future__ import annotations

import json
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
pytestmark = [pytest.mark.needs("torch"), pytest.mark.long]

TRAINING = """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(0.3), nn.Linear(8, 1))
x, y = torch.randn(16, 3), torch.randn(16, 1)
optimizer = torch.optim.{optimizer}
heard = []
for _ in range(6):
    loss = ((net(x) - y) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    kept = [p.grad.norm().item() for p in net.parameters()]
    {more}
    optimizer.step()
print(kept)
"""
OPTIMIZERS = (
    "SGD(net.parameters(), lr=0.5)",
    "Adam(net.parameters(), lr=0.5)",
    "AdamW(net.parameters())",
)
PAIR = """
import torch

torch.manual_seed(0)
v, w = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
first, second = torch.optim.SGD([v], lr=0.1), torch.optim.SGD([w], lr=0.1)
for _ in range(3):
    one = (v**3).sum()
    first.zero_grad()
    one.backward()
    kept = 3 * v.detach() ** 2
    first.step()
    two = (w**2).sum()
    second.zero_grad()
    two.backward()
    second.step()
print(kept.norm().item())
"""


def graph(path: Path, *arguments: str) -> Any:
    return CliRunner().invoke(main, ["graph", "--torch", str(path), *arguments])


def norms(done: Any) -> dict[str, float]:
    rows = json.loads(done.stdout)["norms"]
    return {row["name"]: row["grad"] for row in rows if "." in row["name"]}


def program(folder: Path, optimizer: str = OPTIMIZERS[0], more: str = "pass") -> Path:
    path = folder / "training.py"
    path.write_text(TRAINING.format(optimizer=optimizer, more=more))
    return path


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_gradients_are_those_that_the_program_had(tmp_path: Path, optimizer: str) -> None:
    done = graph(program(tmp_path, optimizer), "--norms", "--json")
    (printed,) = (line for line in done.stderr.splitlines() if line.startswith("["))
    assert sorted(norms(done).values()) == pytest.approx(sorted(json.loads(printed)), rel=1e-5)


def test_weights_are_left_as_the_program_left_them(tmp_path: Path) -> None:
    path = program(tmp_path)
    path.write_text(
        path.read_text()
        + "import atexit\natexit.register(lambda: print(net[0].weight.sum().item()))\n"
    )
    said = []
    for way in ([], ["-m", "gradcli", "graph", "--grads", "--torch"]):
        run = subprocess.run(
            [sys.executable, *way, str(path)], capture_output=True, text=True, check=True
        )
        said.append(run.stdout.splitlines()[-1])
    assert said[0] == said[1]


def test_hooks_say_nothing_twice(tmp_path: Path) -> None:
    done = graph(
        program(tmp_path, more="net[0].bias.register_hook(lambda g: print('hook'))"), "--grads"
    )
    assert done.stderr.count("hook\n") == sum(
        range(6)
    )  # the hooks of the last step's graph are none


def test_what_was_written_since_is_said_with_what_helps(tmp_path: Path) -> None:
    path = tmp_path / "state.py"
    path.write_text(
        "import torch\nw, s = torch.ones(3, requires_grad=True), torch.ones(3)\n"
        "for _ in range(4):\n    loss = (w * s).sum()\n    loss.backward()\n    s += 1\n"
    )
    refused = graph(path, "--grads")
    assert refused.exit_code == 1 and "inplace operation" in refused.stderr
    assert "--steps 4" in refused.stderr and "Traceback" not in refused.stderr
    helped = graph(path, "--grads", "--steps", "4")
    assert helped.exit_code == 0 and "grad [4, 4, 4]" in helped.stdout
    judged = graph(path, "--diagnose")
    assert (
        judged.exit_code == 0 and "nothing wrong" in judged.stdout and "--steps 4" in judged.stderr
    )


def test_a_pass_is_known_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "pair.py"
    path.write_text(PAIR)
    done = graph(Path(f"{path}:one"), "--json", "--grads")
    (leaf,) = (
        node for node in json.loads(done.stdout)["nodes"] if node["name"] == "AccumulateGrad"
    )
    (printed,) = (line for line in done.stderr.splitlines() if line[:1].isdecimal())
    grads = leaf["grad"]["data"] if isinstance(leaf["grad"], dict) else leaf["grad"]
    assert sum(g * g for g in grads) ** 0.5 == pytest.approx(float(printed), rel=1e-5)

"""`graph --torch FILE --forward`: operands that need no gradient stand where a node has no edge."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner

from gradcli.cli import main

if find_spec("torch") is None:
    pytest.skip("PyTorch is not installed", allow_module_level=True)
pytestmark = [pytest.mark.needs("torch"), pytest.mark.long]

PROGRAM = Path(__file__).parent / "programs" / "operands.py"
NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)
        self.register_buffer("scale", torch.tensor(2.0))

    def forward(self, x):
        h = torch.relu(self.norm(self.first(x))) * self.scale
        return self.last(torch.where(x[:, :1] > 0, h, x.mean(1, keepdim=True)))

net, x, target = Net(), torch.randn(5, 3), torch.randn(5, 1)
loss = nn.functional.mse_loss(net(x), target)
loss.backward()
"""


def graph(*arguments: str) -> str:
    done = CliRunner().invoke(main, ["graph", "--torch", *arguments, "--forward"])
    assert done.exit_code == 0 and "have failed" not in done.stderr, done.output
    return done.stdout


def test_every_operand_is_found_by_its_name() -> None:
    found = json.loads(graph(str(PROGRAM), "--json"))
    lines = {node["id"]: node.get("line") for node in found["nodes"]}
    names = defaultdict(set)
    for node in found["nodes"]:
        if node["name"] == "Constant":
            for user in node["users"]:
                names[lines[user["node"]]].add(str(node["variable"]))
    wrong = {}
    for number, text in enumerate(PROGRAM.read_text().splitlines(), 1):
        _, mark, expected = text.partition(",  #")
        told = {name.replace("view of ", "view_") for name in names[number]}
        if mark and told != set(expected.split()):
            wrong[text.strip()] = told
    assert wrong == {}


@pytest.fixture
def net(tmp_path: Path) -> str:
    path = tmp_path / "net.py"
    path.write_text(NET)
    return str(path)


def test_buffers_and_inputs_of_modules_have_their_names(net: str) -> None:
    text = graph(net, "--values")
    for line in ("constant x ", "constant scale ", "constant target ", "input first.weight"):
        assert line in text
    assert re.search(r"constant scale +\(\) +.*= 2\n", text)


@pytest.mark.parametrize("ending", ["svg", "html", "dot", "mmd", "json"])
def test_every_format_has_them(net: str, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"graph.{ending}"
    graph(net, "-o", str(path))
    text = path.read_text(encoding="utf-8")
    assert "onstant" in text and "scale" in text and "target" in text


def test_modules_are_boxes_read_forward_too(net: str) -> None:
    found = json.loads(graph(net, "--json"))
    (norm,) = [part for part in found["modules"] if part["path"] == "norm"]
    assert norm["parameters"] == 8
    assert "norm" in graph(net, "--by", "module", "--format", "svg")


def test_without_forward_there_is_none(net: str) -> None:
    done = CliRunner().invoke(main, ["graph", "--torch", net, "--json"])
    assert "Constant" not in done.stdout

"""Gradients that vanish or explode from layer to layer: what is said was measured."""

from __future__ import annotations

import json
import math
import re
import runpy
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gradcli.cli import main

if find_spec("torch") is None:
    pytest.skip("PyTorch is not installed", allow_module_level=True)
pytestmark = pytest.mark.needs("torch")

HEAD = "import torch\nfrom torch import nn\ntorch.manual_seed(0)\n"
DEEP = """\
net = nn.Sequential(*(one for _ in range({n}) for one in (nn.Linear(32, 32), nn.{act}())))
head = nn.Linear(32, 1)
x, y = torch.randn(64, 32), torch.randn(64, 1)
{init}
loss = (head(net(x)) - y).pow(2).mean()
loss.backward()
"""
SIGMOIDS = DEEP.format(n=20, act="Sigmoid", init="")
RELUS = DEEP.format(n=12, act="ReLU", init="")
KAIMING = "for p in net.parameters():\n    p.ndim > 1 and nn.init.kaiming_normal_(p)"
LARGE = """\
mid = nn.ModuleList(nn.Linear(64, 64) for _ in range(6))
for m in mid:
    nn.init.normal_(m.weight, std=1.2)
first, head = nn.Linear(8, 64), nn.Linear(64, 1)
x, y = torch.randn(32, 8), torch.randn(32, 1)
h = torch.relu(first(x))
for m in mid:
    h = torch.relu(m(h))
z = head(h)
loss = (z - y).pow(2).mean()
loss.backward()
"""

HEALTHY = {
    "terms side by side": "w = torch.randn(5, requires_grad=True)\n"
    "def term(s):\n    return s * torch.sin(w).sum()\n"
    "loss = term(1.) + term(.01) + term(1e-4)\nloss.backward()\n",
    "a sample fitted well": "net = nn.Linear(3, 1)\nxs, ys = torch.randn(6, 3), torch.randn(6, 1)\n"
    "ys[5] = net(xs[5]).detach() + 1e-6\nloss = 0\n"
    "for x, y in zip(xs, ys):\n    loss = loss + (net(x) - y).pow(2).sum()\nloss.backward()\n",
    "steps of an ODE solver": "f = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))\n"
    "y = torch.randn(8, 2)\nfor _ in range(84):\n    k = f(y)\n    y = y + 0.05 * (k + f(y + 0.1 * k))\n"
    "loss = y.pow(2).mean()\nloss.backward()\n",
    "residual connections": "layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(40))\n"
    "h = torch.randn(8, 16)\nfor layer in layers:\n    h = h + 0.1 * torch.tanh(layer(h))\n"
    "loss = h.pow(2).mean()\nloss.backward()\n",
    "a layer of zeros at first": "down, up = nn.Linear(8, 2), nn.Linear(2, 8)\n"
    "nn.init.zeros_(up.weight)\nx = torch.randn(4, 8)\n"
    "loss = (x + up(down(x))).pow(2).mean()\nloss.backward()\n",
    "a loss that is scaled": "net = nn.Linear(4, 1)\nloss = net(torch.randn(8, 4)).pow(2).mean()\n"
    "(loss * 65536).backward()\n",
    "predictions that are certain and right": "net = nn.Linear(1, 1)\nx = torch.tensor([[40.], [-40]])\n"
    "nn.init.ones_(net.weight)\nloss = nn.functional.binary_cross_entropy(net(x).sigmoid(), "
    "torch.tensor([[1.], [0]]))\nloss.backward()\n",
    "the remedy for sigmoids": DEEP.format(n=20, act="ReLU", init=KAIMING),
    "the remedy for small weights": DEEP.format(n=12, act="ReLU", init=KAIMING),
    "the remedy for large weights": LARGE.replace("normal_(m.weight, std=1.2)", "kaiming_normal_(m.weight)"),
}  # fmt: skip


def diagnosed(text: str, folder: Path) -> list[dict[str, Any]]:
    path = folder / "flow.py"
    path.write_text(HEAD + text)
    done = CliRunner().invoke(main, ["graph", "--torch", str(path), "--diagnose", "--json"])
    assert done.exit_code == 0, done.output
    found: list[dict[str, Any]] = json.loads(done.stdout)["diagnosis"]
    return [one for one in found if one["fault"]]


def gradients(text: str, folder: Path, lines: str) -> dict[str, Any]:
    """The names of a plain run, and `norms`: of the gradients of what these lines name."""
    path = folder / "plain.py"
    body = HEAD + text.replace("loss.backward()\n", "")
    path.write_text(
        body + f"\nnorms = [float(g.norm()) for g in torch.autograd.grad(loss, {lines})]\n"
    )
    return runpy.run_path(str(path))


@pytest.mark.long
@pytest.mark.parametrize("name", HEALTHY)
def test_what_is_healthy_has_no_finding(name: str, tmp_path: Path) -> None:
    assert diagnosed(HEALTHY[name], tmp_path) == []


def test_sigmoids_divide_whatever_their_weights_are(tmp_path: Path) -> None:
    (found,) = diagnosed(SIGMOIDS, tmp_path)
    assert found["kind"] == "vanishing" and found["line"] == 8 and "20 layers" in found["text"]
    said = re.search(
        r"the slope of sigmoid is (\S+) in the mean \(at most 0.25\), mean \|z\| (\S+?)\)",
        found["text"],
    )
    assert said is not None and "kaiming_normal_" in found["advice"] and "relu" in found["advice"]
    plain = gradients(SIGMOIDS, tmp_path, "[*net.parameters()]")
    h = plain["x"]
    for k, part in enumerate(plain["net"]):
        h = part(h)
        if k == 21:  # the middle one
            assert math.isclose((h * (1 - h)).mean().item(), float(said[1]), rel_tol=0.05)
            assert math.isclose(h.logit().abs().mean().item(), float(said[2]), rel_tol=0.3)
    assert plain["norms"][0] < 1e-15


def test_small_weights_are_told_from_dead_units(tmp_path: Path) -> None:
    (found,) = diagnosed(RELUS, tmp_path)
    assert found["kind"] == "vanishing" and "dead" not in found["text"]
    share = re.search(r"\((\S+)% of the outputs of relu are positive", found["text"])
    weights = re.search(r"its weights have RMS (\S+);", found["text"])
    assert share is not None and weights is not None and "kaiming_normal_" in found["advice"]
    net = gradients(RELUS, tmp_path, "[*net.parameters()]")["net"]
    assert math.isclose(float(net[12].weight.pow(2).mean().sqrt()), float(weights[1]), rel_tol=0.05)
    assert 40 < float(share[1]) < 62


def test_the_layers_are_named_and_not_the_loss(tmp_path: Path) -> None:
    (found,) = diagnosed(LARGE, tmp_path)
    assert found["kind"] == "exploding" and found["line"] == 11
    said = re.search(
        r"6 layers \(mid.0 … mid.5\): each multiplies the gradient by (\S+) \((\S+) → (\S+);",
        found["text"],
    )
    assert said is not None
    named = LARGE.replace("z = head(h)\n", "z = head(h)\n").replace(
        "h = torch.relu(first(x))", "h = a = first(x)\nh = torch.relu(h)"
    )
    before, after = gradients(named, tmp_path, "[z, a]")["norms"]
    assert math.isclose(before, float(said[2]), rel_tol=0.01)
    assert math.isclose(after, float(said[3]), rel_tol=0.01)


@pytest.mark.parametrize(
    ("program", "names"),
    [
        (
            "net = nn.Sequential(nn.Linear(4, 2), nn.Linear(2, 4))\nfor n, p in net.named_parameters():\n"
            "    pass\nloss = net(torch.randn(8, 4)).sum()\nloss.backward()\n",
            ["0.bias", "0.weight", "1.bias", "1.weight"],
        ),
        (
            "parts = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])\nh = torch.randn(8, 4)\n"
            "for part in parts:\n    h = part(h)\nloss = h.sum()\nloss.backward()\n",
            ["0.bias", "0.weight", "1.bias", "1.weight"],
        ),
        (
            "net = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(4, 4, bias=False)))\n"
            "loss = (net[0].weight ** 2).sum()\nloss.backward()\n",
            ["0.parametrizations.weight.original0", "0.parametrizations.weight.original1"],
        ),
    ],
)  # fmt: skip
def test_a_parameter_has_its_path(program: str, names: list[str], tmp_path: Path) -> None:
    path = tmp_path / "named.py"
    path.write_text(HEAD + program)
    done = CliRunner().invoke(main, ["graph", "--torch", str(path), "--json"])
    nodes = json.loads(done.stdout)["nodes"]
    assert sorted(one["variable"] for one in nodes if one["variable"]) == names


def test_what_is_no_number_is_said(tmp_path: Path) -> None:
    path = tmp_path / "vector.py"
    path.write_text(HEAD + "w = torch.randn(3, requires_grad=True)\ny = w * 2\n")
    done = CliRunner().invoke(main, ["graph", "--torch", str(path), "--diagnose"])
    assert "nothing wrong was found" in done.stdout
    assert (
        "vector.py:5  y has the shape (3,): grad can be implicitly created only for scalar"
        in done.stdout
    )
    path.write_text(path.read_text() + "y.backward()\n")
    done = CliRunner().invoke(main, ["graph", "--torch", str(path), "--diagnose"])
    assert "! vector.py:6  y has the shape (3,)" in done.stdout

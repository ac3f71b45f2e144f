"""Planted faults of PyTorch programs, each named at its line (the one with `# FAULT`), and healthy ones."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gradcli.cli import main
from gradcli.graphs.diagnosis import Diagnosis, Finding
from gradcli.graphs.probes import Place

HEAD = """\
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
x = torch.randn(8, 4)
net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
"""
END = "loss.backward()\n"

# name -> (kind, words, program); a program ends with a backward pass of `loss` unless it has its own
FAULTS = {
    "detach": (
        *("no gradient", "4 parameters without a gradient (net.0.weight, net.0.bias"),
        "head = nn.Linear(4, 1)\nh = net(x).detach()  # FAULT\nloss = head(h).mean()\n",
    ),
    "no_grad": (
        *("no gradient", "runs under no_grad"),
        "head = nn.Linear(4, 1)\nwith torch.no_grad():\n    h = net(x)  # FAULT\nloss = head(h).mean()\n",
    ),
    "data": (
        *("no gradient", ".data ends the graph"),
        "head = nn.Linear(4, 1)\nh = net(x).data  # FAULT\nloss = head(h).mean()\n",
    ),
    "item": (
        *("no gradient", "item() makes a number"),
        "head = nn.Linear(4, 1)\ns = net(x).mean().item()  # FAULT\nloss = (head(x) * s).mean()\n",
    ),
    "numpy": (
        *("no gradient", "detach() ends the graph"),
        "head = nn.Linear(4, 1)\nh = torch.from_numpy(net(x).detach().numpy())  # FAULT\n"
        "loss = head(h).mean()\n",
    ),
    "argmax": (
        *("no gradient", "argmax() ends the graph"),
        "emb = nn.Embedding(4, 3)\ni = net(x).argmax(1)  # FAULT\nloss = emb(i).mean()\n",
    ),
    "integer cast": (
        *("no gradient", "long() ends the graph"),
        "emb = nn.Embedding(9, 3)\ni = net(x).abs().clamp(max=8).long()  # FAULT\n"
        "loss = emb(i).mean()\n",
    ),
    "not used": (
        *("no gradient", "no operation that leads to the loss uses it"),
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.a = nn.Linear(4, 4)\n        self.b = nn.Linear(4, 4)  # FAULT\n"
        "    def forward(self, x):\n        return self.a(x)\nloss = Net()(x).mean()\n",
    ),
    "a list is no ModuleList": (
        *("not optimized", "2 parameters that no optimizer steps"),
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.a = nn.Linear(4, 4)\n        self.rest = [nn.Linear(4, 4)]  # FAULT\n"
        "    def forward(self, x):\n        return self.rest[0](self.a(x))\nmodel = Net()\n"
        "o = torch.optim.SGD(model.parameters(), lr=0.1)\nloss = model(x).mean()\n"
        "loss.backward()\no.step()\n",
    ),
    "in place": (
        *("in place", "h[0] = 0.0 changes what planted.py:8 exp(…) has saved (result)"),
        "h = torch.exp(net(x))\nh[0] = 0.0  # FAULT\nloss = h.sum()\n",
    ),
    "a leaf in place": (
        *("error", "a leaf Variable that requires grad is being used in an in-place operation"),
        "w = torch.ones(4, requires_grad=True)\nw += 1  # FAULT\nloss = w.sum()\n",
    ),
    "log of 0": (
        *("not finite", "makes NaN of it"),
        "n, w = F.relu(net(x)), F.relu(x)\nt = torch.log(n)  # FAULT\nloss = (t * w).sum()\n",
    ),
    "slope of sqrt": (
        *("not finite", "in the backward pass of step 1"),
        "for _ in range(2):\n    loss = (net(x) - net(x).detach()).pow(2).sum().sqrt()  # FAULT\n"
        "    loss.backward()\n",
    ),
    "vanishing": (
        *("vanishing", "SigmoidBackward0: |grad| falls to 0"),
        "loss = torch.sigmoid(net(x) + 60).mean()  # FAULT\n",
    ),
    "vanishing in a loop": (
        *("vanishing", "w, used 19 times: each divides the gradient by 4.9"),
        "w = (torch.randn(4, 4) * 0.1).requires_grad_()\nh = x\nfor _ in range(20):\n"
        "    h = torch.tanh(h @ w)  # FAULT\nloss = h.sum()\n",
    ),
    "exploding": (
        *("exploding", "7 layers (net.1 … net.7): each multiplies the gradient by 26"),
        "net = nn.Sequential(*(nn.Linear(4, 4, bias=False) for _ in range(8)))\n"
        "head = nn.Linear(4, 1)\nfor p in net.parameters():\n    nn.init.normal_(p, std=20.0)\n"
        "h = net(x)  # FAULT\nloss = head(h).mean()\n",
    ),
    # pytorch/pytorch #17455: what an overflow left is not undone by writing over it
    "written over": (
        *("not finite", "makes NaN of it"),
        "v = torch.tensor([0.0, 100.0], requires_grad=True)\ne = torch.exp(v)  # FAULT\n"
        "f = e / (e + 1)\nloss = f.sum()\n",
    ),
    # pytorch/pytorch #15506: NaN of elements that nobody reads
    "not read": (
        *("not finite", "Function 'LogBackward0'"),
        "a = torch.arange(4.0, requires_grad=True)\nloss = a.log()[-1]  # FAULT\n",
    ),
    # pytorch/pytorch #94700: nan_to_num hides a NaN of the data from the value, not from the gradient
    "hidden by nan_to_num": (
        *("not finite", "has nan values"),
        "a = torch.randn(1, requires_grad=True)\nw = torch.tensor(float('nan'))\n"
        "z = a * w  # FAULT\nloss = z.nan_to_num(0).sum()\n",
    ),
    # MorvanZhou/PyTorch-Tutorial, 406_GAN before pull request 91 (pytorch/pytorch #39141): the
    # discriminator's step changes what the generator's loss has saved
    "stepped too early": (
        *("in place", "opt_D.step()"),
        "G = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 4))\n"
        "D = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1), nn.Sigmoid())\n"
        "opt_D = torch.optim.Adam(D.parameters(), lr=0.1)\n"
        "prob0, prob1 = D(x), D(G(torch.randn(8, 5)))\n"
        "D_loss = -(prob0.log() + (1 - prob1).log()).mean()\nloss = (1 - prob1).log().mean()\n"
        "opt_D.zero_grad()\nD_loss.backward(retain_graph=True)\nopt_D.step()  # FAULT\n"
        "loss.backward()\n",
    ),
    # a state carried over from step to step
    "carried over": (
        *("error", "Trying to backward through the graph a second time"),
        "cell, h = nn.RNNCell(4, 4), torch.zeros(8, 4)\nfor _ in range(2):\n    h = cell(x, h)\n"
        "    loss = h.sum()\n    loss.backward()  # FAULT\n",
    ),
    # jostmey/NakedAttention, issue 1: an epoch's mean is added up of losses with their graphs
    "the leak of a mean": (
        *("memory", "graphs of earlier steps hang on `e_train`"),
        "e_train, batches = 0.0, x.split(2) * 2\nfor batch in batches:\n"
        "    loss = net(batch).pow(2).mean()\n    loss.backward()\n    optimizer.step()\n"
        "    optimizer.zero_grad()\n    e_train += loss / len(batches)  # FAULT\n",
    ),
    # losses summed up for the log with their graphs
    "the leak": (
        *("memory", "graphs of earlier steps hang on `total`"),
        "total = 0\nfor _ in range(6):\n    loss = net(x).pow(2).mean()\n    optimizer.zero_grad()\n"
        "    loss.backward()\n    optimizer.step()\n    total = total + loss  # FAULT\n",
    ),
}  # fmt: skip

HEALTHY = {
    "training": "for _ in range(5):\n    loss = net(x).pow(2).mean()\n    optimizer.zero_grad()\n"
    "    loss.backward()\n    optimizer.step()\n    print(loss.item(), net(x).argmax(1).sum())\n",
    "evaluation": "with torch.no_grad():\n    net(x)\nloss = net(x).pow(2).mean()\n",
    "a mask": "m = torch.zeros(8, 4).masked_fill(x > 1, -torch.inf)\n"
    "loss = (net(x) + m).softmax(-1)[:, 0].mean()\n",
    "a graph kept on purpose": "loss = net(x).mean()\nloss.backward(retain_graph=True)\n",
    "frozen": "net.requires_grad_(False)\nhead = nn.Linear(4, 1)\nloss = head(net(x)).mean()\n",
}


def diagnosed(text: str, folder: Path) -> list[dict[str, Any]]:
    path = folder / "planted.py"
    path.write_text(HEAD + text + ("" if "backward(" in text and "True)" not in text else END))
    argv = ["graph", "--torch", str(path), "--diagnose", "--json"]
    done = CliRunner().invoke(main, argv, prog_name="gradcli")
    assert done.exit_code == ("Traceback" in done.stderr), done.output
    found: list[dict[str, Any]] = json.loads(done.stdout)["diagnosis"]
    return [one for one in found if one["fault"]]


def _tells_less() -> bool:
    """Whether this is a PyTorch before 2.10, whose saved tensors do not say what they hold."""
    from gradcli.graphs.of_torch import torch_versions

    return not torch_versions.tells()


@pytest.mark.long
@pytest.mark.needs("torch")
@pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed")
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_named_at_its_line(name: str, tmp_path: Path) -> None:
    kind, words, text = FAULTS[name]
    found = diagnosed(text, tmp_path)
    if kind == "in place" and _tells_less():
        assert [one["kind"] for one in found] == ["error"]  # where it was written is not known
        return
    line = 1 + next(k for k, one in enumerate((HEAD + text).splitlines()) if "# FAULT" in one)
    assert [(kind, line)] == [(one["kind"], one["line"]) for one in found]
    assert words in found[0]["text"] and found[0]["advice"]
    assert found[0]["file"].endswith("planted.py") and "# FAULT" in found[0]["code"]


@pytest.mark.long
@pytest.mark.needs("torch")
@pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed")
@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_program_has_no_finding(name: str, tmp_path: Path) -> None:
    assert diagnosed(HEALTHY[name], tmp_path) == []


def test_a_finding_is_its_line_the_code_and_the_advice() -> None:
    found = Diagnosis(
        [Finding("in place", "a → b", Place("/home/me/net.py", 3, "h[0] = 0"), "clone")]
    )
    assert found.plain() == "! net.py:3  a → b\n    h[0] = 0\n  clone"
    assert Diagnosis([]).plain() == "nothing wrong was found"
    narrow = ["".join(text for text, _ in line) for line in found.fitted(20, ascii=True)]
    assert max(map(len, narrow)) <= 20 and "->" in "".join(narrow)


def test_our_own_graphs_are_diagnosed_too() -> None:
    argv = ["graph", "sum(sigmoid(30 + x*w))", "--x", "1,2", "--w", "0.5", "--diagnose", "--json"]
    done = CliRunner().invoke(main, argv, prog_name="gradcli")
    found = json.loads(done.stdout)["diagnosis"]
    assert [one["kind"] for one in found] == ["vanishing"] and "sigmoid(30" in found[0]["text"]

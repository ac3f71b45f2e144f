"""`graph --torch` where PyTorch is not installed: the program runs on gradcli, with the same graph and the
same findings."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import gradcli as torch
from gradcli import graphs
from gradcli.cli import main

PROGRAMS = Path(__file__).parent / "programs"
NET = """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(4, 8), nn.Tanh())
        self.dec = nn.Linear(8, 2)

    def forward(self, x):
        return self.dec(self.enc(x))

torch.manual_seed(0)
net = Net()
opt = torch.optim.SGD(net.parameters(), 0.1)
x, y = torch.randn(5, 4), torch.randn(5, 2)
for _ in range(2):
    opt.zero_grad()
    loss = ((net(x) - y) ** 2).mean()
    loss.backward()
    opt.step()
print("done")
"""
# As `graph --torch` prints it with PyTorch 2.13.0.
TREE = """\
MeanBackward0 loss                                ()      net.py:19  loss = ((net(x) - y) ** 2).mean()
└─ PowBackward0                                   (5, 2)
   └─ SubBackward0                                (5, 2)
      └─ AddmmBackward0                           (5, 2)  net.py:11  dec  return self.dec(self.enc(x))
         ├─ AccumulateGrad dec.bias               (2,)
         ├─ TanhBackward0                         (5, 8)  net.py:11  enc.1  return self.dec(self.enc(x))
         │  └─ AddmmBackward0                     (5, 8)  net.py:11  enc.0  return self.dec(self.enc(x))
         │     ├─ AccumulateGrad enc.0.bias       (8,)
         │     └─ TBackward0                      (4, 8)
         │        └─ AccumulateGrad enc.0.weight  (8, 4)
         └─ TBackward0                            (8, 2)
            └─ AccumulateGrad dec.weight          (2, 8)

12 nodes · 11 edges · 4 leaves · 4 saved tensors, 344 B (64 B of it parameters)
"""
NOTE = "PyTorch is not installed: the program runs on gradcli in its place"
HOOKED = """\
import torch
net = torch.nn.Linear(3, 2)
net.weight.register_hook(lambda g: g * 0 + 7)
loss = net(torch.ones(4, 3)).sum()
loss.backward()
"""
WRITTEN = """\
import torch
x = torch.ones(4, 3)
w1 = torch.ones(3, 5, requires_grad=True)
w2 = torch.ones(5, 2, requires_grad=True)
h = torch.tanh(x @ w1)
loss = (h @ w2).sum()
loss.backward()
with torch.no_grad():
    w2 -= 0.1
"""
NAN = """\
import torch
a = torch.tensor([[1., 2.], [0., 0.]], requires_grad=True)
p = a * 1
p = p / p.sum(-1, keepdim=True)
loss = -torch.log(p[:, 0]).mean()
loss.backward()
"""
CUT = """\
import torch
from torch import nn
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 1)
        self.unused = nn.Linear(8, 3)
    def forward(self, x):
        return self.b(self.a(x).detach())
net = Net()
opt = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(2):
    opt.zero_grad()
    loss = net(torch.ones(6, 4)).pow(2).mean()
    loss.backward()
    opt.step()
"""
UNDER_NO_GRAD = CUT.replace(
    "        return self.b(self.a(x).detach())\n",
    "        with torch.no_grad():\n            h = self.a(x)\n        return self.b(h)\n",
)
DEAD = """\
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
with torch.no_grad():
    net[0].bias.fill_(-100.)
loss = net(torch.randn(6, 4)).pow(2).mean()
loss.backward()
"""
# Three inputs of (4, 8) are all that is kept; PyTorch's saved_tensors_hooks count them too.
CHECKPOINTED = """\
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
net = nn.Sequential(*(nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(3)))
h = torch.ones(4, 8, requires_grad=True)
for block in net:
    h = checkpoint(block, h, use_reentrant=False)
loss = h.sum()
loss.backward()
"""
STEPPED = """\
import torch
w = torch.full((4, 4), 3.0, requires_grad=True)
opt = torch.optim.SGD([w], lr=1.0)
loss = (w * 2).sum()
loss.backward()
opt.step()
"""
# The first state is 0, and so is what it sends to `w`: no weights are small.
RECURRENT = """\
import torch
w = torch.eye(4).mul(2).requires_grad_()
x, h = torch.ones(2, 4), torch.zeros(2, 4)
for _ in range(3):
    h = h @ w + x
loss = h.sum()
loss.backward()
"""
EXPLODES = """\
import torch
w = torch.full((4, 4), 30.0, requires_grad=True)
opt = torch.optim.SGD([w], lr=1.0)
for _ in range(4):
    h, x = torch.ones(2, 4), torch.ones(2, 4)
    for _ in range(6):
        h = 1 + (h @ w) * x
    loss = h.pow(2).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
OVERFLOWS = """\
import torch
w, x = torch.full((4, 4), 1e30, requires_grad=True), torch.full((2, 4), 1e20)
loss = (x @ w).sum()
loss.backward()
"""
ROUNDED = """\
import torch
w = torch.tensor([1.0, 90.0], requires_grad=True)
p = torch.sigmoid(w)
loss = -(torch.log(p) + 0 * torch.log(1 - p)).sum()
loss.backward()
"""
FAILS = "import torch\nx = torch.ones(3)\nx.view(7)\n"


@pytest.fixture
def without_torch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Run `gradcli graph --torch PROGRAM …` with no PyTorch to import."""
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.chdir(tmp_path)

    def run(program: str, *argv: str, name: str = "") -> Result:
        (tmp_path / "net.py").write_text(program)
        return CliRunner().invoke(main, ["graph", "--torch", f"net.py{name}", *argv])

    return run


def test_the_graph_is_pytorchs(without_torch) -> None:
    done = without_torch(NET)
    assert done.exit_code == 0
    assert done.stdout == TREE
    assert done.stderr == f"gradcli: note: {NOTE}\ndone\n"


@pytest.mark.needs("torch")
@pytest.mark.long
def test_with_pytorch_it_is_the_same(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "net.py").write_text(NET)
    done = subprocess.run(
        [sys.executable, "-m", "gradcli", "graph", "--torch", "net.py"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == TREE


@pytest.mark.parametrize(
    ("program", "argv", "words"),
    [
        (HOOKED, ["--grads"], r"AccumulateGrad weight +\(2, 3\) +grad \[\[7, 7, 7\], \[7, 7, 7\]\]"),
        (WRITTEN, ["--saved"], r"mat2 +\(written in place since, \(5, 2\)\)\n.*\n.*\n.* self +h = \["),
        (WRITTEN, [], r"3 saved tensors, 168 B"),  # that which was written since is kept, too
        (NAN, [], r"! net\.py:4  Function 'DivBackward0' computed nan values in the forward pass"),
        (NAN, ["--grads"], r"! net\.py:4  Function 'DivBackward0'"),
        (CUT, [], r"! net\.py:10  2 parameters without a gradient \(a\.weight, a\.bias\): detach\(\)"),
        (CUT, ["--by", "module"], r"Net +Net +2 +76 +.*\n.*\n\n.* 67 of 76 parameters are not reached\n"),
        (CUT, [], r"! net\.py:8  2 parameters without a gradient \(unused\.weight, unused\.bias\)"),
        (UNDER_NO_GRAD, [], r"net\.py:11  2 parameters without a gradient \(a\.weight, a\.bias\): runs"),
        (DEAD, [], r"! net\.py:7  100% of the units of a relu are 0 for the whole batch \(behind 0\)"),
        (CHECKPOINTED, ["--by", "module"], r" 384 B kept besides parameters"),
        (NET, ["--diagnose"], r"nothing wrong was found"),
        (NET, ["--norms"], r"enc\.0\.weight +\(8, 4\)"),
        (STEPPED, ["--norms"], r"w +\(4, 4\) +8 +12 .*\n\n\|value\| is that which the backward pass found"),
        (STEPPED, ["--norms", "--steps", "1"], r"w +\(4, 4\) +8 +12 "),
        (STEPPED, ["--values", "--grads"], r"w +\(4, 4\) += \[3, 3, …, 3\]"),
        (RECURRENT, ["--norms"], r"\Aname.*\nloss.*\nh  .*\nw  .*\n\Z"),
        (EXPLODES, ["--norms"], r"w +\(4, 4\) +\S+ +120 "),  # of the first step: the others are NaN
        (EXPLODES, ["--diagnose"], r"\A! net\.py:7  w, used 5 times: .*; this is step 1, the last finite"),
        (EXPLODES, ["--diagnose"], r"'PowBackward0' returned inf .*\n.*\n  powers of large numbers overflow"),
        (EXPLODES, ["--diagnose"], r"step 1 of SGD with lr=1 is 6e.22 times .*\n.*\n  clip_grad_norm_"),
        (OVERFLOWS, ["--diagnose"], r"large overflows: here x = \(2, 4\) float32.*; w = \(4, 4\)"),
        (ROUNDED, ["--diagnose"], r"! net.py:4  torch.log\(1 - p\): Function 'LogBackward0' computed inf"),
        (ROUNDED, ["--diagnose"], r"log of 1 - sigmoid is -inf where a prob.* rounded to 1: 50% of them are"),
        (NET, ["--steps", "1"], r"12 nodes"),
        (NET, ["--at", "net.py:11"], r"AddmmBackward0 "),
        (NET, ["--values"], r"TanhBackward0 +\(5, 8\) +=.*\n"),
        (NET, ["--forward"], r"constant"),
    ],
)  # fmt: skip
def test_what_is_shown(without_torch, program: str, argv: list[str], words: str) -> None:
    done = without_torch(program, *argv)
    assert done.exit_code == 0, done.stderr
    assert re.search(words, done.stdout), done.stdout


@pytest.mark.parametrize(
    ("program", "name", "argv", "code", "words"),
    [
        (NAN, "", ["--detect-anomaly"], 1, "Function 'DivBackward0' computed nan values"),
        (ROUNDED, "", ["--detect-anomaly"], 1, f"torch.log(1 - p)).sum()\n{'^' * 16:>48}\n"),
        (EXPLODES, "", ["--norms"], 0, "gradients are looked at in step 1 of 4, the last that is finite"),
        (NET, "", ["--time"], 2, "--time measures PyTorch's operations; it is not installed"),
        (NET, ":los", [], 2, "net.py has no 'los'\nhint: did you mean `loss`?"),
        (NET, ":Net", ["--shape", "x=3,4"], 0, "Net is called once on random numbers (x (3, 4))"),
        (NET, ":loss", ["--json"], 0, NOTE),
        (FAILS, "", [], 1, "net.py failed before it made a tensor with a graph\n"),
        (FAILS, ":loss", [], 1, "net.py failed before it made 'loss'\n"),
    ],
)  # fmt: skip
def test_what_is_said(
    without_torch, program: str, name: str, argv: list[str], code: int, words: str
) -> None:
    done = without_torch(program, *argv, name=name)
    assert done.exit_code == code
    assert words in done.stderr
    assert "fault in gradcli" not in done.stderr


PRINTS = """\
import sys, torch
print(__name__, sys.argv[1:], torch.nn.Tanh())
if sys.argv[1:]:
    sys.exit(int(sys.argv[1]))
"""
ANOMALY = """\
import torch
torch.autograd.set_detect_anomaly(True)
x = torch.zeros(2, requires_grad=True)
y = torch.sqrt(x) * 0
y.sum().backward()
"""


@pytest.mark.parametrize(
    ("program", "argv", "code", "out", "words"),
    [
        (PRINTS, [], 0, "__main__ [] Tanh()\n", ""),
        (PRINTS, ["3", "-h"], 3, "__main__ ['3', '-h'] Tanh()\n", ""),
        (FAILS, [], 1, "", "RuntimeError: shape '[7]' is invalid for input of size 3\n"),
        ("from torch.distributions import Beta\n", [], 1, "", "gradcli: note: gradcli, in PyTorch's "
         "place, has no torch.distributions.Beta; write the log density as a formula\n"),
        ("from torch.distributions.normal import Normal\nprint(Normal(0., 2))\n", [], 0,
         "Normal(loc: 0.0, scale: 2.0)\n", ""),
        ("import torch\ntorch.float8_e4m3fn\n", [], 1, "", "has no torch.float8_e4m3fn; the program needs"),
        (ANOMALY, [], 1, "", "caused the error:\n  File \"net.py\", line 4, in <module>\n    y = torch.sqrt"),
    ],
)  # fmt: skip
def test_a_program_runs_as_it_is(
    program: str, argv: list[str], code: int, out: str, words: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    before = sys.modules.get("torch")
    Path("net.py").write_text(program)
    done = CliRunner().invoke(main, ["net.py", *argv])
    told = "".join(f"{one.filename}: {one.message}" for one in recwarn.list)
    assert (done.exit_code, done.stdout) == (code, out)
    assert words in done.stderr + told.replace(str(tmp_path) + os.sep, "")
    assert all(f.startswith(str(tmp_path)) for f in (one.filename for one in recwarn.list))
    assert sys.modules.get("torch") is before


def test_an_absent_program_is_said() -> None:
    done = CliRunner().invoke(main, ["absent.py"])
    assert (done.exit_code, done.stderr) == (
        2,
        "gradcli: error: cannot read absent.py: no such file\n",
    )


IN_PYTHON = """\
import gradcli as torch
from gradcli import graphs, nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
with graphs.watching(net):
    loss = net(torch.ones(6, 4)).pow(2).mean()
graph = graphs.inspect(loss, model=net, grads=True)
"""


WITHOUT = NET.replace("self.dec =", "self.rest = nn.Linear(8, 2)\n        self.dec =").replace(
    "opt =", "net.enc.requires_grad_(False)\nnet.dec.bias.requires_grad = False\nopt ="
)


@pytest.mark.long
def test_norms_say_why_there_is_no_gradient(without_torch) -> None:
    lines = without_torch(WITHOUT, "--norms").stdout.splitlines()
    told = {
        line.split()[0]: line[line.index("None") :].split()[2:] for line in lines if "None" in line
    }
    assert [" ".join(words) for words in told.values()] == [
        *["no operation uses it net.py:8"] * 2,
        *["requires_grad is False net.py:16"] * 2,
        "requires_grad is False net.py:17",
    ]


def test_models_are_known_in_python(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(IN_PYTHON)
    names: dict[str, Any] = {}
    exec(compile(IN_PYTHON, str(path), "exec"), names)
    outline = str(names["graph"].tree(by="module"))
    assert re.findall(r"^\W*([\w.]+)", outline, re.M)[:5] == ["module", "Sequential", "0", "1", "2"]
    assert "0.weight  (8, 4)" in str(names["graph"].norms())
    assert "mine.py:6  1  loss = net(torch.ones(6, 4))" in str(names["graph"].tree(values=True))
    plain = graphs.inspect(names["net"](torch.ones(2, 4)).sum(), model=names["net"])
    assert "AccumulateGrad 2.bias" in str(plain) and "not by module" in str(plain.tree(by="module"))


def test_without_a_watch_the_forward_operation_is_blamed() -> None:
    a = torch.tensor([[1.0, 2.0], [0.0, 0.0]], requires_grad=True)
    p = a * 1
    loss = -torch.log((p / p.sum(-1, keepdim=True))[:, 0]).mean()
    assert "'DivBackward0' computed nan" in graphs.inspect(loss, grads=True).diagnosis().plain()
    masked = torch.zeros(2, requires_grad=True) + torch.tensor([0.0, -math.inf])
    assert not graphs.inspect(masked.exp().sum(), grads=True).diagnosis().findings


def test_pytorchs_place_is_left_as_it_was(without_torch) -> None:
    without_torch(NET)
    assert sys.modules["torch"] is None


# SparseAdam; a whole module that is saved, which `load` would have to run code for
LACKING = {"factors_of_ratings", "a_layer_only_saved"}
PLANTED = sorted(p for p in PROGRAMS.glob("*y/*.py") if p.stem not in LACKING)


@pytest.mark.needs("torch")
@pytest.mark.long
@pytest.mark.parametrize("path", PLANTED, ids=lambda path: path.stem)
def test_findings_are_those_of_pytorch(path: Path) -> None:
    without = "import sys\nsys.modules['torch'] = None\nfrom gradcli.__main__ import main\nmain()\n"
    argv = ["graph", "--torch", str(path), "--diagnose"]
    env = {**os.environ, "PYTHONUTF8": "1"}
    own, real = (
        subprocess.run(
            [sys.executable, *how, *argv], capture_output=True, text=True, check=False, env=env
        )
        for how in (["-c", without], ["-m", "gradcli"])
    )
    assert "fault in gradcli" not in own.stderr
    assert own.returncode == real.returncode
    assert _rounded(own.stdout) == _rounded(real.stdout)


def _rounded(text: str) -> str:
    """The text with numbers of two digits: kernels sum in other orders."""
    return re.sub(r"\d+\.\d+(e[+-]?\d+)?", lambda found: f"{float(found[0]):.2g}", text)

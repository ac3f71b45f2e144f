"""`graph --torch` where PyTorch is not installed: the program runs on gradcli, with the same graph."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """\
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
NOTE = "PyTorch is not installed: the program runs on gradcli in its place\n"
WITHOUT = "import sys\nsys.modules['torch'] = None\nfrom gradcli.__main__ import main\nmain()\n"


def without_torch(folder: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    (folder / "net.py").write_text(PROGRAM)
    return subprocess.run(
        [sys.executable, "-X", "utf8", "-c", WITHOUT, "graph", *argv],
        cwd=folder, capture_output=True, text=True, encoding="utf-8", check=False,
    )  # fmt: skip


def test_the_graph_is_pytorchs(tmp_path: Path) -> None:
    done = without_torch(tmp_path, "--torch", "net.py")
    assert done.returncode == 0
    assert done.stdout == TREE
    assert done.stderr == f"gradcli: note: {NOTE}done\n"


@pytest.mark.long
def test_with_pytorch_it_is_the_same(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "net.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-m", "gradcli", "graph", "--torch", "net.py"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == TREE


@pytest.mark.long
def test_gradients_by_module_are_those_of_the_last_pass(tmp_path: Path) -> None:
    done = without_torch(tmp_path, "--torch", "net.py", "--by", "module", "--grads")
    names = [line.split()[0] for line in done.stdout.splitlines()[:6]]
    assert names == ["module", "Net", "├─", "│", "│", "└─"]
    assert all("norm" in line for line in done.stdout.splitlines()[1:6])


@pytest.mark.long
@pytest.mark.parametrize(
    ("argv", "code", "words"),
    [
        (["--torch", "net.py", "--diagnose"], 2, "--diagnose watches PyTorch, which is not installed"),
        (["--torch", "net.py:los"], 2, "net.py has no tensor 'los' with a graph\nhint: did you mean `loss`?"),
        (["--torch", "net.py:loss", "--json"], 0, NOTE),
        (["--torch", "absent.py"], 2, "cannot read absent.py"),
    ],
)  # fmt: skip
def test_what_is_said(argv: list[str], code: int, words: str, tmp_path: Path) -> None:
    done = without_torch(tmp_path, *argv)
    assert done.returncode == code
    assert words in done.stderr

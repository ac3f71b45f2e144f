"""Anomalies, --norms and the assertions on gradients, of programs of PyTorch's."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gradcli.cli import main
from gradcli.torch import testing

if find_spec("torch") is None:
    pytest.skip("PyTorch is not installed", allow_module_level=True)


def gradcli(*argv: str) -> Any:
    done = CliRunner().invoke(main, list(argv), prog_name="gradcli")
    assert done.exception is None or isinstance(done.exception, SystemExit)
    return done


PLANTED = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 1)

    def forward(self, x):
        x = torch.relu(self.first(x))
        x = {line}
        return self.second(x)


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
for _ in range(2):
    loss = model({data}).pow(2).mean()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    "line, data, words",
    [
        ("torch.log(x - 1)", "torch.randn(8, 4)", "Function 'LogBackward0' computed nan values"),
        ("torch.sqrt(x)", "torch.randn(8, 4)", "Function 'SqrtBackward0' returned inf values"),
        (
            "x * torch.log(x.detach() - 9)",
            "torch.randn(8, 4)",
            "log, on what needs no gradient, computed nan",
        ),
        ("x", "torch.full((8, 4), torch.nan)", "has nan values (32 of 32, 100%)"),
    ],
)
def test_a_planted_nan_is_named_at_its_line(
    line: str, data: str, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "planted.py"
    path.write_text(PLANTED.format(line=line, data=data), encoding="utf-8")
    done = gradcli("graph", "--torch", str(path), "--detect-anomaly")
    assert done.exit_code == 1 and words in done.stderr
    number = 12 if line != "x" else 11
    assert f"{path}:{number}" in done.stderr and "hint: " in done.stderr
    assert ("in Net (Net)" in done.stderr) == (line != "x")


def test_a_planted_vanishing_layer_is_named_at_its_line(tmp_path: Path) -> None:
    path = tmp_path / "planted.py"
    text = PLANTED.format(line="torch.sigmoid(x + 40)", data="torch.randn(8, 4)")
    path.write_text(text, encoding="utf-8")
    out = gradcli("graph", "--torch", str(path), "--norms").stdout
    mark = next(one for one in out.splitlines() if one.startswith("! "))
    assert mark.startswith("! SigmoidBackward0  planted.py:12  Net  x = torch.sigmoid(x + 40): ")
    assert "first.weight" in out


def test_a_healthy_program_has_no_anomaly(tmp_path: Path) -> None:
    path = tmp_path / "healthy.py"
    path.write_text(PLANTED.format(line="x + 1", data="torch.randn(8, 4)"), encoding="utf-8")
    assert gradcli("graph", "--torch", str(path), "--detect-anomaly").exit_code == 0
    # Infinities on the way that come to nothing are meant, as in masks.
    masked = "torch.where(x > 0, x, -torch.inf).exp()"
    path.write_text(PLANTED.format(line=masked, data="torch.rand(8, 4)"), encoding="utf-8")
    assert gradcli("graph", "--torch", str(path), "--detect-anomaly").exit_code == 0


def test_assertions_on_networks_of_torchs() -> None:
    import torch
    from torch import nn

    torch.manual_seed(0)
    deep = nn.Sequential(*(layer for _ in range(12) for layer in (nn.Linear(8, 8), nn.Sigmoid())))
    x = torch.randn(4, 8)
    good = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
    testing.assert_no_vanishing(good(x).pow(2).mean(), good)
    testing.assert_finite_gradients(good(x).pow(2).mean(), good)
    with pytest.raises(testing.GradientTrouble, match=r"0\.weight"):
        testing.assert_no_vanishing(deep(x).pow(2).mean(), deep, least=1e-6)
    assert all(p.grad is None for p in deep.parameters())

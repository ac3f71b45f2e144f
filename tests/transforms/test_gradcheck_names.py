"""`gradcheck` under the names that PyTorch has for it: a module, and a function of the package."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import gradcli as torch
x = torch.ones(2, dtype=torch.float64, requires_grad=True)
assert torch.autograd.gradcheck(torch.sin, x)
from gradcli.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck
assert gradcheck(torch.sin, x) and torch.autograd.gradcheck(torch.sin, (x,))
assert gradgradcheck is torch.autograd.gradgradcheck
assert torch.autograd.GradcheckError is GradcheckError
"""


def test_the_module_does_not_hide_the_function() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)

"""Every public name does the same as the first thing of a process that is used as it does later on."""

from __future__ import annotations

import subprocess
import sys

import pytest

import gradcli
from tests.sweep import some

# Each name is asked for in a process of its own, forked from one that has imported gradcli and nothing of it.
EACH = """
import os, sys
import gradcli
failed = []
for name in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        try:
            eval("gradcli." + name, {{"gradcli": gradcli}})
            x = gradcli.Tensor([1.0, 2.0])
            assert x.exp().shape == (2,) and (x @ x).item() == 5 and (x > 1).tolist() == [False, True]
            assert gradcli.nn.Parameter(x)[0].item() == 1 and (-x).sum().item() == -3
        except BaseException as error:
            print(name, type(error).__name__, error, flush=True)
            os._exit(1)
        os._exit(0)
    os.waitpid(child, 0)
"""
FIRST = [
    *(
        "Tensor",
        "Size",
        "no_grad",
        "dtype",
        "nn.Parameter",
        "autograd.Variable",
        "autograd.Function",
    ),
    *(
        "nn.functional.relu",
        "linalg.inv",
        "manual_seed",
        "Generator",
        "Tensor.exp",
        "exp",
        "func.grad",
    ),
]


def failures(names: list[str]) -> str:
    code = EACH.replace("{{", "{").replace("}}", "}")
    run = subprocess.run(
        [sys.executable, "-c", code, *names], capture_output=True, text=True, check=True
    )
    return run.stdout


@pytest.mark.long
def test_common_names_first() -> None:
    assert failures(FIRST) == ""


@pytest.mark.parametrize("part", some(range(6), 6))
@pytest.mark.long
def test_every_name_first(part: int) -> None:
    assert failures([n for n in dir(gradcli) if not n.startswith("_")][part::6]) == ""

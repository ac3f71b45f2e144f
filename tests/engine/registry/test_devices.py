"""Devices: there is the CPU; another has a name, and is refused where it would be used."""

from __future__ import annotations

import pytest

import gradcli as torch
from gradcli.language import LanguageError, parse, run
from tests.sweep import sweep

CUDA = "Torch not compiled with CUDA enabled; gradcli computes on the CPU only"
USED = {
    "torch.ones(2, device='cuda')": CUDA,
    "torch.tensor([1.], device=torch.device('cuda:1'))": CUDA,
    "torch.as_tensor(torch.ones(2), device='cuda')": CUDA,
    "torch.ones(2).to('cuda')": CUDA,
    "torch.ones(2).cuda()": CUDA,
    "torch.zeros_like(torch.ones(2), device='cuda')": CUDA,
    "torch.Generator('cuda')": CUDA,
    "torch.device('cuda').__enter__()": CUDA,
    "torch.set_default_device('cuda')": CUDA,
    "torch.cuda.current_device()": CUDA,
    "torch.cuda.synchronize()": CUDA,
    "torch.ones(2).to('mps')": "PyTorch is not linked with support for mps devices; gradcli",
    "torch.ones(2, device='xpu')": "Torch not compiled with XPU enabled; gradcli",
    "torch.ones(2).to('hpu')": "No module named 'torch.hpu'; gradcli",
}


@sweep("source", USED, parts=1)
def test_what_is_not_there_is_refused_where_it_is_used(source: str) -> None:
    with pytest.raises((AssertionError, RuntimeError, ModuleNotFoundError)) as caught:
        eval(source)
    assert str(caught.value).startswith(USED[source])


PROGRAM = """
import torch
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.cuda.manual_seed_all(0)
with torch.random.fork_rng(), device:
    x = torch.ones(2, device=device).to(device)
x.real = 3
torch.testing.assert_close(x, 3*torch.ones(2))
x.sum() + torch.cuda.device_count() + torch.backends.mps.is_available()
"""


def test_programs_ask_for_devices() -> None:
    assert run(parse(PROGRAM)).value.item() == 6
    with pytest.raises(LanguageError, match="CUDA enabled"):
        run(parse("torch.ones(2).to(torch.device('cuda'))"))
    with pytest.raises(LanguageError, match="Tensor-likes are not close!"):
        run(parse("torch.testing.assert_close(ones(2), zeros(2))"))


def test_switches_of_backends_are_taken() -> None:
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.deterministic = False
    assert not torch.backends.cudnn.is_available() and not torch.backends.mps.is_built()

"""Names and calls that libraries over PyTorch use: answers recorded from PyTorch 2.13.0 (CPU)."""

from __future__ import annotations

import io
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import gradcli as torch
from gradcli import nn
from gradcli.engine.registry import torch_namespaces
from gradcli.func import functional_call, stack_module_state
from gradcli.nn.utils import rnn

ANSWERS = [
    ("torch.ones(2, 2).ndimension()", 2),
    ("torch.finfo(float).eps", 2.220446049250313e-16),
    ("torch.iinfo(int).max", 9223372036854775807),
    ("torch.promote_types(float, torch.float32)", torch.float64),
    ("torch.promote_types(int, bool)", torch.int64),
    ("torch.can_cast(torch.float32, int)", False),
    ("torch.can_cast(int, float)", True),
    ("torch.ones(2).view(int).tolist()", [4575657222473777152]),
    ("torch.is_neg(torch.ones(1)), torch.ones(1).is_neg()", (False, False)),
    ("torch.ones(1).new_empty_strided((2, 2), (1, 2)).stride()", (1, 2)),
    ("torch.gcd(torch.tensor([12, 18]), torch.tensor([8, 12])).tolist()", [4, 6]),
    ("torch.lcm(torch.tensor([12, 18]), torch.tensor([8, 12])).tolist()", [24, 36]),
    ("torch.autograd.grad_mode.no_grad is torch.no_grad", True),
    ("torch.hann_window(4).tolist()", [0, 0.5, 1, 0.5]),
    ("torch.bartlett_window(5, False).tolist()", [0, 0.5, 1, 0.5, 0]),
    ("[round(v, 4) for v in torch.hamming_window(5).tolist()]", [0.08, 0.3979, 0.9121, 0.9121, 0.3979]),
    ("[round(v, 5) for v in torch.blackman_window(5, dtype=float).tolist()]",
     [0, 0.20077, 0.84923, 0.84923, 0.20077]),
    ("[round(v, 5) for v in torch.kaiser_window(5).tolist()]", [5e-05, 0.10172, 0.79294, 0.79294, 0.10172]),
    ("torch.typename(torch.ones(1)), torch.typename(3)", ("torch.FloatTensor", "int")),
    ("(torch.ones(1).is_cpu, torch.ones(1).is_sparse, torch.ones(1).is_shared())", (True, False, False)),
    ("torch.amp.GradScaler('cpu').scale(torch.ones(1)).tolist()", [65536.0]),
    ("torch.amp.GradScaler(enabled=False).scale(3), torch.get_float32_matmul_precision()", (3, "highest")),
    ("list(torch.utils.data.StackDataset(a=[1, 2], b=[3, 4])[1].values())", [2, 4]),
    ("list(torch.utils.data.ChainDataset([[1, 2], [3]]))", [1, 2, 3]),
    ("sorted(torch.utils.data.SubsetRandomSampler([4, 2, 7]))", [2, 4, 7]),
]  # fmt: skip


def test_a_scaler_leaves_out_a_step_that_overflowed() -> None:
    """As PyTorch 2.13: the scale halves, the parameter stays; then it moves by the true gradient."""
    w = nn.Parameter(torch.tensor([1.0]))
    scaler, optimizer = torch.amp.GradScaler("cpu"), torch.optim.SGD([w], 0.5)
    for factor, scale, value in ((float("inf"), 32768.0, 1.0), (2.0, 32768.0, 0.0)):
        optimizer.zero_grad()
        scaler.scale((w * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        assert (scaler.get_scale(), w.item()) == (scale, value)


def test_mixed_precision_says_what_is_not_done() -> None:
    with pytest.warns(UserWarning, match="Disabling autocast"), torch.autocast("cuda"):
        assert torch.ones(2).dtype is torch.float32
    with pytest.warns(UserWarning, match="does not compute in torch.bfloat16"):
        torch.autocast("cpu", dtype=torch.bfloat16)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=False):
        pass


@pytest.mark.parametrize(
    "call",
    ["zeros(2, dtype=torch.bfloat16)", "ones(2).to(torch.bfloat16)", "nn.Linear(1, 1).bfloat16()"],
)
def test_bfloat16_can_be_named_and_no_tensor_has_it(call: str) -> None:
    assert repr(torch.bfloat16) == "torch.bfloat16" and torch.ones(2).dtype != torch.bfloat16
    with pytest.raises(TypeError, match=r"no tensors of torch\.bfloat16, .* use torch\.float32"):
        eval(f"torch.{call}", {"torch": torch})


@pytest.mark.parametrize("name", torch_namespaces.ABSENT)
def test_what_is_not_here_says_what_to_use(name: str) -> None:
    parent, _, own = f"torch.{name}".rpartition(".")
    with pytest.raises(AttributeError, match=f"gradcli does not have torch.{name}: "):
        getattr(eval(parent, {"torch": torch}), own)


def test_the_guide_names_all_that_is_not_here() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "python.md").read_text()
    assert all(f"`{name}`" in guide for name in torch_namespaces.ABSENT)


def scheduled(make: str) -> Any:
    p = [torch.nn.Parameter(torch.ones(2))]
    optimizer = torch.optim.SGD(p, 0.1)
    names = vars(torch.optim.lr_scheduler)
    return optimizer, eval(make, {**names, "o": optimizer})


# As PyTorch 2.13 prints it after a step.
STATES = {
    "StepLR(o, 2)": "{'step_size': 2, 'gamma': 0.1, 'base_lrs': [0.1], 'last_epoch': 1, "
    "'_step_count': 2, '_is_initial': False, '_get_lr_called_within_step': False, '_last_lr': [0.1]}",
    "LambdaLR(o, lambda k: 1)": "{'base_lrs': [0.1], 'last_epoch': 1, '_step_count': 2, "
    "'_is_initial': False, '_get_lr_called_within_step': False, '_last_lr': [0.1], 'lr_lambdas': [None]}",
    "ChainedScheduler([StepLR(o, 2)])": "{'_last_lr': [0.1], '_schedulers': [{'step_size': 2, 'gamma': 0.1, "
    "'base_lrs': [0.1], 'last_epoch': 1, '_step_count': 2, '_is_initial': False, "
    "'_get_lr_called_within_step': False, '_last_lr': [0.1]}]}",
}


@pytest.mark.parametrize("make", STATES)
def test_a_schedule_s_state_is_pytorchs_and_can_be_saved(make: str) -> None:
    optimizer, schedule = scheduled(make)
    optimizer.step()
    schedule.step()
    file = io.BytesIO()
    torch.save(schedule.state_dict(), file)
    file.seek(0)
    read = torch.load(file)
    assert read == eval(STATES[make])
    other = scheduled(make)[1]
    other.load_state_dict(read)
    assert other.state_dict() == read


def test_a_schedule_that_steps_first_is_told() -> None:
    optimizer, schedule = scheduled("StepLR(o, 2)")
    with pytest.warns(UserWarning, match=r"Detected call of `lr_scheduler.step\(\)` before"):
        schedule.step()
    optimizer, schedule = scheduled("StepLR(o, 2)")
    optimizer.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schedule.step()


def test_a_total_norm_has_no_graph() -> None:
    assert torch.nn.utils.get_total_norm([torch.ones(2, requires_grad=True)]).grad_fn is None


@pytest.mark.parametrize(("call", "answer"), ANSWERS)
def test_a_name_answers_as_in_torch(call: str, answer: Any) -> None:
    assert eval(call, {"torch": torch}) == answer


REFUSED = [
    ("torch.tensor([1 + 2j]).conj().numpy()", RuntimeError, "that has conjugate bit set"),
    ("torch.ones(2).resize_(2**62, 4)", RuntimeError, "numel: integer multiplication overflow"),
    ("torch.gcd(torch.ones(1), torch.ones(1))", NotImplementedError, "gcd_cpu"),
    ("torch.hann_window(5, dtype=int)", RuntimeError, "hann_window expects floating point dtypes"),
    ("torch.hann_window(-1)", RuntimeError, "requires non-negative window_length"),
    ("torch.iinfo(float)", TypeError, "requires an integer input type"),
    ("torch.finfo(3)", TypeError, "must be torch.dtype, not int"),
]


@pytest.mark.parametrize(("call", "error", "words"), REFUSED)
def test_a_call_is_refused_as_in_torch(call: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        eval(call, {"torch": torch})


def test_a_number_s_remainder_has_a_derivative() -> None:
    x = torch.tensor([3.0, 2.0], requires_grad=True)
    assert torch.autograd.grad((5 % x).sum(), x)[0].tolist() == [-1, -2]


def test_modules_as_functions_of_their_parameters() -> None:
    """Parameters are replaced while the call runs; tied ones together; stacked ones under vmap."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    x, named = torch.ones(4, 2), dict(model.named_parameters())
    before = model(x).tolist()
    zeros = {n: torch.zeros_like(p) for n, p in named.items()}
    assert functional_call(model, zeros, x).tolist() == [[0.0]] * 4
    assert model(x).tolist() == before
    slopes = torch.func.grad(lambda p: functional_call(model, p, (x,)).sum())(named)
    model(x).sum().backward()
    assert all(torch.allclose(slopes[n], p.grad) for n, p in named.items())
    models = [nn.Linear(2, 1) for _ in range(3)]
    parameters, buffers = stack_module_state(models)
    together = torch.vmap(lambda p, b: functional_call(models[0], (p, b), (x,)))(
        parameters, buffers
    )
    assert torch.allclose(together, torch.stack([m(x) for m in models]))
    with pytest.raises(ValueError, match=r"\['0.weight'\] appeared in multiple dictionaries"):
        functional_call(model, (zeros, {"0.weight": zeros["0.weight"]}), x)
    with pytest.raises(AttributeError, match="Sequential has no attribute `5`"):
        functional_call(model, {"5.weight": x}, x)
    with pytest.raises(RuntimeError, match="Expected at least one model, got 0"):
        stack_module_state([])


@pytest.mark.parametrize("layer", ["RNN(3, 5)", "LSTM(3, 5, 2, bidirectional=True)", "GRU(3, 5)"])
def test_a_packed_sequence_is_each_sequence_alone(layer: str) -> None:
    torch.manual_seed(0)
    module = eval(f"nn.{layer}", {"nn": nn})
    lengths = [2, 4, 1]
    x = torch.randn(4, 3, 3)
    packed = rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
    output, states = module(packed)
    padded, found = rnn.pad_packed_sequence(output)
    assert found.tolist() == lengths
    states = states if isinstance(states, tuple) else (states,)
    for k, n in enumerate(lengths):
        alone, last = module(x[:n, k])
        assert torch.allclose(padded[:n, k], alone, atol=1e-6) and not padded[n:, k].any()
        last = last if isinstance(last, tuple) else (last,)
        assert all(torch.allclose(a[:, k], b, atol=1e-6) for a, b in zip(states, last, strict=True))


def test_lengths_are_refused_as_in_torch() -> None:
    with pytest.raises(RuntimeError, match="must be sorted in decreasing order"):
        rnn.pack_padded_sequence(torch.ones(3, 2), [1, 2])
    with pytest.raises(RuntimeError, match="Length of all samples has to be greater than 0"):
        rnn.pack_padded_sequence(torch.ones(3, 2), [1, 0], enforce_sorted=False)


def test_a_program_of_pytorch_s_runs_as_it_is() -> None:
    code = (
        "import sys, gradcli; sys.modules['torch'] = gradcli\n"
        "import torch, torch.nn as nn, torch.nn.functional as F\n"
        "from torch.utils.data import DataLoader; from torch.nn.utils.rnn import pad_sequence\n"
        "from torch.optim.lr_scheduler import StepLR\n"
        "print(nn is gradcli.nn, F is gradcli.nn.functional, nn.Linear(2, 3))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True True Linear(in_features=2, out_features=3, bias=True)\n"


def test_names_are_found_where_pytorch_defines_them() -> None:
    lines = (
        "from torch.nn.modules.container import ModuleList",
        "from torch.nn.modules.utils import _pair",
        "from torch.optim.adam import Adam",
        "from torch.optim.lr_scheduler import _LRScheduler",
        "from torch.utils.data.dataset import Dataset",
        "from torch.nn.utils.clip_grad import clip_grad_norm_",
        "from torch.jit import script",
        "from torch.types import Number",
        "import torch.nn.modules.linear as l",
        "print(torch.nn.modules.linear.Linear is torch.nn.Linear, Adam is torch.optim.Adam, _pair(3))",
        "print(Dataset is torch.utils.data.Dataset, script(len) is len, torch.jit.is_scripting())",
    )
    code = "import gradcli, sys; sys.modules['torch'] = gradcli; import torch\n" + "\n".join(lines)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True True (3, 3)\nTrue True False\n"

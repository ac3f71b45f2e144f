"""torch.nn's modules, torch.optim and torch.utils.data answer as PyTorch's (`record_modules.py`)."""

from __future__ import annotations

import json
import math
import shutil
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradcli as torch
from gradcli import nn
from gradcli.engine.system import background_code, c_compiler, element_loops
from tests.golden.module_cases import (
    CASES,
    GRAPHS,
    HOOKS,
    OPTIMIZERS,
    PROGRAMS,
    REGISTRATIONS,
    SCHEDULES,
    answer,
    batches,
    hooked,
    nodes,
    rates,
    registered,
    told,
    trained,
)
from tests.sweep import sweep

RECORDED = json.loads((Path(__file__).parents[1] / "golden" / "modules.json").read_text())


def close(found: Any, true: Any, tolerance: float) -> bool:
    if isinstance(true, list):
        pairs = zip(found, true, strict=True)
        return len(found) == len(true) and all(close(a, b, tolerance) for a, b in pairs)
    if true is None or found is None:
        return found is true
    same = found == true or (math.isnan(found) and math.isnan(true))
    return same or abs(found - true) <= tolerance * max(1, abs(true))


@sweep(("module", "inputs"), CASES, parts=2)
def test_a_module_is_pytorchs(module: str, inputs: str) -> None:
    """Its repr, and the bits of its first parameters; its value and gradients to rounding."""
    found, true = answer(torch, module, inputs), RECORDED["modules"][f"{module} <- {inputs}"]
    for key in ("repr", "after", "state"):
        assert found[key] == true[key]
    assert close(found["value"], true["value"], 2e-6)
    assert found["grads"].keys() == true["grads"].keys()
    assert all(close(found["grads"][n], g, 2e-5) for n, g in true["grads"].items())


@sweep("program", HOOKS, parts=1)
def test_hooks_are_given_what_pytorchs_are(program: str) -> None:
    assert hooked(torch, program) == RECORDED["hooks"][program]


REGISTERED = json.loads((Path(__file__).parents[1] / "golden" / "registrations.json").read_text())[
    "answers"
]
NUMBERED = [(k, *r) for k, r in enumerate(REGISTRATIONS)]


@pytest.mark.long
@sweep(("number", "start", "change"), NUMBERED, parts=2)
def test_all_that_is_replaced_keeps_its_place(number: int, start: str, change: str) -> None:
    assert registered(torch, start, change) == REGISTERED[number]


@sweep(("number", "start", "change"), NUMBERED[::7], parts=1)
def test_what_is_replaced_keeps_its_place(number: int, start: str, change: str) -> None:
    """The order of parameters, buffers, state and children, and the errors of each way to register."""
    assert registered(torch, start, change) == REGISTERED[number]


def test_a_layer_replaced_runs_in_its_place() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 1))
    net[0] = nn.Linear(2, 2)
    x = torch.ones(1, 2)
    assert torch.equal(net(x), net[2](torch.tanh(net[0](x))))


@pytest.mark.long
@pytest.mark.parametrize(("module", "inputs"), GRAPHS, ids=[m for m, _ in GRAPHS])
def test_a_module_records_pytorchs_nodes(module: str, inputs: str) -> None:
    assert nodes(torch, module, inputs) == RECORDED["nodes"][f"{module} <- {inputs}"]


def test_a_compiled_module_is_a_module() -> None:
    net = nn.Sequential(nn.Linear(3, 2), nn.Dropout(0.5))
    for made in (torch.compile(net), torch.compile(mode="default")(net)):
        assert list(made.state_dict()) == ["_orig_mod.0.weight", "_orig_mod.0.bias"]
        assert not made.eval()._orig_mod[1].training
        made.train()
        assert net.training and next(made.parameters()) is net[0].weight
        assert made(torch.ones(1, 3)).shape == (1, 2)
    with pytest.raises(TypeError, match="unexpected keyword argument 'fast'"):
        torch.compile(net, fast=True)


@pytest.mark.parametrize("options", [{}, {"bidirectional": True}, {"num_layers": 2, "bias": False}])
def test_lstm_in_single_precision_is_one_node_a_layer(options: dict[str, Any]) -> None:
    """Its gradients, and theirs, are those of the steps one by one, as double precision has them."""
    torch.manual_seed(4)
    single = nn.LSTM(3, 4, **options)
    double = nn.LSTM(3, 4, **options).double()
    double.load_state_dict(single.state_dict())
    x = torch.randn(5, 2, 3)
    answers = []
    for layer, kind in ((single, torch.float32), (double, torch.float64)):
        given = x.to(kind).requires_grad_()
        outputs, (h, c) = layer(given)
        node = h.grad_fn.next_functions[0][0]
        assert (node.name() == "MkldnnRnnLayerBackward0") == (layer is single)
        loss = (outputs**2).sum() + (h * c).sum()
        (slope,) = torch.autograd.grad(loss, given, create_graph=True)
        (slope**2).sum().backward()
        answers.append([slope.detach(), *(p.grad for p in layer.parameters())])
    assert all(np.allclose(a.numpy(), b.numpy(), atol=2e-5) for a, b in zip(*answers, strict=True))
    (single(x)[0] ** 2).sum().backward()
    if single.bias:  # both have the same gradient, each in memory of its own
        first, second = single.bias_ih_l0.grad, single.bias_hh_l0.grad
        assert not np.may_share_memory(first.numpy(), second.numpy())


@pytest.mark.parametrize("small", [0, 3, 15])  # none, the biases, all
@pytest.mark.parametrize("optimizer", [o for o in OPTIMIZERS if "LBFGS" not in o])
def test_blocks_of_elements_have_the_bits_of_tensors(
    optimizer: str, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gradcli.torch.optim import blocks

    monkeypatch.setattr(blocks, "SIZE", 7 if small < 15 else 18)  # the 15 weights are three blocks
    monkeypatch.setattr(blocks, "SMALL", small)
    monkeypatch.setattr(blocks, "_kept", threading.local())  # of memory of that size
    in_blocks = trained(torch, optimizer)
    monkeypatch.setattr("gradcli.torch.optim.optimizer.are_bare", lambda tensors: False)
    assert in_blocks == trained(torch, optimizer)


def native(monkeypatch: pytest.MonkeyPatch, loops: list[Any]) -> None:
    """Steps are loops in C from the second on that is alike; `loops` has them."""

    def begin(make: Any) -> None:
        loops.append(make.__self__)
        make()

    monkeypatch.setattr(background_code, "ENOUGH", -1)
    monkeypatch.setattr(background_code, "begin", begin)
    monkeypatch.setattr(background_code, "possible", True)
    element_loops.loop.cache_clear()


@pytest.mark.long
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("optimizer", [o for o in OPTIMIZERS if "LBFGS" not in o])
def test_a_loop_in_c_has_the_bits_of_tensors(
    optimizer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loops: list[Any] = []
    native(monkeypatch, loops)
    in_c = trained(torch, optimizer)
    by_elements = getattr(torch.optim, optimizer.split("(")[0]).by_elements
    assert [one._functions is not None for one in loops] == [True] * len(loops)
    assert bool(loops) == by_elements
    monkeypatch.setattr("gradcli.torch.optim.blocks.Recorded.move", lambda *given: False)
    monkeypatch.setattr("gradcli.torch.optim.optimizer.are_bare", lambda tensors: False)
    assert in_c == trained(torch, optimizer)


@pytest.mark.parametrize("in_c", [False, pytest.param(True, marks=pytest.mark.long)])
def test_parameters_that_share_memory_are_moved_one_after_the_other(
    in_c: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if in_c:
        native(monkeypatch, [])
    whole = nn.Parameter(torch.ones(4))
    part = nn.Parameter(whole.detach()[:2])
    optimizer = torch.optim.SGD([whole, part], lr=0.1, momentum=0.5)
    for _ in range(3):
        whole.grad, part.grad = torch.ones(4), torch.ones(2)
        optimizer.step()
    wanted = [0.15, 0.15, 0.575, 0.575]  # of torch 2.13
    assert whole.tolist() == pytest.approx(wanted, abs=1e-6)


@pytest.mark.long
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_a_loop_takes_the_rest_of_a_model_with_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    loops: list[Any] = []
    native(monkeypatch, loops)
    found = []
    for move in (None, lambda *given: False):
        scale = nn.Parameter(torch.tensor(2.0))  # 0-d, which no loop takes
        turned = nn.Parameter(torch.arange(6.0).reshape(2, 3).T)  # nor one that lies by column
        weight = nn.Parameter(torch.arange(6.0))
        if move is not None:
            monkeypatch.setattr("gradcli.torch.optim.blocks.Recorded.move", move)
        optimizer = torch.optim.SGD([scale, turned, weight], lr=0.1, momentum=0.5)
        for rate in (0.1, 0.1, 0.3):
            optimizer.param_groups[0]["lr"] = rate
            optimizer.zero_grad()
            (scale * turned.sum() * weight.exp().sum().log()).backward()
            optimizer.step()
        found.append([p.tolist() for p in (scale, turned, weight)])
    assert found[0] == found[1] and any(one._functions for one in loops)


def test_numpy_goes_on_where_no_compiler_is(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = trained(torch, "Adam(p)")
    loops: list[Any] = []
    native(monkeypatch, loops)
    monkeypatch.setenv("CC", "there-is-no-such-compiler")
    monkeypatch.setattr(c_compiler, "_loaded", {})
    assert trained(torch, "Adam(p)") == wanted
    assert [one._functions for one in loops] == [None]
    assert not background_code.possible


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_an_optimizer_steps_as_pytorchs(optimizer: str) -> None:
    loose = "LBFGS" in optimizer  # its steps depend on rounding where there is little left to gain
    true = RECORDED["optimizers"][optimizer]
    assert close(trained(torch, optimizer), true, 5e-5 if loose else 5e-6)


@pytest.mark.long
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_finds_what_it_finds_with_pytorch(program: str) -> None:
    found, true = told(torch, program), RECORDED["programs"][program]
    assert close(found, true, 2e-5) if isinstance(true, list) else found == true


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_schedule_is_pytorchs(schedule: str) -> None:
    assert close(rates(torch, schedule), RECORDED["schedules"][schedule], 1e-12)


def test_batches_come_in_pytorchs_order() -> None:
    assert batches(torch) == RECORDED["batches"]


FORWARD = ' the required "forward" function'


def network() -> nn.Module:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
            self.heads = nn.ModuleList([nn.Linear(4, 1), nn.Linear(4, 2)])
            self.scale = nn.Parameter(torch.ones(1))
            self.register_buffer("count", torch.zeros(1))

        def forward(self, x: Any) -> Any:
            return self.heads[0](self.body(x)) * self.scale

    return Net()


def test_names() -> None:
    net = network()
    assert [n for n, _ in net.named_parameters()] == [
        *("scale", "body.0.weight", "body.0.bias"),
        *("heads.0.weight", "heads.0.bias", "heads.1.weight", "heads.1.bias"),
    ]
    assert list(net.state_dict())[:2] == ["scale", "count"]
    assert [n for n, _ in net.named_modules()] == [
        *("", "body", "body.0", "body.1", "heads", "heads.0", "heads.1"),
    ]
    assert net.get_submodule("heads.1") is net.heads[1]
    assert sum(p.numel() for p in net.parameters()) == 1 + 16 + 5 + 10


def test_state_goes_to_a_file_and_back(tmp_path: Path) -> None:
    one, other = network(), network()
    torch.save(one.state_dict(), tmp_path / "net.pt")
    assert repr(other.load_state_dict(torch.load(tmp_path / "net.pt"))) == (
        "<All keys matched successfully>"
    )
    x = torch.randn(2, 3)
    assert torch.equal(one(x), other(x))


@pytest.mark.needs("torch")
def test_state_goes_to_pytorch_and_back(tmp_path: Path) -> None:
    import torch as theirs

    own, other = nn.LSTM(3, 4, 2), theirs.nn.LSTM(3, 4, 2)
    torch.save(own.state_dict(), tmp_path / "own.pt")
    other.load_state_dict(theirs.load(tmp_path / "own.pt"))
    x = np.ones((5, 2, 3), np.float32)
    value = other(theirs.from_numpy(x))[0].detach().numpy()
    np.testing.assert_allclose(
        own(torch.from_numpy(x))[0].detach().numpy(), value, rtol=1e-5, atol=1e-6
    )
    theirs.save(other.state_dict(), tmp_path / "theirs.pt")
    nn.LSTM(3, 4, 2).load_state_dict(torch.load(tmp_path / "theirs.pt"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda s: {k: v for k, v in s.items() if k != "scale"} | {"other": s["scale"]},
            "Error(s) in loading state_dict for Net:\n"
            '\tMissing key(s) in state_dict: "scale". \n'
            '\tUnexpected key(s) in state_dict: "other". ',
        ),
        (
            lambda s: s | {"scale": torch.ones(2)},
            "Error(s) in loading state_dict for Net:\n\tsize mismatch for scale: copying a param with "
            "shape torch.Size([2]) from checkpoint, the shape in current model is torch.Size([1]).",
        ),
    ],
)
def test_what_does_not_fit_is_named(change: Any, words: str) -> None:
    net = network()
    with pytest.raises(RuntimeError) as raised:
        net.load_state_dict(change(dict(net.state_dict())))
    assert str(raised.value) == words


def test_hooks() -> None:
    layer, seen = nn.Linear(2, 2), []
    before = layer.register_forward_pre_hook(lambda m, args: (args[0] * 2,))
    after = layer.register_forward_hook(lambda m, args, out: seen.append(args[0].tolist()))
    layer(torch.ones(2))
    assert seen == [[2.0, 2.0]]
    before.remove()
    after.remove()
    layer(torch.ones(2))
    assert len(seen) == 1


def test_dtypes_and_modes() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).double().eval()
    assert net[0].weight.dtype is torch.float64 and not net[1].training
    assert net[1].num_batches_tracked.dtype is torch.int64
    assert net.train()[1].training


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda: nn.Conv2d(3, 4, 3, groups=2), ValueError, "in_channels must be divisible by groups"),
        (lambda: nn.Dropout(1.5), ValueError, "dropout probability has to be between 0 and 1, but got 1.5"),
        (lambda: nn.Linear(2), TypeError, "Linear.__init__() missing a required argument: 'out_features'"),
        (lambda: torch.optim.SGD([], 0.1), ValueError, "optimizer got an empty parameter list"),
        (lambda: torch.optim.Adam([torch.ones(1)], lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda: nn.Module()(1), NotImplementedError, f"Module [Module] is missing{FORWARD}"),
        (lambda: nn.Linear(2, 2).nothing, AttributeError, "'Linear' object has no attribute 'nothing'"),
    ],
)  # fmt: skip
def test_refusals(make: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind) as raised:
        make()
    assert str(raised.value) == words


def test_nothing_is_imported_before_it_is_asked_for() -> None:
    import subprocess
    import sys

    code = "import sys, gradcli.nn.functional; "
    code += "print([m for m in sys.modules if '.nn.modules' in m or 'torch.optim' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_training_learns() -> None:
    torch.manual_seed(0)
    x = torch.linspace(-1, 1, 64).unsqueeze(1)
    y = x**3
    net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), 16, shuffle=True)
    criterion = nn.MSELoss()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(40):
            for batch, wanted in data:
                optimizer.zero_grad()
                criterion(net(batch), wanted).backward()
                nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                optimizer.step()
    assert criterion(net(x), y).item() < 0.03  # and PyTorch 2.13 is there, too; a line has 0.029


@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN"])
def test_no_step_at_all_is_refused_in_pytorchs_words(name: str) -> None:
    with pytest.raises(RuntimeError, match="Expected sequence length to be larger than 0 in RNN"):
        getattr(nn, name)(3, 4)(torch.zeros(0, 2, 3))

"""Whole training programs: a fault is named at its line, with numbers that plain PyTorch confirms."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gradcli.cli import main

if find_spec("torch") is None:
    pytest.skip("PyTorch is not installed", allow_module_level=True)
pytestmark = [pytest.mark.needs("torch"), pytest.mark.long]

PROGRAMS = Path(__file__).parent / "programs"
HEALTHY = sorted(path.stem for path in (PROGRAMS / "healthy").glob("*.py"))


class Plain:
    """A run of a program in plain PyTorch: its names, its backward passes, the error that ended it."""

    def __init__(self, path: Path) -> None:
        import torch

        self.passes: list[dict[int, Any]] = []
        self.losses: list[float] = []
        self.error = ""
        self.names: dict[str, Any] = {"__name__": "__main__", "__file__": str(path)}
        backward = torch.Tensor.backward

        def kept(loss: Any, **options: Any) -> None:
            leaves, stack, seen = [], [loss.grad_fn], set()
            while stack:
                node = stack.pop()
                if node is None or node in seen:
                    continue
                seen.add(node)
                leaves += [node.variable] if hasattr(node, "variable") else []
                stack += [child for child, _ in node.next_functions]
            if leaves:
                grads = torch.autograd.grad(loss, leaves, retain_graph=True)
                self.passes.append({id(p): g for p, g in zip(leaves, grads, strict=True)})
                self.losses.append(loss.item())
            backward(loss, **options)

        torch.Tensor.backward = kept  # type: ignore[method-assign]
        try:
            exec(compile(path.read_text(), str(path), "exec"), self.names)
        except Exception as error:  # the program's own
            self.error = str(error)
        finally:
            torch.Tensor.backward = backward  # type: ignore[method-assign]

    def __getitem__(self, name: str) -> Any:
        return self.names[name]

    def norm(self, parameter: Any, *passes: int) -> float:
        """The norm of a parameter's gradient: of the last pass, or of several added up."""
        found = [self.passes[k][id(parameter)] for k in passes or (-1,)]
        return float(sum(found).norm())

    def total(self, k: int) -> float:
        """The norm of all gradients of a pass."""
        return math.hypot(*(float(g.norm()) for g in self.passes[k].values()))


def _leaf_alone(run: Plain) -> tuple[float, ...]:
    assert not run["w"].is_leaf and run["w"].grad is None
    return (run.norm(next(node for node, _ in run["w"].grad_fn.next_functions).variable),)


def _without(*names: str) -> Callable[[Plain], tuple[float, ...]]:
    def proof(run: Plain) -> tuple[float, ...]:
        assert all(run[name].grad is None for name in names)
        return (len(names),)

    return proof


def _gate(run: Plain) -> tuple[float, ...]:
    gate = run.names.get("gate", getattr(run["net"], "gate", None))
    assert gate is not None and gate.grad is None and id(gate) not in run.passes[-1]
    return (1,)


def _inputs(kind: str) -> Callable[[Plain], tuple[float, ...]]:
    """The smallest and the largest of what a loss was given, in the last pass but its step."""

    def proof(run: Plain) -> tuple[float, ...]:
        import torch

        net, x = run["net"], run["x"]
        with torch.no_grad():  # the last step undone: plain SGD
            for p in net.parameters():
                p += 0.1 * run.passes[-1][id(p)]
            out = net(x)
        low, high = out.min().item(), out.max().item()
        assert low >= 0 and high <= 1
        return (low, high, math.log(math.e + 2) - 1) if kind == "softmax" else (low, high)

    return proof


def _nan_without_steps(run: Plain) -> tuple[float, ...]:
    """The first loss that is NaN, and the row of zeros: a step of the rate 0 changes neither."""
    text = Path(run["__file__"]).read_text().replace("lr=0.1", "lr=0.0")
    names: dict[str, Any] = {}
    exec(text, names)
    assert all(map(math.isnan, run.losses[1:2])) and math.isnan(float(names["emb"].weight.sum()))
    return (1 + next(k for k, loss in enumerate(run.losses) if math.isnan(loss)), 7 % 4)


def _scores(run: Plain) -> tuple[float, ...]:
    """The largest score in the last pass: its step undone."""
    import torch

    with torch.no_grad():
        for p in run["net"].parameters():
            p += 0.1 * run.passes[-1][id(p)]
        return (run["net"](run["x"]).max().item(),)


def _steps(run: Plain) -> tuple[float, ...]:
    """How much larger than a weight its first steps are, at most; the losses."""
    import torch

    torch.manual_seed(0)
    torch.randn(16, 4), torch.randint(0, 3, (16,))
    first, rate = run["opt"], run["opt"].param_groups[0]["lr"]
    nn = torch.nn
    net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
    again, ratios = type(first)(net.parameters(), lr=rate), []
    for _ in run.losses:
        before = [p.detach().clone() for p in net.parameters()]
        again.zero_grad()
        nn.functional.cross_entropy(net(run["x"]), run["y"]).backward()
        again.step()
        pairs = zip(net.parameters(), before, strict=True)
        ratios += [((p - b).norm() / b.norm()).item() for p, b in pairs if p.ndim > 1]
    assert run.losses[-1] > run.losses[0]
    return max(ratios), run.losses[0], run.losses[-1]


def _shares(run: Plain) -> tuple[float, ...]:
    """The largest share that softmax gives in the first four passes, whose steps are made again."""
    import torch

    net, x, high = run["net"], run["x"], 0.0
    with torch.no_grad():
        for grads in reversed(run.passes):
            for p in net.parameters():
                p += 0.1 * grads[id(p)]
            high = max(high, float(torch.softmax(net(x), 1).max()))
    return (high,)


def _grown(losses: list[float]) -> tuple[float, ...]:
    """(steps, the last factor, the first and the last loss) before the loss is infinite."""
    known = [loss for loss in losses if math.isfinite(loss)]
    assert known == sorted(known) and len(known) < len(losses)
    return len(known) - 1, (known[-1] / known[-4]) ** (1 / 3), known[0], known[-1]


def _refused(words: str, *numbers: float) -> Callable[[Plain], tuple[float, ...]]:
    def proof(run: Plain) -> tuple[float, ...]:
        assert words in run.error
        return numbers

    return proof


def _rounded(run: Plain) -> tuple[float, ...]:
    assert not run["w"].grad.any()
    h = run["x"].mm(run["w"]).round()
    return ((2 * h / h.numel()).norm().item(),)


SPREAD = r"spreads them against one another: (\d+) differences instead of (\d+)"
GRAD = r"\|grad\| (\S+?), 0 of (\d) steps? changed it"
NO_GRAD = r"(\d) (?:leaf|parameter|leaves|parameters) without a gradient \((?:w|gate)\): "
# program -> kind of finding, what it says, the numbers of it in a plain run
FAULTS: dict[str, tuple[str, str, Callable[[Plain], tuple[float, ...]]]] = {
    "a_parameter_beside_the_model": (
        *("not optimized", rf"\(W, {GRAD}\): in no module"),
        lambda run: (run.norm(run["W"]), 3),
    ),
    "a_scaled_parameter": (
        *("not optimized", r"\(scale, .*, 0 of (\d) step changed it\): registered nowhere"),
        lambda run: (len(run.passes),),
    ),
    "a_cast_parameter": (
        *("not optimized", rf"\(scale, {GRAD}\): registered nowhere"),
        lambda run: (run.norm(run["net"].scale.grad_fn.next_functions[0][0].variable), 3),
    ),
    "a_cast_leaf": ("no leaf", "w is no leaf", lambda run: _leaf_alone(run)[1:]),
    "a_cast_leaf_not_read": ("no leaf", r"\|grad\| (\S+) goes to a leaf without a name", _leaf_alone),
    "a_gate_as_a_number": ("no gradient", NO_GRAD + r"item\(\) makes a number", _gate),
    "a_gate_beside_as_a_number": ("no gradient", NO_GRAD + r"item\(\) makes a number", _gate),
    "the_loss_as_a_number": (
        *("no gradient", "the loss is a number and no tensor"),
        _refused("'float' object has no attribute 'backward'"),
    ),
    "numbers_copied": ("no gradient", NO_GRAD + r"torch.tensor\(…\) copies", _without("w")),
    "numbers_copied_beside": ("no gradient", NO_GRAD + r"torch.tensor\(…\) copies", _without("w")),
    "argmax": ("no gradient", NO_GRAD + r"argmax\(\) ends the graph", _without("w")),
    "comparison": ("no gradient", NO_GRAD + "> ends the graph", _without("w")),
    "whole_numbers": ("no gradient", NO_GRAD + r"long\(\) ends the graph", _without("w")),
    "data": ("no gradient", NO_GRAD + r".data ends the graph", _without("w")),
    "through_numpy": ("no gradient", NO_GRAD + r"detach\(\) ends the graph", _without("w")),
    "rounding": ("vanishing", r"RoundBackward0: \|grad\| falls to 0 \((\S+) → 0\)", _rounded),
    "never_zeroed": (
        *("step", r"3 of 4 steps of SGD .* \|grad\| was (\S+) before a backward pass and (\S+) after it"),
        lambda run: (run.norm(run["net"].weight, 0), run.norm(run["net"].weight, 0, 1)),
    ),
    "zeroed_too_late": (
        *("step", r"(\d) of (\d) steps of SGD found no gradient: zero_grad\(\) runs between"),
        lambda run: (len(run.passes), 4) if run["net"].weight.grad is None else (),
    ),
    "stepped_too_early": (
        *("step", r"(\d) of (\d) steps of SGD found no gradient: step\(\) runs before backward\(\)"),
        lambda run: (len(run.passes), 4) if math.isclose(run.losses[0], run.losses[-1]) else (),
    ),
    "a_layer_made_anew": (
        *("not optimized", rf"\(2.bias, 2.weight, {GRAD}\): made after the optimizer, whose (\d) parameters"),
        lambda run: (max(map(run.norm, run["net"][2].parameters())), 4, 2),
    ),
    "softmax_twice": (
        *("loss", r"from (\S+) to (\S+)\) .* it cannot fall below (\S+)"),
        _inputs("softmax"),
    ),
    "sigmoid_twice": ("loss", r"from (\S+) to (\S+)\)", _inputs("sigmoid")),
    "spread_shapes": (
        *("loss", SPREAD),
        lambda run: ((run["net"](run["x"]) - run["target"]).numel(), len(run["target"])),
    ),
    "spread_shapes_mse": (
        *("loss", SPREAD),
        lambda run: ((run["net"](run["x"]) - run["target"]).numel(), len(run["target"])),
    ),
    "training_in_eval": (
        *("mode", r"in eval mode in (\d) of (\d) steps"),
        lambda run: (2 - run["net"].training, len(run.passes)),
    ),
    "evaluation_in_train": (
        *("mode", r"in train mode in (\d) evaluation \(1 BatchNorm1d, 1 Dropout\)"),
        # every call in train mode is counted by batch norm: one more than there were steps
        lambda run: (int(run["net"][1].num_batches_tracked) - len(run.passes),),
    ),
    "labels_of_floats": ("error", r"labels float32 \(16,\)", _refused("expected")),
    "targets_of_whole_numbers": ("error", r"labels int64 \(16, 1\)", _refused("can't be cast")),
    "too_large_steps": ("learning rate", r"is (\S+) times as large .* from (\S+) to (\S+)", _steps),
    "too_large_steps_adam": ("learning rate", r"is (\S+) times as large .* from (\S+) to (\S+)", _steps),
    "layers_in_a_list": (
        *("not optimized", rf"and 2 more, {GRAD}\): layers is a plain list"),
        lambda run: (max(run.norm(p) for one in run["net"].layers for p in one.parameters()), 5),
    ),
    "a_loss_made_anew": (
        *("no gradient", r"(\d) parameters without a gradient \(weight, bias\): item\(\) makes a number"),
        lambda run: (sum(p.grad is None for p in run["net"].parameters()),),
    ),
    "a_stage_cut_off": (
        *("no gradient", r"(\d) parameters without a gradient \(encoder.weight, encoder.bias\): detach\(\)"),
        lambda run: (sum(p.grad is None for p in run["encoder"].parameters()),),
    ),
    "a_last_relu": (
        *("dead relu", r"(\d+)% of the units of a relu are 0"),
        lambda run: (100 * (run["net"](run["x"]) == 0).float().mean().item(),),
    ),
    "never_stepped": (
        *("step", r"gradients of (\d) backward passes \(\|grad\| up to (\S+)\) were zeroed unused"),
        lambda run: (len(run.passes) - 1, max(map(run.norm, run["net"].parameters()))),
    ),
    "nll_of_scores": ("loss", r"given scores \(up to (\S+)\)", _scores),
    "another_model": (
        *("not optimized", rf"{GRAD}\): made after the optimizer, whose (\d) parameters"),
        lambda run: (max(map(run.norm, run["model"].parameters())), 4, 4),
    ),
    "clipped_after_the_step": (
        *("step", r"clips (\d) times what step.* \|grad\| up to (\S+) \(max_norm is (\S+)\)"),
        lambda run: (len(run.passes), max(map(run.total, range(4))), 1),
    ),
    "clipped_before_the_pass": (
        *("step", r"has nothing to clip in (\d) calls"),
        lambda run: (len(run.passes),),
    ),
    "a_schedule_before_the_step": ("step", "the first learning rate is never used", lambda run: ()),
    "an_optimizer_a_step": (
        *("step", r"made anew (\d) times, .* \(exp_avg, exp_avg_sq\) is lost"),
        lambda run: (len(run.passes),),
    ),
    "dropout_in_eval": ("mode", r"dropout drops in (\d) call", lambda run: (1 - run["net"].training,)),
    "kl_of_probabilities": ("loss", r"given numbers up to (\S+), and wants logarithms", _shares),
    "steps_lost_in_rounding": (
        *("learning rate", r"step 4 of opt \(SGD\) with lr=1e-12 leaves (\d+)% .* than float32 can hold"),
        lambda run: (100 * (run.losses[0] == run.losses[-1]),),
    ),
    "a_rate_that_diverges": (
        *("learning rate", r"in each of (\d+) steps, at last (\S+)-fold, from (\S+) \(step 1\) to (\S+)"),
        lambda run: _grown(run.losses),
    ),
    "units_alike": (
        *("initialisation", r"all (\d+) units of 0.weight are alike"),
        lambda run: (16 - 2e6 * (run["net"][0].weight - run["net"][0].weight[0]).abs().max().item(),),
    ),
    "all_frozen": (
        *("no gradient", r"(\d) parameters .* requires_grad is False"),
        _refused("does not require grad", 4),
    ),
    "thawed_too_late": (
        *("not optimized", rf"\(0.bias, 0.weight, {GRAD}\): its requires_grad was switched on after"),
        lambda run: (max(map(run.norm, run["net"][0].parameters())), 4),
    ),
    "a_class_too_many": ("error", r"Target (\d) is out of bounds", _refused("out of bounds", 3)),
    "bce_of_scores": ("error", "should be between 0 and 1", _refused("between 0 and 1")),
    "copied_after_the_optimizer": (
        *("not optimized", rf"{GRAD}\): made after the optimizer, whose (\d) parameters"),
        lambda run: (max(map(run.norm, run["model"].parameters())), 4, 2),
    ),
    "a_layer_only_saved": (
        *("no gradient", r"(\d) parameters without a gradient .*: no operation that leads to the loss"),
        lambda run: (sum(p.grad is None for p in run["net"].parameters()),),
    ),
    "probabilities_across_the_batch": (
        *("loss", r"sum to (\d) over the rows of the batch \(dim=0\)"),
        lambda run: (run["logs"].exp().sum(0).mean().item(),),
    ),
    "softmax_across_the_batch": (
        *("loss", r"sum to (\d) over the rows of the batch \(dim=0\)"),
        lambda run: (run["net"](run["x"]).sum(0).mean().item(),),
    ),
    "a_row_of_padding": ("not finite", r"in step (\d), first at row (\d)", _nan_without_steps),
    "a_row_of_padding_projected": (
        *("not finite", r"in step (\d), first at row (\d)"),
        _nan_without_steps,
    ),
    "a_generator_detached": (
        *("no gradient", r"to_make \(Adam\) found no gradient in each of its (\d) steps \((\d) .*: detach"),
        lambda run: (len(run.passes) / 2, sum(p.grad is None for p in run["make"].parameters())),
    ),
    "a_generator_of_the_other_loss": (
        *("no gradient", r"each of its (\d) steps \((\d) .*; what another loss gave them was zeroed"),
        lambda run: (len(run.passes) / 2, sum(p.grad is None for p in run["make"].parameters())),
    ),
    "losses_kept": ("memory", r"(\d) graphs of earlier steps hang on `losses`", lambda run: (5,)),
}  # fmt: skip
# program -> (what is wrong, what stands there when the advice is taken): then nothing is found
TAKEN = {
    "clipped_after_the_step": (
        "    opt.step()\n    nn.utils.clip_grad_norm_(net.parameters(), 1.0)",
        "    nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n    opt.step()",
    ),
    "clipped_before_the_pass": (
        "    nn.utils.clip_grad_norm_(net.parameters(), 1.0)  # FAULT\n    loss.backward()",
        "    loss.backward()\n    nn.utils.clip_grad_norm_(net.parameters(), 1.0)",
    ),
    "a_schedule_before_the_step": (
        "    s.step()  # FAULT\n    opt.step()", "    opt.step()\n    s.step()"
    ),
    "an_optimizer_a_step": (
        "for _ in range(4):\n    opt = torch.optim.Adam(net.parameters(), lr=0.01)",
        "opt = torch.optim.Adam(net.parameters(), lr=0.01)\nfor _ in range(4):\n    pass",
    ),
    "dropout_in_eval": (", 0.5)", ", 0.5, training=self.training)"),
    "kl_of_probabilities": ("kl_div(torch.softmax", "kl_div(torch.log_softmax"),
    "steps_lost_in_rounding": ("lr=1e-12", "lr=1e-1"),
    "a_rate_that_diverges": ("lr=0.1)  #", "lr=0.0045)  #"),
    "units_alike": ("nn.init.constant_(m.weight, 0.5)", "nn.init.kaiming_uniform_(m.weight)"),
    "all_frozen": ("requires_grad = False", "requires_grad = True"),
    "thawed_too_late": (
        "            p.requires_grad = True  # FAULT",
        "            p.requires_grad = True\n            opt.add_param_group({'params': [p]})",
    ),
    "a_class_too_many": ("net(x), y)", "net(x), y - 1)"),
    "bce_of_scores": ("F.binary_cross_entropy(", "F.binary_cross_entropy_with_logits("),
    "copied_after_the_optimizer": (
        "opt = torch.optim.SGD(net.parameters(), lr=0.1)\nmodel = copy.deepcopy(net)",
        "model = copy.deepcopy(net)\nopt = torch.optim.SGD(model.parameters(), lr=0.1)",
    ),
    "probabilities_across_the_batch": ("dim=0", "dim=1"),
    "softmax_across_the_batch": ("dim=0", "dim=1"),
    "a_row_of_padding": (
        "v / v.norm(dim=-1, keepdim=True)",
        "v / torch.where((d := v.norm(dim=-1, keepdim=True)) == 0, 1, d + 0 * v.sum())",
    ),
    "a_generator_detached": ("made.detach()), torch.ones", "made), torch.ones"),
    "a_generator_of_the_other_loss": (
        "tell(made), torch.zeros(16, 1))\n    told.backward()\n    to_tell.step()\n    to_make.zero_grad()\n"
        "    loss = judge(tell(made.detach())",
        "tell(made.detach()), torch.zeros(16, 1))\n    told.backward()\n    to_tell.step()\n"
        "    to_make.zero_grad()\n    loss = judge(tell(made)",
    ),
    "losses_kept": ("losses.append(loss)", "losses.append(loss.item())"),
}  # fmt: skip
AND_AN_ERROR = {"a_scaled_parameter"}  # which PyTorch raises in the second pass


def diagnosed(path: Path) -> list[dict[str, Any]]:
    done = CliRunner().invoke(main, ["graph", "--torch", str(path), "--diagnose", "--json"])
    assert done.exit_code == ("Traceback" in done.stderr), done.output
    found: list[dict[str, Any]] = json.loads(done.stdout)["diagnosis"]
    return [one for one in found if one["fault"]]


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_program_has_no_finding(name: str) -> None:
    assert diagnosed(PROGRAMS / "healthy" / f"{name}.py") == []


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named_and_its_number_is_confirmed(name: str) -> None:
    kind, words, proof = FAULTS[name]
    path = PROGRAMS / "faulty" / f"{name}.py"
    found = diagnosed(path)
    if name in AND_AN_ERROR:
        assert "a second time" in found.pop(0)["text"]
    (one,) = found
    line = 1 + next(k for k, text in enumerate(path.read_text().splitlines()) if "# FAULT" in text)
    assert (one["kind"], one["line"]) == (kind, line) and one["advice"]
    said = re.search(words, one["text"])
    assert said is not None, one["text"]
    expected = proof(Plain(path))
    assert len(expected) == len(said.groups())
    for text, number in zip(said.groups(), expected, strict=True):
        assert math.isclose(float(text), number, rel_tol=0.06), (one["text"], expected)


@pytest.mark.parametrize("name", TAKEN)
def test_the_advice_was_taken(name: str, tmp_path: Path) -> None:
    text = (PROGRAMS / "faulty" / f"{name}.py").read_text()
    wrong, right = TAKEN[name]
    assert wrong in text
    path = tmp_path / f"{name}.py"
    path.write_text(text.replace(wrong, right))
    assert diagnosed(path) == []


@pytest.mark.parametrize("seed", ["", "torch.manual_seed(3)\n"])
def test_numbers_of_one_run_are_told_as_such(seed: str, tmp_path: Path) -> None:
    path = tmp_path / "deep.py"
    path.write_text(
        f"import torch\nfrom torch import nn\n{seed}"
        "net = nn.Sequential(*[m for _ in range(12) for m in (nn.Linear(8, 8), nn.Sigmoid())])\n"
        "loss = net(torch.randn(16, 8)).mean()\nloss.backward()\n"
    )
    done = CliRunner().invoke(main, ["graph", "--torch", str(path), "--diagnose"])
    assert "divides the gradient" in done.stdout
    assert ("the program sets no seed" in done.stderr) is (not seed)


def test_every_program_is_in_the_table() -> None:
    assert sorted(FAULTS) == sorted(path.stem for path in (PROGRAMS / "faulty").glob("*.py"))
    assert len(HEALTHY) >= 20 and len(FAULTS) >= 20

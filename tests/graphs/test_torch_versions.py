"""`graph --torch` on whatever PyTorch there is: looking changes nothing, and what cannot be seen is said."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gradcli.cli import main

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: the extra of the tests")

from torch import nn  # noqa: E402

from gradcli import graphs  # noqa: E402
from gradcli.graphs.of_torch import torch_versions  # noqa: E402
from gradcli.graphs.of_torch.torch_facts import Facts  # noqa: E402
from gradcli.graphs.of_torch.torch_notes import Note  # noqa: E402
from gradcli.graphs.of_torch.torch_watch import Watch  # noqa: E402
from gradcli.graphs.of_torch.training_facts import Training  # noqa: E402


def graph(folder: Path, program: str, *options: str) -> Any:
    path = folder / "program.py"
    path.write_text(f"import torch\nfrom torch import nn\n{textwrap.dedent(program)}")
    return CliRunner().invoke(main, ["graph", "--torch", str(path), *options], prog_name="gradcli")


ALL = ("--saved", "--values", "--grads")

REENTRANT = """\
from torch.utils.checkpoint import checkpoint
a, b = nn.Linear(4, 4), nn.Linear(4, 1)
x = torch.ones(3, 4, requires_grad=True)
h = checkpoint(lambda t: torch.tanh(a(t)), x, use_reentrant=True)
loss = b(h).pow(2).mean()
loss.backward()
"""


@pytest.mark.long
@pytest.mark.parametrize("options", [(), ALL, ("--norms",), ("--time",), ("--detect-anomaly",)])
def test_a_pass_within_the_pass_is_not_the_programs(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    done = graph(tmp_path, REENTRANT, *options)
    assert done.exit_code == 0, done.stderr
    if options[:1] in ((), ALL[:1]):
        assert done.stdout.startswith("MeanBackward0 loss")
        assert "CheckpointFunctionBackward h" in done.stdout


@pytest.mark.long
def test_what_only_the_pass_within_trains_is_known(tmp_path: Path) -> None:
    done = graph(tmp_path, REENTRANT, "--diagnose")
    assert done.exit_code == 0 and "a.weight" not in done.stdout, done.stdout


@pytest.mark.long
def test_a_nan_behind_a_reentrant_checkpoint_ends_nothing(tmp_path: Path) -> None:
    program = REENTRANT.replace("torch.tanh(a(t))", "torch.sqrt(a(t) * 0)")
    done = graph(tmp_path, program)
    assert done.exit_code == 0 and "Error" not in done.stderr, done.stderr
    assert done.stdout.startswith("MeanBackward0 loss")


JVP = """\
from torch.func import jvp
m = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
y, t = jvp(m, (torch.ones(3, 2),), (torch.ones(3, 2),))
loss = (y.pow(2) + t.pow(2)).sum()
loss.backward()
"""


@pytest.mark.long
def test_zeros_of_forward_mode_are_zeros_without_memory(tmp_path: Path) -> None:
    done = graph(tmp_path, JVP, *ALL)
    assert done.exit_code == 0, done.stderr
    assert "[[0], [0], [0], [0]]  (4, 1) 0 B" in done.stdout


@pytest.mark.long
def test_nodes_made_inside_a_transform_have_the_line_and_the_module_that_made_them(
    tmp_path: Path,
) -> None:
    nodes = json.loads(graph(tmp_path, JVP, "--json").stdout)["nodes"]
    inner = [n for n in nodes if n["name"].startswith("Tanh")]
    assert [(n["name"], n.get("line"), n.get("module")) for n in inner] == [
        ("TanhBackward0", 5, "1"),
        ("TanhBackwardBackward0", 5, "1"),
    ]


def test_nodes_made_by_a_backward_pass_have_its_line(tmp_path: Path) -> None:
    program = """\
    x = torch.ones(2, requires_grad=True)
    y = x.exp().sum()
    y.backward(create_graph=True)

    loss = (x.grad * x.grad).sum()
    loss.backward()
    """
    nodes = json.loads(graph(tmp_path, program, "--json").stdout)["nodes"]
    assert {n["name"]: n.get("line") for n in nodes if n["next"]} == {
        "SumBackward0": 7,
        "MulBackward0": 5,
        "CopyBackwards": 5,
        "ExpBackward0": 4,
    }


def test_a_node_made_before_the_watch_has_no_line_of_it() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    with graphs.watching(nn.Identity()):
        loss = (2 * y).sum()
    found = {record.name: record.place for record in graphs.inspect(loss).records}
    assert found["ExpBackward0"] is None and found["MulBackward0"] is not None


def test_the_scratch_memory_of_a_kernel_is_not_read(tmp_path: Path) -> None:
    program = "y, _ = nn.LSTM(3, 4)(torch.ones(5, 2, 3))\nloss = y.pow(2).mean()\n"
    lines = graph(tmp_path, program, "--saved").stdout.splitlines()
    told = [line for line in lines if "workspace" in line]
    assert len(told) == 1 and told[0].endswith(" bytes)"), lines
    saved = json.loads(graph(tmp_path, program, "--json").stdout)["nodes"]
    assert sum("workspace of" in str(node["saved"]) for node in saved) == 1


HOOKED = """\
def unpacked(tensor):
    raise SystemExit("the program's own hook was run")

x = torch.ones(4, requires_grad=True)
with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpacked):
    a = x.exp()
    b = a[torch.tensor([0, 1])]
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return 2 * x
        @staticmethod
        def backward(ctx, grad):
            return 2 * grad
    c = Twice.apply(b)
loss = c.sum()
"""


def test_looking_runs_no_hook_that_unpacks(tmp_path: Path) -> None:
    done = graph(tmp_path, HOOKED, "--saved", "--values")
    assert done.exit_code == 0 and "own hook" not in done.stderr
    why = "packed by a hook" if torch_versions.tells() else "does not say if a hook packed it"
    assert done.stdout.count(why) == 3  # of exp, of the list of indices, of the custom Function


def test_looking_at_what_nobody_watched_runs_no_hook() -> None:
    names: dict[str, Any] = {"torch": torch}
    exec(HOOKED, names)
    text = str(graphs.inspect(names["loss"]).tree(saved=True))
    assert text.count("packed") == 3


def test_a_tensor_packed_by_hand_is_left_packed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Note, "by_hand", False)  # put back afterwards
    program = """\
    x = torch.ones(4, requires_grad=True)
    y = x.exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda t: t, lambda t: 1 / 0)
    z = x * y
    loss = z.sum()
    """
    done = graph(tmp_path, program, "--saved")
    assert done.exit_code == 0 and "ZeroDivision" not in done.stderr


def test_a_fault_of_ours_is_not_told_as_the_programs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def broken(*_: Any) -> None:
        raise AttributeError("'method' object has no attribute '__func__'")

    monkeypatch.setattr(Watch, "_note", broken)
    monkeypatch.setattr(Watch, "_hear_custom", broken)
    program = """\
    x = torch.ones(2, requires_grad=True)
    try:
        y = x.exp()
    except AttributeError:
        raise SystemExit("the program has met it")
    loss = y.sum()
    loss.backward()
    """
    done = graph(tmp_path, program, "--grads")
    assert done.exit_code == 0 and done.stdout.startswith("SumBackward0 loss")
    assert "program.py" not in done.stderr and "has met it" not in done.stderr
    assert "have failed, the first by AttributeError: 'method'" in done.stderr
    assert "a fault in gradcli" in done.stderr and torch_versions.name() in done.stderr


@pytest.mark.parametrize(
    "owner, name",
    [
        *((Facts, name) for name in ("_parameter", "_stepped")),
        *(
            (Training, name)
            for name in ("_parameter_made", "_optimizer_made", "_steps", "_stepped")
        ),
        *((Training, name) for name in ("_zeroed", "_eval")),
    ],
)
def test_a_hook_of_ours_that_fails_does_not_stop_the_program(
    owner: type, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def broken(*_: Any) -> None:
        raise AttributeError("no such thing")

    monkeypatch.setattr(owner, name, broken)
    program = """\
    layer = torch.nn.Linear(2, 1)
    layer.eval()
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        loss = layer(torch.ones(2)).sum()
        loss.backward()
        optimizer.step()
    """
    done = graph(tmp_path, program, "--diagnose")
    assert done.exit_code == 0 and done.stdout, done.stderr
    assert "program.py" not in done.stderr
    assert "failed, the first by AttributeError: no such thing" in done.stderr


def test_in_python_a_fault_of_ours_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise AttributeError("no such thing")

    monkeypatch.setattr(Watch, "_note", broken)
    x = torch.ones(2, requires_grad=True)
    said = "AttributeError: no such thing; what they would"
    with pytest.warns(UserWarning, match=said), graphs.watching(nn.Identity()):
        loss = x.exp().sum()
    assert str(graphs.inspect(loss)).startswith("SumBackward0")


def test_an_attribute_error_of_the_programs_is_the_programs(tmp_path: Path) -> None:
    done = graph(tmp_path, "x = torch.ones(2, requires_grad=True)\nloss = x.sum()\nx.nothing\n")
    assert "program.py:5: AttributeError" in done.stderr and "fault in gradcli" not in done.stderr


@pytest.mark.parametrize(
    "version, said",
    [
        ("2.13.0", None),
        ("2.99.1+cu140", "PyTorch 2.99.1 is newer than what was tried (2.14)"),
        ("2.8.0", "PyTorch 2.8.0 does not tell all"),
    ],
)
def test_a_version_that_is_not_known_is_named(
    version: str, said: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(torch, "__version__", version)
    done = graph(tmp_path, "loss = torch.ones(2, requires_grad=True).sum()\n")
    assert done.exit_code == 0 and done.stdout.startswith("SumBackward0 loss")
    assert (said in done.stderr) if said else ("note" not in done.stderr)


def test_a_pass_from_an_edge_of_the_graph_runs_as_it_does_alone(tmp_path: Path) -> None:
    program = """\
    x = torch.ones(2, requires_grad=True)
    loss = (x * x).sum()
    torch.autograd.backward(torch.autograd.graph.get_gradient_edge(loss))
    assert x.grad.tolist() == [2, 2]
    """
    done = graph(tmp_path, program, "--grads")
    assert done.exit_code == 0 and "Error" not in done.stderr and "fault" not in done.stderr
    assert done.stdout.startswith("SumBackward0 loss")


def test_what_a_write_to_a_part_has_saved_is_told_where_pytorch_shows_it(tmp_path: Path) -> None:
    program = """\
    x = torch.ones(4, requires_grad=True)
    y = torch.tensor([2.0, 3.0], requires_grad=True)
    a = 2 * x
    a[1:3].mul_(y)
    loss = a.sum()
    """
    nodes = json.loads(graph(tmp_path, program, "--json").stdout)["nodes"]
    (saved,) = (node["saved"] for node in nodes if node["name"] == "CopySlices")
    if not hasattr(torch.autograd.graph, "node_creation_hook"):  # before PyTorch 2.14
        assert saved == {}
        return
    assert saved["function"] == "MulBackward0"
    assert saved["other"]["value"] == [2, 3] and saved["other"]["variable"] == "y"
    done = graph(tmp_path, f"{textwrap.dedent(program)}loss.backward()\n", "--saved")
    assert done.exit_code == 0 and "function MulBackward0" in done.stdout


def test_a_nan_behind_scratch_memory_is_told_without_it(tmp_path: Path) -> None:
    program = """\
    m = nn.LSTM(3, 4)
    y, _ = m(torch.ones(5, 2, 3))
    loss = (y * 0).sqrt().sum()
    loss.backward()
    """
    first = graph(tmp_path, program, "--detect-anomaly")
    assert first.exit_code == 1 and "SqrtBackward0" in first.stderr
    assert "uint8" not in first.stderr
    assert first.stderr == graph(tmp_path, program, "--detect-anomaly").stderr


def test_two_names_stand_on_their_own_nodes(tmp_path: Path) -> None:
    lines = "".join(f"y{k} = y{k - 1}.exp()\n" for k in range(1, 40))
    program = f"y0 = torch.ones(2, requires_grad=True)\n{lines}loss = y39.sum()\n"
    nodes = json.loads(graph(tmp_path, program, "--json").stdout)["nodes"]
    assert [node["label"] for node in nodes[:-1]] == ["loss", *(f"y{k}" for k in range(39, 0, -1))]

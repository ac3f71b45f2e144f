"""PyTorch's own graphs: lines, modules, names, values and gradients, from Python and from the shell."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gradcli.cli import main

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: the extra of the tests")

from torch import nn  # noqa: E402

from gradcli import graphs  # noqa: E402
from gradcli.graphs.of_torch import torch_versions  # noqa: E402

PROGRAM = """\
import sys

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        y = torch.relu(self.fc(x))
        return x + self.norm(y)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(Block(8), Block(8))
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.blocks(x))


def train(steps):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        inner = model(torch.randn(4, 8)).pow(2).mean()
        inner.backward()
        optimizer.step()
    return model


torch.manual_seed(0)
print("steps:", sys.argv[1:])
net = train(2)
x = torch.randn(4, 8)
y = net(x)
loss = y.pow(2).mean()
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "net.py"
    path.write_text(PROGRAM, encoding="utf-8")
    return path


def gradcli(*argv: str) -> Any:
    """The command, in this process: PyTorch takes long to import."""
    done = CliRunner().invoke(main, list(argv), prog_name="gradcli")
    assert done.exception is None or isinstance(done.exception, SystemExit)
    return done


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc, self.norm = nn.Linear(width, width), nn.LayerNorm(width)

    def forward(self, x: Any) -> Any:
        return x + self.norm(torch.relu(self.fc(x)))


def line_of(text: str) -> int:
    return 1 + next(k for k, line in enumerate(PROGRAM.splitlines()) if text in line)


@pytest.mark.long
def test_from_the_shell_every_node_has_its_line_and_its_module(program: Path) -> None:
    done = gradcli(
        *("graph", "--torch", f"{program}:loss", "--json", "--grads", "--values", "--", "2")
    )
    assert done.exit_code == 0, done.stderr
    assert "steps: ['2']" in done.stderr
    found = json.loads(done.stdout)
    nodes = {node["id"]: node for node in found["nodes"]}
    assert nodes[0]["label"] == "loss" and nodes[0]["line"] == line_of("loss = ")
    relu = next(node for node in nodes.values() if node["name"] == "ReluBackward0")
    assert relu["line"] == line_of("torch.relu") and relu["file"].endswith("net.py")
    assert relu["module"] == "blocks.0" and relu["shape"] == [4, 8] and relu["dtype"] == "float32"
    assert relu["grad_stats"]["norm"] > 0 and relu["value_stats"]["zeros"] > 0
    leaves = {n["variable"] for n in nodes.values() if n["name"] == "AccumulateGrad"}
    assert {"head.weight", "blocks.0.fc.bias", "blocks.1.norm.weight"} <= leaves
    fused = next(n for n in nodes.values() if n.get("module") == "blocks.0.fc")
    assert fused["line"] == line_of("torch.relu")  # where the user's code called the library
    paths = [part["path"] for part in found["modules"]]
    assert paths[:4] == ["Net", "blocks", "blocks.0", "blocks.0.fc"]


@pytest.mark.parametrize(
    "name, first",
    [("inner", "MeanBackward0 inner"), ("y", "AddmmBackward0 y"), (None, "MeanBackward0 inner")],
)
def test_a_name_of_the_program_or_of_a_function_that_ran_backward(
    program: Path, name: str | None, first: str
) -> None:
    target = str(program) if name is None else f"{program}:{name}"
    done = gradcli("graph", "--torch", target, "--grads" if name != "y" else "--saved")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith(first)


# Programs that died of being looked at: each must end as it ends alone.
DELICATE = {
    "padding": """
        m = nn.Sequential(nn.Embedding(10, 4, padding_idx=0), nn.Linear(4, 2))
        loss = m(torch.tensor([[0, 1, 2]])).pow(2).mean()
        """,
    "view": """
        b = torch.zeros(4)
        with torch.no_grad():
            v = b[:2]
        b.add_(w[0])
        loss = (b * w[0]).sum()
        """,
    "func": """
        from torch.func import functional_call, grad, vmap
        m = nn.Linear(4, 2)
        def one(p, x):
            return functional_call(m, p, (x,)).pow(2).mean()
        p = dict(m.named_parameters())
        per = vmap(grad(one), (None, 0))(p, torch.ones(3, 4))
        loss = vmap(one, (None, 0))(p, torch.ones(3, 4)).mean() + per["weight"].sum()
        """,
    "sparse": """
        h = torch.relu(torch.sparse.mm(torch.eye(4).to_sparse(), w))
        loss = (torch.eye(4).to_sparse_csr() @ h).pow(2).sum()
        """,
}


@pytest.mark.long
@pytest.mark.parametrize("name", DELICATE)
@pytest.mark.parametrize(
    "options",
    ["", "--norms", "--grads --saved --values", "--detect-anomaly", "--by module", "--format html"],
)
def test_looking_changes_nothing(name: str, options: str, tmp_path: Path) -> None:
    path = tmp_path / "delicate.py"
    head = "import torch\nfrom torch import nn\nw = torch.ones(4, 4, requires_grad=True)\n"
    path.write_text(f"{head}{textwrap.dedent(DELICATE[name])}\nloss.backward()\n")
    done = gradcli("graph", "--torch", str(path), *options.split())
    assert done.exit_code == 0 and "Error" not in done.stderr


@pytest.mark.long
@pytest.mark.parametrize("name, leaves", [("bert", 40), ("gcn", 4)])
def test_whole_programs_run_and_nothing_is_found_wrong(name: str, leaves: int) -> None:
    path = Path(__file__).with_name("programs") / f"{name}.py"
    nodes = json.loads(gradcli("graph", "--torch", str(path), "--json").stdout)["nodes"]
    assert sum(node["name"] == "AccumulateGrad" for node in nodes) == leaves
    for options in ("--norms", "--grads --saved --values", "--detect-anomaly", "--by module"):
        done = gradcli("graph", "--torch", str(path), *options.split())
        assert done.exit_code == 0 and "Error" not in done.stderr and "\n! " not in done.stdout
    found = json.loads(gradcli("graph", "--torch", str(path), "--diagnose", "--json").stdout)
    assert [one for one in found["diagnosis"] if one["fault"]] == []


def test_lines_of_the_program_or_of_the_library_that_it_calls(tmp_path: Path) -> None:
    library = tmp_path / "site-packages" / "lib.py"
    library.parent.mkdir()
    library.write_text(
        "import torch\n\ndef block(x):\n    y = torch.relu(x * 2)\n    return y.sum()\n"
    )
    path = tmp_path / "uses.py"
    path.write_text(
        f"import sys\nsys.path.insert(0, {str(library.parent)!r})\nimport lib\nimport torch\n"
        "loss = lib.block(torch.ones(3, requires_grad=True))\n"
    )
    for lines, expected in (
        ("own", ["uses.py:5"] * 3),
        ("library", ["lib.py:5", *["lib.py:4"] * 2]),
    ):
        done = gradcli("graph", "--torch", str(path), "--lines", lines, "--json")
        nodes = [node for node in json.loads(done.stdout)["nodes"] if node["next"]]
        assert [f"{Path(n['file']).name}:{n['line']}" for n in nodes] == expected


@pytest.mark.long
def test_warnings_of_pytorchs_name_the_users_line_each_once(tmp_path: Path) -> None:
    path = tmp_path / "warns.py"
    path.write_text(
        "import torch, warnings\nx = torch.ones(3, 4, requires_grad=True)\n"
        "for _ in range(2):\n    a = torch.nn.functional.mse_loss(x, torch.ones(4))\n"
        "    b = x[None].T\nwarnings.simplefilter('ignore')\nc = x[None].T\nloss = a + b.sum()\n"
    )
    alone = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True)
    watched = subprocess.run(
        [sys.executable, "-m", "gradcli", "graph", "--torch", str(path)],
        capture_output=True,
        text=True,
        check=True,
    )
    of_the_version = "gradcli: note: PyTorch"
    told = [line for line in watched.stderr.splitlines() if not line.startswith(of_the_version)]
    assert alone.stderr.splitlines() == told and alone.stderr.count("UserWarning") == 2


def test_the_root_is_what_backward_was_called_on_last(tmp_path: Path) -> None:
    path = tmp_path / "accumulated.py"
    path.write_text(
        "import torch\nw = torch.ones(4, requires_grad=True)\ntotal = 0\n"
        "for step in range(3):\n    loss = (w * step).sum()\n    total = total + loss\n"
        "total.backward()\n"
    )
    assert gradcli("graph", "--torch", str(path)).stdout.startswith("AddBackward0 total")


def test_what_is_not_there_is_said(program: Path, tmp_path: Path) -> None:
    done = gradcli("graph", "--torch", f"{program}:los")
    assert done.exit_code == 2 and "did you mean `loss`?" in done.stderr
    done = gradcli("graph", "--torch", f"{program}:x")
    assert done.exit_code == 1 and "does not require grad" in done.stderr
    done = gradcli("graph", "--torch", str(tmp_path / "nothing.py"))
    assert done.exit_code == 2 and "No such file" in done.stderr
    done = gradcli("graph", "x*x", "--torch", str(program))
    assert done.exit_code == 2 and "go after `--`" in done.stderr
    done = gradcli("graph", "--torch", str(program), "--help")
    assert done.exit_code == 0 and done.stdout.startswith("Usage: gradcli graph")
    done = gradcli("graph", "x*x", "--x", "1", "--by", "module")
    assert done.exit_code == 2 and "--torch" in done.stderr
    done = gradcli("graph", "--torch", f"{program}:y", "--grads")
    assert done.exit_code == 1 and "name a scalar" in done.stderr


def test_a_program_that_fails_shows_what_it_had(tmp_path: Path) -> None:
    path = tmp_path / "fails.py"
    path.write_text(
        "import torch\nx = torch.ones(2, requires_grad=True)\nloss = (x*x).sum()\n1/0\n"
    )
    done = gradcli("graph", "--torch", str(path))
    assert done.exit_code == 1 and done.stdout.startswith("SumBackward0 loss")
    assert "fails.py:4: ZeroDivisionError" in done.stderr and "Traceback" in done.stderr


@pytest.mark.parametrize("form", ["dot", "mermaid", "svg", "tikz", "html", "json"])
def test_every_format(program: Path, form: str) -> None:
    done = gradcli("graph", "--torch", str(program), "--format", form, "--saved", "--values")
    assert done.exit_code == 0, done.stderr
    assert "blocks.1" in done.stdout.replace("#46;", ".")


def test_by_module_is_a_line_a_module_that_unfolds(program: Path) -> None:
    done = gradcli("graph", "--torch", str(program), "--by", "module", "--grads")
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[:2]] == ["module", "Net"]
    assert sum("Linear" in line for line in lines) == 3
    assert len(gradcli("graph", "--torch", str(program), "--by", "module", "--depth", "1")
               .stdout.splitlines()) == 4  # fmt: skip
    part = gradcli("graph", "--torch", str(program), "--only", "blocks.0.fc").stdout
    assert "AccumulateGrad blocks.0.fc.weight" in part and "blocks.1" not in part
    by_module = ("graph", "--torch", str(program), "--by", "module", "--format", "dot")
    opened = gradcli(*by_module).stdout  # few boxes: wrappers are opened
    assert "Linear blocks.1.fc" in opened and "Sequential blocks" not in opened
    shut = gradcli(*by_module, "--fold", "blocks").stdout
    assert "Sequential blocks" in shut and "blocks.1.fc" not in shut
    wrong = gradcli(*by_module, "--open", "bloks")
    assert wrong.exit_code == 2 and "no module is called 'bloks'" in wrong.stderr
    drawn = gradcli(*by_module, "--depth", "2").stdout
    assert "Sequential blocks" in drawn and "Linear head" in drawn and "ReluBackward0" not in drawn


def test_in_python_and_in_a_notebook() -> None:
    torch.manual_seed(0)
    model = Block(6)
    with graphs.watching(model):
        loss = model(torch.randn(3, 6)).pow(2).mean()
    graph = graphs.inspect(loss, model=model)
    text = str(graph.tree(saved=True, values=True))
    assert "AccumulateGrad fc.weight" in text and "test_torch_inspect.py:" in text
    assert "fc.weight = " in text or "norm.weight = " in text
    assert graph._repr_html_().startswith("<iframe")
    assert "LayerNorm" in graph.to_svg()
    assert "fc.weight" in str(graph.trace())
    assert all(p.grad is None for p in model.parameters())
    loss.backward()  # and the graph is still there
    assert model.fc.weight.grad is not None


def test_unwatched_graphs_have_names_and_shapes_all_the_same() -> None:
    model = Block(6)
    loss = model(torch.randn(3, 6)).pow(2).mean()
    text = str(graphs.inspect(loss, model=model))
    assert "AccumulateGrad norm.bias" in text and "(3, 6)" in text
    assert "AccumulateGrad" in str(graphs.inspect(loss))


def test_gradients_are_torchs() -> None:
    torch.manual_seed(0)
    model = Block(6)
    loss = model(torch.randn(3, 6)).pow(2).mean()
    graph = graphs.inspect(loss, model=model, grads=True)
    loss.backward(retain_graph=True)
    for record in graph.records:
        if record.is_leaf:
            assert record.grad.norm == pytest.approx(float(record.node.variable.grad.norm()))


def test_a_freed_graph_says_so() -> None:
    x = torch.ones(3, requires_grad=True)
    loss = (x * x).sum()
    loss.backward()
    graph = graphs.inspect(loss)
    if torch_versions.tells():
        assert "(freed)" in str(graph.tree(saved=True)) and "1 node freed" in str(graph)
    else:  # asking could run a hook
        assert "(not known" in str(graph.tree(saved=True)) and "2 not known" in str(graph)
    with pytest.raises(RuntimeError, match="a second time"):
        graph.backpropagate()


class Double(torch.autograd.Function):  # type: ignore[misc, name-defined]
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return 2 * x

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return 2 * grad


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointing_is_not_run_by_looking(reentrant: bool) -> None:
    from torch.utils.checkpoint import checkpoint

    ran: list[int] = []
    fc = nn.Linear(4, 4)

    def part(x: Any) -> Any:
        ran.append(1)
        return torch.relu(fc(x))

    x = torch.randn(2, 4, requires_grad=True)
    with graphs.watching(fc):
        loss = checkpoint(part, x, use_reentrant=reentrant).sum()
    graph = graphs.inspect(loss, model=fc)
    text = str(graph.tree(saved=True))
    assert len(ran) == 1
    packed = "packed by a hook" if torch_versions.tells() else "does not say if a hook packed it"
    assert ("CheckpointFunctionBackward" if reentrant else packed) in text
    graph.backpropagate()
    assert len(ran) == 2 and fc.weight.grad is None and x.grad is None


def test_functions_hooks_views_several_losses_and_odd_dtypes() -> None:
    x = torch.ones(3, requires_grad=True)
    seen: list[Any] = []
    with graphs.watching(nn.Linear(1, 1)):
        y = Double.apply(x)
        y.register_hook(seen.append)
        z = y.clone()
        z[0] = 5.0
        a, b = z.sum(), (y.bfloat16() * 2).float().sum()
    graph = graphs.inspect((a, b), grads=True)
    assert len(seen) == 1
    text = str(graph.tree(saved=True, values=True, grads=True))
    assert "DoubleBackward" in text and "saved_tensors[0] " in text
    assert "CopySlices" in text and "bfloat16" in text
    place = next(r.place for r in graph.records if r.name == "DoubleBackward")
    assert place is not None and place.code == "y = Double.apply(x)"
    graph.to_json(values=True)
    graph.to_html()


def test_a_module_called_in_a_loop_is_one_line() -> None:
    cell = nn.RNNCell(3, 5)
    with graphs.watching(cell):
        h = torch.zeros(2, 5)
        for _ in range(30):
            h = cell(torch.randn(2, 3), h)
        loss = h.sum()
    graph = graphs.inspect(loss, model=cell)
    assert "RNNCell ×30" in str(graph.tree(by="module"))
    assert (
        len(graph.picture(by="module", depth=1).cards) == 35
    )  # 30 calls, 4 shared parameters, the sum


def resnet() -> Any:
    """A network of ResNet-50's shape: 16 bottlenecks, narrow."""

    class Bottleneck(nn.Module):
        def __init__(self, inside: int, out: int) -> None:
            super().__init__()
            self.conv1, self.bn1 = nn.Conv2d(inside, out // 4, 1), nn.BatchNorm2d(out // 4)
            self.conv2, self.bn2 = (
                nn.Conv2d(out // 4, out // 4, 3, padding=1),
                nn.BatchNorm2d(out // 4),
            )
            self.conv3, self.bn3 = nn.Conv2d(out // 4, out, 1), nn.BatchNorm2d(out)
            self.down = nn.Conv2d(inside, out, 1) if inside != out else nn.Identity()

        def forward(self, x: Any) -> Any:
            y = torch.relu(self.bn1(self.conv1(x)))
            y = torch.relu(self.bn2(self.conv2(y)))
            return torch.relu(self.bn3(self.conv3(y)) + self.down(x))

    layers, inside = [], 16
    for count, out in ((3, 16), (4, 32), (6, 64), (3, 128)):
        for _ in range(count):
            layers.append(Bottleneck(inside, out))
            inside = out
    stem, head = nn.Conv2d(3, 16, 7, stride=2), nn.Linear(128, 10)
    return nn.Sequential(stem, *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), head)


def gpt() -> Any:
    """A network of GPT-2's shape: 12 blocks of attention and two layers, narrow."""

    class Attention(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

        def forward(self, x: Any) -> Any:
            heads = [t.unflatten(-1, (4, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1)]
            q, k, v = heads
            scores = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).softmax(-1)
            return self.out((scores @ v).transpose(1, 2).flatten(2))

    class Layer(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.ln1, self.attn, self.ln2 = (
                nn.LayerNorm(width),
                Attention(width),
                nn.LayerNorm(width),
            )
            self.mlp = nn.Sequential(
                nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
            )

        def forward(self, x: Any) -> Any:
            x = x + self.attn(self.ln1(x))
            return x + self.mlp(self.ln2(x))

    return nn.Sequential(*(Layer(32) for _ in range(12)))


@pytest.mark.parametrize("make, shape", [(resnet, (2, 3, 32, 32)), (gpt, (2, 24, 32))])
def test_networks_as_people_have_them(make: Any, shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    model = make()
    x = torch.randn(shape)
    with graphs.watching(model):
        loss = model(x).pow(2).mean()
    start = time.process_time()
    graph = graphs.inspect(loss, model=model)
    assert len(graph.skeleton) > 300
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(150)  # nothing over a graph recurses
    try:
        text = str(graph.tree(by="module"))
    finally:
        sys.setrecursionlimit(before)
    assert "nodes" in text
    assert len(graph.picture(by="module").cards) < 40
    graph.to_svg(by="module")
    str(graph.tree())
    # Much less than a second on an idle machine.
    assert time.process_time() - start < 6


class Levels(nn.Module):  # type: ignore[misc]
    """A network of two halves whose levels are lists, which nobody calls."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.up = (
            nn.ModuleList(nn.ModuleList([nn.Linear(n, 4), nn.ReLU()]) for _ in range(5))
            for n in (4, 8)
        )

    def forward(self, x: Any) -> Any:
        kept = []
        for linear, activation in self.down:
            x = activation(linear(x) * 2)
            kept.append(x)
        for linear, activation in self.up:
            x = activation(linear(torch.cat((x, kept.pop()), 1)))
        return x


def test_a_list_of_modules_is_a_box_with_what_is_computed_between_them() -> None:
    model = Levels()
    with graphs.watching(model):
        loss = model(torch.randn(2, 4)).sum()
    graph = graphs.inspect(loss, model=model)
    drawn = graph.picture(by="module")
    boxes = {card.name: card for card in drawn.cards if card.kind == "fold"}
    assert {*boxes} == {f"{half}.{k}" for half in ("down", "up") for k in range(5)}
    assert boxes["down.2"].title == "ModuleList" and boxes["down.2"].accent == "block"
    assert boxes["down.2"].lines[0] == ("detail", "4 nodes, 20 parameters")  # with the product
    skips = {(drawn.cards[w.source].title, drawn.cards[w.target].name) for w in drawn.wires}
    assert {("CatBackward0", f"down.{k}") for k in range(5)} <= skips
    opened = graph.picture(by="module", open="down.2")
    names = {card.name for card in opened.cards}
    accents = {card.name: card.accent for card in opened.cards}
    assert (accents["down.2.0"], accents["down.2.1"]) == ("layer", "activation")
    assert "down.2" not in names and {"down.2.0", "down.2.1", "down.3"} <= names


def test_torch_is_not_imported_unless_it_is_the_users() -> None:
    code = (
        "import sys; from gradcli.graphs import inspect; import gradcli as t;"
        "x = t.ones(2, requires_grad=True); str(inspect((x*x).sum())); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


DEEP = """
import torch
from torch import nn
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
    def forward(self, x):
        return x + self.b(torch.relu(self.a(x)))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.blocks = nn.Linear(4, 4), nn.ModuleList(Block() for _ in range(60))
    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return x
net = Net()
loss = net(torch.ones(2, 4)).sum()
loss.backward()
"""


def test_equal_siblings_are_one_line_and_one_box_until_they_are_opened(tmp_path: Path) -> None:
    path = tmp_path / "deep.py"
    path.write_text(DEEP)
    run = ("graph", "--torch", str(path))
    folded = gradcli(*run, "--by", "module").stdout
    assert "blocks.0 … blocks.59  Block × 60" in folded and "blocks.3" not in folded
    assert "blocks.3.a" not in gradcli(*run, "--format", "dot", "--open", "blocks").stdout
    opened = gradcli(*run, "--format", "dot", "--open", "blocks.3").stdout
    assert "Linear blocks.3.a" in opened and "Linear blocks.4.a" not in opened
    drawn = gradcli(*run, "--format", "dot")  # very many nodes are by module unless asked
    assert "Block × 60" in drawn.stdout and "--by node draws them all" in drawn.stderr
    whole = gradcli(*run, "--format", "dot", "--by", "node")
    assert "Block" not in whole.stdout and "by module" not in whole.stderr
    timed = gradcli(*run, "--time").stdout
    assert "forward" in timed.split("\n")[0] and " ms" in timed


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    """Not by a program that leaves a mode of its own, nor by one that dies in a backward pass."""
    path = tmp_path / "leaves.py"
    for text in (
        "torch.set_default_device('cpu')",
        "(torch.ones(2, requires_grad=True) * 2).backward()",
    ):
        path.write_text(f"import torch\n{text}\nloss = torch.ones(2, requires_grad=True).sum()\n")
        before = (
            torch.autograd.backward,
            torch.autograd.grad,
            torch.autograd.Function.__dict__["apply"],
        )
        gradcli("graph", "--torch", str(path), "--grads")
        torch.set_default_device(None)
        assert torch._C._len_torch_function_stack() == 0
        assert before == (
            *(torch.autograd.backward, torch.autograd.grad),
            torch.autograd.Function.__dict__["apply"],
        )

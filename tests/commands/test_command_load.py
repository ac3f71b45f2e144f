"""`--load FILE.py`: a Python file's names in the language, and Python's own words for its errors."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.commands.running import outcome as run

CUSTOM = """\
from math import exp, pi
import gradcli as torch

SCALE = torch.tensor([2.0, 3.0], requires_grad=True)
_private = 3


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x**2


class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return {}["nothing"]


def half(x):
    return x / 2


def refuses(x):
    return x @ torch.ones(7)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "custom.py").write_text(CUSTOM)
    monkeypatch.chdir(tmp_path)
    return tmp_path


LOAD = ("--x", "1,2", "--load", "custom.py")


def test_a_function_of_autograd(folder):
    assert run("grad", "sum(Cube.apply(x))", *LOAD) == (0, "x.grad = [3, 12]\n", "")


def test_its_node_in_the_graph(folder):
    tree = run("graph", "sum(Cube.apply(half(x)))", *LOAD)[1]
    assert "CubeBackward" in tree
    assert "half(x)" in tree


def test_in_a_program_and_in_a_value(folder):
    source = "y = sum(Cube.apply(x))\ny.backward()\nx.grad"
    assert run("run", "-", *LOAD, stdin=source) == (0, "tensor([ 3., 12.])\n", "")
    argv = ("eval", "x", "--x", "half(ones(2))", "--load", "custom.py")
    assert run(*argv) == (0, "[0.5, 0.5]\n", "")


def test_in_a_hook(folder):
    argv = ("grad", "sum(2*x)", *LOAD, "--hook", "x: half(grad)")
    assert run(*argv) == (0, "x.grad = [1, 1]\n", "")


def test_tensors_of_the_file_are_leaves_where_they_are_reached(folder):
    argv = ("grad", "sum(SCALE*x)", *LOAD)
    assert run(*argv) == (0, "x.grad = [2, 3]\nSCALE.grad = [1, 2]\n", "")
    assert run("grad", "sum(x)", *LOAD)[1] == "x.grad = [1, 1]\n"
    assert run("eval", "SCALE.dtype", *LOAD[2:])[1] == "torch.float64\n"


def test_what_the_file_imported_is_not_taken_over(folder):
    assert run("eval", "exp(x)", *LOAD, "--precision", "3")[1] == "[2.72, 7.39]\n"
    code, _, err = run("eval", "_private", "--load", "custom.py")
    assert code == 2
    assert "no value for _private" in err


def test_an_error_in_the_backward_of_a_loaded_function(folder):
    code, out, err = run("grad", "sum(Broken.apply(x))", *LOAD)
    assert (code, out) == (1, "")
    assert err.startswith("gradcli: error: KeyError: 'nothing'\n")
    assert '  File "custom.py", line 27, in backward\n    return {}["nothing"]\n' in err


def test_an_error_of_the_engine_inside_a_loaded_function(folder):
    code, _, err = run("eval", "1 + refuses(x)", *LOAD)
    assert code == 1
    assert err.startswith("gradcli: error: RuntimeError: inconsistent tensor size")
    assert '  File "custom.py", line 35, in refuses\n' in err
    assert "    1 + refuses(x)\n        ^^^^^^^^^^\n" in err


BROKEN = [
    ("import torch\ntorch.jit.fork\n", "AttributeError: ", "line 2, in <module>"),  # of gradcli
    ("x = 1\ndef f(:\n", "SyntaxError: invalid syntax", 'File "file.py", line 2\n    def f(:\n'),
    ("def g():\n    return 1/0\n\ng()\n", "ZeroDivisionError: division by zero",
     'File "file.py", line 4, in <module>\n    g()\n'
     '  File "file.py", line 2, in g\n    return 1/0\n'),
    ("raise ValueError\n", "ValueError", "line 1, in <module>"),
]  # fmt: skip


@pytest.mark.parametrize("text, words, more", BROKEN, ids=[words for _, words, _ in BROKEN])
def test_errors_of_the_file_are_pythons(text, words, more, folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # as if it were not installed
    (folder / "file.py").write_text(text)
    code, out, err = run("eval", "x", "--x", "1", "--load", "file.py")
    assert (code, out) == (1, "")
    assert err.startswith(f"gradcli: error: --load file.py: {words}")
    assert more in err


FUNCTION = """\
import torch
from torch.autograd import Function

class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        import torch.nn.functional
        (x,) = ctx.saved_tensors
        return 3 * torch.nn.functional.relu(x**2) * g

def cube(x):
    return Cube.apply(x)
"""


def test_gradcli_stands_in_for_torch(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    (folder / "cube.py").write_text(FUNCTION)
    assert run("grad", "cube(x)", "--x", "2", "--load", "cube.py")[:2] == (0, "x.grad = 12\n")
    assert sys.modules["torch"] is None


def test_errors_as_json(folder):
    (folder / "file.py").write_text("1/0\n")
    code, _, err = run("eval", "x", "--x", "1", "--load", "file.py", "--json")
    assert code == 1
    found = json.loads(err)["error"]
    assert found["message"] == "--load file.py: ZeroDivisionError: division by zero"


def test_a_file_that_is_not_there(folder):
    code, _, err = run("eval", "x", "--x", "1", "--load", "nowhere.py")
    assert code == 2
    assert "--load: cannot read nowhere.py: No such file" in err


def test_python_is_asked_for_neighbours_and_leaves_nothing_behind(folder):
    (folder / "neighbour.py").write_text("K = 3\n")
    (folder / "uses.py").write_text("from neighbour import K\ndef f(x):\n    return K*x\n")
    assert run("eval", "f(x)", "--x", "2", "--load", "uses.py")[1] == "6\n"
    assert not (folder / "__pycache__" / "uses.cpython-311.pyc").exists()


def test_several_files(folder):
    (folder / "more.py").write_text("def twice(x):\n    return 2*x\n")
    assert run("eval", "twice(half(x))", *LOAD, "--load", "more.py")[1] == "[1, 2]\n"


def test_names_are_forgotten_afterwards(folder):
    from gradcli.language import names

    run("eval", "half(x)", *LOAD)
    assert not names.is_known("Cube")


def test_a_real_pytorch_function_is_refused(folder, monkeypatch):
    """Of a base by another name, which the text of the file does not tell."""
    from types import SimpleNamespace

    class Foreign:
        pass

    fake = SimpleNamespace(autograd=SimpleNamespace(Function=Foreign))
    monkeypatch.setitem(sys.modules, "torch", fake)
    (folder / "file.py").write_text(
        "import torch\nBase = torch.autograd.Function\nclass Mine(Base):\n    pass\n"
    )
    code, _, err = run("eval", "Mine.apply(x)", "--x", "1", "--load", "file.py")
    assert code == 1
    assert "Mine is an operation of PyTorch's own" in err
    assert "import gradcli as torch" in err


def test_operations_of_pytorchs_language_run_on_our_tensors(tmp_path: Path) -> None:
    """`import torch` is gradcli there, as in `gradcli FILE.py`, whether PyTorch is installed or not."""
    path = tmp_path / "ops.py"
    path.write_text(
        "import torch\nclass Twice(torch.autograd.Function):\n"
        "    @staticmethod\n    def forward(ctx, x):\n        return 2*x\n"
        "    @staticmethod\n    def backward(ctx, g):\n        return {}*g\ntwice = Twice.apply\n"
    )
    text = path.read_text()
    for slope, code in (("2", 0), ("3", 1)):
        path.write_text(text.format(slope))
        assert run("check", "--load", str(path), "sum(twice(x))", "--x", "1,2")[0] == code

"""What the seed notebooks show, row by row, as one-liners (the rows that have one)."""

from __future__ import annotations

import json

import pytest

from tests.commands.running import run
from tests.sweep import sweep

ADDITION = """
import gradcli as torch

class Addition(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        return a + b
    @staticmethod
    def backward(ctx, grad):
        return grad, grad
"""
CUSTOM = """
import gradcli as torch

class custom_function(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.x = x
        ctx.y = y
        return x*y
    @staticmethod
    def backward(ctx, grad_output):
        return -ctx.x * grad_output, -ctx.y * grad_output
"""


AB = ["--a", "2", "--b", "2"]
XAB = ["--x", "3", "--a", "4", "--b", "5"]
XA = ["--x", "3", "--a", "4,2"]
V = ["--a", "1,2,3", "--b", "2,4,6"]
W = ["--x", ".5,.5,.5", "--w", "1,1,1", "--wrt", "w"]
ONES4 = ["--x", "1,1,1,1"]
X4 = ["--x", "0,1,2,3"]
Z = "3*dot(x,(w+2)**2)"

RESULTS = [
    (1, ["eval", "a", "--a", "2.0", "--no-grad", "all"], "2"),
    (6, ["grad", "c*d", "--c", "4", "--d", "2", "--wrt", "c"], "c.grad = 2"),
    (12, ["eval", "a+b", *AB], "4"),
    (14, ["grad", "a+b", *AB], "a.grad = 1\nb.grad = 1"),
    (15, ["grad", "c = a+b; c.backward(retain_graph=True); 5*c", *AB], "a.grad = 6\nb.grad = 6"),
    (17, ["grad", "5*(a+b)", *AB], "a.grad = 5\nb.grad = 5"),
    (20, ["eval", "Addition.apply(a,b)", "--load", "addition.py", *AB], "4"),
    (21, ["grad", "Addition.apply(a,b)", "--load", "addition.py", *AB], "a.grad = 1\nb.grad = 1"),
    (22, ["grad", "5*Addition.apply(a,b)", "--load", "addition.py", *AB], "a.grad = 5\nb.grad = 5"),
    (23, ["eval", "x", "--x", "1.,2.", "--dtype", "float64"], "[1, 2]"),
    (25, ["grad", "y = a*x; y + b", *XAB, "--retain", "y"],
     "x.grad = 4\na.grad = 3\nb.grad = 1\ny.grad = 1"),
    (26, ["eval", "x+a", *XA], "[7, 5]"),
    (27, ["grad", "x+a", *XA, "--seed", "1,1"], "x.grad = 2\na.grad = [1, 1]"),
    (28, ["grad", "x+a", *XA, "--seed", "1000,1000"], "x.grad = 2000\na.grad = [1000, 1000]"),
    (29, ["grad", "(x+a).mean()", *XA], "x.grad = 1\na.grad = [0.5, 0.5]"),
    (30, ["grad", "(x+a).sum()", *XA], "x.grad = 2\na.grad = [1, 1]"),
    (31, ["grad", "v", "--v", "0,0,0", "--seed", "1,2,3", "--hook", "v: grad*2"],
     "v.grad = [2, 4, 6]"),
    (36, ["eval", "(x**3).backward(create_graph=True); g = x.grad; x.grad = None; g.backward(); x.grad",
          "--x", "3"], "18"),
    (38, ["grad", "sum((a*b)**2)", *V], "a.grad = [8, 64, 216]\nb.grad = [4, 32, 108]"),
    (39, ["grad", "sum((a*b)**2)", *V, "--passes", "2", "--retain-graph"],
     "a.grad = [16, 128, 432]\nb.grad = [8, 64, 216]"),
    (40, ["grad", "(a*b)**2", *V, "--seed", "1,1,1"],
     "a.grad = [8, 64, 216]\nb.grad = [4, 32, 108]"),
    (41, ["grad", "x**2", "--x", "1,2", "--seed", "3,5"], "x.grad = [6, 20]"),
    (42, ["grad", "x*x", "--x", "1,2", "--seed", "2,8"], "x.grad = [4, 32]"),
    (43, ["eval", "one.detach()", "--one", "1,1,1"], "[1, 1, 1]"),
    (45, ["grad", "d = (a*b)**2; sum(d)", *V, "--hook", "d: -grad"],
     "a.grad = [-8, -64, -216]\nb.grad = [-4, -32, -108]"),
    (46, ["grad", "sum(custom_function.apply(a,b))", "--load", "custom.py", *V],
     "a.grad = [-1, -2, -3]\nb.grad = [-2, -4, -6]"),
    (49, ["grad", "d = (a*b)**2; sum(d)", *V, "--retain", "d"],
     "a.grad = [8, 64, 216]\nb.grad = [4, 32, 108]\nd.grad = [1, 1, 1]"),
    (51, ["eval", "x", *X4, "--no-grad", "all"], "[0, 1, 2, 3]"),
    (51, ["eval", "x", "--x", "arange(4.0)"], "[0, 1, 2, 3]"),
    (53, ["eval", "x", "--x", "0:4"], "[0, 1, 2, 3]"),
    (54, ["eval", "2*dot(x,x)", *X4], "28"),
    (55, ["grad", "2*dot(x,x)", *X4], "x.grad = [0, 4, 8, 12]"),
    (58, ["grad", "x.sum()", *X4], "x.grad = [1, 1, 1, 1]"),
    (59, ["grad", "x*x", *X4, "--seed", "1,1,1,1"], "x.grad = [0, 2, 4, 6]"),
    (59, ["grad", "x*x", *X4, "--seed", "ones"], "x.grad = [0, 2, 4, 6]"),
    (60, ["grad", "sum(x*x)", *X4], "x.grad = [0, 2, 4, 6]"),
    (61, ["grad", "u = (x*x).detach(); sum(u*x)", *X4], "x.grad = [0, 1, 4, 9]"),
    (64, ["eval", "a", "--a=-0.19425"], "-0.19425"),
    (69, ["eval", Z, "--x", "full((3,),0.5)", "--w", "ones(3)", "--wrt", "w"], "40.5"),
    (70, ["grad", Z, *W], "w.grad = [9, 9, 9]"),
    (73, ["grad", Z, "--x", ".5,.5,.5", "--w", "2,2,2", "--wrt", "w", "--value"],
     "value = 72\nw.grad = [12, 12, 12]"),
    (74, ["grad", Z, *W, "--passes", "2", "--retain-graph"], "w.grad = [18, 18, 18]"),
    (76, ["eval", "3*(x+2)**2", *ONES4], "[27, 27, 27, 27]"),
    (77, ["grad", "3*(x+2)**2", "--x", "0,0,0,0", "--seed", "ones"], "x.grad = [12, 12, 12, 12]"),
    (77, ["grad", "3*(x+2)**2", "--x", "2,2,2,2", "--seed", "ones"], "x.grad = [24, 24, 24, 24]"),
    (78, ["grad", "3*(x+2)**2", *ONES4, "--seed", "1,1,1,1"], "x.grad = [18, 18, 18, 18]"),
    (79, ["grad", "3*(x+2)**2", *ONES4, "--seed", "ones", "--passes", "3", "--retain-graph"],
     "x.grad = [54, 54, 54, 54]"),
    (81, ["grad", "3*(x+2)**2", *ONES4, "--seed", "ones"], "x.grad = [18, 18, 18, 18]"),
]  # fmt: skip


@pytest.mark.parametrize("row, argv, expected", RESULTS, ids=[f"{r[0]} {r[1][1]}" for r in RESULTS])
def test_result(row, argv, expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "addition.py").write_text(ADDITION)
    (tmp_path / "custom.py").write_text(CUSTOM)
    result = run(*argv)
    assert result.stderr == ""
    assert result.exit_code == 0
    assert result.stdout == f"{expected}\n"


REFUSED = [
    (33, ["grad", "x", "--x", "tensor([1,2])"],
     "Only Tensors of floating point and complex dtype can require gradients"),
    (34, ["graph", "a+a", "--a", "1", "--no-grad", "all"], "no graph: nothing requires grad"),
    (37, ["grad", "x+a", *XA], "grad can be implicitly created only for scalar outputs"),
    (44, ["grad", "sum(one.detach()**2)", "--one", "1,1,1"],
     "element 0 of tensors does not require grad and does not have a grad_fn"),
    (57, ["grad", "y = 2*dot(x,x); y.backward(); y", *X4],
     "Trying to backward through the graph a second time"),
    (72, ["grad", Z, *W, "--passes", "2"], "Trying to backward through the graph a second time"),
]  # fmt: skip


@sweep(("row", "argv", "words"), REFUSED, parts=1)
def test_refused(row, argv, words):
    result = run(*argv)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith(f"gradcli: error: {words}")
    assert "^" in result.stderr
    assert "\nhint: " in result.stderr


CD = ["c*d", "--c", "4", "--d", "2", "--wrt", "c"]


def nodes(*argv):
    return json.loads(run("graph", *argv, "--json").stdout)["nodes"]


def test_graph_of_a_product():
    """Rows 2 to 11: names, edges, None for the constant, what is saved and whose it is."""
    product, leaf = nodes(*CD)
    assert product["name"] == "MulBackward0"
    assert product["next"] == [{"node": 1, "output": 0}, None]
    assert product["saved"]["other"] == {
        "value": 2.0, "shape": [], "dtype": "float64", "variable": "d",
    }  # fmt: skip
    assert product["saved"]["self"] is None
    assert leaf["name"] == "AccumulateGrad"
    assert leaf["variable"] == "c"
    outer, inner, leaf = nodes("e = c*d; e*f", "--c", "4", "--d", "2", "--f", "2", "--wrt", "c")
    assert outer["next"] == [{"node": 1, "output": 0}, None]
    assert inner["label"] == "e"
    assert inner["source"] == "c*d"


def test_graph_of_a_sum():
    """Rows 13, 16 and 24."""
    total, a, b = nodes("a+b", *AB)
    assert total["saved"] == {"alpha": 1}
    assert [a["variable"], b["variable"]] == ["a", "b"]
    product = nodes("5*(a+b)", *AB)[0]
    saved = {k: v for k, v in product["saved"].items() if v is not None}
    assert saved == {"other": {"value": 5, "shape": [], "dtype": "int64", "variable": None}}
    assert [n["name"] for n in nodes("y = a*x; y+b", *XAB)] == [
        "AddBackward0", "MulBackward0", "AccumulateGrad", "AccumulateGrad", "AccumulateGrad",
    ]  # fmt: skip


def test_json_tells_what_a_repr_tells():
    """Rows 12, 43, 65 and 71."""
    found = json.loads(run("eval", "a+b", *AB, "--json").stdout)
    assert (found["grad_fn"], found["requires_grad"]) == ("AddBackward0", True)
    found = json.loads(run("eval", "one.detach()", "--one", "1,1,1", "--json").stdout)
    assert (found["grad_fn"], found["requires_grad"]) == (None, False)
    found = json.loads(run("eval", "a", "--a", "randn(())", "--manual-seed", "0", "--json").stdout)
    assert (found["shape"], found["requires_grad"], found["grad_fn"]) == ([], True, None)
    assert found["dtype"] == "float64"
    assert list(json.loads(run("grad", Z, *W, "--json").stdout)["grads"]) == ["w"]

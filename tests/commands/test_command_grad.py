"""`gradcli grad` and `gradcli eval` beyond the rows: leaves, hooks, retained names, loading, dtypes."""

from __future__ import annotations

import json

import numpy as np
import pytest

from gradcli.engine.system.dtypes import get_default_dtype
from tests.commands.running import run
from tests.sweep import sweep


def out(*argv, **kwargs):
    result = run(*argv, **kwargs)
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    return result.stdout


@sweep(("argv", "expected"), [
        # leaves come in the order of the command line, then those that the program made, then retained names
        (["a*b", "--b", "2", "--a", "3"], "b.grad = 3\na.grad = 2\n"),
        (["w = ones(2, requires_grad=True); dot(w, x)", "--x", "1,2"],
         "x.grad = [1, 1]\nw.grad = [1, 2]\n"),
        (["y = x*x; z = 3*y; sum(z)", "--x", "1,2", "--retain", "all"],
         "x.grad = [6, 12]\ny.grad = [3, 3]\nz.grad = [1, 1]\n"),
        (["y = x*x; z = 3*y; sum(z)", "--x", "1,2", "--retain", "z,y"],
         "x.grad = [6, 12]\nz.grad = [1, 1]\ny.grad = [3, 3]\n"),
        (["y = x*x; y", "--x", "3", "--retain", "x"], "x.grad = 6\n"),
        (["y = x**2; y.retain_grad(); 3*y", "--x", "2"], "x.grad = 12\ny.grad = 3\n"),
        (["y = x*x; y.retain_grad(); z = 3*y; z", "--x", "2", "--retain", "z"],
         "x.grad = 12\nz.grad = 1\ny.grad = 3\n"),
        # what does not reach the value has no gradient, which is not 0
        (["y = 2*b; a", "--a", "1", "--b", "1"], "a.grad = 1\nb.grad = None\n"),
        # integers as indices require no grad
        (["sum(x[i])", "--x", "1,2,3", "--i", "tensor([0,2])"], "x.grad = [1, 0, 1]\n"),
        # hooks
        (["x*x", "--x", "3", "--hook", "x: 0"], "x.grad = 0\n"),
        (["y = x*x; 2*y", "--x", "3", "--hook", "y: grad*y", "--retain", "y"],
         "x.grad = 108\ny.grad = 18\n"),
        (["x*x", "--x", "3", "--hook", "x: grad+1", "--hook", "x: grad*2"], "x.grad = 14\n"),
        (["x*x", "--x", "3", "--hook", "x: None"], "x.grad = 6\n"),
        # seeds
        (["x*x", "--x", "3", "--seed", "10"], "x.grad = 60\n"),
        (["x*x", "--x", "3", "--gradient=-1"], "x.grad = -6\n"),
        (["sum(x)", "--x", "1,2", "--seed", "ones"], "x.grad = [1, 1]\n"),
        # passes
        (["a+a", "--a", "1", "--passes", "2"], "a.grad = 4\n"),
        (["x**3", "--x", "2", "--create-graph", "--passes", "2"], "x.grad = 24\n"),
        # forms
        (["x*x", "--x", "3", "--value", "--plain"], "value\t9\nx.grad\t6\n"),
        (["x/3", "--x", "1", "--precision", "3"], "x.grad = 0.333\n"),
        (["x*1j", "--x", "1+2j", "--seed", "1"], "x.grad = 0-1j\n"),
        (["y = 2*b; a", "--a", "1", "--b", "1", "--plain"], "a.grad\t1\nb.grad\tNone\n"),
        # anything may be called anything
        (["e*t", "--e", "2", "--t", "3"], "e.grad = 3\nt.grad = 2\n"),
        (["pi*r", "--pi", "3", "--r", "2"], "pi.grad = 2\nr.grad = 3\n"),
        (["sum(x)", "--x", "1,2", "--no-grad", "", ], None),
    ], parts=1)  # fmt: skip
def test_grad(argv, expected):
    if expected is None:
        assert run("grad", *argv).exit_code == 2
    else:
        assert out("grad", *argv) == expected


def test_json_has_a_null_where_there_is_no_gradient():
    found = json.loads(out("grad", "y = 2*b; a", "--a", "1", "--b", "1,2", "--json"))
    grads = {
        "a": {"grad": 1.0, "shape": [], "dtype": "float64"},
        "b": {"grad": None, "shape": [2], "dtype": "float64"},
    }
    assert found == {
        "expression": "y = 2*b; a",
        "value": 1.0,
        "shape": [],
        "dtype": "float64",
        "grad_fn": None,
        "seed": 1.0,
        "passes": 1,
        "wrt": grads,
        "grads": grads,
        "retained": {},
        "notes": [],
    }


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_dtypes_round_trip(dtype):
    before = get_default_dtype()
    argv = ["sum(x/3)", "--x", "0.1,1,1000", "--json"]
    for extra, env in ((["--dtype", dtype], {}), ([], {"GRADCLI_DTYPE": dtype})):
        found = json.loads(out("grad", *argv, *extra, env=env))
        assert found["dtype"] == dtype
        grad = np.array(found["grads"]["x"]["grad"], dtype=dtype)
        assert (grad == np.ones(3, dtype) / np.asarray(3, dtype)).all()
    assert get_default_dtype() == before


def test_the_command_line_wins_over_the_environment():
    found = out(
        "eval", "x", "--x", "1", "--dtype", "float16", "--json", env={"GRADCLI_DTYPE": "float32"}
    )
    assert json.loads(found)["dtype"] == "float16"


@sweep(
    ("expression", "expected"),
    [
        ("2+3", "5\n"),
        ("1/3", "0.3333333333333333\n"),
        ("2 > 1", "True\n"),
        ("x.shape", "torch.Size([2])\n"),
        ("x > 1", "[False, True]\n"),
        ("x.dtype", "torch.float64\n"),
        ("y, z = x, x", ""),
        ("'words'", "words\n"),
        ("[x, 2]", "[[1, 2], 2]\n"),
        ("x.sort(descending=True)", "values = [2, 1]\nindices = [1, 0]\n"),
        ("x.unbind()", "1\n2\n"),
        ("print(x.sum().item()); x[0]", "3.0\n1\n"),
    ],
    parts=1,
)
def test_eval_of_all_sorts_of_values(expression, expected):
    argv = ["--x", "1,2"] if "x" in expression else []
    assert out("eval", expression, *argv) == expected


def test_eval_of_other_values_as_json():
    found = json.loads(out("eval", "2+3", "--json"))
    assert found == {
        "expression": "2+3", "value": 5, "shape": [], "dtype": None,
        "requires_grad": False, "grad_fn": None, "notes": [],
    }  # fmt: skip
    found = json.loads(out("eval", "x.sort()", "--x", "2,1", "--json"))
    assert [item["value"] for item in found["value"]] == [[1.0, 2.0], [1, 0]]
    assert json.loads(out("eval", "y, z = 2, 3", "--json"))["value"] is None


def test_values_come_from_standard_input_and_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.array([1.0, 2.0]))
    assert out("eval", "2*x", "--x", "@x.npy") == "[2, 4]\n"
    assert out("eval", "2*x", "--x", "-", input="1,2\n") == "[2, 4]\n"
    assert out("grad", "x*x", "--x", "1,2", "--seed", "-", input="3,5\n") == "x.grad = [6, 20]\n"


def test_loading_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.py").write_text(
        "import gradcli as torch\ndef f(x):\n    return torch.sin(x) * x\n"
    )
    assert out("eval", "f(x)", "--load", "f.py", "--x", "0") == "0\n"
    (tmp_path / "bad.py").write_text("x = 1\nx.nothing\n")
    result = run("eval", "f(x)", "--load", "bad.py", "--x", "0")
    assert result.exit_code == 1
    assert "bad.py" in result.stderr and "AttributeError" in result.stderr


def test_trace():
    lines = out("grad", "sum(x*w)", "--x", "1,2", "--w", "3", "--trace").splitlines()
    assert lines[0].split()[:2] == ["step", "node"]
    assert [line.split()[1] for line in lines[1:3]] == ["SumBackward0", "MulBackward0"]
    assert lines[-2:] == ["x.grad = [3, 3]", "w.grad = 3"]
    found = json.loads(out("grad", "sum(x*w)", "--x", "1,2", "--w", "3", "--trace", "--json"))
    assert [step["name"] for step in found["trace"]][:2] == ["SumBackward0", "MulBackward0"]
    assert "step" not in out("grad", "sum(x*w)", "--x", "1,2", "--w", "3", "--trace", "--plain")


def test_detect_anomaly():
    result = run("grad", "y = sqrt(x); sum(y)", "--x", "0,4", "--detect-anomaly")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith(
        "gradcli: error: Function 'SqrtBackward0' returned inf values in its 0th output.\n"
    )
    assert "\n    y = sqrt(x); sum(y)\n        ^^^^^^^\nhint: sqrt has" in result.stderr
    assert out("grad", "sqrt(x)", "--x", "4", "--detect-anomaly") == "x.grad = 0.25\n"


def test_warnings_are_one_line_of_ours():
    result = run("eval", "y = x*x; y.grad", "--x", "3")
    assert result.exit_code == 0
    assert result.stderr.startswith("gradcli: warning: The .grad attribute of a Tensor")
    assert len(result.stderr.splitlines()) == 1


def test_what_numpy_would_warn_of_is_a_result():
    assert out("eval", "1/x", "--x", "0,-1") == "[inf, -1]\n"
    result = run("grad", "log(x)", "--x", "0")
    assert result.exit_code == 0 and result.stdout == "x.grad = inf\n"
    assert "--detect-anomaly" in result.stderr and result.stderr.count("\n") == 1


@sweep(
    ("argv", "words"),
    [
        (["grad", "sum(x)", "--x", "1", "--no-grad", "all"], "see --no-grad and --wrt"),
        (["grad", "ones(2).sum()"], "has no variables"),
        (
            ["grad", "x*x", "--x", "1,2", "--seed", "1,2,3"],
            "--seed must have the value's shape, (2,)",
        ),
        (["grad", "max(x, dim=0)", "--x", "3,4"], "choose one of its items"),
        (["grad", "y, z = 2*x, x", "--x", "3"], "end it with an expression"),
        (["grad", "x*x", "--x", "1", "--passes", "2"], "pass 2 found the graph freed"),
        (["grad", "y = x*x; y.backward(); y", "--x", "1"], "backward(retain_graph=True)"),
    ],
    parts=1,
)
def test_remedies(argv, words):
    result = run(*argv)
    assert result.exit_code == 1
    assert words in result.stderr.partition("\nhint: ")[2]


@pytest.mark.parametrize(
    ("program", "piece", "hint"),
    [
        ("y = argmax(x); z = y*2; z", "argmax(x)", "argmax() ends the graph: whole numbers"),
        ("sum(x.detach())", "x.detach()", "detach() ends the graph"),
        ("a = x*2; b = a.data; sum(b*b)", "a.data", ".data ends the graph"),
        ("sum((x>1)*3.0)", "x>1", "a comparison has no gradient"),
        ("sum(x.long()*2)", "x.long()", "whole numbers have no gradient"),
        ("sum(tensor([x[0]]))", "tensor([x[0]])", "stack(…) or cat(…)"),
        ("float(x[0])**2", "float(x[0])", "it makes a number"),
        ("sum(x).item()*2", "sum(x).item()", "it makes a number"),
        ("len(x)*2.0", "len(x)", "a size does not depend on the numbers"),
    ],
)
def test_what_cuts_a_variable_off_is_underlined(program: str, piece: str, hint: str) -> None:
    result = run("grad", program, "--x", "1,2")
    *_, source, carets, said = result.stderr.splitlines()
    assert result.exit_code == 1 and source.strip() == program
    at = carets.index("^")
    assert source[at : at + carets.count("^")] == piece
    assert said.startswith("hint: ") and hint in said


@pytest.mark.parametrize(
    ("program", "options"),
    [
        ("igamma(a, x)", ["--wrt", "x"]),
        ("igamma(a*b, x*a) + igammac(b, x)", ["--wrt", "x"]),
        ("igamma(a, x*b)", ["--wrt", "x", "--wrt", "b"]),
    ],
)
def test_the_advised_variables_have_a_derivative(program: str, options: list[str]) -> None:
    argv = ["grad", program, "--a", "1.", "--x", "2.", *(["--b", "1."] if "b" in program else [])]
    refused = run(*argv)
    assert refused.exit_code == 1
    advice = refused.stderr.rpartition("alone: ")[2].split()
    assert sorted(advice) == sorted(options)
    assert run(*argv, *advice).exit_code == 0


def test_no_variable_is_advised_where_none_has_a_derivative() -> None:
    refused = run("grad", "igamma(x, x)", "--x", "1.")
    assert refused.exit_code == 1 and "not implemented" in refused.stderr
    assert "--wrt" not in refused.stderr


@sweep(("program", "expected"), [
        ("y = x**2; y.retain_grad(); z = y*3; z.backward()", "x.grad = 12\ny.grad = 3\n"),
        ("y = x**2; z = y*3; z.backward(); x.grad", "x.grad = 12\n"),
        ("z = x**2; z.backward(retain_graph=True); z.backward()", "x.grad = 8\n"),
    ], parts=1)  # fmt: skip
def test_a_program_that_runs_backward_itself_shows_what_it_leaves(program, expected):
    result = run("grad", program, "--x", "2")
    assert (result.exit_code, result.stdout) == (0, expected)
    assert result.stderr == (
        "gradcli: note: the program runs backward itself: these are the gradients that it leaves\n"
    )
    # Options of our pass have none to change.
    assert run("grad", program, "--x", "2", "--seed", "3").exit_code == 1


def test_graphs_of_large_arrays_have_retained_gradients_and_hooks():
    # From here on arrays are computed without a graph of ours.
    kept = run("grad", "y = 2*x; y.retain_grad(); sum(y)", "--x", "ones(200000)", "--plain")
    assert [line.split(",")[0] for line in kept.stdout.splitlines()] == ["x.grad\t2", "y.grad\t1"]
    hooked = run(
        "grad", "y = 2*x; y.register_hook(lambda g: 3*g); sum(y)", "--x", "ones(200000)", "--plain"
    )
    assert hooked.stdout.startswith("x.grad\t6,6,")

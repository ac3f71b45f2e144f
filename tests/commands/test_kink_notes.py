"""What the shell says of points without a derivative: each of the recorded questions, typed in."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.transforms import recorded_answers
from tests.commands.running import outcome, run

# What is said of each question; "" is silence. A kink or a jump is named by its operation.
KINKS = {
    **dict.fromkeys(("Q1", "Q1b"), "kink of abs"),
    **dict.fromkeys(("Q3", "Q5"), "kink of maximum"),
    **dict.fromkeys(("Q4", "Q4b"), "kink of max "),
    **dict.fromkeys(("Q12b", "K2", "K2b", "K2g", "K2h"), "kink of clamp"),
    **{"Q5b": "kink of relu", "Q10": "kink of norm", "Q11": "jump of atan2", "Q13": "jump of sign"},
    **{"Q13b": "jump of floor", "Q13c": "jump of round", "Q17": "kink of median"},
    **{"Q17b": "kink of sort", "Q17c": "kink of min ", "Q22": "jump of remainder"},
    **{"Q22b": "jump of remainder", "Q23b": "kink of the gradient", "Q24": "kink of std"},
    **{"Q27b": "kink of eigvalsh", "K1b": "kink of fmin"},
    **dict.fromkeys(("K4", "K4b"), "kink of hardtanh"),
    **dict.fromkeys(("K6", "K6b"), "kink of hardsigmoid"),
    **dict.fromkeys(("K7", "K7b"), "kink of hardswish"),
    **dict.fromkeys(("K8", "K8b"), "kink of relu6"),
    **{"K3": "kink of minimum", "K5": "kink of leaky_relu", "K9": "kink of elu"},
    **{"K10": "kink of amax", "K13": "kink of vector_norm", "K14": "jump of trunc"},
    **{"K14b": "jump of ceil", "K17": "kink of topk", "K18": "kink of cummax"},
    "Q12": 'kink of clamp in "clamp(x, 0, 1)": slopes 0 and 1; PyTorch 2.13 takes 1, 2.14 takes 0 (JAX 0.5)',
    "K1": "PyTorch 2.13 takes 1 and 0, 2.14 takes 0.5 (JAX 0 and 1)",
    "Q25": 'x is at a kink of asin in "asin(sin(x))": slopes 1 and -1; PyTorch takes inf',
}
EXPLAINED = {
    "Q2": "inf is the limit of x.grad from the right",
    "Q9": "y is an integer here: --no-grad y",
    "Q14": "where(x > 0, sqrt(where(x > 0, x, 1)), 0) in place of",
    "Q15": "x.grad has the limit -inf: -special.entr(x)",
    "Q15b": "x.grad has the limit -inf: -special.entr(x)",
    "Q20": "-inf is the limit of x.grad from the left",
    "Q20b": "inf is the limit of x.grad from the left",
    "Q21": "x.grad becomes 0, y.grad becomes 0: norm(stack([x, y]))",
    "Q26": "PyTorch's rule for det gives 0 here; the cofactors are [[4, -2], [-2, 1]]",
    "Q28": "inf is the limit of x.grad from the right",
    "Q29": "x.grad is 1: softplus(x)",
    "Q29d": "x.grad is 0: sigmoid(x)",
    "K15": "inf is the limit of x.grad from the left",
    # Nothing is known of what is infinite itself, or has no limit.
    **dict.fromkeys(("Q18", "Q18b", "Q30"), "the gradient is not finite (x)"),
}  # fmt: skip
SILENT = {"Q6", "Q6b", "Q7", "Q7b", "Q8", "Q8b", "Q8c", "Q16", "Q16b", "Q16c", "Q19", "Q19b"} | {
    *("Q22c", "Q22d", "Q23", "Q27", "Q29b", "Q29c", "K19")
}
ASKED = {q.id: q for q in recorded_answers.questions()}


def argv(asked: recorded_answers.Question, *more: str) -> list[str]:
    values = [f"--{n}={t}" for n, t in asked.point.items()]
    order = ["--order", str(asked.order)] if asked.order > 1 else []
    return ["grad", asked.program, *values, *order, *more]


def test_every_question_is_sorted() -> None:
    assert KINKS.keys() | EXPLAINED.keys() | SILENT | {"Q28b"} == ASKED.keys()
    assert not (KINKS.keys() & SILENT or EXPLAINED.keys() & SILENT)


@pytest.mark.parametrize("name", [n for n in ASKED if n != "Q28b"])
def test_what_is_said(name: str) -> None:
    result = run(*argv(ASKED[name]))
    assert result.exit_code == 0, result.stderr
    if name in SILENT:
        assert result.stderr == ""
    else:
        assert KINKS.get(name, EXPLAINED.get(name, "?")) in result.stderr
        assert "is at" in result.stderr or "are at" in result.stderr or name in EXPLAINED


def test_what_there_is_not_is_written_otherwise() -> None:
    result = run(*argv(ASKED["Q28b"]))
    assert result.exit_code == 2 and "sign(x)*abs(x)**(1/3)" in result.stderr


@pytest.mark.parametrize("name", [n for n in ASKED if n != "Q28b"])
def test_like_a_system_is_what_it_answered(name: str) -> None:
    """Every system, in one table; what it answers in words, or has no function for, is said so."""
    asked = ASKED[name]
    result = run(*argv(asked, "--like", "all", "--json"))
    found = {one["system"]: one for one in json.loads(result.stdout)["like"]}
    assert list(found) == [s.label for s in recorded_answers.systems()]
    for which in recorded_answers.systems():
        answer = recorded_answers.number_of(asked.answers.get(which.id, "-"))
        given = found[which.label]["wrt"]
        if which.id not in asked.answers:
            continue
        if answer is None:
            assert None in [given[n]["grad"] for n in asked.asks if n != "value"]
            assert found[which.label]["reason"]
            continue
        parts = [answer] if len(asked.asks) == 1 else answer
        for variable, part in zip(asked.asks, parts, strict=True):
            if variable != "value":
                own = np.asarray(_numbers(given[variable]["grad"]))
                assert recorded_answers.same(own, np.broadcast_to(part, own.shape))


def _numbers(value: Any) -> Any:
    """What JSON has of an array, with infinities and NaN as numbers."""
    if isinstance(value, list):
        return [_numbers(v) for v in value]
    return float(value) if isinstance(value, str) else value


@pytest.mark.parametrize(
    ("args", "wanted"),
    [
        (["abs(x)", "--x", "0", "--like", "jax"], "x.grad = 0   (JAX 0.10: 1)\n"),
        (["abs(x)", "--x", "2", "--like", "jax"], "x.grad = 1   (the same in JAX 0.10)\n"),
        (["3*abs(x)", "--x", "0", "--like", "jax"], "x.grad = 0   (JAX 0.10: 3)\n"),
        (["clamp(x, 0, 1)", "--x", "1", "--like", "torch-2.14"],
         "x.grad = 1   (PyTorch 2.14: 0)\n"),
        (["relu(x)*2", "--x", "0", "--like", "autograd"],
         "x.grad = 0   (autograd 1.9: its rule for relu was not run)\n"),
        (["clip(x, 0, 1)", "--x", "0", "--like", "jax"], "x.grad = 1   (JAX 0.10: 0.5)\n"),
        (["x.abs()", "--x", "0", "--like", "jax"], "x.grad = 0   (JAX 0.10: 1)\n"),
        (["quantile(x, 0.5)", "--x", "1,1", "--like", "tinygrad"],
         "x.grad = [0.5, 0.5]   (tinygrad 0.14: its rule for the function that uses sort was not run)\n"),
        (["copysign(x, 2)", "--x", "0", "--like", "jax"],
         "x.grad = 0   (JAX 0.10: its rule for copysign was not run)\n"),
        (["sum(max(A, 1).values)", "--A", "1,1;2,3", "--like", "paddle"],
         "A.grad = [[1, 0], [0, 1]]   (Paddle 3.3: [[0.5, 0.5], [0, 1]])\n"),
        (["sum(amax(A, 1))", "--A", "1,1;2,3", "--like", "pytensor"],
         "A.grad = [[0.5, 0.5], [0, 1]]   (PyTensor 3.3: [[1, 1], [0, 1]])\n"),
        (["abs(x)", "--x", "0", "--like", "jax", "--plain"], "x.grad\t0\nx.grad.jax\t1\n"),
    ],
)  # fmt: skip
def test_like(args: list[str], wanted: str) -> None:
    result = run("grad", *args)
    assert (result.exit_code, result.stdout) == (0, wanted), result.output


def test_an_unknown_system_lists_the_known() -> None:
    result = run("grad", "abs(x)", "--x", "0", "--like", "caffe")
    assert result.exit_code == 2
    assert "no answers of a system 'caffe' are recorded" in result.stderr
    assert "torch-2.14, jax" in result.stderr


def test_like_as_an_object() -> None:
    found = json.loads(run("grad", "abs(x)", "--x", "0", "--like", "jax", "--json").stdout)
    assert found["like"] == {
        "system": "jax 0.10.2", "wrt": {"x": {"grad": 1.0}}, "recorded": True
    }  # fmt: skip
    (kink,) = found["kinks"]
    assert (kink["kind"], kink["operation"], kink["span"]) == ("kink", "abs", [0, 6])
    assert kink["wrt"]["x"]["elements"] == [{"index": [], "left": -1.0, "right": 1.0, "grad": 0.0}]
    assert found["notes"] == [kink["text"]] and found["wrt"]["x"]["grad"] == 0


MANY = [
    (["sum(abs(x))", "--x", "zeros(100)"], "100 of 100 elements of x are at a kink of abs"),
    (["sum(relu(x))", "--x", "zeros(100000)", "--plain"], "100000 of 100000 elements of x"),
    (["sum(relu(W@x + b))", "--W", "zeros(99,3)", "--x", "1,2,3", "--b", "zeros(99)"],
     "297 of 297 elements of W and 3 of 3 elements"),
]  # fmt: skip


@pytest.mark.parametrize(("args", "words"), MANY[:2], ids=["100", "100000"])
def test_one_line_for_many(args: list[str], words: str) -> None:
    result = run("grad", *args)
    assert words in result.stderr and result.stderr.count("\n") == 1


def test_one_line_for_a_layer() -> None:
    result = run(
        "grad", "sum(relu(W@x + b))", "--W", "zeros(9,3)", "--x", "1,2,3", "--b", "zeros(9)"
    )
    assert result.stderr.count("\n") == 1
    assert "27 of 27 elements of W and 9 of 9 elements of b are at a kink of relu" in result.stderr


def test_a_program_that_changes_its_variables_is_left_alone() -> None:
    source = "with no_grad():\n    x -= 1\nabs(x)"
    assert run("grad", source, "--x", "1").stderr == ""


def test_the_same_random_numbers_are_drawn_again() -> None:
    first = run("grad", "abs(x)*randn(())", "--x", "0", "--manual-seed", "3")
    slope = float(first.stderr.partition("slopes ")[2].split()[0])
    value = float(run("eval", "randn(())", "--manual-seed", "3").stdout)
    assert math.isclose(abs(slope), abs(value), rel_tol=1e-5)


@pytest.mark.long
@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["nn.functional.leaky_relu(x)", "--x", "0"], "x is at a kink of leaky_relu"),
        (["sum(relu(x))", "--x", "zeros(250000)", "--plain"], "250000 of 250000 elements of x"),
        (["abs(x)*rand(())", "--x", "0"], "x is at a kink of abs"),
    ],
)
def test_a_process_of_its_own_says_it_too(argv: list[str], words: str) -> None:
    """Nothing has been imported or drawn there before the program runs."""
    command = [sys.executable, "-m", "gradcli", "grad", *argv]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert words in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("command", "source", "values", "words"),
    [
        ("jacobian", "abs(x)", {"x": "0,1"}, "x[0] is at a kink of abs"),
        ("jacobian", "relu(A@x)", {"A": "1,2;3,4", "x": "0,0"},
         "slopes 0 to the left, 3 and 4 to the right"),
        ("hessian", "relu(x)**2", {"x": "0"}, "a kink of the gradient: slopes 0 and 2"),
        ("hessian", "abs(x)**3", {"x": "0"}, ""),
        ("check", "asin(sin(x))", {"x": "pi/2"}, "a kink of asin"),
        ("check", "det(A)", {"A": "1,2;2,4"}, "the cofactors are [[4, -2], [-2, 1]]"),
    ],
)  # fmt: skip
def test_other_commands(command: str, source: str, values: dict[str, str], words: str) -> None:
    result = run(command, source, *[f"--{n}={t}" for n, t in values.items()])
    assert words in result.output
    assert words or result.stderr == ""


ALL_SAY = [
    ("abs(x)", {"x": "0"}, "x is at a kink of abs"),
    ("maximum(x, y)", {"x": "1", "y": "1"}, "are at a kink of maximum"),
    ("max(x)", {"x": "1,1"}, "2 of 2 elements of x are at a kink of max"),
    ("relu(x)", {"x": "0"}, "x is at a kink of relu"),
    ("clamp(x, 0, 1)", {"x": "1"}, "PyTorch 2.13 takes 1, 2.14 takes 0 (JAX 0.5)"),
    ("norm(x)", {"x": "0,0"}, "slopes -1 and 1; PyTorch takes 0 (JAX nan)"),
    ("atan2(y, x)", {"x": "0", "y": "0"}, "are at a jump of atan2"),
    ("sort(x).values[0]", {"x": "1,1"}, "are at a kink of sort"),
    ("median(x)", {"x": "1,1,2"}, "2 of 3 elements of x are at a kink of median"),
    ("floor(x)", {"x": "1"}, "x is at a jump of floor"),
    ("sign(x)", {"x": "0"}, "x is at a jump of sign"),
]


@pytest.mark.long
@pytest.mark.parametrize("command", ["grad", "diff", "jacobian", "hessian"])
@pytest.mark.parametrize(("source", "values", "words"), ALL_SAY)
def test_all_commands_say_the_same_of_a_kink(
    command: str, source: str, values: dict[str, str], words: str
) -> None:
    given = [f"--{n}={t}" for n, t in values.items()]
    told = [line for line in run(command, source, *given).stderr.splitlines() if words in line]
    assert len(told) == 1
    assert ("there is no derivative of order 2" in told[0]) is (command == "hessian")
    if source == "relu(x)":
        again = run("diff", source, "--order", "3", *given).stderr
        assert f"{words} in" in again and "there is no derivative of order 3" in again


def test_a_formula_has_no_kink_where_its_variables_have_no_values() -> None:
    assert run("diff", "abs(x)").stderr == run("diff", "abs(x)", "--x", "2").stderr == ""


def test_ops_tells_who_answers_what() -> None:
    text = run("ops", "abs").stdout
    assert "at the kink d abs(x), x = 0" in text and "1: JAX 0.10, Enzyme 0.0.16" in text
    assert "jax 0.10.2 (_src/lax/lax.py)" in text
    assert "at the kink" not in run("ops", "sin").stdout


@pytest.mark.parametrize(
    ("verb", "source", "words"),
    [
        (gradcli.grad, "abs(x)", "x is at a kink of abs"),
        (gradcli.grad, "x*log(x)", "-special.entr(x) in place of"),
        (gradcli.jacobian, "abs(x)", "x is at a kink of abs"),
        (gradcli.hessian, "relu(x)**2", "a kink of the gradient: slopes 0 and 2"),
    ],
)
def test_python_is_warned_where_it_asks(verb: Any, source: str, words: str) -> None:
    with pytest.warns(UserWarning, match=re.escape(words)) as caught:
        verb(source, x=0.0, explain=True)
    assert {w.filename for w in caught if w.category is UserWarning} == {__file__}
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        verb(source, x=0.0)
        verb(source, x=0.5, explain=True)


def test_a_graph_marks_its_nodes() -> None:
    result = run("graph", "sum(abs(x) + relu(x)**2)", "--x", "0,1", "--grads")
    assert "AbsBackward0 (kink)" in result.stdout and "ReluBackward0 " in result.stdout
    assert "x[0] is at a kink of abs" in result.stderr
    found = json.loads(run("graph", "abs(x)", "--x", "0", "--grads", "--json").stdout)
    assert [n.get("kink") for n in found["nodes"]] == ["kink", None]
    assert "kink" not in run("graph", "abs(x)", "--x", "0").output


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("abs(x) + y", '2 rows lie on a kink or a jump, the first of abs in "abs(x)"'),
        ("maximum(x, y)", "1 row lies on a kink or a jump, the first of maximum"),
        ("floor(x) + y", "4 rows lie on a kink or a jump, the first of floor"),
        ("relu(x)**2 + y", ""),
        ("relu(x) - relu(-x)", ""),  # the slopes are the same, though the gradient is 0
        ("sin(x)", ""),
    ],
)
def test_map_counts_rows(source: str, words: str, tmp_path: Any) -> None:
    table = tmp_path / "k.csv"
    table.write_text("x,y\n0,1\n1,2\n-1,0\n0,0\n")
    result = run("map", source, str(table))
    assert result.exit_code == 0
    assert words in result.stderr if words else result.stderr == ""
    assert run("map", source, str(table), "--no-grad", "all").stderr == ""


@pytest.mark.parametrize("source", ["log(x)", "sum(log(x*ones(2)))"])
def test_a_value_that_is_not_finite_beside_a_gradient_that_is(source: str) -> None:
    code, out, err = outcome("grad", source, "--x", "-1")
    assert code == 0 and "nan" not in out
    assert err == "gradcli: note: the value is not finite (nan), where its gradient is\n"

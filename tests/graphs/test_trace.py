"""The backward pass as a table, and where a computation first went wrong."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensors

from gradcli.engine.core.tensor import wrap
from gradcli.engine.registry import table
from gradcli.graphs import find_anomaly, inspect, step_files, tracing, watching
from gradcli.graphs.backward_steps import StepListener
from gradcli.graphs.step_table import HEADINGS
from gradcli.graphs.styles import fold
from gradcli.graphs.vjp_text import rules_by_edge, rules_of
from tests.sweep import sweep


def steps_of(trace: Any) -> list[str]:
    return str(trace).splitlines()


def test_a_row_a_step_in_the_engines_order() -> None:
    result = tensors.example().tensors[0]
    with tracing(tensors.SOURCE) as trace:
        result.backward()
    lines = steps_of(trace)
    assert lines[0].split() == ["step", "node", "source", "grad", "in", "rule", "grad", "out"]
    text = "\n".join(lines)
    assert "SubBackward0      z*z - c/(a*y)  1" in text
    numbers = [line.split()[0] for line in lines[1:] if line[0] != " "]
    assert numbers == [str(n) for n in range(1, 12)]
    names = [step.node.name() for step in trace.passes[0].steps]
    assert names[0] == "SubBackward0" and names.count("torch::autograd::AccumulateGrad") == 4


def test_what_goes_out_and_where_to() -> None:
    a, x = tensors.leaf(4.0, "a"), tensors.leaf([3.0, 1.0], "x")
    y = a * x
    y.label = y.grad_fn.label = "y"
    with tracing() as trace:
        (y + a).backward(wrap(np.array([1.0, 2.0])))
    assert steps_of(trace) == [
        "step  node              grad in  rule          grad out",
        "1     AddBackward0      [1, 2]   grad          [1, 2] → y",
        "                                 grad * alpha  3 → a",
        "2     MulBackward0 y    [1, 2]   grad * other  5 → a",
        "                                 grad * self   [4, 8] → x",
        "                                 free          other, self",
        "3     AccumulateGrad a  8        accumulate    a.grad = 8",
        "4     AccumulateGrad x  [4, 8]   accumulate    x.grad = [4, 8]",
    ]


def test_hooks_retained_gradients_and_accumulation_are_seen() -> None:
    x = tensors.leaf(3.0, "x")
    y = x * x
    y.label = y.grad_fn.label = "y"
    y.retain_grad()
    x.register_hook(lambda grad: grad + grad)
    y.grad_fn.register_prehook(lambda grads: (grads[0] + grads[0],))
    with tracing() as trace:
        (y + y).backward(retain_graph=True)
        (y + y).backward()
    text = str(trace)
    assert "pass 1" in text and "pass 2" in text
    assert "2 → 4" in text  # the prehook
    assert "24 → 48" in text and "x.grad = 48" in text and "x.grad = 96" in text
    assert text.count("free") == 1  # the first pass retains the graph


def test_gradients_that_are_added_to_later_are_copied() -> None:
    x = tensors.leaf([1.0, 2.0], "x")
    with tracing() as trace:
        (x * x + x * x).backward(wrap(np.ones(2)))
    (accumulated,) = [note for note in trace.passes[0].steps[-1].notes if note.kind == "accumulate"]
    x.grad.array += 100
    assert accumulated.after.tolist() == [4.0, 8.0]
    outgoing = [step.outgoing for step in trace.passes[0].steps if len(step.outgoing) == 2]
    assert [grad.tolist() for grad in outgoing[1]] == [[1.0, 2.0], [1.0, 2.0]]


def test_json() -> None:
    x = tensors.leaf(3.0, "x")
    with tracing("x*x") as trace:
        (x * x).backward()
    first, second = json.loads(json.dumps(trace.to_json()))
    assert first["name"] == "MulBackward0" and first["grads"] == [1.0]
    assert [out["grad"] for out in first["out"]] == [3.0, 3.0]
    assert first["out"][0] == {
        "node": 1,
        "name": "AccumulateGrad",
        "output": 0,
        "rule": "grad * other",
        "grad": 3.0,
    }
    assert second["label"] == "x"
    # Before the first gradient there is none; the second finds what the first has left.
    assert second["events"] == [{"kind": "accumulate", "before": None, "after": 6.0}]
    with tracing("x*x") as again:
        (x * x).backward()
    assert again.to_json()[1]["events"] == [{"kind": "accumulate", "before": 6.0, "after": 12.0}]


SPELLED = {
    "sigmoid(x)": "grad * result * (1 - result)",
    "tanh(x)": "grad * (1 - result * result)",
    "relu(x)": "where(result > 0, grad, 0)",
    "x**3": "grad * exponent * self ** (exponent - 1)",
    "softmax(x, 0)": "result * (grad - (grad * result).sum(dim, True))",
    "log_softmax(x, 0)": "grad - exp(result) * grad.sum(dim, True)",
    "mse_loss(x, x.detach()*2)": "2 * (self - target) * grad / self.numel()",
    "mse_loss(x, x.detach()*2, reduction='sum')": "2 * (self - target) * grad",
    "huber_loss(x, x.detach()*2)": "clamp(self - target, -delta, delta) * grad / self.numel()",
    "x.mean(0)": "grad.unsqueeze(dim).expand(self_sym_sizes) * grad.numel() / self_sym_numel",
    "logsumexp(x, 0)": "grad.unsqueeze(dim) * exp(self - result.unsqueeze(dim))",
    "silu(x)": "grad * sigmoid(self) * (1 + self * (1 - sigmoid(self)))",
    "softplus(x)": "grad * sigmoid(beta * self)",
    "cumsum(x, 0)": "flip(cumsum(flip(grad, [dim]), dim), [dim])",
    "x[1]": "select_scatter(zeros(self_sym_sizes), grad, dim, index)",
    "x.max(0)[0]": "scatter(zeros(self_sym_sizes), dim, indices, grad)",
}


@sweep(("expression", "rule"), list(SPELLED.items()), parts=1)
def test_rules_are_spelled_out_and_true(expression: str, rule: str) -> None:
    """The text of a rule, computed with what its node has saved, is the gradient."""
    import gradcli as torch
    from gradcli.graphs import saved_fields

    x = torch.tensor([0.3, 1.2, 0.7], dtype=torch.float64, requires_grad=True)
    names = {name: getattr(torch, name, None) for name in ("sigmoid", "tanh", "relu", "softmax")}
    names |= {n: getattr(torch, n) for n in ("log_softmax", "cumsum", "logsumexp", "flip")}
    names["zeros"] = lambda sizes: torch.zeros(sizes, dtype=torch.float64)
    names |= {n: getattr(torch, n) for n in ("where", "exp", "clamp", "select_scatter")}
    names |= {n: getattr(torch.nn.functional, n) for n in ("mse_loss", "huber_loss", "silu")}
    names["softplus"] = torch.nn.functional.softplus
    names["scatter"] = torch.scatter
    y = eval(expression, names | {"x": x})
    assert rules_by_edge(y.grad_fn)[0] == rule
    grad = torch.linspace(1, 2, y.numel(), dtype=torch.float64).reshape(y.shape)
    fields = dict(saved_fields.fields(y.grad_fn))
    if isinstance(fields.get("dim"), tuple):
        (fields["dim"],) = fields["dim"]
    found = eval(rule, names | fields | {"grad": grad})
    (wanted,) = torch.autograd.grad(y, x, grad)
    assert np.allclose(found.array, wanted.array, rtol=1e-12)


@sweep("form", ["csv", "tex", "html"], parts=1)
def test_files_hold_a_row_for_each_gradient(form: str) -> None:
    x = tensors.leaf([1.0, 2.0], "x")
    with tracing("(x*x).sum()") as trace:
        (x * x).sum().backward()
    text = getattr(step_files, f"to_{form}")(trace)
    assert text.count("MulBackward0") == (3 if form == "csv" else 2)
    if form == "csv":
        rows = list(csv.DictReader(io.StringIO(text)))
        assert [row["to"] for row in rows] == ["MulBackward0", "x", "x", "x.grad"]
        assert rows[1]["rule"] == "grad * other" and rows[3]["grad out"] == "[2, 4]"


@pytest.mark.parametrize("width", [50, 80, 120])
def test_the_table_fits_and_is_ascii_where_need_be(width: int) -> None:
    from rich.console import Console

    result = tensors.example().tensors[0]
    with tracing(tensors.SOURCE) as trace:
        result.backward()
    text = trace.plain(ascii=True, width=width)
    assert text.isascii() and max(map(len, text.splitlines())) <= width
    out = io.StringIO()
    Console(file=out, force_terminal=True, width=width).print(trace)
    assert "\x1b[" in out.getvalue()


@pytest.mark.parametrize("width", [12, 30, 60, 80])
def test_nothing_is_cut_where_the_table_is_too_wide(width: int) -> None:
    result = tensors.example().tensors[0]
    with tracing(tensors.SOURCE) as trace:
        result.backward(retain_graph=True)
        result.backward()
    wide = trace.plain().splitlines()
    text = trace.plain(width=width)
    assert "…" not in text and text.count("pass ") == 2
    told = "".join(text.split())
    for line in wide:
        if line and line[0].isdigit():
            number, node = line.split()[:2]
            assert f"{number}{node}" in told
        for cell in line[6:].split("  "):
            assert "".join(cell.split()) in told or "…" in cell or cell.strip() in HEADINGS


def test_blocks_where_the_table_is_too_wide() -> None:
    a, x = tensors.leaf(4.0, "a"), tensors.leaf([3.0, 1.0], "x")
    y = a * x
    y.label = y.grad_fn.label = "y"
    with tracing() as trace:
        (y + a).backward(wrap(np.array([1.0, 2.0])))
    assert trace.plain(width=40).splitlines() == [
        "1  AddBackward0",
        "   grad in     [1, 2]",
        "   rule        grad",
        "   grad out    [1, 2] → y",
        "   rule        grad * alpha",
        "   grad out    3 → a",
        "2  MulBackward0 y",
        "   grad in     [1, 2]",
        "   rule        grad * other",
        "   grad out    5 → a",
        "   rule        grad * self",
        "   grad out    [4, 8] → x",
        "   free        other, self",
        "3  AccumulateGrad a",
        "   grad in     8",
        "   accumulate  a.grad = 8",
        "4  AccumulateGrad x",
        "   grad in     [4, 8]",
        "   accumulate  x.grad = [4, 8]",
    ]


def test_lines_are_folded_at_blanks() -> None:
    line = [("[1, ", "grad"), ("22, 333]", "value")]
    assert fold(line, 7) == [[("[1, ", "grad"), ("22,", "value")], [("333]", "value")]]
    assert fold([("abcdef", "grad")], 4) == [[("abcd", "grad")], [("ef", "grad")]]
    assert fold([], 4) == [[]]


def test_nothing_is_recorded_afterwards() -> None:
    x = tensors.leaf(3.0, "x")
    with tracing() as trace:
        pass
    (x * x).backward()
    assert trace.passes == []
    assert str(trace) == ""


# -- rules as text --------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("make", "rules"),
    [
        (lambda x: x * x, {"self": "grad * other", "other": "grad * self"}),
        (lambda x: x + x, {"self": "grad", "other": "grad * alpha"}),
        (lambda x: x.exp(), {"self": "grad * result"}),
        (lambda x: x.log(), {"self": "grad / self"}),
    ],
)
def test_rules(make: Callable[[Any], Any], rules: dict[str, str]) -> None:
    assert rules_of(make(tensors.leaf(2.0, "x")).grad_fn._primitive) == rules


def test_every_rule_of_the_table_has_a_text() -> None:
    from gradcli.graphs.vjp_text import rule_text

    for function in list(table.FUNCTIONS.values()):
        for row in getattr(function, "primitives", None) or ():
            for target, rule in row.vjps.items():
                assert rule_text(rule, row.node), (row.name, target)


def test_a_leaf_has_no_rule() -> None:
    grad_fn = (tensors.leaf(1.0, "x") * 1).grad_fn
    assert rules_by_edge(grad_fn.next_functions[0][0]) == []


# -- anomalies ------------------------------------------------------------------------------------
def anomaly_of(make: Callable[[Any], Any], value: Any) -> Any:
    x = tensors.leaf(value, "x")
    with watching() as results:
        result = make(x)
    with tracing(check=True) as trace:
        result.backward(wrap(np.ones(result.array.shape)))
    graph = inspect(result, source="f(x)", values=results)
    return find_anomaly(graph, values=results, recorder=trace.recorder)


@sweep(
    ("make", "value", "message", "hint"),
    [
        (
            lambda x: x.sqrt(),
            0.0,
            "Function 'SqrtBackward0' returned inf values in its 0th output.",
            "x = 0",
        ),
        (
            lambda x: (x * x).sqrt(),
            [0.0, 1.0],
            "Function 'SqrtBackward0' returned inf values in its 0th output.",
            "MulBackward0 = [0, 1] (element [0] is 0)",
        ),
        (
            lambda x: x.log(),
            [1.0, -1.0],
            "Function 'LogBackward0' computed nan values in the forward pass.",
            "x = [1, -1] (element [1] is -1)",
        ),
        (
            lambda x: x.exp(),
            1000.0,
            "Function 'ExpBackward0' computed inf values in the forward pass.",
            "logsumexp",
        ),
        (
            lambda x: x / (x - x),
            1.0,
            "Function 'DivBackward0' computed inf values in the forward pass.",
            "a denominator of 0",
        ),
        (
            lambda x: table.resolve("where")(x > 0, x.sqrt(), x),
            [0.0, 4.0],
            "Function 'SqrtBackward0' returned nan values in its 0th output.",
            "where(c, f(where(c, x, 1)), 0)",
        ),
        (
            lambda x: x.sqrt() * (x - x),
            0.0,
            "Function 'SqrtBackward0' returned nan values in its 0th output.",
            "infinite slope",
        ),
    ],
    parts=1,
)
def test_the_first_anomaly(make: Callable[[Any], Any], value: Any, message: str, hint: str) -> None:
    found = anomaly_of(make, value)
    assert found is not None and found.message == message
    assert hint in found.hint


def test_nothing_wrong() -> None:
    assert anomaly_of(lambda x: x * x, [1.0, 2.0]) is None


def test_a_recorder_without_check_keeps_no_anomaly() -> None:
    assert StepListener().anomaly is None
    x = tensors.leaf(0.0, "x")
    with tracing() as trace:
        x.sqrt().backward()
    assert trace.recorder.anomaly is None

"""--norms, anomalies and the assertions on gradients: of our own graphs, and of PyTorch's."""

from __future__ import annotations

import json
from typing import Any

import pytest
import tensors
from click.testing import CliRunner

from gradcli.cli import main
from gradcli.graphs.remedies import remedy
from gradcli.torch import testing
from tests.sweep import sweep


def gradcli(*argv: str) -> Any:
    done = CliRunner().invoke(main, list(argv), prog_name="gradcli")
    assert done.exception is None or isinstance(done.exception, SystemExit)
    return done


SATURATED = ["sum(sigmoid(30 + x*w)*v)", "--x", "1,2", "--w", "0.5", "--v", "1,1"]


def test_the_table_and_its_marks() -> None:
    lines = gradcli("graph", *SATURATED, "--norms").stdout.splitlines()
    assert lines[0].split() == ["name", "shape", "|grad|", "|value|", "ratio", "zeros"]
    assert [line.split()[0] for line in lines[1:4]] == ["v", "w", "x"] or len(lines) > 4
    mark = next(line for line in lines if line.startswith("! "))
    assert mark.startswith("! SigmoidBackward0  sigmoid(30 + x*w): |grad| falls by ")
    assert "normalisation" in lines[lines.index(mark) + 1]


@pytest.mark.parametrize("by", ["grad", "ratio", "depth"])
def test_the_table_is_sorted(by: str) -> None:
    found = json.loads(gradcli("graph", *SATURATED, "--norms", "--sort", by, "--json").stdout)
    keys = [row[by] for row in found["norms"]]
    assert keys == sorted(keys)
    assert {row["name"] for row in found["norms"]} == {"x", "w", "v"}
    assert found["marks"][0]["kind"] == "vanishes"
    assert found["marks"][0]["where"] == "sigmoid(30 + x*w)"


@pytest.mark.parametrize(
    "expression, values",
    [
        ("mean(x)", ["--x", "ones(100000)"]),  # divides by as many as it has
        ("sum(x)", ["--x", "ones(2000000)"]),  # copies to as many
        ("sum(expand(x, 100000))", ["--x", "1"]),
        ("sum(x*x)", ["--x", "1,2,3"]),
    ],
)
def test_sizes_alone_are_no_vanishing_and_no_exploding(expression: str, values: list[str]) -> None:
    assert (
        json.loads(gradcli("graph", expression, *values, "--norms", "--json").stdout)["marks"] == []
    )


def test_an_explosion_has_its_remedy() -> None:
    found = gradcli("graph", "sum(1/(x*1e-4))", "--x", "1,2", "--norms").stdout
    assert "grows by" in found and "clamp it from below" in found


@sweep(
    ("argv", "words"),
    [
        (["log(x*y).sum()", "--x", "1,nan", "--y", "1,2"], "the input x has nan values"),
        (["sum(x*w)", "--x", "1,nan", "--w", "1,2", "--wrt", "w"], "the input x has nan values"),
        (["exp(x)", "--x", "inf"], "the input x has inf values"),
        (["log(x)", "--x=-1"], "Function 'LogBackward0' computed nan values in the forward pass."),
        (["exp(x)", "--x", "12", "--dtype", "float16"], "11 in float16"),
        (["exp(x)", "--x", "100", "--dtype", "float32"], "88 in float32"),
        (["sqrt(x)", "--x", "0", "--dtype", "float16"], "sqrt(x + 1e-4)"),
    ],
    parts=1,
)
@pytest.mark.parametrize("command", ["grad", "graph"])
def test_an_anomaly_names_the_cause(command: str, argv: list[str], words: str) -> None:
    done = gradcli(command, *argv, "--detect-anomaly")
    assert done.exit_code == 1
    assert words in done.stderr


def test_a_gradient_that_is_not_finite_is_worth_one_note() -> None:
    done = gradcli("grad", "sqrt(x)*y", "--x", "0", "--y", "1")
    assert done.exit_code == 0 and done.stdout == "x.grad = inf\ny.grad = 0\n"
    assert done.stderr == (
        "gradcli: note: the gradient is not finite (x): inf is the limit of x.grad from the right; "
        "--detect-anomaly says where it came from\n"
    )
    assert gradcli("grad", "x*x", "--x", "2").stderr == ""


def test_remedies_know_the_ranges_of_dtypes() -> None:
    assert "65504" in remedy("MulBackward0", "float16")
    assert "709" in remedy("ExpBackward0", "float64") and "float32: 88" in remedy("ExpBackward0")


def test_assertions_on_our_own_graphs() -> None:
    x = tensors.leaf([1.0, 2.0], "x")
    testing.assert_no_vanishing((x * x).sum())
    testing.assert_no_exploding((x * x).sum())
    testing.assert_finite_gradients((x * x).sum())
    with pytest.raises(testing.GradientTrouble, match="SigmoidBackward0") as caught:
        testing.assert_no_vanishing((x * 1e-3 + 40).sigmoid().sum())
    assert caught.value.places and "normalisation" in str(caught.value)
    with pytest.raises(testing.GradientTrouble, match="explode"):
        testing.assert_no_exploding((1 / (x * 1e-6)).sum())
    with pytest.raises(testing.GradientTrouble, match="x: 1 elements"):
        testing.assert_finite_gradients((x - 1).sqrt().sum())
    with pytest.raises(TypeError, match="requires grad"):
        testing.assert_no_vanishing(x.detach())

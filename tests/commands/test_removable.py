"""What commands do where rules fail: at removable points, in half precision, with writes that overlap."""

from __future__ import annotations

from typing import Any

import pytest

import gradcli
from gradcli.transforms import removable
from tests.commands.running import outcome
from tests.sweep import sweep

MANY = "ones(70000)"
SHARE = "1.43e-05, 1.43e-05"


@pytest.mark.long
@sweep(
    ("source", "x", "shown"),
    [
        ("mean(x)", MANY, SHARE),
        ("sum(mean(x, 0))", "ones(70000, 2)", "1.43e-05, 1.43e-05"),
        ("nn.functional.l1_loss(x, zeros(70000))", MANY, SHARE),
        ("nn.functional.huber_loss(x, zeros(70000))", MANY, SHARE),
        ("nn.functional.smooth_l1_loss(x, zeros(70000))", MANY, SHARE),
        (
            "nn.functional.binary_cross_entropy(x, zeros(70000))",
            "0.5*ones(70000)",
            "2.855e-05, 2.8",
        ),
        ("nn.functional.kl_div(x, ones(70000))", MANY, "-1.43e-05, -1.43e-05"),
        ("nn.functional.poisson_nll_loss(x, ones(70000))", MANY, "2.456e-05, 2.456e-05"),
        ("sum(nn.functional.adaptive_avg_pool1d(x, 1))", "ones(1, 1, 70000)", SHARE),
        (
            "nn.functional.nll_loss(x, zeros(70000, dtype=int64))",
            "ones(70000, 2)",
            "[-1.43e-05, 0]",
        ),
        ("sum(nn.functional.avg_pool2d(x, 265))", "ones(1, 1, 265, 265)", "1.425e-05, 1.425e-05"),
    ],
    parts=3,
    often=1,
)
def test_half_precision_divides_by_counts_in_single(source: str, x: str, shown: str) -> None:
    code, out, _ = outcome("grad", source, "--x", x, "--dtype", "float16")
    assert code == 0
    assert out.lstrip("x.grad= [").startswith(shown.lstrip("["))


def test_half_precision_sums_in_single() -> None:
    for source, x in (
        ("nn.functional.avg_pool1d(x, 70000)", "ones(1, 1, 70000)"),
        ("nn.functional.avg_pool2d(x, 265)", "ones(1, 1, 265, 265)"),
    ):
        _, out, _ = outcome("eval", source, "--x", x, "--dtype", "float16")
        assert out.strip("[]\n") == "1"


@sweep(
    ("argv", "lines"),
    [
        (["norm(x)", "--x", "1e200,1"], ["value = 1e+200", "x.grad = [1, 1e-200]"]),
        (["norm(x)", "--x", "3e-200,4e-200"], ["value = 5e-200", "x.grad = [0.6, 0.8]"]),
        (["norm(x)", "--x", "0,0"], ["value = 0", "x.grad = [0, 0]"]),
        (
            ["norm(x)", "--x", "1e30,1", "--dtype", "float32"],
            ["value = 1e+30", "x.grad = [1, 1e-30]"],
        ),
        (
            ["linalg.norm(A)", "--A", "1e200,1;0,0"],
            ["value = 1e+200", "A.grad = [[1, 1e-200], [0, 0]]"],
        ),
        (
            ["nn.functional.normalize(x, dim=0)[0]", "--x", "1e200,1e200", "--precision", "6"],
            ["value = 0.707107", "x.grad = [3.53553e-201, -3.53553e-201]"],
        ),
    ],
    parts=1,
)
def test_norms_of_numbers_whose_squares_are_out_of_range(argv: list[str], lines: list[str]) -> None:
    _, out, _ = outcome("grad", *argv, "--value")
    assert out.splitlines() == lines


REPEATED = "writes an element more than once"


@sweep(
    ("source", "s", "shown"),
    [
        ("y = zeros(1); y[[0, 0]] = s; sum(y)", "1,2", "[0, 1]"),
        ("sum(scatter(zeros(3), 0, tensor([1, 1, 0]), s))", "1,2,3", "[0, 1, 1]"),
        ("sum(put(zeros(3), tensor([1, 1, 0]), s))", "1,2,3", "[0, 1, 1]"),
        ("sum(index_copy(zeros(3, 2), 0, tensor([1, 1]), s))", "1,2;3,4", "[[0, 0], [1, 1]]"),
    ],
    parts=1,
)
def test_of_writes_to_one_element_the_last_has_the_gradient(
    source: str, s: str, shown: str
) -> None:
    code, out, err = outcome("grad", source, "--s", s)
    assert (code, out) == (0, f"s.grad = {shown}\n")
    assert REPEATED in err


def test_writes_apart_say_nothing_and_the_library_has_pytorchs_gradient() -> None:
    assert outcome("grad", "y = zeros(2); y[[0, 1]] = s; sum(y)", "--s", "1,2")[2] == ""
    s = gradcli.tensor([1.0, 2.0], requires_grad=True)
    y = gradcli.zeros(1)
    y[[0, 0]] = s
    y.sum().backward()
    assert s.grad is not None and s.grad.tolist() == [1, 1]


@sweep(
    ("call", "shown"),
    [
        ("scatter(zeros(2, 3), 0, tensor([[0, 0]]), s)", "[[1, 1, 0], [0, 0, 0]]"),
        ("scatter_add(zeros(2, 3), 0, tensor([[0, 0]]), s)", "[[1, 1, 0], [0, 0, 0]]"),
        ("scatter_reduce(zeros(2, 3), 0, tensor([[0, 0]]), s, 'sum')", "[[1, 1, 0], [0, 0, 0]]"),
        (
            "scatter_reduce(zeros(2, 3), 0, tensor([[0, 0]]), s, 'mean')",
            "[[0.5, 0.5, 0], [0, 0, 0]]",
        ),
        ("scatter_reduce(zeros(2, 3), 0, tensor([[0, 0]]), s, 'amax')", "[[1, 1, 0], [0, 0, 0]]"),
        ("scatter_reduce(ones(2, 3), 0, tensor([[0, 0]]), s, 'prod')", "[[1, 1, 0], [0, 0, 0]]"),
    ],
    parts=1,
)
def test_a_source_larger_than_its_index_has_a_gradient(call: str, shown: str) -> None:
    given = ["--s", "1,2,3;4,5,6"]
    assert outcome("grad", f"sum({call})", *given)[:2] == (0, f"s.grad = {shown}\n")
    assert outcome("check", f"sum({call})", *given)[0] == 0


@sweep(
    ("argv", "words"),
    [
        (["hessian", "x**y", "--x", "0", "--y", "2"], "0 * inf is NaN there"),
        (["hessian", "norm(v)", "--v", "0,0"], "a denominator of 0"),
        (["jacobian", "sqrt(x)", "--x", "0,1"], "sqrt has an infinite slope at 0"),
        (["jvp", "log(x)", "--x", "0", "--vector", "1"], "log is -inf at 0"),
        (["grad", "sqrt(x)", "--x", "0", "--order", "2"], "sqrt has an infinite slope at 0"),
    ],
    parts=1,
)
def test_detect_anomaly_of_every_order(argv: list[str], words: str) -> None:
    code, out, err = outcome(*argv, "--detect-anomaly")
    assert (code, out) == (1, "")
    assert words in err


def test_detect_anomaly_says_nothing_of_what_is_finite() -> None:
    for argv in (["hessian", "x**3"], ["jacobian", "x**2"], ["grad", "x**3", "--order", "3"]):
        code, _, err = outcome(*argv, "--x", "2", "--detect-anomaly")
        assert (code, err) == (0, "")


def test_second_derivatives_are_checked_by_series_where_rules_have_none() -> None:
    code, out, _ = outcome("check", "x**y", "--x", "0", "--y", "2", "--second-order")
    assert code == 0
    assert "ok: y second derivative (by power series along lines" in out


def test_a_minimum_at_a_removable_point_is_one() -> None:
    _, out, _ = outcome("minimize", "norm(v)**2", "--v", "0,0")
    assert "kind = minimum" in out and "smallest_eigenvalue = 2" in out


@sweep(
    ("argv", "shown"),
    [
        (["tanh(x)", "--x", "20"], "x.grad = 1.6993417021166355e-17"),
        (["det(A)", "--A", "1,2;2,4"], "A.grad = [[4, -2], [-2, 1]]"),
        (["sigmoid(x)", "--x", "40"], "x.grad = 4.248354255291589e-18"),
        (["sum(tanh(x))", "--x", "0.5,1"], "x.grad = [0.7864477329659274, 0.41997434161402614]"),
    ],
    parts=1,
)
def test_gradients_have_the_digits_that_results_lost(argv: list[str], shown: str) -> None:
    assert outcome("grad", *argv)[1] == f"{shown}\n"


def test_a_program_without_a_formula_has_a_taylor_polynomial() -> None:
    program = "y = x\nwhile y < 10: y = y*2\ny"
    code, out, err = outcome("taylor", program, "--x", "1", "--order", "3")
    assert (code, out) == (0, "16 + 16*(x - 1)\n")
    assert "no formula" in err


def test_the_proved_formula_is_taken_where_series_have_no_number() -> None:
    code, out, err = outcome("hessian", "log(exp(x))", "--x", "1000")
    assert (code, out) == (0, "x.hessian = 0\n")
    assert "from the formula that diff proves" in err


def test_what_is_not_finite_has_a_note_in_python_too() -> None:
    with pytest.warns(UserWarning, match="not finite"):
        gradcli.hessian("norm(v)", v=[0.0, 0.0])


@sweep(
    ("argv", "values"),
    [
        (["grad", "sum(sin(x)/x)", "--x", "0,1", "--order", "2"], [-1 / 3, -0.239133626928383]),
        (["grad", "sum(sin(x)/x)", "--x", "0,1", "--order", "4"], [0.2, 0.133076685139860]),
        (["grad", "prod(sin(x)/x)", "--x", "0,1", "--order", "3"], [0.200779119293171, 0.277488134563595]),
        (["grad", "exp2(x)", "--x", "1024", "--order", "2"], [8.6370708474465935e307]),
        (["hessian", "exp2(x)", "--x", "1024"], [8.6370708474465935e307]),
        (["jvp", "exp2(x)", "--x", "1024", "--vector", "1"], [1.2460659279417838e308]),
        (["diff", "sin(x)/x", "--at", "x=0,1", "--order", "2"], [-1 / 3, 0, 0, -0.239133626928383]),
    ],
    parts=1,
)  # fmt: skip
def test_higher_orders_of_arrays_and_of_values_out_of_range(
    argv: list[str], values: list[float]
) -> None:
    code, out, err = outcome(*argv)
    shown = [float(v) for v in out.rpartition("= ")[2].replace("[", "").replace("]", "").split(",")]
    assert code == 0 and shown == pytest.approx(values, rel=1e-11, abs=1e-15), err
    assert "undecided" not in err


@pytest.mark.parametrize(
    ("argv", "piece"),
    [
        (["grad", "2*x**1.5 + sin(x)", "--order", "2"], "x**1.5"),
        (["hessian", "x**1.5 + sqrt(4)"], "x**1.5"),
        (["grad", "2*x**2.5 + sin(x)", "--order", "3"], "x**2.5"),
    ],
)
def test_an_anomaly_of_a_pass_through_a_pass_has_its_place(argv: list[str], piece: str) -> None:
    code, _, err = outcome(*argv, "--x", "0", "--detect-anomaly")
    *_, source, carets, _ = err.splitlines()
    assert code == 1 and "Function 'PowBackward0' returned inf" in err
    assert source[carets.index("^") : carets.rindex("^") + 1] == piece


@pytest.mark.long
def test_tails_that_nothing_has_looked_at_are_said() -> None:
    many = ["hessian", "sum(softplus(x))", "--sparse", "--x"]
    assert "which may lose digits here (power series" in outcome(*many, "50*ones(401)")[2]
    assert outcome(*many, "ones(401)")[2] == ""
    assert "its digits are lost" in outcome(*many, "50*ones(3)")[2]


@pytest.mark.parametrize(
    ("text", "asked"), [("a**2/s", False), ("2/s", False), ("s/sin(s)", True), ("a*s/s**2", True)]
)
def test_a_quotient_asks_series_where_a_variable_moves_both(
    text: str, asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[str] = []

    def slopes(program: Any, tensors: Any, gradients: Any, *rest: Any) -> Any:
        found.append(program.source)
        return gradients, removable.Remarks()

    monkeypatch.setattr(removable, "_slopes", slopes)
    names = [name for name in ("a", "s") if name in text]
    assert outcome("grad", text, *(word for n in names for word in (f"--{n}", "1e-4")))[0] == 0
    assert bool(found) is asked

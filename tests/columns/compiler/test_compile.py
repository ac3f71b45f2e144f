"""`gradcli.compile`, and plans on the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import gradcli
from gradcli import language
from gradcli.cli import main
from gradcli.columns.compiler import executor
from gradcli.language.located_errors import LanguageError
from tests.sweep import sweep


def test_value_and_gradient() -> None:
    f = gradcli.compile("2*dot(x,x)")
    x = np.arange(4.0)
    assert f(x=x) == 28
    value, grads = f.value_and_grad(x=x)
    assert value == 28
    assert grads["x"].tolist() == [0, 4, 8, 12]
    assert f.value_and_grad(x)[1]["x"].tolist() == [0, 4, 8, 12]
    assert "straight line: 3 operations" in repr(f)  # dot, 2*dot, 4*x


def test_new_values_and_new_shapes() -> None:
    f = gradcli.compile("sum(a*x)")
    for n in (3, 5, 3):
        x = np.arange(float(n))
        value, grads = f.value_and_grad(a=np.float64(2), x=x)
        assert value == 2 * x.sum()
        assert grads["a"] == x.sum()
        assert grads["x"].tolist() == [2.0] * n
    assert len(f.plans) == 2


def test_tensors_in_tensors_out() -> None:
    f = gradcli.compile("(x**2).sum()")
    value, grads = f.value_and_grad(x=gradcli.tensor([1.0, 2.0]))
    assert isinstance(value, gradcli.Tensor)
    assert grads["x"].tolist() == [2.0, 4.0]
    assert f(x=gradcli.tensor([1.0, 2.0])).item() == 5


def test_python_function() -> None:
    @gradcli.compile
    def loss(x: Any, w: Any) -> Any:
        y = x
        for _ in range(3):
            y = (y @ w).tanh()
        return y.sum()

    g = np.random.default_rng(0)
    x, w = g.random((4, 4)), g.random((4, 4))
    _, grads = loss.value_and_grad(x=x, w=w)
    a, b = (gradcli.tensor(v, dtype=gradcli.float64, requires_grad=True) for v in (x, w))
    y = a
    for _ in range(3):
        y = (y @ b).tanh()
    y.sum().backward()
    assert np.array_equal(grads["x"], a.grad.numpy())
    assert np.array_equal(grads["w"], b.grad.numpy())


def test_operators_alone() -> None:
    code = (
        "import gradcli, numpy; f = gradcli.compile(lambda x: (x*x + x@x).sum());"
        "print(f.value_and_grad(x=numpy.ones(2))[1]['x'].tolist(), repr(f))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("[6.0, 6.0]")
    assert "no plan" not in done.stdout


def test_wrt() -> None:
    f = gradcli.compile("sum(a*x)", wrt=["x"])
    _, grads = f.value_and_grad(a=2.0, x=np.ones(3))
    assert list(grads) == ["x"]
    with pytest.raises(ValueError, match="no variable 'z'"):
        gradcli.compile("x", wrt=["z"])


def test_variables_without_influence() -> None:
    f = gradcli.compile("sum(x) + (a*0).detach()")
    _, grads = f.value_and_grad(a=np.float64(2), x=np.ones(3))
    assert grads["a"] is None
    assert grads["x"].tolist() == [1, 1, 1]


def test_integers_are_not_differentiated() -> None:
    f = gradcli.compile("sum(x[i])")
    value, grads = f.value_and_grad(x=np.arange(5.0), i=np.array([0, 3]))
    assert value == 3
    assert list(grads) == ["x"]
    assert grads["x"].tolist() == [1, 0, 0, 1, 0]


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("y = x if sum(x) > 0 else -x; sum(y)", "looks at the numbers"),
        ("sum(x*randn(3))", "random"),
        ("print(x); sum(x)", "prints"),
        ("sum(x[x > 0])", "shape"),
        ("sum(x*x.max().item())", "looks at the numbers"),
    ],
)
def test_what_cannot_be_planned_runs_on_the_tape(
    source: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    f = gradcli.compile(source)
    for sign in (1, -1):
        x = sign * np.array([1.0, -2.0, 3.0])
        gradcli.manual_seed(0)
        value, grads = f.value_and_grad(x=x)
        gradcli.manual_seed(0)
        t = gradcli.tensor(x, requires_grad=True)
        wanted = gradcli.evaluate(source, x=t)
        wanted.backward()
        assert value == wanted.item()
        assert np.array_equal(grads["x"], t.grad.numpy())
    assert reason in repr(f)


def test_results_are_nobody_elses() -> None:
    f = gradcli.compile("sum(x*y)")
    x, y = np.ones(3), np.full(3, 2.0)
    _, grads = f.value_and_grad(x=x, y=y)
    grads["x"][0] = 99
    grads["y"][0] = 98
    assert (x[0], y[0]) == (1, 2)
    g = gradcli.compile("x")
    g(x=x)[0] = 7
    assert x[0] == 1
    both = gradcli.compile("sum(a + b)").value_and_grad(a=np.ones(3), b=np.ones(3))[1]
    both["a"][0] = 5
    assert both["b"][0] == 1


def test_wrong_arguments() -> None:
    f = gradcli.compile("sum(x*y)")
    with pytest.raises(TypeError, match="needs a value for y"):
        f(x=1.0)
    with pytest.raises(TypeError, match="has no variable 'z'"):
        f(x=1.0, y=2.0, z=3.0)
    with pytest.raises(TypeError, match="two values"):
        f(1.0, 2.0, x=3.0)
    with pytest.raises(LanguageError, match="must match the size"):
        f(x=np.ones(3), y=np.ones(4))
    with pytest.raises(RuntimeError, match="only for scalar outputs"):
        gradcli.compile(lambda x: x * x).value_and_grad(x=np.ones(3))


REFUSED = [
    # (program, variables, the words, what the carets stand under): planned or not, the tape's words
    ("x*x + 0", {"x": [1.0, 2.0]}, "only for scalar outputs", "x*x + 0"),
    ("y = x if x[0] else 0; y*y", {"x": [1.0, 2.0]}, "only for scalar outputs", "y*y"),
    ("y = 2*x\n(y, x)", {"x": 1.0}, "the value is a tuple, not a tensor", "(y, x)"),
    ("2*cholesky(A).sum()", {"A": [[-1.0, 0], [0, 1]]}, "not positive-definite", "cholesky(A)"),
    ("x[i].sum()", {"x": [1.0], "i": np.array([3])}, "for dimension 0 with size 1", "x[i]"),
    ("sum(gather(x, 0, i))", {"x": [1.0], "i": np.array([-9])}, "index -9 is", "gather(x, 0, i)"),
    (
        "2*F.binary_cross_entropy(x, x)",
        {"x": 3.0},
        "between 0 and 1",
        "F.binary_cross_entropy(x, x)",
    ),
]


@sweep(("source", "given", "words", "piece"), REFUSED, parts=1)
def test_errors_show_their_place(source: str, given: Any, words: str, piece: str) -> None:
    with pytest.raises(LanguageError, match=words) as error:
        gradcli.compile(source).value_and_grad(**given)
    start, end = error.value.span or (0, 0)
    assert source[start:end] == piece


@pytest.mark.parametrize(
    "source", ["h = sinc(2); h = h if s else h", "s.detach() if s else s", "s.detach()"]
)
def test_no_variable_reaches_the_value(source: str) -> None:
    """None for the gradient, whether there is a plan or not."""
    f = gradcli.compile(source if "=" not in source else f"{source}; h")
    assert f.value_and_grad(s=1.0)[1] == {"s": None}


def test_large_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "_CACHE", 1 << 21)
    f = gradcli.compile("sum(exp(-x**2)*sin(3*x))", threads=2)
    text = f.plan(x=np.zeros(1_000_000))
    assert "region of 14 operations over 1000000 elements" in text
    assert "32 blocks" in text
    assert "x.grad: float64[1000000]" in text
    assert "memory: inputs 7.6 MiB, results 7.6 MiB" in text
    (plan,) = f.plans.values()
    assert isinstance(plan.executor, executor.Executor)
    assert len(plan.executor.regions) == 1


@pytest.mark.parametrize(
    ("cache", "elements"), [(1 << 30, 1 << 17), (2_000_000, 50_000), (1 << 10, 1 << 15)]
)
def test_blocks_stay_in_a_core(monkeypatch: pytest.MonkeyPatch, cache: int, elements: int) -> None:
    monkeypatch.setattr(executor, "_CACHE", cache)
    f = gradcli.compile("sum(exp(-x**2)*sin(3*x))")
    f.plan(x=np.zeros(1_000_000))
    (step,) = next(iter(f.plans.values())).executor.regions
    assert step.kernel.row_bytes() == 5 * 8  # three buffers, x and its gradient
    assert elements // 2 - 8 <= step.most <= elements


def test_blocks_are_as_near_as_halves_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "_CACHE", 1 << 10)
    f = gradcli.compile("sum(exp(-x**2)*sin(3*x))")
    f.plan(x=np.zeros(10_000_000))
    (step,) = next(iter(f.plans.values())).executor.regions
    assert step.most == 39064  # and not 19532: wanted are 32768


def test_what_is_filled_is_filled_with_the_rows_of_others() -> None:
    f = gradcli.compile("mean(x + b)")
    given = {"x": np.ones((1000, 1000)), "b": np.zeros(1000)}
    _, grads = f.value_and_grad(**given)
    (step,) = next(iter(f.plans.values())).executor.regions
    assert [o.shape for o in step.region.sinks] == [(), (1000, 1000)]
    np.testing.assert_array_equal(grads["x"], np.full((1000, 1000), 1e-6))
    np.testing.assert_allclose(grads["b"], 1e-3)
    lines = f.plan(**given)
    assert "rows_sum" in lines and "float64[1, 16]" in lines  # equal columns are not all added


def test_long_programs() -> None:
    f = gradcli.compile("y = x\nfor i in range(800): y = y*0.999 + x\ny.sum()")
    value, grads = f.value_and_grad(x=np.ones(2))
    t = gradcli.ones(2, dtype=gradcli.float64, requires_grad=True)
    wanted = gradcli.evaluate("y = x\nfor i in range(800): y = y*0.999 + x\ny.sum()", x=t)
    wanted.backward()
    assert value == wanted.item()
    assert np.array_equal(grads["x"], t.grad.numpy())


def test_an_error_in_a_block_is_raised() -> None:
    f = gradcli.compile("sum(x*x)", threads=2)
    x = np.ones(400_000)
    f.value_and_grad(x=x)
    (plan,) = f.plans.values()
    assert plan.executor is not None

    def broken(*args: Any) -> None:
        raise MemoryError("no memory")

    plan.executor.regions[0].run_blocks = broken
    with pytest.raises(MemoryError):
        f.value_and_grad(x=x)


# -- the command line ------------------------------------------------------------------------------
VALUE = "(arange(40000.) % 1000)/1000"  # enough for blocks


def _run(*args: str) -> Any:
    return CliRunner().invoke(main, list(args), prog_name="gradcli")


@pytest.mark.parametrize("command", ["eval", "grad"])
@pytest.mark.parametrize(
    "source", ["sum(exp(-x**2)*sin(3*x))", "mean(x)*2", "y = x*x; y.sum()/sum(x)"]
)
def test_same_output_with_and_without(command: str, source: str) -> None:
    with_plan = _run(command, source, "--x", VALUE, "--json")
    without = _run(command, source, "--x", VALUE, "--json", "--no-plan")
    assert with_plan.exit_code == 0, with_plan.stderr
    assert with_plan.stdout == without.stdout


def test_plan_is_printed() -> None:
    done = _run("grad", "sum(x*x)", "--x", "1,2", "--plan")
    assert done.stdout.splitlines()[0].startswith("straight line")
    assert done.stdout.splitlines()[-1] == "x.grad = [2, 4]"
    done = _run("grad", "sum(x*x)", "--x", VALUE, "--plan", "--json")
    assert any("region" in line for line in json.loads(done.stdout)["plan"])
    done = _run("grad", "sum(x*x)", "--x", "1,2", "--plan", "--create-graph")
    assert done.stdout == "x.grad = [2, 4]\n"
    assert "no plan: what is asked for needs the graph" in done.stderr


def test_seed() -> None:
    done = _run("grad", "x*x", "--x", VALUE, "--seed", "ones", "--json")
    plain = _run("grad", "x*x", "--x", VALUE, "--seed", "ones", "--json", "--no-plan")
    assert done.exit_code == 0
    assert done.stdout == plain.stdout


@sweep(
    ("source", "words"),
    [
        ("x*x", "only for scalar outputs"),
        ("cholesky(outer(x, -x)[1:3, 1:3]).sum()", "not positive-definite"),
        ("F.binary_cross_entropy(x - 1, x)", "all elements of input should be between 0 and 1"),
        ("sum(gather(x, 0, floor(x).to(int64) + 40000))", "index 40000 is out of bounds"),
    ],
    parts=1,
)
@pytest.mark.parametrize("way", ["--plan", "--no-plan"])
def test_errors_are_the_tapes(source: str, words: str, way: str) -> None:
    done = _run("grad", source, "--x", VALUE if "outer" not in source else "0:4", way)
    assert done.exit_code == 1
    assert words in done.stderr and "^^^" in done.stderr and "fault" not in done.stderr


# Matrices that lie in other orders than their shapes tell, of which a determinant's rule asks.
TURNED = [
    *("x.T*2", "exp(x.T)", "cumsum(x.T, 0)", "x.T.flip(0)", "roll(x.T, 1, 0)", "softmax(x.T, 0)"),
    *("linalg.qr(x)[0]", "linalg.inv(x)", "linalg.svd(x)[0]", "cat([x.T[:1], x.T[1:]])"),
    *("x[:1].expand(3, 3) + x", "x.expand(2, 3, 3).mT", "x[None].expand(2, 3, 3).sin()", "x + x.T"),
    *("x.T.clamp(-1, 1)", "renorm(x.T, 2, 0, 1.)", "x.T.masked_fill(x.T > 1, 0.5)", "F.gelu(x.T)"),
]


@sweep("matrix", TURNED, parts=1)
@pytest.mark.parametrize("function", ["linalg.det({})", "linalg.slogdet({})[1]"])
def test_a_determinants_gradient_follows_the_order_in_memory(function: str, matrix: str) -> None:
    source = f"sum({function.format(matrix)})"
    x = np.random.default_rng(0).standard_normal((3, 3))
    leaf = gradcli.tensor(x, requires_grad=True)
    language.run(language.parse(source), {"x": leaf}).value.backward()
    found = gradcli.compile(source).value_and_grad(x=leaf.detach())[1]["x"]
    np.testing.assert_allclose(np.asarray(found), leaf.grad.numpy(), rtol=1e-9, atol=1e-12)


MATRICES = [
    "sum(linalg.inv(x))",
    "sum(linalg.solve(x, x[:, 0]))",
    "sum(linalg.cholesky(x.T@x))",
    "det(x)",
    "linalg.slogdet(x)[1]",
    "logdet(x.T@x)",
]


@sweep("source", MATRICES, parts=1)
def test_what_only_numbers_tell_of_a_matrix_is_told_by_a_plan(source: str) -> None:
    compiled = gradcli.compile(source)
    regular = np.random.default_rng(0).standard_normal((4, 4))
    for x in (regular, regular * np.nan, np.zeros((4, 4))):
        leaf = gradcli.tensor(x, requires_grad=True)
        try:
            value = language.run(gradcli.parse(source), {"x": leaf}).value
            value.backward()
        except (RuntimeError, language.LanguageError) as error:
            with pytest.raises(type(error)) as refused:
                compiled.value_and_grad(x=x)
            assert str(refused.value) == str(error)
            continue
        found, grads = compiled.value_and_grad(x=x)
        np.testing.assert_array_equal(found, value.detach().numpy())
        np.testing.assert_array_equal(grads["x"], leaf.grad.numpy())
    assert "tape" not in str(compiled)


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (gradcli.func.grad(lambda x: (x**3).sum()), [0.0, 3.0, 12.0]),
        (gradcli.func.vmap(gradcli.func.grad(lambda x: x**2)), [0.0, 2.0, 4.0]),
        (gradcli.func.jacrev(lambda x: x * x.sum()), [[3, 0, 0], [1, 4, 1], [2, 2, 5]]),
        (lambda x, /: x * 2, [0.0, 2.0, 4.0]),
    ],
    ids=["grad", "vmap", "jacrev", "by position only"],
)
def test_functions_that_take_arguments_by_position(function: Any, wanted: Any) -> None:
    compiled = gradcli.compile(function)
    np.testing.assert_allclose(compiled(np.arange(3.0)), wanted)
    np.testing.assert_allclose(compiled(x=np.arange(3.0)), wanted)


@pytest.mark.parametrize("x", [[1, 2, 3], np.arange(1, 4), [1.0, 2.0, 3.0]])
def test_integers_are_floats_where_there_are_gradients(x: Any) -> None:
    for function, dtype in (("sum(x**2)", np.float32), (lambda x: (x**2).sum(), np.float64)):
        compiled = gradcli.compile(function)
        for _ in range(3):  # the first call, and those that find their plan
            value, grads = compiled.value_and_grad(x=x)
            assert value == 14 and grads["x"].tolist() == [2, 4, 6]
            assert grads["x"].dtype == dtype  # as gradcli.grad's of the same


def test_integers_that_can_only_be_indices_stay_so() -> None:
    compiled = gradcli.compile("sum(x[i]**2)")
    for _ in range(3):
        value, grads = compiled.value_and_grad(x=np.array([1.0, 2.0, 3.0]), i=np.array([0, 2]))
        assert value == 10 and list(grads) == ["x"] and grads["x"].tolist() == [2, 0, 6]


def test_without_anything_to_differentiate_by_there_is_an_error() -> None:
    with pytest.raises(gradcli.LanguageError, match="nothing to differentiate") as caught:
        gradcli.compile("sum(x**2)").value_and_grad(x=np.array([True]))
    assert caught.value.hint == "x has dtype bool: pass x.astype(float)"


def test_the_gradient_alone_is_what_scipys_methods_call() -> None:
    from scipy.optimize import minimize

    f = gradcli.compile(lambda x: ((x - 1) ** 4 + x**2).sum())
    assert minimize(f, np.zeros(3), jac=f.grad).x == pytest.approx([0.41024546] * 3, rel=1e-4)
    assert gradcli.compile("a*x").grad(a=2.0, x=3.0) == {"a": 3.0, "x": 2.0}
    assert gradcli.compile("x*0 + 0*sum(y)", wrt="y").grad(x=1.0, y=np.ones(2)).tolist() == [0, 0]
    with pytest.raises(AttributeError, match="value_and_grad"):
        _ = f.gradient


@pytest.mark.parametrize(
    "product",
    [lambda a, x: a @ x, lambda a, x: x.T @ a, np.matmul, lambda a, x: np.einsum("ij,jk", a, x)],
)
def test_a_matrix_of_numpys_from_outside_is_a_constant(product: Any) -> None:
    matrix, point = np.arange(9.0).reshape(3, 3), np.arange(6.0).reshape(3, 2)
    compiled = gradcli.compile(lambda x: (product(matrix, x) ** 2).sum())
    leaf = gradcli.tensor(point, requires_grad=True)
    (product(matrix, leaf) ** 2).sum().backward()
    _, grads = compiled.value_and_grad(point)
    assert "straight line" in repr(compiled)
    assert np.array_equal(grads["x"], leaf.grad.numpy())

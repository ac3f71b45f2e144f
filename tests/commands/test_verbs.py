"""The commands as functions of Python: the same answers, in tensors, and errors that speak Python."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import gradcli
from gradcli.cli import main
from gradcli.language.located_errors import LanguageError
from tests.sweep import sweep

ANSWERS: list[tuple[str, str, dict[str, Any], Any]] = [
    ("grad", "x**2", {"x": 3}, 6),
    ("grad", "2*dot(x,x)", {"x": [0, 1, 2, 3]}, [0, 4, 8, 12]),
    ("grad", "sum(a*x)", {"a": 3, "x": [1, 2]}, {"a": 3, "x": [3, 3]}),
    ("grad", "sum(a*x)", {"a": 3, "x": [1, 2], "wrt": "a"}, 3),
    ("grad", "sum(a*x)", {"a": 3, "x": [1, 2], "wrt": ["a"]}, {"a": 3}),
    ("grad", "x**3", {"x": [1, 2], "seed": [1, 10]}, [3, 120]),
    ("grad", "x**3", {"x": [1, 2], "seed": [1, 1], "order": 2}, [6, 12]),
    ("grad", "f(x)", {"x": 2, "f": lambda x: x * x}, 4),
    ("diff", "sin(x)*y", {"wrt": "x"}, "cos(x)*y"),
    ("diff", "sin(x)*y", {}, {"x": "cos(x)*y", "y": "sin(x)"}),
    ("diff", "x**3", {"order": 2}, "6*x"),
    ("diff", "sum(x*x)", {"shapes": {"x": (3,)}}, "2*x"),
    ("diff", "x**3", {"form": "latex"}, "3 x^{2}"),
    ("jacobian", "x*x", {"x": [1, 2]}, [[2, 0], [0, 4]]),
    ("jacobian", "x*x", {"x": [1, 2], "mode": "reverse"}, [[2, 0], [0, 4]]),
    ("hessian", "sum(x**3)", {"x": [1, 2]}, [[6, 0], [0, 12]]),
    ("hessian", "x*y", {"x": 1, "y": 2}, {"x": {"x": 0, "y": 1}, "y": {"x": 1, "y": 0}}),
]


def plain(found: Any) -> Any:
    """Tensors as lists, within dicts too."""
    if isinstance(found, dict):
        return {name: plain(item) for name, item in found.items()}
    return found if isinstance(found, str) else found.tolist()


@sweep(("verb", "source", "given", "answer"), ANSWERS, parts=1)
def test_answers(verb: str, source: str, given: dict[str, Any], answer: Any) -> None:
    assert plain(getattr(gradcli, verb)(source, **given)) == answer


def test_an_option_s_name_is_bound_by_the_mapping() -> None:
    assert gradcli.grad("seed*x", {"seed": 3}, x=2, wrt="x").item() == 3


def test_no_tensor_of_the_caller_s_changes() -> None:
    x, values = gradcli.tensor([1.0, 2.0], requires_grad=True), np.array([1.0, 2.0])
    assert plain(gradcli.grad("sum(x*a)", x=x, a=values)) == {"a": [1, 2], "x": [1, 2]}
    assert x.grad is None
    gradcli.grad("a.mul_(2); sum(x*a)", x=x, a=values, wrt="x")
    assert values.tolist() == [1, 2]


def test_texts_are_proved_in_the_dtype_of_the_values() -> None:
    """Their own numbers, as sqrt(2) and ones(3, 2), are no floats beside doubles."""
    rng = np.random.default_rng(0)
    values = {n: gradcli.tensor(rng.standard_normal((3, 2))) for n in "QKV"}
    source = "sum((softmax(Q@K.T/K.shape[1]**0.5, -1)@V)**2)"
    assert "sqrt(Q.shape[1])" in gradcli.diff(source, values, wrt="Q")
    assert gradcli.get_default_dtype() is gradcli.float32


def test_diff_of_a_tensor_is_torch_s() -> None:
    assert gradcli.diff(gradcli.tensor([1, 4, 9])).tolist() == [3, 5]
    assert gradcli.diff(input=gradcli.tensor([1, 4, 9]), n=2).tolist() == [2]
    with pytest.raises(
        TypeError, match=r"diff\(\): argument 'input' \(position 1\) must be Tensor"
    ):
        gradcli.diff(3)


def test_check() -> None:
    right = gradcli.check("sum(sin(x))", x=[1, 2], second_order=True)
    assert right and right.second["x"].ok
    assert repr(right).splitlines()[0].startswith("ok: gradient by x (max error")
    wrong = gradcli.check("x.detach()*x", x=3)
    assert not wrong
    assert repr(wrong).startswith("wrong gradient: x: analytical 3, numerical 6")
    assert gradcli.get_default_dtype() is gradcli.float32


def test_graph() -> None:
    found = gradcli.graph("a*x + b", a=2, x=3, b=1)
    command = CliRunner().invoke(main, ["graph", "a*x + b", "--a", "2", "--x", "3", "--b", "1"])
    assert str(found) == command.stdout.rstrip("\n")


@pytest.mark.parametrize("source", ["sum(exp(x)*a)", "prod(x)/a"])
def test_a_verb_gives_what_its_command_prints(source: str) -> None:
    given = {"x": [1.0, 2.0], "a": 0.5}
    words = [source, "--x", "1,2", "--a", "0.5", "--json"]
    for verb in ("grad", "jacobian", "hessian"):
        said = json.loads(CliRunner().invoke(main, [verb, *words]).stdout)["wrt"]
        found = plain(getattr(gradcli, verb)(source, **given))
        for n, one in ((n, by[verb]) for n, by in said.items()):
            for m, block in one.items() if verb == "hessian" else [(None, one)]:
                np.testing.assert_allclose(found[n] if m is None else found[n][m], block, rtol=1e-6)


ERRORS = [
    ("grad", "sinn(x)", {"x": 1}, "name 'sinn' is not defined", "did you mean `sin` or `sign`?"),
    (
        "grad",
        "x*y",
        {"x": 1},
        "name 'y' is not defined",
        "give it a value: grad(source, NAME=VALUE)",
    ),
    ("check", "x*y", {"x": 1}, "name 'y' is not defined", "give it a value: check(source"),
    ("grad", "x*2", {"x": 1, "ordre": 2}, "ordre is not a variable of 'x*2' (variables: x)", ""),
    ("grad", "x*2", {"x": 1, "wrt": "y"}, "y is not a variable of 'x*2' (variables: x)", ""),
    ("grad", "x*2", {"x": [1, 2]}, "grad can be implicitly created only for scalar", "pass seed="),
    ("grad", "x.detach()", {"x": 1}, "element 0 of tensors does not require grad", "detached"),
    ("grad", "3", {}, "nothing to differentiate", "it has no variables"),
    ("grad", "x.shape", {"x": 1}, "the value is a Size, not a tensor", ""),
    ("grad", "x", {"x": gradcli.tensor(1), "wrt": "x"}, "Only Tensors of floating point", "int64"),
    ("hessian", "x*2", {"x": [1, 2]}, "the Hessian is that of a scalar", "see jacobian"),
    ("diff", "x +", {}, "the text ends where a value is missing", ""),
    ("check", "log(x)", {"x": -1}, "the value is nan there", ""),
    ("graph", "import os; x", {"x": 1}, "No module named 'os'", "pass it as a variable: graph("),
]


@sweep(("verb", "source", "given", "words", "hint"), ERRORS, parts=1)
def test_errors_speak_python(
    verb: str, source: str, given: dict[str, Any], words: str, hint: str
) -> None:
    with pytest.raises(LanguageError) as caught:
        getattr(gradcli, verb)(source, **given)
    assert caught.value.message.startswith(words)
    assert hint in (caught.value.hint or "")
    assert "--" not in str(caught.value)


def test_a_source_is_a_text() -> None:
    with pytest.raises(TypeError, match="the source must be a str, not Tensor"):
        gradcli.grad(gradcli.tensor(1.0))
    with pytest.raises(TypeError, match=r"values are given by name: x=3"):
        gradcli.grad("x**2", 3)
    with pytest.raises(TypeError, match=r"must be a str, not function; grad, .* take functions"):
        gradcli.taylor(plain)
    rows = gradcli.jacobian("[x*y, x]", x=1.0, y=2.0)
    assert [rows[name].tolist() for name in "xy"] == [[2.0, 1.0], [1.0, 0.0]]
    with pytest.raises(TypeError, match="the source must be a str, not int"):
        gradcli.check(1)


PAGE = """
import gradcli

def test_mismatch(assert_gradients):
    assert_gradients("a*sin(w*t)", expected={"t": "a*cos(w*t)"}, a=2.0, w=3.0, t=0.1)

def test_typo(assert_gradients):
    assert_gradients("sinn(x)", x=1.0)

def test_refused(assert_gradients):
    assert_gradients("x + y", x=[1.0, 2], y=[1.0, 2, 3])

def test_verb():
    gradcli.grad("x*2", x=[1.0, 2])

def test_compiled():
    gradcli.compile(lambda x: x.sum()*float(x[0])).grad([1.0, 2])

def test_function():
    gradcli.grad(lambda x: x*x)([1.0, 2])
"""


@pytest.mark.long
def test_pytest_shows_the_test_and_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "test_page.py").write_text(PAGE)
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    argv += ["-p", "no:benchmark", "-p", "no:hypothesispytest"]
    found = subprocess.run([*argv, str(tmp_path)], capture_output=True, text=True, cwd=tmp_path)
    parts = found.stdout.split("\n____")[1:]
    assert len(parts) == 6, found.stdout
    for part in parts:
        shown = [line for line in part.splitlines()[1:] if line.strip()]
        shown = shown[: next(i for i, line in enumerate(shown) if line.startswith("test_page.py:"))]
        assert len(shown) <= 10, part
        assert "site-packages" not in part and "gradcli/" not in part


@sweep(("name", "remedy"), [
        ("eval", "gradcli.evaluate(source, x=1)"),
        ("lambdify", "gradcli.compile(source)"),
        ("grad_and_value", "gradcli.value_and_grad(f)"),
        ("solve", "gradcli.root(source, x=1)"),
        ("derivative", "gradcli.diff(source)"),
])  # fmt: skip
def test_what_has_another_name_here_is_named(name: str, remedy: str) -> None:
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'; {re.escape(remedy)}"):
        getattr(gradcli, name)


def test_a_call_without_an_expression_says_where_it_stands() -> None:
    with pytest.raises(TypeError, match=r'comes first: gradcli\.plot\("x\*\*2", …\)'):
        gradcli.plot(x=(0, 6))


# What is called with a variable too many.
TOO_MANY: dict[str, Any] = {
    "evaluate": lambda: gradcli.evaluate("x**2", x=3, y=4),
    "grad": lambda: gradcli.grad("x**2", x=3, y=4),
    "diff": lambda: gradcli.diff("x**2", y=4),
    "simplify": lambda: gradcli.simplify("x**2", y=4),
    "taylor": lambda: gradcli.taylor("x**2", y=4),
    "jacobian": lambda: gradcli.jacobian("x**2", x=3, y=4),
    "hessian": lambda: gradcli.hessian("x**2", x=3, y=4),
    "check": lambda: gradcli.check("x**2", x=3, y=4),
    "graph": lambda: gradcli.graph("x**2", x=3, y=4),
    "map": lambda: gradcli.map("x**2", {"x": [1, 2]}, y=4),
    "jvp": lambda: gradcli.jvp("x**2", x=3, y=4, vector=1),
    "plot": lambda: gradcli.plot("x**2", x=(0, 1), y=4),
    "minimize": lambda: gradcli.minimize("x**2", x=3, y=4),
    "root": lambda: gradcli.root("x**2 - 2", x=3, y=4),
}


@pytest.mark.parametrize("verb", TOO_MANY)
def test_a_value_that_is_no_variable_is_refused(verb: str) -> None:
    with pytest.raises(gradcli.LanguageError, match=r"^y is not a variable of 'x.*'"):
        TOO_MANY[verb]()


def test_values_of_evaluate_may_be_a_mapping() -> None:
    assert gradcli.evaluate("source*x", {"source": 3}, x=2).item() == 6
    with pytest.raises(TypeError, match=r"values are given by name: x=3"):
        gradcli.evaluate("x**2", 3)


def test_all_errors_are_of_one_kind() -> None:
    named = ("LanguageError", "TableError", "EngineError", "GradientMismatch", "GradientTrouble")
    for name in named:
        assert issubclass(getattr(gradcli, name), gradcli.GradcliError)
    assert gradcli.autograd.GradcheckError.__bases__ == (RuntimeError,)  # PyTorch's
    for source in ("x +", "y", "1/0", "x.sum(3)"):
        with pytest.raises(gradcli.GradcliError):
            gradcli.grad(source, x=3)


X5 = np.arange(1.0, 6.0)


@pytest.mark.parametrize(
    ("verb", "source"),
    [
        ("jacobian", "x[1:]*x[:-1]"),
        ("jacobian", "x**2"),
        ("jacobian", "sum(x)"),
        ("hessian", "sum(x[1:]**2*x[:-1])"),
        ("hessian", "sum(x)"),
    ],
)
def test_sparse_matrices(verb: str, source: str) -> None:
    """The same numbers without the zeros, which print and are SciPy's where that is wanted."""
    pytest.importorskip("scipy")
    whole = getattr(gradcli, verb)(source, x=X5).numpy()
    sparse = getattr(gradcli, verb)(source, x=X5, sparse=True)
    assert sparse.shape == whole.shape
    for made in (sparse.dense(), np.asarray(sparse), sparse.to_scipy().toarray()):
        np.testing.assert_array_equal(made, whole)
    assert repr(sparse).startswith(f"Sparse of shape {whole.shape}, {np.count_nonzero(whole)} elem")


def test_a_sparse_matrix_of_several_variables() -> None:
    found = gradcli.hessian("sum(x**2)*y", x=X5, y=2.0, sparse=True)
    np.testing.assert_array_equal(found["x"]["y"].dense(), 2 * X5)
    assert repr(gradcli.jacobian("x", x=np.ones(9), sparse=True)).endswith("  [7, 7]  1\n  …")
    with pytest.raises(ValueError, match="SciPy holds matrices and vectors"):
        gradcli.jacobian("outer(x, x)", x=X5, sparse=True).to_scipy()


def test_statements_without_effect_are_warned_of_where_the_call_stands() -> None:
    for verb in (gradcli.evaluate, gradcli.grad):
        with pytest.warns(UserWarning, match=r"`x\*\*2` has no effect") as found:
            verb("x**2; x**3", x=2.0)
        assert found[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gradcli.root("x + y == 3; x*y == 2", x=0.0, y=5.0)
        gradcli.evaluate("y = x**2; y + 1", x=2.0)


def test_the_format_has_the_command_lines_name_too() -> None:
    assert gradcli.diff("a*x**2", wrt="x", format="latex") == gradcli.diff(
        "a*x**2", wrt="x", form="latex"
    )
    assert "def value_and_gradient(format_, x)" in gradcli.diff("format*x", form="python")
    with pytest.raises(TypeError, match="form and format are two names of one option"):
        gradcli.diff("x**2", form="numpy", format="c")


def test_a_notebook_shows_the_user_s_frames_alone() -> None:
    """IPython calls `_render_traceback_`."""
    with pytest.raises(LanguageError) as caught:
        gradcli.grad("x**2 +", x=3)
    lines = caught.value._render_traceback_()
    assert 'gradcli.grad("x**2 +", x=3)' in lines[1]
    assert lines[-3].startswith("gradcli.LanguageError: the text ends where a value is missing")
    assert not any("/gradcli/commands/" in line and "/tests/" not in line for line in lines)

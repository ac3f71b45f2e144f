"""`check_point`, kinks, blame, hand-derived gradients and `assert_gradients`."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import language
from gradcli.formulas.ask.formula_check import compare_formula
from gradcli.transforms.assertions import GradientMismatch, assert_gradients
from gradcli.transforms.fault_search import blame
from gradcli.transforms.finite_differences import check_point, gradient_function, is_analytic
from tests.engine.registry import samples
from tests.sweep import sweep
from tests.transforms.test_forward_reverse import case, run

pytest_plugins = ["pytester"]


def function(source: str) -> Any:
    program = language.parse(source)
    return lambda **tensors: language.run(program, tensors).value


class WrongSquare(gradcli.autograd.Function):
    """The square, with a gradient that lacks its factor."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * x


def test_of_a_long_array_the_worst_elements_are_told() -> None:
    x = np.linspace(0, 1, 5000)
    slope = 3 * x**2
    slope[77] *= 2
    slope[4000] = 7
    with pytest.raises(GradientMismatch) as caught:
        assert_gradients("sum(x**3)", expected=slope, x=x)
    told = str(caught.value).splitlines()
    assert told[1] == "  2 of 5,000 elements differ; those that do most:"
    assert told[2].startswith("  x[4000]  your gradient 7  exact gradient 1.92")
    assert len(told) == 4 and told[3].startswith("  x[77]")


def test_right_gradients() -> None:
    found = check_point(
        function("sin(x)*exp(y)"), {"x": np.ones(3), "y": np.array(0.5)}, ["x", "y"]
    )
    assert all(c.ok and c.error < 1e-9 for c in found.values())


def test_the_complex_step_is_exact() -> None:
    found = check_point(
        function("sum(sin(x)*x**2)"), {"x": np.arange(1, 4.0)}, ["x"], analytic=True
    )
    assert found["x"].method == "complex step"
    assert found["x"].error < 1e-15


@sweep(
    "source",
    [
        *("sin(x)*exp(x)", "log(1 + x)/x**2", "sqrt(x) - 1/x", "sigmoid(2 - x)", "cumsum(x, 0)"),
        *("cat([x, x[:2]])", "outer(x, x) @ x", "addmv(x, outer(x, x), x)", "flip(x, [0])"),
        *("stack([x, x]).T.reshape(-1)[1:]", "F.pad(x[None], (1, 1), mode='replicate')"),
        *(
            "F.pad(x.reshape(1,1,3,1), (0,0,2,1), mode='reflect')",
            "roll(x, 1)",
            "tril(outer(x, x))",
        ),
        *("F.interpolate(x.reshape(1,1,3,1,1), scale_factor=2)", "torch.unbind(x)[1]"),
        *("F.interpolate(x.reshape(1,1,3), scale_factor=2, mode='linear')", "dot(x, x)"),
        *("F.interpolate(x.reshape(1,1,3,1,1), size=(2,3,2), mode='trilinear')", "mean(x)"),
    ],
    parts=1,
)
def test_analytic_programs_get_a_complex_step(source: str) -> None:
    x = np.array([0.5, 1.5, 2.5])
    assert is_analytic(language.parse(source), {"x": x})
    found = check_point(function(source), {"x": x}, ["x"], analytic=True)["x"]
    assert found.ok and found.error < 1e-13
    assert found.method == "complex step"


@sweep(
    "source",
    [
        *("abs(x)", "relu(x)", "x.sort().values", "amax(x)", "where(x > 1, x, 2*x)", "x.float()"),
        *(
            "x if x[0] > 1 else 2*x",
            "linalg.vecdot(x, x)",
            "x.conj()*x",
            "cov(x)",
            "x.mH",
            "sgn(x)",
        ),
        *("fft.rfft(x).real", "3", "norm(x)", "angle(x)", "real(x*1j)"),
    ],
    parts=1,
)
def test_other_programs_get_differences(source: str) -> None:
    assert not is_analytic(language.parse(source), {"x": np.array([0.5, 1.5, 2.5])})


def test_no_complex_step_to_a_complex_value() -> None:
    found = check_point(function("x*1j"), {"x": np.array([1.0, 2.0])}, ["x"], analytic=True)["x"]
    assert found.ok and found.method == "differences"


@pytest.mark.parametrize("step", [6, pytest.param(1, marks=pytest.mark.long)])
def test_a_complex_step_is_right_wherever_it_is_taken(step: int) -> None:
    """Whatever the rows that a sample is made of call analytic."""
    taken = 0
    for text in samples.differentiable()[::step]:
        program, tensors, _ = case(text)
        arrays = {n: t.array for n, t in tensors.items()}
        if is_analytic(program, arrays):
            taken += 1
            wanted = list(samples.floating(tensors))
            found = check_point(
                lambda p=program, **given: run(p, given), arrays, wanted, analytic=True
            )
            assert all(checked.ok for checked in found.values()), text
    assert taken > 300 // step


def test_complex_variables() -> None:
    found = check_point(function("sum(abs(z)**2)"), {"z": np.array([1 + 2j, -1j])}, ["z"])
    assert found["z"].ok


def test_wrong_gradients_show_both_numbers() -> None:
    found = check_point(lambda x: WrongSquare.apply(x).sum(), {"x": np.array([1.0, 3.0])}, ["x"])
    assert not found["x"].ok
    np.testing.assert_allclose(found["x"].analytical, [1, 3])
    np.testing.assert_allclose(found["x"].numerical, [2, 6], rtol=1e-9)
    assert found["x"].error == pytest.approx(0.5)


NEARLY = np.array([[1, 1], [1, 1 + 1e-5]])
NEARER = np.array([[1, 1], [1, 1 + 1e-7]])


@sweep(
    ("source", "x"),
    [
        ("linalg.inv(x).sum()", NEARLY),
        ("linalg.inv(x).sum()", NEARER),
        ("linalg.pinv(x).sum()", NEARER),
        ("linalg.solve(x, ones(2)*2).sum()", NEARER),
        ("linalg.cond(x)", NEARER),
        ("norm(x)", np.array([1e-160, 2e-160])),
        ("abs(x)**1.1", np.array(0.0)),
        ("relu(x)**1.1", np.array(0.0)),
    ],
    parts=1,
)
def test_right_where_values_are_not_as_exact_as_they_are_large(source: str, x: Any) -> None:
    """No gradient is called wrong there, and no point a kink."""
    found = check_point(function(source), {"x": x}, ["x"])["x"]
    assert found.ok and found.kinks == []


@pytest.mark.parametrize(
    ("source", "x"),
    [
        ("linalg.inv(x.detach()).sum()*x.sum()", NEARLY),
        ("2*linalg.inv(x).sum() - linalg.inv(x.detach()).sum()", NEARLY),
        ("linalg.det(x.detach())*x.sum()", NEARER),
        ("norm(x) + norm(x.detach())", np.array([1e-150, 2e-150])),
        ("x*x.detach()", np.array([1e-3, 1e3])),
    ],
)
def test_wrong_there_too(source: str, x: Any) -> None:
    assert not check_point(function(source), {"x": x}, ["x"])["x"].ok


@pytest.mark.parametrize(
    ("source", "x", "right"),
    [
        ("x**1.5", 0.0, True),
        ("x**2.5 + x", 0.0, True),
        ("erf(x)**1.5", 0.0, True),
        ("(1 - x)**1.5", 1.0, True),
        ("2*x**1.5 + x - x.detach()", 0.0, False),
        ("x*x.detach()**0.5 + 1e-3*x.detach()", 0.0, False),
        ("(1 - x)**1.5 + 1e-4*x.detach()", 1.0, False),
        ("sqrt(x)", 0.0, False),
        ("x*sqrt(x)", 0.0, False),
    ],
)
def test_the_edge_of_a_domain_is_looked_at_from_inside(source: str, x: float, right: bool) -> None:
    """A root's slope is no imaginary part of a step; a gradient of nan or inf agrees with nothing."""
    found = check_point(
        function(source), {"x": np.array(x)}, ["x"], analytic="detach" not in source
    )
    assert found["x"].ok is right and not found["x"].kinks


def test_a_kink_within_a_step_of_others() -> None:
    found = check_point(function("relu(x) + 1e6*x**2"), {"x": np.array(0.0)}, ["x"])["x"]
    assert found.ok and len(found.kinks) == 1


def test_a_kink_is_not_a_mistake() -> None:
    found = check_point(function("sum(abs(x))"), {"x": np.array([0.0, 2.0])}, ["x"])["x"]
    assert found.ok
    (kink,) = found.kinks
    assert kink.index == (0,)
    assert (kink.left, kink.right) == (pytest.approx(-1), pytest.approx(1))


def test_near_a_kink_is_smooth_enough() -> None:
    assert check_point(function("relu(x)"), {"x": np.array(1e-2)}, ["x"])["x"].ok


def test_second_order() -> None:
    gradients = gradient_function(function("sum(sin(x)*x)"), ["x"])
    assert check_point(gradients, {"x": np.arange(1, 4.0)}, ["x"])["x"].ok


def test_blames_the_operator() -> None:
    part = blame(lambda x: (WrongSquare.apply(x) * 2).sum(), {"x": np.array([1.0, 3.0])}, ["x"])
    assert part is not None and part.name == "WrongSquare"
    assert blame(function("sin(x)*x"), {"x": np.array(2.0)}, ["x"]) is None


def test_a_formula_against_the_gradient() -> None:
    program = language.parse("a*x**3")
    point = {"x": np.array(2.0), "a": np.array(3.0)}
    assert compare_formula(program, "3*a*x**2", point, "x").ok
    wrong = compare_formula(program, "3*x**2", point, "x")
    assert not wrong.ok
    assert wrong.derivative == "3*a*x**2"
    assert float(wrong.true) == 36


def test_a_formula_of_another_shape() -> None:
    point = {"x": np.ones(3)}
    with pytest.raises(language.located_errors.LanguageError, match=r"shape \(2,\)"):
        compare_formula(language.parse("sum(x**2)"), "2*x[:2]", point, "x")


# -- gradcli.testing ------------------------------------------------------------------------------
class Cube(gradcli.autograd.Function):
    """x**3 with a rule for forward mode, scaled by `wrong`."""

    wrong = 1.0

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_forward(x)
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x**2 * g

    @classmethod
    def jvp(cls, ctx: Any, tangent: Any) -> Any:
        (x,) = ctx.saved_tensors
        return cls.wrong * 3 * x**2 * tangent


class WrongForward(Cube):
    wrong = 1.5


def test_forward_mode_is_checked_where_asked() -> None:
    x = gradcli.tensor([0.5, 2.0], dtype=gradcli.float64, requires_grad=True)
    for function in (gradcli.sin, lambda x: x * x, Cube.apply):
        assert gradcli.autograd.gradcheck(function, (x,), check_forward_ad=True)
    assert gradcli.autograd.gradcheck(WrongForward.apply, (x,))
    with pytest.raises(gradcli.autograd.GradcheckError, match="with forward mode mismatch"):
        gradcli.autograd.gradcheck(WrongForward.apply, (x,), check_forward_ad=True)


def test_assert_gradients_by_differences() -> None:
    assert_gradients("sum((X@w - y)**2)", X=[[1, 2], [3, 4]], w=[0.5, -1], y=[1, 0])
    assert_gradients(lambda x: (x**3).sum(), x=np.ones(3), second_order=True)
    assert_gradients("x**2", x=3)


def test_assert_gradients_expected() -> None:
    assert_gradients("a*sin(w*t)", expected={"t": "a*w*cos(w*t)"}, a=2.0, w=3.0, t=0.1)
    assert_gradients("sum(x**2)", expected=[2.0, 4.0], x=[1.0, 2.0])
    assert_gradients("x*y", "y", wrt="x", x=1.5, y=2.5)


def test_assert_gradients_shows_both_arrays() -> None:
    with pytest.raises(GradientMismatch) as caught:
        assert_gradients("sum(x**2)", expected=[2.0, 5.0], x=[1.0, 2.0])
    message = str(caught.value)
    assert "your gradient by x is wrong at x[1]" in message
    assert "exact gradient: [2., 4.]" in message
    assert "your gradient : [2., 5.]" in message
    assert caught.value.name == "x"
    assert [caught.value.given[1], caught.value.right[1]] == [5.0, 4.0]


@pytest.mark.long
@pytest.mark.parametrize(
    ("function", "right"),
    [
        ("1e6*x[0]**2 + 1e-4*x[1]**2", [2e6, 2e-4]),
        (lambda x: 1e6 * x[0] ** 2 + 1e-4 * x[1] ** 2, [2e6, 2e-4]),
        (lambda x: np.dot([1e6, 1e-4], x**2), [2e6, 2e-4]),
        (lambda x: np.dot([1e6, 1e-4], np.exp(x)), [1e6 * np.e, 1e-4 * np.e]),
    ],
)
def test_a_small_element_beside_a_large_one_is_checked(function: Any, right: list[float]) -> None:
    """Each by the noise of its own differences, whatever the largest is."""
    assert_gradients(function, expected=right, x=[1.0, 1.0])
    for wrong in ([right[0], right[1] * 1.01], [right[0], -right[1]], [right[0], 0.0]):
        with pytest.raises(GradientMismatch, match=r"by x is wrong at x\[1\]"):
            assert_gradients(function, expected=wrong, x=[1.0, 1.0])


def test_an_element_that_differences_cannot_see_is_said_to_be_unchecked() -> None:
    def loss(x: Any) -> Any:
        return 1e13 * math.cos(x[0]) + 0.1 * math.sin(x[1])  # has no graph, whatever x is

    def slope(x: Any) -> Any:
        return np.array([-1e13 * np.sin(x[0]), 0.1 * np.cos(x[1])])

    with pytest.warns(UserWarning, match=r"^x\[1\]: 0.054 is lost in the rounding of"):
        assert_gradients(loss, expected=slope, x=[1e-3, 1.0])
    found = gradcli.check(loss, expected=slope, x=np.array([1e-3, 1.0]))
    assert found and "x[1]: 0.054 is lost" in repr(found)


def test_what_is_expected_has_two_names() -> None:
    """That of the command line too, unless it is a variable's."""
    for name in ("expected", "against"):
        assert gradcli.check("x**2", x=3, **{name: "2*x"}).ok
        assert not gradcli.check("x**2", x=3, **{name: "3*x"}).ok
        assert not gradcli.check(lambda x: x**2, x=np.array(3.0), **{name: np.array(7.0)}).ok
        with pytest.raises(GradientMismatch):
            assert_gradients("x**2", x=3, **{name: 7.0})
        assert gradcli.check(f"x*{name}", x=3, wrt="x", **{name: 2.0}).ok
    with pytest.raises(TypeError, match="expected and against are two names of one option"):
        gradcli.check("x**2", x=3, expected="2*x", against="2*x")


def test_assert_gradients_names_the_culprit() -> None:
    with pytest.raises(GradientMismatch, match="to blame  : WrongSquare"):
        assert_gradients(lambda x: WrongSquare.apply(x), x=2.0)


def test_assert_gradients_wants_its_variables() -> None:
    with pytest.raises(TypeError, match="no value for the variable 'y'"):
        assert_gradients("x", wrt="y", x=1.0)
    with pytest.raises(TypeError, match="of which variable"):
        assert_gradients("x*y", expected=1.0, x=1.0, y=2.0)


def test_the_fixture(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    # Installed or not: an installed gradcli would register its plugin a second time.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(
        """
        def test_right(assert_gradients):
            assert_gradients("sin(x)", expected="cos(x)", x=0.3)

        def test_wrong(assert_gradients):
            assert_gradients("sin(x)", expected="sin(x)", x=0.3)
        """
    )
    result = pytester.runpytest_inprocess("-p", "gradcli.pytest_plugin")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*gradient by x is wrong*"])


def test_the_fixture_goes_with_hypothesis(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which refuses a fixture that is made anew for every test, and not for every example."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(
        """
        from hypothesis import given, settings, strategies

        @settings(max_examples=5)
        @given(x=strategies.floats(0.5, 2))
        def test_square(assert_gradients, x):
            assert_gradients("x**2", x=x)
        """
    )
    result = pytester.runpytest_inprocess("-p", "gradcli.pytest_plugin", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1)


def test_the_plugin_is_registered() -> None:
    import tomllib

    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    module = project["entry-points"]["pytest11"]["gradcli"]
    assert importlib.util.find_spec(module) is not None
    assert sys.modules is not None


def test_the_worst_element_is_named() -> None:
    class Wrong(gradcli.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            found = 2 * x * g
            found[1, 2] *= 1.5
            return found

    x = gradcli.arange(6, dtype=gradcli.float64).reshape(2, 3).requires_grad_()
    with pytest.raises(RuntimeError, match="Jacobian mismatch for output 0") as caught:
        gradcli.autograd.gradcheck(Wrong.apply, (x,))
    (note,) = caught.value.__notes__
    assert note.startswith("worst: d output[1, 2] / d input[1, 2] is 15 by backward and 10")
    assert "\n1 of 36 elements differ" in note

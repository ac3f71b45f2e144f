"""Reference gradients inside a test suite: run with `pytest test_gradients.py`."""

import numpy as np

from gradcli.transforms.assertions import GradientMismatch


def softplus_slope(x):
    """Derived by hand, to be checked."""
    return 1 / (1 + np.exp(-x))


def test_a_gradient_derived_by_hand(assert_gradients):
    x = np.linspace(-3, 3, 7)
    assert_gradients("sum(log(1 + exp(x)))", expected=softplus_slope(x), x=x)


def test_against_an_expression(assert_gradients):
    wanted = {"a": "sin(w*t)", "t": "a*w*cos(w*t)"}
    assert_gradients("a*sin(w*t)", expected=wanted, a=2.0, w=3.0, t=0.1)


def test_a_whole_loss_against_differences(assert_gradients):
    assert_gradients("sum((X@w - y)**2)", X=[[1.0, 2.0], [3.0, 4.0]], w=[0.5, -1.0], y=[1.0, 0.0])


def test_a_wrong_gradient_is_found(assert_gradients):
    try:
        assert_gradients("sum(x**3)", expected="2*x**2", x=[1.0, 2.0])
    except GradientMismatch as mismatch:
        assert mismatch.name == "x"
    else:
        raise AssertionError("the mistake was not found")

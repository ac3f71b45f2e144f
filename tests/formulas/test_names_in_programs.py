"""Names that printed programs use themselves, as variables: the code runs, and gives what grad gives."""

from __future__ import annotations

import builtins
import keyword
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import GradcliError, language
from gradcli.engine.system import dtypes
from gradcli.formulas.derive.differentiate import differentiate
from gradcli.formulas.print import printed_programs
from gradcli.formulas.print.c_code import TAKEN
from gradcli.formulas.print.numpy_helpers import HELPERS, SCALAR
from gradcli.formulas.print.python_code import modules, parameters
from tests.sweep import some

FORMS = ("python", "numpy", "torch", "jax", "c")
OWN = (
    *"value gradient value_and_gradient derivative hessian dtype v1 v2 v3 work n m i j x_grad np".split(),
    *"math torch F jax jnp special relu max min abs float slice sech2 silu x_ expit lax nn".split(),
)
HELPING = [w.rpartition(".")[2] for w in (*HELPERS, *SCALAR)]
OF_PYTHON = [n for n in (*dir(builtins), *keyword.kwlist) if n[0] != "_" and n[:1].islower()]
# Its value is needed in the derivative, parts of it repeat, and functions of Python's and of ours are called.
SCALARS = "{0}*x**2*F.relu(y) + exp({0}*x)*sin(exp({0}*x)) + F.silu(y)*tanh({0})"
ARRAYS = "sum(exp({0}*x)*sin(exp({0}*x))) + sum(ones(3)*x)*{0} + sum(F.silu(x))*{0}**2"
ELEMENTS = np.array([0.3, -0.2, 0.5])


def _ran(code: str, form: str, arrays: dict[str, Any]) -> tuple[Any, Any]:
    """What a caller gets, by his own Python where he has what the code imports."""
    if form in ("jax", "c"):
        with dtypes.as_default(dtypes.float64):  # of numbers without a dtype, as in a proof
            return printed_programs.run(code, form, arrays.values())
    space: dict[str, Any] = modules(form, code) if form == "torch" else {}
    lines = [line for line in code.splitlines() if form != "torch" or line[:7] != "import "]
    exec("\n".join(lines), space)
    made = _tensors(arrays).values() if form == "torch" else arrays.values()
    return space["value_and_gradient"](*made)


def _tensors(arrays: dict[str, Any]) -> dict[str, Any]:
    return {n: gradcli.tensor(v, dtype=gradcli.float64) for n, v in arrays.items()}


def _agrees(name: str, form: str, text: str, arrays: dict[str, Any]) -> bool:
    try:
        found = differentiate(language.parse(text.format(name)), arrays)
    except GradcliError:  # no name of a variable
        return False
    if form == "python" and any(map(np.ndim, arrays.values())):
        form = "numpy"
    value, grads = _ran(printed_programs.write(found, form), form, arrays)
    values = _tensors(arrays)
    right = gradcli.evaluate(text.format(name), values).item()
    np.testing.assert_allclose(np.asarray(value), right, 1e-12)
    for n, given in zip(arrays, grads, strict=True):
        right = gradcli.grad(text.format(name), values, wrt=n).numpy()
        np.testing.assert_allclose(np.asarray(given), right, 1e-10, err_msg=f"{name} {form} by {n}")
    return True


@pytest.mark.parametrize("form", FORMS)
def test_variables_of_names_that_the_program_uses(form: str) -> None:
    text = "exp(value*v1)*cos(exp(value*v1))*max**2*F.relu(x) + dtype*np*silu**2*{0}"
    names = ("value", "v1", "max", "x", "dtype", "np", "silu", "gradient")
    point = {n: 0.4 + k / 10 for k, n in enumerate(names)}
    assert _agrees("gradient", form, text, point)


@pytest.mark.long
@pytest.mark.parametrize("part", some(range(3), 3))
@pytest.mark.parametrize("form", FORMS)
def test_all_names(form: str, part: int) -> None:
    names = [*OWN, *(sorted(TAKEN) if form == "c" else [*OF_PYTHON, *HELPING])]
    ran = [
        _agrees(name, form, SCALARS, {name: 0.7, "x": 0.4, "y": 0.3})
        and (form == "python" or _agrees(name, form, ARRAYS, {name: 0.7, "x": ELEMENTS}))
        for name in list(dict.fromkeys(names))[part::3]
    ]
    assert sum(ran) > 30


@pytest.mark.parametrize("name", ["erf", "constant_0", "constant_4"])
def test_a_variable_of_the_name_of_a_constants_function(name: str) -> None:
    assert _agrees(name, "python", "tanh({0})*x*sqrt(3) + sqrt(2)*x", {name: 0.7, "x": 0.4})


def test_two_variables_never_get_one_name() -> None:
    assert parameters(["np", "np_", "max", "x"], ["max"]) == {
        **{"np": "np__", "np_": "np_", "max": "max_", "x": "x"},
    }


def test_results_in_c_have_names_of_their_own() -> None:
    arrays = {"x": np.ones(2), "x_": np.ones(2), "x_grad": np.ones(2), "v": np.float64(2)}
    found = differentiate(language.parse("sum(x*x_*x_grad)*v"), arrays)
    code = printed_programs.write(found, "c")
    _, grads = printed_programs.run(code, "c", arrays.values())
    assert [np.asarray(g).tolist() for g in grads] == [[2, 2]] * 3 + [2]

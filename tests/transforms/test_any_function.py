"""`assert_gradients` and `check` of functions of NumPy, PyTorch, JAX, gradcli and Python's numbers."""

from __future__ import annotations

import importlib
import math
import subprocess
import sys
from typing import Any, NamedTuple

import numpy as np
import pytest

import gradcli
from gradcli.transforms.assertions import GradientMismatch, assert_gradients

NAMESPACES = {"NumPy": "numpy", "gradcli": "gradcli", "PyTorch": "torch", "JAX": "jax.numpy"}
LIBRARIES = [
    "NumPy",
    "gradcli",
    pytest.param("PyTorch", marks=[pytest.mark.needs("torch"), pytest.mark.long]),
    pytest.param("JAX", marks=[pytest.mark.needs("jax"), pytest.mark.long]),
]
OTHERS = LIBRARIES[2:]
V = np.array([0.5, -1.0, 2.0])


def arrays(library: str, value: Any) -> Any:
    """The value in the library's own arrays of double precision, where it has them."""
    if isinstance(value, dict):
        return {n: arrays(library, v) for n, v in value.items()}
    if library == "JAX":
        import jax

        return jax.numpy.asarray(value)  # in single precision, as it is by default
    if library == "NumPy":
        return value
    return importlib.import_module(NAMESPACES[library]).tensor(value)


# What is differentiated, in any library xp: (the point, the function, its gradient).
def _net(xp: Any, params: Any, v: Any) -> Any:
    return ((params["W"] @ v + params["b"]) ** 2).sum()


def _net_slopes(params: Any) -> Any:
    residual = 2 * (params["W"] @ V + params["b"])
    return {"W": np.outer(residual, V), "b": residual}


KINDS: dict[str, tuple[Any, Any, Any]] = {
    "scalar": (
        np.array(0.7),
        lambda xp, x: xp.sin(x) * x,
        lambda x: np.cos(x) * x + np.sin(x),
    ),
    "vector": (
        np.array([0.3, -1.2, 2.0]),
        lambda xp, x: (xp.exp(x) * x).sum(),
        lambda x: np.exp(x) * (1 + x),
    ),
    "matrix": (
        np.array([[0.3, -1.2, 2.0], [1.0, 0.25, -0.5]]),
        lambda xp, x: (xp.tanh(x) ** 2).sum(),
        lambda x: 2 * np.tanh(x) / np.cosh(x) ** 2,
    ),
    "parameters": (
        {"W": np.array([[0.3, -1.2, 2.0], [1.0, 0.25, -0.5]]), "b": np.array([1.0, -2.0])},
        None,
        _net_slopes,
    ),
    "kinked": (
        np.array([0.0, 1.5, -2.0]),
        lambda xp, x: (abs(x) * 2).sum(),
        lambda x: 2 * np.sign(x),
    ),
}
KINDS["kinked parameters"] = (
    {"W": np.array([[0.0, 1.0]]), "b": np.array([0.0])},
    lambda xp, params: abs(params["W"]).sum() + abs(params["b"]).sum(),
    lambda params: {n: np.sign(p) for n, p in params.items()},
)


def function_of(library: str, kind: str) -> Any:
    xp = importlib.import_module(NAMESPACES[library])
    if kind == "parameters":
        v = arrays(library, V)
        if library in ("PyTorch", "gradcli"):
            v = v.double()
        return lambda x: _net(xp, x, v)
    body = KINDS[kind][1]
    return lambda x: body(xp, x)


def doubled(library: str) -> Any:
    """The identity of a library, with a gradient that is twice what it should be."""
    if library == "JAX":
        import jax

        found = jax.custom_vjp(lambda y: y)
        found.defvjp(lambda y: (y, None), lambda _, g: (2 * g,))
        return found
    system = importlib.import_module(NAMESPACES[library])

    class Doubled(system.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, y: Any) -> Any:
            return y.clone()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * g

    return Doubled.apply


def scaled(slopes: Any, by: float) -> Any:
    if isinstance(slopes, dict):
        return {n: scaled(s, by) for n, s in slopes.items()}
    return slopes * by


@pytest.mark.long
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("typed", [True, False], ids=["its arrays", "NumPy's arrays"])
def test_what_is_expected(library: str, kind: str, typed: bool) -> None:
    """Right, wrong, and on kinks any slope between the two sides: as arrays and as functions."""
    point, _, slope = KINDS[kind]
    function = function_of(library, kind)
    given = arrays(library, point) if typed else point
    at = {n: np.asarray(p) for n, p in point.items()} if isinstance(point, dict) else point
    assert_gradients(function, expected=slope, x=given)
    if not (typed and library == "JAX"):  # whose point is that of single precision
        assert_gradients(function, expected={"x": slope(at)}, x=given)
    for by in (1.001, -1):
        with pytest.raises(GradientMismatch, match=r"gradient by x.* is wrong at x"):
            assert_gradients(function, expected=lambda x: scaled(slope(x), by), x=given)  # noqa: B023


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(("slope", "right"), [(0.0, True), (1.0, True), (-2.0, True), (2.5, False)])
def test_on_a_kink_each_slope_between_the_two_sides_is_right(
    library: str, slope: float, right: bool
) -> None:
    point = KINDS["kinked"][0]
    said = np.array([slope, 2.0, -2.0])
    function = function_of(library, "kinked")
    if right:
        assert_gradients(function, expected=said, x=arrays(library, point))
        return
    with pytest.raises(GradientMismatch, match=r"wrong at x\[0\]"):
        assert_gradients(function, expected=said, x=arrays(library, point))


@pytest.mark.long
@pytest.mark.parametrize("library", LIBRARIES[1:])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("typed", [True, False], ids=["its arrays", "NumPy's arrays"])
def test_a_library_s_own_gradient(library: str, kind: str, typed: bool) -> None:
    """Against differences: right, and wrong where a rule of somebody's is."""
    point = KINDS[kind][0]
    function, wrong = function_of(library, kind), doubled(library)
    given = arrays(library, point) if typed else point
    assert_gradients(function, x=given)
    whose = "" if library == "gradcli" else f"in {library}: "
    with pytest.raises(GradientMismatch, match=f"^{whose}gradient by x.* is wrong at x"):
        assert_gradients(lambda x: wrong(function(x)), x=given)
    # What is expected may be as wrong.
    slope = KINDS[kind][2]
    with pytest.raises(GradientMismatch):
        assert_gradients(
            lambda x: wrong(function(x)), expected=lambda x: scaled(slope(x), 2), x=given
        )


@pytest.mark.parametrize("library", LIBRARIES[1:])
def test_second_derivatives(library: str) -> None:
    assert_gradients(function_of(library, "matrix"), x=KINDS["matrix"][0], second_order=True)


SOURCES = {
    "scalar": "sin(x)*x",
    "vector": "sum(exp(x)*x)",
    "matrix": "sum(tanh(x)**2)",
}


@pytest.mark.parametrize("library", OTHERS)
@pytest.mark.parametrize("kind", SOURCES)
def test_a_gradient_function_against_the_exact_gradient(library: str, kind: str) -> None:
    """Those of torch.func and jax, of the same function in gradcli's language."""
    function = function_of(library, kind)
    system = importlib.import_module({"PyTorch": "torch.func", "JAX": "jax"}[library])
    point, source = KINDS[kind][0], SOURCES[kind]
    assert_gradients(source, expected=system.grad(function), x=point, rtol=1e-12)
    with pytest.raises(GradientMismatch):
        assert_gradients(
            source, expected=system.grad(lambda x: function(x) * (1 + 1e-9)), x=point, rtol=1e-12
        )


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_formula_may_be_expected_of_a_function(library: str) -> None:
    function, point = function_of(library, "vector"), KINDS["vector"][0]
    assert_gradients(function, expected="exp(x)*(1 + x)", x=point)
    with pytest.raises(GradientMismatch):
        assert_gradients(function, expected="exp(x)*x", x=point)


def test_functions_of_python_s_numbers() -> None:
    def spring(x: float, k: float) -> float:
        return k * math.sin(x) ** 2

    assert_gradients(
        spring, expected={"x": lambda x, k: 2 * k * math.sin(x) * math.cos(x)}, x=0.3, k=2.0
    )
    with pytest.raises(GradientMismatch, match="your gradient by k"):
        assert_gradients(spring, expected={"k": lambda x, k: math.sin(x)}, x=0.3, k=2.0)
    assert_gradients(math.sin, expected=math.cos, x=0.5)
    assert_gradients(np.linalg.norm, expected=lambda x: x / np.linalg.norm(x), x=[3.0, 4.0])


def test_several_variables_in_their_order() -> None:
    def energy(x: Any, y: Any) -> Any:
        return np.dot(x, x) * np.exp(y)

    def slopes(x: Any, y: Any) -> Any:
        return 2 * x * np.exp(y), np.dot(x, x) * np.exp(y)

    assert_gradients(energy, expected=slopes, x=[1.0, 2.0], y=0.5)
    with pytest.raises(TypeError, match=r"of which variable\? \(x, y\)"):
        assert_gradients(energy, expected=lambda x, y: 2 * x, x=[1.0, 2.0], y=0.5)


def test_numpy_s_functions_have_no_gradient_of_their_own() -> None:
    with pytest.raises(TypeError, match=r"NumPy's numbers has no gradient of its own.*expected="):
        assert_gradients(
            lambda x: np.frexp(x)[0].sum(),
            x=[1.0, 2.0],
        )


def test_a_function_that_draws_other_numbers_each_time_is_refused() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="another value at the same point each time"):
        assert_gradients(lambda x: x + rng.normal(), expected=1.0, x=2.0)
    assert_gradients(lambda x: x * np.random.normal(), expected=None or _drawn, x=2.0)


def _drawn(x: Any) -> Any:
    return np.random.normal()


@pytest.mark.long
def test_without_an_import_of_gradcli_in_the_file(tmp_path: Any) -> None:
    (tmp_path / "test_mine.py").write_text(
        "import numpy as np\n"
        "def loss(x):\n    return np.dot(x, x) + np.sin(x).sum()\n"
        "def slope(x):\n    return 2*x + np.cos(x)\n"
        "def test_slope(assert_gradients):\n"
        "    assert_gradients(loss, expected=slope, x=[1.0, 2.0])\n"
    )
    words = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(tmp_path / "test_mine.py")]
    plugin = [] if _installed() else ["-p", "gradcli.pytest_plugin"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plugin, *words],
        capture_output=True, text=True, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def _installed() -> bool:
    from importlib.metadata import entry_points

    return any(e.value == "gradcli.pytest_plugin" for e in entry_points(group="pytest11"))


def test_of_a_long_array_the_worst_elements_are_told() -> None:
    x = np.linspace(0, 1, 60)
    slope = 3 * x**2
    slope[7], slope[40] = 9, slope[40] + 0.1
    with pytest.raises(GradientMismatch) as caught:
        assert_gradients(lambda x: float(np.sum(x**3)), expected=slope, x=x)
    told = str(caught.value).splitlines()
    assert told[1] == "  2 of 60 elements differ; those that do most:"
    assert told[2].startswith("  x[7]  your gradient 9  numerical gradient 0.04")
    assert told[3].startswith("  x[40]") and len(told) == 4


@pytest.mark.long
@pytest.mark.parametrize("library", LIBRARIES[1:3])
def test_parameters_of_modules(library: str) -> None:
    """As a variable, and of the function itself; buffers and parameters of the caller's stay."""
    system = importlib.import_module(NAMESPACES[library])
    nn = importlib.import_module(f"{NAMESPACES[library]}.nn")
    system.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 1))
    x = system.randn(5, 3)
    before = {n: v.clone() for n, v in model.state_dict().items()}
    assert_gradients(model, input=x)
    assert_gradients(lambda model, x: model(x).pow(2).sum(), model=model, x=x, wrt="model")
    for name, value in model.state_dict().items():
        assert (value == before[name]).all(), name
    wrong = doubled(library)

    class Wrong(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(3, 1)

        def forward(self, x: Any) -> Any:
            return self.inner(x) + wrong(self.inner.bias)

    with pytest.raises(GradientMismatch, match=r"gradient by inner\.bias is wrong"):
        assert_gradients(Wrong(), x=x, wrt="inner")
    with pytest.raises(TypeError, match="no value for the variable 'weight'"):
        assert_gradients(Wrong(), x=x, wrt="weight")


@pytest.mark.needs("jax")
@pytest.mark.long
def test_a_tree_of_parameters_in_jax() -> None:
    import jax
    import jax.numpy as jnp

    layers = [(np.ones((2, 3)), np.zeros(2)), (np.full((1, 2), 0.5), np.ones(1))]

    def loss(layers: Any, x: Any) -> Any:
        for w, b in layers:
            x = jnp.tanh(w @ x + b)
        return x.sum()

    assert_gradients(loss, layers=layers, x=V)
    assert_gradients(loss, expected={"layers": jax.grad(loss)}, layers=layers, x=V)
    with pytest.raises(GradientMismatch, match=r"by layers\.1\.0 "):
        halved = jax.tree.map(lambda g: g, jax.grad(loss)(layers, V))
        halved[1] = (halved[1][0] * 1.5, halved[1][1])
        assert_gradients(loss, expected={"layers": halved}, layers=layers, x=V, rtol=1e-4)


@pytest.mark.parametrize("library", LIBRARIES)
def test_check_takes_functions(library: str) -> None:
    function, (point, _, slope) = function_of(library, "vector"), KINDS["vector"]
    right = gradcli.check(function, against=slope, x=point)
    assert right and right.by["x"].error < 1e-6
    wrong = gradcli.check(function, against=lambda x: 2 * slope(x), x=point)
    assert not wrong
    assert "gradient: x[" in repr(wrong).splitlines()[0]
    assert "3 of 3 elements differ" in repr(wrong)
    if library != "NumPy":
        assert gradcli.check(function, x=point)
        doubles = doubled(library)
        assert not gradcli.check(lambda x: doubles(function(x)), x=point)


def test_gradcli_in_pytorchs_place_is_no_second_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", gradcli)
    assert_gradients(lambda x: (x**3).sum(), x=gradcli.tensor([1.0, 2.0]))


def test_a_misspelt_name_is_not_taken_by_position() -> None:
    with pytest.raises(TypeError, match="has no parameter 'bb'"):
        assert_gradients(lambda a, b: (a * b).sum(), a=gradcli.tensor([1.0]), bb=2.0)


def _unequal(x: Any) -> Any:
    """A function of NumPy's with a component that differences lose beside the others."""
    return 1e6 * x[0] ** 2 + 3e5 * x[0] * x[1] + np.sin(x[2]) * 1e-3 + x[1] ** 4


def _slope_of_unequal(x: Any) -> Any:
    return np.array([2e6 * x[0] + 3e5 * x[1], 3e5 * x[0] + 4 * x[1] ** 3, np.cos(x[2]) * 1e-3])


@pytest.mark.parametrize("x", [[1, 2, 0.3], np.array([1.0, 2.0, 0.3])])
def test_what_runs_on_tensors_too_has_the_exact_gradient(x: Any) -> None:
    assert_gradients(_unequal, expected=_slope_of_unequal, x=x)
    with pytest.raises(GradientMismatch, match=r"wrong at x\[2\][^$]*exact gradient"):
        assert_gradients(_unequal, expected=lambda x: _slope_of_unequal(x) * [1, 1, 1.001], x=x)


@pytest.mark.parametrize(
    "sine", [lambda v: math.sin(v), lambda v: math.sin(v.item()), lambda v: math.sin(float(v))]
)
def test_a_number_that_leaves_the_graph_is_compared_to_what_differences_see(sine: Any) -> None:
    def function(x: Any) -> Any:
        return 1e6 * x[0] ** 2 + 3e5 * x[0] * x[1] + sine(x[2]) * 1e-3 + x[1] ** 4

    with pytest.warns(UserWarning, match=r"x\[2\]: 0.00096 was compared to 0.\d% only"):
        assert_gradients(
            function,
            expected=lambda x: _slope_of_unequal(x) * [1, 1, 1.001],
            x=np.array([1.0, 2.0, 0.3]),
        )


def test_numpys_own_meaning_of_a_method_is_kept() -> None:
    def slope(x: Any) -> Any:  # of NumPy's std, which divides by n; a tensor's divides by n - 1
        return (x - x.mean()) / x.std() / 3

    assert_gradients(lambda x: x.std(), expected=slope, x=[1, 2, 4.0])


def test_integers_of_arrays_are_refused_with_a_remedy() -> None:
    with pytest.raises(TypeError, match=r"x has integers, pass x.astype\(float\)"):
        assert_gradients(lambda x: (x**2).sum(), expected=lambda x: 2 * x, x=np.arange(3))


class Line(NamedTuple):
    slope: Any
    shift: Any


def softmax(z: Any) -> Any:
    e = np.exp(z - z.max())
    return e / e.sum()


def slopes_of_softmax(z: Any) -> Any:
    s = softmax(z)
    return np.diag(s) - np.outer(s, s)


J = np.array([[2.0, 1.0], [2.0, 0.0]])
JACOBIANS: list[tuple[Any, Any, Any]] = [
    (lambda x: np.stack([x[0] * x[1], x[0] ** 2]), J, {"x": [1.0, 2.0]}),
    (lambda x: np.array([x[0] * x[1], x[0] ** 2]), J, {"x": [1.0, 2.0]}),
    (lambda x: [x[0] * x[1], x[0] ** 2], J, {"x": [1.0, 2.0]}),
    ("stack([x[0]*x[1], x[0]**2])", J, {"x": [1.0, 2.0]}),
    (softmax, slopes_of_softmax, {"z": [0.1, 2.0, -1.0]}),
    (lambda line: line.slope * 2 + line.shift, Line(2.0, 1.0), {"line": Line(3.0, 1.0)}),
]


@pytest.mark.parametrize(("function", "expected", "point"), JACOBIANS)
def test_a_jacobian_is_expected(function: Any, expected: Any, point: Any) -> None:
    assert_gradients(function, expected=expected, **point)
    if expected is J:
        wrong = J + np.array([[0, 0], [0, 0.1]])
        with pytest.raises(
            GradientMismatch, match=r"row \[1\] of your Jacobian by x is wrong at x\[1\]"
        ):
            assert_gradients(function, expected=wrong, **point)
        with pytest.raises(GradientMismatch, match=r"a Jacobian would have shape \(2, 2\)"):
            assert_gradients(function, expected=np.ones((3, 2)), **point)


def test_values_may_stand_behind_what_is_expected() -> None:
    assert_gradients(
        lambda x, y: (x**2).sum() * y, lambda x, y: (2 * x * y, (x**2).sum()), [1.0, 2], 3.0
    )
    assert_gradients("x*y", None, 2.0, 3.0)
    with pytest.raises(TypeError, match=r"has 1 parameters \(x\), and 2 values were given"):
        assert_gradients(lambda x: x**2, None, 1.0, 2.0)
    with pytest.raises(TypeError, match="two values for 'x'"):
        assert_gradients(lambda x: x**2, None, 1.0, x=2.0)


def test_values_of_a_module_go_to_its_forward() -> None:
    """`nn.Sequential` calls its parameter `input`: one value by another name, or by none, is meant for it."""
    model = gradcli.nn.Sequential(gradcli.nn.Linear(2, 3), gradcli.nn.Tanh())
    x = np.ones((4, 2))
    assert_gradients(model, x=x)
    assert bool(gradcli.check(model, x)) and bool(gradcli.check(model, input=x))
    with pytest.raises(TypeError, match=r"^values are given by name: x=…$"):
        gradcli.check("x**2", np.ones(100))

"""Derivatives in C: they compile without a warning and give what grad gives, to the last digits."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import language
from gradcli.formulas.ask.proof import proved
from gradcli.formulas.derive.differentiate import differentiate
from gradcli.formulas.lift.lifting import NoExpression
from gradcli.formulas.print.c_code import c_names
from gradcli.formulas.print.c_loops import run_c, to_c
from gradcli.formulas.print.printed_programs import run
from gradcli.language.scope_checks import free_names

SOURCES = [
    "x**2", "x**3*sin(y)/2", "x/3 + 1/3", "x**y", "2**x", "x**-2", "x**0.5*y**1.5", "exp(-x**2)",
    "where(x > 0, x**2, -x)", "where((x > 0) & (y < 1) | (x == y), x*y, y)", "abs(x)*sign(y)",
    "x % y", "(x // y).detach() * x", "fmod(x, y)", "clamp(x, 0, 1)*y", "maximum(x, y)*minimum(x, y)",
    "sigmoid(x)*F.softplus(y)*F.silu(x)", "F.logsigmoid(x) + logaddexp(x, y)", "relu(x)*rsqrt(y)",
    "tanh(x)*atan2(x, y)*hypot(x, y)", "log1p(x)*expm1(y)", "lgamma(2.5)*x + erf(x)*erfc(y)",
    "sinc(x) + frac(y)*x", "x + 1e-3**2*y/3", "x*1e-07 + y*1e+300",
    "special.bessel_j0(x)*special.bessel_y1(y)", "pi*x + inf*0 + x",
    "asinh(x)*acosh(y + 1)*atanh(x/9)", "double*gradient", "sqrt(x*y)/(x + y)", "cos(x)/x",
    "logit(x/9)*y", "F.elu(x)*F.gelu(y)", "round(x)*y + floor(x) + ceil(y)", "(~(x > y))*x*1.0",
    "F.mish(x)*F.celu(y - 1, 2.0)*F.leaky_relu(x - 1)", "F.hardswish(x)*y + F.selu(x - 2)",
    "F.softshrink(x)*hardshrink(y)*F.hardtanh(x - 1)", "special.ndtr(x)*xlogy(x, y) + special.entr(x)",
    "F.softplus(x, 2, 3)*logit(y, eps=0.1)", "special.xlog1py(x, y)*ldexp(x, y)",
]  # fmt: skip
POINTS = [0.3, 1.7, 2.5]


@cache
def programs() -> dict[str, tuple[list[str], str]]:
    """The variables and the C program of every source that C has a form for."""
    found = {}
    for source in SOURCES:
        program = language.parse(source)
        names = [n for n in free_names(program) if n in ("x", "y", "double", "gradient")]
        made = differentiate(program, dict.fromkeys(names, np.float64(0.7)))
        found[source] = names, to_c(made)
    return found


def points(names: list[str]) -> list[dict[str, float]]:
    return [dict(zip(names, p, strict=True)) for p in product(POINTS, repeat=len(names))][1:7]


def by_tape(source: str, point: dict[str, float]) -> tuple[float, list[float]]:
    leaves = {
        n: gradcli.tensor(v, dtype=gradcli.float64, requires_grad=True) for n, v in point.items()
    }
    value = language.run(language.parse(source), leaves).value
    value.backward()
    return value.item(), [0.0 if t.grad is None else t.grad.item() for t in leaves.values()]


@pytest.mark.parametrize("x", [0.0, 1e-8, 0.0099, 0.0101])
def test_a_removable_point_keeps_its_digits(x: float) -> None:
    code = to_c(differentiate(language.parse("sinc(x)"), {"x": np.float64(0.7)}))
    with np.errstate(all="ignore"):
        value, slope = run_c(code, [x])
    expected, (by_x,) = by_tape("sinc(x)", {"x": x})
    np.testing.assert_allclose([value, slope], [expected, by_x], rtol=1e-12)


def test_its_own_reader_gives_what_grad_gives() -> None:
    with np.errstate(all="ignore"):
        for source, (names, code) in programs().items():
            for point in points(names):
                value, grads = run_c(code, list(point.values()))
                expected, slopes = by_tape(source, point)
                grads = grads if len(point) > 1 else (grads,)
                np.testing.assert_allclose(
                    [value, *grads], [expected, *slopes], 1e-12, 1e-14, err_msg=code
                )


# What every compiler takes without a word: C99 and C++17, to the letter.
STRICT = "-O1 -Wall -Wextra -pedantic -Werror"
COMPILERS = {
    **dict.fromkeys(("gcc", "clang", "musl-gcc"), f"-std=c99 {STRICT}"),
    **dict.fromkeys(("g++", "clang++"), f"-x c++ -std=c++17 {STRICT}"),
    "tcc": "-Wall -Werror",
}


def built(compiler: str, codes: list[str], folder: Path) -> Any:
    """A library with the functions f0, f1 and so on."""
    extern = 'extern "C" ' if "++" in compiler else ""
    for k, code in enumerate(codes):
        text = re.sub(r"^double value_and_\w+\(", f"{extern}double f{k}(", code, flags=re.M)
        (folder / f"f{k}.c").write_text(f"{text}\n", encoding="utf-8")
    files = [f"f{k}.c" for k in range(len(codes))]
    objects = [f"f{k}.o" for k in range(len(codes))]
    for file, made in zip(files, objects, strict=True):
        line = [compiler, *COMPILERS[compiler].split(), "-fPIC", "-c", file, "-o", made]
        done = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0 and not done.stderr, done.stderr + (folder / file).read_text()
    # musl's own libm cannot be loaded beside glibc's, nor tcc's objects be linked by another linker
    linker = compiler if compiler != "musl-gcc" else "gcc"
    line = [linker, "-shared", *objects, "-o", "all.so", "-lm"]
    done = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(folder / "all.so"))


def each_compiler(test: Any) -> Any:
    missing = [name for name in COMPILERS if shutil.which(name) is None]
    marks = [
        pytest.param(name, marks=pytest.mark.skipif(name in missing, reason=f"no {name}"))
        for name in COMPILERS
    ]
    return pytest.mark.long(pytest.mark.parametrize("compiler", marks)(test))


@each_compiler
def test_the_compiler_gives_what_grad_gives(compiler: str, tmp_path: Path) -> None:
    found = programs()
    library = built(compiler, [code for _, code in found.values()], tmp_path)
    for number, (source, (names, code)) in enumerate(found.items()):
        function: Any = getattr(library, f"f{number}")
        function.restype = ctypes.c_double
        gradient = (ctypes.c_double * len(names))()
        for point in points(names):
            value = function(*map(ctypes.c_double, point.values()), gradient)
            expected, slopes = by_tape(source, point)
            np.testing.assert_allclose(
                [value, *gradient], [expected, *slopes], 1e-12, 1e-14, err_msg=code
            )


def test_it_is_proved_and_what_c_lacks_is_refused() -> None:
    arrays = {"x": np.float64(0.5)}
    _, made, singular = proved(language.parse("tanh(x)**3"), arrays, ["x"], given=True, form="c")
    assert singular is None and "#include <math.h>" in made.code
    with pytest.raises(NoExpression, match="C has no function for digamma"):
        proved(language.parse("lgamma(x)"), arrays, ["x"], given=True, form="c")
    with pytest.raises(NoExpression, match=r"C has no function for linalg\.inv"):
        proved(language.parse("log(det(A))"), {"A": np.eye(3)}, ["A"], given=True, form="c")
    with pytest.raises(NoExpression, match="the value is a vector"):
        proved(language.parse("2*x"), {"x": np.ones(3)}, ["x"], given=True, form="c")


V, M, S = (3,), (4, 3), ()
ARRAYS = [
    ("sum((X@w - y)**2)", {"X": M, "w": V, "y": (4,)}),
    ("mean((X@w + b - y)**2) + a*norm(w)", {"X": M, "w": V, "y": (4,), "b": S, "a": S}),
    ("-log_softmax(W@x + b, 0)[1]", {"W": M, "x": V, "b": (4,)}),
    ("sum(softmax(X, 1)*X) + sum(logsumexp(X, 0))", {"X": M}),
    ("x@A@x/(x@x)", {"x": V, "A": (3, 3)}),
    ("trace(A@B) + sum(A.T*B)", {"A": M, "B": (3, 4)}),
    ("sum(tanh(W@x)*v) + x[0]*x[2]", {"W": M, "x": V, "v": (4,)}),
    ("sum(relu(X@W + b)@v)", {"X": (5, 3), "W": (3, 2), "b": (2,), "v": (2,)}),
    ("sum(where(x > 0, x**2, -x)*a)", {"x": V, "a": S}),
    ("sum(where((x > 0) & (x < y), x**2, -x*y)) + sum((x > y)*x)", {"x": V, "y": V}),
    ("sum(sigmoid(outer(x, y))) + sum(diag(A))*sum(x)", {"x": V, "y": (4,), "A": (3, 3)}),
    ("sum(x*tensor([1., 2., 3.])) + sum(exp(x[:, None]*y))", {"x": V, "y": (2,)}),
    ("mean(X, 1)@y", {"X": M, "y": (4,)}),
    ("sum(w)*s", {"w": (1,), "s": S}),
    ("sum(X)*X.shape[0]/X.shape[1] + mean(X)**2", {"X": M}),
    ("max(x)*prod(x) + amin(X, 1)@x", {"x": V, "X": (3, 4)}),
    ("var(x)*sum(std(X, 0, correction=0)) + sum(var(X, 1, keepdim=True)*X)", {"x": V, "X": M}),
    ("sum(bmm(A, B)**2)", {"A": (2, 3, 4), "B": (2, 4, 3)}),
    ("sum(F.gelu(x)*F.elu(y))", {"x": V, "y": V}),
    ("norm(diag(diagonal(X)))", {"X": M}),
]


def test_an_index_is_an_int() -> None:
    arrays = {"x": np.array([1.0, 3.0, 2.0]), "k": np.int64(2)}
    _, made, _ = proved(
        language.parse("-log_softmax(x, 0)[k]*x[k]"), arrays, ["x"], given=False, form="c"
    )
    assert made.general is True and made.code is not None
    assert "(int n, const double x[] /* [n] */, int k, double x_grad[] /* [n] */)" in made.code


def array_programs() -> dict[str, tuple[dict[str, Any], str]]:
    found = {}
    for source, shapes in ARRAYS:
        rng = np.random.default_rng(len(source))
        arrays = {n: rng.standard_normal(s)[()] for n, s in shapes.items()}
        _, made, _ = proved(language.parse(source), arrays, list(shapes), given=True, form="c")
        assert made.code is not None
        found[source] = arrays, made.code
    return found


@each_compiler
def test_loops_give_what_grad_gives(compiler: str, tmp_path: Path) -> None:
    found = array_programs()
    library = built(compiler, [code for _, code in found.values()], tmp_path)
    for number, (source, (arrays, code)) in enumerate(found.items()):
        value, outs = called(getattr(library, f"f{number}"), arrays, code)
        leaves = {
            n: gradcli.tensor(a, dtype=gradcli.float64, requires_grad=True)
            for n, a in arrays.items()
        }
        expected = language.run(language.parse(source), leaves).value
        expected.backward()
        np.testing.assert_allclose(value, expected.item(), 1e-12, err_msg=code)
        for name, leaf in leaves.items():
            wanted = leaf.grad.numpy().reshape(outs[name].shape)
            np.testing.assert_allclose(outs[name], wanted, 1e-11, 1e-13, err_msg=code)


def called(function: Any, arrays: dict[str, Any], code: str) -> tuple[float, dict[str, Any]]:
    """(the value, the gradients) of a compiled function."""
    function.restype = ctypes.c_double
    sizes = dict.fromkeys(n for a in arrays.values() for n in np.shape(a))
    if len(sizes) > code.count("int n,") + code.count("int m,") + code.count("int p,"):
        sizes.pop(1)  # which has no name
    outs = {n: np.zeros(np.shape(a) or (1,)) for n, a in arrays.items()}
    pointer = ctypes.POINTER(ctypes.c_double)
    given = [
        np.ascontiguousarray(a).ctypes.data_as(pointer) if np.ndim(a) else ctypes.c_double(a)
        for a in arrays.values()
    ]
    results = [out.ctypes.data_as(pointer) for out in outs.values()]
    return function(*map(ctypes.c_int, sizes), *given, *results), outs


@pytest.mark.long
@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")
def test_large_arrays_do_not_lie_on_the_stack(tmp_path: Path) -> None:
    arrays = {"x": np.linspace(0.1, 1, 1_500_000), "y": np.linspace(1, 2, 1_500_000)}
    small = {n: a[:3] for n, a in arrays.items()}
    source = language.parse("sum(softmax(x*y, 0)*y)")
    _, made, _ = proved(source, small, ["x", "y"], given=True, form="c")
    library = built("gcc", [made.code or ""], tmp_path)
    value, outs = called(library.f0, arrays, made.code or "")
    assert 1 < value < 2 and np.isfinite(outs["x"]).all()


AWKWARD = [
    "M_PI",
    "linux",
    "new",
    "this",
    "α",
    "NULL",
    "x_grad",
    "j0",
    "value",
    "work",
    "not_eq",
    "变",
    "I",
    "EOF",
]


def test_names_that_c_has_are_renamed(tmp_path: Path) -> None:
    names = c_names(
        ["M_PI", "linux", "new", "this", "α", "NULL", "value", "变", "alpha", "_x", "x"]
    )
    assert list(names.values()) == [
        *("M_PI_", "linux_", "new_", "this_", "alpha_", "NULL_", "value_", "u53d8", "alpha", "x_"),
        "x",
    ]
    source = " + ".join(f"{name}**2*x" for name in AWKWARD) + " + sum(v)"
    arrays = {**{n: np.float64(k + 1.0) for k, n in enumerate(AWKWARD)}, "x": np.float64(2)}
    arrays["v"] = np.ones(3)
    _, made, _ = proved(language.parse(source), arrays, list(arrays), given=True, form="c")
    for compiler in filter(shutil.which, ("gcc", "g++")):
        built(compiler, [made.code or ""], tmp_path)


# Those that a printed function begins with, as every system has them; and all of C itself, one of which
# somebody includes before it (<signal.h> is left out: its SIGINT is the name of no quantity).
PRINTED = "math stdlib"
ALL_OF_C = (
    "assert complex ctype errno fenv float inttypes limits locale math setjmp stdarg stdbool "
)
ALL_OF_C += "stddef stdint stdio stdlib stdnoreturn string tgmath time wchar wctype"


@pytest.mark.long
@pytest.mark.parametrize(
    ("compiler", "headers"),
    [
        *[(f"{c} -D_GNU_SOURCE", PRINTED) for c in ("gcc -x c", "g++ -x c++", "clang -x c")],
        *[(f"{c} -D_GNU_SOURCE", PRINTED) for c in ("clang++ -x c++", "tcc")],
        *[(f"{c} -x c -std=c17", ALL_OF_C) for c in ("gcc", "clang")],
    ],
)
def test_no_name_is_a_macro_of_a_compiler(compiler: str, headers: str) -> None:
    if shutil.which(compiler.split()[0]) is None:
        pytest.skip(f"no {compiler}")
    source = "".join(f"#include <{header}.h>\n" for header in headers.split())
    command = [*compiler.split(), "-dM", "-E", "-"]
    told = subprocess.run(command, input=source, capture_output=True, text=True, check=True).stdout
    macros = re.findall(r"^#define ([A-Za-z]\w*) ", told, re.MULTILINE)
    assert len(macros) > 20
    assert [name for name in macros if c_names([name])[name] == name] == []


def test_loops_are_of_any_size() -> None:
    arrays = {"X": np.ones((4, 3)), "w": np.ones(3)}
    _, made, _ = proved(language.parse("sum((X@w)**2)"), arrays, ["w"], given=False, form="c")
    assert made.general is True
    signature = "int n, int m, const double *X /* [n][m] */, const double w[] /* [m] */"
    assert f"value_and_gradient({signature}, double w_grad[] /* [m] */)" in made.code
    value, grad = run(made.code, "c", [np.full((7, 2), 0.5), np.array([1.0, 3.0])])
    np.testing.assert_allclose(value, 28)
    np.testing.assert_allclose(grad, [14, 14])


STABLE = {
    "tanh(x)": (20.0, 1.699341702116e-17),
    "sigmoid(x)": (40.0, 4.248354255291589e-18),
    "expm1(x)": (-40.0, 4.248354255291589e-18),
}


@pytest.mark.parametrize("source", STABLE)
def test_digits_that_the_function_has_lost_are_kept(source: str) -> None:
    x, slope = STABLE[source]
    found = differentiate(language.parse(source), {"x": np.float64(0.5)})
    _, grad = run_c(to_c(found), [x])
    np.testing.assert_allclose(grad, slope, rtol=1e-12)


NAN = ["relu(sqrt(x))", "maximum(1, sqrt(x))", "minimum(sqrt(x), y)", "clamp(sqrt(x), 0, 1)"]


@pytest.mark.long
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_what_is_not_a_number_stays_so(tmp_path: Path) -> None:
    """fmax(0, nan) of C is 0; relu(nan), a maximum and what is clamped are nan, as in PyTorch."""
    for number, source in enumerate([*NAN, "amax(sqrt(a))"]):
        arrays = {n: np.float64(0.5) for n in "xy" if n in source.replace("max", "")}
        arrays = arrays if "x" in arrays else {"a": np.array([0.5, 2.0])}
        _, made, _ = proved(language.parse(source), arrays, list(arrays), given=False, form="c")
        (tmp_path / f"f{number}.c").write_text(made.code, encoding="utf-8")
        line = ["cc", "-shared", "-fPIC", f"f{number}.c", "-o", f"f{number}.so", "-lm"]
        subprocess.run(line, cwd=tmp_path, check=True)
        function: Any = ctypes.CDLL(str(tmp_path / f"f{number}.so")).value_and_gradient
        function.restype = ctypes.c_double
        out = (ctypes.c_double * 2)()
        if "a" in arrays:
            assert np.isnan(function(2, (ctypes.c_double * 2)(-1.0, 4.0), out)), source
        else:
            assert np.isnan(function(*[ctypes.c_double(-1.0)] * len(arrays), out)), source
        if "relu" in source:  # so has the slope, of which `nan > 0` knows nothing
            assert np.isnan(out[0])


@pytest.mark.parametrize("form", ["python", "numpy"])
def test_a_maximum_of_nothing_known_is_nan_in_python(form: str) -> None:
    for source, point in [("maximum(x, y)", [1.0, np.nan]), ("relu(x)*y", [np.nan, 1.0])]:
        arrays = {"x": np.float64(0.5), "y": np.float64(0.7)}
        _, made, _ = proved(language.parse(source), arrays, ["x"], given=False, form=form)
        value, _ = run(made.code, form, point)
        assert np.isnan(value)

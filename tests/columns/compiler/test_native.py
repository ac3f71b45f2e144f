"""Native code: what C computes is what the tape computes, and what compiling leaves behind is nothing."""

from __future__ import annotations

import os
import random
import shutil
import stat
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import gradcli
from gradcli.cli import main
from gradcli.engine.system import c_compiler
from tests.fuzz import native
from tests.sweep import sweep

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
N = 40_001


@pytest.fixture(autouse=True)
def in_double_precision() -> Any:
    before = gradcli.get_default_dtype()
    gradcli.set_default_dtype(gradcli.float64)
    yield
    gradcli.set_default_dtype(before)


def vector(dtype: str = "f8") -> Any:
    return np.random.default_rng(0).standard_normal(N).astype(dtype)


def source_of(function: Any, x: Any) -> str:
    """The C of a program, which is not compiled."""
    texts: list[str] = []

    def taken(text: str) -> Any:
        texts.append(text)
        raise c_compiler.NoCompiler("none is asked")

    with pytest.MonkeyPatch.context() as patch, pytest.warns(UserWarning, match="none is asked"):
        patch.setattr(c_compiler, "load", taken)
        gradcli.compile(function, native=True)(x=x)
    return texts[0]


def has_own_exp() -> bool:
    """Whether gcc makes vectors of AVX2 or AVX-512 here."""
    gcc = "Free Software" in c_compiler._version()
    return gcc and {"avx2", "fma"} <= set(c_compiler._processor().split())


@pytest.mark.long
@sweep("seed", range(20))
@pytest.mark.parametrize("make", [native.flat, native.rows])
def test_random_programs(make: Any, seed: int) -> None:
    assert native.attempt(random.Random(seed), make) is None


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_arithmetic_has_the_tapes_bits(dtype: str) -> None:
    text = "y = x*x/(1 + abs(x)); z = where(x > 0, y, -3*y).sqrt(); sum(maximum(y, x)) + sum(y)"
    x = vector(dtype)
    x[::97] = np.nan
    value, grads = gradcli.compile(text, native=True).value_and_grad(x=x)
    wanted, by_blocks = gradcli.compile(text).value_and_grad(x=x)
    assert np.array_equal(value, wanted, equal_nan=True)
    assert np.array_equal(grads["x"], by_blocks["x"], equal_nan=True)


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_tanh_is_within_three_units_in_the_last_place(dtype: str) -> None:
    scales = np.repeat([1e-12, 1e-3, 0.1, 1.0, 10.0], N // 5)
    special = [np.nan, np.inf, -np.inf, 0.0, -0.0, np.finfo(dtype).smallest_subnormal, 20.5]
    x = np.concatenate([vector()[: scales.size] * scales, special]).astype(dtype)
    found, wanted = gradcli.compile("tanh(x)", native=True)(x=x), np.tanh(x.astype("g"))
    off = np.abs(found - wanted)[:-7] / np.spacing(np.abs(wanted).astype(dtype))[:-7]
    assert off.max() < 3
    np.testing.assert_array_equal(found[-7:], np.tanh(x[-7:]))
    assert (np.signbit(found[-6:]) == np.signbit(x[-6:])).all()


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_exp_is_within_a_unit_and_the_same_at_every_place(dtype: str) -> None:
    least, most = {"f4": (-110, 89), "f8": (-760, 710)}[dtype]
    special = [np.nan, np.inf, -np.inf, 0.0, -0.0, -1e30, 1e30, 1e-30]
    x = np.concatenate([np.linspace(least, most, 40_001), special]).astype(dtype)
    exp = gradcli.compile("exp(x)*1", native=True)
    found, wanted = exp(x=x), np.exp(x.astype("g"))
    finite = np.isfinite(wanted.astype(dtype))
    off = np.abs(found - wanted)[finite] / np.spacing(wanted.astype(dtype)[finite])
    assert off.max() < (1.02 if has_own_exp() else 4)  # or the C library's
    np.testing.assert_array_equal(found[~finite], wanted[~finite].astype(dtype))
    np.testing.assert_array_equal(found[-5:-3], [1, 1])
    for begin in (1, 3, 5):  # elements at the end of an array are worked out as those in its middle
        np.testing.assert_array_equal(exp(x=x[begin : begin + 777]), found[begin : begin + 777])


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", [(90, 17), (5, 1003), (4, 3, 100)])
@pytest.mark.parametrize("name", ["log_softmax", "softmax", "logsumexp"])
def test_rows_of_exponentials(name: str, shape: Any, dtype: str) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype) * 5
    x[0] -= 1000
    x[-1, ..., 0] = np.inf
    if shape[-1] > 1:
        x[1, ..., -1], x[2, ..., :] = -np.inf, -np.inf
    found, wanted = (
        gradcli.compile(lambda x: getattr(x * 3, name)(-1).sigmoid(), native=native)(x)
        for native in (True, False)
    )
    limit = {"f4": 3e-5, "f8": 1e-12}[dtype]
    np.testing.assert_allclose(found, wanted, rtol=limit, atol=limit)


@pytest.mark.long
@pytest.mark.parametrize("size", [1, 8, 513, 2000])
@pytest.mark.parametrize("calls", [0, 3])
def test_a_long_program_is_several_functions(size: int, calls: int) -> None:
    def long(x: Any) -> Any:
        y = x
        for k in range(330):
            y = gradcli.sin(y) if calls and k % calls == 0 else y * x + 1 / (k + 2)
        return y.sum()

    x = np.linspace(-0.9, 0.9, size)
    value, grads = gradcli.compile(long, native=True).value_and_grad(x=x)
    wanted, by_blocks = gradcli.compile(long).value_and_grad(x=x)
    np.testing.assert_allclose(value, wanted, rtol=1e-12)
    np.testing.assert_allclose(grads["x"], by_blocks["x"], rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("size", [8, 2000])
def test_loops_that_are_alike_are_one_function(size: int) -> None:
    def steps(x: Any) -> Any:
        for _ in range(40):
            x = (x * 2 + 1).exp() / 3
        return x.sum()

    text = source_of(steps, np.zeros(size))
    assert text.count("exp(") < 4


def test_a_sum_of_truths_is_a_truth() -> None:
    x = np.linspace(-1, 1, 600)
    found = gradcli.compile("((x > 0) + (x > 0.5))*1.5", native=True)(x=x)
    np.testing.assert_array_equal(found, (x > 0) * 1.5)


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_largest_and_smallest_of_rows_of_every_length(dtype: str) -> None:
    """Rows are compared one by one, by lanes, and by four vectors at once; NaN wins wherever it is."""
    x = vector(dtype)[: 7 * 300].reshape(7, 300)
    x[np.arange(7), [0, 5, 31, 32, 63, 64, 299]] = [np.nan, np.inf, -np.inf, 9, -9, np.nan, 7]
    for n in (17, 63, 64, 65, 128, 299, 300):
        part = np.ascontiguousarray(np.tile(x[:, :n], (120, 1)))
        found = gradcli.compile(lambda a: (a.amax(1), a.amin(1)), native=True)(a=part)
        np.testing.assert_array_equal(found, (part.max(1), part.min(1)))


def test_what_is_taken_of_rows_and_put_into_them_has_the_tapes_places() -> None:
    g = np.random.default_rng(2)
    x, t = g.standard_normal((403, 101)), gradcli.tensor(g.integers(0, 101, 403))

    def loss(x: Any) -> Any:
        entropy = gradcli.nn.functional.cross_entropy(x, t, reduction="none")
        return (entropy * entropy).sum() + (x * 2 + 1).take_along_dim(t[:, None], 1).sum()

    value, grads = gradcli.compile(loss, native=True).value_and_grad(x=x)
    wanted, by_blocks = gradcli.compile(loss).value_and_grad(x=x)
    np.testing.assert_allclose(value, wanted, rtol=1e-13)
    np.testing.assert_allclose(grads["x"], by_blocks["x"], rtol=1e-12, atol=1e-14)


@pytest.mark.long
def test_functions_of_the_c_library_are_as_near_as_they_promise() -> None:
    x = vector()
    compiled = gradcli.compile("sum(exp(-x**2)*sin(3*x))", native=True, threads=1)
    value, grads = compiled.value_and_grad(x=x)
    wanted = np.exp(-(x**2)) * np.sin(3 * x)
    slope = np.exp(-(x**2)) * (3 * np.cos(3 * x) - 2 * x * np.sin(3 * x))
    assert abs(value - wanted.sum()) < 1e-12 * np.abs(wanted).sum()
    assert np.abs(grads["x"] - slope).max() < 1e-14
    threaded = gradcli.compile("sum(exp(-x**2)*sin(3*x))", native=True, threads=3)
    again, others = threaded.value_and_grad(x=x)
    assert again == value
    assert np.array_equal(others["x"], grads["x"])


def test_an_index_out_of_bounds_has_pytorchs_words() -> None:
    compiled = gradcli.compile("sum(x.gather(1, i).exp())", wrt="x", native=True)
    x = vector()[:40_000].reshape(-1, 4)
    inside = np.full((10_000, 1), 3)
    assert np.isfinite(compiled.value_and_grad(x=x, i=inside)[0])
    with pytest.raises(Exception, match="out of bounds"):
        compiled.value_and_grad(x=x, i=inside + 1)


def test_the_object_is_private_and_gone(monkeypatch: Any, tmp_path: Path) -> None:
    seen: list[tuple[int, Path]] = []
    compile = c_compiler._compile

    def watched(source: str, folder: Path) -> Path:
        seen.append((stat.S_IMODE(folder.stat().st_mode), folder))
        return compile(source, folder)

    monkeypatch.setattr(c_compiler, "_compile", watched)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    gradcli.compile("sum(x*1.0625)", native=True)(x=vector())
    assert [mode for mode, _ in seen] == [0o700]
    assert not list(tmp_path.iterdir())


def test_a_named_cache_keeps_the_object(monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setenv("GRADCLI_CACHE", str(tmp_path / "kept"))
    gradcli.compile("sum(x*1.125)", native=True)(x=vector())
    (kept,) = (tmp_path / "kept").iterdir()
    monkeypatch.setattr(c_compiler, "_compile", None)  # nothing is compiled again
    monkeypatch.setattr(c_compiler, "_loaded", {})
    value = gradcli.compile("sum(x*1.125)", native=True)(x=vector())
    assert kept.suffix == ".so"
    assert value == gradcli.compile("sum(x*1.125)")(x=vector())
    os.chmod(tmp_path / "kept", 0o777)
    with pytest.warns(UserWarning, match="others may write"):
        gradcli.compile("sum(x*1.375)", native=True)(x=vector())


def test_without_a_compiler_the_blocks_run_and_one_line_says_so(monkeypatch: Any) -> None:
    monkeypatch.setenv("CC", "no-such-compiler -O1")
    with pytest.warns(UserWarning, match="no C compiler: 'no-such-compiler'.*blocks of NumPy"):
        value = gradcli.compile("sum(x*1.1875)", native=True)(x=vector())
    assert value == gradcli.compile("sum(x*1.1875)")(x=vector())


def test_a_compiler_that_refuses_is_named(monkeypatch: Any) -> None:
    monkeypatch.setenv("CC", "false")
    with pytest.warns(UserWarning, match="false refuses"):
        gradcli.compile("sum(x*1.3125)", native=True)(x=vector())


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sum(cumsum(x, 0)*exp(x))", "add.accumulate (no C form)"),
        ("sum(sort(x)[0]*exp(x))", "sort (no C form)"),
        ("sum(lgamma(x) + x)", "gammaln (no C form)"),
        ("sum(exp(x*1j).real)", "cast (complex128), multiply (complex128), exp (complex128)"),
        ("sum(exp(x)*(x@x))", ""),
        ("sum(x[1:]*x[:-1].flip(0))", ""),
    ],
)
def test_a_note_names_the_calls_that_have_no_c_form(text: str, words: str, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", vector())
    command = ["eval", text, "--x", f"@{tmp_path}/x.npy", "--native"]
    found = CliRunner().invoke(main, command)
    assert found.exit_code == 0, found.output
    note = f"gradcli: note: --native: NumPy runs {words}\n" if words else ""
    assert found.stderr == note

"""Results as text, plain lines and JSON, on arrays alone."""

from __future__ import annotations

import io
import json
import os
import stat

import numpy as np
import pytest

from gradcli.commands import output
from gradcli.commands.output import Style, as_array, to_json, to_plain, to_text
from gradcli.engine.system import dtypes
from gradcli.language import parse, read_value, run
from gradcli.language.located_errors import LanguageError
from tests.sweep import sweep

PIPE = Style()
TERMINAL = Style(summarise=True)
F4, F2 = np.float32, np.float16

TEXT = [
    (np.float64(28.0), "28"),
    (np.array([0.0, 4.0, 8.0, 12.0]), "[0, 4, 8, 12]"),
    (np.array([0.5, -0.25, 1e-7, 1e16, 123456789.0]), "[0.5, -0.25, 1e-07, 1e+16, 123456789]"),
    (np.array([0.1, 0.2]) + 0.2, "[0.30000000000000004, 0.4]"),
    (np.array([0.1, 1 / 3], dtype=F4), "[0.1, 0.33333334]"),
    (np.array([0.1, 1 / 3, 60000], dtype=F2), "[0.1, 0.3333, 60000]"),
    (np.array([1e10, 3.4e38], dtype=F4), "[10000000000, 3.4e+38]"),
    (np.array([np.nan, np.inf, -np.inf]), "[nan, inf, -inf]"),
    (np.array([[1.0, 2.0], [3.0, 4.0]]), "[[1, 2], [3, 4]]"),
    (np.arange(8.0).reshape(2, 2, 2), "[[[0, 1], [2, 3]], [[4, 5], [6, 7]]]"),
    (np.zeros((0,)), "[]"),
    (np.zeros((2, 0)), "[[], []]"),
    (np.zeros((0, 3)), "[]"),
    (np.array([1, -2]), "[1, -2]"),
    (np.array([True, False]), "[True, False]"),
    (np.array([1 + 2j, -0.5 - 1j, 3]), "[1+2j, -0.5-1j, 3+0j]"),
    (np.array([0.1 + 0.1j], dtype=np.complex64), "[0.1+0.1j]"),
    (3, "3"),
    (10**30, str(10**30)),
    (0.5, "0.5"),
    (True, "True"),
    (2j, "0+2j"),
    ("words", "words"),
    (None, "None"),
    ((np.float64(1.0), 2), "(1, 2)"),
    ((1,), "(1,)"),
    ([np.array([1.0]), 2], "[[1], 2]"),
]


@sweep(("value", "expected"), TEXT, parts=1)
def test_text(value, expected):
    assert to_text(value, PIPE) == expected


@pytest.mark.parametrize(
    "value, precision, expected",
    [
        (np.array([1 / 3, 2.0, 123456.0]), 3, "[0.333, 2, 123000]"),
        (np.array([0.5]), 10, "[0.5]"),
        (np.array([1 / 3 + 1j / 3]), 2, "[0.33+0.33j]"),
        (np.array([1234567]), 2, "[1234567]"),
    ],
)
def test_precision_shortens(value, precision, expected):
    assert to_text(value, Style(precision=precision)) == expected


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_digits_round_trip_and_are_shortest(dtype):
    rng = np.random.default_rng(0)
    values = (rng.standard_normal(300) * 10.0 ** rng.integers(-4, 5, 300)).astype(dtype)
    for form in (to_text(values, PIPE)[1:-1].split(", "), to_plain(values).split(",")):
        back = np.array([float(text) for text in form], dtype=dtype)
        np.testing.assert_array_equal(back, values)
        for text, value in zip(form, values, strict=True):
            shortest = np.format_float_scientific(value, trim="-")
            assert len(text.replace("-", "").replace(".", "").lstrip("0").split("e")[0]) >= len(
                shortest.split("e")[0].replace("-", "").replace(".", "")
            )
            assert float(shortest) == float(text)
    np.testing.assert_array_equal(np.array(to_json(values), dtype=dtype), values)


def test_a_terminal_gets_a_summary_and_a_pipe_does_not():
    assert to_text(np.arange(2000.0), TERMINAL) == "[0, 1, 2, …, 1997, 1998, 1999]"
    assert to_text(np.arange(1000.0), TERMINAL).count(",") == 999
    assert to_text(np.arange(2000.0), PIPE).count(",") == 1999
    matrix = to_text(np.arange(4000.0).reshape(4, 1000), TERMINAL)
    assert matrix.startswith("[[0, 1, 2, …, 997, 998, 999], [1000, ")
    assert matrix.count("…") == 4
    tall = to_text(np.arange(4000.0).reshape(1000, 4), TERMINAL)
    assert tall.startswith("[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], …, [3988, ")


PLAIN = [
    (np.float64(3.0), "3"),
    (np.array([0.0, 4.0]), "0,4"),
    (np.array([3.0]), "3,"),
    (np.array([[1.0, 2.0], [3.0, 4.0]]), "1,2;3,4"),
    (np.array([[1.0, 2.0]]), "[[1,2]]"),
    (np.array([[1.0], [2.0]]), "[[1],[2]]"),
    (np.zeros((1, 1, 2)), "[[[0,0]]]"),
    (np.zeros(0), "[]"),
    (np.zeros((0, 3)), "zeros(0, 3)"),
    (np.array([np.nan, np.inf, -np.inf]), "nan,inf,-inf"),
    (np.array([-0.0, 1.0]), "-0.0,1"),
    (np.array([1 + 2j, 3 - 1j]), "1+2j,3-1j"),
    (np.array([complex(1, np.inf), 1j]), "complex(1, inf),0+1j"),
    (np.array([True, False]), "True,False"),
    (None, "None"),
]


@sweep(("value", "expected"), PLAIN, parts=1)
def test_plain(value, expected):
    assert to_plain(value) == expected


BACK = [
    "3", "-0.0", "nan", "-inf", "1e22", "True", "2+1j", "tensor([True])", "tensor([[True]])",
    "ones(1)", "ones(1, 1)", "ones(2, 1)", "ones(1, 2)", "ones(1, 1, 1)", "arange(8.).reshape(2, 2, 2)",
    "tensor([True, False])", "tensor([[True, False], [False, True]])", "ones(2, 1, 2) > 0",
    "tensor([[1+2j]])", "tensor([1+2j])", "tensor([[1+2j, 3], [4, 5]])", "tensor([[[1j]]])",
    "tensor([complex(nan, -0.0)])", "tensor([[complex(inf, 2.)]])", "tensor([nan, 1])", "tensor([[nan]])",
    "tensor([[nan, inf], [-0.0, 1]])", "zeros(0)", "zeros(2, 0)", "zeros(0, 3, dtype=bool)",
    "zeros(0, dtype=bool)", "zeros(3, 0) + 0j", "stack([ones(2), zeros(2)])", "[ones(2), zeros(2)]",
     "max(ones(2, 3)*2, 0)",
]  # fmt: skip


@pytest.fixture
def double():
    before = dtypes.get_default_dtype()
    dtypes.set_default_dtype(dtypes.float64)
    yield
    dtypes.set_default_dtype(before)


@pytest.mark.parametrize("way", ["option", "standard input", "x.txt", "x.dat"])
def test_what_is_plain_reads_back(way, tmp_path, monkeypatch, double):
    """As the same value: shape, dtype, the signs of zeros."""
    monkeypatch.chdir(tmp_path)
    wrong = []
    for text in BACK:
        value = run(parse(text)).value
        plain = to_plain(value)
        (tmp_path / way).write_text(f"{plain}\n")
        given = {"option": plain, "standard input": "-"}.get(way, f"@{way}")
        found = read_value(given, stdin=io.StringIO(f"{plain}\n")).array
        several = isinstance(value, list | tuple)
        array = np.array([as_array(v) for v in value] if several else as_array(value))
        array = array.astype(float) if array.dtype.kind in "iO" else array
        same = found.dtype == array.dtype and repr(np.array(found)) == repr(array)
        wrong += [] if same else [(text, plain, found)]
    assert not wrong


JSON = [
    (np.float64(28.0), "28.0"),
    (np.array([[1.0, 2.0], [3.0, 4.5]]), "[[1.0, 2.0], [3.0, 4.5]]"),
    (np.array([0.1], dtype=F4), "[0.1]"),
    (np.array([np.nan, np.inf, -np.inf, 1]), '["nan", "inf", "-inf", 1.0]'),
    (np.array([1 + 2j, complex(np.nan, 0)]), '[[1.0, 2.0], ["nan", 0.0]]'),
    (np.complex128(2j), "[0.0, 2.0]"),
    (np.array([True]), "[true]"),
    (np.array([1, 2]), "[1, 2]"),
    (np.zeros((2, 0)), "[[], []]"),
    (np.zeros((0, 2)), "[]"),
    (float("nan"), '"nan"'),
    (3, "3"),
    (None, "null"),
    ("a", '"a"'),
    ((np.float64(1.0), [2]), "[1.0, [2]]"),
]


@sweep(("value", "expected"), JSON, parts=1)
def test_json(value, expected):
    assert json.dumps(to_json(value), allow_nan=False) == expected


def test_files_are_whole_or_not_at_all(tmp_path):
    path = tmp_path / "a.txt"
    output.write_file(str(path), "old\n")
    path.chmod(0o640)
    output.write_file(str(path), "new\n")
    assert path.read_text() == "new\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    output.write_file(str(path), "new\n\udc80")
    assert path.read_text() == "new\n\\udc80"
    assert os.listdir(tmp_path) == ["a.txt"]
    link = tmp_path / "link"
    link.symlink_to(path)
    output.write_file(str(link), "through\n")
    assert link.is_symlink() and path.read_text() == "through\n"


def test_a_file_that_cannot_be_written_is_said(tmp_path):
    with pytest.raises(LanguageError, match=r"cannot write .*No such file or directory") as found:
        output.write_file(str(tmp_path / "no" / "a.txt"), "")
    assert found.value.usage

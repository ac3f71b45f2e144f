# ruff: noqa: E501 (tables of cases)
"""What follows --x."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest

from gradcli.engine.system import dtypes
from gradcli.language import LanguageError, read_value
from tests.sweep import sweep


@pytest.fixture(autouse=True)
def double() -> object:
    before = dtypes.get_default_dtype()
    dtypes.set_default_dtype(dtypes.float64)
    yield
    dtypes.set_default_dtype(before)


VALUES: list[tuple[str, object]] = [
    ("3", 3.0), ("-1e3", -1000.0), ("0,1,2,3", [0, 1, 2, 3]), ("[0,1,2,3]", [0, 1, 2, 3]), ("3,", [3]), ("1,2,", [1, 2]),
    ("1,2;3,4", [[1, 2], [3, 4]]), ("1,2;3,4;", [[1, 2], [3, 4]]), ("1;2", [[1], [2]]), ("1,2;", [[1, 2]]),
    ("[[1,2],[3,4]]", [[1, 2], [3, 4]]), ("0:4", [0, 1, 2, 3]), ("0:1:0.25", [0, 0.25, 0.5, 0.75]), ("3:0:-1", [3, 2, 1]),
    ("-1:2", [-1, 0, 1]), ("0:2*2", [0, 1, 2, 3]), ("ones(3)", [1, 1, 1]), ("2*pi", 2 * np.pi), (" 1 , 2 ", [1, 2]),
    ("-1,-2.5", [-1, -2.5]), ("1,2*3;3,4", [[1, 6], [3, 4]]), (".5,5.", [0.5, 5.0]), ("1_000", 1000), ("()", []), ("[]", []),
    ("[1,2][1]", 2), ("(1,2),(3,4)", [[1, 2], [3, 4]]), ("[ones(2), zeros(2)]", [[1, 1], [0, 0]]), ("sum([1.,2])", 3),
    ("inf", np.inf), ("-inf", -np.inf), ("1,inf,-inf", [1, np.inf, -np.inf]), ("1e400", np.inf), ("3:0", []),
]  # fmt: skip


@sweep(("text", "expected"), VALUES, parts=1)
def test_values(text: str, expected: object) -> None:
    found = read_value(text)
    assert found.tolist() == expected
    assert found.dtype is dtypes.float64
    assert not found.requires_grad


def test_dtypes() -> None:
    assert np.isnan(read_value("nan").item())
    assert read_value("1+2j").item() == 1 + 2j and read_value("1+2j").dtype is dtypes.complex128
    assert read_value("tensor([1,2])").dtype is dtypes.int64
    assert read_value("tensor([1,2], dtype=float32)").dtype is dtypes.float32
    assert read_value("True").dtype.name == "bool"
    assert read_value("3", dtype=dtypes.float32).dtype is dtypes.float32
    assert read_value("ones(2)", dtype=dtypes.float32).dtype is dtypes.float32
    assert dtypes.get_default_dtype() is dtypes.float64
    dtypes.set_default_dtype(dtypes.float32)
    assert read_value("1,2").dtype is dtypes.float32


def test_every_digit_counts() -> None:
    numbers = np.random.default_rng(0).standard_normal(5000) * 10.0 ** np.arange(-50, 50).repeat(50)
    for part in (numbers, numbers[:5]):
        text = ",".join(map(repr, part.tolist()))
        assert read_value(text).tolist() == part.tolist()
        assert read_value(f"[{text}]").tolist() == part.tolist()


def test_long_matrices() -> None:
    rows = np.random.default_rng(2).standard_normal((300, 4)).tolist()
    text = ";".join(",".join(map(repr, row)) for row in rows)
    for form in (text, text + ";", repr(rows), repr(rows).replace(" ", "")):
        assert read_value(form).tolist() == rows
    with pytest.raises(LanguageError, match="row 301 has 3 values, and row 1 has 4"):
        read_value(text + ";1,2,3")
    with pytest.raises(LanguageError):
        read_value(repr(rows)[:-1])
    assert read_value(repr(rows)[:-1] + ", [1, 2, 3, 2*2]]").tolist()[-1] == [1, 2, 3, 4]


def test_long_lists_with_something_else_in_them() -> None:
    text = "1," * 3000
    assert read_value(text).shape == (3000,)
    assert read_value(text + "2*3").tolist()[-1] == 6.0
    with pytest.raises(LanguageError):
        read_value(text + ",2")
    with pytest.raises(LanguageError):
        read_value(text + "2 3")


REFUSED = {
    "": "a value is missing here", "  ": "a value is missing here", "1,,2": "a value is missing between `,` and `,`",
    "1 2": "an operator is missing", "1,2;3": "row 2 has 1 value, and row 1 has 2", "[[1,2],[3]]": "not equally long",
    "[[1],2]": "not equally long", "[1,[2]]": "not equally deep", ",1": "cannot begin with `,`", "x": "name 'x' is not defined",
    "sni(2)": "name 'sni' is not defined", "x = 3": "a value is one expression", "sin": "this is a function",
    "'a'": "this is text", "10**400": "too large for a float", "[" * 90 + "1" + "]" * 90: "at most 64 dimensions", "['a']": "a tensor holds numbers", "0:": "a range is START:STOP", ":3": "a range is",
    "0:1:0": "this range never ends", "0:1:2:3": "a range is", "0:inf": "never ends", "1;;2": "a value is missing here",
    "012": "`012` is not a number", "1,012": "`012` is not a number", "2^3": "not a power", "@": "name is missing",
    "@nowhere.npy": "No such file", "@data.xyz": "No such file", "1/0": "division by zero", "9**9**9": "more than",
    "ones(-1)": "", "1,2;3,x": "name 'x' is not defined", "None": "this is nothing",
}  # fmt: skip


@sweep("text", REFUSED, parts=1)
def test_refused(text: str) -> None:
    with pytest.raises(LanguageError) as caught:
        read_value(text)
    assert caught.value.usage
    assert REFUSED[text] in caught.value.message


def test_carets_in_values() -> None:
    def caret(text: str) -> str:
        with pytest.raises(LanguageError) as caught:
            read_value(text)
        start, end = caught.value.span or (0, 0)
        assert caught.value.source == text
        return text[start:end]

    assert caret("1,2;3,sni(2)") == "sni"
    assert caret("1,2; 3") == "3"
    assert caret("1,,2") == ","
    assert caret("0:y") == "y"
    assert caret(" @nowhere.npy ") == "@nowhere.npy"


# -- files ------------------------------------------------------------------------------------------
def put(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return f"@{folder / name}"


def test_numpy_files(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(4))
    np.savez(tmp_path / "b.npz", u=np.ones((2, 2)), v=np.array([1j]))
    np.savez(tmp_path / "one.npz", w=np.array([True]))
    assert read_value(f"@{tmp_path}/a.npy").tolist() == [0, 1, 2, 3]
    assert read_value(f"@{tmp_path}/a.npy").dtype is dtypes.float64
    assert read_value(f"@{tmp_path}/b.npz:u").shape == (2, 2)
    assert read_value(f"@{tmp_path}/b.npz:v").dtype is dtypes.complex128
    assert read_value(f"@{tmp_path}/one.npz").dtype.name == "bool"
    for name, message in (("b.npz", "say which array"), ("b.npz:q", "no array 'q'")):
        with pytest.raises(LanguageError, match=message):
            read_value(f"@{tmp_path}/{name}")
    np.save(tmp_path / "o.npy", np.array([{}], dtype=object), allow_pickle=True)
    (tmp_path / "bad.npz").write_bytes(b"not a zip")
    for name in ("o.npy", "bad.npz"):
        with pytest.raises(LanguageError):
            read_value(f"@{tmp_path}/{name}")


TEXTS = [
    ("a.csv", "1,2\n3,4\n", [[1, 2], [3, 4]]), ("b.csv", "x,y\n1,2\n3,4", [[1, 2], [3, 4]]), ("c.csv", "1,2,3\n", [1, 2, 3]),
    ("d.csv", "1\n2\n3\n", [1, 2, 3]), ("e.csv", "# note\n1, 2 # here\n\n3,4\n", [[1, 2], [3, 4]]), ("f.tsv", "1\t2\n3\t4\n", [[1, 2], [3, 4]]),
    ("g.txt", "1 2\n3   4\n", [[1, 2], [3, 4]]), ("h.txt", "5\n", 5), ("i.txt", "1,2\n", [1, 2]), ("j.csv", "1,inf\n-inf,2\n", [[1, np.inf], [-np.inf, 2]]),
    ("k.json", "[[1, 2], [3, 4.5]]", [[1, 2], [3, 4.5]]), ("l.json", '{"value": [1, "inf"], "dtype": "float64"}', [1, np.inf]),
    ("m.json", "7", 7), ("n.csv", "\ufeff1,2\r\n3,4\r\n", [[1, 2], [3, 4]]), ("o.csv", "1+2j,1j\n", [1 + 2j, 1j]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "expected"), TEXTS)
def test_text_files(tmp_path: Path, name: str, text: str, expected: object) -> None:
    assert read_value(put(tmp_path, name, text)).tolist() == expected


def test_json_keys(tmp_path: Path) -> None:
    at = put(tmp_path, "a.json", json.dumps({"grads": {"x": {"grad": [1, 2]}}}))
    assert read_value(f"{at}:grads.x.grad").tolist() == [1, 2]
    for suffix in ("", ":y", ":grads.y"):
        with pytest.raises(LanguageError):
            read_value(at + suffix)


BROKEN = [
    ("a.csv", "1,2\n3,x\n", "line 2: `x` is not a number"), ("b.csv", "1,2\n\n3\n", "line 3: 1 value, and line 1 has 2"),
    ("c.csv", "1,,2\n", "line 1: a number is missing here"), ("d.txt", "", "is empty"), ("e.txt", "# only\n", "holds no numbers"),
    ("f.json", "[1,\n2,]", "line 2"), ("g.json", "[[1],[2,3]]", "not equally long"), ("h.json", '["a"]', "is not a number"),
    ("i.json", "[null]", "null is not a number"), ("j.txt", "1 2\n3 four\n", "line 2: `four` is not a number"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "message"), BROKEN)
def test_broken_files_name_the_line(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(LanguageError) as caught:
        read_value(put(tmp_path, name, text))
    assert message in caught.value.message and name in caught.value.message


def test_home_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    put(tmp_path, "h.txt", "1 2 3")
    assert read_value("@~/h.txt").tolist() == [1, 2, 3]


def test_standard_input() -> None:
    for text, expected in (
        ("1,2,3\n", [1, 2, 3]),
        ("1 2\n3 4\n", [[1, 2], [3, 4]]),
        ("[[1],[2]]", [[1], [2]]),
        ("2*pi\n", 2 * np.pi),
    ):
        assert read_value("-", stdin=io.StringIO(text)).tolist() == expected
    with pytest.raises(LanguageError, match="standard input is empty"):
        read_value("-", stdin=io.StringIO(""))


def test_large_texts_take_the_short_way(tmp_path: Path) -> None:
    rows = np.random.default_rng(1).standard_normal((2000, 3))
    at = put(tmp_path, "big.csv", "\n".join(",".join(map(repr, row)) for row in rows.tolist()))
    assert read_value(at).tolist() == rows.tolist()

"""`--math`: what people write, and how it is read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from gradcli import evaluate
from gradcli.language.located_errors import LanguageError
from gradcli.language.math_values import Known
from gradcli.language.mathematics import read_mathematics
from gradcli.language.parser import parses
from gradcli.language.translations import hint
from tests.sweep import sweep

ROWS = [
    tuple(line.split(" -> "))
    for line in (Path(__file__).parent / "mathematics.txt").read_text("utf-8").splitlines()
    if not line.startswith("#")
]
SHAPED = [
    tuple(line.split(" -> "))
    for line in (Path(__file__).parent / "mathematics_shapes.txt").read_text("utf-8").splitlines()
    if not line.startswith("# ") or line.startswith("# ->")
]


@sweep(("text", "read"), ROWS, parts=1)
def test_readings(text: str, read: str) -> None:
    if read.startswith("!! "):
        with pytest.raises(LanguageError) as refusal:
            read_mathematics(text, parses, {})
        assert refusal.value.message == read[3:]
        return
    found = read_mathematics(text, parses, {})
    assert str(found) == read
    assert found is not None and parses(found.written)


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        (r"\sum_i (w^T x_i - y_i)^2", {"w": "*", "x": "nm", "y": "n"}),
        (r"\sum_i \log(1 + e^{-y_i w^T x_i})", {"x": "nm", "y": "n", "w": "m"}),
        (r"\sum_i x_i^T A x_i", {"A": "**", "x": "nm"}),
        (r"\sum_i w_i x_i + b", {"w": "n", "x": "n", "b": ""}),
        (r"\|x - \mu\|^2", {"x": "*", "mu": "*"}),
        (
            r"\|y - \sigma(W_2 \sigma(W_1 x + b_1) + b_2)\|^2",
            {"y": "*", "W_2": "**", "W_1": "**", "x": "*", "b_1": "*", "b_2": "*"},
        ),
        (r"\|Xw + b - y\|^2", {"X": "**", "w": "*"}),  # b may be a number
        (r"\sum_i \|W x_i + b - y_i\|^2", {"W": "**", "x": "**", "b": "*", "y": "**"}),
        (r"\|Xw-y\|^2 + C\|w\|^2", {"X": "**", "w": "*", "C": ""}),
        (r"\|Y - X\beta\|^2", {"Y": "*", "X": "**", "beta": "*"}),
    ],
)
def test_shapes_that_a_text_says(text: str, shapes: dict[str, str]) -> None:
    found = read_mathematics(text, parses, {})
    assert found is not None
    assert {n: "".join(s) for n, s in found.shapes.items()} == shapes


def shapes(text: str) -> dict[str, Known]:
    """What `A=2,2 n=*3` says: shapes, and after a star a whole number."""
    found = {}
    for part in text.split() if text != "-" else ():
        name, _, sizes = part.partition("=")
        whole = int(sizes[1:]) if sizes.startswith("*") else None
        listed = () if whole is not None else tuple(int(n) for n in sizes.split(",") if n)
        found[name] = Known(listed, whole)
    return found


@sweep(("text", "given", "read"), SHAPED, parts=1)
def test_readings_by_shapes(text: str, given: str, read: str) -> None:
    known = shapes(given)
    bound = dict.fromkeys(known, False)
    if read.startswith("!! "):
        with pytest.raises(LanguageError) as refusal:
            read_mathematics(text, parses, bound, known=known.get)
        assert refusal.value.message == read[3:]
        return
    found = read_mathematics(text, parses, bound, text.startswith("z_i ="), known.get)
    assert str(found) == read
    assert found is not None and parses(found.written)


@pytest.mark.parametrize(
    "text", ["x**2", "sin(x)*y", "x % 3", "[x, y]", "def f(x): return x\nf(2)", "x.sum()"]
)
def test_what_is_right_stays(text: str) -> None:
    assert read_mathematics(text, parses, {}) is None


def test_names_with_values_mean_what_they_are() -> None:
    assert str(read_mathematics("2 sinx", parses, {"sinx": False})) == "2*sinx"
    assert str(read_mathematics("2f(x)", parses, {"f": False})) == "2*f*(x)"
    assert str(read_mathematics("y = x^2", parses, {}, equation=True)) == "y == x**2"


# A value as (how mathematics writes it, how the language does, whether it is a sum or has a sign).
_LEAVES = st.sampled_from(
    [("x", "x", False), ("y", "y", False), ("2", "2.0", False), ("π", "pi", False)]
)


def _grown(
    parts: st.SearchStrategy[tuple[str, str, bool]],
) -> st.SearchStrategy[tuple[str, str, bool]]:
    def closed(part: tuple[str, str, bool]) -> str:
        return f"({part[0]})" if part[2] or len(part[0]) > 1 else part[0]

    def joined(
        how: str, a: tuple[str, str, bool], b: tuple[str, str, bool]
    ) -> tuple[str, str, bool]:
        written = {
            "+": f"{a[0]} + {closed(b)}",
            "-": f"{a[0]} − {closed(b)}",
            " ": f"{closed(a)} {closed(b)}"
            if not b[0][0].isdigit()
            else f"{closed(a)}·{closed(b)}",
            "/": rf"\frac{{{a[0]}}}{{{b[0]}}}",
            "^": f"{closed(a)}^2",
            "|": rf"\lvert {a[0]}\rvert",
            "s": f"sin {closed(a)}",
            "²": f"cos²({a[0]})",
        }[how]
        first, second = f"({a[1]})", f"({b[1]})"
        meant = {
            "+": f"{first} + {second}", "-": f"{first} - {second}", " ": f"{first}*{second}",
            "/": f"{first}/{second}", "^": f"{first}**2", "|": f"abs({a[1]})",
            "s": f"sin({a[1]})", "²": f"cos({a[1]})**2",
        }[how]  # fmt: skip
        return written, meant, how in "+-"

    return st.builds(joined, st.sampled_from("+- /^|s²"), parts, parts)


@given(st.recursive(_LEAVES, _grown, max_leaves=8))
def test_values_are_those_that_are_meant(value: tuple[str, str, bool]) -> None:
    text, meant, _ = value
    found = read_mathematics(text, parses, {"x": False, "y": False})
    written = text if found is None else found.written
    point = {"x": 0.7, "y": -1.3}
    try:
        evaluate(f"{meant} + 0*x*y", **point)
    except LanguageError:
        reject()  # two numbers that are 0 below a line
    results = [np.float64(evaluate(f"{e} + 0*x*y", **point)) for e in (written, meant)]
    assert np.allclose(*results, rtol=1e-5, equal_nan=True), (text, written, meant)


_SIGNS = (
    r"x|y|A|2|0.5|(|)|[|]|{|}|‖|^|'|²|ᵀ|⁻¹|\frac|\sum|_|=|+|-|*|/|·|!|sin|ln |%|of|if|else|?|:|,|√|½|"
    r"\mathbf|\alpha|lambda|e|π|T|f|.|$|@|<|and|\left|∛|∞|log_2|in|&&| |;"
).split("|")


@given(st.lists(st.sampled_from([*_SIGNS, "|"]), max_size=12).map("".join))
def test_anything_is_read_or_refused(text: str) -> None:
    try:
        found = read_mathematics(text, parses, {"x": False})
    except LanguageError as refusal:
        assert refusal.message and refusal.source == text
    else:
        assert found is None or parses(found.written)
    hint(text, parses, {"x": False})


def test_deep_nests_are_refused() -> None:
    with pytest.raises(LanguageError, match="nests too deeply"):
        read_mathematics("sin " * 900 + "x", parses, {})

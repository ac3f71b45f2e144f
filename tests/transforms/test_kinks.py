"""Where a program has no derivative, by the switches that operators declare, and what others take there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradcli import language
from gradcli.engine.registry import table
from gradcli.engine.system import dtypes
from gradcli.transforms import kinks, other_systems, recorded_answers
from gradcli.transforms.verdicts import function_of

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture(autouse=True)
def in_double() -> Any:
    before = dtypes.get_default_dtype()
    dtypes.set_default_dtype(dtypes.float64)
    yield
    dtypes.set_default_dtype(before)


def watched(source: str, **values: str) -> kinks.Watched:
    arrays = {n: language.read_value(t).array for n, t in values.items()}
    return kinks.Watched(function_of(language.parse(source), {}), arrays, list(arrays))


def sides(run: kinks.Watched) -> list[tuple[Any, ...]]:
    """(variable, index, slope to the left, to the right, the gradient, what it is)."""
    return [
        (
            one.name,
            s.index,
            pytest.approx(s.left),
            pytest.approx(s.right),
            s.taken,
            "exists" if s.exists else "jump" if s.jump else "kink",
        )
        for one in run.findings()
        for s in one.sides
    ]


R3 = 3**-0.5
FOUND: list[tuple[str, dict[str, str], list[Any]]] = [
    ("abs(x)", {"x": "0"}, [("x", (), -1, 1, 0, "kink")]),
    ("abs(x - 1)*3", {"x": "1"}, [("x", (), -3, 3, 0, "kink")]),
    ("-abs(x)", {"x": "0"}, [("x", (), 1, -1, 0, "kink")]),
    ("relu(relu(x))", {"x": "0"}, [("x", (), 0, 1, 0, "kink")]),
    ("relu(-relu(-x))", {"x": "0"}, []),
    ("exp(relu(2*x))", {"x": "0"}, [("x", (), 0, 2, 0, "kink")]),
    ("relu(x) - relu(-x)", {"x": "0"}, [("x", (), 1, 1, 0, "exists")]),
    ("x*sign(x) + abs(x)", {"x": "0"}, [("x", (), -2, 2, 0, "kink")]),
    ("maximum(x, 2*y)", {"x": "2", "y": "1"},
     [("x", (), 0, 1, 0.5, "kink"), ("y", (), 0, 2, 1, "kink")]),
    ("sum(max(A, 1).values)", {"A": "1,1;2,3"},
     [("A", (0, 0), 0, 1, 1, "kink"), ("A", (0, 1), 0, 1, 0, "kink")]),
    ("amin(x, 0)", {"x": "1,1,4"},
     [("x", (0,), 1, 0, 0.5, "kink"), ("x", (1,), 1, 0, 0.5, "kink")]),
    ("clamp(x, 0, 1)", {"x": "1"}, [("x", (), 1, 0, 1, "kink")]),
    ("norm(x)", {"x": "0,0"}, [("x", (0,), -1, 1, 0, "kink"), ("x", (1,), -1, 1, 0, "kink")]),
    ("norm(x, 1)", {"x": "0,-2"}, [("x", (0,), -1, 1, 0, "kink")]),
    ("std(x)", {"x": "1,1,1"}, [("x", (k,), -R3, R3, 0, "kink") for k in range(3)]),
    ("floor(x)", {"x": "2"}, [("x", (), 0, 0, 0, "jump")]),
    ("x % 2", {"x": "4"}, [("x", (), 1, 1, 1, "jump")]),
    ("fmod(x, 2)", {"x": "0"}, []),  # its sign is that of x
    ("sum(sort(x, descending=True).values*tensor([1., 2.]))", {"x": "2,2"},
     [("x", (0,), 2, 1, 1, "kink"), ("x", (1,), 2, 1, 2, "kink")]),
    ("kthvalue(x, 2).values", {"x": "1,1,0"},
     [("x", (0,), 1, 0, 1, "kink"), ("x", (1,), 1, 0, 0, "kink")]),
    ("nn.functional.prelu(x, w)", {"x": "0,", "w": "0.25,"}, [("x", (0,), 0.25, 1, 0.25, "kink")]),
    ("nn.functional.threshold(x, 1., 1.)", {"x": "1"}, [("x", (), 0, 1, 0, "kink")]),
    ("nn.functional.elu(x)", {"x": "0"}, []),  # smooth with this alpha
]  # fmt: skip


@pytest.mark.parametrize(("source", "values", "expected"), FOUND, ids=[f[0] for f in FOUND])
def test_slopes_to_both_sides(source: str, values: dict[str, str], expected: list[Any]) -> None:
    run = watched(source, **values)
    if "prelu" in source:
        run.wrt = ["x"]
    assert [f for f in sides(run) if f[0] in ("x", "y", "A")] == expected


SILENT = [
    ("relu(x)**2", {"x": "0"}),  # no gradient reaches it
    ("abs(x)**3", {"x": "0"}),
    ("0*abs(x)", {"x": "0"}),
    ("abs(x**2)", {"x": "0"}),  # the slopes are the same
    ("abs(x).detach() + x", {"x": "0"}),
    ("max(x)", {"x": "1,2,3"}),
    ("relu(x)", {"x": "-1"}),
    ("prod(x)", {"x": "2,0,3"}),  # smooth
    ("x**2.0", {"x": "0"}),
    ("sinc(x)", {"x": "0"}),
]


@pytest.mark.parametrize(("source", "values"), SILENT, ids=[s[0] for s in SILENT])
def test_nothing_is_said_where_there_is_a_derivative(source: str, values: dict[str, str]) -> None:
    assert watched(source, **values).findings() == []


def test_no_point_off_every_switch_is_noted() -> None:
    rng = np.random.default_rng(5)
    programs = ["abs(x)", "relu(x)", "maximum(x, 0.3)", "clamp(x, -0.5, 0.5)", "floor(x)", "x % 2"]
    for number in range(200):
        value = float(rng.normal())
        run = watched(programs[number % len(programs)], x=repr(value))
        assert not run.crossings and not run.findings()


def test_many_elements_are_counted_and_few_are_looked_at() -> None:
    (found,) = watched("sum(relu(x))", x="zeros(100000)").findings()
    assert (found.count, found.size) == (100_000, 100_000)
    assert len(found.sides) <= kinks.MOST


# -- other systems --------------------------------------------------------------------------------
RUN = [q for q in recorded_answers.questions() if q.order == 1 and q.program != "cbrt(x)"]
# The answers that no rule of one operator gives: a system rewrites the program, or drops what is 0.
WHOLE = {"Q10", "Q14", "Q15", "Q18", "Q18b", "Q25", "Q27b", "Q29", "Q29d", "Q30", "K18", "K19"}


@pytest.mark.parametrize("asked", RUN, ids=[q.id for q in RUN])
def test_rules_give_what_each_system_answers(asked: recorded_answers.Question) -> None:
    run = watched(asked.program, **asked.point)
    for which in recorded_answers.systems():
        answer = recorded_answers.number_of(asked.answers.get(which.id, "-"))
        found = other_systems.like(run, which)
        if answer is None or not found.known:
            continue
        made = [run.outputs[0].array if n == "value" else found.grads[n] for n in asked.asks]
        got = np.asarray(made[0] if len(made) == 1 else made)
        answer = np.broadcast_to(answer, got.shape) if np.ndim(answer) == 0 else np.asarray(answer)
        if asked.id not in WHOLE or (which.id == "jax" and asked.id != "K18"):
            assert recorded_answers.same(got, answer), (which.id, got, answer)


def test_every_question_that_a_switch_asks_is_recorded() -> None:
    table.load()
    known = {q.id for q in recorded_answers.questions()}
    texts = set()
    for primitive in table.PRIMITIVES:
        for point in primitive.switch or ():
            asked = point.asked
            texts |= set() if callable(asked) else set(asked.replace("=", " ").split())
    named = {t.partition("[")[0] for t in texts if t[:1] in "QK"}
    assert named and named <= known


@pytest.mark.parametrize(
    ("word", "wanted"),
    [
        ("jax", "jax"), ("JAX", "jax"), ("jax-0.10", "jax"), ("torch", "torch-2.14"),
        ("torch-2.13", "torch-2.13"), ("pytorch-2.14", "torch-2.14"), ("pytensor", "pytensor"),
        ("pytensor-3.0", "pytensor-3.0"), ("num-dual", "num-dual"), ("paddlepaddle", "paddle"),
        ("jax-0.9", None), ("keras", None),
    ],
)  # fmt: skip
def test_systems_by_their_names(word: str, wanted: str | None) -> None:
    found = recorded_answers.system(word)
    assert (found and found.id) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("0", 0.0), ("[0.5, 0.5]", [0.5, 0.5]), ("-inf", -np.inf), ("[nan, 0]", [np.nan, 0]),
        ("[[4, -2], [-2, 1]]", [[4, -2], [-2, 1]]), ("0; without rewrites: nan", 0.0),
        ("[1, 0] (as Python's max)", [1, 0]), ("4.6629e-15", 4.6629e-15),
        ("raises ZeroDivisionError for a Python float; for an array: inf", np.inf),
        ("raises TypeError: bad", None), ("-", None), ("zoo", None), ("2*DiracDelta(0)", None),
        ("[a Derivative, unevaluated]", None), ("[-4, 2.7 + 12.5*I]", None),
    ],
)  # fmt: skip
def test_answers_as_numbers(text: str, wanted: Any) -> None:
    found = recorded_answers.number_of(text)
    assert found is None if wanted is None else recorded_answers.same(found, wanted)


# -- versions of PyTorch --------------------------------------------------------------------------
VERSIONS = json.loads((GOLDEN / "version_facts.json").read_text(encoding="utf-8"))
# A determinant's gradient is another one where it is recorded (create_graph).
FIRST = [
    q
    for q in VERSIONS["2.14.1"]
    if q.endswith((" | x.grad", " | y.grad")) and not q.startswith("det(")
]


@pytest.mark.parametrize("version", ["2.13.0", "2.14.1"])
def test_what_was_recorded_of_versions_agrees(version: str) -> None:
    """Two files were recorded apart: rules of PyTorch made of the one give the answers of the other."""
    which = recorded_answers.system(f"torch-{version[:4]}")
    assert which is not None
    compared = set()
    for question in FIRST:
        source, given, asked = question.split(" | ")
        try:
            values = {
                n: language.read_value(t).array.astype(float)
                for n, t in re.findall(r"(\w) = ([^=]+?)(?:, (?=\w = )|$)", given)
            }
            run = kinks.Watched(
                function_of(language.parse(source), {}), values, list(values),
                np.ones(()) if len(values) else None,
            )  # fmt: skip
        except (language.LanguageError, RuntimeError, TypeError):
            continue
        found = other_systems.like(run, which, source)
        answer = recorded_answers.number_of(VERSIONS[version][question])
        name = asked.partition(".")[0]
        if answer is None or found.grads.get(name) is None or not run.crossings:
            continue
        close = np.allclose(found.grads[name], answer, rtol=1e-5, atol=0, equal_nan=True)
        assert close, (question, found.grads[name])
        compared.add(source)
    assert {"clamp(x, 0, 1)", "fmax(x, y)", "maximum(x, y)", "relu(x)"} <= compared

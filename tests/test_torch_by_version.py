"""What versions of PyTorch answer differently: recorded by running them, told by `ops`."""

from __future__ import annotations

import importlib
import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import gradcli
from gradcli.cli import main
from gradcli.engine.registry import version_facts
from gradcli.transforms import kinks as kink_facts
from tests.golden import by_version, record_version_facts
from tests.sweep import sweep

QUESTIONS = record_version_facts.questions()
RECORDED = json.loads(record_version_facts.RECORDED.read_text(encoding="utf-8"))
# Where gradcli's answer is another than the reference's, and why.
DIFFERENT = {
    "sinc(x) | x = 0 | x.grad.grad": "PyTorch's second derivative at 0 is nan",
    "logdet(x) | x = [[1, 2], [2, 4]] | x.grad": "PyTorch's solver refuses a singular matrix",
    "linalg.slogdet(x)[1] | x = [[1, 2], [2, 4]] | x.grad": "PyTorch's solver refuses a singular matrix",
}


@sweep("question", QUESTIONS)
def test_gradcli_answers_as_the_reference(question: str) -> None:
    found = record_version_facts.answer(question, gradcli)
    expected = RECORDED[version_facts.REFERENCE][question]
    if question in DIFFERENT:
        assert found != expected
    elif "Error: " in expected:  # the same refusal; words are for the tests of refusals
        assert found.partition(":")[0] == expected.partition(":")[0]
    else:
        assert found == expected


def test_the_package_tells_what_was_recorded() -> None:
    text = record_version_facts.TOLD.read_text(encoding="utf-8")
    assert text == record_version_facts.as_text(record_version_facts.told(RECORDED))
    assert all(list(answers) == QUESTIONS for answers in RECORDED.values())
    assert version_facts.versions() == list(RECORDED)


@pytest.mark.needs("torch")
def test_the_installed_torch_still_answers_so() -> None:
    torch = importlib.import_module("torch")
    known = RECORDED.get(by_version.version())
    said = {question: record_version_facts.answer(question, torch) for question in QUESTIONS}
    if known is None:
        by_version.tell("version_facts.json", [q for q in said if said[q] != RECORDED["2.13.0"][q]])
    else:
        assert said == known


@pytest.mark.parametrize(
    "name, lines",
    [
        (
            "clamp",
            [
                "clamp(x, 0, 1) at x = 0: x.grad is 1 up to PyTorch 2.13.0; 0 from 2.14.1",
                "clamp(x, y) at x = 1, y = 1: y.grad is 0 up to PyTorch 2.13.0; 0.5 from 2.14.1",
            ],
        ),
        (
            "F.hinge_embedding_loss",
            [
                "hinge_embedding_loss(x, y) at x = 1, y = -1: x.grad is -1 up to PyTorch 2.13.0; 0 from "
                "2.14.1"
            ],
        ),
        (
            "cdist",
            [
                "cdist(x, y) at x = [[1, 2]], y = [[4, 6]]: x.grad differentiated again is refused "
                "(NotImplementedError) up to PyTorch 2.13.0; [[0.032, -0.024]] from 2.14.1"
            ],
        ),
        ("arange", ["arange(3.5, dtype=int64): the value is [0, 1, 2] up to PyTorch 2.13.0; [0, 1, 2, 3] "
                    "from 2.14.1"]),
        ("atan2", ["atan2(x, y) at x = 0, y = 0: x.grad is nan up to PyTorch 2.9.1; 0 from 2.10.0"]),
    ],
)  # fmt: skip
def test_ops_tells_every_versions_answer(name: str, lines: list[str]) -> None:
    done = CliRunner().invoke(main, ["ops", name])
    told = [line for line in done.stdout.splitlines() if line.startswith("  by version")]
    assert [line.removeprefix("  by version  ") for line in told if line[14:] in lines] == lines
    rows = json.loads(CliRunner().invoke(main, ["ops", name, "--json"]).stdout)["versions"]
    assert len(rows) == len(told) and set(rows[0]["answers"]) == set(RECORDED)


def test_ops_says_nothing_of_what_all_versions_answer_alike() -> None:
    assert "by version" not in CliRunner().invoke(main, ["ops", "maximum"]).stdout
    assert json.loads(CliRunner().invoke(main, ["ops", "sin", "--json"]).stdout)["versions"] == []


def test_it_agrees_with_what_was_recorded_of_kinks() -> None:
    """Where both records ask the same, PyTorch 2.13 and 2.14 say the same."""
    kinks = json.loads(Path(kink_facts.__file__).with_suffix(".json").read_text(encoding="utf-8"))
    asked = {}
    for question in QUESTIONS:
        program, point, what = record_version_facts.parts(question)
        asked[program, str(point), what] = question
    compared = 0
    for row in kinks["questions"]:
        for k, name in enumerate(row["asks"]):
            question = asked.get((row["program"], str(row["point"]), f"{name}.grad"))
            for version in ("2.13.0", "2.14.1") if question else ():
                said = row["answers"][f"torch-{version[:4]}"].strip("[]").split(", ")
                compared += 1
                assert said[k] == RECORDED[version][question], (question, version)
    assert compared >= 20


FOLDERS = sorted(by_version.HERE.glob("torch-*"))


@pytest.mark.parametrize("path", [p for f in FOLDERS for p in sorted(f.iterdir())], ids=str)
def test_what_a_version_changed_stands_beside_the_reference(path: Path) -> None:
    """Every place that is said to have changed is there, and is otherwise in the reference."""
    reference = by_version.load(by_version.HERE / path.name)
    for question, changed in json.loads(path.read_text(encoding="utf-8")).items():
        assert changed
        for place, new in changed.items():
            assert by_version.at(reference[question], place) != new, (question, place)


def test_places_of_an_answer() -> None:
    old = {"a": [1.0, {"b": "x 1.00"}], "c": float("nan")}
    new = {"a": [1.0 + 1e-9, {"b": "x 1.01"}], "c": float("nan")}
    assert dict(by_version.places(old, new)) == {"a[1].b": "x 1.01"}
    assert by_version.at(old, "a[1].b") == "x 1.00" and by_version.at(3, "") == 3
    assert dict(by_version.places([1], [1, 2])) == {"": [1, 2]}
    assert dict(by_version.places({"q": "tensor([1, 2])"}, {"q": "tensor([1, 3])"})) == {
        "q": "tensor([1, 3])"
    }


@pytest.mark.parametrize(
    "version, differing, fails, warns",
    [
        ("2.13.0", [], False, False),
        ("2.13.0", ["torch.clamp(x, 0.5, 1.5)"], True, False),
        ("2.14.1", ["torch.clamp(x, 0.5, 1.5)"], False, False),
        ("2.14.1", ["torch.sin(x)"], True, False),
        ("2.99.0", ["torch.sin(x)"], False, True),
        ("2.99.0", [], False, False),
    ],
)
def test_a_version_nobody_has_asked_fails_nothing_and_is_told(
    version: str, differing: list[str], fails: bool, warns: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def settled() -> Any:
        by_version.settle("graphs.json", differing)

    monkeypatch.setattr(by_version, "version", lambda: version)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if fails:
            with pytest.raises(AssertionError):
                settled()
        else:
            settled()
    assert bool(caught) == warns
    if caught:
        assert "PyTorch 2.99.0 changed 1 facts of graphs.json" in str(caught[0].message)

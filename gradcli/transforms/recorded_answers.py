"""Derivatives where there is none, as other systems answered when they were asked.

The data beside this file has the systems with their versions, where their rules are written, and what
changed between releases; and the questions, each a program at a point, with the answer of every system that
has such a function.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

OURS = "torch-2.13"  # whose rules gradcli has
DATA = Path(__file__).with_name("kinks.json")


class System(NamedTuple):
    """One system, as it was run. id: what --like takes. label: with its whole version and platform."""

    id: str
    label: str
    name: str
    version: str
    source: str
    rules: str
    versions_run: str
    changed: str

    @property
    def title(self) -> str:
        """Its name with as much of the version as tells releases apart."""
        parts = self.version.split(".")
        return f"{self.name} {'.'.join(parts[:3] if parts[:2] == ['0', '0'] else parts[:2])}"


class Question(NamedTuple):
    """A program at a point, and what each system answers by id.

    asks: the variables whose gradients the answer lists, in order; `value` for the value. operators: those
    that the question is about, by their public names.
    """

    id: str
    text: str
    program: str
    point: Mapping[str, str]
    asks: Sequence[str]
    order: int
    operators: Sequence[str]
    answers: Mapping[str, str]


@cache
def _data() -> tuple[dict[str, System], dict[str, Question]]:
    found = json.loads(DATA.read_text(encoding="utf-8"))
    systems = [System(**s) for s in found["systems"]]
    questions = [
        Question(
            *(q["id"], q["question"], q["program"], q["point"]),
            *(q["asks"], q.get("order", 1), q["operators"], q["answers"]),
        )
        for q in found["questions"]
    ]
    return {s.id: s for s in systems}, {q.id: q for q in questions}


def systems() -> list[System]:
    """All systems that were run."""
    return list(_data()[0].values())


def questions() -> list[Question]:
    """All questions that were put to them."""
    return list(_data()[1].values())


def question(text: str) -> Question:
    """The question of a text as "Q9[1]"."""
    return _data()[1][text.partition("[")[0]]


def system(word: str) -> System | None:
    """The system that a word means: its id, its name, or its name and version; the newest of several."""
    wanted = word.strip().lower().replace(" ", "-").replace("pytorch", "torch")
    known = _data()[0]
    if wanted in known:
        return known[wanted]
    for one in reversed(list(known.values())):
        name = "torch" if one.name == "PyTorch" else re.sub(r"-[\d.]+$", "", one.id)
        if wanted in (name, one.label.split()[0]):
            return one
        bare, _, version = wanted.rpartition("-")
        if bare == name and version and f"{one.version}.".startswith(f"{version}."):
            return one
    return None


NUMBER = r"(?:-?(?:inf|nan|\d+(?:\.\d*)?(?:e[-+]?\d+)?))"
NUMBERS = re.compile(rf"[\[\], ]*{NUMBER}(?:[\[\], ]+{NUMBER})*[\[\] ]*")


def number_of(answer: str) -> Any:
    """An answer as a number or nested lists of them; None if it is neither.

    Where two are recorded it is the usual one: with rewrites, for an array.
    """
    text = answer.partition("for an array: ")[2] or answer
    text = re.sub(r" \(.*", "", text.partition(";")[0])
    if not NUMBERS.fullmatch(text):
        return None
    return json.loads(
        re.sub(
            r"-?\b(?:inf|nan)\b", lambda m: _JSON[m[0].removeprefix("-")].join(_sign(m[0])), text
        )
    )


_JSON = {"inf": "Infinity", "nan": "NaN"}


def _sign(word: str) -> tuple[str, str]:
    return ("-" if word == "-inf" else "", "")


def same(a: Any, b: Any) -> bool:
    """Whether two answers are the same numbers, NaN included."""
    if a is None or b is None or np.shape(a) != np.shape(b):
        return False
    return bool(np.allclose(a, b, rtol=1e-8, atol=1e-12, equal_nan=True))


def values_at(asked: Question) -> dict[str, Any]:
    """The point of a question, as lists of numbers."""
    made = {n: json.loads(f"[{t}]" if t[:1] != "[" else t) for n, t in _finite(asked).items()}
    return {n: v if len(v) > 1 or "[" in asked.point[n] else v[0] for n, v in made.items()}


def _finite(asked: Question) -> dict[str, str]:
    return {n: t.replace("inf", "Infinity") for n, t in asked.point.items()}


def differing(which: System) -> list[Question]:
    """The questions to which a system has another answer than gradcli, which answers as PyTorch 2.13."""
    found = []
    for one in questions():
        theirs, ours = (number_of(one.answers.get(n, "-")) for n in (which.id, OURS))
        if ours is not None and theirs is not None and not same(theirs, ours):
            found.append(one)
    return found


def groups(asked: Question) -> dict[str, list[System]]:
    """The systems by what they answer; those that have no such function are left out."""
    found: dict[str, list[System]] = {}
    for one in systems():
        answer = asked.answers.get(one.id, "-")
        if not answer.startswith("-") or number_of(answer) is not None:
            found.setdefault(answer, []).append(one)
    return found

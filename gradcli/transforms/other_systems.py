"""What other systems take where there is no derivative: recorded answers, and gradients by their rules.

`kinks.json` has questions that were put to each system, with what it answered. An operator's declaration
names the questions about its switch; a system's rule there is ours with the recorded answer in its place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gradcli.engine.core.switch import JUMP, KINK, MISSED, Theirs, part_of
from gradcli.language import parse
from gradcli.language.program import Program
from gradcli.transforms.kinks import Crossing, Watched

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

    asks: the variables whose gradients the answer lists, in order; `value` for the value.
    """

    id: str
    text: str
    program: str
    point: Mapping[str, str]
    asks: Sequence[str]
    order: int
    answers: Mapping[str, str]


@cache
def _data() -> tuple[dict[str, System], dict[str, Question]]:
    found = json.loads(DATA.read_text(encoding="utf-8"))
    systems = [System(**s) for s in found["systems"]]
    questions = [
        Question(
            *(q["id"], q["question"], q["program"], q["point"]),
            *(q["asks"], q.get("order", 1), q["answers"]),
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


def rule_of(which: System, asked: str) -> Theirs | str | None:
    """The rule of a system where an operator's declaration asks: "" for ours, None if it was not run.

    A text is what the system says instead of a number.
    """
    found = question(asked)
    answer = found.answers.get(which.id)
    whole = None if answer is None else number_of(answer)
    if answer is None or whole is None:
        return None if answer is None or answer.startswith("-") else answer
    number = part_of(whole, asked)
    if same(number, part_of(number_of(found.answers[OURS]), asked)):
        return ""
    return Theirs(whole, number, values_at(found))


class Like:
    """The gradients of a program as a system has them.

    grads: by name, None where that is not known. unknown: operators whose rule was not run there. words: by
    operator, what it says instead of a number. recorded: whether this very program was run there.
    """

    __slots__ = ("grads", "recorded", "system", "unknown", "words")

    def __init__(self, which: System, grads: Mapping[str, Any]) -> None:
        self.system = which
        self.grads: dict[str, Any] = dict(grads)
        self.unknown: list[str] = []
        self.words: dict[str, str] = {}
        self.recorded = False

    @property
    def known(self) -> bool:
        """Whether the gradients are the system's."""
        return not (self.unknown or self.words)

    def reason(self) -> str:
        """Why they are not known."""
        if self.words:
            return "; ".join(dict.fromkeys(self.words.values()))
        return f"its rule for {', '.join(self.unknown) or 'this'} was not run"


def like(watched: Watched, which: System) -> Like:
    """The gradients of a run with this system's rules on the switches."""
    unknown: dict[str, None] = {}
    words: dict[str, str] = {}

    def rule(crossing: Crossing, name: str, g: Any, own: Any) -> Any:
        asked = crossing.point.questions(crossing.call).get(name)
        if asked is None:
            if crossing.point.kind in (KINK, JUMP, MISSED) or not crossing.point.asked:
                unknown[crossing.name] = None
            return own
        theirs = rule_of(which, asked)
        if theirs is None:
            unknown[crossing.name] = None
        elif isinstance(theirs, str):
            if theirs:
                words[crossing.name] = theirs
        else:
            return crossing.point.pulled(crossing.call, g, name, own, theirs)
        return own

    grads = watched.gradients(rule)
    found = Like(which, grads if not (unknown or words) else dict.fromkeys(grads))
    found.unknown, found.words = list(unknown), words
    return found


def recorded(program: Program, values: Mapping[str, Any], order: int) -> Question | None:
    """The question that is this very program at this very point, whatever its layout."""
    shape = _shape(program)
    for one in questions():
        alike = one.order == order and one.point.keys() == values.keys()
        if alike and _is_at(one, values) and _shape(parse(one.program)) == shape:
            return one
    return None


def _is_at(asked: Question, values: Mapping[str, Any]) -> bool:
    at = values_at(asked)
    return all(
        np.array_equal(values[n], np.asarray(at[n], values[n].dtype), equal_nan=True) for n in at
    )


def _shape(program: Program) -> Any:
    """A program without its spelling and layout."""
    return [(kind, repr(meaning), count) for kind, meaning, count, _ in program.walk()]


def recorded_gradients(asked: Question, which: System, leaves: Mapping[str, Any]) -> Like:
    """What a system answered to a question, by variable."""
    found = Like(which, dict.fromkeys(leaves))
    found.recorded = True
    answer = asked.answers[which.id]
    numbers = number_of(answer)
    if numbers is None:
        if answer.startswith("-"):
            found.unknown = ["it, which it does not have,"]
        else:
            found.words = {asked.program: answer}
        return found
    parts = [numbers] if len(asked.asks) == 1 else numbers
    for name, part in zip(asked.asks, parts, strict=True):
        if name in found.grads:
            own = leaves[name]
            found.grads[name] = np.broadcast_to(np.asarray(part, own.dtype), own.shape)[()]
    return found

"""What PyTorch answers differently by its version: `version_facts.json`, recorded by running each.

tests/golden/record_version_facts.py puts the questions of version_facts.txt to every version; what all answer
alike is not told.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

REFERENCE = "2.13.0"  # whose answers are gradcli's own
WORDS = {"node": "the node", "value": "the value"}


class Fact(NamedTuple):
    """A program at a point, what is asked of it, and the answers by version, oldest first.

    asked: `x.grad` of the sum of its elements, `x.grad.grad` of the sum of that, `value`, or the `node`
    that made it.
    """

    program: str
    point: dict[str, str]
    asked: str
    answers: dict[str, str]

    @property
    def function(self) -> str:
        """The name of the function that is called."""
        return self.program.partition("(")[0]

    def __str__(self) -> str:
        where = ", ".join(f"{name} = {value}" for name, value in self.point.items())
        told = "; ".join(f"{_short(answer)} {when}" for answer, when in self._spans())
        at = f" at {where}" if where else ""
        what = WORDS.get(self.asked) or self.asked.replace(
            ".grad.grad", ".grad differentiated again"
        )
        return f"{self.program}{at}: {what} is {told}"

    def _spans(self) -> Iterable[tuple[str, str]]:
        """Each answer with the versions that give it."""
        versions = list(self.answers)
        firsts = [
            k
            for k, v in enumerate(versions)
            if not k or self.answers[versions[k - 1]] != self.answers[v]
        ]
        for first, after in zip(firsts, [*firsts[1:], len(versions)], strict=True):
            low, high = versions[first], versions[after - 1]
            if first == 0:
                yield self.answers[low], f"up to PyTorch {high}"
            elif after == len(versions):
                yield self.answers[low], f"from {low}"
            else:
                yield self.answers[low], f"in {low}" if low == high else f"from {low} to {high}"


def _short(answer: str) -> str:
    """The kind of an error says enough."""
    refused = re.match(r"(\w+Error): ", answer)
    return f"refused ({refused[1]})" if refused else answer


@cache
def _read() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
    return found


def versions() -> list[str]:
    """The versions that were asked, oldest first."""
    return list(_read()["versions"])


def facts() -> list[Fact]:
    """All that changed."""
    return [Fact(**row) for row in _read()["facts"]]


def facts_of(names: Iterable[str]) -> list[Fact]:
    """What changed about a function, under all its names."""
    bare = {name.rpartition("functional.")[2] for name in names}
    return [fact for fact in facts() if fact.function in bare]

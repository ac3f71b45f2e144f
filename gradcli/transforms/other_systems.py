"""What other systems take where there is no derivative: recorded answers, and gradients by their rules.

Questions were put to each system, and its answers recorded (`recorded_answers`). An operator's
declaration names the questions about its switch; a system's rule there is ours with the recorded answer in
its place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.engine.core.switch import JUMP, KINK, MISSED, Theirs, part_of
from gradcli.engine.registry.table import FUNCTIONS
from gradcli.language import parse
from gradcli.language.program import Program
from gradcli.transforms.kinks import Crossing, Watched
from gradcli.transforms.recorded_answers import (
    OURS,
    Question,
    System,
    number_of,
    question,
    questions,
    same,
    values_at,
)


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


def has_rules_of_its_own(watched: Watched, which: System) -> bool:
    """Whether a system takes something else than PyTorch 2.13 at a switch that a run has met."""
    return any(
        asked is not None and isinstance(rule_of(which, asked), Theirs)
        for crossing in watched.crossings
        for asked in crossing.point.questions(crossing.call).values()
    )


def like(watched: Watched, which: System, source: str = "") -> Like:
    """The gradients of a run with this system's rules on the switches.

    source: the program's; what it calls quantile is not sort, though it is made of it here, and has not
    been asked about.
    """
    unknown: dict[str, None] = {}
    words: dict[str, str] = {}

    def rule(crossing: Crossing, name: str, g: Any, own: Any) -> Any:
        asked = crossing.point.questions(crossing.call).get(name)
        if source and crossing.span is None:
            unknown[f"the function that uses {crossing.name}"] = None
            return own
        called = _called(crossing, source)
        if asked is not None and called and not _is_about(crossing, called, question(asked)):
            unknown[called] = None
            return own
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


def _called(crossing: Crossing, source: str) -> str:
    """The name of the function that the source calls there, without its namespace; "" for none."""
    piece = source[slice(*crossing.span)] if crossing.span else ""
    head = piece.partition("(")[0]
    return (
        head.rpartition(".")[2] if head.replace(".", "_").isidentifier() and head != piece else ""
    )


def _is_about(crossing: Crossing, called: str, asked: Question) -> bool:
    """Whether a question is about the function that the source calls."""
    primitive = crossing.call.primitive
    entry = FUNCTIONS.get(primitive.public_name)
    names = {primitive.public_name, primitive.name, *(entry.aliases if entry else ())}
    known = {name.rpartition(".")[2] for name in names}
    return called in known or called in re.findall(r"\w+", asked.program)


def recorded(program: Program, values: Mapping[str, Any], order: int) -> list[Question]:
    """The questions that are this very program at this very point, whatever its layout."""
    shape = _shape(program)
    return [
        one
        for one in questions()
        if one.order == order
        and one.point.keys() == values.keys()
        and _is_at(one, values)
        and _shape(parse(one.program)) == shape
    ]


def _is_at(asked: Question, values: Mapping[str, Any]) -> bool:
    at = values_at(asked)
    return all(
        np.array_equal(values[n], np.asarray(at[n], values[n].dtype), equal_nan=True) for n in at
    )


def _shape(program: Program) -> Any:
    """A program without its spelling and layout."""
    return [(kind, repr(meaning), count) for kind, meaning, count, _ in program.walk()]


def recorded_gradients(asked: Sequence[Question], which: System, values: Mapping[str, Any]) -> Like:
    """What a system answered to questions about one program, by variable. values: those of the variables."""
    found = Like(which, dict.fromkeys(values))
    found.recorded = True
    for one in asked:
        answer = one.answers.get(which.id, "-")
        numbers = number_of(answer)
        if numbers is None and answer.startswith("-"):
            found.unknown = ["it, which it does not have,"]
        elif numbers is None:
            found.words[one.id] = answer
        else:
            parts = [numbers] if len(one.asks) == 1 else numbers
            for name, part in zip(one.asks, parts, strict=True):
                if name in values:
                    own = values[name]
                    part = np.asarray(part, own.dtype)
                    found.grads[name] = np.broadcast_to(part, own.shape)[()]
    return found

"""What is said of an answer in a sheet that is not right as it stands: what a student most likely meant.

Each guess is a change of the answer that is checked as the answer itself was. One that is right then names
the mistake.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

Check = Callable[[str, str], Mapping[str, Any]]  # of (task, answer)


class Guess(NamedTuple):
    """A change of a task and its answer, and what is said if the changed answer is right.

    always: whether it is said of other answers as well.
    """

    task: str
    answer: str
    said: str
    always: bool = False


_WORD = re.compile(r"[^\W\d_]{2,}")
_LETTER = re.compile(r"(?<![^\W\d_])[^\W\d_](?![^\W\d_])")


def meant(task: str, answer: str, check: Check, error: bool) -> str | None:
    """What is said of an answer that is not right; None where nothing is known of it.

    check: what is found of a task and an answer. error: whether the answer could not be read.
    """
    for guess in _guesses(task, answer):
        found = check(guess.task, guess.answer)
        if found.get("ok"):
            return f"right {guess.said}"
        if guess.always:
            return "; ".join(filter(None, (guess.said, found.get("mistake"))))
    if error and _is_prose(answer):
        return "this is text, and no formula"
    return None


def _guesses(task: str, answer: str) -> Iterator[Guess]:
    missing = answer.count("(") - answer.count(")")
    if missing > 0:
        yield Guess(task, answer + ")" * missing, "with the `)` that is missing at its end")
    bare = re.sub(r"\s*\+\s*[CcKk]\s*$", "", answer)
    if bare != answer and not re.search(rf"(?<![A-Za-z]){answer.rstrip()[-1]}(?![A-Za-z])", task):
        constant = answer.rstrip()[-1]
        yield Guess(
            task, bare, f"without + {constant}: a derivative has no constant of integration"
        )
    if (bare := re.sub(r"(?<=[\s)])\s*d[a-z]\s*$", "", answer)) != answer:
        yield Guess(task, bare, f"without {answer.split()[-1][-2:]}")
    if (closed := _brackets_around_exponents(answer)) != answer:
        yield Guess(task, closed, f"if {closed} is meant: brackets are missing in the exponent")
    if (closed := _brackets_below(answer)) != answer:
        yield Guess(task, closed, f"as {closed}: brackets are missing below the line")
    if re.search(r"(?<![A-Za-z])log(?![A-Za-z\d])", task):
        decimal = re.sub(r"(?<![A-Za-z])log(?![A-Za-z\d])", "log10", task)
        yield Guess(decimal, answer, "if log is log10; here it is the natural logarithm")
    own, others = _letters(task), _letters(answer)
    if len(own) == 1 and len(others - own) == 1:
        (x,), (t,) = own, others - own
        renamed = re.sub(rf"(?<![^\W\d_]){t}(?![^\W\d_])", x, answer)
        yield Guess(task, renamed, f"with {x} in the place of {t}")


def _letters(text: str) -> set[str]:
    """The letters that stand alone, but for e."""
    return {*_LETTER.findall(text)} - {"e"}


def _brackets_around_exponents(answer: str) -> str:
    """`e^(3x)` of `e^3x`, `x^(-1/2)` of `x^-1/2`."""
    return re.sub(r"(\^|\*\*)(-?\d+(?:\.\d+)?(?:/\d+|\*?[^\W\d_]))(?![\w(^])", r"\1(\2)", answer)


def _brackets_below(answer: str) -> str:
    """`1/(2√x)` of `1/2√x`, and `1/(3x^2)` of `1/3x^2`."""
    slash = re.search(r"/\s*(?=\d+\s*[√\\A-Za-z(])", answer)
    if slash is None:
        return answer
    start, depth, end = slash.end(), 0, len(answer)
    for k in range(start, len(answer)):
        depth += (answer[k] in "([{") - (answer[k] in ")]}")
        if depth < 0 or (depth == 0 and answer[k] in "+-*/=,"):
            end = k
            break
    return f"{answer[:start]}({answer[start:end].rstrip()}){answer[end:]}"


def _is_prose(answer: str) -> bool:
    """Whether an answer has words that are no names of functions, or no letters and digits at all."""
    from gradcli.language.math_symbols import BARE
    from gradcli.language.names import is_function
    from gradcli.language.notation import is_greek

    if not re.search(r"\w", answer):
        return True
    words = [w for w in _WORD.findall(answer) if w not in BARE]
    strange = [w for w in words if not (is_function(w) or is_greek(w))]
    return "\\" not in answer and (len(strange) > 1 or any(len(w) > 3 for w in strange))


__all__ = ["Check", "meant"]

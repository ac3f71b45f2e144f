"""Hints that say how a text of another language is written here: of NumPy, mathematics, LaTeX, MATLAB.

Imported only when an error is being worded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from gradcli.language.foreign_names import bare, with_distributions
from gradcli.language.located_errors import LanguageError
from gradcli.language.mathematics import written

LONGEST = 300  # characters of a text that is written anew

# Patterns as text: what is no error compiles none.
_DERIVATIVE = r"(?s)\s*[d∂]\s*/\s*[d∂]\s*([^\W\d]\w*)\s*(.+)"
_DERIVATIVE_OF = r"(?s)\s*[d∂]\s*(\(.+\)|\w+)\s*/\s*[d∂]\s*([^\W\d]\w*)\s*"
_MATHEMATICA = r"(?s)\s*D\s*\[(.+),\s*([^\W\d]\w*)\s*\]\s*"
_OPERATOR = r"(?s)\s*(grad|div|curl|laplacian)\s*\((.+)\)\s*"
_DEGREES = r"(?<=[\w)])\s*[*\s]\s*deg(?:rees?)?\b(?!\s*[(.=])"  # `30 deg`, `x*deg`
_CELLS = r"\s*=.*\b[A-Z]{1,3}\d+:[A-Z]{1,3}\d+.*"  # a formula of a spreadsheet


def hint(
    source: str,
    parses: Callable[[str], bool],
    bound: Mapping[str, bool] = MappingProxyType({}),
    *,
    elementwise: bool = False,
) -> str | None:
    """`here it is written …`, where that is something else than the text and can be read."""
    if len(source) > LONGEST:
        return None
    if re.fullmatch(_CELLS, source):
        return 'cells are values of a variable: gradcli eval "sum(A)" --A 1,2,3, or --A @FILE.csv:COLUMN'
    if re.fullmatch(r"\s*[a-zA-Z]\([\w, ]*\)\s*", source) and parses(source):
        word = source.strip()[0]
        return f"write {word} = lambda …; EXPR, or --load FILE.py; gradcli diff takes unknown functions"
    if operator := operator_hint(source, parses):
        return operator
    for pattern, name, body in (
        *((_DERIVATIVE, 1, 2), (_DERIVATIVE_OF, 2, 1)),
        (_MATHEMATICA, 2, 1),
    ):
        if found := re.fullmatch(pattern, source):
            inner = found[body].strip()
            if pattern is _MATHEMATICA:
                inner = inner.replace("[", "(").replace("]", ")")
            inner = translate(inner) or inner
            if parses(inner):
                command = f'gradcli diff "{bare(inner)}" --wrt {found[name]}'
                return f"a derivative needs the command diff: {command}"
    # A hint has to be right: the new text parses, it differs, and translating it once more changes
    # nothing. A translation that is not its own fixed point has misread something.
    text = translate(source, bound, elementwise=elementwise)
    if (
        not (text or "").strip()
        or text is None
        or translate(text, bound, elementwise=elementwise) is not None
        or not parses(text)
    ):
        return None
    assigned = re.findall(r"([^\W\d]\w*)\s*(?:\([\w\s,]*\))?\s*=(?!=)", text)
    better = with_distributions(text, {*bound, *assigned})
    text = better if parses(better) else text
    pairs = zip(source.splitlines(), text.splitlines(), strict=True)
    return f"here it is written {next(new for old, new in pairs if new != old).strip()}"


def operator_hint(source: str, parses: Callable[[str], bool]) -> str | None:
    """How grad, div, curl or laplacian of a field is asked for, where the text is a call of one."""
    found = re.fullmatch(_OPERATOR, source)
    if found is None or not parses(found[2]):
        return None
    by = re.fullmatch(r"(.+),\s*([^\W\d]\w*)\s*", found[2], re.S)
    if found[1] == "grad" and by is not None and parses(by[1]):
        text = bare(by[1])
        return (
            f'gradcli grad "{text}" --wrt {by[2]} is the number, gradcli diff "{text}" --wrt {by[2]} the '
            f"formula; inside of an expression: func.grad(lambda {by[2]}: {text})({by[2]})"
        )
    return f'it is an option: gradcli diff "{bare(found[2])}" --operator {found[1]}'


def translate(
    source: str, bound: Mapping[str, bool] = MappingProxyType({}), *, elementwise: bool = False
) -> str | None:
    """The text as it is written here, line by line; None if it is that already, or if nobody can say.

    bound: of names that have a value whether they can be called: they mean what they are. elementwise:
    whether the pairs that `max(x, 0)` gives, as PyTorch's does, are not what was meant.
    """
    if len(source) > LONGEST:
        return None
    assigned = re.findall(r"([^\W\d]\w*)\s*:?=(?!=)|\bdef\s+(\w+)|\blambda\s+([\w, ]+):", source)
    own = dict.fromkeys(re.findall(r"\w+", " ".join(map(" ".join, assigned))), True) | dict(bound)
    lines = [_translated(line, own, elementwise) for line in source.splitlines()]
    text = "\n".join(lines)
    return text if lines != source.splitlines() else None


def _translated(line: str, bound: Mapping[str, bool], elementwise: bool) -> str:
    """A line as it is written here; itself if only its blanks are others, or if it cannot be read."""
    blank = line[: len(line) - len(line.lstrip())]
    degrees = line.strip()
    if not {"deg", "degree", "degrees"} & bound.keys():
        degrees = re.sub(_DEGREES, "°", degrees)
    try:
        text = written(degrees, bound, elementwise)
    except (LanguageError, RecursionError):
        return line
    return line if "".join(text.split()) == "".join(line.split()) else blank + text

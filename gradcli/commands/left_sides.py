"""The left side of a formula that is compared: `dy/dx = -x/y`, `f'(x) = 3x^2`, `x.grad = 3*x**2`.

It says what the formula is the derivative of, by which variable and of which order, as options do.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from gradcli.commands.argv import Split
from gradcli.commands.command_errors import usage

_RAISED = {"²": 2, "³": 3, "": 1}
_ORDER = r"(?:\^\{?(\d)\}?|\*\*(\d)|([²³]))?"
_D = r"(?:d|∂|\\partial)\s*"
_WORD = r"[^\W\d_²³][^\W²³]*"
_NAME = rf"({_WORD})"
# A letter as LaTeX has it: `\theta`, `\mathbf{w}`, `W_{ij}`, `W^{[1]}`. --math reads what it is called.
_LETTER = (
    rf"((?:\\(?!partial)[A-Za-z]+(?:\s*\{{[^{{}}]*\}}|\s+[A-Za-z]\b)?|{_WORD})"
    r"(?:_\{[^{}]*\}|_\w+|\^\{[\[(]\w[\])]\})?)"
)
# What is differentiated: `L`, `\ell`, `\mathcal{L}`, `J(\theta)`.
_OF = rf"{_LETTER}(?:\s*\([^()]*\))?"
_ABOVE = rf"{_D}{_ORDER}\s*(?:{_OF})?"
_BELOW = rf"{_D}{_LETTER}\s*{_ORDER}"
_LEFT = (
    rf"{_ABOVE}\s*/\s*{_BELOW}",
    rf"\\[dt]?frac\s*\{{\s*{_ABOVE}\s*\}}\s*\{{\s*{_BELOW}\s*\}}",
)
_NABLA = rf"(?:\\nabla|∇)\s*(\^2)?\s*(?:_\s*(?:\{{\s*{_LETTER}\s*\}}|{_LETTER}))?\s*(\^2)?\s*{_OF}"


class LeftSide(NamedTuple):
    """What a left side says. of: the function, "" where it is not named. by: the variable, "" likewise."""

    of: str
    by: str
    order: int


def with_braces(text: str) -> str:
    r"""A name with its font's letter in braces: `\\mathbf{w}` for `\\mathbf w`."""
    font = r"\\(?:math(?:bf|rm|cal|sf|it|bb|scr)|boldsymbol|bm|vec|hat|tilde|bar)(?![A-Za-z])"
    return re.sub(rf"({font})\s*(\\[A-Za-z]+|(?<=\s)[A-Za-z](?![A-Za-z]))", r"\1{\2}", text)


def left_side(text: str) -> tuple[LeftSide, str] | None:
    """(what the left side of a formula says, its right side); None of a text without such a left side."""
    found = re.fullmatch(r"\s*([^=<>!]+?)\s*={1,2}(?!=)\s*(.+)", text, re.S)
    if found is None:
        return None
    left, right = with_braces(found[1]), found[2]
    for pattern in _LEFT:
        if match := re.fullmatch(pattern, left):
            above, name, by, below = match.groups()[:3], match[4], match[5], match.groups()[5:]
            orders = _order(above), _order(below)
            if orders == (1, 2):  # \\partial\\sigma^2, of the variance
                by, orders = f"{by}^2", (1, 1)
            same = len({*orders}) == 1
            return (LeftSide(_called(name or ""), by, orders[0]), right) if same else None
    if match := re.fullmatch(rf"{_NAME}\s*(\'+|′+|″)\s*(?:\(\s*{_NAME}\s*\))?", left):
        return LeftSide(match[1], match[3] or "", 2 if match[2] == "″" else len(match[2])), right
    if match := re.fullmatch(r"[^\W\d_]_\{?([^\W\d_])\}?", left):  # f_x
        return LeftSide("", match[1], 1), right
    if match := re.fullmatch(_NABLA, left):
        twice, braced, by, behind, name = match.groups()
        return LeftSide(_called(name), braced or by or "", 2 if twice or behind else 1), right
    if match := re.fullmatch(rf"{_NAME}\.grad", left):
        return LeftSide("", match[1], 1), right
    return None


def _called(name: str) -> str:
    r"""What --math calls a function: ell for `\\ell`, L for `\\mathcal{L}`."""
    if not name or name.isidentifier():
        return name
    from gradcli.language.mathematics import name_as_read

    return name_as_read(name) or name


# What stands between a formula and those that say what its names are.
_BEHIND = re.compile(
    r",\s*(?=\\q?quad)|\\(?:text|mathrm|mbox)\s*\{[\s,]*(?:where|with|mit|wobei|and|und|for)\s*\}"
    r"|(?<![\\\w])(?:where|with|mit|wobei)(?!\w)"
)


def given_names(text: str) -> dict[str, str]:
    r"""The names that statements of mathematics give a formula, each as it stands there, in the order of a
    program; "" for the last formula, where it has none.

    ell of `\\ell(\\mu, v) = …`, p of `p_k = …` as well as p_k. What stands behind a comma comes first.
    """
    found: dict[str, str] = {}
    for statements in re.split(r"[;\n]", text):
        first, *behind = _BEHIND.split(statements)
        for statement in (*behind, first):
            left, equals, _ = statement.partition("=")
            left = re.sub(r"\\q?quad|[:&$]", " ", left).strip()
            name = _called(re.sub(r"(?<=.)\s*\([^()]*\)$", "", left)) if equals else ""
            name = name if name.isidentifier() else ""
            if not statement.strip(" ,"):
                continue
            stem, _, index = name.partition("_")
            names = [stem, name] if re.fullmatch("[a-z]{1,3}", index) else [name]
            for one in names:
                found.pop(one, None)
                found[one] = left if one == name else stem
    return found


def with_definitions(formula: str, text: str) -> str:
    """A formula with the functions that it calls and a program defines, `h(x) = …`, before it."""
    parts = [part for line in re.split(r"[;\n]", text) for part in _BEHIND.split(line)]
    found = []
    for part in parts:
        one = re.fullmatch(r"[\s,&]*(?:\\q?quad)?\s*([^=()]+?)\s*\([^()]*\)\s*=(?!=).+", part, re.S)
        if one and re.search(rf"(?<![\w\\]){re.escape(one[1])}\s*(?:\\left)?\(", formula):
            found.append(part.strip(" ,&"))
    return "; ".join([*found, formula])


def _order(raised: tuple[str | None, ...]) -> int:
    text = next((part for part in raised if part), "")
    return _RAISED.get(text) or int(text)


def take_left_side(
    text: str, found: Split, source: str, names: Collection[str], assigned: Sequence[str]
) -> tuple[str, str]:
    """(The right side of a formula, what it is the derivative of where that is not the last formula of the
    program). What its left side says becomes options. Raises LanguageError where these say otherwise.

    source: the program. names: its variables. assigned: what it gives a name to, in order; "" where the last
    formula has none.
    """
    read = left_side(text)
    if read is None:
        name, alone = definition(text)  # `y = 2*x`, as pupils write
        return (alone if name and name not in {*names, *assigned} else text), ""
    side, right = read
    if side.by:
        _say(found, "wrt", side.by)
    if side.order > 1 or "order" in found.given:
        _say(found, "order", str(side.order))
    of = found.given.get("of")
    if side.of and of is not None and side.of != of:
        raise usage(f"--against is of {side.of}, and --of says {of}", hint="leave one of them out")
    if side.of in names and side.of != side.by and of is None:
        if "=" not in source:
            raise usage(
                f"--against is of {side.of}, which is a variable of the expression",
                hint=f"write the formula alone: --against '{right}'",
            )
        found.options.append(f"--of={side.of}")  # of an equation; elsewhere --of is refused
        found.given["of"] = side.of
    elif side.of in assigned and side.of != assigned[-1] and side.of not in names:
        return right, side.of
    elif side.of and assigned and assigned[-1] and side.of not in (*assigned, *names):
        raise usage(
            f"--against is of {side.of}, and the program gives {', '.join(filter(None, assigned))}",
            hint=f"write the same name, or the formula alone: --against '{right}'",
        )
    return right, ""


def _say(found: Split, option: str, value: str) -> None:
    said = found.given.get(option)
    if said is None:
        found.options.append(f"--{option}={value}")
        found.given[option] = value
    elif said != value:
        what = "is by" if option == "wrt" else "is of order"
        raise usage(
            f"the left side of --against {what} {value}, and --{option} says {said}",
            hint="leave one of them out",
        )


# A function that is given a name: `V = `, or `V(x, y) = `.
_DEFINED = re.compile(
    r"\s*([^\W\d]\w*)\s*(?:\(\s*[^\W\d]\w*\s*(?:,\s*[^\W\d]\w*\s*)*\))?\s*=(?!=)([^;\n]+)"
)


def definition(text: str) -> tuple[str, str]:
    """(V, the right side) of `V = …` and `V(x) = …` alone; ("", the text) of all else."""
    found = _DEFINED.fullmatch(text)
    return ("", text) if found is None else (found[1], found[2].strip())

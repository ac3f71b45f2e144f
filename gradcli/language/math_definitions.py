r"""What stands before `=` and gives what follows a name: `f(x) = x^2`, `J(\theta) = …`, `\ln L(\mu) = …`."""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from gradcli.language.math_symbols import BARE, DEFINABLE, SCRIPTS, SHY
from gradcli.language.notation import Token, indexed, is_letter, letter_name

_ENDS = (";", "\n")  # of a statement
_BETWEEN = (",", ";", "|", ":", "‖")  # the parameters of `L(\theta; x)` and `p(x | \mu)`
_LOGARITHMS = frozenset(("ln", "log"))


class Definition(NamedTuple):
    """`f(x, y) =`: the name, its parameters, and where its `=` stands among the tokens. by: those before the
    bar of `L(w | x)`, as they stand there, "sigma^2" too."""

    name: str
    parameters: tuple[str, ...]
    sign: int
    by: tuple[str, ...] = ()


class Definitions(NamedTuple):
    """The tokens of a text, the functions that it defines, and what stands in their brackets."""

    tokens: list[Token]
    functions: frozenset[str]
    parameters: frozenset[str]


def definition(found: list[Token], at: int) -> Definition | None:
    """The definition that begins at a token; None where something else does.

    `cos(x) = a x` is none, for cos has a meaning already.
    """
    one = indexed(found, at)  # f, f_1, f_{\theta}
    texts = [t.text for t in found]
    if one is None or (one.name in BARE and one.name not in SHY | DEFINABLE):
        return None
    name, at = one.name, one.end
    if texts[at : at + 1] != ["("]:
        return None
    parameters: list[str] = []
    names: list[str] = []  # the same, with the squares that they are
    by = 0
    while True:
        if at + 1 == len(found) or not is_letter(found[at + 1]):
            return None
        parameters.append(letter_name(found[at + 1]))
        at += 2
        raised = [t for t in texts[at : at + 4] if t not in ("{", "}")]
        if raised[:2] == ["**", "2"]:  # \\ell(\\mu, \\sigma^2)
            at += 4 if texts[at + 1] == "{" else 2
        elif raised[:1] == ["²"]:
            at += 1
        else:
            raised = []
        names.append(parameters[-1] + "^2" * bool(raised))
        if texts[at : at + 1] == [")"]:
            break
        if texts[at : at + 1] not in [[sign] for sign in _BETWEEN]:
            return None
        if texts[at] != ",":
            by = by or len(parameters)
    before = tuple(names[: by or len(names)])
    is_defined = texts[at + 1 : at + 2] == ["="]
    return Definition(name, tuple(parameters), at + 1, before) if is_defined else None


def with_equations(found: list[Token]) -> list[Token]:
    """The tokens with `==` in `f(x) = 0` and `f(x) = g(x)` behind `f(x) = x^3 - x`.

    A text defines a function once. What it says of its value again is an equation. `y = x^2, y = 2x - 1` are
    equations both, for nobody asks of a y that is given twice.
    """
    tokens, defined = list(found), set[str]()
    for sign in _signs_of_one_name(found):
        tokens[sign] = tokens[sign]._replace(text="==")
    for at in (0, *(k + 1 for k, token in enumerate(found) if token.text in (*_ENDS, ","))):
        one = definition(tokens, at)
        if one is None:
            continue
        if one.name in defined:
            tokens[one.sign] = tokens[one.sign]._replace(text="==")
        elif _uses_parameter(tokens, one):
            defined.add(one.name)
    return tokens


def _signs_of_one_name(found: list[Token]) -> list[int]:
    """The `=` of a text that gives one name several values, and nothing else; none of another text."""
    starts, depth = [0], 0
    for k, token in enumerate(found):
        depth += (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))
        if depth == 0 and token.text in (",", *_ENDS) and k + 1 < len(found):
            starts.append(k + 1)
    names, signs = set[str](), list[int]()
    for start, end in zip(starts, [*starts[1:], len(found)], strict=True):
        one = indexed(found, start)
        if one is None or [t.text for t in found[one.end : one.end + 1]] != ["="]:
            return []
        if one.name in {other.name for k in range(one.end, end) if (other := indexed(found, k))}:
            return []  # y = y + 1 is a step
        names.add(one.name)
        signs.append(one.end)
    return signs if len(names) == 1 and len(signs) > 1 else []


def _uses_parameter(found: list[Token], one: Definition) -> bool:
    """Whether a parameter stands on the right; `f(x) = 2` is an equation about a call."""
    right = found[one.sign + 1 : end_of_statement(found, one.sign)]
    return any(is_letter(t) and letter_name(t) in one.parameters for t in right)


def definitions(found: list[Token]) -> Definitions:
    """The definitions of a text, those first that are called before they are made.

    `f(x) = x^2, f(3)`: in a text that calls f behind the comma this comma ends the definition.
    `J(t) = h(t)^2, h(t) = 2t`, as slides have it: h is defined first.
    """
    functions: set[str] = set()
    parameters: set[str] = set()
    tokens = list(found)
    start = True
    for i in range(len(tokens)):
        if start and (one := definition(tokens, i)) is not None:
            functions.add(one.name)
            parameters.update(one.parameters)
            for k in _commas(tokens, one.sign + 1):
                behind = definition(tokens, k + 1)
                if behind is not None or calls(tokens[k + 1 :], one.name):
                    tokens[k] = tokens[k]._replace(text=";")
                    break
        start = tokens[i].text in _ENDS
    return Definitions(_called_first(tokens), frozenset(functions), frozenset(parameters))


def _called_first(found: list[Token]) -> list[Token]:
    """The tokens with those definitions in front whose function an earlier statement calls."""
    statements: list[list[Token]] = [[]]
    for token in found:
        statements[-1].append(token)
        if token.text in _ENDS:
            statements.append([])
    first: list[list[Token]] = []
    for k, statement in enumerate(statements):
        one = definition(statement, 0)
        if one is not None and any(calls(before, one.name) for before in statements[:k]):
            first.append(statement)
    if not first:
        return found
    rest = [statement for statement in statements if statement not in first]
    joined: list[Token] = []
    for statement in (*first, *rest):
        ended = statement[-1:] if [t.text for t in statement[-1:]] in ([e] for e in _ENDS) else []
        body = statement[: len(statement) - len(ended)]
        if body:
            semicolon = Token("sign", ";", False, body[-1].end, body[-1].end)
            joined += [*body, *(ended or [semicolon])]
    return joined[:-1]


def _commas(found: list[Token], at: int) -> list[int]:
    """The commas outside of brackets, up to the end of a statement."""
    depth, places = 0, []
    for k in range(at, len(found)):
        text = found[k].text if found[k].kind == "sign" else ""
        depth += (text in ("(", "[", "{")) - (text in (")", "]", "}"))
        if depth == 0 and text in _ENDS:
            break
        if depth == 0 and text == ",":
            places.append(k)
    return places


def calls(found: list[Token], name: str) -> bool:
    """Whether `f(` or `f'` is among tokens, also as `f_\\theta(`."""
    letter, _, index = name.partition("_")
    for k, token in enumerate(found):
        if token.text not in (name, letter):
            continue
        after = [t.text for t in found[k + 1 : k + 5] if t.text not in ("{", "}")]
        if token.text == letter and index and token.text != name:
            after = after[2:] if after[:2] == ["_", index] else []
        if after[:1] and after[0] in ("(", "'", "**"):
            return True
    return False


def end_of_statement(found: list[Token], at: int) -> int:
    """Where the statement ends in which a token stands."""
    return next((k for k in range(at, len(found)) if found[k].text in _ENDS), len(found))


def logarithm_of(found: list[Token], at: int, own: Container[str]) -> int | None:
    r"""Where `=` stands in `\ln L(\theta) =` and `\ln \mathcal{L} =`, which names what follows; else None.

    It is no equation for L: L stands nowhere behind it, and has no value.
    """
    if not (at + 1 < len(found) and found[at].text in _LOGARITHMS):
        return None
    one = definition(found, at + 1)
    sign = one.sign if one is not None else at + 2
    name = found[at + 1].text
    is_named = one is not None or (
        found[at + 1].font in SCRIPTS and [t.text for t in found[sign : sign + 1]] == ["="]
    )
    right = {t.text for t in found[sign : end_of_statement(found, sign)]}
    return sign if is_named and name not in right and name not in own else None

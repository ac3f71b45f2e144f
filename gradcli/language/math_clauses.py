r"""What stands beside a formula: `R^2 =`, and behind it `where a = 2`, `x \in \mathbb{R}^n`, `x > 0`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container
from typing import NamedTuple

from gradcli.language.math_definitions import definition, end_of_statement
from gradcli.language.math_marks import with_indices
from gradcli.language.math_symbols import BARE, DEFINABLE, SHY
from gradcli.language.notation import Token, indexed, is_letter

_ENDS = (";", "\n")  # of a statement
_WORDS = frozenset("where with for at given and when wherein wobei mit und où avec et".split())
_DOTS = frozenset(("dots", "ldots", "cdots", "dotsc", "…", "...", ".", "⋯"))
_SETS = frozenset("ℝRℂCℤZℕN")
_OPERATORS = frozenset(("+", "-", "*", "·", "×", "/", "⊙", "@"))
_OPENED, _CLOSED = ("(", "[", "{", "⌊"), (")", "]", "}", "⌋")
_EQUALS = ("=", "≈", "←")


class Clauses(NamedTuple):
    """The tokens of a text without what it says beside its formula, as statements in the order of their use.

    shapes: of names that are said to be of a set, sizes as the text has them. remarks: what is left out.
    """

    tokens: list[Token]
    shapes: dict[str, tuple[str, ...]]
    remarks: list[str]


def clauses(found: list[Token], source: str, own: Container[str]) -> Clauses:
    """What stands behind formulas as statements of its own, and the sets of names."""
    tokens = _with_words_as_signs(_without_bars(found, source), own)
    shapes: dict[str, tuple[str, ...]] = {}
    remarks: list[str] = []
    statements: list[list[Token]] = []
    for statement, end in _statements(tokens):
        parts = _parts(statement)
        said = [part for part in parts if _is_said(part)]
        if parts and not _is_condition(parts[0]):
            said += [part for part in parts[1:] if _is_condition(part)]
        rest = [part for part in parts if part not in said]
        for part in said:
            shapes |= _shapes(part)
            if not _shapes(part):
                typed = " ".join(source[part[0].start : part[-1].end].split())
                remarks.append(f"{typed} is not used")
        given = all(_given(part) or _squared(part) for part in rest[1:])
        if len(rest) > 1 and given and not _is_system(rest):
            # What is asked for stands first on a page, and last in a program.
            statements += [[*part, _end_of(part)] for part in (*rest[1:], rest[0])]
        elif len(rest) == len(parts):
            statements.append([*statement, *end])
        elif rest:
            joined = rest[0]
            for part in rest[1:]:
                joined = [*joined, _end_of(joined)._replace(text=","), *part]
            statements.append([*joined, *end])
    for statement in statements:  # KL(P | Q) is no product of K and L
        head = statement[0]
        is_named = label(statement, 0, own) is not None or definition(statement, 0) is not None
        if head.kind == "name" and not head.font and is_named:
            statement[0] = head._replace(font="operatorname")
    return Clauses(_in_order(_with_roots(statements, own)), shapes, remarks)


def _statements(found: list[Token]) -> list[tuple[list[Token], list[Token]]]:
    """The statements, each with the sign that ends it."""
    parts: list[tuple[list[Token], list[Token]]] = [([], [])]
    for i, token in enumerate(found):
        goes_on = [t.text for t in found[i + 1 : i + 2]] == ["="]  # of a line that begins so
        if token.text in _ENDS and goes_on:
            continue
        if token.text in _ENDS:
            parts[-1] = (parts[-1][0], [token])
            parts.append(([], []))
        else:
            parts[-1][0].append(token)
    return [part for part in parts if part[0] or part[1]]


def _with_words_as_signs(found: list[Token], own: Container[str]) -> list[Token]:
    """The tokens with a comma for `where`, `with` and `and` before what gives a name something."""
    parts: list[Token] = []
    for i, token in enumerate(found):
        behind = found[i + 1 :]
        word = token.kind == "name" and token.text.lower() in _WORDS and token.text not in own
        if not (word and (_given(behind) or _is_said(_parts(behind)[0] if behind else []))):
            parts.append(token)
        elif parts and parts[-1].text not in (",", *_ENDS):
            parts.append(token._replace(kind="sign", text=","))
    return parts


def _without_bars(found: list[Token], source: str) -> list[Token]:
    r"""The tokens with `, x = 3` for the `|_{x=3}` at the end of a formula."""
    for i in range(len(found) - 1, 0, -1):
        texts = [t.text for t in found[i : i + 2]]
        if texts != ["|", "_"]:
            continue
        end = _behind(found, i + 2)
        inside = [t for t in found[i + 2 : end] if t.text not in ("{", "}")]
        if end < len(found) or [t.text for t in inside[1:2]] != ["="]:
            continue
        value, last = inside[2:], inside[-1]
        if len(value) == 1 and value[0].text.isdigit():  # func.grad differentiates by tensors
            point = value[0]._replace(text=f"{value[0].text}.")
            value = [point._replace(kind="name", text="tensor"), last._replace(kind="sign", text="("),
                     point, last._replace(kind="sign", text=")")]  # fmt: skip
        return [*found[:i], found[i]._replace(text=","), *inside[:2], *value]
    return found


def _parts(statement: list[Token]) -> list[list[Token]]:
    """What stands between the commas outside of brackets; `i = 1, \\dots, n` is one part."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for i, token in enumerate(statement):
        if token.kind in ("sign", "command"):
            depth += (token.text in _OPENED) - (token.text in _CLOSED)
        if token.text in _ENDS:
            break
        beside = {t.text for t in statement[max(i - 1, 0) : i + 2]}
        if depth or token.text != "," or beside & _DOTS:
            parts[-1].append(token)
        else:
            parts.append([])
    return [part for part in parts if part]


def _is_said(part: list[Token]) -> bool:
    """Whether a part says of what set names are, what an index runs over, or when a formula holds."""
    if part and part[0].text == "forall":
        return True
    texts = [t.text for t in part]
    if "∈" in texts and part and is_letter(part[0]) and "sum" not in texts:
        return not _OPERATORS & {*texts[: texts.index("∈")]}
    if "→" in texts and texts[1:2] == [":"]:  # f: R^n -> R
        return True
    return texts[1:2] == ["="] and bool(_DOTS & {*texts})


def _is_condition(part: list[Token]) -> bool:
    """Whether a part says when a formula holds: `x > 0`."""
    return (
        bool(part) and is_letter(part[0]) and bool({"<", ">", "<=", ">="} & {t.text for t in part})
    )


def _given(part: list[Token]) -> bool:
    """Whether a part gives a name its value, or a function its formula."""
    one = indexed(part, 0)
    return definition(part, 0) is not None or (
        one is not None and [t.text for t in part[one.end : one.end + 1]] == ["="]
    )


def _squared(part: list[Token]) -> bool:
    r"""Whether a part gives the square of a name: `\sigma^2 = …`."""
    one = indexed(part, 0)
    behind = part[one.end : one.end + 5] if one is not None else []
    texts = [t.text for t in behind if t.text not in ("{", "}")]
    power = bool(behind) and behind[0].kind == "power"
    return texts[:2] == ["²", "="] if power else texts[:3] == ["**", "2", "="]


def _with_roots(statements: list[list[Token]], own: Container[str]) -> list[list[Token]]:
    r"""The statements with `\sigma = \sqrt{…}` for `\sigma^2 = …`, where others use σ."""
    found: list[list[Token]] = []
    for k, statement in enumerate(statements):
        one = indexed(statement, 0)
        others = [other for j, other in enumerate(statements) if j != k]
        if one is None or not _squared(statement) or one.name in own or not any(
            one.name in _used(other) for other in others
        ):  # fmt: skip
            found.append(statement)
            continue
        sign = next(k for k, t in enumerate(statement) if t.text == "=")
        body = [t for t in statement[sign + 1 :] if t.text not in _ENDS]
        ended = [t for t in statement[sign + 1 :] if t.text in _ENDS]
        place = body[0] if body else statement[sign]
        root = [place._replace(kind="command", text="sqrt"), place._replace(kind="sign", text="(")]
        closed = (body or statement)[-1]._replace(kind="sign", text=")")
        found.append([*statement[: one.end], statement[sign], *root, *body, closed, *ended])
    return found


def _is_system(parts: list[list[Token]]) -> bool:
    """Whether the parts give one name twice, as equations of several unknowns may."""
    names = [one.name for part in parts if (one := indexed(part, 0)) and _given(part)]
    return len({*names}) < len(names)


def _end_of(part: list[Token]) -> Token:
    return Token("sign", ";", False, part[-1].end, part[-1].end)


def _shapes(part: list[Token]) -> dict[str, tuple[str, ...]]:
    r"""The shape of `x` in `x \in \mathbb{R}^n`, and of both in `x, y \in …`; {} of other sets."""
    texts = [unicodedata.normalize("NFKC", t.text) for t in part if t.text not in ("{", "}")]
    if "∈" not in texts:
        return {}
    at = texts.index("∈")
    behind = texts[at + 1 :]
    if not behind or behind[0] not in _SETS:
        return {}
    sizes = [t for t in behind[1:] if t not in ("**", "_", "+")]
    sizes = [*sizes[0].split("x")] if len(sizes) == 1 and "x" in sizes[0][1:-1] else sizes
    if any(re.fullmatch(r"[A-Za-z]\w*|\d+", size) is None for size in sizes[::2]):
        return {}
    if any(sign not in ("×", "*", ",") for sign in sizes[1::2]) and len(sizes) > 1:
        sizes = [*sizes] if all(s.isalnum() for s in sizes) else []
    one = indexed(part, 0)
    shape = tuple(size for size in sizes if size.isalnum())
    return {one.name: shape} if one is not None else {}


def _in_order(statements: list[list[Token]]) -> list[Token]:
    """The tokens with what gives a name its value before what uses it, where a page has it behind."""
    given: list[str] = []
    layered = [with_indices(statement, frozenset(), alone=True) for statement in statements]
    for statement in layered:  # a_1 of `a^{(1)} = …`
        one, defined = indexed(statement, 0), definition(statement, 0)
        is_given = one is not None and _given(statement)
        name = defined.name if defined else one.name if one and is_given else ""
        # z of `z_i = …` is what another statement has as z_k.
        stem = name.rpartition("_")[0] if re.search("_[a-z]$", name) else ""
        other = any(stem in _used(s) and name not in _used(s) for s in layered) if stem else False
        given.append(stem if other else name)
    uses = [_used(statement) for statement in layered]
    order: list[int] = []

    def put(k: int, above: frozenset[int]) -> bool:
        if k in order:
            return True
        later = [j for j in range(k + 1, len(given)) if given[j] and given[j] in uses[k]]
        earlier = {given[j] for j in order}
        for j in later:
            if given[j] in earlier or given[j] == given[k]:
                continue
            if j in above or not put(j, above | {k}):
                return False
        order.append(k)
        return True

    several = [name for name in given if name]
    if len({*several}) < len(several) or not all(put(k, frozenset()) for k in range(len(given))):
        order = [*range(len(given))]
    joined: list[Token] = []
    for k in order:
        body = [t for t in statements[k] if t.text not in _ENDS]
        ended = [t for t in statements[k] if t.text in _ENDS]
        joined += [*body, *(ended or ([_end_of(body)] if body else []))]
    last = statements[-1][-1] if statements else None
    typed = last is not None and last.text in _ENDS and last.start < last.end
    while joined and joined[-1].text == ";" and not (typed and order[-1:] == [len(given) - 1]):
        joined.pop()
    return joined


def _used(statement: list[Token]) -> set[str]:
    """The names that stand in a statement behind its first `=`, or in all of it."""
    signs = [k for k, t in enumerate(statement) if t.text in _EQUALS]
    body = statement[signs[0] + 1 :] if signs and _given(statement) else statement
    found = [indexed(body, i) for i in range(len(body))]
    names = {one.name for one in found if one is not None}
    stems = {name.rpartition("_")[0] for name in names}  # y_hat of y_hat_i
    return names | stems | {name.partition("_")[0] for name in names}


# -- what stands before `=` ------------------------------------------------------------------------
class Label(NamedTuple):
    """What names a formula: where its sign stands, the index letters that it has, whether it is a step of a
    method, `w \\leftarrow`."""

    sign: int
    letters: tuple[str, ...] = ()
    updates: bool = False


def label(found: list[Token], at: int, own: Container[str]) -> Label | None:
    r"""The label that begins at a token: `R^2 =`, `\alpha_{ij} =`, `P(y=1|x) =`, `\nabla_w L =`.

    It is none where what it names has a value or stands behind the sign too, or where no name does: then it
    is an equation.
    """
    end, letters, name = _named(found, at)
    if end == at or [t.text for t in found[end : end + 1]] not in [[sign] for sign in _EQUALS]:
        return None
    if found[end].text == "←":
        return Label(end, letters, True)
    right = found[end + 1 : end_of_statement(found, end)]
    return None if name in own or not _is_of_others(name, right) else Label(end, letters)


def _is_of_others(name: str, right: list[Token]) -> bool:
    """Whether names stand in a formula, and this one, with its index, does not."""
    found = [indexed(right, i) for i in range(len(right))]
    names = {one.name for one in found if one is not None}
    return bool(names) and name not in names and f" {name} " not in f" {_as_typed(right)} "


def _named(found: list[Token], at: int) -> tuple[int, tuple[str, ...], str]:
    """Where what may name a formula ends, its indices, its letter with the index; `at` where nothing does."""
    texts = [*[t.text for t in found], "", "", ""]
    k = at
    if texts[k] == "frac" and texts[k + 1] == "{":
        middle = _behind(found, k + 1)
        end = _behind(found, middle) if texts[middle] == "{" else k
        first = texts[k + 2 : k + 3]
        is_derivative = first == ["partial"] or re.fullmatch(r"d\w?", "".join(first)) is not None
        inside = {*texts[k:end]}
        return (end, (), "∂") if is_derivative and not inside & _OPERATORS else (at, (), "")
    if texts[k] == "partial" and "/" in texts[k : k + 6]:
        slash = texts.index("/", k)
        one = indexed(found, slash + 2) if texts[slash + 1] == "partial" else None
        return (one.end, (), "∂") if one is not None else (at, (), "")
    letters: tuple[str, ...] = ()
    gradient = texts[k] == "nabla"
    if gradient:
        k += 1
        if texts[k] == "_":
            k = _behind(found, k + 1) if texts[k + 1] == "{" else k + 2
    if texts[k] in ("bar", "overline"):
        k = _behind(found, k + 1) if texts[k + 1] == "{" else k + 2
        name = "bar"
    elif k < len(found) and (is_letter(found[k]) or texts[k] == "Pr"):
        one = indexed(found, k)
        name = one.name if one is not None else texts[k]
        k = one.end if one is not None else k + 1
        letters = (*name[-1],) if re.search("_[a-z]$", name) else ()
    else:
        return at, (), ""
    called = False
    while texts[k] in ("_", "**", "(", "[", "'") or (k < len(found) and found[k].kind == "power"):
        sign, start = texts[k], k
        if sign in ("(", "["):
            k, called = _behind(found, k), True
            if _OPERATORS & {*texts[start:k]}:
                return at, (), ""
            below = re.findall(
                r"\w_(?:\{ )?([a-z])\b", " ".join(texts[start:k]).replace(" _ ", "_")
            )
            letters = letters or (*dict.fromkeys(below),)
        elif sign in ("_", "**"):
            k = _behind(found, k + 1) if texts[k + 1] == "{" else k + 2
            if sign == "_":
                index = "".join(t for t in texts[start + 1 : k] if t not in ("{", "}", ","))
                letters = (*index,) if re.fullmatch(r"[a-z]{1,3}", index) else ()
                name = name if called else _as_typed(found[at:k])
        else:
            k += 1
    # cos(x) = a x is an equation; `\mathrm{softmax}(z)_i =` says what the function is.
    if name in ("x", "y", "z") and not called:  # y^2 = x^3 is a curve
        return at, (), ""
    if name in BARE and not (called and name in SHY | DEFINABLE):
        return at, (), ""
    return k, letters, "∇" if gradient else name


def _behind(found: list[Token], at: int) -> int:
    """The place behind the bracket that opens at a token; behind the one token where none does."""
    depth = 0
    for k in range(at, len(found)):
        text = found[k].text if found[k].kind == "sign" else ""
        depth += (text in _OPENED) - (text in _CLOSED)
        if not depth:
            return k + 1
    return len(found)


def _as_typed(found: list[Token]) -> str:
    return " ".join(t.text for t in found if t.text not in ("{", "}"))

"""Options that name what they give: `--sigma x=dx`, several of them in one word, `x=dx,y=dy`, and bounds."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from gradcli.commands.command_errors import usage
from gradcli.commands.declarations import Option

BOUNDS = Option(
    "--bounds x=LOW:HIGH",
    "Keep a variable between bounds; one may be left out. Also '0<x<5', 'x>0'.",
    many=True,
)
_ITEM = re.compile(r"\s*[^\W\d][\w.]*\s*=(?!=)")
_BOUND = re.compile(r"[^,]*[=<>]")
_SIGN = re.compile(r"\s*([<>])=?\s*|\s*([≤≥])\s*")
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?|[-+]?inf\b")


def parts(text: str, begins: re.Pattern[str] = _ITEM) -> list[str]:
    """`a=b,c=d` in its parts; a comma in brackets, in quotes or before no name belongs to a value:
    `w.grad[0,1]`. begins: what stands behind a comma between parts."""
    if '"' in text:
        return [text]
    found, depth, begin = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth and begins.match(text, at + 1):
            found.append(text[begin:at])
            begin = at + 1
    return [*found, text[begin:]]


def single(items: Iterable[str]) -> list[str]:
    """All items, of which a word may have several."""
    return [one.strip() for item in items for one in parts(item)]


def named(items: Iterable[str], option: str, count: int, known: Iterable[str]) -> dict[Any, str]:
    """`x=VALUE` or `x,y=VALUE` as names to text."""
    names = list(known)
    found: dict[Any, str] = {}
    for item in single(items) if count == 1 else items:
        left, _, text = item.partition("=")
        words = tuple(word.strip() for word in left.split(","))
        value = text.lstrip("= ")
        if value != text.lstrip() or len(words) != count or not value:
            said = [word for word in words if word in names]
            shape = ",".join([*dict.fromkeys([*said, *names, "x", "y"])][:count])
            raise usage(
                f"{option} wants {shape}=VALUE, not {item!r}",
                hint=f"as in {option} {shape}={value or '0.1'}",
            )
        for word in words:
            _check_known(word, option, names)
        key: Any = words[0] if count == 1 else tuple(sorted(words))
        if key in found:
            raise usage(f"{option}: {left} is given twice")
        if count == 2 and words[0] == words[1]:
            raise usage(
                f"{option}: {left} is one variable", hint="its variance is its uncertainty squared"
            )
        found[key] = text
    return found


def _check_known(name: str, option: str, names: list[str]) -> None:
    from gradcli.language.located_errors import did_you_mean, suggest

    if name not in names:
        raise usage(
            f"{option}: {name!r} is not a variable (there are: {', '.join(names) or 'none'})",
            hint=did_you_mean(suggest(name, names)),
            kind="name",
        )


# -- bounds ----------------------------------------------------------------------------------------
def read_bounds(items: Iterable[str], known: Iterable[str]) -> dict[str, tuple[float, float]]:
    """--bounds by name: `x=0:5`, `x=:5`, `0<x<5`, `x>0`. Raises LanguageError."""
    names = list(known)
    found: dict[str, tuple[float, float]] = {}
    for item in (one.strip() for several in items for one in parts(several, _BOUND)):
        name, text = _compared(item, names) or _equated(item, names)
        _check_known(name, "--bounds", names)
        if name in found:
            raise usage(
                f"--bounds: {name} is given twice", hint=f"both ends in one: {name}=LOW:HIGH"
            )
        found[name] = bounds_of(name, text)
    return found


def _equated(item: str, names: list[str]) -> tuple[str, str]:
    """(the name, LOW:HIGH) of `x=LOW:HIGH`."""
    name, equals, text = item.partition("=")
    if not equals or text[:1] in ("", "="):
        said = next((n for n in re.findall(r"[^\W\d]\w*", item) if n in names), None)
        name = said or next(iter(names), "x")
        raise usage(f"--bounds wants {name}=LOW:HIGH, not {item!r}", hint=_hint(name, item))
    return name.strip(), text


def _compared(item: str, names: list[str]) -> tuple[str, str] | None:
    """The same of `LOW<x<HIGH`, and of a half of it; None where nothing is compared."""
    signs = [(m[1] or m[2]).translate({0x2264: "<", 0x2265: ">"}) for m in _SIGN.finditer(item)]
    sides = [side.strip() for side in _SIGN.sub("\0", item).split("\0")]
    if not signs:
        return None
    if signs[0] == ">":
        signs, sides = ["<" if s == ">" else ">" for s in signs[::-1]], sides[::-1]
    at = 1 if len(sides) == 3 or sides[0] not in names else 0
    ordered = set(signs) == {"<"} and len(sides) in (2, 3) and all(sides)
    if not ordered or not sides[at].isidentifier():
        name = next((side for side in sides if side in names), next(iter(names), "x"))
        raise usage(f"--bounds wants {name}=LOW:HIGH, not {item!r}", hint=_hint(name, ""))
    low, high = "".join(sides[:at]), "".join(sides[at + 1 :])
    return sides[at], f"{low}:{high}"


def bounds_of(name: str, text: str) -> tuple[float, float]:
    """`LOW:HIGH`, either of which may be left out."""
    from gradcli.commands.request_evaluation import read_value

    low, colon, high = text.partition(":")
    if not colon:
        raise usage(f"--bounds wants {name}=LOW:HIGH, not {text!r}", hint=_hint(name, text))
    option = f"--bounds {name}="
    return tuple(  # type: ignore[return-value]
        float(read_value(end, option).item()) if end.strip() else other
        for end, other in ((low, -float("inf")), (high, float("inf")))
    )


def _hint(name: str, text: str) -> str:
    """How bounds are written, with the numbers that somebody wrote."""
    ends = _NUMBER.findall(text.replace("..", " "))
    if len(ends) == 2:
        return f"write --bounds {name}={ends[0]}:{ends[1]}"
    if len(ends) == 1 and not re.search(r"[<>]", text):
        end = ends[0]
        return f"{name}={end}: is {end} or more, {name}=:{end} is {end} or less"
    return f"as in --bounds {name}=0:5, or {name}=0: for 0 or more"


__all__ = ["BOUNDS", "bounds_of", "named", "parts", "read_bounds", "single"]

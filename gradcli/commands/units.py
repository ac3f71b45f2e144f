r"""Units behind results: `--unit m/s^2` of the value, `--unit g=m/s^2,L=m` of results by name.

A unit is a text, and nothing is computed with it: `(9.801 ± 0.050) m/s^2`, `\qty{9.801(50)}{m/s^2}`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from gradcli.commands import output
from gradcli.commands.command_errors import usage
from gradcli.commands.item_lists import single

_ITEM = re.compile(r"([^\W\d]\w*(?:\[[\d,]+\])?)\s*=\s*(.+)", re.S)
_NUM = re.compile(r"\\num\{(.*)\}", re.S)


class Quantity(NamedTuple):
    """A result with its unit."""

    value: Any
    unit: str


def units_of(items: Iterable[str]) -> dict[str | None, str]:
    """The units by the names of results, None for the one that has no name. Raises LanguageError."""
    found: dict[str | None, str] = {}
    for item in single(items):
        match = _ITEM.fullmatch(item)
        name, unit = (match[1], match[2].strip()) if match else (None, item.strip())
        if not unit or unit.count("{") != unit.count("}"):
            raise usage(f"--unit wants a unit, not {item!r}", hint="as in --unit m/s^2")
        if name in found:
            raise usage(f"--unit: {f'{name} has' if name else 'there are'} two units")
        found[name] = unit
    return found


def unit_for(name: str | None, units: Mapping[str | None, str], several: bool) -> str | None:
    """The unit of a result. several: whether there are others, so that one without a name is nobody's."""
    own = units.get(name)
    return own if own is not None or several else units.get(None)


def check(units: Mapping[str | None, str], names: Sequence[str | None]) -> None:
    """Raise LanguageError for a unit of no result, and for one without a name where there are several."""
    known = [name for name in names if name is not None]
    for name in units:
        if name is None and len(names) > 1:
            raise usage(
                f"--unit {units[None]}: of which result?",
                hint=f"name it: --unit {known[0]}={units[None]}",
            )
        if name is not None and name not in known:
            listed = f"there are {', '.join(known)}" if known else "leave out the name"
            raise usage(f"--unit: no result is called {name}", hint=listed, kind="name")


def with_units(
    results: Sequence[tuple[str | None, Any]], units: Mapping[str | None, str], style: output.Style
) -> list[tuple[str | None, Any]]:
    """The results with their units behind them, as text, or as quantities for LaTeX."""
    main = [name for name, _ in results if not (name or "").endswith((".contribution", ".grad"))]
    check(units, main)
    made: list[tuple[str | None, Any]] = []
    for name, value in results:
        unit = unit_for(name, units, len(main) > 1) if name in main else None
        if unit is not None and style.typeset is not None:
            value = Quantity(value, unit)
        elif unit is not None:
            value = behind(output.to_text(value, style), unit)
        made.append((name, value))
    return made


def behind(text: str, unit: str) -> str:
    """A number as text, and its unit."""
    return f"({text}) {unit}" if "±" in text and text[:1] != "(" else f"{text} {unit}"


def typeset(text: str, unit: str, form: str) -> str:
    r"""A typeset number with its unit: `\qty{9.801(50)}{m/s^2}`."""
    match = _NUM.fullmatch(text)
    if form == "siunitx":
        return rf"\qty{{{match[1]}}}{{{unit}}}" if match else rf"{text}\,\unit{{{unit}}}"
    text = rf"({text})" if r"\pm" in text and text[:1] != "(" else text
    return rf"{text}\,\mathrm{{{unit}}}"


__all__ = ["Quantity", "behind", "check", "typeset", "unit_for", "units_of", "with_units"]

"""A finding: something that is wrong with a graph or a program, or worth knowing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from gradcli.graphs.probes import Place
from gradcli.graphs.styles import Line

MOST_NAMES = 4


@dataclass(slots=True)
class Finding:
    """Something that is wrong, or worth knowing: its kind, what it is, where, and what to do."""

    kind: str
    text: str
    place: Place | None = None
    advice: str = ""
    fault: bool = True

    def lines(self, arrow: str = "→") -> list[Line]:
        """The finding, its line of code, and the advice."""
        where = "" if self.place is None else f"{self.place}  "
        told: list[Line] = [
            [
                ("! ", "bad") if self.fault else ("  ", "note"),
                (f"{where}{self.text}".replace("→", arrow), "value"),
            ]
        ]
        if self.place is not None and self.place.code:
            told.append([(f"    {self.place.code}", "function")])
        return [*told, [(f"  {self.advice}", "note")]] if self.advice else told

    def to_json(self) -> dict[str, Any]:
        """{"kind", "text", "file", "line", "code", "advice"}."""
        file, line, code = self.place or (None, None, None)
        return {
            **{
                "kind": self.kind,
                "fault": self.fault,
                "text": self.text,
                "file": file,
                "line": line,
                "code": code,
            },
            "advice": self.advice,
        }


def some(names: Iterable[str]) -> str:
    """The first few of many names."""
    known = list(names)
    more = len(known) - MOST_NAMES
    return ", ".join(known[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")

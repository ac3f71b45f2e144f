"""The equation of motion of a Lagrangian, `d/dt ∂L/∂q' - ∂L/∂q`, as a program of the language.

A Lagrangian is written with `q(t)` and `func.grad(q)(t)`, in mathematics `q'(t)`. ∂L/∂q' is the slope
of L with a variable in the velocity's place, at the velocity; d/dt is the slope of that by t.
"""

from __future__ import annotations

import re

from gradcli.language.located_errors import LanguageError
from gradcli.language.parser import parse
from gradcli.language.program import Program
from gradcli.language.typed_text import joined

_VELOCITY, _PLACE = "velocity_", "place_"
Places = list[tuple[int, int]]


def equation_of_motion(source: str, name: str) -> str:
    """The program whose value is 0 along a motion. name: the coordinate. Raises LanguageError."""
    source = re.sub(r"^\s*[^\W\d]\w*\s*=(?!=)", "", source)  # L = …
    program = parse(source)
    start, end = program.value_span or (0, 0)
    if (
        not program.ends_in_expression
        or source[:start].strip(" (\n")
        or source[end:].strip(" )\n;")
    ):
        raise _error(
            source, "the Lagrangian must be one expression", "put what it assigns in its place"
        )
    places, speeds, times = _uses(program, name)
    if not speeds or len(times) != 1:
        q = f"{name}(t)"
        hint = f"write the coordinate as {q}, its velocity as func.grad({name})(t), {name}'(t) with --math"
        problem = "no velocity" if not speeds else f"{name} of {' and of '.join(sorted(times))}"
        raise _error(source, f"--euler-lagrange {name}: the Lagrangian has {problem}", hint)
    (t,) = times
    moved = _with(source, speeds, _VELOCITY)
    put = _with(source, places, _PLACE)
    speed = f"func.grad({name})({t})"
    momentum = joined(f"func.grad(lambda {_VELOCITY}: ", moved, f")({speed})")
    force = joined(f"func.grad(lambda {_PLACE}: ", put, f")({name}({t}))")
    slope = joined(f"func.grad(lambda {t}: ", momentum, f")({t})")
    return joined(slope, " - ", force) if places else slope


def _uses(program: Program, name: str) -> tuple[Places, Places, set[str]]:
    """The spans of `q(t)` and of `func.grad(q)(t)`, and what they are of. Raises LanguageError."""
    source, rows = program.source, program.walk()
    places: Places = []
    speeds: Places = []
    times: set[str] = set()
    for row, (kind, _, _, span) in enumerate(rows):
        if kind != "call":
            continue
        own, *given = program.children(row)
        called = source[slice(*program.span(own))]
        if called == name or re.fullmatch(rf"func\.grad\(\s*{re.escape(name)}\s*\)", called):
            (places if called == name else speeds).append(span)
            times |= {source[slice(*program.span(arg))] for arg in given}
    reads = sum(kind == "name" and word == name for kind, word, _, _ in rows)
    if reads != len(places) + len(speeds):
        hint = (
            f"write the coordinate as {name}(t), its velocity as func.grad({name})(t); with --math "
            f"{name} and {name}' are read so"
        )
        raise _error(source, f"--euler-lagrange {name}: {name} is read otherwise than as {name}(t) "
                     f"and func.grad({name})(t)", hint)  # fmt: skip
    if not all(re.fullmatch(r"[A-Za-z_]\w*", t) for t in times):
        raise _error(source, f"--euler-lagrange {name}: the time must be a variable", None)
    return places, speeds, times


def _with(source: str, spans: Places, word: str) -> str:
    """The text with a word in place of these parts."""
    parts, end = [], 0
    for start, stop in sorted(spans):
        parts += [source[end:start], word]
        end = stop
    return joined(*parts, source[end:])


def _error(source: str, message: str, hint: str | None) -> LanguageError:
    return LanguageError(message, kind="usage", source=source, hint=hint)


__all__ = ["equation_of_motion"]

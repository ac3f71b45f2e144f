"""The table of a search's steps: where each stands, the value there, and the length of the gradient.

`minimize --trace` prints it as it goes; `plot --descend` writes it with --csv, --plain and --json.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from gradcli.commands import output

MOST_COLUMNS = 4  # numbers of a point that text has room for
_POINT, _VALUE = 16, 24  # widths of columns of text


class Step(NamedTuple):
    """A step: its number, the numbers of the point, the value, the norm of the gradient."""

    number: int
    point: Sequence[float]
    value: float
    norm: float


def columns(shapes: Mapping[str, tuple[int, ...]]) -> list[str]:
    """A name for each number of the variables: x, or x[0], x[1] of a vector."""
    import numpy as np

    return [
        name + (f"[{','.join(map(str, place))}]" if shape else "")
        for name, shape in shapes.items()
        for place in np.ndindex(shape)
    ]


def heading(names: Sequence[str]) -> str:
    """The first line of the table as text."""
    shown = names if len(names) <= MOST_COLUMNS else ()
    left = "".join(f"{name:<{_POINT}}" for name in shown)
    return f" step  {left}{'value':<{_VALUE}}gradient_norm"


def line(step: Step, precision: int | None = None) -> str:
    """A line of it, in columns that do not depend on other lines.

    Value and norm have the digits of the lines that follow the table; a point has eight, or `precision`.
    """
    import numpy as np

    shown = step.point if len(step.point) <= MOST_COLUMNS else ()
    left = "".join(f"{float(x) + 0.0:<{_POINT}.{min(precision or 8, 9)}g}" for x in shown)
    value, norm = output.numerals(np.array([step.value, step.norm], np.float64), precision)
    return f"{step.number:5}  {left}{value:<{_VALUE}}{norm}"


def to_text(names: Sequence[str], steps: Iterable[Step], form: str, precision: int | None) -> str:
    """The table in a form for programs, csv or plain, with all digits or so many."""
    import numpy as np

    separator = "\t" if form == "plain" else ","
    quoted = [f'"{n}"' if separator in n else n for n in names]
    rows = [separator.join(["step", *quoted, "value", "gradient_norm"])]
    for step in steps:
        every = np.array([*step.point, step.value, step.norm], np.float64)
        numbers = output.numerals(every, precision)
        rows.append(separator.join([str(step.number), *numbers]))
    return "\n".join(rows)


def to_json(
    names: Sequence[str], steps: Iterable[Step], precision: int | None
) -> list[dict[str, Any]]:
    """The table as an object a step."""
    return [
        {
            "step": step.number,
            "point": {
                n: output.to_json(float(x), precision)
                for n, x in zip(names, step.point, strict=True)
            },
            "value": output.to_json(step.value, precision),
            "gradient_norm": output.to_json(step.norm, precision),
        }
        for step in steps
    ]

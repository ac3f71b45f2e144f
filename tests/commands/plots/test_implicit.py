"""Curves of equations: every point solves the equation, none is missed, no pole or jump is taken for one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gradcli.commands.plots import implicit
from tests.commands.running import run
from tests.sweep import sweep

Function = Callable[[Any, Any], Any]
R = np.hypot


def curve(
    function: Function, x: tuple[float, float], y: tuple[float, float], points: int = 121
) -> Any:
    lines = implicit.grid(x, False, points, 0.618034), implicit.grid(y, False, points, 0.414214)
    with np.errstate(all="ignore"):
        return implicit.curve(function, *lines)


# -- name: (left - right, pieces within -2 to 2, how far from 0 the farthest point is) -----------------
CURVES: dict[str, tuple[Function, int, float]] = {
    "a circle": (lambda x, y: x**2 + y**2 - 1, 1, 1.0),
    "a circle without a change of sign": (lambda x, y: (x**2 + y**2 - 1) ** 2, 1, 1.0),
    "two lines": (lambda x, y: abs(x) - 1 + 0 * y, 2, 5**0.5),
    "a hyperbola": (lambda x, y: x * y - 1, 2, 2.0616),
    "the same by a pole": (lambda x, y: y - 1 / x, 2, 2.0616),
    "touching": (lambda x, y: abs(x - y), 1, 8**0.5),
    "steps, without what joins them": (lambda x, y: np.floor(x) - y, 4, 8**0.5),
    "an oval and a branch": (lambda x, y: y**2 - x**3 + x, 2, 2.65),
    "a domain that ends": (lambda x, y: np.sqrt(x) + y - 1, 1, 2.04),
}


@pytest.mark.parametrize("name", CURVES)
def test_points_of_a_curve(name: str) -> None:
    function, pieces, reach = CURVES[name]
    x, y = curve(function, (-2, 2), (-2, 2))
    there = np.isfinite(x)
    assert np.abs(function(x[there], y[there])).max() < 1e-8
    assert np.isnan(x).sum() == pieces
    assert R(x, y)[there].max() == pytest.approx(reach, abs=0.05)
    steps = R(np.diff(x), np.diff(y))
    assert np.nanmax(steps) < 0.1  # no gap within a piece


PLACED: list[tuple[str, Function, Any]] = [
    ("a circle is shown whole", lambda x, y: x**2 + y**2 - 1, ((-1.5, 1.5), (-1.5, 1.5))),
    ("a large one too", lambda x, y: x**2 + y**2 - 4e4, ((-250, 250), (-250, 250))),
    ("and one far from 0", lambda x, y: (x - 50) ** 2 + (y - 5) ** 2 - 100, ((35, 65), (-10, 20))),
    ("what goes on for ever", lambda x, y: x * y - 1, ((-10, 10), (-10, 10))),
    ("nothing", lambda x, y: x**2 + y**2 + 1, ((-10, 10), (-10, 10))),
    ("to the edge of a domain", lambda x, y: np.sqrt(x) + np.sqrt(y) - 1, ((-0.2, 1), (-0.2, 1))),
]  # fmt: skip


@pytest.mark.parametrize(("function", "ends"), [p[1:] for p in PLACED], ids=[p[0] for p in PLACED])
def test_where_a_curve_is_shown(function: Function, ends: Any) -> None:
    assert implicit.place(lambda *e: [curve(function, *e)], None, None) == ends


SAID: list[tuple[str, int, str]] = [
    # What is typed, the exit code, and words on standard error.
    ('x**2+y**2==1 --csv', 0, "x goes from -1.5 to 1.5 and y goes from -1.5 to 1.5; for another range "
     "write --x FROM:TO --y FROM:TO"),
    ('x**2+y**2==1 --x -2:2 --y -2:2 --csv', 0, ""),
    ('x**2+y**2<1 --x -2:2 --y -2:2 --csv', 0, "of x**2+y**2<1 the edge is drawn"),
    ('x**2+y**2==-1 --x -2:2 --y -2:2', 1, "no point of x**2+y**2==-1 was found"),
    ('x**2+y**2==1,x --x -2:2 --y -2:2', 2, "an equation stands beside a value"),
    ('x**2+y**2==1 --x -2:2 --y -2:2 --surface', 2, "write left - right"),
    ('x**2+y**2==1 --x -2:2 --y -2:2 --at x=1,y=1', 2, "near it: --at x=0."),
    ('x**2==4 --x -3:3 --csv', 0, "gradcli root 'x**2==4' --x -3:3 --all"),
]  # fmt: skip


@pytest.mark.long
@sweep(("typed", "code", "words"), SAID, parts=1)
def test_what_is_said(typed: str, code: int, words: str) -> None:
    found = run("plot", *typed.split())
    assert found.exit_code == code, found.stderr
    assert words in found.stderr
    assert bool(words) == bool(found.stderr)


@pytest.mark.long
def test_curves_as_numbers() -> None:
    argv = ("plot", "x**2 + y**2 == 1, y == x", "--x", "-2:2", "--y", "-2:2")
    circle, line = json.loads(run(*argv, "--json").stdout)["curves"]
    assert (circle["equation"], line["equation"]) == ("x**2 + y**2 == 1", "y == x")
    points = circle["points"]
    x, y = (np.array([float(n) for n in points[name]]) for name in "xy")
    assert np.allclose((x**2 + y**2)[~np.isnan(x)], 1)
    head, first, *_ = run(*argv, "--csv").stdout.splitlines()
    assert head == "equation,piece,x,y" and first.startswith("1,1,")


@pytest.mark.long
@pytest.mark.parametrize(("typed", "as_if"), [
    ("y == x**2", "x**2"),  # a name alone is what goes up
    ("x**2 == y", "x**2"),
    ("E == m*c**2 --c 3", "m*c**2 --c 3"),
    ("z == x*y", "x*y"),
])  # fmt: skip
def test_a_name_alone_is_the_height(typed: str, as_if: str) -> None:
    argv = ("--width", "40", "--height", "6")
    one, other = (run("plot", *_words(text), *argv) for text in (typed, as_if))
    assert one.exit_code == 0 and one.stdout == other.stdout


def _words(text: str) -> list[str]:
    expression, *options = text.split(" --")
    return [expression, *[word for option in options for word in f"--{option}".split()]]


def test_a_circle_is_round_on_a_terminal() -> None:
    shown = run("plot", "x**2 + y**2 == 1", "--x", "-1:1", "--y", "-1:1", "--width", "48").stdout
    rows = [row for row in shown.splitlines() if "│" in row or "┤" in row]
    assert len(rows) == 20 and len(max(rows, key=len)) == pytest.approx(2 * 20 + 5, abs=4)


@pytest.mark.long
def test_x_goes_across() -> None:
    shown = run("plot", "y*x == 1", "--width", "50", "--height", "8")
    assert shown.stdout.splitlines()[-1].endswith("x")

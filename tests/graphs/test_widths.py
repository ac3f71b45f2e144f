"""No line is wider than its terminal, in columns of the terminal: narrow ones, Chinese names, no graph."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Any

import pytest

import gradcli
from gradcli.engine.system.visible import columns, fitting
from gradcli.graphs import Graph, inspect
from gradcli.graphs.gradient_norms import NormsTable
from gradcli.graphs.labels import shorten
from gradcli.graphs.styles import crop, fold
from gradcli.graphs.traversal import matching
from tests.sweep import sweep


def shown(text: str) -> int:
    """The columns of a text as a terminal without combining characters counts them."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


@sweep(
    ("text", "width"),
    [
        *(("", 0), ("abc", 3), ("ä├─ ‖…↑×", 8), ("変数", 4), ("x変", 3)),
        *(("e\u0301", 1), ("한글", 4), ("\U0001f600", 2), ("\u00ad", 0)),
    ],
    parts=1,
)
def test_columns(text: str, width: int) -> None:
    assert columns(text) == width


@sweep(
    ("text", "room", "count"),
    [("abc", 2, 2), ("abc", 9, 3), ("変数", 3, 1), ("x変数", 3, 2), ("変", 1, 0), ("a", -2, 0)],
    parts=1,
)
def test_fitting(text: str, room: int, count: int) -> None:
    assert fitting(text, room) == count


def test_pieces_of_lines() -> None:
    line = [("変数", "label"), (" = ", "note"), ("1234567", "value")]
    assert crop(line, 6, "…") == [("変数", "label"), (" ", "note"), ("…", "guide")]
    assert crop(line, 1, "...") == [(".", "guide")]
    assert crop(line, 14, "…") == line
    assert fold(line, 5) == [
        [("変数", "label")],
        [("=", "note")],
        [("12345", "value")],
        [("67", "value")],
    ]
    assert shorten("変数変数変数", 7) == "変…数"


def small() -> Any:
    return (gradcli.tensor([1.0, 2.0], requires_grad=True) * 2).tanh().sum()


def chinese() -> Graph:
    x = gradcli.tensor([1.0, 2.0, 3.0], requires_grad=True)
    return inspect((x * x + 1).sum(), names={"変数": x}, source="sum(変数 * 変数 + 1)", grads=True)


def deep() -> Graph:
    x = y = gradcli.tensor([1.0, 2.0], requires_grad=True)
    for _ in range(40):
        y = (y + 1e-30) * y.tanh()
    return inspect(y.sum(), names={"a_name_of_some_length": x}, grads=True)


def nothing() -> Graph:
    return inspect(gradcli.tensor(1.0))


GRAPHS = [chinese, deep, nothing, lambda: inspect(small(), grads=True)]
TREES: list[dict[str, Any]] = [
    {},
    {"values": True, "saved": True},
    {"edges": True, "forward": True},
    {"depth": 0, "legend": True},
]


@pytest.mark.parametrize("width", [1, 2, 12, 40])
@pytest.mark.parametrize("make", GRAPHS)
def test_trees(make: Callable[[], Graph], width: int) -> None:
    for options in TREES:
        text = str(make().tree(width=width, **options))
        assert max(map(shown, text.split("\n"))) <= width, (options, text)


@pytest.mark.parametrize("width", [24, 40, 80])
@pytest.mark.parametrize("make", GRAPHS)
def test_tables(make: Callable[[], Graph], width: int) -> None:
    graph = make()
    for drawn in (NormsTable(graph.norms()), graph.trace()):
        for line in drawn.fitted(width, ascii=False):
            assert shown("".join(text for text, _ in line)) <= width


def test_columns_stand_below_one_another() -> None:
    lines = str(chinese().tree(values=True)).split("\n")
    assert len({shown(line[: line.index("=")]) for line in lines if "= " in line}) == 1
    heading, row = NormsTable(chinese().norms()).plain().split("\n")[:2]
    assert shown(heading[: heading.index("shape")]) == shown(row[: row.index("(3,)")])


def test_boxes_are_as_wide_as_their_words() -> None:
    picture = chinese().picture()
    (leaf,) = (card for card in picture.cards if card.name)
    wide = picture.size(leaf)[0]
    leaf.name = "x" * 4
    assert picture.size(leaf)[0] == wide
    leaf.name = "x" * 2
    assert picture.size(leaf)[0] < wide


def test_a_graph_of_nothing_has_no_steps() -> None:
    assert nothing().trace().passes == []
    assert str(nothing().trace()) == ""
    assert nothing().trace().to_json() == []


def test_a_number_that_is_none_names_no_node() -> None:
    graph = chinese()
    assert matching(graph.skeleton, "²", {}) == []
    with pytest.raises(ValueError, match="no node is called '²'"):
        str(graph.tree(only="²"))

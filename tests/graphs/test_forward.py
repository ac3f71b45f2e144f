"""A graph read forward shows operands that need no gradient, which backpropagation does not know."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from gradcli.cli import main


def graph(*arguments: str) -> str:
    found = CliRunner().invoke(main, ["graph", *arguments])
    assert found.exit_code == 0, found.output
    return found.stdout


FIXED = ("--x=1,2", "--c=3", "--no-grad=c", "--forward")


def test_a_constant_is_an_input_of_its_own() -> None:
    text = graph("x*2 + c", *FIXED)
    assert "constant c" in text and "4 nodes · 3 edges · 1 leaf" in text
    assert "constant" not in graph("x*2 + c", "--x=1,2", "--c=3", "--no-grad=c")


def test_it_is_shown_once_with_its_value() -> None:
    text = graph("c*x + x/c", *FIXED, "--values")
    assert text.count("constant c") == 1 and "= 3" in text


def test_what_is_made_of_constants_alone_is_a_constant() -> None:
    text = graph("x*(c*2)", *FIXED, "--values")
    assert "constant" in text and "= 6" in text


def test_json_says_where_it_goes() -> None:
    found = json.loads(graph("x*2 + c", *FIXED, "--json"))
    (one,) = [node for node in found["nodes"] if node["name"] == "Constant"]
    assert (one["variable"], one["shape"], one["users"]) == ("c", [], [{"node": 0, "input": 1}])
    assert one["id"] in found["inputs"]


@pytest.mark.parametrize("ending", ["svg", "html", "dot", "mmd"])
def test_pictures_have_it(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"graph.{ending}"
    graph("x*2 + c", *FIXED, "-o", str(path))
    assert "constant" in path.read_text(encoding="utf-8")

"""The tree: what its options do, and that it fits."""

from __future__ import annotations

import io
import re
import time
from typing import Any

import fakes
import pytest
import rich.console
from inspected import describer, tree, tree_of
from test_records import unlink

from gradcli.graphs.traversal import Describer, walk
from tests.sweep import sweep


def big(root: fakes.Node, source: str = "") -> Describer:
    return Describer(walk([root]), source)


def test_sixteen_squarings_fit_a_page() -> None:
    lines = str(tree("squarings", width=80)).splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    assert sum("MulBackward0" in line and "↑" not in line for line in lines) == 16
    # Every shared node is numbered where it is first seen and referred to once.
    for number in range(1, 17):
        assert sum(f"[{number}]" in line for line in lines) == 2


@sweep("name", fakes.GRAPHS, parts=1)
@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_no_line_is_wider_than_the_terminal(name: str, width: int) -> None:
    drawn = tree(name, width=width, saved=True, values=True, edges=True, legend=True)
    assert max(map(len, str(drawn).splitlines())) <= width


@sweep("name", fakes.GRAPHS, parts=1)
def test_ascii_is_ascii(name: str) -> None:
    text = tree(name, saved=True, values=True, legend=True).plain(ascii=True)
    assert text.isascii()


def test_what_colour_alone_explains_is_left_out_of_a_plain_legend() -> None:
    drawn = tree("chain", legend=True)
    meanings = ("a saved tensor\n", "the gradient that reached the node", "not finite")
    for colour in (False, True):
        out = io.StringIO()
        rich.console.Console(
            file=out, force_terminal=True, no_color=not colour, color_system="standard", width=80
        ).print(drawn)
        text = re.sub("\x1b\\[[0-9;]*m", "", out.getvalue())
        assert "a straight chain, folded" in text
        assert [meaning in text for meaning in meanings] == [colour] * 3
    assert not any(meaning in f"{drawn}\n" for meaning in meanings)


def test_every_reference_has_been_introduced() -> None:
    for name in fakes.GRAPHS:
        for options in ({}, {"depth": 1}, {"depth": 3}, {"collapse": True}, {"collapse": False}):
            seen: set[str] = set()
            waiting: set[str] = set()
            for line in str(tree(name, width=60, **options)).splitlines():
                found = re.search(r"([↑↓] )?\[(\d+)\]", line)
                if found and found[1] == "↑ ":
                    assert found[2] in seen | waiting, (name, options, line)
                elif found:
                    (waiting if found[1] else seen).add(found[2])
            assert waiting <= seen


def test_depth_cuts_and_says_so() -> None:
    text = str(tree("network", depth=1))
    assert "LogBackward0 …" in text and "SumBackward1" not in text
    assert "3 shown" in text


def test_a_node_cut_at_its_first_sight_is_drawn_where_there_is_room() -> None:
    shared = fakes.Node("ExpBackward0", fakes.Leaf(1.0, "x"))
    deep = fakes.Node("SinBackward0", fakes.Node("CosBackward0", shared))
    text = str(tree_of(big(fakes.Node("AddBackward0", deep, shared)), depth=2))
    assert "AccumulateGrad x" in text


@sweep(
    ("only", "first"),
    [
        ("h", "ReluBackward0 h"),
        ("p", "SumBackward1 p"),
        ("b", "AccumulateGrad b"),
        ("LogBackward0", "LogBackward0"),
        ("Log", "LogBackward0"),
        ("#5", "AddBackward0"),
    ],
    parts=1,
)
def test_only(only: str, first: str) -> None:
    assert str(tree("network", only=only)).startswith(first)


def test_only_with_several_matches_shows_each_with_its_inputs() -> None:
    lines = str(tree("network", only="AddBackward0")).splitlines()
    assert sum(line.startswith("AddBackward0") for line in lines) == 2
    assert not any("SumBackward1" in line for line in lines)


def test_only_of_nothing_names_what_there_is() -> None:
    with pytest.raises(ValueError, match=r"no node is called 'q' \(named nodes: p, h, W, b, v\)"):
        str(tree("network", only="q"))


def test_deep_chains_fold_by_themselves() -> None:
    assert "⋮ 58 × SinBackward0" in str(tree("chain"))
    assert "⋮ 38 × AddBackward0, with x" in str(tree("additions"))
    assert "⋮" not in str(tree("chain", collapse=False))
    assert "⋮ 14 × MulBackward0" in str(tree("squarings", collapse=True))


def test_a_fold_of_mixed_nodes_counts_them() -> None:
    node: fakes.Node = fakes.Leaf(1.0)
    for i in range(60):
        node = fakes.Node(("Sin", "Cos", "Exp", "Log", "Tan")[i % 5] + "Backward0", node)
    text = str(tree_of(big(node)))
    assert "⋮ 58 nodes: 12 × LogBackward0, 12 × ExpBackward0" in text
    assert "with unnamed" not in text


def test_long_chains_do_not_drift() -> None:
    for collapse in (True, False, None):
        root, source = fakes.additions(300)
        drawn = tree_of(big(root, source), collapse=collapse, width=80)
        assert max(map(len, str(drawn).splitlines())) <= 80
        # In a pipe nothing is cut, but the indentation is bounded.
        assert max(map(len, str(tree_of(big(root, source), collapse=collapse)).splitlines())) < 200


def test_no_graph() -> None:
    assert str(tree_of(Describer(walk([])))) == "no graph: nothing requires grad"


def test_a_terminal_gets_the_same_text_in_colour() -> None:
    from rich.console import Console

    known = describer("awkward")
    out = io.StringIO()
    Console(file=out, force_terminal=True, width=70, color_system="truecolor").print(tree_of(known))
    assert "\x1b[" in out.getvalue()
    plain = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())
    assert [line.rstrip() for line in plain.splitlines()] == str(
        tree_of(known, width=70)
    ).splitlines()


def test_rich_is_not_imported_for_plain_text() -> None:
    import subprocess
    import sys

    code = (
        "import sys; import gradcli.graphs.tree_format, gradcli.graphs.step_listing;"
        "import gradcli.graphs.inspection;"
        "assert 'rich' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.long
@pytest.mark.parametrize("options", [{}, {"collapse": False}, {"collapse": False, "saved": True}])
def test_thousands_of_nodes(options: dict[str, Any]) -> None:
    root, source = fakes.additions(4_000)
    start = time.process_time()
    known = big(root, source)
    assert "4,001 nodes" in str(tree_of(known, **options))
    # A third of a second on an idle machine; the bound leaves room for a busy one.
    assert time.process_time() - start < 2
    unlink(known.skeleton.nodes)


@pytest.mark.long
def test_a_million_nodes_with_depth() -> None:
    root, source = fakes.additions(1_000_000)
    known = big(root, source)
    text = str(tree_of(known, depth=5))
    assert "1,000,001 nodes" in text and len(text.splitlines()) < 20
    unlink(known.skeleton.nodes)

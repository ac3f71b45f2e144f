"""Pictures fit what reads them, or a note says the number and what to do."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from gradcli.graphs import reader_limits
from gradcli.graphs.mermaid import picture_to_mermaid
from gradcli.graphs.tikz import unknown_letters
from tests.commands.running import run
from tests.sweep import sweep

CHAIN = "h = x\nfor i in range({n}):\n    h = tanh(W*h + U)\nh"
COMB = "s = x\nfor i in range({n}):\n    s = s + sin(x*i)*cos(U*i)\ns"
POINT = ("--x", "0.1", "--U", "0.3")
EDGES = "Mermaid draws graphs of 500 edges at most, and this one has "


@pytest.mark.long
@sweep(
    ("program", "options", "said"),
    [
        (CHAIN.format(n=30), (), None),
        (CHAIN.format(n=149), (), None),  # deep: its chains are folded anyway
        (CHAIN.format(n=149), ("--no-collapse",), f"{EDGES}745, and will not draw this one: say --depth N"),
        (CHAIN.format(n=149), ("--no-collapse", "--depth", "20"), None),
        (COMB.format(n=50), (), None),
        (COMB.format(n=300), (), f"{EDGES}2,400: the first 63 levels are shown (--depth 63)"),
        (COMB.format(n=300), ("--depth", "200"), "and will not draw this one: say a smaller --depth"),
        (COMB.format(n=60), ("--saved", "--values"), None),
    ],
    parts=2,
)  # fmt: skip
def test_mermaid_gets_what_it_draws(
    program: str, options: tuple[str, ...], said: str | None
) -> None:
    """Or a note with the number: measured with Mermaid 11.17.2, which refuses 501 edges."""
    weight = ("--W", "0.5") if "W" in program else ()
    done = run("graph", program, *POINT, *weight, "--format", "mermaid", *options)
    edges = len(re.findall(r"^  \w+ -[-.]+>", done.stdout, re.M))
    if said is None or "levels" in said or "folded" in said:
        assert 0 < edges <= 500 and len(done.stdout) <= 50_000
    assert (said is None) == ("Mermaid" not in done.stderr)
    assert said is None or said in done.stderr
    assert said is None or "--format svg shows all" in done.stderr


@pytest.mark.long
def test_the_depth_that_is_left_is_the_greatest_that_fits() -> None:
    """Characters count as edges do: with saved tensors fewer levels fit."""
    program = COMB.format(n=62).replace("U", "frequency_of_the_wave")
    point = ("--x", "0.1", "--frequency_of_the_wave", "0.3", "--format", "mermaid")
    done = run("graph", program, *point, "--saved", "--values")
    found = re.search(r"50,000 characters at most.* the first (\d+) levels", done.stderr)
    assert found, done.stderr
    deeper = ("--depth", str(int(found[1]) + 1))
    more = run("graph", program, *point, "--saved", "--values", *deeper)
    assert len(done.stdout) <= 50_000 < len(more.stdout)


def test_tikz_says_what_tex_lacks() -> None:
    done = run("graph", "θ_1*α + x", "--θ_1", "1", "--α", "2", "--x", "1", "--format", "tikz")
    assert r"$\theta$\_1" in done.stdout and r"$\alpha$" in done.stdout and not done.stderr
    assert unknown_letters(done.stdout) == ""
    done = run("graph", "变*x", "--变", "2", "--x", "1", "--format", "tikz")
    assert "pdflatex has no letter 变: use lualatex" in done.stderr
    wide = run("graph", COMB.format(n=128), *POINT, "--format", "tikz")
    assert "larger than TeX's longest length, 5.75 m" in wide.stderr
    many = CHAIN.format(n=401)
    deep = run("graph", many, *POINT, "--W", "0.5", "--format", "tikz", "--no-collapse")
    assert "pdflatex has memory for about 2,000 nodes, and this picture has 2,004" in deep.stderr


@pytest.mark.long
@pytest.mark.needs("cairosvg")
def test_a_png_of_many_nodes_says_that_its_letters_are_small(tmp_path: Path) -> None:
    done = run(
        *("graph", COMB.format(n=120), *POINT, "-o", str(tmp_path / "g.png")), "--no-collapse"
    )
    assert re.search(r"the letters of this PNG are [2-5]\.\d pixels high", done.stderr)
    assert reader_limits.letters(2.0) is None


@pytest.mark.long
@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz's dot is not installed")
def test_graphviz_draws_a_recurrent_net_of_sixty_steps(tmp_path: Path) -> None:
    """Its weights are one leaf, which leads to every step: without bounds that took over a minute."""
    done = run(
        *("graph", CHAIN.format(n=60), *POINT, "--W", "0.5", "--no-collapse", "--format", "dot")
    )
    drawn = subprocess.run(
        ["dot", "-Tsvg"], input=done.stdout, capture_output=True, text=True, timeout=600, check=True
    )
    assert drawn.stdout.count('class="edge"') == done.stdout.count(" -> ")


def test_graphviz_is_said_to_take_long() -> None:
    done = run("graph", COMB.format(n=200), *POINT, "--format", "dot")
    assert "Graphviz takes minutes to draw more than 1,000 nodes" in done.stderr
    assert not run("graph", COMB.format(n=85), *POINT, "--format", "dot").stderr


@pytest.mark.long
def test_what_a_picture_leaves_out_is_said_in_python_too() -> None:
    import gradcli

    x = gradcli.tensor(0.5, requires_grad=True)
    s = x
    for i in range(300):
        s = s + (x * i).sin() * (x * i).cos()
    graph = gradcli.inspect(s)
    assert graph.to_mermaid() and graph.note is not None and "500 edges" in graph.note
    assert graph.to_svg() and graph.note is None
    assert picture_to_mermaid(graph.picture(depth=2))
    assert graph.to_mermaid(depth=3) and graph.note is None

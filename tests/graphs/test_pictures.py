"""DOT, Mermaid and SVG: valid, whole, and laid out so that nothing lies upon anything."""

from __future__ import annotations

import json
import shutil
import subprocess
from itertools import pairwise
from xml.etree import ElementTree

import fakes
import pytest
from inspected import described

from gradcli.graphs import layers
from gradcli.graphs.dot import graph_to_dot
from gradcli.graphs.mermaid import escaped, graph_to_mermaid
from gradcli.graphs.records import Describer, records, walk
from gradcli.graphs.svg import graph_to_svg


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz's dot is not installed")
@pytest.mark.parametrize("name", fakes.GRAPHS)
def test_graphviz_reads_the_dot(name: str) -> None:
    text = graph_to_dot(described(name), "float64")
    done = subprocess.run(["dot", "-Tdot_json"], input=text, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr
    found = json.loads(done.stdout)
    nodes = described(name)
    edges = sum(len(record.next) for record in nodes)
    nones = sum(edge is None for record in nodes for edge in record.next)
    assert len(found["objects"]) == len(nodes) + nones
    assert len(found["edges"]) == edges


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz's dot is not installed")
def test_graphviz_shows_names_as_they_are() -> None:
    text = graph_to_dot(described("awkward"), "float64")
    drawn = subprocess.run(["dot", "-Tsvg"], input=text, capture_output=True, text=True).stdout
    words = "".join(ElementTree.fromstring(drawn).itertext())
    assert 'AccumulateGrad a"<&>[bold]' in words and "y|{}[/]" in words


def test_mermaid_escapes_whatever_could_end_a_label() -> None:
    assert escaped('a"b') == "a#34;b"
    assert escaped("x[0]*y") == "x#91;0#93;#42;y"
    label = graph_to_mermaid(described("awkward"), "float64").splitlines()[1]
    assert label.count('"') == 2


@pytest.mark.parametrize("name", fakes.GRAPHS)
def test_the_svg_is_one_whole_file(name: str) -> None:
    nodes = described(name)
    text = graph_to_svg(nodes, "float64", fakes.build(name)[1])
    root = ElementTree.fromstring(text)
    space = "{http://www.w3.org/2000/svg}"
    assert len(root.findall(f"{space}path")) == sum(len(record.next) for record in nodes)
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "prefers-color-scheme: dark" in text
    title = root.find(f"{space}title")
    assert title is not None and (title.text or "").startswith("Backward graph")


def lay_out(root: fakes.Node) -> layers.Layout:
    nodes = list(records(Describer(walk([root]))))
    boxes = [layers.Box(record.id, 100.0 + 10 * (record.id % 3), 50.0) for record in nodes]
    wires = [
        layers.Wire(record.id, edge[0], i, len(record.next))
        for record in nodes
        for i, edge in enumerate(record.next)
        if edge is not None
    ]
    return layers.layout(boxes, wires)


def everything(found: layers.Layout) -> list[layers.Box]:
    return found.boxes + [w.reference for w in found.wires if w.reference is not None]


@pytest.mark.parametrize("name", fakes.GRAPHS)
def test_no_two_boxes_overlap_and_edges_go_down(name: str) -> None:
    found = lay_out(fakes.build(name)[0])
    rows: dict[int, list[layers.Box]] = {}
    for box in everything(found):
        rows.setdefault(box.layer, []).append(box)
    for row in rows.values():
        row.sort(key=lambda box: box.x)
        for a, b in pairwise(row):
            assert b.x - a.x >= (a.width + b.width) / 2 + layers.GAP - 1e-6
    for wire in found.wires:
        assert all(b[1] >= a[1] for a, b in pairwise(wire.points))
    for box in everything(found):
        assert box.x - box.width / 2 >= -1e-6
        assert box.x + box.width / 2 <= found.width + 1e-6


def test_a_tree_has_no_crossing() -> None:
    def grow(depth: int) -> fakes.Node:
        below = [grow(depth - 1) for _ in range(2)] if depth else []
        return fakes.Node("AddBackward0", *below)

    found = lay_out(grow(5))
    by_layer: dict[int, list[layers.Box]] = {}
    for box in found.boxes:
        by_layer.setdefault(box.layer, []).append(box)
    for wires in by_layer.values():
        assert len(wires) in (1, 2, 4, 8, 16, 32)
    starts = sorted(found.wires, key=lambda w: (found.boxes[w.source].layer, w.points[0][0]))
    for a, b in pairwise(starts):
        if found.boxes[a.source].layer == found.boxes[b.source].layer:
            assert a.points[-1][0] < b.points[-1][0]


def test_long_chains_do_not_drift_sideways() -> None:
    assert lay_out(fakes.additions(500)[0]).width < 3_000


def test_pooling_keeps_what_fits_and_spreads_what_does_not() -> None:
    assert layers.pooled([0.0, 500.0], [1, 1], [10, 10]) == [0.0, 500.0]
    left, right = layers.pooled([0.0, 0.0], [1, 1], [10, 10])
    assert right - left == pytest.approx(10 + layers.GAP)
    assert left + right == pytest.approx(0)

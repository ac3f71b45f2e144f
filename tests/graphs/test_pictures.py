"""The pictures: valid, whole, the same in every format, and laid out so that nothing lies upon anything."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import fakes
import numpy as np
import pytest
from inspected import describer, picture, picture_of
from png import read_png

from gradcli.graphs import layered_layout
from gradcli.graphs.dot import picture_to_dot
from gradcli.graphs.layered_layout import SLIDE
from gradcli.graphs.mermaid import escaped, picture_to_mermaid
from gradcli.graphs.raster import svg_to_png
from gradcli.graphs.svg import Frame, picture_to_svg
from gradcli.graphs.tikz import picture_to_tikz
from gradcli.graphs.traversal import Describer, records, walk
from tests.sweep import sweep


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz's dot is not installed")
@pytest.mark.parametrize("name", fakes.GRAPHS)
def test_graphviz_reads_the_dot(name: str) -> None:
    drawn = picture(name, edges=True)
    text = picture_to_dot(drawn)
    done = subprocess.run(["dot", "-Tdot_json"], input=text, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr
    found = json.loads(done.stdout)
    assert len(found["objects"]) == len(drawn.cards)
    assert len(found.get("edges", [])) == len(drawn.wires)


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz's dot is not installed")
def test_graphviz_shows_names_as_they_are() -> None:
    text = picture_to_dot(picture("awkward"))
    drawn = subprocess.run(["dot", "-Tsvg"], input=text, capture_output=True, text=True).stdout
    words = "".join(ElementTree.fromstring(drawn).itertext())
    assert 'AccumulateGrad a"<&>[bold]' in words and "y|{}[/]" in words


def test_mermaid_escapes_whatever_could_end_a_label() -> None:
    assert escaped('a"b') == "a#34;b"
    assert escaped("x[0]*y") == "x#91;0#93;#42;y"
    label = picture_to_mermaid(picture("awkward")).splitlines()[1]
    assert label.count('"') == 2


SVG = "{http://www.w3.org/2000/svg}"


@sweep("name", fakes.GRAPHS, parts=1)
def test_the_svg_is_one_whole_file(name: str) -> None:
    drawn = picture(name, edges=True)
    text = picture_to_svg(drawn)
    root = ElementTree.fromstring(text)
    assert len(root.findall(f"{SVG}path")) == len(drawn.wires)
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "prefers-color-scheme: dark" in text
    title = root.find(f"{SVG}title")
    assert title is not None and (title.text or "").startswith("Backward graph")


def test_pictures_in_one_page_know_nothing_of_each_other_nor_of_the_page() -> None:
    """No id is that of another picture, and every rule names its own picture first."""
    texts = [picture_to_svg(picture(name)) for name in ("linear", "network")]
    texts += [picture_to_svg(picture("linear"), Frame({0}, 1, {}, "2 / 5"))]
    ids = [set(re.findall(r'\bid="([^"]+)"', text)) for text in texts]
    assert all(ids) and not ids[0] & ids[1] and not ids[0] & ids[2]
    for text, own in zip(texts, ids, strict=True):
        assert set(re.findall(r"url\(#([^)]+)\)", text)) < own
        (root,) = re.findall(r'^<svg [^>]*class="(\w+)"', text)
        (style,) = re.findall(r"dark\) \{ (.*) \}</style>", text)
        selectors = [rule.split("{")[0].strip() for rule in style.split("}") if rule.strip()]
        assert selectors and all(s.startswith(f"svg.{root} .gc-") for s in selectors)
        assert all(word.startswith("gc-") for one in re.findall(r'class="([^"]+)"', text)[1:]
                   for word in one.split())  # fmt: skip
    assert picture_to_svg(picture("linear")) == texts[0]


@pytest.mark.parametrize("theme", ["auto", "light", "dark"])
def test_every_colour_is_a_presentation_attribute(theme: str) -> None:
    """Renderers that read no CSS variables, or no CSS at all, paint it as meant."""
    text = picture_to_svg(picture("network", values=True, saved=True, theme=theme))
    assert "var(" not in text
    assert ("<style>" in text) == (theme == "auto")
    for element in ElementTree.fromstring(text).iter():
        if element.tag.removeprefix(SVG) in ("rect", "path", "text"):
            assert element.get("fill"), element.attrib


@pytest.mark.parametrize("background", ["none", "white"])
def test_the_paper(background: str) -> None:
    text = picture_to_svg(picture("linear", background=background))
    assert ('width="100%"' in text) == (background == "white")
    assert ("<style>" in text) == (background == "none")
    # A dark ink on paper that stays white.
    assert 'fill="#1c2430"' in text


@pytest.mark.parametrize(
    "render", [pytest.param("cairosvg", marks=pytest.mark.needs("cairosvg")), "rsvg-convert"]
)
def test_renderers_without_a_browser_show_light_cards_and_dark_ink(
    render: str, tmp_path: Path
) -> None:
    text = picture_to_svg(picture("linear"))
    path = tmp_path / "picture.png"
    if render == "cairosvg":
        path.write_bytes(svg_to_png(text, 1.0))
    elif shutil.which(render) is None:
        pytest.skip("rsvg-convert is not installed")
    else:
        subprocess.run([render, "-o", path], input=text.encode(), check=True)
    width, height, pixels = read_png(path.read_bytes())
    paper = pixels[4 * width + 4]
    assert paper == (247, 248, 250)
    white = sum(pixel == (255, 255, 255) for pixel in pixels) / len(pixels)
    dark = sum(sum(pixel) < 200 for pixel in pixels) / len(pixels)
    assert white > 0.05 and 0.002 < dark < 0.2
    assert width > 200 and height > 200


@pytest.mark.parametrize("direction", ["down", "right"])
@pytest.mark.parametrize("forward", [False, True])
def test_a_picture_turned_is_the_same_picture(direction: str, forward: bool) -> None:
    drawn = picture("network", direction=direction, forward=forward)
    found = drawn.layout()
    for box in found.boxes:
        assert box.x - box.width / 2 >= -1e-6 and box.x + box.width / 2 <= found.width + 1e-6
        assert box.y - box.height / 2 >= -1e-6 and box.y + box.height / 2 <= found.height + 1e-6
    axis = 0 if direction == "right" else 1
    for wire in found.wires:
        assert all(b[axis] >= a[axis] for a, b in pairwise(wire.points))
    words = "".join(ElementTree.fromstring(picture_to_svg(drawn)).itertext())
    assert ("relu(W @ x + b)" in words) and ("ReluBackward0" in words) != forward


def test_no_box_is_wider_than_a_set_measure() -> None:
    big = fakes.Leaf(np.random.default_rng(0).standard_normal((400, 500)), "W" * 100)
    node = fakes.Node("MulBackward0", big, shape=(400, 500), label="n" * 90, span=(0, 5000))
    node.saved = {"self": big.variable, "text": "t" * 900, **{f"s{i}": i for i in range(99)}}
    known = Describer(walk([node]), "x" * 5000)
    known.grads = {node: big.variable.array, big: big.variable.array * np.nan}
    drawn = picture_of(known, saved=True, values=True, grads=True)
    for card in drawn.cards:
        width, height = drawn.size(card)
        assert width <= 420 and height <= 260
    words = [line for card in drawn.cards for _, line in card.lines]
    assert any("norm " in line and " in [" in line for line in words)
    assert any(line.endswith("200,000 not finite") for line in words)


def test_what_is_shown_is_the_same_in_every_picture() -> None:
    for options in ({}, {"depth": 2}, {"only": "h"}, {"edges": True, "saved": True}):
        drawn = picture("network", **options)
        for text in (picture_to_dot(drawn), picture_to_mermaid(drawn), picture_to_tikz(drawn)):
            assert text.count("AccumulateGrad") == sum(c.kind == "leaf" for c in drawn.cards)
    cut = picture("network", depth=1)
    assert [card.title for card in cut.cards] == ["AddBackward0", "LogBackward0", "MeanBackward0"]
    assert cut.cards[1].lines[-1] == ("note", "…")


def test_a_chain_of_five_thousand_folds() -> None:
    root, _ = fakes.chain(5_000)
    drawn = picture_of(Describer(walk([root])))
    assert [card.title for card in drawn.cards] == [
        *("SinBackward0", "⋮ 4,998 × SinBackward0", "SinBackward0", "AccumulateGrad"),
    ]
    assert drawn.layout().height < 500
    whole = picture_of(Describer(walk([root])), collapse=False)
    assert len(whole.cards) == 5_001


def test_a_frame_shows_what_has_run_and_what_flows() -> None:
    known = describer("linear")
    known.grads = {node: np.float64(i) for i, node in enumerate(known.skeleton.nodes)}
    drawn = picture_of(known, grads=True)
    text = picture_to_svg(drawn, Frame({0}, 1, {0: "3", 1: "4"}, "2 / 5"))
    words = list(ElementTree.fromstring(text).itertext())
    assert "grad 0" in words and "grad 1" in words and "grad 2" not in words
    assert "3" in words and "4" in words and "2 / 5" in words


def test_tikz_escapes_what_tex_reads() -> None:
    text = picture_to_tikz(picture("awkward"))
    node = next(line for line in text.splitlines() if "MulBackward0" in line)
    assert "\\{d\\} \\#1" in node or "\\{" in node
    assert text.count("{") - text.count("\\{") == text.count("}") - text.count("\\}")
    assert text.isascii()


def lay_out(root: fakes.Node, window: tuple[float, float] = SLIDE) -> layered_layout.Layout:
    nodes = list(records(Describer(walk([root]))))
    boxes = [layered_layout.Box(record.id, 100.0 + 10 * (record.id % 3), 50.0) for record in nodes]
    wires = [
        layered_layout.Wire(record.id, edge[0], i, len(record.next))
        for record in nodes
        for i, edge in enumerate(record.next)
        if edge is not None
    ]
    return layered_layout.layout(boxes, wires, window)


def everything(found: layered_layout.Layout) -> list[layered_layout.Box]:
    return found.boxes + [w.reference for w in found.wires if w.reference is not None]


def apart(a: layered_layout.Box, b: layered_layout.Box) -> float:
    """How far two boxes are from each other, across or upright."""
    across = abs(a.x - b.x) - (a.width + b.width) / 2
    return max(across, abs(a.y - b.y) - (a.height + b.height) / 2)


@sweep("name", fakes.GRAPHS, parts=1)
def test_no_two_boxes_overlap_and_edges_run_between_them(name: str) -> None:
    for window in (SLIDE, (400.0, 400.0)):
        found = lay_out(fakes.build(name)[0], window)
        boxes = everything(found)
        for k, box in enumerate(boxes):
            assert all(apart(box, other) >= layered_layout.GAP - 1e-6 for other in boxes[:k])
            for place, size, whole in (
                (box.x, box.width, found.width),
                (box.y, box.height, found.height),
            ):
                assert place - size / 2 >= -1e-6 and place + size / 2 <= whole + 1e-6
        for wire in found.wires:
            start, end = found.boxes[wire.source], wire.reference or found.boxes[wire.target]
            for box, (x, y) in ((start, wire.points[0]), (end, wire.points[-1])):
                assert abs(x - box.x) < box.width / 2
                assert abs(y - box.y) == pytest.approx(box.height / 2)
            way = [y for _, y in wire.points]
            if not wire.square:
                assert way == sorted(way, reverse=start.column % 2 == 1)
                continue
            for (x, y), (to_x, to_y) in pairwise(wire.points):
                assert x == to_x or y == to_y
                middle, size = ((x + to_x) / 2, (y + to_y) / 2), (abs(x - to_x), abs(y - to_y))
                line = layered_layout.Box(-1, *size, x=middle[0], y=middle[1])
                assert all(apart(line, box) >= 0 for box in boxes)


def test_what_is_tall_stands_in_columns_as_wide_as_a_slide() -> None:
    for size in (40, 100, 500):
        found = lay_out(fakes.additions(size)[0])
        assert found.columns > 1 and 1 < found.width / found.height < 2.5
    # What has up to 40 boxes is read in one direction, however long it is.
    for size in (4, 10, 15):
        assert len(lay_out(fakes.additions(size)[0]).boxes) <= layered_layout.ONE_WAY
        assert lay_out(fakes.additions(size)[0]).columns == 1


def test_a_tree_has_no_crossing() -> None:
    def grow(depth: int) -> fakes.Node:
        below = [grow(depth - 1) for _ in range(2)] if depth else []
        return fakes.Node("AddBackward0", *below)

    found = lay_out(grow(5))
    by_layer: dict[int, list[layered_layout.Box]] = {}
    for box in found.boxes:
        by_layer.setdefault(box.layer, []).append(box)
    for wires in by_layer.values():
        assert len(wires) in (1, 2, 4, 8, 16, 32)
    starts = sorted(found.wires, key=lambda w: (found.boxes[w.source].layer, w.points[0][0]))
    for a, b in pairwise(starts):
        if found.boxes[a.source].layer == found.boxes[b.source].layer:
            assert a.points[-1][0] < b.points[-1][0]


def test_long_chains_do_not_drift_sideways() -> None:
    assert lay_out(fakes.additions(500)[0], (1e9, 1e9)).width < 3_000


def test_pooling_keeps_what_fits_and_spreads_what_does_not() -> None:
    assert layered_layout.pooled([0.0, 500.0], [1, 1], [10, 10]) == [0.0, 500.0]
    left, right = layered_layout.pooled([0.0, 0.0], [1, 1], [10, 10])
    assert right - left == pytest.approx(10 + layered_layout.GAP)
    assert left + right == pytest.approx(0)

"""The page: one file that needs nothing else, and works in a real browser without a complaint."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tensors
from browser import CHROMIUM, DRIVER, Browser

chromium = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None, reason="chromium and chromedriver are not installed"
)


def data_of(page: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert found is not None
    return json.loads(found[1])


def test_the_page_is_one_file_without_a_network() -> None:
    page = tensors.example().to_html()
    assert "{{" not in page
    links = re.findall(r"""(?:src|href)=["']([^"']*)""", page)
    assert set(links) == {"#graph", "data:,"}
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "")
    assert "default-src 'none'" in page


def test_the_data_holds_every_node_and_the_steps_in_the_engines_order() -> None:
    data = data_of(tensors.example().to_html())
    assert len(data["nodes"]) == 11 and len(data["steps"]) == 11
    assert data["steps"][0] == {"node": 0, "in": "1", "out": ["1", "-1"]}
    order = [data["nodes"][step["node"]]["sequence"] for step in data["steps"]]
    inner = [number for number in order if number is not None]
    assert inner == sorted(inner, reverse=True)
    assert data["grads"] and data["nodes"][0]["grad"] == "1"


def test_no_text_of_the_users_ends_the_script() -> None:
    evil = "</script><script>alert(1)</script><!--"
    graph = tensors.example()
    graph.source = graph.describer.source = evil
    page = graph.to_html()
    assert evil not in page
    assert data_of(page)["source"] == evil


def test_no_grad_of_the_users_is_touched() -> None:
    graph = tensors.example()
    leaves = [node.variable for node in graph.skeleton.nodes if hasattr(node, "variable")]
    graph.to_html()
    assert all(one.grad is None for one in leaves)
    graph.tensors[0].backward()  # and the graph is still there
    assert all(one.grad is not None for one in leaves)


def test_hooks_are_not_run_by_looking() -> None:
    graph = tensors.example()
    called: list[Any] = []
    graph.tensors[0].grad_fn.register_prehook(called.append)
    assert not data_of(graph.to_html())["grads"]
    assert not called


def test_a_freed_graph_has_a_page_too() -> None:
    graph = tensors.example()
    graph.tensors[0].backward()
    data = data_of(tensors.inspect(graph.tensors[0]).to_html())
    assert not data["grads"] and len(data["steps"]) == 11
    assert {item["text"] for item in data["nodes"][1]["saved"]} == {"(freed)"}


def test_a_notebook_shows_the_page_in_a_frame() -> None:
    text = tensors.example()._repr_html_()
    assert text.startswith("<iframe srcdoc=") and 'sandbox="allow-scripts"' in text


def test_nothing_requires_grad() -> None:
    constant = tensors.leaf(1.0, "k").detach()
    assert data_of(tensors.inspect(constant).to_html())["nodes"] == []


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as made:
        yield made


@pytest.fixture
def example(browser: Browser, tmp_path: Path) -> Iterator[Browser]:
    path = tmp_path / "page.html"
    path.write_text(tensors.example().to_html(), encoding="utf-8")
    browser.open(path)
    yield browser
    assert browser.console() == []


@chromium
@pytest.mark.long
class TestInChromium:
    def test_every_node_is_drawn(self, example: Browser) -> None:
        assert example.count("#view .node[data-key]") == 11
        assert example.count("#view .wire") == 14
        assert example.text("#source") == tensors.SOURCE
        assert "11 nodes, 14 edges, 4 leaves" in example.text("#panel")
        assert "2 shown" not in example.text("#tree")

    def test_a_click_shows_everything_of_a_node(self, example: Browser) -> None:
        example.click('[data-key="n2"] .title')
        panel = example.text("#panel")
        for words in ("MulBackward0 z", "(y + b)*y", "float64", "204", "gradient408", "y = 12"):
            assert words in panel
        assert example.text("#source mark") == "(y + b)*y"
        assert example.count(".wire.lit") == 4
        example.press("Escape")
        assert "Backward graph" in example.text("#panel")

    def test_hovering_shows_a_node_for_as_long(self, example: Browser) -> None:
        example.hover('[data-key="n1"] .title')
        assert example.text("#source mark") == "z*z"
        example.hover("#panel")
        assert example.count("#source mark") == 0

    def test_steps(self, example: Browser) -> None:
        assert example.text("#count") == "0 / 11"
        example.click("#next")
        assert example.text("#story") == (
            "SubBackward0 received 1 and sends 1 to MulBackward0, -1 to DivBackward0."
        )
        assert example.count(".wire.now") == 2 and example.count(".node.active") == 1
        assert example.count("#view .label text") == 2
        for _ in range(10):
            example.click("#next")
        assert example.text("#count") == "11 / 11"
        assert example.count(".node.done") == 11
        assert example.run("return document.getElementById('next').disabled")
        example.click("#back")
        assert example.text("#count") == "10 / 11"
        example.click("#first")
        assert example.count(".node.done") == 0 and example.count(".wire.flow") == 0

    def test_gradients_appear_as_they_flow(self, example: Browser) -> None:
        read = "return document.querySelector('[data-key=n2] .grad').textContent"
        example.run(
            "const s = document.getElementById('steps'); s.value = 4; "
            "s.dispatchEvent(new Event('input'))"
        )
        assert example.run(read) == ""
        example.run(
            "const s = document.getElementById('steps'); s.value = 8; "
            "s.dispatchEvent(new Event('input'))"
        )
        assert example.run(read) == "grad 408"

    def test_play_runs_to_the_end(self, example: Browser) -> None:
        example.run("document.getElementById('speed').value = '120'")
        example.click("#play")
        assert example.run("return document.getElementById('play').getAttribute('aria-label')") == (
            "Pause"
        )
        example.wait("document.getElementById('count').textContent === '11 / 11'")
        example.wait("document.getElementById('play').getAttribute('aria-pressed') === 'false'")

    def test_find(self, example: Browser) -> None:
        example.type("#find", "y + b")
        assert example.text("#found") == "2"
        example.type("#find", "<Enter>")
        assert example.text("#source mark") == "(y + b)*y"
        example.type("#find", "<Enter>")
        assert example.text("#source mark") == "y + b"
        assert example.text("#found") == "2 / 2"
        assert example.count(".node.found") == 2

    def test_keys(self, example: Browser) -> None:
        example.run("document.getElementById('graph').focus()")
        example.press("Down")
        assert "SubBackward0" in example.text("#panel h2")
        example.press("Down")
        assert "z*z" in example.text("#panel")
        example.press("Right")
        assert "DivBackward0" in example.text("#panel h2")
        example.press("Up")
        assert "SubBackward0" in example.text("#panel h2")
        example.press("n", "n", "b")
        assert example.text("#count") == "1 / 11"
        example.press("?")
        assert example.run("return document.getElementById('help').open")
        example.press("Escape")
        example.press("t")
        assert "├─ MulBackward0" in example.text("#tree")
        example.press("Escape")

    def test_folding(self, example: Browser) -> None:
        example.click('[data-key="n1"] .title')
        example.press("f")
        # What only z*z leads to is gone; y stays, for a*y leads to it as well.
        assert example.count("#view .node[data-key]") == 8
        assert "+3" in example.text('[data-key="n1"] .fold')
        example.press("f")
        assert example.count("#view .node[data-key]") == 11

    def test_depth_and_unfold(self, example: Browser) -> None:
        example.type("#depth", "1")
        assert example.count("#view .node[data-key]") == 3
        example.click("#unfold")
        assert example.count("#view .node[data-key]") == 11

    def test_shared_nodes_become_references(self, example: Browser) -> None:
        assert example.count("#view .far") == 0
        example.click("#shared")
        assert example.count("#view .far") == 4
        example.click("#view .far")
        assert example.count("#view .node.selected") == 1

    def test_a_step_on_a_folded_node_marks_who_stands_for_it(self, example: Browser) -> None:
        example.click('[data-key="n1"] .title')
        example.press("f")
        example.run(
            "const s = document.getElementById('steps'); s.value = 6; "
            "s.dispatchEvent(new Event('input'))"
        )
        assert example.run("return document.querySelector('.node.active').dataset.key") == "n1"

    def test_dark_and_light(self, example: Browser) -> None:
        colour = "return getComputedStyle(document.body).backgroundColor"
        light = example.run(colour)
        example.click("#theme")
        assert example.run(colour) != light
        example.click("#theme")
        assert example.run(colour) == light

    def test_screen_readers(self, example: Browser) -> None:
        label = example.run(
            "return document.querySelector('[data-key=n2]').getAttribute('aria-label')"
        )
        assert label == (
            "MulBackward0 z, shape (), from (y + b)*y, inputs AddBackward0, MulBackward0 y"
        )
        # One node at a time is in the order of tabs.
        assert example.count('#view .node[tabindex="0"]') == 1
        unnamed = example.run(
            "return [...document.querySelectorAll('button, input, select')].filter(e =>"
            " !e.getAttribute('aria-label') && !e.textContent.trim() && !e.labels?.length).length"
        )
        assert unnamed == 0

    def test_a_deep_graph_opens_folded(self, browser: Browser, tmp_path: Path) -> None:
        path = tmp_path / "deep.html"
        path.write_text(tensors.chain(400).to_html(), encoding="utf-8")
        browser.open(path)
        assert browser.count("#view .node[data-key]") == 4
        assert "398 nodes: 266 × MulBackward0, 132 × AddBackward0" in browser.text("#view")
        browser.type("#find", "#200<Enter>")
        assert browser.count("#view .node[data-key]") == 401
        assert browser.run("return document.querySelector('.node.selected').dataset.key") == "n200"
        assert browser.console() == []

    def test_two_thousand_nodes(self, browser: Browser, tmp_path: Path) -> None:
        path = tmp_path / "large.html"
        graph = tensors.tangle(2600)
        assert len(graph.skeleton) > 1900
        path.write_text(graph.to_html(), encoding="utf-8")
        start = time.perf_counter()
        browser.open(path)
        browser.wait("document.querySelectorAll('#view .node[data-key]').length > 1900")
        assert time.perf_counter() - start < 10
        start = time.perf_counter()
        for _ in range(10):
            browser.run("document.getElementById('next').click()")
        assert time.perf_counter() - start < 5
        browser.type("#find", "x3<Enter>")
        assert "x3" in browser.text("#panel h2")
        browser.press("Escape")
        assert browser.console() == []

    def test_narrow_windows(self, tmp_path: Path) -> None:
        path = tmp_path / "page.html"
        path.write_text(tensors.example().to_html(), encoding="utf-8")
        with Browser(480, 800) as narrow:
            narrow.open(path)
            assert narrow.run("return document.documentElement.scrollWidth <= innerWidth")
            assert narrow.console() == []

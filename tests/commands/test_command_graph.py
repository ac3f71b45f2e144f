"""`gradcli graph`: formats, files, depth; what the drawings look like is the graph inspector's matter."""

from __future__ import annotations

import json
import re

import pytest
from click.testing import CliRunner

from gradcli.cli import main

PRODUCT = ["y = a*x; y + b", "--x", "3", "--a", "4", "--b", "5"]


def run(*argv, **kwargs):
    return CliRunner().invoke(main, ["graph", *argv], prog_name="gradcli", **kwargs)


def out(*argv):
    result = run(*argv)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def test_the_schema():
    found = json.loads(out(*PRODUCT, "--json"))
    assert found["root"] == 0
    keys = ["id", "name", "variable", "label", "source", "span", "shape", "dtype", "sequence_nr",
            "saved", "next"]  # fmt: skip
    for i, node in enumerate(found["nodes"]):
        assert list(node) == keys
        assert node["id"] == i
    assert found["nodes"][1]["span"] == [4, 7]
    with_grads = json.loads(out(*PRODUCT, "--json", "--grads"))
    assert all("grad" in node for node in with_grads["nodes"])


def test_json_is_one_line_and_the_same_by_both_names():
    by_json, by_format = (
        re.sub(r'"sequence_nr": \d+', "", out(*PRODUCT, *form))
        for form in (["--json"], ["--format", "json"])
    )
    assert by_json == by_format
    assert out(*PRODUCT, "--json").count("\n") == 1
    assert run(*PRODUCT, "--json", "--format", "dot").exit_code == 2


@pytest.mark.parametrize(
    "name, start",
    [
        ("g.json", '{"root"'),
        ("g.dot", "digraph"),
        ("g.gv", "digraph"),
        ("g.mmd", "flowchart"),
        ("g.svg", "<"),
        ("g.html", "<"),
        ("g.txt", "AddBackward0"),
        ("g", "AddBackward0"),
    ],
)
def test_the_ending_of_the_file_says_the_format(name, start, tmp_path):
    path = tmp_path / name
    assert out(*PRODUCT, "-o", str(path)) == ""
    text = path.read_text(encoding="utf-8")
    assert text.lstrip().startswith(start)
    assert text.endswith("\n") and not text.endswith("\n\n")
    assert "\x1b" not in text


def test_format_wins_over_the_ending(tmp_path):
    path = tmp_path / "g.svg"
    out(*PRODUCT, "-o", str(path), "--format", "dot")
    assert path.read_text().startswith("digraph")
    assert out(*PRODUCT, "-o", "-", "--format", "dot") == path.read_text()


def test_a_vector_needs_a_seed_for_its_gradients():
    result = run("x*x", "--x", "1,2", "--grads")
    assert result.exit_code == 1
    assert "--seed ones" in result.stderr
    assert "grad [2, 4]" in out("x*x", "--x", "1,2", "--grads", "--seed", "ones")


def test_a_leaf_and_several_results():
    assert out("x", "--x", "1,2").startswith("AccumulateGrad x")
    assert out("x.unbind()", "--x", "1,2").count("UnbindBackward0") >= 1


def test_precision():
    assert "0.333" in out("x*w", "--x", "1", "--w", "0.3333333", "--saved", "--precision", "3")


def test_a_chain_of_a_hundred_thousand_additions(tmp_path):
    path = tmp_path / "chain.txt"
    path.write_text("x" + "+x" * 100_000)
    result = run("-f", str(path), "--x", "1", "--depth", "5")
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) < 20
    assert "100,001 nodes" in result.stdout

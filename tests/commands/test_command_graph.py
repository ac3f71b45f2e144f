"""`gradcli graph`: formats, files, depth; what the drawings look like is the graph inspector's matter."""

from __future__ import annotations

import json
import re

import pytest
from click.testing import CliRunner

from gradcli.cli import main
from tests.commands.terminal import piped

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


def test_only_a_name_a_node_or_a_number():
    for wanted in ("y", "Mul", "MulBackward0", "1", "#1"):
        assert out(*PRODUCT, "--only", wanted).startswith("MulBackward0 y")
    result = run(*PRODUCT, "--only", "Mull")
    assert result.exit_code == 2
    assert "did you mean `Mul`?" in result.stderr


def test_collapse_edges_and_legend():
    chain = ["x" + ".sin()" * 9, "--x", "1"]
    assert out(*chain, "--collapse").count("SinBackward0") < 9
    assert out(*chain, "--no-collapse").count("SinBackward0") == 9
    assert "next_functions ((MulBackward0 y, 0), (AccumulateGrad b, 0))" in out(*PRODUCT, "--edges")
    assert "a shared node where it is first seen" in out(*PRODUCT, "--legend")


@pytest.mark.parametrize("option", [["--depth", "1"], ["--only", "y"], ["--legend"]])
def test_what_shapes_the_tree_is_refused_elsewhere(option):
    result = run(*PRODUCT, *option, "--format", "dot")
    assert result.exit_code == 2
    assert option[0] in result.stderr


def test_an_ending_that_is_no_format(tmp_path):
    result = run(*PRODUCT, "-o", str(tmp_path / "g.png"))
    assert result.exit_code == 2
    assert "dot -Tpng" in result.stderr
    assert run(*PRODUCT, "-o", str(tmp_path / "g.foo")).exit_code == 2
    assert run(*PRODUCT, "-o", "").exit_code == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "env, ascii",
    [
        ({"LC_ALL": "C"}, True),
        ({"LC_ALL": "", "LC_CTYPE": "", "LANG": "C"}, True),
        ({"LC_ALL": "", "LC_CTYPE": "", "LANG": "C.UTF-8"}, False),
        ({"PYTHONUTF8": "0", "PYTHONIOENCODING": "latin-1"}, True),
    ],
)
def test_ascii_where_the_locale_has_no_utf_8(env, ascii):
    text = piped("graph", *PRODUCT, **env).stdout
    assert text.isascii() == ascii
    assert ("|- MulBackward0 y" in text) == ascii

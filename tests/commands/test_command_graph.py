"""`gradcli graph`: formats, files, depth; what the drawings look like is the graph inspector's matter."""

from __future__ import annotations

import json
import re
import sys
from functools import partial

import pytest

from tests.commands import running
from tests.commands.terminal import piped
from tests.sweep import sweep

run = partial(running.run, "graph")
PRODUCT = ["y = a*x; y + b", "--x", "3", "--a", "4", "--b", "5"]


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


@sweep(
    ("source", "values", "vector"),
    [
        ("h = tanh(w*x + b); (2*h - 1)**2", {"w": "0.5", "x": "2", "b": "0.1"}, ("w=1", "b=-2")),
        ("sum(exp(x)*y)", {"x": "1,2", "y": "3,1"}, ("x=1,0",)),
        ("A@x @ x", {"A": "1,2;3,4", "x": "1,2"}, ("x=ones", "A=1,0;0,1")),
    ],
    parts=1,
)
def test_the_tangent_of_the_result_is_the_derivative_along_the_vector(source, values, vector):
    along = [word for text in vector for word in ("--vector", text)]
    given = [word for name, text in values.items() for word in (f"--{name}", text)]
    found = json.loads(out(source, *given, "--json", *along))
    by_name = {node["variable"] or "": node.get("tangent") for node in found["nodes"]}
    result = found["nodes"][found["root"]]["tangent"]
    derivative = running.run("jvp", source, *given, *along, "--json")
    assert result == pytest.approx(json.loads(derivative.stdout)["jvp"], rel=1e-12)
    assert {n: by_name[n] is not None for n in values} == {
        n: any(text.startswith(f"{n}=") for text in vector) for n in values
    }


@pytest.mark.parametrize("form", ["mermaid", "dot"])
def test_slopes_on_the_ways_to_a_leaf_make_its_gradient(form):
    text = out("y = x**2; z = sin(y)*x; z", "--x", "1.2", "--slopes", "--format", form)
    slopes = [float(s) for s in re.findall(r"×([-\d.]+)", text)]
    outer, other, inner, power = slopes  # z by sin(y), z by x, sin by y, y by x
    gradient = running.run("grad", "sin(x**2)*x", "--x", "1.2", "--bare").stdout
    assert outer * inner * power + other == pytest.approx(float(gradient), rel=5e-3)


def test_slopes_are_of_numbers_and_of_pictures():
    text = out("sum(x**2)*y", "--x", "1,2", "--y", "3", "--slopes", "--format", "mermaid")
    assert re.findall(r"×[\d.]+", text) == ["×3", "×5"]
    refused = run(*PRODUCT, "--slopes")
    assert refused.exit_code == 2 and "--slopes is not for tree" in refused.stderr


def test_a_picture_has_tangents_beside_gradients():
    lines = out(*PRODUCT, "--format", "tikz", "--vector", "x=1", "--grads", "--values")
    assert r"tangent 4" in lines and r"grad 1" in lines and r"= 12" in lines


@pytest.mark.parametrize(
    "argv, leaves, note",
    [
        (["sin(x)*exp(y)"], ["x  ()", "y  ()"], ""),
        (["sum(A@x)"], ["A  (4, 5)", "x  (5,)"], "shapes: A ∈ Rᵐˣⁿ, x ∈ Rⁿ"),
        (["sum(A@x)", "--A", "[[1,2]]"], ["A  (1, 2)", "x  (2,)"], "shapes: x ∈ R²"),
        (["sum(A@x)", "--shape", "A=3,2"], ["A  (3, 2)", "x  (2,)"], "A is randn(3, 2)"),
    ],
)
def test_variables_without_a_value_have_a_shape(argv, leaves, note):
    result = run(*argv)
    assert re.findall(r"AccumulateGrad (.*)", result.stdout) == leaves and note in result.stderr


@pytest.mark.parametrize(
    "option", ["--values", "--grads", "--saved", "--diagnose", "--norms", "--json", "--format=html"]
)
def test_numbers_need_values(option):
    result = run("x*y", "--y", "2", option)
    assert result.exit_code == 2 and "no value for x" in result.output


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
        ("g.json", '{"expression"'),
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


def test_a_format_against_the_ending_is_an_error(tmp_path):
    path = tmp_path / "g.svg"
    result = run(*PRODUCT, "-o", str(path), "--format", "dot")
    assert result.exit_code == 2 and "--format dot" in result.stderr and "svg" in result.stderr
    assert not path.exists()
    out(*PRODUCT, "-o", str(path), "--format", "svg")
    assert path.read_text().startswith("<svg")
    assert out(*PRODUCT, "-o", "-", "--format", "dot").startswith("digraph")
    odd = tmp_path / "graph.data"
    out(*PRODUCT, "-o", str(odd), "--format", "dot")
    assert odd.read_text().startswith("digraph")


def test_a_vector_needs_a_seed_for_its_gradients():
    result = run("x*x", "--x", "1,2", "--grads")
    assert result.exit_code == 1
    assert "--seed ones" in result.stderr
    assert "grad [2, 4]" in out("x*x", "--x", "1,2", "--grads", "--seed", "ones")


def test_a_leaf_and_several_results():
    assert out("x", "--x", "1,2").startswith("AccumulateGrad x")
    assert out("x.unbind()", "--x", "1,2").count("UnbindBackward0") >= 1


@pytest.mark.parametrize("options", [["--saved"], ["--values"], ["--json"], ["--format", "html"]])
def test_nodes_of_a_map_show_the_numbers_of_all_its_entries(options):
    shown = out("func.vmap(func.grad(lambda a: a**3))(x).sum()", "--x", "1,2", *options)
    assert re.search(r"\[1(\.0)?, ?2(\.0)?\]", shown)


def test_the_namespace_torch_is_not_the_option():
    assert out("torch.exp(x)", "--x", "1").startswith("ExpBackward0")
    assert out("torch*x", "--x", "1", "--let", "torch=2").startswith("MulBackward0")
    assert "which has the name of an option" in run("torch*x", "--x", "1", "--values").output


def test_precision():
    assert "0.333" in out("x*w", "--x", "1", "--w", "0.3333333", "--saved", "--precision", "3")


@pytest.mark.long
def test_a_chain_of_many_thousand_additions(tmp_path):
    path = tmp_path / "chain.txt"
    path.write_text("x" + "+x" * 20_000)
    result = run("-f", str(path), "--x", "1", "--depth", "5")
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) < 20
    assert "20,001 nodes" in result.stdout


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


@sweep(
    ("option", "form"),
    [
        (["--legend"], "dot"),
        (["--legend"], "json"),
        (["--wide"], "json"),
        (["--collapse"], "json"),
        (["--theme", "dark"], "tree"),
        (["--theme", "dark"], "mermaid"),
        (["--background", "none"], "html"),
        (["--direction", "right"], "tree"),
    ],
    parts=1,
)
def test_what_a_format_has_not_is_refused(option, form):
    result = run(*PRODUCT, *option, "--format", form)
    assert result.exit_code == 2
    assert option[0] in result.stderr and form in result.stderr


@sweep("form", ["json", "dot", "mermaid", "svg", "tikz"], parts=1)
@pytest.mark.parametrize(
    "option, there, gone",
    [
        (["--only", "y"], "MulBackward0", "AddBackward0"),
        (["--depth", "0"], "AddBackward0", "MulBackward0"),
        (["--values"], "20", "1e9"),
        (["--grads"], "5", "1e9"),
        (["--forward"], "a*x", "1e9"),
    ],
)
def test_what_shapes_the_graph_shapes_it_in_every_format(option, there, gone, form):
    words = ["y = a*x; y + b", "--x", "20", "--a", "4", "--b", "5"]
    text = out(*words, *option, "--format", form)
    assert there in text.replace("#42;", "*") and gone not in text


def test_a_part_of_the_graph_as_json_says_what_is_cut():
    found = json.loads(out(*PRODUCT, "--depth", "1", "--json"))
    assert [node["id"] for node in found["nodes"]] == [0, 1, 4]
    assert [node.get("cut", False) for node in found["nodes"]] == [False, True, False]
    forward = json.loads(out(*PRODUCT, "--forward", "--values", "--json"))
    assert forward["root"] == 0 and forward["inputs"] == [2, 3, 4]
    assert {node["id"]: node["users"] for node in forward["nodes"]}[4] == [{"node": 0, "input": 1}]
    assert {node["id"]: node["value"] for node in forward["nodes"]}[0] == 17


def test_forward_reads_from_the_inputs_to_the_result():
    lines = out(*PRODUCT, "--forward", "--values").splitlines()
    assert [line.split()[:2] for line in lines[:3]] == [
        ["input", "a"],
        ["└─", "mul"],
        ["└─", "add"],
    ]
    assert "= 12" in lines[1] and "= 17" in lines[2]


def test_leaves_have_no_number_that_javascript_would_round():
    nodes = json.loads(out(*PRODUCT, "--json"))["nodes"]
    assert [node["sequence_nr"] is None for node in nodes] == [
        node["name"] == "AccumulateGrad" for node in nodes
    ]


def test_frames_are_one_picture_a_step(tmp_path):
    folder = tmp_path / "frames"
    assert out(*PRODUCT, "--frames", str(folder)) == ""
    files = sorted(path.name for path in folder.iterdir())
    assert files == [f"step-{k}.svg" for k in range(6)]
    assert "3 / 5" in (folder / "step-3.svg").read_text()
    result = run(*PRODUCT, "--frames", str(folder), "--format", "dot")
    assert result.exit_code == 2 and "svg, png, pdf" in result.stderr


@pytest.mark.needs("cairosvg")
@pytest.mark.parametrize("form, start", [("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_png_and_pdf(form, start, tmp_path, monkeypatch):
    path = tmp_path / f"g.{form}"
    out(*PRODUCT, "-o", str(path))
    assert path.read_bytes().startswith(start)
    monkeypatch.setitem(sys.modules, "cairosvg", None)
    result = run(*PRODUCT, "-o", str(path))
    assert result.exit_code == 2
    assert "pip install cairosvg" in result.stderr and result.stderr.count("\n") == 1


def test_in_a_pipe_no_line_is_long_unless_asked():
    big = ["h = relu(X @ W); sum(h*h)", "--X", "ones(8,40)", "--W", "ones(40,300)/3"]
    options = ["--saved", "--values", "--grads"]
    assert max(map(len, out(*big, *options).splitlines())) < 170
    assert max(map(len, out(*big, *options, "--wide").splitlines())) > 170


def test_an_ending_that_is_no_format(tmp_path):
    result = run(*PRODUCT, "-o", str(tmp_path / "g.jpg"))
    assert result.exit_code == 2
    assert "dot -Tjpg" in result.stderr
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


def test_a_write_to_an_element_shows_where_it_was_made() -> None:
    lines = run("h = x*2; h[0] = 3; sum(h*h)", "--x", "1,2")
    assert [line.split()[-1] for line in lines.stdout.splitlines() if "CopySlices" in line] == [
        "h[0]"
    ]


def test_what_is_written_in_place_keeps_its_name_and_shows_no_later_value() -> None:
    lines = run("h = x*2; h += 1; h *= 3; h.sum()", "--x", "1,2", "--forward", "--values")
    rows = [line.split("(2,)") for line in lines.stdout.splitlines()[:4]]
    assert [row[0].split()[-1] for row in rows] == ["x", "h", "h", "h"]
    assert [row[1].split() for row in rows][1:3] == [["x*2"], ["=", "[3,", "5]", "h", "+=", "1"]]

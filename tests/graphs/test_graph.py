"""`inspect`: a tensor's graph in every format, on real tensors."""

from __future__ import annotations

import numpy as np
import pytest
import tensors

import gradcli.graphs as graphs
from gradcli.engine.core.tensor import wrap
from gradcli.graphs import Graph, inspect, watching


def test_every_format() -> None:
    graph = tensors.example()
    assert str(graph).startswith("SubBackward0")
    assert str(graph.tree()) == str(graph)
    assert graph.to_json()["nodes"][0]["source"] == "z*z - c/(a*y)"
    assert graph.to_dot().startswith("digraph backward {")
    assert graph.to_mermaid().startswith("flowchart TD")
    assert graph.to_svg().startswith("<svg ")
    assert graph.to_html().startswith("<!doctype html>")
    assert repr(graph) == "<Graph of 11 nodes, 14 edges, 4 leaves>"
    assert [record.id for record in graph.records] == list(range(11))


def test_a_leaf_is_a_graph_of_one_node() -> None:
    x = tensors.leaf([1.0, 2.0], "x")
    assert inspect(x).to_json()["nodes"][0]["variable"] == "x"


def test_a_constant_has_no_graph() -> None:
    constant = wrap(np.float64(1))
    assert inspect(constant).to_json() == {"root": None, "nodes": []}
    assert str(inspect(constant)) == "no graph: nothing requires grad"


def test_the_same_node_each_time() -> None:
    x = tensors.leaf(2.0, "x")
    y = x * x
    assert inspect(y).records[1].node is inspect(y).records[1].node


def test_several_tensors() -> None:
    x = tensors.leaf(2.0, "x")
    found = inspect([x * x, x + x]).to_json()
    assert found["root"] == 0 and found["roots"] == [0, 2]
    assert len(found["nodes"]) == 3


def test_gradients_reach_every_node_and_no_grad_changes() -> None:
    x = tensors.leaf(3.0, "x")
    y = x * x
    graph = inspect(y + x, grads=True)
    assert [float(record.grad) for record in graph.records] == [1.0, 1.0, 7.0]
    assert x.grad is None
    assert graph.to_json()["nodes"][2]["grad"] == 7.0
    assert "grad 7" in str(graph)


def test_a_node_that_no_gradient_reaches_has_none() -> None:
    x, w = tensors.leaf([3.0, 1.0], "x"), tensors.leaf(1.0, "w")
    graph = inspect(x * w, seed=wrap(np.array([1.0, 0.5])))
    assert str(graph.tree()).count("grad") == 3
    graph.describer.grads = {}
    assert graph.records[0].has_grad
    assert "grad None" in str(graph.tree())


def test_a_vector_needs_a_seed() -> None:
    x = tensors.leaf([3.0, 1.0], "x")
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar"):
        inspect(x * x, grads=True)


def test_without_grads_json_has_no_grad() -> None:
    x = tensors.leaf(3.0, "x")
    assert "grad" not in inspect(x * x).to_json()["nodes"][0]


def test_saved_tensors_are_known_by_name() -> None:
    x, w = tensors.leaf(3.0, "x"), tensors.leaf(2.0, "w")
    y = x * w
    y.label = y.grad_fn.label = "y"
    saved = inspect(y.exp() * y).to_json()["nodes"]
    by_name = {node["name"]: node for node in saved}
    assert by_name["ExpBackward0"]["saved"]["result"]["value"] == pytest.approx(np.exp(6))
    assert saved[0]["saved"]["other"]["variable"] == "y"
    assert next(n["saved"] for n in saved if n["label"] == "y")["self"]["variable"] == "x"


def test_names_given() -> None:
    x = wrap(np.float64(2), requires_grad=True)
    graph = inspect(x * x, names={"weight": x})
    assert graph.records[1].variable == "weight"
    assert "AccumulateGrad weight" in str(graph)


def test_values_are_watched() -> None:
    x = tensors.leaf(2.0, "x")
    with watching() as results:
        y = (x + x) + x
    lines = str(inspect(y, values=results).tree(values=True)).splitlines()
    assert all(line.endswith(f"= {v}") for line, v in zip(lines, (6, 4, 2), strict=False))
    with watching() as nothing:
        pass
    (x + x).exp()
    assert nothing == {} and len(results) == 2


def test_freed_tensors_are_said_to_be() -> None:
    x = tensors.leaf(2.0, "x")
    y = x * x
    y.backward()
    assert str(inspect(y).tree(saved=True)).count("(freed)") == 2
    assert inspect(y).to_json()["nodes"][0]["saved"]["self"] == {"freed": True}


def test_only_tensors_are_inspected() -> None:
    with pytest.raises(TypeError, match=r"inspect\(\) wants a Tensor, not float"):
        inspect(2.0)


def test_names_are_loaded_lazily() -> None:
    assert set(graphs.__all__) >= {"Graph", "inspect", "tracing", "watching", "find_anomaly"}
    assert graphs.Graph is Graph and graphs.inspect is inspect
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        graphs.nothing  # noqa: B018

"""The traversal: order, ids, spans, sharing, size."""

from __future__ import annotations

from collections.abc import Callable

import fakes
import pytest
from inspected import described

import gradcli
from gradcli.graphs.traversal import Describer, Record, records, totals, walk


def test_ids_count_from_the_root_in_order_of_first_visit_depth_first() -> None:
    found = described("network")
    assert [record.id for record in found] == list(range(11))
    assert [record.name for record in found[:5]] == [
        "AddBackward0",
        "LogBackward0",
        "SumBackward1",
        "MulBackward0",
        "ReluBackward0",
    ]
    assert found[-1].name == "MeanBackward0"


def test_next_is_next_functions_verbatim() -> None:
    for name in fakes.GRAPHS:
        root, _ = fakes.build(name)
        skeleton = walk([root])
        for i, node in enumerate(skeleton.nodes):
            again = tuple(
                (None, 0) if edge is None else (skeleton.nodes[edge[0]], edge[1])
                for edge in skeleton.edges[i]
            )
            assert again == node.next_functions


def test_a_node_is_visited_once_and_its_uses_are_counted() -> None:
    root, _ = fakes.build("squarings")
    skeleton = walk([root])
    assert len(skeleton) == 17
    assert skeleton.uses == [0] + [2] * 16
    assert skeleton.depths == list(range(17))


def test_spans_are_inherited_from_the_consumer() -> None:
    outer = fakes.Node("SumBackward0", fakes.Node("ExpBackward0", fakes.Leaf(1.0)), span=(0, 9))
    found = list(records(Describer(walk([outer]), "softmax(x)")))
    assert [record.span for record in found] == [(0, 9)] * 3
    assert found[1].source == "softmax(x"


@pytest.mark.parametrize(
    ("source", "span", "name", "wanted"),
    [
        ("xx + x", (0, 6), "x", (5, 6)),
        ("x.x * y", (0, 7), "y", (6, 7)),
        ("f(a)\n * b", (0, 9), "b", (8, 9)),
        ("a + a", (4, 5), "a", (4, 5)),
        ("helper(z)", (0, 9), "x", (0, 9)),  # not read there: the consumer's own
    ],
)
def test_a_leaf_is_where_its_name_is_read(
    source: str, span: tuple[int, int], name: str, wanted: tuple[int, int]
) -> None:
    root = fakes.Node("AnyBackward0", fakes.Leaf(1.0, name), span=span)
    leaf = list(records(Describer(walk([root]), source)))[1]
    assert leaf.span == wanted
    assert leaf.source == " ".join(source[slice(*wanted)].split())


def test_a_long_piece_keeps_its_two_ends() -> None:
    source = "+".join("x" * 100_000)
    record = described_of(fakes.Node("AddBackward0", span=(0, len(source))), source)
    assert record.source is not None
    assert len(record.source) < 220
    assert record.source.startswith("x+x+") and record.source.endswith("+x+x")
    assert record.span == (0, len(source))


def described_of(root: fakes.Node, source: str | None = None) -> Record:
    return next(records(Describer(walk([root]), source)))


def test_names_of_leaves_results_and_bindings() -> None:
    found = described("linear")
    assert [(r.variable, r.label) for r in found] == [
        (None, None),
        (None, "y"),
        ("a", None),
        ("x", None),
        ("b", None),
    ]
    leaf = fakes.Leaf(2.0)
    names = {id(leaf.variable): "w"}
    root = fakes.Node("SinBackward0", leaf, saved={"self": leaf.variable})
    sine, unnamed = records(Describer(walk([root]), names=names))
    assert unnamed.variable == "w"
    assert sine.saved["self"].variable == "w"  # type: ignore[union-attr]


def test_an_accumulate_grad_is_called_so_without_its_namespace() -> None:
    assert described("linear")[2].name == "AccumulateGrad"


def test_several_roots() -> None:
    x = fakes.Leaf(1.0, "x")
    first, second = fakes.Node("SinBackward0", x), fakes.Node("CosBackward0", x)
    skeleton = walk([first, second, first])
    assert skeleton.roots == [0, 2, 0]
    assert len(skeleton) == 3


def test_totals_count_a_tensor_saved_twice_once() -> None:
    found = totals(walk([fakes.build("network")[0]]))
    assert (found.nodes, found.edges, found.leaves) == (11, 11, 3)
    # x, p's input, h (by relu and by mul), v
    assert (found.saved, found.nbytes) == (4, 24 + 8 + 16 + 16)


def test_totals_count_what_is_held_in_whatever_form() -> None:
    x = gradcli.tensor([1.0, 2.0, 3.0], dtype=gradcli.float64, requires_grad=True)
    y = x.exp() * x  # exp(x) is held once, as its node's result and as the operand of mul
    found = totals(walk([(y * 2).sum().grad_fn]))
    assert (found.nodes, found.leaves, found.freed) == (5, 1, 0)
    assert (found.saved, found.nbytes) == (3, 24 + 24 + 8)
    with gradcli.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), gradcli.tensor):
        packed = (x * x).sum()
    assert totals(walk([packed.grad_fn])).saved == 0  # a list: nothing is unpacked to count it
    with gradcli.autograd.graph.saved_tensors_hooks(lambda t: ("cpu", t), lambda kept: kept[1]):
        packed = (x * x).sum()
    assert totals(walk([packed.grad_fn])).nbytes == 24
    y.sum().backward()
    found = totals(walk([y.grad_fn]))
    assert (found.freed, found.saved) == (2, 0)


def test_edges_are_worked_out_once() -> None:
    skeleton = walk([fakes.build("linear")[0]])
    assert skeleton.edges[0] == ((1, 0), (4, 0))
    assert skeleton.edges[0] is skeleton.edges[0]
    assert [skeleton.ids[node] for node in skeleton.nodes] == list(range(len(skeleton)))


@pytest.mark.parametrize("build", [fakes.chain, fakes.additions, fakes.squarings])
def test_no_recursion(build: Callable[[int], tuple[fakes.Node, str]]) -> None:
    root, source = build(4_000)
    skeleton = walk([root])
    assert len(skeleton) == 4_001
    assert sum(1 for _ in records(Describer(skeleton, source))) == 4_001
    unlink(skeleton.nodes)


def unlink(nodes: list[fakes.Node]) -> None:
    """Take a chain of fakes apart: Python itself would free it by recursion."""
    for node in nodes:
        node.next_functions, node._edges = (), ()


@pytest.mark.long
def test_a_million_nodes() -> None:
    root, _ = fakes.additions(1_000_000)
    skeleton = walk([root])
    assert len(skeleton) == 1_000_001
    assert totals(skeleton).edges == 2_000_000
    unlink(skeleton.nodes)

"""The one traversal of a backward graph, and what it knows of each node.

`walk` visits every node once, iteratively, and keeps the skeleton: order, edges, who consumed what.
`records` then describes the nodes one after another; every renderer reads these two.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gradcli.engine.system.garbage import uncollected
from gradcli.graphs import saved_fields as saved_values
from gradcli.graphs.probes import OWN, Constant, Output, Place, Probe

LEAF = "AccumulateGrad"
# A piece of a very long expression is shown by its two ends; its span says the rest.
SOURCE_LIMIT = 200

Edge = tuple[int, int]  # (id of the node, number of its output)


@dataclass(slots=True)
class Record:
    """All that is known of one node."""

    id: int
    name: str
    variable: str | None
    label: str | None
    source: str | None
    span: tuple[int, int] | None
    shape: tuple[int, ...] | None
    dtype: str | None
    sequence_nr: int | None
    saved: dict[str, saved_values.Entry]
    next: list[Edge | None]
    outputs: list[Output]
    depth: int
    shared: bool
    node: Any
    has_grad: bool = False
    grad: Any = None
    has_tangent: bool = False
    tangent: Any = None
    place: Place | None = None
    module: str | None = None
    device: str | None = None
    kink: str | None = None

    @property
    def is_leaf(self) -> bool:
        """Tell whether the node is where a leaf's gradient accumulates."""
        return self.name == LEAF

    @property
    def is_input(self) -> bool:
        """Tell whether nothing leads to it: a leaf, or a constant in a forward reading."""
        return self.is_leaf or self.is_constant

    @property
    def is_constant(self) -> bool:
        """Tell whether it is an operand without a gradient."""
        return type(self.node) is Constant


class Edges:
    """The edges of every node by its id, worked out where they are asked for."""

    __slots__ = ("_functions", "_ids", "_known")

    def __init__(
        self, functions: list[tuple[tuple[Any, int], ...]], ids: Mapping[Any, int]
    ) -> None:
        self._functions, self._ids = functions, ids
        self._known: dict[int, tuple[Edge | None, ...]] = {}

    def __getitem__(self, i: int) -> tuple[Edge | None, ...]:
        found = self._known.get(i)
        if found is None:
            ids = self._ids
            edges = [None if n is None else (ids[n], nr) for n, nr in self._functions[i]]
            found = self._known[i] = tuple(edges)
        return found


# Here and in the files that draw: methods that nobody calls are not made, for each takes a start time.
@dataclass(slots=True, eq=False, repr=False)
class Walk:
    """The skeleton of a graph: one list entry a node, in order of first visit, depth first."""

    nodes: list[Any]
    ids: dict[Any, int]  # node -> where it stands in the lists
    edges: Edges
    parents: list[int]  # who visited it first; -1 for a root
    depths: list[int]
    uses: list[int]  # edges that end here
    roots: list[int]

    def __len__(self) -> int:
        return len(self.nodes)


Follow = Callable[[Any], tuple[tuple[Any, int], ...]]


def walk(roots: Iterable[Any], follow_of: Follow = operator.attrgetter("next_functions")) -> Walk:
    """Visit every node that gradients of the roots reach, each once, depth first.

    follow_of: the edges of a node.
    """
    nodes: list[Any] = []
    ids: dict[Any, int] = {}
    follow: list[tuple[tuple[Any, int], ...]] = []
    parents: list[int] = []
    depths: list[int] = []
    uses: list[int] = []
    starts = list(roots)
    with uncollected():
        # Every edge is put on the stack once, so what is taken off it counts the uses.
        stack: list[tuple[Any, int]] = [(start, -1) for start in reversed(starts)]
        while stack:
            node, parent = stack.pop()
            here = ids.get(node)
            if here is not None:
                uses[here] += parent >= 0
                continue
            here = ids[node] = len(nodes)
            nodes.append(node)
            parents.append(parent)
            depths.append(0 if parent < 0 else depths[parent] + 1)
            uses.append(0 if parent < 0 else 1)
            functions = follow_of(node)
            follow.append(functions)
            for child, _ in reversed(functions):
                if child is not None:
                    stack.append((child, here))
    roots_ = [ids[start] for start in starts]
    return Walk(nodes, ids, Edges(follow, ids), parents, depths, uses, roots_)


def with_constants(constants: Callable[[Any], list[Any]], name_of: Callable[[Any], Any]) -> Follow:
    """The edges of a node with its operands that need no gradient, as `Probe.constants` knows them."""
    made: dict[int, Constant] = {}

    def follow(node: Any) -> tuple[tuple[Any, int], ...]:
        edges = node.next_functions
        if all(child is not None for child, _ in edges):
            return tuple(edges)
        found = []
        for edge, tensor in zip(edges, constants(node), strict=True):
            if edge[0] is None and tensor is not None:
                known = made.get(id(tensor))
                if known is None:
                    known = made[id(tensor)] = Constant(tensor, name_of(tensor))
                edge = (known, 0)
            found.append(edge)
        return tuple(found)

    return follow


def class_name(node: Any) -> str:
    """Return the node's name, without the C++ namespace that AccumulateGrad's carries."""
    name = node.name() if callable(getattr(node, "name", None)) else type(node).__name__
    return str(name).rpartition("::")[2]


@dataclass(slots=True, eq=False, repr=False)
class Describer:
    """Turns entries of a Walk into records; holds what is known besides the nodes themselves."""

    skeleton: Walk
    source: str | None = None
    names: Mapping[int, str] = field(default_factory=dict)  # id of a tensor -> its name
    grads: Mapping[Any, Any] | None = None  # node -> the gradient that reached it
    kinks: Mapping[Any, str] = field(
        default_factory=dict
    )  # node -> "kink" or "jump", if it is at one
    probe: Probe = OWN
    spans: dict[int, tuple[int, int] | None] = field(default_factory=dict)
    tangents: Mapping[Any, Any] | None = None  # node -> the tangent of its result

    def id_of(self, node: Any) -> int | None:
        """Return the id of a node of the graph."""
        return self.skeleton.ids.get(node)

    def span(self, i: int) -> tuple[int, int] | None:
        """Return the node's span, inherited from the node that consumes it where it has none."""
        path: list[int] = []
        while i >= 0 and i not in self.spans:
            own = getattr(self.skeleton.nodes[i], "span", None)
            if own is not None:
                self.spans[i] = (int(own[0]), int(own[1]))
                break
            path.append(i)
            i = self.skeleton.parents[i]
        found = self.spans[i] if i >= 0 else None
        for j in path:
            self.spans[j] = found
        return found

    def piece(self, span: tuple[int, int] | None, limit: int = SOURCE_LIMIT) -> str | None:
        """Return the source text of a span on one line, long ones by their two ends."""
        if span is None or self.source is None:
            return None
        start, end = span
        if end - start <= limit:
            return " ".join(self.source[start:end].split())
        half = limit // 2
        head, tail = self.source[start : start + half], self.source[end - half : end]
        return f"{' '.join(head.split())} … {' '.join(tail.split())}"

    def variable(self, node: Any) -> str | None:
        """Return the name of the leaf that an AccumulateGrad node adds to."""
        tensor = getattr(node, "variable", None)
        return None if tensor is None else self.probe.name_of(tensor, self.names)

    def labels(self) -> dict[int, str]:
        """Return the program's names of nodes, by id."""
        found = ((i, self.label(i)) for i in range(len(self.skeleton)))
        return {i: label for i, label in found if label is not None}

    def label(self, i: int) -> str | None:
        """Return the name that the program gave the node's result (the variable's for a leaf)."""
        node = self.skeleton.nodes[i]
        if getattr(node, "variable", None) is not None:
            return self.variable(node)
        return getattr(node, "label", None) or self.names.get(id(node))

    def record(self, i: int, *, saved: bool = True) -> Record:
        """Describe one node; without `saved`, but for what it saved, which takes as long as all else."""
        node = self.skeleton.nodes[i]
        name = class_name(node)
        variable = self.variable(node)
        span = self.span(i)
        if name == LEAF or type(node) is Constant:
            span = self._where_read(variable or self.label(i), span)
        outputs = self.probe.outputs(node)
        shape, dtype, device = outputs[0] if outputs else (None, None, None)
        number = getattr(node, "_sequence_nr", None)
        entries = {
            key: saved_values.entry(value, self.probe.name_of, self.names)
            for key, value in (self.probe.fields(node) if saved else ())
        }
        reached = self.grads is not None and type(node) is not Constant
        place = self.probe.place(node)
        return Record(
            id=i,
            name=name,
            variable=variable,
            label=None if variable is not None else self.label(i),
            source=self.piece(span) if place is None else place.code,
            span=span,
            shape=shape,
            dtype=dtype,
            sequence_nr=_sequence(number),
            saved=entries,
            next=list(self.skeleton.edges[i]),
            outputs=outputs,
            depth=self.skeleton.depths[i],
            shared=self.skeleton.uses[i] > 1,
            node=node,
            has_grad=reached,
            grad=self.grads.get(node) if reached and self.grads is not None else None,
            has_tangent=self.tangents is not None,
            tangent=None if self.tangents is None else self.tangents.get(node),
            place=place,
            module=self.probe.module(node),
            device=device,
            kink=self.kinks.get(node),
        )

    def _where_read(
        self, variable: str | None, span: tuple[int, int] | None
    ) -> tuple[int, int] | None:
        """Narrow a leaf's inherited span to where its name is read."""
        if variable is None or span is None or self.source is None:
            return span
        name = rf"(?<![\w.]){re.escape(variable)}(?!\w)"
        found = re.compile(name).search(self.source, *span)
        return found.span() if found else span


LAST = 2**64 - 1  # AccumulateGrad's number: after all others


def _sequence(method: Any) -> int | None:
    """A node's number; None for leaves, whose 2**64 - 1 no JavaScript number holds."""
    number = LAST if method is None else int(method())
    return None if number >= LAST else number


def records(describer: Describer) -> Iterator[Record]:
    """Describe every node, in order of id."""
    for i in range(len(describer.skeleton)):
        yield describer.record(i)


@dataclass(slots=True, eq=False, repr=False)
class Totals:
    """What a graph amounts to."""

    nodes: int = 0
    edges: int = 0
    leaves: int = 0
    saved: int = 0
    nbytes: int = 0
    freed: int = 0
    untold: int = 0  # saved tensors that PyTorch does not show, which are in no number here
    parameters: int = 0  # bytes of what is saved that are a module's parameters
    modules: int = 0


def totals(skeleton: Walk, probe: Probe = OWN) -> Totals:
    """Count nodes, edges and leaves, and the distinct tensors kept alive, with their bytes."""
    found = Totals(nodes=len(skeleton), edges=sum(skeleton.uses))
    held: list[Any] = []
    leaf: dict[type, bool] = {}  # by class, for asking a node for what it lacks is slow
    with uncollected():
        for node in skeleton.nodes:
            kind = type(node)
            if kind not in leaf:
                leaf[kind] = kind is Constant or getattr(node, "variable", None) is not None
            if leaf[kind]:
                found.leaves += kind is not Constant
                continue
            arrays, freed = probe.kept(node)
            found.freed += freed
            if probe.foreign:
                found.untold += probe.untold(node)
            held += arrays
        # Keeping the array itself in the table keeps its id from being used again.
        alone = {probe.identity(array): array for array in held}
    found.saved = len(alone)
    found.nbytes = sum(map(probe.nbytes, alone.values()))
    found.parameters = sum(probe.nbytes(one) for one in alone.values() if probe.is_parameter(one))
    return found


def matching(skeleton: Walk, wanted: str, labels: Mapping[int, str]) -> list[int]:
    """Return the nodes that a name means: the program's, a node's, or a number ("#3" or "3")."""
    number = wanted.removeprefix("#")
    if number.isdecimal():
        return [int(number)] if int(number) < len(skeleton) else []
    by_name = [i for i, label in labels.items() if label == wanted]
    if by_name:
        return by_name
    names = {wanted, f"{wanted}Backward0"} - {LEAF + "Backward0"}
    return [i for i, node in enumerate(skeleton.nodes) if class_name(node) in names]

"""Probes: one interface to the nodes of our engine and of PyTorch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from linecache import getline
from typing import Any, NamedTuple

from gradcli.graphs import saved_fields
from gradcli.graphs.value_text import default_dtype, dtype_name


class Output(NamedTuple):
    """Shape, dtype and device of an output of an operation; None for what is not known."""

    shape: tuple[int, ...] | None
    dtype: str | None
    device: str | None = None


class Place(NamedTuple):
    """Where a program's text made a node: a file, its line, and what stands there."""

    file: str
    line: int
    code: str

    @classmethod
    def at(cls, file: str | None, line: int) -> Place | None:
        """The line of a file, read from it; None where no file is known."""
        return None if file is None else cls(file, line, getline(file, line).strip())

    def __str__(self) -> str:
        return f"{self.file.replace(chr(92), '/').rpartition('/')[2]}:{self.line}"


@lru_cache(1024)
def _output(shape: tuple[int, ...], dtype: Any) -> Output:
    """The Output, cached because many nodes have equal ones."""
    return Output(shape, dtype_name(dtype))


class Constant:
    """An operand without a gradient; it stands where a node has an edge to nothing."""

    __slots__ = ("label", "tensor")
    next_functions: tuple[()] = ()
    metadata: Mapping[str, Any] = {}  # as nodes of PyTorch's have it

    def __init__(self, tensor: Any, label: str | None) -> None:
        self.tensor, self.label = tensor, label

    def output_meta(self) -> list[tuple[Any, Any]]:
        """Its shape and dtype, as nodes of our own say them."""
        return [(self.tensor.shape, self.tensor.dtype)]


class Probe:
    """Asks nodes of our own engine."""

    foreign = False
    of_program = False  # the nodes are those of a program in Python, whose lines are told

    def outputs(self, node: Any) -> list[Output]:
        """The outputs of the operation."""
        method = getattr(node, "output_meta", None)
        found = () if method is None else method()
        return [_output(tuple(shape), dtype) for shape, dtype in found]

    def fields(self, node: Any) -> Iterator[tuple[str, Any]]:
        """What the node saved, field by field."""
        return saved_fields.fields(node)

    def kept(self, node: Any) -> tuple[list[Any], bool]:
        """What the node keeps alive (anything with `nbytes`), and whether any of it has been freed."""
        return saved_fields.kept(node)

    def untold(self, node: Any) -> int:
        """How many of its saved tensors cannot be looked at."""
        return 0

    def name_of(self, tensor: Any, names: Mapping[int, str]) -> str | None:
        """What the program calls a tensor."""
        return saved_fields.name_of(tensor, names)

    def name_of_constant(self, tensor: Any, names: Mapping[int, str]) -> str | None:
        """What the program calls an operand that needs no gradient."""
        return self.name_of(tensor, names)

    def place(self, node: Any) -> Place | None:
        """The line of a program that made the node, if it is not known by a span of a source."""
        return None

    def module(self, node: Any) -> str | None:
        """The path of the module that was running when the node was made."""
        return None

    def identity(self, held: Any) -> Any:
        """A key that identifies the memory of something that is kept alive."""
        return id(held)

    def nbytes(self, held: Any) -> int:
        """The bytes of something that is kept alive."""
        return int(held.nbytes)

    def is_parameter(self, held: Any) -> bool:
        """Tell whether it is a module's parameter, which would be alive anyway."""
        return False

    def maker(self, tensor: Any) -> Any:
        """The node that made a tensor."""
        return tensor.grad_fn

    def root_of(self, tensor: Any) -> Any:
        """The node that a tensor's gradient goes to: its grad_fn, or a leaf's AccumulateGrad."""
        if tensor.grad_fn is not None or not tensor.requires_grad:
            return tensor.grad_fn
        from gradcli.engine.core.gradient_edges import get_gradient_edge

        return get_gradient_edge(tensor).node

    def default_dtype(self) -> str:
        """The name of the default dtype, which is not shown."""
        return default_dtype()

    def known_values(
        self, skeleton: Any, watched: Mapping[Any, Any] | None = None
    ) -> dict[int, Any]:
        """The value of each node's result by id: watched, a leaf's own, or a saved one.

        Nodes do not keep their results; what nobody watched and nobody saved is simply not known.
        """
        ids = skeleton.ids
        found: dict[int, Any] = {}
        for i, node in enumerate(skeleton.nodes):
            variable = getattr(node, "variable", None)
            if variable is None and type(node) is Constant:
                variable = node.tensor
            if variable is not None:
                found[i] = variable
                continue
            for tensor in saved_fields.tensors(node):
                maker = getattr(tensor, "grad_fn", None)
                if maker is not None and maker in ids and getattr(tensor, "output_nr", 0) == 0:
                    found.setdefault(ids[maker], tensor)
        for node, tensor in (watched or {}).items():
            if node in ids:
                found[ids[node]] = tensor
        return found

    def constants(self, node: Any, watched: Mapping[Any, Any] | None) -> list[Any]:
        """The operand without a gradient behind each None among a node's edges; None if not known.

        Numbers that stand in the program are left out, for they are read there.
        """
        behind = getattr(watched, "operands", {}).get(node, ())
        edges = node.next_functions
        if len(behind) != len(edges):  # written in place since: another node
            return [None] * len(edges)
        return [None if t is None or t.wrapped else t for t in behind]

    def order(self, skeleton: Any) -> list[Any]:
        """The nodes in the order in which the engine runs them."""
        from gradcli.engine.core.execution_order import exact_order

        return list(exact_order([skeleton.nodes[i] for i in skeleton.roots]))

    def capture(self, tensors: Any, seeds: Any, skeleton: Any) -> Any:
        """Backpropagate with the graph retained; return the events, as the trace reads them.

        Hooks run as in any backward pass. What would be added to a leaf's `.grad` is not added.
        """
        from gradcli.engine.core import backward_pass
        from gradcli.engine.core.observers import observing
        from gradcli.graphs.backward_steps import StepListener

        leaves = [node.variable for node in skeleton.nodes if hasattr(node, "variable")]
        recorder = StepListener(check=True)
        with observing(recorder):
            backward_pass.grad(tensors, leaves, seeds, retain_graph=True, allow_unused=True)
        return recorder


OWN = Probe()

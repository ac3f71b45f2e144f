"""The backward graph: nodes, the leaves' accumulators, and what nodes have saved."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from gradcli.engine.operator import Row
    from gradcli.engine.tensor import Tensor

new = object.__new__

FREED_MESSAGE = (
    "Trying to backward through the graph a second time (or directly access saved tensors after "
    "they have already been freed). Saved intermediate values of the graph are freed when you call "
    ".backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the "
    "graph a second time or if you need to access saved tensors after calling backward."
)


class _Freed:
    """What `saved_items` gives for a saved tensor that a backward pass has freed."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "(freed)"


FREED = _Freed()


class Node:
    """One recorded operation: where its inputs' gradients go, and what its rules need.

    `edges` has, for each differentiable input, a Node, a Port (an output of a node that has
    several) or None. `saved` holds tensors, freed after use; `options` plain values, kept.
    """

    __slots__ = (
        *("_edges", "_saved", "_options", "_seq", "_shape", "_dtype", "span"),
        *("__dict__", "__weakref__"),
    )
    _edges: tuple[Node | Port | None, ...]
    _saved: tuple[Any, ...] | None
    _options: tuple[Any, ...]
    _seq: int
    _shape: tuple[int, ...]
    _dtype: np.dtype[Any]
    span: tuple[int, int] | None

    # Rare state: class defaults here, instance entries on demand.
    _row: Row | None = None
    _hooks: Any = None  # engine.hooks.NodeHooks
    label: str | None = None
    _outputs: tuple[tuple[tuple[int, ...], np.dtype[Any]], ...] | None = None  # where not one
    _written: Any = None  # {output number: Versions} of saved results that have aliases
    _result_tick: int | None = None  # when an in-place operation had written its saved result
    _rare = False  # True where a pass has to look closer: hooks, custom functions
    _eager = False  # True: runs even where no gradient arrives (custom functions)

    def name(self) -> str:
        """The name as PyTorch prints it."""
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The nodes that the gradients of the inputs go to, each with its input number."""
        return tuple(edge_of(e) for e in self._edges)

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for the user's own notes."""
        return self.__dict__.setdefault("_metadata", {})  # type: ignore[no-any-return]

    @property
    def requires_grad(self) -> bool:
        """Always True: constants have no node."""
        return True

    def _sequence_nr(self) -> int:
        return self._seq

    def _set_sequence_nr(self, number: int) -> None:
        self._seq = number

    @property
    def _input_metadata(self) -> tuple[InputMetadata, ...]:
        return tuple(InputMetadata(shape, dtype) for shape, dtype in self.output_meta())

    def output_meta(self) -> tuple[tuple[tuple[int, ...], np.dtype[Any]], ...]:
        """(shape, dtype) of each output of the operation."""
        return self._outputs or ((self._shape, self._dtype),)

    def register_hook(self, hook: Any) -> Any:
        """Call `hook(grad_inputs, grad_outputs)` after the node has run.

        What it returns, unless None, replaces grad_inputs. Returns a handle with `remove()`.
        """
        from gradcli.engine.hooks import add, node_hooks

        return add(node_hooks(self).post, hook)

    def register_prehook(self, hook: Any) -> Any:
        """Call `hook(grad_outputs)` before the node runs; what it returns replaces them."""
        from gradcli.engine.hooks import add, node_hooks

        return add(node_hooks(self).pre, hook)

    def _register_hook_dict(self, tensor: Tensor) -> None:
        from gradcli.engine.hooks import node_hooks

        node_hooks(self).tensor.setdefault(tensor.output_nr, {})

    # -- running ----------------------------------------------------------------------------------
    def apply(self, grad: Any) -> Any:
        """The gradients of the inputs, on arrays: one per edge, None where not needed.

        Raises RuntimeError where the saved tensors have been freed.
        """
        row = self._row
        assert row is not None
        type(self).apply = row.backward  # type: ignore[method-assign]
        return row.backward(self, grad)

    def push(self, grad: Any, grads: dict[Any, Any], mine: set[Any]) -> None:
        """Run on arrays and add the gradients of the inputs to `grads`, in the plain pass.

        mine: the edges whose gradient nobody else holds, so that it may be added to in place.
        """
        from gradcli.engine import compiled

        made = compiled.push(self._row)
        type(self).push = made  # type: ignore[method-assign]
        made(self, grad, grads, mine)

    def apply_recorded(self, grad: Any) -> Any:
        """As `apply`, on tensors and recorded, for `create_graph`."""
        row = self._row
        assert row is not None
        return row.backward_recorded(self, grad)

    def __call__(self, *grads: Any) -> Any:
        from gradcli.engine.backward import call_node

        return call_node(self, grads)

    # -- what was saved ---------------------------------------------------------------------------
    def saved_items(self) -> Iterator[tuple[str, Any]]:
        """(field, value) of everything saved; FREED where a backward pass has freed it."""
        if self._row is not None:
            yield from self._row.saved_items(self)

    def __getattr__(self, name: str) -> Any:
        if name == "span":
            return None
        if name == "_options":
            return ()
        if name.startswith(("_saved_", "_raw_saved_")) and self._row is not None:
            return self._row.saved_attribute(self, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        return sorted([*_PUBLIC, *(self._row.saved_names() if self._row is not None else [])])

    def __repr__(self) -> str:
        kind = type(self)
        prefix = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
        return f"<{prefix}{kind.__name__} object at {id(self):#x}>"


_PUBLIC = (
    *("_input_metadata", "_register_hook_dict", "_sequence_nr", "_set_sequence_nr", "metadata"),
    *("name", "next_functions", "register_hook", "register_prehook", "requires_grad"),
)


class InputMetadata:
    """Shape and dtype of one gradient that a node takes in."""

    def __init__(self, shape: tuple[int, ...], numpy_dtype: np.dtype[Any]) -> None:
        from gradcli.engine import dtypes

        self.shape = list(shape)
        self.dtype = dtypes.of(numpy_dtype)
        self.device = "cpu"
        self.is_nested_tensor = False
        self.is_cpp_nested_tensor = False


class Port:
    """One output of a node that has several differentiable ones: an edge that is not output 0."""

    __slots__ = ("_dtype", "_shape", "node", "nr")

    def __init__(self, node: Node, nr: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.node, self.nr, self._shape, self._dtype = node, nr, shape, dtype


def edge_of(edge: Node | Port | None) -> tuple[Node | None, int]:
    """(node, input number) as `next_functions` shows it."""
    if edge.__class__ is Port:
        return edge.node, edge.nr
    return edge, 0  # type: ignore[return-value]


class AccumulateGrad(Node):
    """The end of the graph: adds what arrives to the `.grad` of a leaf, its `variable`."""

    __slots__ = ("variable",)
    variable: Tensor

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    def push(self, grad: Any, grads: dict[Any, Any], mine: set[Any]) -> None:
        from gradcli.engine.backward import accumulate

        type(self).push = accumulate  # type: ignore[assignment,method-assign]
        accumulate(self, grad, grads, mine)

    def __dir__(self) -> list[str]:
        return sorted([*super().__dir__(), "variable"])

    def _sequence_nr(self) -> int:
        return sys.maxsize * 2 + 1

    @property
    def label(self) -> str | None:  # type: ignore[override]
        """The name that the program gave the variable."""
        return self.variable.label

    @property
    def _rare(self) -> bool:  # type: ignore[override]
        v = self.variable
        return self._hooks is not None or bool(v.hooks) or bool(v.post_hooks)


AccumulateGrad.__module__ = "builtins"


def accumulator(variable: Tensor) -> AccumulateGrad:
    """A fresh AccumulateGrad of a leaf."""
    node = new(AccumulateGrad)
    node.variable = variable
    node._edges, node._saved, node._seq = (), (), -1
    node._shape, node._dtype = variable.array.shape, variable.array.dtype
    return node


def node_class(name: str, base: type[Node] = Node) -> type[Node]:
    """The class of an operator's nodes, which reads as PyTorch's do."""
    return type(name, (base,), {"__slots__": (), "__module__": "builtins"})

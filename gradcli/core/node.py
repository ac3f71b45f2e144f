"""The backward graph: nodes, the leaves' accumulators, and what nodes have saved."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache
from itertools import count
from typing import Any, Protocol, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from gradcli.core.declaration import Declaration
from gradcli.core.hooks import RARE, add, node_hooks
from gradcli.system import dtypes

new = object.__new__
N = TypeVar("N", bound="Node")

FREED_MESSAGE = (
    "Trying to backward through the graph a second time (or directly access saved tensors after "
    "they have already been freed). Saved intermediate values of the graph are freed when you call "
    ".backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the "
    "graph a second time or if you need to access saved tensors after calling backward."
)


class Variable(Protocol):
    """What a node knows of the tensor that its gradients are of."""

    array: Any
    node: Any
    label: str | None
    hooks: Any
    post_hooks: Any
    _grad: Any
    _grad_dtype: Any

    @property
    def output_nr(self) -> int: ...


class Meta:
    """Shape and dtype of a result, shared by all nodes (and edges) whose results have both."""

    __slots__ = ("deep", "dtype", "real", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.shape, self.dtype = shape, dtype
        self.real = dtype is not None and dtype.kind != "c"
        self.deep = len(shape) > 1


_METAS: dict[Any, Meta] = {}
_MOST = 4096


def meta(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Meta:
    """The Meta of a shape and a dtype: one object for equal ones, so that `is` is a quick test."""
    key = shape, dtype
    found = _METAS.get(key)
    if found is None:
        if len(_METAS) > _MOST:
            _METAS.clear()
        found = _METAS[key] = Meta(shape, dtype)
    return found


OWNED = "owned"  # the mark of a node to whose gradient a plain pass may add in place
OWN: Any = object()  # a leaf's gradients have the leaf's own dtype


class _Rarely:
    """An attribute that few nodes have, None for others: kept in `_more`, a dictionary on demand."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, node: Any, owner: type) -> Any:
        return None if node is None or node._more is None else node._more.get(self.name)

    def __set__(self, node: Any, value: Any) -> None:
        if node._more is None:
            node._more = {}
        node._more[self.name] = value


class Node:
    """One recorded operation: where its inputs' gradients go, and what its rules need.

    `_edges` has, for each differentiable input, a Node, a Port (an output of a node that has
    several) or None. `_saved` holds tensors, freed after use; `_options` plain values, kept. The nodes
    of most primitives have a slot for each of these (see `layout`), others are of the class Wide.
    """

    __slots__ = (*("_meta", "_more", "_seq", "span"), "__weakref__")
    _edges: tuple[Node | Port | None, ...]
    _saved: tuple[Any, ...] | None = ()
    _options: tuple[Any, ...] = ()
    _meta: Meta
    _seq: int
    _mark: Any  # the pass that has met the node, RARE or OWNED
    _grad: Any  # what a plain pass has brought so far
    _more: dict[str, Any] | None
    span: tuple[int, int] | None  # the piece of the source that it came from

    # A pass goes along these edges: the first two, then the rest.
    _e0: Node | Port | None = None
    _e1: Node | Port | None = None
    _rest: tuple[Node | Port | None, ...] = ()

    _hooks: Any = _Rarely()  # core.hooks.NodeHooks
    label: Any = _Rarely()  # the name that the program gave the result
    _outputs: Any = _Rarely()  # (shape, dtype) of each output, where there is not one
    _written: Any = _Rarely()  # {output number: Versions} of saved results that have aliases
    _result_tick: Any = _Rarely()  # when an in-place operation had written its saved result
    _tangents: Any = _Rarely()  # in forward mode, {output number: tangents of that result}
    _notes: Any = _Rarely()
    _primitive: Declaration | None = None
    _eager = False  # True: runs even where no gradient arrives (custom functions)

    def name(self) -> str:
        """The name as PyTorch prints it."""
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The nodes that the gradients of the inputs go to, each with its input number."""
        return tuple([edge_of(e) for e in self._edges])

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for the user's own notes."""
        if self._notes is None:
            self._notes = {}
        return self._notes  # type: ignore[no-any-return]

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
        return self._outputs or ((self._meta.shape, self._meta.dtype),)

    def register_hook(self, hook: Any) -> Any:
        """Call `hook(grad_inputs, grad_outputs)` after the node has run.

        What it returns, unless None, replaces grad_inputs. Returns a handle with `remove()`.
        """
        return add(node_hooks(self).post, hook)

    def register_prehook(self, hook: Any) -> Any:
        """Call `hook(grad_outputs)` before the node runs; what it returns replaces them."""
        return add(node_hooks(self).pre, hook)

    def _register_hook_dict(self, tensor: Variable) -> None:
        node_hooks(self).tensor.setdefault(tensor.output_nr, {})

    # -- running ----------------------------------------------------------------------------------
    def apply(self, grad: Any) -> Any:
        """The gradients of the inputs, on arrays: one per edge, None where not needed.

        Raises RuntimeError where the saved tensors have been freed.
        """
        primitive = self._primitive
        assert primitive is not None
        type(self).apply = primitive.backward  # type: ignore[method-assign]
        return primitive.backward(self, grad)

    # `push(grad, retain)`, the plain pass's way (take the gradient, add to those of the inputs; retain:
    # keep what was saved), and the call of a node are attached in engine/__init__.
    push: Any
    __call__: Any

    def apply_recorded(self, grad: Any) -> Any:
        """As `apply`, on tensors and recorded, for `create_graph`."""
        primitive = self._primitive
        assert primitive is not None
        return primitive.backward_recorded(self, grad)

    # -- what was saved ---------------------------------------------------------------------------
    def saved_items(self) -> Iterator[tuple[str, Any]]:
        """(field, value) of everything saved; FREED where a backward pass has freed it."""
        if self._primitive is not None:
            yield from self._primitive.saved_items(self)

    def __dir__(self) -> list[str]:
        return sorted(
            [*_PUBLIC, *(self._primitive.saved_names() if self._primitive is not None else [])]
        )

    def __repr__(self) -> str:
        kind = type(self)
        prefix = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
        if (number := _shown.get(self)) is None:
            number = _shown.setdefault(self, _next())
        return f"<{prefix}{kind.__name__} object at {number:#x}>"


# What stands for the address of a node that was shown, as the first, the second …: the same in every run.
_shown: WeakKeyDictionary[Node, int] = WeakKeyDictionary()
_next = count(1).__next__


_PUBLIC = (
    *("_input_metadata", "_register_hook_dict", "_sequence_nr", "_set_sequence_nr", "metadata"),
    *("name", "next_functions", "register_hook", "register_prehook", "requires_grad"),
)


class Wide(Node):
    """A node with any number of edges, or with attributes of its own."""

    _saved: tuple[Any, ...] | None = ()
    _options: tuple[Any, ...] = ()
    _rest: tuple[Node | Port | None, ...] = ()
    _mark: Any = None
    _grad: Any = None
    _more: dict[str, Any] | None = None
    span: tuple[int, int] | None = None

    @property
    def _edges(self) -> tuple[Node | Port | None, ...]:
        return self._rest

    @_edges.setter
    def _edges(self, edges: tuple[Node | Port | None, ...]) -> None:
        self._rest = edges


def short_name(node: Node) -> str:
    """A node's name in messages: without Backward and its number."""
    return re.sub(r"Backward\d*$", "", node.name())


def blank(kind: type[N]) -> N:
    """A node of a class, with nothing in it yet."""
    node = new(kind)
    node._more = node.span = node._mark = node._grad = None
    return node


class InputMetadata:
    """Shape and dtype of one gradient that a node takes in."""

    def __init__(self, shape: tuple[int, ...], numpy_dtype: np.dtype[Any]) -> None:
        self.shape = list(shape)
        self.dtype = dtypes.of(numpy_dtype)
        self.device = "cpu"
        self.is_nested_tensor = False
        self.is_cpp_nested_tensor = False


class Port:
    """One output of a node that has several differentiable ones: an edge that is not output 0."""

    __slots__ = ("_meta", "node", "nr")
    _mark = RARE  # sorting out which output is meant is not for the plain pass

    def __init__(self, node: Node, nr: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.node, self.nr, self._meta = node, nr, meta(shape, dtype)


Edge = Node | Port


def edge_of(edge: Node | Port | None) -> tuple[Node | None, int]:
    """(node, input number) as `next_functions` shows it."""
    if edge.__class__ is Port:
        return edge.node, edge.nr
    return edge, 0  # type: ignore[return-value]


class AccumulateGrad(Node):
    """The end of the graph: adds what arrives to the `.grad` of a leaf, its `variable`."""

    __slots__ = ("_grad", "_mark", "variable")
    _edges = ()
    variable: Variable

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    def __dir__(self) -> list[str]:
        return sorted([*super().__dir__(), "variable"])

    def _sequence_nr(self) -> int:
        return sys.maxsize * 2 + 1

    @property
    def label(self) -> str | None:
        """The name that the program gave the variable."""
        return self.variable.label

    def wanted_dtype(self) -> Any:
        """The dtype that gradients are cast to; None: they are not."""
        wanted = self.variable._grad_dtype
        return self._meta.dtype if wanted is OWN else None if wanted is None else wanted.dtype

    def watched(self) -> bool:
        """True where hooks of the node or of its leaf wait for the gradient."""
        v = self.variable
        return bool(v.hooks or v.post_hooks or (self._more and self._hooks is not None))


AccumulateGrad.__module__ = "builtins"


def accumulator(variable: Variable) -> AccumulateGrad:
    """A fresh AccumulateGrad of a leaf."""
    node, array = new(AccumulateGrad), variable.array
    node._more = node.span = node._mark = node._grad = None
    node.variable, node._seq = variable, -1
    node._meta = meta(array.shape, array.dtype)
    if variable._grad_dtype is not OWN:
        node._mark = RARE  # the plain pass knows one dtype for an edge
    return node


# -- the classes of nodes -------------------------------------------------------------------------
class _Gone:
    """What `saved_items` gives for a saved tensor that is not there to be seen, and why."""

    __slots__ = ("why",)

    def __init__(self, why: str) -> None:
        self.why = why

    def __repr__(self) -> str:
        return f"({self.why})"


FREED = _Gone("freed")  # by a backward pass
WRITTEN = _Gone("written in place since")


@cache
def layout(edges: int, saved: int, options: int) -> type[Node]:
    """The base of nodes with so many edges (1 to 3), saved tensors and options, each in a slot."""
    slots = [
        tuple(f"_{kind}{i}" for i in range(n))
        for kind, n in zip("eso", (edges, saved, options), strict=True)
    ]
    body: dict[str, Any] = {
        "__slots__": ("_grad", "_mark", *slots[0], *slots[1], *slots[2]),
        "_edges": _together(slots[0]),
    }
    if edges > 2:
        body["_rest"] = property(lambda node: (node._e2,))
    if saved:
        body["_saved"] = _together(slots[1])
    if options:
        body["_options"] = _together(slots[2])
    return type("Node", (Node,), body)


def _together(slots: tuple[str, ...]) -> Any:
    """Slots seen as a tuple; as None where the first is FREED."""

    def get(node: Node) -> tuple[Any, ...] | None:
        values = tuple([getattr(node, name) for name in slots])
        return None if values[0] is FREED else values

    def set_(node: Node, values: tuple[Any, ...] | None) -> None:
        if values is None:
            values = (FREED,) + (None,) * (len(slots) - 1)
        for name, value in zip(slots, values, strict=True):
            setattr(node, name, value)

    return property(get, set_)


class _SavedField:
    """The attribute of a node through which something that it saved is read."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, node: Node | None, kind: type[Node]) -> Any:
        if node is None:
            return self
        assert node._primitive is not None
        return node._primitive.saved_attribute(node, self.name)


def node_class(primitive: Declaration, name: str, base: type[Node]) -> type[Node]:
    """The class of a primitive's nodes, which reads as PyTorch's do."""
    fields = {n: _SavedField(n) for n in primitive.saved_names()}
    return type(
        name,
        (base,),
        {"__slots__": (), "__module__": "builtins", "_primitive": primitive, **fields},
    )

"""The backward graph: nodes, the leaves' accumulators, and what nodes have saved."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from itertools import count
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from gradcli.engine.core.declaration import Declaration
from gradcli.engine.core.hooks import RARE, add, node_hooks
from gradcli.engine.system import dtypes

if TYPE_CHECKING:
    from gradcli.engine.core.declaration import Value

new = object.__new__
N = TypeVar("N", bound="Node")

FREED_MESSAGE = (
    "Trying to backward through the graph a second time (or directly access saved tensors after "
    "they have already been freed). Saved intermediate values of the graph are freed when you call "
    ".backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the "
    "graph a second time or if you need to access saved tensors after calling backward."
)


def freed_error(message: str = FREED_MESSAGE) -> Exception:
    """The error of whoever reads what a backward pass has freed."""
    from gradcli.engine.core.errors import GraphFreedError

    return GraphFreedError(message)


class Variable(Protocol):
    """The attributes of a leaf tensor that its AccumulateGrad uses."""

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
    """Shape and dtype of a result. All nodes and ports with equal ones share a Meta."""

    __slots__ = ("deep", "dtype", "real", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.shape, self.dtype = shape, dtype
        self.real = dtype is not None and dtype.kind != "c"
        self.deep = len(shape) > 1


_METAS: dict[Any, Meta] = {}
_MOST = 4096


def meta(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Meta:
    """The Meta of a shape and a dtype, cached, so that `is` compares two."""
    key = shape, dtype
    found = _METAS.get(key)
    if found is None:
        if len(_METAS) > _MOST:
            _METAS.clear()
        found = _METAS[key] = Meta(shape, dtype)
    return found


OWNED = "owned"  # marks a node whose gradient so far the plain pass may add to in place
IDLE = "idle"  # marks a node that a pass toward some inputs does not need
OWN: Any = object()  # `grad_dtype` was not set: it is the leaf's dtype


class _Rarely:
    """An attribute that few nodes have (default None), stored in the dictionary `_more`."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, node: Node, owner: type) -> Any:
        return None if node is None or node._more is None else node._more.get(self.name)

    def __set__(self, node: Node, value: object) -> None:
        if node._more is None:
            node._more = {}
        node._more[self.name] = value


class Node:
    """One recorded operation: where its inputs' gradients go, and what its VJP rules need.

    `_edges` has a Node, a Port (one output of a node with several) or None for each differentiable
    input. `_saved` holds tensors, freed after use; `_options` holds plain values, kept. Nodes of most
    primitives store each of these in a slot (see `layout`); others are instances of Wide.
    """

    __slots__ = (*("_meta", "_more", "_seq", "span"), "__weakref__")
    _edges: tuple[Node | Port | None, ...]
    _saved: tuple[Any, ...] | None = ()
    _options: tuple[Any, ...] = ()
    _meta: Meta
    _seq: int
    _mark: Any  # the plain pass that visited the node, or RARE or OWNED
    _grad: Any  # the gradient so far in a plain pass
    _more: dict[str, Any] | None
    span: tuple[int, int] | None  # start and end of the operation in the source text

    # The edges as a pass follows them: the first two, then the rest.
    _e0: Node | Port | None = None
    _e1: Node | Port | None = None
    _rest: tuple[Node | Port | None, ...] = ()

    _hooks: Any = _Rarely()  # core.hooks.NodeHooks
    label: Any = _Rarely()  # the name that the program gave the result
    _outputs: Any = _Rarely()  # (shape, dtype) of each output, unless there is exactly one
    _written: Any = _Rarely()  # {output number: Versions} of saved results that share memory
    _result_tick: Any = _Rarely()  # the tick after an in-place operation wrote its saved result
    _tangents: Any = _Rarely()  # {output number: tangents of that result} in forward mode
    _notes: Any = _Rarely()
    _primitive: Declaration | None = None
    _eager = False  # True: runs even if no gradient arrives (custom Functions)

    def name(self) -> str:
        """The name as PyTorch prints it."""
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """(node, input number) for each differentiable input: where its gradient goes."""
        return tuple([edge_of(e) for e in self._edges])

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for the user's notes."""
        if self._notes is None:
            self._notes = {}
        return self._notes

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

    def register_hook(self, hook: Callable[..., Any]) -> Any:
        """Call `hook(grad_inputs, grad_outputs)` after the node has run; returns a handle with `remove()`.

        If the hook returns gradients, they replace grad_inputs.
        """
        return add(node_hooks(self).post, hook)

    def register_prehook(self, hook: Callable[..., Any]) -> Any:
        """Call `hook(grad_outputs)` before the node runs; gradients that it returns replace them."""
        return add(node_hooks(self).pre, hook)

    def _register_hook_dict(self, tensor: Variable) -> None:
        node_hooks(self).tensor.setdefault(tensor.output_nr, {})

    # -- running ----------------------------------------------------------------------------------
    def apply(self, grad: Value) -> Any:
        """The gradients of the inputs as arrays: one for each edge, None where there is no edge.

        Raises RuntimeError if the saved tensors have been freed.
        """
        primitive = self._primitive
        assert primitive is not None
        type(self).apply = primitive.backward  # type: ignore[method-assign]
        return primitive.backward(self, grad)

    # Attached in core/__init__: the call of a node, and `push(grad, retain)`, a step of the plain pass,
    # which adds to the inputs' gradients and frees what was saved unless `retain`; `push_recorded` does so
    # on tensors and is recorded.
    push: Any
    push_recorded: Any
    __call__: Any

    def apply_recorded(self, grad: Value) -> Any:
        """As `apply`, but on tensors and recorded, for `create_graph`."""
        primitive = self._primitive
        assert primitive is not None
        return primitive.backward_recorded(self, grad)

    # -- what was saved ---------------------------------------------------------------------------
    def saved_items(self) -> Iterator[tuple[str, Any]]:
        """(field, value) of all that is saved; FREED for what a backward pass has freed."""
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


# Nodes are numbered as they are first printed; the number stands for an address, equal in every run.
_shown: WeakKeyDictionary[Node, int] = WeakKeyDictionary()
_next = count(1).__next__


_PUBLIC = (
    *("_input_metadata", "_register_hook_dict", "_sequence_nr", "_set_sequence_nr", "metadata"),
    *("name", "next_functions", "register_hook", "register_prehook", "requires_grad"),
)


class Wide(Node):
    """A node with any number of edges, and a dictionary for other attributes."""

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
    """A node's name without "Backward0", as PyTorch's messages have it."""
    return re.sub(r"Backward\d*$", "", node.name())


def blank(kind: type[N]) -> N:
    """A new empty node of a class."""
    node = new(kind)
    node._more = node.span = node._mark = node._grad = None
    return node


# The node that a write into a view has its first gradient go to: a part of what CopySlices gives.
PART = blank(Wide)


class InputMetadata:
    """Shape and dtype of one gradient that a node receives."""

    def __init__(self, shape: tuple[int, ...], numpy_dtype: np.dtype[Any]) -> None:
        self.shape = list(shape)
        self.dtype = dtypes.of(numpy_dtype)
        self.device = "cpu"
        self.is_nested_tensor = False
        self.is_cpp_nested_tensor = False


class Port:
    """An edge to one output of a node that has several differentiable outputs.

    To the plain pass it is a node of its own, which runs before that one.
    """

    __slots__ = ("_grad", "_mark", "_meta", "node", "nr")
    _e0 = property(attrgetter("node"))
    _e1: Any = None
    _rest: tuple[Any, ...] = ()
    _edges = property(lambda port: (port.node,))
    _seq = property(lambda port: port.node._seq + 0.5)

    def __init__(self, node: Node, nr: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.node, self.nr, self._meta = node, nr, meta(shape, dtype)
        self._mark: Any = None
        self._grad: Any = None

    def push(self, grad: Value, retain: bool) -> None:
        """A step of the plain pass: the node's gradient is the list of those of its outputs."""
        self._grad, parts = None, self.node._grad
        if parts is None:
            parts = self.node._grad = [None] * len(self.node.output_meta())
        had = parts[self.nr]
        parts[self.nr] = grad if had is None else had + grad

    push_recorded = push


Edge = Node | Port


def edge_of(edge: Node | Port | None) -> tuple[Node | None, int]:
    """(node, input number) as `next_functions` shows it."""
    if edge.__class__ is Port:
        return edge.node, edge.nr
    return edge, 0  # type: ignore[return-value]


class AccumulateGrad(Node):
    """The node of a leaf: adds the gradient to the `.grad` of its `variable`."""

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
        """The name of the leaf in the program."""
        return self.variable.label

    def wanted_dtype(self) -> Any:
        """The dtype that gradients are cast to; None: no cast."""
        wanted = self.variable._grad_dtype
        return self._meta.dtype if wanted is OWN else None if wanted is None else wanted.dtype

    def watched(self) -> bool:
        """True if the node or its leaf has hooks."""
        v = self.variable
        return bool(v.hooks or v.post_hooks or (self._more and self._hooks is not None))


AccumulateGrad.__module__ = "builtins"


def accumulator(variable: Variable) -> AccumulateGrad:
    """A new AccumulateGrad for a leaf."""
    node, array = new(AccumulateGrad), variable.array
    node._more = node.span = node._mark = node._grad = None
    node.variable, node._seq = variable, -1
    node._meta = meta(array.shape, array.dtype)
    if variable._grad_dtype is not OWN:
        node._mark = RARE  # a leaf with another `grad_dtype` is not for the plain pass
    return node


# -- the classes of nodes -------------------------------------------------------------------------
class _Gone:
    """What `saved_items` returns for a saved tensor that cannot be shown, and why."""

    __slots__ = ("why",)

    def __init__(self, why: str) -> None:
        self.why = why

    def __repr__(self) -> str:
        return f"({self.why})"


FREED = _Gone("freed")  # by a backward pass


class Written(_Gone):
    """What `saved_items` returns for a saved tensor that was written in place since.

    held: the tensor or array, as the node holds it. version: that of the tensor when it was saved.
    """

    __slots__ = ("held", "version")

    def __init__(self, held: Any, version: int) -> None:
        shape = getattr(held, "shape", None)
        super().__init__("written in place since" + ("" if shape is None else f", {tuple(shape)}"))
        self.held, self.version = held, version


@cache
def layout(edges: int, saved: int, options: int) -> type[Node]:
    """A Node class with a slot for each of `edges` (1 to 3) edges, `saved` tensors and `options`."""
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
    """A property that shows slots as a tuple, or None if the first is FREED."""
    read, one = attrgetter(*slots), len(slots) == 1  # of one slot, what lies in it

    def get(node: Node) -> tuple[Any, ...] | None:
        values = (read(node),) if one else read(node)
        return None if values[0] is FREED else values

    def set_(node: Node, values: tuple[Any, ...] | None) -> None:
        if values is None:
            values = (FREED,) + (None,) * (len(slots) - 1)
        for name, value in zip(slots, values, strict=True):
            setattr(node, name, value)

    return property(get, set_)


class _SavedField:
    """The attribute `_saved_FIELD` of a node."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, node: Node | None, kind: type[Node]) -> Any:
        if node is None:
            return self
        assert node._primitive is not None
        return node._primitive.saved_attribute(node, self.name)


def node_class(primitive: Declaration, name: str, base: type[Node]) -> type[Node]:
    """The class of a primitive's nodes, with the name and the `_saved_` attributes of PyTorch's."""
    fields = {n: _SavedField(n) for n in primitive.saved_names()}
    return type(
        name,
        (base,),
        {"__slots__": (), "__module__": "builtins", "_primitive": primitive, **fields},
    )

"""The class Tensor: an array, the edge that its gradient takes, and PyTorch's attributes.

Functions of tensors are primitives; the operator table adds them as methods and Python operators. This
class has the rest. Rare state (gradient, hooks, versions, view) is kept in the instance's dictionary;
class attributes are the defaults.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ref

import numpy as np

import gradcli.engine.system.budget as budget
from gradcli.engine.core import modes, versions
from gradcli.engine.core.batched_arrays import NO_STORAGE, BatchedArray
from gradcli.engine.core.hooks import RARE, add, node_hooks
from gradcli.engine.core.modes import users_level
from gradcli.engine.core.node import OWN, Meta, Node, Port, accumulator, meta, new
from gradcli.engine.core.size import Size
from gradcli.engine.core.size import of as size_of
from gradcli.engine.core.versions import Versions
from gradcli.engine.system import dtypes, locks
from gradcli.engine.system.array_memory import (
    ARRAYS,
    Numberless,
    address,
    copied,
    element_strides,
    follows,
    memory_of,
)
from gradcli.engine.system.dtypes import scalar_name

if TYPE_CHECKING:
    from gradcli.engine.core.tensor_methods import Methods
    from gradcli.engine.system.dtypes import Array, DType
else:
    Methods = object  # which a stub has, for type checkers

_tuple: Any = tuple.__new__
_own_kind = dtypes.OWN.get
ndarray = np.ndarray
_DLPACK_CPU = (1, 0)  # the type of the device, as DLPack numbers them, and its index


class _Lazy:
    """Placeholder for a `node` that is made on demand: a leaf's AccumulateGrad, or a stale view's node."""

    __slots__ = ()
    node = None


LAZY: Any = _Lazy()

# The subclasses of Tensor that operators take as they take a Tensor; `nn.Parameter` adds itself.
SUBCLASSES: set[type] = set()

ONLY_FLOATING = "only Tensors of floating point and complex dtype can require gradients"
_NON_LEAF = "you can only change requires_grad flags of leaf variables."
_NON_LEAF_OFF = (
    " If you want to use a computed variable in a subgraph that doesn't require differentiation use "
    "var_no_grad = var.detach()."
)


class Tensor(Methods):
    """An n-dimensional array that remembers how it was computed."""

    __slots__ = ("__dict__", "__weakref__", "array", "node")
    array: Any  # a NumPy array; a NumPy scalar if 0-d and its memory is not shared
    node: Any  # None: constant. LAZY: ask `edge`. Else the Node or Port that made it.

    _grad: Tensor | None = None
    hooks: Any = None  # a leaf's hooks on its gradient
    post_hooks: Any = None  # a leaf's hooks after accumulation
    versions: Versions | None = None
    base: Tensor | None = None  # a view's base
    views: Any = None  # a base's Views
    stale = False  # a view whose base was written in place since its node was made
    former: Any = None  # a stale view's node before the write
    is_lazy_view = False  # a view that requires grad only because its base does
    creation = ""  # why a view may not be written: see core.views
    detached = 0  # the tick of `detach_`, or 0
    label: str | None = None
    wrapped = False  # made of a Python number: weak in type promotion
    inference: int = False  # an inference tensor to as many levels (core.levels), the lowest first
    level: Any = None  # the level that differentiates by this leaf; None: the program (core.levels)
    born = 0  # the tick at which it was made, if a transform was open (modes.differentiating)
    shows: Any = None  # an argument of a transform's: Shown, which says what was passed
    retained = False
    # A weak reference to a leaf's AccumulateGrad; returns None if there is none yet.
    accumulates: Any = staticmethod(lambda: None)
    tangents: Any = None  # {level: tensor} in forward mode (transforms.forward_mode)
    _grad_dtype: Any = OWN  # the dtype of `.grad` if it was set; None: any dtype
    __array_priority__ = 1000
    # Attached in core/__init__: the backward pass from this tensor, a new node for a stale view, and the
    # tensor lifted to more batches.
    run_backward: Any
    regenerate: Any
    in_batches: Any

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        out = super().__new__(cls)
        out.node = None
        return out

    def __init__(self, *data: Any, device: object | None = None) -> None:
        """The legacy constructor: sizes, or a sequence; always of the default dtype."""
        real = dtypes.default.real
        if len(data) == 1 and isinstance(data[0], Tensor):
            self.array = data[0].array
        elif data and all(isinstance(n, int) for n in data):
            self.array = np.zeros(data, real)
        elif len(data) == 1 and isinstance(data[0], Size):
            self.array = np.zeros(data[0], real)
        else:
            self.array = np.array(data[0] if data else [], dtype=real)

    # -- where the gradient goes ------------------------------------------------------------------
    @property
    def requires_grad(self) -> bool:
        """True if operations on the tensor are recorded."""
        return self.node is not None

    @requires_grad.setter
    def requires_grad(self, value: object) -> None:
        if not isinstance(value, bool):
            raise RuntimeError("requires_grad must be a bool")
        self._set_requires_grad(value, ONLY_FLOATING)

    @requires_grad.deleter
    def requires_grad(self) -> None:
        raise RuntimeError("requires_grad must be a bool")

    def requires_grad_(self, requires_grad: Any = True) -> Tensor:
        """Record operations on the tensor from now on (or no more); returns it."""
        if not isinstance(requires_grad, bool):
            raise TypeError(
                "requires_grad_(): argument 'requires_grad' (position 1) must be bool, not "
                f"{type(requires_grad).__name__}"
            )
        if modes.transforms.get():
            raise RuntimeError(_IN_TRANSFORM)
        self._set_requires_grad(
            requires_grad, "only Tensors of floating point dtype can require gradients"
        )
        return self

    def _set_requires_grad(self, value: bool, refusal: str) -> None:
        if not self.is_leaf:
            if value and refusal is not ONLY_FLOATING:
                return  # a result requires grad already
            raise RuntimeError(_NON_LEAF + ("" if value else _NON_LEAF_OFF))
        if value and self.inference and not modes.current().inference:
            raise RuntimeError(
                "Setting requires_grad=True on inference tensor outside InferenceMode is not "
                "allowed."
            )
        if value and self.array.dtype not in dtypes.DIFFERENTIABLE:
            from gradcli.engine.core.errors import NotDifferentiableDtypeError

            raise NotDifferentiableDtypeError(refusal)
        if not value:
            self.node = None
        elif self.node is None or self.is_lazy_view:
            self.node, self.is_lazy_view = LAZY, False
        for view in self.views.alive() if self.views is not None else ():
            link_lazily(view)

    def is_variable(self) -> bool:
        """True if something differentiates by this tensor: a leaf, or a variable of an open level."""
        return self.is_leaf or (self.level is not None and self.level.is_open)

    @property
    def is_leaf(self) -> bool:
        """True unless the tensor is the recorded result of an operation."""
        if self.stale and self.node is LAZY:
            edge(self)  # raises if the base of a view was written against the rules
        return self.node is None or self.node is LAZY

    def _made(self) -> Node | Port | None:
        """The Node or Port of the tensor; None for a stale view, whose node is not regenerated here."""
        node = getattr(self, "former", None) if self.stale and self.node is LAZY else self.node
        return None if node is LAZY else node

    @property
    def grad_fn(self) -> Node | None:
        """The node that computed the tensor; None for leaves."""
        if self.is_leaf:
            return None
        e = edge(self)
        return e.node if type(e) is Port else e

    @property
    def output_nr(self) -> int:
        """Which output of its node the tensor is."""
        return self.node.nr if type(self.node) is Port else 0

    def set_node(self, node: Node | Port) -> None:
        """Make the tensor the recorded result of a node."""
        self.node = node

    # -- the gradient -----------------------------------------------------------------------------
    @property
    def grad(self) -> Tensor | None:
        """The gradient that backward passes have accumulated; None before the first."""
        if self._grad is None and not self.retained and self._made() is not None:
            warnings.warn(_NOT_A_LEAF, UserWarning, stacklevel=users_level())
        return self._grad

    @grad.setter
    def grad(self, value: object) -> None:
        if value is None:
            self._grad = None
            return
        if not isinstance(value, Tensor):
            raise TypeError(
                "assigned grad expected to be a Tensor or None but got grad of type "
                f"{type(value).__name__}"
            )
        if value is self:
            raise RuntimeError("can't assign Variable as its own grad")
        wanted, got = self._wanted_dtype(), value.dtype
        if wanted is not None and wanted != got:
            raise RuntimeError(
                f"attempting to assign a gradient with dtype '{_CTYPES.get(got.name, got.name)}' to "
                f"a tensor with grad_dtype '{scalar_name(wanted)}'. The gradient must "
                "match the tensor's grad_dtype (defaults to the tensor's dtype). You can set the "
                "tensor's grad_dtype attribute with a specific dtype, or None to allow any dtype. "
                "Set grad_dtype with caution. Diverging the dtypes of a tensor and its gradient may "
                "break downstream systems that assume they match."
            )
        if value.array.shape != self.array.shape:
            raise RuntimeError(
                f"attempting to assign a gradient of size '{list(value.array.shape)}' to a tensor "
                f"of size '{list(self.array.shape)}'. Please ensure that the gradient and the "
                "tensor are the same size"
            )
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    def _wanted_dtype(self) -> Any:
        return dtypes.of(self.array.dtype) if self._grad_dtype is OWN else self._grad_dtype

    @property
    def grad_dtype(self) -> Any:
        """The dtype of this leaf's `.grad`; None if any is allowed."""
        if not self.is_leaf:
            raise RuntimeError("grad_dtype can only be accessed on leaf tensors.")
        return self._wanted_dtype()

    @grad_dtype.setter
    def grad_dtype(self, value: object) -> None:
        if not self.is_leaf:
            raise RuntimeError("grad_dtype can only be set on leaf tensors.")
        if value is not None and not isinstance(value, dtypes.dtype):
            raise RuntimeError(
                f"grad_dtype must be a torch.dtype or None, but got {type(value).__name__}"
            )
        if value is not None and self._grad is not None and self._grad.dtype != value:
            got = self._grad.dtype.name
            raise RuntimeError(
                f"Cannot set grad_dtype to '{scalar_name(value)}' because there is "
                f"already a gradient with dtype '{_CTYPES.get(got, got)}'. Please clear the gradient "
                "(.grad = None) before changing grad_dtype, or ensure the new grad_dtype matches the "
                "existing gradient's dtype."
            )
        self._grad_dtype = OWN if value == self.dtype else value
        found = self.accumulates()
        if found is not None:
            found._mark = RARE

    def backward(
        self,
        gradient: object | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: object | None = None,
    ) -> None:
        """Accumulate the gradient of this tensor into the leaves of its graph.

        gradient: the cotangent, of this tensor's shape; default 1 for a tensor of one element.
        retain_graph: keep the saved tensors for another pass (default: create_graph).
        create_graph: record the pass, so that the gradients can be differentiated again.
        inputs: accumulate into these tensors only.
        Raises RuntimeError, in PyTorch's words, for a bad cotangent and a missing or freed graph.
        """
        self.run_backward(gradient, retain_graph, create_graph, inputs=inputs)

    def retain_grad(self) -> None:
        """Keep this non-leaf's gradient in `.grad`, as for leaves."""
        if self.node is None:
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        if self.is_leaf or self.retained:
            return
        node = self.grad_fn
        assert node is not None
        node_hooks(node).retain[self.output_nr] = ref(self)
        self.retained = True

    @property
    def retains_grad(self) -> bool:
        """True for a non-leaf after `retain_grad()`."""
        return self.retained

    def register_hook(self, hook: Callable[..., Any]) -> Any:
        """Call `hook(grad)` when this tensor's gradient is computed; returns a handle with `remove()`.

        If the hook returns a tensor, it replaces the gradient.
        """
        if self.node is None:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if self.is_leaf:
            if self.hooks is None:
                self.hooks = {}
            return add(self.hooks, hook)
        node = self.grad_fn
        assert node is not None
        return add(node_hooks(node).tensor.setdefault(self.output_nr, {}), hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[..., Any]) -> Any:
        """Call `hook(tensor)` after a gradient has been added to this leaf's `.grad`."""
        if self.node is None:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if not self.is_leaf:
            raise RuntimeError(
                "post accumulate grad hooks cannot be registered on non-leaf tensors"
            )
        if self.post_hooks is None:
            self.post_hooks = {}
        return add(self.post_hooks, hook)

    # -- memory -----------------------------------------------------------------------------------
    def memory(self) -> Any:
        """The array, which others may now share: a NumPy scalar becomes a 0-d array first."""
        state = modes.local.state
        if isinstance(self.array, BatchedArray):
            return self.array
        if state is not None and state.recorder is not None:
            self.array = state.recorder.memory(self.array)
        elif isinstance(self.array, np.generic):
            self.array = np.asarray(self.array)
        return self.array

    def shared_versions(self) -> Versions:
        """The version counter, made if there is none, to share with a tensor over the same memory."""
        found = self.versions
        if found is None:
            found = self.versions = Versions()
            node = self.node
            if node is not None and node is not LAZY:
                link_result(node, found)
        return found

    def version_number(self) -> int:
        """How often the memory has been written in place."""
        return len(self.versions) if self.versions is not None else 0

    @property
    def _version(self) -> int:
        if self.inference:
            raise RuntimeError("Inference tensors do not track version counter.")
        return self.version_number()

    @property
    def _base(self) -> Tensor | None:
        return self.base

    @property
    def _backward_hooks(self) -> Any:
        return self.hooks

    @_backward_hooks.deleter
    def _backward_hooks(self) -> None:
        raise RuntimeError("Deletion of _backwards_hooks not allowed!")

    @_backward_hooks.setter
    def _backward_hooks(self, hooks: object) -> None:
        if hooks is not None and not isinstance(hooks, dict):
            raise TypeError(f"_backward_hooks must be a dict or None, not {type(hooks).__name__}")
        if self.is_leaf:  # the hooks of a result are on its node
            self.hooks = hooks

    @property
    def volatile(self) -> bool:
        """Always False: PyTorch replaced it by grad mode."""
        warnings.warn(_VOLATILE, UserWarning, stacklevel=users_level())
        return False

    @volatile.setter
    def volatile(self, value: object) -> None:
        warnings.warn(_VOLATILE, UserWarning, stacklevel=users_level())

    def _is_view(self) -> bool:
        return self.base is not None

    def detach(self) -> Tensor:
        """A tensor without a graph that shares memory and version counter."""
        out = self._alias()
        out.versions = self.shared_versions()
        if self.inference:
            out.inference = self.inference if modes.current().inference else 1
        return out

    def _alias(self) -> Tensor:
        """A tensor without a graph over the same memory."""
        out = wrap(self.memory())
        if modes.differentiating:
            out.born, out.shows = self.made_at(), self.shows
        return out

    def is_captured(self, since: int) -> bool:
        """Whether the transform opened at a tick has not made the tensor, nor got it as an argument."""
        tensor = self
        while (shows := tensor.shows) is not None and shows.since > since:
            tensor = shows.tensor  # to those around a transform its arguments are what was passed
        return (tensor.made_at() if shows is None else shows.since) < since

    def made_at(self) -> int:
        """The tick at which the tensor, or its base, was made; 0 if no transform was open then."""
        whole = self if self.base is None else self.base
        node = whole.node
        maker = node.node if isinstance(node, Port) else node
        return max(whole.born, 0 if maker is None or maker is LAZY else maker._seq)

    def detach_(self) -> Tensor:
        """Remove this tensor from its graph, in place; RuntimeError for a view."""
        if self.base is not None:
            raise RuntimeError(_DETACH_VIEW)
        if not self.is_leaf:  # nodes that saved it as their result have to notice
            self.detached = versions.forget()
        if modes.differentiating:
            self.born = self.made_at()
        self.node, self.retained, self.tangents = None, False, None
        return self

    @property
    def data(self) -> Tensor:
        """A tensor without a graph over the same memory, with a separate version counter."""
        if isinstance(self.array, BatchedArray):
            raise RuntimeError("accessing `data` under vmap transform is not allowed")
        return self._alias()

    @data.deleter
    def data(self) -> None:
        raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")

    @data.setter
    def data(self, value: object) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
        if self.node is not None and value.array.dtype not in dtypes.DIFFERENTIABLE:
            raise RuntimeError(
                "data set to a tensor that requires gradients must be floating point or complex "
                "dtype"
            )
        self.array = value.memory()
        leaf, made = self.accumulates(), self._made()
        if leaf is not None:
            leaf._meta = meta(self.array.shape, self.array.dtype)
        if (
            made is not None
        ):  # the Meta of that shape is shared with other nodes: this one gets another
            made._meta = Meta(made._meta.shape, made._meta.dtype)

    def data_ptr(self) -> int:
        """The address of the first element."""
        if isinstance(self.array, BatchedArray):
            raise RuntimeError(NO_STORAGE)
        return address(self.memory())

    def storage_offset(self) -> int:
        """Elements between the start of the memory and the first element."""
        start = address(memory_of(self.memory()))
        return (address(self.memory()) - start) // int(self.array.dtype.itemsize)

    # -- shape and dtype --------------------------------------------------------------------------
    @property
    def shape(self) -> Size:
        """The size of each dimension."""
        return _tuple(Size, self.array.shape)

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the size of one dimension."""
        if dim is None:
            return size_of(self.array.shape)
        return self.array.shape[sized_dim(dim, self.array.ndim)]

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return int(self.array.ndim)

    def dim(self) -> int:
        """The number of dimensions."""
        return int(self.array.ndim)

    ndimension = dim

    def is_neg(self) -> bool:
        """False: nothing is negated lazily."""
        return False

    def numel(self) -> int:
        """The number of elements."""
        return int(self.array.size)

    nelement = numel

    def stride(self, dim: int | None = None) -> Any:
        """Elements to step for the next index of each dimension."""
        a = self.memory()
        strides = element_strides(a)
        return strides if dim is None else strides[sized_dim(dim, a.ndim)]

    def is_contiguous(self, *, memory_format: object = "contiguous_format") -> bool:
        """True if the elements lie in order without gaps: row-major, or as `memory_format` says."""
        array = self.memory()
        if memory_format == "contiguous_format":
            return bool(array.flags.c_contiguous)
        from gradcli.engine.core.device import memory_format as Format

        if not isinstance(memory_format, Format):
            raise TypeError(
                "is_contiguous(): argument 'memory_format' must be torch.memory_format, not "
                f"{type(memory_format).__name__}"
            )
        return follows(array, str(memory_format).removeprefix("torch."))

    @property
    def dtype(self) -> dtypes.dtype:
        """The type of the elements."""
        return dtypes.of(self.array.dtype)

    @property
    def device(self) -> Any:
        """Always the CPU."""
        from gradcli.engine.core.device import cpu

        return cpu

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return int(self.array.dtype.itemsize)

    def element_size(self) -> int:
        """Bytes per element."""
        return int(self.array.dtype.itemsize)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return int(self.array.nbytes)

    def is_floating_point(self) -> bool:
        """True for the real floating dtypes."""
        return self.array.dtype.kind == "f"

    def is_complex(self) -> bool:
        """True for the complex dtypes."""
        return self.array.dtype.kind == "c"

    def is_signed(self) -> bool:
        """True if the dtype has negative numbers."""
        return self.array.dtype.kind in "ifc"

    def is_inference(self) -> bool:
        """True for tensors made in inference mode."""
        return bool(self.inference)

    @property
    def layout(self) -> Any:
        """Always `strided`."""
        from gradcli.engine.core.device import strided

        return strided

    is_cpu = True
    is_cuda = is_mps = is_xpu = is_meta = is_sparse = is_nested = is_quantized = is_mkldnn = False

    def is_pinned(self) -> bool:
        """False: there is no device to copy to."""
        return False

    def is_shared(self) -> bool:
        """False: no other process sees the memory."""
        return False

    def cpu(self) -> Tensor:
        """The tensor itself: there is no other device."""
        return self

    def is_set_to(self, other: Tensor) -> bool:
        """True if both have the same memory, offset, shape and strides."""
        same = self.data_ptr() == other.data_ptr() and self.shape == other.shape
        return bool(same and self.stride() == other.stride())

    def is_same_size(self, other: Tensor) -> bool:
        """True if the shapes are equal."""
        return self.shape == other.shape

    # -- values -----------------------------------------------------------------------------------
    def item(self) -> Any:
        """The one element as a Python number."""
        if self.array.size != 1:
            raise RuntimeError(
                f"a Tensor with {self.array.size} elements cannot be converted to Scalar"
            )
        if self.node is not None:
            modes.note_left("item", 1)
        return self.array.item()

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers."""
        if self.node is not None:
            modes.note_left("tolist", 1)
        budget.items(self.array.size)
        return self.array.tolist()

    def _tangents_at_work(self) -> list[Tensor]:
        """The tangents in the open levels of forward mode, the innermost first."""
        own = self.tangents
        return [own[level] for level in modes.forward_levels() if level in own] if own else []

    def numpy(self, *, force: bool = False) -> Any:
        """A NumPy array over the same memory; RuntimeError if autograd would lose track (force: allow)."""
        if self.node is not None and not force and modes.is_grad_enabled():
            from gradcli.engine.core.errors import NoNumpyError

            raise NoNumpyError
        if isinstance(self.array, BatchedArray) or (
            self._tangents_at_work() and modes.transforms.get()
        ):
            raise RuntimeError(NO_STORAGE)
        array = self.memory()  # an array of a trace may raise here: it has no numbers
        if getattr(self, "conjugated", False) and not force:
            raise RuntimeError(
                "Can't call numpy() on Tensor that has conjugate bit set. Use "
                "tensor.resolve_conj().numpy() instead."
            )
        return array if isinstance(array, np.ndarray) else np.asarray(array)

    def __array__(self, dtype: DType | None = None, copy: bool | None = None) -> Any:
        array = self.numpy()
        if dtype is not None:
            array = array.astype(dtype, copy=False)
        return array.copy() if copy else array

    def _number(self) -> Any:
        if self.array.size != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        if self.node is not None:
            modes.note_left("float", 2)
        return self.array.item()

    def __float__(self) -> float:
        if self.node is not None and self.array.size == 1:
            warnings.warn(_TO_SCALAR, UserWarning, stacklevel=users_level())
        value = self._number()
        if isinstance(value, complex) and value.imag:
            raise RuntimeError("value cannot be converted to type double without overflow")
        return float(value.real)

    def __int__(self) -> int:
        value = self._number()
        if isinstance(value, complex):
            if value.imag:
                raise RuntimeError("value cannot be converted to type int64_t without overflow")
            value = value.real
        return int(value)

    def __complex__(self) -> complex:
        if self.node is not None and self.array.size == 1:
            warnings.warn(_TO_SCALAR, UserWarning, stacklevel=users_level())
        return complex(self._number())

    def __index__(self) -> int:
        if self.array.size != 1 or self.array.dtype.kind not in "biu":
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.array.item())

    def __bool__(self) -> bool:
        if self.array.size == 1:
            return bool(self.array)
        from gradcli.engine.core.errors import AmbiguousTruthError

        raise AmbiguousTruthError(self.array.size)

    def __reversed__(self) -> Tensor:
        reversed_: Tensor = self.flip(0) if self.array.ndim else self
        return reversed_

    def __dlpack__(
        self,
        *,
        stream: object = -1,
        max_version: Any = None,
        dl_device: Any = None,
        copy: bool | None = None,
    ) -> Any:
        """A DLPack capsule over the tensor's memory, as NumPy makes it."""
        from gradcli.engine.core.device import used

        if self.requires_grad:
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        if getattr(self, "conjugated", False):
            raise BufferError("Can't export tensors with the conjugate bit set")
        if stream not in (None, -1):
            if not isinstance(stream, int):
                raise TypeError("stream must be ``int`` or ``none``")
            raise AssertionError("stream should be None on cpu.")
        if dl_device is not None and int(dl_device[0]) != _DLPACK_CPU[0]:
            used("cuda")
        array = self.memory()
        asked = {"max_version": max_version, "copy": copy}
        return array.__dlpack__(
            **{name: value for name, value in asked.items() if value is not None}
        )

    def __dlpack_device__(self) -> tuple[int, int]:
        return _DLPACK_CPU

    def __len__(self) -> int:
        if self.array.ndim == 0:
            raise TypeError("len() of a 0-d tensor")
        return int(self.array.shape[0])

    def __iter__(self) -> Iterator[Tensor]:
        if self.array.ndim == 0:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __contains__(self, element: object) -> bool:
        if not isinstance(element, (Tensor, int, float, complex)):
            raise RuntimeError(
                "Tensor.__contains__ only supports Tensor or scalar, but you passed in a "
                f"{type(element)}."
            )
        found: Any = self == element
        return bool(found.any())

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self, *, tensor_contents: object | None = None) -> str:
        from gradcli.engine.core.printing import tensor_text

        if isinstance(self.array, BatchedArray):
            return self.array.show(lambda array: repr(wrap(array)))
        prefix = "tensor" if type(self) is Tensor else type(self).__name__
        return tensor_text(
            self.array,
            prefix=prefix,
            default_dtype=dtypes.default.real,
            suffixes=self._printed_facts(),
        )

    def _repr_html_(self) -> str | None:
        """The numbers as a table, in a notebook; None of a scalar, whose text says it all."""
        from gradcli.engine.core.printing import array_html

        if type(self.array) is not np.ndarray or not self.array.ndim:
            return None
        return array_html(self.array, self._printed_facts())

    def _printed_facts(self) -> list[str]:
        """What is printed behind the numbers."""
        suffixes = []
        try:
            node = None if self.is_leaf else self.grad_fn
            name = "" if node is None else type(node).__name__
        except RuntimeError:  # a view that was written against the rules
            name = "Invalid"
        if name:
            suffixes.append(f"grad_fn=<{name}>")
        elif self.node is not None:
            suffixes.append("requires_grad=True")
        return suffixes + [f"tangent={t}" for t in self._tangents_at_work()]

    def __format__(self, spec: str) -> str:
        if self.array.ndim == 0 and type(self) is Tensor:
            return format(self.array.item(), spec)
        return object.__format__(self, spec)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
                "protocol at the moment.  If you were attempting to deepcopy a module, this may be "
                "because of a torch.nn.utils.weight_norm usage, see "
                "https://github.com/pytorch/pytorch/pull/103001"
            )
        if id(self) in memo:
            return memo[id(self)]
        out = wrap(copied(self.array), self.requires_grad)
        memo[id(self)] = out
        if self._grad is not None:
            out._grad = self._grad.__deepcopy__(memo)
        return out

    def __reduce__(self) -> Any:
        return _rebuild, (np.asarray(self.array), self.requires_grad)

    # -- the table --------------------------------------------------------------------------------
    # The table adds methods and operators; a real `__getattr__` would slow all attributes.
    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...
        def __getitem__(self, index: object) -> Tensor: ...
        def __add__(self, other: Any) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __eq__(self, other: Any) -> Any: ...
        def __ne__(self, other: Any) -> Any: ...

        __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __add__
        __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __add__
        __matmul__ = __rmatmul__ = __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = (
            __add__
        )
        __lt__ = __le__ = __gt__ = __ge__ = __add__
        __invert__ = __abs__ = __neg__

    def __array_wrap__(
        self, array: Array, context: object | None = None, scalar: bool = False
    ) -> Tensor:
        dtypes.of(array.dtype)  # raises for a dtype that no tensor has
        return wrap(array)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *args: Any, **kwargs: Any) -> Any:
        if method == "__call__" and not kwargs:
            # Python's operators arrive here too: `np.float64(2) * tensor` calls the ufunc.
            operator = any(isinstance(a, np.generic) for a in args)
            if (primitive := _row_of(ufunc, args, operator)) is not None:
                # A constant matrix, `A @ x`, is then one of the trace too.
                wrapped = args if modes.current().rules else map(as_operand, args)
                return primitive(*wrapped)
        if any(isinstance(out, Tensor) for out in kwargs.get("out", ())):
            raise TypeError("return arrays must be of ArrayType")
        if method == "at" and isinstance(args[0], Tensor):
            raise TypeError("first operand must be array")
        given = [np.asarray(a) if isinstance(a, Tensor) else a for a in args]
        named = {k: np.asarray(v) if isinstance(v, Tensor) else v for k, v in kwargs.items()}
        found = getattr(ufunc, method)(*given, **named)
        if found is None or "out" in kwargs or method == "outer":
            return found
        if isinstance(found, tuple):
            return tuple([self.__array_wrap__(np.asarray(f)) for f in found])
        return self.__array_wrap__(np.asarray(found))

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        primitive = _row_of(function, (args, kwargs), function in _METHODS)
        if primitive is not None:
            try:
                if not modes.current().rules:  # the matrix of np.einsum("ij,j", A, x)
                    args = tuple([as_operand(a) for a in args])
                return primitive(*args, **kwargs)
            except TypeError:  # arguments that only NumPy takes
                if modes.current().rules:
                    raise
        before, _numpy.answers = _numpy.answers, True
        try:
            return function._implementation(*args, **kwargs)
        except (RuntimeError, TypeError) as error:
            from gradcli.engine.core.errors import NoNumpyError

            # The inner function that failed is not the one that was called.
            if before or not (isinstance(error, NoNumpyError) or function in _OTHER_OPTIONS):
                raise
            name = f"{function.__module__}.{function.__name__}"
            raise NoNumpyError(name.removeprefix("numpy.")) from error
        finally:
            _numpy.answers = before


# PyTorch's signature has no annotations.
Tensor.backward.__annotations__.clear()


def as_operand(value: Any) -> Any:
    """An array of NumPy's as a tensor: what is called may want its methods."""
    if type(value) is np.ndarray and value.dtype.kind in "biufc":
        return wrap(dtypes.native(value))
    return value


def _row_of(function: Callable[..., Any], arguments: Any, ours: bool) -> Any:
    """The function of tensors that replaces a NumPy function; None if NumPy shall compute.

    With PyTorch's tensors, NumPy computes on `__array__`. It is replaced in VJP rules, on tensors that are
    recorded, batched or carry tangents (unless another NumPy function calls it), and if `ours`.
    """
    state = modes.local.state
    rule = state is not None and state.rules
    if not (rule or ours or (not _numpy.answers and _withheld(arguments))):
        return None
    if not rule and outside is not None and (found := outside(function)) is not None:
        return found
    found = NUMPY.get(function)
    if found is None and meaning is not None:
        found = meaning(function)
    if found is None and rule:
        raise TypeError(
            f"a rule calls {function.__name__} of NumPy's, which means nothing on tensors"
        )
    return found


def _withheld(value: object) -> bool:
    """Whether a tensor among the arguments is recorded, traced or batched, or carries a tangent."""
    if isinstance(value, Tensor):
        kept = value.node is not None and modes.is_grad_enabled()
        if kept or value._tangents_at_work():
            return True
        return isinstance(value.array, Numberless) or not isinstance(value.array, ARRAYS)
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return False
    return any(map(_withheld, value))


class _Numpy(threading.local):
    answers = False  # a NumPy function is running and may call others


_numpy = _Numpy()

# NumPy calls the method of the same name with `axis`, which a tensor's method would not take.
_METHODS = frozenset([np.sum, np.prod, np.mean, np.max, np.min, np.any, np.all, np.amax, np.amin])

# NumPy calls the method with options that a tensor's has not: `ddof`.
_OTHER_OPTIONS = frozenset([np.var, np.std])

# NumPy function -> function of tensors, so that VJP rules can be written with NumPy. The operator table
# fills it; its `meaning` finds functions of families that are not imported yet.
NUMPY: dict[Any, Callable[..., Any]] = {}
meaning: Callable[[Any], Any] | None = None


class _Arrays:
    """Objects that hold tensors and are NumPy's arrays to a function: `followed_arrays` of the operators."""

    holds: Callable[[Any], bool] | None = None  # whether one is among values; None: there are none
    into: Callable[[Any], Any]  # values with tensors in their place
    back: Callable[[Any], Any]  # tensors, nested as they are, as such objects


arrays = _Arrays()
# What is not for rules: functions of tensors that take NumPy's arguments, `axis` and `ddof`.
outside: Callable[[Any], Any] | None = None

_CTYPES = {
    **{"float64": "double", "float32": "float", "float16": "c10::Half", "int64": "long int"},
    **{"int32": "int", "int16": "short int", "int8": "signed char", "uint8": "unsigned char"},
    **{"complex64": "c10::complex<float>", "complex128": "c10::complex<double>"},
}
_NOT_A_LEAF = (
    "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad "
    "attribute won't be populated during autograd.backward(). If you indeed want the .grad field to "
    "be populated for a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. If you access "
    "the non-leaf Tensor by mistake, make sure you access the leaf Tensor instead. See "
    "github.com/pytorch/pytorch/pull/30531 for more information."
)
_IN_TRANSFORM = (
    "You are attempting to call Tensor.requires_grad_() (or perhaps using torch.autograd.functional.* "
    "APIs) inside of a function being transformed by a functorch transform. This is unsupported, "
    "please attempt to use the functorch transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call "
    "requires_grad_() outside of a function being transformed instead."
)
_VOLATILE = "volatile was removed (Variable.volatile is always False)"
_TO_SCALAR = (
    "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
    "Consider using tensor.detach() first."
)
_DETACH_VIEW = (
    "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel "
    "(DDP) for training, and gradient_as_bucket_view is set as True, gradients are views of DDP "
    "buckets, and hence detach_() cannot be called on these gradients. To fix this error, please "
    "refer to the Optimizer.zero_grad() function in torch/optim/optimizer.py as the solution."
)


def _rebuild(array: Array, requires_grad: bool) -> Tensor:
    return wrap(array, requires_grad)


def wrap(array: Any, requires_grad: bool = False) -> Tensor:
    """A tensor over a NumPy array or scalar, without a copy: whatever comes from outside comes this way."""
    out = new(Tensor)
    if type(array) is ndarray and _own_kind(kind := array.dtype, kind) is not kind:
        array = dtypes.own(array)
    out.array = array
    out.node = LAZY if requires_grad else None
    if modes.differentiating:
        out.born = versions.tick()
    return out


def retain_anew(tensor: Tensor) -> None:
    """Keep a tensor's gradient, if it was kept, at the node that the tensor has now."""
    if tensor.retained:
        tensor.retained = False
        tensor.retain_grad()


def edge(tensor: Tensor | Scalar) -> Any:
    """The Node or Port that a tensor's gradient goes to; None if it does not require grad."""
    node = tensor.node
    if node is not LAZY:
        return node
    assert isinstance(tensor, Tensor)
    if tensor.stale:
        return tensor.regenerate()
    if tensor.is_lazy_view:
        return None
    found = tensor.accumulates()
    if found is None:
        found = accumulator(tensor)
        tensor.accumulates = ref(found)
    return found


def inference_error() -> RuntimeError:
    """PyTorch's error for an inference tensor that a graph would have to save."""
    return RuntimeError(
        "Inference tensors cannot be saved for backward. Please do not use Tensors created in "
        "inference mode in computation tracked by autograd. To work around this, you can make a "
        "clone to get a normal tensor and use it in autograd, or use `torch.no_grad()` instead of "
        "`torch.inference_mode()`."
    )


def link_result(node: Node | Port, versions: Versions) -> None:
    """Tell a node that the memory of its result now has a version counter."""
    nr = 0
    if type(node) is Port:
        nr, node = node.nr, node.node
    assert isinstance(node, Node)
    if node._saved and node._primitive is not None and nr in node._primitive.saved_results:
        if node._written is None:
            node._written = {}
        node._written[nr] = versions


_pruning = locks.lock()


class Views:
    """Weak references to the views of a base."""

    __slots__ = ("limit", "refs")

    def __init__(self) -> None:
        self.refs: list[ref[Tensor]] = []
        self.limit = 16

    def add(self, view: Tensor) -> None:
        """Add a view; from time to time remove those that were freed."""
        refs = self.refs
        refs.append(ref(view))
        if len(refs) > self.limit and _pruning.acquire(blocking=False):
            try:  # in place, and no further than counted: another thread may be adding
                known = len(refs)
                refs[:known] = [r for r in refs[:known] if r() is not None]
                self.limit = 16 + 2 * len(refs)
            finally:
                _pruning.release()

    def alive(self) -> list[Tensor]:
        """The views that still exist."""
        return [v for r in self.refs if (v := r()) is not None]


def track(out: Tensor, source: Tensor) -> Tensor:
    """Make `out` a view of `source`, or of what that is a view of; returns the base.

    Views of inference tensors are not tracked.
    """
    if source.inference:
        out.inference, out.versions = 1, source.shared_versions()
        return source
    base = source.base
    if base is None:
        base = source
    out.base = base
    if modes.differentiating:
        out.shows = source.shows
    out.versions = source.versions or source.shared_versions()
    if source.creation:
        out.creation = source.creation
    if base.views is None:
        base.views = views_of(out)
    base.views.add(out)
    return base


def views_of(tensor: Tensor) -> Views:
    """The views of a tensor's memory: one list, shared with tensors detached from the base."""
    counter = tensor.shared_versions()
    if counter.views is None:
        counter.views = Views()
    return counter.views


def track_view(out: Tensor, source: Tensor, many: bool, state: Any) -> Tensor:
    """As `track`, in any grad mode and for primitives that return many views; returns `out`."""
    base = track(out, source)
    if state is not None and state.inference:
        out.creation = "inference"
    elif many:
        out.creation = "many" if state is None or state.enabled else "no_grad"
    elif state is not None and not state.enabled:
        out.creation = "no_grad"
    if base.node is not None and out.base is not None:
        link_lazily(out)
    return out


def link_lazily(view: Tensor) -> None:
    """Make a view without a node require grad if its base comes to do so."""
    base = view.base
    if base is None:  # a view of an inference tensor
        return
    if view.node is None or (view.node is LAZY and view.is_lazy_view and not view.stale):
        view.is_lazy_view = base.node is not None and view.array.dtype in dtypes.DIFFERENTIABLE
        view.node = LAZY if view.is_lazy_view else None
        view.__dict__.pop("accumulates", None)


class Shown(NamedTuple):
    """What an argument of a transform shows: the tensor that was passed.

    since: when the transform was opened. enter, leave: of one in a batch, what shows the tensor as it is
    now, and what the tensor is after the argument was written.
    """

    tensor: Tensor
    since: int
    enter: Callable[[], Tensor] | None = None
    leave: Callable[[Tensor], Tensor] | None = None


class Scalar:
    """A Python number as an operand; its array has the dtype to compute in."""

    __slots__ = ("array", "value")
    node = shows = None
    wrapped = True
    inference = False

    def __init__(self, array: Array, value: object) -> None:
        self.array, self.value = array, value

    def tensor(self) -> Tensor:
        """The number as PyTorch saves it: a 0-d tensor of the number's dtype, before promotion."""
        value = self.value
        kind: Any = np.float64 if type(value) is float else np.complex128
        if not isinstance(value, (float, complex)):
            kind = dtypes.number_dtype(value)
        out = wrap(np.asarray(value, kind))
        out.wrapped = True
        return out


_SCALARS: dict[Any, Scalar] = {}


def scalar(value: object, like: Tensor | None) -> Scalar:
    """A Python number as an operand beside the tensor `like`.

    A number of the same or a lower category takes the tensor's dtype, by PyTorch's promotion.
    """
    if like is None:
        return Scalar(np.asarray(value, dtypes.number_dtype(value)), value)
    array = like.array
    flat = type(array) is np.ndarray
    key = (value, value.__class__, array.dtype, flat, dtypes.default.real)
    found = _SCALARS.get(key)
    if found is None:
        own = dtypes.number_dtype(value)
        rank = "biufc"
        fits = rank.index(array.dtype.kind) >= rank.index(own.kind)
        wanted = array.dtype if fits else own
        if wanted.itemsize == 2 and wanted.kind == "f":  # PyTorch rounds the result, not the number
            wanted = np.dtype(np.float32)
        constant = dtypes.constant(value, wanted)
        found = Scalar(np.asarray(constant) if flat else constant, value)
        # 0.0 and -0.0 are equal keys but different numbers; NaN equals no key.
        if value and value == value and len(_SCALARS) < 10_000:
            _SCALARS[key] = found
    return found


def wrap_dim(dim: Any, ndim: int) -> int:
    """A dim, made nonnegative; IndexError, in PyTorch's words, if it is out of range."""
    n = max(ndim, 1)
    if not -n <= dim < n:
        from gradcli.engine.core.errors import DimensionRangeError

        raise DimensionRangeError(dim, n)
    return int(dim) % n


def sized_dim(dim: int | Sequence[int] | None, ndim: int) -> int:
    """As `wrap_dim`, but a 0-d tensor has no dim at all."""
    if not ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return wrap_dim(dim, ndim)

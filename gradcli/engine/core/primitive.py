"""A primitive of the operator table: a kernel, a node, and the rules that differentiate it.

A rule's *name* is the differentiable argument, its *parameters* are what must be saved, as in
PyTorch's derivatives.yaml: a tensor argument, `result` (or the name of an output),
`NAME_sym_sizes`, or an option of the kernel. It is a function of the gradient and of these, or a primitive
whose further arguments are called so; `itself` in the primitive of a map that is linear in its first
argument, and transposed by itself. From that the primitive derives everything else: what a call
saves and when, the node's `_saved_*` fields, the backward functions on arrays and on recorded
tensors.

A primitive may be called with tensors (recorded), with plain arrays (the kernel runs) or with any object
whose class has `__operator__` (recorded arrays), so that rules may call primitives and run on all of them.
"""

from __future__ import annotations

import functools
import operator as op
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.engine.core import batched_arrays, generated_calls, generated_rules, modes, versions
from gradcli.engine.core.anomaly import remember
from gradcli.engine.core.batched_arrays import BatchedArray, is_batched
from gradcli.engine.core.declaration import (
    NOT_IMPLEMENTED,
    Declaration,
    said,
    sample_calls,
)
from gradcli.engine.core.node import (
    FREED,
    Node,
    Port,
    Wide,
    Written,
    freed_error,
    layout,
    node_class,
)
from gradcli.engine.core.promotion import HALF, SINGLE, mismatch, promote, raw, shape_error
from gradcli.engine.core.saved_tensors import Packed, Saved, pack
from gradcli.engine.core.switch import watching
from gradcli.engine.core.tensor import NUMPY, Scalar, Tensor, edge, scalar, track_view, wrap
from gradcli.engine.core.version_checks import check_versions, stale_fields
from gradcli.engine.system import dtypes
from gradcli.engine.system.array_memory import ARRAYS, as_operands
from gradcli.engine.system.dtypes import scalar_name
from gradcli.engine.system.threads import applied

if TYPE_CHECKING:
    from gradcli.engine.core.declaration import Value
    from gradcli.engine.system.dtypes import DType

_NUMBERS = frozenset([int, float, complex, bool])
_REQUIRED: Any = object()
# Classes of arguments that are neither tensors nor run operators themselves.
_USUAL = frozenset([*_NUMBERS, np.ndarray, np.float64, np.float32, tuple, str, type(None)])
_OPERANDS = (*ARRAYS, BatchedArray)


@functools.cache  # an import takes as long as a small operation
def _batching() -> Any:
    from gradcli.engine.core import batching_rules

    return batching_rules


class Primitive(Declaration):
    """One operator: see the module's docstring; made by the decorator `primitive`."""

    # -- calling ----------------------------------------------------------------------------------
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if args and args[0].__class__ is Tensor:
            return self.call(*args, **kwargs)
        if not kwargs and isinstance(args[0], ARRAYS):
            for a in args:
                if a.__class__ not in _USUAL and (
                    isinstance(a, Tensor) or hasattr(a, "__operator__")
                ):
                    break
            else:  # a rule on arrays
                return self.run(list(args)) if len(args) == len(self.names) else self.kernel(*args)
        return self.call(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        """As a declaration; functions are made of the rules on first use."""
        make: Any = _MADE.get(name)
        if make is None:
            return super().__getattr__(name)
        made = make(self)
        setattr(self, name, made)
        return made

    def _node_type(self) -> type[Node]:
        if not self.node:
            return Node  # nothing is recorded
        kept = len(self.saved_fields), len(self.option_fields)
        base = layout(len(self.differentiated), *kept) if self.flat else Wide
        return node_class(self, self.node, _NODE_BASES.get(self.node, base))

    def __reduce__(self) -> str:
        """Its name in its module, where a process that it is sent to finds it."""
        return self.place

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The arguments in the order of the parameters; TypeError in PyTorch's words."""
        names, title = self.names, self.public_name
        values = list(args)
        positional = len(names) - self.keyword_only
        if len(values) > positional:
            s = "" if positional == 1 else "s"
            raise TypeError(
                f"{title}() takes {positional} positional argument{s} but {len(values)} were given"
            )
        for n in names[len(values) :]:
            key = "input" if n == "self" and "input" in kwargs else n
            if key in kwargs:
                values.append(kwargs.pop(key))
            elif (default := self.defaults.get(n, _REQUIRED)) is _REQUIRED:
                raise TypeError(
                    f"{title}() missing 1 required positional arguments: "
                    f'"{"input" if n == "self" else n}"'
                )
            else:
                values.append(default)
        for n in kwargs:
            raise TypeError(f"{title}() got an unexpected keyword argument '{n}'")
        return values

    def call_any(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The call in full: any operands, any state of the thread."""
        if "out" in kwargs and "out" not in self.position:
            from gradcli.engine.core.out_argument import into

            return into(self.public_name, kwargs.pop("out"), self.call, args, kwargs)
        bound = kwargs or self.keyword_only or len(args) != len(self.names)
        return self.call_in_order(self.bind(args, kwargs) if bound else list(args), len(args))

    def call_in_order(self, given: Sequence[Any], positional: int = 0) -> Any:
        """As `call_any`, with a value for every parameter, in their order.

        positional: how many a caller gave by position, as messages say it.
        """
        values = list(given)
        for i in self.whole:
            if type(values[i]) is not int:
                values[i] = self._integer(i, values[i], i < positional)
        state = modes.local.state
        like = None
        arrays_only = True
        as_they_are = True  # operands are tensors, or left out
        numbers: list[int] = []
        for i in self.tensors:
            value = values[i]
            if value.__class__ is Tensor:
                arrays_only = False
                like = value if like is None else like
            elif value is None and self.kinds[i] == "optional":
                continue
            elif self.kinds[i] == "list":
                as_they_are = False
                if not isinstance(value, (list, tuple)):
                    raise self.type_error(i, value, "tuple of Tensors")
                for k, v in enumerate(value):
                    if isinstance(v, Tensor):
                        arrays_only = False
                    elif hasattr(v, "__operator__"):
                        return v.__operator__(self, values)
                    elif v is not None and not isinstance(v, _OPERANDS):
                        raise TypeError(
                            f"expected Tensor as element {k} in argument {i}, but got "
                            f"{type(v).__name__}"
                        )
            elif isinstance(value, Tensor):
                arrays_only = False
                like = value if like is None else like
            elif type(value) in _NUMBERS:
                as_they_are = False
                numbers.append(i)
            elif hasattr(value, "__operator__"):
                return value.__operator__(self, values)
            elif isinstance(value, (*_OPERANDS, Scalar)):
                as_they_are = False
            else:
                raise self.type_error(i, value, "Tensor")
        if numbers and len(numbers) == len(self.tensors):
            # Functions that take numbers alone are few, and their parsers let no others pass: add(1, 2).
            first = numbers.pop(0)
            values[first] = like = wrap(scalar(values[first], None).array[()])
            arrays_only = False
        if arrays_only:
            return self.in_batch(values) if is_batched(values) else self.run(values)
        if numbers and state is not None and state.rules and self.scalar is not None:
            return self.scalar.call_in_order(values)
        for i in () if as_they_are else self.tensors:
            value = values[i]
            if self.kinds[i] == "list":
                values[i] = [
                    v if v is None or isinstance(v, Tensor) else wrap(_as_array(v)) for v in value
                ]
            elif i in numbers:
                values[i] = scalar(value, like)
            elif value is not None and not isinstance(value, (Tensor, Scalar)):
                values[i] = wrap(value)
        return self._record(values, state)

    def _integer(self, i: int, value: Any, positional: bool) -> Any:
        """An option that is an integer; TypeError for a number or text that is none."""
        if isinstance(value, (bool, float, complex, str, list, tuple)):
            where = f" (position {i + 1})" if positional else ""
            raise TypeError(
                f"{self.public_name}(): argument '{self.names[i]}'{where} must be int, not "
                f"{type(value).__name__}"
            )
        return value if value is None else op.index(value)

    def run(self, operands: list[Any]) -> Any:
        """The kernel's result on arrays and options."""
        if modes.unusual:
            state = modes.local.state
            if state is not None and state.recorder is not None:
                return state.recorder.run(self, operands)
        return self.compute(operands)

    def in_batch(self, operands: list[Any]) -> Any:
        """As `run`, where some operands are batched."""
        return _batching().run(self, operands)

    def computed(self, values: list[Any]) -> Any:
        """As `compute`, of tensors."""
        return self.compute(self.arrays(values))

    def compute(self, operands: list[Any]) -> Any:
        """As `run`, but never recorded."""
        if self.numpy is not None and self.numpy.nout == 1:
            found = applied(self.numpy, *operands)
        elif not self.keyword_only:
            found = self.kernel(*operands)
        else:
            at = len(operands) - self.keyword_only
            options = dict(zip(self.names[at:], operands[at:], strict=True))
            found = self.kernel(*operands[:at], **options)
        if self.broadcasts:
            found = as_operands(found, *[operands[i] for i in self.tensors])
        if self.wide and found.dtype is SINGLE:
            kinds = [getattr(o, "dtype", None) for o in operands[:2]]
            return found.astype(HALF) if HALF in kinds else found
        return found

    def type_error(self, i: int, value: object, wanted: str) -> TypeError:
        """The error for an operand of a type that the primitive does not take."""
        name = "input" if self.names[i] == "self" else self.names[i]
        return TypeError(
            f"{self.public_name.rstrip('_')}(): argument '{name}' (position {i + 1}) must be {wanted}, "
            f"not {type(value).__name__}"
        )

    def _record(self, values: list[Any], state: modes.State | None) -> Any:
        try:
            if is_batched(values):
                if not self.rare and (state is None or state.enabled):
                    values = self._lifted(values)
                result = self.in_batch(self.arrays(values))
            elif state is not None and state.recorder is not None:
                result = state.recorder.call(self, values)
            else:
                result = self.computed(values)
        except ValueError as error:
            raise shape_error(error, self.arrays(values)) from None
        results = (result,) if self.returns_one else tuple(result)
        if watching and self.is_watched:
            watching[-1](self, self.arrays(values), results, values)
        if self.view:
            base = values[0]
            made = [track_view(wrap(r), base, self.returns_list, state) for r in results]
        else:
            made = [wrap(r) for r in results]
        if state is None or (state.enabled and not state.inference):
            self._attach(values, made, results, state)
        if state is not None:
            if state.inference and not (self.view and not values[0].inference):
                for out in made:
                    out.inference = 1 + modes.depth()
            if state.intercept is not None:
                state.intercept(self, values, made)
        return made[0] if self.returns_one else tuple(made)

    def _lifted(self, values: list[Any]) -> list[Any]:
        """The operands, those that are recorded in all the batches that any is in.

        So that a gradient that differs from entry to entry is summed where it leaves the batch.
        """
        lift = Tensor.in_batches
        wanted = batched_arrays.batch_of(values)
        made = list(values)
        for i in self.differentiated:
            if self.kinds[i] == "list":
                made[i] = [v if v is None else lift(v, wanted) for v in values[i]]
            elif values[i] is not None:
                made[i] = lift(values[i], wanted)
        return made

    def arrays(self, values: list[Any]) -> list[Any]:
        """The arrays of operands that are tensors, promoted; NotImplementedError for a dtype not taken."""
        operands: list[Any] = []
        for value, kind in zip(values, self.kinds, strict=True):
            if kind == "list":
                operands.append([None if v is None else v.array for v in value])
            elif kind == "option" or value is None:
                operands.append(value)
            else:
                operands.append(value.array)
        if self.types is not None:
            tensors = [values[i] for i in self.tensors if values[i] is not None]
            if self.kinds[self.tensors[0]] == "list":
                lists = values[self.tensors[0]]
                operands[self.tensors[0]] = promote(self.types, *lists)
            else:
                cast = iter(promote(self.types, *tensors, wide=self.wide))
                for i in self.tensors:
                    if values[i] is not None:
                        operands[i] = next(cast)
        elif self.view:
            operands[0] = values[0].memory()
        if self.refuses:
            for i in self.tensors:
                if isinstance(operands[i], _OPERANDS) and self.is_unsupported(operands[i].dtype):
                    shapes = [o.shape for o in operands if isinstance(o, _OPERANDS)]
                    raise self.unsupported_error(operands[i].dtype, *shapes)
        return operands

    def is_unsupported(self, numpy_dtype: DType) -> bool:
        """Whether the primitive does not take a dtype."""
        kinds = self.refuses
        return numpy_dtype.kind in kinds or ("e" in kinds and numpy_dtype.char == "e")

    def unsupported_error(self, numpy_dtype: DType, *shapes: tuple[int, ...]) -> Exception:
        """The error for a dtype that the primitive does not take; of shapes that do not meet, theirs."""
        meet = len(shapes) > 1 and self.types is not None
        if meet and (error := mismatch(list(shapes))) is not None:
            return error
        half = numpy_dtype.char == "e" and "e" in self.refuses
        wanted = self.refuses["e" if half else numpy_dtype.kind]
        kind, text = wanted if isinstance(wanted, tuple) else (NotImplementedError, wanted)
        name = scalar_name(numpy_dtype)
        if " " not in text:
            text = f"\"{text}\" not implemented for '{name}'"
        return kind(text)

    def _attach(
        self, values: list[Any], made: list[Tensor], results: tuple[Any, ...], state: Any
    ) -> None:
        """Record the call: make the node and hang the outputs on it."""
        edges = self._edges(values, made)
        if edges is None:
            return
        node = self.record(values, results, edges)
        if self.differentiable == 1 and not self.returns_list:
            made[0].set_node(node)
        else:
            node._outputs = tuple((r.shape, r.dtype) for r in results)
            for nr, out in enumerate(made if self.returns_list else made[: self.differentiable]):
                if results[nr].dtype in dtypes.DIFFERENTIABLE:
                    out.set_node(Port(node, nr, results[nr].shape, results[nr].dtype))
        if state is not None:
            if state.pack:
                pack(node, self, state.pack)
            if state.anomaly:
                remember(node)

    def edge_operands(self, values: list[Any]) -> list[Any]:
        """The operand (or None) behind each edge of the node that a call makes."""
        return self._listed(values, self.differentiated)

    def _edges(self, values: list[Any], made: list[Tensor]) -> tuple[Any, ...] | None:
        """Where the gradients of a call go; None where nothing is recorded.

        RuntimeError where results of such dtypes may not be.
        """
        operands = self.edge_operands(values)
        for t in operands:
            if t is not None and t.node is not None:
                break
        else:
            return None
        if modes.inference_used and not self.copies:  # PyTorch records copies alone of such tensors
            every = self._listed(values, self.tensors)
            if all(t is None or t.inference for t in every):
                return None
        edges = tuple([None if t is None else edge(t) for t in operands])
        kinds = [
            out.array.dtype for out in (made if self.returns_list else made[: self.differentiable])
        ]
        if not (self.discrete or any(kind in dtypes.DIFFERENTIABLE for kind in kinds)):
            if self.view or self.lossy or not any(e is not None for e in edges):
                return None
            raise RuntimeError(f"Autograd not support dtype: {scalar_name(made[0])}")
        if "C" in self.refuses and any(kind.kind == "c" for kind in kinds):
            raise RuntimeError(
                f"{self.refuses['C']} does not support automatic differentiation for outputs with "
                "complex dtype."
            )
        return edges

    def _listed(self, values: list[Any], positions: tuple[int, ...]) -> list[Any]:
        """The operands at some positions, those of a list one by one."""
        kinds = self.kinds
        if "list" not in kinds:
            return [values[i] for i in positions]
        return [v for i in positions for v in (values[i] if kinds[i] == "list" else (values[i],))]

    # -- what was saved ---------------------------------------------------------------------------
    def unpack(self, node: Node, field: str, history: Node | None = None) -> Any:
        """A saved field as PyTorch shows it: tensors as tensors, results with their grad_fn.

        history: the node that results get instead of the one that made them.
        """
        if field in self.option_fields:
            return node._options[self.option_fields.index(field)]
        if node._saved is None:
            guard = self.saved_for.get(field)
            if guard is not None and self.edges_by_position(node)[guard[0]] == (None,):
                return None
            raise freed_error()
        if node._seq < versions.last:
            check_versions(node, field)
        value = self.shown(node, field, node._saved[self.saved_fields.index(field)])
        if history is not None and field in self.outputs:
            value.node = history
        return value

    def shown(self, node: Node, field: str, value: Any) -> Any:
        """A value that a node saved as a tensor, at its place in the graph."""
        if value is None or type(value) is Tensor:
            return value
        if type(value) is Scalar:
            return value.tensor()
        if type(value) is Packed:
            return value.unpack()
        if type(value) is tuple:
            return tuple(self.shown(node, field, v) for v in value)
        if isinstance(value, Tensor):
            return value
        out = wrap(value)
        nr = 0 if self.returns_list else self.outputs.index(field)
        if nr >= self.differentiable:
            return out
        if node._outputs is None:
            out.node = node
        elif value.dtype in dtypes.DIFFERENTIABLE:
            out.node = Port(node, nr, value.shape, value.dtype)
        if node._tangents is not None:
            out.tangents = node._tangents.get(nr)
        return out

    def saved_items(self, node: Node) -> Iterator[tuple[str, Any]]:
        """(field, value) of what a node saved, in alphabetical order, as PyTorch shows them."""
        written = stale_fields(node) if node._saved is not None else {}
        for field in self.saves:
            if field in self.saved_fields and node._saved is None:
                yield field, FREED
            elif field in written:
                held = (node._saved or ())[self.saved_fields.index(field)]
                yield field, Written(held, written[field])
            else:
                yield field, self._show(node, field)

    def _show(self, node: Node, field: str) -> Any:
        value = self.unpack(node, field)
        return shown_option(value) if field in _UNSIGNED else value

    def saved_names(self) -> list[str]:
        """The attributes of a node through which saved fields are read."""
        raw = [f"_raw_saved_{f}" for f in self.saved_fields]
        return [f"_saved_{f}" for f in self.saves] + raw

    def saved_attribute(self, node: Node, name: str) -> Any:
        """`node._saved_FIELD` and `node._raw_saved_FIELD`."""
        raw = name.startswith("_raw_saved_")
        field = name.removeprefix("_raw_saved_" if raw else "_saved_")
        if raw and field in self.saved_fields:
            i = self.position.get(field)
            if i is not None and self.kinds[i] == "list":
                count = len(node._saved[self.saved_fields.index(field)]) if node._saved else 0
                return tuple(Saved(node, field, k) for k in range(count))
            return Saved(node, field)
        if not raw and field in self.saves:
            return self._show(node, field)
        raise AttributeError(f"{type(node).__name__!r} object has no attribute {name!r}")

    # -- the rules --------------------------------------------------------------------------------
    def backward_on(self, node: Node, grad: Any, read: Callable[[str], Any]) -> tuple[Any, ...]:
        """The gradients of the inputs, one per edge; `read(field)` gives what the rules need."""
        edges = node._edges
        by_position = self.edges_by_position(node)
        found: dict[int, Any] = {}
        for targets, rule, needs, masked in zip(
            self.targets, self.vjps.values(), self.needs, self.masked, strict=True
        ):
            wanted = [any(e is not None for e in by_position[t]) for t in targets]
            if not any(wanted):
                continue
            args = [read(n) for n in needs]
            if masked:
                listed = self.kinds[targets[0]] == "list"
                flags = by_position[targets[0]] if listed else wanted
                args.append(tuple(e is not None and e is not False for e in flags))
            result = rule(grad, *args)
            if len(targets) == 1:
                found[targets[0]] = result
            else:
                found.update(zip(targets, result, strict=True))
        grads: list[Any] = []
        for t in self.differentiated:
            value = found.get(t)
            if self.kinds[t] == "list":
                count = len(by_position[t])
                grads += [None] * count if value is None else list(value)
            else:
                grads.append(value)
        return tuple(g if e is not None else None for g, e in zip(grads, edges, strict=True))

    def edges_by_position(self, node: Node) -> dict[int, tuple[Any, ...]]:
        """The edges of a node, by the operand that each is of: one, or those of a list."""
        edges = node._edges
        lists = [t for t in self.differentiated if self.kinds[t] == "list"]
        spare = len(edges) - (len(self.differentiated) - len(lists))
        by_position: dict[int, tuple[Any, ...]] = {}
        at = 0
        for t in self.differentiated:
            n = spare // len(lists) if t in lists else 1
            by_position[t] = edges[at : at + n]
            at += n
        return by_position

    def backward_read(self, node: Node, grad: Value) -> tuple[Any, ...]:
        """As `backward`, of any primitive, and where saved tensors went through hooks."""
        if node._saved is None:
            raise freed_error()
        return self.backward_on(node, grad, lambda f: raw(self.unpack(node, f)))

    def backward_recorded(
        self, node: Node, grad: Value, history: Node | None = None
    ) -> tuple[Any, ...]:
        """As `backward`, on tensors: the same rules, recorded.

        history: the node of the saved results, where the operation wrote through a view.
        """
        before = modes.change(rules=True)
        try:
            return self.backward_on(node, grad, lambda f: self.unpack(node, f, history))
        finally:
            modes.restore(before)

    def __repr__(self) -> str:
        return f"<operator {self.name}>"


class NotImplementedNode(Wide):
    """The node of an operation without a derivative: refuses to run backward."""

    __slots__ = ()

    def name(self) -> str:
        return "torch::autograd::NotImplemented"

    def apply(self, grad: Value) -> Any:
        assert self._primitive is not None
        title = self._primitive.public_name
        # What exists in place alone PyTorch records by hand, and names without its namespace.
        title = title if title.endswith("_") else f"aten::{title}"
        raise RuntimeError(f"derivative for {title} is not implemented")

    apply_recorded = apply

    def push(self, grad: Value, retain: bool) -> None:
        self.apply(grad)


_NODE_BASES = {NOT_IMPLEMENTED: NotImplementedNode}


# What is made of a primitive when it is first asked for.
_MADE = {
    "node_type": Primitive._node_type,
    "call": generated_calls.call,
    "record": generated_calls.record,
    "backward": generated_rules.backward,
}


def _as_array(value: object) -> Any:
    return value if isinstance(value, BatchedArray) else np.asarray(value)


# Fields that PyTorch keeps as 64-bit integers and shows unsigned.
_UNSIGNED = frozenset(
    [
        *("dim", "dims", "dim0", "dim1", "dim2", "index", "start", "end", "step", "diagonal"),
        *("offset", "shifts", "size", "repeats", "storage_offset", "stride", "padding_idx"),
        *("ignore_index", "pad", "k", "dimension"),
    ]
)


def shown_option(value: object) -> Any:
    """A saved option as PyTorch shows it: negative integers as unsigned 64-bit ones."""
    if type(value) is int and value < 0:
        return value + 2**64
    if type(value) is tuple:
        return tuple(shown_option(v) for v in value)
    return value


VjpRules = Any  # a primitive, which is the class of its rules to a type checker


PRIMITIVES: list[Primitive] = []  # of the modules imported so far


def primitive(
    facts: str = "",
    *,
    kernel: Callable[..., Any] | None = None,
    node: str | None = None,
    **more: Any,
) -> Callable[[type], Primitive]:
    """Decorate a class of VJP rules: define the primitive of its name, which functions may record.

    facts: in words, as `"linear view"`: a word is a fact that is true, or a value of `linearity`, `types`,
    `writes` or `batching` (where elementwise is "pointwise", as PyTorch says). kernel: the function on
    arrays; None if the class has it, as `forward`. node: the name of the node's class, None where nothing
    is recorded. more: other facts (see `core.declaration.Facts`), and what `defined` takes.
    """
    return lambda rules: defined(rules, kernel, node, **said(facts) | more)


def defined(
    rules: type,
    kernel: Callable[..., Any] | None,
    node: str | None,
    *,
    name: str | None = None,
    samples: str | Iterable[str] = (),
    numpy: Any = None,
    scalar_of: Primitive | None = None,
    analytic: bool | None = None,
    **facts: Any,
) -> Primitive:
    """The primitive that a class of VJP rules defines.

    name: in messages, if it is not the class's. samples: calls in the language, for tests and
    documentation. numpy: the NumPy function that it replaces in VJP rules. scalar_of: the primitive
    instead of which this one is recorded when rules multiply by a Python number. analytic: whether it is
    complex-differentiable; default: if it is linear or bilinear.
    """
    found: dict[str, Any] = {
        n: f for n, f in vars(rules).items() if isinstance(f, (FunctionType, Primitive))
    }
    forward = found.pop("forward", kernel)
    if kernel is None and type(forward) is FunctionType:  # where another process finds it
        forward.__qualname__ = f"{rules.__qualname__}.kernel"
    doc = (rules.__doc__ or "").strip()
    made = Primitive(rules.__name__.rstrip("_"), forward, node, found, doc=doc, **facts)
    made.__module__, made.place = rules.__module__, rules.__qualname__
    made.public_name = name or made.public_name
    made.samples = sample_calls(samples, made.name)
    made.analytic = made.linearity in ("linear", "bilinear") if analytic is None else analytic
    if scalar_of is not None:
        scalar_of.scalar = made
    if numpy is not None:
        NUMPY[numpy] = made
    PRIMITIVES.append(made)
    return made

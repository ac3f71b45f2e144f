"""Custom operations: `autograd.Function`, whose context is its node in the graph."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.engine.core import batch_levels, modes, versions, vmap_rules
from gradcli.engine.core.batched_arrays import BatchLevel, batch_of, is_batched
from gradcli.engine.core.hooks import RARE
from gradcli.engine.core.modes import users_level
from gradcli.engine.core.node import Meta, Node, Port, Wide, freed_error, new
from gradcli.engine.core.tensor import Tensor, arrays, edge, track_view, wrap
from gradcli.engine.core.views import check_writable, rebase
from gradcli.engine.system import dtypes
from gradcli.engine.system.array_memory import copied

_NO_BACKWARD = (
    "You must implement either the backward or vjp method for your custom autograd.Function to use it "
    "with backward mode AD."
)
_NOT_RETURNED = (
    "Some elements marked as dirty during the forward method were not returned as output. The inputs "
    "that are modified inplace must all be outputs of the Function."
)
_SEVERAL = (
    "If your Function modifies inplace an input that is a view of another Tensor, your Function "
    "cannot return more than one Tensor. This is not supported by the current autograd engine. You "
    "should either make sure the input is not a view (using .clone() for example) or make your "
    "Function only return one Tensor (potentially splitting it into two Functions: one doing the "
    "inplace that returns a single Tensor and a second one that does the other operations). You can "
    "ask on the forum https://discuss.pytorch.org/ if you need help to do this change."
)
_LEGACY = (
    "Legacy autograd function with non-static forward method is deprecated. Please use new-style "
    "autograd function with static forward method. (Example: "
    "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
)


_NOT_INPUT = (
    "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been "
    "mutated should be passed to ctx.mark_dirty()."
)
_IMPURE = (
    "Pure view custom Function can only have one input Tensor and one output Tensor. Open an issue if "
    "you need to support more."
)
_ONCE = (
    "saved_tensors can only be accessed once when clear_saved_tensors_on_access=True is set on the "
    "autograd.Function. Either access saved_tensors only once, or set "
    "clear_saved_tensors_on_access=False."
)


class _SavedOutput:
    """An output that was saved: kept without its history, which is this very node."""

    __slots__ = ("array", "nr", "tick", "versions")

    def __init__(self, tensor: Tensor, nr: int) -> None:
        self.array, self.nr = tensor.array, nr
        self.versions, self.tick = tensor.shared_versions(), versions.tick()


class FunctionCtx:
    """What `forward` says about the operation."""

    to_save: Any
    dirty_tensors: Any
    non_differentiable: Any
    saved_for_forward: Any
    _materialize: bool

    if TYPE_CHECKING:  # of the node that stands in for it, and what a program keeps in it

        @property
        def saved_tensors(self) -> tuple[Tensor, ...]: ...
        @property
        def needs_input_grad(self) -> tuple[bool, ...]: ...
        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...

    def save_for_backward(self, *tensors: Tensor) -> None:
        """Keep tensors for `backward`, where they are `ctx.saved_tensors`."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Tensor) -> None:
        """Keep tensors for `jvp`."""
        for tensor in tensors:
            assert isinstance(tensor, Tensor) or tensor is None, (
                "save_for_forward expects all arguments to be tensors; you should save non-tensors "
                "as attributes on ctx."
            )
        self.saved_for_forward = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say which inputs `forward` has written in place."""
        self.dirty_tensors = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say which outputs have no gradient."""
        self.non_differentiable = tensors

    def mark_shared_storage(self, *pairs: Any) -> None:
        """Does nothing; kept for old code."""
        warnings.warn(
            "function 'mark_shared_storage' is deprecated. Tensors with shared storages are "
            "automatically tracked. Note that calls to `set_()` are not tracked",
            FutureWarning,
            stacklevel=users_level(),
        )

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` gets zeros (True, the default) or None for outputs without gradient."""
        self._materialize = value


class BackwardCFunction(Wide, FunctionCtx):
    """The context of a custom operation, which is its node in the graph."""

    _eager = True
    _mark = RARE
    _function: type[Function]
    _flags: tuple[bool, ...]  # which arguments are tensors
    _materialize = True
    _saved_tick = 0

    to_save: Any = None
    dirty_tensors: Any = None
    non_differentiable: Any = None
    saved_for_forward: Any = None
    needs_input_grad: tuple[bool, ...] = ()
    _materialize_non_diff_grads = True
    _fixed: frozenset[int] = frozenset()  # the outputs that were marked non-differentiable
    _is_pure_view = False
    _taken = False  # the saved tensors were handed over for good
    _batch: frozenset[BatchLevel] = frozenset()  # that the operation ran on, as `backward` will

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What `save_for_backward` kept; raises RuntimeError once it has been freed."""
        if self._saved is None:
            raise RuntimeError(_ONCE) if self._taken else freed_error()
        tensors = tuple(self._unpack(s) for s in self._saved)
        if self._saved and self._function.clear_saved_tensors_on_access:
            self._saved, self._taken = None, True
        return tensors

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """The old name of `saved_tensors`."""
        warnings.warn(
            "'saved_variables' is deprecated; use 'saved_tensors'",
            DeprecationWarning,
            stacklevel=users_level(),
        )
        return self.saved_tensors

    @property
    def _raw_saved_tensors(self) -> tuple[Any, ...]:
        if self._saved is None:
            raise freed_error()
        return tuple(SavedTensor(self, i) for i in range(len(self._saved)))

    def _unpack(self, saved: Any) -> Any:
        from gradcli.engine.core.saved_tensors import Packed
        from gradcli.engine.core.version_checks import raise_on_detached, stale_error

        if type(saved) is Packed:
            return saved.unpack()
        if type(saved) is _SavedOutput:
            if saved.versions.stale(saved.tick):
                meta = self.output_meta()[saved.nr]
                raise stale_error(*meta, (self, saved.nr), saved.versions, saved.tick)
            out = wrap(saved.array)
            out.node = self._output_edge(saved.nr)
            if self._tangents is not None:
                out.tangents = self._tangents.get(saved.nr)
            return out
        if saved is not None:
            raise_on_detached(saved, self._saved_tick)
        if saved is not None and saved.versions is not None:
            tick = self._saved_tick
            if saved.versions.stale(tick):
                origin = None if saved.is_leaf else (saved.grad_fn, saved.output_nr)
                array = saved.array
                raise stale_error(array.shape, array.dtype, origin, saved.versions, tick)
        return saved

    def _output_edge(self, nr: int) -> Node | Port:
        if self._outputs is None:
            return self
        return Port(self, nr, *self._outputs[nr])

    def saved_items(self) -> Any:
        from gradcli.engine.core.node import FREED, Written

        if self._saved is None:
            yield "tensors", FREED
            return
        found: list[Any] = []
        for saved in self._saved:
            try:
                found.append(self._unpack(saved))
            except RuntimeError:  # the others can be shown
                found.append(Written(saved, 0))
        if found:
            yield "tensors", tuple(found)

    # -- running ----------------------------------------------------------------------------------
    def apply(self, grad: Any) -> Any:
        grads = grad if isinstance(grad, list) else [grad]
        results = self._call_backward([None if g is None else wrap(g) for g in grads])
        return tuple(None if r is None else r.array for r in results)

    def apply_recorded(self, grad: Any) -> Any:
        grads = list(grad) if isinstance(grad, list) else [grad]
        if self._batch:
            with vmap_rules.reopened(self._batch):
                return self._call_backward(grads)
        if is_batched(grads):
            return batch_levels.by_entry(self.name(), self._call_backward, grads)
        return self._call_backward(grads)

    def _call_backward(self, grads: list[Any]) -> tuple[Any, ...]:
        if self._materialize:
            skipped = frozenset() if self._materialize_non_diff_grads else self._fixed
            for i, (shape, dtype) in enumerate(self.output_meta()):
                if grads[i] is None and dtype is not None and i not in skipped:
                    grads[i] = wrap(np.zeros(shape, dtype))
        function = self._function
        backward = function.backward
        if backward is Function.backward:
            backward = function.vjp
            if backward is Function.vjp:
                raise NotImplementedError(_NO_BACKWARD)
        elif function.vjp is not Function.vjp:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You "
                "should only implement one of them."
            )
        results = backward(self, *grads)
        return self._check(results if isinstance(results, tuple) else (results,))

    def _check(self, results: tuple[Any, ...]) -> tuple[Any, ...]:
        """One gradient for each tensor argument; raises RuntimeError for anything else."""
        name, count = self.name(), len(self._flags)
        if all(r is None for r in results[count:]):
            results = results[:count]
        if len(results) != count:
            raise RuntimeError(
                f"function {name} returned an incorrect number of gradients (expected {count}, got "
                f"{len(results)})"
            )
        kept = []
        for i, (result, is_tensor) in enumerate(zip(results, self._flags, strict=True)):
            if result is not None and not is_tensor:
                raise RuntimeError(
                    f"function {name} returned a gradient different than None at position {i + 1}, "
                    "but the corresponding forward input was not a Variable"
                )
            if result is not None and not isinstance(result, Tensor):
                raise RuntimeError(f"expected Variable or None (got {type(result).__name__})")
            if is_tensor:
                kept.append(result)
        return tuple(r if e is not None else None for r, e in zip(kept, self._edges, strict=True))

    def __dir__(self) -> list[str]:
        return sorted({*_CONTEXT, *(k for k in self.__dict__ if not k.startswith("_"))})


_CONTEXT = (
    *("_materialize_non_diff_grads", "_raw_saved_tensors", "_register_hook_dict"),
    *("_sequence_nr", "_set_sequence_nr", "_input_metadata", "apply", "dirty_tensors"),
    *("mark_dirty", "mark_non_differentiable", "mark_shared_storage", "materialize_grads"),
    *("metadata", "name", "needs_input_grad", "next_functions", "non_differentiable"),
    *("register_hook", "register_prehook", "requires_grad", "save_for_backward"),
    *("save_for_forward", "saved_for_forward", "saved_tensors", "saved_variables"),
    *("set_materialize_grads", "to_save"),
)


class SavedTensor:
    """One tensor that a custom operation saved, before unpacking."""

    def __init__(self, ctx: BackwardCFunction, index: int) -> None:
        self._ctx, self._index = ctx, index

    def register_hooks(self, *hooks: Callable[..., Any]) -> None:
        """Store the saved tensor as `pack_hook(tensor)`, read it through `unpack_hook`."""
        from gradcli.engine.core.saved_tensors import FREED, TWICE, Packed, check_hooks, pack_value

        check_hooks(self, hooks)
        pack_hook, unpack_hook = hooks
        if self._ctx._saved is None:
            raise freed_error(FREED)
        saved = list(self._ctx._saved)
        if type(saved[self._index]) is Packed:
            raise RuntimeError(TWICE)
        value = self._ctx._unpack(saved[self._index])
        if value is None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor with value None is forbidden"
            )
        saved[self._index] = pack_value(value, (pack_hook, unpack_hook), None)
        self._ctx._saved = tuple(saved)


SavedTensor.__module__ = "torch._C._autograd"


class Function(FunctionCtx):
    """Base of custom operations: static `forward` and `backward`, called through `apply`.

    `forward(ctx, *args)`, or `forward(*args)` with `setup_context(ctx, inputs, output)`.
    `backward(ctx, *grads)` returns a gradient, or None, for each argument of forward.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{self.__class__} should not be instantiated. Methods on autograd functions are all "
            "static, so you should invoke them on the class itself. Instantiating an autograd "
            "function will raise an error in a future version of PyTorch.",
            DeprecationWarning,
            stacklevel=users_level(),
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(_LEGACY)

    generate_vmap_rule = False
    clear_saved_tensors_on_access = False

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """The operation itself; must be given."""
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def setup_context(ctx: FunctionCtx, inputs: tuple[Any, ...], output: Any) -> Any:
        """Save what `backward` needs, where `forward` takes no context."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(*args: Any, **kwargs: Any) -> Any:
        """The gradients of the arguments from the context and those of the outputs."""
        raise NotImplementedError(_NO_BACKWARD)

    @staticmethod
    def vjp(ctx: FunctionCtx, *grad_outputs: Any) -> Any:
        """Another name for `backward`."""
        raise NotImplementedError(_NO_BACKWARD)

    @staticmethod
    def jvp(*args: Any, **kwargs: Any) -> Any:
        """The tangents of the outputs from the context and those of the arguments."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with "
            "forward mode AD."
        )

    @staticmethod
    def vmap(*args: Any, **kwargs: Any) -> Any:
        """The operation on a batch of arguments."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
            "generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run the operation and record it.

        Within a function of NumPy's arrays `forward` may return arrays, and need no `setup_context`.
        """
        if arrays.holds is not None and arrays.holds((args, kwargs)):
            return arrays.back(cls._apply(arrays.into(args), arrays.into(kwargs), True))
        return cls._apply(args, kwargs, False)

    @classmethod
    def _apply(cls, args: tuple[Any, ...], kwargs: dict[str, Any], of_arrays: bool) -> Any:
        ctx = new(_context_class(cls))
        ctx._function = cls
        ctx._saved, ctx._seq = (), 0
        separate = cls.setup_context is not Function.setup_context
        if separate:
            args, kwargs = _with_defaults(cls.forward, args, kwargs), {}
        forward: Callable[..., Any] = cls.forward
        if modes.transforms.get():
            if not separate and not of_arrays:
                raise RuntimeError(vmap_rules.NO_CONTEXT)
            if modes.current().levels:
                level = vmap_rules.mapped_by_itself(cls, Function.vmap, args)
                if level is not None:
                    if modes.depth() <= level.depth:
                        return vmap_rules.by_rule(cls, args, level)
                    given = args
                    forward = lambda *_: vmap_rules.by_rule(cls, given, level)  # noqa: E731
        if modes.unusual and (wanted := batch_of(args)):
            args, ctx._batch = tuple(batch_levels.lift(a, wanted) for a in args), wanted
        tensors = [a for a in args if isinstance(a, Tensor)]
        recorded = modes.is_grad_enabled() and any(t.requires_grad for t in tensors)
        ctx._flags = tuple(isinstance(a, Tensor) for a in args)
        ctx.needs_input_grad = tuple(isinstance(a, Tensor) and a.requires_grad for a in args)
        ctx._edges = tuple(edge(t) if recorded else None for t in tensors)
        # Neither recorded nor differentiated forward: both are the Function's own affair.
        with modes.changed(enabled=False, intercept=None):
            if separate:
                output = forward(*args)
                cls.setup_context(ctx, args, output)
            else:
                output = cls.forward(ctx, *args, **kwargs)
        if of_arrays:
            several = isinstance(output, tuple)
            output = tuple(map(_as_tensor, output)) if several else _as_tensor(output)
        state = modes.local.state
        outputs = output if isinstance(output, tuple) else (output,)
        try:
            outputs = _record(ctx, tensors, outputs, recorded)
            if state is not None and state.intercept is not None:
                state.intercept(ctx, args, outputs)
        finally:  # holding the outputs here as well would keep the graph alive in a circle
            for field in ("to_save", "dirty_tensors", "non_differentiable"):
                ctx.__dict__.pop(field, None)
        return outputs if isinstance(output, tuple) else outputs[0]


def _as_tensor(value: Any) -> Any:
    """What a function of arrays gave, as a tensor."""
    return wrap(np.asarray(value)[()]) if isinstance(value, (np.ndarray, np.generic)) else value


def _context_class(cls: type[Function]) -> type[BackwardCFunction]:
    found = cls.__dict__.get("_backward_cls")
    if found is None:
        name = f"{cls.__name__}Backward"
        found = type(name, (BackwardCFunction,), {"__module__": "torch.autograd.function"})
        cls._backward_cls = found  # type: ignore[attr-defined]
    return found


def _record(
    ctx: BackwardCFunction, inputs: list[Tensor], outputs: tuple[Any, ...], recorded: bool
) -> tuple[Any, ...]:
    """Hang the outputs on the context; returns them as the caller gets them."""
    dirty = tuple(ctx.dirty_tensors or ())
    fixed = {id(t) for t in ctx.non_differentiable or ()}
    saved = tuple(ctx.to_save or ())
    if recorded:
        _check_saved(saved)
    for t in dirty:
        _check_dirty(t, inputs, outputs, recorded)
        t.shared_versions().bump()
    metas = tuple(
        (o.array.shape, o.array.dtype) if isinstance(o, Tensor) else ((), None) for o in outputs
    )
    ctx._seq = ctx._saved_tick = versions.tick()
    ctx._meta = Meta(*(metas[0] if metas else ((), None)))
    ctx._outputs = metas if len(metas) != 1 else None
    ctx._fixed = frozenset(nr for nr, o in enumerate(outputs) if id(o) in fixed)
    results: list[Any] = []
    count = sum(isinstance(o, Tensor) for o in outputs)
    if ctx._is_pure_view and (count != 1 or len(inputs) != 1):
        raise RuntimeError(_IMPURE)
    for nr, o in enumerate(outputs):
        results.append(
            _hang(ctx, nr, o, inputs, dirty, recorded and id(o) not in fixed, count)
            if isinstance(o, Tensor)
            else o
        )
    if recorded:
        made = tuple(
            o if any(o is d for d in dirty) or not any(o is t for t in inputs) else None
            for o in outputs
        )
        ctx._saved = tuple(_saved_form(t, made) for t in saved)
        stack = modes.current().pack
        if stack and stack[-1][0] is not None:
            from gradcli.engine.core.saved_tensors import pack_value

            ctx._saved = tuple(pack_value(ctx._unpack(s), stack[-1], None) for s in ctx._saved)
        if modes.current().anomaly:
            from gradcli.engine.core.anomaly import remember

            remember(ctx)
    return tuple(results)


_signature = functools.lru_cache(maxsize=256)(inspect.signature)


def _with_defaults(
    forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, ...]:
    """The arguments as `setup_context` sees them: in order, with those that were left out."""
    bound = _signature(forward).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args


def _check_dirty(
    tensor: Tensor, inputs: list[Tensor], outputs: tuple[Any, ...], recorded: bool
) -> None:
    """Refuse a tensor that may not be marked as written."""
    if not any(tensor is o for o in outputs):
        raise RuntimeError(_NOT_RETURNED)
    if not recorded:
        return
    if not any(tensor is t for t in inputs):
        if tensor.base is not None:
            raise RuntimeError(_NOT_INPUT)
        warnings.warn(_NOT_INPUT, stacklevel=users_level())
    elif tensor.base is None and tensor.requires_grad and tensor.is_leaf:
        from gradcli.engine.core.errors import LeafWriteError

        raise LeafWriteError(
            "a leaf Variable that requires grad has been used in an in-place operation."
        )


def _check_saved(saved: tuple[Any, ...]) -> None:
    for i, t in enumerate(saved):
        if t is not None and not isinstance(t, Tensor):
            raise TypeError(
                f"save_for_backward can only save variables, but argument {i} is of type "
                f"{type(t).__name__}"
            )


def _saved_form(tensor: Tensor, outputs: tuple[Any, ...]) -> Any:
    for nr, o in enumerate(outputs):
        if tensor is o and tensor is not None:
            return _SavedOutput(tensor, nr)
    return tensor


def _hang(
    ctx: BackwardCFunction,
    nr: int,
    output: Tensor,
    inputs: list[Tensor],
    dirty: tuple[Any, ...],
    recorded: bool,
    count: int,
) -> Tensor:
    """One output, with this context as its history."""
    differentiable = recorded and output.array.dtype in dtypes.DIFFERENTIABLE
    if any(output is t for t in dirty):
        if not recorded and output.requires_grad:
            return output.detach()
        if recorded:
            _check_rebase(output, any(output is t for t in inputs))
            if output.base is not None and count > 1:
                raise RuntimeError(_SEVERAL)
            if output.base is not None:
                rebase(output, ctx)
            else:
                output.node = ctx._output_edge(nr)
        return output
    source = next((t for t in inputs if t is output), None)
    if source is not None:
        output = track_view(wrap(source.memory()), source, False, None)
        output.creation = "custom"
    elif output.base is not None:
        if ctx._is_pure_view:
            output.creation = ""
        else:
            output.creation = "many" if count > 1 else "custom"
        if not recorded:  # a view that was made without grad mode, as if no Function had made it
            return output
    output.node = ctx._output_edge(nr) if differentiable else None
    return output


def _check_rebase(tensor: Tensor, is_input: bool) -> None:
    """Refuse a written view whose history may not be replaced; the write itself made it stale."""
    node = tensor.node
    if tensor.stale:
        tensor.node = tensor.former
    try:
        check_writable(tensor, is_input and tensor.base is not None)
    finally:
        tensor.node = node


def once_differentiable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a `backward` whose result must not be differentiated again: doing so is an error."""

    @functools.wraps(function)
    def call(ctx: FunctionCtx, *args: Any) -> Any:
        with modes.no_grad():
            outputs = function(ctx, *args)
        if not modes.is_grad_enabled():
            return outputs
        if not any(isinstance(a, Tensor) and a.requires_grad for a in args):
            return outputs
        made = outputs if isinstance(outputs, tuple) else (outputs,)
        leaves = tuple(None if o is None else o.detach().requires_grad_() for o in made)
        refused = delayed_error(_TWICE, leaves)
        return refused if isinstance(outputs, tuple) else refused[0]

    return call


_TWICE = "trying to differentiate twice a function that was marked with @once_differentiable"


class _DelayedError(BackwardCFunction):
    """Lets values through, and refuses the gradients that come back."""

    message: str

    def name(self) -> str:
        return "torch::autograd::Error"

    def _call_backward(self, grads: list[Any]) -> tuple[Any, ...]:
        raise RuntimeError(self.message)


_DelayedError.__name__ = _DelayedError.__qualname__ = "Error"
_DelayedError.__module__ = "builtins"


def delayed_error(message: str, outputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The outputs, hung on one node that refuses to be differentiated."""
    node = new(_DelayedError)
    node.message = message
    node._edges = tuple(None if o is None else edge(o) for o in outputs)
    node._flags, node._saved = tuple(o is not None for o in outputs), ()
    node._seq = versions.tick()
    metas = tuple(((), None) if o is None else (o.array.shape, o.array.dtype) for o in outputs)
    node._meta = Meta(*metas[0])
    node._outputs = metas if len(metas) != 1 else None
    made = tuple(None if o is None else wrap(copied(o.array)) for o in outputs)
    for nr, out in enumerate(made):
        if out is not None:
            out.node = node._output_edge(nr)
    return made


class InplaceFunction(Function):
    """A Function that says of itself whether it writes in place; kept for old code."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

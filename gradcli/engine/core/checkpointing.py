"""Activation checkpointing: drop what a forward call saved, and recompute it in the backward pass.

There are two variants, as in PyTorch. The reentrant one is a custom `Function` whose backward repeats
the call and runs a backward pass over its graph. The other replaces every saved tensor by an empty
`_Slot`; when a pass unpacks the first slot, the call is repeated and fills all slots for that pass.
"""

from __future__ import annotations

import contextlib
import itertools
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from weakref import ReferenceType, WeakKeyDictionary, ref

import numpy as np

from gradcli.engine.core import backward_pass, modes, random, watched_pass
from gradcli.engine.core.custom_function import Function
from gradcli.engine.core.gradient_edges import saved_tensors_hooks
from gradcli.engine.core.modes import users_level
from gradcli.engine.core.tensor import Tensor, wrap

if TYPE_CHECKING:
    from gradcli.engine.core.custom_function import FunctionCtx

Contexts = tuple[AbstractContextManager[Any], AbstractContextManager[Any]]


_UNSAID = (
    "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. Starting in "
    "PyTorch 2.9, calling checkpoint without use_reentrant will raise an exception. "
    "use_reentrant=False is recommended, but if you need to preserve the current default behavior, "
    "you can pass use_reentrant=True. Refer to docs for more details on the differences between the "
    "two variants."
)


_UNSAID_SEQUENTIAL = (
    "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed "
    "explicitly. In version 2.9 we will raise an exception if use_reentrant is not passed. "
    "use_reentrant=False is recommended, but if you need to preserve the current default behavior, "
    "you can pass use_reentrant=True. Refer to docs for more details on the differences between the "
    "two variants."
)


_TIP = """
Tip: To see a more detailed error message, either pass `debug=True` to
`torch.utils.checkpoint.checkpoint(...)` or wrap the code block
with `with torch.utils.checkpoint.set_checkpoint_debug_enabled(True):` to
enable checkpoint\N{NON-BREAKING HYPHEN}debug mode globally.

If this error occurs under torch.compile with automatic_dynamic_shapes enabled,
it may be because the recomputation selected a different compiled graph than the
forward pass (e.g., a dynamic graph instead of the original static graph).
To fix this, either:
  - Use torch._dynamo.mark_dynamic() to explicitly mark varying dimensions as
    dynamic upfront, avoiding the static-to-dynamic transition.
  - Call torch._C._dynamo.eval_frame._set_lru_cache(False) to disable LRU cache
    reordering, which can change which graph is checked first between forward
    and recompute.
See https://github.com/pytorch/pytorch/issues/166926 for more details and
workaround examples.
"""


_SUPPRESSED = (
    "torch.utils.checkpoint: the forward context provided by context_fn suppressed an exception "
    "raised during the checkpointed forward. This is not supported because checkpoint cannot return "
    "a value for a failed forward."
)


_NOT_IN_GRAD = (
    "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an "
    "`inputs` parameter to .backward(). To resolve this error, you can either set "
    "use_reentrant=False, or call .backward() without passing the `inputs` argument."
)


# Set by the context managers below; None: the argument of `checkpoint` decides.
_early_stop: ContextVar[bool | None] = ContextVar("early_stop", default=None)


_debug: ContextVar[bool | None] = ContextVar("debug", default=None)


class CheckpointError(RuntimeError):
    """The recomputation saved other tensors than the forward call."""


class _Enough(Exception):
    """Raised to stop a recomputation that has filled every slot."""


def noop_context_fn() -> Contexts:
    """The default of `context_fn`: two contexts that do nothing."""
    return contextlib.nullcontext(), contextlib.nullcontext()


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """A context that sets whether a recomputation stops at the last tensor that is needed."""
    before = _early_stop.set(enable)
    try:
        yield
    finally:
        _early_stop.reset(before)


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """A context that overrides the `debug` argument of `checkpoint`; None leaves it."""
    before = _debug.set(enabled)
    try:
        yield
    finally:
        _debug.reset(before)


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], Contexts] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Call `function(*args)` without keeping its saved tensors; the backward pass recomputes them.

    context_fn: returns the contexts of the forward call and of the recomputation. determinism_check:
    "default" compares shape and dtype of the saved tensors, "none" nothing. early_stop: stop the
    recomputation at the last tensor that is needed.
    """
    if use_reentrant is None:
        warnings.warn(_UNSAID, stacklevel=users_level())
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if not use_reentrant:
        wanted = _debug.get()
        debug = debug if wanted is None else wanted
        if debug and context_fn is not noop_context_fn:
            raise ValueError("debug=True is incompatible with non-default context_fn")
        repeat = _Repeat(function, kwargs, preserve, context_fn, determinism_check, early_stop)
        return repeat.run(args)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if context_fn is not noop_context_fn or debug:
        raise ValueError(
            "Passing `context_fn` or `debug` is only supported when use_reentrant=False."
        )
    return CheckpointFunction.apply(function, preserve, *args)


def checkpoint_sequential(
    functions: Sequence[Callable[..., Any]],
    segments: int,
    input: object,
    use_reentrant: bool | None = None,
    **kwargs: Any,
) -> Any:
    """Apply functions in sequence, split into segments; all but the last segment are checkpointed."""
    if use_reentrant is None:
        warnings.warn(_UNSAID_SEQUENTIAL, stacklevel=users_level())
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    size = len(functions) // segments
    for k in range(segments - 1):
        part = _chain(functions[k * size : (k + 1) * size])
        input = checkpoint(part, input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return _chain(functions[(segments - 1) * size :])(input)


def _chain(functions: Sequence[Callable[..., Any]]) -> Callable[[Any], Any]:
    def run(value: object) -> Any:
        for function in functions:
            value = function(value)
        return value

    return run


@contextlib.contextmanager
def _random_state(state: Tensor | None) -> Iterator[None]:
    """A context in which the generator starts at `state`; None leaves the generator alone."""
    if state is None:
        yield
        return
    before = random.get_rng_state()
    random.set_rng_state(state)
    try:
        yield
    finally:
        random.set_rng_state(before)


class CheckpointFunction(Function):
    """The reentrant variant: forward runs without a graph, backward runs it again with one."""

    @staticmethod
    def forward(ctx: Any, run_function: Any, preserve_rng_state: bool, *args: Any) -> Any:
        tensors = [a for a in args if isinstance(a, Tensor)]
        if not any(t.requires_grad for t in tensors):
            warnings.warn(
                "None of the inputs have requires_grad=True. Gradients will be None",
                stacklevel=users_level(),
            )
        ctx.run_function = run_function
        ctx.random_state = random.get_rng_state() if preserve_rng_state else None
        ctx.others = tuple(None if isinstance(a, Tensor) else a for a in args)
        ctx.places = tuple(i for i, a in enumerate(args) if isinstance(a, Tensor))
        ctx.save_for_backward(*tensors)
        with modes.no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if not watched_pass.current_pass().whole:
            raise RuntimeError(_NOT_IN_GRAD)
        inputs = list(ctx.others)
        for place, tensor in zip(ctx.places, ctx.saved_tensors, strict=True):
            inputs[place] = tensor.detach().requires_grad_(tensor.requires_grad)
        with _random_state(ctx.random_state), modes.enable_grad():
            outputs = ctx.run_function(*inputs)
        pairs = [
            (o, g)
            for o, g in zip(
                outputs if isinstance(outputs, tuple) else (outputs,), grads, strict=False
            )
            if isinstance(o, Tensor) and o.requires_grad
        ]
        if not pairs:
            raise RuntimeError(
                "none of output has requires_grad=True, this checkpoint() is not necessary"
            )
        backward_pass.backward([o for o, _ in pairs], [g for _, g in pairs])
        return (None, None, *(i.grad if isinstance(i, Tensor) else None for i in inputs))


class _Content:
    """Weak key of a recomputed tensor: the tensor goes when no slot refers to the key."""


class _Slot:
    """Stands for one saved tensor. `contents`: for each pass the tensor's key; None once unpacked."""

    __slots__ = ("__weakref__", "contents")

    def __init__(self) -> None:
        self.contents: dict[Any, _Content | None] = {}


class _Inputs(Function):
    """A node that saves the arguments of a checkpointed call, so that they are checked as saved tensors."""

    @staticmethod
    def forward(ctx: FunctionCtx, dummy: Tensor, *tensors: Tensor) -> Tensor:
        ctx.save_for_backward(*tensors)
        return dummy.clone()


def _metadata(tensor: Tensor) -> dict[str, Any]:
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


_CHECKS: dict[str, Callable[[Tensor], Any]] = {"default": _metadata, "none": lambda _: None}


_single = itertools.count()


class _Repeat:
    """One checkpointed call: its slots, and how to recompute them."""

    def __init__(
        self,
        function: Callable[..., Any],
        kwargs: dict[str, Any],
        preserve: bool,
        context_fn: Callable[[], Contexts],
        determinism_check: str,
        early_stop: bool,
    ) -> None:
        if determinism_check not in _CHECKS:
            raise ValueError(
                f"determinism_check should be one of {list(_CHECKS)}, but got {determinism_check}"
            )
        self.metadata = _CHECKS[determinism_check]
        self.function, self.kwargs = function, kwargs
        wanted = _early_stop.get()
        self.early_stop = early_stop if wanted is None else wanted
        self.contexts = context_fn()
        self.random_state = random.get_rng_state() if preserve else None
        self.complete = False  # the forward call has ended
        self.lenient = False  # recomputed before the forward call ended: nothing to compare
        self.slots: list[ReferenceType[_Slot]] = []
        self.saved: list[Any] = []  # the metadata of each slot's tensor
        self.filled: dict[Any, WeakKeyDictionary[_Content, Tensor]] = {}
        self.counts: dict[Any, int] = {}  # how many tensors the recomputation of each pass saved

    def run(self, args: tuple[Any, ...]) -> Any:
        """The forward call."""
        if not modes.is_grad_enabled():
            return self.function(*args, **self.kwargs)
        dummy = wrap(np.zeros(0), requires_grad=True)
        kept = _Inputs.apply(dummy, *(a for a in args if isinstance(a, Tensor)))
        self.inputs = kept.grad_fn
        self.args = tuple(_TENSOR if isinstance(a, Tensor) else a for a in args)
        returned = False
        with saved_tensors_hooks(self.pack, self.unpack), self.contexts[0]:
            result = self.function(*args, **self.kwargs)
            returned = True
        if not returned:
            raise RuntimeError(_SUPPRESSED)
        self.complete = True
        return result

    def pack(self, tensor: Tensor) -> _Slot:
        """The pack hook: an empty slot for a saved tensor."""
        slot = _Slot()
        self.slots.append(ref(slot))
        self.saved.append(self.metadata(tensor))
        return slot

    def unpack(self, slot: _Slot) -> Tensor:
        """The unpack hook: the slot's tensor. The first slot of a pass triggers the recomputation."""
        key = _pass_key()
        if key not in self.filled:
            self.repeat(key)
            self.compare(key)
        content = slot.contents.get(key)
        if content is None:
            overlap = "" if GraphExecGroup.current is None else _OVERLAP
            raise CheckpointError(
                "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already "
                f"unpacked once. {overlap}If you are calling ctx.saved_tensors in backward, make "
                "sure to do so only once. Otherwise please open an issue with details on your use "
                "case."
            )
        tensor = self.filled[key][content]
        slot.contents[key] = None
        return tensor

    def repeat(self, key: object) -> None:
        """Repeat the call and fill the slots for one pass."""
        tensors = iter(self.inputs.saved_tensors)
        args = [next(tensors) if a is _TENSOR else a for a in self.args]
        filled: WeakKeyDictionary[_Content, Tensor] = WeakKeyDictionary()
        self.counts[key] = 0

        def fill(tensor: Tensor) -> Tensor:
            tensor = tensor.detach() if tensor.requires_grad else tensor
            nr = self.counts[key]
            self.counts[key] = nr + 1
            if nr >= len(self.slots):
                if not self.complete:
                    self.lenient = True
                    return tensor
                raise CheckpointError(
                    "torch.utils.checkpoint: trying to save more tensors during recomputation than "
                    f"during the original forward pass.\n{_TIP}"
                )
            slot = self.slots[nr]()
            if slot is not None:
                content = slot.contents[key] = _Content()
                filled[content] = tensor
            if self.early_stop and self.counts[key] == len(self.slots):
                raise _Enough
            return tensor

        with (
            contextlib.suppress(_Enough),
            saved_tensors_hooks(fill, lambda tensor: tensor),
            modes.enable_grad(),
            _random_state(self.random_state),
            self.contexts[1],
        ):
            self.function(*args, **self.kwargs)
        self.filled[key] = filled

    def compare(self, key: object) -> None:
        """Raise CheckpointError if the recomputation saved other tensors than the forward call."""
        if self.lenient:
            return
        if self.counts[key] != len(self.slots):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the "
                "original forward and recomputation.\n"
                f"Number of tensors saved during forward: {len(self.slots)}\n"
                f"Number of tensors saved during recomputation: {self.counts[key]}.\n{_TIP}"
            )
        different = ""
        for nr, (weak, before) in enumerate(zip(self.slots, self.saved, strict=True)):
            slot = weak()
            content = None if slot is None else slot.contents.get(key)
            if content is None:
                continue
            now = self.metadata(self.filled[key][content])
            if now != before:
                different += (
                    f"tensor at position {nr}:\nsaved metadata: {before}\n"
                    f"recomputed metadata: {now}\n"
                )
        if different:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have "
                f"different metadata than during the forward pass.\n{different}.\n{_TIP}"
            )


_TENSOR = object()  # placeholder for a tensor among the arguments


_OVERLAP = (
    "Performing two backward calls that overlap (i.e. require the same saved activation in order to "
    "compute gradients) is not allowed while under the torch.utils.checkpoint.GraphExecGroup "
    "context. "
)


def _pass_key() -> Any:
    """What one recomputation serves: a group of passes, a pass, or a single read of a `_saved_` field."""
    if GraphExecGroup.current is not None:
        return GraphExecGroup.current
    try:
        return watched_pass.current_pass().number
    except RuntimeError:
        return "look", next(_single)


class GraphExecGroup:
    """A context whose backward passes share one recomputation of each checkpointed call."""

    current: GraphExecGroup | None = None

    def __enter__(self) -> GraphExecGroup:
        if GraphExecGroup.current is not None:
            raise RuntimeError(
                "GraphExecGroup contexts cannot be nested. Already inside group "
                f"{GraphExecGroup.current}"
            )
        GraphExecGroup.current = self
        return self

    def __exit__(self, *error: object) -> None:
        GraphExecGroup.current = None

"""Grad mode and the other states of a thread that change what an operator records.

`local.state` is None in the ordinary case (gradients are recorded, no mode is set), so that the fast
path of an operator is one test. Otherwise it is a `State`.
"""

from __future__ import annotations

import functools
import inspect
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from types import FrameType
    from typing import TypeVar

    from gradcli.engine.system.dtypes import Array

    F = TypeVar("F", bound=Callable[..., Any])

# How many transforms of `func` (grad, vjp, jvp, vmap ...) are open, nested in each other.
transforms: ContextVar[int] = ContextVar("transforms", default=0)
# Those of them that differentiate, outermost first: core.levels.Level.
nested: ContextVar[tuple[Any, ...]] = ContextVar("nested", default=())
# Told of what a program does whose result nobody defines, by a sentence: where a command asks. There the last
# of several writes to one element has the gradient; otherwise all have it, as in PyTorch.
told: ContextVar[Callable[[str], None] | None] = ContextVar("told", default=None)
# One item for each that is open in any thread. While it is empty, tensors do not record `born`.
differentiating: list[None] = []


class TraceHooks(Protocol):
    """The interface of a recorder, which runs primitives while a program is traced (`transforms/tracing`).

    tensors: whether backward passes run VJP rules on tensors only, not on arrays.
    """

    tensors: bool

    def call(self, primitive: Any, values: list[Any]) -> Any:
        """Run a primitive on tensors (numbers are Scalars) and options; returns arrays."""

    def run(self, primitive: Any, operands: list[Any]) -> Any:
        """Run a primitive on arrays and options, as rules and kernels call it; returns arrays."""

    def memory(self, array: Array) -> Any:
        """The array as memory that tensors can share and write in place."""

    def draw(self) -> None:
        """Called before random numbers are drawn; raises if the trace does not allow it."""

    def arrived(self, had: Any, new: Any, node: Any) -> Any:
        """Add a gradient that `node` brings to those that arrived before (None: none did)."""

    def total(self, arrived: Any) -> Any:
        """The sum of what `arrived` collected."""


class State:
    """The modes of this thread. Immutable: `change` replaces it as a whole."""

    def __init__(self) -> None:
        self.enabled = True  # gradients are recorded
        self.inference = False  # results can never be recorded
        self.rules = False  # a derivative rule is running: Python numbers are C++ scalars
        self.anomaly = False  # nodes remember the traceback of their forward call
        self.check_nan = True
        self.pack: tuple[Any, ...] = ()  # the stack of saved_tensors_hooks
        # Called with (primitive, operands, outputs) after every operation. An interceptor of forward
        # mode has a `level`; one that wraps another has it as `below`.
        self.intercept: Any = None
        self.observer: Any = None  # called at every step of a backward pass: see core.observers
        self.levels: tuple[Any, ...] = ()  # the open batches: core.batched_arrays.BatchLevel
        self.batched = (
            False  # a pass runs through a batch: operands may be batched, even by closed levels
        )
        self.before_write: Any = None  # called with a tensor before it is written in place
        self.recorder: TraceHooks | None = (
            None  # runs primitives instead of the engine, and records them
        )
        self.ordinary = True  # nothing is unusual, but that a rule may be running
        self.silent = False  # nothing is unusual, but that gradients are not recorded
        self.mapped = False  # nothing is unusual, but that operands may be batched, or not recorded

    def settle(self) -> None:
        """Work out the fields that follow from the others."""
        quiet = not (
            self.inference
            or self.anomaly
            or self.pack
            or self.intercept
            or self.observer
            or self.before_write
            or self.recorder
        )
        self.mapped = quiet and bool(self.levels or self.batched)
        plain = quiet and not self.mapped
        self.ordinary = plain and self.enabled
        self.silent = plain and not self.enabled and not self.rules


# One item for each thread that has a State. While it is empty, operators skip looking for theirs.
unusual: list[None] = []
# Filled when inference mode is first entered: before that, no inference tensors exist.
inference_used: list[None] = []


class _Local(threading.local):
    state: State | None = None
    # Filled, where somebody watches, with whatever leaves the graph as a number of Python's: the method,
    # and the module, file and line that called it.
    left: list[tuple[str, str, str, int]] | None = None


local = _Local()
_PLAIN = State()


def nothing_listens() -> bool:
    """Whether what is done with tensors concerns no transform, batch or recorder, but perhaps the graph."""
    state = local.state if unusual else None
    return not differentiating and (state is None or state.silent)


def change(**values: Any) -> State | None:
    """Change fields of this thread's state; returns the old state for `restore`."""
    before = local.state
    source = before or _PLAIN
    state = object.__new__(State)
    state.__dict__ = {**source.__dict__, **values}
    state.settle()
    restore(None if state.ordinary and not state.rules else state)
    return before


def restore(state: State | None) -> None:
    """Put back what `change` returned."""
    if (local.state is None) is not (state is None):
        if state is None:
            unusual.pop()
        else:
            unusual.append(None)
    if state is not None and state.inference and not inference_used:
        inference_used.append(None)
    local.state = state


_RULES = State()
_RULES.rules = True


def run_rules(enabled: bool, batched: bool) -> State | None:
    """As `change(enabled=enabled, rules=True, batched=batched)`."""
    before = local.state
    plain = before is None or before.ordinary or before.silent
    if not (enabled and plain and not batched):
        return change(enabled=enabled, rules=True, batched=batched)
    restore(_RULES)
    return before


class changed:
    """A context in which fields of this thread's state have other values."""

    __slots__ = ("_before", "_values")

    def __init__(self, **values: Any) -> None:
        self._values = values

    def __enter__(self) -> None:
        self._before = change(**self._values)

    def __exit__(self, *error: object) -> None:
        restore(self._before)


def current() -> State:
    """This thread's state."""
    return local.state or _PLAIN


class Mode:
    """A context manager that changes the state; also decorates functions and generators.

    made_of: the arguments of its class, for the fresh one that a decorated call enters.
    """

    def __init__(self, *made_of: Any) -> None:
        self._before: list[State | None] = []
        self._made_of = made_of

    def values(self) -> dict[str, Any]:
        """The fields of the state that the mode sets."""
        raise NotImplementedError

    def clone(self) -> Mode:
        """A fresh context manager like this one, for a decorated call."""
        return type(self)(*self._made_of)

    def __enter__(self) -> Any:
        self._before.append(change(**self.values()))
        return None

    def __exit__(self, *error: object) -> None:
        restore(self._before.pop())

    def __call__(self, function: F) -> F:
        if inspect.isclass(function):
            warnings.warn(
                "Decorating classes is deprecated and will be disabled in future versions. You "
                "should only decorate functions or methods. To preserve the current behavior of "
                "class decoration, you can directly decorate the `__init__` method and nothing "
                "else.",
                FutureWarning,
                stacklevel=users_level(),
            )
            build: Any = lambda *args, **kwargs: self._call(function, args, kwargs)  # noqa: E731
            return build
        if inspect.isgeneratorfunction(function):
            return _decorate_generator(self.clone, function)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            return self._call(function, args, kwargs)

        return call  # type: ignore[return-value]

    def _call(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        with self.clone():
            return function(*args, **kwargs)


def _decorate_generator(mode: Callable[[], Mode], function: Callable[..., Any]) -> Any:
    """Decorate a generator: the mode holds while it runs, not while its caller does."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        generator = function(*args, **kwargs)
        try:
            with mode():
                response = generator.send(None)
            while True:
                try:
                    request = yield response
                except GeneratorExit:
                    with mode():
                        generator.close()
                    raise
                except BaseException as error:
                    with mode():
                        response = generator.throw(error)
                else:
                    with mode():
                        response = generator.send(request)
        except StopIteration as stop:
            return stop.value

    return call


class _NoArgumentMode(Mode):
    """A mode that decorates with or without a call: `@no_grad` and `@no_grad()`."""

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        if function is None:
            return super().__new__(cls)
        mode = super().__new__(cls)
        mode.__init__()  # type: ignore[misc]
        return mode(function)

    def __init__(self, function: Callable[..., Any] | None = None) -> None:
        super().__init__()


def note_left(method: str, depth: int) -> None:
    """Note that a tensor becomes a number, by a method that is called from `depth` frames above.

    Where nothing is recorded, as within `no_grad`, nobody is surprised.
    """
    if local.left is not None and is_grad_enabled():
        frame = sys._getframe(depth + 1)
        while frame.f_back is not None and _is_of_library(frame):
            frame = frame.f_back
        code = frame.f_code
        module = frame.f_globals.get("__name__", "")
        local.left.append((method, module, code.co_filename, frame.f_lineno))


def _is_of_library(frame: FrameType) -> bool:
    """Whether a line is NumPy's or SciPy's own, which somebody's line called."""
    return frame.f_globals.get("__name__", "").partition(".")[0] in ("numpy", "scipy")


@contextmanager
def no_number_may_leave(of_arrays: bool = True) -> Iterator[None]:
    """A context in which a tensor that is differentiated becomes no number: float(x), as math.exp calls it.

    Raises LeftGraphError at its end. of_arrays: nor by `item()` and `tolist()`, which PyTorch's programs
    call to leave the graph, and NumPy's to have a number.
    """
    before = local.left
    left: list[tuple[str, str, str, int]] = []
    local.left = left
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", "Converting a tensor with requires_grad=True to a scalar"
            )
            yield
    except RuntimeError as error:
        from gradcli.engine.core.errors import ReturnedTypeError

        if not isinstance(error, ReturnedTypeError):  # the number may be what was returned
            raise
        _refuse_left(left, of_arrays)
        raise
    finally:
        local.left = before
    _refuse_left(left, of_arrays)


def _refuse_left(left: list[tuple[str, str, str, int]], of_arrays: bool) -> None:
    for method, module, file, number in left:
        if (of_arrays or method == "float") and not module.startswith("gradcli."):
            import linecache

            from gradcli.engine.core.errors import LeftGraphError

            line = linecache.getline(file, number).strip()
            raise LeftGraphError(f"{file}:{number}", line, method) from None


def users_level() -> int:
    """The `stacklevel` with which the caller's warning names the innermost line that is not gradcli's."""
    frame: FrameType | None = sys._getframe(1)
    level = 1
    while frame is not None and frame.f_globals.get("__name__", "").startswith("gradcli."):
        frame, level = frame.f_back, level + 1
    return level


class no_grad(_NoArgumentMode):
    """A context, or decorator, in which operations are not recorded."""

    def values(self) -> dict[str, Any]:
        return {"enabled": False}


class enable_grad(_NoArgumentMode):
    """A context, or decorator, in which operations are recorded, whatever holds outside."""

    def values(self) -> dict[str, Any]:
        return {"enabled": True}


class inference_mode(Mode):
    """A context, or decorator, whose results are inference tensors, which no graph can contain."""

    def __new__(cls, mode: Any = True) -> Any:
        if isinstance(mode, bool):
            return super().__new__(cls)
        return cls()(mode)

    def __init__(self, mode: bool = True) -> None:
        super().__init__(mode)
        self.mode = mode

    def values(self) -> dict[str, Any]:
        return {"inference": self.mode, "enabled": not self.mode}


class set_grad_enabled(Mode):
    """Switches recording on or off at once; as a context manager, until the end of the block."""

    def __init__(self, mode: bool) -> None:
        super().__init__(mode)
        self.mode = bool(mode)
        self._first: State | None = change(enabled=self.mode)
        self._entered = False

    def values(self) -> dict[str, Any]:
        return {"enabled": self.mode}

    def __call__(self, function: F) -> F:
        restore(self._first)
        return super().__call__(function)

    def __enter__(self) -> None:
        change(enabled=self.mode)

    def __exit__(self, *error: object) -> None:
        restore(self._first)

    def __str__(self) -> str:
        return f"{type(self).__name__}(mode={self.mode})"

    __repr__ = __str__


class set_detect_anomaly(Mode):
    """Switches anomaly mode on or off at once; as a context manager, until the end of the block."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        super().__init__(mode, check_nan)
        self.mode, self.check_nan = mode, check_nan
        self._first: State | None = change(**self.values())

    def values(self) -> dict[str, Any]:
        return {"anomaly": self.mode, "check_nan": self.check_nan}

    def __enter__(self) -> None:
        change(**self.values())

    def __exit__(self, *error: object) -> None:
        restore(self._first)


class _Threads(threading.local):
    enabled = True


_threads = _Threads()


class set_multithreading_enabled(Mode):
    """Sets whether passes may use other threads. They never do; only the state is kept."""

    def __init__(self, mode: bool) -> None:
        super().__init__(mode)
        self.mode = mode
        self._former, _threads.enabled = _threads.enabled, mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        _threads.enabled = self._former


def is_multithreading_enabled() -> bool:
    """The state that `set_multithreading_enabled` set."""
    return _threads.enabled


class detect_anomaly(Mode):
    """A context in which a NaN gradient raises an error that shows the traceback of the forward call."""

    def __init__(self, check_nan: bool = True) -> None:
        super().__init__(check_nan)
        self.check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should "
            "only be enabled for debugging.",
            stacklevel=users_level(),
        )

    def values(self) -> dict[str, Any]:
        return {"anomaly": True, "check_nan": self.check_nan}


def depth() -> int:
    """The number of the current level (core.levels); the program's own is 0."""
    return len(nested.get())


def is_grad_enabled() -> bool:
    """True if this thread records operations."""
    state = local.state
    return state is None or state.enabled


def forward_levels() -> Iterator[Any]:
    """The levels of forward mode whose tangents are being propagated, the innermost first."""
    here = current().intercept
    while here is not None:
        if (level := getattr(here, "level", None)) is not None:
            yield level
        here = getattr(here, "below", None)


def is_inference_mode_enabled() -> bool:
    """True in an `inference_mode` block."""
    return current().inference


def is_anomaly_enabled() -> bool:
    """True inside `detect_anomaly`."""
    return current().anomaly


def is_anomaly_check_nan_enabled() -> bool:
    """True if anomaly mode checks for NaN."""
    return current().check_nan

"""Run a program: a stack of values, a stack of frames, and no recursion over text or tree."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NoReturn

from gradcli.engine.system.visible import visible
from gradcli.language import names as known
from gradcli.language import operations as ops
from gradcli.language import tree_kinds
from gradcli.language.located_errors import (
    CallSite,
    LanguageError,
    StepLimit,
    UnboundName,
    UnknownName,
)
from gradcli.language.operations import MARKED, bind, pop_many, simple, split_arguments
from gradcli.language.program import Code, Program
from gradcli.language.tree_kinds import (
    CHAIN,
    FOR_NEXT,
    INPLACE,
    JUMP,
    JUMP_BACK,
    JUMP_IF_FALSE,
    KIND,
    LOAD_LOCAL,
    STORE,
)

if TYPE_CHECKING:
    from gradcli.language.lowering import FunctionSpec

MAX_DEPTH = 1000  # calls of a program's functions, as Python has it
MAX_NESTED_RUNS = 40  # of those that come back through the engine: hooks and the like
_NAME, _CONSTANT, _CALL = tree_kinds.NAME, tree_kinds.CONSTANT, KIND["call"]
_CALL_KEYWORDS, _SUBSCRIPT = KIND["call_keywords"], KIND["subscript"]
_EXPRESSION, _ASSIGN = KIND["expression"], KIND["assign"]
_LAST_BINARY, _LAST_ARITHMETIC = ops.LAST_BINARY, KIND["bitand"]
# Instructions that have taken their operands off the stack when they fail, and those that leave two on it.
_HELD = frozenset((*range(ops.FIRST_BINARY, _LAST_BINARY + 1), _CALL, _CALL_KEYWORDS))
_PAIRED = frozenset((_SUBSCRIPT, INPLACE, CHAIN))
_MISSING = object()


class Result:
    """The result of a program: the value of its last expression, and all its names."""

    __slots__ = ("names", "value")

    def __init__(self, value: Any, names: dict[str, Any]) -> None:
        self.value = value
        self.names = names


def say(text: str) -> None:
    """Write what a program prints to standard output."""
    if sys.stdout is None:
        raise LanguageError("standard output is closed", kind="file", usage=False)
    sys.stdout.write(visible(text))


class Machine:
    """The state that all frames of one run share."""

    def __init__(
        self,
        variables: Mapping[str, Any] | None = None,
        *,
        write: Callable[[str], Any] | None = None,
        max_steps: int | None = None,
    ) -> None:
        from gradcli.engine.core.node import Port
        from gradcli.engine.core.tensor import LAZY, Tensor

        self.names: dict[str, Any] = dict(variables or {})
        self.value: Any = None
        self.write = write
        self.steps = max_steps
        self.max_steps = max_steps
        self.depth = 0
        self.runs = 0
        self.returned: Any = None  # by the last frame there was
        self.control: Any = ()  # what runs the instructions that only programs that jump have
        self.tensor, self.port, self.lazy = Tensor, Port, LAZY
        loaded = False
        for name, value in self.names.items():
            if isinstance(value, Tensor):
                if not loaded:
                    from gradcli.engine.registry import table

                    # Only if there is a tensor at all: a program of numbers starts without the table.
                    table.base()  # operators of tensors are primitives of the table
                    loaded = True
                if value.label is None:
                    value.label = name

    def run(self, program: Program) -> Any:
        """Run a program on the machine's names; returns the value of its last expression."""
        self.value = None
        # The tree is in postfix order, which is the order in which a stack computes it.
        if program.straight:  # its rows are instructions as they are
            code = program.code()
        else:
            from gradcli.language import control_flow, lowering

            self.control = control_flow.CONTROL
            code = lowering.lower(program)
        execute(self, Frame(code, self.names, (), -1))
        return self.value

    def lookup(self, word: str) -> Any:
        """The value of a name that the program has not assigned."""
        if word in self.names:
            return self.names[word]
        if word == "print":
            return known.Builtin(word, self.print)
        if word == "display":
            return known.Builtin(word, self.display)
        found = known.meaning(word)
        if found is None:
            raise UnknownName(word)
        return found

    def print(
        self, *values: Any, sep: str | None = " ", end: str | None = "\n", flush: bool = False
    ) -> None:
        """Python's print, to where the run's output goes."""
        text = (" " if sep is None else sep).join(map(known.shown, values)) + (
            "\n" if end is None else end
        )
        (self.write or say)(text)

    def display(self, *values: Any) -> None:
        """IPython's display: what a notebook shows for each value."""
        from gradcli.language.display import pretty

        for value in values:
            self.print(pretty(value))

    def step(self) -> None:
        """Count one turn of a loop or one call, where they are counted."""
        assert self.steps is not None
        # Turns and calls alone are counted: between two of them a program can only go forward, and ends.
        self.steps -= 1
        if self.steps < 0:
            raise StepLimit(
                f"the program took more than {self.max_steps} steps (loop turns and calls)"
            )

    def enter(self, frames: list[Frame], frame: Frame) -> None:
        """Make a call, or a comprehension, the innermost frame."""
        if self.depth >= MAX_DEPTH:
            raise RecursionError("maximum recursion depth exceeded")
        frames.append(frame)
        self.depth += 1

    def function(self, frame: Frame, spec: FunctionSpec, defaults: list[Any]) -> UserFunction:
        """A function that is defined in a frame."""
        return UserFunction(self, spec, self.closure(frame), defaults)

    def comprehension(self, outer: Frame, spec: FunctionSpec, row: int) -> Frame | None:
        """The frame of a comprehension over the iterator on the stack, or None: a generator is there now."""
        frame = Frame(spec.code, {}, self.closure(outer), row)
        frame.stack += (spec.begun(), outer.stack[-1])
        # A list is made at once; a generator must not run before somebody asks for its first item.
        if frame.stack[0] is known.Generator.DONE:
            outer.stack[-1] = known.Generator(lambda: called_back(self, frame))
            return None
        return frame

    def closure(self, frame: Frame) -> tuple[dict[str, Any], ...]:
        """The scopes of what is defined in a frame."""
        # The program's own names are asked by everything, so they need not be a scope of a closure.
        return frame.closure if frame.scope is self.names else (frame.scope, *frame.closure)

    def mark(self, value: Any, span: tuple[int, int]) -> None:
        """Give the node of a result its place in the source, unless it has one."""
        if isinstance(value, self.tensor):
            node = value.node
            if node is not None and node is not self.lazy:
                if type(node) is self.port:
                    node = node.node
                # The innermost call that made the node is where it came from; calls around it only pass it
                # on.
                if node.span is None:
                    node.span = span
                    if value.label is not None:  # written in place: the name goes with the tensor
                        node.label = value.label
        elif isinstance(value, (tuple, list)):
            for item in value:
                if isinstance(item, self.tensor):
                    self.mark(item, span)

    def name_value(self, value: Any, name: str) -> None:
        """An assignment names the tensor and its node, unless they have a name already."""
        if value.label is None:
            value.label = name
            node = value.node
            made = node is not None and node is not self.lazy and type(node) is not self.port
            if made and node.label is None:
                node.label = name


class UserFunction:
    """A function of a program: its code, and the scopes in which it was defined (a closure)."""

    __slots__ = ("__weakref__", "closure", "defaults", "machine", "spec")

    def __init__(
        self,
        machine: Machine,
        spec: FunctionSpec,
        closure: tuple[dict[str, Any], ...],
        defaults: list[Any],
    ) -> None:
        self.machine = machine
        self.spec = spec
        self.closure = closure
        self.defaults = defaults

    @property
    def name(self) -> str:
        """The name after `def`."""
        return self.spec.name

    @property
    def __name__(self) -> str:
        return self.spec.name

    def __repr__(self) -> str:
        return f"<function {self.spec.name}>"

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """For callers outside programs: hooks, transformations, Python."""
        machine = self.machine
        return called_back(machine, self.frame(list(args), keywords, -1))

    def frame(self, args: list[Any], keywords: dict[str, Any], where: int) -> Frame:
        """A call that is about to be run; where: the row that calls."""
        return Frame(self.spec.code, self.bind(args, keywords), self.closure, where)

    def bind(self, args: list[Any], keywords: dict[str, Any]) -> dict[str, Any]:
        """The scope of a call: parameters with their arguments."""
        name, code = self.spec.name, self.spec.code
        parameters, count = code.parameters, code.positional
        if len(args) > count:
            least = len(set(parameters[:count]).difference(code.defaulted))
            takes = f"{count}" if least == count else f"from {least} to {count}"
            raise TypeError(
                f"{name}() takes {takes} positional argument{'s' * (count != 1)} but {len(args)} "
                f"{'was' if len(args) == 1 else 'were'} given"
            )
        scope = dict(zip(parameters, args, strict=False))
        for word, value in keywords.items():
            if word not in parameters:
                raise TypeError(f"{name}() got an unexpected keyword argument {word!r}")
            if word in scope:
                raise TypeError(f"{name}() got multiple values for argument {word!r}")
            scope[word] = value
        for word, value in zip(code.defaulted, self.defaults, strict=True):
            scope.setdefault(word, value)
        for kind, named in (
            ("positional", parameters[:count]),
            ("keyword-only", parameters[count:]),
        ):
            missing = [word for word in named if word not in scope]
            if not missing:
                continue
            listed = " and ".join(
                filter(None, [", ".join(map(repr, missing[:-1])), repr(missing[-1])])
            )
            raise TypeError(
                f"{name}() missing {len(missing)} required {kind} "
                f"argument{'s' * (len(missing) > 1)}: {listed}"
            )
        return scope


UserFunction.__name__ = "function"  # type: ignore[method-assign, assignment]  # in messages
UserFunction.__module__ = "builtins"


class Frame:
    """One call in progress."""

    __slots__ = (
        *("at", "blocks", "closure", "code", "failed", "instructions"),
        *("row", "scope", "stack", "where"),
    )

    def __init__(
        self,
        code: Code,
        scope: dict[str, Any],
        closure: tuple[dict[str, Any], ...],
        where: int,
    ) -> None:
        self.code = code
        self.scope = scope
        self.closure = closure
        self.where = where  # the row of the call, in the caller's program
        self.stack: list[Any] = []
        # (where to go on an exception, height of the stack) of `try`, (None, context manager) of `with`
        self.blocks: list[tuple[int | None, Any]] = []
        self.row = -1  # of the instruction that failed
        self.failed: tuple[Any, Any] = (None, None)  # its operands, or arguments and callee
        self.at, self.instructions = 0, iter(code.blocks[0])

    def go(self, block: int) -> None:
        """Continue at the start of a block."""
        self.at, self.instructions = block, iter(self.code.blocks[block])


def called_back(machine: Machine, frame: Frame) -> Any:
    """Run a frame for a call from Python or the engine: its result, or a generator's next item."""
    if machine.runs >= MAX_NESTED_RUNS:
        raise RecursionError("maximum recursion depth exceeded")
    return execute(machine, frame)


def execute(machine: Machine, first: Frame) -> Any:
    """Run a frame, and those it calls, until it returns."""
    frames: list[Frame] = [first]
    machine.runs += 1
    machine.depth += 1
    try:
        value = None
        while frames:
            try:
                value = _run(machine, frames)
            except Exception as error:  # what a program may catch, and what ends it
                top, calls = frames[-1], _calls(frames)
                inner = isinstance(error, LanguageError)
                cause = (error.__cause__ or error) if inner else error
                # A program that catches everything could otherwise go on after its last step.
                if not isinstance(cause, StepLimit) and _caught(machine, frames, cause):
                    continue
                _unwind_all(frames, error)
                found = _refused(machine, top, error)
                found.calls = (*calls, *found.calls)
                raise found from (error.__cause__ if inner else error)
            except BaseException as error:
                _unwind_all(frames, error)
                raise
        return value
    finally:
        machine.runs -= 1
        machine.depth -= len(frames)


def _calls(frames: list[Frame]) -> tuple[CallSite, ...]:
    """The calls that led to the innermost frame, outermost first, without comprehensions."""
    return tuple(
        CallSite(frame.code.name, outer.code.program.span(frame.where), outer.code.program.source)
        for outer, frame in pairwise(frames)
        if frame.code.name
    )


def _refused(machine: Machine, frame: Frame, error: Exception) -> LanguageError:
    """The error with its place in the source."""
    from gradcli.language.runtime_errors import called_from, explained

    program, row = frame.code.program, frame.row
    if isinstance(error, LanguageError):
        return called_from(error, program, row, frame.failed[1])
    return explained(program, row, error, frame.failed, {**machine.names, **frame.scope})


def _failed(operation: int, stack: list[Any], a: Any, b: Any) -> tuple[Any, Any]:
    """The values that an error message may show: the operands, or (arguments, callee)."""
    if operation in _HELD:
        return a, b
    if operation in _PAIRED and len(stack) >= 2:
        return stack[-2], stack[-1]
    return (stack[-1] if stack else None), None


def _caught(machine: Machine, frames: list[Frame], error: BaseException) -> bool:
    """Unwind to the nearest `except` and leave the exception on its stack. False if there is none."""
    while True:
        frame = frames[-1]
        while frame.blocks:
            handler, height = frame.blocks.pop()
            if handler is None:
                height.__exit__(type(error), error, error.__traceback__)
                continue
            # What was being computed when the exception came is of no use to the handler.
            del frame.stack[height:]
            frame.stack.append(error)
            frame.go(handler)
            return True
        if len(frames) == 1:
            return False
        frames.pop()
        machine.depth -= 1


def _unwind_all(frames: list[Frame], error: BaseException) -> None:
    for frame in reversed(frames):
        while frame.blocks:
            handler, manager = frame.blocks.pop()
            if handler is None:
                manager.__exit__(type(error), error, error.__traceback__)


def _run(machine: Machine, frames: list[Frame]) -> Any:
    """The loop over instructions: runs the innermost frame until it calls another, or returns.

    Errors leave it with what the frame needs to know of the instruction that failed.
    """
    tensor, port, binary, names = machine.tensor, machine.port, ops.BINARY, machine.names
    control = machine.control
    frame = frames[-1]
    code, scope, stack = frame.code, frame.scope, frame.stack
    program, blocks = code.program, code.blocks
    words, constants, rows = program.words, program.constants, program.rows
    push, pop = stack.append, stack.pop
    operation, row, value = 0, -1, None
    a: Any = None
    b: Any = None
    try:
        while True:
            # A `for` over the instructions of a block costs less than an index that is counted; only jumps,
            # which are few, pay for a new iterator. Kinds are asked in the order of how often they occur.
            # An instruction that jumps says where to and leaves this loop over those of a block.
            for operation, argument, row in frame.instructions:
                if operation == _NAME:
                    word = words[argument]
                    push(names[word] if word in names else machine.lookup(word))
                elif operation == _CONSTANT:
                    push(constants[argument])
                elif operation <= _LAST_BINARY:
                    b = pop()
                    a = stack[-1]
                    # A tensor on either side computes by itself; plain values may grow without limit, and
                    # are watched.
                    if type(a) is tensor or (type(b) is tensor and type(a) is not str):
                        value = stack[-1] = binary[operation](a, b)
                        if operation <= _LAST_ARITHMETIC and type(value) is tensor:
                            node = value.node
                            if node is not None:
                                if type(node) is port:
                                    node = node.node
                                # Written out here, as `mark` would be a call for each operator of a
                                # program.
                                node.span = (rows[4 * row + 2], rows[4 * row + 3])
                    else:
                        stack[-1] = ops.plain(operation, a, b)
                elif operation == LOAD_LOCAL:
                    word = words[argument]
                    push(scope[word] if word in scope else _unbound(word))
                elif operation == STORE:
                    word = words[argument]
                    value = scope[word] = pop()
                    if type(value) is tensor:
                        machine.name_value(value, word)
                elif operation == FOR_NEXT:
                    value = next(stack[-1], _MISSING)
                    if value is _MISSING:
                        pop()
                        target = argument
                        break
                    push(value)
                elif operation == JUMP_BACK:
                    if machine.steps is not None:
                        machine.step()
                    target = argument
                    break
                elif operation == JUMP_IF_FALSE:
                    value = not stack[-1]  # what has no truth stays, for the error to show
                    pop()
                    if value:
                        target = argument
                        break
                elif operation >= JUMP:
                    target = control[operation](machine, frames, argument, row)
                    if target is not None:
                        break
                elif _CALL <= operation <= _CALL_KEYWORDS:
                    a = pop_many(stack, argument)
                    b = stack[-1]
                    args, keywords = (a, {}) if operation == _CALL else split_arguments(a)
                    # A call of the program's own function is a frame more in this loop, so depth costs no
                    # stack of Python's.
                    if type(b) is UserFunction and b.machine is machine:
                        if machine.steps is not None:
                            machine.step()
                        machine.enter(frames, b.frame(args, keywords, row))
                        pop()
                        return None
                    value = stack[-1] = ops.call(b, args, keywords)
                    if value is not None:
                        machine.mark(value, (rows[4 * row + 2], rows[4 * row + 3]))
                elif operation == _EXPRESSION:
                    machine.value = pop()
                elif operation == _ASSIGN:
                    value = pop()
                    for assigned in pop_many(stack, argument):
                        bind(machine, scope, assigned, value)
                else:
                    value = simple(machine, program, operation, argument, stack, scope)
                    if operation in MARKED:
                        machine.mark(value, (rows[4 * row + 2], rows[4 * row + 3]))
            else:
                target = frame.at + 1
                if target == len(blocks):  # of a program: functions end in RETURN
                    frames.pop()
                    machine.depth -= 1
                    return None
            if target < 0:  # another frame is the innermost one now
                value, machine.returned = machine.returned, None
                return value
            frame.at, frame.instructions = target, iter(blocks[target])
    except BaseException:
        frame.row, frame.failed = row, _failed(operation, stack, a, b)
        raise


def _unbound(word: str) -> NoReturn:
    text = f"cannot access local variable {word!r} where it is not associated with a value"
    raise UnboundName(word, text)


def run(
    program: Program,
    variables: Mapping[str, Any] | None = None,
    *,
    write: Callable[[str], Any] | None = None,
    max_steps: int | None = None,
) -> Result:
    """Run a program with these names bound.

    `write` takes the text that the program prints (standard output if None). `max_steps` bounds the
    number of loop turns and calls together. The grad mode is restored afterwards, so
    `set_grad_enabled(False)` in a program affects that program only.
    """
    from gradcli.engine.core import modes

    machine = Machine(variables, write=write, max_steps=max_steps)
    local = modes.local
    enabled = local.state is None or local.state.enabled
    try:
        machine.run(program)
    finally:
        if (local.state is None or local.state.enabled) is not enabled:
            modes.change(enabled=enabled)
    return Result(machine.value, machine.names)

"""Run a program with control flow: instructions with jumps, and a frame for each call."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from gradcli.language import lower as low
from gradcli.language import names as known
from gradcli.language import operations as ops
from gradcli.language import tree
from gradcli.language.errors import Call, LanguageError, StepLimit, UnboundName, UnknownName
from gradcli.language.lower import Code, FunctionSpec
from gradcli.language.operations import MARKED, pop_many, simple, split_arguments, unpack
from gradcli.language.program import Program
from gradcli.language.tree import KIND

if TYPE_CHECKING:
    from gradcli.language.interpreter import Machine

MAX_DEPTH = 1000  # calls of a program's functions, as Python has it
MAX_NESTED_RUNS = 40  # of those that come back through the engine: hooks and the like
_NAME, _CONSTANT, _CALL = tree.NAME, tree.CONSTANT, KIND["call"]
_CALL_KEYWORDS, _ATTRIBUTE, _SUBSCRIPT = KIND["call_keywords"], KIND["attribute"], KIND["subscript"]
_LAST_BINARY, _LAST_ARITHMETIC = ops.LAST_BINARY, KIND["bitand"]
_PAIRED = (_SUBSCRIPT, low.INPLACE, low.CHAIN)
_MISSING = object()


class UserFunction:
    """A function of a program: where its code is, and the scopes it was made in."""

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
        if machine.runs >= MAX_NESTED_RUNS:
            raise RecursionError("maximum recursion depth exceeded")
        scope = self.bind(list(args), keywords)
        return execute(machine, Frame(self.spec.code, scope, self.closure, -1))

    def bind(self, args: list[Any], keywords: dict[str, Any]) -> dict[str, Any]:
        """The scope of a call: parameters with their arguments."""
        name, parameters = self.spec.name, self.spec.code.parameters
        if len(args) > len(parameters):
            count = len(parameters)
            least = count - len(self.defaults)
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
        first = len(parameters) - len(self.defaults)
        for word, value in zip(parameters[first:], self.defaults, strict=True):
            scope.setdefault(word, value)
        missing = [word for word in parameters if word not in scope]
        if missing:
            listed = " and ".join(
                filter(None, [", ".join(map(repr, missing[:-1])), repr(missing[-1])])
            )
            raise TypeError(
                f"{name}() missing {len(missing)} required positional "
                f"argument{'s' * (len(missing) > 1)}: {listed}"
            )
        return scope


UserFunction.__name__ = "function"  # type: ignore[method-assign, assignment]  # in messages
UserFunction.__module__ = "builtins"


class Frame:
    """One call in progress."""

    __slots__ = ("blocks", "closure", "code", "pc", "scope", "stack", "where")

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
        self.pc = 0
        self.stack: list[Any] = []
        # (where to go on an exception, height of the stack) of `try`, (None, context manager) of `with`
        self.blocks: list[tuple[int | None, Any]] = []
        self.where = where  # the row of the call, in the caller's program


def run_program(machine: Machine, program: Program) -> None:
    """Run a whole program on the machine's names."""
    execute(machine, Frame(low.lower(program), machine.names, (), -1))


def execute(machine: Machine, first: Frame) -> Any:
    """Run a frame, and those it calls, until it returns."""
    frames: list[Frame] = [first]
    machine.runs += 1
    machine.depth += 1
    try:
        while True:
            try:
                return _run(machine, frames)
            except Exception as error:  # what a program may catch, and what ends it
                top, calls = frames[-1], _calls(frames)
                inner = isinstance(error, LanguageError)
                cause = (error.__cause__ or error) if inner else error
                if not isinstance(cause, StepLimit) and _caught(machine, frames, cause):
                    continue
                _unwind_all(frames, error)
                found = _refused(machine, top, error)
                found.calls = (*calls, *found.calls)
                raise found from cause
            except BaseException as error:
                _unwind_all(frames, error)
                raise
    finally:
        machine.runs -= 1
        machine.depth -= len(frames)


def _calls(frames: list[Frame]) -> tuple[Call, ...]:
    """The calls that led to the innermost frame, outermost first."""
    return tuple(
        Call(frame.code.name, outer.code.program.span(frame.where), outer.code.program.source)
        for outer, frame in pairwise(frames)
    )


def _row(frame: Frame) -> int:
    return frame.code.rows[frame.pc - 1]


def _refused(machine: Machine, frame: Frame, error: Exception) -> LanguageError:
    """The error with its place in the source."""
    from gradcli.language.refusals import called_from, refusal

    program, row = frame.code.program, _row(frame)
    if isinstance(error, LanguageError):
        return called_from(error, program, row)
    visible = {**machine.names, **frame.scope}
    return refusal(program, row, error, _operands(frame), visible)


def _operands(frame: Frame) -> tuple[Any, Any]:
    operation, argument = frame.code.operations[frame.pc - 1], frame.code.arguments[frame.pc - 1]
    stack = frame.stack
    if operation in (_CALL, _CALL_KEYWORDS):
        return stack[len(stack) - argument :], stack[-1 - argument]
    if (operation <= _LAST_BINARY or operation in _PAIRED) and len(stack) >= 2:
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
            del frame.stack[height:]
            frame.stack.append(error)
            frame.pc = handler
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
    """The loop over instructions. Errors leave it with every frame's `pc` behind the one that failed."""
    tensor, port = machine.tensor, machine.port
    binary = ops.BINARY
    frame = frames[-1]
    code = frame.code
    operations, arguments = code.operations, code.arguments
    words, constants, rows = code.program.words, code.program.constants, code.program.rows
    scope, stack = frame.scope, frame.stack
    pc = frame.pc
    value: Any
    while True:
        operation, argument = operations[pc], arguments[pc]
        pc += 1
        frame.pc = pc
        if operation == _NAME:
            word = words[argument]
            stack.append(machine.names[word] if word in machine.names else machine.lookup(word))
        elif operation == low.LOAD_LOCAL:
            word = words[argument]
            if word not in scope:
                raise UnboundName(
                    word,
                    f"cannot access local variable {word!r} where it is not associated with a value",
                )
            stack.append(scope[word])
        elif operation == _CONSTANT:
            stack.append(constants[argument])
        elif operation <= _LAST_BINARY:
            b, a = stack[-1], stack[-2]
            if type(a) is tensor or (type(b) is tensor and type(a) is not str):
                value = binary[operation](a, b)
                if operation <= _LAST_ARITHMETIC and type(value) is tensor:
                    node = value.node
                    if node is not None:
                        if type(node) is port:
                            node = node.node
                        row = 4 * code.rows[pc - 1]
                        node.span = (rows[row + 2], rows[row + 3])
            else:
                value = ops.plain(operation, a, b)
            stack.pop()
            stack[-1] = value
        elif operation in (_CALL, _CALL_KEYWORDS):
            callee = stack[-1 - argument]
            if type(callee) is UserFunction and callee.machine is machine:
                machine.step()
                if machine.depth >= MAX_DEPTH:
                    raise RecursionError("maximum recursion depth exceeded")
                items = stack[len(stack) - argument :] if argument else []
                args, keywords = split_arguments(items)
                called = Frame(
                    callee.spec.code,
                    callee.bind(args, keywords),
                    callee.closure,
                    code.rows[pc - 1],
                )
                del stack[len(stack) - argument - 1 :]
                machine.depth += 1
                frames.append(called)
                frame = called
                code = frame.code
                operations, arguments = code.operations, code.arguments
                words, constants = code.program.words, code.program.constants
                rows, scope, stack, pc = code.program.rows, frame.scope, frame.stack, 0
                continue
            items = stack[len(stack) - argument :] if argument else []
            args, keywords = split_arguments(items)
            value = ops.call(callee, args, keywords)
            del stack[len(stack) - argument :]
            stack[-1] = value
            if value is not None:
                machine.mark(value, code.program.span(code.rows[pc - 1]))
        elif operation == low.RETURN:
            value = stack.pop() if argument else None
            if len(frames) == 1:
                return value
            frames.pop()
            machine.depth -= 1
            frame = frames[-1]
            code = frame.code
            operations, arguments = code.operations, code.arguments
            words, constants = code.program.words, code.program.constants
            rows, scope, stack, pc = code.program.rows, frame.scope, frame.stack, frame.pc
            stack.append(value)
        elif operation == low.STORE:
            word = words[argument]
            value = scope[word] = stack.pop()
            if type(value) is tensor:
                machine.name_value(value, word)
        elif operation == low.JUMP_IF_FALSE:
            if not stack[-1]:
                pc = argument
            stack.pop()
        elif operation == low.JUMP:
            pc = argument
        elif operation == low.JUMP_BACK:
            machine.step()
            pc = argument
        elif operation < 128:
            value = simple(machine, code.program, operation, argument, stack, scope)
            if operation in MARKED:
                machine.mark(value, code.program.span(code.rows[pc - 1]))
        elif operation == low.FOR_NEXT:
            value = next(stack[-1], _MISSING)
            if value is _MISSING:
                stack.pop()
                pc = argument
            else:
                stack.append(value)
        elif operation == low.DISPLAY:
            machine.value = stack.pop()
        elif operation == low.POP:
            stack.pop()
        elif operation == low.AND_JUMP:
            if stack[-1]:
                stack.pop()
            else:
                pc = argument
        elif operation == low.OR_JUMP:
            if stack[-1]:
                pc = argument
            else:
                stack.pop()
        elif operation == low.CHAIN:
            kind, target = argument
            b, a = stack[-1], stack[-2]
            value = binary[kind](a, b)
            stack.pop()
            if value:
                stack[-1] = b
            else:
                stack[-1] = value
                pc = target
        else:
            jump = _rare(machine, frame, operation, argument)
            if jump is not None:
                pc = jump


def _rare(machine: Machine, frame: Frame, operation: int, argument: Any) -> int | None:
    """The instructions that are seldom run; returns where to go on, if not behind this one."""
    stack, scope, code = frame.stack, frame.scope, frame.code
    words = code.program.words
    if operation == low.LOAD_OUTER:
        stack.append(_outer(frame, words[argument]))
    elif operation == low.STORE_ATTRIBUTE:
        known.set_attribute(stack[-1], words[argument], stack[-2])
        del stack[-2:]
    elif operation == low.STORE_ATTRIBUTE_BELOW:
        known.set_attribute(stack[-2], words[argument], stack[-1])
        del stack[-2:]
    elif operation == low.STORE_SUBSCRIPT:
        ops.set_subscript(stack[-2], stack[-1], stack[-3])
        del stack[-3:]
    elif operation == low.STORE_SUBSCRIPT_BELOW:
        ops.set_subscript(stack[-3], stack[-2], stack[-1])
        del stack[-3:]
    elif operation == low.UNPACK:
        items = unpack(stack[-1], argument)
        stack.pop()
        stack.extend(reversed(items))
    elif operation == low.DUPLICATE:
        stack.append(stack[-1])
    elif operation == low.DUPLICATE_TWO:
        stack.extend(stack[-2:])
    elif operation == low.INPLACE:
        _inplace(machine, frame, argument)
    elif operation == low.MAKE_FUNCTION:
        spec, count = argument
        closure = frame.closure if scope is machine.names else (scope, *frame.closure)
        stack.append(UserFunction(machine, spec, closure, pop_many(stack, count)))
    elif operation == low.GET_ITERATOR:
        stack[-1] = iterator(stack[-1])
    elif operation == low.ASSERT_FAILED:
        raise AssertionError(known.shown(stack.pop()) if argument else "assertion failed")
    elif operation == low.WITH_ENTER:
        manager = stack[-1]
        _check_manager(manager)
        stack[-1] = manager.__enter__()
        frame.blocks.append((None, manager))
    elif operation == low.WITH_EXIT:
        _, manager = frame.blocks.pop()
        manager.__exit__(None, None, None)
    elif operation == low.TRY_PUSH:
        frame.blocks.append((argument, len(stack)))
    elif operation == low.TRY_POP:
        frame.blocks.pop()
    elif operation == low.MATCH:
        wanted = stack.pop()
        if not _matches(stack[-1], wanted):
            return int(argument)
    elif operation == low.RAISE_AGAIN:
        raise stack.pop()
    elif operation == low.DELETE:
        scope.pop(words[argument], None)
    else:
        raise AssertionError(f"no instruction {operation}")
    return None


def _outer(frame: Frame, word: str) -> Any:
    for scope in frame.closure:
        if word in scope:
            return scope[word]
    raise UnknownName(
        word,
        f"cannot access free variable {word!r} where it is not associated with a value in enclosing scope",
    )


def _inplace(machine: Machine, frame: Frame, kind: int) -> None:
    stack = frame.stack
    b, a = stack[-1], stack[-2]
    if not (isinstance(a, machine.tensor) or isinstance(b, machine.tensor)):
        ops.guard(kind, a, b)
    value = ops.INPLACE[kind](a, b)
    stack.pop()
    stack[-1] = value
    machine.mark(value, frame.code.program.span(_row(frame)))


def iterator(value: Any) -> Iterator[Any]:
    """What `for` goes through."""
    return iter(value)


def _check_manager(manager: Any) -> None:
    if not hasattr(type(manager), "__enter__"):
        raise TypeError(
            f"{type(manager).__name__!r} object does not support the context manager protocol"
        )


def _matches(error: BaseException, wanted: Any) -> bool:
    kinds = wanted if isinstance(wanted, tuple) else (wanted,)
    for kind in kinds:
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            raise TypeError(
                "catching classes that do not inherit from BaseException is not allowed"
            )
    return isinstance(error, kinds)

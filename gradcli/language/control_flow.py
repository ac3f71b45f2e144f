"""The instructions of control flow, each a function of the machine, its frames, the argument and the row.

What it returns is the block to go on at, None for the next instruction, or LEFT where another frame is the
innermost one now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import gradcli.engine.system.budget as budget
from gradcli.language import names as known
from gradcli.language import operations as ops
from gradcli.language import tree_kinds
from gradcli.language.located_errors import UnknownName

if TYPE_CHECKING:
    from gradcli.language.interpreter import Frame, Machine


LEFT = -1


def _jump(machine: Machine, frames: list[Frame], argument: Any, row: int) -> Any:
    return argument


def _and_jump(machine: Machine, frames: list[Frame], argument: Any, row: int) -> Any:
    stack = frames[-1].stack
    if not stack[-1]:
        return argument
    stack.pop()
    return None


def _or_jump(machine: Machine, frames: list[Frame], argument: Any, row: int) -> Any:
    stack = frames[-1].stack
    if stack[-1]:
        return argument
    stack.pop()
    return None


def _chain(machine: Machine, frames: list[Frame], argument: Any, row: int) -> Any:
    """`a < b < c`: the first comparison, and a jump where it is false."""
    kind, end = argument
    stack = frames[-1].stack
    b = stack[-1]
    # On the stack are a and b of `a < b < c`. If a < b, b stays for the next comparison; if not, what the
    # comparison gave is the value of the whole chain. Nothing is taken off before the comparison is done,
    # so that an error can show both operands.
    value = ops.BINARY[kind](stack[-2], b)
    stack.pop()
    stack[-1] = b if value else value
    return None if value else end


def _return(machine: Machine, frames: list[Frame], argument: Any, row: int) -> int:
    value = frames.pop().stack.pop()
    machine.depth -= 1
    if frames:
        frames[-1].stack.append(value)
    else:
        machine.returned = value
    return LEFT


def _make_function(machine: Machine, frames: list[Frame], argument: Any, row: int) -> None:
    spec, count = argument
    frame = frames[-1]
    defaults = ops.pop_many(frame.stack, count)
    frame.stack.append(machine.function(frame, spec, defaults))


def _comprehend(machine: Machine, frames: list[Frame], spec: Any, row: int) -> Any:
    """Begin a comprehension over the iterator on the stack; a generator takes its place."""
    outer = frames[-1]
    inner = machine.comprehension(outer, spec, row)
    if inner is None:
        return None
    machine.enter(frames, inner)
    outer.stack.pop()
    return LEFT


def _seldom(operation: int) -> Callable[[Machine, list[Frame], Any, int], Any]:
    """The function of an instruction that runs seldom."""

    def run(machine: Machine, frames: list[Frame], argument: Any, row: int) -> Any:
        return argument if _jumps(machine, frames[-1], operation, argument, row) else None

    return run


def _jumps(machine: Machine, frame: Frame, operation: int, argument: Any, row: int) -> bool:
    """Run one of these instructions; True if it jumps to its argument."""
    stack, scope, code = frame.stack, frame.scope, frame.code
    words = code.program.words
    # In the order of the list in `tree_kinds`. Stores ending in BELOW find the new value on top of the
    # holder, as `x.grad += 1` leaves it; the others find it below the holder, as `x.grad = y` does.
    if operation == tree_kinds.POP:
        stack.pop()
    elif operation == tree_kinds.COLLECT:
        ops.collect(stack[0], stack.pop())
    elif operation == tree_kinds.LOAD_OUTER:
        stack.append(_outer(frame, words[argument]))
    elif operation == tree_kinds.STORE_ATTRIBUTE:
        known.set_attribute(stack[-1], words[argument], stack[-2])
        del stack[-2:]
    elif operation == tree_kinds.STORE_ATTRIBUTE_BELOW:
        known.set_attribute(stack[-2], words[argument], stack[-1])
        del stack[-2:]
    elif operation == tree_kinds.STORE_SUBSCRIPT:
        _set_subscript(machine, frame, row, stack[-2], stack[-1], stack[-3])
        del stack[-3:]
    elif operation == tree_kinds.STORE_SUBSCRIPT_BELOW:
        _set_subscript(machine, frame, row, stack[-3], stack[-2], stack[-1])
        del stack[-3:]
    elif operation == tree_kinds.UNPACK:
        items = ops.unpack(stack[-1], argument)
        stack.pop()
        stack.extend(reversed(items))
    elif operation == tree_kinds.DUPLICATE:
        stack.append(stack[-1])
    elif operation == tree_kinds.DUPLICATE_TWO:
        stack.extend(stack[-2:])
    elif operation == tree_kinds.INPLACE:
        _inplace(machine, frame, argument, row)
    elif operation == tree_kinds.GET_ITERATOR:
        stack[-1] = iterator(stack[-1])
    elif operation == tree_kinds.ASSERT_FAILED:
        raise AssertionError(known.shown(stack.pop()) if argument else "assertion failed")
    elif operation == tree_kinds.WITH_ENTER:
        manager = stack[-1]
        _check_manager(manager)
        stack[-1] = manager.__enter__()
        frame.blocks.append((None, manager))
    elif operation == tree_kinds.WITH_EXIT:
        _, manager = frame.blocks.pop()
        manager.__exit__(None, None, None)
    elif operation == tree_kinds.TRY_PUSH:
        frame.blocks.append((argument, len(stack)))
    elif operation == tree_kinds.TRY_POP:
        frame.blocks.pop()
    elif operation == tree_kinds.MATCH:
        wanted = stack.pop()
        if not _matches(stack[-1], wanted):
            return True
    elif operation == tree_kinds.RAISE_AGAIN:
        raise stack.pop()
    elif operation == tree_kinds.DELETE:
        scope.pop(words[argument], None)
    else:
        raise AssertionError(f"no instruction {operation}")
    return False


def _outer(frame: Frame, word: str) -> Any:
    for scope in frame.closure:
        if word in scope:
            return scope[word]
    raise UnknownName(
        word,
        f"cannot access free variable {word!r} where it is not associated with a value in enclosing scope",
    )


def _inplace(machine: Machine, frame: Frame, kind: int, row: int) -> None:
    stack = frame.stack
    b, a = stack[-1], stack[-2]
    if not (isinstance(a, machine.tensor) or isinstance(b, machine.tensor)):
        if type(a) is list and type(b) not in (
            list,
            tuple,
            int,
        ):  # what extends a list, or is refused
            # `a += (x for …)` may have no end: it is counted while it is collected, before a grows.
            b = budget.collected(b)
        ops.guard(kind, a, b)
    value = ops.INPLACE[kind](a, b)
    stack.pop()
    stack[-1] = value
    machine.mark(value, frame.code.program.span(row))


def _set_subscript(
    machine: Machine, frame: Frame, row: int, value: Any, index: Any, new: Any
) -> None:
    ops.set_subscript(value, index, new)
    if isinstance(value, machine.tensor):
        machine.mark(value, frame.code.program.span(row))


def iterator(value: Any) -> Iterator[Any]:
    """The iterator of a `for` loop over a value."""
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


CONTROL: dict[int, Callable[[Machine, list[Frame], Any, int], Any]] = {
    kind: _seldom(kind) for kind in range(tree_kinds.JUMP, tree_kinds.COLLECT + 1)
} | {
    tree_kinds.JUMP: _jump,
    tree_kinds.AND_JUMP: _and_jump,
    tree_kinds.OR_JUMP: _or_jump,
    tree_kinds.CHAIN: _chain,
    tree_kinds.RETURN: _return,
    tree_kinds.MAKE_FUNCTION: _make_function,
    tree_kinds.COMPREHEND: _comprehend,
}

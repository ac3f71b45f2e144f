"""Instructions of control flow that run too seldom to be in the interpreter's loop."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import gradcli.system.budget as budget
from gradcli.language import names as known
from gradcli.language import operations as ops
from gradcli.language import tree_kinds
from gradcli.language.located_errors import UnknownName
from gradcli.language.operations import unpack

if TYPE_CHECKING:
    from gradcli.language.interpreter import Frame, Machine


def seldom(machine: Machine, frame: Frame, operation: int, argument: Any, row: int) -> bool:
    """Run one of these instructions; True if it jumps to its argument."""
    stack, scope, code = frame.stack, frame.scope, frame.code
    words = code.program.words
    if operation == tree_kinds.LOAD_OUTER:
        stack.append(_outer(frame, words[argument]))
    elif operation == tree_kinds.STORE_ATTRIBUTE:
        known.set_attribute(stack[-1], words[argument], stack[-2])
        del stack[-2:]
    elif operation == tree_kinds.STORE_ATTRIBUTE_BELOW:
        known.set_attribute(stack[-2], words[argument], stack[-1])
        del stack[-2:]
    elif operation == tree_kinds.STORE_SUBSCRIPT:
        ops.set_subscript(stack[-2], stack[-1], stack[-3])
        del stack[-3:]
    elif operation == tree_kinds.STORE_SUBSCRIPT_BELOW:
        ops.set_subscript(stack[-3], stack[-2], stack[-1])
        del stack[-3:]
    elif operation == tree_kinds.UNPACK:
        items = unpack(stack[-1], argument)
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
            b = budget.collected(b)
        ops.guard(kind, a, b)
    value = ops.INPLACE[kind](a, b)
    stack.pop()
    stack[-1] = value
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

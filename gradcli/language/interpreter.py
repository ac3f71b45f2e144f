"""Run a program: a stack of values, a stack of frames, and no recursion over text or tree."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from gradcli.language import names as known
from gradcli.language import operations as ops
from gradcli.language import tree
from gradcli.language.errors import LanguageError, StepLimit, UnknownName
from gradcli.language.operations import MARKED, bind, pop_many, simple
from gradcli.language.program import Program
from gradcli.language.tree import KIND
from gradcli.visible import visible

_NAME, _CONSTANT = tree.NAME, tree.CONSTANT
_LAST_BINARY, _LAST_ARITHMETIC = ops.LAST_BINARY, KIND["bitand"]
_CALL, _EXPRESSION, _ASSIGN, _BLOCK = (
    KIND["call"],
    KIND["expression"],
    KIND["assign"],
    KIND["block"],
)
_CALL_KEYWORDS, _SUBSCRIPT = KIND["call_keywords"], KIND["subscript"]


class Result:
    """What a program leaves: the value of its last expression, and all its names."""

    __slots__ = ("names", "value")

    def __init__(self, value: Any, names: dict[str, Any]) -> None:
        self.value = value
        self.names = names


class Machine:
    """What the frames of one run share."""

    def __init__(
        self,
        variables: Mapping[str, Any] | None = None,
        *,
        write: Callable[[str], Any] | None = None,
        max_steps: int | None = None,
    ) -> None:
        from gradcli.engine.node import Port
        from gradcli.engine.tensor import LAZY, Tensor

        self.names: dict[str, Any] = dict(variables or {})
        self.value: Any = None
        self.write = write
        self.steps = max_steps
        self.max_steps = max_steps
        self.depth = 0
        self.runs = 0
        self.tensor, self.port, self.lazy = Tensor, Port, LAZY
        loaded = False
        for name, value in self.names.items():
            if isinstance(value, Tensor):
                if not loaded:
                    from gradcli.operators import table

                    table.base()  # operators of tensors are rows of the table
                    loaded = True
                if value.label is None:
                    value.label = name

    def run(self, program: Program) -> Any:
        """Run a program on the machine's names; returns the value of its last expression."""
        self.value = None
        if program.straight:
            run_straight(self, program)
        else:
            from gradcli.language.frames import run_program

            run_program(self, program)
        return self.value

    def lookup(self, word: str) -> Any:
        """What a name means that no assignment has bound."""
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
        if self.write is not None:
            self.write(text)
        elif sys.stdout is None:
            raise LanguageError("standard output is closed", kind="file", usage=False)
        else:
            sys.stdout.write(visible(text))

    def display(self, *values: Any) -> None:
        """IPython's display: what a notebook shows for each value."""
        from gradcli.language.display import pretty

        for value in values:
            self.print(pretty(value))

    def step(self) -> None:
        """Count one turn of a loop or one call."""
        if self.steps is not None:
            self.steps -= 1
            if self.steps < 0:
                raise StepLimit(
                    f"the program took more than {self.max_steps} steps (loop turns and calls)"
                )

    def mark(self, value: Any, span: tuple[int, int]) -> None:
        """Give the node of a result its place in the source, unless it has one."""
        if isinstance(value, self.tensor):
            node = value.node
            if node is not None and node is not self.lazy:
                if type(node) is self.port:
                    node = node.node
                if node.span is None:
                    node.span = span
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


def run_straight(machine: Machine, program: Program) -> None:
    """Run rows from front to back. The caller has seen to it that none of them jumps."""
    tensor, port = machine.tensor, machine.port
    names, words, constants = machine.names, program.words, program.constants
    rows, binary = program.rows, ops.BINARY
    stack: list[Any] = []
    push, pop = stack.append, stack.pop
    row = -1
    a: Any = None
    b: Any = None
    try:
        for kind, operand in zip(program.kinds, program.operands, strict=True):
            row += 1
            if kind == _NAME:
                word = words[operand]
                push(names[word] if word in names else machine.lookup(word))
            elif kind == _CONSTANT:
                push(constants[operand])
            elif kind <= _LAST_BINARY:
                b = pop()
                a = stack[-1]
                if type(a) is tensor or (type(b) is tensor and type(a) is not str):
                    value = stack[-1] = binary[kind](a, b)
                    if kind <= _LAST_ARITHMETIC and type(value) is tensor:
                        node = value.node
                        if node is not None:
                            if type(node) is port:
                                node = node.node
                            node.span = (rows[4 * row + 2], rows[4 * row + 3])
                else:
                    stack[-1] = ops.plain(kind, a, b)
            elif kind == _CALL:
                a = pop_many(stack, operand)
                b = stack[-1]
                value = stack[-1] = ops.call(b, a, {})
                if value is not None:
                    machine.mark(value, (rows[4 * row + 2], rows[4 * row + 3]))
            elif kind == _EXPRESSION:
                machine.value = pop()
            elif kind == _ASSIGN:
                value = pop()
                for target in pop_many(stack, operand):
                    bind(machine, names, target, value)
            elif kind != _BLOCK:
                a, b = failing(kind, operand, stack)
                value = simple(machine, program, kind, operand, stack, names)
                if kind in MARKED:
                    machine.mark(value, (rows[4 * row + 2], rows[4 * row + 3]))
    except LanguageError as error:
        from gradcli.language.refusals import called_from

        raise called_from(error, program, row, b) from error.__cause__
    except Exception as error:  # whatever ends a program is shown where it happened
        from gradcli.language.refusals import refusal

        raise refusal(program, row, error, (a, b), machine.names) from error


def failing(kind: int, operand: int, stack: list[Any]) -> tuple[Any, Any]:
    """What an error of this row will want to show: (arguments, callee), or the operands."""
    if kind == _CALL_KEYWORDS:
        return stack[len(stack) - operand :], stack[-1 - operand]
    if kind == _SUBSCRIPT:
        return stack[-2], stack[-1]
    return (stack[-1] if stack else None), None


def run(
    program: Program,
    variables: Mapping[str, Any] | None = None,
    *,
    write: Callable[[str], Any] | None = None,
    max_steps: int | None = None,
) -> Result:
    """Run a program with these names bound.

    `write` takes the text that the program prints (standard output if None). `max_steps` bounds the
    number of loop turns and calls together. Whether gradients are recorded is afterwards as it was:
    what the program says with `set_grad_enabled(False)` is said of itself.
    """
    from gradcli.engine import modes

    machine = Machine(variables, write=write, max_steps=max_steps)
    enabled = modes.is_grad_enabled()
    try:
        machine.run(program)
    finally:
        if modes.is_grad_enabled() is not enabled:
            modes.change(enabled=enabled)
    return Result(machine.value, machine.names)

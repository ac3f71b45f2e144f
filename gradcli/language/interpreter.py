"""Run a program: a stack of values, a stack of frames, and no recursion over text or tree."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import gradcli.budget as budget
from gradcli.language import names as known
from gradcli.language import operations as ops
from gradcli.language import tree
from gradcli.language.errors import LanguageError
from gradcli.language.program import Program
from gradcli.language.tree import KIND
from gradcli.visible import visible

MAX_DEPTH = 1000  # calls of a program's functions, as Python has it
MAX_NESTED_RUNS = 40  # of those that come back through the engine: hooks and the like

_NAME, _CONSTANT = tree.NAME, tree.CONSTANT
_LAST_BINARY, _LAST_ARITHMETIC = ops.LAST_BINARY, KIND["bitand"]
_ATTRIBUTE, _CALL, _CALL_KEYWORDS = KIND["attribute"], KIND["call"], KIND["call_keywords"]
_SUBSCRIPT, _NOT, _NEG, _INVERT = KIND["subscript"], KIND["not"], KIND["neg"], KIND["invert"]
_TARGET, _KEYWORD_NAME, _KEYWORD = KIND["target"], KIND["keyword_name"], KIND["keyword"]
_WALRUS = KIND["walrus"]
_EXPRESSION, _ASSIGN = KIND["expression"], KIND["assign"]
_TUPLE, _LIST, _SLICE, _PASS = KIND["tuple"], KIND["list"], KIND["slice"], KIND["pass"]
_TARGET_TUPLE, _BLOCK, _MODULE = KIND["target_tuple"], KIND["block"], KIND["module"]
_JOINED, _FORMAT, _FORMAT_SPEC = KIND["joined"], KIND["format"], KIND["format_spec"]
_CONVERT, _CONCATENATE = KIND["convert"], KIND["concatenate"]
_IMPORT_MODULE, _IMPORT_MODULE_AS = KIND["import_module"], KIND["import_module_as"]
_IMPORT, _IMPORT_FROM = KIND["import"], KIND["import_from"]


class Result:
    """What a program leaves: the value of its last expression, and all its names."""

    __slots__ = ("names", "value")

    def __init__(self, value: Any, names: dict[str, Any]) -> None:
        self.value = value
        self.names = names


class Keyword:
    """A keyword argument on its way to a call."""

    __slots__ = ("name", "value")

    def __init__(self, name: str, value: Any) -> None:
        self.name = name
        self.value = value


class Field:
    """A value with the conversion an f-string wants of it."""

    __slots__ = ("conversion", "value")

    def __init__(self, value: Any, conversion: str) -> None:
        self.value = value
        self.conversion = conversion


class UnknownName(NameError):
    """A name that is neither bound nor known."""

    def __init__(self, name: str, message: str | None = None) -> None:
        super().__init__(message or f"name {name!r} is not defined")
        self.word = name


class UnboundName(UnknownName, UnboundLocalError):
    """A function's own name that is read before it is assigned."""


class StepLimit(Exception):
    """More loop turns and calls than --max-steps allows. Programs cannot catch it."""


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


def bind(machine: Machine, scope: dict[str, Any], target: Any, value: Any) -> None:
    """Assign to a name (a string) or to a tuple of targets."""
    waiting = [(target, value)]
    while waiting:
        target, value = waiting.pop()
        if type(target) is str:
            scope[target] = value
            if isinstance(value, machine.tensor):
                machine.name_value(value, target)
        else:
            values = unpack(value, len(target))
            waiting.extend(zip(reversed(target), reversed(values), strict=True))


def unpack(value: Any, count: int) -> list[Any]:
    """The `count` items of a value that is assigned to several targets."""
    try:
        items = iter(value)
    except TypeError:
        raise TypeError(f"cannot unpack non-iterable {type(value).__name__} object") from None
    found = []
    for item in items:
        found.append(item)
        if len(found) > count:
            raise ValueError(f"too many values to unpack (expected {count})")
    if len(found) < count:
        raise ValueError(f"not enough values to unpack (expected {count}, got {len(found)})")
    return found


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


def pop_many(stack: list[Any], count: int) -> list[Any]:
    """The last `count` values, taken off the stack."""
    if not count:
        return []
    found = stack[-count:]
    del stack[-count:]
    return found


def split_arguments(items: list[Any]) -> tuple[list[Any], dict[str, Any]]:
    """Positional and keyword arguments of a call."""
    if not items or type(items[-1]) is not Keyword:
        return items, {}
    args = [item for item in items if type(item) is not Keyword]
    keywords: dict[str, Any] = {}
    for item in items[len(args) :]:
        if item.name in keywords:
            raise TypeError(f"keyword argument repeated: {item.name}")
        keywords[item.name] = item.value
    return args, keywords


# Rows whose result may carry a new node.
MARKED = frozenset((_ATTRIBUTE, _CALL, _CALL_KEYWORDS, _SUBSCRIPT, _NEG, _INVERT, KIND["pos"]))


def simple(
    machine: Machine,
    program: Program,
    kind: int,
    operand: int,
    stack: list[Any],
    scope: dict[str, Any],
) -> Any:
    """Do one row that neither jumps nor is hot; returns what it left on the stack."""
    words = program.words
    value: Any
    if kind == _ATTRIBUTE:
        value = stack[-1] = known.attribute(stack[-1], words[operand])
        return value
    if kind in ops.UNARY:
        value = stack[-1] = ops.UNARY[kind](stack[-1])
        return value
    if kind == _CALL_KEYWORDS:
        args, keywords = split_arguments(pop_many(stack, operand))
        value = stack[-1] = ops.call(stack[-1], args, keywords)
        return value
    if kind == _SUBSCRIPT:
        value = ops.subscript(stack[-2], stack[-1])
        stack.pop()
        stack[-1] = value
        return value
    if kind in (_TARGET, _KEYWORD_NAME):
        stack.append(words[operand])
    elif kind == _WALRUS:
        value = stack.pop()
        bind(machine, scope, stack[-1], value)
        stack[-1] = value
    elif kind == _KEYWORD:
        value = stack.pop()
        stack[-1] = Keyword(stack[-1], value)
    elif kind in (_TUPLE, _TARGET_TUPLE):
        stack.append(tuple(pop_many(stack, operand)))
    elif kind == _LIST:
        stack.append(pop_many(stack, operand))
    elif kind == _SLICE:
        stack.append(ops.make_slice(operand, pop_many(stack, operand.bit_count())))
    elif kind == _NOT:
        stack[-1] = not ops.truth(stack[-1])
    elif kind == _CONCATENATE:
        value = stack.pop()
        stack[-1] += value
    elif kind == _CONVERT:
        stack[-1] = Field(stack[-1], program.constants[operand])
    elif kind in (_FORMAT, _FORMAT_SPEC):
        specification = stack.pop() if kind == _FORMAT_SPEC else ""
        value, conversion = stack[-1], None
        if type(value) is Field:
            value, conversion = value.value, value.conversion
        stack[-1] = known.formatted(value, conversion, specification)
    elif kind == _JOINED:
        pieces = pop_many(stack, operand)
        budget.items(sum(map(len, pieces)), "a string")
        stack.append("".join(pieces))
    elif kind == _MODULE:
        stack.append(known.ModulePath(words[operand]))
    elif kind == _IMPORT_MODULE_AS:
        name = stack.pop()
        stack[-1] = (stack[-1], name)
    elif kind == _IMPORT_MODULE:
        stack[-1] = (stack[-1], None)
    elif kind == _IMPORT:
        for path, name in pop_many(stack, operand):
            found = known.imported(path)
            root = path.partition(".")[0]
            scope[name or root] = found if name else known.imported(root)
    elif kind == _IMPORT_FROM:
        items = pop_many(stack, operand)
        module = known.imported(stack.pop())
        for path, name in items:
            try:
                scope[name or path] = known.attribute(module, str(path))
            except AttributeError:
                raise ImportError(f"cannot import name {str(path)!r} from {module!r}") from None
    elif kind != _PASS:
        raise AssertionError(f"a row of kind {tree.KINDS[kind]} is not simple")
    return None


def run(
    program: Program,
    variables: Mapping[str, Any] | None = None,
    *,
    write: Callable[[str], Any] | None = None,
    max_steps: int | None = None,
) -> Result:
    """Run a program with these names bound.

    `write` takes the text that the program prints (standard output if None). `max_steps` bounds the
    number of loop turns and calls together.
    """
    machine = Machine(variables, write=write, max_steps=max_steps)
    machine.run(program)
    return Result(machine.value, machine.names)

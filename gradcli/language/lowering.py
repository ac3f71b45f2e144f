"""Lowering: from the tree to instructions with jumps, for programs with control flow.

An instruction is (operation, argument, row). Operations below 128 are kinds of rows and mean what they mean
in a straight program; those from 128 up are listed in `tree_kinds.py`. Instructions are kept in blocks: one
runs from its first to its last, and on into the next, unless an instruction jumps to the first of another.
The walk over the tree is a list of things to do.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Any

from gradcli.language import tree_kinds
from gradcli.language.names import Generator
from gradcli.language.program import Code, Program
from gradcli.language.scope_checks import local_names, parameters

_K = tree_kinds.KIND


class Label:
    """A block to jump to, known once everything before it is written."""

    __slots__ = ("position",)

    def __init__(self) -> None:
        self.position = -1


class FunctionSpec:
    """A function's or comprehension's place in the tree; its instructions are made when first run."""

    __slots__ = ("_code", "enclosing", "name", "program", "row")

    def __init__(
        self, program: Program, row: int, name: str, enclosing: tuple[frozenset[int], ...]
    ) -> None:
        self.program = program
        self.row = row
        self.name = name
        self.enclosing = enclosing
        self._code: Code | None = None

    @property
    def code(self) -> Code:
        """The instructions of the body."""
        if self._code is None:
            writer = _Writer(self.program, self.name, self.enclosing)
            self._code = writer.function(self.row) if self.name else writer.comprehension(self.row)
        return self._code

    def begun(self) -> Any:
        """The empty collection of a comprehension; for a generator, the sign that it has ended."""
        return _COLLECTIONS[self.program.kinds[self.row]]()


# Where a statement stands: ("loop", break label, continue label, is a for) / ("with",) / ("try",), parent.
Context = tuple[Any, ...] | None


def lower(program: Program) -> Code:
    """The instructions of a whole program."""
    return _Writer(program, "", ()).module()


_CHAINS = {_K[f"chain_{name}"]: _K[name] for name in tree_kinds.COMPARISONS}
_PAIRS = frozenset(_K[name] for name in tree_kinds.COMPARISONS)
_AUGMENTED = {_K[f"{name}_assign"]: _K[name] for name in tree_kinds.BINARY}
_NAME, _TARGET = tree_kinds.NAME, _K["target"]


# What is written, on an example: `while x > 1: x = x/2` and then `x` become two blocks. Rows without
# control flow are copied as they are (`name x; constant 1; gt`). A jump names the block where it goes on.
#
#     0:  name x; constant 1; gt; JUMP_IF_FALSE 1; name x; constant 2; div; STORE x; JUMP_BACK 0
#     1:  name x; expression
#
# A label stands for a block that is not there yet: `JUMP_IF_FALSE end` is written before anybody knows
# how many blocks the body has, and `finish` puts the numbers in.
class _Writer:
    def __init__(self, program: Program, name: str, enclosing: tuple[frozenset[int], ...]) -> None:
        self.program = program
        self.kinds = program.kinds
        self.operands = program.operands
        self.code = Code(program, name, [[]])
        self.enclosing = enclosing
        self.own: frozenset[int] | None = None
        self.todo: list[Callable[[], None]] = []
        control = (kind >= tree_kinds.CONTROL or kind in _REWRITTEN for kind in self.kinds)
        # Sums up to each row: whether a subtree has any control flow is then a difference of two of them.
        self.control = list(accumulate(control, initial=0))

    def module(self) -> Code:
        self._run(lambda: self.row(len(self.program) - 1, None))
        return self.finish()

    def function(self, row: int) -> Code:
        children = self.program.children(row)
        is_lambda = self.kinds[row] == _K["lambda"]
        self.own = local_names(self.program, row)
        for word, default, by_name in parameters(self.program, row):
            name = self.program.words[word]
            self.code.parameters.append(name)
            self.code.positional += not by_name
            self.code.defaulted += [name] if default is not None else []
        body = children[-1]
        self._run(lambda: self.row(body, None))
        if not is_lambda:
            self.emit(tree_kinds.CONSTANT, 0, row)
        self.emit(tree_kinds.RETURN, 1, row)
        return self.finish()

    def comprehension(self, row: int) -> Code:
        """Nested loops; on the stack, the collection is below their iterators, and the first is there."""
        element, *clauses = self.program.children(row)
        self.own = local_names(self.program, row)
        steps: list[Callable[[], None]] = []
        behind: list[Callable[[], None]] = []  # the ends of the loops, innermost first
        for i, clause in enumerate(clauses):
            target, values, *conditions = self.program.children(clause)
            # For `[f(x) for x in xs if c]` the instructions are
            #
            #     again: FOR_NEXT end; STORE x; <c>; JUMP_IF_FALSE skip; <f(x)>; COLLECT
            #     skip:  JUMP_BACK again
            #     end:   RETURN
            #
            # and each further `for` stands inside, in place of the element, with labels of its own.
            again, skip, end = Label(), Label(), Label()
            if i:
                steps += [self.visit(values), self.writes(tree_kinds.GET_ITERATOR, 0, values)]
            steps += [self.place(again), self.writes(tree_kinds.FOR_NEXT, end, values)]
            steps.append(self.store(target))
            for condition in conditions:
                steps += [
                    self.visit(condition),
                    self.writes(tree_kinds.JUMP_IF_FALSE, skip, condition),
                ]
            closing = (
                self.place(skip),
                self.writes(tree_kinds.JUMP_BACK, again, clause),
                self.place(end),
            )
            behind[:0] = closing
        generates = self.kinds[row] == _K["generator"]
        # A generator's frame is left with each item, and goes on from there.
        steps += [
            self.visit(element),
            self.writes(tree_kinds.RETURN if generates else tree_kinds.COLLECT, 0, row),
        ]
        self._run(lambda: self.then(*steps, *behind, self.writes(tree_kinds.RETURN, 0, row)))
        return self.finish()

    def finish(self) -> Code:
        for block in self.code.blocks:
            block[:] = [(kind, _resolved(argument), row) for kind, argument, row in block]
        return self.code

    def _run(self, first: Callable[[], None]) -> None:
        # A list of things to do in place of recursion: a deeply nested program must not meet Python's limit.
        todo = self.todo
        todo.append(first)
        while todo:
            todo.pop()()

    def then(self, *steps: Callable[[], None]) -> None:
        """Do these next, in this order."""
        self.todo.extend(reversed(steps))

    def emit(self, operation: int, argument: Any, row: int) -> None:
        self.code.blocks[-1].append((operation, argument, row))

    def writes(self, operation: int, argument: Any, row: int) -> Callable[[], None]:
        return lambda: self.emit(operation, argument, row)

    def place(self, label: Label) -> Callable[[], None]:
        def do() -> None:
            blocks = self.code.blocks
            # Two labels at one place share a block; an empty block would cost a turn of the loop.
            if blocks[-1]:
                blocks.append([])
            label.position = len(blocks) - 1

        return do

    def visit(self, row: int, context: Context = None) -> Callable[[], None]:
        return lambda: self.row(row, context)

    # -- rows -------------------------------------------------------------------------------------
    def row(self, row: int, context: Context) -> None:
        first = self.program.subtree(row)
        # Nothing in it jumps, so its rows are instructions already.
        if self.control[row + 1] == self.control[first]:
            for i in range(first, row + 1):
                self.copy(i)
            return
        kind = self.kinds[row]
        if kind in _CHAINS:
            self.chain(row)
        elif kind in _AUGMENTED:
            self.augmented(row, _AUGMENTED[kind])
        else:
            special = _SPECIAL.get(kind)
            if special is not None:
                special(self, row, self.program.children(row), context)
            else:
                children = self.program.children(row)
                steps = [self.visit(child, context) for child in children]
                self.then(*steps, lambda: self.copy(row))

    def copy(self, row: int) -> None:
        kind, operand = self.kinds[row], self.operands[row]
        if kind == _NAME and self.own is not None:
            if operand in self.own:
                # Which scope a name is in is known before anything runs, as in Python.
                kind = tree_kinds.LOAD_LOCAL
            elif any(operand in names for names in self.enclosing):
                kind = tree_kinds.LOAD_OUTER
        self.emit(kind, operand, row)

    def block(self, row: int, children: list[int], context: Context) -> None:
        self.then(*[self.visit(child, context) for child in children])

    def expression(self, row: int, children: list[int], context: Context) -> None:
        # In a function an expression's value is dropped; at the top it may be the program's value.
        last = tree_kinds.POP if self.own is not None else _K["expression"]
        self.then(self.visit(children[0]), self.writes(last, 0, row))

    def assign(self, row: int, children: list[int], context: Context) -> None:
        *targets, value = children
        steps = [self.visit(value)]
        # a = b = f(): the value is copied for all targets but the last, from left to right, as Python does.
        for i, target in enumerate(targets):
            if i < len(targets) - 1:
                steps.append(self.writes(tree_kinds.DUPLICATE, 0, row))
            steps.append(self.store(target))
        self.then(*steps)

    def store(self, target: int) -> Callable[[], None]:
        """Write what is on top of the stack to a target."""

        def do() -> None:
            kind = self.kinds[target]
            if kind == _TARGET:
                self.emit(tree_kinds.STORE, self.operands[target], target)
                return
            children = self.program.children(target)
            if kind == _K["target_attribute"]:
                self.then(
                    self.visit(children[0]),
                    self.writes(tree_kinds.STORE_ATTRIBUTE, self.operands[target], target),
                )
            elif kind == _K["target_subscript"]:
                self.then(
                    self.visit(children[0]),
                    self.visit(children[1]),
                    self.writes(tree_kinds.STORE_SUBSCRIPT, 0, target),
                )
            else:
                self.emit(tree_kinds.UNPACK, len(children), target)
                self.then(*[self.store(child) for child in children])

        return do

    def augmented(self, row: int, operator: int) -> None:
        target, value = self.program.children(row)
        kind, operand = self.kinds[target], self.operands[target]
        compute = (self.visit(value), self.writes(tree_kinds.INPLACE, operator, row))
        if kind == _NAME:
            self.then(self.visit(target), *compute, self.writes(tree_kinds.STORE, operand, target))
        elif kind == _K["attribute"]:
            (holder,) = self.program.children(target)
            self.then(
                self.visit(holder),
                self.writes(tree_kinds.DUPLICATE, 0, row),
                self.writes(_K["attribute"], operand, target),
                *compute,
                self.writes(tree_kinds.STORE_ATTRIBUTE_BELOW, operand, target),
            )
        else:
            holder, index = self.program.children(target)
            self.then(
                self.visit(holder),
                self.visit(index),
                self.writes(tree_kinds.DUPLICATE_TWO, 0, row),
                self.writes(_K["subscript"], 0, target),
                *compute,
                self.writes(tree_kinds.STORE_SUBSCRIPT_BELOW, 0, target),
            )

    def chain(self, row: int) -> None:
        """a < b < c: b is computed once, and c only if a < b."""
        links = []
        # A chain leans to the left: (a < b) < c. It is written from its first operand on.
        while self.kinds[row] in _CHAINS:
            before, right = self.program.children(row)
            links.append((row, _CHAINS[self.kinds[row]], right))
            row = before
        left, right = self.program.children(row)
        links.append((row, self.kinds[row], right))
        links.reverse()
        end = Label()
        steps = [self.visit(left)]
        for i, (link, kind, value) in enumerate(links):
            steps.append(self.visit(value))
            if i < len(links) - 1:
                steps.append(self.writes(tree_kinds.CHAIN, (kind, end), link))
            else:
                steps.append(self.writes(kind, 0, link))
        self.then(*steps, self.place(end))

    def logic(self, row: int, children: list[int], context: Context) -> None:
        jump = tree_kinds.AND_JUMP if self.kinds[row] == _K["and"] else tree_kinds.OR_JUMP
        end = Label()
        steps = []
        for child in children[:-1]:
            steps += [self.visit(child), self.writes(jump, end, child)]
        self.then(*steps, self.visit(children[-1]), self.place(end))

    def conditional(self, row: int, children: list[int], context: Context) -> None:
        value, test, other = children
        otherwise, end = Label(), Label()
        self.then(
            self.visit(test),
            self.writes(tree_kinds.JUMP_IF_FALSE, otherwise, test),
            self.visit(value),
            self.writes(tree_kinds.JUMP, end, row),
            self.place(otherwise),
            self.visit(other),
            self.place(end),
        )

    def if_(self, row: int, children: list[int], context: Context) -> None:
        otherwise, end = Label(), Label()
        steps = [
            self.visit(children[0]),
            self.writes(tree_kinds.JUMP_IF_FALSE, otherwise, children[0]),
            self.visit(children[1], context),
        ]
        if len(children) == 3:
            steps += [
                self.writes(tree_kinds.JUMP, end, row),
                self.place(otherwise),
                self.visit(children[2], context),
                self.place(end),
            ]
        else:
            steps.append(self.place(otherwise))
        self.then(*steps)

    def while_(self, row: int, children: list[int], context: Context) -> None:
        test, body = children
        again, end = Label(), Label()
        self.then(
            self.place(again),
            self.visit(test),
            self.writes(tree_kinds.JUMP_IF_FALSE, end, test),
            self.visit(body, ("loop", end, again, False, context)),
            self.writes(tree_kinds.JUMP_BACK, again, row),
            self.place(end),
        )

    def for_(self, row: int, children: list[int], context: Context) -> None:
        target, values, body = children
        again, end = Label(), Label()
        self.then(
            self.visit(values),
            self.writes(tree_kinds.GET_ITERATOR, 0, values),
            self.place(again),
            self.writes(tree_kinds.FOR_NEXT, end, values),
            self.store(target),
            self.visit(body, ("loop", end, again, True, context)),
            self.writes(tree_kinds.JUMP_BACK, again, row),
            self.place(end),
        )

    def leave(self, row: int, context: Context, *, loop: bool) -> Context:
        """Undo `with` and `try` on the way out of a loop's body, or of the function."""
        # A `break` or `return` inside of `with` jumps past its end, so what the end would do is written
        # here again, from the innermost out. A loop is left by `break` at its own end; `return` leaves
        # all of them.
        while context is not None:
            if context[0] == "loop" and loop:
                return context
            if context[0] == "with":
                self.emit(tree_kinds.WITH_EXIT, 0, row)
            elif context[0] == "try":
                self.emit(tree_kinds.TRY_POP, 0, row)
            context = context[-1]
        return None

    def break_(self, row: int, children: list[int], context: Context) -> None:
        found = self.leave(row, context, loop=True)
        assert found is not None
        # The iterator of a `for` is on the stack as long as the loop runs.
        if found[3]:
            self.emit(tree_kinds.POP, 0, row)
        self.emit(tree_kinds.JUMP, found[1], row)

    def continue_(self, row: int, children: list[int], context: Context) -> None:
        found = self.leave(row, context, loop=True)
        assert found is not None
        self.emit(tree_kinds.JUMP_BACK, found[2], row)

    def return_(self, row: int, children: list[int], context: Context) -> None:
        def end() -> None:
            self.leave(row, context, loop=False)
            self.emit(tree_kinds.RETURN, 1, row)

        value = self.visit(children[0]) if children else self.writes(tree_kinds.CONSTANT, 0, row)
        self.then(value, end)

    def assert_(self, row: int, children: list[int], context: Context) -> None:
        fail, end = Label(), Label()
        steps = [
            self.visit(children[0]),
            self.writes(tree_kinds.JUMP_IF_FALSE, fail, children[0]),
            self.writes(tree_kinds.JUMP, end, row),
            self.place(fail),
        ]
        if len(children) == 2:
            steps.append(self.visit(children[1]))
        steps += [
            self.writes(tree_kinds.ASSERT_FAILED, len(children) - 1, children[0]),
            self.place(end),
        ]
        self.then(*steps)

    def function_(self, row: int, children: list[int], context: Context) -> None:
        is_lambda = self.kinds[row] == _K["lambda"]
        name = "<lambda>" if is_lambda else self.program.words[self.operands[children[0]]]
        presets = [p.default for p in parameters(self.program, row) if p.default is not None]
        enclosing = self.enclosing if self.own is None else (self.own, *self.enclosing)
        spec = FunctionSpec(self.program, row, name, enclosing)
        steps = [self.visit(value) for value in presets]
        steps.append(self.writes(tree_kinds.MAKE_FUNCTION, (spec, len(presets)), row))
        if not is_lambda:
            steps.append(self.writes(tree_kinds.STORE, self.operands[children[0]], children[0]))
        self.then(*steps)

    def decorated(self, row: int, children: list[int], context: Context) -> None:
        """The function under its name, and then what the decorator makes of it."""
        decorator, inner = children
        definition = inner
        # Several decorators stand around one function, whose name all of them keep.
        while self.kinds[definition] == _K["decorated"]:
            definition = self.program.children(definition)[1]
        name = self.program.children(definition)[0]
        self.then(
            self.visit(decorator),
            self.visit(inner),
            self.writes(_NAME, self.operands[name], name),
            self.writes(_K["call"], 1, decorator),
            self.writes(tree_kinds.STORE, self.operands[name], name),
        )

    def comprehend(self, row: int, children: list[int], context: Context) -> None:
        values = self.program.children(children[1])[1]
        enclosing = self.enclosing if self.own is None else (self.own, *self.enclosing)
        self.then(
            self.visit(values),
            self.writes(tree_kinds.GET_ITERATOR, 0, values),
            self.writes(tree_kinds.COMPREHEND, FunctionSpec(self.program, row, "", enclosing), row),
        )

    def with_(self, row: int, children: list[int], context: Context) -> None:
        *items, body = children
        steps = []
        for item in items:
            value, *target = self.program.children(item)
            steps += [self.visit(value), self.writes(tree_kinds.WITH_ENTER, 0, value)]
            steps.append(self.store(target[0]) if target else self.writes(tree_kinds.POP, 0, item))
            context = ("with", context)
        steps.append(self.visit(body, context))
        steps += [self.writes(tree_kinds.WITH_EXIT, 0, row) for _ in items]
        self.then(*steps)

    def try_(self, row: int, children: list[int], context: Context) -> None:
        body, *handlers = children
        caught, end = Label(), Label()
        steps = [
            self.writes(tree_kinds.TRY_PUSH, caught, row),
            self.visit(body, ("try", context)),
            self.writes(tree_kinds.TRY_POP, 0, row),
            self.writes(tree_kinds.JUMP, end, row),
            self.place(caught),
        ]
        for handler in handlers:
            parts = self.program.children(handler)
            following = Label()
            if len(parts) > 1:
                steps += [self.visit(parts[0]), self.writes(tree_kinds.MATCH, following, parts[0])]
            if len(parts) == 3:
                steps.append(self.store(parts[1]))
            else:
                steps.append(self.writes(tree_kinds.POP, 0, handler))
            steps.append(self.visit(parts[-1], context))
            if len(parts) == 3:
                steps.append(self.writes(tree_kinds.DELETE, self.operands[parts[1]], handler))
            steps += [self.writes(tree_kinds.JUMP, end, handler), self.place(following)]
        # No handler matched: the exception goes on as if there had been no `try`.
        steps += [self.writes(tree_kinds.RAISE_AGAIN, 0, row), self.place(end)]
        self.then(*steps)


def _resolved(argument: Any) -> Any:
    if type(argument) is Label:
        return argument.position
    if type(argument) is tuple and type(argument[1]) is Label:
        return argument[0], argument[1].position
    return argument


_COLLECTIONS: dict[int, Callable[[], Any]] = {
    _K["list_comprehension"]: list,
    _K["dict_comprehension"]: dict,
    _K["generator"]: lambda: Generator.DONE,
}
# Straight rows that are written otherwise among instructions.
_REWRITTEN = frozenset(_K[name] for name in ("expression", "assign", "block"))
_SPECIAL: dict[int, Callable[[_Writer, int, list[int], Context], None]] = {
    _K["block"]: _Writer.block,
    _K["expression"]: _Writer.expression,
    _K["assign"]: _Writer.assign,
    _K["and"]: _Writer.logic,
    _K["or"]: _Writer.logic,
    _K["conditional"]: _Writer.conditional,
    _K["if"]: _Writer.if_,
    _K["if_else"]: _Writer.if_,
    _K["while"]: _Writer.while_,
    _K["for"]: _Writer.for_,
    _K["break"]: _Writer.break_,
    _K["continue"]: _Writer.continue_,
    _K["return"]: _Writer.return_,
    _K["return_nothing"]: _Writer.return_,
    _K["assert"]: _Writer.assert_,
    _K["assert_message"]: _Writer.assert_,
    _K["function"]: _Writer.function_,
    _K["function_annotated"]: _Writer.function_,
    _K["lambda"]: _Writer.function_,
    _K["decorated"]: _Writer.decorated,
    _K["list_comprehension"]: _Writer.comprehend,
    _K["dict_comprehension"]: _Writer.comprehend,
    _K["generator"]: _Writer.comprehend,
    _K["with"]: _Writer.with_,
    _K["try"]: _Writer.try_,
}

"""The derivative of a number as it is written on a board: each step has a name and a rule.

f = u*v is the product rule's: f' = u'*v + u*v'. Then u and v have their own rules, down to what can be read
off, such as 3*x**2; and at last the parts are put together. With several variables the steps are
differentials: du in the place of u'.

The steps are read off the trace of the program, so that a call of a function that the program defines has
steps as well. What is flattened: x*y*z is one product, a + b - c one sum, and a constant factor belongs to
the rule of what it multiplies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradcli.formulas.algebra import algebra as alg
from gradcli.formulas.algebra.expression_text import to_text
from gradcli.formulas.algebra.expressions import Expression, name, order
from gradcli.formulas.ask.rule_names import (
    BRANCHES,
    CHAIN,
    CHOICES,
    CONSTANT,
    EXPONENTIAL,
    LOGARITHMIC,
    POWER,
    PRODUCT,
    QUOTIENT,
    RECIPROCAL,
    SUM,
)
from gradcli.formulas.derive.differentiate import (
    differentiate,
    own_names,
    positions,
    reading,
    slope,
)
from gradcli.formulas.lift.lifting import Lifter
from gradcli.formulas.print.latex import DIFFERENTIALS
from gradcli.formulas.simplify.simplify import simplify
from gradcli.language import parse
from gradcli.language.program import Program
from gradcli.transforms.traced_run import traced_run
from gradcli.transforms.tracing.calls import Value, calls, operands_of

STEP = 10  # between the positions of the names of two steps
RANK = 10_000  # between those of two variables
LETTERS = "uvwpqrstabcdeghklmnyz"
SUMS = ("add", "sub", "rsub")
FUNCTIONS = "fghFGH"  # what the whole may be called


class Node(NamedTuple):
    """A step. name: u. own: over the names of its parts. change: u' or du over these and their changes.

    whole: over the variables. derivative: the change over the variables, in its shortest form. put_in: what
    to write for the names in `change`, to have it over the variables. rules: their names, the outermost
    first. depth: how many steps are around it. parts: those inside it that are new. called: whether it has
    a name; a term of a sum that is read off has none.
    """

    name: str
    own: Expression
    change: Expression
    whole: Expression
    derivative: Expression
    put_in: dict[str, Expression]
    rules: tuple[str, ...]
    depth: int
    parts: tuple[Node, ...] = ()
    called: bool = True

    def walk(self) -> Iterator[Node]:
        """The step and its parts, as they are explained: the outer one first."""
        yield self
        for part in self.parts:
            yield from part.walk()

    def inner_first(self) -> Iterator[Node]:
        """The parts, and then the step."""
        for part in self.parts:
            yield from part.inner_first()
        yield self


class NotOnABoard(Exception):
    """The program has arrays, or what no rule of a board is for."""


MOST_CALLS = 200  # of a program that is explained by rules; a longer one has no board


def board(
    program: Program,
    variables: Mapping[str, Any],
    wrt: Sequence[str],
    *,
    of: str | None = None,
    order: int = 1,
    follow: bool = False,
    names: Mapping[str, Any] | None = None,
    differentials: bool = False,
) -> list[Node]:
    """The steps of a program's value, then of its lower derivatives: one outermost step an order.

    variables: their values, which are numbers. wrt: the variables to differentiate by. of: the one that an
    equation makes a function of them; its change keeps its name, y'. follow: whether branches may depend on
    the values. differentials: write dx and du even for one variable. Raises NotOnABoard and NoExpression.
    """
    by = [n for n in wrt if n != of]
    found: list[Node] = []
    for k in range(order):
        with reading(program, variables, wrt) as (arrays, wanted), np.errstate(all="ignore"):
            result, trace = traced_run(program, arrays, wanted, follow, names or {}, True)
            value = trace.value_of(result)
            style = Style(differentials or len(by) > 1, tuple(wanted), of)
            own = own_names(trace, arrays, {id(c) for c in calls([value])})
            taken = [*arrays, *(names or {})]
            made = _Board(value, trace.inputs, style, positions(program), own, taken, "'" * k)
            found.append(made.root())
        if len(by) > 1 or of:
            if order > 1:
                raise NotOnABoard
            break
        (lower,) = differentiate(program, variables, wrt, follow=follow, names=names).by.values()
        if not differentials:  # the very form of the answer
            found[-1] = found[-1]._replace(derivative=lower)
        program = parse(to_text(lower)) if k + 1 < order else program
    return found


class Style(NamedTuple):
    """How changes are written: u' with x' = 1, or du and dx. of: the variable whose change is y'."""

    differentials: bool
    wanted: tuple[str, ...]
    of: str | None

    def of_name(self, own: Expression) -> Expression:
        """The change of a step, by its name."""
        if self.differentials:
            return name(f"d{own.data}", (), DIFFERENTIALS + own.position)
        return name(f"{own.data}'", (), own.position + 1)

    def changes(self, places: Mapping[str, int]) -> dict[str, Expression]:
        """The change of each variable."""
        made = {n: self.of_name(name(n, (), places.get(n, -1))) for n in self.wanted}
        return {
            n: alg.one if not self.differentials and n != self.of else e for n, e in made.items()
        }


class _Board:
    def __init__(
        self,
        value: Value,
        inputs: Mapping[str, Value],
        style: Style,
        places: Mapping[str, int],
        own_names: Mapping[str, Value],
        taken: Sequence[str],
        primes: str,
    ) -> None:
        self.value, self.style = value, style
        self.places = places = {n: RANK * k if k > 0 else k for n, k in places.items()}
        self.changes = changes = style.changes(places)
        made = calls([value])
        if len(made) > MOST_CALLS:
            raise NotOnABoard
        self.given = {id(c) for c in made}
        self.inputs = [(v, name(n, v.shape, places.get(n, -1))) for n, v in inputs.items()]
        self.points = {n: v.value for n, v in inputs.items()}
        self.variables = {id(inputs[n]): n for n in changes if n in inputs}
        self.moving = set(self.variables)
        for call in made:
            if any(id(v) in self.moving for v in operands_of(call)):
                if any(v.shape for v in call.outputs) or any(
                    v.shape for v in operands_of(call) if id(v) in self.moving
                ):
                    raise NotOnABoard
                # conditions and whole numbers have no derivative
                self.moving.update(id(v) for v in call.outputs if v.value.dtype.kind == "f")
        self.own = {id(v): n for n, v in own_names.items() if v is not value}
        used = {*taken, *own_names, *inputs}
        self.free = (w for w in LETTERS if w not in used)
        self.title = next((w for w in FUNCTIONS if w not in used), "f") + primes
        self.steps: dict[int, Node] = {}  # of values that have a name already
        self.names: dict[int, Expression] = {}
        self.simple: dict[int, bool] = {}

    def root(self) -> Node:
        if id(self.value) not in self.moving:
            raise NotOnABoard
        return self.step(self.value, self.title, 0)

    # -- what a value is ---------------------------------------------------------------------------
    def moves(self, value: Any) -> bool:
        return isinstance(value, Value) and id(value) in self.moving

    def word(self, value: Value) -> str:
        """The name of the operator that made a value; "" for a variable."""
        return "" if value.call is None else str(value.call.primitive.public_name)

    def variable(self, value: Value) -> str:
        """The variable that a value is; "" for what is none."""
        return self.variables.get(id(value), "")

    def args(self, value: Value) -> tuple[Any, ...]:
        """The arguments of the call that made a value."""
        return () if value.call is None else value.call.args

    def operands(self, value: Value) -> list[Value]:
        """What a value is made of, as far as it depends on the variables."""
        return [] if value.call is None else [v for v in operands_of(value.call) if self.moves(v)]

    def closed(self, value: Value) -> bool:
        """Whether a value has a name of the program's own, and is never opened."""
        return id(value) in self.own

    def core(self, value: Value) -> Value:
        """A value without its sign and constant factors."""
        start = value
        while value is start or not self.closed(value):
            parts, word = self.operands(value), self.word(value)
            inner = len(parts) == 1 and (
                word in ("neg", "mul") or (word == "div" and self.moves(self.args(value)[0]))
            )
            if not inner:
                break
            if len([v for v in self.args(value) if v is parts[0]]) > 1:
                break
            value = parts[0]
        return value

    def terms(self, value: Value) -> list[tuple[Value, float]]:
        """(term, +1 or -1) of a sum; constant terms are left out. One term for what is no sum."""
        found: list[tuple[Value, float]] = []
        waiting = [(value, 1.0)]
        while waiting:
            part, sign = waiting.pop()
            args, word = self.args(part), self.word(part)
            opened = part is value or not self.closed(part)
            if opened and word in SUMS and args[2] == 1:
                a, b = args[:2] if word != "rsub" else args[1::-1]  # 1 - x is rsub(x, 1)
                both = [(a, sign), (b, sign if word == "add" else -sign)]
                waiting += [(v, s) for v, s in reversed(both) if self.moves(v)]
            elif opened and word == "neg" and part is not value:
                waiting.append((args[0], -sign))
            else:
                found.append((part, sign))
        return found

    def factors(self, value: Value) -> list[Value]:
        """The factors of a product that depend on the variables."""
        found: list[Value] = []
        waiting = [self.core(value)]
        while waiting:
            part = waiting.pop()
            parts = self.operands(part)
            opened = part is self.core(value) or not self.closed(part)
            if opened and self.word(part) == "mul" and len(parts) == 2:
                waiting += reversed(parts)
            else:
                found.append(part)
        return found

    def is_simple(self, value: Value) -> bool:
        """Whether the derivative is read off: of 3*x**2, sin(x), and of sums of such."""
        if id(value) not in self.simple:
            self.simple[id(value)] = not self.closed(value) and self._is_simple(value)
        return self.simple[id(value)]

    def _is_simple(self, value: Value) -> bool:
        terms = self.terms(value)
        if len(terms) > 1 or terms[0][0] is not value:
            return all(self.is_simple(term) for term, _ in terms)
        core = self.core(value)
        if core is not value:
            return self.is_simple(core)
        parts = self.operands(core)
        if self.word(core) == "mul":
            bare = [id(v) for v in self.factors(core)]
            return len(bare) == len(set(bare)) and self.style.differentials and self.bare(bare)
        if self.word(core) == "reciprocal":
            inner = parts[0]
            return self.bare([id(inner)]) or (
                self.word(inner) == "pow" and self.bare(map(id, self.operands(inner)))
            )
        if self.word(core) == "div":  # a constant over a power
            return len(parts) == 1 and self.is_simple(parts[0]) and self.bare(map(id, parts))
        return self.bare(map(id, parts)) and len(parts) < 2

    def bare(self, ids: Any) -> bool:
        return all(i in self.variables for i in ids)

    # -- steps ------------------------------------------------------------------------------------
    def step(self, value: Value, word: str, depth: int) -> Node:
        """The step of a value, and of its parts."""
        terms, core = self.terms(value), self.core(value)
        if depth and self._is_simple(value):
            return self.made(value, word, depth, self.read_off(value))
        if len(terms) > 1 or terms[0][0] is not value:
            return self.sum(value, word, depth, terms)
        if self._is_simple(value):
            return self.made(value, word, depth, self.read_off(value))
        rules = (CONSTANT,) if core is not value else ()
        own, factors, parts = self.word(core), self.factors(value), self.operands(core)
        if core is not value and self.closed(core):  # 2*y of a name y of the program's
            return self.by_slopes(value, word, depth, [core], rules)
        core_terms = self.terms(core)
        if len(core_terms) > 1:  # c*(a + b)
            return self.by_slopes(value, word, depth, [core], rules)
        if len(factors) > 1:
            if len({id(v) for v in factors}) < len(factors):
                more = (PRODUCT, POWER) if len({id(v) for v in factors}) > 1 else (CHAIN, POWER)
                return self.by_slopes(value, word, depth, factors, (*rules, *more))
            return self.product(value, word, depth, factors, rules)
        if own == "div" and len(parts) == 2 and parts[0] is not parts[1]:
            return self.quotient(value, word, depth, parts, rules)
        if own in ("div", "reciprocal"):
            return self.by_slopes(value, word, depth, parts, (RECIPROCAL,))
        if own == "pow":
            if len(parts) == 2:
                return self.by_slopes(value, word, depth, parts, (*rules, LOGARITHMIC), True)
            kind = POWER if self.moves(self.args(core)[0]) else EXPONENTIAL
            return self.by_slopes(value, word, depth, parts, (*rules, CHAIN, kind))
        kind = CHOICES.get(own) or f"derivative of {own or 'it'}"
        chain = (CHAIN,) * (not self.bare(map(id, parts)) and kind != BRANCHES)
        inner = [v for v in parts if id(v) not in self.variables]
        return self.by_slopes(value, word, depth, inner or parts, (*rules, *chain, kind))

    def read_off(self, value: Value) -> tuple[str, ...]:
        """The rules of what is read off."""
        found: list[str] = []
        waiting = [value]
        while waiting:
            part = waiting.pop()
            terms = self.terms(part)
            if len(terms) > 1 or terms[0][0] is not part:
                found += [SUM] * (len(terms) > 1 or self.word(part) in SUMS)
                waiting += [term for term, _ in reversed(terms)]
                continue
            core, word = self.core(part), self.word(self.core(part))
            if core is not part:
                found.append(CONSTANT)
                waiting.append(core)
            elif word in ("mul", "pow", "reciprocal", "div"):
                found += [CHAIN] * any(
                    self.variable(v) == self.style.of for v in self.operands(core)
                )
                power = word != "pow" or self.moves(self.args(core)[0])
                found.append(PRODUCT if word == "mul" else POWER if power else EXPONENTIAL)
            elif word:
                found += [CHAIN] * any(
                    self.variable(v) == self.style.of for v in self.operands(core)
                )
                found.append(CHOICES.get(word) or f"derivative of {word}")
        return tuple(dict.fromkeys(found))

    def named(self, value: Value, depth: int) -> tuple[Expression, Node | None]:
        """(the name of a part, its step where it has none yet); of differentials, x is called x."""
        if self.style.differentials and id(value) in self.variables:
            word = self.variables[id(value)]
            return name(word, (), self.places.get(word, -1)), None
        if id(value) in self.names:
            return self.names[id(value)], None
        word = self.own.get(id(value)) or next(self.free, "")
        if not word:
            raise NotOnABoard
        # between the variables that it depends on and later ones: sin(u)*y of sin(x**2)*y
        rank = self.lifted(value).position + STEP * (len(self.names) + 1)
        own = name(word, (), rank)
        self.names[id(value)] = own
        self.places[word] = own.position
        self.points[word] = value.value
        node = self.step(value, word, depth)
        self.steps[id(value)] = node
        return own, node

    def parts(self, values: Sequence[Value], depth: int) -> tuple[list[Expression], list[Node]]:
        """The names of parts, in order, and the steps of those that are new."""
        names: list[Expression] = []
        nodes: list[Node] = []
        for value in dict.fromkeys(values):
            own, node = self.named(value, depth + 1)
            names.append(own)
            nodes += [] if node is None else [node]
        return names, nodes

    def lifted(self, value: Value, over: Sequence[Value] = ()) -> Expression:
        """A value over the variables, and over the names of these parts."""
        names = [*self.inputs, *((v, self.names[id(v)]) for v in over if id(v) in self.names)]
        (made,) = Lifter(names, self.given, again=True).read([value])
        return alg.full(made, ())

    def slope(self, expression: Expression, word: str) -> Expression:
        read = {node.data for node in order([expression]) if node.op == "name"}
        if word not in read:
            return alg.zero
        points = {n: v for n, v in self.points.items() if n in read}
        return simplify(slope(expression, points, word, self.places)[0])

    def along(self, expression: Expression) -> Expression:
        """The change of an expression over the variables alone."""
        terms = [alg.multiply(self.slope(expression, n), c) for n, c in self.changes.items()]
        return terms[0] if len(terms) == 1 else simplify(alg.add(*terms))

    def prime(self, own: Expression) -> Expression:
        """The change of a step, as a name."""
        return self.style.of_name(own)

    def made(
        self,
        value: Value,
        word: str,
        depth: int,
        rules: tuple[str, ...],
        parts: Sequence[Node] = (),
        over: Sequence[Value] = (),
        change: Callable[[Expression], Expression] | None = None,
    ) -> Node:
        """The step of a value. over: its parts that have names. change: of its expression over these."""
        own, whole = self.lifted(value, over), self.lifted(value)
        derivative = self.along(whole)
        put_in: dict[str, Expression] = {}
        for part in dict.fromkeys(v for v in over if id(v) in self.names):
            node, word_of = self.steps[id(part)], self.names[id(part)]
            put_in |= {word_of.data: node.whole, self.prime(word_of).data: node.derivative}
        found = derivative if change is None else change(own)
        return Node(word, own, found, whole, derivative, put_in, rules, depth, tuple(parts))

    def sum(self, value: Value, word: str, depth: int, terms: list[tuple[Value, float]]) -> Node:
        """A sum: terms that are read off stay in it, others have a name each."""
        hard = [v for v, _ in terms if not self.is_simple(v)]
        _, nodes = self.parts(hard, depth)
        by = {node.name: node for node in nodes}
        shown: list[Node] = []
        changes: list[Expression] = []
        put_in: dict[str, Expression] = {}
        for k, (term, sign) in enumerate(terms):
            factor = alg.one if sign > 0 else alg.negate(alg.one)
            if id(term) in self.names:
                own = self.names[id(term)]
                shown += [by[own.data]] if own.data in by else []
                changes.append(alg.multiply(factor, self.prime(own)))
                continue
            mark = f"#{word}{k}"
            node = self.made(term, mark, depth + 1, self.read_off(term))._replace(called=False)
            shown.append(node)
            own = self.prime(name(mark, (), k))
            put_in[own.data] = node.derivative
            changes.append(alg.multiply(factor, own))
        total = alg.add(*changes)
        made = self.made(value, word, depth, (SUM,), shown, hard, lambda own: total)
        return made._replace(put_in={**made.put_in, **put_in})

    def product(
        self, value: Value, word: str, depth: int, factors: list[Value], rules: tuple[str, ...]
    ) -> Node:
        names, nodes = self.parts(factors, depth)

        def change(own: Expression) -> Expression:
            constant = alg.divide(own, alg.multiply(*names))
            each = [alg.multiply(*(self.prime(u) if u is v else u for u in names)) for v in names]
            return alg.multiply(constant, alg.add(*each))

        return self.made(value, word, depth, (*rules, PRODUCT), nodes, factors, change)

    def quotient(
        self, value: Value, word: str, depth: int, parts: list[Value], rules: tuple[str, ...]
    ) -> Node:
        (u, v), nodes = self.parts(parts, depth)

        def change(own: Expression) -> Expression:
            constant = alg.divide(alg.multiply(own, v), u)
            above = alg.subtract(alg.multiply(self.prime(u), v), alg.multiply(u, self.prime(v)))
            return alg.divide(alg.multiply(constant, above), alg.multiply(v, v))

        return self.made(value, word, depth, (*rules, QUOTIENT), nodes, parts, change)

    def by_slopes(
        self,
        value: Value,
        word: str,
        depth: int,
        parts: Sequence[Value],
        rules: tuple[str, ...],
        logarithmic: bool = False,
    ) -> Node:
        """Any other: the slope by each part times its change, and by the variables that it reads itself."""
        names, nodes = self.parts(parts, depth)

        def change(own: Expression) -> Expression:
            by = {u.data: self.prime(u) for u in names} | self.changes
            terms = [alg.multiply(self.slope(own, n), c) for n, c in by.items()]
            return simplify(alg.add(*terms))

        return self.made(value, word, depth, rules, nodes, parts, change)


__all__ = ["Node", "NotOnABoard", "board"]

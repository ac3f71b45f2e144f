"""The derivative of a program as an expression of its language.

The program and the engine's backward pass over it are traced. The traced gradients are lifted to
expressions and simplified. Higher orders differentiate these expressions in the same way.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import pairwise
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.engine.system import dtypes
from gradcli.formulas.algebra import algebra as alg
from gradcli.formulas.algebra.assuming import current, supposing
from gradcli.formulas.algebra.exact_numbers import ONE
from gradcli.formulas.algebra.expression_evaluation import constants, evaluate
from gradcli.formulas.algebra.expressions import (
    Expression,
    call,
    is_call,
    name,
    number,
    value_of,
)
from gradcli.formulas.algebra.expressions import order as order_of
from gradcli.formulas.algebra.generic_points import as_exact_as
from gradcli.formulas.algebra.rewriting import rewrite
from gradcli.formulas.derive.sound_sizes import are_square, asks_for_rank, singular, singular_said
from gradcli.formulas.lift.formulas import exact_constants
from gradcli.formulas.lift.lifting import Lifter, NoExpression
from gradcli.formulas.simplify.accurate_forms import steady
from gradcli.formulas.simplify.pieces import in_pieces
from gradcli.formulas.simplify.scalar_forms import keeps_digits
from gradcli.formulas.simplify.simplify import canonicalise
from gradcli.language import run
from gradcli.language.located_errors import LanguageError
from gradcli.language.program import Program
from gradcli.transforms.traced_run import CONSTANTS, _worded, traced_run
from gradcli.transforms.tracing.calls import Value, calls
from gradcli.transforms.tracing.tracer import Tracer, trace_program

PI = {name(n, (), -1): wrap(np.float64(v)) for n, v in CONSTANTS.items()}
# The key of a printed program's value beside its derivatives: no name of a variable.
VALUE = "the value"
MOST_PATHS = 16  # of a program that branches on values
MOST_REPEATED = (
    1_000  # the weight of a gradient that is differentiated again as it was recorded, too
)
MANY = 4  # orders of which the last alone has its shortest form
MOST_MOVED = 100  # programs with more names keep the order in which names are first read


class Run(NamedTuple):
    """A program that is traced: its variables, by which it is differentiated, whether it may branch on
    their values, other names, whether NaN guards are kept, whether it is differentiated again."""

    program: Program
    arrays: dict[str, Any]
    wanted: Sequence[str] = ()
    follow: bool = False
    names: Mapping[str, Any] = MappingProxyType({})
    nan_guards: bool = False
    more: bool = False


class Derivatives:
    """Derivatives of one program.

    variables: name -> array. value: the program's value as an expression. by: name -> derivative by that
    variable. branched: whether the program branched on a value, so that the derivatives hold on this
    path only. lower: the derivatives of all lower orders, the first order first. kind: "gradient",
    "Jacobian" and so on. beyond: whether as_strided read outside of its operand (`Tracer.beyond`).
    real: whether no part of the program is complex. sized: whether matrices in the program are square, or
    must have full rank (`symbolic.sound_sizes`).
    named: (the program's own names in order, with their expressions; the derivatives over these), where
    the program has some. assumed: the assumptions under which they hold (`symbolic.assumptions`).
    raw: the gradients of numbers that are differentiated again, as they were recorded: with the tape's
    digits. alone: the only shapes for which they hold, in words ("for x of shape (3,) alone"); "" if no
    others are known to fail. limits: numbers at the user's point by label, where the text has others or
    none.
    """

    kind = "gradient"

    __slots__ = (
        *("alone", "assumed", "beyond", "branched", "by", "limits", "lower"),
        *("named", "program", "raw", "real", "shape", "sized", "value", "variables"),
    )

    def __init__(
        self,
        program: Program,
        variables: dict[str, Any],
        value: Expression,
        by: dict[str, Expression],
        shape: tuple[int, ...],
        branched: bool,
        lower: Sequence[dict[str, Expression]] = (),
    ) -> None:
        self.program, self.variables, self.value = program, variables, value
        self.by, self.shape, self.branched, self.lower = by, shape, branched, lower
        self.assumed: Any = None
        self.named: tuple[dict[str, Expression], dict[str, Expression]] | None = None
        self.beyond = self.sized = False
        self.real = True
        self.alone = ""
        self.raw: dict[str, Expression] = {}
        self.limits: Mapping[str, Any] = {}

    @property
    def whole(self) -> Expression:
        """The value in its full shape: two ones where `value` is the number 1."""
        return self.value if self.value.shape == self.shape else alg.full(self.value, self.shape)

    @property
    def heading(self) -> str:
        """The program in one line; of a long or an indented one the beginning, and …"""
        first, *more = self.program.source.splitlines()
        if any(m[:1].isspace() for m in more):
            return f"{first} ..." if len(first) < _LONGEST else _begun(first)
        whole = "; ".join([first, *more])
        return whole if len(whole) <= _LONGEST else _begun(whole)

    @property
    def what(self) -> str:
        """The kind of derivative in words, with its order."""
        return f"derivative of order {len(self.lower) + 1}" if self.lower else self.kind

    def title(self, source: str) -> str:
        """The docstring of a printed function; source: the program, escaped for that comment."""
        only = f", {self.alone}" if self.alone else ""
        if self.kind == "value":
            return f"{source}{only}."
        return f"{source} and its {self.what} by {', '.join(self.by)}{only}."


_LONGEST = 80  # characters of a heading


def _begun(text: str) -> str:
    """The beginning of a text, up to a statement or a blank, and dots."""
    room = text[: _LONGEST - 4]
    end = room.rfind("; ") + 1 or room.rfind(" ")
    return f"{room[: end if end > _LONGEST // 4 else None].rstrip()} ..."


def differentiate(
    program: Program,
    variables: Mapping[str, Any],
    wrt: Iterable[str] | None = None,
    *,
    order: int = 1,
    follow: bool = False,
    names: Mapping[str, Any] | None = None,
    nan_guards: bool = False,
) -> Derivatives:
    """The derivatives of a program's value with respect to its variables.

    variables: name -> array. Shapes and dtypes count; values only with `follow`, which lets the program
    branch on them. A value that is not a scalar is summed first. names: other names that the program
    may read. nan_guards: whether to keep the `where` by which a VJP rule avoids a NaN at single points.
    Raises NoExpression, located in the program.
    """
    with reading(program, variables, wrt) as (arrays, wanted):
        asked = Run(program, arrays, wanted, follow, names or {}, nan_guards, order > 1)
        first = first_order(asked)
        by, lower = (first.by, []) if order == 1 else _further(first, asked, order)
        value = rewrite(first.value, released)
        found = Derivatives(program, arrays, value, by, first.shape, first.branched, lower)
        found.named, found.sized = None if lower else first.named, first.sized
        found.real = first.real
        return found


def _further(
    first: Derivatives, asked: Run, order: int
) -> tuple[dict[str, Expression], list[dict[str, Expression]]]:
    """(the derivatives of an order above the first, those of all lower orders)."""
    from gradcli.formulas.derive.number_slopes import NumberSlopes

    program, arrays, _, follow, _, nan_guards, _ = asked
    by, raw, places = first.by, first.raw, positions(program)
    lower: list[dict[str, Expression]] = []

    def traced(e: Expression, u: Expression) -> Expression:
        operands = [node for node in order_of([e]) if node.op == "name"]
        given = {node.data: np.float64(1) for node in operands}
        return slope(e, given, u.data, {n.data: n.position for n in operands})[0]

    def again(e: Expression, n: str, more: bool) -> tuple[Expression, Expression]:
        found = slopes[n].of(e) if n in slopes else None
        if found is not None:
            return found, slopes[n].variable
        return slope(e, arrays, n, places, nan_guards, more, follow)

    slopes = {
        n: NumberSlopes(name(n, (), places.get(n, -1)), traced)
        for n in raw
        if first.real and not arrays[n].shape
    }
    with supposing(real=first.real):
        for left in reversed(range(1, order)):
            lower.append(by)
            more = left > 1
            made = {n: again(steady(e), n, more) for n, e in raw.items() if _is_small(e)}
            raw = {n: e for n, (e, _) in made.items()}
            # Of many orders the last alone is searched for its shortest form. Those before it stay as they
            # were recorded: sums whose like terms are collected, with the tape's digits.
            if order >= MANY:
                rest = {n: again(e, n, more) for n, e in by.items() if n not in made}
                by = {n: canonicalise(*found, more) for n, found in rest.items()}
                by |= raw if more else {n: canonicalise(*found) for n, found in made.items()}
                continue
            by = {n: canonicalise(*again(e, n, more)) for n, e in by.items()}
            # Beside the short form, the derivative is taken of the gradient as it was recorded: where
            # shortening has lost digits, that one is printed.
            lost = [n for n, e in raw.items() if not keeps_digits(by[n], e)]
            by |= {n: canonicalise(*made[n]) for n in lost}
    return by, lower


def _is_small(expression: Expression) -> bool:
    return not expression.shape and expression.weight <= MOST_REPEATED


@contextmanager
def reading(
    program: Program, variables: Mapping[str, Any], wrt: Iterable[str] | None
) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """(the variables as arrays, the names to differentiate by); locates errors in the program."""
    arrays = {
        n: np.asarray(v)[()] if np.ndim(v) == 0 else np.asarray(v) for n, v in variables.items()
    }
    single = {v.dtype for v in arrays.values() if v.dtype.kind == "f"} <= {np.dtype(np.float32)}
    # A constant that was rounded to float32 would print as 0.10000000149011612.
    if single:  # numbers are written to all digits
        arrays = {n: v.astype(np.float64) if v.dtype.kind == "f" else v for n, v in arrays.items()}
    exact = not any(isinstance(c, (float, complex)) for c in program.constants)
    kinds = {n: v.dtype.kind for n, v in arrays.items()}
    try:
        with (
            supposing(exact=exact, kinds=kinds),
            dtypes.as_default(dtypes.float64 if single else None),
            as_exact_as(arrays),
        ):
            yield arrays, list(arrays) if wrt is None else list(wrt)
    except NoExpression as error:
        raise error.within(program) from error
    except OverflowError as error:
        raise NoExpression("the derivative has a constant that no number holds") from error


def released(node: Expression) -> Expression:
    """The operand of a `detach`, which only matters to further differentiation; other nodes as they are."""
    return node.args[0] if is_call(node, "detach") else node


def slope(
    expression: Expression,
    arrays: Mapping[str, Any],
    word: str,
    places: Mapping[str, int],
    nan_guards: bool = False,
    more: bool = False,
    follow: bool = False,
) -> tuple[Expression, Expression]:
    """(the derivative of the sum of an expression by `word`, not yet canonicalised; the variable).

    more: whether the result will be differentiated again. follow: whether branches may depend on values.
    """
    value, trace, symbols = _retraced(
        [expression], lambda given, space: given[0], arrays, [word], places, follow, more
    )
    grad = None
    if isinstance(value, Tensor):
        with np.errstate(all="ignore"):
            (grad,) = trace.gradients(value, [trace.variables[word]])
    if grad is None:
        return alg.zero, symbols[word]
    return _read(grad, trace, symbols, trace.value_of(value), nan_guards, more), symbols[word]


def composed(
    program: Program,
    parts: Mapping[str, Expression],
    arrays: Mapping[str, Any],
    places: Mapping[str, int],
    names: Mapping[str, Any],
) -> Expression:
    """The value of a program over expressions, by name, as an expression; not yet canonicalised."""

    def then(given: list[Any], space: Mapping[str, Tensor]) -> Any:
        return run(program, {**names, **space, **dict(zip(parts, given, strict=True))}).value

    value, trace, symbols = _retraced(list(parts.values()), then, arrays, [], places)
    whole = trace.value_of(value)
    made = _read(whole, trace, symbols, whole)
    return made if made.shape == whole.shape else alg.full(made, whole.shape)


def _retraced(
    expressions: list[Expression],
    then: Callable[[list[Any], Mapping[str, Tensor]], Any],
    arrays: Mapping[str, Any],
    wrt: Sequence[str],
    places: Mapping[str, int],
    follow: bool = False,
    more: bool = False,
) -> tuple[Any, Tracer, dict[str, Expression]]:
    """(what `then` makes of the expressions' values and the variables, the trace, its names)."""
    own = {n: v for n, v in CONSTANTS.items() if n not in arrays}
    symbols = {
        n: name(n, tuple(np.shape(v)), places.get(n, -1)) for n, v in {**own, **arrays}.items()
    }
    fixed = [*constants(expressions), *(e for e in expressions if e.op == "number")]
    plain = evaluate(fixed, {symbols[n]: wrap(np.float64(v)) for n, v in own.items()})
    kept = {f"#{k}": e for k, e in enumerate(fixed)}
    numbers = {**own, **dict(zip(kept, map(_plain, plain), strict=True))}
    symbols |= kept

    def traced(**space: Tensor) -> Any:
        return then(evaluate(expressions, {symbols[n]: t for n, t in space.items()}), space)

    with np.errstate(all="ignore"):
        return *trace_program(traced, arrays, wrt, follow, numbers, again=more), symbols


def _read(
    wanted: Value,
    trace: Tracer,
    symbols: Mapping[str, Expression],
    value: Value,
    nan_guards: bool = False,
    more: bool = False,
) -> Expression:
    """A traced value as an expression; value: that of the program, whose conditions are all kept."""
    given = {id(c) for c in calls([value])}
    lifter = Lifter([(v, symbols[n]) for n, v in trace.inputs.items()], given, nan_guards, more)
    try:
        with _numbers_of([value, wanted, *trace.inputs.values()]):
            return lifter.read([wanted])[0]
    except NoExpression as error:
        error.span = None  # a place in the text of an expression, and not in the program
        raise


def _numbers_of(values: Sequence[Value]) -> AbstractContextManager[None]:
    """The facts that simplification may use: whether these traced values are real, are all of one floating
    dtype, and include a mean.
    """
    made = calls(values)
    outputs = (o for m in made for o in m.outputs)
    dtypes = {np.asarray(o.value).dtype for o in outputs} - {np.dtype(bool)}  # not conditions
    dtypes |= {np.asarray(v.value).dtype for v in values}
    return supposing(
        real=all(d.kind != "c" for d in dtypes),
        one_dtype=len(dtypes) == 1 and all(d.kind == "f" for d in dtypes),
        averages=any(m.primitive.public_name == "mean" for m in made),
        integers=set(),
    )


def _plain(value: Any) -> Any:
    """The array of an evaluated constant."""
    found = value.array if hasattr(value, "array") else np.asarray(value, np.float64)
    return np.asarray(found)[()]


def first_order(asked: Run) -> Derivatives:
    """The gradients; piecewise where the program branches on values that it may not follow."""
    found, taken = _on_path(asked, None if asked.follow else [])
    if not taken:
        return found
    paths, waiting = [(found, taken)], _others(taken, 0)
    while waiting:
        path = waiting.pop()
        found, taken = _on_path(asked, path)
        paths.append((found, taken))
        waiting += _others(taken, len(path))
        # A loop that ends by a condition has a path for each number of turns, without an end.
        if len(paths) > MOST_PATHS:
            raise LanguageError(
                f"the program has more than {MOST_PATHS} paths, which depend on the variables' values",
                kind="value",
                source=asked.program.source,
                hint="give each variable a value: the derivative is that of its path",
            )
    # How branches become one formula, on an example: `x**2 if x > 0 else -x` is run once, x > 0 comes out
    # as it is at the made-up point, and the condition is noted. Then it is run again on each other side of
    # a noted condition, until every side was seen. The paths form a tree of conditions, which `where`
    # writes: where(x > 0, 2*x, -1).
    found.value = in_pieces(_pieces([(made.value, own) for made, own in paths]))
    for n, gradient in found.by.items():
        whole = in_pieces(_pieces([(made.by[n], own) for made, own in paths]))
        shape = gradient.shape
        found.by[n] = whole if whole.shape == shape else alg.full(whole, shape)
    return found


Taken = list[tuple[Expression, bool]]


def _others(taken: Taken, since: int) -> list[list[bool]]:
    """The paths that turn off from a path at its conditions, but for the first ones."""
    branches = [branch for _, branch in taken]
    return [[*branches[:k], not branches[k]] for k in range(since, len(branches))]


def _pieces(paths: list[tuple[Expression, Taken]]) -> Expression:
    """`where` of the conditions, over the expressions that hold on paths."""
    if len(paths) == 1:
        return paths[0][0]
    condition = paths[0][1][0][0]
    sides = [
        _pieces([(e, taken[1:]) for e, taken in paths if taken[0][1] is side])
        for side in (True, False)
    ]
    return alg.where(condition, *sides)


def _on_path(asked: Run, path: Sequence[bool] | None) -> tuple[Derivatives, Taken]:
    """The gradients on a path of the program, and the conditions of it."""
    program, arrays, wanted, _, names, nan_guards, more = asked
    with np.errstate(all="ignore"):
        exactly, (result, trace) = _traced(asked, path)
        conditions = [condition for condition, _ in trace.taken]
        value = trace.value_of(result)
        forward = calls([value])
        given = {id(c) for c in forward}
        sized = any(c.primitive.index for c in forward) and are_square(forward)
        # pinv of a matrix without full rank has no derivative, and the tape's number there means nothing.
        if (ranked := asks_for_rank(forward)) and (
            operand := singular(program, arrays, names)
        ) is not None:
            raise NoExpression(singular_said(operand, program, arrays))
        with _worded(program):
            grads = trace.gradients(result, [trace.variables[n] for n in wanted])
        places = positions(program)
        symbols = {n: name(n, tuple(v.shape), places.get(n, -1)) for n, v in trace.inputs.items()}
        symbols |= exactly
        lifter = Lifter([(v, symbols[n]) for n, v in trace.inputs.items()], given, nan_guards, more)
        known = [g for g in grads if g is not None]
        with _numbers_of([value, *known, *trace.inputs.values()]):
            read = iter(lifter.read(known))
            raw = {
                n: alg.zero if g is None else next(read) for n, g in zip(wanted, grads, strict=True)
            }
            by = {n: canonicalise(e, symbols[n]) for n, e in raw.items()}
            whole, *tests = lifter.read([value, *conditions])
            # The program's own names may shorten a text; orders above the first, and paths, have other
            # definitions.
            own = {} if more or conditions else own_names(trace, arrays, given)
            named = _over_names(own, trace, symbols, given, nan_guards, grads) if own else None
            real = current.get().real
    # The next order must find a constant, not differentiate what `detach` has cut off.
    if more and not known and not alg.is_bare(whole):  # the whole value is held constant
        whole = call("detach", [whole], whole.shape)
    found = Derivatives(program, arrays, whole, by, tuple(value.shape), trace.followed)
    found.beyond, found.sized = trace.beyond, sized or ranked
    found.real = real
    if more and not conditions and real:
        found.raw = {n: e for n, e in raw.items() if not symbols[n].shape}
    if named is not None:
        definitions, made = named
        pairs = zip(wanted, made, strict=True)
        found.named = definitions, {n: canonicalise(e, symbols[n]) for n, e in pairs}
    return found, [(test, branch) for test, (_, branch) in zip(tests, trace.taken, strict=True)]


def _traced(
    asked: Run, path: Sequence[bool] | None
) -> tuple[dict[str, Expression], tuple[Tensor, Tracer]]:
    """(what its named constants are, the traced run) of a program whose constants have names."""
    program, arrays, wanted, follow, names, nan_guards, more = asked
    named, exactly = exact_constants(program, names)
    if exactly:
        try:
            values = {
                n: _plain(v) for n, v in zip(exactly, evaluate(exactly.values(), PI), strict=True)
            }
            run = traced_run(named, arrays, wanted, follow, names, more, path=path, numbers=values)
            return exactly, run
        # Then constants are numbers again: a decimal in the text is better than none.
        except (LanguageError, RuntimeError):  # such as a size that has to be an int
            pass
    run = traced_run(program, arrays, wanted, follow, names, more, not nan_guards, path)
    return {}, run


def own_names(trace: Tracer, arrays: Mapping[str, Any], given: Collection[int]) -> dict[str, Value]:
    """The names that a program gave to what its value comes from."""
    held = {n: v for n, v in trace.assigned.items() if n not in arrays and isinstance(v, Tensor)}
    values = {n: trace.value_of(v) for n, v in held.items()}
    return {n: v for n, v in values.items() if v.call is not None and id(v.call) in given}


def _over_names(
    own: Mapping[str, Value],
    trace: Tracer,
    symbols: Mapping[str, Expression],
    given: Collection[int],
    nan_guards: bool,
    grads: Iterable[Value | None],
) -> tuple[dict[str, Expression], list[Expression]]:
    """(the program's own names with their expressions, the gradients over these)."""
    known = [(v, symbols[n]) for n, v in trace.inputs.items()]
    definitions: dict[str, Expression] = {}
    for n, value in own.items():
        (made,) = Lifter(known, given, nan_guards).read([value])
        definitions[n] = alg.full(made, tuple(value.shape))
        known.append((value, name(n, tuple(value.shape), len(symbols) + len(known))))
    lifter = Lifter(known, given, nan_guards)
    return definitions, [alg.zero if g is None else lifter.read([g])[0] for g in grads]


def positions(program: Program) -> dict[str, int]:
    """The rank of every name by where the program first reads it: the order of printed factors."""
    found: dict[str, int] = {}
    for kind, word, _, (start, _) in program.walk():
        if kind == "name" and word not in found:
            found[word] = start
    # People write a factor before the function of it, c*f(x): the derivative keeps c in front.
    order = _as_multiplied(program, sorted(found, key=found.__getitem__))
    ranks = {word: i for i, word in enumerate(order)}
    return {**ranks, **dict.fromkeys(CONSTANTS, -1)}


def _as_multiplied(program: Program, words: list[str]) -> list[str]:
    """The names reordered so that a product written `c*x` or `c*f(x)` is printed in that order."""
    ranks = {word: k for k, word in enumerate(words)}
    before: dict[str, set[str]] = {}
    for x, y in _pairs(program):
        # Two products may ask for opposite orders; the first one wins, and the graph of wishes stays
        # without a circle.
        if ranks[x] > ranks[y] and len(words) <= MOST_MOVED and x not in _after(before, y):
            before.setdefault(y, set()).add(x)
    placed: list[str] = []
    waiting = list(words) if before else []
    while waiting:
        first = next(w for w in waiting if not before.get(w, set()) & set(waiting) - {w})
        waiting.remove(first)
        placed.append(first)
    return placed or words


def _pairs(program: Program) -> Iterator[tuple[str, str]]:
    """(c, x) for every product `c*f(x)` whose first factor is a name."""
    rows = program.walk()
    names = sorted((span[0], word) for kind, word, _, span in rows if kind == "name")
    starts = [start for start, _ in names]
    words = dict(names)
    for (*_, right), (kind, _, _, whole) in pairwise(rows):
        x = words.get(whole[0]) if kind == "mul" else None
        if x is None or program.source[whole[0] + len(x) : right[0]].strip(" (") != "*":
            continue
        inside = names[bisect_left(starts, right[0]) : bisect_left(starts, right[1])]
        yield from ((x, y) for y in {w for _, w in inside} - {x})


def _after(before: Mapping[str, set[str]], word: str) -> set[str]:
    """The names that must follow `word`."""
    found: set[str] = set()
    stack = [word]
    while stack:
        own = stack.pop()
        new = {w for w, earlier in before.items() if own in earlier} - found
        found |= new
        stack += new
    return found - {word}


__all__ = ["ONE", "Derivatives", "Run", "call", "differentiate", "number", "value_of"]

"""Derivatives that hold for any size: `x.shape[0]` in place of numbers that came from sizes.

A number does not tell where it came from. So the derivative is found again in other sizes. Where the two
expressions differ only in a number, and one formula of the sizes (c*s, c/s, s + c) gives it in both, the
formula replaces the number. The result is proved in further sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from fractions import Fraction
from itertools import combinations, product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from gradcli.formulas.algebra import algebra as alg
from gradcli.formulas.algebra.exact_numbers import ONE, ZERO, Number
from gradcli.formulas.algebra.expressions import (
    Expression,
    call,
    is_size,
    make,
    name,
    number,
    order,
)
from gradcli.formulas.algebra.generic_points import Generic, sample
from gradcli.formulas.derive.differentiate import Derivatives
from gradcli.formulas.derive.shape_inference import by_elements
from gradcli.formulas.derive.size_conditions import READS, given_integers
from gradcli.formulas.simplify.simplify import length, simplify
from gradcli.language.program import Program

Arrays = Mapping[str, Any]
Shape = tuple[int, ...]
Shapes = Mapping[str, Shape]

VALUE = ""  # the key of the program's value beside the labels of its derivatives
LARGEST = 64  # larger sizes are replaced by about this size
MOST_TRIES = 64  # trial runs to see which sizes must be equal
MOST = 10_000  # numbers in other sizes, or twice as many as there are: in five dimensions they grow fast
MOST_NEARBY = 24  # sizes tried next to the integers of a program
FAR = (
    0,
    1,
    *(2**k for k in range(3, 13)),
)  # sizes that are tried where a condition on sizes went one way
SIZED = frozenset(
    "zeros ones eye expand reshape".split()
)  # calls that are printed with their shape


class Size(int):
    """An int that is printed as a symbolic size."""

    text: str

    def __new__(cls, value: int, text: str) -> Size:
        """text: such as `x.shape[0]`."""
        made = super().__new__(cls, value)
        made.text = text
        return made

    def __repr__(self) -> str:
        return self.text

    __str__ = __repr__


def size_of(text: str, variables: Mapping[str, Any]) -> int:
    """The value of `x.shape[0]` or `x.numel()` for these variables."""
    word, _, rest = text.partition(".")
    shape = variables[word].shape
    return prod(shape) if rest == "numel()" else shape[int(rest[len("shape[") : -1])]


class NoSymbolicShape(Exception):
    """Two expressions differ in more than numbers that come from sizes."""


# -- other sizes ------------------------------------------------------------------------------------
Axis = tuple[str, int]
GENERIC, WITHIN, REPEATED = range(3)  # values in other sizes: see `resized`


class Move(NamedTuple):
    """Axes of one size that must change together, and axes whose size is a multiple of it."""

    size: int
    axes: list[Axis]
    multiples: list[Axis]

    def to(self, size: int, shapes: Mapping[str, list[int]]) -> dict[str, list[int]]:
        """The shapes with these axes changed to another size."""
        made = {n: list(s) for n, s in shapes.items()}
        for n, i in self.axes:
            made[n][i] = size
        for n, i in self.multiples:  # as a flattened dimension
            made[n][i] = made[n][i] // self.size * size
        return made


class Others(NamedTuple):
    """The variables in other sizes, and which axes changed together."""

    arrays: dict[str, Any]
    moves: list[Move]


def at_other_shapes(
    arrays: Arrays,
    runs: Callable[[Arrays], bool],
    prime: bool = True,
    values: Sequence[int] = (GENERIC, WITHIN),
) -> Others | None:
    """The variables in other sizes in which the program runs; as many sizes as possible are distinct.

    Sizes that must agree change together. prime: use primes (up to three dimensions, if the arrays stay
    small), so that no product is a multiple of another size by chance. values: the kinds of values to
    try (see `resized`), as the program may refuse some. None if the program runs in no other sizes.
    """
    for kind in values:
        if (found := _other_sizes(arrays, runs, prime, kind)) is not None:
            return found
    return None


def _other_sizes(
    arrays: Arrays, runs: Callable[[Arrays], bool], prime: bool, values: int
) -> Others | None:
    old = {n: np.shape(v) for n, v in arrays.items()}
    left = [(n, i) for n, s in old.items() for i, size in enumerate(s) if size > 1]
    current = {n: list(s) for n, s in old.items()}
    taken = {size for s in old.values() for size in s}
    tried = 0
    moves: list[Move] = []
    # Five dimensions of 7 to 13 would be 10**5 elements; what is given may be large anyway.
    most = max(MOST, 2 * sum(map(prod, old.values())))
    while left:
        first, *others = left
        own = old[first[0]][first[1]]
        fresh = _next(own, taken, prime and len(old[first[0]]) < 4)
        # No more than that of another, as an index has; or twice as many, where it is split in two.
        alike = {current[n][i] for m in moves if m.size == own for n, i in m.axes}
        groups = list(_groups(first, others, old))
        more = [(n, i) for n, s in old.items() for i, k in enumerate(s) if k > own and k % own == 0]
        trials = [
            # First alone, then with its equals, from few to many: a program that multiplies A by x refuses
            # a change of one side alone, and the smallest group that it takes is what the program ties
            # together.
            *product([fresh], groups, [[]]),
            *product([fresh], groups, [more] if more else []),
            *product(alike | {_multiple(own, taken)}, groups, [[]]),
        ]
        for size, group, flat in trials:
            tried += 1
            # Eight axes of one size have 255 groups, and each trial runs the program.
            if tried > MOST_TRIES:
                return None
            move = Move(own, group, flat)
            trial = move.to(size, current)
            if sum(map(prod, trial.values())) > most:
                continue
            if runs(resized(arrays, trial, values)):
                current = trial
                taken.add(size)
                moves.append(move)
                others = [a for a in others if a not in group]
                break
        left = others
    return Others(resized(arrays, current, values), moves) if moves else None


def all_of_one(
    arrays: Arrays, runs: Callable[[Arrays], bool], values: Sequence[int] = (GENERIC,)
) -> dict[str, Any] | None:
    """The variables with axes of size 1 or 0 made larger, as many as possible at once.

    All at once, because broadcasting makes another program of a mixture.
    """
    shapes = {n: np.shape(v) for n, v in arrays.items()}
    left = [(n, i) for n, s in shapes.items() for i, size in enumerate(s) if size < 2]
    size = _next(2, {size for s in shapes.values() for size in s}, True)
    groups = [left, *([a] for a in left if len(left) > 1)]
    for kind, group in product(values, groups if left else []):
        changed = Move(1, group, []).to(size, {n: list(s) for n, s in shapes.items()})
        made = resized(arrays, changed, kind)
        if sum(map(np.size, made.values())) <= MOST and runs(made):
            return made
    return None


def is_alike(one: Arrays, two: Arrays) -> bool:
    """Whether both points order their sizes alike: equal sizes are equal, and larger ones larger."""
    first, second = ([k for v in a.values() for k in np.shape(v)] for a in (one, two))
    return _ranks(first) == _ranks(second)


def _ranks(sizes: list[int]) -> list[int]:
    places = {size: k for k, size in enumerate(sorted(set(sizes)))}
    return [places[size] for size in sizes]


def alike_sizes(arrays: Arrays, values: int, prime: bool = True, smallest: bool = False) -> Others:
    """The variables in other sizes that are alike (see `is_alike`); size 1 stays 1.

    prime: use primes. smallest: whether sizes may become smaller.
    """
    axes: dict[int, list[Axis]] = {}
    for n, v in arrays.items():
        for i, size in enumerate(np.shape(v)):
            axes.setdefault(size, []).append((n, i))
    moves = [Move(size, axes[size], []) for size in sorted(axes) if size > 1]
    shapes = {n: list(np.shape(v)) for n, v in arrays.items()}
    last = 0
    for move in moves:
        least = 1 if smallest else min(move.size, LARGEST)
        last = _next(max(least, last), set(axes), prime)
        shapes = move.to(last, shapes)
    return Others(resized(arrays, shapes, values), moves)


def nearby(
    arrays: Arrays, moves: Sequence[Move], sizes: Iterable[int], values: int
) -> Iterator[dict[str, Any]]:
    """The variables with the axes of each move, and of all moves, changed to each of these sizes."""
    old = {n: list(np.shape(v)) for n, v in arrays.items()}
    for size in sizes:
        changed = [m.to(size, old) for m in moves if m.size != size]
        if len(moves) > 1:
            every = old
            for m in moves:
                every = m.to(size, every)
            changed.append(every)
        for shapes in changed:
            fits = (not size or all(map(all, shapes.values()))) and sum(
                map(prod, shapes.values())
            ) <= MOST
            if shapes != old and fits:
                yield resized(arrays, shapes, values)


def landmarks(program: Program, arrays: Arrays) -> list[int]:
    """Sizes at which a program may change its behaviour: those next to its integers.

    These are the integers in its calls and slices. If the program reads a size as a number, they are all
    its numbers, those of its variables, and small odd and even numbers.
    """
    reads = not READS.isdisjoint(program.words)
    if reads:
        given = [np.asarray(v).item() for v in arrays.values() if not np.ndim(v)]
        reals = [c for c in (*program.constants, *given) if type(c) in (int, float)]
        found = {int(c) for c in reals if abs(c) < MOST}
    else:
        found = given_integers(program)
    # `x[:3]` is all of x up to three elements, and a part of it from four on: the formula may hold on one
    # side.
    beside = [n for c in sorted(map(abs, found)) if c > 1 for n in (c + 1, c, c - 1, 2 * c)]
    small = [2, 3, 4, 5] if reads else []
    return [n for n in dict.fromkeys([*beside, *small]) if n > 1][:MOST_NEARBY]


def fewer(arrays: Arrays, runs: Callable[[Arrays], bool], values: int) -> dict[str, Any] | None:
    """The variables with sizes above LARGEST made small; None if the program runs in none."""
    shapes = [np.shape(v) for v in arrays.values()]
    taken = {size for s in shapes for size in s}
    small = {size: size for size in taken}
    # A proof at a large size costs as much at every point; equal sizes stay equal, or the program refuses.
    for size in sorted(taken):
        if size > LARGEST:
            small[size] = _next(4, taken, False)
            taken.add(small[size])
    changed = {n: tuple(small[k] for k in s) for n, s in zip(arrays, shapes, strict=True)}
    made = resized(arrays, changed, values)
    return made if runs(made) else None


def _next(size: int, taken: set[int], prime: bool) -> int:
    found = min(size, LARGEST) + 1
    # A size that occurs already could not be told from the other one.
    while found in taken or (prime and any(found % k == 0 for k in range(2, found))):
        found += 1
    return found


def _multiple(size: int, taken: set[int]) -> int:
    found = 2 * size
    while found in taken:
        found += size
    return found


def _groups(first: Any, others: list[Any], old: Shapes) -> Iterator[list[Any]]:
    """Groups of axes that may have to change together with the first, the smallest groups first."""
    alike = [a for a in others if old[a[0]][a[1]] == old[first[0]][first[1]]]
    most = 3 if len(alike) < 7 else 2
    for more in range(min(len(alike), most)):
        for chosen in combinations(alike, more):
            yield [first, *chosen]
    # With many axes of one size the groups are too many to try; batches are the first dimension of each.
    alone = [a for a in alike if a[1] == first[1]]  # as the batches of several variables
    if most < 3 and len(alone) > 1:
        yield [first, *alone]
    if alike:
        yield [first, *alike]
    else:
        yield [first]


def resized(arrays: Arrays, shapes: Mapping[str, Any], values: int = GENERIC) -> dict[str, Any]:
    """Arrays of these shapes in the variables' dtypes; integers are taken from the variables.

    values: GENERIC numbers, numbers WITHIN the range of each variable, or its own values REPEATED.
    """
    made: dict[str, Any] = {}
    for k, (n, v) in enumerate(arrays.items()):
        own, shape = np.asarray(v), tuple(shapes[n])
        if own.shape == shape:
            made[n] = v
        # Integers are indices or counts: drawn ones would point outside of what they index.
        elif own.dtype.kind not in "fc" or (values == REPEATED and own.size):
            made[n] = np.resize(own, shape)
        else:
            drawn = sample(shape, k)
            # A probability must stay one, and an angle in its range: else the program is not finite
            # anywhere.
            if values == WITHIN and own.size and own.dtype.kind == "f":
                low, high = own.min(), own.max()
                drawn = low + (high - low) * Generic(k + 1).uniform(0, 1, shape)
            made[n] = drawn.astype(own.dtype)
    return made


# -- numbers as sizes -------------------------------------------------------------------------------
Term = tuple[int, int, str]  # a size at either point, and its text


class Terms:
    """The formulas of sizes to try, those of the variables in `wrt` first."""

    def __init__(self, one: Shapes, two: Shapes, wrt: Sequence[str]) -> None:
        names = list(dict.fromkeys([*wrt, *one]))
        axes = [(n, i) for n in names for i in range(len(one[n])) if one[n][i] != two[n][i]]
        self.single: list[Term] = [(one[n][i], two[n][i], f"{n}.shape[{i}]") for n, i in axes]
        whole = [n for n in names if len(one[n]) > 1 and one[n] != two[n]]
        self.products: list[Term] = [
            (int(np.prod(one[n])), int(np.prod(two[n])), f"{n}.numel()") for n in whole
        ]
        # n - 1 is the divisor of an unbiased variance.
        self.less = [(a - 1, b - 1, f"{text} - 1") for a, b, text in self.single if a > 2]
        self.pairs = _products(self.single, 2)
        more = [p for p in _products([*self.single, *self.less], 2) if p not in self.pairs]
        cubes = [(p * p * (p - 1), q * q * (q - 1), f"{s}*{s}*{s} - 1") for p, q, s in self.single]
        cubes += [
            (p * (p - 1) ** 2, q * (q - 1) ** 2, f"{s}*{s} - 1*{s} - 1") for p, q, s in self.single
        ]
        cubes += [(p - 1, q - 1, f"{s} - 1") for p, q, s in self.products]
        self.several = [*more, *_products(self.single, 3), *cubes]
        two_of = combinations(self.single, 2)
        self.sums = [(a + c, b + d, f"{s} + {t}") for (a, b, s), (c, d, t) in two_of]

    def size(self, a: int, b: int) -> int:
        """The size in a shape or an option that is `a` at one point and `b` at the other."""
        if a == b:
            return a
        for terms in (self.single, self.products, self.less, self.pairs, self.sums):
            for p, q, text in terms:
                if (p, q) == (a, b):
                    return Size(a, text)
        # A multiple of a size: the 2*n of a concatenation of x with itself.
        for p, q, text in (*self.single, *self.products):
            if a * q == b * p and a % p == b % q == 0:
                return Size(a, f"{a // p}*{text}")
        raise NoSymbolicShape

    def number(self, a: Number, b: Number) -> Expression:
        """The simplest c*s, c/s or s + c of a size s that is `a` at one point and `b` at the other."""
        if a == b:
            return number(a)
        if not (a.exact and b.exact) or ZERO in (a, b):
            raise NoSymbolicShape
        best: tuple[int, Fraction, Expression] | None = None
        kinds = (self.single, self.products, self.less, self.pairs, self.sums, self.several)
        one = a.value.numerator * b.value.denominator
        two = b.value.numerator * a.value.denominator
        for rank, terms in enumerate(kinds):
            for p, q, text in terms:
                ratios = ((1, p, q), (-1, q, p), (2, p * p, q * q), (-2, q * q, p * p))
                for power, above, below in ratios:
                    if one * below != two * above:
                        continue
                    c = a.value / Fraction(p) ** power
                    # 3 of a vector of 3 may be n, and 6 of it may be 2*n or n*(n - 1): the simpler one, if
                    # both fit both sizes.
                    simple = abs(c.numerator) + c.denominator + 2 * rank
                    found = (simple, c, _powered(text, power))
                    best = found if best is None or found[0] < best[0] else best
        if best is not None:
            return alg.scale(Number(best[1]), best[2])
        for p, q, text in self.single:
            if a.value - p == b.value - q:
                return alg.combine([(_named(text), ONE), (alg.one, Number(a.value - p))])
        raise NoSymbolicShape


def _products(terms: Sequence[Term], count: int) -> list[Term]:
    chosen = [tuple(zip(*some, strict=True)) for some in combinations(terms, count)]
    return [(prod(a), prod(b), "*".join(texts)) for a, b, texts in chosen]


def _named(text: str) -> Expression:
    return name(text, (), -1)


def _sized_by(text: str) -> Expression:
    if " + " in text:
        return alg.add(*map(_named, text.split(" + ")))
    whole = _named(text.removesuffix(" - 1"))
    return alg.subtract(whole, alg.one) if text.endswith(" - 1") else whole


def _powered(text: str, power: int) -> Expression:
    """A power of a size, or of a product of sizes."""
    exponent = Number(Fraction(power))
    return alg.product([(_sized_by(part), exponent) for part in text.split("*")])


def unified(one: Expression, two: Expression, terms: Terms) -> Expression:
    """The first of two expressions, found in two sets of sizes, with symbolic sizes where they differ.

    Raises NoSymbolicShape if they differ in anything else.
    """
    made: dict[tuple[int, int], Expression] = {}
    stack = [(one, two, False)]
    while stack:
        a, b, ready = stack.pop()
        key = (id(a), id(b))
        if key in made:
            continue
        if ready:
            made[key] = _unified(a, b, made, terms)
            continue
        # One pair of sizes may make a sum of three terms, and another one of two that have merged.
        if a.op != b.op or len(a.args) != len(b.args) or len(a.shape) != len(b.shape):
            raise NoSymbolicShape
        stack.append((a, b, True))
        stack += [(x, y, False) for x, y in zip(a.args, b.args, strict=True)]
        if a.op == "product":
            pairs = zip(a.data[1], b.data[1], strict=True)
            stack += [(x, y, False) for x, y in pairs if _both(x, y)]
    return made[id(one), id(two)]


def _both(x: Any, y: Any) -> bool:
    return isinstance(x, Expression) and isinstance(y, Expression)


def _unified(
    a: Expression, b: Expression, made: Mapping[tuple[int, int], Expression], terms: Terms
) -> Expression:
    args = [made[id(x), id(y)] for x, y in zip(a.args, b.args, strict=True)]
    if a.op == "name":
        if a.data != b.data:
            raise NoSymbolicShape
        return a
    if a.op == "number":
        return terms.number(a.data, b.data)
    if a.op == "array":
        if not np.array_equal(a.data, b.data):
            raise NoSymbolicShape
        return a
    if a.op == "sum":
        pairs = [*zip(a.data[0], b.data[0], strict=True), (a.data[1], b.data[1])]
        factors = [terms.number(p, q) for p, q in pairs]
        return alg.add(
            *(alg.multiply(f, t) for f, t in zip(factors, [*args, alg.one], strict=True))
        )
    if a.op == "product":
        factor = terms.number(a.data[0], b.data[0])
        exponents = []
        for x, y in zip(a.data[1], b.data[1], strict=True):
            if _both(x, y):
                exponents.append(made[id(x), id(y)])
            elif x == y:
                exponents.append(x)
            else:
                raise NoSymbolicShape
        return alg.product([(factor, ONE), *zip(args, exponents, strict=True)])
    return _called(a, b, args, terms)


def _called(a: Expression, b: Expression, args: list[Expression], terms: Terms) -> Expression:
    word, options = a.data
    if b.data[0] != word or [k for k, _ in options] != [k for k, _ in b.data[1]]:
        raise NoSymbolicShape
    given = [(k, _option(x, y, terms)) for (k, x), (_, y) in zip(options, b.data[1], strict=True)]
    shape = a.shape
    if word in SIZED:
        shape = tuple(terms.size(p, q) for p, q in zip(a.shape, b.shape, strict=True))
        key = ("sized", word, tuple(map(id, args)), repr(given), repr(shape), a.shape)
        return make("call", tuple(args), (word, tuple(given)), shape, key)
    return call(word, args, shape, given)


def _option(a: Any, b: Any, terms: Terms) -> Any:
    if type(a) is int and type(b) is int:
        return terms.size(a, b)
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        return tuple(_option(x, y, terms) for x, y in zip(a, b, strict=True))
    if repr(a) != repr(b):
        raise NoSymbolicShape
    return a


def _shortest(expression: Expression) -> Expression:
    """The shortest form of a sum: eye(n) - ones(n, n)/n for (n*eye(n) - ones(n, n))/n."""
    if expression.op != "product":
        return expression
    pairs = alg.powers_of(expression)
    sums = [b for b, e in pairs if b.op == "sum" and e == ONE]
    if len(sums) != 1 or not any(is_size(b) for b, _ in pairs):
        return expression
    factor = alg.product([p for p in pairs if p[0] is not sums[0]], expression.data[0])
    spread = alg.combine((alg.multiply(factor, t), c) for c, t in alg.terms_of(sums[0]))
    return min(expression, spread, key=length)


# How a formula becomes right for any size. A derivative is found for numbers of rows and columns, say 3 and
# 4, and may have a 12 in it: is that 3*4, or a 12 that the program wrote? So it is found again in other
# sizes, say 5 and 7. Both are one formula but for their numbers, and where these are 12 and 35 the size is
# x.numel(). Primes are taken, so that no number is the product of two sizes by chance. What differs in more
# than numbers has no formula for any size here.
def sized(
    found: Derivatives,
    one: Derivatives,
    find: Callable[[Mapping[str, Any]], Derivatives],
    others: Sequence[Mapping[str, Any]],
) -> Derivatives | None:
    """The derivatives with symbolic sizes for numbers that came from sizes; None if there are none.

    one: the same derivatives, not in their shortest form. find: finds them so for other variables. others:
    the variables in two other sets of sizes; the second serves where the given sizes simplify by chance,
    as 2/n does for n = 2.
    """
    two = find(others[0])
    old = _expressions(one)
    by, left = _sized(one, two, list(old))
    if left:
        one, two = two, find(others[1])
        more, _ = _sized(one, two, list(old))  # all: they share subexpressions
        # What is read element by element is written so, and so is what is shorter for the sizes given.
        listed = by_elements(found.program)
        by |= {
            n: e
            for n, e in more.items()
            if _calls(e) <= _calls(old[n]) and listed.keys().isdisjoint(n.split("."))
        }
    by = {n: e for n, e in by.items() if e is not old[n]}
    if not by:
        return None
    made = copy(found)
    made.named = None
    made.value = by.get(VALUE, found.value)
    if found.value.shape == found.shape:
        made.shape = made.value.shape
    made.by = {label: by.get(label, expression) for label, expression in found.by.items()}
    made.lower = [
        {n: by.get(f"{k} {n}", expression) for n, expression in stage.items()}
        for k, stage in enumerate(found.lower)
    ]
    return made


def is_same(found: Derivatives, other: Derivatives) -> bool:
    """Whether the derivatives found in two sets of sizes are identical."""
    old = _expressions(found)
    by, left = _sized(found, other, list(old))
    return not left and all(e is old[n] for n, e in by.items())


def _expressions(found: Derivatives) -> dict[str, Expression]:
    """All expressions of a result: the value, lower orders (as "0 x"), and derivatives by label."""
    stages = enumerate(found.lower)
    lower = {f"{k} {n}": expression for k, stage in stages for n, expression in stage.items()}
    return {VALUE: found.value, **lower, **found.by}


def _spread(expression: Expression) -> Expression:
    """A quotient distributed over a sum: x/4 - y/4 for (x - y)/4."""
    if expression.op == "product" and len(expression.args) == 1 and expression.data[1] == (ONE,):
        return alg.combine([(expression.args[0], expression.data[0])])
    return expression


def _calls(expression: Expression) -> int:
    return sum(node.op == "call" and node.args != () for node in order([expression]))


def _sized(
    one: Derivatives, two: Derivatives, labels: list[str]
) -> tuple[dict[str, Expression], list[str]]:
    """(the derivatives with symbolic sizes, the labels of those that could not be unified)."""
    first, second = ({n: np.shape(v) for n, v in d.variables.items()} for d in (one, two))
    made, left = {}, []
    firsts, seconds = _expressions(one), _expressions(two)
    for label in labels:
        own, other = firsts[label], seconds[label]
        wrt = [n for n in label.rpartition(" ")[2].split(".") if n in first]
        terms = Terms(first, second, wrt)
        try:
            found = _shortest(unified(own, other, terms))
        except NoSymbolicShape:
            try:  # over one number in one set of sizes, over another or none in the other
                found = unified(_spread(own), _spread(other), terms)
            except NoSymbolicShape:
                left.append(label)
                continue
        same = found is own or found is _spread(own)
        made[label] = own if same else min((found, simplify(found)), key=length)
    return made, left


__all__ = ["Size", "at_other_shapes", "size_of", "sized"]

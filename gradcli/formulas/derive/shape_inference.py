"""Shape inference for free variables, from what the program does with them.

A variable is a scalar unless one of these requires more:

1. an operator that takes no scalars (a matrix product, `det`, `x[0]`): the variable gets the smallest rank
   with which the program runs; for a capital letter a matrix is tried first;
2. a reduction, or an operator that works along a dimension or changes its size (`sum`, `norm`, `softmax`,
   `tile`): its operand is a vector, or a matrix if the name begins with a capital. In
   `sum((y - a*x - b)**2)` only names that people give to data (`x`, `y`, `weights`) become vectors;
   parameters (`a`, `b`, `mu`) stay scalars;
3. a sum with an array that only one size fits: the `b` of `A@x - b`;
4. elements that are read one by one, all of them: the `x` of `x[0]*x[1]` has two.

Then dimensions that need not be equal are made different. Those that have the same letter in an operator's
`index` (`ii` of `trace`) are equal. They get sizes with which what is inverted or factorised has full rank:
the X of `inv(X.T@X)` is tall. No other rule looks at values: the rank at a generic point is a property of the
shapes, and NaN is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, combinations, count, islice, permutations, product
from math import prod
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from gradcli.engine.system import dtypes
from gradcli.formulas.algebra.generic_points import quiet, sample
from gradcli.formulas.derive.size_conditions import given_integers
from gradcli.formulas.derive.sound_sizes import are_square, asks_for_rank, singular
from gradcli.language import tree_kinds
from gradcli.language.located_errors import LanguageError
from gradcli.language.program import Program
from gradcli.language.scope_checks import free_names
from gradcli.transforms.traced_run import traced_run
from gradcli.transforms.tracing.calls import Call, Value, calls, operands_of

Shape = tuple[int, ...]
Sizes = tuple[int | str, ...]  # a shape in which letters stand for sizes
Shapes = dict[str, Shape]
Axis = tuple[str, int]
Suits = Callable[[Mapping[str, Any]], bool]

SIZE = 3  # the size of every dimension while ranks are tried
EVEN = 4  # the same, if the program splits in halves
MOST_TRIES = 400
MOST_GIVEN = 12  # an integer in a call that may be a size
MOST = 300  # numbers in all variables, if sizes may be chosen

_DATA = frozenset("pqrstuvwxyz")
_GREEK = frozenset(
    "alpha beta gamma delta epsilon eps zeta eta theta iota kappa lambda lambd lamda lam mu nu xi rho "
    "sigma tau phi chi psi omega".split()
)
_BIASES = frozenset("bfgh")  # what is no data, and may be a vector that is added to each row


class _Trial(NamedTuple):
    """A trial run: the shape of the program's value, and its calls."""

    shape: Shape
    calls: list[Call]


# How shapes are found: by running the program. With numbers first, then vectors and matrices, by the habits
# of names (capitals are matrices). `A@x - b` fails with a number for A, runs with A of 3 x 3 and an x of 3,
# and b is then tried as a vector, too. At last, sizes are made different one after the other: what the
# program refuses is tied. So `A@x` ends with A of 3 x 4 and an x of 4, and nothing here needs to know what
# an operator does to shapes.
class Inference:
    """The search for the shapes of a program's free variables.

    arrays: the known values. declared: declared shapes. names: other names that the program may read.
    suits: a further condition on values of the inferred shapes. square: whether dimensions with one letter
    in an operator's `index` must be equal, as those of a trace.
    """

    def __init__(
        self,
        program: Program,
        arrays: Mapping[str, Any],
        declared: Mapping[str, Shape],
        free: Sequence[str],
        names: Mapping[str, Any],
        suits: Suits | None = None,
    ) -> None:
        self.program, self.arrays, self.declared = program, arrays, declared
        self.free, self.names, self.suits = free, names, suits
        self.square = True
        self.ranks: Mapping[str, int] = {}  # of free variables, where they are known
        self._tried: dict[tuple[Shape, ...], _Trial | None] = {}
        self._reached: dict[
            tuple[Shape, ...], tuple[int, int]
        ] = {}  # how far trials ran that failed

    def trial(self, shapes: Mapping[str, Shape]) -> _Trial | None:
        """A trial run on values of these shapes; None if it fails or they do not suit."""
        key = self._key(shapes)
        if key not in self._tried:
            self._tried[key] = self._run(shapes)
        return self._tried[key]

    def _key(self, shapes: Mapping[str, Shape]) -> tuple[Shape, ...]:
        return tuple(shapes[n] for n in self.free)

    def _run(self, shapes: Mapping[str, Shape]) -> _Trial | None:
        every = enumerate({**self.declared, **shapes}.items())
        given = {**self.arrays, **{n: sample(s, k) for k, (n, s) in every}}
        try:
            with quiet():
                found, trace = traced_run(self.program, given, (), True, self.names)
        except LanguageError as error:
            # The farther a run came before it failed, the nearer its shapes are: an error's place says how
            # far.
            start, end = error.span or (0, -1)
            self._reached[self._key(shapes)] = end, -start  # the order in which nodes are evaluated
            return None
        self._reached[self._key(shapes)] = len(self.program.source) + 1, 0
        if self.suits and not self.suits(given):
            return None
        value = trace.value_of(found)
        made = calls([value])
        return _Trial(value.shape, made) if not self.square or are_square(made) else None

    def shapes(self) -> Shapes | None:
        """The inferred shapes; None if the program runs on none that were tried."""
        found = self._search()
        # Square matrices are asked for where an operator's index says so, as long as that is possible.
        if found is None and self.square:
            self.square, self._tried = False, {}
            found = self._search()
        return found

    def _known(self) -> set[int]:
        """The sizes of arrays and of declared shapes."""
        return {
            k for s in (*self.declared.values(), *map(np.shape, self.arrays.values())) for k in s
        }

    def _search(self) -> Shapes | None:
        sizes = self._known()
        # `x.reshape(2, 6)` runs for twelve elements alone: its integers are sizes worth trying.
        given = {n for n in given_integers(self.program) if 1 < n <= MOST_GIVEN} - {SIZE, *sizes}
        every = [*sorted({SIZE, *sizes}), *sorted(given)]
        for group in (every if len(every) < 4 else [SIZE]), [EVEN]:
            said = {**_spelled(self.program), **self.ranks}
            for ranks in _ranks(self.free, said)[:MOST_TRIES]:
                for size in group:
                    found = {n: (size,) * r for n, r in zip(self.free, ranks, strict=True)}
                    if self.trial(found):
                        found = self._added(self._lowered(found), size, any(ranks))
                        return self._loosened(self._reduced(found, size))
        return self._fitted(sorted(sizes))

    def _open(self, shapes: Shapes, rank: int | None = None) -> list[str]:
        """The variables whose rank nobody said, those that have this one now."""
        own = (n for n in shapes if n not in self.ranks)
        return [n for n in own if rank is None or len(shapes[n]) == rank]

    # -- vectors ----------------------------------------------------------------------------------
    def _added(self, shapes: Shapes, size: int, beside: bool) -> Shapes:
        """Scalars as arrays that fit at their size alone: the b of `A@x - b`; beside data, `X@w + b - y`,
        it is a number, and beside data that are matrices, `X@W + b - Y`, the vector of each row.

        beside: whether there are other arrays than constants, as in `K + eye(3)`, which only take capitals.
        """
        if (result := self.trial(shapes)) is None:
            return shapes
        scalars = [n for n in self._open(shapes, 0) if beside or n[:1].isupper()]
        data = [n for n in scalars if _is_data(n)]
        # Data first: once y is a vector, the b beside it may stay a number.
        for name in [*data, *(n for n in scalars if n not in data)]:
            every = [_array(name, size), *_met(result.calls, name)]
            tried = ((s, self.trial({**shapes, name: s})) for s in every)
            shape, more = next(((s, t) for s, t in tried if t is not None), ((), None))
            if more is None or more.shape != result.shape:
                continue
            added, gaps = _meets(more.calls, name)
            rows = name in _BIASES and added and max(gaps) > 0
            if name not in data and any(shapes[n] for n in data):
                fits = rows
            elif name in data or name in _BIASES:
                fits = added or not any(gaps)
            else:
                fits = added and not any(gaps)
            # If the program also takes another size, the variable is no partner of the arrays but
            # broadcasts with them.
            if fits and self.trial({**shapes, name: tuple(k + 1 for k in shape)}) is None:
                shapes = {**shapes, name: shape}
        return shapes

    def _lowered(self, shapes: Shapes) -> Shapes:
        """The shapes with capital letters made scalars where they may multiply: the C of `C*sum(x)`."""
        for name in [n for n in self._open(shapes) if shapes[n] and n[:1].isupper()]:
            trial = self.trial({**shapes, name: ()})
            if trial and all(
                _is_elementwise(c)
                for c in trial.calls
                if any(v.name == name for v in operands_of(c))
            ):
                shapes = {**shapes, name: ()}
        return shapes

    def _reduced(self, shapes: Shapes, size: int) -> Shapes:
        """Scalars as arrays, if an operator reduces them or works along their dimension."""
        for _ in self.free:
            trial = self.trial(shapes)
            scalars = self._open(shapes, 0)
            asked = list(_asked(trial.calls if trial else [], set(scalars)))
            # All that an operator asks for together, then all but one of them: `dot(a*x, y)` may have a
            # number a.
            fewer = [[n for n in names if n != one] for names in asked for one in (None, *names)]
            if self.suits is None:  # last with another, which must have the same shape
                fewer += [[*names, n] for names in asked for n in scalars if n not in names]
            larger = ({**shapes, **{n: _array(n, size) for n in names}} for names in fewer if names)
            better = next((s for s in larger if self.trial(s)), None)
            if better is None:
                break
            shapes = better
        return shapes

    # -- sizes ------------------------------------------------------------------------------------
    def _loosened(self, shapes: Shapes) -> Shapes:
        """The shapes with dimensions that need not be equal made different."""
        axes = [(n, i) for n, s in shapes.items() for i in range(len(s))]
        known, current, left = self._known(), shapes, axes
        size = max((*known, *(k for s in shapes.values() for k in s)), default=0)
        while left:
            group = self._together(left, current, size + 1)
            # If all axes are tied there is one size only, and any will do.
            if group and (len(group) < len(axes) or known.intersection(_sizes(current, group))):
                current, size = _moved(current, group, size + 1), size + 1
            left = [a for a in left[1:] if a not in group]
        return self._of_full_rank(current, shapes) if _count(current) <= MOST else shapes

    def _together(self, axes: list[Axis], shapes: Shapes, size: int) -> list[Axis]:
        """The axes that must change to a size together with the first; [] if it cannot change.

        Those are added with which the program runs furthest.
        """
        group, reached = axes[:1], (-2, 0)
        while not self.trial(moved := _moved(shapes, group, size)):
            reached = max(reached, self._reached[self._key(moved)])
            left = [a for a in axes if a not in group]
            for more in chain(combinations(left, 1), combinations(left, 2)):
                moved = _moved(shapes, [*group, *more], size)
                if self.trial(moved) or self._reached[self._key(moved)] > reached:
                    group = [*group, *more]
                    break
            else:
                return []
            if len(self._tried) > MOST_TRIES:
                return []
        return group

    def _of_full_rank(self, shapes: Shapes, alike: Shapes) -> Shapes:
        """The shapes with their sizes permuted so that no matrix that needs full rank is singular.

        alike: those with all sizes equal, for programs such as `det(X.T@X) + det(X@X.T)`.
        """
        sizes = sorted({k for s in shapes.values() for k in s})
        smaller = permutations([*sizes, SIZE - 1], len(sizes))
        for order in islice(chain(permutations(sizes), smaller), MOST_TRIES):
            new = dict(zip(sizes, order, strict=True))
            found = {n: tuple(new[k] for k in s) for n, s in shapes.items()}
            if self.trial(found) and self.has_full_rank(found):
                return found
        return alike if self.has_full_rank(alike) else shapes

    def has_full_rank(self, shapes: Mapping[str, Shape]) -> bool:
        """Whether no matrix that needs full rank is singular wherever the variables have these shapes."""
        trial = self.trial(shapes)
        if trial is None or not asks_for_rank(trial.calls):
            return trial is not None
        drawn = {n: sample(s) for n, s in {**self.declared, **shapes}.items()}
        return singular(self.program, {**self.arrays, **drawn}, self.names) is None

    def _fitted(self, sizes: list[int]) -> Shapes | None:
        """Shapes composed of the sizes of variables whose shape is known."""
        if len(self.free) > 2 or len(sizes) > 4 or not sizes:
            return None
        choices: list[Shape] = [(n,) for n in sizes] + list(product(sizes, repeat=2))
        every = product(choices, repeat=len(self.free))
        found = (dict(zip(self.free, shapes, strict=True)) for shapes in every)
        return next((shapes for shapes in found if self.trial(shapes)), None)


def infer(
    program: Program,
    arrays: Mapping[str, Any],
    declared: Mapping[str, Shape],
    free: Sequence[str],
    names: Mapping[str, Any],
    *suits: Suits,
    ranks: Mapping[str, int] = MappingProxyType({}),
) -> Shapes:
    """Shapes of the free variables (see `Inference`); scalars if none works, for the program to say why.

    suits: a further condition on values of these shapes, ignored if no values satisfy it. ranks: of some
    variables, ignored if the program does not run with them.
    """
    for suit in (*suits, None) if free else ():
        for said in (ranks, {}) if ranks else ({},):
            found = _beside(program, arrays, declared, free, names, suit, said)
            if not found:
                search = Inference(program, arrays, declared, free, names, suit)
                search.ranks = said
                found = search.shapes()
            if found:
                return found
    return dict.fromkeys(free, ())


def _beside(
    program: Program,
    arrays: Mapping[str, Any],
    declared: Mapping[str, Shape],
    free: Sequence[str],
    names: Mapping[str, Any],
    suit: Suits | None,
    ranks: Mapping[str, int],
) -> Shapes | None:
    """Shapes of the free variables that fit the known ones, which have several sizes; None if none do.

    Beside a W of 3 x 2 the x of `tanh(W@x)` has two elements: the ties are found as if no size was known.
    """
    known = {n: a.shape for n, a in arrays.items() if a.ndim and a.dtype.kind == "f"}
    known |= {n: s for n, s in declared.items() if s}
    if len({k for s in known.values() for k in s}) < 2:
        return None
    others = {n: a for n, a in arrays.items() if n not in known}
    own = [n for n in free_names(program) if n in known or n in free]
    numbers = {n: s for n, s in declared.items() if not s}
    search = Inference(program, others, numbers, own, names)
    search.ranks = {**ranks, **{n: len(s) for n, s in known.items()}}
    if (tied := search.shapes()) is None:
        return None
    sizes: dict[int, int] = {}
    for n, shape in known.items():
        for own, size in zip(tied.get(n, shape), shape, strict=True):
            if sizes.setdefault(own, size) != size:  # tied, and not equal
                return None
    new = (k for k in count(SIZE) if k not in {*sizes.values()})
    found = {
        n: tuple(sizes[k] if k in sizes else sizes.setdefault(k, next(new)) for k in tied[n])
        for n in free
    }
    return found if Inference(program, arrays, declared, free, names, suit).trial(found) else None


def fixed_sizes(
    program: Program,
    arrays: Mapping[str, Any],
    guessed: Mapping[str, Shape],
    known: Mapping[str, Any],
) -> Iterator[int]:
    """The inferred sizes that the program decides: it takes no others, as `cross(a, b)` only 3."""
    yield from {k for n, s in by_elements(program).items() if n in guessed for k in s}
    given = {n: a for n, a in arrays.items() if n not in guessed}
    run = Inference(program, given, {}, list(guessed), known)
    sizes = {k for s in guessed.values() for k in s}
    for size in sizes:
        axes = [(n, i) for n, s in guessed.items() for i, k in enumerate(s) if k == size]
        others = max(sizes) + 1, size - 1
        if not any(run.trial(_moved(dict(guessed), axes, k)) for k in others):
            yield size


def shapes_said(shapes: Mapping[str, Shape]) -> str:
    """`x of shape (3,), y of shape ()`."""
    return ", ".join(f"{n} of shape {s}" for n, s in shapes.items())


def sizes_said(arrays: Mapping[str, Any]) -> str:
    """The shapes of all variables that are not scalars, in words."""
    return shapes_said({n: np.shape(v) for n, v in arrays.items() if np.ndim(v)})


def larger(shapes: Mapping[str, Shape], guessed: Mapping[str, Shape]) -> Shapes:
    """The shapes with every inferred size made larger, equal sizes equally.

    Empty if no size was inferred, or if the arrays would be too large.
    """
    # What is given has its size; an inferred size equal to it may be tied to it, and stays.
    fixed = {n for name, s in shapes.items() if name not in guessed for n in s}
    free = {n for s in guessed.values() for n in s} - fixed
    found = {n: tuple(k + 2 * (k in free) for k in s) for n, s in shapes.items()}
    return found if found != dict(shapes) and _count(found) <= MOST else {}


def _count(shapes: Mapping[str, Shape]) -> int:
    return sum(map(prod, shapes.values()))


def _ranks(free: Sequence[str], said: Mapping[str, int]) -> list[tuple[int, ...]]:
    """Combinations of ranks, the likely ones first. said: those that are known."""

    def all_of(rank: int) -> tuple[int, ...]:
        return tuple(said.get(n, rank) for n in free)

    # Capitals are matrices, as everywhere in linear algebra; other names are numbers before vectors.
    likely: list[tuple[int, ...]] = []
    for n in free:
        habit = (2, 1, 0) if n[:1].isupper() else (0, 1, 2)
        likely.append((said[n],) if n in said else habit)
    # Numbers first: most formulas that people type are of numbers, and `x*y` shall not be of vectors.
    scalars = all_of(0)
    # All combinations of three ranks of seven names are 2,187 runs of the program.
    if len(free) > 6:
        firsts = tuple(order[0] for order in likely)
        return [scalars, firsts, all_of(1), all_of(2)]
    places = [{r: i for i, r in enumerate(order)} for order in likely]
    every = product(*likely)
    found = sorted(every, key=lambda ranks: sum(p[r] for p, r in zip(places, ranks, strict=True)))
    found = [scalars, *found]
    if len(free) > 3:
        return found
    ranks = ((said[n],) if n in said else range(5) for n in free)
    batched = (ranks for ranks in product(*ranks) if max(ranks) > 2)
    return found + sorted(batched, key=lambda ranks: (max(ranks), -sum(ranks)))


def _spelled(program: Program) -> dict[str, int]:
    """The ranks that the equations of `einsum` say: 2 of A in einsum('ij,j->i', A, x)."""
    kinds, operands, words = program.kinds, program.operands, program.words
    call, *called = (tree_kinds.KIND[kind] for kind in ("call", "name", "attribute"))
    found = {}
    for row, kind in enumerate(kinds):
        own, *given = program.children(row) if kind == call else [row]
        if not given or kinds[own] not in called or words[operands[own]] != "einsum":
            continue
        equation, *arrays = given
        text = (
            program.constants[operands[equation]] if kinds[equation] == tree_kinds.CONSTANT else 0
        )
        parts = text.partition("->")[0].split(",") if isinstance(text, str) else ()
        for letters, operand in zip(parts, arrays, strict=False):
            if kinds[operand] == tree_kinds.NAME and "." not in letters:
                found[words[operands[operand]]] = len(letters.strip())
    return found


def _sizes(shapes: Shapes, axes: Sequence[Axis]) -> set[int]:
    return {shapes[n][i] for n, i in axes}


def _moved(shapes: Shapes, axes: Sequence[Axis], size: int) -> Shapes:
    """The shapes with these axes changed to a size."""
    made = {n: list(s) for n, s in shapes.items()}
    for n, i in axes:
        made[n][i] = size
    return {n: tuple(s) for n, s in made.items()}


# -- what a program requires ----------------------------------------------------------------------
def _asked(made: Sequence[Call], scalars: set[str]) -> Iterator[list[str]]:
    """The scalars that each operator would rather have as vectors, in the program's order.

    Of an operator that is neither elementwise nor along a dimension, as `kron`, its capitals.
    """
    for call in made:
        if _is_elementwise(call):
            continue
        operands = [v for v in operands_of(call) if not v.constant and v.ndim < 2]
        # kron takes numbers as well as matrices: only the habit of capitals tells that A is a matrix.
        if not _takes_together(call):
            own = [v.name or "" for v in operands]
            names = [n for n in dict.fromkeys(own) if n in scalars and n[:1].isupper()]
        else:
            reached = [n for n in dict.fromkeys(_reached(operands)) if n in scalars]
            names = [n for n in reached if _is_data(n)]
            if not names and all(v.ndim == 0 for v in operands):
                names = reached
        if names:
            yield names


def _is_elementwise(call: Call) -> bool:
    return "elementwise" in (call.primitive.linearity, call.primitive.batching)


def _is_of_alike(call: Call) -> bool:
    """Whether an operator is of things of one kind, as a sum, a maximum, a comparison or a loss is.

    Twice of each is twice as much, as of a sum, or one more of each is one more, as of logaddexp. Of a
    product it is four times as much, of a quotient it is the same.
    """
    if call.primitive.linearity == "loss":
        return True

    def changed(factor: float, shift: float) -> Any:
        args = [a.value * factor + shift if isinstance(a, Value) else a for a in call.args]
        with quiet():
            return call.primitive.compute(args)

    try:
        own, twice, more = changed(1, 0), changed(2, 0), changed(1, 1)
        return (
            np.asarray(own).dtype == bool
            or np.allclose(twice, 2 * own, equal_nan=True)
            or np.allclose(more, own + 1, equal_nan=True)
        )
    except Exception:  # of integers alone, or of several results
        return call.primitive.linearity != "bilinear"


def _takes_together(call: Call) -> bool:
    """Whether an operator reduces a vector, works along its dimension, or changes its size."""
    # Asked with numbers: what a vector in place of a scalar makes of its shape tells whether it is reduced.
    vector = sample((SIZE,))

    def larger(arg: Any) -> Any:
        if not isinstance(arg, Value):
            return arg
        return arg.value if arg.constant or arg.ndim else vector.astype(arg.value.dtype)

    try:
        with quiet():
            found = call.primitive.compute([larger(a) for a in call.args])
    except Exception:  # it takes no vectors
        return False
    shape = np.shape(found if call.primitive.returns_one else found[0])
    return shape == () or (len(shape) == 1 and (shape != (SIZE,) or bool(call.primitive.axes)))


def _met(made: Sequence[Call], name: str) -> list[Shape]:
    """The shapes of the arrays that a scalar meets elementwise; of their rows where it is no capital."""
    ndim = len(_array(name, SIZE))
    operands = [operands_of(c) for c in made if _is_elementwise(c)]
    beside = [v for own in operands if any(_variables(v) == {name} for v in own) for v in own]
    return list(dict.fromkeys(v.shape[-ndim:] for v in beside if v.ndim >= ndim))


def _meets(made: Sequence[Call], name: str) -> tuple[bool, list[int]]:
    """(whether a variable is added to all arrays that it meets, how many more dimensions each has)."""
    linear, gaps = [], []
    for call in made:
        operands = operands_of(call)
        own = [v for v in operands if _variables(v) == {name}]
        others = [v.ndim for v in operands if v not in own and v.ndim]
        if own and others and _is_elementwise(call):
            linear.append(_is_of_alike(call))
            gaps.append(max(others) - own[0].ndim)
    return bool(linear) and all(linear), gaps


def _variables(value: Value) -> set[str]:
    """The variables on which a value depends."""
    read = [value, *(v for call in calls([value]) for v in operands_of(call))]
    return {v.name for v in read if v.name is not None}


def _reached(values: Sequence[Value]) -> Iterator[str]:
    """The variables of which these values are elementwise functions; a number may be spread on the way.

    A number beside an array that the program itself writes stays one: the x of `x**arange(1, 4)`.
    """
    seen: set[int] = set()
    stack = list(values)[::-1]
    while stack:
        value = stack.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if value.name is not None:
            yield value.name
        elif value.call is not None:
            operands = operands_of(value.call)
            spread = prod(value.shape) > 1 and not any(v.ndim for v in operands)
            if any(v.constant and v.ndim for v in operands):
                operands = [v for v in operands if v.ndim]
            if spread or _is_elementwise(value.call):
                stack += operands[::-1]


def _array(name: str, size: int) -> Shape:
    """The shape of a vector; of a matrix for a name with a capital letter."""
    return (size,) * (2 if name[:1].isupper() else 1)


def _is_data(name: str) -> bool:
    """Whether a name usually stands for data or an unknown vector, and not for a parameter.

    A name with an index or a number is judged as its letter: `d_k` and `eta_1` are parameters, `x_1` is not.
    """
    letter = name.partition("_")[0].rstrip("0123456789")
    if len(letter) == 1 or letter.lower() in _GREEK:
        name = letter
    if len(name) == 1:
        return name in _DATA or name.isupper()
    return name.lower() not in _GREEK


# -- values ----------------------------------------------------------------------------------------
def made_up(
    program: Program,
    arrays: Mapping[str, Any],
    declared: Mapping[str, Sizes],
    names: Sequence[str],
    known: Mapping[str, Any],
    *suits: Suits,
) -> tuple[dict[str, Any], Shapes]:
    """(values of all variables in program order, the shapes that were inferred).

    arrays: the known values. names: the variables without a value. declared: shapes of some of them, in
    numbers and letters, `*` for each dimension whose size is to be inferred. known: other names that the
    program may read. suits: see `infer`. What is only
    read as an index (the k of `x[k]`) is 0, an integer. The other made-up values have the default dtype; if
    possible, the program's value is not NaN there.
    """
    ranks = {n: len(s) for n, s in declared.items() if {*s} == {"*"}}
    declared = {n: s for n, s in declared.items() if n not in ranks}
    # An index must be an integer, and 0 is in every dimension.
    whole = {n: np.int64(0) for n in _indices(program) if n in names and n not in declared}
    arrays = {**arrays, **whole}
    names = [n for n in names if n not in whole]
    lettered = {n for n, s in declared.items() if any(isinstance(k, str) for k in s)}
    # x[0]*x[1] says that x has two elements; a longer one would have derivatives of 0 that nobody asked
    # for.
    listed = {n: s for n, s in by_elements(program).items() if n in names and n not in declared}
    if listed and _runs(program, arrays, {**declared, **listed}, names, known):
        declared, lettered = {**declared, **listed}, {*lettered, *listed}
    free = [n for n in names if n not in declared]
    first: tuple[Shapes, Shapes] | None = None
    for shapes in _numbered(declared, arrays):
        guessed = infer(program, arrays, shapes, free, known, *suits, ranks=ranks)
        every = Inference(program, arrays, {**shapes, **guessed}, [], known)
        # inv(A.T@A) of a wide A is singular at every point: letters get other sizes until it is not.
        if not lettered or every.has_full_rank({}):
            break
        if first is None and every.trial({}):
            first = shapes, guessed
    else:  # no sizes work, and the program says why
        shapes, guessed = first or (next(_numbered(declared, arrays)), guessed)
    shapes |= guessed
    guessed |= {n: shapes[n] for n in lettered}
    dtype = dtypes.get_default_dtype().dtype
    found = dict(arrays)
    for point in _points({n: shapes[n] for n in names}) if names else ():
        made = {**arrays, **{n: v.astype(dtype)[()] for n, v in point.items()}}
        value = _value(program, made, known)
        if value is None and found.keys() == made.keys():
            continue
        found = made
        # log(x - 2) is NaN near 1: the points go farther out until there is something to compare.
        if value is not None and not np.isnan(value).all():
            break
    order = [n for n in free_names(program) if n in found]
    return {n: found[n] for n in [*order, *(n for n in found if n not in order)]}, guessed


def _runs(
    program: Program,
    arrays: Mapping[str, Any],
    declared: Mapping[str, Sizes],
    names: Sequence[str],
    known: Mapping[str, Any],
) -> bool:
    """Whether the program runs with some shapes of the other names."""
    free = [n for n in names if n not in declared]
    shapes = next(_numbered(declared, arrays))
    found = {**shapes, **infer(program, arrays, shapes, free, known)}
    return Inference(program, arrays, found, [], known).trial({}) is not None


def _subscripts(program: Program) -> list[tuple[int, list[int]]]:
    """(what is read, the indices) of each subscript."""
    subscript, tuple_ = (tree_kinds.KIND[kind] for kind in ("subscript", "tuple"))
    found = []
    for row, kind in enumerate(program.kinds):
        if kind == subscript:
            own, index = program.children(row)
            several = program.kinds[index] == tuple_
            found.append((own, program.children(index) if several else [index]))
    return found


def _reads(program: Program) -> dict[str, list[int]]:
    """Where each name is read."""
    found: dict[str, list[int]] = {}
    for row, kind in enumerate(program.kinds):
        if kind == tree_kinds.NAME:
            found.setdefault(program.words[program.operands[row]], []).append(row)
    return found


def _indices(program: Program) -> list[str]:
    """The names that are read in subscripts alone: i and j of `A[i, j]`."""
    inside = {row for _, indices in _subscripts(program) for row in indices}
    return [n for n, rows in _reads(program).items() if inside.issuperset(rows)] if inside else []


def by_elements(program: Program) -> Shapes:
    """The shapes of what is only read element by element, all of them: the x of `x[0]*x[1]` is in R²."""
    places: dict[int, Shape] = {}
    for own, indices in _subscripts(program):
        numbers = [
            program.constants[program.operands[row]]
            for row in indices
            if program.kinds[row] == tree_kinds.CONSTANT
        ]
        if len(numbers) == len(indices) and all(type(k) is int for k in numbers):
            places[own] = tuple(numbers)
    found = {}
    for name, rows in _reads(program).items() if places else ():
        taken = {places.get(row, ()) for row in rows}
        shape = tuple(max(ks) + 1 for ks in zip(*taken, strict=False))
        # x[0] + x[5] skips some places: then x may have any size.
        if len(taken) > 1 and taken == set(product(*map(range, shape))):
            found[name] = shape
    return found


def _numbered(declared: Mapping[str, Sizes], arrays: Mapping[str, Any]) -> Iterator[Shapes]:
    """Declared shapes with numbers for their letters: new sizes first, then sizes of the arrays."""
    letters = list(dict.fromkeys(k for s in declared.values() for k in s if isinstance(k, str)))
    there = {n for a in arrays.values() for n in a.shape}
    there |= {k for s in declared.values() for k in s if isinstance(k, int)}
    new = [n for n in range(SIZE, SIZE + len(there) + len(letters)) if n not in there][
        : len(letters)
    ]
    choices = [(own, *sorted(there)) for own in new]
    # In every order, as nobody knows which of the letters has to be the larger one.
    orders = permutations([*new, SIZE - 1], len(letters))  # for what must have full rank
    for sizes in islice(chain(product(*choices), orders), MOST_TRIES):
        number = dict(zip(letters, sizes, strict=True))
        yield {n: tuple(number.get(k, k) for k in s) for n, s in declared.items()}  # type: ignore[arg-type]


def _points(shapes: Mapping[str, Shape]) -> Iterator[dict[str, Any]]:
    """Points of these shapes: positive numbers near 1, probabilities, then ever wider ranges."""
    base = {n: sample(s, k) for k, (n, s) in enumerate(shapes.items())}
    yield base
    yield {n: v - 0.5 for n, v in base.items()}
    # Some programs are finite only where one variable is much larger than another: sqrt(x - 10*y).
    for spread in (2.0, 6.0, 30.0):
        for turn in range(4):  # which are the large ones
            factors = (spread ** ((3 * k + turn) % 4 - 1) for k in range(len(base)))
            yield {n: v * f for (n, v), f in zip(base.items(), factors, strict=True)}


def _value(program: Program, arrays: Mapping[str, Any], names: Mapping[str, Any]) -> Any:
    """The program's value; None if it fails on these arrays."""
    try:
        with quiet():
            found, trace = traced_run(program, arrays, (), True, names)
    except LanguageError:
        return None
    return trace.value_of(found).value


__all__ = ["SIZE", "Shape", "by_elements", "fixed_sizes", "infer", "larger", "made_up"]

"""Shapes for variables that were given none: scalars if the program runs on them, else more."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from math import prod
from typing import Any

import numpy as np

from gradcli.calculus.derivative import recorded_run
from gradcli.calculus.generic import Generic
from gradcli.engine import dtypes
from gradcli.language.checks import free_names
from gradcli.language.errors import LanguageError
from gradcli.language.program import Program

Shape = tuple[int, ...]

SIZE = 3  # of every dimension while ranks are tried
EVEN = 4  # the same for what is cut in halves
MOST_TRIES = 400
MOST = 300  # numbers in all, where sizes may be chosen


@contextmanager
def quiet() -> Iterator[None]:
    """Inside, programs run at points that nobody gave, of which nobody wants to be warned."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def sample(shape: Shape, number: int = 0) -> Any:
    """Generic values of a shape: positive, different from each other, square matrices well conditioned."""
    values = Generic(number + 1).uniform(0.5, 1.5, shape)
    if len(shape) == 2 and shape[0] == shape[1]:
        values = (values + values.T) / 4 + np.eye(shape[0]) * (1 + shape[0] / 2)
    return np.asarray(values)


def larger(shapes: Mapping[str, Shape], guessed: Mapping[str, Shape]) -> dict[str, Shape]:
    """The shapes with every size that nobody gave made larger, equal ones equally; empty if none is.

    Empty, too, where those would be too many numbers.
    """
    fixed = {n for name, s in shapes.items() if name not in guessed for n in s}
    free = {n for s in guessed.values() for n in s} - fixed
    found = {n: tuple(k + 2 if k in free else k for k in s) for n, s in shapes.items()}
    return found if found != dict(shapes) and _count(found) <= MOST else {}


def _count(shapes: Mapping[str, Shape]) -> int:
    return sum(map(prod, shapes.values()))


def guess_shapes(
    program: Program,
    arrays: Mapping[str, Any],
    declared: Mapping[str, Shape],
    free: Sequence[str],
    names: Mapping[str, Any],
    suits: Callable[[Mapping[str, Any]], bool] | None = None,
) -> dict[str, Shape]:
    """Shapes of the free variables.

    Ranks are tried from the smallest on (capital letters as matrices first where scalars do not do);
    then dimensions that need not be equal are made different. Scalars where nothing helps: the program
    then says what is wrong. They do not do where they have no value but NaN, as the variance of one
    number. suits: what else has to hold of values of such shapes, if there are any of which it holds.
    """
    scalars: dict[str, Shape] = dict.fromkeys(free, ())
    if not free:
        return {}

    def made(shapes: Mapping[str, Shape], number: int = 0) -> dict[str, Any]:
        every = enumerate({**declared, **shapes}.items(), number)
        return {**arrays, **{n: sample(s, k) for k, (n, s) in every}}

    def value(given: Mapping[str, Any]) -> Any:
        try:
            with quiet():
                found, recording = recorded_run(program, given, (), True, names)
        except LanguageError:
            return None
        return recording.value_of(found).value

    def outcome(shapes: Mapping[str, Shape]) -> Shape | None:
        given = made(shapes)
        found = value(given)
        return None if found is None or (suits and not suits(given)) else tuple(np.shape(found))

    def is_hopeless(shapes: Mapping[str, Shape]) -> bool:
        points = (value(made(shapes, number)) for number in range(0, 30, 10))
        return all(found is None or np.isnan(found).all() for found in points)

    def runs(shapes: Mapping[str, Shape]) -> bool:
        return outcome(shapes) is not None

    def suited(shapes: Mapping[str, Shape]) -> bool:
        return runs(shapes) and not is_hopeless(shapes)

    if runs(scalars):
        if not is_hopeless(scalars):
            return scalars
        return _searched(arrays, declared, free, suited, outcome) or scalars
    found = _searched(arrays, declared, free, runs, outcome)
    if found is None and suits:
        return guess_shapes(program, arrays, declared, free, names)
    return found or scalars


def _searched(
    arrays: Mapping[str, Any],
    declared: Mapping[str, Shape],
    free: Sequence[str],
    runs: Callable[[Mapping[str, Shape]], bool],
    outcome: Callable[[Mapping[str, Shape]], Shape | None],
) -> dict[str, Shape] | None:
    """The first shapes that the program runs on; None if there are none."""
    sizes = (
        sorted(
            {n for a in arrays.values() for n in a.shape}
            | {SIZE}
            | {n for s in declared.values() for n in s}
        )
        if arrays or declared
        else [SIZE]
    )
    for size_of_all in (sizes if len(sizes) < 4 else [SIZE]), [EVEN]:
        for ranks in _ranks(free)[:MOST_TRIES]:
            for size in size_of_all:
                shapes = {n: (size,) * r for n, r in zip(free, ranks, strict=True)}
                if runs(shapes):
                    return _loosened(_with_vectors(shapes, size, outcome), runs)
    return _fitted(free, {**{n: a.shape for n, a in arrays.items()}, **declared}, runs)


def made_up(
    program: Program,
    arrays: Mapping[str, Any],
    declared: Mapping[str, Shape],
    names: Sequence[str],
    known: Mapping[str, Any],
    suits: Callable[[Mapping[str, Any]], bool] | None = None,
) -> tuple[dict[str, Any], dict[str, Shape]]:
    """(values of all variables in the order of the program, the shapes that were guessed).

    arrays: the values that there are. names: the variables without one; declared: the shapes of some
    of them. known: what else the program may read. suits: see `guess_shapes`. Made-up values have the
    default dtype.
    """
    free = [n for n in names if n not in declared]
    guessed = guess_shapes(program, arrays, declared, free, known, suits)
    shapes = {**declared, **guessed}
    dtype = dtypes.get_default_dtype().dtype
    made = {n: sample(shapes[n], k).astype(dtype)[()] for k, n in enumerate(names)}
    if names and not _runs(program, {**arrays, **made}, known):
        smaller = {n: (v - 0.5)[()] for n, v in made.items()}  # probabilities
        made = smaller if _runs(program, {**arrays, **smaller}, known) else made
    found = {**arrays, **made}
    order = [n for n in free_names(program) if n in found]
    return {n: found[n] for n in [*order, *(n for n in found if n not in order)]}, guessed


def _runs(program: Program, arrays: Mapping[str, Any], names: Mapping[str, Any]) -> bool:
    try:
        with quiet():
            recorded_run(program, arrays, (), True, names)
    except LanguageError:
        return False
    return True


def _with_vectors(shapes: dict[str, Shape], size: int, outcome: Any) -> dict[str, Shape]:
    """The shapes with scalars made vectors that only fit at their size: the y of `X@w - y`."""
    result = outcome(shapes)
    for name, shape in list(shapes.items()):
        if shape or (len(name) == 1 and name not in _VECTORS):
            continue
        if outcome({**shapes, name: (size,)}) != result:
            continue
        if outcome({**shapes, name: (size + 1,)}) is None:
            shapes = {**shapes, name: (size,)}
    return shapes


_VECTORS = frozenset("bfghuvwxyz")


def _ranks(free: Sequence[str]) -> list[tuple[int, ...]]:
    """Ranks in the order in which they are likely."""
    likely = [(2, 1, 0) if n[:1].isupper() else (0, 1, 2) for n in free]
    places = [{r: i for i, r in enumerate(order)} for order in likely]
    if len(free) > 6:
        return [tuple(order[0] for order in likely), (1,) * len(free), (2,) * len(free)]
    every = product(*likely)
    found = sorted(every, key=lambda ranks: sum(p[r] for p, r in zip(places, ranks, strict=True)))
    if len(free) > 3:
        return found
    batched = (ranks for ranks in product(range(5), repeat=len(free)) if max(ranks) > 2)
    return found + sorted(batched, key=lambda ranks: (max(ranks), -sum(ranks)))


def _fitted(free: Sequence[str], given: Mapping[str, Shape], runs: Any) -> dict[str, Shape] | None:
    """Shapes put together from the sizes of the variables that have some."""
    sizes = sorted({n for s in given.values() for n in s})
    if len(free) > 2 or len(sizes) > 4 or not sizes:
        return None
    choices: list[Shape] = [(n,) for n in sizes] + list(product(sizes, repeat=2))
    for shapes in product(choices, repeat=len(free)):
        found = dict(zip(free, shapes, strict=True))
        if runs(found):
            return found
    return None


def _loosened(shapes: dict[str, Shape], runs: Any) -> dict[str, Shape]:
    """The shapes with dimensions that need not be equal made different."""
    axes = [(n, i) for n, s in shapes.items() for i in range(len(s))]
    current = {n: list(s) for n, s in shapes.items()}
    left = list(axes)
    size = SIZE
    while left:
        first, *others = left
        size += 1
        group = _group(first, others, current, size, runs)
        if group is None:
            left = others
            size -= 1
            continue
        if len(group) == len(axes):
            return shapes  # all equal: nothing is won by another size
        for n, i in group:
            current[n][i] = size
        left = [a for a in others if a not in group]
    found = {n: tuple(s) for n, s in current.items()}
    return found if _count(found) <= MOST else shapes


def _group(first: Any, others: list[Any], current: Any, size: int, runs: Any) -> list[Any] | None:
    """The axes that have to change together with the first; None if it cannot change."""
    pairs = [[first, o] for o in others]
    triples = [[first, a, b] for i, a in enumerate(others) for b in others[i + 1 :]]
    everything = [[first, *others]] if len(others) > 2 else []
    for group in [[first], *pairs, *triples, *everything]:
        trial = {n: list(s) for n, s in current.items()}
        for n, i in group:
            trial[n][i] = size
        if runs({n: tuple(s) for n, s in trial.items()}):
            return group
    return None


__all__ = ["guess_shapes", "made_up", "quiet", "sample"]

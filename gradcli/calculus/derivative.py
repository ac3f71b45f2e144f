"""The derivative of a program as an expression of its language.

The program runs on traced variables, the rules of the table run on what it traced, and what they leave
is read as expressions, simplified on the way. Higher orders differentiate these expressions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.calculus import simplify as alg
from gradcli.calculus.evaluation import constants, evaluate
from gradcli.calculus.expressions import Expression, call, name, number, value_of
from gradcli.calculus.finish import finish
from gradcli.calculus.numbers import ONE
from gradcli.calculus.reading import Reader
from gradcli.calculus.trace import Traced, calls, following, guarded, pullback
from gradcli.language import run
from gradcli.language.errors import LanguageError
from gradcli.language.program import Program

CONSTANTS = {"pi": np.pi}  # kept by name in what is printed


class Derivatives:
    """Derivatives of one program.

    variables: name -> value. value: the program's value as an expression. by: name -> its derivative.
    branched: whether the program asked for the truth of a value, so that all holds on its path alone.
    """

    __slots__ = ("branched", "by", "program", "shape", "value", "variables")

    def __init__(
        self,
        program: Program,
        variables: dict[str, Any],
        value: Expression,
        by: dict[str, Expression],
        shape: tuple[int, ...],
        branched: bool,
    ) -> None:
        self.program, self.variables, self.value = program, variables, value
        self.by, self.shape, self.branched = by, shape, branched


def differentiate(
    program: Program,
    variables: Mapping[str, Any],
    wrt: Iterable[str] | None = None,
    *,
    order: int = 1,
    follow: bool = False,
    names: Mapping[str, Any] | None = None,
) -> Derivatives:
    """The derivatives of a program's value with respect to its variables.

    variables: name -> array, which gives the shapes and dtypes; only with `follow` do the values decide
    which way the program goes. A value that is no scalar is summed up first. names: what else the
    program may read.
    """
    arrays = {
        n: np.asarray(v)[()] if np.ndim(v) == 0 else np.asarray(v) for n, v in variables.items()
    }
    wanted = list(arrays) if wrt is None else list(wrt)
    first = _first_order(program, arrays, wanted, follow, names or {})
    by = first.by
    places = positions(program)
    for _ in range(1, order):
        by = {n: again(e, arrays, n, places) for n, e in by.items()}
    return Derivatives(program, arrays, first.value, by, first.shape, first.branched)


def again(
    expression: Expression, arrays: Mapping[str, Any], word: str, places: Mapping[str, int]
) -> Expression:
    """The derivative of an expression, summed up, by one of its variables."""
    values = {n: np.float64(v) for n, v in CONSTANTS.items() if n not in arrays} | dict(arrays)
    symbols = {n: name(n, tuple(np.shape(v)), places.get(n, -1)) for n, v in values.items()}
    known = {symbols[n]: Traced(v, name=n) for n, v in values.items()}
    with np.errstate(all="ignore"):
        fixed = constants([expression])
        known |= {e: Traced(_plain(v)) for e, v in zip(fixed, evaluate(fixed, known), strict=True)}
        (value,) = evaluate([expression], known)
        if not isinstance(value, Traced):
            return finish(alg.zero, symbols[word])
        seed = Traced(np.ones_like(value.value))
        (grad,) = pullback(value, seed, [known[symbols[word]]])
        if grad is None:
            return finish(alg.zero, symbols[word])
        reader = Reader([(t, e) for e, t in known.items()], {id(c) for c in calls([value])})
        return finish(reader.read([grad])[0], symbols[word])


def _plain(value: Any) -> Any:
    """The array of a constant."""
    found = value.array if hasattr(value, "array") else np.asarray(value, np.float64)
    return np.asarray(found)[()]


def traced_run(
    program: Program,
    arrays: Mapping[str, Any],
    follow: bool,
    names: Mapping[str, Any],
) -> tuple[Traced, dict[str, Traced], bool]:
    """(value, variables, whether it branched) of a program on traced variables."""
    variables = {n: Traced(a, name=n) for n, a in arrays.items()}
    known = {n: Traced(np.float64(v), name=n) for n, v in CONSTANTS.items() if n not in arrays}
    space = {**known, **names, **variables}
    with guarded():
        if not follow:
            result, asked = run(program, space), []
        else:
            with following() as asked:
                result = run(program, space)
    value = result.value
    if isinstance(value, (bool, int, float, complex)):
        value = Traced(np.asarray(value, np.float64)[()])
    elif not isinstance(value, Traced):
        found = getattr(value, "array", None)
        if found is None:
            raise _no_tensor(program, value)
        value = Traced(found)
    return value, {**known, **variables}, bool(asked)


def _no_tensor(program: Program, value: Any) -> LanguageError:
    span = program.span(len(program) - 2) if program.ends_in_expression else None
    what = "the program has no value" if value is None else "the value is not a tensor"
    hint = "end it with an expression" if value is None else "choose one of its items: (…)[0]"
    return LanguageError(
        f"{what}: there is no derivative",
        kind="type",
        source=program.source,
        span=span,
        hint=hint,
        usage=False,
    )


def _first_order(
    program: Program,
    arrays: dict[str, Any],
    wanted: Sequence[str],
    follow: bool,
    names: Mapping[str, Any],
) -> Derivatives:
    with np.errstate(all="ignore"):
        value, variables, branched = traced_run(program, arrays, follow, names)
        forward = calls([value])
        given = {id(c) for c in forward}
        seed = Traced(np.ones_like(value.value))
        grads = pullback(value, seed, [variables[n] for n in wanted])
        places = positions(program)
        symbols = {
            n: name(n, tuple(t.value.shape), places.get(n, -1)) for n, t in variables.items()
        }
        reader = Reader([(t, symbols[n]) for n, t in variables.items()], given)
        found = reader.read([g for g in grads if g is not None])
        read = iter(found)
        by = {
            n: finish(alg.zero if g is None else next(read), symbols[n])
            for n, g in zip(wanted, grads, strict=True)
        }
        (whole,) = reader.read([value])
    return Derivatives(program, arrays, whole, by, tuple(value.value.shape), branched)


def positions(program: Program) -> dict[str, int]:
    """Where every name is first read: factors are printed in that order."""
    found: dict[str, int] = {}
    for kind, word, _, (start, _) in program.walk():
        if kind == "name" and word not in found:
            found[word] = start
    ranks = {word: i for i, word in enumerate(sorted(found, key=found.__getitem__))}
    return {**ranks, **dict.fromkeys(CONSTANTS, -1)}


__all__ = ["ONE", "Derivatives", "call", "differentiate", "number", "value_of"]

"""How the uncertainties of inputs are related: `--covariance x,y=VALUE`, `--correlation x,y=VALUE`.

The value belongs to two variables: a number, or one for each of their elements. Of one variable, or of
several, it is the matrix of all their numbers, in that order: `--covariance v=@C.csv`, `--correlation
a,b,c=@R.csv`. Without a value both ask for the matrix of what is found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.commands.command_errors import usage

if TYPE_CHECKING:
    from gradcli.commands.output import Style

OPTIONS = ("covariance", "correlation")
ALONE = "-"  # the value of an option that was given without one
_SAME = 1e-6  # relative, of a variance that a matrix and ± both have
_ROUNDING = 1e-9  # of an eigenvalue, and of a correlation of 1


class Relation(NamedTuple):
    """One that is typed. kind: covariance or correlation."""

    kind: str
    names: tuple[str, ...]
    text: str

    @property
    def option(self) -> str:
        """As it is typed, without its value."""
        return f"--{self.kind} {','.join(self.names)}"


def relations(options: Any, known: Iterable[str]) -> list[Relation]:
    """Those of a command line. Raises LanguageError for an unknown name, and for a pair given twice."""
    names = list(known)
    found: list[Relation] = []
    for kind in OPTIONS:
        items = [item for item in getattr(options, kind, ()) if item != ALONE]
        found += [_relation(kind, item, names) for item in items]
    seen: set[tuple[str, ...]] = set()
    for one in found:
        for pair in _pairs(one):
            if pair in seen:
                what = f"{pair[0]} is" if pair[0] == pair[1] else f"{pair[0]} and {pair[1]} are"
                raise usage(f"{one.option}: {what} related twice", hint="leave out one of them")
            seen.add(pair)
    return found


def asked_alone(options: Any) -> list[str]:
    """The options that were given without a value: what is to be printed of the results."""
    return [kind for kind in OPTIONS if ALONE in getattr(options, kind, ())]


def _relation(kind: str, item: str, known: list[str]) -> Relation:
    from gradcli.language.located_errors import did_you_mean, suggest

    left, equals, text = item.partition("=")
    words = tuple(word.strip() for word in left.split(","))
    if not equals or not text.strip() or not all(words):
        said = [word for word in words if word in known]
        shape = ",".join([*dict.fromkeys([*said, *known, "x", "y"])][:2])
        raise usage(
            f"--{kind} wants {shape}=VALUE, not {item!r}",
            hint=f"as in --{kind} {shape}={_number_of(item) or 0.1}",
        )
    for word in words:
        if word not in known:
            raise usage(
                f"--{kind}: {word!r} is not a variable (there are: {', '.join(known) or 'none'})",
                hint=did_you_mean(suggest(word, known)),
                kind="name",
            )
    if len(set(words)) < len(words):
        twice = next(w for w in words if words.count(w) > 1)
        raise usage(
            f"--{kind}: {left} is one variable",
            hint=f"its variance is its uncertainty squared; --{kind} {twice}=MATRIX relates its elements",
        )
    return Relation(kind, words, text)


def _number_of(item: str) -> str:
    """The number that stands alone for a value, as typed; empty where none does."""
    try:
        float(item)
    except ValueError:
        return ""
    return item.strip()


def _pairs(one: Relation) -> list[tuple[str, ...]]:
    if len(one.names) == 2:
        return [tuple(sorted(one.names))]
    return list(combinations_with_replacement(sorted(one.names), 2))


def is_matrix(one: Relation, array: Any, shapes: Mapping[str, tuple[int, ...]]) -> bool:
    """Whether a value is the matrix of all numbers of the variables, and not one of two variables."""
    if len(one.names) != 2:
        return True
    return bool(array.ndim) and array.shape != shapes[one.names[0]]


def related(
    one: Relation,
    array: Any,
    shapes: Mapping[str, tuple[int, ...]],
    errors: dict[str, Any],
) -> dict[tuple[str, str], Any]:
    """The covariances that a value means, as `uncertainty_law` has them, with a leading 1.

    errors: by variable, with a leading 1; those that a matrix of covariances alone tells are added, and
    those of its variables get their whole shapes. Raises LanguageError.
    """
    import numpy as np

    from gradcli.columns.streaming.uncertainty_law import flaws

    for where, words in flaws(array, True):
        if where.any():
            raise usage(f"{one.option}: {words.replace('covariance', one.kind)}")
    array = np.asarray(array, np.float64)
    if is_matrix(one, array, shapes):
        return _of_matrix(one, array, shapes, errors)
    a, b = one.names
    if shapes[a] != shapes[b]:
        raise usage(
            f"{one.option}: {a} and {b} have shapes {shapes[a]} and {shapes[b]}",
            hint=f"give the matrix of all their numbers, as in {one.option}=@FILE",
        )
    for name in one.names:
        if name not in errors:
            raise without_error(one, name)
    if one.kind == "correlation":
        check_range(one.option, array)
        array = array * errors[a][0] * errors[b][0]
    return {tuple(sorted(one.names)): array[None]}  # type: ignore[dict-item]


def without_error(one: Relation, name: str) -> Exception:
    """The error about a relation of what has no uncertainty."""
    return usage(f"--{one.kind}: {name} has no uncertainty", hint=f"add --uncertainty {name}=VALUE")


def check_range(option: str, array: Any) -> None:
    """Raise LanguageError for a correlation beyond ±1."""
    import numpy as np

    far = np.asarray(array)[np.abs(array) > 1 + _ROUNDING]
    if far.size:
        raise usage(f"{option}: a correlation is between -1 and 1, not {far.ravel()[0]:.6g}")


def _of_matrix(
    one: Relation,
    array: Any,
    shapes: Mapping[str, tuple[int, ...]],
    errors: dict[str, Any],
) -> dict[tuple[str, str], Any]:
    """The covariances of a matrix, whose variables get their uncertainties if it tells them."""
    import numpy as np

    if one.kind == "correlation":
        for name in one.names:
            if name not in errors:
                raise without_error(one, name)
            errors[name] = np.broadcast_to(errors[name], (1, *shapes[name]))
        made = as_correlations(one, array, shapes)
        return {pair: scaled(block, *(errors[n] for n in pair)) for pair, block in made.items()}
    _check_shape(one, array, shapes)
    checked_matrix(one.option, array)
    start = 0
    for name in one.names:
        size = int(np.prod(shapes[name]))
        diagonal = np.diagonal(array)[start : start + size].reshape(shapes[name])
        start += size
        if (diagonal < 0).any():
            raise usage(f"{one.option}: a variance is not negative")
        told = np.sqrt(diagonal)[None]
        if (given := errors.get(name)) is not None and (
            np.abs(given - told) > _SAME * np.abs(told)
        ).any():
            raise usage(
                f"{one.option}: {name} has another uncertainty already",
                hint="leave it out: the matrix has its square on the diagonal",
            )
        errors[name] = told
    return _blocks(one, array, shapes)


def as_correlations(
    one: Relation, array: Any, shapes: Mapping[str, tuple[int, ...]]
) -> dict[tuple[str, str], Any]:
    """A matrix of correlations as blocks of pairs of variables, with a leading 1. Raises LanguageError."""
    import numpy as np

    _check_shape(one, array, shapes)
    checked_matrix(one.option, array)
    if (np.abs(np.diagonal(array) - 1) > _SAME).any():
        raise usage(
            f"{one.option}: a correlation of a number with itself is 1",
            hint="a matrix of covariances goes to --covariance",
        )
    check_range(one.option, array)
    return _blocks(one, array, shapes)


def scaled(correlation: Any, first: Any, second: Any) -> Any:
    """Covariances of correlations, by the uncertainties of both, which have the rows in front."""
    from gradcli.columns.streaming.uncertainty_law import facing

    a, b = facing(first, second, correlation)
    return correlation * a * b


def _check_shape(one: Relation, array: Any, shapes: Mapping[str, tuple[int, ...]]) -> None:
    import numpy as np

    count = sum(int(np.prod(shapes[n])) for n in one.names)
    if array.shape != (count, count):
        if len(one.names) == 1 and not array.ndim:
            (name,) = one.names
            other = next((n for n in shapes if n != name), "y")
            raise usage(
                f"--{one.kind} wants {name},{other}=VALUE, not '{name}={one.text}'",
                hint=f"as in --{one.kind} {name},{other}=0.1",
            )
        raise usage(
            f"{one.option}: it has shape {array.shape}",
            hint=f"give a matrix of {count} rows and {count} columns"
            + (", or one number" if len(one.names) == 2 else ""),
        )


def _blocks(
    one: Relation, array: Any, shapes: Mapping[str, tuple[int, ...]]
) -> dict[tuple[str, str], Any]:
    """The parts of a matrix that belong to two variables; of one with itself what is above the diagonal."""
    import numpy as np

    ends = np.cumsum([0, *(int(np.prod(shapes[n])) for n in one.names)])
    places = {n: slice(ends[k], ends[k + 1]) for k, n in enumerate(one.names)}
    made: dict[tuple[str, str], Any] = {}
    for a, b in combinations_with_replacement(sorted(one.names), 2):
        block = array[places[a], places[b]]
        block = np.triu(block, 1) if a == b else block
        if block.any():
            made[a, b] = _laid(block, shapes, a, b)
    return made


def _laid(block: Any, shapes: Mapping[str, tuple[int, ...]], one: str, other: str) -> Any:
    """A block with a leading 1; of two numbers without dimensions it is a number."""
    return (block if shapes[one] or shapes[other] else block[0, 0])[None]


def checked_matrix(option: str, array: Any) -> None:
    """Raise LanguageError for a matrix that is no covariance or correlation matrix of anything."""
    import numpy as np

    from gradcli.operators.primitives import lapack

    scale = float(np.abs(array).max(initial=0.0))
    if not np.allclose(array, array.T, rtol=1e-6, atol=1e-12 * scale):
        raise usage(f"{option}: the matrix is not symmetric")
    lowest = float(lapack.eigh((array + array.T) / 2)[0].min(initial=0.0))
    if lowest < -1e-6 * scale:
        raise usage(
            f"{option}: the matrix is not positive semidefinite: its smallest eigenvalue is {lowest:.3g}",
            hint="no numbers have such covariances: one of them is too large",
        )


# -- what is found ---------------------------------------------------------------------------------
def of_covariance(covariance: Any) -> Any:
    """The correlations of a covariance matrix; NaN where a variance is 0 or unknown."""
    import numpy as np

    spread = np.sqrt(np.diagonal(covariance))
    with np.errstate(all="ignore"):
        made = covariance / np.outer(spread, spread)
    known = np.isfinite(spread) & (spread > 0)
    made = np.where(np.outer(known, known), made, np.nan)
    np.fill_diagonal(made, np.where(known, 1.0, np.nan))
    return made


def to_json(labels: Sequence[str], matrix: Any) -> dict[str, dict[str, float | None]]:
    """A matrix by names; what is not known is None."""
    import math

    return {
        one: {
            other: float(cell) if math.isfinite(cell) else None
            for other, cell in zip(labels, row, strict=True)
        }
        for one, row in zip(labels, matrix, strict=True)
    }


_DIGITS = 4


def matrix_lines(
    kind: str, labels: Sequence[str], matrix: Any, style: Style
) -> list[tuple[str | None, Any]]:
    """A matrix of results for text: a row for each name; with --plain as an option reads it."""
    if style.form == "plain":
        return [(kind, matrix)]
    digits = style.precision or _DIGITS
    cells = [[f"{cell:.{digits}g}" for cell in row] for row in matrix]
    if kind == "correlation":
        digits = min(digits, 15)
        cells = [[_rounded(cell, digits) for cell in row] for row in matrix]
    wide = [max(len(n), *(len(row[k]) for row in cells)) for k, n in enumerate(labels)]
    lead = max(map(len, labels))
    head = " " * lead + "".join(f"  {n:>{w}}" for n, w in zip(labels, wide, strict=True))
    rows = [
        f"{name:<{lead}}" + "".join(f"  {c:>{w}}" for c, w in zip(row, wide, strict=True))
        for name, row in zip(labels, cells, strict=True)
    ]
    return [(None, f"{kind}:"), *((None, f"  {line}") for line in (head, *rows))]


def _rounded(cell: float, digits: int) -> str:
    text = f"{cell:.{digits}f}"
    return "1" if float(text) == 1 and abs(cell - 1) < 10**-_DIGITS else text


__all__ = [
    "ALONE",
    "OPTIONS",
    "Relation",
    "as_correlations",
    "asked_alone",
    "check_range",
    "checked_matrix",
    "is_matrix",
    "matrix_lines",
    "of_covariance",
    "related",
    "relations",
    "scaled",
    "to_json",
    "without_error",
]

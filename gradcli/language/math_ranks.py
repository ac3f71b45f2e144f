r"""Which capitals of a text of vectors are no matrices: the C of `C \|w\|^2`, the Y of `Y - X \beta`.

A text is read with its capitals as matrices. Where that does not agree with itself, as a matrix that is added
to a number, other readings are tried: the one with the fewest clashes is taken, and said.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from itertools import combinations, product
from typing import Protocol, TypeVar

from gradcli.language.located_errors import LanguageError
from gradcli.language.math_symbols import BOLD
from gradcli.language.notation import Token, indexed, is_matrix

_MOST = 4  # capitals of which other readings are tried
_WORDS = {0: "a number", 1: "a vector"}


class Counted(Protocol):
    """A reading, and in how many places the ranks of its parts do not agree."""

    @property
    def clashes(self) -> int: ...


Reading = TypeVar("Reading", bound=Counted)


def open_capitals(found: list[Token], own: Container[str]) -> list[str]:
    """The capitals that may be no matrices: without a value, not bold, not transposed."""
    names: dict[str, None] = {}
    certain = set()
    for i, token in enumerate(found):
        one = indexed(found, i)
        if one is None or not is_matrix(one.name):
            continue
        names[one.name] = None
        end = one.end
        if [t.text for t in (found[i - 1 : i] if i else []) + found[end : end + 1]] == ["(", ")"]:
            end += 1
        after = found[end : end + 1]
        behind_row = i > 0 and found[i - 1].kind == "transpose"  # x^T A
        if (
            behind_row
            or token.font in BOLD
            or [t.kind for t in after] == ["transpose"]
            or one.name in own
        ):
            certain.add(one.name)
    return [name for name in names if name not in certain and name != "I"][:_MOST]


def most_agreeing(
    read: Callable[[Mapping[str, int]], Reading], names: Callable[[], list[str]]
) -> Reading:
    """The reading with the fewest clashes; of equals the one with the most matrices. read: by what ranks of
    names; raises LanguageError. names: those whose ranks are tried."""
    failed: LanguageError | None = None
    best: Reading | None = None
    try:
        best = read({})
    except LanguageError as error:
        failed = error
    if best is not None and not best.clashes:
        return best
    for ranks in _others(names()):
        try:
            one = read(ranks)
        except LanguageError:
            continue
        if best is None or one.clashes < best.clashes:
            best = one
        if not best.clashes:
            break
    if best is None:
        assert failed is not None
        raise failed
    return best


def said(ranks: Mapping[str, int]) -> list[str]:
    """What is said of the names that are no matrices."""
    return [
        f"{name} is {_WORDS[rank]}; for a matrix say --shape {name}=m,n"
        for name, rank in ranks.items()
        if is_matrix(name)
    ]


def _others(names: list[str]) -> Iterator[dict[str, int]]:
    for count in range(1, len(names) + 1):
        for some in combinations(names, count):
            for ranks in product((0, 1), repeat=count):
                yield dict(zip(some, ranks, strict=True))

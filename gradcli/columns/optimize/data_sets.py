"""Data sets of one table: which row belongs to which, and parameters that have a number for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from gradcli.language.located_errors import LanguageError


def numbered(keys: Sequence[Any], column: str, option: str) -> tuple[Any, list[str]]:
    """(the number of each row's data set, what the sets are called) by the cells of a column.

    Numbers are taken in their order, texts in that of their rows. Raises LanguageError where there is but
    one set, or a row has no cell. option: which is at fault then.
    """
    keys = [key.item() if isinstance(key, np.generic) else key for key in keys]
    if any(key is None or key == "" or key != key for key in keys):
        raise _usage(f"{option} {column}: some rows have no value")
    # Cells such as "10" and "9" are numbers if all are: as texts they would be ordered 10, 9.
    with suppress(TypeError, ValueError):
        keys = [float(key) for key in keys]
    there = list(dict.fromkeys(keys))
    if there and isinstance(there[0], float):
        there.sort()
    if len(there) < 2:
        raise _usage(f"{option} {column}: all rows have the same value")
    number = {key: k for k, key in enumerate(there)}
    shown = [f"{key:g}" if isinstance(key, float) else str(key) for key in there]
    found = np.array([number[key] for key in keys], np.float64)
    return found, [f"{column} = {key}" for key in shown]


def spread_over(
    start: dict[str, Any], picked: Mapping[str, set[str]], index: str, numbers: Any
) -> None:
    """Give a parameter that occurs with an index alone, as b in `b[set]`, an element for each number.

    start: of the parameters, which is changed. numbers: of the index. Raises LanguageError.
    """
    alone = [p for p in picked[index] if p in start and np.shape(start[p]) == ()]
    if not alone:
        return
    if numbers.min() != 0:
        raise _usage(
            f"{alone[0]}[{index}]: {index} begins with {numbers.min():g}, but an index begins with 0",
            f"write {alone[0]}[{index} - {numbers.min():g}], and --{alone[0]} VALUE,VALUE,…",
        )
    for parameter in alone:
        start[parameter] = np.full(int(numbers.max()) + 1, start[parameter])


def _usage(message: str, hint: str | None = None) -> LanguageError:
    return LanguageError(message, kind="usage", usage=True, hint=hint)


__all__ = ["numbered", "spread_over"]

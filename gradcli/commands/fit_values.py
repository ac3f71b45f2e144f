"""What `gradcli.fit` takes as texts, as the command does: `sigma="3%"`, `sigma={"x": "dx"}`, `b="30±2"`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.columns.optimize.stated_uncertainties import Stated
from gradcli.columns.streaming.row_formulas import RowFormula
from gradcli.commands.uncertainty import share_and_more, share_of
from gradcli.language import as_tensor, parse
from gradcli.language.located_errors import LanguageError, did_you_mean, suggest
from gradcli.language.parser import parses


def spreads(
    sigma: Any,
    column: Callable[[Any], Any],
    columns: Sequence[Any],
    measured: str | None,
    rows: int,
) -> dict[str, Any]:
    """The uncertainties by column, "" for those of the response. Raises LanguageError.

    sigma: numbers, a text, or a dict of such. column: the numbers of a column in the rows that count.
    measured: the column that is the response.
    """
    given = sigma if isinstance(sigma, Mapping) else {} if sigma is None else {"": sigma}
    return {
        name: _spread(one, name or measured, column, columns, rows) if isinstance(one, str) else one
        for name, one in given.items()
    }


def _spread(
    text: str, of: str | None, column: Callable[[Any], Any], columns: Sequence[Any], rows: int
) -> Any:
    """The uncertainties that a text says. of: the column that they belong to."""
    if text in columns:
        return column(text)
    stated = _stated(text, of, columns)
    read = {place: column(columns[place]) for place in stated.places}

    def value() -> Any:
        if of is None:
            raise LanguageError(
                f"sigma: {text}: of which column?",
                kind="usage",
                hint=f"name it, as in sigma={{'y': {text!r}}}",
            )
        return column(of)

    return stated.of(read, rows, value)


def _stated(text: str, of: str | None, columns: Sequence[Any]) -> Stated:
    if text.strip().lower() == "poisson":
        return Stated(counts=True, name=of)
    if (share := share_of(text)) is not None:
        return Stated(share=share, name=of)
    if (both := share_and_more(text)) is not None and of is not None:
        text = f"{both[0]!r}*abs({of}) {both[1]}"
    try:
        return Stated(number=float(text), name=of)
    except ValueError:
        pass
    known = [str(name) for name in columns]
    names = parse(text).free_variables() if parses(text) else [text]
    wrong = next((n for n in names if n not in known), None)
    if wrong is not None or not names:
        said = wrong or text
        raise LanguageError(
            f"sigma: {said!r} is no column (there are: {', '.join(known)})",
            kind="name",
            hint=did_you_mean(suggest(said, known)),
        )
    return Stated(formula=RowFormula(text, {n: known.index(n) for n in names}), name=of)


def known_beforehand(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, tuple[Any, Any]]]:
    """(the values, (value, uncertainty) of those that are texts with one, `"30±2"`). Raises LanguageError."""
    from gradcli.language.uncertain_values import split_uncertainty

    values, known = dict(given), {}
    for name, text in given.items():
        if not isinstance(text, str) or re.fullmatch(r"\s*[-+]?[\d.]+(e[-+]?\d+)?\s*", text, re.I):
            continue  # a number, which NumPy reads
        pair = split_uncertainty(text)
        if pair is None or not all(re.fullmatch(r"[-+\d.eE, ]+", part) for part in pair):
            raise LanguageError(
                f"{name}: {text!r} is no number with an uncertainty",
                kind="value",
                hint='as in b="30±2"',
            )
        value, spread = (np.asarray(as_tensor(_numbers(part)).array, np.float64) for part in pair)
        values[name], known[name] = value, (value, spread)
    return values, known


def _numbers(text: str) -> Any:
    parts = [float(part) for part in text.split(",") if part.strip()]
    return parts if "," in text else parts[0]


__all__ = ["known_beforehand", "spreads"]

"""Columns that are made of others, row by row: `--as 'theta=-T.grad/365'`.

A formula names columns as they are written: what was computed (`value`, `S.grad`, `w.grad[0]`), the columns
of the table, a heading with a blank in backquotes, and the formulas before it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.columns.streaming.row_formulas import RowFormula
from gradcli.engine.core.tensor import wrap
from gradcli.language.located_errors import LanguageError, did_you_mean, suggest
from gradcli.language.parser import parse, parses
from gradcli.language.scope_checks import free_names, is_only_called
from gradcli.tables.table_errors import listed

_QUOTED = re.compile(r"`([^`]+)`")
_WORDS = re.compile(r"`([^`]+)`|(?<![\w.])[^\W\d][\w.]*(?:\[[\d, ]+\])?")
_ATTRIBUTES = re.compile(r"(?<![\w.])([^\W\d]\w*)(?:\.\w+)+(?![\w(])")


def words_of(text: str) -> set[str]:
    """What may be names of columns in a formula: `S.grad`, `w.grad[0]`, what is in backquotes, and parts."""
    found = set()
    for match in _WORDS.finditer(text):
        whole = match[1] or match[0]
        found |= {whole, whole.partition("[")[0], whole.partition(".")[0]}
    return found


def is_formula(text: str) -> bool:
    """Whether a text can be a formula, and is more than a name."""
    source = _QUOTED.sub("x", text)
    return parses(source) and re.fullmatch(r"[\w.]*", source) is None


class ComputedColumn:
    """A formula over the columns of a table. name: what its column is called. text: as it is typed.

    columns: which there are. given: numbers that are the same in all rows. table: all columns of the table,
    for hints. Raises LanguageError.
    """

    def __init__(
        self,
        name: str,
        text: str,
        columns: Sequence[str],
        given: Mapping[str, Any],
        table: Sequence[str] = (),
    ) -> None:
        self.name, self.text, self.table = name, text, table
        self.sources: dict[str, list[str]] = {}  # by variable, the columns that it is
        source = self._with_variables(columns)
        program = parse(source)
        for word in free_names(program):
            if word in self.sources or is_only_called(program, word):
                continue
            if word in columns:
                self.sources[word] = [word]
            elif word not in given:
                self._check(word, columns)
        free = set(free_names(program))
        self.sources = {word: found for word, found in self.sources.items() if word in free}
        shared = {w: wrap(np.asarray(value)[()]) for w, value in given.items() if w in free}
        self.vectors = {word for word in self.sources if word in self._arrays}
        self.formula = RowFormula(source, dict.fromkeys(self.sources, 0), shared)

    def _with_variables(self, columns: Sequence[str]) -> str:
        """The text with a variable for each name of a column that is none in the language: `S.grad`."""
        arrays: dict[str, list[str]] = {}
        for column in columns:
            head, bracket, _ = column.partition("[")
            if bracket and re.fullmatch(r"\[\d+\]", column[len(head) :]):
                arrays.setdefault(head, []).append(column)
        known = {column: [column] for column in columns} | {
            head: found for head, found in arrays.items() if head not in columns
        }
        odd = [word for word in known if not word.isidentifier()]
        plain = [re.escape(w) for w in sorted(odd, key=len, reverse=True) if _WORDS.fullmatch(w)]
        pattern = r"`([^`]+)`" + "".join(rf"|(?<![\w.]){w}(?!\w)" for w in plain)
        names: dict[str, str] = {}

        def variable(match: re.Match[str]) -> str:
            word = match[1] or match[0]
            if word not in known:
                raise self._unknown(word, columns)
            if word not in names:
                made = f"_{len(names)}_"
                while made in self.text:
                    made += "_"
                names[word] = made
            self.sources[names[word]] = known[word]
            return names[word]

        source = re.sub(pattern, variable, self.text)
        for match in _ATTRIBUTES.finditer(source):  # `S.gard`, or a gradient that nobody asks for
            if match[1] in known:
                raise self._unknown(match[0], columns)
        self.sources |= {w: found for w, found in arrays.items() if w.isidentifier()}
        wide = [word for word in arrays if word not in columns]
        self._arrays = {names.get(word, word) for word in wide}
        return source

    def _check(self, word: str, columns: Sequence[str]) -> None:
        from gradcli.language.names import is_known, is_plain_function

        if not is_known(word) or is_plain_function(word):
            raise self._unknown(word, columns)

    def _unknown(self, word: str, columns: Sequence[str]) -> LanguageError:
        place = re.search(rf"(?<!\w){re.escape(word)}(?!\w)", self.text)
        columns = list(dict.fromkeys([*columns, *self.table]))
        there = f"there are {listed(columns)}"
        hint = did_you_mean(suggest(word, columns)) or there
        variable, grad, _ = word.partition(".grad")
        if grad and variable in columns:
            hint = f"--wrt has the variables by which there are gradients; {there}"
        return LanguageError(
            f"--as: there is no column {word!r}",
            kind="name",
            usage=True,
            source=self.text,
            span=place.span() if place else None,
            hint=hint,
        )

    def values(self, columns: Mapping[str, Any], rows: int) -> Any:
        """The column. columns: arrays by name. Raises LanguageError."""
        if not rows:
            return np.zeros(0)
        batch = {
            word: np.stack([columns[c] for c in found], axis=1)
            if word in self.vectors
            else columns[found[0]]
            for word, found in self.sources.items()
        }
        found = self.formula.values(batch, rows)
        if list(found) != [""]:
            raise LanguageError(
                f"--as: {self.name} is a column, and its formula has {len(found)} numbers",
                kind="shape",
                usage=True,
                source=self.text,
                hint=f"give each a name of its own: --as '{self.name}_0=({self.text})[0]'",
            )
        return found[""]


__all__ = ["ComputedColumn", "is_formula", "words_of"]

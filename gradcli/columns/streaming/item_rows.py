"""The rows of a program whose value is a tuple: each item with its gradients, a Jacobian of named rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.columns.streaming.mapped_program import Results, Rows
from gradcli.engine.core import errors, random
from gradcli.language import parse
from gradcli.language.rewritten_sources import last_items
from gradcli.language.scope_checks import assigned_names

_CONSTANT = (errors.NoGradientError, errors.NoTensorError)


def item_names(source: str) -> list[str]:
    """What the items of the tuple that a program ends in are called; none where it ends in no tuple.

    `price, 2*x` are price and value_1: a name that the program assigns is the item's, too.
    """
    items = last_items(source) or []
    own = assigned_names(parse(source))
    return [text if text in own else f"value_{k}" for k, text in enumerate(items)]


class ItemRows:
    """As `Rows`, of a function whose value is a tuple of numbers.

    The values of the results have the items' names, the gradients `item.variable`.
    """

    def __init__(
        self,
        functions: Sequence[Callable[..., Any]],
        names: Sequence[str],
        shared: Mapping[str, Any],
        wrt: Sequence[str],
        **how: Any,
    ) -> None:
        functions = [_item(function, k) for k, function in enumerate(functions)]
        self.rows = {
            name: Rows(function, shared, wrt, **how)
            for name, function in zip(names, functions, strict=True)
        }
        self.values_of = {
            name: Rows(function, shared, (), **how)
            for name, function in zip(names, functions, strict=True)
        }
        self.shapes = {name: np.shape(shared.get(name, 0.0)) for name in wrt}

    def __call__(self, batch: Mapping[str, Any], rows: int) -> Results:
        """The values and gradients of the rows of a batch."""
        begin = random.snapshot()
        values: dict[str, Any] = {}
        gradients: dict[str, Any] = {}
        refused: dict[int, Exception] = {}
        # A reverse pass gives the gradients of one number, so each item of the tuple is a run of its own,
        # from the same random numbers.
        for name, run in self.rows.items():
            random.rewind(begin)
            found = run(batch, rows)
            if any(isinstance(errors.named(e), _CONSTANT) for e in found.refused.values()):
                found = self._without_gradient(name, batch, rows) or found
            values[name] = found.values.get("", np.full(rows, np.nan))
            gradients |= {f"{name}.{n}": array for n, array in found.gradients.items()}
            refused |= {row: error for row, error in found.refused.items() if row not in refused}
        return Results(values, gradients, refused)

    def _without_gradient(self, name: str, batch: Mapping[str, Any], rows: int) -> Results | None:
        """A number that depends on none of the variables: its gradients are 0. None where it is no number."""
        found = self.values_of[name](batch, rows)
        if list(found.values) != [""]:
            return None
        wide = {n: np.shape(batch[n])[1:] if n in batch else s for n, s in self.shapes.items()}
        zeros = {n: np.zeros((rows, *shape)) for n, shape in wide.items()}
        return Results(found.values, zeros, found.refused)

    @property
    def alone(self) -> str | None:
        """Why rows run one by one, as in `Rows`."""
        return next((run.alone for run in self.rows.values() if run.alone is not None), None)

    @property
    def kinked(self) -> int:
        """How many rows lie on a kink of an item."""
        return max(run.kinked for run in self.rows.values())

    @property
    def kink(self) -> Any:
        """The operation that makes the first kink, and its place."""
        return next((run.kink for run in self.rows.values() if run.kink is not None), None)


def _item(function: Callable[..., Any], number: int) -> Callable[..., Any]:
    return lambda **tensors: function(**tensors)[number]


__all__ = ["ItemRows", "item_names"]

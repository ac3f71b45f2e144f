"""Comparisons and logic in place, which PyTorch records of integers and booleans too."""

from __future__ import annotations

from typing import Any

from gradcli.core import modes
from gradcli.core.primitive import Rules
from gradcli.core.tensor import Tensor
from gradcli.core.views import inplace
from gradcli.movement.inplace_writes import _either
from gradcli.primitives import arithmetic
from gradcli.registry.rule_helpers import zeros_like
from gradcli.registry.table import FUNCTIONS, Array, Row, function, row
from gradcli.system import dtypes

FAMILY = "inplace"  # as `ops` calls it


def _comparison(of: Row) -> None:
    """`NAME_` of a comparison, which PyTorch records, of integers and booleans too."""
    ufunc, node = of.kernel, f"{of.name.capitalize()}Backward"

    def with_number(self: Array, other: Any) -> Array:
        wanted = dtypes.result_type([(self.dtype, 2), (dtypes.number_dtype(other), 0)])
        return ufunc(self.astype(wanted, copy=False), dtypes.constant(other, wanted))

    def with_tensor(self: Array, other: Array) -> Array:
        return ufunc(self, other)

    rules: dict[str, Any] = {"self": zeros_like}
    facts: dict[str, Any] = {"refuses": of.refuses, "discrete": True, "batch": "elementwise"}
    number_row = row(with_number, f"{node}0", **facts)(type(f"{of.name}_number", (), rules))
    tensor_rules = type(f"{of.name}_tensor", (), rules | {"other": zeros_like})
    tensor_row = row(with_tensor, f"{node}1", types="common", **facts)(tensor_rules)

    def write(input: Array, other: Any) -> Any:
        return inplace(tensor_row if isinstance(other, Tensor) else number_row, input, other)

    either = [f"{text}|method" for text in _either(f"{of.name}_", "other")]
    _enter_as(of, write, either, [number_row, tensor_row])


def _logic(row: Rules) -> None:
    """`NAME_` of a logical function, of which PyTorch's graphs do not know."""

    def write(input: Array, *other: Array) -> Any:
        before = modes.change(enabled=False)
        try:
            return inplace(row, input, *other)
        finally:
            modes.restore(before)

    other = ", Tensor other" * (len(row.names) - 1)
    _enter_as(row, write, [f"{row.name}_(Tensor input{other})|method"], [])


def _enter_as(row: Row, write: Any, signatures: list[str], rows: list[Row]) -> None:
    name = f"{row.name}_"
    write.__doc__ = f"In-place form of `{row.name}`."
    write.__module__ = __name__
    others = " ".join(f"{a}_" for a in FUNCTIONS[row.name].aliases)
    first = "randn(3).clone()" if rows else "(randn(3) > 0)"
    sample = f"{first}.{name}({'zeros(3)' if len(row.names) > 1 else ''})"
    function(*signatures, name=name, aliases=others, rows=rows, samples=[sample])(write)


for _row in (arithmetic.eq, arithmetic.ne, arithmetic.lt, arithmetic.le, arithmetic.gt):
    _comparison(_row)


_comparison(arithmetic.ge)


for _row in (arithmetic.logical_and, arithmetic.logical_or, arithmetic.logical_xor):
    _logic(_row)


_logic(arithmetic.logical_not)

"""In-place comparisons and logic, which PyTorch records even for integers and bools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.engine.core import modes
from gradcli.engine.core.declaration import Array
from gradcli.engine.core.primitive import VjpRules
from gradcli.engine.core.tensor import Tensor
from gradcli.engine.core.views import inplace
from gradcli.engine.registry.rule_helpers import zeros_like
from gradcli.engine.registry.table import FUNCTIONS, Primitive, function, primitive
from gradcli.engine.system import dtypes
from gradcli.operators.movement.inplace_writes import _either
from gradcli.operators.primitives import arithmetic

FAMILY = "inplace"  # the name in `gradcli ops`


def _comparison(of: Primitive) -> None:
    """`NAME_` of a comparison, which PyTorch records even for integers and bools."""
    ufunc, node = of.kernel, f"{of.name.capitalize()}Backward"

    def with_number(self: Array, other: Any) -> Array:
        wanted = dtypes.result_type([(self.dtype, 2), (dtypes.number_dtype(other), 0)])
        return ufunc(self.astype(wanted, copy=False), dtypes.constant(other, wanted))

    def with_tensor(self: Array, other: Array) -> Array:
        return ufunc(self, other)

    rules: dict[str, Any] = {"self": zeros_like}
    facts: dict[str, Any] = {"refuses": of.refuses, "discrete": True, "batching": "elementwise"}
    number_p = primitive(kernel=with_number, node=f"{node}0", **facts)(
        type(f"{of.name}_number", (), rules)
    )
    tensor_rules = type(f"{of.name}_tensor", (), rules | {"other": zeros_like})
    tensor_p = primitive(kernel=with_tensor, node=f"{node}1", types="common", **facts)(tensor_rules)

    def write(input: Tensor, other: Tensor) -> Any:
        return inplace(tensor_p if isinstance(other, Tensor) else number_p, input, other)

    either = [f"{text}|method" for text in _either(f"{of.name}_", "other")]
    _enter_as(of, write, either, [number_p, tensor_p])


def _logic(primitive: VjpRules) -> None:
    """`NAME_` of a logical function, which PyTorch does not record."""

    def write(input: Tensor, *other: Array) -> Any:
        with modes.changed(enabled=False):
            return inplace(primitive, input, *other)

    other = ", Tensor other" * (len(primitive.names) - 1)
    _enter_as(primitive, write, [f"{primitive.name}_(Tensor input{other})|method"], [])


def _enter_as(
    primitive: Primitive,
    write: Callable[..., Any],
    signatures: list[str],
    primitives: list[Primitive],
) -> None:
    name = f"{primitive.name}_"
    write.__doc__ = f"In-place form of `{primitive.name}`."
    write.__module__ = __name__
    others = " ".join(f"{a}_" for a in FUNCTIONS[primitive.name].aliases)
    first = "randn(3).clone()" if primitives else "(randn(3) > 0)"
    sample = f"{first}.{name}({'zeros(3)' if len(primitive.names) > 1 else ''})"
    function(*signatures, name=name, aliases=others, primitives=primitives, samples=[sample])(write)


for _primitive in (arithmetic.eq, arithmetic.ne, arithmetic.lt, arithmetic.le, arithmetic.gt):
    _comparison(_primitive)


_comparison(arithmetic.ge)


for _primitive in (arithmetic.logical_and, arithmetic.logical_or, arithmetic.logical_xor):
    _logic(_primitive)


_logic(arithmetic.logical_not)

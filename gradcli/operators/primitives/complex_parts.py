"""Complex numbers of their parts: `complex` and `polar`."""

from __future__ import annotations

import numpy as np

from gradcli.engine.core.declaration import Array
from gradcli.engine.registry.argument_errors import type_name
from gradcli.engine.registry.rule_helpers import is_python_number
from gradcli.engine.registry.table import operator
from gradcli.engine.system import dtypes
from gradcli.engine.system.array_memory import as_operands
from gradcli.engine.system.dtypes import scalar_name
from gradcli.operators.primitives.elementwise import sgn

FAMILY = "creation"  # the name in `gradcli ops`


def _check_parts(name: str, real: str, a: Array, b: Array) -> None:
    for i, (argument, part) in enumerate(((real, a), ("imag" if real == "real" else "angle", b))):
        if is_python_number(part):
            raise TypeError(
                f"{name}(): argument '{argument}' (position {i + 1}) must be Tensor, not {type_name(part)}"
            )
    names = [scalar_name(x) for x in (a, b)]
    if a.dtype.kind != "f" or b.dtype.kind != "f":
        raise RuntimeError(
            f"Expected both inputs to be Half, Float or Double tensors but got {names[0]} and {names[1]}"
        )
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {names[0]} but got scalar type {names[1]} for second argument"
        )


def _combined(real: Array, imag: Array) -> Array:
    shape = np.broadcast_shapes(np.shape(real), np.shape(imag))
    out = np.empty(shape, np.complex128 if real.dtype.itemsize == 8 else np.complex64)
    out.real, out.imag = real, imag
    return as_operands(out, real, imag) if out.ndim else out[()]


_PARTS = "(rand(3), rand(3)); (rand(2, 1), rand(3)); (rand(()), rand(0))"


@operator(
    "pointwise function",
    node="ComplexBackward0",
    name="complex",
    samples=_PARTS,
    symbolic="torch.complex:",
    out=("exact: Expected object of scalar type {0} but got scalar type {1} for argument 'out'"),
)
class complex_:
    """Complex numbers with the given real and imaginary parts."""

    def forward(real: Array, imag: Array) -> Array:
        _check_parts("complex", "real", real, imag)
        if real.dtype.itemsize == 2:
            raise RuntimeError(dtypes.NO_COMPLEX_HALF)
        return _combined(real, imag)

    real = lambda g, real: g.real
    imag = lambda g, imag: g.imag


@operator(
    "pointwise function",
    node="PolarBackward0",
    samples=_PARTS,
    out=("exact: Expected object of scalar type {0} but got scalar type {1} for argument 'out'"),
)
class polar:
    """Complex numbers with the given absolute values and angles."""

    def forward(abs: Array, angle: Array) -> Array:
        _check_parts("polar", "abs", abs, angle)
        if abs.dtype.itemsize == 2:
            raise NotImplementedError("\"polar_cpu\" not implemented for 'Half'")
        return _combined(abs * np.cos(angle), abs * np.sin(angle))

    abs = lambda g, result: (g.conj() * sgn(result)).real
    angle = lambda g, result: (g.conj() * (result * 1j)).real

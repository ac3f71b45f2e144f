"""Arrays that a caller gives, whoever's they are, as NumPy's of the dtypes that tensors have."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from gradcli.engine.system import dtypes


class GivenArrayError(TypeError):
    """A value that would lose something as an array of numbers; remedy: what to pass."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(f"{message}: {remedy}")
        self.message, self.remedy = message, remedy


def array_of(value: Any) -> Any:
    """The numbers of an array, or a number of NumPy's; None where a value is neither.

    Arrays of PyTorch's, JAX's, pandas' and others' are taken where NumPy reads them exactly; one of another
    byte order is copied. Raises GivenArrayError for what an array of numbers cannot tell: a mask, a unit,
    digits beyond a double's.
    """
    kind = type(value)
    if kind is np.ndarray or isinstance(value, np.generic) or kind is np.memmap:
        array = value
    elif isinstance(value, np.ndarray):
        if hasattr(value, "mask") and hasattr(value, "filled"):
            raise GivenArrayError(
                "a masked array's mask would be lost",
                "pass x.compressed(), the elements that are not masked, or x.filled(0)",
            )
        raise GivenArrayError(
            f"a {kind.__name__} may mean something of its own", "pass np.asarray(x)"
        )
    elif _is_exact(value):
        raise GivenArrayError(f"a {kind.__name__} has more digits than a double", "pass float(x)")
    elif hasattr(kind, "__array__"):
        try:
            array = np.asarray(value)
        except TypeError as error:  # PyTorch's words for bfloat16
            raise GivenArrayError(f"{error}", "pass x.float()") from None
    else:
        return None
    dtype = array.dtype
    if dtype.kind not in "biufc":
        raise GivenArrayError(f"this holds {dtype}, not numbers", "pass x.astype(float)")
    if dtype.char in "gG" and dtype.itemsize > 8:
        raise GivenArrayError(f"{dtype} has more digits than a double", "pass x.astype(float)")
    return dtypes.native(array)


def _is_exact(value: Any) -> bool:
    """Whether a value is a Decimal or a Fraction; to ask imports neither."""
    return any(
        (module := sys.modules.get(name)) is not None and isinstance(value, getattr(module, kind))
        for name, kind in (("decimal", "Decimal"), ("fractions", "Fraction"))
    )


__all__ = ["GivenArrayError", "array_of"]

"""torch.finfo and torch.iinfo: the limits of the dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.engine.system import dtypes


def _given(name: str, value: Any) -> dtypes.dtype:
    found = dtypes.given(value)
    if found is None:
        raise TypeError(
            f"{name}(): argument 'type' (position 1) must be torch.dtype, not "
            f"{type(value).__name__}"
        )
    return found


class finfo:
    """The limits of a floating dtype, or of a complex dtype's parts; default: the default dtype."""

    __slots__ = ("_type", "bits", "dtype", "eps", "max", "min", "resolution", "tiny")

    def __init__(self, type: Any = None) -> None:
        given = dtypes.get_default_dtype() if type is None else _given("finfo", type)
        if not (given.is_floating_point or given.is_complex):
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle "
                "'torch.finfo'"
            )
        self._type = given
        real = given.to_real() if given.is_complex else given
        limits = np.finfo(real.dtype)
        self.bits, self.dtype = int(limits.bits), real.name
        self.eps, self.tiny = float(limits.eps), float(limits.tiny)
        self.max, self.min = float(limits.max), float(limits.min)
        self.resolution = 10.0 ** -int(limits.precision)

    @property
    def smallest_normal(self) -> float:
        """The smallest positive normal number."""
        return self.tiny

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and self._type is other._type

    def __hash__(self) -> int:
        return hash(self._type)

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, smallest_normal={self.tiny:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
        )


class iinfo:
    """The limits of an integer dtype."""

    __slots__ = ("_type", "bits", "dtype", "max", "min")

    def __init__(self, type: Any) -> None:
        given = _given("iinfo", type)
        if given is dtypes.boolean:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        if given.is_floating_point or given.is_complex:
            raise TypeError(
                "torch.iinfo() requires an integer input type. Use torch.finfo to handle "
                "'torch.iinfo'"
            )
        self._type = given
        limits = np.iinfo(given.dtype)
        self.bits, self.dtype = int(limits.bits), given.name
        self.max, self.min = int(limits.max), int(limits.min)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and self._type is other._type

    def __hash__(self) -> int:
        return hash(self._type)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"

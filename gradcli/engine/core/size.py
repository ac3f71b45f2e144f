"""torch.Size: the shape of a tensor."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any


def _integer(i: int, n: int) -> int:
    if isinstance(n, float) or not hasattr(n, "__index__"):
        raise TypeError(
            f"torch.Size() takes an iterable of 'int' (item {i} is '{type(n).__name__}')"
        )
    return int(n.__index__())


_new: Any = tuple.__new__
_item: Any = tuple.__getitem__


def of(shape: tuple[int, ...]) -> Size:
    """The Size of an array's shape."""
    return _new(Size, shape)


class Size(tuple[int, ...]):
    """A tuple of sizes; its slices and concatenations are Sizes too."""

    __slots__ = ()

    def __new__(cls, sizes: Iterable[Any] = ()) -> Size:
        out = super().__new__(cls, sizes)
        for n in out:
            if type(n) is not int:
                return super().__new__(cls, [_integer(i, n) for i, n in enumerate(out)])
        return out

    def numel(self) -> int:
        """The number of elements of a tensor of this size."""
        return prod(self)

    def __getitem__(self, index: object) -> Any:
        found = _item(self, index)
        return found if found.__class__ is int else _new(Size, found)

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, tuple):
            raise TypeError(
                f"can only concatenate tuple (not {type(other).__name__}) to torch.Size"
            )
        return Size(super().__add__(other))

    def __radd__(self, other: Any) -> Any:
        if not isinstance(other, tuple):
            return NotImplemented
        return Size((*other, *self))

    def __mul__(self, n: Any) -> Any:
        return Size(super().__mul__(n))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

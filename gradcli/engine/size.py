"""torch.Size: the shape of a tensor."""

from __future__ import annotations

from math import prod
from typing import Any


class Size(tuple[int, ...]):
    """A tuple of sizes; slices and sums of it are sizes too."""

    __slots__ = ()

    def numel(self) -> int:
        """The number of elements of a tensor of this size."""
        return prod(self)

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        return Size(found) if isinstance(index, slice) else found

    def __add__(self, other: Any) -> Any:
        return Size(super().__add__(tuple(other)))

    def __radd__(self, other: Any) -> Any:
        return Size(tuple(other) + tuple(self))

    def __mul__(self, n: Any) -> Any:
        return Size(super().__mul__(n))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

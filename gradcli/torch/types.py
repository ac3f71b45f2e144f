"""torch.types: names for hints of types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Number = int | float | bool
Device = Any  # a device, its name or None
Storage = Any
_size = Sequence[int]
_dtype = Any

"""Which PyTorch is there, and what is known of its version."""

from __future__ import annotations

import re
import sys

OLDEST = (2, 10)  # the first whose saved tensors say if a hook has packed them
NEWEST = (2, 14)  # the last that the tests of graphs were run on: see docs/limits.md


def release() -> tuple[int, int]:
    """PyTorch's version as two numbers."""
    found = re.match(r"(\d+)\.(\d+)", sys.modules["torch"].__version__)
    return (int(found[1]), int(found[2])) if found else NEWEST


def name() -> str:
    """PyTorch and its version, in words."""
    return f"PyTorch {sys.modules['torch'].__version__.partition('+')[0]}"


def remark() -> str | None:
    """What is to be said of a version that was not tried, or that does not tell all."""
    if release() > NEWEST:
        known = ".".join(map(str, NEWEST))
        return f"{name()} is newer than what was tried ({known}): drawn from what its nodes say"
    if release() < OLDEST:
        known = ".".join(map(str, OLDEST))
        return (
            f"{name()} does not tell all of what its nodes saved: that is told from {known} on, and "
            "is not known here"
        )
    return None


def tells() -> bool:
    """Whether a saved tensor says what it holds, and if a hook has packed it."""
    saved = sys.modules["torch"]._C._autograd.SavedTensor
    return hasattr(saved, "data") and hasattr(saved, "unpack_hook")

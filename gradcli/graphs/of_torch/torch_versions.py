"""Which PyTorch is there, and what is known of its version."""

from __future__ import annotations

import re
import sys

from gradcli.engine.registry.version_facts import versions

OLDEST = (2, 10)  # the first whose saved tensors say if a hook has packed them


def release() -> tuple[int, int]:
    """PyTorch's version as two numbers."""
    return _numbers(sys.modules["torch"].__version__)


def newest() -> tuple[int, int]:
    """The last that was tried."""
    return _numbers(versions()[-1])


def _numbers(version: str) -> tuple[int, int]:
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def name() -> str:
    """PyTorch and its version, in words."""
    if sys.modules["torch"].__name__ == "gradcli":
        return "itself in PyTorch's place"
    return f"PyTorch {sys.modules['torch'].__version__.partition('+')[0]}"


def remark() -> str | None:
    """What is to be said of a version that was not tried, or that does not tell all."""
    if release() > newest():
        known = ".".join(map(str, newest()))
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

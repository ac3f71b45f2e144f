"""What a saved tensor that a hook has packed keeps alive: its content, and the arguments of a checkpoint.

Nothing is unpacked for it: that runs the program's code.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from gradcli.graphs.of_torch.torch_tensors import is_torch_tensor


def held(content: Any, unpack_hook: Any) -> Iterator[Any]:
    """The tensors in what a pack hook has returned, and the arguments of a checkpointed call."""
    yield from _among(content)
    owner = getattr(
        unpack_hook, "__self__", None
    )  # ours: `_Repeat` of engine/core/checkpointing.py
    if owner is None:
        owner = _variables(unpack_hook).get("frame")  # PyTorch's `_CheckpointFrame`
    if owner is None:
        return
    if hasattr(owner, "recompute_fn"):
        yield from _raw(getattr(owner, "saved_args", ()))
        saver = getattr(owner, "input_saver", None)  # before PyTorch 2.13
        yield from _raw(getattr(getattr(saver, "grad_fn", None), "_raw_saved_tensors", ()))
        yield from _among(_variables(owner.recompute_fn).get("kwargs"))
    elif hasattr(owner, "inputs") and hasattr(owner, "random_state"):
        yield from _among(owner.inputs._saved)
        yield from _among(owner.kwargs)


def _variables(function: Any) -> dict[str, Any]:
    """The variables of the functions around it that a function uses."""
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    found = {}
    for name, cell in zip(names, getattr(function, "__closure__", None) or (), strict=False):
        with suppress(ValueError):  # an empty cell
            found[name] = cell.cell_contents
    return found


def _raw(saved: Any) -> Iterator[Any]:
    """PyTorch's saved tensors, as they are held."""
    for one in saved or ():
        yield from _among(getattr(one, "data", None))


def _among(value: Any) -> Iterator[Any]:
    if is_torch_tensor(value):
        yield value
    elif isinstance(value, dict):
        yield from _among(list(value.values()))
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _among(one)

"""What programs ask about devices: there is the CPU, and PyTorch's answers where there is nothing else."""

from __future__ import annotations

from typing import Any

from gradcli.engine.core.device import cpu, device, used
from gradcli.engine.core.tensor import Tensor
from gradcli.engine.registry.table import function


def _answers(name: str, answer: int | None, arguments: str = "", doc: str = "") -> None:
    """A function of no effect, whose answer is known."""

    def give(*_: Any) -> Any:
        return answer

    give.__doc__, give.__module__ = doc or f"Always {answer}: there is the CPU alone.", __name__
    function(f"{name.rpartition('.')[2]}({arguments})", name=name, python=True, method=False)(give)


def _refuses(name: str, arguments: str = "") -> None:
    def give(*_: Any) -> Any:
        return used("cuda")

    give.__doc__, give.__module__ = "Refused: there is the CPU alone.", __name__
    function(f"{name.rpartition('.')[2]}({arguments})", name=name, python=True, method=False)(give)


_DEVICE = "Any device=None"
for _name in ("is_available", "is_initialized", "is_bf16_supported"):
    _answers(f"cuda.{_name}", False)
for _name in ("accelerator.is_available", "backends.cudnn.is_available"):
    _answers(_name, False)
for _name in ("is_available", "is_built"):
    _answers(f"backends.mps.{_name}", False)
_answers("accelerator.current_accelerator", None)
_answers("cuda.device_count", 0)
for _name in ("manual_seed", "manual_seed_all"):
    _answers(f"cuda.{_name}", None, "Any seed", "Nothing: there is no such device to seed.")
for _name in ("seed", "seed_all", "empty_cache"):
    _answers(f"cuda.{_name}", None, doc="Nothing: there is no such device.")
for _name in ("memory_allocated", "max_memory_allocated", "memory_reserved"):
    _answers(f"cuda.{_name}", 0, _DEVICE)
for _name in ("current_device", "init"):
    _refuses(f"cuda.{_name}")
for _name in ("synchronize", "get_device_name", "get_device_properties", "set_device"):
    _refuses(f"cuda.{_name}", _DEVICE)


@function("get_default_device()|python|function")
def get_default_device() -> device:
    """The device that tensors are made on: the CPU."""
    return cpu


@function("set_default_device(Any device)|python|function")
def set_default_device(device: str) -> None:
    """The CPU, or None for it, is taken; any other device refused."""
    if device is not None:
        used(device)


@function("cuda(Tensor input, Any device=None, bool non_blocking=False)|method")
def cuda(input: Tensor, device: Any, non_blocking: bool) -> Any:
    """Refused: there is the CPU alone."""
    return used("cuda")


@function("get_device(Tensor input)")
def get_device(input: Any) -> int:
    """The index of the tensor's device, which the CPU has not: -1."""
    return -1

"""The one device there is."""

from __future__ import annotations

from typing import Any

_TYPES = (
    *("cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga"),
    *("maia", "xla", "lazy", "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone"),
)


class device:
    """A CPU, under PyTorch's name; raises RuntimeError for any other device."""

    type = "cpu"
    index = None

    def __init__(self, name: Any = "cpu") -> None:
        if str(name) not in ("cpu", "cpu:0"):
            if str(name).partition(":")[0] in _TYPES:
                raise RuntimeError(f"gradcli computes on the CPU only; there is no device {name!r}")
            raise RuntimeError(
                f"Expected one of {', '.join(_TYPES)} device type at start of device string: {name}"
            )

    def __repr__(self) -> str:
        return "device(type='cpu')"

    def __str__(self) -> str:
        return "cpu"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device)

    def __hash__(self) -> int:
        return hash("cpu")


cpu = device()


class _Named:
    """A constant of PyTorch that prints as its name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"torch.{self._name}"


class layout(_Named):
    """How a tensor's numbers are kept."""


class memory_format(_Named):
    """In which order a tensor's numbers lie in memory."""


strided = layout("strided")
contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")

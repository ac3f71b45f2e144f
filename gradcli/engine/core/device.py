"""PyTorch's devices, layouts and memory formats. Only the CPU computes."""

from __future__ import annotations

from typing import Any

_TYPES = (
    *("cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga"),
    *("maia", "xla", "lazy", "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone"),
)


# The errors of a CPU build of PyTorch for devices that it does not have.
_MISSING: dict[str, Exception] = {
    "cuda": AssertionError("Torch not compiled with CUDA enabled"),
    "xpu": AssertionError("Torch not compiled with XPU enabled"),
    "hpu": ModuleNotFoundError("No module named 'torch.hpu'"),
    "privateuseone": ModuleNotFoundError("No module named 'torch.privateuseone'"),
}
_INVALID = (
    "device() received an invalid combination of arguments - got ({}), but expected one of:\n"
    " * (torch.device device)\n{} * (str type, int index = -1)\n"
)
_UNFIT = "      didn't match because some of the arguments have invalid types: (!{}!)\n"
_NOTHING: Any = object()


class device:
    """A device. All names that PyTorch knows are accepted; only "cpu" can be used."""

    type: str
    index: int | None

    __slots__ = ("index", "type")

    def __init__(self, type: Any = _NOTHING, index: int | None = None) -> None:
        if isinstance(type, device):
            self.type, self.index = type.type, type.index
            return
        if isinstance(type, int) and not isinstance(type, bool):
            raise RuntimeError("Cannot access accelerator device when none is available.")
        if not isinstance(type, str):
            found = "" if type is _NOTHING else type.__class__.__name__
            raise TypeError(_INVALID.format(found, _UNFIT.format(found) if found else ""))
        self.type, self.index = _read(type)
        if index is not None:
            if self.index is not None:
                raise RuntimeError(
                    "type (string) must not include an index because index was passed explicitly: "
                    f"{type}"
                )
            if index < 0:
                raise RuntimeError("Device index must not be negative")
            self.index = index

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type={self.type!r}{index})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __reduce__(self) -> Any:
        return device, (str(self),)

    def __enter__(self) -> device:
        """Set the default device; RuntimeError for any but the CPU."""
        return used(self)

    def __exit__(self, *_: object) -> None:
        pass


def _read(text: str) -> tuple[str, int | None]:
    """The type and index in a device's name, as ("cuda", 0); RuntimeError for a bad name."""
    if not text:
        raise RuntimeError("Device string must not be empty")
    name, colon, digits = text.partition(":")
    if name not in _TYPES:
        raise RuntimeError(
            f"Expected one of {', '.join(_TYPES)} device type at start of device string: {name}"
        )
    if not colon:
        return name, None
    plain = digits.isascii() and digits.isdigit() and (digits == "0" or digits[0] != "0")
    if not plain:
        raise RuntimeError(f"Invalid device string: '{text}'")
    return name, int(digits)


def used(given: Any) -> device:
    """The device to compute on; raises PyTorch's error for any but the CPU."""
    found = device(given)
    if found.type != "cpu":
        words = _MISSING.get(found.type)
        if words is None:
            text = f"PyTorch is not linked with support for {found.type} devices"
            words = RuntimeError(text)
        raise type(words)(f"{words}; gradcli computes on the CPU only")
    return found


cpu = device("cpu")


class _Named:
    """A constant of PyTorch that prints as its name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"torch.{self._name}"


class layout(_Named):
    """How a tensor's elements are stored; `strided` is the only one."""


class memory_format(_Named):
    """The order of a tensor's elements in memory."""


strided = layout("strided")
contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")

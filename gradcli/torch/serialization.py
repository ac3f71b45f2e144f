"""torch.save and torch.load: PyTorch's file format, of which no code is ever run.

A file is a ZIP archive: the numbers of each storage, and a program for a machine with a stack (a pickle)
that puts them together. Python's own machine would call whatever a file names. This one knows the few
instructions and names that tensors, containers and plain values take, and refuses every other.
"""

from __future__ import annotations

import os
import pickletools
import sys
import warnings
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from pickle import UnpicklingError
from struct import pack
from typing import Any

import numpy as np

import gradcli.engine.system.budget as budget
from gradcli.engine.core.device import device, used
from gradcli.engine.core.modes import users_level
from gradcli.engine.core.size import Size
from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.engine.registry import table
from gradcli.engine.system import dtypes
from gradcli.engine.system.array_memory import element_strides, memory_of
from gradcli.torch.nn.parameter import Parameter

_STORAGES = {
    "float16": "HalfStorage", "float32": "FloatStorage", "float64": "DoubleStorage",
    "complex64": "ComplexFloatStorage", "complex128": "ComplexDoubleStorage", "bool": "BoolStorage",
    "uint8": "ByteStorage", "int8": "CharStorage", "int16": "ShortStorage", "int32": "IntStorage",
    "int64": "LongStorage",
}  # fmt: skip
_CUDA = (
    "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you "
    "are running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to "
    "map your storages to the CPU."
)
_PLAIN = "tensors, parameters, numbers, text, and lists, tuples and dicts of them"


# -- writing --------------------------------------------------------------------------------------
def save(obj: object, f: Any, *_: Any, **__: Any) -> None:
    """Write tensors, and containers of them and of plain values, to a file that PyTorch reads, too.

    f: a path, which is replaced when all is written, or a binary file. Tensors that share memory do so
    after loading. Raises TypeError for what could only be read back by running code.
    """
    writer = _Writer()
    try:
        writer.put(obj)
    except RecursionError:
        raise ValueError("the value is nested too deeply to be saved") from None
    if hasattr(f, "write"):
        writer.write(f)
    elif isinstance(f, (str, os.PathLike)):
        with _replaced(Path(f)) as file:
            writer.write(file)
    else:
        raise AttributeError(
            "expected 'f' to be string, path, or a file-like object with a 'write' attribute"
        )


@contextmanager
def _replaced(path: Path) -> Iterator[Any]:
    """A file that takes the path's place when all of it is written."""
    if not path.parent.exists():
        raise RuntimeError(f"Parent directory {path.parent} does not exist.")
    if path.exists() and not path.is_file():  # a device or a pipe has no other to be replaced by
        with path.open("wb") as file:
            yield file
        return
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("wb") as file:
            yield file
        beside.replace(path)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise


class _Writer:
    """The program that builds a value, and the storages that it asks for."""

    def __init__(self) -> None:
        self.out = bytearray(b"\x80\x02")
        self.known: dict[int, int] = {}
        self.kept: list[Any] = []  # alive, so that no two have one id
        self.storages: dict[int, tuple[str, Any]] = {}

    def write(self, file: Any) -> None:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr("archive/data.pkl", bytes(self.out) + b".")
            archive.writestr("archive/byteorder", sys.byteorder)
            for key, array in self.storages.values():
                with archive.open(f"archive/data/{key}", "w", force_zip64=True) as entry:
                    entry.write(memoryview(array).cast("B") if array.size else b"")
            archive.writestr("archive/version", "3\n")

    def put(self, value: Any) -> None:
        number = self.known.get(id(value))
        if number is not None:
            self.out += b"j" + pack("<I", number)
            return
        put = _PUT.get(type(value))
        if put is None:
            kind = type(value).__name__
            hint = "; give .item() of it" if isinstance(value, np.generic) else ""
            if hasattr(value, "state_dict"):
                hint = "; give its state_dict(), and load_state_dict() what load gives"
            raise TypeError(
                f"gradcli.save takes {_PLAIN}, not {kind}: no code is run on loading{hint}"
            )
        put(self, value)

    def remember(self, value: Any) -> None:
        self.known[id(value)] = len(self.kept)
        self.out += b"r" + pack("<I", len(self.kept))
        self.kept.append(value)

    def constant(self, value: Any) -> None:
        self.out += {None: b"N", True: b"\x88", False: b"\x89"}[value]

    def integer(self, value: int) -> None:
        if -(2**31) <= value < 2**31:
            self.out += b"J" + pack("<i", value)
            return
        size = value.bit_length() // 8 + 1
        head = b"\x8a" + pack("<B", size) if size < 256 else b"\x8b" + pack("<I", size)
        self.out += head + value.to_bytes(size, "little", signed=True)

    def number(self, value: float) -> None:
        self.out += b"G" + pack(">d", value)

    def text(self, value: str) -> None:
        coded = value.encode("utf-8", "surrogatepass")
        self.out += b"X" + pack("<I", len(coded)) + coded

    def items(self, value: tuple[Any, ...]) -> None:
        self.out += b"("
        for item in value:
            self.put(item)
        self.out += b"t"

    def sequence(self, value: tuple[Any, ...]) -> None:
        self.items(value)
        self.remember(value)

    def list(self, value: list[Any]) -> None:
        self.out += b"]"
        self.remember(value)
        self.out += b"("
        for item in value:
            self.put(item)
        self.out += b"e"

    def dict(self, value: dict[Any, Any]) -> None:
        if type(value) is OrderedDict:
            self.call("collections OrderedDict")
        else:
            self.out += b"}"
        self.remember(value)
        self.out += b"("
        for key, item in value.items():
            self.put(key)
            self.put(item)
        self.out += b"u"

    def name(self, name: str) -> None:
        self.out += b"c" + name.replace(" ", "\n").encode() + b"\n"

    def call(self, name: str, *values: Any) -> None:
        self.name(name)
        self.items(values)
        self.out += b"R"

    def tensor(self, value: Tensor) -> None:
        if isinstance(value, Parameter):
            self.name("torch._utils _rebuild_parameter")
            self.out += b"("
            self.plain(value, requires_grad=False)
            self.constant(value.requires_grad)
            self.call("collections OrderedDict")
            self.out += b"tR"
        else:
            self.plain(value, requires_grad=value.requires_grad)
        self.remember(value)

    def plain(self, value: Tensor, *, requires_grad: bool) -> None:
        array = np.asarray(value.resolve_conj().memory())
        storage, start = self.storage(array)
        self.name("torch._utils _rebuild_tensor_v2")
        self.out += b"(("
        self.text("storage")
        self.name(f"torch {_STORAGES[array.dtype.name]}")
        for item in (storage[0], "cpu", storage[1].size):
            self.put(item)
        self.out += b"tQ"
        for item in (start, array.shape, element_strides(array), requires_grad):
            self.put(item)
        self.call("collections OrderedDict")
        self.out += b"tR"

    def storage(self, array: Any) -> tuple[tuple[str, Any], int]:
        """The memory that an array lies in as a storage, and where it begins there."""
        root = memory_of(array)
        whole = isinstance(root, np.ndarray) and root.flags.owndata and root.dtype == array.dtype
        if not whole or any(step < 0 for step in array.strides):
            root = array = np.ascontiguousarray(array)
        flat = np.ndarray((root.size,), root.dtype, root.ravel(order="K"))
        place = array.__array_interface__["data"][0] - root.__array_interface__["data"][0]
        found = self.storages.get(id(root))
        if found is None:
            self.kept.append(root)
            self.known[id(root)] = -1  # no value of the program
            found = self.storages[id(root)] = (str(len(self.storages)), flat)
        return found, place // array.dtype.itemsize


_PUT: dict[type, Callable[[_Writer, Any], None]] = {
    **dict.fromkeys((type(None), bool), _Writer.constant),
    int: _Writer.integer,
    float: _Writer.number,
    complex: lambda w, v: w.call("__builtin__ complex", v.real, v.imag),
    str: _Writer.text,
    bytes: lambda w, v: w.call("_codecs encode", v.decode("latin1"), "latin1"),
    tuple: _Writer.sequence,
    list: _Writer.list,
    **dict.fromkeys((dict, OrderedDict), _Writer.dict),
    Size: lambda w, v: w.call("torch Size", tuple(v)),
    dtypes.dtype: lambda w, v: w.name(f"torch {v.name}"),
    device: lambda w, v: w.call("torch device", str(v)),
    **dict.fromkeys((Tensor, Parameter), _Writer.tensor),
}


# -- reading --------------------------------------------------------------------------------------
def load(f: Any, map_location: Any = None, *_: Any, weights_only: Any = True, **__: Any) -> Any:
    """What `save`, PyTorch's or ours, has written to a path or a binary file.

    Only tensors, containers and plain values are read, whatever weights_only says, and no code is run.
    map_location: the CPU, however it is said.
    """
    if isinstance(map_location, (str, device)):
        used(map_location)
    try:
        archive = zipfile.ZipFile(f)
    except zipfile.BadZipFile:
        raise RuntimeError(
            "PytorchStreamReader failed reading zip archive: not a ZIP archive; gradcli.load reads what "
            "torch.save has written since PyTorch 1.6"
        ) from None
    table.base()  # tensors have their operators
    with archive:
        return _Reader(archive, map_location is not None).read()


class _Reader:
    """The machine that runs a file's program."""

    def __init__(self, archive: zipfile.ZipFile, mapped: bool) -> None:
        self.archive, self.mapped = archive, mapped
        names = [name for name in archive.namelist() if name.endswith("/data.pkl")]
        if len(names) != 1:
            raise RuntimeError("file in archive is not in a subdirectory: data.pkl")
        self.folder = names[0].removesuffix("data.pkl")
        if any(info.compress_type != zipfile.ZIP_STORED for info in archive.infolist()):
            raise RuntimeError("gradcli.load reads no compressed archive: torch.save writes none")
        self.storages: dict[str, Any] = {}
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}
        self.warned = False

    def read(self) -> Any:
        program = self.archive.read(f"{self.folder}data.pkl")
        try:
            for opcode, argument, _ in pickletools.genops(program):
                if opcode.name == "STOP":
                    return self.stack.pop()
                self.step(opcode.name, argument)
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
            why = error.args[0] if isinstance(error, _Refused) else "the file is damaged"
            raise UnpicklingError(
                f"Weights only load failed: {why}; gradcli.load reads {_PLAIN}, and runs no code"
            ) from None
        raise UnpicklingError("Weights only load failed: the file is damaged")

    def step(self, name: str, argument: Any) -> None:
        stack = self.stack
        if name in _VALUES:
            stack.append(argument)
        elif name in _EMPTY:
            stack.append(_EMPTY[name]())
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in ("BINPUT", "LONG_BINPUT", "MEMOIZE"):
            self.memo[len(self.memo) if argument is None else argument] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(self.memo[argument])
        elif name == "MARK":
            self.marks.append(len(stack))
        elif name in ("TUPLE1", "TUPLE2", "TUPLE3"):
            count = int(name[-1])
            stack[-count:] = [tuple(stack[-count:])]
        elif name == "TUPLE":
            stack.append(tuple(self.marked()))
        elif name in ("APPEND", "APPENDS"):
            items = self.marked() if name == "APPENDS" else [stack.pop()]
            _only(stack[-1], list).extend(items)
        elif name in ("SETITEM", "SETITEMS"):
            items = self.marked() if name == "SETITEMS" else [stack.pop(-2), stack.pop()]
            target = _only(stack[-1], dict, OrderedDict)
            for key, value in zip(items[::2], items[1::2], strict=True):
                target[budget.key(key)] = value
        elif name in ("GLOBAL", "STACK_GLOBAL"):
            module, _, word = (argument or f"{stack.pop(-2)} {stack.pop()}").partition(" ")
            stack.append(_meaning(module, word))
        elif name == "REDUCE":
            arguments = _only(stack.pop(), tuple)
            stack.append(_only(stack.pop(), _Named).make(*arguments))
        elif name == "BINPERSID":
            stack.append(self.storage(*_only(stack.pop(), tuple)))
        elif (
            name == "BUILD"
        ):  # a state dict of modules has a note of versions, which nobody asks for
            stack.pop()
            _only(stack[-1], OrderedDict)
        elif name not in ("PROTO", "FRAME"):
            raise _Refused(f"Unsupported operand {name}")

    def marked(self) -> list[Any]:
        """What has come since the last mark, taken off the stack."""
        start = self.marks.pop()
        found = self.stack[start:]
        del self.stack[start:]
        return found

    def storage(self, what: Any, kind: Any, key: Any, location: Any, size: Any) -> _Storage:
        """The numbers that the program asks for."""
        dtype = _only(kind, _Named).dtype
        if what != "storage" or dtype is None or type(key) is not str or type(size) is not int:
            raise _Refused("Unsupported storage")
        if not str(location).startswith("cpu") and not self.mapped:
            raise RuntimeError(_CUDA)
        if key not in self.storages:
            data = bytearray(self.archive.read(f"{self.folder}data/{key}"))
            stored = np.dtype(np.uint16) if kind is _BFLOAT16 else dtype
            numbers = np.frombuffer(data, stored, len(data) // stored.itemsize)
            with suppress(KeyError):
                if self.archive.read(f"{self.folder}byteorder").decode() != sys.byteorder:
                    numbers.byteswap(inplace=True)
            self.storages[key] = self.widened(numbers) if kind is _BFLOAT16 else numbers
        found = self.storages[key]
        if found.dtype != dtype or found.size < size:
            raise _Refused(
                f"Unsupported storage {key}: it has {found.size} numbers of {found.dtype}"
            )
        return _Storage(found)

    def widened(self, bits: Any) -> Any:
        """Numbers of bfloat16, the upper halves of float32, as float32, which holds them exactly."""
        if not self.warned:
            self.warned = True
            warnings.warn(
                "gradcli has no tensors of torch.bfloat16: those of the file become torch.float32, with "
                "the same values",
                stacklevel=users_level(),
            )
        return (bits.astype(np.uint32) << 16).view(np.float32)


class _Refused(ValueError):
    """What a file asks for that is not done."""


class _Storage:
    """Numbers that tensors are made over."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array


class _Named:
    """What a name in a file means: something to be made, or the dtype of a storage."""

    __slots__ = ("dtype", "make")

    def __init__(self, make: Callable[..., Any], dtype: Any = None) -> None:
        self.make, self.dtype = make, dtype


def _only(value: Any, *kinds: type) -> Any:
    if type(value) not in kinds:
        raise _Refused(f"Unsupported use of {type(value).__name__}")
    return value


def _none(*_: Any) -> Any:
    raise _Refused("Unsupported call")


def _tensor(
    storage: Any, start: Any, shape: Any, strides: Any, requires_grad: Any = False, *_: Any
) -> Tensor:
    """A tensor over a storage, all of whose elements are in it."""
    array = _only(storage, _Storage).array
    shape, strides = tuple(_only(shape, tuple, Size)), tuple(_only(strides, tuple))
    numbers = (start, *shape, *strides)
    if any(type(n) is not int or n < 0 for n in numbers) or len(shape) != len(strides):
        raise _Refused("Unsupported strides")
    last = start + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
    if 0 not in shape and last >= array.size:
        raise _Refused("Unsupported strides: they lead out of the storage")
    view = np.ndarray(
        shape, array.dtype, array, start * array.itemsize if 0 not in shape else 0,
        tuple(step * array.itemsize for step in strides),
    )  # fmt: skip
    return wrap(view if shape else view[()], bool(requires_grad))


def _parameter(data: Any, requires_grad: Any, *_: Any) -> Parameter:
    return Parameter(_only(data, Tensor), bool(requires_grad))


def _bytes(text: Any, coding: Any) -> bytes:
    if coding != "latin1":
        raise _Refused(f"Unsupported encoding {coding}")
    return bytes(_only(text, str), "latin1")


def _made(kind: Callable[..., Any], *allowed: type) -> _Named:
    return _Named(lambda *values: kind(*(_only(value, *allowed) for value in values)))


_BFLOAT16 = _Named(_none, np.dtype(np.float32))
_ALLOWED: Mapping[tuple[str, str], Any] = {
    ("torch._utils", "_rebuild_tensor_v2"): _Named(_tensor),
    ("torch._utils", "_rebuild_parameter"): _Named(_parameter),
    ("collections", "OrderedDict"): _made(OrderedDict),
    ("_codecs", "encode"): _Named(_bytes),
    ("torch", "Size"): _made(Size, tuple),
    ("torch", "device"): _made(device, str, int),
    **{(module, "complex"): _made(complex, float) for module in ("__builtin__", "builtins")},
    **{("torch", storage): _Named(_none, np.dtype(name)) for name, storage in _STORAGES.items()},
    ("torch", "BFloat16Storage"): _BFLOAT16,
    ("torch", "bfloat16"): dtypes.bfloat16,
    **{("torch", name): dtype for name, dtype in dtypes.NAMES.items()},
}
_VALUES = frozenset(
    ("BININT", "BININT1", "BININT2", "LONG1", "LONG4", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE",
     "BINUNICODE8", "BINBYTES", "SHORT_BINBYTES")
)  # fmt: skip
_EMPTY: dict[str, Callable[[], Any]] = {
    "EMPTY_LIST": list,
    "EMPTY_DICT": dict,
    "EMPTY_TUPLE": tuple,
}
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}


def _meaning(module: str, word: str) -> Any:
    if (module, word) not in _ALLOWED:
        whole = (
            "; save model.state_dict() in PyTorch, for a file of a whole model needs its classes"
        )
        raise _Refused(
            f"Unsupported global: GLOBAL {module}.{word} was not an allowed global by default"
            f"{whole if word[:1].isupper() else ''}"
        )
    return _ALLOWED[module, word]


__all__ = ["load", "save"]

"""Limits on items and memory, since a short text can ask for a lot, and the errors beyond them.

Whatever creates a number of items calls `items` first. Memory is limited once: `bound_memory` lets the
process use what is free when it starts, so that too large an array or list raises MemoryError instead of
the system killing a process.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from math import prod
from typing import Any

MAX_ITEMS = 10_000_000  # in a list, tuple, string or dict
MAX_GROWN = (
    1_000_000  # in a list or dict to which a program adds one by one, at some microseconds each
)
MAX_TENSORS = 1_000_000  # that one call may split a tensor into
MAX_ELEMENTS = 10**11  # of an expanded view, which costs no memory
MAX_RANGE = 1_000_000_000  # numbers in a range such as `0:1e9`
MAX_BITS = 1 << 20  # of an integer
_RESERVE = 0.05  # part of the free memory that is left to others
_LEAST = 1 << 28  # bytes that a process may always use: NumPy alone needs some
_UNLIMITED = 1 << 60
_MAX_KEY_DEPTH = 100  # of nested tuples as a key: Python hashes them on the C stack
_EMPTY: dict[Any, Any] = {}
_VIEWS = (type(_EMPTY.keys()), type(_EMPTY.values()), type(_EMPTY.items()))
NESTED = frozenset((list, tuple, dict, *_VIEWS))  # what holds other values


class TooMany(ValueError):
    """More items than allowed."""


TooMany.__name__, TooMany.__module__ = "ValueError", "builtins"  # users catch it as ValueError


def items(count: int, what: str = "a list", limit: int = 0) -> None:
    """Raise TooMany if `count` exceeds `limit` (default MAX_ITEMS)."""
    limit = limit or MAX_ITEMS
    if count > limit:
        raise TooMany(f"{what} of {spelt(count)} items is too long (at most {limit})")


def elements(shape: Iterable[int]) -> None:
    """Raise TooMany for a shape with more than MAX_ELEMENTS elements, as an expanded view can have."""
    items(prod(shape), "a tensor", MAX_ELEMENTS)


def spelt(number: int) -> str:
    """A number as text for a message."""
    return str(number) if abs(number) < 10**15 else f"about 2**{number.bit_length() - 1}"


def size_of(values: Any) -> int:
    """The number of items that a value will yield; 0 if unknown."""
    if isinstance(values, range):  # len() fails beyond a C integer
        span = values.stop - values.start
        return max(0, -(-span // values.step))
    from operator import length_hint

    try:
        return length_hint(values)
    except (TypeError, OverflowError):
        return 0


def collected(values: Iterable[Any], what: str = "a list") -> list[Any]:
    """The items of an iterable as a list; TooMany for more than MAX_ITEMS."""
    items(size_of(values), what)
    found = list(islice(values, MAX_ITEMS + 1))
    if len(found) > MAX_ITEMS:  # a generator's size is unknown
        raise TooMany(f"{what} of more than {MAX_ITEMS} items is too long")
    return found


def key(value: object) -> Any:
    """Check a key of a dict; raises for a tuple that would take too long, or too much stack, to hash."""
    if type(value) is tuple:
        nested(value)
        level, depth = [value], 0
        while level:
            depth += 1
            if depth > _MAX_KEY_DEPTH:
                raise TooMany(f"a key of tuples nested more than {_MAX_KEY_DEPTH} deep")
            level = [item for part in level for item in part if type(item) is tuple]
    return value


def _held(value: Any) -> Iterable[Any]:
    """The items of a list or tuple; the keys and values of a dict."""
    if type(value) in (list, tuple):
        return value
    mapping = value if type(value) is dict else value.mapping
    return [*mapping.keys(), *mapping.values()]


def nested(value: object) -> None:
    """Raise TooMany for nested lists with too many items; a shared list counts each time it is reached.

    A list that contains itself counts once, as Python prints it. A dict counts keys and values.
    """
    if type(value) not in NESTED:
        return
    counted: dict[int, int] = {}
    open_lists: set[int] = set()
    waiting: list[tuple[Any, bool]] = [(value, False)]
    while waiting:
        found, done = waiting.pop()
        key = id(found)
        if not done and (key in counted or key in open_lists):
            continue
        inner = [item for item in _held(found) if type(item) in NESTED]
        if done:
            open_lists.discard(key)
            counted[key] = len(found) + sum(counted.get(id(item), 1) for item in inner)
        else:
            open_lists.add(key)
            waiting.append((found, True))
            waiting += ((item, False) for item in inner)
    items(counted[id(value)], "a value")


def is_cyclic(value: object) -> bool:
    """Whether a list or dict contains itself, at any depth."""
    if type(value) not in NESTED:
        return False
    done: set[int] = set()
    path: set[int] = set()
    waiting: list[tuple[Any, bool]] = [(value, False)]
    while waiting:
        found, leaving = waiting.pop()
        key = id(found)
        if leaving:
            path.discard(key)
            done.add(key)
        elif key in path:
            return True
        elif key not in done:
            path.add(key)
            waiting.append((found, True))
            waiting += ((item, False) for item in _held(found) if type(item) in NESTED)
    return False


# -- memory ---------------------------------------------------------------------------------------
def free_memory() -> int | None:
    """The bytes that the machine and the limits of the process leave; None if unknown."""
    found = [_free_on_machine(), _free_in_group(), _free_of_addresses()]
    known = [number for number in found if number is not None]
    return min(known) if known else None


def bound_memory() -> None:
    """Limit the process to the memory that is free now: an allocation beyond it raises MemoryError."""
    found = [n for n in (_free_on_machine(), _free_in_group()) if n is not None]
    taken = _field("/proc/self/status", b"VmData:")
    if not found or taken is None:
        return
    import resource

    most = taken + max(int(min(found) * (1 - _RESERVE)), _LEAST)
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if soft == resource.RLIM_INFINITY or most < soft:
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


def out_of_memory(error: MemoryError) -> str:
    """The message for a MemoryError, whatever raised it."""
    shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
    free = free_memory()
    words = "out of memory"
    if shape is not None and dtype is not None:
        size = int(dtype.itemsize)
        for n in shape:
            size *= int(n)
        words += f": an array of shape {tuple(shape)} takes {_amount(size)}"
        if free is not None and free < size:
            words += f" ({_amount(max(free, 0))} are free)"
        elif (most := _most()) is not None:  # what is free now was given back by what failed
            words += f" beside others, and this process may take {_amount(most)} in all"
    elif (most := _most()) is not None:  # what is free now was given back by what failed
        words += f": this process may take {_amount(most)}, what was free when it started"
    return words


def _most() -> int | None:
    """The bytes that `bound_memory` lets the process take; None if it is not limited."""
    try:
        import resource
    except ImportError:  # there is none on Windows
        return None
    soft: int = resource.getrlimit(resource.RLIMIT_DATA)[0]
    return None if soft == resource.RLIM_INFINITY else soft


def _amount(size: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.3g} {unit}"
        size /= 1024
    return f"{size:.3g} TiB" if size < 1e6 else f"{size:.1e} TiB"


def _field(path: str, name: bytes) -> int | None:
    """The line `name: N kB` of a file in /proc, in bytes."""
    try:
        with open(path, "rb", buffering=0) as stream:
            text = stream.read(8192)
    except OSError:
        return None
    at = text.find(name)
    return int(text[at + len(name) :].split(None, 1)[0]) * 1024 if at >= 0 else None


def _number(path: str) -> int | None:
    try:
        with open(path, "rb", buffering=0) as stream:
            text = stream.read(64).strip()
    except OSError:
        return None
    return int(text) if text.isdigit() and int(text) < _UNLIMITED else None


def _free_on_machine() -> int | None:
    free = _field("/proc/meminfo", b"MemAvailable:")
    return None if free is None else free + (_field("/proc/meminfo", b"SwapFree:") or 0)


def _free_in_group() -> int | None:
    """The bytes that the control group (cgroup, version 2 or 1) has left."""
    for folder, most, taken in (
        ("/sys/fs/cgroup/", "memory.max", "memory.current"),
        ("/sys/fs/cgroup/memory/", "memory.limit_in_bytes", "memory.usage_in_bytes"),
    ):
        limit, used = _number(folder + most), _number(folder + taken)
        if limit is not None and used is not None:
            return limit - used
    return None


def _free_of_addresses() -> int | None:
    """The bytes that `ulimit -v` and `ulimit -d` leave."""
    try:
        import resource
    except ImportError:  # not a Unix
        return None
    left = []
    for limit, field in ((resource.RLIMIT_AS, b"VmSize:"), (resource.RLIMIT_DATA, b"VmData:")):
        soft, _ = resource.getrlimit(limit)
        taken = _field("/proc/self/status", field)
        if soft != resource.RLIM_INFINITY and taken is not None:
            left.append(soft - taken)
    return min(left) if left else None

"""What little text may ask for: how many items, how much memory, and the words where it is too much.

Every place that makes items by the number asks `items` first. Memory is asked for in one place: the
process may take what the machine has free when it starts, so that an array or a list for which there is
none is refused (MemoryError) wherever it is made, and no process is killed for what one has filled.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from math import prod
from typing import Any

MAX_ITEMS = 10_000_000  # of a list, a tuple, a string, a dict
MAX_TENSORS = 1_000_000  # that one call may cut another into
MAX_ELEMENTS = 10**11  # of a view that repeats elements, which costs no memory
MAX_RANGE = 1_000_000_000  # numbers of a value such as `0:1e9`
MAX_BITS = 1 << 20  # of an integer
_RESERVE = 0.05  # of what is free, left to others
_LEAST = 1 << 28  # what a process may take however little is free: NumPy alone wants some
_UNLIMITED = 1 << 60
_MAX_KEY_DEPTH = 100  # of tuples in tuples as a key: Python hashes them on the stack of C
_EMPTY: dict[Any, Any] = {}
_VIEWS = (type(_EMPTY.keys()), type(_EMPTY.values()), type(_EMPTY.items()))
NESTED = frozenset((list, tuple, dict, *_VIEWS))  # what holds other values


class TooMany(ValueError):
    """More items than one text may ask for."""


TooMany.__name__, TooMany.__module__ = "ValueError", "builtins"  # to programs that catch it


def items(count: int, what: str = "a list", limit: int = 0) -> None:
    """Raise TooMany if so many items are more than the limit: MAX_ITEMS, where none is given."""
    limit = limit or MAX_ITEMS
    if count > limit:
        raise TooMany(f"{what} of {spelt(count)} items is too long (at most {limit})")


def elements(shape: Iterable[int]) -> None:
    """Raise TooMany for a tensor that shows more elements than anybody can wait for: it costs no memory."""
    items(prod(shape), "a tensor", MAX_ELEMENTS)


def spelt(number: int) -> str:
    """A number as a message shows it."""
    return str(number) if abs(number) < 10**15 else f"about 2**{number.bit_length() - 1}"


def size_of(values: Any) -> int:
    """How many items a value will yield; 0 where nobody can know."""
    if isinstance(values, range):  # len() ends where a C integer does
        span = values.stop - values.start
        return max(0, -(-span // values.step))
    from operator import length_hint

    try:
        return length_hint(values)
    except (TypeError, OverflowError):
        return 0


def collected(values: Iterable[Any], what: str = "a list") -> list[Any]:
    """All that a value yields, as a list, where that is not too much."""
    items(size_of(values), what)
    found = list(islice(values, MAX_ITEMS + 1))
    if len(found) > MAX_ITEMS:  # of a generator nobody knows the size
        raise TooMany(f"{what} of more than {MAX_ITEMS} items is too long")
    return found


def key(value: Any) -> Any:
    """A key of a dict, unless it is a tuple that would take forever to hash."""
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
    """What a list, a tuple, a dict or a view of one holds."""
    if type(value) in (list, tuple):
        return value  # type: ignore[no-any-return]
    mapping = value if type(value) is dict else value.mapping
    return [*mapping.keys(), *mapping.values()]


def nested(value: Any) -> None:
    """Refuse lists in lists that hold too many items, shared ones counted as often as they are reached.

    A list that holds itself is counted once, as Python shows it. A dict counts as its keys and values.
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


def is_cyclic(value: Any) -> bool:
    """Whether a list or dict holds itself, at whatever depth."""
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
    """The bytes that this process may still take, as the machine and its limits have it; or None."""
    found = [_free_on_machine(), _free_in_group(), _free_of_addresses()]
    known = [number for number in found if number is not None]
    return min(known) if known else None


def bound_memory() -> None:
    """Let the process take what is free now, and no more: what asks for more gets a MemoryError."""
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
    """The one wording of a MemoryError, wherever it comes from."""
    shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
    free = free_memory()
    words = "out of memory"
    if shape is not None and dtype is not None:
        size = int(dtype.itemsize)
        for n in shape:
            size *= int(n)
        words += f": an array of shape {tuple(shape)} takes {_amount(size)}"
    if free is not None:
        words += f" ({_amount(max(free, 0))} are free)"
    return words


def _amount(size: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.3g} {unit}"
        size /= 1024
    return f"{size:.3g} TiB" if size < 1e6 else f"{size:.1e} TiB"


def _field(path: str, name: bytes) -> int | None:
    """A line `name: N kB` of a file of the kernel's, in bytes."""
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
    """What the control group has left: version 2, then version 1."""
    for folder, most, taken in (
        ("/sys/fs/cgroup/", "memory.max", "memory.current"),
        ("/sys/fs/cgroup/memory/", "memory.limit_in_bytes", "memory.usage_in_bytes"),
    ):
        limit, used = _number(folder + most), _number(folder + taken)
        if limit is not None and used is not None:
            return limit - used
    return None


def _free_of_addresses() -> int | None:
    """What `ulimit -v` and `ulimit -d` leave."""
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

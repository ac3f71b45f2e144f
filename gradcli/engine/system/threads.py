"""Work on several threads, with OpenBLAS limited to one thread meanwhile.

OpenBLAS's threads wait in a busy loop, on the cores that our threads need. So while blocks are computed on
several threads, each thread's matrix products use that thread alone.
"""

from __future__ import annotations

import _thread
import functools
import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.engine.system import locks

if TYPE_CHECKING:
    from gradcli.engine.system.dtypes import Array

# The names of OpenBLAS's functions, in NumPy's wheels and elsewhere.
_NAMES = (
    "scipy_openblas_{}_num_threads64_",
    "scipy_openblas_{}_num_threads",
    "openblas_{}_num_threads64_",
    "openblas_{}_num_threads",
)
LARGE = 1 << 18  # elements from which a second thread pays off
_RUNS = 4  # runs for each thread, so that none waits long at the end
_lock = locks.lock()


class _Alone:
    """How many contexts `multiplying_alone` are open, and the number of threads before the first."""

    users = 0
    before = 1


Library = tuple[Callable[[], int], Callable[[int], None]]


@functools.cache
def _library() -> Library | None:
    """OpenBLAS's functions (get the number of threads, set it); None if NumPy uses another BLAS."""
    return next(_every_library(), None)


def _every_library() -> Iterator[Library]:
    """The same of each OpenBLAS that is loaded, NumPy's first."""
    import ctypes

    try:
        with open("/proc/self/maps") as file:
            paths = {line.rstrip("\n").split(maxsplit=5)[-1] for line in file if "openblas" in line}
    except OSError:
        return
    for path in sorted(paths, key=lambda path: "numpy" not in path):
        library = ctypes.CDLL(path)
        for name in _NAMES:
            try:
                yield getattr(library, name.format("get")), getattr(library, name.format("set"))
            except AttributeError:
                continue
            break


def products() -> int:
    """How many threads may share work: 1 if OpenBLAS is not found, or if work is being shared already."""
    found = _library()
    return 1 if found is None or _Alone.users else max(found[0](), 1)


def are_ours() -> bool:
    """Whether OpenBLAS can be limited to one thread."""
    return _library() is not None


@contextmanager
def multiplying_alone() -> Iterator[None]:
    """A context in which each of NumPy's matrix products uses one thread."""
    found = _library()
    if found is None:
        yield
        return
    get, put = found
    with _lock:
        if not _Alone.users:
            _Alone.before = get()
            put(1)
        _Alone.users += 1
    try:
        yield
    finally:
        with _lock:
            _Alone.users -= 1
            if not _Alone.users:
                put(_Alone.before)


@contextmanager
def small_products() -> Iterator[None]:
    """A context for SciPy's methods on vectors, in which every OpenBLAS of the process uses one thread.

    SciPy's wheels have one of their own. Its threads are woken for each small product, and wait in a busy
    loop for the next: a search of 1,000 variables took twice the processor's time.
    """
    put: list[tuple[Callable[[int], None], int]] = []
    with _lock:
        if not _Alone.users:  # else somebody limits NumPy's, and ends with what was before
            put = [(change, get()) for get, change in _every_library()]
            for change, _ in put:
                change(1)
    try:
        yield
    finally:
        for change, before in put:
            change(before)


def _then(work: Callable[[], Any], after: Callable[[], Any]) -> None:
    try:
        work()
    finally:
        after()


def share(run: Callable[[Callable[[], int]], Any], count: int, threads: int) -> None:
    """Call `run(take)` on `threads` threads, this one included; `take()` returns 0, 1, 2 … once each.

    count: numbers from this one on have no work. An exception of a thread is raised after all have ended.
    """
    take = itertools.count().__next__
    failed: list[BaseException] = []

    def work() -> None:
        try:
            with np.errstate(all="ignore"):  # also restores what `run` sets of it
                run(take)
        except BaseException as error:
            failed.append(error)
            for _ in range(count):  # leave no work for the others
                take()

    # Not Thread.start: it waits until the thread runs, a tenth of the time of small work.
    done = [threading.Lock() for _ in range(threads - 1)]
    for ended in done:
        ended.acquire()
        _thread.start_new_thread(_then, (work, ended.release))
    try:
        work()
    finally:
        for ended in done:
            ended.acquire()
    if failed:
        raise failed[0]


def in_runs(work: Callable[[int, int], Any], count: int, elements: int) -> None:
    """Call `work(start, stop)` for runs that cover `count` items, on several threads if `elements` is large.

    Runs are long, so that threads work on separate pages of memory.
    """
    many = products() if elements >= LARGE and count > 1 else 1
    if many == 1:
        work(0, count)
        return
    runs = min(_RUNS * many, count)

    def run(take: Callable[[], int]) -> None:
        while (k := take()) < runs:
            work(count * k // runs, count * (k + 1) // runs)

    share(run, runs, many)


def applied(ufunc: np.ufunc, *operands: Any, out: Array | None = None, least: int = LARGE) -> Any:
    """Apply an elementwise ufunc, on several threads if an operand is a large NumPy array.

    least: elements of an operand from which it is large.
    """
    for a in operands:
        if type(a) is np.ndarray and a.size >= least:
            break
    else:
        return ufunc(*operands) if out is None else ufunc(*operands, out=out)
    from gradcli.engine.system import short_lines

    if out is None:
        out = _result_of(ufunc, operands)
    if out is None or type(out) is not np.ndarray or not out.ndim:
        return ufunc(*operands) if out is None else ufunc(*operands, out=out)
    rows = [type(a) is np.ndarray and a.ndim == out.ndim and len(a) == len(out) for a in operands]

    def work(start: int, stop: int) -> None:
        given = [a[start:stop] if own else a for a, own in zip(operands, rows, strict=True)]
        if len(given) == 2:
            short_lines.into(ufunc, given[0], given[1], out[start:stop])
        else:
            ufunc(*given, out=out[start:stop])

    in_runs(work, len(out), out.size)
    return out


def _result_of(ufunc: np.ufunc, operands: tuple[Any, ...]) -> Any:
    """Memory for a C-contiguous result in float32 or float64, the dtype of all operands; else None."""
    arrays = [a for a in operands if type(a) is np.ndarray]
    shape = np.broadcast_shapes(*[a.shape for a in arrays])
    dtype = arrays[0].dtype
    ordered = [a.flags.c_contiguous for a in arrays]
    # As in NumPy, a C-contiguous operand of the result's shape decides the result's order.
    in_order = all(ordered) or any(
        o and a.shape == shape for o, a in zip(ordered, arrays, strict=True)
    )
    if dtype.char not in "fd" or not in_order:
        return None
    kinds = [type(a) if type(a) in (int, float) else getattr(a, "dtype", None) for a in operands]
    if any(k not in (int, float, dtype) for k in kinds):
        return None
    if ufunc.resolve_dtypes((*kinds, None)) != (dtype,) * (len(kinds) + 1):
        return None
    from gradcli.engine.system import page_pool

    return page_pool.room(shape, dtype)

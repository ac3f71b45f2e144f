"""Work shared out over threads, and the threads of NumPy's products, which are not to be in their way.

OpenBLAS's threads wait for each other in a loop, on the cores that ours would use: while blocks are worked
out on several threads, each of them multiplies alone.
"""

from __future__ import annotations

import _thread
import functools
import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from gradcli.system import locks

# What the library calls the setting, in NumPy's wheels and elsewhere.
_NAMES = (
    "scipy_openblas_{}_num_threads64_",
    "openblas_{}_num_threads64_",
    "openblas_{}_num_threads",
)
LARGE = 1 << 18  # elements from which on a second thread pays
_RUNS = 4  # for each thread, so that none waits long for another
_lock = locks.lock()


class _Alone:
    """How many are multiplying on one thread a block, and what the setting was before the first."""

    users = 0
    before = 1


@functools.cache
def _library() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """(how many threads OpenBLAS uses, how to say so); None where NumPy's products are another's."""
    import ctypes

    try:
        with open("/proc/self/maps") as file:
            paths = {line.rstrip("\n").split(maxsplit=5)[-1] for line in file if "openblas" in line}
    except OSError:
        return None
    for path in sorted(paths, key=lambda path: "numpy" not in path):
        library = ctypes.CDLL(path)
        for name in _NAMES:
            try:
                return getattr(library, name.format("get")), getattr(library, name.format("set"))
            except AttributeError:
                continue
    return None


def products() -> int:
    """How many threads products may be shared out over: 1 where that is not ours to say, or is done."""
    found = _library()
    return 1 if found is None or _Alone.users else max(found[0](), 1)


def are_ours() -> bool:
    """Whether each thread can be made to multiply alone."""
    return _library() is not None


@contextmanager
def multiplying_alone() -> Iterator[None]:
    """NumPy's products take one thread each."""
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


def _then(work: Callable[[], Any], after: Callable[[], Any]) -> None:
    try:
        work()
    finally:
        after()


def share(run: Callable[[Callable[[], int]], Any], count: int, threads: int) -> None:
    """`run(take)` on this thread and threads - 1 more; `take()` gives every number from 0 on to one of them.

    count: how many numbers mean anything. What one of them raises is raised, once all have ended.
    """
    take = itertools.count().__next__
    failed: list[BaseException] = []

    def work() -> None:
        try:
            with np.errstate(all="ignore"):  # which also ends what else is set in it
                run(take)
        except BaseException as error:
            failed.append(error)
            for _ in range(count):  # nothing is left for the others
                take()

    # Thread.start waits for the other to have begun: a tenth of the time of small work.
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
    """`work(start, stop)` of runs of `count` items, on as many threads as so many elements are worth.

    Runs are long, for each thread to be given pages of memory of its own.
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


def applied(ufunc: Any, *operands: Any, out: Any = None, least: int = LARGE) -> Any:
    """An elementwise ufunc of one result, of large plain arrays on several threads; any other as it is.

    least: elements of an operand from which on it is large.
    """
    for a in operands:
        if type(a) is np.ndarray and a.size >= least:
            break
    else:
        return ufunc(*operands) if out is None else ufunc(*operands, out=out)
    from gradcli.system import short_lines

    if out is None:
        out = _result_of(ufunc, operands)
    if out is None or type(out) is not np.ndarray or not out.ndim:
        return ufunc(*operands) if out is None else ufunc(*operands, out=out)
    rows = [type(a) is np.ndarray and a.ndim == out.ndim and len(a) == len(out) for a in operands]

    def work(start: int, stop: int) -> None:
        given = [a[start:stop] if own else a for a, own in zip(operands, rows, strict=True)]
        if len(given) == 2:
            short_lines.into(ufunc, given[0], given[1], out[start:stop], near=False)
        else:
            ufunc(*given, out=out[start:stop])

    in_runs(work, len(out), out.size)
    return out


def _result_of(ufunc: Any, operands: tuple[Any, ...]) -> Any:
    """Memory for a result that lies in order, as floating as all operands are; else None."""
    arrays = [a for a in operands if type(a) is np.ndarray]
    shape = np.broadcast_shapes(*[a.shape for a in arrays])
    dtype = arrays[0].dtype
    ordered = [a.flags.c_contiguous for a in arrays]
    # One of the result's shape that lies in order has the last word, as NumPy decides it.
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
    from gradcli.system import page_pool

    return page_pool.room(shape, dtype)


__all__ = ["LARGE", "applied", "are_ours", "in_runs", "multiplying_alone", "products", "share"]

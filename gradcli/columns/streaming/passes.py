"""Who runs the passes over a table: this process on a few threads, or the workers of a cluster."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from time import perf_counter
from typing import Any, Protocol

from gradcli.columns.compiler.executor import cores
from gradcli.columns.streaming.running_sums import Values, Work, totals
from gradcli.engine.system import dtypes
from gradcli.tables.parts import Part

Run = Callable[[Part], Any]
Told = Callable[[int], None]  # called with a number of rows that are done


_TRIED = 8  # parts for each thread from which on it is tried whether threads help
_HELPS = 0.9  # of the time of one thread, what several take where they do


class Runner(Protocol):
    """The protocol of what runs a pass."""

    def sums(self, work: Work, number: int, values: Values, parts: list[Part], told: Told) -> Any:
        """The sums of all parts in a pass."""


class Threads:
    """This process: parts are read and summed on as many threads as there are cores.

    clock: what tells the seconds by which it is decided whether threads help.
    """

    def __init__(
        self, threads: int | None = None, clock: Callable[[], float] = perf_counter
    ) -> None:
        self.threads, self.clock = threads or cores(), clock
        self.tries = threads is None  # whether they are left alone where one is as fast

    def __enter__(self) -> Threads:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing is left open."""

    def sums(self, work: Work, number: int, values: Values, parts: list[Part], told: Told) -> Any:
        """The sums of all parts in a pass."""
        combine = work.combine(number)
        run = partial(work.run_part, number, values)
        if self.threads < 2 or len(parts) < 2:
            return totals(self._alone(run, parts, told), combine)
        like = dtypes.get_default_dtype()
        with ThreadPoolExecutor(self.threads, initializer=dtypes.adopt, initargs=(like,)) as pool:
            try:
                return totals(self._suitably(pool, run, parts, told), combine)
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def _suitably(
        self, pool: ThreadPoolExecutor, run: Run, parts: list[Part], told: Told
    ) -> Iterator[Any]:
        """The results of parts in order. Threads wait for each other at the interpreter's lock where rows
        cost next to nothing: some parts tell whether they help, and the others run so."""
        if self.tries and len(parts) >= _TRIED * self.threads:
            # Measured on the first parts of the actual work: one thread does `threads` parts, then
            # several do twice as many. If that takes more than 0.9 of twice the time, threads only wait
            # for the interpreter's lock. Sums are combined in order in both cases, so the bits do not
            # depend on what is found.
            self.tries = False
            one, several = (
                parts[1 : 1 + self.threads],
                parts[1 + self.threads : 1 + 3 * self.threads],
            )
            yield from self._alone(run, parts[:1], told)  # which plans
            begun = self.clock()
            yield from self._alone(run, one, told)
            between = self.clock()
            yield from self._several(pool, run, several, told)
            if self.clock() - between > _HELPS * 2 * (between - begun):
                self.threads = 1
            parts = parts[1 + len(one) + len(several) :]
        if self.threads < 2:
            yield from self._alone(run, parts, told)
        else:
            yield from self._several(pool, run, parts, told)

    def _alone(self, run: Run, parts: list[Part], told: Told) -> Iterator[Any]:
        for part in parts:
            yield run(part)
            told(part.rows or 0)

    def _several(
        self, pool: ThreadPoolExecutor, run: Run, parts: list[Part], told: Told
    ) -> Iterator[Any]:
        """The results of parts in order; no more parts are in flight than keep the threads busy."""
        waiting: deque[tuple[Part, Future[Any]]] = deque()
        for part in parts:
            waiting.append((part, pool.submit(run, part)))
            if len(waiting) >= 2 * self.threads:
                done, future = waiting.popleft()
                yield future.result()
                told(done.rows or 0)
        for done, future in waiting:
            yield future.result()
            told(done.rows or 0)


def passes(work: Work, parts: list[Part], runner: Runner, told: Told) -> tuple[Values, int | None]:
    """Run every pass; (what is known then, the pass that gives the outputs that have rows)."""
    values = work.start()
    partition = work.partition
    writing = partition.writing if work.written() else None
    for number in range(len(partition.passes)):
        work.between(values, number)
        if partition.passes[number]:
            sums = runner.sums(work, number, values, parts, told)
            work.take(number, values, sums)
    return values, writing


__all__ = ["Runner", "Threads", "Told", "passes"]

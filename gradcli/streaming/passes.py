"""Who runs the passes over a table: this process on a few threads, or the workers of a cluster."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

from gradcli.compiler.executor import cores
from gradcli.streaming.running_sums import Values, Work, totals
from gradcli.tables.parts import Part

Told = Callable[[int], None]  # called with a number of rows that are done


class Runner(Protocol):
    """The protocol of what runs a pass."""

    def sums(self, work: Work, number: int, values: Values, parts: list[Part], told: Told) -> Any:
        """The sums of all parts in a pass."""


class Threads:
    """This process: parts are read and summed on as many threads as there are cores."""

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads or cores()

    def __enter__(self) -> Threads:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing is left open."""

    def sums(self, work: Work, number: int, values: Values, parts: list[Part], told: Told) -> Any:
        """The sums of all parts in a pass."""
        combine = work.combine(number)
        if self.threads < 2 or len(parts) < 2:
            return totals((self._one(work, number, values, p, told) for p in parts), combine)
        with ThreadPoolExecutor(self.threads) as pool:
            try:
                return totals(self._several(pool, work, number, values, parts, told), combine)
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def _one(self, work: Work, number: int, values: Values, part: Part, told: Told) -> Any:
        found = work.run_part(number, values, part)
        told(part.rows or 0)
        return found

    def _several(
        self,
        pool: ThreadPoolExecutor,
        work: Work,
        number: int,
        values: Values,
        parts: list[Part],
        told: Told,
    ) -> Iterator[Any]:
        """The results of parts in order; no more parts are in flight than keep the threads busy."""
        waiting: deque[tuple[Part, Future[Any]]] = deque()
        for part in parts:
            waiting.append((part, pool.submit(work.run_part, number, values, part)))
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

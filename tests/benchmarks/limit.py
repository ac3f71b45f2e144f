"""How fast a row could be on this machine: the bytes it must move, and the operations it must run.

What must run is read off the row's gradients by hand: they are computed once with arrays that note every
kernel of NumPy's (the same on the same operands once), and each kernel is timed where it is used, on a
block in the cache, on lines of it, and on numbers that it has not seen (of those that it has, the processor
has learnt which branches sine takes); products of matrices at their full size, with all threads. What must
move are the inputs, once, and the gradients, once, at the speed at which this machine copies as much.

What gradcli takes is taken apart, too: its loops over blocks that stay in the cache, the memory that they
wait for, the calls from Python, the threads that wait for each other; and the faults of a fresh result,
which comes where nobody has let go an earlier one.
"""

from __future__ import annotations

import gc
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any
from unittest.mock import patch

import numpy as np

from gradcli.columns.compiler.executor import Executor, RegionStep
from gradcli.engine.system import page_pool
from gradcli.engine.system.page_pool import aligned
from tests.benchmarks import libraries, native, rows, small
from tests.benchmarks.interleave import ROOT, environment, interleaved
from tests.benchmarks.jobs import Job, Wanted, jobs
from tests.benchmarks.libraries import threads
from tests.benchmarks.problems import PROBLEMS
from tests.benchmarks.records import Record
from tests.benchmarks.table import number, size_text

GROUPS = ("large", "rows", "native", "tape", "replay")
BLOCK = 8192  # elements
NEAR = 1.3  # × the limit: what is above is still to be had
LEAST = 0.03  # × the limit: what is worth telling


@dataclass
class Limit:
    """The least that a row takes: seconds, and of what."""

    bytes: int = 0
    moving: float = 0.0  # seconds to copy as much
    kernels: float = 0.0  # seconds of NumPy's loops, on all threads
    products: float = 0.0  # seconds of OpenBLAS
    # kernel: how many elements of it an element of x; of products how many are multiplied and added
    work: dict[str, float] | None = None
    parts: dict[str, float] | None = None  # gradcli's seconds

    @property
    def seconds(self) -> float:
        """Memory can be moved while numbers are computed."""
        return max(self.moving, self.kernels + self.products)

    @property
    def by(self) -> str:
        """What the limit is made of."""
        if self.moving >= self.kernels + self.products:
            return "memory"
        return "products" if self.products > self.kernels else "kernels"

    def rest(self) -> dict[str, float]:
        """What stands between gradcli and the limit: its parts beyond those of the limit, × the limit."""
        if not self.parts:
            return {}
        bound = "memory" if self.by == "memory" else "loops"
        beyond = {n: s / self.seconds - (n == bound) for n, s in self.parts.items()}
        return {n: x for n, x in beyond.items() if x >= LEAST}


def best(
    call: Callable[[], Any],
    rounds: int = 7,
    before: Callable[[], Any] = lambda: None,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """The seconds of the quickest of a few calls, each after `before`."""
    found = []
    for _ in range(rounds):
        before()
        start = clock()
        result = call()
        found.append(clock() - start)
        del result  # freed outside of the clock
    return min(found)


class Noted(np.ndarray):
    """An array that notes, in the `Notes` it was made with, the kernels that it goes through."""

    notes: Notes
    number: int

    def __array_finalize__(self, origin: Any) -> None:
        self.notes = getattr(origin, "notes", None) or Notes()
        self.number = next(self.notes.numbers)

    def __array_ufunc__(self, kernel: Any, method: str, *given: Any, **options: Any) -> Any:
        options.pop("out", None)
        return self.notes.run(kernel, method, given, options)


class Notes:
    """The kernels of a computation, each with the seconds of its calls and their elements."""

    def __init__(self) -> None:
        self.numbers = itertools.count()
        self.known: dict[Any, Any] = {}
        self.calls: list[tuple[str, int, float]] = []  # (kernel, elements, seconds)

    def array(self, plain: np.ndarray) -> Noted:
        """An array whose kernels are noted here."""
        found = plain.view(Noted)
        found.notes, found.number = self, next(self.numbers)
        return found

    def run(self, kernel: Any, method: str, given: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Call a kernel, or give what it gave before."""
        key = kernel, method, tuple(getattr(a, "number", repr(a)) for a in given), repr(options)
        key = *key[:2], tuple(zip(map(type, given), key[2], strict=True)), key[3]
        if key not in self.known:
            plain = [_on_lines(a) if isinstance(a, np.ndarray) else a for a in given]
            call = getattr(kernel, method)
            out = call(*plain, **options)
            into = dict(options)
            if isinstance(out, np.ndarray):
                out = into["out"] = _on_lines(out)
            unseen = method == "__call__" and kernel.signature is None
            shuffle = _shuffler(plain) if unseen else lambda: None
            seconds = best(lambda: call(*plain, **into), before=shuffle)
            if unseen:  # what it has computed last is of shuffled numbers
                plain = [_on_lines(a) if isinstance(a, np.ndarray) else a for a in given]
                call(*plain, **into)
            elements = max(np.size(a) for a in (*plain, out))
            product = kernel is np.matmul and min(map(np.ndim, plain)) > 1
            if product:
                elements = np.size(out) * np.shape(plain[0])[-1]  # multiplied and added
            name = (
                "@" if product else kernel.__name__ + ("" if method == "__call__" else f" {method}")
            )
            self.calls.append((name, elements, seconds))
            self.known[key] = self.array(out) if isinstance(out, np.ndarray) else out
        return self.known[key]


def _on_lines(array: Any) -> Any:
    """A copy that begins with a line of the cache, as blocks do."""
    made = aligned(array.shape, array.dtype)
    made[...] = np.asarray(array)
    return made


def _shuffler(arrays: Sequence[Any]) -> Callable[[], Any]:
    """A function that puts the elements of arrays of one size in a new order."""
    found = [a for a in arrays if isinstance(a, np.ndarray)]
    size = max((a.size for a in found), default=0)
    full = [a for a in found if a.size == size]
    random = np.random.default_rng(0)

    def shuffle() -> None:
        order = random.permutation(size)
        for a in full:
            a[...] = a.reshape(-1)[order].reshape(a.shape)

    return shuffle


def noted(function: Callable[..., Any], arrays: dict[str, np.ndarray]) -> tuple[Notes, Any]:
    """(the kernels of a function of arrays, what it returns)."""
    notes = Notes()
    return notes, function(**{name: notes.array(array) for name, array in arrays.items()})


def moved(arrays: Iterable[np.ndarray], length: int, size: int) -> int:
    """The bytes of arrays, were those `size` long that are `length` long."""
    return sum(a.nbytes // length * size if len(a) == length else a.nbytes for a in arrays)


def copying(nbytes: int) -> float:
    """The seconds in which all threads copy so many bytes, read and written bytes counted."""
    count = threads()
    each = max(1, nbytes // 16 // count)
    pairs = [(np.ones(each), np.empty(each)) for _ in range(count)]
    if nbytes < 2_000_000 or count == 1:  # a thread takes longer to wake
        return best(lambda: [np.copyto(b, a) for a, b in pairs])
    with ThreadPoolExecutor(count) as pool:
        return best(lambda: list(pool.map(lambda pair: np.copyto(pair[1], pair[0]), pairs)))


def of_arrays(
    function: Callable[..., Iterable[np.ndarray]],
    inputs: Callable[[int], dict[str, np.ndarray]],
    size: int,
    main: str,
) -> Limit:
    """The limit of gradients by hand, for arrays whose first axis is `size` long.

    main: the argument that has this axis.
    """
    row = inputs(1)[main].size
    length = min(size, max(1, BLOCK // row))
    taken = inputs(length)
    block, grads = noted(function, taken)
    scale = size / length
    elements = row * length
    # What is as large as a row is the same for every block, and nothing beside the rest.
    calls = [(n, e, s) for n, e, s in block.calls if e * 8 >= elements]
    work: Counter[str] = Counter()
    for name, count, _ in calls:
        work[name] += count / elements
    found = Limit(work=dict(work))
    found.kernels = sum(s for n, _, s in calls if n != "@") * scale / threads()
    if "@" in work:
        whole, _ = noted(function, inputs(size))
        found.products = sum(s for n, _, s in whole.calls if n == "@")
    found.bytes = moved([*taken.values(), *grads], length, size)
    found.moving = copying(found.bytes)
    return found


def limit(group: str, name: str, size: int, dtype: str) -> Limit:
    """The limit of a row of arrays or of rows; of a tape NumPy's forward pass alone."""
    if group == "large":
        problem = PROBLEMS[name]
        return of_arrays(
            lambda **a: problem.by_hand(**a)[1].values(),
            lambda n: problem.inputs(n, dtype),
            size,
            "x",
        )
    if group == "native":  # at best the memory's
        name = native.problem_of(name)
        sizes = limit("rows" if name in rows.FORMULAS else "large", name, size, dtype).bytes
        return Limit(bytes=sizes, moving=copying(sizes))
    if group == "rows":
        name = name.removesuffix(rows.COMPILED)

        def inputs(n: int) -> dict[str, np.ndarray]:
            given = rows.inputs(name, n)
            return {f"a{k}": array for k, array in enumerate(given)}

        last = list(inputs(1))[-1]
        return of_arrays(lambda **a: rows.by_hand(name, *a.values()), inputs, size, last)
    reference = f"{group}.{name}"
    count = max(1, 3000 // size)
    seconds = best(lambda: [small.reference(reference, size) for _ in range(count)], 3) / count
    return Limit(kernels=seconds)


# -- what gradcli takes -----------------------------------------------------------------------------
def parts(call: Callable[[], Any]) -> dict[str, float]:
    """The seconds of a compiled function, by what they go to; "fresh": more of them where nothing is let go.

    loops: NumPy's, on blocks that stay in the cache. memory: what those wait for, where they do not.
    calls: from Python. threads: what two take beyond half of what one takes.
    """
    call()
    plans = [o for o in gc.get_objects() if isinstance(o, Executor)]
    regions = [step for plan in plans for step in plan.regions]
    if not regions:
        return {}
    call()  # a result of this one, too, is taken in turn
    whole = best(call)
    with patch.object(page_pool, "taken", lambda kept, kind: None):
        fresh = best(call) - whole
    for plan in plans:
        plan.threads = 1
    count = threads()
    alone = cached = best(call, clock=time.thread_time)
    if not any(step.kernel.folds for step in regions):  # each of whose blocks must come once
        for step in regions:
            step.blocks = [(0, b - a) for a, b in step.blocks]
        cached = min(best(call, clock=time.thread_time), alone)
    calls = sum(map(_calls, regions))
    found = {
        "loops": cached - calls,
        "memory": alone - cached,
        "calls": calls,
        "threads": whole * count - alone,
        "fresh": fresh * count,
    }
    return {name: max(seconds / count, 0.0) for name, seconds in found.items()}


def _calls(step: RegionStep) -> float:
    """The seconds of a region's calls of NumPy, had they nothing to do."""
    one = aligned((1,), np.dtype("d"))
    one[0] = 0
    each = best(lambda: [np.add(one, one, out=one) for _ in range(1000)]) / 1000
    lines = [line for line in step.kernel.source().splitlines() if line.startswith("  ")]
    return each * len(lines) * len(step.blocks)


# -- beside what is measured -----------------------------------------------------------------------
def main() -> None:
    """`python -m tests.benchmarks.limit GROUP NAME SIZE DTYPE`: a limit as JSON, from a fresh process."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    group, name, length, dtype = sys.argv[1:]
    size = int(length)
    found = limit(group, name, size, dtype)
    if group == "large":
        problem = PROBLEMS[name]
        found.parts = parts(libraries.gradcli(problem, problem.inputs(size, dtype)))
    elif name.endswith(rows.COMPILED):
        given = rows.inputs(name.removesuffix(rows.COMPILED), size)
        found.parts = parts(rows.make("gradcli", name, given))
    print(json.dumps(asdict(found)))


def measured(job: Job, rounds: int) -> tuple[Limit, float]:
    """(the limit of a row, the seconds that gradcli takes), one after the other."""
    command = (job.kind, job.name, str(job.size), job.dtype)
    line = [sys.executable, "-m", "tests.benchmarks.limit", *command]
    done = subprocess.run(
        line, capture_output=True, text=True, cwd=ROOT, env=environment(job.threads), check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    seconds, _, skipped = interleaved({"gradcli": sys.executable}, command, rounds, job.threads)
    if skipped:
        raise RuntimeError(skipped["gradcli"])
    return Limit(**json.loads(done.stdout)), statistics.median(seconds["gradcli"])


def rest_text(found: Limit) -> str:
    """What stands between gradcli and a limit, the most first."""
    rest = found.rest()
    fresh = rest.pop("fresh", 0.0)
    words = [f"{name} {number(x)}" for name, x in sorted(rest.items(), key=lambda p: -p[1])]
    return ", ".join(words) + (f" (a fresh result: {number(fresh)} more)" if fresh else "")


def show(wanted: Wanted, known: Sequence[Record]) -> None:
    """The limits of rows, gradcli's time as a multiple, and the peers' as it was recorded."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    for column in (
        "work",
        "size",
        "moves",
        "runs, an element of x",
        "limit",
        "by",
        "× limit",
        "the rest",
        "peers",
    ):
        table.add_column(column, no_wrap=column in ("work", "size", "limit"))
    recorded = {record.key: record.measures for record in known}
    for job in jobs():
        if job.group not in GROUPS or not wanted.has(job.group, job.name, job.size, job.dtype):
            continue
        found, own = measured(job, wanted.rounds)
        times = own / found.seconds
        record = Record(job.group, job.name, job.size, job.dtype)
        peers = (
            f"{peer} {number(times / m.value)}"
            for peer, m in recorded.get(record.key, {}).items()
            if peer in ("torch", "jax", "autograd")
        )
        table.add_row(
            f"{job.group} {job.name}",
            size_text(record),
            f"{found.bytes / 1e6:.3g} MB" if found.bytes else "",
            ", ".join(f"{name} {count:.3g}" for name, count in (found.work or {}).items()),
            f"{found.seconds * 1e3:.3g} ms",
            found.by if found.bytes else "NumPy's forward pass",
            f"[bold red]{number(times)}[/]" if times > NEAR else number(times),
            rest_text(found),
            ", ".join(peers),
        )
        print(f"{job.group} {job.name} {size_text(record)}: {number(times)}", file=sys.stderr)
    Console(width=None if sys.stdout.isatty() else 140).print(table)


if __name__ == "__main__":
    main()

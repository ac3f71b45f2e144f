"""Parts of a table on the workers of a cluster: Dask's distributed scheduler moves the work.

A task computes one part of a table (a row group or a file) as this process would. Other tasks combine sums,
in the same tree. A task gets all that it needs as arguments, so that another worker can repeat it if one
dies.
"""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import threading
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from gradcli.columns.streaming.passes import Told
from gradcli.columns.streaming.row_job import RowJob, Tally
from gradcli.columns.streaming.running_sums import Combine, NoPasses, Values, Work, totals
from gradcli.engine.core import random
from gradcli.engine.system import dtypes, interrupts
from gradcli.language.located_errors import LanguageError
from gradcli.tables import TableError
from gradcli.tables.parts import Part
from gradcli.tables.writing import sink

EXTRA = "pip install dask distributed pyarrow"
_PACKAGES = ("gradcli", "numpy", "pyarrow", "dask", "distributed")
_WAIT = 30  # seconds for a scheduler to answer
_WORKS = 8  # that the workers keep
_TASKS = 8  # for each core of the workers: none is idle for long, and Dask's own work is small
_NEIGHBOURS = 16  # sums that a task combines; a power of two: the tree is that of two by two
_KEPT = "distributed.nanny.pre-spawn-environ.MALLOC_{}_THRESHOLD_"
_SETTINGS = {
    "distributed.worker.profile.enabled": False,  # its results are never read
    # Dask has a worker give every array's memory back at once: the next one's pages are cleared again,
    # which takes as long as the computation.
    _KEPT.format("TRIM"): 1 << 28,
    _KEPT.format("MMAP"): 1 << 25,
}


@functools.cache
def versions() -> dict[str, str]:
    """The versions that must be the same on all machines."""
    from gradcli.version import __version__

    found = {"python": ".".join(platform.python_version_tuple()[:2])}
    for name in _PACKAGES:
        try:
            found[name] = __version__ if name == "gradcli" else version(name)
        except PackageNotFoundError:
            found[name] = "none"
    return found


def differences(ours: dict[str, str], theirs: dict[str, str], who: str) -> str | None:
    """The versions in which a worker differs, in words; None if there are none."""
    other = [
        f"{name} {theirs.get(name, 'none')} instead of {ours[name]}"
        for name in ours
        if theirs.get(name) != ours[name]
    ]
    return f"{who} has {', '.join(other)}" if other else None


class Failed:
    """An error of a part, returned and not raised, so that Dask does not repeat the task."""

    # Dask repeats a task whose worker died, and reports one that raised by its own traceback. A row that
    # cannot be computed fails the same way on every worker, so its error travels as a result.
    def __init__(self, error: Exception) -> None:
        self.error = error


def _refused(message: str, hint: str | None = None) -> LanguageError:
    return LanguageError(message, kind="cluster", hint=hint, usage=False)


# -- what a worker does -----------------------------------------------------------------------------
class _Turn:
    """Lets tasks of one default dtype run together, since that dtype is global to the process."""

    def __init__(self) -> None:
        self.free = threading.Condition()
        self.dtype, self.count = "", 0

    @contextlib.contextmanager
    def of(self, dtype: str) -> Iterator[None]:
        """Wait for the turn of this dtype, and hold it."""
        with self.free:
            # The default dtype of the process decides what a literal is. Works of float32 and float64 may
            # be at the same worker, so tasks of one dtype run together and those of another wait until
            # all are done.
            while self.count and self.dtype != dtype:
                self.free.wait()
            self.dtype, self.count = dtype, self.count + 1
            dtypes.set_default_dtype(getattr(dtypes, dtype))
        try:
            with np.errstate(all="ignore"):
                yield
        finally:
            with self.free:
                self.count -= 1
                self.free.notify_all()


_turn = _Turn()


def _load(work: Any) -> Any:
    """The work as a task of its own, whose result Dask sends to every worker that needs it."""
    return work


def _checked(ours: dict[str, str]) -> Failed | None:
    if (other := differences(ours, versions(), f"a worker on {platform.node()}")) is not None:
        return Failed(_refused(other, "the versions must be those of this machine"))
    return None


def _sums(
    parts: Sequence[Part], work: Work, ours: dict[str, str], number: int, values: Values
) -> Any:
    """The sums of adjacent parts."""
    if (failed := _checked(ours)) is not None:
        return failed
    try:
        with _turn.of(work.dtype):
            found = [work.run_part(number, values, part) for part in parts]
            return totals(found, work.combine(number))
    except (TableError, LanguageError, NoPasses, OSError, MemoryError) as error:
        return Failed(error)


def _combined(combine: Combine, sums: list[Any]) -> Any:
    """Combine the sums of adjacent parts; the first error if there is one."""
    failed = next((found for found in sums if isinstance(found, Failed)), None)
    return failed or totals(sums, combine)


def _rows_of_part(
    part: Part,
    path: str,
    work: Work,
    ours: dict[str, str],
    number: int,
    values: Values,
    written: dict[str, int],
) -> Any:
    """Write the rows of a part's outputs to a file."""
    from gradcli.columns.streaming.mapped_program import elements

    if (failed := _checked(ours)) is not None:
        return failed

    def batches() -> Iterator[Any]:
        for _, rows in work.batches(number, values, part):
            arrays = {n: rows[k] for n, k in written.items()}
            yield [pair for n, a in arrays.items() for pair in elements(n, a).items()]

    try:
        with _turn.of(work.dtype):
            _write(path, "parquet", batches())
    except (TableError, LanguageError, NoPasses, OSError, MemoryError) as error:
        return Failed(error)
    return Tally()


def _mapped(
    part: Part, path: str, job: RowJob, ours: dict[str, str], form: str, folders: Sequence[str]
) -> Any:
    """Map the rows of a part into a file; return the tally.

    folders: the columns whose values are in the names of the folders, not in the file.
    """
    import pickle

    if (failed := _checked(ours)) is not None:
        return failed
    # A job counts bad rows and narrows its columns, so each task needs one of its own.
    job = pickle.loads(pickle.dumps(job))  # tasks of one worker share what they are given
    try:
        with _turn.of(job.dtype):
            before = random.snapshot()
            made = (job.run(batch, form) for batch in part.batches(job.narrow()))
            _write(path, form, ([c for c in columns if c[0] not in folders] for columns in made))
            # Row 1000 gets the 1000th draw when one process maps the table. A worker that begins there
            # cannot know how many draws were made before, so the result would depend on the number of
            # workers.
            if random.rewind(before):
                raise _refused(
                    "the program draws random numbers, row after row: workers cannot share them",
                    "leave out --workers and --cluster",
                )
    except (TableError, LanguageError, OSError, MemoryError) as error:
        return Failed(error)
    return job.tally()


def _write(path: str, form: str, batches: Iterator[Any]) -> None:
    """Write a file of Arrow's under a temporary name and rename it when it is complete."""
    # Two workers may write the same part, if Dask takes one for dead that is only slow. Each writes its
    # own file, and the last rename wins; both have the same bytes.
    temporary = f"{path}.{os.getpid()}.{threading.get_ident()}"
    try:
        with open(temporary, "wb") as stream:
            out = sink(form, stream, lambda array: [], True)
            for columns in batches:
                out.write(columns)
            out.close()
        os.replace(temporary, path)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


# -- the cluster ------------------------------------------------------------------------------------
def _no_scheduler(address: Any, error: object) -> LanguageError:
    words = " ".join(str(error).split())[:200]
    return _refused(
        f"no scheduler answers at {address}: {words}",
        "`dask scheduler` starts one and prints its address, as in --cluster tcp://host:8786",
    )


def _reached(address: str) -> None:
    """Raise LanguageError if nobody listens at an address, where Dask would wait for long."""
    import socket

    from distributed.comm.addressing import get_address_host_port, parse_address

    try:
        # Dask's client repeats a refused connection until its timeout. A plain socket tells at once.
        if "://" not in address:
            raise ValueError("an address begins with tcp:// or the like")
        if parse_address(address)[0] not in ("tcp", "tls"):
            return
        socket.create_connection(get_address_host_port(address), _WAIT).close()
    except (OSError, ValueError) as error:
        raise _no_scheduler(address, getattr(error, "strerror", None) or error) from None


@contextlib.contextmanager
def _ending_with_this_process() -> Iterator[None]:
    """Processes started inside ignore Ctrl-C, end with this one, and print nothing about that.

    A process that is started inherits the signals that its parent's thread has blocked.
    multiprocessing's resource tracker clears semaphores that were left, without its warning.
    """
    import signal
    from multiprocessing import resource_tracker

    # A blocked signal stays blocked in the processes that are started meanwhile. So a Ctrl-C reaches this
    # process alone, which then closes the workers. Otherwise every worker would print its own traceback.
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # multiprocessing's resource tracker warns of semaphores that were left when processes are killed. It
    # is a process of its own that reads its filters when it starts, so it is started here, with a filter.
    before = os.environ.get("PYTHONWARNINGS")
    quiet = "ignore::UserWarning:multiprocessing.resource_tracker"
    os.environ["PYTHONWARNINGS"] = quiet if not before else f"{before},{quiet}"
    try:
        resource_tracker.ensure_running()
    finally:
        del os.environ["PYTHONWARNINGS"]
        if before is not None:
            os.environ["PYTHONWARNINGS"] = before
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


class Cluster:
    """A runner: the workers of this machine (`workers`), or those of a scheduler (`address`).

    Raises LanguageError where Dask is not installed, the scheduler does not answer, or versions differ.
    """

    def __init__(self, workers: int | None = None, address: str | None = None) -> None:
        try:
            import distributed
        except ImportError:
            raise _refused("--workers and --cluster need dask and distributed", EXTRA) from None
        import logging

        for name in list(logging.root.manager.loggerDict):  # their failures become our own messages
            if name.startswith(("distributed", "tornado", "asyncio")):
                logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        self.versions = versions()
        self.distributed: Any = distributed
        self.is_remote = address is not None
        self.cluster: Any = None
        self.folder: str | None = None
        self.works: list[tuple[Any, Any]] = []  # that the workers have
        target: Any = address
        if address is None:
            target = self._local(workers or 1)
        else:
            _reached(address)
        try:
            self.client: Any = self.distributed.Client(
                target, timeout=_WAIT, set_as_default=False, direct_to_workers=False
            )
        except (OSError, TimeoutError, ValueError, ImportError) as error:
            self._close_local()
            raise _no_scheduler(address, error) from None
        try:
            self._check(address)
        except BaseException:
            self.close()
            raise

    def _local(self, workers: int) -> Any:
        import logging
        import tempfile

        import dask

        with interrupts.held():
            self.folder = tempfile.mkdtemp(prefix="gradcli-workers-")
            interrupts.begin(self.folder)
        dask.config.set({"temporary-directory": self.folder, **_SETTINGS})
        try:
            with _ending_with_this_process():
                self.cluster = self.distributed.LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    processes=True,
                    dashboard_address=":0",
                    silence_logs=logging.CRITICAL,
                    memory_limit=0,
                )
        except BaseException as error:
            self._close_local()
            if not isinstance(error, RuntimeError | OSError | TimeoutError):
                raise
            raise _refused(
                f"a worker did not start: {' '.join(str(error).split())[:200]}",
                "it was killed, or its memory is too small: choose fewer --workers",
            ) from None
        return self.cluster

    def _check(self, address: str | None) -> None:
        try:
            self.client.wait_for_workers(1, timeout=_WAIT)
            found = self.client.run(versions)
        except TimeoutError:
            raise _refused(f"the scheduler at {address} has no workers") from None
        except Exception as error:  # whatever a worker without gradcli says
            words = " ".join(str(error).split())[:200]
            raise _refused(
                f"a worker does not know this gradcli: {words}",
                f"its environment needs gradcli {self.versions['gradcli']} and its dependencies",
            ) from None
        self.cores = sum(self.client.nthreads().values()) or 1
        for who, theirs in sorted(found.items()):
            if (other := differences(self.versions, theirs, f"worker {who}")) is not None:
                raise _refused(other, "the versions must be those of this machine")

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Disconnect from the workers; those of this machine end."""
        with contextlib.suppress(Exception):  # a scheduler that is gone already
            self.client.close()
        self._close_local()

    def _close_local(self) -> None:
        import shutil

        if self.cluster is not None:
            with contextlib.suppress(Exception):  # workers that were killed
                self.cluster.close()
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            interrupts.unfinished.discard(self.folder)

    # -- tasks -------------------------------------------------------------------------------------
    def sums(self, work: Work, number: int, values: Values, parts: list[Part], told: Told) -> Any:
        """The sums of all parts in a pass: a tree of tasks, with the bits of `Tree`."""
        size = 1
        # A power of two of parts makes a task, and a power of two of sums is combined by one: these are
        # subtrees of the tree that adds two by two, so the bits are the same for any number of workers.
        while len(parts) >= 2 * size * _TASKS * self.cores:
            size *= 2
        placed = [self._placed(part) for part in parts]
        groups = [placed[i : i + size] for i in range(0, len(placed), size)]
        rows = [sum(part.rows or 0 for part in group) for group in groups]
        given = {"work": work, "number": number, "values": dict(values)}
        level = self._tasks(groups, rows, told, _sums, **given)
        combine = work.combine(number)
        while len(level) > 1:
            near = [level[i : i + _NEIGHBOURS] for i in range(0, len(level), _NEIGHBOURS)]
            level = [self._submit(_combined, combine, some) for some in near]
        found = self._result(level[0]) if level else None
        if isinstance(found, Failed):
            raise found.error
        return found

    def rows(
        self,
        work: Work,
        number: int,
        values: Values,
        written: dict[str, int],
        parts: list[Part],
        folder: str,
        told: Told,
    ) -> Tally:
        """Write the rows of the outputs of all parts into a folder."""
        given = {"work": work, "number": number, "values": dict(values), "written": written}
        return self._into(folder, "parquet", parts, told, _rows_of_part, (), **given)

    def map(self, job: RowJob, form: str, parts: list[Part], folder: str, told: Told) -> Tally:
        """Map the rows of all parts into a folder; return the tallies in order.

        The folder is partitioned as the table is, by those of its keys that are kept.
        """
        kept = {job.names[i] for i in job.keep}
        keys = [key for key in (parts[0].keys if parts else ()) if key in kept]
        return self._into(
            folder, form, parts, told, _mapped, keys, job=job, form=form, folders=keys
        )

    def _into(
        self,
        folder: str,
        ending: str,
        parts: Sequence[Part],
        told: Told,
        function: Callable[..., Any],
        keys: Sequence[str],
        **given: Any,
    ) -> Tally:
        width = max(5, len(str(len(parts))))
        paths = []
        for number, part in enumerate(parts):
            place = os.path.join(folder, *part.folders(keys))
            os.makedirs(place, exist_ok=True)
            paths.append(os.path.join(place, f"part-{number:0{width}}.{ending}"))
        placed, rows = [self._placed(part) for part in parts], [part.rows or 0 for part in parts]
        futures = self._tasks(placed, rows, told, function, paths, **given)
        counted = Tally()
        for future in futures:
            found = self._result(future)
            if isinstance(found, Failed):
                self.client.cancel(futures)
                raise found.error
            counted.add(found)
        there = {os.path.join(place, name) for place, _, names in os.walk(folder) for name in names}
        # Only complete parts have their final names, so whatever else is there is left from a dead
        # worker.
        for path in there - set(paths):  # of a worker that died while it wrote
            os.unlink(path)
        return counted

    def _submit(self, function: Callable[..., Any], *given: Any) -> Any:
        return self.client.submit(function, *given, pure=False)

    def _tasks(
        self,
        items: Sequence[Any],
        rows: Sequence[int],
        told: Told,
        function: Callable[..., Any],
        *beside: list[str],
        **given: Any,
    ) -> list[Any]:
        """A task an item: function(item, what is beside it, **given), and a worker gets `given` once.

        rows: of each item, to be told when it is done.
        """
        shared = {
            # Given as an argument, the work would be pickled into each of thousands of tasks. As a future
            # it is sent once to each worker. `pure=False`: Dask must not take two works for one by their
            # hash.
            name: self._sent(value) if name == "work" else self._submit(_load, value)
            for name, value in given.items()
        }
        futures: list[Any] = self.client.map(
            function, items, *beside, ours=self.versions, pure=False, **shared
        )
        for future, count in zip(futures, rows, strict=True):
            future.add_done_callback(functools.partial(_tell, told, count))
        return futures

    def _sent(self, work: Any) -> Any:
        """The work at the workers, where it is planned once for all of its passes."""
        known = next((future for sent, future in self.works if sent is work), None)
        if known is None:
            known = self._submit(_load, work)
            self.works = [*self.works[-_WORKS:], (work, known)]
        return known

    def _result(self, future: Any) -> Any:
        """What a task gave, once it is there; LanguageError where nobody is left to do it."""
        from concurrent.futures import CancelledError

        again = "when it runs again, repeat the command"
        # `result()` without a timeout would wait for ever if the workers are gone, because the scheduler
        # waits for new ones. So the wait is in pieces, and after each the scheduler is asked whether
        # somebody is left.
        while True:
            try:
                return future.result(timeout=_WAIT)
            except TimeoutError:
                if future.done():
                    raise
            except (CancelledError, OSError):
                raise _refused("the connection to the scheduler is lost", again) from None
            except self.distributed.KilledWorker:
                raise _refused(
                    "every worker that was given a part of the table died",
                    "most often its memory is too small: write smaller row groups",
                ) from None
            try:  # it takes long: are there workers at all?
                self.client.wait_for_workers(1, timeout=_WAIT)
            except TimeoutError:
                raise _refused("no worker is left", again) from None
            except (OSError, ValueError, RuntimeError):
                raise _refused("the connection to the scheduler is lost", again) from None

    def _placed(self, part: Part) -> Part:
        """The part with an absolute path."""
        if self.is_remote:
            part.path = os.path.abspath(os.path.expanduser(part.path))
        return part


def _tell(told: Told, rows: int, _: Any) -> None:
    told(rows)


__all__ = ["Cluster", "Failed", "differences", "versions"]

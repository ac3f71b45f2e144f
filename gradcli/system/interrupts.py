"""Ctrl-C ends the process that is gradcli's own: exit code 130, and nothing else said.

From the first line of ours on, and not by an exception: one that is raised while modules are imported or
objects are taken apart is lost, or printed. What has been printed is written out first, a file that is
being written is finished, and a computation that gives Python no turn (a product of large matrices) is
ended by a thread that waits for the signal. Where programs may answer it themselves, it is Python's
KeyboardInterrupt: in a session, and while there is code of `--load`. Nothing is imported here that the
interpreter has not loaded by itself, so that there is no long while before the first line.

While a file is unfinished, SIGTERM and SIGHUP end the process by the same way: exit code 143 or 129, and the
file is removed.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # signal's enumerations take a millisecond
import _thread
import os
import sys
import time

CODE = 130
_TERMINATES = (
    _signal.SIGTERM,
    getattr(_signal, "SIGHUP", _signal.SIGTERM),
)  # Windows has no SIGHUP
_PATIENCE = 0.5  # seconds that Python has for its turn
_ours = _held = _asked = _watched = False  # _watched: whether the thread waits
_terminated = 0  # the signal that asked for the end
_terminates: set[int] = set()  # the signals that are ours while a file is unfinished
unfinished: set[str] = set()  # files that are removed when the signal ends the process
drawing = ""  # what puts the terminal of standard error right, while something is drawn on it


def at_once() -> None:
    """From now on the signal ends the process; unless it is ignored, as in the background of a shell."""
    global _ours
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _end)
        _ours = True


def watch() -> None:
    """End the process also where Python has no turn to do so."""
    global _watched
    if _watched or not (_ours or _terminates):
        return
    _watched = True
    read, write = os.pipe()
    os.set_blocking(write, False)
    _signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    _thread.start_new_thread(_wait, (read,))


def as_python() -> None:
    """Leave the signal to who catches KeyboardInterrupt."""
    global _ours
    if _ours:
        _ours = False
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)
        _signal.set_wakeup_fd(-1)


def begin(path: str) -> None:
    """A file is being written that no signal may leave there; `unfinished.discard` says that it is done."""
    unfinished.add(path)
    for number in _TERMINATES:
        if _signal.getsignal(number) != _signal.SIG_DFL:  # ours already, or ignored, as by nohup
            continue
        try:
            _signal.signal(number, _terminate)
        except ValueError:  # not the main thread, which alone may say so
            return
        _terminates.add(number)
    watch()


class held:
    """`with held():` what is begun here is finished before the signal ends the process."""

    def __enter__(self) -> None:
        global _held
        _held = True

    def __exit__(self, *error: object) -> None:
        global _held
        _held = False
        if _terminated:
            _terminate(_terminated)
        if _asked:
            _end()


def _end(*_: object) -> None:
    global _asked
    again, _asked = _asked, True
    if _held and _ours:
        return
    if not again:
        try:
            if sys.stdout is not None:
                sys.stdout.flush()
            if sys.stderr is not None and sys.stderr.isatty():
                sys.stderr.write("\n")  # ends the terminal's line that shows ^C
                sys.stderr.flush()
        except Exception:  # a stream that was closed, or was being written to
            pass
    _leave()


def _terminate(number: int, *_: object) -> None:
    global _terminated
    _terminated = number
    if not _held:
        _leave(128 + number)


def _leave(code: int = CODE) -> None:
    if drawing:
        try:  # noqa: SIM105 (contextlib would have to be imported)
            os.write(2, drawing.encode())
        except OSError:  # the terminal is gone
            pass
    for path in list(unfinished):
        _remove(path)
    os._exit(code)


def _remove(path: str) -> None:
    """Remove a file, or a folder with all that it holds."""
    try:
        if not os.path.isdir(path):
            os.unlink(path)
            return
        for name in os.listdir(path):
            _remove(os.path.join(path, name))
        os.rmdir(path)
    except OSError:
        pass


def _wait(read: int) -> None:
    while True:
        number = os.read(read, 1)[0]
        if number == _signal.SIGINT or number in _TERMINATES:
            time.sleep(_PATIENCE)
            while _held:
                time.sleep(_PATIENCE)
            if number in _terminates:
                _leave(128 + number)
            if number == _signal.SIGINT and _ours:
                _leave()

"""Ctrl-C ends a process of gradcli with exit code 130 and no message.

A signal handler does so from the first line of ours on, not an exception: one that is raised during an
import or in a destructor is lost or printed. Output is flushed first, and a file that is being written is
finished. A thread that waits for the signal ends computations that do not return to Python for long (a
product of large matrices). In a session, and if `--load` runs a user's code, the signal raises Python's
KeyboardInterrupt instead. This module imports only what the interpreter has loaded, to be ready early.

While a file is unfinished, SIGTERM and SIGHUP end the process in the same way, with exit code 143 or 129,
and remove the file.
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
_PATIENCE = 0.5  # seconds that Python gets to handle the signal
_ours = _held = _asked = _watched = False  # _watched: the thread is waiting
_terminated = 0  # the signal that ends the process
_terminates: set[int] = set()  # the signals handled here while a file is unfinished
unfinished: set[str] = set()  # files to remove if a signal ends the process
drawing = ""  # the escape sequence that resets the terminal, while something is drawn on stderr


def at_once() -> None:
    """From now on the signal ends the process, unless it is ignored, as in a shell's background job."""
    global _ours
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _end)
        _ours = True


def watch() -> None:
    """Start the thread that ends the process if Python does not get to handle the signal."""
    global _watched
    if _watched or not (_ours or _terminates):
        return
    _watched = True
    read, write = os.pipe()
    os.set_blocking(write, False)
    _signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    _thread.start_new_thread(_wait, (read,))


def forked() -> None:
    """In a child, which has the handlers of its parent, but not its thread: start one of its own."""
    global _watched
    if _watched:
        _watched = False
        watch()


def as_python() -> None:
    """From now on the signal raises KeyboardInterrupt."""
    global _ours
    if _ours:
        _ours = False
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)
        _signal.set_wakeup_fd(-1)


def begin(path: str) -> None:
    """Note that a file is being written, to be removed on a signal; end with `unfinished.discard`."""
    unfinished.add(path)
    for number in _TERMINATES:
        if (
            _signal.getsignal(number) != _signal.SIG_DFL
        ):  # handled here already, or ignored, as by nohup
            continue
        try:
            _signal.signal(number, _terminate)
        except ValueError:  # only the main thread may set handlers
            return
        _terminates.add(number)
    watch()


class held:
    """A context whose body is finished before the signal ends the process."""

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
                sys.stderr.write("\n")  # after the ^C that the terminal shows
                sys.stderr.flush()
        except Exception:  # the stream is closed or in use
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
    """Remove a file, or a directory with its contents."""
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

"""Ctrl-C ends the process that is gradcli's own: exit code 130, and nothing else said.

From the first line of ours on, and not by an exception: one that is raised while modules are imported or
objects are taken apart is lost, or printed. What has been printed is written out first, a file that is
being written is finished, and a computation that gives Python no turn (a product of large matrices) is
ended by a thread that waits for the signal. Where programs may answer it themselves, it is Python's
KeyboardInterrupt: in a session, and while there is code of `--load`. Nothing is imported here that the
interpreter has not loaded by itself, so that there is no long while before the first line.

While a file is unfinished, SIGTERM ends the process by the same way: exit code 143, and the file is removed.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # signal's enumerations take a millisecond
import _thread
import os
import sys
import time

CODE = 130
TERMINATED = 143
_ENDING = (bytes([_signal.SIGINT]), bytes([_signal.SIGTERM]))
_PATIENCE = 0.5  # seconds that Python has for its turn
_ours = _held = _asked = _terminated = False
_watched = _terminates = False  # whether the thread waits; whether SIGTERM is ours
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
    global _terminates
    unfinished.add(path)
    if _terminates or _signal.getsignal(_signal.SIGTERM) != _signal.SIG_DFL:
        return
    try:
        _signal.signal(_signal.SIGTERM, _terminate)
    except ValueError:  # not the main thread, which alone may say so
        return
    _terminates = True
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
            _terminate()
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


def _terminate(*_: object) -> None:
    global _terminated
    _terminated = True
    if not _held:
        _leave(TERMINATED)


def _leave(code: int = CODE) -> None:
    if drawing:
        os.write(2, drawing.encode())
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
        number = os.read(read, 1)[:1]
        if number in _ENDING:
            time.sleep(_PATIENCE)
            while _held:
                time.sleep(_PATIENCE)
            if number == _ENDING[1] and _terminates:
                _leave(TERMINATED)
            if number == _ENDING[0] and _ours:
                _leave()

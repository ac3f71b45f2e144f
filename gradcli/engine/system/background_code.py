"""C that takes over from NumPy in the middle of a program, once it is worth a compiler's time.

A compiler runs for a tenth of a second. It is asked on a thread of its own, when NumPy has been busy with the
same work for a fifth of that; until it is done, and where there is none, NumPy goes on. So the C has to give
NumPy's bits: nothing may say when it took over.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

from gradcli.engine.system import c_compiler, direct_calls

ENOUGH = 10_000_000  # elements that NumPy works on before a compiler is asked
A_CALL = 20_000  # elements that NumPy works on in the time that a step in Python takes
BARE = 0x501  # flags of NumPy: by row, at an address that suits the dtype, writeable
possible = True  # until a compiler was asked, and failed


def begin(work: Callable[[], None]) -> None:
    """Do some work beside all else; it ends with the process, whether it is done or not."""
    threading.Thread(target=work, daemon=True).start()


class BackgroundCode:
    """A library of C functions `long name(object *arrays, object *numbers)`, of two tuples.

    source: makes its C, to follow `direct_calls.TABLE`. ready: what is done with the library before its first
    call; it returns whether the library can be used.
    """

    def __init__(
        self, source: Callable[[], str], *names: str, ready: Callable[[Any], bool] | None = None
    ) -> None:
        self._source, self._names, self._ready = source, names, ready
        self._functions: tuple[Callable[..., int], ...] | None = None
        self._spent, self._is_asked = 0, False

    def functions(self, elements: int) -> tuple[Callable[..., int], ...] | None:
        """The functions by the order of their names, if they are there.

        elements: how many NumPy will work on if they are not.
        """
        if self._functions is None and possible and not self._is_asked:
            self._spent += elements
            if self._spent > ENOUGH:
                self._is_asked = True
                begin(self.make)
        return self._functions

    def make(self) -> None:
        """Compile the library."""
        global possible
        try:
            possible = possible and direct_calls.readable()
            if not possible:
                return
            library = direct_calls.told(direct_calls.TABLE + self._source())
        except (c_compiler.NoCompiler, OSError):
            possible = False
            return
        if self._ready is not None and not self._ready(library):
            return
        found = [getattr(library, name) for name in self._names]
        for function in found:
            function.argtypes, function.restype = [ctypes.py_object] * 2, ctypes.c_long
        self._functions = tuple(found)


__all__ = ["A_CALL", "BARE", "BackgroundCode"]

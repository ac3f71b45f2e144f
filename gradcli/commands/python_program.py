"""`gradcli PROGRAM.py ARGS`: a Python program runs as Python runs it, with gradcli in PyTorch's place."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from gradcli.commands.command_errors import options_of_graph, quoted
from gradcli.commands.output import note


def run(path: str, arguments: list[str]) -> int:
    """Run a program as `__main__`, where `import torch` imports gradcli; its exit code.

    What it prints goes to standard output. An error that ends it is told as Python tells it.
    """
    from gradcli.commands.own_program import stand_in
    from gradcli.commands.torch_program import as_main, read_program, run_program

    full, source = read_program(path, "")
    _note_options(path, arguments, source)
    end = stand_in()
    try:
        with as_main(full, arguments, path) as module, _nan_noted(path):
            _, code = run_program(source, full, path, module, nullcontext())
            for thread in threading.enumerate():  # as Python waits for them
                if thread is not threading.current_thread() and not thread.daemon:
                    thread.join()
    finally:
        end()
    return code


def run_module(name: str, arguments: list[str]) -> int:
    """As `python -m NAME ARGS`, where `import torch` imports gradcli: run a module; its exit code.

    Modules of the current folder come first. Raises LanguageError where there is no such module.
    """
    import os
    from importlib.util import find_spec

    from gradcli.commands.command_errors import usage
    from gradcli.commands.own_program import stand_in
    from gradcli.commands.torch_program import as_main, run_program

    end = stand_in()
    try:
        with as_main(os.path.join(os.getcwd(), name), arguments, name) as module:
            try:
                known = find_spec(name) is not None
            except (ImportError, ValueError):
                known = False
            if not known:
                raise usage(f"-m: no module named {name!r}", hint="gradcli -m pytest runs pytest")
            text = (
                f"import runpy\nrunpy.run_module({name!r}, run_name='__main__', alter_sys=True)\n"
            )
            _, code = run_program(text.encode(), name, name, module, nullcontext())
    finally:
        end()
    return code


def _note_options(path: str, arguments: list[str], source: bytes) -> None:
    """Say that an option of `graph --torch` went to the program, unless the program speaks of it."""
    for word in arguments:
        if word in options_of_graph() and word.encode() not in source:
            command = f"gradcli graph --torch {quoted(path)} {word}"
            note(f"{word} is given to the program; {command} looks into the program")


@contextmanager
def _nan_noted(path: str) -> Iterator[None]:
    """Say at the end, once, that a backward pass began at a loss that is NaN, and what finds the cause.

    Only the loss is looked at, a number: the gradients of a large model would take time at every step.
    """
    from gradcli.engine.core.tensor import Tensor

    plain: Any = Tensor.backward
    count, first = 0, 0

    def backward(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal count, first
        count += 1
        if not first and self.array.ndim == 0 and self.array != self.array:
            first = count
        return plain(self, *args, **kwargs)

    kept: Any = Tensor
    kept.backward = backward
    try:
        yield
    finally:
        kept.backward = plain
        if first:
            command = f"gradcli graph --torch {quoted(path)} --detect-anomaly"
            note(f"backward pass {first:,} began at a loss that is nan; {command} finds the cause")

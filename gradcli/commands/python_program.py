"""`gradcli PROGRAM.py ARGS`: a Python program runs as Python runs it, with gradcli in PyTorch's place."""

from __future__ import annotations

import threading
from contextlib import nullcontext


def run(path: str, arguments: list[str]) -> int:
    """Run a program as `__main__`, where `import torch` imports gradcli; its exit code.

    What it prints goes to standard output. An error that ends it is told as Python tells it.
    """
    from gradcli.commands.own_program import stand_in
    from gradcli.commands.torch_program import as_main, read_program, run_program

    full, source = read_program(path, "")
    end = stand_in()
    try:
        with as_main(full, arguments, path) as module:
            _, code = run_program(source, full, path, module, nullcontext())
            for thread in threading.enumerate():  # as Python waits for them
                if thread is not threading.current_thread() and not thread.daemon:
                    thread.join()
    finally:
        end()
    return code

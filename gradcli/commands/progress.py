"""How far a long command has come: a bar on a terminal, and nothing in a pipe."""

from __future__ import annotations

import sys
from typing import Any


class Bar:
    """A bar on standard error, if somebody looks and it takes long.

    total: of what is done, or of bytes, if known. unit: of what is done; "" where that is not counted.
    """

    AFTER = 2.0  # seconds

    def __init__(self, total: int | None, unit: str = "rows") -> None:
        from gradcli.commands.terminal import is_terminal

        self.total, self.unit, self.count, self.done = total, unit, 0, 0
        self.shown = sys.stderr is not None and is_terminal(sys.stderr)
        self.bar: Any = None

    def __enter__(self) -> Bar:
        if self.shown:
            from threading import Timer
            from time import monotonic

            self.begun = monotonic()
            self.timer = Timer(self.AFTER, self._start)
            self.timer.daemon = True
            self.timer.start()
        return self

    def advance(self, count: int, done: int | None = None) -> None:
        """So many more are done; done: how much of the total that makes, if not so many."""
        self.count += count
        self.done = self.count if done is None else done
        if self.bar is not None:
            self._show()

    def _show(self) -> None:
        from time import monotonic

        rate = self.count / max(monotonic() - self.begun, 1e-9)
        said = f"{self.count:,} {self.unit} {rate:,.{0 if rate > 9 else 1}f}/s" if self.unit else ""
        self.bar.update(self.task, completed=self.done, said=said)

    def _start(self) -> None:
        from rich import progress
        from rich.console import Console

        from gradcli.engine.system import interrupts

        columns: list[Any] = [progress.SpinnerColumn(), progress.TimeElapsedColumn()]
        if self.total:
            columns = [progress.BarColumn(), progress.TimeRemainingColumn()]
        said = progress.TextColumn("{task.fields[said]}")
        bar = progress.Progress(said, *columns, console=Console(stderr=True), transient=True)
        self.task = bar.add_task("", total=self.total, said="")
        bar.tasks[0].start_time = self.begun
        interrupts.drawing = "\x1b[?25h"  # the cursor, which rich hides
        bar.start()
        self.bar = bar
        self._show()

    def __exit__(self, *error: object) -> None:
        if not self.shown:
            return
        self.timer.cancel()
        self.timer.join()
        if self.bar is not None:
            from gradcli.engine.system import interrupts

            self.bar.stop()
            interrupts.drawing = ""

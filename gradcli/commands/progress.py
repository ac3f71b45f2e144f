"""How far a long command has come: a bar on a terminal, and nothing in a pipe."""

from __future__ import annotations

import sys
from typing import Any


class RowsBar:
    """A bar on standard error, if somebody looks and it takes long. total: of rows or bytes, if known."""

    AFTER = 2.0  # seconds

    def __init__(self, total: int | None) -> None:
        from gradcli.commands.terminal import is_terminal

        self.total, self.rows = total, 0
        self.shown = sys.stderr is not None and is_terminal(sys.stderr)
        self.bar: Any = None

    def __enter__(self) -> RowsBar:
        from time import monotonic

        self.begun = monotonic()
        return self

    def advance(self, rows: int, done: int | None = None) -> None:
        """So many rows more are done; done: how much of the total that makes, if not so many rows."""
        self.rows += rows
        if not self.shown:
            return
        from time import monotonic

        if self.bar is None:
            if monotonic() - self.begun < self.AFTER:
                return
            self._start()
        rate = self.rows / max(monotonic() - self.begun, 1e-9)
        shown = {"rows": f"{self.rows:,} rows", "rate": f"{rate:,.0f}/s"}
        self.bar.update(self.task, completed=self.rows if done is None else done, **shown)

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        from gradcli.system import interrupts

        columns = [TextColumn("{task.fields[rows]}"), TextColumn("{task.fields[rate]}")]
        if self.total:
            columns += [BarColumn(), TimeRemainingColumn()]  # type: ignore[list-item]
        self.bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self.task = self.bar.add_task("", total=self.total, rows="", rate="")
        interrupts.drawing = "\x1b[?25h"  # the cursor, which rich hides
        self.bar.start()

    def __exit__(self, *error: object) -> None:
        if self.bar is not None:
            from gradcli.system import interrupts

            self.bar.stop()
            interrupts.drawing = ""

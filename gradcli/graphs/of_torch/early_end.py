"""Ending a program early: after so many backward passes, or once a line has made a tensor."""

from __future__ import annotations

import os
from typing import Any

from gradcli.graphs.of_torch.torch_tensors import is_torch_tensor, node_of


class Stopped(BaseException):
    """The program has run as far as was asked for. No Exception: programs catch those."""


class End:
    """When a program is stopped.

    steps: after so many backward passes, before the next operation that records a graph; 0 for never. at:
    a file and a line of it, once it has made a tensor with a graph.
    """

    def __init__(self, steps: int = 0, at: tuple[str, int] | None = None) -> None:
        self.steps, self.at = steps, at
        self.passes = 0
        self.tensor: Any = None  # the last that the line has made

    def passing(self) -> None:
        """A backward pass is about to begin."""
        if self.steps and self.passes >= self.steps:
            raise Stopped

    @property
    def is_last(self) -> bool:
        """Tell whether the pass that runs is the last one."""
        return self.steps > 0 and self.passes + 1 >= self.steps

    def heard(self, out: Any, where: tuple[str | None, int]) -> None:
        """An operation has run. Raises Stopped where that is one too many."""
        made = is_torch_tensor(out) and node_of(out) is not None
        if self.at is not None:
            if self._is_there(where):
                self.tensor = out if made else self.tensor
            elif self.tensor is not None:
                raise Stopped
        elif made:
            self.passing()

    def _is_there(self, where: tuple[str | None, int]) -> bool:
        file, line = where
        if self.at is None or file is None or line != self.at[1]:
            return False
        wanted = os.path.normpath(self.at[0])
        return os.path.normpath(file) == os.path.abspath(wanted) or file.endswith(os.sep + wanted)

"""The last backward pass of a PyTorch program, run once more at the end to see what reaches every node.

Looking at every node of every pass takes a third of a program's time, and what is shown is the last pass.
By then an optimizer has written into the weights, which the graph needs as they were: so the leaves are
copied when a pass ends, and put back, with the version that the graph expects, while the pass runs again.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any

from gradcli.graphs.of_torch.torch_pass import TorchRecorder, once_more
from gradcli.graphs.of_torch.torch_tensors import dense_parts


class LastPass:
    """A backward pass, from its begin on: `begins`, `ended`, and at the end of the program `again`."""

    def __init__(self) -> None:
        self._given: tuple[Any, Any, Any] | None = None  # tensors, their cotangents, the inputs
        self._nodes: list[Any] = []
        self._copies: dict[int, tuple[Any, Any]] = {}  # by id of a leaf: the leaf, and its copy
        self._versions: dict[int, int] = {}
        self.root: Any = None  # what it began at, and the program's names of that
        self.names: tuple[str, ...] = ()
        self.step = 0  # the number of the pass, if it is finite and only such are wanted
        self.is_former = False  # whether a later pass was not finite

    def begins(self) -> None:
        """Another pass begins: the graph of the former one is let go."""
        self._given, self._nodes = None, []

    def ended(self, tensors: Any, seeds: Any, inputs: Any, nodes: list[Any]) -> None:
        """A pass has ended, over these nodes. seeds: its cotangents; inputs: as `autograd.grad` has them."""
        former, self._copies = self._copies, {}
        self._versions.clear()
        with sys.modules["torch"].no_grad():
            for leaf in (node.variable for node in nodes if hasattr(node, "variable")):
                if not any(part is leaf for part in dense_parts(leaf)):
                    continue
                copy = former.get(id(leaf), (None, None))[1]
                if copy is None or copy.shape != leaf.shape or copy.dtype != leaf.dtype:
                    copy = leaf.detach().clone()
                else:
                    copy.copy_(leaf)
                self._copies[id(leaf)] = leaf, copy
                self._versions[id(leaf)] = leaf._version
        self._given, self._nodes = (
            (tensors, seeds, inputs),
            nodes,
        )  # last, should this be interrupted

    def again(self, recorder: Any, inner: Iterable[Any]) -> None:
        """Run the pass, heard by what `recorder` makes of the roots; no `.grad` changes. Then forget it.

        inner: leaves that only a checkpoint's recomputation reaches. Raises RuntimeError where something
        else was written in place since.
        """
        try:
            self._again(recorder, inner)
        finally:  # a leaf that this alone holds is nobody's variable
            self.begins()
            self._copies.clear()

    def _again(self, recorder: Any, inner: Iterable[Any]) -> None:
        if self._given is None:
            return
        (tensors, seeds, inputs), nodes = self._given, self._nodes
        made: TorchRecorder = recorder(tensors)
        with self._as_it_was(), _in_silence(), made.listening():
            if inputs is not None:
                autograd = sys.modules["torch"].autograd
                autograd.grad(tensors, inputs, seeds, retain_graph=True, allow_unused=True)
                return
            leaves = [node.variable for node in nodes if hasattr(node, "variable")]
            grads = once_more(tensors, seeds, nodes, leaves, inner)
            if grads is not None:
                made.arrived(leaves, grads)

    @contextmanager
    def _as_it_was(self) -> Iterator[None]:
        """Inside, the leaves that were written since the pass hold what they held in it."""
        torch: Any = sys.modules["torch"]
        version: Any = torch._C._autograd._unsafe_set_version_counter
        changed = [
            pair for key, pair in self._copies.items() if pair[0]._version != self._versions[key]
        ]
        now = [(leaf, leaf.detach().clone(), leaf._version) for leaf, _ in changed]
        with torch.no_grad():
            for leaf, copy in changed:
                leaf.detach().copy_(copy)
                version((leaf,), (self._versions[id(leaf)],))
        try:
            yield
        finally:
            with torch.no_grad():
                for leaf, copy, number in now:
                    leaf.detach().copy_(copy)
                    version((leaf,), (number,))


@contextmanager
def _in_silence() -> Iterator[None]:
    """Hooks of the program's run a second time, but say nothing again."""
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        yield

"""A backward pass of PyTorch's, heard step by step through the hooks of its nodes."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from gradcli.engine.system.garbage import uncollected
from gradcli.graphs import nonfinite, value_text
from gradcli.graphs.backward_steps import Pass, Step
from gradcli.graphs.of_torch.torch_notes import keep_leaves, note_of, noted
from gradcli.graphs.of_torch.torch_tensors import node_of, readable
from gradcli.graphs.traversal import Walk, walk


class TorchRecorder:
    """What a backward pass of PyTorch's does, step by step; gradients are counted up, not kept."""

    _turn = 0

    def __init__(
        self,
        tensors: Iterable[Any],
        *,
        check: bool = False,
        skeleton: Walk | None = None,
        heard: Callable[[Step], None] | None = None,
        counted: Callable[[Any], Any] = value_text.stats_of,
        leaves: bool = False,
        failed: Callable[[Exception], None] | None = None,
    ) -> None:
        """heard: is called with every step that has run. counted: what is kept of a gradient.
        leaves: whether their values are kept, too.

        failed: hears of a failure to look, while the pass goes on.
        """
        self._failed, self._keeps_leaves = failed, leaves
        self.heard, self._stats = heard, counted
        roots = [node for node in map(node_of, tensors) if node is not None]
        self.skeleton = walk(dict.fromkeys(roots)) if skeleton is None else skeleton
        self.passes = [Pass(roots[0] if roots else None, None)]
        self.reached: dict[Any, Any] = {}
        self.anomaly: tuple[Step, dict[str, str]] | None = None
        self._open: dict[Any, Step] = {}
        self._known: dict[int, tuple[weakref.ref[Any], int, Any]] = {}  # by id of a gradient

    @property
    def steps(self) -> list[Step]:
        """The steps of the pass."""
        return self.passes[0].steps

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Hear of every node that runs inside."""
        with uncollected():  # hooks and steps, all of which live to the end of the pass
            if self._keeps_leaves:
                keep_leaves(self.skeleton.nodes)
            handles = []
            own = sys.modules["torch"]._C._FunctionBase  # may raise, and may run a pass of its own
            for node in self.skeleton.nodes:
                leaf = hasattr(node, "variable")
                if leaf or isinstance(node, own):
                    handles.append(node.register_prehook(self._before(node)))
                if not leaf:
                    handles.append(node.register_hook(self._after(node)))
            try:
                yield
            finally:
                for handle in handles:
                    handle.remove()

    def _before(self, node: Any) -> Any:
        def hook(grads: tuple[Any, ...]) -> None:
            try:
                self._start(node, tuple([self._counted(grad) for grad in grads]))
            except Exception as error:  # of ours: the program goes on
                self._went_wrong(error)

        return hook

    def _went_wrong(self, error: Exception) -> None:
        if self._failed is None:
            raise error
        self._failed(error)  # the program's own pass goes on

    def _start(self, node: Any, grads: tuple[Any, ...]) -> None:
        steps = self.steps
        step = Step(len(steps) + 1, node, grads)
        steps.append(step)
        self._open[node] = step
        self.reached[node] = next((grad for grad in grads if grad is not None), None)
        note = noted(node)
        TorchRecorder._turn += 1
        note.grads, note.turn = grads, TorchRecorder._turn

    def _after(self, node: Any) -> Any:
        def hook(outgoing: tuple[Any, ...], incoming: tuple[Any, ...]) -> None:
            try:
                if node not in self._open:
                    self._start(node, tuple([self._counted(grad) for grad in incoming]))
                self._end(node, outgoing)
            except Exception as error:  # of ours: the program goes on
                self._went_wrong(error)

        return hook

    def _end(self, node: Any, outgoing: tuple[Any, ...]) -> None:
        step = self._open.get(node)
        if step is None:
            return
        step.outgoing = tuple(map(self._counted, outgoing))
        note = note_of(node)
        if note is not None:
            note.sent = step.outgoing
        if self.heard is not None:
            self.heard(step)

    def arrived(self, leaves: list[Any], grads: Iterable[Any]) -> None:
        """The leaves' gradients, where the pass did not run their own nodes."""
        known = {id(n.variable): n for n in self.skeleton.nodes if hasattr(n, "variable")}
        for leaf, grad in zip(leaves, grads, strict=True):
            node = known[id(leaf)]
            if grad is not None and node not in self.reached:
                self._start(node, (self._counted(grad),))
        self.look()

    def _counted(self, grad: Any) -> Any:
        """What is kept of a gradient; what one node sends often arrives at the next one as it is."""
        if grad is None or not readable(grad):
            return None
        known = self._known.get(id(grad))
        version: int = grad._version
        if known is not None and known[0]() is grad and known[1] == version:
            return known[2]
        found = self._stats(grad)
        self._known[id(grad)] = weakref.ref(grad), version, found
        return found

    def look(self) -> None:
        """Find the first step that sends NaN or infinity."""
        for step in self.steps:
            place = nonfinite.first_place(step.outgoing)
            if place is not None:
                self.anomaly = step, {}
                return


def recorded(skeleton: Walk) -> TorchRecorder:
    """The steps that the notes of a graph's nodes have kept, in order."""
    recorder = TorchRecorder((), skeleton=skeleton)
    steps = recorder.passes[0].steps
    turns = [
        (note.turn, node, note) for node in skeleton.nodes if (note := note_of(node)) and note.turn
    ]
    for number, (_, node, note) in enumerate(sorted(turns, key=lambda turn: turn[0]), 1):
        steps.append(Step(number, node, note.grads, note.sent or ()))
        recorder.reached[node] = next((g for g in note.grads if g is not None), None)
    return recorder


def once_more(
    tensors: Any, seeds: Any, nodes: Iterable[Any], leaves: list[Any], inner: Iterable[Any]
) -> Any:
    """Backpropagate, with the graph kept and no `.grad` changed; the leaves' gradients.

    None where they went through the leaves' own nodes: reentrant checkpointing runs in `backward()` alone.
    inner: leaves that only its recomputation reaches.
    """
    autograd = sys.modules["torch"].autograd
    if all(type(node).__name__ != "CheckpointFunctionBackward" for node in nodes):
        return autograd.grad(tensors, leaves, seeds, retain_graph=True, allow_unused=True)
    every = [*leaves, *(leaf for leaf in inner if leaf.requires_grad and leaf.is_leaf)]
    unique = list({id(leaf): leaf for leaf in every}.values())
    before = [leaf.grad for leaf in unique]
    for leaf in unique:
        leaf.grad = None
    try:
        autograd.backward(tensors, seeds, retain_graph=True)
    finally:
        for leaf, grad in zip(unique, before, strict=True):
            leaf.grad = grad
    return None

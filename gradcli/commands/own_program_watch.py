"""Watching a Python program that runs on gradcli in PyTorch's place: which line and which module made a node.

A program without PyTorch installed is run so by `gradcli graph --torch`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from gradcli.engine.core import backward_pass, modes
from gradcli.engine.core.observers import observing
from gradcli.engine.core.tensor import Tensor
from gradcli.engine.system.array_memory import address
from gradcli.graphs.backward_steps import StepListener
from gradcli.graphs.inspection import Graph
from gradcli.graphs.of_torch.module_calls import Calls
from gradcli.graphs.probes import Place, Probe
from gradcli.graphs.traversal import walk

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class Made(NamedTuple):
    """What made a node: the user's line, and the number of the module's call."""

    place: Place | None
    call: int


class OwnProgramProbe(Probe):
    """Asks nodes of our own, made by a program that was watched. names: of leaves."""

    def __init__(self, calls: Calls, made: Mapping[Any, Made], names: Mapping[str, Any]) -> None:
        self.calls, self._made = calls, made
        self._named = {id(t): n for n, t in names.items() if isinstance(t, Tensor) and t.is_leaf}
        self._parameters: set[int] = set()
        for name, tensor in calls.parameters():
            self._named[id(tensor)] = name
            self._parameters.add(address(tensor.array))

    def place(self, node: Any) -> Place | None:
        """The user's line."""
        made = self._made.get(node)
        return None if made is None else made.place

    def module(self, node: Any) -> str | None:
        """The path of the innermost module that made it."""
        call = self.call(node)
        return None if call < 0 else self.calls.path(call)

    def call(self, node: Any) -> int:
        """The call of a module that made it; -1 if none did."""
        made = self._made.get(node)
        return -1 if made is None else made.call

    def name_of(self, tensor: Any, names: Mapping[int, str]) -> str | None:
        """The parameter's path, or the variable's name."""
        return self._named.get(id(tensor)) or super().name_of(tensor, names)

    def is_parameter(self, held: Any) -> bool:
        """Whether it is a parameter's memory."""
        return isinstance(held, np.ndarray) and address(held) in self._parameters


class Watch:
    """Inside, nodes are noted as they are made; `graph` is of what `backward` was called on last."""

    def __init__(self, gradients: bool = False) -> None:
        """gradients: whether those of the program's backward passes are kept."""
        self.gradients = gradients
        self.recorder: StepListener | None = None
        self.calls = Calls()
        self.made: dict[Any, Made] = {}
        self.last: Tensor | None = None
        self.steps = 0
        self._saved: list[tuple[Any, Any]] = []
        self._open: Any = None

    def __enter__(self) -> Watch:
        self._open = self._watching()
        self._open.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._open.__exit__(*error)

    @contextmanager
    def _watching(self) -> Iterator[None]:
        from gradcli.torch.nn.modules import module as modules

        handles = [
            modules.register_module_forward_pre_hook(lambda module, args: self.calls.enter(module)),
            modules.register_module_forward_hook(
                lambda module, args, result: self.calls.leave(), always_call=True
            ),
        ]
        before = Tensor.run_backward

        def run_backward(tensor: Tensor, *args: Any, **options: Any) -> None:
            self._keep(tensor)
            self.recorder = StepListener(check=True) if self.gradients else None
            with nullcontext() if self.recorder is None else observing(self.recorder):
                backward_pass.backward(tensor, *args, **options)

        Tensor.run_backward = run_backward
        try:
            with modes.changed(intercept=self._note):
                yield
        finally:
            Tensor.run_backward = before
            for handle in handles:
                handle.remove()

    def _note(self, primitive: Any, operands: Any, outputs: Any) -> None:
        place: Place | None = None
        for tensor in outputs:
            node = tensor.grad_fn
            if node is not None and node not in self.made:
                place = place or _users_line(sys._getframe(1))
                self.made[node] = Made(place, self.calls.current)

    def _keep(self, tensor: Tensor) -> None:
        """Keep what the nodes of a pass have saved, which the pass frees, until the next one."""
        self.last, self.steps = tensor, self.steps + 1
        nodes = walk([tensor.grad_fn]).nodes if tensor.grad_fn is not None else []
        self._saved = [(n, n._saved) for n in nodes if getattr(n, "_saved", None)]
        reached = set(nodes)
        self.made = {node: made for node, made in self.made.items() if node in reached}

    def graph(self, tensors: tuple[Any, ...], names: Mapping[str, Any]) -> Graph:
        """The graph of some tensors of the program. names: its variables."""
        from gradcli.torch.nn.modules.module import Module

        modules = {n: v for n, v in names.items() if isinstance(v, Module)}
        self.calls.name_roots(modules)
        for node, saved in self._saved:
            if node._saved is None:
                node._saved = saved
        known = {n: v for n, v in names.items() if isinstance(v, Tensor)}
        probe = OwnProgramProbe(self.calls, self.made, known)
        calls = self.calls if len(self.calls) else None
        graph = Graph(tensors, names=known, probe=probe, calls=calls)
        if self.recorder is not None and len(tensors) == 1 and tensors[0] is self.last:
            graph.recorder, graph.describer.grads = self.recorder, self.recorder.reached
        return graph


def _users_line(frame: FrameType | None) -> Place | None:
    """The innermost line that is not gradcli's."""
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith((_OURS, "<")):
            return Place.at(file, frame.f_lineno)
        frame = frame.f_back
    return None

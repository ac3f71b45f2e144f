"""Watching a program in PyTorch's language that runs on gradcli, PyTorch's stand-in.

It learns what `Watch` learns of PyTorch, and by the same code; what differs is how operations are heard:
the engine calls `intercept` after every primitive, so that no function has to be wrapped.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType, TracebackType
from typing import Any

import numpy as np

from gradcli.engine.core import backward_pass, modes
from gradcli.engine.core.observers import observing
from gradcli.engine.core.tensor import Tensor
from gradcli.engine.registry import torch_namespaces
from gradcli.graphs import nonfinite, value_text
from gradcli.graphs.backward_steps import StepListener
from gradcli.graphs.of_torch.last_pass import LastPass
from gradcli.graphs.of_torch.slips import around
from gradcli.graphs.of_torch.torch_anomaly import in_backward
from gradcli.graphs.of_torch.torch_notes import KEY, keep_leaves, note_of
from gradcli.graphs.of_torch.torch_tensors import has_bad, readable
from gradcli.graphs.of_torch.torch_watch import MASKS, Watch
from gradcli.graphs.of_torch.training_facts import PAIRS
from gradcli.graphs.traversal import Walk, class_name

# Methods that no primitive runs for, and that may end a graph.
_METHODS = ("detach", "item", "tolist", "numpy", "__float__", "__int__", "__array__")


def stats_of(tensor: Any) -> value_text.Stats:
    """What is kept of a result: it is counted up, and copied where it is small."""
    array = value_text.as_array(tensor)
    found = value_text.stats_of(array)
    if found.bad:
        found.place = nonfinite.place_of(found)
    found.whole = np.array(array) if found.size <= value_text.FEW else None
    return found


class OwnWatch(Watch):
    """A watched stretch of a program on gradcli; for the arguments see `Watch`.

    Every backward pass whose gradients are wanted is recorded while it runs, the last of each root is kept.
    """

    def __init__(self, *models: Any, values: Any = stats_of, **options: Any) -> None:
        super().__init__(*models, values=None if values is None else stats_of, **options)
        # `recorded` has the passes by the name of their root, or "".
        self._is_looking = False
        self._key: str | None = None
        self._newest: tuple[Any, Any] | None = (
            None  # the root and the steps of the pass that has run
        )

    # -- what the library is, and what it tells ----------------------------------------------------
    def _library(self) -> Any:
        return torch_namespaces.torch

    def _random(self) -> tuple[Any, ...]:
        return (None,)  # ours draws the same numbers in every process

    def _unwatched(self) -> Any:
        return modes.changed(intercept=None, before_write=None)

    def _tells_of_hooks(self) -> bool:
        return True

    def _kept_operands(self) -> Any:
        return None

    def _is_told_of_nodes(self) -> bool:
        return True  # each as it is made: no stretch of numbers is to be remembered

    def _in_transform(self) -> bool:
        return bool(modes.transforms.get())

    # -- ways of hearing what happens --------------------------------------------------------------
    def _hear_nodes(self, undo: ExitStack) -> None:
        pass

    def _hear_custom(self, undo: ExitStack) -> None:
        pass

    def _hear_functions(self, undo: ExitStack) -> None:
        state = modes.current()
        former, written = state.intercept, state.before_write

        def heard(primitive: Any, operands: Any, outputs: Any) -> None:
            if former is not None:
                former(primitive, operands, outputs)
            self._heard(primitive, operands, outputs, sys._getframe(1))

        def writes(tensor: Any) -> None:
            if written is not None:
                written(tensor)
            self._writes(tensor, sys._getframe(1))

        heard.below = former  # type: ignore[attr-defined]
        self._intercept, self._below = heard, former
        undo.enter_context(modes.changed(intercept=heard, before_write=writes))
        for name in _METHODS:
            undo.callback(setattr, Tensor, name, Tensor.__dict__[name])
            setattr(Tensor, name, self._told(name, Tensor.__dict__[name]))
        for name in ("data", "grad"):
            former_one = Tensor.__dict__[name]
            undo.callback(setattr, Tensor, name, former_one)
            setattr(Tensor, name, former_one.getter(self._told(name, former_one.fget)))

        freezes = Tensor.__dict__["requires_grad_"]
        undo.callback(setattr, Tensor, "requires_grad_", freezes)
        setattr(Tensor, "requires_grad_", self._freezing(freezes))
        former_one = Tensor.__dict__["requires_grad"]
        undo.callback(setattr, Tensor, "requires_grad", former_one)
        setattr(Tensor, "requires_grad", former_one.setter(self._freezing(former_one.fset)))

        for name, look in self.facts.training.slips.functions().items() if self.program else ():
            undo.callback(around(self.torch.nn.functional, name, self._looking(look)))

        for name in ("tensor", "as_tensor"):
            function = getattr(self.torch, name)
            undo.callback(setattr, self.torch, name, function)
            setattr(self.torch, name, self._told(name, function))

    def _hear_passes(self, undo: ExitStack) -> None:
        super()._hear_passes(undo)
        undo.callback(setattr, Tensor, "run_backward", Tensor.run_backward)

        def run_backward(tensor: Tensor, *args: Any, **options: Any) -> None:
            self.torch.autograd.backward(tensor, *args, **options)

        Tensor.run_backward = run_backward

    def _passing(self, run: Any) -> Any:
        """As for PyTorch; the pass is no program that is watched, unless it is recorded itself."""
        place = 2 if run.__name__ == "backward" else 3  # of create_graph among the rest

        @functools.wraps(run)
        def unheard(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            create = args[place] if len(args) > place else kwargs.get("create_graph")
            if create or modes.current().intercept is not self._intercept:
                return run(tensors, *args, **kwargs)
            with modes.changed(intercept=self._below):
                return run(tensors, *args, **kwargs)

        return super()._passing(unheard)

    # -- operations --------------------------------------------------------------------------------
    def _told(self, name: str, method: Callable[..., Any]) -> Any:
        """A method of tensors that tells of itself when the program calls it."""

        @functools.wraps(method)
        def told(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            if self._is_off():
                return method(tensor, *args, **kwargs)
            self._is_looking = True  # what it does inside is its own
            try:
                found = method(tensor, *args, **kwargs)
                self._method_ran(name, found, tensor, sys._getframe(1))
            finally:
                self._is_looking = False
            return found

        return told

    def _looking(self, look: Callable[..., None]) -> Callable[..., Any]:
        """What calls a function of `nn.functional` and tells of it before."""

        def calls(function: Any, frame: FrameType, *args: Any, **kwargs: Any) -> Any:
            if not self._is_off():
                look(frame, *args, **kwargs)
            return function(*args, **kwargs)

        return calls

    def _freezing(self, method: Callable[..., Any]) -> Any:
        """What sets `requires_grad`, which tells of itself when the program calls it."""

        @functools.wraps(method)
        def freezing(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            found = method(tensor, *args, **kwargs)
            if not self._is_off() and self.program:
                value = next(iter((*args, *kwargs.values())), True)
                self.facts.training.slips.freezes(tensor, value, sys._getframe(1))
            return found

        return freezing

    def _is_off(self) -> bool:
        return self._is_looking or self._in_pass > 0 or self._ended

    def _method_ran(self, name: str, found: Any, tensor: Any, frame: FrameType) -> None:
        try:
            if not self.program or not self._is_users(frame.f_code.co_filename):
                return  # gradcli's own, on the way
            if name != "grad":
                self.facts.heard(name, found, (tensor,), frame)
            elif found is None:
                self.facts.training.read_grad(tensor, frame)
        except Exception as error:  # of ours: the program goes on
            self.failed(error)

    def _heard(self, primitive: Any, operands: Any, outputs: Any, frame: FrameType) -> None:
        """A primitive has run, or a Function of the user's."""
        if self._is_looking or self._ended or self.facts.training.stepping:
            return
        self._is_looking = True
        out = outputs[0] if len(outputs) == 1 else tuple(outputs)
        given = tuple(operands)
        try:
            if not self._in_pass and self.program:
                self.doing, given_then = self._called_as(primitive, given, frame)
                self.facts.heard(self.doing, out, given_then, frame)
            if self.end is not None and not self._in_pass:
                self.end.heard(out, self._where(frame))
            self._made(out, frame, given, 0)
            if self._wants_operands and hasattr(primitive, "edge_operands"):
                for one in outputs:
                    if (
                        note := note_of(one.grad_fn) if one.grad_fn is not None else None
                    ) is not None:
                        note.operands = primitive.edge_operands(operands)
        except Exception as error:  # of ours: the program goes on
            self.failed(error)
        finally:
            self._is_looking = False

    def _called_as(
        self, primitive: Any, given: tuple[Any, ...], frame: FrameType | None
    ) -> tuple[str, tuple[Any, ...]]:
        """The name of what the program called, and its operands before they were spread.

        A primitive such as that of `long` has no name in PyTorch, and that of `mse_loss` gets operands of one
        shape: then what is asked is the frame of our function that stands below the program's own.
        """
        public = getattr(primitive, "public_name", None)
        if public is None:
            return "apply", given
        name = public.rpartition(".")[2]
        known = hasattr(Tensor, name) or public != name
        if known and name not in PAIRS:
            return name, given
        outer: FrameType | None = None
        while frame is not None and not self._is_users(frame.f_code.co_filename):
            if frame.f_code.co_filename.startswith("<gradcli"):
                outer = frame
            if known and frame.f_code.co_filename == f"<gradcli {name}>":
                break
            frame = frame.f_back
        if outer is None:
            return name, given
        if not known:
            return outer.f_code.co_name, given
        own = tuple(outer.f_locals.get(v) for v in outer.f_code.co_varnames[:2])
        return name, own if all(isinstance(one, Tensor) for one in own) else given

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        super().__exit__(kind, error, trace)
        if self.program and isinstance(error, Exception):
            self._was_refused(trace)

    def _was_refused(self, trace: TracebackType | None) -> None:
        """Remember what the function of ours was given that has ended the program."""
        entries = []
        while trace is not None:
            entries.append(trace.tb_frame)
            trace = trace.tb_next
        last = max(
            (k for k, one in enumerate(entries) if self._is_users(one.f_code.co_filename)),
            default=-1,
        )
        for frame in entries[last + 1 :]:
            code = frame.f_code
            if code.co_filename == f"<gradcli {code.co_name}>" and last >= 0:
                given = [frame.f_locals.get(v) for v in code.co_varnames[: code.co_argcount]]
                self.facts.training.refused_by(code.co_name, given, entries[last])
                return

    def _writes(self, tensor: Any, frame: FrameType) -> None:
        """A tensor is about to be written in place."""
        if self._is_off() or not self.program or self.facts.training.stepping:
            return
        try:
            self.facts.wrote(tensor, tensor.version_number() + 1, frame)
        except Exception as error:  # of ours: the program goes on
            self.failed(error)

    def _glance(
        self, tensor: Any, node: Any, operands: tuple[Any, ...], frame: FrameType | None
    ) -> None:
        if self.first is not None or tensor.base is not None or not has_bad(tensor):
            return
        if class_name(node).startswith(MASKS) and not np.isnan(tensor.array).any():
            return
        self._odd(node, value_text.stats_of(tensor), operands, frame)

    # -- backward passes ---------------------------------------------------------------------------
    @property
    def _is_heard(self) -> bool:
        return False

    def _remember(self, roots: list[Any], frame: FrameType | None) -> Any:
        last = super()._remember(roots, frame)
        found = (key for key, one in self._last_passes.items() if one is last)
        self._key = None if last is None else next(found, None)
        return last

    @contextmanager
    def _listening(self, roots: list[Any], graph: Walk | None = None) -> Iterator[None]:
        if self._key is None and not self.anomalies:
            yield
            return
        recorder = StepListener(check=True)
        with observing(recorder):
            yield
        self._newest = (roots[0], recorder) if len(roots) == 1 else None
        self._blame(recorder)

    def _keep(
        self, last: LastPass, tensors: Any, place: int, args: Any, kwargs: Any, nodes: list[Any]
    ) -> None:
        """Remember a pass, which was recorded as it ran."""
        if self._accepts(last, nodes) and self._key is not None and self._newest is not None:
            self.recorded[self._key] = self._newest
            keep_leaves(nodes)

    def measure(self) -> None:
        """Nothing: passes were recorded as they ran."""

    def _look_at_leaves(self, roots: list[Any], nodes: list[Any], seeds: tuple[Any, ...]) -> None:
        """Find the step that made a NaN, should a gradient have one: the pass once more, heard."""
        if self.first is not None and not self._finite:
            return
        leaves = [node.variable for node in nodes if hasattr(node, "variable")]
        self._is_bad = any(leaf._grad is not None and has_bad(leaf._grad) for leaf in leaves)
        if self.first is not None or self._key is not None or not self._is_bad:
            return
        recorder = StepListener(check=True)
        try:
            with self._unwatched(), observing(recorder):
                seed = seeds[0] if seeds else None
                backward_pass.grad(roots, leaves, seed, retain_graph=True, allow_unused=True)
            self._blame(recorder)
        except Exception as error:  # of ours: the program goes on
            self.failed(error)

    def _blame(self, recorder: StepListener) -> None:
        """Keep the first step of a pass that sent what is not finite."""
        if recorder.anomaly is None or self.first is not None:
            return
        step = recorder.anomaly[0]
        if any(grad is not None and nonfinite.wrong(grad) for grad in step.incoming):
            return
        sent = [None if grad is None else value_text.stats_of(grad) for grad in step.outgoing]
        note = step.node.metadata.get(KEY)
        place, call = (None, -1) if note is None else (note.place, note.call)
        self.first = in_backward(step.node, class_name(step.node), sent, place, call)
        self.first.when = f" in the backward pass of step {self.facts.step}"

    def _note(self, tensor: Any, frame: Any, operands: tuple[Any, ...], begun: int) -> None:
        if readable(tensor):
            super()._note(tensor, frame, operands, begun)

"""Watching a program of PyTorch's: which line and which module made every node, and with what values.

PyTorch is the user's; it is imported when watching begins. What is learnt of a node is kept on the node
itself (`node.metadata`), so that watching keeps no graph alive.
"""

from __future__ import annotations

import functools
import math
import os
import sys
import sysconfig
import time
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from types import FrameType, TracebackType
from typing import Any

from gradcli.graphs import nonfinite, value_text
from gradcli.graphs.of_torch import torch_versions
from gradcli.graphs.of_torch.early_end import End, Stopped
from gradcli.graphs.of_torch.last_pass import LastPass
from gradcli.graphs.of_torch.module_calls import Calls
from gradcli.graphs.of_torch.operands import Operands
from gradcli.graphs.of_torch.torch_anomaly import Found, in_backward, in_forward, piece_of
from gradcli.graphs.of_torch.torch_facts import SECOND_TIME, Facts
from gradcli.graphs.of_torch.torch_nodes import address_of
from gradcli.graphs.of_torch.torch_notes import KEY, Note, note_of
from gradcli.graphs.of_torch.torch_pass import TorchRecorder, once_more
from gradcli.graphs.of_torch.torch_tensors import (
    dense_parts,
    has_bad,
    has_nan,
    is_wrapped,
    node_of,
    readable,
)
from gradcli.graphs.traversal import Walk, class_name, walk


def _paths(*keys: str) -> tuple[str, ...]:
    found = (path for key in keys if (path := sysconfig.get_paths().get(key)))
    return tuple(dict.fromkeys(os.path.realpath(path) + os.sep for path in found))


_STANDARD = _paths("stdlib", "platstdlib")
_INSTALLED = _paths("purelib", "platlib")
MOST_STRETCHES = 200_000  # that are remembered: graphs of so long ago are gone
MASKS = ("MaskedFill", "Where", "Triu", "Tril")  # infinities of theirs are meant
_OURS = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", "..")) + os.sep
__warningregistry__ = None  # warnings are remembered where `_warned` shows them, not here


def _quietly(look: Any) -> Any:
    """A method of Watch's that looks at the program: a failure of it is kept, and the program goes on."""

    @functools.wraps(look)
    def quiet(self: Watch, *args: Any, **kwargs: Any) -> Any:
        try:
            return look(self, *args, **kwargs)
        except Exception as error:  # of ours: the program goes on
            self.failed(error)

    return quiet


class Watch:
    """A watched stretch of a program; `with Watch(...)` around the forward pass.

    models: their parts are named by paths below them. values: what is kept of the result of every
    operation, see `value_text`; None for nothing.
    program: backward passes that run meanwhile keep their graphs, and where they began is remembered.
    gradients: what reaches the nodes in the last of them is counted up, once `measure` is called; norms: no
    more than the norm; few: in passes over so many nodes or fewer, unasked. finite: the last is that
    whose loss and gradients are finite, if there is one. wanted: names of roots; the last pass of each
    counts, not the last of all.
    operands: those that need no gradient are kept with the nodes.
    anomalies: the first NaN is found, and kept as `first` (`first_inf` for an infinity, which may be
    meant). timed: the seconds of every operation are added up by module. lines: "own" are those of
    the program, "library" those nearest to PyTorch. end: where the program is stopped.
    """

    def __init__(
        self,
        *models: Any,
        values: Callable[[Any], Any] | None = value_text.stats_of,
        program: bool = False,
        gradients: bool = False,
        norms: bool = False,
        few: int = 0,
        finite: bool = False,
        wanted: Iterable[str] = (),
        operands: bool = False,
        anomalies: bool = False,
        timed: bool = False,
        lines: str = "own",
        end: End | None = None,
    ) -> None:
        self.torch: Any = self._library()
        self.calls = Calls()
        for model in models:
            self.calls.add_root(model, "" if len(models) == 1 else None)
        self.values, self.program, self.gradients = values, program, gradients or norms
        self._counted = value_text.norm_of if norms and not gradients else value_text.stats_of
        self.anomalies, self.timed, self.end, self.few = anomalies, timed, end, few
        self._wanted = frozenset(wanted)
        self._finite = finite and end is None
        self._is_bad = False  # whether gradients of the pass that has run are not finite
        self._names: tuple[str, ...] = ()  # of the root of the pass that runs
        self._last_passes: dict[str, LastPass] = {}  # by the name that is wanted, or ""
        self._strided = self.torch.strided
        self._torch_path = os.path.realpath(self.torch.__path__[0]) + os.sep
        self._own_lines = lines == "own"
        self.first: Found | None = None
        self.first_inf: Found | None = None
        self.facts = Facts(self.torch, self._where, self.failed, self._unwatched)
        self.doing = ""  # the name of the function of PyTorch's that has just run
        self._bare: dict[int, Found] = {}  # by the address of a result without a gradient
        self.last: Any = None  # the tensor that a backward pass began at last
        self.roots: dict[str, Any] = {}  # such tensors by the name that their function had for them
        self._order = 0
        self._in_pass = 0
        self._undo = ExitStack()
        self._user: dict[str, bool] = {}
        self.recorded: dict[str, tuple[Any, Any]] = {}  # passes that were recorded: see OwnWatch
        self.failures = 0  # how often looking has failed, which the program does not notice
        self.failure: Exception | None = None  # the first time
        self._tells = self._tells_of_hooks()
        self._ended = False
        self.is_unseeded = False  # numbers were drawn, and nobody has set a seed
        self._wants_operands = operands
        self._operands = self._kept_operands() if operands else None
        self._hears_nodes = self._is_told_of_nodes()
        self._stretches: list[tuple[int, int, str | None, int, int]] = []  # see `_later`

    # -- what the library is, and what it tells; another one has a Watch of its own ---------------
    def _library(self) -> Any:
        return import_module("torch")

    def _random(self) -> tuple[Any, ...]:
        """The seed that was set, or PyTorch's own, and the state of what draws numbers."""
        return self.torch.initial_seed(), self.torch.get_rng_state().numpy().tobytes()

    def _unwatched(self) -> Any:
        """A context in which no function is heard."""
        return self.torch._C.DisableTorchFunction()

    def _tells_of_hooks(self) -> bool:
        return torch_versions.tells()

    def _kept_operands(self) -> Any:
        return Operands()

    def _is_told_of_nodes(self) -> bool:
        return hasattr(self.torch.autograd.graph, "node_creation_hook")

    def _in_transform(self) -> bool:
        """Tell whether torch.func runs, whose graphs are its own."""
        return self.torch._C._functorch.peek_interpreter_stack() is not None

    # -- beginning and end -----------------------------------------------------------------------
    def __enter__(self) -> Watch:
        self._ended = False
        self._began = self._random()
        ways: list[Callable[[ExitStack], None]] = [
            self._hear_modules,
            self._hear_functions,
            self._hear_custom,
            self._hear_warnings,
        ]
        if not self._tells:
            ways.append(self._hear_packing)
        if self._hears_nodes:
            ways.append(self._hear_nodes)
        if self._operands is not None:
            ways.append(self._hear_operations)
        if self.program:
            ways += [self._hear_facts, self._hear_passes]
        with ExitStack() as undo:  # undone at once, should this be interrupted
            for way in ways:
                try:
                    way(undo)
                except Exception as error:  # a version of PyTorch's that does not have it
                    self.failed(error)
            self._undo = undo.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._undo.close()
        self._ended = True
        now = self._random()
        self.is_unseeded = now[0] == self._began[0] and now[1:] != self._began[1:]
        if self.failure is not None and not self.program:  # whose command says it
            warnings.warn(self.failed_words(), stacklevel=2)

    @property
    def steps(self) -> int:
        """How many backward passes the program has begun."""
        return self.facts.step

    def failed_words(self) -> str:
        """What is to be said of looks that have failed."""
        error = self.failure
        return (
            f"{self.failures:,} of the looks at the program have failed, the first by "
            f"{type(error).__name__}: {error}; what they would have told is missing. This is a fault in "
            f"gradcli with {torch_versions.name()}: please report it"
        )

    def failed(self, error: Exception) -> None:
        """Looking has failed: the program goes on as if nobody had looked."""
        if isinstance(error, RecursionError):
            raise error  # the program is about to meet it too
        self.failures += 1
        self.failure = self.failure or error

    # -- ways of hearing what happens ------------------------------------------------------------
    def _hear_modules(self, undo: ExitStack) -> None:
        hooks = import_module(f"{self.torch.__name__}.nn.modules.module")
        undo.callback(hooks.register_module_forward_pre_hook(self._module_begins).remove)
        ends = hooks.register_module_forward_hook(self._module_ends, always_call=True)
        undo.callback(ends.remove)

    def _hear_functions(self, undo: ExitStack) -> None:
        mode = _mode(self)
        self.facts.training.pauses = _Pauses(mode)
        undo.enter_context(_among_modes(mode))
        undo.callback(self.facts.training.pauses.end)

    def _hear_custom(self, undo: ExitStack) -> None:
        function = self.torch.autograd.Function
        apply = function.__dict__["apply"]
        undo.callback(setattr, function, "apply", apply)
        function.apply = classmethod(self._custom(apply))

    def _hear_warnings(self, undo: ExitStack) -> None:
        undo.callback(setattr, warnings, "showwarning", warnings.showwarning)
        warnings.showwarning = self._warned(warnings.showwarning)

    def _hear_packing(self, undo: ExitStack) -> None:
        saved = self.torch._C._autograd.SavedTensor
        register = saved.register_hooks

        def registered(raw: Any, *hooks: Any) -> None:
            Note.by_hand = True
            register(raw, *hooks)

        undo.callback(setattr, saved, "register_hooks", register)
        saved.register_hooks = registered

    def _hear_nodes(self, undo: ExitStack) -> None:
        """From PyTorch 2.14 on every node is heard of as it is made, in transforms and passes too."""
        undo.enter_context(self.torch.autograd.graph.node_creation_hook(self._born))

    def _hear_operations(self, undo: ExitStack) -> None:
        assert self._operands is not None
        undo.enter_context(self._operands.mode(self._heard_operation))

    def _hear_facts(self, undo: ExitStack) -> None:
        for end in self.facts.hooks():
            undo.callback(end)

    def _hear_passes(self, undo: ExitStack) -> None:
        for name in ("backward", "grad"):
            before = getattr(self.torch.autograd, name)
            undo.callback(setattr, self.torch.autograd, name, before)
            setattr(self.torch.autograd, name, self._passing(before))

    # -- modules ---------------------------------------------------------------------------------
    @_quietly
    def _module_begins(self, module: Any, inputs: Any) -> None:
        if not self._in_pass:
            outermost = self.calls.current < 0
            self.calls.enter(module)
            if outermost and self.program:
                self.facts.training.enters(module, self.calls.current, sys._getframe(1))

    @_quietly
    def _module_ends(self, module: Any, inputs: Any, output: Any) -> None:
        if not self._in_pass:
            self.calls.leave()
            if self.program and self.calls.current < 0:
                self.facts.training.leaves(module, output)

    # -- operations ------------------------------------------------------------------------------
    def _custom(self, apply: Any) -> Any:
        @functools.wraps(apply)
        def watched(cls: Any, *args: Any, **kwargs: Any) -> Any:
            # Bound by hand: from PyTorch 2.14 on `apply` is a class method written in C, without `__func__`.
            begun = self.clock()
            out = apply.__get__(None, cls)(*args, **kwargs)
            self.made(out, sys._getframe(1), (*args, *kwargs.values()), begun)
            return out

        return watched

    @_quietly
    def _born(self, node: Any) -> None:
        """Make the note of a node that has been made, in this thread."""
        if not self._ended and not hasattr(node, "variable"):
            self._order += 1
            file, line = self._where(sys._getframe(2))
            node.metadata[KEY] = note = Note(
                self._order, file, line, self.calls.current, self.calls
            )
            if self._operands is not None:
                number = node._sequence_nr()
                note.operands = self._operands.taken(number)
                self._operands.newest = number, note

    @_quietly
    def _heard_operation(self, function: Any, args: Any, kwargs: Any) -> None:
        if self._operands is not None and not self._in_pass:
            self._operands.heard(function, args, kwargs)

    @_quietly
    def heard_call(
        self, function: Any, out: Any, given: Any, frame: FrameType | None, begun: int
    ) -> None:
        """A function of PyTorch's has run, since `clock()` said `begun`."""
        self.doing = self.facts.called(function, out, given, frame)
        if self.end is not None and not self._in_pass:
            self.end.heard(out, self._where(frame))
        # An assignment to a part returns nothing, and gives its tensor a new node.
        self._made(given[0] if out is None and given else out, frame, given, begun)
        if self._operands is not None:
            self._operands.forget()

    @_quietly
    def made(
        self, out: Any, frame: FrameType | None, operands: tuple[Any, ...], begun: int
    ) -> None:
        """Make notes for the nodes that a call has made."""
        self._made(out, frame, operands, begun)

    def _made(
        self, out: Any, frame: FrameType | None, operands: tuple[Any, ...], begun: int
    ) -> None:
        tensor = self.torch.Tensor
        if isinstance(out, tensor):
            self._note(out, frame, operands, begun)
        elif isinstance(out, tuple | list):
            for one in out:
                if isinstance(one, tensor):
                    self._note(one, frame, operands, begun)

    def clock(self) -> int:
        """The sequence number of the next node; 0 where every node is heard of when it is made."""
        return 0 if self._hears_nodes else int(self.torch._C._autograd._get_sequence_nr())

    def _later(self, frame: FrameType | None, begun: int) -> None:
        """A stretch whose nodes come to light later, when what was made in a transform is used."""
        if (end := self.clock()) > begun:
            file, line = self._where(frame)
            self._stretches.append((begun, end, file, line, self.calls.current))
            if len(self._stretches) > MOST_STRETCHES:
                del self._stretches[: MOST_STRETCHES // 2]

    def _earlier(self, number: int) -> tuple[str | None, int, int]:
        """File, line and module's call that made an earlier node; no file: that was before the watch."""
        k = bisect_right(self._stretches, number, key=lambda stretch: stretch[0]) - 1
        if k >= 0 and number < self._stretches[k][1]:
            return self._stretches[k][2:]
        return None, 0, -1

    def _note(
        self, tensor: Any, frame: FrameType | None, operands: tuple[Any, ...], begun: int
    ) -> None:
        if not self._hears_nodes and is_wrapped(tensor):
            self._later(frame, begun)
        node = node_of(tensor)
        if node is None:
            if self.anomalies and operands and tensor.is_floating_point() and readable(tensor):
                self._bare_result(tensor, frame, operands)
            return
        notes = node.metadata
        if KEY not in notes:
            self._note_new(node, self._where(frame), begun)
        if not readable(tensor):
            return
        if self.values is None:
            self._glance(tensor, node, operands, frame)
        elif tensor.output_nr == 0 and notes[KEY].value is None:
            notes[KEY].value = found = self.values(tensor)
            if self.program and found.bad and self.first is None:
                self._odd(node, found, operands, frame)

    def _note_new(self, node: Any, where: tuple[str | None, int], begun: int) -> None:
        """Make notes of what a call has made: composite functions make several nodes."""
        calls, order = self.calls, self._order
        here = *where, calls.current
        packed = not self._tells and self._hooks_are_set()
        stack = [node]
        while stack:
            new = stack.pop()
            if new is None or hasattr(new, "variable"):
                continue
            kept = new.metadata
            if KEY not in kept:
                order += 1
                number = new._sequence_nr()
                file, line, call = here if number >= begun else self._earlier(number)
                kept[KEY] = note = Note(order, file, line, call, calls)
                if not packed:
                    note.packed = False
                if self._operands is not None:
                    note.operands = self._operands.taken(number)
                stack += [child for child, _ in new.next_functions]
        self._order = order

    def _hooks_are_set(self) -> bool:
        top = self.torch._C._autograd._top_saved_tensors_default_hooks
        return top(False) is not None

    def _glance(
        self, tensor: Any, node: Any, operands: tuple[Any, ...], frame: FrameType | None
    ) -> None:
        """Look whether a result is finite, by its sum, and count it up if it is not."""
        if self.first is not None or tensor._is_view() or not tensor.is_floating_point():
            return
        if tensor.layout is self._strided and not tensor._is_zerotensor():
            total = tensor.detach().sum().item()
        else:
            total = sum(part.detach().sum().item() for part in dense_parts(tensor))
        if math.isinf(total) and class_name(node).startswith(MASKS):
            return
        if not math.isfinite(total) and (found := value_text.stats_of(tensor)).bad:
            self._odd(node, found, operands, frame)

    def _odd(
        self, node: Any, result: Any, operands: tuple[Any, ...], frame: FrameType | None
    ) -> None:
        """Keep the first result that is not finite."""
        nan = nonfinite.wrong(result) == "nan"
        if not nan and self.first_inf is not None:
            return
        name, note = class_name(node), node.metadata[KEY]
        if not nan and name.startswith(MASKS):
            return
        given = [(f"operand {k + 1}", t) for k, t in enumerate(self._tensors(operands))]
        named = [(self._called(t) or label, t) for label, t in given]
        former = self.first_inf
        found = in_forward(name, result, named, note.place, note.call, node)
        found.when = self._when(result)
        found.piece = piece_of(self._users(frame))
        if nan and not found.computed and former is not None and former.computed:
            former.when += (
                f"; {note.place} makes NaN of it"  # 0 * log(0): the product is not to blame
            )
            found = former
        bare = (self._bare.get(address_of(t)) for _, t in given if node_of(t) is None)
        found = next((one for one in bare if one is not None), found)
        if nan:
            self.first = found
        else:
            self.first_inf = found

    def _when(self, result: Any) -> str:
        step = f" in step {self.facts.step + 1}"
        place = nonfinite.place_of(result)
        return f"{step}, first at row {place[0]}" if len(place) > 1 else step

    def _bare_result(self, tensor: Any, frame: FrameType | None, operands: tuple[Any, ...]) -> None:
        """Remember which operation without a gradient made a NaN, should a loss come to have it."""
        if not has_nan(tensor):
            return
        given = list(self._tensors(operands))
        known = next((f for t in given if (f := self._bare.get(address_of(t))) is not None), None)
        if known is None and given and not any(map(has_nan, given)):
            file, line = self._where(frame)
            note = Note(0, file, line, self.calls.current, self.calls)
            named = [(self._called(t) or f"operand {k + 1}", t) for k, t in enumerate(given)]
            result = value_text.stats_of(tensor)
            known = in_forward(self.doing.capitalize(), result, named, note.place, note.call)
            known.message = f"{self.doing}, on what needs no gradient, computed nan values."
        if known is not None:
            self._bare[address_of(tensor)] = known

    def _tensors(self, operands: Iterable[Any]) -> Iterator[Any]:
        for one in operands:
            if isinstance(one, self.torch.Tensor):
                yield one
            elif isinstance(one, tuple | list):
                yield from self._tensors(one)

    def _called(self, tensor: Any) -> str | None:
        """The name of a parameter, or of a variable of the user's function."""
        for number, module in enumerate(self.calls.roots):
            for name, parameter in module.named_parameters():
                if parameter is tensor:
                    return ".".join(part for part in (self.calls.prefix(number), name) if part)
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if self._is_users(frame.f_code.co_filename):
                for name, value in frame.f_locals.items():
                    if value is tensor:
                        return name
            frame = frame.f_back
        return None

    @_quietly
    def heard(self, step: Any) -> None:
        """A step of a backward pass has run: keep the first that sends what is not finite."""
        if self.first is not None:
            return
        came = any(grad is not None and grad.bad for grad in step.incoming)
        sent = any(grad is not None and grad.bad for grad in step.outgoing)
        if sent and not came:
            note = step.node.metadata.get(KEY)
            place, call = (None, -1) if note is None else (note.place, note.call)
            self.first = in_backward(step.node, class_name(step.node), step.outgoing, place, call)
            self.first.when = f" in the backward pass of step {self.facts.step}"

    def _where(self, frame: FrameType | None) -> tuple[str | None, int]:
        """The innermost line that is the user's (or, if asked for, that is not PyTorch's own)."""
        found = self._users(frame)
        return (None, 0) if found is None else (found.f_code.co_filename, found.f_lineno)

    def _users(self, frame: FrameType | None) -> FrameType | None:
        while frame is not None and not self._is_users(frame.f_code.co_filename):
            frame = frame.f_back
        return frame

    def _warned(self, show: Any) -> Any:
        """Show PyTorch's warnings about a call at the user's line; Python takes ours for the caller."""

        def shown(message: Any, category: Any, file: str, *rest: Any, **kwargs: Any) -> None:
            self.facts.training.slips.warned(str(message), (file, *rest)[:2])
            ours = file.startswith(
                _OURS
            )  # Python takes what calls PyTorch, or what is it, for the caller
            frame = self._users(sys._getframe(1)) if ours else None
            if frame is None:
                show(message, category, file, *rest, **kwargs)
            else:
                known, place = frame.f_globals, (frame.f_code.co_filename, frame.f_lineno)
                registry = known.setdefault("__warningregistry__", {})
                warnings.warn_explicit(message, category, *place, known["__name__"], registry)

        return shown

    def _is_users(self, file: str) -> bool:
        found = self._user.get(file)
        if found is None:
            real = os.path.realpath(file)
            installed = "site-packages" in real or real.startswith(_INSTALLED)
            skipped = real.startswith((self._torch_path, _OURS)) or file.startswith(
                ("<frozen", "<gradcli")
            )
            skipped |= self._own_lines if installed else real.startswith(_STANDARD)
            found = self._user[file] = not skipped
        return found

    # -- backward passes of the program's own -----------------------------------------------------
    def _passing(self, run: Any) -> Any:
        """The function with its graph kept, and its gradients counted up on the way."""

        @functools.wraps(run)
        def watched(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            if self._in_transform():
                return run(tensors, *args, **kwargs)
            roots = list(self._tensors([tensors]))
            if self._in_pass:
                return self._inner_pass(run, tensors, roots, args, kwargs)
            if self.end is not None:
                self.end.passing()
            self._stops_at_anomaly(roots)
            last = self._remember(roots, sys._getframe(1))
            place = 2 if run.__name__ == "grad" else 1  # of retain_graph among the rest
            keeps = args[place] if len(args) > place else kwargs.get("retain_graph")
            create = args[place + 1 :] or [kwargs.get("create_graph")]
            whole = place == 1 and kwargs.get("inputs") is None
            frees = whole and not (create[0] if keeps is None else keeps)
            if len(args) > place:
                args = (*args[:place], True, *args[place + 1 :])
            else:
                kwargs["retain_graph"] = True
            self._in_pass += 1
            begun = self.clock()
            try:
                graph = self._begins(roots, frees, sys._getframe(1))
                nodes = graph.nodes
                with self._listening(roots, graph):
                    found = run(tensors, *args, **kwargs)
                if place == 1:
                    self._has_ended(nodes, frees)
                    self._look_at_leaves(roots, nodes, args)
                if last is not None and nodes:
                    self._keep(last, tensors, place, args, kwargs, nodes)
                if self.end is not None:
                    self.end.passes += 1
                self._stops_at_anomaly([])
                return found
            finally:
                self._in_pass -= 1
                if not self._hears_nodes:
                    self._later(sys._getframe(1), begun)

        return watched

    def _stops_at_anomaly(self, roots: list[Any]) -> None:
        """Raise Stopped where anomalies are looked for, and a NaN was found or a root is not finite."""
        if not self.anomalies:
            return
        if self.first is not None or any(readable(root) and has_bad(root) for root in roots):
            self.last = roots[-1] if roots else self.last
            raise Stopped

    def _inner_pass(
        self, run: Any, tensors: Any, roots: list[Any], args: tuple[Any, ...], kwargs: Any
    ) -> Any:
        """A pass within a pass, as checkpointing runs over what it has computed again."""
        with self._listening(roots):
            found = run(tensors, *args, **kwargs)
        if run.__name__ == "backward":
            self._has_ended(_nodes_below(roots), False)
        return found

    def _begins(self, roots: list[Any], frees: bool, frame: FrameType | None) -> Walk:
        """The graph of a pass. Raises RuntimeError where the program runs one a second time."""
        try:
            return self.facts.begins(roots, frees, frame)
        except Exception as error:  # of ours: the program goes on
            if str(error) == SECOND_TIME:
                raise
            self.failed(error)
            return walk([])

    @_quietly
    def _has_ended(self, nodes: list[Any], frees: bool) -> None:
        self.facts.ended(nodes, frees)

    @_quietly
    def _look_at_leaves(self, roots: list[Any], nodes: list[Any], seeds: tuple[Any, ...]) -> None:
        """Find the step that made a NaN, should a gradient have one: the pass once more, heard."""
        if self._is_heard or (self.first is not None and not self._finite):
            return
        leaves = [node.variable for node in nodes if hasattr(node, "variable")]
        grads = [leaf.grad for leaf in leaves if leaf.grad is not None]
        self._is_bad = any(has_bad(grad) for grad in grads)
        if self.first is not None or not self._is_bad:
            return
        with TorchRecorder(roots, heard=self.heard, failed=self.failed).listening():
            inner = [parameter for _, parameter in self.calls.parameters()]
            once_more(roots, seeds[0] if seeds else None, nodes, leaves, inner)

    @contextmanager
    def _listening(self, roots: list[Any], graph: Walk | None = None) -> Iterator[None]:
        with ExitStack() as stack:
            try:
                if self.timed:
                    stack.enter_context(self._timing(_nodes_below(roots)))
                elif self._is_heard or (graph is not None and len(graph) <= self.few):
                    recorder = TorchRecorder(
                        roots,
                        skeleton=graph,
                        heard=self.heard,
                        counted=self._counted,
                        leaves=not self.anomalies,
                        failed=self.failed,
                    )
                    stack.enter_context(recorder.listening())
            except Exception as error:  # of ours: the program goes on
                self.failed(error)
            yield

    @property
    def _is_heard(self) -> bool:
        """Whether every step of the pass that runs is heard: of a last one, or where any may be the first."""
        last = self.end is not None and self.end.is_last
        return self.anomalies or (self.gradients and last)

    @_quietly
    def _keep(
        self, last: LastPass, tensors: Any, place: int, args: Any, kwargs: Any, nodes: list[Any]
    ) -> None:
        """Remember how a pass was run. place: of retain_graph among its arguments."""
        seeds = args[place - 1] if len(args) >= place else None
        if seeds is None:
            seeds = kwargs.get("grad_tensors" if place == 1 else "grad_outputs")
        if not self._accepts(last, nodes):
            return
        inputs = args[0] if place == 2 and args else kwargs.get("inputs")
        with self.torch._C.DisableTorchFunction():
            last.ended(tensors, seeds, inputs, nodes)

    def _accepts(self, last: LastPass, nodes: list[Any]) -> bool:
        """Tell whether the pass that has run is to be looked at in the end; its root and step are kept."""
        is_finite = not (self._is_bad or (self.last is not None and has_bad(self.last)))
        if self._finite and last.step and not is_finite:
            last.is_former = True
            return False
        last.root, last.names = self.last, self._names
        last.step, last.is_former = self.facts.step if is_finite else 0, False
        return True

    def last_finite(self, roots: list[Any]) -> LastPass | None:
        """The last finite pass, where these roots are those of a later one that is not finite."""
        later = [self.last, *self.roots.values()]
        for last in self._last_passes.values() if self._finite and len(roots) == 1 else ():
            if last.is_former and any(roots[0] is one for one in later):
                return last
        return None

    def measure(self) -> None:
        """Count up what reaches the nodes in the last pass, which is run once more for it.

        Raises RuntimeError, in PyTorch's words, where something that it needs was written in place since.
        """

        def recorder(tensors: Any) -> TorchRecorder:
            roots = list(self._tensors([tensors]))
            return TorchRecorder(roots, counted=self._counted, leaves=True)

        inner = [parameter for _, parameter in self.calls.parameters()]
        for last in self._last_passes.values():
            last.again(recorder, inner)

    @contextmanager
    def _timing(self, nodes: list[Any]) -> Iterator[None]:
        """Add up the seconds of the steps of a pass, by the call that made their nodes."""
        begun: dict[Any, float] = {}
        handles = []
        for node in nodes:
            if hasattr(node, "variable"):
                continue
            note = note_of(node)
            call = -1 if note is None else note.call

            def before(grads: Any, node: Any = node) -> None:
                begun[node] = self.now()

            def after(sent: Any, came: Any, node: Any = node, call: int = call) -> None:
                self.calls.took(call, 1, self.now() - begun.get(node, self.now()))

            handles += [node.register_prehook(before), node.register_hook(after)]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def now(self) -> float:
        """Seconds, once a GPU has done what it was told to do."""
        if self.torch.cuda.is_initialized():
            self.torch.cuda.synchronize()
        return time.perf_counter()

    @_quietly
    def _remember(self, roots: list[Any], frame: FrameType | None) -> LastPass | None:
        """Keep what a pass begins at, and its names; what is to know of it when it has ended."""
        self.last = roots[-1] if roots else None
        frame = self._users(frame)
        found = []
        for name, value in {} if frame is None else frame.f_locals.items():
            if any(value is root for root in roots):
                self.roots[name] = value
                found.append(name)
        key = next((name for name in found if name in self._wanted), None)
        if not self.gradients or (self._wanted and key is None):
            return None
        if self._is_heard:  # as it runs: there is nothing to measure at the end
            self._last_passes.pop(key or "", None)
            return None
        last = self._last_passes.setdefault(key or "", LastPass())
        self._is_bad, self._names = False, tuple(found)
        if not (
            self._finite and last.step
        ):  # or the former one is wanted, should this not be finite
            last.begins()
        elif any(readable(root) and has_bad(root) for root in roots):
            last.is_former = True
            return None
        return last


def _nodes_below(roots: Iterable[Any]) -> list[Any]:
    return walk(dict.fromkeys(filter(None, map(node_of, roots)))).nodes


class _Pauses:
    """Times when PyTorch need not tell the mode of its functions: an optimizer's step has very many."""

    def __init__(self, mode: Any) -> None:
        self._mode, self._is_off = mode, False
        self._overrides: Any = import_module("torch.overrides")
        self._torch_c: Any = sys.modules["torch"]._C

    def begin(self) -> None:
        """Take the mode away, if no other lies upon it."""
        count = self._torch_c._len_torch_function_stack()
        if count and self._torch_c._get_function_stack_at(count - 1) is self._mode:
            self._overrides._pop_mode()
            self._is_off = True

    def end(self) -> None:
        """Put it back."""
        if self._is_off:
            self._overrides._push_mode(self._mode)
            self._is_off = False


@contextmanager
def _among_modes(mode: Any) -> Iterator[None]:
    """The mode is active inside, and then it alone is gone: programs leave modes of their own."""
    overrides: Any = import_module("torch.overrides")
    torch_c: Any = sys.modules["torch"]._C
    mode.__enter__()
    try:
        yield
    finally:
        above = []
        while torch_c._len_torch_function_stack():
            last = overrides._pop_mode()
            if last is mode:
                break
            above.append(last)
        for one in reversed(above):
            overrides._push_mode(one)


# They make no tensor and end no graph.
_SILENT = (
    "dim ndimension numel nelement size stride is_complex is_floating_point is_contiguous".split()
)
_SILENT_FIELDS = "device dtype is_leaf is_sparse layout ndim requires_grad shape".split()


def _silent(tensor: Any) -> frozenset[Any]:
    methods = [getattr(tensor, name, None) for name in _SILENT]
    fields = [getattr(tensor, name, None) for name in _SILENT_FIELDS]
    return frozenset([*methods, *(getattr(field, "__get__", None) for field in fields)])


def _mode(watch: Watch) -> Any:
    """PyTorch's own means of seeing every call of its functions."""
    overrides: Any = import_module("torch.overrides")
    silent = _silent(sys.modules["torch"].Tensor)
    functional: Any = import_module("torch.nn.functional")
    looks = {
        getattr(functional, name): look
        for name, look in watch.facts.training.slips.functions().items()
    }

    class Mode(overrides.TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if function in silent or watch.facts.training.stepping:
                return function(*args, **(kwargs or {}))
            if watch.program and function in looks:
                looks[function](sys._getframe(1), *args, **(kwargs or {}))
            number = watch.clock()
            begun = watch.now() if watch.timed else 0.0
            try:
                out = function(*args, **(kwargs or {}))
            except Exception:  # of the user's call, which goes on to the user
                watch.facts.training.failed(function, args, sys._getframe(1))
                raise
            if watch.timed:
                watch.calls.took(watch.calls.current, 0, watch.now() - begun)
            given = (*args, *kwargs.values()) if kwargs else args
            watch.heard_call(function, out, given, sys._getframe(1), number)
            return out

    return Mode()

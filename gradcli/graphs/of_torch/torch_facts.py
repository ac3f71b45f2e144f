"""What a running PyTorch program does that its graph does not show: where gradients are cut, what is written
in place, which graphs outlive their step. `diagnosis.py` reads it."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from itertools import islice
from types import FrameType
from typing import Any

from gradcli.graphs.of_torch.cut_paths import CutPaths, cuts_of
from gradcli.graphs.of_torch.torch_notes import Note, note_of
from gradcli.graphs.of_torch.torch_tensors import (
    is_dense,
    is_torch_tensor,
    memory_of,
    node_of,
    readable,
)
from gradcli.graphs.of_torch.training_facts import JUDGES, PAIRS, Reach, Training, looking
from gradcli.graphs.probes import Place
from gradcli.graphs.traversal import Walk, walk

Where = tuple[str | None, int]
PLAIN = frozenset(("item", "tolist", "numpy", "__float__", "__int__", "__array__"))
# Library code that works on parameters outside of any forward pass.
_UPKEEP = (
    *("torch/optim/", "torch/nn/init.py", "torch/nn/utils/"),  # PyTorch's, and ours
    *("torch/serialization.py", "torch/_tensor_str.py"),
)
# and that copies, saves or shows them
_COPIES = frozenset("__deepcopy__ __reduce_ex__ __repr__ state_dict load_state_dict _apply".split())
MOST_WALKS = 64  # of the operands that one line cuts off
MANY = 3  # graphs of earlier steps alive at once: more than two losses of a step leave
SECOND_TIME = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they "
    "have already been freed). Saved intermediate values of the graph are freed when you call "
    ".backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the "
    "graph a second time or if you need to access saved tensors after calling backward."
)


@dataclass(slots=True, eq=False)
class Cut:
    """A line whose results have no gradient though an operand had: `leaves` are behind it, by id."""

    kind: str
    place: Place
    order: int  # among the cuts of the run
    leaves: set[int] = field(default_factory=set)
    walks: int = 0


@dataclass(slots=True)
class Leak:
    """Graphs of earlier steps that a variable keeps alive."""

    name: str
    count: int
    place: Place | None


class Facts:
    """Facts of a run, by id of a leaf or by address of a storage; no tensor of a graph is kept."""

    def __init__(
        self,
        torch: Any,
        where: Callable[[FrameType | None], Where],
        failed: Callable[[Exception], None],
        unwatched: Callable[[], Any],
    ) -> None:
        """torch: PyTorch, or gradcli in its place. unwatched: a context in which nobody looks."""
        self._where, self._failed = where, failed
        self._torch = torch
        self._data, self._grad = self._torch.Tensor.data, self._torch.Tensor.grad
        self._requires = self._torch.Tensor.requires_grad
        self.cuts: dict[tuple[str | None, int, str], Cut] = {}
        self._paths = CutPaths()
        self.writes: dict[int, dict[Where, int]] = {}  # storage -> line -> version that it made
        self.by_hand: set[int] = (
            set()
        )  # storages of leaves that the program itself writes, after a pass
        self.born: dict[int, Where] = {}  # parameter -> the line that made its module
        self.trained: set[int] = set()  # parameters that have had a gradient
        self.optimized: set[int] = set()  # and those that an optimizer has stepped
        self.step = 0  # backward passes so far
        self.partial = False  # the graph is none that a backward pass has run over
        self.leak: Leak | None = None
        self.training = Training(torch, where, failed, unwatched)
        self.nonfinite: Any = None  # torch_anomaly.Found
        self._alive: list[weakref.ref[Note]] = []

    def hooks(self) -> list[Any]:
        """Hear of new parameters and of steps of optimizers; what ends that."""
        name = self._torch.__name__
        modules, optimizers = map(
            import_module, (f"{name}.nn.modules.module", f"{name}.optim.optimizer")
        )
        return [
            modules.register_module_parameter_registration_hook(
                looking(self._parameter, self._failed)
            ).remove,
            optimizers.register_optimizer_step_post_hook(
                looking(self._stepped, self._failed)
            ).remove,
            *self.training.hooks(),
        ]

    def _parameter(self, module: Any, name: str, parameter: Any) -> None:
        if parameter is not None:
            self.born[id(parameter)] = self._where(sys._getframe(1))

    def _stepped(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        where = self._where(sys._getframe(1))
        for group in optimizer.param_groups:
            self.optimized.update(map(id, group["params"]))
            for parameter in group["params"]:
                if parameter.grad is not None and is_dense(parameter):
                    address = memory_of(parameter)
                    self.writes.setdefault(address, {})[where] = parameter._version

    # -- operations ------------------------------------------------------------------------------
    def called(self, function: Any, out: Any, given: Any, frame: FrameType | None) -> str:
        """A function of PyTorch's has run; its name."""
        name: str = getattr(function, "__name__", "a function")
        if name == "__get__":
            asked = getattr(function, "__self__", None)
            if asked is self._grad and out is None:
                self.training.read_grad(given[0], frame)
            if asked is not self._data:
                return name
            name = "data"
        elif name == "__set__" and getattr(function, "__self__", None) is self._requires:
            self.training.slips.freezes(given[0], given[1], frame)
        elif name == "requires_grad_":
            self.training.slips.freezes(given[0], given[1] if len(given) > 1 else True, frame)
        self.heard(name, out, given, frame)
        return name

    def heard(self, name: str, out: Any, given: Any, frame: FrameType | None) -> None:
        """An operation of this name has run on what was given, and returned `out`."""
        if name in PAIRS:
            self.training.paired(name, given, frame)
        writes = name == "__setitem__" or (name[-1] == "_" and name[:2] != "__")
        if self._paths:
            made = tensors_among([next(iter(given), None) if out is None else out])
            self._paths.follow(made, tensors_among(given))
        if writes or (name[:3] == "__i" and is_torch_tensor(out)):
            self._wrote(next(iter(given), None), frame)
        elif (is_torch_tensor(out) and not out.requires_grad) or name in PLAIN:
            operands = [t for t in tensors_among(given) if t.requires_grad and readable(t)]
            if operands and not name.startswith("new_") and not name.endswith("_like"):
                self._cut(name, out, operands, frame)
            if name in JUDGES and self.training.watches_outputs:
                self.training.judged(given)

    def _wrote(self, target: Any, frame: FrameType | None) -> None:
        for tensor in tensors_among([target]):
            self.wrote(tensor, tensor._version, frame)

    def wrote(self, tensor: Any, version: int, frame: FrameType | None) -> None:
        """A tensor was written in place, which made this version of it."""
        where = self._where(frame)
        if readable(tensor) and is_dense(tensor):
            address = memory_of(tensor)
            self.writes.setdefault(address, {})[where] = version
            own = self.step and tensor.is_leaf and where[0] is not None
            if own and address not in self.by_hand and not _is_upkeep(frame, where[0] or ""):
                self.by_hand.add(address)

    def _cut(self, name: str, out: Any, operands: list[Any], frame: FrameType | None) -> None:
        if not self._torch.is_grad_enabled() and name not in PLAIN:
            name = "no_grad"
        elif name not in PLAIN and not (out.is_floating_point() or out.is_complex()):
            name = f"whole numbers of {name}"
        file, line = self._where(frame)
        cut = self.cuts.get((file, line, name))
        if cut is None:
            place = Place.at(file, line)
            if place is None or _is_upkeep(frame, place.file):
                return
            cut = self.cuts[file, line, name] = Cut(name, place, len(self.cuts))
        if is_torch_tensor(out):
            self._paths.begins(out, cut)
        for tensor in operands:
            node = node_of(tensor)
            if node is None:
                base = (
                    tensor._base
                )  # `weight.t()` under no_grad is a leaf, too, and means the weight
                cut.leaves.add(id(tensor if base is None else base))
            elif cut.walks < MOST_WALKS:
                cut.walks += 1
                found = walk([node]).nodes
                cut.leaves.update(id(n.variable) for n in found if hasattr(n, "variable"))

    # -- backward passes -------------------------------------------------------------------------
    def begins(self, roots: list[Any], frees: bool, frame: FrameType | None) -> Walk:
        """A pass begins; its graph. Raises RuntimeError where PyTorch would, had the graph not been kept."""
        self.step += 1
        starts = [node for node in map(node_of, roots) if node is not None]
        found = walk(dict.fromkeys(starts))
        nodes = found.nodes
        if frees:
            for node in nodes:
                note = note_of(node)
                if note is not None and note.spent and _saves(node):
                    raise RuntimeError(SECOND_TIME)
        notes = (note_of(node) for node in nodes)
        calls = {note.call for note in notes if note is not None}
        leaves = {id(node.variable) for node in nodes if hasattr(node, "variable")}
        self.training.begins(roots, calls, Reach(leaves, cuts_of(nodes)), frame)
        self._count_alive(frame)
        self._alive += [weakref.ref(n) for n in map(note_of, starts) if n is not None]
        return found

    def ended(self, nodes: list[Any], frees: bool) -> None:
        """A pass has ended."""
        self.training.ended()
        for node in nodes:
            leaf = getattr(node, "variable", None)
            if leaf is not None:
                self.trained.add(id(leaf))
            elif frees and (note := note_of(node)) is not None:
                note.spent = True

    def _count_alive(self, frame: FrameType | None) -> None:
        self._alive = [ref for ref in self._alive if ref() is not None]
        count = len(self._alive)
        if count < MANY:
            return
        if self.leak is not None and count < 2 * self.leak.count:
            self.leak.count = max(count, self.leak.count)
            return
        earlier = {id(ref()) for ref in self._alive}
        while frame is not None and _is_librarys(frame):
            frame = frame.f_back
        names = {} if frame is None else {**frame.f_globals, **frame.f_locals}
        for name, value in names.items():
            held = list(tensors_among(value.values() if isinstance(value, dict) else [value]))
            starts = [node for node in map(node_of, held[:MOST_WALKS]) if node is not None]
            found = walk(dict.fromkeys(starts)).nodes if starts else []
            hanging = sum(id(note_of(node)) in earlier for node in found)
            if hanging >= MANY:
                note = note_of(starts[0])
                self.leak = Leak(name, count, None if note is None else note.place)
                return


def _is_librarys(frame: FrameType) -> bool:
    name = frame.f_globals.get("__name__", "")
    return "torch" in name or name.partition(".")[0] == "gradcli"


def tensors_among(values: Iterable[Any]) -> Iterator[Any]:
    """The tensors among values, and in lists of them."""
    for one in values:
        if is_torch_tensor(one):
            yield one
        elif isinstance(one, tuple | list):
            yield from tensors_among(islice(one, 1000))


def _saves(node: Any) -> bool:
    if hasattr(node, "saved_items"):  # one of ours
        return bool(node._saved)
    names = (name for name in dir(type(node)) if name.startswith("_raw_saved_"))
    raws = (getattr(node, name, None) for name in names)
    return any(
        getattr(raw, "data", raw) is not None for raw in raws
    )  # not told before PyTorch 2.10


def _is_upkeep(frame: FrameType | None, users: str) -> bool:
    while frame is not None and frame.f_code.co_filename != users:
        file, name = frame.f_code.co_filename.replace("\\", "/"), frame.f_code.co_name
        if name in _COPIES or any(part in file for part in _UPKEEP):
            return True
        frame = frame.f_back
    return False

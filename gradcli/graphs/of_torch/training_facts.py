"""What a training loop does around its graphs: optimizers, their steps and zeros, modes, losses.

Nothing here keeps a tensor of a graph alive; parameters are known by id as long as their optimizer lives.
"""

from __future__ import annotations

import sys
import weakref
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from importlib import import_module
from types import FrameType
from typing import Any

from gradcli.graphs.of_torch.slips import Slips
from gradcli.graphs.of_torch.torch_notes import note_of
from gradcli.graphs.of_torch.torch_tensors import is_dense, is_torch_tensor, node_of, readable

Where = tuple[str | None, int]
LOOKED_AT = 3  # parameters of an optimizer, to know whether it has been zeroed
MOST_COPIED = 1 << 20  # elements of a weight that is copied to measure a step
# What judges predictions: called on a model's output under no_grad, it makes an evaluation.
JUDGES = frozenset(
    "argmax max topk cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss huber_loss "
    "binary_cross_entropy binary_cross_entropy_with_logits eq __eq__ gt __gt__ ge __ge__ sub __sub__".split()
)
PAIRS = frozenset("sub __sub__ rsub __rsub__ mse_loss l1_loss smooth_l1_loss huber_loss".split())


@dataclass(slots=True)
class Update:
    """One measured step of a weight: its number, the weight by id, |step|, and |weight| before it."""

    step: int
    parameter: int
    change: float
    size: float
    lost: float  # the share of elements with a gradient that it has not changed


@dataclass(slots=True)
class Reach:
    """What a backward pass reaches: leaves, by id, and the cuts behind which there is more."""

    leaves: set[int]
    cuts: set[Any]


@dataclass(slots=True)
class Optimizer:
    """What is known of one optimizer."""

    ref: Any
    kind: str
    made: Where
    order: int  # when it was made, among optimizers and parameters
    parameters: dict[int, Any]  # by id; held, as the optimizer holds them
    steps: int = 0
    clean: bool = True  # zeroed since its last step
    backward: Where = (None, 0)  # the last pass since its last step
    zeroed: Where = (None, 0)  # the last zero_grad since that pass
    stepped: Where = (None, 0)
    rate: float | None = None  # lr of its first group, as of its last step
    momentum: float | None = None  # of that group; None: it has none
    empty: int = 0  # steps that found no gradient
    empty_after: Where = (None, 0)  # the zero_grad that took it away; none: no pass has run
    early: bool = False  # no pass had run before its first step
    name: str | None = None  # the program's
    is_reached: bool = False  # by a pass since its gradients were zeroed
    cuts: set[Any] = field(default_factory=set)  # of the passes that ran for its next step
    unreached: int = 0  # steps that found no gradient, as no pass since zero_grad had reached one
    lost: set[Any] = field(default_factory=set)  # the cuts of those steps' passes
    lost_at: Where = (None, 0)  # the last of these passes
    remembers: tuple[str, ...] = ()  # the names of tensors that it keeps for a parameter
    unused: int = 0  # passes whose gradients it has zeroed before its first step
    last_pass: Where = (None, 0)  # the last of these
    norm: float = 0.0  # of the largest of their gradients, of a few parameters
    stale: int = 0  # steps of gradients that an earlier step has used already
    sums: tuple[float, float] = (
        0.0,
        0.0,
    )  # |grad| before and after the pass in which that was seen
    before: tuple[int, float] = (0, 0.0)
    updates: list[Update] = field(default_factory=list)
    modes: set[tuple[int, bool]] = field(
        default_factory=set
    )  # modules in the passes since the last step
    among: list[Optimizer] = field(default_factory=list)  # all of the program's

    @property
    def called(self) -> str:
        """Its class, with the program's name of it where there are several."""
        alone = len(self.among) == 1 or self.name is None
        return self.kind if alone else f"{self.name} ({self.kind})"


@dataclass(slots=True)
class Mode:
    """The calls of a whole model with layers that differ between training and evaluation."""

    ref: Any
    layers: str  # "2 Dropout, 1 BatchNorm1d"
    line: Where = (None, 0)  # of its last call in training
    trained: int = 0  # steps whose graphs it made in train mode
    trained_in_eval: int = 0
    judged: int = 0  # evaluations in train mode
    judged_at: Where = (None, 0)
    evals: Where = (None, 0)  # the last call of eval()


@dataclass(slots=True)
class Unread:
    """`.grad` of a tensor that is no leaf was read, and is None."""

    name: str | None
    where: Where
    made: Any  # the Place that made it, if it is known


class Training:
    """Facts of a training loop."""

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
        self._grad = self._torch.Tensor.grad
        self.optimizers: list[Optimizer] = []
        self.made: dict[int, tuple[Where, int]] = {}  # parameter -> the line that made it, and when
        self.modes: dict[int, Mode | None] = {}  # by id of a module
        self._roots: list[int] = []  # numbers of calls of whole models, in order
        self._called: list[tuple[int, bool, Where]] = []
        self._outputs: dict[int, tuple[Any, int, Where]] = {}  # by id of an output under no_grad
        self._judged: set[tuple[int, int]] = set()
        self.losses: list[float] = []
        self.broadcasts: dict[Where, tuple[str, tuple[int, ...], tuple[int, ...]]] = {}
        self.unread: list[Unread] = []
        self.refused: tuple[str, list[tuple[str, str]]] | None = None
        self._order = 0
        self._is_new = False  # an optimizer has stepped: the next pass is for another step
        self.stepping = False  # an optimizer steps: its own operations are nobody's lines
        self.pauses: Any = None  # `begin()` and `end()` around such operations
        self._pairs: list[tuple[Any, Any]] = []
        self._unwatched = unwatched
        self.slips = Slips(torch, where, failed, unwatched)

    def hooks(self) -> list[Any]:
        """Hear of optimizers, of Parameters and of `eval()`; what ends that."""
        name = self._torch.__name__
        optim: Any = import_module(f"{name}.optim.optimizer")
        nn: Any = import_module(f"{name}.nn")
        ends = [
            optim.register_optimizer_step_pre_hook(self._quietly(self._steps)).remove,
            optim.register_optimizer_step_post_hook(self._quietly(self._stepped)).remove,
        ]
        zeroed = looking(self._zeroed, self._failed)
        created = looking(self._optimizer_made, self._failed)
        ends += _around(optim.Optimizer, "__init__", after=created)
        ends += _around(optim.Optimizer, "zero_grad", before=zeroed, inside=self._pausing)
        ends += _around(nn.Module, "zero_grad", before=zeroed, inside=self._pausing)
        ends += _around(nn.Module, "eval", before=looking(self._eval, self._failed))
        ends += self.slips.hooks()
        seen = looking(self._parameter_made, self._failed)
        make = nn.Parameter.__dict__["__new__"]

        def made(cls: Any, *args: Any, **kwargs: Any) -> Any:
            found = make.__get__(None, cls)(cls, *args, **kwargs)
            seen(found, sys._getframe(1))
            return found

        nn.Parameter.__new__ = made
        return [*ends, lambda: setattr(nn.Parameter, "__new__", make)]

    def _quietly(self, hook: Any) -> Any:
        """A hook whose own operations nobody watches."""

        def quiet(optimizer: Any, args: Any, kwargs: Any) -> None:
            with self._unwatched():
                hook(optimizer, args, kwargs)

        return looking(quiet, self._failed)

    def _parameter_made(self, parameter: Any, frame: FrameType | None) -> None:
        self._order += 1
        self.made[id(parameter)] = self._where(frame), self._order

    # -- optimizers --------------------------------------------------------------------------------
    def _optimizer_made(self, optimizer: Any, frame: FrameType | None) -> None:
        self._order += 1
        held = {id(p): p for group in optimizer.param_groups for p in group["params"]}
        made = Optimizer(
            *(
                weakref.ref(optimizer),
                type(optimizer).__name__,
                self._where(frame),
                self._order,
                held,
            )
        )
        self.optimizers.append(made)
        made.among = self.optimizers

    @contextmanager
    def _pausing(self) -> Iterator[None]:
        """Inside, no function is heard."""
        if self.pauses is not None:
            self.pauses.begin()
        try:
            yield
        finally:
            self._goes_on()

    def _goes_on(self) -> None:
        """What runs is the program's again, be it that a step has failed."""
        self.stepping = False
        if self.pauses is not None:
            self.pauses.end()

    def _known(self, optimizer: Any) -> Optimizer | None:
        return next((one for one in self.optimizers if one.ref() is optimizer), None)

    def _zeroed(self, owner: Any, frame: FrameType | None) -> None:
        where = self._where(frame)
        owned = set(map(id, owner.parameters())) if hasattr(owner, "parameters") else set()
        for one in self.optimizers:
            if one.ref() is owner and not one.steps:
                self._is_unused(one)
            if one.ref() is owner or owned & one.parameters.keys():
                one.zeroed = where
                one.is_reached = False
                one.cuts.clear()

    def _is_unused(self, one: Optimizer) -> None:
        """An optimizer that has made no step zeroes the gradients of a pass."""
        if one.backward[0] is None or one.zeroed[0] is not None:
            return
        looked = [p.grad for p in one.parameters.values() if _has_grad(p)][:LOOKED_AT]
        if looked:
            one.unused, one.last_pass = one.unused + 1, one.backward
            one.norm = max(one.norm, *(float(grad.norm()) for grad in looked))

    def _steps(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """A step begins."""
        known = self._known(optimizer)
        if known is None:
            return
        groups = optimizer.param_groups
        known.parameters.update((id(p), p) for group in groups for p in group["params"])
        known.stepped = self._where(sys._getframe(2))
        known.name = known.name or name_in(sys._getframe(2), optimizer, known.stepped[0])
        rate = groups[0].get("lr") if groups else None
        known.rate = None if rate is None else float(rate)
        known.momentum = groups[0].get("momentum") if groups else None
        self.stepping = not (any(args[1:]) or kwargs.get("closure") is not None)
        if not self.stepping:
            known.clean = True
            return  # it runs backward itself
        if self.pauses is not None:
            self.pauses.begin()
        if not any(_has_grad(p) for p in known.parameters.values()):
            if known.backward[0] is not None and known.zeroed[0] is None:
                if not known.is_reached and any(p.requires_grad for p in known.parameters.values()):
                    known.unreached, known.lost_at = known.unreached + 1, known.backward
                    known.lost |= known.cuts
                return  # or the pass has found 0: another finding
            known.empty += 1
            known.early = known.early or (known.steps == 0 and known.backward[0] is None)
            known.empty_after = known.zeroed if known.backward[0] is not None else (None, 0)
        elif known.steps and not known.clean:
            known.stale += 1
        self._pairs = []
        if _is_measured(known.steps):
            self._pairs = [(p, p.detach().clone()) for p in _weights(known.parameters.values())]

    def _stepped(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """A step has ended."""
        self._goes_on()
        known = self._known(optimizer)
        if known is None:
            return
        for p, before in self._pairs:
            size = _size(before)
            if size:
                change = p.detach() - before
                lost = _lost(p.grad, change)
                known.updates.append(Update(known.steps + 1, id(p), _size(change), size, lost))
        self._pairs = []
        known.steps += 1
        self.slips.stepped(known.parameters.values())
        if not known.remembers:
            known.remembers = _remembered(optimizer)
        for key, trains in known.modes:
            mode = self.modes.get(key)
            if mode is not None and (key, not trains) not in known.modes:
                if trains:
                    mode.trained += 1
                else:
                    mode.trained_in_eval += 1
        known.modes.clear()
        known.clean, known.backward, known.zeroed = False, (None, 0), (None, 0)
        known.is_reached, self._is_new = False, True
        known.cuts.clear()

    # -- backward passes ---------------------------------------------------------------------------
    def begins(
        self, roots: list[Any], calls: Iterable[int], reach: Reach, frame: FrameType | None
    ) -> None:
        """A backward pass begins, over a graph that these calls of modules have made."""
        with self._unwatched():
            self._begins(roots, calls, self._where(frame))
            self._reaches(reach)

    def _reaches(self, reach: Reach) -> None:
        """Remember for whom a pass is: those before another's step were made for that step."""
        for one in self.optimizers:
            one.cuts = reach.cuts | (set() if self._is_new else one.cuts)
            one.is_reached = one.is_reached or not reach.leaves.isdisjoint(one.parameters)
        self._is_new = False

    def _begins(self, roots: list[Any], calls: Iterable[int], where: Where) -> None:
        self._goes_on()
        root = roots[0] if roots else None
        if root is not None and root.numel() == 1 and readable(root) and len(self.losses) < 100_000:
            self.losses.append(float(root.detach()))
        used = set()
        for call in calls:
            at = bisect_right(self._roots, call) - 1
            if at >= 0:
                used.add(self._called[at][:2])
        for one in self.optimizers:
            looked = [p for p in one.parameters.values() if p.requires_grad][:LOOKED_AT]
            if not any(_has_grad(p) for p in looked):
                one.clean = True
                one.modes.clear()
            one.modes |= used
            one.before = (0, 0.0)
            if one.steps and not one.clean and not one.sums[1]:
                p = next(p for p in looked if _has_grad(p))
                one.before = id(p), float(p.grad.norm())
            one.backward, one.zeroed = where, (None, 0)

    def ended(self) -> None:
        """The pass has ended."""
        for one in self.optimizers:
            if one.before[0]:
                with self._unwatched():
                    after = one.parameters[one.before[0]].grad
                one.sums = one.before[1], float("nan") if after is None else float(after.norm())
                one.before = (0, 0.0)

    # -- modes -------------------------------------------------------------------------------------
    def enters(self, module: Any, call: int, frame: FrameType | None) -> None:
        """A whole model is called."""
        self._goes_on()
        self.slips.is_judging = not module.training
        mode = self._mode(module)
        if mode is None:
            return
        where = self._where(frame)
        self._roots.append(call)
        self._called.append((id(module), bool(module.training), where))
        if self._torch.is_grad_enabled():
            mode.line = where

    def leaves(self, module: Any, output: Any) -> None:
        """A whole model has returned."""
        self.slips.is_judging = False
        if self._torch.is_grad_enabled() or not module.training or self._mode(module) is None:
            return
        if is_torch_tensor(output):
            if len(self._outputs) > 100:
                self._outputs.clear()
            where = self._called[-1][2]
            self._outputs[id(output)] = weakref.ref(output), id(module), where

    def judged(self, given: Iterable[Any]) -> None:
        """A function that judges predictions has been called without a graph."""
        for one in given:
            known = self._outputs.get(id(one))
            if known is not None and known[0]() is one:
                mode = self.modes[known[1]]
                if mode is not None:
                    mode.judged += 1
                    mode.judged_at = known[2]
                del self._outputs[id(one)]

    @property
    def watches_outputs(self) -> bool:
        """Tell whether an output waits to be judged."""
        return bool(self._outputs)

    def _mode(self, module: Any) -> Mode | None:
        key = id(module)
        known = self.modes.get(key)
        if key in self.modes and (known is None or known.ref() is module):
            return known
        count: dict[str, int] = {}
        for part in module.modules():
            kind = type(part).__name__
            drops = "Dropout" in kind and getattr(part, "p", 0.0) != 0
            if drops or ("BatchNorm" in kind and bool(getattr(part, "track_running_stats", False))):
                count[kind] = count.get(kind, 0) + 1
        words = ", ".join(f"{n} {kind}" for kind, n in count.items())
        self.modes[key] = found = Mode(weakref.ref(module), words) if count else None
        return found

    def _eval(self, module: Any, frame: FrameType | None) -> None:
        mode = self._mode(module)
        if mode is not None:
            mode.evals = self._where(frame)

    # -- calls -------------------------------------------------------------------------------------
    def paired(self, name: str, given: tuple[Any, ...], frame: FrameType | None) -> None:
        """Two operands of a difference or of a loss: remember those that are spread against one another."""
        if len(given) < 2 or not (is_torch_tensor(given[0]) and is_torch_tensor(given[1])):
            return
        a, b = tuple(given[0].shape), tuple(given[1].shape)
        if len(a) == len(b) or not a or not b or a[-1:] == b[-1:]:
            return
        long, short = (a, b) if len(a) > len(b) else (b, a)
        spreads = long[-1] == 1 and long[-1 - len(short) : -1] == short and short[-1] > 1
        if spreads and given[0].requires_grad != given[1].requires_grad:
            self.broadcasts[self._where(frame)] = name, a, b

    def read_grad(self, tensor: Any, frame: FrameType | None) -> None:
        """`.grad` of a tensor was None."""
        if (
            tensor.requires_grad
            and not tensor.is_leaf
            and not tensor.retains_grad
            and len(self.unread) < 10
        ):
            where = self._where(frame)
            if where[0] is not None and where not in [one.where for one in self.unread]:
                note = note_of(node_of(tensor))
                made = None if note is None else note.place
                self.unread.append(Unread(name_in(frame, tensor, where[0]), where, made))

    def failed(self, function: Any, given: Iterable[Any], frame: FrameType | None) -> None:
        """A function has refused its arguments: remember their names, dtypes and shapes."""
        self.refused_by(getattr(function, "__name__", "a function"), given, frame)

    def refused_by(self, name: str, given: Iterable[Any], frame: FrameType | None) -> None:
        """A function of this name has refused its arguments."""
        if name == "backward":
            return
        file = self._where(frame)[0]
        found = []
        for one in given:
            if is_torch_tensor(one):
                called = name_in(frame, one, file) or ""
                found.append(
                    (called, f"{str(one.dtype).removeprefix('torch.')} {tuple(one.shape)}")
                )
        self.refused = name, found


def name_in(frame: FrameType | None, wanted: Any, file: str | None) -> str | None:
    """What the innermost of the user's functions calls a tensor, or an optimizer."""
    while frame is not None:
        if frame.f_code.co_filename == file:
            for name, value in frame.f_locals.items():
                if value is wanted:
                    return name
                held = getattr(value, "__dict__", None) if name == "self" else None
                for part, one in held.items() if isinstance(held, dict) else ():
                    if one is wanted:
                        return f"{name}.{part}"
        frame = frame.f_back
    return None


def _has_grad(parameter: Any) -> bool:
    grad = parameter.grad
    if grad is None:
        return False
    if str(grad.layout) != "torch.strided":
        return True
    return bool(grad.detach().any())


def _remembered(optimizer: Any) -> tuple[str, ...]:
    """The names of tensors that an optimizer keeps of a parameter, and that have its shape."""
    for parameter, state in optimizer.state.items():
        found = [n for n, v in state.items() if getattr(v, "shape", None) == parameter.shape]
        if found and parameter.ndim:
            return tuple(found)
    return ()


def _size(tensor: Any) -> float:
    """The norm, whose squares would overflow in float32 before a large step does."""
    return float(tensor.abs().double().norm())


def _lost(grad: Any, change: Any) -> float:
    """The share of the elements with a gradient that have not changed."""
    if grad is None or not is_dense(grad):
        return 0.0
    wanted = grad.detach() != 0
    return float((wanted & (change == 0)).sum()) / max(1, int(wanted.sum()))


def _is_measured(steps: int) -> bool:
    """Tell whether a step is measured: the first four, then each whose number is a power of two."""
    return steps < 4 or (steps + 1) & steps == 0


def _weights(parameters: Iterable[Any]) -> list[Any]:
    """A few weights with at least two dimensions: the first, the middle and the last."""
    found = [
        p
        for p in parameters
        if p.ndim >= 2 and 16 <= p.numel() <= MOST_COPIED and p.grad is not None
    ]
    return (
        [found[0], *found[len(found) // 2 : len(found) // 2 + 1], found[-1]]
        if len(found) > 3
        else found
    )


def looking(look: Callable[..., None], failed: Callable[[Exception], None]) -> Callable[..., None]:
    """A hook that looks at the program: a failure of it is told to `failed`, and the program goes on."""

    def quiet(*args: Any) -> None:
        try:
            look(*args)
        except Exception as error:  # of ours
            failed(error)

    return quiet


def _around(
    owner: Any, name: str, *, before: Any = None, after: Any = None, inside: Any = nullcontext
) -> list[Any]:
    """Call something before or after a method, with its object and the caller's frame; what ends that.

    inside: what the method runs in.
    """
    former = owner.__dict__[name]

    def around(self: Any, *args: Any, **kwargs: Any) -> Any:
        if before is not None:
            before(self, sys._getframe(1))
        with inside():
            found = former(self, *args, **kwargs)
        if after is not None:
            after(self, sys._getframe(1))
        return found

    around.__name__, around.__doc__ = name, former.__doc__
    around.__wrapped__ = former  # type: ignore[attr-defined]
    setattr(owner, name, around)
    return [lambda: setattr(owner, name, former)]

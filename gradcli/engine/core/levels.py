"""Levels: which of `func`'s derivatives a tensor's history belongs to.

Each `grad`, `vjp`, `jvp` or Jacobian at work is a level above those around it; the program itself is the
lowest. All levels record on one tape: an operation on tensors of several levels is recorded once, for each
of them. What tells them apart is where the tape ends: a level has variables of its own, and nobody else
ends there. Levels along tangents have no variables: their tangents are told apart by level
(transforms.forward_mode). Three rules keep the others apart.

1. A level differentiates by its own variables alone, which are new at every call, and records its
   derivative where that depends on anything below: see `Reverse.needs`.
2. What a level returns is a constant of it: its variables are taken off the tape (`Reverse.close`), so
   that the result depends on what is below, and is recorded exactly where it does.
3. Grad mode belongs to the level that sets it. A level differentiates in whatever mode it is called, and
   what it has made for a level in which nothing is recorded is a constant of all levels. What is older
   than it stays as it is; so do views of that, which follow it in every mode.

Batches (core.batched_arrays) are no levels: the ways into a batch and out of it are on the tape, as rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf
from typing import Any
from weakref import ref

from gradcli.engine.core import modes, versions
from gradcli.engine.core.node import AccumulateGrad, Node, Port
from gradcli.engine.core.plain_pass import by_sequence, discover, leaves
from gradcli.engine.core.tensor import LAZY, Shown, Tensor, edge, track_view, wrap
from gradcli.engine.core.version_checks import drop_unneeded


class Level:
    """A derivative at work: a context manager. Those along tangents need no more than this.

    recorded: whether the level below records what it gets. since: the tick at which it was opened.
    Inside, inference mode is not that of the level; what is below it keeps no tangents then.
    """

    def __enter__(self) -> Level:
        state = modes.current()
        self.since = versions.tick()
        self._nested = modes.nested.set((*modes.nested.get(), self))
        self.depth, self.recorded = modes.depth(), modes.is_grad_enabled()
        modes.differentiating.append(None)
        self._transforms = modes.transforms.set(modes.transforms.get() + 1)
        push = None if state.inference else state.intercept
        self._mode = modes.change(enabled=self._enabled(), inference=False, intercept=push)
        return self

    def _enabled(self) -> bool:
        return modes.is_grad_enabled()

    def variables(self) -> list[Tensor]:
        """The tensors that the level differentiates by."""
        return []

    def passed(self, tensor: Tensor) -> Any:
        """An argument that the level does not differentiate by: not captured, so that it may be written."""
        if not isinstance(tensor, Tensor):
            return tensor
        out: Tensor = tensor.view_as(tensor)
        out.shows = Shown(tensor, self.since)
        return out

    def __exit__(self, *error: object) -> None:
        modes.restore(self._mode)
        modes.transforms.reset(self._transforms)
        modes.differentiating.pop()
        modes.nested.reset(self._nested)


class Reverse(Level):
    """A level that differentiates by variables of its own, on the tape.

    is_open: whether the level is at work; the variables of one that is not are constants.
    """

    is_open = needed = True

    def _enabled(self) -> bool:
        return True

    def __enter__(self) -> Reverse:
        super().__enter__()
        self._given: dict[int, Tensor] = {}  # what is not recorded, by the variable of it
        self._variables: list[ref[Tensor]] = []
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self.is_open = False

    def variable(self, tensor: Tensor) -> Tensor:
        """A variable of this level with the values of a tensor, connected to it where it is recorded."""
        out = _alias(tensor)
        out.shows = Shown(tensor, self.since)
        if tensor.node is not None and self.recorded:
            out.node = tensor.view_as(tensor).node
        else:
            if not self.recorded:
                self._given[id(out)] = tensor
            wanted = "only Tensors of floating point dtype can require gradients"
            out._set_requires_grad(True, wanted)
        out.level = self
        self._variables.append(ref(out))
        return out

    def variables(self) -> list[Tensor]:
        return [v for r in self._variables if (v := r()) is not None]

    def needs(self, tensors: Iterable[Tensor], captured: bool = False) -> bool:
        """Whether derivatives of tensors must be recorded: somebody below may differentiate them.

        captured: they have saved what leads to leaves that their own graph no longer ends in.
        """
        found = leaves(map(edge, _with_tangents(tensors)))
        self.needed = self.recorded and (captured or not all(map(self._gone, found)))
        return self.needed

    def forget_below(self, tensors: Iterable[Tensor]) -> None:
        """Where the level below does not record, let tensors depend on this level's variables alone."""
        if not self.recorded:
            _lost(_recorded(tensors), self._gone, lambda leaf: leaf.level is not self, self.since)

    def close(self, tensors: list[Tensor], again: bool = False) -> list[Tensor]:
        """Tensors as the level below gets them: recorded there where they depend on anything there.

        again: the level's variables are needed again, so that the graph stays as it is.
        """
        every = _recorded(_with_tangents(tensors))
        if self.recorded and self.needed:
            lost = _lost(every, self._gone, None if again else self._own)
        else:
            lost = {id(t) for t in every if t.made_at() > self.since}
        return [self._followed(t, lost) for t in tensors]

    def _followed(self, tensor: Tensor, lost: set[int]) -> Tensor:
        """A tensor without what is lost; views made under `no_grad` follow what they are views of, below."""
        base = tensor.base
        if base is not None and tensor.node is LAZY and tensor.is_lazy_view:
            if base.level is self and base.shows is not None:
                out = wrap(tensor.memory())
                return track_view(out, base.shows.tensor, False, modes.current())
            if base.made_at() <= self.since:
                return tensor
        return _without(self._given.get(id(tensor), tensor), lost)

    def _own(self, leaf: Tensor) -> bool:
        return leaf.level is self

    def _gone(self, leaf: Tensor) -> bool:
        return leaf.level is self or (leaf.level is not None and not leaf.level.is_open)


def _alias(tensor: Tensor) -> Tensor:
    """The same values off the tape; tangents stay. To a level no tensor is one of inference mode."""
    out = tensor.detach()
    out.inference, out.tangents = False, tensor.tangents
    out.born = versions.tick()
    return out


def _without(tensor: Tensor, lost: set[int]) -> Tensor:
    """A tensor that is off the tape where it is one of those that are lost; so are its tangents."""
    own, tangents = id(tensor) in lost, tensor.tangents or {}
    kept = {level: _without(t, lost) for level, t in tangents.items()}
    if not own and all(kept[level] is t for level, t in tangents.items()):
        return tensor
    out = wrap(tensor.memory())
    out.versions, out.tangents = tensor.shared_versions(), kept
    out.node = None if own else edge(tensor)
    return out


def _with_tangents(tensors: Iterable[Tensor]) -> list[Tensor]:
    """Tensors, their tangents, and the tangents of these."""
    found = list(tensors)
    for tensor in found:  # grows
        found += (tensor.tangents or {}).values()
    return found


def _recorded(tensors: Iterable[Tensor]) -> list[Tensor]:
    return [t for t in tensors if t.node is not None]


def _lost(
    tensors: list[Tensor],
    gone: Callable[[Any], bool],
    cut: Callable[[Any], bool] | None = None,
    since: float = inf,
) -> set[int]:
    """The ids of the tensors that depend on no leaf but those that are gone.

    cut: the leaves to take off the tape, with what leads to them alone; what is younger than `since` is a
    constant even to those that have saved it. A node comes after those that it leads to, as in every pass.
    """
    edges = [edge(t) for t in tensors]
    nodes, _ = discover([e for e in edges if e is not None])
    nodes.sort(key=by_sequence)
    dead: set[int] = set()  # nodes that lead to nothing but leaves that are gone
    off: set[int] = set()  # nodes that lead to nothing but leaves that are cut
    for node in nodes:
        if isinstance(node, AccumulateGrad):
            if gone(node.variable):
                dead.add(id(node))
            if cut is not None and cut(node.variable):
                off.add(id(node))
            continue
        before = node._edges
        ahead = [id(_node(e)) for e in before if e is not None]
        if dead.issuperset(ahead):
            dead.add(id(node))
        if off.issuperset(ahead):
            off.add(id(node))
            if node._seq > since:
                node._edges = (None,) * len(before)
        elif not off.isdisjoint(ahead):
            node._edges = tuple([None if e is None or id(_node(e)) in off else e for e in before])
            drop_unneeded(node)
    return {id(t) for t, e in zip(tensors, edges, strict=True) if e is None or id(_node(e)) in dead}


def _node(e: Node | Port) -> Node:
    return e.node if isinstance(e, Port) else e

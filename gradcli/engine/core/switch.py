"""Where an operator has no derivative, or one that its rule misses: the fact `switch` of a declaration.

A switch is one point or several. A point says which elements of a call lie exactly on it, how the result
leaves it to each side, and which recorded questions tell what other systems take there:

    switch = Corner(lambda self: self == 0, -1, 1, asked="Q1")   # of abs

Points look at plain arrays. `watching` is how somebody learns that a call met one while a program runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from gradcli.engine.system.dtypes import Array

# Who is told of calls of operators that have a switch, or points where their rules fail: functions of
# (primitive, operands, results, given): arrays and options, and the operands as they were given, as tensors.
# The last one tells the one before.
watching: list[Callable[[Any, Sequence[Any], Sequence[Any], Sequence[Any]], None]] = []

KINK = "kink"  # the slopes to the two sides differ
JUMP = "jump"  # the value does
EDGE = "edge"  # the slope is infinite, or the domain ends
SMOOTH = "smooth"  # there is a derivative, which the rules of some systems miss
CHOICE = "choice"  # a comparison, behind which a program may do something else
MISSED = "missed"  # there is a derivative, which our rule misses, as PyTorch's does
Draw = Callable[[tuple[int, ...]], Any]  # random numbers of a shape


class WatchedCall:
    """One call of an operator: its operands by position (arrays and options), and its results."""

    __slots__ = ("operands", "primitive", "results")

    def __init__(self, primitive: Any, operands: Sequence[Any], results: Sequence[Any]) -> None:
        self.primitive, self.operands, self.results = primitive, operands, results

    def __getitem__(self, name: str) -> Any:
        i = self.primitive.position.get(name)
        if i is None:
            return self.results[self.primitive.outputs.index(name)]
        return self.operands[i]

    def get(self, name: str, default: object | None = None) -> Any:
        """The operand or option of a name, where there is one."""
        return self[name] if name in self.primitive.position else default

    def ask(self, function: Any, tangents: Mapping[str, Any] | None = None) -> Any:
        """A function of operands, options and results by name, and of the tangents `d_NAME`."""
        if not callable(function):
            return function
        code = function.__code__
        names = code.co_varnames[: code.co_argcount]
        return function(
            *[
                tangents[n[2:]] if tangents is not None and n.startswith("d_") else self[n]
                for n in names
            ]
        )

    @property
    def arguments(self) -> list[str]:
        """The names of the arguments that the operator is differentiated by."""
        return [self.primitive.names[i] for i in self.primitive.differentiated]


class Point:
    """One point of an elementwise operator at which its slope depends on the side.

    on: of operands and options by name, where elements lie on it. along: of the tangents `d_NAME` and of
    options, the slope of the result towards where they point; None: it is not known, or not finite.
    asked: which recorded answers are the slopes there: "Q1", of one argument; "Q3", a list of them;
    "self=Q8c exponent=Q9[1]"; or a function of options that gives such a text.
    """

    __slots__ = ("asked", "kind", "on", "slope_along")

    def __init__(self, on: object, along: Any = None, *, asked: Any = "", kind: str = KINK) -> None:
        self.on, self.slope_along, self.asked, self.kind = on, along, asked, kind

    def __iter__(self) -> Iterator[Point]:
        yield self

    def count(self, call: WatchedCall) -> Any:
        """How many elements of the call lie on the point; positive where any does."""
        return np.count_nonzero(call.ask(self.on))

    def mask(self, call: WatchedCall) -> Any:
        """Which elements of the first result do."""
        return np.broadcast_to(call.ask(self.on), np.shape(call.results[0]))

    def touched(self, call: WatchedCall) -> dict[str, Any]:
        """By argument, which of its elements do."""
        mask = self.mask(call)
        return {n: _summed(mask, np.shape(call[n])) for n in call.arguments}

    def towards(self, call: WatchedCall, tangents: Mapping[str, Any]) -> Any:
        """The slope of the first result where the call lies on the point; NaN where it is not known.

        tangents: by argument, of its shape.
        """
        if self.slope_along is None:
            shape = np.shape(call.results[0])
            moved = np.zeros(shape, bool)
            for t in tangents.values():
                moved = moved | (t != 0)
            return np.where(moved, np.nan, 0.0)
        return call.ask(self.slope_along, tangents)

    def spread(self, call: WatchedCall, g: Array, name: str, own: Array, draw: Draw) -> Any:
        """The gradient of an argument with a random part of `g` where the call lies on the point."""
        mask = self.mask(call)
        return np.where(mask, np.broadcast_to(g, mask.shape) * draw(mask.shape), own)

    def pulled(self, call: WatchedCall, g: Array, name: str, own: Array, theirs: Theirs) -> Any:
        """The gradient of an argument by another system's rule. own: by ours, as the rule gives it."""
        mask = self.mask(call)
        slope = theirs.number
        with np.errstate(all="ignore"):
            return np.where(mask, np.broadcast_to(g, mask.shape) * slope, own)

    truth = ""  # what the true gradient is called, where ours is another

    def true(self, call: WatchedCall, g: Array, own: Array) -> Any:
        """The gradient of the argument that there is, where ours is another."""
        return own

    def questions(self, call: WatchedCall) -> dict[str, str]:
        """By argument, the recorded question about it, as "Q9[1]"."""
        text = call.ask(self.asked)
        if not text:
            return {}
        if "=" in text:
            return dict(part.split("=") for part in text.split())
        names = call.arguments
        if len(names) == 1 or "[" in text:
            return dict.fromkeys(names, text)
        return {n: f"{text}[{k}]" for k, n in enumerate(names)}


class Theirs:
    """A recorded answer beside what it is the answer to.

    whole: the answer; number: the part that the point asks for. at: the values of the question by name.
    """

    __slots__ = ("at", "number", "whole")

    def __init__(self, whole: Any, number: int, at: Mapping[str, Any]) -> None:
        self.whole, self.number, self.at = whole, number, at


def part_of(answer: Any, question: str) -> Any:
    """The part of an answer that a question as "Q9[1]" asks for."""
    for index in re.findall(r"\[(\d+)\]", question):
        answer = answer[int(index)]
    return answer


def _summed(mask: Any, shape: tuple[int, ...]) -> Any:
    """A mask of a result as one of an operand that was broadcast to it."""
    mask = np.asarray(mask)
    extra = mask.ndim - len(shape)
    if extra:
        mask = mask.any(tuple(range(extra)))
    stretched = tuple(i for i, n in enumerate(shape) if n == 1 and mask.shape[i] != 1)
    return mask.any(stretched, keepdims=True) if stretched else mask


class Corner(Point):
    """Where an operator of one argument has one slope to the left and another to the right.

    left, right: numbers, or functions of options by name.
    """

    __slots__ = ("left", "right")

    def __init__(self, on: object, left: Any, right: Any, asked: Any = "") -> None:
        super().__init__(on, asked=asked)
        self.left, self.right = left, right

    def count(self, call: WatchedCall) -> Any:
        if not (callable(self.left) or callable(self.right)) or self._bends(call):
            return super().count(call)
        return 0

    def _bends(self, call: WatchedCall) -> bool:
        return bool(call.ask(self.left) != call.ask(self.right))

    def mask(self, call: WatchedCall) -> Any:
        found = super().mask(call)
        return found if self._bends(call) else np.zeros_like(found)

    def towards(self, call: WatchedCall, tangents: Mapping[str, Any]) -> Any:
        (name,) = call.arguments[:1]
        t = np.broadcast_to(tangents[name], np.shape(call.results[0]))
        return np.where(t > 0, call.ask(self.right) * t, call.ask(self.left) * t)


def jump(on: object, asked: Any = "") -> Point:
    """Where the value of an elementwise operator jumps."""
    return Point(on, asked=asked, kind=JUMP)


def edge(on: object, asked: Any = "") -> Point:
    """Where the slope of an elementwise operator is infinite, or its domain ends."""
    return Point(on, asked=asked, kind=EDGE)


class Several:
    """Several points of one operator."""

    __slots__ = ("points",)

    def __init__(self, *points: Point) -> None:
        self.points = points

    def __iter__(self) -> Iterator[Point]:
        return iter(self.points)


# -- along dimensions -----------------------------------------------------------------------------
def axis_of(call: WatchedCall) -> tuple[int, ...] | None:
    """The dimensions that a call reduces, as axes that are not negative; None: all."""
    dim = call.get("dim")
    ndim = np.ndim(call["self"])
    if dim is None or (isinstance(dim, tuple) and not dim) or not ndim:
        return None
    return tuple(d % ndim for d in (dim if isinstance(dim, (tuple, list)) else (dim,)))


def restored(call: WatchedCall, value: object) -> Any:
    """A result, or its gradient, with the reduced dimensions put back, of size 1."""
    own, value = np.asarray(call["self"]), np.asarray(value)
    axis = axis_of(call)
    if axis is None:
        return value.reshape((1,) * own.ndim)
    return value.reshape([1 if d in axis else n for d, n in enumerate(own.shape)])


class Ties(Point):
    """Where several elements are the extreme of all, or along dimensions: max, min, amax, amin.

    A recorded answer tells how they share the gradient: evenly, the first or the last one takes it, or each.
    """

    __slots__ = ("largest",)

    def __init__(self, largest: bool, asked: Any = "") -> None:
        super().__init__(None, asked=asked)
        self.largest = largest

    def _equal(self, call: WatchedCall) -> Any:
        return np.equal(call["self"], restored(call, call.results[0]))

    def count(self, call: WatchedCall) -> Any:
        own, made = call["self"], call.results[0]
        return np.count_nonzero(own == _restored_as_it_is(call, made)) - made.size

    def touched(self, call: WatchedCall) -> dict[str, Any]:
        equal = self._equal(call)
        return {"self": equal & (equal.sum(axis_of(call), keepdims=True) > 1)}

    def mask(self, call: WatchedCall) -> Any:
        several = self._equal(call).sum(axis_of(call)) > 1
        return several.reshape(np.shape(call.results[0]))

    def towards(self, call: WatchedCall, tangents: Mapping[str, Any]) -> Any:
        least = -np.inf if self.largest else np.inf
        own = np.where(self._equal(call), tangents["self"], least)
        reduce = np.max if self.largest else np.min
        return reduce(own, axis_of(call)).reshape(np.shape(call.results[0]))

    def spread(self, call: WatchedCall, g: Array, name: str, own: Array, draw: Draw) -> Any:
        tied = self.touched(call)["self"]
        return np.where(tied, restored(call, g) * draw(tied.shape), own)

    def pulled(self, call: WatchedCall, g: Array, name: str, own: Array, theirs: Theirs) -> Any:
        tied = self.touched(call)["self"]
        return np.where(tied, restored(call, g) * self._weights(call, tied, theirs), own)

    def _weights(self, call: WatchedCall, tied: Array, theirs: Theirs) -> Any:
        (values,) = theirs.at.values()
        extreme = max(values) if self.largest else min(values)
        shared = [w for w, v in zip(theirs.whole, values, strict=True) if v == extreme]
        axis = axis_of(call)
        return _share(tied, axis, shared)


def _restored_as_it_is(call: WatchedCall, made: Any) -> Any:
    """As `restored`, of arrays that may be abstract."""
    axis = axis_of(call)
    if axis is None or made.ndim == call["self"].ndim:
        return made
    shape = [1 if d in axis else n for d, n in enumerate(call["self"].shape)]
    return made.reshape(tuple(shape))


def _share(tied: Array, axis: tuple[int, ...] | None, shared: Sequence[float]) -> Any:
    """Weights of tied elements, as those of two or more were recorded: each, evenly, the first, the last."""
    tied = np.asarray(tied)
    if all(w == 1 for w in shared):
        return tied.astype(float)
    if all(w == shared[0] for w in shared):
        return tied / np.maximum(tied.sum(axis, keepdims=True), 1) if shared[0] else tied * 0.0
    order = tied.reshape(-1) if axis is None else tied
    along = 0 if axis is None else axis[-1]
    flipped = np.flip(order, along) if shared[-1] == 1 else order
    first = flipped & (np.cumsum(flipped, along) == 1)
    first = np.flip(first, along) if shared[-1] == 1 else first
    return first.reshape(tied.shape).astype(float)


class Ranked(Ties):
    """Where several elements are the one of a rank: median, kthvalue. rank: of the size along the axis."""

    __slots__ = ("rank",)

    def __init__(self, rank: Any, asked: Any = "") -> None:
        super().__init__(True, asked)
        self.rank = rank

    def towards(self, call: WatchedCall, tangents: Mapping[str, Any]) -> Any:
        own, t = np.asarray(call["self"]), np.asarray(tangents["self"])
        axis = axis_of(call)
        if axis is None:
            own, t, at = own.reshape(-1), t.reshape(-1), 0
        else:
            (at,) = axis
        order = np.lexsort((t, own), axis=at)
        sorted_ = np.take_along_axis(t, order, at)
        found = np.take(sorted_, call.ask(self.rank)(own.shape[at]), at)
        return found.reshape(np.shape(call.results[0]))

    def _weights(self, call: WatchedCall, tied: Array, theirs: Theirs) -> Any:
        (values,) = theirs.at.values()
        middle = sorted(values)[(len(values) - 1) // 2]
        shared = [w for w, v in zip(theirs.whole, values, strict=True) if v == middle]
        return _share(tied, axis_of(call), shared)


class Order(Point):
    """Where elements that are sorted are equal. descending: of options, whether the largest come first."""

    __slots__ = ("descending",)

    def __init__(self, descending: Any = False, asked: Any = "") -> None:
        super().__init__(None, asked=asked)
        self.descending = descending

    def _dim(self, call: WatchedCall) -> int:
        return int(call.get("dim", -1)) % max(np.ndim(call["self"]), 1)

    def count(self, call: WatchedCall) -> Any:
        made = call.results[0]
        if not made.ndim:
            return 0
        at = self._dim(call)
        head, tail = [slice(None)] * made.ndim, [slice(None)] * made.ndim
        head[at], tail[at] = slice(None, -1), slice(1, None)
        return np.count_nonzero(made[tuple(head)] == made[tuple(tail)])

    def mask(self, call: WatchedCall) -> Any:
        made = np.asarray(call.results[0])
        found = np.zeros(made.shape, bool)
        if made.ndim:
            at = self._dim(call)
            moved, own = np.moveaxis(found, at, -1), np.moveaxis(made, at, -1)
            same = own[..., :-1] == own[..., 1:]
            moved[..., :-1] |= same
            moved[..., 1:] |= same
        return found

    def touched(self, call: WatchedCall) -> dict[str, Any]:
        own, tied = np.asarray(call["self"]), np.zeros(np.shape(call["self"]), bool)
        if own.ndim:
            np.put_along_axis(tied, np.asarray(call.results[1]), self.mask(call), self._dim(call))
        return {"self": tied}

    def towards(self, call: WatchedCall, tangents: Mapping[str, Any]) -> Any:
        own, t = np.asarray(call["self"]), np.asarray(tangents["self"])
        sign = -1 if call.ask(self.descending) else 1
        at = self._dim(call)
        order = np.lexsort((sign * t, sign * own), axis=at)
        sorted_ = np.take_along_axis(t, order, at)
        return np.take(sorted_, range(np.shape(call.results[0])[at]), at)

    def spread(self, call: WatchedCall, g: Array, name: str, own: Array, draw: Draw) -> Any:
        tied = self.touched(call)["self"]
        size = np.abs(np.asarray(g))[self.mask(call)].max(initial=0.0)
        return np.where(tied, size * draw(tied.shape), own)

    def pulled(self, call: WatchedCall, g: Array, name: str, own: Array, theirs: Theirs) -> Any:
        """Shared evenly among those that are equal, or none: the rules but ours that were recorded."""
        if np.ndim(theirs.whole) == 0:
            return np.full_like(own, theirs.number)
        at, values = self._dim(call), np.asarray(call["self"])
        found = np.array(own, dtype=float)
        lines, rows = np.moveaxis(found, at, -1), np.moveaxis(values, at, -1)
        for index in np.ndindex(rows.shape[:-1]):
            for value in np.unique(rows[index]):
                same = rows[index] == value
                lines[(*index, same)] = lines[(*index, same)].mean()
        return found


# -- results that are 0 ---------------------------------------------------------------------------
class Cone(Point):
    """Where a length is 0: norm, std. Towards a side its slope is the length of the tangent.

    A recorded answer is the gradient of every element there.
    """

    __slots__ = ()

    def __init__(self, asked: Any = "") -> None:
        super().__init__(None, asked=asked)

    def count(self, call: WatchedCall) -> Any:
        return np.count_nonzero(call.results[0] == 0)

    def mask(self, call: WatchedCall) -> Any:
        return np.equal(call.results[0], 0)

    def touched(self, call: WatchedCall) -> dict[str, Any]:
        shape = np.shape(call["self"])
        return {"self": np.broadcast_to(restored(call, self.mask(call)), shape)}

    def towards(self, call: WatchedCall, tangents: Mapping[str, Any]) -> Any:
        operands = list(call.operands)
        operands[call.primitive.position["self"]] = np.asarray(tangents["self"])
        made = call.primitive.compute(operands)
        return made if call.primitive.returns_one else made[0]

    def spread(self, call: WatchedCall, g: Array, name: str, own: Array, draw: Draw) -> Any:
        touched = self.touched(call)["self"]
        return np.where(touched, restored(call, g) * draw(touched.shape), own)

    def pulled(self, call: WatchedCall, g: Array, name: str, own: Array, theirs: Theirs) -> Any:
        touched = self.touched(call)["self"]
        with np.errstate(all="ignore"):
            return np.where(touched, restored(call, g) * theirs.number, own)


class Zeros(Point):
    """Where factors are 0 (prod, cumprod): there is a derivative, which rules that divide by them miss.

    A recorded answer is the gradient of a factor that is 0.
    """

    __slots__ = ()

    def __init__(self, asked: Any = "") -> None:
        super().__init__(lambda self: self == 0, asked=asked, kind=SMOOTH)

    def mask(self, call: WatchedCall) -> Any:
        raise NotImplementedError

    def touched(self, call: WatchedCall) -> dict[str, Any]:
        return {"self": np.equal(call["self"], 0)}

    def spread(self, call: WatchedCall, g: Array, name: str, own: Array, draw: Draw) -> Any:
        return own

    def pulled(self, call: WatchedCall, g: Array, name: str, own: Array, theirs: Theirs) -> Any:
        return np.where(self.touched(call)["self"], theirs.number, own)

"""Gradients that are not finite, or that a rule misses: what they are there, and what to write instead.

A program that gives NaN where it has a derivative can often be written so that it does not: log1p(exp(x)) as
softplus(x). Such forms are a table; one is only proposed after it has run: it must agree with the program at
points where both are finite, and say more at the point itself.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from gradcli.engine.core.switch import EDGE, MISSED
from gradcli.language import parse
from gradcli.language.program import Program
from gradcli.transforms.finite_differences import slopes_at_edge
from gradcli.transforms.kinks import ERRORS, Crossing, Watched
from gradcli.transforms.verdicts import function_of

# What has a value, or a slope, where the left side has none: single capitals stand for anything.
FORMS = (
    ("log1p(exp(A))", "softplus(A)"),
    ("log(1 + exp(A))", "softplus(A)"),
    ("log(exp(A) + 1)", "softplus(A)"),
    ("log(1 + exp(-A))", "softplus(-A)"),
    ("1/(1 + exp(-A))", "sigmoid(A)"),
    ("1/(exp(-A) + 1)", "sigmoid(A)"),
    ("exp(A)/(1 + exp(A))", "sigmoid(A)"),
    ("exp(A)/(exp(A) + 1)", "sigmoid(A)"),
    # the loss of logistic regression, with the probability sigmoid(A)
    ("B*log(sigmoid(A)) + (1 - B)*log(1 - sigmoid(A))", "B*(A) - softplus(A)"),
    ("B*log(1/(1 + exp(-A))) + (1 - B)*log(1 - 1/(1 + exp(-A)))", "B*(A) - softplus(A)"),
    ("log(sigmoid(A))", "nn.functional.logsigmoid(A)"),
    ("log(1 - sigmoid(A))", "nn.functional.logsigmoid(-(A))"),
    ("log(1/(1 + exp(-A)))", "nn.functional.logsigmoid(A)"),
    ("log(1 - 1/(1 + exp(-A)))", "nn.functional.logsigmoid(-(A))"),
    ("log(exp(A)/sum(exp(A)))", "log_softmax(A, 0)"),
    ("log(softmax(A, B))", "log_softmax(A, B)"),
    ("log(sum(exp(A)))", "logsumexp(A, 0)"),
    ("log(exp(A).sum())", "logsumexp(A, 0)"),
    ("exp(A)/sum(exp(A))", "softmax(A, 0)"),
    ("log(exp(A) + exp(B))", "logaddexp(A, B)"),
    ("A*log(A)", "-special.entr(A)"),
    ("log(A)*A", "-special.entr(A)"),
    ("special.xlogy(A, A)", "-special.entr(A)"),
    ("xlogy(A, A)", "-special.entr(A)"),
    ("hypot(A, B)", "norm(stack([A, B]))"),
    ("sqrt(A**2 + B**2)", "norm(stack([A, B]))"),
    ("sqrt(A*A + B*B)", "norm(stack([A, B]))"),
    ("sqrt(sum(A**2))", "norm(A)"),
    ("sqrt(sum(A*A))", "norm(A)"),
    ("sqrt(dot(A, A))", "norm(A)"),
    ("sqrt(A**2)", "abs(A)"),
    ("sin(pi*A)/(pi*A)", "sinc(A)"),
    ("sin(A)/A", "sinc(A/pi)"),
    ("exp(A) - 1", "expm1(A)"),
    ("where(A > 0, sqrt(A), B)", "where(A > 0, sqrt(where(A > 0, A, 1)), B)"),
    ("where(A > 0, log(A), B)", "where(A > 0, log(where(A > 0, A, 1)), B)"),
    ("where(A != 0, B/A, C)", "where(A != 0, B/where(A != 0, A, 1), C)"),
)
NEAR = tuple(2.0**-k for k in range(20, 45, 3))  # steps towards a point, relative to its size
TRIED = 5  # points at which a form must agree with the program
AGREES = 1e-6
FEW = 16  # elements of a gradient that is written out
Shape = tuple[Any, ...]


class Explained(NamedTuple):
    """What a gradient is instead. names: the variables. text: a line without the variables' names.

    span: what to replace, if there is something. grads: by name, what it gives.
    """

    names: list[str]
    text: str
    span: tuple[int, int] | None
    grads: Mapping[str, Any]


def explained(
    watched: Watched, program: Program, names: Mapping[str, Any], kinked: Container[str] = ()
) -> Iterator[Explained]:
    """What there is to say of the gradients of a run that are not finite, or that a rule misses.

    names: what else the program may read. kinked: the variables that are at a kink.
    """
    yield from _missed(watched, program)
    wrong = [
        n for n, g in watched.grads.items() if g.dtype.kind == "f" and not np.isfinite(g).all()
    ]
    if not wrong:
        return
    found = _written_otherwise(watched, program, names, wrong)
    if found is None:
        found = _whole_number(watched, wrong)
    if found is not None:
        yield found
    said = [] if found is None else found.names
    for name in wrong:
        if name not in said and name not in kinked and (limit := _limit(watched, name)) is not None:
            yield limit


# -- rules that miss a derivative -----------------------------------------------------------------
def _missed(watched: Watched, program: Program) -> Iterator[Explained]:
    """Gradients that are another by the true rule of an operator."""
    crossings = [c for c in watched.crossings if c.point.kind == MISSED]
    if not crossings:
        return

    def rule(crossing: Crossing, name: str, g: Any, own: Any) -> Any:
        return crossing.point.true(crossing.call, g, own) if crossing in crossings else own

    true = watched.gradients(rule)
    for name, grad in true.items():
        if np.allclose(grad, watched.grads[name], rtol=1e-9, atol=0, equal_nan=True):
            continue
        first = crossings[0]
        what = first.point.truth
        whole = grad.size <= FEW
        given = "0" if not np.any(watched.grads[name]) else "another gradient"
        shown = f"the {what} are {_shown(grad)}" if whole else f"the {what} are right"
        text = f"PyTorch's rule for {first.name} gives {given} here; {shown}"
        yield Explained([name], text, first.span, {name: grad})


def _shown(array: Any) -> str:
    if np.ndim(array):
        return f"[{', '.join(map(_shown, array))}]"
    return f"{float(array) + 0.0:.12g}"


# -- other forms ----------------------------------------------------------------------------------
class Tree(NamedTuple):
    """A piece of a program: its kind, what it means, its parts, and where it stands."""

    kind: str
    meaning: Any
    parts: tuple[Any, ...]
    span: tuple[int, int]


def tree_of(program: Program) -> list[Tree]:
    """Every piece of a program; the last is the whole."""
    stack: list[Tree] = []
    found: list[Tree] = []
    for kind, meaning, count, span in program.walk():
        parts = tuple(stack[len(stack) - count :]) if count else ()
        del stack[len(stack) - count :]
        stack.append(Tree(kind, meaning, parts, span))
        found.append(stack[-1])
    return found


@cache
def _patterns() -> list[tuple[Tree, str]]:
    return [(tree_of(parse(left))[-3], right) for left, right in FORMS]


def _assigned(pieces: list[Tree]) -> dict[str, Tree]:
    """What the program assigns to names, once each."""
    targets = Counter(piece.meaning for piece in pieces if piece.kind == "target")
    return {
        piece.parts[0].meaning: piece.parts[1]
        for piece in pieces
        if piece.kind == "assign" and len(piece.parts) == 2 and targets[piece.parts[0].meaning] == 1
    }


def _fits(
    pattern: Tree, piece: Tree, source: str, put: dict[str, Tree], assigned: Mapping[str, Tree]
) -> bool:
    """Whether a piece has the form of a pattern; put: what its capitals stand for. assigned: what names stand
    for: `p = sigmoid(z); log(p)` has the form log(sigmoid(A))."""
    if piece.kind == "name" and piece.meaning in assigned and pattern.kind != "name":
        piece = assigned[piece.meaning]
    if pattern.kind == "name" and len(pattern.meaning) == 1 and pattern.meaning.isupper():
        known = put.setdefault(pattern.meaning, piece)
        return _text(known, source) == _text(piece, source)
    if pattern.kind != piece.kind or len(pattern.parts) != len(piece.parts):
        return False
    if pattern.meaning != piece.meaning:
        return False
    return all(
        _fits(a, b, source, put, assigned) for a, b in zip(pattern.parts, piece.parts, strict=True)
    )


def _text(piece: Tree, source: str) -> str:
    return "".join(source[slice(*piece.span)].split())


def rewritten(program: Program) -> Iterator[tuple[str, str, tuple[int, int]]]:
    """(the program with a piece in another form, that form, the piece's span), for each that there is."""
    source, pieces = program.source, tree_of(program)
    assigned = _assigned(pieces)
    for piece in pieces[::-1]:  # the largest first: a loss before the logarithms in it
        for pattern, right in _patterns():
            put: dict[str, Tree] = {}
            if piece.kind == "name" or not _fits(pattern, piece, source, put, assigned):
                continue
            form = "".join(
                source[slice(*put[c].span)] if c in put and _stands_alone(right, k) else c
                for k, c in enumerate(right)
            )
            form = re.sub(r"(?<![\w.])\((\w+)\)", r"\1", form)
            start, end = piece.span
            alone = source.strip() == source[start:end]
            whole = form if alone else f"{source[:start]}({form}){source[end:]}"
            yield whole, form, piece.span


def _stands_alone(text: str, k: int) -> bool:
    beside = text[k - 1 : k] + text[k + 1 : k + 2]
    return not any(c.isalnum() or c in "_." for c in beside)


def _written_otherwise(
    watched: Watched,
    program: Program,
    names: Mapping[str, Any],
    wrong: Sequence[str],
) -> Explained | None:
    """Another form that has a gradient, or the limit of one, where the program has none."""
    for whole, form, span in rewritten(program):
        function = function_of(parse(whole), names)
        try:
            other = Watched(function, watched.arrays, watched.wrt, watched.seed)
        except ERRORS:
            continue
        better = [
            n
            for n in wrong
            if n in other.grads
            and not np.isnan(other.grads[n]).any()
            and np.isnan(watched.grads[n]).any()
        ]
        if not better or not _agrees(watched, function):
            continue
        grads = {n: other.grads[n] for n in better}
        text = _what(grads, {n: _is_derivative(other, n) for n in grads})
        piece = " ".join(program.source[slice(*span)].split())
        return Explained(better, f'{text}: {form} in place of "{piece}"', span, grads)
    return None


def _is_derivative(other: Watched, name: str) -> bool:
    """Whether the gradient by a variable is the slope to both sides; of a few elements."""
    grad = other.grads[name]
    for index in list(np.ndindex(grad.shape))[:FEW]:
        size = float(np.abs(other.arrays[name][index]))
        sides = slopes_at_edge(other.value_along(name, index), size)
        if not np.allclose(sides, grad[index], rtol=1e-4, atol=1e-6):
            return False
    return True


def _what(grads: Mapping[str, Any], true: Mapping[str, bool]) -> str:
    """What other gradients are: the derivatives, their limits, or what is taken where there is none."""
    told = []
    for name, grad in grads.items():
        verb = "is" if true[name] else "becomes"
        if not np.isfinite(grad).all():
            verb = "has the limit"
        texts = {_shown(v) for v in np.ravel(grad)}
        given = next(iter(texts)) if len(texts) == 1 else _shown(grad)
        told.append(
            f"{name}.grad {verb} {given if np.size(grad) <= FEW or len(texts) == 1 else 'finite'}"
        )
    return ", ".join(told)


def _agrees(watched: Watched, function: Callable[..., Any]) -> bool:
    """Whether a function agrees with the program, where both are finite, in value and gradient."""
    rng = np.random.default_rng(11)
    agreed = 0
    for k in range(4 * TRIED):
        arrays = {
            n: np.asarray(rng.uniform(0.2, 1.8, np.shape(a)), a.dtype) * (-1 if k % 4 == 3 else 1)
            if n in watched.leaves
            else a
            for n, a in watched.arrays.items()
        }
        try:
            one = Watched(watched.function, arrays, watched.wrt, watched.seed)
            two = Watched(function, arrays, watched.wrt, watched.seed)
        except ERRORS:
            return False
        pairs = [
            *((a.array, b.array) for a, b in zip(one.outputs, two.outputs, strict=True)),
            *((one.grads[n], two.grads[n]) for n in one.grads),
        ]
        if not all(np.isfinite(a).all() for a, _ in pairs):
            continue
        if not all(
            np.shape(a) == np.shape(b) and np.allclose(a, b, rtol=AGREES, atol=1e-12)
            for a, b in pairs
        ):
            return False
        agreed += 1
        if agreed == TRIED:
            break
    return agreed >= 2


# -- powers of negative numbers -------------------------------------------------------------------
def _whole_number(watched: Watched, wrong: Sequence[str]) -> Explained | None:
    """A whole number, as y in x**y of a negative x, by which there is no slope, and none may be wanted."""
    seconds = [
        c.call[c.call.arguments[1]]
        for c in watched.crossings
        if c.point.kind == EDGE and len(c.call.arguments) > 1
    ]
    for name in wrong:
        others, value = [n for n in watched.wrt if n != name], watched.arrays[name]
        if not others or np.any(value % 1) or not any(np.array_equal(value, s) for s in seconds):
            continue
        again = Watched(watched.function, watched.arrays, others, watched.seed)
        if all(np.isfinite(g).all() for g in again.grads.values()):
            text = f"{name} is an integer here: --no-grad {name}"
            return Explained([name], text, None, again.grads)
    return None


# -- limits ---------------------------------------------------------------------------------------
def _limit(watched: Watched, name: str) -> Explained | None:
    """What the gradient by one element goes to beside the point, from both sides or from one."""
    grad = watched.grads[name]
    places = np.argwhere(~np.isfinite(grad))
    if len(places) != 1:
        return None
    index = tuple(map(int, places[0]))
    sides = [_towards(watched, name, index, sign) for sign in (-1.0, 1.0)]
    left, right = sides
    if left is None and right is None:
        return None
    if left is not None and right is not None:
        if not _close(left, right):
            return None
        side = ""
    else:
        side = " from the right" if left is None else " from the left"
    value = right if right is not None else left
    assert value is not None
    place = f"[{', '.join(map(str, index))}]" if index else ""
    text = f"{_shown(value)} is the limit of {name}.grad{place}{side}"
    return Explained([name], text, None, {})


def _close(a: float, b: float) -> bool:
    return a == b or bool(abs(a - b) <= 1e-4 * max(abs(a), abs(b), 1e-8))


def _towards(watched: Watched, name: str, index: tuple[int, ...], sign: float) -> float | None:
    """The limit of the gradient from one side; None where it has none, or the program no value."""
    size = abs(float(watched.arrays[name][index])) or 1.0
    found: list[float] = []
    for step in NEAR:
        arrays = {n: np.array(a) for n, a in watched.arrays.items()}
        arrays[name][index] += sign * step * size
        try:
            beside = Watched(watched.function, arrays, watched.wrt, watched.seed)
        except ERRORS:
            return None
        if not all(np.isfinite(o.array).all() for o in beside.outputs):
            return None
        found.append(float(beside.grads[name][index]) if name in beside.grads else np.nan)
    if not np.isfinite(found).all():
        return None
    steps = np.abs(np.diff(found))
    if np.all(steps <= 1e-3 * np.abs(found[1:])) and steps[-1] <= 1e-6 * (abs(found[-1]) + 1e-6):
        return float(f"{found[-1]:.6g}") if abs(found[-1]) > 1e-6 else 0.0
    growing = np.diff(np.abs(found))
    if np.all(growing > 0) and growing[-1] > 0.2 * growing[0]:
        return float(np.copysign(np.inf, found[-1]))
    return None

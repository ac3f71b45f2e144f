"""Einstein summation: dimensions named by letters, pairs of operands contracted from left to right."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from gradcli.engine.core.tensor import Tensor
from gradcli.engine.registry.binder import Parser
from gradcli.engine.registry.table import function
from gradcli.operators.primitives.matrix_products import bmm

FAMILY = "linalg"

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"  # PyTorch's order
_REST = "..."


def _refuse(text: str) -> RuntimeError:
    return RuntimeError(f"einsum(): {text}")


# -- the equation ---------------------------------------------------------------------------------
def _labels(text: str, start: int, where: str, place: str) -> list[str]:
    """The labels of one operand or of the output; `...` is one label."""
    found: list[str] = []
    i = 0
    while i < len(text):
        c = text[i]
        if c == ".":
            if _REST in found:
                ellipsis = " (...)" if where == "output" else ""
                word = "but an ellipsis" if where == "output" else "for which an ellipsis"
                raise _refuse(f"found '.' for {place} {word}{ellipsis} was already found")
            if text[i : i + 3] != _REST:
                ellipsis = " (...)" if where == "output" else ""
                raise _refuse(f"found '.' for {place} that is not part of any ellipsis{ellipsis}")
            found.append(_REST)
            i += 2
        elif c != " ":
            if c not in _LETTERS:
                raise _refuse(
                    f"invalid subscript given at index {start + i} in the equation string, "
                    "subscripts must be in [a-zA-Z]"
                )
            found.append(c)
        i += 1
    return found


def _inputs(left: str, count: int) -> list[list[str]]:
    parts = left.split(",")
    found, start = [], 0
    for i, part in enumerate(parts):
        if i >= count:
            raise _refuse("fewer operands were provided than specified in the equation")
        found.append(_labels(part, start, "input", f"operand {i}"))
        start += len(part) + 1
    if len(parts) < count:
        raise _refuse("more operands were provided than specified in the equation")
    return found


def _count_dims(inputs: list[list[str]], operands: Sequence[Any]) -> int:
    """Checks the operands' dimensions; the largest number of them behind an ellipsis."""
    most = 0
    for i, (labels, operand) in enumerate(zip(inputs, operands, strict=True)):
        n = len(labels) - (_REST in labels)
        if _REST in labels:
            if n > operand.ndim:
                raise _refuse(
                    f"the number of subscripts in the equation ({n}) is more than the number of "
                    f"dimensions ({operand.ndim}) for operand {i}"
                )
            most = max(most, operand.ndim - n)
        elif n != operand.ndim:
            raise _refuse(
                f"the number of subscripts in the equation ({n}) does not match the number of "
                f"dimensions ({operand.ndim}) for operand {i} and no ellipsis was given"
            )
    return most


def _output(inputs: list[list[str]], right: str | None, start: int) -> list[str]:
    """The labels of the output: as given, or those that occur once, in order."""
    all_labels = [c for labels in inputs for c in labels if c != _REST]
    if right is None:
        return [_REST] + [c for c in _LETTERS if all_labels.count(c) == 1]
    found = _labels(right, start, "output", "output")
    for k, c in enumerate(found):
        if c != _REST and c in found[:k]:
            raise _refuse(f"output subscript {c} appears more than once in the output")
        if c != _REST and c not in all_labels:
            raise _refuse(
                f"output subscript {c} does not appear in the equation for any input operand"
            )
    return found


class _Plan:
    """Where each label goes: output dimensions first, then the ones to sum over."""

    def __init__(self, equation: str, operands: Sequence[Any]) -> None:
        left, arrow, right = equation.partition("->")
        self.inputs = _inputs(left, len(operands))
        self.rest = _count_dims(self.inputs, operands)
        output = _output(self.inputs, right if arrow else None, len(left) + 2)
        self.place: dict[str, int] = {}
        at = 0
        for c in output:
            self.place[c] = at
            at += self.rest if c == _REST else 1
        self.out_ndim = at
        if _REST not in self.place:
            self.place[_REST] = at
            at += self.rest
        seen = {c for labels in self.inputs for c in labels}
        for c in _LETTERS:
            if c in seen and c not in self.place:
                self.place[c] = at
                at += 1
        self.ndim = at
        self.sizes: dict[str, int] = {}
        self.rest_sizes = [1] * self.rest
        self.counts = [0] * at  # how many operands have a size other than 1 there

    def _note(self, label: str, dim: int, size: int, operand: int) -> None:
        if size == 1:
            return
        known = self.sizes.setdefault(label, size)
        if known != size:
            raise _refuse(
                f"subscript {label} has size {size} for operand {operand} which does not broadcast "
                f"with previously seen size {known}"
            )
        self.counts[self.place[label]] += 1

    def _note_rest(self, j: int, dim: int, size: int, operand: int) -> None:
        if size == 1:
            return
        if self.rest_sizes[j] not in (1, size):
            raise _refuse(
                f"dimension {dim} covered by ellipsis in operand {operand}has size {size} which "
                f"does not broadcast with previously seen ellipsis with size {self.rest_sizes[j]} "
                "for the respective dimension"
            )
        self.rest_sizes[j] = size
        self.counts[self.place[_REST] + j] += 1

    def aligned(self, i: int, operand: Tensor) -> Any:
        """The operand with one dimension a label, in the plan's order."""
        order = [-1] * self.ndim
        labels = self.inputs[i]
        covered = operand.ndim - (len(labels) - 1)
        dim, op = 0, operand
        for c in labels:
            if c == _REST:
                for j in range(self.rest - covered, self.rest):
                    self._note_rest(j, dim, op.shape[dim], i)
                    order[self.place[_REST] + j] = dim
                    dim += 1
            elif order[self.place[c]] == -1:
                self._note(c, dim, op.shape[dim], i)
                order[self.place[c]] = dim
                dim += 1
            else:
                before = order[self.place[c]]
                if op.shape[dim] != op.shape[before]:
                    raise _refuse(
                        f"subscript {c} is repeated for operand {i} but the sizes don't match, "
                        f"{op.shape[dim]} != {op.shape[before]}"
                    )
                op = op.diagonal(0, before, dim).movedim(-1, before)
        for k, at in enumerate(order):
            if at == -1:
                op = op.unsqueeze(dim)
                order[k] = dim
                dim += 1
        return op.permute(*order)


# -- contracting two operands ---------------------------------------------------------------------
def sumproduct_pair(left: Tensor, right: Tensor, sum_dims: list[int], keepdim: bool = True) -> Any:
    """`(left * right).sum(sum_dims)`, by one product of batches of matrices."""
    if not sum_dims:
        return left * right
    both: list[int] = []
    only_left: list[int] = []
    only_right: list[int] = []
    for i in range(left.ndim):
        in_left, in_right = left.shape[i] != 1, right.shape[i] != 1
        if i in sum_dims:
            if in_left and not in_right:
                left = left.sum(i, True)
            elif in_right and not in_left:
                right = right.sum(i, True)
        elif in_left and in_right:
            both.append(i)
        elif in_left:
            only_left.append(i)
        else:
            only_right.append(i)
    order = both + only_left + sum_dims + only_right
    shape = [left.shape[d] for d in both + only_left] + [1] * len(sum_dims)
    shape += [right.shape[d] for d in only_right]
    n = prod(left.shape[d] for d in both)
    summed = prod(left.shape[d] for d in sum_dims)
    a = left.permute(*order).reshape(n, prod(left.shape[d] for d in only_left), summed)
    b = right.permute(*both, *sum_dims, *only_right, *only_left)
    b = b.reshape(n, summed, prod(right.shape[d] for d in only_right))
    out = bmm(a, b).view(*shape).permute(*np.argsort(order).tolist())
    if keepdim:
        return out
    return out.view(*(s for i, s in enumerate(out.shape) if i not in sum_dims))


def _contracted(a: Tensor, b: Tensor, plan: _Plan) -> Any:
    sums: list[int] = []
    alone: tuple[list[int], list[int]] = ([], [])
    for d in range(plan.out_ndim, plan.ndim):
        in_a, in_b = a.shape[d] != 1, b.shape[d] != 1
        if in_a and in_b:
            plan.counts[d] -= 1
            if plan.counts[d] == 1:
                sums.append(d)
                plan.counts[d] = 0
        elif plan.counts[d] == 1 and (in_a or in_b):
            alone[0 if in_a else 1].append(d)
            plan.counts[d] = 0
    if alone[0]:
        a = a.sum(tuple(alone[0]), True)
    if alone[1]:
        b = b.sum(tuple(alone[1]), True)
    return sumproduct_pair(a, b, sums)


def _from_sublists(args: tuple[Any, ...]) -> tuple[str, list[Any]]:
    """`einsum(a, [0, 1], b, [1, 2], [0, 2])` as an equation."""

    def text(subscripts: Any) -> str:
        out = ""
        for s in subscripts:
            if s is Ellipsis:
                out += _REST
            elif isinstance(s, int) and 0 <= s < 52:
                out += _LETTERS[s]
            else:
                raise ValueError(
                    f"einsum(): subscript {s} in the list is not within the valid range [0, 52)"
                )
        return out

    pairs = len(args) // 2
    equation = ",".join(text(args[2 * k + 1]) for k in range(pairs))
    if len(args) % 2:
        equation += "->" + text(args[-1])
    return equation, list(args[: 2 * pairs : 2])


@function(
    "einsum(Any args)|function|numpy",
    many=tuple,
    primitives=[bmm],
    samples="('ij,jk->ik', randn(2,3), randn(3,4)); ('ii->i', randn(3,3)); ('i,j', randn(2), randn(3)); "
    "('bn,anm,bm->ba', randn(2,3), randn(4,3,5), randn(2,5)); ('...ij->...ji', randn(2,3,4))",
)
def einsum(args: tuple[Any, ...]) -> Any:
    """Products summed over the dimensions whose letters the output lacks."""
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one "
            "operand and its subscripts list"
        )
    if isinstance(args[0], Tensor):
        equation, operands = _from_sublists(args)
    else:
        equation, operands = args[0], list(args[1:])
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = list(operands[0])
    return _summed(equation, operands)


def _einsum(equation: str, operands: Sequence[Any]) -> Any:
    plan = _Plan(equation, operands)
    aligned = [plan.aligned(i, op) for i, op in enumerate(operands)]
    out = aligned[0]
    for other in aligned[1:]:
        out = _contracted(out, other, plan)
    if plan.ndim == plan.out_ndim:
        return out
    if len(aligned) > 1:
        return out.view(*out.shape[: plan.out_ndim]) if plan.out_ndim else out.view(())
    return out.sum(tuple(range(plan.out_ndim, plan.ndim)))


_summed = Parser(("einsum(str equation, Tensor[] tensors)",), _einsum).function()

"""The operands of PyTorch's nodes that need no gradient: the graph has an edge to nothing for each.

A dispatch mode hears every operation below autograd, right after its node was made, with all of its tensors
in the order of its signature; a node's edges stand in that order too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from gradcli.graphs.of_torch.torch_tensors import is_torch_tensor

NEEDS = object()  # stands for an operand with a gradient: its edge is known


class Operands:
    """What the latest operations were called with, by the number of the node that each has made."""

    def __init__(self) -> None:
        self._found: dict[int, list[Any]] = {}
        self.newest: tuple[int, Any] = (
            -1,
            None,
        )  # number and Note, where nodes are heard when made
        self._number: Any = sys.modules["torch"]._C._autograd._get_sequence_nr

    def heard(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """An operation is about to run, and its node has been made if it has one."""
        operands = _operands(function, args, kwargs)
        if not any(one is NEEDS for one in operands):
            return
        number = self._number() - 1
        if self.newest[1] is not None and self.newest[0] == number:
            self.newest[1].operands = self.newest[1].operands or operands
        else:
            self._found.setdefault(number, operands)

    def taken(self, number: int) -> list[Any]:
        """Those of the node with a number; they are forgotten."""
        return self._found.pop(number, [])

    def forget(self) -> None:
        """A function has run, and its nodes have taken theirs."""
        self._found.clear()

    def mode(self, heard: Callable[..., None]) -> Any:
        """PyTorch's means of seeing every operation: `heard` is called with its arguments."""
        base: Any = import_module("torch.utils._python_dispatch").TorchDispatchMode

        class Mode(base):  # type: ignore[misc]
            def __torch_dispatch__(
                self, function: Any, types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                heard(function, args, kwargs or {})
                return function(*args, **(kwargs or {}))

        return Mode()


def _operands(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The tensors of a call that may have a gradient, in the order of its signature.

    None for an optional one that is not there, and for a number in the place of a tensor.
    """
    found: list[Any] = []
    for place, parameter in enumerate(function._schema.arguments):
        if "Tensor" not in str(parameter.type):
            continue
        given = args[place] if place < len(args) else kwargs.get(parameter.name)
        for one in given if isinstance(given, tuple | list) else (given,):
            if not is_torch_tensor(one):
                found.append(None)
            elif one.requires_grad:
                found.append(NEEDS)
            elif one.is_floating_point() or one.is_complex():
                found.append(one)
    return found


def behind(edges: Any, operands: list[Any]) -> list[Any]:
    """The operand behind each edge to nothing; None where it is not known.

    What a node has no formula for has no edge (running means, weights of a loss): such operands come last in
    a signature, so that the first ones that fit are taken.
    """
    found: list[Any] = []
    rest = iter(operands)
    for node, _ in edges:
        for one in rest:
            if (one is NEEDS) == (node is not None):
                found.append(None if one is NEEDS else one)
                break
        else:
            return [None] * len(edges)
    return found

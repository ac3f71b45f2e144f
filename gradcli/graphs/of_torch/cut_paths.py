"""What a line has cut off its graph is followed to the nodes that use it, so that a loss knows its cuts.

What is detached for one loss is no reason why another loss does not reach a parameter.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Iterable
from typing import Any

from gradcli.graphs.of_torch.torch_tensors import node_of

KEY = "gradcli cuts"  # in `node.metadata`


class CutPaths:
    """The tensors without a graph that come of a cut, by id, as long as they live."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Any], frozenset[Any]]] = {}

    def begins(self, tensor: Any, cut: Any) -> None:
        """A cut has made a tensor."""
        self._add(tensor, frozenset((cut,)))

    def __bool__(self) -> bool:
        return bool(self._known)

    def follow(self, made: Iterable[Any], given: Iterable[Any]) -> None:
        """An operation on what was given has made these tensors, or has written into them."""
        cuts: frozenset[Any] = frozenset()
        for one in given:
            known = self._known.get(id(one))
            if known is not None and known[0]() is one:
                cuts |= known[1]
        for tensor in made if cuts else ():
            node = node_of(tensor)
            if node is None:
                self._add(tensor, cuts)
            else:
                node.metadata[KEY] = node.metadata.get(KEY, frozenset()) | cuts

    def _add(self, tensor: Any, cuts: frozenset[Any]) -> None:
        key = id(tensor)
        known = self._known.get(key)
        if known is not None and known[0]() is tensor:
            cuts |= known[1]
        gone = functools.partial(self._forget, key)
        self._known[key] = weakref.ref(tensor, gone), cuts

    def _forget(self, key: int, ref: Any) -> None:
        if (known := self._known.get(key)) is not None and known[0] is ref:
            del self._known[key]


def cuts_of(nodes: Iterable[Any]) -> set[Any]:
    """The cuts that a graph's nodes use the results of."""
    found: set[Any] = set()
    for node in nodes:
        found.update(node.metadata.get(KEY, ()))
    return found

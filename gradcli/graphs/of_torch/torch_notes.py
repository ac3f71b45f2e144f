"""What is learnt of a node of PyTorch's, kept on the node itself so that nothing keeps its graph alive."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gradcli.graphs import value_text
from gradcli.graphs.of_torch.module_calls import Calls
from gradcli.graphs.of_torch.torch_tensors import readable, version_of
from gradcli.graphs.probes import Place, Probe

KEY = "gradcli"  # in `node.metadata`


class Note:
    """What is known of a node from the time when it was made, and from the backward pass."""

    by_hand = False  # whether a program has packed a saved tensor of a node that is there already
    # Most notes are never told any of these: what is in the class alone takes no time.
    value: Any = None  # Stats of the result
    leaf: Any = None  # Stats of a leaf in its last recorded pass, and its version then
    grads: Any = None  # Stats of the gradients that came, by output
    sent: Any = None  # and of those that went out, by input
    operands: Any = ()  # see `operands.py`
    turn = 0
    packed = True  # what it saved may have been packed by a hook; PyTorch 2.10 says it itself
    spent = False  # a backward pass has run that would have freed it

    def __init__(
        self, order: int, file: str | None, line: int, call: int, calls: Calls | None
    ) -> None:
        self.order, self.file, self.line = order, file, line
        self.call, self.calls = call, calls  # which call, of those of this watch

    @property
    def place(self) -> Place | None:
        """The user's line."""
        return Place.at(self.file, self.line)


def note_of(node: Any) -> Note | None:
    """What was learnt of a node; None if nobody watched."""
    found = node.metadata.get(KEY)
    return found if isinstance(found, Note) else None


def noted(node: Any) -> Note:
    """The note of a node; a new one where nobody watched."""
    note = note_of(node)
    if note is None:
        note = node.metadata[KEY] = Note(0, None, 0, -1, None)
    return note


def keep_leaves(nodes: Iterable[Any]) -> None:
    """A pass that is recorded begins: remember what the leaves hold, into which a step will write."""
    for node in nodes:
        leaf = getattr(node, "variable", None)
        if leaf is not None and readable(leaf):
            noted(node).leaf = value_text.stats_of(leaf), version_of(leaf)


def former_leaf(node: Any) -> Any:
    """What a leaf held in its recorded pass (Stats), where it has been written since."""
    note = note_of(node)
    if note is None or note.leaf is None or version_of(node.variable) == note.leaf[1]:
        return None
    return note.leaf[0]


class WatchedProbe(Probe):
    """What the notes say of the nodes of a program that was watched. calls: of its modules."""

    calls: Calls

    def place(self, node: Any) -> Place | None:
        """The user's line, if the forward pass was watched."""
        note = note_of(node)
        return None if note is None else note.place

    def module(self, node: Any) -> str | None:
        """The path of the innermost module that made it."""
        call = self.call(node)
        return None if call < 0 else self.calls.path(call)

    def call(self, node: Any) -> int:
        """The call of a module that made it; -1 if none did."""
        note = note_of(node)
        return -1 if note is None or note.calls is not self.calls else note.call

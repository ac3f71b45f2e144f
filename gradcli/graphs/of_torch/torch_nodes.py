"""The nodes of PyTorch's own graphs, asked as ours are; torch is whatever its user has imported."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from gradcli.engine.core.node import FREED
from gradcli.graphs import value_text
from gradcli.graphs.of_torch import packed_tensors, torch_versions
from gradcli.graphs.of_torch.module_calls import Calls
from gradcli.graphs.of_torch.operands import behind
from gradcli.graphs.of_torch.torch_notes import Note, WatchedProbe, former_leaf, note_of
from gradcli.graphs.of_torch.torch_pass import TorchRecorder, once_more, recorded
from gradcli.graphs.of_torch.torch_tensors import (
    dense_parts,
    is_torch_tensor,
    is_workspace,
    node_of,
    readable,
)
from gradcli.graphs.probes import Constant, Output
from gradcli.graphs.traversal import LAST, Walk, class_name

AGAIN = "Trying to backward through the graph a second time"


class TorchProbe(WatchedProbe):
    """Asks nodes of PyTorch's. names: tensors' names by the address of their data."""

    foreign = True
    of_program = True

    def __init__(self, calls: Calls, names: Mapping[str, Any]) -> None:
        self.torch: Any = sys.modules["torch"]
        self._tells = torch_versions.tells()
        self.calls = calls
        self._fields: dict[type, list[str]] = {}
        self._named: dict[int, str] = {}
        self._parameters: set[int] = set()
        for name, tensor in calls.parameters():
            address = address_of(tensor)
            if address:
                self._named.setdefault(address, name)
                self._parameters.add(self.identity(tensor))
        for name, tensor in names.items():
            if node_of(tensor) is None and address_of(tensor):
                self._named.setdefault(address_of(tensor), name)
        self._names = dict(names)
        self._shapes = {
            name: tensor.shape for name, tensor in (*calls.parameters(), *names.items())
        }

    # -- what a node is --------------------------------------------------------------------------
    def outputs(self, node: Any) -> list[Output]:
        """Shapes, dtypes and devices, as the node expects gradients to have them."""
        if type(node) is Constant:
            tensor = node.tensor
            name = value_text.dtype_name(tensor.dtype)
            return [Output(tuple(tensor.shape), name, str(tensor.device))]
        found = []
        for meta in getattr(node, "_input_metadata", ()):
            try:
                shape = tuple(int(n) for n in meta.shape)
                found.append(Output(shape, value_text.dtype_name(meta.dtype), str(meta.device)))
            except RuntimeError:  # nested tensors have no shape
                found.append(Output(None, None))
        return found

    def name_of(self, tensor: Any, names: Mapping[int, str]) -> str | None:
        """The parameter's path, or the variable's name."""
        if id(tensor) in names:
            return names[id(tensor)]
        found = self._named.get(address_of(tensor))
        # A variable's address with other elements is a part of it.
        known = None if found is None else self._shapes.get(found)
        is_part = known is not None and math.prod(known) != math.prod(tensor.shape)
        return f"view of {found}" if is_part else found

    def name_of_constant(self, tensor: Any, names: Mapping[int, str]) -> str | None:
        """The variable's name; of a view of one, that it is that, if it has another shape."""
        if id(tensor) in names:
            return names[id(tensor)]
        found = self._named.get(address_of(tensor))
        is_same = found is None or self._shapes.get(found) == tensor.shape
        return found if is_same else f"view of {found}"

    # -- what it saved ---------------------------------------------------------------------------
    def fields(self, node: Any) -> Iterator[tuple[str, Any]]:
        """What the node saved; what a hook has packed (checkpointing) is left packed."""
        for name, value, _ in self._entries(node):
            yield name, value

    def _entries(self, node: Any) -> Iterator[tuple[str, Any, Any]]:
        """The node's fields: name, value, and how PyTorch holds it."""
        inner = getattr(node, "_wrapped_node", None)
        if inner is not None:  # of CopySlices, from PyTorch 2.14 on: what was done to the part
            yield "function", class_name(inner), None
            yield from self._entries(inner)
        for name in self._names_of_fields(node):
            if name == "tensors":  # of a custom Function
                yield from self._custom(node)
                continue
            raw = getattr(node, f"_raw_saved_{name}", None)
            why = self._closed(node, raw)
            yield name, self._read(node, name, raw) if why is None else why, raw

    def _closed(self, node: Any, raw: Any) -> Unread | None:
        """Why a saved tensor, or a list of them, is not read: that would run a hook of the user's."""
        for one in raw if isinstance(raw, tuple | list) else () if raw is None else (raw,):
            if hasattr(one, "unpack_hook"):
                if one.unpack_hook is not None:
                    return Unread("packed by a hook, as in checkpointing")
            elif (note := note_of(node)) is None or note.packed or Note.by_hand:
                return Unread(
                    f"not known: {torch_versions.name()} does not say if a hook packed it"
                )
        return None

    def _names_of_fields(self, node: Any) -> list[str]:
        kind = type(node)
        if kind not in self._fields:
            found = [a.removeprefix("_saved_") for a in dir(kind) if a.startswith("_saved_")]
            if "_raw_saved_tensors" in dir(kind):
                found.append("tensors")
            self._fields[kind] = found
        return self._fields[kind]

    def _custom(self, node: Any) -> Iterator[tuple[str, Any, Any]]:
        try:
            raws = node._raw_saved_tensors
        except RuntimeError:
            yield "saved_tensors", FREED, None
            return
        for k, raw in enumerate(raws or ()):
            value: Any = self._closed(node, raw)
            if value is None:
                value = raw.data if hasattr(raw, "data") else self._custom_saved(node, k)
            yield f"saved_tensors[{k}]", value, raw

    def _custom_saved(self, node: Any, k: int) -> Any:
        try:
            return node.saved_tensors[k]
        except RuntimeError:
            return Unread("written in place since")

    def _read(self, node: Any, name: str, raw: Any) -> Any:
        try:
            found = getattr(node, f"_saved_{name}")
            if not is_torch_tensor(found):
                return _signed(found)
            if not readable(found):
                return Unread("inside vmap or grad, or without data")
            return (
                Unread(f"workspace of {found.nbytes:,} bytes")
                if is_workspace(name, found)
                else found
            )
        except RuntimeError as error:
            if str(error).startswith(AGAIN):
                return FREED
            data = getattr(raw, "data", None)
            what = "written in place since" if "inplace" in str(error) else "not readable"
            return Unread(what if data is None else f"{what}, {value_text.shape_text(data.shape)}")

    def written(self, node: Any) -> Iterator[tuple[str, int, Any]]:
        """What was written in place since the node saved it: its field, the version saved, the tensor."""
        for name, value in self.fields(node):
            if isinstance(value, Unread) and value.startswith("written in place"):
                try:
                    getattr(node, f"_saved_{name}")
                except RuntimeError as error:
                    then = re.search(r"expected version (\d+)", str(error))
                    data = getattr(getattr(node, f"_raw_saved_{name}"), "data", None)
                    if then is not None and data is not None:
                        yield name, int(then[1]), data

    def kept(self, node: Any) -> tuple[list[Any], bool]:
        """The tensors that the node keeps alive."""
        found: list[Any] = []
        freed = False
        for _, value, raw in self._entries(node):
            if value is FREED:
                freed = True
            elif isinstance(value, Unread):
                for one in raw if isinstance(raw, tuple | list) else (raw,):
                    hook = getattr(one, "unpack_hook", None)
                    found += packed_tensors.held(getattr(one, "data", None), hook)
            elif isinstance(value, tuple | list):
                found += value
            else:
                found.append(value)
        return [part for one in found if is_torch_tensor(one) for part in dense_parts(one)], freed

    def untold(self, node: Any) -> int:
        """How many of its saved tensors PyTorch does not show: only its versions before 2.10."""
        if self._tells:
            return 0
        hidden = [r for _, v, r in self._entries(node) if isinstance(v, Unread)]
        raws = [one for r in hidden for one in (r if isinstance(r, tuple | list) else (r,))]
        return sum(one is not None and not hasattr(one, "data") for one in raws)

    def identity(self, held: Any) -> Any:
        """The storage: views of one are kept alive together."""
        return held.untyped_storage().data_ptr() or id(held)

    def nbytes(self, held: Any) -> int:
        """The bytes of the storage."""
        return int(held.untyped_storage().nbytes())

    def is_parameter(self, held: Any) -> bool:
        """Tell whether it is alive anyway, being a parameter."""
        return self.identity(held) in self._parameters

    # -- the whole graph -------------------------------------------------------------------------
    def maker(self, tensor: Any) -> Any:
        """The node that made a tensor, where PyTorch says it."""
        return node_of(tensor)

    def root_of(self, tensor: Any) -> Any:
        """Where a tensor's gradient goes."""
        if (node := node_of(tensor)) is not None or not tensor.requires_grad:
            return node
        return self.torch.autograd.graph.get_gradient_edge(tensor).node

    def default_dtype(self) -> str:
        """The dtype that goes without saying."""
        return str(value_text.dtype_name(self.torch.get_default_dtype()))

    def known_values(self, skeleton: Walk, watched: Any = None) -> dict[int, Any]:
        """Leaves as their pass found them, and results as they were counted up when they were made."""
        found: dict[int, Any] = {}
        for i, node in enumerate(skeleton.nodes):
            variable = getattr(node, "variable", None)
            if type(node) is Constant:
                variable = node.tensor
            elif variable is not None and (former := former_leaf(node)) is not None:
                variable = former
            if variable is not None:
                found[i] = variable
            elif (note := note_of(node)) is not None and note.value is not None:
                found[i] = note.value
        return found

    def constants(self, node: Any, watched: Any = None) -> list[Any]:
        """The operand without a gradient behind each None among a node's edges; None if not known."""
        note = note_of(node)
        return behind(node.next_functions, [] if note is None else list(note.operands))

    def order(self, skeleton: Walk) -> list[Any]:
        """The order in which nodes run: by sequence number, leaves once all has arrived."""
        inner = [n for n in skeleton.nodes if n._sequence_nr() < LAST]
        inner.sort(key=lambda n: -n._sequence_nr())
        waiting = list(skeleton.uses)
        found = []
        for node in inner or skeleton.nodes:
            found.append(node)
            for edge in skeleton.edges[skeleton.ids[node]]:
                if edge is None:
                    continue
                waiting[edge[0]] -= 1
                child = skeleton.nodes[edge[0]]
                if not waiting[edge[0]] and child._sequence_nr() >= LAST:
                    found.append(child)
        return found

    def capture(self, tensors: Any, seeds: Any, skeleton: Walk, check: bool = False) -> Any:
        """Backpropagate with the graph retained, or read what the program's own pass has left."""
        known = _recorded(skeleton)
        if known is not None and seeds is None:
            return known
        recorder = TorchRecorder(tensors, check=check, skeleton=skeleton)
        leaves = [n.variable for n in skeleton.nodes if hasattr(n, "variable")]
        with recorder.listening():
            inner = [parameter for _, parameter in self.calls.parameters()]
            grads = once_more(tensors, seeds, skeleton.nodes, leaves, inner)
            if grads is not None:
                recorder.arrived(leaves, grads)
        return recorder


def _signed(value: Any) -> Any:
    """A saved number; PyTorch gives a negative one, as ignore_index is, out as an unsigned word."""
    return value - 2**64 if type(value) is int and value >= 2**63 else value


class Unread(str):
    """What a node saved and does not give out, in words."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"({str.__str__(self)})"


def address_of(tensor: Any) -> int:
    """Where a tensor's data lies; 0 where that is not known."""
    try:
        return int(tensor.data_ptr())
    except (RuntimeError, AttributeError):  # sparse, fake and nested tensors have none
        return 0


def _recorded(skeleton: Walk) -> TorchRecorder | None:
    """The steps of a pass that the program has run while it was watched."""
    root = skeleton.nodes[skeleton.roots[0]]
    note = note_of(root)
    if note is None or not note.turn:
        return None
    recorder = recorded(skeleton)
    recorder.look()
    return recorder

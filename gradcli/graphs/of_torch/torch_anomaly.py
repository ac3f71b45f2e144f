"""The first NaN in a PyTorch program: the operation, its place, and its operands.

PyTorch's anomaly mode only tells where the forward operation was; this tells the cause.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from types import FrameType
from typing import Any

from gradcli.graphs import nonfinite, value_text
from gradcli.graphs.of_torch.torch_tensors import is_workspace, node_of
from gradcli.graphs.probes import Place
from gradcli.graphs.remedies import input_remedy, overflows, remedy
from gradcli.graphs.traversal import walk

_ALONE = re.compile(
    r"\s*(return\b)?[\w\s,.\[\]]*=?\s*"
)  # what may stand before all that a line computes


@dataclass(slots=True)
class Found:
    """An operation with finite operands whose result or gradient is not finite."""

    message: str
    place: Place | None
    module: int  # the call; -1 outside of modules
    inputs: dict[str, str] = field(default_factory=dict)
    remedy: str = ""
    computed: bool = False  # of finite operands
    when: str = ""  # which step, which rows
    leaves: frozenset[int] = frozenset()  # what it depends on, by id
    piece: str = ""  # of the line: the call itself, where the line has more than that
    overflowed: bool = False  # numbers have become too large, as too large steps make them


def in_forward(
    name: str,
    result: Any,
    operands: list[tuple[str, Any]],
    place: Place | None,
    call: int,
    node: Any = None,
) -> Found:
    """An operation made NaN or infinity; operands: what it was called with, by name."""
    wrong = nonfinite.wrong(result) or "nan"
    told: dict[str, str] = {}
    for label, tensor in operands:
        known = value_text.stats_of(tensor)
        told[label] = _range(known)
        if known.bad and node_of(tensor) is None:
            bad = nonfinite.wrong(known) or wrong
            what = label if label.startswith("operand ") else f"the input {label}"
            share = value_text.share(known.bad, known.size)
            message = f"{what} has {bad} values ({known.bad:,} of {known.size:,}, {share})"
            found = Found(message, place, call, told, input_remedy(bad))
            found.leaves = frozenset((id(tensor),))
            return found
    message = f"Function '{name}' computed {wrong} values in the forward pass."
    finite = not any(value_text.stats_of(tensor).bad for _, tensor in operands)
    kind = kind_of(node, name)
    found = Found(message, place, call, told, remedy(kind, result.dtype), finite)
    nodes = filter(None, (node_of(tensor) for _, tensor in operands))
    found.leaves = _leaves(nodes) | {id(t) for _, t in operands if node_of(t) is None}
    found.overflowed = overflows(kind)
    return found


def in_backward(node: Any, name: str, sent: Any, place: Place | None, call: int) -> Found:
    """A step of the backward pass sent NaN or infinity."""
    output = next(k for k, grad in enumerate(sent) if grad is not None and grad.bad)
    wrong = nonfinite.wrong(sent[output]) or "nan"
    message = f"Function '{name}' returned {wrong} values in its {output}th output."
    told = {field: _range(value_text.stats_of(data)) for field, data in _saved(node)}
    kind = kind_of(node, name)
    found = Found(message, place, call, told, remedy(kind, sent[output].dtype))
    found.leaves, found.overflowed = _leaves([node]), overflows(kind)
    return found


def kind_of(node: Any, name: str) -> str:
    """The name that has the remedy: a whole power from 1 on fails where numbers are too large alone."""
    exponent = getattr(node, "_saved_exponent", None) if name.startswith("PowBackward") else None
    is_whole = isinstance(exponent, int | float) and exponent >= 1 and exponent == int(exponent)
    return "PowOfBackward0" if is_whole else name


def piece_of(frame: FrameType | None) -> str:
    """The call that a frame is in, as its line writes it; nothing where it is all that the line computes."""
    if frame is None:
        return ""
    at = frame.f_lasti // 2
    line, last, start, end = next(islice(frame.f_code.co_positions(), at, at + 1), (None,) * 4)
    if line is None or line != last or start is None:
        return ""
    whole = linecache.getline(frame.f_code.co_filename, line).encode()  # columns are of bytes
    before, piece, after = (
        part.decode(errors="replace") for part in (whole[:start], whole[start:end], whole[end:])
    )
    return "" if _ALONE.fullmatch(before) and not after.strip() else piece


def _leaves(nodes: Iterable[Any]) -> frozenset[int]:
    found = walk(dict.fromkeys(nodes)).nodes
    return frozenset(id(node.variable) for node in found if hasattr(node, "variable"))


def _saved(node: Any) -> Iterator[tuple[str, Any]]:
    """The tensors that a node has saved, by their fields; what a hook has packed is left out."""
    if hasattr(node, "saved_items"):  # one of ours
        yield from ((n, t) for n, t in node.saved_items() if value_text.is_tensor(t))
        return
    for field_name in dir(type(node)):
        if not field_name.startswith("_saved_"):
            continue
        raw = getattr(node, f"_raw{field_name}", None)
        data = getattr(raw, "data", None)
        saved = field_name.removeprefix("_saved_")
        if getattr(raw, "unpack_hook", None) is not None or not hasattr(data, "untyped_storage"):
            continue
        if not is_workspace(saved, data):
            yield saved, data


def _range(known: value_text.Stats) -> str:
    if known.size == 1:
        return f"{value_text.brief(known, 6)}  {known.dtype}"
    return f"{value_text.shape_text(known.shape)} {known.dtype}, {value_text.range_text(known, 4)}"

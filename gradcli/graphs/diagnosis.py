"""What is wrong with a graph, in order of weight: each finding with its line and what to do.

Every kind of fault is one small function of the graph (and of what was learnt while the program ran), which
yields findings. A new kind is a new function in `CHECKS`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from gradcli.graphs import flow_findings, value_text
from gradcli.graphs.gradient_flow import Flow
from gradcli.graphs.labels import plural
from gradcli.graphs.of_torch.torch_facts import SECOND_TIME, Facts
from gradcli.graphs.probes import Place
from gradcli.graphs.styles import ASCII, UNICODE, Line, fold
from gradcli.graphs.traversal import class_name

MOST_NAMES = 4
DEAD = 0.9  # of the units of an activation, zero for the whole batch
FEWEST_ROWS = 4
WORTH_TELLING = 1 << 20  # bytes

CUTS = {
    "no_grad": ("runs under no_grad", "take it out of torch.no_grad(): nothing inside is recorded"),
    "detach": ("detach() ends the graph", "leave out detach() where the gradient is to pass"),
    "data": (".data ends the graph", "use the tensor itself, without .data"),
    "tensor": ("torch.tensor(…) copies numbers", "torch.stack or torch.cat of the tensors themselves"),
    "numpy": ("NumPy records no graph", "compute it with PyTorch's functions"),
    "item": ("item() makes a number", "compute with the tensor itself; item() is for printing"),
    "tolist": ("tolist() makes numbers", "compute with the tensor itself"),
}  # fmt: skip
NO_SCALAR = "implicitly created only for scalar"
WHOLE = "whole numbers have no gradient: compute in floating point (for argmax: softmax, or gumbel_softmax)"
ERRORS = {
    "modified by an inplace operation": "write into a copy: clone() first, or the operation that returns a "
    "new tensor",
    "leaf Variable that requires grad": "write under torch.no_grad(), or into a clone()",
    SECOND_TIME[
        :40
    ]: "detach() what is carried over from step to step, or add the losses up and call "
    "backward() once",
    NO_SCALAR: "backward() of a number: loss.mean() or loss.sum()",
    "does not require grad and does not": "nothing that requires grad leads to it: see the lines that "
    "end the graph",
}


@dataclass(slots=True)
class Finding:
    """Something that is wrong, or worth knowing: its kind, what it is, where, and what to do."""

    kind: str
    text: str
    place: Place | None = None
    advice: str = ""
    fault: bool = True

    def lines(self, arrow: str = "→") -> list[Line]:
        """The finding, its line of code, and the advice."""
        where = "" if self.place is None else f"{self.place}  "
        told: list[Line] = [
            [
                ("! ", "bad") if self.fault else ("  ", "note"),
                (f"{where}{self.text}".replace("→", arrow), "value"),
            ]
        ]
        if self.place is not None and self.place.code:
            told.append([(f"    {self.place.code}", "function")])
        return [*told, [(f"  {self.advice}", "note")]] if self.advice else told

    def to_json(self) -> dict[str, Any]:
        """{"kind", "text", "file", "line", "code", "advice"}."""
        file, line, code = self.place or (None, None, None)
        return {
            **{
                "kind": self.kind,
                "fault": self.fault,
                "text": self.text,
                "file": file,
                "line": line,
                "code": code,
            },
            "advice": self.advice,
        }


@dataclass(slots=True)
class Diagnosis:
    """The findings of a graph: `plain()` is text, `fitted` lines for a terminal."""

    findings: list[Finding]
    ascii: bool = False

    @property
    def faults(self) -> list[Finding]:
        """Those that are wrong."""
        return [one for one in self.findings if one.fault]

    def lines(self, width: int | None = None, ascii: bool = False) -> Iterator[Line]:
        """Every finding, with an empty line before it; that there is no fault, if so."""
        arrow = (ASCII if ascii or self.ascii else UNICODE).to
        if not self.faults:
            yield [("nothing wrong was found", "note")]
        for finding in self.findings:
            yield []
            for line in finding.lines(arrow):
                yield from [line] if width is None else fold(line, max(width, 20))

    def plain(self) -> str:
        """Return the findings as text."""
        return "\n".join("".join(t for t, _ in line).rstrip() for line in self.lines()).strip("\n")

    def fitted(self, width: int, *, ascii: bool, coloured: bool = True) -> Iterator[Line]:
        """Return the lines for a terminal."""
        return self.lines(width, ascii)


def diagnose(graph: Any, facts: Facts | None = None, error: str | None = None) -> Diagnosis:
    """Find what is wrong with an inspected graph.

    facts: what was learnt while the program ran. error: the words of the error that ended it.
    """
    return Diagnosis([one for check in CHECKS for one in check(graph, facts, error)])


# -- what the program died of ---------------------------------------------------------------------
def _ended(graph: Any, facts: Facts | None, error: str | None) -> Iterator[Finding]:
    if error is None or next(_written(graph, facts, error), None) is not None:
        return
    known = _known_error(error)
    if known is None and not len(graph.skeleton):
        return
    at, _, said = error.partition(": ")
    file, _, line = at.rpartition(":")
    if not line.isdecimal():
        said, file = error, ""
    place = Place.at(os.path.abspath(file), int(line)) if file else None
    text, fault = said.partition(". ")[0], True
    if NO_SCALAR in error and len(graph.skeleton):
        at_root = graph.skeleton.roots[0]
        label = graph.describer.label(at_root) or class_name(graph.skeleton.nodes[at_root])
        shape = value_text.shape_text(graph.tensors[0].shape)
        fault = place is not None  # or nobody has asked for a gradient
        place = place or graph.probe.place(graph.skeleton.nodes[at_root])
        text = f"{label} has the shape {shape}: {text}"
    yield Finding("error", text, place, known or "", fault)


def _known_error(error: str) -> str | None:
    """What helps against an error of the backward pass, or against what makes one impossible."""
    return next((advice for words, advice in ERRORS.items() if words in error), None)


def _written(graph: Any, facts: Facts | None, error: str | None) -> Iterator[Finding]:
    """Saved values that were written in place before the backward pass."""
    if facts is None or not (error and "inplace operation" in error):
        return
    for node in graph.skeleton.nodes:
        for name, now, data in graph.probe.written(node):
            then = graph.probe.place(node)
            lines = facts.writes.get(data.untyped_storage().data_ptr(), {})
            place = next((Place.at(*w) for w, v in lines.items() if now < v and w[0]), None)
            what = "something" if place is None else place.code
            operation = class_name(node).partition("Backward")[0].lower()
            text = (
                f"{what.partition('  #')[0]} changes what {then} {operation}(…) has saved ({name})"
            )
            yield Finding("in place", text, place, ERRORS["modified by an inplace operation"])
            return


# -- parameters without a gradient ----------------------------------------------------------------
def _cut_off(graph: Any, facts: Facts | None, error: str | None) -> Iterator[Finding]:
    if facts is None or graph.calls is None:
        return
    if error is not None and not facts.step and _known_error(error) is None:
        return  # it ended before there was a loss
    leaves = {id(n.variable) for n in graph.skeleton.nodes if hasattr(n, "variable")}
    missing = {
        name: p
        for name, p in graph.calls.called_parameters()
        if p.requires_grad and p.is_leaf and id(p) not in leaves | facts.trained
    }
    grouped: dict[tuple[str, Place | None], list[str]] = {}
    cuts = sorted(facts.cuts.values(), key=lambda cut: cut.kind == "no_grad")
    for name, p in missing.items():
        cut = next((one for one in cuts if id(p) in one.leaves), None)
        born = Place.at(*facts.born.get(id(p), (None, 0)))
        key = ("", born) if cut is None else (cut.kind, cut.place)
        grouped.setdefault(key, []).append(name)
    for (kind, place), names in grouped.items():
        how, advice = (
            "no operation that leads to the loss uses it",
            ("call it in forward and let the loss depend on it, or take it out of the model"),
        )
        if kind in CUTS:
            how, advice = CUTS[kind]
        elif kind:
            how, advice = f"{kind.removeprefix('whole numbers of ')}() ends the graph", WHOLE
        text = f"{plural(len(names), 'parameter')} without a gradient ({_some(names)}): {how}"
        yield Finding("no gradient", text, place, advice)


def _not_optimized(graph: Any, facts: Facts | None, error: str | None) -> Iterator[Finding]:
    """Parameters that have a gradient, and that no optimizer steps though others are stepped."""
    if facts is None or not facts.optimized or error is not None:  # or its step was still to come
        return
    found: dict[Place | None, list[str]] = {}
    for i, node in enumerate(graph.skeleton.nodes):
        leaf = getattr(node, "variable", None)
        if leaf is not None and id(leaf) in facts.born and id(leaf) not in facts.optimized:
            born = Place.at(*facts.born[id(leaf)])
            found.setdefault(born, []).append(graph.describer.label(i) or "unnamed")
    for place, names in found.items():
        text = f"{plural(len(names), 'parameter')} that no optimizer steps ({_some(names)})"
        advice = "register the module (nn.ModuleList, not a list), and give its parameters to the optimizer"
        yield Finding("not optimized", text, place, advice)


# -- NaN and infinity -----------------------------------------------------------------------------
def _not_finite(graph: Any, facts: Facts | None, error: str | None) -> Iterator[Finding]:
    found = None if facts is None else facts.nonfinite
    if not graph.probe.foreign and (own := graph.anomaly()) is not None:
        piece = graph.describer.piece(own.span)
        yield Finding("not finite", f"{piece or own.name}: {own.message}", None, own.remedy)
    if found is not None:
        text = f"{found.message.rstrip('.')}{found.when}"
        yield Finding("not finite", text, found.place, found.remedy)


# -- gradients that vanish or explode -------------------------------------------------------------
def _flow(graph: Any, facts: Facts | None, error: str | None) -> Iterator[Finding]:
    """A chain of layers in each direction, or else the first node, with how many more there are."""
    if graph.recorder is None or (facts is not None and facts.nonfinite is not None):
        return
    flow = Flow(graph)
    chains = list(flow_findings.chains(flow))
    single = list(flow_findings.single_nodes(flow, proved=True))
    for vanishes in (True, False):
        alike = [one for one in chains or single if one.vanishes == vanishes]
        if not alike:
            continue
        first = min(alike, key=lambda one: one.id)
        more = f"; {plural(len(alike) - 1, 'place')} more" if len(alike) > 1 else ""
        place = graph.probe.place(graph.skeleton.nodes[first.id])
        where = "" if place else graph.describer.piece(graph.describer.span(first.id)) or ""
        text = f"{first.name}{where and '  '}{where}: {first.words}{more}"
        yield Finding("vanishing" if vanishes else "exploding", text, place, first.remedy)


def _dead(graph: Any, facts: Facts | None, error: str | None) -> Iterator[Finding]:
    """Activations that are zero for every row of the batch."""
    for node in graph.skeleton.nodes:
        if class_name(node) != "ReluBackward0" or not graph.probe.foreign:
            continue
        result: Any = dict(graph.probe.fields(node)).get("result")
        if not hasattr(result, "numel") or result.ndim < 2 or result.shape[0] < FEWEST_ROWS:
            continue
        units = (result.detach() == 0).flatten(1).all(0)
        share = float(units.float().mean()) if units.numel() else 0.0
        if share >= DEAD:
            words = value_text.share(int(units.sum()), units.numel())
            text = f"{words} of the units of a relu are 0 for the whole batch"
            advice = (
                "a smaller learning rate, another initialisation of its layer, leaky_relu or gelu"
            )
            yield Finding("dead relu", text, graph.probe.place(node), advice)


# -- memory ---------------------------------------------------------------------------------------
def _leaks(graph: Any, facts: Facts | None, error: str | None) -> Iterator[Finding]:
    leak = None if facts is None else facts.leak
    if leak is not None:
        text = f"{leak.count} graphs of earlier steps hang on `{leak.name}`"
        advice = "add up numbers: loss.item(), or loss.detach()"
        yield Finding("memory", text, leak.place, advice)


def _kept(graph: Any, facts: Facts | None, error: str | None) -> Iterator[Finding]:
    """The lines that keep most for the backward pass, where that is much."""
    total = graph.totals.nbytes - graph.totals.parameters
    if not graph.probe.foreign or total < WORTH_TELLING:
        return
    seen: set[Any] = set()
    lines: dict[Place, int] = {}
    for node in graph.skeleton.nodes:
        place = None if hasattr(node, "variable") else graph.probe.place(node)
        for one in () if place is None else graph.probe.kept(node)[0]:
            key = graph.probe.identity(one)
            if place is not None and key not in seen and not graph.probe.is_parameter(one):
                seen.add(key)
                lines[place] = lines.get(place, 0) + graph.probe.nbytes(one)
    largest = sorted(lines.items(), key=lambda item: -item[1])
    if largest:
        told = ", ".join(f"{p} {value_text.bytes_text(n)}" for p, n in largest[:MOST_NAMES])
        text = f"{value_text.bytes_text(total)} are kept for the backward pass: {told}"
        advice = "torch.utils.checkpoint computes a part anew instead of keeping it"
        if graph.modules is not None:
            text, advice = text + _by_module(graph.modules), _checkpointing(graph.modules) or advice
        yield Finding("memory", text, largest[0][0], advice, fault=False)


def _by_module(modules: Any) -> str:
    """The largest modules that are not in one another's whole, with what they keep."""
    top = [part for part in modules.rows() if part.depth > 0] or list(modules.parts.values())
    least = min(part.depth for part in top)
    kept = {part.path: modules.kept(part.nodes) for part in top if part.depth == least}
    largest = sorted(kept.items(), key=lambda item: -item[1])[:MOST_NAMES]
    return "; by module: " + ", ".join(f"{p} {value_text.bytes_text(n)}" for p, n in largest if n)


def _checkpointing(modules: Any) -> str | None:
    """What checkpointing would free of the largest run of equal modules: all but one's at a time."""
    runs = []
    for calls in modules.runs.values():
        parts = [modules.parts[modules.calls.path(call)] for call in calls]
        kept = [modules.kept(part.nodes) for part in parts]
        runs.append((sum(kept) - max(kept), parts))
    freed, parts = max(runs, key=lambda run: run[0], default=(0, []))
    if freed < WORTH_TELLING:
        return None
    size = value_text.bytes_text(freed)
    return f"torch.utils.checkpoint around each of {parts[0].path} … {parts[-1].path} frees up to {size}"


def _some(names: Iterable[str]) -> str:
    """The first few of many names."""
    known = list(names)
    more = len(known) - MOST_NAMES
    return ", ".join(known[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


Check = Callable[[Any, Facts | None, str | None], Iterator[Finding]]
# In order of weight.
CHECKS: tuple[Check, ...] = (
    *(_ended, _written, _cut_off, _not_finite, _flow, _dead, _not_optimized, _leaks, _kept),
)

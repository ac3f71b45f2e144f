"""What is wrong with a graph, in order of weight: each finding with its line and what to do.

Every kind of fault is one small function of the graph (and of what was learnt while the program ran), which
yields findings. A new kind is a new function in `CHECKS`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from gradcli.graphs import (
    flow_findings,
    missing_gradients,
    slip_findings,
    training_findings,
    value_text,
)
from gradcli.graphs.findings import MOST_NAMES, Finding
from gradcli.graphs.gradient_flow import Flow
from gradcli.graphs.labels import plural
from gradcli.graphs.of_torch.torch_facts import SECOND_TIME, Facts
from gradcli.graphs.of_torch.torch_tensors import memory_of
from gradcli.graphs.probes import Place
from gradcli.graphs.styles import ASCII, UNICODE, Line, fold
from gradcli.graphs.traversal import class_name

DEAD = 0.9  # of the units of an activation, zero for the whole batch
FEWEST_ROWS = 4
WORTH_TELLING = 1 << 26  # bytes: less is nothing to save

NO_SCALAR = "implicitly created only for scalar"
NO_GRAPH = "does not require grad and does not"
# PyTorch's words -> what helps. Of several versions where they word it differently.
ERRORS = {
    "modified by an inplace operation": "write into a copy: clone() first, or the operation that returns a "
    "new tensor",
    "leaf Variable that requires grad": "write under torch.no_grad(), or into a clone()",
    SECOND_TIME[:40]: "detach() what is carried over from step to step, or add the losses up and call "
    "backward() once",
    NO_SCALAR: "backward() of a number: loss.mean() or loss.sum()",
    NO_GRAPH: "nothing that requires grad leads to it: see the lines that end the graph",
    "object has no attribute 'backward'": "keep the loss a tensor: item() and float() are for printing",
    "expected target dtype to be Long": "classes are whole numbers: labels.long()",
    "expected scalar type Long": "classes are whole numbers: labels.long()",
    "for argument #2 'target'": "classes are whole numbers: labels.long()",
    '"nll_loss_out_frame" not implemented': "classes are whole numbers: labels.long()",
    "can't be cast to the desired output type": "targets have the dtype of predictions: labels.float()",
    "Found dtype Double but expected Float": "targets have the dtype of predictions: labels.float()",
    "Found dtype Float but expected Double": "targets have the dtype of predictions: labels.double()",
    "0D or 1D target tensor expected": "a class is one number a row: labels.squeeze(1)",
    "is out of bounds.": "classes count from 0: labels - 1 if theirs count from 1, or a last layer with "
    "as many outputs as there are classes",
    "elements of input should be between 0 and 1": "binary_cross_entropy_with_logits of the scores, or "
    "sigmoid before binary_cross_entropy",
    "index out of range in self": "indices of an Embedding count from 0 and are below its num_embeddings",
    "to match target batch_size": "as many rows in both: flatten predictions and targets alike",
    "shapes cannot be multiplied": "the last dimension of the input is the layer's in_features: flatten(1) "
    "before the first Linear, or another in_features",
    "Expected more than 1 value per channel": "BatchNorm needs two rows or more in train(): DataLoader(…, "
    "drop_last=True), or eval()",
    "empty parameter list": "a model registers what it is given as nn.Module, nn.ModuleList or "
    "nn.Parameter, not as a list",
    "mat1 and mat2 must have the same dtype": "data of the weights' dtype: x.float()",
    "numpy() on Tensor that requires grad": "detach() first: x.detach().numpy(), which ends the graph",
}  # fmt: skip


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
    """The error, where it is no consequence of a NaN."""
    if not _is_of_nan(facts, error):
        yield from _error(graph, facts, error)


def _ended_by_nan(graph: Any, facts: Facts | None, error: str | None) -> Iterator[Finding]:
    """The error, after the NaN that it most likely comes of."""
    if _is_of_nan(facts, error):
        yield from _error(graph, facts, error)


def _is_of_nan(facts: Facts | None, error: str | None) -> bool:
    """Tell whether the program has refused a NaN that it has computed: its own words name one."""
    of_nan = facts is not None and facts.nonfinite is not None
    return of_nan and bool(re.search(r"\b(nan|inf(inite|inity)?)\b", error or "", re.I))


def _error(graph: Any, facts: Facts | None, error: str | None) -> Iterator[Finding]:
    if error is None or next(_written(graph, facts, error), None) is not None:
        return
    known = _known_error(error)
    if known is None and not len(graph.skeleton):
        return
    if NO_SCALAR in error and facts is not None and facts.partial:
        return  # the loss is another
    cut = NO_GRAPH in error or "'backward'" in error
    if cut and any(one.fault for one in missing_gradients.cut_off(graph, facts, error)):
        return  # which says it better
    if cut and facts is not None and (icy := list(missing_gradients.frozen(graph, facts))):
        yield from icy
        return
    at, _, said = error.partition(": ")
    file, _, line = at.rpartition(":")
    if not line.isdecimal():
        said, file = error, ""
    place = Place.at(os.path.abspath(file), int(line)) if file else None
    text, fault = said.partition("\n")[0].partition(". ")[0].rstrip(": "), True
    if NO_SCALAR in error and len(graph.skeleton):
        at_root = graph.skeleton.roots[0]
        label = graph.describer.label(at_root) or class_name(graph.skeleton.nodes[at_root])
        shape = value_text.shape_text(graph.tensors[0].shape)
        fault = place is not None  # or nobody has asked for a gradient
        place = place or graph.probe.place(graph.skeleton.nodes[at_root])
        text = f"{label} has the shape {shape}: {text}"
    if facts is not None and known is not None and (refused := facts.training.refused) is not None:
        given = ", ".join(f"{name} {what}".strip() for name, what in refused[1])
        text += f"; {refused[0]} was given {given}" if given else ""
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
            lines = facts.writes.get(memory_of(data), {})
            place = next((Place.at(*w) for w, v in lines.items() if now < v and w[0]), None)
            what = "something" if place is None else place.code
            operation = class_name(node).partition("Backward")[0].lower()
            text = (
                f"{what.partition('  #')[0]} changes what {then} {operation}(…) has saved ({name})"
            )
            yield Finding("in place", text, place, ERRORS["modified by an inplace operation"])
            return


# -- NaN and infinity -----------------------------------------------------------------------------
def _not_finite(graph: Any, facts: Facts | None, error: str | None) -> Iterator[Finding]:
    found = None if facts is None else facts.nonfinite
    if facts is not None and training_findings.rising(facts.training.losses) is not None:
        return  # what the loss has come to by itself
    if facts is None and not graph.probe.foreign and (own := graph.anomaly()) is not None:
        piece = graph.describer.piece(own.span)
        yield Finding("not finite", f"{piece or own.name}: {own.message}", None, own.remedy)
    if found is not None:
        yield from _flow_of(graph) if graph.finite_step is not None else ()  # which comes before it
        piece = f"{found.piece}: " if found.piece else ""
        text = f"{piece}{found.message.rstrip('.')}{found.when}"
        yield Finding("not finite", text, found.place, _with_operands(found))


def _with_operands(found: Any) -> str:
    """The remedy; where it says to look at operands, with what they were."""
    told = "; ".join(f"{name} = {text}" for name, text in found.inputs.items())
    advice: str = found.remedy
    for where in ("look at the operands above", "look at the input above"):
        advice = advice.replace(where, f"here {told}" if told else where.removesuffix(" above"))
    return advice


# -- gradients that vanish or explode -------------------------------------------------------------
def _flow(graph: Any, facts: Facts | None, error: str | None) -> Iterator[Finding]:
    """A chain of layers in each direction, or else the first node, with how many more there are."""
    if facts is None or facts.nonfinite is None:
        yield from _flow_of(graph)


def _flow_of(graph: Any) -> Iterator[Finding]:
    if graph.recorder is None:
        return
    when = (
        ""
        if graph.finite_step is None
        else f"; this is step {graph.finite_step}, the last finite one"
    )
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
        text = f"{first.name}{where and '  '}{where}: {first.words}{more}{when}"
        yield Finding("vanishing" if vanishes else "exploding", text, place, first.remedy)


def _dead(graph: Any, facts: Facts | None, error: str | None) -> Iterator[Finding]:
    """Activations that are zero for every row of the batch."""
    if next(slip_findings.alike(graph, facts, error), None) is not None:
        return  # which says it better
    for i, node in enumerate(graph.skeleton.nodes):
        if class_name(node) != "ReluBackward0" or not graph.probe.of_program:
            continue
        result: Any = dict(graph.probe.fields(node)).get("result")
        if not value_text.is_tensor(result) or result.ndim < 2 or result.shape[0] < FEWEST_ROWS:
            continue
        units = (value_text.as_array(result) == 0).reshape(result.shape[0], -1).all(0)
        if units.size and units.mean() >= DEAD:
            words = value_text.share(int(units.sum()), units.size)
            before = next((edge[0] for edge in graph.skeleton.edges[i] if edge is not None), None)
            layer = None if before is None else graph.probe.module(graph.skeleton.nodes[before])
            text = f"{words} of the units of a relu are 0 for the whole batch"
            text += f" (behind {layer})" if layer else ""
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
    if not graph.probe.of_program or total < WORTH_TELLING:
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
        sizes = [value_text.bytes_text(n) for n in (largest[0][1], total)]
        text = f"keeps {sizes[0]} of the {sizes[1]} that are kept for the backward pass"
        rest = [f"{p} {value_text.bytes_text(n)}" for p, n in largest[1:MOST_NAMES]]
        text += f"; then {', '.join(rest)}" if rest else ""
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
    """What checkpointing would free of the largest run of equal modules: all but what comes to them."""
    runs = []
    for calls in modules.runs.values():
        parts = [modules.parts[modules.calls.path(call)] for call in calls]
        freed = modules.kept(i for part in parts for i in part.nodes)
        runs.append((freed - sum(map(modules.inputs, parts)), parts))
    freed, parts = max(runs, key=lambda run: run[0], default=(0, []))
    if freed < WORTH_TELLING:
        return None
    size, one = map(value_text.bytes_text, (freed, max(modules.kept(p.nodes) for p in parts)))
    told = f"torch.utils.checkpoint around each of {parts[0].path} … {parts[-1].path} keeps {size} less"
    return f"{told} ({one} come back while one of them is computed anew)"


Check = Callable[[Any, Facts | None, str | None], Iterator[Finding]]
# In order of weight.
CHECKS: tuple[Check, ...] = (
    *(
        _ended,
        _written,
        missing_gradients.cut_off,
        missing_gradients.no_leaf,
        _not_finite,
        _ended_by_nan,
    ),
    *(training_findings.steps, training_findings.modes, training_findings.losses),
    *slip_findings.CHECKS,
    *(_flow, _dead, training_findings.learning_rate, missing_gradients.not_optimized),
    *(_leaks, _kept),
)

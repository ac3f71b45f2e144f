"""What hardly anybody means: steps that change nothing, clips that come too late, dropout in evaluations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gradcli.graphs import value_text
from gradcli.graphs.findings import Finding, some
from gradcli.graphs.labels import plural
from gradcli.graphs.of_torch.torch_facts import Facts
from gradcli.graphs.of_torch.torch_tensors import memory_of
from gradcli.graphs.probes import Place
from gradcli.graphs.traversal import class_name

LOST = 0.9  # of the elements that have a gradient, unchanged by a step
ALIKE = 1e-5  # what rounding makes of rows that are one
FEWEST = 3  # optimizers made at one line for the same parameters
LAYERS = ("Linear", "Conv1d", "Conv2d", "Conv3d")
MOVES = frozenset(
    "View UnsafeView Reshape Squeeze Unsqueeze Permute Transpose Slice Select Index Gather Alias "
    "Clone Expand Add".split()
)


def clips(graph: Any, facts: Facts | None, error: str | None) -> Iterator[Finding]:
    """Gradients that are clipped when a step has used them, or before there are any."""
    for where, one in () if facts is None else facts.training.slips.clips.items():
        if one.right or one.used + one.empty < 2:
            continue
        if one.used:
            text = f"{one.name} clips {one.used} times what step() has used already"
            if one.norm:
                norm = value_text.number(one.norm, 3)
                text += f": steps were made with |grad| up to {norm} (max_norm is {one.limit:g})"
        else:
            text = f"{one.name} has nothing to clip in {plural(one.empty, 'call')}: no gradient is there yet"
        yield Finding(
            "step", text, Place.at(*where), "between loss.backward() and optimizer.step()"
        )


def dropout(graph: Any, facts: Facts | None, error: str | None) -> Iterator[Finding]:
    """Dropout that goes on in eval mode, for nobody has told the function of it."""
    for where, (name, count) in () if facts is None else facts.training.slips.drops.items():
        place = Place.at(*where)
        if place is None or "training" in place.code:
            continue  # meant, as for an average over draws
        text = f"{name} drops in {plural(count, 'call')} of a model in eval mode"
        attends = name not in place.code or "attention" in name
        advice = (
            "dropout_p=self.p if self.training else 0.0" if attends else "training=self.training"
        )
        yield Finding(
            "mode", text, place, f"{name}(…, {advice})" + ("" if attends else ", or nn.Dropout")
        )


def no_logarithms(graph: Any, facts: Facts | None, error: str | None) -> Iterator[Finding]:
    """kl_div of what is no logarithm of a probability."""
    for where, high in () if facts is None else facts.training.slips.no_logarithms.items():
        text = (
            f"kl_div is given numbers up to {value_text.number(high, 3)}, and wants logarithms of "
        )
        text += "probabilities, which are at most 0"
        advice = "log_softmax of the scores instead of softmax (the target stays as probabilities)"
        yield Finding("loss", text, Place.at(*where), advice)


def early_schedule(graph: Any, facts: Facts | None, error: str | None) -> Iterator[Finding]:
    """A schedule that steps before the optimizer: PyTorch's own warning, as a finding."""
    where = None if facts is None else facts.training.slips.early_schedule
    if where is not None:
        text = "the schedule steps before the optimizer: the first learning rate is never used"
        yield Finding("step", text, Place.at(*where), "scheduler.step() after optimizer.step()")


def made_anew(graph: Any, facts: Facts | None, error: str | None) -> Iterator[Finding]:
    """An optimizer that is made for every step, and so remembers nothing."""
    groups: dict[Any, list[Any]] = {}
    for one in () if facts is None else facts.training.optimizers:
        groups.setdefault((one.made, one.kind, frozenset(one.parameters)), []).append(one)
    for (made, kind, _), ones in groups.items():
        remembers = next((one.remembers for one in ones if one.remembers), ())
        if len(ones) < FEWEST or not remembers or max(one.steps for one in ones) > 1:
            continue
        text = f"{kind} is made anew {len(ones)} times, for every step: what it remembers "
        text += f"({some(remembers)}) is lost each time"
        yield Finding("step", text, Place.at(*made), "make the optimizer once, before the loop")


def lost_steps(graph: Any, facts: Facts | None, error: str | None) -> Iterator[Finding]:
    """Steps so small that rounding takes them away."""
    names = {} if facts is None or graph.calls is None else dict(_by_id(graph))
    for one in () if facts is None else facts.training.optimizers:
        lost = [update for update in one.updates if update.lost >= LOST]
        if len(lost) < 2 or 2 * len(lost) < len(one.updates) or one.rate == 0:
            continue
        last = lost[-1]
        p = one.parameters.get(last.parameter)
        kind = str(getattr(p, "dtype", "")).rpartition(".")[2]
        rate = "" if one.rate is None else f" with lr={one.rate:g}"
        text = f"step {last.step} of {one.called}{rate} leaves {100 * last.lost:.0f}% of "
        text += f"{names.get(last.parameter, 'a weight')} as it is: beside the weights it is smaller than "
        text += f"{kind} can hold"
        advice = "a larger learning rate (a schedule may have made it so small)"
        if kind in ("bfloat16", "float16"):
            advice = "keep the weights in float32 (torch.autocast computes in half precision), or a larger lr"
        yield Finding("learning rate", text, Place.at(*one.made), advice)


def _by_id(graph: Any) -> Iterator[tuple[int, str]]:
    for name, parameter in graph.calls.parameters():
        yield id(parameter), name


def alike(graph: Any, facts: Facts | None, error: str | None) -> Iterator[Finding]:
    """Layers whose units are all alike after steps: they get the same gradients, and stay so."""
    if facts is None or graph.calls is None:
        return
    found: dict[Place | None, list[tuple[str, Any]]] = {}
    for number, root in enumerate(graph.calls.roots):
        before = f"{graph.calls.prefix(number)}." if graph.calls.prefix(number) else ""
        for path, part in root.named_modules():
            weight = getattr(part, "weight", None)
            is_layer = type(part).__name__ in LAYERS and id(weight) in facts.optimized
            if is_layer and _rows_are_one(value_text.as_array(weight)):
                place = Place.at(*_written_at(weight, facts))
                found.setdefault(place, []).append((f"{before}{path and f'{path}.'}weight", weight))
    for place, weights in found.items():
        names, units = some(name for name, _ in weights), max(len(w) for _, w in weights)
        zero = not any(bool(w.detach().any()) for _, w in weights)
        text = f"all {units} units of {names} are alike{' and 0' if zero else ''}, and stay so: they get the "
        text += "same gradient in every step, and learn what one unit can"
        advice = "weights drawn at random: leave PyTorch's as they are, or nn.init.kaiming_uniform_"
        yield Finding("initialisation", text, place, advice)


def _written_at(weight: Any, facts: Facts) -> Any:
    """The line that has filled a weight, before the first step."""
    steps = {one.stepped for one in facts.training.optimizers}
    lines = [at for at in facts.writes.get(memory_of(weight), {}) if at[0] and at not in steps]
    return lines[-1] if lines else facts.born.get(id(weight), (None, 0))


def _rows_are_one(values: Any) -> bool:
    if len(values) < 2:
        return False
    return bool((np.abs(values - values[:1]) <= ALIKE * np.abs(values[:1])).all())


def rounded_logarithms(graph: Any, facts: Facts | None, error: str | None) -> Iterator[Finding]:
    """log of softmax or sigmoid: no fault as long as no probability is rounded to 0."""
    for i, node in enumerate(graph.skeleton.nodes):
        if class_name(node) != "LogBackward0" or not graph.probe.of_program:
            continue
        under = next((edge[0] for edge in graph.skeleton.edges[i] if edge is not None), None)
        rest = under is not None and class_name(graph.skeleton.nodes[under]).startswith(
            "Rsub"
        )  # 1 - p
        for kind, better in (("Softmax", "log_softmax"), ("Sigmoid", "logsigmoid")):
            j = _source(graph, under if rest and under is not None else i, kind)
            if j is None:
                continue
            result: Any = dict(graph.probe.fields(graph.skeleton.nodes[j])).get("result")
            told = _rounded(result, kind.lower(), rest)
            loss = "cross_entropy" if kind == "Softmax" else "binary_cross_entropy_with_logits"
            other = "logsigmoid(-x)" if kind == "Sigmoid" and rest else better
            advice = f"{other} in one, or {loss} of the scores"
            yield Finding("loss", told, graph.probe.place(node), advice, fault=False)


def _rounded(result: Any, kind: str, rest: bool) -> str:
    """How many probabilities are rounded to 0 (rest: to 1), or that they might be."""
    name, end = (f"1 - {kind}", "1") if rest else (kind, "0")
    if not value_text.is_tensor(result):
        return f"log of {name} is -inf where a probability is rounded to {end}"
    known = value_text.stats_of(result)
    count = int((value_text.as_array(result) == 1).sum()) if rest else known.zeros
    if count:
        share = value_text.share(count, known.size)
        return f"log of {name} is -inf where a probability is rounded to {end}: {share} of them are"
    last, value = ("largest", known.high) if rest else ("least", known.low)
    here = f"the {last} here is {value_text.number(value, 2)}"
    return f"log of {name} would be -inf where a probability is rounded to {end} ({here})"


def _source(graph: Any, i: int, wanted: str) -> int | None:
    """The node of a kind that a node's first input comes from, but for what moves or shifts elements."""
    for _ in range(10):
        edge = next(iter(graph.skeleton.edges[i]), None)
        if edge is None:
            return None
        i = edge[0]
        stem = class_name(graph.skeleton.nodes[i]).partition("Backward")[0]
        if stem == wanted:
            return int(i)
        if stem not in MOVES:
            return None
    return None


CHECKS = (
    clips,
    early_schedule,
    dropout,
    no_logarithms,
    made_anew,
    lost_steps,
    alike,
    rounded_logarithms,
)

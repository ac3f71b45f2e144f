"""What is wrong with a training loop: steps and zeros, modes, losses, the learning rate."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from gradcli.graphs import value_text
from gradcli.graphs.findings import Finding
from gradcli.graphs.labels import plural
from gradcli.graphs.of_torch.torch_facts import Facts
from gradcli.graphs.of_torch.training_facts import Update
from gradcli.graphs.probes import Place
from gradcli.graphs.traversal import class_name

BCE = "BinaryCrossEntropyWithLogitsBackward0"
MOVES = frozenset(
    "View UnsafeView Reshape Squeeze Unsqueeze Permute Transpose T Slice Select Alias ToCopy Clone "
    "Expand Flatten".split()
)
BETWEEN = MOVES | frozenset("Pow Abs Mul Neg Sqrt Div Add SmoothL1Loss HuberLoss MseLoss".split())
WORSE = 0.2  # of the first loss, that a later one is larger: less may be another batch
FAR = 10  # so many times a weight, a step may have led anywhere
ABSURD = 1000  # times: it is the gradient that is too large, and not the learning rate
RISES, MUCH = 5, 100  # steps in which a loss grows, and so many times
ROUNDED = 1e-3  # a logarithm of a probability so far above 0 is rounded
SUMS = frozenset(("Mean", "Sum", "MseLoss", "SmoothL1Loss", "HuberLoss", "Abs"))


def steps(graph: Any, facts: Facts | None, error: str | None) -> Iterator[Finding]:
    """Steps without a gradient, and gradients that are stepped again."""
    for one in () if facts is None else facts.training.optimizers:
        every = f"{one.empty} of {plural(one.steps, 'step')} of {one.called} found no gradient"
        if one.empty and not one.early and one.empty_after[0] is not None:
            at = Place.at(*one.empty_after)
            text = f"{every}: zero_grad() runs between backward() and step()"
            yield Finding("step", text, at, "zero_grad() before backward(), or after step()")
        elif one.empty and (one.empty == one.steps or one.steps > 1):
            text = f"{every}: step() runs before backward()"
            yield Finding("step", text, Place.at(*one.stepped), "loss.backward(), then step()")
        elif not one.steps and one.unused > 1:
            norm = value_text.number(one.norm, 3)
            text = f"{one.called} has made no step: the gradients of {one.unused} backward passes "
            text += f"(|grad| up to {norm}) were zeroed unused"
            advice = "optimizer.step() after it; with its brackets"
            yield Finding("step", text, Place.at(*one.last_pass), advice)
        elif one.stale:
            before, after = (value_text.number(n, 3) for n in one.sums)
            text = f"{one.stale} of {plural(one.steps, 'step')} of {one.called} used gradients of "
            text += f"earlier steps again: |grad| was {before} before a backward pass and {after} after it"
            advice = "zero_grad() in every step, before backward()"
            yield Finding("step", text, Place.at(*one.stepped), advice)


def learning_rate(graph: Any, facts: Facts | None, error: str | None) -> Iterator[Finding]:
    """Steps that are larger than the weights, of a loss that rises."""
    losses = [] if facts is None else facts.training.losses
    if facts is None or len(losses) < 2:
        return
    if math.isfinite(losses[-1]) and losses[-1] <= losses[0] + WORSE * abs(losses[0]):
        return
    if (rise := rising(losses)) is not None:
        yield from _diverges(facts, *rise)
        return
    names = {id(p): name for name, p in (() if graph.calls is None else graph.calls.parameters())}
    for one in facts.training.optimizers:
        large = [update for update in one.updates if update.size < update.change < math.inf]
        if not math.isfinite(losses[-1]):
            large = [update for update in large if _may_ruin(update, facts)]
        if not large:
            continue
        worst = max(large, key=lambda update: update.change / update.size)
        ratio, first, last = (
            value_text.number(n, 2) for n in (worst.change / worst.size, losses[0], losses[-1])
        )
        name = names.get(worst.parameter, "a weight")
        rate = "" if one.rate is None else f" with lr={one.rate:g}"
        text = f"step {worst.step} of {one.called}{rate} is {ratio} times as large as {name} itself"
        text += f", and the loss goes from {first} to {last}"
        advice = f"a learning rate {ratio} times smaller or less"
        if worst.change > ABSURD * worst.size:
            advice = (
                "clip_grad_norm_ before step(); and see what makes the gradient so large: --norms"
            )
        yield Finding("learning rate", text, Place.at(*one.made), advice)


def _may_ruin(update: Update, facts: Facts) -> bool:
    """Tell whether a step can have made a loss NaN, as far as its first operation that is not finite says."""
    found = facts.nonfinite
    if found is None:
        return True
    finite = list(filter(math.isfinite, facts.training.losses))
    rose = len(finite) > 1 and finite[-1] > finite[0] + WORSE * abs(finite[0])
    large = rose or found.overflowed or update.change > FAR * update.size
    return update.parameter in found.leaves and large


def rising(losses: list[float]) -> tuple[int, list[float]] | None:
    """(the number of the first, the losses) of the last steps, if each is larger and all together much."""
    end = next((k for k, loss in enumerate(losses) if not math.isfinite(loss)), len(losses))
    first = end - 1
    while first > 0 and losses[first] > losses[first - 1]:
        first -= 1
    rise = losses[first:end]
    is_much = len(rise) > RISES and rise[-1] > MUCH * abs(rise[0]) > 0
    return (first + 1, rise) if is_much else None


def _diverges(facts: Facts, first: int, rise: list[float]) -> Iterator[Finding]:
    """The steps of every optimizer overshoot."""
    factor = (rise[-1] / rise[-4]) ** (1 / 3)  # in the end one direction grows alone
    low, high, each = (value_text.number(n, 2) for n in (rise[0], rise[-1], factor))
    for one in facts.training.optimizers:
        if not one.steps or not one.rate:
            continue
        text = (
            f"the steps of {one.called} with lr={one.rate:g} overshoot: the loss grows in each of "
        )
        text += f"{len(rise) - 1} steps, at last {each}-fold, from {low} (step {first}) to {high}"
        advice = "a learning rate 10 times smaller, or inputs of mean 0 and deviation 1"
        if one.kind == "SGD" and not one.momentum:  # of a quadratic: (1 - lr*c)**2 is the factor
            most = value_text.number(2 * one.rate / (1 + math.sqrt(factor)), 2)
            advice = (
                f"lr below {most} (what the growth allows), or inputs of mean 0 and deviation 1"
            )
        yield Finding("learning rate", text, Place.at(*one.made), advice)


def modes(graph: Any, facts: Facts | None, error: str | None) -> Iterator[Finding]:
    """Dropout and BatchNorm that are in eval while training, or in train while evaluating."""
    if facts is None:
        return
    for mode in facts.training.modes.values():
        if mode is None or mode.ref() is None:
            continue
        if not {id(p) for p in mode.ref().parameters()} & facts.optimized:
            continue
        kind = type(mode.ref()).__name__
        if mode.trained_in_eval:
            count = plural(mode.trained_in_eval + mode.trained, "step")
            text = f"{kind} is in eval mode in {mode.trained_in_eval} of {count} of training ({mode.layers})"
            place = Place.at(*mode.evals) or Place.at(*mode.line)
            yield Finding("mode", text, place, "train() before the training steps of every epoch")
        if mode.judged and not mode.trained_in_eval:
            text = f"{kind} is in train mode in {plural(mode.judged, 'evaluation')} ({mode.layers})"
            advice = "eval() before the evaluation, train() after it"
            yield Finding("mode", text, Place.at(*mode.judged_at), advice)


def losses(graph: Any, facts: Facts | None, error: str | None) -> Iterator[Finding]:
    """Losses that are given what they do not want: probabilities, or shapes that spread."""
    if facts is None:
        return
    for i, node in enumerate(graph.skeleton.nodes):
        name = class_name(node)
        if name == "LogSoftmaxBackward0" and (j := _before(graph, i, "Softmax")) is not None:
            yield _softmax_twice(graph, i, j)
        elif name == BCE and (j := _before(graph, i, "Sigmoid")) is not None:
            yield _sigmoid_twice(graph, i, j)
        elif name.startswith("NllLoss") and (dim := _wrong_dimension(graph, i)) is not None:
            yield _across(graph, i, dim)
        elif name.startswith("NllLoss") and (high := _scores(graph, i)) is not None:
            text = f"nll_loss is given scores (up to {value_text.number(high, 3)}) and wants logarithms of "
            text += "probabilities, which are at most 0"
            advice = "cross_entropy of the scores, or log_softmax before nll_loss"
            yield Finding("loss", text, graph.probe.place(node), advice)
        elif name.startswith("NllLoss") and _before(graph, i, "Softmax") is not None:
            loss = value_text.number(value_text.stats_of(graph.tensors[0]).some[0], 3)
            text = (
                f"nll_loss is given probabilities (the loss is {loss}), and wants their logarithms"
            )
            place = graph.probe.place(node)
            yield Finding(
                "loss",
                text,
                place,
                "log_softmax instead of softmax, or cross_entropy of the scores",
            )
    yield from _spread(graph, facts)


def _before(graph: Any, i: int, wanted: str) -> int | None:
    """The node of a kind that a node's input comes from, but for what moves elements."""
    seen = 0
    while seen < 10:
        edge = next(iter(graph.skeleton.edges[i]), None)
        if edge is None:
            return None
        i, seen = edge[0], seen + 1
        stem = class_name(graph.skeleton.nodes[i]).partition("Backward")[0]
        if stem == wanted:
            return i
        if stem not in MOVES:
            return None
    return None


def _wrong_dimension(graph: Any, i: int) -> int | None:
    """The dimension that the probabilities of nll_loss sum to 1 over, where that is not the classes'."""
    given: Any = dict(graph.probe.fields(graph.skeleton.nodes[i])).get("self")
    if not value_text.is_tensor(given) or given.ndim < 2 or not all(given.shape):
        return None
    with np.errstate(over="ignore"):
        probabilities = np.exp(np.asarray(value_text.as_array(given), np.float64))

    def is_one(dim: int) -> bool:
        return bool((np.abs(probabilities.sum(dim) - 1) < ROUNDED).all())

    return None if is_one(1) else next((d for d in range(given.ndim) if is_one(d)), None)


def _across(graph: Any, i: int, dim: int) -> Finding:
    """softmax over another dimension than the classes: over the rows of the batch, most likely."""
    source = _before(graph, i, "LogSoftmax")
    place = graph.probe.place(graph.skeleton.nodes[i if source is None else source])
    what = "the rows of the batch (dim=0)" if dim == 0 else f"dim={dim}"
    text = f"nll_loss is given logarithms of probabilities that sum to 1 over {what}, and not over "
    text += "the classes (dim=1)"
    return Finding("loss", text, place, "softmax or log_softmax over the classes: dim=1")


def _scores(graph: Any, i: int) -> float | None:
    """The largest of what nll_loss is given, where that is no logarithm of a probability."""
    if _before(graph, i, "LogSoftmax") is not None or _before(graph, i, "Softmax") is not None:
        return None
    given = dict(graph.probe.fields(graph.skeleton.nodes[i])).get("self")
    if not value_text.is_tensor(given):
        return None
    high = value_text.stats_of(given).high
    return float(high) if high is not None and high > ROUNDED else None


def _softmax_twice(graph: Any, i: int, j: int) -> Finding:
    result: Any = dict(graph.probe.fields(graph.skeleton.nodes[j])).get("result")
    text = "cross_entropy is given probabilities, and takes softmax of them once more"
    if value_text.is_tensor(result):
        known = value_text.stats_of(result)
        classes = int(result.shape[-1])
        least = math.log(math.e + classes - 1) - 1
        low, high = (value_text.number(n, 3) for n in (known.low, known.high))
        text = f"cross_entropy is given probabilities (from {low} to {high}) and takes softmax of them once "
        text += f"more: of {classes} classes it cannot fall below {value_text.number(least, 3)}"
    place = graph.probe.place(graph.skeleton.nodes[i])
    return Finding("loss", text, place, "give it the scores: no softmax before cross_entropy")


def _sigmoid_twice(graph: Any, i: int, j: int) -> Finding:
    result: Any = dict(graph.probe.fields(graph.skeleton.nodes[j])).get("result")
    text = "binary_cross_entropy_with_logits is given probabilities"
    if value_text.is_tensor(result):
        known = value_text.stats_of(result)
        low, high = (value_text.number(n, 3) for n in (known.low, known.high))
        text += f" (from {low} to {high})"
    text += " and takes sigmoid of them once more: it takes 0 for 0.5 and 1 for 0.731"
    place = graph.probe.place(graph.skeleton.nodes[i])
    advice = (
        "give it the scores: no sigmoid before it (or binary_cross_entropy of the probabilities)"
    )
    return Finding("loss", text, place, advice)


def _spread(graph: Any, facts: Facts) -> Iterator[Finding]:
    """A difference of (N, 1) and (N,), all of whose N * N elements go into the loss."""
    users: dict[int, list[int]] = {}
    for i in range(len(graph.skeleton)):
        for edge in graph.skeleton.edges[i]:
            if edge is not None:
                users.setdefault(edge[0], []).append(i)
    told: set[Place] = set()
    for i, node in enumerate(graph.skeleton.nodes):
        place = graph.probe.place(node)
        if place is None or place in told:
            continue
        known = facts.training.broadcasts.get((place.file, place.line))
        if known is None or not _is_summed(graph, users, i):
            continue
        told.add(place)
        name, a, b = known
        long, short = (a, b) if len(a) > len(b) else (b, a)
        many, meant = math.prod(long) * short[-1], math.prod(long)
        shown = f"{value_text.shape_text(a)} and {value_text.shape_text(b)}"
        what = "the difference" if "sub" in name else name
        text = f"{what} of {shown} spreads them against one another: "
        text += f"{many:,} differences instead of {meant:,}"
        yield Finding(
            "loss",
            text,
            place,
            "give both the same shape: squeeze(-1) of the one, or unsqueeze(-1)",
        )


def _is_summed(graph: Any, users: dict[int, list[int]], i: int) -> bool:
    """Tell whether a difference goes into the loss element by element, and whole."""
    for _ in range(8):
        stem = class_name(graph.skeleton.nodes[i]).partition("Backward")[0]
        outputs = graph.probe.outputs(graph.skeleton.nodes[i])
        if stem in SUMS and outputs and outputs[0].shape == ():
            return True
        above = set(users.get(i, ()))
        if len(above) != 1:
            return False
        i = above.pop()
        if class_name(graph.skeleton.nodes[i]).partition("Backward")[0] not in BETWEEN | SUMS:
            return False
    return False

"""Gradients that vanish or explode, in words: where, by how much, by what, and what to do."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gradcli.graphs import value_text
from gradcli.graphs.gradient_flow import PRODUCTS, SUFFERS, Chain, Flow, RepeatedPart
from gradcli.graphs.labels import plural
from gradcli.graphs.remedies import IN_GENERAL, change_remedy
from gradcli.graphs.slopes import FLAT, Slope, slope_of
from gradcli.graphs.traversal import class_name

NEAR = 1.25  # weights this near to what an initialiser gives are not to blame
CERTAIN = 1e-3  # a loss below it: outputs between 0 and 1 are right already
UNEXPLAINED = 1e3  # a loss so many times the gradients that it sends is not nearly 0
GAINS = {"Relu": math.sqrt(2), "Tanh": 5 / 3, "LeakyRelu": math.sqrt(2), "Gelu": math.sqrt(2)}
STEEPEST = (
    "sigmoid divides by 4 or more in every layer, whatever the weights are: relu with kaiming_normal_ "
    "weights, or a residual connection"
)
STEPS = ("Round", "Floor", "Ceil", "Trunc", "Sign")  # their slope is 0 everywhere
STRAIGHT = (
    "its slope is 0 everywhere: pass the gradient by it, x + (f(x) - x).detach(), or a soft version"
)
SINGULAR = (
    "Div",
    "Reciprocal",
    "Log",
    "Log2",
    "Log10",
    "Sqrt",
    "Rsqrt",
    "Norm",
    "LinalgVectorNorm",
)


@dataclass(slots=True)
class Told:
    """A place where gradients vanish or explode: the node that it is at, the words and the remedy."""

    id: int
    name: str
    words: str
    before: float
    after: float
    remedy: str

    @property
    def vanishes(self) -> bool:
        """Tell whether the gradient falls."""
        return self.after < self.before

    @property
    def text(self) -> str:
        """Say it where its line is told beside it."""
        return f"{self.name}: {self.words}"


def told_of_chain(flow: Flow, chain: Chain) -> Told:
    """What each layer does, and which of its parts."""
    names = _layer_names(flow, chain)
    verb = "divides" if chain.vanishes else "multiplies"
    before, after = (value_text.number(one.norm, 3) for one in (chain.before, chain.after))
    text = f"each {verb} the gradient by "
    text += f"{value_text.number(chain.factor, 2)} ({before} → {after}; "
    share = f"less than 1/{SUFFERS:.0f} of" if chain.vanishes else f"more than {SUFFERS:.0f} times"
    text += f"{_have(chain.suffering)} {share} that)"
    slopes = [_slopes(flow, part) for part in chain.parts]
    words = []
    for part, slope in zip(chain.parts, slopes, strict=True):
        measured = slope.words if slope is not None else _weights(flow, chain, part)
        words.append(f"{_stem(part.name)} {verb} by {value_text.number(part.factor, 2)}" + measured)
    if words:
        text += ": " + "; ".join(words)
    return Told(
        *(_place_of(flow, chain), names, text),
        *(chain.before.norm, chain.after.norm, _remedy(flow, chain, slopes)),
    )


def _have(count: int) -> str:
    return f"{plural(count, 'parameter')} {'has' if count == 1 else 'have'}"


def _stem(name: str) -> str:
    return name.partition("Backward")[0].lstrip("_").lower()


def _layer_names(flow: Flow, chain: Chain) -> str:
    """How many layers, by their paths or their parameters, in the order of the forward pass."""
    found = []
    for i in chain.layers[::-1]:
        names = [flow.graph.describer.label(leaf) or "" for leaf in flow.users[i]]
        best = next((name for name in names if name), "")
        found.append(best.rpartition(".")[0] or best)
    alone = list(dict.fromkeys(name for name in found if name))
    if len(alone) == 1:
        return f"{alone[0]}, used {len(found)} times"
    shown = f" ({' … '.join((alone[0], alone[-1]))})" if alone else ""
    return f"{len(found)} layers{shown}"


def _place_of(flow: Flow, chain: Chain) -> int:
    """A layer on the line that most of the layers are on."""
    places = {i: flow.probe.place(flow.skeleton.nodes[i]) for i in chain.layers}
    usual = Counter(places.values()).most_common(1)[0][0]
    return next(i for i in chain.layers if places[i] == usual)


def _slopes(flow: Flow, part: RepeatedPart) -> Slope | None:
    """The slopes of the middle one of the nodes: the first and the last are often unlike the others."""
    node = flow.skeleton.nodes[part.ids[len(part.ids) // 2]]
    found = slope_of(node, flow.probe)
    if found is not None:
        found.words = f" ({found.words})"
    return found


def _rms(flow: Flow, i: int) -> tuple[float, int] | None:
    """The root mean square of the weights of a layer, and how many products each output sums."""
    for leaf in flow.users.get(i, ()):
        variable = flow.skeleton.nodes[leaf].variable
        shape = tuple(map(int, variable.shape))
        if len(shape) < 2:
            continue
        known = value_text.stats_of(flow.values.get(leaf, variable))
        turned = any(
            edge is not None
            and edge[0] != leaf
            and flow.skeleton.edges[edge[0]][:1] == ((leaf, 0),)
            for edge in flow.skeleton.edges[i]
        )
        straight = (
            not turned
            and len(shape) == 2
            and "Convolution" not in class_name(flow.skeleton.nodes[i])
        )
        inputs = shape[0] if straight else math.prod(shape[1:])
        return known.norm / math.sqrt(known.size), inputs
    return None


def _wanted(flow: Flow, chain: Chain) -> tuple[float, float] | None:
    """The root mean square of the weights of the middle layer, and what an initialiser would give."""
    i = chain.layers[len(chain.layers) // 2]
    found = _rms(flow, i)
    if found is None:
        return None
    return found[0], _gain(flow, chain) / math.sqrt(found[1])


def _gain(flow: Flow, chain: Chain) -> float:
    """What the activation between the layers asks of an initialiser."""
    path = flow.path(chain.layers[-1])
    nodes = flow.skeleton.nodes
    inner = path[path.index(chain.layers[0]) + 1 :]
    stems = {class_name(nodes[i]).partition("Backward")[0] for i in inner}
    return next((gain for stem, gain in GAINS.items() if stem in stems), 1.0)


def _weights(flow: Flow, chain: Chain, part: RepeatedPart) -> str:
    """The size of weights, beside the size that keeps gradients."""
    if part.name.partition("Backward")[0] not in PRODUCTS:
        return ""
    known = _wanted(flow, chain)
    if known is None:
        return ""
    own, wanted = (value_text.number(one, 2) for one in known)
    return f" (its weights have RMS {own}; {wanted} would keep the gradient)"


def _remedy(flow: Flow, chain: Chain, slopes: list[Slope | None]) -> str:
    if not chain.parts:
        return IN_GENERAL[chain.vanishes]
    first, slope = chain.parts[0], slopes[0]
    stem = first.name.partition("Backward")[0]
    if chain.vanishes and slope is not None:
        if slope.saturated:
            return change_remedy(first.name, vanishes=True)
        if stem == "Sigmoid":
            return STEEPEST
    known = _wanted(flow, chain)
    if known is not None and max(known) > NEAR * min(known):
        way = "kaiming_normal_" if _gain(flow, chain) > 1 else "xavier_normal_"
        size = value_text.number(known[1], 2)
        return f"initialise the weights for the activation: nn.init.{way} gives them RMS {size}"
    return IN_GENERAL[chain.vanishes]


def chains(flow: Flow) -> Iterator[Told]:
    """The chain of each direction, if there is one."""
    for vanishes in (True, False):
        found = flow.chain(vanishes=vanishes)
        if found is not None:
            yield told_of_chain(flow, found)


def single_nodes(flow: Flow, *, proved: bool) -> Iterator[Told]:
    """Nodes that change the gradient at once, by more than a thousand.

    proved: only such as are flat or singular where they were called, and as parameters suffer from.
    """
    for i, came, sent in flow.jumps():
        node = flow.skeleton.nodes[i]
        name, vanishes = class_name(node), sent.norm < came.norm
        slope = slope_of(node, flow.probe) if vanishes else None
        if proved and not (
            flow.matters(i, came, vanishes=vanishes) and _is_proved(flow, i, name, slope, sent)
        ):
            continue
        change = (
            "falls to 0"
            if sent.norm == 0
            else f"{'falls' if vanishes else 'grows'} by {_factor(came.norm, sent.norm)}"
        )
        before, after = (value_text.number(one.norm, 3) for one in (came, sent))
        measured = f"; {slope.words}" if slope is not None else ""
        words = f"|grad| {change} ({before} → {after}){measured}"
        remedy = (
            STRAIGHT if _stem(name).title() in STEPS else change_remedy(name, vanishes=vanishes)
        )
        yield Told(i, name, words, came.norm, sent.norm, remedy)


def _factor(before: float, after: float) -> str:
    ratio = before / after if after < before else after / before
    return value_text.number(ratio, 2)


def _is_proved(flow: Flow, i: int, name: str, slope: Slope | None, sent: Any) -> bool:
    stem = name.partition("Backward")[0]
    if stem in STEPS:
        return bool(sent.norm == 0)
    if slope is None:
        return stem in SINGULAR and bool(sent.norm > flow.came[i].norm)
    if stem == "Relu" or slope.most > FLAT * slope.possible:
        return False  # dead units are told of all batches
    if flow.depth(i) == 0:  # no parameter after it: a prediction, which may be certain and right
        loss = value_text.stats_of(flow.graph.tensors[0]).norm
        return bool(loss > max(CERTAIN, UNEXPLAINED * sent.norm * math.sqrt(sent.size)))
    return True

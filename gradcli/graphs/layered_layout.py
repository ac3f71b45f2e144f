"""A layered layout: nodes in rows below whoever consumes them, few crossings, straight edges.

Sugiyama's four steps: a layer for each node (longest path), bends for edges that pass layers, an
order within the layers (barycentres), then places (least squares under the order, by pooling).
`page/layout.js` does the same for what is unfolded in the page.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

LONGEST_EDGE = 4  # edges over more layers end in a small reference instead,
CLEAR, FEW_ENDS = 150, 4  # but where the graph is small and few edges lead to the target
GAP, LAYER_GAP, BEND = 26.0, 34.0, 10.0
SWEEPS, ROUNDS = 6, 10
REFERENCE_HEIGHT = 24.0


@dataclass(slots=True)
class Box:
    """A rectangle to be placed; x and y are its centre."""

    key: int
    width: float
    height: float
    layer: int = 0
    x: float = 0.0
    y: float = 0.0
    room: float = 0.0  # the height of its layer, which a bend passes upright


@dataclass(slots=True)
class Wire:
    """An edge: where it leaves, where it arrives; `points` is the way it takes."""

    source: int
    target: int
    index: int  # which input of the source
    count: int  # how many inputs it has
    output: int = 0
    reference: Box | None = None  # the target is far away: the edge ends here
    points: list[tuple[float, float]] = field(default_factory=list)
    reference_width: float = 64.0  # of the reference, if it comes to that
    reference_height: float = REFERENCE_HEIGHT


@dataclass(slots=True)
class Layout:
    """Where everything goes."""

    boxes: list[Box]
    wires: list[Wire]
    width: float
    height: float


def layout(boxes: Sequence[Box], wires: Sequence[Wire]) -> Layout:
    """Place the boxes (numbered 0, 1, … in order of first visit) and lead the wires."""
    everything = list(boxes)
    _assign_layers(everything, wires)
    chains: list[tuple[Wire, list[Box]]] = []
    ends = Counter(wire.target for wire in wires)
    for wire in wires:
        source, target = everything[wire.source], everything[wire.target]
        clear = len(boxes) <= CLEAR and ends[wire.target] <= FEW_ENDS
        if target.layer - source.layer > LONGEST_EDGE and not clear:
            end = Box(len(everything), wire.reference_width, wire.reference_height)
            end.layer = source.layer + 1
            wire.reference = end
            everything.append(end)
            chains.append((wire, [source, end]))
            continue
        chain = [source]
        for layer in range(source.layer + 1, target.layer):
            bend = Box(len(everything), BEND, 0.0, layer)
            everything.append(bend)
            chain.append(bend)
        chains.append((wire, [*chain, target]))
    layers = _order(everything, [(a.key, b.key) for _, c in chains for a, b in pairwise(c)])
    _place(layers, everything, chains)
    width, height = _frame(everything, layers)
    _lead(chains)
    return Layout(list(boxes), list(wires), width, height)


def _assign_layers(boxes: list[Box], wires: Iterable[Wire]) -> None:
    follow: dict[int, list[int]] = defaultdict(list)
    waiting = [0] * len(boxes)
    for wire in wires:
        follow[wire.source].append(wire.target)
        waiting[wire.target] += 1
    ready = [box.key for box in boxes if not waiting[box.key]]
    for i in ready:
        for j in follow[i]:
            boxes[j].layer = max(boxes[j].layer, boxes[i].layer + 1)
            waiting[j] -= 1
            if not waiting[j]:
                ready.append(j)


def _order(boxes: list[Box], links: list[tuple[int, int]]) -> list[list[int]]:
    """Order each layer so that few links cross; keeps the best order that it meets."""
    above: dict[int, list[int]] = defaultdict(list)
    below: dict[int, list[int]] = defaultdict(list)
    for a, b in links:
        below[a].append(b)
        above[b].append(a)
    layers: list[list[int]] = [[] for _ in range(max((b.layer for b in boxes), default=-1) + 1)]
    for i in _first_visits(boxes, below, above):
        layers[boxes[i].layer].append(i)
    best, fewest = [list(layer) for layer in layers], _crossings(layers, below)
    for sweep in range(SWEEPS):
        if not fewest:
            break
        down = sweep % 2 == 0
        near = above if down else below
        at = {i: float(k) for layer in layers for k, i in enumerate(layer)}
        for layer in layers if down else reversed(layers):
            layer.sort(key=lambda i: _mean([at[j] for j in near[i]], at[i]))
            at.update((i, float(k)) for k, i in enumerate(layer))
        now = _crossings(layers, below)
        if now < fewest:
            best, fewest = [list(layer) for layer in layers], now
    return best


def _first_visits(
    boxes: list[Box], below: dict[int, list[int]], above: dict[int, list[int]]
) -> list[int]:
    """Depth first from the roots: a tree drawn in this order has no crossing."""
    seen: dict[int, None] = {}
    stack = [box.key for box in reversed(boxes) if not above[box.key]]
    while stack:
        i = stack.pop()
        if i not in seen:
            seen[i] = None
            stack.extend(reversed(below[i]))
    return list(seen)


def _mean(numbers: Sequence[float], otherwise: float) -> float:
    return sum(numbers) / len(numbers) if numbers else otherwise


def _crossings(layers: list[list[int]], below: dict[int, list[int]]) -> int:
    count = 0
    at = {i: k for layer in layers for k, i in enumerate(layer)}
    for layer in layers:
        seen: list[int] = []
        for i in layer:
            ends = [at[j] for j in below[i]]
            for end in ends:
                count += len(seen) - bisect_right(seen, end)
            for end in ends:
                insort(seen, end)
    return count


Chain = tuple[Wire, list[Box]]


def port(wire: Wire, source: Box) -> float:
    """Return where on its source's lower edge a wire leaves: inputs from left to right."""
    spread = source.width * 0.6
    return source.x + spread * ((wire.index + 1) / (wire.count + 1) - 0.5)


def _place(layers: list[list[int]], boxes: list[Box], chains: list[Chain]) -> None:
    """Move every box to the mean of its neighbours, as far as the order within the layer allows."""
    ups, downs = _pulls(chains)
    for layer in layers:
        x = 0.0
        for i in layer:
            boxes[i].x = x + boxes[i].width / 2
            x += boxes[i].width + GAP
    for turn in range(ROUNDS):
        near = downs if turn % 2 == 0 else ups
        for layer in reversed(layers) if turn % 2 == 0 else layers:
            wanted, weights = [], []
            for i in layer:
                force = pull = 0.0
                for j, offset, weight in near[i]:
                    force += weight
                    pull += (boxes[j].x + offset) * weight
                wanted.append(pull / force if force else boxes[i].x)
                weights.append(force or 0.2)
            if len(layer) == 1:  # alone, it goes where it is drawn to
                boxes[layer[0]].x = wanted[0]
                continue
            places = pooled(wanted, weights, [boxes[i].width for i in layer])
            for i, x in zip(layer, places, strict=True):
                boxes[i].x = x


Pulls = dict[int, list[tuple[int, float, float]]]  # by box: (neighbour, offset, weight)


def _pulls(chains: list[Chain]) -> tuple[Pulls, Pulls]:
    """Return the weights of the least squares: strong along a spine, weak for branches."""
    inner = {chain[0].key for _, chain in chains}
    spines: dict[int, set[int]] = defaultdict(set)
    for long in (False, True):  # of a short and a long way down the short one is the spine
        for wire, chain in chains:
            deep = chain[-1].key in inner and (len(chain) > 2) == long
            if deep and not (long and spines[wire.source]):
                spines[wire.source].add(wire.target)
    ups: Pulls = defaultdict(list)
    downs: Pulls = defaultdict(list)
    for wire, chain in chains:
        deep = chain[-1].key in inner
        spine = len(spines[wire.source]) == 1
        straight = deep and spines[wire.source] == {wire.target}
        offset = 0.0 if straight else port(wire, chain[0]) - chain[0].x
        for a, b in pairwise(chain):
            bends = (not a.height) + (not b.height)
            weight = (1.0, 2.0, 6.0)[bends] * (60.0 if straight else 3.0 if deep else 1.0)
            ups[b.key].append((a.key, offset, weight))
            # What hangs from a spine must not bend it, or long chains would drift sideways.
            soft = a is chain[0] and spine and not straight
            downs[a.key].append((b.key, -offset, 0.01 if soft else weight))
            offset = 0.0
    return ups, downs


def pooled(wanted: list[float], weights: list[float], widths: list[float]) -> list[float]:
    """Return the least-squares places nearest to the wanted ones without overlap."""
    shifts, at = [], 0.0
    for k, width in enumerate(widths):
        at += (widths[k - 1] + width) / 2 + GAP if k else 0.0
        shifts.append(at)
    pools: list[tuple[float, float, int]] = []  # (mean, weight, how many)
    for x, weight, shift in zip(wanted, weights, shifts, strict=True):
        mean, total, count = x - shift, weight, 1
        while pools and pools[-1][0] > mean:
            other, heavy, many = pools.pop()
            mean = (mean * total + other * heavy) / (total + heavy)
            total, count = total + heavy, count + many
        pools.append((mean, total, count))
    means = [mean for mean, _, count in pools for _ in range(count)]
    return [mean + shift for mean, shift in zip(means, shifts, strict=True)]


def _frame(boxes: list[Box], layers: list[list[int]]) -> tuple[float, float]:
    """Give the layers their heights and move everything to the right of and below the origin."""
    left = min((box.x - box.width / 2 for box in boxes), default=0.0)
    y = 0.0
    for layer in layers:
        tallest = max(boxes[i].height for i in layer)
        for i in layer:
            boxes[i].y, boxes[i].room = y + tallest / 2, tallest
            boxes[i].x -= left
        y += tallest + LAYER_GAP
    width = max((box.x + box.width / 2 for box in boxes), default=0.0)
    return width, max(0.0, y - LAYER_GAP)


def _lead(chains: list[Chain]) -> None:
    """Route the wires: each leaves at its port and arrives at a distinct place, in order."""
    arriving: dict[int, list[tuple[float, int]]] = defaultdict(list)
    for k, (wire, chain) in enumerate(chains):
        before = chain[-2]
        x = port(wire, before) if len(chain) == 2 else before.x
        arriving[chain[-1].key].append((x, k))
    for ends in arriving.values():
        ends.sort()
        for place, (_, k) in enumerate(ends):
            wire, chain = chains[k]
            source, target = chain[0], chain[-1]
            spread = target.width * 0.5 * ((place + 1) / (len(ends) + 1) - 0.5)
            wire.points = [
                (port(wire, source), source.y + source.height / 2),
                *((b.x, b.y + side * b.room / 2) for b in chain[1:-1] for side in (-1, 1)),
                (target.x + spread, target.y - target.height / 2),
            ]


def turned(found: Layout, *, sideways: bool, mirrored: bool) -> Layout:
    """Turn a layout that was made top down: sideways from left to right, or mirrored upside down.

    For `sideways` the boxes must have been laid out with their width and height exchanged.
    """
    references = [wire.reference for wire in found.wires if wire.reference is not None]
    for box in [*found.boxes, *references]:
        if mirrored:
            box.y = found.height - box.y
        if sideways:
            box.x, box.y, box.width, box.height = box.y, box.x, box.height, box.width
    for wire in found.wires:
        if mirrored:
            wire.points = [(x, found.height - y) for x, y in reversed(wire.points)]
        if sideways:
            wire.points = [(y, x) for x, y in wire.points]
    if sideways:
        found.width, found.height = found.height, found.width
    return found


def bends(
    points: Sequence[tuple[float, float]], *, sideways: bool = False
) -> list[tuple[float, ...]]:
    """Return the points as Bézier pieces (x1, y1, x2, y2, x, y) that leave and arrive upright."""
    (x, y), *rest = points
    found: list[tuple[float, ...]] = []
    for nx, ny in rest:
        if sideways:
            bend = (nx - x) / 2
            found.append((x + bend, y, nx - bend, ny, nx, ny))
        else:
            bend = (ny - y) / 2
            found.append((x, y + bend, nx, ny - bend, nx, ny))
        x, y = nx, ny
    return found


def curve(points: Sequence[tuple[float, float]], *, sideways: bool = False) -> str:
    """Return the points as an SVG path."""
    pieces = (" ".join(f"{n:.1f}" for n in piece) for piece in bends(points, sideways=sideways))
    x, y = points[0]
    return f"M{x:.1f} {y:.1f}" + "".join(f"C{piece}" for piece in pieces)

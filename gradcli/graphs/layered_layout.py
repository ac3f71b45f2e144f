"""A layered layout: nodes in rows below whoever consumes them, few crossings, straight edges.

Sugiyama's four steps: a layer for each node (longest path), bends for edges that pass layers, an
order within the layers (barycentres), then places (least squares under the order, by pooling). What
is too tall for its window is cut into columns, read down the first and up the next, so that a network
of two halves stands as a U; edges from column to column run between the rows and the columns.

The page has the same: `python docs/javascript.py` translates this file to `page/layout.js`, and so it
is written in what that knows.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

LONGEST_EDGE = 4  # edges over more layers end in a small reference instead,
CLEAR, FEW_ENDS = 150, 4  # but where the graph is small and few edges lead to the target
GAP, LAYER_GAP, BEND = 26.0, 34.0, 10.0
GUTTER, LANE, CORNER = 40.0, 7.0, 9.0
BELOW, ABOVE = 11.0, 23.0  # the first lane below a row, and the last above the next, for its arrows
MOST_LANES, MOST_COLUMNS = 8, 16
MANY = 5_000  # boxes; there is time for less
REFERENCE_HEIGHT = 24.0
SLIDE = (1280.0, 720.0)
ONE_WAY = 40  # boxes: such a graph is read in one direction, however long it is
READABLE, WORTH = 0.8, 1.15  # of its full size; how much larger a column more has to make it
MOST_SLACK = 46.0  # between rows, where a column is shorter than others

Point = tuple[float, float]


@dataclass(slots=True)
class Box:
    """A rectangle to be placed; x and y are its centre."""

    key: int
    width: float
    height: float
    layer: int = 0
    column: int = 0
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
    far: bool = False  # it ends in a reference, wherever the target is
    reference_width: float = 64.0  # of the reference, if it comes to that
    reference_height: float = REFERENCE_HEIGHT
    reference: Box | None = None  # the target is far away: the edge ends here
    straight: bool = False  # it goes on where its source stands
    square: bool = False  # it goes from column to column, around corners
    points: list[Point] = field(default_factory=list)


@dataclass(slots=True)
class Layout:
    """Where everything goes."""

    boxes: list[Box]
    wires: list[Wire]
    layers: list[list[int]]
    columns: int
    width: float
    height: float


@dataclass(slots=True)
class Chain:
    """A wire and the boxes that it passes, from its source to where it ends."""

    wire: Wire
    path: list[Box]


@dataclass(slots=True)
class Jump:
    """A wire between columns: its lanes below its source's row and above its target's."""

    wire: Wire
    source: Box
    target: Box
    leaving: float = 0.0
    arriving: float = 0.0
    bus: float = 0.0  # the lane above or below all columns, where it passes one
    lanes: list[int] = field(default_factory=list)  # in the gutters behind source, before target


def layout(boxes: Sequence[Box], wires: Sequence[Wire], window: Point = SLIDE) -> Layout:
    """Place the boxes (numbered 0, 1, … in order of first visit) and lead the wires.

    window: where it is to be seen; what would be too small there is cut into columns.
    """
    everything = list(boxes)
    _assign_layers(everything, wires)
    columns = _cut(everything, wires, window)
    chains, jumps = _chains(everything, wires)
    layers = _order(everything, chains)
    _place(layers, everything, chains)
    height = _stack(layers, everything, jumps, columns)
    gutters = _gutters(jumps, columns, height)
    edges = _spread(everything, gutters)
    _lead(everything, chains, jumps)
    _turn_columns(everything, chains, height)
    for jump in jumps:
        _run(jump, edges, height)
    width, height = _frame(everything, wires)
    return Layout(list(boxes), list(wires), layers, columns, width, height)


def _assign_layers(boxes: list[Box], wires: Sequence[Wire]) -> None:
    follow: list[list[int]] = [[] for _ in boxes]
    waiting = [0 for _ in boxes]
    for wire in wires:
        if not wire.far:
            follow[wire.source].append(wire.target)
            waiting[wire.target] += 1
    ready = [box.key for box in boxes if waiting[box.key] == 0]
    for i in ready:
        for j in follow[i]:
            boxes[j].layer = max(boxes[j].layer, boxes[i].layer + 1)
            waiting[j] -= 1
            if waiting[j] == 0:
                ready.append(j)


# -- columns -----------------------------------------------------------------------------------------
def _cut(boxes: list[Box], wires: Sequence[Wire], window: Point) -> int:
    """Cut the layers into as many columns as make the picture largest; return how many."""
    depth = max([*[box.layer + 1 for box in boxes], 0])
    heights, widths = [0.0 for _ in range(depth)], [-GAP for _ in range(depth)]
    for box in boxes:
        heights[box.layer] = max(heights[box.layer], box.height + LAYER_GAP)
        widths[box.layer] += box.width + GAP
    passing = [0 for _ in range(depth + 2)]  # wires over the line above each layer
    for wire in wires:
        if not wire.far:
            passing[boxes[wire.source].layer + 1] += 1
            passing[boxes[wire.target].layer + 1] -= 1
    for k in range(depth):
        passing[k + 1] += passing[k]
    best: list[int] = []
    largest = _scale(heights, widths, best, window)
    if largest >= READABLE or len(boxes) <= ONE_WAY:
        return 1
    for count in range(2, min(MOST_COLUMNS, depth) + 1):
        cuts = _cuts(heights, passing, count)
        scale = _scale(heights, widths, cuts, window)
        if scale > WORTH * largest:
            best, largest = cuts, scale
    for box in boxes:
        box.column = bisect_right(best, box.layer)
        box.layer += box.column  # every column has a last row for references
    return len(best) + 1


def _cuts(heights: list[float], passing: list[int], count: int) -> list[int]:
    """The first layers of the columns but the first: even heights, and few wires cut."""
    whole = sum(heights)
    found: list[int] = []
    for k in range(1, count):
        ideal, room = whole * k / count, whole / count / 5
        best, least, above = 0, -1.0, 0.0
        for layer, height in enumerate(heights):
            off = abs(above - ideal)
            cost = 3 * off / room + (0 if off > room else passing[layer] - 1_000)
            after = found[-1] if len(found) > 0 else 0
            if layer > after and (best == 0 or cost < least):
                best, least = layer, cost
            above += height
        if best > 0:
            found.append(best)
    return found


def _scale(heights: list[float], widths: list[float], cuts: list[int], window: Point) -> float:
    """How large it can be drawn in the window, about."""
    width, height = -GUTTER, 1.0
    for first, last in pairwise([0, *cuts, len(heights)]):
        height = max(height, sum(heights[first:last]) - LAYER_GAP)
        width += max([*widths[first:last], 0.0]) + GUTTER
    return min(window[0] / max(width, 1.0), window[1] / height)


def _chains(boxes: list[Box], wires: Sequence[Wire]) -> tuple[list[Chain], list[Jump]]:
    """The wires within columns with what they pass, and those between columns."""
    chains: list[Chain] = []
    jumps: list[Jump] = []
    small = len(boxes) <= CLEAR
    ends = [0 for _ in boxes]
    for wire in wires:
        ends[wire.target] += 1
    for wire in wires:
        source, target = boxes[wire.source], boxes[wire.target]
        span = target.layer - source.layer - (target.column - source.column)
        clear = small and ends[wire.target] <= FEW_ENDS
        wire.reference, wire.square, wire.straight = None, False, False
        path = [source]
        if wire.far or (span > LONGEST_EDGE and not clear):
            end = Box(len(boxes), wire.reference_width, wire.reference_height)
            end.layer, end.column = source.layer + 1, source.column
            wire.reference = end
            boxes.append(end)
            path.append(end)
        elif target.column > source.column:
            wire.square = True
            jumps.append(Jump(wire, source, target))
            continue
        else:
            for layer in range(source.layer + 1, target.layer):
                bend = Box(len(boxes), BEND, 0.0, layer, source.column)
                boxes.append(bend)
                path.append(bend)
            path.append(target)
        chains.append(Chain(wire, path))
    return chains, jumps


# -- the order within layers -------------------------------------------------------------------------
def _order(boxes: list[Box], chains: list[Chain]) -> list[list[int]]:
    """Order each layer so that few links cross; keeps the best order that it meets."""
    above: list[list[int]] = [[] for _ in boxes]
    below: list[list[int]] = [[] for _ in boxes]
    for chain in chains:
        for a, b in pairwise(chain.path):
            below[a.key].append(b.key)
            above[b.key].append(a.key)
    layers: list[list[int]] = [[] for _ in range(max([*[box.layer for box in boxes], -1]) + 1)]
    for i in _first_visits(below, above):
        layers[boxes[i].layer].append(i)
    at = [0.0 for _ in boxes]
    best, fewest = [list(layer) for layer in layers], _crossings(layers, below, at)
    for sweep in range(1 if len(boxes) > MANY else 6):
        if fewest == 0:
            break
        down = sweep % 2 == 0
        near = above if down else below
        _number(layers, at)
        for layer in layers if down else list(reversed(layers)):
            for i in layer:
                if len(near[i]) > 0:
                    at[i] = sum([at[j] for j in near[i]]) / len(near[i])
            layer.sort(key=lambda i: at[i])
            for k, i in enumerate(layer):
                at[i] = float(k)
        now = _crossings(layers, below, at)
        if now < fewest:
            best, fewest = [list(layer) for layer in layers], now
    return best


def _number(layers: list[list[int]], at: list[float]) -> None:
    for layer in layers:
        for k, i in enumerate(layer):
            at[i] = float(k)


def _first_visits(below: list[list[int]], above: list[list[int]]) -> list[int]:
    """Depth first from the roots: a tree drawn in this order has no crossing."""
    found: list[int] = []
    seen = [False for _ in below]
    stack = [i for i in reversed(range(len(above))) if len(above[i]) == 0]
    while len(stack) > 0:
        i = stack.pop()
        if not seen[i]:
            seen[i] = True
            found.append(i)
            stack.extend(reversed(below[i]))
    return found


def _crossings(layers: list[list[int]], below: list[list[int]], at: list[float]) -> int:
    count = 0
    _number(layers, at)
    for layer in layers:
        seen: list[float] = []
        for i in layer:
            for j in below[i]:
                count += len(seen) - bisect_right(seen, at[j])
            for j in below[i]:
                insort(seen, at[j])
    return count


# -- places ------------------------------------------------------------------------------------------
@dataclass(slots=True)
class Pull:
    """How a box draws another: to which offset from itself, and how strongly."""

    box: Box
    offset: float
    weight: float


def port(wire: Wire, source: Box) -> float:
    """Return where on its source's lower edge a wire leaves: inputs from left to right."""
    spread = 0.0 if wire.straight else source.width * 0.6
    return source.x + spread * ((wire.index + 1) / (wire.count + 1) - 0.5)


def _place(layers: list[list[int]], boxes: list[Box], chains: list[Chain]) -> None:
    """Move every box to the mean of its neighbours, as far as the order within the layer allows."""
    ups, downs = _pulls(boxes, chains)
    for layer in layers:
        x = 0.0
        for i in layer:
            boxes[i].x = x + boxes[i].width / 2
            x += boxes[i].width + GAP
    for turn in range(3 if len(boxes) > MANY else 10):
        down = turn % 2 == 1
        near = ups if down else downs
        for layer in layers if down else list(reversed(layers)):
            wanted, weights = [], []
            for i in layer:
                force = sum([pull.weight for pull in near[i]])
                drawn = sum([(pull.box.x + pull.offset) * pull.weight for pull in near[i]])
                wanted.append(drawn / force if force > 0 else boxes[i].x)
                weights.append(force if force > 0 else 0.2)
            places = pooled(wanted, weights, [boxes[i].width for i in layer])
            for k, i in enumerate(layer):
                boxes[i].x = places[k]


def _spines(boxes: list[Box], chains: list[Chain]) -> tuple[list[int], list[int], list[bool]]:
    """For each box: the longest way down, the box that continues it straight, whether it is trunk.

    The trunk is the longest way down a column: nothing beside it may push it aside. Of two ways of one
    length a small graph takes none, which leaves it even.
    """
    rest, spines, even = [0 for _ in boxes], [-1 for _ in boxes], [False for _ in boxes]
    upwards = list(chains)
    upwards.sort(key=lambda chain: -chain.path[0].layer)
    for chain in upwards:
        here, down = chain.path[0].key, chain.path[-1].key
        best = spines[here]
        if rest[down] > (rest[best] if best >= 0 else 0):
            spines[here], even[here] = down, False
        elif best >= 0 and best != down and rest[best] == rest[down]:
            even[here] = len(boxes) <= CLEAR
        rest[here] = max(rest[here], rest[down] + len(chain.path) - 1)
    spines = [-1 if even[k] else down for k, down in enumerate(spines)]
    trunk = [False for _ in boxes]
    for column in range(max([*[box.column for box in boxes], 0]) + 1):
        at = -1
        for box in boxes:
            if box.column == column and rest[box.key] > (rest[at] if at >= 0 else 0):
                at = box.key
        while at >= 0:
            trunk[at] = True
            at = spines[at]
    return rest, spines, trunk


def _pulls(boxes: list[Box], chains: list[Chain]) -> tuple[list[list[Pull]], list[list[Pull]]]:
    """Return the weights of the least squares: strong along a spine, weak for branches."""
    rest, spines, trunk = _spines(boxes, chains)
    along = [0 for _ in boxes]  # wires down the spine: `y*y` has two
    for chain in chains:
        if spines[chain.path[0].key] == chain.path[-1].key:
            along[chain.path[0].key] += 1
    ups: list[list[Pull]] = [[] for _ in boxes]
    downs: list[list[Pull]] = [[] for _ in boxes]
    for chain in chains:
        first, down = chain.path[0], chain.path[-1].key
        spine = spines[first.key]
        straight = spine == down
        chain.wire.straight = straight and along[first.key] == 1
        offset = port(chain.wire, first) - first.x
        for a, b in pairwise(chain.path):
            upright = 6.0 if a.height + b.height == 0 else 1.0 if a.height * b.height > 0 else 2.0
            rigid = 600.0 if trunk[first.key] else 60.0
            weight = upright * (rigid if straight else 3.0 if rest[down] > 0 else 1.0)
            ups[b.key].append(Pull(a, offset, weight))
            # What hangs from a spine must not bend it, or long chains would drift sideways.
            soft = a.key == first.key and spine >= 0 and not straight
            downs[a.key].append(Pull(b, -offset, 0.01 if soft else weight))
            offset = 0.0
    return ups, downs


def pooled(wanted: list[float], weights: list[float], widths: list[float]) -> list[float]:
    """Return the least-squares places nearest to the wanted ones without overlap."""
    shifts: list[float] = []
    means: list[float] = []
    totals: list[float] = []
    counts: list[int] = []
    shift = 0.0
    for k, x in enumerate(wanted):
        shift += (widths[k - 1] + widths[k]) / 2 + GAP if k > 0 else 0.0
        shifts.append(shift)
        mean, total, count = x - shift, weights[k], 1
        while len(means) > 0 and means[-1] > mean:
            other, heavy = means.pop(), totals.pop()
            mean = (mean * total + other * heavy) / (total + heavy)
            total += heavy
            count += counts.pop()
        means.append(mean)
        totals.append(total)
        counts.append(count)
    places: list[float] = []
    for k, mean in enumerate(means):
        for _ in range(counts[k]):
            places.append(mean + shifts[len(places)])
    return places


def _stack(layers: list[list[int]], boxes: list[Box], jumps: list[Jump], columns: int) -> float:
    """Give rows their heights, from the beginning of each column; return that of the highest."""
    lanes = [0 for _ in range(len(layers) + 1)]  # of jumps, above each row
    for jump in jumps:
        lanes[jump.source.layer + 1] += 1
        lanes[jump.target.layer] += 1
    rows: list[list[int]] = [[] for _ in range(columns)]
    heights = [0.0 for _ in range(columns)]
    for row, layer in enumerate(layers):
        if len(layer) == 0:
            continue
        column, tallest = boxes[layer[0]].column, max([boxes[i].height for i in layer])
        if len(rows[column]) > 0:
            extra = min(lanes[row], MOST_LANES) - 1
            heights[column] += LAYER_GAP + LANE * max(0, extra)
        for i in layer:
            boxes[i].y, boxes[i].room = heights[column] + tallest / 2, tallest
        heights[column] += tallest
        rows[column].append(row)
    height = max([*heights, 0.0])
    for column in range(columns):
        slack = (height - heights[column]) / max(1, len(rows[column]) - 1)
        for k, row in enumerate(rows[column]):
            for i in layers[row]:
                boxes[i].y += k * slack if slack <= MOST_SLACK else 0.0
    taken = [0 for _ in lanes]
    for jump in jumps:
        row = jump.source.layer + 1
        jump.leaving = jump.source.y + jump.source.room / 2 + BELOW
        jump.leaving += LANE * (taken[row] % MOST_LANES)
        taken[row] += 1
        row = jump.target.layer
        below = min(lanes[row], MOST_LANES) - 1 - taken[row] % MOST_LANES
        jump.arriving = jump.target.y - jump.target.room / 2 - ABOVE - LANE * below
        taken[row] += 1
    return height


# -- between columns ---------------------------------------------------------------------------------
def _turned(y: float, column: int, height: float) -> float:
    """A place along a column, on paper: every other column goes up."""
    return height - y if column % 2 == 1 else y


def _gutters(jumps: list[Jump], columns: int, height: float) -> list[float]:
    """Give every jump its lanes between the columns; return how wide those gaps are."""
    taken: list[list[list[Point]]] = [[] for _ in range(columns)]
    buses = [0, 0]  # lanes above all columns, below all
    outer = BELOW + LANE * (MOST_LANES + 2)  # beyond the lanes of first and last rows
    for jump in jumps:
        first, last = jump.source.column, jump.target.column - 1
        jump.leaving = _turned(jump.leaving, first, height)
        jump.arriving = _turned(jump.arriving, last + 1, height)
        if first == last:
            sides = [jump.leaving, jump.arriving]
            beyond = min(sides) < 0 or max(sides) > height
            if beyond and abs(sides[0] - sides[1]) < 4 * LANE:  # around the end of both
                jump.leaving = jump.arriving = max(sides) if max(sides) > height else min(sides)
            jump.lanes = [_lane(taken[first], jump.leaving, jump.arriving)]
            continue
        side = 0 if jump.leaving + jump.arriving < height else 1
        jump.bus = height + outer + LANE * buses[1] if side == 1 else -outer - LANE * buses[0]
        buses[side] += 1
        jump.lanes = [
            _lane(taken[first], jump.leaving, jump.bus),
            _lane(taken[last], jump.bus, jump.arriving),
        ]
    return [GUTTER + LANE * max(0, len(lanes) - 1) for lanes in taken]


def _lane(taken: list[list[Point]], a: float, b: float) -> int:
    """The first lane that is free from a to b; it is taken then."""
    low, high = min(a, b) - LANE, max(a, b) + LANE
    for k, spans in enumerate(taken):
        if all(span[1] < low or span[0] > high for span in spans):
            spans.append((low, high))
            return k
    taken.append([(low, high)])
    return len(taken) - 1


def _spread(boxes: list[Box], gutters: list[float]) -> list[Point]:
    """Set the columns side by side; return their left and right edges."""
    edges: list[Point] = []
    at = 0.0
    for column, gutter in enumerate(gutters):
        inside = [box for box in boxes if box.column == column]
        left = min([*[box.x - box.width / 2 for box in inside], 1e9])
        for box in inside:
            box.x += at - left
        right = max([*[box.x + box.width / 2 for box in inside], at])
        edges.append((at, right))
        at = right + gutter
    return edges


def _lead(boxes: list[Box], chains: list[Chain], jumps: list[Jump]) -> None:
    """Route the wires: each leaves at its port and arrives at a distinct place, in order.

    `_run` adds what lies between the ends of a jump.
    """
    ends: list[list[tuple[float, Chain]]] = [[] for _ in boxes]
    for chain in chains:
        before = chain.path[-2]
        x = port(chain.wire, before) if len(chain.path) == 2 else before.x
        ends[chain.path[-1].key].append((x, chain))
    for jump in jumps:
        end = Chain(jump.wire, [jump.source, jump.target])
        ends[jump.target.key].append((jump.source.x, end))
    for arriving in ends:
        arriving.sort(key=lambda end: end[0])
        for place, (_, chain) in enumerate(arriving):
            source, target = chain.path[0], chain.path[-1]
            spread = target.width * 0.5 * ((place + 1) / (len(arriving) + 1) - 0.5)
            points = [(port(chain.wire, source), source.y + source.height / 2)]
            for bend in chain.path[1:-1]:
                points.append((bend.x, bend.y - bend.room / 2))
                points.append((bend.x, bend.y + bend.room / 2))
            points.append((target.x + spread, target.y - target.height / 2))
            chain.wire.points = points


def _turn_columns(boxes: list[Box], chains: list[Chain], height: float) -> None:
    """Turn every other column upside down."""
    for box in boxes:
        box.y = _turned(box.y, box.column, height)
    for chain in chains:
        column = chain.path[0].column
        chain.wire.points = [(x, _turned(y, column, height)) for x, y in chain.wire.points]


def _run(jump: Jump, edges: list[Point], height: float) -> None:
    """Lead a wire from column to column: along its row, its gutter, and its target's."""
    (x, y), (end, bottom) = jump.wire.points
    first, last = jump.source.column, jump.target.column - 1
    ways = [edges[first][1] + GUTTER / 2 + LANE * jump.lanes[0]]
    points = [(x, _turned(y, first, height)), (x, jump.leaving), (ways[0], jump.leaving)]
    if first < last:
        ways.append(edges[last][1] + GUTTER / 2 + LANE * jump.lanes[1])
        points.extend([(ways[0], jump.bus), (ways[1], jump.bus)])
    points.extend([(ways[-1], jump.arriving), (end, jump.arriving)])
    jump.wire.points = [*points, (end, _turned(bottom, last + 1, height))]


def _frame(boxes: list[Box], wires: Sequence[Wire]) -> Point:
    """Move everything below the upper edge; return the size of the whole."""
    ends = [y for wire in wires for _, y in wire.points]
    top = min([*ends, *[box.y - box.height / 2 for box in boxes], 1e9])
    for box in boxes:
        box.y -= top
    for wire in wires:
        wire.points = [(x, y - top) for x, y in wire.points]
    bottom = max([*ends, *[box.y + top + box.height / 2 for box in boxes], top])
    return max([*[box.x + box.width / 2 for box in boxes], 0.0]), bottom - top


# -- drawing -----------------------------------------------------------------------------------------
def turned(found: Layout, *, sideways: bool, mirrored: bool) -> Layout:
    """Turn a layout that was made top down: sideways from left to right, or mirrored upside down.

    Mirrored, columns begin at the left again. For `sideways` the boxes must have been laid out with
    their width and height exchanged.
    """
    over = mirrored and found.columns % 2 == 1
    across = mirrored and found.columns > 1
    references = [wire.reference for wire in found.wires if wire.reference is not None]
    for box in [*found.boxes, *references]:
        box.x = found.width - box.x if across else box.x
        box.y = found.height - box.y if over else box.y
        if sideways:
            box.x, box.y, box.width, box.height = box.y, box.x, box.height, box.width
    for wire in found.wires:
        points = list(reversed(wire.points)) if mirrored else wire.points
        points = [(found.width - x if across else x, y) for x, y in points]
        points = [(x, found.height - y if over else y) for x, y in points]
        wire.points = [(y, x) for x, y in points] if sideways else points
    if sideways:
        found.width, found.height = found.height, found.width
    return found


def bends(wire: Wire, sideways: bool = False) -> list[tuple[float, ...]]:
    """Return a wire as Bézier pieces (x1, y1, x2, y2, x, y) that leave and arrive upright."""
    x, y = wire.points[0]
    found: list[tuple[float, ...]] = []
    for k, (nx, ny) in enumerate(wire.points[1:]):
        if wire.square:  # straight on, and around the corner if there is one
            here, there = (nx, ny), wire.points[min(k + 2, len(wire.points) - 1)]
            before = _along(here, (x, y))
            after = _along(here, there)
            found.append((x, y, before[0], before[1], before[0], before[1]))
            found.append((nx, ny, nx, ny, after[0], after[1]))
            nx, ny = after
        elif sideways:
            found.append(((x + nx) / 2, y, (x + nx) / 2, ny, nx, ny))
        else:
            found.append((x, (y + ny) / 2, nx, (y + ny) / 2, nx, ny))
        x, y = nx, ny
    return found


def middle(wire: Wire, *, forward: bool) -> Point:
    """The middle of the piece of a wire that is nearest to its source's card, or the result's if forward."""
    (x, y), (beyond, below) = wire.points[:-3:-1] if forward else wire.points[:2]
    return (x + beyond) / 2, (y + below) / 2


def label_place(wire: Wire, target: Box, width: float, *, sideways: bool, mirrored: bool) -> Point:
    """The centre of a label on the rim of a wire's target, beside the tip that it arrives with.

    On the side away from the target's middle it covers no other wire of its step.
    """
    if sideways:
        edge = target.height / 2 if wire.index % 2 == 1 else -target.height / 2
        return target.x - target.width / 2 + width / 2 + 8.0, target.y + edge
    (x, y), above = wire.points[-1], wire.points[-2][1]
    if mirrored:
        (x, y), above = wire.points[0], wire.points[1][1]
    beside = x - width / 2 - 8.0 if x < target.x - 1.0 else x + width / 2 + 8.0
    return beside, y - 4.0 if above < y else y + 4.0


def _along(a: Point, b: Point) -> Point:
    """The point on the way from a to b where the corner at a is over."""
    length = max(abs(b[0] - a[0]), abs(b[1] - a[1]))
    part = min(CORNER, length / 2) / length if length > 0 else 0.0
    return a[0] + (b[0] - a[0]) * part, a[1] + (b[1] - a[1]) * part


def curve(wire: Wire, sideways: bool = False) -> str:
    """Return a wire as an SVG path."""
    x, y = wire.points[0]
    pieces = [" ".join([f"{n:.1f}" for n in piece]) for piece in bends(wire, sideways)]
    return f"M{x:.1f} {y:.1f}" + "".join([f"C{piece}" for piece in pieces])

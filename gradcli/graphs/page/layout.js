// Written by docs/javascript.py from layered_layout.py; do not edit.
const Layered = (() => {
  const count = (length) => Array.from({ length: Math.max(0, length) }, (_, k) => k);
  const range = (a, b) => (b === undefined ? count(a) : count(b - a).map((k) => a + k));
  const enumerate = (list) => list.map((one, k) => [k, one]);
  const pairwise = (list) => list.slice(1).map((one, k) => [list[k], one]);
  const reversed = (list) => [...list].reverse();
  const sum = (list) => list.reduce((a, b) => a + b, 0);
  const all = (list) => list.every(Boolean);
  const list = (from) => [...from];
  const float = (number) => number;
  const abs = Math.abs;
  const max = (...found) => found.flat().reduce((a, b) => (b > a ? b : a));
  const min = (...found) => found.flat().reduce((a, b) => (b < a ? b : a));
  const bisect_right = (sorted, value) => {
    let low = 0, high = sorted.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (value < sorted[middle]) high = middle;
      else low = middle + 1;
    }
    return low;
  };
  const insort = (sorted, value) => sorted.splice(bisect_right(sorted, value), 0, value);

  const LONGEST_EDGE = 4;
  const [CLEAR, FEW_ENDS] = [150, 4];
  const [GAP, LAYER_GAP, BEND] = [26.0, 34.0, 10.0];
  const [GUTTER, LANE, CORNER] = [40.0, 7.0, 9.0];
  const [BELOW, ABOVE] = [11.0, 23.0];
  const [MOST_LANES, MOST_COLUMNS] = [8, 16];
  const MANY = 5000;
  const REFERENCE_HEIGHT = 24.0;
  const SLIDE = [1280.0, 720.0];
  const ONE_WAY = 40;
  const [READABLE, WORTH] = [0.8, 1.15];
  const MOST_SLACK = 46.0;

  class Box {
    constructor(key, width, height, layer = 0, column = 0, x = 0.0, y = 0.0, room = 0.0) {
      this.key = key;
      this.width = width;
      this.height = height;
      this.layer = layer;
      this.column = column;
      this.x = x;
      this.y = y;
      this.room = room;
    }
  }

  class Wire {
    constructor(source, target, index, count, output = 0, far = false, reference_width = 64.0, reference_height = REFERENCE_HEIGHT, reference = null, straight = false, square = false, points = []) {
      this.source = source;
      this.target = target;
      this.index = index;
      this.count = count;
      this.output = output;
      this.far = far;
      this.reference_width = reference_width;
      this.reference_height = reference_height;
      this.reference = reference;
      this.straight = straight;
      this.square = square;
      this.points = points;
    }
  }

  class Layout {
    constructor(boxes, wires, layers, columns, width, height) {
      this.boxes = boxes;
      this.wires = wires;
      this.layers = layers;
      this.columns = columns;
      this.width = width;
      this.height = height;
    }
  }

  class Chain {
    constructor(wire, path) {
      this.wire = wire;
      this.path = path;
    }
  }

  class Jump {
    constructor(wire, source, target, leaving = 0.0, arriving = 0.0, bus = 0.0, lanes = []) {
      this.wire = wire;
      this.source = source;
      this.target = target;
      this.leaving = leaving;
      this.arriving = arriving;
      this.bus = bus;
      this.lanes = lanes;
    }
  }

  function layout(boxes, wires, window = SLIDE) {
    let everything, columns, chains, jumps, layers, height, gutters, edges, width;
    everything = list(boxes);
    _assign_layers(everything, wires);
    columns = _cut(everything, wires, window);
    [chains, jumps] = _chains(everything, wires);
    layers = _order(everything, chains);
    _place(layers, everything, chains);
    height = _stack(layers, everything, jumps, columns);
    gutters = _gutters(jumps, columns, height);
    edges = _spread(everything, gutters);
    _lead(everything, chains, jumps);
    _turn_columns(everything, chains, height);
    for (let jump of jumps) {
      _run(jump, edges, height);
    }
    [width, height] = _frame(everything, wires);
    return new Layout(list(boxes), list(wires), layers, columns, width, height);
  }

  function _assign_layers(boxes, wires) {
    let follow, waiting, ready;
    follow = boxes.map((_) => []);
    waiting = boxes.map((_) => 0);
    for (let wire of wires) {
      if (!wire.far) {
        follow[wire.source].push(wire.target);
        waiting[wire.target] += 1;
      }
    }
    ready = boxes.filter((box) => (waiting[box.key] === 0)).map((box) => box.key);
    for (let i of ready) {
      for (let j of follow[i]) {
        boxes[j].layer = max(boxes[j].layer, (boxes[i].layer + 1));
        waiting[j] -= 1;
        if ((waiting[j] === 0)) {
          ready.push(j);
        }
      }
    }
  }

  function _cut(boxes, wires, window) {
    let depth, heights, widths, passing, best, largest, cuts, scale;
    depth = max([...boxes.map((box) => (box.layer + 1)), 0]);
    [heights, widths] = [range(depth).map((_) => 0.0), range(depth).map((_) => -GAP)];
    for (let box of boxes) {
      heights[box.layer] = max(heights[box.layer], (box.height + LAYER_GAP));
      widths[box.layer] += (box.width + GAP);
    }
    passing = range((depth + 2)).map((_) => 0);
    for (let wire of wires) {
      if (!wire.far) {
        passing[(boxes[wire.source].layer + 1)] += 1;
        passing[(boxes[wire.target].layer + 1)] -= 1;
      }
    }
    for (let k of range(depth)) {
      passing[(k + 1)] += passing[k];
    }
    best = [];
    largest = _scale(heights, widths, best, window);
    if (((largest >= READABLE) || (boxes.length <= ONE_WAY))) {
      return 1;
    }
    for (let count of range(2, (min(MOST_COLUMNS, depth) + 1))) {
      cuts = _cuts(heights, passing, count);
      scale = _scale(heights, widths, cuts, window);
      if ((scale > (WORTH * largest))) {
        [best, largest] = [cuts, scale];
      }
    }
    for (let box of boxes) {
      box.column = bisect_right(best, box.layer);
      box.layer += box.column;
    }
    return (best.length + 1);
  }

  function _cuts(heights, passing, count) {
    let whole, found, ideal, room, best, least, above, off, cost, after;
    whole = sum(heights);
    found = [];
    for (let k of range(1, count)) {
      [ideal, room] = [((whole * k) / count), ((whole / count) / 5)];
      [best, least, above] = [0, -1.0, 0.0];
      for (let [layer, height] of enumerate(heights)) {
        off = abs((above - ideal));
        cost = (((3 * off) / room) + ((off > room) ? 0 : (passing[layer] - 1000)));
        after = ((found.length > 0) ? found.at(-1) : 0);
        if (((layer > after) && ((best === 0) || (cost < least)))) {
          [best, least] = [layer, cost];
        }
        above += height;
      }
      if ((best > 0)) {
        found.push(best);
      }
    }
    return found;
  }

  function _scale(heights, widths, cuts, window) {
    let width, height;
    [width, height] = [-GUTTER, 1.0];
    for (let [first, last] of pairwise([0, ...cuts, heights.length])) {
      height = max(height, (sum(heights.slice(first, last)) - LAYER_GAP));
      width += (max([...widths.slice(first, last), 0.0]) + GUTTER);
    }
    return min((window[0] / max(width, 1.0)), (window[1] / height));
  }

  function _chains(boxes, wires) {
    let chains, jumps, small, ends, source, target, span, clear, path, end, bend;
    chains = [];
    jumps = [];
    small = (boxes.length <= CLEAR);
    ends = boxes.map((_) => 0);
    for (let wire of wires) {
      ends[wire.target] += 1;
    }
    for (let wire of wires) {
      [source, target] = [boxes[wire.source], boxes[wire.target]];
      span = ((target.layer - source.layer) - (target.column - source.column));
      clear = (small && (ends[wire.target] <= FEW_ENDS));
      [wire.reference, wire.square, wire.straight] = [null, false, false];
      path = [source];
      if ((wire.far || ((span > LONGEST_EDGE) && !clear))) {
        end = new Box(boxes.length, wire.reference_width, wire.reference_height);
        [end.layer, end.column] = [(source.layer + 1), source.column];
        wire.reference = end;
        boxes.push(end);
        path.push(end);
      }
      else {
        if ((target.column > source.column)) {
          wire.square = true;
          jumps.push(new Jump(wire, source, target));
          continue;
        }
        else {
          for (let layer of range((source.layer + 1), target.layer)) {
            bend = new Box(boxes.length, BEND, 0.0, layer, source.column);
            boxes.push(bend);
            path.push(bend);
          }
          path.push(target);
        }
      }
      chains.push(new Chain(wire, path));
    }
    return [chains, jumps];
  }

  function _order(boxes, chains) {
    let above, below, layers, at, best, fewest, down, near, now;
    above = boxes.map((_) => []);
    below = boxes.map((_) => []);
    for (let chain of chains) {
      for (let [a, b] of pairwise(chain.path)) {
        below[a.key].push(b.key);
        above[b.key].push(a.key);
      }
    }
    layers = range((max([...boxes.map((box) => box.layer), -1]) + 1)).map((_) => []);
    for (let i of _first_visits(below, above)) {
      layers[boxes[i].layer].push(i);
    }
    at = boxes.map((_) => 0.0);
    [best, fewest] = [layers.map((layer) => list(layer)), _crossings(layers, below, at)];
    for (let sweep of range(((boxes.length > MANY) ? 1 : 6))) {
      if ((fewest === 0)) {
        break;
      }
      down = ((sweep % 2) === 0);
      near = (down ? above : below);
      _number(layers, at);
      for (let layer of (down ? layers : list(reversed(layers)))) {
        for (let i of layer) {
          if ((near[i].length > 0)) {
            at[i] = (sum(near[i].map((j) => at[j])) / near[i].length);
          }
        }
        layer.sort((a, b) => ((i) => at[i])(a) - ((i) => at[i])(b));
        for (let [k, i] of enumerate(layer)) {
          at[i] = float(k);
        }
      }
      now = _crossings(layers, below, at);
      if ((now < fewest)) {
        [best, fewest] = [layers.map((layer) => list(layer)), now];
      }
    }
    return best;
  }

  function _number(layers, at) {
    for (let layer of layers) {
      for (let [k, i] of enumerate(layer)) {
        at[i] = float(k);
      }
    }
  }

  function _first_visits(below, above) {
    let found, seen, stack, i;
    found = [];
    seen = below.map((_) => false);
    stack = reversed(range(above.length)).filter((i) => (above[i].length === 0)).map((i) => i);
    while ((stack.length > 0)) {
      i = stack.pop();
      if (!seen[i]) {
        seen[i] = true;
        found.push(i);
        for (const one of reversed(below[i])) stack.push(one);
      }
    }
    return found;
  }

  function _crossings(layers, below, at) {
    let count, seen;
    count = 0;
    _number(layers, at);
    for (let layer of layers) {
      seen = [];
      for (let i of layer) {
        for (let j of below[i]) {
          count += (seen.length - bisect_right(seen, at[j]));
        }
        for (let j of below[i]) {
          insort(seen, at[j]);
        }
      }
    }
    return count;
  }

  class Pull {
    constructor(box, offset, weight) {
      this.box = box;
      this.offset = offset;
      this.weight = weight;
    }
  }

  function port(wire, source) {
    let spread;
    spread = (wire.straight ? 0.0 : (source.width * 0.6));
    return (source.x + (spread * (((wire.index + 1) / (wire.count + 1)) - 0.5)));
  }

  function _place(layers, boxes, chains) {
    let ups, downs, x, down, near, wanted, weights, places, force, drawn;
    [ups, downs] = _pulls(boxes, chains);
    for (let layer of layers) {
      x = 0.0;
      for (let i of layer) {
        boxes[i].x = (x + (boxes[i].width / 2));
        x += (boxes[i].width + GAP);
      }
    }
    for (let turn of range(((boxes.length > MANY) ? 3 : 10))) {
      down = ((turn % 2) === 1);
      near = (down ? ups : downs);
      for (let layer of (down ? layers : list(reversed(layers)))) {
        [wanted, weights] = [[], []];
        for (let i of layer) {
          force = sum(near[i].map((pull) => pull.weight));
          drawn = sum(near[i].map((pull) => ((pull.box.x + pull.offset) * pull.weight)));
          wanted.push(((force > 0) ? (drawn / force) : boxes[i].x));
          weights.push(((force > 0) ? force : 0.2));
        }
        places = pooled(wanted, weights, layer.map((i) => boxes[i].width));
        for (let [k, i] of enumerate(layer)) {
          boxes[i].x = places[k];
        }
      }
    }
  }

  function _spines(boxes, chains) {
    let rest, spines, even, upwards, trunk, here, down, best, at;
    [rest, spines, even] = [boxes.map((_) => 0), boxes.map((_) => -1), boxes.map((_) => false)];
    upwards = list(chains);
    upwards.sort((a, b) => ((chain) => -chain.path[0].layer)(a) - ((chain) => -chain.path[0].layer)(b));
    for (let chain of upwards) {
      [here, down] = [chain.path[0].key, chain.path.at(-1).key];
      best = spines[here];
      if ((rest[down] > ((best >= 0) ? rest[best] : 0))) {
        [spines[here], even[here]] = [down, false];
      }
      else {
        if (((best >= 0) && (best !== down) && (rest[best] === rest[down]))) {
          even[here] = (boxes.length <= CLEAR);
        }
      }
      rest[here] = max(rest[here], ((rest[down] + chain.path.length) - 1));
    }
    spines = enumerate(spines).map(([k, down]) => (even[k] ? -1 : down));
    trunk = boxes.map((_) => false);
    for (let column of range((max([...boxes.map((box) => box.column), 0]) + 1))) {
      at = -1;
      for (let box of boxes) {
        if (((box.column === column) && (rest[box.key] > ((at >= 0) ? rest[at] : 0)))) {
          at = box.key;
        }
      }
      while ((at >= 0)) {
        trunk[at] = true;
        at = spines[at];
      }
    }
    return [rest, spines, trunk];
  }

  function _pulls(boxes, chains) {
    let rest, spines, trunk, along, ups, downs, first, down, spine, straight, offset, upright, rigid, weight, soft;
    [rest, spines, trunk] = _spines(boxes, chains);
    along = boxes.map((_) => 0);
    for (let chain of chains) {
      if ((spines[chain.path[0].key] === chain.path.at(-1).key)) {
        along[chain.path[0].key] += 1;
      }
    }
    ups = boxes.map((_) => []);
    downs = boxes.map((_) => []);
    for (let chain of chains) {
      [first, down] = [chain.path[0], chain.path.at(-1).key];
      spine = spines[first.key];
      straight = (spine === down);
      chain.wire.straight = (straight && (along[first.key] === 1));
      offset = (port(chain.wire, first) - first.x);
      for (let [a, b] of pairwise(chain.path)) {
        upright = (((a.height + b.height) === 0) ? 6.0 : (((a.height * b.height) > 0) ? 1.0 : 2.0));
        rigid = (trunk[first.key] ? 600.0 : 60.0);
        weight = (upright * (straight ? rigid : ((rest[down] > 0) ? 3.0 : 1.0)));
        ups[b.key].push(new Pull(a, offset, weight));
        soft = ((a.key === first.key) && (spine >= 0) && !straight);
        downs[a.key].push(new Pull(b, -offset, (soft ? 0.01 : weight)));
        offset = 0.0;
      }
    }
    return [ups, downs];
  }

  function pooled(wanted, weights, widths) {
    let shifts, means, totals, counts, shift, places, mean, total, count, other, heavy;
    shifts = [];
    means = [];
    totals = [];
    counts = [];
    shift = 0.0;
    for (let [k, x] of enumerate(wanted)) {
      shift += ((k > 0) ? (((widths[(k - 1)] + widths[k]) / 2) + GAP) : 0.0);
      shifts.push(shift);
      [mean, total, count] = [(x - shift), weights[k], 1];
      while (((means.length > 0) && (means.at(-1) > mean))) {
        [other, heavy] = [means.pop(), totals.pop()];
        mean = (((mean * total) + (other * heavy)) / (total + heavy));
        total += heavy;
        count += counts.pop();
      }
      means.push(mean);
      totals.push(total);
      counts.push(count);
    }
    places = [];
    for (let [k, mean] of enumerate(means)) {
      for (let _ of range(counts[k])) {
        places.push((mean + shifts[places.length]));
      }
    }
    return places;
  }

  function _stack(layers, boxes, jumps, columns) {
    let lanes, rows, heights, height, taken, column, tallest, slack, row, below, extra;
    lanes = range((layers.length + 1)).map((_) => 0);
    for (let jump of jumps) {
      lanes[(jump.source.layer + 1)] += 1;
      lanes[jump.target.layer] += 1;
    }
    rows = range(columns).map((_) => []);
    heights = range(columns).map((_) => 0.0);
    for (let [row, layer] of enumerate(layers)) {
      if ((layer.length === 0)) {
        continue;
      }
      [column, tallest] = [boxes[layer[0]].column, max(layer.map((i) => boxes[i].height))];
      if ((rows[column].length > 0)) {
        extra = (min(lanes[row], MOST_LANES) - 1);
        heights[column] += (LAYER_GAP + (LANE * max(0, extra)));
      }
      for (let i of layer) {
        [boxes[i].y, boxes[i].room] = [(heights[column] + (tallest / 2)), tallest];
      }
      heights[column] += tallest;
      rows[column].push(row);
    }
    height = max([...heights, 0.0]);
    for (let column of range(columns)) {
      slack = ((height - heights[column]) / max(1, (rows[column].length - 1)));
      for (let [k, row] of enumerate(rows[column])) {
        for (let i of layers[row]) {
          boxes[i].y += ((slack <= MOST_SLACK) ? (k * slack) : 0.0);
        }
      }
    }
    taken = lanes.map((_) => 0);
    for (let jump of jumps) {
      row = (jump.source.layer + 1);
      jump.leaving = ((jump.source.y + (jump.source.room / 2)) + BELOW);
      jump.leaving += (LANE * (taken[row] % MOST_LANES));
      taken[row] += 1;
      row = jump.target.layer;
      below = ((min(lanes[row], MOST_LANES) - 1) - (taken[row] % MOST_LANES));
      jump.arriving = (((jump.target.y - (jump.target.room / 2)) - ABOVE) - (LANE * below));
      taken[row] += 1;
    }
    return height;
  }

  function _turned(y, column, height) {
    return (((column % 2) === 1) ? (height - y) : y);
  }

  function _gutters(jumps, columns, height) {
    let taken, buses, outer, first, last, side, sides, beyond;
    taken = range(columns).map((_) => []);
    buses = [0, 0];
    outer = (BELOW + (LANE * (MOST_LANES + 2)));
    for (let jump of jumps) {
      [first, last] = [jump.source.column, (jump.target.column - 1)];
      jump.leaving = _turned(jump.leaving, first, height);
      jump.arriving = _turned(jump.arriving, (last + 1), height);
      if ((first === last)) {
        sides = [jump.leaving, jump.arriving];
        beyond = ((min(sides) < 0) || (max(sides) > height));
        if ((beyond && (abs((sides[0] - sides[1])) < (4 * LANE)))) {
          jump.leaving = jump.arriving = ((max(sides) > height) ? max(sides) : min(sides));
        }
        jump.lanes = [_lane(taken[first], jump.leaving, jump.arriving)];
        continue;
      }
      side = (((jump.leaving + jump.arriving) < height) ? 0 : 1);
      jump.bus = ((side === 1) ? ((height + outer) + (LANE * buses[1])) : (-outer - (LANE * buses[0])));
      buses[side] += 1;
      jump.lanes = [_lane(taken[first], jump.leaving, jump.bus), _lane(taken[last], jump.bus, jump.arriving)];
    }
    return taken.map((lanes) => (GUTTER + (LANE * max(0, (lanes.length - 1)))));
  }

  function _lane(taken, a, b) {
    let low, high;
    [low, high] = [(min(a, b) - LANE), (max(a, b) + LANE)];
    for (let [k, spans] of enumerate(taken)) {
      if (all(spans.map((span) => ((span[1] < low) || (span[0] > high))))) {
        spans.push([low, high]);
        return k;
      }
    }
    taken.push([[low, high]]);
    return (taken.length - 1);
  }

  function _spread(boxes, gutters) {
    let edges, at, inside, left, right;
    edges = [];
    at = 0.0;
    for (let [column, gutter] of enumerate(gutters)) {
      inside = boxes.filter((box) => (box.column === column)).map((box) => box);
      left = min([...inside.map((box) => (box.x - (box.width / 2))), 1000000000.0]);
      for (let box of inside) {
        box.x += (at - left);
      }
      right = max([...inside.map((box) => (box.x + (box.width / 2))), at]);
      edges.push([at, right]);
      at = (right + gutter);
    }
    return edges;
  }

  function _lead(boxes, chains, jumps) {
    let ends, before, x, end, source, target, spread, points;
    ends = boxes.map((_) => []);
    for (let chain of chains) {
      before = chain.path.at(-2);
      x = ((chain.path.length === 2) ? port(chain.wire, before) : before.x);
      ends[chain.path.at(-1).key].push([x, chain]);
    }
    for (let jump of jumps) {
      end = new Chain(jump.wire, [jump.source, jump.target]);
      ends[jump.target.key].push([jump.source.x, end]);
    }
    for (let arriving of ends) {
      arriving.sort((a, b) => ((end) => end[0])(a) - ((end) => end[0])(b));
      for (let [place, [_, chain]] of enumerate(arriving)) {
        [source, target] = [chain.path[0], chain.path.at(-1)];
        spread = ((target.width * 0.5) * (((place + 1) / (arriving.length + 1)) - 0.5));
        points = [[port(chain.wire, source), (source.y + (source.height / 2))]];
        for (let bend of chain.path.slice(1, -1)) {
          points.push([bend.x, (bend.y - (bend.room / 2))]);
          points.push([bend.x, (bend.y + (bend.room / 2))]);
        }
        points.push([(target.x + spread), (target.y - (target.height / 2))]);
        chain.wire.points = points;
      }
    }
  }

  function _turn_columns(boxes, chains, height) {
    let column;
    for (let box of boxes) {
      box.y = _turned(box.y, box.column, height);
    }
    for (let chain of chains) {
      column = chain.path[0].column;
      chain.wire.points = chain.wire.points.map(([x, y]) => [x, _turned(y, column, height)]);
    }
  }

  function _run(jump, edges, height) {
    let x, y, end, bottom, first, last, ways, points;
    [[x, y], [end, bottom]] = jump.wire.points;
    [first, last] = [jump.source.column, (jump.target.column - 1)];
    ways = [((edges[first][1] + (GUTTER / 2)) + (LANE * jump.lanes[0]))];
    points = [[x, _turned(y, first, height)], [x, jump.leaving], [ways[0], jump.leaving]];
    if ((first < last)) {
      ways.push(((edges[last][1] + (GUTTER / 2)) + (LANE * jump.lanes[1])));
      for (const one of [[ways[0], jump.bus], [ways[1], jump.bus]]) points.push(one);
    }
    for (const one of [[ways.at(-1), jump.arriving], [end, jump.arriving]]) points.push(one);
    jump.wire.points = [...points, [end, _turned(bottom, (last + 1), height)]];
  }

  function _frame(boxes, wires) {
    let ends, top, bottom;
    ends = wires.flatMap((wire) => wire.points.map(([_, y]) => y));
    top = min([...ends, ...boxes.map((box) => (box.y - (box.height / 2))), 1000000000.0]);
    for (let box of boxes) {
      box.y -= top;
    }
    for (let wire of wires) {
      wire.points = wire.points.map(([x, y]) => [x, (y - top)]);
    }
    bottom = max([...ends, ...boxes.map((box) => ((box.y + top) + (box.height / 2))), top]);
    return [max([...boxes.map((box) => (box.x + (box.width / 2))), 0.0]), (bottom - top)];
  }

  function turned(found, sideways, mirrored) {
    let over, across, references, points;
    over = (mirrored && ((found.columns % 2) === 1));
    across = (mirrored && (found.columns > 1));
    references = found.wires.filter((wire) => (wire.reference !== null)).map((wire) => wire.reference);
    for (let box of [...found.boxes, ...references]) {
      box.x = (across ? (found.width - box.x) : box.x);
      box.y = (over ? (found.height - box.y) : box.y);
      if (sideways) {
        [box.x, box.y, box.width, box.height] = [box.y, box.x, box.height, box.width];
      }
    }
    for (let wire of found.wires) {
      points = (mirrored ? list(reversed(wire.points)) : wire.points);
      points = points.map(([x, y]) => [(across ? (found.width - x) : x), y]);
      points = points.map(([x, y]) => [x, (over ? (found.height - y) : y)]);
      wire.points = (sideways ? points.map(([x, y]) => [y, x]) : points);
    }
    if (sideways) {
      [found.width, found.height] = [found.height, found.width];
    }
    return found;
  }

  function bends(wire, sideways = false) {
    let x, y, found, here, there, before, after, nx, ny;
    [x, y] = wire.points[0];
    found = [];
    for (let [k, [nx, ny]] of enumerate(wire.points.slice(1))) {
      if (wire.square) {
        [here, there] = [[nx, ny], wire.points[min((k + 2), (wire.points.length - 1))]];
        before = _along(here, [x, y]);
        after = _along(here, there);
        found.push([x, y, before[0], before[1], before[0], before[1]]);
        found.push([nx, ny, nx, ny, after[0], after[1]]);
        [nx, ny] = after;
      }
      else {
        if (sideways) {
          found.push([((x + nx) / 2), y, ((x + nx) / 2), ny, nx, ny]);
        }
        else {
          found.push([x, ((y + ny) / 2), nx, ((y + ny) / 2), nx, ny]);
        }
      }
      [x, y] = [nx, ny];
    }
    return found;
  }

  function middle(wire, forward) {
    let x, y, beyond, below;
    [[x, y], [beyond, below]] = (forward ? wire.points.slice(0, -3) : wire.points.slice(0, 2));
    return [((x + beyond) / 2), ((y + below) / 2)];
  }

  function label_place(wire, target, width, sideways, mirrored) {
    let above, x, y, beside, edge;
    if (sideways) {
      edge = (((wire.index % 2) === 1) ? (target.height / 2) : (-target.height / 2));
      return [(((target.x - (target.width / 2)) + (width / 2)) + 8.0), (target.y + edge)];
    }
    [[x, y], above] = [wire.points.at(-1), wire.points.at(-2)[1]];
    if (mirrored) {
      [[x, y], above] = [wire.points[0], wire.points[1][1]];
    }
    beside = ((x < (target.x - 1.0)) ? ((x - (width / 2)) - 8.0) : ((x + (width / 2)) + 8.0));
    return [beside, ((above < y) ? (y - 4.0) : (y + 4.0))];
  }

  function _along(a, b) {
    let length, part;
    length = max(abs((b[0] - a[0])), abs((b[1] - a[1])));
    part = ((length > 0) ? (min(CORNER, (length / 2)) / length) : 0.0);
    return [(a[0] + ((b[0] - a[0]) * part)), (a[1] + ((b[1] - a[1]) * part))];
  }

  function curve(wire, sideways = false) {
    let x, y, pieces;
    [x, y] = wire.points[0];
    pieces = bends(wire, sideways).map((piece) => piece.map((n) => `${n.toFixed(1)}`).join(" "));
    return (`M${x.toFixed(1)} ${y.toFixed(1)}` + pieces.map((piece) => `C${piece}`).join(""));
  }

  return { Box, Wire, layout, turned, curve, label_place };
})();

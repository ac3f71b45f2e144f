// A layered layout, as layers.py has it: layers by longest path, bends for edges that
// pass layers, an order by barycentres, places by least squares under that order.
const Layered = (() => {
  const LONGEST_EDGE = 4, CLEAR = 150, FEW_ENDS = 4, GAP = 26, LAYER_GAP = 36, BEND = 10, MANY = 5000;
  // In a very large graph there is time for less.
  const sweeps = (all) => (all.length > MANY ? 1 : 6), rounds = (all) => (all.length > MANY ? 3 : 10);
  const FAR_HEIGHT = 24;

  // boxes: [{width, height}], wires: [{source, target, index, count, far}]; indices into boxes.
  function layout(boxes, wires) {
    const all = boxes.map((box, key) => Object.assign(box, { key, layer: 0, x: 0, y: 0 }));
    assignLayers(all, wires.filter((wire) => !wire.far));
    const chains = [], ends = boxes.map(() => 0);
    for (const wire of wires) ends[wire.target]++;
    // A long edge is drawn where the graph is small and few lead to its target.
    const fits = (wire, length) => length <= LONGEST_EDGE || (boxes.length <= CLEAR && ends[wire.target] <= FEW_ENDS);
    const add = (width, height, layer) => {
      const box = { key: all.length, width, height, layer, x: 0, y: 0, bend: height === 0 };
      all.push(box);
      return box;
    };
    for (const wire of wires) {
      const source = all[wire.source], target = all[wire.target];
      wire.end = null;
      if (wire.far || !fits(wire, target.layer - source.layer)) {
        wire.end = add(wire.farWidth, FAR_HEIGHT, source.layer + 1);
        chains.push({ wire, path: [source, wire.end] });
        continue;
      }
      const path = [source];
      for (let layer = source.layer + 1; layer < target.layer; layer++) path.push(add(BEND, 0, layer));
      path.push(target);
      chains.push({ wire, path });
    }
    const below = all.map(() => []), above = all.map(() => []);
    for (const { path } of chains) {
      for (let k = 1; k < path.length; k++) {
        below[path[k - 1].key].push(path[k].key);
        above[path[k].key].push(path[k - 1].key);
      }
    }
    const layers = order(all, above, below);
    place(layers, all, chains);
    const size = frame(all, layers);
    lead(chains);
    return { layers, ...size };
  }

  function assignLayers(boxes, wires) {
    const follow = boxes.map(() => []), waiting = boxes.map(() => 0);
    for (const wire of wires) {
      follow[wire.source].push(wire.target);
      waiting[wire.target]++;
    }
    const ready = boxes.filter((box) => !waiting[box.key]).map((box) => box.key);
    for (let k = 0; k < ready.length; k++) {
      for (const j of follow[ready[k]]) {
        boxes[j].layer = Math.max(boxes[j].layer, boxes[ready[k]].layer + 1);
        if (!--waiting[j]) ready.push(j);
      }
    }
  }

  function order(boxes, above, below) {
    const layers = [];
    const seen = new Set(), stack = boxes.filter((box) => !above[box.key].length).map((box) => box.key).reverse();
    while (stack.length) {
      const i = stack.pop();
      if (seen.has(i)) continue;
      seen.add(i);
      (layers[boxes[i].layer] ||= []).push(i);
      for (let k = below[i].length - 1; k >= 0; k--) stack.push(below[i][k]);
    }
    let best = layers.map((layer) => [...layer]), fewest = crossings(layers, below);
    for (let sweep = 0; sweep < sweeps(boxes) && fewest; sweep++) {
      const down = sweep % 2 === 0, near = down ? above : below, at = new Map();
      for (const layer of layers) layer.forEach((i, k) => at.set(i, k));
      for (const layer of down ? layers : [...layers].reverse()) {
        const mean = new Map(layer.map((i) => [i, near[i].length ? near[i].reduce((s, j) => s + at.get(j), 0) / near[i].length : at.get(i)]));
        layer.sort((a, b) => mean.get(a) - mean.get(b));
        layer.forEach((i, k) => at.set(i, k));
      }
      const now = crossings(layers, below);
      if (now < fewest) {
        best = layers.map((layer) => [...layer]);
        fewest = now;
      }
    }
    return best;
  }

  function crossings(layers, below) {
    let count = 0;
    const at = new Map();
    for (const layer of layers) layer.forEach((i, k) => at.set(i, k));
    for (const layer of layers) {
      const seen = [];
      for (const i of layer) {
        const ends = below[i].map((j) => at.get(j));
        for (const end of ends) count += seen.length - bisect(seen, end);
        for (const end of ends) seen.splice(bisect(seen, end), 0, end);
      }
    }
    return count;
  }

  function bisect(sorted, value) {
    let low = 0, high = sorted.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sorted[middle] <= value) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  function port(wire, source) {
    return source.x + source.width * 0.6 * ((wire.index + 1) / (wire.count + 1) - 0.5);
  }

  function place(layers, boxes, chains) {
    const { ups, downs } = pulls(boxes, chains);
    for (const layer of layers) {
      let x = 0;
      for (const i of layer) {
        boxes[i].x = x + boxes[i].width / 2;
        x += boxes[i].width + GAP;
      }
    }
    for (let turn = 0; turn < rounds(boxes); turn++) {
      const near = turn % 2 === 0 ? downs : ups;
      for (const layer of turn % 2 === 0 ? [...layers].reverse() : layers) {
        const wanted = [], weights = [];
        for (const i of layer) {
          let force = 0, pull = 0;
          for (const [j, offset, weight] of near[i]) {
            force += weight;
            pull += (boxes[j].x + offset) * weight;
          }
          wanted.push(force ? pull / force : boxes[i].x);
          weights.push(force || 0.2);
        }
        const places = pooled(wanted, weights, layer.map((i) => boxes[i].width));
        layer.forEach((i, k) => (boxes[i].x = places[k]));
      }
    }
  }

  // How boxes pull one another: a spine hard and straight, what hangs from it softly.
  function pulls(boxes, chains) {
    const inner = new Set(chains.map(({ path }) => path[0].key));
    const spines = boxes.map(() => new Set());
    // Of a short and a long way down the short one is the spine.
    for (const long of [false, true]) for (const { wire, path } of chains) {
      if (inner.has(path[path.length - 1].key) && path.length > 2 === long && !(long && spines[wire.source].size)) spines[wire.source].add(wire.target);
    }
    const ups = boxes.map(() => []), downs = boxes.map(() => []);
    for (const { wire, path } of chains) {
      const deep = inner.has(path[path.length - 1].key), spine = spines[wire.source].size === 1;
      const straight = deep && spine && spines[wire.source].has(wire.target);
      let offset = straight ? 0 : port(wire, path[0]) - path[0].x;
      for (let k = 1; k < path.length; k++) {
        const a = path[k - 1], b = path[k];
        const weight = [1, 2, 6][(a.bend ? 1 : 0) + (b.bend ? 1 : 0)] * (straight ? 60 : deep ? 3 : 1);
        ups[b.key].push([a.key, offset, weight]);
        downs[a.key].push([b.key, -offset, k === 1 && spine && !straight ? 0.01 : weight]);
        offset = 0;
      }
    }
    return { ups, downs };
  }

  function pooled(wanted, weights, widths) {
    const shifts = [], pools = [];
    let at = 0;
    widths.forEach((width, k) => {
      if (k) at += (widths[k - 1] + width) / 2 + GAP;
      shifts.push(at);
    });
    wanted.forEach((x, k) => {
      let mean = x - shifts[k], total = weights[k], count = 1;
      while (pools.length && pools[pools.length - 1][0] > mean) {
        const [other, heavy, many] = pools.pop();
        mean = (mean * total + other * heavy) / (total + heavy);
        total += heavy;
        count += many;
      }
      pools.push([mean, total, count]);
    });
    const places = [];
    for (const [mean, , count] of pools) for (let k = 0; k < count; k++) places.push(mean + shifts[places.length]);
    return places;
  }

  function frame(boxes, layers) {
    let left = Infinity, right = 0, y = 0;
    for (const box of boxes) left = Math.min(left, box.x - box.width / 2);
    for (const layer of layers) {
      const tallest = layer.reduce((most, i) => Math.max(most, boxes[i].height), 0);
      for (const i of layer) {
        boxes[i].y = y + tallest / 2;
        boxes[i].room = tallest;
        boxes[i].x -= left;
        right = Math.max(right, boxes[i].x + boxes[i].width / 2);
      }
      y += tallest + LAYER_GAP;
    }
    return { width: right, height: Math.max(0, y - LAYER_GAP) };
  }

  function lead(chains) {
    const arriving = new Map();
    chains.forEach(({ wire, path }, k) => {
      const before = path[path.length - 2], end = path[path.length - 1].key;
      if (!arriving.has(end)) arriving.set(end, []);
      arriving.get(end).push([path.length === 2 ? port(wire, before) : before.x, k]);
    });
    for (const ends of arriving.values()) {
      ends.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
      ends.forEach(([, k], position) => {
        const { wire, path } = chains[k], source = path[0], target = path[path.length - 1];
        const spread = target.width * 0.5 * ((position + 1) / (ends.length + 1) - 0.5);
        wire.points = [
          [port(wire, source), source.y + source.height / 2],
          ...path.slice(1, -1).flatMap(({ x, y, room }) => [[x, y - room / 2], [x, y + room / 2]]),
          [target.x + spread, target.y - target.height / 2],
        ];
      });
    }
  }

  function curve(points) {
    let [x, y] = points[0], path = `M${x.toFixed(1)} ${y.toFixed(1)}`;
    for (const [nx, ny] of points.slice(1)) {
      const bend = (ny - y) / 2;
      path += `C${x.toFixed(1)} ${(y + bend).toFixed(1)} ${nx.toFixed(1)} ${(ny - bend).toFixed(1)} ${nx.toFixed(1)} ${ny.toFixed(1)}`;
      [x, y] = [nx, ny];
    }
    return path;
  }

  return { layout, curve };
})();

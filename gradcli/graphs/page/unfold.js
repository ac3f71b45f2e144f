// What is unfolded: the boxes and wires to be drawn, and who stands for what is folded away.
const closed = (i) => inputs[i].length > 0 && (state.folded.has(i) || (levels[i] >= state.depth && !state.opened.has(i)));
const groupOf = (i) => nodes[i].groups.find((k) => !chains[k].open);
const keyOf = (i) => (data.groups ? groupKey(i) : state.chains && chainOf.has(i) && !chains[chainOf.get(i)].open ? `c${chainOf.get(i)}` : `n${i}`);

function groupKey(i) {
  const group = state.chains ? groupOf(i) : undefined;
  return group === undefined ? `n${i}` : `c${group}`;
}

// Where a folded module leads: one edge to everything outside that it uses.
function leavingEdges(item) {
  const seen = new Set([item.key]);
  for (const from of item.chain.hidden) {
    for (const edge of nodes[from].next) {
      const target = edge && keyOf(edge[0]);
      if (!target || seen.has(target)) continue;
      seen.add(target);
      item.edges.push({ target, index: item.edges.length, output: 0, from, edge: -1 });
    }
  }
}

function unfold() {
  const items = new Map(), wires = [], stack = roots.map(data.groups ? keyOf : (i) => `n${i}`).reverse(), referred = new Set();
  while (stack.length) {
    const key = stack.pop();
    if (items.has(key)) continue;
    const item = key[0] === "c" ? { key, kind: "chain", chain: chains[key.slice(1)], edges: [] } : { key, kind: "node", id: +key.slice(1), edges: [] };
    items.set(key, item);
    if (item.kind === "chain" && item.chain.path) leavingEdges(item);
    else if (item.kind === "chain") item.edges.push({ target: `n${item.chain.tail}`, index: 0, output: 0, from: item.chain.hidden.at(-1), edge: -1 });
    else if (!closed(item.id)) {
      nodes[item.id].next.forEach((edge, index) => {
        if (!edge && !state.edges) return;
        const target = edge ? keyOf(edge[0]) : null;
        if (target && target[0] === "c" && item.edges.some((other) => other.target === target)) return;
        item.edges.push({ target, index, output: edge ? edge[1] : 0, from: item.id, edge: index });
      });
    }
    for (const edge of [...item.edges].reverse()) if (edge.target) stack.push(edge.target);
  }
  for (const item of items.values()) {
    const count = item.kind === "node" ? nodes[item.id].next.length : item.edges.length;
    for (const edge of item.edges) {
      const to = edge.target || `x${item.key}.${edge.index}`;
      if (!edge.target) items.set(to, { key: to, kind: "none", edges: [] });
      const far = state.shared && edge.target && referred.has(to);
      referred.add(to);
      wires.push({ from: item.key, to, index: edge.index, count, output: edge.output, node: edge.from, edge: edge.edge, far });
    }
  }
  return { items, wires };
}

// Who stands for a node that is folded away.
function owners(items) {
  const owner = new Map();
  for (const item of items.values()) {
    if (item.kind === "node") owner.set(item.id, item.key);
    if (item.kind === "chain") item.chain.hidden.forEach((i) => owner.set(i, item.key));
  }
  for (const item of items.values()) {
    const stack = item.kind === "node" && closed(item.id) ? [...inputs[item.id]] : item.kind === "chain" ? item.chain.hidden.flatMap((i) => inputs[i]) : [];
    item.below = 0;
    while (stack.length) {
      const i = stack.pop();
      if (owner.has(i)) continue;
      owner.set(i, item.key);
      item.below++;
      stack.push(...inputs[i]);
    }
  }
  return owner;
}

// The graph as the page knows it: who consumes whom, and its straight chains.
const inputs = nodes.map((node) => node.next.filter(Boolean).map((edge) => edge[0]));
const consumers = nodes.map(() => []);
nodes.forEach((node, i) => inputs[i].forEach((j) => consumers[j].push(i)));
const levels = breadthFirst();
const chains = findChains();
const chainOf = new Map();
// Calls of modules fold as chains do; where there are any, straight chains stay as they are.
const firstGroup = data.groups ? 0 : Infinity;
if (data.groups) chains.splice(0, chains.length, ...data.groups.map((group) => ({ ...group, begins: group.open, hidden: group.members })));
else chains.forEach((chain, k) => chain.hidden.forEach((i) => chainOf.set(i, k)));
const turn = new Map(steps.map((step, k) => [step.node, k]));

function breadthFirst() {
  const found = nodes.map(() => 0), seen = new Set(roots), queue = [...roots];
  for (let k = 0; k < queue.length; k++) {
    for (const j of inputs[queue[k]]) {
      if (seen.has(j)) continue;
      seen.add(j);
      found[j] = found[queue[k]] + 1;
      queue.push(j);
    }
  }
  return found;
}

// The only input of a node that itself has inputs, if nobody else consumes it.
function link(i) {
  const inner = new Set(inputs[i].filter((j) => inputs[j].length));
  if (inner.size !== 1) return null;
  const [j] = inner;
  return consumers[j].every((k) => k === i) ? j : null;
}

function findChains() {
  const after = nodes.map((_, i) => link(i)), linked = new Set(after.filter((j) => j !== null)), found = [];
  nodes.forEach((_, head) => {
    if (after[head] === null || linked.has(head)) return;
    const members = [];
    for (let j = after[head]; j !== null; j = after[j]) members.push(j);
    const tail = members.pop();
    if (members.length >= SHORTEST_FOLD) found.push({ head, tail, hidden: members, open: false });
  });
  return found;
}

function titleOf(node) {
  return node.variable || node.label ? `${node.name} ${node.variable || node.label}` : node.name;
}

function chainText(chain) {
  if (chain.path) return `${chain.kind} ${chain.path}`;
  const counts = new Map();
  for (const i of chain.hidden) counts.set(nodes[i].name, (counts.get(nodes[i].name) || 0) + 1);
  if (counts.size === 1) return `${chain.hidden.length} × ${nodes[chain.hidden[0]].name}`;
  const kinds = [...counts].slice(0, 3).map(([name, count]) => `${count} × ${name}`);
  return `${chain.hidden.length} nodes: ${kinds.join(", ")}${counts.size > 3 ? ", …" : ""}`;
}

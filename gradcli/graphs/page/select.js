// Selecting, finding, folding.
const itemAt = (target) => target.closest("[data-key]")?.dataset.key ?? null;
const idOf = (key) => (key === null ? null : key[0] === "n" ? +key.slice(1) : chains[key.slice(1)].hidden[0]);

function showLit() {
  const key = state.hovered ?? state.selected;
  for (const wire of drawn.wires) wire.path?.classList.toggle("lit", key !== null && (wire.from === key || wire.to === key));
  for (const item of drawn.items.values()) item.card?.classList.toggle("selected", item.key === state.selected);
}

function select(key, { focus = false, center = false } = {}) {
  state.selected = key;
  showLit();
  showPanel(idOf(key));
  focusable();
  const item = key === null ? null : drawn.items.get(key);
  if (item) {
    makeCard(item);
    item.card.setAttribute("tabindex", 0);
  }
  if (item && center) reveal(item.box, true);
  if (item) hide(item.card, false);
  if (item && focus) item.card.focus({ preventScroll: true });
}

function focusable() {
  const key = state.selected && drawn.items.has(state.selected) ? state.selected : roots.length ? keyOf(roots[0]) : null;
  for (const item of drawn.items.values()) item.card?.setAttribute("tabindex", item.key === key ? 0 : -1);
}

// Unfolds whatever hides a node, then selects it.
function visit(i) {
  for (let tries = 0; tries < nodes.length && drawn.owner.get(i) !== `n${i}`; tries++) {
    const key = drawn.owner.get(i);
    if (key === undefined) return;
    open(key);
  }
  select(`n${i}`, { focus: true, center: true });
}

function open(key) {
  if (key[0] === "c") chains[key.slice(1)].open = true;
  else {
    state.folded.delete(+key.slice(1));
    state.opened.add(+key.slice(1));
  }
  draw();
}

function toggle(key) {
  if (!key) return;
  const item = drawn.items.get(key);
  if (!item || item.kind === "none") return;
  const before = { x: item.box.x * state.scale + state.x, y: item.box.y * state.scale + state.y };
  if (key[0] === "c" || closed(item.id)) open(key);
  else if (inputs[item.id].length) {
    state.opened.delete(item.id);
    state.folded.add(item.id);
    draw();
  }
  // What was clicked stays under the pointer.
  const after = drawn.items.get(key) || drawn.items.get(keyOf(idOf(key)));
  if (after) move(before.x - after.box.x * state.scale, before.y - after.box.y * state.scale);
  if (state.selected === key && !drawn.items.has(key)) select(null);
}

// A node's class by how it begins, or by a longer part; the program's names by any part.
function called(node, text) {
  const name = node.name.toLowerCase(), own = (node.variable || node.label || "").toLowerCase();
  return name.startsWith(text) || (text.length > 3 && name.includes(text)) || own.includes(text);
}

function find() {
  const text = $("find").value.trim().toLowerCase(), number = /^#?(\d+)$/.exec(text);
  const hit = (node, i) => (number && +number[1] === i) || called(node, text) || (text.length > 1 && node.source && !node.leaf && node.source.toLowerCase().includes(text));
  state.found = text ? nodes.map((node, i) => (hit(node, i) ? i : -1)).filter((i) => i >= 0) : [];
  // Exact names first, as one expects of a name typed in full.
  const exact = (i) => [nodes[i].name, nodes[i].variable, nodes[i].label].some((name) => name && name.toLowerCase() === text);
  state.found.sort((a, b) => exact(b) - exact(a) || a - b);
  state.at = -1;
  showFound();
}

function showFound() {
  const keys = new Set(state.found.map((i) => drawn.owner.get(i)));
  for (const item of drawn.items.values()) item.card?.classList.toggle("found", keys.has(item.key));
  const text = $("find").value.trim();
  $("found").textContent = !text ? "" : state.at < 0 ? `${state.found.length}` : `${state.at + 1} / ${state.found.length}`;
}

function findNext(by) {
  if (!state.found.length) return;
  state.at = (state.at + by + state.found.length) % state.found.length;
  visit(state.found[state.at]);
  showFound();
  $("find").focus();
}

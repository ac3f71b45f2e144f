// The backward pass, step by step.
// Marks what the steps up to now have done; after a drawing everything, otherwise what changed.
function showStep(fresh = false) {
  const k = state.step, now = k ? steps[k - 1] : null, before = fresh ? 0 : state.shown;
  const touched = new Set(steps.slice(Math.min(k, before), Math.max(k, before)).map((step) => step.node));
  for (const at of [before, k]) if (at) touched.add(steps[at - 1].node);
  const keys = new Set([...touched].map((i) => drawn.owner.get(i)));
  const active = activeKey();
  for (const key of keys) showReached(drawn.items.get(key), k, key === active);
  for (const i of touched) for (const wire of drawn.wiresOf.get(i) || []) showWire(wire, k);
  state.shown = k;
  $("steps").value = k;
  $("count").textContent = `${k} / ${steps.length}`;
  $("first").disabled = $("back").disabled = k === 0;
  $("next").disabled = k >= steps.length;
  $("story").replaceChildren(...story(now));
  if (active && !fresh) reveal(drawn.items.get(active).box);
  if (!fresh) remember(k);
  if (now && state.hovered === null && !fresh) showPanel(now.node);
}

const activeKey = () => (state.step ? drawn.owner.get(steps[state.step - 1].node) ?? null : null);

function showWire(wire, k) {
  if (!wire.path) return;
  const now = k ? steps[k - 1] : null;
  const flowed = turn.get(wire.node) < k && wire.to[0] !== "x", current = now !== null && wire.node === now.node;
  wire.path.classList.toggle("flow", flowed);
  wire.path.classList.toggle("now", flowed && current);
  showFlow(wire, flowed && current && now.out ? now.out[wire.edge] : null);
}

// A step can be linked: page.html#step=6. (A frame without an address of its own keeps none.)
function remember(k) {
  try {
    history.replaceState(null, "", k ? `#step=${k}` : location.pathname + location.search);
  } catch {
    // nothing to remember it by
  }
}

function linked() {
  const found = /^#step=(\d+)$/.exec(location.hash);
  if (found) go(+found[1]);
  return found !== null;
}

// The pass stands after a step when the page opens, and the window where it is.
function begin(k) {
  state.step = k;
  showStep(true);
}

function showReached(item, k, active) {
  if (!item?.card || item.kind === "none") return;
  const ids = item.kind === "chain" ? item.chain.hidden : [item.id];
  const last = ids.reduce((a, b) => (turn.get(b) < k && (a === null || turn.get(b) > turn.get(a)) ? b : a), null);
  item.card.classList.toggle("done", last !== null);
  item.card.classList.toggle("active", active);
  if (!item.grad) return;
  item.grad.textContent = last === null || !data.grads ? "" : gradText(nodes[last].grad);
  item.grad.classList.toggle("bad", last !== null && nodes[last].bad);
}

function showFlow(wire, text) {
  wire.label.replaceChildren();
  if (!text) return;
  const said = short(text, EDGE_TEXT), width = measure(said, MONO) + 10;
  const target = wire.reference || drawn.items.get(wire.to).box;
  const [x, y] = Layered.label_place(wire, target, width, false, Boolean(data.forward));
  wire.label.append(
    element("rect", { x: x - width / 2, y: y - 9, width, height: 18, rx: 5 }),
    element("text", { class: "grad", x, y: y + 4, "text-anchor": "middle" }, said),
  );
}

const MOST_SENT = 4;

function html(name, text, kind) {
  const made = document.createElement(name);
  if (kind) made.className = kind;
  made.append(text);
  return made;
}

function story(step) {
  if (!steps.length) return ["Nothing to run."];
  if (!step) return [`The backward pass has ${steps.length} steps. `, data.grads ? "" : "Gradients were not computed (--grads does); this is the order."];
  const node = nodes[step.node], parts = [html("b", titleOf(node))];
  if (step.in) parts.push(" received ", html("span", step.in, node.bad ? "grad bad" : "grad"));
  if (node.variable !== null || node.leaf) parts.push(step.in ? ` and adds it to ${node.variable || "the leaf"}.grad` : ` adds to ${node.variable || "the leaf"}.grad`);
  else {
    const sent = node.next.map((edge, i) => (edge ? [step.out ? step.out[i] : null, nodes[edge[0]]] : null)).filter(Boolean);
    sent.slice(0, MOST_SENT).forEach(([grad, to], i) => {
      parts.push(i ? ", " : step.in ? " and sends " : " sends its gradient ");
      if (grad) parts.push(html("span", grad, /nan|inf/.test(grad) ? "bad" : "grad"));
      parts.push(` to ${to.variable || to.label || to.name}`);
    });
  }
  const more = node.next.filter(Boolean).length - MOST_SENT;
  if (more > 0 && node.variable === null && !node.leaf) parts.push(` and ${more} more`);
  return [...parts, "."];
}

function go(k) {
  state.step = Math.max(0, Math.min(steps.length, k));
  showStep();
  if (state.step === steps.length) pause();
}

function pause() {
  clearInterval(state.timer);
  state.timer = null;
  $("play").setAttribute("aria-pressed", "false");
  $("play").setAttribute("aria-label", "Play");
}

function play() {
  if (state.timer) return pause();
  if (state.step >= steps.length) go(0);
  $("play").setAttribute("aria-pressed", "true");
  $("play").setAttribute("aria-label", "Pause");
  state.timer = setInterval(() => go(state.step + 1), +$("speed").value);
  go(state.step + 1);
}

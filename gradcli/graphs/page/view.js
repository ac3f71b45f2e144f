// Moving about: pan, zoom, what is in the window.
// Asking the browser for a size makes it lay everything out: once, not at every step.
const frame = { width: 0, height: 0 };
function measureFrame() {
  Object.assign(frame, { width: graph.clientWidth, height: graph.clientHeight });
}

function move(x, y, scale = state.scale) {
  if (!Number.isFinite(x + y + scale)) return;
  Object.assign(state, { x, y, scale });
  view.setAttribute("transform", `translate(${x.toFixed(2)} ${y.toFixed(2)}) scale(${scale.toFixed(4)})`);
  graph.classList.toggle("tiny", scale < 0.42);
  if (!culling) culling = requestAnimationFrame(cull);
}

// In a large graph only what is near the window is painted.
let culling = 0;
function cull() {
  culling = 0;
  if (drawn.items.size < CULL_ABOVE) return;
  const margin = 200, top = (-state.y - margin) / state.scale, bottom = (frame.height - state.y + margin) / state.scale;
  const left = (-state.x - margin) / state.scale, right = (frame.width - state.x + margin) / state.scale;
  const shown = ({ x, y }) => y > top && y < bottom && x > left && x < right;
  for (const item of drawn.items.values()) {
    const near = shown(item.box);
    if (near) makeCard(item);
    hide(item.card, !near);
  }
  for (const wire of drawn.wires) {
    const [first, last] = [wire.points[0], wire.points[wire.points.length - 1]];
    const side = Math.min(first[0], last[0]) > right || Math.max(first[0], last[0]) < left;
    const near = !side && last[1] >= top && first[1] <= bottom;
    if (near) makeWire(wire);
    hide(wire.path, !near);
    if (wire.chip) hide(wire.chip, !shown(wire.end));
  }
}

function hide(made, hidden) {
  if (made && made.hiding !== hidden) {
    made.hiding = hidden;
    made.style.display = hidden ? "none" : "";
  }
}

function zoom(factor, cx = frame.width / 2, cy = frame.height / 2) {
  const scale = Math.max(0.02, Math.min(3, state.scale * factor)), ratio = scale / state.scale;
  move(cx - (cx - state.x) * ratio, cy - (cy - state.y) * ratio, scale);
}

function fit(least = 0) {
  const { width: w, height: h } = frame, margin = 56;
  const scale = Math.max(least, Math.min(1.25, (w - margin) / Math.max(drawn.width, 1), (h - 2 * margin) / Math.max(drawn.height, 1)));
  const root = roots.length ? drawn.items.get(keyOf(roots[0])) : null;
  const whole = drawn.height * scale <= h - margin;
  const x = drawn.width * scale <= w - margin ? (w - drawn.width * scale) / 2 : w / 2 - (root ? root.box.x : 0) * scale;
  move(x, whole ? (h - drawn.height * scale) / 2 : margin, scale);
}

function reveal({ x, y, width, height }, always = false) {
  const left = (x - width / 2) * state.scale + state.x, top = (y - height / 2) * state.scale + state.y;
  const inside = left > 10 && top > 50 && left + width * state.scale < frame.width - 10 && top + height * state.scale < frame.height - 30;
  if (inside && (!always || state.scale > 0.5)) return;
  const most = Math.min((frame.width - 40) / width, (frame.height - 100) / height);
  const scale = Math.max(0.02, Math.min(always ? Math.max(state.scale, 0.7) : state.scale, most));
  move(frame.width / 2 - x * scale, frame.height / 2 - y * scale, scale);
}

function neighbour(key, direction) {
  const item = drawn.items.get(key);
  if (data.forward) direction = { up: "down", down: "up" }[direction] || direction;
  if (direction === "down") return drawn.wires.find((wire) => wire.from === key && wire.to[0] !== "x")?.to;
  if (direction === "up") return drawn.wires.find((wire) => wire.to === key)?.from;
  const layer = drawn.layers[item.box.layer], at = layer.indexOf(key);
  return layer[at + (direction === "left" ? -1 : 1)];
}

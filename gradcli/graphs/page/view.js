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
  showMap();
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
    const near = wire.area[0] <= right && wire.area[1] >= left && wire.area[2] <= bottom && wire.area[3] >= top;
    if (near) makeWire(wire);
    hide(wire.path, !near);
    if (wire.chip) hide(wire.chip, !shown(wire.reference));
  }
}

// The whole graph in the corner, with the window in it, where it is large; a pointer there moves about.
function showMap() {
  const map = $("map"), { width: w, height: h } = map, margin = 6;
  const fits = drawn.width * state.scale <= frame.width && drawn.height * state.scale <= frame.height;
  map.hidden = fits && drawn.items.size < MAP_ABOVE;
  if (map.hidden) return;
  const scale = Math.min((w - 2 * margin) / drawn.width, (h - 2 * margin) / drawn.height), paint = map.getContext("2d");
  const left = (w - drawn.width * scale) / 2, top = (h - drawn.height * scale) / 2, { color, outlineColor } = getComputedStyle(map);
  Object.assign(drawn.map, { scale, left, top });
  paint.clearRect(0, 0, w, h);
  paint.fillStyle = color;
  for (const { box: { x, y, width, height } } of drawn.items.values()) {
    paint.fillRect(left + (x - width / 2) * scale, top + (y - height / 2) * scale, Math.max(1, width * scale), Math.max(1, height * scale));
  }
  paint.strokeStyle = outlineColor;
  paint.strokeRect(left - (state.x / state.scale) * scale, top - (state.y / state.scale) * scale, (frame.width / state.scale) * scale, (frame.height / state.scale) * scale);
}

function moveByMap(event) {
  if (event.type !== "pointerdown" && !event.buttons) return;
  const at = $("map").getBoundingClientRect(), { scale, left, top } = drawn.map;
  const shrunk = $("map").width / at.width;
  const x = ((event.clientX - at.left) * shrunk - left) / scale, y = ((event.clientY - at.top) * shrunk - top) / scale;
  move(frame.width / 2 - x * state.scale, frame.height / 2 - y * state.scale);
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
  const whole = drawn.height * scale <= h - margin, low = h - drawn.height * scale - margin / 2;
  // What is too wide shows its root, and no empty ground beside it.
  const last = w - drawn.width * scale - margin / 2, beside = last >= margin / 2;
  const x = beside ? (last + margin / 2) / 2 : Math.max(last, Math.min(margin / 2, w / 2 - (root ? root.box.x : 0) * scale));
  // The root is in sight: at the top, never below the buttons, or at the bottom where all is read forward.
  const at = root ? (root.box.y - root.box.height / 2) * scale : 0;
  move(x, whole ? Math.max(margin, (h - drawn.height * scale) / 2) : Math.min(margin, Math.max(low, margin - at)), scale);
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

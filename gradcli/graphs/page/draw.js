// Drawing: cards, chips, wires.
const pen = document.createElement("canvas").getContext("2d");
const SANS = '13px ui-sans-serif, system-ui, "Segoe UI", Helvetica, Arial, sans-serif';
const MONO = "11px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace";
// What is a little too tall for the window is scrolled, not cut into columns.
const STRETCH = 1.3, FAR_HEIGHT = 24, TITLE_TEXT = 44, NAME_TEXT = 24, MONO_WIDTH = 6.75;
const widths = new Map();

function measure(text, font, weight = "") {
  const key = `${weight}${font[1]}${text}`;
  if (!widths.has(key)) {
    pen.font = `${weight} ${font}`;
    widths.set(key, pen.measureText(text).width);
  }
  return widths.get(key);
}

function element(name, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function words(item) {
  if (item.kind === "none") return { title: "", lines: ["None"] };
  if (item.kind === "chain" && item.chain.path) {
    const lines = item.chain.lines.map((line) => ["detail", line]);
    return { title: item.chain.kind, name: short(item.chain.path, TITLE_TEXT), lines: data.grads ? [...lines, ["grad", ""]] : lines };
  }
  if (item.kind === "chain") return { title: `⋮ ${short(chainText(item.chain), TITLE_TEXT)}`, lines: data.grads ? [["grad", ""]] : [] };
  const node = nodes[item.id], name = node.variable || node.label;
  const lines = node.lines.map((line) => ["detail", line]);
  if (node.value !== null) lines.push([node.odd ? "bad" : "value", `= ${node.value}`]);
  if (data.grads) lines.push(["grad", ""]);
  for (const line of node.kept || []) lines.push(["kept", line]);
  return { title: short(node.title, TITLE_TEXT), name: name && short(name, NAME_TEXT), lines };
}

function short(text, width) {
  if (text.length <= width) return text;
  const half = (width - 1) >> 1;
  return `${text.slice(0, half)}…${text.slice(text.length - half)}`;
}

// The width that the gradient will need once it has come.
function gradWidth(item) {
  if (item.kind === "none" || !data.grads) return 0;
  const ids = item.kind === "chain" ? item.chain.hidden.slice(0, 50) : [item.id];
  return ids.reduce((most, i) => Math.max(most, gradText(nodes[i].grad).length), 0) * MONO_WIDTH;
}

const gradText = (grad) => `grad ${grad === null ? "None" : grad}`;

function sizeOf(item) {
  if (item.kind === "none") return [NONE_WIDTH, FAR_HEIGHT];
  const said = words(item);
  let width = measure(said.title, SANS, "600") + (said.name ? 9 + measure(said.name, SANS, "700") : 0);
  for (const [, line] of said.lines) width = Math.max(width, line.length * MONO_WIDTH);
  width = Math.max(width, gradWidth(item), 70);
  return [width + 2 * PAD, 22 + 18 + LINE * said.lines.length];
}

function draw() {
  const { items, wires } = unfold();
  const keys = [...items.keys()], at = new Map(keys.map((key, i) => [key, i]));
  const boxes = keys.map((key, i) => new Layered.Box(i, ...sizeOf(items.get(key))));
  for (const wire of wires) {
    [wire.source, wire.target] = [at.get(wire.from), at.get(wire.to)];
    wire.reference_width = farText(items.get(wire.to)).length * MONO_WIDTH + 18;
    wire.reference_height = FAR_HEIGHT;
  }
  const window = [Math.max(frame.width, 320) * STRETCH, Math.max(frame.height, 320) * STRETCH];
  const found = Layered.turned(Layered.layout(boxes, wires, window), false, Boolean(data.forward));
  keys.forEach((key, i) => (items.get(key).box = boxes[i]));
  const groups = { lines: element("g"), cards: element("g"), labels: element("g") };
  Object.assign(drawn, { items, wires, groups, owner: owners(items), width: found.width, height: found.height, columns: found.columns });
  drawn.layers = found.layers.map((layer) => layer.filter((i) => i < keys.length && keys[i][0] !== "x").map((i) => keys[i]));
  drawn.wiresOf = new Map();
  for (const wire of wires) {
    const [xs, ys] = [0, 1].map((k) => wire.points.map((point) => point[k]));
    wire.area = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    if (!drawn.wiresOf.has(wire.node)) drawn.wiresOf.set(wire.node, []);
    drawn.wiresOf.get(wire.node).push(wire);
  }
  view.replaceChildren(groups.lines, groups.cards, groups.labels);
  if (items.size < CULL_ABOVE) makeAll();
  else cull();
  showStep(true);
  showLit();
  showFound();
  focusable();
}

function makeAll() {
  drawn.wires.forEach(makeWire);
  drawn.items.forEach(makeCard);
}

// Cards and wires are made when they first come near the window.
function makeCard(item) {
  if (item.card) return;
  drawn.groups.cards.append(drawItem(item));
  showReached(item, state.step, item.key === activeKey());
  item.card.classList.toggle("selected", item.key === state.selected);
}

function makeWire(wire) {
  if (wire.path) return;
  drawWire(wire, drawn.groups.lines, drawn.groups.labels, drawn.groups.cards);
  showWire(wire, state.step);
}

function drawWire(wire, lines, labels, cards) {
  wire.path = element("path", { class: "wire", d: Layered.curve(wire) });
  lines.append(wire.path);
  const [[x, y], [, beyond]] = data.forward ? wire.points.slice(-2).reverse() : wire.points, side = beyond < y ? -6 : 13;
  const words = [state.edges && wire.count > 1 ? `${wire.index}` : "", wire.output ? `output ${wire.output}` : ""].filter(Boolean).join(", ");
  if (words) lines.append(element("text", { class: "small", x: x + 6, y: y + side }, words));
  wire.label = element("g", { class: "label", "pointer-events": "none" });
  labels.append(wire.label);
  if (wire.reference) cards.append((wire.chip = drawFar(wire)));
}

function farText(item) {
  if (item.kind === "chain" && item.chain.path) return `↑ ${short(item.chain.path, FAR_TEXT)}`;
  if (item.kind !== "node") return "↑ ⋮";
  const node = nodes[item.id], name = node.variable || node.label;
  return name ? `↑ ${short(name, FAR_TEXT)}` : `↑ ${node.name.split("Backward")[0]} #${item.id}`;
}

function drawFar(wire) {
  const item = drawn.items.get(wire.to), { x, y, width, height } = wire.reference;
  const name = item.kind === "chain" ? chainText(item.chain) : titleOf(nodes[item.id]);
  const chip = element("g", { class: "node far", role: "link", "aria-label": `reference to ${name}`, "data-to": wire.to });
  chip.append(
    element("rect", { class: "card", x: x - width / 2, y: y - height / 2, width, height, rx: 7 }),
    element("text", { class: "small", x, y: y + 4, "text-anchor": "middle" }, farText(item)),
    element("title", {}, `goes to ${name}`),
  );
  return chip;
}

function drawItem(item) {
  const { x, y, width, height } = item.box, left = x - width / 2, top = y - height / 2;
  const said = words(item);
  if (item.kind === "none") {
    return item.card = element("g", { class: "none" },
      element("rect", { class: "card", x: left, y: top, width, height, rx: 7 }),
      element("text", { class: "small", x, y: y + 4, "text-anchor": "middle" }, "None"),
      element("title", {}, "this input needs no gradient"));
  }
  const node = item.kind === "node" ? nodes[item.id] : null;
  const accent = item.kind === "chain" && item.chain.accent;
  const kind = accent ? "module" : !node ? "chain" : node.variable !== null || node.leaf ? "leaf" : said.name ? "named" : "";
  const card = element("g", { class: `node ${kind}`, "data-key": item.key, role: "button", tabindex: -1, "aria-label": spoken(item) });
  const title = element("text", { class: "title", x: left + PAD, y: top + 23 }, said.title);
  if (said.name) title.append(element("tspan", { class: "name", dx: 8 }, said.name));
  card.append(element("rect", { class: "card", x: left, y: top, width, height, rx: 9 }), title);
  if (accent) title.before(element("rect", { class: "accent", fill: accent, x: left + 5, y: top + 8, width: 3, height: height - 16, rx: 1.5 }));
  said.lines.forEach(([role, line], k) => {
    const text = element("text", { class: role === "detail" ? "small" : `small ${role}`, x: left + PAD, y: top + 41 + LINE * k }, line);
    if (role === "grad") item.grad = text;
    card.append(text);
  });
  if (foldable(item)) card.append(drawFold(item, x, upward(item.box) ? top : top + height));
  item.card = card;
  return card;
}

// Whether gradients leave a box at its upper edge: in every other column, and where all is read forward.
const upward = (box) => (box.column % 2 === 1) !== (Boolean(data.forward) && drawn.columns % 2 === 1);

const foldable = (item) => item.kind === "chain" || (item.kind === "node" && inputs[item.id].length > 0 && !roots.includes(item.id)) || (item.kind === "node" && closed(item.id));

function drawFold(item, x, y) {
  const shut = item.kind === "chain" || closed(item.id);
  const text = shut ? (item.below ? `+${item.below}` : "+") : "−";
  const sign = element("g", { class: "fold", "data-fold": item.key });
  if (!shut) sign.classList.add("open");
  const radius = Math.max(8, text.length * 3.6 + 3);
  sign.append(element("circle", { cx: x, cy: y, r: 8 }), element("text", { x, y: y + 4 }, text));
  if (text.length > 1) sign.firstChild.replaceWith(element("rect", { class: "pill", x: x - radius, y: y - 8, width: 2 * radius, height: 16, rx: 8, fill: "var(--card)", stroke: "var(--rim)" }));
  return sign;
}

function spoken(item) {
  if (item.kind === "chain") return `${item.chain.path ? "folded module" : "folded chain"}, ${chainText(item.chain)}`;
  const node = nodes[item.id];
  const to = node.next.map((edge) => (edge ? titleOf(nodes[edge[0]]) : "None"));
  return [
    titleOf(node), `shape ${node.shape}`, node.variable ? "" : node.source && `from ${node.source}`,
    to.length ? `inputs ${to.join(", ")}` : "leaf", closed(item.id) ? "folded" : "",
  ].filter(Boolean).join(", ");
}

// The page: draws what is unfolded, tells everything of a node, plays the backward pass.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { nodes, steps, roots } = data;
  const $ = (id) => document.getElementById(id);
  const SHORTEST_FOLD = 3, FOLD_ABOVE = 60, FAR_TEXT = 14, NONE_WIDTH = 46, EDGE_TEXT = 22, CULL_ABOVE = 300;
  const PAD = 14, LINE = 15;

  const state = {
    chains: nodes.length > FOLD_ABOVE, shared: false, depth: Infinity, folded: new Set(), opened: new Set(),
    selected: null, hovered: null, step: 0, shown: 0, timer: null, found: [], at: -1,
    scale: 1, x: 0, y: 0,
  };
  const drawn = { items: new Map(), owner: new Map(), wires: [], layers: [], width: 0, height: 0 };
  const graph = $("graph"), view = $("view"), panel = $("panel");

  // -- the graph -------------------------------------------------------------------------------
  const inputs = nodes.map((node) => node.next.filter(Boolean).map((edge) => edge[0]));
  const consumers = nodes.map(() => []);
  nodes.forEach((node, i) => inputs[i].forEach((j) => consumers[j].push(i)));
  const levels = breadthFirst();
  const chains = findChains();
  const chainOf = new Map();
  chains.forEach((chain, k) => chain.hidden.forEach((i) => chainOf.set(i, k)));
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
    const counts = new Map();
    for (const i of chain.hidden) counts.set(nodes[i].name, (counts.get(nodes[i].name) || 0) + 1);
    if (counts.size === 1) return `${chain.hidden.length} × ${nodes[chain.hidden[0]].name}`;
    const kinds = [...counts].slice(0, 3).map(([name, count]) => `${count} × ${name}`);
    return `${chain.hidden.length} nodes: ${kinds.join(", ")}${counts.size > 3 ? ", …" : ""}`;
  }

  // -- what is unfolded ------------------------------------------------------------------------
  const closed = (i) => inputs[i].length > 0 && (state.folded.has(i) || (levels[i] >= state.depth && !state.opened.has(i)));
  const keyOf = (i) => (state.chains && chainOf.has(i) && !chains[chainOf.get(i)].open ? `c${chainOf.get(i)}` : `n${i}`);

  function unfold() {
    const items = new Map(), wires = [], stack = roots.map((i) => `n${i}`).reverse(), referred = new Set();
    while (stack.length) {
      const key = stack.pop();
      if (items.has(key)) continue;
      const item = key[0] === "c" ? { key, kind: "chain", chain: chains[key.slice(1)], edges: [] } : { key, kind: "node", id: +key.slice(1), edges: [] };
      items.set(key, item);
      if (item.kind === "chain") item.edges.push({ target: `n${item.chain.tail}`, index: 0, output: 0, from: item.chain.hidden.at(-1), edge: -1 });
      else if (!closed(item.id)) {
        nodes[item.id].next.forEach((edge, index) => {
          const target = edge ? keyOf(edge[0]) : null;
          if (target && target[0] === "c" && item.edges.some((other) => other.target === target)) return;
          item.edges.push({ target, index, output: edge ? edge[1] : 0, from: item.id, edge: index });
        });
      }
      for (const edge of [...item.edges].reverse()) if (edge.target) stack.push(edge.target);
    }
    for (const item of items.values()) {
      const count = item.kind === "node" ? nodes[item.id].next.length : 1;
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

  // -- drawing ---------------------------------------------------------------------------------
  const pen = document.createElement("canvas").getContext("2d");
  const SANS = '13px ui-sans-serif, system-ui, "Segoe UI", Helvetica, Arial, sans-serif';
  const MONO = "11px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace";
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
    if (item.kind === "chain") return { title: `⋮ ${chainText(item.chain)}`, lines: data.grads ? [""] : [] };
    const node = nodes[item.id];
    const piece = node.variable ? "" : short(node.source || "", 34);
    const shape = node.plain_dtype ? node.shape : `${node.shape} ${node.dtype}`;
    const lines = [`${shape}${piece ? `  ${piece}` : ""}`];
    if (data.grads || node.value !== null) lines.push("");
    return { title: node.name, name: node.variable || node.label, lines };
  }

  function short(text, width) {
    if (text.length <= width) return text;
    const half = (width - 1) >> 1;
    return `${text.slice(0, half)}…${text.slice(text.length - half)}`;
  }

  // The last line: the value, and the gradient once it has come.
  function lastWidth(item) {
    if (item.kind === "none") return 0;
    const ids = item.kind === "chain" ? item.chain.hidden.slice(0, 50) : [item.id];
    return ids.reduce((most, i) => Math.max(most, measure(valueText(item, i) + (data.grads ? gradText(nodes[i].grad) : ""), MONO)), 0);
  }

  const valueText = (item, i) => (item.kind === "chain" || nodes[i].value === null ? "" : `= ${short(nodes[i].value, 24)}   `);
  const gradText = (grad) => `grad ${grad === null ? "None" : short(grad, 24)}`;

  function sizeOf(item) {
    if (item.kind === "none") return { width: NONE_WIDTH, height: 24 };
    const said = words(item);
    let width = measure(said.title, SANS, "600") + (said.name ? 9 + measure(said.name, SANS, "700") : 0);
    for (const line of said.lines) width = Math.max(width, measure(line, MONO));
    width = Math.max(width, lastWidth(item), 70);
    return { width: width + 2 * PAD, height: 22 + 18 + LINE * said.lines.length };
  }

  function draw() {
    const { items, wires } = unfold();
    const keys = [...items.keys()], at = new Map(keys.map((key, i) => [key, i]));
    const boxes = keys.map((key) => sizeOf(items.get(key)));
    for (const wire of wires) {
      [wire.source, wire.target] = [at.get(wire.from), at.get(wire.to)];
      wire.farWidth = measure(farText(items.get(wire.to)), MONO) + 18;
    }
    const found = Layered.layout(boxes, wires);
    keys.forEach((key, i) => (items.get(key).box = boxes[i]));
    Object.assign(drawn, { items, wires, owner: owners(items), width: found.width, height: found.height });
    drawn.layers = found.layers.map((layer) => layer.filter((i) => i < keys.length && keys[i][0] !== "x").map((i) => keys[i]));
    const lines = element("g"), cards = element("g"), labels = element("g");
    wires.forEach((wire) => drawWire(wire, lines, labels, cards));
    for (const item of items.values()) cards.append(drawItem(item));
    view.replaceChildren(lines, labels, cards);
    drawn.wiresOf = new Map();
    for (const wire of wires) {
      if (!drawn.wiresOf.has(wire.node)) drawn.wiresOf.set(wire.node, []);
      drawn.wiresOf.get(wire.node).push(wire);
    }
    cull();
    showStep(true);
    showLit();
    showFound();
    focusable();
  }

  function drawWire(wire, lines, labels, cards) {
    wire.path = element("path", { class: "wire", d: Layered.curve(wire.points) });
    lines.append(wire.path);
    const [x, y] = wire.points[0];
    if (wire.output) lines.append(element("text", { class: "small", x: x + 6, y: y + 13 }, `output ${wire.output}`));
    wire.label = element("g", { class: "label" });
    labels.append(wire.label);
    if (wire.end) cards.append((wire.chip = drawFar(wire)));
  }

  function farText(item) {
    if (item.kind !== "node") return "↑ ⋮";
    const node = nodes[item.id], name = node.variable || node.label;
    return name ? `↑ ${short(name, FAR_TEXT)}` : `↑ ${node.name.split("Backward")[0]} #${item.id}`;
  }

  function drawFar(wire) {
    const item = drawn.items.get(wire.to), { x, y, width, height } = wire.end;
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
    const kind = !node ? "chain" : node.variable !== null || node.leaf ? "leaf" : said.name ? "named" : "";
    const card = element("g", { class: `node ${kind}`, "data-key": item.key, role: "button", tabindex: -1, "aria-label": spoken(item) });
    const title = element("text", { class: "title", x: left + PAD, y: top + 23 }, said.title);
    if (said.name) title.append(element("tspan", { class: "name", dx: 8 }, said.name));
    card.append(element("rect", { class: "card", x: left, y: top, width, height, rx: 9 }), title);
    said.lines.forEach((line, k) => {
      const text = element("text", { class: "small", x: left + PAD, y: top + 41 + LINE * k }, line);
      if (line === "") {
        item.grad = element("tspan", { class: "grad" });
        text.append(node ? valueText(item, item.id) : "", item.grad);
      }
      card.append(text);
    });
    if (foldable(item)) card.append(drawFold(item, x, y + height / 2));
    item.card = card;
    return card;
  }

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
    if (item.kind === "chain") return `folded chain, ${chainText(item.chain)}`;
    const node = nodes[item.id];
    const to = node.next.map((edge) => (edge ? titleOf(nodes[edge[0]]) : "None"));
    return [
      titleOf(node), `shape ${node.shape}`, node.variable ? "" : node.source && `from ${node.source}`,
      to.length ? `inputs ${to.join(", ")}` : "leaf", closed(item.id) ? "folded" : "",
    ].filter(Boolean).join(", ");
  }

  // -- steps of the backward pass --------------------------------------------------------------
  // Marks what the steps up to now have done; after a drawing everything, otherwise what changed.
  function showStep(fresh = false) {
    const k = state.step, now = k ? steps[k - 1] : null, before = fresh ? 0 : state.shown;
    const touched = new Set(steps.slice(Math.min(k, before), Math.max(k, before)).map((step) => step.node));
    for (const at of [before, k]) if (at) touched.add(steps[at - 1].node);
    const keys = new Set([...touched].map((i) => drawn.owner.get(i)));
    const active = now ? drawn.owner.get(now.node) : null;
    for (const key of keys) showReached(drawn.items.get(key), k, key === active);
    for (const i of touched) {
      for (const wire of drawn.wiresOf.get(i) || []) {
        const flowed = turn.get(i) < k && wire.to[0] !== "x", current = Boolean(now) && i === now.node;
        wire.path.classList.toggle("flow", flowed);
        wire.path.classList.toggle("now", flowed && current);
        showFlow(wire, flowed && current && now.out ? now.out[wire.edge] : null);
      }
    }
    state.shown = k;
    $("steps").value = k;
    $("count").textContent = `${k} / ${steps.length}`;
    $("first").disabled = $("back").disabled = k === 0;
    $("next").disabled = k >= steps.length;
    $("story").replaceChildren(...story(now));
    if (active && !fresh) reveal(drawn.items.get(active).box);
    if (now && state.hovered === null && !fresh) showPanel(now.node);
  }

  function showReached(item, k, active) {
    if (!item?.card) return;
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
    // Labels of neighbouring edges stand at different heights.
    const along = wire.count < 2 ? 0.5 : 0.4 + 0.3 * (wire.index % 2);
    const [x1, y1] = wire.points[0], [x2, y2] = wire.points[1];
    const x = x1 + (x2 - x1) * along, y = y1 + (y2 - y1) * along;
    wire.label.append(
      element("rect", { x: x - width / 2, y: y - 9, width, height: 18, rx: 5 }),
      element("text", { class: "grad", x, y: y + 4, "text-anchor": "middle" }, said),
    );
  }

  function html(name, text, kind) {
    const made = document.createElement(name);
    if (kind) made.className = kind;
    made.append(text);
    return made;
  }

  function story(step) {
    if (!steps.length) return ["Nothing to run."];
    if (!step) return [`The backward pass has ${steps.length} steps. `, data.grads ? "" : "Gradients were not computed; this is the order."];
    const node = nodes[step.node], parts = [html("b", titleOf(node))];
    if (step.in) parts.push(" received ", html("span", step.in, node.bad ? "grad bad" : "grad"));
    if (node.variable !== null || node.leaf) parts.push(step.in ? ` and adds it to ${node.variable || "the leaf"}.grad` : ` adds to ${node.variable || "the leaf"}.grad`);
    else {
      const sent = node.next.map((edge, i) => (edge ? [step.out ? step.out[i] : null, nodes[edge[0]]] : null)).filter(Boolean);
      sent.forEach(([grad, to], i) => {
        parts.push(i ? ", " : step.in ? " and sends " : " sends its gradient ");
        if (grad) parts.push(html("span", grad, /nan|inf/.test(grad) ? "bad" : "grad"));
        parts.push(` to ${to.variable || to.label || to.name}`);
      });
    }
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

  // -- the panel -------------------------------------------------------------------------------
  function definition(list, term, value, kind) {
    if (value === null || value === undefined || value === "") return;
    list.append(html("dt", term), html("dd", value, kind));
  }

  function jump(i, text) {
    const item = document.createElement("li"), button = html("button", text);
    button.type = "button";
    button.addEventListener("click", () => visit(i));
    item.append(button);
    return item;
  }

  function showPanel(i) {
    if (i === null) return showOverview();
    const node = nodes[i], head = html("h2", node.name + " "), list = document.createElement("dl");
    head.className = node.leaf ? "leaf" : "";
    if (node.variable || node.label) head.append(html("b", node.variable || node.label));
    panel.replaceChildren(head);
    if (node.source) panel.append(html("code", node.source, "piece"));
    definition(list, "shape", node.shape);
    definition(list, "dtype", node.dtype);
    definition(list, "value", node.value, "mono");
    if (data.grads) definition(list, "gradient", node.grad === null ? "None" : node.grad, node.bad ? "mono bad" : "mono grad");
    definition(list, "step", turn.has(i) ? `${turn.get(i) + 1} of ${steps.length}` : null);
    definition(list, "sequence", node.leaf ? null : node.sequence);
    definition(list, "number", `#${i}`);
    panel.append(list);
    showSaved(node);
    showInputs(node);
    if (consumers[i].length) {
      const users = document.createElement("ul");
      for (const j of new Set(consumers[i])) users.append(jump(j, titleOf(nodes[j])));
      panel.append(html("h3", "consumed by"), users);
    }
    showSource(node.span);
  }

  function showSaved(node) {
    if (!node.saved.length) return;
    const list = document.createElement("dl");
    list.className = "saved";
    for (const { field, variable, text, detail } of node.saved) {
      const value = html("dd", "");
      if (variable) value.append(html("b", variable), " = ");
      value.append(html("span", text, "mono kept"));
      if (detail) value.append(" ", html("small", detail));
      list.append(html("dt", field), value);
    }
    panel.append(html("h3", "saved for backward"), list);
  }

  function showInputs(node) {
    if (!node.next.length) return;
    const list = document.createElement("ol");
    node.next.forEach((edge, k) => {
      const item = edge ? jump(edge[0], `${titleOf(nodes[edge[0]])}${edge[1] ? `, output ${edge[1]}` : ""}`) : html("li", "None");
      if (!edge) item.append(html("small", " needs no gradient"));
      if (node.rules[k]) item.append(html("small", ` ← ${node.rules[k]}`));
      list.append(item);
    });
    panel.append(html("h3", "gradients go to"), list);
  }

  function showOverview() {
    panel.replaceChildren(html("h2", "Backward graph"), html("p", data.totals));
    const keys = document.createElement("ul");
    const samples = [["", "a step of the backward pass"], ["named", "the program gave its result a name"], ["leaf", "a leaf: gradients accumulate here"], ["far", "None, a reference, or a folded chain"], ["active", "the step that runs now"]];
    for (const [kind, meaning] of samples) {
      const item = html("li", html("span", "", `sample ${kind}`));
      item.append(meaning);
      keys.append(item);
    }
    panel.append(keys, html("h3", "leaves"));
    const leaves = document.createElement("ul");
    nodes.forEach((node, i) => node.leaf && leaves.childElementCount < 200 && leaves.append(jump(i, node.variable || `#${i}`)));
    panel.append(leaves);
    showSource(null);
  }

  function showSource(span) {
    const text = data.source || "", box = $("source"), room = 1500;
    box.hidden = !text;
    if (!span) return box.replaceChildren(short(text, 2 * room));
    const [start, end] = span, mark = html("mark", short(text.slice(start, end), 2 * room));
    const before = text.slice(Math.max(0, start - room), start), after = text.slice(end, end + room);
    box.replaceChildren(start > room ? `…${before}` : before, mark, end + room < text.length ? `${after}…` : after);
    if (mark.offsetLeft < box.scrollLeft || mark.offsetLeft + mark.offsetWidth > box.scrollLeft + box.clientWidth) box.scrollLeft = mark.offsetLeft - 60;
  }

  // -- selecting, finding, folding -------------------------------------------------------------
  const itemAt = (target) => target.closest("[data-key]")?.dataset.key ?? null;
  const idOf = (key) => (key === null ? null : key[0] === "n" ? +key.slice(1) : chains[key.slice(1)].hidden[0]);

  function showLit() {
    const key = state.hovered ?? state.selected;
    for (const wire of drawn.wires) wire.path.classList.toggle("lit", key !== null && (wire.from === key || wire.to === key));
    for (const item of drawn.items.values()) item.card?.classList.toggle("selected", item.key === state.selected);
  }

  function select(key, { focus = false, center = false } = {}) {
    state.selected = key;
    showLit();
    showPanel(idOf(key));
    focusable();
    const item = key === null ? null : drawn.items.get(key);
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

  function find() {
    const text = $("find").value.trim().toLowerCase(), number = /^#?(\d+)$/.exec(text);
    const hit = (node, i) => (number && +number[1] === i) || [node.name, node.variable, node.label].some((name) => name && name.toLowerCase().includes(text)) || (text.length > 1 && node.source && !node.leaf && node.source.toLowerCase().includes(text));
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

  // -- moving about ----------------------------------------------------------------------------
  // Asking the browser for a size makes it lay everything out: once, not at every step.
  const frame = { width: 0, height: 0 };
  function measureFrame() {
    Object.assign(frame, { width: graph.clientWidth, height: graph.clientHeight });
  }

  function move(x, y, scale = state.scale) {
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
    for (const item of drawn.items.values()) hide(item.card, !shown(item.box));
    for (const wire of drawn.wires) {
      const [first, last] = [wire.points[0], wire.points[wire.points.length - 1]];
      hide(wire.path, last[1] < top || first[1] > bottom);
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
    const scale = always ? Math.max(state.scale, 0.7) : state.scale;
    move(frame.width / 2 - x * scale, frame.height / 2 - y * scale, scale);
  }

  function neighbour(key, direction) {
    const item = drawn.items.get(key);
    if (direction === "down") return drawn.wires.find((wire) => wire.from === key && wire.to[0] !== "x")?.to;
    if (direction === "up") return drawn.wires.find((wire) => wire.to === key)?.from;
    const layer = drawn.layers[item.box.layer], at = layer.indexOf(key);
    return layer[at + (direction === "left" ? -1 : 1)];
  }

  // -- events ----------------------------------------------------------------------------------
  function pointers() {
    let drag = null;
    graph.addEventListener("pointerdown", (event) => {
      if (event.button === 0) drag = { x: event.clientX - state.x, y: event.clientY - state.y, moved: false, id: event.pointerId };
    });
    graph.addEventListener("pointermove", (event) => {
      if (!drag) return;
      const x = event.clientX - drag.x, y = event.clientY - drag.y;
      if (!drag.moved && Math.hypot(x - state.x, y - state.y) < 4) return;
      if (!drag.moved) graph.setPointerCapture(drag.id);
      drag.moved = true;
      graph.classList.add("dragging");
      move(x, y);
    });
    const end = () => {
      // A click follows a drag at once; it must not select anything.
      if (drag?.moved) addEventListener("click", (event) => event.stopPropagation(), { capture: true, once: true });
      drag = null;
      graph.classList.remove("dragging");
    };
    graph.addEventListener("pointerup", end);
    graph.addEventListener("pointercancel", end);
    graph.addEventListener("wheel", (event) => {
      event.preventDefault();
      const at = graph.getBoundingClientRect(), unit = event.deltaMode ? 16 : 1;
      if (event.ctrlKey || event.metaKey) zoom(Math.exp(-event.deltaY * unit * 0.004), event.clientX - at.left, event.clientY - at.top);
      else move(state.x - event.deltaX * unit, state.y - event.deltaY * unit);
    }, { passive: false });
    graph.addEventListener("click", (event) => {
      const fold = event.target.closest("[data-fold]"), far = event.target.closest("[data-to]");
      if (fold) toggle(fold.dataset.fold);
      else if (far) select(far.dataset.to, { focus: true, center: true });
      else select(itemAt(event.target), { focus: true });
    });
    graph.addEventListener("dblclick", (event) => toggle(itemAt(event.target)));
    graph.addEventListener("pointerover", (event) => {
      if (drag) return;
      const key = itemAt(event.target);
      if (key === state.hovered) return;
      state.hovered = key;
      showLit();
      showPanel(idOf(key ?? state.selected ?? (state.step ? drawn.owner.get(steps[state.step - 1].node) : null)));
    });
    graph.addEventListener("pointerleave", () => {
      state.hovered = null;
      showLit();
      showPanel(idOf(state.selected));
    });
    graph.addEventListener("focusin", (event) => {
      const key = itemAt(event.target);
      if (key && key !== state.selected) select(key);
    });
  }

  function press(name) {
    state[name] = !state[name];
    if (name === "chains" && state.chains) chains.forEach((chain) => (chain.open = false));
    $(name).setAttribute("aria-pressed", state[name]);
    draw();
    fit(0.35);
  }

  function unfoldAll() {
    state.folded.clear();
    state.depth = Infinity;
    $("depth").value = "";
    state.chains = state.shared = false;
    for (const name of ["chains", "shared"]) $(name).setAttribute("aria-pressed", "false");
    draw();
    fit(0.35);
  }

  function theme() {
    const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    document.documentElement.dataset.theme = dark ? "light" : "dark";
  }

  const keys = {
    n: () => go(state.step + 1), b: () => go(state.step - 1), p: play, t: () => $("text").showModal(),
    "?": () => $("help").showModal(), "/": () => $("find").focus(), c: () => press("chains"), s: () => press("shared"),
    u: unfoldAll, "+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(0.8), 0: () => fit(),
    f: () => toggle(state.selected), Escape: () => select(null),
    ArrowDown: "down", ArrowUp: "up", ArrowLeft: "left", ArrowRight: "right",
  };

  function keyboard() {
    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
      const typing = event.target.matches("input, select, textarea"), action = keys[event.key];
      if (typing) {
        if (event.key === "Escape") event.target.blur();
        return;
      }
      if (typeof action === "string") {
        const key = state.selected ?? (roots.length ? keyOf(roots[0]) : null);
        const to = state.selected === null ? key : neighbour(key, action);
        if (to) select(to, { focus: true, center: true });
      } else if (action) action();
      else return;
      event.preventDefault();
    });
    graph.addEventListener("keydown", (event) => {
      const key = itemAt(event.target);
      if ((event.key === "Enter" || event.key === " ") && key) {
        event.preventDefault();
        if (key[0] === "c") toggle(key);
        else select(key);
      }
    });
  }

  function controls() {
    const on = (id, action, event = "click") => $(id).addEventListener(event, action);
    on("zoom-in", () => zoom(1.25));
    on("zoom-out", () => zoom(0.8));
    on("fit", () => fit());
    on("chains", () => press("chains"));
    on("shared", () => press("shared"));
    on("unfold", unfoldAll);
    on("depth", () => {
      state.depth = $("depth").value === "" ? Infinity : +$("depth").value;
      state.opened.clear();
      draw();
      fit(0.35);
    }, "input");
    on("theme", theme);
    on("text-view", () => $("text").showModal());
    on("help-view", () => $("help").showModal());
    on("first", () => go(0));
    on("back", () => go(state.step - 1));
    on("next", () => go(state.step + 1));
    on("play", play);
    on("steps", () => go(+$("steps").value), "input");
    on("speed", () => state.timer && (pause(), play()), "change");
    on("find", find, "input");
    on("finder", (event) => {
      event.preventDefault();
      findNext(1);
    }, "submit");
    new ResizeObserver(() => {
      measureFrame();
      fit(0.5);
    }).observe(graph);
  }

  $("tree").textContent = data.text;
  $("steps").max = steps.length;
  $("chains").setAttribute("aria-pressed", state.chains);
  $("chains").disabled = !chains.length;
  $("empty").hidden = nodes.length > 0;
  $("player").hidden = !steps.length;
  pointers();
  keyboard();
  controls();
  measureFrame();
  draw();
  fit(0.5);
  showOverview();
})();

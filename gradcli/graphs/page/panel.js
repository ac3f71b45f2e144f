// The panel: everything of a node, or what the graph amounts to.
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
  definition(list, "device", node.device);
  definition(list, "value", node.value_all ?? node.value, node.odd ? "mono all bad" : "mono all");
  definition(list, "", node.value_range, "range");
  const came = turn.has(i) && turn.get(i) < state.step;
  if (data.grads && came) definition(list, "gradient", node.grad === null ? "None" : node.grad_all ?? node.grad, node.bad ? "mono all bad" : "mono all grad");
  if (data.grads && came) definition(list, "", node.grad_range, "range");
  if (data.grads && !came && turn.has(i)) definition(list, "gradient", `comes in step ${turn.get(i) + 1}`, "range");
  definition(list, "module", node.module);
  definition(list, "line", node.place);
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
    value.append(html("span", text, "mono all kept"));
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
  panel.replaceChildren(html("h2", data.forward ? "Forward graph" : "Backward graph"), html("p", data.totals));
  let heading = "";
  for (const { text, place, code, advice, fault } of data.diagnosis) {
    const kind = fault ? "what is wrong" : "worth knowing";
    if (kind !== heading) panel.append(html("h3", (heading = kind)));
    panel.append(html("p", `${place ? `${place}  ` : ""}${text}`, fault ? "bad" : ""));
    if (code) panel.append(html("code", code, "piece"));
    if (advice) panel.append(html("p", advice));
  }
  const keys = document.createElement("ul");
  const samples = [["", data.forward ? "an operation" : "a step of the backward pass"], ["named", "the program gave its result a name"], ["leaf", data.forward ? "an input: a leaf, or a constant without a gradient" : "a leaf: gradients accumulate here"], ["far", "None, a reference, or a folded chain"], ["active", "the step that runs now"]];
  if (data.groups) samples.push(["module", "a module; the colour says of which kind"]);
  for (const [kind, meaning] of samples) {
    const item = html("li", html("span", "", `sample ${kind}`));
    item.append(meaning);
    keys.append(item);
  }
  panel.append(keys, html("h3", data.forward ? "inputs" : "leaves"));
  const leaves = document.createElement("ul");
  nodes.forEach((node, i) => node.leaf && leaves.childElementCount < 200 && leaves.append(jump(i, node.variable || node.label || `#${i}`)));
  panel.append(leaves);
  showSource(null);
}

function showSource(span) {
  const text = data.source || data.program || "", box = $("source"), room = 1500;
  box.hidden = !text;
  $("source-view").hidden = !text.trim().includes("\n");
  if (!span || !data.source) return box.replaceChildren(short(text, 2 * room));
  const [start, end] = span, mark = html("mark", short(text.slice(start, end), 2 * room));
  const before = text.slice(Math.max(0, start - room), start), after = text.slice(end, end + room);
  box.replaceChildren(start > room ? `…${before}` : before, mark, end + room < text.length ? `${after}…` : after);
  if (mark.offsetLeft < box.scrollLeft || mark.offsetLeft + mark.offsetWidth > box.scrollLeft + box.clientWidth) box.scrollLeft = mark.offsetLeft - 60;
}

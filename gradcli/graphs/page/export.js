// What is drawn, as an SVG file that needs no style sheet.
const PAINTED = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-family", "font-size", "font-weight", "text-anchor"];

function pictureOf() {
  makeAll();
  const margin = 24, width = drawn.width + 2 * margin, height = drawn.height + 2 * margin;
  const made = element("svg", { xmlns: "http://www.w3.org/2000/svg", width, height, viewBox: `${-margin} ${-margin} ${width} ${height}` });
  const paper = getComputedStyle(document.body).backgroundColor;
  made.append(graph.querySelector("defs").cloneNode(true), element("rect", { x: -margin, y: -margin, width, height, fill: paper }));
  const known = new Map();
  const copy = (from) => {
    if (from.nodeType === 3) return document.createTextNode(from.data);
    if (from.tagName === "title" || from.classList.contains("fold")) return null;
    const to = element(from.tagName);
    for (const { name, value } of from.attributes) if (!["class", "style", "tabindex", "role"].includes(name) && !name.startsWith("data-") && !name.startsWith("aria-")) to.setAttribute(name, value);
    if (from.tagName !== "g") {
      const kind = `${from.tagName} ${from.getAttribute("class")} ${from.getAttribute("fill")} in ${from.parentNode.getAttribute("class")} of ${from.parentNode.parentNode.getAttribute("class")}`;
      if (!known.has(kind)) {
        const style = getComputedStyle(from);
        known.set(kind, PAINTED.map((name) => [name, style.getPropertyValue(name)]).filter(([, value]) => value && value !== "none" || value === "none").map(([name, value]) => [name, value.replaceAll('"', "'")]));
      }
      for (const [name, value] of known.get(kind)) if (!(name === "stroke-dasharray" && value === "none")) to.setAttribute(name, value);
      if (from.tagName === "path") to.setAttribute("marker-end", getComputedStyle(from).getPropertyValue("marker-end").replaceAll('"', ""));
      if (from.tagName === "text") to.setAttribute("xml:space", "preserve");
    }
    for (const child of from.childNodes) {
      const inner = copy(child);
      if (inner) to.append(inner);
    }
    return to;
  };
  for (const tip of made.querySelectorAll("marker path")) tip.setAttribute("fill", getComputedStyle(graph.querySelector(`#${tip.parentNode.id} path`)).fill);
  for (const group of [drawn.groups.lines, drawn.groups.cards, drawn.groups.labels]) made.append(copy(group));
  return new XMLSerializer().serializeToString(made);
}

function exportView() {
  const hidden = [...view.querySelectorAll('[style*="none"]')];
  for (const one of hidden) one.style.display = "";
  const link = document.createElement("a"), address = URL.createObjectURL(new Blob([pictureOf()], { type: "image/svg+xml" }));
  for (const one of hidden) one.style.display = "none";
  Object.assign(link, { href: address, download: "graph.svg" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

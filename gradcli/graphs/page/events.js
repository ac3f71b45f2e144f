// Pointers, keys, controls.
function pointers() {
  const down = new Map();
  let drag = null, pinch = null;
  graph.addEventListener("pointerdown", (event) => {
    down.set(event.pointerId, event);
    if (down.size === 2) {
      pinch = spread(down);
      drag = null;
      for (const id of down.keys()) graph.setPointerCapture(id);
    } else if (event.button === 0) drag = { x: event.clientX - state.x, y: event.clientY - state.y, moved: false, id: event.pointerId };
  });
  graph.addEventListener("pointermove", (event) => {
    if (down.has(event.pointerId)) down.set(event.pointerId, event);
    if (pinch && down.size === 2) {
      const now = spread(down);
      move(state.x + now.x - pinch.x, state.y + now.y - pinch.y);
      zoom(now.apart / pinch.apart, now.x, now.y);
      pinch = now;
      return;
    }
    if (!drag) return;
    const x = event.clientX - drag.x, y = event.clientY - drag.y;
    if (!drag.moved && Math.hypot(x - state.x, y - state.y) < 4) return;
    if (!drag.moved) graph.setPointerCapture(drag.id);
    drag.moved = true;
    graph.classList.add("dragging");
    move(x, y);
  });
  const end = (event) => {
    down.delete(event.pointerId);
    // A click follows a drag at once; it must not select anything.
    if (drag?.moved || pinch) {
      const swallow = (click) => click.stopPropagation();
      addEventListener("click", swallow, { capture: true, once: true });
      setTimeout(() => removeEventListener("click", swallow, { capture: true }), 50);
    }
    drag = pinch = null;
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

// Where two fingers are: their middle, in the window of the graph, and how far apart.
function spread(down) {
  const [a, b] = [...down.values()], at = graph.getBoundingClientRect();
  const [x, y] = [(a.clientX + b.clientX) / 2 - at.left, (a.clientY + b.clientY) / 2 - at.top];
  return { x, y, apart: Math.max(1, Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY)) };
}

function press(name) {
  state[name] = !state[name];
  if (name === "chains" && state.chains) chains.forEach((chain) => (chain.open = Boolean(chain.begins)));
  $(name).setAttribute("aria-pressed", state[name]);
  draw();
  fit(READABLE);
}

function unfoldAll() {
  state.folded.clear();
  state.depth = Infinity;
  $("depth").value = "";
  state.chains = state.shared = false;
  for (const name of ["chains", "shared"]) $(name).setAttribute("aria-pressed", "false");
  draw();
  fit(READABLE);
}

function theme() {
  const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  showMap();
}

const keys = {
  n: () => go(state.step + 1), b: () => go(state.step - 1), p: play, " ": play, t: () => $("text").showModal(),
  "?": () => $("help").showModal(), "/": () => $("find").focus(), c: () => press("chains"), s: () => press("shared"), e: () => press("edges"), x: exportView, Home: () => go(0), End: () => go(steps.length),
  u: unfoldAll, "+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(0.8), 0: () => fit(),
  f: () => toggle(state.selected), Escape: () => select(null),
  ArrowDown: "down", ArrowUp: "up", ArrowLeft: "left", ArrowRight: "right",
};

function keyboard() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    // A button that has the focus is pressed by Space; from anywhere else it plays.
    const space = event.key === " ", slider = event.target.matches('input[type="range"]'), action = keys[event.key];
    const typing = event.target.matches("input, select, textarea") && !(space && slider);
    if (space && event.target.matches("button")) return;
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
    if (event.key === "Enter" && key) {
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
  on("edges", () => press("edges"));
  on("export", exportView);
  addEventListener("hashchange", linked);
  on("unfold", unfoldAll);
  on("depth", () => {
    state.depth = $("depth").value === "" ? Infinity : +$("depth").value;
    state.opened.clear();
    draw();
    fit(READABLE);
  }, "input");
  on("theme", theme);
  on("map", moveByMap, "pointerdown");
  on("map", moveByMap, "pointermove");
  on("source-view", () => {
    const open = $("source").classList.toggle("open");
    Object.assign($("source-view"), { ariaExpanded: open, textContent: open ? "Fold program" : "Show program" });
  });
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
    fit(READABLE);
  }).observe(graph);
}

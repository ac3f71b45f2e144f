// What the page shows: the data, and the state that everything else reads.
const data = JSON.parse(document.getElementById("data").textContent);
const { nodes, steps, roots } = data;
nodes.forEach((node, i) => (node.groups = data.grouped ? data.grouped[i] : []));
const $ = (id) => document.getElementById(id);
const SHORTEST_FOLD = 3, FOLD_ABOVE = 60, FAR_TEXT = 14, NONE_WIDTH = 46, EDGE_TEXT = 56, CULL_ABOVE = 300, MAP_ABOVE = 100, READABLE = 1;
const PAD = 14, LINE = 15;

const state = {
  chains: data.groups ? data.by_module : data.collapse ?? nodes.length > FOLD_ABOVE, shared: false, edges: data.edges, depth: data.depth ?? Infinity, folded: new Set(), opened: new Set(),
  selected: null, hovered: null, step: 0, shown: 0, timer: null, found: [], at: -1,
  scale: 1, x: 0, y: 0,
};
const drawn = { items: new Map(), owner: new Map(), wires: [], layers: [], groups: {}, map: {}, width: 0, height: 0 };
const graph = $("graph"), view = $("view"), panel = $("panel");

// All is there: begin.
$("tree").textContent = data.text;
$("steps").max = steps.length;
$("chains").setAttribute("aria-pressed", state.chains);
$("edges").setAttribute("aria-pressed", state.edges);
$("depth").value = data.depth ?? "";
$("chains").disabled = !chains.length;
$("empty").hidden = nodes.length > 0;
$("player").hidden = !steps.length;
if (data.theme) document.documentElement.dataset.theme = data.theme;
pointers();
keyboard();
controls();
measureFrame();
draw();
fit(0.5);
showOverview();
linked();
document.documentElement.dataset.ready = performance.now().toFixed(0);

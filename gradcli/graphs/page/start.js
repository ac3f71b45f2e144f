// All is there: begin.
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

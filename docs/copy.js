// The Copy button of a console block copies its commands: no prompts, no output.
document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-clipboard-target]");
  const code = button && document.querySelector(button.dataset.clipboardTarget);
  if (!code || !code.querySelector(".gp")) return;
  event.stopImmediatePropagation();
  const copy = code.cloneNode(true);
  copy.querySelectorAll(".gp, .go").forEach((part) => part.remove());
  navigator.clipboard.writeText(copy.textContent.replace(/\n{2,}/g, "\n").trim());
}, true);

"""The programs that read what gradcli writes, and what is right of what they make of it.

A reader is a function of a text and a folder that returns None where all is right, or what is wrong.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from tests.graphs.png import read_png

Read = Callable[[str, Path], str | None]
PATIENCE = 120  # seconds of one processor; ten times as many on a clock, for a busy machine


class Reader(NamedTuple):
    """A program: its name, what it reads, and how it is asked; by: what has to be installed."""

    name: str
    reads: str
    read: Read
    by: tuple[str, ...]

    @property
    def installed(self) -> bool:
        """Whether it can be asked here."""
        return all(shutil.which(one) or _modules(one) for one in self.by)


def _modules(name: str) -> bool:
    """Whether a package of npm is in $NODE_PATH, or one of Python's is installed."""
    from importlib.util import find_spec

    if name.startswith("npm:"):
        return any(
            (Path(p) / name[4:]).exists() for p in os.environ.get("NODE_PATH", "").split(":")
        )
    return name.startswith("py:") and find_spec(name[3:]) is not None


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (PATIENCE, PATIENCE))


def _ran(*line: str | Path, cwd: Path, given: str | None = None) -> str | None:
    """None if a program ends well and says nothing of errors, else what it says."""
    try:
        done = subprocess.run(
            line, cwd=cwd, input=given, capture_output=True, text=True, timeout=10 * PATIENCE,
            errors="replace", preexec_fn=_limit,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"not done in {10 * PATIENCE} s"
    if done.returncode in (-signal.SIGKILL, -signal.SIGXCPU):
        return f"not done in {PATIENCE} s"
    if done.returncode == 0:
        return None
    said = [one for one in (done.stderr + done.stdout).splitlines() if one.strip()]
    errors = [one for one in said if one.startswith("!") or "rror" in one]
    return " ".join((errors or said or [f"exit {done.returncode}"])[:2])[:200]


def _graphviz(text: str, folder: Path) -> str | None:
    (folder / "g.dot").write_text(text, encoding="utf-8")
    if said := _ran("dot", "-Tsvg", "g.dot", "-o", "g.svg", cwd=folder):
        return said
    drawn = (folder / "g.svg").read_text(encoding="utf-8")
    return _alike("edges", text.count(" -> "), drawn.count('class="edge"'))


def _alike(what: str, wanted: int, found: int) -> str | None:
    return None if wanted == found else f"{found} of {wanted} {what}"


def _painted(convert: Callable[[Path], tuple[str | Path, ...]]) -> Read:
    """A renderer of SVG, which makes g.png of g.svg, 500 pixels wide.

    The whole picture is light. What is seen of it at its own width, around one of its cards, is light
    paper and cards, and dark ink.
    """

    def read(text: str, folder: Path) -> str | None:
        whole = _looked_at(text, folder, convert, 0.0)
        if whole:
            return whole
        said = _looked_at(_window(text), folder, convert, 0.002)
        return said and f"at its own width: {said}"

    return read


def _looked_at(
    text: str, folder: Path, convert: Callable[[Path], tuple[str | Path, ...]], ink: float
) -> str | None:
    """What is wrong of the picture; ink: the share of its pixels that is dark at least."""
    (folder / "g.svg").write_text(text, encoding="utf-8")
    if said := _ran(*convert(folder), cwd=folder):
        return said
    _, _, pixels = read_png((folder / "g.png").read_bytes())
    light = sum(min(p[:3]) > 225 for p in pixels) / len(pixels)
    dark = sum(max(p[:3]) < 110 for p in pixels) / len(pixels)
    return None if light > 0.5 and ink <= dark < 0.3 else f"light {light:.0%}, dark {dark:.3%}"


def _window(text: str) -> str:
    """The picture, cut to 500 by 300 units around the card in the middle of its list."""
    cards = re.findall(r'<rect class="gc-card[^>]* x="([\d.]+)" y="([\d.]+)"', text)
    x, y = (float(one) for one in cards[len(cards) // 2])
    left, top = round(x - 170), round(y - 120)
    seen = f'width="500" height="300" viewBox="{left} {top} 500 300"'
    cut = re.sub(r'width="\d+" height="\d+" viewBox="[^"]*"', seen, text, count=1)
    paper = r'(<rect class="gc-paper"[^>]*) x="[-\d]+" y="[-\d]+"'
    return re.sub(paper, rf'\1 x="{left}" y="{top}"', cut, count=1)


_CAIRO = "import cairosvg; cairosvg.svg2png(url='g.svg', write_to='g.png', output_width=500)"


_OFFICE = "soffice -env:UserInstallation=file://$PWD/office --headless --convert-to png --outdir made g.svg"


def _office(text: str, folder: Path) -> str | None:
    line = f"{_OFFICE} && convert made/g.png -resize 500 -depth 8 PNG24:g.png"
    return _painted(lambda f: ("sh", "-c", line))(text, folder)


def _tex(program: str) -> Read:
    def read(text: str, folder: Path) -> str | None:
        (folder / "g.tikz").write_text(text, encoding="utf-8")
        (folder / "g.tex").write_text(
            "\\documentclass{standalone}\\usepackage{tikz}\\usepackage[T1]{fontenc}"
            "\\usepackage{textcomp}\\begin{document}\\input{g.tikz}\\end{document}\n"
        )
        return _ran(program, "-interaction=nonstopmode", "-halt-on-error", "g.tex", cwd=folder)

    return read


def _formula_in_tex(text: str, folder: Path) -> str | None:
    rows = "\n".join(f"\\[{line}\\]" for line in text.splitlines())
    (folder / "f.tex").write_text(
        "\\documentclass{article}\\usepackage[T1]{fontenc}\\usepackage{amsmath}"
        f"\\begin{{document}}\n{rows}\n\\end{{document}}\n",
        encoding="utf-8",
    )
    return _ran("pdflatex", "-interaction=nonstopmode", "-halt-on-error", "f.tex", cwd=folder)


_KATEX = (
    "const k = require('katex'), t = JSON.parse(require('fs').readFileSync(0, 'utf8'));"
    "for (const line of t) k.renderToString(line, {displayMode: true, strict: 'error'});"
)


def _katex(text: str, folder: Path) -> str | None:
    return _ran("node", "-e", _KATEX, cwd=folder, given=json.dumps(text.splitlines()))


_MERMAID = """<html><body><script src="file://{script}"></script><pre id="said"></pre><script>
mermaid.initialize({{startOnLoad: false}});
mermaid.render("g", {text}).then(
  made => {{ const d = new DOMParser().parseFromString(made.svg, "text/html");
    document.getElementById("said").textContent = "edges=" +
      d.querySelectorAll(".edgePaths path.flowchart-link, .edges path.flowchart-link").length +
      (made.svg.includes("Maximum text size") ? " too long" : ""); }},
  error => document.getElementById("said").textContent = "refused: " + error.message);
</script></body></html>"""


def _mermaid(text: str, folder: Path) -> str | None:
    roots = [Path(p) for p in os.environ.get("NODE_PATH", "").split(":")]
    script = next(r for r in roots if (r / "mermaid").exists()) / "mermaid/dist/mermaid.min.js"
    page = folder / "g.html"
    page.write_text(_MERMAID.format(script=script, text=json.dumps(text)), encoding="utf-8")
    done = subprocess.run(
        [*_BROWSER, "--virtual-time-budget=90000", "--dump-dom", f"file://{page}"],
        capture_output=True, text=True, timeout=10 * PATIENCE,
    )  # fmt: skip
    found = re.search(r'<pre id="said">(.*?)</pre>', done.stdout, re.S)
    said = found[1] if found else "no answer"
    wanted = len(re.findall(r"^  \w+ -[-.]+>", text, re.M))
    return None if said == f"edges={wanted}" else f"{said[:120]} of {wanted} edges"


_BROWSER = (
    "chromium",
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--allow-file-access-from-files",
)


def _page(text: str, folder: Path) -> str | None:
    (folder / "g.html").write_text(text, encoding="utf-8")
    done = subprocess.run(
        [*_BROWSER, "--virtual-time-budget=20000", "--dump-dom", f"file://{folder}/g.html"],
        capture_output=True, text=True, timeout=10 * PATIENCE,
    )  # fmt: skip
    return None if done.stdout.count("<rect") > 4 else "no picture in the page"


def _compiled(compiler: str, flags: str) -> Read:
    def read(text: str, folder: Path) -> str | None:
        (folder / "f.c").write_text(text, encoding="utf-8")
        return _ran(compiler, *flags.split(), "-c", "f.c", "-o", "f.o", cwd=folder)

    return read


def _python(text: str, folder: Path) -> str | None:
    (folder / "f.py").write_text(text, encoding="utf-8")
    return _ran(sys.executable, "f.py", cwd=folder)


def _xml(text: str, folder: Path) -> str | None:
    try:
        ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        return str(error)
    return None


def _called(*line: str) -> Read:
    return _painted(lambda folder: line)


_RSVG = _called("rsvg-convert", "-w", "500", "g.svg", "-o", "g.png")
_INKSCAPE = _called("inkscape", "-w", "500", "g.svg", "-o", "g.png")
_STRICT = "-Wall -Wextra -pedantic -Werror"
_C99, _CPP = f"-std=c99 {_STRICT}", f"-x c++ -std=c++17 {_STRICT}"
READERS = (
    Reader("Graphviz", "dot", _graphviz, ("dot",)),
    Reader("Mermaid in Chromium", "mermaid", _mermaid, ("chromium", "npm:mermaid")),
    Reader("an XML parser", "svg", _xml, ()),
    Reader("rsvg-convert", "svg", _RSVG, ("rsvg-convert",)),
    Reader("CairoSVG", "svg", _called(sys.executable, "-c", _CAIRO), ("py:cairosvg",)),
    Reader("Inkscape", "svg", _INKSCAPE, ("inkscape",)),
    Reader("LibreOffice", "svg", _office, ("soffice", "convert")),
    Reader("Chromium", "html", _page, ("chromium",)),
    Reader("pdflatex", "tikz", _tex("pdflatex"), ("pdflatex",)),
    Reader("lualatex", "tikz", _tex("lualatex"), ("lualatex",)),
    Reader("KaTeX", "latex", _katex, ("node", "npm:katex")),
    Reader("pdflatex", "latex", _formula_in_tex, ("pdflatex",)),
    *(Reader(one, "c", _compiled(one, _C99), (one,)) for one in ("gcc", "clang", "musl-gcc")),
    *(Reader(one, "c", _compiled(one, _CPP), (one,)) for one in ("g++", "clang++")),
    Reader("tcc", "c", _compiled("tcc", "-Wall -Werror"), ("tcc",)),
    *(Reader("Python", form, _python, ()) for form in ("numpy", "python")),
)

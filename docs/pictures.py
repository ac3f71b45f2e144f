"""Pictures of what people see: a session in a terminal (SVG, by rich), and a notebook (PNG, by Chromium).

`docs/generate.py --plots` writes them, where pyte, latex2mathml and Chromium are installed.
"""

from __future__ import annotations

import html
import io
import json
import re
import shutil
import subprocess
import tempfile
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.style import Style
from rich.text import Text

ROOT = Path(__file__).parent.parent
COLOURS = {"brown": "yellow", "brightblack": "bright_black"}  # as pyte calls them, and rich
SESSION = [
    ("def twice(x):\r", "..."),
    ("return 2*x.sin()  # of 'x'\r\r", ">>> "),
    ("x = tensor([1., 2.], requires_grad=True)\r", ">>> "),
    ("loss = (twice(x)**2).sum()\r", ">>> "),
    ("vars\rgrad loss\r", "x.grad"),
    ("graph loss\r", "AccumulateGrad"),
    ("logsumexp(", "keepdim=False"),
]


def session(width: int = 84) -> str:
    """A session that somebody types, as SVG."""
    from tests.commands.terminal import Screens

    with tempfile.TemporaryDirectory() as folder, Screens(width, folder) as shown:
        shown.until(">>> ")
        for typed, answer in SESSION:
            shown.type(typed)
            shown.until(answer)
        console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True)
        for number in range(shown.LINES):
            row: Any = shown.screen.buffer[number]
            text = Text("", no_wrap=True, end="\n")
            for style, chars in groupby((row[k] for k in range(width)), _style):
                text.append("".join(char.data for char in chars), style)
            console.print(text)
    drawn = console.export_svg(title="gradcli repl", unique_id="repl")
    return re.sub(r"@font-face \{.*?\}\n", "", drawn, flags=re.S)  # no fonts from elsewhere


def _style(char: Any) -> Style:
    fg, bg = (None if c == "default" else COLOURS.get(c, c) for c in (char.fg, char.bg))
    known = [c if c is None or not re.fullmatch(r"[0-9a-f]{6}", c) else f"#{c}" for c in (fg, bg)]
    return Style(color=known[0], bgcolor=known[1], bold=char.bold, reverse=char.reverse)


def pack(path: Path) -> None:
    """Write a picture anew with 96 colours: a third of its bytes, and the same to the eye."""
    from PIL import Image

    with Image.open(path) as picture:
        picture.convert("RGB").quantize(96, dither=Image.Dither.NONE).save(path, optimize=True)


def notebook(path: Path) -> None:
    """The example notebook as a picture."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        return
    cells = json.loads((ROOT / "examples" / "notebook.ipynb").read_text(encoding="utf-8"))["cells"]
    body = re.sub(r"`(.*?)`", r"<code>\1</code>", "".join(map(_cell, cells)))
    look = (
        "body{font:15px sans-serif;margin:24px;width:760px} pre{background:#f5f5f5;padding:8px;margin:6px 0}"
        "table{border-collapse:collapse} td,th{padding:2px 8px;text-align:right} svg{max-width:700px}"
    )
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        page.write_text(f"<meta charset=utf-8><style>{look}</style>{body}", encoding="utf-8")
        subprocess.run(
            [browser, "--headless", "--no-sandbox", "--hide-scrollbars", "--disable-gpu",
             f"--screenshot={path}", "--window-size=820,2060", page.as_uri()],
            check=True, capture_output=True, timeout=120,
        )  # fmt: skip


def _cell(cell: dict[str, Any]) -> str:
    text = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        head, _, rest = text.partition("\n")
        size = len(head) - len(head.lstrip("#"))
        return f"<h{size}>{head.lstrip('# ')}</h{size}>{rest}" if size else f"<p>{text}</p>"
    return f"<pre>{html.escape(text)}</pre>" + "".join(map(_output, cell["outputs"]))


def _output(output: dict[str, Any]) -> str:
    data = output.get("data", {"text/plain": output.get("text", "")})
    for kind in ("image/svg+xml", "text/html", "text/latex", "text/plain"):
        if kind in data:
            text = re.sub(r"\x1b\[\d*m", "", "".join(data[kind]))
            return f"<pre>{html.escape(text)}</pre>" if kind == "text/plain" else _formulas(text)
    return ""


def _formulas(text: str) -> str:
    """Text with its formulas as MathML."""
    from latex2mathml.converter import convert

    return re.sub(r"\$(?:\\displaystyle )?(.*?)\$", lambda m: convert(m[1]), text, flags=re.S)

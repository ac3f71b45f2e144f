"""Ask an implementation of torch's interface what it says: the snippets, and one way to run them.

`snippets/*.md` is a specification to be read: a file a topic, a `## heading` a question, a fenced
block of Python its wording. A snippet's id is `topic/heading`. It runs in a namespace of its own in
which `torch` is bound (to torch, or to gradcli), and its answer is what it printed, then its
warnings, then the exception that ended it.
"""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SNIPPETS = HERE / "snippets"
ANSWERS = HERE / "torch_says.json"

_HEADING = re.compile(r"^## +(.+?)\s*$")
_ADDRESS = re.compile(r"0x[0-9a-f]+")
_PLACE = re.compile(r'File "[^"]*", line \d+')
_TRIGGERED = re.compile(r" \(Triggered internally at .*")


def snippets(folder: Path = SNIPPETS) -> dict[str, str]:
    """Every snippet's code by its id, in the order of the files."""
    found: dict[str, str] = {}
    for path in sorted(folder.glob("*.md")):
        for name, code in _blocks(path.read_text(encoding="utf-8")):
            identity = f"{path.stem}/{name}"
            if identity in found:
                raise ValueError(f"two snippets are called {identity!r}")
            found[identity] = code
    return found


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    heading, code = "", None
    for line in text.splitlines():
        match = _HEADING.match(line)
        if code is None and match:
            heading = match[1]
        elif code is None and line.startswith("```python"):
            code = []
        elif code is not None and line.startswith("```"):
            yield heading, "\n".join(code) + "\n"
            code = None
        elif code is not None:
            code.append(line)


def normalise(text: str) -> str:
    """The text without what changes from run to run: addresses, and places in source files."""
    text = _ADDRESS.sub("0x…", text)
    text = _PLACE.sub('File "…", line …', text)
    return _TRIGGERED.sub("", text)


def ask(code: str, torch: Any) -> list[str]:
    """Run one snippet and return the lines of its answer."""
    out = io.StringIO()
    error = None
    reset(torch)
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(out):
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", category=RuntimeWarning, module="gradcli")
        warnings.simplefilter(
            "ignore", ResourceWarning
        )  # of what other tests left to the collector
        try:
            exec(compile(code, "<snippet>", "exec"), {"torch": torch, "__name__": "snippet"})
        except Exception as err:  # what a snippet ends with is part of its answer
            error = f"{type(err).__name__}: {err}"
    reset(torch)
    lines = out.getvalue().splitlines()
    for warning in caught:
        first = (str(warning.message).splitlines() or [""])[0]
        lines.append(f"~ {warning.category.__name__}: {first}")
    if error is not None:
        lines.extend(f"! {error}".splitlines())
    return [normalise(line).rstrip() for line in lines]


def reset(torch: Any) -> None:
    """Put back every switch that a snippet may have turned, so that none depends on another."""
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)
    torch.set_printoptions(profile="default")
    torch.autograd.set_detect_anomaly(False)
    torch.manual_seed(0)
    if hasattr(torch, "set_warn_always"):
        torch.set_warn_always(True)

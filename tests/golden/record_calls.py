"""Record what torch says of wrong calls: `python record_calls.py` where torch and gradcli are."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent.parent)]

from calls import RECORDED, Called, answer, callables  # noqa: E402


def known(called: Called, torch: Any) -> bool:
    """Whether torch has the function."""
    owner = torch.Tensor if called.path.startswith(".") else torch
    for name in called.path.removeprefix("torch").strip(".").split("."):
        if not hasattr(owner, name):
            return False
        owner = getattr(owner, name)
    return callable(owner)


def dumped(value: Any) -> str:
    """Compact JSON."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def main() -> None:
    import torch

    lines: dict[str, int] = {}
    rows = []
    for called in callables():
        if not known(called, torch):
            continue
        numbers: list[Any] = []
        for call in called.calls():
            said = answer(call, torch)
            texts = [] if said is None else said.replace(f"{called.name}(", "@(").split("\n")
            found = [lines.setdefault(text, len(lines)) for text in texts]
            numbers.append(None if said is None else found if len(found) > 1 else found[0])
        rows.append(dumped([called.path, called.args, called.kwargs, called.names, numbers]))
    said_lines = ",\n".join(map(dumped, lines))
    joined = ",\n".join(rows)
    text = f'{{"lines":[\n{said_lines}],\n"functions":[\n{joined}]}}\n'
    RECORDED.write_text(text, encoding="utf-8")
    print(f"{len(lines)} lines about calls of {len(rows)} functions")


if __name__ == "__main__":
    main()

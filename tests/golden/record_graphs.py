"""Record operators from torch: `python tests/golden/record_graphs.py` writes graphs.json."""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from graph_cases import calls, observe

GRAPHS = Path(__file__).parent / "graphs.json"


def main() -> None:
    """Observe every call and write one line for each."""
    torch = importlib.import_module("torch")
    warnings.simplefilter("ignore")
    lines = []
    for family, call in calls():
        seen = {"family": family} | observe(call, torch)
        if "error" in seen:
            print(call, seen["error"])
        lines.append(json.dumps(seen, ensure_ascii=False))
    GRAPHS.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
    print(f"{len(lines)} calls, torch {torch.__version__}")


if __name__ == "__main__":
    main()

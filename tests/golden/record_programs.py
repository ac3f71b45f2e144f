"""Record random programs from torch: `python tests/golden/record_programs.py` writes programs.json."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from programs import program, show

PROGRAMS = Path(__file__).parent / "programs.json"
COUNT = 500


def main() -> None:
    """Run every program and write one line for each."""
    torch = importlib.import_module("torch")
    lines = []
    for seed in range(COUNT):
        code = program(seed)
        lines.append(json.dumps({"code": code, "shown": show(code, torch)}, ensure_ascii=False))
    PROGRAMS.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
    print(f"{COUNT} programs, torch {torch.__version__}")


if __name__ == "__main__":
    main()

"""Record random nests of transforms from torch: `python tests/golden/record_nests.py` writes nests.json."""

from __future__ import annotations

import importlib
import json
import random
import sys
from pathlib import Path

NESTS = Path(__file__).parent / "nests.json"
COUNT = 80
# Programs of the generator that once differed, by seed and number of the case.
MENDED = ("991 450", "991 508", "991 81", "991 98", "991 360", "77 624", "77 213")
MENDED += (
    "77 41",
    "final 863",
    "final 277",
    "final 240",
    "final 487",
    "final 611",
    "fresh 1130",
    "fresh 434",
)
MENDED += ("991 880", "77 66", "77 708", "77 502", "fresh 820", "4102 14", "4201 427")
MENDED += ("4302 75", "4302 85", "5101 144", "5102 273", "6101 277")


def main() -> None:
    """Run every program and write one line for each."""
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from tests.fuzz import nests

    torch = importlib.import_module("torch")
    torch.set_num_threads(1)
    lines = []
    for seed in (*(f"recorded {number}" for number in range(COUNT)), *MENDED):
        source = nests.Maker(random.Random(seed)).program()
        seen = nests.look(source, torch)
        lines.append(json.dumps({"source": source, "seen": seen.plain()}, ensure_ascii=False))
    NESTS.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
    print(f"{len(lines)} programs, torch {torch.__version__}")


if __name__ == "__main__":
    main()

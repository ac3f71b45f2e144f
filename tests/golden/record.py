"""Record what torch says: `python tests/golden/record.py [topic …]` writes torch_says.json.

Needs torch. Every snippet is asked until it answers the same twice running (a first use may warn of
torch's own affairs); one that never does is refused.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from asking import ANSWERS, ask, snippets


def settled(code: str, torch: Any) -> list[str]:
    """The answer that torch gives to a snippet twice running."""
    answers = [ask(code, torch)]
    while len(answers) < 4:
        answers.append(ask(code, torch))
        if answers[-1] == answers[-2]:
            return answers[-1]
    raise SystemExit(f"not deterministic:\n{code}\n{answers}")


def main(topics: list[str]) -> None:
    """Ask torch every snippet (or those of the named topics) and print what changed."""
    torch = importlib.import_module("torch")
    answers = {}
    old = json.loads(ANSWERS.read_text(encoding="utf-8")) if ANSWERS.exists() else {}
    for identity, code in snippets().items():
        if topics and identity.split("/")[0] not in topics and identity in old:
            answers[identity] = old[identity]
            continue
        answers[identity] = settled(code, torch)
        if old.get(identity) != answers[identity]:
            print(f"## {identity}", *answers[identity], sep="\n    ")
    ANSWERS.write_text(json.dumps(answers, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{len(answers)} snippets, torch {torch.__version__}")


if __name__ == "__main__":
    main(sys.argv[1:])

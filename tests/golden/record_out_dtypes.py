"""Record what torch says of the dtypes of `out=`: `python record_out_dtypes.py` where torch is."""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent.parent)]

from out_dtypes import RECORDED, answers, samples  # noqa: E402


def main() -> None:
    import torch

    texts: dict[str, int] = {}  # what is said, once
    rows = []
    for name, arguments in samples():
        said = answers(torch, name, arguments)
        if said is not None:
            numbers = [
                [None if s is None else texts.setdefault(s, len(texts)) for s in k] for k in said
            ]
            rows.append(json.dumps([name, arguments, numbers], separators=(",", ":")))
    said_texts = ",\n".join(json.dumps(text) for text in texts)
    joined = ",\n".join(rows)
    head = f'"torch": "{torch.__version__.split("+")[0]}"'
    text = f'{{{head},\n"said": [\n{said_texts}],\n"rows": [\n{joined}]}}\n'
    RECORDED.write_text(text, encoding="utf-8")
    print(f"{len(texts)} texts about {len(rows)} calls")


if __name__ == "__main__":
    main()

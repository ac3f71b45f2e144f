"""Record what torch.func answers to the calls of `func_programs`.

python -m tests.transforms.record_func
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import torch

from tests.transforms.func_programs import CALLS, PROGRAMS, answer, call_space, space


def main() -> None:
    warnings.simplefilter("ignore")
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    names = space(torch, torch.func)
    values = {name: answer(source, names) for name, source in PROGRAMS.items()}
    torch.manual_seed(0)
    calls = {name: answer(source, call_space(torch, torch.func)) for name, source in CALLS.items()}
    found = {"values": values, "calls": calls}
    (Path(__file__).parent / "func.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()

"""Record from torch the gradient, and the product with a vector, of the programs that are recorded.

python tests/golden/record_recordings.py writes recordings.json: for each program of
tests/transforms/tracing/recording_programs.py the gradient of its value's sum (zeros where there is none),
and that sum's derivative along linspace(1, 2), by `torch.autograd.functional.jvp`, which goes by the tape as
well.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))
from tests.transforms.tape_programs import torch_function  # noqa: E402
from tests.transforms.tracing.recording_programs import PROGRAMS  # noqa: E402


def answer(source: str, value: Any) -> dict[str, Any]:
    """What torch says to a program."""
    function, x = torch_function(source), torch.tensor(value)
    vector = torch.linspace(1, 2, x.numel()).reshape(x.shape)

    def total(x: torch.Tensor) -> torch.Tensor:
        return function(x).sum()

    leaf = x.clone().requires_grad_()
    out, grad = total(leaf), None
    if out.requires_grad:
        (grad,) = torch.autograd.grad(out, leaf, allow_unused=True)
    grad = torch.zeros_like(x) if grad is None else grad
    _, along = torch.autograd.functional.jvp(total, x, vector)
    return {"grad": grad.tolist(), "jvp": along.tolist()}


def main() -> None:
    torch.set_default_dtype(torch.float64)
    lines = []
    for source, value in PROGRAMS:
        torch.set_grad_enabled(True)
        lines.append(f"{json.dumps(source)}: {json.dumps(answer(source, value))}")
    (HERE / "recordings.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"{len(lines)} programs, torch {torch.__version__}")


if __name__ == "__main__":
    main()

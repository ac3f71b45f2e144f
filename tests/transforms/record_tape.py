"""Record what PyTorch answers to the programs of `tape_programs`: gradients, Jacobians, Hessians.

python -m tests.transforms.record_tape > tests/transforms/tape.json
"""

from __future__ import annotations

import json
from typing import Any

import torch
from torch.autograd.functional import hessian, jacobian

from tests.transforms.tape_programs import PROGRAMS, torch_function


def found(call: Any) -> Any:
    """What a call gives, as nested lists; PyTorch's words where it refuses."""
    try:
        return call().tolist()
    except RuntimeError as error:
        return {"refused": str(error).splitlines()[0]}


def main() -> None:
    torch.set_default_dtype(torch.float64)
    answers = {}
    for name, (source, value) in PROGRAMS.items():
        function, x = torch_function(source), torch.tensor(value)

        def gradient(function: Any = function, x: torch.Tensor = x) -> torch.Tensor:
            leaf = x.clone().requires_grad_()
            out = function(leaf)
            if not out.requires_grad:
                return torch.zeros_like(x)
            grad = torch.autograd.grad(out.sum(), leaf, allow_unused=True)[0]
            return torch.zeros_like(x) if grad is None else grad

        def total(x: torch.Tensor, function: Any = function) -> torch.Tensor:
            return function(x).sum()

        answers[name] = {
            "grad": found(gradient),
            "jacobian": found(lambda f=function, x=x: jacobian(f, x)),
            "hessian": found(lambda f=total, x=x: hessian(f, x)),
        }
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
